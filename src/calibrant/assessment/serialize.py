"""Assessments as plain numbers and text, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from calibrant.assessment.assessment import Assessment, Balance, Odds, Row
from calibrant.assessment.decomposition import Score
from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.inference.result import Estimate, plain

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
_CURVE = ("score", "probability", "point", "low", "high", "density", "n_eff")

Result = TypeVar("Result", ReliabilityCurve, ReliabilityDiagram)


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
    for key in ("balance", "accuracy"):
        balance = getattr(assessment, key)
        values[key] = None if balance is None else asdict(balance)
    return values


def from_dict(values: Mapping[str, Any]) -> Assessment:
    """Return the assessment that `to_dict` wrote."""
    if values.get("format") != FORMAT:
        raise ValueError(f"not an assessment of format {FORMAT}, got {values.get('format')!r}")
    fields_of: dict[str, Any] = {key: values[key] for key in _PLAIN}
    fields_of |= {key: tuple(values[key]) for key in ("classes", "warnings")}
    readers: dict[str, Any] = {"estimates": Estimate.from_dict, "rulers": Estimate.from_dict}
    readers |= {"curves": curve_from, "diagrams": diagram_from}
    for key, read in readers.items():
        fields_of[key] = MappingProxyType({name: read(result) for name, result in values[key].items()})
    rows: dict[str, Any] = {"by_class": Row, "by_group": Row, "scores": Score}
    for key, kind in rows.items():
        fields_of[key] = tuple(kind.from_dict(row) for row in values[key])
    fields_of["odds"] = odds_from(values["odds"])
    for key in ("balance", "accuracy"):
        fields_of[key] = None if values[key] is None else Balance(**values[key])
    return Assessment(**fields_of)


def thinned(curve: ReliabilityCurve) -> ReliabilityCurve:
    """The curve at a few hundred of its nodes; one that has no more comes back as it is."""
    place = np.concatenate([np.linspace(0, 1, NODES + 1), 1 / (1 + np.exp(-np.linspace(-ENDS, ENDS, NODES)))])
    if curve.score.size <= place.size:
        return curve
    kept = np.unique(np.abs(curve.score[:, None] - place).argmin(axis=0))
    kept = np.union1d(kept, [0, curve.score.size - 1])
    # Where the curve begins and ends, and a node on either side.
    turns = np.flatnonzero(np.diff(np.isnan(curve.probability)))
    kept = np.union1d(kept, np.concatenate([turns, turns + 1])).astype(np.intp)
    parts: dict[str, Any] = {name: getattr(curve, name) for name in _CURVE}
    some: dict[str, Any] = {k: None if v is None else v[kept] for k, v in parts.items()}
    return replace(curve, **some)


def to_plain(value: Any) -> Any:
    """Arrays as lists, NaN as None, results as mappings of their fields, those of classes as lists."""
    if isinstance(value, ByClass):
        return [to_plain(one) for one in value.values()]
    if isinstance(value, ReliabilityCurve | ReliabilityDiagram):
        value = thinned(value) if isinstance(value, ReliabilityCurve) else value
        found = {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
        return found | {"label": plain(value.label)}
    if isinstance(value, np.ndarray):
        return [None if v != v else v for v in value.tolist()]
    if isinstance(value, tuple):
        return [to_plain(one) for one in value]
    return value


def curve_from(values: Any) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """The curve, or that of each class, that `to_plain` wrote."""
    return _from(ReliabilityCurve, values)


def diagram_from(values: Any) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """The diagram, or that of each class, that `to_plain` wrote."""
    return _from(ReliabilityDiagram, values)


def odds_from(values: Mapping[str, Any]) -> Odds:
    """What was written of `Odds`."""
    return Odds(
        _array(values["edges"]), _array(values["counts"]), _one(ReliabilityDiagram, values["diagram"])
    )


def _from(kind: type[Result], values: Any) -> Result | ByClass[Result]:
    if isinstance(values, list):
        return ByClass({one["label"]: _one(kind, one) for one in values})
    return _one(kind, values)


def _one(kind: type[Result], values: Mapping[str, Any]) -> Result:
    found = {f.name: _array(values[f.name]) for f in fields(kind)}
    edges, counts = values["histogram"]
    found |= {"support": tuple(values["support"]), "histogram": (_array(edges), _array(counts))}
    return kind(**found)


def _array(value: Any) -> Any:
    if not isinstance(value, list) or (value and isinstance(value[0], list)):
        return value
    return np.array([np.nan if v is None else v for v in value], dtype=np.float64)
