"""Commands on one file: estimate, curve, recommend and regret."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, EXITS, names_file, norm, options, output, read_class_names
from calibrant.cli.output import (
    PICTURES,
    check_drawable,
    check_outputs,
    drawn,
    new_figure,
    printable,
    save,
    tell,
    tell_json,
    write,
)
from calibrant.cli.progress import Bar
from calibrant.cli.source import (
    CommandInput,
    arguments,
    origin,
    read,
    read_source,
    refusing,
    settled,
    tell_cautions,
)
from calibrant.inputs.wording import about, number, sample_size, with_interval
from calibrant.settings import REPORT

if TYPE_CHECKING:
    from calibrant.curves.curve import ReliabilityCurve

TABLES = (".csv",)


@click.command(epilog=EXITS)
@options("path", "by", *DATA, "class_names", "cluster", "notion", "estimator")
@norm(largest=True)
@options("level")
@click.option("--simultaneous", is_flag=True, help="Make the intervals simultaneous over all cells.")
@options("seed", "n_resamples", "json")
@click.option("--latex", "format_of_table", flag_value="latex", help="Print a LaTeX table (booktabs).")
@click.option("--markdown", "format_of_table", flag_value="markdown", help="Print a Markdown table.")
@output("-o", "--out", suffixes=PICTURES, what="Draw a forest plot (png, svg or pdf).")
@options("quiet")
def estimate(
    file: str,
    as_json: bool,
    simultaneous: bool,
    format_of_table: str | None,
    out: Path | None,
    **given: Any,
) -> None:
    """Print the calibration error of the scores in PATH with a confidence interval and a test.

    PATH is a CSV, JSON lines, Parquet, Arrow or NPZ file, a folder or a pattern of such files, or - for
    standard input. Columns of labels and scores are recognised by name, or set by --label and --scores.
    --by prints a table with a line for each cell. The commands ece and estimate are the same.

    \b
    Examples:
      calibrant ece predictions.csv
      calibrant ece predictions.parquet --label target --scores 'p_*' --notion classwise
      cat scores.csv | calibrant ece - --label y --scores score --pos-label spam --json
      calibrant estimate answers.csv --by model,benchmark --cluster question --latex
      calibrant estimate answers.csv --by model,benchmark --simultaneous -o forest.png

    Pictures need the extra: pip install 'calibrant[plot]'.
    """
    if as_json and format_of_table:
        raise click.UsageError(f"--json and --{format_of_table} print two formats; give one of them")
    if not given["by"]:
        if simultaneous or format_of_table or out is not None:
            raise click.UsageError("--simultaneous, --latex, --markdown and -o go with --by")
        _tell_error(file, as_json, given)
        return
    check_outputs([file, names_file(given["class_names"])], out, format=given["format"])
    check_drawable(out)
    source = read_source(file, given)
    with source.refusing(), Bar("estimating", given["quiet"]) as bar:
        table = source.call("estimate_by", simultaneous=simultaneous, progress=bar, **_requested(given))
    save(out, table, 6.4, min(0.25 * len(table.keys), 100) + 1)
    if as_json:
        tell_json({"value": table.macro.value} | table.to_dict() | source.about)
    elif format_of_table:
        click.echo(getattr(table, f"to_{format_of_table}")(), nl=False)
    else:
        tell(table)


def _tell_error(file: str, as_json: bool, given: dict[str, Any]) -> None:
    """Print the calibration error of a path, with its interval if it has one."""

    def measured(source: CommandInput) -> tuple[dict[str, Any], str]:
        from calibrant.estimators.base import estimator_for

        notion, norm, estimator = source.notion, given["norm"], given["estimator"]
        chosen = estimator_for(notion, estimator, norm)
        if norm == "max" or not chosen.measures_ece:
            value = source.call("ece", estimator=estimator, norm=norm)
            values = {"value": value, "notion": notion.name, "estimator": str(chosen), "norm": norm}
            return values, number(value)
        result = source.call("estimate", **_requested(given))
        return result.to_dict(), str(result)

    check_outputs([file], format=given["format"])
    source = read_source(file, given, measured)
    with source.refusing():
        values, text = measured(source)
    if as_json:
        tell_json(values | source.about)
    else:
        tell(text)


def _requested(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an estimate."""
    named = {name: given[name] for name in ("estimator", "norm", "level", "n_resamples")}
    return named | {"rng": given["seed"]}


def _scores(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[float, ...]:
    """Read scores, given one by one or separated by commas."""
    try:
        scores = tuple(float(score) for text in value for score in text.split(","))
    except ValueError:
        scores = (math.nan,)
    if not all(0 <= score <= 1 for score in scores):
        raise click.BadParameter(f"{', '.join(value)} is no list of scores in [0, 1] such as 0.5,0.83")
    return scores


def _bandwidth(ctx: click.Context, param: click.Parameter, value: str | None) -> str | float | None:
    """Read the name of a rule or a number; the library checks the name."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


@click.command(epilog=EXITS)
@options("path")
@click.option(
    "--at", callback=_scores, multiple=True, metavar="SCORE", help="One score or several, as in 0.5,0.83."
)
@options(*DATA, "class_names", "cluster", "notion", "level", "seed", "json")
@click.option("--csv", "as_csv", is_flag=True, help="Print the whole curve as CSV.")
@output(
    "-o",
    "--out",
    suffixes=PICTURES + TABLES,
    what="Draw the curve (png, svg or pdf), or write it as a table (csv).",
)
@click.option(
    "--method",
    type=click.Choice(("bayes", "density")),
    help="Bayesian model average, as in the report, or the paper's ratio of densities.  "
    "[default: bayes; density with --bandwidth]",
)
@click.option("--simultaneous", is_flag=True, help="Make the band simultaneous over all scores.")
@click.option(
    "--bandwidth",
    callback=_bandwidth,
    metavar="RULE",
    help="Bandwidth of --method density: silverman, scott, isj or a number.  [default: silverman]",
)
@options("quiet")
def curve(
    file: str,
    at: tuple[float, ...],
    as_json: bool,
    as_csv: bool,
    out: Path | None,
    method: str | None,
    simultaneous: bool,
    bandwidth: str | float | None,
    **given: Any,
) -> None:
    """Print the reliability curve of the scores in PATH: frequency, interval and effective sample size.

    --at prints the frequency at given scores only. If there are few distinct scores, the curve is defined
    at these scores only.

    \b
    Examples:
      calibrant curve predictions.csv
      calibrant curve predictions.csv --at 0.5,0.9 --notion classwise --json
      calibrant curve predictions.csv -o curve.png

    Pictures need the extra: pip install 'calibrant[plot]'.
    """
    if method == "bayes" and bandwidth is not None:
        raise click.UsageError("--bandwidth goes with --method density")
    by_density = method == "density" or bandwidth is not None
    if by_density and simultaneous:
        raise click.UsageError("--simultaneous goes with --method bayes")
    if as_csv and (as_json or at):
        raise click.UsageError("--csv prints the whole curve; give it without --json and --at")
    check_outputs([file, names_file(given["class_names"])], out, format=given["format"])
    check_drawable(out)
    settled(given, single_score=True)
    options: dict[str, Any] = {"level": given["level"], "rng": given["seed"]}
    if by_density:
        options |= {"method": "density", "bandwidth": bandwidth}
    if simultaneous:
        options |= {"band": "simultaneous"}

    def fitted(source: CommandInput, **progress: Any) -> Any:
        return source.call("reliability_curve", **options, **progress)

    source = read_source(file, given, fitted)
    with source.refusing(), Bar("resampling", given["quiet"]) as bar:
        result = fitted(source, progress=bar)
    curves: Mapping[Any, ReliabilityCurve] = result if isinstance(result, Mapping) else {result.label: result}
    points = [point for label, fit in curves.items() for point in _points(fit, label, at)]
    if as_csv:
        tell(_table(curves).rstrip("\n"))
    elif as_json and (at or out is not None):
        all_points = {"points": points} if len(points) > 1 else {}
        tell_json((points[0] if points else {}) | {"level": given["level"]} | source.about | all_points)
    elif as_json:
        measurement = [fit._thinned().to_dict() for fit in curves.values()]
        tell_json((measurement[0] if len(measurement) == 1 else {"curves": measurement}) | source.about)
    elif at or out is not None:
        for point in points:
            tell(_sentence(point, given["level"]))
    else:
        tell("\n\n".join(str(fit) for fit in curves.values()))
    if out is not None:
        kind = out.suffix.lower()
        write(out, _table(curves) if kind in TABLES else _picture(out, result))
        click.echo(
            printable(f"{'table' if kind in TABLES else 'picture'}: {out.resolve()}"), err=as_json or as_csv
        )


def _points(curve: ReliabilityCurve, label: Any, at: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    for score in at:
        point = curve.at(score)
        values = {"value": point.value, "low": point.low, "high": point.high, "n_eff": point.n_eff}
        # There is no NaN in JSON: where there are no rows there is no number.
        plain = {name: float(v) if math.isfinite(v) else None for name, v in values.items()}
        name = label.item() if hasattr(label, "item") else label
        yield {**plain, "score": score, "notion": curve.notion, "label": name, "discrete": curve.discrete}


def _sentence(point: dict[str, Any], level: float) -> str:
    requested = about(point["notion"], point["label"])
    if point["value"] is None:
        why = "does not occur" if point["discrete"] else "has no rows nearby"
        return f"score {point['score']:g}: {why} ({requested})"
    n = point["n_eff"]
    few = ", too few to tell" if n < REPORT.assessed_rows else ""
    rows = sample_size(n) if point["discrete"] else f"effective local sample size {n:,.0f}"
    frequency = with_interval(point["value"], point["low"], point["high"], level)
    return f"score {point['score']:g}: observed frequency {frequency}, {rows}{few} ({requested})"


def _picture(path: Path, result: Any) -> bytes:
    figure = new_figure(5, 5.5)
    if isinstance(result, Mapping):
        figure = result.plot().flat[0].figure  # type: ignore[attr-defined]
    else:
        result.plot(figure.subplots())
    return drawn(figure, path)


def _table(curves: Mapping[Any, ReliabilityCurve]) -> str:
    from calibrant.atomic import csv_text

    rows: list[tuple[Any, ...]] = [("label", "score", "value", "low", "high", "n_eff")]
    for label, curve in curves.items():
        assert curve.low is not None
        assert curve.high is not None
        columns = (curve.score, curve.value, curve.low, curve.high, curve.n_eff)
        for values in zip(*columns, strict=True):
            cells = ("" if math.isnan(v) else repr(float(v)) for v in values)
            rows.append(("" if label is None else label, *cells))
    return csv_text(rows)


@click.command(epilog=EXITS)
@options("file", "scores", "percent", "label", "pos_label", "sample_weight", "counts", "format", "notion")
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    metavar="NAME",
    help="An estimator to rank; may be repeated.  [default: nine estimators]",
)
@click.option(
    "--n", type=click.IntRange(1), metavar="N", help="Number of rows of a sample.  [default: that of FILE]"
)
@options("class_names", "seed", "json", "quiet")
def recommend(
    file: str,
    estimators: tuple[str, ...],
    n: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Rank estimators on the scores in FILE, by simulations with a known true error.

    No labels are needed.

    \b
    Examples:
      calibrant recommend predictions.csv
      calibrant recommend predictions.csv --n 200 --notion classwise
      calibrant recommend predictions.csv --estimator auto --estimator uniform:15 --json
    """
    given = settled(given, single_score=True)
    check_outputs([file], format=given["format"])
    data = read(file, given, labelled=False)[""]
    tell_cautions(data.cautions)
    with refusing(data.source, data.columns["scores"]), Bar("simulating", given["quiet"]) as bar:
        import calibrant

        ranking = calibrant.recommend(
            data.y_prob,
            n=n,
            notion=given["notion"],
            estimators=estimators or None,
            rng=given["seed"],
            progress=bar,
            class_names=read_class_names(given["class_names"]),
            **arguments(data),
        )
    if as_json:
        tell_json({"value": ranking.best} | ranking.to_dict() | origin(file, len(data.y_prob)))
    else:
        tell(ranking)


def _thresholds(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float] | None:
    """Read numbers separated by commas, or ranges low:high:step.

    >>> _thresholds(None, None, "0.05,0.1:0.3:0.1")
    [0.05, 0.1, 0.2, 0.3]
    """
    if value is None:
        return None
    thresholds: list[float] = []
    try:
        for text in value.split(","):
            low, high, step = map(float, text.split(":") if ":" in text else (text, text, "1"))
            count = min(int((high - low) / step + 1e-9), 1000)  # the library says how many are too many
            thresholds += [round(low + k * step, 12) for k in range(count + 1)]
    except (ValueError, ArithmeticError):
        thresholds = []
    if not thresholds:
        rule = "neither a list such as 0.05,0.1 nor a range such as 0.05:0.3:0.01"
        raise click.BadParameter(f"{value!r} is {rule}")
    return thresholds


@click.command(epilog=EXITS)
@options("path", "cost")
@click.option(
    "--thresholds",
    metavar="LIST",
    callback=_thresholds,
    help="Thresholds of the decision curve, such as 0.05,0.1,0.2 or the range 0.05:0.3:0.01 (low:high:step); "
    "prints net benefits with intervals too.  [default: 0.01:0.99:0.01]",
)
@options(*DATA, "class_names", "cluster", "notion", "level", "seed")
@output(
    "-o",
    "--out",
    suffixes=PICTURES,
    what="Draw net benefit and regret, or with --cost the cost, by threshold (png, svg or pdf).",
)
@options("json", "quiet")
def regret(
    file: str, cost: Any, thresholds: list[float] | None, out: Path | None, as_json: bool, **given: Any
) -> None:
    """Print the decision regret: the extra cost of acting on the scores in PATH instead of calibrated ones.

    With --cost the regret is in the unit of the costs, and the best threshold on the unchanged scores is
    printed too. Without it net benefit and regret are computed at every threshold (decision curve).

    \b
    Examples:
      calibrant regret predictions.csv --cost 1:9
      calibrant regret predictions.csv --cost costs.csv --json
      calibrant regret predictions.csv --thresholds 0.05,0.1,0.2 -o decisions.png
    """
    if cost is not None and thresholds is not None:
        raise click.UsageError("--thresholds goes without --cost, which implies a threshold")
    requested: dict[str, Any] = {"level": given["level"], "rng": given["seed"]}

    def answered(source: CommandInput) -> Any:
        return (
            source.call("regret_curve", thresholds=thresholds, **requested)
            if cost is None
            else source.call("regret", cost=cost, **requested)
        )

    check_outputs([file, names_file(given["class_names"])], out, format=given["format"])
    check_drawable(out)
    source = read_source(file, given, answered)
    with source.refusing():
        measurement = answered(source)
        best = benefit = None
        if thresholds is not None:
            benefit = source.call("net_benefit", thresholds=thresholds, level=given["level"])
        if cost is not None and measurement.threshold is not None:
            best = source.call("best_threshold", cost=cost, **requested)
        curve: Any = measurement if cost is None else None
        if out is not None and curve is None and best is None:
            curve = source.call("regret_curve", **requested)
    if best is None:
        save(out, curve, 4.5, 4.7, nrows=2, sharex=True)
    else:
        save(out, best, 4.5, 3.4)
    if as_json:
        parts = {"best": best, "net_benefit_table": benefit}
        about = {name: part.to_dict() for name, part in parts.items() if part is not None}
        tell_json(measurement.to_dict() | about | source.about)
        return
    tell("\n\n".join(str(part) for part in (measurement, benefit) if part is not None))
    if best is not None:
        tell(str(best))
