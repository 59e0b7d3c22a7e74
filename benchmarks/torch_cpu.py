"""Time `calibrant.torch.CalibrationError` against torchmetrics on a CPU, in one run.

    python benchmarks/torch_cpu.py [--rows 50000] [--classes 1000] [--rounds 5]

Both add one batch and compute the error of 15 bins. The contenders take turns. Times are medians of the
processor's time of one thread, in milliseconds.
torchmetrics is timed with the checks of its arguments, which calibrant does too, and without them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torchmetrics.classification import MulticlassCalibrationError

from calibrant.torch import CalibrationError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logits = 3 * torch.randn(options.rows, options.classes)
    target = torch.distributions.Categorical(logits=logits).sample()
    inputs = {"probabilities": logits.softmax(1), "logits": logits, "logits, bfloat16": logits.bfloat16()}
    print(f"torch {torch.__version__}, one thread")
    print("milliseconds | calibrant | torchmetrics | times | without checks | times | state MB | theirs")
    for name, preds in inputs.items():
        logits_given = name != "probabilities"
        contenders: dict[str, Callable[[], torch.nn.Module]] = {
            "calibrant": lambda given=logits_given: CalibrationError(
                "confidence", "uniform:15", from_logits=given
            ),
            "torchmetrics": lambda: MulticlassCalibrationError(options.classes, n_bins=15),
            "unchecked": lambda: MulticlassCalibrationError(options.classes, n_bins=15, validate_args=False),
        }
        times: dict[str, list[float]] = {each: [] for each in contenders}
        kept, values = {}, {}
        for _ in range(options.rounds):
            for each, build in contenders.items():
                metric = build()
                start = time.process_time()
                metric.update(preds, target)
                values[each] = float(metric.compute())
                times[each].append(1e3 * (time.process_time() - start))
                held = [metric.metric_state[key] for key in metric.metric_state]
                tensors = [
                    tensor for state in held for tensor in (state if isinstance(state, list) else [state])
                ]
                kept[each] = sum(tensor.nbytes for tensor in tensors) / 1e6
        assert name.endswith("bfloat16") or abs(values["calibrant"] - values["torchmetrics"]) < 1e-3
        ours, theirs, unchecked = (statistics.median(times[each]) for each in contenders)
        ratios = f"{theirs:.0f} | {theirs / ours:.1f} | {unchecked:.0f} | {unchecked / ours:.1f}"
        print(f"{name} | {ours:.0f} | {ratios} | {kept['calibrant']:.2f} | {kept['torchmetrics']:.2f}")


if __name__ == "__main__":
    main()
