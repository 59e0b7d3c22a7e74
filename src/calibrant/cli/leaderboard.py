"""The command that ranks the estimators of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from calibrant.cli.options import output, quiet, seed
from calibrant.cli.output import printable, write
from calibrant.cli.progress import Bar
from calibrant.cli.support import check_runs, importable, one_line


def _whole(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(number) for number in value.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3 or min(numbers) < 2:
        raise click.BadParameter(f"{value!r} is not three whole numbers from 2, such as 100,60,20")
    return numbers


@click.command()
@click.argument(
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    nargs=-1,
    required=True,
    metavar="DIR...",
)
@output("-o", "--out", what="Write it here; as JSON if the name ends in .json.  [default: print it]")
@click.option("--json", "as_json", is_flag=True, help="JSON in place of Markdown.")
@click.option(
    "--repetitions",
    callback=_whole,
    default="100,60,20",
    show_default=True,
    metavar="A,B,C",
    help="Samples of 200, 1000 and 10000 rows on the families with a known bound.",
)
@click.option("--no-exact", is_flag=True, help="Leave those families out.")
@seed("Seed of their samples.")
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
    with importable(), one_line():
        from calibrant.experiment import Store, Summary, page
        from calibrant.experiment import leaderboard as ranking
        from calibrant.experiment.families import EXACT, LOCAL

        summaries = [Summary.of(Store(folder)) for folder in folders]
        board = ranking.board(summaries)
        if not no_exact:
            with Bar("cells", quiet) as bar:
                times = dict(zip(ranking.REPETITIONS, repetitions, strict=True))
                families = [*EXACT.values(), *LOCAL.values()]
                found = ranking.exact_families(repetitions=times, families=families, seed=seed, report=bar)
                board = replace(board, exact=found.only(EXACT), local=found.only(LOCAL))
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
