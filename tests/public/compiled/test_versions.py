"""Which loops are in use is said on every surface, and can be chosen."""

import os
import subprocess
import sys

import calibrant


def in_a_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_names_the_loops_and_forced_ones():
    code = "from calibrant.cli import main; main(['--version'])"
    expected = f"calibrant {calibrant.__version__} (plain loops: CALIBRANT_PLAIN is set)\n"
    assert in_a_process(code, CALIBRANT_PLAIN="1") == expected


def test_showing_versions_loads_nothing_heavy():
    code = (
        "import sys, calibrant; assert 'calibrant.compiled' not in sys.modules\n"
        "calibrant.show_versions()\n"
        "heavy = {'numpy', 'scipy', 'polars', 'pyarrow', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert "loops" in in_a_process(code)
