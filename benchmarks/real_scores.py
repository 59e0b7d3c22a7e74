"""Real scores with a known truth: outcomes are drawn along a smooth curve fitted to the true ones.

Scores are read from a folder of NPZ files, one for each model: `prob` or `logits` (a column for each class,
or the probability of 1) and `y` or `labels`; parts named `cal_...` and `test_...` are put together. Public
scores that fit come with the repositories markus93/NN_calibration, numeristical/splinecalib,
luferrer/psr-calibration and EFS-OpenSource/calibration-framework.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibrant.experiment.families import Family, Map, one_of
from calibrant.score_data import Array

PARTS = ("", "cal_", "test_")
SCORES, LABELS = ("prob", "logits", "logit"), ("y", "labels")
# Scores of 0 and 1 count as this far from them.
LEAST = 1e-6


def real_families(folder: str | Path) -> dict[str, Family]:
    """Return two families for each file in a folder: a model as it is, and recalibrated.

    A sample of a family takes rows of the model at random, with outcomes along a beta map that was fitted to
    all of them. The recalibrated model has its log odds stretched and shifted to fit; what is left is the gap
    that this leaves.

    Parameters
    ----------
    folder : path
        Looked through with its own folders.
    """
    files = sorted(Path(folder).rglob("*.npz"))
    if not files:
        raise ValueError(f"{folder} holds no NPZ file")
    found: dict[str, Family] = {}
    for file in files:
        name, (score, outcome) = file.stem.removesuffix("_logits"), read(file)
        for family in (along_fit(name, score, outcome), recalibrated(name, score, outcome)):
            found[family.name] = family
    return found


def read(file: Path) -> tuple[Array, Array]:
    """Return scores and outcomes of a file: of the class 1, or of the class with the largest score."""
    scores, labels = [], []
    with np.load(file) as held:
        for part in PARTS:
            names = [[part + name for name in of if part + name in held] for of in (SCORES, LABELS)]
            if all(names):
                score = held[names[0][0]].astype(float)
                if "logit" in names[0][0]:
                    score = np.exp(score - score.max(axis=1, keepdims=True))
                    score /= score.sum(axis=1, keepdims=True)
                scores.append(score)
                labels.append(held[names[1][0]])
    if not scores:
        raise ValueError(f"{file.name} needs scores ({', '.join(SCORES)}) and labels ({', '.join(LABELS)})")
    score, label = np.concatenate(scores), np.concatenate(labels)
    if score.ndim == 1:
        return score, label == 1
    return score.max(axis=1), score.argmax(axis=1) == label


def along_fit(name: str, score: Array, outcome: Array) -> Family:
    """Return the family of these scores with outcomes along a beta map fitted to the true ones."""
    curve = _fitted(_both_ends, score, outcome)
    return Family(name, one_of(np.sort(score)), curve, float(np.abs(curve(score) - score).mean()))


def recalibrated(name: str, score: Array, outcome: Array) -> Family:
    """Return the same after the log odds were stretched and shifted to fit."""
    return along_fit(f"{name}-recalibrated", _fitted(_log_odds, score, outcome)(score), outcome)


def _both_ends(score: Array) -> Array:
    clipped = np.clip(score, LEAST, 1 - LEAST)
    return np.stack([np.ones_like(clipped), np.log(clipped), -np.log1p(-clipped)])


def _log_odds(score: Array) -> Array:
    one, low, high = _both_ends(score)
    return np.stack([one, low + high])


def _fitted(features: Map, score: Array, outcome: Array) -> Map:
    """Fit a logistic regression on features of the score, from the map that leaves scores as they are."""
    from scipy.optimize import minimize
    from scipy.special import expit

    seen, hit = features(score), outcome.astype(float)

    def loss(slopes: Array) -> tuple[float, Array]:
        logit = slopes @ seen
        value = np.logaddexp(0, logit) - hit * logit
        return float(value.mean()), seen @ (expit(logit) - hit) / hit.size

    start = np.ones(len(seen))
    start[0] = 0.0
    slopes = minimize(loss, start, jac=True, method="BFGS").x
    return lambda p: np.asarray(expit(np.tensordot(slopes, features(p), axes=1)))
