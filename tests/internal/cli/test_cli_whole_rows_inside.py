"""The canonical notion on the command line."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reports import error_verdict, too_many_classes, whole_rows

from calibrant.cli import source
from calibrant.inputs.wording import number
from shortcuts import read_as_sums

LABELS = np.array(["wolf", "cat", "dog"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 90).round(4)
    p[:, 2] = (1 - p[:, 0] - p[:, 1]).round(4).clip(0)
    return LABELS[rng.integers(0, 3, 90)], p


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    at = tmp_path_factory.mktemp("rows") / "rows.csv"
    lines = [",".join([label, *map(str, row)]) for label, row in zip(*rows, strict=True)]
    at.write_text("\n".join(["label,p_wolf,p_cat,p_dog", *lines]) + "\n")
    return at


def test_large_files_stay_rows(rows, path, monkeypatch):
    read_as_sums(monkeypatch)
    read = source.read_source(
        str(path),
        {"quiet": True, "format": None, "label": None, "scores": (), "percent": False}
        | {"notion": "canonical", "pos_label": None, "sample_weight": None, "counts": None},
    )
    assert read.about["read"] == "rows"


def test_a_gate_goes_up_to_two():
    estimate = whole_rows().estimate
    assert error_verdict(estimate, 1.5).status == "pass"
    assert f"at least {number(estimate.at_least)}, is within 1.5" in error_verdict(estimate, 1.5).sentence
    assert error_verdict(estimate, 0.01).status == "fail"
    weighed = replace(estimate, norm="mul")
    assert error_verdict(weighed, 0.5).sentence.startswith("label-weighted ECE (canonical)")


def test_a_gate_never_passes_what_cannot_be_seen():
    estimate = too_many_classes().estimate
    assert estimate.high < 1.5
    assert error_verdict(estimate, 1.5).status == "inconclusive"
    assert "may be above 1.5" in error_verdict(estimate, 1.5).sentence
    assert "of the part that can be estimated with so many classes" in error_verdict(estimate, 1.5).sentence
    # Only the bound that always holds fails it, not the interval of what can be seen.
    assert estimate.low > 0.06 > estimate.at_least
    assert error_verdict(estimate, 0.06).status == "inconclusive"
    assert error_verdict(estimate, 0.04).status == "fail"
