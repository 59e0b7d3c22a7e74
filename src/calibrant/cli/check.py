"""The command that gates a build on the calibration error, or on what it costs."""

from __future__ import annotations

import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, names_file, options, output
from calibrant.cli.output import (
    check_outputs,
    coloured,
    discard,
    printable,
    tell,
    tell_json,
    write,
    writing,
)
from calibrant.cli.source import CommandInput, read_source, settled
from calibrant.inputs.printed import as_text
from calibrant.inputs.wording import counted, number, sample_size, with_interval

if TYPE_CHECKING:
    from calibrant import Estimate

CODES = {"pass": 0, "fail": 1, "inconclusive": 3}
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
# Beyond this many rows nobody should be sent to find them.
MOST_ROWS = 1e9
# What XML 1.0 cannot hold, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def status_of(low: float, high: float, limit: float) -> str:
    """Return where an interval lies: "pass" within a limit, "fail" above it, else "inconclusive".

    >>> status_of(0.01, 0.02, 0.02), status_of(0.03, 0.05, 0.02), status_of(0.01, 0.03, 0.02)
    ('pass', 'fail', 'inconclusive')
    """
    if high <= limit:
        return "pass"
    return "fail" if low > limit else "inconclusive"


def tell_verdict(status: str, sentence: str) -> None:
    """Print a verdict, its first word in colour on a terminal."""
    word = click.style(status.upper(), fg=COLOURS[status], bold=True) if coloured() else status.upper()
    click.echo(f"{word}: {printable(sentence)}")


def _check_limits(limit: float | None, most: float | None, cost: Any, given: dict[str, Any]) -> None:
    """Refuse none or both of the limits, costs that no limit is of, and a limit that no error can reach."""
    from calibrant.tasks import get_notion

    if (limit is None) == (most is None):
        raise click.UsageError("give one limit: --max-ece, or --max-regret with --cost")
    if (most is None) != (cost is None):
        raise click.UsageError("--max-regret and --cost go together")
    context = click.get_current_context()
    if most is not None and not 0 < most < math.inf:
        raise click.BadParameter(f"{most:g} is not above 0", ctx=context, param_hint="'--max-regret'")
    if limit is not None:
        notion = settled(given)["notion"]
        largest = 1.0 if notion is None else get_notion(notion).max_error(given["norm"])
        if not 0 < limit <= largest:
            hint = f"; write {limit / 100:g}" if largest < limit <= 100 else ""
            reason = f"{limit:g} does not lie in (0, {largest:.4g}]{hint}"
            raise click.BadParameter(reason, ctx=context, param_hint="'--max-ece'")


@dataclass(frozen=True)
class Verdict:
    """A calibration error, by the default estimator, held against a limit."""

    measured: Any  # the value with its interval
    limit: float
    inconclusive: str | None = None  # what an interval on both sides of the limit counts as
    named: Estimate | None = None  # the estimate by another estimator, which is printed and does not decide

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; of too many classes to see all of the error only a bound from below is known."""
        if self.measured.lower_bound:
            return self.measured.at_least or 0.0, math.inf
        return self.measured.low, self.measured.high

    @property
    def called(self) -> str:
        """The error, by its norm and notion."""
        from calibrant.inference.result import NAMES

        return f"{NAMES[self.measured.norm]} ({self.measured.about})"

    @property
    def shown(self) -> str:
        """Value and interval, and what they are worth."""
        estimate = self.measured
        seen = "" if not estimate.lower_bound else " of the part that can be estimated with so many classes"
        seen += "" if estimate.at_least is None else f", at least {number(estimate.at_least)},"
        return f"{with_interval(estimate.value, estimate.low, estimate.high, estimate.level)}{seen}"

    @property
    def size(self) -> str:
        """Number of rows, and of clusters."""
        return sample_size(self.measured.n, self.measured.clusters)

    @property
    def test(self) -> str:
        """What the test of a JUnit report is called."""
        return f"ECE ({self.measured.notion})"

    @property
    def status(self) -> str:
        """Say where the interval lies: "pass" within the limit, "fail" above it, else "inconclusive"."""
        return status_of(*self.ends, self.limit)

    @property
    def exit_code(self) -> int:
        """Return 0, 1 or 3; what is inconclusive may count as one of the others."""
        if self.status == "inconclusive" and self.inconclusive is not None:
            return CODES[self.inconclusive]
        return CODES[self.status]

    @property
    def rows(self) -> float:
        """Guess the rows at which the interval would lie on one side, if the estimate stayed."""
        result = self.measured
        above = result.value > self.limit
        arm = result.value - result.low if above else result.high - result.value
        distance = abs(self.limit - result.value)
        return result.n * (arm / distance) ** 2 if distance > 0 else math.inf

    @property
    def sentence(self) -> str:
        """Return the verdict without its first word."""
        where = {
            "pass": "is within",
            "fail": "is above",
            "inconclusive": "may be above" if self.measured.lower_bound else "lies on both sides of",
        }[self.status]
        text = f"{self.called} {self.shown} {where} {self.limit:g}; {self.size}"
        if self.status == "inconclusive":
            counts_as = "" if self.inconclusive is None else f", counted as {self.inconclusive}"
            text += f"; {self._advice()}{counts_as}"
        if self.named is not None:
            text += f"; {self.named.estimator}: {number(self.named.value)} (the default interval decides)"
        return text

    def _advice(self) -> str:
        if self.measured.lower_bound:
            return "no rows show that so many classes are within it, --notion classwise may"
        if not self.rows <= MOST_ROWS:
            return "the estimate is so close to the limit that more rows would hardly decide"
        scale = 10 ** math.floor(math.log10(self.rows))
        rounded = math.ceil(self.rows / scale) * scale
        return f"roughly {counted(rounded, 'row')} would decide if the estimate stayed"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text."""
        measured = "regret" if isinstance(self, RegretVerdict) else "estimate"
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "limit": self.limit,
            "value": self.measured.value,
            measured: self.measured.to_dict(),
            **({} if self.named is None else {"named_estimate": self.named.to_dict()}),
        }

    def to_junit(self, source: str) -> bytes:
        """Return a JUnit report of one test: the file, held against the limit."""
        from xml.etree import ElementTree  # not at the top: every start of the program would pay for it

        failed = self.exit_code != 0
        text = _ILLEGAL.sub("", f"{self.status.upper()}: {self.sentence}")
        counts = {"tests": "1", "failures": f"{int(failed)}", "errors": "0", "skipped": "0"}
        suite = ElementTree.Element("testsuite", {"name": "calibrant check"} | counts)
        name = f"{self.test} at most {self.limit:g}"
        case = ElementTree.SubElement(suite, "testcase", classname=_ILLEGAL.sub("", source), name=name)
        if failed:
            ElementTree.SubElement(case, "failure", type=self.status, message=text)
        ElementTree.SubElement(case, "system-out").text = text
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="UTF-8", xml_declaration=True) + b"\n"


class RegretVerdict(Verdict):
    """What acting on the scores costs, a `Regret`, held against a limit."""

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; of too many classes to see all that is lost there is no upper end."""
        return self.measured.low, math.inf if self.measured.lower_bound else self.measured.high

    @property
    def called(self) -> str:
        """The regret, and of which decision."""
        return f"regret ({self.measured.decision})"

    @property
    def shown(self) -> str:
        """Value and interval, per row."""
        result = self.measured
        return with_interval(result.value, result.low, result.high, result.level, unit=" per row")

    @property
    def size(self) -> str:
        """Number of rows."""
        return sample_size(self.measured.n)

    @property
    def test(self) -> str:
        """What the test of a JUnit report is called."""
        return "regret"

    def _advice(self) -> str:
        if self.measured.lower_bound:
            return "no rows show what so many classes lose"
        return super()._advice()


@click.command(
    epilog="Exit codes: 0 within the limit, 1 above it, 2 bad input or usage, 3 inconclusive: the interval "
    "lies on both sides of the limit."
)
@options("path")
@click.option(
    "--max-ece",
    "limit",
    type=float,
    metavar="LIMIT",
    help="The error that is allowed, such as 0.05.",
)
@click.option(
    "--max-regret",
    "most",
    type=float,
    metavar="LIMIT",
    help="What acting on the scores may cost per row more than it must, in the unit of --cost.",
)
@options("cost", *DATA, "class_names", "cluster", "notion", "estimator", "norm", "level", "seed")
@click.option(
    "--inconclusive",
    type=click.Choice(("pass", "fail")),
    help="What an interval on both sides of the limit counts as.  [default: exit code 3]",
)
@output("--junit", what="Write a JUnit report too.")
@options("json", "quiet")
def check(
    file: str,
    limit: float | None,
    most: float | None,
    cost: Any,
    estimator: str,
    inconclusive: str | None,
    junit: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Hold the calibration error of PATH, or what it costs, against a limit; say so by the exit code.

    The interval decides, not the estimate: the check passes if its upper end is within the limit
    and fails if its lower end is above. In between there are too few rows to tell.

    The decision always uses the interval of the default estimator, so that it does not depend on
    --estimator. The value of another estimator is printed beside it.

    \b
    Examples:
      calibrant check predictions.csv --max-ece 0.05
      calibrant check predictions.parquet --max-ece 0.02 --notion classwise --junit calibration.xml
      calibrant check predictions.csv --max-regret 0.01 --cost 1:9
    """
    _check_limits(limit, most, cost, given)
    check_outputs([file, names_file(given["class_names"])], junit, format=given["format"])
    if junit is not None and junit.is_file():
        # What an earlier run found must not be taken for this one's, whatever happens.
        with writing(junit):
            os.unlink(os.path.realpath(junit))

    def check_limit(source: CommandInput) -> Verdict:
        options = {"level": given["level"], "rng": given["seed"]}
        if limit is None:
            assert most is not None
            return RegretVerdict(source.ask("regret", cost=cost, **options), most, inconclusive)
        options["norm"] = given["norm"]
        default = source.ask("estimate", **options)
        named = None if estimator == "auto" else source.ask("estimate", estimator=estimator, **options)
        return Verdict(default, limit, inconclusive, named)

    source = read_source(file, given, check_limit)
    with source.refusing():
        verdict = check_limit(source)
    if junit is not None:
        write(junit, verdict.to_junit(source.about["source"]))
    try:
        if as_json:
            tell_json(verdict.to_dict() | source.about)
        else:
            tell_verdict(verdict.status, verdict.sentence)
            if limit is not None:
                from calibrant.inference.result import class_table

                if table := as_text(class_table(verdict.measured)):
                    tell(table)
            for caution in verdict.measured.cautions:
                tell(caution)
    except BrokenPipeError:  # nobody reads the words; the exit code still tells
        discard(sys.stdout)
    raise SystemExit(verdict.exit_code)
