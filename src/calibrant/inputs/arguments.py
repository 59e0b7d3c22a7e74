"""Checks of arguments: choices, levels, whole numbers, seeds, keywords, and whether rows match."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import combinations
from numbers import Integral, Real
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar
from zlib import crc32

import numpy as np

from calibrant.inputs.errors import InputError, InputTypeError, show, show_near

P = ParamSpec("P")
R = TypeVar("R")
#: What seeds simulations.
Seed: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None


def check_choice(name: str, value: Any, options: Iterable[Any], aliases: Iterable[str] = ()) -> None:
    """Refuse a value that is none of the options; one close to an option or an alias is suggested."""
    options = list(options)
    if not any(value is option or (isinstance(value, str) and value == option) for option in options):
        raise InputError(
            name, f"be one of {show(*options)}", value, got=show_near(value, [*options, *aliases])
        )


# What is advised by functions that take no logits.
_WITHOUT_LOGITS = {"from_logits": "", "exp_or_logits": "exp"}


def helpful(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse keywords that a function does not have, with a hint at those it has.

    >>> @helpful
    ... def ece(y_true, *, estimator="auto"): ...
    >>> ece([0], n_bins=15)
    Traceback (most recent call last):
        ...
    TypeError: ece() has no argument n_bins; write estimator="uniform:15"
    """
    known = list(inspect.signature(function).parameters)
    names = set(known)

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        if not names.issuperset(options):
            _refuse_keywords(function.__name__, known, options)
        if options.get("n_bins") is not None or options.get("strategy") is not None:
            _refuse_two_ways(options)
        try:
            return function(*args, **options)
        except InputError as error:
            if "from_logits" not in names:
                error.advice = _WITHOUT_LOGITS.get(error.advice, error.advice)
            raise

    return checked


def _refuse_two_ways(options: Mapping[str, Any]) -> None:
    for name in ("estimator", "binning"):
        if name in options:
            got = f"{name}={options[name]!r}"
            raise InputError("n_bins and strategy", f"be left out where {name} is given", got=got)


def _refuse_keywords(function: str, known: list[str], options: dict[str, Any]) -> None:
    option = "binning" if "binning" in known else "estimator"
    family = "adaptive" if options.get("strategy") == "quantile" else "uniform"
    unexpected = [name for name in options if name not in known]
    if "cluster" in unexpected and function.startswith(("update", "from_")):  # the methods of a sketch
        refuse_clusters()
    for name in unexpected:
        if name in ("n_bins", "num_bins", "bins") and option in known:
            raise TypeError(f'{function}() has no argument {name}; write {option}="{family}:{options[name]}"')
    if function in ("from_files", "from_frame") and unexpected[0] in ("group", "groups"):
        raise TypeError(f"{function}() makes one sketch; {function}_by_group(groups=...) one for each group")
    near = show_near(unexpected[0], known)
    raise TypeError(f"{function}() got an unexpected keyword argument {near}")


def refuse_clusters() -> NoReturn:
    """Refuse clusters where rows become sums."""
    rule = "go with rows, as sums cannot hold a cluster that is split between batches"
    raise InputError("cluster", rule, got="sums", advice="rows")


def level(value: Any, name: str = "level") -> float:
    """Return a confidence level, or another share, as a float strictly between 0 and 1."""
    if not (number := is_number(value)) or not 0 < value < 1:
        hint = f"write {float(value) / 100:g}" if number and 1 < value < 100 else ""
        error = InputError if number else InputTypeError
        raise error(name, "be a number strictly between 0 and 1", value, hint=hint)
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def is_finite(value: Any) -> bool:
    """Whether a number is finite as a float; an integer of hundreds of digits is not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def positive_int(name: str, value: Any, minimum: int = 1) -> int:
    """Return an integer of at least `minimum`; floats and booleans are refused."""
    integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not integer or value < minimum:
        error = InputError if integer else InputTypeError
        raise error(name, f"be an integer of at least {minimum}", value)
    return int(value)


def generator(rng: Any) -> np.random.Generator:
    """Return a random generator from None, a seed or a SeedSequence; a Generator is passed through."""
    if isinstance(rng, Integral) and not isinstance(rng, bool):
        rng = positive_int("rng", rng, 0)
    elif not (rng is None or isinstance(rng, np.random.Generator | np.random.SeedSequence)):
        raise InputTypeError("rng", "be None, an integer seed, a SeedSequence or a Generator", rng)
    return np.random.default_rng(rng)


def seeded(rng: Any) -> int:
    """Return the seed itself, or one drawn from a generator, for the record."""
    drawn = generator(rng)
    return int(rng) if isinstance(rng, Integral) else int(drawn.integers(2**53))


def key_of(name: Any) -> int:
    """Return the key of a name; a NumPy label has the key of the equal Python object.

    >>> key_of("cat") == key_of(np.array(["cat"])[0])
    True
    """
    return crc32(str(name).encode(errors="surrogatepass"))


def stream(seed: int, *names: Any) -> np.random.Generator:
    """Return the generator keyed by a seed and names.

    >>> stream(0, "null", "cat").random() == stream(0, "null", "cat").random()
    True
    >>> stream(0, "null", "cat").random() == stream(0, "null", "dog").random()
    False
    """
    return np.random.default_rng([seed, *map(key_of, names)])


def same_rows(**arguments: Any) -> None:
    """Refuse arguments of pandas whose indices have the same labels in another order.

    Rows are taken by position. Indices of different labels say nothing about that: a series made of an array
    counts from 0, and one that a split has made keeps the labels of its rows, in the same order.

    >>> import pandas as pd
    >>> y = pd.Series([0, 1, 1], index=["a", "b", "c"])
    >>> same_rows(y_true=y, y_prob=[0.2, 0.7, 0.9], sample_weight=None)
    >>> same_rows(y_true=y, y_prob=pd.Series([0.9, 0.7, 0.2], index=["c", "b", "a"]))
    Traceback (most recent call last):
        ...
    calibrant.InputError: y_true and y_prob must have the same index, got the same labels in
    another order, 'a' and 'c' at row 0; align one: .reindex(other.index), or pass .to_numpy() where rows
    match by position
    """
    indices = {name: index for name, values in arguments.items() if (index := _index(values)) is not None}
    for (name, index), (other, its) in combinations(indices.items(), 2):
        if index is its or len(index) != len(its) or index.equals(its) or not _same_labels(index, its):
            continue
        row = next(k for k, (a, b) in enumerate(zip(index, its, strict=True)) if a != b)
        raise InputError(
            f"{name} and {other}",
            "have the same index",
            (index[row], its[row]),
            got=f"the same labels in another order, {show(index[row])} and {show(its[row])}",
            row=row,
            hint="align one: .reindex(other.index), or pass .to_numpy() where rows match by position",
        )


def _index(values: Any) -> Any:
    """Return the index of a series or frame of pandas; None of anything else."""
    index = getattr(values, "index", None)
    return index if type(index).__module__.split(".")[0] == "pandas" else None


def _same_labels(index: Any, other: Any) -> bool:
    """Tell whether two indices have the same labels, each as often."""
    labels, other_labels = np.asarray(index), np.asarray(other)
    if labels.dtype.kind in "biuf" and other_labels.dtype.kind in "biuf":
        return np.array_equal(np.sort(labels), np.sort(other_labels))
    return Counter(labels.tolist()) == Counter(other_labels.tolist())
