"""Maps of many classes from files that were saved before maps shared the blocks of the posterior.

They answer as they did, and none is fitted. After a common temperature log probabilities z (centred) become

    z_c + (a + h(margin)) z_c + g(x_c) + b_c + v_c z_c + g_c(x_c) + sum_k W_ck z_k,

x_c the log-odds of a class, and h, g and g_c some waves each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.evidence import Array
from calibrant.inputs import InputError
from calibrant.maps.of_all_scores import CHUNK, Softmax, ends_of, log_odds
from calibrant.posterior.softmax.likelihood import softmax

WAVES, LEAST = 6, 1e-30


@dataclass(frozen=True, eq=False)
class EarlierSoftmax:
    """A map of many classes from an earlier file.

    Attributes
    ----------
    saved : dict
        What the file holds.
    slope : float
        The inverse of the temperature.
    margin, curve : arrays (2, knots)
        Log-odds and the times that they take, of the largest score and of any.
    draws : array (draws, coefficients)
    """

    saved: dict[str, Any]
    n_classes: int
    slope: float
    least: float
    untouched: float
    across: bool
    curved: bool
    margin: Array
    curve: Array
    draws: Array

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Read what was saved."""
        try:
            arrays = {name: np.array(saved[name], dtype=np.float64) for name in ("margin", "curve", "draws")}
            c = int(saved["n_classes"])
            slope, least, untouched = (float(saved[name]) for name in ("slope", "least", "untouched"))
            across, curved = bool(saved["across"]), bool(saved["curved"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "map", "hold numbers for many classes", None, got=f"an error: {error}"
            ) from error
        width = 1 + 2 * WAVES + c * (2 + WAVES * curved + c * across)
        shapes = arrays["margin"].ndim == 2 == arrays["curve"].ndim and arrays["draws"].shape[1:] == (width,)
        if not shapes or not all(np.isfinite(each).all() for each in arrays.values()):
            raise InputError("draws", f"be rows of {width} finite numbers", arrays["draws"].shape)
        return cls(saved, c, slope, least, untouched, across, curved, **arrays)

    def to_dict(self) -> dict[str, Any]:
        """Return what is saved."""
        return self.saved

    def probability(self, score: Array) -> Array:
        """Return the probabilities that rows of scores stand for."""
        out = np.empty(score.shape)
        for part, drawn in self._drawn(score):
            out[part] = drawn.mean(axis=-1)
        return self.untouched * score + (1 - self.untouched) * out

    def interval(self, score: Array, deviate: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each class's probability, normal in its log-odds."""
        middle = self.probability(score)
        low, high = middle.copy(), middle.copy()
        for part, drawn in self._drawn(score):
            odds = log_odds(drawn)
            ends = ends_of(odds.mean(axis=-1), deviate * odds.std(axis=-1))
            low[part], high[part] = np.minimum(low[part], ends[0]), np.maximum(high[part], ends[1])
        return low, high

    def _drawn(self, score: Array) -> Iterator[tuple[slice, Array]]:
        """Make the probabilities of some rows at a time by all draws (rows, classes, draws)."""
        shared, c = 1 + 2 * WAVES, self.n_classes
        own = self.draws[:, shared:].reshape(len(self.draws), c, -1)
        step = max(1, CHUNK // (c * max(own.shape[0], own.shape[2] + shared)))
        for first in range(0, len(score), step):
            part = slice(first, first + step)
            z = self._tempered(np.log(np.maximum(score[part], self.least)))
            u, v = self._features(z)
            odds = z[:, :, None] + u @ self.draws[:, :shared].T
            odds += np.einsum("icr,dcr->icd", v, own, optimize=True)
            yield part, softmax(odds.transpose(0, 2, 1)).transpose(0, 2, 1)

    def _tempered(self, raw: Array) -> Array:
        z = np.maximum(_log_softmax(self.slope * raw), np.log(LEAST))
        return np.asarray(z - z.mean(axis=-1, keepdims=True))

    def _features(self, z: Array) -> tuple[Array, Array]:
        """Return features that all classes share (rows, classes, J) and those of each (rows, classes, R)."""
        log = _log_softmax(z)
        x = log - np.log(np.maximum(-np.expm1(log), 1e-15))
        top = np.take_along_axis(x, z.argmax(axis=1)[:, None], axis=1)[:, 0]
        by_margin, by_class = _waves(np.interp(top, *self.margin)), _waves(np.interp(x, *self.curve))
        shared = np.concatenate([z[:, :, None], z[:, :, None] * by_margin[:, None], by_class], axis=2)
        own = [np.ones((*z.shape, 1)), z[:, :, None]]
        if self.curved:
            own.append(by_class)
        if self.across:
            # Entry k of class c is z_k; that of the class itself is the second feature already.
            own.append(z[:, None, :] * (1 - np.eye(z.shape[1])))
        return shared, np.concatenate(own, axis=2)


def loaded_whole(saved: Any) -> Softmax | EarlierSoftmax:
    """Read a map of many classes, of this version or an earlier one."""
    if not isinstance(saved, dict):
        raise InputError("map", "hold numbers for many classes", type(saved).__name__)
    return Softmax.from_dict(saved) if "blocks" in saved else EarlierSoftmax.from_dict(saved)


def _log_softmax(z: Array) -> Array:
    top = z - z.max(axis=-1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(axis=-1, keepdims=True)))


def _waves(time: Array) -> Array:
    return np.asarray(np.sqrt(2) * np.cos(np.pi * time[..., None] * np.arange(1, WAVES + 1)))
