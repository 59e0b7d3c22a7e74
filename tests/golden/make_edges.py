"""Writes edges.json: binned errors where scores coincide with edges, with centres or with each other.

    PYTHONPATH=tests python tests/golden/make_edges.py

Per case: scores, outcomes, weights and their dtype, the number of bins "sqrt" comes to, and under
"values" the errors [l1, l2, max] by estimator, as "ac:30" or, with the weights the paper prints,
"ac:30:published". "delicate" lists the values that rounding decides, by reason:

- "light bin": a bin holds less than 1e-9 of the mass, so its gap, and with it `max`, is decided by rounding;
- "close centres": a score lies between two centres less than 1e-6 apart, so that sums per bin cancel;
- "score at a centre": the printed weights jump there; centres are midpoints of edges in double precision,
  and a score equal to one counts as left of it.
"""

import json
from itertools import pairwise
from math import inf, nextafter
from pathlib import Path

import numpy as np

from oracles import binned

ESTIMATORS = {
    "l": ("uniform", "one"),
    "a": ("adaptive", "one"),
    "c": ("uniform", "convex"),
    "ac": ("adaptive", "convex"),
}
N_BINS = [1, 2, 10, 30, 100, "sqrt"]
NORMS = ["l1", "l2", "max"]


def cases():
    """Name -> (scores, outcomes, weights or None)."""
    rng = np.random.default_rng(20)

    def outcomes(scores):
        return [int(u < 0.2 + 0.6 * s) for u, s in zip(rng.random(len(scores)), scores, strict=True)]

    def case(scores, weights=None):
        scores = [float(s) for s in scores]
        return scores, outcomes(scores), weights

    found = {}
    for n_bins in (10, 15, 20, 30, 100):
        edges = [i / n_bins for i in range(n_bins + 1)]
        centres = [(left + right) / 2 for left, right in pairwise(edges)]
        found[f"on the edges of {n_bins}"] = case(edges)
        found[f"on the centres of {n_bins}"] = case(centres)
        found[f"on rounded centres of {n_bins}"] = case([(2 * i + 1) / (2 * n_bins) for i in range(n_bins)])
    for n_bins in (10, 30, 100):
        edges = [i / n_bins for i in range(0, n_bins + 1, max(1, n_bins // 30))]
        beside = [nextafter(e, -inf) for e in edges[1:]] + [nextafter(e, inf) for e in edges[:-1]]
        found[f"one ulp beside the edges of {n_bins}"] = case(beside)
    centres = [0.05, 0.15, 0.25, 0.95]
    beside = [nextafter(c, side) for c in centres for side in (-inf, inf)]
    found["one ulp beside centres of 10"] = case(beside + centres)
    found["the first centre of 10"] = ([0.05, 0.05, 0.5], [0, 1, 1], None)
    found["the last centre of 10"] = ([0.95, 0.95, 0.5], [0, 1, 1], None)
    found["misplaced by multiplication"] = case([0.29, 0.57, 0.58] * 4 + [0.28, 0.56, 0.59, 0.3])
    found["one over the number of classes"] = case([1 / c for c in range(1, 25)])
    found["zeros and ones"] = case([0.0] * 6 + [1.0] * 8)
    found["zeros, ones and some between"] = case([0.0] * 5 + [0.2, 0.45, 0.6, 0.61] + [1.0] * 7)

    found["most scores equal"] = case([0.1, 0.2, 0.35] + [0.5] * 22 + [0.55, 0.7, 0.7, 0.9, 0.99])
    found["most scores zero"] = case([0.0] * 25 + [0.01, 0.3, 0.3, 0.8, 1.0])
    found["most scores one"] = case([0.0, 0.3, 0.3, 0.8, 0.99] + [1.0] * 25)
    found["three values"] = case([0.2] * 15 + [0.6] * 15 + [0.7] * 15)
    found["two decimals"] = case(np.round(rng.beta(0.5, 0.5, 90), 2))
    found["one decimal"] = case(np.round(rng.beta(0.7, 1.5, 90), 1))
    found["single precision"] = case(rng.random(24).astype(np.float32))
    found["a tie to each cut of 10"] = case(np.repeat(rng.random(10), 6))
    found["a cut inside each tie of 10"] = case(np.repeat(np.sort(rng.random(12)), 5)[2:-2])

    for n in (2, 3, 7, 9, 29):
        found[f"{n} scores"] = case(rng.random(n))
    for score in (0.0, 0.05, 0.3, 0.5, 1.0):
        for outcome in (0, 1):
            found[f"one score of {score}, outcome {outcome}"] = ([score], [outcome], None)
    for score in (0.0, 0.3, 0.5, 1.0):
        found[f"all scores {score}"] = ([score] * 12, [0, 1, 1] * 4, None)
    some = [float(s) for s in np.round(rng.random(25), 3)]
    found["no outcome positive"] = (some, [0] * 25, None)
    found["every outcome positive"] = (some, [1] * 25, None)

    near_one = [1 - 10.0**-k for k in np.linspace(12, 16, 13)]
    found["saturated at one"] = ([*near_one, 1.0, 1.0], [1, 0, 1, 1, 0] * 3, None)
    with_others = [0.2, 0.4, 0.5, 0.7, 0.9, 0.99, *near_one, 1.0, 1.0]
    found["saturated at one, with others"] = (with_others, [0, 1, 1] * 7, None)
    near_zero = [0.0, 0.0, 1e-300, 1e-100, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3, 0.3]
    found["saturated at zero"] = (near_zero, [0, 1, 0, 0, 1] * 2, None)

    tied = [float(s) for s in np.round(rng.beta(0.5, 0.5, 40), 1)]
    counts = [int(c) for c in rng.integers(0, 6, 40)]
    found["counts"] = case(rng.random(40), counts)
    found["counts on ties"] = case(tied, counts)
    found["one large count"] = case([0.1, 0.3, 0.5, 0.8], [1, 2, 60, 1])
    weights = [float(w) for w in rng.exponential(size=40)]
    found["weights"] = case(rng.random(40), weights)
    found["weights on ties"] = case(tied, weights)
    found["weights, some zero"] = case(tied, [w if i % 3 else 0.0 for i, w in enumerate(weights)])
    found["equal weights"] = case(rng.random(36), [0.1] * 36)
    found["whole weights as floats"] = case(rng.random(40), [float(1 + c) for c in counts])
    found["one large weight"] = case(rng.random(20), [0.01] * 19 + [5.0])
    found["weights on edges of 10"] = case([i / 10 for i in range(11)] * 2, weights[:22])
    return found


def as_array(weights):
    """Weights with the dtype that says what they are: counts or importance."""
    return None if weights is None else np.array(weights)


def delicate(sample, binning, mapping, n_bins, per_bin):
    """Reasons why rounding decides a value."""
    masses = [mass for _, mass, _, _ in per_bin if mass > 0]
    if min(masses) < sum(masses) / 10**9:
        yield "light bin"
    if mapping == "one":
        return
    edges = {"uniform": binned.uniform_edges, "adaptive": binned.adaptive_edges}[binning](sample, n_bins)
    centres, scores = list(binned.bins_around_centres(edges)), {score for score, _, _ in sample}
    for left, right in pairwise(centres):
        if right - left < 1e-6 and any(left < score < right for score in scores):
            yield "close centres"
            break
    at_centre = any(abs(score - centre) <= 4e-16 for score in scores for centre in centres)
    if mapping == "published" and len(centres) > 1 and at_centre:
        yield "score at a centre"


def evaluate(scores, outcomes, weights):
    """The record of one case."""
    sample = binned.rows(scores, outcomes, as_array(weights))
    values, reasons = {}, {}
    for name, (binning, mapping) in ESTIMATORS.items():
        for n_bins in N_BINS:
            for version in (mapping,) if mapping == "one" else (mapping, "published"):
                key = f"{name}:{n_bins}" + (":published" if version == "published" else "")
                per_bin = binned.totals(sample, binning, version, n_bins)
                values[key] = [binned.norm_of(per_bin, norm) for norm in NORMS]
                for reason in delicate(sample, binning, version, n_bins, per_bin):
                    reasons.setdefault(reason, []).append(key)
    return {
        "scores": scores,
        "outcomes": outcomes,
        "weights": weights,
        "weights_dtype": None if weights is None else str(as_array(weights).dtype),
        "sqrt_bins": binned.number_of_bins(sample, "sqrt"),
        "values": values,
        "delicate": reasons,
    }


def main():
    records = {name: evaluate(*case) for name, case in cases().items()}
    note = " ".join(__doc__.split("Per case: ")[1].split())
    lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()]
    text = '{"note": %s,\n"norms": %s,\n"cases": {\n%s\n}}\n'
    target = Path(__file__).with_name("edges.json")
    target.write_text(text % (json.dumps("Per case: " + note), json.dumps(NORMS), ",\n".join(lines)))


if __name__ == "__main__":
    main()
