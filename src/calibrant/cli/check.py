"""The command that compares calibration with limits, for use as a release gate."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, F, names_file, options, output
from calibrant.cli.output import (
    MissingInput,
    Refused,
    check_outputs,
    ending,
    tell,
    tell_json,
    tell_verdict,
    write,
    writing,
)
from calibrant.cli.source import COLUMNS, CommandInput, name_of, noting, read_source, settled, sketches_of
from calibrant.inputs.wording import visible

if TYPE_CHECKING:
    from calibrant.assessment.gates import Gate, GateData

# What XML 1.0 cannot hold, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What Markdown, or the HTML in it, would take for more than a character.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>&#|~$@])")
USAGE = (
    "give a limit: --max-ece, --max-regret with --cost, --max-oe, --max-excess-log-loss, or --max-worse with "
    "--baseline"
)


def _check_limits(limits: Mapping[str, float], given: dict[str, Any], estimator: str) -> None:
    """Refuse no limit at all, options that go together and are alone, and limits that nothing can reach."""
    from calibrant.tasks import get_notion

    if not limits:
        raise click.UsageError(USAGE)
    for name, other in (("max_regret", "cost"), ("max_worse", "baseline")):
        if (name in limits) != (given[other] is not None):
            raise click.UsageError(f"--{name.replace('_', '-')} and --{other} go together")
    if estimator != "auto" and "max_ece" not in limits:
        raise click.UsageError(
            "--estimator goes with --max-ece: its value is printed beside the one that decides"
        )
    notion = settled(given)["notion"]
    largest = 1.0 if notion is None else get_notion(notion).max_error(given["norm"])
    for name, limit in limits.items():
        rule, hint = "is not above 0", ""
        valid = 0 < limit < math.inf
        if name in ("max_ece", "max_worse"):
            valid = 0 < limit <= largest or (limit == 0 and name == "max_worse")
            rule = f"does not lie in {'[' if name == 'max_worse' else '('}0, {largest:.4g}]"
            hint = f"; write {limit / 100:g}" if largest < limit <= 100 else ""
        elif name == "max_oe":
            valid, rule = 1 < limit < math.inf, "is not above 1"
            hint = f"; write {1 / limit:.4g}, which allows from {limit:g}" if 0 < limit < 1 else ""
        if not valid:
            option = f"'--{name.replace('_', '-')}'"
            context = click.get_current_context()
            raise click.BadParameter(f"{limit:g} {rule}{hint}", ctx=context, param_hint=option)


def _gate_data(source: CommandInput, name: str = "") -> GateData:
    """Return what limits are compared with: rows or sketches, and those of each group."""
    import numpy as np

    from calibrant import inputs
    from calibrant.assessment.gates import GateData
    from calibrant.inputs.clusters import cluster_ids
    from calibrant.tasks.task import class_names_of, read

    with source.refusing(), noting():
        if not source.options:
            (sketch,) = source.rows
            names = class_names_of(sketch, sketch.labels, source.class_names)
            groups = source.groups and {str(k): source.groups[k] for k in inputs.in_order([*source.groups])}
            return GateData(sketch, source.notion, groups, names, name)
        about: dict[str, Any] = {"y_true": source.rows[0], "y_prob": source.rows[1], **source.options}
        data = read(notion=source.notion.name, **about)
        groups, which = None, dict[str | None, Any]({None: slice(None)})
        if source.groups is not None:
            values, codes = inputs.groups_of_rows(source.groups, data)
            which |= {str(value): codes == k for k, value in enumerate(values)}
            groups = {key: inputs.select_rows(data, rows) for key, rows in which.items() if key is not None}
        units = np.flatnonzero(np.ones(data.n_passed) if data.kept is None else data.kept)
        if data.cluster is not None:
            units = cluster_ids(source.options["cluster"], data.kept, data.n_passed)
        names = inputs.class_names(data.labels, source.class_names)
        units_of = {key: units[rows] for key, rows in which.items()}
        return GateData(data, source.notion, groups, names, name, units_of, data.n_passed)


def junit(gate: Gate | str, source: str) -> bytes:
    """Return a JUnit report with a test for each verdict; or of the error that left none."""
    from xml.etree import ElementTree  # not at the top: every start of the program would pay for it

    def clean(text: str) -> str:
        return _ILLEGAL.sub("", text)

    verdicts = () if isinstance(gate, str) else gate.verdicts
    failed = sum(verdict.exit_code != 0 for verdict in verdicts)
    counts = {"tests": len(verdicts) or 1, "failures": failed, "errors": int(not verdicts), "skipped": 0}
    about = {"name": "calibrant check"} | {key: str(count) for key, count in counts.items()}
    suite = ElementTree.Element("testsuite", about)
    if isinstance(gate, str):
        case = ElementTree.SubElement(suite, "testcase", classname=clean(source), name="input")
        ElementTree.SubElement(case, "error", type="input", message=clean(gate))
    for verdict in verdicts:
        text = clean(f"{verdict.status.upper()}: {verdict.sentence}")
        bound = verdict.bound if verdict.name == "max_oe" else f"at most {verdict.bound}"
        group = "" if verdict.group is None else f"{verdict.group}: "
        name = clean(f"{group}{verdict.subject} {bound}")
        case = ElementTree.SubElement(suite, "testcase", classname=clean(source), name=name)
        if verdict.exit_code != 0:
            ElementTree.SubElement(case, "failure", type=verdict.status, message=text)
        ElementTree.SubElement(case, "system-out").text = text
    if not isinstance(gate, str) and gate.cautions:
        ElementTree.SubElement(suite, "system-out").text = clean("\n".join(gate.cautions))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="UTF-8", xml_declaration=True) + b"\n"


def markdown(gate: Gate | str, source: str) -> str:
    """Return a summary for the page of a build: the result, a table of all verdicts, and advice."""

    def plain(text: str) -> str:
        return _MARKUP.sub(r"\\\1", visible(text))

    title = f"calibration of {plain(source)}\n\n"
    if isinstance(gate, str):
        return f"## ERROR: {title}{plain(gate)}\n"
    worst, table = gate.worst, gate.table()
    lines = [f"| {' | '.join(map(plain, row))} |" for row in (table.head, *table.rows)]
    lines.insert(1, "|" + "---|" * len(table.head))
    notes = [plain(caution) for caution in gate.cautions]
    if len(gate.verdicts) > 1:
        notes = [
            plain(each.sentence) for each in gate.worst_first[:10] if each.status == "inconclusive"
        ] + notes
    if worst.status == "fail":
        notes.append(
            "`calibrant report` shows where the scores are off, and what recalibration would change."
        )
    text = f"## {worst.status.upper()}: {title}{plain(gate.sentence)}\n\n" + "\n".join(lines) + "\n"
    return text + "".join(f"\n- {note}" for note in notes) + "\n" * bool(notes)


@contextmanager
def _reporting(reports: Mapping[Path, Any], source: str) -> Iterator[None]:
    """Write into each report why there is no verdict: a build shows it, and keeps no result of before."""
    try:
        yield
    except Refused as error:
        for path, made in reports.items():
            write(path, made(error.message, source))
        raise


def _limit(name: str, what: str) -> Callable[[F], F]:
    return click.option(f"--{name}", type=float, metavar="LIMIT", help=what)


@click.command(
    epilog="Exit codes: 0 within all limits, 1 outside of a limit, 2 invalid input or usage, 3 inconclusive "
    "(an interval lies on both sides of its limit)."
)
@options("path")
@_limit("max-ece", "Largest allowed calibration error, such as 0.05.")
@_limit("max-regret", "Largest allowed decision regret per row, in the unit of --cost.")
@options("cost")
@_limit("max-oe", "Largest allowed ratio of observed to expected outcomes, or its inverse, such as 1.25.")
@_limit("max-excess-log-loss", "Largest allowed reduction of the log loss per row by recalibration.")
@click.option("--baseline", metavar="OLD", help="File of rows or sketch of an earlier model or sample.")
@_limit("max-worse", "Largest allowed difference from the error of --baseline.")
@options(*DATA, "groups", "class_names", "cluster", "notion", "estimator", "norm", "level", "seed")
@click.option(
    "--inconclusive",
    type=click.Choice(("pass", "fail")),
    help="Result if an interval lies on both sides of its limit.  [default: exit code 3]",
)
@output("--junit", "junit_path", what="Also write a JUnit report.")
@output("--markdown", "markdown_path", what="Also write a summary in Markdown.")
@options("json", "quiet")
def check(
    file: str,
    estimator: str,
    inconclusive: str | None,
    junit_path: Path | None,
    markdown_path: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Fail if the calibration error or the decision regret of PATH exceeds a limit.

    The confidence interval decides, not the estimate. The check passes if the upper end is within the
    limit, fails if the lower end is above, and is inconclusive otherwise. With several limits the worst
    result sets the exit code.

    With --baseline rows are paired by --cluster if the files have clusters in common. Without it they are
    paired if the labels are the same row by row or, with --correct and --confidence, if there are
    equally many answers. Otherwise the files are treated as independent samples. With --groups every
    group is compared with the limits, with simultaneous intervals, and the check fails if any group fails.

    The decision always uses the interval of the default estimator. With --max-ece the value of another
    --estimator is printed in addition.

    \b
    Examples:
      calibrant check predictions.csv --max-ece 0.05
      calibrant check new.csv --baseline old.csv --max-worse 0.02 --junit gate.xml --markdown gate.md
      calibrant check predictions.csv --groups region --max-oe 1.25
    """
    from calibrant.assessment.gates import LIMITS, hold

    limits = {name: given[name] for name in LIMITS if given[name] is not None}
    _check_limits(limits, given, estimator)
    baseline = given["baseline"]
    reports = {
        path: made for path, made in ((junit_path, junit), (markdown_path, markdown)) if path is not None
    }
    missing = None
    try:
        check_outputs([file, baseline, names_file(given["class_names"])], *reports, format=given["format"])
    except MissingInput as error:
        missing = error
    for path in filter(Path.is_file, reports):
        # What an earlier run found must not be taken for this one's, whatever happens.
        with writing(path):
            os.unlink(os.path.realpath(path))

    def holding(source: CommandInput, base: GateData | None = None) -> Gate:
        with source.refusing(), noting():
            data = _gate_data(source, name_of(file))
            return hold(
                data,
                {name: limit for name, limit in limits.items() if name != "max_worse" or base is not None},
                cost=given["cost"],
                labels=source.options.get("labels"),
                baseline=base,
                inconclusive=inconclusive,
                estimator=estimator,
                norm=given["norm"],
                level=given["level"],
                rng=given["seed"],
            )

    with _reporting(reports, name_of(file)):
        if missing is not None:
            raise missing
        as_rows = "max_excess_log_loss" in limits
        source = read_source(file, given, holding, as_rows=as_rows)
        base = None
        if baseline is not None:
            columns = dict.fromkeys(COLUMNS) if sketches_of(baseline) else {}
            if columns and given["groups"] is not None:
                raise Refused(f"{baseline}: is a sketch, which has no groups")
            base = _gate_data(read_source(baseline, given | columns, as_rows=as_rows), name_of(baseline))
        gate = holding(source, base)
    for path, made in reports.items():
        write(path, made(gate, source.about["source"]))
    with ending(gate.worst.exit_code):
        if as_json:
            tell_json(gate.to_dict() | source.about)
        else:
            tell_verdict(gate.worst.status, gate.sentence)
            if text := str(gate):
                tell(text)
