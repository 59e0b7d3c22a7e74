"""Calibration methods by name, with the functions that fit them to binary and to multiclass scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.maps import binary
from calibrant.maps.forms import Bounded, Form, Formula, LookupTable, VennAbersPair
from calibrant.maps.multiclass import SoftmaxMap, fit_matrix, fit_softmax, fit_temperature, fit_vector
from calibrant.score_data.simplex import Simplex


@dataclass(frozen=True)
class Method:
    """A calibration method.

    Attributes
    ----------
    summary : str
        Short description.
    fit_binary : callable or None
        Function that fits binary scores; None for methods that need more than two classes. The functions of
        `auto` and `spline` also take `monotone`.
    fit_multiclass : callable or None
        Function that fits all classes jointly; without it, multiclass scores are fitted one-vs-rest.
    forms : tuple of type
        Types that a binary fit can return.
    """

    summary: str
    fit_binary: Callable[..., Form] | None = None
    fit_multiclass: Callable[[Simplex], SoftmaxMap] | None = None
    forms: tuple[type[Form], ...] = (Formula,)


METHODS: dict[str, Method] = {
    "auto": Method("Bayesian average of calibration maps", binary.auto, fit_softmax, (Bounded, LookupTable)),
    "identity": Method("unchanged scores", binary.identity),
    "intercept": Method("shift of the log-odds (intercept-only update)", binary.intercept),
    "temperature": Method("temperature scaling", binary.temperature, fit_temperature),
    "sigmoid": Method("Platt scaling of the log-odds, with smoothed targets", binary.platt),
    "logistic": Method("logistic regression on the log-odds", binary.affine),
    "beta": Method("beta calibration", binary.beta),
    "quadratic": Method("logistic regression on the log-odds and their square", binary.quadratic),
    "spline": Method("smooth function of the log-odds", binary.spline, forms=(LookupTable,)),
    "isotonic": Method("isotonic regression", binary.isotonic, forms=(LookupTable,)),
    "isotonic-safe": Method("isotonic regression, never 0 or 1", binary.isotonic_safe, forms=(LookupTable,)),
    "venn-abers": Method("inductive Venn-Abers predictor", binary.by_venn_abers, forms=(VennAbersPair,)),
    "histogram": Method("histogram binning, 15 bins of equal mass", binary.histogram, forms=(LookupTable,)),
    "density": Method("calibration curve of kernel densities", binary.density, forms=(LookupTable,)),
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
