"""What decisions cost, by plain loops over rows."""

import numpy as np


def net_benefit(outcome, score, threshold, weight=None):
    """True positives less false ones at the odds of the threshold, over all rows."""
    weight = np.ones(len(score)) if weight is None else weight
    found = 0.0
    for y, s, w in zip(outcome, score, weight, strict=True):
        if s >= threshold:
            found += w if y else -w * threshold / (1 - threshold)
    return found / sum(weight)


def net_benefit_error(outcome, score, threshold, weight=None, *, counts=False, cluster=None, other=None):
    """Standard error of a net benefit minus that of other scores (nobody treated), by loops over rows."""
    n = len(score)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    other = np.zeros(n) if other is None else other
    worth = [1.0 if y else -threshold / (1 - threshold) for y in outcome]
    each = [
        w * ((s >= threshold) * 1.0 - (o >= threshold)) for w, s, o in zip(worth, score, other, strict=True)
    ]
    mean = sum(w * x for w, x in zip(weight, each, strict=True)) / sum(weight)
    if cluster is None:
        squares = [(w if counts else w * w) * (x - mean) ** 2 for w, x in zip(weight, each, strict=True)]
        return np.sqrt(sum(squares)) / sum(weight)
    sums = {}
    for c, w, x in zip(cluster, weight, each, strict=True):
        sums[c] = sums.get(c, 0.0) + w * (x - mean)
    return np.sqrt(len(sums) / (len(sums) - 1) * sum(total**2 for total in sums.values())) / sum(weight)


def action(probability, cost):
    """The first of the actions whose expected cost is least, up to rounding."""
    expected = [
        sum(p * row[a] for p, row in zip(probability, cost, strict=True)) for a in range(len(cost[0]))
    ]
    return next(a for a, value in enumerate(expected) if value <= min(expected) + 1e-12)


def regret(probability, score, cost, weight=None):
    """Mean loss by the actions of the scores, where these are the probabilities; all by class."""
    weight = np.ones(len(score)) if weight is None else weight
    lost = 0.0
    for q, p, w in zip(probability, score, weight, strict=True):
        spent = [sum(q[k] * cost[k][a] for k in range(len(q))) for a in range(len(cost[0]))]
        lost += w * (spent[action(p, cost)] - min(spent))
    return lost / sum(weight)


def spent(code, score, cost, weight=None):
    """Mean cost of the actions of the scores."""
    weight = np.ones(len(score)) if weight is None else weight
    costs = [w * cost[y][action(p, cost)] for y, p, w in zip(code, score, weight, strict=True)]
    return sum(costs) / sum(weight)


def gain_of_cut(outcome, score, threshold, cut):
    """What acting from a cut on instead of from the threshold gains, at the costs of the threshold."""
    gained = 0.0
    for y, s in zip(outcome, score, strict=True):
        miss, alarm = (1 - threshold) * y, threshold * (1 - y)
        gained += (alarm if s >= threshold else miss) - (alarm if s >= cut else miss)
    return gained / len(score)
