"""Error rate, power and time of `calibrant.audit`.

    python benchmarks/audit.py                 # error rates, 400 data sets of each kind, some minutes
    python benchmarks/audit.py --kinds odd odd-shifted       # power, with a segment that differs
    python benchmarks/audit.py --intersection  # calibrated segments named where one intersection is shifted
    python benchmarks/audit.py --many          # error rate of the first test, 2,000 outcomes of 5 designs
    python benchmarks/audit.py --clusters      # rows in clusters of 4, with fewer segments
    python benchmarks/audit.py --unequal       # clusters of equal, lognormal and Pareto sizes, some minutes
    python benchmarks/audit.py --time          # 1e6 rows and some 1,000 segments
    python benchmarks/audit.py --share 0.1     # a tenth of the data sets

A data set has 10,000 rows with eight columns of values that are unevenly frequent, some 930 segments of 30
to 5,500 rows at depth 2, and an outcome with a frequency of 2 %. The error rate is the share of data sets in
which a method names any segment. "gap" names segments for their own gap, and "difference" for their
difference from a common recalibration. With the kind "shifted" all scores are too low alike, so that no
segment differs. For the power the outcome is three times as frequent as the scores say in one segment of some
3 % of the rows. Printed are the share of data sets in which that segment is named, how
many others are, and how often it comes first. 20 data sets share their scores and segments, and therefore the
null distribution, which is simulated once for them.

With `--unequal` 3,000 rows belong to 60 or 300 clusters (`--numbers`). Three columns of three values (some
35 segments) are constant in each cluster or cross the clusters, which have a latent correlation of .02 or .2.
Printed are the shares of data sets in which a segment is named ("error", calibrated scores), and in which the
segment "s0 = 0" is named whose outcomes are too frequent by 0.5 of a probit ("power"). `--seed` gives other
data sets.

Peers: normal tests of the mean gap of each segment, unadjusted and with Bonferroni's adjustment, computed
here from the rows; and, with `--mcgrad`, the multicalibration error of MCGrad (`pip install mcgrad`), whose
p-value is that of the segment with the largest error.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import contextmanager, nullcontext
from itertools import combinations, product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr, ndtri

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.inference import segments

ROWS, COLUMNS, VALUES, RATE, ALPHA = 10_000, 8, 6, 0.02, 0.05
ODD = {"c0": 2, "c1": 1}
# Shift in log-odds of all scores, and factor of the frequency in the odd segment.
KINDS = {"calibrated": (0.0, 1.0), "shifted": (0.7, 1.0)}
ODD_KINDS = {"odd": (0.0, 3.0), "odd-shifted": (0.7, 3.0)}
# Data sets that share their scores and segments.
SHARED = 20


def data_of(seed, kind, rows=ROWS, columns=COLUMNS, values=VALUES, cluster=None):
    """Return labels, scores and columns of a data set."""
    rng = rng_of("audit", seed // SHARED)
    shift, factor = (KINDS | ODD_KINDS)[kind]
    table = {f"c{k}": np.minimum(rng.geometric(0.45, rows) - 1, values - 1) for k in range(columns)}
    score = rng.beta(1, 1 / RATE - 1, rows)
    true = 1 / (1 + np.exp(-(np.log(score / (1 - score)) + shift)))
    odd = np.all([table[name] == value for name, value in ODD.items()], axis=0)
    true = np.where(odd, np.minimum(factor * true, 0.95), true)
    rng = rng_of("audit", kind, seed)
    uniform = rng.random(rows)
    if cluster is not None:  # outcomes of a cluster are one draw with probability one half
        uniform = np.where(rng.random(rows) < 0.5, rng.random(rows)[cluster], uniform)
    return uniform < true, score, table


def named_by_normal_tests(outcome, score, table, min_rows=30):
    """Return the p-value of each segment, by its columns and values, as a normal test has it."""
    found = {}
    for names in [*((name,) for name in table), *combinations(table, 2)]:
        code = sum(table[name] * VALUES**k for k, name in enumerate(names))
        size = np.bincount(code)
        gap, variance = np.bincount(code, outcome - score), np.bincount(code, score * (1 - score))
        for k in np.flatnonzero(size >= min_rows):
            key = tuple((name, str(k // VALUES**j % VALUES)) for j, name in enumerate(names))
            found[key] = 2 * ndtr(-abs(gap[k]) / np.sqrt(variance[k]))
    return found


def named_by_mcgrad(outcome, score, table):
    """Return the p-value of the multicalibration error, and the columns and values of its segment."""
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame(
        {"label": outcome.astype(int), "score": score} | {k: v.astype(str) for k, v in table.items()}
    )
    options = {"categorical_segment_columns": list(table), "max_depth": 2, "min_samples_per_segment": 30}
    error = MulticalibrationError(
        frame, "label", "score", max_n_segments=None, precision_dtype="float64", **options
    )
    return float(error.mce_pvalue)


@contextmanager
def same_null():
    """Simulate the two null distributions of the first audit only."""
    simulate, found = segments._largest, []

    def once(test, *arguments, **options):
        if len(found) < 2:
            found.append(simulate(test, *arguments, **options))
        calls.append(None)
        return found[(len(calls) - 1) % 2]

    calls = []
    segments._largest = once
    try:
        yield
    finally:
        segments._largest = simulate


def one_set(seed, kind, n_resamples=9999, mcgrad=False, **options):
    """Return the segments that each method names, and whether the odd one comes first."""
    outcome, score, table = data_of(seed, kind, **options)
    cluster = options.get("cluster")
    audit = calibrant.audit(outcome, score, table, n_resamples=n_resamples, rng=seed + 10**6, cluster=cluster)
    keys = [tuple(zip(each.columns, each.values, strict=True)) for each in audit.segments]
    normal = named_by_normal_tests(outcome, score, table)
    first = {"gap": keys[0]}
    if audit.different:
        first["difference"] = tuple(zip(audit.different[0].columns, audit.different[0].values, strict=True))
    named = {
        "gap": {key for key, each in zip(keys, audit.segments, strict=True) if each.p_value <= ALPHA},
        "difference": {
            key for key, each in zip(keys, audit.segments, strict=True) if each.p_difference <= ALPHA
        },
        "unadjusted": {key for key, p in normal.items() if p <= ALPHA},
        "bonferroni": {key for key, p in normal.items() if p * len(normal) <= ALPHA},
    }
    if mcgrad:
        named["mcgrad"] = {"any"} if named_by_mcgrad(outcome, score, table) <= ALPHA else set()
    return named, first, len(keys)


def study(kinds, sets, **options):
    """Return for each kind and method the shares of data sets, and the mean number of other segments."""
    odd, results = tuple((name, str(value)) for name, value in ODD.items()), {}
    for kind in kinds:
        found = []
        for start in range(0, sets, SHARED):
            # With clusters the null distribution depends on the outcomes.
            with same_null() if options.get("cluster") is None else nullcontext():
                found += [one_set(seed, kind, **options) for seed in range(start, min(start + SHARED, sets))]
        for method in found[0][0]:
            any_named = np.mean([bool(named[method]) for named, _, _ in found])
            with_odd = np.mean([odd in named[method] for named, _, _ in found])
            others = np.mean([len(named[method] - {odd}) for named, _, _ in found])
            first = np.mean([firsts.get(method) == odd for _, firsts, _ in found])
            results[kind, method] = any_named, with_odd, others, first, found[0][2]
    return results


def intersection(sets, shift, rows=8000, n_resamples=9999):
    """Return shares of data sets in which the scores of women over 80 alone are too low, by `shift`.

    For each reading: those in which any calibrated segment is named, "sex = M", and women over 80.
    """
    readings, shares = ("gap", "difference"), np.zeros((2, 3))
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        sex, age = rng.choice(["F", "M"], rows), rng.choice(["<40", "40-60", "60-80", ">80"], rows)
        region, score = rng.choice(["a", "b", "c"], rows), rng.beta(2, 5, rows)
        log_odds = np.log(score / (1 - score)) + shift * ((sex == "F") & (age == ">80"))
        outcome, table = rng.random(rows) < 1 / (1 + np.exp(-log_odds)), {"sex": sex, "age": age}
        audit = calibrant.audit(outcome, score, table | {"region": region}, rng=seed, n_resamples=n_resamples)
        for k, named in enumerate((audit.miscalibrated, audit.different)):
            values = [dict(zip(each.columns, each.values, strict=True)) for each in named]
            off = [each.get("sex", "F") == "F" and each.get("age", ">80") == ">80" for each in values]
            women = {"sex": "F", "age": ">80"}
            shares[k] += (not shift and bool(off)) or not all(off), {"sex": "M"} in values, women in values
    return dict(zip(readings, (shares / sets).tolist(), strict=True))


def unequal_clusters(seed, sizes, clusters, correlation, constant, shift, rows=3000):
    """Return labels, scores, columns and clusters of a data set with clusters of such sizes."""
    rng = rng_of("audit-clusters", seed, clusters)
    size = {
        "equal": np.ones(clusters),
        "lognormal": rng.lognormal(0, 1, clusters),
        "pareto": rng.pareto(1.0, clusters) + 1,
    }[sizes]
    cluster = np.repeat(np.arange(clusters), np.maximum(np.round(size / size.sum() * rows), 1).astype(int))
    n = len(cluster)
    score, of_cluster = rng.beta(1.3, 1.7, n), rng.normal(size=clusters)[cluster]
    effect = np.sqrt(correlation) * of_cluster + np.sqrt(1 - correlation) * rng.normal(size=n)
    table = {}
    for k in range(3):
        table[f"s{k}"] = rng.integers(0, 3, clusters)[cluster] if constant else rng.integers(0, 3, n)
    true = ndtr(ndtri(score) + shift * (table["s0"] == 0))
    return ndtr(effect) < true, score, table, cluster


def study_of_clusters(sets, first, numbers, kinds, n_resamples=999):
    """Print error rates and power with clusters of unequal sizes."""
    print(
        "clusters sizes     effective  correlation  segments   error: gap  difference  power: gap  difference"
    )
    for cell in product(numbers, kinds, (0.02, 0.2), ("constant", "crossing")):
        clusters, sizes, correlation, kind = cell
        found, effective = {0.0: [], 0.5: []}, []
        for seed, shift in product(range(first, first + sets), found):
            data = unequal_clusters(seed, sizes, clusters, correlation, kind == "constant", shift)
            *rows, cluster = data
            audit = calibrant.audit(*rows, cluster=cluster, n_resamples=n_resamples, rng=seed)
            size = np.bincount(cluster)
            effective.append(size.sum() ** 2 / (size**2).sum())
            off = [each for each in audit.segments if (each.columns, each.values) == (("s0",), ("0",))]
            named = off if shift else audit.segments
            if named:  # a segment of too few rows is not audited
                p = min(each.p_value for each in named), min(each.p_difference for each in named)
                found[shift].append([each <= ALPHA for each in p])
        rates = "  ".join(f"{rate:10.3f}" for each in found.values() for rate in np.mean(each, axis=0))
        text = f"{clusters:8} {sizes:9} {np.median(effective):9.1f}  {correlation:11}  {kind:8}"
        print(f"{text}  {rates}", flush=True)


def many_outcomes(design, sets=2000, rows=ROWS, columns=COLUMNS):
    """Return the share of calibrated outcomes of one design with a segment beyond the limit of its audit.

    The first test needs no fit, so that the normal scores of all outcomes are computed together.
    """
    from scipy.sparse import csr_array

    outcome, score, table = data_of(design * SHARED, "calibrated", rows=rows, columns=columns)
    audit = calibrant.audit(outcome, score, table)
    inside = [
        np.flatnonzero(
            np.all([table[n].astype(str) == v for n, v in zip(e.columns, e.values, strict=True)], axis=0)
        )
        for e in audit.segments
    ]
    column = np.repeat(np.arange(len(inside)), [len(each) for each in inside])
    member = csr_array((np.ones(len(column)), (np.concatenate(inside), column)), shape=(rows, len(inside)))
    spread = score * (1 - score)
    variance, third, ones = member.T @ spread, member.T @ (spread * (1 - 2 * score)), np.ones(len(inside))
    limit = audit.segments[0].gap.expected * audit.segments[0].rows / np.sqrt(variance[0])
    rng, beyond = rng_of("audit", "many", design), []
    for _ in range(0, sets, 100):
        for residual in (member.T @ ((rng.random((100, rows)) < score) - score).T).T:
            test = segments.EquivalentCount.of(residual, variance, third, ones, variance)
            beyond.append(np.abs(test.score(test.total)).max() > limit + 1e-6)
    return float(np.mean(beyond)), len(inside)


def show(results, sets):
    """Print a table."""
    print(f"{'kind':14} {'method':12} {'any':>7} {'se':>6} {'odd':>7} {'others':>8} {'first':>7}  segments")
    for (kind, method), (any_named, odd, others, first, size) in results.items():
        error = np.sqrt(any_named * (1 - any_named) / sets)
        shares = f"{any_named:7.3f} {error:6.3f} {odd:7.3f} {others:8.1f} {first:7.3f}"
        print(f"{kind:14} {method:12} {shares}  {size}", flush=True)


def clock(rows=1_000_000, values=6):
    """Print the time of an audit, and that of a pass over the rows for each table of segments."""
    outcome, score, table = data_of(0, "calibrated", rows=rows)
    texts = {
        name: np.array([f"v{k}" for k in range(values)], dtype=object)[code] for name, code in table.items()
    }
    start, cpu = time.perf_counter(), time.process_time()
    audit = calibrant.audit(outcome, score, texts)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    for a, b in [*combinations(table, 2), *((name, name) for name in table)]:
        np.bincount(table[a] * values + table[b], outcome - score)
    print(f"{rows:,} rows, {len(audit.segments):,} segments: {wall:.1f} s, processor {cpu:.1f} s; ", end="")
    print(f"sums of residuals alone {time.perf_counter() - start:.1f} s")


def main():
    """Run the studies."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("clusters", "unequal", "time", "mcgrad", "many", "intersection"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *ODD_KINDS], default=list(KINDS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first data set of --unequal")
    parser.add_argument(
        "--numbers", nargs="+", type=int, default=[60, 300], help="numbers of clusters of --unequal"
    )
    names = ["equal", "lognormal", "pareto"]
    parser.add_argument("--sizes", nargs="+", choices=names, default=names, help="sizes of clusters")
    given = parser.parse_args()
    if given.time:
        clock()
        return
    if given.unequal:
        study_of_clusters(max(2, round(200 * given.share)), given.seed, given.numbers, given.sizes)
        return
    if given.many:
        for design in range(max(1, round(5 * given.share))):
            rate, size = many_outcomes(design)
            print(f"design {design}, {size} segments, 2000 outcomes: {rate:.4f}", flush=True)
        return
    if given.intersection:
        sets = max(2, round(200 * given.share))
        for shift in (0.0, 1.0):
            for reading, (calibrated, men, women) in intersection(sets, shift).items():
                rates = f"any calibrated {calibrated:.3f}, sex = M {men:.3f}, women over 80 {women:.3f}"
                print(f"shift {shift:g}, {reading:10}: {rates}", flush=True)
        return
    sets = max(2, round(400 * given.share))
    options = {"mcgrad": given.mcgrad}
    if given.clusters:
        options |= {"cluster": np.arange(ROWS) // 4, "columns": 4}
    for kind in given.kinds:
        show(study((kind,), sets, **options), sets)


if __name__ == "__main__":
    main()
