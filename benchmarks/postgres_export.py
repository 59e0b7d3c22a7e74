"""Maps exported as SQL, run by PostgreSQL and compared with `predict_proba`.

    python benchmarks/postgres_export.py [--bin /usr/lib/postgresql/15/bin]

Every map of one score, and prior shifts after some of them, maps columns of type double precision, real,
numeric and integer. NULL, NaN, infinities and numbers outside of [0, 1] must give NULL. Prints the largest
difference of each map, and fails above 1e-9.

It starts a server of its own in a temporary folder, on a port of 127.0.0.1 that is free, and stops it at the
end. PostgreSQL refuses to run as root, so root starts it as the user `postgres`. It needs the server and psql
(`apt-get install postgresql`).
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from calibrant import Calibrator, PriorShift, calibrator_names

#: The types of columns, and what is stored in them that is no score.
BAD = ["NULL", "'NaN'", "1.5", "-0.5", "-1e-30", "7"]
KINDS = {
    "double precision": [*BAD, "'Infinity'", "'-Infinity'"],
    "real": [*BAD, "'Infinity'", "'-Infinity'"],
    "numeric": BAD,
    "integer": ["NULL", "-1", "2"],
}
LARGEST_DIFFERENCE = 1e-9


def folder_of_server():
    """Return the folder of the programs of the newest version that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql")
    return found[-1].parent if found else Path(on_path).resolve().parent


@contextmanager
def server(programs):
    """Run a server in a temporary folder, and yield a function that returns the lines of a script of SQL."""
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        if user:
            shutil.chown(folder, **user)
        data, common = f"{folder}/data", {"cwd": folder, "check": True, **user}
        initdb = [programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run([*initdb, "-E", "UTF8", "--no-locale"], stdout=subprocess.DEVNULL, **common)
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
        command = [programs / "postgres", "-D", data, "-p", port, *options]
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **user)
        psql = ["psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-X", "-q", "-A", "-t"]

        def run(script):
            options = ["-v", "ON_ERROR_STOP=1", "-P", "null=NULL", "-f", "-"]
            done = subprocess.run(
                [programs / psql[0], *psql[1:], *options], input=script, text=True, **captured
            )
            if done.returncode:
                raise RuntimeError(done.stderr)
            return done.stdout.splitlines()

        captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port]
            end = time.monotonic() + 60
            while subprocess.run(ready, check=False).returncode:
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the server did not start: {Path(folder, 'log').read_text()}")
                time.sleep(0.1)
            yield run
        finally:
            process.send_signal(signal.SIGINT)  # fast shutdown
            process.wait(timeout=60)


def fitted_maps():
    """Return every map of one score, prior shifts after maps of each form, and scores to map."""
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.beta(0.7, 0.9, 1200), rng.integers(0, 11, 300) / 10])
    odds = 0.6 * np.log(np.clip(score, 1e-6, 1) / np.clip(1 - score, 1e-6, 1)) - 0.4
    outcome = rng.random(score.size) < 1 / (1 + np.exp(-odds))
    names = [name for name in calibrator_names() if name not in ("vector", "matrix")]
    maps = {name: Calibrator(name).fit(score, outcome) for name in names}
    for name in ("auto", "venn-abers", "beta", "density"):
        maps[f"prior shift after {name}"] = PriorShift(train=0.5, target=0.1, calibrator=maps[name])
    maps["prior shift"] = PriorShift(train=0.5, target=0.1)
    # Its log-odds leave the range of EXP.
    apart = np.array([0.4, 0.49, 0.51, 0.6] * 50)
    maps["steep logistic"] = Calibrator("logistic").fit(apart, apart > 0.5)
    return maps, np.concatenate([[0.0, 1.0, 1e-300, 1e-12, 1 - 1e-12, 0.5], score[::10]])


def columns(score):
    """Yield each type of a column, the scores that it holds, and the literals of all its values."""
    for kind, bad in KINDS.items():
        good = np.array([0.0, 1.0]) if kind == "integer" else score
        if kind == "real":
            good = good[good != 1e-300].astype(np.float32).astype(np.float64)
        literals = [f"'{int(value) if kind == 'integer' else repr(value)}'" for value in good.tolist()]
        yield kind, good, [*literals, *bad]


def main(argv=None):
    """Run the comparison, and fail where it does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=Path, help="folder of initdb and postgres")
    options = parser.parse_args(argv)
    maps, score = fitted_maps()
    failed = False
    with server(options.bin or folder_of_server()) as run:
        print(run("SHOW server_version;")[0])
        print(f"{'map':30} {'characters':>10} {'largest difference':>20} {'NULL where it must be':>24}")
        for kind, _, literals in columns(score):
            table = kind.split()[0]
            values = ", ".join(f"({place}, {value})" for place, value in enumerate(literals))
            run(f"CREATE TABLE {table}_scores (place int, score {kind});")
            run(f"INSERT INTO {table}_scores VALUES {values};")
        for name, calibrator in maps.items():
            expression, worst, all_null = calibrator.to_sql("score"), 0.0, True
            for kind, good, literals in columns(score):
                table = kind.split()[0]
                mapped = run(
                    f"SELECT CAST({expression} AS double precision) FROM {table}_scores ORDER BY place;"
                )
                all_null &= mapped[good.size :] == ["NULL"] * (len(literals) - good.size)
                got = np.array([np.nan if each == "NULL" else float(each) for each in mapped[: good.size]])
                difference = np.abs(got - calibrator.predict_proba(good)).max()
                worst = max(worst, np.inf if np.isnan(difference) else difference)
            failed |= not (all_null and worst <= LARGEST_DIFFERENCE)
            print(
                f"{name:30} {len(expression):10} {worst:20.1e} {'yes' if all_null else 'NO':>24}", flush=True
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
