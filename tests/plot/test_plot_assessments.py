"""Pictures take the results that a user has at hand."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant
from calibrant import plot

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
        patch.setattr("calibrant.assessment.assess.REFERENCE_ESTIMATORS", ())
        return calibrant.assess(
            rng.integers(0, 3, 150), rng.dirichlet([1, 1, 1], 150), notion="classwise", rng=0
        )


def written(ax):
    return [text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)]


@pytest.mark.parametrize("name", ["curve", "diagram", "overlay", "local_error", "groups", "estimators"])
def test_an_assessment_is_drawn(binary, name):
    assert getattr(plot, name)(binary).figure is not None


def test_groups_are_those_of_an_assessment_with_all_rows_together(binary):
    given = plot.groups({row.name: row.estimate for row in binary.by_group}, overall=binary.estimate)
    assert written(plot.groups(binary)) == written(given)


def test_classes_are_groups_of_a_class_wise_result(many):
    by_class = {row.name: row.estimate for row in many.by_class}
    given = written(plot.groups(by_class, overall=many.estimate))
    assert written(plot.groups(many)) == given
    assert written(plot.groups(many.estimate)) == given
    assert len(plot.small_multiples(many)) == 3


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
