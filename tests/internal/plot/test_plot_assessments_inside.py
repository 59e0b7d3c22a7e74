"""Pictures take the results that a user has at hand."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant
from calibrant import plot
from calibrant.inputs import house_style as house
from shortcuts import compare_estimators

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    return calibrant.assess(rng.random(200) < score**2, score, groups=np.arange(200) % 3, rng=0)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(1)
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        return calibrant.assess(
            rng.integers(0, 3, 150), rng.dirichlet([1, 1, 1], 150), notion="classwise", rng=0
        )


def written(ax):
    return [text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)]


def test_groups_of_an_assessment_show_signed_gaps_and_the_range_expected_if_calibrated(binary):
    ax = plot.groups(binary)
    ordered = sorted(binary.by_group, key=lambda row: -abs(row.gap.value))
    assert [label.get_text() for label in ax.get_yticklabels()] == [row.name for row in ordered]
    marks = np.concatenate([each.get_offsets() for each in ax.collections if each.get_zorder() == 4])
    np.testing.assert_allclose(sorted(marks[:, 0]), sorted(row.gap.value for row in ordered))
    ranges = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 6]
    np.testing.assert_allclose(ranges, [[-row.gap.expected, row.gap.expected] for row in ordered])
    low, high = ax.get_xlim()
    assert low == -high
    assert ax.get_xlabel() == house.GAP
    assert house.EXPECTED in written(ax)
    # The scores are too high: each gap, frequency minus score, is negative.
    assert all(row.gap.value < 0 for row in ordered)
    assert house.SIDES[0] in written(ax)


def test_classes_are_groups_of_a_class_wise_result(many):
    by_class = {row.name: row.estimate for row in many.by_class}
    assert written(plot.groups(many.estimate)) == written(plot.groups(by_class, overall=many.estimate))
    signed = plot.groups(many)
    ordered = sorted(many.by_class, key=lambda row: -abs(row.gap.value))
    assert [label.get_text() for label in signed.get_yticklabels()] == [row.name for row in ordered]
    assert signed.get_xlabel() == house.GAP
    assert len(plot.small_multiples(many)) == 3
