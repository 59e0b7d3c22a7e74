"""Results that were stored are checked as they are read back: every number, and what belongs together."""

import json
import math
import pickle
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import calibrant
from calibrant import Assessment, Comparison, Estimate, InputError, Recommendation
from shortcuts import compare_estimators

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

rng = np.random.default_rng(0)
N = 300
SCORE = rng.random(N)
TRUE = (rng.random(N) < SCORE**2).astype(int)
TABLE = rng.dirichlet([1, 1, 1], N)
CLASS = np.array([rng.choice(3, p=row) for row in TABLE])
GROUP = np.where(SCORE > 0.5, "high", "low")
ROUNDED = np.round(SCORE, 1)
FEW = {"methods": ["temperature"], "cv": 2, "rng": 0}

with pytest.MonkeyPatch.context() as patch:
    compare_estimators(patch, "uniform", "density")  # the others are stored alike
    RESULTS = {
        "estimate": calibrant.estimate(TRUE, SCORE, rng=0),
        "class-wise estimate": calibrant.estimate(CLASS, TABLE, notion="classwise", norm="l2", rng=0),
        "comparison": calibrant.compare(TRUE, {"a": SCORE, "b": SCORE**2}, rng=0),
        "recommendation": calibrant.recommend(SCORE, estimators=["l:15", "a:10"], repetitions=30, rng=0),
        "assessment": calibrant.assess(TRUE, SCORE, groups=GROUP, rng=0),
        "class-wise assessment": calibrant.assess(CLASS, TABLE, notion="classwise", pos_label=2, rng=0),
    }
    OTHERS = {
        "canonical": calibrant.estimate(CLASS, TABLE, notion="canonical", rng=0),
        "assessment of canonical calibration": calibrant.assess(CLASS, TABLE, notion="canonical", rng=0),
        "assessment with costs": calibrant.assess(TRUE, SCORE, cost=(1, 9), rng=0),
        "curve": calibrant.reliability_curve(TRUE, SCORE),
        "curve by density": calibrant.reliability_curve(TRUE, SCORE, method="density", n_boot=20, rng=0),
        "curve without band": calibrant.reliability_curve(TRUE, ROUNDED, band=None),
        "diagram": calibrant.reliability_diagram(TRUE, SCORE / 2),
        "histogram": calibrant.score_histogram(TRUE, SCORE),
        "point": calibrant.reliability_curve(TRUE, SCORE / 2).at([[0.2, 0.4], [0.3, 0.9]]),
        "point of one score": calibrant.reliability_curve(TRUE, SCORE).at(0.3),
        "regret": calibrant.regret(TRUE, SCORE, (1, 9), rng=0),
        "regret of a matrix": calibrant.regret(CLASS, TABLE, 1 - np.eye(3), rng=0),
        "regret curve": calibrant.regret_curve(TRUE, SCORE, other=SCORE**2, rng=0),
        "net benefit": calibrant.net_benefit(TRUE, SCORE, [0.1, 0.4]),
        "best threshold": calibrant.best_threshold(TRUE, SCORE, (1, 9), rng=0),
        "never act": calibrant.best_threshold(0 * TRUE, SCORE, 0.5, rng=0),
        "risk and coverage": calibrant.risk_coverage(CLASS, TABLE, rng=0),
        "maps": calibrant.compare_calibrators(SCORE, TRUE, **FEW),
        "maps of infinite log loss": calibrant.compare_calibrators(ROUNDED, TRUE, **FEW),
        "cost": calibrant.Cost.of((1, 9), ("well", "sick")),
    }
    OTHERS["clinical"] = OTHERS["assessment with costs"].clinical
    OTHERS["decision"] = OTHERS["assessment with costs"].decision
    OTHERS["balance"] = OTHERS["assessment with costs"].balance
EVERY = RESULTS | OTHERS
# Where text, nothing or a number of any size may stand.
FREE = {"label"}


def leaves(value, path=()):
    """Yield the path and the value of everything that is neither a mapping nor a list; of a list the last."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*path, key))
    elif isinstance(value, list):
        if value:
            yield from leaves(value[-1], (*path, len(value) - 1))
    else:
        yield path, value


def changed(values, path, new):
    values = deepcopy(values)
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return values


def get_notion(path):
    """Return the last name of a path, which an error has to give."""
    return next(str(key) for key in reversed(path) if isinstance(key, str) and not key[0].isdigit())


def same(one, other):
    """Whether two results hold the same, field by field; a stored curve of an assessment is thinned."""
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
        )
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray | float):
        return np.array_equal(one, other, equal_nan=True)
    return one == other


@pytest.mark.parametrize("result", EVERY.values(), ids=EVERY)
def test_what_is_read_equals_what_was_written(result):
    again = type(result).from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    if not isinstance(result, Assessment):
        assert same(again, result)
        assert str(again) == str(result)
    assert same(type(result).from_dict(again.to_dict()), again)
    assert same(pickle.loads(pickle.dumps(result)), result)


@pytest.mark.parametrize("result", EVERY.values(), ids=EVERY)
def test_damage_is_refused_by_the_path_of_the_field(result):
    values, kind = json.loads(result.to_json()), type(result)
    for key in values:
        with pytest.raises(InputError, match=rf"^\w+\.{key} must be (given|\d)"):
            kind.from_dict({name: value for name, value in values.items() if name != key})
        # No field is an object of this kind, whatever else it may be.
        with pytest.raises(InputError, match=rf"^\w+\.{key}\b"):
            kind.from_dict(values | {key: {"more": {}}})
    with pytest.raises(InputError, match=r"^\w+\.more must be a known field, got 'more'"):
        kind.from_dict(values | {"more": 1})
    for text in ("[]", "3", "null", '"text"'):
        with pytest.raises(InputError, match=r"^\w+ must be a mapping of fields"):
            kind.from_json(text)
    with pytest.raises(InputError, match=r"^\w+ must be JSON"):
        kind.from_json("{")
    first = next(iter(values))
    with pytest.raises(InputError, match=f"must have each key once, got '{first}' twice"):
        kind.from_json(f'{{"{first}": 1, "{first}": 1}}')


def test_numbers_that_json_does_not_know_are_refused_by_field():
    text = RESULTS["estimate"].to_json()
    for constant, shown in (("NaN", "nan"), ("Infinity", "inf"), ('"inf"', "'inf'")):
        with pytest.raises(InputError, match=rf"^estimate\.n must be (finite|a number), got {shown}"):
            Estimate.from_json(text.replace(f'"n": {N}.0', f'"n": {constant}'))


# Fields that are text or missing.
TEXTS = ("name", "command", "apply_command", "pos_label", "band", "grouped_by")


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_no_number_may_be_text_or_beyond_all_bounds(result):
    values = json.loads(result.to_json())
    numbers = 0
    for path, value in list(leaves(values)):
        if path[-1] in FREE or path == ("schema",):
            continue
        if isinstance(value, str) or path[-1] in TEXTS:
            wrong = [5]
        elif value is None or isinstance(value, bool):
            wrong = ["text"]
        else:
            numbers += 1
            # A balance may be far off where there are few rows, and so may a gain, an intercept and a slope.
            far = path[0] in ("balance", "accuracy", "recalibration", "clinical")
            wrong = [True, math.inf] if far else ["0.1", -7, math.nan]
        inner = values
        for key in path[:-1]:
            inner = inner[key]
        for new in wrong:
            inner[path[-1]] = new
            with pytest.raises(InputError) as caught:
                type(result).from_dict(values)
            assert get_notion(path) in str(caught.value), (path, new)
        inner[path[-1]] = value
    assert numbers >= 10


def test_fields_of_inner_results_that_are_not_known_are_refused():
    values = json.loads(RESULTS["assessment"].to_json())
    for inner in ("estimates", "estimate", "log_odds", "balance"):
        path = next(path for path, _ in leaves(values) if inner in path[:-1] and isinstance(path[-1], str))
        with pytest.raises(InputError, match=r"more must be a known field|numbers as names"):
            Assessment.from_dict(changed(values, (*path[:-1], "more"), 1))


ESTIMATE = json.loads(RESULTS["estimate"].to_json())
CLASSWISE = json.loads(RESULTS["class-wise estimate"].to_json())
BINARY = json.loads(RESULTS["assessment"].to_json())
MANY = json.loads(RESULTS["class-wise assessment"].to_json())

WRONG = {
    "value 5": (Estimate, ESTIMATE, ("value",), 5, r"estimate.value must lie in \[0, 1\], got 5.0$"),
    "p 7": (Estimate, ESTIMATE, ("p_value",), 7, r"estimate.p_value must lie in \[0, 1\], got 7.0"),
    "low above high": (Estimate, ESTIMATE, ("low",), 0.99, "estimate.low must not be above value"),
    "high below": (Estimate, ESTIMATE, ("high",), 0.0, "estimate.value must not be above high"),
    "level of 95": (
        Estimate,
        ESTIMATE,
        ("level",),
        95,
        "estimate.level must lie strictly between 0 and 1, got 95.0",
    ),
    "no rows": (Estimate, ESTIMATE, ("n",), 0, "estimate.n must be above 0"),
    "parts": (Estimate, ESTIMATE, ("over",), 0.9, "estimate.over must add up to"),
    "norm": (Estimate, ESTIMATE, ("norm",), "max", "estimate.norm must be one of 'l1', 'l2', got 'max'"),
    "notion": (Estimate, ESTIMATE, ("notion",), "binry", "estimate.notion must be one of .* mean 'binary'"),
    "null": (Estimate, ESTIMATE, ("null", "mean"), 2, r"estimate.null.mean must lie in \[0, 1\]"),
    "digits": (Estimate, ESTIMATE, ("value",), 10**400, "estimate.value must be finite"),
    "half a seed": (Estimate, ESTIMATE, ("seed",), 0.5, "estimate.seed must be a whole number"),
    "a class": (Estimate, CLASSWISE, ("by_class", 1, "high"), 3, r"estimate.by_class\[1\].high must lie in"),
    "a class twice": (
        Estimate,
        CLASSWISE,
        ("by_class", 1, "label"),
        0,
        "by_class must hold different classes",
    ),
    "classes of none": (Estimate, CLASSWISE, ("notion",), "confidence", "by_class must be missing"),
    "no classes": (Estimate, CLASSWISE, ("by_class",), [], "by_class must hold different classes"),
    "rows": (Assessment, BINARY, ("rows",), 0, "assessment.rows must be at least 1"),
    "headline": (
        Assessment,
        BINARY,
        ("value",),
        0.5,
        "assessment.value must be .*, as other fields say",
    ),
    "a notion alone": (Assessment, BINARY, ("notion",), "top:2", "assessment.estimates must hold 'top:2'"),
    "another notion": (
        Assessment,
        BINARY,
        ("estimates", "binary", "notion"),
        "confidence",
        r"assessment.estimates\['binary'\].notion must be 'binary', got 'confidence'",
    ),
    "pos_label": (Assessment, BINARY, ("pos_label",), "7", "assessment.pos_label must be one of"),
    "a point": (
        Assessment,
        BINARY,
        ("curves", "binary", "value", 3),
        1.5,
        r"assessment.curves\['binary'\].value\[3\] must lie in \[0, 1\], got 1.5",
    ),
    "a band": (
        Assessment,
        BINARY,
        ("curves", "binary", "low"),
        None,
        "low must come with high",
    ),
    "a short band": (
        Assessment,
        BINARY,
        ("curves", "binary", "low"),
        [0.1],
        r"curves\['binary'\].low must have .* entries",
    ),
    "scores fall": (
        Assessment,
        BINARY,
        ("curves", "binary", "score", 5),
        0.0,
        r"score\[5\] must not be below",
    ),
    "bins": (
        Assessment,
        BINARY,
        ("diagrams", "binary", "edges", 4),
        1.0,
        r"edges\[5\] must not be below",
    ),
    "counts": (
        Assessment,
        BINARY,
        ("log_odds", "counts", 4),
        -1,
        r"odds.counts\[4\] must be at least 0",
    ),
    "support": (
        Assessment,
        BINARY,
        ("curves", "binary", "support"),
        [1, 0],
        r"curves\['binary'\].support must ascend",
    ),
    "a group": (
        Assessment,
        BINARY,
        ("by_group", 0, "estimate", "value"),
        "0.1",
        r"assessment.by_group\[0\].estimate.value must be a number, got '0.1'",
    ),
    "a score": (
        Assessment,
        BINARY,
        ("scores", 0, "value"),
        -1,
        r"scores\[0\].value must be at least 0",
    ),
    "balance": (Assessment, BINARY, ("balance", "low"), 3, "balance.low must not be above difference"),
    "a list of estimates": (Assessment, BINARY, ("estimates", "binary"), [], "must be a mapping of fields"),
    "a curve of a class": (
        Assessment,
        MANY,
        ("curves", "classwise", 2, "n"),
        -1,
        r"assessment.curves\['classwise'\]\[2\].n must be above 0",
    ),
    "a name in the ranking": (
        Recommendation,
        json.loads(RESULTS["recommendation"].to_json()),
        ("best",),
        "none",
        "recommendation.best must be .*, as other fields say, got 'none'",
    ),
    "a model too few": (
        Comparison,
        json.loads(RESULTS["comparison"].to_json()),
        ("differences",),
        {},
        "comparison.differences must hold a difference from 'a' for every other model",
    ),
}


@pytest.mark.parametrize(("kind", "values", "path", "new", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_with_its_name(kind, values, path, new, words):
    with pytest.raises(InputError, match=words):
        kind.from_json(json.dumps(changed(values, path, new)))


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_another_schema_is_refused(result):
    values = result.to_dict()
    assert values["schema"] == 1
    for wrong in (0, 2, "1", True, None):
        with pytest.raises(InputError, match=r"\.schema must be 1, got .* another version of calibrant"):
            type(result).from_dict(values | {"schema": wrong})
    del values["schema"]
    with pytest.raises(InputError, match=r"\.schema must be 1, got None"):
        type(result).from_dict(values)
