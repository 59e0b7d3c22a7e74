"""Figures and claims, on runs made up so that the answer is known."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from calibrant.estimators import FIFTEEN
from calibrant.experiment import SIZES, claims, figures
from calibrant.experiment import summary as summaries
from made_up_runs import SETTINGS, made_up

USER = "calibrant.estimators.density.Density"


def verdicts(start, summary):
    (statement,) = [one for one in claims.statements() if one.text.startswith(start)]
    return set(statement.judge(summary, partial(claims.View, summary)).verdicts.values())


def curves(ax):
    hidden = ("_", "zero", "best constant")
    return [line for line in ax.lines if not line.get_label().startswith(hidden)]


# --- figures


def test_figure_2_has_the_fifteen_and_the_default_on_log_axes_in_each_panel():
    figure = figures.figure2(made_up(), "published")
    assert len(figure.axes) == 2
    for ax in figure.axes:
        assert {line.get_label() for line in curves(ax)} == {*FIFTEEN, "auto"}
        assert ax.get_xscale() == ax.get_yscale() == "log"
        assert set(ax.get_xticks()) <= set(SETTINGS.sizes)
        assert len({line.get_color() for line in curves(ax)}) == 6
        assert "auto" in [text.get_text() for text in ax.texts]
        looks = {(line.get_color(), line.get_linestyle(), line.get_linewidth()) for line in curves(ax)}
        assert len(looks) >= 10


def test_figure_2_has_the_baselines_in_every_reading():
    summary = made_up()
    summary.truth["confidence"][:, :2] = np.linspace(0.02, 0.1, len(summary.models))[:, None]
    for reading in ("published", "corrected", "normalised"):
        confidence, classwise = figures.figure2(summary, reading).axes
        lines = {line.get_label(): line.get_ydata() for line in confidence.lines}
        for name, error in zip(
            ("zero", "best constant"), summary.baselines(reading, "confidence"), strict=True
        ):
            np.testing.assert_array_equal(lines[name], [error, error])
            assert name in [text.get_text() for text in confidence.texts]
        # All class-wise errors are alike, so that the best constant is right and has no place on a log axis.
        assert "best constant" not in {line.get_label() for line in classwise.lines}


def test_a_run_without_the_default_is_drawn_and_judged_all_the_same():
    older = replace(SETTINGS, estimators=FIFTEEN)
    for ax in figures.figure2(made_up(settings=older), "published").axes:
        assert {line.get_label() for line in curves(ax)} == set(FIFTEEN)
    now, then = (claims.claims(made_up(settings=s, noise=0)) for s in (SETTINGS, older))
    assert [claim.verdicts for claim in now] == [claim.verdicts for claim in then]


def test_an_estimator_of_the_users_is_black_with_markers_and_named():
    summary = made_up(settings=replace(SETTINGS, estimators=(*FIFTEEN, USER)))
    summary.values["published"] = summary.values["corrected"] | {
        "p95": np.where(np.arange(16) == 15, np.nan, 1.0)[:, None] * np.ones((24, 2, 16, 11))
    }
    for reading, count in (("corrected", 16), ("published", 15)):
        for ax in figures.figure2(summary, reading).axes:
            assert len(curves(ax)) == count
            own = [line for line in curves(ax) if line.get_label() == USER]
            assert all(line.get_color() == "black" and line.get_marker() not in ("", "None") for line in own)
            assert ("Density" in [text.get_text() for text in ax.texts]) == bool(own)


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_a_run_with_one_notion_has_one_panel(notion):
    assert len(figures.figure2(made_up(settings=replace(SETTINGS, notions=(notion,)))).axes) == 1


@pytest.mark.parametrize("sizes", [(30,), (30, 443), SIZES])
def test_figure_2_serves_any_sizes(sizes):
    figure = figures.figure2(made_up(settings=replace(SETTINGS, sizes=sizes)), "normalised")
    assert figure.axes[0].get_xticks()[-1] == max(sizes)
    figure.draw_without_rendering()


def test_the_title_says_the_reading_in_words():
    for reading, words in figures.WORDS.items():
        assert any(words in text.get_text() for text in figures.figure2(made_up(), reading).texts)
    with pytest.raises(ValueError, match="reading must be one of published, corrected"):
        figures.figure2(made_up(), "other")


def test_names_beside_the_curves_do_not_overlap():
    figure = figures.figure2(made_up(), "corrected")  # fifteen curves that all but coincide
    figure.draw_without_rendering()
    for ax in figure.axes:
        named = {*FIFTEEN, "auto"}
        boxes = [text.get_window_extent().extents for text in ax.texts if text.get_text() in named]
        boxes.sort(key=lambda box: box[1])
        assert len(boxes) == 16
        assert all(low[3] <= high[1] + 1.5 for low, high in pairwise(boxes))
        assert boxes[-1][2] < figure.bbox.x1


def test_places_move_apart_as_little_as_they_need():
    place = np.sort(np.random.default_rng(0).random(9))
    moved = figures.spread_apart(place, 0.1)
    assert np.diff(moved).min() > 0.1 - 1e-12
    assert 0 <= moved.min() <= moved.max() <= 1
    np.testing.assert_array_equal(figures.spread_apart(np.array([0.2, 0.5, 0.8]), 0.1), [0.2, 0.5, 0.8])


def test_figure_1_has_three_panels_and_leaves_no_trace():
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    before, shown = dict(mpl.rcParams), plt.get_fignums()
    figure = figures.figure1(seed=1)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert len(titles) == 3
    assert all(word in title for word, title in zip(("15 bins", "0.03", "500"), titles, strict=True))
    assert plt.get_fignums() == shown
    assert dict(mpl.rcParams) == before


# --- claims

SILVERMAN = "Confidence: the density with Silverman's rule"


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (0.8, "holds"),
        (1.015, "holds"),  # a tie
        (1.05, "does not hold"),
        (lambda n: 0.8 if n > 100 else 1.2, "holds only for N in 115-443"),
        (lambda n: 1.2 if n in (51, 67, 115) else 0.8, "holds only for N in 29-39, 88, 150-443"),
        (lambda n: 0.8 if n > 29 else 1.2, "holds"),  # almost all regimes
    ],
)
def test_the_verdict_on_silverman_follows_the_errors(factor, verdict):
    def errors(name, n, notion, _):
        return (factor(n) if callable(factor) else factor) if name == "d:silverman" else 1.0

    assert verdicts(SILVERMAN, made_up(errors)) == {verdict}


def test_what_depends_on_the_distributions_drawn_is_not_decided():
    def errors(name, n, notion, distribution):
        return (0.8 if int(distribution[-1]) % 2 else 1.25) if name == "d:silverman" else 1.0

    assert verdicts(SILVERMAN, made_up(errors)) == {claims.OPEN}


def test_the_share_of_resamples_is_told():
    summary = made_up(lambda name, *_: 0.8 if name == "d:silverman" else 1.0)
    numbers = next(c.numbers for c in claims.claims(summary) if c.text.startswith(SILVERMAN))
    assert "N=29 1.00 (best in 100 %)" in numbers


@pytest.mark.parametrize(
    ("start", "better", "worse"),
    [
        ("Confidence: convex mapping improves l", "c", "l"),
        ("Class-wise: convex mapping improves a", "ac", "a"),
        ("Confidence: adaptive binning underperforms", "l", "a"),
        ("Confidence: adaptivity increases the variance", "l", "a"),
    ],
)
def test_families_are_compared_with_the_same_bins(start, better, worse):
    def errors(one, other):
        scale = {one: 0.9, other: 1.0}
        return lambda name, *_: scale.get(name.partition(":")[0], 1.0) * (3 if name.endswith("30") else 1)

    assert verdicts(start, made_up(errors(better, worse))) == {"holds"}
    assert verdicts(start, made_up(errors(worse, better))) == {"does not hold"}
    assert verdicts(start, made_up()) == {"does not hold"}  # a tie is no improvement


def test_ten_percent_is_of_the_true_value():
    def errors(name, n, *_):
        return 0.1 * n**0.5

    start = "Confidence: at small N the error is around 10 %"
    assert verdicts(start, made_up(errors, truth=1.0)) == {"holds"}
    assert verdicts(start, made_up(errors, truth=0.05)) == {"does not hold"}  # 0.1 of 0.05 is 200 %
    assert verdicts("Confidence: at small N the error of all", made_up(errors, truth=0.05)) == {"holds"}


def test_square_root_bins_lose_where_they_exceed_ten():
    grow = made_up(lambda name, n, *_: (n / 100) ** 0.25 if name.endswith("sqrt") else 1.0)
    for word in ("Confidence", "Class-wise"):
        assert verdicts(f"{word}: √N bins", grow) == {"holds"}
        assert verdicts(f"{word}: √N bins", made_up()) == {"does not hold"}


def test_class_wise_claims():
    def errors(name, n, notion, _):
        best = "ac:sqrt" if n < 100 else "ac:10"
        rule = 1.3 if notion == "classwise" and name == "d:silverman" else 1.0
        return 0.8 if notion == "classwise" and name == best else rule

    summary = made_up(errors)
    for start in (
        "Class-wise: no estimator",
        "Class-wise: below 100",
        "Class-wise: from 100",
        "Silverman's rule is",
    ):
        assert verdicts(start, summary) == {"holds"}
    always = made_up(lambda name, *_: 0.8 if name == "ac:sqrt" else 1.0)
    assert verdicts("Class-wise: no estimator", always) == {"does not hold"}
    assert verdicts("Class-wise: from 100", always) == {"does not hold"}


def test_many_estimators_are_similar_above_300_samples():
    start = "Confidence: above 300 samples"
    assert verdicts(start, made_up()) == {"holds"}
    assert verdicts(start, made_up(lambda name, *_: 0.5 if name == "d:0.1" else 1.0)) == {"does not hold"}


@pytest.mark.parametrize(
    "change", [{"notions": ("classwise",)}, {"estimators": FIFTEEN[:-1]}, {"sizes": (600,)}]
)
def test_what_a_run_lacks_stays_open(change):
    summary = made_up(settings=replace(SETTINGS, **change))
    start = "Class-wise: below 100" if "sizes" in change else SILVERMAN
    assert verdicts(start, summary) == {claims.OPEN}


def test_silvermans_rule_avoids_a_choice_if_no_fixed_bandwidth_is_closer():
    start = "Confidence: Silverman's rule avoids"
    assert verdicts(start, made_up()) == {"holds"}
    assert verdicts(start, made_up(lambda name, *_: 0.9 if name == "d:0.1" else 1.0)) == {"does not hold"}
    assert verdicts(start, made_up(lambda name, *_: 0.9 if name == "l:10" else 1.0)) == {"holds"}


def test_what_the_paper_does_not_claim_is_marked():
    where = {claim.text: claim.where for claim in claims.claims(made_up())}
    for family in "la":
        assert where[f"Confidence: convex mapping improves {family} (same bins)"] == "5.2"
        assert where[f"Class-wise: convex mapping improves {family} (same bins)"] == "not claimed"


def test_the_table_holds_every_claim():
    found = claims.claims(made_up())
    text = claims.to_markdown(found)
    assert all(f"| {claim.text} |" in text for claim in found)
    assert {line.count("|") for line in text.splitlines()} == {7}
    allowed = (claims.HOLDS, claims.FAILS, claims.OPEN)
    assert all(v.startswith(allowed) for claim in found for v in claim.verdicts.values())


def test_the_spread_of_two_families_is_their_ratio():
    summary = made_up(lambda name, *_: 0.5 if name.startswith("a:") else 1.0, noise=0.0)
    view = claims.View(summary, "corrected", "confidence", relative=False)
    np.testing.assert_allclose(view.deviation("a", "l"), 0.5)


def test_resampled_distributions_keep_their_models_together():
    names = ["a", "a", "b", "c", "c"]
    for rows in summaries.resampled(names, 20):
        counts = np.bincount(rows, minlength=5)
        assert counts[0] == counts[1]
        assert counts[3] == counts[4]
        assert counts[[0, 2, 3]].sum() == 3
