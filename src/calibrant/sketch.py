"""Sums instead of rows: predictions in any number of pieces, answered for as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import _check, notions
from calibrant.api import binned, each_problem, measure
from calibrant.binning import how_many
from calibrant.estimators import Binned, Density, Norm, resolve
from calibrant.evidence import COARSE, FINE, Cells, Layout, Sample
from calibrant.results import (
    INTERVALS,
    ByClass,
    Progress,
    ReliabilityCurve,
    ReliabilityDiagram,
    fit_curve,
    fit_diagram,
)

# Up to this many problems the fine cells are affordable.
FINE_UP_TO = 20


class Sketch:
    """Calibration of predictions that arrive in pieces, in memory that does not grow with them.

    Parameters
    ----------
    notion : {"class", "classwise", "confidence"}
        What is compared; fixed for the life of the sketch.
    n_classes : int, optional
        Number of columns of the score matrix; learned from the first update otherwise.
    labels, pos_label : optional
        As for `calibrant.ece`.

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
        self._labels: tuple[Any, ...] = ()
        self._positive: int | None = None

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
        data = _check.predictions(y_true, y_prob, sample_weight=sample_weight, **self._given)
        classes = 2 if data.score.ndim == 1 else data.score.shape[1]
        if self._n_classes not in (None, classes):
            raise ValueError(f"y_prob must have {self._n_classes} classes like the sketch, got {classes}")
        layout = self._layout(classes)
        parts = [
            Cells.of(Sample(problem.score, problem.outcome, data.weight, problem.support), layout)
            for problem in self._notion.problems(data)
        ]
        new = parts[0] if not parts[0].batch else Cells.stack(parts)
        self._n_classes = classes
        self._cells = new if self._cells is None else self._cells + new
        self._labels, self._positive = data.labels, data.positive
        return self

    def _layout(self, classes: int) -> Layout:
        return FINE if self.notion != "classwise" or classes <= FINE_UP_TO else COARSE

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
        if self._cells is not None and other._cells is not None and self._asked != other._asked:
            raise ValueError(
                f"sketches must ask about the same class, got {self._asked!r} and {other._asked!r}"
            )
        base, more = (self, other) if self._cells is not None else (other, self)
        total = Sketch.__new__(Sketch)
        total.__dict__.update(base.__dict__)
        if base._cells is not None and more._cells is not None:
            total._cells = base._cells + more._cells
        return total

    @property
    def _asked(self) -> Any:
        if self.notion == "class" and self._positive is not None:
            return self._labels[self._positive]
        return self._labels if self.notion == "classwise" else None

    @property
    def evidence(self) -> Cells:
        """The sums, as evidence that any estimator can read."""
        if self._cells is None:
            raise ValueError("the sketch is empty: call update(y_true, y_prob) first")
        return self._cells

    def ece(self, *, estimator: Any = "auto", norm: Norm = "l1") -> float:
        """Expected calibration error, as `calibrant.ece` would give from the rows."""
        self._check_bins(resolve(estimator, self.notion, self.n))
        return measure(self._notion, [self.evidence], estimator, norm)

    def mce(self, *, estimator: Any = "auto") -> float:
        """Maximum calibration error."""
        return self.ece(estimator=estimator, norm="max")

    def curve(
        self,
        *,
        kernel: Any = "triweight",
        bandwidth: Any = "silverman",
        n_boot: int = 200,
        level: float = 0.95,
        rng: Any = None,
        progress: Progress | None = None,
    ) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """Reliability curve, as `calibrant.reliability_curve` would give from the rows."""
        n_boot, level = _check.positive_int("n_boot", n_boot, minimum=0), _check.level(level)
        estimator, generator = Density(bandwidth, kernel), _check.generator(rng)

        def fit(evidence: Cells, **about: Any) -> ReliabilityCurve:
            return fit_curve(
                evidence, estimator, n_boot=n_boot, level=level, rng=generator, progress=progress, **about
            )

        return self._each(fit)

    def diagram(
        self,
        *,
        binning: str | Binned = "uniform:15",
        mapping: str | None = None,
        interval: str = "wilson",
        level: float = 0.95,
    ) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
        """Reliability diagram, as `calibrant.reliability_diagram` would give from the rows."""
        estimator, level = binned(binning, mapping), _check.level(level)
        _check.check_choice("interval", interval, tuple(INTERVALS))
        self._check_bins(estimator)

        def fit(evidence: Cells, **about: Any) -> ReliabilityDiagram:
            return fit_diagram(evidence, estimator, level=level, interval=interval, **about)

        return self._each(fit)

    def _each(self, fit: Any) -> Any:
        return each_problem(self._notion, [self.evidence], self._labels, self._positive, fit)

    def _check_bins(self, estimator: Any) -> None:
        cells = self._layout(self._n_classes or 2).uniform
        if isinstance(estimator, Binned) and (bins := how_many(estimator.n_bins, self.evidence.n)) > cells:
            raise ValueError(
                f"{estimator} asks for {bins} bins, but a sketch keeps {cells} cells; name fewer"
            )

    def __repr__(self) -> str:
        return f"Sketch(notion={self.notion!r}, n={self.n:.15g})"
