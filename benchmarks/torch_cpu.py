"""Time `calibrant.torch.CalibrationError` against torchmetrics on a CPU, in one run.

    python benchmarks/torch_cpu.py [--rows 50000] [--classes 1000] [--rounds 5]

Both add batches and compute the error of 15 bins. "first" is the first batch of a new metric with the result,
"further" the update with another batch, and "unknown" the first batch where calibrant is not told whether the
scores are logits. The contenders take turns. Times are medians of the processor's time of one thread, in
milliseconds, and "times" is torchmetrics divided by calibrant. torchmetrics is timed with the checks of its
arguments, which calibrant does too, and without them.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torchmetrics.classification import MulticlassCalibrationError

from calibrant.torch import CalibrationError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    logits = 3 * torch.randn(options.rows, options.classes)
    target = torch.distributions.Categorical(logits=logits).sample()
    inputs = {"probabilities": logits.softmax(1), "logits": logits, "logits, bfloat16": logits.bfloat16()}
    print(f"torch {torch.__version__}, one thread")
    print("batch | calibrant | torchmetrics | times | without its checks | times | state MB | theirs")
    for name, preds in inputs.items():
        is_logits = name != "probabilities"
        contenders: dict[str, Callable[[bool], torch.nn.Module]] = {
            "calibrant": lambda told, given=is_logits: CalibrationError(
                "confidence", "uniform:15", from_logits=given if told else None
            ),
            "torchmetrics": lambda _: MulticlassCalibrationError(options.classes, n_bins=15),
            "unchecked": lambda _: MulticlassCalibrationError(
                options.classes, n_bins=15, validate_args=False
            ),
        }
        phases = ("first", "further", "unknown")
        times: dict[str, dict[str, list[float]]] = {
            each: {phase: [] for phase in phases} for each in contenders
        }
        kept, values = {}, {}
        for round_ in range(options.rounds + 1):
            for each, build in contenders.items():
                spent = {}
                for phase, told in (("unknown", False), ("first", True)):
                    metric = build(told)
                    start = time.process_time()
                    metric.update(preds, target)
                    values[each] = float(metric.compute())
                    spent[phase] = time.process_time() - start
                    held = metric.metric_state.values()
                    tensors = [
                        part for state in held for part in (state if isinstance(state, list) else [state])
                    ]
                    kept[each] = sum(tensor.nbytes for tensor in tensors) / 1e6
                start = time.process_time()
                metric.update(preds, target)
                spent["further"] = time.process_time() - start
                for phase in phases if round_ else ():  # the first round fills caches
                    times[each][phase].append(1e3 * spent[phase])
        assert name.endswith("bfloat16") or abs(values["calibrant"] - values["torchmetrics"]) < 1e-3
        for phase in phases:
            ours, theirs, unchecked = (statistics.median(times[each][phase]) for each in contenders)
            ratios = f"{theirs:.0f} | {theirs / ours:.1f} | {unchecked:.0f} | {unchecked / ours:.1f}"
            state = f"{kept['calibrant']:.2f} | {kept['torchmetrics']:.2f}"
            print(f"{name}, {phase} | {ours:.0f} | {ratios} | {state}", flush=True)


if __name__ == "__main__":
    main()
