"""The command that writes a report."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from calibrant.cli.options import (
    DATA,
    EXITS,
    PAGES,
    Reproducible,
    check_suffix,
    command_line,
    names_file,
    options,
    output,
    quiet,
)
from calibrant.cli.output import check_outputs, printable, tell, write, writing
from calibrant.cli.progress import Bar
from calibrant.cli.source import name_of, read_source, stem_of


@click.command(cls=Reproducible, epilog=EXITS)
@options("path", *DATA, "groups", "cluster", "notion", "level", "seed", "n_resamples")
@click.option("--name", metavar="TEXT", help="Title of the report.  [default: the name of PATH]")
@options("class_names")
@output(
    "-o",
    "--out",
    what="Where to write the report.  [default: PATH's name with -report.html, in the current directory]",
)
@options("cost")
@click.option(
    "--tolerance",
    type=float,
    help="Calibration error up to which scores are trusted.  "
    "[default: 0.02, or half of the base rate if that is below 4 %]",
)
@output("--json", "as_json", what="Also write the numbers as JSON.")
@quiet("Print only the path of the report.")
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: str,
    name: str | None,
    out: Path | None,
    as_json: Path | None,
    cost: Any,
    tolerance: float | None,
    **given: Any,
) -> None:
    """Assess the scores in PATH and write a self-contained HTML report.

    \b
    Examples:
      calibrant report predictions.csv
      calibrant report predictions.csv --label target --scores 'p_*' --groups country
      calibrant report predictions.parquet --name "Spam filter, May" --cost 1:9 -o may.html --json may.json

    An existing report is overwritten.
    """
    where = out or Path(f"{stem_of(file)}-report.html")
    check_outputs([file, names_file(given["class_names"])], where, as_json, format=given["format"])
    check_suffix(where, PAGES)
    options = {"level": given["level"], "rng": given["seed"], "n_resamples": given["n_resamples"]}
    source = read_source(file, given, lambda few: few.call("estimate", **options))
    with source.refusing(), Bar("assessing", given["quiet"]) as bar:
        assessment = source.call(
            "assess",
            name=name or (stem_of(file) if file == "-" else name_of(file)),
            command=command_line(ctx),
            progress=bar,
            cost=cost,
            tolerance=tolerance,
            **options,
        )
    assessment = replace(assessment, grouped_by=given["groups"])
    if assessment.recalibration is not None:
        # Of a matrix all classes are mapped, not the one that was asked about.
        columns = {"file", *DATA, "correct", "confidence", "cluster"}
        columns -= set() if source.vector else {"pos_label"}
        fit = command_line(ctx, "calibrate fit", columns)
        method = (
            ""
            if assessment.recalibration.method == "auto"
            else f" --method {assessment.recalibration.method}"
        )
        apply = command_line(ctx, "calibrate apply map.json NEW", ("scores", "percent", "format"))
        if given["confidence"] is not None:
            apply += f" --scores {shlex.quote(given['confidence'])}"
        commands = {
            "command": f"{fit}{method} -o map.json",
            "apply_command": f"{apply} -o OUT{_suffix(file)}",
        }
        assessment = replace(assessment, recalibration=replace(assessment.recalibration, **commands))
    with writing(where):
        assessment.to_html(where)
    if as_json is not None:
        write(as_json, assessment.to_json())
    if not given["quiet"]:
        tell(str(assessment.verdict))
    click.echo(printable(f"report: {where.resolve()}"))
    if as_json is not None:
        click.echo(printable(f"numbers: {as_json.resolve()}"))


def _suffix(file: str) -> str:
    """Return the suffix of an output of `calibrate apply` in the format of a file, if it can be written."""
    suffix = Path(file).suffix.lower()
    return suffix if suffix in (".tsv", ".parquet", ".arrow") else ".csv"
