"""`Calibrator`: fits a calibration map to scores and labels, and maps new scores to probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.curves.posterior_curve import beyond_all_scores
from calibrant.inputs import InputError, Predictions
from calibrant.inputs.printed import Block, Table
from calibrant.inputs.wording import few_of, number, sample_size
from calibrant.maps.binary import BinaryProblem
from calibrant.maps.forms import Form, Formula, VennAbersPair
from calibrant.maps.methods import METHODS, canonical_name
from calibrant.maps.multiclass import SoftmaxMap
from calibrant.maps.saved import LEVELS, Band, SavedCalibrator
from calibrant.maps.score_map import NotFittedError, ScoreMap
from calibrant.parallel import one_blas_thread
from calibrant.score_data import Array, Sample
from calibrant.score_data.simplex import Simplex, class_order
from calibrant.tasks import CalibrationTask, ClassRelation, get_notion

Monotone = Literal["auto"] | bool
# Predicted classes with fewer rows share a map of the confidence.
FEW_PREDICTED = 50
# Methods that take `monotone`.
BENDING = ("auto", "spline")
# Methods that have `coef_` and `intercept_`.
LINEAR = ("intercept", "temperature", "sigmoid", "logistic", "beta")


class Calibrator(ScoreMap):
    """Map scores to calibrated probabilities.

    It follows the conventions of scikit-learn estimators (`get_params`, `set_params`, `sklearn.base.clone`)
    and does not need scikit-learn.

    Parameters
    ----------
    method : str, default="auto"
        Calibration method; see `calibrator_names`. "auto" averages over calibration maps, weighted by their
        marginal likelihood, and stays close to the identity if the data are few. "platt" is an alias of
        "sigmoid", and "affine" of "logistic".
    monotone : {"auto", True, False}, default="auto"
        Whether the map must be increasing; for the methods "auto" and "spline". "auto" requires it unless the
        data contradict it, or repeated scores have deviations of their own.
    from_logits : bool, default=False
        Whether scores are log-odds (1-D) or logits (2-D) instead of probabilities. A matrix of probabilities
        is refused.
    labels : sequence, optional
        The class of each column, as in `calibrant.ece`.
    pos_label : label, optional
        The positive class of 1-D scores, as in `calibrant.ece`.
    notion : {"top-label", "multilabel"}, optional
        "top-label" fits one map of the confidence for each predicted class; classes that are predicted for
        fewer than 50 rows share a map of all rows. `predict_proba` then returns the probability that the
        predicted class is right, one for each row. "multilabel" takes a matrix of labels and maps each column
        by itself, whatever the sum of a row.
    class_names : sequence or mapping, optional
        Names of the classes in the printed calibrator: in the order of the columns (1-D scores: negative,
        positive), or by label.

    Attributes
    ----------
    classes_ : tuple
        The class of each column; for 1-D scores the negative and the positive class.
    class_names_ : tuple of str or None
        Name of each of the classes; None without `class_names`.
    n_ : float
        Effective number of rows used by `fit`.
    columns_ : tuple of str or None
        Names of the columns of scores passed to `fit`; None if they have no names.
    notion_ : str
        Type of calibration that the map was fitted for.

    See Also
    --------
    calibrator_names : Names of the methods.
    calibrant.compare_calibrators : Compare methods by cross-validation.
    calibrant.sklearn.CalibratedModel : Train and calibrate a scikit-learn classifier.

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

    _parameters = ("method", "monotone", "from_logits", "labels", "pos_label", "class_names", "notion")
    _file = SavedCalibrator
    classes_: tuple[Any, ...]
    class_names_: tuple[str, ...] | None
    columns_: tuple[str, ...] | None

    def __init__(
        self,
        method: str = "auto",
        *,
        monotone: Monotone = "auto",
        from_logits: bool = False,
        labels: Sequence[Hashable] | None = None,
        pos_label: Hashable = None,
        class_names: Sequence[str] | Mapping[Any, str] | None = None,
        notion: str | None = None,
    ) -> None:
        self.method: str = canonical_name(method)
        self.monotone = monotone
        self.from_logits = from_logits
        self.labels = labels
        self.pos_label = pos_label
        self.class_names = class_names
        self.notion = notion
        self._problems: list[BinaryProblem] = []
        self._forms: list[Form] = []
        self._bands: list[dict[float, Band]] = []
        self._multiclass: SoftmaxMap | None = None

    def fit(
        self,
        y_prob: ArrayLike,
        y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        counts: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        percent: bool = False,
        missing: Literal["raise", "drop"] = "raise",
    ) -> Self:
        """Fit the calibration map.

        Fit it to rows that the model was not trained on.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores of the positive class, or of every class.
        y_true : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Importance weight of each row, on any scale.
        counts : array of shape (N,), optional
            Number of identical rows that each row represents; not together with `sample_weight`.
        cluster : array of shape (N,), optional
            Cluster id of each row, if rows of a cluster depend on each other. Methods that average over
            models ("auto", "spline") and all intervals use the effective sample size; the maps of the other
            methods do not depend on it.
        percent : bool, default=False
            Whether scores are percentages (0 to 100). Pass it to `predict_proba` as well.
        missing : {"raise", "drop"}
            Whether rows without a label are refused or left out.

        Returns
        -------
        Calibrator
            The fitted calibrator itself.

        See Also
        --------
        predict_proba : Map new scores.
        calibrant.Sketch.calibrator : Fit a calibrator to larger-than-memory data.

        Examples
        --------
        >>> Calibrator("sigmoid").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        Calibrator('sigmoid', n=4)
        """
        refuse_swapped(y_prob, y_true, "fit")
        fitted = copy(self)  # a fit that is refused leaves the map as it was
        if self._free:
            if cluster is not None or percent or missing != "raise":
                raise InputError("cluster, percent and missing", "be left out for this notion")
            weights = {"sample_weight": sample_weight, "counts": counts}
            data = inputs.multilabel(y_true, self._read(y_prob), labels=self.labels, **weights)
            fitted._fit_predictions(data)
            fitted._keep_column_names(y_prob)
            self.__dict__.update(vars(fitted))
            return self
        data = inputs.predictions(
            y_true,
            self._read(y_prob),
            sample_weight=sample_weight,
            counts=counts,
            labels=self.labels,
            pos_label=self.pos_label,
            percent=self._are_percentages(percent),
            missing=missing,
        )
        if percent:
            inputs.check_percent(float(data.score.max()))
        fitted._fit_predictions(data if cluster is None else inputs.in_clusters(data, cluster))
        fitted._keep_column_names(y_prob)
        self.__dict__.update(vars(fitted))
        return self

    def _are_percentages(self, percent: bool) -> bool:
        """Return `percent`; refuse it if the scores are logits."""
        if percent and self.from_logits:
            raise InputError("percent", "be False where scores are logits", percent)
        return percent

    def _fit_task(self, task: CalibrationTask) -> Self:
        """Fit the map to a calibration task, which holds rows or the sums of a sketch.

        Parameters
        ----------
        task : CalibrationTask
            The class-wise notion gets one map for each class; the others get a single map.
        """
        self._check_choices()
        if METHODS[self.method].fit_binary is None:
            raise InputError(
                "method", "be a map of one score", self.method, hint="it needs the scores of all classes"
            )
        self._set_classes(task.labels)
        self._vector = not task.notion.classwise
        self._positive = task.positive
        if task.notion.is_binary and task.positive is not None:
            # Only one class is mapped: the other classes together are the negative class.
            self.classes_ = _against_others(self.classes_, task.positive)
            if self.class_names_ is not None:
                self.class_names_ = tuple(map(str, _against_others(self.class_names_, task.positive)))
            self._positive = 1
        return self._fit_each(task)

    @one_blas_thread()
    def _fit_predictions(self, data: Predictions) -> Self:
        """Fit the map to validated predictions.

        Parameters
        ----------
        data : Predictions
            Scores, labels and weights, as `calibrant.inputs.predictions` returns them.
        """
        self._check_choices()
        self._set_classes(data.labels)
        self._vector = data.score.ndim == 1
        self._positive = data.positive
        if self._kind is not ClassRelation.EXCLUSIVE:
            return self._fit_related(data)
        two = self._vector or len(data.labels) == 2
        self.notion_ = "class" if two else "classwise"
        method = METHODS[self.method]
        if two and method.fit_binary is None:
            raise InputError(
                "method", "be a map of one score", self.method, got=f"{self.method!r} for two classes"
            )
        if two or method.fit_multiclass is None:
            return self._fit_each(CalibrationTask.of(data, get_notion(self.notion_)))
        columns = class_order(data.score, data.code, data.weight, data.labels)
        place = np.argsort(columns)
        rows = Simplex.of(data.score[:, columns], place[data.code], data.weight, counts=data.counts)
        self.n_: float = rows.n
        if data.cluster is not None and self.method == "auto":
            effect = CalibrationTask.of(data, get_notion("confidence")).design_effects[0]
            rows = replace(rows, weight=rows.weight / effect, square=rows.square / effect)
        self._problems, self._forms, self._bands = [], [], []
        self._multiclass = method.fit_multiclass(rows).ordered(place)
        return self

    @property
    def _kind(self) -> ClassRelation:
        """How the classes depend on each other."""
        return ClassRelation.EXCLUSIVE if self.notion is None else get_notion(self.notion).classes

    @property
    def _free(self) -> bool:
        """Whether a row can have any number of labels."""
        return self._kind is ClassRelation.FREE

    def _read(self, y_prob: Any, *, warn: bool = True) -> Any:
        """Return scores as they are, or the probabilities of logits."""
        options = {"free": self._free, "refuse": True, "warn": warn}
        return inputs.probabilities(y_prob, **options) if self.from_logits else y_prob

    def _fit_related(self, data: Predictions) -> Self:
        """Fit a map for each column of several labels, or for each predicted class."""
        if self._vector:
            raise InputError("y_prob", "have a column for each class with this notion", got="a vector")
        if METHODS[self.method].fit_binary is None:
            raise InputError("method", "be a map of one score with this notion", self.method)
        task = CalibrationTask.of(data, get_notion(self.notion))
        if self._free:
            return self._fit_each(task)
        self._fit_each(task)
        per_class = zip(task.labels, task.problems, self._problems, self._forms, self._bands, strict=True)
        fitted = {label: parts for label, rows, *parts in per_class if rows.n >= FEW_PREDICTED}
        self._fit_each(CalibrationTask.of(data, get_notion("confidence")))
        shared = [self._problems[0], self._forms[0], self._bands[0]]
        parts = [fitted.get(label, shared) for label in data.labels]
        self._problems, self._forms, self._bands = (list(each) for each in zip(*parts, strict=True))
        self.notion_ = task.notion.name
        return self

    def _fit_each(self, task: CalibrationTask) -> Self:
        """Fit a single map, or one for each class (one-vs-rest)."""
        fit = METHODS[self.method].fit_binary
        assert fit is not None
        options = {} if self.monotone == "auto" else {"monotone": bool(self.monotone)}
        self.n_, self.notion_ = float(task.n), task.notion.name
        self._multiclass = None
        clustered: list[Any] = [None] if task.designs is None else task.residuals_alone
        clustered *= len(task.problems) // len(clustered)
        self._problems = [BinaryProblem(*each) for each in zip(task.problems, clustered, strict=True)]
        self._forms = [fit(problem, **options) for problem in self._problems]
        self._bands = [{} for _ in self._problems]
        return self

    def predict_proba(self, y_prob: ArrayLike, *, percent: bool = False) -> Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores, with as many columns as those passed to `fit`.
        percent : bool, default=False
            Whether scores are percentages (0 to 100). The result is always in [0, 1].

        Returns
        -------
        array
            Probabilities in the shape of `y_prob`: 1-D scores give the positive class alone.

        See Also
        --------
        predict_interval : Interval for each probability.
        predict_pair : Pair of probabilities of the Venn-Abers predictor.

        Examples
        --------
        >>> Calibrator("logistic").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).predict_proba([0.2]).round(2)
        array([0.21])
        """
        score = self._scores(y_prob, percent)
        if self._multiclass is not None:
            return self._multiclass.probability(score)
        columns = zip(self._forms, self._columns(score), strict=True)
        each = self._joined([form.probability(column) for form, column in columns])
        if self._kind is ClassRelation.SEPARATE:
            return _of_largest(each, score)
        if len(self._forms) == 1 or self._kind is not ClassRelation.EXCLUSIVE:
            return each
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    def predict_interval(
        self, y_prob: ArrayLike, level: float = 0.95, *, percent: bool = False
    ) -> tuple[Array, Array]:
        """Return an interval for each calibrated probability.

        It is an interval for the probability of the positive class at this score, not for the outcome. It is
        the band of the calibration curve, widened where necessary to contain the prediction.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, C)
            Scores, as for `predict_proba`.
        level : float, default=0.95
            Level of the interval. A loaded calibrator has the levels 0.5, 0.8, 0.9, 0.95 and 0.99.
        percent : bool, default=False
            Whether scores are percentages (0 to 100).

        Returns
        -------
        low, high : array
            Lower and upper ends, in the shape of `y_prob`.

        See Also
        --------
        predict_proba : The probabilities themselves.
        calibrant.reliability_curve : Calibration curve with its band.

        Examples
        --------
        >>> calibrator = Calibrator("beta").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> low, high = calibrator.predict_interval([0.2], level=0.8)
        >>> bool((low < calibrator.predict_proba([0.2])).all())
        True
        """
        level = inputs.level(level)
        middle, score = self.predict_proba(y_prob, percent=percent), self._scores(y_prob, percent)
        if self._multiclass is not None:
            low, high = self._multiclass.interval(score, NormalDist().inv_cdf((1 + level) / 2))
        else:
            ends = [self._band(k, level).ends(column) for k, column in enumerate(self._columns(score))]
            low, high = (self._joined(end_columns) for end_columns in zip(*ends, strict=True))
            if self._kind is ClassRelation.SEPARATE:
                low, high = _of_largest(low, score), _of_largest(high, score)
        # The upper end of the positive class is the lower end of the negative class.
        return np.minimum(np.minimum(low, high), middle), np.maximum(np.maximum(low, high), middle)

    def predict_pair(self, y_prob: ArrayLike, *, percent: bool = False) -> tuple[Array, Array]:
        """Return the pair of probabilities of the Venn-Abers predictor.

        Parameters
        ----------
        y_prob : array of shape (N,) or (N, 2)
            Scores, as for `predict_proba`.
        percent : bool, default=False
            Whether scores are percentages (0 to 100).

        Returns
        -------
        p0, p1 : array of shape (N,)
            Probability of the positive class if the label of the new row is negative, and if it is positive.

        See Also
        --------
        predict_proba : The single probability that combines the pair.

        Examples
        --------
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
        assert isinstance(form, VennAbersPair)
        return form.pair(self._columns(score)[0])

    def _saved(self) -> SavedCalibrator:
        """Return what is written to a file."""
        self._check_fitted()
        return SavedCalibrator(
            method=self.method,
            notion=self.notion_,
            from_logits=self.from_logits,
            vector=self._vector,
            classes=tuple(self.classes_),
            positive=self._positive,
            class_names=self.class_names_,
            n=self.n_,
            columns=self.columns_,
            maps=tuple(self._forms),
            bands=tuple(tuple(self._band(k, level) for level in LEVELS) for k in range(len(self._forms))),
            multiclass=self._multiclass,
        )

    @classmethod
    def _restored(cls, saved: SavedCalibrator) -> Self:
        """Return the calibrator of a file."""
        kind = get_notion(saved.notion).classes
        made = cls(saved.method, from_logits=saved.from_logits, class_names=saved.class_names)
        made.notion = None if kind is ClassRelation.EXCLUSIVE else saved.notion
        made.classes_, made.class_names_ = saved.classes, saved.class_names
        made.n_, made.columns_ = saved.n, saved.columns
        made.notion_ = get_notion(saved.notion).name
        made._vector, made._positive = saved.vector, saved.positive
        made._forms, made._multiclass = list(saved.maps), saved.multiclass
        made._bands = [{band.level: band for band in bands} for bands in saved.bands]
        return made

    @property
    def is_vector(self) -> bool:
        """Whether the calibrator maps 1-D scores, of one class, rather than a matrix."""
        self._check_fitted()
        return self._vector

    @property
    def temperature_(self) -> float | None:
        """The fitted temperature with `method="temperature"`; None for other methods."""
        self._check_fitted()
        if self.method != "temperature" or len(self._forms) > 1:
            return None
        form = self._forms[0] if self._forms else None
        slope = self._multiclass.slope if self._multiclass is not None else getattr(form, "slope", 0.0)
        return 1 / slope if slope > 0 else None

    @property
    def coef_(self) -> Array:
        """Coefficients of the log-odds, one row for each fitted map.

        For "intercept", "temperature", "sigmoid" and "logistic" the map is
        logit q = coef * logit p + intercept, with coef = 1 for "intercept" and intercept = 0 for
        "temperature". For "beta" it is logit q = coef[0] * ln p - coef[1] * ln(1 - p) + intercept.
        Temperature scaling of more than two classes multiplies the logits by coef. Other methods raise
        AttributeError.
        """
        return self._coefficients()[:, 1:]

    @property
    def intercept_(self) -> Array:
        """Intercept of each fitted map; see `coef_`."""
        return self._coefficients()[:, 0]

    def __repr__(self) -> str:
        learned = f", n={self.n_:g}" if hasattr(self, "n_") else ""
        return f"Calibrator({self.method!r}{learned})"

    # --- private ---

    def _printed(self) -> Iterator[Block]:
        yield "calibrator", self.method
        if not hasattr(self, "n_"):
            yield "data", "not fitted"
            return
        yield "data", sample_size(self.n_)
        names = self.class_names_ or tuple(map(str, self.classes_))
        yield "classes", few_of(names, 6)
        if self.method in LINEAR:
            rows = self._coefficients()
            head = ["intercept", *(f"coefficient {k}" for k in range(1, rows.shape[1]))]
            cells = [[number(value) for value in row] for row in rows.tolist()]
            if by_class := len(cells) > 1:
                head, cells = ["class", *head], [[name, *row] for name, row in zip(names, cells, strict=True)]
            yield Table(head, cells, names=int(by_class))

    def _rows(self) -> Predictions | None:
        """Return the rows that a map of 1-D scores was fitted to; None if they are not known."""
        if not self._problems or not self._vector or not isinstance(data := self._problems[0].data, Sample):
            return None
        return Predictions(
            data.score, np.asarray(data.outcome), data.weight, self.classes_, 1, counts=data.counts
        )

    def _coefficients(self) -> Array:
        """Return a row for each map: its intercept and its coefficients."""
        self._check_fitted()
        if self.method not in LINEAR:
            raise AttributeError(f"method {self.method!r} has no coef_ and intercept_")
        if self._multiclass is not None:
            return np.array([[0.0, self._multiclass.slope]])
        rows = []
        for form in self._forms:
            assert isinstance(form, Formula)
            slopes = [form.slope]
            if self.method == "beta":
                slopes = [form.slope + form.curvature, form.slope - form.curvature]
            rows.append([form.shift + form.curvature * np.log(4), *slopes])
        return np.array(rows)

    def _columns(self, score: Array) -> list[Array]:
        """Return the scores that are passed to each map."""
        if self._kind is ClassRelation.SEPARATE:
            return [score.max(axis=1)] * len(self._forms)
        if self._vector:
            return [score]
        if len(self._forms) == 1:
            return [score[:, 1 if self._positive is None else self._positive]]
        return list(score.T)

    def _joined(self, columns: Sequence[Array]) -> Array:
        """Return the values of the maps in the shape of the scores; one map covers two classes."""
        if self._kind is ClassRelation.EXCLUSIVE and len(columns) == 1:
            if self._vector:
                return columns[0]
            columns = [1 - columns[0], columns[0]][:: -1 if self._positive == 0 else 1]
        return np.stack(columns, axis=1)

    def _steps(self) -> Sequence[Form]:
        """Return the only map; refuse multiclass scores and logits."""
        self._check_fitted()
        if self._multiclass is not None or len(self._forms) != 1 or self.from_logits:
            what = "logits" if self.from_logits else f"{len(self.classes_)} classes"
            raise InputError(
                "calibrator", "be a map of one score, as a probability", what, got=f"one of {what}"
            )
        return self._forms

    def _band(self, k: int, level: float) -> Band:
        """Return the band of a map at a level, computed on first use."""
        bands = self._bands[k]
        if level not in bands:
            if not self._problems:
                known = ", ".join(f"{each:g}" for each in sorted(bands))
                raise InputError("level", f"be one that was saved with the map: {known}", level)
            problem = self._problems[k]
            about = problem.average, problem.independent, problem.data.support
            bands[level] = Band.of(level, beyond_all_scores(*about, level))
        return bands[level]

    def _scores(self, y_prob: Any, percent: bool) -> Array:
        """Validate new scores and put the columns of a frame in the order of the classes."""
        self._check_fitted()
        names = inputs.column_names(y_prob)
        if self._free:
            score: Array = np.asarray(inputs.scores("y_prob", self._read(y_prob, warn=False)))
        else:
            score = inputs.unlabelled(
                self._read(y_prob, warn=False), percent=self._are_percentages(percent)
            ).score
        size = len(self.classes_)
        if (score.ndim == 1) != self._vector or (not self._vector and score.shape[1] != size):
            shape = "be a vector" if self._vector else f"have {size} columns"
            rule = f"{shape}, like the scores it has learned from"
            raise InputError("y_prob", rule, score.shape, got=f"shape {score.shape}")
        if (order := self._column_order(names)) is not None:
            score = score[:, order]
        return score.astype(np.float64, copy=False)

    def _column_order(self, names: Sequence[Any] | None) -> list[int] | None:
        """Return where the columns of the classes are in a frame; None if they are in place."""
        if names is None or self._vector:
            return None
        if self.columns_ is not None and set(self.columns_) == set(names):
            return [names.index(name) for name in self.columns_]
        if self.labels is not None:
            return inputs.column_order(names, self.classes_)
        classes = inputs.classes_of_columns(names, self.classes_, len(self.classes_))
        return [classes.index(label) for label in self.classes_]

    def _set_classes(self, labels: tuple[Any, ...]) -> None:
        """Store the class of each column and its name; the columns of scores have no names so far."""
        names = inputs.class_names(labels, self.class_names)
        self.classes_, self.class_names_ = labels, tuple(names.values()) or None
        self.columns_ = None

    def _keep_column_names(self, y_prob: Any) -> None:
        """Store the names of a frame's columns in the order of the classes, or the name of a series."""
        names = (getattr(y_prob, "name", None),) if self._vector else inputs.column_names(y_prob)
        if names and all(isinstance(name, str) and name for name in names):
            order = None if self._vector or self.labels is None else inputs.column_order(names, self.classes_)
            self.columns_ = names if order is None else tuple(names[k] for k in order)

    def _check_choices(self) -> None:
        """Refuse unknown or conflicting parameters."""
        inputs.check_choice("method", self.method, METHODS)
        if self.monotone not in ("auto", True, False):
            raise InputError("monotone", "be 'auto', True or False", self.monotone)
        if self.monotone != "auto" and self.method not in BENDING:
            rule = f"be 'auto' with method={self.method!r}"
            raise InputError("monotone", rule, self.monotone, hint=f"it goes with {' and '.join(BENDING)}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise NotFittedError


def _of_largest(values: Array, score: Array) -> Array:
    """Return the value of each row in the first column of its largest score."""
    return np.asarray(np.take_along_axis(values, score.argmax(axis=1)[:, None], axis=1)[:, 0])


def _against_others(classes: tuple[Any, ...], positive: int) -> tuple[Any, Any]:
    """Return what all classes but the positive one are together, and the positive one."""
    others = classes[:positive] + classes[positive + 1 :]
    return others[0] if len(others) == 1 else others, classes[positive]


def calibrator_names() -> dict[str, str]:
    """Return the calibration methods: name and short description.

    Returns
    -------
    dict
        Description of each method by name. The aliases "platt" ("sigmoid") and "affine" ("logistic") are
        accepted but not listed.

    See Also
    --------
    Calibrator : Fit one of them.
    calibrant.compare_calibrators : Compare them by cross-validation.

    Examples
    --------
    >>> calibrator_names()["temperature"]
    'temperature scaling'
    """
    return {name: method.summary for name, method in METHODS.items()}


def refuse_swapped(y_prob: Any, y_true: Any, caller: str) -> None:
    """Refuse labels passed as scores and scores passed as labels.

    Parameters
    ----------
    y_prob, y_true : array
        Arguments of the caller.
    caller : str
        Name of the public function, for the message.
    """
    first, second = (np.asarray(each) for each in (y_prob, y_true))
    matrix_second = second.ndim == 2 and second.shape[1] > 1
    labels_first = first.ndim == 1 and (
        first.dtype.kind in ("bUSOiu" if matrix_second else "bUSO") or bool(np.isin(first, (0, 1)).all())
    )
    scores_second = second.ndim == 2 or (second.dtype.kind == "f" and not np.isin(second, (-1, 0, 1)).all())
    if labels_first and scores_second:
        raise InputError(
            "y_prob",
            "be scores",
            first,
            got="labels",
            hint=f"{caller} takes scores first and labels second: swap them",
        )
