"""labels= and the names of columns: the same classes in another order are matched by name."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant import Calibrator, InputError, Monitor, PriorShift, Sketch

NAMES = ["cat", "dog", "emu"]
PERMUTED = ["dog", "emu", "cat"]
COST = [[0.0, 4.0, 1.0], [2.0, 0.0, 6.0], [1.0, 8.0, 0.0]]  # rows in the order of `PERMUTED`


@pytest.fixture(scope="module")
def rows():
    """Rows of three classes, too confident and at different rates for each class."""
    rng = np.random.default_rng(11)
    logits = rng.normal([1.0, 0.0, -0.5], size=(600, 3))
    score = np.exp(1.5 * logits) / np.exp(1.5 * logits).sum(axis=1, keepdims=True)
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    code = (true.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    return np.array(NAMES)[code], score


def frames(score, names):
    """Yield the scores as frames with these columns, which are those of `NAMES` in another order."""
    columns = {name: score[:, NAMES.index(name.removeprefix("p_"))] for name in names}
    yield pd.DataFrame(columns)
    yield pl.DataFrame(columns)
    yield pa.table(columns)


def mapped(y, p, **given):
    """Return what depends on the map and on its order of columns."""
    probability = Calibrator("temperature", **given).fit(p, y).predict_proba(p)
    return float(probability[:, PERMUTED.index("emu")].sum())


def recommended(y, p, **given):
    options = {
        "notion": "binary",
        "pos_label": "emu",
        "estimators": ["l:5"],
        "repetitions": 30,
        "rng": 0,
        **given,
    }
    return calibrant.recommend(p, **options).ranking[0].loss


FEW = {"estimator": "l:5"}
#: Numbers that must not depend on the order of columns.
FUNCTIONS = {
    "ece": lambda y, p, **given: calibrant.ece(y, p, **FEW, **given),
    "classwise": lambda y, p, **given: calibrant.ece(y, p, notion="classwise", **given),
    "binary": lambda y, p, **given: calibrant.ece(y, p, notion="binary", pos_label="dog", **FEW, **given),
    "mce": lambda y, p, **given: calibrant.mce(y, p, **given),
    "lce": lambda y, p, **given: float(np.sum(calibrant.lce(y, p, at=[0.5, 0.7], **given))),
    "calibrator": mapped,
    "regret": lambda y, p, **given: calibrant.regret(y, p, COST, rng=0, **given).cost,
    "sketch": lambda y, p, **given: Sketch("classwise", **given).update(y, p).ece(**FEW),
    "recommend": recommended,
}


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_permutation_of_the_names_is_matched_by_name(rows, name):
    y, score = rows
    function = FUNCTIONS[name]
    wanted = function(y, score[:, [NAMES.index(each) for each in PERMUTED]], labels=PERMUTED)
    for names in (NAMES, PERMUTED, ["p_emu", "p_cat", "p_dog"]):
        for frame in frames(score, names):
            assert function(y, frame, labels=PERMUTED) == pytest.approx(wanted, abs=1e-12)


def test_intervals_tables_and_comparisons_match_by_name(rows):
    y, score = (each[:200] for each in rows)
    array = score[:, [NAMES.index(each) for each in PERMUTED]]
    frame = next(frames(score, NAMES))
    given = {"labels": PERMUTED, "estimator": "l:5", "rng": 0}
    for notion in ("classwise", "confidence"):
        first, second = (calibrant.estimate(y, p, notion=notion, **given) for p in (array, frame))
        assert first.to_json() == second.to_json()
    squared = array**2 / (array**2).sum(axis=1, keepdims=True)
    wanted = calibrant.compare(y, {"a": array, "b": squared}, **given)
    mixed = {"a": frame, "b": pd.DataFrame(squared, columns=PERMUTED)[["emu", "cat", "dog"]]}
    assert str(calibrant.compare(y, mixed, **given)) == str(wanted)


def test_the_second_of_two_labels_is_the_positive_class_in_any_order_of_columns():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = np.where(rng.random(500) < p**2, "yes", "no")
    frame = pd.DataFrame({"no": 1 - p, "yes": p})
    for labels, score in ((["no", "yes"], p), (["yes", "no"], 1 - p)):
        wanted = calibrant.estimate(y, np.stack([1 - score, score], axis=1), notion="binary", labels=labels)
        assert wanted.label == labels[1]
        for table in (frame, frame[["yes", "no"]]):
            found = calibrant.estimate(y, table, notion="binary", labels=labels)
            assert found.to_json() == wanted.to_json()


def test_frames_and_files_match_by_name(rows, tmp_path):
    y, score = rows
    wanted = calibrant.ece(y, score, labels=NAMES, notion="classwise", estimator="l:5")
    for k, names in enumerate(itertools.permutations([f"p_{name}" for name in NAMES])):
        for frame in frames(score, names):
            table = pa.table(frame).append_column("label", pa.array(y))
            path = tmp_path / f"{k}.parquet"
            pq.write_table(table, path)
            options = {"label": "label", "notion": "classwise", "labels": PERMUTED}
            for scores in (list(names), "p_*"):
                for sketch in (
                    Sketch.from_frame(table.to_pandas(), scores=scores, **options),
                    Sketch.from_frame(pl.from_arrow(table), scores=scores, **options),
                    Sketch.from_files(path, scores=scores, **options),
                ):
                    assert sketch.labels == tuple(PERMUTED)
                    assert sketch.ece(estimator="l:5") == pytest.approx(wanted, abs=1e-12)
            break


@pytest.mark.full
def test_later_batches_match_by_name(rows):
    y, score = rows
    array = score[:, [NAMES.index(each) for each in PERMUTED]]
    wanted = Sketch("classwise", labels=PERMUTED).update(y, array)
    found = Sketch("classwise", labels=PERMUTED)
    monitors = [Monitor(notion="classwise", labels=PERMUTED) for _ in range(2)]
    for part, names in zip(np.array_split(np.arange(len(y)), 6), itertools.permutations(NAMES), strict=True):
        frame = next(frames(score[part], names))
        found.update(y[part], frame)
        for monitor, batch in zip(monitors, (array[part], frame), strict=True):
            monitor.update(y[part], batch)
    assert found.labels == wanted.labels
    assert found.ece(**FEW) == pytest.approx(wanted.ece(**FEW), abs=1e-12)
    assert str(monitors[0]) == str(monitors[1])


def test_a_calibrator_maps_frames_with_other_orders_of_columns(rows, tmp_path):
    y, score = rows
    unrelated = ["c1", "c2", "c3"]
    fitted = [
        Calibrator("vector", labels=PERMUTED).fit(next(frames(score, NAMES)), y),
        Calibrator("vector", labels=PERMUTED).fit(score[:, [1, 2, 0]], y),
        Calibrator("vector", labels=NAMES).fit(pd.DataFrame(score, columns=unrelated), y),
    ]
    fitted += [Calibrator.from_json(each.to_json()) for each in fitted]
    wanted = Calibrator("vector", labels=NAMES).fit(score, y).predict_proba(score)
    for calibrator in fitted:
        order = [NAMES.index(label) for label in calibrator.classes_]
        shift = PriorShift(train=[1, 2, 3], target=[3, 2, 1], calibrator=calibrator)
        shifted = shift.predict_proba(score[:, order])
        names = unrelated if calibrator.columns_ == tuple(unrelated) else NAMES
        for permuted in itertools.permutations(range(3)):
            frame = pd.DataFrame(score, columns=names)[[names[k] for k in permuted]]
            np.testing.assert_allclose(calibrator.predict_proba(frame), wanted[:, order], atol=1e-9)
            np.testing.assert_array_equal(shift.predict_proba(frame), shifted)
            low, _ = shift.predict_interval(frame)
            assert (low <= shifted + 1e-9).all()


def test_a_prior_shift_matches_by_name(rows):
    _, score = rows
    options = {"train": {"cat": 0.5, "dog": 0.3, "emu": 0.2}, "labels": PERMUTED}
    array = score[:, [NAMES.index(each) for each in PERMUTED]]
    known = PriorShift(target={"cat": 0.2, "dog": 0.2, "emu": 0.6}, **options)
    wanted = PriorShift(**options).fit(array)
    for frame in frames(score, NAMES):
        np.testing.assert_array_equal(known.predict_proba(frame), known.predict_proba(array))
        found = PriorShift(**options).fit(frame)
        np.testing.assert_allclose(found.target, wanted.target, atol=1e-12)
        np.testing.assert_allclose(found.predict_proba(frame), wanted.predict_proba(array), atol=1e-12)


def test_columns_of_several_labels_match_by_name():
    rng = np.random.default_rng(2)
    score = rng.random((400, 3))
    truth = (rng.random((400, 3)) < score**2).astype(int)
    columns = {name: score[:, k] for k, name in enumerate(NAMES)}
    labels = {name: truth[:, k] for k, name in enumerate(NAMES)}
    options = {"notion": "multilabel", "labels": PERMUTED, "rng": 0, "estimator": "l:5"}
    order = [NAMES.index(name) for name in PERMUTED]
    wanted = calibrant.estimate(truth[:, order], score[:, order], **options).to_json()
    for y in (pd.DataFrame(labels), pd.DataFrame(labels)[PERMUTED]):
        assert calibrant.estimate(y, pd.DataFrame(columns), **options).to_json() == wanted
    # An array beside a frame has the order of one of them, and it is not known of which.
    for y, p in ((truth, pd.DataFrame(columns)), (pd.DataFrame(labels), score)):
        with pytest.raises(
            InputError, match="labels must be in the order of the columns 'cat', 'dog', 'emu'"
        ):
            calibrant.ece(y, p, notion="multilabel", labels=PERMUTED)


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], ["class_1", "class_2", "class_3"], ["column_0", "column_1", "column_2"]]
)
def test_names_that_tell_nothing_of_the_classes_mean_positions(rows, names):
    y, score = rows
    codes = np.array([NAMES.index(each) for each in y])
    for labels, truth in ((NAMES, y), ([0, 1, 2], codes), ([2, 0, 1], (codes + 2) % 3)):
        wanted = calibrant.ece(truth, score, labels=labels)
        assert calibrant.ece(truth, pd.DataFrame(score, columns=names), labels=labels) == wanted


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["cat", "dog", "rest"], ["dog", "cat", "emu"]),
        (["p_cat", "p_dog", "p_rest"], ["emu", "cat", "dog"]),
        (["Dog", "x", "z"], ["cat", "dog", "emu"]),
        (["p_0", "p_1", "p_2"], [2, 0, 1]),
        ([0, 1, 2], [1, 0, 2]),
    ],
)
def test_names_that_contradict_the_labels_are_refused(rows, names, labels, tmp_path):
    _, score = rows
    y = np.resize(np.array(labels), len(score))
    frame = pd.DataFrame(score, columns=names)
    text = frame.set_axis([str(name) for name in names], axis=1).assign(y=y)
    text.to_csv(tmp_path / "rows.csv", index=False)
    columns = [str(name) for name in names]
    for function in (
        lambda: calibrant.ece(y, frame, labels=labels),
        lambda: Sketch("confidence", labels=labels).update(y, frame),
        lambda: Calibrator(labels=labels).fit(frame, y),
        lambda: Sketch.from_frame(text, label="y", scores=columns, labels=labels),
        lambda: Sketch.from_files(tmp_path / "rows.csv", label="y", scores=columns, labels=labels),
        lambda: calibrant.recommend(frame, labels=labels),
    ):
        with pytest.raises(InputError, match=r"labels must not contradict the names of the columns .*array"):
            function()
    assert np.isfinite(calibrant.ece(y, score, labels=labels))
