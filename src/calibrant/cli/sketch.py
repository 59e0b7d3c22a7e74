"""Commands that make, merge and show sketches."""

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
    """Make, merge and show sketches, which store sums instead of rows.

    Every command with a PATH accepts one sketch or several, and merges them.

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
    """Make a sketch of the rows of files, folders or patterns, in constant memory.

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
    """Merge sketches of the same notion and classes.

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
    """Print a line for each sketch.

    The columns are rows with and without a label, mean score, frequency of the outcome, accuracy and ECE.
    calibrant ece prints the interval of the ECE.

    \b
    Examples:
      calibrant sketch show may.sketch
      calibrant sketch show 2026-05-*.sketch --json
    """
    sketches = []
    files = sketches_of(file, only=True)
    with Bar("reading", quiet) as bar:
        for done, path in enumerate(files, 1):
            each = load_sketches([path])
            with refusing(name_of(path)):
                sketches.append({"source": name_of(path)} | each.to_dict() | {"ece": each.ece()})
            bar(done, len(files))
    if as_json:
        tell_json(sketches[0] if len(files_of(file)) == len(sketches) == 1 else {"sketches": sketches})
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
        for values in sketches
    ]
    tell(as_text([Table(head, rows, names=2)]))
