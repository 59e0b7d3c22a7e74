"""Peak memory of one class-wise call on top of its input, as JSON; `peers.py` runs it in its own process.

Two views of the same call: `traced` is what numpy asked for (tracemalloc); `resident` is what the process
grew by, which also sees buffers that numpy does not report. On Linux that is the high-water mark `VmHWM`,
reset before the call, because `ru_maxrss` starts from the peak of the parent process; elsewhere it is
`ru_maxrss`.
"""

import contextlib
import gc
import json
import resource
import sys
import tracemalloc
from pathlib import Path

import numpy as np

ROWS, CLASSES = 50_000, 1000


def softmax_matrix(rng, rows=ROWS, classes=CLASSES):
    """float32 softmax of normal logits, built in place so that the build leaves no peak behind."""
    matrix = rng.standard_normal((rows, classes), dtype=np.float32)
    matrix -= matrix.max(axis=1, keepdims=True)
    np.exp(matrix, out=matrix)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def labels_of(rng, rows=ROWS, classes=CLASSES):
    return rng.integers(0, classes, rows)


def reset_peak():
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes():
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        status = ""
    for line in status.splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main():
    import calibrant

    def call(y, matrix):
        return calibrant.ece(y, matrix, notion="classwise", estimator="uniform:15")

    rng = np.random.default_rng(0)
    matrix, y = softmax_matrix(rng), labels_of(rng)
    call(labels_of(rng, 100, 10), softmax_matrix(rng, 100, 10))  # imports and caches belong to no input
    gc.collect()

    reset_peak()
    before = peak_bytes()
    value = call(y, matrix)
    resident = peak_bytes() - before

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    call(y, matrix)
    traced = tracemalloc.get_traced_memory()[1] - before
    print(json.dumps({"input": matrix.nbytes, "resident": resident, "traced": traced, "value": value}))


if __name__ == "__main__":
    main()
