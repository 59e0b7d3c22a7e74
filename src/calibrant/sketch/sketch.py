"""Sums instead of rows: predictions in any number of pieces, answered for as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeAlias
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.decisions import Cost, cost_of
from calibrant.estimators import EstimatorLike, resolve
from calibrant.inputs import Predictions
from calibrant.inputs.class_names import given_class_names
from calibrant.inputs.predictions import USUAL, binary_classes, check_counts, count_dropped, read_labels
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import few_of, sample_size
from calibrant.maps import Calibrator
from calibrant.maps.calibrator import Monotone
from calibrant.score_data import Array, Cells, Layout, OneHot, Sample
from calibrant.sketch.cell_sums import add_in_place, check_scale, copy_cells, empty_cells, layout_of
from calibrant.sketch.totals import Totals
from calibrant.tasks import CalibrationTask, ClassRelation, default_notion, get_notion
from calibrant.tasks.notions import Notion, refuse_without_rows

if TYPE_CHECKING:
    from calibrant.assessment import Assessment
    from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram, ScoreHistogram
    from calibrant.decisions import BestThreshold, Regret, RegretCurve, RiskCoverage
    from calibrant.inference.result import Estimate
    from calibrant.score_data.cluster_sums import ClusterSums

# Problems summed and answered for together: what is made on the way stays small beside the sketch.
TOGETHER = 32
Missing: TypeAlias = Literal["raise", "drop"]
EMPTY = "the sketch is empty: call update(y_true, y_prob) first"


class _Lease:
    """Something reads the arrays of a sketch, so that an update must not change them in place."""


class Sketch(Printed):
    """Calibration of predictions that arrive in pieces, in memory that does not grow with them.

    Several threads may update, read, add, copy and save a sketch at the same time.

    Parameters
    ----------
    notion : {"binary", "classwise", "confidence", "top:k", "correctness"}, optional
        What is compared. Without it the first update decides as `calibrant.ece` does: `binary` for 1-D
        scores and `confidence` for a matrix. It is fixed from then on.
    n_classes : int, optional
        Number of columns of the score matrix; learned from the first update otherwise.
    labels, pos_label : optional
        As for `calibrant.ece`. The classes of the columns are settled by the first update.
    class_names : sequence or mapping, optional
        Names of the classes in results, in the order of `labels`, or by label.

    Attributes
    ----------
    notion : str or None
        What is compared; None before the first update if it was not given.
    labels : tuple
        The class of each column; for a vector of scores the negative and the positive one.
    positive : int or None
        Column of the selected class.
    totals : Totals
        Sums over rows, for accuracy, Brier score and log loss.

    See Also
    --------
    estimate : Takes a sketch in place of labels and scores.
    assess : Takes a sketch in place of labels and scores.

    Examples
    --------
    >>> import calibrant
    >>> monday = calibrant.Sketch().update([0, 1, 1], [0.2, 0.4, 0.9])
    >>> tuesday = calibrant.Sketch().update([0, 1], [0.1, 0.8])
    >>> both = monday + tuesday
    >>> both
    Sketch(notion='binary', n=5)
    >>> round(both.ece(estimator="uniform:10"), 6)
    0.24
    """

    def __init__(
        self,
        notion: str | None = None,
        *,
        n_classes: int | None = None,
        labels: Sequence[Hashable] | None = None,
        pos_label: Hashable = None,
        class_names: Sequence[str] | Mapping[Any, str] | None = None,
    ) -> None:
        refuse_without_rows(notion)
        # Held while the sums change, and while what belongs together is read.
        self._lock = RLock()
        self._known_notion = None if notion is None else get_notion(notion)
        self._n_classes = None if n_classes is None else inputs.positive_int("n_classes", n_classes, 2)
        # Kept for every later update, so what can be read only once is read now.
        labels = None if labels is None else inputs.class_labels(labels)
        self._given: dict[str, Any] = {"labels": labels, "pos_label": pos_label}
        self._class_names = given_class_names(class_names)
        self._cells: Cells | None = None
        # Whether another sketch has the same arrays, and whether an update stopped halfway.
        self._shared = self._torn = False
        # Alive while a task or a result reads the arrays.
        self._lease: ref[_Lease] | None = None
        self.totals: Totals = Totals.zero()
        self.labels: tuple[Any, ...] = ()
        self.positive: int | None = None
        self._vector = False
        # Sums by cluster, which only a metric sets, for its own results.
        self._cluster_sums: ClusterSums | None = None

    @property
    def notion(self) -> str | None:
        """The type of calibration that is measured; None before the first update if it was not given."""
        return None if self._known_notion is None else self._known_notion.name

    @property
    def _notion(self) -> Notion:
        """The notion, of a sketch whose notion is known."""
        if self._known_notion is None:
            self._refuse_empty()
        return self._known_notion

    @property
    def n(self) -> float:
        """Effective number of rows seen."""
        with self._lock:
            return 0.0 if self._cells is None else float(np.max(self._cells.n))

    @property
    def _score_data(self) -> Cells:
        """The sums, as score data that any estimator can read; later updates leave it as it is."""
        with self._lock:
            lease = (None if self._lease is None else self._lease()) or _Lease()
            self._lease = ref(lease)
            return replace(self._current_cells, lease=lease)

    @property
    def _task(self) -> CalibrationTask:
        """What is asked of the sums, as they are now; see `calibrant.tasks`."""
        with self._lock:
            blocks = partial(_blocks, self._score_data)
            more: dict[str, Any] = {"cautions": self.totals.cautions, "cluster_sums": self._cluster_sums}
            return CalibrationTask(self._notion, self.labels, self.positive, blocks, **more)

    @property
    def weighted(self) -> bool:
        """Whether rows came with importance weights; False for plain rows and for counts of rows."""
        return self._cells is not None and self._cells.spread is not None

    @property
    def is_vector(self) -> bool:
        """Whether the scores came as a vector, of one class."""
        return self._vector

    @property
    def _has_only_extreme_scores(self) -> bool:
        """Whether no score lies between the outermost cells: all are 0 or 1, to fifteen digits."""
        return not np.any(self._current_cells.sums.w[..., 1:-1])

    @property
    def _current_cells(self) -> Cells:
        if self._torn:
            raise ValueError("an update was interrupted, and the sketch holds a part of its rows: start anew")
        if self._cells is None:
            self._refuse_empty()
        return self._cells

    def _refuse_empty(self) -> NoReturn:
        if self.totals.dropped:
            inputs.refuse_unlabelled("the labels of the sketch", self.totals.dropped)
        raise ValueError(EMPTY)

    @property
    def _layout(self) -> Layout:
        return layout_of(self._notion, self._n_classes or 2)

    @inputs.helpful
    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        percent: bool = False,
        missing: Missing = "raise",
        from_logits: bool = False,
    ) -> Self:
        """Add predictions; returns the sketch itself. Rows that are refused leave it as it was.

        Rows and `counts` of rows go together; `sample_weight` are importance weights, for all updates
        or for none. With `percent`, scores are percentages, from 0 to 100. With
        `missing="drop"`, rows without a label are left out and counted in `totals.dropped`; an update may
        consist of such rows alone. With `from_logits`, scores are log-odds or logits.

        Parameters
        ----------
        y_true, y_prob
            Labels and scores, as for `calibrant.ece`.
        sample_weight, counts, percent, missing, from_logits
            As for `calibrant.ece`.

        Returns
        -------
        Sketch
            The sketch itself.
        """
        weights = {"sample_weight": sample_weight, "counts": counts}
        with self._lock:
            return self._update(y_true, y_prob, weights, percent, missing, from_logits)

    def _update(
        self, y_true: Any, y_prob: Any, weights: dict[str, Any], percent: bool, missing: Missing,
        from_logits: bool,
    ) -> Self:  # fmt: skip
        """Add predictions; see `update`."""
        is_multilabel = self._known_notion is not None and self._known_notion.classes is ClassRelation.FREE
        if from_logits:
            y_prob = inputs.probabilities(y_prob, free=is_multilabel)
        if is_multilabel:
            return self._take(self._multilabel(y_true, y_prob, weights, percent, missing))
        labelled = read_labels(y_true, missing)[1]
        counts = weights["counts"]
        if labelled is not None and not labelled.any():
            counted = None if counts is None else ("counts", inputs.read("counts", counts)[0])
            return self._add_dropped(count_dropped(labelled, counted))
        data = inputs.predictions(
            y_true,
            y_prob,
            **weights,
            more=self._cells is not None,
            by_name=self._known_notion is None or not self._notion.correctness_pairs,
            percent=percent,
            missing=missing,
            **self._known_classes(y_prob),
        )
        if self._cells is None:
            return self._take(data)
        self._check_pair(data)
        return self._take(_reordered(data, self.labels))

    def _multilabel(
        self, y_true: Any, y_prob: Any, weights: dict[str, Any], percent: bool, missing: str
    ) -> Predictions:
        """Check matrices of scores and labels, of rows that can have any number of labels."""
        if percent or missing != "raise":
            name, value = ("percent", percent) if percent else ("missing", missing)
            raise inputs.InputError(name, "be left out for this notion", value)
        data = inputs.multilabel(y_true, y_prob, labels=self._given["labels"], **weights)
        if self._cells is not None and data.labels != self.labels:
            raise inputs.InputError("labels", f"be {inputs.show(*self.labels)}", data.labels)
        return data

    def _add_dropped(self, rows: int) -> Self:
        """Count rows that were left out because they have no label; returns the sketch itself."""
        self.totals = replace(self.totals, dropped=self.totals.dropped + rows)
        return self

    def _with_class_names(self, class_names: Any) -> Self:
        """Set the names of the classes, checked against the labels; returns the sketch itself."""
        self._class_names = given_class_names(class_names)
        inputs.class_names(self.labels, self._class_names)
        return self

    def _check_pair(self, data: Predictions) -> None:
        """Refuse labels that need a positive class to be named once they are seen beside those so far."""
        is_explicit = any(value is not None for value in self._given.values())
        if is_explicit or self.labels not in USUAL or data.labels not in USUAL:
            return
        others = (self._negative, _negative_of(data) if data.score.ndim == 1 else data.labels[0])
        binary_classes(inputs.in_order(tuple({*others, 1} - {None})))

    def _take(self, data: Predictions) -> Self:
        """Add predictions that are checked."""
        weighted = not data.counts
        if self._cells is not None and weighted != self.weighted:
            kinds = ("rows or counts", "importance weights")
            hint = "start another sketch for them"
            got = f"{kinds[weighted]} after {kinds[self.weighted]}"
            raise inputs.InputError("sample_weight", "be given in all updates or in none", got=got, hint=hint)
        if data.weight is not None and weighted:
            check_scale(data.weight)
        notion = default_notion(self._known_notion, vector=data.score.ndim == 1)
        new = type(self)(notion.name, n_classes=2 if data.score.ndim == 1 else data.score.shape[1])
        new.labels, new.positive, new._vector = data.labels, data.positive, data.score.ndim == 1
        if new._vector and self._cells is not None:
            new.labels = (_negative_of(data), data.labels[1])
        joined, totals = self._joined(new, holding=True), self.totals + Totals.of(data)
        inputs.class_names(joined.labels, self._class_names)
        if not weighted:
            check_counts(totals.weight)
        merged = None if self._cells is None else self._current_cells
        lent = self._shared or (self._lease is not None and self._lease() is not None)
        if merged is not None and lent:
            merged = copy_cells(merged)
        in_place = merged is not None and not lent
        for at, new_cells in joined._sums_of(data, joined._layout):
            if merged is None:
                merged = empty_cells(notion, joined._n_classes or 2, weighted=weighted)
            # Sums that were there before cannot be had again if this stops between two blocks.
            self._torn = in_place
            add_in_place(merged, at, new_cells)
        assert merged is not None
        # A new value, since one remembers what it has computed.
        joined._cells, joined.totals, joined._given = replace(merged), totals, self._given
        joined._lock = self._lock
        self.__dict__.update(joined.__dict__)
        return self

    def _known_classes(self, y_prob: Any) -> dict[str, Any]:
        """What is known of the classes before an update: given at first, or settled by what came."""
        known = dict(self._given)
        if self._cells is None:
            return known
        shape = getattr(y_prob, "shape", None)
        matrix = not self._vector and len(np.shape(y_prob) if shape is None else shape) == 2
        if matrix and known["labels"] is None:
            # Columns may come in another order than at first: by their names, or by position without any.
            names, size = inputs.column_names(y_prob), len(self.labels)
            known["labels"] = inputs.classes_of_columns(names, self.labels, size)
        # A vector of scores is about the class 1 without being told.
        if known["pos_label"] is None and self.positive is not None and self.labels[self.positive] != 1:
            known["pos_label"] = self.labels[self.positive]
        return known

    def _sums_of(self, data: Predictions, layout: Layout) -> Iterator[tuple[Any, Cells]]:
        """The sums of new rows, a few problems at a time, and where they belong."""
        first = 0
        for score, outcome, support, _ in self._notion.problems(data):
            if score.ndim == 1:
                yield ..., Cells.of(Sample(score, outcome, data.weight, support, data.counts), layout)
                continue
            for a in range(0, len(score), TOGETHER):
                block = slice(a, a + TOGETHER)
                block_outcome: Array | OneHot
                if isinstance(outcome, OneHot):  # which need not become an array
                    block_outcome = replace(outcome, first=outcome.first + a, size=len(score[block]))
                else:
                    block_outcome = outcome[block]
                new_cells = Cells.of(
                    Sample(score[block], block_outcome, data.weight, support, data.counts), layout
                )
                yield slice(first + a, first + a + len(new_cells.sums.w)), new_cells
            first += len(score)

    def __add__(self, other: Self) -> Self:
        """Return a sketch of the rows of both, which stay as they are."""
        if not isinstance(other, Sketch):
            return NotImplemented
        # Both locks, in the same order in all threads.
        first, second = sorted((self, other), key=id)
        with first._lock, second._lock:
            return self._sum(other)

    def _sum(self, other: Self) -> Self:
        """Return a sketch of the rows of both, whose locks are held."""
        mine, theirs = (None if sketch._cells is None else sketch._current_cells for sketch in (self, other))
        if mine is not None and theirs is not None:
            total = self._joined(other, holding=True)
            if self.weighted != other.weighted:
                raise ValueError(
                    "sketches must both hold rows and counts of rows, or both importance weights, got one of "
                    "each: importance weights have no scale on which a row could be one of them"
                )
            cells = mine + theirs
            if not self.weighted:
                check_counts(self.totals.weight + other.totals.weight)
            total._cells = replace(cells, squares=np.asarray(cells.squares))
        else:
            total = self._joined(other, holding=False)
            total._cells = mine if mine is not None else theirs
            # Copied by whichever is updated first.
            self._shared = other._shared = total._shared = True
        total.totals = self.totals + other.totals
        return total

    def __radd__(self, other: Any) -> Self:
        """Let `sum(sketches)` begin with 0."""
        return self + type(self)() if isinstance(other, int) and other == 0 else NotImplemented

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__setstate__(self.__getstate__())
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the lock; the arrays are copied by whichever is updated first."""
        with self._lock:
            self._shared = True
            state = vars(self).copy()
        del state["_lock"], state["_lease"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._lease = RLock(), None

    def _joined(self, other: Self, *, holding: bool) -> Self:
        """Make an empty sketch for the rows of both; raises if their notions or classes differ."""
        notion = self.notion or other.notion
        if (other.notion or notion) != notion:
            raise ValueError(f"sketches must have the same notion, got {self.notion!r} and {other.notion!r}")
        if None not in (self._n_classes, other._n_classes) and self._n_classes != other._n_classes:
            raise ValueError(
                f"sketches must have the same classes, got {self._n_classes} and {other._n_classes} of them"
            )
        total = type(self)(notion, n_classes=self._n_classes or other._n_classes)
        total._class_names = other._class_names if self._class_names is None else self._class_names
        total._given = self._given if any(v is not None for v in self._given.values()) else other._given
        base, more = (self, other) if self._cells is not None else (other, self)
        if holding and self._cells is not None and base._subject != more._subject:
            raise ValueError(
                f"sketches must have the same classes, got {base._subject!r} and {more._subject!r}"
            )
        total.labels, total.positive, total._vector = base.labels, base.positive, base._vector
        if more.labels and base._vector != more._vector:
            matrix = more if base._vector else base
            total.labels, total.positive, total._vector = matrix.labels, matrix.positive, False
        elif more.labels and base._vector:
            other = _other_labels(base._negative, more._negative)
            total.labels = (base.labels[0] if other is None else other, base.labels[1])
            _check_same_kind(total.labels)
        return total

    @property
    def _negative(self) -> Any:
        """The negative label; None of a vector of scores where it is known that no row has had one."""
        if self._vector and self._cells is not None and not self._notion.top:
            cells = self._cells[1] if self._cells.batch else self._cells
            if np.array_equal(cells.sums.w, cells.sums.wy):
                return None
        return self.labels[0]

    @property
    def _subject(self) -> Any:
        """The selected class, or all; a vector of scores is of one class."""
        if self._notion.top and not self._vector:
            return tuple(sorted(self.labels, key=str))
        column = self.positive if self._vector or self._notion.is_binary else None
        return self.labels if column is None else self.labels[column]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(notion={self.notion!r}, n={self.n:.15g})"

    def _printed(self) -> Iterator[Block]:
        yield "data", sample_size(self.n)
        yield "notion", self.notion or "not known yet"
        if self.labels:
            yield "classes", few_of([str(label) for label in self.labels], 6)
        yield from self.totals.cautions

    def ece(self, **options: Any) -> float:
        """Estimate the calibration error; see `calibrant.ece` for the options.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.
        """
        return _functions().ece(self, **options)

    def mce(self, **options: Any) -> float:
        """Estimate the maximum calibration error; see `calibrant.mce` for the options.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.
        """
        return _functions().mce(self, **options)

    def estimate(self, **options: Any) -> Estimate:
        """Estimate the calibration error with interval, null and test; see `calibrant.estimate`.

        A sketch does not know which scores of the classes belong together: interval and p-value
        of the class-wise notion allow for any dependence, and say so (`conservative`).

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.
        """
        return _functions().estimate(self, **options)

    def assess(self, **options: Any) -> Assessment:
        """Assess the scores by the notion of the sketch; see `calibrant.assess` for the options.

        What needs rows is left out: other notions, and the log loss over several classes. The
        class-wise interval is conservative. `groups` maps the names of groups to their sketches.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant import Sketch
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(1000)
        >>> result = Sketch("binary").update(rng.random(1000) < score**2, score).assess(rng=0)
        >>> result.verdict.state
        'do not trust'
        """
        return _functions().assess(self, **options)

    def calibrator(self, method: str = "auto", *, monotone: Monotone = "auto") -> Calibrator:
        """Fit a map from scores to probabilities, as `Calibrator` would from the rows.

        Of the notion `binary` it maps the scores of the class, of `confidence` the largest score of a row;
        class-wise there is a map for each class.

        Parameters
        ----------
        method, monotone
            As for `Calibrator`; maps that need the score vectors of rows are refused.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(2000)
        >>> sketch = Sketch("binary").update(rng.random(2000) < score**2, score)
        >>> sketch.calibrator().predict_proba([0.3, 0.7]).round(2)
        array([0.09, 0.47])
        """
        return Calibrator(method, monotone=monotone, class_names=self._class_names)._fit_task(self._task)

    def curve(self, **options: Any) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """Fit the reliability curve; see `calibrant.reliability_curve` for the options.

        Parameters
        ----------
        **options
            Keyword arguments of `calibrant.reliability_curve`.
        """
        return _functions().reliability_curve(self, **options)

    def diagram(self, **options: Any) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
        """Fit the reliability diagram; see `calibrant.reliability_diagram` for the options.

        Parameters
        ----------
        **options
            Keyword arguments of `calibrant.reliability_diagram`.
        """
        return _functions().reliability_diagram(self, **options)

    def lce(self, at: ArrayLike, **options: Any) -> Array:
        """Estimate the local calibration error at given scores; see `calibrant.lce` for the options.

        Parameters
        ----------
        at : float or array
            Scores.
        **options
            Keyword arguments of `calibrant.lce`.
        """
        return _functions().lce(self, at=at, **options)

    def histogram(self, **options: Any) -> ScoreHistogram | ByClass[ScoreHistogram]:
        """Count the scores by outcome; see `calibrant.score_histogram` for the options.

        A cell that an edge divides goes to the side of its mean; no edge of 10, 20, 30 or 40 bins does.

        Parameters
        ----------
        **options
            Keyword arguments of `calibrant.score_histogram`.
        """
        return _functions().score_histogram(self, **options)

    def regret(self, cost: Any, **options: Any) -> Regret:
        """Measure what acting on the scores costs; see `calibrant.regret` for the options.

        A threshold that falls into a cell acts on all of its rows, or on none, by their mean score.

        Parameters
        ----------
        cost : float, pair, array or Cost
            As in the function of `calibrant` with the same name.
        **options
            Its other keyword arguments.
        """
        return _functions().regret(self, cost=cost, **options)

    def regret_curve(self, **options: Any) -> RegretCurve:
        """Measure the regret at every threshold; see `calibrant.regret_curve` for the options.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.
        """
        return _functions().regret_curve(self, **options)

    def best_threshold(self, cost: Any, **options: Any) -> BestThreshold:
        """Choose the threshold of least expected cost; see `calibrant.best_threshold` for the options.

        Parameters
        ----------
        cost : float, pair, array or Cost
            As in the function of `calibrant` with the same name.
        **options
            Its other keyword arguments.
        """
        return _functions().best_threshold(self, cost=cost, **options)

    def risk_coverage(self, **options: Any) -> RiskCoverage:
        """Measure the accuracy of the most confident rows; see `calibrant.risk_coverage` for the options.

        The rows of a cell enter together. A sketch of the scores of a class is refused: it takes one of
        `confidence`, `correctness` or `top:k`.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant` with the same name.
        """
        return _functions().risk_coverage(self, **options)

    @property
    def _about_one_class(self) -> CalibrationTask:
        """The question, of a sketch that is about the score of one class; others are refused."""
        task = self._task
        if not task.notion.is_binary:
            rule = "be a sketch of the score of one class: decisions by other scores need the rows"
            raise inputs.InputError("sketch", rule, got=f"the notion {self.notion!r}")
        return task

    def _decision_task(self, cost: Any, actions: Sequence[str] | None = None) -> tuple[CalibrationTask, Cost]:
        """Return the question, and what a cost says of its two classes."""
        task = self._about_one_class
        return task, cost_of(task, cost, actions, self._given["labels"])

    def _has_cells_for(self, estimator: EstimatorLike) -> bool:
        """Return whether an estimator asks for no more bins than there are cells."""
        try:
            self._check_bins(estimator)
        except ValueError:
            return False
        return True

    def _check_bins(self, estimator: EstimatorLike) -> None:
        """Refuse an estimator that asks for more bins than there are cells."""
        estimator = resolve(estimator, shared=self._notion.classwise)
        cells, bins = self._layout.uniform, estimator.n_bins_at(self._current_cells.n)
        if bins is not None and bins > cells:
            raise ValueError(
                f"{estimator} asks for {bins} bins, but a sketch keeps {cells} cells; name fewer"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what the sketch holds as plain numbers and text.

        `rows` and `dropped` are numbers of rows with and without a label. `mean_score` and `frequency` are
        None for several classes.

        Examples
        --------
        >>> Sketch().update([0, 1, 1], [0.25, 0.5, 0.75]).to_dict()
        {'notion': 'binary', 'labels': [0, 1], 'rows': 3, 'dropped': 0, 'mean_score': 0.5,
        'frequency': 0.66..., 'accuracy': 0.66...}
        """
        with self._lock:
            cells, totals = self._score_data, self.totals
        score = frequency = None
        if not cells.batch:
            weight, sums = cells.sums.w.sum(), cells.sums
            score = float((sums.ws + sums.origin * sums.w).sum() / weight)
            frequency = float(sums.wy.sum() / weight)
        return {
            "notion": self.notion,
            "labels": list(self.labels),
            "rows": totals.rows,
            "dropped": totals.dropped,
            "mean_score": score,
            "frequency": frequency,
            "accuracy": frequency if self._notion.tells_accuracy else totals.right / totals.weight,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a small file of numbers, whole or not at all.

        Labels may be text, numbers and booleans.

        Parameters
        ----------
        path : path
            File to write. It is written completely or not at all.
        """
        from calibrant.sketch.file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sketch:
        """Read the sketch that `save` wrote, equal to the last bit.

        Nothing in the file is run, and every number in it is checked.

        Parameters
        ----------
        path : path
            File that `save` wrote.

        Raises
        ------
        ValueError
            If the file is damaged, changed or no sketch at all.

        Examples
        --------
        >>> import tempfile
        >>> day = Sketch("binary").update([0, 1, 1], [0.2, 0.4, 0.9])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     day.save(f"{folder}/monday.sketch")
        ...     again = Sketch.load(f"{folder}/monday.sketch")
        >>> again.digest == day.digest
        True
        """
        from calibrant.sketch.file import load

        return load(cls, path)

    @classmethod
    @inputs.helpful
    def from_files(
        cls,
        paths: Any,
        *,
        label: str | None = None,
        scores: str | Sequence[str] | None = None,
        notion: str | None = None,
        sample_weight: str | None = None,
        counts: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        class_names: Any = None,
        format: str | None = None,
        progress: Callable[[Any], object] | bool | None = None,
        batch_rows: int | None = None,
        percent: bool = False,
        missing: Missing = "raise",
    ) -> Sketch:
        """Sum up files of any size.

        Parameters
        ----------
        paths : path or sequence of paths
            Parquet, Arrow, CSV, JSON or NPZ files, folders, or patterns such as ``"2024/*.parquet"``.
        label, scores, sample_weight, counts : str, optional
            Names of columns. Label and scores are found by usual names; scores may be several names,
            or a pattern such as ``"p_*"``. `sample_weight` are importance weights, `counts` how many equal
            rows each row stands for; not both.
        notion, pos_label : optional
            As for `calibrant.ece`.
        class_names : sequence or mapping, optional
            Names of the classes in results, in the order of `Sketch.labels`, or by label.
        labels : sequence, optional
            The class of each column of scores. Columns that are named after the same classes in another order
            are matched by name. By default the names tell the classes.
        format : {"parquet", "arrow", "csv", "tsv", "jsonl", "json", "npz"}, optional
            By default what the suffix says, or else the first bytes.
        progress : bool or callable, optional
            True shows how far it is on standard error; a callable is called now and then with a `Reading`,
            which prints as a line: `progress=print`.
        batch_rows : int, optional
            Rows taken together.
        percent : bool
            Whether scores are percentages, from 0 to 100.
        missing : {"raise", "drop"}
            As for `calibrant.ece`; rows that were left out are counted in `totals.dropped`.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for day, rows in {"monday": "0,0.2\\n1,0.4\\n", "tuesday": "1,0.9\\n"}.items():
        ...         _ = pathlib.Path(folder, f"{day}.csv").write_text("label,score\\n" + rows)
        ...     Sketch.from_files(folder)
        Sketch(notion='binary', n=3)
        """
        from calibrant.data.pipeline import from_files

        sketches = from_files(
            paths,
            label=label,
            scores=scores,
            notion=notion,
            sample_weight=sample_weight,
            counts=counts,
            labels=labels,
            pos_label=pos_label,
            format=format,
            progress=inputs.progress(progress),
            batch_rows=batch_rows,
            percent=percent,
            missing=missing,
        )
        return sketches[None]._with_class_names(class_names)

    @classmethod
    @inputs.helpful
    def from_files_by_group(
        cls,
        paths: Any,
        *,
        groups: str,
        label: str | None = None,
        scores: str | Sequence[str] | None = None,
        notion: str | None = None,
        sample_weight: str | None = None,
        counts: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        class_names: Any = None,
        format: str | None = None,
        progress: Callable[[Any], object] | bool | None = None,
        batch_rows: int | None = None,
        percent: bool = False,
        missing: Missing = "raise",
    ) -> dict[Any, Sketch]:
        """Sum up files of any size for each value of the column `groups`; see `from_files` for the rest.

        Parameters
        ----------
        paths, label, scores, notion, sample_weight, counts, labels, pos_label, class_names, format, progress
            As for `from_files`.
        groups : str
            Column of groups.
        batch_rows, percent, missing
            As for `from_files`.

        Returns
        -------
        dict of Sketch
            A sketch for each value of the column.
        """
        from calibrant.data.pipeline import from_files

        sketches = from_files(
            paths,
            groups=groups,
            label=label,
            scores=scores,
            notion=notion,
            sample_weight=sample_weight,
            counts=counts,
            labels=labels,
            pos_label=pos_label,
            format=format,
            progress=inputs.progress(progress),
            batch_rows=batch_rows,
            percent=percent,
            missing=missing,
        )
        return {key: sketches[key]._with_class_names(class_names) for key in inputs.in_order(tuple(sketches))}

    @classmethod
    @inputs.helpful
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        scores: str | Sequence[str],
        notion: str | None = None,
        sample_weight: str | None = None,
        counts: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        class_names: Any = None,
        n_classes: int | None = None,
        percent: bool = False,
        missing: Missing = "raise",
    ) -> Sketch:
        """Sum up a frame where it lies.

        Parameters
        ----------
        frame : frame
            Of pandas, polars (lazy too), pyarrow, DuckDB, Dask, Ibis or PySpark.
        label, sample_weight, counts : str
            Names of columns: importance weights, or how many equal rows each row stands for; not both.
        scores : str or sequence of str
            A column, several, or a pattern such as ``"p_*"``, where the star stands for the class.
        notion, pos_label : optional
            As for `calibrant.ece`. A single column may be named after its class instead, as "p_spam" is.
        labels : sequence, optional
            The class of each column. Columns that are named after the same classes in another order are
            matched by name. By default the names tell the classes.
        class_names : sequence or mapping, optional
            Names of the classes in results, in the order of `Sketch.labels`, or by label.
        n_classes : int, optional
            Checked against the number of classes.
        percent : bool
            Whether scores are percentages, from 0 to 100.
        missing : {"raise", "drop"}
            As for `calibrant.ece`; rows that were left out are counted in `totals.dropped`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"y": ["no", "no", "yes"], "p_no": [0.7, 0.6, 0.2]})
        >>> frame["p_yes"] = 1 - frame["p_no"]
        >>> Sketch.from_frame(frame, label="y", scores="p_*")
        Sketch(notion='confidence', n=3)
        """
        from calibrant.data.frames import from_frame

        arguments: dict[str, Any] = {"label": label, "scores": scores, "notion": notion, "percent": percent}
        arguments |= {
            "missing": missing,
            "sample_weight": sample_weight,
            "counts": counts,
            "labels": labels,
            "pos_label": pos_label,
        }
        return from_frame(frame, n_classes=n_classes, **arguments)[None]._with_class_names(class_names)

    @classmethod
    @inputs.helpful
    def from_frame_by_group(
        cls,
        frame: Any,
        *,
        label: str,
        scores: str | Sequence[str],
        groups: str,
        notion: str | None = None,
        sample_weight: str | None = None,
        counts: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        class_names: Any = None,
        n_classes: int | None = None,
        percent: bool = False,
        missing: Missing = "raise",
    ) -> dict[Any, Sketch]:
        """Sum up each group of a frame where it lies; see `from_frame`.

        Parameters
        ----------
        frame, label, scores, notion, sample_weight, counts, labels, pos_label, class_names
            As for `from_frame`.
        n_classes, percent, missing
            As for `from_frame`.
        groups : str
            The column of the groups.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.6, 0.9], "country": ["fr", "nl", "nl"]})
        >>> Sketch.from_frame_by_group(frame, label="y", scores="p", groups="country")
        {'fr': Sketch(notion='binary', n=1), 'nl': Sketch(notion='binary', n=2)}
        """
        from calibrant.data.frames import from_frame

        if groups is None:
            raise inputs.InputTypeError("groups", "be the name of a column", None)
        arguments: dict[str, Any] = {"label": label, "scores": scores, "notion": notion, "percent": percent}
        arguments |= {
            "missing": missing,
            "sample_weight": sample_weight,
            "counts": counts,
            "labels": labels,
            "pos_label": pos_label,
        }
        sketches = from_frame(frame, n_classes=n_classes, groups=groups, **arguments)
        return {key: sketch._with_class_names(class_names) for key, sketch in sketches.items()}

    @property
    def digest(self) -> str:
        """SHA-256 of all sums and labels: the same for the same content."""
        from calibrant.sketch.file import digest

        return digest(self)


def _blocks(cells: Cells) -> Iterator[Cells]:
    """Yield the sums of a few problems at a time."""
    if not cells.batch:
        yield cells
        return
    for first in range(0, cells.batch[0], TOGETHER):
        yield cells[first : first + TOGETHER]


def _functions() -> ModuleType:
    """Return the package, whose functions take a sketch; they import this module, so it comes late."""
    import calibrant

    return calibrant


def _reordered(data: Predictions, labels: tuple[Any, ...]) -> Predictions:
    """The same rows with their columns in the order of the labels, where these are the same classes."""
    if data.score.ndim == 1 or data.labels == labels or set(data.labels) != set(labels):
        return data
    at = [data.labels.index(label) for label in labels]
    code = np.argsort(at).astype(data.code.dtype)[data.code]
    positive = None if data.positive is None else at.index(data.positive)
    return replace(data, score=data.score[:, at], code=code, labels=labels, positive=positive)


def _negative_of(data: Predictions) -> Any:
    """The negative label of a vector of scores; None where no row has one."""
    return None if data.code.all() else data.labels[0]


def _other_labels(mine: Any, theirs: Any) -> Any:
    """The negative labels of two vectors of scores, in whichever order: none, one, or a tuple of many."""
    if mine is None or theirs is None or mine == theirs:
        return theirs if mine is None else mine
    labels = {
        label
        for negative in (mine, theirs)
        for label in (negative if isinstance(negative, tuple) else (negative,))
    }
    return tuple(sorted(labels, key=lambda label: (type(label).__name__, label)))


def _check_same_kind(labels: tuple[Any, Any]) -> None:
    """Refuse labels of a vector of scores that no single question has: text and numbers."""
    others = labels[0] if isinstance(labels[0], tuple) else (labels[0],)
    known = [label for label in (*others, labels[1]) if label is not None]
    if len({isinstance(label, str) for label in known}) > 1:
        raise inputs.InputError("y_true", "hold labels of one kind in all updates", tuple(known))
