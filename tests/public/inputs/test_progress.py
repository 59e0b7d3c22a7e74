"""Long work says how far it is: to a callable, or on standard error for `progress=True`."""

import inspect
import re

import numpy as np
import pytest

import calibrant
from calibrant import experiment

RNG = np.random.default_rng(0)
SCORE = RNG.random(200)
OUTCOME = RNG.random(200) < SCORE**2
MATRIX = RNG.dirichlet(np.ones(21), 60)
LABEL = RNG.integers(0, 21, 60)
SKETCH = calibrant.Sketch("binary").update(OUTCOME, SCORE)
LONG = {
    "assess": lambda **told: calibrant.assess(OUTCOME, SCORE, groups=np.arange(200) % 2, rng=0, **told),
    "compare": lambda **told: calibrant.compare(OUTCOME, {"a": SCORE, "b": SCORE**2}, rng=0, **told),
    "estimate": lambda **told: calibrant.estimate(LABEL, MATRIX, notion="classwise", rng=0, **told),
    "recommend": lambda **told: calibrant.recommend(
        SCORE[:50], estimators=["uniform:15", "auto"], rng=0, **told
    ),
    "reliability_curve": lambda **told: calibrant.reliability_curve(
        OUTCOME, SCORE, method="density", rng=0, **told
    ),
    "sketch assess": lambda **told: SKETCH.assess(rng=0, **told),
    "sketch curve": lambda **told: SKETCH.curve(method="density", rng=0, **told),
}


@pytest.mark.full
@pytest.mark.usefixtures("few_reference_estimators")
@pytest.mark.parametrize("name", LONG)
def test_a_callable_is_told_how_much_of_how_much_is_done(name):
    told = []
    LONG[name](progress=lambda *state: told.append(state))
    done, totals = zip(*told, strict=True)
    assert len(set(totals)) == 1
    assert list(done) == sorted(done)
    assert done[-1] == totals[0]


@pytest.mark.full
@pytest.mark.usefixtures("few_reference_estimators")
@pytest.mark.parametrize("name", LONG)
def test_true_shows_a_line_on_standard_error_and_nothing_else(name, capsys):
    LONG[name](progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"(\d+) of \1 *\n$", shown.err), shown.err
    for quiet in (None, False):
        LONG[name](progress=quiet)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("read", [calibrant.Sketch.from_files, calibrant.Sketch.from_files_by_group])
def test_reading_files_shows_rows_and_files(read, tmp_path, capsys):
    rows = "\n".join(f"{int(y)},{s},{k % 2}" for k, (y, s) in enumerate(zip(OUTCOME, SCORE, strict=True)))
    for day in ("monday", "tuesday"):
        (tmp_path / f"{day}.csv").write_text(f"label,score,side\n{rows}\n")
    groups = {"groups": "side"} if "group" in read.__name__ else {}
    read(tmp_path, progress=True, **groups)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "400 rows, 2 of 2 files" in shown.err.splitlines()[-1]
    assert shown.err.endswith("\n")


def test_what_is_neither_true_nor_callable_is_refused():
    with pytest.raises(TypeError, match="progress must be True or callable, got 'yes'"):
        calibrant.assess(OUTCOME, SCORE, progress="yes")


@pytest.mark.parametrize(
    "function",
    [
        calibrant.assess,
        calibrant.compare,
        calibrant.estimate,
        calibrant.recommend,
        calibrant.reliability_curve,
        calibrant.Sketch.from_files,
        experiment.run,
    ],
)
def test_long_work_says_that_it_takes_progress(function):
    assert inspect.signature(function).parameters["progress"].default is None
    assert "progress" in function.__doc__
