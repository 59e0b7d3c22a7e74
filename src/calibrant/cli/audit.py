"""The command that finds miscalibrated segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli.options import DATA, columns, options, output
from calibrant.cli.output import (
    PICTURES,
    check_drawable,
    check_outputs,
    ending,
    save,
    tell,
    tell_json,
    tell_verdict,
)
from calibrant.cli.source import read_source

SEGMENTS = "Columns, separated by commas, whose values and combinations of values are segments."
LIMIT = "Largest allowed absolute gap of a segment; sets the exit code by the intervals."
EXITS = (
    "Exit codes: 0 done, 2 invalid input or usage; with --max-gap 0 the gaps of all segments are within the "
    "limit, 1 one is not, 3 inconclusive."
)
POSITIVE_INTEGER: dict[str, Any] = {"type": click.IntRange(1), "show_default": True}


@click.command(epilog=EXITS)
@options("path")
@click.option(
    "--segments", "by", metavar="COLUMNS", multiple=True, required=True, callback=columns, help=SEGMENTS
)
@click.option("--depth", default=2, **POSITIVE_INTEGER, help="Largest number of columns that are combined.")
@click.option("--min-rows", default=30, **POSITIVE_INTEGER, help="Smallest number of rows of a segment.")
@options(*DATA, "class_names", "cluster", "notion", "level", "seed")
@click.option(
    "--n-resamples",
    type=click.IntRange(99),
    default=9999,
    show_default=True,
    metavar="N",
    help="Number of simulated data sets.",
)
@click.option("--max-gap", type=click.FloatRange(0, 1), metavar="LIMIT", help=LIMIT)
@click.option("--markdown", is_flag=True, help="Print a Markdown table of all segments.")
@output("-o", "--out", suffixes=(".html", ".htm", *PICTURES), what="Write a page or draw a forest plot.")
@options("json", "quiet")
def audit(
    file: str, depth: int, min_rows: int, max_gap: float | None, markdown: bool, out: Path | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Find the segments in PATH that are miscalibrated.

    A segment is called miscalibrated for its own gap only. The difference from one common recalibration of
    all rows is reported beside it. P-values and intervals are adjusted for the number of segments.

    \b
    Examples:
      calibrant audit predictions.csv --segments country,device
      calibrant audit predictions.csv --segments country,device,age --depth 3 -o segments.html
      calibrant audit predictions.csv --segments country --max-gap 0.02 --json
    """
    from calibrant.assessment.gates import CODES

    if as_json and markdown:
        raise click.UsageError("--json and --markdown print two formats; give one of them")
    check_outputs([file], out, format=given["format"])
    check_drawable(out)
    source = read_source(file, given)
    with source.refusing():
        names = ("level", "n_resamples")
        asked = {name: given[name] for name in names} | {"rng": given["seed"]}
        result = source.call("audit", depth=depth, min_rows=min_rows, **asked)
        status, sentence = ("pass", "") if max_gap is None else result.verdict(max_gap)
        save(out, result, 6.4, 0.25 * min(len(result.segments), 20) + 1)
    with ending(CODES[status]):
        if as_json:
            verdict = {"status": status, "exit_code": CODES[status], "limit": max_gap} if sentence else {}
            tell_json(verdict | result.to_dict() | source.about)
        elif markdown:
            click.echo(result.to_markdown(), nl=False)
        else:
            if sentence:
                tell_verdict(status, sentence)
            tell(result)
