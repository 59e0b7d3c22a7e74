"""Kill experiments at random moments; going on must end with the same bits."""

import random
import signal
import time

from attacks.children import DONE, STOPPED, Children, kill

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
# Kills of one experiment, at most, before it may end.
MOST = 4


def run(cases: int, seed: int) -> list[str]:
    """Stop as many processes as there are cases while they work; returns what went wrong."""
    rng, failures = random.Random(seed), []
    with Children() as children:
        for again in range(2):  # the server is ready when the first has ended
            start = time.monotonic()
            expected = children.experiment(f"whole-{again}")
            took = time.monotonic() - start
        tries = met = 0
        while met < cases and tries < 20 * cases:
            folder = children.folder / f"case-{tries}"
            told = []
            for _ in range(rng.randint(1, MOST)):
                how, after = SIGNALS[met % 3], rng.uniform(0, took)
                told.append(f"{how.name} after {after:.3f} s")
                (pid,) = children.start("experiment", folder=folder)
                kill(pid, how, after)
                ((status, text),) = children.ended()
                tries, met = tries + 1, met + (status != DONE)
                if status not in (DONE, -how, STOPPED if how == signal.SIGINT else -how):
                    failures.append(f"{', '.join(told)}: ended with {status}, {text.strip()[-300:]}")
                if status == DONE or met == cases:
                    break
            children.start("experiment", folder=folder)
            ((status, text),) = children.ended()
            if (status, text) != (DONE, expected):
                wrong = text.strip()[-300:] if status != DONE else "another result"
                failures.append(f"{', '.join(told)}: does not go on, {wrong}")
    if met < cases:
        failures.append(f"only {met} of {cases} signals met a process at work")
    return failures
