"""Tables of estimates: the cells of a loop, the macro average of a bootstrap, and how they are written."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant
from oracles.tables import bootstrap_sd, loop


@pytest.fixture(scope="module")
def rows():
    """Two models and three benchmarks, in no order."""
    rng = np.random.default_rng(1)
    n = 900
    score = rng.random(n)
    model, benchmark = rng.choice(["a", "b"], n), rng.integers(0, 3, n)
    y = (rng.random(n) < np.where(model == "a", score, score**2)).astype(int)
    return y, score, {"model": model, "benchmark": benchmark}


@pytest.fixture(scope="module")
def result(rows):
    return calibrant.estimate_by(*rows)


def same(found, expected):
    for name in (
        "value",
        "low",
        "high",
        "p_value",
        "null",
        "over",
        "n",
        "clusters",
        "n_resamples",
        "p_floor",
    ):
        assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.full
@pytest.mark.parametrize("case", ["plain", "counts", "weights", "clusters", "l2", "named"])
def test_cells_are_those_of_a_loop(rows, case):
    y, score, by = rows
    rng = np.random.default_rng(2)
    options = {
        "plain": {},
        "counts": {"counts": rng.integers(1, 4, len(y))},
        "weights": {"sample_weight": rng.random(len(y)) + 0.1},
        "clusters": {"cluster": rng.integers(0, 200, len(y))},
        "l2": {"norm": "l2", "level": 0.9, "rng": 7},
        "named": {"estimator": "uniform:10"},
    }[case]
    found = calibrant.estimate_by(y, score, by, **options)
    resamples = {key: cell.n_resamples for key, cell in found.cells.items()}
    expected = loop(y, score, list(by.values()), resamples, labels=(0, 1), **options)
    assert list(found.cells) == list(expected)
    for key, cell in found.cells.items():
        same(cell, expected[key])
    assert found.macro.value == pytest.approx(np.mean([each.value for each in expected.values()]))


def test_a_cell_without_a_class_has_all_classes():
    rng = np.random.default_rng(3)
    score = rng.dirichlet([1, 1, 1], 300)
    label = (score.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    cell = np.where(label == 2, "no", rng.choice(["no", "yes"], 300))
    assert set(label[cell == "yes"]) == {0, 1}
    for notion in ("classwise", "confidence"):
        found = calibrant.estimate_by(label, score, cell, notion=notion, labels=(0, 1, 2))
        resamples = {key: each.n_resamples for key, each in found.cells.items()}
        expected = loop(label, score, [cell], resamples, notion=notion, labels=(0, 1, 2))
        for key, each in found.cells.items():
            assert each.notion == notion
            same(each, expected[key])
    one = calibrant.estimate_by(np.repeat([0, 1], 50), np.full(100, 0.5), np.repeat(["x", "y"], 50))
    assert one.cautions[-1] == "All rows have the same outcome: x and y."


def test_cells_do_not_depend_on_the_order_of_rows(rows, result):
    order = np.random.default_rng(0).permutation(900)
    y, score, by = rows
    shuffled = calibrant.estimate_by(y[order], score[order], {name: v[order] for name, v in by.items()})
    assert shuffled.keys == result.keys
    for a, b in zip(shuffled.estimates, result.estimates, strict=True):
        assert (a.low, a.high, a.p_value) == (b.low, b.high, b.p_value)
    assert shuffled.macro.low == pytest.approx(result.macro.low)


def test_columns_come_in_many_kinds(rows, result):
    y, score, by = rows
    for frame in (pd.DataFrame(by), pl.DataFrame(by)):
        assert calibrant.estimate_by(y, score, frame) == result
    one = calibrant.estimate_by(y, score, pd.Series(by["model"], name="model"))
    assert one.columns == ("model",)
    assert one.keys == (("a",), ("b",))
    assert calibrant.estimate_by(y, score, list(by["model"])).columns == ("group",)
    days = np.repeat(np.array(["2026-05-02", "2026-05-01"], "M8[D]"), 450)
    assert calibrant.estimate_by(y, score, days).keys == (("2026-05-01",), ("2026-05-02",))


def test_the_macro_average_of_one_cell_is_the_cell(rows):
    y, score, _ = rows
    for truth in (y, (score > 0.2).astype(int)):
        found = calibrant.estimate_by(truth, score, ["all"] * 900)
        (cell,) = found.estimates
        ends = (found.macro.value, found.macro.low, found.macro.high)
        assert ends == pytest.approx((cell.value, cell.low, cell.high))


@pytest.mark.parametrize("shared", [True, False])
def test_the_macro_average_varies_as_in_a_bootstrap(shared):
    rng = np.random.default_rng(4)
    questions, models = 400, 4
    hard = np.tile(rng.random(questions), models)
    score = 0.8 + 0.1 * rng.random(questions * models)
    own = rng.random(questions * models)
    y = (np.where(rng.random(questions * models) < 0.7, hard, own) < 0.5).astype(int)
    model = np.repeat(np.arange(models), questions)
    question = np.tile(np.arange(questions), models) + (0 if shared else questions * model)
    found = calibrant.estimate_by(y, score, model, cluster=question)
    macro_sd = bootstrap_sd(y - score, model, question, rng)
    cell_sds = [
        bootstrap_sd((y - score)[rows], model[rows], question[rows], rng)
        for rows in model == np.arange(4)[:, None]
    ]
    # The intervals allow for more than the bootstrap does, and by the same factor in the cells.
    width = np.mean([each.high - each.low for each in found.estimates])
    assert (found.macro.high - found.macro.low) / width == pytest.approx(
        macro_sd / np.mean(cell_sds), rel=0.1
    )


def test_simultaneous_intervals_are_wider_and_say_so(rows, result):
    wide = calibrant.estimate_by(*rows, simultaneous=True)
    for a, b in zip(wide.estimates, result.estimates, strict=True):
        assert a.level == pytest.approx(1 - 0.05 / 6)
        assert a.low <= b.low
        assert a.high > b.high
    assert wide.level == result.level == 0.95
    assert "simultaneous for all cells" in str(wide)
    assert "of each cell by itself" in str(result)


@pytest.mark.full
def test_p_values_are_adjusted_and_can_be_rejected():
    rng = np.random.default_rng(5)
    n = 60 * 100
    score, cell = rng.random(n), np.repeat(np.arange(60), 100)
    y = rng.random(n) < np.where(cell == 7, score**4, score)
    found = calibrant.estimate_by(y, score, cell)
    p = [each.p_value for each in found.estimates]
    assert found.p_adjusted[7] < 0.05
    assert found.estimates[7].n_resamples > 999
    assert found.p_adjusted[7] >= p[7]
    assert len(str(found).split("\n\n")[0].splitlines()) == 1 + 40 + 1
    assert "20 cells with smaller errors are not shown" in str(found)


def test_a_table_is_saved_and_read(result):
    assert calibrant.EstimateTable.from_json(result.to_json()) == result
    values = json.loads(result.to_json())
    values["keys"][1] = values["keys"][0]
    with pytest.raises(
        calibrant.InputError, match="keys must hold different cells, at least one, of 2 values"
    ):
        calibrant.EstimateTable.from_dict(values)
    with pytest.raises(calibrant.InputError, match="p_adjusted must have 6 entries, got 5"):
        calibrant.EstimateTable.from_dict(result.to_dict() | {"p_adjusted": [0.5] * 5})


def test_a_table_is_text_of_80_columns_and_html(result):
    assert max(map(len, str(result).splitlines())) <= 80
    assert "macro average" in result._repr_html_()
    assert repr(result).startswith("EstimateTable(6 cells by model, benchmark; macro 0.")


def test_a_table_is_written_for_papers(rows):
    y, score, by = rows
    model = np.where(by["model"] == "a", "a_1 & 50%", "x|y\\z^")
    found = calibrant.estimate_by(y, score, {"model_name": model})
    latex = found.to_latex()
    assert latex.startswith(
        "\\begin{tabular}{lrrrrrr}\n\\toprule\nmodel\\_name & n & ECE & 95 \\% interval &"
    )
    assert "\na\\_1 \\& 50\\% & " in latex
    assert "\nx|y\\textbackslash{}z\\textasciicircum{} & " in latex
    assert "$\\le$ 0.001" in latex
    lines = found.to_markdown().splitlines()
    assert lines[0].startswith("| model_name | n | ECE |")
    assert lines[3].startswith("| x\\|y\\\\z^ | ")
    assert len(lines) == 5


def test_a_table_is_drawn_in_its_order(result):
    ax = result.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(result.names)
    assert result.names[0] == "a, 0"
    assert any(
        "macro average" in text.get_text() for text in ax.figure.findobj(lambda o: hasattr(o, "get_text"))
    )


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (None, "by must hold one value for each of 900 rows"),
        (np.zeros((900, 2)), "by must hold one value.*pass several columns by name"),
        ([None] * 900, "by must have no missing values, got None at position 0"),
        (
            {"a": [1] * 900, "b": [1] * 899},
            r"by\['b'\] must hold one value for each of 900 rows, got shape \(899,\)",
        ),
        ({}, "by must name at least one column"),
        ({1: [1] * 900}, "by must name at least one column, each by a text, got 1"),
        ({"value": [1] * 900}, "by must have other names than the columns of results.*got 'value'"),
        (np.array(["NaT"] + ["2026-05-01"] * 899, "M8[D]"), "by must have no missing values"),
    ],
)
def test_bad_columns_are_refused(rows, by, message):
    with pytest.raises(calibrant.InputError, match=message):
        calibrant.estimate_by(*rows[:2], by)


def test_too_many_cells_are_refused():
    n = 10_001
    with pytest.raises(calibrant.InputError, match="by must have at most 10000 distinct values, got 10001"):
        calibrant.estimate_by(np.arange(n) % 2, np.full(n, 0.5), np.arange(n))
    two = {"a": np.arange(n) % 101, "b": np.arange(n) % 100}
    with pytest.raises(calibrant.InputError, match="by must have at most 10000 distinct values, got 10001"):
        calibrant.estimate_by(np.arange(n) % 2, np.full(n, 0.5), two)


def test_class_names_and_progress_reach_the_cells(rows):
    y, score, by = rows
    steps = []
    found = calibrant.estimate_by(
        y, score, by["model"], class_names=["no", "yes"], progress=lambda *state: steps.append(state)
    )
    assert {each.label for each in found.estimates} == {"yes"}
    assert steps[-1] == (2, 2)


def test_small_cells_and_single_clusters_are_named():
    rng = np.random.default_rng(6)
    score, cell = rng.random(200), np.repeat(["big", "small"], [180, 20])
    cluster = np.where(cell == "small", 0, 1 + np.arange(200) % 50)
    found = calibrant.estimate_by(rng.random(200) < score, score, cell, cluster=cluster)
    assert "Fewer than 30 rows: small." in found.cautions
    assert any(caution.startswith("All rows belong to a single cluster") for caution in found.cautions)
