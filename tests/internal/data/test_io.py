"""Files to arrays: every format alike, columns found when obvious, and nothing hostile gets far."""

import csv
import gzip
import io
import json
import re
import struct
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from calibrant.data import FORMATS, ColumnRequest, files, load_models, pipeline, readers, text
from calibrant.data.files import sniffed
from reading import load

N = 60
RNG = np.random.default_rng(0)
CLASSES = ("cat", "dog", "eel")
PROB = RNG.dirichlet(np.ones(3), N)
CODE = RNG.integers(0, 3, N)
COLUMNS = {
    "id": [f"row {k}" for k in range(N)],
    "label": [CLASSES[k] for k in CODE],
    **{f"p_{name}": PROB[:, k].tolist() for k, name in enumerate(CLASSES)},
    "predicted": [CLASSES[k] for k in PROB.argmax(axis=1)],
    "w": (1 + CODE).tolist(),
    "country": ["no" if k % 2 else "yes" for k in range(N)],
}


def write_csv(path, columns, delimiter=",", **options):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=delimiter, **options)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def write(path, columns=COLUMNS):
    """A file of the format that its suffix says."""
    suffix = path.name.partition(".")[2]
    if suffix in ("csv", "tsv"):
        write_csv(path, columns, "," if suffix == "csv" else "\t")
    elif suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, records(columns))))
    elif suffix == "json":
        path.write_text(json.dumps(records(columns), indent=1))
    elif suffix == "parquet":
        parquet.write_table(pa.table(columns), path)
    elif suffix == "feather":
        feather.write_feather(pa.table(columns), path)
    elif suffix == "arrow":
        with pa.ipc.new_stream(path, pa.table(columns).schema) as file:
            file.write_table(pa.table(columns))
    elif suffix == "npz":
        np.savez_compressed(path, **{name: np.array(values) for name, values in columns.items()})
    elif suffix == "csv.gz":
        write(path.with_name("plain.csv"), columns)
        path.write_bytes(gzip.compress(path.with_name("plain.csv").read_bytes()))
    return path


SUFFIXES = ("csv", "tsv", "jsonl", "json", "parquet", "feather", "arrow", "npz", "csv.gz")


def of(content, ask=None, format=None, **given):
    """The data of bytes or text on standard input."""
    content = content.encode() if isinstance(content, str) else content
    return load("-", ask or ColumnRequest(**given), format=format, stdin=io.BytesIO(content))


def refusal(content, *, format=None, **given):
    with pytest.raises((ValueError, OSError)) as caught:
        of(content, format=format, **given)
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 1000
    return message


# Formats


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_arrays(tmp_path, suffix):
    path = write(tmp_path / f"data.{suffix}")
    found = load(str(path), ColumnRequest(counts="w", groups="country"))
    assert found.y_true.tolist() == COLUMNS["label"]
    np.testing.assert_array_equal(found.y_prob, PROB)
    assert found.labels == CLASSES
    assert found.pos_label is None
    assert found.sample_weight is None
    assert found.counts.tolist() == COLUMNS["w"]
    assert load(str(path), ColumnRequest(sample_weight="w")).sample_weight.tolist() == COLUMNS["w"]
    assert found.groups.tolist() == COLUMNS["country"]
    assert found.source == str(path)
    assert found.columns == {
        "label": ("label",),
        "counts": ("w",),
        "groups": ("country",),
        "scores": ("p_cat", "p_dog", "p_eel"),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_standard_input_is_known_by_its_first_bytes(tmp_path, suffix):
    content = write(tmp_path / f"data.{suffix}").read_bytes()
    format = "arrow" if suffix == "arrow" else None  # a stream has no magic
    found = of(content, format=format)
    np.testing.assert_array_equal(found.y_prob, PROB)
    assert found.source == "standard input"


def test_a_pipe_is_read_once(tmp_path):
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

        def seek(self, *args):
            raise OSError("no seek")

        tell = seek

    for suffix in ("csv", "parquet", "npz"):
        content = write(tmp_path / f"data.{suffix}").read_bytes()
        found = load("-", stdin=io.BufferedReader(Pipe(content)))
        np.testing.assert_array_equal(found.y_prob, PROB)


def test_a_format_can_be_said(tmp_path):
    path = write(tmp_path / "data.csv").rename(tmp_path / "data.jsonl")
    np.testing.assert_array_equal(load(str(path), format="csv").y_prob, PROB)
    other = write(tmp_path / "data.parquet").rename(tmp_path / "data")
    np.testing.assert_array_equal(load(str(other)).y_prob, PROB)


def test_the_first_bytes_say_the_format():
    heads = (b"PAR1", b"ARROW1\0\0", b"PK\x03\x04", b'\xef\xbb\xbf {"a"', b"[{", b"a,b")
    assert [sniffed(head) for head in heads] == ["parquet", "arrow", "npz", "jsonl", "json", "csv"]
    assert {sniffed(head) for head in heads} <= set(FORMATS)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_and_quotes_are_found(tmp_path, delimiter):
    columns = {"a, b; c|d": ["x\ny", 'say "no"', "", "é"], "y": [0, 1, 0, 1], "score": [0.5, 0.25, 1, 0]}
    write_csv(tmp_path / "data.csv", columns, delimiter, quoting=csv.QUOTE_ALL)
    content = (tmp_path / "data.csv").read_bytes()
    for start in (b"", b"\xef\xbb\xbf"):
        found = of(start + content)
        assert found.y_prob.tolist() == [0.5, 0.25, 1, 0]
        assert found.y_true.tolist() == [0, 1, 0, 1]
    group = of(content, label="y", scores=("score",), groups="y")
    assert group.groups.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end):
    content = end.join(["y,p", "0,0.5", "", "1,0.25", ""])
    assert of(content).y_prob.tolist() == [0.5, 0.25]
    assert of(content.rstrip()).y_prob.tolist() == [0.5, 0.25]


def test_rows_that_lie_across_blocks_are_whole(monkeypatch):
    rng = np.random.default_rng(1)
    score = rng.random(500)
    content = "y,p,note\n" + "".join(f'{k % 2},{p!r},"a\nb"\n' for k, p in enumerate(score.tolist()))
    lines = "".join(f'{{"y": {k % 2}, "p": {p!r}}}\n' for k, p in enumerate(score.tolist()))
    for size in (100, 1000):
        monkeypatch.setattr(text, "BLOCK", size)
        monkeypatch.setattr(pipeline, "TEXT_ROWS", size)
        assert of(content).y_prob.tolist() == score.tolist()
        assert set(of(content, groups="note").groups.tolist()) == {"a\nb"}
        assert of(lines).y_prob.tolist() == score.tolist()


def end_by_states(block, delimiter):
    """Where the last whole row ends, one character at a time."""
    end, quoted, starts, k = 0, False, True, 0
    while k < len(block):
        c = block[k]
        if quoted:
            if c == '"' and block[k + 1 : k + 2] == '"':
                k += 1
            elif c == '"':
                quoted = False
        elif c == '"' and starts:
            quoted = True
        elif c == "\n" or (c == "\r" and k + 1 < len(block)):
            end = k + 1
        starts = not quoted and c in (delimiter, "\r", "\n")
        k += 1
    return end


@given(st.text('"",;\n\ra', max_size=40), st.sampled_from([",", ";"]))
def test_rows_end_outside_of_quotes(block, delimiter):
    assert text._end_of_rows(block.encode(), delimiter) == end_by_states(block, delimiter)


@given(
    cells=st.lists(st.text('",\n\ra\u00e9', max_size=8), min_size=1, max_size=20),
    stray=st.sampled_from(["a", 'a"', 'a""b', '"b"c"d']),
    size=st.integers(12, 60),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_of_any_size_hold_the_same_rows(monkeypatch, cells, stray, size):
    content = io.StringIO(newline="")
    rows = csv.writer(content, lineterminator="\r\n")
    rows.writerows([("y", "p", "note"), *((k % 2, k / 32, f"x{cell}x") for k, cell in enumerate(cells))])
    written = content.getvalue() + f"1,0.5,{stray}\n" + f"0,0.25,{stray}x"
    whole = of(written, groups="note")
    with monkeypatch.context() as patch:
        patch.setattr(text, "BLOCK", size)
        found = of(written, groups="note")
    assert found.y_prob.tolist() == whole.y_prob.tolist() == [k / 32 for k in range(len(cells))] + [0.5, 0.25]
    assert found.groups.tolist() == whole.groups.tolist()
    assert whole.groups.tolist()[: len(cells)] == [f"x{cell}x" for cell in cells]


def test_a_number_may_become_a_fraction_in_a_later_block_of_json(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 40)
    lines = "".join(
        f'{{"y": {k % 2}, "p": {p}, "w": {w}}}\n' for k, (p, w) in enumerate([(0, 1), (0.5, 2), (1, 2.5)])
    )
    data = of(lines, sample_weight="w")
    assert data.y_prob.tolist() == [0, 0.5, 1]
    assert data.sample_weight.tolist() == [1, 2, 2.5]


def test_text_of_json_that_looks_like_a_time_stays_text():
    lines = "".join(f'{{"y": {k % 2}, "p": 0.5, "day": "2026-05-0{k}"}}\n' for k in range(1, 4))
    assert of(lines, groups="day").groups.tolist() == ["2026-05-01", "2026-05-02", "2026-05-03"]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "0", " 2 "], "i", [1, 0, 2]),
        (["1.0", "0", "2"], "i", [1, 0, 2]),
        (["1e2", "-.5", "3"], "f", [100.0, -0.5, 3.0]),
        (["a", "1", "2"], "O", ["a", "1", "2"]),
        (["1_0", "2_0", "3_0"], "O", ["1_0", "2_0", "3_0"]),
        (["nan", "1", "2"], "O", ["nan", "1", "2"]),
        # As numbers these would be one.
        (["99999999999999999999", "100000000000000000000", "2"], "O", None),
        (["1e308", "1", "2"], "O", None),
    ],
)
def test_a_column_of_values_has_the_type_of_all_of_them(cells, kind, values):
    content = "y,p,g\n" + "".join(f"{k % 2},0.5,{cell}\n" for k, cell in enumerate(cells))
    group = of(content, groups="g").groups
    assert group.dtype.kind == kind
    assert group.tolist() == (cells if values is None else values)


def test_counts_may_be_written_as_whole_numbers_of_any_form():
    for cells in ("1,2", "1,2.0", "1e0, 2 "):
        one, two = cells.split(",")
        assert of(f"y,p,w\n0,0.5,{one}\n1,0.5,{two}\n", counts="w").counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"counts must be whole numbers, got 2.5 at row 2; for importance"):
        of("y,p,w\n0,0.5,1\n1,0.5,2.5\n", counts="w")
    with pytest.raises(ValueError, match="sample_weight and counts must not be given together"):
        of("y,p,w\n0,0.5,1\n1,0.5,2\n", counts="w", sample_weight="w")


def test_text_that_reads_as_numbers_is_numbers_in_every_format(tmp_path):
    columns = {"y": ["0", "1", "1"], "p": ["0.5", "0.25", "1"]}
    for suffix in SUFFIXES:
        found = load(str(write(tmp_path / f"data.{suffix}", columns)))
        assert found.y_true.tolist() == [0, 1, 1]
        assert found.y_prob.tolist() == [0.5, 0.25, 1]


def test_columns_that_are_not_needed_are_not_converted():
    assert of("junk,y,p\n1e999,0,0.5\n\x01,1,0.5\n,0,0.25\n").y_prob.tolist() == [0.5, 0.5, 0.25]


def test_single_precision_stays(tmp_path):
    prob = PROB.astype(np.float32)
    parquet.write_table(
        pa.table({"y": CODE, **{f"p_{k}": prob[:, k] for k in range(3)}}), tmp_path / "data.parquet"
    )
    np.savez(tmp_path / "data.npz", y_true=CODE, y_prob=prob)
    for name in ("data.parquet", "data.npz"):
        found = load(str(tmp_path / name)).y_prob
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, prob)


def test_dictionaries_decimals_and_booleans_of_arrow(tmp_path):
    import datetime
    import decimal

    columns = pa.table(
        {
            "y": pa.array([True, False, True]),
            "p": pa.array([decimal.Decimal("0.5"), decimal.Decimal("0.25"), decimal.Decimal(1)]),
            "g": pa.array(["a", "b", "a"]).dictionary_encode(),
            "day": pa.array([datetime.date(2020, 1, 1)] * 3),
        }
    )
    parquet.write_table(columns, tmp_path / "data.parquet")
    found = load(str(tmp_path / "data.parquet"), ColumnRequest(groups="g"))
    assert found.y_true.dtype == bool
    assert found.y_prob.tolist() == [0.5, 0.25, 1.0]
    assert found.groups.tolist() == ["a", "b", "a"]
    day = load(str(tmp_path / "data.parquet"), ColumnRequest(groups="day")).groups
    assert set(day.tolist()) == {"2020-01-01"}


def test_progress_counts_bytes(tmp_path):
    path = write(tmp_path / "data.csv")
    seen = []
    load(str(path), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size,) * 2


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'calibrant\[files\]'"):
        load(str(path))
    for labels in (CODE, np.array(COLUMNS["label"]), np.array(COLUMNS["label"], dtype="S")):
        np.savez(tmp_path / "data.npz", y_true=labels, y_prob=PROB, w=np.array(COLUMNS["w"]).astype(str))
        found = load(str(tmp_path / "data.npz"), ColumnRequest(sample_weight="w"))
        assert found.y_true.tolist() == (CODE.tolist() if labels is CODE else COLUMNS["label"])
        np.testing.assert_array_equal(found.y_prob, PROB)
        assert found.sample_weight.tolist() == COLUMNS["w"]


# NPZ


@pytest.mark.parametrize("names", [("y_true", "y_prob"), ("label", "scores"), ("arr_0", "arr_1"), ("b", "a")])
@pytest.mark.parametrize("prob", [PROB, PROB[:, 0]])
def test_arrays_of_an_archive(tmp_path, names, prob):
    truth = CODE if prob.ndim == 2 else CODE % 2
    np.savez(tmp_path / "data.npz", **{names[0]: truth, names[1]: prob})
    found = load(str(tmp_path / "data.npz"))
    np.testing.assert_array_equal(found.y_true, truth)
    np.testing.assert_array_equal(found.y_prob, prob)
    assert found.labels == (None if prob.ndim == 1 else (0, 1, 2))
    said = load(str(tmp_path / "data.npz"), ColumnRequest(label=names[0], scores=(names[1],)))
    np.testing.assert_array_equal(said.y_prob, prob)


def test_columns_of_a_matrix_can_be_picked(tmp_path):
    np.savez(tmp_path / "data.npz", y=CODE, a=PROB, b=PROB[::-1], c=np.float32(1))
    message = "scores must name the column: none is obvious, got the columns 'y', 'a_0', 'a_1'"
    with pytest.raises(ValueError, match=message):
        load(str(tmp_path / "data.npz"))
    np.testing.assert_array_equal(
        load(str(tmp_path / "data.npz"), ColumnRequest(scores=("b",))).y_prob, PROB[::-1]
    )
    found = load(str(tmp_path / "data.npz"), ColumnRequest(scores=("b_1",), positive="1"))
    np.testing.assert_array_equal(found.y_prob, PROB[::-1, 1])


def test_two_arrays_that_could_be_either_are_not_guessed(tmp_path):
    np.savez(tmp_path / "data.npz", a=PROB[:, 0], b=PROB[:, 1])
    with pytest.raises(
        ValueError, match="label must name the column: none is obvious, got the columns 'a', 'b'"
    ):
        load(str(tmp_path / "data.npz"))


# Which columns


@pytest.mark.parametrize(
    ("header", "label", "scores"),
    [
        ("label,p", "label", ("p",)),
        ("id,Y,Score", "Y", ("Score",)),
        ("y_true,y_pred,y_prob", "y_true", ("y_prob",)),
        ("TARGET,prediction,probability", "TARGET", ("probability",)),
        ("True Label,proba_1,proba_0", "True Label", ("proba_0", "proba_1")),
        ("class,p_0,p_1", "class", ("p_0", "p_1")),
        ("truth,p1,p0,pred", "truth", ("p0", "p1")),
        ("y,prob_0,prob_1,predicted_label", "y", ("prob_0", "prob_1")),
        ("y,score_1,weight", "y", ("score_1",)),
        ("y,p_10,p_9,p_1,p_0", "y", ("p_0", "p_1", "p_9", "p_10")),
    ],
)
def test_what_is_obvious_is_found(header, label, scores):
    def row(name):
        return f"{1 / len(scores)}" if name in scores else "1"

    found = of("\n".join([header, *[",".join(map(row, header.split(",")))] * 2]))
    assert found.columns == {"label": (label,), "scores": scores}
    assert found.y_prob.ndim == (1 if len(scores) == 1 else 2)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("a,b", ["label must name the column: none is obvious", "'a', 'b'"]),
        ("label,y,p", ["label must name the column: several may be it, got 'label', 'y'"]),
        ("label,a,b", ["scores must name the column: none is obvious", "'label', 'a', 'b'"]),
        ("label,p_0,p_1,score", ["several may be it, got 'score', 'p_*'"]),
        ("label,p_0,p_1,prob_0", ["'p_*', 'prob_*'"]),
        ("label,p,p", ["2 columns 'p'"]),
        ("0,0.5", ["the first row must name the columns"]),
        (",".join(f"c{k}" for k in range(50)), ["'c19', ... (50 in all)"]),
    ],
)
def test_what_is_not_obvious_is_asked_for(header, words):
    message = refusal(f"{header}\n" + ",".join(["0"] * (header.count(",") + 1)))
    for word in words:
        assert word in message


BOTH = "y,p_new_a,p_new_b,p_old_b,p_old_a,w\na,0.5,0.5,0.25,0.75,1\nb,0.25,0.75,1,0,2\n"


@pytest.mark.parametrize(
    ("scores", "names"),
    [
        (("p_new_*",), ("p_new_a", "p_new_b")),
        (("p_old_*",), ("p_old_b", "p_old_a")),
        (("p_new_b", "p_new_a"), ("p_new_b", "p_new_a")),
        (("p_new_*_x", "p_new_a"), None),
        (("p_*",), None),
    ],
)
def test_a_pattern_names_columns_and_classes(scores, names):
    if names is None:
        refusal(BOTH, scores=scores)
        return
    found = of(BOTH, scores=scores)
    assert found.columns["scores"] == names
    assert found.labels == tuple(name[-1] for name in names)


def test_scores_may_be_a_list_of_names():
    content = "y,cat,dog\ncat,0.5,0.5\ndog,0.25,0.75\n"
    for scores in (("dog,cat",), ("dog", "cat")):
        found = of(content, scores=scores)
        assert found.labels == ("dog", "cat")
        assert found.y_prob.tolist() == [[0.5, 0.5], [0.75, 0.25]]
    numbered = "y,no,yes\n0,0.5,0.5\n1,0.25,0.75\n"
    message = refusal(numbered, scores=("no, yes",))
    assert "scores must have columns named after the labels 0, 1, got 'no', 'yes'; pass labels=" in message
    assert of(numbered, scores=("no, yes",), labels=(0, 1)).labels == (0, 1)
    assert "scores must be names between commas" in refusal(content, scores=("dog,,cat",))
    assert "scores must name each column once, got 'dog' twice" in refusal(content, scores=("dog,dog",))
    assert "scores must be a column of the file, got 'cow'" in refusal(content, scores=("dog,cow",))
    assert "did you mean 'dog'?" in refusal(content, scores=("dogg",))
    assert "scores must match columns of the file, got 'q_*'" in refusal(content, scores=("q_*",))


def test_a_name_that_looks_like_a_list_or_pattern_is_a_name():
    content = 'y,"a,b",a*,a\n0,0.5,0.25,1\n1,0.5,0.25,1\n'
    assert of(content, scores=("a,b",)).y_prob.tolist() == [0.5, 0.5]
    assert of(content, scores=("a*",)).y_prob.tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("labels", "stems", "expected"),
    [
        (("0", "2"), ("0", "1", "2"), (0, 1, 2)),
        (("2.0", "0.0"), ("0", "1", "2"), (0, 1, 2)),
        (("a", "c"), ("a", "b", "c"), ("a", "b", "c")),
        (("true", "false"), ("true", "false", "other"), ("true", "false", "other")),
        (("0", "3"), ("2", "1", "4"), None),
        (("a", "d"), ("a", "b", "c"), None),
        (("0", "1"), ("a", "b", "c"), None),
    ],
)
def test_classes_are_those_of_the_pattern_if_they_cover_the_labels(labels, stems, expected):
    content = "y," + ",".join(f"p_{stem}" for stem in stems) + "\n"
    content += "".join(f"{label},0.5,0.25,0.25\n" for label in labels)
    if expected is None:
        message = refusal(content, scores=("p_*",))
        assert "scores must have columns named after the labels" in message
        assert ", ".join(f"'p_{stem}'" for stem in sorted(stems)) in message
        assert refusal(content) == message
    else:
        assert of(content, scores=("p_*",)).labels == expected
        assert of(content).labels == expected


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        ("0 1", None, None),
        ("-1 1", None, None),
        ("1 1", None, None),
        ("true False", None, None),
        ("yes no", "yes", "yes"),
        ("3 5", "5", 5),
        ("0 1", "0", 0),
        ("true false", "false", False),
        ("a b c", "c", "c"),
    ],
)
def test_one_column_of_scores_needs_a_positive_class_unless_usual(labels, positive, expected):
    content = "y,score\n" + "".join(f"{label},0.5\n" for label in labels.split())
    found = of(content, positive=positive)
    assert found.pos_label == expected
    assert type(found.pos_label) is type(expected)
    if "true" in labels:
        assert found.y_true.dtype == bool


@pytest.mark.parametrize("labels", ["yes no", "0 1 2", "1 2", "0.5 1.25", "true maybe"])
def test_unusual_labels_ask_for_the_positive_class(labels):
    message = refusal("y,score\n" + "".join(f"{label},0.5\n" for label in labels.split()))
    assert "pass pos_label=" in message
    for label in labels.split():
        assert label in message


def test_one_column_of_a_family_is_of_the_class_it_is_named_after():
    assert of("y,p_0\n0,0.5\n1,0.5\n").pos_label == 0
    assert of("y,p_dog\ncat,0.5\ndog,0.5\n").pos_label == "dog"
    assert of("y,p_dog\ncat,0.5\ndog,0.5\n", positive="cat").pos_label == "cat"
    assert of("y,p_0\n1,0.5\n1,0.5\n").pos_label == 0  # whichever labels occur


def test_pairs_of_right_and_sure_are_found_when_nothing_else_fits():
    found = of("id,is_correct,confidence\n1,true,0.5\n2,false,0.25\n")
    assert found.columns == {"label": ("is_correct",), "scores": ("confidence",)}
    assert found.y_true.tolist() == [True, False]
    assert of("correct,conf,y,p\n1,0.5,0,0.5\n").columns == {"label": ("y",), "scores": ("p",)}
    assert "none is obvious" in refusal("y,confidence\n1,0.5\n")


def test_a_positive_class_that_never_occurs_is_refused():
    assert "pos_label must be one of 'cat', 'dog', got 'eel'" in refusal(
        "y,p\ncat,0.5\ndog,0.5\n", positive="eel"
    )


def test_labels_are_not_needed_where_nobody_asks():
    found = of("p_0,p_1\n0.5,0.5\n", labelled=False, positive="1")
    assert found.y_true is None
    assert (found.labels, found.pos_label) == ((0, 1), 1)
    assert of("a,score\n1,0.5\n", labelled=False).labels is None
    assert of(BOTH, labelled=False, label="y", scores=("p_new_*",)).labels == ("a", "b")


def test_columns_of_other_roles_are_no_scores():
    content = "p_true,p_0,p_1,p_w\n0,0.5,0.5,1\n1,0.5,0.5,2\n"
    found = of(content, label="p_true", scores=("p_*",), sample_weight="p_w")
    assert found.columns["scores"] == ("p_0", "p_1")
    assert of(content, label="p_true", sample_weight="p_w").columns["scores"] == ("p_0", "p_1")


def test_several_models_of_one_file():
    models = {"new": ("p_new_*",), "old": ("p_old_*",)}
    found = load_models("-", ColumnRequest(sample_weight="w"), models, stdin=io.BytesIO(BOTH.encode()))
    assert found["new"].labels == ("a", "b")
    assert found["old"].labels == ("b", "a")
    assert found["old"].y_prob.tolist() == [[0.25, 0.75], [1, 0]]
    assert found["old"].sample_weight.tolist() == [1, 2]


# Bad files


def npz_member(header, body=bytes(80)):
    padded = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + body


def archive(*members, method=zipfile.ZIP_DEFLATED, names=("y_true.npy", "y_prob.npy")):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, content in zip(names, members, strict=True):
            made.writestr(name, content)
    return file.getvalue()


def saved(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def arrow_bytes(columns):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def headed(shape, kind="<f8"):
    return npz_member(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")


TEN, HALF = headed("(10,)", "<i8"), headed("(10,)")
LYING = bytearray(archive(TEN, HALF))
# The size that the last entry of the central directory claims, 24 bytes into it.
struct.pack_into("<I", LYING, LYING.rindex(b"PK\x01\x02") + 24, 2**32 - 2)
ESCAPE = "\x1b[31m\x07\u202ered"
WHOLE = arrow_bytes({"y": [0, 1], "p": [0.5, 0.25]})

BAD = {
    "empty": (b"", "csv", ["is empty"]),
    "blank": ("\n\n", "csv", ["a header and rows are needed"]),
    "header only": ("y,p\n", "csv", ["has no rows"]),
    "text": ("y,p\n" + "0,0.5\n" * 16 + "1,n/a\n", "csv", ["'p' must hold finite", "got 'n/a' at row 17"]),
    "nan": ("y,p\n0,nan\n", "csv", ["got nan at row 1"]),
    "infinite": ("y,p\n0,0.5\n1,1e999\n", "csv", ["got inf at row 2"]),
    "underscore": ("y,p\n0,0_1\n", "csv", ["got '0_1' at row 1"]),
    "decimal comma": ("y;p\n0;0,5\n", "csv", ["got '0,5' at row 1; write decimals with a point"]),
    "missing scores": (
        "y,p\n0,0.5\n1,\n1, \n",
        "csv",
        ["'p' must have no missing values, got 1, the first at row 2"],
    ),
    "missing label": (
        "y,p\n0,0.5\n,0.5\n",
        "csv",
        ["'y' must have no missing values, got 1, the first at row 2"],
    ),
    "ragged, long": ("y,p\n0,0.5\n1,0.5,3\n", "csv", ["row 2 has 3 fields where the header has 2"]),
    "ragged, short": ("y,p\n0,0.5\n\n1\n", "csv", ["row 2 has 1 field where the header has 2"]),
    "NUL": (b"y,p\n0,0.5\0\n", "csv", ["NUL"]),
    "zeros": (bytes(10**6), "csv", ["NUL"]),
    "junk": (bytes(range(255, 0, -1)) * 20, "csv", ["not UTF-8 text: it has the byte 0xff"]),
    "latin": ("y,p\ncaf\xe9,0.5\n".encode("latin-1"), "csv", ["not UTF-8 text: it has the byte 0xe9"]),
    "wide": ("y,p\n0,0.5\n".encode("utf-16"), "csv", ["looks like UTF-16"]),
    "long field": ("y,p\n" + "x" * 200_000 + ",0.5\n", "csv", ["label must hold 0 and 1"]),
    "open quote": ('y,p\n0,0.5\n"1,0.5\n', "csv", ["row 2", "is a quote left open?"]),
    "escape": (f"y,p\n0,{ESCAPE}\n", "csv", [r"'\x1b[31m\x07\u202ered'"]),
    "escape in a name": (f"y,{ESCAPE}\n0,1\n", "csv", [r"'\x1b[31m"]),
    "escape in a label": (f"y,p\n{ESCAPE},1\n", "csv", [r"'\x1b[31m"]),
    "a long value": ("y,p\n0," + "x" * 1000 + "\n", "csv", ["xxx at row 1"]),
    "parquet in csv": (WHOLE, "csv", ["format must be parquet, as its first bytes are, got 'csv'"]),
    "broken JSON": (
        '{"y": 1, "p": 0.5}\n{"y": 1, "p": 0.5\n',
        "jsonl",
        ["JSON parse error: Missing a comma"],
    ),
    "JSON of numbers": ("1\n", "jsonl", ["changed from object to number"]),
    "JSON with NaN": ('{"y": 1, "p": NaN}', "jsonl", ["got nan at row 1"]),
    "JSON beyond floats": ('{"y": 1, "p": 1e999}', "jsonl", ["Number too big"]),
    "JSON of many digits": (f'{{"y": 1, "p": {"1" * 5000}}}', "jsonl", ["got inf at row 1"]),
    "JSON null": (
        '{"y": 1, "p": null}\n{"y": 1}\n',
        "jsonl",
        ["'p' must have no missing values, got 2, the first at row 1"],
    ),
    "nested scores": ('{"y": 1, "p": [0.5]}', "jsonl", ["'p' must hold numbers, got the type list"]),
    "nested label": (
        '{"y": {"a": 1}, "p": 0.5}',
        "jsonl",
        ["'y' must hold numbers or text, got the type struct"],
    ),
    "deep and whole JSON": ('{"y": 0, "p": ' + "[" * 100_000 + "]" * 100_000 + "}", "jsonl", ["too deeply"]),
    "deep list": ('[{"y": 0, "p": ' + "[" * 100_000 + "]" * 100_000 + "}]", "json", ["too deeply"]),
    "nested in a list": ('[{"y": 0, "p": [0.5]}]', "json", ["'p' must hold numbers, got the type list"]),
    "deep JSON": ('{"y": ' + "[" * 100_000, "jsonl", ["nested too deeply"]),
    "mixed label": (
        '{"y": 1, "p": 0}\n{"y": "a", "p": 0}\n',
        "jsonl",
        ["changed from number to string in row 1"],
    ),
    "mixed booleans": (
        '{"y": 1, "p": 0}\n{"y": true, "p": 0}\n',
        "jsonl",
        ["changed from number to boolean in row 1"],
    ),
    "no records": ("[]", "json", ["holds no records"]),
    "a list of numbers": ("[1, 2]", "json", ["row 1 must be an object"]),
    "broken list": ('[{"y": 1},\n{"y": ]', "json", ["is no JSON", "line 2"]),
    "truncated parquet": (WHOLE[: len(WHOLE) // 2], None, ["cannot be read"]),
    "text in parquet": ("y,p\n", "parquet", ["cannot be read"]),
    "null in parquet": (arrow_bytes({"y": [0, 1], "p": [0.5, None]}), None, ["missing values", "at row 2"]),
    "nan in parquet": (arrow_bytes({"y": [0, 1], "p": [0.5, np.nan]}), None, ["missing values", "at row 2"]),
    "text in a column": (arrow_bytes({"y": [0, 1], "p": ["0.5", "n/a"]}), None, ["got 'n/a' at row 2"]),
    "lists in a column": (
        arrow_bytes({"y": [0], "p": [[0.5]]}),
        None,
        ["must hold numbers, got the type list"],
    ),
    "booleans as scores": (arrow_bytes({"y": [0], "p": [True]}), None, ["got the type bool"]),
    "no rows in parquet": (arrow_bytes({"y": pa.array([], pa.int64()), "p": []}), None, ["has no rows"]),
    "truncated arrow": (b"ARROW1\0\0" + bytes(50), None, ["cannot be read"]),
    "pickled": (saved(y=np.array([{}, 1], object), p=np.zeros(2)), None, ["pickled objects in", "'y'"]),
    "infinity in npz": (saved(y=np.ones(2, int), p=np.array([0, np.inf])), None, ["got inf at row 2"]),
    "complex": (saved(y=np.ones(2, int), p=np.ones(2) * 1j), None, ["got the type complex128"]),
    "lengths": (saved(y=np.ones(2, int), p=np.ones(3)), None, ["'p' 3", "'y' 2"]),
    "no rows": (saved(y=np.ones(0, int), p=np.ones(0)), None, ["no rows"]),
    "scalars": (saved(y=np.float64(1)), None, ["no vector and no matrix"]),
    "absurd shape": (archive(TEN, headed("(1000000000000,)")), None, ["declares the shape"]),
    "negative shape": (archive(TEN, headed("(-10,)")), None, ["declares the shape (-10,)"]),
    "no size": (archive(TEN, headed("(1000000000,)", "<U0")), None, ["declares the shape"]),
    "wide matrix": (archive(TEN, headed("(10, 1000000000)")), None, ["declares the shape"]),
    "code in a header": (archive(TEN, npz_member("{'descr': (lambda: 1)()}")), None, ["no array"]),
    "half a header": (archive(TEN, HALF[:100]), None, ["no array"]),
    "version": (archive(TEN, b"\x93NUMPY\x09\x00" + HALF[8:]), None, ["no array"]),
    "a size that lies": (bytes(LYING), None, ["claims 4294967294 bytes and cannot hold them"]),
    "compression": (archive(TEN, HALF, method=zipfile.ZIP_LZMA), None, ["compression that numpy"]),
    "truncated npz": (archive(TEN, HALF)[:-30], None, ["cannot be read"]),
    "a workbook": (archive(b"", names=["xl/workbook.xml"]), None, ["is a workbook; save it as CSV"]),
    "a single array": (TEN, None, ["a single array", "np.savez"]),
    "a short member": (archive(TEN, HALF[:-8]), None, ["declares the shape (10,) and holds 72 bytes"]),
    "truncated gzip": (gzip.compress(b"y,p\n" + b"0,0.5\n" * 99)[:-9], None, ["cannot be read"]),
    "gzipped parquet": (gzip.compress(WHOLE), None, ["parquet within gzip"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_clear_line(name):
    content, format, words = BAD[name]
    message = refusal(content, format=format)
    assert message.startswith(("standard input: ", "cannot read standard input: "))
    for word in words:
        assert word in message


def test_a_file_that_cannot_be_opened_is_one_clear_line(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"^cannot read .*missing.csv: No such file or directory$"):
        load(str(tmp_path / "missing.csv"))
    with pytest.raises(ValueError, match="holds no CSV, Parquet or Arrow files"):
        load(str(tmp_path))
    with pytest.raises(ValueError, match=r"null (byte|character)"):
        load("a\0b")
    with pytest.raises(OSError, match=re.escape(r"cannot read \x1b[31m.csv")):
        load("\x1b[31m.csv")

    def refused(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(PermissionError, match=r"^cannot read secret.csv: Permission denied$"):
        load("secret.csv")


def test_suffixes_that_lie_are_named(tmp_path):
    (tmp_path / "data.csv.gz").write_text("y,p\n")
    with pytest.raises(ValueError, match=r"called .gz and is not gzipped"):
        load(str(tmp_path / "data.csv.gz"))
    np.save(tmp_path / "data.npy", np.zeros(3))
    with pytest.raises(ValueError, match="single array"):
        load(str(tmp_path / "data.npy"))


@pytest.mark.parametrize("format", ["csv", "jsonl", "npz"])
def test_a_million_columns_are_refused(format):
    names = [f"c{k}" for k in range(1_000_000)]
    content = {
        "csv": lambda: ",".join(names) + "\n" + "0," * 999_999 + "0\n",
        "jsonl": lambda: "{" + ",".join(f'"{name}":0' for name in names) + "}",
        "npz": lambda: saved(y=np.zeros(1, int), p=np.zeros((1, 1_000_000), np.float16)),
    }[format]()
    words = r"has (100000\d columns, more than the 20000|a first line of more than 4 MiB)"
    assert re.search(words, refusal(content, format=format))


def test_twenty_thousand_columns_are_read():
    names = ",".join(f"p_{k}" for k in range(19_999))
    found = of(f"y,{names}\n" + "".join(f"{k}" + ",0" * 19_998 + ",1\n" for k in range(3)))
    assert found.y_prob.shape == (3, 19_999)
    assert found.labels == tuple(range(19_999))


def test_what_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    for suffix in ("parquet", "npz", "csv.gz"):
        path = write(tmp_path / f"data.{suffix}")
        with monkeypatch.context() as patch:
            patch.setattr(files, "MOST_BYTES", 1000)
            with pytest.raises(ValueError, match=r"would unpack to"):
                load(str(path))
            with pytest.raises(ValueError, match=r"(would unpack to|holds more than)"):
                of(path.read_bytes())
        load(str(path))


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1000)
    assert "has a first line of more than" in refusal("y" * 100_000)
    monkeypatch.setattr(text, "LONGEST", 5000)
    assert "row 1 has no end, or is longer than" in refusal("y,p\n" + "1" * 100_000)
    assert "row 1 has no end, or is longer than" in refusal('y,p\n"' + "1,0\n" * 50_000)
    assert "has a line of more than" in refusal('{"y": ' + "1" * 100_000)
    monkeypatch.setattr(text, "LIST", 8000)
    assert "write a record a line" in refusal(
        json.dumps([{"y": 0, "p": 0.5}] * 1000, indent=1), format="json"
    )


@pytest.mark.parametrize("error", [ValueError("odd"), MemoryError(), EOFError("odd")])
def test_errors_get_the_name_of_the_file(tmp_path, monkeypatch, error):
    def broken(*args):
        raise error

    monkeypatch.setattr(readers, "csv_tables", broken)
    with pytest.raises(ValueError, match=r"data.csv: (odd|does not fit into memory|cannot be read: odd)"):
        load(str(write(tmp_path / "data.csv")))


# Fuzzing


def either(content, format=None):
    """Data, or a refusal in one printable line."""
    message = ""
    try:
        found = of(content, ColumnRequest(label="y", scores=("p",)), format=format)
        assert len(found.y_true) == len(found.y_prob) > 0
        assert np.isfinite(found.y_prob).all()
    except (ValueError, OSError) as error:
        message = str(error)
    assert message == "" or message.isprintable()
    assert len(message) < 1500


FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PLAIN = b'y,p,"a ""b"""\n' + b"".join(b"%d,0.%d,x\n" % (k % 2, k) for k in range(20))
LINES = b"".join(b'{"y": %d, "p": 0.%d, "z": null}\n' % (k % 2, k) for k in range(20))
SAVED = saved(y=np.arange(10) % 2, p=np.linspace(0, 1, 10), t=np.array(["a", "b"] * 5))


@st.composite
def mutated(draw, content):
    """A valid file, cut, with some bytes changed and some put in."""
    found = bytearray(content[: draw(st.integers(len(content) // 2, len(content)))])
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, max(len(found) - 1, 0)))
        found[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(found)


@FUZZ
@given(st.binary(max_size=300))
def test_random_bytes_are_data_or_refused(content):
    either(content)
    either(b"y,p\n" + content, "csv")
    either(b'{"y": 1, "p":' + content, "jsonl")
    either(b"PK\x03\x04" + content)


@FUZZ
@given(st.text(alphabet='yp01.,;|\t\n\r" \x00é{}[]:_-e', max_size=100))
def test_random_text_is_data_or_refused(content):
    either("y,p\n" + content, "csv")
    either(content, "json")
    either(content, "tsv")


@FUZZ
@given(mutated(PLAIN))
def test_a_damaged_csv_is_data_or_refused(content):
    either(content, "csv")


@FUZZ
@given(mutated(LINES))
def test_damaged_json_lines_are_data_or_refused(content):
    either(content, "jsonl")


@FUZZ
@given(mutated(SAVED))
def test_a_damaged_npz_is_data_or_refused(content):
    either(content, "npz")


@FUZZ
@given(
    st.sampled_from(
        ["<f8", "<i8", "|b1", "<U3", "|S2", "|O", "<V8", "<M8[s]", "<U0", ">f4", "<c16", "f16", "x"]
    ),
    st.one_of(st.lists(st.integers(-5, 2**70), max_size=4).map(tuple), st.text(max_size=5)),
    st.booleans(),
    st.binary(max_size=100),
)
def test_an_npz_that_declares_anything_is_data_or_refused(kind, shape, order, body):
    member = npz_member(f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape!r}, }}", body)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("p.npy", member)
        made.writestr("y.npy", TEN)
    either(file.getvalue())


def test_labels_of_ignored_rows_and_fractions_are_recognised():
    one = "label,score\n0,0.25\n1,0.5\n"
    ignored = "labels of -100 usually mark rows to ignore: drop these rows first"
    assert refusal(one + "-100,0.5\n").endswith(f"got -100, 0, 1; {ignored}")
    message = refusal(one + "0.25,0.5\n")
    assert message.endswith(
        "are labels and scores swapped? if not, these look like soft labels or rates: "
        "pass one observed label per row"
    )
    three = "label,p_0,p_1,p_2\n0,0.25,0.25,0.5\n2,0.25,0.25,0.5\n"
    assert refusal(three + "-100,0.25,0.25,0.5\n").endswith(f"got -100 at row 3; {ignored}")
