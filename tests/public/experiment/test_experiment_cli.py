"""The experiment on the command line, as a person uses it."""

import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib
import pytest
from click.testing import CliRunner

from calibrant import experiment
from calibrant.cli import main

pytestmark = pytest.mark.full

matplotlib.use("Agg")
ROOT = Path(__file__).parents[3]
SMALL = ["--sizes", "29,60", "--repetitions", "5", "--holdout", "2000", "--families", "logistic,naive-bayes"]
PLUGGED = """
import numpy as np

class Mine:
    def __call__(self, scores, outcomes, weights):
        return abs(np.mean(outcomes - scores))

def broken(scores, outcomes, weights):
    raise RuntimeError("out of\\nideas")

def stubborn(seed):
    raise RuntimeError("will not learn")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    for name in ("plugged", "mypackage"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    result = call("run", "--preset", "smoke", "--out", str(folder), "-q", *SMALL)
    assert result.exit_code == 0, result.output
    return folder


def call(*args):
    result = CliRunner().invoke(main, ["experiment", *args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def run(*args, out="run"):
    return call("run", "--preset", "smoke", "--out", out, *SMALL, *args)


def settings(folder="run"):
    return experiment.Store(Path(folder)).settings()


def one_line(result, code, *words):
    assert result.exit_code == code, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert result.stdout == ""
    for word in words:
        assert word in line


# Running


def test_run_says_where_the_table_is(here):
    result = run()
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["4 of 4 models done", f"table: {here / 'run/results.csv.gz'}"]
    assert result.stderr == ""  # no terminal
    assert (here / "run/results.csv.gz").exists()


def test_run_resumes(here):
    assert run("-q").exit_code == 0
    tasks = sorted((here / "run/tasks").iterdir())
    tasks[0].unlink()
    before = {path: path.stat().st_mtime_ns for path in tasks[1:]}
    result = run()
    assert result.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in tasks[1:]} == before


def test_quiet_says_only_where_the_table_is(here):
    result = run("--quiet")
    assert result.output.splitlines() == [f"table: {here / 'run/results.csv.gz'}"]


def test_options_make_the_settings(here):
    options = ["--estimators", "l:15, d:0.1", "--extra-estimators", "ac,l:15", "--notion", "classwise"]
    assert run(*options, "--means", "text").exit_code == 0
    found = settings()
    assert found.estimators == ("l:15", "d:0.1", "ac")
    assert found.notions == ("classwise",)
    assert found.low == 0.0
    assert found.sizes == (29, 60)
    assert (found.repetitions, found.n_holdout) == (5, 2000)
    assert found.families == ("logistic", "naive-bayes")
    assert {path.name.split("-t0")[0] for path in (here / "run/tasks").iterdir()} == {
        "mixture-c2-d2-s0-low0",
        "mixture-c5-d2-s0-low0",
    }


def test_an_estimator_of_the_current_directory(here):
    (here / "plugged.py").write_text(PLUGGED)
    before = list(sys.path)
    result = run("--extra-estimators", "plugged.Mine")
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    assert settings().estimators[-1] == "plugged.Mine"
    assert sys.path == before


def test_an_estimator_of_the_current_directory_in_workers(here):
    (here / "plugged.py").write_text(PLUGGED)
    code = "from calibrant.cli import main; main(prog_name='calibrant')"
    args = ["experiment", "run", "--preset", "smoke", "--out", "run", *SMALL, "--jobs", "2"]
    args += ["--estimators", "l:10,plugged.Mine,plugged.broken"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False, cwd=here
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("failed: ") == 4
    assert "failed: plugged.broken (confidence, n=29): RuntimeError: out of ideas (4 models)" in done.stderr
    assert "plugged.Mine" not in done.stderr
    assert run("-q", "--estimators", "l:10,plugged.Mine,plugged.broken", out="alone").exit_code == 0
    assert (here / "run/results.csv.gz").read_bytes() == (here / "alone/results.csv.gz").read_bytes()


def test_a_model_that_fails_is_told_and_the_rest_is_done(here):
    (here / "plugged.py").write_text(PLUGGED)
    result = run("--families", "plugged.stubborn,logistic")
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if line.startswith("failed: ")]
    assert told == [
        f"failed: mixture-c{c}-d2-s0-t0-plugged.stubborn: RuntimeError: will not learn" for c in (2, 5)
    ]
    assert result.stdout.splitlines()[0] == "2 of 4 models done"
    assert "Traceback" not in result.output


def test_a_dask_cluster_by_its_address(here, finished):
    import distributed

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(distributed|dask|joblib)\b")
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster:
            result = run("--scheduler", cluster.scheduler_address)
    assert result.exit_code == 0, result.output
    assert (here / "run/results.csv.gz").read_bytes() == (finished / "results.csv.gz").read_bytes()


def test_figures_of_a_run(here, finished):
    shutil.copytree(finished, "run")
    result = call("figure", "run")
    assert result.exit_code == 0, result.output
    paths = [Path(line.removeprefix("picture: ")) for line in result.stdout.splitlines()]
    assert {path.parent for path in paths} == {here / "run/figures"}
    assert len(paths) >= 3
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert str(here / "elsewhere") in call("figure", "run", "-o", "elsewhere").stdout
    for suffix, start in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        assert f"x.{suffix}" in call("figure", "run", "-o", f"x.{suffix}", "--reading", "published").stdout
        assert (here / f"x.{suffix}").read_bytes().startswith(start)
    assert "x.tiff ends in none of" in call("figure", "run", "-o", "x.tiff").output


def test_figure_1(here):
    result = call("figure1", "-o", "one.png", "--seed", "1")
    assert result.stdout == f"picture: {here / 'one.png'}\n"
    assert Path("one.png").read_bytes().startswith(b"\x89PNG")
    one_line(call("figure1", "-o", "missing/one.png"), 2, "cannot write missing/one.png")


def test_claims_are_judged(here):
    settings = experiment.Settings(
        classes=(2, 5),
        features=(2,),
        seeds=(0, 1, 2),
        families=("logistic",),
        train_sets=1,
        n_holdout=4000,
        sizes=(29, 443),
        repetitions=10,
    )
    experiment.run(settings, "run")
    result = call("claims", "run")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("| claim |")
    for verdict in ("| holds |", "| does not hold |"):
        assert verdict in result.stdout


def test_a_run_that_is_not_finished_can_be_read(here, finished):
    shutil.copytree(finished, "run")
    next(Path("run/tasks").iterdir()).unlink()
    assert "median over 3 models" in call("table", "run").stdout


# Mistakes


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--preset", "smok", "--out", "x"], ["--preset", "'smoke'"]),
        (["--preset", "smoke"], ["--out"]),
        (["--out", "x"], ["--preset", "smoke"]),
        (["--preset", "smoke", "--out", "x", "--colour"], ["--colour"]),
        (["--preset", "smoke", "--out", "x", "--jobs", "0"], ["--jobs"]),
        (["--preset", "smoke", "--out", "x", "--jobs", "two"], ["--jobs", "two"]),
        (["--preset", "smoke", "--out", "x", "--sizes", "30,many"], ["--sizes", "30,100,500"]),
        (["--preset", "smoke", "--out", "x", "--sizes", "0"], ["sizes must be positive"]),
        (["--preset", "smoke", "--out", "x", "--repetitions", "0"], ["--repetitions"]),
        (["--preset", "smoke", "--out", "x", "--notion", "canonical"], ["--notion", "'classwise'"]),
        (["--preset", "smoke", "--out", "x", "--families", "forset"], ["did you mean 'forest'"]),
        (["--preset", "smoke", "--out", "x", "--families", "forest,"], ["--families", "empty"]),
        (["--preset", "smoke", "--out", "x", "--estimators", "unifrom:3"], ["did you mean 'uniform'"]),
        (["--preset", "smoke", "--out", "x", "--estimators", "l:x"], ["number of bins"]),
        (["--preset", "smoke", "--out", "x", "--extra-estimators", "nowhere.Mine"], ["cannot import"]),
        (["--preset", "smoke", "--out", "x", "--extra-estimators", "halved.Mine"], ["SyntaxError"]),
        (["--preset", "smoke", "--out", "x", "--backend", "dask"], ["--scheduler"]),
        (["--preset", "smoke", "--out", "x", "--backend", "loky", "--scheduler", "a:1"], ["--scheduler"]),
        (["--preset", "smoke", "--out", "file"], ["--out"]),
    ],
)
def test_a_bad_option_is_one_clear_line(here, args, words):
    Path("halved.py").write_text("class Mine(:")
    Path("file").write_text("")
    one_line(call("run", *args), 2, *words)
    assert not Path("x").exists()


def test_a_command_that_does_not_exist_is_one_clear_line():
    one_line(call("runn"), 2, "No such command 'runn'")


def test_a_backend_that_does_not_exist_is_one_clear_line(here):
    one_line(run("-q", "--backend", "nope"), 1, "nope", "loky")


def test_a_scheduler_that_does_not_exist_is_one_clear_line(here):
    one_line(run("-q", "--scheduler", "nowhere"), 1, "nowhere")


def test_the_folder_of_another_run_is_refused(here, finished):
    result = call("run", "--preset", "smoke", "--out", str(finished), "-q")
    one_line(result, 1, "other settings", "choose another folder")
    Path("thesis").mkdir()
    Path("thesis/thesis.tex").write_text("")
    one_line(run("-q", out="thesis"), 1, "holds no run")


def test_a_table_that_cannot_be_written_is_one_clear_line(here, finished):
    Path("file").write_text("")
    result = call("table", str(finished), "-o", "file/summary.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["table", "claims", "leaderboard", "figure"])
def test_no_output_is_a_file_of_the_run(here, finished, name):
    shutil.copytree(finished, "run")
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    for path in before:
        if name == "figure":
            Path("pictures").mkdir(exist_ok=True)
            out = Path("pictures")
            (out / "figure2_corrected.png").unlink(missing_ok=True)
            (out / "figure2_corrected.png").symlink_to(path.resolve())
        elif path.name == "summary.csv":
            continue
        else:
            out = path
        unknown = name == "table" and out.suffix != ".csv"
        one_line(call(name, "run", "-o", str(out)), 2, "which are written" if unknown else "is an input")
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.parametrize("missing", ["sklearn", "joblib"])
def test_a_missing_extra_is_named(here, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    one_line(run(), 1, missing, "pip install 'calibrant[experiment]'")


def test_a_missing_extra_is_named_by_figures(here, finished, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    one_line(call("figure", str(finished)), 1, "matplotlib", "pip install 'calibrant[experiment]'")
    one_line(call("figure1"), 1, "matplotlib", "pip install 'calibrant[experiment]'")


def test_a_missing_extra_is_named_before_the_run_is_read(here, finished, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(experiment.Summary, "of", lambda store: pytest.fail("the run was read"))
    one_line(call("figure", str(finished)), 1, "matplotlib", "pip install 'calibrant[experiment]'")


@pytest.mark.parametrize("error", [KeyboardInterrupt, "broken"])
def test_a_run_that_is_stopped_says_how_to_go_on(here, monkeypatch, error):
    from concurrent.futures.process import BrokenProcessPool

    def stopped(*args, **options):
        raise BrokenProcessPool("A worker was killed.") if error == "broken" else error

    monkeypatch.setattr(experiment, "run", stopped)
    result = run()
    assert result.exit_code == 1
    assert "he same command resumes the run" in result.stderr.splitlines()[-1]


def test_help_needs_no_heavy_import():
    code = (
        "import sys; from calibrant.cli import main\n"
        "for args in (['--help'], ['experiment', '-h'], ['experiment', 'run', '-h']):\n"
        "    try: main(args)\n"
        "    except SystemExit: pass\n"
        "heavy = {'matplotlib', 'sklearn', 'joblib', 'distributed', 'scipy.stats'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for word in ("experiment", "--preset smoke --out run", "--extra-estimators mypackage.MyEstimator"):
        assert word in done.stdout


@pytest.mark.parametrize("name", ["run", "figure", "figure1", "table", "claims"])
def test_every_command_explains_itself(name):
    for flag in ("-h", "--help"):
        result = call(name, flag)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")


# The document


def blocks(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / "docs/experiment.md").read_text(), flags=re.M | re.S
    )


def test_the_python_of_the_document_runs(here, finished):
    _, cluster, read = blocks("python")
    compile(cluster, "docs/experiment.md", "exec")
    shutil.copytree(finished, "run")
    exec(compile(read, "docs/experiment.md", "exec"), {})


def test_the_document_tells_the_presets():
    text = (ROOT / "docs/experiment.md").read_text()
    for name, preset in experiment.PRESETS.items():
        cells = (len(preset.tasks()), f"{preset.n_holdout:,}".replace(",", " "), len(preset.sizes))
        row = f"| `{name}` | " + " | ".join(map(str, (*cells, preset.repetitions))) + " |"
        assert row in text
