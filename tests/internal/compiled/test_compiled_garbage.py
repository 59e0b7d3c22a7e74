"""What nobody should pass to the compiled loops is refused, or answered rightly; memory stays what it is."""

import array
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import compiled
from calibrant.score_data import COARSE, Layout, tally
from calibrant.score_data.moments import Array
from plainly import needs_loops

loops = compiled.loops
REFUSED = (TypeError, ValueError, BufferError, OverflowError, SystemError)
few = settings(max_examples=150, deadline=None)
# No more than a compiler tells whether the loops are there, and a run that gates a change has one.
GATE = os.environ.get("CI", "").lower() in ("1", "true") and not os.environ.get(compiled.PLAIN)
LAYOUT = Layout(20)
FENCE = 123.25


def test_the_gate_runs_the_compiled_loops():
    assert loops is not None or not GATE, "the extension was not built: see what the compiler said"


def fenced(shape, dtype):
    """An array amid memory that nobody may write to, and a function that tells whether it is untouched."""
    size = int(np.prod(shape))
    memory = np.full(size + 128, FENCE).astype(dtype)
    inner = memory[64 : 64 + size]
    inner[:] = 0
    around = np.concatenate([memory[:64], memory[64 + size :]])

    def untouched():
        return np.array_equal(np.concatenate([memory[:64], memory[64 + size :]]), around)

    return inner.reshape(shape), untouched


def arguments(n=6, problems=1, groups=3):
    """What add_sums takes."""
    score = np.linspace(0, 1, problems * n).reshape(problems, n)
    outcome, cuts = score > 0.4, np.broadcast_to(np.arange(1, groups) / groups, (problems, groups - 1))
    out, untouched = fenced((2, 2, problems, groups), np.float64)
    return [score, outcome, None, cuts, None, out, 1, False, 0, 0, 0, 0, 0], untouched


def codes(code, problems):
    """The problem of outcome 1 of each row, as problems side by side share it."""
    return np.broadcast_to(np.array(code, np.int64), (problems, len(code)))


def in_layout():
    call, _ = arguments()
    call[CUTS], call[ORIGIN], call[WALLS] = LAYOUT.parts[None], LAYOUT.low[None], LAYOUT.boundary_cells
    call[OUT], untouched = fenced((2, 2, 1, LAYOUT.size), np.float64)
    return call, untouched


SCORE, OUTCOME, WEIGHT, CUTS, ORIGIN, OUT = range(6)
WALLS, FIRST, COUNT = slice(8, 12), 12, 13
NO_ARRAYS = (
    None,
    3,
    "text",
    b"bytes",
    [0.1, 0.2],
    object(),
    np.float64(0.3),
    np.array(0.3),
    array.array("d"),
)
ODD_ARRAYS = (
    np.zeros(6, complex),
    np.zeros(6, np.float16),
    np.zeros(6, ">f8"),
    np.zeros(6, "S3"),
    np.zeros(6, "O"),
    np.zeros(6, "M8[s]").astype("i8").astype("i4"),
    np.zeros(6, [("a", "f8"), ("b", "i1")]),
    np.zeros(5),
    np.zeros(7),
    np.zeros(0),
    np.zeros((6, 1)),
    np.zeros((2, 3, 6)),
    np.zeros(13, np.uint8)[1:].view(np.float32),
    np.zeros(49, np.uint8)[1:].view(np.float64),
    np.zeros(6, [("y", "?"), ("p", "f8")])["p"],
    np.broadcast_to(np.zeros(1), 6),
    memoryview(bytearray(6)),
    array.array("d", [0.5] * 6),
)
ODD_ARRAYS += tuple(np.asarray(each)[None] for each in ODD_ARRAYS if np.ndim(each) == 1)
ODD_NUMBERS = (
    -1,
    -(2**31),
    2**31,
    2**32 + 1,
    2**63 - 1,
    -(2**63),
    2**64,
    9,
    1.5,
    None,
    "1",
    np.array([1, 2]),
)
ODD_WALLS = (
    ("a", 1, 1, 1),
    (0, 0, 0, 0),
    (-1, 5, 7, 49),
    (0, 5, 7, 49),
    (2**63 - 1, 2**63 - 1, 1, 49),
    (LAYOUT.size, LAYOUT.size, 1, 0),
    (*LAYOUT.boundary_cells[:2], 1, 49),
    (*LAYOUT.boundary_cells[:2], -(2**63), 49),
    (*LAYOUT.boundary_cells[:2], -(2**62), 0),
    (*LAYOUT.boundary_cells[:3], 0),
    (*LAYOUT.boundary_cells[:3], -1),
    (*LAYOUT.boundary_cells[:3], 53),
    (*LAYOUT.boundary_cells[:3], 2**31),
    (*LAYOUT.boundary_cells[:3], 64),
)


def attempt(function, call, untouched=lambda: True):
    """Call it: a refusal is fine and so is an answer, but not a byte outside of the arrays may change."""
    try:
        answer = function(*call)
    except REFUSED as error:
        answer = error
    assert untouched()
    return answer


@needs_loops
@pytest.mark.parametrize("make", [arguments, in_layout])
@pytest.mark.parametrize("place", range(COUNT))
def test_one_wrong_argument_of_the_tally(make, place):
    for value in (*NO_ARRAYS, *ODD_ARRAYS, *ODD_NUMBERS):
        call, untouched = make()
        call[place] = value
        attempt(loops.add_sums, call, untouched)


@needs_loops
@pytest.mark.parametrize("make", [arguments, in_layout])
@pytest.mark.parametrize("walls", ODD_WALLS)
def test_wrong_walls_of_the_tally(make, walls):
    call, untouched = make()
    call[WALLS] = walls
    attempt(loops.add_sums, call, untouched)


@needs_loops
@few
@given(
    st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, 10**6)), min_size=2, max_size=4),
    st.sampled_from((arguments, in_layout)),
)
def test_several_wrong_arguments_of_the_tally(changes, make):
    call, untouched = make()
    pool = (*NO_ARRAYS, *ODD_ARRAYS, *ODD_NUMBERS, *LAYOUT.boundary_cells, *call)
    for place, value in changes:
        call[place] = pool[value % len(pool)]
    attempt(loops.add_sums, call, untouched)


FUNCTIONS = [name for name in dir(loops) if not name.startswith("_")] if loops else ["add_sums"]
SHAPES = (0, 1, 3, 5, 6, 9, (6, 3), (1, 6), (2, 2, 1, 3), (3, 6))
KINDS = ("f8", "f4", "i8", "i4", "u1", "u8", "?")


@needs_loops
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_number_of_arguments(name):
    call, untouched = arguments()
    for count in range(18):
        attempt(getattr(loops, name), (call + call)[:count], untouched)
    with pytest.raises(TypeError):
        getattr(loops, name)()


@needs_loops
@pytest.mark.parametrize("name", FUNCTIONS)
@few
@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.lists(st.integers(0, 10**6), min_size=1, max_size=14))
def test_any_function_with_any_arguments(name, seed, share, picks):
    """Arrays of sound types and odd sizes come far; every one of them has a fence."""
    rng, fences, call = np.random.default_rng(seed), [], []
    for pick in picks:
        if rng.random() < share:
            pool = (*NO_ARRAYS, *ODD_ARRAYS, *ODD_NUMBERS, *LAYOUT.boundary_cells, 0, 1, 2, 0.5, True, False)
            call.append(pool[pick % len(pool)])
            continue
        inner, untouched = fenced(SHAPES[pick % len(SHAPES)], KINDS[pick % len(KINDS)])
        inner[:] = rng.choice([0.0, 0.25, 1.0] if inner.dtype.kind == "f" else [0, 1], inner.shape)
        call.append(inner)
        fences.append(untouched)
    attempt(getattr(loops, name), call, lambda: all(untouched() for untouched in fences))


@needs_loops
@pytest.mark.parametrize("make", [arguments, in_layout])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e-300, 1 + 1e-15, 1e300, -1.0, 2.0**63])
@pytest.mark.parametrize("at", [0, 5])
def test_scores_out_of_range_are_refused(make, value, at):
    for dtype in (np.float64, np.float32):
        call, untouched = make()
        call[SCORE] = np.full((1, 6), 0.5, dtype)
        with np.errstate(over="ignore"):
            call[SCORE][0, at] = np.array(value).astype(dtype)
        answer = attempt(loops.add_sums, call, untouched)
        assert isinstance(answer, ValueError) or call[SCORE][0, at] in (0, 1)  # rounded into the range
    for groups in (1, 3):  # rows side by side, with a single group too
        call, untouched = arguments(4, 3, groups)
        matrix = np.full((4, 3), 0.1)
        matrix[at % 4, at % 3] = value
        call[SCORE], call[OUTCOME] = matrix.T, codes([0, 1, 2, 0], 3)
        assert "lie in" in str(attempt(loops.add_sums, call, untouched))


@needs_loops
@pytest.mark.parametrize("n", [6, 3000])
@pytest.mark.parametrize(
    "cuts",
    [
        [0.9, 0.1],
        [np.nan, np.nan],
        [np.inf, -np.inf],
        [-5.0, 7.0],
        [0.5, np.nan],
        [2.0, 2.0],
        [1e308, -1e308],
    ],
)
def test_cuts_out_of_order_lose_no_row(cuts, n):
    call, untouched = arguments(n)
    call[CUTS] = np.array([cuts])
    attempt(loops.add_sums, call, untouched)
    assert call[OUT][0].sum() == n


@needs_loops
@few
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=21, max_size=21),
    st.tuples(*[st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)] * 3, st.integers(-2, 70)),
    st.integers(0, 3),
)
def test_layouts_that_are_none(edges, walls, true):
    call, untouched = in_layout()
    edges = np.array(edges)
    # Some of the layout as it should be, which leads further.
    if true & 1:
        walls = (*LAYOUT.boundary_cells[:2], *walls[2:])
    if true & 2:
        edges[[0, 1, 19, 20]] = LAYOUT.parts[[0, 1, 19, 20]]
    call[CUTS], call[WALLS] = edges[None], walls
    call[SCORE] = np.array([[0.0, 1e-300, 0.049, 0.5, 0.96, 1.0]])
    attempt(loops.add_sums, call, untouched)


@needs_loops
def test_distances_that_need_more_bits_than_a_cell_has():
    code = np.array([LAYOUT.parts[1]]).view(np.int64)[0]
    for shift in (0, 10, 20, 30, 31, 40):
        for low in (0, 1, 5, 30):
            call, untouched = in_layout()
            call[WALLS] = (*LAYOUT.boundary_cells[:2], int(code >> shift) - low, shift)
            call[SCORE] = np.array([[0.0, 1e-300, 1e-9, 0.03, 0.049, 1.0]])
            attempt(loops.add_sums, call, untouched)


@needs_loops
@pytest.mark.parametrize("low", [1e-300, 0.9, np.inf, -np.inf, np.nan])
def test_edges_of_a_layout_are_those_of_equal_parts_at_the_walls(low):
    for place in (0, 1, -2, -1):
        call, untouched = in_layout()
        call[CUTS] = LAYOUT.parts[None].copy()
        call[CUTS][0, place] = low
        call[SCORE] = np.array([[0.0, 0.03, 0.049, 0.96, 0.99, 1.0]])
        answer = attempt(loops.add_sums, call, untouched)
        assert isinstance(answer, ValueError) or (place, low) == (-1, np.inf)


@needs_loops
def test_sums_that_cannot_be_written_are_refused():
    call, _ = arguments()
    call[OUT].flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        loops.add_sums(*call)
    for out in (
        np.zeros((2, 2, 1, 6))[..., ::2],
        np.zeros((2, 2, 1, 3), ">f8"),
        np.zeros((2, 2, 1, 3), "f4"),
    ):
        call[OUT] = out
        with pytest.raises((TypeError, ValueError)):
            loops.add_sums(*call)
        assert not out.any()


@needs_loops
def test_sums_with_steps_of_their_own_are_written_where_they_are():
    call, _ = arguments()
    loops.add_sums(*call)
    for wide in (np.zeros((2, 4, 3, 3))[:, ::2, 1:2], np.zeros((2, 2, 1, 3))[::-1, ::-1]):
        call, out = [*call[:OUT], wide, *call[OUT + 1 :]], call[OUT]
        loops.add_sums(*call)
        assert np.array_equal(wide, out)


@needs_loops
@pytest.mark.parametrize("first", [-1, -(2**63), 2**62 + 1, 2**63 - 1, 1, 2**40])
def test_classes_that_no_row_has(first):
    call, untouched = arguments(4, 3)
    call[OUTCOME], call[FIRST] = codes([0, 1, 2, -(2**63)], 3), first
    call[SCORE] = np.full((4, 3), 0.1).T
    answer = attempt(loops.add_sums, call, untouched)
    assert isinstance(answer, ValueError) == (not 0 <= first <= 2**62)
    if answer is None:
        assert call[OUT][0, 1].sum() == sum(first <= code < first + 3 for code in (0, 1, 2))


@needs_loops
def test_no_rows_and_no_problems():
    for n, problems in ((0, 1), (0, 3), (5, 0)):
        call, untouched = arguments(n, problems)
        assert attempt(loops.add_sums, call, untouched) is None
        assert not call[OUT].any()
        call[OUTCOME], call[SCORE] = codes([0] * n, problems), np.zeros((n, problems)).T
        attempt(loops.add_sums, call, untouched)
        assert not call[OUT].any()


def test_a_score_outside_is_no_silent_group():
    """The plain version takes checked scores; the compiled one checks again and refuses."""
    outside: Array = np.array([0.5, 1.5])
    if loops is not None:
        with pytest.raises(ValueError, match="lie in"):
            tally.sums_in_cells(outside, np.array([True, False]), None, COARSE)
