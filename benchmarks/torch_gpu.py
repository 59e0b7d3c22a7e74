"""Time the fused kernels of `calibrant.torch` on a GPU, as a multiple of reading the same bytes once.

    python benchmarks/torch_gpu.py [--csv FILE] [--largest 1000000000]

"read" sums all scores and labels by two calls of `torch.sum`, which is as fast as memory. "torchmetrics" is
its metric with 15 bins, without its checks of the arguments. Times are medians in milliseconds, of four
calls in a row.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from calibrant.torch import CalibrationError, TokenCalibrationError

COLUMNS = ("job", "GB", "read", "calibrant", "multiple", "torchmetrics", "plain torch", "memory MB")


def milliseconds(call: Callable[[], Any], repeats: int = 15) -> float:
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for _ in range(4):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 4)
    return sorted(times)[len(times) // 2]


def binary(n: int, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of one class: uniform, or most of them above 0.99 and one in ten exactly 1."""
    score = torch.rand(n, device="cuda")
    if kind == "saturated":
        for part in score.split(1 << 26):
            odds = torch.randn_like(part).mul_(2).add_(8)
            part.copy_(torch.where(part < 0.1, 1.0, odds.sigmoid_()))
    return score, (torch.rand(n, device="cuda") < score).to(torch.uint8)


def matrix(n: int, classes: int, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.empty(n, classes, dtype=kind, device="cuda").normal_(0, 3)
    return x, torch.randint(0, classes, (n,), device="cuda")


def jobs(largest: int) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], Any]]:
    for n in (10**7, 10**8, 10**9):
        if n <= largest:
            for kind in ("uniform", "saturated"):
                peer = "binary" if n <= 10**8 else None
                yield (
                    f"binary {n:.0e} {kind} float32",
                    lambda n=n, k=kind: binary(n, k),
                    CalibrationError,
                    peer,
                )
    shapes = ((20_000, 50_000), (50_000, 1000), (1_000_000, 1000), (1_000_000, 10))
    for n, classes in shapes:
        for kind in (torch.bfloat16, torch.float32):
            name = f"confidence {n} x {classes} {str(kind)[6:]}"
            make = lambda n=n, c=classes, k=kind: matrix(n, c, k)  # noqa: E731
            peer = classes if n * classes <= 10**8 else None
            yield f"{name} logits", make, lambda: CalibrationError("confidence", from_logits=True), peer

    def probabilities(n: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = matrix(n, classes, torch.float32)
        return torch.softmax(x, 1, out=x), y

    def classwise(classes: int, logits: bool) -> CalibrationError:
        return CalibrationError("classwise", "uniform:16", num_classes=classes, from_logits=logits)

    yield (
        "class-wise bins 20000 x 50000 float32",
        lambda: probabilities(20_000, 50_000),
        lambda: classwise(50_000, False),
        None,
    )
    yield (
        "class-wise bins 20000 x 50000 bfloat16 logits",
        lambda: matrix(20_000, 50_000, torch.bfloat16),
        lambda: classwise(50_000, True),
        None,
    )
    yield (
        "class-wise cells 50000 x 1000 float32",
        lambda: probabilities(50_000, 1000),
        lambda: classwise(1000, False),
        None,
    )
    yield (
        "confidence top:5 20000 x 50000 bfloat16 logits",
        lambda: matrix(20_000, 50_000, torch.bfloat16),
        lambda: CalibrationError("top:5", from_logits=True),
        None,
    )
    yield (
        "every token 20000 x 50000 bfloat16 logits",
        lambda: matrix(20_000, 50_000, torch.bfloat16),
        lambda: TokenCalibrationError("every"),
        None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv")
    parser.add_argument("--largest", type=int, default=10**9)
    parser.add_argument("--plain", action="store_true", help="time the path without Triton too")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    rows = []
    for name, make, build, peer in jobs(options.largest):
        torch.manual_seed(0)
        x, y = make()
        size = x.numel() * x.element_size() + y.numel() * y.element_size()
        read = milliseconds(lambda x=x, y=y: (x.sum(dtype=torch.float32), y.sum()))
        metric = build() if peer != "binary" else CalibrationError("binary", from_logits=False)
        if metric._notion is None and not metric._pooled:
            metric = CalibrationError("binary", from_logits=False)
        metric = metric.cuda()
        metric.update(x, y)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        took = milliseconds(lambda m=metric, x=x, y=y: m.update(x, y))
        memory = (torch.cuda.max_memory_allocated() - before) / 1e6
        others: list[Any] = ["", ""]
        if peer is not None:
            try:
                from torchmetrics.functional.classification import binary_calibration_error as of_one
                from torchmetrics.functional.classification import multiclass_calibration_error as of_many

                measure = (
                    (lambda x=x, y=y: of_one(x, y, 15, validate_args=False))
                    if peer == "binary"
                    else (lambda x=x, y=y, c=peer: of_many(x, y, c, 15, validate_args=False))
                )
                others[0] = round(milliseconds(measure, 3), 2)
            except ImportError:
                pass
        if options.plain and size < 2e9:
            import calibrant.torch.metric as module

            fused, module.fused = module.fused, lambda preds: None
            others[1] = round(milliseconds(lambda m=metric, x=x, y=y: m.update(x, y), 3), 2)
            module.fused = fused
        rows.append(
            [
                name,
                round(size / 1e9, 2),
                round(read, 3),
                round(took, 3),
                round(took / read, 1),
                *others,
                round(memory),
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
        del x, y, metric
        torch.cuda.empty_cache()
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
