"""A leaderboard as a page: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.experiment.leaderboard import (
    LEVEL,
    RESAMPLES,
    Board,
    Exact,
    LeaderboardRow,
    Overall,
    own_measure,
)
from calibrant.experiment.procedure import PRESETS, Settings
from calibrant.experiment.procedure import title as title_of
from calibrant.experiment.summary import BASELINES
from calibrant.score_data import Array

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
#: Names of the columns, and the rows.
HeadAndRows = tuple[Sequence[str], Sequence[Sequence[Any]]]
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
        "best_constant": board.constants,
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
    """Return the page, with the names of the runs; `out` is for the command that makes it again."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    exact, rows = board.exact, [row for rows in board.rows.values() for row in rows]
    given = "--no-exact"
    if exact is not None:
        given = f"--repetitions {','.join(map(str, exact.repetitions.values()))} --seed {exact.seed}"
    commands = [command(settings, name) for name, settings in zip(names, board.settings, strict=True)]
    commands.append(
        f"calibrant experiment leaderboard {' '.join(names)} {given}{f' -o {out}' if out else ''}"
    )
    runs = [
        (name, ", ".join(map(str, setting.sizes)), setting.repetitions, setting.n_holdout)
        for name, setting in zip(names, board.settings, strict=True)
    ]
    environment = Environment(
        loader=PackageLoader("calibrant.experiment", "."),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
    )
    return environment.get_template("leaderboard.md.j2").render(
        board=board,
        commands=commands,
        mark=MARK,
        marked=exact is not None or any(row.is_own_measure for row in rows),
        exact=exact,
        local=board.local,
        families=None if exact is None else _families(exact, board.local),
        planned=max(len(setting.tasks()) for setting in board.settings),
        runs=(("run", "sizes", "samples of each", "holdout rows"), runs),
        level=LEVEL,
        resamples=RESAMPLES,
        failed=any(row.failed for row in rows),
        notions=[_notion(board, notion) for notion in board.rows],
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


def _notion(board: Board, notion: str) -> dict[str, Any]:
    """Return what the page says of a notion."""
    rows = board.rows[notion]
    (constant,) = [row for row in rows if row.estimator == BASELINES[1]]
    with np.errstate(invalid="ignore"):
        behind = np.all([~(row.skill["p95"].by_size > 0) for row in rows if not row.baseline], axis=0)
    ranks = np.cumsum([not row.baseline for row in rows])
    ranking = (
        *("", "estimator", "samples", "p95, overall ratio", "interval", "MAE, overall ratio", "interval"),
        *("p95, skill", "interval", "MAE, skill", "pairs in order"),
    )
    ranked = [
        (
            "" if row.failed or row.baseline else rank,
            _name(row),
            "" if row.baseline else row.repetitions,
            *_overall(row.ratio["p95"]),
            *_overall(row.ratio["mean"]),
            *_overall(row.skill["p95"]),
            _number(row.skill["mean"].overall),
            _number(row.ordered_overall),
        )
        for rank, row in zip(ranks, rows, strict=True)
    ]
    sizes = [f"N={n}" for n in board.sizes]
    by_size: dict[str, HeadAndRows] = {
        f"{title} by N: p95 / MAE": (
            ("estimator", *sizes),
            [
                (_name(row), *map(_pair, both["p95"].by_size, both["mean"].by_size))
                for row, both in zip(rows, figures, strict=True)
            ],
        )
        for title, figures in (
            ("Ratios", [row.ratio for row in rows]),
            ("Skill", [row.skill for row in rows]),
        )
    }
    shares = [(_name(row), *map(_number, row.ordered)) for row in rows]
    by_size["Pairs of models in order, by N"] = (("estimator", *sizes), shares)
    for statistic, title in STATISTICS.items():
        by_size[f"{title}, in thousandths"] = (
            ("estimator", "samples", *sizes),
            [
                (_name(row), row.repetitions, *(_number(1000 * value, 1) for value in row.median[statistic]))
                for row in rows
            ],
        )
    return {
        "title": title_of(notion),
        "best": {
            statistic: ", ".join(f"{k} at {n}" for k, n in zip(best[notion], board.sizes, strict=True) if k)
            for statistic, best in board.best.items()
        },
        "constant": board.constants[notion],
        "error": float(np.nanmax(constant.median["p95"])),
        "ahead": [n for n, lost in zip(board.sizes, behind, strict=True) if lost],
        "ranking": (ranking, ranked),
        "by_size": by_size,
    }


def _families(exact: Exact, local: Exact | None) -> dict[str, Any]:
    """Return what the page says of the families with a known bound."""
    parts = [exact] if local is None else [exact, local]
    constants = dict(zip(BASELINES, (0.0, exact.best_constant), strict=True))
    ratios = {
        f"`{name}`{f' {MARK}' if own_measure(name) else ''}": [results.ratio[k] for results in parts]
        for k, name in enumerate(exact.estimators)
    }
    ratios |= {f"`{name}`": [results.of_constant(c) for results in parts] for name, c in constants.items()}
    ordered = sorted(ratios.items(), key=lambda entry: float(entry[1][0].mean()))
    ranks = np.cumsum([name.strip("`") not in BASELINES for name, _ in ordered])
    least = float(exact.of_constant(exact.best_constant).mean())
    head = ["", "estimator", "mean", "skill", "worst", "worst at", *(f"n={n}" for n in exact.repetitions)]
    ranked = []
    for rank, (name, (ratio, *other)) in zip(ranks, ordered, strict=True):
        worst, family, n = exact.worst(ratio)
        figures = (ratio.mean(), 1 - ratio.mean() / least, worst)
        ranked.append(
            (
                "" if name.strip("`") in BASELINES else rank,
                name,
                *map(_number, figures),
                f"{family}, n={n}",
                *map(_number, ratio.mean(axis=0)),
                *(_number(_geometric_mean(results)) for results in other),
            )
        )
    by_family = ("estimator", *(family for results in parts for family in results.families))
    by_size = [
        (
            n,
            times,
            float(np.median(exact.error[..., j] / exact.ratio[..., j])),
            (by_family, [(name, *(_number(v) for r in both for v in r[:, j])) for name, both in ordered]),
        )
        for j, (n, times) in enumerate(exact.repetitions.items())
    ]
    return {"ranking": (head + ["local"] * (local is not None), ranked), "by_size": by_size}


def _geometric_mean(ratio: Array) -> float:
    with np.errstate(divide="ignore"):  # a constant may be right
        return float(np.exp(np.log(ratio).mean()))


def _name(row: LeaderboardRow) -> str:
    failed = f" ({row.failed} samples failed)" if row.failed else ""
    return f"`{row.estimator}`{f' {MARK}' if row.is_own_measure else ''}{failed}"


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""


def _overall(figure: Overall) -> tuple[str, str]:
    """Return a figure over all sizes that rank, and its interval."""
    interval = f"{figure.low:.2f} to {figure.high:.2f}" if np.isfinite(figure.low) else ""
    return _number(figure.overall), interval


def _pair(p95: float, mean: float) -> str:
    return f"{p95:.2f} / {mean:.2f}" if np.isfinite(p95) else ""


def _plain(value: Any) -> Any:
    if isinstance(value, Overall):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
