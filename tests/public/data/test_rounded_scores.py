"""Softmax scores written with six decimals give the same numbers through every input."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Sketch, cli
from engines import needed
from shortcuts import read_as_sums

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


ARRAYS = {
    "float64": (lambda p: p, 1e-12),
    "columns": (np.asfortranarray, 1e-12),
    "list": (lambda p: p.tolist(), 1e-12),
    "pandas": (pd.DataFrame, 1e-12),
    "polars": (lambda p: pl.DataFrame(p), 1e-12),
    "pyarrow": (lambda p: pa.table({str(k): p[:, k] for k in range(p.shape[1])}), 1e-12),
    # In single precision the same rows are renormalised; in half precision decimals cannot be seen.
    "float32": (lambda p: p.astype(np.float32), 1e-6),
    "float16": (lambda p: p.astype(np.float16), 2e-3),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_and_frames_in_memory(rows, kind):
    y, p, exact = rows
    make, tolerance = ARRAYS[kind]
    expected = estimated(y, exact)
    found = estimated(y, make(p))
    assert found.value == pytest.approx(expected.value, abs=tolerance)
    count = (p != exact).any(axis=1).sum()
    if kind != "float16":
        assert found.cautions[0].startswith(f"{count} of {N} rows did not sum to 1 because of rounding")
    assert calibrant.ece(y, make(p), estimator="uniform:10") == found.value
    assert expected.cautions == ()


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


@pytest.mark.parametrize("command", [["ece"], ["check", "--max-ece", "0.9"], ["report"]])
def test_commands_print_the_caution(command, tmp_path, without_reference_estimators):
    y, p = np.arange(100) % 3, np.full((100, 3), 0.3333)
    path, name = written(frame_of(y, p), tmp_path / "scores.csv"), command[0]
    more = ["-o", str(tmp_path / "report.html")] if name == "report" else []
    done = CliRunner().invoke(cli.main, [name, path, *command[1:], *more, "--seed", "0", "-q"])
    assert done.exit_code == 0, done.output
    text = done.output + ((tmp_path / "report.html").read_text() if more else "")
    text = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "100 of 100 rows did not sum to 1 because of rounding (largest deviation 0.0001)" in text


@pytest.mark.parametrize(
    ("command", "sums"),
    [
        (["curve", "--at", "0.3"], False),
        (["curve", "--at", "0.3"], True),
        (["ece", "--norm", "max"], False),
        (["ece", "--norm", "max"], True),
        (["recommend", "--estimator", "l:5"], False),
    ],
)
def test_commands_whose_result_has_no_cautions_note_it(command, sums, tmp_path, monkeypatch):
    y, p = np.arange(40) % 3, np.array([[0.3333, 0.3333, 0.3333], [0.2, 0.3, 0.5]] * 20)
    path = written(frame_of(y, p), tmp_path / "scores.csv")
    if sums:
        read_as_sums(monkeypatch)
    done = CliRunner().invoke(cli.main, [command[0], path, *command[1:], "-q"])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("caution: 20 of 40 rows did not sum to 1 because of rounding")
    assert "rounding" not in done.stdout


@pytest.mark.parametrize("step", [1, 7, N])
def test_a_sketch_in_chunks(rows, step):
    y, p, exact = rows
    expected, sketch = Sketch("confidence").update(y, exact), Sketch("confidence")
    for a in range(0, N, step):
        sketch.update(y[a : a + step], p[a : a + step])
    assert sketch.totals.renormalised == (p != exact).any(axis=1).sum()
    assert sketch.ece() == pytest.approx(expected.ece(), abs=1e-12)


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "duckdb": lambda frame: needed("duckdb").from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(rows, kind):
    y, p, exact = rows
    frame = FRAMES[kind](frame_of(y, p))
    for notion in ("confidence", "classwise"):
        sketch = Sketch.from_frame(frame, label="label", scores="p_*", notion=notion)
        assert sketch.totals.renormalised == (p != exact).any(axis=1).sum()
        expected = Sketch(notion).update(y, exact).ece(estimator="uniform:10")
        assert sketch.ece(estimator="uniform:10") == pytest.approx(expected, abs=1e-12)


def test_each_group_counts_its_own_rows(rows, tmp_path):
    y, p, exact = rows
    frame, group = frame_of(y, p), np.arange(N) % 3
    frame["group"] = group
    path = tmp_path / "scores.parquet"
    frame.to_parquet(path)
    counts = {k: int((p != exact).any(axis=1)[group == k].sum()) for k in range(3)}
    names = {"label": "label", "scores": "p_*", "groups": "group"}
    for sketches in (
        Sketch.from_frame_by_group(frame, **names),
        Sketch.from_files_by_group(str(path), **names),
    ):
        assert {k: sketch.totals.renormalised for k, sketch in sketches.items()} == counts


def test_other_faults_of_a_frame_are_named_beside_rounded_rows(rows):
    y, p, _ = rows
    frame = frame_of(y, p).assign(w=[-1.0, *[1.0] * (N - 1)])
    with pytest.raises(ValueError, match="column 'w' must be finite and at least 0"):
        Sketch.from_frame(frame, label="label", scores="p_*", sample_weight="w")


def test_percentages_have_digits_of_their_own(rows, tmp_path):
    y, p, exact = rows
    frame = frame_of(y, p)
    share = written(frame, tmp_path / "share.csv")
    columns = [name for name in frame if name != "label"]
    percent = tmp_path / "percent.csv"
    # The same digits, with the point two places further on.
    frame.assign(**{name: [f"{v:.4f}" for v in 100 * frame[name]] for name in columns}).to_csv(
        percent, index=False
    )
    found = Sketch.from_files(str(percent), percent=True)
    assert found.totals.renormalised == Sketch.from_files(share).totals.renormalised > 0
    assert found.ece() == pytest.approx(Sketch("confidence").update(y, exact).ece(), abs=1e-12)
