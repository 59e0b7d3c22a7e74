"""The maps by name: how each is fitted to one score, and to the scores of many classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.maps import binary as one
from calibrant.maps.forms import Bounded, Form, Formula, Pair, Table
from calibrant.maps.multiclass import Softmax, fit_matrix, fit_softmax, fit_temperature, fit_vector
from calibrant.score_data.simplex import Simplex


@dataclass(frozen=True)
class Method:
    """A map by name.

    Attributes
    ----------
    summary : str
    one : callable or None
        Fits it to one score; None where it takes many classes. Those that may bend also take `monotone`.
    many : callable or None
        Fits it to whole rows; without it, each class has a map of its own.
    forms : tuple of type
        What a fit to one score can be.
    """

    summary: str
    one: Callable[..., Form] | None = None
    many: Callable[[Simplex], Softmax] | None = None
    forms: tuple[type[Form], ...] = (Formula,)


METHODS: dict[str, Method] = {
    "auto": Method(
        "average by evidence over all ways in which scores go wrong", one.auto, fit_softmax, (Bounded, Table)
    ),
    "identity": Method("the scores as they are", one.identity),
    "temperature": Method("log-odds over one number", one.temperature, fit_temperature),
    "platt": Method("log-odds shifted and stretched, outcomes softened", one.platt),
    "affine": Method("log-odds shifted and stretched", one.affine),
    "beta": Method("beta calibration", one.beta),
    "quadratic": Method("a parabola in the log-odds", one.quadratic),
    "spline": Method("smooth in the log-odds", one.spline, forms=(Table,)),
    "isotonic": Method("increasing frequencies", one.isotonic, forms=(Table,)),
    "isotonic-safe": Method("increasing frequencies, never 0 or 1", one.isotonic_safe, forms=(Table,)),
    "venn-abers": Method(
        "increasing frequencies with a new row of either outcome", one.by_venn_abers, forms=(Pair,)
    ),
    "histogram": Method("frequencies of 15 bins of equal mass", one.histogram, forms=(Table,)),
    "density": Method("the reliability curve of kernel densities", one.density, forms=(Table,)),
    "vector": Method("a shift and a stretch for each class", None, fit_vector),
    "matrix": Method("log probabilities times a structured matrix", None, fit_matrix),
}
