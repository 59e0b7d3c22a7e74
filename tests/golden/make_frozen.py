"""Record what estimators and estimates return on random problems, to compare later versions with.

    python tests/golden/make_frozen.py

Written by calibrant 0.1.0 (2026-11). A named estimator keeps its numbers to
1e-9 within a major version: what is on record stays, and nothing is written if one of them moved. The default
and the intervals may improve, and are then recorded anew.
"""

import json
from pathlib import Path

import numpy as np

import calibrant

PROBLEMS, ESTIMATES = 500, 40
NAMES = (
    *(
        "l:10",
        "l:15",
        "l:sqrt",
        "a:10",
        "a:sqrt",
        "c:10",
        "c:sqrt",
        "ac:10",
        "ac:30",
        "d:silverman",
        "d:0.033",
    ),
    *("d:isj", "debiased", "debiased:sqrt", "sweep", "sweep:debiased", "isotonic", "beta", "beta-kernel"),
    *("variational", "smooth", "ks", "kuiper", "bayes"),
)
DEFAULT = "bayes"
MEASURES = ("smooth", "ks", "kuiper")
NORMS = {
    "debiased": ("l1", "l2"),
    "beta-kernel": ("l1", "l2"),
    "variational": ("l1",),
    "sweep:debiased": ("l1", "l2"),
}


def problem(seed):
    """Labels, scores and options of a random problem."""
    rng = np.random.default_rng([2026, seed])
    n, classes = int(rng.integers(1, 250)), int(rng.choice([1, 1, 2, 3, 5]))
    if classes == 1:
        score = rng.beta(*rng.choice([0.3, 1.0, 4.0], 2), n)
    else:
        score = rng.dirichlet(np.full(classes, rng.choice([0.3, 1.0])), n)
    if rng.random() < 0.3 and classes == 1:
        score = np.round(score, int(rng.integers(1, 3)))
    if rng.random() < 0.2 and classes == 1:
        score = score.astype(np.float32)
    chance = score.astype(np.float64)
    if classes == 1:
        label = (rng.random(n) < chance ** rng.choice([0.7, 1.0, 1.6])).astype(int)
    else:
        chance = chance ** rng.choice([0.7, 1.0, 1.6])
        edge = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
        label = (rng.random((n, 1)) > edge[:, :-1]).sum(axis=1)
    options = {}
    if rng.random() < 0.3:
        counted = rng.random() < 0.5
        options = {"counts": rng.integers(1, 4, n)} if counted else {"sample_weight": rng.gamma(2.0, 1.0, n)}
    notion = str(rng.choice(["binary", "confidence", "classwise"]))
    options["notion"] = notion
    if notion == "binary" and classes > 2:
        options["pos_label"] = int(rng.integers(classes))
    chosen = [str(name) for name in rng.choice(NAMES, 4, replace=False)]
    known = [NORMS.get(name) or NORMS.get(name.partition(":")[0]) or ("l1", "l2", "max") for name in chosen]
    norms = [str(rng.choice(some)) for some in known]
    norms = ["l1" if name in MEASURES else norm for name, norm in zip(chosen, norms, strict=True)]
    return label, score, options, list(zip(chosen, norms, strict=True))


def values(seed):
    """Errors of a random problem, each with its estimator and norm."""
    label, score, options, asked = problem(seed)
    return [[name, norm, calibrant.ece(label, score, estimator=name, norm=norm, **options)]
            for name, norm in asked]  # fmt: skip


def estimated(seed):
    """An estimate of a random problem, by the default and now and then by another estimator."""
    label, score, options, asked = problem(10_000 + seed)
    own = [name for name, _ in asked if name not in (*MEASURES, "beta-kernel", "d:isj")]
    name = own[0] if seed % 4 == 0 and own else "auto"
    found = calibrant.estimate(label, score, estimator=name, rng=seed, **options)
    return [name, found.value, found.low, found.high, found.p_value, found.null.mean, found.over]


def kept(found, recorded):
    """What goes on record for a problem: the default's values as found, and others as they were."""
    for one, other in zip(found, recorded, strict=True):
        moved = one[0] != DEFAULT and not abs(one[2] - other[2]) <= 1e-9
        if one[:2] != other[:2] or moved:
            raise SystemExit(f"a named estimator has moved: {one}, on record is {other}")
    return [one if one[0] == DEFAULT else other for one, other in zip(found, recorded, strict=True)]


if __name__ == "__main__":
    path = Path(__file__).with_name("frozen.json")
    recorded = json.loads(path.read_text())["values"]
    made = {
        "values": [kept(values(k), recorded[k]) for k in range(PROBLEMS)],
        "estimates": [estimated(k) for k in range(ESTIMATES)],
    }
    path.write_text(json.dumps(made).replace("]], [[", "]],\n[[") + "\n")
