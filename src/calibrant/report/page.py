"""From an assessment to one self-contained page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from calibrant.assessment import Assessment
from calibrant.assessment import text as wording
from calibrant.assessment.assessment import SubgroupResult
from calibrant.assessment.probability_transfer import pairs, predicted
from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.inference.audit import SegmentAudit
from calibrant.inference.comparison import INDEPENDENT, Comparison
from calibrant.inference.result import expected_if_calibrated, p_text, remarks
from calibrant.inputs.house_style import NO_ERROR, TOO_FEW
from calibrant.inputs.printed import unbroken
from calibrant.inputs.wording import (
    about,
    are_dates,
    count,
    counted,
    number,
    percent,
    plural,
    points,
    points_with_ends,
    shares,
    short,
    size_name,
    with_ends,
)
from calibrant.report import chart
from calibrant.settings import REPORT
from calibrant.tasks import get_notion

# Pairs of classes that are shown at once, and classes, the worst first, whose curves are drawn.
PAIRS, CLASS_CURVES = 10, 12
# Segments in the table of an audit.
DRAWN = 200
# Quantiles of the scores that are looked up.
QUANTILES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# Log-odds of these scores at most, which is a score of 0.999999.
MAX_LOG_ODDS = 13.8
# Levels at most that the table of scores adds to these.
MOST_LEVELS = 6
ESTIMATOR_NAMES = {
    "auto": "default (Bayes)",
    "uniform": "equal-width bins",
    "adaptive": "equal-mass bins",
    "uniform-convex": "equal width, shared",
    "adaptive-convex": "equal mass, shared",
    "density": "kernel density",
}


def page(assessment: Assessment) -> str:
    """Return the report as the text of one page."""
    picture, notion = picture_of(assessment), get_notion(assessment.notion)
    by_class = (curves for curves in assessment.curves.values() if isinstance(curves, ByClass))
    rejected = wording.is_rejected(assessment.estimates[assessment.curve_notion], assessment.level)
    example = wording.example_score(picture.curve, rejected)
    transfer, level = assessment.probability_transfer, assessment.level
    grouped = ("group", _in_time_order(assessment.by_group)), ("class", assessment.by_class)
    named = [(ESTIMATOR_NAMES.get(name, name), each, False) for name, each in assessment.by_estimator.items()]
    return _rendered(
        "page.html.j2",
        a=assessment, v=assessment.verdict, e=assessment.estimate, notion=notion, reading=notion.reading,
        shown=get_notion(assessment.curve_notion).reading, outcome=wording.outcome(assessment),
        pairs=[] if transfer is None else pairs(transfer, level), pairs_first=PAIRS,
        predicted=[] if transfer is None else predicted(transfer, level),
        answer=_answer_curves(assessment, picture.curve),
        script=_text_of("script.js"), wording=wording,
        costs=[] if assessment.decision is None else assessment.decision.table,
        picture=picture, data=_embedded(picture, example), size=_size(picture.curve), no_error=NO_ERROR,
        looked_up=looked_up(picture, rejected, example),
        by_estimator=remarks(named), top=max(estimate.high for _, estimate, _ in named),
        tables=[(kind, r, _gap_limit(r), max(row.estimate.high for row in r)) for kind, r in grouped if r],
        curves=next(by_class, None), class_curves=CLASS_CURVES,
    )  # fmt: skip


def segments_page(audit: SegmentAudit) -> str:
    """Return an audit of segments as the text of one page."""
    limit = max(max(abs(each.gap.low), abs(each.gap.high)) for each in audit.segments[:DRAWN])
    reading = get_notion(audit.notion).reading
    return _rendered("segments.html.j2", a=audit, reading=reading, limit=limit, most=DRAWN)


def fragment(assessment: Assessment) -> str:
    """Return a piece for notebooks: the verdict, the picture and the estimates, without script or style."""
    picture = picture_of(assessment)
    drawn = picture.svg(f"calibrant-{assessment.digest[:12]}", paper=True)
    return _rendered("fragment.html.j2", a=assessment, v=assessment.verdict, picture=drawn)


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison: the differences, the errors and the cautions."""
    baseline, differences = comparison.estimates[comparison.baseline], comparison.differences.values()
    accuracies: dict[str, float] = {}
    for each in differences:
        if each.accuracy is not None:
            accuracies |= {each.model: each.accuracy.model_accuracy}
            accuracies |= {each.baseline: each.accuracy.baseline_accuracy}
    return _rendered(
        "comparison.html.j2",
        c=comparison, lines=[each.sentence for each in differences], cautions=comparison.notes,
        notion=about(baseline.notion, baseline.label), estimator=baseline.estimator, level=baseline.level,
        accuracies=accuracies,
        whole=all(size_name(estimate.n) == "rows" for estimate in comparison.estimates.values()),
        independent=INDEPENDENT, limit=max(max(abs(each.low), abs(each.high)) for each in differences),
        top=max(estimate.high for estimate in comparison.estimates.values()),
    )  # fmt: skip


def _rendered(template: str, script: str = "", **values: Any) -> str:
    """Return a page with the style, and a policy that allows this and the script, and nothing else."""
    style, scripts = _text_of("style.css"), f"script-src '{_hash(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"
    values |= {"style": Markup(style), "script": Markup(script), "policy": policy}
    text = _templates().get_template(template).render(**values)
    # Halves of characters, as names of files that are not UTF-8 hold, are shown by their numbers.
    return text.encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=1)
def _templates() -> Environment:
    """Return what makes pages; a template is compiled once for all of them."""
    environment = Environment(
        loader=PackageLoader("calibrant.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: unbroken(value) if type(value) is str else value,
    )
    environment.globals |= {
        "chart": chart,
        "points": points,
        "points_with_ends": points_with_ends,
        "expected_if_calibrated": expected_if_calibrated,
        "with_ends": with_ends,
    }
    environment.filters |= {
        "points": points,
        "points_like": lambda share, text: f"{100 * share:.{len(text.partition('.')[2])}f}",
        "points_with_ends": lambda estimate: points_with_ends(estimate.value, estimate.low, estimate.high),
        "with_ends": lambda estimate: with_ends(estimate.value, estimate.low, estimate.high),
        "count": count,
        "counted": counted,
        "percent": percent,
        "plural": plural,
        "size_name": size_name,
        "short": short,
        "p": lambda estimate: p_text(estimate, "≤"),
        "row_verdict": row_verdict,
        "minus": lambda text: text.replace("-", "−"),
        "number": number,
        "score": _score,
        "title_of": lambda notion: get_notion(notion).reading.title,
        "estimator_name": lambda name: ESTIMATOR_NAMES.get(name, name),
    }
    return environment


def _score(score: float) -> str:
    """Return a score without exponent, with at least two decimals.

    >>> [_score(s) for s in (0.5, 0.004, 4e-05)]
    ['0.50', '0.004', '0.00004']
    """
    text = np.format_float_positional(float(wording.score_text(score)))
    return text if len(text) > 4 else f"{score:.2f}"


def picture_of(assessment: Assessment) -> chart.Picture:
    """Return the headline's picture; for the class-wise notion that of the worst class."""
    curve, diagram, about = assessment.curve, assessment.diagram, assessment.pos_label
    if isinstance(curve, ByClass) or isinstance(diagram, ByClass):
        worst = assessment.by_class[0]
        curve, diagram = curve[worst.estimate.label], diagram[worst.estimate.label]  # type: ignore[index]
        about = worst.name
    assert isinstance(curve, ReliabilityCurve)
    assert isinstance(diagram, ReliabilityDiagram)
    reading = get_notion(curve.notion).reading
    names, event = (reading.score, reading.frequency), reading.frequency.capitalize()
    title = f"{event} against {reading.score}"
    if not reading.event:
        names = (f"{reading.score} of {short(wording.called(about), 30)}", reading.frequency)
        title = f"{event} of {wording.called(about)} against its {reading.score}"
    band = percent(assessment.level).replace("%", "percent")
    shown = f"Points with their {band} bars show" if curve.discrete else f"A line with its {band} band shows"
    described = (
        f"{shown} what each score means; "
        f"points with bars are {np.count_nonzero(diagram.count > 0)} bins; "
        "the dashed diagonal is perfect calibration; underneath, how many rows have each score."
    )
    return chart.Picture(curve, diagram, assessment.log_odds, title, described, names)


def row_verdict(row: SubgroupResult, assessment: Assessment, what: str) -> str:
    """Return what is known of a class or a group: its side, that it looks right, or neither."""
    tolerance, n = assessment.tolerance, row.estimate.n
    if what == "class":
        tolerance = min(
            tolerance, REPORT.tolerance_per_rate * max(min(row.observed, n - row.observed), 1.0) / n
        )
    if not row.off(assessment.level):
        return NO_ERROR if row.estimate.high <= tolerance else TOO_FEW
    return wording.gap_side(row) or "off"


def _answer_curves(assessment: Assessment, curve: ReliabilityCurve) -> dict[str, ReliabilityCurve]:
    """Return the curves beside the verdict: those of the groups that decided, or that of all rows."""
    named = assessment.verdict.groups
    rows = (row for row in assessment.by_group if row.name in named)
    return {short(row.name, 18): row.curve for row in rows if row.curve is not None} or {"": curve}


def _in_time_order(rows: Sequence[SubgroupResult]) -> Sequence[SubgroupResult]:
    """Return groups by time if all their names are dates."""
    return sorted(rows, key=lambda row: row.name) if are_dates(row.name for row in rows) else rows


def _gap_limit(rows: Sequence[SubgroupResult]) -> float:
    """Return the largest gap that the intervals of a table hold."""
    gaps = (row.gap for row in rows if row.gap is not None)
    return max((max(abs(gap.low), abs(gap.high), gap.expected) for gap in gaps), default=0.0)


def quantiles(picture: chart.Picture) -> set[float]:
    """Return quantiles of the scores, rounded to two decimals, or further where that would give 0 or 1."""
    edges, counts = picture.odds.edges, picture.odds.counts
    with np.errstate(divide="ignore"):
        at = np.clip(np.log(edges) - np.log1p(-edges), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    logits = np.interp(QUANTILES, np.concatenate([[0.0], np.cumsum(counts) / counts.sum()]), at)
    scores = 1 / (1 + np.exp(-logits))
    return {round(s, max(2, -int(np.floor(np.log10(min(s, 1 - s)))))) for s in scores.tolist()}


def looked_up(picture: chart.Picture, sure: bool, example: float | None = None) -> list[dict[str, Any]]:
    """Return what scores mean: all of few, or else quantiles, the example and those that many rows share."""
    curve = picture.curve
    # Of many levels, as a forest has, the table needs only the ends.
    shared = (
        curve.common_scores
        if curve.common_scores.size <= MOST_LEVELS
        else curve.common_scores[np.isin(curve.common_scores, (0, 1))]
    )
    named = () if example is None else (example,)
    scores = (
        curve.score.tolist() if curve.discrete else sorted({*quantiles(picture), *shared.tolist(), *named})
    )
    rows: list[dict[str, Any]] = []
    for score in scores:
        at = curve.at(score)
        if not (np.isfinite(at.value) and np.isfinite(at.low)):
            rows.append({"score": score, "known": False, "example": False})
            continue
        word = "too high" if at.high < score else "too low" if at.low > score else NO_ERROR
        word = word if sure or word == NO_ERROR else "unclear"
        wide = word == NO_ERROR and at.high - at.low > REPORT.wide_interval
        few = at.n_eff < REPORT.assessed_rows or wide
        rows.append({
            "score": score, "known": True, "n": float(at.n_eff), "example": score == example,
            "shares": shares(*(float(each) for each in (at.value, at.low, at.high))),
            "word": TOO_FEW if few else word, "look": "none" if few else word.replace(" ", "-"),
        })  # fmt: skip
    return rows


def _size(curve: ReliabilityCurve) -> str:
    """Return what the numbers behind the scores of a curve are called."""
    return "rows" if curve.discrete and size_name(curve.n_eff.sum()) == "rows" else "rows (effective)"


def _embedded(picture: chart.Picture, example: float | None) -> Markup:
    """Return the curve for the script, as JSON that cannot end its element."""
    curve = picture.curve._thinned()

    def rounded(values: Any) -> Any:
        return None if values is None else [None if v != v else float(f"{v:.4g}") for v in values.tolist()]

    values = {
        "score": curve.score.tolist(), "means": rounded(curve.value), "low": rounded(curve.low),
        "high": rounded(curve.high), "n": [None if n != n else round(n) for n in curve.n_eff.tolist()],
        "size": _size(curve), "discrete": curve.discrete, "least": REPORT.assessed_rows,
        "example": example, "ends": picture.ends,
    }  # fmt: skip
    return htmlsafe_json_dumps(values, separators=(",", ":"), allow_nan=False)


def _text_of(name: str) -> str:
    return (files("calibrant.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
