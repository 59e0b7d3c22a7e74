"""Rank estimators on the scores of a model, by data sets simulated with a known true error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from calibrant import inputs
from calibrant.curves.curve import Progress
from calibrant.estimators import Estimator, resolve
from calibrant.estimators.foreign import Function
from calibrant.inference.population import CalibrationCurve, Population
from calibrant.inputs import ROUNDING, InputError, Predictions, Serializable
from calibrant.inputs.codec import Amount, Bounds, Count, Number, Probability
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import about, counted
from calibrant.parallel import one_blas_thread
from calibrant.score_data import Array, Sample
from calibrant.tasks import Notion, get_notion

#: Estimators compared by default.
DEFAULT = ("auto", "l:15", "a:15", "ac:10", "d:silverman", "debiased", "sweep", "isotonic", "beta")
# Largest number of classes that are simulated, which bounds the cost.
MOST_CLASSES = 20
# Number of scores simulated for a curve, which bounds the cost.
MAX_SCORES = 150_000
# Smallest and largest number of data sets of a curve; resamples for the standard error of a loss.
MIN_DATA_SETS, MAX_DATA_SETS, BOOTSTRAP_RESAMPLES = 30, 200, 100
# Scores and problems held in memory at once.
SCORES_AT_ONCE, PROBLEMS_AT_ONCE = 1 << 19, 200
# Errors below this share of the standard error of the mean residual count as equal.
NEGLIGIBLE_SHARE = 0.1
# Standard errors within which estimators are tied.
TIE_WIDTH = 2.0


@dataclass(frozen=True)
class EstimatorAccuracy:
    """Accuracy of one estimator on one curve.

    Attributes
    ----------
    estimator, curve, shape : str
        The name of a curve is its shape and size.
    true : float
        The true error.
    bias, sd : float
        Mean and standard deviation of estimate minus true error.
    p95, mae : float
        95th percentile and mean of the absolute difference.
    """

    estimator: str
    curve: str
    shape: str
    true: Probability
    bias: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]
    sd: Probability
    p95: Probability
    mae: Probability


@dataclass(frozen=True)
class RankedEstimator:
    """Rank of an estimator.

    Attributes
    ----------
    estimator, resolved : str
        Name as given, and the estimator that it stands for.
    loss : float
        Geometric mean over the curves of `p95`, relative to the best estimator on each curve.
    se : float
        Standard error of the loss from the simulation.
    tied : bool
        Whether the difference from the best is within two standard errors.
    """

    estimator: str
    resolved: str
    loss: Amount
    se: Amount
    tied: bool


@dataclass(frozen=True)
class Recommendation(Printed, Serializable):
    """Estimators ranked on the scores of a model.

    Attributes
    ----------
    ranking : tuple of RankedEstimator
        Best estimator first.
    table : tuple of EstimatorAccuracy
        Accuracy of every estimator on every curve.
    n : int
        Rows of each simulated data set.
    notion : str
    label : object
        Class label of the binary notion, or None.
    repetitions : int
        Simulated data sets for each curve.
    seed : int
        The same call with `rng=seed` gives the same recommendation.
    cautions : tuple of str
        Notes about simulations smaller than asked for.

    See Also
    --------
    recommend : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.6, 0.9] * 10
    >>> result = calibrant.recommend(score, estimators=["auto", "uniform:5"], repetitions=20)
    >>> len(result.ranking)
    2
    """

    _computed: ClassVar[tuple[str, ...]] = ("best",)
    ranking: tuple[RankedEstimator, ...]
    table: tuple[EstimatorAccuracy, ...]
    n: Number
    notion: str
    label: Any
    repetitions: Number
    seed: Count
    cautions: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The estimator with the smallest loss."""
        return self.ranking[0].estimator

    def _printed(self) -> Iterator[Block]:
        tied = [rank_by_loss.estimator for rank_by_loss in self.ranking[1:] if rank_by_loss.tied]
        yield "best estimator", f"{self.best} (within noise of it: {', '.join(tied)})" if tied else self.best
        yield "notion", about(self.notion, self.label)
        yield (
            "data",
            f"{counted(self.n, 'row')}, {self.repetitions} simulated data sets per curve, seed {self.seed}",
        )
        shapes = list(dict.fromkeys(row.shape for row in self.table))
        losses, errors = [], []
        for rank_by_loss in self.ranking:
            rows = [row for row in self.table if row.estimator == rank_by_loss.estimator]
            by_shape = [[row.p95 for row in rows if row.shape == shape] for shape in shapes]
            losses.append(
                [
                    rank_by_loss.estimator,
                    rank_by_loss.resolved,
                    f"{rank_by_loss.loss:.2f}",
                    f"{rank_by_loss.se:.2f}",
                ]
            )
            errors.append([rank_by_loss.estimator, *(f"{np.mean(p95):.4f}" for p95 in by_shape)])
        yield Table(["estimator", "resolved", "loss", "standard error"], losses, names=2)
        curves = len({row.curve for row in self.table})
        yield f"Loss: geometric mean over {curves} curves of the 95 % error, relative to the best estimator."
        yield "95 % error by shape of the calibration curve:"
        yield Table(["estimator", *shapes], errors, names=1)
        yield from self.cautions

    def __repr__(self) -> str:
        return f"Recommendation({self.notion}, n={self.n}, best {self.best} of {len(self.ranking)})"

    def _check_fields(self) -> None:
        """Raise an error for an empty ranking or an unknown notion."""
        get_notion(self.notion)
        if not self.ranking:
            raise InputError("ranking", "not be empty")


@one_blas_thread()
def rank_estimators(
    data: Predictions,
    notion: Notion,
    *,
    n: int | None = None,
    estimators: Any = None,
    repetitions: int | None = None,
    rng: Any = 0,
    progress: Progress | None = None,
) -> Recommendation:
    """Rank estimators on validated scores; see `calibrant.recommend`."""
    chosen = _estimators_by_name(DEFAULT if estimators is None else estimators, notion)
    rows = None if n is None else inputs.positive_int("n", n)
    population, cautions = _population(notion, data, rows)
    limits = MIN_DATA_SETS, MAX_DATA_SETS
    default_repetitions = int(np.clip(MAX_SCORES // _size(population), *limits))
    times = default_repetitions if repetitions is None else inputs.positive_int("repetitions", repetitions, 2)
    seed = inputs.seeded(rng)
    generator = np.random.default_rng(seed)
    curves = population.curves()
    value = np.empty((len(curves), len(chosen), times))
    blocks = _blocks(population, times)
    for b, block in enumerate(blocks):
        size = block.stop - block.start
        index = population.draw(generator, size)
        for c, curve in enumerate(curves):
            sample = population.sample(curve.probability, index, generator, size)
            for e, (name, estimator) in enumerate(chosen.items()):
                value[c, e, block] = _errors(estimator, sample, name, curve.name)
            if progress is not None:
                progress(b * len(curves) + c + 1, len(curves) * len(blocks))
    error = value - np.array([curve.true for curve in curves])[:, None, None]
    resolved = {name: str(estimator) for name, estimator in chosen.items()}
    return Recommendation(
        ranking=rank_by_loss(error, resolved, NEGLIGIBLE_SHARE * population.noise(), generator),
        table=tuple(accuracy_table(error, curves, list(chosen))),
        n=population.n,
        notion=notion.name,
        label=notion.label(data.labels, data.positive),
        repetitions=times,
        seed=seed,
        cautions=tuple(cautions),
    )


def _estimators_by_name(estimators: Any, notion: Notion) -> dict[str, Estimator]:
    """Return the estimators by name: the given names, or the default names of the estimators."""
    if isinstance(estimators, str) or not isinstance(estimators, Iterable):
        raise inputs.InputTypeError("estimators", "be a sequence or a mapping of estimators", estimators)
    pairs: list[tuple[Any, Any]] = (
        list(estimators.items())
        if isinstance(estimators, Mapping)
        else [(each if isinstance(each, str) else None, each) for each in estimators]
    )
    if not pairs:
        raise inputs.InputError("estimators", "not be empty")
    by_name: dict[str, Estimator] = {}
    for name, description in pairs:
        chosen = resolve(description, shared=notion.classwise)
        if not chosen.measures_ece:
            got = f"{chosen}, a different measure"
            raise inputs.InputError("estimators", "estimate the ECE", chosen, got=got)
        name = str(chosen) if name is None else str(name)
        if name in by_name:
            got = f"{name!r} twice"
            raise inputs.InputError("estimators", "have different names", name, got=got, advice="names")
        by_name[name] = chosen
    return by_name


def _population(notion: Notion, data: Predictions, n: int | None) -> tuple[Population, list[str]]:
    """Return the population, and cautions about simulations smaller than asked for."""
    classes = 2 if data.score.ndim == 1 else data.score.shape[1]
    cautions = []
    support = (0.0, 1.0)
    if not notion.classwise:
        problem = next(notion.problems(data))
        score, support = problem.score[None], problem.support
    elif data.score.ndim == 1:
        score = next(notion.problems(data)).score
    else:
        kept = np.arange(classes)
        if classes > MOST_CLASSES:
            by_mean = np.argsort(data.score.mean(axis=0, dtype=np.float64), kind="stable")
            kept = np.sort(by_mean[((np.arange(MOST_CLASSES) + 0.5) * classes / MOST_CLASSES).astype(int)])
            cautions.append(f"{MOST_CLASSES} of {classes} classes stand for all")
        score = data.score[:, kept].T
    population = Population.of(score, data.weight, counts=data.counts, n=n, classes=classes, support=support)
    wanted = n or (int(data.weight.sum()) if data.weight is not None and data.counts else len(data.score))
    if population.n < wanted:
        cautions.append(f"{wanted} rows asked for, {population.n} simulated")
    if population.count is not None:
        cautions.append(f"{population.rows} rows stand for all, each counted several times")
    return population, cautions


def _size(population: Population) -> int:
    """Return the number of scores of a data set that an estimator processes."""
    rows = population.n if population.count is None else 2 * population.rows
    return rows * len(population.score)


def _blocks(population: Population, times: int) -> list[slice]:
    """Split the repetitions into blocks that fit into memory."""
    step = max(1, min(SCORES_AT_ONCE // _size(population), PROBLEMS_AT_ONCE // len(population.score)))
    return [slice(a, min(times, a + step)) for a in range(0, times, step)]


def _errors(estimator: Estimator, sample: Sample, name: str, curve: str) -> Array:
    """Return the estimate from each data set, averaged over classes."""
    with inputs.within(f"estimator {name!r} on a {curve} data set"):
        if isinstance(estimator, Function) and sample.weight is not None and sample.counts:
            # A user function may ignore weights, so rows with counts are repeated.
            each = [estimator.fit(sample[entry].repeated()).error() for entry in np.ndindex(sample.batch)]
            errors = np.reshape(each, sample.batch)
        else:
            errors = np.asarray(estimator.fit(sample).error("l1"))
    return errors.mean(axis=-1) if errors.ndim > 1 else errors


def accuracy_table(
    error: Array, curves: Sequence[CalibrationCurve], names: Sequence[str]
) -> Iterator[EstimatorAccuracy]:
    """Yield the rows of the table, from estimates minus true errors (curves, estimators, repetitions)."""
    for c, curve in enumerate(curves):
        for e, name in enumerate(names):
            deviation = error[c, e]
            yield EstimatorAccuracy(
                name,
                curve.name,
                curve.shape,
                curve.true,
                bias=float(deviation.mean()),
                sd=float(deviation.std(ddof=1)),
                p95=float(np.quantile(np.abs(deviation), 0.95)),
                mae=float(np.abs(deviation).mean()),
            )


def rank_by_loss(
    error: Array, resolved: Mapping[str, str], least: float, rng: np.random.Generator
) -> tuple[RankedEstimator, ...]:
    """Rank estimators by loss, from estimates minus true errors (curves, estimators, repetitions).

    Percentiles below `least` are replaced by it, so that negligible differences do not change the ranking.
    """
    deviation = np.abs(error)

    def loss(sample: Array) -> Array:
        """Return the logarithm of the loss of each estimator."""
        p95 = np.log(np.maximum(np.quantile(sample, 0.95, axis=-1), least))
        return np.asarray((p95 - p95.min(axis=1, keepdims=True)).mean(axis=0))

    value, times = loss(deviation), deviation.shape[-1]
    resamples = range(BOOTSTRAP_RESAMPLES)
    resampled = np.stack([loss(deviation[..., rng.integers(0, times, times)]) for _ in resamples])
    best = int(np.argmin(value))
    se, se_difference = resampled.std(axis=0), (resampled - resampled[:, [best]]).std(axis=0)
    names = list(resolved)
    return tuple(
        RankedEstimator(
            names[e],
            resolved[names[e]],
            loss=float(np.exp(value[e])),
            se=float(np.exp(value[e]) * se[e]),
            tied=bool(value[e] - value[best] <= TIE_WIDTH * se_difference[e]),
        )
        for e in np.argsort(value, kind="stable")
    )
