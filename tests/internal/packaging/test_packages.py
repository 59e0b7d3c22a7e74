"""The packages import from left to right only, and none does the work of another."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant
from calibrant import estimators, inputs
from calibrant.tasks.notions import NOTIONS

pytestmark = pytest.mark.no_cover

ROOT = Path(calibrant.__file__).parent
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = (
    *("settings", "parallel", "compiled", "atomic", "inputs", "score_data", "tasks", "posterior"),
    *("estimators", "curves", "maps", "inference", "decisions", "sketch", "assessment", "api", "data"),
    *("monitor", "plot", "report", "sklearn", "torch", "published", "experiment", "cli"),
)
# Methods that lead to the right import inside the function: .plot, .to_html, what a sketch can be made of and
# asked, and the estimator that cross-fits any map.
TO_THE_RIGHT = {
    ("estimators", "maps"),
    *((package, "plot") for package in ("curves", "assessment")),
    *((package, "report") for package in ("curves", "assessment")),
    *(("sketch", package) for package in ("api", "data")),
}


def package_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(tree, *, inner=False):
    """Packages that a module imports from, and whether within a function; types alone do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for alias in node.names:
                if alias.name == "__version__":
                    continue
                first, *rest = (f"{module}.{alias.name}" if module else alias.name).split(".")
                if first == "calibrant":
                    yield rest[0] if rest and rest[0] in PACKAGES else "api", inner
        yield from imports(node, inner=inner or isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_imports_only_from_its_left(path):
    package = package_of(path)
    if package in ("__init__", "__main__"):  # the names of all packages, and the program
        return
    assert package in PACKAGES, f"{package} is no package"
    for other, inner in imports(MODULES[path]):
        leads_right = inner and (package, other) in TO_THE_RIGHT
        assert PACKAGES.index(other) <= PACKAGES.index(package) or leads_right, f"{package} imports {other}"


def test_few_modules_lie_outside_of_the_rooms():
    assert len(list(ROOT.glob("*.py"))) <= 6


def test_nothing_prints_outside_the_command_line():
    for path, tree in MODULES.items():
        names = [getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert package_of(path) == "cli" or "print" not in names, path


def names_a_notion(node):
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(names_a_notion(element) for element in node.elts)
    text = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and isinstance(text, str) and is_notion(text)


def is_notion(text):
    return text in {*NOTIONS, "correctness", "canonical"} or text.startswith("top:")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_name_of_a_notion_is_compared_outside_its_room(path):
    if package_of(path) == "tasks":
        return
    for node in ast.walk(MODULES[path]):
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        compared += [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
        compared += [node.value] if isinstance(node, ast.MatchValue) else []
        for part in compared:
            assert not names_a_notion(part), f"line {node.lineno}: {ast.unparse(node)}"


def test_no_name_of_a_notion_is_compared_in_a_page():
    for path in ROOT.rglob("*.j2"):
        texts = re.findall(r"[=!]= *['\"]([^'\"]*)['\"]", path.read_text(encoding="utf-8"))
        assert not any(map(is_notion, texts)), path


def test_no_property_holds_a_lock_while_it_is_computed():
    for path, tree in MODULES.items():
        names = [
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        assert "functools.cached_property" not in names, path


@pytest.mark.parametrize(
    ("call", "most"),
    [("calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8])", 45), ("calibrant.InputError", 15)],
)
def test_a_call_imports_only_what_it_needs(call, most):
    counted = "len([name for name in sys.modules if name.split('.')[0] == 'calibrant'])"
    script = f"import sys, calibrant; {call}; print({counted})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= most


def test_every_name_of_a_package_that_imports_on_demand_exists():
    for package in (estimators, inputs):
        assert all(hasattr(package, name) for name in package.__all__)
    names = {name for module, name in estimators.CLASSES if "canonical" not in module}
    assert all(hasattr(estimators, name) for name in names)
    assert names <= set(calibrant.__all__), "add them to calibrant/__init__.py"


def test_no_two_classes_have_the_same_name():
    names = [
        node.name for tree in MODULES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in names if names.count(name) > 1} == set()
