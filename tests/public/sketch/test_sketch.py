"""A sketch: its totals, its memory, its file, and every answer against that of the rows."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_registry import NOTIONS, VALUES, random_matrix

import calibrant
from calibrant import Sketch
from shortcuts import compare_estimators

ROOT = Path(__file__).parents[3]


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 0.8, n)
    return (rng.random(n) < score**1.4).astype(int), score


def matrix(n=400, classes=4, seed=0):
    return random_matrix(np.random.default_rng(seed), n, classes)


def made(notion, y, p, **options):
    own = {"pos_label": 1} if notion == "binary" else {}
    return Sketch(notion, **own).update(y, p, **options)


# --- updates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS)
def test_what_is_refused_leaves_the_sketch_as_it_was(notion):
    y, p = matrix(40)
    sketch = made(notion, y, p)
    before, refused = sketch.digest, [
        ((y, p[:, :3]), {}),
        ((y[:-1], p), {}),
        ((y, 2 * p), {}),
        ((np.where(np.arange(40) == 39, 7, y), p), {}),
        ((y, np.where(np.arange(40)[:, None] == 39, np.nan, p)), {}),
        ((y, p), {"sample_weight": np.full(40, 1e-150)}),
        ((y, p), {"sample_weight": -np.ones(40)}),
        ((y % 2, p[:, 0]), {}),
        (([], []), {}),
    ]  # fmt: skip
    for arguments, options in refused:
        with pytest.raises(ValueError):
            sketch.update(*arguments, **options)
        assert sketch.digest == before
    empty = Sketch("binary")
    with pytest.raises(ValueError, match="pos_label must name one of"):
        empty.update(y, p)
    assert empty.digest == Sketch("binary").digest
    assert empty.update([0, 1], [0.1, 0.9]).n == 2


def test_a_sketch_remembers_nothing_that_an_update_changes():
    y, p = binary()
    sketch = Sketch("binary").update(y[:100], p[:100])
    sketch.ece()
    sketch.update(y[100:], p[100:])
    assert sketch.ece() == pytest.approx(Sketch("binary").update(y, p).ece(), abs=1e-9)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("first", [0, -1])
def test_labels_that_rows_could_not_have_together_are_refused(notion, first):
    score, other = np.array([0.2, 0.7, 0.4]), -1 - first
    pair = np.stack([1 - score, score], axis=1)
    sketch = Sketch(notion).update([first, 1, 1], score)
    before = sketch.digest
    later = [([other, 1, 1], score), ([other] * 3, score)]
    later += [([0, 1, 1], pair)] if first == -1 else []
    for labels, scores in later:
        with pytest.raises(ValueError, match="y_true must hold 0 and 1, -1 and 1 or booleans, got -1, 0"):
            sketch.update(labels, scores)
        assert sketch.digest == before
    # What rows may have together is taken: a piece may lack a label.
    for labels in ([1, 1, 1], [first] * 3, [True, True, True]):
        assert sketch.update(labels, score).labels == (first, 1)
    told = Sketch(notion, pos_label=1).update([first, 1, 1], score).update([other, 1, 1], score)
    assert told.labels == ((-1, 0), 1)


@pytest.mark.parametrize("notion", ["binary", "classwise"])
def test_a_piece_of_positives_alone_leaves_open_what_the_others_are(notion, tmp_path):
    ones = Sketch(notion).update([1, 1], [0.2, 0.7])
    assert ones.labels == (0, 1)
    ones.save(tmp_path / "ones.sketch")
    more = Sketch(notion).update([-1, 1], [0.2, 0.7])
    for both in (
        Sketch.load(tmp_path / "ones.sketch").update([-1, 1], [0.2, 0.7]),
        ones + more,
        more + ones,
    ):
        assert both.labels == (-1, 1)
    assert (ones + ones).labels == (0, 1)


def test_labels_that_can_be_read_once_serve_every_update():
    scores = np.full((2, 2), 0.5)
    sketch = Sketch("confidence", labels=(name for name in "ab")).update(["a", "a"], scores)
    assert sketch.update(["b", "a"], scores).n == 4
    with pytest.raises(TypeError, match="labels must be a sequence of classes"):
        Sketch(labels="ab")


# --- merging ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sketches")


@pytest.mark.parametrize("spec", ["a:10", "a:sqrt", "ac:10", "ac:sqrt"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tied_scores_with_others_in_their_cells_share_a_bin_as_in_the_rows(spec, seed):
    rng, n = np.random.default_rng(seed), 20_000
    p = rng.dirichlet(np.full(5, 0.4), n)[:, 2]
    p[: n // 4] = rng.binomial(100, 0.2, n // 4) / 100
    y = rng.random(n) < p**1.4
    value = calibrant.ece(y, p, estimator=spec)
    assert Sketch("binary").update(y, p).ece(estimator=spec) == pytest.approx(value, abs=3e-4)


def in_pieces(notion, y, p, pieces=3, sample_weight=None):
    own = {"pos_label": 1} if notion == "binary" else {}
    sketch = Sketch(notion, **own)
    for rows in np.array_split(np.arange(len(y)), pieces):
        weight = None if sample_weight is None else sample_weight[rows]
        sketch.update(y[rows], p[rows], sample_weight=weight)
    return sketch


@pytest.mark.full
@pytest.mark.parametrize(
    "spec", ["auto", "uniform:15", "adaptive", "density", "debiased", VALUES[0]], ids=str
)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_estimate_is_that_of_the_rows(spec, norm):
    y, p = binary(300)
    expected = calibrant.estimate(y, p, estimator=spec, norm=norm, rng=0)
    found = in_pieces("binary", y, p).estimate(estimator=spec, norm=norm, rng=0)
    # The ends are simulated.
    for name, near in {"value": 0.01, "over": 0.01, "under": 0.01, "low": 0.02, "high": 0.02}.items():
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=near), name
    assert found.p_value == pytest.approx(expected.p_value, abs=0.02)
    assert found.null.mean == pytest.approx(expected.null.mean, abs=0.005)
    assert (found.label, found.n, found.estimator) == (expected.label, expected.n, expected.estimator)


HEAVY = {"few rows": 300, "many rows": 10_000}


@pytest.mark.parametrize(("rows", "pieces"), [("few rows", 1), ("few rows", 7), ("many rows", 3)])
def test_strongly_weighted_rows_and_their_sketch_say_the_same(rows, pieces):
    rng, n = np.random.default_rng(8), HEAVY[rows]
    score, weight = rng.random(n), rng.lognormal(0, 1.5, n)
    y = (rng.random(n) < score).astype(int)
    sketch = in_pieces("binary", y, score, pieces, sample_weight=weight)
    expected, found = calibrant.estimate(y, score, sample_weight=weight, rng=0), sketch.estimate(rng=0)
    for name in ("value", "low", "high", "p_value", "n"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6, abs=1e-9), name
    for how in ({}, {"method": "density"}):
        band = sketch.curve(n_boot=0, **how).at([0.2, 0.5, 0.8])
        rows_band = calibrant.reliability_curve(y, score, sample_weight=weight, n_boot=0, **how).at(
            [0.2, 0.5, 0.8]
        )
        for name in ("value", "low", "high", "n_eff"):
            np.testing.assert_allclose(getattr(band, name), getattr(rows_band, name), rtol=2e-3)
    boxes = sketch.diagram(binning="uniform:15")
    rows_boxes = calibrant.reliability_diagram(y, score, sample_weight=weight, binning="uniform:15")
    for name in ("count", "low", "high"):
        np.testing.assert_allclose(getattr(boxes, name), getattr(rows_boxes, name), rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("spec", ["uniform:15", "debiased", "density"])
def test_the_test_of_a_named_estimator_knows_heavy_rows_of_a_sketch(spec):
    rng = np.random.default_rng(9)
    means = []
    for _ in range(4):  # the null of each is that of a hundred sets
        score, weight = rng.random(400), rng.lognormal(0, 1.5, 400)
        y = (rng.random(400) < score).astype(int)
        rows = calibrant.estimate(y, score, sample_weight=weight, estimator=spec, rng=0)
        sums = in_pieces("binary", y, score, sample_weight=weight).estimate(estimator=spec, rng=0)
        assert sums.value == pytest.approx(rows.value, abs=2e-3)
        assert sums.p_value == pytest.approx(rows.p_value, abs=0.05)
        means.append((sums.null.mean, rows.null.mean))
    assert np.mean(means, axis=0)[0] == pytest.approx(np.mean(means, axis=0)[1], rel=0.06)


def test_importance_weights_do_not_go_with_rows_or_counts(folder):
    y, p = binary(40)
    whole = np.arange(40) % 3 + 1
    weighted = Sketch("binary").update(y, p, sample_weight=whole)
    assert weighted.weighted
    weighted.save(folder / "weighted.sketch")
    loaded = Sketch.load(folder / "weighted.sketch")
    assert loaded.weighted
    same_numbers = Sketch("binary").update(y, p, sample_weight=whole.astype(float))
    assert same_numbers.digest == weighted.digest == loaded.digest
    for plain in (Sketch("binary").update(y, p), Sketch("binary").update(y, p, counts=whole)):
        for one, other in ((weighted, plain), (plain, weighted), (plain, loaded)):
            with pytest.raises(
                ValueError, match="must both hold rows and counts of rows, or both importance"
            ):
                one + other
        before = plain.digest
        with pytest.raises(calibrant.InputError, match="importance weights after rows or counts"):
            plain.update(y, p, sample_weight=whole)
        assert plain.digest == before
    for more in ({}, {"counts": whole}):
        with pytest.raises(calibrant.InputError, match="rows or counts after importance weights"):
            loaded.update(y, p, **more)
    assert loaded.digest == weighted.digest
    assert (Sketch("binary") + weighted).weighted


@pytest.mark.full
def test_functions_take_a_sketch_in_place_of_rows():
    sketch = Sketch("binary").update(*binary(200))
    at, cost = [0.2, 0.7], (1, 4)
    assert calibrant.ece(sketch) == sketch.ece()
    assert calibrant.mce(sketch, estimator="uniform:10") == sketch.mce(estimator="uniform:10")
    assert calibrant.estimate(sketch, rng=0) == sketch.estimate(rng=0)
    assert calibrant.assess(sketch, rng=0).to_json() == sketch.assess(rng=0).to_json()
    np.testing.assert_array_equal(calibrant.lce(sketch, at=at), sketch.lce(at))
    assert repr(calibrant.reliability_curve(sketch).at(at)) == repr(sketch.curve().at(at))
    assert repr(calibrant.reliability_diagram(sketch)) == repr(sketch.diagram())
    assert repr(calibrant.score_histogram(sketch)) == repr(sketch.histogram())
    assert calibrant.regret(sketch, cost=cost, rng=0) == sketch.regret(cost, rng=0)
    np.testing.assert_array_equal(calibrant.regret_curve(sketch).value, sketch.regret_curve().value)
    assert calibrant.best_threshold(sketch, cost=cost) == sketch.best_threshold(cost)
    sketch = made("confidence", *matrix(200))
    assert calibrant.risk_coverage(sketch, rng=0).aurc == sketch.risk_coverage(rng=0).aurc


ABOUT_ROWS = {
    "y_prob": [0.2, 0.7],
    "notion": "binary",
    "sample_weight": [1.0, 2.0],
    "counts": [1, 2],
    "labels": [0, 1],
    "pos_label": 1,
    "percent": True,
}


@pytest.mark.parametrize("name", ABOUT_ROWS)
def test_what_is_about_rows_is_refused_with_a_sketch(name):
    sketch, given = Sketch("binary").update([0, 1], [0.2, 0.7]), {name: ABOUT_ROWS[name]}
    asked = [calibrant.ece, calibrant.estimate, calibrant.assess, calibrant.reliability_curve]
    asked += [calibrant.risk_coverage]
    if name != "notion":
        asked += [lambda *a, **k: calibrant.regret(*a, cost=0.2, **k), calibrant.regret_curve]
        asked += [calibrant.net_benefit]
    for function in asked:
        with pytest.raises(calibrant.InputError, match=f"{name} must be left out for a sketch"):
            function(sketch, **given)
    with pytest.raises(calibrant.InputError, match="cluster must go with rows"):
        calibrant.ece(sketch, cluster=[1, 2])


def test_what_needs_rows_refuses_a_sketch():
    sketch = Sketch("class").update([0, 1], [0.2, 0.7])
    with pytest.raises(TypeError, match="y_prob must be scores, got a sketch, which has no rows"):
        calibrant.compare_calibrators(sketch, [0.2, 0.7])
    with pytest.raises(TypeError, match="y_true must be labels, got a sketch, which has no rows"):
        calibrant.compare(sketch, {"a": [0.2, 0.7], "b": [0.3, 0.6]})
    with pytest.raises(calibrant.InputError, match="other must be left out for a sketch"):
        calibrant.regret_curve(sketch, other=[0.2, 0.7])
    with pytest.raises(TypeError, match="groups must map the names of groups to sketches"):
        calibrant.assess(sketch, groups=[1, 2])
    with pytest.raises(TypeError, match="y_prob must be scores, got None"):
        calibrant.ece([0, 1])


@pytest.mark.parametrize("spec", ["l", "ac", "db:sqrt"])
def test_more_bins_than_cells_are_refused(spec):
    sketch = Sketch("binary").update([0, 1], [0.2, 0.7], counts=[10**9, 10**9])
    for asked in (sketch.ece, sketch.estimate):
        with pytest.raises(ValueError, match="asks for 44721 bins, but a sketch keeps 14400 cells"):
            asked(estimator=spec)


# --- assessments -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def assessed():
    """By kind of scores and notion: the rows, their assessment and that of their sketch."""
    found = {}
    for kind, (y, p) in {"vector": binary(150), "matrix": matrix(150, classes=3)}.items():
        for notion in NOTIONS if kind == "vector" else ("classwise",):
            sketch = in_pieces(notion, y, p)
            with pytest.MonkeyPatch.context() as patch:
                if (
                    notion == "classwise"
                ):  # Every estimator is simulated for every class: one of them will do.
                    compare_estimators(patch, "uniform")
                rows = calibrant.assess(y, p, notion=notion, rng=0)
                found[kind, notion] = rows, sketch, sketch.assess(rng=0, name="May", command="made by hand")
    return found


@pytest.mark.full
def test_an_assessment_has_the_numbers_of_the_rows(assessed):
    for (kind, notion), (rows, sketch, found) in assessed.items():
        assert (found.notion, list(found.estimates)) == (notion, [notion])
        assert found.estimate.value == pytest.approx(rows.estimate.value, abs=1e-6)
        assert found.estimate.conservative == (notion == "classwise")
        if notion != "classwise":
            assert (found.estimate.low, found.estimate.high) == pytest.approx(
                (rows.estimate.low, rows.estimate.high), abs=0.01
            )
        assert list(found.by_estimator) == list(rows.by_estimator)
        for name, one in found.by_estimator.items():
            assert one.value == pytest.approx(rows.by_estimator[name].value, abs=5e-3)
        assert (found.rows, found.n, found.classes) == (rows.rows, rows.n, rows.classes)
        assert (found.pos_label, found.level, found.seed) == (
            rows.pos_label if notion == "binary" else None,
            0.95,
            0,
        )
        assert found.digest == sketch.digest
        assert found.curve.keys() == rows.curve.keys() if notion == "classwise" else found.curve.n == rows.n
        np.testing.assert_allclose(found.log_odds.counts.sum(), rows.log_odds.counts.sum())
        if kind == "vector":
            for name in ("observed", "expected", "low", "high"):
                for part in ("balance", "accuracy"):
                    mine, theirs = (getattr(getattr(one, part), name) for one in (found, rows))
                    assert mine == pytest.approx(theirs, abs=1e-9)
        else:
            assert found.accuracy is found.balance is None


@pytest.mark.full
def test_an_assessment_takes_scores_apart_as_the_rows_do(assessed):
    def parts(score):
        return score.value, score.calibration, score.resolution, score.uncertainty

    for (kind, notion), (rows, _, found) in assessed.items():
        by_name = {(score.name, score.about): score for score in rows.scores}
        if notion == "classwise":
            (brier,) = found.scores
            assert (brier.name, brier.about) == ("Brier score", "all classes")
            if kind == "matrix":
                assert parts(brier) == pytest.approx(parts(by_name["Brier score", "all classes"]), abs=2e-3)
            continue
        assert [score.name for score in found.scores] == ["Brier score", "log loss"]
        for score in found.scores:
            expected = by_name[score.name, score.about]
            assert score.value == pytest.approx(expected.value, abs=1e-12)
            assert parts(score) == pytest.approx(parts(expected), abs=2e-3)


def test_classes_of_a_sketch_come_worst_first(assessed):
    rows, _, found = assessed["matrix", "classwise"]
    expected = {row.name: row for row in rows.by_class}
    assert [row.estimate.value for row in found.by_class] == sorted(
        (row.estimate.value for row in found.by_class), reverse=True
    )
    for row in found.by_class:
        other = expected[row.name]
        assert (row.rows, row.estimate.level) == (other.rows, other.estimate.level)
        assert (row.observed, row.expected) == pytest.approx((other.observed, other.expected), abs=1e-9)
        assert row.estimate.value == pytest.approx(other.estimate.value, abs=1e-5)


def test_an_assessment_of_a_sketch_is_shown_and_stored(assessed):
    for (kind, notion), (_, _, found) in assessed.items():
        again = calibrant.Assessment.from_json(found.to_json())
        assert again.to_json() == found.to_json()
        page = found.html()
        assert again.html() == page
        assert "made by hand" in page
        assert again.verdict == found.verdict
        assert "May" in page
        assert str(found)
        assert ("conservative" in page) == (notion == "classwise")
        assert ("% accurate" in found.summary) == (kind == "vector" and notion != "binary")
        assert found._repr_html_()


@pytest.mark.full
@pytest.mark.usefixtures("few_reference_estimators")
def test_an_assessment_counts_its_steps_and_names_its_classes():
    seen, (y, p) = [], matrix(40, classes=3)
    sketch = made("classwise", y, p)
    found = sketch.assess(rng=0, class_names=["x", "y", "z"], progress=lambda *step: seen.append(step))
    assert found.classes == ("x", "y", "z")
    steps = [done for done, _ in seen]
    assert steps[0] == 1
    assert steps == sorted(steps)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(TypeError, match="did you mean 'class_names'"):
        sketch.assess(class_name=["x"])
    with pytest.raises(ValueError, match="class_names must name 3 classes"):
        sketch.assess(class_names=["x"])
    with pytest.raises(ValueError, match="the sketch is empty"):
        Sketch().assess()


def warned(notion, y, p, **options):
    return made(notion, y, p, **options).assess(rng=0).cautions


@pytest.mark.full
@pytest.mark.usefixtures("without_reference_estimators")
def test_a_sketch_warns_as_the_rows_do():
    rng = np.random.default_rng(0)
    logit = rng.normal(0, 14, 300)
    saturated = 1 / (1 + np.exp(-logit))
    y = (rng.random(300) < saturated).astype(int)
    cases = [
        (y[:60], rng.random(60)),
        (y, saturated),
        (y, rng.integers(0, 5, 300) / 5 + 0.1),
        (np.ones(120, int), rng.random(120)),
        ([1, 0, 1, 1], [0.0, 0.2, 0.7, 1.0]),
    ]
    for labels, p in cases:
        rows = calibrant.assess(labels, p, rng=0).cautions
        own = [
            re.sub(r"with (a score of exactly) [01] was wrong", r"had \1 0 for the class that occurred", line)
            for line in rows
        ]
        if p is saturated:
            # The cell of a score of exactly 1 holds others too, from which sums do not tell it.
            (exact,) = (line for line in own if "whose log-odds are infinite" in line)
            own.remove(exact)
        assert list(warned("binary", labels, p)) == own


@pytest.mark.full
@pytest.mark.usefixtures("without_reference_estimators")
def test_a_sketch_warns_of_what_cells_and_totals_know():
    y, p = matrix(120, classes=4)
    text = " ".join(warned("classwise", np.zeros(120, int), p))
    assert "No row is of the classes 1, 2, 3: counted all the same." in text
    assert "conservative" in text
    assert not any("No row" in line for line in warned("confidence", np.zeros(120, int), p))
    assert any("class 1:" in line for line in warned("binary", np.zeros(120, int), p))
    crisp = np.eye(4)[y] * 0.9996 + 0.0001
    assert any("100 % lie within 0.001 of 0 or 1" in line for line in warned("classwise", y, crisp))
    wrong = np.eye(4)[(y + (np.arange(120) == 5)) % 4]
    assert "1 row had a score of exactly 0 for the class that occurred." in warned("confidence", y, wrong)
    weight = np.linspace(0.5, 1.5, 120)
    share = 100 * weight[5] / weight.sum()
    line = f"{share:.2g} % of the weight lies on rows of a class whose score was exactly 0."
    assert line in warned("confidence", y, wrong, sample_weight=weight)
    uneven = np.where(np.arange(120) < 3, 1.0, 1e-6)
    assert any(
        line.startswith("Weights are uneven: 120 rows")
        for line in warned("confidence", y, p, sample_weight=uneven)
    )


def test_estimators_with_more_bins_than_cells_are_left_out_and_named():
    y, p = binary(20)
    sketch = Sketch("binary").update(y, p, counts=np.full(20, 10**8))
    found = sketch.assess(rng=0)
    assert list(found.by_estimator) == ["auto", "density"]
    named = "uniform, adaptive, uniform-convex, adaptive-convex"
    assert f"A sketch has fewer cells than these would have bins: {named}." in found.cautions


# --- the page and its example ----------------------------------------------------------------------


def test_the_page_shows_what_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs/data.md").read_text()
    section = re.search(r"^## Save, load, merge\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)[1]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, flags=re.M | re.S)
    y, p = binary(60)
    space = {"calibrant": calibrant, "y_true": y, "y_prob": p, "tuesday": Sketch("binary").update(y, p)}
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/data.md", "exec"), space)
    assert space["week"].totals.rows == 120
    assert (tmp_path / "week.html").stat().st_size > 10_000


@pytest.fixture(scope="module")
def daily():
    return runpy.run_path(str(ROOT / "docs/examples/daily.py"))


def test_days_are_kept_added_to_and_answered_for_in_any_range(daily, tmp_path):
    batches = {f"2026-05-{day:02}": [binary(40, seed=10 * day + k) for k in range(2)] for day in (1, 2, 4)}
    for day, some in batches.items():
        for y, p in some:
            kept = daily["add"](tmp_path, "churn", day, y, p)
        assert kept == daily["rows"](tmp_path, "churn", day) == 80
    assert sorted(path.name for path in (tmp_path / "churn").iterdir()) == [
        f"{day}.sketch" for day in batches
    ]
    assert daily["rows"](tmp_path, "churn", "2026-05-03") == 0
    for first, last in (
        ("2026-05-01", "2026-05-02"),
        ("2026-05-02", "2026-05-09"),
        ("2026-05-01", "2026-05-31"),
    ):
        rows = [batch for day, some in batches.items() if first <= day <= last for batch in some]
        y, p = (np.concatenate(part) for part in zip(*rows, strict=True))
        found = daily["between"](tmp_path, "churn", first, last)
        assert found.totals.rows == len(y)
        assert found.ece(estimator="uniform:15") == pytest.approx(calibrant.ece(y, p, estimator="uniform:15"))
        assert found.ece() == pytest.approx(calibrant.ece(y, p), abs=1e-6)


@pytest.mark.full
def test_the_example_runs_from_the_command_line(daily, tmp_path, capsys):
    y, p = binary(60)
    np.savetxt(tmp_path / "batch.csv", np.stack([y, p], axis=1), delimiter=",", header="label,score")
    for _ in range(2):
        daily["main"](["add", str(tmp_path / "models"), "churn", "2026-05-04", str(tmp_path / "batch.csv")])
    daily["main"](["ask", str(tmp_path / "models"), "churn", "2026-05-01", "2026-05-31"])
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["churn 2026-05-04: 60 rows", "churn 2026-05-04: 120 rows"]
    assert said[2].startswith("calibration error  ")
    assert {"binary, class 1", "120 rows"} <= {line.split("  ")[-1].strip() for line in said[3:]}


def test_named_columns_may_come_in_another_order():
    frame = pd.DataFrame(np.random.default_rng(0).dirichlet(np.ones(3), 400), columns=["p_a", "p_b", "p_c"])
    rng = np.random.default_rng(1)
    codes = (frame.to_numpy().cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(max=2)
    for labels, names in ((np.array(["a", "b", "c"]), "abc"), (np.arange(3), "012")):
        y = labels[codes]
        frame.columns = [f"p_{name}" for name in names]
        turned = frame[[f"p_{names[k]}" for k in (2, 0, 1)]]
        for notion in ("classwise", "confidence", "binary"):
            asked = {"pos_label": labels[1]} if notion == "binary" else {}
            whole = calibrant.ece(
                np.tile(y, 2), pd.concat([frame, frame]), notion=notion, estimator="l:10", **asked
            )
            for first, second in ((frame, turned), (turned, frame)):
                sketch = Sketch(notion, **asked).update(y, first).update(y, second)
                assert sketch.ece(estimator="l:10") == pytest.approx(whole, abs=1e-12)
            # labels= may name the classes in another order than the columns, or those of unnamed columns.
            given = {"labels": [labels[k] for k in (2, 1, 0)], **asked}
            unnamed = frame[frame.columns[::-1]].set_axis(["x", "y", "z"], axis=1)
            for table in (turned, unnamed):
                options = {"scores": list(table.columns), "notion": notion, **given}
                for found in (
                    calibrant.ece(y, table, notion=notion, estimator="l:10", **given),
                    Sketch(notion, **given).update(y, table).ece(estimator="l:10"),
                    Sketch.from_frame(table.assign(label=y), label="label", **options).ece(estimator="l:10"),
                ):
                    assert found == pytest.approx(whole, abs=1e-12)


def test_columns_numbered_by_default_do_not_override_labels():
    y, p = [2, 0, 1], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    frame = pl.DataFrame(np.array(p), schema=["column_0", "column_1", "column_2"])
    sketch = Sketch("confidence", labels=[2, 0, 1]).update(y, frame).update(y, frame)
    assert sketch.totals.right == 6
    assert calibrant.ece(y, frame, labels=[2, 0, 1], estimator="l:1") == pytest.approx(1 - 2.3 / 3)


def test_sketches_of_other_classes_do_not_add_up():
    p = np.full((3, 3), 1 / 3)
    one, other = (Sketch("confidence").update(list(names), p) for names in ("abc", "xyz"))
    with pytest.raises(ValueError, match="same classes"):
        one + other


@pytest.mark.parametrize(
    ("score", "n", "least"), [(1.0, 50, 0.9), (0.999, 50, 0.9), (0.99, 30, 0.6), (0.99, 60, 0.4)]
)
def test_outcomes_that_most_samples_have_are_no_sign_of_a_gap(score, n, least):
    y, p = np.ones(n), np.full(n, score)
    assert calibrant.estimate(y, p, rng=0).p_value >= least
    assert Sketch("binary").update(y, p).estimate(rng=0).p_value >= least


@pytest.mark.full
def test_a_model_that_is_sure_and_right_is_calibrated():
    y = np.random.default_rng(0).integers(0, 3, 500)
    for notion in ("confidence", "classwise"):
        assert calibrant.estimate(y, np.eye(3)[y], notion=notion, rng=0).p_value > 0.5
        assert Sketch(notion).update(y, np.eye(3)[y]).estimate(rng=0).p_value > 0.3


@pytest.mark.parametrize("vector", [True, False])
def test_the_first_update_decides_the_notion_as_ece_does(vector, tmp_path):
    y, p = binary(200) if vector else matrix(200)
    sketch = Sketch()
    assert sketch.notion is None
    assert repr(sketch) == "Sketch(notion=None, n=0)"
    sketch.update(y[:100], p[:100]).update(y[100:], p[100:])
    assert sketch.notion == ("binary" if vector else "confidence")
    assert sketch.ece(estimator="uniform") == pytest.approx(calibrant.ece(y, p, estimator="uniform"))
    told = Sketch(sketch.notion).update(y[:100], p[:100]).update(y[100:], p[100:])
    assert sketch.digest == told.digest
    sketch.save(tmp_path / "day.sketch")
    assert Sketch.load(tmp_path / "day.sketch").notion == sketch.notion


def test_an_empty_sketch_of_unknown_notion_merges_with_any(tmp_path):
    y, p = matrix(50)
    Sketch().save(tmp_path / "none.sketch")
    for notion in ("classwise", "confidence", "top:2"):
        full = Sketch(notion).update(y, p)
        for empty in (Sketch(), Sketch.load(tmp_path / "none.sketch")):
            for both in (full + empty, empty + full):
                assert (both.notion, both.digest) == (notion, full.digest)
    assert (Sketch() + Sketch()).notion is None
    assert (Sketch() + Sketch("classwise")).notion == "classwise"
    with pytest.raises(ValueError, match="sketches must have the same notion, got 'binary' and 'confidence'"):
        Sketch("binary") + Sketch("confidence")


def test_an_empty_sketch_of_unknown_notion_says_what_is_missing():
    asked = [
        Sketch.ece,
        Sketch.estimate,
        Sketch.assess,
        Sketch.curve,
        Sketch.diagram,
        Sketch.histogram,
        Sketch.regret_curve,
        lambda sketch: calibrant.net_benefit(sketch),
        Sketch.risk_coverage,
        Sketch.calibrator,
        lambda sketch: sketch.ece(estimator="uniform"),
        lambda sketch: sketch.regret(0.5),
        lambda sketch: sketch.best_threshold(0.5),
        lambda sketch: sketch.lce(0.5),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=r"the sketch is empty: call update\(y_true, y_prob\) first"):
            ask(Sketch())


def test_a_refused_first_update_decides_nothing():
    sketch = Sketch()
    with pytest.raises(ValueError, match="y_prob"):
        sketch.update([0, 1], [0.5, 2.0])
    assert sketch.notion is None
    y, p = matrix(50)
    assert sketch.update(y, p).notion == "confidence"
