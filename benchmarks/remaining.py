"""The error after recalibration that an assessment claims, against the error that the map really leaves.

    python benchmarks/remaining.py                             # all of it, some 30 minutes on one core
    python benchmarks/remaining.py --sizes 1000 --reps 4 --parts binary
    python benchmarks/remaining.py --real DIR                  # held-out rows of real scores, as .npz files

Each data set is drawn from a family whose probabilities are known at every score. The claim is
`RecalibrationGain.after` of the default calibrator, and the truth is the calibration error of that
calibrator, fitted to the same rows, over the family. Only data sets for which recalibration is recommended
are counted: calibration is rejected, and cross-validation shows a gain. Printed for each family and number of
rows: data sets with a claim, mean error before, mean true and claimed error after (in points), the median of
true over claimed, that of true over the error of the pooled cross-fitted scores, and the share of intervals
that contain the truth.

With --real the map is fitted to random rows of a file, and the error that it leaves is estimated on the rest
by the default estimator and by the debiased one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant import Calibrator
from calibrant.assessment.recalibration import CrossFit, recalibration_gain
from calibrant.estimators.base import measure
from calibrant.experiment.distributions import rng_of
from calibrant.inference.estimate import estimate
from calibrant.inputs import Predictions, predictions
from calibrant.inputs.predictions import Array
from calibrant.tasks import CalibrationTask, Notion, get_notion

SIZES, REPETITIONS, LEVEL = (300, 1000, 3000, 10_000), 12, 0.95
PARTS = ("binary", "two columns", "confidence", "classwise")
CLASSES = (3, 10)
# Rows of which the true error of several classes is computed, and the bins of their scores.
NEW_ROWS, NEW_BINS = 20_000, 60


def _sibling(name: str) -> ModuleType:
    spec = util.spec_from_file_location(f"remaining_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


maps = _sibling("maps")


def repeated(scores: int, sd: float, slope: float) -> Any:
    """Return a family of a tree: few distinct scores, each with a deviation of its own."""
    rng = rng_of("remaining", scores)
    odds, away = np.sort(rng.normal(0, 1.5, scores)), rng.normal(0, sd, scores)
    values = 1 / (1 + np.exp(-odds))
    truth = 1 / (1 + np.exp(-slope * odds - away))
    return maps.Family(maps.few(*values), lambda x, p: np.interp(p, values, truth), "repeated")


FAMILIES = {name: family for name, family in maps.FAMILIES.items() if not name.startswith("right")} | {
    "tree, 30 scores": repeated(30, 0.4, 0.7),
    "tree, 80 scores": repeated(80, 0.3, 0.6),
}


class Claim(NamedTuple):
    """What is claimed of one data set, and what is true."""

    before: float
    true: float
    claim: float
    pooled: float
    low: float
    high: float


Draw = Callable[[int, np.random.Generator], Claim | None]


def claim_of(
    data: Predictions, notion: Notion, true: Callable[[Calibrator], float], seed: int = 0
) -> Claim | None:
    """Return the claim about these rows; None where recalibration is not recommended."""
    task = CalibrationTask.of(data, notion)
    before = estimate(task, level=LEVEL, rng=0, n_resamples=99)
    trial = CrossFit.of(data, seed, lambda: None)
    if trial is None or before.p_value > 1 - LEVEL:
        return None
    fitted = trial.fit(cache, notion)
    gain = recalibration_gain(trial, fitted, notion, [], before=before, worst=0, level=LEVEL)
    if not gain.helps:
        return None
    pooled = measure(CalibrationTask.of(fitted.mapped["auto"](), notion), "auto", "l1")
    left = true(Calibrator()._fit_predictions(trial.data))
    return Claim(before.value, left, gain.after.value, pooled, gain.after.low, gain.after.high)


def binary_cell(family: Any, n: int, rng: np.random.Generator, *, columns: bool) -> Claim | None:
    """Draw a data set of two classes; with `columns` both have scores, and the confidence is evaluated."""
    score, outcome = family.draw(n, rng)
    at, chance = family.truth()
    if not columns:
        data = predictions(outcome, score)
        return claim_of(data, get_notion("binary"), lambda fitted: _tied(fitted.predict_proba(at), chance))

    def true(fitted: Calibrator) -> float:
        mapped = fitted.predict_proba(np.stack([1 - at, at], axis=1))[:, 1]
        sure = mapped > 0.5
        confidence, right = np.where(sure, mapped, 1 - mapped), np.where(sure, chance, 1 - chance)
        return _in_bins(confidence, right)

    data = predictions(outcome.astype(int), np.stack([1 - score, score], axis=1), labels=[0, 1])
    return claim_of(data, get_notion("confidence"), true)


def class_cell(name: str, classes: int, n: int, rng: np.random.Generator, *, notion: str) -> Claim | None:
    """Draw a data set of several classes."""
    scores, chance = maps.CLASSES[name]
    rows, new = scores(n, classes, rng), scores(NEW_ROWS, classes, rng)
    label = (rng.random((n, 1)) > chance(rows).cumsum(axis=1)[:, :-1]).sum(axis=1)
    truth = chance(new)

    def true(fitted: Calibrator) -> float:
        mapped = fitted.predict_proba(new)
        if notion == "classwise":
            return float(np.mean([_in_bins(mapped[:, k], truth[:, k]) for k in range(classes)]))
        best = mapped.argmax(axis=1)[:, None]
        return _in_bins(*(np.take_along_axis(each, best, axis=1)[:, 0] for each in (mapped, truth)))

    return claim_of(predictions(label, rows, labels=list(range(classes))), get_notion(notion), true)


def _tied(mapped: Array, chance: Array) -> float:
    """Return the calibration error of mapped scores; scores that the map made equal are one."""
    group = np.unique(np.round(mapped, 10), return_inverse=True)[1]
    return float(np.abs(np.bincount(group, chance - mapped)).sum() / len(mapped))


def _in_bins(mapped: Array, chance: Array) -> float:
    """Return the calibration error where equal scores have different probabilities: in bins of equal mass."""
    order = np.argsort(mapped, kind="stable")
    starts = np.arange(NEW_BINS) * len(order) // NEW_BINS
    return float(np.abs(np.add.reduceat((chance - mapped)[order], starts)).sum() / len(order))


def study(
    parts: Sequence[str] = PARTS,
    sizes: Sequence[int] = SIZES,
    repetitions: int = REPETITIONS,
    names: Sequence[str] | None = None,
) -> dict[tuple[str, str, int], Array]:
    """Return the claims of each part, family and size, (data sets, figures of `Claim`)."""
    found = {}
    for part in parts:
        for n in sizes:
            for name, draw in _cases(part, names):
                claims = [draw(n, rng_of("remaining", part, name, n, k)) for k in range(repetitions)]
                kept = [claim for claim in claims if claim is not None]
                if kept:
                    found[part, name, n] = np.array(kept)
    return found


def _cases(part: str, names: Sequence[str] | None) -> Iterator[tuple[str, Draw]]:
    """Yield the families of a part."""
    if part in ("binary", "two columns"):
        for name, family in FAMILIES.items():
            if names is None or name in names:
                yield name, partial(binary_cell, family, columns=part == "two columns")
        return
    for name in maps.CLASSES:
        if not name.startswith("right") and (names is None or name in names):
            for classes in CLASSES:
                yield f"{name}, {classes} classes", partial(class_cell, name, classes, notion=part)


def show(found: dict[tuple[str, str, int], Array]) -> None:
    """Print the figures of each cell, and the medians of each part and size."""
    head = ("claims", "before", "true", "claimed", "true / claimed", "true / pooled", "in interval")
    for part, n in dict.fromkeys((part, n) for part, _, n in found):
        cells = {name: claims for (p, name, m), claims in found.items() if (p, m) == (part, n)}
        print(
            f"\n{part}, n = {n}\n\n| family | " + " | ".join(head) + " |\n" + "|---" * (len(head) + 1) + "|"
        )
        for name, claims in (cells | {"all": np.concatenate([*cells.values()])}).items():
            before, true, claim, pooled, low, high = claims.T
            means = " | ".join(f"{100 * each.mean():.2f}" for each in (before, true, claim))
            inside = np.mean((low <= true) & (true <= high))
            ratios = " | ".join(f"{np.median(true / each):.2f}" for each in (claim, pooled))
            print(f"| {name} | {len(claims)} | {means} | {ratios} | {inside:.2f} |")
    every = np.concatenate([*found.values()])
    _, true, claim, pooled, low, high = every.T
    lower, middle, upper = np.quantile(true / claim, [0.25, 0.5, 0.75])
    print(f"\n{len(every)} claims; true over claimed: median {middle:.2f}, ", end="")
    print(f"quarters {lower:.2f} and {upper:.2f}")
    print(f"median of true over the pooled error {np.median(true / pooled):.2f}")
    print(f"{100 * np.mean((low <= true) & (true <= high)):.0f} % of the intervals contain the true error")


def real_scores(folder: Path) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, scores and labels of files with arrays called prob or logit, and y."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            parts = {key: file[key] for key in file.files}
        joined = {
            kind: [parts[key].astype(np.float64) for key in sorted(parts) if key.endswith(kind)]
            for kind in ("prob", "logit", "y")
        }
        if joined["logit"]:
            logits = np.concatenate(joined["logit"])
            exp = np.exp(logits - logits.max(axis=1, keepdims=True))
            score = exp / exp.sum(axis=1, keepdims=True)
        else:
            score = np.concatenate(joined["prob"])
        if score.ndim == 2:
            score = score / score.sum(axis=1, keepdims=True)
        yield path.stem, score, np.concatenate(joined["y"]).astype(int)


def real(folder: Path, sizes: Sequence[int], repetitions: int) -> None:
    """Print claims on real scores, and the error of the mapped rest by two estimators."""
    print("\n| file | n | before | claimed | rest: default | rest: debiased |\n" + "|---" * 6 + "|")
    ratios, out = [], []
    for name, score, label in real_scores(folder):
        vector = score.ndim == 1
        notion = get_notion("binary" if vector else "confidence")
        options: dict[str, Any] = {} if vector else {"labels": list(range(score.shape[1]))}
        for n in (n for n in sizes if 2 * n <= len(label)):
            for k in range(repetitions):
                order = rng_of("remaining", "real", name, n, k).permutation(len(label))
                rest = order[n:]
                values: dict[str, float] = {}

                def true(fitted: Calibrator, rest: Array = rest, values: dict[str, float] = values) -> float:
                    held = predictions(label[rest], fitted.predict_proba(score[rest]), **options)  # noqa: B023
                    task = CalibrationTask.of(held, notion)  # noqa: B023
                    values |= {each: measure(task, each, "l1") for each in ("auto", "debiased")}
                    return values["auto"]

                claim = claim_of(predictions(label[order[:n]], score[order[:n]], **options), notion, true)
                if claim is None:
                    continue
                ratios.append([*(each / claim.claim for each in values.values()), claim.true / claim.pooled])
                out.append(claim.claim < claim.true)
                figures = (claim.before, claim.claim, *values.values())
                print(f"| {name} | {n} | " + " | ".join(f"{100 * each:.2f}" for each in figures) + " |")
    middle = np.median(ratios, axis=0)
    print(
        f"\n{len(ratios)} claims, {sum(out)} below the rest; median of the rest over claimed {middle[0]:.2f} "
        f"(default) and {middle[1]:.2f} (debiased), over the pooled error {middle[2]:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--reps", type=int, default=REPETITIONS)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--real", type=Path, metavar="DIR")
    given = parser.parse_args()
    if given.real is not None:
        real(given.real, given.sizes, given.reps)
    else:
        show(study(given.parts, given.sizes, given.reps, given.only))


if __name__ == "__main__":
    main()
