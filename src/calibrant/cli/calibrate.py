"""Commands that recalibrate: fit a map, apply it to new files, and compare maps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, EXITS, names_file, options, output
from calibrant.cli.output import check_outputs, printable, tell, tell_json, write
from calibrant.cli.progress import Bar
from calibrant.cli.source import CommandInput, has_matrix, name_of, read_rows, read_source, refusing, settled

if TYPE_CHECKING:
    from calibrant import Calibrator

METHOD = "auto is a Bayesian average over calibration maps that includes the unchanged scores"


@click.group()
def calibrate() -> None:
    """Fit, apply and compare calibrators, which map scores to probabilities.

    \b
    Examples:
      calibrant calibrate compare predictions.csv
      calibrant calibrate fit predictions.csv -o map.json
      calibrant calibrate apply map.json new.parquet -o calibrated.parquet
    """


def _refuse_groups(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Say how to fit a calibrator for each group."""
    if value is not None:
        rule = "a calibrator is fitted to all rows"
        raise click.UsageError(
            f"{rule}; for groups write the rows of each to a file, and fit one for each file"
        )


@calibrate.command(epilog=EXITS)
@options("path", *DATA, "class_names", "cluster")
@click.option("--groups", hidden=True, expose_value=False, callback=_refuse_groups)
@click.option(
    "--notion",
    metavar="NAME",
    help="Fit to one column of scores (binary), to each class separately (classwise) or to the largest score "
    "(confidence).  [default: binary for one column, otherwise all classes together]",
)
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", help=f"Calibration method; {METHOD}."
)
@output("-o", "--out", what="Path of the calibrator, a JSON file.", required=True)
@options("quiet")
def fit(file: str, method: str, out: Path, **given: Any) -> None:
    """Fit a calibrator to labels and scores in PATH, which the model must not have been trained on.

    Large files are read as sums with one column of scores, --notion classwise or --notion confidence. A
    calibrator of all classes together needs the rows.

    \b
    Examples:
      calibrant calibrate fit predictions.csv -o map.json
      calibrant calibrate fit 'may/*.parquet' --label target --scores 'p_*' -o map.json
      calibrant calibrate fit predictions.csv --method temperature -o map.json
    """
    check_outputs([file, names_file(given["class_names"])], out, format=given["format"])
    known = settled(given, single_score=True)

    def fitted(source: CommandInput) -> Calibrator:
        return source.calibrator(method, known["notion"])

    together = known["notion"] is None and has_matrix(file, known)
    source = read_source(file, given, fitted, as_rows=together)
    with source.refusing():
        calibrator = fitted(source)
        content = calibrator.to_json()
    write(out, content)
    if not given["quiet"]:
        tell(f"{calibrator.method} map of {_about(calibrator)}, from {source.about['rows']} rows")
    click.echo(printable(f"map: {out.resolve()}"))


def _about(calibrator: Calibrator) -> str:
    """Return what is mapped."""
    from calibrant.tasks import get_notion

    if not calibrator.is_vector:
        return f"{len(calibrator.classes_)} classes"
    notion = get_notion(calibrator.notion_)
    label = notion.label(calibrator.class_names_ or calibrator.classes_, 1)
    return f"the {notion.reading.score}" if label is None else f"the score of class {label}"


@calibrate.command(epilog=EXITS)
@click.argument("map_file", metavar="MAP")
@click.argument("file", metavar="PATH")
@options("scores", "percent", "format")
@click.option("--name", default="calibrated", show_default=True, help="Name of the new column or columns.")
@click.option("--interval", is_flag=True, help="Add an interval for each probability: _low and _high.")
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="Level of the interval: 0.5, 0.8, 0.9, 0.95 or 0.99.",
)
@output("-o", "--out", what="Path of the output: CSV, Parquet or Arrow, by the suffix.", required=True)
@options("quiet")
def apply(
    map_file: str,
    file: str,
    scores: tuple[str, ...],
    name: str,
    interval: bool,
    level: float,
    out: Path,
    **given: Any,
) -> None:
    """Write the rows of PATH with calibrated probabilities added.

    The scores are the columns that the calibrator was fitted to, unless --scores names others. All
    columns are kept. The new column is named calibrated; with several classes there is one for each,
    such as calibrated_cat. To measure it, give --scores calibrated to the other commands. Rows are read
    and written in batches, so files may be of any size. The output is written atomically. After an
    interruption the command starts again from the first row.

    \b
    Examples:
      calibrant calibrate apply map.json new.csv -o calibrated.csv
      calibrant calibrate apply map.json 'new/*.parquet' --scores p_spam --interval -o out.parquet
    """
    check_outputs([file, map_file], out, format=given["format"])
    with refusing():
        from calibrant import Calibrator
        from calibrant.data import map_files
        from calibrant.data.mapped import names_of
        from calibrant.inputs import within

        with within(name_of(map_file)):
            calibrator = Calibrator.load(map_file)
        new = name if calibrator.is_vector else f"{name}_*"
        if interval:
            new = ",".join(names_of(calibrator, name, None))
        with Bar("mapping", given["quiet"]) as bar:
            rows = map_files(
                calibrator,
                file,
                out,
                scores=scores,
                name=name,
                level=level if interval else None,
                percent=given["percent"],
                format=given["format"],
                progress=bar,
            )
    if not given["quiet"]:
        tell(f"{rows} rows of {name_of(file)} mapped by {name_of(map_file)}")
        tell(f"to measure the calibrated probabilities, give --scores {shlex.quote(new)}")
    click.echo(printable(f"rows: {out.resolve()}"))


@calibrate.command(epilog=EXITS)
@options("file", *DATA, "class_names", "cluster", "notion")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="A method to compare; may be repeated.  [default: all that apply]",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="Number of folds of the cross-validation.",
)
@options("level", "seed", "json", "quiet")
def compare(file: str, methods: tuple[str, ...], folds: int, as_json: bool, **given: Any) -> None:
    """Compare calibration methods with each other and with the unchanged scores on held-out rows of FILE.

    The methods are cross-validated. The output has log loss, Brier score and calibration error with
    intervals, and paired differences.

    \b
    Examples:
      calibrant calibrate compare predictions.csv
      calibrant calibrate compare predictions.csv --method auto --method temperature --json
    """
    check_outputs([file], format=given["format"])
    given = settled(given)
    source = read_rows(file, given)
    with source.refusing(), Bar("comparing", given["quiet"]) as bar:
        comparison = source.call(
            "compare_calibrators",
            methods=methods or None,
            cv=folds,
            level=given["level"],
            rng=given["seed"],
            progress=bar,
        )
    if as_json:
        tell_json({"value": comparison.best} | comparison.to_dict() | source.about)
    else:
        tell(comparison)
