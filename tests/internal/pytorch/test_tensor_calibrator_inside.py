"""A calibrator on tensors gives the probabilities of the calibrator on arrays."""

import numpy as np
import pytest
import torch

import calibrant
from calibrant.torch import CalibratorModule


def several(classes, n=800):
    rng = np.random.default_rng(classes)
    x = 2 * rng.normal(size=(n, classes))
    y = (x + 2 * rng.gumbel(size=x.shape)).argmax(1)
    y[:classes] = np.arange(classes)
    return x, y


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
def test_a_temperature_fitted_to_logits_is_that_of_the_arrays(kind):
    x, y = several(6)
    fitted = calibrant.Calibrator("temperature", from_logits=True).fit(x, y)
    target = torch.tensor(np.append(y, -100))
    logits = torch.tensor(np.vstack([x, x[:1]])).to(kind)
    module = CalibratorModule.fit_temperature(logits, target, ignore_index=-100)
    assert module.calibrator._multiclass.slope == pytest.approx(fitted._multiclass.slope, rel=1e-6)
    assert module.calibrator.n_ == len(y)
    again = calibrant.Calibrator.from_json(module.calibrator.to_json())
    np.testing.assert_allclose(again.predict_proba(x), fitted.predict_proba(x), atol=1e-6)
