"""Objects that several threads use at the same time: no rows are lost, and what is read belongs together."""

import copy
import dataclasses
import pickle
import sys
from threading import Barrier, Thread

import numpy as np
import pytest

from calibrant import Calibrator, Monitor, PriorShift, Sketch

ROWS, TIMES = 20, 60


@pytest.fixture(autouse=True)
def often_switched():
    """Let threads take turns very often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks):
    """Run functions in threads of their own, all of which must end; return their errors."""
    errors, start = [], Barrier(len(tasks))

    def run(task):
        start.wait()
        try:
            task()
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
        assert not each.is_alive(), "a thread waits for a lock that nobody gives back"
    return errors


def binary(k, rows=ROWS):
    rng = np.random.default_rng(k)
    score = rng.random(rows)
    return (rng.random(rows) < score).astype(int), score


def matrix(k, rows=ROWS):
    rng = np.random.default_rng(k)
    return rng.integers(0, 5, rows), rng.dirichlet([1] * 5, rows)


MAKERS = {
    "binary": (lambda: Sketch("binary"), lambda k: (*binary(k), {})),
    "classwise": (lambda: Sketch("classwise", labels=range(5)), lambda k: (*matrix(k), {})),
    "confidence": (lambda: Sketch(), lambda k: (*matrix(k), {})),
    "weighted": (lambda: Sketch(), lambda k: (*binary(k), {"sample_weight": np.arange(1, ROWS + 1)})),
    "counts": (lambda: Sketch(), lambda k: (*binary(k), {"counts": np.arange(1, ROWS + 1)})),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", MAKERS)
def test_threads_that_update_a_sketch_lose_no_rows(kind, tmp_path):
    make, rows = MAKERS[kind]
    sketch, alone = make(), make()

    def updates(first):
        for k in range(first, first + TIMES):
            y, p, options = rows(k)
            sketch.update(y, p, **options)

    assert together(*(lambda first=first: updates(first) for first in (0, TIMES, 2 * TIMES))) == []
    for k in range(3 * TIMES):
        y, p, options = rows(k)
        alone.update(y, p, **options)
    assert sketch.totals.rows == alone.totals.rows
    assert sketch.n == pytest.approx(alone.n)
    assert sketch.ece(estimator="uniform:10") == pytest.approx(alone.ece(estimator="uniform:10"))
    sketch.save(tmp_path / "whole.sketch")
    assert Sketch.load(tmp_path / "whole.sketch").digest == sketch.digest


@pytest.mark.full
def test_rows_without_labels_are_counted_by_all_threads():
    sketch, nothing = Sketch(), np.full(3, np.nan)

    def updates():
        for _ in range(200):
            sketch.update(nothing, [0.1, 0.2, 0.3], missing="drop")

    assert together(updates, updates) == []
    assert sketch.totals.dropped == 2 * 200 * 3


@pytest.mark.full
def test_what_is_read_during_updates_belongs_together(tmp_path):
    sketch, seen = Sketch("classwise", labels=range(5)), []
    sketch.update(*matrix(0))

    def updates():
        for k in range(4 * TIMES):
            sketch.update(*matrix(k))

    def reads():
        for k in range(15):
            for each in (copy.copy(sketch), copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))):
                path = tmp_path / f"{k}.sketch"
                each.save(path)  # which checks that sums and totals fit
                seen.append(Sketch.load(path).totals.rows)
            sketch.save(tmp_path / "live.sketch")
            assert sketch.to_dict()["rows"] % ROWS == 0
            assert 0 <= sketch.ece(estimator="uniform:10") <= 1

    assert together(updates, updates, reads) == []
    assert sketch.totals.rows == (1 + 8 * TIMES) * ROWS
    assert all(rows % ROWS == 0 for rows in seen)


def test_sketches_that_are_added_in_both_orders_do_not_wait_for_each_other():
    first, second, sums = Sketch().update(*binary(0)), Sketch().update(*binary(1)), []

    def add(a, b):
        for k in range(4 * TIMES):
            a.update(*binary(k))
            sums.append((a + b).totals.rows)

    assert together(lambda: add(first, second), lambda: add(second, first), lambda: add(first, first)) == []
    assert first.totals.rows + second.totals.rows == (2 + 12 * TIMES) * ROWS
    assert all(rows % ROWS == 0 for rows in sums)


def test_results_of_a_sketch_keep_their_rows():
    sketch, score = Sketch("binary").update(*binary(0, 4000)), np.linspace(0.1, 0.9, 9)
    calibrator = sketch.calibrator()
    expected = copy.deepcopy(calibrator).predict_interval(score, level=0.8)
    copied = copy.copy(sketch)
    sketch.update(np.zeros(50_000, dtype=int), np.random.default_rng(1).random(50_000))
    assert np.array_equal(calibrator.predict_interval(score, level=0.8), expected)
    assert copied.totals.rows == 4000
    assert copied.ece() != sketch.ece()


@pytest.mark.full
def test_threads_that_update_a_monitor_leave_a_state_that_can_be_loaded(tmp_path):
    monitor, path = Monitor(), tmp_path / "monitor.json"

    def updates(first):
        for k in range(first, first + 15):
            monitor.update(*binary(k))

    def reads():
        for _ in range(30):
            monitor.save(path)
            loaded = Monitor.load(path)
            assert len(loaded.history) <= len(monitor.history)
            assert str(copy.copy(monitor))
            assert pickle.loads(pickle.dumps(monitor)).limit == monitor.limit
            monitor.to_html()

    assert together(lambda: updates(0), lambda: updates(100), reads) == []
    assert [each.at for each in monitor.history] == list(range(1, 31))
    monitor.save(path)
    loaded = Monitor.load(path)
    assert loaded.e_value == monitor.e_value
    assert loaded.to_dict() == monitor.to_dict()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_a_monitor_goes_on_by_itself(copied):
    monitor, alone = Monitor(), Monitor()
    for k in range(3):
        monitor.update(*binary(k))
        alone.update(*binary(k))
    other = copied(monitor)
    other.update(*binary(7))
    assert (len(monitor.history), len(other.history)) == (3, 4)
    monitor.update(*binary(3))
    alone.update(*binary(3))
    assert monitor.to_dict() == alone.to_dict()
    assert monitor.e_value == alone.e_value


def test_a_sketch_that_could_not_be_loaded_is_not_saved(tmp_path):
    sketch, path = Sketch().update(*binary(0)), tmp_path / "day.sketch"
    sketch.save(path)
    before = path.read_bytes()
    sketch.totals = dataclasses.replace(sketch.totals, weight=2.0 * sketch.totals.weight)
    with pytest.raises(ValueError, match="must"):
        sketch.save(path)
    assert path.read_bytes() == before


def test_a_fit_that_is_refused_leaves_the_map_as_it_was():
    y, scores = matrix(0, 400)
    calibrator = Calibrator("vector").fit(scores, y)
    expected = calibrator.predict_proba(scores)
    with pytest.raises(ValueError, match="be a map of one score"):
        calibrator.fit(*binary(1, 200)[::-1])
    assert np.array_equal(calibrator.predict_proba(scores), expected)
    shift = PriorShift(train=[0.2] * 5).fit(scores)
    expected = shift.predict_proba(scores)
    with pytest.raises(ValueError, match="train"):
        shift.fit(scores[:, :3] / scores[:, :3].sum(axis=1, keepdims=True))
    assert np.array_equal(shift.predict_proba(scores), expected)
