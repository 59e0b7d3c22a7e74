"""What CONTRIBUTING.md says of the code is so: the packages and their graph, the files, a new notion."""

import ast
import itertools
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "calibrant"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGES = re.findall(r"^\| `(\w+)` \| ", TEXT, flags=re.M)


def imported(tree, *, inner=False):
    """Packages that a module imports from, and whether only when a function is called; types do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for alias in node.names:
                first, *rest = (f"{module}.{alias.name}" if module else alias.name).split(".")
                if first == "calibrant" and alias.name != "__version__":
                    yield rest[0] if rest and rest[0] in PACKAGES else "api", inner
        yield from imported(node, inner=inner or isinstance(node, ast.FunctionDef))


@pytest.fixture(scope="module")
def edges():
    """Pairs of a package and one that imports it."""
    pairs = set()
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).with_suffix("").parts[0]
        if package in PACKAGES:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            pairs |= {(other, package) for other, _ in imported(tree) if other != package}
    return pairs


def leads(pairs, start, end):
    """Whether a way leads from one package to another."""
    reached, new = set(), {start}
    while new:
        reached |= new
        new = {b for a, b in pairs if a in new} - reached
    return end in reached - {start}


def test_the_rooms_are_those_of_the_source():
    packages = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(PACKAGES) == {package for package in packages if not package.startswith("__")}


def test_the_graph_of_rooms_is_that_of_the_imports_and_has_no_cycle(edges):
    forward = {(a, b) for a, b in edges if PACKAGES.index(a) < PACKAGES.index(b)}
    needed = {edge for edge in forward if not leads(forward - {edge}, *edge)}
    to_the_right = {(b, a) for a, b in edges - forward}
    (graph,) = re.findall(r"^```mermaid\n(.*?)^```$", TEXT, flags=re.M | re.S)
    assert set(re.findall(r"(\w+) --> (\w+)", graph)) == needed
    assert set(re.findall(r"(\w+) -\.-> (\w+)", graph)) == to_the_right
    assert not any(leads(needed, b, a) for a, b in needed)


def test_files_that_are_named_exist():
    found = re.findall(r"`((?:src|tests|docs|benchmarks|\.ci)/[\w./-]*|\w+/[\w/]*\.(?:py|j2)|\w+/)`", TEXT)
    assert len(found) > 20
    for name in found:
        mean_gap = name.endswith("mean_gap.py")  # the file that a reader is to write
        assert mean_gap or (ROOT / name).exists() or (SOURCE / name).exists(), name


def test_commands_are_those_of_the_readme_and_of_the_gate():
    readme, gate = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run"))
    commands = list(
        itertools.chain(*(b.splitlines() for b in re.findall(r"```sh\n(.*?)```", TEXT, flags=re.S)))
    )
    assert commands[0] in readme
    assert any('-m "not full"' in command for command in commands)
    (coverage,) = (command for command in commands if "--cov" in command)
    for option in re.findall(r"--cov\S*", coverage):
        assert option in gate
