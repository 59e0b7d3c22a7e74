"""What the commands that read a file share: options, reading, progress and words."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from calibrant.cli.support import Refused, duration, line
from calibrant.inputs import InputError, Words
from calibrant.questions.names import NOTIONS

if TYPE_CHECKING:
    from calibrant.data import Asked, Data

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz")
EXITS = "Exit codes: 0 done, 2 bad input or usage."
# Seconds before work shows how far it is, and between two looks; characters of a line of output.
PATIENCE, WIDEST = 1.0, 2000

_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "file": click.argument("file", metavar="FILE"),
    "path": click.argument("file", metavar="PATH"),
    "checkpoint": click.option(
        "--checkpoint",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Keep what has been read here, so that the same command goes on after a stop.",
    ),
    "label": click.option(
        "--label", metavar="COLUMN", help="Column of the labels.  [default: label, y, y_true, target, ...]"
    ),
    "scores": click.option(
        "--scores",
        multiple=True,
        metavar="SPEC",
        help="Columns of the scores: a name, names separated by commas, or a pattern such as 'p_*', where "
        "the star stands for the class. May be repeated.  [default: p_*, prob_*, score, ...]",
    ),
    "positive": click.option(
        "--positive",
        metavar="LABEL",
        help="The class that a single column of scores, or --notion class, is of.",
    ),
    "weight": click.option(
        "--weight", metavar="COLUMN", help="Column of weights; whole numbers are counts of rows."
    ),
    "group": click.option("--group", metavar="COLUMN", help="Column of groups to look at one by one."),
    "format": click.option(
        "--format", type=click.Choice(FORMATS), help="Format of FILE.  [default: by suffix or first bytes]"
    ),
    "notion": click.option(
        "--notion",
        type=click.Choice(NOTIONS),
        help="What is compared: the score of one class with its frequency, that of every class, or the "
        "largest score with the accuracy.  [default: class for one column, otherwise confidence]",
    ),
    "estimator": click.option(
        "--estimator",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Estimator, such as uniform:15, adaptive or density.",
    ),
    "level": click.option(
        "--level", type=float, default=0.95, show_default=True, help="Level of the interval."
    ),
    "seed": click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the simulations."
    ),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "quiet": click.option("-q", "--quiet", is_flag=True, help="No progress."),
}


def options(*names: str) -> Callable[[F], F]:
    """The common options of these names, in this order."""

    def add(function: F) -> F:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return add


def columns(given: dict[str, Any], *, labelled: bool = True, notion: str | None = None) -> Asked:
    """What the options say about columns."""
    from calibrant.data import Asked

    roles = {"label": "label", "scores": "scores", "positive": "positive"}
    roles |= {"weight": "sample_weight", "group": "groups"}
    named = {role: given[option] for option, role in roles.items() if option in given}
    return Asked(**named, labelled=labelled, notion=notion)


def read(
    file: str,
    given: dict[str, Any],
    *,
    labelled: bool = True,
    models: dict[str, tuple[str, ...]] | None = None,
) -> dict[str, Data]:
    """The data of a file, by model; without models there is one, called ""."""
    ask = columns(given, labelled=labelled)
    with refusing(), Meter("reading", given["quiet"]) as meter:
        from calibrant.data import load_models

        found = {"": ask.scores} if models is None else models
        return load_models(file, found, ask, format=given["format"], progress=meter)


def read_one(file: str, given: dict[str, Any], *, labelled: bool = True) -> Data:
    """The data of a file with one model."""
    return read(file, given, labelled=labelled)[""]


def check_positive(positive: str | None, notion: str | None, *, vector: bool) -> None:
    """Raise where a class is named that nothing is asked about."""
    if positive is not None and notion != "class" and not vector:
        raise Refused("--positive asks about one class of several: add --notion class")


def arguments(data: Data) -> dict[str, Any]:
    """What the functions of the library take beside labels and scores."""
    return {"sample_weight": data.sample_weight, "labels": data.labels, "pos_label": data.pos_label}


def about(file: str, data: Data) -> dict[str, Any]:
    """What JSON says of where a result comes from."""
    return {"source": name_of(file), "rows": len(data.y_prob)}


def name_of(file: str) -> str:
    """What JSON calls a file: its name, without folders."""
    return file if file == "-" else Path(file).name or Path(file).resolve().name


@contextmanager
def refusing(data: Data | None = None) -> Iterator[None]:
    """Tell bad input in one line; what the library says of the data in the words of the command line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except MemoryError:
        raise Refused("there is not enough memory for this") from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise Refused(printable(line(told(error, data)))) from None


#: The words of the command line.
WORDS = Words(
    {
        "y_true": "labels",
        "y_prob": "scores",
        "label": "--label",
        "scores": "--scores",
        "sample_weight": "--weight",
        "groups": "--group",
        "pos_label": "--positive",
        **{name: f"--{name}" for name in ("format", "notion", "level", "estimator", "baseline", "norm")},
        "bandwidth": "--bandwidth",
    },
    {
        "labels": "name the columns after their classes, as in p_cat",
        "pos_label": "give --positive",
        "notion": "ask for --notion classwise or confidence",
        "names": "name each once",
        "ece": "calibrant ece prints it",
    },
    first_row=1,
)


def told(error: Exception, data: Data | None = None) -> str:
    """An error in the words of the command line; one about data with their file, row and column."""
    if not isinstance(error, InputError):
        return str(error) if data is None else f"{data.source}: {worded(str(error))}"
    if data is not None and not error.about:
        error.about, names = data.source, data.columns["scores"]
        if isinstance(error.column, int) and error.column < len(names):
            error.column = names[error.column]
    return error.message(WORDS)


# The library speaks of its arguments, and counts rows from 0.
_WORDS = (
    (r"\by_prob rows\b", "rows of scores"),
    (r"\by_prob\b", "scores"),
    (r"\by_true\b", "labels"),
    (r"; pass labels= with the class of each column", "; name the columns after their classes, as in p_cat"),
    (r"\bpass pos_label=", "give --positive"),
    (r"\bpos_label\b", "--positive"),
    (r"\bsample_weight\b", "--weight"),
    (r'\bnotion="?(\w+)"?', r"--notion \1"),
    (r"^(level|estimator|baseline|norm|bandwidth) must", r"--\1 must"),
    (r"pass a mapping", "name each once"),
    (r"ask ece\(\) for it", "calibrant ece prints it"),
)


def worded(text: str) -> str:
    """What the library says, with options for arguments."""
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def printable(text: str) -> str:
    """A line without characters that a terminal obeys or cannot show."""
    from calibrant.data.files import tidy

    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return tidy(text, WIDEST).encode(encoding, "backslashreplace").decode(encoding)


def tell(text: object) -> None:
    """Print text that may quote a file."""
    for one in str(text).split("\n"):
        click.echo(printable(one))


def tell_json(values: object) -> None:
    """Print JSON."""
    click.echo(json.dumps(values, allow_nan=False, indent=2))


def coloured() -> bool:
    """Whether colour may be printed: on a terminal, unless the environment says no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def check_folders(*paths: Path | None) -> None:
    """Raise before any work for a path in a folder that is not there."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise Refused(printable(line(f"cannot write {path}: {path.parent} is no folder")))


def check_outputs(inputs: Sequence[str | None], *outputs: Path | None) -> None:
    """Raise before anything is written for an output that is an input, whatever the two are called.

    Inputs are files, folders and patterns; links, hard links and files within a folder count.
    """
    from calibrant.data.files import expanded

    check_folders(*outputs)
    for one in inputs:
        if one is None or one == "-":
            continue
        try:
            files = expanded(one) if not os.path.isfile(one) else [one]
        except (ValueError, OSError):
            continue  # what is wrong with it is said when it is read
        for path in outputs:
            if path is not None and any(_same(path, file) for file in files):
                text = f"cannot write {path}: it is an input, {one}; give another name"
                raise Refused(printable(line(text)))


def _same(output: Path, file: str) -> bool:
    try:
        return os.path.samefile(output, file)
    except OSError:  # the output is not there yet
        return os.path.realpath(output) == os.path.realpath(file)


def written(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file, or say in one line why not."""
    try:
        write(path)
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(printable(line(f"cannot write {path}: {reason}"))) from None


class Meter:
    """How far the work is: a line on a terminal once it takes a while, and nothing anywhere else.

    Called as progress(done, total) it draws a bar; where nobody calls it, a clock.
    """

    def __init__(self, label: str, quiet: bool) -> None:
        self.label = label
        self.shown = not quiet and sys.stderr.isatty()
        self.share: float | None = None
        self.width = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` is done."""
        self.share = done / total if total else None

    def __enter__(self) -> Meter:
        self.started = time.monotonic()
        if self.shown:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.shown:
            self.thread.join()
            if self.width:
                click.echo("\r" + " " * self.width + "\r", nl=False, err=True)

    def _watch(self) -> None:
        while not self.over.wait(PATIENCE):
            text = f"{self.label}: {duration(time.monotonic() - self.started)}"
            if self.share is not None:
                full = int(30 * min(self.share, 1.0))
                text = f"[{'#' * full}{'-' * (30 - full)}] {text}"
            click.echo("\r" + text.ljust(self.width), nl=False, err=True)
            self.width = len(text)
