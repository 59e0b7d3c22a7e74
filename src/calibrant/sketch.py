"""Sums instead of rows: predictions in any number of pieces, answered for as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant import _check, notions
from calibrant.answers import binned, curves, diagrams, measure, smoothing
from calibrant.binning import how_many
from calibrant.estimators import Binned, Norm, resolve
from calibrant.evidence import COARSE, FINE, Cells, Layout, Sample
from calibrant.inference import Estimate, infer
from calibrant.results import ByClass, Progress, ReliabilityCurve, ReliabilityDiagram

# Up to this many problems the fine cells are affordable.
FINE_UP_TO = 20
# Problems answered for together.
TOGETHER = 32
# Sums of squared importance weights must neither overflow nor vanish.
HEAVIEST = 1e100


class Sketch:
    """Calibration of predictions that arrive in pieces, in memory that does not grow with them.

    Parameters
    ----------
    notion : {"class", "classwise", "confidence"}
        What is compared; fixed for the life of the sketch.
    n_classes : int, optional
        Number of columns of the score matrix; learned from the first update otherwise.
    labels, pos_label : optional
        As for `calibrant.ece`. The classes of the columns are settled by the first update.

    Examples
    --------
    >>> import calibrant
    >>> monday = calibrant.Sketch(notion="class").update([0, 1, 1], [0.2, 0.4, 0.9])
    >>> tuesday = calibrant.Sketch(notion="class").update([0, 1], [0.1, 0.8])
    >>> both = monday + tuesday
    >>> both
    Sketch(notion='class', n=5)
    >>> round(both.ece(estimator="uniform:10"), 6)
    0.24
    """

    def __init__(
        self,
        notion: str = "class",
        *,
        n_classes: int | None = None,
        labels: Any = None,
        pos_label: Any = None,
    ) -> None:
        self._notion = notions.named(notion)
        self._n_classes = None if n_classes is None else _check.positive_int("n_classes", n_classes, 2)
        self._given = {"labels": labels, "pos_label": pos_label}
        self._cells: Cells | None = None
        self.labels: tuple[Any, ...] = ()
        self.positive: int | None = None
        self._vector = False

    @property
    def notion(self) -> str:
        """The notion asked about."""
        return self._notion.name

    @property
    def n(self) -> float:
        """Effective number of rows seen."""
        return 0.0 if self._cells is None else float(np.max(self._cells.n))

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> Sketch:
        """Add predictions; returns the sketch itself."""
        given = dict(self._given)
        shape = getattr(y_prob, "shape", None)
        if (
            self._cells is not None
            and not self._vector
            and len(np.shape(y_prob) if shape is None else shape) == 2
        ):
            given["labels"] = self.labels
        data = _check.predictions(y_true, y_prob, sample_weight=sample_weight, **given)
        if data.weight is not None and data.weight.dtype.kind == "f":
            _check_scale(data.weight)
        new = Sketch(self.notion)
        new._n_classes = 2 if data.score.ndim == 1 else data.score.shape[1]
        new.labels, new.positive, new._vector = data.labels, data.positive, data.score.ndim == 1
        layout = new._layout
        parts = [
            Cells.of(Sample(problem.score, problem.outcome, data.weight, problem.support), layout)
            for problem in self._notion.problems(data)
        ]
        new._cells = parts[0] if not parts[0].batch else Cells.stack(parts)
        total = self + new
        self.__dict__.update(total.__dict__ | {"_given": self._given})
        return self

    @property
    def _layout(self) -> Layout:
        return FINE if self.notion != "classwise" or (self._n_classes or 2) <= FINE_UP_TO else COARSE

    def __add__(self, other: Sketch) -> Sketch:
        """A sketch of the rows of both."""
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.notion != other.notion:
            raise ValueError(f"sketches must ask the same: got notions {self.notion!r} and {other.notion!r}")
        if None not in (self._n_classes, other._n_classes) and self._n_classes != other._n_classes:
            raise ValueError(
                f"sketches must have the same classes, got {self._n_classes} and {other._n_classes} of them"
            )
        base, more = (self, other) if self._cells is not None else (other, self)
        total = Sketch(self.notion, n_classes=self._n_classes or other._n_classes)
        total._given = self._given if any(v is not None for v in self._given.values()) else other._given
        total.labels, total.positive, total._vector = base.labels, base.positive, base._vector
        total._cells = base._cells
        if base._cells is not None and more._cells is not None:
            if base._asked != more._asked:
                raise ValueError(
                    f"sketches must ask about the same classes, got {base._asked!r} and {more._asked!r}"
                )
            if base._vector and base.labels[0] is None:
                total.labels = more.labels
            total._cells = base._cells + more._cells
        return total

    def __radd__(self, other: Any) -> Sketch:
        """Lets `sum(sketches)` begin with 0."""
        return self if other == 0 else NotImplemented

    @property
    def _asked(self) -> Any:
        """The class that is asked about, or all columns; a vector of scores speaks of one class."""
        if self.notion == "confidence" and not self._vector:
            return None
        column = self.positive if self._vector or self.notion == "class" else None
        return self.labels if column is None else self.labels[column]

    @property
    def evidence(self) -> Cells:
        """The sums, as evidence that any estimator can read."""
        if self._cells is None:
            raise ValueError("the sketch is empty: call update(y_true, y_prob) first")
        return self._cells

    def _blocks(self) -> Iterator[Cells]:
        if not self.evidence.batch:
            yield self.evidence
            return
        for first in range(0, self.evidence.batch[0], TOGETHER):
            yield self.evidence[first : first + TOGETHER]

    def ece(self, *, estimator: Any = "auto", norm: Norm = "l1", **unexpected: Any) -> float:
        """Expected calibration error, as `calibrant.ece` would give from the rows."""
        if unexpected:
            _check.reject_unexpected(self.ece, unexpected)
        self._check_bins(resolve(estimator, self.notion))
        return measure(self._notion, self._blocks(), estimator, norm)

    def estimate(
        self,
        *,
        estimator: Any = "auto",
        norm: Norm = "l1",
        level: float = 0.95,
        rng: Any = None,
        **unexpected: Any,
    ) -> Estimate:
        """Calibration error with interval, null and test, as `calibrant.estimate` would give.

        A sketch does not know which scores of the classes belong together: interval and p-value
        of the class-wise notion allow for any dependence, and say so (`conservative`).
        """
        if unexpected:
            _check.reject_unexpected(self.estimate, unexpected)
        self._check_bins(resolve(estimator, self.notion))
        column = self.positive if self.notion == "class" else None
        return infer(
            self._notion,
            list(self._blocks()),
            estimator=estimator,
            norm=norm,
            level=level,
            rng=rng,
            labels=self.labels,
            label=None if column is None else self.labels[column],
        )

    def mce(self, *, estimator: Any = "auto", **unexpected: Any) -> float:
        """Maximum calibration error."""
        if unexpected:
            _check.reject_unexpected(self.mce, unexpected)
        return self.ece(estimator=estimator, norm="max")

    def curve(
        self,
        *,
        kernel: Any = "triweight",
        bandwidth: Any = "silverman",
        n_boot: int = 200,
        level: float = 0.95,
        band: str | None = "corrected",
        rng: Any = None,
        progress: Progress | None = None,
    ) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """Reliability curve, as `calibrant.reliability_curve` would give from the rows."""
        estimator = smoothing(bandwidth, kernel)
        return curves(
            self._notion,
            self._blocks(),
            self,
            estimator,
            n_boot=n_boot,
            level=level,
            band=band,
            rng=rng,
            progress=progress,
        )

    def diagram(
        self,
        *,
        binning: str | Binned = "uniform:15",
        mapping: str | None = None,
        interval: str = "wilson",
        level: float = 0.95,
    ) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
        """Reliability diagram, as `calibrant.reliability_diagram` would give from the rows."""
        estimator = binned(binning, mapping)
        self._check_bins(estimator)
        return diagrams(self._notion, self._blocks(), self, estimator, interval=interval, level=level)

    def _check_bins(self, estimator: Any) -> None:
        cells = self._layout.uniform
        if isinstance(estimator, Binned) and (bins := how_many(estimator.n_bins, self.evidence.n)) > cells:
            raise ValueError(
                f"{estimator} asks for {bins} bins, but a sketch keeps {cells} cells; name fewer"
            )

    def __repr__(self) -> str:
        return f"Sketch(notion={self.notion!r}, n={self.n:.15g})"


def _check_scale(weight: Any) -> None:
    """Refuse importance weights whose squares a sum cannot hold: a sketch must keep their scale."""
    for value in (weight.max(), weight[weight > 0].min()):
        if not 1 / HEAVIEST <= value <= HEAVIEST:
            raise ValueError(
                f"sample_weight in a sketch must lie between {1 / HEAVIEST:g} and {HEAVIEST:g}, got {value:g}"
            )
