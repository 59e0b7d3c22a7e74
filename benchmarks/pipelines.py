"""Accuracy and coverage of `calibrant.estimate` on trained models whose true calibration error is known.

    python benchmarks/pipelines.py                              # every cell, some 30 minutes on two cores
    python benchmarks/pipelines.py --list                       # true error, distinct scores and base rate
    python benchmarks/pipelines.py --only tree knn --sizes 1000 --reps 50
    python benchmarks/pipelines.py --json before.json           # keep all figures
    python benchmarks/pipelines.py --no-reference --compare before.json

A pipeline is a generator with known P(y = 1 | x), a scikit-learn model that is trained once on a sample of
it, and a large population of scores. A population stores eta(s) = P(y = 1 | score = s) for every score s,
outcomes are drawn with probability eta(s), and the true error is the population mean of |eta(s) - s|. For
discrete scores, eta is the mean of P(y = 1 | x) over all rows of the population with that score. For
continuous scores, eta(s) - s is constant in each of many bins of nearly equal mass. The number of bins
minimizes the squared error on held-out rows. The true error of a stored population is therefore exact.

A cell is a pipeline and a number of rows. Printed for each cell: the true error, the mean and the mean
absolute error (MAE) of the value, its ratio to the least MAE of seven reference estimators, coverage of the
95 % interval, the share of intervals below and above the true error, mean width, and the share of results
with cautions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.score_data import Array

LEVEL = 0.95
SIZES = (100, 300, 1000, 3000, 10_000)
REPETITIONS = 200
# The least number that `estimate` accepts: interval and value do not depend on the simulations of the test.
RESAMPLES = 99
REFERENCES = ("uniform:15", "ac:10", "c:10", "d:silverman", "debiased", "sweep", "isotonic")
LEAST_COVERAGE, LARGEST_RATIO, RATIO_FROM = 0.92, 1.3, 1000
# A score with at least this many rows in the population has a mean of its own. The others are treated as
# continuous if they have more distinct values than this share of their rows.
ATOM_ROWS, CONTINUOUS_SHARE = 200, 0.3
# A population with fewer distinct scores than this share of its rows is stored as scores and masses.
DISCRETE_SHARE = 0.05
BINS = (25, 50, 100, 200, 400, 800, 1600)
# Part of the cache key: increase it when the definition of a population changes.
VERSION = 1

Generator = Callable[[np.random.Generator, int], tuple[Array, Array]]
Model = Callable[[Array, Array], Callable[[Array], Array]]


# ----------------------------------------------------------------------------------------------------------
# Populations


@dataclass(frozen=True)
class Population:
    """Scores with their true frequencies.

    Parameters
    ----------
    score, eta : arrays
        Scores and P(y = 1 | score).
    mass : array, optional
        Probability of each score; None if the entries are rows with equal mass.
    """

    score: Array
    eta: Array
    mass: Array | None = None

    def _mean(self, values: Array) -> float:
        return float(np.average(values, weights=self.mass))

    @property
    def truth(self) -> float:
        """True calibration error."""
        return self._mean(np.abs(self.eta - self.score))

    @property
    def base_rate(self) -> float:
        """P(y = 1)."""
        return self._mean(self.eta)

    @property
    def n_distinct(self) -> int:
        """Number of distinct scores."""
        return np.unique(self.score).size

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Return scores and outcomes of n rows.

        Rows with equal mass are drawn without replacement, so that continuous scores have no ties.
        """
        if self.mass is None:
            rows = rng.choice(self.score.size, n, replace=False)
        else:
            rows = np.searchsorted(np.cumsum(self.mass)[:-1], rng.random(n), side="right")
        return self.score[rows], (rng.random(n) < self.eta[rows]).astype(int)


def population_of(score: Array, chance: Array) -> Population:
    """Return the population of rows with given scores and P(y = 1 | x)."""
    score = np.round(np.clip(score, 0, 1), 12)
    values, group, counts = np.unique(score, return_inverse=True, return_counts=True)
    means = np.bincount(group, chance) / counts
    eta, sparse = means[group], counts[group] < ATOM_ROWS
    if np.sum(counts < ATOM_ROWS) > CONTINUOUS_SHARE * sparse.sum():
        gap = chance[sparse] - score[sparse]
        eta[sparse] = np.clip(score[sparse] + _binned_gap(score[sparse], gap), 0, 1)
    if values.size > DISCRETE_SHARE * score.size:
        return Population(score, eta)
    return Population(values, np.bincount(group, eta) / counts, counts / score.size)


def _bin_means(score: Array, gap: Array, n_bins: int) -> tuple[Array, Array]:
    """Return inner edges of bins of nearly equal mass that split no ties, and the mean gap of each bin."""
    edges = np.unique(np.quantile(score, np.arange(1, n_bins) / n_bins))
    index = np.searchsorted(edges, score, side="right")
    counts = np.bincount(index, minlength=edges.size + 1)
    return edges, np.bincount(index, gap, edges.size + 1) / np.maximum(counts, 1)


def _binned_gap(score: Array, gap: Array) -> Array:
    """Return the mean gap in the bin of each row; the number of bins is selected on held-out rows."""
    order = rng_of("pipelines", "halves").permutation(score.size)
    fit, held_out = order[::2], order[1::2]
    losses = []
    for n_bins in BINS:
        edges, means = _bin_means(score[fit], gap[fit], n_bins)
        predicted = means[np.searchsorted(edges, score[held_out], side="right")]
        losses.append(np.mean((gap[held_out] - predicted) ** 2))
    edges, means = _bin_means(score, gap, BINS[int(np.argmin(losses))])
    return means[np.searchsorted(edges, score, side="right")]


# ----------------------------------------------------------------------------------------------------------
# Generators: features and P(y = 1 | x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def waves(rng: np.random.Generator, n: int, scale: float = 1.0, offset: float = 0.0) -> tuple[Array, Array]:
    """Six uniform features with a non-monotone effect, an interaction and a threshold."""
    x = rng.uniform(-1, 1, (n, 6))
    logit = 1.5 * np.sin(3 * x[:, 0]) + 2 * x[:, 1] * x[:, 2] + (x[:, 3] > 0.3) - 0.5
    return x, sigmoid(scale * logit + offset)


def skewed(rng: np.random.Generator, n: int, offset: float = -1.0) -> tuple[Array, Array]:
    """Log-normal, exponential and binary features, as in credit data."""
    income, debt, age = rng.lognormal(0, 0.7, n), rng.exponential(1, n), rng.uniform(20, 75, n)
    owner = (rng.random(n) < sigmoid((age - 45) / 10)).astype(float)
    logit = offset + 1.2 * np.log1p(debt) * (1.3 - owner) - 0.9 * np.log(income) + 2 * np.exp(-(age - 20) / 8)
    return np.column_stack([income, debt, age / 10, owner]), sigmoid(logit)


def correlated(rng: np.random.Generator, n: int, offset: float = 0.0) -> tuple[Array, Array]:
    """Eight Gaussian features with pairwise correlation .6 and a logistic effect."""
    x = math.sqrt(0.4) * rng.standard_normal((n, 8)) + math.sqrt(0.6) * rng.standard_normal((n, 1))
    return x, sigmoid(offset + x @ np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.0, -0.4]))


def plane(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two features and a smooth surface with two modes."""
    x = rng.standard_normal((n, 2))
    hill = 3.5 * np.exp(-((x[:, 0] - 1) ** 2) - x[:, 1] ** 2)
    return x, sigmoid(-1.5 + hill + 2.5 * np.exp(-2 * ((x + 1) ** 2).sum(axis=1)))


def categories(rng: np.random.Generator, n: int, levels: int = 200, seed: int = 0) -> tuple[Array, Array]:
    """One categorical feature with unequal frequencies."""
    own = rng_of("pipelines", "categories", levels, seed)
    share = own.pareto(1.5, levels) + 0.3
    chance = own.beta(1.5, 3.5, levels)
    code = np.searchsorted(np.cumsum(share / share.sum())[:-1], rng.random(n), side="right")
    return code[:, None].astype(float), chance[code]


def two_way(rng: np.random.Generator, n: int, shape: tuple[int, int] = (24, 12)) -> tuple[Array, Array]:
    """Two categorical features with main effects and an interaction."""
    own = rng_of("pipelines", "two-way", *shape)
    rows, columns = own.normal(0, 0.8, shape[0]), own.normal(0, 0.5, shape[1])
    logit = rows[:, None] + columns + own.normal(0, 0.5, shape) - 0.4
    a = np.minimum(rng.geometric(0.12, n) - 1, shape[0] - 1)
    b = rng.integers(0, shape[1], n)
    return np.column_stack([a, b]).astype(float), sigmoid(logit[a, b])


def selected(
    generator: Generator, ratio: Callable[[Array, Array], Array], rng: np.random.Generator, n: int
) -> tuple[Array, Array]:
    """Keep each row with the probability `ratio(x, p)`, a covariate shift."""
    features, chances, rows = [], [], 0
    while rows < n:
        x, p = generator(rng, n)
        keep = rng.random(n) < ratio(x, p)
        features.append(x[keep])
        chances.append(p[keep])
        rows += int(keep.sum())
    return np.concatenate(features)[:n], np.concatenate(chances)[:n]


def label_shift(generator: Generator, odds: float, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Multiply the prior odds by a factor and keep the distribution of the features within each class."""
    x, p = selected(generator, lambda _, p: (odds * p + 1 - p) / max(odds, 1), rng, n)
    return x, odds * p / (odds * p + 1 - p)


# ----------------------------------------------------------------------------------------------------------
# Models: from a training set to a function that scores rows


def classifier(make: Callable[[], Any]) -> Model:
    """Return the model of a scikit-learn classifier."""

    def fit(x: Array, y: Array) -> Callable[[Array], Array]:
        fitted = make().fit(x, y)
        return lambda rows: fitted.predict_proba(rows)[:, 1]

    return fit


def _ensemble(name: str, **options: Any) -> Model:
    def make() -> Any:
        from sklearn import ensemble

        return getattr(ensemble, name)(random_state=0, **options)

    return classifier(make)


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=75, min_samples_leaf=5, random_state=0)


def _knn() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(15)


def _naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1e3)


def _svm() -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return CalibratedClassifierCV(SVC(C=3.0), method="sigmoid", ensemble=False, cv=3)


def _mlp() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((32, 32), alpha=1e-5, max_iter=60, learning_rate_init=0.005, random_state=0)


def clipped_linear(x: Array, y: Array) -> Callable[[Array], Array]:
    """Least squares on the outcome, clipped to [0, 1]."""
    from sklearn.linear_model import LinearRegression

    fitted = LinearRegression().fit(x, y)
    return lambda rows: np.clip(fitted.predict(rows), 0, 1)


def lookup(x: Array, y: Array, smoothing: float = 1.0) -> Callable[[Array], Array]:
    """Frequency of each combination of categories, shrunk to the mean by some pseudo-rows."""
    radix = int(x.max()) + 1000

    def code(rows: Array) -> Array:
        return (rows @ radix ** np.arange(rows.shape[1])).astype(int)

    values, group, counts = np.unique(code(x), return_inverse=True, return_counts=True)
    mean = y.mean()
    table = (np.bincount(group, y) + smoothing * mean) / (counts + smoothing)

    def score(rows: Array) -> Array:
        codes = code(rows)
        at = np.minimum(np.searchsorted(values, codes), values.size - 1)
        return np.where(values[at] == codes, table[at], mean)

    return score


def recalibrated(
    base: Model, calibrator: Callable[[Array, Array], Callable[[Array], Array]], rows: int
) -> Model:
    """Fit the base model on all but the last rows, and a calibrator on these."""

    def fit(x: Array, y: Array) -> Callable[[Array], Array]:
        score = base(x[:-rows], y[:-rows])
        mapped = calibrator(score(x[-rows:]), y[-rows:])
        return lambda new: mapped(score(new))

    return fit


def isotonic(score: Array, y: Array) -> Callable[[Array], Array]:
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(score, y)
    return lambda new: np.round(fitted.predict(new), 12)


def histogram(score: Array, y: Array, bins: int = 10) -> Callable[[Array], Array]:
    edges = np.quantile(score, np.arange(1, bins) / bins)
    index = np.searchsorted(edges, score, side="right")
    means = np.bincount(index, y, bins) / np.bincount(index, minlength=bins)
    return lambda new: means[np.searchsorted(edges, new, side="right")]


def platt(score: Array, y: Array) -> Callable[[Array], Array]:
    def features(values: Array) -> Array:
        inner = np.clip(values, 1e-4, 1 - 1e-4)
        return np.log(inner / (1 - inner))[:, None]

    fitted = _logistic().fit(features(score), y)
    return lambda new: fitted.predict_proba(features(new))[:, 1]


def rounded(base: Model, decimals: int) -> Model:
    def fit(x: Array, y: Array) -> Callable[[Array], Array]:
        score = base(x, y)
        return lambda rows: np.round(score(rows), decimals)

    return fit


# ----------------------------------------------------------------------------------------------------------
# Pipelines


@dataclass(frozen=True)
class Pipeline:
    """A model trained on `train` rows of one generator and applied to `rows` rows of another."""

    generator: Generator
    model: Model
    train: int
    rows: int = 1_000_000
    deployed: Generator | None = None

    def population(self, name: str, scale: float = 1.0) -> Population:
        rng = rng_of("pipelines", name, VERSION)
        x, p = self.generator(rng, self.train)
        y = (rng.random(self.train) < p).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence of deliberately short fits
            score = self.model(x, y)
        x, p = (self.deployed or self.generator)(rng, max(1000, round(scale * self.rows)))
        return population_of(np.concatenate([score(x[k : k + 50_000]) for k in range(0, len(x), 50_000)]), p)


@dataclass(frozen=True)
class Mixed:
    """Equal numbers of rows of two pipelines."""

    first: str
    second: str
    rows: int = 1_000_000

    def population(self, name: str, scale: float = 1.0) -> Population:
        rng, parts = rng_of("pipelines", name, VERSION), []
        for source in (PIPELINES[self.first], PIPELINES[self.second]):
            whole = source.population(name, scale)
            n = round(scale * self.rows / 2)
            replace = whole.mass is not None
            rows = rng.choice(whole.score.size, n, replace=replace, p=whole.mass)
            parts.append((whole.score[rows], whole.eta[rows]))
        score, eta = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        # A score that both parts share has one frequency, the mean over its rows.
        _, group, counts = np.unique(score, return_inverse=True, return_counts=True)
        return Population(score, (np.bincount(group, eta) / counts)[group])


@dataclass(frozen=True)
class Levels:
    """Equally frequent scores with independent normal gaps."""

    n_levels: int
    sd: float

    def population(self, name: str, scale: float = 1.0) -> Population:
        score = (np.arange(self.n_levels) + 0.5) / self.n_levels
        gap = self.sd * rng_of("pipelines", "levels", self.n_levels, name.partition("@")[2]).standard_normal(
            self.n_levels
        )
        return Population(score, np.clip(score + gap, 0, 1), np.full(self.n_levels, 1 / self.n_levels))


@dataclass(frozen=True)
class Calibrated:
    """Scores equal to P(y = 1 | x)."""

    generator: Generator
    rows: int = 1_000_000

    def population(self, name: str, scale: float = 1.0) -> Population:
        _, p = self.generator(rng_of("pipelines", name, VERSION), round(scale * self.rows))
        values, counts = np.unique(np.round(p, 12), return_counts=True)
        if values.size <= DISCRETE_SHARE * p.size:
            return Population(values, values, counts / p.size)
        return Population(p, p)


boosting_12 = _ensemble("GradientBoostingClassifier", n_estimators=12, max_depth=3, learning_rate=0.4)
boosting_stumps = _ensemble("GradientBoostingClassifier", n_estimators=12, max_depth=1, learning_rate=1.0)
boosting_200 = _ensemble("GradientBoostingClassifier", n_estimators=200, max_depth=3, learning_rate=0.1)
hist_boosting = _ensemble("HistGradientBoostingClassifier", max_iter=80)
rare_boosting = _ensemble("GradientBoostingClassifier", n_estimators=60, max_depth=2, min_samples_leaf=20)
logistic = classifier(_logistic)
# Half as many positives when the model was trained, so that its scores are too low.
earlier_waves, rare_waves = (partial(waves, scale=0.8, offset=offset) for offset in (-6.4, -5.7))
rare_correlated = partial(correlated, offset=-5.9)

PIPELINES: dict[str, Pipeline | Mixed | Levels | Calibrated] = {
    "tree": Pipeline(waves, classifier(_tree), 2500),
    "boosting-12": Pipeline(waves, boosting_12, 800),
    "boosting-stumps": Pipeline(waves, boosting_stumps, 500),
    "boosting-200": Pipeline(waves, boosting_200, 1500, 500_000),
    "hist-boosting": Pipeline(skewed, hist_boosting, 1500, 500_000),
    "forest-20": Pipeline(skewed, _ensemble("RandomForestClassifier", n_estimators=20), 1500, 400_000),
    "forest-300": Pipeline(
        waves, _ensemble("RandomForestClassifier", n_estimators=300, min_samples_leaf=3), 1000, 200_000
    ),
    "knn": Pipeline(plane, classifier(_knn), 1000, 300_000),
    "naive-bayes": Pipeline(correlated, classifier(_naive_bayes), 1000),
    "svm-platt": Pipeline(plane, classifier(_svm), 800, 300_000),
    "target-encoding": Pipeline(categories, lookup, 3000),
    "two-way-lookup": Pipeline(two_way, partial(lookup, smoothing=2.0), 2500),
    "isotonic": Pipeline(waves, recalibrated(logistic, isotonic, 500), 1500),
    "histogram": Pipeline(skewed, recalibrated(boosting_200, histogram, 500), 1500, 500_000),
    "rounded": Pipeline(skewed, rounded(boosting_200, 2), 1500, 500_000),
    "clipped-linear": Pipeline(partial(correlated, offset=-1.2), clipped_linear, 1000),
    "logistic": Pipeline(correlated, logistic, 2000),
    "logistic-misspecified": Pipeline(skewed, logistic, 2000),
    "mixture": Mixed("tree", "naive-bayes"),
    "rare-boosting": Pipeline(earlier_waves, rare_boosting, 20_000, 500_000, rare_waves),
    "rare-logistic": Pipeline(
        partial(label_shift, rare_correlated, 4.0), logistic, 3000, 1_000_000, rare_correlated
    ),
    "label-shift": Pipeline(skewed, logistic, 2000, 1_000_000, partial(label_shift, skewed, 0.6)),
    "covariate-shift": Pipeline(
        partial(selected, plane, lambda x, _: sigmoid(-2 * x[:, 0])), logistic, 1500, 1_000_000, plane
    ),
    "mlp": Pipeline(waves, classifier(_mlp), 1000),
    "boosting-platt": Pipeline(waves, recalibrated(boosting_200, platt, 400), 1200, 500_000),
    "calibrated-lookup": Calibrated(partial(categories, levels=100, seed=1)),
    "calibrated-continuous": Calibrated(waves),
} | {
    f"{kind}-{k}": Levels(k, sd)
    for kind, sd in (("levels", 0.07), ("calibrated-levels", 0.0))
    for k in (16, 30, 34, 60, 120, 500)
}  # fmt: skip


@lru_cache(maxsize=2)
def population(name: str, cache: str | None = None, scale: float = 1.0) -> Population:
    """Return the population of a pipeline, from the cache where it is stored there."""
    pipeline = PIPELINES[name.partition("@")[0]]
    if cache is None:
        return pipeline.population(name, scale)
    file = Path(cache) / f"{name}-{VERSION}-{scale:g}.npz"
    if not file.exists():
        made = pipeline.population(name, scale)
        columns = {"score": made.score, "eta": made.eta}
        file.parent.mkdir(parents=True, exist_ok=True)
        partial_file = file.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial_file, **(columns if made.mass is None else columns | {"mass": made.mass}))
        partial_file.replace(file)
    with np.load(file) as stored:
        return Population(*(stored[key] for key in ("score", "eta", "mass") if key in stored))


# ----------------------------------------------------------------------------------------------------------
# Cells


class Cell(NamedTuple):
    name: str
    n: int
    repetitions: int
    intervals: bool = True
    reference: bool = True
    resamples: int = RESAMPLES
    cache: str | None = None
    scale: float = 1.0


def one_cell(cell: Cell) -> dict[str, Any]:
    """Return all figures of a cell. The samples depend on its pipeline and size only."""
    source = population(cell.name, cell.cache, cell.scale)
    truth, rng, started = source.truth, rng_of("pipelines", cell.name, cell.n), time.perf_counter()
    values, ends, cautions = [], [], []
    references: dict[str, list[float]] = {name: [] for name in (REFERENCES if cell.reference else ())}
    for k in range(cell.repetitions):
        score, y = source.draw(rng, cell.n)
        if cell.intervals:
            result = calibrant.estimate(
                y, score, level=LEVEL, rng=k, n_resamples=cell.resamples, labels=(0, 1)
            )
            values.append(result.value)
            ends.append((result.low, result.high))
            cautions.append(bool(result.cautions))
        else:
            values.append(calibrant.ece(y, score, labels=(0, 1)))
        for name, errors in references.items():
            errors.append(abs(calibrant.ece(y, score, estimator=name, labels=(0, 1)) - truth))
    value = np.array(values)
    found: dict[str, Any] = {
        "name": cell.name,
        "n": cell.n,
        "repetitions": cell.repetitions,
        "truth": truth,
        "value": float(value.mean()),
        "bias": float(value.mean() - truth),
        "mae": float(np.abs(value - truth).mean()),
        "reference_mae": {name: float(np.mean(errors)) for name, errors in references.items()},
    }
    if cell.intervals:
        low, high = np.array(ends).T
        found |= {
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "misses_below": float(np.mean(high < truth)),
            "misses_above": float(np.mean(low > truth)),
            "width": float(np.mean(high - low)),
            "cautions": float(np.mean(cautions)),
        }
    return found | {"seconds": time.perf_counter() - started}


def with_ratio(found: dict[str, Any], earlier: dict[str, Any] | None = None) -> dict[str, Any]:
    """Add the best reference estimator, from an earlier run of the same samples if it is missing."""
    if not found["reference_mae"] and earlier and same_samples(found, earlier):
        found = found | {"reference_mae": earlier["reference_mae"]}
    references = found["reference_mae"]
    if not references:
        return found
    best = min(references, key=references.get)
    # An error of exactly 0 occurs for calibrated pipelines; the ratio needs a positive denominator.
    return found | {"best": best, "ratio": max(found["mae"], 1e-12) / max(references[best], 1e-12)}


def same_samples(found: dict[str, Any], earlier: dict[str, Any]) -> bool:
    return found["repetitions"] == earlier["repetitions"] and math.isclose(found["truth"], earlier["truth"])


# ----------------------------------------------------------------------------------------------------------
# Output

HEADER = (
    f"{'pipeline':22} {'n':>6} {'truth':>6} {'value':>6} {'MAE':>6} {'ratio':>6} {'best':12} "
    f"{'cover':>6} {'below':>6} {'above':>6} {'width':>6} {'caut.':>6}"
)


def row(found: dict[str, Any], earlier: dict[str, Any] | None = None) -> str:
    """Return the printed row of a cell."""

    def show(key: str, digits: int) -> str:
        return f"{found[key]:6.{digits}f}" if key in found else f"{'-':>6}"

    text = (
        f"{found['name']:22} {found['n']:6} {show('truth', 4)} {show('value', 4)} {show('mae', 4)} "
        f"{show('ratio', 2)} {found.get('best', '-'):12} {show('coverage', 3)} {show('misses_below', 3)} "
        f"{show('misses_above', 3)} {show('width', 4)} {show('cautions', 2)}"
    )
    for key in ("width", "mae"):
        if earlier and key in found and earlier.get(key):
            text += f"  {key} x {found[key] / earlier[key]:.3f}"
    return text


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def summary(cells: Sequence[dict[str, Any]], earlier: dict[str, dict[str, Any]]) -> list[str]:
    """Return coverage and cautions for each size, the short cells, and the ratios of MAE."""
    lines = []
    measured = [found for found in cells if "coverage" in found]
    if measured:
        lines += ["| n | cells with error > 0 | coverage | least | mean width | cautions "
                  "| coverage of calibrated | width of calibrated |", "|---" * 8 + "|"]  # fmt: skip
        for n in sorted({found["n"] for found in measured}):
            at = [found for found in measured if found["n"] == n]
            wrong, right = ([f for f in at if (f["truth"] > 0) == positive] for positive in (True, False))
            lines.append(
                f"| {n} | {len(wrong)} | {mean(wrong, 'coverage'):.3f} "
                f"| {min((f['coverage'] for f in wrong), default=math.nan):.3f} | {mean(wrong, 'width'):.4f} "
                f"| {mean(at, 'cautions'):.3f} | {mean(right, 'coverage'):.3f} | {mean(right, 'width'):.4f} |"
            )
        short = [found for found in measured if found["coverage"] < LEAST_COVERAGE]
        lines += ["", f"coverage below {LEAST_COVERAGE}: {len(short)} of {len(measured)} cells"]
        lines += [
            f"  {found['name']} n={found['n']}: {found['coverage']:.3f}, below {found['misses_below']:.3f}, "
            f"above {found['misses_above']:.3f}, cautions {found['cautions']:.2f}"
            for found in sorted(short, key=lambda found: found["coverage"])
        ]
    rated = [f for f in cells if "ratio" in f and f["n"] >= RATIO_FROM and f["truth"] > 0]
    if rated:
        large = sorted((f for f in rated if f["ratio"] > LARGEST_RATIO), key=lambda f: -f["ratio"])
        lines += [
            "",
            f"MAE over the best reference estimator of each cell, n >= {RATIO_FROM}, error > 0: "
            f"geometric mean {geometric_mean(found['ratio'] for found in rated):.3f}, "
            f"{len(large)} of {len(rated)} cells "
            f"above {LARGEST_RATIO}",
        ]
        lines += [
            f"  {f['name']} n={f['n']}: {f['ratio']:.2f} ({f['best']}), bias {f['bias']:+.4f}" for f in large
        ]
        for name in REFERENCES:
            of_name = geometric_mean(f["reference_mae"][name] / f["reference_mae"][f["best"]] for f in rated)
            lines.append(f"  {name:12} {of_name:.3f}")
    paired = [(found, earlier[key(found)]) for found in cells if key(found) in earlier]
    for figure in ("width", "mae"):
        ratios = [f[figure] / e[figure] for f, e in paired if f.get(figure) and e.get(figure)]
        if ratios:
            lines.append(
                f"{figure} over the earlier run: geometric mean {geometric_mean(ratios):.3f}, "
                f"least {min(ratios):.3f}, most {max(ratios):.3f}, {len(ratios)} cells"
            )
    return lines


def mean(cells: Sequence[dict[str, Any]], figure: str) -> float:
    return sum(found[figure] for found in cells) / len(cells) if cells else math.nan


def key(found: dict[str, Any]) -> str:
    return f"{found['name']} {found['n']}"


def describe(names: Iterable[str], cache: str, scale: float) -> Iterable[str]:
    """Yield the true error, the number of distinct scores and the base rate of each pipeline."""
    yield f"{'pipeline':22} {'truth':>8} {'distinct':>9} {'base rate':>9} {'seconds':>8}"
    for name in names:
        started = time.perf_counter()
        source = population(name, cache, scale)
        yield (
            f"{name:22} {source.truth:8.5f} {source.n_distinct:9} {source.base_rate:9.4f} "
            f"{time.perf_counter() - started:8.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=PIPELINES, help="pipelines")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="numbers of rows")
    parser.add_argument("--reps", type=int, default=REPETITIONS, help="samples of each cell")
    parser.add_argument("--values-only", action="store_true", help="skip intervals")
    parser.add_argument("--no-reference", action="store_true", help="skip the reference estimators")
    parser.add_argument("--resamples", type=int, default=RESAMPLES, help="simulated data sets of the test")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--compare", metavar="FILE", help="figures of an earlier run")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--cache", metavar="DIR", help="folder of the populations")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the population sizes")
    parser.add_argument("--training-seed", type=int, default=0, help="train other models of the same kinds")
    parser.add_argument("--list", action="store_true", help="describe the pipelines and stop")
    asked = parser.parse_args()
    names = asked.only or list(PIPELINES)
    if asked.training_seed:
        names = [f"{name}@{asked.training_seed}" for name in names]
    cache = asked.cache or str(Path(tempfile.gettempdir()) / "calibrant-pipelines")
    if asked.list:
        for line in describe(names, cache, asked.scale):
            print(line, flush=True)
        return
    started = time.perf_counter()
    earlier = json.loads(Path(asked.compare).read_text())["cells"] if asked.compare else {}
    settings = (
        asked.reps, not asked.values_only, not asked.no_reference, asked.resamples, cache, asked.scale
    )  # fmt: skip
    tasks = [
        Cell(name, n, *settings)
        for name in names
        for n in asked.sizes
    ]  # fmt: skip
    cells = []
    print(f"{asked.reps} samples of each cell", HEADER, sep="\n", flush=True)
    with ProcessPoolExecutor(asked.jobs) as pool:
        for found in pool.map(one_cell, tasks):
            before = earlier.get(key(found))
            cells.append(with_ratio(found, before))
            print(row(cells[-1], before), flush=True)
            if asked.json:
                figures = {"version": VERSION, "cells": {key(each): each for each in cells}}
                Path(asked.json).write_text(json.dumps(figures, indent=1) + "\n")
    print("", *summary(cells, earlier), f"{time.perf_counter() - started:.0f} s", sep="\n")


if __name__ == "__main__":
    main()
