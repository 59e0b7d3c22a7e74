"""Recommendations: the truth they rest on, what they promise, and what they refuse."""

import numpy as np
import pytest

import calibrant
from calibrant.inference import population as simulated
from calibrant.inference import recommendation
from calibrant.inference.population import Population
from calibrant.inference.recommendation import rank_by_loss

FEW = {"estimators": ["auto", "l:15", "ac:10"], "repetitions": 30, "rng": 0}


def scores(n=200, seed=0):
    return np.random.default_rng(seed).beta(0.5, 0.5, n)


def matrix(n=200, classes=4, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), n)


def population(kind, n=None):
    """Few distinct scores, so that frequencies are known by counting."""
    rng = np.random.default_rng(3)
    if kind == "joint":
        return Population.of(rng.dirichlet(np.ones(3), 6)[rng.integers(0, 6, 60)].T, None, n=n, classes=3)
    score = rng.choice([0.0, 0.03, 0.2, 0.55, 0.8, 0.97, 1.0], 60)[None]
    weight = {"counts": rng.integers(1, 4, 60), "weights": rng.random(60)}.get(kind)
    return Population.of(score, weight, counts=kind != "weights", n=n)


def counted_error(sample):
    """Mean of |frequency - score| over the distinct scores, all data sets as one; mean over problems."""
    shape = sample.shape
    outcome = np.broadcast_to(sample.outcome, shape)
    score = np.broadcast_to(sample.score, shape)
    weight = np.broadcast_to(1.0 if sample.weight is None else sample.weight, shape)
    found = []
    for k in range(shape[1] if len(shape) == 3 else 1):
        s, y, w = (part[:, k] if len(shape) == 3 else part for part in (score, outcome, weight))
        groups = [(w[s == v].sum(), (w * (y - s))[s == v].sum()) for v in np.unique(s)]
        found.append(sum(abs(gap) for _, gap in groups) / sum(mass for mass, _ in groups))
    return np.mean(found)


@pytest.mark.parametrize(
    ("kind", "n"), [("plain", None), ("plain", 300), ("counts", 25), ("weights", 300), ("joint", None)]
)
def test_the_true_error_is_what_a_large_simulation_counts(kind, n):
    people = population(kind, n)
    rng = np.random.default_rng(0)
    curves = people.curves()
    shared = people.n / max(len(np.unique(each)) for each in people.score)
    absent = set() if shared >= 10 else {"alternating"}
    assert {curve.shape for curve in curves} == {"calibrated", *simulated.SHAPES} - absent
    for curve in curves:
        size = 200_000 // people.n
        sample = people.sample(curve.probability, people.draw(rng, size), rng, size)
        assert sample.shape[-1] == people.n
        assert counted_error(sample) == pytest.approx(curve.true, abs=0.005), curve.name


@pytest.mark.parametrize("kind", ["plain", "counts", "joint"])
def test_rows_that_count_several_times_have_the_same_truth(kind, monkeypatch):
    monkeypatch.setattr(simulated, "MOST", 90)
    people = population(kind, 2000)
    rng = np.random.default_rng(0)
    assert people.count is not None
    assert people.count.sum() == people.n == 2000
    for curve in people.curves():
        sample = people.sample(curve.probability, people.draw(rng, 200), rng, 200)
        np.testing.assert_array_equal(sample.n, 2000.0)
        assert counted_error(sample) == pytest.approx(curve.true, abs=0.0035), curve.name


def test_curves_have_the_sizes_they_are_named_after():
    people = Population.of(scores(500)[None], None)
    for curve in people.curves()[1:]:
        assert curve.true == pytest.approx(float(curve.name.split()[1]), rel=0.01)
        assert ((curve.probability >= 0) & (curve.probability <= 1)).all()
    assert len(people.curves()) == 15


def test_scores_that_allow_hardly_any_error_still_get_curves():
    curves = Population.of(np.full((1, 50), 1e-12), None).curves()
    assert [curve.shape for curve in curves][:2] == ["calibrated", "overconfident"]
    assert {curve.shape for curve in curves[2:]} == {"tail"}  # no logit moves such scores, a gap does
    assert 0.001 < curves[1].true < 0.01
    certain = calibrant.recommend([0.0, 1.0, 1.0] * 9, **FEW)
    assert {row.shape for row in certain.table} == {"calibrated", "tail"}


def test_classes_drawn_together_keep_their_chances():
    rng = np.random.default_rng(0)
    probability = np.array(
        [[0.5, 0.2, 0.9], [0.3, 0.1, 0.4], [0.2, 0.3, 0.1]]
    )  # columns sum to 1, 0.6 and 1.4
    (drawn,) = simulated._systematic_sample(probability, rng, 100_000, 3, 1)
    np.testing.assert_allclose(drawn.mean(axis=0), probability, atol=0.006)
    labels = drawn.sum(axis=1)
    assert set(np.unique(labels[:, 0])) == {1}
    assert set(np.unique(labels[:, 1])) == {0, 1}
    assert set(np.unique(labels[:, 2])) == {1, 2}


def test_two_classes_are_each_others_complement_on_every_curve():
    s = scores(100)
    tenths = np.random.default_rng(0).choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], 90)
    for each in (s, tenths, tenths[tenths > 0.2]):
        for curve in Population.of(np.stack([1 - each, each]), None).curves():
            np.testing.assert_allclose(curve.probability.sum(axis=0), 1.0, atol=1e-12, err_msg=curve.name)


def gaps(people, shape):
    """The gap of each distinct score on the first curve of a shape, by a loop, and the share of its mass."""
    probability = next(curve.probability for curve in people.curves() if curve.shape == shape)[0]
    by_score, total = {}, sum(people.mass)
    for score, each, mass in zip(people.score[0], probability, people.mass, strict=True):
        value, held = by_score.setdefault(score, (each - score, 0.0))
        assert value == each - score  # equal scores have one chance
        by_score[score] = value, held + mass / total
    return by_score


@pytest.mark.parametrize("kind", ["plain", "counts", "weights", "ties", "atom"])
@pytest.mark.parametrize("shape", ["local", "tail"])
def test_a_local_gap_lives_on_a_tenth_of_the_mass_in_one_stretch(kind, shape):
    rng = np.random.default_rng(4)
    score = rng.beta(1, 2, 800)
    if kind == "ties":
        score = np.round(score, 2)
    if kind == "atom":  # a quarter of the rows at the top
        score[:200] = 1.0
    weight = {"counts": rng.integers(1, 5, 800), "weights": rng.random(800)}.get(kind)
    by_score = gaps(Population.of(score[None], weight, counts=kind != "weights"), shape)
    values = sorted(by_score)
    touched = [k for k, value in enumerate(values) if by_score[value][0] != 0]
    assert touched == list(range(touched[0], touched[-1] + 1))
    held = sum(by_score[values[k]][1] for k in touched)
    below = sum(by_score[value][1] for value in values[: touched[0]])
    assert len({round(by_score[values[k]][0], 9) for k in touched}) == 1
    if kind == "atom" and shape == "tail":
        assert [values[k] for k in touched] == [1.0]
        assert by_score[1.0][0] < 0
    else:
        assert held == pytest.approx(0.1, abs=0.02)
        assert below == pytest.approx({"local": 0.65, "tail": 0.9}[shape], abs=0.02)


def test_a_gap_alternates_between_few_scores_and_not_between_many():
    rng = np.random.default_rng(5)
    few = Population.of(rng.choice([0.1, 0.3, 0.4, 0.6, 0.8], 200)[None], None)
    signs = [np.sign(gap) for _, (gap, _) in sorted(gaps(few, "alternating").items())]
    assert signs == [1, -1, 1, -1, 1]
    many = (rng.random(200), rng.integers(0, 40, 4000) / 40, rng.choice([0.1, 0.3, 0.4, 0.6, 0.8], 40))
    for score in many:  # all distinct, more than 30, and 8 rows of each
        assert "alternating" not in {curve.shape for curve in Population.of(score[None], None).curves()}


def test_fifteen_uniform_bins_rank_below_the_default_on_small_data():
    found = calibrant.recommend(scores(150), rng=0, repetitions=60)
    place = [one.estimator for one in found.ranking]
    assert place.index("auto") < place.index("l:15")
    row = {(one.estimator, one.curve): one for one in found.table}
    assert row["l:15", "calibrated"].bias > 2 * row["auto", "calibrated"].bias > 0
    assert set(place) == set(recommendation.DEFAULT)


def test_a_function_sees_rows_where_other_estimators_see_counts(monkeypatch):
    monkeypatch.setattr(simulated, "MOST", 50)

    def careless(scores, outcomes, weights):
        assert len(scores) == 400
        return float(abs(np.mean(outcomes - scores)))

    careful = {"one bin": "l:1", "mine": careless}
    found = calibrant.recommend(scores(100), n=400, estimators=careful, repetitions=5, rng=0)
    pairs = zip(found.table[::2], found.table[1::2], strict=True)
    assert all(a.p95 == pytest.approx(b.p95, abs=1e-12) for a, b in pairs)
    assert "each counted several times" in str(found)


def test_the_loss_is_the_geometric_mean_of_relative_percentiles():
    rng = np.random.default_rng(0)
    error = rng.normal(size=(3, 2, 1000)) * np.array([[1, 2], [1, 4], [3, 1]])[:, :, None]
    first, second = rank_by_loss(error, {"a": "A", "b": "B"}, 1e-9, rng)
    assert (first.estimator, second.estimator) == ("a", "b")
    assert first.loss == pytest.approx(3 ** (1 / 3), rel=0.1)
    assert second.loss == pytest.approx(8 ** (1 / 3), rel=0.1)
    assert first.tied
    assert not second.tied
    assert 0 < second.se < 0.2
    alike = rank_by_loss(error * [[[1], [0]]], {"a": "A", "b": "B"}, 100.0, rng)
    assert all(one.loss == 1.0 and one.tied for one in alike)


def test_importance_weights_have_no_scale_and_change_the_truth():
    s, weight = scores(), np.random.default_rng(0).exponential(size=200)
    one, other = (calibrant.recommend(s, sample_weight=weight * f, **FEW) for f in (1.0, 2.0**600))
    assert one == other
    people = Population.of(s[None], weight, counts=False)
    probability = people.curves()[3].probability
    order = np.argsort(s)
    assert people.true_error(probability) == pytest.approx(
        np.average(np.abs(probability[0] - s[order]), weights=weight[order])
    )


def test_many_rows_cost_no_more(monkeypatch):
    monkeypatch.setattr(simulated, "MOST", 400)
    kw = {**FEW, "repetitions": 10}
    plain = calibrant.recommend(scores(3000), **kw)
    assert plain.n == 3000
    assert plain.cautions == ("200 rows stand for all, each counted several times",)
    weighted = calibrant.recommend(scores(3000), sample_weight=np.ones(3000), **kw)
    assert weighted.n == 400
    assert weighted.cautions == ("3000 rows asked for, 400 simulated",)
    monkeypatch.setattr(simulated, "MOST_COPIES", 4000)
    joint = calibrant.recommend(matrix(3000), notion="classwise", **kw)
    assert joint.n == 1000
    assert len(joint.cautions) == 2


def test_it_prints_a_table_with_the_best_first():
    found = calibrant.recommend(scores(), **FEW)
    first, losses, rule, errors = str(found).split("\n\n")
    assert first.startswith(f"best estimator  {found.best}")
    assert first.endswith("200 rows, 30 simulated data sets per curve, seed 0")
    assert losses.split()[:5] == ["estimator", "resolved", "loss", "standard", "error"]
    head, *rows = errors.splitlines()
    assert head.split() == ["estimator", "calibrated", *list(simulated.SHAPES)[:-1]]
    assert [row.split()[0] for row in rows] == [one.estimator for one in found.ranking]
    assert len({len(line) for line in (head, *rows)}) == 1
    assert "geometric mean over 15 curves" in rule
