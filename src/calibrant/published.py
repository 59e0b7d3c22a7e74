"""What the paper's own code returns, faults included.

"Estimating Expected Calibration Errors" (Posocco and Bonnefoy, 2021) reports numbers made by its public code,
the package `explicalib`, which departs from the text. This module is the record of what those numbers really
are; no other module has these faults. It was written from a description of what that code does, and is tested
against values that it returned.

=====================  =====================================  ===========================================
point                  the paper                              the code, and this module
=====================  =====================================  ===========================================
convex weights         "linear binning", but the equation     as printed: a score on a bin's centre gives
                       swaps the two weights                  that bin 0 and its lower neighbour 1
first centre           weight 1 for the first bin             a score equal to it goes to the last bin
domain, confidence     [0, 1]                                 [0, 1] for `l`; [1/C, 1] for `c`, `ac`, `d`
adaptive thresholds    the floor(N/i)-th score, which falls   midpoints after i floor(N/B) scores; the
                       as i grows                             last bin takes the remainder
fewer scores than B    not mentioned                          every threshold is the mid-range: two bins
bandwidth, class-wise  one for each class                     class 0's serves every class
Silverman's rule       Silverman (1986), factor 0.9           KDEpy's, factor 1.0592
kernel                 not stated                             triweight, bandwidth = standard deviation
mirroring              at both walls                          4 copies scaled by 3: integrates to 3/4
grid                   steps of 0.0003                        2**14 points on [-2.5, 3.5], confidence on
                                                              [1/C - 3, 4]: steps of 0.00037 to 0.00042
=====================  =====================================  ===========================================

Where that code stops with an error this module raises a `ValueError` that says so, or computes where the
error was an accident of representation (scores not in float64, a confidence one rounding step below 1/C).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ece", "errors", "silverman"]

_Floats = NDArray[np.float64]
_LONG = {"uniform": "l", "adaptive": "a", "uniform-convex": "c", "adaptive-convex": "ac", "density": "d"}
_NOTIONS = ("confidence", "classwise", "class")
_GRID = 2**14
_CELLS = 2**16  # array elements worked on at once: small enough for the processor's cache


def ece(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: str, estimator: str, pos_label: int | None = None
) -> float:
    """Return the ECE that the authors' code returns for these labels and scores.

    Every departure listed at the top of this module is reproduced; `errors` says where.

    Parameters
    ----------
    y_true : array-like of int, shape (N,)
        Column indices 0..C-1. (Their code takes any label for a column index, and returns a wrong number.)
    y_prob : array-like, shape (N, C)
        Scores, taken as float64. (Their code stops on float32.)
    notion : {"confidence", "classwise", "class"}
        "class" is one class, the column `pos_label`, against the rest.
    estimator : str
        `l`, `a`, `c`, `ac`, `d` or `uniform`, `adaptive`, `uniform-convex`, `adaptive-convex`, `density`;
        after a colon a number of bins or `sqrt`, a bandwidth or `silverman`. A bare name means `sqrt`,
        `silverman`. For "class" the binned ones need a number: their code stops on `sqrt`.
    pos_label : int, optional
        For "class" only.

    Returns
    -------
    float
        NaN for a convex estimator with one bin and a score equal to its centre (their 0/0).

    Examples
    --------
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.95, 0.05], [0.05, 0.95], [0.6, 0.4], [0.75, 0.25]]
    >>> round(ece(y_true, y_prob, notion="confidence", estimator="l:10"), 6)
    0.2375
    >>> round(ece(y_true, y_prob, notion="class", pos_label=1, estimator="d:0.1"), 4)
    0.1451
    """
    family, _ = _parse(estimator, notion)
    prob, label = np.asarray(y_prob, dtype=np.float64), np.asarray(y_true)
    if prob.ndim != 2 or prob.shape[1] < 2 or label.shape != prob.shape[:1] or not len(label):
        rule = "have shapes (N,) and (N, C) with N of at least 1 and C of at least 2"
        raise ValueError(f"y_true and y_prob must {rule}, got {label.shape} and {prob.shape}")
    classes = np.arange(prob.shape[1])
    rule = f"a column index 0..{classes[-1]}"
    wrong = label[~np.isin(label, classes)]
    if len(wrong):
        raise ValueError(f"y_true must be {rule}: the authors' code takes any label for one, got {wrong[0]}")
    if pos_label not in (classes if notion == "class" else [None]):
        raise ValueError(f"pos_label must be {rule} for notion='class', else left out, got {pos_label!r}")
    if notion == "confidence":
        score, outcome = prob.max(axis=1), prob.argmax(axis=1) == label
        if family == "d" and not outcome.any():
            raise ValueError("y_true agrees with no prediction: the authors' density stops there")
    elif notion == "class":
        score, outcome = prob[:, pos_label], label == pos_label
    else:
        score, outcome = prob.T, label == classes[:, None]
    row, hit, n_classes = score[None], outcome[None], len(classes)
    return float(errors(row, hit, notion=notion, estimator=estimator, n_classes=n_classes)[0])


def errors(
    scores: ArrayLike, outcomes: ArrayLike, *, notion: str, estimator: str, n_classes: int | None = None
) -> _Floats:
    """Return the authors' ECE of each of R samples at once, as the experiment needs it.

    Departures reproduced here: class-wise densities all take the bandwidth of class 0 (the paper: one for
    each class), so the order of the classes matters; confidences have the domain [1/C, 1] for `c`, `ac` and
    `d` but [0, 1] for `l` (the paper: [0, 1]). `silverman`, `_binned` and `_density` tell theirs.

    Parameters
    ----------
    scores : array-like, shape (R, n), or (R, C, n) for "classwise"
        Confidences, scores of one class, or the scores of every class.
    outcomes : array-like of 0 and 1, same shape
        Whether the prediction was right, or whether the label is that class.
    notion, estimator : str
        As in `ece`.
    n_classes : int, optional
        C, for "confidence".

    Returns
    -------
    ndarray, shape (R,)
        NaN where a confidence density finds no correct prediction (their code raises ValueError).

    Examples
    --------
    >>> scores = [[0.55, 0.7, 0.9, 0.95], [0.7, 0.7, 0.9, 0.9]]
    >>> outcomes = [[0, 1, 1, 1], [1, 1, 1, 0]]
    >>> errors(scores, outcomes, notion="confidence", estimator="a:2", n_classes=2)
    array([0.1 , 0.35])
    """
    family, parameter = _parse(estimator, notion)
    score, outcome = np.asarray(scores, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    axes = 3 if notion == "classwise" else 2
    if score.ndim != axes or score.shape != outcome.shape or 0 in score.shape:
        rule = f"non-empty, of one shape with {axes} axes for notion={notion!r}"
        raise ValueError(f"scores and outcomes must be {rule}, got {score.shape} and {outcome.shape}")
    n, low = score.shape[-1], 0.0
    if notion == "confidence":
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be at least 2 for notion='confidence', got {n_classes!r}")
        low = 1.0 / n_classes
    # Their code asserts 1/C <= s; here rows that sum to 1 but for rounding pass.
    outside = score[~((score >= max(low - 1e-3, 0.0)) & (score <= 1.0))]
    if len(outside):
        raise ValueError(f"scores must lie in [{low:.6g}, 1] for notion={notion!r}, got {outside[0]}")
    other = outcome[(outcome != 0) & (outcome != 1)]
    if len(other):
        raise ValueError(f"outcomes must be 0 or 1, got {other[0]}")
    flat, flat_outcome = score.reshape(-1, n), outcome.reshape(-1, n)
    if family == "d":
        leading = score[:, 0] if notion == "classwise" else flat
        bandwidth = silverman(leading) if parameter is None else np.full(len(leading), parameter)
        value = _density(flat, flat_outcome, np.repeat(bandwidth, len(flat) // len(leading)), low)
        if notion == "confidence":
            value[~outcome.any(axis=1)] = np.nan
    else:
        n_bins = math.isqrt(n) if parameter is None else int(parameter)
        size = max(1, _CELLS // n)
        blocks = [slice(i, i + size) for i in range(0, len(flat), size)]
        value = np.concatenate([_binned(flat[b], flat_outcome[b], family, n_bins, low) for b in blocks])
    return np.asarray(value.reshape(len(score), -1).mean(axis=1))


def silverman(scores: ArrayLike) -> _Floats:
    """Return the bandwidth that the authors call Silverman's rule, along the last axis.

    The paper cites Silverman (1986), whose factor is 0.9. The code has KDEpy's rule: 1.0592, the fifth root
    of 4/3, times min(sd, IQR/1.349) n**(-1/5). Where the minimum is 0 the range from the 0.01 to the 0.99
    quantile, over 4.653, takes its place; where that is 0 too, the bandwidth is 1.

    Examples
    --------
    >>> silverman([[0.1, 0.2, 0.4, 0.8], [0.5, 0.5, 0.5, 0.5]])
    array([0.19339879, 1.        ])
    """
    values = np.asarray(scores, dtype=np.float64)
    n = values.shape[-1]
    first, lower, upper, last = np.percentile(values, (1, 25, 75, 99), axis=-1)
    spread = np.minimum(values.std(axis=-1, ddof=min(n - 1, 1)), (upper - lower) / 1.3489795003921634)
    spread = np.where(spread > 0, spread, (last - first) / 4.6526957480816815)
    return np.where(spread > 0, spread * (0.75 * n) ** -0.2, 1.0)


def _parse(estimator: str, notion: str) -> tuple[str, float | None]:
    """Return the family and its parameter, None for the heuristic (`sqrt`, `silverman`)."""
    if notion not in _NOTIONS:
        raise ValueError(f"notion must be one of {', '.join(_NOTIONS)}, got {notion!r}")
    name, _, text = str(estimator).partition(":")
    family = _LONG.get(name, name)
    rule = "silverman" if family == "d" else "sqrt"
    if family not in _LONG.values():
        raise ValueError(f"estimator must be one of {[*_LONG.values(), *_LONG]}, got {estimator!r}")
    if text in ("", rule):
        if notion == "class" and rule == "sqrt":
            reason = "the authors' class-specific estimators stop with an error on 'sqrt'"
            raise ValueError(f"estimator needs a number of bins here: {reason}, got {estimator!r}")
        return family, None
    try:
        parameter = float(text) if family == "d" else int(text)
    except ValueError:
        parameter = 0
    if not 0 < parameter < math.inf:
        kind = "a positive bandwidth" if family == "d" else "an integer of at least 1"
        raise ValueError(f"the parameter of estimator must be {kind} or {rule!r}, got {estimator!r}")
    return family, parameter


def _binned(scores: _Floats, outcomes: _Floats, family: str, n_bins: int, low: float) -> _Floats:
    """Return the binned error of each row of (rows, n) arrays.

    `l`: bin floor(s B) on [0, 1], whatever the domain. `a`, `ac`: thresholds midway between neighbours after
    i floor(n/B) sorted scores, the remainder in the last bin (the paper: floor(N/i)); with n < B that index
    is 0, whose left neighbour wraps to the largest score: all thresholds are the mid-range. Bins are
    left-closed (the paper: closed on both sides). `c`, `ac`: with c' < s <= c neighbouring centres of bins on
    [low, 1], c gets the weight (c - s)/(c - c') and c' the rest, swapped as in the paper's equation. Scores
    beyond the outer centres go to the outer bins, but one equal to the first centre has the last bin as its
    lower neighbour and goes there (the paper: to the first); with one bin that is 0/0, NaN.
    """
    rows, n = scores.shape
    residual = outcomes - scores
    offset = n_bins * np.arange(rows)[:, None]

    def total(index: NDArray[np.intp], weighted: _Floats) -> _Floats:
        return np.asarray(np.bincount((index + offset).ravel(), weighted.ravel(), rows * n_bins), np.float64)

    def rank(edges: _Floats, side: Literal["left", "right"]) -> NDArray[np.intp]:
        return np.stack([np.searchsorted(e, s, side) for e, s in zip(edges, scores, strict=True)])

    edges = np.tile(np.linspace(low, 1.0, n_bins + 1), (rows, 1))
    if family in ("a", "ac"):
        cut = np.arange(1, n_bins) * (n // n_bins)
        ordered = np.sort(scores, axis=1)
        edges[:, 1:-1] = (ordered[:, cut - 1] + ordered[:, cut]) / 2
    if family == "l":
        gap = total(np.minimum((scores * n_bins).astype(np.intp), n_bins - 1), residual)
    elif family == "a":
        gap = total(rank(edges[:, 1:-1], "right"), residual)
    else:
        centres = (edges[:, :-1] + edges[:, 1:]) / 2
        above = rank(centres, "left")
        upper, lower = np.minimum(above, n_bins - 1), (above - 1) % n_bins
        top, bottom = (np.take_along_axis(centres, index, axis=1) for index in (upper, lower))
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = (top - scores) / (top - bottom)
        weight[scores < centres[:, :1]] = 1.0
        weight[above == n_bins] = 0.0  # then both neighbours are the last bin
        gap = total(upper, weight * residual) + total(lower, (1 - weight) * residual)
    return np.asarray(np.abs(gap).reshape(rows, n_bins).sum(axis=1) / n)


def _density(scores: _Floats, outcomes: _Floats, bandwidth: _Floats, low: float) -> _Floats:
    """Return the density-based error of each row of (rows, n) arrays, given each row's bandwidth.

    The paper integrates |pi1 f1 - s f| in steps of 0.0003. The code averages |pi1 f1/f - s| with weights f
    over those of its 2**14 grid points that lie in (low, 1]: it sets f to 0 at and below the lower wall, and
    the walls need not be grid points, so the quadrature is off by up to 3e-4. The scores are mirrored at the
    lower wall and the result at the upper one: 4 copies, scaled by 3 where 4 was due; the constant cancels,
    as the kernel's does. Copies are shared linearly between grid points and convolved with a triweight of
    half-width 3 bandwidths (the paper names no kernel). Where no outcome is 1, f1 is 0. The furthest copy, 2
    (1 - low) + s, counts only for a half-width above 1 - low; its place there is inferred, not verified.
    """
    from scipy import fft

    start, stop = (low - 3.0, 4.0) if low else (-2.5, 3.5)
    grid, step = np.linspace(start, stop, _GRID, retstep=True)
    first, last = np.searchsorted(grid, (low, 1.0), side="right")
    inside = grid[first:last]
    reach = np.minimum(3 * bandwidth / step, _GRID).astype(np.intp)
    order = np.argsort(-reach, kind="stable")  # alike bandwidths share a block, as wide as its widest kernel
    value = np.empty(len(scores))
    while len(order):
        wide = int(reach[order[0]])
        size = fft.next_fast_len(len(inside) + 2 * wide + 2, real=True)
        rows = max(1, _CELLS // max(size, 4 * scores.shape[1]))
        block, order = order[:rows], order[rows:]
        s, h = scores[block], bandwidth[block, None]
        h = h[:1] if (h == h[0]).all() else h
        copies = np.concatenate([s, 2 * low - s, 2 - s, 2 - 2 * low + s], axis=1)
        place = (copies - start) / step - (first - wide - 1)
        cell = np.floor(place)
        near = (cell >= 0) & (cell <= len(inside) + 2 * wide)  # the rest is out of every kernel's reach
        share = (place - cell)[near]
        index = (cell + size * np.arange(len(block))[:, None])[near].astype(np.intp)
        hit = np.concatenate([outcomes[block]] * 4, axis=1)[near]
        index, share = np.concatenate([index, index + 1]), np.concatenate([1 - share, share])
        mass = [np.bincount(index, w, len(block) * size) for w in (share, share * np.concatenate([hit, hit]))]
        lag = np.minimum(np.arange(size), size - np.arange(size)) * step
        kernel = np.maximum(1 - (lag / (3 * h)) ** 2, 0.0) ** 3
        spectrum = fft.rfft(np.reshape(mass, (2, len(block), size))) * fft.rfft(kernel).real
        f, f1 = fft.irfft(spectrum, size)[..., wide + 1 : wide + 1 + len(inside)]
        value[block] = np.abs(f1 - inside * f).sum(axis=1) / f.sum(axis=1)
    return value
