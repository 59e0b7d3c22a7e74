"""Counts are repeated rows; importance weights have no scale and no type."""

import inspect
from functools import partial

import numpy as np
import pytest

import calibrant
from calibrant import Calibrator, Sketch
from shortcuts import compare_estimators

pytestmark = pytest.mark.no_cover

N, RNG = 150, np.random.default_rng(7)
SCORE = np.round(RNG.random(N), 2)
LABEL = (RNG.random(N) < SCORE**1.4).astype(int)
MATRIX = RNG.dirichlet(np.full(3, 0.7), N)
MATRIX[:30] = MATRIX[30:60]
CLASS = (RNG.random((N, 1)) > MATRIX.cumsum(axis=1)).sum(axis=1).clip(0, 2)
OTHER = MATRIX**1.5 / (MATRIX**1.5).sum(axis=1, keepdims=True)
COUNT, CLUSTER = RNG.integers(0, 5, N), RNG.integers(0, 30, N)
ROWS = np.repeat(np.arange(N), COUNT)
GRID = np.linspace(0.005, 0.995, 45)
ESTIMATORS = (
    *("auto", "b:shared", "l:15", "l", "a:10", "c:10", "ac", "d:0.1", "d:silverman", "dbeta", "dbeta2"),
    *("db:15", "sw", "iso", "bc", "bk:0.02", "v", "sm", "ks", "ku"),
)


def numbers(found):
    """Every number of a result, in its order."""
    if hasattr(found, "to_dict"):
        found = found.to_dict()
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [number for part in found for number in numbers(part)]
    if isinstance(found, np.ndarray):
        return found.ravel().tolist()
    return [float(found)] if isinstance(found, int | float | np.number) else []


def same(one, other, **tolerance):
    np.testing.assert_allclose(numbers(one), numbers(other), **({"rtol": 1e-12, "atol": 1e-12} | tolerance))


def curve(y, p, **options):
    """The curve and its band at some scores: its own nodes may differ in the last bit."""
    at = calibrant.reliability_curve(y, p, **options).at(GRID)
    return np.stack([at.value, at.low, at.high])


def mapped(method, y, p, **weights):
    calibrator = Calibrator(method).fit(p, y, **weights)
    at = GRID if p.ndim == 1 else MATRIX[:20]
    return [calibrator.predict_proba(at), *calibrator.predict_interval(at)]


def compared(y, p, q, **options):
    return calibrant.compare(y, {"a": p, "b": q}, rng=0, **options)


SINGLE = {
    "mce": calibrant.mce,
    "diagram": calibrant.reliability_diagram,
    "histogram": calibrant.score_histogram,
    "lce": partial(calibrant.lce, at=0.4),
    "curve": curve,
    "curve with a simultaneous band": partial(curve, band="simultaneous"),
    "curve of densities": partial(curve, method="density", rng=0),
    "curve of densities, bootstrapped": partial(curve, method="density", band="bootstrap", n_boot=20, rng=0),
    "risk and coverage": partial(calibrant.risk_coverage, rng=0),
    "regret": partial(calibrant.regret, cost=(1, 9), rng=0),
    "regret curve": partial(calibrant.regret_curve, rng=0),
    "net benefit": partial(calibrant.net_benefit, thresholds=[0.1, 0.4], simultaneous=True),
    "best threshold": partial(calibrant.best_threshold, cost=(1, 9), rng=0),
    **{f"estimate by {name}": partial(calibrant.estimate, estimator=name, rng=0)
       for name in ("auto", "l:15", "a:10", "db:15", "iso")},
    **{f"map {name}": partial(mapped, name) for name in ("auto", "beta", "isotonic", "venn-abers")},
}  # fmt: skip
CLUSTERED = (
    "estimate by auto",
    "estimate by l:15",
    "regret",
    "regret curve",
    "net benefit",
    "risk and coverage",
)


@pytest.mark.full
@pytest.mark.parametrize("name", SINGLE)
def test_counts_are_repeated_rows_for_every_function(name):
    ask = SINGLE[name]
    # The same numbers are drawn. Maps and bands iterate, and take roots of matrices, which round.
    tolerance = {} if name.startswith("estimate") else {"rtol": 1e-7, "atol": 1e-9}
    same(ask(LABEL, SCORE, counts=COUNT), ask(LABEL[ROWS], SCORE[ROWS]), **tolerance)
    if name in CLUSTERED:
        counted = ask(LABEL, SCORE, counts=COUNT, cluster=CLUSTER)
        same(counted, ask(LABEL[ROWS], SCORE[ROWS], cluster=CLUSTER[ROWS]), **tolerance)


@pytest.mark.full
@pytest.mark.parametrize("estimator", ["auto", "l:15"])
@pytest.mark.parametrize("cluster", [None, CLUSTER], ids=["rows", "clusters"])
def test_counts_are_repeated_rows_for_estimates_of_classes(estimator, cluster):
    asked = {"notion": "classwise", "estimator": estimator, "rng": 0}
    own = {} if cluster is None else {"cluster": cluster[ROWS]}
    counted = calibrant.estimate(CLASS, MATRIX, counts=COUNT, cluster=cluster, **asked)
    tolerance = {} if cluster is None else {"rtol": 1e-9, "atol": 1e-10}
    same(counted, calibrant.estimate(CLASS[ROWS], MATRIX[ROWS], **own, **asked), **tolerance)


@pytest.mark.full
@pytest.mark.parametrize("notion", ["classwise", "confidence"])
def test_counts_are_repeated_rows_for_comparisons(notion):
    counted = compared(CLASS, MATRIX, OTHER, counts=COUNT, notion=notion)
    repeated = compared(CLASS[ROWS], MATRIX[ROWS], OTHER[ROWS], notion=notion)
    same(counted, repeated)


def test_counts_are_repeated_rows_for_comparisons_of_maps():
    asked = {"methods": ["beta", "temperature"], "rng": 0}
    counted = calibrant.compare_calibrators(SCORE, LABEL, counts=COUNT, **asked)
    repeated = calibrant.compare_calibrators(SCORE[ROWS], LABEL[ROWS], **asked)
    assert counted.rows == repeated.rows == COUNT.sum()
    same(counted, repeated, rtol=1e-7, atol=1e-7)


@pytest.mark.usefixtures("without_reference_estimators")
def test_counts_are_repeated_rows_for_assessments():
    counted = calibrant.assess(LABEL, SCORE, counts=COUNT, rng=0)
    repeated = calibrant.assess(LABEL[ROWS], SCORE[ROWS], rng=0)
    assert counted.rows == repeated.rows == counted.n
    assert counted.cautions == repeated.cautions
    assert str(counted) == str(repeated)
    for part in ("estimates", "scores", "accuracy"):
        same(*(found.to_dict()[part] for found in (counted, repeated)), rtol=1e-9, atol=1e-9)


def test_counts_are_repeated_rows_for_recommendations():
    asked = {"estimators": ["auto", "l:15"], "repetitions": 3, "rng": 0}
    same(calibrant.recommend(SCORE, counts=COUNT, **asked), calibrant.recommend(SCORE[ROWS], **asked))


# --- importance weights ----------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("name", SINGLE)
def test_the_type_of_weights_does_not_matter_and_neither_does_their_scale(name):
    ask, weight = SINGLE[name], COUNT + 1
    expected = numbers(ask(LABEL, SCORE, sample_weight=weight.astype(float)))
    for given in (weight, weight.astype(np.uint8), weight.tolist(), weight.astype(np.float32)):
        assert numbers(ask(LABEL, SCORE, sample_weight=given)) == pytest.approx(expected, abs=0, nan_ok=True)
    for scale in (1024, 1000):
        same(ask(LABEL, SCORE, sample_weight=scale * weight), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_type_and_scale_of_weights_do_not_matter_for_any_estimator(name):
    weight = COUNT + 1
    expected = calibrant.ece(LABEL, SCORE, estimator=name, sample_weight=weight.astype(float))
    assert calibrant.ece(LABEL, SCORE, estimator=name, sample_weight=weight) == expected
    scaled = calibrant.ece(LABEL, SCORE, estimator=name, sample_weight=7 * weight)
    assert scaled == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_whole_amounts_of_money_do_not_turn_into_rows():
    rejected = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score, amount = rng.beta(1, 4, 3000), np.ceil(rng.gamma(1.2, 28, 3000)).astype(int)
        found = calibrant.estimate(rng.random(3000) < score, score, sample_weight=amount, rng=0)
        assert found.n == pytest.approx(amount.sum() ** 2 / (amount.astype(float) ** 2).sum())
        rejected += found.p_value < 0.05
    # Binomial with 20 draws of 0.05: five or more are rarer than three in a thousand.
    assert rejected < 5


def test_a_sketch_of_weights_has_the_size_of_the_rows():
    weight = COUNT + 1
    found = Sketch("binary").update(LABEL, SCORE, sample_weight=weight).estimate(rng=0)
    expected = calibrant.estimate(LABEL, SCORE, sample_weight=weight, rng=0)
    assert found.n == pytest.approx(expected.n)
    assert found.p_value == pytest.approx(expected.p_value)


# --- hints and signatures --------------------------------------------------------------------------


def hinted(y, p, weight):
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        lines = calibrant.assess(y, p, sample_weight=weight, rng=0).cautions
    return [line for line in lines if "pass counts instead of sample_weight" in line]


@pytest.mark.full
def test_weights_that_look_like_counts_of_a_table_get_a_hint():
    score = np.repeat(np.arange(1, 11) / 11, 2)
    label = np.tile([0, 1], 10)
    count = np.random.default_rng(0).integers(20, 300, 20)
    (line,) = hinted(label, score, count)
    assert "numbers of rows, " in line
    assert hinted(label, score, count.astype(float)) == [line]
    assert hinted(label, np.stack([1 - score, score], axis=1), count) == [line]
    assert not hinted(label, score, count + 0.5)
    assert not hinted(label, score, np.ones(20, int))
    assert not hinted(np.tile(label, 2), np.tile(score, 2), np.tile(count, 2))  # rows occur twice
    assert not hinted(label, np.linspace(0.1, 0.9, 20), count)  # every score has one label


def test_every_function_of_weights_takes_counts_too():
    public = [getattr(calibrant, name) for name in calibrant.__all__]
    functions = [each for each in public if inspect.isfunction(each)]
    functions += [Calibrator.fit, Sketch.update, Sketch.from_files, Sketch.from_files_by_group]
    functions += [Sketch.from_frame, Sketch.from_frame_by_group]
    found = 0
    for function in functions:
        known = inspect.signature(function).parameters
        assert ("sample_weight" in known) == ("counts" in known), function
        if "counts" in known:
            assert known["counts"].kind is inspect.Parameter.KEYWORD_ONLY
            assert known["counts"].default is None
            found += 1
    assert found >= 18


def test_counts_and_weights_together_are_refused_everywhere():
    both = {"sample_weight": COUNT, "counts": COUNT}
    for ask in (
        *(partial(ask, LABEL, SCORE) for ask in (calibrant.ece, calibrant.assess, calibrant.estimate)),
        partial(calibrant.recommend, SCORE),
        partial(calibrant.compare, LABEL, {"a": SCORE, "b": 1 - SCORE}),
        partial(Calibrator().fit, SCORE, LABEL),
        partial(Sketch().update, LABEL, SCORE),
    ):
        with pytest.raises(calibrant.InputError, match="sample_weight and counts must not be given together"):
            ask(**both)
