"""What CONTRIBUTING.md says of the code is so: the packages and their graph, the files, a new notion."""

import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.tasks import notions

ROOT = Path(__file__).parents[2]
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


def test_a_new_notion_is_a_class_and_its_name(monkeypatch):
    (code,) = re.findall(r"^ *```py\n(.*?)^ *```$", TEXT, flags=re.M | re.S)
    space = vars(notions).copy()
    exec(compile(re.sub(r"^   ", "", code, flags=re.M), "CONTRIBUTING.md", "exec"), space)
    notion = space["RunnerUp"]()
    monkeypatch.setitem(notions._FIXED, notion.name, notion)
    monkeypatch.setattr(notions, "NOTIONS", (*notions.NOTIONS, notion.name))
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(4), 400)
    y_true = (rng.random((400, 1)) > y_prob.cumsum(axis=1)).sum(axis=1)
    order = np.argsort(-y_prob, axis=1)[:, 1]
    score, outcome = y_prob[np.arange(400), order], order == y_true
    wanted = calibrant.ece(outcome, score, estimator="uniform:10")
    assert calibrant.ece(y_true, y_prob, notion="runner-up", estimator="uniform:10") == pytest.approx(wanted)
    sketch = calibrant.Sketch("runner-up").update(y_true, y_prob)
    assert sketch.ece(estimator="uniform:10") == pytest.approx(wanted)
    assert calibrant.estimate(y_true, y_prob, notion="runner-up", rng=0).p_value > 0.05
    assert "second choices scored" in calibrant.assess(y_true, y_prob, notion="runner-up", rng=0).html()
    with pytest.raises(calibrant.InputError, match="a column for each class"):
        calibrant.ece(outcome, score, notion="runner-up")


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
