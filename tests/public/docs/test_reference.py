"""Every public name is in the reference, with its parameters, related names and an example that runs."""

import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import calibrant

pytestmark = pytest.mark.full

API = (Path(__file__).parents[3] / "docs" / "reference" / "api.rst").read_text(encoding="utf-8")
MODULES = ("calibrant", "calibrant.plot", "calibrant.sklearn", "calibrant.published", "calibrant.experiment")
MODULES += ("calibrant.torch",) if find_spec("torch") else ()
# Methods for authors of estimators, which CONTRIBUTING.md describes and the reference leaves out.
PROTOCOL = {
    "chosen_bandwidth",
    "fit_on_grid",
    "fit_posterior",
    "fit_shared_bandwidth",
    "n_bins_at",
    "native_interval",
    "of_residuals",
    "parse",
    "smooth",
}


def public():
    for module in MODULES:
        space = importlib.import_module(module)
        for name in space.__all__:
            value = getattr(space, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield pytest.param(module, name, value, id=f"{module}.{name}")


def section(text, title):
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n[A-Z][\w ]*\n-+\n|\Z)", text, flags=re.M | re.S)
    return found[1] if found else ""


def documented(text):
    """Names in the sections of parameters and attributes."""
    lines = re.findall(
        r"^\S.*$", section(text, "Parameters") + "\n" + section(text, "Attributes"), flags=re.M
    )
    return {name.strip().lstrip("*") for line in lines for name in line.split(" : ")[0].split(",")}


def undocumented(value, text):
    names = documented(text)
    if inspect.isclass(value):  # constructors may be inherited
        names = names.union(*(documented(inspect.cleandoc(base.__doc__ or "")) for base in value.__mro__))
    return set(inspect.signature(value).parameters) - names - {"self", "cls"}


def methods(owner):
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        value = getattr(value, "__func__", value)
        inside = inspect.isfunction(value) and value.__module__.startswith("calibrant")
        if inside and not name.startswith("_") and name not in PROTOCOL:
            yield name, value


@pytest.mark.parametrize(("module", "name", "value"), list(public()))
def test_a_public_name_is_documented(module, name, value):
    part = re.split(r"^\.\. currentmodule:: (\S+)$", API, flags=re.M)
    listed = part[part.index(module) + 1]
    assert re.search(rf"^   {name}$", listed, flags=re.M), "not in docs/reference/api.rst"
    text = inspect.getdoc(value)
    assert section(text, "See Also")
    assert ">>> " in section(text, "Examples")
    if not getattr(value, "_is_protocol", False) and value is not calibrant.InputWarning:
        assert not undocumented(value, text)


def test_a_module_lists_its_public_names():
    for module in MODULES:
        space = importlib.import_module(module)
        assert sorted(dir(space)) == sorted(space.__all__)


def results():
    rng = np.random.default_rng(0)
    score, scores = rng.random(60), rng.dirichlet(np.ones(3), 60)
    y, label = (rng.random(60) < score).astype(int), (rng.random((60, 1)) > scores.cumsum(axis=1)).sum(axis=1)
    few = {"n_resamples": 99}
    yield calibrant.estimate(y, score, **few)
    yield calibrant.estimate(label, scores, notion="classwise", **few).by_class
    yield calibrant.estimate_by(y, score, y, **few)
    yield calibrant.audit(y, score, {"y": y}, depth=1, min_rows=5, **few)
    yield calibrant.compare(y, {"one": score, "other": score**2}, **few)
    yield calibrant.compare_calibrators(score, y, methods=["platt"])
    yield calibrant.recommend(score, repetitions=5)
    assessment = calibrant.assess(y, score, **few)
    yield from (assessment, assessment.verdict)
    for function in ("reliability_curve", "reliability_diagram", "score_histogram", "regret_curve"):
        yield getattr(calibrant, function)(y, score)
    yield from (calibrant.regret(y, score, 0.2), calibrant.best_threshold(y, score, 0.2))
    yield calibrant.net_benefit(y, score, [0.2, 0.5])
    yield from (calibrant.risk_coverage(label, scores), calibrant.Cost.of(0.2, [0, 1]))
    yield from (calibrant.Sketch().update(y, score), calibrant.Monitor("binary").update(y, score, at=1))
    yield from (calibrant.Calibrator("platt").fit(score, y), calibrant.PriorShift(0.5).fit(score))


def test_results_have_no_other_names_than_documented_ones(without_reference_estimators):
    for result in results():
        kind = type(result)
        names = set().union(*(documented(inspect.cleandoc(base.__doc__ or "")) for base in kind.__mro__))
        for name in set(filter(lambda name: not name.startswith("_"), dir(result))) - names:
            value = inspect.getattr_static(kind, name, None)
            value = getattr(value, "__func__", value)
            described = (inspect.isfunction(value) or isinstance(value, property)) and value.__doc__
            assert described, f"{kind.__name__}.{name}"


@pytest.mark.parametrize(("module", "name", "value"), list(public()))
def test_methods_document_their_parameters(module, name, value):
    if inspect.isclass(value):
        estimator = hasattr(value, "short")
        lacking = {
            method: undocumented(function, inspect.getdoc(function) or "")
            for method, function in methods(value)
            if not (estimator and method == "fit")
        }
        assert not {method: names for method, names in lacking.items() if names}
