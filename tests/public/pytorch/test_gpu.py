"""On a GPU, the kernels give the sums that the plain code gives on a CPU."""

import pytest
import torch

import calibrant
from calibrant.torch import CalibrationError, TokenCalibrationError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_tokens_agree():
    torch.manual_seed(0)
    x, y = torch.randn(8, 40, 700), torch.randint(0, 700, (8, 40))
    y[:, 30:] = -100
    for scores in ("confidence", "top:5", "every"):
        here, there = TokenCalibrationError(scores), TokenCalibrationError(scores).cuda()
        here.update(x, y)
        for step in range(40):
            there.update(x[:, step].cuda(), y[:, step].cuda())
        assert there.compute().item() == pytest.approx(here.compute().item(), rel=1e-4)


def test_bad_values_are_refused_when_the_result_is_asked_for():
    metric = CalibrationError("binary", from_logits=False).cuda()
    metric.update(torch.tensor([0.5, float("nan")], device="cuda"), torch.tensor([0, 1], device="cuda"))
    with pytest.raises(calibrant.InputError, match="preds"):
        metric.compute()
