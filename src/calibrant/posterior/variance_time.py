"""Cells of equal variance over points in score order, and the way from points to cells and back."""

from __future__ import annotations

import numpy as np

from calibrant.evidence import Array


class VarianceTime:
    """Cells of equal variance of the residuals of a single problem.

    Parameters
    ----------
    noise : array (points,)
        Variance of the residual at each point.
    mass : array (points,)
        Rows at each point.
    cells : int

    Attributes
    ----------
    unit : float
        Standard deviation of the residual of a cell.
    mass : array (cells,)
        Rows of each cell.
    start, stop : arrays (points,)
        Where each point begins and ends, in cells.

    Examples
    --------
    >>> time = VarianceTime(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 2)
    >>> time.to_cells(np.array([[2.0, 3.0]]))
    array([[3., 2.]])
    >>> time.at_points(np.array([[1.0, 4.0]]))
    array([[1., 3.]])
    """

    def __init__(self, noise: Array, mass: Array, cells: int) -> None:
        time = np.concatenate([[0.0], np.cumsum(noise)])
        self.cells = cells
        self.unit = float(np.sqrt(time[-1] / cells))
        place = np.minimum(time * (cells / time[-1]), cells)
        self.start, self.stop = place[:-1], place[1:]
        edges = np.arange(cells + 1)
        self._point = np.clip(np.searchsorted(place, edges, side="right") - 1, 0, noise.size - 1)
        width = self.stop - self.start
        self._share = np.clip((edges - self.start[self._point]) / width[self._point], 0.0, 1.0)
        self.mass = self.to_cells(mass[None])[0]
        self._first, self._last = (
            np.minimum(at.astype(np.intp), cells - 1) for at in (self.start, self.stop)
        )

    def to_cells(self, residual: Array) -> Array:
        """Return the residuals of the cells, (sets, cells), from those of points that are spread evenly."""
        upto = np.zeros((len(residual), residual.shape[-1] + 1), residual.dtype)
        np.cumsum(residual, axis=-1, out=upto[:, 1:])
        at_edges = upto[:, self._point] + self._share.astype(residual.dtype) * residual[:, self._point]
        return np.diff(at_edges, axis=-1)

    def at_points(self, values: Array) -> Array:
        """Return the mean at each point of what cells hold, (sets, points)."""
        mean = values[:, self._first]
        wide = np.flatnonzero(self._first != self._last)
        if wide.size:
            upto = np.zeros((len(values), self.cells + 1), values.dtype)
            np.cumsum(values, axis=-1, out=upto[:, 1:])
            first, last = self._first[wide], self._last[wide]
            into = [
                part[wide].astype(values.dtype) for part in (self.start - self._first, self.stop - self._last)
            ]
            low, high = (
                upto[:, at] + part * values[:, at] for at, part in zip((first, last), into, strict=True)
            )
            mean[:, wide] = (high - low) / (self.stop - self.start)[wide].astype(values.dtype)
        return mean
