"""Logs of language model evaluations: what is read, against values made by hand, and what is refused."""

import gzip
import json
import math
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli

KEPT = ("model", "benchmark", "question", "correct", "confidence")


def read(paths, kind="lm-eval", **options):
    """Columns, with target and probabilities as the functions of the library take them."""
    columns = calibrant.read_answers(paths, kind, **options)
    choices = [column for name, column in columns.items() if name.startswith("p_")]
    assert list(columns) == [
        *KEPT,
        *(["target"] if choices else []),
        *(f"p_{k}" for k in range(len(choices))),
    ]
    matrix = np.stack(choices, axis=1) if choices else None
    return SimpleNamespace(**{k: columns[k] for k in KEPT}, y_true=columns.get("target"), y_prob=matrix)


def read_inspect(paths, **options):
    return read(paths, "inspect", **options)


DATE = "2026-05-04T10-11-12.123456"


def choice_sample(doc_id, likelihoods, target, choices="ABCD", **fields):
    """A sample of multiple choice, with numbers as text, as lm-evaluation-harness writes it."""
    arguments = {
        f"gen_args_{k}": {"arg_0": f"Question {doc_id}?\nAnswer:", "arg_1": f" {choices[k]}"}
        for k in range(len(likelihoods))
    }
    best = int(np.argmax(likelihoods))
    sample = {
        "doc_id": doc_id,
        "doc": {"question": f"Question {doc_id}?"},
        "target": str(target),
        "arguments": arguments,
        "resps": [[[str(each), "False"]] for each in likelihoods],
        "filtered_resps": [[str(each), "False"] for each in likelihoods],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(best == target),
    }
    return sample | fields


def written(folder, samples, task="sums", model="org__large", date=DATE):
    path = folder / model / f"samples_{task}_{date}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return path


def test_multiple_choice_is_a_softmax_of_log_likelihoods(tmp_path):
    path = written(tmp_path, [choice_sample(0, [-1.0, -2.0], 0), choice_sample(1, [-3.0, -2.5], 0)])
    log = read(path)
    sure = [1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(-0.5))]
    assert log.confidence == pytest.approx(sure, abs=1e-15)
    assert log.correct.tolist() == [True, False]
    assert log.y_true.tolist() == [0, 0]
    assert log.y_prob == pytest.approx(np.array([[sure[0], 1 - sure[0]], [1 - sure[1], sure[1]]]), abs=1e-15)
    assert log.question.tolist() == ["sums/0", "sums/1"]
    assert set(log.benchmark) == {"sums"}
    assert set(log.model) == {"org__large"}


def test_lengths_of_choices(tmp_path):
    """By characters and by bytes the second choice wins."""
    words = ["no", "été à"]  # 2 and 5 characters, 2 and 8 bytes
    sample = choice_sample(0, [-1.0, -2.4], 1, words, acc_norm=1.0)
    sample["acc_bytes"] = 1.0
    path = written(tmp_path, [sample])
    by_characters = read(path, metric="acc_norm")
    logs = np.array([-1.0 / 2, -2.4 / 5])
    assert by_characters.y_prob[0] == pytest.approx(np.exp(logs) / np.exp(logs).sum(), abs=1e-15)
    logs = np.array([-1.0 / 2, -2.4 / 8])
    found = read(path, metric="acc_bytes").y_prob[0]
    assert found == pytest.approx(np.exp(logs) / np.exp(logs).sum(), abs=1e-15)
    assert read(path).correct.tolist() == [False]


def test_targets_are_numbers_texts_or_several(tmp_path):
    samples = [
        choice_sample(0, [-1.0, -2.0], 0) | {"target": "A"},
        choice_sample(1, [-1.0, -2.0], 1) | {"target": " B"},
        choice_sample(2, [-1.0, -2.0], 0) | {"target": "[0, 1]"},
    ]
    assert read(written(tmp_path, samples[:2])).y_true.tolist() == [0, 1]
    log = read(written(tmp_path, samples, "several"))
    assert log.correct.tolist() == [True, False, True]
    assert log.y_true is None
    assert log.y_prob is None


def test_questions_with_different_numbers_of_choices_are_pairs(tmp_path):
    samples = [choice_sample(0, [-1.0, -2.0], 0), choice_sample(1, [-3.0, -2.5, -2.6], 1)]
    log = read(written(tmp_path, samples))
    assert (log.y_true, log.y_prob) == (None, None)
    assert log.correct.tolist() == [True, True]


def test_mutual_information_leaves_out_requests_without_a_question(tmp_path):
    sample = choice_sample(0, [-1.0, -2.0, -9.0, -1.0], 0, "ABAB", acc_mutual_info=0.0)
    for k in (2, 3):
        sample["arguments"][f"gen_args_{k}"]["arg_0"] = ""
    log = read(written(tmp_path, [sample]))
    assert log.y_prob[0] == pytest.approx([1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(1.0))])


def test_older_logs_have_lists_and_numbers(tmp_path):
    sample = choice_sample(0, [-1.0, -2.0], 0)
    sample |= {"arguments": [["Question?", " A"], ["Question?", " B"]], "target": 0}
    sample["filtered_resps"] = [[-1.0, False], [-2.0, True]]
    assert read(written(tmp_path, [sample])).y_true.tolist() == [0]


def test_a_folder_holds_tasks_and_models(tmp_path):
    for model in ("org__large", "org__small"):
        for task in ("sums", "maths_and_logic"):
            written(tmp_path, [choice_sample(k, [-1.0, -2.0], k % 2) for k in range(3)], task, model)
    results = tmp_path / "org__large" / f"results_{DATE}.json"
    results.write_text(json.dumps({"model_name": "org/large", "results": {}}))
    log = read(tmp_path)
    assert set(log.model) == {"org/large", "org__small"}
    assert set(log.benchmark) == {"sums", "maths_and_logic"}
    assert len(log.correct) == 12
    assert len(set(log.question)) == 6
    packed = tmp_path / "packed" / f"samples_sums_{DATE}.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((tmp_path / "org__small" / f"samples_sums_{DATE}.jsonl").read_bytes()))
    assert read(packed).confidence.tolist() == log.confidence[:3].tolist()
    assert len(read([packed, *sorted((tmp_path / "org__large").glob("samples*"))]).correct) == 9


def generated(doc_id, right, **fields):
    sample = {"doc_id": doc_id, "doc": {"question": "?"}, "target": "4", "filtered_resps": ["4"]}
    return sample | {"metrics": ["exact_match"], "exact_match": right, "filter": "strict"} | fields


def test_generated_text_has_a_confidence_that_the_log_holds(tmp_path):
    samples = [generated(0, 1.0, confidence=0.9), generated(1, 0.0, doc={"confidence": "70%"})]
    path = written(tmp_path, samples)
    with pytest.raises(
        calibrant.InputError, match=r"line 2: confidence must lie in \[0, 1\], got '70%'; or pass"
    ):
        read(path)
    log = read(path, confidence=lambda sample: 0.5 + 0.1 * sample["doc_id"])
    assert log.confidence.tolist() == [0.5, 0.6]
    assert log.correct.tolist() == [True, False]
    path = written(tmp_path, [generated(0, 1, confidence="90 %"), generated(1, 0, confidence=70)], "percent")
    assert read(path, percent=True).confidence.tolist() == [0.9, 0.7]


def test_filters_and_metrics_are_named_where_there_are_several(tmp_path):
    samples = [
        generated(k, 1, confidence=0.9, filter=name) for k in (0, 1) for name in ("strict", "flexible")
    ]
    path = written(tmp_path, samples)
    with pytest.raises(calibrant.InputError, match="line 2: filter must name one of the filters of the file"):
        read(path)
    assert len(read(path, filter="flexible").correct) == 2
    two = generated(0, 1, confidence=0.9, metrics=["exact_match", "bleu"], bleu=0.3)
    path = written(tmp_path, [two], "two")
    with pytest.raises(calibrant.InputError, match="metric must name the field that says what is right"):
        read(path)
    assert read(path, metric="exact_match").correct.tolist() == [True]
    with pytest.raises(calibrant.InputError, match="bleu must be right or wrong"):
        read(path, metric="bleu")


def test_samples_without_confidence_are_refused_or_left_out(tmp_path):
    samples = [generated(0, 1, confidence=0.9), generated(1, 0), generated(2, float("nan"), confidence=0.5)]
    path = written(tmp_path, samples)
    with pytest.raises(calibrant.InputError, match=r'line 2 has no confidence; pass missing="drop"'):
        read(path)
    with pytest.warns(calibrant.InputWarning, match="2 samples of 3 left out: .*line 3 has no score"):
        log = read(path, missing="drop")
    assert log.confidence.tolist() == [0.9]
    with pytest.raises(calibrant.InputError, match="at least one answer"):
        read(written(tmp_path, samples[1:], "none"), missing="drop")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"acc": 0.37}, "line 2: acc must be right or wrong .*, got 0.37; an answer that is half right"),
        ({"acc": 0.0}, "line 2: acc must agree with log-likelihoods and target"),
        (
            {"filtered_resps": [["nan", "False"], ["-1", "False"]]},
            "line 2: filtered_resps must hold log-like",
        ),
        ({"filtered_resps": [["x", "False"], ["-1", "False"]]}, "filtered_resps must be a number, got 'x'"),
        ({"filtered_resps": [["-1", "False"]]}, "got acc of 2 arguments and 1 filtered_resps"),
        ({"arguments": {}}, "line 2: metric must be .*, got acc of 0 arguments and 2 filtered_resps"),
        ({"arguments": {"a": ["x"], "b": ["y"]}}, "line 2: has a field of another type"),
        ({"doc_id": None}, None),
    ],
)
def test_a_field_that_cannot_be_is_named_with_its_line(tmp_path, change, message):
    samples = [choice_sample(0, [-1.0, -2.0], 0), choice_sample(1, [-1.0, -2.0], 0) | change]
    if message is None:
        del samples[1]["doc_id"]
        message = "line 2: doc_id must be a field of the sample, got the fields 'doc'"
    with pytest.raises(ValueError, match=message) as caught:
        read(written(tmp_path, samples))
    assert f"samples_sums_{DATE}.jsonl" in str(caught.value)


def test_files_that_are_no_logs(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"doc_id": 0}\n{"doc_id": \n')
    with pytest.raises(ValueError, match=r"samples\.jsonl, line 1: filtered_resps must be a field"):
        read(path)
    path.write_text("[1]\n")
    with pytest.raises(ValueError, match=r"samples\.jsonl, line 1: must be a JSON object"):
        read(path)
    path.write_text("x\n")
    with pytest.raises(ValueError, match=r"samples\.jsonl, line 1: is no JSON"):
        read(path)
    with pytest.raises(calibrant.InputError, match=r"paths must hold files samples_\*\.jsonl or"):
        read(tmp_path)
    with pytest.raises(OSError, match="cannot read"):
        read(tmp_path / "none.jsonl")


def inspect_log(n=6, **fields):
    """A log of Inspect with two epochs of each question."""
    samples = [
        {
            "id": f"q{k // 2}",
            "epoch": 1 + k % 2,
            "input": "?",
            "target": "4",
            "scores": {
                "judge": {"value": "CI"[k % 2], "answer": "4", "metadata": {"confidence": 50 + 5 * (k % 10)}}
            },
            "metadata": {"level": k},
        }
        for k in range(n)
    ]
    about = {"task": "exam", "model": "org/large"}
    return {"version": 2, "status": "success", "eval": about, "samples": samples} | fields


def archive(path, log, header="header.json"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(header, json.dumps({name: log[name] for name in ("version", "eval")}))
        packed.writestr("summaries.json", "[]")
        for sample in log["samples"]:
            packed.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def test_inspect_as_json_and_as_an_archive(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log()))
    log = read_inspect(path, percent=True)
    assert log.correct.tolist() == [True, False] * 3
    assert log.confidence.tolist() == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75]
    assert log.question.tolist() == [f"exam/q{k // 2}" for k in range(6)]
    assert set(log.model) == {"org/large"}
    for k, header in enumerate(("header.json", "_journal/start.json", "start.json")):
        packed = read_inspect(archive(tmp_path / f"{k}.eval", inspect_log(), header), percent=True)
        assert packed.confidence.tolist() == log.confidence.tolist()
        assert packed.question.tolist() == log.question.tolist()
    assert len(read_inspect(tmp_path, percent=True).correct) == 24


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("C", True),
        ("I", False),
        ("N", False),
        (1, True),
        (0.0, False),
        (True, True),
        ("yes", True),
        ("no", False),
    ],
)
def test_values_of_scorers(tmp_path, value, right):
    log = inspect_log(1)
    log["samples"][0]["scores"]["judge"]["value"] = value
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    assert read_inspect(path, percent=True).correct.tolist() == [right]


def test_scorers_and_their_values_are_named_where_there_are_several(tmp_path):
    log = inspect_log(2)
    for sample in log["samples"]:
        sample["scores"]["exact"] = {"value": {"right": 1, "sure": 0.25}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with pytest.raises(calibrant.InputError, match=r"metric must name one of the scorers .*'judge', 'exact'"):
        read_inspect(path)
    with pytest.raises(calibrant.InputError, match="one of the values of 'exact', as in 'exact/right'"):
        read_inspect(path, metric="exact")
    with pytest.raises(calibrant.InputError, match="metric must be"):
        read_inspect(path, metric="other")
    found = read_inspect(path, metric="exact/right", confidence="sure")
    assert (found.correct.tolist(), found.confidence.tolist()) == ([True, True], [0.25, 0.25])
    assert read_inspect(path, metric="judge", percent=True).correct.tolist() == [True, False]
    found = read_inspect(path, metric="judge", confidence=lambda sample: sample["metadata"]["level"] / 2)
    assert found.confidence.tolist() == [0.0, 0.5]


def test_samples_of_inspect_without_a_score(tmp_path):
    log = inspect_log(4)
    del log["samples"][1]["scores"]
    log["samples"][2]["scores"]["judge"]["metadata"] = None
    log["samples"][3]["scores"]["judge"]["value"] = float("nan")
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with pytest.raises(calibrant.InputError, match=r"log\.json, sample 'q0' has no score"):
        read_inspect(path, percent=True)
    with pytest.warns(calibrant.InputWarning, match="3 samples of 4 left out: "):
        found = read_inspect(path, percent=True, missing="drop")
    assert found.correct.tolist() == [True]


def test_archives_that_cannot_be_read(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("other.json", "{}")
    with pytest.raises(ValueError, match=r"log\.eval: holds none of header\.json"):
        read_inspect(path)
    archive(path, inspect_log(2))
    content = path.read_bytes()
    # The number of a compression that this Python does not know, in the entries and in the directory.
    path.write_bytes(
        content.replace(b"PK\x03\x04\x14\x00\x00\x00\x08\x00", b"PK\x03\x04\x14\x00\x00\x00\x09\x00").replace(
            b"\x14\x00\x00\x00\x08\x00", b"\x14\x00\x00\x00\x09\x00"
        )
    )
    with pytest.raises(
        ValueError, match=r"log\.eval: is compressed by method 9, which cannot be read; inspect log convert"
    ):
        read_inspect(path)
    path = tmp_path / "log.json"
    path.write_text('{"eval": {"task": "exam"}, "samples": [{}]}')
    with pytest.raises(calibrant.InputError, match=r"log\.json: model must be a field of the sample"):
        read_inspect(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two models and two tasks of 120 questions, of which hard ones are hard for both."""
    folder, rng = tmp_path_factory.mktemp("logs"), np.random.default_rng(0)
    for task in ("sums", "words"):
        hard = rng.normal(0, 1, 120)
        for model, skill in (("large", 2.0), ("small", 1.0)):
            target = rng.integers(0, 4, 120)
            logits = rng.normal(0, 1.5, (120, 4))
            logits[np.arange(120), target] += skill - hard
            samples = [
                choice_sample(k, (each - 9).round(4).tolist(), int(target[k]))
                for k, each in enumerate(logits)
            ]
            written(folder, samples, task, model)
    return folder


def run(*arguments):
    return CliRunner().invoke(cli.main, [str(each) for each in arguments])


def test_commands_read_logs(logs, tmp_path):
    log = read(logs)
    pairs = log.correct, log.confidence
    wanted = calibrant.estimate(*pairs, notion="correctness", cluster=log.question, rng=0)
    result = run("ece", logs, "--from", "lm-eval", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["value"], found["low"], found["clusters"]) == pytest.approx((wanted.value, wanted.low, 240))
    result = run("estimate", logs, "--from", "lm-eval", "--by", "model,benchmark", "--latex")
    assert "large & sums & 120 &" in result.stdout
    result = run("curve", logs, "--from", "lm-eval", "--at", "0.6")
    band = calibrant.reliability_curve(*pairs, notion="correctness", cluster=log.question).at(0.6)
    assert f"{band.low:.3f} to {band.high:.3f}" in result.stdout
    result = run("compare", logs / "large", logs / "small", "--from", "lm-eval", "--json")
    assert json.loads(result.stdout)["pairing"] == "paired by cluster"
    result = run("check", logs / "large", "--from", "lm-eval", "--max-ece", "0.5")
    assert result.exit_code == 0
    result = run("calibrate", "fit", logs, "--from", "lm-eval", "-o", tmp_path / "map.json")
    assert "auto map of the confidence" in result.output
    maps = calibrant.Calibrator().load(tmp_path / "map.json").predict_proba([0.6])
    fitted = calibrant.Calibrator().fit(log.confidence, log.correct, cluster=log.question)
    assert maps == pytest.approx(fitted.predict_proba([0.6]))


def test_commands_measure_matrices_of_choices(logs):
    log = read(logs / "large")
    options = {"notion": "classwise", "cluster": log.question, "rng": 0}
    found = json.loads(
        run("ece", logs / "large", "--from", "lm-eval", "--notion", "classwise", "--json").stdout
    )
    assert found["value"] == pytest.approx(calibrant.estimate(log.y_true, log.y_prob, **options).value)
    result = run("ece", logs / "large", "--from", "lm-eval", "--notion", "canonical")
    assert result.exit_code == 0, result.output


def test_a_report_of_logs(logs, tmp_path):
    out = tmp_path / "report.html"
    result = run("report", logs, "--from", "lm-eval", "--groups", "benchmark", "-o", out, "--n-resamples", 99)
    assert result.exit_code == 0, result.output
    assert "calibrant calibrate fit" in (page := out.read_text())
    assert "--from lm-eval" in page


def test_commands_read_logs_of_inspect(tmp_path):
    path = archive(tmp_path / "log.eval", inspect_log(40))
    result = run("ece", path, "--from", "inspect:judge", "--percent", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["clusters"] == 20
    result = run("ece", path, "--from", "inspect")
    assert "or give --percent" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("ece LOGS --from helm", "helm is none of lm-eval, inspect"),
        ("ece LOGS --from lm-eval --label y", "leave out --label"),
        ("ece LOGS --from lm-eval:f1", "one of acc, acc_norm, acc_bytes"),
        ("sketch make LOGS --from lm-eval -o s.sketch", "read as rows"),
        ("compare LOGS --from lm-eval --model a=p --model b=q", "give a log for each model"),
    ],
)
def test_what_does_not_go_with_logs(logs, arguments, message):
    result = run(*arguments.replace("LOGS", str(logs / "large")).split())
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
