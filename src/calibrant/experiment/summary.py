"""The numbers of a run, aggregated over its models.

Three readings: `published` (the authors' estimators against the paper's ground truth), `corrected`
(calibrant's against the exact one), and `normalised`, the corrected errors divided by the truth.

Two baselines look at no data: `zero`, and the `best constant`, which has the least median error over the
models. It is known only in hindsight. The skill of an estimator is 1 - its error / that of the best constant.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.atomic import csv_text, write_atomic
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.procedure import STATISTICS, Settings
from calibrant.experiment.store import Store
from calibrant.parallel import cached_property
from calibrant.score_data import Array

READINGS = ("published", "corrected", "normalised")
BASELINES = ("zero", "best constant")
COLUMNS = ("reading", "notion", "estimator", "n", *STATISTICS[:5], "models", "failed", "skill", "ordered")


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of every model: arrays of shape (models, notion, estimator, size) by reading and statistic.

    Attributes
    ----------
    settings : Settings
    models : list of tuples
        Distribution, train set and family of each model.
    truth : dict
        By notion an array (models, 3): published truth, exact truth, bracket.
    values : dict
        By reading and statistic.
    failures : list of str
        What estimators said when they failed.
    estimates : dict
        By reading, estimates of some samples, with an axis for these at the end.

    See Also
    --------
    Store : Results of a run.
    run : Computes them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import experiment
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = experiment.run(experiment.PRESETS["smoke"], Path(folder) / "run")
    ...     summary = experiment.Summary.of(store)
    >>> len(summary.models) == len(summary.settings.tasks())
    True
    """

    settings: Settings
    models: list[tuple[str, int, str]]
    truth: dict[str, Array]
    values: dict[str, dict[str, Array]]
    failures: list[str]
    estimates: dict[str, Array]

    @classmethod
    def of(cls, store: Store) -> Summary:
        """Read every finished task of a run.

        Parameters
        ----------
        store : Store
            Finished run.
        """
        settings, results = store.settings(), list(store.results())
        if not results:
            raise ValueError(f"{store.folder} holds no finished task yet")
        raw = np.stack([result.statistics for result in results])
        truth = {
            notion: np.array([result.truth[notion] for result in results]) for notion in settings.notions
        }
        values: dict[str, dict[str, Array]] = {}
        for i, reading in enumerate(settings.readings):
            values[reading] = {name: raw[:, i, :, :, :, k] for k, name in enumerate(STATISTICS)}
        if "corrected" in values:
            exact = np.stack([truth[notion][:, 1] for notion in settings.notions], axis=1)[:, :, None, None]
            scaled = {"p95", "mean", "bias", "sd", "p95_other"}
            values["normalised"] = {
                name: values_of / np.maximum(exact, 1e-12) if name in scaled else values_of
                for name, values_of in values["corrected"].items()
            }
        models = [(result.task.distribution, result.task.train_set, result.task.family) for result in results]
        failures = sorted({text for result in results for text in result.failures})
        estimates = np.stack([result.estimates for result in results], axis=1)
        kept = dict(zip(settings.readings, estimates, strict=True))
        return cls(settings, models, truth, values, failures, kept)

    @property
    def distributions(self) -> list[str]:
        """Distribution of each model."""
        return [model[0] for model in self.models]

    def only(self, models: list[tuple[str, int, str]]) -> Summary:
        """Return the part about some of the models, in their order.

        Parameters
        ----------
        models : sequence of int
            Models to keep.
        """
        kept = [self.models.index(model) for model in models]
        return replace(
            self,
            models=models,
            truth={notion: truth[kept] for notion, truth in self.truth.items()},
            values={
                reading: {name: table[kept] for name, table in tables.items()}
                for reading, tables in self.values.items()
            },
            estimates={reading: table[kept] for reading, table in self.estimates.items()},
        )

    def median(self, reading: str, notion: str, statistic: str = "p95") -> Array:
        """Return the median over the models: (estimator, size).

        A model with samples that had no estimate counts as infinitely wrong, so that to fail never helps; NaN
        where those are half of the models.

        Parameters
        ----------
        reading : str
            Reading of the truth.
        notion : str
            Type of calibration.
        statistic : str
            Statistic of the errors.
        """
        values = self.values[reading][statistic][:, self.settings.notions.index(notion)]
        complete = np.isfinite(values) & (self._failed(reading, notion) == 0)
        medians = np.median(np.where(complete, values, np.inf), axis=0)
        return np.where(np.isfinite(medians), medians, np.nan)

    def failed(self, reading: str, notion: str) -> Array:
        """Return how many samples of all models had no estimate: (estimator, size).

        Parameters
        ----------
        reading : str
            Reading of the truth.
        notion : str
            Type of calibration.
        """
        return np.asarray(self._failed(reading, notion).sum(axis=0))

    def _failed(self, reading: str, notion: str) -> Array:
        """Return how many samples of each model had no estimate."""
        failed = self.values[reading]["failed"][:, self.settings.notions.index(notion)]
        return np.asarray(np.nan_to_num(failed).astype(int))

    @cached_property
    def constants(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Values of the baselines by reading and notion."""
        keys = product(self.values, self.settings.notions)
        return {key: (0.0, best_constant(*self._truth_and_unit(*key))) for key in keys}

    def baselines(self, reading: str, notion: str) -> Array:
        """Return the median absolute errors of the baselines, whatever the size and the statistic.

        Parameters
        ----------
        reading : str
            Reading of the truth.
        notion : str
            Type of calibration.
        """
        true, unit = self._truth_and_unit(reading, notion)
        return np.array([np.median(np.abs(c - true) / unit) for c in self.constants[reading, notion]])

    def skill(self, reading: str, notion: str, statistic: str = "p95") -> Array:
        """Return 1 - error / error of the best constant: (estimator, size); NaN if that has none.

        Parameters
        ----------
        reading : str
            Reading of the truth.
        notion : str
            Type of calibration.
        statistic : str
            Statistic of the errors.
        """
        least = self.baselines(reading, notion)[1]
        return np.asarray(1 - self.median(reading, notion, statistic) / (least if least > 0 else np.nan))

    def ordered(self, reading: str, notion: str) -> Array:
        """Return the share of pairs of models that the estimates order as the true errors: (estimator, size).

        See `ordered`.

        Parameters
        ----------
        reading : str
            Reading of the truth.
        notion : str
            Type of calibration.
        """
        kept = self.estimates["corrected" if reading == "normalised" else reading]
        true = self.truth[notion][:, 0 if reading == "published" else 1]
        return ordered(kept[:, self.settings.notions.index(notion)], true)

    def _truth_and_unit(self, reading: str, notion: str) -> tuple[Array, Array]:
        """Return the truth of each model, and what its errors are divided by."""
        true = self.truth[notion][:, 0 if reading == "published" else 1]
        return true, np.maximum(true, 1e-12) if reading == "normalised" else np.ones_like(true)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each reading, notion, estimator or baseline, and size."""
        rows = []
        for reading, notion in product(self.values, self.settings.notions):
            medians = np.stack([self.median(reading, notion, name) for name in STATISTICS[:5]], axis=-1)
            cells = list(product((*self.settings.estimators, *BASELINES), self.settings.sizes))
            failed = self.failed(reading, notion).ravel().tolist()
            scores = [self.skill(reading, notion).ravel(), self.ordered(reading, notion).ravel()]
            numbers = [*zip(medians.reshape(-1, 5).tolist(), failed, *scores, strict=True)]
            true, unit = self._truth_and_unit(reading, notion)
            errors = self.baselines(reading, notion)
            for constant, error in zip(self.constants[reading, notion], errors.tolist(), strict=True):
                skill = 1 - error / errors[1] if errors[1] > 0 else np.nan
                statistics = [error, error, float(np.median((constant - true) / unit)), 0.0, np.nan]
                numbers += [(statistics, 0, skill, 0.5)] * len(self.settings.sizes)
            for cell, (statistics, bad, *rest) in zip(cells, numbers, strict=True):
                if np.isfinite(statistics[0]) or bad:
                    values = (reading, notion, *cell, *statistics, len(self.models), bad, *map(float, rest))
                    rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    def write(self, path: Path) -> Path:
        """Write the rows as CSV.

        Parameters
        ----------
        path : path
            CSV file to write.
        """
        rows = ([_written(row[name]) for name in COLUMNS] for row in self.rows())
        write_atomic(path, [csv_text([COLUMNS, *rows]).encode()], parents=True)
        return path


def resampled(names: Sequence[str], times: int) -> Iterator[Array]:
    """Return rows of bootstrap samples of distributions, each with all its models."""
    rows, rng = [np.flatnonzero(np.array(names) == name) for name in sorted(set(names))], rng_of("resampled")
    for _ in range(times):
        yield np.concatenate([rows[k] for k in rng.integers(0, len(rows), len(rows))])


def resampled_medians(table: Array, names: Sequence[str], times: int) -> Array:
    """Return medians over the first axis, the models, and then those of so many resamples of distributions.

    `names` are the distributions of the models. NaN where there is nothing.
    """
    median = np.nanmedian if np.isnan(table).any() else np.median
    rows = resampled(names, times)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN slice")
        return np.stack([median(table, axis=0), *(median(table[subset], axis=0) for subset in rows)])


def best_constant(true: Array, unit: Array) -> float:
    """Return the constant with the least median of |constant - truth| / unit over the models.

    The median is linear between the places where two models are equally wrong; one of these is the best.

    >>> round(best_constant(np.array([0.1, 0.2, 0.24]), np.ones(3)), 3)
    0.22
    """
    first, second = np.triu_indices(len(true), 1)
    between = (true[first] * unit[second] + true[second] * unit[first]) / (unit[first] + unit[second])
    places, parts = np.unique(np.concatenate([true, between])), []
    for block in np.array_split(places, max(1, len(places) // 4096)):
        parts.append(np.median(np.abs(block[:, None] - true) / unit, axis=1))
    return float(places[np.argmin(np.concatenate(parts))])


def ordered(estimates: Array, true: Array) -> Array:
    """Return the share of pairs of models whose estimates are in the order of their true errors.

    Models are along the first axis and samples along the last one. Equal estimates, and samples without one,
    count one half, so that a constant has .5. Models with equal true errors are not compared.

    >>> round(float(ordered(np.array([[0.1], [0.3], [0.2]]), np.array([0.1, 0.2, 0.3]))), 3)
    0.667
    """
    order = np.argsort(true, kind="stable")
    estimates, true = estimates[order], true[order]
    balance, pairs = np.zeros(estimates.shape[1:]), 0
    for lag in range(1, len(true)):
        differ = true[lag:] > true[:-lag]
        steps = np.nan_to_num(estimates[lag:] - estimates[:-lag])[differ]
        balance += np.sign(steps).sum(axis=0)
        pairs += int(differ.sum())
    known = np.isfinite(estimates).any(axis=(0, -1))
    return np.where(known, 0.5 + balance.mean(axis=-1) / (2 * pairs or np.nan), np.nan)


def _written(value: Any) -> Any:
    """Return a number in five digits; nothing for one that there is not."""
    if not isinstance(value, float):
        return value
    return f"{value:.5g}" if np.isfinite(value) else ""
