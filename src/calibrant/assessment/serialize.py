"""Assessments as plain numbers and text, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.assessment import where as places
from calibrant.assessment.assessment import Assessment, Balance, Odds, Row
from calibrant.assessment.cure import Cure
from calibrant.assessment.decomposition import Score
from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.decisions import Clinical, Decision
from calibrant.evidence import Array
from calibrant.inference.result import Estimate, plain
from calibrant.inputs import InputError, Record, check_choice
from calibrant.questions.notions import named, pictured

FORMAT = 1
_PLAIN = (
    "notion",
    "warnings",
    "rows",
    "n",
    "classes",
    "asked",
    "level",
    "seed",
    "created",
    "digest",
    "version",
    "name",
    "command",
)
# Nodes of a stored curve, evenly along the score and along its log odds.
NODES, ENDS = 200, 20.0
_BALANCES = ("balance", "accuracy")
_BINS = ("score", "frequency", "low", "high")
_CURVE = ("score", "probability", "point", "low", "high", "density", "n_eff")


def to_dict(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as plain numbers and text; curves at a few hundred scores."""
    values: dict[str, Any] = {"format": FORMAT, "value": assessment.estimate.value}
    values["verdict"] = assessment.verdict
    values |= {key: getattr(assessment, key) for key in _PLAIN}
    values |= {key: list(values[key]) for key in ("classes", "warnings")}
    for key in ("estimates", "rulers"):
        values[key] = {name: result.to_dict() for name, result in getattr(assessment, key).items()}
    for key in ("curves", "diagrams"):
        values[key] = {name: to_plain(result) for name, result in getattr(assessment, key).items()}
    for key in ("by_class", "by_group", "scores"):
        values[key] = [row.to_dict() for row in getattr(assessment, key)]
    values["odds"] = {key: to_plain(getattr(assessment.odds, key)) for key in ("edges", "counts", "diagram")}
    for key in _BALANCES:
        balance = getattr(assessment, key)
        values[key] = None if balance is None else asdict(balance)
    cure = assessment.cure
    values["cure"] = None if cure is None else cure.to_dict() | {"curve": to_plain(cure.curve)}
    values["where"] = None if assessment.where is None else places.to_dict(assessment.where)
    values["clinical"] = None if assessment.clinical is None else assessment.clinical.to_dict()
    values["decision"] = None if assessment.decision is None else assessment.decision.to_dict()
    values["advice"] = assessment.advice
    values["remarks"] = list(assessment.remarks)
    return values


def from_dict(values: Mapping[str, Any]) -> Assessment:
    """Return the assessment that `to_dict` wrote; numbers that no assessment can have are refused."""
    record = Record(values, "assessment")
    if values.get("format") != FORMAT:
        raise ValueError(f"not an assessment of format {FORMAT}, got {values.get('format')!r}")
    about = ("format", "value", "verdict", "advice", *_PLAIN)
    later = ("where", "clinical", "decision", "remarks")
    record.only((*about, *_RESULTS, *_ROWS, "odds", *_BALANCES, "cure"), later)
    if "remarks" in values:
        record.texts("remarks")
    for key in ("verdict", "advice"):
        record.text(key)
    results = {
        key: MappingProxyType({name: read(record.record(key), name) for name in record.record(key).values})
        for key, read in _RESULTS.items()
    }
    notion, estimates = record.text("notion"), results["estimates"]
    classes, asked = record.texts("classes"), record.maybe("asked", record.text)
    if notion not in estimates:
        raise InputError(record.called("estimates"), f"hold {notion!r}", tuple(estimates))
    curved = {name for name in estimates if not named(name).whole}
    shown = pictured(named(notion), n_classes=len(classes)).name
    for key in ("curves", "diagrams"):
        if shown not in results[key] or {*results[key]} != curved:
            raise InputError(
                record.called(key), f"hold {shown!r} and what the estimates hold", tuple(results[key])
            )
    if record.number("value", 0, named(notion).most("l1")) != estimates[notion].value:
        rule = f"be that of the estimate, {estimates[notion].value:g}"
        raise InputError(record.called("value"), rule, values["value"])
    if asked is not None and asked not in classes:
        raise InputError(record.called("asked"), f"be one of {list(classes)}", asked)
    parts: dict[str, Any] = dict(results)
    parts |= {key: tuple(read(one) for one in record.records(key)) for key, read in _ROWS.items()}
    parts |= {key: record.maybe(key, lambda key: Balance.of_record(record.record(key))) for key in _BALANCES}
    parts |= {key: record.text(key) for key in ("created", "digest", "version")}
    parts |= {key: record.maybe(key, record.text) for key in ("name", "command")}
    parts["cure"] = record.maybe("cure", lambda key: _cure(record.record(key)))
    parts["where"] = record.maybe("where", lambda key: places.of_record(record.record(key), len(classes)))
    if parts["where"] is not None and not named(notion).whole:
        raise InputError(record.called("where"), f"be missing where the notion is {notion}")
    parts["clinical"] = record.maybe("clinical", lambda key: Clinical.of_record(record.record(key)))
    if parts["clinical"] is not None and not any(named(name).one_class for name in estimates):
        raise InputError(record.called("clinical"), "be missing where no notion is about one class")
    parts["decision"] = record.maybe("decision", lambda key: Decision.of_record(record.record(key)))
    return Assessment(
        notion=notion,
        odds=_odds(record.record("odds")),
        warnings=record.texts("warnings"),
        rows=record.whole("rows", 1),
        n=record.size("n"),
        classes=classes,
        asked=asked,
        level=record.level(),
        seed=record.whole("seed"),
        **parts,
    )


def _estimate(record: Record, notion: str) -> Estimate:
    """Return a stored estimate, whose notion is what it is called by."""
    found = _ruler(record, notion)
    if found.notion != notion:
        raise InputError(f"{record.called(notion)}.notion", f"be {notion!r}", found.notion)
    return found


def _ruler(record: Record, estimator: str) -> Estimate:
    """Return a stored estimate by any estimator."""
    return Estimate.of_record(record.record(estimator))


def _curves(record: Record, notion: str) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Return a stored curve, or that of each class."""
    if isinstance(record.values[notion], list):
        return ByClass({one.label(): _curve(one) for one in record.records(notion)})
    return _curve(record.record(notion))


def _diagrams(record: Record, notion: str) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """Return a stored diagram, or that of each class."""
    if isinstance(record.values[notion], list):
        return ByClass({one.label(): _diagram(one) for one in record.records(notion)})
    return _diagram(record.record(notion))


def _cure(record: Record) -> Cure:
    """Return a stored cure."""
    return Cure.of_record(record, record.maybe("curve", lambda key: _curve(record.record(key))))


def _curve(record: Record) -> ReliabilityCurve:
    """Return a stored curve."""
    record.only(f.name for f in fields(ReliabilityCurve))
    score = record.array("score", 0, 1)
    record.ascending("score")
    record.lengths(score.size, *_CURVE)
    arrays: dict[str, Any] = {"score": score}
    for key in ("probability", "point", "low", "high"):
        arrays[key] = record.maybe(key, lambda key: record.array(key, 0, 1, gaps=True))
    for key in ("density", "n_eff"):
        arrays[key] = record.array(key, 0, gaps=True)
    if (arrays["low"] is None) != (arrays["high"] is None):
        raise InputError(record.called("low"), "come with high")
    if arrays["low"] is not None:
        record.ordered("low", "high")
    return ReliabilityCurve(
        **arrays,
        **_common(record),
        bandwidth=record.number("bandwidth", 0),
        floored=record.flag("floored"),
        kernel=record.text("kernel"),
        n_boot=record.whole("n_boot"),
        band=record.maybe("band", record.text),
        method=_one_of(record, "method", ("bayes", "density")),
        discrete=record.flag("discrete"),
        levels=record.array("levels", 0, 1),
    )


def _diagram(record: Record) -> ReliabilityDiagram:
    """Return a stored diagram."""
    record.only(f.name for f in fields(ReliabilityDiagram))
    edges = record.array("edges", 0, 1)
    record.ascending("edges")
    record.lengths(edges.size - 1, *_BINS, "count")
    arrays: dict[str, Any] = {key: record.array(key, 0, 1, gaps=True) for key in _BINS}
    record.ordered("low", "high")
    return ReliabilityDiagram(
        edges=edges,
        **arrays,
        **_common(record),
        count=record.array("count", 0),
        estimator=record.text("estimator"),
        interval=record.text("interval"),
    )


def _common(record: Record) -> dict[str, Any]:
    """Return the fields that curves and diagrams share."""
    low, high = Record({"support": record.pair("support")}, record.name).array("support", 0, 1).tolist()
    if not low < high:
        raise InputError(record.called("support"), "ascend", [low, high])
    edges, counts = record.pair("histogram")
    histogram = Record({"edges": edges, "counts": counts}, record.called("histogram"))
    return {
        "support": (low, high),
        "histogram": _histogram(histogram),
        "error": record.share("error"),
        "n": record.size("n"),
        "level": record.level(),
        "notion": record.text("notion"),
        "label": record.label(),
    }


def _histogram(record: Record) -> tuple[Array, Array]:
    """Return edges and counts."""
    edges, counts = record.array("edges", 0, 1), record.array("counts", 0)
    record.ascending("edges")
    record.lengths(edges.size - 1, "counts")
    return edges, counts


def _odds(record: Record) -> Odds:
    """Return what is shown on an axis of log odds."""
    record.only(("edges", "counts", "diagram"))
    return Odds(*_histogram(record), _diagram(record.record("diagram")))


def _one_of(record: Record, key: str, choices: Sequence[str]) -> Any:
    """Return one of several words."""
    with record.naming(key):
        check_choice(key, record.text(key), choices)
    return record.text(key)


def thinned(curve: ReliabilityCurve) -> ReliabilityCurve:
    """Return the curve at a few hundred of its nodes; one that has no more comes back as it is."""
    by_odds = 1 / (1 + np.exp(-np.linspace(-ENDS, ENDS, NODES)))
    wanted = np.concatenate([np.linspace(0, 1, NODES + 1), by_odds])
    if curve.score.size <= wanted.size:
        return curve
    kept = np.unique(np.abs(curve.score[:, None] - wanted).argmin(axis=0))
    kept = np.union1d(kept, [0, curve.score.size - 1])
    # Where the curve begins and ends, and a node on either side.
    turns = np.flatnonzero(np.diff(np.isnan(curve.probability)))
    kept = np.union1d(kept, np.concatenate([turns, turns + 1])).astype(np.intp)
    arrays: dict[str, Any] = {name: getattr(curve, name) for name in _CURVE}
    fewer: dict[str, Any] = {k: None if v is None else v[kept] for k, v in arrays.items()}
    return replace(curve, **fewer)


def to_plain(value: Any) -> Any:
    """Return arrays as lists, NaN as None, results as mappings of their fields, those of classes as lists."""
    if isinstance(value, ByClass):
        return [to_plain(result) for result in value.values()]
    if isinstance(value, ReliabilityCurve | ReliabilityDiagram):
        value = thinned(value) if isinstance(value, ReliabilityCurve) else value
        values = {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
        return values | {"label": plain(value.label)}
    if isinstance(value, np.ndarray):
        return [None if v != v else v for v in value.tolist()]
    if isinstance(value, tuple):
        return [to_plain(entry) for entry in value]
    return value


_RESULTS: dict[str, Callable[[Record, str], Any]] = {
    "estimates": _estimate,
    "rulers": _ruler,
    "curves": _curves,
    "diagrams": _diagrams,
}
_ROWS: dict[str, Callable[[Record], Any]] = {
    "by_class": Row.of_record,
    "by_group": Row.of_record,
    "scores": Score.of_record,
}
