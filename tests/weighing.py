"""Weights of either kind in tests: arrays of integers stand for counts, others for importance weights."""

import numpy as np

from calibrant.score_data import Sample


def are_counts(weight):
    """Whether weights of a test stand for counts."""
    return weight is None or np.asarray(weight).dtype.kind in "biu"


def weighing(weight):
    """The keyword of the public functions that weights of a test go to."""
    if weight is None:
        return {}
    return {"counts" if are_counts(weight) else "sample_weight": weight}


def weighted_sample(score, outcome, weight=None, support=(0.0, 1.0)):
    """Rows with weights of either kind."""
    return Sample(score, outcome, weight, support, counts=are_counts(weight))
