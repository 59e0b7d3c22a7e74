"""Let two to eight processes write to one place at once: one wins, the others are told, nothing is lost."""

import random
import signal
from pathlib import Path

from attacks.children import DONE, REFUSED, Children, kill

MOST = 8
SAVES = 20


def run(cases: int, seed: int) -> list[str]:
    """Run as many races as there are cases; returns what went wrong."""
    rng, failures = random.Random(seed), []
    with Children() as children:
        expected = children.experiment("whole")
        for case in range(cases):
            place, n = children.folder / f"case-{case}", rng.randint(2, MOST)
            if case % 2:
                failures += _saved(children, place, n)
                continue
            # One of some races is killed, whether it has won or not.
            victim = rng.randrange(n) if rng.random() < 0.3 else None
            pids = children.start("experiment", n, folder=place)
            if victim is not None:
                kill(pids[victim], signal.SIGKILL, rng.uniform(0, 0.1))
            ends = children.ended()
            about = f"experiment by {n}" if victim is None else f"experiment by {n}, one killed"
            for k, (status, text) in enumerate(ends):
                won = (status, text) == (DONE, expected)
                refused = status == REFUSED and " is in use by " in text
                if not (won or refused or k == victim):
                    failures.append(f"{about}: ended with {status}, {text.strip()[-300:]}")
            if victim is None and not any(status == DONE for status, _ in ends):
                failures.append(f"{about}: all were refused")
            children.start("experiment", folder=place)
            ((status, text),) = children.ended()
            if (status, text) != (DONE, expected):
                failures.append(f"{about}: left a folder that does not go on, {text.strip()[-300:]}")
    return failures


def _saved(children: Children, path: Path, n: int) -> list[str]:
    """Let n processes save sketches of their own to one file while this one reads it."""
    from calibrant import Sketch

    children.start("save", n, path=path, times=SAVES)
    seen, torn = set(), []
    for _ in range(SAVES):
        try:
            if path.exists():
                seen.add(Sketch.load(path).digest)
        except ValueError as error:
            torn.append(f"save by {n}: a reader found half a file, {error}")
    ends = children.ended()
    known = {text for _, text in ends}
    wrong = [f"save by {n}: ended with {status}, {text}" for status, text in ends if status != DONE]
    if not seen | {Sketch.load(path).digest} <= known:
        wrong.append(f"save by {n}: a sketch that nobody saved")
    if left := [one.name for one in path.parent.glob(f".{path.name}*")]:
        wrong.append(f"save by {n}: left {left}")
    return torn + wrong
