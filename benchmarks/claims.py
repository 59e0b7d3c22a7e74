"""What the paper claims: about its Figure 2 by a run of the experiment, and beyond by side studies.

    calibrant experiment run --preset paper --out paper --jobs 2
    python benchmarks/claims.py paper [--smoke] [-o docs/claims.md]

A study returns plain numbers from a seed and sizes. All of them take three minutes; with --smoke, of little
weight, some seconds.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import calibrant
from calibrant.estimators import FIFTEEN, Binned, Density, DensityBeta, Estimator
from calibrant.estimators.canonical.dirichlet import CanonicalDirichlet
from calibrant.estimators.canonical.softmax import CanonicalSoftmax
from calibrant.experiment import Store, models
from calibrant.experiment.claims import (
    FAILS,
    HOLDS,
    OPEN,
    OURS,
    SMALL,
    TIE,
    Claim,
    about,
    claims,
    covers_all,
    decide,
    ranges,
    to_markdown,
)
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, Family, affine
from calibrant.experiment.procedure import (
    Settings,
    Task,
    distribution,
    estimates,
    estimator,
    family,
    one_dimensional,
    title,
    true_errors,
)
from calibrant.experiment.summary import Summary, resampled, resampled_medians
from calibrant.score_data import Array, Sample
from calibrant.score_data.simplex import Simplex

CHEAP = ("logistic", "naive-bayes")  # models quick to train again
NAMED = "mentioned, not tested"
LEGEND = """\
`python benchmarks/claims.py RUN -o docs/claims.md` makes this page from a run of the
[experiment](experiment.md). [The comparison with the paper](findings.md#verdicts-on-the-claims)
summarises it.

- **Section** is that of the paper. "not claimed" marks statements that the paper does not make.
- **Verdicts.** A claim about a size N is decided if three quarters of resampled distributions agree.
  Differences below 3 % are ties. "open" lists sizes that are not decided.
- **Readings.** "published" uses the authors' estimators and their true error, "corrected" uses
  calibrant's estimators and the exact true error, and "normalised" divides the corrected errors by the
  true error of each model.
- **Numbers** are ratios of 95th percentiles of the absolute error unless they say otherwise. Names of
  estimators: `l` uniform bins, `a` adaptive bins, `c` and `ac` the same with the convex mapping, `d`
  density."""
HEADINGS = ("Claims tested by the run", "Claims tested by separate studies")
# So many times the usual time would be prohibitive.
PROHIBITIVE = 20.0
LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 113)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WIDTHS, GRIDS = (0.033, 0.1, 0.4), (1024, 4096, 16_384, 65_536)
DECADES = (100, 1000, 10_000, 100_000, 1_000_000)
NAMES = ("l:10", "l:sqrt", "d:0.1", "d:silverman")
SMOKE: dict[str, dict[str, Any]] = {
    "growth": {"sizes": (100, 3000), "repetitions": 40},
    "interpolation": {"sizes": (100, 1000), "repetitions": 10},
    "rules": {"sizes": (30, 200), "repetitions": 4},
    "kernels": {"sizes": (30, 200), "repetitions": 4},
    "kernels_on_models": {"sizes": (100,), "repetitions": 10, "rows": 5000, "most": 8},
    "bootstrap_coverage": {"sizes": (100, 500), "repetitions": 3, "resamples": 30},
    "dimension": {"classes": (3, 5), "n": 300, "repetitions": 1},
    "ace": {"n": 300},
    "cost": {"sizes": (10_000, 100_000), "points": (1024, 16_384), "repetitions": 4},
    "mass": {"n": 500},
    "sharpness": {"rows": 2000, "most": 8},
    "proper_scores": {"rows": 4000, "most": 36},
    "consistency": {"sizes": (100_000, 1_000_000), "repetitions": 2, "names": NAMES},
}


@lru_cache
def shapes() -> tuple[Family, ...]:
    """Return families whose scores are spread, U-shaped or piled up at 1, with gaps of few or many signs.

    >>> [round(shape.truth, 4) for shape in shapes()]
    [0.1022, 0.1372, 0.1307, 0.0401]
    """
    return (
        Family("spread, too timid", (2.0, 2.0), affine(2.0, 0.0), 0.1022208),
        replace(EXACT["flat"], name="U-shaped, too bold"),
        replace(EXACT["logistic"], name="at 1, too bold"),
        replace(EXACT["wavy"], name="U-shaped, wavy"),
    )


def draw(shape: Family, rng: np.random.Generator, *size: int) -> Sample:
    """Draw independent rows."""
    return Sample(*shape.draw(rng, *size))


def _p95(values: Array, shape: Family) -> float:
    return float(np.percentile(np.abs(values - shape.truth), 95) / shape.truth)


def growth(
    seed: int = 0, sizes: Sequence[int] = (30, 100, 300, 1000, 3000, 10_000), repetitions: int = 300
) -> dict[str, Any]:
    """Return the best fixed number of uniform bins at each size, against the root of the size.

    Besides `best` and `root`, `cost` is the error with the root over the least, and `exponent` the slope of
    log best over log size. Errors are 95th percentiles over the truth, averaged over shapes.
    """
    best, root, cost = {}, {n: int(n**0.5) for n in sizes}, {}
    for n in sizes:
        table = np.zeros(len(LADDER) + 1)
        for shape in shapes():
            sample = draw(shape, rng_of("growth", seed, shape.name, n), repetitions, n)
            fits = (Binned("uniform", bins).fit(sample) for bins in (*LADDER, root[n]))
            table += [_p95(fit.error(), shape) for fit in fits]
        best[n], cost[n] = LADDER[int(table[:-1].argmin())], float(table[-1] / table.min())
    exponent = float(np.polyfit(np.log(list(best)), np.log(list(best.values())), 1)[0])
    return {"best": best, "root": root, "cost": cost, "exponent": exponent}


def interpolation(
    seed: int = 0, sizes: Sequence[int] = (100, 200, 500, 1000, 2000), repetitions: int = 100
) -> dict[int, dict[str, float]]:
    """Return root mean square errors at the rows of an interpolated 15-bin diagram and of the curve."""
    errors = {}
    for n in sizes:
        squares = []
        for shape in shapes():
            rng = rng_of("interpolation", seed, shape.name, n)
            for _ in range(repetitions):
                sample = draw(shape, rng, n)
                bins, fit = Binned("uniform", 15).fit(sample).bins, Density().fit_shared_bandwidth(sample)
                held = bins.w > 0
                lines = ((bins.score[held], bins.frequency[held]), (fit.score, fit.frequency))
                gaps = [np.interp(sample.score, *line) - shape.curve(sample.score) for line in lines]
                squares.append(np.nanmean(np.square(gaps), axis=1))
        errors[n] = dict(zip(("diagram", "curve"), np.sqrt(np.mean(squares, axis=0)).tolist(), strict=True))
    return errors


def rules(
    seed: int = 0, sizes: Sequence[int] = (30, 50, 100, 200, 500), repetitions: int = 100
) -> dict[int, dict[str, float]]:
    """Divide the density's error with each bandwidth rule by that with Silverman's, mean of shapes."""
    names = {rule: f"d:{rule}" for rule in ("silverman", "scott", "isj")}
    return {n: _ratios(names, ("rules", seed), n, repetitions) for n in sizes}


def kernels(
    seed: int = 0, sizes: Sequence[int] = (30, 100, 300, 1000, 3000), repetitions: int = 100
) -> dict[int, dict[str, float]]:
    """Divide the density's error with beta kernels by that with Silverman's rule, mean of shapes.

    With "each" every row has mass one.
    """
    names = {"silverman": "d:silverman", "first": "density-beta", "second": "density-beta2"}
    names |= {f"{kind}, each": f"{name}:scott:each" for kind, name in list(names.items())[1:]}
    return {n: _ratios(names, ("kernels", seed), n, repetitions) for n in sizes}


def kernels_on_models(
    seed: int = 0,
    sizes: Sequence[int] = (100, 500, 2000),
    repetitions: int = 50,
    rows: int = 50_000,
    most: int = 72,
) -> dict[str, dict[int, Array]]:
    """Divide the error of the second beta kernel by that of Silverman's density, on models of the paper.

    The error is that of Figure 2: the median over the models of the 95th percentile. By notion and size, the
    ratio over all models and then over resampled distributions.
    """
    estimators = ("d:silverman", "density-beta2")
    chosen = Settings(seeds=(seed, seed + 1), train_sets=1, estimators=estimators)
    tasks = chosen.tasks()[:most]
    p95: dict[str, dict[int, list[Array]]] = {notion: {n: [] for n in sizes} for notion in chosen.notions}
    for task, (score, label, chance) in zip(tasks, _cheap(tasks, chosen.n_train, rows), strict=True):
        truths = true_errors(score, label, chance, chosen.notions)
        for n in sizes:
            drawn = rng_of(task.name, "kernels", n).integers(0, rows, (repetitions, n))
            for notion, true in truths.items():
                problem = one_dimensional(notion, score[drawn], label[drawn])
                values = estimates(problem, notion, score.shape[1], chosen, [])["corrected"]
                p95[notion][n].append(np.percentile(np.abs(values - true.exact), 95, axis=1))
    names = [task.distribution for task in tasks]
    medians = {
        notion: {n: resampled_medians(np.array(errors), names, 200) for n, errors in by.items()}
        for notion, by in p95.items()
    }
    return {notion: {n: both[:, 1] / both[:, 0] for n, both in by.items()} for notion, by in medians.items()}


def bootstrap_coverage(
    seed: int = 0, sizes: Sequence[int] = (100, 500, 2000), repetitions: int = 20, resamples: int = 100
) -> dict[int, float]:
    """Return how often the paper's 95 % interval holds the true frequency at a score, mean of shapes.

    The interval is that between percentiles of bootstrapped curves; the scores are the 5, 25, 50, 75 and 95 %
    quantiles of their distribution.
    """
    coverage = {}
    for n in sizes:
        held = []
        for shape in shapes():
            rng, at = rng_of("bootstrap", seed, shape.name, n), shape.quantile(np.array(QUANTILES))
            for _ in range(repetitions):
                score, outcome = shape.draw(rng, n)
                curve = calibrant.reliability_curve(
                    outcome, score, method="density", n_boot=resamples, band="bootstrap", rng=rng
                )
                assert isinstance(curve, calibrant.ReliabilityCurve)
                points = [curve.at(float(s)) for s in at]
                held += [p.low <= true <= p.high for p, true in zip(points, shape.curve(at), strict=True)]
        coverage[n] = float(np.mean(held))
    return coverage


def _ratios(names: dict[str, str], seed: Sequence[Any], n: int, repetitions: int) -> dict[str, float]:
    """Divide errors of estimators by that of the first, mean of shapes."""
    mean = np.zeros(len(names))
    for shape in shapes():
        sample = draw(shape, rng_of(*seed, shape.name, n), repetitions, n)
        fits = (estimator(name).fit(sample) for name in names.values())
        mean += np.log([_p95(fit.error(), shape) for fit in fits]) / len(shapes())
    return dict(zip(names, np.exp(mean - mean[0]).tolist(), strict=True))


def dimension(
    seed: int = 0, classes: Sequence[int] = (3, 5, 7), n: int = 1000, repetitions: int = 5
) -> dict[int, dict[str, float]]:
    """Return mean absolute errors of the multiclass l1 error by number of classes, true ones known.

    By Dirichlet kernels, by the product of five bins for each class, and by the default. Scores are even on
    the simplex, and frequencies are as they say or pulled towards equal chances.
    """
    errors_by_class_count = {}
    for k in classes:
        rng, off = rng_of("dimension", seed, k), np.zeros(3)
        for pull in (0.0, 0.4):
            for _ in range(repetitions):
                p = rng.dirichlet(np.ones(k), n)
                eta = (1 - pull) * p + pull / k
                rows = Simplex.of(p, (rng.random((n, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1))
                kernels, default = (
                    each.fit(rows).error() for each in (CanonicalDirichlet(), CanonicalSoftmax())
                )
                truth = float(np.abs(eta - p).sum(axis=1).mean())
                off += np.abs(np.array([kernels, _in_cells(rows, 5), default]) - truth)
        errors_by_class_count[k] = dict(
            zip(("kernels", "bins", "default"), off / (2 * repetitions), strict=True)
        )
    return errors_by_class_count


def _in_cells(rows: Simplex, bins: int) -> float:
    """Return the l1 error of mean scores and frequencies in a product of bins."""
    place = np.minimum((rows.score * bins).astype(np.intp), bins - 1)
    _, cell = np.unique(place, axis=0, return_inverse=True)
    total = 0.0
    for k in range(rows.n_classes):
        gap = np.bincount(np.ravel(cell), rows.weight * ((rows.code == k) - rows.score[:, k]))
        total += float(np.abs(gap).sum())
    return total / rows.n


def ace(seed: int = 0, n: int = 3000, classes: int = 4, bins: int = 10) -> dict[str, float]:
    """Return |ACE - ECE_a|, class-wise, when bins hold equal counts, and when `bins` does not divide n."""
    gaps, rng = {}, rng_of("ace", seed)
    for name, rows in (("equal", n), ("unequal", n + bins // 2)):
        score = rng.dirichlet(np.ones(classes), rows).T
        outcome = rng.integers(0, classes, rows) == np.arange(classes)[:, None]
        ours = Binned("adaptive", bins).fit(Sample(score, outcome)).error().mean()
        # ACE by its definition: ranges of equal counts in each class, all counting alike.
        ranges = [np.array_split((y - s)[np.argsort(s)], bins) for s, y in zip(score, outcome, strict=True)]
        gaps[name] = float(abs(ours - np.mean([[abs(cell.mean()) for cell in cells] for cells in ranges])))
    return gaps


def cost(
    seed: int = 0, sizes: Sequence[int] = DECADES[2:], points: Sequence[int] = GRIDS, repetitions: int = 5
) -> dict[str, dict[int, float]]:
    """Return the processor time of the density by number of rows, and on 1000 rows by number of grid points.

    Under "beta" is the time of the second beta kernel on the same rows. Times are the least of the
    repetitions, on one thread: they hardly depend on what else the machine computes.
    """

    from threadpoolctl import threadpool_limits

    def seconds(n: int, *estimators: Estimator) -> list[float]:
        rng, times = rng_of("cost", seed, n), []
        for _ in range(repetitions + 1):
            sample = draw(shapes()[0], rng, n)
            marks = [process_time()]
            for timed in estimators:
                timed.fit(sample).error()
                marks.append(process_time())
            times.append(np.diff(marks))
        return list(np.min(times[1:], axis=0).tolist())

    # Threads of a linear algebra library wait for each other on busy cores, in processor time as well.
    with threadpool_limits(1):
        pairs = {n: seconds(n, Density(0.05), DensityBeta(0.01, "beta2")) for n in sizes}
        return {
            "rows": {n: density for n, (density, _) in pairs.items()},
            "points": {g: seconds(1000, Density(0.05, step=1 / g))[0] for g in points},
            "beta": {n: beta for n, (_, beta) in pairs.items()},
        }


def mass(seed: int = 0, n: int = 2000) -> dict[str, dict[float, float]]:
    """Integrate the density of U-shaped scores over [0, 1], by treatment of the walls and bandwidth.

    `calibrant` sums its own density. The others are exact: `authors` are four copies scaled by 3 in place
    of 4, `once` the scores and a reflection at each wall, `none` the scores alone.
    """
    s = (sample := draw(shapes()[1], rng_of("mass", seed), n)).score
    copies = {"authors": (s, -s, 2 - s, 2 + s), "once": (s, -s, 2 - s), "none": (s,)}
    fits = {h: Density(h).fit_shared_bandwidth(sample) for h in WIDTHS}
    integrals = {"calibrant": {h: float(fit.density.sum() * fit.share) for h, fit in fits.items()}}
    for name, parts in copies.items():
        integrals[name] = {h: _inside(np.concatenate(parts), h) / n for h in WIDTHS}
    integrals["authors"] = {h: 3 / 4 * value for h, value in integrals["authors"].items()}
    return integrals


def _inside(centre: Array, bandwidth: float) -> float:
    """Return the sum of what triweight kernels around these centres hold in [0, 1]."""
    x = np.clip((np.array([[1.0], [0.0]]) - centre) / (3 * bandwidth), -1, 1)
    upper, lower = 35 / 32 * (x - x**3 + 3 / 5 * x**5 - x**7 / 7)
    return float((upper - lower).sum())


def _cheap(tasks: Sequence[Task], n_train: int, rows: int) -> Iterator[tuple[Array, Array, Array]]:
    """Return scores, labels and posteriors of each task's own model, on rows of the study."""
    for task in tasks:
        where, rng = distribution(task.distribution), rng_of(task.name, "train")
        model = models.fit(family(task.family), *where.sample(n_train, rng), seed=int(rng.integers(2**31)))
        features, labels = where.sample(rows, rng_of(task.distribution, "study"))
        yield models.scores(model, features, where.n_classes), labels, where.posterior(features)


def _rank_correlation(one: Array, other: Array) -> float:
    """Rank correlation; 0 if one does not vary."""
    from scipy.stats import rankdata

    ranks = np.array([rankdata(one), rankdata(other)])
    return float(np.corrcoef(ranks)[0, 1]) if np.all(np.ptp(ranks, axis=1)) else 0.0


def sharpness(summary: Summary, reading: str, rows: int = 20_000, most: int = 120) -> dict[str, float]:
    """Whether Silverman's rule loses most where class scores are sharp, over the run's cheap models.

    `correlation` is that by rank of the share of class scores within .02 of 0 or 1 with Silverman's error
    over the least of the fifteen (geometric mean over sizes), with a 95 % interval from resampled
    distributions; `sharp` and `blunt` are the median error ratios of either half.
    """
    settings = summary.settings
    chosen = [i for i, model in enumerate(summary.models) if model[2] in CHEAP]
    chosen = [chosen[i] for i in np.unique(np.linspace(0, len(chosen) - 1, most).astype(int))]
    p95 = summary.values[reading]["p95"][chosen, settings.notions.index("classwise")]
    p95 = p95[:, [settings.estimators.index(name) for name in FIFTEEN]]
    lost = np.exp(np.nanmean(np.log(p95[:, FIFTEEN.index("d:silverman")] / np.nanmin(p95, axis=1)), axis=1))
    tasks = [Task(*summary.models[i]) for i in chosen]
    sharp = np.array(
        [np.mean(np.abs(model[0] - 0.5) > 0.48) for model in _cheap(tasks, settings.n_train, rows)]
    )
    again = [
        _rank_correlation(sharp[rows], lost[rows]) for rows in resampled([t.distribution for t in tasks], 400)
    ]
    low, high = np.percentile(again, (2.5, 97.5)).tolist()
    upper = sharp > np.median(sharp)
    results = {"models": len(chosen), "correlation": _rank_correlation(sharp, lost), "low": low, "high": high}
    return {**results, "sharp": float(np.median(lost[upper])), "blunt": float(np.median(lost[~upper]))}


def proper_scores(seed: int = 0, rows: int = 20_000, most: int = 108) -> dict[str, Any]:
    """Relate the Brier score and the log loss (NLL) of cheap models to their class-wise true errors.

    `crossed` is the share of pairs of models of one distribution that they order the other way; `pair` has
    calibration error and Brier score of two models whose scores s and 1 - s really mean p and 1 - p.
    """
    tasks = Settings(seeds=(seed, seed + 1), families=CHEAP).tasks()[:most]
    scores = []
    for score, label, chance in _cheap(tasks, 300, rows):
        brier = (score**2 - 2 * score * chance + chance).sum(axis=1).mean()
        nll = -(chance * np.log(np.maximum(score, 1e-15))).sum(axis=1).mean()
        scores.append((true_errors(score, label, chance, ("classwise",))["classwise"].exact, brier, nll))
    error, *others = np.array(scores).T
    where = np.array([task.distribution for task in tasks])
    one, two = np.nonzero(np.triu(where[:, None] == where, 1))
    answer: dict[str, Any] = {"models": len(tasks), "pairs": len(one)}
    for name, other in zip(("brier", "nll"), others, strict=True):
        crossed = (error[one] - error[two]) * (other[one] - other[two]) < 0
        answer[name] = {"correlation": _rank_correlation(error, other), "crossed": float(crossed.mean())}
    twins = ((0.1, 0.2), (0.4, 0.5))
    return answer | {"pair": [(abs(p - s), p * (1 - s) ** 2 + (1 - p) * s**2) for s, p in twins]}


def consistency(
    seed: int = 0, sizes: Sequence[int] = DECADES, repetitions: int = 6, names: Sequence[str] = FIFTEEN
) -> dict[str, dict[str, Any]]:
    """Return the bias of each estimator at growing sizes, on a gap that changes its sign often.

    It `vanishes` if the last is within three standard errors of 0 or a quarter below the one before.
    """
    shape = shapes()[-1]
    by_name: dict[str, dict[str, Any]] = {name: {"bias": {}} for name in names}
    for n in sizes:
        many = repetitions * min(20, max(sizes) // n)
        draws = [draw(shape, rng_of("consistency", seed, n, k), n) for k in range(many)]
        for name, result in by_name.items():
            values = np.array([float(estimator(name).fit(sample).error()) for sample in draws])
            bias, noise = float(values.mean()) - shape.truth, float(values.std() / (many - 1) ** 0.5)
            before = abs([0.0, *result["bias"].values()][-1])
            result["bias"][n], result["vanishes"] = bias, abs(bias) < max(3 * noise, 0.75 * before)
    return by_name


def studied(summary: Summary, sizes: dict[str, dict[str, Any]]) -> Iterator[Claim]:
    def run(name: str, *first: Any) -> Any:
        return globals()[name](*first, **sizes.get(name, {}))

    def listed(form: str, result: dict[int, dict[str, float]]) -> str:
        return ", ".join(f"N={n} {form.format(**entry)}" for n, entry in result.items())

    def claim(text: str, where: str, said: Any, numbers: str) -> Claim:
        if isinstance(said, dict):
            said = decide(np.array(list(said)), np.array([list(said.values())] * 2))
        return Claim(text, where, {"study": {True: HOLDS, False: FAILS}.get(said, said)}, numbers)

    yield sharp(summary, run)
    result = run("growth")
    text = "best " + ", ".join(f"N={n} {best} (√N {result['root'][n]})" for n, best in result["best"].items())
    text += f", growing as N^{result['exponent']:.2f}; √N costs up to {max(result['cost'].values()):.2f}"
    yield claim("Uniform bins: √N grows slightly too fast", "5.2", result["exponent"] < 0.5 - TIE, text)
    result = run("proper_scores")
    crossed = [100 * result[name]["crossed"] for name in ("brier", "nll")]
    text = "{:.0f} and {:.0f} % of pairs of models in the other order; ".format(*crossed)
    text += "; ".join("ECE {:.2f} with Brier score {:.2f}".format(*entry) for entry in result["pair"])
    yield claim("Brier score and NLL tell only part about calibration", "4.1", min(crossed) > 10, text)
    result = run("consistency")
    good = [name for name, entry in result.items() if entry["vanishes"]]
    last = {name: list(entry["bias"].values())[-1] for name, entry in result.items()}
    text = "last bias " + ", ".join(f"{name} {bias:+.4f}" for name, bias in last.items())
    verdict = HOLDS if len(good) == len(result) else f"holds only for {', '.join(good)}"
    yield claim("Estimators should be consistent", "4.1", verdict, text)
    result = run("ace")
    said: Any
    text, said = "difference {equal:.0e}, and {unequal:.0e} if counts differ", result["equal"] < 1e-12
    yield claim("Class-wise, ACE is ECE_a when bins hold equal counts", "4.3", said, text.format(**result))
    result = run("interpolation")
    text = "root mean square errors " + listed("{diagram:.3f} and {curve:.3f}", result)
    said = {n: entry["curve"] < (1 - TIE) * entry["diagram"] for n, entry in result.items()}
    yield claim("Interpolating a 15-bin diagram is less precise than the curve", "4.4", said, text)
    result = run("bootstrap_coverage")
    text = "coverage of 95 % intervals at a score: " + ", ".join(f"N={n} {c:.2f}" for n, c in result.items())
    said = {n: coverage >= 0.95 - TIE for n, coverage in result.items()}
    yield claim("Percentiles of bootstrapped curves are confidence intervals at a score", "4.4", said, text)
    result = run("cost")
    points = [(np.log(list(result[key])), np.log(list(result[key].values()))) for key in ("rows", "points")]
    power = [float(np.polyfit(sizes, seconds, 1)[0]) for sizes, seconds in points]
    text = ", ".join(f"N={n} {1e9 * t / n:.0f} ns a row" for n, t in result["rows"].items())
    text += "; time grows as N^{:.2f} and, of 1000 rows, as n^{:.2f}".format(*power)
    yield claim("The density costs O(N + n log n)", "4.4", HOLDS if max(power) < 1.2 else OPEN, text)
    times = {n: (seconds, seconds / result["rows"][n]) for n, seconds in result["beta"].items()}
    text = ", ".join(
        f"N={n} {1e9 * t / n:.0f} ns a row, {ratio:.1f} times the triweight"
        for n, (t, ratio) in times.items()
    )
    slow = max(ratio for _, ratio in times.values()) > PROHIBITIVE
    yield claim("The second beta kernel is computationally prohibitive", "6", slow, text)
    result = run("mass")
    text = "; ".join(f"{k} " + ", ".join(f"{v:.4f}" for v in entry.values()) for k, entry in result.items())
    said = any(abs(result[k][0.1] - 1) > 1e-6 for k in ("calibrant", "once"))
    text = f"integral with bandwidths {WIDTHS}: {text} (authors': the factor cancels)"
    yield claim("Mirroring leaks density mass, which biases slightly", "4.4", said, text)
    result = run("rules")
    text = "errors with Scott's rule and ISJ over Silverman's: " + listed("{scott:.2f} and {isj:.2f}", result)
    ahead = {n: min(entry["scott"], entry["isj"]) > 1 + TIE for n, entry in result.items()}
    yield claim(
        "Only Silverman's rule gives satisfying results on small data", "4.5", small_sizes(ahead), text
    )
    result = run("kernels")
    form = "{first:.2f} and {second:.2f} ({first, each:.2f} and {second, each:.2f})"
    text = "errors with the first and the second beta kernel (each row of mass one) over Silverman's: "
    said = {n: entry["second"] < 1 - TIE for n, entry in result.items()}
    heading = (
        "The second beta kernel is more accurate than Silverman's density on four families of known error"
    )
    yield claim(heading, OURS, said, text + listed(form, result))
    for notion, ratios in run("kernels_on_models").items():
        true = np.array([ratio < 1 - TIE for ratio in ratios.values()]).T
        text = ", ".join(f"N={n} {ratio[0]:.2f}" for n, ratio in ratios.items())
        heading = f"{title(notion)}: the second beta kernel is promising (on models of the experiment)"
        text = f"95th percentile errors over those of Silverman's density: {text}"
        yield claim(heading, "6", decide(np.array(list(ratios)), true), text)
    result = run("dimension")
    text = ", ".join(
        "C={} {kernels:.2f} and {bins:.2f} (default {default:.2f})".format(k, **each)
        for k, each in result.items()
    )
    first, *_, last = result.values()
    said = last["kernels"] / first["kernels"] < (1 - TIE) * last["bins"] / first["bins"]
    text = f"canonical errors of Dirichlet kernels and of 5 bins a class: {text}"
    yield claim("Kernels suffer less from dimension than bins (canonical)", "6", said, text)
    text = '`Calibrator("density")` is this map; `python benchmarks/maps.py` compares it with others'
    yield claim("The reliability curve can serve as a calibration map", "6", NAMED, text)
    text = "`calibrant regret --cost` and `calibrant check --max-regret` do (`tests/public/decisions`)"
    yield claim("A good metric takes cost matrices into account", "4.1", NAMED, text)


def small_sizes(ahead: dict[int, bool]) -> str:
    """Return the verdict on a claim about small samples: their sizes decide, others are told.

    >>> small_sizes({30: False, 50: False, 100: True})
    'does not hold at N in 30-50, the small sizes; holds for N in 100'
    """
    sizes, true = np.array(list(ahead)), np.array(list(ahead.values()))
    if true[sizes <= SMALL].all():
        return decide(sizes, np.array([true] * 2))
    rest = f"; holds for N in {ranges(sizes, true)}" if true.any() else ""
    return f"{FAILS} at N in {ranges(sizes, ~true & (sizes <= SMALL))}, the small sizes{rest}"


def sharp(summary: Summary, run: Callable[..., Any]) -> Claim:
    verdicts, numbers = dict.fromkeys(summary.values, OPEN), []
    cheap = {model[2] for model in summary.models} & set(CHEAP)
    for reading in summary.values if cheap and covers_all(summary, "classwise") else ():
        result = run("sharpness", summary, reading)
        verdicts[reading] = HOLDS if result["low"] > 0 else FAILS if result["high"] < 0.2 else OPEN
        text = "{correlation:.2f} [{low:.2f}, {high:.2f}], {sharp:.2f} if sharp, {blunt:.2f} if not"
        numbers.append(f"{reading} {text.format(**result)}")
    text = "Silverman's rule loses class-wise because class scores are sharp (near 0 and 1)"
    return Claim(text, "5.2", verdicts, f"rank correlation and losses: {'; '.join(numbers) or 'missing'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run of the experiment")
    parser.add_argument("--smoke", action="store_true", help="studies of seconds, of little weight")
    parser.add_argument("-o", "--out", type=Path, help="write the page here too")
    options = parser.parse_args()
    summary = Summary.of(Store(options.run))
    text = to_markdown([*claims(summary), *studied(summary, SMOKE if options.smoke else {})])
    print(text)
    if options.out is not None:
        tables = (
            f"## {heading}\n\n{table}" for heading, table in zip(HEADINGS, text.split("\n\n"), strict=True)
        )
        options.out.write_text("\n\n".join((about(summary), LEGEND, *tables)))


if __name__ == "__main__":
    main()
