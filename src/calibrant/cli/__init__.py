"""The command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import calibrant
from calibrant.cli.experiment import group
from calibrant.results import Progress


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(calibrant.__version__, prog_name="calibrant")
def main() -> None:
    """Measure how far a classifier's scores are from being probabilities."""


main.add_command(group)


@main.command()
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="calibrant-demo.png",
    show_default=True,
    help="Where to write the picture (png, pdf or svg).",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("-q", "--quiet", is_flag=True, help="Print only where the picture is.")
def demo(out: Path, seed: int, quiet: bool) -> None:
    """Train a classifier on handwritten digits, measure its calibration, draw it.

    Needs the extra: pip install 'calibrant[demo]'.
    """
    from calibrant import _demo

    try:
        labels, scores = _demo.digits()
        if not quiet:
            click.echo(_demo.table(labels, scores) + "\n")
        with _bar("bootstrap", quiet) as progress:
            figure = _demo.figure(labels, scores, seed, progress)
    except ImportError as error:
        raise click.ClickException(f"{error}; pip install 'calibrant[demo]'") from None
    try:
        figure.savefig(out, dpi=150)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot write {out}: {error}") from None
    click.echo(f"picture: {out.resolve()}")


@contextmanager
def _bar(label: str, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    bar: Any
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def report(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield report
