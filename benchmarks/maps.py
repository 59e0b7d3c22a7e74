"""Comparison of calibration methods, with known and with unknown true probabilities.

    python benchmarks/maps.py [--share 1] [--parts one interval many speed]
    python benchmarks/maps.py --real DIR     # scores of real models, and scikit-learn's own data sets
    python benchmarks/maps.py --paper        # the paper's 540 models, with a calibration split each
    python benchmarks/maps.py --models development     # scikit-learn models on data of known probabilities
    python benchmarks/maps.py --models confirmation    # other data and other models: run it once per change

Families know the probability of the outcome at every score, so that a map's excess is exact up to the draw of
the rows that it learns from: the mean over scores of the relative entropy from the true probability (log
loss), or of the squared difference (Brier score). Predictions are kept 1e-9 away from 0 and 1. "Hindsight" is
the best other map of each family and size, which nobody knows beforehand. `--share` is the share of the
repetitions; below a half, the largest fits are not timed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import betaincinv, expit, ndtri, softmax, xlogy

from calibrant import Calibrator
from calibrant.experiment import PRESETS, models, procedure
from calibrant.experiment.distributions import rng_of
from calibrant.maps.calibrator import BENDING
from calibrant.maps.methods import METHODS
from calibrant.score_data import Array

ONE = [name for name, method in METHODS.items() if method.fit_binary]
MANY = ["auto", "identity", "temperature", "vector", "matrix", "isotonic-safe", "beta"]
REPETITIONS = {50: 200, 200: 100, 1000: 40, 5000: 16, 50_000: 4}
PARTS = ("one", "interval", "monotone", "many", "speed")
# What a map may be told about rising, as it is written after its name.
RISING = {"": "auto", "increasing": True, "free": False}
# A map's answer is kept so far from 0 and 1; scores at which it is judged.
LEAST, POINTS = 1e-9, 2000


class Family(NamedTuple):
    """Log-odds and scores by quantile, the true probability of both, and what kind of truth that is."""

    scores: Callable[[Array], tuple[Array, Array]]
    chance: Callable[[Array, Array], Array]
    kind: str = "smooth"

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        odds, score = self.scores(rng.random(n))
        return score, rng.random(n) < self.chance(odds, score)

    def truth(self) -> tuple[Array, Array]:
        odds, score = self.scores((np.arange(POINTS) + 0.5) / POINTS)
        return score, np.clip(self.chance(odds, score), 0.0, 1.0)


def beta(a: float, b: float) -> Callable[[Array], tuple[Array, Array]]:
    def scores(share: Array) -> tuple[Array, Array]:
        # Both tails by themselves: 1 - p would be rounded to 0 where p is next to 1.
        p, rest = (np.clip(betaincinv(*pair), 1e-290, 1.0) for pair in ((a, b, share), (b, a, 1 - share)))
        return np.log(p) - np.log(rest), p

    return scores


def normal(mean: float, sd: float) -> Callable[[Array], tuple[Array, Array]]:
    return lambda share: (mean + sd * ndtri(share), expit(mean + sd * ndtri(share)))


def few(*values: float) -> Callable[[Array], tuple[Array, Array]]:
    known = np.array(values)

    def scores(share: Array) -> tuple[Array, Array]:
        p = known[np.minimum((share * known.size).astype(int), known.size - 1)]
        return np.log(p / (1 - p)), p

    return scores


def _waves(x: Array, p: Array) -> Array:
    return np.clip(p + (2 * np.sin(10 * np.pi * p) + np.sin(40 * np.pi * p / 3)) / (10 * np.pi), 0, 1)


FAMILIES = {
    # Scores that are right, two ways to be spread.
    "right": Family(beta(1, 1), lambda x, p: p),
    "right, sure": Family(beta(1.1, 0.1), lambda x, p: p),
    # Log-odds stretched and shifted.
    "too sure": Family(beta(0.5, 0.5), lambda x, p: expit(0.3 + 0.4 * x)),
    "too modest": Family(beta(3, 3), lambda x, p: expit(3 * x)),
    "too modest, shifted": Family(beta(0.5, 0.5), lambda x, p: expit(1 + 4 * x)),
    "shifted": Family(beta(1, 3), lambda x, p: expit(1 + x)),
    "far too sure": Family(normal(0, 8), lambda x, p: expit(0.15 * x)),
    "rare": Family(beta(0.3, 6), lambda x, p: expit(0.7 * x - 0.5)),
    "sure": Family(beta(1.1233, 0.1147), lambda x, p: expit(0.49 * x - 0.88)),
    "slight": Family(beta(0.7, 0.7), lambda x, p: expit(0.1 + 0.9 * x)),
    "prior 43": Family(normal(-1.8, 2), lambda x, p: p / (p + 43 * (1 - p))),
    "anti-ordered": Family(beta(2, 2), lambda x, p: 1 - p),
    # Bent.
    "beta": Family(beta(1, 1), lambda x, p: expit(0.5 + 0.4 * np.log(p) - 1.6 * np.log1p(-p))),
    "square": Family(beta(1.1, 0.1), lambda x, p: p**2),
    "root": Family(beta(2, 2), lambda x, p: np.sqrt(p)),
    "wrong labels": Family(beta(0.3, 0.3), lambda x, p: 0.05 + 0.9 * p),
    "missed labels": Family(beta(0.5, 0.5), lambda x, p: 0.8 * p),
    "plateau": Family(normal(0, 3), lambda x, p: 0.1 + 0.8 * expit(2 * x)),
    "tanh": Family(beta(1, 1), lambda x, p: 0.5 + 0.45 * np.tanh(3 * (p - 0.5))),
    "upper half": Family(beta(1, 1), lambda x, p: np.where(p < 0.5, p, expit(0.4 * x))),
    "two slopes": Family(normal(0, 2), lambda x, p: expit(np.where(x > 0, 0.5, 1.5) * x)),
    "two groups": Family(normal(-3, 1.5), lambda x, p: 0.7 * p + 0.3 * expit(x + 1.5)),
    "u-turn": Family(beta(1, 1), lambda x, p: 0.2 + 2.4 * (p - 0.5) ** 2),
    # In one place.
    "step": Family(beta(1, 1), lambda x, p: np.minimum(p + 0.15 * (p > 0.8), 1), "local"),
    "top": Family(beta(2, 1), lambda x, p: np.where(p > 0.975, p - 0.3, p), "local"),
    "bump": Family(beta(1, 1), lambda x, p: p - 0.25 * np.exp(-0.5 * ((p - 0.7) / 0.03) ** 2), "local"),
    # Few values, each with a gap of its own.
    "seven values": Family(
        few(0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95),
        lambda x, p: np.interp(
            p, (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95), (0.1, 0.12, 0.4, 0.4, 0.75, 0.7, 0.97)
        ),
        "local",
    ),
    # Rough.
    "waves": Family(beta(0.5, 0.5), _waves, "rough"),
    "stairs": Family(beta(1, 1), lambda x, p: (np.minimum(np.floor(5 * p), 4) + 0.5) / 5, "rough"),
}


def excess(truth: Array, found: Array) -> tuple[float, float]:
    """Return what an answer loses against the truth: in log loss, and in the Brier score."""
    q = np.clip(found, LEAST, 1 - LEAST)
    entropy = xlogy(truth, truth) - xlogy(truth, q) + xlogy(1 - truth, 1 - truth) - xlogy(1 - truth, 1 - q)
    return float(entropy.mean()), float(np.mean((q - truth) ** 2))


def answer(key: str, score: Array, label: Array, new: Array) -> Array:
    """Return what a map says of new scores: of a method, or of one that is "increasing" or "free"."""
    name, _, how = key.partition(", ")
    if how and name not in BENDING:
        # The nearest increasing answers at the scores that it has learned from.
        at = np.sort(score)
        known = isotonic_regression(Calibrator(name).fit(score, label).predict_proba(at)).x
        return np.interp(new, at, known)
    return Calibrator(name, monotone=RISING[how]).fit(score, label).predict_proba(new)


def times(repetitions: int, share: float) -> int:
    return max(1, round(repetitions * share))


def one_cell(name: str, n: int, repetitions: int, maps: Sequence[str], interval: bool) -> dict[str, Array]:
    """Return log loss and Brier excess of each map, and under "cover" coverage and width of intervals."""
    family, rng = FAMILIES[name], rng_of("maps", name, n)
    score, truth = family.truth()
    some = slice(2, None, 8)
    total: dict[str, list[tuple[float, float]]] = {
        key: [] for key in (*maps, *(["cover"] if interval else []))
    }
    for _ in range(repetitions):
        rows = family.draw(n, rng)
        for key in maps:
            calibrator = Calibrator(key).fit(*rows)
            total[key].append(excess(truth, calibrator.predict_proba(score)))
            if interval and key == "auto":
                low, high = calibrator.predict_interval(score[some])
                held = (low - 1e-9 <= truth[some]) & (truth[some] <= high + 1e-9)
                total["cover"].append((float(held.mean()), float((high - low).mean())))
    return {key: np.mean(values, axis=0) for key, values in total.items()}


def one(
    sizes: Sequence[int], share: float, maps: Sequence[str], interval: bool
) -> dict[tuple[str, int], dict]:
    cells = {}
    for n in sizes:
        for name in FAMILIES:
            cells[name, n] = one_cell(name, n, times(REPETITIONS[n], share), maps, interval)
    return cells


def show_one(cells: dict[tuple[str, int], dict], sizes: Sequence[int], maps: Sequence[str]) -> None:
    others = [key for key in maps if key != "auto"]
    for j, title in enumerate(("log loss", "Brier score")):
        print(f"\nMean excess {title} x 10^4 over {len(FAMILIES)} families\n")
        print("| n | " + " | ".join(maps) + " | auto over hindsight | worst excess x n |")
        print("|---" * (len(maps) + 3) + "|")
        for n in sizes:
            means = {key: np.mean([cells[name, n][key][j] for name in FAMILIES]) for key in maps}
            best = {name: min(cells[name, n][key][j] for key in others) for name in FAMILIES}
            auto = {name: cells[name, n]["auto"][j] for name in FAMILIES}
            ratio = sum(auto.values()) / sum(best.values())
            worst = max(FAMILIES, key=lambda name: auto[name] - best[name])
            row = [f"{1e4 * means[key]:.1f}" for key in maps]
            gap = n * (auto[worst] - best[worst])
            print(f"| {n} | " + " | ".join(row) + f" | {ratio:.2f} | {gap:.2f} ({worst}) |")


def show_interval(cells: dict[tuple[str, int], dict], sizes: Sequence[int]) -> None:
    print("\nCoverage of the interval at 95 %, averaged over scores (mean width)\n")
    print("| family | kind | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---" * (len(sizes) + 2) + "|")
    for name, family in FAMILIES.items():
        row = (f"{c:.3f} ({w:.3f})" for c, w in (cells[name, n]["cover"] for n in sizes))
        print(f"| {name} | {family.kind} | " + " | ".join(row) + " |")
    for kind in dict.fromkeys(family.kind for family in FAMILIES.values()):
        names = [name for name in FAMILIES if FAMILIES[name].kind == kind]
        row = (f"{np.mean([cells[name, n]['cover'][0] for name in names]):.3f}" for n in sizes)
        print(f"| mean | {kind} | " + " | ".join(row) + " |")


def monotone(sizes: Sequence[int], share: float) -> dict[tuple[str, int, str], float]:
    """Print what forcing a map to rise costs and gains, where the truth rises and where it does not."""
    maps = ("auto", "auto, increasing", "auto, free")
    falls = {name: bool((np.diff(family.truth()[1]) < -1e-12).any()) for name, family in FAMILIES.items()}
    cells = {}
    for n in sizes:
        for name, family in FAMILIES.items():
            rng, (score, truth) = rng_of("maps", name, n), family.truth()
            for _ in range(repetitions := times(REPETITIONS[n], share)):
                rows = family.draw(n, rng)
                for key in maps:
                    loss = excess(truth, answer(key, *rows, score))[0] / repetitions
                    cells[name, n, key] = cells.get((name, n, key), 0.0) + loss
    print(
        "\nMean excess log loss x 10^4 of maps that rise unless the data object, that must, that need not\n"
    )
    print("| truth | n | " + " | ".join(maps) + " |\n" + "|---" * (len(maps) + 2) + "|")
    for words, kind in (("rises", False), ("falls somewhere", True)):
        names = [name for name in FAMILIES if falls[name] == kind]
        for n in sizes:
            row = (1e4 * np.mean([cells[name, n, key] for name in names]) for key in maps)
            print(f"| {words} | {n} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    return cells


# --- many classes ---


def flat(n: int, c: int, rng: np.random.Generator) -> Array:
    return rng.dirichlet(np.ones(c), n)


def network(n: int, c: int, rng: np.random.Generator) -> Array:
    """Scores with one class ahead of the others, by more or by less."""
    z = 1.5 * rng.standard_normal((n, c))
    z[np.arange(n), rng.integers(0, c, n)] += 4 * np.sqrt(rng.random(n))
    return softmax(z, axis=1)


def _own(c: int) -> tuple[Array, Array, Array]:
    """Return a slope and a shift for each class, and a matrix over classes: the same for all rows."""
    rng = np.random.default_rng([31, c])
    return rng.uniform(0.6, 1.2, c), rng.normal(0, 0.4, c), rng.normal(0, 0.25 / np.sqrt(c), (c, c))


def _pairs(p: Array) -> Array:
    """A quarter of each class's probability belongs to its neighbour."""
    neighbour = np.arange(p.shape[1]) ^ 1
    neighbour[neighbour >= p.shape[1]] = p.shape[1] - 1
    return 0.75 * p + 0.25 * p[:, neighbour]


def _first_two(p: Array) -> Array:
    """The first and the second choice trade probability, depending on the confidence."""
    order = np.argsort(-p, axis=1)
    first, second = order[:, :1], order[:, 1:2]
    away = 0.6 * np.take_along_axis(p, second, 1) * np.sin(4 * np.pi * np.take_along_axis(p, first, 1))
    truth = p.copy()
    np.put_along_axis(truth, first, np.take_along_axis(p, first, 1) + away, 1)
    np.put_along_axis(truth, second, np.take_along_axis(p, second, 1) - away, 1)
    return truth


def _bent(p: Array) -> Array:
    """Every other class gives some of its probability to the next, where it is neither small nor large."""
    given = 0.5 * p * np.sin(2 * np.pi * p) ** 2 * (np.arange(p.shape[1]) % 2 == 0)
    return p - given + np.roll(given, 1, axis=1)


def _log(p: Array) -> Array:
    return np.log(np.maximum(p, 1e-300))


def _vector(p: Array) -> Array:
    slope, shift, _ = _own(p.shape[1])
    return softmax(slope * _log(p) + shift, axis=1)


def _matrix(p: Array) -> Array:
    _, shift, across = _own(p.shape[1])
    z = _log(p) - _log(p).mean(axis=1, keepdims=True)
    return softmax(0.85 * z + z @ across.T + shift / 2, axis=1)


CLASSES: dict[str, tuple[Callable[..., Array], Callable[[Array], Array]]] = {
    "right, flat": (flat, lambda p: p),
    "right": (network, lambda p: p),
    "pulled to equal chances": (flat, lambda p: 0.7 * p + 0.3 / p.shape[1]),
    "too sure": (network, lambda p: softmax(_log(p) / 1.6, axis=1)),
    "too modest": (network, lambda p: softmax(1.3 * _log(p), axis=1)),
    "slightly too sure": (network, lambda p: softmax(_log(p) / 1.06, axis=1)),
    "each class its own": (network, _vector),
    "across": (network, _matrix),
    "neighbours": (network, _pairs),
    "first two": (network, _first_two),
    "bent": (flat, _bent),
}
CLASS_SIZES = {50: 16, 100: 12, 200: 8, 500: 6, 1000: 4, 3000: 3}
GROUPS = {"n <= 100": (50, 100), "101-500": (200, 500), "> 500": (1000, 3000)}


def many_cell(name: str, c: int, n: int, repetitions: int) -> dict[str, float]:
    """Return the mean excess log loss of each map on new rows."""
    scores, chance = CLASSES[name]
    rng = rng_of("maps", name, c, n)
    new = scores(2000, c, rng)
    truth = chance(new)
    total = dict.fromkeys(MANY, 0.0)
    for _ in range(repetitions):
        rows = scores(n, c, rng)
        label = (rng.random((n, 1)) > chance(rows).cumsum(axis=1)[:, :-1]).sum(axis=1)
        for key in MANY:
            found = Calibrator(key, labels=range(c)).fit(rows, label).predict_proba(new)
            gap = xlogy(truth, truth) - xlogy(truth, np.maximum(found, LEAST))
            total[key] += float(gap.sum(axis=1).mean()) / repetitions
    return total


def many(share: float, classes: Sequence[int] = (3, 5, 10)) -> dict[str, dict[str, float]]:
    """Print and return the mean excess of each map by size."""
    print("\nMany classes: mean excess log loss x 10^4 over families and 3, 5 and 10 classes\n")
    print("| rows | " + " | ".join(MANY) + " |\n" + "|---" * (len(MANY) + 1) + "|")
    means = {}
    for group, sizes in GROUPS.items():
        cells = [
            many_cell(name, c, n, times(CLASS_SIZES[n], share))
            for n in sizes
            for c in classes
            for name in CLASSES
        ]
        means[group] = {key: 1e4 * float(np.mean([cell[key] for cell in cells])) for key in MANY}
        print(
            f"| {group} | " + " | ".join(f"{value:.1f}" for value in means[group].values()) + " |", flush=True
        )
    return means


# --- real scores ---


class Setting(NamedTuple):
    """Rows to learn from and rows to judge by."""

    name: str
    score: Array
    label: Array
    new_score: Array
    new_label: Array


def _halves(score: Array, label: Array, name: str) -> tuple[Array, Array, Array, Array]:
    order = rng_of("maps", name, "halves").permutation(len(label))
    half = len(label) // 2
    return score[order[:half]], label[order[:half]], score[order[half:]], label[order[half:]]


def _as_probabilities(name: str, values: Array) -> Array:
    values = values.astype(float)
    if "logit" in name:
        return softmax(values, axis=1)
    return values if values.ndim == 1 else values / values.sum(axis=1, keepdims=True)


def from_folder(folder: str) -> Iterator[tuple[str, tuple[Array, Array, Array, Array]]]:
    """Yield the name of each file of a folder, with scores and labels to learn from and to judge by."""
    for file in sorted(Path(folder).rglob("*.npz")):
        with np.load(file) as held:
            score = {
                key: _as_probabilities(key, held[key]) for key in held if "prob" in key or "logit" in key
            }
            label = {key: held[key].astype(int) for key in held if key.endswith(("y", "labels"))}
        if len(score) == 1:
            yield file.stem, _halves(*score.values(), *label.values(), file.stem)
            continue
        parts = [
            next(each[key] for key in each if key.startswith(part))
            for part in ("cal_", "test_")
            for each in (score, label)
        ]
        yield file.stem, (parts[0], parts[1], parts[2], parts[3])


def from_scikit_learn() -> Iterator[tuple[str, tuple[Array, Array, Array, Array]]]:
    """Yield models of scikit-learn on its own data sets: a third each to train, to calibrate and to judge."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def data() -> Iterator[tuple[str, Array, Array]]:
        yield "cancer", *load_breast_cancer(return_X_y=True)
        x, y = load_digits(return_X_y=True)
        yield "odd digits", x, y % 2
        yield "eights", x, (y == 8).astype(int)
        yield "digits", x, y
        yield "wine", *load_wine(return_X_y=True)

    kinds = {
        "bayes": GaussianNB(),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=10, max_iter=2000)),
        "forest": RandomForestClassifier(50, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
        "neighbours": KNeighborsClassifier(10),
    }
    for name, x, y in data():
        part = rng_of("maps", name, "thirds").permutation(len(y)) % 3
        for kind, model in kinds.items():
            model.fit(x[part == 0], y[part == 0])
            score = [model.predict_proba(x[part == k]) for k in (1, 2)]
            if score[0].shape[1] == 2:
                score = [each[:, 1] for each in score]
            yield f"{name}, {kind}", (score[0], y[part == 1], score[1], y[part == 2])


def settings(folder: str, sizes: Sequence[int] = (50, 200, 1000)) -> Iterator[Setting]:
    """Yield what can be learned from some of the rows of each model, and from all that it has."""
    for source in (from_folder(folder), from_scikit_learn()):
        for name, (score, label, new_score, new_label) in source:
            for n in [n for n in sizes if n < len(label)] + [len(label)]:
                some = rng_of("maps", name, n).permutation(len(label))[:n]
                yield Setting(f"{name}, {n}", score[some], label[some], new_score, new_label)


def losses(found: Array, label: Array) -> Array:
    """Return the log loss of each row."""
    right = np.where(label > 0, found, 1 - found) if found.ndim == 1 else found[np.arange(len(label)), label]
    return -np.log(np.maximum(right, LEAST))


def real(folder: str, share: float) -> dict[str, Array]:
    """Print ranks and harm on real scores, and return the mean log loss of each map in each setting."""
    ones, manys, harmed = [], [], []
    for k, setting in enumerate(settings(folder)):
        if k % max(1, round(1 / share)):
            continue
        two = setting.score.ndim == 1
        size = 2 if two else setting.score.shape[1]
        row = {}
        for key in ONE if two else MANY:
            made = Calibrator(key, labels=None if two else range(size)).fit(setting.score, setting.label)
            row[key] = losses(made.predict_proba(setting.new_score), setting.new_label)
        away = row["auto"] - row["identity"]
        harm, error = float(away.mean()), float(away.std() / np.sqrt(away.size))
        harmed.append((setting.name, harm, error))
        (ones if two else manys).append({key: float(value.mean()) for key, value in row.items()})
    tables = {}
    for title, rows, maps in (("two classes", ones, ONE), ("many classes", manys, MANY)):
        if not rows:
            continue
        table = tables[title] = np.array([[row[key] for key in maps] for row in rows])
        rank = (table[:, :, None] > table[:, None, :]).sum(axis=2) + 1
        base = table[:, [maps.index("identity")]]
        print(f"\nReal scores, {title}: {len(rows)} settings\n")
        print("| | " + " | ".join(maps) + " |\n" + "|---" * (len(maps) + 1) + "|")
        for words, values in (
            ("mean rank", rank.mean(axis=0)),
            ("log loss x 10^4 against the scores", 1e4 * (table - base).mean(axis=0)),
            ("share that is worse than the scores", (table > base + 1e-9).mean(axis=0)),
        ):
            print(f"| {words} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    sure = [name for name, harm, error in harmed if harm > 2 * error]
    worst = max(harmed, key=lambda each: each[1])
    print(
        f"\nauto harms by more than two standard errors in {len(sure)} of {len(harmed)} settings"
        f" ({', '.join(sure) or 'none'}); at most by {worst[1]:.4f} nats a row ({worst[0]})"
    )
    return tables


# --- models of scikit-learn on data of known probabilities ---

MODEL_MAPS = ("auto", "identity", "temperature", "sigmoid", "beta", "isotonic")
MODEL_SIZES = {100: 20, 300: 12, 1000: 6, 3000: 3}
N_TRAIN, N_NEW, N_REFERENCE_BINS = 1000, 40_000, 100


def _gaussians(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two Gaussian classes with common covariance."""
    label, mean = rng.random(n) < 0.5, np.linspace(0.2, 0.6, 6)
    x = rng.standard_normal((n, 6)) + np.where(label, 1, -1)[:, None] * mean
    return x, expit(2 * x @ mean)


def _interactions(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.standard_normal((n, 8))
    return x, expit(1.5 * x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3] + np.sin(3 * x[:, 4]))


def _rare(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.standard_normal((n, 5))
    return x, expit(-3.5 + 1.2 * x[:, 0] + 0.8 * x[:, 1] + x[:, 2] ** 2)


def _clusters(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two classes of two Gaussian clusters each, of different sizes and widths."""
    place = np.array([[0, 0, 0, 0], [2, 2, 0, 1], [2, 0, 1, 0], [0, 2, 0, -1]])
    share, width = np.array([0.35, 0.25, 0.3, 0.1]), np.array([0.8, 1.3, 1.0, 0.6])
    source = rng.choice(4, n, p=share)
    x = place[source] + width[source][:, None] * rng.standard_normal((n, 4))
    square = ((x[:, None] - place) ** 2).sum(axis=2)
    density = share * np.exp(-square / (2 * width**2)) / width**4
    return x, density[:, 2:].sum(axis=1) / density.sum(axis=1)


def _ring(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A ring among irrelevant features, with 5 % of the labels wrong."""
    x = rng.standard_normal((n, 5))
    return x, 0.05 + 0.9 * expit(4 * (np.hypot(x[:, 0], x[:, 1]) - 1.2))


def _words(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Binary features in correlated groups of three."""
    topic = rng.random((n, 10)) < 0.3
    x = np.repeat(topic, 3, axis=1) ^ (rng.random((n, 30)) < 0.1)
    return x.astype(float), expit(-1 + topic @ np.linspace(-1.5, 2.5, 10))


def _skewed(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.exponential(1.0, (n, 6))
    return x, expit(-3 + x[:, 0] * (x[:, 1] > 0.7) + np.sqrt(x[:, 2]) + 0.5 * x[:, 3])


def trained_models(part: str) -> Iterator[tuple[str, Callable[[np.random.Generator, int], tuple], object]]:
    """Yield name, generator and fitted model; of a model "balanced", classes are equal in training alone."""
    from sklearn.base import clone
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    generators, kinds = {
        "development": (
            (_gaussians, _interactions, _rare),
            {
                "bayes": GaussianNB(),
                "logistic": LogisticRegression(max_iter=1000),
                "logistic, balanced": LogisticRegression(max_iter=1000),
                "tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
                "neighbours": KNeighborsClassifier(15),
                "boosting": GradientBoostingClassifier(n_estimators=60, random_state=0),
            },
        ),
        "confirmation": (
            (_clusters, _ring, _words, _skewed),
            {
                "bayes": BernoulliNB(binarize=0.5),
                "forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
                "forest, balanced": RandomForestClassifier(60, min_samples_leaf=8, random_state=0),
                "support vectors": SVC(C=3, random_state=0),
                "network": MLPClassifier((30,), alpha=1e-3, max_iter=60, random_state=0),
                "neighbours": KNeighborsClassifier(40),
                "boosting": AdaBoostClassifier(n_estimators=50, random_state=0),
            },
        ),
    }[part]
    for generator in generators:
        for kind, model in kinds.items():
            name = f"{generator.__name__[1:]}, {kind}"
            rng = rng_of("maps", name, "train")
            x, chance = generator(rng, 8 * N_TRAIN)
            label = rng.random(len(x)) < chance
            order = np.arange(len(x))
            if "balanced" in kind:
                few = min(label.sum(), (~label).sum())
                order = np.concatenate([np.flatnonzero(label == y)[:few] for y in (False, True)])
                order = rng.permutation(order)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the network stops early on purpose
                fitted = clone(model).fit(x[order[:N_TRAIN]], label[order[:N_TRAIN]])
            yield name, generator, fitted


def model_scores(model: object, x: Array) -> Array:
    """Return probabilities of the positive class, by the sigmoid where a model has decision values alone."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)[:, 1]
    return expit(model.decision_function(x))


def reference_loss(score: Array, truth: Array) -> float:
    """Return the log loss of the best map of the scores: the mean of an in-sample and an out-of-sample fit.

    The first is too small by the noise of the bins, and the second too large by about the same.
    """
    rank = np.searchsorted(np.sort(score), score)  # equal scores share a bin
    cell = rank * N_REFERENCE_BINS // score.size
    half = np.arange(score.size) % 2
    total = 0.0
    for fitted, judged, share in ((-1, -1, 0.5), (0, 1, 0.25), (1, 0, 0.25)):
        a, b = (half != 1 - each if each >= 0 else half >= 0 for each in (fitted, judged))
        mass = np.bincount(cell[a], minlength=N_REFERENCE_BINS)
        mean = np.bincount(cell[a], truth[a], N_REFERENCE_BINS) / np.maximum(mass, 1)
        total += share * cross_entropy(truth[b], np.where(mass > 0, mean, 0.5)[cell[b]])
    return total


def cross_entropy(truth: Array, found: Array) -> float:
    """Return the mean log loss of an answer, given the true probabilities."""
    q = np.clip(found, LEAST, 1 - LEAST)
    return float(-(xlogy(truth, q) + xlogy(1 - truth, 1 - q)).mean())


def of_models(part: str, share: float) -> dict[int, dict[str, list[float]]]:
    """Print the excess log loss of maps of scikit-learn models, and return it by size, map and setting."""
    cells: dict[int, dict[str, list[float]]] = {n: {key: [] for key in MODEL_MAPS} for n in MODEL_SIZES}
    certain, fits, names = 0, 0, []
    for name, generator, model in trained_models(part):
        rng = rng_of("maps", name, "new")
        x, truth = generator(rng, N_NEW)
        score = model_scores(model, x)
        least = reference_loss(score, truth)
        names.append(name)
        for n, repetitions in MODEL_SIZES.items():
            total = dict.fromkeys(MODEL_MAPS, 0.0)
            for _ in range(done := times(repetitions, share)):
                x, chance = generator(rng, n)
                label = (rng.random(n) < chance).astype(int)
                if label.min() == label.max():
                    label[rng.integers(n)] ^= 1
                rows = model_scores(model, x), label
                for key in MODEL_MAPS:
                    found = Calibrator(key).fit(*rows).predict_proba(score)
                    total[key] += (cross_entropy(truth, found) - least) / done
                    if key == "auto":
                        certain, fits = certain + bool(np.isin(found, (0, 1)).any()), fits + 1
            for key in MODEL_MAPS:
                cells[n][key].append(total[key])
    print(f"\nMean excess log loss x 10^4 over {len(names)} models of scikit-learn ({part})\n")
    print("| n | " + " | ".join(MODEL_MAPS) + " | auto better than temperature in |")
    print("|---" * (len(MODEL_MAPS) + 2) + "|")
    for n, row in cells.items():
        means = (f"{1e4 * np.mean(row[key]):.1f}" for key in MODEL_MAPS)
        better = sum(a < t for a, t in zip(row["auto"], row["temperature"], strict=True))
        print(f"| {n} | " + " | ".join(means) + f" | {better} of {len(names)} |")
    print(f"\nauto answers 0 or 1 in {certain} of {fits} fits")
    return cells


# --- the paper's models ---

PAPER_MAPS = (
    "identity",
    "density",
    "density, increasing",
    "isotonic",
    "isotonic-safe",
    "temperature",
    "auto",
    "auto, increasing",
    "auto, free",
)
PAPER_SIZES = (100, 500, 2000)


def paper(share: float, preset: str = "paper", n_new: int = 20_000) -> dict[int, Array]:
    """Print what each map makes of the confidence of the paper's models after a calibration split.

    The loss of a row is its mean over the labels, by the exact posterior of the class that was predicted.
    """
    asked = PRESETS[preset]
    tasks = asked.tasks()
    # At random: every other one would be of the same kinds of model.
    some = rng_of("maps", preset).permutation(len(tasks))[: times(len(tasks), share)]
    tasks = [tasks[k] for k in np.sort(some)]
    found: dict[int, list[list[tuple[float, float]]]] = {n: [] for n in PAPER_SIZES}
    for task in tasks:
        where = procedure.distribution(task.distribution)
        rows = where.sample(asked.n_train, rng_of(task.distribution, "train", task.train_set))
        seed = int(rng_of(task.name).integers(2**31))
        trained = models.fit(procedure.family(task.family), *rows, seed=seed)
        features, label = where.sample(max(PAPER_SIZES), rng_of(task.name, "split"))
        score = models.scores(trained, features, where.n_classes)
        new, _ = where.sample(n_new, rng_of(task.name, "new"))
        new_score = models.scores(trained, new, where.n_classes)
        chance = where.posterior(new)[np.arange(n_new), new_score.argmax(axis=1)]
        for n in PAPER_SIZES:
            top, right = score[:n].max(axis=1), (score[:n].argmax(axis=1) == label[:n]).astype(int)
            losses = []
            for key in PAPER_MAPS:
                q = np.clip(answer(key, top, right, new_score.max(axis=1)), LEAST, 1 - LEAST)
                loss = -(chance * np.log(q) + (1 - chance) * np.log1p(-q))
                losses.append((float(loss.mean()), float(np.mean((q - chance) ** 2))))
            found[n].append(losses)
    tables = {n: np.array(values) for n, values in found.items()}
    print(
        f"\nConfidence of {len(tasks)} of the paper's {len(asked.tasks())} models, x 10^4 from the scores\n"
    )
    print("| n | loss | " + " | ".join(PAPER_MAPS) + " |\n" + "|---" * (len(PAPER_MAPS) + 2) + "|")
    for n, table in tables.items():
        for j, words in enumerate(("log loss", "Brier score")):
            away = 1e4 * (table[:, :, j] - table[:, :1, j]).mean(axis=0)
            print(f"| {n} | {words} | " + " | ".join(f"{value:.0f}" for value in away) + " |")
        worse = (table[:, :, 0] > table[:, :1, 0]).mean(axis=0)
        print(f"| {n} | share worse in log loss | " + " | ".join(f"{value:.2f}" for value in worse) + " |")
    return tables


# --- speed ---


def speed(share: float) -> None:
    """Print times over limits, and over those of scikit-learn's isotonic regression on the same rows."""
    from sklearn.isotonic import IsotonicRegression

    def taken(work: Callable[[], object], rounds: int) -> float:
        spent = []
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
        return float(np.median(spent))

    print(
        "\n| what | seconds | over the limit | over isotonic regression of scikit-learn |\n|---|---|---|---|"
    )
    rng = np.random.default_rng(0)
    for n, limit in ((1000, 0.02), (100_000, 0.06), (10_000_000, 1.5)):
        if n > 1e6 and share < 0.5:
            continue
        score = rng.random(n)
        outcome = (rng.random(n) < score**2).astype(int)
        rounds = 7 if n < 1e6 else 3
        peer = taken(lambda s=score, y=outcome: IsotonicRegression().fit(s, y), rounds)
        ours = taken(lambda s=score, y=outcome: Calibrator().fit(s, y), rounds)
        print(f"| fit, n = {n:.0e} | {ours:.3f} | {ours / limit:.2f} | {ours / peer:.2f} |", flush=True)
    made = Calibrator().fit(score[:1000], outcome[:1000])
    new = rng.random(1_000_000)
    other = IsotonicRegression(out_of_bounds="clip").fit(score[:1000], outcome[:1000])
    ours, peer = taken(lambda: made.predict_proba(new), 5), taken(lambda: other.predict(new), 5)
    print(f"| predict, n = 1e+06 | {ours:.3f} | {ours / 0.06:.2f} | {ours / peer:.2f} |")
    for c, n, limit in ((100, 10_000, 3.0), (1000, 50_000, 60.0)):
        if c > 100 and share < 0.5:
            continue
        rows = network(n, c, rng)
        label = (rng.random((n, 1)) > softmax(_log(rows) / 1.6, axis=1).cumsum(axis=1)[:, :-1]).sum(axis=1)
        ours = taken(lambda p=rows, y=label, c=c: Calibrator(labels=range(c)).fit(p, y), 1)
        print(f"| fit, {c} classes, n = {n:.0e} | {ours:.3f} | {ours / limit:.2f} | |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="share of the repetitions")
    parser.add_argument("--sizes", type=int, nargs="+", choices=list(REPETITIONS), default=list(REPETITIONS))
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=None)
    parser.add_argument("--real", metavar="DIR", help="folder of scores of real models")
    parser.add_argument("--paper", action="store_true", help="the paper's models, and nothing else")
    parser.add_argument("--models", choices=("development", "confirmation"), help="models of scikit-learn")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    start = time.perf_counter()
    parts = asked.parts
    if parts is None:
        parts = () if asked.paper or asked.real or asked.models else PARTS
    if "one" in parts or "interval" in parts:
        maps = ONE if "one" in parts else ["auto"]
        cells = one(asked.sizes, asked.share, maps, "interval" in parts)
        if "one" in parts:
            show_one(cells, asked.sizes, maps)
        if "interval" in parts:
            show_interval(cells, asked.sizes)
    if "monotone" in parts:
        monotone(asked.sizes, asked.share)
    if "many" in parts:
        many(asked.share)
    if asked.real:
        real(asked.real, asked.share)
    if asked.paper:
        paper(asked.share)
    if asked.models:
        of_models(asked.models, asked.share)
    if "speed" in parts:
        speed(asked.share)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
