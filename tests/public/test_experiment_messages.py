"""The experiment's commands: runs that are too small or need a module, and the layout of Figure 1."""

import sys
from itertools import combinations

import pytest
from click.testing import CliRunner

from calibrant.cli import main

Figure = pytest.importorskip("matplotlib.figure").Figure
pytest.importorskip("joblib")

OWN = "my_estimators"


def experiment(*words):
    return CliRunner().invoke(main, ["experiment", *map(str, words)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the preset smoke, which has two distributions, with an estimator of the user."""
    folder = tmp_path_factory.mktemp("experiment")
    (folder / f"{OWN}.py").write_text("def half(scores, outcomes, weights):\n    return 0.5\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        small = ("--holdout", 2000, "--repetitions", 3, "--sizes", "30,100", "-q")
        done = experiment(
            "run", "--preset", "smoke", "--out", "run", "--extra-estimators", f"{OWN}.half", *small
        )
        assert done.exit_code == 0, done.output
    sys.modules.pop(OWN)
    return folder / "run"


def test_claims_of_two_distributions_are_not_judged(run, monkeypatch):
    monkeypatch.chdir(run.parent)
    done = experiment("claims", run)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "at least 6 distributions, got 2" in done.stderr
    assert "--preset quick" in done.stderr


@pytest.mark.parametrize("command", ["table", "figure", "claims", "leaderboard"])
def test_a_missing_module_is_named_and_is_no_damage(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)  # from where the module cannot be imported
    sys.modules.pop(OWN, None)
    done = experiment(command, run)
    assert done.exit_code == 1
    assert "damaged" not in done.stderr
    assert f"cannot import '{OWN}.half'" in done.stderr
    assert f"No module named '{OWN}'" in done.stderr
    assert "where it can be imported" in done.stderr


@pytest.mark.full
def test_texts_of_figure_1_do_not_overlap(tmp_path, monkeypatch):
    drawn = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (drawn.append(self), savefig(self, *a, **k)))
    done = experiment("figure1", "-o", tmp_path / "figure1.png")
    assert done.exit_code == 0, done.output
    figure = drawn[0]
    figure.draw_without_rendering()
    titles = [ax.title for ax in figure.axes if ax.get_title()]
    legends = [ax.get_legend() for ax in figure.axes if ax.get_legend()] + figure.legends
    assert len(titles) == 3
    assert legends
    boxes = [each.get_window_extent() for each in (*titles, *legends)]
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
