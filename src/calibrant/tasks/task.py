"""A question: a notion, the classes it is about, and the evidence, of rows or of sums alike.

What follows from the evidence alone (residuals, and in the rooms to the right the posterior and what
calibrated data would show) is computed once for a question and kept on it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.inputs import Predictions
from calibrant.score_data import FINE_UP_TO, Array, Residuals, Sample, ScoreData, across_clusters
from calibrant.tasks.notions import Notion, check_whole, named

if TYPE_CHECKING:
    from calibrant.score_data.clusters import DesignEffect
    from calibrant.score_data.simplex import Simplex

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Rows:
    """Whole rows, for what the classes have in common.

    Parameters
    ----------
    n : int
    take : callable
        Scores (rows, classes), the true class of each row and weights, of the rows asked for by number.
    """

    n: int
    take: Callable[[Array], tuple[Array, Array, Array | None]]

    @classmethod
    def of(cls, data: Predictions) -> Rows:
        """Take rows of checked predictions; a single score p stands for the two scores 1 - p and p."""

        def take(some: Array) -> tuple[Array, Array, Array | None]:
            score, code = data.score[some].astype(np.float64), data.code[some]
            if score.ndim == 1:
                score = np.stack([1 - score, score], axis=1)
            weight = None if data.weight is None else data.weight[some].astype(np.float64)
            return score, code.astype(np.intp), weight

        return cls(len(data.score), take)


@dataclass(frozen=True, eq=False)
class CalibrationTask:
    """What is asked, about which classes, of which evidence.

    Attributes
    ----------
    notion : Notion
    labels : tuple
        The class of each column; of a vector of scores the negative and the positive one.
    positive : int or None
        Column of the class asked about.
    make : callable
        Makes the evidence in blocks of problems, so that many classes need not be held.
    rows : Rows or None
        Whole rows, where they are known.
    weight : array or None
        Their weights.
    counts : bool
        Whether these are numbers of equal rows; True without weights.
    cluster : array or None
        The number of the cluster that each of them is of.
    cautions : tuple of str
        Sentences about how the data were read, which the results repeat.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks.notions import named
    >>> task = CalibrationTask.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), named("binary"))
    >>> task.label, float(task.n)
    (1, 3.0)
    """

    notion: Notion
    labels: tuple[Any, ...]
    positive: int | None
    make: Callable[[], Iterable[ScoreData]]
    rows: Rows | None = None
    weight: Array | None = None
    cluster: Array | None = None
    counts: bool = True
    cautions: tuple[str, ...] = ()
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Predictions, notion: Notion) -> CalibrationTask:
        """Ask a notion of checked predictions."""
        check_whole(notion, clustered=data.cluster is not None)
        weight = _scaled(data.weight, counts=data.counts)

        def make() -> Iterator[Sample]:
            for problem in notion.problems(data):
                yield Sample(problem.score, problem.outcome, weight, problem.support, data.counts)

        about = notion, data.labels, data.positive
        rows = Rows.of(data)
        return cls(*about, make, rows, data.weight, data.cluster, data.counts, data.cautions)

    @cached_property
    def blocks(self) -> list[ScoreData]:
        """The evidence in blocks of problems."""
        return list(self.make())

    def stream(self) -> Iterable[ScoreData]:
        """Make the blocks one by one, and hold none of them unless they are held already."""
        return self.blocks if "blocks" in self.__dict__ else self.make()

    @cached_property
    def problems(self) -> list[ScoreData]:
        """The problems one by one."""
        return list(self.each())

    def each(self) -> Iterator[ScoreData]:
        """Make the problems one by one, anew each time; many need not be held."""
        for block in self.blocks:
            yield from (block[k] for k in range(block.batch[0])) if block.batch else (block,)

    @cached_property
    def simplex(self) -> Simplex:
        """Whole rows as evidence, with the classes in the order of their names."""
        from calibrant.score_data.simplex import Simplex

        assert self.rows is not None
        score, code, _ = self.rows.take(np.arange(self.rows.n))
        own = score[:, self.columns], np.argsort(self.columns)[code], self.weight
        return Simplex.of(*own, counts=self.counts)

    def about_class(self, column: int) -> CalibrationTask:
        """Ask the same rows about one class."""
        assert self.rows is not None
        score, code, _ = self.rows.take(np.arange(self.rows.n))
        weight = _scaled(self.weight, counts=self.counts)
        sample = Sample(score[:, column], code == column, weight, (0.0, 1.0), self.counts)
        own: CalibrationTask = replace(
            self, notion=named("binary"), positive=column, make=lambda: [sample], _known={}
        )
        return own

    @property
    def columns(self) -> Array:
        """The classes in the order of their names, in which whole rows are compared."""
        return np.array(sorted(range(len(self.labels)), key=lambda k: str(self.labels[k])), dtype=np.intp)

    @cached_property
    def residuals(self) -> list[Residuals]:
        """Residuals of each problem in score order; of clusters, as if by fewer rows that are independent."""
        plain = [Residuals.of(problem, ties=self.has_ties) for problem in self.each()]
        if self.designs is None:
            return plain
        plain = [
            across_clusters(each, problem, self.cluster)
            for each, problem in zip(plain, self.each(), strict=True)
        ]
        # All problems are of the same rows: what differs from one to the other is the variance.
        effects = [design.effect for design in self.designs]
        usual = float(np.mean(effects))
        return [each.thinned(usual, own / usual) for each, own in zip(plain, effects, strict=True)]

    @property
    def has_ties(self) -> bool:
        """Whether scores may have effects of their own; those of many classes are not kept apart."""
        return self.notion.size(len(self.labels)) <= FINE_UP_TO

    @cached_property
    def designs(self) -> list[DesignEffect] | None:
        """What clusters do to each problem; None where every row is by itself."""
        if self.cluster is None:
            return None
        from calibrant.score_data.clusters import DesignEffect, are_alone

        cluster, weight = self.cluster, self.weight
        if are_alone(cluster, weight, counts=self.counts):
            return None
        return [DesignEffect.of(each, cluster) for each in self.each() if isinstance(each, Sample)]

    @cached_property
    def independent(self) -> CalibrationTask:
        """The same question of sums that say as much as these rows do, as if each stood for itself."""
        designs = self.designs
        if designs is None:
            return self
        from calibrant.score_data.clusters import thinned

        def make() -> Iterator[ScoreData]:
            for problem, design in zip(self.each(), designs, strict=True):
                cells = thinned(problem, design.effect)  # type: ignore[arg-type]
                yield cells[None] if self.notion.classwise else cells

        return replace(self, make=make, rows=None, weight=None, cluster=None, counts=True, _known={})

    @property
    def n(self) -> float:
        """Effective number of rows."""
        return self.simplex.n if self.notion.canonical else float(np.max(self.blocks[0].n))

    @property
    def clusters(self) -> int | None:
        """How many clusters the rows fall into; None where none are known."""
        return None if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def label(self) -> Any:
        """The class asked about, if it is one."""
        return self.notion.label(self.labels, self.positive)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what was made under this key, or make it now."""
        if key not in self._known:
            self._known[key] = make()
        value: Value = self._known[key]
        return value


def _scaled(weight: Array | None, *, counts: bool) -> Array | None:
    """Return weights of a size at which squares stay finite: importance weights have no scale.

    A power of two is taken out exactly.
    """
    if weight is None or counts:
        return weight
    return np.asarray(np.ldexp(weight, -int(np.frexp(weight.max())[1])))
