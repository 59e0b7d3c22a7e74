"""What the commands measure: the rows of a file, or the sums of files that are too large for that.

All that the commands ask of `calibrant.data` is asked here.
"""

from __future__ import annotations

import glob
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from calibrant.cli.options import read_class_names
from calibrant.cli.output import Refused, note
from calibrant.cli.paths import files_of
from calibrant.cli.progress import Bar

if TYPE_CHECKING:
    from calibrant import Calibrator, Sketch
    from calibrant.data import ColumnRequest, Data
    from calibrant.inputs import Words
    from calibrant.tasks.notions import Notion

#: What is asked about acting on the scores: by the costs, no notion is needed.
DECISIONS = ("regret", "regret_curve", "net_benefit", "best_threshold")
#: Options that say which columns a file has, and how they are written.
COLUMNS = (
    *("label", "scores", "pos_label", "sample_weight", "counts"),
    *("groups", "by", "cluster", "format", "percent", "from_logits", "drop_missing", "log"),
)
#: Functions whose results name classes.
NAMED = (
    "assess",
    "audit",
    "best_threshold",
    "compare_calibrators",
    "estimate",
    "estimate_by",
    "net_benefit",
    "regret",
    "regret_curve",
    "reliability_curve",
)
#: The notion of a pair of columns: correctness and confidence.
OF_PAIRS = "correctness"
#: Columns and options of pairs.
PAIR = ("correct", "confidence")
#: Options that logs determine, so that they cannot be given.
KNOWN_OF_LOGS = ("label", "scores", *PAIR, "format")


def words() -> Words:
    """Return how the command line names the arguments of the library: by the options that were given."""
    from calibrant.inputs import Words

    context = click.get_current_context(silent=True)
    given = {} if context is None else context.params
    pairs = {"label": "--correct", "scores": "--confidence", "y_true": "--correct", "y_prob": "--confidence"}

    options = () if context is None else context.command.params
    return Words(
        names={option.name or "": option.opts[0] for option in options if isinstance(option, click.Option)}
        | {"y_true": "labels", "y_prob": "scores", "rng": "--seed", "cv": "--folds"}
        | (pairs if given.get("correct") is not None else {})
        | ({} if given.get("models") else {"models": "models"}),
        advice={
            "missing": "give --drop-missing to leave out rows without a label",
            "labels": "name the columns after their classes, as in p_cat",
            "pos_label": "give --pos-label",
            "notion": "use --notion classwise or confidence",
            "names": "name each once",
            "ece": "calibrant ece prints it",
            "percent": "or give --percent",
            "from_logits": "or give --from-logits" if "from_logits" in given else "",
            "exp": "apply exp first",
            "exp_or_logits": "apply exp first; to log-odds apply sigmoid"
            + ", or give --from-logits" * ("from_logits" in given),
            "scores": "these may be predicted labels: name the scores by --scores",
            "sketch": "calibrant ece, curve, compare, check and report take the file itself",
            "sample_weight": "for importance weights give --sample-weight",
            "whole": "calibrant ece, compare, check and report measure canonical calibration",
        },
        first_row=1,
    )


@contextmanager
def refusing(about: str = "", columns: Sequence[str] = ()) -> Iterator[None]:
    """Tell bad input in one line, in the words of the command line; `columns` are those of the scores."""
    from calibrant.inputs import InputError

    try:
        yield
    except BrokenPipeError:
        raise
    except MemoryError:
        raise Refused("there is not enough memory for this") from None
    except InputError as error:
        error.about = error.about or about
        raise Refused(error.message(replace(words(), columns=columns))) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise Refused(f"{about}: {error}" if about else error) from None


@contextmanager
def noting() -> Iterator[None]:
    """Tell what the library warns of in one line each, and no longer."""
    from calibrant.inputs import InputWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, InputWarning):
            note(f"caution: {warning.message}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def settled(given: dict[str, Any], *, single_score: bool = False) -> dict[str, Any]:
    """Return the options of a command with a pair of columns as label, scores and notion.

    A notion that the library does not know is refused before anything is read, and so is the
    canonical notion if the command measures `single_score` at a time or the other options do.
    """
    from calibrant.tasks.notions import (
        check_canonical_options,
        get_notion,
        refuse_canonical,
        refuse_matrices,
    )

    if given.get("log") is not None:
        given = _settled_log(given)
    correct, confidence = given.get("correct"), given.get("confidence")
    if (correct is None) != (confidence is None):
        raise click.UsageError("--correct and --confidence go together")
    if correct is not None:
        if given["label"] is not None or given["scores"]:
            raise click.UsageError("--correct and --confidence take the place of --label and --scores")
        given = given | {"label": correct, "scores": (confidence,), "notion": given["notion"] or OF_PAIRS}
    with refusing():
        if given["notion"] is not None:
            notion = get_notion(given["notion"])
            refuse_matrices(notion)
            if correct is not None and not notion.correctness_pairs:
                raise click.UsageError(f"--correct and --confidence are no columns of --notion {notion}")
        if single_score:
            refuse_canonical(given["notion"])
        check_canonical_options(
            given["notion"], clustered=given.get("cluster") is not None, norm=given.get("norm")
        )
    return given


def _settled_log(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command on logs with the columns that these become."""
    from calibrant.tasks.notions import get_notion

    if caught := [words().called(option) for option in KNOWN_OF_LOGS if given.get(option)]:
        raise click.UsageError(f"--from tells which columns there are; leave out {', '.join(caught)}")
    with refusing():
        notion = None if given.get("notion") is None else get_notion(given["notion"])
    # Answers to one question belong together; several scores at a time take no clusters.
    cluster = given.get("cluster") or (None if notion is not None and notion.canonical else "question")
    if notion is None or notion.correctness_pairs:
        return given | dict(zip(PAIR, PAIR, strict=True)) | {"cluster": cluster}
    return given | {"label": "target", "scores": ("p_*",), "cluster": cluster}


def _read_log(file: str, given: dict[str, Any], default: ColumnRequest) -> dict[str, Data]:
    """Return the answers in logs, by way of an archive in memory."""
    from calibrant import data, inputs

    kind, _, metric = given["log"].partition(":")
    options: Any = {"percent": given["percent"], "missing": default.missing}
    columns = data.read_answers(files_of(file), kind, metric=metric or None, **options)
    if default.label not in columns:
        rule = "hold equally many choices of each question, of which one is right, for this notion"
        raise inputs.InputError("paths", rule, got="answers alone", hint=f"leave out --notion for {OF_PAIRS}")
    np.savez(archive := io.BytesIO(), **columns)  # type: ignore[arg-type]
    request = replace(default, percent=False, missing="raise")
    rows = data.load_models("-", request, format="npz", stdin=io.BytesIO(archive.getvalue()))
    return {key: replace(each, source=name_of(file)) for key, each in rows.items()}


def read(
    file: str,
    given: dict[str, Any],
    *,
    labelled: bool = True,
    models: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Data]:
    """Return the data of a file, by model; without models there is one, called ""."""
    default = _request(given, labelled=labelled)
    if given.get("log") is not None:
        with refusing(), noting():
            return _read_log(file, given, default)
    with refusing(), Bar("reading", given["quiet"]) as bar:
        from calibrant.data import load_models

        return load_models(file, default, models, format=given["format"], progress=bar)


def _request(given: dict[str, Any], *, labelled: bool = True) -> ColumnRequest:
    from calibrant.data import ColumnRequest

    options = ("label", "scores", "sample_weight", "counts", "groups", "cluster", "notion")
    roles: dict[str, Any] = {role: given.get(role) for role in options}
    roles |= {"positive": given["pos_label"], "percent": given["percent"], "by": given.get("by", ())}
    roles["from_logits"] = bool(given.get("from_logits"))
    missing = "drop" if given.get("drop_missing") else "raise"
    return ColumnRequest(**roles, labelled=labelled, missing=missing)


def arguments(data: Data) -> dict[str, Any]:
    """Return what the functions of the library take beside labels and scores."""
    weights = {"sample_weight": data.sample_weight, "counts": data.counts}
    return weights | {"labels": data.labels, "pos_label": data.pos_label}


def origin(file: str, rows: int, dropped: int = 0) -> dict[str, Any]:
    """Return what JSON says of where a result comes from; rows that were dropped are not among the rows."""
    return {"source": name_of(file), "rows": rows, "dropped": dropped}


def name_of(file: str) -> str:
    """Return what JSON and reports call a file: its name, without folders, as messages show it."""
    from calibrant.data.files import tidy

    return file if file == "-" else tidy(_name(file))


def _name(file: str) -> str:
    return Path(file).name or Path(file).resolve().name


def stem_of(file: str) -> str:
    """Return what a report of a path is called."""
    if file == "-":
        return "stdin"
    if len(files_of(file)) > 1:
        return "files"
    name = _name(file)
    name = name if Path(file).is_dir() else Path(name.removesuffix(".gz")).stem
    # A pattern is no good name of a file.
    return re.sub(r"[*?\[\]]", "", name).strip("-_. ") or "files"


@dataclass(frozen=True, eq=False)
class CommandInput:
    """What a command asks about: rows in memory, or sums over rows."""

    rows: tuple[Any, ...]  # first arguments of the functions of the library: labels and scores, or a sketch
    notion: Notion  # what is compared
    vector: bool  # whether there is one score a row
    about: dict[str, Any]  # what JSON says of where a result comes from
    name: str = ""  # what is read, as messages call it
    columns: Sequence[str] = ()  # names of the columns of scores, where they are known
    cautions: list[str] = field(default_factory=list)  # what is to be known of the data, until it was told
    groups: Any = None  # groups of the rows, or their sketches
    by: Mapping[str, Any] = field(default_factory=dict)  # columns of groups of the rows
    # What the functions of the library take beside labels and scores; nothing for a sketch.
    options: Mapping[str, Any] = field(default_factory=dict)
    class_names: Sequence[str] | None = None  # names of the classes in results

    def refusing(self) -> AbstractContextManager[None]:
        """Tell what the library says of rows with their file, their number there and their columns."""
        return refusing(self.name, self.columns)

    def call(self, what: str, **options: Any) -> Any:
        """Call a function of the library; cautions are told once, unless the result itself has them."""
        import calibrant

        options |= self.options
        if what in NAMED:
            options["class_names"] = self.class_names
        if what == "assess":
            options["groups"] = self.groups
        if what in ("estimate_by", "audit"):
            options["by" if what == "estimate_by" else "segments"] = self.by
        if what not in DECISIONS and self.options:
            options["notion"] = self.notion.name
        # `compare_calibrators` takes scores first, as `Calibrator.fit` does.
        rows = self.rows[::-1] if what == "compare_calibrators" else self.rows
        with noting():
            result = getattr(calibrant, what)(*rows, **options)
        if not hasattr(result, "cautions"):
            tell_cautions(self.cautions)
        self.cautions.clear()
        return result

    def calibrator(self, method: str, notion: str | None) -> Calibrator:
        """Fit a map to the scores as they are, or to what a notion looks at.

        It keeps the columns of scores that it was fitted to, for `calibrate apply`.
        """
        from calibrant import Calibrator, inputs
        from calibrant.tasks import CalibrationTask, get_notion

        columns, positive = self.columns, None
        if not self.options:
            (sketch,) = self.rows
            sketch = sketch if self.class_names is None else sketch._with_class_names(self.class_names)
            calibrator, positive = sketch.calibrator(method), sketch.positive
        else:
            labels, scores = self.rows
            known = {name: self.options[name] for name in ("labels", "pos_label")}
            weights = {name: self.options[name] for name in ("sample_weight", "counts", "missing")}
            cluster = self.options.get("cluster")
            calibrator = Calibrator(method, class_names=self.class_names, **known)
            if notion is None:
                calibrator.fit(scores, labels, cluster=cluster, **weights)
            else:
                by_name = not get_notion(notion).correctness_pairs
                rows = inputs.predictions(labels, scores, by_name=by_name, **known, **weights)
                rows = rows if cluster is None else inputs.in_clusters(rows, cluster)
                calibrator._fit_task(CalibrationTask.of(rows, get_notion(notion)))
                positive = rows.positive
        tell_cautions(self.cautions)
        self.cautions.clear()
        if calibrator.is_vector and len(columns) > 1:
            is_binary = get_notion(calibrator.notion_).is_binary
            columns = () if positive is None or not is_binary else columns[positive : positive + 1]
        calibrator.columns_ = tuple(columns) or None
        return calibrator


def read_rows(file: str, given: dict[str, Any]) -> CommandInput:
    """Return the rows of a file."""
    from calibrant.tasks.notions import get_notion

    data = read(file, given)[""]
    more: dict[str, Any] = {} if data.cluster is None else {"cluster": data.cluster}
    if data.left_out:
        tell_cautions([data.left_out])
    return CommandInput(
        (data.y_true, data.y_prob),
        get_notion(data.notion),
        data.y_prob.ndim == 1,
        origin(file, data.rows, data.dropped) | {"read": "rows"},
        data.source,
        data.columns["scores"],
        list(data.cautions),
        data.groups,
        data.by,
        arguments(data) | more | {"missing": "drop" if data.dropped else "raise"},
        read_class_names(given.get("class_names")),
    )


def tell_cautions(cautions: Sequence[str]) -> None:
    """Print what is to be known of the data to standard error."""
    for caution in cautions:
        note(f"caution: {caution}")


def has_matrix(file: str, given: dict[str, Any]) -> bool:
    """Return whether a path has several columns of scores; of standard input nobody knows yet."""
    from calibrant.data import n_scores

    if file == "-" or sketches_of(file):
        return False
    if given.get("log") is not None:
        return bool(given["label"] == "target")
    with refusing():
        return n_scores(file, _request(given), given["format"]) > 1


def read_sums(file: str, given: dict[str, Any]) -> CommandInput:
    """Return the sums of files of any size."""
    if given.get("log") is not None:
        raise Refused(
            "logs are read as rows, not as sums; leave out --from, or give commands without sketches"
        )
    with refusing(), Bar("reading", given["quiet"]) as bar:
        from calibrant.data import stream

        paths = files_of(file)
        streamed = stream(paths, _request(given), format=given["format"], progress=bar.reading)
    about = origin(file, streamed.rows, streamed.dropped) | {"read": "sums"}
    source = _of_sums(streamed.sketches, about, streamed.source, streamed.columns["scores"])
    _check_pos_label(source, given)
    return source


def sketches_of(file: str, *, only: bool = False) -> list[str]:
    """Return the sketches that an argument or a pattern names.

    There are none where it names other files, unless it may name sketches `only`.
    """
    from calibrant.data.files import expanded, is_sketch

    files = files_of(file)
    if len(files) == 1 and not only and not is_sketch(file) and not glob.has_magic(file):
        return []
    with refusing():
        matches = expanded(files)
    others = [] if only else [match for match in matches if not is_sketch(match)]
    if len(files) > 1 and others:
        hint = "give a folder, or a pattern in quotes such as 'may/*.parquet'"
        raise Refused(f"{others[0]}: is no sketch, and only sketches are given one by one; {hint}")
    if others and len(others) < len(matches):
        raise Refused(f"{others[0]}: is no sketch")
    return [] if others else matches


def load_sketches(files: Sequence[str]) -> Sketch:
    """Return the sum of sketches in files; those of different notions or classes are refused."""
    from calibrant import Sketch

    total = None
    for file in files:
        with refusing():
            sketch = Sketch.load(file)
        try:
            total = sketch if total is None else total + sketch
        except ValueError as error:
            raise Refused(f"{name_of(files[0])} and {name_of(file)}: {error}") from None
    assert total is not None
    return total


def _of_sketches(file: str, files: Sequence[str], given: dict[str, Any]) -> CommandInput:
    """Return the sums of files that hold sketches, which have settled what is asked."""
    from calibrant.tasks.notions import get_notion

    if caught := [words().called(option) for option in COLUMNS if given.get(option)]:
        raise Refused(f"{file}: is a sketch, which has no columns; leave out {', '.join(caught)}")
    sketch = load_sketches(files)
    if not sketch.totals.rows:
        raise Refused(f"{file}: is a sketch of no rows")
    if given["notion"] is not None and get_notion(given["notion"]) != get_notion(sketch.notion):
        raise Refused(f"{file}: is a sketch of --notion {sketch.notion}, and has no other notion")
    about = origin(file, sketch.totals.rows, sketch.totals.dropped) | {"read": "sums"}
    return _of_sums({None: sketch}, about, name_of(file))


def sums_of(files: Sequence[str], given: dict[str, Any]) -> list[CommandInput]:
    """Return the sums of files, some of which hold sketches; rows are summed by the notion of a sketch."""
    sketches = {file: sketches_of(file) for file in files}
    columns = {} if all(sketches.values()) else dict.fromkeys(COLUMNS)  # those are of the files of rows
    sources = {file: _of_sketches(file, each, given | columns) for file, each in sketches.items() if each}
    rows = given | {"notion": next(iter(sources.values())).notion.name}
    return [sources[file] if sketches[file] else read_sums(file, rows) for file in files]


def _of_sums(
    sketches: Mapping[Any, Sketch], about: dict[str, Any], name: str = "", columns: Sequence[str] = ()
) -> CommandInput:
    from calibrant.tasks.notions import get_notion

    first, *others = sketches.values()
    sketch = sum(others, start=first)
    if sketch.totals.dropped:
        left_out, *cautions = sketch.totals.cautions
        tell_cautions([left_out])
    else:
        cautions = list(sketch.totals.cautions)
    groups = None if None in sketches else {key: each for key, each in sketches.items() if each.totals.rows}
    return CommandInput(
        (sketch,), get_notion(sketch.notion), sketch.is_vector, about, name, columns, cautions, groups
    )


def read_source(
    file: str,
    given: dict[str, Any],
    ask: Callable[[CommandInput], object] = lambda source: None,
    *,
    as_rows: bool = False,
) -> CommandInput:
    """Return what a path holds: rows, or sums if there are too many rows.

    Rows in clusters, those that are compared as a whole, and those that are wanted as rows, stay rows,
    however many they are.

    `ask` is asked of a handful of rows before a long reading: what is wrong with an option is said at once.
    """
    from calibrant.tasks.notions import get_notion

    given = settled(given)
    names = read_class_names(given.get("class_names"))
    if sketches := sketches_of(file):
        return replace(_of_sketches(file, sketches, given), class_names=names)
    notion = given["notion"]
    as_rows = (
        as_rows
        or bool(given.get("by"))
        or given.get("log") is not None
        or given.get("cluster") is not None
        or (notion is not None and get_notion(notion).needs_rows)
    )
    large, size = False, ""
    if file != "-" and not as_rows:
        from calibrant.data import is_large

        large, size = is_large(file, given["format"])
    if large:
        with refusing():
            ask(_few_rows(notion))
        if not given["quiet"]:
            note(f"{size}: read as sums, not rows; memory does not grow with them")
        source = replace(read_sums(file, given), class_names=names)
    else:
        source = read_rows(file, given)
        _check_pos_label(source, given)
    return source


def _check_pos_label(source: CommandInput, given: dict[str, Any]) -> None:
    if given["pos_label"] is not None and not (source.vector or source.notion.is_binary):
        raise Refused("--pos-label selects one class of several: add --notion binary")


def _few_rows(notion: str | None) -> CommandInput:
    """Return sums of a few rows: of one score, or of as many as the notion looks at and one more."""
    from calibrant import Sketch
    from calibrant.tasks.notions import default_notion

    default = default_notion(notion, vector=True)
    scores: Any = [0.2, 0.8, 0.6, 0.6]
    if default.top > 1:
        scores = [[1 / (default.top + 1)] * (default.top + 1)] * 4
    return _of_sums({None: Sketch(default.name).update([0, 1, 0, 1], scores)}, {})
