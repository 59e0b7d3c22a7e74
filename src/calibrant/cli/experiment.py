"""The commands of the experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import check_suffix, output, quiet, seed
from calibrant.cli.output import (
    PICTURES,
    Refused,
    check_outputs,
    drawn,
    line,
    note,
    printable,
    write,
    writing,
)
from calibrant.cli.progress import Bar
from calibrant.cli.support import check_runs, cluster, need, resumable, working

if TYPE_CHECKING:
    from calibrant.experiment import Settings, Store, Summary

PRESETS = ("smoke", "quick", "paper", "confirm")
READINGS = ("published", "corrected", "normalised")
MEANS = {"code": -1.0, "text": 0.0}
# Failures shown at most.
SHOWN = 20


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Read values separated by commas, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in value.split(","))) if value is not None else ()
    if "" in names:
        raise click.BadParameter(f"{value!r} has an empty entry")
    return names


def _sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(size) for size in _names(ctx, param, value)}))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 30,100,500") from None


@click.group("experiment", context_settings={"help_option_names": ["-h", "--help"]})
def group() -> None:
    """Compare estimators on models whose true calibration error is known.

    This is the experiment of "Estimating Expected Calibration Errors". It draws Gaussian mixtures, trains
    small classifiers on them, computes the true error of each from millions of rows, and measures the
    error of every estimator on samples of 30 to 500 rows.

    \b
    An example that takes a few seconds:
      calibrant experiment run --preset smoke --out run
      calibrant experiment table run
      calibrant experiment figure run

    Needs the extra: pip install 'calibrant[experiment]'.
    """


@group.command(epilog="Stopped or killed, the same command goes on where it was.")
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    required=True,
    help="smoke: 4 models, seconds. quick: 36 models, minutes. paper: the paper's 540 models, hours.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of the run, new or to be resumed.",
)
@click.option(
    "--jobs",
    type=click.IntRange(-1),
    default=1,
    show_default=True,
    help="Models computed in parallel; -1: one per core.",
)
@click.option("--backend", metavar="NAME", help="A joblib backend: loky (the default), threading, ...")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Compute on the Dask cluster at this address, such as tcp://host:8786.",
)
@click.option(
    "--estimators",
    callback=_names,
    metavar="A,B,...",
    help="Estimators, such as l:10, ac:sqrt or d:0.1, or custom ones as package.module.MyEstimator (a class, "
    "value or function).  [default: auto and the fifteen of the paper]",
)
@click.option("--extra-estimators", callback=_names, metavar="A,B,...", help="Additional estimators.")
@click.option(
    "--notion",
    "notions",
    type=click.Choice(("confidence", "classwise")),
    multiple=True,
    help="Notion of calibration; may be repeated.  [default: both]",
)
@click.option(
    "--families",
    callback=_names,
    metavar="A,B,...",
    help="logistic, naive-bayes, svc, forest, or custom ones as package.module.function.",
)
@click.option(
    "--means",
    type=click.Choice(tuple(MEANS)),
    help="Means of the mixtures: uniform in [-1, 1] as in the authors' code, "
    "or in [0, 1] as in the paper's text.  [default: code]",
)
@click.option("--sizes", callback=_sizes, metavar="N,N,...", help="Numbers of rows of a sample.")
@click.option("--repetitions", type=click.IntRange(1), metavar="N", help="Number of samples of each size.")
@click.option(
    "--holdout", type=click.IntRange(1), metavar="N", help="Number of rows that determine the true error."
)
@quiet("Print only the path of the table, and failures.")
def run(
    preset: str,
    out: Path,
    jobs: int,
    backend: str | None,
    scheduler: str | None,
    quiet: bool,
    means: str | None,
    **changes: Any,
) -> None:
    """Compute all models of a preset, which the options can change.

    Results are written to DIR, with a file for each model. They do not depend on --jobs, --backend or
    interruptions. Custom estimators and families are imported from the current directory or from
    installed packages.

    \b
    Examples:
      calibrant experiment run --preset smoke --out run
      calibrant experiment run --preset paper --out paper --jobs -1
      calibrant experiment run --preset quick --out mine --extra-estimators mypackage.MyEstimator
    """
    if jobs == 0:
        raise click.BadParameter("0 is neither a number of models nor -1", param_hint="'--jobs'")
    if scheduler and backend not in (None, "dask"):
        raise click.UsageError(f"--scheduler goes with --backend dask, not {backend}")
    if backend == "dask" and not scheduler:
        raise click.UsageError("--backend dask needs --scheduler ADDRESS")
    with working(), resumable():
        need("joblib", "sklearn", "filelock")
        from calibrant import experiment

        settings = _settings(preset, means, changes)
        problems: dict[str, str] = {}
        with cluster(scheduler), Bar("models", quiet, resumed=True) as bar:

            def report(done: int, total: int, text: str) -> None:
                bar(done, total)
                if text:
                    name, _, problem = text.partition(": ")
                    problems[name] = problem

            name = "dask" if scheduler else backend
            store = experiment.run(settings, out, jobs=jobs, backend=name, progress=report)
        failed = _tell_failures(settings, store, problems)
        table = store.folder / "results.csv.gz"
    if not quiet:
        click.echo(f"{len(settings.tasks()) - failed} of {len(settings.tasks())} models done")
    click.echo(printable(f"table: {table.resolve()}"))
    if failed:
        raise SystemExit(1)


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_run = click.argument("folder", type=FOLDER, metavar="DIR")


@group.command()
@_run
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A picture (png, pdf or svg) of one reading, or a folder for all of them.  [default: DIR/figures]",
)
@click.option(
    "--reading",
    type=click.Choice(READINGS),
    help="The reading to draw, as for table.  [default: corrected for a picture, all for a folder]",
)
def figure(folder: Path, out: Path | None, reading: str | None) -> None:
    """Draw the paper's Figure 2 and its corrected readings from the run in DIR.

    For an unfinished run the models that are available are used.

    \b
    Examples:
      calibrant experiment figure run
      calibrant experiment figure run -o figure2.pdf --reading published
    """
    out = out or folder / "figures"
    if out.suffix and not out.is_dir():
        check_suffix(out, PICTURES)
        paths = {reading or "corrected": out}
    else:
        paths = {each: out / f"figure2_{each}.png" for each in ([reading] if reading else READINGS)}
    with working():
        need("matplotlib")
        summary = _summary(folder)
        from calibrant.experiment import figures

        next(iter(paths.values())).parent.mkdir(parents=True, exist_ok=True)
        check_runs([folder], *paths.values())
        for reading, path in paths.items():
            write(path, drawn(figures.figure2(summary, reading), path))
            click.echo(printable(f"picture: {path.resolve()}"))


@group.command()
@output(
    "-o",
    "--out",
    suffixes=PICTURES,
    default="figure1.png",
    show_default=True,
    what="Where to write the picture (png, pdf or svg).",
)
@seed("Seed of data and bootstrap.")
def figure1(out: Path, seed: int) -> None:
    """Draw the paper's Figure 1: diagram, curve and bootstrapped curve. Needs no run."""
    check_outputs([], out)
    with working():
        need("matplotlib", "sklearn")
        from calibrant.experiment import figures

        picture = figures.figure1(seed)
    write(out, drawn(picture, out))
    click.echo(printable(f"picture: {out.resolve()}"))


@group.command()
@_run
@output(
    "-o",
    "--out",
    suffixes=(".csv", ""),
    what="Path of a CSV file with all readings.  [default: DIR/summary.csv]",
)
@click.option(
    "--reading",
    type=click.Choice(READINGS),
    default="corrected",
    show_default=True,
    help="published: the authors' estimators and the paper's true error. corrected: the estimators of "
    "calibrant and the exact true error. normalised: these errors divided by the true error.",
)
def table(folder: Path, out: Path | None, reading: str) -> None:
    """Print the accuracy of each estimator, and save the summary.

    The error is the 95th percentile of the absolute error over repeated samples of n rows, as a median
    over the models of the run in DIR. There are two baselines without data: zero, and the constant that
    is best in hindsight. The skill is relative to the latter. The last table has the share of pairs of
    models whose estimates are in the order of the true errors.
    """
    out = out or folder / "summary.csv"
    check_runs([folder], out)
    with working():
        summary = _summary(folder)
        if reading not in summary.values:
            raise ValueError(f"{folder} has no reading {reading!r}, only {', '.join(summary.values)}")
        for text in _lines(summary, reading):
            click.echo(text)
        with writing(out):
            summary.write(out)
        click.echo(printable(f"table: {out.resolve()}"))


@group.command()
@_run
@output("-o", "--out", what="Also write the table to this file.")
def claims(folder: Path, out: Path | None) -> None:
    """Check the claims of the paper about its Figure 2 with the run in DIR.

    Prints a Markdown table of the claims, with the result and the numbers for each reading. The run must
    have at least six distributions, as with --preset quick.
    """
    check_runs([folder], out)
    with working():
        summary = _summary(folder)
        from calibrant.experiment import claims as paper

        text = paper.to_markdown(paper.claims(summary))
        click.echo(text)
        if out is not None:
            write(out, f"{paper.about(summary)}\n\n{text}")
            note(printable(f"claims: {out.resolve()}"))


def _three_numbers(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(number) for number in value.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3 or min(numbers) < 2:
        raise click.BadParameter(f"{value!r} is not three whole numbers from 2, such as 100,60,20")
    return numbers


@group.command()
@click.argument("folders", type=FOLDER, nargs=-1, required=True, metavar="DIR...")
@output("-o", "--out", what="Path of the output, JSON if the suffix is .json.  [default: print it]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of Markdown.")
@click.option(
    "--repetitions",
    callback=_three_numbers,
    default="100,60,20",
    show_default=True,
    metavar="A,B,C",
    help="Numbers of samples of 200, 1000 and 10000 rows on the families with a known bound.",
)
@click.option("--no-exact", is_flag=True, help="Leave out the families with a known bound.")
@seed("Seed of the samples of these families.")
@quiet()
def leaderboard(
    folders: tuple[Path, ...],
    out: Path | None,
    as_json: bool,
    repetitions: tuple[int, ...],
    no_exact: bool,
    seed: int,
    quiet: bool,
) -> None:
    """Rank every estimator of the run in DIR, and those of the registry against a known bound.

    Several runs over the same models are merged: the second can hold other estimators, with fewer
    sizes or samples. An estimator of several runs counts in the first.

    \b
    Examples:
      calibrant experiment leaderboard run -o leaderboard.md
      calibrant experiment leaderboard run later -o leaderboard.json
    """
    check_runs(folders, out)
    with working():
        from calibrant.experiment import Store, Summary, page
        from calibrant.experiment import leaderboard as ranking
        from calibrant.experiment.families import EXACT, LOCAL

        summaries = [Summary.of(Store(folder)) for folder in folders]
        board = ranking.board(summaries)
        if not no_exact:
            times = dict(zip(ranking.REPETITIONS, repetitions, strict=True))
            parts = []
            for name, families in (("regular", EXACT), ("local", LOCAL)):
                with Bar(f"{name} families", quiet) as bar:
                    chosen = tuple(families.values())
                    parts.append(ranking.exact_families(None, times, families=chosen, seed=seed, report=bar))
            board = replace(board, exact=parts[0], local=parts[1])
        names = [folder.absolute().name for folder in folders]
        if as_json or (out is not None and out.suffix == ".json"):
            text = page.to_json(board, names)
        else:
            # No page should hold the paths of the machine it was made on.
            where = "" if out is None else out.name if out.is_absolute() else str(out)
            text = page.to_markdown(board, names, where)
        if out is None:
            click.echo(text, nl=False)
        else:
            write(out, text)
            click.echo(printable(f"leaderboard: {out.resolve()}"))


def _settings(preset: str, means: str | None, changes: dict[str, Any]) -> Settings:
    """Return the preset with what the options change."""
    from calibrant.experiment import PRESETS as known

    start = known[preset]
    fields = {"holdout": "n_holdout"}
    values = {fields.get(name, name): value for name, value in changes.items() if value}
    extra = values.pop("extra_estimators", ())
    if extra:
        values["estimators"] = tuple(dict.fromkeys((*values.get("estimators", start.estimators), *extra)))
    if means is not None:
        values["low"] = MEANS[means]
    try:
        return replace(start, **values)
    except (ValueError, TypeError) as error:
        raise Refused(error) from None


def _summary(folder: Path) -> Summary:
    from calibrant.experiment import Store, Summary

    return Summary.of(Store(folder))


def _lines(summary: Summary, reading: str) -> Iterator[str]:
    """Yield tables for each notion: a line for each estimator, a column for each size."""
    from calibrant.experiment.summary import BASELINES

    settings = summary.settings
    for notion in settings.notions:
        failed, sizes = summary.failed(reading, notion), len(settings.sizes)
        constants = zip(BASELINES, summary.constants[reading, notion], strict=True)
        added = [f"{name} ({value:.3f})" if value else name for name, value in constants]
        errors = [[error] * sizes for error in summary.baselines(reading, notion)]
        names = (*settings.estimators, *added)
        wide = max(len(name) for name in (*names, "estimator"))
        tables: dict[str, Any] = {
            "median over {} models of the 95th percentile error": [*summary.median(reading, notion), *errors],
            "skill over {} models: 1 - error / error of the best constant": summary.skill(reading, notion),
            "share of pairs of {} models in the right order": summary.ordered(reading, notion),
        }
        for title, table in tables.items():
            yield f"{notion}, {reading}: {title.format(len(summary.models))}"
            yield " ".join(["estimator".ljust(wide), *(f"{n:>7}" for n in settings.sizes)])
            bad: list[Any] = [*failed, *[[0] * sizes] * len(added)]
            for name, row, counts in zip(names, table, bad, strict=False):
                cells = (_cell(value, count) for value, count in zip(row, counts, strict=True))
                yield " ".join([name.ljust(wide), *cells])
            yield ""
        counts = zip(settings.estimators, failed.sum(axis=1), strict=True)
        listed = [f"{name} ({count})" for name, count in counts if count]
        if listed:
            yield f"samples without an estimate, whose models count as infinitely wrong: {', '.join(listed)}"
            yield ""


def _cell(value: float, failed: int) -> str:
    """Return a number of the table in seven characters."""
    if value != value:
        return f"{'failed' if failed else '-':>7}"
    return f"{value:7.4f}" if abs(value) < 10 else f"{value:7.3g}"


def _tell_failures(settings: Settings, store: Store, problems: dict[str, str]) -> int:
    """Say what failed; return the number of tasks without a result."""
    missing = [task.name for task in settings.tasks() if not store.finished(task)]
    texts = [f"failed: {name}: {problems.get(name, 'no result')}" for name in missing]
    count = Counter(text for result in store.results() for text in result.failures)
    texts += [f"failed: {text} ({models} models)" for text, models in sorted(count.items())]
    for text in texts[:SHOWN]:
        note(line(text))
    if len(texts) > SHOWN:
        note(f"failed: and {len(texts) - SHOWN} more")
    return len(missing)
