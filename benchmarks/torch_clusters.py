"""Measure the test and the interval of `calibrant.torch.CalibrationError` on dependent targets.

    python benchmarks/torch_clusters.py [--repetitions 200] [--cases masks questions]

Every model is calibrated, and targets of an image depend on each other:

- "masks": 60 binary masks of 24 x 24 pixels, with a normal effect of each image on the log-odds; "weighted"
  with importance weights, "rare" with rare outcomes, and "many" with 800 masks of 8 x 8 pixels;
- "classes": 60 masks of 16 x 16 pixels and four classes, where half of the pixels of an image share a random
  number;
- "questions": 150 questions with ten answers each, one score a question, and an effect of each question.

The table has the share of data sets with p <= .05, which should be .05, and the share of 95 % intervals that
contain the true error of 0, without clusters and with them. "rows" gives the same rows to
`calibrant.estimate(cluster=)`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import calibrant
from calibrant.torch import CalibrationError

CASES = ("masks", "classes", "questions", "rare", "weighted", "many")


def masks(rng: np.random.Generator, shape: tuple[int, ...], centre: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw outcomes of images, and scores: their probabilities averaged over the effects of images."""
    images, effect = (shape[0], *(1,) * (len(shape) - 1)), 0.7
    logit = centre + 0.75 * rng.standard_normal(images) + 1.5 * rng.standard_normal(shape)
    nodes, mass = np.polynomial.hermite_e.hermegauss(30)
    grid = np.linspace(-14, 14, 2001)
    mean = (mass / mass.sum() / (1 + np.exp(-(grid[:, None] + effect * nodes)))).sum(axis=1)
    outcome_logit = logit + effect * rng.standard_normal(images)
    return np.interp(logit, grid, mean), rng.random(shape) < 1 / (1 + np.exp(-outcome_logit))


def data(case: str, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores, targets and cluster ids."""
    if case == "questions":
        p = rng.beta(2, 2, (150, 1))
        chance = p + 0.3 * p * (1 - p) * rng.choice([-1, 1], (150, 1))
        y = rng.random((150, 10)) < chance
        return torch.tensor(np.repeat(p, 10, axis=1)), torch.tensor(y), torch.arange(150)
    if case == "classes":
        logit = 1.5 * rng.standard_normal((60, 4, 16, 16))
        p = torch.tensor(logit).softmax(1)
        shared = rng.random((60, 1, 1))
        uniform = np.where(rng.random((60, 16, 16)) < 0.5, shared, rng.random((60, 16, 16)))
        y = (torch.tensor(uniform)[:, None] > p.cumsum(1)).sum(1).clamp(max=3)
        return p, y, torch.arange(60)
    images, side = (800, 8) if case == "many" else (60, 24)
    p, y = masks(rng, (images, side, side), -4.0 if case == "rare" else 0.0)
    return torch.tensor(p), torch.tensor(y), torch.arange(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--cases", nargs="+", default=CASES, choices=CASES)
    parser.add_argument("--rows", action="store_true", help="also calibrant.estimate of the rows")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("case | clusters | p <= .05 | covers 0 | mean value | mean high | seconds")
    for case in options.cases:
        found: dict[str, list[tuple[float, ...]]] = {}
        for repetition in range(options.repetitions):
            rng = np.random.default_rng([repetition, CASES.index(case)])
            p, y, image = data(case, rng)
            weight = torch.tensor(rng.random(y.shape) + 0.5) if case == "weighted" else None
            for kind in ("no", "yes", *(["rows"] * options.rows)):
                start = time.process_time()
                if kind == "rows":
                    rows = p.flatten() if p.shape == y.shape else p.movedim(1, -1).reshape(-1, p.shape[1])
                    ids = image.reshape(-1, *(1,) * (y.ndim - 1)).expand(y.shape).reshape(-1)
                    w = None if weight is None else weight.reshape(-1).numpy()
                    given = (y.reshape(-1).long().numpy(), rows.numpy())
                    result = calibrant.estimate(*given, cluster=ids.numpy(), sample_weight=w, rng=repetition)
                else:
                    metric = CalibrationError(from_logits=False, weighted=weight is not None)
                    metric.update(p, y, weight, cluster=image if kind == "yes" else None)
                    result = metric.estimate(rng=repetition)
                numbers = result.p_value <= 0.05, result.low < 1e-3, result.value, result.high
                found.setdefault(kind, []).append((*numbers, time.process_time() - start))
        for kind, rows_of_kind in found.items():
            means = np.mean(rows_of_kind, axis=0)
            print(f"{case} | {kind} | " + " | ".join(f"{mean:.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
