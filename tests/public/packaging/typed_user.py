"""A user's code with types: every public name, with the kinds of data that people pass.

`mypy --strict` and pyright check it against an installed package, and a test runs it.
"""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

import matplotlib as mpl
import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

import calibrant
from calibrant import (
    Assessment,
    BestThreshold,
    Calibrator,
    Comparison,
    Cost,
    Estimate,
    EstimateTable,
    MapComparison,
    Monitor,
    NetBenefit,
    Point,
    PriorShift,
    Recommendation,
    Regret,
    RegretCurve,
    ReliabilityCurve,
    ReliabilityDiagram,
    RiskCoverage,
    ScoreHistogram,
    Segment,
    SegmentAudit,
    Sketch,
)

Numbers = NDArray[np.float64]
N = 200
rng = np.random.default_rng(0)
p = rng.random(N)
y = (rng.random(N) < p**1.5).astype(np.int64)
matrix = rng.dirichlet([1.0, 1.0, 1.0], N)
NAMES = ("ham", "spam", "tea")
labels: NDArray[np.str_] = np.array(NAMES)[(matrix.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)]
group: NDArray[np.str_] = np.array(["a", "b"])[rng.integers(0, 2, N)]


def values() -> None:
    """Call the functions that return numbers, with lists, arrays, series and frames."""
    assert_type(calibrant.ece([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), float)
    assert_type(calibrant.ece(["no", "yes", "no"], (0.1, 0.4, 0.35), pos_label="yes"), float)
    assert_type(calibrant.ece(y.tolist(), p.tolist(), n_bins=10, strategy="quantile", norm="l2"), float)
    assert_type(calibrant.ece(y, p, estimator=calibrant.Binned("adaptive", 10), percent=False), float)
    assert_type(calibrant.ece(y > 0, p, estimator="uniform:15", n_bins=None, missing="drop"), float)
    assert_type(calibrant.ece(pl.Series(y), pl.Series(p), sample_weight=pl.Series(p), cluster=y), float)
    assert_type(calibrant.ece(labels, pl.DataFrame(matrix, schema=list(NAMES)), notion="classwise"), float)
    frame = pd.DataFrame({"y": y, "p": p})
    assert_type(calibrant.ece(frame["y"], frame["p"], counts=pd.Series([2] * N)), float)
    assert_type(calibrant.ece(labels, pd.DataFrame(matrix, columns=list(NAMES))), float)
    assert_type(calibrant.mce(y, p, estimator="adaptive:5", counts=[1] * N), float)
    assert_type(calibrant.ece(y, np.log(p / (1 - p)), from_logits=True), float)
    local = calibrant.lce(y, p, at=[0.2, 0.8], method="density", bandwidth=0.1)
    assert local.shape == (2,)
    for estimator in (calibrant.Bayes(), calibrant.Beta(), calibrant.BetaKernel(), calibrant.Isotonic()):
        assert_type(calibrant.ece(y, p, estimator=estimator), float)
    calibrant.ece(y, p, estimator=calibrant.Density(0.1, kernel="gaussian"))
    calibrant.ece(y, p, estimator=calibrant.DensityBeta("scott", kernel="beta"))
    calibrant.ece(y, p, estimator=calibrant.Cumulative("kuiper"))
    calibrant.ece(y, p, estimator=calibrant.Debiased(n_bins=10), norm="l2")
    calibrant.ece(y, p, estimator=calibrant.Sweep(debiased=True))
    calibrant.ece(y, p, estimator=calibrant.Smooth())
    calibrant.ece(y, p, estimator=calibrant.Variational(n_folds=3))

    def mean_gap(score: Numbers, outcome: Numbers, weight: Numbers) -> float:
        return float(abs(np.average(outcome - score, weights=weight)))

    assert_type(calibrant.ece(y, p, estimator=mean_gap), float)
    assert_type(calibrant.estimator_names(vectors=True), tuple[str, ...])
    assert_type(calibrant.calibrator_names(), dict[str, str])
    calibrant.show_versions()
    assert_type(calibrant.__version__, str)


def results() -> None:
    """Read the attributes of an estimate and of what else compares one model with its labels."""
    result = assert_type(calibrant.estimate(y, p, level=0.9, rng=1, n_resamples=99), Estimate)
    interval: tuple[float, float] = result.low, result.high
    assert interval[0] <= result.value <= interval[1]
    assert_type(result.p_value, float)
    assert_type(result.null.mean, float)
    assert_type(result.n, float)
    assert_type(result.over, float | None)
    assert_type(result.cautions, tuple[str, ...])
    assert_type(result.to_dict(), dict[str, Any])
    assert_type(Estimate.from_json(result.to_json()), Estimate)
    classwise = calibrant.estimate(
        labels, matrix, notion="classwise", class_names={"ham": "Ham"}, progress=print
    )
    assert classwise.by_class is not None
    assert_type([each.value for each in classwise.by_class.values()], list[float])

    table = assert_type(calibrant.estimate_by(y, p, group, simultaneous=True, n_resamples=99), EstimateTable)
    assert_type(table.estimates[0].value, float)
    assert_type(table.macro.value, float)
    assert_type(table.to_markdown(), str)
    assert_type(
        [key for key, estimate in table.cells.items() if estimate.p_value < 0.05], list[tuple[Any, ...]]
    )
    calibrant.estimate_by(y, p, {"group": group, "half": np.arange(N) < N / 2}, n_resamples=99)

    segments = assert_type(calibrant.audit(y, p, {"group": group}, depth=1, n_resamples=99), SegmentAudit)
    assert_type(segments.segments, tuple[Segment, ...])
    assert_type([each.gap.value for each in segments.different], list[float])
    for segment in segments.segments:
        assert_type(segment.name, str)

    models = {"one": p, "other": p**2}
    comparison = assert_type(calibrant.compare(y, models, baseline="one", n_resamples=99), Comparison)
    assert_type(comparison.estimates["one"], Estimate)
    assert_type(comparison.differences["other"].value, float)
    assert_type(comparison.baseline, str)
    calibrant.compare(labels, {"one": matrix, "other": matrix[:, ::-1].tolist()}, n_resamples=99)

    best = assert_type(
        calibrant.recommend(p, n=N, estimators=["uniform:15", "auto"], repetitions=10, progress=False),
        Recommendation,
    )
    assert_type(best.best, str)


def curves() -> None:
    """Draw curves; those of one score per row have no class."""
    curve = assert_type(calibrant.reliability_curve(y, p, band="simultaneous"), ReliabilityCurve)
    point = assert_type(curve.at(0.3), Point)
    assert_type(curve.at([0.3, 0.6]).value.tolist(), Any)
    assert curve.low is not None
    assert len(curve.score) == len(curve.value) == len(curve.low)
    assert_type(curve.plot(color="red"), Axes)
    assert point.low <= point.value
    by_class = calibrant.reliability_curve(labels, matrix, notion="classwise")
    assert_type(by_class["ham"], ReliabilityCurve)
    diagram = assert_type(calibrant.reliability_diagram(y, p, n_bins=5), ReliabilityDiagram)
    assert diagram.edges.size == diagram.count.size + 1
    histogram = assert_type(calibrant.score_histogram(labels, matrix, bins=10), ScoreHistogram)
    assert histogram.positive.sum() + histogram.negative.sum() == N
    for each in calibrant.reliability_diagram(labels, matrix, notion="classwise").values():
        assert_type(each, ReliabilityDiagram)
    notion: str = "binary"  # known when the program runs
    found = calibrant.reliability_curve(y, p, notion=notion)
    if isinstance(found, ReliabilityCurve):
        assert_type(found.error, float)


def decisions() -> None:
    """Put costs in every form."""
    regret = assert_type(calibrant.regret(y, p, (1, 9)), Regret)
    assert_type(regret.value, float)
    calibrant.regret(y, p, 0.2)
    calibrant.regret(y, p, "1:9")
    three = calibrant.regret(labels, matrix, [[0, 1], [2, 0], [1, 1]], actions=["wait", "act"])
    assert_type(three.actions, tuple[str, ...])
    assert_type(calibrant.net_benefit(y, p, [0.1, 0.2]), NetBenefit)
    curve = assert_type(calibrant.regret_curve(y, p, thresholds=[0.1, 0.2], other=p**2), RegretCurve)
    assert curve.difference is not None
    assert_type(curve.worst.threshold, float)
    threshold = assert_type(calibrant.best_threshold(y, p, (1, 9)), BestThreshold)
    assert_type(threshold.gain, float)
    selective = assert_type(calibrant.risk_coverage(labels, matrix), RiskCoverage)
    assert_type(selective.aurc.value, float)
    assert_type(selective.accuracy_at(0.5).value, float)
    assert_type(selective.coverage_at(0.5).value, float)
    assert_type(Cost.of((1, 9), ["no", "yes"]), Cost)


def assessment() -> Assessment:
    """Assess a model and write a report."""
    whole = assert_type(calibrant.assess(y, p, groups=group, cost=0.2, name="model"), Assessment)
    assert_type(whole.estimate, Estimate)
    assert_type(whole.verdict.headline, str)
    assert_type(whole.summary, str)
    assert_type(whole.to_html(), str)
    assert_type(Assessment.from_json(whole.to_json()), Assessment)
    with tempfile.TemporaryDirectory() as folder:
        whole.to_html(Path(folder) / "report.html")
    if whole.recalibration is not None:
        assert_type(whole.recalibration.gain.value, float)
    return whole


def calibrators() -> None:
    """Fit, compare, save and export calibrators."""
    calibrator = assert_type(Calibrator("isotonic", monotone="auto").fit(p, y, cluster=group), Calibrator)
    assert_type(calibrator.predict_proba(p.tolist()).tolist(), Any)
    low, high = calibrator.predict_interval(p, level=0.9)
    assert (low <= high).all()
    assert_type(calibrator.n_, float)
    assert_type(calibrator.method, str)
    assert_type(calibrator.classes_[0], Any)
    with tempfile.TemporaryDirectory() as folder:
        calibrator.save(Path(folder) / "map.json")
        assert_type(Calibrator.load(f"{folder}/map.json"), Calibrator)
    assert_type(Calibrator("platt").fit(p, y).to_sql("score", dialect="sqlite"), str)
    assert_type(Calibrator("platt").fit(p, y).to_python(), str)
    maps = calibrant.compare_calibrators(p, y, methods=["platt", "beta"], cv=3, progress=True)
    assert_type(maps, MapComparison)
    assert_type(maps.best, str | None)
    difference = maps["beta"].log_loss.difference
    if difference is not None:
        assert_type(difference.low, float)
    shift = assert_type(PriorShift(0.5, 0.1).fit(p), PriorShift)
    assert shift.predict_proba(p).shape == (N,)
    PriorShift([0.2, 0.3, 0.5], {"ham": 0.5, "spam": 0.3, "tea": 0.2}, labels=list(NAMES))


def sketches() -> None:
    """Sum rows up, in memory and from a frame, and ask for the same results."""
    sketch = assert_type(Sketch().update(y[:50], p[:50]).update(y[50:], p[50:]), Sketch)
    assert_type(calibrant.ece(sketch), float)
    assert_type(sketch.ece(estimator="uniform:15"), float)
    assert_type(sketch + sketch, Sketch)
    assert_type(calibrant.estimate(sketch, n_resamples=99), Estimate)
    assert_type(calibrant.assess(sketch), Assessment)
    frame = pl.DataFrame({"y": y, "p": p, "g": group})
    assert_type(Sketch.from_frame(frame, label="y", scores="p", pos_label=1), Sketch)
    groups = Sketch.from_frame_by_group(frame, label="y", scores=["p"], groups="g", pos_label=1)
    assert_type(groups, dict[Any, Sketch])
    calibrant.assess(sketch, groups=groups)
    calibrant.compare({"all": sketch, "again": sketch}, n_resamples=99)
    with tempfile.TemporaryDirectory() as folder:
        sketch.save(f"{folder}/a.sketch")
        assert_type(Sketch.load(Path(folder) / "a.sketch"), Sketch)
        frame.write_csv(f"{folder}/a.csv")
        assert_type(Sketch.from_files(f"{folder}/a.csv", label="y", scores="p"), Sketch)


def monitors() -> None:
    """Watch a stream of batches."""
    monitor = Monitor("binary", alpha=0.01, delay=timedelta(days=1))
    assert_type(monitor.update(y, p, at="2026-01-01"), Monitor)
    assert_type(monitor.e_value, float)
    assert_type(monitor.sentence, str)
    assert_type(Monitor.from_dict(monitor.to_dict()), Monitor)
    assert_type(monitor.to_html(), str)


def with_sklearn() -> None:
    """Recalibrate a model of scikit-learn."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped, unused-ignore]

    from calibrant.sklearn import CalibratedModel, ReliabilityDisplay, neg_ece_scorer

    X = rng.normal(size=(N, 3))
    model: CalibratedModel = CalibratedModel(LogisticRegression(), method="platt", cv=3).fit(X, y)
    low, high = model.predict_interval(X)
    assert (low <= model.predict_proba(X)).all()
    assert (model.predict_proba(X) <= high).all()
    display = assert_type(ReliabilityDisplay.from_predictions(y, p, n_bins=10), ReliabilityDisplay)
    assert display.ax_ is not None
    assert neg_ece_scorer("confidence", estimator="uniform:15")(model, X, y) <= 0


def plots(whole: Assessment) -> None:
    """Call the functions of `calibrant.plot`."""
    curve = calibrant.reliability_curve(y, p)
    assert_type(calibrant.plot.curve(curve, figsize=(4, 4), scale="log-odds"), Axes)
    calibrant.plot.overlay(curve, calibrant.reliability_diagram(y, p))
    calibrant.plot.models({"one": curve, "other": whole})
    calibrant.plot.estimators({"one": calibrant.estimate(y, p, n_resamples=99)})
    calibrant.plot.groups(whole)
    calibrant.plot.diagram(whole, histogram=False)
    calibrant.plot.local_error(whole)
    calibrant.plot.risk_coverage(calibrant.risk_coverage(labels, matrix))
    calibrant.plot.score_histograms(calibrant.score_histogram(y, p))
    calibrant.plot.small_multiples(calibrant.reliability_curve(labels, matrix, notion="classwise"))
    calibrant.plot.segments(calibrant.audit(y, p, group, depth=1, n_resamples=99))
    calibrant.plot.compare(calibrant.compare(y, {"one": p, "other": p**2}, n_resamples=99))
    calibrant.plot.regret(calibrant.regret_curve(y, p))


def errors() -> str:
    """Read what an error says."""
    try:
        calibrant.ece([0, 1], [0.5, 1.5])
    except calibrant.InputTypeError:
        raise
    except calibrant.InputError as error:
        assert_type(error.row, int | None)
        return f"{error.argument} must {error.rule}, got {error.value!r}; {error.hint}"
    return ""


def main() -> None:
    """Run everything."""
    mpl.use("agg")
    values()
    results()
    curves()
    decisions()
    calibrators()
    sketches()
    monitors()
    with_sklearn()
    plots(assessment())
    assert errors().startswith("y_prob must lie in [0, 1]")


if __name__ == "__main__":
    main()
