"""Properties that every estimator of the registry keeps, from rows, cells and merged cells alike."""

import ast
import importlib.util
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import Binned, Density, Sketch, estimator_names
from calibrant.estimators import FIFTEEN, describe, parse, register, registry, resolve
from calibrant.estimators.base import Estimator, ValueFit
from calibrant.estimators.binned import adaptive_edges
from calibrant.score_data import COARSE, FINE, Cells, Sample

pytestmark = pytest.mark.no_cover

NORMS = ("l1", "l2", "max")
NOTIONS = ("binary", "classwise", "confidence")
# Specifications of every family of the registry: without a parameter unless listed here.
SPECS = {entry.name: (entry.short,) for entry in describe()} | {
    "uniform": ("l:10", "l:30", "l:sqrt", "l:1"),
    "adaptive": ("a:10", "a:30", "a:sqrt"),
    "uniform-convex": ("c:10", "c:30", "c:sqrt"),
    "adaptive-convex": ("ac:10", "ac:30", "ac:sqrt"),
    "density": ("d:0.033", "d:0.1", "d:silverman", "d:scott", "d:isj"),
    "density-beta": ("dbeta", "dbeta:0.002", "dbeta:scott:each"),
    "density-beta2": ("dbeta2", "dbeta2:0.002"),
    "bayes": ("b", "b:shared"),
    "debiased": ("db:15", "db:5", "db:sqrt"),
    "sweep": ("sw", "sw:debiased"),
    "beta-kernel": ("bk", "bk:0.02"),
    "variational": ("v", "v:3"),
}
VALUES = (
    Binned("uniform", 10, "published"),
    Density("silverman", "gaussian"),
    Density(0.05, "epanechnikov"),
    Density(0.05, "cosine"),
)
LISTED = [name for names in SPECS.values() for name in names]
# CALIBRANT_ESTIMATORS="mg mg:3" tests these alone, while they are written.
ALL = os.environ.get("CALIBRANT_ESTIMATORS", "").split() or [*LISTED, *VALUES]
# The weights the paper prints jump at a bin centre, and ISJ's root may jump between two candidates.
SMOOTH = [spec for spec in ALL if spec not in (VALUES[0], "d:isj")]


# A posterior mean lies between the data and no gap at all.
SHRINKING = {"b", "b:shared"}
# Debiasing may take more off one norm than off another.
UNORDERED = {"db:15", "db:5", "db:sqrt", "sw:debiased"}


def defined(spec):
    """Norms that an estimator has."""
    return resolve(spec).norms


def everything(labels, scores, notion, specs=None, norms=NORMS, **options):
    pos_label = {"pos_label": 1} if notion == "binary" else {}
    return np.array(
        [
            calibrant.ece(labels, scores, notion=notion, estimator=spec, norm=norm, **pos_label, **options)
            for spec in (ALL if specs is None else specs)
            for norm in norms
            if norm in defined(spec)
        ]
    )


def random_matrix(rng, n, classes, *, discrete=False):
    if discrete:
        scores = rng.multinomial(20, np.full(classes, 1 / classes), n) / 20
    else:
        scores = rng.dirichlet(np.full(classes, 0.5), n)
    labels = (rng.random((n, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, classes - 1)
    return labels, scores


seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12, deadline=None)


def test_every_family_of_the_registry_is_tested_here():
    assert set(estimator_names()) == set(SPECS)
    assert all(resolve(spec) for spec in ALL)
    assert {parse(name) for name in FIFTEEN} <= {parse(spec) for spec in LISTED}


@pytest.mark.parametrize("spec", ALL, ids=str)
@pytest.mark.parametrize("notion", NOTIONS)
def test_errors_lie_between_zero_and_one_and_norms_are_ordered(spec, notion):
    labels, scores = random_matrix(np.random.default_rng(3), 120, 4)
    values = everything(labels, scores, notion, [spec])
    assert np.all((values >= 0) & (values <= 1))
    if spec not in UNORDERED:
        assert np.all(values[:-1] <= values[1:] * (1 + 1e-6) + 1e-9)


def test_a_norm_that_an_estimator_does_not_define_is_refused():
    for spec in ALL:
        for norm in set(NORMS) - set(defined(spec)):
            with pytest.raises(ValueError, match=f"defines norm .* got '{norm}'"):
                calibrant.ece([0, 1], [0.2, 0.7], estimator=spec, norm=norm)


@pytest.mark.no_cover
@few
@given(seeds, st.integers(1, 40), st.sampled_from(NOTIONS), st.booleans())
def test_the_order_of_rows_does_not_matter(seed, n, notion, discrete):
    rng = np.random.default_rng(seed)
    labels, scores = random_matrix(rng, n, 3, discrete=discrete)
    shuffled = rng.permutation(n)
    before = everything(labels, scores, notion)
    after = everything(labels[shuffled], scores[shuffled], notion)
    np.testing.assert_allclose(after, before, atol=1e-9)


@pytest.mark.no_cover
@few
@given(seeds, st.integers(1, 40), st.sampled_from(("classwise", "confidence")))
def test_the_order_of_classes_does_not_matter(seed, n, notion):
    rng = np.random.default_rng(seed)
    labels, scores = random_matrix(rng, n, 4)
    order = rng.permutation(4)
    before = everything(labels, scores, notion)
    after = everything(np.argsort(order)[labels], scores[:, order], notion)
    np.testing.assert_allclose(after, before, atol=1e-9)


@pytest.mark.no_cover
@few
@given(seeds, st.integers(1, 30), st.sampled_from(NOTIONS), st.booleans())
def test_counts_mean_repetition(seed, n, notion, discrete):
    rng = np.random.default_rng(seed)
    labels, scores = random_matrix(rng, n, 3, discrete=discrete)
    count = rng.integers(0, 4, n)
    count[0] = 1
    weighed = everything(labels, scores, notion, counts=count)
    repeated = everything(np.repeat(labels, count), np.repeat(scores, count, axis=0), notion)
    np.testing.assert_allclose(weighed, repeated, atol=1e-9)


@pytest.mark.no_cover
@few
@given(seeds, st.integers(2, 30), st.sampled_from(NOTIONS), st.floats(1e-3, 1e3))
def test_importance_weights_are_free_of_scale(seed, n, notion, scale):
    rng = np.random.default_rng(seed)
    labels, scores = random_matrix(rng, n, 3)
    weight = rng.random(n) + 0.1
    before = everything(labels, scores, notion, SMOOTH, sample_weight=weight)
    after = everything(labels, scores, notion, SMOOTH, sample_weight=scale * weight)
    np.testing.assert_allclose(after, before, atol=1e-7)


@pytest.mark.no_cover
@few
@given(seeds, st.integers(2, 30), st.sampled_from(NOTIONS), st.sampled_from((0.1, 1.0, 3.7)))
def test_equal_importance_weights_change_nothing(seed, n, notion, weight):
    labels, scores = random_matrix(np.random.default_rng(seed), n, 3)
    before = everything(labels, scores, notion, SMOOTH)
    after = everything(labels, scores, notion, SMOOTH, sample_weight=np.full(n, weight))
    np.testing.assert_allclose(after, before, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("notion", NOTIONS)
def test_lower_precision_is_converted_exactly(dtype, notion):
    labels, scores = random_matrix(np.random.default_rng(8), 300, 2)
    low = scores[:, 1].astype(dtype)
    expected = everything(labels, low.astype(np.float64), notion)
    np.testing.assert_allclose(everything(labels, low, notion), expected, atol=1e-12)


@pytest.mark.parametrize("spec", ALL, ids=str)
@pytest.mark.parametrize("score", [0.0, 0.05, 0.5, 1 / 3, 0.95, 1.0])
def test_one_sample_has_an_answer(spec, score):
    for label in (0, 1):
        value = calibrant.ece([label], [score], estimator=spec)
        expected = abs(label - score)
        if spec in SHRINKING:
            assert 0 <= value <= max(expected, 0.2)
            continue
        assert value == pytest.approx(
            expected,
            abs=0.2
            if str(spec).startswith(("d:", "dbeta:", "dbeta2:")) or isinstance(spec, Density)
            else 1e-9,
        )


@pytest.mark.parametrize("spec", ALL, ids=str)
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_present_is_one_sided_miscalibration(spec, label):
    score = np.random.default_rng(0).beta(2, 2, 400)
    value = calibrant.ece(np.full(400, label), score, estimator=spec)
    assert value == pytest.approx(abs(label - score.mean()), abs=0.02 if spec in SHRINKING else 0.01)


@pytest.mark.parametrize("spec", ALL, ids=str)
def test_all_scores_equal_leaves_the_mean_residual(spec):
    labels = np.arange(50) % 5 == 0
    value = calibrant.ece(labels, np.full(50, 0.6), estimator=spec)
    assert value == pytest.approx(0.4, abs=0.03 if spec in SHRINKING else 2e-3)


def test_inputs_of_every_kind_give_the_same_answer_and_stay_as_they_were():
    labels, scores = random_matrix(np.random.default_rng(4), 60, 3)
    expected = everything(labels, scores, "classwise", norms=("l1",))
    frozen = scores.copy()
    frozen.flags.writeable = False
    wide = np.zeros((120, 6))
    wide[::2, ::2] = scores
    names = [str(k) for k in range(3)]
    kinds = [
        (list(labels), scores.tolist()),
        (labels.astype(np.int8), frozen),
        (labels, wide[::2, ::2]),
        (labels[::-1].copy()[::-1], np.asfortranarray(scores)),
        (pd.Series(labels, dtype="Int64"), pd.DataFrame(scores).astype("Float64")),
        (pl.Series(labels), pl.DataFrame(scores, schema=names)),
        (pa.array(labels), pa.table(dict(zip(names, scores.T, strict=True)))),
        (labels, scores.astype(">f8")),
    ]
    for y_true, y_prob in kinds:
        found = everything(y_true, y_prob, "classwise", norms=("l1",))
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(wide[::2, ::2], scores)


@pytest.mark.no_cover
def test_threads_get_the_same_answers():
    labels, scores = random_matrix(np.random.default_rng(6), 3000, 3)
    expected = everything(labels, scores, "classwise", norms=("l1",))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: everything(labels, scores, "classwise", norms=("l1",)), range(8)))
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


# --- rows, cells and merged cells ------------------------------------------------------------------


def data(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "smooth":
        score = rng.beta(0.7, 0.9, n)
    elif kind == "discrete":
        score = rng.integers(0, 101, n) / 100
    else:
        score = np.where(rng.random(n) < 0.4, 1 - 10.0 ** rng.uniform(-14, -3, n), rng.random(n))
        score[: n // 50] = 1.0
    return (rng.random(n) < score**1.4).astype(int), score


def sketches(labels, score, notion, pieces=4):
    whole = Sketch(notion).update(labels, score)
    merged = Sketch(notion)
    for part in np.array_split(np.random.default_rng(0).permutation(len(labels)), min(pieces, len(labels))):
        merged = Sketch(notion).update(labels[part], score[part]) + merged
    return whole, merged


def cut_cell_bound(sample, bins, layout):
    """Twice the residual of the rows in cells that hold a cut: these may fall on either side of it."""
    cut = np.floor(np.arange(1, bins) * sample.n / bins).astype(int)
    ordered = np.sort(sample.score)
    holding = np.unique(layout.locate(ordered[np.concatenate([np.maximum(cut - 1, 0), cut])]))
    residual = np.abs(sample.outcome - sample.score)
    return 2 * residual[np.isin(layout.locate(sample.score), holding)].sum() / sample.n


@pytest.mark.parametrize("layout", [FINE, COARSE])
@pytest.mark.parametrize("bins", [2, 10, 30, 60])
@pytest.mark.parametrize("n", [29, 500, 20_000])
@pytest.mark.parametrize("kind", ["smooth", "discrete", "saturated"])
def test_adaptive_bins_from_cells_differ_by_the_cells_that_hold_a_cut(kind, n, bins, layout):
    labels, score = data(kind, n)
    sample = Sample(score, labels.astype(bool))
    bound = cut_cell_bound(sample, bins, layout)
    for mapping in ("one", "convex"):
        estimator = Binned("adaptive", bins, mapping)
        found = estimator.fit(Cells.of(sample, layout)).error()
        assert abs(found - estimator.fit(sample).error()) <= bound + 1e-12


@few
@given(seeds, st.integers(1, 6))
def test_chunks_and_merges_give_the_sums_of_the_whole(seed, pieces):
    labels, score = data("saturated", 300, seed)
    whole, merged = sketches(labels, score, "classwise", pieces)
    for a, b in zip(whole._score_data.sums.parts, merged._score_data.sums.parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


@few
@given(seeds, st.integers(1, 6))
def test_merged_sketches_answer_as_the_whole(seed, pieces):
    labels, score = data("discrete", 200, seed)
    whole, merged = sketches(labels, score, "classwise", pieces)
    for spec in ALL:
        assert merged.ece(estimator=spec) == pytest.approx(whole.ece(estimator=spec), abs=1e-7), spec


def test_long_and_short_names_are_the_same_estimators():
    for entry in describe():
        assert parse(entry.name) == parse(entry.short)
        assert parse(str(parse(entry.name))) == parse(entry.name)
    assert parse("l:10") == Binned("uniform", 10)
    assert parse("adaptive") == Binned("adaptive", "sqrt")
    assert parse("c:sqrt") == Binned("uniform", "sqrt", "convex")
    assert parse("ac:30") == Binned("adaptive", 30, "convex")
    assert parse("d:0.033") == Density(0.033)
    assert parse("density:isj") == Density("isj")
    assert parse("d:0.1:gaussian") == Density(0.1, "gaussian")
    assert parse(str(Density("scott", "cosine"))) == Density("scott", "cosine")
    assert parse(str(Binned("adaptive", 7, "convex"))) == Binned("adaptive", 7, "convex")


def test_the_root_of_several_counts_is_refused_with_the_reason():
    sample = Sample(np.array([[0.1, 0.9], [0.2, 0.8]]), np.ones((2, 2), bool), np.array([[1, 1], [1, 5]]))
    with pytest.raises(ValueError, match='different sizes, got "sqrt" for 2 to 6 rows'):
        Binned().fit(sample)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e160, 1e300])
@pytest.mark.parametrize("spec", ["l", "a:10", "ac", "d"])
def test_importance_weights_of_any_magnitude_have_no_scale(scale, spec):
    labels, score = data("smooth", 200)
    weight = np.random.default_rng(0).random(200) + 0.5
    expected = calibrant.ece(labels, score, estimator=spec, sample_weight=weight)
    found = calibrant.ece(labels, score, estimator=spec, sample_weight=weight * scale)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_cut_between_neighbouring_floats_divides_them():
    sample = Sample(np.array([0.1, np.nextafter(0.1, 1)]), np.array([False, True]))
    np.testing.assert_array_equal(Binned("adaptive", 2).fit(sample).bins.w, [1, 1])


def test_adaptive_cuts_follow_the_floor_rule():
    sample = Sample(np.arange(1, 60) / 100, np.zeros(59, dtype=bool))
    edges = adaptive_edges(sample, 30)
    np.testing.assert_array_equal(np.histogram(sample.score, edges)[0], np.diff(np.arange(31) * 59 // 30))


# --- a new estimator -------------------------------------------------------------------------------


@pytest.fixture
def new_estimator(tmp_path, monkeypatch):
    """Write the estimator of CONTRIBUTING.md to a file of its own and register it by its one line."""
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text()
    source, line = re.findall(r"^ *```python\n(.*?)^ *```$", text, flags=re.M | re.S)
    path = tmp_path / "mean_gap.py"
    path.write_text(re.sub(r"^   ", "", source, flags=re.M))
    spec = importlib.util.spec_from_file_location("mean_gap", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mean_gap", module)
    spec.loader.exec_module(module)
    entries = list(registry._entries())
    monkeypatch.setattr(registry, "_entries", lambda: entries)
    register(getattr(module, ast.literal_eval(line.strip())[0][1]))
    return "mean-gap"


def test_a_new_estimator_is_one_file_and_one_line(new_estimator, monkeypatch):
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "ALL", [new_estimator])
    monkeypatch.setattr(here, "SMOOTH", [new_estimator])
    for notion in NOTIONS:
        test_errors_lie_between_zero_and_one_and_norms_are_ordered(new_estimator, notion)
        test_lower_precision_is_converted_exactly(np.float32, notion)
    test_a_norm_that_an_estimator_does_not_define_is_refused()
    test_the_order_of_rows_does_not_matter()
    test_the_order_of_classes_does_not_matter()
    test_counts_mean_repetition()
    test_importance_weights_are_free_of_scale()
    test_equal_importance_weights_change_nothing()
    test_one_sample_has_an_answer(new_estimator, 0.3)
    test_inputs_of_every_kind_give_the_same_answer_and_stay_as_they_were()
    test_merged_sketches_answer_as_the_whole()
    test_long_and_short_names_are_the_same_estimators()


def test_a_new_estimator_is_known_by_its_names_and_describes_itself(new_estimator):
    labels, score = data("smooth", 300)
    expected = abs(np.mean(labels - score))
    assert new_estimator in estimator_names()
    for name in (new_estimator, "mg"):
        assert calibrant.ece(labels, score, estimator=name) == pytest.approx(expected)
    assert calibrant.estimate(labels, score, estimator=new_estimator, rng=0).estimator == new_estimator
    entry = describe()[-1]
    assert (entry.name, entry.short, entry.parameter) == (new_estimator, "mg", "none")
    assert parse(new_estimator).measures_ece
    with pytest.raises(ValueError, match="mean-gap defines norm 'l1', got 'max'"):
        calibrant.mce(labels, score, estimator=new_estimator)
    with pytest.raises(ValueError, match='must be "mean-gap" without a parameter'):
        parse("mean-gap:3")


@pytest.mark.parametrize("name", ["", "a:b", "auto", "uniform", "l"])
def test_a_name_that_is_taken_or_cannot_be_written_is_refused(name):
    class Other(Binned):
        @classmethod
        def entries(cls):
            return tuple(replace(entry, short=name) for entry in Binned.entries()[:1])

    before = estimator_names()
    with pytest.raises(ValueError, match="must be new and free of colons"):
        register(Other)
    assert estimator_names() == before


def test_a_value_with_fit_is_an_estimator_that_says_what_it_defines():
    class Gap:
        norms = ("l1", "l2")

        def fit(self, data):
            return Binned("uniform", 1).fit(data)

        def __str__(self):
            return "my gap"

    labels, score = data("smooth", 300)
    expected = calibrant.ece(labels, score, estimator="uniform:1")
    assert calibrant.ece(labels, score, estimator=Gap()) == pytest.approx(expected)
    with pytest.raises(ValueError, match="my gap defines norm 'l1', 'l2', got 'max'"):
        calibrant.mce(labels, score, estimator=Gap())
    assert resolve(Gap()).measures_ece

    class Own:
        measures_ece = False

        def fit(self, data):
            return Own()

        def error(self, norm):
            return 0.25

    assert calibrant.ece(labels, score, estimator=Own()) == 0.25
    with pytest.raises(ValueError, match="a different measure"):
        calibrant.estimate(labels, score, estimator=Own())


class Fitted:
    """An estimator of a caller's own, which returns what it was told to."""

    def __init__(self, value, measures_ece=True):
        self.value, self.measures_ece = value, measures_ece

    def fit(self, data):
        return self

    def error(self, norm):
        return self.value


@pytest.mark.parametrize("value", ["0.1", None, 1j, [0.1, 0.2], True])
def test_what_is_no_number_is_refused_with_the_name_of_the_estimator(value):
    with pytest.raises(calibrant.InputError, match=r"the function mine must return a number"):
        calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], estimator=Named("mine", value))
    with pytest.raises(calibrant.InputError, match=r"the estimator Fitted must return"):
        calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], estimator=Fitted(value))


class Named:
    """A function with a name."""

    def __init__(self, name, value):
        self.__name__, self.value = name, value

    def __call__(self, scores, outcomes, weights):
        return self.value


def test_one_error_for_three_classes_is_refused_of_any_estimator():
    @dataclass(frozen=True)
    class Mine(Estimator):
        name = "mine"

        def fit(self, data):
            return ValueFit(self, np.array(0.1))

    with pytest.raises(calibrant.InputError, match="the estimator mine must return 3 errors, got 1"):
        calibrant.ece([0, 1, 2], np.full((3, 3), 1 / 3), notion="classwise", estimator=Mine())
