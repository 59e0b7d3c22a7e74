"""Registry of all estimators by name.

A new estimator is one file in this package, with a frozen dataclass (see `Estimator`), and one line in
`CLASSES`. The command line, the experiment and the property tests use this registry.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from calibrant.estimators.base import Entry, Estimator, refuse_parameter
from calibrant.estimators.bayes import Bayes
from calibrant.inputs import InputError, check_choice, show
from calibrant.parallel import compute_once

#: The classes of this package by their modules, imported when a name other than "auto" is first asked for.
CLASSES = (
    ("binned", "Binned"),
    ("density", "Density"),
    ("density_beta", "DensityBeta"),
    ("bayes", "Bayes"),
    ("debiased", "Debiased"),
    ("sweep", "Sweep"),
    ("isotonic", "Isotonic"),
    ("beta", "Beta"),
    ("beta_kernel", "BetaKernel"),
    ("variational", "Variational"),
    ("smooth", "Smooth"),
    ("cumulative", "Cumulative"),
    ("canonical.softmax", "CanonicalSoftmax"),
    ("canonical.dirichlet", "CanonicalDirichlet"),
    ("canonical.variational", "CanonicalVariational"),
    ("canonical.skce", "Skce"),
)

#: Names of scikit-learn for estimators of this package.
ALIASES = {"quantile": "adaptive"}

#: The estimators the paper compares.
FIFTEEN = (
    *(f"{family}:{bins}" for family in ("l", "a", "c", "ac") for bins in (10, 30, "sqrt")),
    *("d:0.033", "d:0.1", "d:silverman"),
)


def _of_package() -> list[Entry]:
    entries: list[Entry] = []
    for module, name in CLASSES:
        _add(getattr(import_module(f"calibrant.estimators.{module}"), name), entries)
    return entries


_entries = compute_once(_of_package)


def _add(estimator: type[Estimator], entries: list[Entry]) -> None:
    for entry in estimator.entries():
        for name in {entry.name, entry.short}:
            reserved = {"auto", *ALIASES, *_by_name(entries, vectors=entry.vectors)}
            if not name or ":" in name or name in reserved:
                raise ValueError(
                    f"the names of {estimator.__name__} must be new and free of colons, got {name!r}"
                )
        entries.append(entry)


def register(estimator: type[Estimator]) -> None:
    """Register an estimator class under its names."""
    _add(estimator, _entries())
    parse.cache_clear()


def describe(*, vectors: bool = False) -> tuple[Entry, ...]:
    """Return the entries of the registry: estimators of one score, or of score vectors.

    >>> for entry in describe()[:2]:
    ...     print(entry.name, entry.parameter, entry.summary, sep="; ")
    uniform; bins; bins of equal width (legacy ECE)
    adaptive; bins; bins of equal mass
    """
    return tuple(entry for entry in _entries() if entry.vectors == vectors)


def estimator_names(*, vectors: bool = False) -> tuple[str, ...]:
    """Return the names of all estimators of one score, or of score vectors.

    Parameters
    ----------
    vectors : bool
        Whether to return the estimators of the canonical notion.

    See Also
    --------
    ece : Takes a name as `estimator`.
    recommend : Ranks estimators on given scores.

    Examples
    --------
    >>> estimator_names()[:5]
    ('uniform', 'adaptive', 'uniform-convex', 'adaptive-convex', 'density')
    >>> estimator_names(vectors=True)
    ('softmax', 'dirichlet', 'variational', 'skce')
    """
    return tuple(entry.name for entry in describe(vectors=vectors))


def _by_name(entries: list[Entry], *, vectors: bool) -> dict[str, Entry]:
    matching = (entry for entry in entries if entry.vectors == vectors)
    return {name: entry for entry in matching for name in (entry.name, entry.short)}


@lru_cache(maxsize=256)
def parse(text: str, *, shared: bool = False, vectors: bool = False) -> Estimator:
    """Return the estimator for a name such as "adaptive:30", "c:sqrt", "d:0.033" or "auto".

    "auto" is `bayes`, or `bayes:shared` if the problems are the classes of one model (`shared`). For score
    vectors (`vectors`) it is `softmax`.

    >>> parse("l:10")
    Binned(binning='uniform', n_bins=10, mapping='one')
    >>> parse("quantile:15") == parse("adaptive:15")
    True
    >>> parse("variational:temperature:10", vectors=True)
    CanonicalVariational(map='temperature', n_folds=10)
    """
    name, colon, parameter = text.partition(":")
    name = name if vectors else ALIASES.get(name, name)
    entries = {} if name == "auto" else _by_name(_entries(), vectors=vectors)
    if name != "auto" and name not in entries and name in _by_name(_entries(), vectors=not vectors):
        raise other_kind(text, vectors=vectors)
    if name != "auto" and name not in entries:
        check_choice("estimator", name, ("auto", *estimator_names(vectors=vectors)), (*ALIASES, *entries))
    if colon and not parameter:
        raise InputError("estimator", "have a parameter after its colon", text)
    if name == "auto":
        refuse_parameter(name, parameter or None)
        if not vectors:
            return Bayes(shared=shared)
        from calibrant.estimators.canonical.softmax import CanonicalSoftmax

        return CanonicalSoftmax()
    try:
        return entries[name].parse(parameter or None)
    except InputError as error:
        # An error about the parameter shows the whole name.
        if error.argument == "estimator":
            raise
        rule = f"have a parameter that fits: {error.argument} must {error.rule}"
        got = f"{show(parameter)} in {show(text)}"
        raise InputError("estimator", rule, text, got=got, hint=error.hint) from None


def other_kind(text: str, *, vectors: bool) -> InputError:
    """Return the error for an estimator of one score if vectors are compared, or the other way round."""
    single, vector = "an estimator of one score", "an estimator of canonical calibration"
    wanted, given_kind = (vector, single) if vectors else (single, vector)
    rule = f"be {wanted}: {show('auto', *estimator_names(vectors=vectors))}"
    return InputError("estimator", rule, text, hint=f"{text} is {given_kind}")
