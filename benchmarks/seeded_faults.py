"""Seed small faults into a copy of the package, and report which tests of the public surface catch them.

    python benchmarks/seeded_faults.py [--only REGEX] [--check]

Each fault changes one place, as a slip in a rewrite would: a wrong sign, a dropped weight, a swapped class.
The fast set of tests (`-m "not full"`) runs on the changed copy up to the first failure, beginning with the
files that are most likely to notice. One core is used. `--check` only looks whether each text is there.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", ".venv", "build", "dist")


@dataclass(frozen=True)
class Fault:
    """A change of one text of a file, what a user would see, and the tests to run first."""

    name: str
    file: str
    old: str
    new: str
    effect: str
    first: tuple[str, ...]


FAULTS = (
    # inputs and notions
    Fault(
        "half is positive",
        "tasks/notions.py",
        "positive = data.score > 0.5",
        "positive = data.score >= 0.5",
        "a score of 0.5 counts as a prediction of the second class",
        ("tasks", "estimators"),
    ),
    Fault(
        "other column",
        "tasks/notions.py",
        "yield ScoresAndOutcomes(data.score[:, data.positive], data.code == data.positive, (0.0, 1.0))",
        "yield ScoresAndOutcomes(data.score[:, 1 - data.positive], data.code == data.positive, (0.0, 1.0))",
        "the error of a class is measured with the scores of another one",
        ("tasks", "estimators"),
    ),
    Fault(
        "truncated counts",
        "inputs/predictions.py",
        'if array.dtype.kind == "f" and (broken := array != np.rint(array)).any():',
        'if array.dtype.kind == "f" and (broken := array != array).any():',
        "counts such as 2.5 are truncated without a word",
        ("inputs", "inference/test_counts.py"),
    ),
    Fault(
        "dropped rows",
        "inputs/missing.py",
        "        known &= ~np.isnan(values)\n",
        "        pass\n",
        'missing="drop" keeps rows whose label is NaN',
        ("inputs/test_missing.py", "data"),
    ),
    # sums over rows
    Fault(
        "unweighted totals",
        "score_data/tally.py",
        "factor = None if weight is None else weight[chunk].astype(np.float64)",
        "factor = None",
        "a sketch forgets weights in accuracy, log loss and Brier score",
        ("sketch",),
    ),
    Fault(
        "squares replaced",
        "sketch/cell_sums.py",
        "total_cells.squares[at] += new_cells.squares",
        "total_cells.squares[at] = new_cells.squares",
        "after a second update a sketch has the effective sample size of that update",
        ("sketch",),
    ),
    # estimators
    Fault(
        "cuts a row late",
        "estimators/binned.py",
        "cut = np.floor(place * size / b * (1 + slack))",
        "cut = np.ceil(place * size / b * (1 + slack))",
        "bins of equal mass have another row each",
        ("estimators",),
    ),
    Fault(
        "one bin more",
        "estimators/binned.py",
        "root = max(1, int(np.sqrt(np.max(n) * (1 + 1e-12))))",
        "root = 1 + int(np.sqrt(np.max(n) * (1 + 1e-12)))",
        '"sqrt" gives a bin too many',
        ("estimators",),
    ),
    Fault(
        "biased variance",
        "estimators/debiased.py",
        "noise = np.divide(spread, self.size - 1, out=",
        "noise = np.divide(spread, self.size, out=",
        "the debiased error is too large in small bins",
        ("estimators",),
    ),
    Fault(
        "ties end the sweep",
        "estimators/sweep.py",
        "falls = (np.diff(rate) < -LEVEL) & (np.diff(sweep) == 0)",
        "falls = (np.diff(rate) <= LEVEL) & (np.diff(sweep) == 0)",
        "the sweep stops at equal frequencies",
        ("estimators",),
    ),
    Fault(
        "one side of the walk",
        "estimators/cumulative.py",
        'if self.estimator.statistic == "ks" else high - low',
        'if self.estimator.statistic == "ks" else high',
        "the Kuiper statistic ignores negative sums",
        ("estimators",),
    ),
    # posterior, interval and test
    Fault(
        "sides exchanged",
        "posterior/gap.py",
        "            components.append((up - net, up))\n",
        "            components.append((up, up - net))\n",
        "repeated scores that are too high are called too low",
        ("posterior", "inference", "assessment"),
    ),
    Fault(
        "over is under",
        "inference/estimate.py",
        "        over=value * part_over,\n        under=value - value * part_over,\n",
        "        over=value - value * part_over,\n        under=value * part_over,\n",
        "an overconfident model is called underconfident",
        ("inference", "assessment"),
    ),
    Fault(
        "p-value of 0",
        "inference/null.py",
        "return (1 + int(exceeding)) / (1 + self.test_statistic.size)",
        "return int(exceeding) / (1 + self.test_statistic.size)",
        "a p-value of 0 from 999 simulated data sets",
        ("inference",),
    ),
    Fault(
        "wrong tail",
        "inference/null.py",
        "np.count_nonzero(self.test_statistic >= self.observed - ",
        "np.count_nonzero(self.test_statistic <= self.observed - ",
        "calibrated models are rejected and others are not",
        ("inference",),
    ),
    Fault(
        "median for mean",
        "inference/null.py",
        "return Null(float(np.mean(estimates)), by_level)",
        "return Null(quantiles[0], by_level)",
        "the error expected if calibrated is its median",
        ("inference",),
    ),
    Fault(
        "no Bonferroni",
        "inference/multiplicity.py",
        "return 1 - (1 - level) / max(count, 1)",
        "return level",
        "intervals of many classes do not hold jointly",
        ("inference", "assessment"),
    ),
    Fault(
        "unranked p-values",
        "inference/multiplicity.py",
        "np.minimum(p * order.size / ranks, 1.0)",
        "np.minimum(p * order.size, 1.0)",
        "adjusted p-values of groups are those of Bonferroni",
        ("inference/test_table.py", "assessment"),
    ),
    # clusters
    Fault(
        "size of clusters",
        "score_data/clusters.py",
        "return float(size.sum(dtype=np.float64) ** 2 / np.square(size, dtype=np.float64).sum())",
        "return float(size.size)",
        "clusters of very different size count alike",
        ("inference", "decisions"),
    ),
    # curves
    Fault(
        "one-sided level",
        "curves/band.py",
        "z2 = NormalDist().inv_cdf((1 - level) / 2) ** 2",
        "z2 = NormalDist().inv_cdf(1 - level) ** 2",
        "intervals of bins hold 90 % in place of 95 %",
        ("curves",),
    ),
    Fault(
        "histogram exchanged",
        "curves/histogram.py",
        "return edges, sums.wy * rows, np.maximum(sums.w - sums.wy, 0.0) * rows",
        "return edges, np.maximum(sums.w - sums.wy, 0.0) * rows, sums.wy * rows",
        "rows with the outcome are drawn as rows without it",
        ("curves", "plot"),
    ),
    # maps and their export
    Fault(
        "shift backwards",
        "maps/prior_shift.py",
        "self._shift = Shift(_log(prior) - np.log(train)",
        "self._shift = Shift(np.log(train) - _log(prior)",
        "a class that has become frequent gets smaller probabilities",
        ("maps",),
    ),
    Fault(
        "edge of a step",
        "maps/forms.py",
        'side="right" if right else "left") - right',
        'side="left" if right else "right") - right',
        "isotonic and histogram maps give a score on an edge the value of the other step",
        ("maps",),
    ),
    Fault(
        "edge in SQL",
        "maps/sql.py",
        'cases = [f"WHEN {column} {sign} {edge} THEN {value}"',
        'cases = [f"WHEN {column} <= {edge} THEN {value}"',
        "exported SQL differs from the map at edges",
        ("maps", "test_sql_null.py"),
    ),
    Fault(
        "folds by place",
        "maps/folds.py",
        "    return np.lexsort((weight, score, data.code))\n",
        "    return np.arange(len(score))\n",
        "compare_calibrators depends on the order of the rows",
        ("test_fold_order.py", "inference"),
    ),
    # decisions
    Fault(
        "harm of an alarm",
        "decisions/curve.py",
        "    odds = thresholds / (1 - thresholds)\n",
        "    odds = (1 - thresholds) / thresholds\n",
        "net benefit charges a false alarm by the wrong exchange rate",
        ("decisions",),
    ),
    Fault(
        "E to O",
        "decisions/clinical.py",
        "        ratio = observed / expected\n",
        "        ratio = expected / observed\n",
        "the O:E ratio is upside down",
        ("decisions", "assessment", "cli"),
    ),
    Fault(
        "ties in the AUC",
        "decisions/clinical.py",
        "negative_below = (np.cumsum(negative) - negative / 2) / n_negative",
        "negative_below = np.cumsum(negative) / n_negative",
        "tied scores count as in order in the area under the ROC curve",
        ("cli/test_check.py", "decisions"),
    ),
    Fault(
        "accuracy on the edge",
        "decisions/selective.py",
        "(np.flatnonzero(x >= accuracy - ROUNDING) for x in",
        "(np.flatnonzero(x > accuracy + ROUNDING) for x in",
        "a coverage with exactly the wanted accuracy is not found",
        ("decisions",),
    ),
    # assessment and gates
    Fault(
        "inconclusive passes",
        "assessment/gates.py",
        'return "pass" if least <= low and high <= most else',
        'return "pass" if least <= low and low <= most else',
        "a gate passes although the interval reaches beyond the limit",
        ("cli/test_check.py", "cli"),
    ),
    Fault(
        "O:E in one direction",
        "assessment/gates.py",
        'return (1 / self.limit if self.name == "max_oe" else -math.inf), self.limit',
        "return -math.inf, self.limit",
        "--max-oe passes a model that predicts twice the outcomes",
        ("cli/test_check.py", "cli"),
    ),
    Fault(
        "words exchanged",
        "assessment/text.py",
        'words = np.where(high < scores, "too high", np.where(low > scores, "too low", NO_ERROR))',
        'words = np.where(high < scores, "too low", np.where(low > scores, "too high", NO_ERROR))',
        "the text says too low where scores are too high",
        ("assessment",),
    ),
    # audit, comparison and tables
    Fault(
        "only positive gaps",
        "inference/audit.py",
        "if max(each.gap.low, -each.gap.high) > limit]",
        "if each.gap.low > limit]",
        "audit --max-gap passes segments whose scores are too high",
        ("cli/test_cli_audit.py", "inference/test_segments.py"),
    ),
    Fault(
        "unpaired rows",
        "inference/comparison.py",
        "of_errors = _correlations(tasks, baseline, contributions, unit_of_row) if paired else {}",
        "of_errors = {}",
        "the difference of two models on the same rows has far too wide an interval",
        ("inference",),
    ),
    # monitor
    Fault(
        "early alarm",
        "monitor/monitor.py",
        "return 1 / (self.settings.alpha * (1 - spent))",
        "return (1 - spent) / self.settings.alpha / 4",
        "four times as many false alarms",
        ("monitor", "cli"),
    ),
    # data
    Fault(
        "blank is a word",
        "data/text.py",
        "names = tuple(name.strip() for name in raw)",
        "names = tuple(raw)",
        "a column ' p' of a CSV file is not found",
        ("data", "cli"),
    ),
    Fault(
        "lengths of choices",
        "data/answer_logs.py",
        "    return right, (), label, probability / probability.sum()\n",
        "    return right, (), label, probability\n",
        "confidences of choices are not divided by their sum",
        ("data/test_answer_logs.py",),
    ),
    # report, plot and command line
    Fault(
        "ends of the band",
        "report/page.py",
        '"low": rounded(curve.low),',
        '"low": rounded(curve.value),',
        "the page shows the curve as the lower end of its band",
        ("report", "cli"),
    ),
    Fault(
        "axes exchanged",
        "plot/reliability.py",
        "marks = ax.scatter(result.score[these], frequency[these],",
        "marks = ax.scatter(frequency[these], result.score[these],",
        "a reliability diagram is mirrored at the diagonal",
        ("plot",),
    ),
    Fault(
        "seed ignored",
        "cli/calibrate.py",
        'rng=given["seed"],',
        "rng=0,",
        "--seed changes nothing",
        ("cli/test_cli_calibrate.py", "cli"),
    ),
    # adapters, the published code and the experiment
    Fault(
        "positive scores",
        "sklearn/scorer.py",
        "            return -ece(\n",
        "            return ece(\n",
        "a search selects the worst calibrated model",
        ("sklearn",),
    ),
    Fault(
        "weight of pixels",
        "torch/reduce.py",
        "        sums[1:] *= batch.weight\n",
        "        sums *= 1\n",
        "weights are forgotten in accuracy and losses of the metric",
        ("pytorch",),
    ),
    Fault(
        "wrong ddof",
        "published.py",
        "ddof=min(n - 1, 1)",
        "ddof=0",
        "published densities differ in the fourth digit",
        ("published",),
    ),
    Fault(
        "sum for mean",
        "experiment/truth.py",
        "return max(0.0, float(error) / 2), ",
        "return max(0.0, float(error)), ",
        "true errors of the experiment are twice as large",
        ("experiment",),
    ),
)


def run(copy: Path, words: list[str]) -> tuple[int, str]:
    """Run tests of the copy up to the first failure; return the exit code and the test that failed."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1", "CI": ""}
    command = [
        "nice",
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-m", "not full", *words]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", done.stdout, flags=re.M)
    return done.returncode, failed[1] if failed else done.stdout[-300:]


def caught_by(fault: Fault, copy: Path) -> str:
    """Return the test that notices a fault; empty if none does."""
    names = ("test_worked_numbers.py", *fault.first)
    first = [f"tests/public/{name}" for name in names if (copy / "tests/public" / name).exists()]
    rest = ["tests/public", *(f"--ignore={name}" for name in first)]
    for words in (first, rest):
        code, test = run(copy, words) if words else (5, "")
        if code not in (0, 5):  # 5: no test was left
            return test
    return ""


def main() -> int:
    """Seed the faults one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names")
    parser.add_argument("--check", action="store_true", help="only look whether each text is there")
    given = parser.parse_args()
    faults = [fault for fault in FAULTS if re.search(given.only, fault.name)]
    caught = missing = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        if not given.check:
            shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        for k, fault in enumerate(faults):
            source = (ROOT / "src/calibrant" / fault.file).read_text(encoding="utf-8")
            if source.count(fault.old) != 1:
                missing += 1
                print(f"not applied  {fault.name}: {fault.file} has its text {source.count(fault.old)} times")
                continue
            if given.check:
                continue
            path, before = copy / "src/calibrant" / fault.file, time.time()
            path.write_text(source.replace(fault.old, fault.new), encoding="utf-8")
            os.utime(path, (before + k, before + k))  # or Python may take the compiled file for this one
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            test = caught_by(fault, copy)
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used
            path.write_text(source, encoding="utf-8")
            os.utime(path, (before - k - 1, before - k - 1))
            caught += bool(test)
            said = (
                f"caught  {used:4.0f} s  {fault.name}: {test}"
                if test
                else f"MISSED  {used:4.0f} s  {fault.name}"
            )
            print(said if test else f"{said}: {fault.effect}", flush=True)
    said = f"{missing} not applied" if given.check else f"{caught} caught"
    print(f"{len(faults)} faults, {said}")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
