"""Commands that measure one file: its error, what a score means, and which estimator to trust."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.data import (
    EXITS,
    Meter,
    about,
    arguments,
    check_outputs,
    options,
    read_one,
    refusing,
    tell,
    tell_json,
    written,
)
from calibrant.cli.source import Rows, Sums, read_source
from calibrant.cli.support import Refused

if TYPE_CHECKING:
    from calibrant.curves.curve import ReliabilityCurve

PICTURES, TABLES = (".png", ".svg", ".pdf"), (".csv",)
_DATA = ("label", "scores", "positive", "weight", "format")


@click.command(epilog=EXITS)
@options("path", *_DATA, "notion", "estimator")
@click.option(
    "--norm",
    type=click.Choice(("l1", "l2", "max")),
    default="l1",
    show_default=True,
    help="Mean, root mean square or maximum of the gap; the maximum has no interval.",
)
@options("level", "seed", "checkpoint", "json", "quiet")
def ece(file: str, notion: str | None, estimator: str, norm: Any, as_json: bool, **given: Any) -> None:
    """Print the calibration error of the scores in PATH, with its interval.

    PATH is CSV, JSON lines, Parquet, Arrow or NPZ, a folder or a pattern of such files, or - for
    standard input. Label and scores are found by the names of the columns, or said by --label and
    --scores.

    \b
    Examples:
      calibrant ece predictions.csv
      calibrant ece predictions.parquet --label target --scores 'p_*' --notion classwise
      cat scores.csv | calibrant ece - --label y --scores score --positive spam --json
    """

    def measured(source: Rows | Sums) -> tuple[dict[str, Any], str]:
        from calibrant.estimators import resolve
        from calibrant.questions.notions import named

        chosen = resolve(estimator, shared=named(source.notion).several)
        if norm == "max" or not chosen.measures_ece:
            value = source.ece(estimator=estimator, norm=norm)
            told = {"value": value, "notion": source.notion, "estimator": str(chosen), "norm": norm}
            return told, f"{value:.4f}"
        made = source.estimate(estimator=estimator, norm=norm, level=given["level"], rng=given["seed"])
        return made.to_dict(), str(made)

    source = read_source(file, given, notion, measured)
    with source.refusing(), Meter("estimating", given["quiet"]):
        found, text = measured(source)
    if as_json:
        tell_json(found | source.about)
    else:
        tell(text)


def _scores(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[float, ...]:
    """Scores, given one by one or separated by commas."""
    parts = [part.strip() for text in value for part in text.split(",")]
    try:
        found = tuple(map(float, parts))
    except ValueError:
        found = (math.nan,)
    if not all(0 <= score <= 1 for score in found):
        raise click.BadParameter(f"{', '.join(value)} is no list of scores in [0, 1] such as 0.5,0.83")
    return found


def _bandwidth(ctx: click.Context, param: click.Parameter, value: str) -> str | float:
    """The name of a rule, or a number; the library says which rules there are."""
    try:
        return float(value)
    except ValueError:
        return value


@click.command(epilog=EXITS)
@options("path")
@click.option("--at", callback=_scores, multiple=True, metavar="SCORE", help="Score, or several; 0.5,0.83.")
@options(*_DATA, "notion", "level", "seed", "json")
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Draw the curve (png, svg or pdf), or write it as a table (csv).",
)
@click.option(
    "--bandwidth",
    callback=_bandwidth,
    default="ranks",
    show_default=True,
    metavar="RULE",
    help="How to smooth: over neighbouring rows (ranks, as the report does), or over scores by silverman, "
    "scott, isj or a number.",
)
@options("checkpoint", "quiet")
def curve(
    file: str,
    at: tuple[float, ...],
    notion: str | None,
    as_json: bool,
    out: Path | None,
    bandwidth: str | float,
    **given: Any,
) -> None:
    """Print what a score means: how often it is right, by the rows of PATH with scores nearby.

    \b
    Examples:
      calibrant curve predictions.csv --at 0.83
      calibrant curve predictions.csv --at 0.5,0.9 --notion classwise --json
      calibrant curve predictions.csv -o curve.png

    Pictures need the extra: pip install 'calibrant[plot]'.
    """
    if not at and out is None:
        raise click.UsageError("give a score, --at 0.83 for instance, or -o for the whole curve")
    if out is not None and out.suffix.lower() not in PICTURES + TABLES:
        kinds = ", ".join(PICTURES + TABLES)
        raise click.BadParameter(f"{out.name} ends in none of {kinds}", param_hint="'-o'")
    check_outputs([file], out)

    def fitted(source: Rows | Sums, progress: Any = None) -> Any:
        return source.curve(bandwidth=bandwidth, level=given["level"], rng=given["seed"], progress=progress)

    source = read_source(file, given, notion, fitted)
    with source.refusing(), Meter("resampling", given["quiet"]) as meter:
        found = fitted(source, meter)
    curves: Mapping[Any, ReliabilityCurve] = found if isinstance(found, Mapping) else {found.label: found}
    points = [point for label, one in curves.items() for point in _points(one, label, at)]
    if as_json:
        first = points[0] if points else {}
        tell_json(first | {"level": given["level"]} | source.about | _several(points))
    else:
        for point in points:
            tell(_sentence(point, given["level"]))
    if out is not None:
        is_table = out.suffix.lower() in TABLES
        written(out, lambda path: _write_table(path, curves) if is_table else _draw(path, found))
        click.echo(f"{'table' if is_table else 'picture'}: {out.resolve()}", err=as_json)


def _points(curve: ReliabilityCurve, label: Any, at: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    for score in at:
        point = curve.at(score)
        values = {"value": point.probability, "low": point.low, "high": point.high, "n_eff": point.n_eff}
        # There is no NaN in JSON: where there are no rows there is no number.
        plain = {name: float(v) if math.isfinite(v) else None for name, v in values.items()}
        name = label.item() if hasattr(label, "item") else label
        yield {**plain, "score": score, "notion": curve.notion, "label": name}


def _several(points: list[dict[str, Any]]) -> dict[str, Any]:
    return {"points": points} if len(points) > 1 else {}


def _sentence(point: dict[str, Any], level: float) -> str:
    asked = point["notion"] if point["label"] is None else f"class {point['label']}"
    if point["value"] is None:
        return f"a score of {point['score']:g} has no rows nearby ({asked})"
    return (
        f"a score of {point['score']:g} means {point['value']:.4f} [{point['low']:.4f}, {point['high']:.4f}] "
        f"at {100 * level:g} %, n nearby {point['n_eff']:.3g} ({asked})"
    )


def _draw(path: Path, found: Any) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused(f"{error}; pip install 'calibrant[plot]'") from None
    if isinstance(found, Mapping):
        figure = found.plot().flat[0].figure  # type: ignore[attr-defined]
    else:
        figure = Figure(figsize=(5, 5.5), layout="constrained")
        found.plot(figure.subplots())
    figure.savefig(path, dpi=150)


def _write_table(path: Path, curves: Mapping[Any, ReliabilityCurve]) -> None:
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("label", "score", "probability", "low", "high", "n_eff"))
    for label, one in curves.items():
        assert one.low is not None
        assert one.high is not None
        for values in zip(one.score, one.probability, one.low, one.high, one.n_eff, strict=True):
            cells = ("" if math.isnan(v) else repr(float(v)) for v in values)
            rows.writerow(("" if label is None else label, *cells))
    path.write_text(text.getvalue(), encoding="utf-8")


@click.command(epilog=EXITS)
@options("file", "scores", "label", "positive", "weight", "format", "notion")
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    metavar="NAME",
    help="An estimator to rank; may be repeated.  [default: nine of them]",
)
@click.option(
    "--n", type=click.IntRange(1), metavar="N", help="Rows to measure on.  [default: those of FILE]"
)
@options("seed", "json", "quiet")
def recommend(
    file: str,
    notion: str | None,
    estimators: tuple[str, ...],
    n: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Rank estimators on the scores in FILE, where the true error is simulated and so known.

    No labels are needed.

    \b
    Examples:
      calibrant recommend predictions.csv
      calibrant recommend predictions.csv --n 200 --notion classwise
      calibrant recommend predictions.csv --estimator auto --estimator uniform:15 --json
    """
    data = read_one(file, given, labelled=False)
    with refusing(data), Meter("simulating", given["quiet"]) as meter:
        import calibrant

        found = calibrant.recommend(
            data.y_prob,
            n=n,
            notion=notion,
            estimators=estimators or None,
            rng=given["seed"],
            progress=meter,
            **arguments(data),
        )
    if as_json:
        tell_json({"value": found.best} | found.to_dict() | about(file, data))
    else:
        tell(found)
