"""Say the same thing in another way: every estimator must give the number that it gave before.

A case draws hostile predictions (ties, walls, one row, one class, thin tails, tiny scores, few values, and
weights of different orders of magnitude), a notion, an estimator, a norm and a relation, and asks `ece`,
`estimate` or a `Sketch` both ways. Others ask a `Calibrator`, or about the rows of all scores. Each case has
a generator of its own: `case(seed, number)` runs it again.

What is promised, and so what is allowed to differ, is in docs/reliability.md.
"""

import os
import warnings
from dataclasses import dataclass, replace
from math import isfinite
from unittest.mock import patch

import numpy as np

import calibrant
from calibrant import Sketch
from calibrant.assessment import assess as assessing
from calibrant.decisions import binary
from calibrant.estimators import describe, resolve
from calibrant.inference import interval
from calibrant.maps.methods import METHODS

#: Estimators asked, by family: without a parameter unless listed here.
SPECS = {entry.name: (entry.short,) for entry in describe()} | {
    "uniform": ("l:1", "l:10", "l:15", "l:sqrt"),
    "adaptive": ("a:10", "a:sqrt"),
    "uniform-convex": ("c:10", "c:sqrt"),
    "adaptive-convex": ("ac:10", "ac:sqrt"),
    "density": ("d:0.033", "d:0.1", "d:silverman", "d:scott", "d:isj", "d:0.05:epanechnikov"),
    "density-beta": ("dbeta", "dbeta:0.01"),
    "density-beta2": ("dbeta2", "dbeta2:0.01"),
    "bayes": ("auto", "b", "b:shared"),
    "debiased": ("db:15", "db:sqrt"),
    "sweep": ("sw", "sw:debiased"),
    "beta-kernel": ("bk", "bk:0.02"),
    "variational": ("v", "v:3"),
}
# CALIBRANT_ESTIMATORS="mg mg:3" asks these alone, while they are written.
CHOSEN = tuple(os.environ.get("CALIBRANT_ESTIMATORS", "").split())
ALL = CHOSEN or tuple(spec for specs in SPECS.values() for spec in specs)
DENSITIES = ("density", "density-beta", "density-beta2")
FAMILY = {spec: str(resolve(spec)).partition(":")[0] for spec in (*ALL, "auto")}
VECTOR = ("binary", "confidence", "classwise", "correctness")
MATRIX = ("binary", "confidence", "classwise", "top:2")


@dataclass(frozen=True, eq=False)
class Data:
    """Predictions and what is said about their rows."""

    kind: str
    label: np.ndarray
    score: np.ndarray
    weight: np.ndarray | None = None
    counted: bool = False  # whether weights are numbers of equal rows
    cluster: np.ndarray | None = None
    positive: int = 1
    labels: list | None = None

    @property
    def n(self):
        return len(self.label)

    @property
    def vector(self):
        return self.score.ndim == 1

    def take(self, rows):
        parts = {name: getattr(self, name) for name in ("label", "score", "weight", "cluster")}
        return replace(self, **{name: None if part is None else part[rows] for name, part in parts.items()})

    def options(self, notion):
        """Arguments of `ece` beside labels and scores."""
        asked = {} if self.labels is None else {"labels": self.labels}
        if notion == "binary" and not self.vector:
            asked["pos_label"] = self.positive
        return asked | {"notion": notion} | self.weighing(self.weight)

    def weighing(self, weight):
        """The argument that weights go to."""
        return {"counts" if self.counted else "sample_weight": weight}


# --- hostile predictions -------------------------------------------------------------------------------


def tiny(rng, n):
    return 10.0 ** rng.uniform(-320, -4, n)


def tails(rng, n):
    near = 10.0 ** rng.uniform(-16, -1, n)
    return np.where(rng.random(n) < 0.5, near, 1 - near)


def thin_tail(rng, n):
    score = rng.beta(1, 30, n)
    score[: 1 + n // 20] = rng.uniform(0.9, 1, 1 + n // 20)
    return score


def neighbours(rng, n):
    score = rng.choice(rng.random(3), n)
    return np.where(rng.random(n) < 0.5, score, np.nextafter(score, rng.integers(0, 2, n)))


def walls(rng, n):
    return np.where(rng.random(n) < 0.6, rng.integers(0, 2, n), rng.random(n))


VECTORS = {
    "smooth": lambda rng, n: rng.beta(0.7, 0.9, n),
    "decimals": lambda rng, n: rng.integers(0, 101, n) / 100,
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
    "few values": lambda rng, n: rng.choice(rng.random(rng.integers(2, 5)), n),
    "one value": lambda rng, n: np.full(n, rng.choice([0.0, 1.0, 0.5, 0.3, rng.random()])),
    "walls": walls,
    "only walls": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "tails": tails,
    "thin tail": thin_tail,
    "tiny": tiny,
    "neighbours": neighbours,
}


def dirichlet(concentration):
    def draw(rng, n, classes):
        score = rng.dirichlet(np.full(classes, concentration), n)
        return score / score.sum(axis=1, keepdims=True)

    return draw


def tiny_columns(rng, n, classes):
    score = 10.0 ** rng.uniform(-300, -8, (n, classes))
    score[np.arange(n), rng.integers(0, classes, n)] = 1.0
    return score


def saturated(rng, n, classes):
    score = np.eye(classes)[rng.integers(0, classes, n)]
    return np.where(rng.random((n, 1)) < 0.7, score, dirichlet(0.5)(rng, n, classes))


MATRICES = {
    "smooth": dirichlet(0.6),
    "sharp": dirichlet(0.05),
    "counts": lambda rng, n, classes: rng.multinomial(20, np.full(classes, 1 / classes), n) / 20,
    "few rows": lambda rng, n, classes: dirichlet(1)(rng, 3, classes)[rng.integers(0, 3, n)],
    "flat": lambda rng, n, classes: np.full((n, classes), 1 / classes),
    "saturated": saturated,
    "tiny": tiny_columns,
}
SIZES = (1, 2, 3, 5, 8, 13, 30, 60, 120)


def weights(rng, n):
    """Draw no weights, counts, or importance weights, mild and strong, floats and integers; and which."""
    kind = rng.choice(["none", "none", "counts", "large counts", "whole", "floats", "spread"])
    if kind == "none":
        return None, False
    if kind in ("counts", "whole"):
        weight = rng.integers(0, 4, n)
    elif kind == "large counts":
        weight = np.rint(10 ** rng.uniform(0, 5, n)).astype(np.int64)
    elif kind == "floats":
        weight = rng.uniform(0.1, 2, n)
    else:
        weight = 10 ** rng.uniform(-6, 6, n)
    if not weight.any():
        weight[0] = 1
    return weight, kind in ("counts", "large counts")


def draw(rng, *, vector, sizes=SIZES):
    """Draw predictions."""
    n = int(rng.choice(sizes))
    if vector:
        kind = rng.choice(list(VECTORS))
        score = VECTORS[kind](rng, n)
        label = (rng.random(n) < score ** rng.choice([0.5, 1, 2])).astype(int)
        classes = 2
    else:
        classes = int(rng.integers(2, 6))
        kind = rng.choice(list(MATRICES))
        score = MATRICES[kind](rng, n, classes)
        label = (rng.random((n, 1)) > np.cumsum(score, axis=1)).sum(axis=1).clip(0, classes - 1)
    if rng.random() < 0.15:
        label = np.full(n, rng.integers(0, classes))
        kind = f"{kind}, one class"
    return Data(str(kind), label, score, *weights(rng, n), positive=int(rng.integers(0, classes)))


# --- relations: the same thing said in two ways --------------------------------------------------------


def in_another_order(data, rng, notion):
    return data, data.take(rng.permutation(data.n))


def with_classes_in_another_order(data, rng, notion):
    """Exchange columns and say so; rows with ties for the k-th largest score go, which the order decides."""
    classes = data.score.shape[1]
    top = {"confidence": 1, "top:2": 2}.get(notion)
    if top is not None and top < classes:
        ordered = np.sort(data.score, axis=1)
        data = data.take(ordered[:, -top] > ordered[:, -top - 1])
    order = rng.permutation(classes)
    return data, replace(data, score=data.score[:, order], labels=order.tolist())


def repeated(data, rng, notion):
    """Write counts out as rows."""
    count = rng.integers(0, 5, data.n)
    count[rng.integers(data.n)] += 1
    plain = replace(data, weight=None)
    counted = replace(plain, weight=count, counted=True)
    return counted, plain.take(rng.permutation(np.repeat(np.arange(data.n), count)))


def with_rows_of_no_weight(data, rng, notion):
    """Add rows that weigh nothing."""
    rows = np.arange(data.n)
    more = rng.integers(0, data.n, 1 + data.n // 2)
    weight = np.ones(data.n, dtype=int) if data.weight is None else data.weight
    if not data.vector:
        label = rng.integers(0, data.score.shape[1], more.size)
    else:
        label = rng.integers(0, 2, more.size)
    longer = replace(data, weight=weight, counted=data.weight is None or data.counted).take(
        np.concatenate([rows, more])
    )
    longer.weight[data.n :] = 0
    longer.label[data.n :] = label
    if data.vector:
        longer.score[data.n :] = rng.random(more.size)
    if longer.cluster is not None:
        # Some in clusters of their own.
        longer.cluster[data.n :] += np.where(rng.random(more.size) < 0.5, 10_000, 0)
    return data, longer.take(rng.permutation(longer.n))


def with_heavier_weights(data, rng, notion):
    """Scale importance weights; integers by an integer, or by any number."""
    weight = rng.uniform(0.1, 2, data.n) if data.weight is None else data.weight
    scale = int(rng.integers(2, 1000)) if rng.random() < 0.5 else 10.0 ** rng.uniform(-6, 6)
    data = replace(data, weight=weight, counted=False)
    return data, replace(data, weight=weight * scale)


def as_integers(data, rng, notion):
    """Give whole importance weights as floats and as integers."""
    weight = rng.integers(0, 50, data.n) if data.weight is None else np.ceil(data.weight).astype(np.int64)
    weight[rng.integers(data.n)] += 1
    data = replace(data, counted=False)
    kinds = [np.int64, object] if weight.max() >= 2**24 else [np.int64, object, np.uint32, np.float32]
    kind = kinds[rng.integers(len(kinds))]
    return replace(data, weight=weight.astype(float)), replace(data, weight=weight.astype(kind))


def in_single_precision(data, rng, notion):
    """Give scores in single precision, and the same numbers in double."""
    low = data.score.astype(np.float32)
    return replace(data, score=low.astype(np.float64)), replace(data, score=low)


def complemented(data, rng, notion):
    """Ask about the other class: 1 - p, with p moved to where that is exact."""
    score = np.rint(data.score * 2**40) / 2**40
    if notion == "confidence":  # one half is for the first class
        score = np.where(score == 0.5, 0.5 + 2.0**-10, score)
    return replace(data, score=score), replace(data, score=1 - score, label=1 - data.label)


def with_clusters_renamed(data, rng, notion):
    """Call clusters something else, in another order of rows."""
    names = rng.permutation(10 * data.n)
    other = replace(data, cluster=np.array([f"c{names[k]}" for k in data.cluster]))
    return data, other.take(rng.permutation(data.n))


def in_clusters_of_one(data, rng, notion):
    return replace(data, cluster=None), replace(data, cluster=rng.permutation(data.n))


def unchanged(data, rng, notion):
    return data, data


RELATIONS = {
    "order of rows": in_another_order,
    "order of classes": with_classes_in_another_order,
    "counts": repeated,
    "no weight": with_rows_of_no_weight,
    "scale of weights": with_heavier_weights,
    "type of weights": as_integers,
    "single precision": in_single_precision,
    "complement": complemented,
    "merge": unchanged,
    "group alone": unchanged,  # the pieces of a case are groups
    "names of clusters": with_clusters_renamed,
    "clusters of one": in_clusters_of_one,
}


# --- what may differ -----------------------------------------------------------------------------------


def lopsided(spec, norm, data):
    """Say why an estimator may tell a class from its complement; an empty text where it may not."""
    estimator, family = resolve(spec), FAMILY[spec]
    if family in ("sweep", "variational", "ks"):
        return {
            "sweep": "the first bins hold one row more where they cannot be equal",
            "variational": "folds are dealt out from the lowest score",
            "ks": "residuals are summed from the lowest score, and the largest sum depends on the end",
        }[family]
    if spec in ("d:silverman", "dbeta", "dbeta2") and data.weight is not None and not data.counted:
        return "quartiles are read at whole ranks, counted from the lowest score"
    if spec == "d:isj":
        return "the rule takes the smallest root, which rounding may move to another"
    if family in DENSITIES and norm == "max":
        return "the curve ends where too few rows are near, which a point of the grid decides"
    if family in ("adaptive", "adaptive-convex", "debiased"):
        distinct = data.weight is None and np.unique(data.score).size == data.n
        if not distinct or data.n % estimator.n_bins_at(np.array(float(data.n))):
            return "cuts are after floor(i n / B) rows, and a run of ties goes to their right"
    if family == "uniform":
        bins = estimator.n_bins_at(np.array(effective(data)))
        edges = np.arange(1, bins) / bins
        if np.isin(data.score, edges).any() or np.isin(1 - data.score, edges).any():
            return "a score on an edge belongs to the bin on its right"
    return ""


def effective(data):
    """Number of rows: their count, or (sum w)^2 / sum w^2 of importance weights."""
    if data.weight is None:
        return float(data.n)
    weight = data.weight.astype(float)
    return weight.sum() if data.counted else weight.sum() ** 2 / (weight**2).sum()


def allowed(relation, spec, norm, n):
    """How far a value may move: rounding, and more where the curve is a ratio of two nearly empty sums."""
    if FAMILY[spec] in DENSITIES and norm == "max":
        # The curve ends where a thousandth of a row is left of n, in sums that are rounded to 1e-13.
        return max(1e-6, 1e-10 * n)
    if FAMILY[spec] == "beta-kernel":
        # Other rows are what is left of a sum without a row's own share, down to 1e-9 of it.
        return 1e-7
    return 1e-7 if relation in ("merge", "scale of weights") else 1e-9


def within_noise(name, one, other):
    """Whether what is simulated agrees as well as between two seeds: 999 sets, and ends of the interval."""
    a, b = one[name], other[name]
    if name == "p_value":
        middle = (a + b) / 2
        return abs(a - b) <= 0.005 + 6 * np.sqrt(2 * middle * (1 - middle) / 999)
    if name == "null":
        return abs(a - b) <= 0.01 + 0.25 * max(a, b)
    if one["value"] > 0.3:  # an error nearly as large as scores allow may have an interval up to [0, 1]
        return True
    width = max(each["high"] - each["low"] for each in (one, other))
    return abs(a - b) <= 0.02 + 0.5 * width


# --- asking --------------------------------------------------------------------------------------------


def measured(data, notion, spec, norm):
    options = data.options(notion) | {"estimator": spec, "norm": norm, "cluster": data.cluster}
    return {"value": calibrant.ece(data.label, data.score, **options)}


def estimated(data, notion, spec, norm, seed=0):
    """Return every number of an estimate; another seed draws another interval too."""
    options = data.options(notion) | {"estimator": spec, "norm": norm, "cluster": data.cluster}
    with patch.object(interval, "SEED", interval.SEED + seed):
        return flat(calibrant.estimate(data.label, data.score, rng=seed, **options))


def flat(estimate, about=""):
    """Return every number of an estimate."""
    names = ("value", "low", "high", "p_value", "over", "under", "n")
    numbers = {f"{about}{name}": getattr(estimate, name) for name in names}
    numbers = {name: number for name, number in numbers.items() if number is not None}
    numbers[f"{about}null"] = estimate.null.mean
    numbers |= {f"{about}null {level}": value for level, value in estimate.null.quantiles.items()}
    for label, each in (estimate.by_class or {}).items():
        numbers |= flat(each, f"{label} ")
    return numbers


def sketched(data, notion, spec, norm, pieces=None):
    """Answer from a sketch of all rows, or from sketches of pieces merged in their order."""
    asked, weight = data.options(notion), data.weight
    for name in ("sample_weight", "counts"):
        asked.pop(name, None)
    if not data.vector:
        asked["labels"] = list(range(data.score.shape[1]))

    def of(rows):
        own = None if weight is None else weight[rows]
        return Sketch(**asked).update(data.label[rows], data.score[rows], **data.weighing(own))

    whole = of(np.arange(data.n)) if pieces is None else sum(of(rows) for rows in pieces)
    return {"value": whole.ece(estimator=spec, norm=norm)}


def of_group(data, notion, rows):
    """Answer about some rows: as a group in an assessment of all, and by themselves."""
    group = np.isin(np.arange(data.n), rows)
    asked = data.options(notion) | {"rng": 0}
    if notion != "correctness":
        asked["labels"] = list(range(2 if data.vector else data.score.shape[1]))
    with patch.object(assessing, "REFERENCE_ESTIMATORS", ()):
        found = calibrant.assess(data.label, data.score, groups=group, cluster=data.cluster, **asked)
    own = next(row.estimate for row in found.by_group if row.name == "True")
    alone = data.take(rows)
    # The rows of a single cluster are treated as independent in a group, and refused by themselves.
    cluster = None if too_few_clusters(alone) else alone.cluster
    asked |= {key: value for key, value in alone.options(notion).items() if key != "labels"}
    options = {"cluster": cluster, "level": own.level, "n_resamples": own.n_resamples}
    return flat(own), flat(calibrant.estimate(alone.label, alone.score, **asked, **options))


# --- cases ---------------------------------------------------------------------------------------------

#: One case in so many asks for an estimate: a thousand times the work.
ESTIMATES = 20
#: One case in so many asks for an assessment with a group.
GROUPS, GROUPED = 2 * ESTIMATES, "group alone"
#: Estimators left out there, since the interval of a single one takes them seconds to minutes.
SLOW = ("d:isj", "bk", "bk:0.02")
#: Relations under which what is simulated is drawn anew, and so agrees within the noise of a seed.
DRAWN_ANEW = ("complement",)
#: Seeds over which numbers are averaged where a single one leaves it open whether they agree.
SEEDS = 20


@dataclass(frozen=True, eq=False)
class Case:
    """A question in two wordings."""

    relation: str
    way: str
    notion: str
    spec: str
    norm: str
    one: Data
    other: Data
    pieces: list | None = None

    def __str__(self):
        data = self.one
        kind = "counts" if data.counted else "weights"
        weight = "no weights" if data.weight is None else f"{kind} {data.weight.dtype}"
        clusters = "" if data.cluster is None else ", clusters"
        about = f"{self.notion} {self.spec} {self.norm}"
        return f"{self.relation}: {self.way} {about} of {data.kind}, n = {data.n}, {weight}{clusters}"

    def answers(self):
        """Both answers: numbers by name."""
        if self.way == "sketch":
            asked = self.notion, self.spec, self.norm
            return sketched(self.one, *asked), sketched(self.other, *asked, self.pieces)
        if self.way == "group":
            return of_group(self.one, self.notion, self.pieces[0])
        ask = estimated if self.way == "estimate" else measured
        return tuple(ask(data, self.notion, self.spec, self.norm) for data in (self.one, self.other))

    def alike_over_seeds(self, name):
        """Whether what is simulated agrees on average over seeds.

        Where weights leave a handful of different outcomes, a seed can exchange two of them in the ranks,
        and the p-value jumps by the chance of one. The interval of a named estimator rests on ten gaps, of
        which few can have a large error.
        """
        asked = self.notion, self.spec, self.norm
        means, variances = [], []
        for data in (self.one, self.other):
            found = [estimated(data, *asked, seed)[name] for seed in range(SEEDS)]
            means.append(np.mean(found))
            variances.append(np.var(found, ddof=1) / SEEDS)
        return abs(means[0] - means[1]) <= 0.005 + 4 * np.sqrt(sum(variances))

    def differences(self):
        """Names of the numbers that differ by more than they may, with both of them."""
        one, other = self.answers()
        anew = self.relation in DRAWN_ANEW
        if self.relation == "complement" and self.notion in ("binary", "correctness") and "over" in one:
            other["over"], other["under"] = other["under"], other["over"]
        broken = []
        for name, number in one.items():
            if anew and " " in name:
                continue  # classes by themselves, and quantiles of few different values
            if anew and name in ("low", "high", "p_value", "null"):
                fine = within_noise(name, one, other) or self.alike_over_seeds(name)
            elif name.endswith(("low", "high")) and (self.spec != "auto" or self.one.cluster is not None):
                # An end may move by more than rounding moves the simulated values.
                fine = abs(number - other[name]) <= 1e-3
            else:
                exact = name.endswith(("value", "over", "under", " n")) or name == "n"
                most = allowed(self.relation, self.spec, self.norm, effective(self.one))
                # What is simulated has single precision.
                fine = abs(number - other[name]) <= (most if exact else max(most, 1e-6))
            if not (fine and isfinite(number)):
                broken.append(f"{name} {number!r} and {other[name]!r}")
        return broken


# --- calibrators, and rows of all scores ---------------------------------------------------------------

#: Of so many cases one asks a calibrator, and one about the rows of all scores: those of these numbers.
OF_MAP, OF_ROWS = 11, 13


def shares(rng, n, classes):
    """Draw scores that tie up to rounding: tenths, divided by their sums twice."""
    score = np.round(rng.dirichlet(np.full(classes, rng.choice([0.5, 1, 2])), n), 1)
    score[score.sum(axis=1) == 0] = 0.1
    score *= rng.uniform(0.5, 2, (n, 1))
    return score / score.sum(axis=1, keepdims=True)


def with_shares(data, rng):
    """Replace the scores by such that tie up to rounding."""
    classes = int(rng.integers(3, 6)) if data.vector else data.score.shape[1]
    score = shares(rng, data.n, classes)
    return replace(data, kind="shares", score=score[:, 0] if data.vector else score)


@dataclass(frozen=True, eq=False)
class MapCase:
    """A calibrator that learns the same in two wordings, or is saved and loaded."""

    relation: str
    method: str
    one: Data
    other: Data
    at: np.ndarray

    def __str__(self):
        kind = "counts" if self.one.counted else "weights"
        weight = "no weights" if self.one.weight is None else f"{kind} {self.one.weight.dtype}"
        return f"{self.relation}: calibrator {self.method} of {self.one.kind}, n = {self.one.n}, {weight}"

    def differences(self):
        """How far the two are apart, if by more than they may."""
        classes = 2 if self.one.vector else self.one.score.shape[1]

        def fitted(data):
            order = list(range(classes)) if data.labels is None else data.labels
            asked = {"pos_label": 1} if data.vector else {"labels": order}
            made = calibrant.Calibrator(self.method, **asked)
            return made.fit(data.score, data.label, **data.weighing(data.weight)), order

        one, _ = fitted(self.one)
        first = one.predict_proba(self.at)
        if self.relation == "saved and loaded":
            second = calibrant.Calibrator.from_json(one.to_json()).predict_proba(self.at)
        elif self.relation == "complement":
            second = 1 - fitted(self.other)[0].predict_proba(1 - self.at)
        else:
            other, order = fitted(self.other)
            at = self.at if self.one.vector else self.at[:, order]
            second = other.predict_proba(at)
            second = second if self.one.vector else second[:, np.argsort(order)]
        apart = float(np.abs(first - second).max())
        # Where few rows are near, the curve of kernel densities is a ratio of two sums that nearly vanish.
        most = 1e-6 if self.method == "density" else 1e-9
        if self.relation == "complement" or (self.relation == "order of classes" and classes == 2):
            # A probability near 1 has fewer digits than its complement, and so have the log-odds of both.
            away = np.minimum(self.one.score, 1 - self.one.score)
            most = max(most, min(1e-3, 2.0**-51 / np.min(away, where=away > 0, initial=1.0)))
        return [] if apart <= most else [f"probabilities differ by {apart:.2g}"]


def exact_complement(score):
    """Round scores to where 1 - p is exact, which leaves scores that tie up to rounding."""
    return np.rint(score * 2.0**53) / 2.0**53


def drawn_map_case(rng):
    """Draw a case of a calibrator."""
    relation = str(rng.choice(["order of rows", "order of classes", "complement", "saved and loaded"]))
    vector = relation == "complement" or (relation != "order of classes" and rng.random() < 0.5)
    data = draw(rng, vector=vector)
    if rng.random() < 0.7:
        data = with_shares(data, rng)
    single_score = data.vector or data.score.shape[1] == 2
    method = str(rng.choice([name for name in METHODS if METHODS[name].fit_binary or not single_score]))
    weighted = data.weight is not None and not data.counted
    if method == "density" and (np.unique(data.score).size < 3 or (relation == "complement" and weighted)):
        method = "auto"  # of importance weights, quartiles are counted from the lowest score
    if relation == "order of rows":
        data, other = in_another_order(data, rng, "binary")
    elif relation == "order of classes":
        if single_score:  # each column is one minus the other, as of a complement
            first = exact_complement(data.score[:, 0])
            data = replace(data, score=np.column_stack([first, 1 - first]))
        data, other = with_classes_in_another_order(data, rng, "binary")
    elif relation == "complement":
        data = replace(data, score=exact_complement(data.score))
        other = replace(data, score=1 - data.score, label=1 - data.label)
    else:
        other = data
    at = data.score[:60]
    if (
        method == "histogram"
    ):  # a score on the edge of two bins, where no row is, belongs to the one on its right
        at = at if data.weight is None else at[data.weight[:60] != 0]
    else:
        more = np.arange(33) / 32 if data.vector else rng.dirichlet(np.ones(data.score.shape[1]), 20)
        at = np.concatenate([at, more])
    return MapCase(relation, method, data, other, at)


def drawn_rows_case(rng, number):
    """Draw a case about the rows of all scores, which are three or more."""
    while True:
        data = draw(rng, vector=False)
        if data.score.shape[1] > 2:
            break
    if rng.random() < 0.7:
        data = with_shares(data, rng)
    relation = str(rng.choice(["order of rows", "order of classes"]))
    one, other = RELATIONS[relation](data, rng, "canonical")
    way = "estimate" if number // ESTIMATES % 10 == 0 else "ece"
    return Case(relation, way, "canonical", "auto", str(rng.choice(["l1", "l2"])), one, other)


def drawn_case(seed, number):
    """Draw a case."""
    rng = np.random.default_rng([seed, number])
    if number % ESTIMATES == OF_MAP:
        return drawn_map_case(rng)
    if number % ESTIMATES == OF_ROWS:
        return drawn_rows_case(rng, number)
    way = "estimate" if number % ESTIMATES == ESTIMATES - 1 else "ece"
    choice = [s for s in ALL if resolve(s).measures_ece and s not in SLOW] if way == "estimate" else ALL
    choice = choice or ["auto"]
    spec = choice[(number // ESTIMATES if way == "estimate" else number) % len(choice)]
    if way == "estimate" and rng.random() < 0.5:
        spec = "auto"
    norms = [norm for norm in resolve(spec).norms if way == "ece" or norm != "max"]
    norm = str(rng.choice(norms))
    grouped = number % GROUPS == GROUPS - 2
    if grouped:
        spec, norm = "auto", "l1"
    while True:
        others = [name for name in RELATIONS if name != GROUPED and (way == "ece" or name != "merge")]
        relation = GROUPED if grouped else str(rng.choice(others))
        own = {"merge": "sketch", GROUPED: "group"}.get(relation, way)
        vector = relation == "complement" or (relation != "order of classes" and rng.random() < 0.5)
        notion = str(rng.choice(VECTOR if vector else MATRIX))
        data = draw(rng, vector=vector, sizes=SIZES if way == "ece" or spec == "auto" else SIZES[:6])
        classes = 2 if vector else data.score.shape[1]
        if (notion == "top:2" and classes == 2) or (own == "estimate" and spec != "auto" and classes > 3):
            continue
        if "clusters" in relation or (relation not in ("merge", "complement") and rng.random() < 0.2):
            data = replace(data, cluster=rng.integers(0, 1 + data.n // 2, data.n))
        if relation == "clusters of one" and data.weight is not None:
            data = replace(data, counted=False)  # a counted row is a cluster
        one, other = RELATIONS[relation](data, rng, notion)
        if relation == "complement" and notion in ("binary", "correctness") and lopsided(spec, norm, one):
            continue
        held = one.weight != 0 if one.weight is not None else np.ones(one.n, dtype=bool)
        if not held.any() or any(too_few_clusters(each) for each in (one, other)):
            continue
        pieces = None
        if own in ("sketch", "group"):
            pieces = [piece for piece in pieces_of(one.n, rng) if held[piece].any()]
        return Case(relation, own, notion, spec, norm, one, other, pieces)


def too_few_clusters(data):
    """Whether all rows that weigh anything are in one cluster, which is refused."""
    if data.cluster is None:
        return False
    return len(set(data.cluster if data.weight is None else data.cluster[data.weight != 0])) < 2


def pieces_of(n, rng):
    return np.array_split(rng.permutation(n), int(rng.integers(1, min(n, 5) + 1)))


def case(seed, number):
    """Run a case; return a line for what is broken, nothing otherwise."""
    asked = drawn_case(seed, number)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cautions about what was asked are no faults
            warnings.simplefilter("error", RuntimeWarning)
            broken = asked.differences()
    except Exception as error:  # every one is a finding
        broken = [f"{type(error).__name__}: {error}"]
    return f"case({seed}, {number}), {asked}: {'; '.join(broken)}" if broken else ""


# --- decisions -----------------------------------------------------------------------------------------

#: One case in so many asks for the costs of decisions as well.
DECISIONS = 5
#: Relations of decisions: numbers stay the same; with other folds they move within their intervals.
DECISION_RELATIONS = ("order of rows", "no weight", "scale of weights", "names of clusters", "other folds")


def decided(data, cost):
    """Return the numbers of regret, of the best threshold and of the decision curve."""
    asked = {"sample_weight": data.weight, "cluster": data.cluster, "rng": 0}
    # What is expected if calibrated is not compared.
    with patch("calibrant.decisions.regret.NULL_DATA_SETS", 2):
        regret = calibrant.regret(data.label, data.score, cost, **asked)
    best = calibrant.best_threshold(data.label, data.score, cost, **asked)
    curve = calibrant.regret_curve(data.label, data.score, thresholds=[0.1, 0.5], **asked)
    numbers = {name: getattr(regret, name) for name in ("value", "low", "high", "recovered", "cost")}
    numbers |= {name: getattr(best, name) for name in ("gain", "gain_low", "gain_high", "cost_recalibrated")}
    parts = {name: getattr(curve, name) for name in ("value", "low", "high", "recalibrated")}
    return numbers | {f"curve {name} {k}": part[k] for name, part in parts.items() for k in (0, 1)}


def contradictions(found, most):
    """Return contradictions between numbers that are reported together; `most` is the largest cost."""
    slack = 1e-9 * most
    rules = {
        "low <= value <= high": found["low"] - slack <= found["value"] <= found["high"] + slack,
        "recovered <= value": found["recovered"] <= found["value"] + slack,
        "gain <= value": found["gain"] <= found["value"] + slack,
        "gain_low <= low": found["gain_low"] <= found["low"] + slack or found["gain_low"] <= 0,
        "gain_high <= high": found["gain_high"] <= found["high"] + slack or found["high"] >= most - slack,
        "recalibrated = cost - recovered": abs(
            found["cost"] - found["recovered"] - found["cost_recalibrated"]
        )
        <= slack,
    }
    return [f"not {rule}: {found}" for rule, holds in rules.items() if not holds]


def decision_case(seed, number):
    """Run a case of decisions; return a line for what is broken, nothing otherwise."""
    rng = np.random.default_rng([seed, number, 1])
    relation = DECISION_RELATIONS[number // DECISIONS % len(DECISION_RELATIONS)]
    while True:
        data = draw(rng, vector=True)
        if "clusters" in relation or rng.random() < 0.2:
            data = replace(data, cluster=rng.integers(0, 1 + data.n // 2, data.n))
        one, other = RELATIONS.get(relation, unchanged)(data, rng, "binary")
        held = one.weight is None or (one.weight != 0).any()
        if held and not any(too_few_clusters(each) for each in (one, other)):
            break
    cost = tuple(10 ** rng.uniform(-1.5, 1.5, 2))
    most = max(cost)
    about = f"decision_case({seed}, {number}), {relation}, {one.kind}, n = {one.n}, costs {cost}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            first = decided(one, cost)
            with patch.object(binary, "FOLD_SEED", binary.FOLD_SEED + (relation == "other folds")):
                second = decided(other, cost)
    except Exception as error:  # every one is a finding
        return f"{about}: {type(error).__name__}: {error}"
    broken = contradictions(first, most) + contradictions(second, most)
    if relation == "other folds":
        for name in ("", "curve "):
            for k in ("",) if name == "" else (" 0", " 1"):
                value, low, high = (f"{name}{part}{k}" for part in ("value", "low", "high"))
                if not first[low] - 1e-9 <= second[value] <= first[high] + 1e-9:
                    broken.append(f"{value} {second[value]!r} outside of {first[low]!r}, {first[high]!r}")
    else:
        broken += [
            f"{name} {first[name]!r} and {second[name]!r}"
            for name in first
            if not abs(first[name] - second[name]) <= 1e-7 * max(most, 1)
        ]
    return f"{about}: {'; '.join(broken)}" if broken else ""


def run(cases: int, seed: int) -> list[str]:
    """Run so many cases; return what is broken."""
    broken = [line for number in range(cases) if (line := case(seed, number))]
    return broken + [line for number in range(0, cases, DECISIONS) if (line := decision_case(seed, number))]
