"""Two processes give the result of one, with the class of torchmetrics and without."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.full
def test_two_processes(tmp_path):
    worker = Path(__file__).with_name("worker.py")
    environment = os.environ | {"MPLBACKEND": "Agg", "GLOO_SOCKET_IFNAME": "lo"}
    runs = [
        subprocess.Popen([sys.executable, worker, str(rank), tmp_path], env=environment) for rank in (0, 1)
    ]
    assert [run.wait(120) for run in runs] == [0, 0]
    for kind in ("torchmetrics", "plain"):
        for rank in (0, 1):
            found = json.loads((tmp_path / f"{kind}-{rank}.json").read_text())
            for name in ("confidence", "classwise", "weighted", "clustered"):
                value, n, is_restored = found[name]
                at_once, n_at_once, _ = found[f"{name} at once"]
                assert value == pytest.approx(at_once, rel=1e-12)
                assert n == pytest.approx(n_at_once)
                assert is_restored
