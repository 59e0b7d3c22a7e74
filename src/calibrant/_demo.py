"""A small, real example: is a handwritten digit odd? A random forest answers."""

from __future__ import annotations

from typing import Any

import calibrant
from calibrant.evidence import Array
from calibrant.results import Progress

NOTIONS = ("class", "confidence", "classwise")


def digits() -> tuple[Array, Array]:
    """Whether each digit that ships with scikit-learn is odd, and a forest's held-out scores."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    data = load_digits()
    odd = np.array(["even", "odd"])[data.target % 2]
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    return odd, cross_val_predict(forest, data.data, odd, cv=5, method="predict_proba")


def table(labels: Array, scores: Array) -> str:
    """The estimate of each notion, and calibration errors by notion and estimator."""
    accuracy = ((scores[:, 1] > 0.5) == (labels == "odd")).mean()
    lines = [
        f"Is a handwritten digit odd? On {len(labels)} held-out digits a random forest is right",
        f"{accuracy:.1%} of the time and {scores.max(axis=1).mean():.1%} confident on average.",
        "",
        *(f"{calibrant.estimate(labels, scores, notion=notion, rng=0)}." for notion in NOTIONS),
        "",
        f"{'estimator':<28}" + "".join(f"{notion:>12}" for notion in NOTIONS),
    ]
    rows = [(f"{entry.name:<18}{entry.short:<10}", entry.name, "l1") for entry in calibrant.estimators()]
    for title, estimator, norm in (*rows, (f"{'largest gap':<18}{'auto':<10}", "auto", "max")):
        values = (
            calibrant.ece(labels, scores, notion=notion, estimator=estimator, norm=norm)  # type: ignore[arg-type]
            for notion in NOTIONS
        )
        lines.append(title + "".join(f"{value:12.4f}" for value in values))
    return "\n".join(lines)


def figure(labels: Array, scores: Array, seed: int, progress: Progress | None = None) -> Any:
    """Diagram, curve and bootstrapped curve side by side, after the paper's Figure 1."""
    from matplotlib.figure import Figure

    odd = scores[:, 1]
    diagram = calibrant.reliability_diagram(labels, odd, pos_label="odd", binning="uniform:15")
    plain = calibrant.reliability_curve(labels, odd, pos_label="odd", bandwidth=0.03, n_boot=0, band=None)
    band = calibrant.reliability_curve(
        labels,
        odd,
        pos_label="odd",
        bandwidth=0.03,
        n_boot=500,
        band="bootstrap",
        rng=seed,
        progress=progress,
    )
    picture = Figure(figsize=(10.5, 4.4), layout="constrained")
    titles = ("Reliability diagram, 15 bins", "Reliability curve", "Bootstrapped curve, 95 % band")
    for ax, result, title in zip(picture.subplots(1, 3), (diagram, plain, band), titles, strict=True):
        result.plot(ax)
        ax.set_title(title)
    return picture
