"""Correlation of two errors by loops over rows, matched by the ids of their clusters."""

from math import sqrt


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
