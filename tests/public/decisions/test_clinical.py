"""Clinical measures: against loops, on rows and on sums, and where they are undefined."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import InputError
from shortcuts import compare_estimators


@pytest.fixture(scope="module")
def rare():
    """Return an assessment of scores that expect six tenths of the few cases that there are."""
    rng = np.random.default_rng(8)
    score = rng.beta(0.5, 40, 8000)
    y = (rng.random(8000) < np.minimum(1.7 * score, 1)).astype(int)
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        return y, score, calibrant.assess(y, score, rng=0)


def test_it_is_stored_and_checked_as_it_is_read(rare):
    assessed = rare[2]
    text = assessed.to_json()
    values = json.loads(text)
    assert calibrant.Assessment.from_dict(values).clinical == assessed.clinical
    for path, new, words in (
        (("ratio", "low"), -1, "clinical.ratio.low must be at least 0"),
        (("e50", "high"), 2, r"clinical.e50.high must lie in \[0, 1\]"),
        (("slope", "low"), 9, "clinical.slope.low must not be above value"),
        (("slope",), None, "clinical.missing must say why a number is missing"),
        (("missing",), "why not", "clinical.missing must say why a number is missing"),
        (("more",), 1, "clinical.more must be a known field"),
        (("level",), 1, "clinical.level must lie strictly"),
    ):
        wrong = json.loads(text)
        inner = wrong["clinical"]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = new
        with pytest.raises(InputError, match=words):
            calibrant.Assessment.from_dict(wrong)
    del values["estimates"]["binary"], values["curves"]["binary"], values["diagrams"]["binary"]
    values |= {"notion": "confidence", "value": values["estimates"]["confidence"]["value"]}
    with pytest.raises(InputError, match="clinical must be missing where no notion is about one class"):
        calibrant.Assessment.from_dict(values)
