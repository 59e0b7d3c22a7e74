"""A map next to the data: as an expression of SQL, run by engines, and as a function of plain Python."""

import numpy as np
import pyarrow as pa
import pytest

import calibrant
from calibrant import Calibrator
from engines import needed
from exported import OF_ONE_SCORE, some_maps


@pytest.fixture(scope="module")
def fitted():
    return some_maps()


@pytest.mark.full
def test_duckdb_maps_as_python_does(fitted):
    maps, score = fitted
    table = pa.table({"score": score, "row": np.arange(score.size)})
    relation = needed("duckdb").from_arrow(table)
    for name, calibrator in maps.items():
        mapped = relation.project(f"row, {calibrator.to_sql('score')} AS p").order("row").fetchnumpy()["p"]
        np.testing.assert_allclose(mapped, calibrator.predict_proba(score), rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", OF_ONE_SCORE)
def test_a_plain_function_maps_as_the_calibrator_does(fitted, name):
    maps, score = fitted
    space = {}
    exec(maps[name].to_python("mapped"), space)
    mapped = [space["mapped"](each) for each in score.tolist()]
    np.testing.assert_allclose(mapped, maps[name].predict_proba(score), rtol=0, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("name", OF_ONE_SCORE)
def test_what_was_saved_is_exported_alike(fitted, name):
    again = Calibrator.from_json(fitted[0][name].to_json())
    assert again.to_sql("score") == fitted[0][name].to_sql("score")
    assert again.to_python() == fitted[0][name].to_python()


def test_a_map_of_many_classes_is_no_expression():
    score = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    calibrator = Calibrator("temperature").fit(score, np.arange(60) % 3)
    with pytest.raises(calibrant.InputError, match="must be a map of one score"):
        calibrator.to_sql("score")
