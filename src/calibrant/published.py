"""What published code returns, faults included: the paper's own, and one that language models are ranked by.

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

`hendrycks_rms` is another such function, from another source; its docstring says what it does.

Where that code stops with an error this module raises a `ValueError` that says so, or computes where the
error was an accident of representation (scores not in float64, a confidence one rounding step below 1/C).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.tasks.notions import ALIASES, Notion, get_notion

__all__ = ["ece", "errors", "errors_many", "hendrycks_rms", "silverman"]

_Floats = NDArray[np.float64]
_Names = Sequence[str]
_LONG = {"uniform": "l", "adaptive": "a", "uniform-convex": "c", "adaptive-convex": "ac", "density": "d"}
_NOTIONS = ("confidence", "classwise", "binary")
_GRID = 2**14
_CELLS = 2**16  # array elements worked on at once: small enough for the processor's cache


def __dir__() -> list[str]:
    return sorted(__all__)


def ece(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: str, estimator: str, pos_label: int | None = None
) -> float:
    """Return the ECE that the authors' code returns for these labels and scores.

    Every departure listed at the top of this module is reproduced; `errors_many` says where.

    Parameters
    ----------
    y_true : array-like of int, shape (N,)
        Column indices 0..C-1. (Their code takes any label for a column index, and returns a wrong number.)
    y_prob : array-like, shape (N, C)
        Scores, taken as float64. (Their code stops on float32.)
    notion : {"confidence", "classwise", "binary"}
        "binary" is one class, the column `pos_label`, against the rest.
    estimator : str
        `l`, `a`, `c`, `ac`, `d` or `uniform`, `adaptive`, `uniform-convex`, `adaptive-convex`, `density`;
        after a colon a number of bins or `sqrt`, a bandwidth or `silverman`. A bare name means `sqrt`,
        `silverman`. For "binary" the binned ones need a number: their code stops on `sqrt`.
    pos_label : int, optional
        For "binary" only.

    Returns
    -------
    float
        NaN for a convex estimator with one bin and a score equal to its centre (their 0/0).

    See Also
    --------
    calibrant.ece : The corrected estimators.
    errors_many : Several samples and estimators at once.

    Examples
    --------
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.95, 0.05], [0.05, 0.95], [0.6, 0.4], [0.75, 0.25]]
    >>> round(ece(y_true, y_prob, notion="confidence", estimator="l:10"), 6)
    0.2375
    >>> round(ece(y_true, y_prob, notion="binary", pos_label=1, estimator="d:0.1"), 4)
    0.1451
    """
    notion_object = _notion(notion)
    family, _ = _parse(estimator, notion_object)
    prob, label = np.asarray(y_prob, dtype=np.float64), np.asarray(y_true)
    if prob.ndim != 2 or prob.shape[1] < 2 or label.shape != prob.shape[:1] or not len(label):
        rule = "have shapes (N,) and (N, C) with N of at least 1 and C of at least 2"
        raise ValueError(f"y_true and y_prob must {rule}, got {label.shape} and {prob.shape}")
    classes = np.arange(prob.shape[1])
    rule = f"a column index 0..{classes[-1]}"
    wrong = label[~np.isin(label, classes)]
    if len(wrong):
        raise ValueError(f"y_true must be {rule}: the authors' code takes any label for one, got {wrong[0]}")
    if pos_label not in (classes if notion_object.is_binary else [None]):
        raise ValueError(f"pos_label must be {rule} for notion='binary', else left out, got {pos_label!r}")
    if notion_object.is_binary:
        score, hit = prob[:, pos_label], label == pos_label
    elif notion_object.classwise:
        score, hit = prob.T, label == classes[:, None]
    else:
        score, hit = prob.max(axis=1), prob.argmax(axis=1) == label
        if family == "d" and not hit.any():
            raise ValueError("y_true agrees with no prediction: the authors' density stops there")
    return float(errors(score[None], hit[None], notion=notion, estimator=estimator, n_classes=len(prob.T))[0])


def errors(
    scores: ArrayLike, outcomes: ArrayLike, *, notion: str, estimator: str, n_classes: int | None = None
) -> _Floats:
    """Return the authors' ECE of each of R samples at once, shape (R,): `errors_many` of one estimator.

    Parameters
    ----------
    scores, outcomes, notion, n_classes
        As in `errors_many`.
    estimator : str
        As in `ece`.

    Returns
    -------
    ndarray, shape (R,)
        One error for each sample.

    See Also
    --------
    errors_many : Several estimators at once.

    Examples
    --------
    >>> errors([[0.55, 0.7, 0.9, 0.95]], [[0, 1, 1, 1]], notion="confidence", estimator="a:2", n_classes=2)
    array([0.1])
    """
    return errors_many(scores, outcomes, notion=notion, estimators=[estimator], n_classes=n_classes)[0]


def errors_many(
    scores: ArrayLike, outcomes: ArrayLike, *, notion: str, estimators: _Names, n_classes: int | None = None
) -> _Floats:
    """Return the authors' ECE of each of R samples by each of E estimators, as the experiment needs it.

    Departures reproduced here: class-wise densities all take the bandwidth of class 0 (the paper: one for
    each class), so the order of the classes matters; confidences have the domain [1/C, 1] for `c`, `ac` and
    `d` but [0, 1] for `l` (the paper: [0, 1]). `silverman`, `_binned` and `_density` tell theirs.

    Parameters
    ----------
    scores : array-like, shape (R, n), or (R, C, n) for "classwise"
        Confidences, scores of one class, or the scores of every class.
    outcomes : array-like of 0 and 1, same shape
        Whether the prediction was right, or whether the label is that class.
    notion, estimators : str, sequence of str
        As in `ece`. Binned estimators share the sorting of the scores, densities the transforms of them.
    n_classes : int, optional
        C, for "confidence".

    Returns
    -------
    ndarray, shape (E, R)
        NaN where a confidence density finds no correct prediction (their code raises ValueError).

    See Also
    --------
    ece : One sample and one estimator.

    Examples
    --------
    >>> scores, outcomes = [[0.55, 0.7, 0.9, 0.95], [0.7, 0.7, 0.9, 0.9]], [[0, 1, 1, 1], [1, 1, 1, 0]]
    >>> errors_many(scores, outcomes, notion="confidence", estimators=["a:2", "l:1"], n_classes=2)
    array([[0.1  , 0.35 ],
           [0.025, 0.05 ]])
    """
    if isinstance(estimators, str):
        raise ValueError(f"estimators must be a sequence of names, got {estimators!r}")
    notion_object = _notion(notion)
    parsed = [_parse(estimator, notion_object) for estimator in estimators]
    score, outcome = np.asarray(scores, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    axes = 3 if notion_object.classwise else 2
    if score.ndim != axes or score.shape != outcome.shape or 0 in score.shape:
        rule = f"non-empty, of one shape with {axes} axes for notion={notion!r}"
        raise ValueError(f"scores and outcomes must be {rule}, got {score.shape} and {outcome.shape}")
    if notion_object.top and (n_classes is None or n_classes < 2):
        raise ValueError(f"n_classes must be at least 2 for notion='confidence', got {n_classes!r}")
    n, low = score.shape[-1], notion_object.support(n_classes)[0] if n_classes else 0.0
    # Their code asserts 1/C <= s; here rows that sum to 1 but for rounding pass.
    outside = score[~((score >= max(low - 1e-3, 0.0)) & (score <= 1.0))]
    if len(outside):
        raise ValueError(f"scores must lie in [{low:.6g}, 1] for notion={notion!r}, got {outside[0]}")
    other = outcome[(outcome != 0) & (outcome != 1)]
    if len(other):
        raise ValueError(f"outcomes must be 0 or 1, got {other[0]}")
    score, outcome = (array.reshape(len(array), -1, n) for array in (score, outcome))
    value = np.empty((len(parsed), score.size // n))
    rules = {e: h for e, (family, h) in enumerate(parsed) if family == "d"}
    if rules:
        width = [silverman(score[:, 0]) if h is None else np.full(len(score), h) for h in rules.values()]
        density = _density(score, outcome, np.stack(width), low)
        if notion_object.top:
            density[:, ~outcome.any(axis=(1, 2))] = np.nan
        value[list(rules)] = density.reshape(len(rules), -1)
    bins = {e: math.isqrt(n) if b is None else int(b) for e, (_, b) in enumerate(parsed) if e not in rules}
    flat, flat_outcome = score.reshape(-1, n), outcome.reshape(-1, n)
    size = max(1, _CELLS // max([n, *bins.values()]))
    for block in [slice(i, i + size) for i in range(0, len(flat) if bins else 0, size)]:
        key = ((flat[block] + 0.0).view(np.int64) << 1) | flat_outcome[block].astype(np.int64)
        key.sort(axis=1)  # by score, which in [0, 1] leaves a bit free for the outcome
        ordered = (key >> 1).view(np.float64)
        residual = (key & 1) - ordered
        rows = ordered, residual, np.pad(residual.cumsum(axis=1), ((0, 0), (1, 0)))
        for e, n_bins in bins.items():
            value[e, block] = _binned(rows, parsed[e][0], n_bins, low)
    return np.asarray(value.reshape(len(parsed), *score.shape[:2]).mean(axis=2))


def silverman(scores: ArrayLike) -> _Floats:
    """Return the bandwidth that the authors call Silverman's rule, along the last axis.

    The paper cites Silverman (1986), whose factor is 0.9. The code has KDEpy's rule: 1.0592, the fifth root
    of 4/3, times min(sd, IQR/1.349) n**(-1/5). Where the minimum is 0 the range from the 0.01 to the 0.99
    quantile, over 4.653, takes its place; where that is 0 too, the bandwidth is 1.

    Parameters
    ----------
    scores : array-like, shape (..., n)
        Samples along the last axis.

    Returns
    -------
    ndarray, shape (...)
        One bandwidth for each sample.

    See Also
    --------
    ece : The estimator that uses this bandwidth.

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


def hendrycks_rms(correct: ArrayLike, confidence: ArrayLike, bin_size: int = 100) -> float:
    """Return the calibration error that Humanity's Last Exam and others report, as their code computes it.

    It is `calib_err` of the repository hendrycks/outlier-exposure: the root mean squared gap of bins of
    `bin_size` rows in the order of confidence, of which the last also takes the remainder. Its loop never
    reads that bin: the most confident rows count as calibrated, and with fewer than two bins it is 0. Equal
    confidences keep no order (`numpy.argsort`), so where a bin ends between them the result depends on the
    order of the rows. `ece` reads all bins and keeps equal confidences together with
    ``notion="correctness", norm="l2", estimator=f"adaptive:{len(correct) // bin_size}"``.

    Parameters
    ----------
    correct, confidence : array-like, shape (N,)
        Whether each answer was right, 0 or 1, and confidences in [0, 1].
    bin_size : int, default=100
        Rows in a bin. Their code stops with an error if there are fewer rows.

    Returns
    -------
    float
        Humanity's Last Exam prints `100 * round(value, 2)`.

    See Also
    --------
    calibrant.ece : The error without these faults.

    Examples
    --------
    >>> confidence, correct = [0.5] * 100 + [0.9] * 100, [0, 1] * 50 + [0] * 100
    >>> hendrycks_rms(correct, confidence)  # those that are 90 % sure are all wrong
    0.0
    """
    outcome, score = np.asarray(correct, dtype=np.float64), np.asarray(confidence, dtype=np.float64)
    if outcome.ndim != 1 or outcome.shape != score.shape:
        rule = "vectors of one length"
        raise ValueError(f"correct and confidence must be {rule}, got shapes {outcome.shape}, {score.shape}")
    for name, rule, values, good in (
        ("correct", "hold 0 and 1", outcome, np.isin(outcome, (0, 1))),
        ("confidence", "lie in [0, 1]", score, abs(score - 0.5) <= 0.5),
    ):
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"{name} must {rule}, got {values[row]} at row {row}")
    if isinstance(bin_size, bool) or not isinstance(bin_size, int | np.integer) or bin_size < 1:
        raise ValueError(f"bin_size must be an integer of at least 1, got {bin_size!r}")
    if len(score) < bin_size:
        raise ValueError(f"correct must have at least bin_size={bin_size} rows, got {len(score)}")
    order = np.argsort(score)
    score, outcome, total = score[order], outcome[order], 0.0
    for first in range(0, (len(score) // bin_size - 1) * bin_size, bin_size):
        rows = slice(first, first + bin_size)
        total += bin_size / len(score) * np.square(np.abs(score[rows].mean() - outcome[rows].mean()))
    return float(np.sqrt(total))


def _notion(name: str) -> Notion:
    """Return a notion that the authors' code knows."""
    if ALIASES.get(name, name) not in _NOTIONS:
        raise ValueError(f"notion must be one of {', '.join(_NOTIONS)}, got {name!r}")
    return get_notion(name)


def _parse(estimator: str, notion: Notion) -> tuple[str, float | None]:
    """Return the family and its parameter, None for the heuristic (`sqrt`, `silverman`)."""
    name, _, text = str(estimator).partition(":")
    family = _LONG.get(name, name)
    rule = "silverman" if family == "d" else "sqrt"
    if family not in _LONG.values():
        raise ValueError(f"estimator must be one of {[*_LONG.values(), *_LONG]}, got {estimator!r}")
    if text in ("", rule):
        if notion.is_binary and rule == "sqrt":
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


def _bounds(ordered: _Floats, limits: _Floats) -> NDArray[np.intp]:
    """Return 0, how many of a row's sorted scores lie below each of its limits or one before it, and n."""
    rows, n = ordered.shape
    origin, left = n * np.arange(rows)[:, None], n
    place = np.broadcast_to(origin, limits.shape).copy()
    while left > 1:  # a binary search for all limits at once
        place += left // 2 * (ordered.take(place + (left // 2 - 1)) < limits)
        left -= left // 2
    place += ordered.take(place) < limits
    return np.maximum.accumulate(np.concatenate([origin, place, origin + n], axis=1) - origin, axis=1)


def _binned(rows: tuple[_Floats, _Floats, _Floats], family: str, n_bins: int, low: float) -> _Floats:
    """Return the binned error of rows: sorted scores, outcomes less scores, and running sums of these from 0.

    `l`: bin floor(s B) on [0, 1], whatever the domain. `a`, `ac`: thresholds midway between neighbours after
    i floor(n/B) sorted scores, the remainder in the last bin (the paper: floor(N/i)); with n < B that index
    is 0, whose left neighbour wraps to the largest score: all thresholds are the mid-range. Bins are
    left-closed (the paper: closed on both sides). `c`: edge i at low + (i/B) (1 - low) in floating point, to
    the last bit, which decides where a score equal to a centre goes. `c`, `ac`: with c' < s <= c
    neighbouring centres of bins on [low, 1], c gets the weight (c - s)/(c - c') and c' the rest, swapped as
    in the paper's equation. Scores beyond the outer centres go to the outer bins, but one equal to the first
    centre has the last bin as its lower neighbour and goes there (the paper: to the first); with one bin
    that is 0/0, NaN.
    """
    scores, residual, running = rows
    count, n = scores.shape
    edges = np.tile(low + np.arange(n_bins + 1) / n_bins * (1.0 - low), (count, 1))
    edges[:, -1] = 1.0
    if family in ("a", "ac"):
        cut = np.arange(1, n_bins) * (n // n_bins)
        edges[:, 1:-1] = (scores[:, cut - 1] + scores[:, cut]) / 2
    if family == "l":
        index = np.minimum((scores * n_bins).astype(np.intp), n_bins - 1) + n_bins * np.arange(count)[:, None]
        gap = np.bincount(index.ravel(), residual.ravel(), count * n_bins).view(np.float64).reshape(count, -1)
    elif family == "a":
        gap = np.diff(np.take_along_axis(running, _bounds(scores, edges[:, 1:-1]), axis=1), axis=1)
    else:  # B + 2 parts of a row: below the first centre, on it, up to each next one, beyond the last
        top = np.pad((edges[:, :-1] + edges[:, 1:]) / 2, ((0, 0), (1, 1)), mode="edge")
        ahead = np.where(np.arange(n_bins + 1) > 0, 2.0, top[:, :1])  # a part up to a centre includes it
        bounds = _bounds(scores, np.nextafter(top[:, :-1], ahead))
        size, total = (np.diff(a, axis=1) for a in (bounds, np.take_along_axis(running, bounds, axis=1)))
        bin_of_row, centre = (np.repeat(a, size.ravel()) for a in (np.arange(size.size), top.ravel()))
        moment = np.bincount(bin_of_row, (centre - scores.ravel()) * residual.ravel(), size.size)
        width = np.diff(top, axis=1)
        share = moment.reshape(size.shape)[:, 1:] / np.where(width == 0, np.inf, width)
        rest = total[:, 1:] - share  # of the last bin, the first, the second, ..., the last
        gap = share[:, :-1] + rest[:, 1:]
        gap[:, 0] += total[:, 0]
        gap[:, -1] += rest[:, 0]
        gap[(size[:, 1] > 0) & (n_bins == 1)] = np.nan
    return np.asarray(np.abs(gap).sum(axis=1) / n)


def _density(scores: _Floats, outcomes: _Floats, bandwidth: _Floats, low: float) -> _Floats:
    """Return the density-based errors (E, R, K) of (R, K, n) arrays, given (E, R) bandwidths.

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
    origin, width = start + step * first, int(last - first)

    # At g = x + (g - x), f1 - g f sums the kernel times (outcome - x) less the kernel times its lag over the
    # copies x: an even and an odd kernel. One transform has both, and each bandwidth needs one inverse.
    def kernels(h: _Floats) -> list[_Floats]:  # every number twice, for the two floats of a complex one
        kernel = np.maximum(1 - np.square(lag / (3 * h[:, None, None])), 0.0)
        kernel *= kernel * kernel
        both = fft.rfft(kernel * (1 + lag))
        return [np.repeat(bin_of_row, 2, axis=-1) for bin_of_row in (both.real, both.imag)]

    groups, n = scores.shape[1:]
    radius = np.minimum(3 * bandwidth.max(axis=0) / step, 3 * width).astype(np.intp)
    order = np.argsort(-radius, kind="stable")  # a block is as wide as its widest kernel
    value, size = np.empty((len(bandwidth), *scores.shape[:2])), 0
    while len(order):
        fit = 20 * fft.next_fast_len(-(-(width + 2 * int(radius[order[0]]) + 8) // 20), real=True)
        if fit != size:  # what all blocks of one size share
            size, margin = fit, (fit - width) // 2
            inside = slice(margin, margin + width)
            points = origin + step * (np.arange(size) - margin)
            lag = step * ((np.arange(size) + size // 2) % size - size // 2)
            window = fft.rfft((points > low) & (points <= 1.0)) * (-2j / size)  # sums over the points inside
            window[[0, -1]] /= 2  # the others stand for their conjugates too
            kept = {e: kernels(h[:1]) for e, h in enumerate(bandwidth) if (h == h[0]).all()}
            samples = max(1, _CELLS // max(size, 4 * n) // (2 * groups) * 2)  # even: transforms go in pairs
        block, order = order[:samples], order[samples:]
        lean, mass = fft.rfft(_masses(scores[block], outcomes[block], low, points, step))
        lean, mass, tally = (a.view(np.float64) for a in (lean, -1j * mass, window))
        for e, h in enumerate(bandwidth[:, block]):
            even, odd = kept[e] if e in kept else kernels(h)
            spectrum = lean * even + mass * odd
            gap = fft.irfft(spectrum.view(np.complex128), size)[..., inside]
            total = np.einsum("rkf,rf->rk", mass, even[:, 0] * tally)
            value[e, block] = np.abs(gap, out=gap).sum(axis=2) / total
    return value


def _masses(scores: _Floats, outcomes: _Floats, low: float, points: _Floats, step: float) -> _Floats:
    """Share the copies of (R, K, n) scores x between grid points: sums of outcome - x, and of 1."""
    rows, n, size = scores.shape[0] * scores.shape[1], scores.shape[2], len(points)
    place = (scores.reshape(rows, n) - points[0]) / step
    lower, upper = (2 * (wall - points[0]) / step for wall in (low, 1.0))
    mirrored = np.stack([lower - place, upper - place, upper - lower + place])
    near = (mirrored >= 0) & (mirrored < size - 1)  # the rest is out of every kernel's reach
    offset = size * (np.arange(rows)[:, None] + rows * (1 - outcomes.reshape(rows, n)))  # outcomes of 1 first
    place = np.concatenate([(place + offset).ravel(), (mirrored + offset)[near]])
    cell = place.astype(np.intp)
    place -= cell
    share = np.concatenate([1 - place, place])
    masses = np.bincount(np.concatenate([cell, cell + 1]), share, 2 * rows * size).view(np.float64)
    masses = masses.reshape(2, *scores.shape[:2], size)
    masses[1] += masses[0]
    masses[0] -= points * masses[1]
    return masses
