"""Clusters as callers pass them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant
from calibrant.inputs import in_clusters, predictions, select_rows
from weighing import weighing

Y, P = [0, 1, 1, 0, 1, 0], [0.1, 0.4, 0.8, 0.3, 0.9, 0.2]


@pytest.mark.parametrize(
    "cluster",
    [
        ["b", "a", "a", "c", "c", "b"],
        np.array([20, 10, 10, -3, -3, 20]),
        np.array([2.5, 0.5, 0.5, 1.0, 1.0, 2.5]),
        pd.Series(["b", "a", "a", "c", "c", "b"], index=range(6, 12)),
        pd.Categorical(["b", "a", "a", "c", "c", "b"]),
        pl.Series([2, 1, 1, 3, 3, 2]),
        [("b", 1), ("a", 1), ("a", 1), ("c", 1), ("c", 1), ("b", 1)],
    ],
)
def test_clusters_may_be_anything_that_can_be_told_apart(cluster):
    if isinstance(cluster, list) and isinstance(cluster[0], tuple):
        values = np.empty(6, dtype=object)
        values[:] = cluster
        cluster = values
    found = in_clusters(predictions(Y, P), cluster).cluster
    wanted = in_clusters(predictions(Y, P), [0, 1, 1, 2, 2, 0]).cluster
    assert found.tolist() == wanted.tolist()
    assert sorted(set(found.tolist())) == [0, 1, 2]


def test_rows_without_weight_are_left_out():
    weight = [1, 0, 1, 1, 0, 1]
    data = predictions(Y, P, sample_weight=weight)
    assert len(in_clusters(data, ["a", "x", "a", "b", "y", "b"]).cluster) == 4
    with pytest.raises(calibrant.InputError, match="at least two"):
        in_clusters(data, ["a", "x", "a", "a", "y", "a"])


@pytest.mark.parametrize("kind", [int, float])
def test_clusters_are_numbered_by_what_they_hold(kind):
    rng = np.random.default_rng(0)
    y, p, weight = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60).round(1), rng.integers(1, 3, 60)
    weight = weight.astype(kind)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    p = np.abs(p)
    cluster, names = rng.integers(0, 9, 60), rng.permutation(9)
    order, columns = rng.permutation(60), np.array([2, 0, 1])
    one = in_clusters(predictions(y, p, **weighing(weight)), cluster)
    moved = y[order], p[order], weight[order]
    other = in_clusters(predictions(*moved[:2], **weighing(moved[2])), names[cluster[order]])
    assert other.cluster.tolist() == one.cluster[order].tolist()
    turned = columns.argsort()[y], p[:, columns]
    third = in_clusters(predictions(*turned, **weighing(weight)), names[cluster])
    assert third.cluster.tolist() == one.cluster.tolist()
    if kind is int:
        rows = np.repeat(np.arange(60), weight)
        again = in_clusters(predictions(y[rows], p[rows]), names[cluster[rows]])
        assert again.cluster.tolist() == one.cluster[rows].tolist()


def test_some_rows_keep_the_clusters_that_are_left():
    data = in_clusters(predictions(Y, P), ["a", "a", "b", "b", "c", "c"])
    left = select_rows(data, np.array([True, True, False, False, True, True]))
    assert sorted(set(left.cluster.tolist())) == [0, 1]
    assert select_rows(predictions(Y, P), np.arange(6) < 2).cluster is None
