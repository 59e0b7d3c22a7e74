"""Exported maps give a probability for scores alone: NULL, NaN, other numbers and text have none."""

import decimal
import math
import sqlite3

import numpy as np
import pyarrow as pa
import pytest

from calibrant import Calibrator, InputError, PriorShift
from engines import needed
from exported import OF_ONE_SCORE, some_maps

BAD = [None, math.nan, math.inf, -math.inf, -0.1, 1.1, -1e-300, math.nextafter(1, 2), 50.0]
#: A shift alone, and shifts after a map of each form.
SHIFTED = ("identity", "auto", "density", "venn-abers", "beta", "quadratic")


@pytest.fixture(scope="module")
def maps():
    fitted, score = some_maps()
    maps = dict(fitted)
    for name in SHIFTED:
        maps[f"shift of {name}"] = PriorShift(train=0.5, target=0.1, calibrator=fitted[name])
    maps["shift"] = PriorShift(train=0.5, target=0.1)
    # A slope that takes log-odds beyond the largest exponent of double precision.
    apart = np.array([0.4, 0.49, 0.51, 0.6] * 50)
    maps["steep"] = Calibrator("logistic").fit(apart, apart > 0.5)
    return maps, score


def same(mapped, expected, name, atol=1e-9):
    got = np.array(mapped, dtype=float)
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64()], ids=str)
def test_duckdb_maps_scores_and_nothing_else(maps, kind):
    maps, score = maps
    good = np.array([0, 1]) if pa.types.is_integer(kind) else score.astype(kind.to_pandas_dtype())
    bad = [2, -1, None] if pa.types.is_integer(kind) else [*BAD[:6], 50.0]
    column = pa.array([*good.tolist(), *bad], kind)
    table = pa.table({"score": column, "row": np.arange(len(column))})
    relation = needed("duckdb").from_arrow(table)
    for name, fitted in maps.items():
        if "density" in name and (" " in name or kind != pa.float64()):  # a table of thousands takes seconds
            continue
        mapped = relation.project(f"row, {fitted.to_sql('score')} AS p").order("row").fetchall()
        mapped = [value for _, value in mapped]
        assert mapped[good.size :] == [None] * len(bad), name
        same(mapped[: good.size], fitted.predict_proba(good.astype(float)), name)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["REAL", "", "NUMERIC", "TEXT"])
def test_sqlite_maps_scores_and_nothing_else(maps, kind):
    maps, score = maps
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT LN(2), EXP(1)")
    except sqlite3.OperationalError:  # a build without mathematical functions
        connection.create_function("LN", 1, math.log)
        connection.create_function("EXP", 1, math.exp)
    connection.execute(f"CREATE TABLE scores (score {kind}, place INTEGER)")
    bad = [*BAD, "abc", "", "0.abc", "NaN", b"0.5", b"", 7]
    if kind in ("", "TEXT"):  # other columns store it as a number
        bad.append("0.5")
    good = [] if kind == "TEXT" else [*score.tolist(), 0, 1]
    rows = [(value, place) for place, value in enumerate([*good, *bad])]
    connection.executemany("INSERT INTO scores VALUES (?, ?)", rows)
    for name, fitted in maps.items():
        asked = f"SELECT {fitted.to_sql('score', dialect='sqlite')} FROM scores ORDER BY place"
        mapped = [value for (value,) in connection.execute(asked)]
        assert mapped[len(good) :] == [None] * len(bad), name
        if good:
            same(mapped[: len(good)], fitted.predict_proba(np.array(good)), name)


def test_python_maps_scores_and_refuses_everything_else(maps):
    maps, score = maps
    bad = [*BAD, "abc", "0.5", b"0.5", [], np.float64("nan"), decimal.Decimal("NaN"), decimal.Decimal(2), 1j]
    for name, fitted in maps.items():
        space = {}
        exec(fitted.to_python("mapped"), space)
        same([space["mapped"](value) for value in score.tolist()], fitted.predict_proba(score), name, 1e-12)
        for value in bad:
            with pytest.raises(ValueError, match="score must be a number from 0 to 1, got ") as error:
                space["mapped"](value)
            assert str(error.value).endswith(f"got {value!r}")
        for value in (0, 1, True, np.float32(0.25), decimal.Decimal("0.25")):
            assert space["mapped"](value) == space["mapped"](float(value))


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_column_is_checked_once(method):
    expression = some_maps()[0][method].to_sql('"p x"')
    assert expression.count('"p x" BETWEEN 0E0 AND 1E0') == 1
    assert "LEAST" not in some_maps()[0][method].to_sql("p", dialect="sqlite")


def test_unknown_dialects_are_refused():
    for export in (Calibrator("identity").fit([0.1, 0.9], [0, 1]), PriorShift(train=0.5, target=0.1)):
        with pytest.raises(InputError, match=r"dialect must be .*'standard'.*'sqlite'.*got 'oracle'"):
            export.to_sql("p", dialect="oracle")
