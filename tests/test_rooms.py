"""Evidence flows one way: a module imports only from its left."""

import ast
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
ORDER = [
    "_version",
    "_names",
    "_files",
    "_check",
    "totals",
    "notions",
    "evidence.moments",
    "evidence.locate",
    "evidence.sample",
    "evidence.quick",
    "evidence.cells",
    "evidence.profile",
    "evidence",
    "summed",
    "sketch_check",
    "sketch_file",
    "binning",
    "kernels",
    "density",
    "posterior",
    "estimators.base",
    "estimators.bayes",
    "estimators.binned",
    "estimators.density",
    "estimators.function",
    "estimators.debiased",
    "estimators.isotonic",
    "estimators.sweep",
    "estimators.cumulative",
    "estimators.beta",
    "estimators.smooth",
    "estimators.variational",
    "estimators.beta_kernel",
    "estimators",
    "bands",
    "results",
    "fitting",
    "answers",
    "histogram",
    "inference.result",
    "inference.null",
    "inference.interval",
    "inference.joint",
    "inference.many",
    "inference.estimate",
    "inference.multiplicity",
    "inference.paired",
    "inference",
    "simulated",
    "ranking",
    "recommendation",
    "api",
    "judge",
    "assessment.inputs",
    "assessment.proper",
    "assessment.parts",
    "assessment.findings",
    "assessment.store",
    "assessment.wording",
    "assessment.cautions",
    "assessment.result",
    "assessment.assemble",
    "assessment.make",
    "assessment.sketched",
    "assessment.grouped",
    "assessment",
    "answered",
    "sketch",
    "published",
    "io.table",
    "io.text",
    "io.binary",
    "io.files",
    "io.names",
    "io.paths",
    "io.row_groups",
    "io.sources",
    "io.many",
    "io.columns",
    "io.typed",
    "io.settle",
    "io.checkpoint",
    "io.run",
    "io.stream",
    "io.cells_expr",
    "io.engines",
    "io.frame_rows",
    "io.frame_columns",
    "io.frame_pieces",
    "io.frame_checks",
    "io.frames",
    "io",
    "",
    "plot.canvas",
    "plot.reliability",
    "plot.scores",
    "plot.grid",
    "plot.forest",
    "plot",
    "report.svg",
    "report.chart",
    "report.page",
    "report",
    "_demo",
    "sklearn.model",
    "sklearn.scorer",
    "sklearn.display",
    "sklearn",
    "experiment.distributions",
    "experiment.families",
    "experiment.models",
    "experiment.truth",
    "experiment.procedure",
    "experiment.store",
    "experiment.runner",
    "experiment.summary",
    "experiment",
    "experiment.figures",
    "experiment.studies",
    "experiment.claims",
    "experiment.leaderboard",
    "experiment.page",
    "cli.support",
    "cli.leaderboard",
    "cli.experiment",
    "cli.data",
    "cli.source",
    "cli.measure",
    "cli.compare",
    "cli.check",
    "cli.report",
    "cli.demo",
    "cli",
    "__main__",
]
# A result draws itself, so that `curve.plot()` works, and a sketch sums up files and frames; the import waits
# until it is called.
ALLOWED = {
    ("assessment.result", "plot"),
    ("assessment.result", "report"),
    ("results", "plot"),
    ("histogram", "plot"),
    ("inference.paired", "plot"),
    ("sketch", "io.frames"),
    ("sketch", "io.stream"),
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name.removesuffix("__init__").removesuffix("."), path


def imported(path):
    """Modules of the package that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "calibrant":
                inner = ".".join(parts[1:])
                while inner not in ORDER:
                    inner = inner.rpartition(".")[0]
                yield inner


def test_every_module_has_its_place():
    assert {name for name, _ in modules()} == set(ORDER)


@pytest.mark.parametrize(("name", "path"), list(modules()))
def test_a_module_imports_only_from_its_left(name, path):
    for other in imported(path):
        if other != name and (name, other) not in ALLOWED:
            assert ORDER.index(other) < ORDER.index(name), f"{name} imports {other}"


def test_nothing_prints_outside_the_command_line():
    for name, path in modules():
        if not name.startswith("cli"):
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            assert not any(getattr(call.func, "id", "") == "print" for call in calls), name


def test_source_files_stay_short():
    for name, path in modules():
        assert len(path.read_text().splitlines()) <= 350, name
