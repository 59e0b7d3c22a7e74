"""Logs of language model evaluations, of lm-evaluation-harness and of Inspect, as one row for each answer."""

from __future__ import annotations

import gzip
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant.data.files import check_bytes, expanded, naming, tidy
from calibrant.inputs import Array, InputError, InputWarning, check_choice, show, within
from calibrant.inputs.missing import MISSING
from calibrant.inputs.wording import counted, few_of

Sample: TypeAlias = Mapping[str, Any]
#: Whether an answer is right, where its confidence may be, and of multiple choice target and probabilities.
Answer: TypeAlias = tuple[bool | None, tuple[Any, ...], int | None, Array | None]
# Metrics of multiple choice, by what the harness divides the log-likelihood of a choice by.
LENGTHS: dict[str, Callable[[str], int]] = {
    "acc": lambda choice: 1,
    "acc_norm": len,
    "acc_bytes": lambda choice: len(choice.encode()),
}
# Values of metrics and scorers; no answer (N) is wrong.
RIGHT, WRONG = ("c", "1", "1.0", "true", "yes"), ("i", "n", "0", "0.0", "false", "no")
# What an archive of Inspect says of its run: at the end, before it, and in early versions.
HEADERS = ("header.json", "_journal/start.json", "start.json")
_SAMPLES = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(?:\.gz)?")


def read_answers(
    paths: Any,
    kind: Literal["lm-eval", "inspect"],
    *,
    metric: str | None = None,
    filter: str | None = None,
    confidence: str | Callable[[Sample], Any] = "confidence",
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> dict[str, Array]:
    """Read the correctness and the confidence of answers from logs of language model evaluations.

    Of multiple choice in lm-evaluation-harness, the probabilities of the choices are the softmax of their
    log-likelihoods, and the largest one is the confidence. Other answers need a confidence in the log.

    Parameters
    ----------
    paths : path, pattern or sequence of these
        Files or folders. "lm-eval": `samples_<task>_<date>.jsonl`, as `--log_samples` writes it; the model is
        that of `results_<date>.json` beside it, or else the name of the folder. "inspect": logs as `.eval` or
        `.json`; epochs are further answers to a question.
    kind : {"lm-eval", "inspect"}
        What wrote the logs.
    metric : str, optional
        Metric or scorer that says whether an answer is right (1, true or C; 0, false, I or N); by default the
        only one, and "acc" for multiple choice. "acc_norm" and "acc_bytes" divide log-likelihoods by the
        characters or bytes of the choices, as the harness does. One of several values is "scorer/value".
    filter : str, optional
        Filter of lm-evaluation-harness, if a file has several.
    confidence : str or callable
        Where a confidence is, if not of multiple choice: a field of the sample or its `doc` ("lm-eval"), a
        name in the metadata of the score or the sample ("inspect"), or a function of the sample.
    percent : bool
        Whether confidences are percentages, from 0 to 100.
    missing : {"raise", "drop"}
        Whether samples without a score or confidence are refused or left out.

    Returns
    -------
    dict of arrays
        model, benchmark, question (its name is one for all models), correct and confidence. If all questions
        have equally many choices and one that is right, also target, its number, and p_0, p_1, ..., the
        probabilities. Every data frame library makes a frame of it.

    See Also
    --------
    estimate_by : Table of models and benchmarks.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> score = {"exact": {"value": "C", "metadata": {"confidence": 90}}}
    >>> log = {"eval": {"task": "sums", "model": "large"}, "samples": [{"id": 1, "scores": score}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.json")
    ...     _ = path.write_text(json.dumps(log))
    ...     answers = read_answers(path, "inspect", percent=True)
    >>> answers["question"], answers["correct"], answers["confidence"]
    (array(['sums/1'], dtype='<U6'), array([ True]), array([0.9]))
    """
    check_choice("missing", missing, MISSING)
    check_choice("kind", kind, tuple(_KINDS))
    patterns, samples, answer_of, key = _KINDS[kind]
    rows, choices, gone = [], [], []
    for path in _files(paths, patterns):
        filters = set()
        for place, model, task, sample in samples(path):
            with _within(place):
                filters.add(name := str(sample.get("filter")))
                if filter is None and len(filters) > 1:
                    got = show(*sorted(filters))
                    raise InputError("filter", "name one of the filters of the file", got=got)
                if filter not in (None, name):
                    continue
                right, places, label, choice = answer_of(sample, metric)
                sure = _confidence(sample, confidence, places, percent=percent)
                sure = sure if choice is None else float(choice.max())
                question = f"{task}/{_field(sample, key)}"
            if right is None or sure is None:
                gone.append(f"{place} has no {'score' if right is None else 'confidence'}")
            else:
                rows.append((model, task, question, right, sure))
                choices.append((label, choice))
            if gone and missing == "raise":
                rule = "hold a score and a confidence for each sample"
                raise InputError("paths", rule, got=gone[0], advice="missing")
    if not rows:
        raise InputError("paths", "hold at least one answer", got="none")
    if gone:
        text = f"{counted(len(gone), 'sample')} of {len(rows) + len(gone):,} left out: {few_of(gone)}"
        warnings.warn(text, InputWarning, stacklevel=2)
    names = ("model", "benchmark", "question", "correct", "confidence")
    columns = {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    widths = {0 if label is None or each is None else len(each) for label, each in choices}
    if len(widths) == 1 and widths != {0}:
        columns["target"] = np.array([label for label, _ in choices])
        columns |= {f"p_{k}": each for k, each in enumerate(np.array([each for _, each in choices]).T)}
    return columns


def _of_harness(sample: Sample, metric: str | None) -> Answer:
    """Return the answer of a sample of lm-evaluation-harness: a choice, or generated text."""
    responses = _field(sample, "filtered_resps")
    if not all(isinstance(each, list) and str(each[-1]) in ("True", "False") for each in responses):
        named = [metric] if metric else [name for name in sample.get("metrics", ()) if name in sample]
        if len(named) != 1:
            raise InputError("metric", "name the field that says what is right", got=show(*named))
        return _is_right(named[0], sample.get(named[0])), (sample, sample.get("doc")), None, None
    metric, arguments = metric or "acc", _field(sample, "arguments")
    questions = [list(_values(each)) for each in _values(arguments)]
    if metric not in LENGTHS or len(questions) != len(responses) or len(questions) < 2:
        got = f"{metric} of {len(questions)} arguments and {len(responses)} filtered_resps"
        raise InputError("metric", f"be one of {', '.join(LENGTHS)}, of at least two choices", got=got)
    # Half of the requests for mutual information have no question.
    kept = [k for k, each in enumerate(questions) if each[0] or "acc_mutual_info" not in sample]
    choices = [str(questions[k][1]).removeprefix(" ") for k in kept]
    logs = np.array([_number("filtered_resps", responses[k][0]) for k in kept])
    logs = logs / [max(LENGTHS[metric](choice), 1) for choice in choices]
    if np.isnan(logs).any() or np.isinf(logs.max()):
        raise InputError("filtered_resps", "hold log-likelihoods", got=show(*logs.tolist()))
    best, right, target = int(logs.argmax()), _is_right(metric, sample.get(metric)), str(sample.get("target"))
    label = int(target) if target.isdecimal() else None
    if label is None and choices.count(target.strip()) == 1:
        label = choices.index(target.strip())
    if label is not None and right not in (None, best == label):
        got = f"{sample[metric]!r} where choice {best} is the most likely one and choice {label} the target"
        raise InputError(metric, "agree with log-likelihoods and target", got=got)
    probability = np.exp(logs - logs.max())
    right = best == label if label is not None else right
    return right, (), label, probability / probability.sum()


def _of_inspect(sample: Sample, scorer: str | None) -> Answer:
    """Return the answer of a sample of Inspect, by a scorer or by the only one."""
    scores = sample.get("scores") or {}
    name, _, key = (scorer or "/").partition("/")
    if not scorer and len(scores) > 1:
        raise InputError("metric", "name one of the scorers of a sample", got=show(*scores))
    if scores:
        check_choice("metric", name := name or next(iter(scores)), tuple(scores))
    score = scores.get(name, {})
    value = score.get("value")
    places = (score.get("metadata"), value, sample.get("metadata"))
    if isinstance(value, dict):
        if key not in value:
            rule = f"name one of the values of {name!r}, as in {name + '/' + next(iter(value), 'value')!r}"
            raise InputError("metric", rule, got=show(*value))
        value = value[key]
    return _is_right("value", value), places, None, None


def _is_right(name: str, value: Any) -> bool | None:
    """Return whether a value means a right answer; None for a missing one."""
    if value is None or value != value:
        return None
    if (text := str(value).lower()) not in (*RIGHT, *WRONG):
        hint = "an answer that is half right has to be settled first"
        raise InputError(name, "be right or wrong (1 or 0, C or I)", value, hint=hint)
    return text in RIGHT


def _confidence(
    sample: Sample, confidence: str | Callable[[Sample], Any], places: tuple[Any, ...], *, percent: bool
) -> float | None:
    """Return a confidence in [0, 1], by a function of the sample or from the first place that has it."""
    name, most = confidence if isinstance(confidence, str) else "confidence", 100 if percent else 1
    value = next((place[name] for place in places if isinstance(place, dict) and name in place), None)
    value = confidence(sample) if places and callable(confidence) else value
    if value is None or value != value:
        return None
    if not 0 <= (number := _number(name, value)) <= most:
        raise InputError(name, f"lie in [0, {most}]", value, advice="" if percent else "percent")
    return number / most


def _number(name: str, value: Any) -> float:
    """Return a number, which may be a text; some write percentages with their sign."""
    try:
        return float(str(value).removesuffix("%"))
    except ValueError:
        raise InputError(name, "be a number", value) from None


def _files(paths: Any, patterns: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that paths mean; of a folder those with such names."""
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        if not os.path.isdir(path):
            yield from expanded(path)
        elif inside := {str(file) for pattern in patterns for file in Path(path).rglob(pattern)}:
            yield from sorted(inside)
        else:
            raise InputError("paths", f"hold files {' or '.join(patterns)}", os.fspath(path))


def _harness_samples(path: str) -> Iterator[tuple[str, str, str, Sample]]:
    """Yield place, model, task and content of the samples of a file of lm-evaluation-harness."""
    at = Path(path)
    name, model = _SAMPLES.fullmatch(at.name), at.resolve().parent.name
    with naming(path):
        if name and (results := at.with_name(f"results_{name[2]}.json")).is_file():
            model = str(_parsed(results.read_bytes(), tidy(results)).get("model_name") or model)
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = f"{tidy(path)}, line {number}"
                    yield place, model, name[1] if name else at.stem, _parsed(line, place)


def _inspect_samples(path: str) -> Iterator[tuple[str, str, str, Sample]]:
    """Yield place, model, task and content of the samples of a log of Inspect."""
    with naming(path), ExitStack() as stack:
        if zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            check_bytes(sum(info.file_size for info in archive.infolist()))
            if unread := {info.compress_type for info in archive.infolist()} - {0, 8}:
                hint = "inspect log convert --to json writes a file that is not"
                raise ValueError(f"is compressed by method {unread.pop()}, which cannot be read; {hint}")
            names = archive.namelist()
            if (header := next((name for name in HEADERS if name in names), None)) is None:
                raise ValueError(f"holds none of {', '.join(HEADERS)}, so it is no log of Inspect")
            log = _parsed(archive.read(header), f"{tidy(path)}, {header}")
            inside = (name for name in sorted(names) if name.startswith("samples/"))
            samples: Any = (_parsed(archive.read(name), f"{tidy(path)}, {tidy(name)}") for name in inside)
        else:
            log = _parsed(Path(path).read_bytes(), tidy(path))
            samples = log.get("samples") or ()
        with _within(tidy(path)):
            model, task = (str(_field(_field(log, "eval"), name)) for name in ("model", "task"))
        for sample in samples:
            yield f"{tidy(path)}, sample {sample.get('id')!r}", model, task, sample


def _parsed(text: bytes, place: str) -> Sample:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: is no JSON: {tidy(error)}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{place}: must be a JSON object, got {tidy(repr(value), 80)}")
    return value


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Say where a field is that breaks a rule, or is not of the type that it has in these logs."""
    with within(place):
        try:
            yield
        except (AttributeError, LookupError) as error:
            raise ValueError(f"has a field of another type than in these logs: {tidy(error)}") from None


def _values(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _field(sample: Sample, name: str) -> Any:
    if name not in sample:
        raise InputError(name, "be a field of the sample", got=f"the fields {show(*sample)}")
    return sample[name]


# Of each kind: files in a folder, how their samples and answers are read, and the number of a question.
_KINDS: dict[str, tuple[tuple[str, ...], Any, Callable[[Sample, str | None], Answer], str]] = {
    "lm-eval": (("samples_*.jsonl", "samples_*.jsonl.gz"), _harness_samples, _of_harness, "doc_id"),
    "inspect": (("*.eval", "*.json"), _inspect_samples, _of_inspect, "id"),
}
