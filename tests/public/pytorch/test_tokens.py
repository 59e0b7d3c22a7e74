"""Tokens of a language model are rows."""

import numpy as np
import pytest
import torch

import calibrant
from calibrant.torch import CalibrationError, TokenCalibrationError


def tokens(vocabulary=40):
    torch.manual_seed(0)
    logits, target = 2 * torch.randn(6, 9, vocabulary), torch.randint(0, vocabulary, (6, 9))
    target[:, 7:] = -100
    return logits, target


@pytest.mark.parametrize("scores", ["confidence", "top:3", "classwise"])
def test_tokens_are_rows_and_padding_is_left_out(scores):
    logits, target = tokens()
    metric = TokenCalibrationError(scores, num_classes=40)
    metric.update(logits, target)
    kept = target != -100
    rows = CalibrationError(scores, num_classes=40, from_logits=True)
    rows.update(logits[kept], target[kept])
    assert torch.equal(metric.sums, rows.sums)
    p = logits[kept].softmax(-1).numpy()
    expected = calibrant.ece(target[kept].numpy(), p, notion=scores, estimator="uniform:10")
    metric.estimator = "uniform:10"
    assert metric.compute().item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scores", ["confidence", "top:3", "every"])
def test_one_step_at_a_time(scores):
    logits, target = tokens()
    at_once, steps = TokenCalibrationError(scores), TokenCalibrationError(scores)
    at_once.update(logits, target)
    for step in range(9):
        steps.update(logits[:, step], target[:, step])
    assert torch.equal(at_once.sums, steps.sums)


def test_every_probability_is_a_row_of_one_binary_problem():
    logits, target = tokens()
    metric = TokenCalibrationError("every")
    metric.update(logits, target)
    kept = target != -100
    p, y = logits[kept].softmax(-1), torch.eye(40, dtype=torch.long)[target[kept]]
    sketch = calibrant.Sketch("binary").update(y.flatten().numpy(), p.flatten().numpy())
    assert metric.to_sketch().totals.rows == sketch.totals.rows == 6 * 7 * 40
    assert metric.to_sketch().totals.right == sketch.totals.right
    assert metric.to_sketch().totals.log_loss == pytest.approx(sketch.totals.log_loss, rel=1e-4)
    assert metric.compute().item() == pytest.approx(sketch.ece(), rel=1e-4)
    assert np.array_equal(metric.to_sketch().labels, (0, 1))


def test_an_unknown_choice_is_refused():
    with pytest.raises(calibrant.InputError, match="scores"):
        TokenCalibrationError("tokens")
