"""A single model of P(y = 1 | s) on the log-odds, read through joint draws: accuracy, coverage and width.

    python benchmarks/one_model.py                                   # families, 500 and 2,000 rows
    python benchmarks/one_model.py --sets pipelines --sizes 1000     # trained models
    python benchmarks/one_model.py --sets rare --sizes 10000 100000 --reps 20 --jobs 2
    python benchmarks/one_model.py --sets classes --sizes 500 3000   # class-wise calibration

The model is a candidate for the two models of the package: the linear one behind value and interval, and that
on the log-odds behind the curve and the calibrator. `docs/research/one-model.md` describes it and has the
results. Printed for each cell: the true error; mean, mean absolute error (MAE), coverage and width of this
model and of `calibrant.estimate` on the same samples; then geometric means of the ratios.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib import util
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import betaln, expit, logit

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, FAMILIES, FEW, LOCAL
from calibrant.posterior.log_odds import components as gaussian
from calibrant.posterior.log_odds.cells import LogOddsCells, log_odds, nearest, softplus
from calibrant.posterior.log_odds.components import ComponentBlock
from calibrant.score_data import Array, Residuals, Sample

# Joint draws of each kind of gap.
DRAWS = 400
# Prior: weight of no gap among parametric maps, of label noise, of smooth and of local gaps.
CALIBRATED, NOISE, SMOOTH, LOCAL_GAPS = 0.15, 0.15, 0.2, 0.3
SDS, NOISES = (0.3, 1.0), (0.005, 0.03, 0.1)
ROUGHNESS, EXPONENTS = (1.0, 4.0, 16.0, 2.0), (2.0, 2.0, 2.0, 1.0)
# A range is final, and the scores of a final range are right, with these probabilities.
FINAL, UNCHANGED = 0.5, 0.9
# Intraclass correlations of rows that share a score, and weight of their effects if all rows do.
CORRELATIONS, EFFECTS = np.array([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]), 0.8
# Interval: quantiles of each kind, least weights of a kind for both ends, widening and what adds to it.
TAILS, LEAST_WEIGHTS, WIDENING = (0.03, 0.97), (0.01, 0.03), (1.1, 0.2)
INSIDE = 1e-12


@dataclass(frozen=True)
class Kind:
    """A kind of gap: the log of prior times marginal likelihood, and joint draws of the log-odds at cells."""

    name: str
    log: float
    draw: Callable[[np.random.Generator, int], Array]


def kinds(cells: LogOddsCells) -> list[Kind]:
    """Return all kinds of gap without effects of repeated scores: none, parametric, smooth, local."""
    blocks, offsets = parametric(cells)
    smooths = smooth(cells, blocks, offsets) if cells.x.size > 2 else []
    none = [np.full(block.prior.shape, -np.inf) for block in blocks]
    some = [block.log.copy() for block in blocks]
    identity = ~blocks[0].sizes.any(axis=1)
    none[0][identity], some[0][identity] = blocks[0].log[identity], -np.inf
    base = float(cells.likelihood(cells.x)) - np.log1p(-LOCAL_GAPS)
    found = [mixture("none", blocks, none, base), mixture("parametric", blocks, some, base)]
    if smooths:
        found.append(mixture("smooth", smooths, [block.log for block in smooths], base))
    return [*found, local(cells)]


def parametric(cells: LogOddsCells) -> tuple[list[ComponentBlock], Array]:
    """Fit shift, slope and curvature of the log-odds, with label noise at no, one or both ends."""
    shapes = np.array([
        (0, 0, 0), *((sd, 0, 0) for sd in SDS), *((0, sd, 0) for sd in SDS),
        *((sd, sd, 0) for sd in SDS), *((sd, sd, sd) for sd in SDS),
    ], dtype=float)  # fmt: skip
    prior = np.log(np.append(CALIBRATED, np.full(len(shapes) - 1, (1 - CALIBRATED) / (len(shapes) - 1))))
    n = max(cells.n, 1.0)
    prior[(shapes[:, 1] > 0) & (np.count_nonzero(shapes, axis=1) == 1)] += min(100 / n, 1.0)
    ends = [(0.0, 0.0), *(pair for d in NOISES for pair in ((d, d), (d, 0.0), (0.0, d)))]
    shares = np.append(1 - NOISE, np.full(len(ends) - 1, NOISE / (len(ends) - 1)))
    offsets = np.stack([with_noise(cells.x, *end) for end in ends])
    features = gaussian.features(offsets)
    basis = (features[:, None] * shapes[:, None]).reshape(-1, cells.x.size, 3)
    parts = gaussian.modes(cells, np.repeat(offsets, len(shapes), axis=0), basis, np.zeros((len(basis), 3)))
    blocks = []
    for k, share in enumerate(shares):
        mode, logits, log = (part[k * len(shapes) : (k + 1) * len(shapes)] for part in parts)
        log_prior = prior + np.log(share * (1 - SMOOTH))
        if k == 0:
            log_prior = log_prior + np.where(shapes.any(axis=1), 0.0, 25 / n)
        square = gaussian._information(cells, features[k], logits)
        blocks.append(
            ComponentBlock(float(k > 0), None, features[k], shapes, log_prior, mode, square, logits, log)
        )
    return blocks, offsets


def with_noise(x: Array, low: float, high: float) -> Array:
    """Return the log-odds of low + (1 - low - high) p."""
    if low == high == 0:
        return x
    p, q = expit(x), expit(-x)
    return np.asarray(np.log(low + (1 - low - high) * p) - np.log(high + (1 - low - high) * q))


def smooth(cells: LogOddsCells, blocks: list[ComponentBlock], offsets: Array) -> list[ComponentBlock]:
    """Add cosines to parametric shapes, without label noise and with the likeliest."""
    likeliest = 1 + int(np.argmax([np.logaddexp.reduce(block.log) for block in blocks[1:]]))
    centre = gaussian._mean_logits(blocks)
    times = gaussian.time_variables(cells, centre)
    count = int(np.clip(2 ** np.round(np.log2(np.sqrt(cells.n))), 8, 64))
    count = min(count, max(cells.x.size - 1, 2))
    frequency, spectra = np.arange(1, count + 1), []
    for roughness, exponent in zip(ROUGHNESS, EXPONENTS, strict=True):
        if roughness <= max(count / 2, 4):
            power = (1 + (frequency / roughness) ** 2) ** -exponent
            spectra.append(np.sqrt(power / power.sum()))
    spread = np.array([sd * spectrum for sd in SDS for spectrum in spectra])
    shapes = blocks[0].sizes
    kept = ~shapes.any(axis=1) | ((shapes[:, 0] > 0) & (shapes[:, 1] > 0))
    shapes, weight = shapes[kept], np.exp(blocks[0].prior[kept])
    sizes = gaussian._prior_sds(shapes, spread)
    prior = np.log(np.repeat(weight / weight.sum(), len(spread)) * (SMOOTH / (len(spread) * len(times))))
    found, places = [], []
    for name, variable in times.items():
        cosines = variable.cosines(cells.x, count)
        for k, share in ((0, 1 - NOISE), (likeliest, NOISE)):
            phi = np.hstack([blocks[k].features, cosines])
            parts = gaussian._fit_by_expansion(cells, phi, shapes, spread, offsets[k], centre)
            found.append(ComponentBlock(float(k > 0), name, phi, sizes, prior + np.log(share), *parts))
            places.append(k)
    for refine in (False, True):
        # Expand again at the improved mean, then fit those with weight individually.
        weights = gaussian.component_weights([*blocks, *found])[len(blocks) :]
        if sum(float(each.sum()) for each in weights) < gaussian.REFINED:
            break
        centre = gaussian._mean_logits([*blocks, *found])
        for block, each, k in zip(found, weights, places, strict=True):
            subset = np.flatnonzero(each > (gaussian.REFINED if refine else gaussian.EXPANDED))
            if not subset.size:
                continue
            if refine:
                offset = np.broadcast_to(offsets[k], (subset.size, cells.x.size))
                basis = block.features * sizes[subset][:, None]
                mode, logits, log = gaussian.modes(cells, offset, basis, block.mode[subset])
                square = gaussian._information(cells, block.features, logits)
            else:
                parts = gaussian._fit_by_expansion(cells, block.features, shapes, spread, offsets[k], centre)
                mode, logits, log = (parts[i][subset] for i in (0, 2, 3))
                square = [parts[1][i] for i in subset]
            block.replace_components(subset, mode, square, logits, log)
    return found


def mixture(name: str, blocks: list[ComponentBlock], logs: list[Array], base: float) -> Kind:
    """Return the kind of gap of the components of some blocks, with the given log weights."""
    log = np.concatenate(logs)
    total = float(np.logaddexp.reduce(log))
    weight = np.exp(log - total)

    def draw(rng: np.random.Generator, size: int) -> Array:
        counts, parts, k = systematic(weight, size, rng), [], 0
        for block in blocks:
            for member in range(len(block.sizes)):
                if counts[k]:
                    root = block.cholesky_factors(np.array([member]))[0]
                    normal = rng.standard_normal((root.shape[0], counts[k]))
                    basis = block.features * block.sizes[member]
                    parts.append((block.logits[member][:, None] + basis @ np.linalg.solve(root.T, normal)).T)
                k += 1
        return np.concatenate(parts)

    return Kind(name, total - base, draw)


def systematic(weight: Array, size: int, rng: np.random.Generator) -> Array:
    """Return how many of `size` draws each component gets."""
    cumulative = np.cumsum(weight) / weight.sum()
    chosen = np.searchsorted(cumulative, (np.arange(size) + rng.random()) / size)
    return np.bincount(np.minimum(chosen, len(weight) - 1), minlength=len(weight))


def local(cells: LogOddsCells) -> Kind:
    """Average over dyadic partitions of the rows into ranges of unchanged scores and of constant frequency.

    The marginal likelihood of a constant frequency is beta-binomial (Jeffreys' prior), so all is closed.
    """
    x, count = cells.x, cells.x.size
    levels = 1 + int(np.log2(max(count, 2)))
    cumulative = np.cumsum(cells.trials)
    middle = np.clip((cumulative - cells.trials / 2) / cumulative[-1], 0.0, np.nextafter(1.0, 0.0))
    node = np.stack([(middle * 2**level).astype(np.intp) for level in range(levels)])
    first = 2 ** np.arange(levels) - 1
    flat = (node + first[:, None]).ravel()

    def sums(values: Array) -> Array:
        return np.bincount(flat, np.tile(values, levels), minlength=2**levels - 1)

    yes = sums(cells.successes) + 0.5
    no = np.maximum(sums(cells.trials) - yes + 1, 0.5)
    as_scored = sums(cells.successes * x - cells.trials * softplus(x))
    constant = betaln(yes, no) - betaln(0.5, 0.5) - as_scored + np.log(1 - UNCHANGED)
    stopped = np.where(sums(cells.trials) > 0, np.logaddexp(np.log(UNCHANGED), constant), 0.0)
    changed = np.exp(constant - np.logaddexp(np.log(UNCHANGED), constant))
    below, stop = stopped[first[-1] :], [np.ones(2 ** (levels - 1))]
    for level in range(levels - 2, -1, -1):
        here = stopped[first[level] : first[level + 1]] + np.log(FINAL)
        total = np.logaddexp(here, below.reshape(-1, 2).sum(axis=1) + np.log1p(-FINAL))
        stop.insert(0, np.exp(here - total))
        below = total

    def draw(rng: np.random.Generator, size: int) -> Array:
        logits = np.tile(x, (size, 1))
        alive = np.ones((size, 1), dtype=bool)
        for level in range(levels):
            ranges = slice(first[level], first[level] + 2**level)
            stops = alive & (rng.random((size, 2**level)) < stop[level])
            sample, place = np.nonzero(stops & (rng.random(stops.shape) < changed[ranges]))
            if sample.size:
                value = np.full((size, 2**level), np.nan)
                frequency = rng.beta(yes[ranges][place], no[ranges][place])
                value[sample, place] = logit(np.clip(frequency, INSIDE, 1 - INSIDE))
                at_cells = value[:, node[level]]
                logits = np.where(np.isnan(at_cells), logits, at_cells)
            if level < levels - 1:
                alive = np.repeat(alive & ~stops, 2, axis=1)
        return logits

    return Kind("local", float(below[0]) + np.log(LOCAL_GAPS), draw)


def normalised(logs: Any) -> Array:
    return np.exp(np.asarray(logs) - np.logaddexp.reduce(logs))


@dataclass(frozen=True)
class Posterior:
    """Scores, rows at each, and (weight, joint draws of the frequencies) of each kind of gap."""

    score: Array
    rows: Array
    kinds: list[tuple[float, Array]]

    @classmethod
    def of(cls, score: Array, outcome: Array, rng: np.random.Generator) -> Posterior:
        observed = Residuals.of(Sample(score, outcome))
        observed = observed[observed.mass > 0]
        cells = LogOddsCells.of(observed)
        plain = kinds(cells)
        repeated = (observed.mass > 1.5) & observed.single_score
        at_ends = repeated.sum() < 20 and repeated[1:-1].sum() < 3
        tied = 0.0 if at_ends else float(observed.mass[repeated].sum() / observed.n)
        if tied < 0.1:
            weights = normalised([kind.log for kind in plain])
            draws = [expit(kind.draw(rng, DRAWS)) for kind in plain]
            return cls(expit(cells.x), cells.trials, list(zip(weights, draws, strict=True)))
        found = with_effects(observed, repeated, plain, cells, EFFECTS * tied**2, rng)
        weights = normalised([log for log, _ in found])
        return cls(observed.score, observed.mass, [(w, q) for w, (_, q) in zip(weights, found, strict=True)])


def with_effects(
    observed: Residuals,
    repeated: Array,
    plain: list[Kind],
    cells: LogOddsCells,
    prior: float,
    rng: np.random.Generator,
) -> list[tuple[float, Array]]:
    """Return log weights and draws of all kinds, each without and with effects of repeated scores.

    Given the curve m and the intraclass correlation, the frequency at a score is Beta(phi m, phi (1 - m)).
    The curve is fitted to rows that are divided by their design effect. The evidence is the beta-binomial
    likelihood at the mean curve, times the Occam factor of that fit.
    """
    n, k = observed.mass, observed.mass * observed.frequency
    x = log_odds(observed.score, nearest(observed.score))
    phi = ((1 - CORRELATIONS) / CORRELATIONS)[:, None]

    def at_scores(of: LogOddsCells, logits: Array) -> Array:
        shifts = (
            logits
            if of.x.size == x.size
            else np.array([np.interp(x, of.x, each - of.x) + x for each in logits])
        )
        return np.clip(expit(shifts), INSIDE, 1 - INSIDE)

    def likelihood(m: Array, k: Array, n: Array) -> float:
        return float((k * np.log(m) + (n - k) * np.log1p(-m)).sum())

    def beta_binomial(m: Array) -> Array:
        mm, kk, nn = m[repeated], k[repeated], n[repeated]
        return (betaln(kk + phi * mm, nn - kk + phi * (1 - mm)) - betaln(phi * mm, phi * (1 - mm))).sum(
            axis=1
        )

    drawn = [at_scores(cells, kind.draw(rng, DRAWS)) for kind in plain]
    weights = normalised([kind.log for kind in plain])
    mean = sum(w * q.mean(axis=0) for w, q in zip(weights, drawn, strict=True))
    correlation = float(normalised(beta_binomial(mean)) @ CORRELATIONS)
    effect = np.where(repeated, 1 + correlation * np.maximum(n - 1, 0.0), 1.0)
    parts = {name: getattr(observed, name) / effect for name in ("mass", "residual", "spread")}
    fewer = LogOddsCells.of(replace(observed, **parts))
    scored = expit(x)
    found = [(kind.log + np.log1p(-prior), q) for kind, q in zip(plain, drawn, strict=True)]
    for kind in kinds(fewer):
        m = at_scores(fewer, kind.draw(rng, DRAWS))
        mean = np.clip(m.mean(axis=0), INSIDE, 1 - INSIDE)
        log = beta_binomial(mean)
        gained = likelihood(mean, k / effect, n / effect) - likelihood(scored, k / effect, n / effect)
        occam = min(kind.log - gained, 0.0)
        evidence = np.logaddexp.reduce(log) - np.log(len(log))
        evidence -= likelihood(scored[repeated], k[repeated], n[repeated])
        concentration = phi[rng.choice(len(phi), DRAWS, p=normalised(log))]
        q = rng.beta(concentration * m + k, concentration * (1 - m) + n - k)
        all_scores = n[repeated].sum() > 0.5 * n.sum()
        found.append((evidence + occam + np.log(prior), q if all_scores else np.where(repeated, q, m)))
    return found


def hull(found: list[tuple[float, Array]], value: float) -> tuple[float, float]:
    """Return the hull of quantiles of weighted draws, of all together and of each kind with enough weight.

    Draws without any gap, of whatever kind, are one hypothesis.
    """
    parts = [(w * (e > 1e-9).mean(), e[e > 1e-9]) for w, e in found]
    without = sum(w for w, _ in found) - sum(w for w, _ in parts)
    parts = [(w, e) for w, e in [*parts, (without, np.zeros(2))] if w > 1e-4]
    weights = np.concatenate([np.full(len(e), w / len(e)) for w, e in parts])
    errors = np.concatenate([e for _, e in parts])
    order = np.argsort(errors)
    low, high = np.interp(TAILS, np.cumsum(weights[order]) / weights.sum(), errors[order])
    low = min(low, *(np.quantile(e, TAILS[0]) for w, e in parts if w > LEAST_WEIGHTS[0]), value)
    high = max(high, *(np.quantile(e, TAILS[1]) for w, e in parts if w > LEAST_WEIGHTS[1]), value)
    return float(low), float(high)


def estimate(score: Array, outcome: Array, seed: int) -> tuple[float, float, float]:
    """Return value and interval, as functionals of the same draws."""
    rng = np.random.default_rng(seed)
    posterior = Posterior.of(score, outcome.astype(bool), rng)
    p, share = posterior.score, posterior.rows / posterior.rows.sum()
    # The scores are a sample too.
    shares = rng.gamma(posterior.rows, 1.0, (DRAWS, p.size))
    shares /= shares.sum(axis=1, keepdims=True)
    value, gap, found = 0.0, np.zeros(p.size), []
    for weight, q in posterior.kinds:
        value += weight * float((np.abs(q - p) @ share).mean())
        gap += weight * (q - p).mean(axis=0)
        found.append((weight, np.einsum("ij,ij->i", shares, np.abs(q - p))))
    low, high = hull(found, value)
    # Where all of the gap has one sign, its mean is known well.
    uncertain = 1 - float(share @ np.abs(gap)) / max(value, 1e-12)
    widening = WIDENING[0] + WIDENING[1] * min(max(uncertain, 0.0) / 0.05, 1.0)
    residual = outcome - score
    of_mean = 1.96 * max(0.0, 1 - 2 * uncertain) * residual.std() / np.sqrt(residual.size)
    low = value * (low / value) ** widening if low > 0 else 0.0
    high = max(value + widening * (high - value), abs(residual.mean()) + of_mean)
    return value, low, min(high, float(share @ np.maximum(p, 1 - p)))


# -- class-wise calibration ----------------------------------------------------------------------------------

LOG_PRIOR = {
    "none": np.log(CALIBRATED * (1 - NOISE) * (1 - SMOOTH) * (1 - LOCAL_GAPS)),
    "parametric": np.log((1 - CALIBRATED) * (1 - SMOOTH) * (1 - LOCAL_GAPS)),
    "smooth": np.log(SMOOTH * (1 - LOCAL_GAPS)),
    "local": np.log(LOCAL_GAPS),
}
CLASS_WIDENING = 1.3


def error_draws(score: Array, outcome: Array, rng: np.random.Generator) -> dict[str, tuple[float, Array]]:
    """Return log weight and draws of the error of each kind of gap of one problem."""
    observed = Residuals.of(Sample(score, outcome))
    cells = LogOddsCells.of(observed[observed.mass > 0])
    shares = rng.gamma(cells.trials, 1.0, (DRAWS, cells.x.size))
    shares /= shares.sum(axis=1, keepdims=True)
    p = expit(cells.x)
    return {
        kind.name: (kind.log, np.einsum("ij,ij->i", shares, np.abs(expit(kind.draw(rng, DRAWS)) - p)))
        for kind in kinds(cells)
    }


def estimate_classwise(score: Array, label: Array, seed: int) -> tuple[float, float, float]:
    """Return value and interval of the mean error over the classes.

    Three hypotheses about the classes have the prior probabilities 1/2, 1/4 and 1/4: one curve for all
    classes (their rows are one problem), the same kind of gap in all classes with a curve for each, and
    unrelated classes.
    """
    rng, classes = np.random.default_rng(seed), range(score.shape[1])
    right = label[:, None] == np.arange(score.shape[1])
    common = error_draws(score.ravel(), right.ravel(), rng)
    by_class = [error_draws(score[:, c], right[:, c], rng) for c in classes]
    names = [name for name in LOG_PRIOR if all(name in found for found in by_class)]
    logs = np.array([[found[name][0] for name in names] for found in by_class])
    prior = np.array([LOG_PRIOR[name] for name in names])
    hypotheses = [(log + np.log(0.5), draws) for log, draws in common.values()]
    for k, name in enumerate(names):
        draws = np.mean([found[name][1] for found in by_class], axis=0)
        hypotheses.append((prior[k] + (logs[:, k] - prior[k]).sum() + np.log(0.25), draws))
    unrelated = np.zeros(DRAWS)
    for found, log in zip(by_class, logs, strict=True):
        chosen = rng.choice(len(names), DRAWS, p=normalised(log))
        unrelated += np.stack([found[name][1] for name in names])[chosen, np.arange(DRAWS)] / len(by_class)
    hypotheses.append((np.logaddexp.reduce(logs, axis=1).sum() + np.log(0.25), unrelated))
    weights = normalised([log for log, _ in hypotheses])
    value = sum(w * float(draws.mean()) for w, (_, draws) in zip(weights, hypotheses, strict=True))
    low, high = hull([(w, draws) for w, (_, draws) in zip(weights, hypotheses, strict=True)], value)
    low = value * (low / value) ** CLASS_WIDENING if low > 0 else 0.0
    return value, low, value + CLASS_WIDENING * (high - value)


# -- study ---------------------------------------------------------------------------------------------------

RARE = {
    (rate, shift): f"rare {rate:g} {shift:+g}" for rate in (0.01, 0.004, 0.001) for shift in (0.0, -0.4, 0.4)
}


# Number of classes, and what has changed: all odds by a power, or those of the first class by a factor of 2.
CLASS_CASES = {
    f"{n_classes} classes, {what}": (n_classes, power)
    for n_classes in (3, 10)
    for what, power in (("calibrated", 1.0), ("power .9", 0.9), ("power .6", 0.6), ("one class", None))
}


def draw_classes(case: str, rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """Return scores, labels and probabilities."""
    n_classes, power = CLASS_CASES[case]
    score = np.exp(rng.normal(0, 1.5, (n, n_classes)))
    score /= score.sum(axis=1, keepdims=True)
    chance = score**power if power else score * np.append(2.0, np.ones(n_classes - 1))
    chance /= chance.sum(axis=1, keepdims=True)
    label = (chance.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return score, label, chance


def class_truth(case: str) -> float:
    """Return the mean over classes of |E(chance | score) - score|, from bins of 200 of 60,000 rows."""
    if CLASS_CASES[case][1] == 1.0:
        return 0.0
    score, _, chance = draw_classes(case, np.random.default_rng(9), 60_000)
    order = np.argsort(score, axis=0)
    gap = np.take_along_axis(chance - score, order, axis=0).reshape(300, 200, -1).mean(axis=1)
    return float(np.abs(gap).mean())


def pipelines() -> Any:
    spec = util.spec_from_file_location("pipelines", Path(__file__).with_name("pipelines.py"))
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def cells_of(name: str) -> Iterator[tuple[str, Any, float]]:
    """Yield the cells of a set: its name, what it is, and the size of the gap."""
    if name == "families":
        for family in (*EXACT, *LOCAL, *FEW, "prior-43", "prior-5"):
            yield from (("families", family, factor) for factor in (1.0, 0.3, 0.0))
    elif name == "classes":
        yield from (("classes", case, 1.0) for case in CLASS_CASES)
    elif name == "pipelines":
        yield from (("pipelines", each, 1.0) for each in pipelines().PIPELINES)
    else:
        yield from (("rare", each, 1.0) for each in RARE)


def population(kind: str, name: Any, factor: float, cache: str | None) -> tuple[Callable[..., Any], float]:
    """Return a function that draws rows, and the true error."""
    if kind == "families":
        family = FAMILIES[name].shrunk(factor)
        return family.draw, family.truth
    if kind == "classes":
        return lambda rng, n: draw_classes(name, rng, n)[:2], class_truth(name)
    if kind == "pipelines":
        source = pipelines().population(name, cache, 0.2)
        return source.draw, source.truth
    rate, shift = name

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        score = np.clip(rng.beta(0.5, 0.5 * (1 - rate) / rate, n), 1e-12, 1 - 1e-12)
        return score, rng.random(n) < expit(logit(score) + shift)

    score, _ = draw(np.random.default_rng(5), 4_000_000)
    return draw, float(np.abs(expit(logit(score) + shift) - score).mean()) if shift else 0.0


def one_cell(task: tuple[tuple[str, Any, float], int, int, str | None]) -> dict[str, Any]:
    """Return the figures of both on the same samples."""
    (kind, name, factor), n, repetitions, cache = task
    warnings.simplefilter("ignore")
    draw, truth = population(kind, name, factor, cache)
    rng, found, times = rng_of("one-model", kind, str(name), factor, n), [], np.zeros(2)
    for seed in range(repetitions):
        score, outcome = draw(rng, n)
        started = time.perf_counter()
        classwise = score.ndim > 1
        ours = (estimate_classwise if classwise else estimate)(
            score.astype(float), outcome.astype(float), seed
        )
        middle = time.perf_counter()
        now = calibrant.estimate(
            outcome.astype(int), score, notion="classwise" if classwise else "binary",
            labels=range(score.shape[1] if classwise else 2), rng=seed, n_resamples=99,
        )  # fmt: skip
        times += middle - started, time.perf_counter() - middle
        found.append([ours, (now.value, now.low, now.high)])
    value, low, high = np.moveaxis(np.array(found), -1, 0)
    label = RARE.get(name, name) if kind == "rare" else name
    return {
        "name": f"{label} x {factor:g}" if kind == "families" else label,
        "n": n,
        "truth": truth,
        "value": value.mean(axis=0),
        "mae": np.abs(value - truth).mean(axis=0),
        "covered": ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean(axis=0),
        "width": (high - low).mean(axis=0),
        "ms": 1e3 * times / repetitions,
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the means over the cells of one size."""
    mae, width = (np.array([row[key] for row in rows]) for key in ("mae", "width"))
    covered, truth = np.array([row["covered"] for row in rows]), np.array([row["truth"] for row in rows])
    ratio = np.maximum(mae[:, 0], 1e-6) / np.maximum(mae[:, 1], 1e-6)
    widths = width[:, 0] / np.maximum(width[:, 1], 1e-6)
    worst = int(np.argmax(ratio))

    def mean(values: Array, chosen: Array) -> str:
        return f"{np.exp(np.log(values[chosen]).mean()):.2f}" if chosen.any() else "-"

    return (
        f"n = {rows[0]['n']}, {len(rows)} cells: coverage {covered[:, 0].mean():.3f} "
        f"(now {covered[:, 1].mean():.3f}), below .925 {np.sum(covered[:, 0] < 0.925)} "
        f"(now {np.sum(covered[:, 1] < 0.925)}); over now: MAE {mean(ratio, ratio > 0)}, "
        f"worst {ratio[worst]:.2f} ({rows[worst]['name']}); width calibrated {mean(widths, truth == 0)}, "
        f"miscalibrated {mean(widths, truth > 0)}; "
        f"time {np.mean([row['ms'] for row in rows], axis=0).round()} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", nargs="+", choices=("families", "pipelines", "rare", "classes"), default=["families"]
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 2000])
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="cells whose name contains one of these")
    parser.add_argument("--cache", help="folder of the populations of pipelines")
    asked = parser.parse_args()
    chosen = [cell for name in asked.sets for cell in cells_of(name)]
    if asked.only:
        chosen = [cell for cell in chosen if any(part in str(cell[1]) for part in asked.only)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        for n in asked.sizes:
            tasks = [(cell, n, asked.reps, asked.cache) for cell in chosen]
            rows = []
            for row in pool.map(one_cell, tasks):
                rows.append(row)
                figures = "  |  ".join(
                    f"{row['value'][k]:.4f} {row['mae'][k]:.4f} {row['covered'][k]:.2f} {row['width'][k]:.4f}"
                    for k in (0, 1)
                )
                print(f"{row['name']:24} {n:6} {row['truth']:.4f}  |  {figures}", flush=True)
            print(summary(rows), flush=True)


if __name__ == "__main__":
    main()
