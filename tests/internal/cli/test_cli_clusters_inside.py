"""Clusters in files, by the command line and by `calibrant.data`."""

import numpy as np
import pandas as pd
import pytest

import calibrant
from calibrant.data import ColumnRequest, stream
from reading import load


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), 6)
    p = rng.uniform(0.05, 0.95, 40)[cluster].round(3)
    y = rng.random(240) < rng.beta(2 * p, 2 - 2 * p)[6 * cluster]
    # Identifiers that begin as numbers and go on as text.
    patient = [str(k) if k < 30 else f"x{k}" for k in cluster]
    return pd.DataFrame(
        {"y": y.astype(int), "p": p, "q": (p**1.5).round(3), "patient": patient, "no": cluster}
    )


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request, frame, tmp_path):
    at = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        frame.to_csv(at, index=False)
    elif request.param == "jsonl":
        frame.to_json(at, orient="records", lines=True)
    else:
        frame.to_parquet(at)
    return at


def test_files_give_clusters_with_their_rows(frame, path):
    found = load(str(path), ColumnRequest(scores=("p",), cluster="patient"))
    assert found.cluster.tolist() == frame.patient.tolist()
    assert found.columns["cluster"] == ("patient",)
    assert load(str(path), ColumnRequest(scores=("p",))).cluster is None


def test_streams_refuse_clusters(path):
    with pytest.raises(calibrant.InputError, match="split between batches"):
        stream(str(path), ColumnRequest(scores=("p",), cluster="patient"))


def test_a_column_can_be_groups_and_clusters(frame, path):
    found = load(str(path), ColumnRequest(scores=("p",), groups="no", cluster="no"))
    assert found.cluster.tolist() == found.groups.tolist() == frame.no.tolist()
