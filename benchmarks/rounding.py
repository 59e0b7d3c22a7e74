"""How often scores are taken for rounded ones, and what rounding does to the interval of a calibrated model.

    python benchmarks/rounding.py            # some three minutes
    python benchmarks/rounding.py --reps 3   # a quick look

The first table has the share of samples in which no score counts as repeated: 1 is right for smooth models
and forests, 0 for lookup tables. The second has the mean upper end of the interval over that of unrounded
scores.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit

import calibrant
from calibrant.score_data import Residuals, Sample

TABLES = {
    size: (np.clip(rng.beta(1.3, 1.7, size), 0.001, 0.999), rng.dirichlet(np.ones(size)))
    for size, rng in ((size, np.random.default_rng(size)) for size in (40, 300))
}
MODELS = {
    "smooth": lambda rng, n: expit(rng.normal(-0.5, 1.3, n)),
    "sharp": lambda rng, n: expit(rng.normal(1, 4, n)),
    "rare, 5 %": lambda rng, n: rng.beta(0.5, 9.5, n),
    **{
        f"forest of {trees}": lambda rng, n, trees=trees: (
            rng.binomial(trees, expit(rng.normal(-0.5, 1.3, n))) / trees
        )
        for trees in (50, 100, 500)
    },
    **{
        f"table of {size}": lambda rng, n, values=values, share=share: rng.choice(values, n, p=share)
        for size, (values, share) in TABLES.items()
    },
}
DECIMALS = (2, 3, 4, 5)
SIZES = (1000, 5000, 20_000)


def taken_for_rounded(model: str, n: int, decimals: int, repetitions: int) -> float:
    """Return the share of samples in which no score counts as repeated."""
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        score = MODELS[model](rng, n).round(decimals)
        steps = Residuals.of(Sample(score, rng.random(n) < score))
        found.append(not (steps.single_score & (steps.mass > 1.5)).any())
    return float(np.mean(found))


def upper_ends(model: str, n: int, decimals: int, repetitions: int) -> float:
    """Return the mean upper end with rounded scores over that with unrounded scores, calibrated."""
    ends = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        score = MODELS[model](rng, n)
        outcome = (rng.random(n) < score).astype(int)
        ends.append([
            calibrant.estimate(outcome, each, labels=(0, 1), n_resamples=99, rng=0).high
            for each in (score.round(decimals), score)
        ])  # fmt: skip
    rounded, unrounded = np.mean(ends, axis=0)
    return float(rounded / unrounded)


def table(title: str, models: list[str], repetitions: int, measure: object) -> None:
    print(f"\n{title}\n{'model':14} {'n':>6}" + "".join(f"{f'{d} decimals':>12}" for d in DECIMALS))
    for model in models:
        for n in SIZES:
            cells = [measure(model, n, decimals, repetitions) for decimals in DECIMALS]
            print(f"{model:14} {n:6}" + "".join(f"{value:12.2f}" for value in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=10, help="samples of each cell")
    repetitions = parser.parse_args().reps
    table("share of samples without repeated scores", list(MODELS), repetitions, taken_for_rounded)
    table("upper end over that of unrounded scores", ["smooth", "sharp"], repetitions, upper_ends)


if __name__ == "__main__":
    main()
