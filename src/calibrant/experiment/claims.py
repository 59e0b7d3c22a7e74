"""What the paper claims about Figure 2, and what a run says to it.

A claim is judged at each size by the medians over the models, with a tie band of 3 %, and on resampled
distributions: a verdict at a size needs three quarters of the resamples on its side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from calibrant.estimators import FIFTEEN
from calibrant.experiment.procedure import NOTIONS, title
from calibrant.experiment.summary import Summary, resampled_medians
from calibrant.parallel import cached_property
from calibrant.score_data import Array

TIE, SUPPORT, RESAMPLES = 0.03, 0.75, 200
SMALL, BINS = 51, (10, 30, "sqrt")
# Fewer distributions than this agree by chance with a probability above 5 %: 2 * 0.5**5 > 0.05.
FEWEST = 6
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided by this run"
OURS = "not claimed"
TIED, BETTER, WORSE = (
    partial(np.greater_equal, 1 + TIE),
    partial(np.greater, 1 - TIE),
    partial(np.less, 1 + TIE),
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what became of it."""

    # text, where, numbers: the claim, the section that makes it, and what decides it.
    text: str
    where: str
    # By reading, or under "study" where a side study decides: "holds", "holds only for ...", "does not
    # hold" or "not decided by this run"; sizes at which the resamples disagree follow as "(open: ...)".
    # What the paper names without a test is "named, not tested".
    verdicts: dict[str, str]
    numbers: str


@dataclass(frozen=True, eq=False)
class View:
    """One reading and notion of a run; if `relative`, errors are divided by each model's truth."""

    summary: Summary
    reading: str
    notion: str
    relative: bool

    @cached_property
    def medians(self) -> Array:
        """95th percentiles by estimator of the fifteen and size; first of the run, then of its resamples."""
        settings = self.summary.settings
        table = self.summary.values[self.reading]["p95"][:, settings.notions.index(self.notion)]
        table = table[:, [settings.estimators.index(name) for name in FIFTEEN]]
        if self.relative and self.reading != "normalised":
            true = self.summary.truth[self.notion][:, 0 if self.reading == "published" else 1]
            table = table / np.maximum(true, 1e-12)[:, None, None]
        return resampled_medians(table, self.summary.distributions, RESAMPLES)

    @property
    def least(self) -> Array:
        """The best of the fifteen."""
        return np.asarray(self.medians.min(axis=1))

    def __getitem__(self, name: str) -> Array:
        return self.medians[:, FIFTEEN.index(name)]

    def lost(self, name: str = "d:silverman") -> Array:
        """Divide an estimator by the best."""
        return np.asarray(self[name] / self.least)

    def ratio(self, *pairs: tuple[str, str]) -> Array:
        """Divide one estimator by another, the geometric mean over pairs."""
        logs = [np.log(self[over] / self[under]) for over, under in pairs]
        return np.asarray(np.exp(np.mean(logs, axis=0)))

    def near(self, band: float) -> Array:
        """Say which of the fifteen are within a band of the best."""
        return np.asarray(self.medians <= (1 + band) * self.least[:, None])

    def deviation(self, over: str, under: str) -> Array:
        """Divide the standard deviation of one family by another's, the geometric mean over equal bins."""
        names, notion = self.summary.settings.estimators, self.summary.settings.notions.index(self.notion)
        sd = np.maximum(self.summary.values[self.reading]["sd"][:, notion], 1e-12)
        logs = [np.log(sd[:, [names.index(f"{f}:{bins}") for bins in BINS]]) for f in (over, under)]
        ratio = np.exp((logs[0] - logs[1]).mean(axis=1))
        return resampled_medians(ratio, self.summary.distributions, RESAMPLES)


@dataclass(frozen=True)
class Statement:
    """How a claim about the figure is judged: a statistic of the views of its notions, and a threshold."""

    text: str
    notions: str
    what: str
    value: Callable[..., Array]
    true: Callable[[Array], Array]
    at: Callable[[Array], Array] = np.isfinite
    enough: float = 0.8
    relative: bool = False
    best: str = ""
    where: str = "5.2"

    def judge(self, summary: Summary, view: Callable[..., View]) -> Claim:
        """Judge the claim under every reading of the run."""
        verdicts, numbers = dict.fromkeys(summary.values, OPEN), []
        for reading in summary.values if covers_all(summary, *self.notions.split()) else ():
            views = [view(reading, notion, self.relative) for notion in self.notions.split()]
            value, sizes = self.value(*views), np.array(summary.settings.sizes)
            if value.ndim == 1:  # about all sizes at once
                value, sizes = value[:, None], np.zeros(1, dtype=int)
            kept = np.flatnonzero(self.at(sizes) & np.isfinite(value).all(axis=0))
            verdicts[reading] = decide(sizes[kept], self.true(value[:, kept]), self.enough)
            shown = []
            for k in kept[np.unique(np.linspace(0, len(kept) - 1, 4).astype(int))] if len(kept) else ():
                share = 100 * np.mean(views[0].lost(self.best)[1:, k] <= 1) if self.best else 0.0
                best = f" (best in {share:.0f} %)" if self.best else ""
                shown.append((f"N={sizes[k]} " if sizes[k] else "") + f"{value[0, k]:.2f}{best}")
            numbers.append(f"{reading} {', '.join(shown) or 'none'}")
        return Claim(self.text, self.where, verdicts, f"{self.what}: {'; '.join(numbers) or 'missing'}")


def covers_all(summary: Summary, *notions: str) -> bool:
    """Tell whether a run has the fifteen estimators and these notions."""
    return {*FIFTEEN, *notions} <= {*summary.settings.estimators, *summary.settings.notions}


def decide(sizes: Array, true: Array, enough: float = 1.0) -> str:
    """Return a verdict from what the run (first) and its resamples say at each size; size 0 is all.

    >>> said = np.array([[True, True, False]] * 4)
    >>> decide(np.array([30, 50, 100]), said), decide(np.array([30, 50, 100]), said, enough=0.6)
    ('holds only for N in 30-50', 'holds')
    """
    support = true[1:].mean(axis=0)
    yes, no = true[0] & (support >= SUPPORT), ~true[0] & (support <= 1 - SUPPORT)
    if not sizes.size or (not yes.any() and no.mean() <= 0.5):
        return OPEN
    if yes.mean() >= enough:
        return HOLDS
    rest = "" if (yes | no).all() else f" (open: {ranges(sizes, ~yes & ~no)})"
    return f"holds only for N in {ranges(sizes, yes)}{rest}" if yes.any() else f"{FAILS}{rest}"


def ranges(sizes: Array, chosen: Array) -> str:
    """Return the sizes chosen, neighbours as a range."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    runs = zip(sizes[edges[::2]], sizes[edges[1::2] - 1], strict=True)
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _equal_bins(over: str, under: str) -> Callable[[View], Array]:
    return lambda view: view.ratio(*((f"{over}:{bins}", f"{under}:{bins}") for bins in BINS))


def statements() -> Iterator[Statement]:
    """Yield the claims of the results section, in its order."""
    titled = [(notion, title(notion)) for notion in NOTIONS]
    for notion, word in titled:
        small: dict[str, Any] = {"at": lambda n: n <= SMALL, "relative": True, "enough": 1.0}
        text = f"{word}: at small N the error of all estimators is very high (above 10 % of the true value)"
        yield Statement(text, notion, "best of 15 over truth", lambda v: v.least, lambda r: r > 0.1, **small)
        text = f"{word}: at small N the error is around 10 % of the true value (5 to 20 %)"
        small |= {"value": lambda v: np.median(v.medians, axis=1), "true": lambda r: (r > 0.05) & (r < 0.2)}
        yield Statement(text, notion, "median of 15 over truth", **small)
    text = "Confidence: the density with Silverman's rule is best in almost all regimes"
    yield Statement(text, "confidence", "its error over the best", View.lost, TIED, best="d:silverman")
    text = "Confidence: Silverman's rule avoids a sensitive choice (as close as the better of .033 and .1)"
    what = "its error over that of the better one"
    yield Statement(
        text, "confidence", what, lambda v: v["d:silverman"] / np.minimum(v["d:0.033"], v["d:0.1"]), TIED
    )
    for (notion, word), where in zip(titled, ("5.2", OURS), strict=True):
        for over, under in (("c", "l"), ("ac", "a")):
            text = f"{word}: convex mapping improves {under} (same bins)"
            yield Statement(
                text, notion, f"{over} over {under}", _equal_bins(over, under), BETTER, where=where
            )
    text = "Confidence: adaptive binning underperforms when alone (same bins)"
    yield Statement(text, "confidence", "a over l", _equal_bins("a", "l"), WORSE)
    text, what = "Confidence: adaptivity increases the variance", "standard deviation, a over l"
    yield Statement(text, "confidence", what, lambda v: v.deviation("a", "l"), WORSE)
    text, what = "Confidence: convex mapping lowers the variance", "standard deviation, c over l"
    yield Statement(text, "confidence", what, lambda v: v.deviation("c", "l"), BETTER, where=OURS)
    text = "Confidence: above 300 samples many estimators are similar (half within 25 % of the best)"
    many: dict[str, Any] = {"true": lambda r: r >= 0.5, "at": lambda n: n > 300, "enough": 1.0}
    yield Statement(text, "confidence", "share of 15", lambda v: v.near(0.25).mean(axis=1), **many)
    for notion, word in titled:
        pairs = [(f"{family}:sqrt", f"{family}:10") for family in ("l", "a", "c", "ac")]
        text = f"{word}: √N bins grow slightly too fast (worse than 10 bins for N > 120)"
        usual: dict[str, Any] = {"value": lambda v, p=pairs: v.ratio(*p), "at": lambda n: n > 120}
        yield Statement(text, notion, "√N over 10 bins", true=WORSE, **usual)
    text = "Class-wise: no estimator outperforms in all regimes (within 3 % of the best at 90 % of the sizes)"
    usual = {"value": lambda v: v.near(TIE).mean(axis=2).max(axis=1), "true": lambda r: r < 0.9}
    yield Statement(text, "classwise", "largest share of sizes", **usual)
    text = "Class-wise: {} adaptive bins with convex mapping are best"
    usual = {"value": lambda v: v.lost("ac:sqrt"), "best": "ac:sqrt", "at": lambda n: n < 100}
    yield Statement(text.format("below 100 samples √N"), "classwise", "over the best", true=TIED, **usual)
    usual = {"value": lambda v: v.lost("ac:10"), "best": "ac:10", "at": lambda n: n >= 100}
    yield Statement(text.format("from 100 samples on 10"), "classwise", "over the best", true=TIED, **usual)
    text = "Silverman's rule is less relevant class-wise than for confidence"
    yield Statement(text, "classwise confidence", "ratio of losses", lambda c, v: c.lost() / v.lost(), WORSE)


def claims(summary: Summary) -> list[Claim]:
    """Judge the paper's claims by a run; `benchmarks/claims.py` adds what a run cannot decide.

    Raises
    ------
    ValueError
        If the run has fewer than six distributions, which would agree by chance.
    """
    count = len(set(summary.distributions))
    if count < FEWEST:
        raise ValueError(
            f"claims need a run with at least {FEWEST} distributions, got {count}; "
            "--preset quick has 9, --preset paper 45"
        )
    view = cache(partial(View, summary))
    return [statement.judge(summary, view) for statement in statements()]


def to_markdown(claim_list: list[Claim]) -> str:
    """Return a table of claims by reading, and one of those that a study decides."""
    lines = []
    for names in dict.fromkeys(tuple(claim.verdicts) for claim in claim_list):
        lines += ["", f"| claim | section | {' | '.join(names)} | numbers |", "|---" * (len(names) + 3) + "|"]
        for claim in (other for other in claim_list if tuple(other.verdicts) == names):
            cells = (claim.text, claim.where, *claim.verdicts.values(), claim.numbers)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines[1:]) + "\n"


def about(summary: Summary) -> str:
    """Return the title of a page of claims, and the run that tested them."""
    settings = summary.settings
    sizes = f"{settings.sizes[0]} to {settings.sizes[-1]}"
    return (
        "# Claims of the paper\n\n"
        f"{len(summary.models)} models, {settings.repetitions} samples of each size from {sizes} rows, "
        f"holdout sets of {settings.n_holdout} rows, means uniform in [{settings.low:g}, 1]."
    )
