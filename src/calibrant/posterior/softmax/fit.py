"""The posterior of the blocks: sizes by their evidence, coefficients by Laplace's approximation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from calibrant.posterior.log_odds.cells import expit
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import Block, Blocks
from calibrant.posterior.softmax.likelihood import CHUNK, Likelihood, Nearby
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Prior sizes of a block, how rough its waves may be, and the prior probability that it is absent.
SIZES, ROUGH, ABSENT = np.geomspace(0.03, 1.5, 7), (1.25, 5.0), 0.5
# Prior probability that there is no gap at all.
CALIBRATED = 0.235
# Turns of choosing sizes and finding the mode, sweeps over the blocks in each, steps to the mode.
TURNS, SWEEPS, STEPS = 2, 2, 12
# How close to the mode is close enough: where draws are made around it, and where it is the answer itself.
CLOSE, ANSWER = 1e-3, 1e-9
# Rows that stand for all in the neighbourhood of some coefficients, fewer with many classes: scores of them.
LOOKED_AT, SCORES = 50_000, 10_000_000


@dataclass(frozen=True, eq=False)
class SoftmaxPosterior:
    """The posterior of the probabilities that rows of scores stand for.

    Attributes
    ----------
    likelihood : Likelihood
    theta : array
        The mode.
    precision : array
        Prior precision of each coefficient; infinite where its block is absent.
    information : array
        Of all coefficients, at the mode.
    target : array
        Gradient at the mode plus information times mode: what sizes are weighed by.
    sizes : list of (precisions, weights)
        For each block its candidates, the first of which is absence, and their posterior weights.
    chance : float
        Posterior probability that there is a gap.
    """

    likelihood: Likelihood
    theta: Array
    precision: Array
    information: Array
    target: Array
    sizes: list[tuple[list[Array], Array]]
    log_odds: float

    @classmethod
    def of(
        cls, rows: Simplex, blocks: Blocks | None = None, kind: DTypeLike = np.float32
    ) -> SoftmaxPosterior:
        """Fit the blocks to rows, with the information summed in some kind of floats."""
        blocks = Blocks.of(rows) if blocks is None else blocks
        likelihood = Likelihood(rows, blocks, kind)
        theta, precision = np.zeros(blocks.size), np.full(blocks.size, np.inf)
        looked_at = min(LOOKED_AT, SCORES // blocks.n_classes)
        near = likelihood.near(theta, looked_at)
        start = near.slope(theta)[0]
        # Far from the truth curvatures mislead; a temperature takes most of the way, for what is known of it.
        precision[blocks.blocks[0].places] = SIZES[-1] ** -2.0
        theta, square = _mode(near, theta, precision)
        target = near.slope(theta)[1] + square @ theta
        known: dict[tuple[str, bytes], tuple[list[Array], Array]] = {}

        def weigh(block: Block) -> tuple[list[Array], Array]:
            """Weigh the sizes of a block, unless nothing else has changed since it was weighed."""
            others = precision.copy()
            others[block.places] = 0.0
            key = block.name, others.tobytes()
            if key not in known:
                known[key] = candidates(square, target, precision, block)
            return known[key]

        for _ in range(TURNS):
            for _ in range(SWEEPS):
                for block in blocks.blocks:
                    choices, weight = weigh(block)
                    precision[block.places] = choices[int(np.argmax(weight))]
            before = square, target
            theta, square = _mode(near, theta, precision, square)
            near = likelihood.near(theta, looked_at)
            value, gradient = near.slope(theta)
            target = gradient + square @ theta
            if square is not before[0] or not np.array_equal(target, before[1]):
                known.clear()
        # The evidence against no gap at all: each block's sizes summed, given those of the others.
        log, sizes = 0.0, []
        for block in blocks.blocks:
            choices, weight = weigh(block)
            now = next(j for j, each in enumerate(choices) if np.array_equal(each, precision[block.places]))
            share = np.exp(weight - weight.max())
            log += float(weight.max() + np.log(share.sum()) - weight[now] + _prior(len(choices))[now])
            sizes.append((choices, share / share.sum()))
        on = np.flatnonzero(np.isfinite(precision))
        if on.size:
            root = np.linalg.cholesky(square[np.ix_(on, on)] + np.diag(precision[on]))
            t = theta[on]
            log += value - start - 0.5 * float(t @ (precision[on] * t))
            log += float(0.5 * np.log(precision[on]).sum() - np.log(np.diagonal(root)).sum())
        return cls(likelihood, theta, precision, square, target, sizes, log)

    @property
    def chance(self) -> float:
        """Posterior probability that there is a gap."""
        return float(chance_of(self.log_odds))

    @property
    def blocks(self) -> Blocks:
        """The blocks."""
        return self.likelihood.blocks

    def draws(self, rng: np.random.Generator, of_sizes: int, of_each: int) -> Array:
        """Draw coefficients: sizes first, then coefficients given them."""
        from scipy.linalg import solve_triangular

        out = np.zeros((of_sizes, of_each, self.theta.size))
        for theta in out:
            precision = np.full(self.theta.size, np.inf)
            for block, (choices, weight) in zip(self.blocks.blocks, self.sizes, strict=True):
                precision[block.places] = choices[rng.choice(len(weight), p=weight)]
            on = np.flatnonzero(np.isfinite(precision))
            noise = rng.standard_normal((on.size, (of_each + 1) // 2))
            noise = np.concatenate([noise, -noise], axis=1)[:, :of_each]
            if on.size:
                root = np.linalg.cholesky(self.information[np.ix_(on, on)] + np.diag(precision[on]))
                mean = solve_triangular(root, self.target[on], lower=True)
                theta[:, on] = solve_triangular(root, mean[:, None] + noise, lower=True, trans="T").T
        return out.reshape(-1, self.theta.size)

    def predict(self, score: Array) -> Array:
        """Return the probabilities of new rows at the mode."""
        if not self.theta.any():
            return score
        step = max(1, CHUNK // self.blocks.size)
        parts = (score[a : a + step] for a in range(0, len(score), step))
        return np.concatenate(
            [softmax(self.blocks.logits(self.blocks.columns(p), self.theta)) for p in parts]
        )

    def held_out(self, folds: list[slice]) -> Array:
        """Return the probabilities of each row by what the rows of other folds taught.

        Sizes are kept, and one step of Newton takes the rows of a fold out.
        """
        on = np.flatnonzero(np.isfinite(self.precision))
        if not on.size:
            return self.likelihood.rows.score
        out = np.empty(self.likelihood.rows.score.shape)
        whole = self.information[np.ix_(on, on)] + np.diag(self.precision[on])
        # The mode was found up to a small slope, which every fold has left.
        slope = self.target[on] - whole @ self.theta[on]
        share = self.likelihood.rows
        sampled = len(share.code) > min(LOOKED_AT, SCORES // self.blocks.n_classes)
        for part in folds:
            _, gradient = self.likelihood.slope(self.theta, part)
            if sampled:
                own = self.information[np.ix_(on, on)] * (float(share.weight[part].sum()) / share.n)
            else:
                own = self.likelihood.expand(self.theta, on, part)
            theta = self.theta.copy()
            theta[on] += np.linalg.solve(whole - own, slope - gradient[on])
            out[part] = self.likelihood.predict(theta, part)
        return out


def penalised(
    rows: Simplex, blocks: Blocks, sizes: Mapping[str, float], kind: DTypeLike = np.float32
) -> Array:
    """Return the mode where some blocks have known prior sizes, by name, and the others are absent."""
    likelihood = Likelihood(rows, blocks, kind)
    theta, precision = np.zeros(blocks.size), np.full(blocks.size, np.inf)
    for block in blocks.blocks:
        if block.name in sizes:
            precision[block.places] = sizes[block.name] ** -2.0
    square = None
    for _ in range(TURNS):
        near = likelihood.near(theta, min(LOOKED_AT, SCORES // blocks.n_classes))
        theta, square = _mode(near, theta, precision, square, ANSWER)
        if near is likelihood:
            break
    return theta


def chance_of(log_odds: Array | float) -> Array:
    """Return the probability of a gap from the logarithm of the evidence for one over that for none."""
    odds = np.log1p(-CALIBRATED) - np.log(CALIBRATED) + log_odds
    return expit(odds)


def _prior(count: int) -> Array:
    return np.log(np.concatenate([[ABSENT], np.full(count - 1, (1 - ABSENT) / (count - 1))]))


def shapes(block: Block) -> list[Array]:
    """Return prior standard deviations of a block of size 1, for each roughness."""
    if block.frequency is None:
        return [np.ones(block.places.size)]
    out = []
    for rough in ROUGH:
        spread = (1 + (block.frequency / rough) ** 2) ** -1.5
        # The variances of a curve add up to 1.
        curves = block.places.size / np.unique(block.frequency).size
        out.append(spread * np.sqrt(curves / (spread @ spread)))
    return out


def candidates(square: Array, target: Array, precision: Array, block: Block) -> tuple[list[Array], Array]:
    """Return precisions of a block, absence first, and their log posterior weights, the others' held."""
    from scipy.linalg import cho_factor, cho_solve

    at = block.places
    rest = np.isfinite(precision)
    rest[at] = False
    own, slope = square[np.ix_(at, at)], target[at]
    if rest.any():
        other = np.flatnonzero(rest)
        across = square[np.ix_(other, at)]
        root = cho_factor(square[np.ix_(other, other)] + np.diag(precision[other]))
        solved = cho_solve(root, np.column_stack([across, target[other]]))
        own = own - across.T @ solved[:, :-1]
        slope = slope - across.T @ solved[:, -1]
    choices, log = [np.full(at.size, np.inf)], [0.0]
    # The last row of the root of a matrix with one more row solves for that row.
    bordered = np.zeros((at.size + 1, at.size + 1))
    inner, diagonal = bordered[:-1, :-1], np.einsum("ii->i", bordered)
    for shape in shapes(block):
        scaled, pull = own * shape * shape[:, None], slope * shape
        for size in SIZES:
            np.multiply(scaled, size**2, out=inner)
            bordered[-1, :-1] = size * pull
            # The matrix is larger than the identity: this much is left of the corner.
            bordered[-1, -1] = 2 * size**2 * float(pull @ pull)
            diagonal += 1.0
            root = np.linalg.cholesky(bordered)
            u = root[-1, :-1]
            choices.append((size * shape) ** -2.0)
            log.append(0.5 * float(u @ u) - float(np.log(np.diagonal(root)[:-1]).sum()))
    return choices, np.array(log) + _prior(len(log))


def _mode(
    likelihood: Likelihood | Nearby,
    theta: Array,
    precision: Array,
    square: Array | None = None,
    close: float = CLOSE,
) -> tuple[Array, Array]:
    """Return the mode and the information there, starting from coefficients where it may be known.

    Steps use the information at hand; it is renewed where they do not shrink quickly. They end where the
    next would add less than `close` to the log posterior.
    """
    from scipy.linalg import cho_factor, cho_solve

    on = np.flatnonzero(np.isfinite(precision))
    now = np.zeros(theta.size)
    now[on] = theta[on]
    if not on.size:
        return now, _renewed(likelihood, now, theta, square)
    lam = precision[on]
    known = likelihood.expand(now, on) if square is None else square[np.ix_(on, on)]
    root = cho_factor(known + np.diag(lam))
    value, gradient = likelihood.slope(now)
    goal, last = value - 0.5 * now[on] @ (lam * now[on]), np.inf
    for _ in range(STEPS):
        pull = gradient[on] - lam * now[on]
        step = cho_solve(root, pull)
        left = float(step @ pull)
        if left < close:
            break
        if left > 0.2 * last:
            root = cho_factor(likelihood.expand(now, on) + np.diag(lam))
            step = cho_solve(root, pull)
            left = float(step @ pull)
        last, length = left, 1.0
        while length > 1e-3:
            new = now.copy()
            new[on] += length * step
            value, new_gradient = likelihood.slope(new)
            new_goal = value - 0.5 * new[on] @ (lam * new[on])
            if new_goal > goal - 1e-9:
                break
            length /= 2
        now, gradient, goal = new, new_gradient, new_goal
    return now, _renewed(likelihood, now, theta, square)


def _renewed(likelihood: Likelihood | Nearby, now: Array, theta: Array, square: Array | None) -> Array:
    """Return the information at some coefficients; that at `theta` may be known."""
    return square if square is not None and np.array_equal(now, theta) else likelihood.expand(now)
