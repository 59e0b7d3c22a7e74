"""Where canonical calibration cannot be measured, that is said before anything is read."""

import numpy as np
import pytest

import calibrant
from calibrant import InputError, Sketch

UNREAD = object()
ONE_SCORE = {
    "curve": lambda: calibrant.reliability_curve(UNREAD, UNREAD, notion="canonical"),
    "diagram": lambda: calibrant.reliability_diagram(UNREAD, UNREAD, notion="canonical"),
    "histogram": lambda: calibrant.score_histogram(UNREAD, UNREAD, notion="canonical"),
    "lce": lambda: calibrant.lce(UNREAD, UNREAD, UNREAD, notion="canonical"),
    "recommend": lambda: calibrant.recommend(UNREAD, notion="canonical"),
    "sketch": lambda: Sketch(notion="canonical"),
    "files": lambda: Sketch.from_files("nowhere", notion="canonical"),
    "files by group": lambda: Sketch.from_files_by_group("nowhere", groups="g", notion="canonical"),
    "frame": lambda: Sketch.from_frame(UNREAD, label="y", scores="p", notion="canonical"),
    "frame by group": lambda: Sketch.from_frame_by_group(
        UNREAD, label="y", scores="p", groups="g", notion="canonical"
    ),
}


@pytest.mark.parametrize("ask", ONE_SCORE.values(), ids=ONE_SCORE)
def test_what_looks_at_one_score_refuses_before_anything_is_read(ask):
    with pytest.raises(InputError, match="notion must compare one score at a time here, got 'canonical'"):
        ask()


@pytest.mark.parametrize("ask", [calibrant.ece, calibrant.estimate, calibrant.assess])
def test_clusters_are_refused_before_anything_is_read(ask):
    with pytest.raises(InputError, match="cluster must go with one score at a time"):
        ask(UNREAD, UNREAD, notion="canonical", cluster=UNREAD)


def test_models_and_maps_in_clusters_are_refused_too():
    models = {"a": UNREAD, "b": UNREAD}
    for ask, scores in ((calibrant.compare, models), (calibrant.compare_calibrators, UNREAD)):
        with pytest.raises(InputError, match="cluster must go with one score at a time"):
            ask(UNREAD, scores, notion="canonical", cluster=UNREAD)


def test_the_largest_gap_is_refused_before_anything_is_read():
    with pytest.raises(InputError, match="norm must be one of 'l1', 'l2', 'mul', got 'max'"):
        calibrant.ece(UNREAD, UNREAD, notion="canonical", norm="max")
    with pytest.raises(InputError, match="norm must be one of 'l1', 'l2', 'mul', got 'max'"):
        calibrant.mce(UNREAD, UNREAD, notion="canonical")


def test_the_paper_s_norm_is_of_whole_rows_alone():
    for ask in (calibrant.ece, calibrant.estimate):
        with pytest.raises(InputError, match=r"norm must be one of .*, got 'mul'"):
            ask([0, 1], [0.2, 0.7], norm="mul")


def test_maps_are_compared_by_whole_rows():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 90)
    label = (rng.random((90, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    found = calibrant.compare_calibrators(p, label, notion="canonical", methods=["temperature"], cv=2, rng=0)
    assert found.notion == "canonical"
    assert type(found).from_json(found.to_json()).to_json() == found.to_json()
