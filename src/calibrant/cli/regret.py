"""The command that says what acting on the scores costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.costs import cost_option
from calibrant.cli.options import DATA, EXITS, PICTURES, options, output
from calibrant.cli.output import check_outputs, tell, tell_json, write
from calibrant.cli.picture import check_drawable, drawn, new_figure
from calibrant.cli.source import Source, read_source

if TYPE_CHECKING:
    from calibrant import RegretCurve


@click.command(epilog=EXITS)
@options("path")
@cost_option()
@options(*DATA, "cluster", "notion", "level", "seed")
@output("-o", "--out", suffixes=PICTURES, what="Draw regret and decision curves (png, svg or pdf).")
@options("json", "quiet")
def regret(file: str, cost: Any, out: Path | None, as_json: bool, **given: Any) -> None:
    """Print what is lost by acting on the scores in PATH instead of on calibrated ones.

    With --cost at these costs, in their unit, and what the best threshold on the scores as they are would
    save; without it at every threshold, and where most is lost.

    \b
    Examples:
      calibrant regret predictions.csv --cost 1:9
      calibrant regret predictions.csv --cost costs.csv --json
      calibrant regret predictions.csv -o decisions.png
    """
    asked: dict[str, Any] = {"level": given["level"], "rng": given["seed"]}

    def answered(source: Source) -> Any:
        return (
            source.ask("regret_curve", **asked) if cost is None else source.ask("regret", cost=cost, **asked)
        )

    check_outputs([file], out, format=given["format"])
    check_drawable(out)
    source = read_source(file, given, answered)
    with source.refusing():
        found = answered(source)
        best = None
        if cost is not None and found.threshold is not None:
            best = source.ask("best_threshold", cost=cost, **asked)
        curve = found if cost is None else None
        if out is not None and curve is None:
            curve = source.ask("regret_curve", **asked)
    if out is not None and curve is not None:
        write(out, _picture(curve, out))
    if as_json:
        about = {} if best is None else {"best": best.to_dict()}
        tell_json(found.to_dict() | about | source.about)
        return
    tell(str(found))
    if best is not None:
        tell(str(best))


def _picture(curve: RegretCurve, path: Path) -> bytes:
    figure = new_figure(4.5, 4.7)
    curve.plot(figure.subplots(2, 1, sharex=True))
    return drawn(figure, path)
