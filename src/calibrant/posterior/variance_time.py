"""Cells of equal variance over points in score order, and the way from points to cells and back."""

from __future__ import annotations

import numpy as np

from calibrant.evidence import Array


class VarianceTime:
    """Cells of equal variance of the residuals of a single problem, for one or several sets of variances.

    Parameters
    ----------
    noise : array (points,) or (frames, points)
        Variance of the residual at each point; a frame is a set of variances.
    mass : array (points,)
        Rows at each point.
    cells : int

    Attributes
    ----------
    unit : float or array (frames,)
        Standard deviation of the residual of a cell.
    mass : array (cells,) or (frames, cells)
        Rows of each cell.
    start, stop : arrays (points,) or (frames, points)
        Where each point begins and ends, in cells.

    Examples
    --------
    >>> time = VarianceTime(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 2)
    >>> time.to_cells(np.array([[2.0, 3.0]]))
    array([[3., 2.]])
    >>> time.at_points(np.array([[1.0, 4.0]]))
    array([[1., 3.]])
    >>> time = VarianceTime(np.array([[1.0, 3.0], [1.0, 1.0]]), np.array([2.0, 2.0]), 2)
    >>> time.to_cells(np.array([2.0, 3.0]))
    array([[3., 2.],
           [2., 3.]])
    """

    def __init__(self, noise: Array, mass: Array, cells: int) -> None:
        time = np.zeros((*noise.shape[:-1], noise.shape[-1] + 1))
        np.cumsum(noise, axis=-1, out=time[..., 1:])
        self.cells = cells
        self.unit = np.sqrt(time[..., -1] / cells)
        place = np.minimum(time * (cells / time[..., -1:]), cells)
        self.start, self.stop = place[..., :-1], place[..., 1:]
        edges = np.arange(cells + 1)
        rows = place.reshape(-1, place.shape[-1])
        found = np.stack([np.searchsorted(row, edges, side="right") for row in rows]) - 1
        self._point = np.minimum(np.maximum(found, 0), noise.shape[-1] - 1).reshape(
            *noise.shape[:-1], cells + 1
        )
        start, stop = (np.take_along_axis(at, self._point, axis=-1) for at in (self.start, self.stop))
        self._share = np.minimum(np.maximum((edges - start) / (stop - start), 0.0), 1.0)
        self.mass = self.to_cells(mass)
        self._first, self._last = (
            np.minimum(at.astype(np.intp), cells - 1) for at in (self.start, self.stop)
        )

    def __getitem__(self, frame: int) -> VarianceTime:
        """Return the cells of one set of variances."""
        one = object.__new__(VarianceTime)
        one.cells = self.cells
        for name in ("unit", "mass", "start", "stop", "_point", "_share", "_first", "_last"):
            setattr(one, name, getattr(self, name)[frame])
        return one

    def to_cells(self, residual: Array) -> Array:
        """Return the residuals of the cells from those of points, (..., points), that are spread evenly.

        They are (..., cells), or (..., frames, cells).
        """
        upto = np.zeros((*residual.shape[:-1], residual.shape[-1] + 1), residual.dtype)
        np.cumsum(residual, axis=-1, out=upto[..., 1:])
        share = self._share.astype(residual.dtype)
        at_edges = upto[..., self._point] + share * residual[..., self._point]
        return at_edges[..., 1:] - at_edges[..., :-1]

    def at_points(self, values: Array) -> Array:
        """Return the mean at each point of what cells hold, (sets, cells) or (frames, cells)."""
        kind, width = values.dtype, self.stop - self.start
        first, last = self._first, self._last
        upto = np.zeros((len(values), self.cells + 1), kind)
        np.cumsum(values, axis=-1, out=upto[:, 1:])
        if first.ndim == 1:
            mean = values[:, first]
            wide = np.flatnonzero(first != last)
            if wide.size == 0:
                return mean
            low, high = (
                upto[:, at[wide]] + (place - at)[wide].astype(kind) * values[:, at[wide]]
                for at, place in ((first, self.start), (last, self.stop))
            )
            mean[:, wide] = (high - low) / width[wide].astype(kind)
            return mean
        low, high = (
            np.take_along_axis(upto, at, axis=-1)
            + (place - at).astype(kind) * np.take_along_axis(values, at, axis=-1)
            for at, place in ((first, self.start), (last, self.stop))
        )
        wide = first != last
        mean = np.take_along_axis(values, first, axis=-1)
        return np.divide(high - low, width.astype(kind), out=mean, where=wide)
