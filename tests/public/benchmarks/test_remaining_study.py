"""A smoke version of the study of the error after recalibration."""

import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parents[3] / "benchmarks" / "remaining.py"


@pytest.fixture(scope="module")
def remaining():
    spec = util.spec_from_file_location("study_remaining", FILE)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
def test_claims_are_compared_with_the_truth(remaining, capsys):
    found = remaining.study(["binary", "two columns"], [300], 2, ["too sure", "tree, 30 scores"])
    claims = found["binary", "too sure", 300]
    assert claims.shape == (2, 6)
    before, true, claim, pooled, low, high = claims.T
    assert (before > 0.08).all()
    assert (np.maximum(true, claim) < 0.1).all()
    assert (pooled < claim).all()
    assert ((low <= claim) & (claim <= high)).all()
    remaining.show(found)
    said = capsys.readouterr().out
    assert "| too sure | 2 | " in said
    assert "claims; true over claimed: median " in said


def test_claims_about_classes_are_compared_with_the_truth(remaining):
    found = remaining.study(["classwise"], [300], 1, ["too sure"])
    assert {part for part, _, _ in found} == {"classwise"}
    assert all(claims[:, 1].max() < 0.1 for claims in found.values())


def test_the_true_error_of_equal_mapped_scores_is_that_of_their_mean(remaining):
    assert remaining._tied(np.array([0.3, 0.3, 0.7]), np.array([0.2, 0.4, 0.6])) == pytest.approx(0.1 / 3)


def test_real_scores_are_split(remaining, tmp_path, capsys):
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    label = rng.random(2000) < score**2
    np.savez(
        tmp_path / "own.npz",
        cal_prob=score[:1000],
        cal_y=label[:1000],
        test_prob=score[1000:],
        test_y=label[1000:],
    )
    remaining.real(tmp_path, [400], 1)
    assert "| own | 400 | " in capsys.readouterr().out
