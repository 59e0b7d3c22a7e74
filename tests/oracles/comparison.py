"""Correlation of two errors by loops over rows, matched by the ids of their clusters; their difference."""

from math import cos, hypot, pi, sin, sqrt


def correlation_of_clusters(a, b):
    """Return the correlation of two estimates from (contribution, weight, cluster id) of the rows of each."""
    sums = []
    for rows in (a, b):
        total = sum(weight for _, weight, _ in rows)
        mean = sum(weight * value for value, weight, _ in rows) / total
        by_id = {}
        for value, weight, cluster in rows:
            by_id[cluster] = by_id.get(cluster, 0.0) + weight * (value - mean) / total
        sums.append(by_id)
    first, second = sums
    joint = sum(first[cluster] * second[cluster] for cluster in first if cluster in second)
    return joint / sqrt(sum(v * v for v in first.values()) * sum(v * v for v in second.values()))


def least_difference(a, b, rho, angles=20_000):
    """Return the lower end of the interval of a - b: the least value on an ellipse of deviates, less a bias.

    Errors are off by normal deviates of correlation rho, times the margin on the side of the deviate.
    """
    bias = [min(hypot(e.low, e.null.mean) - e.low, e.value - e.low) for e in (a, b)]
    least = 0.0
    for k in range(angles):
        angle = 2 * pi * k / angles
        deviates = cos(angle), rho * cos(angle) + sqrt(1 - rho**2) * sin(angle)
        moved = [
            z * ((e.high - e.value) if z > 0 else (e.value - e.low - shift))
            for z, e, shift in zip(deviates, (a, b), bias, strict=True)
        ]
        least = min(least, moved[0] - moved[1])
    return a.value - b.value + least - bias[0] * (sqrt(1 - rho**2) if rho > 0 else 1)
