"""Logarithms of probabilities in place of scores: the message says so, and only then mentions logits."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Calibrator, InputError, Monitor, Sketch
from calibrant.cli import main

LOG = "these look like log-probabilities; apply np.exp first"
VECTOR = f"{LOG}; to log-odds apply sigmoid, or pass from_logits=True"
Y = [0, 1, 1]


def log_softmax(n=50, dtype=float, seed=0):
    logits = np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def refused(function):
    with pytest.raises(InputError) as error:
        function()
    return str(error.value)


@pytest.mark.parametrize("scores", [[-0.1, -2.3, -0.01], [0.0, -2.3, -0.01], [-0.1, -1e4, -0.01]])
def test_scores_that_are_all_at_most_0_are_logarithms(scores):
    for notion in ("correctness", None):
        assert refused(lambda n=notion: calibrant.ece(Y, scores, notion=n)).endswith(VECTOR)
    assert refused(lambda: calibrant.assess(Y, scores)).endswith(VECTOR)
    assert refused(lambda: Sketch().update(Y, scores)).endswith(VECTOR)
    assert refused(lambda: Calibrator().fit(scores, Y)).endswith(VECTOR)
    assert LOG in refused(lambda: Monitor().update(Y, scores))
    assert refused(lambda: calibrant.recommend(scores)).endswith(LOG)  # which takes no logits


def test_a_frame_without_a_score_above_0_holds_logarithms():
    frame = pd.DataFrame({"y": Y, "p": [-0.1, -2.3, -0.01]})
    assert refused(lambda: Sketch.from_frame(frame, label="y", scores="p")).endswith(LOG)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_output_of_log_softmax_is_recognised(dtype):
    scores, y = log_softmax(dtype=dtype), np.arange(50) % 3
    frame = pd.DataFrame(scores, columns=["p_0", "p_1", "p_2"])
    for function in (
        lambda: calibrant.ece(y, scores),
        lambda: calibrant.ece(y, frame),
        lambda: Sketch("classwise").update(y, scores),
        lambda: Sketch.from_frame(frame.astype(float).assign(y=y), label="y", scores="p_*"),
    ):
        assert refused(function).endswith(LOG)


def test_logits_keep_their_advice():
    y = np.arange(50) % 3
    logits = np.random.default_rng(0).normal(size=(50, 3))
    below = logits - logits.max(axis=1, keepdims=True)  # the largest is 0
    for scores in (logits, below):
        assert refused(lambda s=scores: calibrant.ece(y, s)).endswith(
            "these look like logits: apply softmax first; or pass from_logits=True"
        )
    assert refused(lambda: calibrant.ece(Y, [-2.0, 0.5, 3.0])).endswith(
        "these look like logits: apply sigmoid first; or pass from_logits=True"
    )
    frame = pd.DataFrame({"y": Y, "p": [-2.0, 0.5, -3.0]})
    said = refused(lambda: Sketch.from_frame(frame, label="y", scores="p"))
    assert said.endswith("these look like logits: apply sigmoid first")


def test_columns_of_several_labels_are_told_like_vectors():
    y = [[0, 1], [1, 0], [1, 1]]
    log = [[-0.5, -0.2], [-0.1, -3.0], [-2.0, -1.0]]
    assert refused(lambda: calibrant.ece(y, log, notion="multilabel")).endswith(VECTOR)
    said = refused(lambda: calibrant.ece(y, np.add(log, 1.0), notion="multilabel"))
    assert said.endswith("these look like logits: apply sigmoid first; or pass from_logits=True")


def test_values_that_hardly_miss_0_and_values_of_other_arguments_are_no_logarithms():
    assert refused(lambda: calibrant.ece(Y, [-1e-9, 0.0, 0.0])).endswith("got -1e-09 at row 0")
    assert refused(lambda: calibrant.lce(Y, [0.1, 0.5, 0.9], at=[-1.0])).endswith("got -1.0 at position 0")


def test_the_command_line_says_it_in_its_words(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("y,score\n0,-0.1\n1,-2.3\n1,-0.01\n")
    start = "these look like log-probabilities; apply exp first"
    for command, said in (
        (["ece", str(file)], f"{start}; to log-odds apply sigmoid, or give --from-logits"),
        (["calibrate", "fit", str(file), "-o", str(tmp_path / "map.json")], start),
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 2
        assert said in result.output
        assert "np.exp" not in result.output
    with pytest.raises(InputError, match=LOG):
        Sketch.from_files(file, label="y", scores="score")
