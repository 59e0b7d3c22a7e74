"""Estimators of canonical calibration: against slow loops, and what must not change them."""

import numpy as np
import pytest

import calibrant
from calibrant import BetaKernel, InputError, InputTypeError, Variational, estimator_names
from calibrant.estimators import Estimator, Fit, resolve
from calibrant.estimators.base import CANONICAL_NORMS
from calibrant.estimators.canonical import dirichlet as dirichlet_file
from calibrant.estimators.canonical import variational
from calibrant.estimators.canonical.dirichlet import CanonicalDirichlet
from calibrant.estimators.canonical.skce import Skce, median_distance
from calibrant.estimators.canonical.variational import CanonicalVariational, gains, held_out, lower_bound
from calibrant.score_data import Sample
from calibrant.score_data.simplex import Simplex
from oracles import simplex as oracle

# Every estimator appears here; a new one fails the first test until it does.
SPECS = {
    "dirichlet": ("dirichlet", "dirichlet:0.05"),
    "softmax": ("auto",),
    "variational": ("variational:temperature", "variational:isotonic:3"),
    "skce": ("skce", "skce:8"),
}
ALL = [spec for specs in SPECS.values() for spec in specs]


def drawn(seed, n, classes, *, zeros=False):
    """Rows with a gap; with `zeros` few distinct vectors, some scores exactly 0."""
    rng = np.random.default_rng(seed)
    if zeros:
        p = rng.multinomial(6, np.full(classes, 1 / classes), n) / 6
    else:
        p = rng.dirichlet(np.full(classes, 0.7), n)
    eta = 0.6 * p + 0.4 / classes
    return p, (rng.random((n, 1)) >= eta.cumsum(axis=1)[:, :-1]).sum(axis=1)


def as_rows(rows):
    """Rows as the loops want them, in their own order."""
    found = []
    for p, y, w, s in zip(rows.score.tolist(), rows.code.tolist(), rows.weight, rows.square, strict=True):
        count = round(w) if w == s else 1
        found += [(p, y, w / count)] * count
    return found


def resolve_canonical(estimator):
    return resolve(estimator, vectors=True)


def errors(spec, rows):
    fit = resolve_canonical(spec).fit(rows)
    return np.array([fit.error(norm) for norm in fit.estimator.norms])


def test_every_estimator_is_tested_here():
    assert set(estimator_names(vectors=True)) == set(SPECS)


@pytest.mark.parametrize("zeros", [False, True])
def test_dirichlet_kernels_are_those_of_a_loop(zeros):
    rows = Simplex.of(*drawn(0, 25, 3, zeros=zeros))
    fit = CanonicalDirichlet(0.08).fit(rows)
    expected = as_rows(rows)
    # Where a score is 0 the density is taken at half of the least other one.
    found = oracle.dirichlet(expected, 0.08, 1e-3 if zeros else 0.0)
    wanted = oracle.distances(expected, found)
    assert [fit.error(norm) for norm in CANONICAL_NORMS] == pytest.approx(wanted, rel=1e-9)


def test_the_bandwidth_is_the_likeliest_and_ties_do_not_make_it_a_spike():
    p, y = drawn(1, 20, 3)
    rows = Simplex.of(p, y)
    tried = [oracle.likelihood(as_rows(rows), h) for h in dirichlet_file.TRIED]
    best = dirichlet_file.TRIED[int(np.argmax(tried))]
    step = dirichlet_file.TRIED[1] / dirichlet_file.TRIED[0]
    assert best / step < CanonicalDirichlet().fit(rows).bandwidth < best * step
    twice = Simplex.of(np.concatenate([p, p]), np.concatenate([y, y[::-1]]))
    assert CanonicalDirichlet().fit(twice).bandwidth == pytest.approx(
        CanonicalDirichlet().fit(rows).bandwidth
    )


def test_with_two_classes_dirichlet_is_the_beta_kernel():
    p, y = drawn(2, 60, 2)
    beta = BetaKernel(0.05).fit(Sample(p[:, 1], y == 1))
    fit = CanonicalDirichlet(0.05).fit(Simplex.of(p, y))
    assert fit.error("l1") == pytest.approx(2 * float(beta.error("l1")), rel=1e-9)
    assert fit.error("mul") == pytest.approx(float(beta.error("l1")), rel=1e-9)
    assert fit.error("l2") == pytest.approx(np.sqrt(2) * float(beta.error("l2")), rel=1e-9)


def test_blocks_of_kernels_change_nothing(monkeypatch):
    rows = Simplex.of(*drawn(3, 70, 4, zeros=True))
    before = CanonicalDirichlet().fit(rows)
    monkeypatch.setattr(dirichlet_file, "HELD", 200)
    after = CanonicalDirichlet().fit(rows)
    assert after.bandwidth == pytest.approx(before.bandwidth)
    assert after.frequency == pytest.approx(before.frequency)


@pytest.mark.parametrize("weighted", [False, True])
def test_skce_is_that_of_a_loop(weighted):
    p, y = drawn(4, 40, 3, zeros=not weighted)
    weight = np.random.default_rng(0).random(40) + 0.5 if weighted else None
    rows = Simplex.of(p, y, weight, counts=weight is None)
    cuts = rows.folds(round(rows.n / 10))
    assert len(cuts) > 2
    blocks = [as_rows(rows[part]) for part in cuts]
    assert Skce(10).fit(rows).error() == pytest.approx(
        oracle.skce(blocks, median_distance(rows.score)), rel=1e-9
    )
    pairs = [np.linalg.norm(a - b) for a in rows.score for b in rows.score if (a != b).any()]
    assert median_distance(rows.score) == pytest.approx(np.median(pairs))


def test_skce_is_negative_where_residuals_point_away_from_each_other():
    score = np.array([[0.5, 0.5], [0.5 + 1e-6, 0.5 - 1e-6]])
    fit = Skce().fit(Simplex.of(score, np.array([0, 1])))
    assert fit.error() < -0.1
    assert not fit.estimator.measures_ece


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_variational_error_is_that_of_a_loop(norm):
    rows = Simplex.of(*drawn(5, 240, 3))
    fit = CanonicalVariational("temperature", 4).fit(rows)
    parts = rows.folds(4)
    assert len(parts) == 4
    found = []
    for part in parts:
        rest = np.r_[0 : part.start, part.stop : len(rows.code)]
        learned = calibrant.Calibrator("temperature", labels=[0, 1, 2])
        learned.fit(rows.score[rest], rows.code[rest])
        found.append(learned.predict_proba(rows.score[part]))
    each = oracle.gains(as_rows(rows), np.concatenate(found).tolist(), norm)
    mean = np.mean(each)
    assert mean > 0
    assert fit.error(norm) == pytest.approx(mean if norm == "l1" else np.sqrt(mean), rel=1e-9)
    assert lower_bound(rows, fit.held_out, norm, 0.95) < fit.error(norm)


@pytest.mark.parametrize("norm", CANONICAL_NORMS)
def test_the_bound_is_below_the_truth_on_average_and_the_truth_by_the_right_map(norm):
    """By exact expectation over labels, whatever is held out."""
    rng = np.random.default_rng(6)
    p, eta, x = (rng.dirichlet(np.ones(4), 50) for _ in range(3))

    def expected(held):
        total = np.zeros(50)
        for k in range(4):
            rows = Simplex(p, np.full(50, k), *[np.ones(50)] * 2, *[np.arange(50)] * 2)
            total += eta[:, k] * gains(rows, held, norm)
        return total

    gap = np.abs(eta - p)
    truth = {"l1": gap, "l2": gap**2, "mul": eta * gap}[norm].sum(axis=1)
    assert (expected(x) <= truth + 1e-12).all()
    right = expected(eta)
    if norm == "mul":
        assert ((right > 0) & (right < truth)).all()
        assert right.mean() > 0.4 * truth.mean()
    else:
        assert right == pytest.approx(truth)
    rows = Simplex(p, np.zeros(50, int), *[np.ones(50)] * 2, *[np.arange(50)] * 2)
    assert gains(rows, x, norm) == pytest.approx(oracle.gains(as_rows(rows), x.tolist(), norm))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("top", [0.5, 0.9, 0.99])
def test_few_rows_that_say_anything_do_not_make_a_bound(count, top):
    """A calibrated model, the map wrong about some rows: bounds above 0 are rarer than they may be."""
    rng = np.random.default_rng(7)
    p = np.tile([top, 1 - top], (200, 1)) + 1e-6 * np.arange(200)[:, None] * [1, -1]
    x = p.copy()
    x[:count] += [0.5 * (1 - top), -0.5 * (1 - top)]
    above = 0
    for _ in range(300):
        rows = Simplex(p, (rng.random(200) > p[:, 0]).astype(int), *[np.ones(200)] * 2, *[np.arange(200)] * 2)
        above += lower_bound(rows, x, "l1", 0.95) > 0
    assert above <= 25


@pytest.mark.parametrize("factor", [variational.BOUND_ERROR_FACTOR, 1.0])
def test_folds_that_learn_noise_from_each_other_do_not_make_a_bound(factor, monkeypatch):
    monkeypatch.setattr(variational, "BOUND_ERROR_FACTOR", factor)
    rng = np.random.default_rng(8)
    above = 0
    for _ in range(300):
        p = rng.dirichlet(np.ones(4), 600)
        y = (rng.random((600, 1)) >= p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        rows = Simplex(p, y, *[np.ones(600)] * 2, *[np.arange(600)] * 2)
        rest = (np.eye(4)[y] - p).reshape(5, 120, 4).sum(axis=1)
        x = p + np.repeat(rest.sum(axis=0) - rest, 120, axis=0) / 480
        above += lower_bound(rows, x) > 0
    assert above >= 20 if factor == 1.0 else above <= 15


def test_a_bound_falls_with_the_level_and_follows_the_error():
    rows = Simplex.of(*drawn(8, 2000, 3))
    fit = CanonicalVariational("vector").fit(rows)
    bounds = [lower_bound(rows, fit.held_out, "l1", level) for level in (0.8, 0.95, 0.99)]
    assert bounds == sorted(bounds, reverse=True)
    truth = 0.4 * np.abs(rows.score - 1 / 3).sum(axis=1).mean()
    assert 0.6 * truth < bounds[1] < truth
    with pytest.raises(InputError, match="level"):
        lower_bound(rows, fit.held_out, "l1", 95)


@pytest.mark.parametrize("spec", ALL)
def test_scores_that_differ_by_rounding_do_not_tell_the_order_of_rows(spec):
    rng = np.random.default_rng(0)
    p = np.round(rng.dirichlet(np.ones(3), 200), 1) + 0.1
    p *= rng.uniform(0.5, 2, (200, 1))
    p /= p.sum(axis=1, keepdims=True)
    y, order = rng.integers(3, size=200), rng.permutation(200)
    again = errors(spec, Simplex.of(p[order], y[order]))
    assert again == pytest.approx(errors(spec, Simplex.of(p, y)), abs=1e-9)


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("zeros", [False, True])
def test_neither_order_nor_repetition_nor_precision_matters(spec, zeros):
    p, y = drawn(9, 60, 3, zeros=zeros)
    expected = errors(spec, Simplex.of(p, y))
    shuffled = np.random.default_rng(0).permutation(60)
    assert errors(spec, Simplex.of(p[shuffled], y[shuffled])) == pytest.approx(expected, rel=1e-9)
    count = np.random.default_rng(1).integers(1, 4, 60)
    counted = errors(spec, Simplex.of(p, y, count))
    assert errors(spec, Simplex.of(np.repeat(p, count, axis=0), np.repeat(y, count))) == pytest.approx(
        counted
    )
    alike = errors(spec, Simplex.of(p, y, np.full(60, 7.5), counts=False))
    assert alike == pytest.approx(expected)
    # In single precision rows come in an order of their own, but what looks at pairs alone stays.
    if spec == "dirichlet:0.05":
        assert errors(spec, Simplex.of(p.astype(np.float32), y)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("case", ["one row", "two rows", "one class", "one vector", "certain", "two classes"])
def test_little_to_look_at_gives_a_number(spec, case):
    p, y = drawn(10, 40, 3)
    if case in ("one row", "two rows"):
        p, y = p[: 1 + (case == "two rows")], y[: 1 + (case == "two rows")]
    elif case == "one class":
        y = np.zeros(40, int)
    elif case == "one vector":
        p = np.tile(p[0], (40, 1))
    elif case == "certain":
        p = np.eye(3)[y]
    else:
        p, y = drawn(10, 40, 2)
    found = errors(spec, Simplex.of(p, y))
    assert np.isfinite(found).all()
    if case == "certain" and spec != "auto":  # a posterior allows for a gap that 40 rows do not show
        assert found == pytest.approx(0, abs=1e-4)
    if case == "one vector" and spec.startswith("variational"):
        gap = np.bincount(y, minlength=3) / 40 - p[0]
        assert found == pytest.approx([np.abs(gap).sum(), np.sqrt((gap**2).sum())])


def test_a_single_row_speaks_for_itself():
    rows = Simplex.of(np.array([[0.2, 0.3, 0.5]]), np.array([1]))
    assert errors("dirichlet", rows) == pytest.approx([1.4, np.sqrt(0.04 + 0.49 + 0.25), 0.7])


def test_maps_of_importance_weights_are_those_of_the_weights():
    p, y = drawn(11, 80, 3)
    weight = np.random.default_rng(0).random(80) + 0.1
    rows = Simplex.of(p, y, weight, counts=weight is None)
    parts = rows.folds(2)
    found = held_out(rows, "temperature", parts)
    rest = np.r_[parts[1]]
    learned = calibrant.Calibrator("temperature", labels=[0, 1, 2])
    learned.fit(rows.score[rest], rows.code[rest], rows.weight[rest])
    assert found[parts[0]] == pytest.approx(learned.predict_proba(rows.score[parts[0]]), rel=1e-6)


def test_names_are_read_and_printed():
    for spec in ALL:
        assert resolve_canonical(str(resolve_canonical(spec))) == resolve_canonical(spec)
    assert resolve_canonical("variational") == resolve_canonical("variational:5") == CanonicalVariational()
    assert resolve_canonical("variational:3") == CanonicalVariational(n_folds=3)
    assert resolve_canonical(CanonicalDirichlet(0.1)) == resolve_canonical("dirichlet:0.1")
    assert resolve_canonical("auto") == resolve_canonical(estimator_names(vectors=True)[0])
    # With one score at a time, it is the number of folds.
    assert resolve("variational:3") == Variational(3)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (
            "uniform:15",
            "be an estimator of canonical calibration: 'auto', .*; uniform:15 is an estimator of one score",
        ),
        ("v", "v is an estimator of one score"),
        (BetaKernel(0.1), "beta-kernel:0.1 is an estimator of one score"),
        ("dirichelt", "did you mean 'dirichlet'"),
        ("dirichlet:", "a parameter after its colon"),
        ("dirichlet:-1", "bandwidth must be a number of at least 1e-05, got '-1' in 'dirichlet:-1'"),
        ("dirichlet:wide", "bandwidth must be one of 'likelihood'"),
        ("auto:3", '"auto" without a parameter'),
        ("softmax:3", '"softmax" without a parameter'),
        ("skce:x", "the size of blocks must be an integer"),
        ("skce:1", "block must be an integer of at least 2"),
        ("variational:nothing", "map must be one of 'auto'"),
        ("variational:vector:x", "the number of folds must be an integer"),
        ("variational:1", "n_folds must be an integer of at least 2"),
    ],
)
def test_other_estimators_are_refused_in_words(estimator, words):
    with pytest.raises(InputError, match=words):
        resolve_canonical(estimator)


def test_values_that_are_no_estimators_are_refused():
    with pytest.raises(InputTypeError, match="of an estimator of canonical calibration"):
        resolve_canonical(15)


def test_norms_that_are_not_defined_are_refused():
    rows = Simplex.of(*drawn(12, 30, 3))
    with pytest.raises(InputError, match="skce defines norm 'l1'"):
        Skce().fit(rows).error("l2")
    with pytest.raises(InputError, match="norm must be one of 'l1', 'l2', 'mul', got 'max'"):
        CanonicalDirichlet().fit(rows).error("max")
    with pytest.raises(InputError, match="map must be one of"):
        CanonicalVariational("vector").fit(Simplex.of(*drawn(12, 30, 2)))


def test_an_error_that_can_be_none_is_refused():
    class Broken(Estimator):
        vectors = True
        name = "broken"

        def fit(self, rows):
            return BrokenFit(self)

    class BrokenFit(Fit):
        def _error(self, norm):
            return {"l1": float("nan"), "l2": -0.1, "mul": 2.5}[norm]

    fit = resolve_canonical(Broken()).fit(Simplex.of(*drawn(0, 5, 3)))
    for norm in CANONICAL_NORMS:
        with pytest.raises(
            InputError, match="the estimator broken must return a finite error of at least 0 and at most 2"
        ):
            fit.error(norm)
    with pytest.raises(InputError, match="without a parameter"):
        Broken.parse("3")


def test_the_information_of_very_many_rows_is_positive_definite():
    """Rounded to single floats, counts of a million rows left negative eigenvalues and no answer."""
    rng = np.random.default_rng(0)
    score = np.where(
        rng.random((120, 1)) < 0.7, np.eye(4)[rng.integers(0, 4, 120)], rng.dirichlet(np.full(4, 0.5), 120)
    )
    label, counts = rng.integers(0, 4, 120), np.rint(10 ** rng.uniform(0, 5, 120)).astype(int)
    assert 0 < calibrant.ece(label, score, notion="canonical", norm="l2", counts=counts) < 1
