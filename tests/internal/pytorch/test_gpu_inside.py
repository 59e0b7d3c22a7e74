"""On a GPU, the kernels give the sums that the plain code gives on a CPU."""

import numpy as np
import pytest
import torch

from calibrant.torch import CalibrationError
from calibrant.torch.metric import fused

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def states(metric):
    return {name: state.cpu() for name, state in metric.metric_state.items()}


def of_both(build, *batches):
    """States after the same batches on a CPU and on a GPU."""
    here, there = build(), build().cuda()
    assert fused(batches[0][0].cuda()) is not None
    for batch in batches:
        here.update(*batch)
        there.update(*(each.cuda() for each in batch))
    return states(here), states(there)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("label", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("n", [1, 777, 300_000])
def test_scores_of_one_class_give_equal_sums(kind, label, n):
    torch.manual_seed(n)
    p = torch.rand(n) ** 3
    p[: n // 4] = torch.randn(n // 4).mul(3).add(7).sigmoid()
    p[n // 2 : n // 2 + 100], p[:1] = 0.0, 1.0
    y = (torch.rand(n) < p).to(label)
    cpu, gpu = of_both(
        lambda: CalibrationError("binary", from_logits=False), (p.to(kind), y), (p.to(kind), y)
    )
    assert torch.equal(cpu["sums"], gpu["sums"])


def test_an_edge_of_many_bins_is_exact():
    p = torch.arange(100_001, dtype=torch.float64).div(100_000).float()
    y = torch.arange(len(p)) % 2
    cpu, gpu = of_both(lambda: CalibrationError("binary", from_logits=False), (p, y))
    assert torch.equal(cpu["sums"], gpu["sums"])


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("notion", ["confidence", "top:3", "classwise"])
@pytest.mark.parametrize("classes", [4, 10, 300])
def test_score_vectors_give_equal_sums(kind, notion, classes):
    torch.manual_seed(classes)
    p = torch.randn(1000, classes).mul(2).softmax(1).to(kind)
    p[:200] = p[:200].round(decimals=1)  # ties
    p[:200, 0] = 1 - p[:200, 1:].float().sum(1).to(kind)
    p = p[(p[:, 0] >= 0) & ((p.float().sum(1) - 1).abs() < 1e-3 if kind != torch.bfloat16 else p[:, 0] >= 0)]
    y = torch.randint(-1, classes, (len(p),)).to(torch.int16)
    build = lambda: CalibrationError(notion, num_classes=classes, from_logits=False, ignore_index=-1)  # noqa: E731
    cpu, gpu = of_both(build, (p, y))
    if notion == "top:3":  # sums of several scores are rounded
        assert torch.equal(cpu["sums"][:2].sum((1, 2)), gpu["sums"][:2].sum((1, 2)))
    else:
        assert torch.equal(cpu["sums"], gpu["sums"])
    assert torch.equal(cpu["row_sums"][:3], gpu["row_sums"][:3])
    np.testing.assert_allclose(cpu["row_sums"][3:], gpu["row_sums"][3:], rtol=1e-6)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("notion", ["confidence", "top:3", "classwise"])
@pytest.mark.parametrize("classes", [4, 300, 9000])
def test_logits_agree_to_single_precision(kind, notion, classes):
    torch.manual_seed(classes)
    x = torch.randn(600, classes).mul(3).to(kind)
    y = torch.randint(0, classes, (600,))
    estimator = "uniform:15"
    build = lambda: CalibrationError(notion, estimator, num_classes=classes, from_logits=True)  # noqa: E731
    here, there = build(), build().cuda()
    here.update(x, y)
    there.update(x.cuda(), y.cuda())
    assert there.compute().item() == pytest.approx(here.compute().item(), rel=1e-4)
    if classes <= 1000:
        a, b = here.to_sketch(), there.to_sketch()
        assert a.totals.right == b.totals.right
        assert a.totals.log_loss == pytest.approx(b.totals.log_loss, rel=1e-6)
        sums = [np.sum(each._score_data.bins(np.array([])).ws) for each in (a, b)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-6)


def test_bins_of_many_classes_are_equal():
    torch.manual_seed(0)
    p = torch.randn(700, 3000).mul(4).softmax(1)
    y = torch.randint(0, 3000, (700,))
    build = lambda: CalibrationError("classwise", "uniform:15", num_classes=3000, from_logits=False)  # noqa: E731
    cpu, gpu = of_both(build, (p, y))
    assert torch.equal(cpu["sums"], gpu["sums"])


def test_many_rows_of_one_cell_do_not_overflow():
    n = 70_000_000
    p, y = torch.full((n,), 0.999969, device="cuda"), torch.ones(n, dtype=torch.bool, device="cuda")
    metric = CalibrationError("binary", from_logits=False).cuda()
    metric.update(p, y)
    cells = metric.to_sketch()._score_data
    assert cells.sums.w.sum() == cells.sums.wy.sum() == n
    assert cells.bins(np.array([])).ws[0] == pytest.approx(n * float(np.float32(0.999969)), rel=1e-12)
    assert not cells.variance_within.any()
