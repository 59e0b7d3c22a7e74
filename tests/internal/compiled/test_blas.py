"""The limit on the threads of linear algebra libraries: counted, shared by threads, and lifted at the end."""

import subprocess
import sys
from threading import Barrier, Thread

import pytest
import scipy.linalg  # noqa: F401 - its library is found only once it is loaded
from threadpoolctl import threadpool_info, threadpool_limits

from calibrant import parallel
from calibrant.parallel import one_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        # The main thread leaves the limit to others, as where nobody has set one.
        with one_blas_thread():
            pass
        yield


def test_the_limit_holds_until_the_last_user_ends():
    assert blas_threads() == {2}
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_limit_is_lifted_after_an_error():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert blas_threads() == {2}


def test_threads_that_end_in_another_order_share_the_limit():
    both, first_ended, seen = Barrier(2), Barrier(2), []

    def first():
        with one_blas_thread():
            both.wait()
        first_ended.wait()

    def second():
        with one_blas_thread():
            both.wait()
            first_ended.wait()
            seen.append(blas_threads())

    threads = [Thread(target=each) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}]
    assert blas_threads() == {2}


@pytest.mark.parametrize("count", ["1", "2"])
def test_linear_algebra_has_one_thread_while_others_share_the_work(monkeypatch, count):
    monkeypatch.setenv(parallel.THREADS, count)
    alone = {2} if count == "1" else {1}
    assert list(parallel.parallel_map(lambda _: blas_threads(), [0, 1])) == [alone, alone]
    with parallel.background() as begin:
        assert begin(blas_threads)() == alone
    assert blas_threads() == {2}


def test_small_calls_do_not_look_for_libraries():
    script = (
        "import sys, calibrant\n"
        "calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8])\n"
        "calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8], estimator='uniform:2')\n"
        "sys.exit('threadpoolctl' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
