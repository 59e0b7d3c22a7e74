"""What the paper claims, and what a run and the side studies say to it.

A claim about Figure 2 is judged at each size by the medians over the models, with a tie band of 3 %, and
on resampled distributions: a verdict at a size needs three quarters of the resamples on its side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.estimators import FIFTEEN
from calibrant.experiment import studies as side
from calibrant.experiment.procedure import NOTIONS, title
from calibrant.experiment.summary import Summary, resampled_medians
from calibrant.parallel import cached_property
from calibrant.score_data import Array

TIE, SUPPORT, RESAMPLES = 0.03, 0.75, 200
# So many times the usual time would be prohibitive.
PROHIBITIVE = 20.0
SMALL = 51
HOLDS, FAILS, OPEN, NAMED = "holds", "does not hold", "not decided by this run", "named, not tested"
OURS = "not claimed"
TIED, BETTER, WORSE = (
    partial(np.greater_equal, 1 + TIE),
    partial(np.greater, 1 - TIE),
    partial(np.less, 1 + TIE),
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what became of it.

    Attributes
    ----------
    text, where, numbers : str
        The claim, the section that makes it, and what decides it.
    verdicts : dict
        By reading, or under "study" where a side study decides: "holds", "holds only for ...", "does not
        hold" or "not decided by this run"; sizes at which the resamples disagree follow as "(open: ...)".
        What the paper names without a test is "named, not tested".
    """

    text: str
    where: str
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
        """Divide the standard deviation of one family by another's."""
        ratio = side.spread(self.summary, self.reading, self.notion, over, under)
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
        for reading in summary.values if _whole(summary, *self.notions.split()) else ():
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


def _whole(summary: Summary, *notions: str) -> bool:
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
    rest = "" if (yes | no).all() else f" (open: {_ranges(sizes, ~yes & ~no)})"
    return f"holds only for N in {_ranges(sizes, yes)}{rest}" if yes.any() else f"{FAILS}{rest}"


def _ranges(sizes: Array, chosen: Array) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    runs = zip(sizes[edges[::2]], sizes[edges[1::2] - 1], strict=True)
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _equal_bins(over: str, under: str) -> Callable[[View], Array]:
    return lambda view: view.ratio(*((f"{over}:{bins}", f"{under}:{bins}") for bins in side.BINS))


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
    text = "Confidence: Silverman's rule spares a sensitive choice (as close as the better of .033 and .1)"
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


def claims(summary: Summary, *, studies: bool = True, scale: str = "full") -> list[Claim]:
    """Judge the paper's claims by a run and, unless told otherwise, by the side studies.

    Parameters
    ----------
    summary : Summary
    studies : bool
        Whether to run the side studies.
    scale : {"full", "smoke"}
        Sizes of the side studies: three minutes, or some seconds of little weight.
    """
    inputs.check_choice("scale", scale, ("full", "smoke"))
    view = cache(partial(View, summary))
    judged = [statement.judge(summary, view) for statement in statements()]
    return judged + (list(_studied(summary, side.SMOKE if scale == "smoke" else {})) if studies else [])


def _studied(summary: Summary, sizes: dict[str, dict[str, Any]]) -> Iterator[Claim]:
    def run(name: str, *first: Any) -> Any:
        return getattr(side, name)(*first, **sizes.get(name, {}))

    def listed(form: str, result: dict[int, dict[str, float]]) -> str:
        return ", ".join(f"N={n} {form.format(**entry)}" for n, entry in result.items())

    def claim(text: str, where: str, said: Any, numbers: str) -> Claim:
        if isinstance(said, dict):
            said = decide(np.array(list(said)), np.array([list(said.values())] * 2))
        return Claim(text, where, {"study": {True: HOLDS, False: FAILS}.get(said, said)}, numbers)

    yield _sharp(summary, run)
    result = run("growth")
    text = "best " + ", ".join(f"N={n} {best} (√N {result['root'][n]})" for n, best in result["best"].items())
    text += f", growing as N^{result['exponent']:.2f}; √N costs up to {max(result['cost'].values()):.2f}"
    yield claim("Uniform bins: √N grows slightly too fast", "5.2", result["exponent"] < 0.5 - TIE, text)
    result = run("proper_scores")
    crossed = [100 * result[name]["crossed"] for name in ("brier", "nll")]
    text = "{:.0f} and {:.0f} % of pairs of models in the other order; ".format(*crossed)
    text += "; ".join("ECE {:.2f} with Brier score {:.2f}".format(*entry) for entry in result["pair"])
    yield claim("Brier score and NLL tell only part about calibration", "4.1", min(crossed) > 10, text)
    result = run("consistency")
    good = [name for name, entry in result.items() if entry["vanishes"]]
    last = {name: list(entry["bias"].values())[-1] for name, entry in result.items()}
    text = "last bias " + ", ".join(f"{name} {bias:+.4f}" for name, bias in last.items())
    verdict = HOLDS if len(good) == len(result) else f"holds only for {', '.join(good)}"
    yield claim("Estimators should be consistent", "4.1", verdict, text)
    result = run("ace")
    said: Any
    text, said = "difference {equal:.0e}, and {unequal:.0e} if counts differ", result["equal"] < 1e-12
    yield claim("Class-wise, ACE is ECE_a when bins hold equal counts", "4.3", said, text.format(**result))
    result = run("interpolation")
    text = "root mean square errors " + listed("{diagram:.3f} and {curve:.3f}", result)
    said = {n: entry["curve"] < (1 - TIE) * entry["diagram"] for n, entry in result.items()}
    yield claim("Interpolating a 15-bin diagram is less precise than the curve", "4.4", said, text)
    result = run("bootstrap_coverage")
    text = "coverage of 95 % intervals at a score: " + ", ".join(f"N={n} {c:.2f}" for n, c in result.items())
    said = {n: coverage >= 0.95 - TIE for n, coverage in result.items()}
    yield claim("Percentiles of bootstrapped curves are confidence intervals at a score", "4.4", said, text)
    result = run("cost")
    points = [(np.log(list(result[key])), np.log(list(result[key].values()))) for key in ("rows", "points")]
    power = [float(np.polyfit(sizes, seconds, 1)[0]) for sizes, seconds in points]
    text = ", ".join(f"N={n} {1e9 * t / n:.0f} ns a row" for n, t in result["rows"].items())
    text += "; time grows as N^{:.2f} and, of 1000 rows, as n^{:.2f}".format(*power)
    yield claim("The density costs O(N + n log n)", "4.4", HOLDS if max(power) < 1.2 else OPEN, text)
    times = {n: (seconds, seconds / result["rows"][n]) for n, seconds in result["beta"].items()}
    text = ", ".join(
        f"N={n} {1e9 * t / n:.0f} ns a row, {ratio:.1f} times the triweight"
        for n, (t, ratio) in times.items()
    )
    slow = max(ratio for _, ratio in times.values()) > PROHIBITIVE
    yield claim("The second beta kernel is computationally prohibitive", "6", slow, text)
    result = run("mass")
    text = "; ".join(f"{k} " + ", ".join(f"{v:.4f}" for v in entry.values()) for k, entry in result.items())
    said = any(abs(result[k][0.1] - 1) > 1e-6 for k in ("calibrant", "once"))
    text = f"integral with bandwidths {side.WIDTHS}: {text} (authors': the factor cancels)"
    yield claim("Mirroring leaks density mass, which biases slightly", "4.4", said, text)
    result = run("rules")
    text = "errors with Scott's rule and ISJ over Silverman's: " + listed("{scott:.2f} and {isj:.2f}", result)
    ahead = {n: min(entry["scott"], entry["isj"]) > 1 + TIE for n, entry in result.items()}
    yield claim("Only Silverman's rule gives satisfying results on small data", "4.5", _small(ahead), text)
    result = run("kernels")
    form = "{first:.2f} and {second:.2f} ({first, each:.2f} and {second, each:.2f})"
    text = "errors with the first and the second beta kernel (each row of mass one) over Silverman's: "
    said = {n: entry["second"] < 1 - TIE for n, entry in result.items()}
    heading = "The second beta kernel is closer than Silverman's density on four families of known error"
    yield claim(heading, OURS, said, text + listed(form, result))
    for notion, ratios in run("kernels_on_models").items():
        true = np.array([ratio < 1 - TIE for ratio in ratios.values()]).T
        text = ", ".join(f"N={n} {ratio[0]:.2f}" for n, ratio in ratios.items())
        heading = f"{title(notion)}: the second beta kernel is promising (on models of the experiment)"
        text = f"95th percentile errors over those of Silverman's density: {text}"
        yield claim(heading, "6", decide(np.array(list(ratios)), true), text)
    result = run("dimension")
    text = ", ".join(
        "C={} {kernels:.2f} and {bins:.2f} (default {default:.2f})".format(k, **each)
        for k, each in result.items()
    )
    first, *_, last = result.values()
    said = last["kernels"] / first["kernels"] < (1 - TIE) * last["bins"] / first["bins"]
    text = f"multiclass errors of Dirichlet kernels and of 5 bins a class: {text}"
    yield claim("Kernels suffer less from dimension than bins (multiclass)", "6", said, text)
    text = '`Calibrator("density")` is this map; `python benchmarks/maps.py` compares it with others'
    yield claim("The reliability curve can serve as a calibration map", "6", NAMED, text)
    text = "`calibrant regret --cost` and `calibrant check --max-regret` do, checked by tests/decisions"
    yield claim("A good metric takes cost matrices into account", "4.1", NAMED, text)


def _small(ahead: dict[int, bool]) -> str:
    """Return the verdict on a claim about small samples: their sizes decide, others are told.

    >>> _small({30: False, 50: False, 100: True})
    'does not hold at N in 30-50, the small sizes; holds for N in 100'
    """
    sizes, true = np.array(list(ahead)), np.array(list(ahead.values()))
    if true[sizes <= SMALL].all():
        return decide(sizes, np.array([true] * 2))
    rest = f"; holds for N in {_ranges(sizes, true)}" if true.any() else ""
    return f"{FAILS} at N in {_ranges(sizes, ~true & (sizes <= SMALL))}, the small sizes{rest}"


def _sharp(summary: Summary, run: Callable[..., Any]) -> Claim:
    verdicts, numbers = dict.fromkeys(summary.values, OPEN), []
    cheap = {model[2] for model in summary.models} & set(side.CHEAP)
    for reading in summary.values if cheap and _whole(summary, "classwise") else ():
        result = run("sharpness", summary, reading)
        verdicts[reading] = HOLDS if result["low"] > 0 else FAILS if result["high"] < 0.2 else OPEN
        text = "{correlation:.2f} [{low:.2f}, {high:.2f}], {sharp:.2f} if sharp, {blunt:.2f} if not"
        numbers.append(f"{reading} {text.format(**result)}")
    text = "Silverman's rule loses class-wise because class scores are sharp (near 0 and 1)"
    return Claim(text, "5.2", verdicts, f"rank correlation and losses: {'; '.join(numbers) or 'missing'}")


def to_markdown(judged: list[Claim]) -> str:
    """Return two tables: claims that a run decides, by reading, and claims that a study decides."""
    lines = []
    for names in dict.fromkeys(tuple(claim.verdicts) for claim in judged):
        lines += ["", f"| claim | section | {' | '.join(names)} | numbers |", "|---" * (len(names) + 3) + "|"]
        for claim in (other for other in judged if tuple(other.verdicts) == names):
            cells = (claim.text, claim.where, *claim.verdicts.values(), claim.numbers)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines[1:]) + "\n"
