"""Tests of the public surface use nothing else, so that they outlive what is inside of the package."""

import ast
from pathlib import Path

import pytest

import calibrant

FOLDER = Path(__file__).parents[1]
FILES = sorted(FOLDER.rglob("*.py"))
# Populations with a known calibration error are data of tests.
DATA = "calibrant.experiment.families."
SURFACE = {"cli", "experiment", "plot", "published", "sklearn", "torch"}


def internal_names(tree):
    """Names of the package that a file imports, asks for or names in a text, but for public ones."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "calibrant":
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr"):
            names = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        for name in names:
            package, *rest = name.split(".")
            public = {*calibrant.__all__, "__all__", "__file__", "__version__"}
            if (
                package != "calibrant"
                or name.startswith(DATA)
                or not rest
                or (rest[0] in public and len(rest) == 1)
            ):
                continue
            if rest[0] not in SURFACE or len(rest) > 2 or (rest[1:] and not is_public(*rest)):
                yield name


def is_public(package, name):
    """Tell whether a package of the surface lists a name."""
    if package == "torch":  # may not be installed
        return name in {"CalibrationError", "CalibratorModule", "TokenCalibrationError"}
    if package == "cli":
        return name == "main"
    module = pytest.importorskip(f"calibrant.{package}")
    return name in getattr(module, "__all__", vars(module))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_imports_no_internal_module(path):
    assert not list(internal_names(ast.parse(path.read_text(encoding="utf-8"))))
