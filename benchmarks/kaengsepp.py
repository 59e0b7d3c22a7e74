"""Mean absolute error of estimators on the synthetic shapes of Kaengsepp et al.

    python benchmarks/kaengsepp.py [ESTIMATOR ...] [--seeds 5] [--baseline debiased:15] [--signed]

"On the Usefulness of the Fit-on-the-Test View on Evaluating Calibration of Classifiers" (Kaengsepp, Valk and
Kull) draws true probabilities c from the uniform distribution, outcomes from c, and scores
p = (1 - lam) c + lam g(c) for five shapes g at 21 calibration errors from 0 to .10. An estimate is compared
with mean |p - c| of its own sample. The first five seeds are theirs; with more of them the differences to a
baseline are paired and come with a standard error over the seeds. Figures are in thousandths.

Their row "sweep" is the debiased error of the bins at which the sweep ends, `sweep:debiased`, with negative
values left as they are: `--signed`.
"""

import argparse
import time

import numpy as np

from calibrant.estimators import estimator_names, resolve
from calibrant.experiment.families import EXACT
from calibrant.score_data import Array, Sample

SIZES = (1000, 3000, 10_000)
LEVELS = np.arange(21) * 0.005
# Rows that are reported in the paper's appendix.
PUBLISHED = {
    "debiased:15": (7.40, 6.94, 7.78, 7.18, 7.12),
    "sweep:debiased": (7.07, 6.56, 7.19, 8.04, 7.46),
    "isotonic": (8.66, 9.60, 10.38, 9.13, 10.30),
    "PL_DE, their best": (5.84, 6.21, 5.79, 6.88, 7.47),
}


# The map of each shape and its calibration error at full strength.
SHAPES = {
    name: (EXACT[name].curve, EXACT[name].l1) for name in ("square", "sqrt", "beta1", "beta2", "stairs")
}


def draw(seed: int, n: int) -> tuple[Sample, Array]:
    """Scores of every shape and level for one seed, and the true error of each."""
    rng = np.random.RandomState(seed + n)  # the published stream
    truth = np.sort(rng.dirichlet([1, 1], n)[:, 0])
    outcome = rng.binomial(1, truth).astype(bool)
    share = np.array([[round(level / full, 6) for level in LEVELS] for _, full in SHAPES.values()])[..., None]
    bent = np.stack([g(truth) for g, _ in SHAPES.values()])[:, None]
    score = np.clip((1 - share) * truth + share * bent, 0, 1)
    return Sample(score, outcome), np.abs(score - truth).mean(axis=-1)


def errors(names: list[str], seeds: int, sizes: tuple[int, ...], signed: bool = False) -> tuple[Array, Array]:
    """Absolute errors by estimator, seed and shape, and seconds by estimator."""
    found, seconds = np.zeros((len(names), seeds, len(SHAPES))), np.zeros(len(names))
    for seed in range(seeds):
        for n in sizes:
            sample, truth = draw(seed, n)
            for k, name in enumerate(names):
                start = time.perf_counter()
                fit = resolve(name).fit(sample)
                value = fit.signed if signed and hasattr(fit, "signed") else fit.error()
                seconds[k] += time.perf_counter() - start
                found[k, seed] += np.abs(value - truth).mean(axis=-1) / len(sizes)
    return 1000 * found, seconds


def line(title: str, values: Array | tuple[float, ...], last: str) -> str:
    return f"{title:<22}" + "".join(f"{value:9.2f}" for value in values) + f"{np.mean(values):9.2f}  {last}"


def report(names: list[str], baseline: str, seeds: int, sizes: tuple[int, ...], signed: bool) -> str:
    found, seconds = errors(names, seeds, sizes, signed)
    head = f"{'':<22}" + "".join(f"{shape:>9}" for shape in (*SHAPES, "mean"))
    lines = [f"mean absolute error x 1000, {seeds} seeds, n in {', '.join(map(str, sizes))}", head]
    # Each seed and size has 105 problems in one batch.
    per_fit = 1000 * seconds / (seeds * len(sizes) * len(SHAPES) * len(LEVELS))
    for name, value, ms in zip(names, found, per_fit, strict=True):
        lines.append(line(name, value.mean(axis=0), f"{ms:.2f} ms a problem"))
    if seeds > 1:
        lines += ["", f"difference to {baseline}, paired, and its standard error over the seeds", head]
        for name, value in zip(names, found, strict=True):
            if name != baseline:
                gap = value - found[names.index(baseline)]
                lines.append(line(name, gap.mean(axis=0), ""))
                each = gap.std(axis=0, ddof=1) / seeds**0.5
                whole = gap.mean(axis=1).std(ddof=1) / seeds**0.5
                lines.append(
                    f"{'':<22}" + "".join(f"{f'+-{value:.2f}':>9}" for value in (*each, float(whole)))
                )
    lines += ["", "published (5 seeds, n in 1000, 3000, 10000)", head]
    return "\n".join(lines + [line(name, values, "") for name, values in PUBLISHED.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("estimators", nargs="*", help="names of the registry; all of them if none is given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--baseline", default="debiased:15")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--signed", action="store_true", help="leave negative estimates as they are")
    asked = parser.parse_args()
    names = asked.estimators or list(estimator_names())
    if asked.baseline not in names:
        names = [asked.baseline, *names]
    print(report(names, asked.baseline, asked.seeds, tuple(asked.sizes), asked.signed))


if __name__ == "__main__":
    main()
