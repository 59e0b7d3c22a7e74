"""Attack calibrant in six ways; a table of what was tried and what broke, and exit code 1 if anything did.

    python benchmarks/attack.py [--share 0.01] [--only metamorphic files ...] [--seed 0]
                                [--write docs/reliability.md]

- metamorphic: the same predictions said in another way, through every estimator, notion and norm;
- files: fuzzed files of each format, read by every code path;
- refusals: files that are refused, each in a process of its own, which must end with its code within a limit;
- kills: experiments that are killed, interrupted or terminated, and then go on;
- writers: two to eight processes that write to one place at once;
- pages: reports of hostile names and numbers in a browser.

A case belongs to the seed and its number, so what breaks can be run again by itself.
"""

import argparse
import re
import sys
import time
from importlib import import_module
from math import ceil
from pathlib import Path

HERE = Path(__file__).parent
#: Cases of each attack, and what a case is.
ATTACKS = {
    "metamorphic": (5000, "pairs of equivalent inputs"),
    "files": (2000, "fuzzed files of each format"),
    "refusals": (200, "processes that refuse a file"),
    "kills": (200, "processes killed at work"),
    "writers": (100, "races of 2 to 8 writers"),
    "pages": (50, "hostile pages in a browser"),
}
MARKS = "<!-- attack:{} -->"


def attack(name, cases, seed):
    """Run an attack; return what broke."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return import_module(f"attacks.{name}").run(cases, seed)


def table(rows):
    """Return the table of rows (attack, cases, failures, seconds)."""
    lines = ["| attack | cases | what a case is | failures | seconds |", "|---|---:|---|---:|---:|"]
    for name, cases, failures, seconds in rows:
        lines.append(f"| {name} | {cases} | {ATTACKS[name][1]} | {failures} | {seconds:.0f} |")
    return "\n".join(lines)


def write(page, text):
    """Put a text between the marks of a page."""
    begin, end = MARKS.format("begin"), MARKS.format("end")
    pattern, old = re.compile(f"{begin}.*{end}", flags=re.DOTALL), page.read_text(encoding="utf-8")
    if not pattern.search(old):
        raise SystemExit(f"{page} has no {begin} and {end}")
    page.write_text(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", old), encoding="utf-8")


def main(arguments=None):
    """Run the attacks that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases to run")
    parser.add_argument("--only", nargs="+", choices=tuple(ATTACKS), default=tuple(ATTACKS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="page that holds the table between its marks")
    asked = parser.parse_args(arguments)
    rows, broken = [], 0
    for name in asked.only:
        cases = max(1, ceil(ATTACKS[name][0] * asked.share))
        start = time.perf_counter()
        failures = attack(name, cases, asked.seed)
        rows.append((name, cases, len(failures), time.perf_counter() - start))
        broken += len(failures)
        for line in failures:
            print(f"{name}: {line}", file=sys.stderr)
        print(f"{name}: {len(failures)} of {cases} failed", file=sys.stderr, flush=True)
    print(text := table(rows), flush=True)
    if asked.write:
        write(asked.write, text)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
