"""`Calibrator`: learns from scores and outcomes what scores mean, and says it of new ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.atomic import write_whole
from calibrant.compiled.blas import one_blas_thread
from calibrant.curves.posterior_curve import beyond_all_scores
from calibrant.inputs import InputError, InputTypeError, InputWarning, Predictions
from calibrant.maps.binary import Problem
from calibrant.maps.forms import Form, Pair
from calibrant.maps.methods import METHODS
from calibrant.maps.multiclass import Softmax
from calibrant.maps.saved import LEVELS, Band, SavedCalibrator
from calibrant.posterior.log_odds.cells import expit
from calibrant.posterior.process import softmax
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex, class_order
from calibrant.tasks import CalibrationTask, named

Monotone = Literal["auto"] | bool
# So many log-odds do not all lie in [0, 1] by chance, unless the model is never certain.
MANY = 20
# Methods that can be told to be increasing, or not to be.
BENDING = ("auto", "spline")


class Calibrator:
    """Map scores to probabilities.

    Parameters
    ----------
    method : str
        "auto" averages, by the evidence for each, over leaving the scores as they are and over shifting,
        stretching and bending them in the log-odds, smoothly or in one place; with little evidence it
        leaves them alone. Others by name: see `calibrator_names`.
    monotone : {"auto", True, False}
        Whether larger scores must mean larger probabilities. "auto": they do unless the data object, or
        scores that repeat deviate each by itself.
    from_logits : bool
        Whether scores are log-odds (a vector) or logits (a matrix) instead of probabilities. Rows that are
        probabilities already are refused.
    labels, pos_label : optional
        The class of each column, and the class that a vector of scores is of, as in `calibrant.ece`.

    Attributes
    ----------
    classes_ : tuple
        The class of each column; of a vector of scores the negative and the positive one.
    n_ : float
        Effective number of rows it has learned from.
    columns_ : tuple of str or None
        Names of the columns of scores that it was fitted to, where these have names.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> outcome = rng.random(2000) < score**2
    >>> calibrator = Calibrator().fit(score, outcome)
    >>> calibrator.predict_proba([0.3, 0.7]).round(2)
    array([0.09, 0.47])
    >>> low, high = calibrator.predict_interval([0.3, 0.7])
    >>> bool((low < [0.09, 0.49]).all() and ([0.09, 0.49] < high).all())
    True
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        monotone: Monotone = "auto",
        from_logits: bool = False,
        labels: Sequence[Hashable] | None = None,
        pos_label: Hashable = None,
    ) -> None:
        self.method = method
        self.monotone = monotone
        self.from_logits = from_logits
        self.labels = labels
        self.pos_label = pos_label
        self._problems: list[Problem] = []
        self._forms: list[Form] = []
        self._bands: list[dict[float, Band]] = []
        self._whole: Softmax | None = None

    def fit(
        self,
        y_prob: ArrayLike,
        y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        counts: ArrayLike | None = None,
        percent: bool = False,
    ) -> Self:
        """Learn from scores and labels, in scikit-learn's order.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores of the positive class, or of every class.
        y_true : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Importance of each row, on any scale; integers and floats mean the same.
        counts : array of shape (N,), optional
            How many equal rows each row stands for; not together with `sample_weight`.
        percent : bool
            Whether scores are percentages, from 0 to 100; `predict_proba` has to be told again.
        """
        _refuse_swapped(y_prob, y_true)
        if self.from_logits:
            _warn_of_probabilities(y_prob)
        data = inputs.predictions(
            y_true,
            _probabilities(y_prob) if self.from_logits else y_prob,
            sample_weight=sample_weight,
            counts=counts,
            labels=self.labels,
            pos_label=self.pos_label,
            percent=self._are_percentages(percent),
        )
        if percent:
            inputs.check_percent(float(data.score.max()))
        self.fit_predictions(data)
        self.columns_ = _column_names(y_prob, vector=data.score.ndim == 1)
        return self

    def _are_percentages(self, percent: bool) -> bool:
        """Refuse percentages where the scores are logits."""
        if percent and self.from_logits:
            raise InputError("percent", "be False where scores are logits", percent)
        return percent

    def fit_question(self, task: CalibrationTask) -> Self:
        """Learn from a question, of rows or of sums: one map, or one for each class."""
        self._check_choices()
        if METHODS[self.method].one is None:
            raise InputError("method", "be a map of one score", self.method, hint="it needs whole rows")
        self.classes_, self.columns_ = task.labels, None
        self._vector = not task.notion.classwise
        self._positive = task.positive
        if task.notion.one_class and task.positive is not None:
            # One column of several: its class, and all others as the negative one.
            others = tuple(label for label in self.classes_ if label != self.classes_[task.positive])
            positive = self.classes_[task.positive]
            self.classes_, self._positive = (others[0] if len(others) == 1 else others, positive), 1
        return self._fit_each(task)

    @one_blas_thread()
    def fit_predictions(self, data: Predictions) -> Self:
        """Learn from predictions that are checked."""
        self._check_choices()
        self.classes_, self.columns_ = data.labels, None
        self._vector = data.score.ndim == 1
        self._positive = data.positive
        two = self._vector or len(data.labels) == 2
        self.notion_ = "class" if two else "classwise"
        method = METHODS[self.method]
        if two and method.one is None:
            raise InputError(
                "method", "be a map of one score", self.method, got=f"{self.method!r} for two classes"
            )
        if two or method.many is None:
            return self._fit_each(CalibrationTask.of(data, named(self.notion_)))
        columns = class_order(data.score, data.code, data.weight, data.labels)
        place = np.argsort(columns)
        rows = Simplex.of(data.score[:, columns], place[data.code], data.weight, counts=data.counts)
        self.n_ = rows.n
        self._problems, self._forms, self._bands = [], [], []
        self._whole = method.many(rows).ordered(place)
        return self

    def _fit_each(self, task: CalibrationTask) -> Self:
        """Fit one map, or one for each class."""
        fit = METHODS[self.method].one
        assert fit is not None
        options = {} if self.monotone == "auto" else {"monotone": bool(self.monotone)}
        self.n_, self.notion_ = float(task.n), task.notion.name
        self._whole = None
        self._problems = [Problem(evidence) for evidence in task.problems]
        self._forms = [fit(problem, **options) for problem in self._problems]
        self._bands = [{} for _ in self._problems]
        return self

    def predict_proba(self, y_prob: ArrayLike, *, percent: bool = False) -> Array:
        """Return probabilities: of a vector of scores a vector, of a matrix a matrix.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores like those it has learned from.
        percent : bool
            Whether scores are percentages, from 0 to 100; probabilities are not.
        """
        score = self._scores(y_prob, percent)
        if self._whole is not None:
            return self._whole.probability(score)
        columns = zip(self._forms, self._columns(score), strict=True)
        each = self._joined([form.probability(column) for form, column in columns])
        if len(self._forms) == 1:
            return each
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    def predict_interval(
        self, y_prob: ArrayLike, level: float = 0.95, *, percent: bool = False
    ) -> tuple[Array, Array]:
        """Return the ends of an interval for each probability (of the outcome's chance, not of the outcome).

        It is the band of the reliability curve, widened where needed to hold the prediction.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
        level : float
        percent : bool
            As for `predict_proba`.
        """
        level = inputs.level(level)
        middle, score = self.predict_proba(y_prob, percent=percent), self._scores(y_prob, percent)
        if self._whole is not None:
            low, high = self._whole.interval(score, NormalDist().inv_cdf((1 + level) / 2))
        else:
            ends = [self._band(k, level).ends(column) for k, column in enumerate(self._columns(score))]
            low, high = (self._joined(part) for part in zip(*ends, strict=True))
        # The ends of the negative class are those of the positive one in the other order.
        return np.minimum(np.minimum(low, high), middle), np.maximum(np.maximum(low, high), middle)

    def predict_pair(self, y_prob: ArrayLike, *, percent: bool = False) -> tuple[Array, Array]:
        """Return the two probabilities of Venn and Abers: if the outcome were 0, and if it were 1.

        >>> calibrator = Calibrator("venn-abers").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> calibrator.predict_pair([0.5])
        (array([0.33333333]), array([0.66666667]))
        """
        if self.method != "venn-abers":
            raise InputError("method", "be 'venn-abers'", self.method, hint="others have no pair")
        score = self._scores(y_prob, percent)
        if not self._vector and len(self._forms) > 1:
            raise InputError("y_prob", "be scores of one class", score.shape)
        form = self._forms[0]
        assert isinstance(form, Pair)
        return form.pair(self._columns(score)[0])

    def to_json(self) -> str:
        """Return what has been learned as JSON; `from_json` reads it."""
        self._check_fitted()
        saved = SavedCalibrator(
            method=self.method,
            notion=self.notion_,
            from_logits=self.from_logits,
            vector=self._vector,
            classes=tuple(self.classes_),
            positive=self._positive,
            n=self.n_,
            columns=self.columns_,
            maps=tuple(self._forms),
            bands=tuple(tuple(self._band(k, level) for level in LEVELS) for k in range(len(self._forms))),
            multiclass=self._whole,
        )
        return saved.to_json()

    @classmethod
    def from_json(cls, text: str) -> Calibrator:
        """Read what `to_json` has written.

        >>> calibrator = Calibrator("temperature").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> again = Calibrator.from_json(calibrator.to_json())
        >>> bool((again.predict_proba([0.2]) == calibrator.predict_proba([0.2])).all())
        True
        """
        saved = SavedCalibrator.from_json(text)
        made = cls(saved.method, from_logits=saved.from_logits)
        made.classes_, made.n_, made.columns_ = saved.classes, saved.n, saved.columns
        made.notion_ = named(saved.notion).name
        made._vector, made._positive = saved.vector, saved.positive
        made._forms, made._whole = list(saved.maps), saved.multiclass
        made._bands = [{band.level: band for band in bands} for bands in saved.bands]
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON of `to_json` to a file, whole or not at all."""
        write_whole(path, [self.to_json().encode()])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a file that `save` has written."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def sql(self, column: str) -> str:
        """Return an expression of SQL that maps a column of scores.

        Parameters
        ----------
        column : str
            The column, quoted as the engine wants it.

        Examples
        --------
        >>> Calibrator("identity").fit([0.1, 0.9], [0, 1]).sql("score")
        'score'
        """
        return self._single().sql(column)

    def python(self, name: str = "calibrated") -> str:
        """Return the source of a Python function that maps one score and needs no library.

        >>> print(Calibrator("identity").fit([0.1, 0.9], [0, 1]).python())
        import bisect
        import math
        <BLANKLINE>
        <BLANKLINE>
        def calibrated(score):
            return score
        <BLANKLINE>
        """
        if not name.isidentifier():
            raise InputError("name", "be a name that Python takes", name)
        body = "\n".join(f"    {line}" for line in self._single().python())
        return f"import bisect\nimport math\n\n\ndef {name}(score):\n{body}\n"

    @property
    def is_vector(self) -> bool:
        """Whether it maps a vector of scores, of one class; a matrix of those of all classes otherwise."""
        self._check_fitted()
        return self._vector

    @property
    def temperature_(self) -> float | None:
        """What log-odds are divided by, where that is all that the map does; None otherwise."""
        self._check_fitted()
        if self.method != "temperature" or len(self._forms) > 1:
            return None
        form = self._forms[0] if self._forms else None
        slope = self._whole.slope if self._whole is not None else getattr(form, "slope", 0.0)
        return 1 / slope if slope > 0 else None

    def __repr__(self) -> str:
        learned = f", n={self.n_:g}" if hasattr(self, "n_") else ""
        return f"Calibrator({self.method!r}{learned})"

    # --- inside ---

    def _columns(self, score: Array) -> list[Array]:
        """Return the scores that each map takes."""
        if self._vector:
            return [score]
        if len(self._forms) == 1:
            return [score[:, 1 if self._positive is None else self._positive]]
        return list(score.T)

    def _joined(self, columns: Sequence[Array]) -> Array:
        """Return what the maps make of their scores in the shape of the scores; one map is of two classes."""
        if self._vector:
            return columns[0]
        if len(columns) == 1:
            both = [1 - columns[0], columns[0]]
            return np.stack(both[::-1] if self._positive == 0 else both, axis=1)
        return np.stack(columns, axis=1)

    def _single(self) -> Form:
        self._check_fitted()
        if self._whole is not None or len(self._forms) != 1 or self.from_logits:
            what = "logits" if self.from_logits else f"{len(self.classes_)} classes"
            raise InputError(
                "calibrator", "be a map of one score, as a probability", what, got=f"one of {what}"
            )
        return self._forms[0]

    def _band(self, k: int, level: float) -> Band:
        """Return the band of a map at a level, computed when it is first asked for."""
        bands = self._bands[k]
        if level not in bands:
            if not self._problems:
                known = ", ".join(f"{each:g}" for each in sorted(bands))
                raise InputError("level", f"be one that was saved with the map: {known}", level)
            problem = self._problems[k]
            about = problem.average, problem.held, problem.evidence.support
            bands[level] = Band.of(level, beyond_all_scores(*about, level))
        return bands[level]

    def _scores(self, y_prob: Any, percent: bool) -> Array:
        """Check new scores, and put the columns of a frame in the order of the classes."""
        self._check_fitted()
        names = inputs.column_names(y_prob)
        scores = _probabilities(y_prob) if self.from_logits else y_prob
        score = inputs.unlabelled(scores, percent=self._are_percentages(percent)).score
        size = len(self.classes_)
        if (score.ndim == 1) != self._vector or (not self._vector and score.shape[1] != size):
            shape = "be a vector" if self._vector else f"have {size} columns"
            rule = f"{shape}, like the scores it has learned from"
            raise InputError("y_prob", rule, score.shape, got=f"shape {score.shape}")
        if names is not None and not self._vector:
            told = inputs.classes_of_columns(names, self.classes_, size, self.labels)
            score = score[:, [told.index(label) for label in self.classes_]]
        return score.astype(np.float64, copy=False)

    def _check_choices(self) -> None:
        inputs.check_choice("method", self.method, METHODS)
        if self.monotone not in ("auto", True, False):
            raise InputError("monotone", "be 'auto', True or False", self.monotone)
        if self.monotone != "auto" and self.method not in BENDING:
            rule = f"be 'auto' with method={self.method!r}"
            raise InputError("monotone", rule, self.monotone, hint=f"it goes with {' and '.join(BENDING)}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise InputError(
                "calibrator",
                "have learned something",
                self,
                got="one that was not fitted",
                hint="call fit() first",
            )


def calibrator_names() -> dict[str, str]:
    """Return the names of the maps, and what each does.

    >>> calibrator_names()["temperature"]
    'log-odds over one number'
    """
    return {name: method.summary for name, method in METHODS.items()}


def _probabilities(logits: Any) -> Array:
    """Return the probabilities of logits: of a vector by the sigmoid, of a matrix by the softmax."""
    array, tolerance = inputs.read("y_prob", logits)
    if array.dtype.kind not in "biuf":
        raise InputTypeError("y_prob", "hold real numbers", array.dtype, got=f"dtype {array.dtype}")
    # Probabilities of single precision may have come in double.
    tolerance = tolerance or max(inputs.TOLERANCE.get(array.dtype.itemsize, 0.0), inputs.TOLERANCE[4])
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row = int(np.argmax(~np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise InputError("y_prob", "be finite", array[row], row=row)
    if array.ndim == 1:
        return expit(array)
    # Logits of a row sum to 1 by chance; those of several rows do not.
    if len(array) > 2 and _in_unit_interval(array) and np.ptp(np.append(array.sum(axis=1), 1)) <= tolerance:
        raise InputError(
            "y_prob",
            "hold logits with from_logits=True",
            got="probabilities: rows in [0, 1] that sum to 1",
            hint="leave out from_logits=True, or pass the logits that the softmax was taken of",
        )
    named = softmax(array).view(_Columns)
    named.columns = inputs.column_names(logits)
    return named


def _in_unit_interval(array: Array) -> bool:
    return bool(((array >= 0) & (array <= 1)).all())


class _Columns(np.ndarray):
    """Scores that keep the names of the columns in which they came."""

    columns: tuple[Any, ...] | None = None


def _column_names(y_prob: Any, *, vector: bool) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, or that of a series; None where they have none."""
    names = (getattr(y_prob, "name", None),) if vector else inputs.column_names(y_prob)
    return names if names and all(isinstance(name, str) and name for name in names) else None


def _warn_of_probabilities(y_prob: Any) -> None:
    """Warn of log-odds that may be probabilities; those of a model that is never certain look the same."""
    array, _ = inputs.read("y_prob", y_prob)
    if array.ndim == 1 and array.dtype.kind in "biuf" and array.size >= MANY and _in_unit_interval(array):
        warnings.warn(
            "all values of y_prob lie in [0, 1], and from_logits=True takes them for log-odds: leave it out "
            "if they are probabilities",
            InputWarning,
            stacklevel=3,
        )


def _refuse_swapped(y_prob: Any, y_true: Any) -> None:
    """Refuse labels in the place of scores, and scores in the place of labels."""
    first, second = (np.asarray(each) for each in (y_prob, y_true))
    labels_first = first.ndim == 1 and (first.dtype.kind in "bUSO" or bool(np.isin(first, (0, 1)).all()))
    scores_second = second.ndim == 2 or (second.dtype.kind == "f" and not np.isin(second, (-1, 0, 1)).all())
    if labels_first and scores_second:
        raise InputError(
            "y_prob",
            "be scores",
            first,
            got="labels",
            hint="fit takes scores first and labels second: swap them",
        )
