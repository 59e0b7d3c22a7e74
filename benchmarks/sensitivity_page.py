"""Texts of `sensitivity.py`: effects in words, and docs/methods/settings.md."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from typing import Any

from sensitivity_measures import BATTERIES, MEASURED, RATES, instances

Record = dict[str, Any]
FACTORS = (0.75, 1.25)
# The full stage has this many times the data sets of the coarse one, for this many fields.
TIMES, FIELDS = 12, 40
# Changes of fewer standard errors than this are not shown.
NOISE = 2.0
# Why fields are kept though neither change is above the noise.
REASONS = {
    "PRIOR.probability_of_no_mean": "1/9, equal for all sizes, would change most printed values by .1 %",
    "LOG_ODDS.flexible_weight": "three weights in one; each was .15 to .3 before, and had no larger effect",
    "LOG_ODDS.roughness": "a curve needs some roughness, and the grid costs little",
    "LOG_ODDS.spectrum_exponents": "the same as for roughness",
    "LOG_ODDS.identity_bonus": "calibrators of one to ten rows would move scores by .25 without it",
    "LOG_ODDS.temperature_bonus": "3 % more excess log loss at 100 rows without it (`maps.py`)",
    "TEST.pooled_classes_share": "it decides which gaps a test detects; the study has few classes",
    "CURVES.full_quantile_rows": "the bands of 50 to 100 rows are 5 to 20 % narrower without it",
}
INTRODUCTION = f"""# Settings

The tuned numbers of the methods in `src/calibrant/settings.py`: what each one means, what chose it, and what
0.75 and 1.25 times its value change. To measure the effects again:

```sh
python benchmarks/sensitivity.py --stage coarse
python benchmarks/sensitivity.py --stage full
python benchmarks/sensitivity.py --table
```

`--stage coarse --only PRIOR.local_weight` measures and prints the changes of one field, and `--only PRIOR`
those of all fields of a class.

How to read the tables:

- Counts are rounded and change by at least 1. Numbers below 1 stay below 1. All elements of a tuple change
  together. Shares that sum to 1 are raised to the power of 0.75 or 1.25.
- Every change is measured on the data sets of the default. The number after ± is the standard error of the
  paired difference. Differences below {NOISE:g} standard errors are not shown.
- "below noise": no difference is larger than that. "no change": no number changed. "-": not measured.
- A field has several measures and two changes. Some differences of 2 to 3 standard errors are therefore due
  to chance.
- MAE is the mean absolute error of the value. Coverage is that of 95 % intervals. Rejection is the share of
  p-values of at most .05 for calibrated models.
- The column "intervals" is the number of data sets with intervals. With fewer than about 200 of them, changes
  of coverage and rejection cannot be measured: a coverage of .955 may be that of 21 of 22 intervals, with a
  standard error of .045. "below noise" then refers to widths and errors. Rejection is that of the calibrated
  families only, which are fewer still. [Measured coverage](../research/coverage.md) has that of the default
  values, with more samples.
- Coverage and rejection are shown before and after the change. Changes of MAE, width and excess log loss are
  percentages of the default in the same family, averaged over families. "(calibrated)" marks families without
  miscalibration.
- The second stage measures the fields with the largest differences again, with more data sets.

All data sets have a known true calibration error. Their families and trained models are those of other
benchmarks, with this many data sets for each family in the coarse stage:
"""


def number(measure: str, value: float, sign: str = "+") -> str:
    """Return a change: .012 of a rate, 1.2 % of others."""
    if measure.endswith(RATES):
        return f"{value:{sign}.3f}".replace("0.", ".", 1)
    return f"{100 * value:{sign}.{1 if abs(value) >= 0.01 else 2}f} %"


def long_text(record: Record) -> str:
    """Return the changes above the noise, with standard errors."""
    if "failed" in record:
        return f"fails ({record['failed']})"
    parts = []
    for measure, found in record["effects"].items():
        if abs(found["z"]) >= NOISE:
            spread = number(measure, found["error"], "").removesuffix(" %")
            change = number(measure, found["change"])
            if measure.endswith(RATES):
                change = " -> ".join(number(measure, found[key], "") for key in ("default", "changed"))
            parts.append(f"{measure} {change} (±{spread})")
    return ", ".join(parts) or unseen([record])


def unseen(records: list[Record]) -> str:
    """Return what is said where nothing is above the noise."""
    differ = [found["differ"] for record in records for found in record["effects"].values()]
    return "fails" if not differ else "below noise" if any(differ) else "no change"


def printed(value: Any) -> str:
    """Return a value with four significant digits.

    >>> printed((1 / 3, 2.0, 5)), printed((1.0,))
    ('(0.3333, 2.0, 5)', '(1.0,)')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(printed, value))}{',' * (len(value) == 1)})"
    return repr(float(f"{value:.4g}")) if isinstance(value, float) else repr(value)


def by_setting(records: list[Record]) -> dict[str, dict[float, Record]]:
    """Return the records of each setting by factor, those of the full stage where it has any."""
    found: dict[str, dict[float, Record]] = {}
    for stage in ("coarse", "full"):
        for record in records:
            if record["stage"] == stage:
                found.setdefault(record["setting"], {})[record["factor"]] = record
    return found


def without_effect(measured: dict[str, dict[float, Record]]) -> list[str]:
    """Return a line for each field whose changes are all below the noise, with the reason to keep it."""
    none = {"below noise", "no change"}
    return [
        f"- `{setting}`: {REASONS.get(setting, 'no measurement prefers another value')}"
        for setting, found in measured.items()
        if len(found) == len(FACTORS) and {long_text(record) for record in found.values()} <= none
    ]


def n_data_sets(name: str, *, with_intervals: bool = False) -> int:
    """Return the number of data sets of the coarse stage for the fields of an instance."""
    used = [BATTERIES[each] for each in MEASURED.get(type(instances()[name]).__name__, ())]
    return sum(len(battery.cells) * battery.count for battery in used if battery.intervals >= with_intervals)


def second_stage(records: list[Record]) -> str:
    """Return how many fields the second stage has measured, and with how many times the data sets."""
    full = [record for record in records if record["stage"] == "full" and record["data_sets"]]
    times = {
        each["setting"]: round(each["data_sets"] / n_data_sets(each["setting"].split(".")[0]))
        for each in full
    }
    counts = sorted(Counter(times.values()).items())
    parts = [
        f"{count} field{'s' * (count > 1)} with {factor} times as many data sets" for factor, count in counts
    ]
    return f"The second stage has measured {' and '.join(parts) or 'no field'}."


def page(records: list[Record]) -> str:
    """Return the page of all settings."""
    measured = by_setting(records)
    lines = [INTRODUCTION.rstrip("\n"), ""]
    for battery in BATTERIES.values():
        lines.append(
            f"- {battery.title}: {'; '.join(map(str, battery.cells))}. {battery.count} data sets each."
        )
    lines += ["", second_stage(records)]
    if kept := without_effect(measured):
        lines += ["", "Fields that are kept though neither change has an effect above the noise:", "", *kept]
    for name, instance in instances().items():
        fields = dataclasses.fields(instance)
        if not fields:
            continue
        lines += [
            "",
            f"## {type(instance).__name__}",
            "",
            (inspect.getdoc(type(instance)) or "").replace("``", "`"),
            "",
        ]
        names = MEASURED.get(type(instance).__name__, ())
        used = ", ".join(BATTERIES[each].title for each in names)
        lines += [f"Measured with: {used or 'nothing'}.", ""]
        columns = (
            *("field", "value", "meaning", "study", "effect of x0.75", "effect of x1.25"),
            *("data sets", "intervals"),
        )
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for field in fields:
            found = measured.get(f"{name}.{field.name}", {})
            texts = [long_text(found[factor]) if factor in found else "-" for factor in FACTORS]
            count = max((record["data_sets"] for record in found.values()), default=0)
            held = count * n_data_sets(name, with_intervals=True) // max(1, n_data_sets(name))
            counts = (str(count), str(held)) if found else ("-", "-")
            told = (field.metadata.get(key, "") for key in ("meaning", "study"))
            row = f"`{field.name}`", f"`{printed(getattr(instance, field.name))}`", *told, *texts, *counts
            lines.append(f"| {' | '.join(text.replace('|', '/') for text in row)} |")
    return "\n".join(lines) + "\n"
