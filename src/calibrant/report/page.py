"""From an assessment to one self-contained page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calibrant.assessment import Assessment, Row
from calibrant.assessment import text as wording
from calibrant.assessment.serialize import thinned, to_plain
from calibrant.assessment.text import count, points, short
from calibrant.atomic import write_whole
from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.inference import Estimate
from calibrant.questions import named
from calibrant.report import chart

# Rows of a table that are shown at once, and classes that have a small picture.
FIRST, PICTURES = 20, 8
LOOKED_UP = {
    "class": (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "confidence": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99),
}
RULERS = {
    "auto": "default (Bayes)",
    "uniform": "equal-width bins",
    "adaptive": "equal-mass bins",
    "uniform-convex": "equal width, shared",
    "adaptive-convex": "equal mass, shared",
    "density": "kernel density",
}


class _Titles:
    """Titles of notions, by name."""

    def __getitem__(self, name: str) -> str:
        return named(name).reading.title


def page(found: Assessment) -> str:
    """The report."""
    folder = files("calibrant.report")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    picture = picture_of(found)
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = Environment(
        loader=PackageLoader("calibrant.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"points": points, "count": count, "short": short, "p": p_value, "share": share}
    top = max([found.estimate.high, *(one.high for one in found.rulers.values())])
    return environment.get_template("page.html.j2").render(
        a=found,
        e=found.estimate,
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        sentences=wording.summary(found)[1:],
        picture=picture,
        even=picture.svg("even", odds=False),
        odds=picture.svg("odds", odds=True),
        data=_embedded(picture),
        looked_up=looked_up(picture, wording.sure(found.estimate, found.level)),
        said="turns out right" if picture.curve.notion == "confidence" else "comes true",
        rulers=[
            (RULERS.get(name, name), one, _bar(one, top, strong=name == "auto"))
            for name, one in found.rulers.items()
        ],
        titles=_Titles(),
        others={k: v for k, v in found.estimates.items() if k != found.notion},
        classes=_table(found.by_class),
        groups=_table(found.by_group),
        small=_small(found),
        first=FIRST,
    )


def fragment(found: Assessment) -> str:
    """A piece for notebooks: the verdict, the picture and the estimates, without script or style."""
    picture = picture_of(found)
    environment = Environment(loader=PackageLoader("calibrant.report", "."), autoescape=True)
    environment.filters |= {"points": points, "count": count, "p": p_value}
    return environment.get_template("fragment.html.j2").render(
        a=found,
        titles=_Titles(),
        picture=picture.svg(f"calibrant-{found.digest[:12]}", odds=picture.crowded, paper=True),
    )


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_whole(path, [text.encode()])


def picture_of(found: Assessment) -> chart.Picture:
    """The headline's picture; for the class-wise notion that of the worst class."""
    curve, diagram, about = found.curve, found.diagram, found.asked
    if isinstance(curve, ByClass) or isinstance(diagram, ByClass):
        worst = found.by_class[0]
        curve, diagram = curve[worst.estimate.label], diagram[worst.estimate.label]  # type: ignore[index]
        about = worst.name
    assert isinstance(curve, ReliabilityCurve)
    assert isinstance(diagram, ReliabilityDiagram)
    if curve.notion == "confidence":
        names, title = ("confidence", "accuracy"), "Accuracy against confidence"
    else:
        names = (f"score of {short(wording.called(about), 30)}", "frequency")
        title = f"Frequency of {wording.called(about)} against its score"
    described = (
        f"A line with its {100 * found.level:g} percent band shows what each score means; points with bars "
        f"are {np.count_nonzero(diagram.count > 0)} bins; the dashed diagonal is perfect calibration; "
        f"underneath, how many rows have each score."
    )
    return chart.Picture(curve, diagram, found.odds, title, described, names)


def looked_up(picture: chart.Picture, sure: bool) -> list[dict[str, Any]]:
    """What round scores mean, where there are data."""
    curve, ends = picture.curve, (0.999, 0.9999)
    scores = LOOKED_UP[curve.notion if curve.notion == "confidence" else "class"]
    if picture.crowded:
        low = () if curve.notion == "confidence" else tuple(round(1 - s, 4) for s in reversed(ends))
        scores = (*low, *scores, *ends)
    rows: list[dict[str, Any]] = []
    for score in scores:
        at = curve.at(score)
        if not (np.isfinite(at.probability) and np.isfinite(at.low)):
            rows.append({"score": score, "known": False})
            continue
        word = "too high" if at.high < score else "too low" if at.low > score else "in line"
        word = word if sure or word == "in line" else "unclear"
        rows.append(
            {
                "score": score,
                "known": True,
                "means": float(at.probability),
                "low": float(at.low),
                "high": float(at.high),
                "n": float(at.n_eff),
                "word": word,
            }
        )
    return rows


def _bar(one: Estimate, top: float, *, strong: bool = False) -> Markup:
    return chart.bar(one.value, one.low, one.high, one.null.mean, top, strong=strong)


def _table(rows: Sequence[Row]) -> list[tuple[Row, Markup]]:
    top = max((row.estimate.high for row in rows), default=1.0)
    return [(row, _bar(row.estimate, top)) for row in rows]


def _small(found: Assessment) -> list[tuple[str, Markup]]:
    curves = found.curves.get("classwise")
    if not isinstance(curves, ByClass):
        return []
    return [
        (row.name, chart.small(curves[row.estimate.label], short(row.name), f"small-{k}"))
        for k, row in enumerate(found.by_class[:PICTURES])
    ]


def _embedded(picture: chart.Picture) -> Markup:
    """The curve for the script, as JSON that cannot end its element."""
    curve = thinned(picture.curve)

    def rounded(values: Any) -> Any:
        return None if values is None else [None if v != v else round(v, 5) for v in values.tolist()]

    values = {
        "score": to_plain(curve.score),
        "means": rounded(curve.probability),
        "low": rounded(curve.low),
        "high": rounded(curve.high),
        "rows": rounded(np.rint(curve.n_eff)),
        "odds": [*picture.ends, *picture.heights],
        "frame": [chart.LEFT, chart.TOP, chart.SIDE],
    }
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def p_value(p: float) -> str:
    """A p-value in words."""
    return "≤ 0.001" if p <= 0.001 else f"{p:.2g}"


def share(value: float, digits: int = 3) -> str:
    """A share with a few digits; infinity in words."""
    return "infinite" if value == np.inf else f"{value:.{digits}f}"
