"""A leaderboard as a page: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from calibrant.experiment.leaderboard import LEVEL, RESAMPLES, Board, Exact, Row
from calibrant.experiment.procedure import PRESETS, Settings
from calibrant.experiment.procedure import title as title_of

STATISTICS = {
    "p95": "95th percentile of the absolute error",
    "mean": "Mean absolute error",
    "bias": "Bias",
    "sd": "Spread: standard deviation of the estimate",
}
MARK = "\u2020"
# Options of `calibrant experiment run`; what has none can only be set from Python.
OPTIONS = {
    "estimators": "--estimators",
    "families": "--families",
    "sizes": "--sizes",
    "repetitions": "--repetitions",
    "n_holdout": "--holdout",
}
MEANS = {-1.0: "code", 0.0: "text"}


def to_json(board: Board, names: Sequence[str]) -> str:
    """Return everything on the page, None in place of what was not measured."""
    values: dict[str, Any] = {
        "runs": [
            {"name": name, "settings": settings.to_dict()}
            for name, settings in zip(names, board.settings, strict=True)
        ],
        "sizes": board.sizes,
        "ranked_sizes": board.ranked,
        "models": board.models,
        "distributions": board.distributions,
        "interval": {"level": LEVEL, "resamples": RESAMPLES},
        "best_of_fifteen": board.best,
        "best_of_fifteen_by_mean": board.mean_best,
        "rows": [
            {"notion": notion, **vars(row), "run": names[row.run]}
            for notion, rows in board.rows.items()
            for row in rows
        ],
        "exact": None if board.exact is None else vars(board.exact),
        "local": None if board.local is None else vars(board.local),
    }
    return json.dumps(_plain(values), indent=1, allow_nan=False) + "\n"


def to_markdown(board: Board, names: Sequence[str], out: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    board : Board
    names : sequence of str
        A name for each run.
    out : str
        Where the page goes, for the command that makes it again.
    """
    return (
        "\n".join([*_head(board, names, out), *_paper(board, names), *_families(board.exact, board.local)])
        + "\n"
    )


def command(settings: Settings, out: str) -> str:
    """Return the command that computes a run.

    >>> from dataclasses import replace
    >>> command(replace(PRESETS["quick"], sizes=(30, 100), low=0.0), "mine")
    'calibrant experiment run --preset quick --means text --sizes 30,100 --out mine'
    """
    wanted, commands = settings.to_dict(), []
    for preset, known in PRESETS.items():
        changed = [key for key, value in known.to_dict().items() if wanted[key] != value]
        words = [_option(key, wanted[key], known) for key in changed]
        if all(words):
            commands.append(" ".join(["calibrant experiment run --preset", preset, *words, "--out", out]))
    return min(commands, key=len, default=f"# {out}: its settings were made in Python")


def _option(key: str, value: Any, known: Settings) -> str:
    """Return what changes a preset, or nothing where only Python can."""
    if key == "notions":
        return " ".join(f"--notion {notion}" for notion in value)
    if key == "low":
        return f"--means {MEANS[value]}" if value in MEANS else ""
    if key not in OPTIONS:
        return ""
    name, start = OPTIONS[key], len(known.estimators)
    if key == "estimators" and tuple(value[:start]) == known.estimators:
        name, value = "--extra-estimators", value[start:]
    return f"{name} {','.join(map(str, value)) if isinstance(value, list) else value}"


def _head(board: Board, names: Sequence[str], out: str) -> Iterator[str]:
    yield "# Leaderboard"
    yield ""
    yield "How close each estimator comes to the true calibration error. The page is made by"
    yield ""
    yield "```sh"
    for name, settings in zip(names, board.settings, strict=True):
        yield command(settings, name)
    exact = board.exact
    given = "" if exact is None else f" --repetitions {','.join(map(str, exact.repetitions.values()))}"
    given += f" --seed {exact.seed}" if exact is not None else " --no-exact"
    yield f"calibrant experiment leaderboard {' '.join(names)}{given}{f' -o {out}' if out else ''}"
    yield "```"
    yield ""
    if any(row.own for rows in board.rows.values() for row in rows) or exact is not None:
        yield (
            f"{MARK} measures something of its own, which is not the expected calibration error and does not "
            "converge to it. It is listed for completeness; its error is no fault."
        )
        yield ""


def _paper(board: Board, names: Sequence[str]) -> Iterator[str]:
    yield "## The paper's distributions"
    yield ""
    planned = max(len(setting.tasks()) for setting in board.settings)
    of_planned = f" of {planned}" if board.models < planned else ""
    yield (
        f"{board.models}{of_planned} models on {board.distributions} distributions. "
        "An error is taken against the exact truth of the model (reading: corrected). "
        "Every figure is a median over the models."
    )
    yield ""
    yield from _table(
        ("run", "sizes", "samples of each", "holdout rows"),
        (
            (name, ", ".join(map(str, setting.sizes)), str(setting.repetitions), f"{setting.n_holdout}")
            for name, setting in zip(names, board.settings, strict=True)
        ),
    )
    yield (
        "p95 is the 95th percentile of |estimate - truth|, and MAE its mean. A ratio is one of them over the "
        "least that any of the paper's fifteen has at the same N. Which of them that is changes with N and "
        "from p95 to MAE, and is only known afterwards. The overall ratio is the geometric mean over "
        f"N = {', '.join(map(str, board.ranked))}; its {100 * LEVEL:g} % interval comes from {RESAMPLES} "
        "resamples of the distributions, each with all its models. Rows are sorted by that of p95."
    )
    if any(row.failed for rows in board.rows.values() for row in rows):
        yield ""
        yield "An estimator that had no estimate for some sample is not ranked, and has no figure at that N."
    if len(board.settings) > 1:
        yield ""
        yield (
            "A percentile of few samples reads low. So a row is held against the fifteen of its own run, "
            "where that has them, and only ratios compare rows with different numbers of samples."
        )
    yield ""
    for notion, rows in board.rows.items():
        yield f"### {title_of(notion)}"
        yield ""
        for what, best in (("p95", board.best[notion]), ("MAE", board.mean_best[notion])):
            named = [f"{name} at {n}" for name, n in zip(best, board.sizes, strict=True) if name]
            yield f"Best of the fifteen by {what}: {', '.join(named)}."
            yield ""
        yield from _table(
            ("", "estimator", "samples", "p95, overall ratio", "interval", "MAE, overall ratio", "interval"),
            (
                (
                    "" if row.failed else str(k + 1),
                    _name(row),
                    str(row.repetitions),
                    _number(row.overall, 2),
                    _range(row.low, row.high),
                    _number(row.mean_overall, 2),
                    _range(row.mean_low, row.mean_high),
                )
                for k, row in enumerate(rows)
            ),
        )
        yield f"#### Ratios by N: p95 / MAE ({title_of(notion).lower()})"
        yield ""
        yield from _table(
            ("estimator", *(f"N={n}" for n in board.sizes)),
            ((_name(row), *map(_pair, row.ratio, row.mean_ratio)) for row in rows),
        )
        for statistic, title in STATISTICS.items():
            yield f"#### {title}, in thousandths ({title_of(notion).lower()})"
            yield ""
            yield from _table(
                ("estimator", "samples", *(f"N={n}" for n in board.sizes)),
                (
                    (
                        _name(row),
                        str(row.repetitions),
                        *(_number(1000 * value, 1) for value in row.median[statistic]),
                    )
                    for row in rows
                ),
            )


def _families(exact: Exact | None, local: Exact | None) -> Iterator[str]:
    if exact is None:
        return
    parts = [exact] if local is None else [exact, local]
    order, sizes = np.argsort(exact.mean, kind="stable"), tuple(exact.repetitions)
    marked = [f"`{name}`{f' {MARK}' if exact.own[k] else ''}" for k, name in enumerate(exact.estimators)]
    yield "## Families with a known bound"
    yield ""
    yield (
        "Binary models whose true error is known exactly. A figure is the mean absolute error over the "
        "efficiency bound .798 sqrt((Brier - ECE^2) / n), the least that a regular estimator can have for "
        "large n. Less than 1 is possible at small n, where an estimator may lean towards what is likely. "
        "Rows are sorted by the mean over families and sizes."
    )
    if local is not None:
        yield ""
        yield (
            "Local: the geometric mean of the same figure where the gap lives in one place "
            f"({', '.join(local.families)})."
        )
    yield ""
    yield from _table(
        (
            "",
            "estimator",
            "mean",
            "worst",
            "worst at",
            *(f"n={n}" for n in sizes),
            *["local"] * (local is not None),
        ),
        (
            (
                str(rank + 1),
                marked[k],
                _number(exact.mean[k], 2),
                _number(exact.worst(k)[0], 2),
                "{}, n={}".format(*exact.worst(k)[1:]),
                *(_number(value, 2) for value in exact.ratio[k].mean(axis=0)),
                *([] if local is None else [_number(local.typical[k], 2)]),
            )
            for rank, k in enumerate(order)
        ),
    )
    for j, (n, times) in enumerate(exact.repetitions.items()):
        relative = float(np.median(exact.error[..., j] / exact.ratio[..., j]))
        yield f"### n = {n}"
        yield ""
        yield f"{times} samples of each family; standard errors are about {100 * relative:.0f} % of a figure."
        yield ""
        yield from _table(
            ("estimator", *(family for part in parts for family in part.families)),
            (
                (marked[k], *(_number(value, 2) for part in parts for value in part.ratio[k, :, j]))
                for k in order
            ),
        )


def _name(row: Row) -> str:
    failed = f" ({row.failed} samples failed)" if row.failed else ""
    return f"`{row.estimator}`{f' {MARK}' if row.own else ''}{failed}"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""


def _range(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}" if np.isfinite(low) else ""


def _pair(p95: float, mean: float) -> str:
    return f"{p95:.2f} / {mean:.2f}" if np.isfinite(p95) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
