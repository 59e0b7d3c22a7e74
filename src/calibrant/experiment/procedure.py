"""The paper's procedure: how far each estimator is from the truth, model by model.

A task is one trained model. It is seeded by its own identity, so a result depends neither on the
order of the tasks nor on who computes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any, ClassVar

import numpy as np

from calibrant import inputs, published
from calibrant.estimators import FIFTEEN, Estimator, resolve
from calibrant.estimators.density import Density
from calibrant.estimators.density_beta import DensityBeta
from calibrant.experiment import models
from calibrant.experiment.distributions import Distribution, Mixture, rng_of
from calibrant.experiment.truth import Truth, truth
from calibrant.inputs import Predictions, Serializable
from calibrant.score_data import Array, Sample
from calibrant.tasks import notions

NOTIONS = ("confidence", "classwise")
READINGS = ("published", "corrected")
STATISTICS = ("p95", "mean", "bias", "sd", "p95_other", "failed")
#: What a run measures unless told otherwise: the paper's fifteen, and calibrant's default beside them.
ESTIMATORS = (*FIFTEEN, "auto")
#: The sizes of the authors' code, which truncates 29.99... to 29; eleven of them reach to 500.
SIZES = tuple(int(n) for n in np.logspace(np.log10(30), np.log10(5000), 20))
#: Those eleven and the ends of the paper's axis, 30 and 500.
TO_500 = tuple(sorted({*SIZES[:11], 30, 500}))
#: Estimates of each cell that a result keeps, to compare models with each other.
KEPT = 10
# A coarser grid than the default changes a density estimate by less than 1e-4 at these sizes.
STEP = 1 / 1024
# So do fewer points for beta kernels.
PLACES = 8.0
# Rows evaluated together: enough to spread the overhead, few enough for the cache. The memory of
# the grid of a density estimate corresponds to at least GRID rows.
TOGETHER, GRID = 1 << 17, 512


@dataclass(frozen=True)
class Settings(Serializable):
    """What a run computes; two runs with equal settings give equal numbers.

    Attributes
    ----------
    classes, features, seeds : tuple of int
        Numbers of classes and of features, and seeds of the mixtures.
    low : float
        Lowest log10 of the variances of the mixtures.
    distributions : tuple of str
        Import paths of distributions of your own, in place of the mixtures.
    families : tuple of str
        Families of models.
    train_sets, n_train, n_holdout : int
        Training sets of each distribution, their rows, and the rows that the truth is computed from.
    sizes : tuple of int
        Numbers of rows of the evaluation samples.
    repetitions : int
        Samples of each size.
    estimators, notions, readings : tuple of str
        What is computed.

    See Also
    --------
    PRESETS : Settings by name.
    run : Computes all tasks of settings.

    Examples
    --------
    >>> from calibrant import experiment
    >>> len(experiment.PRESETS["smoke"].tasks()) < len(experiment.PRESETS["paper"].tasks())
    True
    """

    _has_schema: ClassVar[bool] = False  # the manifest of a run has a version
    classes: tuple[int, ...] = (2, 5, 7)
    features: tuple[int, ...] = (2, 5, 7)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    low: float = -1.0
    distributions: tuple[str, ...] = ()
    families: tuple[str, ...] = tuple(models.FAMILIES)
    train_sets: int = 3
    n_train: int = 300
    n_holdout: int = 2_000_000
    sizes: tuple[int, ...] = TO_500
    repetitions: int = 200
    estimators: tuple[str, ...] = ESTIMATORS
    notions: tuple[str, ...] = NOTIONS
    readings: tuple[str, ...] = READINGS

    def __post_init__(self) -> None:
        for name in ("train_sets", "n_train", "n_holdout", "repetitions"):
            inputs.positive_int(name, getattr(self, name))
        for name, options in (("notions", NOTIONS), ("readings", READINGS)):
            for value in getattr(self, name):
                inputs.check_choice(name, value, options)
        for name in self.families:
            family(name)
        for name in self.estimators:
            estimator(name)
        for name in self.distributions:
            distribution(name)
        if not self.sizes or min(self.sizes) < 1 or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"sizes must be positive and increase, got {self.sizes}")

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """Shape of a task's statistics: reading, notion, estimator, size, statistic."""
        parts = (self.readings, self.notions, self.estimators, self.sizes, STATISTICS)
        a, b, c, d, e = map(len, parts)
        return a, b, c, d, e

    def tasks(self) -> list[Task]:
        """Return every model of the run; those of one distribution follow each other."""
        drawn = [
            Mixture(c, d, seed, low=self.low).name
            for c in self.classes
            for d in self.features
            for seed in self.seeds
        ]
        return [
            Task(name, train, which)
            for name in (*drawn, *self.distributions)
            for train in range(self.train_sets)
            for which in self.families
        ]


@dataclass(frozen=True, order=True)
class Task:
    """One trained model.

    Attributes
    ----------
    distribution : str
        Identity of the distribution.
    train_set : int
        Number of the training set.
    family : str
        Family of the model.

    See Also
    --------
    Settings : Its method `tasks` lists all tasks.

    Examples
    --------
    >>> from calibrant import experiment
    >>> experiment.PRESETS["paper"].tasks()[0].family in experiment.FAMILIES
    True
    """

    distribution: str
    train_set: int
    family: str

    @property
    def name(self) -> str:
        """Identity, which also names its result file."""
        return f"{self.distribution}-t{self.train_set}-{self.family}"


@dataclass(frozen=True, eq=False)
class Result:
    """Statistics of one task: an axis each for reading, notion, estimator, size and statistic.

    Attributes
    ----------
    task : Task
        The model.
    truth : dict of Truth
        True errors by notion.
    statistics : array
        Statistics of the errors.
    failures : list of str
        Messages of estimators that failed.
    estimates : array
        Estimates of the first samples, which take the place of the statistics on the last axis.

    See Also
    --------
    compute : Returns this result.

    Examples
    --------
    >>> from calibrant import experiment
    >>> settings = experiment.PRESETS["smoke"]
    >>> result = experiment.compute(settings.tasks()[0], settings)
    >>> sorted(result.truth)
    ['classwise', 'confidence']
    """

    task: Task
    truth: dict[str, Truth]
    statistics: Array
    failures: list[str]
    estimates: Array


class CannotImport(ValueError):
    """An estimator, family or distribution of the user is not there or cannot be used."""


def import_object(path: str) -> Any:
    """Return what "package.module.attribute" stands for."""
    module, _, attribute = path.rpartition(".")
    try:
        value = getattr(import_module(module), attribute)
    except Exception as error:  # a module that is being written can fail in any way
        raise CannotImport(f"cannot import {path!r}: {type(error).__name__}: {error}") from None
    return value


def title(notion: str) -> str:
    """Return what a notion is called at the start of a line.

    >>> title("classwise")
    'Class-wise'
    """
    return notions.get_notion(notion).reading.title.capitalize()


def estimator(name: str, notion: str | None = None) -> Estimator:
    """Return an estimator by registry name, or as "package.module.MyEstimator": a value, class or function.

    The notion matters to "auto" alone.
    """
    if "." in name.partition(":")[0]:
        value = instance_of(name)
        if not (hasattr(value, "fit") or callable(value)):
            raise CannotImport(f"{name!r} has no method fit(data) and is no function, got {value!r}")
        return resolve(value)
    shared = notion is not None and notions.get_notion(notion).classwise
    known = resolve(name, shared=shared)
    if isinstance(known, Density):
        return replace(known, step=STEP)
    return replace(known, places=PLACES) if isinstance(known, DensityBeta) else known


def instance_of(path: str) -> Any:
    """Return what a path stands for; of a class, a value made without arguments."""
    value = import_object(path)
    try:
        return value() if isinstance(value, type) else value
    except Exception as error:
        raise CannotImport(f"cannot make a {path!r}: {type(error).__name__}: {error}") from None


def family(name: str) -> Any:
    """Return a model family by name, or as "package.module.function"."""
    if "." in name:
        return import_object(name)
    inputs.check_choice("family", name, tuple(models.FAMILIES))
    return models.FAMILIES[name]


def distribution(name: str) -> Distribution:
    """Return a distribution by its name, or as "package.module.value"."""
    drawn = re.fullmatch(r"mixture-c(\d+)-d(\d+)-s(\d+)(?:-m(\d+))?(?:-low(.+))?", name)
    if drawn is None:
        value: Distribution = instance_of(name)
        return value
    classes, features, seed, modes, low = drawn.groups()
    return Mixture(int(classes), int(features), int(seed), int(modes or 4), float(low or -1))


@lru_cache(maxsize=1)
def holdout(name: str, n: int) -> tuple[Array, Array, Array]:
    """Return features, labels and posteriors of a distribution's holdout set; the last one is kept."""
    where = distribution(name)
    features, labels = where.sample(n, rng_of(name, "holdout"))
    # By class, as the truth reads them.
    return features, labels, np.asfortranarray(where.posterior(features))


def compute(task: Task, settings: Settings) -> Result:
    """Train one model, find its true errors, measure every estimator.

    Parameters
    ----------
    task : Task
        Model to train.
    settings : Settings
        What to compute.

    Returns
    -------
    Result
        Statistics of all estimators.

    See Also
    --------
    run : Computes all tasks and stores the results.

    Examples
    --------
    >>> from calibrant import experiment
    >>> settings = experiment.PRESETS["smoke"]
    >>> result = experiment.compute(settings.tasks()[0], settings)
    >>> result.failures
    []
    """
    where = distribution(task.distribution)
    features, labels, posterior = holdout(task.distribution, settings.n_holdout)
    # Every family learns from the same training sets.
    rows = where.sample(settings.n_train, rng_of(task.distribution, "train", task.train_set))
    trained = models.fit(family(task.family), *rows, seed=int(rng_of(task.name).integers(2**31)))
    scores = models.scores(trained, features, where.n_classes)
    truths = true_errors(scores, labels, posterior, settings.notions)
    statistics = np.full(settings.shape, np.nan)
    kept = np.full((*settings.shape[:-1], min(KEPT, settings.repetitions)), np.nan)
    failures: list[str] = []
    for k, n in enumerate(settings.sizes):
        drawn = rng_of(task.name, "rows", n).integers(0, len(labels), (settings.repetitions, n))
        for j, notion in enumerate(settings.notions):
            problem = one_dimensional(notion, scores[drawn], labels[drawn])
            values = estimates(problem, notion, where.n_classes, settings, failures)
            for i, reading in enumerate(settings.readings):
                statistics[i, j, :, k] = summarise(values[reading], truths[notion], reading)
                kept[i, j, :, k] = values[reading][:, :KEPT]
    return Result(task, truths, statistics, sorted(set(failures)), kept)


def true_errors(scores: Array, labels: Array, posterior: Array, names: Sequence[str]) -> dict[str, Truth]:
    """Return the true errors of a model by notion."""
    errors, predicted = {}, scores.argmax(axis=1)[:, None]
    for name in names:
        classwise = notions.get_notion(name).classwise
        chance = posterior.T if classwise else np.take_along_axis(posterior, predicted, axis=1).T
        errors[name] = truth(*_problems(name, scores, labels), chance)
    return errors


def one_dimensional(notion: str, scores: Array, labels: Array) -> tuple[Array, Array]:
    """Return scores and outcomes of resamples: (R, n) for one problem, (R, C, n) for one of each class."""
    classwise = notions.get_notion(notion).classwise

    def by_resample(array: Array) -> Array:
        array = np.moveaxis(array.reshape(-1, *labels.shape), 0, 1)
        return np.ascontiguousarray(array if classwise else array[:, 0])

    score, outcome = _problems(notion, scores.reshape(-1, scores.shape[-1]), labels.ravel())
    return by_resample(score), by_resample(outcome)


def _problems(notion: str, scores: Array, labels: Array) -> tuple[Array, Array]:
    """Return scores and outcomes (problems, n) of scores (n, C) and labels 0, 1, ..."""
    data = Predictions(scores, labels, None, tuple(range(scores.shape[1])), None)
    pairs = [
        (problem.score, np.asarray(problem.outcome)) for problem in notions.get_notion(notion).problems(data)
    ]
    score, outcome = (np.concatenate([np.atleast_2d(p) for p in parts]) for parts in zip(*pairs, strict=True))
    return score, outcome


def estimates(
    problem: tuple[Array, Array],
    notion: str,
    n_classes: int,
    settings: Settings,
    failures: list[str],
) -> dict[str, Array]:
    """Return estimates (estimator, resample) by reading.

    The readings differ in the fifteen alone: an estimator that the authors did not write has no faults of
    theirs.
    """
    names = settings.estimators
    known = [k for k, name in enumerate(names) if name in FIFTEEN]
    skipped = () if "corrected" in settings.readings else known
    ours = [k for k in range(len(names)) if k not in skipped]
    corrected = np.full((len(names), len(problem[0])), np.nan)
    theirs = corrected.copy()
    if "published" in settings.readings:
        chosen = [names[k] for k in known]
        theirs[known] = published.errors_many(*problem, notion=notion, estimators=chosen, n_classes=n_classes)
    corrected[ours] = _own_estimates(problem, notion, n_classes, [names[k] for k in ours], failures)
    others = [k for k in range(len(names)) if k not in known]
    theirs[others] = corrected[others]
    return {"published": theirs, "corrected": corrected}


def _own_estimates(
    problem: tuple[Array, Array], notion: str, n_classes: int, names: Sequence[str], failures: list[str]
) -> Array:
    """Return calibrant's estimates; NaN where an estimator failed, with the reason noted."""
    score, outcome = problem
    chosen_notion, n = notions.get_notion(notion), score.shape[-1]
    values = np.full((len(names), len(score)), np.nan)
    score.flags.writeable = outcome.flags.writeable = False  # others are to see the same rows
    reasons: dict[str, str] = {}
    for block in _blocks(score.shape):
        sample = Sample(score[block], outcome[block], None, chosen_notion.support(n_classes))
        for k, name in enumerate(names):
            value = _errors(estimator(name, notion), sample, reasons, name)
            values[k, block] = value.mean(axis=-1) if chosen_notion.classwise else value
    for k, name in enumerate(names):
        if not np.isfinite(values[k]).all():
            failures.append(f"{name} ({notion}, n={n}): {reasons.get(name, 'not a finite number')}")
    return values


def _errors(estimator: Estimator, sample: Sample, reasons: dict[str, str], name: str) -> Array:
    """Return errors of a batch; where an estimator fails, of each resample by itself, NaN if it fails."""
    try:
        value = np.asarray(estimator.fit(sample).error("l1"), dtype=float)
    except Exception as error:
        if len(sample.score) > 1:
            alone = (sample[k : k + 1] for k in range(len(sample.score)))
            return np.concatenate([_errors(estimator, resample, reasons, name) for resample in alone])
        reasons.setdefault(name, f"{type(error).__name__}: {error}")
        return np.full(sample.batch, np.nan)
    return value


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, TOGETHER // (prod(shape[1:-1]) * max(shape[-1], GRID)))
    for a in range(0, shape[0], step):
        yield slice(a, a + step)


def summarise(values: Array, true: Truth, reading: str) -> Array:
    """Return statistics of each estimator against the reading's own truth, and its p95 against the other."""
    corrected, other = (
        (true.published, true.exact) if reading == "published" else (true.exact, true.published)
    )
    statistics = np.full((len(values), len(STATISTICS)), np.nan)
    good = np.isfinite(values)
    statistics[:, -1] = np.count_nonzero(~good, axis=1)
    for k in np.flatnonzero(good.any(axis=1)):
        value = values[k, good[k]]
        error = np.abs(value - corrected)
        statistics[k, :-1] = (
            np.percentile(error, 95),
            error.mean(),
            value.mean() - corrected,
            value.std(),
            np.percentile(np.abs(value - other), 95),
        )
    return statistics


PRESETS = {
    "smoke": Settings(
        classes=(2, 5),
        features=(2,),
        seeds=(0,),
        families=("logistic", "forest"),
        train_sets=1,
        n_holdout=20_000,
        sizes=(SIZES[0], SIZES[10]),
        repetitions=20,
    ),
    "quick": Settings(seeds=(0,), train_sets=1, n_holdout=400_000, sizes=SIZES[:11], repetitions=100),
    "paper": Settings(),
    # Distributions that nothing was ever tuned on.
    "confirm": Settings(
        seeds=(10, 11, 12, 13, 14),
        train_sets=1,
        n_holdout=1_000_000,
        sizes=(30, 50, 100, 200, 500, 1000, 2000),
        readings=("corrected",),
    ),
}
