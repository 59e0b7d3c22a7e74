"""Real scores with a known truth; here they are made up."""

import numpy as np
import pytest
from test_studies import study

pytestmark = pytest.mark.full

real_scores = study("real_scores")
read, real_families = real_scores.read, real_scores.real_families


def logit(p):
    return np.log(p / (1 - p))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("scores"), np.random.default_rng(0)
    # Scores whose log odds are twice what they should be.
    score = rng.beta(2, 2, 40_000)
    sharp = 1 / (1 + np.exp(-2 * logit(score)))
    hit = rng.random(score.size) < score
    first, rest = slice(20_000), slice(20_000, None)
    parts = {"cal_prob": sharp[first], "cal_y": hit[first], "test_prob": sharp[rest], "test_y": hit[rest]}
    np.savez(folder / "sharp.npz", **parts)
    (folder / "networks").mkdir()
    logits = 3 * rng.standard_normal((5000, 4)).astype(np.float32)
    edge = np.cumsum(np.exp(logits), axis=1)
    labels = (rng.random((5000, 1)) * edge[:, -1:] >= edge[:, :-1]).sum(axis=1)
    np.savez(folder / "networks" / "net_logits.npz", logits=1.5 * logits, labels=labels)
    rounded = np.round(score[:5000], 1)
    np.savez(folder / "forest.npz", prob=rounded, y=rng.random(5000) < rounded)
    return folder


def test_a_model_as_it_is_has_the_gap_of_the_fitted_curve(folder):
    family, rng = real_families(folder)["sharp"], np.random.default_rng(1)
    at = np.array([0.1, 0.3, 0.5, 0.8])
    assert family.curve(at) == pytest.approx(1 / (1 + np.exp(-logit(at) / 2)), abs=0.015)
    score, outcome = read(folder / "sharp.npz")
    assert score.size == 40_000
    assert family.truth == pytest.approx(np.abs(family.curve(score) - score).mean(), abs=1e-12)
    drawn, hit = family.draw(rng, 100_000)
    assert np.isin(drawn, score).all()
    assert hit.mean() == pytest.approx(outcome.mean(), abs=0.01)
    again, chance = family.sample(rng, 100_000)
    assert np.abs(again - chance).mean() == pytest.approx(family.truth, abs=2e-3)


def test_recalibration_takes_out_what_is_affine_in_the_log_odds(folder):
    families = real_families(folder)
    assert set(families) == {
        f"{name}{kind}" for name in ("sharp", "net", "forest") for kind in ("", "-recalibrated")
    }
    assert families["sharp"].truth > 0.08
    assert families["sharp-recalibrated"].truth < 0.01


def test_confidences_of_logits_are_those_of_the_softmax(folder):
    score, outcome = read(folder / "networks" / "net_logits.npz")
    with np.load(folder / "networks" / "net_logits.npz") as held:
        raw, labels = held["logits"].astype(float), held["labels"]
    assert score == pytest.approx(np.max(np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True), axis=1))
    assert outcome.mean() == np.mean(raw.argmax(axis=1) == labels)


def test_scores_of_exactly_0_and_1_stay_where_they_are(folder):
    family = real_families(folder)["forest"]
    score, chance = family.sample(np.random.default_rng(0), 1000)
    assert np.unique(score).size <= 11
    assert np.all((chance >= 0) & (chance <= 1))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds no NPZ"):
        real_families(tmp_path)
    np.savez(tmp_path / "odd.npz", scores=np.zeros(3))
    with pytest.raises(ValueError, match=r"odd\.npz needs scores"):
        real_families(tmp_path)
