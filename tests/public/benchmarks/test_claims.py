"""Side studies of what the paper claims."""

import numpy as np
import pytest
from scipy.special import betaincinv
from test_studies import study

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

studies = study("claims")


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        ((0, 0, 1, 1), "does not hold at N in 30-50, the small sizes; holds for N in 100-200"),
        ((0, 1, 0, 0), "does not hold at N in 30, the small sizes; holds for N in 50"),
        ((0, 0, 0, 0), "does not hold at N in 30-50, the small sizes"),
        ((1, 1, 0, 0), "holds only for N in 30-50"),
        ((1, 1, 1, 1), "holds"),
    ],
)
def test_small_sizes_decide_a_claim_about_small_data(ahead, verdict):
    assert studies.small_sizes(dict(zip((30, 50, 100, 200), map(bool, ahead), strict=True))) == verdict


def smoke(name):
    return getattr(studies, name)(**studies.SMOKE[name])


def test_shapes_have_their_known_true_errors():
    # Gauss-Legendre quadrature of |chance - score| against the beta density, to seven digits.
    known = (0.1022208, 0.1371566, 0.1307138, 0.0400685)
    for shape, truth in zip(studies.shapes(), known, strict=True):
        assert shape.truth == pytest.approx(truth, abs=3e-7)
        score = np.clip(betaincinv(*shape.scores, (np.arange(400_000) + 0.5) / 400_000), 1e-300, 1 - 1e-16)
        assert np.abs(shape.curve(score) - score).mean() == pytest.approx(truth, abs=3e-7)
        sample = studies.draw(shape, np.random.default_rng(0), 200_000)
        assert abs(sample.outcome.mean() - shape.curve(sample.score).mean()) < 0.005


def test_the_best_number_of_bins_is_below_the_root():
    found = smoke("growth")
    assert all(found["best"][n] < found["root"][n] for n in found["best"])
    assert found["exponent"] < 0.6
    assert min(found["cost"].values()) >= 1


def test_the_curve_beats_an_interpolated_diagram_on_few_rows():
    found = smoke("interpolation")
    assert found[100]["curve"] < found[100]["diagram"]
    assert found[1000]["curve"] < found[100]["curve"]


def test_bandwidth_rules_are_relative_to_silvermans():
    assert all(one["silverman"] == 1 and 0.3 < one["scott"] < 3 for one in smoke("rules").values())


def test_kernels_and_bins_suffer_from_dimension_and_the_default_does_not():
    few, many = smoke("dimension").values()
    assert many["kernels"] > few["kernels"]
    assert many["bins"] > few["bins"]
    assert max(few["default"], many["default"]) < 0.1


def test_beta_kernels_are_relative_to_silvermans_rule():
    for one in smoke("kernels").values():
        assert one["silverman"] == 1
        assert 0.3 < one["first"] != one["second"] < 3


def test_ace_is_the_adaptive_ece_only_with_equal_counts():
    found = smoke("ace")
    assert found["equal"] < 1e-14 < 1e-6 < found["unequal"]


def test_the_cost_is_told_by_rows_and_points():
    found = smoke("cost")
    assert all(seconds > 0 for part in found.values() for seconds in part.values())
    assert set(found["rows"]) == set(found["beta"])


def test_the_cost_does_not_depend_on_what_else_the_machine_does(monkeypatch):
    from threadpoolctl import threadpool_info

    threads = []
    fit = studies.DensityBeta.fit

    def watched(self, sample):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(self, sample)

    monkeypatch.setattr(studies.DensityBeta, "fit", watched)
    # Processor time of one thread: a second thread that waits for a core would count as well.
    clock = iter(range(1000))
    monkeypatch.setattr(studies, "process_time", lambda: float(next(clock)))
    found = studies.cost(sizes=(1000,), points=(1024,), repetitions=2)
    assert found == {"rows": {1000: 1.0}, "points": {1024: 1.0}, "beta": {1000: 1.0}}
    assert set(threads) == {1}


def test_percentiles_of_bootstrapped_curves_cover_too_little():
    found = smoke("bootstrap_coverage")
    assert all(0.2 < coverage < 0.9 for coverage in found.values())
    assert found[500] < found[100]


def test_reflection_keeps_the_mass_and_the_authors_three_quarters_of_it():
    found = smoke("mass")
    np.testing.assert_allclose(list(found["calibrant"].values()), 1, atol=1e-9)
    np.testing.assert_allclose([found["authors"][h] for h in (0.033, 0.1)], 0.75, atol=1e-12)
    np.testing.assert_allclose([found["once"][h] for h in (0.033, 0.1)], 1, atol=1e-12)
    assert found["none"][0.4] < found["none"][0.1] < found["none"][0.033] < 0.95


def test_proper_scores_are_not_calibration():
    found = smoke("proper_scores")
    (error, brier), (same, other) = found["pair"]
    assert error == pytest.approx(same)
    assert (brier, other) == pytest.approx((0.17, 0.26))
    assert 0 < found["brier"]["crossed"] < 1
    assert abs(found["nll"]["correlation"]) < 0.95


def test_heuristics_are_consistent_and_fixed_choices_are_not():
    found = smoke("consistency")
    assert {name for name, one in found.items() if one["vanishes"]} == {"l:sqrt", "d:silverman"}
