"""Small archives that would take much memory are refused before they are unpacked."""

import tracemalloc
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Sketch
from calibrant.cli import main

ROWS = 8_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npz")
    same = {"y_true": np.zeros(ROWS, dtype=np.uint16), "y_prob": np.zeros(ROWS)}
    np.savez_compressed(folder / "same.npz", **same)
    # An array that nobody reads does not count.
    np.savez_compressed(
        folder / "other.npz", y_true=np.arange(9) % 2, y_prob=np.arange(9) / 9, more=same["y_prob"]
    )
    return folder


def test_an_archive_of_one_value_is_refused_without_unpacking_it(folder):
    path = folder / "same.npz"
    packed = path.stat().st_size
    assert packed < 100_000
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=r"same\.npz: would unpack from 0\.07\d+ MiB to 76\.29 MiB, .* 100 times its size"
    ):
        Sketch.from_files(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6
    result = CliRunner().invoke(main, ["ece", str(path)])
    assert result.exit_code == 2
    assert "write it without compression, by np.savez" in result.output
    with open(path, "rb") as stream:
        result = CliRunner().invoke(main, ["ece", "-"], input=stream)
    assert result.exit_code == 2
    assert "would unpack from" in result.output


def test_what_is_not_compressed_and_what_is_small_is_read(folder, tmp_path):
    assert Sketch.from_files(folder / "other.npz").n == 9
    # 16 MB from 16 kB.
    same = {"y_true": np.zeros(1_000_000, dtype=np.int64), "y_prob": np.zeros(1_000_000)}
    np.savez_compressed(tmp_path / "small.npz", **same)
    np.savez(tmp_path / "plain.npz", **same)
    for name in ("small", "plain"):
        assert Sketch.from_files(tmp_path / f"{name}.npz").n == 1_000_000


def test_a_sketch_that_unpacks_too_far_is_refused(tmp_path):
    path = tmp_path / "day.sketch"
    Sketch("binary").update([0, 1, 1], [0.2, 0.7, 0.9]).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith(".json"))
    members[name] += b" " * (1 << 24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    with pytest.raises(calibrant.InputError, match=r"must (take|unpack to) at most"):
        Sketch.load(path)
