"""Proper scores of one event taken apart by plain loops: pool adjacent violators, add up."""

import math


def pooled(score, outcome, weight):
    """Isotonic frequency at each row's score; tied scores share one."""
    blocks = []  # [weight, weighted outcome, scores]
    for s in sorted(set(score)):
        own = [i for i, v in enumerate(score) if v == s]
        blocks.append([sum(weight[i] for i in own), sum(weight[i] * outcome[i] for i in own), {s}])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
            w, wy, held = blocks.pop()
            blocks[-1] = [blocks[-1][0] + w, blocks[-1][1] + wy, blocks[-1][2] | held]
    table = {s: wy / w for w, wy, held in blocks for s in held}
    return [table[s] for s in score]


def brier(p, y):
    return (p - y) ** 2


def log_loss(p, y):
    chance = p if y else 1 - p
    return math.inf if chance == 0 else -math.log(chance)


def event(score, outcome, weight):
    """(value, calibration, resolution, uncertainty) of the Brier score and of the log loss."""
    total = sum(weight)
    base = sum(w * y for w, y in zip(weight, outcome, strict=True)) / total
    better = pooled(score, outcome, weight)
    found = []
    for loss in (brier, log_loss):
        mean = [
            sum(w * loss(p, y) for w, p, y in zip(weight, ps, outcome, strict=True)) / total
            for ps in (score, better, [base] * len(score))
        ]
        found.append((mean[0], mean[0] - mean[1], mean[2] - mean[1], mean[2]))
    return found
