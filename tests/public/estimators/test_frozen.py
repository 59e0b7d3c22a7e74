"""Named estimators keep the numbers that they returned on random problems in an earlier state."""

import json
from pathlib import Path

import pytest

from golden import make_frozen

pytestmark = pytest.mark.no_cover

FROZEN = json.loads((Path(__file__).parents[2] / "golden" / "frozen.json").read_text())


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, make_frozen.PROBLEMS, 20))
def test_named_estimators_are_unchanged_on_random_problems(first):
    for seed in range(first, first + 20):
        for found, kept in zip(make_frozen.values(seed), FROZEN["values"][seed], strict=True):
            assert found[:2] == kept[:2]
            assert found[2] == pytest.approx(kept[2], abs=1e-9), (seed, found)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(make_frozen.ESTIMATES))
def test_estimates_are_unchanged_on_random_problems(seed):
    assert make_frozen.estimated(seed) == [
        FROZEN["estimates"][seed][0],
        # Ends of intervals differ by 1e-9 between processors.
        *(pytest.approx(v, abs=1e-8) for v in FROZEN["estimates"][seed][1:]),
    ]
