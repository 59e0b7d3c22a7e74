"""A leaderboard as a page: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from calibrant.evidence import Array
from calibrant.experiment.leaderboard import LEVEL, RESAMPLES, Board, Exact, Overall, Row
from calibrant.experiment.procedure import PRESETS, Settings
from calibrant.experiment.procedure import title as title_of
from calibrant.experiment.summary import BASELINES

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
        "\n".join([*_head(board, names, out), *_families(board.exact, board.local), *_paper(board, names)])
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
    yield "## The paper's procedure"
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
    yield ""
    yield (
        "Two baselines look at no data and have no rank: `zero`, and `best constant`, the constant with the "
        "least median error over these models, which is known only in hindsight. Skill is 1 - error / error "
        "of the best constant: below 0 an estimator is further from the truth than the constant. Pairs in "
        "order is the share of pairs of models, at equal N, of which the one with the larger true error has "
        "the larger estimate; ties count one half, so a constant has .5."
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
        for what, best in (("p95", board.best["p95"]), ("MAE", board.best["mean"])):
            named = [f"{name} at {n}" for name, n in zip(best[notion], board.sizes, strict=True) if name]
            yield f"Best of the fifteen by {what}: {', '.join(named)}."
            yield ""
        yield _against_constant(board, notion)
        yield ""
        ranks = np.cumsum([not row.baseline for row in rows])
        yield from _table(
            (
                *(
                    "",
                    "estimator",
                    "samples",
                    "p95, overall ratio",
                    "interval",
                    "MAE, overall ratio",
                    "interval",
                ),
                *("p95, skill", "interval", "MAE, skill", "pairs in order"),
            ),
            (
                (
                    "" if row.failed or row.baseline else str(rank),
                    _name(row),
                    "" if row.baseline else str(row.repetitions),
                    *_overall(row.ratio["p95"]),
                    *_overall(row.ratio["mean"]),
                    *_overall(row.skill["p95"]),
                    _number(row.skill["mean"].overall, 2),
                    _number(row.ordered_overall, 2),
                )
                for rank, row in zip(ranks, rows, strict=True)
            ),
        )
        figures = {"Ratios": [row.ratio for row in rows], "Skill": [row.skill for row in rows]}
        for title, by_row in figures.items():
            yield f"#### {title} by N: p95 / MAE ({title_of(notion).lower()})"
            yield ""
            yield from _table(
                ("estimator", *(f"N={n}" for n in board.sizes)),
                (
                    (_name(row), *map(_pair, both["p95"].by_size, both["mean"].by_size))
                    for row, both in zip(rows, by_row, strict=True)
                ),
            )
        yield f"#### Pairs of models in order, by N ({title_of(notion).lower()})"
        yield ""
        yield from _table(
            ("estimator", *(f"N={n}" for n in board.sizes)),
            ((_name(row), *(_number(value, 2) for value in row.ordered)) for row in rows),
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
    sizes = tuple(exact.repetitions)
    constants = dict(zip(BASELINES, (0.0, exact.best_constant), strict=True))
    ratios = {
        f"`{name}`{f' {MARK}' if own else ''}": [part.ratio[k] for part in parts]
        for k, (name, own) in enumerate(zip(exact.estimators, exact.own, strict=True))
    }
    ratios |= {f"`{name}`": [part.of_constant(c) for part in parts] for name, c in constants.items()}
    ordered = sorted(ratios.items(), key=lambda entry: float(entry[1][0].mean()))
    ranks = np.cumsum([name.strip("`") not in BASELINES for name, _ in ordered])
    least = float(exact.of_constant(exact.best_constant).mean())
    yield "## Families with a known bound"
    yield ""
    yield (
        "Binary models whose true error is known exactly. A figure is the mean absolute error over the "
        "efficiency bound .798 sqrt((Brier - ECE^2) / n), the least that a regular estimator can have for "
        "large n. Less than 1 is possible at small n, where an estimator may lean towards what is likely. "
        "Rows are sorted by the mean over families and sizes."
    )
    yield ""
    yield (
        f"Two baselines look at no data: `zero`, and `best constant`, {exact.best_constant:.3f}, which has "
        "the least mean and is known only in hindsight. Skill is 1 - mean / mean of the best constant."
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
            *("", "estimator", "mean", "skill", "worst", "worst at"),
            *(f"n={n}" for n in sizes),
            *["local"] * (local is not None),
        ),
        (
            (
                "" if name.strip("`") in BASELINES else str(rank),
                name,
                _number(ratio.mean(), 2),
                _number(1 - ratio.mean() / least, 2),
                _number(exact.worst(ratio)[0], 2),
                "{}, n={}".format(*exact.worst(ratio)[1:]),
                *(_number(value, 2) for value in ratio.mean(axis=0)),
                *(_number(_geometric_mean(part), 2) for part in other),
            )
            for rank, (name, (ratio, *other)) in zip(ranks, ordered, strict=True)
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
                (name, *(_number(value, 2) for ratio in both for value in ratio[:, j]))
                for name, both in ordered
            ),
        )


def _geometric_mean(ratio: Array) -> float:
    with np.errstate(divide="ignore"):  # a constant may be right
        return float(np.exp(np.log(ratio).mean()))


def _against_constant(board: Board, notion: str) -> str:
    """Return where the best constant is closer than every estimator."""
    rows = board.rows[notion]
    (constant,) = [row for row in rows if row.estimator == BASELINES[1]]
    said = f"The best constant is {board.constants[notion]:.3f}, with a median error of {{:.3f}}. "
    with np.errstate(invalid="ignore"):
        behind = np.all([~(row.skill["p95"].by_size > 0) for row in rows if not row.baseline], axis=0)
    ahead = [str(n) for n, lost in zip(board.sizes, behind, strict=True) if lost]
    said += (
        f"By p95 no estimator is closer at N = {', '.join(ahead)}."
        if ahead
        else "At every N some estimator is closer by p95."
    )
    return said.format(float(np.nanmax(constant.median["p95"])))


def _name(row: Row) -> str:
    failed = f" ({row.failed} samples failed)" if row.failed else ""
    return f"`{row.estimator}`{f' {MARK}' if row.own else ''}{failed}"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""


def _overall(figure: Overall) -> tuple[str, str]:
    """Return a figure over all sizes that rank, and its interval."""
    interval = f"{figure.low:.2f} to {figure.high:.2f}" if np.isfinite(figure.low) else ""
    return _number(figure.overall, 2), interval


def _pair(p95: float, mean: float) -> str:
    return f"{p95:.2f} / {mean:.2f}" if np.isfinite(p95) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


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
