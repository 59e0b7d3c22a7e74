"""`calibrant.Monitor`: batches of every kind, alarms, what is refused, and what is saved."""

from datetime import date, timedelta

import numpy as np
import pytest

import calibrant
from calibrant import Monitor, Sketch

rng = np.random.default_rng(0)


def binary(n=300, change=0.0, seed=0):
    r = np.random.default_rng(seed)
    score = r.random(n)
    return (r.random(n) < np.clip(score + change, 0, 1)).astype(int), score


def matrix(n=300, seed=0, power=1.0):
    r = np.random.default_rng(seed)
    true = r.dirichlet(np.ones(3), n)
    y = (true.cumsum(axis=1) < r.random((n, 1))).sum(axis=1)
    scores = true**power
    return y, scores / scores.sum(axis=1, keepdims=True)


def watch(monitor, batches, **options):
    for rows in batches:
        monitor.update(*rows, **options)
    return monitor


def test_a_change_is_found_with_its_onset_and_direction():
    batches = [binary(change=-0.15 * (day >= 10), seed=day) for day in range(20)]
    monitor = Monitor()
    for day, rows in enumerate(batches):
        monitor.update(*rows, at=date(2026, 5, 1) + timedelta(days=day))
        if monitor.alarm:
            break
    alarm = monitor.alarm
    assert "2026-05-11" <= alarm.at <= "2026-05-15"
    assert alarm.onset_low <= "2026-05-11" <= alarm.onset_high
    assert "too high" in alarm.direction
    assert alarm.e_value >= 20
    assert calibrant.monitor.Alarm.from_json(alarm.to_json()) == alarm
    assert str(alarm) == str(monitor).rstrip()
    # An alarm stays, whatever comes.
    monitor.update(*binary(seed=99), at="2027-01-01")
    assert monitor.alarm is alarm


def test_rows_sketches_counts_and_order_have_the_same_evidence():
    batches = [binary(200, change=0.05, seed=k) for k in range(4)]
    rows = watch(Monitor(), batches)
    sketches = watch(Monitor(), ((Sketch().update(*batch),) for batch in batches))
    assert sketches.e_value == rows.e_value
    again = Monitor()
    for y, p in batches:
        order = rng.permutation(len(y))
        again.update(y[order], p[order])
    assert again.e_value == pytest.approx(rows.e_value)
    assert [a.digest for a in again._batches] == [b.digest for b in rows._batches]
    counted, repeated = Monitor(), Monitor()
    for y, p in batches:
        counts = np.arange(len(y)) % 3
        counted.update(y, p, counts=counts)
        repeated.update(np.repeat(y, counts), np.repeat(p, counts))
    assert counted.e_value == pytest.approx(repeated.e_value)
    assert counted.history[-1].n == repeated.history[-1].n


def test_weights_have_no_scale_and_no_more_evidence_than_rows():
    y, p = binary(400, change=0.2)
    weight = np.random.default_rng(1).choice([0.25, 1.0], 400)
    ones, some, scaled = Monitor(), Monitor(), Monitor()
    ones.update(y, p)
    some.update(y, p, sample_weight=weight)
    scaled.update(y, p, sample_weight=700 * weight)
    assert scaled.e_value == pytest.approx(some.e_value)
    assert 1 < some.e_value < ones.e_value
    # A sketch does not know the largest weight: it may have less evidence, never more.
    sums = Monitor().update(Sketch().update(y, p, sample_weight=weight))
    largest = sums._batches[0].sums[0].table[1] <= some._batches[0].sums[0].table[1] + 1e-9
    assert largest.all()
    assert sums.e_value <= some.e_value * (1 + 1e-9)


def test_a_cluster_is_one_row_with_means():
    y, p = binary(60, seed=3)
    cluster = np.arange(60) // 3
    monitor = Monitor().update(y, p, cluster=cluster)
    sums = monitor._batches[0].sums[0].sums
    assert sums.n.sum() == 20
    assert sums.outcome.sum() == pytest.approx(y.reshape(20, 3).mean(axis=1).sum())
    assert sums.score.sum() == pytest.approx(p.reshape(20, 3).mean(axis=1).sum())
    assert monitor.history[0].n == pytest.approx(calibrant.estimate(y, p, cluster=cluster).n)
    classes = Monitor("classwise").update(*matrix(60), cluster=cluster)
    assert [each.sums.n.sum() for each in classes._batches[0].sums] == [20, 20, 20]
    weighted = Monitor().update(y, p, cluster=cluster, sample_weight=np.where(cluster == 0, 4.0, 2.0))
    assert weighted._batches[0].sums[0].sums.n.sum() == pytest.approx(1 + 19 / 2)


def test_groups_are_streams_under_one_alpha_and_are_named():
    monitor = Monitor()
    for k in range(12):
        y, p = binary(400, seed=k)
        group = np.where(np.arange(400) % 4 == 0, "north", "south")
        wrong = (group == "north") & (p > 0.5) & (np.random.default_rng(k).random(400) < 0.6)
        monitor.update(np.where(wrong, 0, y), p, groups=group)
    assert list(monitor.flagged) == ["north"]
    assert "most clearly in north" in monitor.alarm.direction
    sketches, rows = Monitor(), Monitor()
    y, p = binary(100)
    group = np.array(["b", "a"])[np.arange(100) % 2]
    rows.update(y, p, groups=group)
    sketches.update({name: Sketch().update(y[group == name], p[group == name]) for name in ("a", "b")})
    assert sketches.e_value == rows.e_value
    assert list(sketches._streams) == ["a", "b"]
