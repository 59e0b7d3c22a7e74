"""Decisions among several classes: actions by whole rows, and what the softmax posterior says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.decisions.binary import FLOOR, TIED, Gain, drawn_shares, possible_gain
from calibrant.decisions.cost import Cost
from calibrant.estimators.canonical.softmax import canonical_error
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax import SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask

# Draws of sizes and of coefficients given each, and scores of the rows at which they are looked at.
OF_SIZES, OF_EACH, ENTRIES, SEED = 8, 12, 50_000, 20240715
# The blocks of a softmax miss what is finer than they are, and held-out gains with them: the high end of an
# interval lies this much further out than the noise of gains says.
WIDER = 1.2


@dataclass(frozen=True, eq=False)
class CanonicalDecisions:
    """Rows of scores, and their probabilities by the posterior.

    Attributes
    ----------
    rows : Simplex
    posterior : SoftmaxPosterior
    held_out : array (rows, classes)
        Probabilities of each row by what the others taught.
    cost : array (classes, actions)
        In the order of the classes of the rows.
    """

    rows: Simplex
    posterior: SoftmaxPosterior
    held_out: Array
    cost: Array

    @classmethod
    def of(cls, task: CalibrationTask, cost: Cost) -> CanonicalDecisions:
        """Take what a question about whole rows knows."""
        error = canonical_error(task)
        return cls(task.simplex, error.posterior, error.held_out, cost.matrix[task.columns])

    @property
    def top(self) -> float:
        """The most that a row can cost more by one action than by another."""
        return float(np.ptp(self.cost, axis=1).max())

    def taken(self, probability: Array) -> Array:
        """Return the action of least expected cost for each row; of equal ones the first."""
        expected = probability @ self.cost
        limit = expected.min(axis=1, keepdims=True) + TIED * max(self.top, 1e-300)
        return np.argmax(expected <= limit, axis=1)

    @cached_property
    def actions(self) -> Array:
        """What is done on the scores as they are."""
        return self.taken(self.rows.score)

    def lost(self, probability: Array, actions: Array) -> Array:
        """Return what actions cost each row more than the best ones, if these are the probabilities."""
        expected = probability @ self.cost
        return np.asarray(expected[np.arange(len(actions)), actions] - expected.min(axis=1))

    @cached_property
    def value(self) -> float:
        """The regret against the posterior, and at least the gain on held-out rows."""
        return max(self._against_posterior(self.actions), float(self.gain.value[0]))

    def _against_posterior(self, actions: Array) -> float:
        """Return what actions cost more than those by the posterior, as far as there is a gap at all."""
        lost = self.lost(self.posterior.predict(self.rows.score), actions)
        return self.posterior.chance * self.rows.mean(lost)[0]

    @cached_property
    def gain(self) -> Gain:
        """What acting on held-out probabilities gains; on average no more than the regret."""
        cost = self.cost[self.rows.code]
        i = np.arange(len(cost))
        after = self.taken(self.held_out)
        gained = cost[i, self.actions] - cost[i, after]
        mean = self.rows.mean(gained)[0]
        fitted = self._against_posterior(self.actions) - self._against_posterior(after)
        # Beyond the cost of the right action for each class.
        excess = self.cost - self.cost.min(axis=1, keepdims=True)
        spent = self.rows.mean(excess[self.rows.code, self.actions])[0]
        expected = self.rows.mean((self.posterior.predict(self.rows.score) @ excess)[i, after])[0]
        fitted = possible_gain(fitted, spent, spent - mean, expected, excess.max())
        weight, square = self.rows.weight, self.rows.square
        scale = self.rows.n / weight.sum()
        apart = scale**2 * (square @ (gained - mean) ** 2)
        floor = FLOOR * scale**2 * square.sum() / self.rows.n * self.top**2
        return Gain(np.array([mean]), np.array([np.sqrt(apart + floor) / self.rows.n]), np.array([fitted]))

    @cached_property
    def drawn(self) -> Array:
        """Regrets of posterior draws, among rows as they might have been drawn."""
        rng = np.random.default_rng(SEED)
        n, classes = self.rows.score.shape
        some = min(n, max(1000, ENTRIES // classes))
        theta = self.posterior.draws(rng, OF_SIZES, OF_EACH)
        weight = self.rows.weight[:some]
        share, usual = drawn_shares(rng, weight, self.rows.square[:some], len(theta)), weight / weight.sum()
        # Fewer rows than there are spread more: their share of the luck is taken back.
        share = usual + np.sqrt(some / n) * (share - usual)
        drawn = np.zeros(len(theta))
        for part, at in self.posterior.likelihood.chunks(slice(0, some)):
            for j, each in enumerate(theta):
                if each.any():
                    q = softmax(self.posterior.blocks.logits(at, each))
                    drawn[j] += share[j, part] @ self.lost(q, self.actions[part])
        return drawn

    def ends(self, deviate: float, level: float) -> tuple[float, float]:
        """Return both ends of an interval of the regret."""
        gain = self.gain
        upper = float(np.quantile(self.drawn, (1 + level) / 2, method="inverted_cdf"))
        high = max(upper, max(self.value, float(gain.mean[0])) + WIDER * deviate * float(gain.error[0]))
        low = max(float(gain.interval(deviate)[0][0]), 0.0)
        return low, max(min(high, self.top), self.value)
