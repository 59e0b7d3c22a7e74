"""A cached property is computed once for each instance and holds no lock meanwhile."""

import os
import signal
import threading
from dataclasses import FrozenInstanceError, dataclass

import pytest

import calibrant
from calibrant.inputs import predictions
from calibrant.parallel import cached_property
from calibrant.tasks import CalibrationTask
from calibrant.tasks.notions import get_notion


@dataclass(frozen=True)
class Slow:
    compute: object

    @cached_property
    def value(self):
        """The documented value."""
        return self.compute()


class Blocked:
    """A computation in a thread of its own, which has begun and does not end before the context does."""

    def __init__(self, start):
        self.begun, self.release = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=start, args=[self.wait])

    def wait(self):
        self.begun.set()
        assert self.release.wait(60)
        return [1]

    def __enter__(self):
        self.thread.start()
        assert self.begun.wait(60)
        return self

    def __exit__(self, *_):
        self.release.set()
        self.thread.join(60)


def test_a_value_is_computed_once_and_belongs_to_its_instance():
    calls = []
    first, second = (Slow(lambda k=k: calls.append(k) or k) for k in range(2))
    assert (first.value, second.value, first.value) == (0, 1, 0)
    assert calls == [0, 1]
    assert isinstance(Slow.value, cached_property)
    assert Slow.value.__doc__ == "The documented value."
    with pytest.raises(FrozenInstanceError):
        first.value = 3


def test_a_failed_computation_is_tried_again():
    answers = iter([0, 1])
    slow = Slow(lambda: 1 // next(answers))
    with pytest.raises(ZeroDivisionError):
        _ = slow.value
    assert slow.value == 1


def test_threads_that_ask_one_instance_at_once_get_one_object():
    both = threading.Barrier(2)

    def compute():
        both.wait(60)
        return object()

    slow, values = Slow(compute), []
    threads = [threading.Thread(target=lambda: values.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert values == [slow.value] * 2


def test_threads_do_not_wait_for_another_instance():
    values = []
    with Blocked(lambda wait: Slow(wait).value):
        thread = threading.Thread(target=lambda: values.append(Slow(lambda: 2).value), daemon=True)
        thread.start()
        thread.join(5)
        assert values == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_while_a_thread_computes_can_compute_too():
    y_true, y_prob = [0, 1, 1, 0], [0.2, 0.4, 0.9, 0.3]
    calibrant.estimate(y_true, y_prob, estimator="uniform")  # loads what the first call loads
    task = CalibrationTask.of(predictions(y_true, y_prob), get_notion("binary"))
    with Blocked(lambda wait: CalibrationTask(task.notion, (0, 1), 1, wait).blocks):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            try:
                calibrant.estimate(y_true, y_prob, estimator="uniform")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
