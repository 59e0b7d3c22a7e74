"""Selective decisions by loops over rows: the curve, its variance and the area under it."""

from itertools import pairwise, permutations
from math import fsum


def curve(confidence, right, weight):
    """Return threshold, coverage and accuracy of every threshold, one after the other."""
    points, total = [], fsum(weight)
    for threshold in sorted(set(confidence), reverse=True):
        kept = [(r, w) for c, r, w in zip(confidence, right, weight, strict=True) if c >= threshold]
        mass = fsum(w for _, w in kept)
        points.append((threshold, mass / total, fsum(r * w for r, w in kept) / mass))
    return points


def variance(confidence, right, weight, square, threshold, local, cluster=None):
    """Return the variance of the accuracy of what is kept, at a fixed coverage, from what each row adds."""
    total = fsum(weight)
    kept = [c >= threshold for c in confidence]
    mass = fsum(w for w, k in zip(weight, kept, strict=True) if k)
    share = mass / total
    accuracy = fsum(w * r for w, r, k in zip(weight, right, kept, strict=True) if k) / mass
    added = [k * (r - local) / share - (accuracy - local) for r, k in zip(right, kept, strict=True)]
    if cluster is None:
        return fsum(v * a * a for v, a in zip(square, added, strict=True)) / total**2
    sums = {}
    for w, a, c in zip(weight, added, cluster, strict=True):
        sums[c] = sums.get(c, 0.0) + w * a
    return fsum(s * s for s in sums.values()) * len(sums) / (len(sums) - 1) / total**2


def area(confidence, right):
    """Return the mean risk over all numbers of rows kept, averaged over every order of tied rows."""
    found = []
    for order in permutations(range(len(right))):
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order)):
            wrong, risks = 0, []
            for k, row in enumerate(order, 1):
                wrong += 1 - right[row]
                risks.append(wrong / k)
            found.append(fsum(risks) / len(risks))
    return fsum(found) / len(found)
