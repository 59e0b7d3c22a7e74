"""Slow versions of tables: a loop over subsets of rows, and a bootstrap of the macro average."""

import numpy as np

import calibrant


def loop(y_true, y_prob, columns, resamples, **options):
    """Estimate every combination of values that occurs by itself, in sorted order."""
    found = {}
    for key in sorted(set(zip(*(list(values) for values in columns), strict=True))):
        rows = [k for k in range(len(y_true)) if all(c[k] == v for c, v in zip(columns, key, strict=True))]
        own = {
            name: values[rows] if isinstance(values, np.ndarray) else values
            for name, values in options.items()
        }
        found[key] = calibrant.estimate(y_true[rows], y_prob[rows], n_resamples=resamples[key], **own)
    return found


def bootstrap_sd(residual, cell, cluster, rng, draws=2000):
    """Return the standard deviation of the mean over cells of the absolute mean residual.

    Clusters are drawn with replacement, each with its rows in all cells.
    """
    cells, clusters = np.unique(cell), np.unique(cluster)
    sums = np.array([[residual[(cluster == c) & (cell == k)].sum() for k in cells] for c in clusters])
    sizes = np.array([[np.sum((cluster == c) & (cell == k)) for k in cells] for c in clusters])
    means = []
    for _ in range(draws):
        drawn = rng.integers(0, len(clusters), len(clusters))
        means.append(np.mean(np.abs(sums[drawn].sum(axis=0) / sizes[drawn].sum(axis=0))))
    return float(np.std(means))
