"""The default against the best of the paper's fifteen, on distributions that nothing was tuned on.

    calibrant experiment run --preset confirm --out confirm --jobs -1
    python benchmarks/confirm.py confirm

For each notion: the ratio, at every N, of the median over models of the default's 95th percentile error to
that of whichever of the fifteen is best at this N; the geometric mean over N; and bounds of both from
resampling the distributions, each with all its models. Last, the default's mean bias at the largest N.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from calibrant.estimators import FIFTEEN
from calibrant.experiment.store import Store

RESAMPLES = 2000


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
    fifteen, own = [names.index(name) for name in FIFTEEN], names.index(arguments.estimator)
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
    for j, notion in enumerate(settings.notions):
        p95 = np.array([result.statistics[-1, j, :, :, 0] for result in results])
        bias = np.array([result.statistics[-1, j, own, -1, 2] for result in results])

        def ratio(models):
            medians = np.median(p95[models], axis=0)  # noqa: B023
            return medians[own] / medians[fifteen].min(axis=0)

        each = ratio(np.arange(len(results)))
        again = np.array([ratio(models) for models in drawn])
        mean = np.exp(np.log(again).mean(axis=1))
        low, high = np.quantile(again, [0.05, 0.95], axis=0)
        print(f"\n{notion}: N " + "".join(f"{n:>8}" for n in settings.sizes))
        for title, values in (("ratio", each), ("5 %", low), ("95 %", high)):
            print(f"{title:>{len(notion) + 3}}  " + "".join(f"{value:8.3f}" for value in values))
        print(
            f"geometric mean over N {np.exp(np.log(each).mean()):.3f}, standard error {mean.std():.3f}, "
            f"upper 90 % bound {np.quantile(mean, 0.9):.3f}; significantly above 1.05 at: "
            f"{[n for n, value in zip(settings.sizes, low, strict=True) if value > 1.05] or 'no N'}; "
            f"mean bias at N = {settings.sizes[-1]} {bias.mean():+.4f} "
            f"(se {bias.std() / len(bias) ** 0.5:.4f})"
        )


if __name__ == "__main__":
    main()
