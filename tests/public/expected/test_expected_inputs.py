"""Faults of readers, inputs and commands: each test states the right behaviour and fails today."""

import json
import re
import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    score = rng.beta(1.3, 1.7, 300).round(3)
    return pd.DataFrame({"label": (rng.random(300) < score).astype(int), "score": score})


DAY = np.repeat(np.arange(3), 100)
SECONDS = 1_777_852_800 + 86_400 * DAY  # from 2026-05-04 on
DATES = {"2026-05-04", "2026-05-05", "2026-05-06"}


# Times of the monitor


def test_dates_of_a_monitor_are_on_its_page(frame, tmp_path):
    times = [f"2026-05-{4 + day:02}" for day in DAY]
    assert dates_of_times(frame, tmp_path, times) == DATES


def dates(folder, *words):
    """Return the dates of this period of the year that the page of the monitor shows."""
    page = folder / "m.html"
    result = run("monitor", *words, "-q", "-o", page)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1), result.output
    return set(re.findall(r"\b2026-05-\d\d\b", page.read_text()))


def dates_of_times(frame, folder, times):
    path = folder / "rows.csv"
    frame.assign(at=times).to_csv(path, index=False)
    return dates(folder, path, "--time", "at")


@pytest.mark.full
@pytest.mark.xfail(strict=True, reason="Integers are read as years.")
@pytest.mark.parametrize(
    "times",
    [SECONDS, 1000 * SECONDS, 1_000_000 * SECONDS, 20260504 + DAY],
    ids=["seconds", "milliseconds", "microseconds", "compact"],
)
def test_times_that_are_integers(frame, tmp_path, times):
    assert dates_of_times(frame, tmp_path, times) == DATES


@pytest.mark.xfail(strict=True, reason="A number that is no plausible time is read as a year.")
def test_integers_that_are_no_times_are_refused(frame, tmp_path):
    path = tmp_path / "rows.csv"
    frame.assign(at=70_000 + DAY).to_csv(path, index=False)
    result = run("monitor", path, "--time", "at", "-q", "-o", tmp_path / "m.html")
    assert result.exit_code == 2
    assert "70000" in result.output.replace(",", "")


@pytest.mark.xfail(strict=True, reason="A time zone ends in a warning of numpy about its own types.")
def test_times_with_an_offset(frame, tmp_path):
    times = [f"2026-05-{4 + day:02}T12:00:00+02:00" for day in DAY]
    assert dates_of_times(frame, tmp_path, times) == DATES


@pytest.mark.xfail(strict=True, reason="Integers are read as years.")
@pytest.mark.parametrize("at", [20260504, 1_777_852_800, 1_777_852_800_000])
def test_update_of_a_monitor_at_an_integer(frame, at):
    monitor = calibrant.Monitor()
    monitor.update(frame["label"], frame["score"], at=at)
    assert str(monitor.to_dict()["batches"][0]["at"]).startswith("2026-05-04")


@pytest.fixture
def partitions(frame, tmp_path):
    for day, rows in frame.groupby(DAY):
        folder = tmp_path / f"days/dt=2026-05-{4 + day:02}"
        folder.mkdir(parents=True)
        rows.to_csv(folder / "part.csv", index=False)
    return tmp_path / "days"


@pytest.mark.xfail(strict=True, reason="Partitions of days are monitored by the hour without a word.")
def test_hours_of_partitions_of_days_are_refused(partitions, tmp_path):
    result = run("monitor", partitions, "--every", "hour", "-q", "-o", tmp_path / "m.html")
    assert result.exit_code == 2
    assert "hour" in result.output


@pytest.mark.xfail(strict=True, reason="Folders year=/month=/day= are not read as dates.")
def test_partitions_by_year_month_and_day(frame, tmp_path):
    for day, rows in frame.groupby(DAY):
        folder = tmp_path / f"rows/year=2026/month=05/day={4 + day:02}"
        folder.mkdir(parents=True)
        rows.to_csv(folder / "part.csv", index=False)
    assert dates(tmp_path, tmp_path / "rows") == DATES


# The state of a monitor


@pytest.mark.xfail(strict=True, reason="Python cannot load the state that the command line wrote.")
def test_python_loads_the_state_of_the_command_line(partitions, tmp_path):
    state = tmp_path / "state.json"
    result = run("monitor", partitions, "--state", state, "-q", "-o", tmp_path / "m.html")
    assert result.exit_code == 0, result.output
    assert len(calibrant.Monitor.load(state).to_dict()["batches"]) == 3


@pytest.mark.xfail(strict=True, reason="The command line cannot continue a state that Python saved.")
def test_the_command_line_loads_the_state_of_python(frame, partitions, tmp_path):
    monitor = calibrant.Monitor()
    monitor.update(frame["label"], frame["score"], at="2026-05-03")
    state = tmp_path / "state.json"
    monitor.save(state)
    result = run("monitor", partitions, "--state", state, "-q", "-o", tmp_path / "m.html")
    assert result.exit_code == 0, result.output


@pytest.mark.xfail(strict=True, reason="A state in use has the exit code of invalid input.")
def test_a_state_in_use_has_its_own_exit_code(partitions, tmp_path):
    filelock = pytest.importorskip("filelock")
    state = tmp_path / "state.json"
    with filelock.FileLock(f"{state}.lock"):
        result = run("monitor", partitions, "--state", state, "-q", "-o", tmp_path / "m.html")
    assert "another run" in result.output
    assert result.exit_code not in (0, 1, 2)


# Logs of language model evaluations


def inspect_log(confidences, **about):
    samples = [
        {"id": k, "scores": {"judge": {"value": "CI"[k % 2], "metadata": {"confidence": sure}}}}
        for k, sure in enumerate(confidences)
    ]
    return {"eval": {"task": "sums", "model": "large", **about}, "samples": samples}


def harness_log(path, *, filters=("none",), doc=None, metrics=("exact_match",), array=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = [
        {
            **{"doc_id": k, "doc": {"sure": 0.8} if doc is None else doc, "target": "4", "filter": name},
            **{"arguments": [["q", {}]], "resps": [["4"]], "filtered_resps": ["4"]},
            **{"metrics": list(metrics), **dict.fromkeys(metrics, float(k % 2))},
        }
        for name in filters
        for k in range(6)
    ]
    path.write_text(json.dumps(samples, indent=2) if array else "\n".join(map(json.dumps, samples)))
    return path


NAME = "samples_sums_2026-05-04T10-00-00.000000.jsonl"


@pytest.mark.xfail(strict=True, reason="Archives of Inspect that are compressed by zstd cannot be read.")
def test_archives_of_inspect_with_zstd(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    log = inspect_log([0.8] * 4)
    files = {"header.json": {"eval": log["eval"]}}
    files |= {f"samples/{each['id']}_epoch_1.json": each for each in log["samples"]}
    content, directory = b"", b""
    for name, value in files.items():
        data = json.dumps(value).encode()
        packed, path = pyarrow.compress(data, codec="zstd", asbytes=True), name.encode()
        sizes = zlib.crc32(data), len(packed), len(data), len(path)
        entry = struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 63, 63, 0, 93, 0, 33, *sizes, 0, 0, 0, 0, 0, len(content)
        )
        directory += entry + path
        content += struct.pack("<IHHHHHIIIHH", 0x04034B50, 63, 0, 93, 0, 33, *sizes, 0) + path + packed
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(files), len(files), len(directory), len(content), 0)
    (tmp_path / "log.eval").write_bytes(content + directory + end)
    assert calibrant.read_answers(tmp_path / "log.eval", "inspect")["correct"].tolist() == [1, 0, 1, 0]


@pytest.mark.xfail(
    strict=True, reason="Logs of lm-evaluation-harness 0.4.2, one JSON array each, cannot be read."
)
def test_logs_of_the_harness_that_are_one_array(tmp_path):
    path = harness_log(tmp_path / NAME, array=True)
    assert calibrant.read_answers(path, "lm-eval", confidence="sure")["correct"].sum() == 3


@pytest.mark.xfail(strict=True, reason="A folder with other JSON files beside the logs cannot be read.")
def test_folders_with_other_files(tmp_path):
    (tmp_path / "log.json").write_text(json.dumps(inspect_log([0.8] * 4)))
    (tmp_path / "results.json").write_text(json.dumps({"results": {}, "config": {"model": "large"}}))
    assert calibrant.read_answers(tmp_path, "inspect")["correct"].size == 4


@pytest.mark.xfail(strict=True, reason="Two runs of a task count every question twice without a word.")
@pytest.mark.parametrize("kind", ["inspect", "lm-eval"])
def test_repeated_runs_of_a_task_are_refused(tmp_path, kind):
    if kind == "inspect":
        for name in ("first.json", "second.json"):
            (tmp_path / name).write_text(json.dumps(inspect_log([0.8] * 4)))
    else:
        for day in ("04", "05"):
            harness_log(tmp_path / NAME.replace("-04T", f"-{day}T"))
    with pytest.raises(ValueError, match="sums") as error:
        calibrant.read_answers(tmp_path, kind, confidence="confidence" if kind == "inspect" else "sure")
    assert "field" not in str(error.value)


@pytest.mark.xfail(strict=True, reason="Rows without a confidence are said to be rows without a label.")
def test_answers_without_a_confidence_are_told_what_to_do(tmp_path):
    path = harness_log(tmp_path / NAME, doc={})
    result = run("ece", path, "--from", "lm-eval")
    assert result.exit_code == 2
    assert "without a label" not in result.output
    with pytest.raises(ValueError, match="confidence") as error:
        calibrant.read_answers(path, "lm-eval")
    assert "without a label" not in str(error.value)


@pytest.mark.xfail(strict=True, reason="A fraction among percentages is read as nearly 0 without a caution.")
def test_a_fraction_among_percentages_gets_a_caution(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log([85, 85, 0.9, 85])))
    with pytest.warns(calibrant.InputWarning):
        calibrant.read_answers(path, "inspect", percent=True)


@pytest.mark.xfail(strict=True, reason="The command line asks for a filter and has no option to name it.")
def test_filters_can_be_named_on_the_command_line(tmp_path):
    path = harness_log(tmp_path / NAME, filters=("strict", "flexible"), doc={"confidence": 0.8})
    assert "filter" in run("ece", path, "--from", "lm-eval").output
    result = run("ece", path, "--from", "lm-eval", "--filter", "strict")
    assert result.exit_code == 0, result.output


@pytest.mark.xfail(strict=True, reason="The command line refuses several logs and calls them no sketches.")
def test_several_logs_on_the_command_line(tmp_path):
    paths = [
        harness_log(tmp_path / name / NAME.replace("sums", name), doc={"confidence": 0.8}) for name in "ab"
    ]
    result = run("ece", *paths, "--from", "lm-eval")
    assert result.exit_code == 0, result.output


@pytest.mark.xfail(strict=True, reason="The correctness of an answer cannot be a field or a function.")
@pytest.mark.parametrize("correct", ["graded", lambda sample: sample["doc"]["graded"]])
def test_correctness_of_answers_by_field_or_function(tmp_path, correct):
    path = harness_log(tmp_path / NAME, doc={"confidence": 0.8, "graded": 1})
    assert calibrant.read_answers(path, "lm-eval", correct=correct)["correct"].all()


# Documentation of parameters


PARAMETERS = "Parameters are documented as those of another function, which help() does not show."


@pytest.mark.xfail(strict=True, reason=PARAMETERS)
@pytest.mark.parametrize("name", ["estimate", "audit", "compare", "risk_coverage", "reliability_curve"])
def test_docstrings_describe_their_parameters(name):
    assert "As for `" not in getattr(calibrant, name).__doc__


# Columns, folders and messages


@pytest.mark.xfail(strict=True, reason="Another column is taken for the scores without a word.")
def test_the_column_of_the_scores_is_named_if_it_was_found(frame, tmp_path):
    path = tmp_path / "rows.csv"
    frame.rename(columns={"score": "model_v2"}).assign(prob=0.5).to_csv(path, index=False)
    result = run("ece", path)
    assert result.exit_code == 2 or re.search(r"\bprob\b", result.output)


@pytest.mark.xfail(strict=True, reason="Folders that are links are said to hold no files.")
def test_folders_that_are_links_are_read(frame, tmp_path):
    (tmp_path / "rows").mkdir()
    frame.to_csv(tmp_path / "rows" / "part.csv", index=False)
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "linked").symlink_to(tmp_path / "rows")
    result = run("ece", tmp_path / "all")
    assert result.exit_code == 0, result.output


@pytest.mark.xfail(strict=True, reason='A message goes on behind "did you mean".')
def test_messages_end_with_their_suggestion(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    result = run("ece", tmp_path / "rows.csv", "--label", "labell")
    assert "did you mean 'label'?" in result.output
    assert "?;" not in result.output


@pytest.mark.xfail(strict=True, reason="The command line gives advice for Python.")
@pytest.mark.parametrize("words", [("regret", "--cost", "1:9"), ("ece", "--estimator", "uniform:0")])
def test_advice_of_the_command_line(tmp_path, words):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1, 1], 300)
    rows = pd.DataFrame(scores, columns=["p_0", "p_1", "p_2"]).assign(label=rng.integers(0, 3, 300))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    result = run(words[0], tmp_path / "rows.csv", *words[1:])
    assert result.exit_code == 2
    assert not re.search(r"\b(pos_label|n_bins)\b", result.output)
