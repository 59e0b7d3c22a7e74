"""Pictures take the results that a user has at hand."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant
from calibrant import plot
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


@pytest.mark.full
@pytest.mark.parametrize("name", ["curve", "diagram", "overlay", "local_error", "groups", "estimators"])
def test_an_assessment_is_drawn(binary, name):
    assert getattr(plot, name)(binary).figure is not None


def test_the_gap_of_a_group_is_that_of_its_rows():
    rng = np.random.default_rng(4)
    score, group = rng.random(600), np.arange(600) % 2
    outcome = rng.random(600) < np.where(group, score, score**3)
    found = calibrant.assess(outcome, score, groups=group, rng=0)
    for row in found.by_group:
        held = group == int(row.name)
        p, y = score[held], outcome[held]
        assert row.gap.value == -row.estimate.mean_difference
        raw = y.mean() - p.mean()
        z = row.gap.expected / np.sqrt(np.mean(p * (1 - p)) / p.size)
        assert row.gap.high - raw == pytest.approx(z * np.std(y - p) / np.sqrt(p.size))
        assert raw - row.gap.low == pytest.approx(row.gap.high - raw)
    off, fine = sorted(found.by_group, key=lambda row: -abs(row.gap.value))
    assert abs(off.gap.value) > off.gap.expected
    assert abs(fine.gap.value) < fine.gap.expected


def test_of_many_groups_the_largest_are_drawn(binary, many):
    names = [row.name for row in many.by_class]
    ax = plot.groups(many.estimate, most=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == names[:2]
    assert "2 of 3, the largest" in written(ax)
    signed = plot.groups(binary, most=1)
    assert len(signed.get_yticklabels()) == 1
    assert any(text.endswith(f"1 of {len(binary.by_group)}, the largest") for text in written(signed))
    assert not any("the largest" in text for text in written(plot.groups(many.estimate)))


def test_models_are_drawn_from_assessments(binary):
    assert written(plot.models({"a": binary})) == written(plot.models({"a": binary.curve}))


def test_what_cannot_be_drawn_is_named(binary, many):
    with pytest.raises(
        TypeError, match=r"curve must be of one class, got one for each class.*small_multiples"
    ):
        plot.curve(many)
    with pytest.raises(ValueError, match="at least one name to an Estimate, got none"):
        plot.groups(binary.estimate)


def test_a_page_without_a_path_is_returned(binary, tmp_path):
    assert binary.to_html() == binary.html()
    assert binary.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == binary.html()
