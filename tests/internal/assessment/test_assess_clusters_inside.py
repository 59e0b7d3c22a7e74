"""Assessments of rows that belong together."""

import dataclasses

import numpy as np
import pytest

import calibrant
from calibrant.inference.estimate import SINGLE_CLUSTER
from weighing import weighing

pytestmark = pytest.mark.no_cover


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 8)
    p = rng.uniform(0.05, 0.95, 60)[cluster]
    return rng.random(480) < rng.beta(2 * p, 2 - 2 * p)[8 * cluster], p, cluster


def alone(rows, weighted, matrix):
    """Scores, labels, weights, groups and clusters; the first group is one cluster, the second has three."""
    rng = np.random.default_rng(rows)
    group = rng.permutation(np.arange(rows) % 3)
    several, many = 1 + rng.integers(3, size=rows), rng.integers(4, 30, rows)
    cluster = np.select([group == 0, group == 1], [0, several], many)
    if matrix:
        score = rng.dirichlet(np.ones(3), rows)
        y = (rng.random((rows, 1)) > score.cumsum(axis=1)).sum(axis=1) % 3
    else:
        score = rng.random(rows).round(2)
        y = (rng.random(rows) < score**1.5).astype(int)
    weight = {"counts": rng.integers(1, 4, rows), "weights": rng.random(rows) + 0.2}.get(weighted)
    return y, score, weight, group, cluster


@pytest.mark.parametrize("weighted", ["none", "counts", "weights"])
@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.usefixtures("without_reference_estimators")
def test_the_result_of_a_group_is_that_of_its_rows_alone(notion, weighted, clustered):
    y, score, weight, group, cluster = alone(150, weighted, matrix=notion != "binary")
    options = {"notion": notion, "rng": 7, "labels": [0, 1, 2] if score.ndim == 2 else [0, 1]}
    found = calibrant.assess(
        y, score, groups=group, cluster=cluster if clustered else None, **weighing(weight), **options
    )
    assert len(found.by_group) == 3
    for row in found.by_group:
        own = group == int(row.name)
        several = clustered and np.unique(cluster[own]).size > 1
        single = calibrant.estimate(
            y[own],
            score[own],
            cluster=cluster[own] if several else None,
            **weighing(None if weight is None else weight[own]),
            level=row.estimate.level,
            n_resamples=row.estimate.n_resamples,
            **options,
        )
        if clustered and not several:
            single = dataclasses.replace(single, clusters=1, cautions=(SINGLE_CLUSTER,))
            by_class = {k: dataclasses.replace(v, clusters=1) for k, v in (single.by_class or {}).items()}
            single = dataclasses.replace(single, by_class=by_class or None)
        assert row.estimate.to_dict() == single.to_dict()
