"""The command line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from calibrant import compiled
from calibrant.cli.audit import audit
from calibrant.cli.calibrate import calibrate
from calibrant.cli.check import check
from calibrant.cli.compare import compare
from calibrant.cli.demo import demo
from calibrant.cli.experiment import group
from calibrant.cli.measure import curve, estimate, recommend, regret
from calibrant.cli.monitor import monitor
from calibrant.cli.output import Refused, discard, open_closed_streams
from calibrant.cli.report import report
from calibrant.cli.sketch import sketch

#: The exit code of an error inside the program, as in sysexits.h: 1 is the code of an alarm.
INTERNAL_ERROR = 70


class Stopped(click.ClickException):
    """The program was stopped by Ctrl-C."""

    exit_code = 130


@contextmanager
def _one_line(ctx: click.Context) -> Iterator[None]:
    """Print an error as one line, and nothing if the reader of a pipe has stopped."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            raise
        where = (error.ctx or ctx).command_path
        raise Refused(f"{error.format_message()} (see {where} -h)") from None
    except BrokenPipeError:  # as a shell reports a program that this ended
        raise SystemExit(141) from None
    except OSError as error:
        raise Refused(error) from None
    except KeyboardInterrupt:
        raise Stopped("stopped") from None


class Main(click.Group):
    """Group of commands whose exit codes do not depend on where the output is written."""

    def main(  # type: ignore[override]
        self, args: Any = None, prog_name: str | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run the program; streams that are closed, full or unread change no exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        open_closed_streams()
        try:
            # The code of what ended early, such as --help, or None.
            code = super().main(args, prog_name, standalone_mode=False, **extra)
        except click.ClickException as error:
            code = error.exit_code
            with suppress(OSError):
                error.show()
        except Exception:  # a fault of the program, which must not look like a result
            code = INTERNAL_ERROR
            with suppress(OSError):
                traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    discard(stream)
        sys.exit(code)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command."""
        with _one_line(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _one_line(ctx):
            return super().invoke(ctx)


@click.group(
    cls=Main,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Exit codes:
  0    done; check, compare, audit: within the limit; monitor: no alarm
  1    check, compare, audit: above the limit; monitor: alarm; demo, experiment: error
  2    invalid input or usage
  3    check, compare, audit: inconclusive
  70   internal error, with a traceback
  130  stopped by Ctrl-C""",
)
@click.version_option(
    package_name="calibrant", prog_name="calibrant", message=f"%(prog)s %(version)s ({compiled.in_use()})"
)
def main() -> None:
    """Measure and correct the calibration of classifiers.

    \b
    Examples:
      calibrant demo
      calibrant ece predictions.csv
      calibrant report predictions.parquet --label target --scores 'p_*'
      calibrant check predictions.csv --max-ece 0.05
      calibrant calibrate fit predictions.csv -o map.json
    """


for _command in (
    demo,
    estimate,
    curve,
    compare,
    recommend,
    regret,
    check,
    audit,
    report,
    monitor,
    calibrate,
    sketch,
    group,
):
    main.add_command(_command)
main.add_command(estimate, "ece")
