"""A sketch: its totals, its memory, its file, and every answer against that of the rows."""

import copy
import itertools
import math
import os
import pickle
import runpy
import tracemalloc
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_registry import NOTIONS, random_matrix
from test_registry_inside import ALL, defined

import calibrant
import calibrant.sketch.sketch as sketching
from calibrant import Sketch, estimators
from calibrant.curves import ByClass
from calibrant.estimators import parse
from calibrant.inputs import predictions
from calibrant.score_data import COARSE, tally
from calibrant.sketch.totals import Totals
from weighing import weighing

ROOT = Path(__file__).parents[3]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 0.8, n)
    return (rng.random(n) < score**1.4).astype(int), score


def matrix(n=400, classes=4, seed=0):
    return random_matrix(np.random.default_rng(seed), n, classes)


def made(notion, y, p, **options):
    own = {"pos_label": 1} if notion == "binary" else {}
    return Sketch(notion, **own).update(y, p, **options)


def numbers(sketch):
    cells = sketch._score_data
    return [*cells.arrays, np.asarray(cells.squares), np.array(astuple(sketch.totals))]


def same(one, other):
    """Equal to the last bit."""
    about = ("notion", "labels", "positive", "_vector", "_n_classes", "_given", "totals")
    for name in about:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine == theirs, name
        assert repr(mine) == repr(theirs), name
    assert one._score_data.support == other._score_data.support
    for mine, theirs in zip(numbers(one), numbers(other), strict=True):
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()
    assert one.digest == other.digest


def close(one, other, rtol=1e-12):
    for mine, theirs in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-18)


# --- totals ----------------------------------------------------------------------------------------


def slow_totals(data):
    """Row by row, in Python's numbers."""
    found = [0] + [0.0] * 5
    score = data.score.astype(float).tolist()
    for i, code in enumerate(data.code.tolist()):
        p = score[i] if data.score.ndim == 2 else [1 - score[i], score[i]]
        w, k = 1.0 if data.weight is None else float(data.weight[i]), int(code)
        best = max(range(len(p)), key=lambda c: (p[c], -c))
        found[0] += int(w) if data.counts else 1
        found[1] += w
        found[2] += w * (best == k)
        found[3] -= w * math.log(p[k]) if p[k] > 0 else 0.0
        found[4] += w * (p[k] == 0)
        found[5] += w * sum((v - (c == k)) ** 2 for c, v in enumerate(p))
    return found


@few
@given(seeds, st.integers(1, 60), st.integers(1, 5), st.sampled_from(("none", "counts", "floats")))
def test_totals_are_those_of_a_plain_loop(seed, n, classes, weights):
    rng = np.random.default_rng(seed)
    if classes == 1:
        y, p = rng.integers(0, 2, n), rng.integers(0, 5, n) / 4
    else:
        y, p = random_matrix(rng, n, classes, discrete=True)
        y = rng.integers(0, classes, n)
    weight = {"none": None, "counts": rng.integers(0, 4, n), "floats": rng.random(n)}[weights]
    if weight is not None:
        weight[0] = 1
    data = predictions(y, p, **weighing(weight))
    expected = (*slow_totals(data), 0, 0, 0)
    np.testing.assert_allclose(astuple(Totals.of(data)), expected, rtol=1e-12, atol=1e-12)


def test_totals_know_accuracy_brier_score_and_log_loss():
    y, p = matrix(500)
    for notion in NOTIONS:
        totals = made(notion, y, p).totals
        assert totals.rows == totals.weight == 500
        assert totals.right / 500 == np.mean(p.argmax(axis=1) == y)
        assert totals.brier / 500 == pytest.approx(np.mean(((p - np.eye(4)[y]) ** 2).sum(axis=1)))
        assert totals.log_loss / 500 == pytest.approx(-np.mean(np.log(p[np.arange(500), y])))
        assert totals.impossible == 0
    assert Sketch().totals == Totals.zero()


def test_tied_scores_predict_the_first_class_and_half_predicts_the_negative_one():
    assert Totals.of(predictions([0, 1], [[0.5, 0.5], [0.5, 0.5]])).right == 1
    assert Totals.of(predictions([0, 1, 1], [0.5, 0.5, 0.6])).right == 2


def test_totals_are_the_same_in_chunks(monkeypatch):
    y, p = matrix(301)
    whole = Totals.of(predictions(y, p))
    monkeypatch.setattr(tally, "MATRIX_CHUNK", 40)
    np.testing.assert_allclose(astuple(Totals.of(predictions(y, p))), astuple(whole), rtol=1e-13)


@pytest.mark.parametrize("weight", [None, np.linspace(1, 2, 40)], ids=["none", "floats"])
def test_an_update_that_was_interrupted_is_noticed(monkeypatch, tmp_path, weight):
    y, p = matrix(40, classes=80)
    sketch, calls = made("classwise", y, p, sample_weight=weight), itertools.count()
    add_in_place = sketching.add_in_place

    def interrupted(*arguments):
        if next(calls) == 1:
            raise KeyboardInterrupt
        add_in_place(*arguments)

    monkeypatch.setattr(sketching, "add_in_place", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sketch.update(y, p, sample_weight=weight)
    monkeypatch.undo()
    for asked in (
        sketch.ece,
        lambda: sketch.update(y, p, sample_weight=weight),
        lambda: sketch.save(tmp_path / "x"),
        lambda: sketch + sketch,
        lambda: sketch + Sketch("classwise"),
    ):
        with pytest.raises(ValueError, match="an update was interrupted"):
            asked()


@pytest.mark.parametrize("notion", NOTIONS)
def test_nobody_else_sees_an_update(notion):
    y, p = matrix(60)
    sketch = made(notion, y, p)
    others = [sketch + Sketch(notion), Sketch(notion) + sketch, sum([sketch]), copy.copy(sketch)]
    others += [copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))]
    seen, kept = sketch._score_data, numbers(sketch)
    before, kept = sketch.digest, [part.copy() for part in kept]
    curve, boxes, found = sketch.curve(n_boot=0), sketch.diagram(), sketch.histogram(bins=10)
    told = repr((curve, boxes, found))
    sketch.update(y, p)
    assert sketch.totals.rows == 120
    for part, old in zip(seen.sums.parts, kept, strict=False):
        np.testing.assert_array_equal(part, old)
    assert float(np.max(seen.n)) == 60
    assert repr((curve, boxes, found)) == told
    for other in others:
        assert other.digest == before
        other.update(y[:1], p[:1])
        assert (other.totals.rows, sketch.totals.rows) == (61, 120)


def test_sums_of_a_frame_take_updates_without_being_told_the_classes():
    y, p = np.array(["no", "yes"] * 20), np.linspace(0, 1, 40)
    told = Sketch("binary", pos_label="yes").update(y, p)
    other = Sketch.from_frame(pd.DataFrame({"y": y, "p": p}), label="y", scores="p", pos_label="yes")
    assert other.update(y, p).digest != told.digest
    close(other, Sketch("binary", pos_label="yes").update(y, p).update(y, p))
    y, p = matrix(30)
    told = Sketch("binary", pos_label=2).update(y, p)
    frame = pd.DataFrame(p, columns=[f"p_{k}" for k in range(4)]).assign(y=y)
    other = Sketch.from_frame(frame, label="y", scores="p_*", notion="binary", pos_label=2)
    close(other.update(y, p), told + told)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_counts_that_rounding_moves_are_counts_in_pieces_too(step):
    rng = np.random.default_rng(0)
    y, p, w = rng.integers(0, 2, 30), rng.random(30), rng.integers(1, 5, 30)
    w[3] = 2**53 + 1
    parts = [(y[a : a + step], p[a : a + step], w[a : a + step]) for a in range(0, 30, step)]
    merged = sum(Sketch("binary").update(y, p, counts=w) for y, p, w in parts)
    updated = Sketch("binary")
    for y_part, p_part, w_part in parts:
        updated.update(y_part, p_part, counts=w_part)
    due = Sketch("binary").update(y, p, counts=w)
    for sketch in (merged, updated):
        assert sketch._score_data.counts
        assert len(sketch._score_data.arrays) == 5
        assert sketch.n == pytest.approx(due.n, rel=1e-12)


# --- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["none", "counts", "floats"])
def test_a_thousand_classes_stay_small_while_they_are_updated(weights):
    y, p = matrix(50, classes=1000)
    weight = {"none": None, "counts": np.arange(50) + 1, "floats": np.arange(50) / 10 + 1}[weights]
    held = sum(part.nbytes for part in made("classwise", y, p, **weighing(weight))._score_data.arrays)
    # Only importance weights have squares that nothing else tells.
    assert held == 1000 * COARSE.size * (6 if weights == "floats" else 5) * 8
    assert held < 110e6
    sketch = Sketch("classwise")
    tracemalloc.start()
    try:
        for _ in range(3):
            sketch.update(y, p, **weighing(weight))
            sketch.ece(estimator="uniform:15")
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < 1.05 * held
    assert peak < 1.5 * held


# --- merging ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sketches")


@few
@given(seeds, st.integers(1, 6), st.sampled_from(NOTIONS), st.sampled_from(("none", "counts", "floats")))
def test_any_split_in_any_order_gives_the_sums_of_the_whole(folder, seed, pieces, notion, weights):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(6, 80)), int(rng.integers(2, 5))
    y, p = random_matrix(rng, n, classes, discrete=bool(rng.integers(2)))
    if classes == 2 and rng.integers(2):
        p = p[:, 1]
    weight = {"none": None, "counts": rng.integers(1, 4, n), "floats": rng.random(n) + 0.01}[weights]

    def part(rows):
        return made(notion, y[rows], p[rows], **weighing(None if weight is None else weight[rows]))

    whole, parts = part(np.arange(n)), [part(rows) for rows in np.array_split(rng.permutation(n), pieces)]
    for k in range(0, len(parts), 2):
        parts[k].save(folder / f"{k}.sketch")
        parts[k] = Sketch.load(folder / f"{k}.sketch")
    left = sum(parts)
    rng.shuffle(parts)
    while len(parts) > 1:  # a random tree
        k = int(rng.integers(len(parts) - 1))
        parts[k : k + 2] = [parts[k + 1] + parts[k]]
    close(left, whole)
    close(parts[0], whole)
    assert left.labels == parts[0].labels == whole.labels
    for spec in ("uniform:15", "density:0.1"):
        assert parts[0].ece(estimator=spec) == pytest.approx(whole.ece(estimator=spec), abs=1e-10)


def test_merging_does_not_depend_on_the_order_of_what_is_known_of_the_classes():
    p = [0.2, 0.7, 0.4]
    parts = [
        Sketch("binary", pos_label="c").update(labels, p)
        for labels in (["c", "c", "c"], ["a", "c", "a"], ["b", "c", "a"])
    ]
    found = {sum(some).labels for some in itertools.permutations(parts)}
    assert found == {(("a", "b"), "c")}
    vector = Sketch("binary").update([0, 1, 1], p)
    pair = Sketch("binary").update([0, 1, 1], np.stack([1 - np.array(p), p], axis=1))
    for both in (vector + pair, pair + vector, copy.copy(vector).update([0, 1, 1], [[0.5, 0.5]] * 3)):
        assert not both._vector
        assert (both.labels, both.n) == ((0, 1), 6)
    assert vector._vector


# --- every answer, from rows and from a sketch -----------------------------------------------------


@pytest.mark.parametrize("notion", ["binary", "classwise", "confidence"])
@pytest.mark.parametrize(
    ("classes", "precision"),
    [(1, np.float32), (2, np.float64), (5, np.float64), (5, np.float32), (25, np.float64)],
)
def test_many_rows_at_once_have_the_sums_of_few_at_a_time(notion, classes, precision):
    rng, n = np.random.default_rng(4), 70_000
    p = rng.random(n) if classes == 1 else rng.dirichlet(np.full(classes, 0.3), n)
    y, asked = rng.integers(0, max(classes, 2), n), {"pos_label": 1} if notion == "binary" else {}
    p = p.astype(precision)
    found = Sketch(notion, **asked).update(y, p)
    pieces = Sketch(notion, **asked)
    for a, b in itertools.pairwise([*range(0, 10_000, 1000), *range(10_000, n + 1, 15_000)]):
        pieces.update(y[a:b], p[a:b])
    for one, other in zip(found._score_data.sums.parts, pieces._score_data.sums.parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(astuple(found.totals), astuple(pieces.totals), rtol=1e-12)
    value = calibrant.ece(y, p, notion=notion, estimator="uniform:15", **asked)
    assert found.ece(estimator="uniform:15") == pytest.approx(value, abs=1e-12)


def in_pieces(notion, y, p, pieces=3, sample_weight=None):
    own = {"pos_label": 1} if notion == "binary" else {}
    sketch = Sketch(notion, **own)
    for rows in np.array_split(np.arange(len(y)), pieces):
        weight = None if sample_weight is None else sample_weight[rows]
        sketch.update(y[rows], p[rows], sample_weight=weight)
    return sketch


def allowed(spec, coarse):
    """How far an estimate from cells may lie from that of the rows."""
    name = spec if isinstance(spec, str) else str(spec)
    family, _, parameter = name.partition(":")
    if family in ("l", "c", "uniform") and parameter != "sqrt":
        return 1e-12  # edges of bins are edges of cells
    if coarse:
        return 0.01  # cells of 1/720
    if family in ("d", "density", "b", "bc", "bk", "sm"):
        return 2e-5
    # Bins of equal mass differ by the cells that hold a cut, folds and running sums by those with two rows.
    return 5e-3


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_estimator_reads_a_sketch(notion):
    y, p = binary(700)
    sketch = in_pieces(notion, y, p)
    for spec in ALL:
        expected = calibrant.ece(y, p, notion=notion, estimator=spec)
        found = sketch.ece(estimator=spec)
        assert found == pytest.approx(expected, abs=allowed(spec, coarse=False)), spec
        for norm in set(defined(spec)) - {"l1"}:
            assert 0 <= sketch.ece(estimator=spec, norm=norm) <= 1
        for norm in {"l1", "l2", "max"} - set(defined(spec)):
            with pytest.raises(ValueError, match="defines norm"):
                sketch.ece(estimator=spec, norm=norm)


def test_every_estimator_reads_the_sketch_of_many_classes():
    y, p = matrix(200, classes=25)
    sketch = in_pieces("classwise", y, p)
    assert sketch._layout == COARSE
    # The bandwidth of ISJ may lie below the width of a coarse cell.
    for spec in (spec for spec in ALL if spec != "d:isj"):
        expected = calibrant.ece(y, p, notion="classwise", estimator=spec)
        found = sketch.ece(estimator=spec)
        assert found == pytest.approx(expected, abs=allowed(spec, coarse=True)), spec


def test_rows_and_counts_go_together_and_are_repeated_rows(folder):
    y, p = binary(200)
    count = np.random.default_rng(1).integers(0, 4, 200)
    count[:100] = 1
    rows = np.repeat(np.arange(200), count)
    whole = Sketch("binary").update(y[rows], p[rows])
    first, second = (slice(0, 100), None), (slice(100, 200), count[100:])
    for parts in ((first, second), (second, first)):
        grown, merged = Sketch("binary"), []
        for some, own in parts:
            grown.update(y[some], p[some], counts=own)
            merged.append(Sketch("binary").update(y[some], p[some], counts=own))
        assert not grown.weighted
        close(grown, whole)
        close(sum(merged), whole)
        assert grown.totals.rows == sum(merged).totals.rows == whole.totals.rows == rows.size
    merged[0].save(folder / "counted.sketch")
    assert not Sketch.load(folder / "counted.sketch").weighted


def test_what_has_no_interval_says_so_for_both():
    y, p = binary(50)
    for entry in estimators.describe():
        if entry.name in ("smooth", "ks", "kuiper"):
            for asked in (lambda **k: calibrant.estimate(y, p, **k), Sketch("binary").update(y, p).estimate):
                with pytest.raises(ValueError, match="a different measure"):
                    asked(estimator=entry.name)
        else:
            parse(entry.name)


def each(found):
    return list(found.values()) if isinstance(found, ByClass | dict) else [found]


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_curves_diagrams_histograms_and_local_errors_are_those_of_the_rows(notion, kind):
    y, p = binary(900) if kind == "vector" else matrix(900, classes=3)
    options = {"notion": notion} | ({"pos_label": 1} if notion == "binary" else {})
    sketch, at = in_pieces(notion, y, p), np.array([[0.3, 0.6], [0.75, 0.95]])
    for how in ({}, {"method": "density"}, {"method": "density", "bandwidth": 0.1}):
        asked = {**how, "n_boot": 0}
        rows = each(calibrant.reliability_curve(y, p, **options, **asked))
        for mine, theirs in zip(each(sketch.curve(**asked)), rows, strict=True):
            here, there = mine.at(at), theirs.at(at)
            for name in ("value", "low", "high"):
                np.testing.assert_allclose(getattr(here, name), getattr(there, name), atol=2e-3)
            assert (mine.label, mine.n, mine.notion) == (theirs.label, theirs.n, theirs.notion)
        rows = calibrant.lce(y, p, at, **how, **options)
        classes = ((2 if kind == "vector" else 3),) if notion == "classwise" else ()
        assert rows.shape == (*classes, 2, 2)
        np.testing.assert_allclose(sketch.lce(at, **how), rows, atol=2e-3)
    assert np.shape(sketch.lce(0.5)) == classes
    for binning in ("uniform:15", "uniform-convex:10"):
        rows = each(calibrant.reliability_diagram(y, p, binning=binning, **options))
        for mine, theirs in zip(each(sketch.diagram(binning=binning)), rows, strict=True):
            for name in ("edges", "score", "frequency", "count", "low", "high"):
                np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), atol=1e-9)
    for bins in (10, 20, 50):
        rows = each(calibrant.score_histogram(y, p, bins=bins, **options))
        for mine, theirs in zip(each(sketch.histogram(bins=bins)), rows, strict=True):
            np.testing.assert_array_equal(mine.positive, theirs.positive)
            np.testing.assert_array_equal(mine.negative, theirs.negative)
            assert (mine.label, mine.n, mine.support) == (theirs.label, theirs.n, theirs.support)
    with pytest.raises(ValueError, match="at must lie in"):
        sketch.lce(1.5)
    with pytest.raises(ValueError, match="bins must be"):
        sketch.histogram(bins=0)


@pytest.fixture(scope="module")
def daily():
    return runpy.run_path(str(ROOT / "docs/examples/daily.py"))


def test_a_day_survives_a_crash_and_says_where_to_go_on(daily, tmp_path, monkeypatch):
    y, p = binary(120)

    def serve(crash):
        """Goes on at the first row that is not kept, in batches of 30; stops at the given batch."""
        while (done := daily["rows"](tmp_path, "churn", "2026-05-04")) < 120:
            with monkeypatch.context() as patch:
                if done == crash:
                    patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                daily["add"](tmp_path, "churn", "2026-05-04", y[done : done + 30], p[done : done + 30])

    for crash in (0, 60):
        with pytest.raises(KeyboardInterrupt):
            serve(crash)
    serve(None)
    close(daily["between"](tmp_path, "churn", "2026-05-04", "2026-05-04"), Sketch("binary").update(y, p))
    assert len(list((tmp_path / "churn").iterdir())) == 1
