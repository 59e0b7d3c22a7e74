"""Which estimator comes closest to the truth: on the paper's distributions, and where a bound is known.

The first part reads runs, the second draws its own samples. `calibrant.experiment.page` writes both down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.estimators import FIFTEEN, estimator_names, resolve
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, Family
from calibrant.experiment.procedure import TOGETHER, Settings, estimator
from calibrant.experiment.store import Report
from calibrant.experiment.summary import BASELINES, Summary, resampled_medians
from calibrant.score_data import Array, Sample

STATISTICS = ("p95", "mean", "bias", "sd")
# Those of the absolute error, which are compared with the best of the fifteen; the first ranks.
HELD = ("p95", "mean")
RESAMPLES, LEVEL = 1000, 0.95
#: Samples of each size on the families with a bound.
REPETITIONS = {200: 100, 1000: 60, 10_000: 20}
# Where the registry's own default is not what people use.
USUAL = {name: f"{name}:15" for name in ("uniform", "adaptive", "uniform-convex", "adaptive-convex")}
USUAL |= {"bayes": "auto", "debiased": "debiased:15"}


class Overall(NamedTuple):
    """A figure at each size, over the sizes that rank by the geometric mean of errors, and its interval."""

    by_size: Array
    overall: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class LeaderboardRow:
    """One estimator under one notion. Arrays go by size and are NaN where its run has no such size.

    One that had no estimate for some sample has no figure at that size, and no overall ratio: its figures
    would be those of the samples that it found easy.
    """

    estimator: str
    is_own_measure: bool  # whether it measures something of its own, unlike the error it is compared with
    # run, repetitions, failed: which run it is from, samples of each size, and how many of them had no
    # estimate.
    run: int
    repetitions: int
    failed: int
    median: dict[str, Array]  # by statistic: p95 and mean of the absolute error, bias and sd of the estimate
    ratio: dict[str, Overall]  # by p95 and mean: over the least that any of the fifteen has at the same size
    skill: dict[str, Overall]  # by p95 and mean: 1 - error / error of the best constant
    # ordered, ordered_overall: share of pairs of models that are ordered right: at each size, and the
    # mean over those that rank.
    ordered: Array
    ordered_overall: float

    @property
    def baseline(self) -> bool:
        """Whether it is a constant, which is not ranked."""
        return self.estimator in BASELINES


@dataclass(frozen=True, eq=False)
class Exact:
    """Mean absolute errors over the bound: arrays of shape (estimator, family, size)."""

    estimators: tuple[str, ...]
    families: tuple[str, ...]
    repetitions: dict[int, int]  # samples by size
    # ratio, error: the ratio and its standard error.
    ratio: Array
    error: Array
    seed: int
    # truth, bound: true error of each family, and the bound by family and size.
    truth: Array
    bound: Array

    def of_constant(self, value: float) -> Array:
        """Return the ratios of an estimator that always returns the same value: (family, size)."""
        return np.asarray(np.abs(value - self.truth)[:, None] / self.bound)

    @property
    def best_constant(self) -> float:
        """The constant with the least mean over families and sizes, which is known only in hindsight."""
        # A sum of absolute differences is least at one of the values.
        return float(min(self.truth, key=lambda value: self.of_constant(value).mean()))

    def worst(self, ratio: Array) -> tuple[float, str, int]:
        """Return the largest of some ratios (family, size), with its family and size."""
        i, j = np.unravel_index(np.argmax(ratio), ratio.shape)
        return float(ratio[i, j]), self.families[i], tuple(self.repetitions)[j]


@dataclass(frozen=True, eq=False)
class Board:
    """The ranking."""

    settings: list[Settings]  # one for each run
    # sizes, ranked: sizes of any run, and those of all runs, which rank.
    sizes: tuple[int, ...]
    ranked: tuple[int, ...]
    # models, distributions: how many all runs have in common.
    models: int
    distributions: int
    # By p95, which ranks, and mean, and by notion the best of the fifteen at each size.
    best: dict[str, dict[str, tuple[str, ...]]]
    rows: dict[str, list[LeaderboardRow]]  # by notion the estimators and the baselines, best first
    constants: dict[str, float]  # by notion the value of the best constant
    # exact, local: the second part, where it was asked for: regular families, and local miscalibration.
    # See `exact_families`.
    exact: Exact | None = None
    local: Exact | None = None


def board(summaries: Sequence[Summary]) -> Board:
    """Rank the estimators of runs over the same models.

    An estimator of several runs counts in the first. Errors are compared with the best of the fifteen in
    the same run, since a percentile of few samples reads low; if a run lacks some of the fifteen, against
    the best in the first run that has them all.
    """
    models, notions, ranked = _common(summaries)
    runs = [summary.only(models) for summary in summaries]
    settings = [run.settings for run in runs]
    sizes = tuple(sorted({n for setting in settings for n in setting.sizes}))
    fifteen = {
        k: [setting.estimators.index(name) for name in FIFTEEN]
        for k, setting in enumerate(settings)
        if {*FIFTEEN} <= {*setting.estimators}
    }
    first = min(fifteen)
    best: dict[str, dict[str, tuple[str, ...]]] = {statistic: {} for statistic in HELD}
    rows: dict[str, list[LeaderboardRow]] = {}
    for notion in notions:
        medians = [_medians(run, notion, sizes) for run in runs]
        for statistic in HELD:
            of_fifteen = medians[first][statistic][0, fifteen[first]]
            best[statistic][notion] = tuple(_name_of_least(column) for column in of_fifteen.T)
        by_name: dict[str, LeaderboardRow] = {}
        for k, run in enumerate(runs):
            reference_run = k if k in fifteen else first
            ratios = {
                statistic: medians[k][statistic]
                / medians[reference_run][statistic][:, fifteen[reference_run]].min(axis=1, keepdims=True)
                for statistic in HELD
            }
            for row in _rows(run, k, notion, medians[k], ratios, sizes, ranked):
                by_name.setdefault(row.estimator, row)
        rows[notion] = sorted(
            by_name.values(), key=lambda row: np.nan_to_num(row.ratio["p95"].overall, nan=np.inf)
        )
    constants = {notion: runs[0].constants["corrected", notion][1] for notion in notions}
    distributions = {*runs[0].distributions}
    return Board(settings, sizes, ranked, len(models), len(distributions), best, rows, constants)


def _common(summaries: Sequence[Summary]) -> tuple[list[tuple[str, int, str]], list[str], tuple[int, ...]]:
    """Return models, notions and sizes that all runs have."""
    first, *others = summaries
    for run_summary in summaries:
        if "corrected" not in run_summary.values:
            raise ValueError("a leaderboard needs the corrected reading, and a run lacks it")
        if run_summary.settings.n_train != first.settings.n_train:
            raise ValueError("the runs trained their models on different numbers of rows")
    if not any({*FIFTEEN} <= {*run_summary.settings.estimators} for run_summary in summaries):
        raise ValueError(
            "no run has all of the paper's fifteen estimators, which the others are compared with"
        )
    models = [model for model in first.models if all(model in run_summary.models for run_summary in others)]
    kept = [run_summary.settings for run_summary in summaries]
    notions = [
        notion for notion in kept[0].notions if all(notion in run_summary.notions for run_summary in kept)
    ]
    sizes = tuple(n for n in kept[0].sizes if all(n in run_summary.sizes for run_summary in kept))
    for what, shared in (("model", models), ("notion", notions), ("size", sizes)):
        if not shared:
            raise ValueError(f"the runs have no {what} in common")
    return models, notions, sizes


def _medians(run: Summary, notion: str, sizes: tuple[int, ...]) -> dict[str, Array]:
    """Return medians over the models by statistic: (1, estimator, size), the baselines last.

    Those that are compared with the fifteen are followed by the medians of resamples along the first axis.
    """
    bias = np.subtract.outer(run.constants["corrected", notion], run.truth[notion][:, 1]).T[..., None]
    constant = {"p95": np.abs(bias), "mean": np.abs(bias), "bias": bias}
    medians = {}
    for name in STATISTICS:
        values = run.values["corrected"][name][:, run.settings.notions.index(notion)]
        added = np.broadcast_to(constant.get(name, 0.0), (len(values), len(BASELINES), values.shape[2]))
        table, times = np.concatenate([values, added], axis=1), RESAMPLES if name in HELD else 0
        medians[name] = _placed(resampled_medians(table, run.distributions, times), run, sizes)
    return medians


def _placed(values: Array, run: Summary, sizes: tuple[int, ...]) -> Array:
    """Return numbers of a run by size, the last axis, at the sizes of all runs; NaN at those not run."""
    placed = np.full((*values.shape[:-1], len(sizes)), np.nan)
    placed[..., np.searchsorted(sizes, run.settings.sizes)] = values
    return placed


def _name_of_least(column: Array) -> str:
    """Return the best of the fifteen, or nothing at a size that was not measured."""
    return FIFTEEN[int(np.argmin(column))] if np.isfinite(column).all() else ""


def _overall(ratio: Array, ranked: Array) -> Overall:
    """Return a ratio of the run (first) at each size, over the sizes that rank, and its interval."""
    with np.errstate(divide="ignore"):  # a constant may have no error
        overall = np.exp(np.log(ratio[:, ranked]).mean(axis=1))
    low, high = np.quantile(overall[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Overall(ratio[0], float(overall[0]), float(low), float(high))


def _rows(
    run: Summary,
    k: int,
    notion: str,
    medians: dict[str, Array],
    ratios: dict[str, Array],
    sizes: tuple[int, ...],
    ranked: tuple[int, ...],
) -> Iterator[LeaderboardRow]:
    """Yield the estimators of the k-th run, and the baselines."""
    settings, added = run.settings, ((0, len(BASELINES)), (0, 0))
    failures = np.nan_to_num(_placed(np.pad(run.failed("corrected", notion), added), run, sizes))
    ordered = np.pad(run.ordered("corrected", notion), added, constant_values=0.5)
    ordered = np.where(failures, np.nan, _placed(ordered, run, sizes))
    ranking = np.isin(sizes, ranked)
    for i, name in enumerate((*settings.estimators, *BASELINES)):
        failed = failures[i]
        # One that failed at any size has no figure over all of those that rank.
        counted = np.full_like(ranking, True) if failed.any() else ranking
        figures, skills = {}, {}
        for statistic, table in ratios.items():
            ratio, constant = (np.where(failed, np.nan, table[:, j]) for j in (i, -1))
            figures[statistic] = _overall(ratio, counted)
            lost = _overall(ratio / np.where(constant > 0, constant, np.nan), counted)
            skills[statistic] = Overall(1 - lost.by_size, 1 - lost.overall, 1 - lost.high, 1 - lost.low)
        yield LeaderboardRow(
            estimator=name,
            is_own_measure=own_measure(name),
            run=k,
            repetitions=settings.repetitions,
            failed=int(failed.sum()),
            median={name: np.where(failed, np.nan, table[0, i]) for name, table in medians.items()},
            ratio=figures,
            skill=skills,
            ordered=ordered[i],
            ordered_overall=float(ordered[i, ranking].mean()),
        )


def own_measure(name: str) -> bool:
    """Whether an estimator has a measure of its own, which is not the ECE for any number of rows.

    >>> [own_measure(name) for name in ("ks", "smooth", "isotonic")]
    [True, True, False]
    """
    return name not in BASELINES and not estimator(name).measures_ece


def default_estimators() -> tuple[str, ...]:
    """Return every estimator of the registry once, as it is usually meant.

    >>> default_estimators()[:6]
    ('uniform:15', 'adaptive:15', 'uniform-convex:15', 'adaptive-convex:15', 'density', 'density-beta')
    """
    return tuple(USUAL.get(name, name) for name in estimator_names())


def exact_families(
    names: Sequence[str] | None = None,
    repetitions: Mapping[int, int] = REPETITIONS,
    *,
    families: Sequence[Family] = tuple(EXACT.values()),
    seed: int = 0,
    report: Report | None = None,
) -> Exact:
    """Return mean absolute errors over the least that a regular estimator can have.

    All estimators see the same samples, at least two by size; without names they are `default_estimators`. A
    cell's samples depend on nothing but seed, family and size. After each comes report(done, total, "").

    >>> exact = exact_families(["auto"], {200: 20}, families=[EXACT["flat"]])
    >>> exact.ratio.shape, bool(exact.ratio[0, 0, 0] < 2)
    ((1, 1, 1), True)
    """
    for n, times in repetitions.items():
        if n < 1 or times < 2:
            raise ValueError(f"repetitions must be two or more of a positive size, got {times} of {n}")
    names = default_estimators() if names is None else tuple(names)
    total = len(families) * len(repetitions)
    ratio = np.empty((len(names), len(families), len(repetitions)))
    error, bounds = np.empty_like(ratio), np.empty(ratio.shape[1:])
    for i, family in enumerate(families):
        bound = family.bound(1)
        for j, (n, times) in enumerate(repetitions.items()):
            if report is not None:
                report(i * len(repetitions) + j, total, "")
            drawn = family.draw(rng_of("leaderboard", seed, family.name, family.factor, n), times, n)
            bounds[i, j] = bound / n**0.5
            off = np.abs(_estimates(names, *drawn) - family.truth) / bounds[i, j]
            ratio[:, i, j], error[:, i, j] = off.mean(axis=1), off.std(axis=1, ddof=1) / times**0.5
    if report is not None:
        report(total, total, "")
    labels = tuple(family.label for family in families)
    truth = np.array([family.truth for family in families])
    return Exact(names, labels, dict(repetitions), ratio, error, seed, truth, bounds)


def _estimates(names: Sequence[str], score: Array, outcome: Array) -> Array:
    """Return estimates (estimator, sample), some samples at a time."""
    values = np.empty((len(names), len(score)))
    step = max(1, TOGETHER // score.shape[1])
    for a in range(0, len(score), step):
        sample = Sample(score[a : a + step], outcome[a : a + step])
        for k, name in enumerate(names):
            values[k, a : a + step] = resolve(name).fit(sample).error()
    return values
