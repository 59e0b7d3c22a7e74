"""Which estimator to trust on given scores: every one measured where the true error is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from numbers import Integral
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.curves.curve import Progress
from calibrant.estimators import Estimator, Function, resolve
from calibrant.evidence import Array, Sample
from calibrant.inference.estimate import seeded
from calibrant.inference.population import Curve, Population
from calibrant.inference.ranking import Recommendation, measured, ranked
from calibrant.questions import notions
from calibrant.questions.notions import named

#: What is compared unless the caller says otherwise.
DEFAULT = ("auto", "l:15", "a:15", "ac:10", "d:silverman", "debiased", "sweep", "isotonic", "beta")
# Classes that stand for all.
MOST_CLASSES = 20
# Data sets for each curve, by the scores simulated in all; and scores and problems held at a time.
REPETITIONS, FEWEST, WORK, BLOCK, PROBLEMS = 200, 30, 150_000, 1 << 19, 200
# Errors below this share of the standard error of the mean gap are as good as none.
AS_GOOD_AS_NONE = 0.1


@inputs.helpful
def recommend(
    y_prob: Any,
    *,
    n: int | None = None,
    notion: str | None = None,
    estimators: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    repetitions: int | None = None,
    rng: Any = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Estimators ranked on your own scores, no labels needed; for a matrix, on its confidence.

    Outcomes are drawn from plausible calibration curves on the given scores: a calibrated one, and
    overconfident, underconfident, shifted and wavy ones with true errors of .02, .05 and .1 (times
    2 / classes for the class-wise notion) where these can be reached. The true error is known then,
    and every estimator is held against it on the same data sets.

    Estimators are ranked by their loss: the 95th percentile of |estimate - true error|, relative to
    the best estimator on the same curve, in the geometric mean over the curves. Percentiles below a
    tenth of the standard error of the mean gap count as that tenth.

    Parameters
    ----------
    y_prob : array of shape (N,) or (N, C)
        Scores of the positive class, or of every class.
    n : int, optional
        Number of rows that estimators will see; by default as many as there are. Fewer are drawn
        without replacement, more with.
    notion, labels, pos_label
        As for `ece`.
    estimators : sequence or mapping, optional
        Names, values or functions f(scores, outcomes, weights), or a mapping from names of your own
        to these.
    sample_weight : array of shape (N,), optional
        Integers are counts and mean repetition; floats are importance weights.
    repetitions : int, optional
        Data sets simulated for each curve; by default 200, and fewer, down to 30, for many rows.
    rng : int or numpy.random.Generator, optional
        Seed; the recommendation records the one it used.
    progress : callable, optional
        Called as progress(done, total).

    Returns
    -------
    Recommendation

    Examples
    --------
    >>> import calibrant
    >>> score = np.random.default_rng(0).beta(0.5, 0.5, 300)
    >>> found = calibrant.recommend(score, estimators=["auto", "l:15"], repetitions=50, rng=0)
    >>> found.best
    'auto'
    >>> biased = [row for row in found.table if row.estimator == "l:15" and row.curve == "calibrated"]
    >>> bool(biased[0].bias > 0.03)
    True
    """
    data = _checked(y_prob, sample_weight, labels, pos_label)
    which = notions.usual(notion, vector=data.score.ndim == 1)
    chosen = _named(DEFAULT if estimators is None else estimators, which.name)
    asked = None if n is None else inputs.positive_int("n", n)
    population, notes = _population(which, data, asked)
    usual = int(np.clip(WORK // _size(population), FEWEST, REPETITIONS))
    times = usual if repetitions is None else inputs.positive_int("repetitions", repetitions, 2)
    seed = seeded(rng)
    generator = np.random.default_rng(seed)
    curves = population.curves()
    value = np.empty((len(curves), len(chosen), times))
    parts = _parts(population, times)
    for done, (c, part, sample) in enumerate(_data_sets(population, curves, generator, parts), 1):
        for e, (name, estimator) in enumerate(chosen.items()):
            value[c, e, part] = _errors(estimator, sample, name, curves[c].name)
        if progress is not None:
            progress(done, len(curves) * len(parts))
    error = value - np.array([curve.true for curve in curves])[:, None, None]
    resolved = {name: str(estimator) for name, estimator in chosen.items()}
    return Recommendation(
        ranking=ranked(error, resolved, AS_GOOD_AS_NONE * population.noise(), generator),
        table=tuple(measured(error, curves, list(chosen))),
        n=population.n,
        notion=which.name,
        label=None if which.name != "class" or data.positive is None else data.labels[data.positive],
        repetitions=times,
        seed=seed,
        notes=tuple(notes),
    )


def _checked(y_prob: Any, sample_weight: Any, labels: Any, pos_label: Any) -> inputs.Predictions:
    """Check scores that come without outcomes, as if every row were of one class that it may be of."""
    score = inputs.read("y_prob", y_prob)[0]
    if len(score) == 0:
        raise ValueError("y_prob must not be empty, got 0 rows")
    if sample_weight is not None:
        found = len(inputs.read("sample_weight", sample_weight)[0])
        if found != len(score):
            raise ValueError(
                f"sample_weight must be as long as y_prob, got {found} weights for {len(score)} rows"
            )
    names = getattr(y_prob, "column_names", getattr(y_prob, "columns", None))
    if labels is None and names is not None and not (_whole(pos_label) and pos_label not in list(names)):
        labels = names  # whole numbers that name no column are places of columns
    if isinstance(labels, Iterable) and not isinstance(labels, str | bytes | Set):
        labels = list(labels)
    some = pos_label if score.ndim == 1 else 0
    if isinstance(labels, list):
        some = labels[0] if labels else 0
        if score.ndim == 1 and pos_label is None and any(label not in (-1, 0, 1) for label in labels):
            raise ValueError(f"labels of a vector of scores need pos_label, one of {labels}")
    fine = isinstance(some, Hashable) and some is not None and some == some
    truth = np.zeros(len(score), dtype=np.int64)
    if fine and not _whole(some):
        truth = np.empty(len(score), dtype=object)
        truth.fill(some)
    elif fine:
        truth[:] = some
    return inputs.predictions(truth, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _named(estimators: Any, notion: str) -> dict[str, Estimator]:
    """The estimators by name: the text that was given, or what they call themselves."""
    if isinstance(estimators, str) or not isinstance(estimators, Iterable):
        raise TypeError(f"estimators must be a sequence or a mapping of estimators, got {estimators!r}")
    pairs: list[tuple[Any, Any]] = (
        list(estimators.items())
        if isinstance(estimators, Mapping)
        else [(one if isinstance(one, str) else None, one) for one in estimators]
    )
    if not pairs:
        raise ValueError("estimators must not be empty")
    found: dict[str, Estimator] = {}
    for name, one in pairs:
        chosen = resolve(one, shared=named(notion).several)
        if not chosen.measures_ece:
            raise ValueError(
                f"estimators must estimate the ECE, got {chosen}: {chosen} is a measure of its own"
            )
        name = str(chosen) if name is None else str(name)
        if name in found:
            raise ValueError(f"estimators must have different names, got {name!r} twice; pass a mapping")
        found[name] = chosen
    return found


def _population(
    notion: notions.Notion, data: inputs.Predictions, n: int | None
) -> tuple[Population, list[str]]:
    """What data sets are drawn from, and what had to be made smaller for it."""
    classes = 2 if data.score.ndim == 1 else data.score.shape[1]
    notes = []
    support = (0.0, 1.0)
    if notion.name != "classwise":
        problem = next(notion.problems(data))
        score, support = problem.score[None], problem.support
    elif data.score.ndim == 1:
        score = next(notion.problems(data)).score
    else:
        kept = np.arange(classes)
        if classes > MOST_CLASSES:
            by_mean = np.argsort(data.score.mean(axis=0, dtype=np.float64), kind="stable")
            kept = np.sort(by_mean[((np.arange(MOST_CLASSES) + 0.5) * classes / MOST_CLASSES).astype(int)])
            notes.append(f"{MOST_CLASSES} of {classes} classes stand for all")
        score = data.score[:, kept].T
    population = Population.of(score, data.weight, n=n, classes=classes, support=support)
    counts = data.weight is not None and data.weight.dtype.kind != "f"
    wanted = n or (int(data.weight.sum()) if data.weight is not None and counts else len(data.score))
    if population.n < wanted:
        notes.append(f"{wanted} rows asked for, {population.n} simulated")
    if population.count is not None:
        notes.append(f"{population.rows} rows stand for all, each counted several times")
    return population, notes


def _size(population: Population) -> int:
    """Scores of one data set, as an estimator meets them."""
    rows = population.n if population.count is None else 2 * population.rows
    return rows * len(population.score)


def _parts(population: Population, times: int) -> list[slice]:
    """The repetitions in blocks that fit into memory."""
    step = max(1, min(BLOCK // _size(population), PROBLEMS // len(population.score)))
    return [slice(a, min(times, a + step)) for a in range(0, times, step)]


def _data_sets(
    population: Population, curves: Sequence[Curve], rng: np.random.Generator, parts: Sequence[slice]
) -> Iterator[tuple[int, slice, Sample]]:
    """Blocks of data sets: which curve they follow and which repetitions they are."""
    for part in parts:
        size = part.stop - part.start
        index = population.draw(rng, size)
        for c, curve in enumerate(curves):
            yield c, part, population.sample(curve.chance, index, rng, size)


def _errors(estimator: Estimator, sample: Sample, name: str, curve: str) -> Array:
    """The estimate for each data set, over the classes where there are several."""
    if isinstance(estimator, Function) and sample.weight is not None and sample.counts:
        # A function may leave its weights alone, and as many rows as there are is what it will see.
        parts = [estimator.fit(_repeated(sample[entry])).error() for entry in np.ndindex(sample.batch)]
        found = np.reshape(parts, sample.batch)
    else:
        found = np.asarray(estimator.fit(sample).error("l1"))
    if not np.isfinite(found).all():
        raise ValueError(
            f"estimator {name!r} returned {found[~np.isfinite(found)][0]} for a {curve} data set"
        )
    return found.mean(axis=-1) if found.ndim > 1 else found


def _repeated(sample: Sample) -> Sample:
    score, outcome = (np.repeat(part, sample.weight) for part in (sample.score, sample.outcome))  # type: ignore[arg-type]
    return Sample(score, outcome, None, sample.support)
