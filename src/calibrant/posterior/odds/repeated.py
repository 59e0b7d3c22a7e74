"""Scores that repeat, such as those of trees and lookup tables: a deviation of its own for each of them.

The probability at a score is beta distributed around that of the average over maps, with one intraclass
correlation for all scores. Rows that share a score tell how large that correlation is, by the beta-binomial
likelihood; a score with a single row tells nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.evidence import Array, Residuals

# Intraclass correlations that are averaged over, all equally likely a priori.
CORRELATIONS = np.array([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])


@dataclass(frozen=True, eq=False)
class ScoreDeviations:
    """Deviations of repeated scores from the average over maps.

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

        >>> from calibrant.evidence import Sample
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
