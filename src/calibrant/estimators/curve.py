"""The curve behind an error: how often the outcome happens at each score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.evidence import Array, Moments


@dataclass(frozen=True, eq=False)
class Curve:
    """The frequency of the outcome as a function of the score, for one problem.

    Attributes
    ----------
    score : array
        Scores at which the curve is known, in order: means of bins, nodes of a grid, or scores of the sample.
    frequency : array
        Frequency of the outcome there; NaN where too few rows speak for it.
    weight : array
        Mass of the rows behind each value, on any scale.
    sd : array or None
        Standard deviation of each frequency, where the estimator knows it.

    Examples
    --------
    >>> curve = Curve(np.array([0.2, 0.4]), np.array([0.1, 0.5]), np.ones(2))
    >>> curve.predict([0.1, 0.3, 0.4]).round(6)
    array([0.1, 0.3, 0.5])
    """

    score: Array
    frequency: Array
    weight: Array
    sd: Array | None = None

    @classmethod
    def through(cls, score: Array, frequency: Array, weight: Array, sd: Array | None = None) -> Curve:
        """Draw a curve through the points that have weight."""
        held = np.flatnonzero(weight > 0)
        held = held[np.argsort(score[held], kind="stable")]
        return cls(score[held], frequency[held], weight[held], None if sd is None else sd[held])

    def predict(self, score: ArrayLike) -> Array:
        """Return the frequency at any scores, in their shape.

        It is interpolated linearly between the scores where it is known. Beyond the outermost of these it is
        that of the nearest one. It is NaN beside a NaN of `frequency`.
        """
        return np.asarray(np.interp(np.asarray(score, dtype=float), self.score, self.frequency))


def positions(atoms: Moments) -> Array:
    """Return the mean score of each atom; where an atom holds nothing, its origin."""
    offset = np.divide(atoms.ws, atoms.w, out=np.zeros(atoms.w.shape), where=atoms.w > 0)
    return np.broadcast_to(np.clip(atoms.origin + offset, 0.0, 1.0), atoms.w.shape)
