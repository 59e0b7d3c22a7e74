"""Null and test for the classes of a model: each by itself, and all together, one class after the other.

Only sums over the classes are kept, so that a thousand of them need no more memory than few. More classes
than `MANY` are simulated with fewer sets, over fewer cells: each has few outcomes, and the mean over the
classes averages what is simulated.

A row has one label. The covariance of the outcomes of its classes, diag(p) - p p', is therefore at
most twice its own diagonal, whatever the scores: for each class the others' covariances with it sum to
its variance (Gershgorin). The same holds for the coefficients of all classes together, which are
orthonormal combinations of standardised residuals. So where no rows say how classes depend on each
other, a mean over classes spreads by at most the root of two more than if they were independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.estimators.base import Norm
from calibrant.evidence import Array, Residuals
from calibrant.evidence.draws import Outcomes
from calibrant.inference.multiplicity import refined
from calibrant.inference.null import FINEST as FINEST_OF_FEW
from calibrant.inference.null import (
    READ,
    Simulated,
    by_class,
    combined_error,
    combined_evidence,
    drawn,
    rank,
    ranked,
)
from calibrant.inference.null import STEPS as STEPS_OF_FEW
from calibrant.inference.walks import Edges, coefficients
from calibrant.posterior.clock import CELLS, n_cells
from calibrant.posterior.gap import Posterior, Terms

# Classes from which on fewer sets and cells are simulated.
MANY = 20
# Of many classes: simulated sets of each, and those of a class that stands out at least.
SETS, MORE = 199, 999
# Classes that may stand out, and their share of all.
STANDING, STANDING_SHARE = 50, 0.2
# Steps of one of many classes that outcomes are drawn for, and cells along its score for rough gaps.
STEPS, FINEST = 512, 256
# Numbers that the simulation of an interval may hold, and the sets that share them.
HELD, DRAWN = 1 << 23, 100
# Times that the sets of independent classes are put together anew.
SHUFFLED = 5
# Shares of the level of all classes together and of the class that stands out most.
SHARES = (0.8, 0.2)
# How much wider a mean over classes can spread than if they were independent.
WIDEST = float(np.sqrt(2))


def simulated_cells(residuals: Sequence[Residuals], cells: int) -> int:
    """Return over how many of these cells classes are simulated: over all unless the classes are many.

    Many classes have as many as rows with scores of one half would have whose outcomes vary as much.
    """
    classes = len(residuals)
    if classes <= MANY:
        return cells
    spread = np.mean([float((each.spread * each.score * (1 - each.score)).sum()) for each in residuals])
    room = 2 ** int(np.log2(max(HELD // (DRAWN * classes), 1)))
    return int(min(n_cells(np.array(4 * spread + CELLS)), max(CELLS, room), cells))


def plain_posterior(residuals: Sequence[Residuals], cells: int) -> Posterior:
    """Return the posterior of all classes with the variance that the scores say, over so many cells."""
    flats = [each.flat for each in residuals]
    fine = min(int(n_cells(flat.n)[0]) for flat in flats)
    joined = Posterior.joined([Posterior.of_residuals(flat, fine, plain=True) for flat in flats])
    # Labels that are drawn for whole rows give coefficients alone.
    return joined.coarser(cells).smooth_alone


def simulate_alone(
    residuals: Sequence[Residuals],
    cells: int,
    evidence: Array,
    norm: Norm,
    rngs: Sequence[np.random.Generator],
    size: int,
    n_resamples: int | None,
    alpha: float,
) -> list[Callable[[], Simulated]]:
    """Return what simulates calibrated data of each class by itself; the first one asked for simulates all.

    Of many classes those that stand out are simulated again with more sets, so that their p-values can be
    small. Where most classes stand out, only the first of them are worth it.

    Parameters
    ----------
    cells : int
        Cells over which all classes are simulated together, and each of many classes by itself.
    evidence : array
        Of each class: which classes come first among those with the same p-value.
    size : int
        Sets simulated for each of few classes.
    n_resamples : int, optional
        Sets simulated for each of many classes that stands out; by default as many as let these be rejected.
    alpha : float
        The level that adjusted p-values of the classes are held against.
    """
    many = len(residuals) > MANY
    most, finest, first = (STEPS, FINEST, SETS) if many else (STEPS_OF_FEW, FINEST_OF_FEW, size)
    steps = [each.coarser(most) for each in residuals]
    own = [cells if many else min(int(n_cells(each.flat.n)[0]), most // 2) for each in residuals]

    def draw(k: int, size: int = first) -> Simulated:
        blocks = Outcomes.of(steps[k]).blocks(rngs[k], size)
        return ranked(steps[k], blocks, norm, own[k], finest).simulated

    def simulate() -> list[Simulated]:
        alone = list(compiled.shared(draw, range(len(steps))))
        if not many:
            return alone
        p_values = np.array([each.p_value for each in alone])
        standing = max(STANDING, int(STANDING_SHARE * len(alone)))
        order = np.lexsort((-evidence, p_values))[:standing]
        again = refined(
            {k: alone[k] for k in order.tolist()},
            lambda each: each.p_value,
            lambda k, size: draw(k, n_resamples or size),
            tests=len(alone),
            alpha=alpha,
            size=SETS,
            least=MORE,
        )
        return [again.get(k, each) for k, each in enumerate(alone)]

    # Whichever classes are asked about first, by several threads: generators have one turn.
    every = compiled.once(simulate)
    return [lambda k=k: every()[k] for k in range(len(steps))]  # type: ignore[misc]


class Tested(NamedTuple):
    """The test of all classes together: simulated data, the p-value, and the smallest that it can be."""

    simulated: Simulated
    p_value: float
    p_floor: float


def draw_apart(
    residuals: Sequence[Residuals], cells: int, rngs: Sequence[np.random.Generator], size: int
) -> Callable[[int], Array]:
    """Return what draws the coefficients (sets, cells) of a class whatever the labels of the others are."""
    size = min(READ, SETS if len(residuals) > MANY else size)

    def draw(k: int) -> Array:
        steps = residuals[k].coarser(STEPS_OF_FEW)
        return coefficients(drawn(steps, rngs[k], size), Edges.of(steps, cells))

    return draw


def joint_test(
    observed: Posterior,
    draw: Callable[[int], Array],
    norm: Norm,
    rngs: Sequence[np.random.Generator] | None,
    size: int,
    step: Callable[[], object],
) -> Tested:
    """Test all classes of a model: by the evidence of all of them, and by the class that stands out most.

    Parameters
    ----------
    observed : Posterior
        Of each class, with the variance that the scores say.
    draw : callable
        The coefficients (sets, cells) of a class in calibrated data.
    rngs : sequence of Generator, or None
        None where the sets of all classes are of the same labels. Otherwise, of each class: classes are
        drawn one by one, their sets are put together at random, and their sums spread as far as any
        dependence could.
    size : int
        How many sets of all classes are made of these.
    step : callable
        Called after each class.
    """
    classes, cells = observed.z.shape
    seen, further, drawn_sets = observed.terms(norm), 0, 0
    furthest = seen.alone.max()

    def terms_of(k: int) -> Terms:
        each = by_class(observed[k : k + 1], draw(k)[:, None], norm, READ)
        return Terms(*(term[:, 0] for term in each))

    sums, most = [np.zeros(1)] * len(Terms._fields), np.full(1, -np.inf)
    for k, terms in enumerate(compiled.shared(terms_of, range(classes))):
        if rngs is not None:
            further += int(np.count_nonzero(terms.alone >= furthest - 1e-12 * abs(furthest)))
            drawn_sets = len(terms.alone)
            times = -(-size // drawn_sets)
            order = np.concatenate([rngs[k].permutation(drawn_sets) for _ in range(times)])[:size]
            terms = Terms(*(term[order] for term in terms))
        most = np.maximum(most, terms.alone)
        sums = [total + term for total, term in zip(sums, terms, strict=True)]
        step()
    simulated_sums = Terms(*sums)
    whole = Terms(*(term.sum(axis=0, keepdims=True) for term in seen))
    if rngs is not None:
        simulated_sums = _widened(simulated_sums)
    evidence = np.concatenate([combined_evidence(each, cells, classes) for each in (simulated_sums, whole)])
    errors = combined_error(Terms(*(term[:READ] for term in simulated_sums)), norm, cells, classes)
    ranks = rank(evidence) / SHARES[0]
    if rngs is None:
        joined = -np.minimum(ranks, rank(np.append(most, furthest)) / SHARES[1])
        simulated = Simulated(joined[:-1], errors, float(joined[-1]))
        return Tested(simulated, simulated.p_value, simulated.p_floor)
    simulated = Simulated(evidence[:-1], errors, float(evidence[-1]))
    # At most so many classes of calibrated data would stand out as far, however they depend.
    outlying = (1 + further) / (1 + drawn_sets) / SHARES[1]
    return Tested(simulated, min(1.0, float(ranks[-1]), outlying), simulated.p_floor / SHARES[0])


def _widened(terms: Terms) -> Terms:
    """Return sums over classes spread around their mean as far as any dependence of the classes could."""
    middle = (term.mean(axis=0) for term in terms)
    wide = (m + WIDEST * (term - m) for m, term in zip(middle, terms, strict=True))
    shape, offset, alone, smooth, own = wide
    return Terms(shape, offset, alone, np.maximum(smooth, 0.0), np.maximum(own, 0.0))
