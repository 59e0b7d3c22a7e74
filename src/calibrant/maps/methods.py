"""Calibration methods by name, with the functions that fit them to binary and to multiclass scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.maps import binary as one
from calibrant.maps.forms import Bounded, Form, Formula, Pair, Table
from calibrant.maps.multiclass import Softmax, fit_matrix, fit_softmax, fit_temperature, fit_vector
from calibrant.score_data.simplex import Simplex


@dataclass(frozen=True)
class Method:
    """A calibration method.

    Attributes
    ----------
    summary : str
        Short description.
    one : callable or None
        Function that fits binary scores; None for methods that need more than two classes. The functions of
        `auto` and `spline` also take `monotone`.
    many : callable or None
        Function that fits all classes jointly; without it, multiclass scores are fitted one-vs-rest.
    forms : tuple of type
        Types that a binary fit can return.
    """

    summary: str
    one: Callable[..., Form] | None = None
    many: Callable[[Simplex], Softmax] | None = None
    forms: tuple[type[Form], ...] = (Formula,)


METHODS: dict[str, Method] = {
    "auto": Method("Bayesian average of calibration maps", one.auto, fit_softmax, (Bounded, Table)),
    "identity": Method("unchanged scores", one.identity),
    "temperature": Method("temperature scaling", one.temperature, fit_temperature),
    "sigmoid": Method("Platt scaling of the log-odds, with smoothed targets", one.platt),
    "logistic": Method("logistic regression on the log-odds", one.affine),
    "beta": Method("beta calibration", one.beta),
    "quadratic": Method("logistic regression on the log-odds and their square", one.quadratic),
    "spline": Method("smooth function of the log-odds", one.spline, forms=(Table,)),
    "isotonic": Method("isotonic regression", one.isotonic, forms=(Table,)),
    "isotonic-safe": Method("isotonic regression, never 0 or 1", one.isotonic_safe, forms=(Table,)),
    "venn-abers": Method("inductive Venn-Abers predictor", one.by_venn_abers, forms=(Pair,)),
    "histogram": Method("histogram binning, 15 bins of equal mass", one.histogram, forms=(Table,)),
    "density": Method("calibration curve of kernel densities", one.density, forms=(Table,)),
    "vector": Method("vector scaling", None, fit_vector),
    "matrix": Method("matrix scaling with a structured matrix", None, fit_matrix),
}
#: Other accepted names of methods.
ALIASES = {"platt": "sigmoid", "affine": "logistic"}


def canonical_name(method: str) -> str:
    """Return the name under which a method is stored and printed; unknown names are returned unchanged.

    Parameters
    ----------
    method : str
        Name or alias of a method.

    Examples
    --------
    >>> canonical_name("platt"), canonical_name("beta")
    ('sigmoid', 'beta')
    """
    return ALIASES.get(method, method) if isinstance(method, str) else method
