"""Maps of the scores of many classes."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant import Calibrator, InputError
from calibrant.maps import of_all_scores as module
from calibrant.maps.methods import METHODS
from oracles import maps as oracle

MANY = [name for name, method in METHODS.items() if method.many]


def rows(n=300, c=3, seed=0, temperature=2.0):
    """Scores of a network that is too sure."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.standard_normal((n, c))
    truth, score = module.softmax(z), module.softmax(temperature * z)
    return score, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), truth


def loss(q, truth):
    return float(-(truth * np.log(q)).sum(axis=1).mean())


@pytest.mark.parametrize("curved", [True, False])
def test_the_expansion_is_that_of_the_formula(curved):
    score, code, _ = rows(14)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, len(code))
    clock = np.array([[-6.0, 0.0, 6.0], [0.0, 0.4, 1.0]])
    features = module.Features(0.8, clock, clock[:, [0, 2]], True, curved)
    z = features.tempered(np.log(score))
    size = 1 + 2 * module.WAVES + 3 * (2 + module.WAVES * curved + 3)
    mean = 0.2 * rng.standard_normal(size)
    square, gradient, value = module._expand(z, code, weight, features, mean)

    def waves(k):
        p = np.exp(z[k]) / np.exp(z[k]).sum()
        x = np.log(p / (1 - p))

        def at(place, known):
            time = np.interp(place, *known)
            return np.array([2**0.5 * np.cos(np.pi * j * time) for j in range(1, module.WAVES + 1)])

        return at(x[np.argmax(p)], features.margin), [at(each, features.curve) for each in x]

    def exact(coefficients):
        if not curved:  # curves of their own that are nought
            shared, own = np.split(coefficients, [1 + 2 * module.WAVES])
            own = own.reshape(3, -1)
            own = np.hstack([own[:, :2], np.zeros((3, module.WAVES)), own[:, 2:]])
            coefficients = np.concatenate([shared, own.ravel()])
        return oracle.softmax_log_likelihood(z, code, weight, waves, coefficients)

    assert value == pytest.approx(exact(mean), abs=1e-9)
    for k in range(size):
        step = np.zeros(size)
        step[k] = 1e-5
        assert gradient[k] == pytest.approx((exact(mean + step) - exact(mean - step)) / 2e-5, abs=1e-5)
        ahead, behind = (module._expand(z, code, weight, features, mean + way * step)[1] for way in (1, -1))
        # Minus the curvature: that of the log likelihood falls.
        np.testing.assert_allclose(square[k], (behind - ahead) / 2e-5, atol=1e-5)


def test_temperature_is_the_likeliest():
    score, code, _ = rows(400)

    def cost(log):
        return -np.log(module.softmax(np.exp(log) * np.log(score))[np.arange(400), code]).sum()

    slope = np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x)
    expected = module.softmax(slope * np.log(score))
    np.testing.assert_allclose(
        Calibrator("temperature").fit(score, code).predict_proba(score), expected, atol=2e-3
    )


@pytest.mark.parametrize("method", [*MANY, "isotonic-safe", "beta"])
def test_scores_that_are_too_sure_are_mended(method):
    score, code, truth = rows(1000, c=4)
    found = Calibrator(method).fit(score, code).predict_proba(score)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert loss(found, truth) < loss(score, truth) - 0.1
    assert loss(found, truth) < loss(truth, truth) + 0.02


@pytest.mark.parametrize("method", MANY)
def test_the_order_of_rows_does_not_matter(method):
    score, code, _ = rows(100)
    order = np.random.default_rng(0).permutation(100)
    found, again = (
        Calibrator(method).fit(score[some], code[some]).predict_proba(score)
        for some in (np.arange(100), order)
    )
    np.testing.assert_allclose(found, again, atol=1e-6)


@pytest.mark.parametrize("method", MANY)
def test_counts_mean_repetition_and_rows_without_weight_do_not_count(method):
    score, code, _ = rows(100)
    count = np.random.default_rng(1).integers(0, 3, 100)
    found = Calibrator(method).fit(score, code, count).predict_proba(score)
    again = (
        Calibrator(method).fit(np.repeat(score, count, axis=0), np.repeat(code, count)).predict_proba(score)
    )
    np.testing.assert_allclose(found, again, atol=1e-6)


@pytest.mark.parametrize("method", [name for name in MANY if name != "auto"])
def test_the_order_of_classes_does_not_matter(method):
    score, code, _ = rows(150)
    order = np.array([2, 0, 1])
    found = Calibrator(method).fit(score, code).predict_proba(score)
    turned = Calibrator(method).fit(score[:, order], np.argsort(order)[code]).predict_proba(score[:, order])
    np.testing.assert_allclose(turned, found[:, order], atol=1e-6)


def test_the_order_of_classes_matters_as_little_as_draws_do():
    score, code, _ = rows(150)
    order = np.array([2, 0, 1])
    found = Calibrator().fit(score, code).predict_proba(score)
    turned = Calibrator().fit(score[:, order], np.argsort(order)[code]).predict_proba(score[:, order])
    np.testing.assert_allclose(turned, found[:, order], atol=0.01)
    assert np.abs(turned - found[:, order]).mean() < 0.002


@pytest.mark.parametrize("method", [*MANY, "isotonic", "venn-abers"])
@pytest.mark.parametrize("case", ["one class only", "constant", "separable", "exact", "one row", "two rows"])
def test_the_answer_is_a_distribution_in_every_case(method, case):
    score, code, _ = rows(40)
    if case == "one class only":
        code = np.zeros(40, int)
    elif case == "constant":
        score = np.tile([0.2, 0.3, 0.5], (40, 1))
    elif case == "separable":
        code = score.argmax(axis=1)
    elif case == "exact":
        score = np.eye(3)[score.argmax(axis=1)]
    elif case.endswith(("row", "rows")):
        score, code = (part[: 1 if case == "one row" else 2] for part in (score, code))
    calibrator = Calibrator(method, labels=[0, 1, 2]).fit(score, code)
    new = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [1e-12, 1e-12, 1 - 2e-12]])
    found = calibrator.predict_proba(new)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    before = found, found
    for level in (0.5, 0.95):
        low, high = calibrator.predict_interval(new, level)
        assert ((low >= 0) & (low <= before[0] + 1e-12) & (high >= before[1] - 1e-12) & (high <= 1)).all()
        before = low, high


def test_with_very_few_rows_the_scores_are_left_nearly_alone():
    new = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    # Neither row says anything against the scores.
    found = Calibrator(labels=[0, 1, 2]).fit(new, [0, 2]).predict_proba(new)
    np.testing.assert_allclose(found, new, atol=0.02)


def test_calibrated_scores_lose_little():
    gained = []
    for seed in range(6):
        score, code, truth = rows(100, seed=seed, temperature=1.0)
        gained.append(loss(Calibrator().fit(score, code).predict_proba(score), truth) - loss(score, truth))
    assert np.mean(gained) < 1 / 100


def test_logits_are_taken_for_their_softmax():
    score, code, _ = rows(60)
    found = Calibrator(from_logits=True).fit(np.log(score) + 3, code).predict_proba(np.log(score))
    np.testing.assert_allclose(found, Calibrator().fit(score, code).predict_proba(score), atol=1e-9)


def test_twenty_classes_of_a_few_rows():
    score, code, truth = rows(200, c=20)
    found = Calibrator().fit(score, code).predict_proba(score)
    assert loss(found, truth) < loss(score, truth)


@pytest.mark.parametrize("method", ["vector", "matrix"])
def test_what_needs_many_classes_says_so(method):
    with pytest.raises(InputError, match="method must be a map of one score"):
        Calibrator(method).fit([0.2, 0.7], [0, 1])
