"""Null, test and interval for the classes of a model, some of them at a time.

Each of a thousand classes has few outcomes, so it needs few cells; the mean over the classes averages
what is simulated, so few sets are enough; and only sums over the classes are kept.

A row has one label. The covariance of the outcomes of its classes, diag(p) - p p', is therefore at
most twice its own diagonal, whatever the scores: for each class the others' covariances with it sum to
its variance (Gershgorin). The same holds for the coefficients of all classes together, which are
orthonormal combinations of standardised residuals. So where no rows say how classes depend on each
other, a mean over classes spreads by at most the root of two more than if they were independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.estimators.base import Norm
from calibrant.inference.interval import (
    Simulation,
    SimulationGrid,
    bias_correction,
    group_by_kind,
    invert,
    max_attainable_error,
    score_sampling_sd,
    scale_to_error,
    scale_to_unit_error,
    draw_shapes,
    stack_classes,
    stop_early,
    streams,
    true_error,
    widened,
)
from calibrant.inference.measure import TOGETHER
from calibrant.inference.multiplicity import refined
from calibrant.inference.null import Ranked, SimulatedNull, rank, ranked
from calibrant.posterior.gap import Posterior, Terms, pool_classes
from calibrant.posterior.variance_time import CELLS, n_cells
from calibrant.score_data import Array, Residuals, ScoreData
from calibrant.score_data.draws import Outcomes
from calibrant.tasks import CalibrationTask
from calibrant.tasks.notions import combined

# Simulated sets of a class, and those of a class that stands out at least.
SETS, MORE = 199, 999
# Classes that may stand out, and their share of all.
STANDING, STANDING_SHARE = 50, 0.2
# Times that the sets of independent classes are put together anew.
SHUFFLED = 5
# Steps of a class that outcomes are drawn for, and cells along its score for rough gaps.
STEPS, FINEST = 512, 256
# Data sets simulated for the interval, and numbers that they hold at most.
DRAWN, HELD = 100, 1 << 23
# Numbers simulated together: they stay in the cache.
HELD_AT_ONCE = 1 << 17
# Shares of the level of all classes together and of the class that stands out most.
SHARES = (0.8, 0.2)
# How much wider a mean over classes can spread than if they were independent.
WIDEST = float(np.sqrt(2))


@dataclass(frozen=True, eq=False)
class Classes:
    """What is kept of the evidence of many classes.

    Attributes
    ----------
    posterior : Posterior
        As for few classes: the estimate is its.
    coarse : Posterior
        Over the cells that are simulated.
    plain : Posterior
        Over those cells too, with the variance that the scores say: what calibrated data are held against.
    steps : list of Residuals
        Residuals of each class at no more than `STEPS` steps.
    """

    posterior: Posterior
    coarse: Posterior
    plain: Posterior
    steps: list[Residuals]

    @classmethod
    def of(cls, task: CalibrationTask) -> Classes:
        """Look at each class once; its residuals are not held."""
        fine, plain, steps = [], [], []
        for one, other, own in _looks(task):
            fine.append(one)
            plain.append(other)
            steps += own
        posterior = task.once("posterior", lambda: Posterior.joined(fine))
        spread = [float((each.spread * each.score * (1 - each.score)).sum()) for each in steps]
        few = enough(float(np.mean(spread)), len(steps))
        whole = Posterior.joined(plain)
        # Labels that are drawn for whole rows give coefficients alone.
        plainly = whole.coarser(few).smooth_alone
        return cls(posterior, posterior.coarser(few), plainly, steps)


def _looks(task: CalibrationTask) -> Iterator[tuple[Posterior, Posterior, list[Residuals]]]:
    """Return posterior, the one with the variance of the scores, and steps, of some classes at a time."""

    def look(some: ScoreData) -> tuple[Posterior, Posterior, list[Residuals]]:
        flat = Residuals.of(some, ties=False).flat
        cells, steps = int(n_cells(flat.n)[0]), [flat[k].coarser(STEPS) for k in range(len(flat.mass))]
        return Posterior.of_residuals(flat, cells), Posterior.of_residuals(flat, cells, plain=True), steps

    for block in task.blocks:
        pieces = [block[first : first + TOGETHER] for first in range(0, block.batch[0], TOGETHER)]
        yield from compiled.shared(look, pieces)


def enough(spread: float, classes: int) -> int:
    """Return how many cells to simulate for classes whose outcomes have this variance on average.

    As many as rows with scores of one half would have, where a row has a variance of a quarter.

    >>> enough(50.0, 1000), enough(1e5, 100), enough(1e5, 1000)
    (64, 512, 64)
    """
    room = 2 ** int(np.log2(max(HELD // (DRAWN * classes), 1)))
    return int(min(n_cells(np.array(4 * spread + CELLS)), max(CELLS, room)))


class Nulls(NamedTuple):
    """What calibrated data would show: of each class, when it is asked for, and of all.

    `p_value` is that of all classes together, and `p_floor` the smallest that it can be.
    """

    alone: list[Callable[[], SimulatedNull]]
    whole: SimulatedNull
    p_value: float
    p_floor: float


def joint(
    plain: Posterior,
    parts: Iterable[tuple[int, Callable[[int], Array]]],
    norm: Norm,
    step: Callable[[], object] = lambda: None,
) -> SimulatedNull:
    """Simulate all classes of a model together.

    The test joins the evidence of all classes together and that of the class that stands out most.

    Parameters
    ----------
    plain : Posterior
        Of each class, with the variance that the scores say.
    parts : iterable of (number of sets, callable)
        Sets of calibrated data, and how to get the coefficients (sets, cells) of a class in them. The error
        is computed for the first part alone.
    step : callable
        Called after each class of the first part.
    """
    classes, cells = plain.z.shape
    evidence, most = [], []
    errors: list[Array] = []
    for sets, coefficients in parts:
        of = None if errors else norm

        def drawn(some: slice, sets: int = sets, coefficients: Any = coefficients, of: Any = of) -> _Added:
            z = np.concatenate([coefficients(k) for k in range(classes)[some]])
            return _Added.of(plain[some].again(z), of, sets)

        sums, pieces = _Sums(sets), _together(classes, sets * cells)
        for some, added in zip(pieces, compiled.shared(drawn, pieces), strict=True):
            sums.add(added)
            for _ in range(classes)[slice(0) if errors else some]:
                step()
        evidence.append(sums.evidence(cells, classes))
        most.append(sums.most)
        if not errors:
            errors.append(sums.error(cells, classes, norm))
    seen = _Sums(1)
    seen.add(_Added.of(plain, None))
    together = rank(np.concatenate([*evidence, seen.evidence(cells, classes)])) / SHARES[0]
    joined = -np.minimum(together, rank(np.concatenate([*most, seen.most])) / SHARES[1])
    return SimulatedNull(joined[:-1], errors[0], float(joined[-1]))


def independent(alone: Alone, norm: Norm, step: Callable[[], object]) -> Nulls:
    """Simulate classes whose rows are not known.

    They are independent, and their sums are spread as far as any dependence could.
    """
    count, cells = len(alone.steps), alone.cells
    seen, sums, pooled = _Sums(1), _Sums(SETS * SHUFFLED), []
    for each, rng in zip(compiled.shared(alone.draw, range(count)), alone.rngs, strict=True):
        alone.first.append(each.simulated)
        seen.add(_Added.of(each.observed, norm))
        pooled.append(each.read.some)
        order = np.concatenate([rng.permutation(SETS) for _ in range(SHUFFLED)])
        sums.add(_Added.of(each.read, norm, SETS), order)
        step()
    sums.widen(WIDEST)
    evidence = np.append(sums.evidence(cells, count), seen.evidence(cells, count))
    # At most so many classes of calibrated data would stand out as far, however they depend.
    further = np.count_nonzero(np.concatenate(pooled) >= seen.most[0] - 1e-12 * abs(seen.most[0]))
    outlying = (1 + further) / (1 + SETS)
    p_value = min(1.0, float(rank(evidence)[-1]) / SHARES[0], outlying / SHARES[1])
    whole = SimulatedNull(evidence[:-1], sums.error(cells, count, norm), float(evidence[-1]))
    return Nulls(alone.each, whole, p_value, whole.p_floor / SHARES[0])


class Alone:
    """Calibrated data of each class by itself, simulated when the first class is asked about.

    Attributes
    ----------
    some : array
        Evidence of each class.
    first : list of Simulated
        What was simulated already: of every class, or of none.
    rngs : list of Generator
        Of each class.
    alpha : float
        The level that adjusted p-values of the classes are held against.
    n_resamples : int, optional
        Sets simulated for each class that stands out; by default as many as let these be rejected.
    """

    def __init__(
        self,
        classes: Classes,
        norm: Norm,
        rngs: list[np.random.Generator],
        alpha: float,
        n_resamples: int | None,
    ) -> None:
        self.steps, self.some, self.cells = classes.steps, classes.coarse.some, classes.coarse.z.shape[-1]
        self.norm, self.rngs, self.alpha, self.n_resamples = norm, rngs, alpha, n_resamples
        self.first: list[SimulatedNull] = []
        # Whichever classes are asked about first, by several threads: generators have one turn.
        self._all = compiled.once(self._simulate)

    def draw(self, k: int, sets: int = SETS) -> Ranked:
        """Simulate one class."""
        steps = self.steps[k]
        return ranked(steps, Outcomes.of(steps).blocks(self.rngs[k], sets), self.norm, self.cells, FINEST)

    @property
    def each(self) -> list[Callable[[], SimulatedNull]]:
        """What returns the simulations of each class."""
        return [lambda k=k: self._all()[k] for k in range(len(self.steps))]  # type: ignore[misc]

    def _simulate(self) -> list[SimulatedNull]:
        """Return the simulations of all classes, more of those that stand out.

        So their p-values can be small. Where most classes stand out, only the first of them are worth it.
        """
        every = range(len(self.steps))
        alone = self.first or list(compiled.shared(lambda k: self.draw(k).simulated, every))
        p_values = np.array([simulation.p_value for simulation in alone])
        most = max(STANDING, int(STANDING_SHARE * len(alone)))
        order = np.lexsort((-self.some, p_values))[:most]
        again = refined(
            {k: alone[k] for k in order.tolist()},
            lambda each: each.p_value,
            lambda k, size: self.draw(k, self.n_resamples or size).simulated,
            tests=len(alone),
            alpha=self.alpha,
            size=SETS,
            least=MORE,
        )
        return [again.get(k, each) for k, each in enumerate(alone)]


def _together(classes: int, size: int) -> list[slice]:
    """Return which classes are simulated together, of each of which there are so many numbers."""
    step = max(1, HELD_AT_ONCE // size)
    return [slice(first, min(first + step, classes)) for first in range(0, classes, step)]


class _Added(NamedTuple):
    """What some classes add to sums over all of them."""

    terms: Terms
    most: Array

    @classmethod
    def of(cls, posterior: Posterior, norm: Norm | None, sets: int = 1) -> _Added:
        """Return what so many sets of each class add, one class after the other."""
        terms = (term.reshape(-1, sets, *term.shape[1:]).sum(axis=0) for term in posterior.terms(norm))
        return cls(Terms(*terms), posterior.some.reshape(-1, sets).max(axis=0))


class _Sums:
    """Sums over the classes of simulated sets."""

    def __init__(self, sets: int) -> None:
        self.terms = Terms(np.zeros((sets, 1)), np.zeros((sets, 1)), *np.zeros((3, sets)))
        self.most = np.full(sets, -np.inf)

    def add(self, added: _Added, order: Array | None = None) -> None:
        """Add a class; its sets may come in another order, and more than once."""
        terms, most = added
        if order is not None:
            terms, most = Terms(*(term[order] for term in terms)), most[order]
        self.terms = Terms(*(total + term for total, term in zip(self.terms, terms, strict=True)))
        self.most = np.maximum(self.most, most)

    def widen(self, factor: float) -> None:
        """Spread the sets around their mean."""
        middle = (term.mean(axis=0) for term in self.terms)
        wide = (m + factor * (term - m) for m, term in zip(middle, self.terms, strict=True))
        shape, offset, alone, smooth, own = wide
        self.terms = Terms(shape, offset, alone, np.maximum(smooth, 0.0), np.maximum(own, 0.0))

    def evidence(self, cells: int, classes: int) -> Array:
        """Return the log of the Bayes factor for some gap against none."""
        return pool_classes(self.terms, cells, classes).evidence

    def error(self, cells: int, classes: int, norm: Norm, *, shared: bool = True) -> Array:
        """Return the combined error of each set, where classes are judged together or each by itself."""
        value = self.terms.own / classes
        if shared:
            value = pool_classes(self.terms, cells, classes).mixed(self.terms.smooth / classes, value)
        return np.minimum(value if norm == "l1" else np.sqrt(value), 1.0)


def interval(
    posterior: Posterior,
    n: float,
    keys: Sequence[int],
    *,
    norm: Norm,
    level: float,
    spread: float,
    shared: bool,
) -> tuple[float, float]:
    """Return an interval for the error of all classes of a model; `interval.interval` is for one problem.

    Parameters
    ----------
    posterior : Posterior
        Of each class, over the cells that are simulated.
    keys : sequence of int
        A number for each class: what is drawn for it belongs to that.
    spread : float
        How much wider a mean over the classes spreads than if they were independent.
    shared : bool
        Whether classes are judged together.
    """
    classes, cells = posterior.z.shape
    observed = _Sums(1)
    observed.add(_Added.of(posterior, norm))
    value = float(observed.error(cells, classes, norm, shared=shared)[0])
    allowed = bias_correction(posterior, value, norm)
    posterior = posterior.focused()
    common, each_rng = streams(keys)
    kind, drawn = draw_shapes(posterior, each_rng, DRAWN)
    normal = [rng.standard_normal(each.shape, np.float32) for rng, each in zip(each_rng, drawn, strict=True)]
    pieces = _simulated_together(posterior)
    grids = [SimulationGrid.of(posterior[some]) for some in pieces]
    noise, gaps = (
        [np.stack([each[k] for k in some]) if len(some) > 1 else each[some[0]] for some in pieces]
        for each in (normal, drawn)
    )
    del normal, drawn
    gap = [each.astype(np.float32, order="C") for each in scale_to_unit_error(gaps, grids, norm)]
    most = max_attainable_error(grids, gap, norm)
    sampling_noise = common.standard_normal(DRAWN)

    def simulate(true: float) -> Simulation:
        factor = scale_to_error(true, gap, grids, norm)

        def simulated(i: int) -> tuple[Array, Array, _Added]:
            sim_grid = grids[i]
            possible = sim_grid.possible(gap[i], factor)
            own_error = true_error(possible, sim_grid.mass, norm)
            z, residual = sim_grid.data(possible, noise[i])
            data = sim_grid.posterior.again(z, () if residual is None else (residual,))
            return (
                own_error,
                score_sampling_sd(possible, sim_grid.mass, own_error, norm, n),
                _Added.of(data, norm, DRAWN),
            )

        sums, each_error, each_chance = _Sums(DRAWN), [], []
        for own_error, chance, added in compiled.shared(simulated, range(len(grids))):
            sums.add(added)
            each_error.append(own_error)
            each_chance.append(chance)
        errors, chances = stack_classes(each_error), stack_classes(each_chance)
        truth = combined(errors, norm)
        moved = sampling_noise * _score_sampling_sd(errors, chances, truth, norm, n)
        estimate = widened(sums.error(cells, classes, norm, shared=shared), spread) + moved
        return group_by_kind(true, estimate, most >= true, kind, truth)

    return invert(stop_early(simulate, value), value, posterior, level, allowed)


def _simulated_together(posterior: Posterior) -> list[Array]:
    """Return which classes are simulated together; one over its distinct scores is alone."""
    classes, cells = posterior.z.shape
    alone = np.array([posterior.discrete(k) or not posterior.mass[k].all() for k in range(classes)])
    others = np.flatnonzero(~alone)
    pieces = [others[some] for some in _together(others.size, DRAWN * cells)]
    return [*pieces, *np.flatnonzero(alone)[:, None]]


def _score_sampling_sd(each: Array, chances: Array, truth: Array, norm: Norm, n: float) -> Array:
    """Return the standard deviation of a sample's own error around the true one, at most.

    It is largest if all classes err on the same rows; but the gaps of a row have absolute values that
    sum to no more than two, so their mean over the classes varies little.
    """
    classes = each.shape[-1]
    if norm == "l1":
        worst = chances.mean(axis=-1)
        bound = np.sqrt(np.maximum(truth * (2 / classes - truth), 0.0) / n)
    else:
        worst = (each * chances).mean(axis=-1) / np.maximum(truth, 1e-12)
        bound = np.sqrt(np.maximum(2 / classes - truth**2, 0.0) / n) / 2
    return np.minimum(worst, bound)
