"""The command that gates a build on the calibration error."""

from __future__ import annotations

import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, options, output
from calibrant.cli.output import (
    check_outputs,
    coloured,
    discard,
    printable,
    tell_classes,
    tell_json,
    write,
    writing,
)
from calibrant.cli.progress import Meter
from calibrant.cli.source import Source, read_source, settled

if TYPE_CHECKING:
    from calibrant import Estimate

CODES = {"pass": 0, "fail": 1, "inconclusive": 3}
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
# Beyond this many rows nobody should be sent to find them.
MOST_ROWS = 1e9
# What XML 1.0 cannot hold, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _check_limit(limit: float, notion: str | None, norm: str) -> None:
    """Refuse a limit that no error can reach."""
    from calibrant.questions import named

    most = 1.0 if notion is None else named(notion).most(norm)
    if not 0 < limit <= most:
        hint = f"; write {limit / 100:g}" if most < limit <= 100 else ""
        raise click.BadParameter(
            f"{limit:g} does not lie in (0, {most:.4g}]{hint}",
            ctx=click.get_current_context(),
            param_hint="'--max-ece'",
        )


@dataclass(frozen=True)
class Verdict:
    """An estimate held against a limit.

    Attributes
    ----------
    estimate : Estimate
    limit : float
    inconclusive : {"pass", "fail"}, optional
        What an interval on both sides of the limit counts as.
    """

    estimate: Estimate
    limit: float
    inconclusive: str | None = None

    @property
    def status(self) -> str:
        """Say where the interval lies: "pass" within the limit, "fail" above it, else "inconclusive".

        Where so many classes let one see a part of the error alone, only a bound from below is known.
        """
        estimate = self.estimate
        low, high = estimate.low, estimate.high
        if estimate.lower_bound:
            low, high = estimate.at_least or 0.0, math.inf
        if high <= self.limit:
            return "pass"
        return "fail" if low > self.limit else "inconclusive"

    @property
    def exit_code(self) -> int:
        """Return 0, 1 or 3; what is inconclusive may count as one of the others."""
        if self.status == "inconclusive" and self.inconclusive is not None:
            return CODES[self.inconclusive]
        return CODES[self.status]

    @property
    def rows(self) -> float:
        """Guess the rows at which the interval would lie on one side, if the estimate stayed."""
        estimate = self.estimate
        above = estimate.value > self.limit
        arm = estimate.value - estimate.low if above else estimate.high - estimate.value
        room = abs(self.limit - estimate.value)
        return estimate.n * (arm / room) ** 2 if room > 0 else math.inf

    @property
    def sentence(self) -> str:
        """Return the verdict without its first word."""
        from calibrant.inference.result import NAMES

        estimate = self.estimate
        asked = estimate.notion if estimate.label is None else f"{estimate.notion} {estimate.label}"
        seen = "" if not estimate.lower_bound else " of what so many classes let one see"
        seen += "" if estimate.at_least is None else f", at least {estimate.at_least:.4f},"
        where = {
            "pass": f"is within {self.limit:g}",
            "fail": f"is above {self.limit:g}",
            "inconclusive": f"lies on both sides of {self.limit:g}",
        }[self.status]
        if estimate.lower_bound and self.status == "inconclusive":
            where = f"may be above {self.limit:g}"
        within = "" if estimate.clusters is None else f" in {estimate.clusters} clusters"
        text = (
            f"{NAMES[estimate.norm]} ({asked}) "
            f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}] "
            f"at {100 * estimate.level:g} %{seen} {where}; n = {estimate.n:.15g}{within}"
        )
        return text if self.status != "inconclusive" else f"{text}; {self._advice()}"

    def _advice(self) -> str:
        counted = "" if self.inconclusive is None else f", counted as {self.inconclusive}"
        if self.estimate.lower_bound:
            return f"no rows show that so many classes are within it, --notion classwise may{counted}"
        if not self.rows <= MOST_ROWS:
            return f"the estimate is so close to the limit that more rows would hardly decide{counted}"
        scale = 10 ** math.floor(math.log10(self.rows))
        rounded = math.ceil(self.rows / scale) * scale
        return f"roughly {rounded} rows would decide if the estimate stayed{counted}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text."""
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "limit": self.limit,
            "value": self.estimate.value,
            "estimate": self.estimate.to_dict(),
        }

    def to_junit(self, source: str) -> str:
        """Return a JUnit report of one test: the file, held against the limit."""
        failed = self.exit_code != 0
        text = f"{self.status.upper()}: {self.sentence}"
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuite name="calibrant check" tests="1" failures="{int(failed)}" errors="0" skipped="0">',
            f"  <testcase classname={_attribute(source)} "
            f"name={_attribute(f'ECE ({self.estimate.notion}) at most {self.limit:g}')}>",
            f"    <failure type={_attribute(self.status)} message={_attribute(text)}/>" * failed,
            f"    <system-out>{_escaped(text)}</system-out>",
            "  </testcase>",
            "</testsuite>",
        ]
        return "\n".join(filter(None, lines)) + "\n"


def _escaped(text: str) -> str:
    import html  # not at the top: every start of the program would pay for its table of entities

    return html.escape(_ILLEGAL.sub("", text))


def _attribute(text: str) -> str:
    return f'"{_escaped(text)}"'


@click.command(
    epilog="Exit codes: 0 within the limit, 1 above it, 2 bad input or usage, 3 inconclusive: the interval "
    "lies on both sides of the limit."
)
@options("path")
@click.option(
    "--max-ece",
    "limit",
    type=float,
    required=True,
    metavar="LIMIT",
    help="The error that is allowed, such as 0.05.",
)
@options(*DATA, "cluster", "notion", "estimator", "norm", "level", "seed")
@click.option(
    "--inconclusive",
    type=click.Choice(("pass", "fail")),
    help="What an interval on both sides of the limit counts as.  [default: exit code 3]",
)
@output("--junit", what="Write a JUnit report too.")
@options("checkpoint", "json", "quiet")
def check(
    file: str,
    limit: float,
    estimator: str,
    inconclusive: str | None,
    junit: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Hold the calibration error of PATH against a limit, and say so by the exit code.

    The interval decides, not the estimate: the check passes if its upper end is within the limit
    and fails if its lower end is above. In between there are too few rows to tell.

    \b
    Examples:
      calibrant check predictions.csv --max-ece 0.05
      calibrant check predictions.csv --max-ece 0.05 --notion classwise --inconclusive pass
      calibrant check predictions.parquet --max-ece 0.02 --junit calibration.xml
    """
    _check_limit(limit, settled(given)["notion"], given["norm"])
    check_outputs([file], junit, format=given["format"], checkpoint=given["checkpoint"])
    if junit is not None and junit.is_file():
        # What an earlier run found must not be taken for this one's, whatever happens.
        with writing(junit):
            os.unlink(os.path.realpath(junit))

    def estimated(source: Source) -> Estimate:
        options = {"estimator": estimator, "norm": given["norm"]}
        options |= {"level": given["level"], "rng": given["seed"]}
        estimate: Estimate = source.ask("estimate", **options)
        return estimate

    source = read_source(file, given, estimated)
    with source.refusing(), Meter("estimating", given["quiet"]):
        verdict = Verdict(estimated(source), limit, inconclusive)
    if junit is not None:
        write(junit, verdict.to_junit(source.about["source"]))
    try:
        if as_json:
            tell_json(verdict.to_dict() | source.about)
        else:
            word = verdict.status.upper()
            word = click.style(word, fg=COLOURS[verdict.status], bold=True) if coloured() else word
            click.echo(f"{word}: {printable(verdict.sentence)}")
            tell_classes(verdict.estimate)
    except BrokenPipeError:  # nobody reads the words; the exit code still tells
        discard(sys.stdout)
    raise SystemExit(verdict.exit_code)
