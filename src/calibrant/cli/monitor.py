"""The command that monitors calibration over time."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from calibrant.cli.options import DATA, PAGES, check_suffix, options, output
from calibrant.cli.output import Refused, check_outputs, note, printable, tell, tell_json, write, writing
from calibrant.cli.paths import files_of
from calibrant.cli.progress import Bar
from calibrant.cli.source import _request, load_sketches, name_of, read_rows, refusing, settled, stem_of
from calibrant.inputs.wording import counted

if TYPE_CHECKING:
    from calibrant import Monitor

# A date, or a date with an hour, in a path.
_DATE = re.compile(r"(?<!\d)(\d{4})-?([01]\d)-?([0-3]\d)(?:[T_ ]([0-2]\d))?(?!\d)")
PERIODS = {"hour": "datetime64[h]", "day": "datetime64[D]", "week": "datetime64[D]"}
#: Options of the null hypothesis, which a state file keeps.
SETTINGS = ("alpha", "tolerance", "reference", "delay", "horizon")


@dataclass
class Period:
    """A period to look at: its files, or its rows among those of a table."""

    at: str
    files: tuple[str, ...] = ()
    rows: Any = None


def periods_of_paths(files: Sequence[str]) -> list[Period]:
    """Return the files of each date that their paths name, in the order of time.

    >>> [(each.at, len(each.files)) for each in periods_of_paths(["b/dt=2026-05-05/1.csv", "2026-05-04.csv"])]
    [('2026-05-04', 1), ('2026-05-05', 1)]
    """
    by_date: dict[str, list[str]] = {}
    for file in files:
        date = next(filter(None, map(_DATE.search, reversed(Path(file).parts))), None)
        if date is None:
            if not Path(file).exists():
                raise Refused(f"cannot read {file}: No such file or directory")
            raise Refused(f"{file}: no part of the path is a date; name a column by --time, or files by date")
        year, month, day, hour = date.groups()
        by_date.setdefault(f"{year}-{month}-{day}" + (f"T{hour}" if hour else ""), []).append(file)
    return [Period(at, tuple(sorted(by_date[at]))) for at in sorted(by_date)]


def periods_of_times(times: Any, every: str) -> list[Period]:
    """Return the rows of each period, by the time of each row.

    >>> [each.at for each in periods_of_times(["2026-05-12 10:00", "2026-05-06", "2026-05-04"], "week")]
    ['2026-05-04', '2026-05-11']
    """
    try:
        texts = [str(each).removesuffix("Z") for each in np.asarray(times).tolist()]
        values = np.array(texts, "datetime64[s]")
    except ValueError as error:
        raise Refused(f"--time must name a column of dates or times: {error}") from None
    if (lost := np.isnat(values)).any():
        raise Refused(f"--time must be known for each row, got none in row {int(lost.argmax()) + 1}")
    starts = values.astype(PERIODS[every])
    if every == "week":
        starts = starts - (starts.astype(int) + 3) % 7
    return [Period(str(start), rows=starts == start) for start in np.unique(starts)]


def _marks(files: Sequence[str], known: Mapping[str, Any]) -> dict[str, tuple[int, int, str]]:
    """Return size, time of change and SHA-256 of files; those that look as before are not read."""
    marks = {}
    for file in files:
        about, path = os.stat(file), os.path.realpath(file)
        before = tuple(known.get(path, (None, None, "")))
        if before[:2] != (about.st_size, about.st_mtime_ns):
            with open(file, "rb") as data:
                before = about.st_size, about.st_mtime_ns, hashlib.file_digest(data, "sha256").hexdigest()
        marks[path] = before
    return marks


def _locked(state: Path | None) -> AbstractContextManager[object]:
    """Keep other runs from a state file."""
    if state is None:
        return nullcontext()
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise Refused("--state needs filelock; pip install 'calibrant[monitor]'") from None
    try:
        return FileLock(f"{state}.lock").acquire(timeout=0)
    except Timeout:
        raise Refused(f"{state}: another run is using it") from None


def _load(state: Path | None, given: Mapping[str, Any]) -> tuple[Monitor, dict[str, Any]]:
    """Return the monitor of a state file, or a new one, and the marks of the files that it has read."""
    from calibrant import Monitor
    from calibrant.inputs.codec import from_text
    from calibrant.monitor.state import State

    chosen = {name: given[name] for name in SETTINGS if given[name] is not None}
    if state is None or not state.exists():
        return Monitor(given["notion"], **chosen), {}
    with refusing(str(state)):
        values = from_text(state.read_bytes(), "state")
        keys = {*values} if isinstance(values, dict) else set()
        if not keys & {"monitor", "files"}:
            hint = " that the command wrote; Monitor.load reads it" if "settings" in keys else ""
            raise Refused(f"{state}: is no state of a monitor{hint}")
        saved = State.from_dict(values)
        monitor = Monitor._of(saved.monitor)
    for name, value in chosen.items():
        if (before := getattr(monitor.settings, name)) != value:
            hint = "a changed null hypothesis needs a new state, and spends new alpha"
            raise Refused(f"--{name} must be {before}, as in {state.name}, got {value}; {hint}")
    return monitor, dict(saved.files)


def _rows(monitor: Monitor, period: Period, given: dict[str, Any], table: Any) -> tuple[Any, dict[str, Any]]:
    """Return what `Monitor.update` takes of a period: labels and scores or sketches, and options."""
    from calibrant.data import stream
    from calibrant.data.files import is_sketch

    if table is None and all(map(is_sketch, period.files)):
        return (load_sketches(period.files),), {}
    if table is None and given["cluster"] is None:
        streamed = stream(period.files, _request(given), format=given["format"])
        return ({group: sketch for group, sketch in streamed.sketches.items() if sketch.totals.rows},), {}
    if table is None and len(period.files) > 1:
        raise Refused(f"{period.at}: has several files, and --cluster needs one for each period")
    source = read_rows(period.files[0], given) if table is None else table
    settings, chosen = source.options, slice(None) if period.rows is None else period.rows
    monitor._settle(settings["labels"], settings["pos_label"], source.notion.name)
    columns = {name: settings.get(name) for name in ("cluster", "sample_weight", "counts")}
    columns["groups"] = source.groups if table is None else source.by.get(given["groups"])
    options = {name: each[chosen] for name, each in columns.items() if each is not None}
    return [each[chosen] for each in source.rows], options | {"missing": settings["missing"]}


@click.command(epilog="Exit codes: 0 no alarm, 1 alarm, 2 invalid input or usage.")
@options("path", *DATA, "groups", "cluster", "notion")
@click.option("--time", metavar="COLUMN", help="Column of dates or times, of a single table.")
@click.option("--every", type=click.Choice(tuple(PERIODS)), default="day", show_default=True, help="Period.")
@click.option("--alpha", type=float, help="Largest probability of a false alarm.  [default: 0.05]")
@click.option("--tolerance", type=float, help="Allowed difference in log-odds.  [default: 0]")
@click.option(
    "--reference",
    type=int,
    metavar="N",
    help="Compare with the first N periods instead of the scores; detects large changes only.",
)
@click.option("--delay", type=float, metavar="DAYS", help="Days after which all labels are known.")
@click.option(
    "--horizon", type=int, metavar="N", help="Periods within which a change is most expected.  [default: 365]"
)
@output("--state", what="File with the state, so that the next run reads new periods only.")
@click.option("--now", metavar="TIME", help="Present time, for --delay.  [default: the system time]")
@output("-o", "--out", what="Where to write the page.  [default: PATH's name, or files, with -monitor.html]")
@options("json", "quiet")
def monitor(
    file: str, time: str | None, every: str, state: Path | None, now: str | None, out: Path | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Monitor the calibration of PATH over time, and raise an alarm when it changes.

    PATH is a set of files, sketches or partitions with a date in their paths, such as
    dt=2026-05-04/part.parquet, or one table with --time. The probability of a false alarm is at most --alpha
    for any number of runs. With --state each period is read once, and a period that has changed since is
    refused. Late rows must form their own period.

    \b
    Examples:
      calibrant monitor predictions/ --delay 7 --state monitor.json -o monitor.html
      calibrant monitor 2026-05-*.sketch --tolerance 0.3
      calibrant monitor predictions.csv --time scored_at --every week --groups country
    """
    from calibrant.data.files import expanded
    from calibrant.monitor.history import closes, moment
    from calibrant.monitor.state import State

    where = out or Path(f"{stem_of(file)}-monitor.html")
    check_suffix(where, PAGES)
    given = settled(given, single_score=True)
    check_outputs([file], where, state, format=given["format"])
    if time is not None and given["groups"] is not None and time == given["groups"]:
        raise click.UsageError("--time and --groups must be two columns")
    with _locked(state), refusing(name_of(file)):
        watched, files = _load(state, given)
        table = None
        if time is None:
            paths = [path for each in files_of(file) for path in expanded(each, given["format"])]
            periods = periods_of_paths(paths)
        else:
            columns = (time,) if given["groups"] is None else (time, given["groups"])
            table = read_rows(file, given | {"by": columns, "groups": None})
            periods = periods_of_times(table.by[time], every)
        present = np.datetime64(str(moment("now" if now is None else now, "--now")))
        known, delay = {batch.at: batch for batch in watched._batches}, watched.settings.delay
        # A week is named by its first day, and ends six days after it.
        extra = 6 * (every == "week")
        waiting = [] if delay is None else [p for p in periods if closes(p.at, delay + extra) > present]
        fresh = [each for each in periods if each not in waiting and each.at not in known]
        for period in (each for each in periods if each.at in known):
            before = files.get(period.at, {})
            marks = _marks(period.files, before)
            same = sorted(m[2] for m in before.values()) == sorted(m[2] for m in marks.values())
            if table is not None:
                rows, options = _rows(watched, period, given, table)
                same = watched._read(period.at, *rows, **options)[1].digest == known[period.at].digest
            if not same:
                hint = "late rows must form their own period"
                raise Refused(f"{period.at}: has changed since it was read; {hint}")
        with Bar("reading", given["quiet"]) as bar:
            for done, period in enumerate(fresh, 1):
                # Before it is read: what changes meanwhile is seen by the next run.
                files[period.at] = _marks(period.files, {})
                with refusing(period.at):
                    rows, options = _rows(watched, period, given, table)
                    watched.update(*rows, at=period.at, now=present, **options)
                bar(done, len(fresh))
        if not watched.history:
            raise Refused(f"no period has closed, of {counted(len(periods), 'period')}")
        with writing(where):
            watched.to_html(where)
        if state is not None and fresh:
            write(state, State.of(watched._state, files).to_json())
    if waiting:
        size = counted(len(waiting), "period")
        note(f"caution: {size} must wait for labels, from {waiting[0].at} on")
    if as_json:
        about: dict[str, Any] = {"alarm": None if watched.alarm is None else watched.alarm.to_dict()}
        about |= {"new": len(fresh), "waiting": len(waiting), "source": name_of(file)}
        about |= {"flagged": {str(group): at for group, at in watched.flagged.items()}}
        about |= {"e_value": watched.e_value, "limit": watched.limit, "batches": len(watched.history)}
        tell_json(about | {"cautions": list(watched.cautions)})
    else:
        tell(str(watched))
        click.echo(printable(f"page: {where.resolve()}"))
    raise SystemExit(1 if watched.alarm is not None else 0)
