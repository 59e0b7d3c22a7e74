"""Clusters as callers pass them."""

import numpy as np
import pandas as pd
import pytest

import calibrant

Y, P = [0, 1, 1, 0, 1, 0], [0.1, 0.4, 0.8, 0.3, 0.9, 0.2]


@pytest.mark.parametrize(
    ("cluster", "error"),
    [
        ([1, 2, 3], "as long as y_true, got 3 clusters for 6 labels"),
        ([1, 1, 2, 2, 3, None], "have no missing values, got None at row 5"),
        ([1, 1, np.nan, 2, 3, 3], "have no missing values, got nan at row 2"),
        (["ann"] * 6, "at least two clusters, got 'ann' in every row"),
        (np.zeros((6, 2)), "be one-dimensional"),
        ([[1], [1], [2], [2], [3], [3]], "be one-dimensional"),
        (pd.Series([1, 1, 2, 2, 3, None], dtype="Int64"), "have no missing values"),
    ],
)
@pytest.mark.parametrize("function", [calibrant.ece, calibrant.mce, calibrant.estimate, calibrant.assess])
def test_what_is_no_cluster_is_refused(function, cluster, error):
    with pytest.raises(calibrant.InputError, match=f"cluster must .*{error}"):
        function(Y, P, cluster=cluster)


def test_a_comparison_refuses_it_too():
    with pytest.raises(calibrant.InputError, match="cluster must be as long"):
        calibrant.compare(Y, {"a": P, "b": P}, cluster=[1])


@pytest.mark.parametrize(
    "call",
    [
        lambda sketch: calibrant.Sketch().update(Y, P, cluster=[1] * 6),
        lambda sketch: calibrant.Sketch.from_files("nowhere.csv", cluster="patient"),
        lambda sketch: calibrant.Sketch.from_files_by_group("nowhere.csv", groups="g", cluster="patient"),
        lambda sketch: calibrant.Sketch.from_frame(pd.DataFrame(), label="y", scores="p", cluster="patient"),
        lambda sketch: calibrant.Sketch.from_frame_by_group(
            pd.DataFrame(), label="y", scores="p", groups="g", cluster="patient"
        ),
        lambda sketch: sketch.ece(cluster=[1] * 6),
        lambda sketch: sketch.estimate(cluster=[1] * 6),
        lambda sketch: sketch.assess(cluster=[1] * 6),
    ],
)
def test_sums_refuse_clusters_and_say_why(call):
    with pytest.raises(
        calibrant.InputError, match=r"cannot hold a cluster that is split between batches.*estimate"
    ):
        call(calibrant.Sketch().update(Y, P))


def test_other_functions_have_no_such_argument():
    with pytest.raises(TypeError, match="unexpected keyword argument 'cluster'"):
        calibrant.score_histogram(Y, P, cluster=[1, 1, 2, 2, 3, 3])
