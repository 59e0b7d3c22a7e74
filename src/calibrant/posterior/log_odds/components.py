"""Parametric and smooth components of the model average on the log-odds scale.

A component says logit q = offset + basis u with u ~ N(0, I). Each column of the basis is a feature
(intercept, slope, curvature, cosines) times its prior standard deviation. Laplace's approximation gives the
posterior of u and the log marginal likelihood of the component.

See docs/methods/calibration-curve.md, "Parametric and smooth components".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.posterior.log_odds.cells import LogOddsCells, expit, step_weights
from calibrant.score_data import Array
from calibrant.settings import LOG_ODDS

# Smallest and largest number of cosines, at which the series is cut (resolution).
LEAST_WAVES, MOST_WAVES = 8, 64
# Posterior weights: above REFINED a component with a smooth part is fitted individually, below KEPT any
# component is dropped from the average, below EXPANDED it is not expanded a second time. They save time.
REFINED, KEPT, EXPANDED = 0.01, 1e-3, 1e-12
# Search for the mode: number of steps with the Polya-Gamma bound, largest number of steps, largest number of
# step reductions, and the gain in log posterior (nats) below which the search stops.
SURE, STEPS, HALVINGS, ENOUGH = 2, 25, 12, 1e-3
# Share of the information on each side where the time linear in log-odds is constant.
INFORMATION_TAIL = 0.005


@dataclass(frozen=True, eq=False)
class ComponentBlock:
    """Components that share features and an offset.

    Attributes
    ----------
    noise : float
        Label noise d.
    variance_time : str or None
        Time variable of the cosines, "rank" or "odds"; None without a smooth part.
    features : array (cells, features)
    sizes : array (components, features)
        Prior standard deviations of the coefficients.
    prior : array (components,)
        Log prior weights.
    mode : array (components, features)
        Posterior mode of u.
    square : list of arrays (features, features)
        Information matrix of the features, at the point where the likelihood of each component was expanded.
    logits : array (components, cells)
        Log-odds at the mode.
    log_marginal : array (components,)
        Log marginal likelihood.
    """

    noise: float
    variance_time: str | None
    features: Array
    sizes: Array
    prior: Array
    mode: Array
    square: list[Array]
    logits: Array
    log_marginal: Array

    @property
    def log(self) -> Array:
        """Log of prior times marginal likelihood."""
        return self.prior + self.log_marginal

    def cholesky_factors(self, subset: Array) -> Array:
        """Return the Cholesky factors of the posterior precision of u, for a subset of the components."""
        size = self.sizes[subset]
        square = np.stack([self.square[k] for k in subset])
        return np.linalg.cholesky(square * (size[:, :, None] * size[:, None]) + np.eye(size.shape[1]))

    def replace_components(
        self, subset: Array, mode: Array, square: list[Array], logits: Array, log_marginal: Array
    ) -> None:
        """Replace mode, information, log-odds and log marginal likelihood of a subset of the components."""
        self.mode[subset], self.logits[subset], self.log_marginal[subset] = mode, logits, log_marginal
        for k, each in zip(subset, square, strict=True):
            self.square[k] = each


def features(x: Array) -> Array:
    """Return intercept, slope and curvature ln 4p(1 - p), (..., 3); the curvature is about -|x|.

    >>> features(np.array([0.0])).round(3) + 0.0
    array([[1., 0., 0.]])
    """
    magnitude = np.abs(x)
    return np.stack([np.ones_like(x), x, np.log(4.0) - magnitude - 2 * np.log1p(np.exp(-magnitude))], axis=-1)


def with_label_noise(x: Array, noise: float) -> Array:
    """Return the log-odds of d + (1 - 2d) p with label noise d; they are bounded if d > 0.

    >>> with_label_noise(np.array([-50.0, 0.0]), 0.1).round(3)
    array([-2.197,  0.   ])
    """
    if noise == 0:
        return x
    p = expit(x)
    return np.asarray(np.log(noise + (1 - 2 * noise) * p) - np.log(noise + (1 - 2 * noise) * (1 - p)))


def parametric(cells: LogOddsCells) -> list[ComponentBlock]:
    """Fit the components without a smooth part: one block for each value of the label noise."""
    shapes, noises = LOG_ODDS.parametric, LOG_ODDS.label_noise_prior
    sizes = shapes[:, :3]
    offset = np.stack([with_label_noise(cells.x, noise) for noise in noises])
    phi = features(offset)
    n_components = len(sizes)
    basis = (phi[:, None] * sizes[:, None]).reshape(-1, cells.x.size, 3)
    start = np.zeros((len(basis), 3))
    mode, logits, log_marginal = modes(cells, np.repeat(offset, n_components, axis=0), basis, start)
    prior = np.log(shapes[:, 3] * (1 - LOG_ODDS.flexible_weight))
    n = max(cells.n, 1.0)
    only_slope = (sizes[:, 1] > 0) & (np.count_nonzero(sizes, axis=1) == 1)
    prior[only_slope] += min(LOG_ODDS.temperature_bonus / n, 1.0)
    identity_bonus = np.where(sizes.any(axis=1), 0.0, LOG_ODDS.identity_bonus / n)
    blocks = []
    for k, (noise, share) in enumerate(noises.items()):
        block = slice(k * n_components, (k + 1) * n_components)
        parts = mode[block], _information(cells, phi[k], logits[block]), logits[block], log_marginal[block]
        log_prior = prior + np.log(share) + (identity_bonus if noise == 0 else 0.0)
        blocks.append(ComponentBlock(noise, None, phi[k], sizes, log_prior, *parts))
    return blocks


def modes(cells: LogOddsCells, offset: Array, basis: Array, start: Array) -> tuple[Array, Array, Array]:
    """Return mode, log-odds at the mode and log marginal likelihood of each component.

    The first steps use the Polya-Gamma bound, which never decreases the likelihood. They are followed by
    Newton steps, which are shortened if the posterior decreases.

    Parameters
    ----------
    cells : LogOddsCells
    offset : array (components, cells)
    basis : array (components, cells, features)
    start : array (components, features)
        Where the search for the mode starts.
    """
    trials, successes = cells.trials, cells.successes
    eye = np.eye(basis.shape[-1])
    transposed = np.swapaxes(basis, -1, -2)

    def log_posterior(u: Array, components: Array) -> tuple[Array, Array]:
        logits = offset[components] + np.matmul(basis[components], u[:, :, None])[:, :, 0]
        return logits, cells.likelihood(logits) - 0.5 * (u * u).sum(axis=-1)

    u = start.copy()
    logits, best = log_posterior(u, np.arange(len(u)))
    unfinished = np.arange(len(u))
    for step in range(STEPS):
        design, at = basis[unfinished], logits[unfinished]
        curvature, slope = step_weights(trials, successes, at, sure=step < SURE)
        transposed_design = transposed[unfinished]
        precision = np.matmul(transposed_design * curvature[:, None], design) + eye
        gradient = np.matmul(transposed_design, slope[:, :, None])[:, :, 0] - u[unfinished]
        direction = np.linalg.solve(precision, gradient[:, :, None])[:, :, 0]
        step_length = np.ones(len(unfinished))
        trying = np.arange(len(unfinished))
        gain = np.zeros(len(unfinished))
        for _ in range(HALVINGS):
            component = unfinished[trying]
            new = u[component] + step_length[trying, None] * direction[trying]
            f, value = log_posterior(new, component)
            better = value >= best[component] - 1e-9
            improved = component[better]
            gain[trying[better]] = value[better] - best[improved]
            u[improved], logits[improved], best[improved] = new[better], f[better], value[better]
            trying = trying[~better]
            if not trying.size:
                break
            step_length[trying] *= 0.4
        if step >= SURE:
            unfinished = unfinished[gain >= ENOUGH]
            if not unfinished.size:
                break
    precision = np.stack(_information(cells, basis, logits)) + eye
    return u, logits, best - _half_log_det(precision)


def _information(cells: LogOddsCells, phi: Array, logits: Array) -> list[Array]:
    """Return the information matrices of features (shared, or of each component) at log-odds."""
    return list(np.matmul(np.swapaxes(phi, -1, -2) * cells.information(logits)[:, None], phi))


def _half_log_det(precision: Array) -> Array:
    """Return half the log determinants of positive definite matrices."""
    root = np.linalg.cholesky(precision)
    return np.asarray(np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class TimeVariable:
    """Time variable of the cosines: a monotone map of log-odds to [0, 1], by interpolation."""

    x: Array
    time: Array

    def cosines(self, x: Array, count: int) -> Array:
        """Return the first `count` cosines at log-odds x, (len(x), count)."""
        time = np.interp(x, self.x, self.time)
        return np.asarray(np.sqrt(2.0) * np.cos(np.pi * time[:, None] * np.arange(1, count + 1)))


def time_variables(cells: LogOddsCells, logits: Array) -> dict[str, TimeVariable]:
    """Return the two time variables of the smooth part: rank of the rows, and linear in the log-odds.

    The latter covers the central part of the information, which is computed at the fitted log-odds `logits`.
    """
    cumulative_sums = np.cumsum(cells.trials)
    rank = TimeVariable(cells.x, (cumulative_sums - cells.trials / 2) / cumulative_sums[-1])
    information = cells.information(logits)
    # Sums up to the middle of each cell, so that both ends are treated symmetrically.
    upto = np.cumsum(information) - information / 2
    ends = np.array([INFORMATION_TAIL, 1 - INFORMATION_TAIL]) * information.sum()
    low, high = np.interp(ends, upto, cells.x)
    even = TimeVariable(cells.x, np.clip((cells.x - low) / max(high - low, 1e-9), 0, 1))
    return {"rank": rank, "odds": even}


def smooth(
    cells: LogOddsCells, parametric_blocks: list[ComponentBlock]
) -> tuple[list[ComponentBlock], dict[str, TimeVariable]]:
    """Fit the components with a smooth part, without label noise and with the most probable label noise.

    First, all components of a block share one quadratic expansion of the likelihood, at the posterior mean
    log-odds. Then those with enough posterior weight are fitted individually.
    """
    if cells.x.size <= 2:
        return [], {}
    logs = [np.logaddexp.reduce(block.log) for block in parametric_blocks]
    likeliest = 1 + int(np.argmax(logs[1:]))
    no_noise = LOG_ODDS.probability_of_no_label_noise
    shares = {0: no_noise, likeliest: 1 - no_noise}
    centre = _mean_logits(parametric_blocks)
    times = time_variables(cells, centre)
    count = int(np.clip(2 ** np.round(np.log2(np.sqrt(cells.n))), LEAST_WAVES, MOST_WAVES))
    count = min(count, max(cells.x.size - 1, 2))
    shapes = LOG_ODDS.parametric
    shapes = shapes[shapes[:, 4] > 0]
    spectra = _spectra(count)
    spread = np.array([size * spectrum for size in LOG_ODDS.sds for spectrum in spectra])
    shapes, shape_weight = shapes[:, :3], shapes[:, 3] / shapes[:, 3].sum()
    sizes = _prior_sds(shapes, spread)
    prior = np.log(
        np.repeat(shape_weight, len(spread)) * (LOG_ODDS.flexible_weight / (len(spread) * len(times)))
    )
    blocks = []
    for name, time in times.items():
        cosines = time.cosines(cells.x, count)
        for k, share in shares.items():
            offset = with_label_noise(cells.x, parametric_blocks[k].noise)
            phi = np.hstack([parametric_blocks[k].features, cosines])
            parts = _fit_by_expansion(cells, phi, shapes, spread, offset, centre)
            blocks.append(
                ComponentBlock(parametric_blocks[k].noise, name, phi, sizes, prior + np.log(share), *parts)
            )
    weights = component_weights([*parametric_blocks, *blocks])[len(parametric_blocks) :]
    if sum(float(weight.sum()) for weight in weights) < REFINED:
        return blocks, times
    # Expand again at the improved mean, where that matters, and then fit individually.
    centre = _mean_logits([*parametric_blocks, *blocks])
    for block, weight in zip(blocks, weights, strict=True):
        subset = np.flatnonzero(weight > EXPANDED)
        if subset.size:
            offset = with_label_noise(cells.x, block.noise)
            parts = _fit_by_expansion(cells, block.features, shapes, spread, offset, centre)
            mode, square, logits, log_marginal = parts
            block.replace_components(
                subset, mode[subset], [square[k] for k in subset], logits[subset], log_marginal[subset]
            )
    for block, weight in zip(
        blocks, component_weights([*parametric_blocks, *blocks])[len(parametric_blocks) :], strict=True
    ):
        subset = np.flatnonzero(weight > REFINED)
        if subset.size:
            offset = np.broadcast_to(with_label_noise(cells.x, block.noise), (subset.size, cells.x.size))
            basis = block.features * sizes[subset][:, None]
            mode, logits, log_marginal = modes(cells, offset, basis, block.mode[subset])
            block.replace_components(
                subset, mode, _information(cells, block.features, logits), logits, log_marginal
            )
    return blocks, times


def component_weights(blocks: list[ComponentBlock]) -> list[Array]:
    """Return the posterior weights of the components of each block."""
    top = max(block.log.max() for block in blocks)
    raw = [np.exp(block.log - top) for block in blocks]
    total = sum(weights.sum() for weights in raw)
    return [weights / total for weights in raw]


def _mean_logits(blocks: list[ComponentBlock]) -> Array:
    """Return the posterior mean of the log-odds in each cell."""
    weights = component_weights(blocks)
    return np.sum([weight @ block.logits for weight, block in zip(weights, blocks, strict=True)], axis=0)


def _spectra(count: int) -> list[Array]:
    """Return the normalized spectra (as standard deviations) that `count` cosines can represent."""
    frequency = np.arange(1, count + 1)
    spectra = []
    for roughness, exponent in zip(LOG_ODDS.roughness, LOG_ODDS.spectrum_exponents, strict=True):
        # Too few cosines cannot represent a rough curve.
        if roughness <= max(count / 2, 4):
            power = (1 + (frequency / roughness) ** 2) ** -exponent
            spectra.append(np.sqrt(power / power.sum()))
    return spectra


def _prior_sds(shapes: Array, spread: Array) -> Array:
    """Return the prior standard deviations of all combinations: of the features, then of the cosines."""
    return np.hstack([np.repeat(shapes, len(spread), axis=0), np.tile(spread, (len(shapes), 1))])


def _fit_by_expansion(
    cells: LogOddsCells, phi: Array, shapes: Array, spread: Array, offset: Array, centre: Array
) -> tuple[Array, list[Array], Array, Array]:
    """Return mode, information, log-odds and log marginal likelihood of all components by one expansion.

    Every parametric shape is combined with every spectrum. The system of the cosines is solved once for each
    spectrum; each shape then adds a few features (Schur complement).
    """
    weight = cells.information(centre)
    square = (phi.T * weight) @ phi
    target = phi.T @ (weight * (centre - offset) + cells.successes - cells.trials * expit(centre))
    n_features = shapes.shape[1]
    cosine_precision = square[n_features:, n_features:] * (spread[:, :, None] * spread[:, None]) + np.eye(
        spread.shape[1]
    )
    right_side = np.column_stack([square[n_features:, :n_features], target[n_features:]])
    solved = np.linalg.solve(cosine_precision, spread[:, :, None] * right_side)
    # Schur complement of the cosines: (spectra, features, features + 1).
    explained = square[:n_features, n_features:] @ (spread[:, :, None] * solved)
    schur = np.column_stack([square[:n_features, :n_features], target[:n_features]]) - explained
    shape_precision = schur[:, :, :n_features] * (shapes[:, :, None] * shapes[:, None])[:, None] + np.eye(
        n_features
    )
    of_shape = np.linalg.solve(shape_precision, (schur[:, :, n_features] * shapes[:, None])[..., None])
    of_cosines = solved[:, :, n_features:] - solved[:, :, :n_features] @ (of_shape * shapes[:, None, :, None])
    mode = np.concatenate([of_shape, of_cosines], axis=2).reshape(-1, phi.shape[1])
    logits = offset + (mode * _prior_sds(shapes, spread)) @ phi.T
    log_det = (_half_log_det(shape_precision) + _half_log_det(cosine_precision)).ravel()
    log_marginal = cells.likelihood(logits) - 0.5 * (mode * mode).sum(axis=-1) - log_det
    return mode, [square] * len(mode), logits, log_marginal
