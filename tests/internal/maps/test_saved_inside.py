"""Saved calibrators: what was fitted comes back to the last bit, and damage is refused by field."""

import json
import math

import numpy as np
import pytest

from calibrant import Calibrator, InputError, Sketch
from exported import OF_ALL_SCORES, OF_ONE_SCORE

pytestmark = pytest.mark.no_cover

VECTOR = np.concatenate([[0.0, 5e-324, 1e-310, 1e-9], np.linspace(0.01, 0.99, 25), [1 - 1e-16, 1.0]])


def binary(n=60, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 2)
    return score, (rng.random(n) < score**2).astype(int)


def matrix(n=60, c=3, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(c), n)
    return score, (rng.random((n, 1)) > score.cumsum(axis=1)[:, :-1]).sum(axis=1)


def two_columns(method):
    score, outcome = binary()
    return Calibrator(method).fit(np.stack([1 - score, score], axis=1), outcome)


def of_notion(notion, method="isotonic", **options):
    score, label = matrix()
    return Sketch(notion, **options).update(label, score).calibrator(method)


KINDS = {
    **{f"one {name}": lambda name=name: Calibrator(name).fit(*binary()) for name in OF_ONE_SCORE},
    "two columns": lambda: two_columns("venn-abers"),
    **{
        f"many {name}": lambda name=name: Calibrator(name, labels=[0, 1, 2]).fit(*matrix())
        for name in (*OF_ALL_SCORES, "isotonic")
    },
    "many axes": lambda: Calibrator("vector", labels=range(14)).fit(*matrix(80, 14)),
    "logits": lambda: Calibrator(from_logits=True).fit(binary()[0] * 8 - 4, binary()[1]),
    "binary": lambda: of_notion("binary", pos_label=2),
    "confidence": lambda: of_notion("confidence"),
    "texts": lambda: Calibrator("vector", labels=["a", "b", "c"]).fit(
        matrix()[0], np.array(["a", "b", "c"])[matrix()[1]]
    ),
}


def scores_for(calibrator):
    if calibrator.is_vector:
        return VECTOR
    corners = np.eye(size := len(calibrator.classes_))
    return np.concatenate([corners, np.full((1, size), 1 / size), matrix(5, size, 1)[0]])


def is_distribution(found, score):
    inside = np.isfinite(found).all() and ((found >= 0) & (found <= 1)).all() and found.shape == score.shape
    return bool(inside and (score.ndim == 1 or np.abs(found.sum(axis=1) - 1).max() < 1e-9))


def places(content, path=()):
    """Yield the path of every field, of the last entry of every list, and of the first number of lists."""
    if path:
        yield path
    if isinstance(content, dict):
        for key in content:
            yield from places(content[key], (*path, key))
    elif isinstance(content, list):
        numbers = bool(content) and isinstance(content[0], int | float)
        for k in sorted({0 if numbers else len(content) - 1, len(content) - 1} if content else ()):
            yield from places(content[k], (*path, k))


def thinned(content):
    """Return the content with two or three entries of each long list: fewer to damage, and valid as well."""
    if isinstance(content, dict):
        return {
            key: value[:2] if key == "draws" else [thinned(row) for row in value] if key.endswith("clock")
            else thinned(value) for key, value in content.items()
        }  # fmt: skip
    if isinstance(content, list) and len(content) > 20 and isinstance(content[0], float):
        return [content[0], content[len(content) // 2], content[-1]]
    return [thinned(each) for each in content] if isinstance(content, list) else content


def damages(value):
    """Yield what a field may hold after damage."""
    yield from (None, "x", True, [], {}, [[]], {"kind": "table"}, "", [None], -1, 0, 1, 99, 0.5)
    yield from (math.nan, math.inf, 1e308, -1e308, 5e-324, 10**400, [1e308], [math.nan, 0.0])
    if isinstance(value, list) and value:
        yield from (value[:-1], value[1:], [*value, value[-1]], value[::-1], [value], [*value, None])
    if isinstance(value, dict):
        yield value | {"more": 1}
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from (-value, value + 1, str(value))


def replaced(content, path, value):
    """Return the content with one place changed; `KeyError` takes it away."""
    if not path:
        return value
    first, *rest = path
    copy = list(content) if isinstance(content, list) else dict(content)
    if not rest and value is KeyError:
        del copy[first]
    else:
        copy[first] = replaced(copy[first], rest, value)
    return copy


def written(path):
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def loaded(content):
    """Return the calibrator, or the argument that an error is about."""
    try:
        return Calibrator.from_json(json.dumps(content)), None
    except InputError as error:
        return None, error.argument.removeprefix("saved_calibrator.")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_calibrator_is_refused_or_predicts_probabilities(kind):
    made = KINDS[kind]()
    content = thinned(json.loads(made.to_json()))
    Calibrator.from_json(json.dumps(content))
    tops = {*content, "saved_calibrator", "more"}
    for path in places(content):
        value = content
        for step in path:
            value = value[step]
        for damage in [KeyError, *damages(value)]:
            where = f"{written(path)} = {str(damage)[:60]}"
            again, argument = loaded(replaced(content, path, damage))
            if again is None:
                # The error is about the field itself, its parts, or another that it contradicts.
                assert argument.split(".")[0].split("[")[0] in tops, where
                if type(value) is float and damage in ("x", "", math.inf, 10**400, 1e308, -1e308):
                    assert argument == written(path), where
                continue
            assert damage is not KeyError or not isinstance(path[-1], str), where
            score = scores_for(again)
            score = np.log(score + 1e-9) if again.from_logits else score
            assert len(again.classes_) == len(made.classes_) or again.is_vector, where
            found = again.predict_proba(score)
            assert is_distribution(found, score), where
            for level in again._bands[0] if again._bands else (0.95,):
                low, high = again.predict_interval(score, level)
                assert ((low >= 0) & (low <= found) & (found <= high) & (high <= 1)).all(), where
