"""Totals of the metric: weighted sums over rows by a few lines of NumPy."""

import numpy as np
import pytest
import torch

from calibrant.torch import CalibrationError


def test_weights_count_in_the_losses_of_the_metric():
    rng = np.random.default_rng(4)
    table, weight = rng.dirichlet(np.ones(3), 300), rng.exponential(size=300)
    label = (rng.random((300, 1)) > table.cumsum(axis=1)[:, :-1]).sum(axis=1)
    metric = CalibrationError("confidence", weighted=True, from_logits=False)
    metric.update(torch.tensor(table), torch.tensor(label), torch.tensor(weight))
    totals = metric.to_sketch().totals
    assert totals.log_loss == pytest.approx(-weight @ np.log(table[np.arange(300), label]), rel=1e-5)
    squares = ((table - np.eye(3)[label]) ** 2).sum(axis=1)
    assert totals.brier == pytest.approx(weight @ squares, rel=1e-5)
