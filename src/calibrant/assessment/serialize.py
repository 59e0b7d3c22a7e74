"""Curves, diagrams and estimates as plain numbers, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from calibrant.assessment.parts import Odds
from calibrant.curves.curve import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.inference.result import plain

# Nodes of a stored curve, evenly along the score and along its log odds.
NODES, ENDS = 200, 20.0
_CURVE = ("score", "probability", "point", "low", "high", "density", "n_eff")

Result = TypeVar("Result", ReliabilityCurve, ReliabilityDiagram)


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
