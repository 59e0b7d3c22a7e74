"""The demonstration."""

from __future__ import annotations

from pathlib import Path

import click

from calibrant.cli.data import Meter, check_folders, tell, written

EXTRA = "pip install 'calibrant[demo]'"


@click.command()
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="calibrant-demo.html",
    show_default=True,
    metavar="PATH",
    help="Where to write the report.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the simulations.")
@click.option("-q", "--quiet", is_flag=True, help="Print only where the report is.")
def demo(out: Path, seed: int, quiet: bool) -> None:
    """Train a random forest on handwritten digits, assess its scores, write the report.

    Needs the extra: pip install 'calibrant[demo]'.
    """
    from calibrant import _demo, assess

    check_folders(out)
    try:
        labels, scores = _demo.digits()
    except ImportError as error:
        raise click.ClickException(f"{error}; {EXTRA}") from None
    with Meter("assessing", quiet) as meter:
        found = assess(
            labels,
            scores,
            rng=seed,
            name="handwritten digits, random forest",
            command="calibrant demo",
            progress=meter,
        )
    written(out, found.to_html)
    if not quiet:
        tell(str(found))
    click.echo(f"report: {out.resolve()}")
