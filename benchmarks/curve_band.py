"""How often the 95 % band of a reliability curve holds the true frequency.

    python benchmarks/curve_band.py [--quick] [--bands corrected] [--write docs/how-to/reliability-curves.md]

Scores are drawn from distributions whose true frequency eta(s) is known; the band is read off by
`curve.at` at the 5, 25, 50, 75 and 95 % quantiles of the scores, or at scores of its own where a gap is
local, scores are few or the prior has shifted. A cell of the study is a family, a sample size and a place;
the band "default" is that of the curve that `calibrant.reliability_curve` draws without being told how, the
others are those of `method="density"`. Prints, for each band, coverage and mean width of every cell, and
at the places of their own the mean of the curve too, then the mean and the worst over cells; `--write` puts
the summary between the two markers of a page instead. Everything is seeded. A full run takes about half an
hour on one core; `--quick` repeats a tenth as often.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta, norm

import calibrant
from calibrant.experiment.families import EXACT
from calibrant.experiment.families import FAMILIES as KNOWN
from calibrant.score_data import Array

SIZES = (100, 500, 2000, 10000)
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
# The bootstrap takes a hundred times as long, and falls short by more than few repetitions can miss.
REPEATS = {"corrected": 400, "default": 400, "bootstrap": 60}
RESAMPLES = 100
BANDS = ("corrected", "bootstrap")
BEGIN, END = "<!-- curve_band:begin -->", "<!-- curve_band:end -->"


@dataclass(frozen=True)
class Family:
    """Quantile function of the scores, true frequency at a score, and scores to look at if not quantiles."""

    name: str
    about: str
    quantile: Callable[[Array], Array]
    frequency: Callable[[Array], Array]
    kind: str = "smooth"
    places: tuple[float, ...] = ()

    @property
    def at(self) -> Array:
        return np.array(self.places) if self.places else self.quantile(QUANTILES)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        score = self.quantile(rng.random(n))
        return score, rng.random(n) < self.frequency(score)


def on_beta(a: float, b: float) -> Callable[[Array], Array]:
    # Drawn by inversion, from a table fine enough at both ends.
    tail = np.geomspace(1e-12, 0.01, 400)
    share = np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, 4000)[1:-1], 1 - tail[::-1], [1.0]])
    place = beta.ppf(share, a, b)
    return lambda u: np.interp(u, share, place)


def logits(score: Array) -> Array:
    return logit(np.clip(score, 1e-300, 1 - 2.0**-53))


def glm(slope: float, shift: float) -> Callable[[Array], Array]:
    return lambda p: expit(shift + slope * logits(p))


def shape(name: str, about: str, bent: Callable[[Array], Array], share: float = 0.5) -> Family:
    """Kaengsepp's recipe: a frequency c drawn evenly, the score pulled from c towards g(c)."""
    c = np.concatenate([np.geomspace(1e-9, 1e-3, 200), np.linspace(1e-3, 1 - 1e-3, 8000)[1:-1]])
    c = np.concatenate([[0.0], c, 1 - np.geomspace(1e-9, 1e-3, 200)[::-1], [1.0]])
    with np.errstate(divide="ignore"):
        score = (1 - share) * c + share * bent(c)
    return Family(name, about, lambda u: np.interp(u, c, score), lambda s: np.interp(s, score, c))


def known(name: str, about: str, kind: str, places: tuple[float, ...]) -> Family:
    """Make one of the families with exact truth, looked at where its gap is and elsewhere."""
    family = KNOWN[name]
    label = "near one" if name == "saturated" else name  # that name is taken
    return Family(label, about, family.quantile, lambda s: family.pairs(s)[1], kind, places)


EVEN, WALLS = on_beta(1, 1), on_beta(0.5, 0.5)
FAMILIES = [
    Family("power", "Beta(1.1, .1), s^2", on_beta(1.1, 0.1), EXACT["power"].curve),
    Family("glm", "Beta(1.12, .11), sigma(.49 logit s - .88)", on_beta(1.1233, 0.1147), glm(0.49, -0.88)),
    Family("flat", "Beta(.5, .5), sigma(.4 logit s + .3)", WALLS, glm(0.4, 0.3)),
    Family("steep", "Beta(.5, .5), sigma(4 logit s + 1)", WALLS, glm(4, 1)),
    Family("shift", "Beta(.5, .5), clip(s + .02)", WALLS, EXACT["shift"].curve),
    shape("square", "Kaengsepp's square", np.square),
    shape("root", "Kaengsepp's square root", np.sqrt),
    shape("beta1", "Kaengsepp's first beta map", EXACT["beta1"].curve),
    shape("beta2", "Kaengsepp's second beta map", EXACT["beta2"].curve),
    shape("stairs", "Kaengsepp's stairs", EXACT["stairs"].curve),
    Family("even", "calibrated, uniform", EVEN, lambda p: p),
    Family("calibrated", "calibrated, Beta(.5, .5)", WALLS, lambda p: p),
    Family("saturated", "calibrated, Beta(.1, .1)", on_beta(0.1, 0.1), lambda p: p),
    Family(
        "network",
        "sharp logits N(3, 2.5^2), sigma(.6 logit s - .2)",
        lambda u: expit(3 + 2.5 * norm.ppf(u)),
        glm(0.6, -0.2),
    ),
    Family("wavy", "Beta(.5, .5), the wavy curve", WALLS, EXACT["wavy"].curve, "wavy"),
]
# None of these places lies next to a jump, where no band can hold.
LOCAL = [
    known("prior-43", "logit s ~ N(-1.8, 2^2), s / (s + 43 (1 - s))", "shifted", (0.1, 0.5, 0.8, 0.9, 0.95)),
    known("prior-5", "logit s ~ N(-1.8, 2^2), s / (s + 5 (1 - s))", "shifted", (0.1, 0.5, 0.8, 0.9, 0.95)),
    known("step", "uniform, s + .15 from .8 on", "local", (0.3, 0.5, 0.7, 0.9, 0.95)),
    known("top", "Beta(2, 1), s - .3 from .975 on", "local", (0.5, 0.8, 0.9, 0.95, 0.99)),
    known("middle", "uniform, s + .2 from .39 to .51", "local", (0.2, 0.3, 0.45, 0.6, 0.8)),
    known("bump", "uniform, s less a bump of .25 at .7", "local", (0.3, 0.5, 0.65, 0.7, 0.9)),
    known("saturated", "Beta(5, .3), .97 from .999 on", "local", (0.8, 0.95, 0.99, 0.9995, 0.9999)),
    known("certain", "1 in six tenths of the rows, there .95", "local", (0.4, 0.6, 0.8, 0.95, 1.0)),
    known("seven", "seven scores, s +- .0575 by turns", "few", (0.1, 0.25, 0.5, 0.75, 0.9)),
    known("twenty", "twenty scores, s +- .05 by turns", "few", (0.025, 0.225, 0.525, 0.775, 0.975)),
]
ALL = [*FAMILIES, *LOCAL]


Found = dict[str, tuple[Array, Array, Array]]
Results = dict[tuple[str, int], Found]


def study(family: Family, n: int, share: float = 1.0, bands: tuple[str, ...] = BANDS) -> Found:
    """Coverage, mean width and mean of the curve for each band at each place."""
    at = family.at
    truth = family.frequency(at)
    found = {}
    for band in bands:
        rng = np.random.default_rng([n, ALL.index(family)])
        hits, width, middle = [], [], []
        for _ in range(max(1, round(share * REPEATS[band]))):
            score, outcome = family.draw(n, rng)
            # The corrected band depends on resamples only in that it holds their median.
            how = {
                "default": {},
                "corrected": {"method": "density", "n_boot": 0, "band": "corrected"},
                "bootstrap": {"method": "density", "n_boot": RESAMPLES, "band": "bootstrap"},
            }[band]
            seed = int(rng.integers(1 << 31))
            point = calibrant.reliability_curve(
                outcome.astype(int), score, rng=seed, labels=(0, 1), **how
            ).at(at)
            # Where no row lies near there is no band, and nothing is claimed.
            low, high = np.nan_to_num(point.low, nan=0.0), np.nan_to_num(point.high, nan=1.0)
            hits.append((low <= truth + 1e-12) & (truth - 1e-12 <= high))
            width.append(high - low)
            middle.append(np.nan_to_num(point.value, nan=0.5))
        found[band] = np.mean(hits, axis=0), np.mean(width, axis=0), np.mean(middle, axis=0)
    return found


def line(*parts: object) -> str:
    return "| " + " | ".join(str(part) for part in parts) + " |"


def cells(results: Results, band: str) -> list[str]:
    marks = [f"{100 * q:g} %" for q in QUANTILES]
    rows = [line("family", "n", *marks), "|" + "---|" * (len(marks) + 2)]
    for (name, n), found in results.items():
        if not by_name(name).places:
            rows.append(line(name, n, *(f"{c:.3f} ({w:.3f})" for c, w, _ in zip(*found[band], strict=True))))
    return rows


def local_cells(results: Results, band: str) -> list[str]:
    """For families looked at in places of their own: coverage, width, mean of the curve and the truth."""
    rows = [line("family", "n", "score", "truth", "mean", "coverage", "width"), "|" + "---|" * 7]
    for (name, n), found in results.items():
        family = by_name(name)
        if family.places:
            columns = zip(family.at, family.frequency(family.at), *found[band], strict=True)
            rows += [
                line(name, n, f"{s:g}", f"{eta:.3f}", f"{m:.3f}", f"{c:.3f}", f"{w:.3f}")
                for s, eta, c, w, m in columns
            ]
    return rows


def by_name(name: str) -> Family:
    return next(family for family in ALL if family.name == name)


def summary(results: Results, bands: tuple[str, ...] = BANDS) -> list[str]:
    """For each family and size: the mean and the worst coverage over the quantiles, and the mean width."""
    present = [family for family in ALL if (family.name, SIZES[0]) in results]
    rows = [
        line("", *(f"{band}, n = {n}" for band in bands for n in SIZES)),
        "|---|" + "---|" * (len(bands) * len(SIZES)),
    ]
    for family in present:
        found = [results[family.name, n][band] for band in bands for n in SIZES]
        rows.append(
            line(
                f"{family.name}: {family.about}",
                *(f"{c.mean():.2f}, {c.min():.2f} ({w.mean():.2f})" for c, w, _ in found),
            )
        )
    rows += ["", line("band", "cells", "mean", "worst", "below .92", "mean width"), "|" + "---|" * 6]
    truth = {family.name: family.frequency(family.at) for family in present}
    kinds = {
        "smooth families": lambda family, eta: (family.kind == "smooth") & (eta >= 0),
        "those with .02 < eta < .98": lambda family, eta: (family.kind == "smooth") & (abs(eta - 0.5) < 0.48),
        "wavy": lambda family, eta: (family.kind == "wavy") & (eta >= 0),
        "shifted priors": lambda family, eta: (family.kind == "shifted") & (eta >= 0),
        "local gaps": lambda family, eta: (family.kind == "local") & (eta >= 0),
        "few scores": lambda family, eta: (family.kind == "few") & (eta >= 0),
    }
    for band in bands:
        for what, belongs in kinds.items():
            found = [
                np.transpose(results[family.name, n][band])[belongs(family, truth[family.name])]
                for family in present
                for n in SIZES
            ]
            c, w, _ = np.concatenate(found).T
            if c.size:
                few = f"{np.mean(c < 0.92):.1%}"
                rows.append(line(band, what, f"{c.mean():.3f}", f"{c.min():.3f}", few, f"{w.mean():.3f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--only", default="", help="families whose name holds this")
    parser.add_argument("--write", type=Path, help="page whose summary to replace")
    parser.add_argument("--bands", nargs="+", choices=tuple(REPEATS), default=BANDS)
    options = parser.parse_args()
    bands = tuple(options.bands)
    share = 0.1 if options.quick else 1.0
    results = {}
    for family in ALL:
        if options.only in family.name:
            for n in SIZES:
                results[family.name, n] = study(family, n, share, bands)
                print(f"{family.name}, n = {n}", file=sys.stderr)
    if options.write:
        page = options.write.read_text()
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        options.write.write_text("\n".join([before + BEGIN, "", *summary(results, bands), "", END + after]))
        return
    for band in bands:
        repeats = round(share * REPEATS[band])
        print(f"\n{band}: coverage (mean width) at quantiles of the scores, {repeats} repetitions\n")
        print("\n".join(cells(results, band)))
        print(f"\n{band}: at places of their own\n")
        print("\n".join(local_cells(results, band)))
    print("\nover the quantiles: mean and worst coverage (mean width)\n")
    print("\n".join(summary(results, bands)))


if __name__ == "__main__":
    main()
