"""Figures, claims and side studies, on runs made up so that the answer is known."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaincinv

import calibrant
from calibrant.estimators import FIFTEEN
from calibrant.experiment import SIZES, Settings, Summary, Task, claims, figures, studies
from calibrant.experiment import summary as summaries
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.procedure import true_errors

SETTINGS = Settings(
    classes=(2,),
    features=(2,),
    seeds=tuple(range(12)),
    train_sets=1,
    families=studies.CHEAP,
    sizes=SIZES[:11],
)
USER = "calibrant.estimators.density.Density"


def made_up(factor=lambda *_: 1.0, settings=SETTINGS, truth=0.05, noise=0.002, rng=0):
    """A run whose errors are factor(estimator, size, notion, distribution) / sqrt(size), but for noise."""
    rng = np.random.default_rng(rng)
    tasks = settings.tasks()
    shape = (len(tasks), len(settings.notions), len(settings.estimators), len(settings.sizes))
    p95 = np.empty(shape)
    for m, j, k, i in np.ndindex(shape):
        n, name = settings.sizes[i], settings.estimators[k]
        p95[m, j, k, i] = factor(name, n, settings.notions[j], tasks[m].distribution) / n**0.5
    p95 *= np.exp(noise * rng.standard_normal(shape))
    exact = {name: p95.copy() for name in ("p95", "sd")} | {"failed": np.zeros(shape)}
    values = {"published": exact, "corrected": exact, "normalised": {k: v / truth for k, v in exact.items()}}
    truths = {notion: np.tile([truth, truth, 0.0], (len(tasks), 1)) for notion in settings.notions}
    models = [(task.distribution, task.train_set, task.family) for task in tasks]
    return Summary(settings, models, truths, values, [], {})


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
    now, then = (claims.claims(made_up(settings=s, noise=0), studies=False) for s in (SETTINGS, older))
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
    numbers = next(c.numbers for c in claims.claims(summary, studies=False) if c.text.startswith(SILVERMAN))
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


def test_silvermans_rule_spares_a_choice_if_no_fixed_bandwidth_is_closer():
    start = "Confidence: Silverman's rule spares"
    assert verdicts(start, made_up()) == {"holds"}
    assert verdicts(start, made_up(lambda name, *_: 0.9 if name == "d:0.1" else 1.0)) == {"does not hold"}
    assert verdicts(start, made_up(lambda name, *_: 0.9 if name == "l:10" else 1.0)) == {"holds"}


def test_what_the_paper_does_not_claim_is_marked():
    where = {claim.text: claim.where for claim in claims.claims(made_up(), studies=False)}
    for family in "la":
        assert where[f"Confidence: convex mapping improves {family} (same bins)"] == "5.2"
        assert where[f"Class-wise: convex mapping improves {family} (same bins)"] == "not claimed"


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        ((0, 0, 1, 1), "does not hold at N in 30-50, the small sizes; holds for N in 100-200"),
        ((0, 1, 0, 0), "does not hold at N in 30, the small sizes; holds for N in 50"),
        ((0, 0, 0, 0), "does not hold at N in 30-50, the small sizes"),
        ((1, 1, 0, 0), "holds only for N in 30-50"),
        ((1, 1, 1, 1), "holds"),
    ],
)
def test_small_sizes_decide_a_claim_about_small_data(ahead, verdict):
    assert claims._small(dict(zip((30, 50, 100, 200), map(bool, ahead), strict=True))) == verdict


def test_studies_join_the_claims_and_the_table_holds_every_one():
    found = claims.claims(made_up(), scale="smoke")
    text = claims.to_markdown(found)
    assert sum("study" in claim.verdicts for claim in found) == 16
    assert all(f"| {claim.text} |" in text for claim in found)
    width = [line.count("|") for line in text.splitlines() if line]
    assert set(width) == {7, 5}
    allowed = (claims.HOLDS, claims.FAILS, claims.OPEN, claims.NAMED)
    assert all(v.startswith(allowed) for claim in found for v in claim.verdicts.values())
    with pytest.raises(ValueError, match="scale"):
        claims.claims(made_up(), scale="huge")


# --- studies


def smoke(name):
    return getattr(studies, name)(**studies.SMOKE[name])


def test_shapes_have_their_known_true_errors():
    # Gauss-Legendre quadrature of |chance - score| against the beta density, to seven digits.
    known = (0.1022208, 0.1371566, 0.1307138, 0.0400685)
    for shape, truth in zip(studies.shapes(), known, strict=True):
        assert shape.truth == pytest.approx(truth, abs=3e-7)
        score = np.clip(betaincinv(*shape.scores, (np.arange(400_000) + 0.5) / 400_000), 1e-300, 1 - 1e-16)
        assert np.abs(shape.curve(score) - score).mean() == pytest.approx(truth, abs=3e-7)
        sample = studies.draw(shape, np.random.default_rng(0), 200_000)
        assert abs(sample.outcome.mean() - shape.curve(sample.score).mean()) < 0.005


def test_the_spread_of_two_families_is_their_ratio():
    summary = made_up(lambda name, *_: 0.5 if name.startswith("a:") else 1.0, noise=0.0)
    np.testing.assert_allclose(studies.spread(summary, "corrected", "confidence", "a", "l"), 0.5)


def test_resampled_distributions_keep_their_models_together():
    names = ["a", "a", "b", "c", "c"]
    for rows in summaries.resampled(names, 20):
        counts = np.bincount(rows, minlength=5)
        assert counts[0] == counts[1]
        assert counts[3] == counts[4]
        assert counts[[0, 2, 3]].sum() == 3


def test_the_best_number_of_bins_is_below_the_root():
    found = smoke("growth")
    assert all(found["best"][n] < found["root"][n] for n in found["best"])
    assert found["exponent"] < 0.6
    assert min(found["cost"].values()) >= 1


def test_the_curve_beats_an_interpolated_diagram_on_few_rows():
    found = smoke("interpolation")
    assert found[100]["curve"] < found[100]["diagram"]
    assert found[1000]["curve"] < found[100]["curve"]


def test_bandwidth_rules_are_relative_to_silvermans():
    assert all(one["silverman"] == 1 and 0.3 < one["scott"] < 3 for one in smoke("rules").values())


def test_kernels_and_bins_suffer_from_dimension_and_the_default_does_not():
    few, many = smoke("dimension").values()
    assert many["kernels"] > few["kernels"]
    assert many["bins"] > few["bins"]
    assert max(few["default"], many["default"]) < 0.1


def test_beta_kernels_are_relative_to_silvermans_rule():
    for one in smoke("kernels").values():
        assert one["silverman"] == 1
        assert 0.3 < one["first"] != one["second"] < 3


def test_ace_is_the_adaptive_ece_only_with_equal_counts():
    found = smoke("ace")
    assert found["equal"] < 1e-14 < 1e-6 < found["unequal"]


def test_the_cost_is_told_by_rows_and_points():
    found = smoke("cost")
    assert all(seconds > 0 for part in found.values() for seconds in part.values())
    assert set(found["rows"]) == set(found["beta"])


def test_the_cost_does_not_depend_on_what_else_the_machine_does(monkeypatch):
    from threadpoolctl import threadpool_info

    threads = []
    fit = studies.DensityBeta.fit

    def watched(self, sample):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(self, sample)

    monkeypatch.setattr(studies.DensityBeta, "fit", watched)
    # Processor time of one thread: a second thread that waits for a core would count as well.
    clock = iter(range(1000))
    monkeypatch.setattr(studies, "process_time", lambda: float(next(clock)))
    found = studies.cost(sizes=(1000,), points=(1024,), repetitions=2)
    assert found == {"rows": {1000: 1.0}, "points": {1024: 1.0}, "beta": {1000: 1.0}}
    assert set(threads) == {1}


def test_the_second_beta_kernel_is_judged_as_figure_2_judges():
    options = studies.SMOKE["kernels_on_models"] | {"most": 2}
    found = studies.kernels_on_models(**options)
    names = ("d:silverman", "density-beta2")
    tasks = Settings(seeds=(0, 1), train_sets=1).tasks()[:2]
    errors = []
    for task, (score, label, chance) in zip(tasks, studies._cheap(tasks, 300, 5000), strict=True):
        truth = true_errors(score, label, chance, ("confidence",))["confidence"].exact
        off = []
        for rows in rng_of(task.name, "kernels", 100).integers(0, 5000, (10, 100)):
            data = (label[rows], score[rows])
            off.append(
                [abs(calibrant.ece(*data, notion="confidence", estimator=name) - truth) for name in names]
            )
        errors.append(np.percentile(off, 95, axis=0))
    silverman, beta = np.median(errors, axis=0)
    assert set(found) == {"confidence", "classwise"}
    assert found["confidence"][100][0] == pytest.approx(beta / silverman, rel=2e-2)  # another grid


def test_percentiles_of_bootstrapped_curves_cover_too_little():
    found = smoke("bootstrap_coverage")
    assert all(0.2 < coverage < 0.9 for coverage in found.values())
    assert found[500] < found[100]


def test_reflection_keeps_the_mass_and_the_authors_three_quarters_of_it():
    found = smoke("mass")
    np.testing.assert_allclose(list(found["calibrant"].values()), 1, atol=1e-9)
    np.testing.assert_allclose([found["authors"][h] for h in (0.033, 0.1)], 0.75, atol=1e-12)
    np.testing.assert_allclose([found["once"][h] for h in (0.033, 0.1)], 1, atol=1e-12)
    assert found["none"][0.4] < found["none"][0.1] < found["none"][0.033] < 0.95


def test_proper_scores_are_not_calibration():
    found = smoke("proper_scores")
    (error, brier), (same, other) = found["pair"]
    assert error == pytest.approx(same)
    assert (brier, other) == pytest.approx((0.17, 0.26))
    assert 0 < found["brier"]["crossed"] < 1
    assert abs(found["nll"]["correlation"]) < 0.95


def test_heuristics_are_consistent_and_fixed_choices_are_not():
    found = smoke("consistency")
    assert {name for name, one in found.items() if one["vanishes"]} == {"l:sqrt", "d:silverman"}


def test_sharpness_finds_a_loss_that_grows_with_it():
    summary = made_up(noise=0.0)
    options = studies.SMOKE["sharpness"] | {"most": 24}
    tasks = [Task(*model) for model in summary.models]
    sharp = [np.mean(np.abs(p - 0.5) > 0.48) for p, _, _ in studies._cheap(tasks, 300, options["rows"])]
    silverman = FIFTEEN.index("d:silverman")
    summary.values["corrected"]["p95"][:, 1, silverman] *= 1 + np.array(sharp)[:, None]
    found = studies.sharpness(summary, "corrected", **options)
    assert found["correlation"] == pytest.approx(1)
    assert found["low"] > 0.9
    assert found["sharp"] > found["blunt"]
    assert found["models"] == 24
