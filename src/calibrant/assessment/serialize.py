"""Assessments as plain numbers and text, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from functools import partial
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
    readers |= {"curves": partial(_from, ReliabilityCurve), "diagrams": partial(_from, ReliabilityDiagram)}
    for key, read in readers.items():
        fields_of[key] = MappingProxyType({name: read(result) for name, result in values[key].items()})
    rows: dict[str, Any] = {"by_class": Row, "by_group": Row, "scores": Score}
    for key, kind in rows.items():
        fields_of[key] = tuple(kind.from_dict(row) for row in values[key])
    odds = values["odds"]
    diagram = _single(ReliabilityDiagram, odds["diagram"])
    fields_of["odds"] = Odds(_array(odds["edges"]), _array(odds["counts"]), diagram)
    for key in ("balance", "accuracy"):
        fields_of[key] = None if values[key] is None else Balance(**values[key])
    return Assessment(**fields_of)


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


def _from(kind: type[Result], values: Any) -> Result | ByClass[Result]:
    """Return the curve or diagram, or that of each class, that `to_plain` wrote."""
    if isinstance(values, list):
        return ByClass({result["label"]: _single(kind, result) for result in values})
    return _single(kind, values)


def _single(kind: type[Result], values: Mapping[str, Any]) -> Result:
    """Return the curve or diagram that `to_plain` wrote."""
    arguments = {f.name: _array(values[f.name]) for f in fields(kind) if f.name in values}
    edges, counts = values["histogram"]
    arguments |= {"support": tuple(values["support"]), "histogram": (_array(edges), _array(counts))}
    return kind(**arguments)


def _array(value: Any) -> Any:
    """Return a list of numbers as an array, with NaN for None; anything else as it is."""
    if not isinstance(value, list) or (value and isinstance(value[0], list)):
        return value
    return np.array([np.nan if v is None else v for v in value], dtype=np.float64)
