"""What threads do beside each other is done once, in the end all of it, and with the same numbers."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibrant import parallel
from calibrant.inference.null import lazy_test
from calibrant.score_data import Residuals, Sample


def asked_by_four(ask):
    with ThreadPoolExecutor(4) as pool:
        return [each.result() for each in [pool.submit(ask) for _ in range(4)]]


def test_what_several_threads_ask_for_is_made_once():
    made = []

    def make():
        time.sleep(0.02)
        made.append(len(made))
        return made[-1]

    assert asked_by_four(parallel.compute_once(make)) == [0] * 4
    assert made == [0]


def test_threads_that_ask_for_one_simulation_share_its_random_numbers():
    score = np.linspace(0.01, 0.99, 3000)
    residuals = Residuals.of(Sample(score, np.random.default_rng(0).random(3000) < score))
    alone, *others = (lazy_test(residuals, "l1", np.random.default_rng(1), 40) for _ in range(2))
    expected = alone()
    for found in asked_by_four(others[0]):
        np.testing.assert_array_equal(found.test_statistic, expected.test_statistic)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_work_aside_is_done_when_its_result_is_asked_for_at_the_latest(threads, monkeypatch):
    monkeypatch.setenv(parallel.THREADS, threads)
    with parallel.background() as begin:
        waiting = [begin(lambda k=k: k * k) for k in range(20)]
        assert [wait() for wait in waiting] == [k * k for k in range(20)]


def test_who_asks_for_work_that_was_not_begun_does_it_and_shares_nothing_further(monkeypatch):
    monkeypatch.setenv(parallel.THREADS, "2")
    with parallel.background() as begin:
        started, go_on = threading.Event(), threading.Event()
        busy = begin(lambda: (started.set(), go_on.wait(10)))
        asked = begin(lambda: (threading.current_thread(), parallel.threads()))
        assert started.wait(10)
        assert asked() == (threading.main_thread(), 1)
        assert parallel.threads() == 2
        go_on.set()
        busy()


def begin_and_fail(begun):
    with parallel.background() as begin:
        for k in range(40):
            begin(lambda k=k: (begun.append(k), time.sleep(0.02)))
        raise ZeroDivisionError


def test_work_aside_that_nobody_waits_for_is_not_begun(monkeypatch):
    monkeypatch.setenv(parallel.THREADS, "2")
    begun = []
    with pytest.raises(ZeroDivisionError):
        begin_and_fail(begun)
    assert len(begun) < 10
