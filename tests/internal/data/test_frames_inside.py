"""The same call gives the same answer from an array and from a frame of every engine."""

import os
import pickle
import signal
from dataclasses import astuple
from functools import partial
from pathlib import Path

import hypothesis.strategies as st
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.numpy import arrays

from calibrant import Sketch
from calibrant.data import frame_sums, frames
from calibrant.score_data import COARSE, FINE
from calibrant.tasks import notions
from engines import PANDAS_OF_SPARK, needed


def in_dask(table, folder):
    return needed("dask.dataframe").from_pandas(table.to_pandas(), npartitions=3)


def in_duckdb(table, folder):
    return needed("duckdb").from_arrow(table)


def in_ibis(table, folder):
    return needed("ibis").memtable(table)


def in_spark(table, folder, session):
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path)
    return session.read.parquet(str(path))


ENGINES = {
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: pl.from_arrow(table),
    "polars lazy": lambda table, folder: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table, folder: table,
    "duckdb": in_duckdb,
    "dask": in_dask,
    "ibis": in_ibis,
    "pyspark": in_spark,
}


# Engines that take a hundred calls where others take one; tracing each would double that.
SLOW = ("dask", "ibis", "pyspark")
MARKS = {name: [pytest.mark.no_cover] for name in SLOW} | {"pyspark": [pytest.mark.no_cover, PANDAS_OF_SPARK]}
UNTRACED = [pytest.param(name, marks=MARKS.get(name, ())) for name in ENGINES]
SLOW_ENGINES = [pytest.param(name, marks=MARKS[name]) for name in SLOW]


@pytest.fixture(params=UNTRACED)
def engine(request, tmp_path):
    """Makes a frame of the engine from an Arrow table."""
    made = ENGINES[request.param]
    if request.param == "pyspark":
        made = partial(made, session=request.getfixturevalue("spark"))
    return partial(made, folder=tmp_path)


# Which cell


def edges(k):
    """Scores at the edges of cells and next to them, at both walls, and those that products misplace."""
    edge = np.arange(k + 1) / k
    octave = np.ravel(2.0 ** -np.arange(60.0)[:, None] * (1 + np.arange(8) / 8))
    octave = np.concatenate([octave, 1 - octave])
    plain = np.concatenate(
        [edge, octave, np.arange(1001) / 1000, 1 / np.arange(1, 1001), 10.0 ** -np.arange(330)]
    )
    rng = np.random.default_rng(0)
    crowded = rng.random(2000) ** 40
    sure = [0.29, 0.57, 0.58, -0.0, 0.0, 1.0, 0.5, 5e-324, np.nextafter(1, 0)]
    scores = np.concatenate(
        [sure, plain, np.nextafter(plain, -1), np.nextafter(plain, 2), crowded, 1 - crowded]
    )
    return scores[(scores >= 0) & (scores <= 1)]


def check_cells(engine, scores):
    frame = engine(pa.table({"y": np.arange(len(scores)) % 2, "p": scores}))
    found = Sketch.from_frame(frame, label="y", scores="p")._score_data.sums
    np.testing.assert_array_equal(found.w, np.bincount(FINE.locate(scores), minlength=FINE.size))


def test_the_cell_of_a_score_is_the_same_to_the_last_bit(engine):
    check_cells(engine, edges(FINE.uniform))


SCORES = st.one_of(
    st.floats(0, 1),
    st.integers(0, 14400).map(lambda k: k / 14400),
    st.integers(0, 1000).map(lambda k: k / 1000),
    st.integers(-1074, 0).map(lambda e: 2.0**e),
    st.floats(0, 1e-4).map(lambda d: 1 - d),
)


@pytest.mark.parametrize("name", ["polars lazy", "duckdb"])
@given(scores=arrays(np.float64, 64, elements=SCORES, fill=st.nothing()))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_score_is_found_in_another_cell(name, scores):
    check_cells(partial(ENGINES[name], folder=None), scores)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nor_are_any_of_many(engine, seed):
    rng = np.random.default_rng(seed)
    k, octave = rng.integers(0, 14401, 2000), 2.0 ** -rng.integers(0, 56, 2000)
    scores = np.concatenate([k / 14400, rng.random(2000) * octave, 1 - rng.random(2000) * octave, octave])
    check_cells(engine, scores)


# The same sums


def predictions(n=400, classes=4, seed=0):
    """Rows with ties, walls and every class, a weight of each kind, and a group."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.full(classes, 0.3), n)
    score[: n // 8] = 1 / classes
    score[n // 8 : n // 8 + classes] = np.eye(classes)
    label = np.array([rng.choice(classes, p=p) for p in score])
    label[n // 8] = (label[n // 8] + 1) % classes  # had probability 0
    p = np.concatenate([rng.random(n - 9) ** 3, [0, 1, 0.5, 0.29, 0.57, 0.58, 1e-15, 1 - 1e-15, 1 / 3]])
    return {
        "y": (rng.random(n) < p).astype(int),
        "p": p,
        "label": label,
        "word": np.array([f"class {k}" for k in range(classes)])[label],
        "score": score,
        "counts": rng.integers(0, 4, n),
        "importance": rng.random(n) * 3 * (rng.random(n) > 0.1),
        "group": rng.choice(["east", "west", "north"], n),
    }


def table(rows, *, words=False):
    """One row for each row, and a column for each class."""
    score = rows["score"]
    named = [f"p_class {k}" if words else f"p_{k}" for k in range(score.shape[1])]
    plain = {k: v for k, v in rows.items() if k != "score"}
    return pa.table({**plain, **{name: score[:, k] for k, name in enumerate(named)}})


def same(found, wanted):
    """Equal sums and the same questions; cells hold exactly the same rows."""
    cells, other = found._score_data, wanted._score_data
    assert cells.sums.w.shape == other.sums.w.shape
    np.testing.assert_array_equal(cells.sums.w > 0, other.sums.w > 0)
    if other.counts:
        np.testing.assert_array_equal(cells.sums.w, other.sums.w)
        np.testing.assert_array_equal(cells.sums.wy, other.sums.wy)
        np.testing.assert_array_equal(cells.squares, other.squares)
    np.testing.assert_allclose(cells.squares, other.squares, rtol=1e-12)
    assert (cells.spread is None) == (other.spread is None) == other.counts
    np.testing.assert_allclose(cells.squared_weights, other.squared_weights, rtol=1e-12)
    # Offsets in a cell are as small as the cell, so that is what an error is measured by.
    width = other.high - other.low
    scale = {"w": 1.0, "wy": 1.0, "ws": width, "wsy": width, "wss": width**2}
    for name, unit in scale.items():
        error = np.abs(getattr(cells.sums, name) - getattr(other.sums, name))
        assert np.all(error <= 1e-12 * unit * other.sums.w + 1e-300), name
    assert cells.support == other.support
    assert cells.counts == other.counts
    np.testing.assert_allclose(astuple(found.totals), astuple(wanted.totals), rtol=1e-12)
    assert found.totals.rows == wanted.totals.rows
    assert (found.notion, found.labels, found.positive) == (wanted.notion, wanted.labels, wanted.positive)
    assert (found._vector, found._n_classes) == (wanted._vector, wanted._n_classes)


FORMS = ("single", "wide")
WEIGHTS = (None, "counts", "importance")
ASKED = ("binary", "confidence", "classwise")
# Every form with every notion and every weight.
PAIRS = [(FORMS[i], ASKED[j], WEIGHTS[(i + j) % 3]) for i in range(2) for j in range(3)]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("notion", ASKED)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in ENGINES if name not in SLOW])
def test_a_frame_has_the_sums_of_its_rows(name, form, notion, weight):
    check_sums(partial(ENGINES[name], folder=None), form, notion, weight)


@pytest.mark.parametrize(("form", "notion", "weight"), PAIRS)
@pytest.mark.parametrize("engine", SLOW_ENGINES, indirect=True)
def test_a_frame_of_a_slow_engine_has_the_sums_of_its_rows(engine, form, notion, weight):
    check_sums(engine, form, notion, weight)


def check_sums(engine, form, notion, weight):
    rows = predictions()
    kind = "counts" if weight == "counts" else "sample_weight"
    named, given = {kind: weight}, {kind: None if weight is None else rows[weight]}
    if form == "single":
        frame = engine(table(rows))
        found = Sketch.from_frame(frame, label="y", scores="p", notion=notion, **named)
        same(found, Sketch(notion).update(rows["y"], rows["p"], **given))
    else:
        frame = engine(table(rows))
        found = Sketch.from_frame(frame, label="label", scores="p_*", notion=notion, pos_label=2, **named)
        wanted = Sketch(notion, pos_label=2).update(rows["label"], rows["score"], **given)
        same(found, wanted)


def test_many_classes_take_coarse_cells(engine):
    rows = predictions(classes=25, n=300)
    wanted = Sketch("classwise").update(rows["label"], rows["score"])
    found = Sketch.from_frame(engine(table(rows)), label="label", scores="p_*", notion="classwise")
    same(found, wanted)
    assert found._score_data.sums.w.shape[-1] == COARSE.size


@pytest.mark.parametrize("name", ["polars lazy", "duckdb", "pandas", "dask"])
def test_a_thousand_classes(name):
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.full(1000, 0.1), 30)
    label = np.where(rng.random(30) < 0.5, score.argmax(axis=1), rng.integers(0, 1000, 30))
    frame = ENGINES[name](pa.table({"y": label, **{f"p_{k}": score[:, k] for k in range(1000)}}), None)
    found = Sketch.from_frame(frame, label="y", scores="p_*", notion="classwise")
    same(found, Sketch("classwise").update(label, score))


def test_groups_have_sketches_of_their_own(engine):
    rows = predictions()
    for notion in ("confidence", "classwise"):
        found = Sketch.from_frame_by_group(
            engine(table(rows)), label="label", scores="p_*", groups="group", counts="counts",
            notion=notion,
        )  # fmt: skip
        assert list(found) == ["east", "north", "west"]
        for name, sketch in found.items():
            own = rows["group"] == name
            wanted = Sketch(notion)
            wanted.update(rows["label"][own], rows["score"][own], counts=rows["counts"][own])
            same(sketch, wanted)


# What travels


def test_of_a_partition_only_sums_travel():
    rng, roles = np.random.default_rng(0), {"y": "label", "0": "p"}
    request = frame_sums.Request(notions.get_notion("binary"), roles, (0, 1), {0: 0, 1: 1}, 1, False, False)
    sizes = []
    for n in (10, 100_000):
        part = pd.DataFrame({"label": rng.integers(0, 2, n), "p": rng.random(n)})
        found = frame_sums.of_rows(part, request)
        sizes.append(len(pickle.dumps(found)))
    assert sizes[0] == pytest.approx(sizes[1], abs=100)
    assert sizes[1] < 1e6


@PANDAS_OF_SPARK
def test_of_a_table_of_spark_few_sums_come_back(spark, monkeypatch):
    """However many partitions there are, executors add them up before they answer."""
    frame = spark.range(4000).selectExpr("id % 2 as y", "(id % 97) / 97 as p").repartition(20)
    collected, collect = [], type(frame).collect

    def counting(self):
        rows = collect(self)
        collected.append((len(rows), sum(len(row[0]) for row in rows)))
        return rows

    monkeypatch.setattr(type(frame), "collect", counting)
    k = np.arange(4000)
    same(Sketch.from_frame(frame, label="y", scores="p"), Sketch("binary").update(k % 2, k % 97 / 97))
    ((rows, size),) = collected
    assert rows <= 2
    assert size < 2e6


def test_rows_in_memory_are_taken_in_pieces(monkeypatch):
    monkeypatch.setattr(frame_sums, "BLOCK", 500)
    rows = predictions()
    for name in ("pandas", "pyarrow", "polars lazy", "duckdb", "ibis"):
        for notion in ("confidence", "classwise"):
            frame = ENGINES[name](table(rows), None)
            found = Sketch.from_frame_by_group(
                frame, label="label", scores="p_*", notion=notion, groups="group"
            )
            own = rows["group"] == "west"
            same(found["west"], Sketch(notion).update(rows["label"][own], rows["score"][own]))


# The table of cases that every entry answers alike is in tests/inputs.
ORDERS = {
    "p_True, p_False": (("p_True", "p_False"), (False, True), (1, 0)),
    "p_1.0, p_0.0 of floats": (("p_1.0", "p_0.0"), (0.0, 1.0), (1, 0)),
    "p_2.5, p_1.5": (("p_2.5", "p_1.5"), (1.5, 2.5), (1, 0)),
    "p_Dog, p_Cat": (("p_Dog", "p_Cat"), ("cat", "dog"), (1, 0)),
    "dog_prob, cat_prob": (("dog_prob", "cat_prob"), ("cat", "dog"), (1, 0)),
    "three numbers": (("s-3", "s-1", "s-2"), (1, 2, 3), (2, 0, 1)),
    "p_0, p_1 by default": (("p_0", "p_1"), ("cat", "dog"), (0, 1)),
    "class_1, class_2 of 0 and 1": (("class_1", "class_2"), (0, 1), None),
    "yes, no of 0 and 1": (("yes", "no"), (0, 1), None),
    "cat, horse of cat and dog": (("cat", "horse"), ("cat", "dog"), None),
}


@pytest.mark.parametrize("case", ORDERS)
def test_every_engine_matches_columns_to_classes_by_one_rule(engine, case):
    names, labels, order = ORDERS[case]
    rng = np.random.default_rng(5)
    score = rng.dirichlet(np.full(len(names), 0.5), 60)
    code = np.array([rng.choice(len(names), p=row) for row in score])
    columns = {name: score[:, k] for name, k in zip(names, order or range(len(names)), strict=True)}
    frame = engine(pa.table({"y": [labels[k] for k in code], **columns}))
    if order is None:
        with pytest.raises(ValueError, match="labels="):
            Sketch.from_frame(frame, label="y", scores=list(names), notion="classwise")
        return
    found = Sketch.from_frame(frame, label="y", scores=list(names), notion="classwise")
    assert found.labels == tuple(labels[k] for k in order)
    wanted = Sketch("classwise", labels=[labels[k] for k in order])
    same(found, wanted.update([labels[k] for k in code], score[:, list(order)]))


NAMED = {
    "a word": (["no", "yes"], "p_yes", {}, ("no", "yes")),
    "the other word": (["no", "yes"], "P_No", {}, ("yes", "no")),
    "a number": ([0, 1], "p_0", {}, (1, 0)),
    "as the caller says": (["no", "yes"], "p_yes", {"pos_label": "no"}, ("yes", "no")),
    "many words": (["a", "b", "c"], "b", {}, (("a", "c"), "b")),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_single_column_is_of_the_class_it_is_named_after(engine, case):
    labels, name, options, classes = NAMED[case]
    y, p = np.resize(labels, 30), np.linspace(0.1, 0.9, 30)
    found = Sketch.from_frame(engine(pa.table({"y": y, name: p})), label="y", scores=name, **options)
    same(found, Sketch("binary", pos_label=classes[1]).update(y, p))
    assert found.labels == classes


SINGLES = {
    "0 and 1": ([0, 1], {}, (0, 1)),
    "1 alone": ([1, 1], {}, (0, 1)),
    "-1 and 1": ([-1, 1], {}, (-1, 1)),
    "booleans": ([True, False], {}, (0, 1)),
    "floats": ([0.0, 1.0], {}, (0, 1)),
    "words": (["no", "yes"], {"pos_label": "yes"}, ("no", "yes")),
    "many words": (["no", "yes", "perhaps"], {"pos_label": "yes"}, (("no", "perhaps"), "yes")),
    "one word": (["yes"], {"pos_label": "yes"}, (None, "yes")),
    "named words": (["yes"], {"pos_label": "yes", "labels": ["no", "yes"]}, ("no", "yes")),
    "0 as positive": ([0, 1], {"pos_label": 0}, (1, 0)),
    "other numbers": ([3, 5], {"pos_label": 5}, (3, 5)),
}


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("case", SINGLES)
def test_labels_of_a_single_score_are_those_of_arrays(case, notion):
    y, options, classes = SINGLES[case]
    data = pa.table({"y": y, "p": np.linspace(0.2, 0.9, len(y))})
    for name in ("pandas", "polars lazy", "pyarrow", "duckdb"):
        found = Sketch.from_frame(ENGINES[name](data, None), label="y", scores="p", notion=notion, **options)
        assert found.labels == classes
        same(found, Sketch(notion, **options).update(y, data["p"].to_numpy()))


def test_a_score_of_one_half_predicts_the_negative_class(engine):
    y, p = np.resize([0, 1, 1], 120), np.resize([0.5, 0.2, 0.5, 0.9, 0.0], 120)
    frame = engine(pa.table({"y": y, "p": p}))
    for notion in ("binary", "classwise", "confidence"):
        found = Sketch.from_frame(frame, label="y", scores="p", notion=notion)
        same(found, Sketch(notion).update(y, p))
        assert found.totals.right == Sketch(notion).update(y, p).totals.right


def test_tied_scores_are_the_first_columns(engine):
    score = np.array([[0.5, 0.5, 0.0], [0.25, 0.375, 0.375], [0.0, 0.5, 0.5]])
    rows = {"label": np.array([1, 1, 2]), "score": score}
    found = Sketch.from_frame(engine(table(rows)), label="label", scores="p_*")
    assert found.totals.right == 1
    same(found, Sketch("confidence").update(rows["label"], score))


# Types


def test_lower_precision_is_converted_exactly(engine):
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(3), 100).astype(np.float32)
    label = rng.integers(0, 3, 100)
    frame = engine(table({"label": label, "score": score}))
    for notion in ("confidence", "classwise"):
        found = Sketch.from_frame(frame, label="label", scores="p_*", notion=notion)
        same(found, Sketch(notion).update(label, score))


def test_types_that_mean_the_same():
    duckdb = needed("duckdb")
    y, p = [0, 1, 1, 0], [0.125, 0.5, 0.75, 0.25]
    wanted = Sketch("binary").update(y, p)
    data = pa.table({"y": y, "p": p, "w": [1, 1, 1, 1]})
    frames = {
        "nullable": data.to_pandas().convert_dtypes(),
        "small": data.cast(pa.schema({"y": pa.int8(), "p": pa.float32(), "w": pa.uint8()})),
        "boolean": pa.table({"y": np.array(y) == 1, "p": p, "w": [True] * 4}),
        "half": pa.table({"y": y, "p": np.array(p, dtype=np.float16), "w": [1] * 4}),
        "decimal": duckdb.from_arrow(data).project("y, p::decimal(9, 3) as p, w"),
        "other index": data.to_pandas().set_index(pd.Index([3, 1, 1, 0])),
        "narwhals": nw.from_native(pl.from_arrow(data)),
    }
    for name, frame in frames.items():
        same(Sketch.from_frame(frame, label="y", scores="p", counts="w"), wanted), name
    words = pd.DataFrame({"y": pd.Categorical(["no", "yes", "yes", "no"]), "p": p})
    same(Sketch.from_frame(words, label="y", scores="p", pos_label="yes"),
         Sketch("binary", pos_label="yes").update(words["y"], p))  # fmt: skip


def test_a_relation_of_another_connection():
    rows = predictions(n=60)
    connection = needed("duckdb").connect()
    connection.register("rows", table(rows))
    relation = connection.sql("select label, columns('p_.*') from \"rows\" where p >= 0")
    found = Sketch.from_frame(relation, label="label", scores="p_*", notion="classwise")
    same(found, Sketch("classwise").update(rows["label"], rows["score"]))


def test_large_counts_are_exact():
    y, p, w = [0, 1, 1], [0.25, 0.5, 0.75], [2**53 + 1, 1, 2**60]
    wanted = Sketch("binary").update(y, p, counts=w)
    for name in ("pandas", "polars lazy", "pyarrow", "duckdb", "dask"):
        frame = ENGINES[name](pa.table({"y": y, "p": p, "w": w}), None)
        same(Sketch.from_frame(frame, label="y", scores="p", counts="w"), wanted)


def test_a_column_of_ids_is_no_column_of_labels(monkeypatch, engine):
    monkeypatch.setattr(frames, "MOST_CLASSES", 3)
    frame = engine(pa.table({"y": np.arange(8), "p": [0.5] * 8}))
    with pytest.raises(ValueError, match="column 'y' must hold classes, got more than 3 of them"):
        Sketch.from_frame(frame, label="y", scores="p", pos_label=1)


def test_several_largest_scores_are_summed(engine):
    rows, options = predictions(), {"label": "label", "scores": "p_*", "notion": "top:2"}
    same(
        Sketch.from_frame(engine(table(rows)), **options),
        Sketch("top:2").update(rows["label"], rows["score"]),
    )


# A cluster


def part_of(k, parts, folder):
    """Rows of one partition; the process that is first asked for the last one is killed."""
    marker = Path(folder, "killed")
    if k == parts - 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    rows = table(predictions())
    return rows.slice(k * 100, 100).to_pandas()


@pytest.mark.skipif(os.name != "posix", reason="needs a signal that kills at once")
def test_a_worker_that_dies_takes_nothing_with_it(tmp_path):
    dd, distributed = needed("dask.dataframe"), needed("distributed")
    rows = predictions()
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster):
        meta = table(predictions()).to_pandas().iloc[:0]
        frame = dd.from_map(part_of, range(4), parts=4, folder=str(tmp_path), meta=meta)
        found = Sketch.from_frame(frame, label="label", scores="p_*", notion="classwise", counts="counts")
    assert (tmp_path / "killed").exists()
    wanted = Sketch("classwise").update(rows["label"], rows["score"], counts=rows["counts"])
    same(found, wanted)
