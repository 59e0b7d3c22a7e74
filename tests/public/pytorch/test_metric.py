"""The metric gives what `calibrant.ece` gives for the rows of all batches, whatever their order."""

import copy
import pickle
import warnings

import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics import MetricCollection, MetricTracker
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

import calibrant
from calibrant.torch import CalibrationError

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


@pytest.mark.parametrize("estimator", ["auto", "uniform:15", "adaptive:10", "debiased", "density"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_result_is_that_of_the_rows(notion, estimator):
    p, y = data(notion, n=300)
    found = metric_of(notion, (p, y), estimator=estimator).compute()
    asked = calibrant.ece(y.numpy(), p.numpy(), notion=notion, estimator=estimator)
    exact = estimator.startswith(("auto", "uniform"))
    assert found.item() == pytest.approx(asked, abs=1e-9 if exact else 2e-3)


@pytest.mark.full
@pytest.mark.parametrize("notion", NOTIONS)
@given(seed=st.integers(0, 2**31), pieces=st.integers(1, 5))
@settings(max_examples=5, deadline=None)
def test_the_state_does_not_depend_on_order_and_batches(notion, seed, pieces):
    p, y = data(notion, n=120, seed=seed % 7)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    chunks = zip(p[order].chunk(pieces), y[order].chunk(pieces), strict=True)
    whole, parts = metric_of(notion, (p, y)), metric_of(notion, *chunks)
    assert torch.equal(whole.sums, parts.sums)
    assert torch.equal(whole.row_sums, parts.row_sums)
    assert whole.compute() == parts.compute()


@pytest.mark.full
def test_many_float32_samples():
    """In float32 a count stops at 2^24, and so do the sums of a bin."""
    p, y = torch.full((1 << 21,), 0.3), torch.zeros(1 << 21, dtype=torch.uint8)
    metric = CalibrationError(estimator="uniform:15", from_logits=False)
    for _ in range(15):
        metric.update(p, y)
    assert metric.compute().item() == pytest.approx(float(np.float32(0.3)), abs=1e-9)
    assert metric.to_sketch().n == 15 * 2**21 > 3e7


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision(kind):
    p, y = data("confidence", n=2000, kind=kind)
    metric = metric_of("confidence", (p, y), estimator="uniform:15")
    largest, best = p.double().max(1)
    asked = calibrant.ece((best == y).numpy(), largest.numpy(), notion="correctness", estimator="uniform:15")
    assert metric.compute().item() == pytest.approx(asked, abs=1e-9)


BINARY = torch.tensor([0.25, 0.25, 0.55, 0.75, 0.75]), torch.tensor([0, 0, 1, 1, 1])
SEVERAL = (
    torch.tensor([[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]]),
    torch.tensor([0, 1, 2, 0]),
)


@pytest.mark.parametrize(
    ("batch", "n_bins", "norm", "expected"),
    [
        *((BINARY, 2, norm, value) for norm, value in (("l1", 0.29), ("l2", 0.2918), ("max", 0.3167))),
        *((SEVERAL, 3, norm, value) for norm, value in (("l1", 0.2), ("l2", 0.2082), ("max", 0.2333))),
    ],
)
def test_values_that_torchmetrics_documents(batch, n_bins, norm, expected):
    metric = CalibrationError(estimator=f"uniform:{n_bins}", norm=norm, from_logits=False)
    metric.update(*batch)
    assert metric.compute().item() == pytest.approx(expected, abs=5e-5)


@pytest.mark.full
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("n_bins", [10, 15, 20])
@pytest.mark.parametrize("ignore_index", [None, 0, -1])
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("shape", [(64,), (32, 7)])
def test_cases_of_torchmetrics(norm, n_bins, ignore_index, logits, shape):
    """Four batches of two classes and of five, with and without further axes, as in its own tests."""
    torch.manual_seed(n_bins)
    options = {
        "norm": norm,
        "ignore_index": ignore_index,
        "from_logits": logits,
    }
    for classes in (1, 5):
        metric = CalibrationError(estimator=f"uniform:{n_bins}", **options)
        preds, target = [], []
        for _ in range(4):
            x = 2 * torch.randn(shape[0], *((5,) if classes > 1 else ()), *shape[1:])
            p = x if logits else x.softmax(1) if classes > 1 else x.sigmoid()
            y = torch.randint(0, max(classes, 2), shape)
            if ignore_index is not None:
                y[torch.rand(shape) < 0.2] = ignore_index
            metric.update(p, y)
            preds.append(p)
            target.append(y)
        stacked = torch.cat(preds), torch.cat(target)
        more = {"n_bins": n_bins, "norm": norm, "ignore_index": ignore_index}
        if classes == 1:
            expected = binary_calibration_error(*stacked, **more)
        else:
            expected = multiclass_calibration_error(*stacked, num_classes=5, **more)
        assert metric.compute().item() == pytest.approx(expected.item(), abs=1e-5)


def test_the_first_batch_tells_logits_from_probabilities():
    p, y = data("confidence", kind=torch.float32)
    metric = CalibrationError()
    assert metric.from_logits is None
    metric.update(p, y)
    assert metric.from_logits is False
    assert "from_logits=False" in repr(metric)
    with pytest.raises(calibrant.InputError, match="from_logits=True"):
        metric.update(p.log(), y)
    metric.reset()
    assert metric.from_logits is False
    for x, why in ((p.log(), "lie in"), (p / 2, "sum to 1")):
        metric = CalibrationError()
        with pytest.warns(calibrant.InputWarning, match=why):
            metric.update(x, y)
        assert metric.from_logits
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            metric.update(x, y)
    options = {"estimator": "uniform:15"}
    exact = metric_of("confidence", (p.log(), y), from_logits=True, **options)
    assert exact.compute().item() == pytest.approx(
        metric_of("confidence", (p, y), **options).compute().item(), abs=1e-6
    )


@pytest.mark.parametrize("notion", ["binary", "confidence"])
def test_probabilities_taken_for_logits_are_told_once(notion):
    p, y = data(notion, kind=torch.float32)
    metric = CalibrationError(from_logits=True)
    with pytest.warns(calibrant.InputWarning, match="preds look like probabilities"):
        metric.update(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.update(p, y)
        metric_of(notion, (p.log(), y), from_logits=True)


def test_bins_are_named_as_in_other_packages():
    p, y = data("confidence")
    for more, name in (
        ({"n_bins": 10}, "uniform:10"),
        ({"strategy": "quantile"}, "adaptive:15"),
        ({"n_bins": 7, "strategy": "quantile"}, "adaptive:7"),
    ):
        found = metric_of("confidence", (p, y), **more).compute()
        assert found == metric_of("confidence", (p, y), estimator=name).compute()
    with pytest.raises(calibrant.InputError, match="n_bins and strategy must be left out"):
        CalibrationError(estimator="uniform:15", n_bins=15)


def test_a_metric_without_rows_names_its_arguments():
    metric = CalibrationError()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"the metric is empty: call update\(preds, target\) first"):
            metric.compute()


def test_logits_of_labels_that_are_almost_impossible():
    """A softmax in float32 ends at 1e-45; the log loss does not."""
    metric = CalibrationError("confidence", from_logits=True)
    metric.update(torch.tensor([[0.0, -500.0, 1.0], [float("-inf"), 2.0, 0.0]]), torch.tensor([1, 1]))
    totals = metric.to_sketch().totals
    expected = 501 + np.log1p(np.exp(-1)) + np.log1p(np.exp(-2))
    assert totals.impossible == 0
    assert totals.log_loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("notion", NOTIONS)
def test_masks_and_axes(notion):
    p, y = data(notion, n=600)
    mask = torch.arange(600) % 3 > 0
    expected = metric_of(notion, (p[mask], y[mask]))
    shaped = p.reshape(20, 30) if notion == "binary" else p.reshape(20, 30, 5).movedim(2, 1)
    found = metric_of(notion, (shaped, y.reshape(20, 30), None, mask.reshape(20, 30)))
    assert torch.equal(found.sums, expected.sums)
    labelled = torch.where(mask, y, -7)
    assert torch.equal(metric_of(notion, (p, labelled), ignore_index=-7).sums, expected.sums)
    with pytest.raises(calibrant.InputError, match="mask"):
        found.update(p, y, None, mask[:5])


@pytest.mark.parametrize("label", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32])
def test_any_type_of_label(label):
    p, y = data("binary")
    assert torch.equal(metric_of("binary", (p, y.to(label))).sums, metric_of("binary", (p, y)).sums)


def test_two_columns_of_a_binary_problem():
    p, y = data("binary")
    both = torch.stack([1 - p, p], dim=1)
    found = metric_of("binary", (both, y), num_classes=2)
    assert found.compute().item() == pytest.approx(calibrant.ece(y.numpy(), p.numpy()), abs=1e-9)


@pytest.mark.parametrize(
    ("preds", "target", "match"),
    [
        ([0.5, float("nan")], [0, 1], "preds must be scores"),
        ([0.5, 1.5], [0, 1], "preds must be scores"),
        ([0.5, 0.5], [0, 2], "target must hold only classes"),
        ([[0.5, 0.2]], [0], "preds must sum to 1"),
        ([[0.5, 0.5]], [3], "target must hold only classes"),
        ([[0.5, 0.5], [float("nan"), 1.0]], [0, 0], "preds must be scores"),
        ([0.5, 0.5], [0.0, 1.0], "target must hold integers"),
        ([1, 0], [0, 1], "preds must hold floating point"),
        ([[0.5, 0.5]], [[0, 1, 1]], "target|preds"),
        ([[[0.5, 0.5]]], [0], "preds must have the shape"),
        ([[0.5]], [0], "two classes or more"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(preds, target, match):
    metric = CalibrationError(from_logits=False)
    with pytest.raises((calibrant.InputError, calibrant.InputTypeError), match=match):
        metric.update(torch.tensor(preds), torch.tensor(target))
    assert not metric.sums.any()
    with pytest.raises(ValueError, match="empty"):
        metric.compute()


def test_choices_that_do_not_go_together():
    with pytest.raises(calibrant.InputError, match="num_classes"):
        CalibrationError("classwise")
    with pytest.raises(calibrant.InputError, match="uniform:B"):
        CalibrationError("classwise", num_classes=1001)
    with pytest.raises(calibrant.InputError, match="uniform:B"):
        CalibrationError("classwise", "uniform:15", num_classes=1001, weighted=True)
    with pytest.raises(calibrant.InputError, match="norm"):
        CalibrationError(norm="l3")
    with pytest.raises(calibrant.InputError, match="notion"):
        CalibrationError("canonical")
    p, y = data("binary")
    with pytest.raises(calibrant.InputError, match="axis of classes"):
        metric_of("confidence", (p, y))
    with pytest.raises(calibrant.InputError, match="classes in all batches"):
        metric_of("confidence", data("confidence", classes=4))


@pytest.mark.full
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_bins_of_more_than_a_thousand_classes(norm):
    generator = torch.Generator().manual_seed(0)
    p = (6 * torch.randn(500, 1200, generator=generator)).softmax(1)
    y = torch.randint(0, 1200, (500,), generator=generator)
    y[:300] = p[:300].argmax(1)
    metric = CalibrationError("classwise", "uniform:15", norm=norm, num_classes=1200, from_logits=False)
    metric.update(p[:200], y[:200])
    metric.update(p[200:], y[200:])
    options = {"notion": "classwise", "estimator": "uniform:15", "norm": norm}
    assert metric.compute().item() == pytest.approx(calibrant.ece(y.numpy(), p.numpy(), **options), abs=1e-8)
    with pytest.raises(calibrant.InputError, match="1000"):
        metric.to_sketch()
    logits = CalibrationError("classwise", "uniform:15", norm=norm, num_classes=1200, from_logits=True)
    logits.update(p.log(), y)
    assert logits.compute().item() == pytest.approx(metric.compute().item(), abs=1e-6)


def test_in_a_collection_and_a_tracker():
    p, y = data("confidence", kind=torch.float32)
    members = {
        "ece": CalibrationError(estimator="uniform:15", from_logits=False),
        "rms": CalibrationError(estimator="uniform:15", norm="l2", from_logits=False),
        "class": CalibrationError("classwise", num_classes=5, from_logits=False),
    }
    collection = MetricCollection(members)
    for half in (slice(0, 300), slice(300, 600)):
        collection.update(p[half], y[half])
    found = collection.compute()
    for name, norm in (("ece", "l1"), ("rms", "l2")):
        asked = calibrant.ece(y.numpy(), p.numpy(), estimator="uniform:15", norm=norm)
        assert found[name].item() == pytest.approx(asked, abs=1e-9)
    tracker = MetricTracker(CalibrationError(estimator="uniform:15", from_logits=False), maximize=False)
    for half in (slice(0, 300), slice(300, 600)):
        tracker.increment()
        tracker.update(p[half], y[half])
    values = [
        calibrant.ece(y[h].numpy(), p[h].numpy(), estimator="uniform:15")
        for h in (slice(300), slice(300, 600))
    ]
    np.testing.assert_allclose(tracker.compute_all(), values, atol=1e-9)
    assert tracker.best_metric() == pytest.approx(min(values), abs=1e-9)


def test_checkpoints_copies_and_values_of_batches():
    p, y = data("confidence", kind=torch.float32)
    metric = metric_of("confidence", (p[:300], y[:300]))
    batch = metric(p[300:], y[300:])
    assert batch == metric_of("confidence", (p[300:], y[300:])).compute()
    whole = metric_of("confidence", (p, y))
    assert metric.compute() == whole.compute()
    loaded = CalibrationError("confidence")
    loaded.load_state_dict(metric.state_dict())
    loaded.update(p[:0], y[:0])  # torchmetrics warns of a metric that was never updated
    for other in (loaded, copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert other.compute() == whole.compute()
        other.update(p, y)
        assert other.from_logits is False
        assert other.to_sketch().n == 1200
    metric.reset()
    metric.update(p, y)
    assert torch.equal(metric.sums, whole.sums)


def test_answers_beyond_the_number():
    p, y = data("confidence")
    metric = metric_of("confidence", (p, y), class_names=["a", "b", "c", "d", "e"])
    estimate = metric.estimate(rng=0)
    assert estimate.low <= estimate.value == pytest.approx(metric.compute().item())
    assert float(metric.curve().at(0.6).value) < 0.6
    figure, ax = metric.plot()
    assert figure is ax.figure
    assert ax.lines
    figure, _ = metric.plot([metric.compute(), metric.compute()])
    assert figure.axes
    mpl.pyplot.close("all")
