"""Chen's beta kernels: how right and how fast the sums are, which bandwidth to take, and what it is worth.

    python benchmarks/beta_kernels.py
    python benchmarks/beta_kernels.py --rule [--share 0.1]
    python benchmarks/beta_kernels.py --paper DIR [--jobs 2] [--write docs/findings.md]

Without options: the worst relative error of kernel sums over cells against direct evaluation, for five
distributions and where the density is above 1e-6 of its peak, and the time of an error from a million rows
over the limit of .15 s and over that of the triweight in the same run.

`--rule` measures shares of the variance of Silverman's and of Scott's bandwidth on distributions that
serve for nothing else. `--paper` measures the estimators on 72 of the paper's models, in a run in DIR that is
resumed; `--write` puts its table between the two markers of a page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

import calibrant
from calibrant.estimators import FIFTEEN, DensityBeta, Estimator
from calibrant.estimators.density_beta import BETA_KERNELS, SHARE
from calibrant.experiment import PRESETS, Settings, Summary, models, procedure, run
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.procedure import NOTIONS
from calibrant.score_data import Array, Sample, ScoreData
from calibrant.score_data.beta import bits_for, shapes, sums
from calibrant.score_data.nodes import Nodes
from calibrant.tasks import notions

BEGIN, END = "<!-- beta_kernels:begin -->", "<!-- beta_kernels:end -->"
LIMIT = 0.15
BANDWIDTHS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1)
SHAPES = ((1, 1), (0.5, 0.5), (1.1, 0.1), (0.05, 0.3), (8, 3))
ENDS = np.array([0.0, 1e-9, 1e-6, 1e-4, 5e-4, 1e-3, 2e-3, 3e-3])
PLACES = np.unique(np.concatenate([np.linspace(0, 1, 129), ENDS, 1 - ENDS]))

# --- sums ---


def direct(score: Array, at: Array, bandwidth: float, kind: int) -> Array:
    """Sum kernels row by row."""
    total = np.empty(at.size)
    for k, (a, b) in enumerate(zip(*shapes(at, np.array(bandwidth), kind), strict=True)):
        total[k] = np.exp(xlogy(a - 1, score) + xlog1py(b - 1, -score) - betaln(a, b)).sum()
    return total


def worst(bandwidth: float, kind: int, n: int = 20_000) -> float:
    """Return the largest relative error over the distributions."""
    errors = []
    for number, shape in enumerate(SHAPES):
        score = np.random.default_rng(number).beta(*shape, n)
        bits = int(bits_for(np.array(bandwidth)))
        nodes = Nodes.of_cells(score, np.zeros(n), np.ones(n), (0.0, 1.0), bits)
        found = sums(nodes.alone(), PLACES, np.array([bandwidth]), kind)[0, :, 0]
        known = direct(score, PLACES, bandwidth, kind)
        seen = known > 1e-6 * known.max()
        errors.append(np.max(np.abs(found - known)[seen] / known[seen]))
    return float(max(errors))


def taken(work: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def accuracy_and_time(n: int = 1_000_000, rounds: int = 7, rows: int = 20_000) -> None:
    """Print a line for each kind and bandwidth; so many rows are summed directly."""
    rng = np.random.default_rng(0)
    score = rng.random(n)
    outcome = rng.random(n) < score
    peer = taken(lambda: calibrant.ece(outcome, score, estimator="density:0.033"), rounds)
    print("| kernel | b | worst relative error | seconds | over the limit | over the triweight |")
    print("|---" * 6 + "|")
    for name, kind in BETA_KERNELS.items():
        for b in (*BANDWIDTHS, "scott"):
            error = f"{worst(b, kind, rows):.0e}" if b != "scott" else "-"
            spent = taken(lambda e=f"density-{name}:{b}": calibrant.ece(outcome, score, estimator=e), rounds)
            ratios = f"{spent / (LIMIT * n / 1e6):.2f} | {spent / peer:.1f}"
            print(f"| {name} | {b} | {error} | {spent:.3f} | {ratios} |", flush=True)


# --- the rule ---

DEVELOPMENT = replace(
    PRESETS["confirm"],
    features=(2, 5),
    seeds=(20, 21),
    n_holdout=200_000,
    sizes=(100, 500, 2000),
    repetitions=40,
)
SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Scaled(DensityBeta):
    """A rule with another share of the variance."""

    scale: float = 1.0

    def asked(self, evidence: ScoreData) -> Array:
        return self.scale * super().asked(evidence)


def samples(settings: Settings, share: float, seed: str) -> Iterator[tuple[str, str, int, float, Sample]]:
    """Yield repeated samples of models: the model, the notion, its size, its true error and the rows."""
    tasks = settings.tasks()
    kept = rng_of("beta kernels", seed).permutation(len(tasks))[: max(1, round(share * len(tasks)))]
    for task in (tasks[k] for k in np.sort(kept)):
        where = procedure.distribution(task.distribution)
        features, labels, posterior = procedure.holdout(task.distribution, settings.n_holdout)
        rows = where.sample(settings.n_train, rng_of(task.distribution, "train", task.train_set))
        trained = models.fit(
            procedure.family(task.family), *rows, seed=int(rng_of(task.name).integers(2**31))
        )
        scores = models.scores(trained, features, where.n_classes)
        truths = procedure.true_errors(scores, labels, posterior, NOTIONS)
        for n in settings.sizes:
            drawn = rng_of(task.name, "rows", n).integers(0, len(labels), (settings.repetitions, n))
            for notion in NOTIONS:
                score, outcome = procedure.one_dimensional(notion, scores[drawn], labels[drawn])
                support = notions.get_notion(notion).support(where.n_classes)
                yield task.name, notion, n, truths[notion].exact, Sample(score, outcome, None, support)


def errors_of(estimator: Estimator, sample: Sample) -> Array:
    value = np.asarray(estimator.fit(sample).error())
    return value.mean(axis=-1) if value.ndim > 1 else value


def rule(share: float, settings: Settings = DEVELOPMENT) -> dict[tuple[str, ...], float]:
    """Print the 95th percentile error by kernel, rule and share over that of d:silverman."""
    tried = {
        (kernel, name, part): Scaled(name, kernel, places=procedure.PLACES, scale=part / SHARE)
        for kernel in BETA_KERNELS
        for name in ("silverman", "scott")
        for part in SHARES
    }
    found: dict[tuple[str, int, object], list[float]] = {}
    for _, notion, n, truth, sample in samples(settings, share, "rule"):
        peer = procedure.estimator("d:silverman")
        for key, estimator in {**tried, "peer": peer}.items():
            p95 = float(np.percentile(np.abs(errors_of(estimator, sample) - truth), 95))
            found.setdefault((notion, n, key), []).append(p95)
    medians = {key: float(np.median(values)) for key, values in found.items()}
    cells = list(dict.fromkeys((notion, n) for notion, n, _ in medians))
    print("| kernel | rule | share | " + " | ".join(f"{notion}, {n}" for notion, n in cells) + " | mean |")
    print("|---" * (len(cells) + 4) + "|")
    means = {}
    for key in tried:
        ratios = [medians[notion, n, key] / medians[notion, n, "peer"] for notion, n in cells]
        means[key] = float(np.exp(np.mean(np.log(ratios))))
        texts = [f"{value:.2f}" for value in (*ratios, means[key])]
        print("| " + " | ".join([*map(str, key), *texts]) + " |", flush=True)
    return means


# --- the paper's models ---

PEER = "d:silverman"
OURS = ("density-beta", "density-beta2")
PAPER = replace(
    PRESETS["paper"],
    seeds=(0, 1),
    train_sets=1,
    n_holdout=400_000,
    sizes=(100, 500, 2000),
    repetitions=100,
    readings=("corrected",),
    estimators=(*FIFTEEN, "auto", *OURS),
)
RESAMPLES = 1000


def table(summary: Summary) -> list[str]:
    """Return a Markdown table: the error of the peer, and of others over it with 90 % intervals."""
    names, shown = list(summary.settings.estimators), (*OURS, "auto")
    where = np.array([model[0] for model in summary.models])
    groups = [np.flatnonzero(where == name) for name in np.unique(where)]
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(groups), (RESAMPLES, len(groups)))
    again = [np.concatenate([groups[k] for k in some]) for some in drawn]
    heads = ("notion", "error", "N", *(f"`{name}`" for name in (PEER, *shown)), "best of the fifteen")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for j, notion in enumerate(summary.settings.notions):
        for statistic, word in (("p95", "95 %"), ("mean", "mean")):
            for k, n in enumerate(summary.settings.sizes):
                values = summary.values["corrected"][statistic][:, j, :, k]
                middle = dict(zip(names, np.median(values, axis=0), strict=True))
                cells = [procedure.title(notion).lower(), word, str(n), f"{middle[PEER]:.4f}"]
                for name in shown:
                    pair = values[:, [names.index(name), names.index(PEER)]]
                    ratios = [np.divide(*np.median(pair[some], axis=0)) for some in again]
                    low, high = np.quantile(ratios, [0.05, 0.95])
                    cells.append(f"{middle[name] / middle[PEER]:.2f} ({low:.2f}-{high:.2f})")
                best = min(FIFTEEN, key=middle.__getitem__)
                cells.append(f"{middle[best] / middle[PEER]:.2f} (`{best}`)")
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def paper(folder: Path, jobs: int, settings: Settings = PAPER) -> list[str]:
    """Run the models and return the table."""
    return table(Summary.of(run(settings, folder, jobs=jobs, progress=True)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rule", action="store_true", help="measure shares of the variance of rules")
    parser.add_argument("--share", type=float, default=1.0, help="share of the models for --rule")
    parser.add_argument("--paper", type=Path, metavar="DIR", help="run some of the paper's models in DIR")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table of --paper into a page")
    arguments = parser.parse_args()
    if arguments.write and not arguments.paper:
        parser.error("--write goes with --paper")
    if arguments.rule:
        rule(arguments.share)
    elif arguments.paper:
        lines = paper(arguments.paper, arguments.jobs)
        print("\n".join(lines))
        if arguments.write:
            text = arguments.write.read_text(encoding="utf-8")
            before, after = text.split(BEGIN)[0], text.split(END)[1]
            arguments.write.write_text(
                "\n".join([before + BEGIN, "", *lines, "", END + after]), encoding="utf-8"
            )
    else:
        accuracy_and_time()


if __name__ == "__main__":
    main()
