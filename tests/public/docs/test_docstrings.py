"""Docstrings name only parameters, attributes and classes that exist."""

import ast
import builtins
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

SOURCE = Path(__file__).parents[3] / "src" / "calibrant"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
CLASSES = {
    node.name: node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
}
# Aliases, and classes of other packages.
OTHER = {"Axes", "Context", "Form", "Generator", "ScoreData"}
# Its docstrings still name things that no longer exist.
UNCHECKED = SOURCE / "assessment"


def documented(node, section):
    """Names and types in a numpydoc section of a docstring."""
    text = ast.get_docstring(node) or ""
    body = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\S|\Z)", text, flags=re.M | re.S)
    for line in re.findall(r"^\S.*$", body[1], flags=re.M) if body else ():
        names, _, kind = line.partition(" : ")
        for name in names.split(", "):
            yield name.lstrip("*"), kind


def parameters(function):
    arguments = function.args
    named = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {each.arg for each in named if each is not None}


def attributes(owner):
    """Fields, class variables, properties, attributes of self, and names passed to setattr."""
    names = set()
    for node in owner.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {ast.unparse(target) for target in targets}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and str(node.value).endswith("_"):
            names.add(node.value)
    return names


def constructor(owner):
    made = [node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    return parameters(made[0]) if made else attributes(owner)


def inherited(owner, names_of):
    bases = [CLASSES[base.id] for base in owner.bases if isinstance(base, ast.Name) and base.id in CLASSES]
    return names_of(owner).union(*(inherited(base, names_of) for base in bases))


def wrong_names(tree):
    """Yield documented names that do not exist."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            sections = {"Parameters": parameters(node)}
        elif isinstance(node, ast.ClassDef):
            sections = {"Parameters": inherited(node, constructor), "Attributes": inherited(node, attributes)}
        else:
            continue
        for section, existing in sections.items():
            for name, kind in documented(node, section):
                if name not in existing:
                    yield node.name, name
                for word in re.findall(r"(?<![\w.\"])[A-Z]\w*[a-z]\w*(?![\w\"])", kind):
                    if word not in CLASSES and not hasattr(builtins, word) and word not in OTHER:
                        yield node.name, word


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_documented_names_exist(path):
    if UNCHECKED not in path.parents:
        assert not list(wrong_names(TREES[path]))


def test_wrong_names_are_found():
    text = '''
class A:
    """A.

    Attributes
    ----------
    x, y : int
        Numbers.
    """

    x: int

    def f(self, a):
        """F.

        Parameters
        ----------
        a : Missing or None
        b : int
            A number.

        >>> 1
        """
'''
    assert list(wrong_names(ast.parse(text))) == [("A", "y"), ("f", "Missing"), ("f", "b")]
