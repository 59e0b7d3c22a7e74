"""The questions that a sketch answers."""

from __future__ import annotations

from typing import Any

from calibrant import inputs
from calibrant.assessment import Assessment
from calibrant.assessment.sketched import assess_sums
from calibrant.curves.answers import binned, curves, diagrams, local_error, measure, smoothing
from calibrant.curves.curve import ByClass, Progress, ReliabilityCurve, ReliabilityDiagram
from calibrant.curves.histogram import ScoreHistogram, histograms
from calibrant.estimators import Binned, Estimator, Norm, resolve
from calibrant.inference import Estimate, infer
from calibrant.sketch.summed import Summed


class Answered(Summed):
    """Sums, and what follows from them, as the functions of the same names would give it from the rows."""

    @inputs.helpful
    def ece(self, *, estimator: Any = "auto", norm: Norm = "l1") -> float:
        """Expected calibration error, as `calibrant.ece` would give from the rows."""
        self._check_bins(resolve(estimator, shared=self._notion.several))
        return measure(self._notion, self._blocks(), estimator, norm)

    @inputs.helpful
    def estimate(
        self,
        *,
        estimator: Any = "auto",
        norm: Norm = "l1",
        level: float = 0.95,
        rng: Any = None,
    ) -> Estimate:
        """Calibration error with interval, null and test, as `calibrant.estimate` would give.

        A sketch does not know which scores of the classes belong together: interval and p-value
        of the class-wise notion allow for any dependence, and say so (`conservative`).
        """
        self._check_bins(resolve(estimator, shared=self._notion.several))
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

    @inputs.helpful
    def assess(
        self,
        *,
        class_names: Any = None,
        name: str | None = None,
        level: float = 0.95,
        rng: Any = None,
        command: str | None = None,
        progress: Progress | None = None,
    ) -> Assessment:
        """Assess the scores by the notion of the sketch, as `calibrant.assess` does by all of them.

        What needs rows is left out: other notions, groups, and the log loss over several classes. The
        class-wise interval is conservative.

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant import Sketch
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(1000)
        >>> found = Sketch("class").update(rng.random(1000) < score**2, score).assess(rng=0)
        >>> print(found.verdict)
        Scores of class 1 too high by ... points (95 %: ...); a calibrated model of this size would read ...
        """
        return assess_sums(
            self,
            class_names=class_names,
            name=name,
            level=level,
            rng=rng,
            command=command,
            progress=progress,
            fits=self._fits,
        )

    @inputs.helpful
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

    @inputs.helpful
    def lce(self, at: Any, *, kernel: Any = "triweight", bandwidth: Any = "silverman") -> Any:
        """Local calibration error at given scores, as `calibrant.lce` would give from the rows."""
        return local_error(
            inputs.scores("at", at), self.curve(kernel=kernel, bandwidth=bandwidth, n_boot=0, band=None)
        )

    def histogram(self, *, bins: int = 50) -> ScoreHistogram | ByClass[ScoreHistogram]:
        """Scores by outcome, as `calibrant.score_histogram` would count the rows.

        A cell that an edge divides goes to the side of its mean; no edge of 10, 20, 30 or 40 bins does.
        """
        return histograms(self._notion, self._blocks(), self, bins)

    def _check_bins(self, estimator: Estimator) -> None:
        cells, bins = self._layout.uniform, estimator.n_bins_at(self._held.n)
        if bins is not None and bins > cells:
            raise ValueError(
                f"{estimator} asks for {bins} bins, but a sketch keeps {cells} cells; name fewer"
            )

    def _fits(self, estimator: str) -> bool:
        """Whether an estimator asks for no more bins than there are cells."""
        try:
            self._check_bins(resolve(estimator, shared=self._notion.several))
        except ValueError:
            return False
        return True
