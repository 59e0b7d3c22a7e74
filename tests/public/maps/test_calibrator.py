"""`Calibrator`: what is saved comes back, what is wrong is refused by name, and exports say the same."""

import numpy as np
import pytest

from calibrant import Calibrator, InputError, InputWarning, compare_calibrators
from exported import OF_ONE_SCORE

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


@pytest.mark.full
@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_a_saved_map_of_one_score_comes_back(method, tmp_path):
    made = Calibrator(method).fit(*rows())
    made.save(tmp_path / "map.json")
    again = Calibrator.load(tmp_path / "map.json")
    assert repr(again) == repr(made)
    assert again.classes_ == made.classes_
    assert (again.predict_proba(GRID) == made.predict_proba(GRID)).all()


def test_a_saved_map_is_small():
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    assert len(Calibrator().fit(score, rng.random(20_000) < score).to_json()) < 200_000


def test_a_level_that_was_not_saved_is_refused_with_those_that_were():
    again = Calibrator.from_json(Calibrator().fit(*rows()).to_json())
    with pytest.raises(InputError, match=r"level must be one that was saved with the map: 0\.5, 0\.8"):
        again.predict_interval(GRID, 0.7)


@pytest.mark.parametrize("text", ["", "{", "3", "[]", "null", '{"calibrant": "sketch"}'])
def test_what_is_no_map_is_refused(text):
    with pytest.raises(InputError, match=r"^saved_calibrator(\.calibrant)? must be"):
        Calibrator.from_json(text)


# --- exported ---


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_python_function_says_the_same(method):
    made = Calibrator(method).fit(*rows())
    space = {}
    exec(compile(made.to_python("f"), "map", "exec"), space)
    np.testing.assert_allclose([space["f"](float(p)) for p in GRID], made.predict_proba(GRID), atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_expression_of_sql_says_the_same_in_duckdb(method):
    duckdb = pytest.importorskip("duckdb")
    made = Calibrator(method).fit(*rows())
    values = ", ".join(f"({k}, {float(p)!r}::DOUBLE)" for k, p in enumerate(GRID))
    asked = f'SELECT {made.to_sql(chr(34) + "p" + chr(34))} FROM (VALUES {values}) AS t(k, "p") ORDER BY k'
    found = [row[0] for row in duckdb.connect().execute(asked).fetchall()]
    np.testing.assert_allclose(np.array(found, dtype=float), made.predict_proba(GRID), atol=1e-9)


@pytest.mark.parametrize("export", [lambda made: made.to_sql("p"), lambda made: made.to_python()])
def test_what_one_expression_cannot_say_is_refused(export):
    odds = np.array([-1.0, 1.0, 2.0])
    for made in (Calibrator().fit(*matrix()), Calibrator(from_logits=True).fit(odds, [0, 1, 1])):
        with pytest.raises(InputError, match="calibrator must be a map of one score, as a probability"):
            export(made)


def test_the_function_has_a_name_that_python_takes():
    with pytest.raises(InputError, match="name must be"):
        Calibrator("identity").fit(*rows()).to_python("a b")


# --- refused ---


def test_swapped_arguments_are_recognised():
    score, outcome = rows()
    for wrong in (outcome, outcome.astype(bool), outcome.astype(float)):
        with pytest.raises(InputError, match="swap them"):
            Calibrator().fit(wrong, score)
    score, label = matrix()
    with pytest.raises(InputError, match="swap them"):
        Calibrator().fit(label, score)
    with pytest.raises(InputError, match="swap them"):
        Calibrator().fit(np.array(["a", "b", "c"])[label], score)
    hint = "compare_calibrators takes scores first and labels second: swap them"
    for wrong in ((label, score), rows()[::-1]):
        with pytest.raises(InputError, match=hint):
            compare_calibrators(*wrong)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Calibrator("magic").fit([0.2, 0.7], [0, 1]), "method"),
        (lambda: Calibrator(monotone="yes").fit([0.2, 0.7], [0, 1]), "monotone"),
        (lambda: Calibrator().predict_proba([0.3]), "calibrator"),
        (lambda: Calibrator().to_json(), "calibrator"),
        (lambda: Calibrator().set_params(metod="beta"), "parameter"),
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


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_probabilities_in_the_place_of_logits_are_refused(dtype):
    score, label = matrix()
    made = Calibrator("temperature", from_logits=True)
    with pytest.raises(
        InputError, match=r"y_prob must hold logits .* got probabilities.*leave out from_logits"
    ):
        made.fit(score.astype(dtype), label)
    # In double precision, probabilities that a softmax in single precision gave.
    with pytest.raises(InputError, match="got probabilities"):
        made.fit(score.astype("float32").astype("float64"), label)
    made.fit(np.log(score).astype(dtype), label)
    with pytest.raises(InputError, match="got probabilities"):
        made.predict_proba(score.astype(dtype))


def test_logits_that_are_no_probabilities_are_taken():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 60)
    inside = rng.random((60, 3))
    sums = inside - inside.mean(axis=1, keepdims=True) + 1 / 3 + np.array([2.0, -1.0, -1.0])
    for logits in (inside, sums, np.log(matrix()[0])):
        Calibrator("temperature", from_logits=True).fit(logits, label).predict_proba(logits[:2])
    made = Calibrator("temperature", from_logits=True).fit(np.array([[0.0, 1.0], [1.0, 0.0]]), [1, 0])
    np.testing.assert_allclose(made.predict_proba([[0.5, 0.5]]), [[0.5, 0.5]])


def test_log_odds_that_may_be_probabilities_get_a_warning():
    score, outcome = rows()
    with pytest.warns(InputWarning, match=r"all values of y_prob lie in \[0, 1\]"):
        Calibrator("temperature", from_logits=True).fit(score, outcome)
    Calibrator("temperature", from_logits=True).fit(score[:19], outcome[:19])
    made = Calibrator("temperature", from_logits=True).fit(np.append(score, 1.5), np.append(outcome, 1))
    made.predict_proba(score)


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
    np.testing.assert_allclose(again.predict_proba(other), found, atol=1e-12)


def test_the_names_of_the_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    score, label = matrix()
    made = Calibrator("vector").fit(pandas.DataFrame(score, columns=["p_0", "p_1", "p_2"]), label)
    assert Calibrator.from_json(made.to_json()).columns_ == ("p_0", "p_1", "p_2")
    score, outcome = rows()
    assert Calibrator("beta").fit(pandas.Series(score, name="risk"), outcome).columns_ == ("risk",)
    for nameless in (score, pandas.Series(score)):
        assert Calibrator("beta").fit(nameless, outcome).columns_ is None


def test_a_saved_map_holds_each_key_once_and_finite_numbers():
    text = Calibrator("temperature").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_json()
    with pytest.raises(InputError, match="saved_calibrator must have each key once, got 'method' twice"):
        Calibrator.from_json(text.replace('"method":', '"method": "identity", "method":', 1))
    with pytest.raises(InputError, match="n must be finite, got nan"):
        Calibrator.from_json(text.replace('"n": 4.0', '"n": NaN', 1))


def test_a_calibrator_is_cloned_and_found_fitted_by_scikit_learn():
    base = pytest.importorskip("sklearn.base")
    from sklearn import exceptions
    from sklearn.utils.validation import check_is_fitted

    made = Calibrator("platt", labels=("a", "b"), pos_label="b").fit([0.2, 0.7], ["a", "b"])
    check_is_fitted(made)
    copy = base.clone(made)
    assert copy.get_params() == made.get_params()
    assert repr(copy) == "Calibrator('sigmoid')"
    with pytest.raises(exceptions.NotFittedError):
        check_is_fitted(copy)


def logit(p):
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize("method", ["temperature", "sigmoid", "logistic", "beta"])
def test_coefficients_say_what_the_map_does(method):
    p = GRID[2:-1]
    made = Calibrator(method).fit(*rows())
    features = np.stack([np.log(p), -np.log1p(-p)] if method == "beta" else [logit(p)])
    ((intercept,), coefficients) = made.intercept_, made.coef_
    assert coefficients.shape == (1, len(features))
    np.testing.assert_allclose(
        (coefficients @ features)[0] + intercept, logit(made.predict_proba(p)), atol=1e-9
    )
    many = Calibrator(method).fit(*matrix())
    count = 1 if method == "temperature" else 3
    assert (many.coef_.shape, many.intercept_.shape) == ((count, len(features)), (count,))
    if method == "temperature":
        assert many.coef_[0, 0] == pytest.approx(1 / many.temperature_, rel=1e-14)


def test_other_methods_have_no_coefficients():
    made = Calibrator("isotonic").fit(*rows())
    assert not hasattr(made, "coef_")
    assert not hasattr(made, "intercept_")
    assert not hasattr(Calibrator("beta"), "coef_")
    with pytest.raises(AttributeError, match="method 'isotonic' has no coef_"):
        _ = made.coef_
