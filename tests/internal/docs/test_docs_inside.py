"""What the documents show is what the software does."""

from pathlib import Path

import matplotlib.pyplot
import pytest

from calibrant.estimators import describe

pytestmark = pytest.mark.no_cover

matplotlib.use("Agg")
ROOT = Path(__file__).parents[3]


def test_the_reference_lists_the_registry():
    text = (ROOT / "docs" / "reference" / "estimators.md").read_text()
    for entry in describe():
        assert f"| `{entry.name}` | `{entry.short}` |" in text
