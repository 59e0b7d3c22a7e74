"""`Calibrator`: what is saved comes back, what is wrong is refused by name, and exports say the same."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import Calibrator, InputError
from calibrant.maps.methods import METHODS

ONE = [name for name, method in METHODS.items() if method.one]
MANY = [name for name, method in METHODS.items() if method.many]
GRID = np.concatenate([[0.0, 1e-9], np.linspace(0.01, 0.99, 33), [1.0]])


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 2)
    return score, (rng.random(n) < score**2).astype(int)


def matrix(n=60, c=3):
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(c), n)
    return score, (rng.random((n, 1)) > score.cumsum(axis=1)[:, :-1]).sum(axis=1)


# --- saved ---


@pytest.mark.parametrize("method", ONE)
def test_a_saved_map_of_one_score_comes_back(method, tmp_path):
    made = Calibrator(method).fit(*rows())
    made.save(tmp_path / "map.json")
    again = Calibrator.load(tmp_path / "map.json")
    assert repr(again) == repr(made)
    assert again.classes_ == made.classes_
    assert (again.predict_proba(GRID) == made.predict_proba(GRID)).all()
    for level in (0.8, 0.95):
        np.testing.assert_allclose(
            again.predict_interval(GRID, level), made.predict_interval(GRID, level), atol=1e-7
        )
    assert again.to_json() == made.to_json()


@pytest.mark.parametrize("method", [*MANY, "isotonic"])
def test_a_saved_map_of_many_classes_comes_back(method):
    score, label = matrix()
    names = np.array(["ant", "bee", "cat"])
    made = Calibrator(method, labels=["ant", "bee", "cat"]).fit(score, names[label])
    again = Calibrator.from_json(made.to_json())
    assert again.classes_ == ("ant", "bee", "cat")
    np.testing.assert_allclose(again.predict_proba(score), made.predict_proba(score), atol=1e-7)
    np.testing.assert_allclose(again.predict_interval(score), made.predict_interval(score), atol=1e-6)


def test_a_map_of_logits_comes_back_as_one():
    score, outcome = rows()
    odds = np.log((score + 0.01) / (1.01 - score))
    made = Calibrator(from_logits=True).fit(odds, outcome)
    again = Calibrator.from_json(made.to_json())
    assert (again.predict_proba(odds) == made.predict_proba(odds)).all()


def test_a_saved_map_is_small():
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    assert len(Calibrator().fit(score, rng.random(20_000) < score).to_json()) < 200_000


def test_a_level_that_was_not_saved_is_refused_with_those_that_were():
    again = Calibrator.from_json(Calibrator().fit(*rows()).to_json())
    with pytest.raises(InputError, match=r"level must be one that was saved with the map: 0\.5, 0\.8"):
        again.predict_interval(GRID, 0.7)


def changed(content, path, value):
    """Return the JSON with one entry replaced, or left out."""
    content = json.loads(json.dumps(content))
    *way, last = path
    here = content
    for step in way:
        here = here[step]
    if value is KeyError:
        del here[last]
    else:
        here[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["calibrant"], "sketch", "text"),
        (["format"], 99, "format"),
        (["format"], KeyError, "format"),
        (["method"], "magic", "method"),
        (["method"], KeyError, "method"),
        (["method"], [], "method"),
        (["notion"], "magic", "notion"),
        (["classes"], KeyError, "classes"),
        (["classes"], [1], "classes"),
        (["n"], "many", "n"),
        (["n"], None, "n"),
        (["maps"], [], "maps"),
        (["maps"], KeyError, "maps"),
        (["bands"], [], "maps"),
        (["maps", 0], 3, "kind"),
        (["maps", 0, "kind"], "magic", "kind"),
        (["maps", 0, "at"], [1, 0], "at"),
        (["maps", 0, "at"], "0123", "at"),
        (["maps", 0, "value", 3], "x", "value"),
        (["maps", 0, "value", 3], True, "value"),
        (["maps", 0, "value"], KeyError, "value"),
        (["maps", 0, "scale"], "log", "scale"),
        (["maps", 0, "between"], "curve", "between"),
        (["maps", 0, "least"], None, "least"),
        (["bands", 0], [], "bands"),
        (["bands", 0, "0.5", "low"], KeyError, "bands"),
        (["bands", 0, "0.5", "low", 0], 2.0, "bands"),
        (["bands", 0, "0.5", "score"], [0.0], "bands"),
        (["bands", 0, "0.5"], None, "bands"),
    ],
)
def test_damaged_maps_are_refused_with_the_name_of_the_field(path, value, named):
    content = json.loads(Calibrator("spline").fit(*rows(30)).to_json())
    with pytest.raises(InputError) as refused:
        Calibrator.from_json(changed(content, path, value))
    assert refused.value.argument == named


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["whole"], 3),
        (["whole", "draws"], [[1.0]]),
        (["whole", "draws"], KeyError),
        (["whole", "slope"], "steep"),
        (["whole", "n_classes"], 4),
        (["whole", "untouched"], KeyError),
        (["whole", "blocks"], None),
        (["whole", "blocks", "clock"], [1.0]),
        (["whole", "blocks", "clock"], [[], []]),
        (["whole", "blocks", "scale"], [1.0, 1.0]),
        (["whole", "blocks", "bumps"], [[0.5, 0.5]]),
        (["whole", "blocks", "axes"], [[1.0], [1.0], [1.0]]),
        (["whole", "blocks", "reach"], 1e999),
        (["whole", "blocks", "centre"], KeyError),
    ],
)
def test_damaged_maps_of_many_classes_are_refused(path, value):
    content = json.loads(Calibrator("vector").fit(*matrix()).to_json())
    with pytest.raises(InputError):
        Calibrator.from_json(changed(content, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["whole", "draws"], [[1.0]]),
        (["whole", "draws"], KeyError),
        (["whole", "slope"], "steep"),
        (["whole", "n_classes"], 4),
        (["whole", "margin"], [1.0]),
    ],
)
def test_damaged_maps_of_an_earlier_file_are_refused(path, value):
    held = json.loads((Path(__file__).parents[1] / "golden" / "earlier_maps.json").read_text())
    with pytest.raises(InputError):
        Calibrator.from_json(changed(held["temperature"]["map"], path, value))


@pytest.mark.parametrize("text", ["", "{", "3", "[]", "null", '{"calibrant": "sketch"}'])
def test_what_is_no_map_is_refused(text):
    with pytest.raises(InputError, match="text must be"):
        Calibrator.from_json(text)


# --- exported ---


@pytest.mark.parametrize("method", ONE)
def test_the_python_function_says_the_same(method):
    made = Calibrator(method).fit(*rows())
    space = {}
    exec(compile(made.python("f"), "map", "exec"), space)
    np.testing.assert_allclose([space["f"](float(p)) for p in GRID], made.predict_proba(GRID), atol=1e-12)


@pytest.mark.parametrize("method", ONE)
def test_the_expression_of_sql_says_the_same_in_duckdb(method):
    duckdb = pytest.importorskip("duckdb")
    made = Calibrator(method).fit(*rows())
    values = ", ".join(f"({k}, {float(p)!r}::DOUBLE)" for k, p in enumerate(GRID))
    asked = f'SELECT {made.sql(chr(34) + "p" + chr(34))} FROM (VALUES {values}) AS t(k, "p") ORDER BY k'
    found = [row[0] for row in duckdb.connect().execute(asked).fetchall()]
    np.testing.assert_allclose(np.array(found, dtype=float), made.predict_proba(GRID), atol=1e-9)


@pytest.mark.parametrize("export", [lambda made: made.sql("p"), lambda made: made.python()])
def test_what_one_expression_cannot_say_is_refused(export):
    odds = np.array([-1.0, 1.0, 2.0])
    for made in (Calibrator().fit(*matrix()), Calibrator(from_logits=True).fit(odds, [0, 1, 1])):
        with pytest.raises(InputError, match="calibrator must be a map of one score, as a probability"):
            export(made)


def test_the_function_has_a_name_that_python_takes():
    with pytest.raises(InputError, match="name must be"):
        Calibrator("identity").fit(*rows()).python("a b")


# --- refused ---


def test_swapped_arguments_are_recognised():
    score, outcome = rows()
    for wrong in (outcome, outcome.astype(bool), outcome.astype(float)):
        with pytest.raises(InputError, match="swap them"):
            Calibrator().fit(wrong, score)
    score, label = matrix()
    with pytest.raises(InputError, match="swap them"):
        Calibrator().fit(label % 2, score)
    with pytest.raises(InputError, match="swap them"):
        Calibrator().fit(np.array(["a", "b", "c"])[label], score)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Calibrator("magic").fit([0.2, 0.7], [0, 1]), "method"),
        (lambda: Calibrator(monotone="yes").fit([0.2, 0.7], [0, 1]), "monotone"),
        (lambda: Calibrator().predict_proba([0.3]), "calibrator"),
        (lambda: Calibrator().to_json(), "calibrator"),
        (lambda: Calibrator().fit([0.2, 1.7], [0, 1]), "y_prob"),
        (lambda: Calibrator().fit([0.2, np.nan], [0, 1]), "y_prob"),
        (lambda: Calibrator().fit([], []), "y_true and y_prob"),
        (lambda: Calibrator().fit([0.2, 0.3], [0, 1, 1]), "y_true and y_prob"),
        (lambda: Calibrator().fit([0.2, 0.3], [0, 1], [1.0, -1.0]), "sample_weight"),
        (lambda: Calibrator().fit([0.2, 0.7], [0, 1]).predict_proba([[0.3, 0.7]]), "y_prob"),
        (lambda: Calibrator().fit([0.2, 0.7], [0, 1]).predict_proba([1.3]), "y_prob"),
        (lambda: Calibrator().fit([0.2, 0.7], [0, 1]).predict_interval([0.3], 1.5), "level"),
        (lambda: Calibrator().fit([0.2, 0.7], [0, 1]).predict_pair([0.3]), "method"),
        (lambda: Calibrator().fit(*matrix()).predict_proba([0.3]), "y_prob"),
        (lambda: Calibrator().fit(*matrix()).predict_proba([[0.3, 0.7]]), "y_prob"),
        (lambda: Calibrator(from_logits=True).fit([0.2, np.inf], [0, 1]), "y_prob"),
        (lambda: Calibrator(from_logits=True).fit(["a", "b"], [0, 1]), "y_prob"),
    ],
)
def test_bad_input_is_refused_by_name(call, named):
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.argument == named


@pytest.mark.parametrize("from_logits", [False, True])
def test_columns_of_a_frame_are_read_by_name(from_logits):
    pandas = pytest.importorskip("pandas")
    score, label = matrix()
    frame = pandas.DataFrame(np.log(score) if from_logits else score, columns=["p_0", "p_1", "p_2"])
    made = Calibrator("vector", from_logits=from_logits).fit(frame, label)
    found = made.predict_proba(frame)
    other = frame[["p_2", "p_0", "p_1"]]
    np.testing.assert_allclose(made.predict_proba(other), found, atol=1e-12)
    turned = Calibrator("vector", from_logits=from_logits).fit(other, label)
    assert turned.classes_ == (2, 0, 1)
    np.testing.assert_allclose(turned.predict_proba(frame), found[:, [2, 0, 1]], atol=1e-6)
    again = Calibrator.from_json(made.to_json())
    np.testing.assert_allclose(again.predict_proba(other), found, atol=1e-7)


def test_a_saved_map_holds_each_key_once_and_finite_numbers():
    text = Calibrator("temperature").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_json()
    with pytest.raises(InputError, match="text must have each key once, got 'method' twice"):
        Calibrator.from_json(text.replace('"method":', '"method": "identity", "method":', 1))
    with pytest.raises(InputError, match="text must hold finite numbers, got NaN"):
        Calibrator.from_json(text.replace('"n": 4.0', '"n": NaN', 1))
