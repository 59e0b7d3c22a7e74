"""What is printed about assessments of several shapes: p-values, numbers of things, levels, sample sizes."""

import pytest

from calibrant.inputs.wording import counted, percent, sample_size

pytestmark = [pytest.mark.usefixtures("without_reference_estimators"), pytest.mark.no_cover]


def test_numbers_are_worded():
    assert [counted(n, "class") for n in (0, 1, 2)] == ["0 classes", "1 class", "2 classes"]
    levels = (0.5, 0.683, 0.9, 0.95, 0.975, 0.99, 1 - 0.05 / 12, 1 - 0.05 / 45, 0.9999)
    assert [percent(level) for level in levels] == [
        *("50 %", "68.3 %", "90 %", "95 %", "97.5 %", "99 %", "99.58 %", "99.89 %", "99.99 %")
    ]
    assert sample_size(1e6) == "1,000,000 rows"
