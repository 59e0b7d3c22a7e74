"""Calibration task: a notion, the classes, and the score data, whether given as rows or as sums.

Results that several methods use (residuals, and in later packages the posterior and the null distribution)
are computed once and cached on the task: as properties here, as functions `cached_on_task` in later packages.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeGuard, TypeVar

import numpy as np

from calibrant import inputs
from calibrant.inputs import Predictions
from calibrant.parallel import cached_property
from calibrant.score_data import FINE_UP_TO, Array, Cells, Residuals, Sample, ScoreData, across_clusters
from calibrant.tasks.notions import ClassRelation, Notion, check_canonical_options, default_notion, get_notion

if TYPE_CHECKING:
    from calibrant.score_data.cluster_sums import ClusterSums
    from calibrant.score_data.clusters import DesignEffect
    from calibrant.score_data.simplex import Simplex
    from calibrant.sketch import Sketch

Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
# Rows from which on scores that are all 0 or 1 are hardly chance.
ENOUGH = 20


@dataclass(frozen=True, eq=False)
class ScoreVectors:
    """Access to whole score vectors, for quantities that involve several classes.

    Parameters
    ----------
    n : int
        Number of rows.
    take : callable
        Returns scores (rows, classes), the true class and the weight (or None) of each of the rows with the
        given indices.
    """

    n: int
    take: Callable[[Array], tuple[Array, Array, Array | None]]

    def all_rows(self) -> tuple[Array, Array]:
        """Return scores and labels of all rows."""
        return self.take(np.arange(self.n))[:2]

    @classmethod
    def of(cls, data: Predictions) -> ScoreVectors:
        """Give access to validated predictions; a score p is expanded to the vector (1 - p, p)."""

        def take(index: Array) -> tuple[Array, Array, Array | None]:
            score, code = data.score[index].astype(np.float64, copy=False), data.code[index]
            if score.ndim == 1:
                score = np.stack([1 - score, score], axis=1)
            weight = None if data.weight is None else data.weight[index].astype(np.float64)
            return score, code.astype(np.intp), weight

        return cls(len(data.score), take)


@dataclass(frozen=True, eq=False)
class CalibrationTask:
    """A notion of calibration, the classes it refers to, and the score data.

    Attributes
    ----------
    notion : Notion
    labels : tuple
        Class of each column; for one-dimensional scores the negative and the positive class.
    positive : int or None
        Column of the positive class.
    make : callable
        Makes the score data in blocks of problems, so that many classes need not be in memory.
    rows : ScoreVectors or None
        Access to score vectors, if rows are available.
    weight : array (rows,) or None
        Weights of the rows.
    counts : bool
        Whether weights are numbers of identical rows; True without weights.
    cluster : array (rows,) or None
        Cluster id of each row, 0, 1, 2, ...
    cautions : tuple of str
        Notes about how the data were read, which the results repeat.
    kept : array or None
        Of all rows that were passed, whether each is among these; None if all are.
    cluster_sums : ClusterSums or None
        Sums by cluster, if score data are cells in the fine layout.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks.notions import get_notion
    >>> task = CalibrationTask.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), get_notion("binary"))
    >>> task.label, float(task.n)
    (1, 3.0)
    """

    notion: Notion
    labels: tuple[Any, ...]
    positive: int | None
    make: Callable[[], Iterable[ScoreData]]
    rows: ScoreVectors | None = None
    weight: Array | None = None
    cluster: Array | None = None
    counts: bool = True
    cautions: tuple[str, ...] = ()
    kept: Array | None = None
    cluster_sums: ClusterSums | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Predictions, notion: Notion) -> CalibrationTask:
        """Build the task of a notion for validated predictions."""
        check_canonical_options(notion, clustered=data.cluster is not None)
        weight = _scaled(data.weight, counts=data.counts)

        def make() -> Iterator[Sample]:
            for score, outcome, support, rows in notion.problems(data):
                row_weight = weight if weight is None or rows is None else weight[rows]
                yield Sample(score, outcome, row_weight, support, data.counts)

        description = notion, notion.problem_labels(data), data.positive
        rows = ScoreVectors.of(data)
        return cls(*description, make, rows, data.weight, data.cluster, data.counts, data.cautions, data.kept)

    @cached_property
    def blocks(self) -> list[ScoreData]:
        """The score data in blocks of problems."""
        return list(self.make())

    def stream(self) -> Iterable[ScoreData]:
        """Iterate over the blocks without keeping them in memory, unless they are cached already."""
        return self.blocks if "blocks" in self.__dict__ else self.make()

    @cached_property
    def problems(self) -> list[ScoreData]:
        """List of all problems."""
        return list(self.each())

    def each(self) -> Iterator[ScoreData]:
        """Iterate over the problems without caching them."""
        for block in self.blocks:
            yield from (block[k] for k in range(block.batch[0])) if block.batch else (block,)

    @cached_property
    def simplex(self) -> Simplex:
        """Score vectors as score data, with the classes in alphabetical order."""
        from calibrant.score_data.simplex import Simplex

        assert self.rows is not None
        score, code = self.rows.all_rows()
        ordered = score[:, self.columns], np.argsort(self.columns)[code], self.weight
        return Simplex.of(*ordered, counts=self.counts)

    def about_class(self, column: int) -> CalibrationTask:
        """Return the binary task of one class for the same rows."""
        assert self.rows is not None
        score, code = self.rows.all_rows()
        weight = _scaled(self.weight, counts=self.counts)
        sample = Sample(score[:, column], code == column, weight, (0.0, 1.0), self.counts)
        task: CalibrationTask = replace(
            self, notion=get_notion("binary"), positive=column, make=lambda: [sample], _cache={}
        )
        return task

    @property
    def columns(self) -> Array:
        """Columns in alphabetical order of their classes, in which score vectors are compared."""
        return np.array(sorted(range(len(self.labels)), key=lambda k: str(self.labels[k])), dtype=np.intp)

    @cached_property
    def residuals(self) -> list[Residuals]:
        """Residuals of each problem in score order.

        With clusters they are rescaled to those of an equivalent number of independent rows.
        """
        each = self.residuals_alone
        if self.designs is None:
            return each
        # All problems have the same rows, so the mean design effect reduces the rows; what differs between
        # problems is attributed to the variance.
        ratios = self.design_effects / np.mean(self.design_effects)
        return [
            problem.thinned(1 / ratio, ratio) for problem, ratio in zip(each, ratios.tolist(), strict=True)
        ]

    @cached_property
    def residuals_alone(self) -> list[Residuals]:
        """Residuals of each problem in score order; with clusters, of independent rows by its own effect."""
        plain = [Residuals.of(problem, ties=self.has_ties) for problem in self.each()]
        if self.designs is None:
            return plain
        if (sums := self.cluster_sums) is not None:
            across = [sums.across(item, k) for k, item in enumerate(plain)]
        else:
            pairs = zip(plain, self.each(), strict=True)
            across = [across_clusters(item, data, self.cluster) for item, data in pairs]
        effects = self.design_effects.tolist()
        return [item.thinned(effect) for item, effect in zip(across, effects, strict=True)]

    @property
    def has_ties(self) -> bool:
        """Whether repeated scores are kept apart, for score effects; not with many or weighted classes."""
        return self.shares is None and self.notion.size(len(self.labels)) <= FINE_UP_TO

    @cached_property
    def shares(self) -> Array | None:
        """Share of each class in the mean over the classes, if they have different rows; None if equal."""
        if self.notion.classes is not ClassRelation.SEPARATE:
            return None
        total = self._class_weights
        return total / total.sum()

    @property
    def _class_weights(self) -> Array:
        """Total weight of the rows of each problem."""
        return np.array([float(problem.bins(np.empty(0)).w[0]) for problem in self.each()])

    @property
    def dependent_cluster(self) -> Array | None:
        """Cluster of each row; None without clusters, or if each row is a cluster of its own."""
        from calibrant.score_data.clusters import are_independent

        independent = self.cluster is None or are_independent(self.cluster, self.weight, counts=self.counts)
        return None if independent else self.cluster

    @cached_property
    def designs(self) -> list[DesignEffect] | None:
        """Design effect of the clusters in each problem; None if rows are independent."""
        if (sums := self.cluster_sums) is not None:
            each = (problem for problem in self.each() if isinstance(problem, Cells))
            return None if sums.are_independent else sums.designs(each)
        if (cluster := self.dependent_cluster) is None:
            return None
        from calibrant.score_data.clusters import DesignEffect

        return [DesignEffect.of(each, cluster) for each in self.each() if isinstance(each, Sample)]

    @property
    def design_effects(self) -> Array:
        """Design effect of each problem; 1 without clusters."""
        return np.array([1.0] if self.designs is None else [design.effect for design in self.designs])

    @property
    def n(self) -> float:
        """Effective sample size."""
        if self.notion.classes is ClassRelation.SEPARATE:
            # (sum of w)^2 / sum of w^2 over all problems; n is that of each.
            total = self._class_weights
            return float(total.sum() ** 2 / sum(total**2 / [float(each.n) for each in self.each()]))
        return self.simplex.n if self.notion.canonical else float(np.max(self.blocks[0].n))

    @property
    def clusters(self) -> int | None:
        """Number of clusters; None if no clusters are given."""
        if self.cluster_sums is not None:
            return self.cluster_sums.clusters
        return None if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def label(self) -> Any:
        """The positive class, for notions that evaluate one class; None otherwise."""
        return self.notion.label(self.labels, self.positive)


class cached_on_task(Generic[Parameters, Value]):
    """Cache the results of a function of a task and of hashable arguments on the task.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks.notions import get_notion
    >>> @cached_on_task
    ... def scores_above(task: CalibrationTask, threshold: float) -> list[float]:
    ...     return [float(score) for score in task.problems[0].score if score > threshold]
    >>> task = CalibrationTask.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), get_notion("binary"))
    >>> scores_above(task, 0.3), scores_above(task, 0.3) is scores_above(task, 0.3)
    ([0.4, 0.9], True)
    """

    def __init__(self, compute: Callable[Concatenate[CalibrationTask, Parameters], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __call__(self, task: CalibrationTask, *args: Parameters.args, **options: Parameters.kwargs) -> Value:
        """Return the cached result; compute it at the first call with these arguments."""
        key = self, args, tuple(options.items())
        if key not in task._cache:
            task._cache.setdefault(key, self.compute(task, *args, **options))
        value: Value = task._cache[key]
        return value

    def store(self, task: CalibrationTask, value: Value) -> None:
        """Store the result without further arguments, which was computed in another way."""
        task._cache[self, (), ()] = value


def _scaled(weight: Array | None, *, counts: bool) -> Array | None:
    """Rescale importance weights, which have no unit, so that their squares stay finite.

    The factor is a power of two, so that rescaling is exact. Counts are returned unchanged.
    """
    if weight is None or counts:
        return weight
    return np.asarray(np.ldexp(weight, -int(np.frexp(weight.max())[1])))


def is_sketch(value: object) -> TypeGuard[Sketch]:
    """Tell whether a value is a sketch; none is before the module of that class is imported."""
    module = sys.modules.get("calibrant.sketch.sketch")
    return isinstance(value, getattr(module, "Sketch", ()))


def build_task(
    y_true: Any, y_prob: Any, notion: str | None, *rows: Any, estimator: Any = None, **options: Any
) -> CalibrationTask:
    """Build the task of the arguments of a public function, as for `read`; warn if all scores are 0 or 1.

    A sketch must have cells for the bins of the `estimator`.
    """
    if is_sketch(y_true):
        sketch = alone(y_true, y_prob, notion, *rows, **options)
        if estimator is not None:
            sketch._check_bins(estimator)
        return sketch._task
    data = read(y_true, y_prob, notion, *rows, free=True, **options)
    if data.score.ndim == 1 and len(data.score) >= ENOUGH and inputs.decided(data):
        # Four steps up: this function, the public one, what checks its keywords, and who called that.
        warnings.warn(f"all scores are 0 or 1: {inputs.PREDICTED}", inputs.InputWarning, stacklevel=4)
    return CalibrationTask.of(data, default_notion(notion, vector=data.score.ndim == 1))


def class_names_of(y_true: Any, labels: Sequence[Any], class_names: Any) -> dict[Any, str]:
    """Return the name of each class by label; a sketch has names of its own, unless others are given."""
    if class_names is None:
        if not is_sketch(y_true):
            return {}
        class_names = y_true._class_names
    return inputs.class_names(labels, class_names)


def alone(
    sketch: Sketch,
    y_prob: Any,
    notion: str | None,
    sample_weight: Any,
    labels: Any,
    pos_label: Any,
    cluster: Any = None,
    *,
    counts: Any = None,
    percent: bool = False,
    missing: str = "raise",
    from_logits: bool = False,
) -> Sketch:
    """Return a sketch; refuse what is about rows, and what the sketch was told when it was made."""
    if cluster is not None:
        inputs.refuse_clusters()
    rows = {"y_prob": y_prob, "sample_weight": sample_weight, "counts": counts, "percent": percent or None}
    rows |= {"missing": None if missing == "raise" else missing, "from_logits": from_logits or None}
    for name, value in {**rows, "notion": notion, "labels": labels, "pos_label": pos_label}.items():
        if value is not None:
            raise inputs.InputError(name, "be left out for a sketch, which holds sums of rows")
    return sketch


def read(
    y_true: Any,
    y_prob: Any,
    notion: str | None,
    sample_weight: Any,
    labels: Any,
    pos_label: Any,
    cluster: Any = None,
    groups: Any = None,
    *,
    counts: Any = None,
    percent: bool = False,
    missing: str = "raise",
    from_logits: bool = False,
    free: bool = False,
) -> inputs.Predictions:
    """Check labels, scores, weights and clusters; with `free`, a row can have several labels."""
    if is_sketch(y_true):
        raise inputs.InputTypeError("y_true", "be labels", y_true, got="a sketch, which has no rows")
    if y_prob is None:
        hint = "calibrant.Sketch.from_files(path) reads files" * isinstance(y_true, str | PathLike)
        raise inputs.InputTypeError("y_prob", "be scores", None, hint=hint)
    weights = {"sample_weight": sample_weight, "counts": counts}
    inputs.same_rows(y_true=y_true, y_prob=y_prob, cluster=cluster, groups=groups, **weights)
    is_multilabel = notion is not None and get_notion(notion).classes is ClassRelation.FREE
    if percent and from_logits:
        raise inputs.InputError("percent", "be False where scores are logits", percent)
    if from_logits:
        y_prob = inputs.probabilities(y_prob, free=is_multilabel)
    if is_multilabel:
        if not free:
            hint = "ece, mce, estimate, reliability curves and sketches take matrices of labels"
            raise inputs.InputError("notion", "be about exclusive classes here", notion, hint=hint)
        check_canonical_options(notion, clustered=cluster is not None)
        for name, value in (("pos_label", pos_label), ("percent", percent or None)):
            if value is not None:
                raise inputs.InputError(name, "be left out for this notion", value)
        if missing != "raise":
            raise inputs.InputError("missing", "be 'raise' for this notion", missing)
        return inputs.multilabel(y_true, y_prob, labels=labels, **weights)
    # What was right is no class, whatever the confidences are called.
    by_name = notion is None or not get_notion(notion).correctness_pairs
    options = weights | {"labels": labels, "pos_label": pos_label, "missing": missing}
    data = inputs.predictions(y_true, y_prob, by_name=by_name, percent=percent, **options)
    if percent:
        inputs.check_percent(float(data.score.max()))
    return data if cluster is None else inputs.in_clusters(data, cluster)
