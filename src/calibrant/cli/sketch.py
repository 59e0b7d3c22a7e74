"""Commands that make sketches of files, add them up, and show what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli.options import DATA, EXITS, names_file, options, output, paths, read_class_names
from calibrant.cli.output import check_outputs, printable, tell, tell_json, writing
from calibrant.cli.paths import files_of
from calibrant.cli.progress import Bar
from calibrant.cli.source import load_sketches, name_of, read_sums, refusing, settled, sketches_of, stem_of
from calibrant.inputs.printed import Table, as_text
from calibrant.inputs.wording import count, number


@click.group()
def sketch() -> None:
    """Keep the sums of predictions in small files: make them, add them up, show what they hold.

    Every command that takes a PATH takes sketches too, and adds up several.

    \b
    Examples:
      calibrant sketch make 'day=2026-05-04/*.parquet' --drop-missing -o 2026-05-04.sketch
      calibrant sketch merge 2026-05-*.sketch -o may.sketch
      calibrant sketch show 2026-05-*.sketch
      calibrant check 2026-05-*.sketch --max-ece 0.02
    """


def _write(total: Any, out: Path) -> None:
    with writing(out):
        total.save(out)
    click.echo(printable(f"sketch: {out.resolve()}"))


@sketch.command(epilog=EXITS)
@paths("FILE...")
@options(*DATA, "class_names", "notion")
@output("-o", "--out", what="Where to write the sketch.", required=True)
@options("quiet")
def make(file: str, out: Path, **given: Any) -> None:
    """Sum up the rows of files, folders or patterns; memory does not grow with them.

    \b
    Examples:
      calibrant sketch make predictions.parquet -o predictions.sketch
      calibrant sketch make may/ --label target --scores 'p_*' --notion classwise -o may.sketch
    """
    check_outputs([file, names_file(given["class_names"])], out, format=given["format"])
    source = read_sums(file, settled(given, single_score=True))
    (total,) = source.rows
    with source.refusing():
        total._with_class_names(read_class_names(given["class_names"]))
    if not given["quiet"]:
        tell(f"{total.notion}, {count(source.about['rows'])} rows of {name_of(file)}")
    _write(total, out)


@sketch.command(epilog=EXITS)
@paths("SKETCH...")
@output("-o", "--out", what="Where to write the sum.", required=True)
def merge(file: str, out: Path) -> None:
    """Add up sketches of the same notion and classes.

    \b
    Examples:
      calibrant sketch merge 2026-05-*.sketch -o may.sketch
    """
    check_outputs([file], out)
    total = load_sketches(sketches_of(file, only=True))
    tell(f"{total.notion}, {count(total.totals.rows)} rows of {name_of(file)}")
    _write(total, out)


@sketch.command(epilog=EXITS)
@paths("SKETCH...")
@options("json", "quiet")
def show(file: str, as_json: bool, quiet: bool) -> None:
    """Print what sketches hold, one line each, and their calibration error.

    Printed are rows with and without a label, mean score, frequency of the outcome, accuracy and ECE,
    whose interval calibrant ece prints.

    \b
    Examples:
      calibrant sketch show may.sketch
      calibrant sketch show 2026-05-*.sketch --json
    """
    roles = []
    files = sketches_of(file, only=True)
    with Bar("reading", quiet) as bar:
        for done, path in enumerate(files, 1):
            each = load_sketches([path])
            with refusing(name_of(path)):
                roles.append({"source": name_of(path)} | each.to_dict() | {"ece": each.ece()})
            bar(done, len(files))
    if as_json:
        tell_json(roles[0] if len(files_of(file)) == len(roles) == 1 else {"sketches": roles})
        return
    head = ["sketch", "notion", "classes", "rows", "no label", "score", "frequency", "accuracy", "ECE"]
    rows = [
        [
            *(stem_of(values["source"]), values["notion"], count(len(values["labels"]))),
            *(count(values[name]) for name in ("rows", "dropped")),
            *(
                "" if values[name] is None else number(values[name])
                for name in ("mean_score", "frequency", "accuracy", "ece")
            ),
        ]
        for values in roles
    ]
    tell(as_text([Table(head, rows, names=2)]))
