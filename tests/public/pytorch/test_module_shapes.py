"""`CalibratorModule` maps the axis of the classes, and its state holds tensors alone."""

import io

import numpy as np
import pytest
import torch

import calibrant
from calibrant.torch import CalibratorModule

METHODS = ("temperature", "auto", "vector", "matrix", "isotonic")


def labelled(classes=3, n=600):
    generator = torch.Generator().manual_seed(classes)
    x = 2 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    y = torch.multinomial((x / 2).softmax(1), 1, generator=generator)[:, 0]
    y[:classes] = torch.arange(classes)
    return x, y


def fitted(method, *, from_logits, classes=3):
    x, y = labelled(classes)
    scores = x if from_logits else x.softmax(1)
    return calibrant.Calibrator(method, from_logits=from_logits).fit(scores.numpy(), y.numpy())


def stored(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_images_are_mapped_pixel_by_pixel(method, from_logits):
    calibrator = fitted(method, from_logits=from_logits)
    x, _ = labelled()
    rows = (x if from_logits else x.softmax(1))[:120]
    expected = calibrator.predict_proba(rows.numpy())
    image = rows.reshape(2, 6, 10, 3)
    for axis in (1, -1, 3, -3):
        given = image.movedim(3, axis)
        mapped = CalibratorModule(calibrator, class_axis=axis)(given)
        assert mapped.shape == given.shape
        np.testing.assert_allclose(mapped.sum(axis), 1, atol=1e-12)
        np.testing.assert_allclose(mapped.movedim(axis, -1).reshape(-1, 3), expected, atol=1e-9)
    for axis, vector in ((-1, rows[0]), (0, rows[:10].T)):
        mapped = CalibratorModule(calibrator, class_axis=axis)(vector)
        np.testing.assert_allclose(mapped.sum(axis), 1, atol=1e-12)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_images(kind):
    module = CalibratorModule(fitted("temperature", from_logits=True))
    x = labelled()[0][:60].reshape(2, 5, 6, 3).movedim(3, 1)
    mapped = module(x.to(kind))
    assert mapped.dtype == torch.float32
    np.testing.assert_allclose(mapped.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(mapped, module(x.to(kind).double()), atol=1e-5)


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_empty_batches_have_no_probabilities(method, from_logits):
    module = CalibratorModule(fitted(method, from_logits=from_logits))
    assert module(torch.zeros(0, 3)).shape == (0, 3)
    assert module(torch.zeros(2, 3, 0, 4)).shape == (2, 3, 0, 4)


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("shape", [(3, 7), (10,), (2, 7, 10), (0, 7), ()])
def test_another_number_of_classes_is_refused(shape, from_logits):
    module = CalibratorModule(fitted("temperature", from_logits=from_logits, classes=10))
    with pytest.raises(calibrant.InputError, match=r"scores must have 10 classes on axis 1, got shape"):
        module(torch.rand(shape))


def test_the_error_names_the_axis_that_fits():
    module = CalibratorModule(fitted("temperature", from_logits=True))
    with pytest.raises(calibrant.InputError, match="pass class_axis=-1"):
        module(torch.zeros(2, 5, 3))
    with pytest.raises(calibrant.InputTypeError, match="scores must hold floating point"):
        module(torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(calibrant.InputTypeError, match="class_axis must be an integer"):
        CalibratorModule(class_axis="last")


@pytest.mark.parametrize("axis", [1, -1])
def test_a_temperature_of_masks_is_that_of_their_pixels(axis):
    x, y = labelled()
    expected = calibrant.Calibrator("temperature", from_logits=True).fit(x.numpy(), y.numpy())
    logits, mask = x.reshape(6, 10, 10, 3).movedim(3, axis), y.reshape(6, 10, 10).clone()
    module = CalibratorModule.fit_temperature(logits, mask, class_axis=axis)
    assert module.calibrator.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)
    assert module.class_axis == axis
    np.testing.assert_allclose(module(logits).sum(axis), 1, atol=1e-12)
    # As many classes as columns: only the axis tells them apart.
    mask[:, 5:] = 255
    kept = (mask != 255).reshape(-1)
    module = CalibratorModule.fit_temperature(logits, mask, ignore_index=255, class_axis=axis)
    expected = calibrant.Calibrator("temperature", from_logits=True).fit(x[kept].numpy(), y[kept].numpy())
    assert module.calibrator.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)


def test_a_width_equal_to_the_number_of_classes_is_no_axis_of_classes():
    x, y = labelled()
    logits, mask = x.reshape(20, 10, 3, 3).movedim(3, 1), y.reshape(20, 10, 3)
    module = CalibratorModule.fit_temperature(logits, mask)
    expected = CalibratorModule.fit_temperature(x, y)
    assert module.calibrator.temperature_ == pytest.approx(expected.calibrator.temperature_, rel=1e-9)


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        (((5, 3, 4), (5, 3)), "pass class_axis=2"),
        (((5, 3), (4,)), "logits must have the shape of target"),
        (((5,), (5,)), "logits must have the shape of target"),
        (((5, 1), (5,)), "two classes or more"),
        (((2, 3, 4, 4), (2, 4)), "logits must have the shape of target"),
    ],
)
def test_shapes_that_do_not_go_together_are_refused(shapes, match):
    logits, target = shapes
    with pytest.raises(calibrant.InputError, match=match):
        CalibratorModule.fit_temperature(torch.zeros(logits), torch.zeros(target, dtype=torch.long))


def test_types_that_are_no_labels_are_refused():
    with pytest.raises(calibrant.InputTypeError, match="target must hold integers"):
        CalibratorModule.fit_temperature(torch.zeros(4, 3), torch.zeros(4))
    with pytest.raises(calibrant.InputTypeError, match="logits must hold floating point"):
        CalibratorModule.fit_temperature(
            torch.zeros(4, 3, dtype=torch.long), torch.zeros(4, dtype=torch.long)
        )


@pytest.mark.full
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("method", METHODS)
def test_a_state_holds_tensors_and_restores_the_module(method, axis):
    x, _ = labelled()
    module = CalibratorModule(fitted(method, from_logits=False), class_axis=axis)
    model = torch.nn.Sequential(torch.nn.Softmax(axis), module)
    state = stored(model)
    assert state
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    loaded = torch.nn.Sequential(torch.nn.Softmax(axis), CalibratorModule())
    loaded.load_state_dict(state)
    assert loaded[1].class_axis == axis
    assert loaded[1].calibrator.method == method
    given = x.reshape(20, 5, 6, 3).movedim(3, axis)
    torch.testing.assert_close(loaded(given), model(given), rtol=0, atol=1e-12)
    again = CalibratorModule()
    again.load_state_dict(stored(loaded[1]))
    assert torch.equal(again(given.softmax(axis)), loaded(given))


@pytest.mark.parametrize("state", ["text", torch.zeros(3), torch.tensor([1, 2], dtype=torch.uint8)])
def test_another_state_is_refused(state):
    with pytest.raises(calibrant.InputError, match="state must be"):
        CalibratorModule().load_state_dict({"_extra_state": state})


def test_a_vector_of_scores_has_no_axis_of_classes():
    rng = np.random.default_rng(0)
    score = rng.random(400)
    calibrator = calibrant.Calibrator("logistic").fit(score, rng.random(400) < score**2)
    module = CalibratorModule(calibrator)
    image = torch.tensor(score).reshape(4, 10, 10)
    np.testing.assert_allclose(module(image).flatten(), calibrator.predict_proba(score), atol=1e-12)
    loaded = CalibratorModule()
    loaded.load_state_dict(stored(module))
    assert torch.equal(loaded(image), module(image))
