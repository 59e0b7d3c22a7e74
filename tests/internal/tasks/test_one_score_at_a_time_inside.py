"""Where canonical calibration cannot be measured, that is said before anything is read."""

import zipfile

import pytest

from calibrant import InputError, Sketch
from calibrant.sketch.file import HEADER
from calibrant.tasks.notions import curve_notion, get_notion, refuse_canonical, reported_notions


def test_a_sketch_file_of_whole_rows_is_none(tmp_path):
    path = tmp_path / "a.sketch"
    Sketch("confidence", n_classes=3).save(path)
    with zipfile.ZipFile(path) as archive:
        header = archive.read(HEADER).replace(b'"confidence"', b'"canonical"')
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, header)
    with pytest.raises(InputError, match=r"header\.notion must compare one score at a time here"):
        Sketch.load(path)


def test_notions_that_go_with_it():
    whole = get_notion("canonical")
    names = [str(notion) for notion in reported_notions(whole, n_classes=3, binary_requested=False)]
    assert names == ["canonical", "confidence", "classwise"]
    assert str(curve_notion(whole, n_classes=2)) == "binary"
    assert str(curve_notion(get_notion("top:2"), n_classes=5)) == "top:2"
    refuse_canonical(None)
    refuse_canonical("top:2")
