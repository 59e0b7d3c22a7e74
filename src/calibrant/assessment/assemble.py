"""From evidence, of rows or of a sketch, to an assessment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._version import __version__
from calibrant.assessment.inputs import today
from calibrant.assessment.parts import Balance, Odds, Row
from calibrant.assessment.result import Assessment
from calibrant.curves.answers import Asked, curves, diagrams
from calibrant.curves.curve import Progress
from calibrant.curves.fit import fit_diagram
from calibrant.estimators import Binned
from calibrant.evidence import Evidence
from calibrant.inference import Estimate, Rows, infer
from calibrant.inference.estimate import MANY, Kept, singles
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.questions.notions import Notion, named

#: The paper's five estimators with its heuristics, by which the headline is measured too.
RULERS = ("uniform", "adaptive", "uniform-convex", "adaptive-convex", "density")
BINS = Binned("uniform", 15)
# For the axis of log odds: its bins, and the log odds between the cells of its histogram.
BY_MASS = Binned("adaptive", 15)
LOG_ODDS = np.arange(-20.0, 20.25, 0.25)


@dataclass(frozen=True, eq=False)
class Material:
    """What an assessment is made of.

    Attributes
    ----------
    evidence : mapping
        Blocks of problems by notion, that of the headline first.
    asked : Asked
        Which classes the problems speak of.
    names : tuple of str
        What the classes are called.
    together : Rows or None
        Rows of all classes, if there are any.
    rulers : sequence of str
        Estimators that measure the headline beside the default.
    rows, digest : int, str
        Number of rows, and what identifies them.
    level, seed : float, int
        Level of all intervals, and seed of the simulations.
    """

    evidence: Mapping[str, list[Any]]
    asked: Asked
    names: tuple[str, ...]
    together: Rows | None
    rulers: Sequence[str]
    rows: int
    digest: str
    level: float
    seed: int

    @property
    def headline(self) -> str:
        """The first notion."""
        return next(iter(self.evidence))

    def estimate(self, notion: str, estimator: str = "auto", **more: Any) -> Estimate:
        """The estimate by one notion."""
        return estimated(
            named(notion),
            self.evidence[notion],
            self.asked,
            self.together,
            level=self.level,
            seed=self.seed,
            estimator=estimator,
            **more,
        )


def estimated(
    which: Notion,
    blocks: list[Any],
    asked: Asked,
    together: Rows | None,
    *,
    level: float,
    seed: int,
    estimator: str = "auto",
    each: float | None = None,
    kept: Kept | None = None,
    step: Callable[[], object] = lambda: None,
) -> Estimate:
    """The estimate of blocks of problems; the intervals of single classes may have a level of their own."""
    column = asked.positive if which.name == "class" else None
    return infer(
        which,
        blocks,
        estimator=estimator,
        norm="l1",
        level=level,
        rng=seed,
        labels=asked.labels,
        label=None if column is None else asked.labels[column],
        rows=together,
        each_level=each,
        kept=kept,
        step=step,
    )


def assemble(
    material: Material, steps: Steps, *, accuracy: Balance | None, name: Any, command: Any
) -> Assessment:
    """All that follows from the evidence alone; scores, groups and warnings are still to come."""
    asked, level, seed, evidence = material.asked, material.level, material.seed, material.evidence
    estimates, drawn, bins, headline = {}, {}, {}, material.headline
    each, kept = each_level(level, len(material.names)), Kept()
    for notion, blocks in evidence.items():
        own = kept if notion == headline else None
        estimates[notion] = material.estimate(notion, each=each, kept=own, step=steps)
        steps()
        drawn[notion] = curves(
            named(notion),
            blocks,
            asked,
            "ranks",
            n_boot=0,
            level=level,
            band="corrected",
            rng=seed,
            progress=None,
        )
        bins[notion] = diagrams(named(notion), blocks, asked, BINS, interval="wilson", level=level)
        steps()
    rulers = {"auto": estimates[headline]}
    for ruler in material.rulers:
        rulers[ruler] = material.estimate(headline, ruler, kept=kept)
        steps()
    one = None if headline == "classwise" else evidence[headline][0]
    column = asked.positive if "class" in evidence else None
    return Assessment(
        notion=headline,
        estimates=MappingProxyType(estimates),
        curves=MappingProxyType(drawn),
        diagrams=MappingProxyType(bins),
        odds=_odds(one if one is not None else _worst(estimates["classwise"], evidence["classwise"]), level),
        rulers=MappingProxyType(rulers),
        by_class=_by_class(estimates.get("classwise"), evidence.get("classwise"), material.names),
        by_group=(),
        balance=accuracy if one is None else balance_of(one, level),
        accuracy=accuracy,
        scores=(),
        warnings=(),
        rows=material.rows,
        n=estimates[headline].n,
        classes=material.names,
        asked=None if column is None else material.names[column],
        level=level,
        seed=seed,
        created=today(),
        digest=material.digest,
        version=__version__,
        name=None if name is None else str(name),
        command=None if command is None else str(command),
    )


def rulers_for(notion: str, classes: int) -> tuple[str, ...]:
    """The estimators of the literature that an assessment shows; of many classes the default alone."""
    return RULERS if notion != "classwise" or classes <= MANY else ()


def class_steps(notions: Iterable[str], classes: int) -> int:
    """Steps of progress that single classes make: each is simulated, and has an interval."""
    return 2 * classes if "classwise" in notions and classes > MANY else 0


def balance_of(one: Evidence, level: float) -> Balance:
    """Mean score against frequency of one problem."""
    bins = one.bins(np.empty(0))
    atoms = one.atoms()
    atoms = atoms.about(np.zeros(np.shape(atoms.origin)))
    square = float((atoms.wss - 2 * atoms.wsy + atoms.wy).sum() / atoms.w.sum())
    return balanced(float(bins.score[0]), float(bins.frequency[0]), square, float(one.n), level)


def balanced(score: float, frequency: float, square: float, n: float, level: float) -> Balance:
    """Mean score against frequency, from the mean square of their differences."""
    gap = score - frequency
    # The spread of a residual is at least that of an outcome at the frequency seen.
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(max(square - gap * gap, 0.25 / n) / n)
    return Balance(score, frequency, gap - reach, gap + reach)


def _worst(estimate: Estimate, blocks: list[Any]) -> Evidence:
    """The evidence of the class with the largest error."""
    errors = [one.value for one in (estimate.by_class or {}).values()]
    return singles(blocks)[int(np.argmax(errors))]


def _odds(one: Evidence, level: float) -> Odds:
    cuts = 1 / (1 + np.exp(-LOG_ODDS))
    w = one.bins(cuts).w
    edges, counts = np.concatenate([[0.0], cuts, [1.0]]), np.asarray(w * (one.n / w.sum()))
    return Odds(edges, counts, fit_diagram(one, BY_MASS, level=level, interval="wilson", notion="class"))


def _by_class(estimate: Any, blocks: list[Any] | None, names: tuple[str, ...]) -> tuple[Row, ...]:
    if estimate is None or blocks is None:
        return ()
    adjusted = false_discovery([one.p_value for one in estimate.by_class.values()])
    rows = []
    for name, one, part, p in zip(names, estimate.by_class.values(), singles(blocks), adjusted, strict=True):
        bins = part.bins(np.empty(0))
        score, frequency = float(bins.score[0]), float(bins.frequency[0])
        rows.append(Row(name, round(frequency * estimate.n, 6), score, frequency, one, p))
    return tuple(sorted(rows, key=lambda row: -row.estimate.value))


class Steps:
    """Counts what is done, for progress."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self) -> None:
        """One more is done."""
        self.done += 1
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def end(self) -> None:
        """All is done."""
        self.done = self.total - 1
        self()
