"""How often the interval of the excess log loss (`calibrant check --max-excess-log-loss`) holds the true one.

    python benchmarks/excess_log_loss.py --repetitions 200   # some 15 minutes on two cores

Outcomes are drawn from a calibration curve q of scores p from a beta distribution. The true excess is the
mean of KL(q, p). Printed for each curve and number of rows: the true excess, coverage, misses on each side (a
true excess below the interval would fail a gate wrongly, one above would pass it wrongly) and the mean upper
end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit, rel_entr

from calibrant import inputs
from calibrant.assessment.recalibration import excess_log_loss
from calibrant.score_data import Array

CURVES: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: np.asarray(expit(0.6 * logit(p))),
    "square": lambda p: p**2,
    "wavy": lambda p: np.clip(p + 0.08 * np.sin(6 * np.pi * p), 0, 1),
    "local": lambda p: np.where((p > 0.6) & (p < 0.75), p - 0.2, p),
}


def main() -> None:
    """Print a line for each curve and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 2000])
    options = parser.parse_args()
    many = np.random.default_rng(1).beta(1.5, 1.5, 1_000_000)
    print("rows   curve          true    coverage  below  above  mean upper end")
    for rows in options.rows:
        for name, curve in CURVES.items():
            q = curve(many)
            true = float((rel_entr(q, many) + rel_entr(1 - q, 1 - many)).mean())
            ends = []
            for k in range(options.repetitions):
                rng = np.random.default_rng([rows, k])
                score = rng.beta(1.5, 1.5, rows)
                outcome = rng.random(rows) < curve(score)
                found = excess_log_loss(inputs.predictions(outcome, score), level=0.95, seed=0)
                assert found is not None
                ends.append((found.low, found.high))
            low, high = np.array(ends).T
            below, above = float(np.mean(true < low - 1e-12)), float(np.mean(true > high))
            print(
                f"{rows:<6} {name:14} {true:.4f}  {1 - below - above:8.3f}  {below:.3f}  {above:.3f}  "
                f"{high.mean():.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
