"""Members of the average over maps: log-odds linear in a few features, or smooth, and how well each fits.

A member says logit q = offset + basis u, with u standard normal: a feature times its size in the prior is a
column of the basis. Laplace's approximation gives the posterior of u and the evidence of the member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.posterior.log_odds.cells import OddsCells, expit, step_weights
from calibrant.score_data import Array

# Sizes in the prior (shift, slope, curvature), its weight, and whether a smooth part may join.
SHAPES = (
    (0.0, 0.0, 0.0, 0.15, True),  # identity
    (0.3, 0.0, 0.0, 0.05, False),  # shift
    (1.0, 0.0, 0.0, 0.05, False),
    (0.0, 0.3, 0.0, 0.10, False),  # temperature
    (0.0, 1.5, 0.0, 0.10, False),
    (0.2, 0.2, 0.0, 0.10, False),  # affine
    (0.6, 0.6, 0.0, 0.12, True),
    (2.0, 2.0, 0.0, 0.13, True),
    (0.5, 0.5, 0.4, 0.10, False),  # beta
    (1.5, 1.5, 1.0, 0.10, True),
)
# With few rows the scores as they are weigh more, by this over the number of rows, in nats.
HELD = 25.0
# So does a temperature alone, by this over the number of rows, and by at most one nat. The constant was
# chosen on the development models of `benchmarks/maps.py --models`.
TEMPERED = 100.0
# Labels that are wrong, or scores that are too sure: q is between d and 1 - d before anything else is done.
NOISE = {0.0: 0.7, 0.005: 0.1, 0.03: 0.1, 0.1: 0.1}
# The smooth part: its sizes, and how far its spectrum reaches and how steeply it falls.
SIZES = (0.15, 0.5, 1.5)
SPECTRA = ((1.0, 2.0), (4.0, 2.0), (16.0, 2.0), (2.0, 1.0))
SMOOTH = 0.2
LEAST_WAVES, MOST_WAVES = 8, 64
# Members that weigh less than these are not fitted by themselves, are left out, are not even looked at again.
REFINED, KEPT, LOOKED_AT = 0.01, 1e-3, 1e-12
# Steps of the search for a mode: so many that always climb, then Newton's, until nothing is gained.
SURE, STEPS, HALVINGS, ENOUGH = 2, 25, 12, 1e-3


@dataclass(frozen=True, eq=False)
class Block:
    """Members that share features and an offset.

    Attributes
    ----------
    noise : float
    clock : str or None
        Of the smooth part; None where there is none.
    features : array (cells, features)
    sizes : array (members, features)
    prior : array (members,)
        Log weights.
    mode : array (members, features)
    square : list of arrays (features, features)
        Information of the features, where the likelihood was expanded for each member.
    odds : array (members, cells)
        At the mode.
    evidence : array (members,)
    """

    noise: float
    clock: str | None
    features: Array
    sizes: Array
    prior: Array
    mode: Array
    square: list[Array]
    odds: Array
    evidence: Array

    @property
    def log(self) -> Array:
        """Log of prior times evidence."""
        return self.prior + self.evidence

    def roots(self, some: Array) -> Array:
        """Return the Cholesky roots of the precision of u, of some members."""
        size = self.sizes[some]
        square = np.stack([self.square[k] for k in some])
        return np.linalg.cholesky(square * (size[:, :, None] * size[:, None]) + np.eye(size.shape[1]))

    def put(self, some: Array, mode: Array, square: list[Array], odds: Array, evidence: Array) -> None:
        """Replace mode, information, log-odds and evidence of some members."""
        self.mode[some], self.odds[some], self.evidence[some] = mode, odds, evidence
        for k, each in zip(some, square, strict=True):
            self.square[k] = each


def features(x: Array) -> Array:
    """Return intercept, slope and the curvature ln 4p(1 - p), which is about -|x|.

    >>> features(np.array([0.0])).round(3) + 0.0
    array([[1., 0., 0.]])
    """
    far = np.abs(x)
    return np.stack([np.ones_like(x), x, np.log(4.0) - far - 2 * np.log1p(np.exp(-far))], axis=-1)


def less_sure(x: Array, noise: float) -> Array:
    """Return the log-odds of d + (1 - 2d) p, which are bounded where the noise d is not 0.

    >>> less_sure(np.array([-50.0, 0.0]), 0.1).round(3)
    array([-2.197,  0.   ])
    """
    if noise == 0:
        return x
    p = expit(x)
    return np.asarray(np.log(noise + (1 - 2 * noise) * p) - np.log(noise + (1 - 2 * noise) * (1 - p)))


def parametric(cells: OddsCells) -> list[Block]:
    """Fit the members without a smooth part: one block for each noise."""
    shapes = np.array(SHAPES)
    sizes, weight = shapes[:, :3], shapes[:, 3] / shapes[:, 3].sum()
    offset = np.stack([less_sure(cells.x, noise) for noise in NOISE])
    phi = features(offset)
    members = len(sizes)
    basis = (phi[:, None] * sizes[:, None]).reshape(-1, cells.x.size, 3)
    start = np.zeros((len(basis), 3))
    mode, odds, evidence = modes(cells, np.repeat(offset, members, axis=0), basis, start)
    prior = np.log(weight * (1 - SMOOTH))
    held = np.where(sizes.any(axis=1), 0.0, HELD / max(cells.n, 1.0))
    only_slope = (sizes[:, 1] > 0) & (np.count_nonzero(sizes, axis=1) == 1)
    prior = prior + np.where(only_slope, min(TEMPERED / max(cells.n, 1.0), 1.0), 0.0)
    blocks = []
    for k, (noise, share) in enumerate(NOISE.items()):
        own = slice(k * members, (k + 1) * members)
        parts = mode[own], _information(cells, phi[k], odds[own]), odds[own], evidence[own]
        blocks.append(
            Block(noise, None, phi[k], sizes, prior + np.log(share) + (held if noise == 0 else 0.0), *parts)
        )
    return blocks


def modes(cells: OddsCells, offset: Array, basis: Array, start: Array) -> tuple[Array, Array, Array]:
    """Return mode, log-odds at the mode and log evidence of each member.

    Two steps that always climb (of Polya and Gamma's bound), then Newton's, shortened where they fall.

    Parameters
    ----------
    offset : array (members, cells)
    basis : array (members, cells, features)
    start : array (members, features)
    """
    trials, successes = cells.trials, cells.successes
    eye = np.eye(basis.shape[-1])
    turned = np.swapaxes(basis, -1, -2)

    def reached(u: Array, members: Array) -> tuple[Array, Array]:
        odds = offset[members] + np.matmul(basis[members], u[:, :, None])[:, :, 0]
        return odds, cells.likelihood(odds) - 0.5 * (u * u).sum(axis=-1)

    u = start.copy()
    odds, best = reached(u, np.arange(len(u)))
    left = np.arange(len(u))
    for step in range(STEPS):
        here, at = basis[left], odds[left]
        curvature, slope = step_weights(trials, successes, at, sure=step < SURE)
        turn = turned[left]
        precision = np.matmul(turn * curvature[:, None], here) + eye
        gradient = np.matmul(turn, slope[:, :, None])[:, :, 0] - u[left]
        way = np.linalg.solve(precision, gradient[:, :, None])[:, :, 0]
        length = np.ones(len(left))
        trying = np.arange(len(left))
        gain = np.zeros(len(left))
        for _ in range(HALVINGS):
            member = left[trying]
            new = u[member] + length[trying, None] * way[trying]
            f, value = reached(new, member)
            better = value >= best[member] - 1e-9
            won = member[better]
            gain[trying[better]] = value[better] - best[won]
            u[won], odds[won], best[won] = new[better], f[better], value[better]
            trying = trying[~better]
            if not trying.size:
                break
            length[trying] *= 0.4
        if step >= SURE:
            left = left[gain >= ENOUGH]
            if not left.size:
                break
    precision = np.stack(_information(cells, basis, odds)) + eye
    return u, odds, best - _half_log_det(precision)


def _information(cells: OddsCells, phi: Array, odds: Array) -> list[Array]:
    """Return the information of features (cells, features), or of each member's, at the odds of each."""
    q = expit(odds)
    weight = cells.trials * q * (1 - q)
    return list(np.matmul(np.swapaxes(phi, -1, -2) * weight[:, None], phi))


def _half_log_det(precision: Array) -> Array:
    """Return half the log determinant of each of some precisions."""
    root = np.linalg.cholesky(precision)
    return np.asarray(np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Clock:
    """Where on the way from 0 to 1 log-odds are: by the rank of the rows, or evenly in the log-odds."""

    x: Array
    time: Array

    def waves(self, x: Array, count: int) -> Array:
        """Return cosines of the time."""
        time = np.interp(x, self.x, self.time)
        return np.asarray(np.sqrt(2.0) * np.cos(np.pi * time[:, None] * np.arange(1, count + 1)))


def clocks(cells: OddsCells, odds: Array) -> dict[str, Clock]:
    """Return the clocks of the smooth part; log-odds q bound the one that is even in them."""
    running = np.cumsum(cells.trials)
    rank = Clock(cells.x, (running - cells.trials / 2) / running[-1])
    q = expit(odds)
    information = cells.trials * q * (1 - q)
    # The middle of each cell: the same from either end.
    upto = np.cumsum(information) - information / 2
    low, high = np.interp(np.array([0.005, 0.995]) * information.sum(), upto, cells.x)
    even = Clock(cells.x, np.clip((cells.x - low) / max(high - low, 1e-9), 0, 1))
    return {"rank": rank, "odds": even}


def smooth(cells: OddsCells, plain: list[Block]) -> tuple[list[Block], dict[str, Clock]]:
    """Fit the members with a smooth part, on the scores as they are and on the likeliest noise.

    The members of a block share one expansion of the likelihood, at the mean of all members; those that
    turn out to weigh something are fitted each by itself.
    """
    logs = [np.logaddexp.reduce(block.log) for block in plain]
    likeliest = 1 + int(np.argmax(logs[1:]))
    shares = {0: NOISE[0.0], likeliest: 1 - NOISE[0.0]}
    centre = _mean_odds(plain)
    times = clocks(cells, centre)
    count = int(np.clip(2 ** np.round(np.log2(np.sqrt(cells.n))), LEAST_WAVES, MOST_WAVES))
    count = min(count, max(cells.x.size - 1, 2))
    shapes = np.array([shape for shape in SHAPES if shape[4]])
    spectra = _spectra(count)
    spread = np.array([size * spectrum for size in SIZES for spectrum in spectra])
    shapes, joined = shapes[:, :3], shapes[:, 3] / shapes[:, 3].sum()
    sizes = _each_with_each(shapes, spread)
    prior = np.log(np.repeat(joined, len(spread)) * (SMOOTH / (len(spread) * len(times))))
    blocks = []
    for name, clock in times.items():
        waves = clock.waves(cells.x, count)
        for k, share in shares.items():
            offset = less_sure(cells.x, plain[k].noise)
            phi = np.hstack([plain[k].features, waves])
            parts = _expanded(cells, phi, shapes, spread, offset, centre)
            blocks.append(Block(plain[k].noise, name, phi, sizes, prior + np.log(share), *parts))
    weights = weighed([*plain, *blocks])[len(plain) :]
    if sum(float(weight.sum()) for weight in weights) < REFINED:
        return blocks, times
    # Once more around the better mean, for those that count, and then each by itself.
    centre = _mean_odds([*plain, *blocks])
    for block, weight in zip(blocks, weights, strict=True):
        some = np.flatnonzero(weight > LOOKED_AT)
        if some.size:
            offset = less_sure(cells.x, block.noise)
            parts = _expanded(cells, block.features, shapes, spread, offset, centre)
            mode, square, odds, evidence = parts
            block.put(some, mode[some], [square[k] for k in some], odds[some], evidence[some])
    for block, weight in zip(blocks, weighed([*plain, *blocks])[len(plain) :], strict=True):
        some = np.flatnonzero(weight > REFINED)
        if some.size:
            offset = np.broadcast_to(less_sure(cells.x, block.noise), (some.size, cells.x.size))
            basis = block.features * sizes[some][:, None]
            mode, odds, evidence = modes(cells, offset, basis, block.mode[some])
            block.put(some, mode, _information(cells, block.features, odds), odds, evidence)
    return blocks, times


def weighed(blocks: list[Block]) -> list[Array]:
    """Return the posterior weights of the members of each block."""
    top = max(block.log.max() for block in blocks)
    raw = [np.exp(block.log - top) for block in blocks]
    total = sum(each.sum() for each in raw)
    return [each / total for each in raw]


def _mean_odds(blocks: list[Block]) -> Array:
    weights = weighed(blocks)
    return np.sum([weight @ block.odds for weight, block in zip(weights, blocks, strict=True)], axis=0)


def _spectra(count: int) -> list[Array]:
    """Return the spectra, of unit size, that so many waves can show."""
    wave = np.arange(1, count + 1)
    spectra = []
    for reach, steep in SPECTRA:
        if reach <= max(count / 2, 4):
            power = (1 + (wave / reach) ** 2) ** -steep
            spectra.append(np.sqrt(power / power.sum()))
    return spectra


def _each_with_each(shapes: Array, spread: Array) -> Array:
    """Return the sizes of all members: of their shape and, behind them, of their waves."""
    return np.hstack([np.repeat(shapes, len(spread), axis=0), np.tile(spread, (len(shapes), 1))])


def _expanded(
    cells: OddsCells, phi: Array, shapes: Array, spread: Array, offset: Array, centre: Array
) -> tuple[Array, list[Array], Array, Array]:
    """Return mode, information, log-odds and evidence of all members by one expansion of the likelihood.

    Every shape goes with every spread of the waves. Waves are solved for once for each spread; what a
    shape adds are a few features more.
    """
    q = expit(centre)
    weight = cells.trials * q * (1 - q)
    square = (phi.T * weight) @ phi
    target = phi.T @ (weight * (centre - offset) + cells.successes - cells.trials * q)
    few = shapes.shape[1]
    waves = square[few:, few:] * (spread[:, :, None] * spread[:, None]) + np.eye(spread.shape[1])
    right = np.column_stack([square[few:, :few], target[few:]])
    solved = np.linalg.solve(waves, spread[:, :, None] * right)
    # What is left to the shapes: (spreads, features, features + 1).
    taken = square[:few, few:] @ (spread[:, :, None] * solved)
    rest = np.column_stack([square[:few, :few], target[:few]]) - taken
    own = rest[:, :, :few] * (shapes[:, :, None] * shapes[:, None])[:, None] + np.eye(few)
    of_shape = np.linalg.solve(own, (rest[:, :, few] * shapes[:, None])[..., None])
    of_waves = solved[:, :, few:] - solved[:, :, :few] @ (of_shape * shapes[:, None, :, None])
    mode = np.concatenate([of_shape, of_waves], axis=2).reshape(-1, phi.shape[1])
    odds = offset + (mode * _each_with_each(shapes, spread)) @ phi.T
    log_det = (_half_log_det(own) + _half_log_det(waves)).ravel()
    evidence = cells.likelihood(odds) - 0.5 * (mode * mode).sum(axis=-1) - log_det
    return mode, [square] * len(mode), odds, evidence
