"""Every rule about input: what is accepted and how it is read, what is refused and in which words."""

import math
import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant import inputs
from calibrant.inputs import predictions

Y = [0, 1, 1, 0]
P = [0.1, 0.7, 0.8, 0.4]
MATRIX = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.125, 0.125, 0.75], [0.25, 0.5, 0.25]])
Y3 = [0, 1, 2, 1]


def refuses(*parts, error=ValueError):
    """Expect an error whose message holds all the parts, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(str(part)) for part in parts))


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Tensor:
    """What the checks know of a torch tensor; numpy cannot read it before it is detached and on the CPU."""

    def __init__(self, data, dtype="torch.float32", ready=False):
        self.data, self.dtype, self.ready = np.asarray(data), dtype, ready

    def detach(self):
        return Tensor(self.data, self.dtype, "detached")

    def cpu(self):
        return Tensor(self.data, self.dtype, self.ready == "detached")

    def float(self):
        return Tensor(self.data.astype(np.float32), "torch.float32", self.ready)

    def numpy(self):
        if self.ready is not True or self.dtype == "torch.bfloat16":
            raise TypeError("can't convert")
        return self.data

    __array__ = None


class Brain16:
    """An array of a package that brings bfloat16 to numpy."""

    dtype = "bfloat16"

    def __init__(self, data):
        self.data = np.asarray(data)

    def astype(self, dtype):
        return self.data.astype(dtype)


# ---- what comes out


def test_a_score_per_row_is_that_of_the_positive_class():
    found = predictions(np.array(Y), np.array(P))
    assert found.score.tolist() == P
    assert found.code.dtype == bool
    assert found.code.tolist() == [False, True, True, False]
    assert (found.weight, found.labels, found.positive) == (None, (0, 1), 1)


def test_a_matrix_gives_the_column_of_each_label():
    found = predictions(np.array(Y3), MATRIX)
    assert found.code.dtype == np.intp
    assert found.code.tolist() == Y3
    assert (found.labels, found.positive) == ((0, 1, 2), None)


def test_two_columns_have_the_second_as_positive_class_unless_told():
    two = np.column_stack([np.subtract(1, P), P])
    assert predictions(Y, two).positive == 1
    assert predictions(Y, two, pos_label=0).positive == 0
    assert predictions(Y, two).code.tolist() == Y


def test_a_positive_class_is_a_column_of_the_matrix():
    assert predictions(Y3, MATRIX, pos_label=2).positive == 2
    assert predictions(["a", "b", "c", "b"], MATRIX, pos_label="a").positive == 0
    with refuses("pos_label", "0, 1, 2", "got 3"):
        predictions(Y3, MATRIX, pos_label=3)
    with refuses("pos_label", "0, 1, 2", "got '2'"):
        predictions(Y3, MATRIX, pos_label="2")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_native_floats_are_neither_copied_nor_converted(dtype):
    for score, y in (
        (np.array(P, dtype), Y),
        (MATRIX.astype(dtype), Y3),
        (MATRIX.astype(dtype)[::2], [0, 2]),
    ):
        found = predictions(y, score).score
        assert found.dtype == dtype
        assert np.shares_memory(found, score)


def test_column_indices_are_not_copied():
    y = np.array(Y3)
    assert np.shares_memory(predictions(y, MATRIX).code, y)


def test_predictions_are_frozen():
    with pytest.raises(AttributeError):
        predictions(Y, P).positive = 0


# ---- forms of input


FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "read-only": lambda v: np.frombuffer(np.array(v).tobytes(), np.array(v).dtype),
    "strided": lambda v: np.repeat(np.array(v), 3)[::3],
    "reversed": lambda v: np.array(v)[::-1].copy()[::-1],
    "big-endian": lambda v: np.array(v).astype(np.array(v).dtype.newbyteorder(">")),
    "object": lambda v: np.array(v, dtype=object),
    "unmasked": np.ma.array,
    "pandas": pd.Series,
    "pandas, other index": lambda v: pd.Series(v, index=range(len(v), 0, -1)),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas nullable": lambda v: pd.Series(v, dtype="Float64" if isinstance(v[0], float) else "Int64"),
    "pandas arrow": lambda v: pd.Series(pa.array(v), dtype=pd.ArrowDtype(pa.array(v).type)),
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunks": lambda v: pa.chunked_array([v[:1], v[1:]]),
    "arrow protocol": lambda v: type("Column", (), {"__arrow_array__": lambda self: pa.array(v)})(),
    "to_numpy": lambda v: type("Column", (), {"to_numpy": lambda self: np.array(v)})(),
    "memoryview": lambda v: memoryview(np.array(v)),
    "tensor": lambda v: Tensor(np.array(v), "torch.float64"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_column_reads_the_same(form):
    for kind, dtype in {"counts": np.int64, "sample_weight": np.float64}.items():
        found = predictions(form(Y), form(P), **{kind: form([1, 2, 3, 4])})
        assert found.score.tolist() == P
        assert found.code.tolist() == [False, True, True, False]
        assert found.weight.dtype == dtype
        assert found.weight.tolist() == [1, 2, 3, 4]
    assert predictions(form(Y3), MATRIX).code.tolist() == Y3


@pytest.mark.parametrize(
    "form", [list, np.array, pd.Series, pl.Series, pa.array, lambda v: np.array(v, dtype=object)]
)
def test_every_form_of_text_labels_reads_the_same(form):
    assert predictions(form(["b", "a", "c", "a"]), MATRIX).code.tolist() == [1, 0, 2, 0]
    assert predictions(form(["n", "y", "y", "n"]), P, pos_label="y").code.tolist() == [
        False,
        True,
        True,
        False,
    ]
    categories = pd.Series(["b", "a", "c", "a"], dtype="category")
    assert predictions(categories, MATRIX).code.tolist() == [1, 0, 2, 0]
    assert predictions(pa.array(["b", "a", "c", "a"]).dictionary_encode(), MATRIX).code.tolist() == [
        1,
        0,
        2,
        0,
    ]


MATRIX_FORMS = {
    "lists": lambda m: m.tolist(),
    "list of arrays": list,
    "fortran": np.asfortranarray,
    "strided rows": lambda m: np.repeat(m, 2, axis=0)[::2],
    "strided columns": lambda m: np.repeat(m, 2, axis=1)[:, ::2],
    "both reversed": lambda m: m[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda m: m.astype(">f8"),
    "read-only": lambda m: np.frombuffer(m.tobytes()).reshape(m.shape),
    "object": lambda m: m.astype(object),
    "long double": lambda m: m.astype(np.longdouble),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda m: pd.DataFrame(m).astype("Float64"),
    "polars": lambda m: pl.DataFrame(m, schema=["x0", "x1", "x2"]),
    "polars array": lambda m: pl.Series(m.tolist(), dtype=pl.Array(pl.Float64, m.shape[1])),
    "arrow": lambda m: pa.table(list(m.T), names=["x0", "x1", "x2"]),
    "tensor": lambda m: Tensor(m, "torch.float64"),
}


@pytest.mark.parametrize("form", MATRIX_FORMS.values(), ids=MATRIX_FORMS)
def test_every_form_of_a_matrix_reads_the_same(form):
    found = predictions(Y3, form(MATRIX))
    assert found.score.dtype == np.float64
    np.testing.assert_array_equal(found.score, MATRIX)
    assert found.code.tolist() == Y3
    assert found.labels == (0, 1, 2)


def test_integers_booleans_decimals_and_fractions_are_scores():
    for score in ([0, 1, 1, 0], np.array([0, 1, 1, 0], np.uint8), [False, True, True, False]):
        found = predictions(Y, score).score
        assert found.dtype == np.float64
        assert found.tolist() == [0, 1, 1, 0]
    assert predictions(Y, [Decimal("0.5")] * 4).score.tolist() == [0.5] * 4
    assert predictions(Y, [Fraction(1, 4)] * 4).score.tolist() == [0.25] * 4


def test_negative_zero_is_a_score():
    assert predictions(Y, [-0.0, 1.0, 0.5, -0.0]).score.tolist() == [0, 1, 0.5, 0]
    assert predictions([0, 1], np.array([[-0.0, 1.0], [1.0, -0.0]])).score.shape == (2, 2)


@pytest.mark.parametrize("name", [name for name in FORMS if name not in ("arrow protocol", "to_numpy")])
def test_inputs_are_never_changed(name):
    form = FORMS[name]

    def snapshot(values):
        return repr([np.asarray(v.data if isinstance(v, Tensor) else v).tolist() for v in values])

    given = form([0, 1, 1, 0]), form([0.1, 0.2, 0.3, 0.4]), form([0, 2, 3, 4])
    before = snapshot(given)
    predictions(given[0], given[1], sample_weight=given[2])
    assert snapshot(given) == before


def test_a_matrix_is_checked_without_a_second_one_in_memory():
    p = softmax(np.random.default_rng(0).normal(size=(20_000, 200))).astype(np.float32)
    y = np.zeros(20_000, int)
    tracemalloc.start()
    predictions(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < p.nbytes / 20


# ---- shapes and lengths


def test_labels_in_a_column_are_refused_with_the_remedy():
    with refuses("y_true must be one-dimensional, got shape (4, 1); pass y_true.ravel()"):
        predictions(np.array(Y)[:, None], P)
    with refuses("y_true", "(4, 1)", "np.ravel(y_true)"):
        predictions(pd.DataFrame({"y": Y}), P)
    with refuses("y_true", "(1, 4)", "ravel"):
        predictions([Y], P)


def test_scores_in_a_column_are_refused_with_the_remedy():
    with refuses("y_prob", "one-dimensional or have a column per class", "(4, 1)", "pass y_prob.ravel()"):
        predictions(Y, np.array(P)[:, None])


def test_weights_in_a_column_are_refused_with_the_remedy():
    with refuses("sample_weight", "(4, 1)", "sample_weight.ravel()"):
        predictions(Y, P, sample_weight=np.ones((4, 1)))


def test_one_hot_labels_are_refused_with_the_remedy():
    with refuses("y_true", "one-dimensional", "(4, 3)", "one-hot labels? pass np.argmax(y_true, axis=1)"):
        predictions(np.eye(3)[Y3], MATRIX)


@pytest.mark.parametrize("shape", [(2, 2, 2), (4, 0)])
def test_other_shapes_are_refused(shape):
    with refuses("y_prob", shape):
        predictions(Y, np.zeros(shape))
    with refuses("y_true", shape):
        predictions(np.zeros(shape), P)


@pytest.mark.parametrize("single", [1, 0.5, "abc", np.array(1.0), {0, 1}, None])
def test_a_single_value_is_refused(single):
    with refuses("y_true must be one-dimensional, got"):
        predictions(single, P)
    with refuses("y_prob must be one-dimensional or have a column per class, got"):
        predictions(Y, single)


def test_ragged_lists_are_refused():
    with refuses("y_prob must be readable as an array"):
        predictions(Y, [[0.5, 0.5], [1.0], [0.5, 0.5], [0.5, 0.5]])


def test_lengths_that_differ_are_both_named():
    with refuses("y_true and y_prob", "4 labels", "3 rows"):
        predictions(Y, P[:3])
    with refuses("sample_weight", "3 weights", "4 labels"):
        predictions(Y, P, sample_weight=[1, 1, 1])


def test_empty_input_is_refused():
    with refuses("y_true and y_prob must not be empty"):
        predictions([], [])
    with refuses("must not be empty"):
        predictions([], np.empty((0, 3)))


# ---- scores


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_scores_that_are_not_finite_are_refused_with_their_position(bad, dtype):
    p = np.array(P, dtype)
    p[2] = bad
    with refuses("y_prob must be finite", f"got {bad} at row 2"):
        predictions(Y, p)
    m = MATRIX.astype(dtype)
    m[3, 1] = bad
    with refuses("y_prob must be finite", f"got {bad} at row 3, column 1"):
        predictions(Y3, m)


@pytest.mark.parametrize("bad", [-0.5, 1.25, -1e-9, 1.0000001])
def test_scores_outside_the_unit_interval_are_refused_with_their_position(bad):
    with refuses("y_prob must lie in [0, 1]", f"got {bad} at row 1"):
        predictions(Y, [0.1, bad, 0.2, 0.3])
    m = MATRIX.copy()
    m[2, 0] = bad
    with refuses("y_prob must lie in [0, 1]", f"got {bad} at row 2, column 0"):
        predictions(Y3, m)


def test_a_bad_score_in_a_late_block_is_found():
    p = np.full((600_000, 2), 0.5)
    p[599_999, 1] = np.nan
    with refuses("y_prob", "nan at row 599999, column 1"):
        predictions(np.zeros(600_000, int), p)
    p[599_999, 1] = 0.75
    with refuses("y_prob", "1.25 at row 599999"):
        predictions(np.zeros(600_000, int), p)


def test_a_value_out_of_range_is_reported_before_a_sum():
    m = MATRIX.copy()
    m[0, 0], m[3, 2] = 0.4, 2.0
    with refuses("got 2.0 at row 3, column 2"):
        predictions(Y3, m)


def test_logits_are_recognised():
    with refuses("got -2.0 at row 0", "look like logits: apply sigmoid first; or pass from_logits=True"):
        predictions(Y, [-2.0, 0.3, 4.0, 0.1])
    with refuses("got 3.0 at row 0, column 0", "look like logits: apply softmax first; or pass from"):
        predictions([0, 1], [[3.0, -1.0], [0.5, 0.5]])


def test_percentages_are_recognised():
    with refuses("got 70.0 at row 1", "percentages: divide by 100"):
        predictions(Y, [1.0, 70.0, 80.0, 40.0])


@pytest.mark.parametrize("bad", [1.0001, -1e-6, 1.5])
def test_a_small_excursion_is_not_called_a_logit(bad):
    with pytest.raises(ValueError, match=r"\[0, 1\]") as caught:
        predictions(Y, [0.1, bad, 0.2, 0.3])
    assert "logit" not in str(caught.value)
    assert "percent" not in str(caught.value)


def test_text_scores_are_refused():
    with refuses("y_prob must hold real numbers", "'0.1' at row 0", error=TypeError):
        predictions(Y, ["0.1", "0.2", "0.3", "0.4"])
    with refuses("y_prob must hold real numbers", "'x' at row 2", error=TypeError):
        predictions(Y, [0.1, 0.2, "x", 0.4])
    with refuses("y_prob must hold real numbers", "'0.1' at row 0", error=TypeError):
        predictions(Y, np.array(["0.1", "0.2", "0.3", "0.4"]))
    with refuses("y_prob must hold real numbers", "'x' at row 1, column 1", error=TypeError):
        predictions([0, 1], pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, "x"]}))


@pytest.mark.parametrize("dtype", [complex, "datetime64[s]", "V8"])
def test_scores_of_other_types_are_refused(dtype):
    with refuses("y_prob must hold real numbers", np.dtype(dtype), error=TypeError):
        predictions(Y, np.zeros(4, dtype))


def test_a_column_of_lists_is_refused_with_its_position():
    with refuses("y_prob must hold real numbers", "at row 0", error=TypeError):
        predictions([0, 1], pl.Series([[0.5, 0.5], [0.1, 0.9]]))


@given(hnp.arrays(st.sampled_from([np.float64, np.float32, np.float16]), st.integers(1, 30)))
def test_scores_pass_exactly_when_all_lie_in_the_unit_interval(p):
    valid = [0 <= float(v) <= 1 for v in p]
    y = np.zeros(len(p), int)
    if all(valid):
        assert predictions(y, p).score is p
        return
    with pytest.raises(ValueError, match="y_prob must") as caught:
        predictions(y, p)
    finite = [math.isfinite(v) for v in p]
    first = valid.index(False) if all(finite) else finite.index(False)
    assert f"got {p[first]!s} at row {first}" in str(caught.value)


# ---- sums of rows


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-6), (np.float32, 1e-4), (np.float16, 2e-3)])
def test_rows_must_sum_to_one_within_what_the_precision_allows(dtype, tolerance):
    def rows(gap):
        return np.array([[0.5, 0.5], [0.5, 0.5 + gap], [0.5, 0.5 + gap / 4]]).astype(dtype)

    assert predictions([0, 1, 1], rows(0.8 * tolerance)).score.dtype == dtype
    assert predictions([0, 1, 1], rows(-0.8 * tolerance)).score.dtype == dtype
    for gap in (2 * tolerance, -2 * tolerance):
        total = float(rows(gap)[1].sum(dtype=float))
        with refuses("y_prob", "sum to 1", f"{tolerance:g}", f"got {total:.9g} at row 1"):
            predictions([0, 1, 1], rows(gap))


def test_a_gap_of_just_the_tolerance_passes():
    predictions([0, 1], [[0.5, 0.5], [0.333333, 0.666666]])


def test_the_worst_row_is_the_one_reported():
    m = np.full((50_000, 4), 0.25)
    m[100, 0], m[40_000, 3] = 0.3, 0.15
    with refuses("got 0.9 at row 40000"):
        predictions(np.zeros(50_000, int), m)


def test_rounded_rows_are_told_to_be_divided_by_their_sum():
    with refuses("got 0.99 at row 0", "rounded, divide each row by its sum"):
        predictions([0, 1], [[0.33, 0.33, 0.33], [0.5, 0.25, 0.25]])


@pytest.mark.parametrize("row", [(0.9, 0.2, 0.4), (0.1, 0.1, 0.1), (1.0, 1.0, 0.0)])
def test_rows_of_sigmoids_are_called_multi_label_and_never_sent_to_softmax(row):
    with refuses(f"got {sum(row):.9g} at row 1", "(multi-label), measure each column") as caught:
        predictions([0, 1], [[0.5, 0.5, 0.0], row])
    assert "softmax" not in str(caught.value)


def test_several_labels_a_row_are_called_multi_label():
    with refuses("y_true must be one-dimensional", "(multi-label), measure each column"):
        predictions([[1, 0, 1], [0, 1, 0]], [[0.9, 0.2, 0.4], [0.1, 0.8, 0.1]])


@pytest.mark.parametrize(
    ("y_true", "predicted"),
    [
        ([0, 1, 2, 1], [0, 2, 2, 1]),
        ([0, 1, 2, 1], [0.0, 2.0, 2.0, 1.0]),
        ([10, 20, 30, 20], [10, 30, 30, 20]),
        ([0, 1, 2, 1], [0, 3, 2, 1]),  # a class that no label is of
        ([-1, 1, 1, -1], [-1, -1, 1, 1]),
        ([0, 1, 1, 0], [-1, -1, 1, 1]),
        (["cat", "dog", "dog", "cat"], ["dog", "dog", "cat", "cat"]),
        (np.array(["cat", "dog", "dog", "cat"]), np.array(["dog", "dog", "cat", "cat"])),
    ],
)
def test_predicted_classes_in_place_of_scores_are_told_so(y_true, predicted):
    with refuses("y_prob must", "did you pass predict()? pass predict_proba()"):
        predictions(y_true, predicted)


@pytest.mark.parametrize(("score", "words"), [([0, 100, 50, 20], "percentages"), ([-2, 3, 1, 0], "logits")])
def test_whole_numbers_that_are_no_labels_are_not_called_predictions(score, words):
    with refuses("lie in [0, 1]", words) as caught:
        predictions([0, 1, 1, 0], score)
    assert "predict()" not in str(caught.value)


BARELY = {
    "long double above": np.nextafter(np.longdouble(1), np.longdouble(2)),
    "long double below": -np.nextafter(np.longdouble(0), np.longdouble(1)),
    "decimal above": Decimal("1.00000000000000000001"),
    "decimal below": Decimal("-1e-400"),
    "fraction above": Fraction(10**20 + 1, 10**20),
    "fraction below": Fraction(-1, 10**400),
}


@pytest.mark.parametrize("barely", BARELY.values(), ids=BARELY)
def test_scores_that_rounding_would_take_into_the_range_are_refused(barely):
    kind = type(barely)
    vector = [kind(0), kind(1), barely, kind(0)]
    table = [[kind(0), kind(1)], [1 - barely, barely]]
    as_objects = np.array(vector, dtype=object)
    for score in (vector, tuple(vector), np.array(vector), as_objects, pd.Series(as_objects)):
        with refuses("y_prob must lie in [0, 1]", "at row 2"):
            predictions(Y, score)
    for score in (table, np.array(table), pd.DataFrame(np.array(table, dtype=object))):
        with refuses("y_prob must lie in [0, 1]", "at row 1, column"):
            predictions([0, 1], score)
    with refuses("at must lie in [0, 1]"):
        inputs.scores("at", [barely])
    assert predictions(Y, [kind(0), kind(1), kind(1) / kind(2), kind(0)]).score.tolist() == [0, 1, 0.5, 0]


@pytest.mark.parametrize("barely", [v for name, v in BARELY.items() if "below" in name])
def test_a_negative_weight_that_rounding_would_take_to_0_is_refused(barely):
    with refuses("sample_weight must be at least 0", "at row 1"):
        predictions(Y, [0.5] * 4, sample_weight=[type(barely)(1), barely, type(barely)(1), type(barely)(1)])


def test_integers_beyond_2_53_stay_apart():
    two = [2**53, 2**53 + 1, 2**53, 2**53 + 1]
    for pos_label in (2**53, float(2**53), np.float64(2**53)):
        assert predictions(two, [0.1] * 4, pos_label=pos_label).code.tolist() == [True, False, True, False]
    for y_true in (two, np.array(two, dtype=np.uint64), np.array(two, dtype=object)):
        found = predictions(y_true, [0.1] * 4, pos_label=2**53 + 1)
        assert found.code.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("y_true", "words"),
    [
        ([2**53, 2**53 + 1, 0.5, 1], "2^53"),
        (np.array([2**53, 2**53 + 1, 0.5, 1], dtype=object), "2^53"),
        ([2**63, 2**63 + 1, -1, 1], "2^53"),  # too much for either kind of integer
        (np.array([2**53, 1.0, 0.0, 1.0]), "2^53"),
        (np.array([2**24, 2**24 + 1, 0, 1], dtype=np.float32), "2^24"),
    ],
)
def test_labels_that_stand_for_two_integers_in_floating_point_are_refused(y_true, words):
    with refuses(f"y_true must be below {words}", "at row 0", "pass integers or text"):
        predictions(y_true, [0.1] * 4, pos_label=1)


def test_clusters_and_groups_that_stand_for_two_integers_are_refused():
    ids = [2**53, 2**53 + 1, 0.5, 1]
    with refuses("cluster must be below 2^53", "at row 0"):
        inputs.in_clusters(predictions(Y, P), ids)
    with refuses("groups must be below 2^53", "at position 0"):
        inputs.groups_of_rows(ids, predictions(Y, P))
    whole = [2**53, 2**53 + 1, 2**53, 1]
    assert len(inputs.groups_of_rows(whole, predictions(Y, P))[0]) == 3
    assert inputs.in_clusters(predictions(Y, P), whole).cluster.max() == 2


def test_integer_rows_have_the_tolerance_of_doubles():
    assert predictions([0, 1], [[1, 0], [0, 1]]).score.dtype == np.float64
    with refuses("within 1e-06", "got 2 at row 1"):
        predictions([0, 1], [[1, 0], [1, 1]])


def test_bfloat16_is_read_as_float32_with_a_tolerance_of_its_own():
    rows = [[0.5, 0.515], [0.5, 0.5]]
    for brain in (Tensor(rows, "torch.bfloat16"), Brain16(rows)):
        found = predictions([0, 1], brain).score
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.array(rows, np.float32))
    with refuses("sum to 1 within 0.02", "1.0299", "at row 0"):
        predictions([0, 1], Tensor([[0.5, 0.53], [0.5, 0.5]], "torch.bfloat16"))
    with refuses("sum to 1 within 0.0001", "1.0149", "at row 0"):
        predictions([0, 1], Tensor(np.array(rows, np.float32)))


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [(dtype, columns) for dtype in (np.float64, np.float32) for columns in (2, 10, 1000, 5000)]
    + [(np.float16, 2), (np.float16, 10)],
)
def test_softmax_in_any_precision_passes(dtype, columns):
    logits = np.random.default_rng(0).normal(0, 3, (40, columns)).astype(np.float32)
    p = softmax(logits).astype(dtype) if dtype != np.float64 else softmax(logits.astype(float))
    for view in (p, np.asfortranarray(p), np.repeat(p, 2, axis=1)[:, ::2]):
        assert predictions(np.zeros(40, int), view).score is view


@given(st.data())
def test_rows_pass_exactly_when_a_plain_sum_is_within_the_tolerance(data):
    dtype, tolerance = data.draw(
        st.sampled_from([(np.float64, 1e-6), (np.float32, 1e-4), (np.float16, 2e-3)])
    )
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(2, 5)))
    weights = data.draw(hnp.arrays(float, shape, elements=st.floats(0.01, 1)))
    shift = data.draw(hnp.arrays(float, shape[0], elements=st.sampled_from([0, 0.5, 0.9, 1.1, 3])))
    p = weights / weights.sum(axis=1, keepdims=True) * (1 - tolerance * shift[:, None])
    p = p.astype(dtype)
    gaps = [abs(math.fsum(row.tolist()) - 1) for row in p]
    if max(gaps) <= tolerance:
        assert predictions(np.zeros(len(p), int), p).score is p
    elif max(gaps) > tolerance + 1e-9:
        with refuses("y_prob must sum to 1"):
            predictions(np.zeros(len(p), int), p)


# ---- missing values


MISSING = {
    "list": [0.1, None, 0.8, 0.4],
    "object": np.array([0.1, math.nan, 0.8, 0.4], dtype=object),
    "masked": np.ma.array(P, mask=[0, 1, 0, 0]),
    "pandas NA": pd.Series([0.1, pd.NA, 0.8, 0.4], dtype="Float64"),
    "pandas Int64": pd.Series([0, pd.NA, 1, 0], dtype="Int64"),
    "pandas object": pd.Series([0.1, pd.NA, 0.8, 0.4], dtype=object),
    "pandas boolean": pd.Series([True, pd.NA, False, True], dtype="boolean"),
    "pandas NaN": pd.Series([0.1, math.nan, 0.8, 0.4]),
    "polars": pl.Series([0.1, None, 0.8, 0.4]),
    "polars integers": pl.Series([0, None, 1, 1]),
    "polars booleans": pl.Series([True, None, False, True]),
    "arrow": pa.array([0.1, None, 0.8, 0.4]),
    "arrow chunks": pa.chunked_array([[0.1, None], [0.8, 0.4]]),
    "arrow integers": pa.array([0, None, 1, 1]),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_missing_values_are_refused_with_their_position(values):
    with refuses("y_prob must", "missing values", "at row 1"):
        predictions(Y, values)
    with refuses("y_true must", "missing values", "at row 1"):
        predictions(values, P)
    with refuses("sample_weight must", "at row 1"):
        predictions(Y, P, sample_weight=values)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [0.5, 0.5], "b": pd.array([0.5, pd.NA], dtype="Float64")}),
        pl.DataFrame({"a": [0.5, 0.5], "b": [0.5, None]}),
        pa.table({"a": [0.5, 0.5], "b": [0.5, None]}),
        np.ma.array(np.full((2, 2), 0.5), mask=[[0, 0], [0, 1]]),
        [[0.5, 0.5], [0.5, None]],
    ],
    ids=["pandas", "polars", "arrow", "masked", "lists"],
)
def test_missing_values_in_a_matrix_are_refused_with_their_position(frame):
    with refuses("y_prob must", "missing values", "at row 1, column 1"):
        predictions([0, 1], frame)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b", "a"],
        ["a", math.nan, "b", "a"],
        pd.Series(["a", None, "b", "a"]),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pl.Series(["a", None, "b", "a"]),
        pa.array(["a", None, "b", "a"]),
        [0, None, 1, 0],
        [0.0, math.nan, 1.0, 0.0],
        [0.0, math.inf, 1.0, 0.0],
    ],
    ids=["none", "nan", "pandas", "category", "polars", "arrow", "integers", "floats", "infinite"],
)
def test_missing_labels_are_refused_with_their_position(labels):
    with refuses("y_true must", "missing values", "at row 1"):
        predictions(labels, P, pos_label="a")


# ---- labels of a single score


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([0, 1, 1, 0], (0, 1)),
        ([0.0, 1.0, 1.0, 0.0], (0, 1)),
        (np.array([0, 1, 1, 0], np.uint8), (0, 1)),
        (np.array([0, 1, 1, 0], np.float16), (0, 1)),
        ([False, True, True, False], (False, True)),
        ([-1, 1, 1, -1], (-1, 1)),
        (np.array([-1, 1, 1, -1], np.int8), (-1, 1)),
        ([-1.0, 1.0, 1.0, -1.0], (-1, 1)),
        (np.array([False, 1, True, 0], dtype=object), (0, 1)),
    ],
)
def test_one_is_the_positive_class_of_usual_labels(y, labels):
    found = predictions(y, P)
    assert found.code.tolist() == [False, True, True, False]
    assert (found.labels, found.positive) == (labels, 1)


@pytest.mark.parametrize(
    ("label", "code"), [(0, False), (1, True), (-1, False), (True, True), (False, False)]
)
def test_one_usual_label_alone_is_still_read_as_usual(label, code):
    found = predictions([label] * 4, P)
    assert found.code.tolist() == [code] * 4
    assert found.labels == ((-1, 1) if label == -1 else (0, 1))


@pytest.mark.parametrize(
    ("y", "listed"),
    [
        ([1, 2, 2, 1], "1, 2"),
        ([-1, 0, 1, 1], "-1, 0, 1"),
        ([2, 2, 2, 2], "got 2;"),
        (["no", "yes", "yes", "no"], "'no', 'yes'"),
        ([b"n", b"y", b"y", b"n"], "b'n', b'y'"),
    ],
)
def test_other_labels_need_a_positive_class(y, listed):
    with refuses("y_true must hold 0 and 1, -1 and 1 or booleans", listed, "pass pos_label="):
        predictions(y, P)


def test_labels_that_look_like_scores_hint_at_a_swap():
    with refuses("0.1, 0.4, 0.7, ...; are labels and scores swapped?"):
        predictions(P, Y)


def test_fractions_are_told_from_swapped_arguments():
    with refuses("got 0.0, 0.5, 1.0", "soft labels or rates", "counted as often as each occurred") as caught:
        predictions([0.5, 1.0, 0.0, 1.0], P)
    assert "pos_label" not in str(caught.value)
    assert "swapped" not in str(caught.value)
    with refuses("y_true must hold 3 labels, one for each column", "soft labels or rates"):
        predictions([0.5, 0.25, 1.0, 0.0], np.full((4, 3), 1 / 3))
    with refuses("y_true must be one-dimensional", "swapped? if not, these look like soft labels"):
        predictions(np.full((4, 3), 1 / 3), np.full((4, 3), 1 / 3))
    # Labels that are fractions and no rates may still be classes.
    with refuses("0.5, 1.5", "are labels and scores swapped?") as caught:
        predictions([0.5, 1.5, 1.5, 0.5], P)
    assert "soft" not in str(caught.value)
    assert predictions([0.5, 1.5, 1.5, 0.5], P, pos_label=1.5).labels == (0.5, 1.5)


@pytest.mark.parametrize("labels", [None, "given"])
@pytest.mark.parametrize("classes", [1, 3])
def test_labels_of_ignored_rows_are_recognised(classes, labels):
    p = P if classes == 1 else np.full((4, 3), 1 / 3)
    known = None if labels is None else range(max(classes, 2))
    hint = "labels of -100 usually mark rows to ignore: drop these rows first; pass y_true[y_true != -100]"
    with refuses("y_true must hold", "-100", hint) as caught:
        predictions([0, -100, 1, 0], p, labels=known)
    assert "labels=" not in str(caught.value)
    assert "pos_label=" not in str(caught.value)


def test_unknown_labels_of_several_kinds_are_named():
    with refuses("y_true must hold only the labels 0, 1, got 'a' at row 1"):
        predictions(np.array([0, "a", (2, 3), 1], dtype=object), P, labels=[0, 1])


def test_many_labels_are_cut_short():
    with refuses("0, 1, 2, 3", "... (100 in all)"):
        predictions(range(100), [0.5] * 100)


@pytest.mark.parametrize(
    ("y", "pos_label", "labels"),
    [
        (["yes", "no", "no", "yes"], "no", ("yes", "no")),
        (["yes", "no", "no", "yes"], np.str_("no"), ("yes", "no")),
        ([1, 2, 2, 1], 2, (1, 2)),
        ([1, 2, 2, 1], 2.0, (1, 2)),
        ([1, 0, 0, 1], 0, (1, 0)),
        ([True, False, False, True], False, (True, False)),
        ([1, -1, -1, 1], -1, (1, -1)),
        ([0.5, 1.5, 1.5, 0.5], 1.5, (0.5, 1.5)),
        (["a", "b", "b", "c"], "b", (("a", "c"), "b")),
    ],
)
def test_the_positive_class_can_be_named(y, pos_label, labels):
    found = predictions(y, P, pos_label=pos_label)
    assert found.code.tolist() == [False, True, True, False]
    assert (found.labels, found.positive) == (labels, 1)


def test_a_positive_class_alone_is_fine_and_one_that_does_not_occur_is_refused():
    with refuses("pos_label must be one of 'no', got 'yes'"):
        predictions(["no"] * 4, P, pos_label="yes")
    assert predictions(["no"] * 4, P, pos_label="yes", labels=["no", "yes"]).labels == ("no", "yes")
    # Among some of the rows the class may be missing.
    assert not predictions(["no"] * 4, P, pos_label="yes", more=True).code.any()
    assert predictions(["yes"] * 4, P, pos_label="yes").labels == (None, "yes")
    assert predictions(["yes"] * 4, P, pos_label="yes").code.all()
    assert predictions([1] * 4, P, pos_label=1).labels == (0, 1)


@pytest.mark.parametrize(
    ("y", "pos_label", "listed"),
    [
        ([0, 1, 1, 0], 2, "0, 1"),
        (["a", "b", "b", "a"], "c", "'a', 'b'"),
        ([0, 1, 1, 0], "1", "0, 1"),
        ([2, 2, 2, 2], "2", "2"),
        (["1", "1", "1", "1"], 1, "'1'"),
    ],
)
def test_a_positive_class_that_cannot_be_one_is_refused(y, pos_label, listed):
    with refuses("pos_label must be one of", listed, f"got {pos_label!r}"):
        predictions(y, P, pos_label=pos_label)


@pytest.mark.parametrize("pos_label", [["a"], math.nan, pd.NA, np.array(["a", "b"])])
def test_what_is_no_label_is_no_positive_class(pos_label):
    for scores in (P, MATRIX):
        with refuses("pos_label must be a label, got", error=TypeError):
            predictions(["a", "b", "c", "a"], scores, pos_label=pos_label)


def test_labels_given_with_a_single_score_bound_what_may_occur():
    assert predictions([0, 0, 0, 0], P, labels=[0, 1]).labels == (0, 1)
    assert predictions(["n"] * 4, P, labels=["n", "y"], pos_label="y").labels == ("n", "y")
    with refuses("pass pos_label="):
        predictions(["n"] * 4, P, labels=["n", "y"])
    with refuses("y_true must hold only the labels 'n', 'y'", "'m' at row 3"):
        predictions(["n", "y", "y", "m"], P, labels=["n", "y"], pos_label="y")
    with refuses("pos_label must be one of 'n', 'y'", "got 'm'"):
        predictions(["n"] * 4, P, labels=["n", "y"], pos_label="m")


def test_numbers_beside_text_are_not_turned_into_text():
    with refuses("y_true must be sortable, got 0, '1'", error=TypeError):
        predictions([0, "1", "1", 0], P, pos_label="1")


@pytest.mark.parametrize("dtype", [complex, "datetime64[s]"])
def test_labels_of_other_types_are_refused(dtype):
    with refuses("y_true must hold one label per row", np.dtype(dtype), error=TypeError):
        predictions(np.zeros(4, dtype), P)


def test_lists_as_labels_are_refused():
    with refuses("y_true must hold one label per row", "at row 0", error=TypeError):
        predictions(pl.Series([[0], [1], [1], [0]]), P)


# ---- labels of a matrix


def test_classes_that_do_not_occur_still_count():
    found = predictions([0, 0, 2, 0], MATRIX)
    assert found.labels == (0, 1, 2)
    assert found.code.tolist() == [0, 0, 2, 0]


def test_whole_floats_are_column_indices():
    assert predictions([0.0, 2.0, 2.0, 0.0], MATRIX).code.tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize("bad", [3, -1, 1000])
@pytest.mark.parametrize("dtype", [np.int64, np.int16, float])
def test_an_index_without_a_column_is_refused_with_its_position(bad, dtype):
    with refuses("y_true must hold only the labels 0, 1, 2", f"got {bad} at row 2", "pass labels="):
        predictions(np.array([0, 1, bad, 1], dtype), MATRIX)


def test_labels_from_one_need_to_be_named():
    with refuses("got 3 at row 2", "labels="):
        predictions([1, 2, 3, 2], MATRIX)
    assert predictions([1, 2, 3, 2], MATRIX, labels=range(1, 4)).code.tolist() == Y3


def test_booleans_are_the_two_columns():
    two = np.column_stack([np.subtract(1, P), P])
    found = predictions([False, True, True, True], two)
    assert found.code.tolist() == [0, 1, 1, 1]
    assert found.labels == (False, True)
    assert predictions([True] * 4, two).code.tolist() == [1] * 4
    with refuses("y_true must hold 3 labels", "False, True", "labels="):
        predictions([True, False, True, True], MATRIX)


def test_other_labels_are_taken_sorted():
    found = predictions(["cat", "ant", "bee", "ant"], MATRIX)
    assert found.labels == ("ant", "bee", "cat")
    assert found.code.tolist() == [2, 0, 1, 0]
    assert predictions([0.5, 2.5, 1.5, 0.5], MATRIX).code.tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize("y", [["a", "b", "a", "a"], ["a", "b", "c", "d"]])
def test_other_labels_must_be_as_many_as_columns(y):
    with refuses("y_true must hold 3 labels", ", ".join(map(repr, sorted(set(y)))), "pass labels="):
        predictions(y, MATRIX)


def test_labels_name_the_columns_in_their_order():
    found = predictions(["b", "a", "b", "b"], MATRIX, labels=["c", "b", "a"])
    assert found.labels == ("c", "b", "a")
    assert found.code.tolist() == [1, 2, 1, 1]
    assert predictions(["b"] * 4, MATRIX, labels=["c", "b", "a"], pos_label="a").positive == 2


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pd.Index, pl.Series, iter])
def test_labels_come_in_any_form(form):
    assert predictions([30, 10, 20, 10], MATRIX, labels=form([20, 10, 30])).code.tolist() == [2, 1, 0, 1]


def test_a_label_that_is_not_among_those_given_is_refused_with_its_position():
    with refuses("y_true must hold only the labels 'a', 'b', 'c'", "got 'd' at row 3"):
        predictions(["a", "b", "c", "d"], MATRIX, labels=["a", "b", "c"])
    with refuses("y_true must hold only the labels 0, 1, 2", "got 3 at row 0"):
        predictions([3, 1, 2, 0], MATRIX, labels=[0, 1, 2])
    with refuses("y_true must hold only the labels '0', '1', '2'", "got 0 at row 0"):
        predictions(Y3, MATRIX, labels=["0", "1", "2"])


def test_labels_must_be_as_many_as_columns():
    with refuses("labels must name 3 columns", "got 2: 0, 1"):
        predictions(Y3, MATRIX, labels=[0, 1])
    with refuses("labels must name 3 columns", "got 0"):
        predictions(Y3, MATRIX, labels=[])


def test_labels_must_be_distinct():
    with refuses("labels must be distinct", "got 'a' at position 2"):
        predictions(Y3, MATRIX, labels=["a", "b", "a"])


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ("abc", TypeError),
        ({0, 1, 2}, TypeError),
        (3, TypeError),
        ([0, None, 2], ValueError),
        ([[0], 1, 2], TypeError),
    ],
)
def test_labels_must_be_a_sequence_of_classes(labels, error):
    with refuses("labels must", error=error):
        predictions(Y3, MATRIX, labels=labels)


FRAMES = {
    "pandas": lambda names, m: pd.DataFrame(m, columns=names),
    "polars": lambda names, m: pl.DataFrame(m, schema=names),
    "arrow": lambda names, m: pa.table(list(m.T), names=names),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_column_names_that_are_the_labels_name_the_columns(frame):
    p = frame(["cat", "ant", "bee"], MATRIX)
    found = predictions(["ant", "bee", "cat", "bee"], p)
    assert found.labels == ("cat", "ant", "bee")
    assert found.code.tolist() == [1, 2, 0, 2]
    for other in (["a", "b", "c", "a"], Y3):
        with refuses("y_prob must have columns named after the labels", "got 'cat', 'ant', 'bee'", "labels="):
            predictions(other, p)
    assert predictions(["a", "a", "b", "a"], p, labels=["c", "b", "a"]).labels == ("c", "b", "a")


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_column_names_tell_classes_that_do_not_occur(frame):
    found = predictions(["ant", "bee", "bee", "bee"], frame(["cat", "ant", "bee"], MATRIX))
    assert found.labels == ("cat", "ant", "bee")
    assert found.code.tolist() == [1, 2, 2, 2]


def test_whole_number_column_names_are_never_half_trusted():
    p = pd.DataFrame(MATRIX, columns=[2, 0, 1])
    assert predictions(Y3, p).labels == (2, 0, 1)
    assert predictions(Y3, p).code.tolist() == [1, 2, 0, 2]
    assert predictions([0, 1, 1, 1], p).code.tolist() == [1, 2, 2, 2]
    with refuses("columns named after the labels 0, 1, 3", "labels="):
        predictions([0, 1, 3, 1], p)
    assert predictions([0, 1, 1, 1], pd.DataFrame(MATRIX)).labels == (0, 1, 2)
    two = pd.DataFrame({True: P, False: np.subtract(1, P)})
    assert predictions([False, True, True, False], two).code.tolist() == [1, 0, 0, 1]


@given(st.permutations(range(4)), st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_labels_move_with_the_columns(order, y):
    names = [f"class {c}" for c in range(4)]
    p = np.full((len(y), 4), 0.25)
    found = predictions([names[c] for c in y], p, labels=[names[c] for c in order])
    assert [found.labels[c] for c in found.code] == [names[c] for c in y]


# ---- weights


def test_the_argument_and_not_the_type_says_what_weights_are():
    for values in (
        *([1, 2, 3, 4], np.array([1, 2, 3, 4], np.uint8), pd.Series([1, 2, 3, 4], dtype="Int64")),
        *([1.0, 2, 3, 4], np.array([1, 2, 3, 4], np.float32), pl.Series([1.0, 2, 3, 4])),
        *([Decimal(1), 2, 3, 4], np.array([1, 2, 3, 4], dtype=object)),
    ):
        counted, weighted = predictions(Y, P, counts=values), predictions(Y, P, sample_weight=values)
        assert (counted.counts, counted.weight.dtype, counted.n_rows) == (True, np.int64, 10)
        assert (weighted.counts, weighted.weight.dtype, weighted.n_rows) == (False, np.float64, 4)
        assert counted.weight.tolist() == weighted.weight.tolist() == [1, 2, 3, 4]
    for kind in ("counts", "sample_weight"):
        assert predictions(Y, P, **{kind: [True, True, False, True]}).weight.tolist() == [1, 1, 1]
    assert predictions(Y, P).counts
    assert predictions(Y, P).n_rows == 4


def test_counts_and_importance_weights_do_not_go_together():
    with refuses("sample_weight and counts must not be given together", "repeat the rows to have both"):
        predictions(Y, P, sample_weight=[1.0] * 4, counts=[1] * 4)


@pytest.mark.parametrize("form", [list, np.array, lambda v: np.array(v, dtype=object)])
def test_counts_must_be_whole_numbers(form):
    with refuses(
        "counts must be whole numbers", "got 2.5 at row 2", "for importance weights pass sample_weight="
    ):
        predictions(Y, P, counts=form([1.0, 2.0, 2.5, 1.0]))


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.integers(0, 2)), min_size=1, max_size=30))
def test_rows_of_weight_zero_are_dropped(rows):
    y, p, w = (list(column) for column in zip(*rows, strict=True))
    if not any(w):
        with refuses("sample_weight must have a positive sum", f"{len(w)} weights of 0"):
            predictions(y, p, sample_weight=w)
        with refuses("counts must have a positive sum", f"{len(w)} counts of 0"):
            predictions(y, p, counts=w)
        return
    for kind in ("sample_weight", "counts"):
        found = predictions(y, p, **{kind: w})
        assert found.weight.tolist() == [v for v in w if v]
        assert found.score.tolist() == [s for s, v in zip(p, w, strict=True) if v]
        assert found.code.tolist() == [c for c, v in zip(y, w, strict=True) if v]


def test_rows_of_weight_zero_are_checked_and_their_labels_count():
    with refuses("y_prob", "nan at row 1"):
        predictions(Y, [0.1, math.nan, 0.2, 0.3], sample_weight=[1, 0, 1, 1])
    found = predictions(["a", "b", "c", "a"], MATRIX, sample_weight=[1, 1, 0, 1])
    assert found.labels == ("a", "b", "c")
    assert found.code.tolist() == [0, 1, 0]
    assert found.score.shape == (3, 3)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_and_positive_are_refused_with_their_position(bad):
    with refuses("sample_weight must be finite, at least 0", f"got {bad} at row 2"):
        predictions(Y, P, sample_weight=[1.0, 1.0, bad, 1.0])


def test_negative_counts_are_refused_with_their_position():
    with refuses("counts must be finite, at least 0", "got -3 at row 3"):
        predictions(Y, P, counts=[1, 1, 1, -3])


def test_weights_whose_sum_would_overflow_are_refused():
    large = np.array([1, 2**64 - 1, 1, 1], np.uint64)
    assert predictions(Y, P, sample_weight=large).weight.max() == 2.0**64
    with refuses("counts must be", "below", f"got {2**64 - 1} at row 1"):
        predictions(Y, P, counts=large)
    with refuses("counts must sum to less than 2^63", "got 1.38e+19"):
        predictions(Y, P, counts=[2**62] * 3 + [1])
    with refuses("sample_weight must be", "below", "got 1e+308 at row 0"):
        predictions(Y, P, sample_weight=[1e308] * 4)


def test_weights_must_be_numbers():
    with refuses("sample_weight must hold real numbers", "'2' at row 1", error=TypeError):
        predictions(Y, P, sample_weight=[1, "2", 3, 4])


# ---- options


def test_a_choice_is_one_of_the_options():
    inputs.check_choice("norm", "l1", ("l1", "l2", "max"))
    inputs.check_choice("notion", None, (None, "binary"))
    with pytest.raises(ValueError, match=r"^norm must be one of 'l1', 'l2', 'max', got 'l3'$"):
        inputs.check_choice("norm", "l3", ("l1", "l2", "max"))
    with refuses("notion", "got 'classwize'; did you mean 'classwise'?"):
        inputs.check_choice("notion", "classwize", {"binary": 1, "classwise": 2})
    for value in (1, None, ["l1"], np.array(["l1", "l2"])):
        with refuses("norm must be one of 'l1', got "):
            inputs.check_choice("norm", value, ["l1"])


@inputs.helpful
def ece(y_true, y_prob, *, estimator="auto", norm="l1", sample_weight=None):
    """Do nothing."""


@inputs.helpful
def reliability_diagram(*, binning="uniform:15"):
    """Do nothing."""


@inputs.helpful
def lce(*, at=None):
    """Do nothing."""


@pytest.mark.parametrize("name", ["n_bins", "bins", "num_bins"])
def test_a_bin_count_is_told_where_it_belongs(name):
    expected = f'^ece\\(\\) has no argument {name}; write estimator="uniform:15"$'
    with pytest.raises(TypeError, match=expected):
        ece(Y, P, **{name: 15})
    with refuses('write estimator="adaptive:10"', error=TypeError):
        ece(Y, P, strategy="quantile", **{name: 10})
    with refuses('write estimator="uniform:10"', error=TypeError):
        ece(Y, P, strategy="uniform", **{name: 10})
    with refuses(f'reliability_diagram() has no argument {name}; write binning="uniform:8"', error=TypeError):
        reliability_diagram(**{name: 8})
    with refuses(f"lce() got an unexpected keyword argument '{name}'", error=TypeError):
        lce(**{name: 8})


def test_an_unexpected_keyword_is_named_with_the_nearest_parameter():
    ece(Y, P)
    with refuses("ece() got an unexpected keyword argument 'weights'", error=TypeError):
        ece(Y, P, weights=[1])
    with refuses("argument 'estimater'; did you mean 'estimator'?", error=TypeError):
        ece(Y, P, estimater="density")
    with refuses("argument 'sample_wieght'; did you mean 'sample_weight'?", error=TypeError):
        ece(Y, P, sample_wieght=[1])


def test_scores_asked_about_may_have_any_shape():
    for values in (0.5, [0.1, 0.9], [[0.0], [1.0]], [], np.float32(0.5), 1, pl.Series([0.5])):
        found = inputs.scores("at", values)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.asarray(values))


@pytest.mark.parametrize(
    ("values", "error", "parts"),
    [
        (1.5, ValueError, ("lie in [0, 1], got 1.5",)),
        (math.nan, ValueError, ("finite", "got nan")),
        ([0.1, -0.2], ValueError, ("[0, 1]", "got -0.2 at position 1")),
        ([[0.1, 0.2], [0.3, 7.0]], ValueError, ("[0, 1]", "got 7.0 at position 1, column 1")),
        ([0.1, None], ValueError, ("missing", "got None at position 1")),
        ("0.5", TypeError, ("real numbers", "got '0.5'")),
        ([0.1, "x"], TypeError, ("real numbers", "got 'x' at position 1")),
        (1j, TypeError, ("real numbers", "complex128")),
    ],
)
def test_scores_asked_about_are_checked(values, error, parts):
    with refuses("at must", *parts, error=error):
        inputs.scores("at", values)


@pytest.mark.parametrize("value", [0.95, np.float32(0.5), Fraction(1, 2), 1e-9])
def test_a_level_is_strictly_between_zero_and_one(value):
    assert inputs.level(value) == float(value)
    assert type(inputs.level(value)) is float


@pytest.mark.parametrize(
    ("value", "error", "hint"),
    [
        (95, ValueError, "got 95; write 0.95"),
        (99.9, ValueError, "got 99.9; write 0.999"),
        (0, ValueError, "got 0"),
        (1, ValueError, "got 1"),
        (-0.05, ValueError, "got -0.05"),
        (math.nan, ValueError, "got nan"),
        (True, TypeError, "got True"),
        ("0.95", TypeError, "got '0.95'"),
        (None, TypeError, "got None"),
    ],
)
def test_other_levels_are_refused(value, error, hint):
    with refuses("level must be a number strictly between 0 and 1", hint, error=error):
        inputs.level(value)


def test_an_integer_of_at_least_the_minimum_is_returned():
    assert inputs.positive_int("n_boot", np.int32(3)) == 3
    assert type(inputs.positive_int("n_boot", np.int32(3))) is int
    assert inputs.positive_int("n_boot", 0, minimum=0) == 0


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-2, ValueError),
        (2.0, TypeError),
        (True, TypeError),
        ("3", TypeError),
        (None, TypeError),
    ],
)
def test_other_integers_are_refused(value, error):
    with refuses(f"n_boot must be an integer of at least 1, got {value!r}", error=error):
        inputs.positive_int("n_boot", value)


def test_a_generator_comes_from_nothing_a_seed_or_itself():
    own = np.random.default_rng(1)
    assert inputs.generator(own) is own
    assert isinstance(inputs.generator(None), np.random.Generator)
    expected = np.random.default_rng(7).random()
    for seed in (7, np.int64(7), np.random.SeedSequence(7)):
        assert inputs.generator(seed).random() == expected


@pytest.mark.parametrize("value", [True, 1.0, "7", np.random.RandomState(0), np.random])
def test_other_generators_are_refused(value):
    with refuses("rng must be None, an integer seed, a SeedSequence or a Generator, got", error=TypeError):
        inputs.generator(value)


def test_a_negative_seed_is_refused():
    with refuses("rng must be an integer of at least 0, got -1"):
        inputs.generator(-1)


def test_a_score_matrix_in_place_of_labels_hints_at_a_swap():
    with refuses("y_true must be one-dimensional", "are labels and scores swapped?"):
        predictions(MATRIX, Y3)


def test_integers_beyond_64_bits_are_refused():
    with refuses("sample_weight must hold numbers below 2^63"):
        predictions(Y, P, sample_weight=[10**30, 1, 1, 1])
