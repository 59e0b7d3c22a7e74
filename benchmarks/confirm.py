"""The default against the best of the paper's fifteen, on distributions that nothing was tuned on.

    calibrant experiment run --preset confirm --out confirm --jobs -1
    python benchmarks/confirm.py confirm

For each notion, and for the 95th percentile (p95) and the mean (MAE) of the absolute error: the ratio, at
every N, of the default's median over models to that of whichever of the fifteen is best at this N, and to
that of ac:10; the geometric mean over N; and bounds of both from resampling the distributions, each with all
its models. Last, the default's mean bias at the largest N.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from calibrant.estimators import FIFTEEN
from calibrant.experiment.procedure import STATISTICS
from calibrant.experiment.store import Store

RESAMPLES = 2000
ERRORS = {"p95": "p95", "mean": "MAE"}
RIVALS = {"the best of the fifteen": FIFTEEN, "ac:10": ("ac:10",)}


def ratio(values, own, rivals):
    """Divide the median over models of one estimator by the least median of its rivals, at each size."""
    medians = np.median(values, axis=0)
    return medians[own] / medians[rivals].min(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of a run with the fifteen and auto")
    parser.add_argument("--estimator", default="auto")
    arguments = parser.parse_args()
    store = Store(arguments.run)
    settings, results = store.settings(), list(store.results())
    names = list(settings.estimators)
    own = names.index(arguments.estimator)
    where = np.array([result.task.distribution for result in results])
    groups = [np.flatnonzero(where == name) for name in np.unique(where)]
    print(
        f"{len(results)} models on {len(groups)} distributions, {settings.repetitions} samples of each size"
    )
    rng = np.random.default_rng(0)
    drawn = [
        np.concatenate([groups[k] for k in rng.integers(0, len(groups), len(groups))])
        for _ in range(RESAMPLES)
    ]
    corrected = settings.readings.index("corrected")
    for j, notion in enumerate(settings.notions):
        statistics = np.stack([result.statistics[corrected, j] for result in results])
        for statistic, error in ERRORS.items():
            values = statistics[..., STATISTICS.index(statistic)]
            for rival, members in RIVALS.items():
                rivals = [names.index(name) for name in members]
                each = ratio(values, own, rivals)
                again = np.array([ratio(values[models], own, rivals) for models in drawn])
                mean = np.exp(np.log(again).mean(axis=1))
                low, high = np.quantile(again, [0.05, 0.95], axis=0)
                print(f"\n{notion}, {error} over {rival}")
                print("     N  " + "".join(f"{n:>8}" for n in settings.sizes))
                for title, row in (("ratio", each), ("5 %", low), ("95 %", high)):
                    print(f"{title:>6}  " + "".join(f"{value:8.3f}" for value in row))
                above = [n for n, value in zip(settings.sizes, low, strict=True) if value > 1.05]
                print(
                    f"geometric mean over N {np.exp(np.log(each).mean()):.3f}, standard error "
                    f"{mean.std():.3f}, upper 90 % bound {np.quantile(mean, 0.9):.3f}; "
                    f"significantly above 1.05 at: {above or 'no N'}"
                )
        bias = statistics[:, own, -1, STATISTICS.index("bias")]
        print(
            f"\n{notion}, mean bias at N = {settings.sizes[-1]} {bias.mean():+.4f} "
            f"(se {bias.std() / len(bias) ** 0.5:.4f})"
        )


if __name__ == "__main__":
    main()
