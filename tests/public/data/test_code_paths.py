"""All code paths read the same, or all refuse: names, quotes, weights and labels that only one path knew."""

import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import calibrant
from calibrant import InputError, Sketch

RNG = np.random.default_rng(0)
P = RNG.random(40)
Y = (RNG.random(40) < P).astype(int)


def engines(columns):
    ibis = pytest.importorskip("ibis")
    dd = pytest.importorskip("dask.dataframe")
    table = pa.table(columns)
    yield table
    yield table.to_pandas()
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    yield pl.from_arrow(table)
    yield pl.from_arrow(table).lazy()
    yield duckdb.from_arrow(table)
    yield dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)
    yield ibis.memtable(table)


def refusal(code_path):
    with pytest.raises(ValueError) as raised:
        code_path()
    return str(raised.value)


def write(path, columns):
    """Write columns as they are, texts as texts."""
    if path.suffix == ".npz":
        np.savez(path, **{name: np.asarray(column) for name, column in columns.items()})
    elif path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif path.suffix == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    else:
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)


def test_a_name_twice_in_a_result_is_refused():
    estimate = calibrant.estimate(Y, P, rng=0)
    text = estimate.to_json()
    assert calibrant.Estimate.from_json(text) == estimate
    with pytest.raises(ValueError, match="twice"):
        calibrant.Estimate.from_json(text[:-1] + ', "value": 0.5}')


def test_pages_show_halves_of_characters_by_number():
    groups = np.array(["x\udcff", "b"], dtype=object)[np.arange(40) % 2]
    assessed = calibrant.assess(Y, P, groups=groups, name="m\udcff", command="calibrant \udcff", rng=0)
    for page in (assessed.html(), assessed._repr_html_()):
        assert b"\\udcff" in page.encode()
    assert json.loads(assessed.to_json())["name"] == "m\udcff"


# Labels and weights of engines


@pytest.mark.full
@pytest.mark.parametrize(
    "labels",
    [["a", None, "b", "a"], [1, None, 0, 1], [1.0, None, 0.0, 1.0], [None, None, None, 1]],
    ids=str,
)
def test_null_labels_are_refused_alike_by_every_engine(labels):
    count = labels.count(None)
    for frame in engines({"y": labels, "p": P[:4]}):
        text = refusal(lambda frame=frame: Sketch.from_frame(frame, label="y", scores="p", pos_label=1))
        assert text == f"column 'y' must have no missing values, got {count} in 4 rows" + (
            '; pass missing="drop" to leave out rows without a label'
        )


@pytest.mark.full
def test_counts_above_2_to_the_53_are_the_same_in_every_engine():
    weights = [2**53 + 1, 3, 2**60, 0]
    due = Sketch("binary").update([1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], counts=weights)
    for frame in engines({"y": [1, 1, 0, 1], "p": [0.1, 0.2, 0.3, 0.4], "w": weights}):
        found = Sketch.from_frame(frame, label="y", scores="p", counts="w")
        assert found.totals.weight == due.totals.weight
        assert found.ece(estimator="uniform:10") == pytest.approx(due.ece(estimator="uniform:10"), rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("weights", [[2**62, 2**62, 1, 1], [1, 2**62, 1, 2**62]])
def test_counts_that_sum_to_2_to_the_63_are_refused_by_every_road(tmp_path, weights):
    columns = {"y": [1, 1, 0, 1], "p": [0.1, 0.2, 0.3, 0.4], "w": weights}
    rule = "must sum to less than 2^63"
    with pytest.raises(InputError, match=r"2\^63"):
        calibrant.ece(columns["y"], columns["p"], counts=weights)
    for frame in engines(columns):
        text = refusal(lambda frame=frame: Sketch.from_frame(frame, label="y", scores="p", counts="w"))
        assert f"column 'w' {rule}" in text
    path = tmp_path / "a.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    for rows in (None, 1):
        asked = {"counts": "w", "batch_rows": rows}
        assert rule in refusal(lambda asked=asked: Sketch.from_files(path, **asked))


def test_labels_of_a_type_that_cannot_hold_all_classes_are_read():
    """An unsigned column has no -1."""
    for frame in engines({"y": pa.array([1, 1, 1, 1], pa.uint8()), "p": P[:4]}):
        assert Sketch.from_frame(frame, label="y", scores="p", labels=[-1, 1], pos_label=1).n == 4


def test_labels_that_are_whole_and_others_are_read_by_every_engine():
    for frame in engines({"y": [0.0, 0.5, 0.5, 0.0], "p": P[:4]}):
        assert Sketch.from_frame(frame, label="y", scores="p", labels=[0, 0.5], pos_label=0).n == 4
        assert Sketch.from_frame(frame, label="y", scores="p", pos_label=0.5).n == 4


def test_groups_of_more_digits_than_numbers_have_stay_apart(tmp_path):
    path, groups = tmp_path / "a.csv", [f"{10**20 + k}" for k in (1, 2)]
    write(path, {"y": Y[:4], "p": P[:4], "g": groups * 2})
    for rows in (None, 1):
        assert list(Sketch.from_files_by_group(path, groups="g", batch_rows=rows)) == groups


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet"])
def test_counts_beyond_2_to_the_63_are_refused_in_text(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    for counts in (["1", str(2**63)], [str(2**63), "5"]):
        write(path, {"y": ["1", "0"], "p": ["0.3", "0.2"], "w": counts})
        row = 1 + counts.index(str(2**63))
        for rows in (None, 1):
            text = refusal(lambda rows=rows: Sketch.from_files(path, counts="w", batch_rows=rows))
            assert f"counts must be finite, at least 0 and below 9.22e+18, got {2.0**63} at row {row}" in text
        assert Sketch.from_files(path, sample_weight="w").totals.rows == 2


def test_counts_of_frames_are_repeated_rows():
    counts = np.array([4, 2, 0, 3])
    y, p = np.array([1, 1, 0, 1]), np.array([0.1, 0.2, 0.3, 0.4])
    due = Sketch("binary").update(np.repeat(y, counts), np.repeat(p, counts))
    both = {"counts": "w", "sample_weight": "v"}
    for frame in engines({"y": y, "p": p, "w": counts, "v": counts + 0.5}):
        found = Sketch.from_frame(frame, label="y", scores="p", counts="w")
        assert not found.weighted
        assert found.totals.rows == 9
        assert found.ece(estimator="uniform:10") == pytest.approx(due.ece(estimator="uniform:10"), rel=1e-12)
        assert Sketch.from_frame(frame, label="y", scores="p", sample_weight="w").weighted
        text = refusal(lambda frame=frame: Sketch.from_frame(frame, label="y", scores="p", counts="v"))
        assert "column 'v' must be" in text
        text = refusal(lambda frame=frame: Sketch.from_frame(frame, label="y", scores="p", **both))
        assert "must not be given together" in text


@pytest.mark.parametrize("weight", ["0x1F", "x", "nan", "1_0"])
def test_weights_that_are_no_numbers_are_refused_wherever_they_stand(tmp_path, weight):
    path = tmp_path / "a.csv"
    for weights in (["4", "2", weight, "1"], [weight, "4", "2", "1"]):
        write(path, {"y": Y[:4], "p": P[:4], "w": weights})
        for rows in (None, 1):
            text = refusal(lambda rows=rows: Sketch.from_files(path, sample_weight="w", batch_rows=rows))
            assert "finite" in text


# Groups, and a class that nobody has named


def test_several_columns_of_groups_are_refused_with_what_to_do(tmp_path):
    frame = pd.DataFrame({"y": Y, "p": P, "day": Y, "country": "no"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    groups = ["day", "country"]
    code_paths = [
        lambda: Sketch.from_files_by_group(tmp_path / "a.csv", groups=groups),
        lambda: Sketch.from_frame_by_group(frame, label="y", scores="p", groups=groups),
    ]
    for code_path in code_paths:
        text = refusal(code_path)
        assert "groups must be the name of a column, got ['day', 'country']" in text
        assert "need one column that joins them" in text
    with pytest.raises(TypeError, match="from_files_by_group"):
        Sketch.from_files(tmp_path / "a.csv", group=groups)
    with pytest.raises(InputError, match="join several columns into one"):
        calibrant.assess(Y, P, groups=np.stack([Y, Y], axis=1))


def test_the_class_of_two_named_columns_is_asked_for(tmp_path):
    frame = pd.DataFrame({"y": np.where(Y, "yes", "no"), "p_yes": P, "p_no": 1 - P})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    code_paths = [
        lambda **more: Sketch.from_files(path, notion="binary", **more),
        lambda **more: Sketch.from_frame(frame, label="y", scores="p_*", notion="binary", **more),
    ]
    for code_path in code_paths:
        text = refusal(code_path)
        assert "pos_label must name one of ['yes', 'no']" in text
        assert code_path(pos_label="yes").labels[code_path(pos_label="yes").positive] == "yes"
        assert code_path(labels=["no", "yes"]).positive == 1
    usual = frame.assign(y=Y).rename(columns={"p_yes": "p_1", "p_no": "p_0"})
    assert Sketch.from_frame(usual, label="y", scores="p_*", notion="binary").labels == (0, 1)
