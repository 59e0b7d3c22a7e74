"""Gates: several limits, groups, a baseline, and what a build shows of them."""

import json
import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import t as student
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss, roc_auc_score

import calibrant
from calibrant import inputs
from calibrant.assessment.gates import CODES, GateData, LimitVerdict, hold
from calibrant.assessment.recalibration import excess_log_loss
from calibrant.cli import main
from calibrant.decisions import auc_of, oe_ratio_of
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.maps.folds import rows_in_folds
from calibrant.tasks import CalibrationTask, get_notion

RNG = np.random.default_rng(0)
N = 1200
P = RNG.beta(1.5, 1.5, N).round(6)
Y = (RNG.random(N) < P).astype(int)
REGION = np.where(np.arange(N) < 12, "a|b<i>", np.where(np.arange(N) % 2, "north", "south"))


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def checked(*words):
    """The exit code and the JSON of a check."""
    done = run("check", *words, "--json", "-q")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.exit_code == found["exit_code"]
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"y": Y, "p": P, "region": REGION})
    frame.to_csv("new.csv", index=False)
    frame.assign(p=(P**1.5).round(6)).to_csv("worse.csv", index=False)
    frame[:1000].to_csv("short.csv", index=False)
    frame.assign(p=Y.mean()).to_csv("constant.csv", index=False)
    calibrant.Sketch().update(Y, P).save("new.sketch")
    return tmp_path


def binary(y, p, **options):
    return CalibrationTask.of(inputs.predictions(y, p, **options), get_notion("binary"))


def test_excess_log_loss_is_cross_validated_and_bounded_by_hindsight(here):
    found = checked("worse.csv", "--max-excess-log-loss", "0.5")["excess"]
    score = (P**1.5).round(6)
    rows, fold = rows_in_folds(inputs.predictions(Y, score), 5, np.random.default_rng(0))
    gains = np.empty(N)
    for k in range(5):
        calibrator = calibrant.Calibrator("auto").fit(score[fold != k], Y[fold != k])
        for i in np.flatnonzero(fold == k):
            q = float(calibrator.predict_proba(score[i : i + 1])[0])
            before, after = (v if Y[i] else 1 - v for v in (float(score[i]), q))
            gains[i] = math.log(after) - math.log(before)
    margin = student.ppf(0.975, N - 1) * gains.std(ddof=1) / math.sqrt(N)
    isotonic = IsotonicRegression().fit_transform(score, Y)
    hindsight = log_loss(Y, score) - log_loss(Y, isotonic)
    assert found["value"] == pytest.approx(gains.mean())
    assert found["low"] == pytest.approx(gains.mean() - margin)
    assert found["high"] == pytest.approx(max(gains.mean(), hindsight) + margin, abs=1e-9)
    assert rows.n_rows == N


def test_excess_log_loss_of_several_classes_lies_in_its_interval():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 1.5, (3000, 3))
    true, said = (np.exp(a * logits) / np.exp(a * logits).sum(axis=1, keepdims=True) for a in (1.0, 2.0))
    y = (rng.random((3000, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    excess = float((true * np.log(true / said)).sum(axis=1).mean())
    found = excess_log_loss(inputs.predictions(y, said), level=0.95, seed=0)
    assert found.low < excess < found.high
    assert found.high - found.low < 0.1


def test_auc_has_the_interval_of_delong():
    y, p = Y[:150], P[:150].round(1)
    found = auc_of(binary(y, p), level=0.9)
    positive, negative = p[y == 1], p[y == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    auc = wins.mean()
    variance = wins.mean(axis=1).var() / len(positive) + wins.mean(axis=0).var() / len(negative)
    arm = NormalDist().inv_cdf(0.95) * math.sqrt(variance)
    assert found.value == pytest.approx(roc_auc_score(y, p)) == pytest.approx(auc)
    assert (found.low, found.high) == pytest.approx((auc - arm, auc + arm))
    assert auc_of(binary([1, 1, 0], [0.2, 0.3, 0.1], counts=[2, 1, 0]), level=0.9) is None


def test_auc_of_repeated_rows_in_clusters_has_the_interval_of_the_rows_once():
    alone = auc_of(binary(Y, P), level=0.95)
    data = inputs.predictions(np.repeat(Y, 3), np.repeat(P, 3))
    data = inputs.in_clusters(data, np.repeat(np.arange(N), 3))
    repeated = auc_of(CalibrationTask.of(data, get_notion("binary")), level=0.95)
    assert repeated.value == pytest.approx(alone.value)
    assert repeated.high - repeated.low == pytest.approx(alone.high - alone.low, rel=0.01)


def test_an_oe_ratio_of_a_single_cluster_is_unbounded():
    data = inputs.predictions([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.1])
    data = inputs.in_clusters(data, ["a", "a", "a", "b"])
    rows = inputs.select_rows(data, np.array([True, True, True, False]))
    found = oe_ratio_of(CalibrationTask.of(rows, get_notion("binary")), level=0.95)
    assert (found.low, found.high) == (0, math.inf)
    verdict = LimitVerdict("max_oe", "O:E ratio", 2, found, 0.95, 3)
    assert verdict.status == "inconclusive"
    json.dumps(verdict.to_dict(), allow_nan=False)
    assert "0 to infinite" in verdict.sentence
    assert "rows of a single cluster cannot decide" in verdict.sentence
    assert oe_ratio_of(binary([0, 0, 1], [0.0, 0.0, 0.0]), level=0.95) is None


@pytest.mark.parametrize("notion", ["confidence", "classwise", "canonical"])
def test_scores_that_do_not_discriminate_are_told(notion):
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 3, 400), rng.dirichlet([50, 50, 50], 400)
    gate = hold(GateData(inputs.predictions(y, p), get_notion(notion)), {"max_ece": 0.9})
    assert gate.notes[-1].startswith("Nothing shows that the scores tell the outcomes apart ")
    sharp = np.eye(3)[y] * 0.5 + p * 0.5
    gate = hold(GateData(inputs.predictions(y, sharp), get_notion("classwise")), {"max_ece": 0.9})
    assert not any("apart" in note for note in gate.notes)


def test_a_ratio_passes_and_fails_on_both_sides():
    def status(low, value, high):
        return LimitVerdict("max_oe", "O:E", 1.25, IntervalEstimate(value, low, high), 0.95, 100).status

    assert status(0.81, 1, 1.24) == "pass"
    assert status(1.26, 1.3, 1.4) == status(0.5, 0.6, 0.79) == "fail"
    assert status(0.7, 1, 1.1) == status(1, 1.2, 1.3) == status(0.5, 1, 2) == "inconclusive"
    assert {status(0.9, 1, 1.1)} <= {*CODES}
    wide = LimitVerdict("max_oe", "O:E", 1.25, IntervalEstimate(1.0, 0.6, 1.6), 0.95, 100)
    assert wide.rows == pytest.approx(100 * max(0.4 / 0.2, 0.6 / 0.25) ** 2)
