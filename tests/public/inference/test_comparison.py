"""Comparisons of models on the same rows, on the same clusters, and of independent samples."""

import numpy as np
import pytest

import calibrant
from calibrant import InputError
from oracles.comparison import least_difference

FAST = {"rng": 0, "n_resamples": 99}
N = 240


def answers(seed, n, clusters, power=1.0):
    """Return right, confidence and question of each answer of a model; questions depend on the rows."""
    rng = np.random.default_rng(seed)
    question = rng.integers(0, clusters, n)
    score = np.clip(rng.random(n) * 0.7 + 0.3 * np.random.default_rng(99).random(clusters)[question], 0, 1)
    shared = np.random.default_rng(98).random(clusters)[question]
    uniform = np.where(rng.random(n) < 0.6, shared, rng.random(n))
    return (uniform < score**power).astype(int), score, question


@pytest.fixture(scope="module")
def two():
    """Two models that answer some of the same questions, the second twice as often."""
    models = {"a": answers(0, N, 60), "b": answers(1, 2 * N, 60, power=1.6)}
    return [{name: columns[k] for name, columns in models.items()} for k in range(3)]


@pytest.fixture(scope="module")
def by_cluster(two):
    right, score, question = two
    return calibrant.compare(right, score, notion="correctness", cluster=question, **FAST)


def test_names_of_clusters_and_the_order_of_rows_do_not_matter(two, by_cluster):
    right, score, question = two
    order = {name: np.random.default_rng(4).permutation(len(y)) for name, y in right.items()}
    moved = [{name: column[name][order[name]] for name in order} for column in (right, score)]
    ids = {name: np.array([f"question {k}" for k in question[name][order[name]]]) for name in order}
    found = calibrant.compare(*moved, notion="correctness", cluster=ids, **FAST)
    one, other = found.differences["b"], by_cluster.differences["b"]
    for name in ("value", "low", "high", "p_value", "correlation"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


def test_swapped_models_have_the_opposite_difference(two, by_cluster):
    right, score, question = two
    for found, options in (
        (by_cluster, {"cluster": question}),
        (calibrant.compare(right, score, notion="correctness", **FAST), {}),
    ):
        swapped = calibrant.compare(
            right, score, notion="correctness", baseline="b", **options, **FAST
        ).differences["a"]
        one = found.differences["b"]
        assert (swapped.value, swapped.low, swapped.high) == pytest.approx((-one.value, -one.high, -one.low))
        assert swapped.p_value == pytest.approx(one.p_value)
        assert swapped.accuracy.value == pytest.approx(-one.accuracy.value)
        assert (swapped.accuracy.low, swapped.accuracy.high) == pytest.approx(
            (-one.accuracy.high, -one.accuracy.low)
        )


def shared_rows():
    rng = np.random.default_rng(5)
    p = rng.random(600)
    cluster = rng.permutation(np.arange(600) % 150)
    return (rng.random(600) < p**1.3).astype(int), {"a": p, "b": np.sqrt(p), "c": p**1.3}, cluster


@pytest.mark.parametrize(
    ("clustered", "correlations"),
    [(False, (0.9833108910969831, -0.2008488885789896)), (True, (0.9799006682875053, -0.24445527425150682))],
)
def test_the_same_labels_for_each_model_are_the_labels_of_all(clustered, correlations):
    y, models, cluster = shared_rows()
    options = {"cluster": cluster} if clustered else {}
    plain = calibrant.compare(y, models, **options, **FAST)
    assert [each.correlation for each in plain.differences.values()] == pytest.approx(correlations, abs=1e-9)
    options = {"cluster": dict.fromkeys(models, cluster)} if clustered else {}
    own = calibrant.compare({name: y.copy() for name in models}, models, **options, **FAST)
    assert own.pairing == plain.pairing == ("paired by cluster" if clustered else "paired by row")
    for name, one in plain.differences.items():
        other = own.differences[name]
        assert (other.low, other.high, other.correlation) == pytest.approx(
            (one.low, one.high, one.correlation)
        )


def test_a_model_does_not_differ_from_itself_but_two_samples_may():
    y, models, _ = shared_rows()
    found = calibrant.compare(y, {"a": models["a"], "b": models["a"]}, **FAST).differences["b"]
    assert (found.low, found.value, found.high, found.p_value) == (0, 0, 0, 1)
    found = calibrant.compare({"a": y, "b": y}, {"a": models["a"], "b": models["a"]}, paired=False, **FAST)
    difference = found.differences["b"]
    assert difference.low < 0 < difference.high


def test_numbers_and_text_are_the_same_clusters(two):
    right, score, question = two
    wanted = calibrant.compare(right, score, notion="correctness", cluster=question, **FAST)
    as_text = question | {"b": np.array([str(k) for k in question["b"].tolist()])}
    found = calibrant.compare(right, score, notion="correctness", cluster=as_text, **FAST)
    assert found.pairing == "paired by cluster"
    assert found.differences["b"].correlation == pytest.approx(wanted.differences["b"].correlation)


def test_samples_of_different_sizes_are_independent(two):
    right, score, _ = two
    found = calibrant.compare(right, score, notion="correctness", **FAST)
    (difference,) = found.differences.values()
    assert (difference.correlation, difference.paired, found.pairing) == (0, False, "independent samples")
    estimates = found.estimates
    a, b = estimates["a"], estimates["b"]
    assert difference.low == pytest.approx(least_difference(b, a, 0.0), abs=1e-7)
    assert difference.high == pytest.approx(-least_difference(a, b, 0.0), abs=1e-7)
    assert "independent samples" in str(found)
    assert "240 rows" in str(found)
    assert "480 rows" in str(found)
    assert calibrant.Comparison.from_json(found.to_json()) == found


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_sketches_are_compared_like_their_rows(notion):
    rng = np.random.default_rng(7)
    labels, scores = {}, {}
    for name, n in (("last", 900), ("this", 1400)):
        logits = rng.normal(0, 1.5, (n, 3))
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        labels[name] = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        scores[name] = p if notion != "binary" else p[:, 1]
        if notion == "binary":
            labels[name] = (labels[name] == 1).astype(int)
    rows = calibrant.compare(labels, scores, notion=notion, **FAST)
    sums = calibrant.compare(
        {name: calibrant.Sketch(notion).update(labels[name], scores[name]) for name in labels}, **FAST
    )
    one, other = rows.differences["this"], sums.differences["this"]
    assert other.value == pytest.approx(one.value, abs=1e-3)
    if notion == "classwise":  # a sketch does not know how classes depend, so its interval is wider
        assert other.low < one.low < one.high < other.high
    else:
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=2e-3)
    assert (one.correlation, other.correlation, sums.pairing) == (0, 0, "independent samples")
    if notion == "confidence":
        assert other.accuracy.low == pytest.approx(one.accuracy.low, abs=1e-9)
        assert other.accuracy.value == pytest.approx(one.accuracy.value, abs=1e-9)


def test_paired_false_ignores_what_rows_have_in_common(two):
    y, models, _ = shared_rows()
    assert calibrant.compare(y, models, paired=False, **FAST).differences["b"].correlation == 0
    right, score, question = two
    found = calibrant.compare(right, score, notion="correctness", cluster=question, paired=False, **FAST)
    assert found.pairing == "independent samples"
    assert found.estimates["a"].clusters is not None


def test_models_without_a_cluster_in_common_are_independent(two):
    right, score, question = two
    ids = {"a": question["a"], "b": question["b"] + 1000}
    found = calibrant.compare(right, score, notion="correctness", cluster=ids, **FAST)
    assert found.pairing == "independent samples"
    with pytest.raises(InputError, match="True for models that share no cluster"):
        calibrant.compare(right, score, notion="correctness", cluster=ids, paired=True)


def test_a_difference_of_accuracies_is_a_caution(by_cluster):
    difference = by_cluster.differences["b"].accuracy
    assert difference.high < 0
    (caution,) = (text for text in by_cluster.cautions if "accuracies" in text)
    assert f"{difference.model_accuracy:.3f} and {difference.baseline_accuracy:.3f}" in caution
    assert "not directly comparable" in caution
    y, models, _ = shared_rows()
    assert calibrant.compare(y, models, **FAST).differences["b"].accuracy is None
    same = calibrant.compare(
        {"a": y, "b": y}, {"a": models["a"], "b": models["b"]}, notion="correctness", **FAST
    )
    assert same.differences["b"].accuracy.value == 0
    assert not any("accuracies" in text for text in same.cautions)


def test_clusters_widen_the_interval_of_a_difference_of_accuracies():
    y, p, question = answers(0, 120, 60)
    repeated = {"a": np.tile(y, 4), "b": np.tile(1 - y, 4)}
    scores, ids = {name: np.tile(p, 4) for name in "ab"}, {name: np.tile(np.arange(120), 4) for name in "ab"}
    options = {"notion": "correctness", "paired": False} | FAST
    once = calibrant.compare({"a": y, "b": 1 - y}, {"a": p, "b": p}, **options).differences["b"].accuracy
    four = calibrant.compare(repeated, scores, cluster=ids, **options).differences["b"].accuracy
    assert four.value == pytest.approx(once.value)
    assert four.high - four.low == pytest.approx(once.high - once.low, rel=0.03)
    assert question.size == 120


# Errors


Y, P = np.array([0, 1, 1, 0, 1, 0]), np.array([0.2, 0.7, 0.8, 0.3, 0.6, 0.4])
BOTH = {"a": P, "b": P[::-1]}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calibrant.compare({"a": Y, "c": Y}, BOTH),
            "y_true must have the names of the models, 'a', 'b'",
        ),
        (lambda: calibrant.compare(Y, BOTH, cluster={"a": Y}), "cluster must have the names of the models"),
        (lambda: calibrant.compare({"a": Y, "b": Y}), "models must map names to scores, unless y_true maps"),
        (lambda: calibrant.compare(Y), "models must map at least two names to scores"),
        (
            lambda: calibrant.compare({"a": Y, "b": Y[:4]}, {"a": P, "b": P[:4]}, paired=True),
            "paired must be False or left out, got True for samples of 6, 4 rows",
        ),
        (
            lambda: calibrant.compare({"a": Y, "b": Y[:4]}, {"a": P, "b": P}),
            "model 'b': y_true and y_prob must",
        ),
        (
            lambda: calibrant.compare(Y, BOTH, counts={"a": Y + 1, "b": Y + 2}, paired=True),
            "True for models that weight their rows differently",
        ),
        (
            lambda: calibrant.compare(Y, BOTH, cluster={"a": [1, 1, 2, 2, 3, 3], "b": None}, paired=True),
            "True for models with and without clusters",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_sketches_of_different_questions_are_refused():
    sketch = calibrant.Sketch().update(Y, P)
    with pytest.raises(InputError, match="compare sketches with each other"):
        calibrant.compare({"a": sketch, "b": Y}, BOTH)
    with pytest.raises(InputError, match="models must map names to scores"):
        calibrant.compare({"a": sketch, "b": Y})
    with pytest.raises(InputError, match="True for sketches, which hold sums of rows"):
        calibrant.compare({"a": sketch, "b": sketch}, paired=True)
    with pytest.raises(InputError, match="cluster must go with rows"):
        calibrant.compare({"a": sketch, "b": sketch}, cluster=Y)
    with pytest.raises(InputError, match="notion must be left out for a sketch"):
        calibrant.compare({"a": sketch, "b": sketch}, notion="binary")
    other = calibrant.Sketch("correctness").update(Y, P)
    with pytest.raises(InputError, match="models must all have the same notion, got binary"):
        calibrant.compare({"a": sketch, "b": other})
    words = calibrant.Sketch(pos_label="yes").update(np.where(Y, "yes", "no"), P)
    with pytest.raises(
        InputError, match="models must all be about the same classes, got 1 for 'a', 'yes' for 'b'"
    ):
        calibrant.compare({"a": sketch, "b": words})
