"""The metric accounts for targets of the same image, sequence or question, in memory of a fixed size."""

import numpy as np
import pytest
import torch

import calibrant
from calibrant.torch import CalibrationError, TokenCalibrationError

NODES, MASS = np.polynomial.hermite_e.hermegauss(30)


def masks(seed, images=60, side=24, effect=0.7):
    """Return calibrated scores of pixels, and outcomes with a common effect of each image."""
    rng, shape = np.random.default_rng(seed), (images, side, side)
    logit = 1.7 * rng.standard_normal(shape)
    grid = np.linspace(-14, 14, 1001)
    mean = (MASS / MASS.sum() / (1 + np.exp(-(grid[:, None] + effect * NODES)))).sum(axis=1)
    outcome = rng.random(shape) < 1 / (1 + np.exp(-(logit + effect * rng.standard_normal((images, 1, 1)))))
    return torch.tensor(np.interp(logit, grid, mean)), torch.tensor(outcome), torch.arange(images)


def metric_of(*batch, notion=None, **options):
    metric = CalibrationError(notion, from_logits=False, **options)
    metric.update(*batch[:2], cluster=batch[2] if len(batch) > 2 else None)
    return metric


def by_row(p, y, image):
    return y.flatten().numpy(), p.flatten().numpy(), image.repeat_interleave(y[0].numel()).numpy()


@pytest.mark.full
def test_the_test_of_calibrated_masks_is_not_too_liberal():
    alarms = {True: 0, False: 0}
    for seed in range(12):
        p, y, image = masks(seed)
        for clustered in alarms:
            metric = metric_of(p, y, *([image] if clustered else []))
            estimate = metric.estimate(rng=0)
            alarms[clustered] += estimate.p_value <= 0.05
            assert not clustered or estimate.low < 0.005
    assert alarms[False] >= 6
    assert alarms[True] <= 2


@pytest.mark.full
def test_results_are_those_of_clustered_rows():
    for seed, power in ((0, 1.0), (1, 1.0), (2, 1.4)):
        p, y, image = masks(seed)
        p = p**power
        metric = metric_of(p, y, image)
        labels, scores, ids = by_row(p, y, image)
        rows = calibrant.estimate(labels, scores, cluster=ids, rng=0)
        estimate = metric.estimate(rng=0)
        assert estimate.clusters == rows.clusters == 60
        assert estimate.n == rows.n
        assert estimate.value == pytest.approx(rows.value, rel=0.05, abs=2e-4)
        assert estimate.high == pytest.approx(rows.high, rel=0.1)
        assert (estimate.p_value <= 0.01) == (rows.p_value <= 0.01) == (power > 1)
        assert metric.compute().item() == pytest.approx(estimate.value, abs=1e-12)
        curve = metric.curve()
        expected = calibrant.reliability_curve(labels, scores, cluster=ids)
        at = [curve.at(0.5), expected.at(0.5)]
        assert curve.clusters == 60
        assert float(at[0].high - at[0].low) == pytest.approx(float(at[1].high - at[1].low), rel=0.1)


def test_a_named_estimator_has_an_interval_for_clusters():
    p, y, image = masks(3)
    found = {
        clustered: metric_of(p, y, *([image] * clustered), estimator="uniform:15").estimate(rng=0)
        for clustered in (False, True)
    }
    assert found[True].value == pytest.approx(found[False].value, abs=1e-12)
    assert found[True].high > 2 * found[False].high


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_in_any_order_have_the_same_sums(weighted):
    p, y, image = masks(4, images=20, side=6)
    weight = torch.rand(y.shape, generator=torch.Generator().manual_seed(0)) + 0.5 if weighted else None
    whole = CalibrationError(from_logits=False, weighted=weighted)
    whole.update(p, y, weight, cluster=image)
    parts = CalibrationError(from_logits=False, weighted=weighted)
    for rows in torch.randperm(20, generator=torch.Generator().manual_seed(1)).chunk(7):
        # An id for each entry is the same as one for each image.
        ids = image[rows, None, None].expand(len(rows), 6, 6)
        parts.update(p[rows], y[rows], weight if weight is None else weight[rows], cluster=ids)
    for name, state in whole.metric_state.items():
        other = parts.metric_state[name]
        if weighted:
            torch.testing.assert_close(other.double().sum(0), state.double().sum(0), rtol=1e-12, atol=1e-12)
        else:
            assert torch.equal(other, state)
    found, expected = parts.estimate(rng=0), whole.estimate(rng=0)
    assert found.p_value == expected.p_value
    assert found.high == pytest.approx(expected.high, rel=1e-9)


def test_equal_weights_are_no_weights():
    p, y, image = masks(5)
    metric = CalibrationError(from_logits=False, weighted=True)
    metric.update(p, y, torch.full(y.shape, 3.0), cluster=image)
    found, expected = metric.estimate(rng=0), metric_of(p, y, image).estimate(rng=0)
    assert found.high == pytest.approx(expected.high, rel=1e-4)
    assert found.p_value == pytest.approx(expected.p_value, abs=0.01)


def test_entries_that_are_left_out_have_no_cluster():
    p, y, image = masks(6, images=20, side=8)
    kept = torch.rand(y.shape, generator=torch.Generator().manual_seed(0)) < 0.7
    masked = CalibrationError(from_logits=False)
    masked.update(p, y, mask=kept, cluster=image)
    ids = image[:, None, None].expand(y.shape)
    assert masked.estimate(rng=0) == metric_of(p[kept], y[kept], ids[kept]).estimate(rng=0)


def test_many_ids_are_pooled_in_memory_of_a_fixed_size():
    metric = CalibrationError(from_logits=False)
    size = sum(state.nbytes for state in metric.metric_state.values())
    for seed in range(5):
        p, y, image = masks(seed, images=400, side=4)
        metric.update(p, y, cluster=100 * (image + 400 * seed))
    assert sum(state.nbytes for state in metric.metric_state.values()) == size < 1.5e6
    estimate = metric.estimate(rng=0)
    assert 200 < estimate.clusters <= 251
    assert estimate.n == 5 * 400 * 16


@pytest.mark.parametrize("notion", ["confidence", "top:2", "classwise"])
def test_masks_of_several_classes(notion):
    rng = np.random.default_rng(0)
    p = torch.tensor(rng.dirichlet([1, 1, 1, 1], (80, 10, 10))).movedim(3, 1)
    shared = np.where(rng.random((80, 10, 10)) < 0.6, rng.random((80, 1, 1)), rng.random((80, 10, 10)))
    y = (torch.tensor(shared)[:, None] > p.cumsum(1)).sum(1).clamp(max=3)
    options = {"notion": notion, "num_classes": 4}
    plain, clustered = metric_of(p, y, **options), metric_of(p, y, torch.arange(80), **options)
    found, expected = clustered.estimate(rng=0), plain.estimate(rng=0)
    assert found.p_value > 0.01
    assert found.high > 1.2 * expected.high
    assert found.clusters == 80
    rows = p.movedim(1, -1).reshape(-1, 4).numpy()
    ids = torch.arange(80).repeat_interleave(100).numpy()
    if notion != "classwise":
        other = calibrant.estimate(y.flatten().numpy(), rows, notion=notion, cluster=ids, rng=0)
        assert found.high == pytest.approx(other.high, rel=0.2)


def test_tokens_of_a_text_are_a_cluster():
    torch.manual_seed(0)
    logits = torch.randn(40, 12, 30)
    target = torch.distributions.Categorical(logits=logits).sample()
    target[:, 9:] = -100
    for scores in ("confidence", "every"):
        metric = TokenCalibrationError(scores, "uniform:10")
        for step in range(12):
            metric.update(logits[:, step], target[:, step], cluster=torch.arange(40))
        at_once = TokenCalibrationError(scores, "uniform:10")
        at_once.update(logits, target, cluster=torch.arange(40))
        assert torch.equal(metric.cluster_sums, at_once.cluster_sums)
        assert at_once.estimate(rng=0).clusters == 40


def test_a_checkpoint_has_the_clusters():
    p, y, image = masks(7, images=30, side=6)
    metric = metric_of(p[:15], y[:15], image[:15])
    loaded = CalibrationError(from_logits=False)
    loaded.load_state_dict(metric.state_dict())
    loaded.update(p[15:], y[15:], cluster=image[15:])
    assert loaded.estimate(rng=0) == metric_of(p, y, image).estimate(rng=0)
    value = loaded(p[:9], y[:9], cluster=image[:9])  # the value of the batch alone
    assert value == metric_of(p[:9], y[:9], image[:9]).compute()
    metric.reset()
    metric.update(p, y, cluster=image)
    assert metric.compute() == metric_of(p, y, image).compute()


WARNING = "Rows of the same one are correlated"


def cautions(result):
    return " ".join(result.cautions)


def test_dense_targets_without_clusters_have_a_caution():
    p, y, image = masks(8, images=20, side=8)
    plain = metric_of(p, y).estimate(rng=0)
    assert "1,280 rows belong to images or texts with several rows" in cautions(plain)
    assert WARNING in " ".join(str(plain).split())
    assert WARNING not in cautions(metric_of(p, y, image).estimate(rng=0))
    assert WARNING not in cautions(metric_of(p[:, 0, 0], y[:, 0, 0]).estimate(rng=0))
    one = CalibrationError(from_logits=False)
    one.update(p, y, mask=torch.arange(64).reshape(1, 8, 8).expand(y.shape) == 5)
    assert WARNING not in cautions(one.estimate(rng=0))


def test_a_sketch_of_dense_targets_keeps_the_caution(tmp_path):
    p, y, image = masks(9, images=20, side=8)
    for metric in (metric_of(p, y), metric_of(p, y, image)):
        sketch = metric.to_sketch()
        assert WARNING in cautions(sketch.estimate(rng=0))
        sketch.save(tmp_path / "dense.sketch")
        loaded = calibrant.Sketch.load(tmp_path / "dense.sketch")
        assert WARNING in cautions((loaded + loaded).estimate(rng=0))
    rows = calibrant.Sketch().update(y.flatten().numpy(), p.flatten().numpy())
    assert WARNING not in cautions(rows.estimate(rng=0))


def test_a_single_cluster_says_so():
    p, y, _ = masks(10, images=1, side=20)
    estimate = metric_of(p, y, torch.tensor([3])).estimate(rng=0)
    assert "single cluster" in cautions(estimate)


@pytest.mark.parametrize(
    ("cluster", "match"),
    [
        (torch.arange(5), "cluster must have the shape of target"),
        (torch.tensor(3), "cluster must have the shape of target"),
        (torch.zeros(6, 4, 4), "cluster must hold integers"),
        (None, "cluster must be given in all batches or in none"),
    ],
)
def test_clusters_that_do_not_fit_are_refused(cluster, match):
    p, y, image = masks(11, images=6, side=4)
    metric = metric_of(p, y, image)
    before = {name: state.clone() for name, state in metric.metric_state.items()}
    with pytest.raises((calibrant.InputError, calibrant.InputTypeError), match=match):
        metric.update(p, y, cluster=cluster)
    for name, state in metric.metric_state.items():
        assert torch.equal(state, before[name])


def test_clusters_do_not_go_with_many_classes():
    p = torch.full((4, 25), 0.04)
    metric = CalibrationError("classwise", num_classes=25, from_logits=False)
    with pytest.raises(calibrant.InputError, match="cluster must go with at most 20 classes"):
        metric.update(p, torch.arange(4), cluster=torch.arange(4))
    p, y, image = masks(12, images=20, side=4)
    with pytest.raises(calibrant.InputError, match="method must be 'bayes' for sums by cluster"):
        metric_of(p, y, image).curve(method="density")
