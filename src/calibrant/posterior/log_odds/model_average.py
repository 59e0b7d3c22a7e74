"""Model average of P(y = 1 | s) on the log-odds scale: the calibration curve and the default calibrator.

All components (parametric, smooth, local) are weighted by prior probability times marginal likelihood. At
each score the posterior is a mixture of normal distributions of the log-odds.

See docs/methods/calibration-curve.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from calibrant.parallel import cached_property
from calibrant.posterior.log_odds.cells import LogOddsCells, expit, softplus
from calibrant.posterior.log_odds.components import (
    KEPT,
    ComponentBlock,
    TimeVariable,
    component_weights,
    features,
    parametric,
    smooth,
    with_label_noise,
)
from calibrant.posterior.log_odds.local import LocalLogOdds, independent_shifts, partition_average
from calibrant.posterior.score_effects import has_few_scores
from calibrant.score_data import Array, Residuals
from calibrant.settings import LOG_ODDS

# Beyond the outermost cells the mixture is evaluated at these distances, in log-odds (interpolation).
TAIL = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
# Gauss-Hermite nodes (normal deviates) and weights, for the mean probability of a normal distribution of
# log-odds.
HERMITE_NODES, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
# Probabilities are clipped to [EDGE, 1 - EDGE] before they are transformed to log-odds.
EDGE = 1e-15
# Normal deviates, and their densities, at which each component is compared with the scores in log loss
# (quadrature).
DEVIATES = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
DENSITY = np.exp(-(DEVIATES**2) / 2)
# Gains in log loss (nats) below this are rounding errors.
NEGLIGIBLE_GAIN = 1e-12
# Number of bisection steps for a quantile.
HALVINGS = 40
# Intraclass correlations of rows that share one of many scores: a grid with equal prior probabilities.
SCORE_CORRELATIONS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, eq=False)
class LogOddsMixture:
    """Mixture of normal distributions of the true log-odds at each of a set of scores.

    Attributes
    ----------
    cells : LogOddsCells
        Data of the fit.
    at : array (places,)
        Log-odds of the scores: those of the cells, and of the tails beyond them.
    weight, mean, sd : arrays (mixture terms, places)
        Posterior weight, and mean and standard deviation of the true log-odds.
    n_global_terms : int
        Number of terms from components that model all scores jointly; the terms after them are local.
    """

    cells: LogOddsCells
    at: Array
    weight: Array
    mean: Array
    sd: Array
    n_global_terms: int

    @cached_property
    def probability(self) -> Array:
        """Posterior mean of P(y = 1 | s) at each place."""
        total = np.zeros(self.at.shape)
        for point, share in zip(HERMITE_NODES, HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum(), strict=True):
            total += share * (self.weight * expit(self.mean + self.sd * point)).sum(axis=0)
        return total

    @cached_property
    def logits(self) -> Array:
        """Log-odds of the posterior mean probability."""
        inside = np.clip(self.probability, EDGE, 1 - EDGE)
        return np.log(inside) - np.log1p(-inside)

    @cached_property
    def probability_worse(self) -> float:
        """Posterior probability that the scores have a lower expected log loss than the posterior mean."""
        tail = (self.at.size - self.cells.x.size) // 2
        inner = slice(tail, tail + self.cells.x.size)
        share = self.cells.trials / self.cells.n
        weight, mean, sd = (array[:, inner] for array in (self.weight, self.mean, self.sd))
        # Gain in log loss of a positive and of a negative outcome.
        positive_gain = -softplus(-self.logits[inner]) + softplus(-self.cells.x)
        negative_gain = -softplus(self.logits[inner]) + softplus(self.cells.x)
        local = slice(self.n_global_terms, None)
        local_weight = weight[local].sum(axis=0)
        probability = 0.0
        for deviate, density in zip(DEVIATES, DENSITY / DENSITY.sum(), strict=True):
            truth = expit(mean + deviate * sd)
            if len(truth) > self.n_global_terms:
                # The local terms are combined into one, because their weights differ from cell to cell.
                local_truth = (weight[local] * truth[local]).sum(axis=0) / np.maximum(local_weight, 1e-300)
                truth = np.vstack([truth[: self.n_global_terms], local_truth[None]])
            gain = (truth * positive_gain + (1 - truth) * negative_gain) @ share
            term_weight = np.append(
                weight[: self.n_global_terms] @ share,
                local_weight @ share if len(gain) > self.n_global_terms else [],
            )
            # If the posterior mean equals the scores, the gain is zero up to rounding.
            probability += density * float(term_weight[gain < NEGLIGIBLE_GAIN].sum())
        return probability

    def quantile(self, deviate: float) -> Array:
        """Return the quantile of the log-odds at each place, at the probability of a standard normal deviate.

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


def smooth_average(residuals: Residuals) -> LogOddsMixture:
    """Average over the components with a smooth part alone, where there are more than two cells."""
    cells = LogOddsCells.of(residuals)
    blocks = parametric(cells)
    smooth_blocks, times = smooth(cells, blocks)
    at = _places(cells)
    weight, mean, sd = _global_terms(smooth_blocks or blocks, times, at, 1.0)
    return LogOddsMixture(cells, at, weight, mean, sd, len(weight))


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """All components of the model average, fitted to the cells of a single problem.

    Attributes
    ----------
    cells : LogOddsCells
    blocks : list of ComponentBlock
        Parametric and smooth components.
    times : dict
        Time variables of the smooth components.
    local : list of LocalLogOdds
    weight : array (1 + local,)
        Posterior weight of all blocks together, and of each local component.
    """

    cells: LogOddsCells
    blocks: list[ComponentBlock]
    times: dict[str, TimeVariable]
    local: list[LocalLogOdds]
    weight: Array

    @classmethod
    def of(cls, residuals: Residuals, *, scattered: bool = False) -> FittedComponents:
        """Fit the components; there is one shift per score if scores are few, or `scattered`."""
        cells = LogOddsCells.of(residuals)
        blocks = parametric(cells)
        smooth_blocks, times = smooth(cells, blocks)
        blocks += smooth_blocks
        global_log = np.logaddexp.reduce(np.concatenate([block.log for block in blocks]))
        local = [partition_average(cells)]
        if scattered or has_few_scores(residuals[residuals.mass > 0]):
            local.append(independent_shifts(cells))
        share = LOG_ODDS.flexible_weight
        logs = np.array(
            [global_log - cells.likelihood(cells.x) + np.log(1 - share * len(local))]
            + [component.log_bayes_factor + np.log(share) for component in local]
        )
        return cls(cells, blocks, times, local, np.exp(logs - np.logaddexp.reduce(logs)))

    def draws(self, rng: np.random.Generator, size: int) -> Array:
        """Draw the true log-odds in each cell from the posterior, (size, cells).

        >>> from calibrant.score_data import Sample
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(500)
        >>> fitted = FittedComponents.of(Residuals.of(Sample(score, rng.random(500) < score)))
        >>> drawn = expit(fitted.draws(rng, 400))
        >>> bool(abs(drawn.mean(axis=0) - expit(fitted.cells.x)).max() < 0.1)
        True
        """
        count = rng.multinomial(size, self.weight / self.weight.sum())
        drawn = [component.draws(rng, times) for component, times in zip(self.local, count[1:], strict=True)]
        weights = component_weights(self.blocks)
        share = np.concatenate(weights)
        times = rng.multinomial(count[0], share / share.sum())
        of_block = np.split(times, np.cumsum([each.size for each in weights])[:-1])
        for block, times in zip(self.blocks, of_block, strict=True):
            kept = np.flatnonzero(times)
            if not kept.size:
                continue
            offset = with_label_noise(self.cells.x, block.noise)
            for k, root in zip(kept, block.cholesky_factors(kept), strict=True):
                noise = np.linalg.solve(root.T, rng.standard_normal((len(root), times[k])))
                u = block.mode[k][:, None] + noise
                drawn.append(offset + (block.features @ (block.sizes[k][:, None] * u)).T)
        return np.concatenate(drawn)


def model_average(residuals: Residuals, *, scattered: bool = False) -> LogOddsMixture:
    """Average over all components, for a single problem.

    One shift per score is included if distinct scores are few, or if score effects are probable
    (`scattered`).
    """
    fitted = FittedComponents.of(residuals, scattered=scattered)
    cells, weight = fitted.cells, fitted.weight
    at = _places(cells)
    parts = []
    if weight[0] > KEPT:
        parts.append(_global_terms(fitted.blocks, fitted.times, at, float(weight[0])))
    parts += [
        _local_terms(component, cells, at, float(share))
        for share, component in zip(weight[1:], fitted.local, strict=True)
        if share > KEPT
    ]
    weights, mean, sd = (np.concatenate(array) for array in zip(*parts, strict=True))
    n_global_terms = len(parts[0][0]) if weight[0] > KEPT else 0
    return LogOddsMixture(cells, at, weights / weights.sum(axis=0), mean, sd, n_global_terms)


def _places(cells: LogOddsCells) -> Array:
    """Return the log-odds of the cells, and of the tails beyond them."""
    return np.concatenate([cells.x[0] - TAIL[::-1], cells.x, cells.x[-1] + TAIL])


def _global_terms(
    blocks: list[ComponentBlock], times: dict[str, TimeVariable], at: Array, total: float
) -> tuple[Array, Array, Array]:
    """Return weight, mean and standard deviation of the parametric and smooth components at log-odds `at`.

    `total` is their joint posterior weight.
    """
    weights, means, sds = [], [], []
    for block, share in zip(blocks, component_weights(blocks), strict=True):
        kept = np.flatnonzero(share > KEPT)
        if not kept.size:
            continue
        offset = with_label_noise(at, block.noise)
        phi = features(offset)
        if block.variance_time is not None:
            phi = np.hstack(
                [phi, times[block.variance_time].cosines(at, block.features.shape[1] - phi.shape[1])]
            )
        basis = phi * block.sizes[kept][:, None]
        spread = np.linalg.inv(block.cholesky_factors(kept)) @ np.swapaxes(basis, -1, -2)
        weights.append(share[kept])
        means.append(offset + np.matmul(basis, block.mode[kept][:, :, None])[:, :, 0])
        sds.append(np.sqrt((spread * spread).sum(axis=1)))
    weight = np.concatenate(weights)
    weight *= total / weight.sum()
    return (
        np.broadcast_to(weight[:, None], (len(weight), at.size)),
        np.concatenate(means),
        np.concatenate(sds),
    )


def _local_terms(
    component: LocalLogOdds, cells: LogOddsCells, at: Array, total: float
) -> tuple[Array, Array, Array]:
    """Return weight, mean and standard deviation of a local component at log-odds `at`.

    Beyond the outermost cells the shift is that of the outermost cell.
    """
    kept = component.weight.max(axis=1) * total > KEPT

    def extend(values: Array) -> Array:
        return np.pad(values[kept], ((0, 0), (len(TAIL), len(TAIL))), mode="edge")

    return total * extend(component.weight), at + extend(component.mean - cells.x), extend(component.sd)


@dataclass(frozen=True, eq=False)
class ScoreDeviations:
    """Random effects of repeated scores, such as those of trees and lookup tables, around the model average.

    The probability at a score has a beta distribution around the model average, with one intraclass
    correlation for all scores. The beta-binomial likelihood of rows that share a score informs about the
    correlation; a score with a single row does not.

    Attributes
    ----------
    log_bayes_factor : float
        Of a positive correlation against no correlation.
    correlation : float
        Posterior mean, given that it is positive.
    probability : array (scores,)
        Posterior mean of the probability at each score, given a positive correlation.
    weight : array (correlations,)
        Posterior weight of each of `SCORE_CORRELATIONS`, given that it is positive.
    alpha, beta : arrays (correlations, scores)
        Parameters of the posterior beta distribution at each score.
    """

    log_bayes_factor: float
    correlation: float
    probability: Array
    weight: Array
    alpha: Array
    beta: Array

    def draws(self, rng: np.random.Generator, size: int) -> Array:
        """Draw the probability at each score from the posterior, given a positive correlation."""
        which = rng.choice(self.weight.size, size, p=self.weight)
        return np.asarray(rng.beta(self.alpha[which], self.beta[which]))

    @classmethod
    def of(cls, observed: Residuals, average: Array) -> ScoreDeviations:
        """Shrink the observed frequency of each score towards the model average.

        >>> from calibrant.score_data import Sample
        >>> sample = Sample(np.repeat([0.2, 0.8], 50), np.arange(100) % 50 < 25)
        >>> observed = Residuals.of(sample)
        >>> observed = observed[observed.mass > 0]
        >>> effects = ScoreDeviations.of(observed, observed.score)
        >>> effects.probability.round(2), effects.log_bayes_factor > 5
        (array([0.47, 0.53]), True)
        """
        from scipy.special import betaln

        trials = observed.mass
        successes = trials * observed.frequency
        failures = trials - successes
        # All correlations have equal prior probability.
        correlations = np.array(SCORE_CORRELATIONS)
        prior = ((1 - correlations) / correlations)[:, None]
        alpha, beta = prior * average, prior * (1 - average)
        log_binomial = successes * np.log(average) + failures * np.log1p(-average)
        log = (betaln(successes + alpha, failures + beta) - betaln(alpha, beta) - log_binomial).sum(axis=1)
        weight = np.exp(log - np.logaddexp.reduce(log))
        return cls(
            float(np.logaddexp.reduce(log) - np.log(len(log))),
            float(weight @ correlations),
            weight @ ((successes + alpha) / (trials + prior)),
            weight,
            successes + alpha,
            failures + beta,
        )


def divide_by_design_effect(observed: Residuals, correlation: float) -> Residuals:
    """Divide the rows of repeated scores by their design effect 1 + correlation * (rows - 1).

    Rows that share a score are correlated, so they are less informative about a curve over all scores.
    """
    design_effect = 1 + correlation * np.maximum(observed.mass - 1, 0.0)
    design_effect = np.where(observed.single_score, design_effect, 1.0)
    parts = {name: getattr(observed, name) / design_effect for name in ("mass", "residual", "spread")}
    return replace(observed, **parts)
