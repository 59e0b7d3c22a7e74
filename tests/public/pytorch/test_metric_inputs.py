"""What a batch may be: axes, one-hot targets, weights, entries that are left out, and threads."""

import warnings
from threading import Thread

import pytest
import torch

import calibrant
from calibrant.torch import CalibrationError


def rows(n=300, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    p = (2 * torch.randn(n, classes, generator=generator)).softmax(1)
    return p, torch.multinomial(p, 1, generator=generator)[:, 0]


def test_a_large_first_batch_is_judged_by_a_sample():
    p, y = rows(200_000, 2)
    for logits, kind in ((False, p), (True, p.log())):
        metric = CalibrationError()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            metric.update(kind, y)
        assert metric.from_logits is logits
        assert len(caught) == logits
    # A bad row between those that were looked at is an error, which says what to do if these are logits.
    single = p[:, 1].clone()
    single[7] = 1.5
    with pytest.raises(calibrant.InputError, match="1 rows that do not; are these logits"):
        CalibrationError().update(single, y)


@pytest.mark.parametrize("shape", [(3_000,), (30, 100), (3_000, 4)])
def test_a_first_batch_that_is_left_out_decides_nothing(shape):
    generator = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(shape, generator=generator)
    target = torch.full(shape[:1] if shape[-1] == 4 else shape, -100)
    for options, more in (
        ({"ignore_index": -100}, {}),
        ({}, {"mask": torch.zeros(target.shape, dtype=bool)}),
    ):
        metric = CalibrationError(**options)
        metric.update(x.sigmoid() if x.shape == target.shape else x.softmax(1), target, **more)
        assert metric.from_logits is None
        with pytest.raises(ValueError, match="the metric is empty"):
            metric.compute()
        with pytest.warns(calibrant.InputWarning, match="preds are taken for logits"):
            metric.update(x, torch.zeros_like(target))
        assert metric.from_logits


def test_a_refused_first_batch_decides_nothing():
    p, y = rows()
    metric = CalibrationError()
    bad = p.clone()
    bad[3] = float("nan")
    with pytest.warns(calibrant.InputWarning), pytest.raises(calibrant.InputError, match="preds must be"):
        metric.update(bad, y)
    assert metric.from_logits is None
    metric.update(p, y)
    assert metric.from_logits is False
    assert metric.to_sketch().n == 300


@pytest.mark.parametrize("spatial", [(), (5,), (2, 5)])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("from_logits", [None, False, True])
def test_one_hot_targets_are_refused(spatial, axis, from_logits):
    p, y = rows(40)
    given = (p.log() if from_logits else p).reshape(-1, *spatial, 3).movedim(-1, axis)
    hot = torch.eye(3, dtype=torch.long)[y].reshape(-1, *spatial, 3).movedim(-1, axis)
    for target in (hot, hot.bool(), hot.to(torch.uint8)):
        metric = CalibrationError(from_logits=from_logits, class_axis=axis)
        with pytest.raises(calibrant.InputError, match=rf"got one-hot.*pass target.argmax\({axis}\)"):
            metric.update(given, target)
        with pytest.raises(calibrant.InputError, match="one-hot"):
            CalibrationError("confidence", from_logits=from_logits, class_axis=axis).update(given, target)
    metric.update(given, hot.argmax(axis))
    assert metric.to_sketch().n == 40
    questions = CalibrationError("binary", from_logits=from_logits, class_axis=axis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        questions.update(given, hot)
    assert questions.to_sketch().n == 120


def test_binary_masks_and_several_labels_are_no_one_hot_vectors():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(50, 4, generator=generator)
    metric = CalibrationError(from_logits=False)
    metric.update(p, torch.rand(50, 4, generator=generator) < p)
    assert metric.to_sketch().n == 200
    metric = CalibrationError(from_logits=False)
    metric.update(p[:1], torch.tensor([[0, 1, 0, 0]]))  # a single row may have one label by chance
    metric.update(p, torch.eye(4, dtype=torch.long).repeat(13, 1)[:50])
    assert metric.to_sketch().n == 204


@pytest.mark.parametrize("axis", [2, -3, 5])
def test_an_axis_that_does_not_exist_is_an_error(axis):
    p, y = rows(10)
    with pytest.raises(calibrant.InputError, match="pass class_axis=1 if it is the axis of the classes"):
        CalibrationError(from_logits=False, class_axis=axis).update(p, y)


@pytest.mark.parametrize("axis", [-1, -2, -3, 1, 2, 3])
def test_any_axis_of_the_classes(axis):
    p, y = rows(240)
    metric = CalibrationError(from_logits=False, class_axis=axis)
    metric.update(p.reshape(4, 6, 10, 3).movedim(-1, axis), y.reshape(4, 6, 10))
    plain = CalibrationError(from_logits=False)
    plain.update(p, y)
    assert torch.equal(metric.sums, plain.sums)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_impossible_weights_are_refused(bad):
    p, y = rows()
    weight = torch.ones(300)
    weight[5] = bad
    metric = CalibrationError(from_logits=False, weighted=True, ignore_index=-1)
    with pytest.raises(calibrant.InputError, match="sample_weight must be finite and not negative"):
        metric.update(p, y, weight)
    # The weight of an entry that is left out does not matter.
    label = y.clone()
    label[5] = -1
    metric.update(p, label, weight)
    kept = torch.arange(300) != 5
    expected = CalibrationError(from_logits=False, weighted=True)
    expected.update(p[kept], y[kept], torch.ones(299))
    assert torch.equal(metric.sums, expected.sums)
    assert torch.equal(metric.row_sums, expected.row_sums)
    masked = CalibrationError(from_logits=False, weighted=True)
    masked.update(p, y, weight, mask=kept)
    assert torch.equal(masked.sums, expected.sums)


@pytest.mark.full
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_masks_weights_and_ignored_labels_go_together(kind):
    generator = torch.Generator().manual_seed(0)
    p, y = rows(360)
    weight, mask = torch.rand(360, generator=generator) + 0.5, torch.rand(360, generator=generator) < 0.8
    label = torch.where(torch.rand(360, generator=generator) < 0.2, 255, y)
    shaped = [each.reshape(4, 9, 10) for each in (label, weight, mask)]
    metric = CalibrationError(from_logits=False, weighted=True, ignore_index=255)
    logits = p.to(kind).reshape(4, 9, 10, 3).movedim(-1, 1)
    metric.update(logits, *shaped)
    kept = mask & (label != 255)
    plain = CalibrationError(from_logits=False, weighted=True)
    plain.update(p.to(kind)[kept], y[kept], weight[kept])
    torch.testing.assert_close(metric.sums.sum(0), plain.sums.sum(0), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (0, 3, 4), (4, 3, 0)])
def test_empty_batches_change_nothing(shape):
    target = torch.zeros(shape[:1] + shape[2:], dtype=torch.long)
    metric = CalibrationError()
    metric.update(torch.zeros(shape), target)
    assert metric.from_logits is None
    p, y = rows()
    metric.update(p, y)
    metric.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    assert metric.to_sketch().n == 300


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_lose_no_rows(weighted):
    p, y = rows(500)
    metric = CalibrationError(from_logits=False, weighted=weighted)
    more = (torch.ones(500),) if weighted else ()

    def work():
        for _ in range(40):
            metric.update(p, y, *more)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert metric.to_sketch().totals.weight == 4 * 40 * 500
