"""The options that commands share."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from calibrant.cli.output import Refused
from calibrant.cli.paths import Paths

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz")
#: Kinds of logs of evaluations of language models.
LOGS = ("lm-eval", "inspect")
EXITS = "Exit codes: 0 done, 2 invalid input or usage."
#: Formats of pages, which may go to a device without any suffix too.
PAGES = (".html", ".htm", "")
#: Options about the columns of a file.
DATA = (
    "label",
    "scores",
    "pair",
    "percent",
    "from_logits",
    "pos_label",
    "sample_weight",
    "counts",
    "drop_missing",
    "log",
    "format",
)
# Bytes of the largest file of costs that is read.
LARGEST = 1 << 20


class Reproducible(click.Command):
    """A command that stores its arguments, so that a report can show the command that made it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the arguments, then parse them."""
        ctx.meta[__name__] = list(args)
        return super().parse_args(ctx, args)


def command_line(ctx: click.Context, command: str | None = None, only: Collection[str] | None = None) -> str:
    """Return the command line of a `Reproducible` command, with the given options and file names only.

    `command` is another command, and `only` the names of the parameters that both commands have.
    """
    given, _, _ = ctx.command.make_parser(ctx).parse_args(list(ctx.meta[__name__]))
    words = ["calibrant", *(command or ctx.command.name or "").split()]
    for param in ctx.command.params:
        name, value = param.name or "", given.get(param.name or "")
        wanted = name != "quiet" if only is None else name in only
        if not wanted or not isinstance(value, str | bool | list | tuple):  # else it was not given
            continue
        flag = [] if isinstance(param, click.Argument) else [max(param.opts, key=len)]
        if getattr(param, "is_flag", False):
            words += flag
            continue
        for text in value if isinstance(value, list | tuple) else [str(value)]:
            path = Path(text)
            is_path = not flag or isinstance(param.type, click.Path) or path.is_absolute() or path.is_file()
            words += [*flag, path.name if is_path and text != "-" else text]
    return shlex.join(words)


def output(*names: str, what: str, suffixes: tuple[str, ...] = (), **settings: Any) -> Callable[[F], F]:
    """Make an option for a file that a command writes, with the allowed suffixes."""
    if suffixes:
        settings["callback"] = partial(_written, suffixes)
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option(*names, type=kind, metavar="PATH", help=what, **settings)


def _written(
    suffixes: tuple[str, ...], ctx: click.Context, param: click.Parameter, value: Path | None
) -> Path | None:
    """Check the suffix of an output."""
    if value is not None:
        check_suffix(value, suffixes)
    return value


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise an error for a suffix that is not supported."""
    if path.suffix.lower() not in suffixes:
        kinds = ", ".join(filter(None, suffixes))
        raise click.BadParameter(f"{path.name} ends in none of {kinds}, which are written", param_hint="'-o'")


def seed(what: str = "Seed of the simulations.") -> Callable[[F], F]:
    """Make the option for the random seed."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=what)


def norm(*, largest: bool = False) -> Callable[[F], F]:
    """Make the option for the norm of the gap; the largest gap has no interval."""
    what = "Mean (l1), root mean square (l2)" + ", maximum (max), which has no interval," * largest
    return click.option(
        "--norm",
        type=click.Choice(("l1", "l2", *(("max",) if largest else ()), "mul")),
        default="l1",
        show_default=True,
        help=f"{what} or, with --notion canonical, label-weighted mean (mul) of the gap.",
    )


def quiet(what: str = "No progress.") -> Callable[[F], F]:
    """Make the option that reduces the output."""
    return click.option("-q", "--quiet", is_flag=True, help=what)


def paths(metavar: str = "PATH...") -> Callable[[F], F]:
    """Make the argument for one path or several."""
    return click.argument("file", metavar=metavar, nargs=-1, required=True, callback=Paths.of)


def column(role: str, what: str) -> Callable[[F], F]:
    """Make an option that names a column."""
    return click.option(f"--{role}", metavar="COLUMN", multiple=True, callback=_single_value, help=what)


def _single_value(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
    """Raise an error for an option that is given several times."""
    if len(value) > 1:
        hint = "; for groups of several columns join them into one" * (param.name == "groups")
        raise click.BadParameter(f"it names one column, got {', '.join(value)}{hint}")
    return value[0] if value else None


def columns(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Read names of columns, given one by one or separated by commas."""
    names = tuple(name.strip() for text in value for name in text.split(","))
    if "" in names or len(set(names)) < len(names):
        raise click.BadParameter(
            f"{', '.join(value)} is no list of different columns such as model,benchmark"
        )
    return names


def _log(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the kind of a log."""
    if value is not None and value.partition(":")[0] not in LOGS:
        raise click.BadParameter(f"{value} is none of {', '.join(LOGS)}")
    return value


def _pair(function: F) -> F:
    function = column("confidence", "Column of the confidence of each prediction.")(function)
    return column("correct", "Column of the correctness of each prediction.")(function)


def _cost(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Read numbers or a file; the library checks the values."""
    if value is None:
        return None
    from calibrant.decisions import cost_from_text
    from calibrant.inputs import InputError

    try:
        return cost_from_text(value)
    except InputError:
        return _costs_of_file(Path(value))


def _costs_of_file(path: Path) -> Any:
    if not path.is_file():
        raise click.BadParameter(f"{path} is not a file, a threshold such as 0.2 or two costs such as 1:9")
    if path.stat().st_size > LARGEST:
        raise Refused(f"{path}: is too large for a table of costs")
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if path.suffix.lower() == ".json" else _costs_of_table(text)
    except (OSError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise Refused(f"{path}: is no table of costs: {error}") from None


def _costs_of_table(text: str) -> dict[str, dict[str, float]]:
    """Return the cost of each action in each class.

    >>> _costs_of_table("class,act,leave\\nno,1,0\\nyes,0,9\\n")
    {'act': {'no': 1.0, 'yes': 0.0}, 'leave': {'no': 0.0, 'yes': 9.0}}
    """
    (_, *actions), *rows = (row for row in csv.reader(text.splitlines()) if row)
    if len(set(actions)) != len(actions) or len({row[0] for row in rows}) != len(rows):
        raise ValueError("an action or a class is named twice")
    if any(len(row) != len(actions) + 1 for row in rows):
        raise ValueError("its rows differ in length")
    return {name: {row[0]: float(row[k + 1]) for row in rows} for k, name in enumerate(actions)}


def names_file(class_names: str | None) -> str | None:
    """Return the file that --class-names names, if it names one."""
    return class_names if class_names is not None and Path(class_names).is_file() else None


def read_class_names(text: str | None) -> list[str] | None:
    """Read names separated by commas, or a file with one name per line."""
    if text is None:
        return None
    if names_file(text) is None:
        return [name.strip() for name in text.split(",")]
    try:
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read the class names in {text}: {error}") from None
    return [name.strip() for name in lines if name.strip()]


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "file": click.argument("file", metavar="FILE"),
    "path": paths(),
    "label": column("label", "Column of the labels.  [default: label, y, y_true, target, ...]"),
    "scores": click.option(
        "--scores",
        multiple=True,
        metavar="SPEC",
        help="Columns of the scores: a name, names separated by commas, or a pattern such as 'p_*', where "
        "the star stands for the class. May be repeated.  [default: p_*, prob_*, score, ...]",
    ),
    "pair": _pair,
    "from_logits": click.option(
        "--from-logits", is_flag=True, help="Scores are log-odds (one column) or logits (several)."
    ),
    "percent": click.option("--percent", is_flag=True, help="Scores are percentages, from 0 to 100."),
    "pos_label": click.option(
        "--pos-label",
        metavar="LABEL",
        help="Class of a single column of scores, or of --notion binary.",
    ),
    "sample_weight": column("sample-weight", "Column of importance weights, on any scale."),
    "counts": column("counts", "Column of the number of equal rows that each row represents."),
    "by": click.option(
        "--by",
        metavar="COLUMNS",
        multiple=True,
        callback=columns,
        help="Columns, separated by commas; each combination of their values is a cell of the table.",
    ),
    "drop_missing": click.option(
        "--drop-missing", is_flag=True, help="Leave out rows without a label, and print their number."
    ),
    "log": click.option(
        "--from",
        "log",
        metavar="KIND",
        callback=_log,
        help="Read evaluation logs of lm-eval or inspect, with the metric or the scorer after a colon, as in "
        "lm-eval:acc_norm. The columns are correct, confidence, model, benchmark and question.",
    ),
    "groups": column("groups", "Column of groups; results are given for each group."),
    "cluster": column("cluster", "Column of cluster ids, such as patients, users or questions."),
    "format": click.option(
        "--format", type=click.Choice(FORMATS), help="Format of FILE.  [default: by suffix or first bytes]"
    ),
    "notion": click.option(
        "--notion",
        metavar="NAME",
        help="Type of calibration. Compare the score of one class with its frequency (binary), of every "
        "class (classwise), the largest score with the accuracy (confidence), for each predicted class "
        "(top-label), the sum of the k largest scores with how often the label is among them (top:k), a "
        "confidence with correctness (correctness), or all scores together with the frequencies of all "
        "classes (canonical).  "
        "[default: binary for one column, otherwise confidence]",
    ),
    "estimator": click.option(
        "--estimator",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Estimator, such as uniform:15, adaptive or density; with --notion canonical softmax, "
        "dirichlet, variational:<calibrator> or skce.",
    ),
    "norm": norm(),
    "cost": click.option(
        "--cost",
        metavar="COST",
        callback=_cost,
        help="Costs of decisions: a threshold (0.2), the costs of a false alarm and of a miss (1:9), or a "
        "file. A CSV file has a column of classes and one for each action. A JSON file has a matrix with a "
        "row for each class, or {action: {class: cost}}.",
    ),
    "level": click.option(
        "--level", type=float, default=0.95, show_default=True, help="Level of the interval."
    ),
    "seed": seed(),
    "n_resamples": click.option(
        "--n-resamples",
        type=click.IntRange(min=99),
        metavar="N",
        help="Data sets simulated for each test; the p-value is at least 1 / (1 + N).  [default: 999, and "
        "more for groups and many classes whose p-value is small]",
    ),
    "class_names": click.option(
        "--class-names",
        metavar="NAMES",
        help="Names of the classes in the order of the columns: separated by commas, or a file with one name "
        "per line.",
    ),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "quiet": quiet(),
}


def options(*names: str) -> Callable[[F], F]:
    """Add the common options of these names, in this order."""

    def add(function: F) -> F:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return add
