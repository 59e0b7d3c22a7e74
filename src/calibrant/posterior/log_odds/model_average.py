"""The average over maps: what a score means, by the evidence for each way in which scores go wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.posterior.log_odds.cells import OddsCells, expit, softplus
from calibrant.posterior.log_odds.components import (
    KEPT,
    Block,
    Clock,
    features,
    less_sure,
    parametric,
    smooth,
    weighed,
)
from calibrant.posterior.log_odds.local import Local, each_score, tree
from calibrant.posterior.score_effects import is_few
from calibrant.score_data import Array, Residuals

# Prior weight of gaps that live in one place, and of a gap of its own for each of few scores.
PLACES, EACH = 0.15, 0.3
# Beyond the outermost cells the members are known at these distances, in log-odds.
TAIL = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
# Points at which the probability of a normal member is averaged.
POINTS, SHARES = np.polynomial.hermite_e.hermegauss(12)
# A probability is kept so far from 0 and 1 where it is turned into log-odds.
EDGE = 1e-15
# Normal deviates at which members are asked whether the mean is worse than the scores.
DEVIATES = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
DENSITY = np.exp(-(DEVIATES**2) / 2)
# A gain of log loss below this is none.
NOTHING = 1e-12
# Halvings of the interval that holds a quantile.
HALVINGS = 40
# Intraclass correlations of rows that share a score; all are equally likely a priori.
CORRELATIONS = np.array([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])


@dataclass(frozen=True, eq=False)
class Mixture:
    """Normal members of the true log-odds at some scores.

    Attributes
    ----------
    cells : OddsCells
        What it was fitted to.
    at : array (places,)
        Log-odds of scores: those of the cells, and of the tails beyond them.
    weight, mean, sd : arrays (members, places)
    wide : int
        How many of the members speak of all scores at once; the others are local.
    """

    cells: OddsCells
    at: Array
    weight: Array
    mean: Array
    sd: Array
    wide: int

    @cached_property
    def probability(self) -> Array:
        """Mean probability at each place."""
        total = np.zeros(self.at.shape)
        for point, share in zip(POINTS, SHARES / SHARES.sum(), strict=True):
            total += share * (self.weight * expit(self.mean + self.sd * point)).sum(axis=0)
        return total

    @cached_property
    def odds(self) -> Array:
        """Log-odds of the mean probability."""
        inside = np.clip(self.probability, EDGE, 1 - EDGE)
        return np.log(inside) - np.log1p(-inside)

    @cached_property
    def worse(self) -> float:
        """Posterior probability that the scores as they are predict better than the mean, by log loss."""
        beyond = (self.at.size - self.cells.x.size) // 2
        inner = slice(beyond, beyond + self.cells.x.size)
        share = self.cells.trials / self.cells.n
        weight, mean, sd = (part[:, inner] for part in (self.weight, self.mean, self.sd))
        # What a 1 and what a 0 gain.
        yes = -softplus(-self.odds[inner]) + softplus(-self.cells.x)
        no = -softplus(self.odds[inner]) + softplus(self.cells.x)
        local = slice(self.wide, None)
        rest = weight[local].sum(axis=0)
        chance = 0.0
        for deviate, of_deviate in zip(DEVIATES, DENSITY / DENSITY.sum(), strict=True):
            truth = expit(mean + deviate * sd)
            if len(truth) > self.wide:
                # Local members together say one thing.
                together = (weight[local] * truth[local]).sum(axis=0) / np.maximum(rest, 1e-300)
                truth = np.vstack([truth[: self.wide], together[None]])
            gain = (truth * yes + (1 - truth) * no) @ share
            each = np.append(weight[: self.wide] @ share, rest @ share if len(gain) > self.wide else [])
            # A mean that is the scores gains nothing, but for rounding.
            chance += of_deviate * float(each[gain < NOTHING].sum())
        return chance

    def quantile(self, deviate: float) -> Array:
        """Return the log-odds at each place that a normal deviate stands for.

        >>> from calibrant.score_data import Sample
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(500)
        >>> mixture = model_average(Residuals.of(Sample(score, rng.random(500) < score)))
        >>> low, high = mixture.quantile(-1.96), mixture.quantile(1.96)
        >>> bool((low < high).all())
        True
        """
        from scipy.special import ndtr

        share = NormalDist().cdf(deviate)
        low, high = (self.mean - 9 * self.sd).min(axis=0), (self.mean + 9 * self.sd).max(axis=0)
        inverse = 1 / np.maximum(self.sd, 1e-9)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            less = (self.weight * ndtr((middle - self.mean) * inverse)).sum(axis=0) < share
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return (low + high) / 2


def smooth_average(residuals: Residuals) -> Mixture:
    """Average over the smooth members alone."""
    cells = OddsCells.of(residuals)
    blocks = parametric(cells)
    times: dict[str, Clock] = {}
    if cells.x.size > 2:
        blocks, times = smooth(cells, blocks)
    at = _places(cells)
    weight, mean, sd = _everywhere(blocks, times, at, 1.0)
    return Mixture(cells, at, weight, mean, sd, len(weight))


def model_average(residuals: Residuals, *, scattered: bool = False) -> Mixture:
    """Average over all members, for a single problem.

    Few scores may have a gap of their own each, and more of them where they are `scattered`.
    """
    cells = OddsCells.of(residuals)
    blocks = parametric(cells)
    times: dict[str, Clock] = {}
    if cells.x.size > 2:
        waved, times = smooth(cells, blocks)
        blocks += waved
    everywhere = np.logaddexp.reduce(np.concatenate([block.log for block in blocks]))
    local = [(PLACES, tree(cells))]
    if scattered or is_few(residuals[residuals.mass > 0]):
        local.append((EACH, each_score(cells)))
    rest = 1 - sum(share for share, _ in local)
    logs = np.array(
        [everywhere - cells.likelihood(cells.x) + np.log(rest)]
        + [member.evidence + np.log(share) for share, member in local]
    )
    weight = np.exp(logs - np.logaddexp.reduce(logs))
    at = _places(cells)
    parts = [_everywhere(blocks, times, at, float(weight[0]))] if weight[0] > KEPT else []
    parts += [
        _in_places(member, cells, at, float(share))
        for share, (_, member) in zip(weight[1:], local, strict=True)
        if share > KEPT
    ]
    weights, mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
    wide = len(parts[0][0]) if weight[0] > KEPT else 0
    return Mixture(cells, at, weights / weights.sum(axis=0), mean, sd, wide)


def _places(cells: OddsCells) -> Array:
    """Return the log-odds of the cells, and of the tails beyond them."""
    return np.concatenate([cells.x[0] - TAIL[::-1], cells.x, cells.x[-1] + TAIL])


def _everywhere(
    blocks: list[Block], times: dict[str, Clock], at: Array, total: float
) -> tuple[Array, Array, Array]:
    """Return weight, mean and spread of the members that say the same kind of thing of all scores."""
    weights, means, sds = [], [], []
    for block, share in zip(blocks, weighed(blocks), strict=True):
        some = np.flatnonzero(share > KEPT)
        if not some.size:
            continue
        offset = less_sure(at, block.noise)
        phi = features(offset)
        if block.clock is not None:
            phi = np.hstack([phi, times[block.clock].waves(at, block.features.shape[1] - phi.shape[1])])
        basis = phi * block.sizes[some][:, None]
        spread = np.linalg.inv(block.roots(some)) @ np.swapaxes(basis, -1, -2)
        weights.append(share[some])
        means.append(offset + np.matmul(basis, block.mode[some][:, :, None])[:, :, 0])
        sds.append(np.sqrt((spread * spread).sum(axis=1)))
    weight = np.concatenate(weights)
    weight *= total / weight.sum()
    return (
        np.broadcast_to(weight[:, None], (len(weight), at.size)),
        np.concatenate(means),
        np.concatenate(sds),
    )


def _in_places(member: Local, cells: OddsCells, at: Array, total: float) -> tuple[Array, Array, Array]:
    """Return those of local members; beyond the outermost cells they go on as there."""
    some = member.weight.max(axis=1) * total > KEPT

    def on(values: Array) -> Array:
        return np.pad(values[some], ((0, 0), (len(TAIL), len(TAIL))), mode="edge")

    return total * on(member.weight), at + on(member.mean - cells.x), on(member.sd)


@dataclass(frozen=True, eq=False)
class ScoreDeviations:
    """Deviations of repeated scores, such as those of trees and lookup tables, from the average over maps.

    The probability at a score is beta distributed around that of the average, with one intraclass correlation
    for all scores. Rows that share a score tell how large that correlation is, by the beta-binomial
    likelihood; a score with a single row tells nothing.

    Attributes
    ----------
    log_bayes_factor : float
        Of correlations above 0, against none.
    correlation : float
        Posterior mean, given that it is above 0.
    probability : array
        Posterior mean of the probability at each score, given the same.
    """

    log_bayes_factor: float
    correlation: float
    probability: Array

    @classmethod
    def of(cls, held: Residuals, average: Array) -> ScoreDeviations:
        """Shrink the frequency of each score towards the average over maps.

        >>> from calibrant.score_data import Sample
        >>> sample = Sample(np.repeat([0.2, 0.8], 50), np.arange(100) % 50 < 25)
        >>> held = Residuals.of(sample)
        >>> held = held[held.mass > 0]
        >>> effects = ScoreDeviations.of(held, held.score)
        >>> effects.probability.round(2), effects.log_bayes_factor > 5
        (array([0.47, 0.53]), True)
        """
        from scipy.special import betaln

        trials = held.mass
        successes = trials * held.frequency
        failures = trials - successes
        prior = ((1 - CORRELATIONS) / CORRELATIONS)[:, None]
        yes, no = prior * average, prior * (1 - average)
        none = successes * np.log(average) + failures * np.log1p(-average)
        log = (betaln(successes + yes, failures + no) - betaln(yes, no) - none).sum(axis=1)
        weight = np.exp(log - np.logaddexp.reduce(log))
        return cls(
            float(np.logaddexp.reduce(log) - np.log(len(log))),
            float(weight @ CORRELATIONS),
            weight @ ((successes + yes) / (trials + prior)),
        )


def deflated(held: Residuals, correlation: float) -> Residuals:
    """Return the rows that count: those of one score are correlated, and tell less of a map of all scores."""
    effect = 1 + correlation * np.maximum(held.mass - 1, 0.0)
    effect = np.where(held.one_score, effect, 1.0)
    parts = {name: getattr(held, name) / effect for name in ("mass", "residual", "spread")}
    return replace(held, **parts)
