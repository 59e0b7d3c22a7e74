"""The command line as a person uses it."""

import subprocess
import sys

from click.testing import CliRunner

from calibrant import cli


def test_help_and_version_need_no_heavy_import():
    code = (
        "import sys; from calibrant.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'matplotlib', 'sklearn', 'pandas', 'scipy.stats', 'scipy.fft'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Measure and correct the calibration" in done.stdout


def test_predicted_classes_in_place_of_scores_are_noted_beside_the_number(tmp_path):
    rows = [(k % 3 == 0, (k * 7) % 5 < 2) for k in range(60)]
    text = "".join(f"{int(y)},{int(p)},{(2 * p + 1) / 4}\n" for y, p in rows)
    path = tmp_path / "rows.csv"
    path.write_text("y,p,q\n" + text)
    told = (
        "caution: all scores are 0 or 1: did you pass predict()? pass predict_proba(), the scores of the "
        "classes"
    )
    result = CliRunner().invoke(cli.main, ["ece", str(path), "--label", "y", "--scores", "p", "-q"])
    assert result.exit_code == 0
    assert told in result.stderr.splitlines()
    assert result.stdout.startswith("calibration error  ")
    result = CliRunner().invoke(cli.main, ["ece", str(path), "--label", "y", "--scores", "q", "-q"])
    assert (result.exit_code, result.stderr) == (0, "")
