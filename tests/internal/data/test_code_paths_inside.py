"""All code paths read the same, or all refuse: names, quotes, weights and labels that only one path knew."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from calibrant import InputError, Sketch
from calibrant.data import ColumnRequest
from calibrant.data.values import Coded
from reading import load

RNG = np.random.default_rng(0)
P = RNG.random(40)
Y = (RNG.random(40) < P).astype(int)


def refusal(code_path):
    with pytest.raises(ValueError) as raised:
        code_path()
    return str(raised.value)


def roads_of(path, **asked):
    """What all rows, one piece and many pieces say of a file."""
    names = {"label", "scores", "sample_weight", "counts", "pos_label", "notion"}
    data = load(str(path), ColumnRequest(**{k: v for k, v in asked.items() if k in names}))
    sketch = Sketch(data.notion, labels=data.labels, pos_label=data.pos_label)
    yield sketch.update(data.y_true, data.y_prob, sample_weight=data.sample_weight, counts=data.counts)
    for rows in (None, 2):
        yield Sketch.from_files(path, batch_rows=rows, **asked)


def refusals_of(path, **asked):
    """The refusals of all code paths."""
    texts = [refusal(lambda: load(str(path), ColumnRequest(**asked)))]
    for rows in (None, 2):
        texts.append(refusal(lambda rows=rows: Sketch.from_files(path, batch_rows=rows, **asked)))
    return texts


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


# Names that stand twice in JSON


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize("row", [0, 3])
def test_a_name_twice_in_a_record_is_refused_by_every_road(tmp_path, suffix, row):
    rows = [f'{{"y": {y}, "p": {p}}}' for y, p in zip(Y[:5], P[:5].tolist(), strict=True)]
    rows[row] = '{"y": 1, "p": 0.1, "p": 0.9}'
    path = tmp_path / f"data.{suffix}"
    path.write_text("[" + ",".join(rows) + "]" if suffix == "json" else "\n".join(rows))
    for text in refusals_of(path):
        assert "the name 'p' stands twice in one object" in text
        assert suffix == "json" or text.endswith(f"at row {row + 1}")


def test_a_null_before_all_records_is_refused(tmp_path):
    """The parser of JSON lines does not survive it."""
    path = tmp_path / "data.jsonl"
    path.write_text('null\n{"y": 1, "p": 0.5}\n')
    for text in refusals_of(path):
        assert "row 1 must be an object of names and values, got null" in text


# Names that are not UTF-8, and halves of characters


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are Unicode there")
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow", "npz"])
def test_files_with_names_that_are_not_utf8_are_read(tmp_path, suffix):
    folder = tmp_path / "day=\udcfe"
    folder.mkdir()
    path = folder / f"a\udcff.{suffix}"
    table = pa.table({"y": Y, "p": P})
    with open(path, "wb") as file:
        if suffix == "parquet":
            parquet.write_table(table, file)
        elif suffix == "arrow":
            feather.write_feather(table, file)
        elif suffix == "npz":
            np.savez(file, y=Y, p=P)
        else:
            frame = table.to_pandas()
            text = (
                frame.to_csv(index=False) if suffix == "csv" else frame.to_json(orient="records", lines=True)
            )
            file.write(text.encode())
    for sketch in roads_of(path):
        assert sketch.n == 40
    assert list(Sketch.from_files_by_group(path, groups="day")) == ["\udcfe"]
    path.write_bytes(b"nothing of use")
    assert "a\\udcff" in refusal(lambda: Sketch.from_files(path))
    refusal(lambda: Sketch.from_files(path)).encode()


def test_halves_of_characters_are_refused_where_text_is_due(tmp_path):
    for suffix, form in {"json": "[{}]", "jsonl": "{}"}.items():
        path = tmp_path / f"a.{suffix}"
        path.write_text(form.format('{"y": "\\ud800", "p": 0.5}'))
        for text in refusals_of(path, pos_label="a"):
            text.encode()
    frame = pd.DataFrame({"y": Y, "p": P})
    frame["g"] = pd.Series(["\udcff", "b"] * 20, dtype=object)
    with pytest.raises(InputError, match="no halves of characters"):
        Sketch.from_frame_by_group(frame, label="y", scores="p", groups="g")


# CSV


def test_blanks_after_a_closing_quote_are_read_by_every_road(tmp_path):
    path, plain = tmp_path / "a.csv", tmp_path / "b.csv"
    rows = [(y, f"{p:.3f}") for y, p in zip(Y[:6], P[:6], strict=True)]
    plain.write_text("y,p,note\n" + "".join(f"{y},{p},x\n" for y, p in rows))
    due = Sketch.from_files(plain)
    # A quote within a value is text, and leaves an odd number of them.
    path.write_text('"y" ,"p" ,note\n' + "".join(f'"{y}" ,"{p}" ,5" x\n' for y, p in rows[:5]))
    with open(path, "a") as file:
        file.write(f'"{rows[5][0]}","{rows[5][1]}" ,"x" \n')
    for sketch in roads_of(path):
        assert sketch.digest == due.digest or sketch.n == due.n
        assert sketch.ece() == pytest.approx(due.ece(), rel=1e-12)


def test_a_quote_left_open_is_refused_whatever_other_quotes_there_are(tmp_path):
    """An even number of them is no proof."""
    path = tmp_path / "a.csv"
    path.write_text('y,p,note\n1,0.3,5" x\n0,0.2,a\n1,0.5,"never\n0,0.4,b\n')
    for text in refusals_of(path):
        assert "row 3 has no end, or is longer than 32 MiB: is a quote left open?" in text


def test_a_file_of_a_header_alone_has_no_rows(tmp_path):
    for text in ("y,p", "y,p\n", '"y","p"\r\n'):
        path = tmp_path / "a.csv"
        path.write_text(text)
        for said in refusals_of(path):
            assert "has no rows" in said


def test_labels_that_are_written_in_two_ways_are_never_one_class(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n1,0.3\n0,0.2\n01,0.5\n0,0.4\n")
    assert "'01', '1'" in refusal(lambda: load(str(path)))
    text = refusal(lambda: Sketch.from_files(path, batch_rows=2))
    assert "column 'y' must write each label in one way, as in the first rows, got '1' and '01'" in text


def test_large_integers_are_labels_of_their_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"y,p\n{2**63},0.3\n{2**63 + 1},0.2\n")
    assert len(set(load(str(path), ColumnRequest(positive=str(2**63))).y_true.tolist())) == 2
    assert len(set(Coded(np.arange(2), (2**63, 2**63 + 1)).array().tolist())) == 2


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet"])
@pytest.mark.parametrize("label", ["1e308", str(2**64), "9007199254740992.0"])
def test_a_text_that_is_no_number_for_sure_is_a_label_as_it_stands(tmp_path, suffix, label):
    path = tmp_path / f"a.{suffix}"
    write(path, {"y": [label, "0", "1", "0"], "p": P[:4]})
    for sketch in roads_of(path, pos_label="0"):
        assert sketch.labels == (("1", label), "0")
    write(path, {"y": ["1", "0", label, "0"], "p": P[:4]})
    assert set(load(str(path), ColumnRequest(pos_label="0")).y_true) == {"0", "1", label}
    text = refusal(lambda: Sketch.from_files(path, pos_label="0", batch_rows=2))
    assert f"column 'y' must hold numbers as in the first rows, got '{label}' at row 3" in text


def test_labels_that_share_a_number_are_refused_by_every_road(tmp_path):
    path = tmp_path / "a.parquet"
    for labels in ([1e300, 0.0, 1.0, 1.0], [0.0, 1.0, 2.0**53, 1.0]):
        write(path, {"y": labels, "p": P[:4]})
        for text in refusals_of(path, pos_label=1):
            assert "column 'y' must be below 2^53 where it is in floating point" in text
    path = tmp_path / "a.csv"
    for labels in ([2**53, 0, 1.5, 1], [1.5, 1, 0, 2**53]):
        write(path, {"y": [f"{label:g}" if label == 1.5 else str(label) for label in labels], "p": P[:4]})
        for text in refusals_of(path, pos_label=1):
            assert f"label must be below 2^53 beside labels that are not whole, got {2**53}" in text


# Weights as text


def weighted(path, weights):
    """Write a file of these weights; return what importance weights give."""
    y, p = Y[: len(weights)], P[: len(weights)].round(3)
    write(path, {"y": y, "p": p, "w": weights})
    return Sketch("binary").update(y, p, sample_weight=np.array(weights, dtype=float))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npz", "parquet"])
@pytest.mark.parametrize("other", ["97", "97.0", "0.5", "0.0"])
@pytest.mark.parametrize("place", [0, 1, 6])
def test_how_weights_are_written_does_not_matter(tmp_path, suffix, other, place):
    weights = ["4", "2", "0", "3", " 5 ", "1", "2"]
    weights[place] = other
    due = weighted(tmp_path / f"a.{suffix}", weights)
    for sketch in roads_of(tmp_path / f"a.{suffix}", sample_weight="w"):
        assert sketch.weighted
        assert sketch.totals.rows == due.totals.rows
        assert sketch.n == pytest.approx(due.n, rel=1e-12)
        for mine, theirs in zip(sketch._score_data.arrays, due._score_data.arrays, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npz", "parquet"])
def test_counts_of_files_are_repeated_rows(tmp_path, suffix):
    path, counts = tmp_path / f"a.{suffix}", np.array([4, 2, 0, 3, 5, 1, 2])
    y, p = Y[:7], P[:7].round(3)
    write(path, {"y": y, "p": p, "w": counts})
    due = Sketch("binary").update(np.repeat(y, counts), np.repeat(p, counts))
    for sketch in roads_of(path, counts="w"):
        assert not sketch.weighted
        assert sketch.totals.rows == due.totals.rows == 17
        for mine, theirs in zip(sketch._score_data.arrays, due._score_data.arrays, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    text = refusal(lambda: Sketch.from_files(path, counts="w", sample_weight="w"))
    assert "sample_weight and counts must not be given together" in text
    write(path, {"y": y, "p": p, "w": counts + 0.5})
    for rows in (None, 2):
        text = refusal(lambda rows=rows: Sketch.from_files(path, counts="w", batch_rows=rows))
        assert "counts must be whole numbers, got 4.5 at row 1; for importance weights pass" in text


# Names that are found


@pytest.mark.parametrize("name", ["y_pred", "pred_proba", "y_score", "prob", "predict_proba", "y_pred_proba"])
@pytest.mark.parametrize("label", ["label", "target", "y_true"])
def test_usual_names_of_scores_are_found(tmp_path, name, label):
    path = tmp_path / "a.csv"
    pd.DataFrame({"id": np.arange(40), label: Y, name: P}).to_csv(path, index=False)
    for sketch in roads_of(path):
        assert sketch.n == 40
        assert sketch.notion == "binary"


def test_pairs_are_found_beside_labels(tmp_path):
    path = tmp_path / "a.csv"
    columns = {"label": Y + 5, "y_pred": Y + 6, "correct": Y, "confidence": P}
    pd.DataFrame(columns).to_csv(path, index=False)
    for sketch in roads_of(path):
        assert sketch.notion == "correctness"
    pd.DataFrame({"label": Y, "confidence": P}).to_csv(path, index=False)
    for text in refusals_of(path):
        assert "'confidence' goes with a column that says whether a prediction was right" in text


def test_predicted_labels_are_no_scores(tmp_path):
    path = tmp_path / "a.csv"
    hint = "these may be predicted labels: name the scores by scores="
    for values, why in (
        (Y, "column 'y_pred' must hold scores, got 0 and 1 alone"),
        (Y + 1, "scores must lie in [0, 1], got 2.0"),
        (np.where(Y, "a", "b"), "column 'y_pred' must hold finite numbers"),
    ):
        pd.DataFrame({"y_true": Y, "y_pred": values}).to_csv(path, index=False)
        for text in refusals_of(path):
            assert why in text
            assert hint in text
    pd.DataFrame({"y_true": Y, "y_pred": Y}).to_csv(path, index=False)
    assert Sketch.from_files(path, scores="y_pred").n == 40
    pd.DataFrame({"y_true": Y, "y_pred": Y, "y_score": P}).to_csv(path, index=False)
    assert load(str(path)).columns["scores"] == ("y_score",)


# Sketches


def test_a_sketch_is_no_file_of_rows(tmp_path):
    path = tmp_path / "a.csv"
    Sketch("binary").update(Y, P).save(path)
    for text in refusals_of(path):
        assert "data must be rows, got a sketch, which holds sums; calibrant.Sketch.load reads it" in text
