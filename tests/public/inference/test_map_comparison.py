"""Maps compared on rows that they have not seen."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import calibrant
from calibrant import InputError, MapComparison


def sharpened(n, seed=0):
    """Overconfident scores and their outcomes."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 1, n)
    outcome = rng.random(n) < 1 / (1 + np.exp(-odds))
    return outcome, 1 / (1 + np.exp(-2.5 * odds))


@pytest.fixture(scope="module")
def compared():
    outcome, score = sharpened(1000)
    methods = ["auto", "temperature", "isotonic"]
    return calibrant.compare_calibrators(score, outcome, methods=methods, rng=1)


def test_the_scores_as_they_are_stand_beside_the_maps(compared):
    assert {row.method for row in compared} == {"identity", "auto", "temperature", "isotonic"}
    alone = compared["identity"]
    outcome, score = sharpened(1000)
    assert alone.log_loss.value == pytest.approx(log_loss(outcome, score))
    assert alone.brier.value == pytest.approx(np.mean((score - outcome) ** 2))
    assert alone.ece.value == pytest.approx(calibrant.estimate(outcome, score, rng=1).value)
    assert (alone.log_loss.difference.value, alone.ece.difference.value) == (0, 0)


def test_what_helps_is_found(compared):
    assert {"auto", "temperature"} >= set(compared.best_group) > set()
    assert compared.table[0].log_loss.value == min(row.log_loss.value for row in compared)
    for name in ("auto", "temperature"):
        row = compared[name]
        for figure in (row.log_loss, row.brier, row.ece):
            assert figure.low <= figure.value <= figure.high
            assert figure.difference.low <= figure.difference.value <= figure.difference.high < 0


def test_nothing_helps_scores_that_are_calibrated():
    rng = np.random.default_rng(2)
    score = rng.random(800)
    result = calibrant.compare_calibrators(
        score, rng.random(800) < score, methods=["auto", "histogram"], rng=0
    )
    assert not result["auto"].log_loss.difference.high < 0
    assert result["histogram"].log_loss.value > result["identity"].log_loss.value
    assert "identity" in result.best_group
    assert str(result).startswith("no method has a significantly lower log loss than the scores as they are")


def test_a_loss_without_bound_is_told():
    # The last 1 lies below all others: what others taught gives it no chance.
    score = np.concatenate([[0.001], np.linspace(0.01, 0.4, 60), np.linspace(0.6, 0.99, 60)])
    outcome = np.concatenate([[1], np.zeros(60), np.ones(60)]).astype(int)
    result = calibrant.compare_calibrators(score, outcome, methods=["isotonic"], rng=0)
    assert result["isotonic"].log_loss.value == np.inf
    assert result["isotonic"].log_loss.difference is None
    assert result["isotonic"].from_best is None
    assert result["isotonic"].infinite_rows == 1
    assert result.best == "identity"
    lines = str(result).splitlines()
    assert lines[:2] == [
        "best: identity, the scores as they are; all others have a higher log loss",
        "log loss is infinite, as a class of probability 0 occurred: isotonic (1 row)",
    ]
    assert any(line.split() == ["isotonic", "infinite", "(1", "row)"] for line in lines)
    assert '"log_loss": {"value": "inf", "low": "inf", "high": "inf", ' in result.to_json()
    assert MapComparison.from_json(result.to_json()) == result


def rounded(n=800, seed=3):
    """Scores of which many are rounded to 0 and 1, with outcomes that contradict some of these."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 2, n)
    score = np.round(1 / (1 + np.exp(-1.5 * odds)), 1)
    return rng.random(n) < 1 / (1 + np.exp(-odds)), score


def test_methods_are_compared_where_the_log_loss_of_the_scores_is_infinite():
    outcome, score = rounded()
    methods = ["auto", "temperature", "logistic", "isotonic", "histogram", "isotonic-safe"]
    result = calibrant.compare_calibrators(score, outcome, methods=methods, rng=0)
    alone = result["identity"]
    assert alone.infinite_rows == np.sum(np.where(outcome, score, 1 - score) == 0) > 0
    assert (alone.log_loss.value, alone.log_loss.difference, alone.from_best) == (np.inf, None, None)
    finite = [row for row in result if np.isfinite(row.log_loss.value)]
    assert all(row.log_loss.difference is None for row in result)
    assert {"auto", "temperature", "logistic"} <= set(result.best_group)
    assert result.best is None
    for row in finite:
        assert row.from_best.value == pytest.approx(row.log_loss.value - finite[0].log_loss.value, abs=1e-12)
    text = str(result)
    assert text.startswith(f"no single best method: {len(result.best_group)} do not differ significantly")
    assert f"identity ({alone.infinite_rows} rows)" in text
    assert f"minus {result.best_group[0]} " in text
    assert "-inf" not in text
    assert "-inf" not in result.to_json()
    assert result.to_dict()["best"] is None
    assert result.to_dict()["best_group"] == list(result.best_group)
    assert MapComparison.from_json(result.to_json()) == result
    assert max(map(len, text.splitlines()[:-1])) <= 80


def test_rows_of_infinite_loss_count_as_often_as_their_counts():
    outcome, score = rounded(200)
    methods = ["temperature"]
    once = calibrant.compare_calibrators(score, outcome, methods=methods, rng=0)["identity"]
    twice = calibrant.compare_calibrators(score, outcome, counts=np.full(200, 2), methods=methods, rng=0)
    assert twice["identity"].infinite_rows == 2 * once.infinite_rows > 0


def test_a_method_that_is_better_than_all_others_is_the_best():
    outcome, score = sharpened(1000)
    result = calibrant.compare_calibrators(score, outcome, methods=["temperature"], rng=0)
    assert (result.best, result.best_group) == ("temperature", ("temperature",))
    assert str(result).startswith("best: temperature, with a significantly lower log loss than all others\n")


def test_infinite_losses_on_different_rows_have_no_difference():
    # One 1 below all others, which isotonic regression excludes, and one 0 at a score of exactly 1.
    score = np.concatenate([[0.001, 1.0], np.linspace(0.01, 0.4, 60), np.linspace(0.6, 0.99, 60)])
    outcome = np.concatenate([[1, 0], np.zeros(60), np.ones(60)]).astype(int)
    result = calibrant.compare_calibrators(score, outcome, methods=["isotonic"], rng=0)
    assert {row.method: row.infinite_rows for row in result} == {"identity": 1, "isotonic": 2}
    assert all(row.log_loss.difference is None for row in result)
    assert (result.best, result.best_group) == (None, ())
    assert str(result).startswith("no best method: the log loss of every method is infinite")
    assert MapComparison.from_json(result.to_json()) == result


def test_all_maps_of_many_classes_are_compared():
    rng = np.random.default_rng(4)
    score = rng.dirichlet([1, 1, 1], 200)
    label = np.array(["a", "b", "c"])[(rng.random((200, 1)) > score.cumsum(axis=1)).sum(axis=1)]
    result = calibrant.compare_calibrators(score, label, methods=["vector", "auto", "beta"], cv=3, rng=0)
    assert result.folds == 3
    assert result.notion == "confidence"
    own = np.searchsorted(["a", "b", "c"], label)
    assert result["identity"].log_loss.value == pytest.approx(-np.mean(np.log(score[np.arange(200), own])))
    assert result["identity"].brier.value == pytest.approx(
        np.mean(((score - np.eye(3)[own]) ** 2).sum(axis=1))
    )


def test_a_comparison_is_written_and_read(compared):
    assert MapComparison.from_json(compared.to_json()) == compared
    assert repr(compared).startswith("MapComparison(best ")
    lines = str(compared).splitlines()
    better = "lower log loss than the scores as they are: "
    assert better + ", ".join(compared.better) in " ".join(lines)
    assert max(map(len, lines)) <= 80
    again = calibrant.compare_calibrators(*sharpened(1000)[::-1], methods=["temperature"], rng=compared.seed)
    assert again["temperature"].log_loss.value == compared["temperature"].log_loss.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["vector"]}, "methods must be one of"),
        ({"methods": "auto"}, "methods must be names of maps"),
        ({"methods": []}, "methods must be names of maps"),
        ({"cv": 1}, "cv must be"),
        ({"level": 95}, "level must be"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        calibrant.compare_calibrators(*sharpened(50)[::-1], **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 2}, "map_comparison.level must"),
        ({"best": "sigmoid"}, "map_comparison.best must be .*, as other fields say, got 'sigmoid'"),
        ({"best_group": ["sigmoid"]}, "map_comparison.best_group must be .*, as other fields say"),
        ({"table": []}, "map_comparison.table must not be empty"),
        ({"more": 1}, "map_comparison.more must be a known field"),
        ({"rows": -3}, "map_comparison.rows must be at least 2"),
    ],
)
def test_a_stored_comparison_is_checked(compared, change, message):
    with pytest.raises(InputError, match=message):
        MapComparison.from_dict(compared.to_dict() | change)


def test_a_single_row_cannot_be_judged():
    with pytest.raises(InputError, match="at least two rows"):
        calibrant.compare_calibrators([0.5], [1])


@pytest.mark.full
def test_the_conclusion_agrees_with_the_intervals_of_the_table():
    rng = np.random.default_rng(0)
    for power in (1.0, 1.2, 2.0):
        score = rng.beta(2, 3, 400)
        found = calibrant.compare_calibrators(score, rng.random(400) < score**power, rng=0)
        significant = [row.method for row in found if row.method != "identity" and row.log_loss.difference
                       and row.log_loss.difference.high < 0]  # fmt: skip
        assert list(found.better) == significant
        text = str(found).splitlines()[0]
        assert (text == "no method has a significantly lower log loss than the scores as they are") == (
            not significant
        )
        assert ("identity" in found.best_group) <= (not significant)
