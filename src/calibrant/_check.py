"""Every check of what a caller passes in, and every message; the culprit is sought only after a failure."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Hashable, Iterable, Set
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._names import column_names, in_order, numbered, without_prefix

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Array: TypeAlias = NDArray[Any]
# How far a row may sum from 1, by bytes per score: what rounding costs a softmax, with room to spare.
_TOLERANCE, _TOLERANCE_BFLOAT16 = {8: 1e-6, 4: 1e-4, 2: 2e-3}, 2e-2
_BLOCK = 1 << 20  # bytes of a matrix looked at together: they stay in cache from one test to the next
_BITS_OF_ONE = {2: 0x3C00, 4: 0x3F800000, 8: 0x3FF0000000000000}
_NUMBER, _DATA = (Real, np.bool_, Decimal), ("y_true", "y_prob", "sample_weight")
_ASK = "; pass labels= with the class of each column"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and scores that have passed every check."""

    score: FloatArray  # (n,), of the positive class, or (n, C); float64, float32 or float16, any strides
    code: Array  # (n,): whether the row is of the positive class (bool), or the column of its class (intp)
    weight: Array | None  # (n,): counts (int64) or importance weights (float64), none of them zero
    labels: tuple[Any, ...]  # of the columns; 1-D: (negative, positive), a tuple if many, None if unknown
    positive: int | None  # column of the positive class; None for other than two columns without pos_label


def predictions(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None, pos_label: Any = None
) -> Predictions:
    """Check labels, scores and weights, and find the column each label means."""
    (truth, _), (score, tolerance) = read("y_true", y_true), read("y_prob", y_prob)
    n, rows = len(truth), len(score)
    if n != rows:
        raise ValueError(f"y_true and y_prob must be equally long, got {n} labels and {rows} rows of scores")
    if n == 0:
        raise ValueError("y_true and y_prob must not be empty, got 0 rows")
    score = _numbers("y_prob", score)
    score = score if score.dtype.kind == "f" else score.astype(np.float64)
    _check_scores(score, tolerance or _TOLERANCE[score.itemsize])
    truth, given = _truth(truth), None if labels is None else class_labels(labels)
    if pos_label is not None and (_is_missing(pos_label) or not isinstance(pos_label, Hashable)):
        raise TypeError(f"pos_label must be a label, got {_show(pos_label)}")
    if score.ndim == 1:
        code, classes = _binary(truth, given, pos_label)
    else:
        classes = _columns(truth, score.shape[1], given, y_prob)
        code = _codes(truth, classes, _ASK if given is None else "")
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label must be one of {_show(*classes)}, got {_show(pos_label)}")
    positive = classes.index(pos_label) if pos_label is not None else 1 if len(classes) == 2 else None
    weight = None if sample_weight is None else _weights("sample_weight", sample_weight, n)
    if weight is not None and not weight.all():
        keep = weight != 0
        score, code, weight = score[keep], code[keep], weight[keep]
    return Predictions(score, code, weight, classes, positive)


def check_choice(name: str, value: Any, options: Iterable[Any]) -> None:
    """Raise unless `value` is one of the options."""
    options = list(options)
    if not any(value is option or (isinstance(value, str) and value == option) for option in options):
        raise ValueError(f"{name} must be one of {_show(*options)}, got {_show_near(value, options)}")


def reject_unexpected(function: Callable[..., Any], unexpected: dict[str, Any]) -> None:
    """Raise for keywords a function does not have, with a hint at those it has."""
    known, called = list(inspect.signature(function).parameters), f"{function.__name__}()"
    option = "binning" if "binning" in known else "estimator"
    family = "adaptive" if unexpected.get("strategy") == "quantile" else "uniform"
    for name, value in unexpected.items():
        if name in ("n_bins", "num_bins", "bins") and option in known:
            raise TypeError(f'{called} has no argument {name}; write {option}="{family}:{value}"')
    for name in unexpected:
        raise TypeError(f"{called} got an unexpected keyword argument {_show_near(name, known)}")


def scores(name: str, values: Any) -> NDArray[np.float64]:
    """Return scores of any shape as float64, each in [0, 1]."""
    array = _numbers(name, read(name, values)[0]).astype(np.float64, copy=False)
    _check_unit(name, array)
    return array


def level(value: Any) -> float:
    """Return a confidence level as a float strictly between 0 and 1."""
    if not (number := is_number(value)) or not 0 < value < 1:
        hint = f"; write {float(value) / 100:g}" if number and 1 < value < 100 else ""
        error = ValueError if number else TypeError
        raise error(f"level must be a number strictly between 0 and 1, got {_show(value)}{hint}")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def positive_int(name: str, value: Any, minimum: int = 1) -> int:
    """Return an integer of at least `minimum`; floats and booleans are refused."""
    integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not integer or value < minimum:
        error = ValueError if integer else TypeError
        raise error(f"{name} must be an integer of at least {minimum}, got {_show(value)}")
    return int(value)


def generator(rng: Any) -> np.random.Generator:
    """Return a random generator from None, a seed or a SeedSequence; a Generator is passed through."""
    if isinstance(rng, Integral) and not isinstance(rng, bool):
        rng = positive_int("rng", rng, 0)
    elif not (rng is None or isinstance(rng, np.random.Generator | np.random.SeedSequence)):
        raise TypeError(f"rng must be None, an integer seed, a SeedSequence or a Generator, got {_show(rng)}")
    return np.random.default_rng(rng)


def read(name: str, values: Any) -> tuple[Array, float | None]:
    """Return a plain array, copied only if need be, and the tolerance of bfloat16 if it was that."""
    array, tolerance = values, None
    if type(values) is not np.ndarray or values.dtype.kind == "V":
        if isinstance(values, np.ndarray) and np.any(mask := getattr(values, "mask", False)):
            _refuse(name, "have no missing values", values, mask)
        if str(getattr(values, "dtype", "")).endswith("bfloat16"):  # float32 holds it exactly
            array = values.float() if hasattr(values, "float") else values.astype(np.float32)
            tolerance = _TOLERANCE_BFLOAT16
        if hasattr(values, "detach") and hasattr(values, "cpu"):
            array = array.detach().cpu().numpy()
        elif not hasattr(values, "__array__"):
            convert = getattr(array, "to_numpy", None) or getattr(array, "__arrow_array__", None)
            array = convert() if convert else array
        try:
            array = np.asarray(array)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} could not be read as an array: {error}") from error
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)  # numbers and None beside text had become text
    if array.ndim != 1 and name in _DATA and (name != "y_prob" or array.ndim != 2 or array.shape[1] < 2):
        rule = "be one-dimensional" + " or have a column per class" * (name == "y_prob")
        got, hint = f"shape {array.shape}" if array.ndim else _show(values), ""
        if array.ndim and array.size == max(array.shape):
            hint = f"; pass {name}.ravel()" if hasattr(values, "ravel") else f"; pass np.ravel({name})"
        elif array.ndim == 2 and name == "y_true":
            one_hot = array.dtype.kind in "biuf" and np.isin(array[:100], (0, 1)).all()
            hint = "; one-hot labels? pass np.argmax(y_true, axis=1)" if one_hot else "; swapped with y_prob?"
        raise ValueError(f"{name} must {rule}, got {got}{hint}")
    return (array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))), tolerance


def _numbers(name: str, array: Array) -> Array:
    if array.dtype.kind in "biuf":
        return array if array.itemsize <= 8 else array.astype(np.float64)
    array = objects(name, array, _NUMBER, "hold real numbers")
    if any(large := [abs(v) >= 2**63 for v in array.flat]):
        _refuse(name, "hold numbers below 2^63", array, large)
    return array.astype(np.int64 if all(isinstance(v, Integral) for v in array.flat) else np.float64)


def _truth(array: Array) -> Array:
    """Return labels as booleans, integers (whole floats too), other floats or objects, none missing."""
    if array.dtype.kind not in "biuf":
        array = objects("y_true", array, Hashable, "hold one label per row")
        if not all(isinstance(v, _NUMBER) for v in array):
            return array
        array = np.array(array.tolist())
    if array.dtype.kind != "f":
        return array
    if not (finite := np.isfinite(array)).all():
        _refuse("y_true", "be finite and have no missing values", array, ~finite)
    whole = np.array_equal(array, np.rint(array)) and float(abs(array).max()) < 2**53
    return array.astype(np.int64) if whole else array


def objects(name: str, array: Array, accepted: Any, rule: str) -> Array:
    """Return the array as objects, none of them missing and all of an accepted type."""
    if array.dtype.kind in "cmMV":
        raise TypeError(f"{name} must {rule}, got dtype {array.dtype}")
    array = array.astype(object, copy=False)
    kinds = set(map(type, array.flat))  # looking at each object is slow, and text has nothing missing
    if kinds != {str} and any(missing := [_is_missing(v) for v in array.flat]):
        _refuse(name, "have no missing values", array, missing)
    if not all(issubclass(kind, accepted) for kind in kinds):
        _refuse(name, rule, array, [not isinstance(v, accepted) for v in array.flat], error=TypeError)
    return array


def _check_unit(name: str, score: Array, whole: Array | None = None) -> None:
    """Raise unless every score is in [0, 1]; positions refer to the whole if this is a block of it."""
    # As unsigned integers, the floats from 0 to 1 come before all others: one pass finds NaN, infinities and
    # scores below 0 or above 1. Only -0.0 is out of order, and needs the second look.
    bits = np.maximum.reduce(score.view(f"u{score.itemsize}"), axis=None, initial=0)
    if bits <= _BITS_OF_ONE[score.itemsize] or (score.min() >= 0 and score.max() <= 1):
        return
    score, hint = score if whole is None else whole, ""
    if not (finite := np.isfinite(score)).all():
        _refuse(name, "be finite and have no missing values", score, ~finite)
    if score.min() >= 0 and 2 < score.max() <= 100:
        hint = "; these look like percentages: divide by 100 first"
    elif score.min() < -1e-3 or score.max() > 100:
        hint = f"; these look like logits: apply {'softmax' if score.ndim == 2 else 'sigmoid'} first"
    _refuse(name, "lie in [0, 1]", score, (score < 0) | (score > 1), hint)


def _check_scores(score: Array, tolerance: float) -> None:
    if score.ndim == 1:
        return _check_unit("y_prob", score)
    total, step = np.empty(len(score)), max(1, _BLOCK // (score.shape[1] * score.itemsize))
    for start in range(0, len(score), step):
        block = score[start : start + step]
        _check_unit("y_prob", block, score)
        np.einsum("ij->i", block, out=total[start : start + step], dtype=np.float64)
    row = int(np.argmax(np.abs(total - 1)))
    worst, hint = float(total[row]), "; if these are logits or one sigmoid per class, apply softmax first"
    if abs(worst - 1) <= tolerance + 1e-12:
        return None
    if abs(worst - 1) <= 0.05:
        hint = "; if these are rounded, divide each row by its sum"
    raise ValueError(f"y_prob rows must sum to 1 within {tolerance:g}, got {worst:.9g} at row {row}{hint}")


def _weights(name: str, values: Any, n: int) -> Array:
    array = _numbers(name, read(name, values)[0])
    if len(array) != n:
        raise ValueError(f"{name} must be as long as y_true, got {len(array)} weights for {n} labels")
    whole = array.dtype.kind != "f"
    most = np.float64(2.0**63 if whole else 1e308) / n  # so that no sum of them overflows
    if not (array.min() >= 0 and array.max() < most):
        _refuse(name, f"be finite, at least 0 and below {most:.3g}", array, ~((array >= 0) & (array < most)))
    if not array.any():
        raise ValueError(f"{name} must have a positive sum, got {n} weights of 0")
    return array.astype(np.int64 if whole else np.float64, copy=False)


def _distinct(truth: Array) -> tuple[Any, ...]:
    if truth.dtype.kind == "O":
        try:
            return tuple(sorted(set(truth.tolist())))
        except TypeError as error:
            raise TypeError(f"y_true must be sortable, got {_show(*dict.fromkeys(truth))}") from error
    low, high = np.minimum.reduce(truth).item(), np.maximum.reduce(truth).item()
    if truth.dtype.kind != "f" and high - low <= 1:  # the common case, without a sort
        return (low, high)[: 1 + high - low]
    return tuple(np.unique(truth).tolist())


def class_labels(labels: Any) -> tuple[Any, ...]:
    """Return labels that a caller names as a tuple of distinct classes."""
    if isinstance(labels, str | bytes | Set) or not isinstance(labels, Iterable):
        raise TypeError(f"labels must be a sequence of classes, got {_show(labels)}")
    array = np.fromiter(labels.tolist() if hasattr(labels, "tolist") else labels, object)
    classes = tuple(objects("labels", array, Hashable, "be classes").tolist())
    if len(set(classes)) < len(classes):
        _refuse("labels", "be distinct", array, [v in classes[:i] for i, v in enumerate(classes)])
    return classes


def _columns(truth: Array, columns: int, given: tuple[Any, ...] | None, y_prob: Any) -> tuple[Any, ...]:
    """Return the class of each column."""
    if given is not None and len(given) != columns:
        raise ValueError(f"labels must name {columns} columns of y_prob, got {len(given)}: {_show(*given)}")
    indices, whole = tuple(range(columns)), truth.dtype.kind in ("biu" if columns == 2 else "iu")
    if given is not None:
        return in_order(column_names(y_prob, indices), given)
    names = numbered(column_names(y_prob, indices)) if whole else tuple(column_names(y_prob, indices))
    if whole and (names == indices or not any(isinstance(v, Real) for v in names)):
        return indices
    present = _distinct(truth)
    names = without_prefix(names, present)
    # Names of which only some occur are not taken for indices: that would depend on what happens to occur.
    named = names != indices and set(present) <= set(names)
    if len(present) == columns or (whole and not named):
        return names if named else indices if whole else present
    raise ValueError(f"y_true must hold {columns} labels, one per column, got {_show(*present)}{_ASK}")


def _codes(truth: Array, classes: tuple[Any, ...], hint: str) -> Array:
    indices = truth.dtype.kind in "biu" and classes == tuple(range(len(classes)))
    if indices and np.maximum.reduce(truth.view(f"u{truth.itemsize}")) < len(classes):
        return truth.astype(np.intp, copy=False)
    table = {label: column for column, label in enumerate(classes)}
    codes = np.fromiter((table.get(v, -1) for v in truth.tolist()), np.intp, len(truth))
    if codes.min() < 0:
        _refuse("y_true", f"hold only the labels {_show(*classes)}", truth, codes < 0, hint)
    return codes


def _binary(truth: Array, given: tuple[Any, ...] | None, pos_label: Any) -> tuple[Array, tuple[Any, Any]]:
    """Return whether each label is the positive class, and the classes (negative, positive)."""
    if given is pos_label is None and truth.dtype.kind in "biu" and (plain := _zero_one(truth)) is not None:
        return plain, (0, 1)
    classes = _distinct(truth) if given is None else given
    if given is not None:
        _codes(truth, given, "")
    usual: tuple[Any, ...] = next((pair for pair in ((0, 1), (-1, 1)) if set(classes) <= set(pair)), ())
    if pos_label is None and not usual:
        swapped = truth.dtype.kind == "f"
        hint = "swapped with y_prob? otherwise pass pos_label=" if swapped else "pass pos_label="
        seen = _show(*classes[:3]) + ", ..." * (len(classes) > 3) if swapped else _show(*classes)
        raise ValueError(f"y_true must hold 0 and 1, -1 and 1 or booleans, got {seen}; {hint}")
    positive = usual[1] if pos_label is None else pos_label
    if positive not in usual and positive not in classes:
        alike = isinstance(positive, _NUMBER if isinstance(classes[0], _NUMBER) else type(classes[0]))
        if given is not None or len(classes) > 1 or not alike:
            raise ValueError(f"pos_label must be one of {_show(*classes)}, got {_show(positive)}")
    others = tuple(v for v in (usual if positive in usual else classes) if v != positive)
    negative = others[0] if len(others) == 1 else others or None
    code = np.array([v == positive for v in truth.tolist()]) if truth.dtype.kind == "O" else truth == positive
    return code, (negative, positive)


def _zero_one(truth: Array) -> Array | None:
    """Return whether each integer label is 1 if all are 0 or 1: the common case, told while in the cache."""
    code, step = np.empty(len(truth), dtype=bool), 1 << 16
    for a in range(0, len(truth), step):
        if np.maximum.reduce(truth[a : a + step].view(f"u{truth.itemsize}")) > 1:  # unsigned, -1 is large
            return None
        np.not_equal(truth[a : a + step], 0, out=code[a : a + step])
    return code


def _is_missing(value: Any) -> bool:
    number = isinstance(value, float | np.floating | Decimal)
    return bool(value != value) if number else value is None or type(value).__name__ in ("NAType", "NaTType")


def _refuse(name: str, rule: str, array: Any, bad: Any, hint: str = "", error: Any = ValueError) -> NoReturn:
    where = [int(i) for i in np.unravel_index(int(np.argmax(bad)), array.shape)]
    axes = (" at row " if name in _DATA else " at position ", ", column ", ", ", ", ")
    at = "".join(f"{axis}{i}" for axis, i in zip(axes, where, strict=False))
    raise error(f"{name} must {rule}, got {_show(array[tuple(where)])}{at}{hint}")


def _show(*values: Any) -> str:
    texts = [str(v) if isinstance(v, np.generic) else repr(v)[:80] for v in values[:20]]
    return ", ".join(texts) + (f", ... ({len(values)} in all)" if len(values) > 20 else "")


def _show_near(value: Any, options: Iterable[Any]) -> str:
    near = difflib.get_close_matches(value, map(str, options), n=1) if isinstance(value, str) else []
    return _show(value) + (f"; did you mean {near[0]!r}?" if near else "")
