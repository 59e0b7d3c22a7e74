"""The numbers of a run, aggregated over its models.

Three readings: `published` (the authors' estimators against the paper's ground truth), `corrected`
(calibrant's against the exact one), and `normalised`, the corrected errors divided by the truth.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.atomic import write_whole
from calibrant.evidence import Array
from calibrant.experiment.procedure import STATISTICS, Settings
from calibrant.experiment.store import Store

READINGS = ("published", "corrected", "normalised")
COLUMNS = ("reading", "notion", "estimator", "n", *STATISTICS[:5], "models", "failed")


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
    """

    settings: Settings
    models: list[tuple[str, int, str]]
    truth: dict[str, Array]
    values: dict[str, dict[str, Array]]
    failures: list[str]

    @classmethod
    def of(cls, store: Store) -> Summary:
        """Read every finished task of a run."""
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
        return cls(settings, models, truth, values, failures)

    def median(self, reading: str, notion: str, statistic: str = "p95") -> Array:
        """Return the median over the models: (estimator, size).

        A model with samples that had no estimate counts as infinitely wrong, so that to fail never helps; NaN
        where those are half of the models.
        """
        values = self.values[reading][statistic][:, self.settings.notions.index(notion)]
        whole = np.isfinite(values) & (self._failed(reading, notion) == 0)
        medians = np.median(np.where(whole, values, np.inf), axis=0)
        return np.where(np.isfinite(medians), medians, np.nan)

    def failed(self, reading: str, notion: str) -> Array:
        """Return how many samples of all models had no estimate: (estimator, size)."""
        return np.asarray(self._failed(reading, notion).sum(axis=0))

    def _failed(self, reading: str, notion: str) -> Array:
        """Return how many samples of each model had no estimate."""
        shape = len(self.models), len(self.settings.estimators), len(self.settings.sizes)
        if "failed" not in self.values[reading]:  # as of numbers that were not made by a run
            return np.zeros(shape, dtype=int)
        failed = self.values[reading]["failed"][:, self.settings.notions.index(notion)]
        return np.asarray(np.nan_to_num(failed).astype(int))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each reading, notion, estimator and size."""
        rows = []
        for reading, notion in product(self.values, self.settings.notions):
            medians = np.stack([self.median(reading, notion, name) for name in STATISTICS[:5]], axis=-1)
            cells = product(self.settings.estimators, self.settings.sizes)
            failed = self.failed(reading, notion).ravel().tolist()
            for cell, numbers, bad in zip(cells, medians.reshape(-1, 5).tolist(), failed, strict=True):
                if np.isfinite(numbers[0]) or bad:
                    values = (reading, notion, *cell, *numbers, len(self.models), bad)
                    rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    def write(self, path: Path) -> Path:
        """Write the rows as CSV."""
        rows = self.rows()
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _written(value) for key, value in row.items()})
        write_whole(path, [text.getvalue().encode()], parents=True)
        return path


def _written(value: Any) -> Any:
    """Return a number in five digits; nothing for one that there is not."""
    if not isinstance(value, float):
        return value
    return f"{value:.5g}" if np.isfinite(value) else ""
