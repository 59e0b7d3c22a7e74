"""Measure what changing each field of `calibrant.settings` does to accuracy, coverage and tests.

    python benchmarks/sensitivity.py --stage coarse          # some 5 minutes on two cores
    python benchmarks/sensitivity.py --stage full            # the fields with the largest effects, 20 minutes
    python benchmarks/sensitivity.py --table                 # docs/methods/settings.md
    python benchmarks/sensitivity.py --check                 # fields without any effect at x1/4 and x4

Each field is set to 0.75 and 1.25 times its value: counts are rounded and change by at least 1, numbers below
1 stay below 1, and all elements of a tuple or dict change together. Shares that sum to 1 are raised to the
power of the factor, as only their ratios matter. The data sets are those of the default,
so that differences are paired. Results go to `--out`, one line for each field and factor. A run skips the
lines that are there already and whose values still hold. Fields and their classes are found in the module.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CALIBRANT_THREADS", "1")

import numpy as np
from sensitivity_measures import MEASURED, RATES, Figures, figures, instances
from sensitivity_page import FACTORS, FIELDS, TIMES, by_setting, long_text, page

from calibrant.score_data import Array

PAGE, KEPT = (
    Path(__file__).parents[1] / "docs/methods" / name for name in ("settings.md", "sensitivity.jsonl")
)
CHECK_FACTORS = (0.25, 4.0)
SECONDS = {"coarse": 600.0, "full": 1200.0, "check": 480.0}

# ----------------------------------------------------------------------------------------------------------
# Changes of fields


def scaled(value: Any, factor: float) -> Any:
    """Return a value times a factor by the rules above; what cannot be scaled is returned as it is.

    >>> scaled((0.9, 2, 1), 1.25)
    (0.95, 3, 2)
    >>> scaled((0.8, 0.2), 2)
    (0.9411764705882353, 0.058823529411764705)
    """
    if isinstance(value, dict):
        return {key: scaled(each, factor) for key, each in value.items()}
    if isinstance(value, tuple) and {*map(type, value)} == {float} and math.isclose(sum(value), 1):
        powers = [share**factor for share in value]
        return tuple(power / sum(powers) for power in powers)
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        return (1 + value) / 2 if 0 < value < 1 <= value * factor else value * factor
    if value < 0:
        return -scaled(-value, factor)
    changed = round(value * factor)
    changed += (1 if factor > 1 else -1) if changed == value else 0
    return max(changed, 1) if value else 0


def clear_caches() -> None:
    """Forget what functions of the package keep, which may depend on a setting."""
    for name, module in list(sys.modules.items()):
        # Those of `compiled` hold threads and libraries.
        if name.startswith("calibrant.") and not name.startswith("calibrant.compiled"):
            classes = [vars(each) for each in vars(module).values() if isinstance(each, type)]
            for held in (vars(module), *classes):
                for each in list(held.values()):
                    if callable(clear := getattr(each, "cache_clear", None)):
                        clear()


@contextmanager
def setting_changed(instance: Any, field: str, value: Any) -> Iterator[None]:
    before = getattr(instance, field)
    object.__setattr__(instance, field, value)
    clear_caches()
    try:
        yield
    finally:
        object.__setattr__(instance, field, before)
        clear_caches()


class Change(NamedTuple):
    """A field of an instance, and a factor."""

    instance: str
    field: str
    factor: float

    @property
    def setting(self) -> str:
        return f"{self.instance}.{self.field}"

    @property
    def batteries(self) -> tuple[str, ...]:
        return MEASURED.get(type(instances()[self.instance]).__name__, ())

    @property
    def values(self) -> tuple[Any, Any]:
        before = getattr(instances()[self.instance], self.field)
        return before, scaled(before, self.factor)


def _too_long(*_: object) -> None:
    raise TimeoutError("took too long")


def changed_figures(change: Change, times: float, limit: float) -> dict[str, list[Figures]] | str:
    """Return the figures with a field changed, or why there are none."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        with setting_changed(instances()[change.instance], change.field, change.values[1]):
            found = figures(change.batteries, times)
        every = [values for cells in found.values() for cell in cells for values in cell.values()]
        return found if np.isfinite(np.concatenate(every)).all() else "results that are not finite"
    except Exception as reason:
        return f"{type(reason).__name__}: {reason}"[:100]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def effects(default: dict[str, list[Figures]], new: dict[str, list[Figures]]) -> dict[str, dict[str, float]]:
    """Return the change, its paired standard error and z for each measure, over cells of equal weight.

    Changes of coverage and rejection rates are differences; others are relative to the default of a cell.
    """
    cells: dict[str, list[tuple[Array, Array]]] = {}
    for name, measured in default.items():
        for before, after in zip(measured, new[name], strict=True):
            for measure in before:
                pair = np.asarray(before[measure], float), np.asarray(after[measure], float)
                cells.setdefault(measure, []).append(pair)
    found = {}
    for measure, pairs in cells.items():
        unit = [1.0 if measure.endswith(RATES) else max(b.mean(), 1e-12) for b, _ in pairs]
        difference = [(a - b) / u for (b, a), u in zip(pairs, unit, strict=True)]
        change = float(np.mean([d.mean() for d in difference]))
        spread = math.sqrt(sum(d.var(ddof=1) / d.size for d in difference)) / len(pairs)
        row = {"change": change, "error": spread, "z": change / max(spread, 1e-12)}
        if measure.endswith(RATES):
            row |= {
                key: np.mean([pair[k].mean() for pair in pairs])
                for k, key in enumerate(("default", "changed"))
            }
        found[measure] = {key: float(f"{value:.3g}") for key, value in row.items()}
        found[measure]["differ"] = sum(int((d != 0).sum()) for d in difference)
    return found


# ----------------------------------------------------------------------------------------------------------
# Runs


def read(file: Path) -> list[dict[str, Any]]:
    """Return the records whose field still has the value that was measured; later ones replace others."""
    held = {}
    for record in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
        name, field = record["setting"].split(".")
        if as_json(getattr(instances().get(name), field, None)) == record["from"]:
            held[record["stage"], record["setting"], record["factor"]] = record
    return list(held.values())


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def largest_z(record: dict[str, Any]) -> float:
    return max((abs(each["z"]) for each in record["effects"].values()), default=0.0)


def changes(factors: tuple[float, ...], only: list[str] | None) -> list[Change]:
    """Return the changes of all fields that can be scaled and are measured."""
    found = []
    for name, instance in instances().items():
        fields = [field.name for field in dataclasses.fields(instance)]
        if fields and type(instance).__name__ not in MEASURED:
            print(f"{name}: no measures, {len(fields)} fields are left out", file=sys.stderr)
            continue
        found += [Change(name, field, factor) for field in fields for factor in factors]
    found = [change for change in found if change.values[0] != change.values[1]]
    return [each for each in found if not only or each.setting in only or each.instance in only]


def ranked(records: list[dict[str, Any]], fields: int) -> list[str]:
    """Return the settings with the largest effects in the coarse stage."""
    largest: dict[str, float] = {}
    for record in records:
        if record["stage"] == "coarse":
            largest[record["setting"]] = max(largest.get(record["setting"], 0.0), largest_z(record))
    return sorted(largest, key=lambda setting: -largest[setting])[:fields]


def run(stage: str, pending: list[Change], out: Path, seconds: float, jobs: int, share: float) -> None:
    """Measure changes, and append a record of each to a file."""
    started, times = time.monotonic(), {"coarse": 1, "full": TIMES, "check": 0.25}[stage] * share
    needed = dict.fromkeys(name for change in pending for name in change.batteries)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, out.open("a") as file:
        parts = list(pool.map(timed_default, needed, [times] * len(needed)))
        default = {name: part for name, (part, _) in zip(needed, parts, strict=True)}
        cost = {name: taken for name, (_, taken) in zip(needed, parts, strict=True)}
        expected = sum(cost[name] for change in pending for name in change.batteries) / jobs
        print(f"{len(pending)} changes, about {expected:.0f} s", file=sys.stderr)
        futures = {}
        for change in pending:
            limit = 30 + 10 * sum(cost[name] for name in change.batteries)
            futures[pool.submit(changed_figures, change, times, limit)] = change
        for k, future in enumerate(as_completed(futures), 1):
            if future.cancelled():
                continue
            change, found = futures[future], future.result()
            record = {"stage": stage, "setting": change.setting, "factor": change.factor}
            record |= dict(zip(("from", "to"), map(as_json, change.values), strict=True))
            if isinstance(found, str):
                record |= {"failed": found, "data_sets": 0, "effects": {}}
            else:
                before = {name: default[name] for name in change.batteries}
                count = sum(next(iter(cell.values())).size for part in before.values() for cell in part)
                record |= {"data_sets": count, "effects": effects(before, found)}
            file.write(json.dumps(record) + "\n")
            file.flush()
            spent = time.monotonic() - started
            text = f"{change.setting} x{change.factor:g}: {long_text(record)}"
            print(f"{k}/{len(pending)} {spent:.0f} s {text}", file=sys.stderr, flush=True)
            if spent > seconds:
                for each in futures:
                    each.cancel()
    left = sum(future.cancelled() for future in futures)
    if left:
        print(f"{left} changes are left: run the same command again to go on", file=sys.stderr)


def timed_default(battery: str, times: float) -> tuple[list[Figures], float]:
    figures((battery,), 0)  # trains the models and takes the true errors
    started = time.monotonic()
    return figures((battery,), times)[battery], time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", choices=("coarse", "full"))
    parser.add_argument("--check", action="store_true", help="list the fields that change no number")
    parser.add_argument("--table", action="store_true", help="write docs/methods/settings.md")
    parser.add_argument(
        "--out", type=Path, default=Path("build/sensitivity.jsonl"), help="file of the results"
    )
    parser.add_argument("--seconds", type=float, help="start no change after so long")
    parser.add_argument("--only", nargs="+", help="settings such as PRIOR or PRIOR.local_weight")
    parser.add_argument("--fields", type=int, default=FIELDS, help="number of fields of the full stage")
    parser.add_argument("--share", type=float, default=1.0, help="of the data sets")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    for stage in filter(None, (asked.stage, asked.check and "check")):
        out = asked.out.with_suffix(".check.jsonl") if stage == "check" else asked.out
        out.parent.mkdir(parents=True, exist_ok=True)
        pending, records = changes(CHECK_FACTORS if stage == "check" else FACTORS, asked.only), read(out)
        if stage == "full":
            order = ranked(records, asked.fields)
            pending = sorted(
                (each for each in pending if each.setting in order),
                key=lambda each: order.index(each.setting),
            )
        done = {(record["stage"], record["setting"], record["factor"]) for record in records}
        pending = [each for each in pending if (stage, each.setting, each.factor) not in done]
        run(stage, pending, out, asked.seconds or SECONDS[stage], asked.jobs, asked.share)
        if stage == "check":
            print("fields that change no number at x1/4 and x4:")
            settled: dict[str, list[str]] = {}
            for record in read(out):
                settled.setdefault(record["setting"], []).append(long_text(record))
            print(*(f"  {name}" for name, texts in settled.items() if set(texts) == {"no change"}), sep="\n")
    records = read(asked.out)
    if asked.table and not records:
        parser.error(f"{asked.out} has no results")
    if asked.table:
        kept = [record for found in by_setting(records).values() for record in found.values()]
        KEPT.write_text("".join(json.dumps(record) + "\n" for record in kept))
        PAGE.write_text(page(kept))


if __name__ == "__main__":
    main()
