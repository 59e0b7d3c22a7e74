"""Settings are read where they are used: a study can change them at run time."""

import numpy as np
import pytest

import calibrant
from calibrant.posterior import dyadic_partition, gap, process, variance_time
from calibrant.settings import LOG_ODDS, PRIOR, SOFTMAX


def scores():
    rng = np.random.default_rng(0)
    score = rng.beta(0.6, 0.8, 300)
    return (rng.random(300) < score**1.5).astype(int), score


def rows():
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(3), 200)
    return (score.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1), score


def changed(monkeypatch, settings, name, value, compute):
    """Compute before a change, with it and after it; tables that were made of settings are made again."""
    before = compute()
    with monkeypatch.context() as patch:
        patch.setitem(vars(settings), name, value)
        clear_caches()
        during = compute()
    clear_caches()
    assert compute() == before
    return before, during


def clear_caches():
    """Clear the caches of all functions of the posteriors."""
    for module in (gap, process, dyadic_partition, variance_time):
        for member in vars(module).values():
            getattr(member, "cache_clear", lambda: None)()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("roughness", (2.0, 8.0)),
        ("spectrum_exponent", 2.0),
        ("smooth_sd_count", 10),
        ("probability_of_no_mean", 0.5),
        ("roughness_weight_ratio", 1.0),
        ("process_roughness", 4.0),
        ("constant_sd_count", 7),
        ("process_sd_count", 6),
        ("shortest_process", 16),
        ("probability_of_no_gap_dense", 0.5),
    ],
)
def test_the_value_follows_the_prior_of_the_gap(name, value, monkeypatch):
    before, during = changed(monkeypatch, PRIOR, name, value, lambda: calibrant.ece(*scores()))
    assert during != before
    assert during == pytest.approx(before, rel=0.2)


def test_the_value_follows_the_grid_of_correlations(monkeypatch):
    def compute():
        y, score = scores()
        return calibrant.ece(y, np.ceil(score * 40) / 41)  # scores that repeat, and do not look rounded

    before, during = changed(monkeypatch, PRIOR, "smallest_correlation", 0.01, compute)
    assert during != before
    assert during == pytest.approx(before, rel=0.2)


def test_the_calibrator_follows_the_prior_of_the_log_odds(monkeypatch):
    y, score = scores()

    def compute():
        return calibrant.Calibrator().fit(score, y).predict_proba(score[:5]).tolist()

    before, during = changed(monkeypatch, LOG_ODDS, "identity_weight", 0.8, compute)
    assert during != before


def test_the_canonical_error_follows_the_prior_of_the_blocks(monkeypatch):
    before, during = changed(
        monkeypatch, SOFTMAX, "sds", (0.1, 1.0), lambda: calibrant.ece(*rows(), notion="canonical")
    )
    assert during != before
