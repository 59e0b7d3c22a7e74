"""The estimators of the later literature against loops, closed forms, published tables and peers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import (
    Sketch,
)

pytestmark = pytest.mark.full

NEW = (
    *("debiased:15", "debiased:3", "sweep", "sweep:debiased", "isotonic", "beta", "beta-kernel"),
    *("beta-kernel:0.03", "variational", "smooth", "ks", "kuiper"),
)


# --- published figures and peers -------------------------------------------------------------------


def test_the_table_of_kaengsepp_et_al_is_reproduced():
    """Mean absolute errors x 1000 of three rows of the published table, two decimals."""
    path = Path(__file__).parents[3] / "benchmarks" / "kaengsepp.py"
    spec = importlib.util.spec_from_file_location("kaengsepp", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = ["debiased:15", "isotonic", "sweep:debiased"]
    found, _ = module.errors(names, 5, module.SIZES, signed=True)
    for name, value in zip(names, found.mean(axis=1), strict=True):
        np.testing.assert_allclose(value, module.PUBLISHED[name], atol=0.0051)


@pytest.mark.parametrize("spec", NEW)
@pytest.mark.parametrize("kind", ["spread", "saturated"])
def test_cells_differ_from_rows_by_what_happens_within_a_cell(spec, kind):
    rng = np.random.default_rng(2)
    score = rng.random(20_000)
    if kind == "saturated":
        score = np.where(rng.random(20_000) < 0.4, 1 - 10.0 ** rng.uniform(-14, -3, 20_000), score)
    labels = (rng.random(20_000) < score**1.3).astype(int)
    expected = calibrant.ece(labels, score, estimator=spec)
    found = Sketch("binary").update(labels, score).ece(estimator=spec)
    assert found == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("spec", NEW)
def test_scores_of_zero_and_one_are_fine(spec):
    labels = np.array([0, 0, 1, 1, 0, 1])
    assert calibrant.ece(labels, labels.astype(float), estimator=spec) == pytest.approx(0.0, abs=1e-5)
    assert np.isfinite(calibrant.ece(labels, [0.0, 1, 1, 0, 0.5, 0.5], estimator=spec))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("isotonic:3", 'must be "isotonic" without a parameter'),
        ("ks:1", 'must be "ks" without a parameter'),
        ("debiased:ten", "'ten'"),
        ("debiased:0", "from 1 to"),
        ("sweep:5", "parameter of sweep must be one of"),
        ("variational:x", "number of folds"),
        ("variational:1", "n_folds must be an integer of at least 2"),
        ("beta-kernel:silverman", "bandwidth must be one of"),
        ("beta-kernel:0", "at least 1e-05"),
        ("beta-kernel:nan", "at least 1e-05"),
    ],
)
def test_a_wrong_parameter_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        calibrant.ece([0, 1], [0.2, 0.7], estimator=wrong)
