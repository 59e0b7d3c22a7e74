"""The demonstration: handwritten digits and an underconfident random forest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from calibrant.cli.options import PAGES, Reproducible, command_line, output, quiet, seed
from calibrant.cli.output import check_outputs, printable, tell, writing
from calibrant.cli.progress import Bar

if TYPE_CHECKING:
    from calibrant.score_data import Array

EXTRA = "pip install 'calibrant[demo]'"


def digits() -> tuple[Array, Array]:
    """Return the digits that ship with scikit-learn, and a random forest's held-out scores."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    data = load_digits()
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    return data.target, cross_val_predict(forest, data.data, data.target, cv=5, method="predict_proba")


@click.command(cls=Reproducible)
@output(
    "-o",
    "--out",
    suffixes=PAGES,
    default="calibrant-demo.html",
    show_default=True,
    what="Where to write the report.",
)
@seed()
@quiet("Print only the path of the report.")
@click.pass_context
def demo(ctx: click.Context, /, out: Path, seed: int, quiet: bool) -> None:
    """Train a random forest on handwritten digits, assess its scores and write the report.

    Needs the extra: pip install 'calibrant[demo]'.
    """
    from calibrant import assess

    check_outputs([], out)
    try:
        labels, scores = digits()
    except ImportError as error:
        raise click.ClickException(f"{error}; {EXTRA}") from None
    with Bar("assessing", quiet) as bar:
        assessment = assess(
            labels,
            scores,
            rng=seed,
            name="handwritten digits, random forest",
            command=command_line(ctx, only=("seed",)),
            progress=bar,
        )
    with writing(out):
        assessment.to_html(out)
    if not quiet:
        tell(str(assessment))
    click.echo(printable(f"report: {out.resolve()}"))
