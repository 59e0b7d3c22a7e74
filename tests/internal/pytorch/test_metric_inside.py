"""The metric gives what `calibrant.ece` gives for the rows of all batches, whatever their order."""

import matplotlib as mpl
import numpy as np
import pytest
import torch

import calibrant
from calibrant.torch import CalibrationError
from calibrant.torch.cells import compensated_add

mpl.use("Agg")
NOTIONS = ("binary", "confidence", "top:2", "classwise")


def data(notion, n=600, classes=5, seed=0, kind=torch.float64):
    """Scores with ties and extreme values, and labels."""
    generator = torch.Generator().manual_seed(seed)
    if notion == "binary":
        p = torch.rand(n, generator=generator, dtype=torch.float64) ** 2
        p[: n // 10], p[n // 10 : n // 5], p[n // 5 : n // 4] = 0.5, 1.0, 0.29
        p[-3:] = torch.tensor([0.0, 1e-9, 1 - 1e-7])
        return p.to(kind), (torch.rand(n, generator=generator) < p).long()
    x = 2 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    p = x.softmax(1)
    p[: n // 4] = (
        torch.eye(classes, dtype=torch.float64)[torch.arange(n // 4) % classes] * 0.5 + 0.5 / classes
    )
    return p.to(kind), torch.randint(0, classes, (n,), generator=generator)


def metric_of(notion, *batches, **options):
    metric = CalibrationError(notion, **({"num_classes": 5, "from_logits": False} | options))
    for batch in batches:
        metric.update(*batch)
    return metric


def assert_close(found, expected):
    """Sums of two sketches: counts exactly, and scores to the rounding of their place in a cell."""
    a, b = found._score_data, expected._score_data
    width = b.high - b.low
    for index, (x, y) in enumerate(zip(a.sums.parts, b.sums.parts, strict=True)):
        if index in (0, 2):
            np.testing.assert_allclose(x, y, rtol=1e-14)
        else:
            limit = (b.sums.w + 1e-300) * width ** (1 + (index == 4)) / 2**21
            assert (np.abs(x - y) <= limit + 1e-16).all()
    np.testing.assert_allclose(a.bins(np.array([])).ws, b.bins(np.array([])).ws, rtol=1e-9)
    assert found.labels == expected.labels
    assert found.notion == expected.notion
    for name in ("rows", "weight", "right", "impossible", "brier", "log_loss"):
        tolerance = 1e-4 if name == "log_loss" else 1e-6
        assert getattr(found.totals, name) == pytest.approx(getattr(expected.totals, name), rel=tolerance)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_sums_are_those_of_a_sketch(notion, kind, tmp_path):
    p, y = data(notion, kind=kind)
    if notion == "top:2":  # equal to rounding only if the sums of scores are
        p = (p * 64).round() / 64
        p[:, 0] = 1 - p[:, 1:].sum(1)
        p, y = p[p[:, 0] >= 0], y[p[:, 0] >= 0]
    metric = metric_of(notion, (p[:100], y[:100]), (p[100:], y[100:]))
    assert_close(metric.to_sketch(), calibrant.Sketch(notion).update(y.numpy(), p.numpy()))
    metric.to_sketch().save(tmp_path / "sums.sketch")  # a file refuses sums that no rows have
    assert calibrant.Sketch.load(tmp_path / "sums.sketch").digest == metric.to_sketch().digest


@pytest.mark.parametrize("notion", NOTIONS)
def test_importance_weights(notion):
    p, y = data(notion)
    w = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) + 0.1
    batches = [(p[a : a + 77], y[a : a + 77], w[a : a + 77]) for a in range(0, len(y), 77)]
    metric = metric_of(notion, *batches, weighted=True)
    sketch = calibrant.Sketch(notion).update(y.numpy(), p.numpy(), sample_weight=w.numpy())
    if notion != "top:2":
        assert_close(metric.to_sketch(), sketch)
    assert metric.compute().item() == pytest.approx(sketch.ece(), abs=1e-6)
    other = metric_of(notion, *batches[::-1], weighted=True)
    torch.testing.assert_close(other.sums.sum(0), metric.sums.sum(0), rtol=1e-14, atol=0)
    assert len(metric(p[:9], y[:9], w[:9]).shape) == 0
    with pytest.raises(calibrant.InputError, match="sample_weight must be given"):
        metric.update(p, y)


def test_compensated_sums_keep_what_rounding_loses():
    terms = torch.tensor([1e16, 1.0, -1e16, 1e-3, 3.0], dtype=torch.float64)
    total = torch.zeros(2, 1, dtype=torch.float64)
    for term in terms:
        compensated_add(total, term[None])
    assert total.sum().item() == pytest.approx(4.001, rel=1e-15)
