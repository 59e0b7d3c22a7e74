"""Checks of labels, scores and weights; the culprit is sought only after a failure."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Iterable, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs.arguments import check_choice, same_rows
from calibrant.inputs.columns import (
    SOFT,
    SWAPPED,
    advice_on_labels,
    class_of_name,
    classes_of_columns,
    column_names,
    column_order,
)
from calibrant.inputs.errors import InputError, InputTypeError, InputWarning, show
from calibrant.inputs.missing import (
    MISSING,
    dropped_caution,
    is_missing,
    refuse_unlabelled,
    rows_of,
    rows_with_label,
)
from calibrant.inputs.rounding import (
    SLACK,
    TOLERANCE,
    TOLERANCE_BFLOAT16,
    caution,
    explained,
    row_sums,
    slack,
)
from calibrant.parallel import cached_property

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Array: TypeAlias = NDArray[Any]
_BLOCK = 1 << 20  # bytes of a matrix looked at together: they stay in cache from one test to the next
# How far the sum of a row may be from 1 for its logarithms to look like those of probabilities.
NEAR_ONE = 0.01
_FEW_COLUMNS = 12  # of a matrix whose largest scores are found column by column
_BITS_OF_ONE = {2: 0x3C00, 4: 0x3F800000, 8: 0x3FF0000000000000}
#: Labels of a vector of scores that need no word: the second is the positive class.
USUAL: tuple[tuple[Any, ...], ...] = ((0, 1), (-1, 1))
#: What to do about classes that do not exclude each other.
MULTI_LABEL = (
    "if a row can be of several classes at once (multi-label), measure each column separately, "
    'or pass a matrix of labels and notion="multilabel" to ece or estimate'
)
#: What to do about labels in place of scores.
PREDICTED = "did you pass predict()? pass predict_proba(), the scores of the classes"
_NUMBER, _DATA = (Real, np.bool_, Decimal), ("y_true", "y_prob", "sample_weight", "counts", "cluster")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and scores that have passed every check."""

    score: FloatArray  # (n,), of the positive class, or (n, C); float64, float32 or float16, any strides
    code: Array  # (n,): whether the row is of the positive class (bool), or the column of its class (intp)
    weight: Array | None  # (n,): counts (int64) or importance weights (float64), none of them zero
    labels: tuple[Any, ...]  # of the columns; 1-D: (negative, positive), a tuple if many, None if unknown
    positive: int | None  # column of the positive class; None for other than two columns without pos_label
    cluster: Array | None = None  # (n,): the number of each row's cluster (intp), from 0 on
    counts: bool = True  # whether each weight is a number of equal rows; True without weights
    deviation: Array | None = None  # (n,): how far the sum of a renormalised row was from 1, 0 of the others
    kept: Array | None = None  # of all rows that were passed, whether each is among these; None if all are
    dropped: int = 0  # number of rows that had no label, counted ones as often as they count

    @property
    def n_passed(self) -> int:
        """Number of rows that were passed, with those that were left out."""
        return len(self.code if self.kept is None else self.kept)

    @property
    def n_rows(self) -> int:
        """Number of rows, counted ones as often as they count."""
        return int(self.weight.sum()) if self.weight is not None and self.counts else len(self.code)

    @property
    def renormalised(self) -> int:
        """Number of rows that were divided by their sums, counted ones as often as they count."""
        if self.deviation is None:
            return 0
        off = self.deviation != 0
        return int(self.weight[off].sum() if self.weight is not None and self.counts else off.sum())

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of a result should know about how the scores were read."""
        cautions: tuple[str, ...] = ()
        if self.dropped:
            cautions += (dropped_caution(self.dropped, self.n_rows),)
        if self.deviation is not None and self.renormalised:
            cautions += (caution(self.renormalised, self.n_rows, float(np.abs(self.deviation).max())),)
        return cautions

    @cached_property
    def largest(self) -> tuple[Array, Array]:
        """The first column of each row's largest score, and that score."""
        n, columns = self.score.shape
        if columns > _FEW_COLUMNS:
            best = self.score.argmax(axis=1)
            return best, np.take_along_axis(self.score, best[:, None], axis=1)[:, 0]
        # The largest number of a short row takes numpy several times as long as that of a column.
        best, most = np.empty(n, dtype=np.intp), np.empty(n, dtype=self.score.dtype)
        step = _BLOCK // (4 * columns * self.score.itemsize)
        for a in range(0, n, step):
            block, chunk = np.ascontiguousarray(self.score[a : a + step].T), slice(a, a + step)
            top = block.max(axis=0, out=most[chunk])
            before, count = np.ones(top.shape, dtype=bool), np.zeros(top.shape, dtype=np.uint8)
            for column in block[:-1]:
                before &= column < top
                count += before.view(np.uint8)
            best[chunk] = count
        return best, most


def predictions(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    more: bool = False,
    by_name: bool = True,
    percent: bool = False,
    missing: str = "raise",
) -> Predictions:
    """Check labels, scores and weights, and find the column each label means.

    `sample_weight` are importance weights, whatever their type; `counts` are numbers of equal rows.
    With `more`, these are some of the rows only, and the positive class may be among the others. With
    `by_name`, a series of scores may be named after its class. With `percent`, scores are percentages. With
    `missing="drop"`, rows without a label are left out.
    """
    truth, labelled = read_labels(y_true, missing)
    score, tolerance = read("y_prob", y_prob)
    same_rows(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, counts=counts)
    n, rows = len(truth), len(score)
    if n != rows:
        got = f"{n} labels and {rows} rows of scores"
        raise InputError("y_true and y_prob", "be equally long", (n, rows), got=got)
    if n == 0:
        raise InputError("y_true and y_prob", "not be empty", 0, got="0 rows")
    weights = _read_weights(sample_weight, counts, n, "labels")
    dropped = 0
    if labelled is not None:
        if not labelled.any():
            refuse_unlabelled("y_true", n)
        dropped = count_dropped(labelled, weights)
        weights = None if weights is None else (weights[0], weights[1][labelled])
        truth, score = truth[labelled], score[labelled]
    with nullcontext() if labelled is None else rows_of(labelled):
        if percent:
            score, tolerance = _divided(score, tolerance)
        try:
            score, deviation = _checked_scores(score, tolerance)
        except InputError as error:
            error.hint = PREDICTED if _are_labels(score, truth) else error.hint
            raise
        truth, given = _truth(truth), None if labels is None else class_labels(labels)
        _check_label(pos_label)
        if score.ndim == 1:
            named = by_name and pos_label is None and given is None
            if named and isinstance(name := getattr(y_prob, "name", None), str):
                seen = _distinct(truth)
                usual = next((pair for pair in USUAL if set(seen) <= set(pair)), seen)
                pos_label = class_of_name(name, usual)
            try:
                code, classes = _binary(truth, given, pos_label, more)
            except InputError as error:
                if SOFT in error.hint:
                    repeated = ", or each row as 1 and as 0, counted as often as each occurred"
                    error.hint = SWAPPED if ((score == 0) | (score == 1)).all() else SOFT + repeated
                raise
        else:
            classes = _classes(truth, score.shape[1], given, y_prob)
            score = _in_order(score, y_prob, given)
            code = _codes(truth, classes, "labels" if given is None else "")
        data = _weighted(score, code, weights, classes, positive_column(classes, pos_label), deviation)
    if labelled is None:
        return data
    kept = labelled.copy()
    kept[labelled] = True if data.kept is None else data.kept
    return replace(data, kept=kept, dropped=dropped)


def read_labels(y_true: Any, missing: str) -> tuple[Array, Array | None]:
    """Return labels, and which rows have one; None if all have, or if it is an error that one has none."""
    if missing == "raise":
        return read("y_true", y_true)[0], None
    check_choice("missing", missing, MISSING)
    truth = read("y_true", y_true.data if isinstance(y_true, np.ma.MaskedArray) else y_true)[0]
    return truth, rows_with_label(y_true if isinstance(y_true, np.ma.MaskedArray) else truth)


def count_dropped(labelled: Array, weights: tuple[str, Array] | None) -> int:
    """Return how many rows have no label, counted ones as often as they count."""
    if weights is None or weights[0] != "counts":
        return int((~labelled).sum())
    with rows_of(~labelled):
        return total_count(weights[1][~labelled])


def total_count(counts: Array) -> int:
    """Return the sum of counts of rows."""
    return int(_weights("counts", counts).sum())


def unlabelled(
    y_prob: Any,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    percent: bool = False,
) -> Predictions:
    """Check scores that come without labels; every row is taken to be of the first class.

    Names of columns are the classes, unless `pos_label` is the number of a column.
    """
    score, tolerance = read("y_prob", y_prob)
    same_rows(y_prob=y_prob, sample_weight=sample_weight, counts=counts)
    if len(score) == 0:
        raise InputError("y_prob", "not be empty", 0, got="0 rows")
    if percent:
        score, tolerance = _divided(score, tolerance)
    score, deviation = _checked_scores(score, tolerance)
    names = column_names(y_prob)
    given = None if labels is None else class_labels(labels)
    _check_label(pos_label)
    if score.ndim == 1:
        if pos_label is None and any(label not in (-1, 0, 1) for label in given or ()):
            rule = f"name one of {list(given or ())}, the class that the scores are of"
            raise InputError("pos_label", rule, None)
        positive = 1 if pos_label is None else pos_label
        others = tuple(label for label in given or (0, 1) if label != positive)
        classes: tuple[Any, ...] = (others[0] if len(others) == 1 else others, positive)
        if given is not None and positive not in given:
            raise InputError("pos_label", f"be one of {show(*given)}", positive)
    else:
        size = score.shape[1]
        by_number = isinstance(pos_label, Integral) and pos_label not in (names or ())
        classes = classes_of_columns(None, (), size, names if given is None and not by_number else given)
        score = _in_order(score, y_prob, given)
    code = np.zeros(len(score), dtype=bool if score.ndim == 1 else np.intp)
    positive = positive_column(classes, pos_label)
    weights = _read_weights(sample_weight, counts, len(score), "rows")
    return _weighted(score, code, weights, classes, positive, deviation)


def positive_column(classes: tuple[Any, ...], pos_label: Any) -> int | None:
    """Return the column of the selected class: the second of two unless one is named."""
    if pos_label is None:
        return 1 if len(classes) == 2 else None
    if pos_label not in classes:
        raise InputError("pos_label", f"be one of {show(*classes)}", pos_label)
    return classes.index(pos_label)


def explicit_column(classes: tuple[Any, ...], positive: int | None, *, is_given: bool) -> int | None:
    """Return the column of the selected class; None if nothing but the order of two columns says which.

    Columns of files and frames have names, and their order means little: the second of two is taken only if
    it is of the class 1. `is_given` is whether the caller named the class or the order of the columns.

    >>> explicit_column((0, 1), 1, is_given=False), explicit_column(("yes", "no"), 1, is_given=False)
    (1, None)
    """
    return positive if is_given or positive is None or classes[positive] == 1 else None


def _checked_scores(score: Array, tolerance: float | None) -> tuple[FloatArray, NDArray[np.float64] | None]:
    """Return scores that lie in [0, 1] and sum to 1 in every row.

    Rows whose sum differs from 1 by what rounding explains are renormalised, and the last value tells by how
    much each differed.
    """
    score = _numbers("y_prob", score, unit=True)
    score = score if score.dtype.kind == "f" else score.astype(np.float64)
    if score.ndim == 1:
        _check_unit("y_prob", score)
        return score, None
    total = _farthest_sum(score)
    if tolerance is None:
        tolerance = TOLERANCE[score.itemsize]
        # Decimals are recognised in single precision too, and must give the numbers that they give in double.
        exact = TOLERANCE[8] + slack(score) if score.itemsize == 4 else tolerance
    else:
        exact = tolerance
    if abs(total - 1) <= exact + SLACK:
        return score, None
    renormalised, deviation = _renormalised(score, exact, tolerance)
    return renormalised, None if renormalised is score else deviation


def _renormalised(
    score: FloatArray, exact: float, tolerance: float
) -> tuple[FloatArray, NDArray[np.float64]]:
    """Divide the rows by their sums that differ from 1 by more than `exact`, if rounding explains it.

    Others stay as they are within the tolerance, and are refused beyond it.
    """
    normalized, deviation = score, np.zeros(len(score))
    step = max(1, _BLOCK // (score.shape[1] * score.itemsize))
    worst: tuple[int, float] = 0, 1.0
    for start in range(0, len(score), step):
        total = row_sums(score[start : start + step])
        off = np.flatnonzero(np.abs(total - 1) > exact + SLACK)
        fits = explained(score[start + off], total[off] - 1)
        refused = off[~fits & (np.abs(total[off] - 1) > tolerance + SLACK)]
        if refused.size:
            k = refused[np.argmax(np.abs(total[refused] - 1))]
            if abs(total[k] - 1) > abs(worst[1] - 1):
                worst = int(start + k), float(total[k])
        off = off[fits]
        if off.size:
            normalized = score.copy(order="K") if normalized is score else normalized
            normalized[start + off] = score[start + off] / total[off, None]
            deviation[start + off] = total[off] - 1
    row, sum_of_row = worst
    if sum_of_row != 1:
        rule, hint = f"sum to 1 within {tolerance:g} in every row", hint_about_sum(sum_of_row)
        raise InputError("y_prob", rule, sum_of_row, got=f"{sum_of_row:.9g}", row=row, hint=hint)
    return normalized, deviation


def _check_label(pos_label: Any) -> None:
    if pos_label is not None and (is_missing(pos_label) or not isinstance(pos_label, Hashable)):
        raise InputTypeError("pos_label", "be a label", pos_label)


def _weighted(
    score: Array,
    code: Array,
    weights: tuple[str, Array] | None,
    classes: tuple[Any, ...],
    positive: int | None,
    deviation: Array | None,
) -> Predictions:
    """Predictions with their weights; rows without weight are left out."""
    weight, kept = None if weights is None else _weights(*weights), None
    if weights is not None and weight is not None and not weight.all():
        if not weight.any():
            name, got = weights[0], f"{len(weight)} {_called(weights[0])} of 0"
            raise InputError(name, "have a positive sum", 0, got=got)
        kept = weight != 0
        score, code, weight = score[kept], code[kept], weight[kept]
        deviation = None if deviation is None else deviation[kept]
    counted = weights is None or weights[0] == "counts"
    return Predictions(score, code, weight, classes, positive, counts=counted, deviation=deviation, kept=kept)


def shares(percentages: Array) -> Array:
    """Return percentages divided by 100, in double precision: the numbers that shares are read as."""
    return np.asarray(_numbers("y_prob", percentages).astype(np.float64) / 100)


def _divided(percentages: Array, tolerance: float | None) -> tuple[Array, float | None]:
    """Return shares, and how far their rows may sum from 1 by the precision of the percentages."""
    if tolerance is None and percentages.dtype.kind == "f":
        tolerance = TOLERANCE.get(percentages.itemsize) if percentages.itemsize < 8 else None
    return shares(percentages), tolerance


def check_percent(largest: float) -> None:
    """Refuse shares that are called percentages, by the largest after they were divided."""
    if largest <= 0.01:
        raise InputError("percent", "go with scores up to 100", got=f"none above {100 * largest:g}")


def scores(name: str, values: Any) -> NDArray[np.float64]:
    """Return scores of any shape as float64, each in [0, 1]."""
    array = _numbers(name, read(name, values)[0], unit=True).astype(np.float64, copy=False)
    _check_unit(name, array, free=True)
    return array


def ranking(values: Any) -> tuple[Any, Array | None]:
    """Return scores in [0, 1] in the order of any finite scores, and the value at each of them in that order.

    Scores that already lie in [0, 1] are returned as they are, without values. All others become the evenly
    spaced places of their distinct values.

    >>> ranking([-3.0, 8.0, 8.0, 0.0])
    (array([0.16666667, 0.83333333, 0.83333333, 0.5       ]), array([-3.,  0.,  8.]))
    """
    array, _ = read("y_prob", values)
    if array.ndim != 1 or not array.size:
        return values, None
    score = _numbers("y_prob", array)
    if not np.isfinite(score).all() or (score.min() >= 0 and score.max() <= 1):
        return values, None  # what is not finite is refused with all other scores
    distinct, place = np.unique(score, return_inverse=True)
    return (place + 0.5) / distinct.size, distinct + 0.0


def read(name: str, values: Any) -> tuple[Array, float | None]:
    """Return a plain array, copied only if need be, and the tolerance of bfloat16 if it was that."""
    array, tolerance = values, None
    if type(values) is not np.ndarray or values.dtype.kind == "V":
        if isinstance(values, np.ndarray) and np.any(mask := getattr(values, "mask", False)):
            advice = "missing" if name == "y_true" else ""
            _refuse(name, "have no missing values", values, mask, advice=advice)
        if str(getattr(values, "dtype", "")).endswith("bfloat16"):  # float32 holds it exactly
            array = values.float() if hasattr(values, "float") else values.astype(np.float32)
            tolerance = TOLERANCE_BFLOAT16
        if hasattr(values, "detach") and hasattr(values, "cpu"):
            array = array.detach().cpu().numpy()
        elif not hasattr(values, "__array__"):
            convert = getattr(array, "to_numpy", None) or getattr(array, "__arrow_array__", None)
            array = convert() if convert else array
        try:
            array = np.asarray(array)
        except (TypeError, ValueError) as error:
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(name, "be readable as an array", values, got=f"an error: {error}") from error
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)  # numbers and None beside text had become text
    if array.ndim != 1 and name in _DATA and (name != "y_prob" or array.ndim != 2 or array.shape[1] < 2):
        rule = "be one-dimensional" + " or have a column per class" * (name == "y_prob")
        got, hint = f"shape {array.shape}" if array.ndim else show(values), ""
        if array.ndim and array.size == max(array.shape):
            hint = f"pass {name}.ravel()" if hasattr(values, "ravel") else f"pass np.ravel({name})"
        elif array.ndim == 2 and name == "y_true":
            hint, first = SWAPPED, array[:100]
            if array.dtype.kind == "f" and np.allclose(first.sum(axis=1), 1, atol=0.01):
                hint = f"{SWAPPED} if not, {SOFT}"
            if array.dtype.kind in "biuf" and np.isin(first, (0, 1)).all():
                one_hot = (first.sum(axis=1) == 1).all()
                hint = "one-hot labels? pass np.argmax(y_true, axis=1)" if one_hot else MULTI_LABEL
        raise InputError(name, rule, values, got=got, hint=hint)
    return (array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))), tolerance


def _numbers(name: str, array: Array, *, unit: bool = False) -> Array:
    """Return real numbers in at most double precision; none becomes 0, or 1 where that is a bound, by it."""
    if array.dtype.kind in "biuf":
        if array.itemsize <= 8:
            return array
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float64)
    else:
        array = objects(name, array, _NUMBER, "hold real numbers")
        if any(large := [abs(v) >= 2.0**63 for v in array.flat]):
            _refuse(name, "hold numbers below 2^63", array, large)
        if all(isinstance(v, Integral) for v in array.flat):
            return array.astype(np.int64)
        rounded = array.astype(np.float64)
    outside = (array < 0) & (rounded == 0)
    if unit:
        outside |= (array > 1) & (rounded == 1)
    if outside.any():
        _refuse(name, "lie in [0, 1]" if unit else "be at least 0", array, outside)
    return rounded


def exact(name: str, array: Array) -> Array:
    """Return an array of labels or names; refuse floats so large that they stand for several integers.

    >>> exact("y_true", np.array([2.0**53, 1.0]))
    Traceback (most recent call last):
        ...
    calibrant.InputError: y_true must be below 2^53 where it is in floating point, got
    9007199254740992.0 at row 0; integers above share one number there: pass integers or text
    """
    if array.dtype.kind == "f":
        bits = np.finfo(array.dtype).nmant + 1
        if (large := np.isfinite(array) & (abs(array) >= 2.0**bits)).any():
            rule = f"be below 2^{bits} where it is in floating point"
            hint = "integers above share one number there: pass integers or text"
            _refuse(name, rule, array, large, hint)
    return array


def _truth(array: Array) -> Array:
    """Return labels as booleans, integers (whole floats too), other floats or objects, none missing."""
    if array.dtype.kind not in "biuf":
        array = objects("y_true", array, Hashable, "hold one label per row")
        if not all(isinstance(v, _NUMBER) for v in array):
            return array
        if all(isinstance(v, Integral) for v in array) and np.array(array.tolist()).dtype.kind not in "biu":
            return array  # integers that no one type of numpy holds together
        array = np.array(array.tolist())
    if exact("y_true", array).dtype.kind != "f":
        return array
    if not (finite := np.isfinite(array)).all():
        advice = "missing" if np.isnan(array[np.argmin(finite)]) else ""
        _refuse("y_true", "be finite and have no missing values", array, ~finite, advice=advice)
    is_integer = np.array_equal(array, np.rint(array)) and float(abs(array).max()) < 2**63
    return array.astype(np.int64) if is_integer else array


def objects(name: str, array: Array, accepted: Any, rule: str) -> Array:
    """Return the array as objects, none of them missing and all of an accepted type."""
    if array.dtype.kind in "cmMV":
        raise InputTypeError(name, rule, array.dtype, got=f"dtype {array.dtype}")
    array = array.astype(object, copy=False)
    kinds = set(map(type, array.flat))  # looking at each object is slow, and in these nothing is missing
    if not kinds <= {str, int, bool} and any(missing := [is_missing(v) for v in array.flat]):
        advice = "missing" if name == "y_true" else ""
        _refuse(name, "have no missing values", array, missing, advice=advice)
    if not all(issubclass(kind, accepted) for kind in kinds):
        _refuse(name, rule, array, [not isinstance(v, accepted) for v in array.flat], error=InputTypeError)
    return array


def _check_unit(name: str, score: Array, full: Array | None = None, *, free: bool = False) -> None:
    """Raise unless every score is in [0, 1]; positions refer to the whole if this is a block of it.

    With `free`, the columns of a matrix are scores of labels that do not exclude each other.
    """
    # As unsigned integers, the floats from 0 to 1 come before all others: one pass finds NaN, infinities and
    # scores below 0 or above 1. Only -0.0 is out of order, and needs the second look.
    bits = np.maximum.reduce(score.view(f"u{score.itemsize}"), axis=None, initial=0)
    if bits <= _BITS_OF_ONE[score.itemsize] or (score.min() >= 0 and score.max() <= 1):
        return
    score = score if full is None else full
    if not (finite := np.isfinite(score)).all():
        _refuse(name, "be finite and have no missing values", score, ~finite)
    separate, hint, advice = free or score.ndim == 1, "", ""
    if name == "y_prob":
        log = score.max() <= 0 and (separate or np.ptp(np.append(np.exp(score).sum(axis=1), 1)) < NEAR_ONE)
        hint, advice = hint_about_range(float(score.min()), float(score.max()), vector=separate, log=log)
    _refuse(name, "lie in [0, 1]", score, (score < 0) | (score > 1), hint, advice)


def _farthest_sum(score: Array) -> float:
    """Return the sum of a row that is farthest from 1, of scores that all lie in [0, 1]."""
    farthest, step = 1.0, max(1, _BLOCK // (score.shape[1] * score.itemsize))
    for start in range(0, len(score), step):
        block = score[start : start + step]
        _check_unit("y_prob", block, score)
        total = np.einsum("ij->i", block, dtype=np.float64)
        total = total[np.argmax(np.abs(total - 1))]
        farthest = total if abs(total - 1) > abs(farthest - 1) else farthest
    return float(farthest)


def hint_about_sum(total: float) -> str:
    """Return what to do about a row of scores in [0, 1] whose sum is not 1."""
    if abs(total - 1) <= 0.05:
        return "if these are rounded, divide each row by its sum"
    return MULTI_LABEL


def hint_about_range(least: float, most: float, *, vector: bool, log: bool) -> tuple[str, str]:
    """Return what scores outside of [0, 1] look like, and the kind of advice on them.

    `log` is whether they may be log-probabilities.
    """
    if log and least < -1e-3:
        return "these look like log-probabilities", "exp_or_logits" if vector else "exp"
    if least >= 0 and 2 < most <= 100:
        return "these look like percentages: divide by 100 first", "percent"
    if least < -1e-3 or most > 100:
        return f"these look like logits: apply {'sigmoid' if vector else 'softmax'} first", "from_logits"
    return "", ""


def _are_labels(score: Array, truth: Array) -> bool:
    """Tell whether what is no score is the prediction of a class."""
    if score.ndim != 1:
        return False
    try:
        said, seen = set(score.tolist()), set(truth.tolist())
        if said <= seen:
            return True
        all_integers = said | seen == {int(v) for v in said | seen}
        return all_integers and (are_usual(said) or not are_usual(seen))
    except (TypeError, ValueError, OverflowError):
        return False


def decided(data: Predictions) -> bool:
    """Tell whether every score is 0 or 1, and both occur: that is what `predict()` says.

    >>> decided(predictions([0, 1, 1], [0, 1, 0])), decided(predictions([0, 1, 1], [0.0, 1.0, 0.5]))
    (True, False)
    """
    score = data.score
    if 0 < score.flat[0] < 1:  # most are told by this
        return False
    return bool(((score == 0) | (score == 1)).all()) and float(np.ptp(score)) == 1


def are_usual(seen: Collection[Any]) -> bool:
    """Tell whether labels need no word on which of them is the positive class."""
    return any(set(seen) <= set(pair) for pair in USUAL)


def row_weights(sample_weight: Any, counts: Any) -> tuple[str, Any] | None:
    """Return the weights that were given and the name of their argument; None without any.

    >>> row_weights(None, [1, 2]), row_weights(None, None)
    (('counts', [1, 2]), None)
    """
    if sample_weight is not None and counts is not None:
        rule = "not be given together"
        hint = "counts repeats rows and sample_weight sets their importance: repeat the rows to have both"
        raise InputError("sample_weight and counts", rule, hint=hint)
    if counts is not None:
        return "counts", counts
    return None if sample_weight is None else ("sample_weight", sample_weight)


def _read_weights(sample_weight: Any, counts: Any, n: int, rows: str) -> tuple[str, Array] | None:
    """Return the weights of so many rows, which are called `rows`, and the name of their argument."""
    given = row_weights(sample_weight, counts)
    if given is None:
        return None
    name, array = given[0], read(*given)[0]
    if len(array) != n:
        beside = "y_true" if rows == "labels" else "y_prob"
        got = f"{len(array)} {_called(name)} for {n} {rows}"
        raise InputError(name, f"be as long as {beside}", len(array), got=got)
    return name, array


def _called(name: str) -> str:
    return "counts" if name == "counts" else "weights"


def _weights(name: str, array: Array) -> Array:
    """Return counts as int64 or importance weights as float64: the argument decides, not the type."""
    array, counted = _numbers(name, array), name == "counts"
    most = np.float64(2.0**63 if counted else 1e308 / len(array))  # so that no sum of them overflows
    if not (array.min() >= 0 and array.max() < most):
        _refuse(name, f"be finite, at least 0 and below {most:.3g}", array, ~((array >= 0) & (array < most)))
    if counted:
        if array.dtype.kind == "f" and (broken := array != np.rint(array)).any():
            _refuse(name, "be whole numbers", array, broken, advice="sample_weight")
        check_counts(float(array.sum(dtype=np.float64)))
    return array.astype(np.int64 if counted else np.float64, copy=False)


def check_counts(total: float) -> None:
    """Refuse counts of rows that no sum of integers holds; in pieces or as a whole they are as many."""
    if total >= 2.0**63:
        raise InputError("counts", "sum to less than 2^63", total, got=f"{total:.3g}")


def _distinct(truth: Array) -> tuple[Any, ...]:
    if truth.dtype.kind == "O":
        try:
            return tuple(sorted(set(truth.tolist())))
        except TypeError as error:
            got = show(*dict.fromkeys(truth))
            raise InputTypeError("y_true", "be sortable", truth, got=got) from error
    low, high = np.minimum.reduce(truth).item(), np.maximum.reduce(truth).item()
    if truth.dtype.kind != "f" and high - low <= 1:  # the common case, without a sort
        return (low, high)[: 1 + high - low]
    return tuple(np.unique(truth).tolist())


def class_labels(labels: Any) -> tuple[Any, ...]:
    """Return labels that a caller names as a tuple of distinct classes."""
    if isinstance(labels, str | bytes | Set) or not isinstance(labels, Iterable):
        raise InputTypeError("labels", "be a sequence of classes", labels)
    array = np.fromiter(labels.tolist() if hasattr(labels, "tolist") else labels, object)
    classes = tuple(objects("labels", array, Hashable, "be classes").tolist())
    if len(set(classes)) < len(classes):
        _refuse("labels", "be distinct", array, [v in classes[:i] for i, v in enumerate(classes)])
    return classes


def binary_classes(seen: Sequence[Any], pos_label: Any = None, *, more: bool = False) -> tuple[Any, Any]:
    """Return the classes (negative, positive) of a single column of scores, by the labels that occur.

    The negative one is a tuple where there are several, and None where none is known. With `more`, the
    positive one may be among labels that are not seen yet.

    >>> binary_classes([0, 1]), binary_classes(["a", "b", "c"], "b"), binary_classes([-1])
    ((0, 1), (('a', 'c'), 'b'), (-1, 1))
    """
    usual: tuple[Any, ...] = next((pair for pair in USUAL if set(seen) <= set(pair)), ())
    if pos_label is None and not usual:
        fractions = any(isinstance(label, float) for label in seen)
        got = show(*seen[:3]) + ", ..." * (len(seen) > 3) if fractions else show(*seen)
        rule = "hold 0 and 1, -1 and 1 or booleans"
        hint, advice = advice_on_labels(seen, "pos_label")
        raise InputError("y_true", rule, tuple(seen), got=got, hint=hint, advice=advice)
    positive = usual[1] if pos_label is None else pos_label
    if positive not in usual and positive not in seen and not more:
        raise InputError("pos_label", f"be one of {show(*seen)}", positive)
    others = tuple(v for v in (usual if positive in usual else seen) if v != positive)
    return others[0] if len(others) == 1 else others or None, positive


def _classes(truth: Array, size: int, given: tuple[Any, ...] | None, y_prob: Any) -> tuple[Any, ...]:
    """Return the class of each column; the labels that occur are looked for only where they matter."""
    names = column_names(y_prob)
    is_integer = truth.dtype.kind in ("biu" if size == 2 else "iu")
    if given is None and names is None and is_integer:
        return tuple(range(size))
    return classes_of_columns(names, () if given is not None else _distinct(truth), size, given)


def _in_order(score: FloatArray, y_prob: Any, given: tuple[Any, ...] | None) -> FloatArray:
    """Return the columns in the order of the classes that the caller has given."""
    order = None if given is None else column_order(column_names(y_prob), given)
    return score if order is None else score[:, order]


def _codes(truth: Array, classes: tuple[Any, ...], advice: str) -> Array:
    indices = truth.dtype.kind in "biu" and classes == tuple(range(len(classes)))
    if indices and np.maximum.reduce(truth.view(f"u{truth.itemsize}")) < len(classes):
        return truth.astype(np.intp, copy=False)
    table = {label: column for column, label in enumerate(classes)}
    codes = np.fromiter((table.get(v, -1) for v in truth.tolist()), np.intp, len(truth))
    if codes.min() < 0:
        hint, advice = advice_on_labels(set(truth[codes < 0].tolist()), advice)
        _refuse("y_true", f"hold only the labels {show(*classes)}", truth, codes < 0, hint, advice)
    return codes


def _binary(
    truth: Array, given: tuple[Any, ...] | None, pos_label: Any, more: bool
) -> tuple[Array, tuple[Any, Any]]:
    """Return whether each label is the positive class, and the classes (negative, positive)."""
    if given is not None:
        _codes(truth, given, "")
    seen = _distinct(truth) if given is None else given
    classes = binary_classes(seen, pos_label, more=more)
    # As it occurs: among integers a float of the same value is equal to its neighbours too, from 2^53 on.
    positive = next((label for label in seen if label == classes[1]), classes[1])
    code = np.array([v == positive for v in truth.tolist()]) if truth.dtype.kind == "O" else truth == positive
    return code, classes


def _refuse(
    name: str, rule: str, array: Any, bad: Any, hint: str = "", advice: str = "", error: Any = InputError
) -> NoReturn:
    where = [int(i) for i in np.unravel_index(int(np.argmax(bad)), array.shape)]
    row, column, *_ = [*where, None, None]
    axis = "row" if name in _DATA or name.startswith("column ") else "position"
    raise error(name, rule, array[tuple(where)], row=row, column=column, hint=hint, advice=advice, axis=axis)


# -- scores that are not probabilities of exclusive classes ------------------------------------------------

# Fewer log-odds may all lie in [0, 1] by chance, so they get no warning.
MANY = 20
_LEAVE_OUT = "leave out from_logits=True, or pass the logits"


class _Columns(np.ndarray):
    """Scores that keep the column names of their frame."""

    columns: tuple[Any, ...] | None = None


def probabilities(logits: Any, *, free: bool = False, refuse: bool = False, warn: bool = True) -> Array:
    """Return the probabilities of logits: the sigmoid of 1-D log-odds, the softmax of a matrix.

    Parameters
    ----------
    logits : array of shape (N,) or (N, C)
        Log-odds or logits. A warning tells that they look like probabilities.
    free : bool
        Whether the columns of a matrix are log-odds of labels that do not exclude each other.
    refuse, warn : bool
        Whether rows of a matrix that sum to 1 are an error, and whether there are warnings.

    Examples
    --------
    >>> np.asarray(probabilities(np.array([[0.0, 0.0], [np.log(3), 0.0]])))
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    from scipy.special import expit

    array, tolerance = read("y_prob", logits)
    if array.dtype.kind not in "biuf":
        raise InputTypeError("y_prob", "hold real numbers", array.dtype, got=f"dtype {array.dtype}")
    # Double-precision probabilities may have been computed in single precision.
    tolerance = tolerance or max(TOLERANCE.get(array.dtype.itemsize, 0.0), TOLERANCE[4])
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row = int(np.argmax(~np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise InputError("y_prob", "be finite", array[row], row=row)
    separate = array.ndim == 1 or free
    suspect = array.size > 0 and bool(((array >= 0) & (array <= 1)).all())
    if separate:
        suspect = suspect and array.size >= MANY
    else:  # the logits of one or two rows may sum to 1 by chance
        suspect = suspect and len(array) > 2 and np.ptp(np.append(array.sum(axis=1), 1)) <= tolerance
    if suspect and refuse and not separate:
        got = "probabilities: rows in [0, 1] that sum to 1"
        hint = f"{_LEAVE_OUT} that the softmax was taken of"
        raise InputError("y_prob", "hold logits with from_logits=True", got=got, hint=hint)
    if suspect and warn:
        seen = "all values of y_prob lie in [0, 1]" + " and rows sum to 1" * (not separate)
        text = f"{seen}, and from_logits=True takes them for log-odds: leave it out if they are probabilities"
        warnings.warn(text, InputWarning, stacklevel=5)
    if separate:
        probability = expit(array)
    else:
        probability = np.exp(array - array.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
    if array.ndim == 1:
        return np.asarray(probability)
    probability = probability.view(_Columns)
    probability.columns = column_names(logits)
    return probability


def multilabel(
    y_true: Any, y_prob: Any, *, labels: Any = None, sample_weight: Any = None, counts: Any = None
) -> Predictions:
    """Check matrices of scores and of labels (1 where a row has the label), whose rows need not sum to 1.

    >>> data = multilabel([[1, 1], [0, 1]], [[0.9, 0.8], [0.3, 0.6]])
    >>> data.labels, data.code.tolist()
    ((0, 1), [[True, True], [False, True]])
    """
    score, truth = scores("y_prob", y_prob), read("matrix of labels", y_true)[0]
    if score.ndim != 2 or truth.shape != score.shape:
        got = f"shapes {truth.shape} and {score.shape}"
        raise InputError("y_true and y_prob", "be matrices of the same shape (rows, labels)", got=got)
    if not len(score):
        raise InputError("y_true and y_prob", "not be empty", 0, got="0 rows")
    if truth.dtype.kind not in "biuf" or (bad := (truth != 0) & (truth != 1)).any():
        place = tuple(map(int, np.argwhere(bad)[0])) if truth.dtype.kind in "biuf" else (0, 0)
        rule = "be 1 where a row has the label, and 0 elsewhere"
        raise InputError("y_true", rule, truth[place], row=place[0], column=place[1])
    names = column_names(y_prob), column_names(y_true)
    if None not in names and set(names[0] or ()) == set(names[1] or ()):
        truth = truth[:, [(names[1] or ()).index(name) for name in names[0] or ()]]
    known = names[0] or names[1]
    classes = known or tuple(range(score.shape[1]))
    classes = classes if labels is None else class_labels(labels)
    if len(classes) != score.shape[1]:
        raise InputError("labels", f"name {score.shape[1]} columns", classes)
    if labels is not None and (order := column_order(known, classes)) is not None:
        if None in names:
            rule, got = f"be in the order of the columns {show(*known or ())}", show(*classes)
            raise InputError("labels", rule, classes, got=got, hint="the other matrix has no names")
        score, truth = score[:, order], truth[:, order]
    options = {"sample_weight": sample_weight, "counts": counts}
    rows = predictions(np.zeros(len(score), dtype=int), score[:, 0], **options)
    kept = slice(None) if rows.kept is None else rows.kept
    code = truth.astype(bool)[kept]
    return replace(rows, score=score[kept], code=code, labels=tuple(classes), positive=None)
