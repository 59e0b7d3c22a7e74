"""Base class of estimators, and the calibration error of a task by a given estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from calibrant.inputs import InputError, InputTypeError, check_choice
from calibrant.parallel import one_blas_thread, parallel_map
from calibrant.posterior import Posterior, posterior_of
from calibrant.score_data import Array, Moments, Sample, ScoreData
from calibrant.tasks import CalibrationTask, ClassRelation, Notion

Norm = Literal["l1", "l2", "max", "mul"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "max")
CANONICAL_NORMS: tuple[Norm, ...] = ("l1", "l2", "mul")
# How far rounding may take an error beyond its bounds.
ROUNDING = 1e-9
# Problems per piece, for blocks of problems with at least `LONG` rows each.
TOGETHER, LONG = 16, 1 << 13


@dataclass(frozen=True)
class Entry:
    """An entry of the registry.

    Attributes
    ----------
    name, short : str
        Name and short name, written before the colon.
    parameter : str
        Meaning of the text after the colon, such as "bins"; "none" if there is no parameter.
    summary : str
        Short description.
    parse : callable
        Returns the estimator for the text after the colon, or for None if there is none.
    vectors : bool
        Whether the estimator compares score vectors.
    """

    name: str
    short: str
    parameter: str
    summary: str
    parse: Callable[[str | None], Estimator]
    vectors: bool = False


class Estimator(ABC):
    """Base class of estimators. A subclass is a frozen dataclass of options with a method `fit`.

    Attributes
    ----------
    name, short, parameter, summary : str
        Entry of the registry; a class with several names overrides `entries`.
    vectors : bool
        Whether it compares score vectors (a `Simplex`) instead of one score at a time.
    norms : tuple of str
        Norms that it defines; its fit raises an error for others.
    measures_ece : bool
        Whether it estimates the ECE, rather than a different measure.
    signed : bool
        Whether a different measure may be negative.
    from_posterior : bool
        Whether it is computed from the posterior of the gap (see `calibrant.posterior`) by `fit_posterior`.
    shared : bool
        Whether the problems along the last axis of a batch are estimated jointly, as classes of one model.
    """

    vectors: bool = False
    signed: bool = False
    from_posterior: bool = False
    shared: bool = False
    name: str = ""
    short: str = ""
    parameter: str = "none"
    summary: str = ""

    @property
    def norms(self) -> tuple[Norm, ...]:
        """Norms that are defined."""
        return CANONICAL_NORMS if self.vectors else NORMS

    @property
    def measures_ece(self) -> bool:
        """Whether the ECE is estimated, rather than a different measure."""
        return True

    @classmethod
    def entries(cls) -> tuple[Entry, ...]:
        """Return the entries of this class in the registry."""
        return (Entry(cls.name, cls.short, cls.parameter, cls.summary, cls.parse, cls.vectors),)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Return the estimator for the text after the colon of its name, or for None without a colon."""
        refuse_parameter(cls.name, parameter)
        return cls()

    @abstractmethod
    def fit(self, data: Any) -> Fit:
        """Fit the data once; the result gives the error for every norm.

        Parameters
        ----------
        data : ScoreData or Simplex
            A `Simplex` if the estimator compares score vectors.
        """

    def fit_posterior(self, batch: tuple[int, ...], posterior: Posterior) -> Fit:
        """Return the fit for a posterior that is already computed; only for estimators `from_posterior`."""
        raise TypeError(f"{self} does not read the posterior")

    def for_single_class(self) -> Estimator:
        """Return the estimator of a single class."""
        return self

    def native_interval(self, data: ScoreData, norm: Norm, level: float) -> tuple[float, float] | None:
        """Return the estimator's own interval for one problem; None if it has none."""
        return None

    def n_bins_at(self, n: Array) -> int | None:
        """Return the number of bins for n rows; None if there are no bins."""
        return None

    def __str__(self) -> str:
        return self.name


@runtime_checkable
class SupportsFit(Protocol):
    """An object with a `fit` method whose result has a method `error(norm)`."""

    def fit(self, data: ScoreData) -> Any:
        """Fit the data."""
        ...


#: What callers may pass as an estimator: a name, an object with `fit`, or a function.
EstimatorLike = str | Estimator | SupportsFit | Callable[[Array, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Fit(ABC):
    """A fitted estimator.

    Parameters
    ----------
    estimator : Estimator
        The estimator that was fitted.
    """

    estimator: Estimator

    def error(self, norm: Norm = "l1") -> Array:
        """Return the calibration error of each batch entry.

        Parameters
        ----------
        norm : {"l1", "l2", "max", "mul"}
            The mean, root mean square or largest gap. For score vectors p with probabilities eta: the mean of
            sum_k |eta_k - p_k|, the root of the mean of sum_k (eta_k - p_k)^2, or ("mul") the mean of
            sum_k eta_k |eta_k - p_k|.
        """
        check_norm(norm, self.estimator)
        return _checked(self._error(norm), self.estimator)

    @abstractmethod
    def _error(self, norm: Norm) -> Array:
        """Return the error in a norm that the estimator defines."""

    @classmethod
    def joined(cls, fits: Sequence[Any]) -> list[Any]:
        """Return the fits of blocks of problems, joined to one fit if they are estimated jointly."""
        return list(fits)


@dataclass(frozen=True, eq=False)
class ValueFit(Fit):
    """A fit that holds only the value.

    Attributes
    ----------
    value : array
        Error of each batch entry.
    """

    value: Array

    def _error(self, norm: Norm) -> Array:
        return self.value


@dataclass(frozen=True, eq=False)
class SeveralFits(Fit):
    """Fits of a batch whose entries need different grids or cells.

    Parameters
    ----------
    batch : tuple of int
        Shape of the batch.
    parts : sequence of (mask, fit)
        Mask of the entries, and the fit of these entries in order.
    """

    batch: tuple[int, ...]
    parts: Sequence[tuple[Array, Any]]

    def _error(self, norm: Norm) -> Array:
        value = np.empty(self.batch)
        for mask, fit in self.parts:
            value[mask] = np.ravel(fit.error(norm))
        return value


def _checked(error: Array, estimator: Estimator) -> Array:
    """Raise an error for impossible values: an ECE is between 0 and 1, of score vectors between 0 and 2."""
    values = np.asarray(error)
    if values.dtype.kind not in "iuf":
        raise InputTypeError(f"the estimator {estimator}", "return real numbers", error)
    largest, finite = 2 if estimator.vectors else 1, np.finfo(float).max
    least = -finite if estimator.signed else -ROUNDING
    most = largest + ROUNDING if estimator.measures_ece else finite
    if values.size == 1 and least <= float(values.item()) <= most:
        return error
    if (fine := (values >= least) & (values <= most)).all():
        return error
    rule = "return a finite error"
    rule += " of at least 0" * (not estimator.signed) + f" and at most {largest}" * estimator.measures_ece
    raise InputError(f"the estimator {estimator}", rule, values[~fine][0])


def check_norm(norm: str, estimator: Estimator | None = None) -> None:
    """Raise an error for a norm that does not exist, or that the estimator does not define."""
    check_choice("norm", norm, CANONICAL_NORMS if estimator is not None and estimator.vectors else NORMS)
    if estimator is not None and norm not in estimator.norms:
        defined = f"{estimator} defines norm {', '.join(map(repr, estimator.norms))}"
        raise InputError("norm", f"suit the estimator: {defined}", norm)


def average(gap: Array, weight: Array, norm: Norm) -> Array:
    """Return the mean (l1), root mean square (l2) or largest (max) gap over the last axis.

    A gap without weight does not count.

    >>> average(np.array([0.3, -0.1]), np.array([1.0, 3.0]), "l1").round(6)
    np.float64(0.15)
    """
    gap = np.where(weight > 0, np.abs(gap), 0.0)
    if norm == "max":
        return gap.max(axis=-1)
    share = weight / weight.sum(axis=-1, keepdims=True)
    return (share * gap).sum(axis=-1) if norm == "l1" else np.sqrt((share * gap**2).sum(axis=-1))


def positions(tie_groups: Moments) -> Array:
    """Return the mean score of each tie group; for an empty group its origin."""
    offset = np.divide(tie_groups.ws, tie_groups.w, out=np.zeros(tie_groups.w.shape), where=tie_groups.w > 0)
    return np.broadcast_to(np.clip(tie_groups.origin + offset, 0.0, 1.0), tie_groups.w.shape)


def refuse_parameter(name: str, parameter: str | None) -> None:
    """Raise an error if there is a text after the colon of a name without a parameter."""
    if parameter is not None:
        raise InputError("estimator", f'be "{name}" without a parameter', f"{name}:{parameter}")


def number_or_text(text: str) -> float | str:
    """Convert a text to a number if possible.

    >>> number_or_text("0.1"), number_or_text("scott")
    (0.1, 'scott')
    """
    try:
        return float(text)
    except ValueError:
        return text


def resolve(estimator: Any, *, shared: bool = False, vectors: bool = False) -> Estimator:
    """Return the estimator for a name (see `parse`), an object with `fit`, or a function.

    >>> resolve("uniform:15", vectors=True)
    Traceback (most recent call last):
        ...
    calibrant.InputError: estimator must be an estimator of canonical calibration: 'auto',
    ...; uniform:15 is an estimator of one score
    """
    from calibrant.estimators import registry

    if isinstance(estimator, Estimator):
        if estimator.vectors != vectors:
            raise registry.other_kind(str(estimator), vectors=vectors)
        return estimator
    if isinstance(estimator, str):
        return registry.parse(estimator, shared=shared, vectors=vectors)
    if vectors:
        raise InputTypeError(
            "estimator", "be a name or a value of an estimator of canonical calibration", estimator
        )
    from calibrant.estimators.foreign import Foreign, Function

    if isinstance(estimator, SupportsFit) and not isinstance(estimator, type):
        return Foreign(estimator)
    if callable(estimator) and not isinstance(estimator, type):
        return Function(estimator)
    rule = "be a name, a value with a method fit(data), or a function f(scores, outcomes, weights)"
    hint = f'write "uniform:{estimator}"' if isinstance(estimator, int) else ""
    raise InputTypeError("estimator", rule, estimator, hint=hint)


def estimator_for(notion: Notion, estimator: Any, norm: str) -> Estimator:
    """Return the estimator for a notion; raise an error if it does not define the norm."""
    chosen = resolve(estimator, shared=notion.classwise, vectors=notion.canonical)
    check_norm(norm, chosen)
    return chosen


def measure(task: CalibrationTask, estimator: EstimatorLike, norm: Norm) -> float:
    """Return the calibration error of a calibration task."""
    chosen = estimator_for(task.notion, estimator, norm)
    if chosen.vectors:
        with one_blas_thread():
            return float(chosen.fit(task.simplex).error(norm))
    return task.notion.combine(errors_of(task, chosen, norm), norm, task.shares)


def errors_of(
    task: CalibrationTask, estimator: Estimator, norm: Norm, posterior: Posterior | None = None
) -> Array:
    """Return the error of each problem; a posterior that is computed already is used."""
    related = task.designs is not None or task.notion.classes is not ClassRelation.EXCLUSIVE
    if estimator.from_posterior and (related or posterior is not None):
        posterior = posterior_of(task) if posterior is None else posterior
        batch = (len(posterior.z),) if task.notion.classwise else ()
        return np.ravel(estimator.fit_posterior(batch, posterior).error(norm))
    errors = np.concatenate([np.ravel(fit.error(norm)) for fit in _fits(task, estimator)])
    if errors.size != (size := task.notion.size(len(task.labels))):
        raise InputError(f"the estimator {estimator}", f"return {size} errors", got=f"{errors.size}")
    return errors


def _fits(task: CalibrationTask, estimator: Estimator) -> list[Fit]:
    """Fit each block of problems; return one joint fit if classes are pooled."""
    fits: list[Fit] = []
    fit: Any = estimator.fit
    if estimator.from_posterior:
        fit = partial(fit, ties=task.has_ties)
    for block in task.stream():
        parts = pieces(block) if estimator.from_posterior else [block]
        fits += [fit(block)] if len(parts) == 1 else parallel_map(fit, parts)
    return type(fits[0]).joined(fits)


def pieces(block: ScoreData) -> list[ScoreData]:
    """Split a block of long problems, so that the sums of a piece stay in the processor's cache."""
    if not isinstance(block, Sample) or len(block.batch) != 1 or block.shape[-1] < LONG:
        return [block]
    return [block[first : first + TOGETHER] for first in range(0, block.batch[0], TOGETHER)]


def chosen_bins(estimator: Any, n_bins: Any, strategy: str | None) -> Any:
    """Return the binned estimator of scikit-learn's `n_bins` and `strategy`, by default 15 and "uniform".

    Without either it is the given estimator. `inputs.helpful` raises an error if both are given.

    >>> str(chosen_bins("auto", 10, "quantile")), chosen_bins("auto", None, None)
    ('adaptive:10', 'auto')
    """
    if n_bins is None and strategy is None:
        return estimator
    from calibrant.estimators.binned import Binned

    strategy = "uniform" if strategy is None else strategy
    check_choice("strategy", strategy, ("uniform", "quantile"))
    return Binned("uniform" if strategy == "uniform" else "adaptive", 15 if n_bins is None else n_bins)
