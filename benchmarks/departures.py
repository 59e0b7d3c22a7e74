"""What each departure of the paper, or of its authors' code, does to the numbers.

    python benchmarks/departures.py [--write docs/research/departures.md]

"Estimating Expected Calibration Errors" (Posocco and Bonnefoy, 2021), its public code and calibrant differ in
the points that docs/findings.md numbers. Here one convention at a time is exchanged for the other one, on the
nine data sets of tests/golden and on synthetic ones, and the result is compared with calibrant's. Prints
Markdown tables; `--write` puts them between the two markers of a page instead. Everything is seeded.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt, pi, sqrt
from pathlib import Path

import numpy as np

import calibrant
from calibrant import Binned, Density, published
from calibrant.estimators import parse
from calibrant.estimators.binned import adaptive_edges, equal_edges, mapped
from calibrant.estimators.smoothing import silverman
from calibrant.score_data import Array, Bins, Sample

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
BEGIN, END = "<!-- departures:begin -->", "<!-- departures:end -->"
NOTIONS = ("confidence", "classwise")
BINS, WIDTHS = ("10", "30", "sqrt"), ("0.033", "0.1", "silverman")
KDEPY_FACTOR = (4 / 3) ** 0.2  # 1.0592; Silverman (1986) has 0.9
REDRAWS = 50


# Data


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set seen by one notion: scores (k, N) with k = 1 for confidence, C for class-wise."""

    notion: str
    n_classes: int
    discrete: bool
    sample: Sample
    redrawn: Sample  # the same scores, labels drawn anew from the true posterior

    @property
    def low(self) -> float:
        return self.sample.support[0]

    def n_bins(self, parameter: str) -> int:
        return isqrt(self.sample.shape[-1]) if parameter == "sqrt" else int(parameter)


def draw(posterior: Array, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Array:
    """Labels of the rows of (..., N, C) posteriors."""
    below = np.cumsum(posterior, axis=-1)[..., :-1]
    return np.sum(rng.random((*size, *posterior.shape[:-1], 1)) > below, axis=-1)


def problems(labels: Array, scores: Array, posterior: Array, discrete: bool) -> list[Problem]:
    rng = np.random.default_rng(len(labels))
    classes = np.arange(scores.shape[1])
    drawn = draw(posterior, rng, (REDRAWS,))
    found = []
    for notion in NOTIONS:
        top = notion == "confidence"
        asked = scores.argmax(axis=1)[None] if top else classes[:, None]
        score = scores.max(axis=1)[None] if top else np.ascontiguousarray(scores.T)
        support = (1 / len(classes) if top else 0.0, 1.0)
        given, redrawn = (Sample(score, y == asked, None, support) for y in (labels, drawn[:, None]))
        found.append(Problem(notion, len(classes), discrete, given, redrawn))
    return found


def shipped() -> list[Problem]:
    """The nine data sets that the tests use."""
    found = []
    for path in sorted(GOLDEN.glob("*.npz")):
        with np.load(path) as data:
            found += problems(data["labels"], data["scores"], data["posterior"], "discrete" in path.stem)
    return found


def hundredths(scores: Array) -> Array:
    """Rows rounded to hundredths that still sum to 1, as a forest of a hundred trees votes."""
    votes = np.floor(100 * scores).astype(int)
    rank = np.argsort(np.argsort(votes - 100 * scores, axis=1), axis=1)
    votes += rank < 100 - votes.sum(axis=1, keepdims=True)
    return votes / 100


def synthetic(seed: int = 2021) -> list[Problem]:
    """Dirichlet scores whose posterior is a tempered version of them: 3 kinds x 3 C x 4 N."""
    rng = np.random.default_rng(seed)
    found = []
    for kind, alpha in (("smooth", 2.0), ("sharp", 0.2), ("discrete", 0.6)):
        for n_classes in (2, 5, 7):
            for n in (30, 100, 500, 3000):
                scores = rng.dirichlet(np.full(n_classes, alpha), n)
                scores = hundredths(scores) if kind == "discrete" else scores
                posterior = (scores + 1e-3) ** rng.choice([0.5, 0.7, 1.0, 1.6])
                posterior[:, 0] *= np.exp(rng.choice([-0.4, 0.0, 0.6]))
                posterior /= posterior.sum(axis=1, keepdims=True)
                found += problems(draw(posterior, rng), scores, posterior, kind == "discrete")
    return found


# The conventions: (problem, parameter) -> the error under another convention than calibrant's

Convention = Callable[[Problem, str], float]


def over_bins(problem: Problem, bins: Bins) -> float:
    return float(np.mean(np.abs(bins.residual).sum(axis=-1) / problem.sample.shape[-1]))


def authors(family: str) -> Convention:
    """Everything as the authors' code has it."""

    def error(problem: Problem, parameter: str) -> float:
        score, outcome = problem.sample.score, problem.sample.outcome
        if problem.notion == "classwise":
            score, outcome = score[None], outcome[None]
        name = f"{family}:{parameter}"
        return float(
            published.errors(
                score, outcome, notion=problem.notion, estimator=name, n_classes=problem.n_classes
            )[0]
        )

    return error


def swapped(binning: str) -> Convention:
    """The convex weights as printed, the nearer centre getting the smaller one."""

    def error(problem: Problem, parameter: str) -> float:
        n_bins = problem.n_bins(parameter)
        return float(Binned(binning, n_bins, "published").fit(problem.sample).error().mean())

    return error


def confidence_domain(binning: str) -> Convention:
    """Bins that begin at 1/C."""

    def error(problem: Problem, parameter: str) -> float:
        if binning == "uniform":
            edges = problem.low + (1 - problem.low) * equal_edges(problem.n_bins(parameter))
        else:
            edges = adaptive_edges(problem.sample, problem.n_bins(parameter))
            edges[..., 0] = problem.low
        return over_bins(problem, mapped(problem.sample, edges, "convex"))

    return error


def mirrored_at_zero(problem: Problem, parameter: str) -> float:
    """The density of confidences on [0, 1]."""
    sample = replace(problem.sample, support=(0.0, 1.0))
    return float(parse(f"d:{parameter}").fit(sample).error().mean())


def authors_cuts(score: Array, n_bins: int) -> Array:
    """Inner thresholds midway after i floor(N/B) scores; the remainder is the last bin's."""
    cut = np.arange(1, n_bins) * (score.shape[-1] // n_bins)
    ordered = np.sort(score, axis=-1)
    return (ordered[..., cut - 1] + ordered[..., cut]) / 2


def remainder_last(mapping: str) -> Convention:
    def error(problem: Problem, parameter: str) -> float:
        cuts = authors_cuts(problem.sample.score, problem.n_bins(parameter))
        edges = np.pad(cuts, [(0, 0), (1, 1)], constant_values=[(0, 0), (0, 1)])
        return over_bins(problem, mapped(problem.sample, edges, mapping))

    return error


def literal_thresholds(problem: Problem, parameter: str) -> float:
    """t(i) is the floor(N/i)-th score, as printed; a score on a threshold belongs to the bin it ends."""
    n = problem.sample.shape[-1]
    rank = n // np.arange(problem.n_bins(parameter), 1, -1) - 1
    cuts = np.sort(problem.sample.score, axis=-1)[..., rank]
    return over_bins(problem, problem.sample.bins(np.nextafter(cuts, 2.0)))


def smoothed(problem: Problem, widths: Array, kernel: str = "triweight") -> float:
    """The density error with a bandwidth for each class."""
    fits = [Density(float(h), kernel).fit(problem.sample[k]) for k, h in enumerate(widths)]
    return float(np.mean([fit.error() for fit in fits]))


def widths(problem: Problem, parameter: str) -> Array:
    count = problem.sample.batch[0]
    return silverman(problem.sample) if parameter == "silverman" else np.full(count, float(parameter))


def first_bandwidth(problem: Problem, parameter: str) -> float:
    found = widths(problem, parameter)
    return smoothed(problem, np.full(found.shape, found[0]))


def authors_grid(problem: Problem, parameter: str) -> float:
    """The right bandwidths on the authors' grid with their four copies of the scores."""
    notion = "confidence" if problem.notion == "confidence" else "binary"
    rows = zip(problem.sample.score, problem.sample.outcome, widths(problem, parameter), strict=True)
    about = {"notion": notion, "n_classes": problem.n_classes}
    found = [published.errors(s[None], y[None], estimator=f"d:{float(h)!r}", **about) for s, y, h in rows]
    return float(np.mean(found))


def gaussian(problem: Problem, parameter: str) -> float:
    return smoothed(problem, widths(problem, parameter), "gaussian")


def half_width(problem: Problem, parameter: str) -> float:
    """The bandwidth read as the triweight's half-width, which is three standard deviations."""
    return smoothed(problem, widths(problem, parameter) / 3)


def silverman_1986(problem: Problem, parameter: str) -> float:
    return smoothed(problem, widths(problem, parameter) * 0.9 / KDEPY_FACTOR)


def right_closed(problem: Problem, parameter: str) -> float:
    cuts = equal_edges(problem.n_bins(parameter))[1:-1]
    return over_bins(problem, problem.sample.bins(np.nextafter(cuts, 2.0)))


def closed_twice(problem: Problem, parameter: str) -> float:
    """Bins closed at both ends, as printed: a score on a threshold counts in two of them."""
    cuts = equal_edges(problem.n_bins(parameter))[1:-1]
    left, right = (problem.sample.bins(c).residual for c in (cuts, np.nextafter(cuts, 2.0)))
    on_cut = np.cumsum(right - left, axis=-1)[..., :-1]
    left[..., :-1] += on_cut
    return float(np.mean(np.abs(left).sum(axis=-1) / problem.sample.shape[-1]))


def linspace_edges(problem: Problem, parameter: str) -> float:
    cuts = np.linspace(0, 1, problem.n_bins(parameter) + 1)[1:-1]
    return over_bins(problem, problem.sample.bins(cuts))


@dataclass(frozen=True)
class Departure:
    """A line of the table: number in docs/findings.md, words, and the estimator that it changes."""

    number: str
    name: str
    family: str
    error: Convention
    parameters: tuple[str, ...] = BINS
    notions: tuple[str, ...] = NOTIONS
    discrete_only: bool = False

    def cases(self, data: Iterable[Problem], notion: str) -> list[tuple[float, float, float]]:
        """Calibrant's value, its standard deviation over redrawn labels, and the other value."""
        kept = [p for p in data if p.notion == notion and (p.discrete or not self.discrete_only)]
        return [
            (*ours(problem, self.family, parameter), self.error(problem, parameter))
            for problem in (kept if notion in self.notions else [])
            for parameter in self.parameters
        ]


@cache
def ours(problem: Problem, family: str, parameter: str) -> tuple[float, float]:
    """Calibrant's value, and its standard deviation over redrawn labels."""
    estimator = parse(f"{family}:{parameter}")
    spread = estimator.fit(problem.redrawn).error().mean(axis=-1).std(ddof=1)
    return float(estimator.fit(problem.sample).error().mean()), float(spread)


def departures() -> list[Departure]:
    ends = {"discrete_only": True}
    return [
        Departure("-", "authors' code, `l`", "l", authors("l")),
        Departure("5", "authors' code, `a`", "a", authors("a")),
        Departure("1-3", "authors' code, `c`", "c", authors("c")),
        Departure("1-3, 5", "authors' code, `ac`", "ac", authors("ac")),
        Departure("13, 15, 16", "authors' code, `d`", "d", authors("d"), WIDTHS),
        Departure("1", "swapped convex weights, `c`", "c", swapped("uniform")),
        Departure("1", "swapped convex weights, `ac`", "ac", swapped("adaptive")),
        Departure("3", "bins on [1/C, 1], `c`", "c", confidence_domain("uniform"), notions=NOTIONS[:1]),
        Departure("3", "bins on [1/C, 1], `ac`", "ac", confidence_domain("adaptive"), notions=NOTIONS[:1]),
        Departure(
            "3", "density mirrored at 0, not at 1/C", "d", mirrored_at_zero, WIDTHS, notions=NOTIONS[:1]
        ),
        Departure("5", "remainder in the last bin, `a`", "a", remainder_last("one")),
        Departure("5", "remainder in the last bin, `ac`", "ac", remainder_last("convex")),
        Departure("5", "literal floor(N/i) thresholds, `a`", "a", literal_thresholds),
        Departure("7", "right-closed bins, `l` (discrete sets)", "l", right_closed, **ends),
        Departure("7", "bins closed at both ends, `l` (discrete sets)", "l", closed_twice, **ends),
        Departure("-", "`linspace` edges, `l` (discrete sets)", "l", linspace_edges, **ends),
        Departure("13", "class 0's bandwidth for all", "d", first_bandwidth, WIDTHS[2:], notions=NOTIONS[1:]),
        Departure("15, 16", "authors' grid and mirroring", "d", authors_grid, WIDTHS),
        Departure("17", "gaussian, same standard deviation", "d", gaussian, WIDTHS),
        Departure("17", "bandwidth read as half-width", "d", half_width, WIDTHS),
        Departure("18", "Silverman's factor .9, not 1.06", "d", silverman_1986, WIDTHS[2:]),
    ]


# Tables


def short(value: float) -> str:
    """Two digits, no exponent above 1e-4; what is left of rounding reads 0."""
    if value < 1e-12:
        return "0"
    return np.format_float_positional(float(f"{value:.2g}"), trim="-") if value >= 1e-4 else f"{value:.1e}"


def percent(share: float) -> str:
    return f"{short(100 * share) if share > 1e-12 else 0} %"


def markdown(title: str, head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([f"### {title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


def figures(cases: list[tuple[float, float, float]]) -> list[str]:
    """Median, 90 % and maximum of the difference, its largest relative size, and 90 % over the noise."""
    if not cases:
        return ["-"] * 5
    value, noise, other = np.array(cases).T
    difference = np.abs(other - value)
    sizes = (np.median(difference), np.quantile(difference, 0.9), difference.max())
    over_noise = np.quantile(difference / noise, 0.9)
    return [*map(short, sizes), percent(np.max(difference / value)), short(over_noise)]


def differences(title: str, data: list[Problem]) -> str:
    rows = []
    for departure in departures():
        pairs = zip(*(figures(departure.cases(data, notion)) for notion in NOTIONS), strict=True)
        rows.append([departure.number, departure.name, *(" / ".join(pair) for pair in pairs)])
    columns = ["median", "90 %", "max", "max relative", "90 %, in sd"]
    return markdown(title, ["no.", "departure (confidence / class-wise)", *columns], rows)


def printed_error(score: Array, outcome: Array, centres: Array, wrap: bool) -> float:
    """The printed weights between centres; with `wrap` a score on the first centre goes to the last bin."""
    last = len(centres) - 1
    above = np.searchsorted(centres, score)
    upper, lower = np.minimum(above, last), np.maximum(above - 1, 0)
    if wrap:
        upper, lower = (np.where(score == centres[0], last, index) for index in (upper, lower))
    gap = centres[upper] - centres[lower]
    weight = np.divide(centres[upper] - score, gap, out=np.ones(len(score)), where=gap > 0)
    total = np.bincount(upper, weight * (outcome - score), last + 1)
    total += np.bincount(lower, (1 - weight) * (outcome - score), last + 1)
    return float(np.abs(total).sum() / len(score))


def wrapped(problem: Problem, family: str, parameter: str) -> tuple[float, float, float]:
    """The authors' error without and with the wrap-around, and the share of rows that it moves."""
    n_bins, found = problem.n_bins(parameter), []
    for score, outcome in zip(problem.sample.score, problem.sample.outcome, strict=True):
        edges = np.linspace(problem.low, 1, n_bins + 1)
        if family == "ac":
            edges[1:-1] = authors_cuts(score, n_bins)
        centres = (edges[:-1] + edges[1:]) / 2
        both = (printed_error(score, outcome, centres, wrap) for wrap in (False, True))
        found.append((*both, np.mean(score == centres[0])))
    return tuple(np.mean(found, axis=0))


def touched(cases: list[tuple[float, float, float]]) -> list[str]:
    hit = np.array([case for case in cases if case[2] > 0])
    count = f"{len(hit)} of {len(cases)}"
    if not len(hit):
        return [count, "-", "-", "-", "-"]
    without, with_it, share = hit.T
    difference = np.abs(with_it - without)
    sizes = (np.median(difference), difference.max())
    return [count, percent(np.median(share)), *map(short, sizes), percent(np.max(difference / without))]


def saturated(n: int = 500, n_classes: int = 5, share: float = 0.4, wrong: float = 0.2) -> list[Problem]:
    """Scores of which some are exactly one-hot, and wrong that often; the rest is calibrated."""
    rng = np.random.default_rng(5)
    scores = posterior = rng.dirichlet(np.ones(n_classes), n)
    hot, full = np.eye(n_classes)[rng.integers(0, n_classes, n)], rng.random((n, 1)) < share
    scores = np.where(full, hot, scores)
    posterior = np.where(full, (1 - wrong) * hot + wrong / (n_classes - 1) * (1 - hot), posterior)
    return problems(draw(posterior, rng), scores, posterior, discrete=True)


def wrap_around(data: list[Problem]) -> str:
    rows = []
    for name, some in (("discrete sets", data), ("saturated set", saturated())):
        for notion in NOTIONS:
            kept = [problem for problem in some if problem.notion == notion and problem.discrete]
            for family in ("c", "ac"):
                cases = [wrapped(problem, family, bins) for problem in kept for bins in BINS]
                rows.append([name, notion, f"`{family}`", *touched(cases)])
    head = ["data", "notion", "", "cases touched", "median share of rows", "median", "max", "max relative"]
    return markdown("Wrap-around at the first centre", head, rows)


def saw_tooth(repetitions: int = 400, n_bins: int = 30, n_classes: int = 5, shrink: float = 0.3) -> str:
    """Class-wise error of `a` where scores are Dirichlet(1) and the posterior leans to 1/C."""
    rng = np.random.default_rng(30)
    truth = 2 * shrink * (1 - 1 / n_classes) ** n_classes / n_classes
    rows = []
    for n in (20, 39, 51, 67, 88):
        scores = rng.dirichlet(np.ones(n_classes), (repetitions, n))
        posterior = (1 - shrink) * scores + shrink / n_classes
        outcome = draw(posterior, rng)[:, None] == np.arange(n_classes)[:, None]
        score = np.swapaxes(scores, 1, 2)
        theirs = published.errors(score, outcome, notion="classwise", estimator=f"a:{n_bins}")
        correct = Binned("adaptive", n_bins).fit(Sample(score, outcome)).error().mean(axis=-1)
        largest = np.mean(np.sum(score >= authors_cuts(score, n_bins)[..., -1:], axis=-1))
        errors = (np.quantile(np.abs(value - truth), 0.95) for value in (theirs, correct))
        means = (np.mean(value) for value in (theirs, correct))
        rows.append([str(n), f"{largest:.1f}", *(f"{value:.3f}" for value in (*errors, *means))])
    sides = [f"{what}, {whose}" for what in ("95 % error", "mean") for whose in ("theirs", "calibrant")]
    head = ["N", "rows in their last bin", *sides]
    return markdown(f"Saw-tooth of `a` with {n_bins} bins, class-wise, true error {truth:.4f}", head, rows)


def ground_truth(n: int = 2_000_000, n_bins: int = 2000) -> str:
    """What the legacy estimator of the experiment reads where the true error is 0."""
    rng = np.random.default_rng(2000)
    rows = []
    for name, low in (("uniform score of one class", 0.0), ("uniform confidence, C = 2", 0.5)):
        score = low + (1 - low) * rng.random(n)
        reading = calibrant.ece(rng.random(n) < score, score, estimator=f"uniform:{n_bins}")
        expected = sqrt(2 / pi) * pi / 8 * sqrt((1 - low) * n_bins / n)
        rows.append([name, f"{reading:.4f}", f"{expected:.4f}"])
    head = ["scores", "reading", "expected reading"]
    return markdown("The experiment's ground truth for a perfectly calibrated model", head, rows)


def report() -> str:
    golden, made = shipped(), synthetic()
    tables = [
        differences("Difference to calibrant, nine shipped data sets", golden),
        differences("Difference to calibrant, 36 synthetic data sets", made),
        wrap_around(golden + made),
        saw_tooth(),
        ground_truth(),
    ]
    return "\n\n".join(tables)


def insert(page: Path, text: str) -> None:
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{page} must hold the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page instead")
    page = parser.parse_args().write
    if page is None:
        print(report())
    else:
        insert(page, report())


if __name__ == "__main__":
    main()
