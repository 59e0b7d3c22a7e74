"""Assessments that several tests look at."""

from dataclasses import replace
from functools import cache

import numpy as np

import calibrant
from calibrant.assessment.gates import LimitVerdict
from calibrant.inference.result import NAMES

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><b>&amp;{{ 7*7 }}",
    "\u202eevil]]> --> ${x} \n\r\0",
)


@cache
def binary():
    rng = np.random.default_rng(0)
    score = rng.beta(0.8, 0.8, 1500)
    return calibrant.assess(rng.random(1500) < score**1.6, score, rng=0, name="rain tomorrow")


@cache
def ten_classes():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 1.5, (600, 10))
    true, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, 2.0))
    label = (rng.random((600, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    groups = np.array(["day", "dusk", "night"])[np.arange(600) % 3]
    command = "calibrant report data.csv --label y --scores 'p_*'"
    return calibrant.assess(label, said, rng=0, class_names=names, groups=groups, command=command)


@cache
def hostile():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(4), 200)
    groups = np.array([*HOSTILE, "x" * 500])[np.arange(200) % 5]
    given = {"class_names": HOSTILE, "groups": groups, "name": HOSTILE[0], "command": HOSTILE[1]}
    return calibrant.assess(rng.integers(0, 4, 200), p, rng=0, **given)


@cache
def saturated():
    rng = np.random.default_rng(3)
    logit = rng.normal(8, 8, 3000)
    score = 1 / (1 + np.exp(-logit))
    return calibrant.assess(rng.random(3000) < 1 / (1 + np.exp(-logit / 2)), score, rng=0)


@cache
def whole_rows():
    """Three classes whose columns are not in the order of their names; `wolf` receives from `cat`."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1.0, 1.0, 1.0], 500)
    true = p.copy()
    true[:, 1] += 0.5 * p[:, 0]
    true[:, 0] *= 0.5
    label = (rng.random((500, 1)) >= true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    names = np.array(["wolf", "cat", "dog"])
    groups = np.array(["day", "night"])[np.arange(500) % 2]
    given = {"labels": names.tolist(), "groups": groups, "name": "animals"}
    return calibrant.assess(names[label], p, notion="canonical", rng=0, **given)


@cache
def too_many_classes():
    """The same as if there were too many classes for probability transfer."""
    found = whole_rows()
    seen = replace(found.estimate, lower_bound=True, at_least=0.05)
    return replace(found, estimates=found.estimates | {"canonical": seen}, probability_transfer=None)


def error_verdict(estimate, limit):
    """The calibration error of an estimate, compared with a limit."""
    subject = f"{NAMES[estimate.norm]} ({estimate.about})"
    return LimitVerdict("max_ece", subject, limit, estimate, estimate.level, estimate.n, estimate.clusters)
