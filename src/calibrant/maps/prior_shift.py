"""`PriorShift`: probabilities for a population whose class frequencies differ from the training data.

Under a prior shift (label shift) the scores of each class keep their distribution and only the frequencies of
the classes change. By Bayes' theorem the probability of class k is then multiplied by target_k / train_k and
renormalised. The method is described in docs/methods/prior-shift.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.inputs import InputError, Predictions, Serializable, check_choice
from calibrant.inputs.codec import FAR_FROM_OVERFLOW, Bounds, Level, Shape
from calibrant.inputs.printed import Block
from calibrant.inputs.wording import few_of, sample_size
from calibrant.maps.calibrator import Calibrator
from calibrant.maps.forms import Form, Formula
from calibrant.maps.saved import SavedCalibrator
from calibrant.maps.score_map import NotFittedError, ScoreMap
from calibrant.parallel import one_blas_thread
from calibrant.posterior.log_odds.cells import NEAREST, log_odds
from calibrant.posterior.process import softmax
from calibrant.score_data import Array

# Refits of the calibrator to reweighted rows: usual number, smallest number, and limit for the total size of
# their matrices. They bound the cost.
REFITS, MIN_REFITS, MOST_NUMBERS = 50, 20, 1 << 24
# Posterior draws, candidates for each of them (importance sampling, where the matrix of all candidates has at
# most MOST_NUMBERS numbers), and degrees of freedom of the t distribution of the candidates.
DRAWS, CANDIDATES, DEGREES = 500, 4, 5.0
# Maximum number of groups into which the scores of two classes are merged. It bounds the cost.
GROUPS = 1024
# Maximum number of Newton steps, and smallest step and gradient per row at which the search for a mode ends.
STEPS, SMALLEST_STEP, TOLERANCE = 200, 1e-6, 1e-10
# Level of the calibrator's band from which standard deviations are computed.
BAND_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class SavedPriorShift(Serializable):
    """A fitted `PriorShift`.

    Attributes
    ----------
    classes : tuple
    vector : bool
        Whether scores are those of a single class.
    n : float
        Effective number of unlabelled rows.
    level : float
    log_ratio : array (classes,)
        Log of target frequency over training frequency, up to a constant.
    target : array (classes,) or None
        Class frequencies of the target population, if known.
    prior_draws, draws : array (draws, classes) or None
        Posterior draws of `target` and of `log_ratio`.
    calibrator : SavedCalibrator or None
    """

    _has_schema: ClassVar[bool] = False
    _constants: ClassVar[Mapping[str, Any]] = MappingProxyType({"calibrant": "prior shift", "format": 1})
    classes: tuple[Hashable, ...]
    vector: bool
    n: Annotated[float, Bounds(0)]
    level: Level
    log_ratio: Annotated[Array, Shape((None,)), FAR_FROM_OVERFLOW]
    target: Annotated[Array, Shape((None,)), Bounds(0, 1)] | None
    prior_draws: Annotated[Array, Shape((None, None)), Bounds(0, 1)] | None
    draws: Annotated[Array, Shape((None, None)), FAR_FROM_OVERFLOW] | None
    calibrator: SavedCalibrator | None

    def _check_fields(self) -> None:
        """Raise an error for arrays of another number of classes."""
        size = len(self.classes)
        for name in ("log_ratio", "target", "prior_draws", "draws"):
            value = getattr(self, name)
            if value is not None and value.shape[-1] != size:
                raise InputError(name, f"have {size} columns, as classes", got=f"shape {value.shape}")
        if (self.prior_draws is None) != (self.draws is None):
            raise InputError("draws", "be given together with prior_draws")


class Shift(NamedTuple):
    """A shift of class frequencies, with the fields of `SavedPriorShift` of the same names."""

    log_ratio: Array
    target: Array | None
    prior_draws: Array | None = None
    draws: Array | None = None


class PriorShift(ScoreMap):
    """Adjust scores to a population with different class frequencies (prior shift, label shift).

    It follows the conventions of scikit-learn estimators. If the frequencies of the training data and of the
    target population are known, or the sampling rates or class weights of the training, no fit is needed.
    Otherwise `fit` takes unlabelled scores of the target population.

    Parameters
    ----------
    train : float, sequence or mapping, optional
        Class frequencies to which the scores refer, usually those of the training data: the share of the
        positive class, or one share (or number of rows) for each class.
    target : float, sequence or mapping, optional
        Class frequencies of the target population. Without `train`, `fit` finds the shift for which the mean
        of the adjusted scores is this. Without `target`, `fit` estimates it by maximum likelihood (EM).
    sampling : float, sequence or mapping, optional
        Share of the rows of each class that was sampled for training; a float is that of the negative class.
        Without `target`, scores are adjusted to the population that was sampled.
    class_weight : float, sequence, mapping or "balanced", optional
        Weight of each class in the training; a float is that of the positive class. "balanced" weights are
        inverse to `train`. Without `target`, scores are adjusted to the unweighted data.
    calibrator : Calibrator, optional
        Fitted calibrator that is applied to the scores first. The uncertainty of its map is part of the
        intervals. A calibrator loaded from a file has bands but no rows, so its intervals are wider. An
        unfitted calibrator selects the map that `fit` learns from `source`.
    labels : sequence, optional
        Class of each column, for mappings and to match the columns of a frame by name.
    level : float, default=0.95
        Level of the interval of the estimated frequencies.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the posterior draws.

    Attributes
    ----------
    classes_ : tuple
        The class of each column; for 1-D scores the negative and the positive class.
    calibrator_ : Calibrator or None
        The calibrator that is applied first.
    n_ : float
        Effective number of unlabelled rows.

    See Also
    --------
    Calibrator : Fit a calibration map to labelled rows of the target population.

    Examples
    --------
    >>> PriorShift(train=0.5, target=0.1).predict_proba([0.5, 0.9]).round(2)
    array([0.1, 0.5])
    >>> PriorShift(sampling=0.1).predict_proba([0.5]).round(3)  # trained on a tenth of the negatives
    array([0.091])
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000) + 2 * (rng.random(2000) < 0.2)  # 20 % positives
    >>> score = 1 / (1 + np.exp(2 - 2 * x))  # calibrated where half of the rows are positive
    >>> shift = PriorShift(train=0.5).fit(score)
    >>> shift
    PriorShift(train=0.5, target=0.19, low=0.17, high=0.22)
    """

    _parameters = ("train", "target", "sampling", "class_weight", "calibrator", "labels", "level", "rng")
    _file = SavedPriorShift
    classes_: tuple[Any, ...]
    calibrator_: Calibrator | None

    def __init__(
        self,
        train: Any = None,
        target: Any = None,
        *,
        sampling: Any = None,
        class_weight: Any = None,
        calibrator: Calibrator | None = None,
        labels: Sequence[Hashable] | None = None,
        level: float = 0.95,
        rng: inputs.Seed = 0,
    ) -> None:
        self.train = train
        self._target_parameter = target
        self.sampling = sampling
        self.class_weight = class_weight
        self.calibrator = calibrator
        self.labels = labels
        self.level = level
        self.rng = rng
        self._shift: Shift | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor; `target` is the one that was given.

        Parameters
        ----------
        deep : bool, default=True
            Accepted for compatibility with scikit-learn.
        """
        names = (name for name in self._parameters if name != "target")
        return {name: getattr(self, name) for name in names} | {"target": self._target_parameter}

    @property
    def target(self) -> Any:
        """Class frequencies of the target population: the estimate after `fit`, else those that are known.

        It is a number for 1-D scores, and an array for a matrix; before `fit` it is what was given.
        """
        given = self._target_parameter
        if self._shift is None and given is not None:
            return given
        try:
            fitted, shift = self._fitted()
        except NotFittedError:
            return None
        return None if shift.target is None else fitted._class_shares(shift.target)

    @property
    def low(self) -> Any:
        """Lower end of the interval of each estimated frequency; `target` itself if that is known."""
        return self._end((1 - self.level) / 2)

    @property
    def high(self) -> Any:
        """Upper end of the interval of each estimated frequency; `target` itself if that is known."""
        return self._end((1 + self.level) / 2)

    @one_blas_thread()
    @inputs.helpful
    def fit(
        self,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        source: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Estimate the shift from unlabelled scores of the target population.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores of the positive class, or of every class.
        sample_weight : array of shape (N,), optional
            Importance weight of each row, on any scale.
        counts : array of shape (N,), optional
            Number of identical rows that each row represents.
        source : tuple of arrays, optional
            Scores and labels of the training population, of rows that the model was not trained on. The
            calibrator is fitted to them ("logistic" or, for more than two classes, "vector" unless another
            one was given), and its error becomes part of the intervals. They also give `train`.

        Returns
        -------
        PriorShift
            The fitted calibrator itself.

        See Also
        --------
        predict_proba : Adjust scores.

        Examples
        --------
        >>> PriorShift(target=0.2).fit([0.3, 0.5, 0.7]).predict_proba([0.3, 0.5, 0.7]).mean().round(6)
        np.float64(0.2)
        """
        # A fit that is refused leaves the shift as it was.
        fitted = copy(self)._fit(y_prob, sample_weight, counts, source)
        self.__dict__.update(vars(fitted))
        return self

    def _fit(self, y_prob: Any, sample_weight: Any, counts: Any, source: tuple[Any, Any] | None) -> Self:
        """Estimate the shift; see `fit`."""
        rng = inputs.generator(self.rng)
        inputs.level(self.level)
        data = inputs.unlabelled(y_prob, sample_weight=sample_weight, counts=counts)
        score, weight = data.score.astype(np.float64), np.ones(len(data.score))
        names = inputs.column_names(y_prob)
        if data.weight is not None:
            weight = data.weight * (1.0 if data.counts else data.weight.sum() / np.square(data.weight).sum())
        if score.ndim == 1 or score.shape[1] == 2:
            score, weight = _grouped(score, weight)
        self.calibrator_, labelled = self.calibrator, None
        if source is not None:
            template = self.calibrator or _default_calibrator(source[0], self.labels)
            labelled = inputs.predictions(*source[::-1], labels=template.labels, pos_label=template.pos_label)
            self.calibrator_ = Calibrator(**template.get_params())._fit_predictions(labelled)
        self._set_classes(None if score.ndim == 1 else score.shape[1])
        score = self._in_order(score, names)
        self.n_: float = float(weight.sum())
        size = len(self.classes_)
        probability = self._source_probability(score)
        if (known := self._known(size)) is not None:
            if known.target is None:
                known = known._replace(target=weight @ softmax(_log(probability) + known.log_ratio) / self.n_)
            self._shift = known
            return self
        if (target := self._shares("target", self._target_parameter, size)) is not None:
            self._shift = Shift(_matched(probability, weight, target), target)
            return self
        given = self._shares("train", self.train, size)
        if labelled is None and self.calibrator_ is not None:
            labelled = self.calibrator_._rows()
        if given is None and labelled is None:
            hint = "or labelled rows of that population as source="
            raise InputError("train", "be given", None, hint=hint)
        train = _frequencies(labelled) if given is None else given  # type: ignore[arg-type]
        sources = [(probability, train)]
        if self.calibrator_ is not None and labelled is not None:
            mapped = replace(labelled, score=self.calibrator_.predict_proba(labelled.score))
            sources = _spread(list(_refitted(mapped, probability, given, rng)), self.level)
        elif self.calibrator_ is not None:
            bounds = _class_bounds(self.calibrator_, score, BAND_LEVEL)
            sources = _spread([(p, train) for p in _band_draws(bounds, probability, rng)], self.level)
        prior = softmax(_mode(probability / train, weight, 0.0)[0])
        each = -(-DRAWS // len(sources))
        drawn = [_drawn(p / base, weight, each, rng) for p, base in sources]
        pairs = zip(drawn, sources, strict=True)
        draws = np.concatenate([_log(priors) - np.log(base) for priors, (_, base) in pairs])
        self._shift = Shift(_log(prior) - np.log(train), prior, np.concatenate(drawn), draws)
        return self

    @inputs.helpful
    def predict_proba(self, y_prob: ArrayLike) -> Array:
        """Return probabilities in the target population.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores, as for `fit`.

        Returns
        -------
        array
            Probabilities in the shape of `y_prob`.

        See Also
        --------
        predict_interval : Interval for each probability.

        Examples
        --------
        >>> shift = PriorShift(train=[0.5, 0.3, 0.2], target=[0.2, 0.3, 0.5])
        >>> shift.predict_proba([[0.6, 0.2, 0.2]]).round(2)
        array([[0.26, 0.21, 0.53]])
        """
        score, fitted, shift = self._applied(y_prob)
        probability = softmax(_log(fitted._source_probability(score)) + shift.log_ratio)
        return probability[:, 1] if score.ndim == 1 else probability

    @inputs.helpful
    def predict_interval(self, y_prob: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each probability in the target population.

        It combines the interval of the shift and that of the calibrator, by the root of the sum of squares of
        their distances in log-odds. Where both are known there is no uncertainty, and both ends are the
        probability.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores, as for `predict_proba`.
        level : float, default=0.95
            Level of the interval.

        Returns
        -------
        low, high : array
            Lower and upper ends, in the shape of `y_prob`.

        See Also
        --------
        predict_proba : The probabilities themselves.

        Examples
        --------
        >>> low, high = PriorShift(train=0.5).fit([0.1, 0.3, 0.8]).predict_interval([0.3])
        >>> bool(low < 0.3 < high)
        True
        """
        level = inputs.level(level)
        score, fitted, shift = self._applied(y_prob)
        log = _log(fitted._source_probability(score))
        middle = _logit(softmax(log + shift.log_ratio))
        ends = np.stack([middle, middle])
        if shift.draws is not None:
            step = max(1, MOST_NUMBERS // shift.draws.size)
            for a in range(0, len(log), step):
                drawn = _logit(softmax(log[a : a + step, None] + shift.draws))
                ends[:, a : a + step] = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=1)
        square = (ends - middle) ** 2 * (np.sign(ends - middle) == np.array([-1, 1])[:, None, None])
        if fitted.calibrator_ is not None:
            bounds, centre = _class_bounds(fitted.calibrator_, score, level), _logit(np.exp(log))
            square += np.stack([_logit(end) - centre for end in bounds]) ** 2
        distance = np.sqrt(square)
        low, high = (1 / (1 + np.exp(-end)) for end in (middle - distance[0], middle + distance[1]))
        return (low[:, 1], high[:, 1]) if score.ndim == 1 else (low, high)

    def _saved(self) -> SavedPriorShift:
        fitted, shift = self._fitted()
        calibrator = None if fitted.calibrator_ is None else fitted.calibrator_._saved()
        about = tuple(fitted.classes_), fitted._vector, fitted.n_, self.level
        return SavedPriorShift(*about, *shift, calibrator)

    @classmethod
    def _restored(cls, saved: SavedPriorShift) -> Self:
        calibrator = None if saved.calibrator is None else Calibrator._restored(saved.calibrator)
        restored = cls(calibrator=calibrator, labels=saved.classes, level=saved.level)
        restored.classes_, restored.calibrator_ = saved.classes, calibrator
        restored._vector, restored.n_ = saved.vector, saved.n
        restored._shift = Shift(*(getattr(saved, name) for name in Shift._fields))
        return restored

    def __sklearn_is_fitted__(self) -> bool:
        try:
            return self._fitted() is not None
        except InputError:
            return False

    def __repr__(self) -> str:
        params = self.get_params()
        values = {name: params[name] for name in ("train", "target", "sampling", "class_weight")}
        if self._shift is not None and self._shift.draws is not None and self._vector:
            values |= {name: round(getattr(self, name), 2) for name in ("target", "low", "high")}
        shown = (f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"PriorShift({', '.join(shown)})"

    # --- private ---

    def _printed(self) -> Iterator[Block]:
        if self._shift is None:
            known = "the parameters are sufficient, fit() is not needed"
            yield "prior shift", known if self.__sklearn_is_fitted__() else "not fitted"
            return
        yield "prior shift", "fitted"
        yield "data", sample_size(self.n_)
        low, high, prior = (np.atleast_1d(end) for end in (self.low, self.high, self.target))
        shares = [f"{p:.3f} ({a:.3f} to {b:.3f})" for p, a, b in zip(prior, low, high, strict=True)]
        yield ("target share" if self._vector else "target shares"), few_of(shares, 6)
        if self._shift.draws is not None and self.calibrator_ is None:
            yield "The intervals assume that the scores are calibrated in the training population."

    def _steps(self) -> Sequence[Form]:
        """Return the map of the calibrator, if there is one, and the shift of the log-odds."""
        fitted, shift = self._fitted()
        if len(shift.log_ratio) > 2:
            raise InputError("calibrator", "map one score", got=f"{len(shift.log_ratio)} classes")
        first = [] if fitted.calibrator_ is None else fitted.calibrator_._steps()
        return [*first, Formula(shift=float(shift.log_ratio[1] - shift.log_ratio[0]))]

    def _applied(self, y_prob: ArrayLike) -> tuple[Array, Self, Shift]:
        """Return validated scores, the estimator that applies to them, and its shift."""
        score = inputs.unlabelled(y_prob).score.astype(np.float64)
        fitted, shift = self._fitted(score)
        return fitted._in_order(score, inputs.column_names(y_prob)), fitted, shift

    def _in_order(self, score: Array, names: Sequence[Any] | None) -> Array:
        """Put the columns of a frame in the order of the classes."""
        if names is None or score.ndim == 1:
            return score
        if self.calibrator_ is not None:
            order = self.calibrator_._column_order(names)
        else:
            order = inputs.column_order(names, self.classes_)
        return score if order is None else score[:, order]

    def _fitted(self, score: Array | None = None) -> tuple[Self, Shift]:
        """Return the estimator itself, or one that is made of its parameters if these are sufficient."""
        if self._shift is not None:
            if score is not None and score.shape[1:] != (() if self._vector else (len(self.classes_),)):
                rule = "be a vector" if self._vector else f"have {len(self.classes_)} columns"
                raise InputError("y_prob", rule, score.shape, got=f"shape {score.shape}")
            return self, self._shift
        columns = None if score is None or score.ndim == 1 else score.shape[1]
        if score is None:  # without scores, more than two frequencies show that scores have columns
            parameters = (self.train, self._target_parameter, self.sampling, self.class_weight)
            sizes = (len(value) if isinstance(value, Mapping) else np.size(value) for value in parameters)
            columns = next((size for size in sizes if size > 2), None)
        fitted = type(self)(**self.get_params())
        fitted.calibrator_, fitted.n_ = self.calibrator, 0.0
        fitted._set_classes(columns)
        if (known := fitted._known(len(fitted.classes_))) is None:
            raise NotFittedError
        return fitted, known

    def _set_classes(self, columns: int | None) -> None:
        """Store the classes, and whether scores are 1-D (`columns` is None)."""
        if self.calibrator_ is not None:
            self._vector = self.calibrator_.is_vector  # a calibrator that is not fitted is refused
            self.classes_ = tuple(self.calibrator_.classes_)
            return
        self._vector, size = columns is None, columns or 2
        self.classes_ = tuple(range(size)) if self.labels is None else tuple(self.labels)
        if len(self.classes_) != size:
            raise InputError("labels", f"name {size} classes", self.classes_)

    def _source_probability(self, score: Array) -> Array:
        """Return the probability of every class in the training population, (rows, classes)."""
        if self.calibrator_ is not None:
            score = self.calibrator_.predict_proba(score)
        return np.stack([1 - score, score], axis=1) if score.ndim == 1 else score

    def _known(self, size: int) -> Shift | None:
        """Return the shift that the parameters determine; None if `fit` estimates it."""
        train = self._shares("train", self.train, size)
        target = self._shares("target", self._target_parameter, size)
        if self.sampling is None and self.class_weight is None:
            return None if train is None or target is None else Shift(np.log(target / train), target)
        if self.sampling is not None and self.class_weight is not None:
            raise InputError("sampling and class_weight", "not be given together")
        if isinstance(self.class_weight, str):
            check_choice("class_weight", self.class_weight, ("balanced",))
            if train is None:
                raise InputError("train", 'be given with class_weight="balanced"', None)
            rate = 1 / (size * train)
        else:
            name = "sampling" if self.class_weight is None else "class_weight"
            rate = self._numbers(name, getattr(self, name), size)
        if target is None:
            return Shift(-np.log(rate), train)
        if train is None:
            raise InputError("train", "be given where both target and what training changed are", None)
        return Shift(np.log(target / (train * rate)), target)

    def _shares(self, name: str, value: Any, size: int) -> Array | None:
        """Return class frequencies that sum to 1; None if there are none."""
        if value is None:
            return None
        if inputs.is_number(value):
            inputs.level(value, name)  # a share must be strictly between 0 and 1
        numbers = self._numbers(name, value, size)
        return numbers / numbers.sum()

    def _numbers(self, name: str, value: Any, size: int) -> Array:
        """Return a positive number for each class."""
        if inputs.is_number(value):
            if size != 2:
                raise InputError(name, f"have {size} numbers, one for each class", value)
            pairs = {"sampling": (value, 1.0), "class_weight": (1.0, value)}
            value = pairs.get(name, (1 - value, value))
        elif isinstance(value, Mapping):
            if set(value) != set(self.classes_):
                raise InputError(name, f"have the classes {inputs.show(*self.classes_)}", tuple(value))
            value = [value[label] for label in self.classes_]
        numbers = np.asarray(inputs.read(name, value)[0], dtype=np.float64)
        if numbers.shape != (size,) or not (np.isfinite(numbers) & (numbers > 0)).all():
            raise InputError(name, f"be {size} positive numbers", value)
        return numbers

    def _class_shares(self, prior: Array) -> Any:
        """Return the share of the positive class for 1-D scores, else those of all classes."""
        return float(prior[1]) if self._vector else prior

    def _end(self, share: float) -> Any:
        """Return an end of the interval of the estimated frequencies, which contains the estimate."""
        if self._shift is None and self._target_parameter is not None:
            return self.target
        _, shift = self._fitted()
        prior, draws = shift.target, shift.prior_draws
        if prior is None or draws is None:
            return self.target
        end = np.quantile(draws, share, axis=0)
        return self._class_shares((np.minimum if share < 0.5 else np.maximum)(end, prior))


def _default_calibrator(y_prob: Any, labels: Any) -> Calibrator:
    """Return the unfitted default calibrator of labelled rows."""
    return Calibrator("vector" if np.shape(y_prob)[1:] > (2,) else "logistic", labels=labels)


def _frequencies(data: Predictions) -> Array:
    """Return the class frequencies, with half a row more of each class so that none is 0."""
    weight = None if data.weight is None else data.weight * (len(data.code) / data.weight.sum())
    count = np.bincount(data.code.astype(np.intp), weight, len(data.labels)) + 0.5
    return np.asarray(count / count.sum())


def _refitted(
    data: Predictions, probability: Array, train: Array | None, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Yield probabilities and training frequencies that reweighted rows correct (Bayesian bootstrap).

    The corrections of calibrated scores are linear in their log-odds: such errors of a map move the estimated
    frequencies most.
    """
    vector = data.score.ndim == 1
    calibrator = _default_calibrator(data.score, data.labels)
    times = np.ones(len(data.code)) if data.weight is None else data.weight
    for _ in range(_refits(max(probability.size, data.score.size))):
        weight = rng.standard_gamma(times) if data.counts else times * rng.standard_exponential(len(times))
        drawn = replace(data, weight=np.maximum(weight, 1e-12), counts=False, positive=1 if vector else None)
        calibrator._fit_predictions(drawn)
        p = calibrator.predict_proba(probability[:, 1] if vector else probability)
        yield np.stack([1 - p, p], axis=1) if vector else p, _frequencies(drawn) if train is None else train


def _refits(numbers: int) -> int:
    """Return the number of refits, from the size of the scores."""
    return int(np.clip(MOST_NUMBERS // numbers, MIN_REFITS, REFITS))


def _band_draws(bounds: tuple[Array, Array], probability: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield probabilities of a calibrator that deviate by its band, equally at all scores of a class.

    Deviations that are equal at all scores move the estimated frequencies most.
    """
    middle, deviate = _logit(probability), NormalDist().inv_cdf((1 + BAND_LEVEL) / 2)
    below, above = (np.abs(_logit(end) - middle) / deviate for end in bounds)
    for z in rng.standard_normal((_refits(probability.size), probability.shape[1])):
        if probability.shape[1] == 2:
            z = np.array([-z[1], z[1]])
        p = 1 / (1 + np.exp(-(middle + z * np.where(z > 0, above, below))))
        yield p / p.sum(axis=1, keepdims=True)


def _spread(sources: list[tuple[Array, Array]], level: float) -> list[tuple[Array, Array]]:
    """Move refits away from their mean, because the outer quantiles of few draws are too close to it.

    The q quantile of m independent draws has the expected probability (1 + (m - 1) q) / (m + 1).
    """
    tail, size = (1 - level) / 2, len(sources)
    normal = NormalDist().inv_cdf
    factor = normal(tail) / normal((1 + (size - 1) * tail) / (size + 1))

    def spread(values: Iterable[Array]) -> Iterator[Array]:
        logs = np.stack([_log(value) for value in values])
        return (softmax(each) for each in logs.mean(axis=0) + factor * (logs - logs.mean(axis=0)))

    return list(zip(*(spread(values) for values in zip(*sources, strict=True)), strict=True))


def _log(probability: Array) -> Array:
    return np.log(np.maximum(probability, 1e-300))


def _logit(probability: Array) -> Array:
    return log_odds(probability, NEAREST)


def _class_bounds(calibrator: Calibrator, score: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the calibrator's intervals for every class, (rows, classes) each."""
    low, high = calibrator.predict_interval(score, level)
    if score.ndim == 2:
        return low, high
    return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)


def _grouped(score: Array, weight: Array) -> tuple[Array, Array]:
    """Merge neighbouring scores of two classes into at most `GROUPS` groups with their mean score."""
    if len(score) <= GROUPS:
        return score, weight
    key = score if score.ndim == 1 else score[:, 1]
    order = np.argsort(key, kind="stable")
    group = np.arange(len(key)) * GROUPS // len(key)
    mass = np.bincount(group, weight[order])
    mean = np.bincount(group, (weight * key)[order]) / mass
    return (mean if score.ndim == 1 else np.stack([1 - mean, mean], axis=1)), mass


def _matched(probability: Array, weight: Array, target: Array) -> Array:
    """Return the log ratios for which the mean adjusted probabilities are the target frequencies."""
    log, shift = _log(probability), np.zeros(len(target))
    for _ in range(100 * STEPS):
        step = np.log(target) - _log(weight @ softmax(log + shift) / weight.sum())
        shift = shift + step
        if np.abs(step).max() < TOLERANCE:
            break
    return shift


def _value(ratio: Array, weight: Array, log_prior: Array, pseudo: float) -> Array:
    """Return the log posterior of log class frequencies (..., classes), up to a constant."""
    prior = softmax(log_prior)
    return weight @ _log(ratio @ np.moveaxis(prior, -1, 0)) + pseudo * _log(prior).sum(axis=-1)


def _mode(ratio: Array, weight: Array, pseudo: float) -> tuple[Array, Array]:
    """Return the log class frequencies of the largest likelihood, and the information of all but the last.

    The steps are those of Newton where the log likelihood is concave, and natural gradients elsewhere; both
    are halved until they increase it. The fixed point is that of the EM algorithm of Saerens et al. (2002):
    each class frequency is the mean of its adjusted probabilities (and of `pseudo` rows of each class).

    Parameters
    ----------
    ratio : array (rows, classes)
        Probability over training frequency of each class.
    weight : array (rows,)
        Weight of each row.
    pseudo : float
        1 for a uniform prior of the class frequencies, in the coordinates of log frequencies; 0 for none.
    """
    size, total = ratio.shape[1], weight.sum() + pseudo * ratio.shape[1]
    x, information = np.zeros(size), np.eye(size - 1)
    value = float(_value(ratio, weight, x, pseudo))
    for _ in range(STEPS):
        prior = softmax(x)
        share = ratio * prior
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        mass = weight @ share
        gradient = (mass + pseudo - total * prior)[:-1]
        spread = total * (np.diag(prior) - np.outer(prior, prior))
        floor = spread[:-1, :-1] + 1e-12 * total * np.eye(size - 1)
        information = floor - (np.diag(mass) - (share * weight[:, None]).T @ share)[:-1, :-1]
        if np.abs(gradient).max() <= TOLERANCE * total:
            break
        concave = np.linalg.eigvalsh(information)[0] > SMALLEST_STEP * np.linalg.eigvalsh(floor)[0]
        step = np.append(np.linalg.solve(information if concave else floor, gradient), 0.0)
        step *= min(1.0, 5 / np.abs(step).max())
        while (moved := float(_value(ratio, weight, x + step, pseudo))) < value and np.abs(
            step
        ).max() > SMALLEST_STEP:
            step = step / 2
        if moved <= value:
            break
        x, value = x + step, moved
    return x, information


def _drawn(ratio: Array, weight: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw class frequencies from their posterior under a uniform prior (importance resampling)."""
    from scipy.special import ndtri, stdtrit

    x, information = _mode(ratio, weight, 1.0)
    least = 1e-6 * np.trace(information) / len(information)
    values, vectors = np.linalg.eigh(information)
    root = vectors / np.sqrt(np.maximum(values, least))
    resampled = size * CANDIDATES * ratio.size <= MOST_NUMBERS
    shape = (size * CANDIDATES if resampled else size, len(root))
    # Stratified in each dimension, so that the ends of an interval depend little on the random numbers.
    strata = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    uniform = (rng.permuted(strata, axis=0) + rng.random(shape)) / shape[0]
    deviate = stdtrit(DEGREES, uniform) if resampled else ndtri(uniform)
    candidates = np.zeros((shape[0], len(x)))
    candidates[:, :-1] = x[:-1] + deviate @ root.T
    prior = softmax(candidates)
    if not resampled:
        return prior
    density = -(DEGREES + 1) / 2 * np.log1p(deviate**2 / DEGREES).sum(axis=1)
    log = _value(ratio, weight, candidates, 1.0) - density
    order = np.argsort(candidates[:, 0])
    cumulative = np.cumsum(np.exp(log - log.max())[order])
    point = (np.arange(size) + rng.random()) / size * cumulative[-1]
    return np.asarray(prior[order[np.searchsorted(cumulative, point)]])
