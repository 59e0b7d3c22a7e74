"""The paper's procedure: how far each estimator is from the truth, model by model.

A task is one trained model. It is seeded by its own identity, so a result depends neither on the
order of the tasks nor on who computes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from calibrant import inputs, published
from calibrant.estimators import FIFTEEN, Density, Estimator, resolve
from calibrant.evidence import Array, Sample
from calibrant.experiment import models
from calibrant.experiment.distributions import Distribution, Mixture, rng_of
from calibrant.experiment.truth import Truth, truth
from calibrant.questions import notions

NOTIONS = ("confidence", "classwise")
READINGS = ("published", "corrected")
STATISTICS = ("p95", "mean", "bias", "sd", "p95_other", "failed")
#: The sizes of the authors' code, which truncates 29.99... to 29; eleven of them reach to 500.
SIZES = tuple(int(n) for n in np.logspace(np.log10(30), np.log10(5000), 20))
#: Those eleven and the ends of the paper's axis, 30 and 500.
TO_500 = tuple(sorted({*SIZES[:11], 30, 500}))
# A coarser grid than the default changes a density estimate by less than 1e-4 at these sizes.
STEP = 1 / 1024
# Rows evaluated together: enough to spread the overhead, few enough for the cache.
TOGETHER = 1 << 15


@dataclass(frozen=True)
class Settings:
    """What a run computes; two runs with equal settings give equal numbers."""

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
    estimators: tuple[str, ...] = FIFTEEN
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

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for the manifest."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """The settings that `to_dict` wrote."""
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**plain)

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """Shape of a task's statistics: reading, notion, estimator, size, statistic."""
        parts = (self.readings, self.notions, self.estimators, self.sizes, STATISTICS)
        a, b, c, d, e = map(len, parts)
        return a, b, c, d, e

    def tasks(self) -> list[Task]:
        """Every model of the run; those of one distribution follow each other."""
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
    """One trained model."""

    distribution: str
    train_set: int
    family: str

    @property
    def name(self) -> str:
        """Identity, which also names its result file."""
        return f"{self.distribution}-t{self.train_set}-{self.family}"


@dataclass(frozen=True, eq=False)
class Result:
    """Statistics of one task: an axis each for reading, notion, estimator, size and statistic."""

    task: Task
    truth: dict[str, Truth]
    statistics: Array
    failures: list[str] = field(default_factory=list)


def named(path: str) -> Any:
    """What "package.module.attribute" stands for."""
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # a module that is being written can fail in any way
        raise ValueError(f"cannot import {path!r}: {type(error).__name__}: {error}") from None
    return found


def estimator(name: str, notion: str = "confidence") -> Estimator:
    """An estimator by registry name, or as "package.module.MyEstimator": a value, class or function.

    The notion matters to "auto" alone.
    """
    if "." not in name.partition(":")[0]:
        found = resolve(name, shared=notions.named(notion).several)
        return replace(found, step=STEP) if isinstance(found, Density) else found
    found = made(name)
    if not (hasattr(found, "fit") or callable(found)):
        raise ValueError(f"{name!r} has no method fit(evidence) and is no function, got {found!r}")
    return resolve(found)


def made(path: str) -> Any:
    """What a path stands for; of a class, a value made without arguments."""
    found = named(path)
    try:
        return found() if isinstance(found, type) else found
    except Exception as error:
        raise ValueError(f"cannot make a {path!r}: {type(error).__name__}: {error}") from None


def family(name: str) -> Any:
    """A model family by name, or as "package.module.function"."""
    if "." in name:
        return named(name)
    inputs.check_choice("family", name, tuple(models.FAMILIES))
    return models.FAMILIES[name]


def distribution(name: str) -> Distribution:
    """A distribution by its name, or as "package.module.value"."""
    drawn = re.fullmatch(r"mixture-c(\d+)-d(\d+)-s(\d+)(?:-m(\d+))?(?:-low(.+))?", name)
    if drawn is None:
        found: Distribution = made(name)
        return found
    classes, features, seed, modes, low = drawn.groups()
    return Mixture(int(classes), int(features), int(seed), int(modes or 4), float(low or -1))


@lru_cache(maxsize=1)
def holdout(name: str, n: int) -> tuple[Array, Array, Array]:
    """Features, labels and posteriors of a distribution's holdout set; the last one is kept."""
    where = distribution(name)
    features, labels = where.sample(n, rng_of(name, "holdout"))
    return features, labels, where.posterior(features)


def compute(task: Task, settings: Settings) -> Result:
    """Train one model, find its true errors, measure every estimator."""
    where = distribution(task.distribution)
    features, labels, posterior = holdout(task.distribution, settings.n_holdout)
    # Every family learns from the same training sets.
    rows = where.sample(settings.n_train, rng_of(task.distribution, "train", task.train_set))
    trained = models.fit(family(task.family), *rows, seed=int(rng_of(task.name).integers(2**31)))
    scores = models.scores(trained, features, where.n_classes)
    truths = true_errors(scores, labels, posterior, settings.notions)
    statistics = np.full(settings.shape, np.nan)
    failures: list[str] = []
    for k, n in enumerate(settings.sizes):
        drawn = rng_of(task.name, "rows", n).integers(0, len(labels), (settings.repetitions, n))
        for j, notion in enumerate(settings.notions):
            problem = one_dimensional(notion, scores[drawn], labels[drawn])
            for i, reading in enumerate(settings.readings):
                values = estimates(problem, notion, where.n_classes, settings.estimators, reading, failures)
                statistics[i, j, :, k] = summarise(values, truths[notion], reading)
    return Result(task, truths, statistics, sorted(set(failures)))


def true_errors(scores: Array, labels: Array, posterior: Array, notions: Sequence[str]) -> dict[str, Truth]:
    """True errors of a model by notion."""
    found = {}
    for notion in notions:
        if notion == "confidence":
            best = scores.argmax(axis=1)[:, None]
            chance = np.take_along_axis(posterior, best, axis=1).T
            found[notion] = truth(np.take_along_axis(scores, best, axis=1).T, labels == best.T, chance)
        else:
            outcome = labels == np.arange(scores.shape[1])[:, None]
            found[notion] = truth(scores.T, outcome, posterior.T)
    return found


def one_dimensional(notion: str, scores: Array, labels: Array) -> tuple[Array, Array]:
    """Scores and outcomes of resamples: (R, n) for confidence, (R, C, n) class-wise."""
    if notion == "confidence":
        best = scores.argmax(axis=-1)
        return np.take_along_axis(scores, best[..., None], axis=-1)[..., 0], best == labels
    outcome = labels[:, None, :] == np.arange(scores.shape[-1])[:, None]
    return np.ascontiguousarray(np.moveaxis(scores, -1, 1)), outcome


def estimates(
    problem: tuple[Array, Array],
    notion: str,
    n_classes: int,
    names: Sequence[str],
    reading: str,
    failures: list[str],
) -> Array:
    """Estimates (estimator, resample); NaN where an estimator failed, with the reason on record."""
    score, outcome = problem
    found = np.full((len(names), len(score)), np.nan)
    if reading == "published":
        known = [k for k, name in enumerate(names) if name in FIFTEEN]
        found[known] = published.errors_many(
            score,
            outcome,
            notion=notion,
            estimators=[names[k] for k in known],
            n_classes=n_classes if notion == "confidence" else None,
        )
        return found
    support = (1 / n_classes, 1.0) if notion == "confidence" else (0.0, 1.0)
    n = score.shape[-1]
    score.flags.writeable = outcome.flags.writeable = False  # others are to see the same rows
    reasons: dict[str, str] = {}
    for part in _blocks(score.shape):
        sample = Sample(score[part], outcome[part], None, support)
        for k, name in enumerate(names):
            value = _errors(estimator(name, notion), sample, reasons, name)
            found[k, part] = value if notion == "confidence" else value.mean(axis=-1)
    for k, name in enumerate(names):
        if not np.isfinite(found[k]).all():
            failures.append(f"{name} ({notion}, n={n}): {reasons.get(name, 'not a finite number')}")
    return found


def _errors(estimator: Estimator, sample: Sample, reasons: dict[str, str], name: str) -> Array:
    """Errors of a batch; if an estimator fails on it, of each resample by itself, NaN where that fails."""
    try:
        value = np.asarray(estimator.fit(sample).error("l1"), dtype=float)
        if value.shape != sample.batch:
            raise ValueError(f"error must have the shape {sample.batch} of the batch, got {value.shape}")
    except Exception as error:
        if len(sample.score) > 1:
            alone = (sample[k : k + 1] for k in range(len(sample.score)))
            return np.concatenate([_errors(estimator, one, reasons, name) for one in alone])
        reasons.setdefault(name, f"{type(error).__name__}: {error}")
        return np.full(sample.batch, np.nan)
    return value


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, TOGETHER // int(np.prod(shape[1:])))
    for a in range(0, shape[0], step):
        yield slice(a, a + step)


def summarise(values: Array, true: Truth, reading: str) -> Array:
    """Statistics of each estimator against the reading's own truth, and its p95 against the other."""
    own, other = (true.published, true.exact) if reading == "published" else (true.exact, true.published)
    found = np.full((len(values), len(STATISTICS)), np.nan)
    good = np.isfinite(values)
    found[:, -1] = np.count_nonzero(~good, axis=1)
    for k in np.flatnonzero(good.any(axis=1)):
        value = values[k, good[k]]
        error = np.abs(value - own)
        found[k, :-1] = (
            np.percentile(error, 95),
            error.mean(),
            value.mean() - own,
            value.std(),
            np.percentile(np.abs(value - other), 95),
        )
    return found


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
        estimators=(*FIFTEEN, "auto"),
        readings=("corrected",),
    ),
}
