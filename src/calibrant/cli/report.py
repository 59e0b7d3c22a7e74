"""The command that writes a report."""

from __future__ import annotations

import shlex
from pathlib import Path, PurePath
from typing import Any

import click
from click.core import ParameterSource

from calibrant.cli.data import (
    EXITS,
    Meter,
    check_outputs,
    name_of,
    options,
    tell,
    written,
)
from calibrant.cli.source import read_source, stem_of
from calibrant.cli.support import Refused


@click.command(epilog=EXITS)
@options("path", "label", "scores", "positive", "weight", "group", "format", "notion", "level", "seed")
@click.option("--name", metavar="TEXT", help="Title of the report.  [default: the name of PATH]")
@click.option(
    "--class-names",
    metavar="NAMES",
    help="Names of the classes in the order of the columns: separated by commas, or a file with one a line.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Where to write the report.  [default: PATH's name with -report.html, in the current directory]",
)
@click.option(
    "--json",
    "as_json",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Write the numbers as JSON too.",
)
@options("checkpoint")
@click.option("-q", "--quiet", is_flag=True, help="Print only where the report is.")
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: str,
    notion: str | None,
    name: str | None,
    class_names: str | None,
    out: Path | None,
    as_json: Path | None,
    **given: Any,
) -> None:
    """Assess the scores in PATH and write a report that opens in any browser.

    \b
    Examples:
      calibrant report predictions.csv
      calibrant report predictions.csv --label target --scores 'p_*' --group country
      calibrant report predictions.parquet --name "Spam filter, May" -o may.html --json may.json

    A report that exists is overwritten.
    """
    stem = stem_of(file)
    where = out or Path(f"{stem}-report.html")
    check_outputs([file, class_names], where, as_json)
    if as_json is not None and as_json.resolve() == where.resolve():
        raise Refused(f"-o and --json must be two files, got {where} for both")
    names = None if class_names is None else _class_names(class_names)
    level, seed = given["level"], given["seed"]
    source = read_source(file, given, notion, lambda sums: sums.estimate(level=level, rng=seed))
    with source.refusing(), Meter("assessing", given["quiet"]) as meter:
        found = source.assess(
            class_names=names,
            name=name or (stem if file == "-" else name_of(file)),
            level=level,
            rng=seed,
            command=_command(ctx),
            progress=meter,
        )
    written(where, found.to_html)
    if as_json is not None:
        written(as_json, lambda path: path.write_text(found.to_json(), encoding="utf-8"))
    if not given["quiet"]:
        tell(found.summary)
    click.echo(f"report: {where.resolve()}")
    if as_json is not None:
        click.echo(f"numbers: {as_json.resolve()}")


def _class_names(text: str) -> list[str]:
    """Names separated by commas, or those of a file, one a line."""
    if not Path(text).is_file():
        return [part.strip() for part in text.split(",")]
    try:
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read the class names in {text}: {error}") from None
    return [one.strip() for one in lines if one.strip()]


def _command(ctx: click.Context) -> str:
    """The command as someone else would type it: options that were given, files without their folders."""
    words = ["calibrant", "report"]
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if (
            ctx.get_parameter_source(param.name or "") is not ParameterSource.COMMANDLINE
            or param.name == "quiet"
        ):
            continue
        flag = [] if isinstance(param, click.Argument) else [max(param.opts, key=len)]
        for one in value if isinstance(value, tuple) else (value,):
            path = isinstance(param, click.Argument) or isinstance(one, Path) or Path(str(one)).is_absolute()
            words += [*flag, PurePath(str(one)).name if path and str(one) != "-" else str(one)]
    return shlex.join(words)
