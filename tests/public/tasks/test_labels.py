"""Top-label and multi-label calibration, and scores that are logits."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Calibrator, InputError, InputWarning, Sketch
from calibrant.cli import main
from oracles import prior as oracle


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet([1, 2, 3], 400)
    return (matrix.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1), matrix


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(1)
    score = rng.random((400, 3))
    return (rng.random((400, 3)) < score ** [1, 2, 1]).astype(int), score


@pytest.mark.parametrize("bins", [5, 15])
def test_top_label_is_the_slow_loop(rows, bins):
    found = calibrant.ece(*rows, notion="top-label", estimator=f"uniform:{bins}")
    assert found == pytest.approx(oracle.top_label(*rows, bins), abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("weights", [None, "sample_weight", "counts"])
def test_top_label_averages_the_predicted_classes_by_frequency(rows, norm, weights):
    label, matrix = rows
    weight = np.random.default_rng(2).integers(0, 4, len(label))
    best, score = matrix.argmax(axis=1), matrix.max(axis=1)
    options = {} if weights is None else {weights: weight}
    found = calibrant.ece(label, matrix, notion="top-label", estimator="adaptive:8", norm=norm, **options)
    errors, shares = [], []
    for k in range(3):
        part = best == k
        some = {name: value[part] for name, value in options.items()}
        errors.append(calibrant.ece(label[part] == k, score[part], estimator="adaptive:8", norm=norm, **some))
        shares.append(part.sum() if weights is None else weight[part].sum())
    power = 2 if norm == "l2" else 1
    mean = np.average(np.array(errors) ** power, weights=shares) ** (1 / power)
    assert found == pytest.approx(max(errors) if norm == "max" else mean, abs=1e-12)


def test_the_error_of_a_single_predicted_class_is_that_of_the_confidence():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.55, 1, 300)
    matrix = np.stack([score, 1 - score], axis=1)
    label = (rng.random(300) > score**1.5).astype(int)
    both = [calibrant.estimate(label, matrix, notion=name) for name in ("top-label", "confidence")]
    assert both[0].value == pytest.approx(both[1].value, rel=0.1)
    assert list(both[0].by_class) == [0]
    assert both[0].p_value <= 0.05


def test_a_class_that_is_never_predicted_has_no_estimate(rows):
    label, matrix = rows
    wider = np.column_stack([matrix[:, :1], np.zeros(len(label)), matrix[:, 1:]])
    found = calibrant.estimate(np.array([0, 2, 3])[label], wider, notion="top-label")
    assert list(found.by_class) == [0, 2, 3]
    assert found.value == pytest.approx(calibrant.ece(label, matrix, notion="top-label"), abs=1e-9)
    assert sum(each.n for each in found.by_class.values()) == found.n == 400


def test_top_label_does_not_depend_on_the_order_of_rows_and_columns(rows):
    label, matrix = rows
    order, columns = np.random.default_rng(3).permutation(400), np.array([2, 0, 1])
    first = calibrant.estimate(label, matrix, notion="top-label")
    second = calibrant.estimate(
        label[order], matrix[order][:, columns], labels=columns.tolist(), notion="top-label"
    )
    for name in ("value", "low", "high", "p_value"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=1e-9), name


def test_multilabel_is_the_mean_of_the_columns(several):
    truth, score = several
    for norm, power in (("l1", 1), ("l2", 2)):
        found = calibrant.ece(truth, score, notion="multilabel", estimator="uniform:10", norm=norm)
        single = [
            calibrant.ece(truth[:, k], score[:, k], estimator="uniform:10", norm=norm) for k in range(3)
        ]
        assert found == pytest.approx(np.mean(np.power(single, power)) ** (1 / power), abs=1e-12)


def test_multilabel_finds_the_column_that_is_off(several):
    found = calibrant.estimate(*several, notion="multilabel")
    assert [each.p_value <= 0.01 for each in found.by_class.values()] == [False, True, False]
    assert found.p_value <= 0.01
    assert found.low <= 1 / 18 <= found.high


def test_the_order_of_rows_does_not_change_a_multilabel_test(several):
    order = np.random.default_rng(0).permutation(400)
    first = calibrant.estimate(*several, notion="multilabel")
    second = calibrant.estimate(*(each[order] for each in several), notion="multilabel")
    assert first.p_value == second.p_value
    assert first.value == pytest.approx(second.value, abs=1e-9)


def test_a_sketch_of_several_labels_is_that_of_the_rows(several, tmp_path):
    truth, score = several
    sketch = Sketch("multilabel").update(truth[:100], score[:100])
    sketch += Sketch("multilabel").update(truth[100:], score[100:])
    named = {"notion": "multilabel", "estimator": "uniform:15"}
    assert sketch.ece(estimator="uniform:15") == pytest.approx(calibrant.ece(truth, score, **named), abs=1e-9)
    sketch.save(tmp_path / "some.sketch")
    assert Sketch.load(tmp_path / "some.sketch").digest == sketch.digest
    assert sketch.estimate().conservative


def test_names_of_columns_match_labels_to_scores(several):
    truth, score = several
    scores = pd.DataFrame(score, columns=["a", "b", "c"])
    labels = pd.DataFrame(truth, columns=["a", "b", "c"])[["c", "a", "b"]]
    found = calibrant.estimate(labels, scores, notion="multilabel")
    assert list(found.by_class) == ["a", "b", "c"]
    assert found.value == pytest.approx(calibrant.ece(truth, score, notion="multilabel"), abs=1e-12)


def test_logits_are_read_as_their_probabilities(rows, several):
    label, matrix = rows
    truth, score = several
    odds = np.log(score) - np.log1p(-score)
    for given, plain, logits, notion in (
        (label, matrix, np.log(matrix) + 3, "confidence"),
        (label, matrix, np.log(matrix), "top-label"),
        (truth, score, odds, "multilabel"),
        (truth[:, 0], score[:, 0], odds[:, 0], "binary"),
    ):
        options = {"notion": notion, "estimator": "uniform:10"}
        expected = calibrant.ece(given, plain, **options)
        assert calibrant.ece(given, logits, from_logits=True, **options) == pytest.approx(expected, abs=1e-9)
        if notion != "top-label":
            sketch = Sketch(notion).update(given, logits, from_logits=True)
            assert sketch.ece(estimator="uniform:10") == pytest.approx(expected, abs=1e-9)
    found = calibrant.estimate(label, np.log(matrix), from_logits=True)
    assert found.value == pytest.approx(calibrant.ece(label, matrix), abs=1e-9)


def test_probabilities_that_are_called_logits_get_a_warning(rows, several):
    with pytest.warns(InputWarning, match="rows sum to 1"):
        calibrant.ece(*rows, from_logits=True)
    with pytest.warns(InputWarning, match="lie in"):
        calibrant.ece(*several, notion="multilabel", from_logits=True)


def test_the_assessment_of_top_label_shows_confidence(rows):
    found = calibrant.assess(*rows, notion="top-label", rng=0)
    assert list(found.estimates) == ["top-label", "confidence"]
    assert found.curve_notion == "confidence"
    assert sum(each.rows for each in found.by_class) == 400
    assert found.scores[0].value == pytest.approx(
        ((rows[1] - np.eye(3)[rows[0]]) ** 2).sum(axis=1).mean(), abs=1e-9
    )
    again = calibrant.Assessment.from_json(found.to_json())
    assert again.verdict == found.verdict


def test_a_calibrator_for_top_label_has_a_map_for_each_predicted_class():
    rng = np.random.default_rng(0)
    best, score = rng.choice(3, 1200, p=[0.6, 0.38, 0.02]), rng.uniform(0.5, 1, 1200)
    matrix = np.repeat((1 - score)[:, None] / 2, 3, axis=1)
    matrix[np.arange(1200), best] = score
    right = rng.random(1200) < score ** np.array([2.0, 1.0, 1.0])[best]
    label = np.where(right, best, (best + 1) % 3)
    calibrator = Calibrator("logistic", notion="top-label").fit(matrix, label)
    found = calibrator.predict_proba(matrix)
    for k, part in ((0, best == 0), (1, best == 1)):
        single = Calibrator("logistic").fit(score[part], label[part] == k)
        np.testing.assert_allclose(found[part], single.predict_proba(score[part]), atol=1e-9)
    pooled = Calibrator("logistic").fit(score, label == best)  # the third class has few rows
    np.testing.assert_allclose(found[best == 2], pooled.predict_proba(score[best == 2]), atol=1e-9)
    low, high = calibrator.predict_interval(matrix)
    assert (low <= found).all()
    assert (found <= high).all()
    again = Calibrator.from_json(calibrator.to_json())
    np.testing.assert_array_equal(again.predict_proba(matrix), found)


def test_a_calibrator_for_several_labels_maps_each_column(several):
    truth, score = several
    calibrator = Calibrator("beta", notion="multilabel").fit(score, truth)
    for k in range(3):
        single = Calibrator("beta").fit(score[:, k], truth[:, k]).predict_proba(score[:, k])
        np.testing.assert_allclose(calibrator.predict_proba(score)[:, k], single, atol=1e-9)
    again = Calibrator.from_json(calibrator.to_json())
    np.testing.assert_array_equal(again.predict_proba(score), calibrator.predict_proba(score))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: calibrant.assess(y, p, notion="multilabel"), "exclusive classes here"),
        (lambda y, p: calibrant.ece(y, p[:, 0], notion="multilabel"), "matrices of the same shape"),
        (lambda y, p: calibrant.ece(y * 2, p, notion="multilabel"), "1 where a row has the label"),
        (lambda y, p: calibrant.ece(y, p, notion="multilabel", pos_label=1), "pos_label must be left out"),
        (lambda y, p: calibrant.ece(y, p, notion="multilabel", labels=[1]), "name 3 columns"),
        (lambda y, p: calibrant.estimate(y, p, notion="multilabel", cluster=y[:, 0]), "be left out"),
        (lambda y, p: Sketch("top-label"), "known from sums"),
        (lambda y, p: Sketch("multilabel").update(y, p, percent=True), "percent must be left out"),
        (
            lambda y, p: calibrant.ece(y[:, 0], p[:, 0], from_logits=True, percent=True),
            "percent must be False",
        ),
        (lambda y, p: Calibrator(notion="top-label").fit(p[:, 0], y[:, 0]), "a column for each class"),
        (lambda y, p: Calibrator("vector", notion="multilabel").fit(p, y), "map of one score"),
    ],
)
def test_what_does_not_apply_is_refused(several, call, message):
    with pytest.raises(InputError, match=message):
        call(*several)


@pytest.mark.parametrize("notion", ["top-label", "multilabel"])
def test_other_functions_refuse_both(rows, notion):
    for call in (
        lambda: calibrant.recommend(rows[1], notion=notion),
        lambda: calibrant.risk_coverage(*rows, notion=notion),
        lambda: calibrant.Monitor(notion=notion),
    ):
        with pytest.raises(InputError, match="notion must be another one here"):
            call()


def test_models_are_not_compared_by_top_label(rows):
    with pytest.raises(InputError, match="the same rows of every model"):
        calibrant.compare(rows[0], {"a": rows[1], "b": rows[1]}, notion="top-label")


def test_the_command_line_reads_logits_and_top_label(rows, tmp_path):
    label, matrix = rows
    table = pd.DataFrame(np.log(matrix), columns=["p_0", "p_1", "p_2"]).assign(label=label)
    table.to_csv(tmp_path / "logits.csv", index=False)
    words = ["ece", str(tmp_path / "logits.csv"), "--from-logits", "--notion", "top-label", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["value"] == pytest.approx(calibrant.ece(label, matrix, notion="top-label"), abs=1e-9)
    refused = CliRunner().invoke(main, [*words[:2], "--notion", "multilabel"])
    assert refused.exit_code == 2
    assert "one label of each row" in refused.output


@pytest.mark.parametrize("command", [("ece",), ("curve",), ("regret", "--cost", "0.2")])
def test_the_command_points_logits_to_its_option(command, tmp_path):
    (tmp_path / "logits.csv").write_text("y,score\n0,-2\n1,0.3\n1,4\n")
    result = CliRunner().invoke(main, [command[0], str(tmp_path / "logits.csv"), *command[1:]])
    assert result.exit_code == 2
    assert "these look like logits: apply sigmoid first; or give --from-logits" in result.output
