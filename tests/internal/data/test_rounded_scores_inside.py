"""Softmax scores written with six decimals give the same numbers through every input."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Sketch, cli
from calibrant.data import ColumnRequest
from reading import load

N = 400


@pytest.fixture(scope="module", params=[10, 100])
def rows(request):
    """Labels, scores with six decimals, and these with each row that is off divided by its sum."""
    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(0, 2, (N, request.param)))
    p = (p / p.sum(axis=1, keepdims=True)).round(6)
    y = (p.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, request.param - 1)
    exact = np.array(
        [row if abs(sum(row) - 1) < 1.5e-6 else [v / sum(row) for v in row] for row in p.tolist()]
    )
    return y, p, exact


def frame_of(y, p):
    return pd.DataFrame({"label": y} | {f"p_{k}": p[:, k] for k in range(p.shape[1])})


def estimated(y, p, **options):
    return calibrant.estimate(y, p, estimator="uniform:10", rng=0, **options)


def written(frame, path):
    suffix = path.suffix
    if suffix == ".csv":
        frame.to_csv(path, index=False, float_format="%.6f")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".arrow":
        frame.to_feather(path)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=6)
    else:
        np.savez(path, y_true=frame["label"], y_prob=frame.drop(columns="label").to_numpy())
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".jsonl", ".npz"])
def test_files(rows, suffix, tmp_path):
    y, p, exact = rows
    path = written(frame_of(y, p), tmp_path / f"scores{suffix}")
    data, expected = load(path, ColumnRequest()), estimated(y, exact)
    assert estimated(data.y_true, data.y_prob, labels=data.labels).value == pytest.approx(
        expected.value, abs=1e-12
    )
    reference = Sketch("confidence").update(y, exact)
    count = int((p != exact).any(axis=1).sum())
    for batch_rows in (7, 1000):
        sketch = Sketch.from_files(path, batch_rows=batch_rows)
        assert sketch.totals.renormalised == count
        assert sketch.ece(estimator="uniform:10") == pytest.approx(
            reference.ece(estimator="uniform:10"), abs=1e-12
        )
    done = CliRunner().invoke(
        cli.main, ["ece", path, "--estimator", "uniform:10", "--seed", "0", "--json", "-q"]
    )
    assert done.exit_code == 0, done.output
    values = json.loads(done.output)
    assert values["value"] == pytest.approx(expected.value, abs=1e-12)
    assert values["cautions"][0].startswith(f"{count} of {N} rows")
