"""Results that were stored are checked as they are read back: every number, and what belongs together."""

import json
import math
from copy import deepcopy

import numpy as np
import pytest

import calibrant
from calibrant import Assessment, Comparison, Estimate, InputError, Recommendation

rng = np.random.default_rng(0)
N = 300
SCORE = rng.random(N)
TRUE = (rng.random(N) < SCORE**2).astype(int)
TABLE = rng.dirichlet([1, 1, 1], N)
CLASS = np.array([rng.choice(3, p=row) for row in TABLE])
GROUP = np.where(SCORE > 0.5, "high", "low")

with pytest.MonkeyPatch.context() as patch:
    patch.setattr("calibrant.assessment.assess.RULERS", ("uniform", "density"))  # the others are stored alike
    RESULTS = {
        "estimate": calibrant.estimate(TRUE, SCORE, rng=0),
        "class-wise estimate": calibrant.estimate(CLASS, TABLE, notion="classwise", norm="l2", rng=0),
        "comparison": calibrant.compare(TRUE, {"a": SCORE, "b": SCORE**2}, rng=0),
        "recommendation": calibrant.recommend(SCORE, estimators=["l:15", "a:10"], repetitions=30, rng=0),
        "assessment": calibrant.assess(TRUE, SCORE, groups=GROUP, rng=0),
        "class-wise assessment": calibrant.assess(CLASS, TABLE, notion="classwise", pos_label=2, rng=0),
    }
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


def named(path):
    """Return the last name of a path, which an error has to give."""
    return next(str(key) for key in reversed(path) if isinstance(key, str) and not key[0].isdigit())


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_survives_and_no_number_may_be_text_or_beyond_all_bounds(result):
    values = json.loads(result.to_json())
    assert type(result).from_json(result.to_json()).to_json() == result.to_json()
    numbers = 0
    for path, value in list(leaves(values)):
        if path[-1] in FREE or path == ("format",):
            continue
        if isinstance(value, str) or path[-1] in ("name", "command", "apply_command", "asked", "band"):
            wrong = [5]
        elif value is None or isinstance(value, bool):
            wrong = ["text"]
        else:
            numbers += 1
            # A balance may be far off where there are few rows, and so may a gain, an intercept and a slope.
            far = path[0] in ("balance", "accuracy", "cure", "clinical")
            wrong = [True, math.inf] if far else ["0.1", -7, math.nan]
        inner = values
        for key in path[:-1]:
            inner = inner[key]
        for new in wrong:
            inner[path[-1]] = new
            with pytest.raises(InputError) as caught:
                type(result).from_dict(values)
            assert named(path) in str(caught.value), (path, new)
        inner[path[-1]] = value
    assert numbers >= 10


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_fields_that_are_missing_and_fields_that_are_not_known_are_refused(result):
    values = json.loads(result.to_json())
    optional = {"label", "clusters", "by_class", "at_least", "lower_bound", "where", "clinical", "decision"}
    optional |= {"remarks"}
    kind = type(result)
    if kind is calibrant.Estimate:
        optional |= {"cautions", "n_resamples", "p_floor"}
    for key in values:
        if key in optional or key == "format":
            continue
        with pytest.raises(InputError, match=f"must have the field '{key}', got none"):
            kind.from_dict({name: value for name, value in values.items() if name != key})
    with pytest.raises(InputError, match="must have no fields that are not known, got 'more'"):
        kind.from_dict(values | {"more": 1})
    for inner in ("estimates", "estimate", "null", "odds", "balance"):
        for path, _ in leaves(values):
            if inner in path[:-1] and isinstance(path[-1], str):
                with pytest.raises(InputError, match=r"not known, got 'more'|levels strictly"):
                    kind.from_dict(changed(values, (*path[:-1], "more"), 1))
                break
    for text in ("[]", "3", "null", '"text"'):
        with pytest.raises((InputError, AttributeError), match="must be a mapping of fields"):
            kind.from_json(text)
    with pytest.raises(InputError, match="must be JSON"):
        kind.from_json("{")
    first = next(iter(values))
    with pytest.raises(InputError, match=f"must have each key once, got '{first}' twice"):
        kind.from_json(f'{{"{first}": 1, "{first}": 1}}')
    with pytest.raises(InputError, match="must hold finite numbers, got NaN"):
        kind.from_json(result.to_json().replace(": ", ": [NaN], ", 1).replace("[NaN], ", "NaN, ", 1))


ESTIMATE = json.loads(RESULTS["estimate"].to_json())
CLASSWISE = json.loads(RESULTS["class-wise estimate"].to_json())
BINARY = json.loads(RESULTS["assessment"].to_json())
MANY = json.loads(RESULTS["class-wise assessment"].to_json())

WRONG = {
    "value 5": (Estimate, ESTIMATE, ("value",), 5, r"estimate.value must lie in \[0, 1\], got 5$"),
    "p 7": (Estimate, ESTIMATE, ("p_value",), 7, r"estimate.p_value must lie in \[0, 1\], got 7"),
    "low above high": (Estimate, ESTIMATE, ("low",), 0.99, "estimate.low must not be above value"),
    "high below": (Estimate, ESTIMATE, ("high",), 0.0, "estimate.value must not be above high"),
    "level of 95": (
        Estimate,
        ESTIMATE,
        ("level",),
        95,
        "estimate.level must lie strictly between 0 and 1, got 95",
    ),
    "no rows": (Estimate, ESTIMATE, ("n",), 0, "estimate.n must be above 0"),
    "parts": (Estimate, ESTIMATE, ("over",), 0.9, "estimate.over must add up to"),
    "norm": (Estimate, ESTIMATE, ("norm",), "max", "estimate.norm must be one of 'l1', 'l2', got 'max'"),
    "notion": (Estimate, ESTIMATE, ("notion",), "classs", "estimate.notion must be one of .* mean 'class'"),
    "null": (Estimate, ESTIMATE, ("null", "mean"), 2, r"estimate.null.mean must lie in \[0, 1\]"),
    "digits": (Estimate, ESTIMATE, ("value",), 10**400, r"estimate.value must lie in \[0, 1\]"),
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
    "headline": (Assessment, BINARY, ("value",), 0.5, "assessment.value must be that of the estimate"),
    "a notion alone": (Assessment, BINARY, ("notion",), "top:2", "assessment.estimates must hold 'top:2'"),
    "another notion": (
        Assessment,
        BINARY,
        ("estimates", "class", "notion"),
        "confidence",
        "assessment.estimates.class.notion must be 'class', got 'confidence'",
    ),
    "asked": (Assessment, BINARY, ("asked",), "7", "assessment.asked must be one of"),
    "a point": (
        Assessment,
        BINARY,
        ("curves", "class", "probability", 3),
        1.5,
        r"assessment.curves.class.probability\[3\] must lie in \[0, 1\], got 1.5",
    ),
    "a band": (Assessment, BINARY, ("curves", "class", "low"), None, "curves.class.low must come with high"),
    "a short band": (
        Assessment,
        BINARY,
        ("curves", "class", "low"),
        [0.1],
        "curves.class.low must have .* entries",
    ),
    "scores fall": (Assessment, BINARY, ("curves", "class", "score", 5), 0.0, "class.score must ascend"),
    "bins": (Assessment, BINARY, ("diagrams", "class", "edges", 4), 1.0, "diagrams.class.edges must ascend"),
    "counts": (
        Assessment,
        BINARY,
        ("odds", "counts", 4),
        -1,
        r"odds.counts\[4\] must be finite and at least 0",
    ),
    "support": (
        Assessment,
        BINARY,
        ("curves", "class", "support"),
        [1, 0],
        "curves.class.support must ascend",
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
        r"scores\[0\].value must be finite and at least 0",
    ),
    "balance": (Assessment, BINARY, ("balance", "low"), 3, "balance.low must not be above difference"),
    "a list of estimates": (Assessment, BINARY, ("estimates", "class"), [], "must be a mapping of fields"),
    "a curve of a class": (
        Assessment,
        MANY,
        ("curves", "classwise", 2, "n"),
        -1,
        r"assessment.curves.classwise\[2\].n must be above 0",
    ),
    "a name in the ranking": (
        Recommendation,
        json.loads(RESULTS["recommendation"].to_json()),
        ("best",),
        "none",
        "recommendation.best must come first in the ranking",
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
