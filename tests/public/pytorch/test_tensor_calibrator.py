"""A calibrator on tensors gives the probabilities of the calibrator on arrays."""

import io
import warnings

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


def softmax(x):
    return torch.tensor(x).softmax(-1).numpy()


CASES = [
    *((method, classes) for method in ("auto", "temperature") for classes in (2, 3, 15)),
    *((method, classes) for method in ("vector", "matrix") for classes in (3, 15)),
    *((method, classes) for method in ("isotonic", "sigmoid") for classes in (2, 3)),
]


@pytest.mark.full
@pytest.mark.parametrize(("method", "classes"), CASES)
def test_score_vectors(method, classes):
    x, y = several(classes)
    p = softmax(x)
    fitted = calibrant.Calibrator(method).fit(p, y)
    module = CalibratorModule(fitted)
    np.testing.assert_allclose(module(torch.tensor(p)), fitted.predict_proba(p), atol=1e-12)
    single = module(torch.tensor(p).float().reshape(20, -1, classes).movedim(2, 1)).movedim(1, 2)
    assert single.dtype == torch.float32
    if method != "isotonic":  # its steps are at the scores themselves
        np.testing.assert_allclose(single.reshape(-1, classes), fitted.predict_proba(p), atol=1e-5)
    stored = io.BytesIO()
    torch.save(module.state_dict(), stored)
    loaded = CalibratorModule()
    loaded.load_state_dict(torch.load(io.BytesIO(stored.getvalue()), weights_only=True))
    assert torch.equal(loaded(torch.tensor(p)), CalibratorModule(loaded.calibrator)(torch.tensor(p)))
    np.testing.assert_allclose(loaded(torch.tensor(p)), fitted.predict_proba(p), atol=1e-12)


@pytest.mark.parametrize(
    "method", sorted({*calibrant.calibrator_names()} - {"vector", "matrix", "venn-abers"})
)
def test_scores_of_one_class(method):
    rng = np.random.default_rng(0)
    score = np.append(rng.random(500), [0.0, 0.5, 1.0])
    fitted = calibrant.Calibrator(method).fit(score, rng.random(503) < score**2)
    np.testing.assert_allclose(
        CalibratorModule(fitted)(torch.tensor(score)), fitted.predict_proba(score), atol=1e-12
    )
    assert CalibratorModule(fitted).float()(torch.tensor([0.3])).dtype == torch.float32
    assert method in repr(CalibratorModule(fitted))


def test_logits():
    x, y = several(4)
    for method in ("temperature", "auto", "isotonic"):
        fitted = calibrant.Calibrator(method, from_logits=True).fit(x, y)
        np.testing.assert_allclose(
            CalibratorModule(fitted)(torch.tensor(x)), fitted.predict_proba(x), atol=1e-9
        )


def test_a_temperature_of_two_classes():
    x, y = several(2)
    module = CalibratorModule.fit_temperature(torch.tensor(x), torch.tensor(y))
    loss = [
        torch.nn.functional.nll_loss((factor * module(torch.tensor(x)).log()).log_softmax(1), torch.tensor(y))
        for factor in (0.9, 1.0, 1.1)
    ]
    assert loss[1] < min(loss[0], loss[2])
    loaded = CalibratorModule()
    loaded.load_state_dict(module.state_dict())
    assert torch.equal(loaded(torch.tensor(x)), module(torch.tensor(x)))
    expected = calibrant.Calibrator("temperature", from_logits=True).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(module(torch.tensor(x)), expected, atol=1e-12)


@pytest.mark.full
def test_probabilities_are_refused_where_logits_are_mapped():
    x, y = several(3)
    fitted = calibrant.Calibrator("temperature", from_logits=True).fit(x, y)
    module, p = CalibratorModule(fitted), torch.tensor(x).softmax(-1)
    for each in (p, p.float(), p.float().reshape(20, -1, 3).movedim(2, 1), p.requires_grad_()):
        with pytest.raises(calibrant.InputError, match=r"scores must be logits.*got probabilities"):
            module(each)
    module(p[:2])  # few logits may sum to 1 by chance
    # Programs that are traced cannot look at values.
    batch = torch.tensor(x).reshape(4, -1, 3).movedim(2, 1)
    torch.testing.assert_close(torch.func.vmap(module)(batch.movedim(1, 2)), module(batch).movedim(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert torch.equal(torch.jit.trace(module, batch)(batch), module(batch))
    program = torch.export.export(module, (torch.tensor(x),)).module()
    assert torch.equal(program(torch.tensor(x)), module(torch.tensor(x)))


def test_a_module_without_a_calibrator_says_so():
    for call in (lambda: CalibratorModule()(torch.tensor([0.2])), CalibratorModule().state_dict):
        with pytest.raises(ValueError, match="no calibrator: pass a fitted one, or call load_state_dict"):
            call()


def test_bad_arguments():
    with pytest.raises(calibrant.InputError, match="calibrator"):
        CalibratorModule(calibrant.Calibrator())
    with pytest.raises(calibrant.InputError, match="one map"):
        CalibratorModule(calibrant.Calibrator("venn-abers").fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]))
    with pytest.raises(calibrant.InputError, match="target"):
        CalibratorModule.fit_temperature(torch.zeros(2, 3), torch.tensor([0, 3]))
    with pytest.raises(calibrant.InputError, match="logits"):
        CalibratorModule.fit_temperature(torch.full((2, 3), float("nan")), torch.tensor([0, 1]))
