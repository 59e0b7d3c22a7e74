"""False alarms and delay of `calibrant.Monitor`, beside other detectors of drift.

    python benchmarks/monitor.py                                # all, some 15 minutes on two cores
    python benchmarks/monitor.py --share 0.1                    # a tenth of the streams
    python benchmarks/monitor.py --only rates                   # or dependence, onset, delays

A stream has some 45 distinct scores, one for each three neighbouring cells of the monitor, so that the sums
of a batch are drawn at once and are exact. Tilts are those of `Monitor`, for the scores of all streams.
In class-wise, confidence and top-2 streams labels are drawn for 300 score vectors of four classes in steps of
.05; groups are 20 streams at 200 rows a day. A false alarm is one within 365 days of calibrated data; the
standard error of a share of .05 in 400 streams is .011.

Delays are days from a change at day 60 to the alarm, up to 150. `abrupt` adds .2 to the log-odds, `gradual`
adds .01 a day up to .4, and of `local` the highest 5 % of the scores are .15 too high. ADWIN watches the
Brier score of each row and DDM the errors of predicting a score above .5, with river's defaults. CUSUM (mean)
watches the standardised sum of outcomes minus scores in both directions, CUSUM (ECE) the ECE of 15 bins; both
have limits that gave a false alarm in 5 % of other simulated streams of 365 days. probcal's monitor is
`CalibrationMonitor(plug_in_window=7)`, on fewer streams because it is slow.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, logit

from calibrant.monitor import process
from calibrant.monitor.process import CellSums

ALPHA, DAYS, CHANGE, LONGEST = 0.05, 365, 60, 150
NEVER = 10**6
LIMIT = np.log(1 / ALPHA)


class Scores:
    """The distinct scores of a model, how common they are, and the cells that they are in."""

    def __init__(self, scores, coarse=3):
        cell = np.searchsorted(process.EDGES, scores, side="right") // coarse
        count = np.bincount(cell)
        self.share = (count / count.sum())[count > 0]
        self.score = np.bincount(cell, scores)[count > 0] / count[count > 0]
        self.cell = np.searchsorted(process.EDGES, self.score, side="right")
        assert len(set(self.cell)) == len(self.cell)

    def tilts(self, count, day):
        """Return the tilts after some days, given how often each score was seen in a stream."""
        n = np.zeros(process.CELLS)
        n[self.cell] = count
        score = np.zeros(process.CELLS)
        score[self.cell] = count * self.score
        return process.tilts(n, score, day)[:, self.cell]


BETA = Scores(np.random.default_rng(0).beta(0.8, 2.4, 400_000))
RARE = Scores(np.random.default_rng(1).beta(0.5, 50, 400_000))
SURE = Scores(0.5 + 0.5 * np.random.default_rng(2).beta(2, 1, 400_000))
SHARE, SCORE = BETA.share, BETA.score
HIGHEST = np.cumsum(SHARE) > 0.95


def probability(kind, day):
    """Return the probability of each cell on a day after the change."""
    if kind == "local":
        return np.where(HIGHEST, np.maximum(SCORE - 0.15, 0), SCORE)
    return expit(logit(SCORE) + {"none": 0.0, "abrupt": 0.2, "gradual": min(0.01 * day, 0.4)}[kind])


def binary(rng, streams, rows, scores=BETA, at=lambda day: None):
    """Yield rows and outcomes of each day, of the shape (streams, scores)."""
    day = 0
    while True:
        day += 1
        n = rng.multinomial(rows, scores.share, size=streams)
        p = at(day)
        yield n.astype(float), rng.binomial(n, scores.score if p is None else p).astype(float)


def alarms(batches, problems=(BETA,), days=DAYS, tolerance=0.0, limit=LIMIT, bounds=None):
    """Return the day of the alarm of each stream, of which the mean over problems is watched.

    A batch is (rows, outcomes) of one problem, or a list of these. `bounds` are the low and the high
    probability of each score; by default they are the score and the tolerance.
    """
    found = None
    for day in range(1, days + 1):
        batch = next(batches)
        batch = batch if isinstance(batch, list) else [batch]
        if found is None:
            found = np.full(len(batch[0][0]), NEVER)
            total = [np.zeros(each.score.size) for each in problems]
            r = np.zeros((len(problems), len(found), process.N_TILTS))
        m = np.zeros(len(found))
        for k, (scores, (n, y)) in enumerate(zip(problems, batch, strict=True)):
            total[k] += n.mean(axis=0)
            tilt = scores.tilts(total[k], day)
            low, high = bounds or (process.shifted(scores.score, by) for by in (-tolerance, tolerance))
            bound = np.where(tilt > 0, high, low)
            log_e = y @ tilt.T - n @ np.log1p(bound * np.expm1(tilt)).T
            # The recursion of `process.advance`, without logarithms, which is quicker.
            r[k] = np.minimum(np.exp(log_e) * (r[k] + process.restart_weight(day, DAYS)), 1e200)
            m += (r[k] @ process.PRIOR + process.later_weight(day, DAYS)) / len(problems)
        found[(np.log(m) >= limit) & (found == NEVER)] = day
        if (found < NEVER).all():
            break
    return found


def false_alarms(found):
    """Return the share of streams with an alarm, and its standard error."""
    share = float((found < NEVER).mean())
    return share, np.sqrt(max(share * (1 - share), ALPHA * (1 - ALPHA)) / len(found))


class Classes:
    """Score vectors of four classes in steps of .05, and the problems that a notion makes of them."""

    def __init__(self, which):
        rng = np.random.default_rng(3)
        fixed = rng.multinomial(20, rng.dirichlet([0.6] * 4, 300)) / 20
        # The largest score first, of which confidence takes one and top-2 two.
        self.vector = fixed if which == "classwise" else -np.sort(-fixed, axis=1)
        self.kept = {"classwise": 0, "confidence": 1, "top-2": 2}[which]
        columns = [self.vector[:, : self.kept].sum(axis=1)] if self.kept else list(self.vector.T)
        self.problems, self.into = [], []
        for column in columns:
            levels, which_level = np.unique(column.round(2), return_inverse=True)
            scores = Scores(levels, coarse=1)
            assert np.allclose(scores.score, levels)
            self.problems.append(scores)
            self.into.append((which_level[:, None] == np.arange(len(levels))).astype(float))

    def batches(self, rng, streams, rows):
        while True:
            n = rng.multinomial(rows, np.full(300, 1 / 300), size=streams)
            labels = rng.multinomial(n, self.vector)
            hits = [labels[..., : self.kept].sum(axis=-1)] if self.kept else np.moveaxis(labels, -1, 0)
            yield [(n @ into, y @ into) for into, y in zip(self.into, hits, strict=True)]


def rates(streams):
    """Yield the share of false alarms of each notion, of groups and of a reference period."""
    rng = np.random.default_rng(10)
    for rows in (500, 3000):
        yield f"binary, {rows} rows a day", alarms(binary(rng, streams, rows))
    yield "binary, mean score .01, 3000 rows", alarms(binary(rng, streams, 3000, RARE), (RARE,))
    yield "correctness, 500 rows", alarms(binary(rng, streams, 500, SURE), (SURE,))
    for which in ("confidence", "top-2", "classwise"):
        classes = Classes(which)
        yield f"{which}, 4 classes, 500 rows", alarms(classes.batches(rng, streams, 500), classes.problems)

    def groups():
        parts = [binary(rng, streams, 200) for _ in range(20)]
        while True:
            yield [next(part) for part in parts]

    yield "20 groups, 200 rows each", alarms(groups(), [BETA] * 20)
    weights = np.array([0.1, 0.5, 1.0])

    def weighted():
        parts = [binary(rng, streams, 170) for _ in weights]
        while True:
            drawn = [next(part) for part in parts]
            yield tuple(sum(w * each[k] for w, each in zip(weights, drawn, strict=True)) for k in (0, 1))

    yield "importance weights .1, .5 and 1, 510 rows", alarms(weighted())
    edge = process.shifted(SCORE, 0.3)
    found = alarms(binary(rng, streams, 500, at=lambda day: edge), tolerance=0.3)
    yield "tolerance .3, log-odds off by .3, 500 rows", found
    truth = expit(0.8 * logit(SCORE) + 0.3)
    found = []
    for _ in range(20):  # each is what as many streams are compared with
        n = rng.multinomial(30 * 500, SHARE).astype(float)
        sums = np.zeros((3, process.CELLS))
        sums[:, BETA.cell] = n, n * SCORE, rng.binomial(n.astype(int), truth)
        band = process.reference_band(CellSums(*sums), ALPHA * process.REFERENCE_SHARE)
        bounds = tuple(each[BETA.cell] for each in band)
        batches = binary(rng, max(streams // 20, 1), 500, at=lambda day: truth)
        found.append(alarms(batches, bounds=bounds, limit=np.log(1 / (0.8 * ALPHA))))
    yield "reference period of 30 days, uncalibrated, 500 rows", np.concatenate(found)


def dependence(streams):
    """Yield false alarms where rows depend on each other or labels are late, with and without the remedy."""
    rng = np.random.default_rng(20)
    for rows in (500, 3000):
        for tolerance in (0.0, 0.1, 0.2, 0.3):

            def days(rows=rows):
                while True:
                    n = rng.multinomial(rows, SHARE, size=streams)
                    p = expit(logit(SCORE) + rng.normal(0, 0.1, (streams, 1)))
                    yield n.astype(float), rng.binomial(n, p).astype(float)

            name = f"day effects of sd .1, {rows} rows, tolerance {tolerance:g}"
            yield name, alarms(days(), tolerance=tolerance)
    for by_cluster in (False, True):

        def clusters(by_cluster=by_cluster):
            while True:
                which = rng.choice(SCORE.size, (streams, 100), p=SHARE)
                p = rng.beta(4 * SCORE[which], 4 * (1 - SCORE[which]))  # of correlation .2
                at = (which + SCORE.size * np.arange(streams)[:, None]).ravel()
                parts = (np.ones(at.size), rng.binomial(5, p).ravel())
                n, y = (np.bincount(at, each, streams * SCORE.size).reshape(streams, -1) for each in parts)
                yield (n, y / 5) if by_cluster else (5 * n, y)

        name = f"clusters of 5, correlation .2, 500 rows, {'with' if by_cluster else 'without'} cluster="
        yield name, alarms(clusters())
    early = 1.1 * SCORE / (1 + 0.1 * SCORE)
    found = alarms(binary(rng, streams, 500, at=lambda day: early))
    yield "labels of positives 10 % likelier to have come, 500 rows, without delay", found


def onset(streams):
    """Yield how often the 90 % interval of the onset holds the day of the change, and its median length."""
    for kind in ("abrupt", "local"):
        for rows in (500, 3000):
            rng, held, length = np.random.default_rng(30), [], []
            for _ in range(max(streams // 4, 5)):
                batches = binary(rng, 1, rows, at=lambda day, kind=kind: after(kind, day))
                stream = process.Stream(0.0, DAYS)
                for day in range(CHANGE + LONGEST):
                    n, y = (part[0] for part in next(batches))
                    parts = np.zeros((3, process.CELLS))
                    parts[:, BETA.cell] = n, n * SCORE, y
                    sums = CellSums(*parts)
                    stream.add_batch(sums, reference=False)
                    stream.add(sums)
                    if stream.log_m >= LIMIT and day >= CHANGE:
                        change = process.change_of(np.array(stream.log_e))
                        held.append(change.low <= CHANGE <= change.high)
                        length.append(change.high - change.low + 1)
                        break
            yield f"{kind}, {rows} rows", float(np.mean(held)), float(np.median(length)), len(held)


def after(kind, day):
    """Return the probabilities of a day, numbered from 1, where the change comes after day 60."""
    return None if day <= CHANGE else probability(kind, day - CHANGE)


def statistics(batches, days):
    """Return what the CUSUMs watch, by day: the standardised sum of residuals, and the ECE of 15 bins."""
    bins = np.minimum((np.cumsum(SHARE) - SHARE / 2) * 15, 14).astype(int)
    into = (bins[:, None] == np.arange(15)).astype(float)
    means, errors = [], []
    for _ in range(days):
        n, y = next(batches)
        gap = y - n * SCORE
        means.append(gap.sum(axis=1) / np.sqrt(n @ (SCORE * (1 - SCORE))))
        errors.append(np.abs(gap @ into).sum(axis=1) / n.sum(axis=1))
    return np.array(means), np.array(errors)


def cusums(values, slack, sides=(1, -1)):
    """Return the running maximum of CUSUMs of standardised values, by day and stream."""
    total, largest = np.zeros((len(sides), values.shape[1])), []
    for row in values:
        total = np.maximum(total + np.outer(sides, row) - slack, 0)
        largest.append(total.max(axis=0))
    return np.maximum.accumulate(np.array(largest), axis=0)


class Tuned:
    """CUSUMs with limits that gave a false alarm in 5 % of simulated streams."""

    def __init__(self, rows, streams):
        means, errors = statistics(binary(np.random.default_rng(40), 5 * streams, rows), DAYS)
        self.centre, self.scale = errors.mean(), errors.std()
        paths = self._paths(means, errors)
        self.limits = {name: np.quantile(path[-1], 1 - ALPHA) for name, path in paths.items()}

    def _paths(self, means, errors):
        standard = (errors - self.centre) / self.scale
        return {"CUSUM (mean)": cusums(means, 0.25), "CUSUM (ECE)": cusums(standard, 0.5, (1,))}

    def alarms(self, batches, days):
        paths = self._paths(*statistics(batches, days))
        return {name: first(path > self.limits[name]) for name, path in paths.items()}


def first(above):
    """Return the first day on which each stream is above its limit."""
    return np.where(above.any(axis=0), above.argmax(axis=0) + 1, NEVER)


def rows_of(n, y, rng):
    """Return scores and outcomes of single rows, in random order."""
    n, y = n.astype(int), y.astype(int)
    score = np.concatenate([np.repeat(SCORE, y), np.repeat(SCORE, n - y)])
    outcome = np.repeat([1, 0], [y.sum(), (n - y).sum()])
    order = rng.permutation(len(score))
    return score[order], outcome[order]


def by_rows(kind, rows, streams, days, makers):
    """Return the alarms of detectors that look at rows, one stream after another."""
    found = {name: [] for name in makers}
    for stream in range(streams):
        rng = np.random.default_rng([50, stream])
        batches = binary(rng, 1, rows, at=lambda day: after(kind, day) if kind != "none" else None)
        detectors = {name: make() for name, make in makers.items()}
        alarm = dict.fromkeys(makers, NEVER)
        for day in range(1, days + 1):
            score, outcome = rows_of(*(part[0] for part in next(batches)), rng)
            for name, detect in detectors.items():
                if alarm[name] == NEVER and detect(score, outcome):
                    alarm[name] = day
            if max(alarm.values()) < NEVER:
                break
        for name in makers:
            found[name].append(alarm[name])
    return {name: np.array(each) for name, each in found.items()}


def adwin():
    """Return ADWIN on the Brier score of each row."""
    from river.drift import ADWIN

    detector = ADWIN()

    def detect(score, outcome):
        for value in ((score - outcome) ** 2).tolist():
            detector.update(value)
            if detector.drift_detected:
                return True
        return False

    return detect


def ddm():
    """Return DDM on the errors of the predictions."""
    from river.drift.binary import DDM

    detector = DDM()

    def detect(score, outcome):
        for value in ((score > 0.5) != outcome).tolist():
            detector.update(value)
            if detector.drift_detected:
                return True
        return False

    return detect


def probcal():
    """Return probcal's monitor."""
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(alpha=ALPHA, plug_in_window=7, delta_ci_grid=(-1.0, 1.0, 2))
    return lambda score, outcome: monitor.update(outcome, score).alarm


def delays(streams, kinds=("none", "abrupt", "gradual", "local"), sizes=(500, 3000), peers=True):
    """Yield, by method and rows a day, the share of false alarms and the delays of each kind of change."""
    for rows in sizes:
        tuned, results = Tuned(rows, streams), {}
        for kind in kinds:
            days = DAYS if kind == "none" else CHANGE + LONGEST
            at = (lambda day: None) if kind == "none" else (lambda day, kind=kind: after(kind, day))
            rng = np.random.default_rng([60, rows])
            found = {"calibrant": alarms(binary(rng, streams, rows, at=at), days=days)}
            found |= tuned.alarms(binary(rng, streams, rows, at=at), days)
            if peers:
                few = max(streams // (7 if rows <= 500 else 25), 2)
                found |= by_rows(kind, rows, few, days, {"ADWIN": adwin, "DDM": ddm})
                few = max(streams // (20 if rows <= 500 else 50), 2)
                found |= by_rows(kind, rows, few, days, {"probcal": probcal})
            for name, each in found.items():
                results.setdefault(name, {})[kind] = each
            print(f"# {rows} rows, {kind}: {time.strftime('%H:%M')}", flush=True)
        for name, by_kind in results.items():
            yield name, rows, by_kind


def described(found):
    """Return the median delay of the streams without an earlier alarm, and the share detected in 150 days."""
    late = found[found > CHANGE]
    if late.size == 0:
        return "-"
    delay = np.median(late) - CHANGE
    missed = float((late == NEVER).mean())
    text = f"{delay:.0f}" if delay <= LONGEST else f"> {LONGEST}"
    return text + (f" ({100 * missed:.0f} % missed)" if missed >= 0.005 else "")


def tables(streams, only, sizes=(500, 3000), peers=True):
    """Yield the lines of all tables."""
    for title, study in {"rates": rates, "dependence": dependence}.items():
        if title not in only:
            continue
        yield from ("", "| streams of 365 days | false alarms | standard error |", "|---|---|---|")
        for name, found in study(streams):
            share, error = false_alarms(found)
            yield f"| {name} | {share:.3f} | {error:.3f} |"
    if "onset" in only:
        yield from ("", "| change at day 60 | interval holds it | median length, days |", "|---|---|---|")
        for name, held, length, _ in onset(streams):
            yield f"| {name} | {held:.2f} | {length:.0f} |"
    if "delays" in only:
        head = "| method | rows a day | streams | false alarms in 365 days | abrupt | gradual | local |"
        yield from ("", head, "|---|---|---|---|---|---|---|")
        for name, rows, by_kind in delays(streams, sizes=sizes, peers=peers):
            share, _ = false_alarms(by_kind["none"])
            cells = " | ".join(described(by_kind[kind]) for kind in ("abrupt", "gradual", "local"))
            count = len(by_kind["abrupt"])
            yield f"| {name} | {rows} | {count} | {share:.3f} of {len(by_kind['none'])} | {cells} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    studies = ("rates", "dependence", "onset", "delays")
    parser.add_argument("--only", nargs="+", choices=studies, default=studies)
    parser.add_argument("--share", type=float, default=1.0, help="share of the 400 streams")
    parser.add_argument("--rows", nargs="+", type=int, default=(500, 3000), help="rows a day, of delays")
    parser.add_argument("--no-peers", action="store_true", help="leave out river and probcal")
    given = parser.parse_args(arguments)
    for line in tables(max(int(400 * given.share), 4), given.only, given.rows, peers=not given.no_peers):
        print(line, flush=True)


if __name__ == "__main__":
    main()
