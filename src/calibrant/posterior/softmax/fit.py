"""Posterior of the multinomial logistic model: block sizes by marginal likelihood, coefficients by Laplace.

See docs/methods/canonical-calibration.md, "Fit".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from calibrant.posterior.log_odds.cells import expit
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import Blocks, CoefficientBlock
from calibrant.posterior.softmax.likelihood import CHUNK, Likelihood, SubsetLikelihood
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import PRIOR, SOFTMAX

# Number of rounds of choosing sizes and finding the mode, of sweeps over the blocks in each round, and of
# steps to the mode.
ROUNDS, SWEEPS, STEPS = 2, 2, 12
# The search for the mode stops if the next step would add less than this to the log posterior (nats): for
# posterior draws around the mode, and if the mode itself is the result.
DRAW_TOLERANCE, MODE_TOLERANCE = 1e-3, 1e-9
# Largest number of rows, and of scores (rows times classes), of the subset that represents all rows near a
# mode.
SUBSET_ROWS, SUBSET_SCORES = 50_000, 10_000_000
# Roughnesses of curves: the first of those of a smooth gap, as curves have few coefficients.
ROUGHNESSES = 2


@dataclass(frozen=True, eq=False)
class SoftmaxPosterior:
    """Posterior of the true class probabilities given the score vector.

    Attributes
    ----------
    likelihood : Likelihood
    theta : array (coefficients,)
        Posterior mode.
    precision : array (coefficients,)
        Prior precision of each coefficient; infinite if its block is absent.
    information : array (coefficients, coefficients)
        Information matrix at the mode.
    target : array (coefficients,)
        Gradient at the mode plus information times mode: the linear term of the quadratic expansion.
    sizes : list of (precisions, weights)
        For each block its candidates (the first is absence) and their posterior weights.
    log_odds : float
        Log Bayes factor of a gap against no gap.
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
        """Fit the model to rows; `kind` is the floating-point type of the information matrix."""
        blocks = Blocks.of(rows) if blocks is None else blocks
        likelihood = Likelihood(rows, blocks, kind)
        theta, precision = np.zeros(blocks.size), np.full(blocks.size, np.inf)
        max_rows = min(SUBSET_ROWS, SUBSET_SCORES // blocks.n_classes)
        near = likelihood.near(theta, max_rows)
        start = near.slope(theta)[0]
        # Start with a temperature alone: far from the mode the quadratic expansion is inaccurate.
        precision[blocks.blocks[0].indices] = SOFTMAX.sds[-1] ** -2.0
        theta, square = _mode(near, theta, precision)
        target = near.slope(theta)[1] + square @ theta
        for _ in range(ROUNDS):
            for _ in range(SWEEPS):
                for block in blocks.blocks:
                    choices, weight = candidates(square, target, precision, block)
                    precision[block.indices] = choices[int(np.argmax(weight))]
            theta, square = _mode(near, theta, precision, square)
            near = likelihood.near(theta, max_rows)
            value, gradient = near.slope(theta)
            target = gradient + square @ theta
        # Log Bayes factor against no gap: the sizes of each block are summed, given those of the others.
        log, sizes = 0.0, []
        for block in blocks.blocks:
            choices, weight = candidates(square, target, precision, block)
            current = next(
                j for j, each in enumerate(choices) if np.array_equal(each, precision[block.indices])
            )
            share = np.exp(weight - weight.max())
            log += float(weight.max() + np.log(share.sum()) - weight[current] + _prior(len(choices))[current])
            sizes.append((choices, share / share.sum()))
        present = np.flatnonzero(np.isfinite(precision))
        if present.size:
            root = np.linalg.cholesky(square[np.ix_(present, present)] + np.diag(precision[present]))
            t = theta[present]
            log += value - start - 0.5 * float(t @ (precision[present] * t))
            log += float(0.5 * np.log(precision[present]).sum() - np.log(np.diagonal(root)).sum())
        return cls(likelihood, theta, precision, square, target, sizes, log)

    @property
    def gap_probability(self) -> float:
        """Posterior probability that there is a gap."""
        return float(gap_probability_of(self.log_odds))

    @property
    def blocks(self) -> Blocks:
        """The blocks."""
        return self.likelihood.blocks

    def draws(self, rng: np.random.Generator, size_draws: int, coefficient_draws: int) -> Array:
        """Draw sizes, then coefficients given the sizes: (size_draws * coefficient_draws, coefficients)."""
        from scipy.linalg import solve_triangular

        out = np.zeros((size_draws, coefficient_draws, self.theta.size))
        for theta in out:
            precision = np.full(self.theta.size, np.inf)
            for block, (choices, weight) in zip(self.blocks.blocks, self.sizes, strict=True):
                precision[block.indices] = choices[rng.choice(len(weight), p=weight)]
            present = np.flatnonzero(np.isfinite(precision))
            noise = rng.standard_normal((present.size, (coefficient_draws + 1) // 2))
            noise = np.concatenate([noise, -noise], axis=1)[:, :coefficient_draws]
            if present.size:
                root = np.linalg.cholesky(
                    self.information[np.ix_(present, present)] + np.diag(precision[present])
                )
                mean = solve_triangular(root, self.target[present], lower=True)
                theta[:, present] = solve_triangular(root, mean[:, None] + noise, lower=True, trans="T").T
        return out.reshape(-1, self.theta.size)

    def predict(self, score: Array) -> Array:
        """Return the probabilities of new rows, (rows, classes), at the mode."""
        if not self.theta.any():
            return score
        step = max(1, CHUNK // self.blocks.size)
        parts = (score[a : a + step] for a in range(0, len(score), step))
        return np.concatenate(
            [softmax(self.blocks.logits(self.blocks.columns(p), self.theta)) for p in parts]
        )

    def held_out(self, folds: list[slice]) -> Array:
        """Return cross-validated probabilities of each row, (rows, classes).

        Block sizes are kept. One Newton step removes the rows of a fold from the fit.
        """
        present = np.flatnonzero(np.isfinite(self.precision))
        if not present.size:
            return self.likelihood.rows.score
        out = np.empty(self.likelihood.rows.score.shape)
        posterior_precision = self.information[np.ix_(present, present)] + np.diag(self.precision[present])
        # The gradient at the mode is not exactly zero; each fold includes it.
        slope = self.target[present] - posterior_precision @ self.theta[present]
        rows = self.likelihood.rows
        sampled = len(rows.code) > min(SUBSET_ROWS, SUBSET_SCORES // self.blocks.n_classes)
        for fold in folds:
            _, gradient = self.likelihood.slope(self.theta, fold)
            if sampled:
                fold_information = self.information[np.ix_(present, present)] * (
                    float(rows.weight[fold].sum()) / rows.n
                )
            else:
                fold_information = self.likelihood.expand(self.theta, present, fold)
            theta = self.theta.copy()
            theta[present] += np.linalg.solve(
                posterior_precision - fold_information, slope - gradient[present]
            )
            out[fold] = self.likelihood.predict(theta, fold)
        return out


def penalised(
    rows: Simplex, blocks: Blocks, sizes: Mapping[str, float], kind: DTypeLike = np.float32
) -> Array:
    """Return the posterior mode if the blocks in `sizes` have known prior sizes and all others are absent."""
    likelihood = Likelihood(rows, blocks, kind)
    theta, precision = np.zeros(blocks.size), np.full(blocks.size, np.inf)
    for block in blocks.blocks:
        if block.name in sizes:
            precision[block.indices] = sizes[block.name] ** -2.0
    square = None
    for _ in range(ROUNDS):
        near = likelihood.near(theta, min(SUBSET_ROWS, SUBSET_SCORES // blocks.n_classes))
        theta, square = _mode(near, theta, precision, square, MODE_TOLERANCE)
        if near is likelihood:
            break
    return theta


def gap_probability_of(log_odds: Array | float) -> Array:
    """Return the posterior probability of a gap from its log Bayes factor against no gap."""
    calibrated = SOFTMAX.prior_probability_of_calibration
    return expit(np.log1p(-calibrated) - np.log(calibrated) + log_odds)


def _prior(count: int) -> Array:
    """Return the log prior of the candidates of a block; the first is absence."""
    absent = SOFTMAX.probability_of_absent_block
    return np.log(np.concatenate([[absent], np.full(count - 1, (1 - absent) / (count - 1))]))


def shapes(block: CoefficientBlock) -> list[Array]:
    """Return the prior standard deviations of the coefficients of a block of size 1, for each roughness."""
    if block.frequency is None:
        return [np.ones(block.indices.size)]
    out = []
    for rough in PRIOR.roughness[:ROUGHNESSES]:
        spread = (1 + (block.frequency / rough) ** 2) ** (-PRIOR.spectrum_exponent / 2)
        # The prior variances of the coefficients of a curve sum to 1.
        curves = block.indices.size / np.unique(block.frequency).size
        out.append(spread * np.sqrt(curves / (spread @ spread)))
    return out


def candidates(
    square: Array, target: Array, precision: Array, block: CoefficientBlock
) -> tuple[list[Array], Array]:
    """Return the prior precisions of a block's candidates (absence first) and their log posterior weights.

    The sizes of the other blocks are given by `precision`, and their coefficients are integrated out.
    """
    from scipy.linalg import cho_factor, cho_solve

    indices = block.indices
    others = np.isfinite(precision)
    others[indices] = False
    conditional, slope = square[np.ix_(indices, indices)], target[indices]
    if others.any():
        other_indices = np.flatnonzero(others)
        across = square[np.ix_(other_indices, indices)]
        root = cho_factor(square[np.ix_(other_indices, other_indices)] + np.diag(precision[other_indices]))
        solved = cho_solve(root, np.column_stack([across, target[other_indices]]))
        conditional = conditional - across.T @ solved[:, :-1]
        slope = slope - across.T @ solved[:, -1]
    choices, log = [np.full(indices.size, np.inf)], [0.0]
    # Bordered Cholesky factor: its last row solves the triangular system with the linear term.
    bordered = np.zeros((indices.size + 1, indices.size + 1))
    inner, diagonal = bordered[:-1, :-1], np.einsum("ii->i", bordered)
    for shape in shapes(block):
        scaled, scaled_slope = conditional * shape * shape[:, None], slope * shape
        for size in SOFTMAX.sds:
            np.multiply(scaled, size**2, out=inner)
            bordered[-1, :-1] = size * scaled_slope
            # A value that keeps the bordered matrix positive definite, because the inner matrix is at least
            # I.
            bordered[-1, -1] = 2 * size**2 * float(scaled_slope @ scaled_slope)
            diagonal += 1.0
            root = np.linalg.cholesky(bordered)
            u = root[-1, :-1]
            choices.append((size * shape) ** -2.0)
            log.append(0.5 * float(u @ u) - float(np.log(np.diagonal(root)[:-1]).sum()))
    return choices, np.array(log) + _prior(len(log))


def _mode(
    likelihood: Likelihood | SubsetLikelihood,
    theta: Array,
    precision: Array,
    square: Array | None = None,
    tolerance: float = DRAW_TOLERANCE,
) -> tuple[Array, Array]:
    """Return the posterior mode and the information matrix there, starting at theta.

    `square` is the information matrix at theta if it is known. It is recomputed if the steps do not decrease
    quickly. The search stops if the next step would add less than `tolerance` to the log posterior.
    """
    from scipy.linalg import cho_factor, cho_solve

    present = np.flatnonzero(np.isfinite(precision))
    current = np.zeros(theta.size)
    current[present] = theta[present]
    if not present.size:
        return current, _information_at(likelihood, current, theta, square)
    prior_precision = precision[present]
    information = likelihood.expand(current, present) if square is None else square[np.ix_(present, present)]
    root = cho_factor(information + np.diag(prior_precision))
    value, gradient = likelihood.slope(current)
    objective, previous_gain = value - 0.5 * current[present] @ (prior_precision * current[present]), np.inf
    for _ in range(STEPS):
        slope = gradient[present] - prior_precision * current[present]
        step = cho_solve(root, slope)
        expected_gain = float(step @ slope)
        if expected_gain < tolerance:
            break
        if expected_gain > 0.2 * previous_gain:
            root = cho_factor(likelihood.expand(current, present) + np.diag(prior_precision))
            step = cho_solve(root, slope)
            expected_gain = float(step @ slope)
        previous_gain, step_length = expected_gain, 1.0
        while step_length > 1e-3:
            new = current.copy()
            new[present] += step_length * step
            value, new_gradient = likelihood.slope(new)
            new_objective = value - 0.5 * new[present] @ (prior_precision * new[present])
            if new_objective > objective - 1e-9:
                break
            step_length /= 2
        current, gradient, objective = new, new_gradient, new_objective
    return current, _information_at(likelihood, current, theta, square)


def _information_at(
    likelihood: Likelihood | SubsetLikelihood, current: Array, theta: Array, square: Array | None
) -> Array:
    """Return the information matrix at `current`; that at `theta` may be known."""
    return square if square is not None and np.array_equal(current, theta) else likelihood.expand(current)
