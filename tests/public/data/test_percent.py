"""Scores that are percentages, from files and from arrays: the numbers of shares, to the last bit."""

import inspect
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli
from calibrant.sklearn import ReliabilityDisplay
from shortcuts import read_as_sums


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    said = rng.choice([29, 57, 58, 80, 90, 95, 100], 600)
    return pd.DataFrame({"correct": (rng.random(600) < 0.008 * said).astype(int), "confidence": said})


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def paths(request, answers, tmp_path):
    """Files of percentages and of shares."""
    frames = {"percent": answers, "share": answers.assign(confidence=answers["confidence"] / 100)}
    for name, frame in frames.items():
        path = tmp_path / f"{name}.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        elif request.param == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
    return tuple(str(tmp_path / f"{name}.{request.param}") for name in frames)


def asked(*arguments):
    done = CliRunner().invoke(cli.main, [*arguments, "-q", "--json"])
    assert done.exit_code == 0, done.output
    return {key: value for key, value in json.loads(done.output).items() if key != "source"}


@pytest.mark.full
@pytest.mark.parametrize(
    "command", [["ece"], ["ece", "--estimator", "uniform:100"], ["curve", "--at", "1,0.57"]]
)
def test_percentages_are_shares_on_the_command_line(paths, command, monkeypatch):
    percent, share = paths
    rows = asked(command[0], share, *command[1:])
    assert asked(command[0], percent, *command[1:], "--percent") == rows
    read_as_sums(monkeypatch)
    sums = asked(command[0], percent, *command[1:], "--percent")
    assert sums["read"] == "sums"
    assert sums["value"] == pytest.approx(rows["value"], abs=1e-9)


def test_percentages_are_shares_in_sketches(paths, answers):
    percent, share = paths
    sketch = calibrant.Sketch.from_files(percent, percent=True)
    assert sketch.digest == calibrant.Sketch.from_files(share).digest
    assert sketch.notion == "correctness"
    value = calibrant.ece(answers["correct"], answers["confidence"] / 100, notion="correctness")
    assert sketch.ece() == pytest.approx(value, abs=1e-9)


def test_percentages_that_nobody_spoke_of_are_refused_with_the_way_out(paths):
    done = CliRunner().invoke(cli.main, ["ece", paths[0]])
    assert done.exit_code == 2
    assert "these look like percentages" in done.output
    assert "--percent" in done.output
    with pytest.raises(calibrant.InputError, match="percent=True"):
        calibrant.Sketch.from_files(paths[0])


def test_shares_that_are_called_percentages_are_refused(paths):
    done = CliRunner().invoke(cli.main, ["ece", paths[1], "--percent"])
    assert done.exit_code == 2
    assert "--percent must go with scores up to 100, got none above 1" in done.output
    with pytest.raises(calibrant.InputError, match="percent must go with scores up to 100"):
        calibrant.Sketch.from_files(paths[1], percent=True)


@pytest.mark.full
def test_a_report_of_levels_shows_them_and_repeats_its_command(paths, tmp_path):
    out = tmp_path / "page.html"
    command = ["report", paths[0], "--percent", "-o", str(out)]
    assert CliRunner().invoke(cli.main, command).exit_code == 0
    page = out.read_text()
    assert "--percent -o page.html" in page or "--percent --out page.html" in page
    for level in ("0.29", "0.57", "0.58", "0.80", "0.90", "0.95", "1.00"):
        assert f'<th scope="row">{level}</th>' in page


RNG = np.random.default_rng(1)
LABEL = RNG.integers(0, 2, 200)
SCORE = RNG.integers(0, 101, 200)
GROUPS = np.arange(200) % 2
OPTIONS = {
    "audit": {"segments": {"group": GROUPS}, "n_resamples": 99},
    "best_threshold": {"cost": 0.3, "rng": 0},
    "compare_calibrators": {"methods": ["beta"], "rng": 0},
    "estimate_by": {"by": {"group": GROUPS}, "rng": 0},
    "lce": {"at": [0.25, 0.5]},
    "recommend": {"estimators": ["uniform:5"], "repetitions": 2, "rng": 0},
    "regret": {"cost": 0.3, "rng": 0},
    "reliability_curve": {},
    "reliability_diagram": {},
    "score_histogram": {},
    "net_benefit": {"thresholds": [0.1, 0.5]},
    **{name: {"estimator": "uniform:100"} for name in ("ece", "mce")},
    **{name: {"rng": 0} for name in ("assess", "compare", "estimate", "regret_curve", "risk_coverage")},
}


def public_functions():
    """Every function of the library that takes scores."""
    for name in calibrant.__all__:
        function = getattr(calibrant, name)
        if inspect.isfunction(function) and {"y_prob", "models"} & {*inspect.signature(function).parameters}:
            yield name


def plain(result):
    """What a result holds, as text."""
    held = result.to_dict() if hasattr(result, "to_dict") else getattr(result, "__dict__", result)
    return repr(held)


def test_all_functions_of_scores_are_tried():
    assert {*public_functions()} == {*OPTIONS}


@pytest.mark.full
@pytest.mark.parametrize("name", OPTIONS)
def test_every_function_takes_percentages(name, without_reference_estimators):
    function, options = getattr(calibrant, name), OPTIONS[name]

    def asked(score, **more):
        if name == "recommend":
            return plain(function(score, **options, **more))
        scores = {"one": score, "two": score[::-1]} if name == "compare" else score
        rows = (scores, LABEL) if name == "compare_calibrators" else (LABEL, scores)
        return plain(function(*rows, **options, **more))

    assert asked(SCORE, percent=True) == asked(SCORE / 100)
    with pytest.raises(calibrant.InputError, match="percentages: divide by 100 first; or pass percent=True"):
        asked(SCORE)
    with pytest.raises(calibrant.InputError, match="percent must go with scores up to 100, got none above 1"):
        asked(SCORE / 100, percent=True)


MATRICES = {
    "float64": lambda p: p,
    "integers": lambda p: p.astype(np.int16),
    "float32": lambda p: p.astype(np.float32),
    "list": lambda p: p.tolist(),
    "pandas": lambda p: pd.DataFrame(p, columns=["p_a", "p_b", "p_c"]),
    "polars": lambda p: pl.DataFrame(p, schema=["p_a", "p_b", "p_c"]),
    "pyarrow": lambda p: pa.table(dict(zip(["p_a", "p_b", "p_c"], p.T, strict=True))),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_a_matrix_of_percentages(kind):
    score = RNG.multinomial(100, [0.2, 0.3, 0.5], 150).astype(float)
    label = np.array(["a", "b", "c"])[RNG.integers(0, 3, 150)]
    value = calibrant.ece(label, score / 100, notion="classwise", estimator="uniform:50")
    found = calibrant.ece(
        label, MATRICES[kind](score), notion="classwise", estimator="uniform:50", percent=True
    )
    assert found == value


def test_a_sketch_takes_percentages_in_chunks():
    whole = calibrant.Sketch("binary").update(LABEL, SCORE / 100)
    parts = calibrant.Sketch("binary")
    for a in range(0, 200, 50):
        parts.update(LABEL[a : a + 50], SCORE[a : a + 50], percent=True)
    assert (
        parts.digest == calibrant.Sketch("binary").update(LABEL, SCORE, percent=True).digest == whole.digest
    )


def test_a_calibrator_takes_percentages():
    share, percent = calibrant.Calibrator().fit(SCORE / 100, LABEL), calibrant.Calibrator()
    percent.fit(SCORE, LABEL, percent=True)
    assert (percent.predict_proba([7, 50], percent=True) == share.predict_proba([0.07, 0.5])).all()
    for found, expected in zip(
        percent.predict_interval([7, 50], percent=True), share.predict_interval([0.07, 0.5]), strict=True
    ):
        assert (found == expected).all()
    pair = calibrant.Calibrator("venn-abers").fit(SCORE, LABEL, percent=True)
    assert pair.predict_pair([50], percent=True) == pair.predict_pair([0.5])
    with pytest.raises(calibrant.InputError, match="percent must be False where scores are logits"):
        calibrant.Calibrator(from_logits=True).fit(SCORE, LABEL, percent=True)
    with pytest.raises(calibrant.InputError, match="got none above 1"):
        calibrant.Calibrator().fit(SCORE / 100, LABEL, percent=True)


def test_a_display_takes_percentages():
    found = ReliabilityDisplay.from_predictions(LABEL, SCORE, percent=True)
    np.testing.assert_array_equal(found.y_prob, SCORE / 100)


def test_rounded_percentages_are_renormalised():
    score = np.full((30, 3), 33.33)
    found = calibrant.estimate([0, 1, 2] * 10, score, percent=True, rng=0)
    assert found.cautions[0].startswith("30 of 30 rows did not sum to 1 because of rounding")
    for narrow in (np.float32, np.float16):  # which have a tolerance of their own
        value = calibrant.ece([0, 1, 2] * 10, score.astype(narrow), percent=True, estimator="uniform:1")
        assert value == pytest.approx(0, abs=1e-3)
