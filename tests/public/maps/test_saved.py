"""Saved calibrators: what was fitted comes back to the last bit, and damage is refused by field."""

import json
import math

import numpy as np
import pytest

from calibrant import Calibrator, InputError, Sketch
from exported import OF_ALL_SCORES, OF_ONE_SCORE

pytestmark = pytest.mark.no_cover

VECTOR = np.concatenate([[0.0, 5e-324, 1e-310, 1e-9], np.linspace(0.01, 0.99, 25), [1 - 1e-16, 1.0]])


def binary(n=60, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 2)
    return score, (rng.random(n) < score**2).astype(int)


def matrix(n=60, c=3, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(c), n)
    return score, (rng.random((n, 1)) > score.cumsum(axis=1)[:, :-1]).sum(axis=1)


def two_columns(method):
    score, outcome = binary()
    return Calibrator(method).fit(np.stack([1 - score, score], axis=1), outcome)


def of_notion(notion, method="isotonic", **options):
    score, label = matrix()
    return Sketch(notion, **options).update(label, score).calibrator(method)


KINDS = {
    **{f"one {name}": lambda name=name: Calibrator(name).fit(*binary()) for name in OF_ONE_SCORE},
    "two columns": lambda: two_columns("venn-abers"),
    **{
        f"many {name}": lambda name=name: Calibrator(name, labels=[0, 1, 2]).fit(*matrix())
        for name in (*OF_ALL_SCORES, "isotonic")
    },
    "many axes": lambda: Calibrator("vector", labels=range(14)).fit(*matrix(80, 14)),
    "logits": lambda: Calibrator(from_logits=True).fit(binary()[0] * 8 - 4, binary()[1]),
    "binary": lambda: of_notion("binary", pos_label=2),
    "confidence": lambda: of_notion("confidence"),
    "texts": lambda: Calibrator("vector", labels=["a", "b", "c"]).fit(
        matrix()[0], np.array(["a", "b", "c"])[matrix()[1]]
    ),
}


def scores_for(calibrator):
    if calibrator.is_vector:
        return VECTOR
    corners = np.eye(size := len(calibrator.classes_))
    return np.concatenate([corners, np.full((1, size), 1 / size), matrix(5, size, 1)[0]])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_calibrator_predicts_the_same_to_the_last_bit(kind):
    made = KINDS[kind]()
    again = Calibrator.from_json(made.to_json())
    score = scores_for(made)
    score = np.log(score + 1e-9) if made.from_logits else score
    np.testing.assert_array_equal(again.predict_proba(score), made.predict_proba(score))
    for level in (0.5, 0.95):
        np.testing.assert_array_equal(
            again.predict_interval(score, level), made.predict_interval(score, level)
        )
    assert (again.classes_, again.notion_, again.temperature_) == (
        made.classes_,
        made.notion_,
        made.temperature_,
    )
    assert again.to_json() == made.to_json()


def replaced(content, path, value):
    """Return the content with one place changed; `KeyError` takes it away."""
    if not path:
        return value
    first, *rest = path
    copy = list(content) if isinstance(content, list) else dict(content)
    if not rest and value is KeyError:
        del copy[first]
    else:
        copy[first] = replaced(copy[first], rest, value)
    return copy


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        (
            "many temperature",
            ["multiclass", "untouched"],
            1e308,
            r"multiclass.untouched must lie in \[0, 1\]",
        ),
        ("many temperature", ["multiclass", "slope"], -1e308, r"multiclass.slope must lie in \(0, 1e\+50\]"),
        (
            "many temperature",
            ["multiclass", "n_classes"],
            4,
            "multiclass.n_classes must be the number of classes",
        ),
        ("many temperature", ["multiclass", "bent"], 0.5, "multiclass.bent must be 0 without draws"),
        ("many vector", ["multiclass", "draws"], [[1.0]], r"multiclass.draws must have \d+ columns"),
        ("many vector", ["multiclass", "draws"], [[1.0], []], r"multiclass.draws\[1\] must have 1 entries"),
        ("many vector", ["multiclass", "blocks"], None, "multiclass.draws must have 0 columns"),
        ("many vector", ["multiclass", "blocks", "bumps"], None, "multiclass.blocks.bumps must be given"),
        ("many vector", ["multiclass", "blocks", "n_classes"], 4, "multiclass.blocks.centre must have shape"),
        ("many axes", ["multiclass", "blocks", "axes"], None, "multiclass.blocks.axes must be given"),
        ("one auto", ["multiclass"], 3, "multiclass must be a mapping of fields, got 3"),
        ("many isotonic", ["maps"], [], "maps must have 3 entries, got 0"),
        ("many isotonic", ["bands"], [], "bands must have 3 entries, as maps, got 0"),
        (
            "many isotonic",
            ["maps", 1, "at"],
            [1.0, 0.5],
            r"maps\[1\].at\[1\] must not be below the entry before it",
        ),
        (
            "many isotonic",
            ["maps", 1, "value", 0],
            1.5,
            r"maps\[1\].value\[0\] must lie in \[0, 1\], got 1.5",
        ),
        ("many isotonic", ["maps", 1, "least"], 0.0, r"maps\[1\].least must lie in"),
        ("one logistic", ["maps", 0, "slope"], -1e308, r"maps\[0\].slope must lie in \[-1e\+50, 1e\+50\]"),
        ("one logistic", ["maps", 0, "slope"], KeyError, r"maps\[0\].slope must be given"),
        ("one logistic", ["maps", 0, "slope"], math.nan, r"maps\[0\].slope must be finite, got nan"),
        (
            "one logistic",
            ["maps", 0, "kind"],
            "tabel",
            r"maps\[0\].kind must be one of .*did you mean 'table'",
        ),
        ("one logistic", ["method"], "venn-abers", r"maps\[0\].kind must be that of method 'venn-abers'"),
        ("one venn-abers", ["maps", 0, "low", "between"], "line", r"maps\[0\].low must have scale 'score'"),
        ("two columns", ["positive"], -1, "positive must be at least 0, got -1"),
        ("two columns", ["positive"], 2, "positive must be below 2, the number of classes, got 2"),
        ("one auto", ["positive"], 0, "positive must be 1 for a vector of scores, got 0"),
        ("one auto", ["vector"], 1, "vector must be true or false, got 1"),
        ("many vector", ["vector"], True, "vector must be False for notion 'classwise'"),
        ("one auto", ["classes"], [1, 1], "classes must be at least two, each once"),
        ("one auto", ["classes"], [0, 1, 2], "classes must be two, the negative and the positive one"),
        ("one auto", ["n"], 0, "n must be above 0, got 0.0"),
        (
            "one auto",
            ["bands", 0, 4, "level"],
            0.98,
            r"bands\[0\] must have the levels 0.5, 0.8, 0.9, 0.95, 0.99",
        ),
        ("one auto", ["bands", 0, 0, "low", 0], 1.0, r"bands\[0\]\[0\].low\[0\] must not be above high"),
        ("one auto", ["format"], 99, "format must be 1, got 99; it was saved by another version"),
        ("one auto", ["methods"], "auto", "methods must be a known field, .*did you mean 'method'"),
    ],
)
def test_errors_name_the_path_of_the_field_and_its_rule(kind, path, value, message):
    content = json.loads(KINDS[kind]().to_json())
    if path == ["methods"]:
        content["methods"] = value
    with pytest.raises(InputError, match=f"^saved_calibrator.{message}"):
        Calibrator.from_json(json.dumps(replaced(content, path, value)))


def test_tables_of_venn_and_abers_that_cross_are_refused():
    content = json.loads(KINDS["one venn-abers"]().to_json())
    low, high = (content["maps"][0][name]["value"] for name in ("low", "high"))
    low[:], high[:] = [1.0] * len(low), [0.0] * len(high)
    with pytest.raises(InputError, match=r"^saved_calibrator.maps\[0\].low must not be above high, got 1.0"):
        Calibrator.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["[" * 10**5, "1" * 5000, b"\xff", '{"calibrant": "map", "format": 1}'])
def test_text_that_holds_no_calibrator_is_refused(text):
    with pytest.raises(InputError, match="must be"):
        Calibrator.from_json(text)


def test_a_label_that_json_cannot_hold_is_refused_when_saving():
    import datetime

    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    made = Calibrator("identity", labels=days, pos_label=days[1]).fit([0.2, 0.7], days)
    with pytest.raises(InputError, match=r"^classes\[0\] must be something that JSON holds"):
        made.to_json()
