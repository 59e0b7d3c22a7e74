"""Record the results of public calls on two commits and print what differs, by how much, and the times.

    python benchmarks/record.py                          # the working tree against HEAD
    python benchmarks/record.py main --only '^maps'      # some calls, against another commit
    python benchmarks/record.py main --save-other main.json
    python benchmarks/record.py main.json                # against a recording, which is not run again

`recorded_calls.py` is the list of calls; both commits run the list of this working tree. The other commit is
checked out in a temporary worktree. Its compiled loops are copied from the working tree if the C sources are
equal, and otherwise built. The exit code is 1 if anything differs. Times are processor times of all threads,
which depend less on what else the machine does than elapsed times (`--elapsed`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:\d\d)?")
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")
#: Differences below are rounding, whatever the size of the numbers.
ROUNDING = 1e-12

# ---- one recording: runs in a process of its own ---------------------------------------------------------


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers, lists of numbers and texts of a result, each with its path."""
    if value is None or isinstance(value, (bool, int, float, str)):
        yield path, value
    elif isinstance(value, np.generic):
        yield from leaves(value.item(), path)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            yield path, {"shape": value.shape, "values": value.astype(float).ravel().tolist()}
        else:
            yield from leaves(value.tolist(), path)
    elif hasattr(value, "detach"):  # a tensor
        yield from leaves(value.detach().cpu().numpy(), path)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        if any(isinstance(each, float) for each in value) and all(
            each is None or isinstance(each, (int, float)) for each in value
        ):  # None is how JSON says NaN
            values = [math.nan if each is None else float(each) for each in value]
            yield path, {"shape": [len(value)], "values": values}
        else:
            for k, each in enumerate(value):
                yield from leaves(each, f"{path}[{k}]")
    elif hasattr(value, "to_dict"):
        yield f"{path} as text", str(value)
        yield from leaves(value.to_dict(), path)
    elif dataclasses.is_dataclass(value):
        yield from leaves({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, path)
    else:
        yield path, str(value)


def recorded(call: Any, folder: Path) -> dict[str, Any]:
    """Return the fields of the result of a call, or its error, and its times."""

    def plain(text: str) -> str:
        for pattern, word in ((TIMESTAMP, "<time>"), (ADDRESS, "<address>")):
            text = pattern.sub(word, text)
        return text.replace(str(folder), "<folder>")

    started, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, error = call(), None
        except (Exception, SystemExit) as raised:
            result, error = None, plain(f"{type(raised).__name__}: {raised}")
    times = {"processor": time.process_time() - used, "elapsed": time.perf_counter() - started}
    if error is not None:
        return {"error": error, **times}
    fields = {path: plain(leaf) if isinstance(leaf, str) else leaf for path, leaf in leaves(result)}
    if caught:
        fields["warnings"] = plain("\n".join(str(each.message) for each in caught))
    fields.pop("created", None)
    return {"fields": fields, **times}


def child(path: str, repeat: int) -> None:
    """Record the calls named on standard input, a line of JSON for each, after a line about the package."""
    from recorded_calls import CALLS, FOLDER

    import calibrant

    with open(path, "a", encoding="utf-8") as lines:
        source = Path(calibrant.__file__).parent
        print(json.dumps({"source": str(source)}), file=lines, flush=True)
        for name in json.load(sys.stdin):
            first, *others = [recorded(CALLS[name], FOLDER) for _ in range(repeat)]
            for key in ("processor", "elapsed"):
                first[key] = min(each[key] for each in (first, *others))
            content = json.dumps([first.get("error"), first.get("fields")])
            first["varies"] = any(
                json.dumps([each.get("error"), each.get("fields")]) != content for each in others
            )
            print(json.dumps([name, first]), file=lines, flush=True)


# ---- running both sides ----------------------------------------------------------------------------------


def record(root: Path, about: str, names: list[str], repeat: int) -> dict[str, Any]:
    """Record the calls with the package in a checkout, in another process; one that dies is an error."""
    loops = sorted(path.name for path in (root / "src").rglob("_*.so"))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(ROOT / "benchmarks")]),
        **{"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "COLUMNS": "100"},
    }
    calls: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        while len(calls) < len(names):
            path, left = Path(folder) / "calls.jsonl", [name for name in names if name not in calls]
            path.unlink(missing_ok=True)
            done = subprocess.run(
                [sys.executable, __file__, "--child", str(path), "--repeat", str(repeat)],
                input=json.dumps(left), env=environment, cwd=folder, text=True, capture_output=True,
            )  # fmt: skip
            lines = path.read_text().splitlines() if path.exists() else []
            if not lines:
                raise SystemExit(f"cannot import calibrant of {about}:\n{done.stderr}")
            source = json.loads(lines[0])["source"]
            if not Path(source).is_relative_to(root):
                raise SystemExit(f"{about} is in {root}, but calibrant was imported from {source}")
            calls |= dict(json.loads(line) for line in lines[1:])
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
                dead = {"error": f"the process ended with code {done.returncode}: {reason}"}
                calls[next(name for name in left if name not in calls)] = dead | {
                    "processor": 0,
                    "elapsed": 0,
                }
    return {"about": about, "loops": ", ".join(loops) or "none (plain Python)", "calls": calls}


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout


def compiled_sources(root: Path) -> dict[str, bytes]:
    """Return the C sources of a checkout, with what says how they are built."""
    files = [root / "setup.py", *(root / "src").rglob("*.[ch]")]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@contextmanager
def checked_out(commit: str) -> Iterator[tuple[Path, str]]:
    """Check out a commit in a temporary worktree, with compiled loops; yield its path and its description."""
    about = git("log", "-1", "--format=%h %s", commit).strip()
    with tempfile.TemporaryDirectory(prefix="calibrant-other-") as folder:
        root = Path(folder).resolve() / "tree"
        git("worktree", "add", "--detach", str(root), commit)
        try:
            yield root, f"{about} (compiled loops {add_loops(root)})"
        finally:
            git("worktree", "remove", "--force", str(root))


def add_loops(root: Path) -> str:
    """Copy or build the compiled loops of another checkout, and return which."""
    built = list((ROOT / "src").rglob("_*.so"))
    if compiled_sources(root) == compiled_sources(ROOT):
        for path in built:
            shutil.copy2(path, root / path.relative_to(ROOT))
        return "copied" if built else "not there in the working tree"
    words = [sys.executable, "setup.py", "build_ext", "--inplace"]
    subprocess.run(words, cwd=root, capture_output=True, check=False)
    return "built" if list((root / "src").rglob("_*.so")) else "could not be built: plain Python"


def outdated() -> bool:
    """Return whether a C source of the working tree is newer than the compiled loops."""
    built = [path.stat().st_mtime for path in (ROOT / "src").rglob("_*.so")]
    sources = [path.stat().st_mtime for path in (ROOT / "src").rglob("*.[ch]")]
    return bool(built and sources) and max(sources) > min(built)


# ---- comparing -------------------------------------------------------------------------------------------


def numbers(leaf: Any) -> tuple[list[int], list[float]] | None:
    """Return shape and values of a leaf that holds numbers."""
    if isinstance(leaf, dict):
        return list(leaf["shape"]), leaf["values"]
    return ([], [float(leaf)]) if isinstance(leaf, (int, float)) else None


def distance(a: float, b: float) -> tuple[float, float]:
    """Return absolute and relative difference of two numbers; NaN equals NaN."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0, 0.0
    absolute = abs(a - b)
    if not math.isfinite(absolute):
        return math.inf, math.inf
    return absolute, absolute / max(abs(a), abs(b))


@dataclasses.dataclass
class CallDifference:
    """What differs between the two results of a call."""

    absolute: tuple[float, str] = (0.0, "")
    relative: tuple[float, str] = (0.0, "")
    changed: int = 0
    rounding: float = 0.0
    other: list[str] = dataclasses.field(default_factory=list)

    def add_numbers(self, path: str, before: list[float], after: list[float], tolerance: float) -> None:
        """Compare two lists of numbers of equal length."""
        largest_absolute, largest_relative, beyond = (0.0, ""), (0.0, ""), False
        for k, (a, b) in enumerate(zip(before, after, strict=True)):
            absolute, relative = distance(a, b)
            if relative <= tolerance or absolute <= ROUNDING:
                self.rounding = max(self.rounding, absolute)
                continue
            beyond = True
            where = f"{path or 'value'}{f'[{k}]' if len(before) > 1 else ''}: {a:.6g} -> {b:.6g}"
            largest_absolute = max(largest_absolute, (absolute, where))
            largest_relative = max(largest_relative, (relative, where))
        self.changed += beyond
        self.absolute = max(self.absolute, largest_absolute)
        self.relative = max(self.relative, largest_relative)

    def add_texts(self, path: str, before: str, after: str, tolerance: float) -> None:
        """Compare two texts: their numbers if the words are equal, otherwise the first line that differs."""
        if NUMBER.sub("#", before) == NUMBER.sub("#", after):
            pair = ([float(each) for each in NUMBER.findall(text)] for text in (before, after))
            self.add_numbers(path, *pair, tolerance)
            return
        lines = before.splitlines() or [""], after.splitlines() or [""]
        for a, b in zip(*lines, strict=False):
            if NUMBER.sub("#", a) != NUMBER.sub("#", b):
                self.other.append(f"{path or 'value'}: {a.strip()[:100]!r} -> {b.strip()[:100]!r}")
                return
        self.other.append(f"{path or 'value'}: {len(lines[0])} -> {len(lines[1])} lines")

    def __bool__(self) -> bool:
        return bool(self.changed or self.other)


def compare(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float) -> CallDifference:
    """Compare the fields of two results."""
    found = CallDifference()
    for path in dict.fromkeys([*before, *after]):
        if path not in before or path not in after:
            found.other.append(f"{path}: only {'before' if path in before else 'after'}")
            continue
        a, b = before[path], after[path]
        first, second = numbers(a), numbers(b)
        if first and second:
            if first[0] != second[0]:
                found.other.append(f"{path}: shape {first[0]} -> {second[0]}")
            else:
                found.add_numbers(path, first[1], second[1], tolerance)
        elif isinstance(a, str) and isinstance(b, str):
            if a != b:
                found.add_texts(path, a, b, tolerance)
        elif a != b:
            found.other.append(f"{path}: {str(a)[:60]!r} -> {str(b)[:60]!r}")
    return found


def print_times(before: Mapping[str, Any], after: Mapping[str, Any], clock: str) -> None:
    """Print the time of each call on both sides, and their sums."""
    print(f"\n{f'{clock} time, seconds':<46}{'before':>9}{'after':>9}{'ratio':>8}")
    rows = [(name, before[name][clock], after[name][clock]) for name in after if name in before]
    for name, a, b in [*rows, ("all calls", sum(row[1] for row in rows), sum(row[2] for row in rows))]:
        print(f"{name:<46}{a:>9.3f}{b:>9.3f}{b / a if a else math.nan:>8.2f}")


def print_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float, most: int
) -> int:
    """Print what differs, and return the number of calls that do."""
    errors, found, rounding = [], {}, 0.0
    for name in (name for name in after if name in before):
        errors_of = [side[name].get("error") for side in (before, after)]
        if errors_of[0] != errors_of[1]:
            errors.append((name, *(each or "a result" for each in errors_of)))
        elif errors_of[0] is None:
            found[name] = compare(before[name]["fields"], after[name]["fields"], tolerance)
            rounding = max(rounding, found[name].rounding)
    if errors:
        print("\nErrors on one side, or with another message")
        for name, a, b in errors:
            print(f"  {name}\n    before: {a[:400]}\n    after:  {b[:400]}")
    changed = {name: each for name, each in found.items() if each.changed}
    if changed:
        print(f"\nNumbers that differ by more than {tolerance:g} of their size, largest relative first")
        for name, each in sorted(changed.items(), key=lambda item: -item[1].relative[0]):
            print(f"  {name} ({each.changed} of {len(after[name]['fields'])} fields)")
            print(f"    relative {each.relative[0]:<8.2g} {each.relative[1]}")
            where = "same field" if each.absolute[1] == each.relative[1] else each.absolute[1]
            print(f"    absolute {each.absolute[0]:<8.2g} {where}")
    others = {name: each.other for name, each in found.items() if each.other}
    if others:
        print("\nTexts, shapes and fields that differ")
        for name, each in others.items():
            print(f"  {name}")
            for line in each[:most]:
                print(f"    {line}")
            if len(each) > most:
                print(f"    and {len(each) - most} more fields")
    varying = [name for name in after if after[name].get("varies") or before.get(name, {}).get("varies")]
    if varying:
        print(f"\nDifferent in every run: {', '.join(varying)}")
    alone = [
        len([name for name in one if name not in two]) for one, two in ((before, after), (after, before))
    ]
    n_different = len(errors) + sum(map(bool, found.values()))
    print(
        f"\n{len(after) - alone[1]} calls compared, {n_different} differ: {len(errors)} by an error, "
        f"{len(changed)} by numbers, {len(others)} by texts, shapes or fields; "
        f"largest difference below the tolerance {rounding:.2g}"
    )
    if any(alone):
        print(f"{alone[0]} calls recorded only before, {alone[1]} only after")
    return n_different


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "other", nargs="?", default="HEAD", help="a commit, or a file of --save or --save-other"
    )
    parser.add_argument("--this", metavar="FILE", help="a recording instead of the working tree")
    parser.add_argument("--only", default="", metavar="PATTERN", help="calls whose name this pattern matches")
    parser.add_argument("--list", action="store_true", help="print the names of the calls")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="relative (default: %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=2, help="runs of each call; the time is the shortest (default: 2)"
    )
    parser.add_argument("--save", metavar="FILE", help="keep the recording of the working tree")
    parser.add_argument("--save-other", metavar="FILE", help="keep the recording of the other commit")
    parser.add_argument("--elapsed", action="store_true", help="show elapsed instead of processor times")
    parser.add_argument("--no-times", action="store_true", help="print differences only")
    parser.add_argument("--most", type=int, default=3, help="texts and fields shown of a call (default: 3)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.repeat)
    from recorded_calls import CALLS

    names = [name for name in CALLS if re.search(args.only, name)]
    if args.list:
        return print("\n".join(names))
    if Path(args.other).is_file():
        before = json.loads(Path(args.other).read_text())
    else:
        with checked_out(args.other) as (root, about):
            before = record(root, about, names, args.repeat)
    if args.this:
        after = json.loads(Path(args.this).read_text())
    else:
        about = "working tree" + (", whose compiled loops are older than the C sources" if outdated() else "")
        after = record(ROOT, about, names, args.repeat)
    for path, recording in ((args.save_other, before), (args.save, after)):
        if path:
            Path(path).write_text(json.dumps(recording))
    for word, recording in (("before", before), ("after", after)):
        print(f"{word + ':':<8}{recording['about']}; compiled loops: {recording['loops']}")
    chosen = [
        {name: call for name, call in each["calls"].items() if re.search(args.only, name)}
        for each in (before, after)
    ]
    if not args.no_times:
        print_times(*chosen, "elapsed" if args.elapsed else "processor")
    raise SystemExit(1 if print_differences(*chosen, args.tolerance, args.most) else 0)


if __name__ == "__main__":
    main()
