"""A map next to the data: as an expression of SQL, run by engines, and as a function of plain Python."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant import Calibrator
from engines import needed

# Those of one score; the others are of many classes.
METHODS = [name for name in calibrant.calibrator_names() if name not in ("vector", "matrix")]
# The ends, far beyond what was learned from, and scores of float32.
EXTREMES = [0.0, 1.0, 1e-300, 1e-12, 1 - 1e-12, 0.5, float(np.float32(0.1))]


@pytest.fixture(scope="module")
def fitted():
    """Every map of a model that is too sure of itself, some of its scores repeated, and at 0 and 1."""
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.beta(0.7, 0.9, 1200), rng.integers(0, 11, 300) / 10])
    odds = 0.6 * np.log(np.clip(score, 1e-6, 1) / np.clip(1 - score, 1e-6, 1)) - 0.4
    outcome = rng.random(1500) < 1 / (1 + np.exp(-odds))
    maps = {name: Calibrator(name).fit(score, outcome) for name in METHODS}
    return maps, np.concatenate([EXTREMES, score[::10], np.linspace(0, 1, 101)])


def test_duckdb_maps_as_python_does(fitted):
    maps, score = fitted
    table = pa.table({"score": score, "row": np.arange(score.size)})
    relation = needed("duckdb").from_arrow(table)
    for name, calibrator in maps.items():
        mapped = relation.project(f"row, {calibrator.sql('score')} AS p").order("row").fetchnumpy()["p"]
        np.testing.assert_allclose(mapped, calibrator.predict_proba(score), rtol=0, atol=1e-9, err_msg=name)


def test_spark_maps_as_python_does(fitted, spark, tmp_path):
    maps, score = fitted
    pq.write_table(pa.table({"score": score, "row": np.arange(score.size)}), tmp_path / "scores.parquet")
    frame = spark.read.parquet(str(tmp_path / "scores.parquet"))
    for name, calibrator in maps.items():
        rows = frame.selectExpr("row", f"{calibrator.sql('score')} AS p").orderBy("row").collect()
        mapped = [row["p"] for row in rows]
        np.testing.assert_allclose(mapped, calibrator.predict_proba(score), rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", METHODS)
def test_a_plain_function_maps_as_the_calibrator_does(fitted, name):
    maps, score = fitted
    space = {}
    exec(maps[name].python("mapped"), space)
    mapped = [space["mapped"](each) for each in score.tolist()]
    np.testing.assert_allclose(mapped, maps[name].predict_proba(score), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_what_was_saved_is_exported_alike(fitted, name):
    again = Calibrator.from_json(fitted[0][name].to_json())
    assert again.sql("score") == fitted[0][name].sql("score")
    assert again.python() == fitted[0][name].python()


def test_a_map_of_many_classes_is_no_expression():
    score = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    calibrator = Calibrator("temperature").fit(score, np.arange(60) % 3)
    with pytest.raises(calibrant.InputError, match="must be a map of one score"):
        calibrator.sql("score")
