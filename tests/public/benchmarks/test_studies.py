"""A smoke version of every study in benchmarks/; the full ones are run by hand."""

import sys
from dataclasses import replace
from functools import partial
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import experiment
from oracles import decisions as oracle

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

FOLDER = Path(__file__).parents[3] / "benchmarks"


def study(name):
    spec = util.spec_from_file_location(f"study_{name}", FOLDER / f"{name}.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_width_of_an_interval_is_held_against_the_least(monkeypatch):
    coverage = study("coverage")
    monkeypatch.setattr(coverage, "intervals", lambda *_: np.array([[0.1, 0.1], [0.05, 0.0], [0.15, 0.2]]))
    found = coverage.one_cell(coverage.Cell("square", "binary", 0.0, 400, 2))
    # Calibrated and uniform: Brier is the mean of p (1 - p), a sixth.
    assert found["ratio"] == pytest.approx(0.15 / (3.92 * np.sqrt(1 / 6 / 400)), rel=3e-3)
    assert (found["coverage"], found["above"]) == (0.5, 0.5)


def test_the_study_of_the_test_of_whole_vectors(monkeypatch):
    canonical = study("canonical_test")
    monkeypatch.setattr(canonical, "SIMS", 39)
    usual = canonical.score_test.SIMULATED
    for kind in ("net", "counts", "weights", "few", "zeros", "parts"):
        assert (canonical.size_cell((kind, 3, 60, 6)) <= 0.7).all()
    assert usual == canonical.score_test.SIMULATED
    ours, pairs, error = canonical.power_cell(("pairs", 4, 300, 3.0, 3))
    assert ours == 1
    assert 0 <= pairs <= 1
    assert error > 0.2
    assert {name for name, *_ in canonical.POWERS} == set(canonical.STRENGTHS)
    p = canonical.scores("flat", 5, 50, np.random.default_rng(0))
    for name in canonical.STRENGTHS:
        eta = canonical.mapped(name, p)
        assert (eta >= 0).all()
        assert eta.sum(axis=1) == pytest.approx(1)


def test_the_study_of_kernels_on_the_simplex(monkeypatch):
    dirichlet = study("dirichlet")
    monkeypatch.setattr(dirichlet, "LARGE", 2000)
    monkeypatch.setattr(dirichlet, "MAPS", ("none", "pull"))
    p = dirichlet.families.scores("flat", 3, 64, np.random.default_rng(0))
    assert np.bincount(dirichlet.halves(p, 4)).tolist() == [4] * 16
    assert dirichlet.grid(np.array([[0.1, 0.9], [0.19, 0.81], [0.3, 0.7]]), 5).tolist() == [0, 0, 1]
    y = np.zeros(64, int)
    assert dirichlet.binned(p, y, np.zeros(64, int)) == pytest.approx(2 * (1 - p[:, 0].mean()))
    found = dirichlet.one_cell((3, 260, 1))
    assert found.shape == (4, len(dirichlet.BINNED) + len(dirichlet.FIXED) + 2)
    # Of a calibrated model; the default comes last.
    assert 0 <= found[0, -1] < found[0, :-1].min()


PAIRS = ["opposite", "alike", "calibrated", "apart", "spread, step", "spread, top", "spread, certain"]
PAIRS += ["spread, leaves"]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_study_of_comparisons(pair):
    paired = study("paired")
    known = paired.PAIRS | paired.LOCAL_PAIRS | paired.LEAF_PAIRS
    assert set(PAIRS) == set(known)
    assert paired.one_cell((pair, 200, 5))[0] <= 0.6
    # Both models of a pair have the same error.
    chance, *scores = known[pair](np.random.default_rng(0), 400_000)
    outcome = np.random.default_rng(1).random(chance.size) < chance
    estimator = "auto" if pair in paired.LEAF_PAIRS else "debiased:100"
    one, other = (calibrant.ece(outcome, np.clip(score, 0, 1), estimator=estimator) for score in scores)
    assert one == pytest.approx(other, abs=0.004)


def test_the_study_of_comparisons_of_other_rows():
    paired = study("paired")
    for mode in paired.OTHER_MODES:
        alarms, held, rho = paired.one_cell(("unequal", 120, 3, mode))
        assert 0 <= alarms <= 1
        assert held > 0
        assert (rho == 0) == (not mode.startswith("own"))
    # Scores of a question are shared, and the chance of an outcome stays that of its row.
    chance, low, _ = paired.EVERY_PAIR["unequal"](np.random.default_rng(0), 200_000)
    assert np.abs(chance - low).mean() == pytest.approx(-paired.OTHER_PAIRS["unequal"], abs=1e-3)
    rows = list(paired.answers(np.random.default_rng(0), "unequal", 100_000, "own-outcomes clusters"))
    for (outcome, score, question), truth in zip(rows, (0.05, 0.0), strict=True):
        assert np.bincount(question).max() == 10
        assert calibrant.ece(outcome, score, estimator="debiased:50") == pytest.approx(truth, abs=0.008)


def test_the_study_of_bands():
    bands = study("curve_band")
    assert len({family.name for family in bands.ALL}) == len(bands.ALL)
    places = {family.name: family for family in bands.ALL}
    assert 0.9 in places["prior-43"].places
    assert places["prior-43"].frequency(np.array([0.9])) == pytest.approx([0.9 / (0.9 + 43 * 0.1)])
    results = {}
    for name in ("even", "prior-5", "seven"):
        for n in bands.SIZES:
            results[name, n] = bands.study(places[name], min(n, 500), 0.01, ("corrected", "default"))
    coverage, width, middle = results["even", 500]["default"]
    assert coverage.shape == width.shape == middle.shape == (5,)
    assert coverage.mean() >= 0.6
    text = "\n".join([*bands.cells(results, "default"), *bands.local_cells(results, "default")])
    assert "| even | 500 |" in text
    assert "| seven | 500 | 0.25 | 0.193 |" in text
    summary = "\n".join(bands.summary(results, ("corrected", "default")))
    assert "| default | few scores |" in summary
    assert "| default | wavy |" not in summary


@pytest.mark.parametrize("scores", ["own", "near", "shared"])
def test_the_study_of_clusters(scores):
    clusters = study("clusters")
    ours, plain = clusters.one_cell(("square", 0.3, 20, 0.5, scores, 4, "auto"))
    assert ours[0] >= 0.5
    assert ours[3] > plain[3]
    # Outcomes keep their probability, and correlate as they should.
    score, outcome, cluster = clusters.draw(np.random.default_rng(0), "square", 0, 4000, 0.3, scores)
    assert outcome.mean() == pytest.approx(score.mean(), abs=0.015)
    rest = (outcome - score) / np.sqrt(score * (1 - score))
    pairs = np.bincount(cluster, rest) ** 2 - np.bincount(cluster, rest**2)
    size = np.bincount(cluster)
    assert pairs.sum() / (size * (size - 1)).sum() == pytest.approx(0.3, abs=0.1)


def test_the_study_of_clusters_compares_models():
    assert study("clusters").paired_cell((20, 0.3, 2)).shape == (2,)


def test_the_study_of_curves_of_clusters():
    curves = study("cluster_curves")
    assert len(curves.cells()) == 42
    found = dict(
        zip(curves.COLUMNS, curves.one_cell(("square", 1.0, 10, 0.5, "shared", 300, 8, True)), strict=True)
    )
    assert found["band"] > 0.8 > found["band alone"]
    assert found["bins"] > found["bins alone"]
    assert found["whole"] >= 0.5
    score, chance, outcome, cluster = curves.draw(
        np.random.default_rng(0), "square", 0.0, 10, 0.5, "own", 40_000
    )
    np.testing.assert_array_equal(score, chance)
    assert outcome.mean() == pytest.approx(0.5, abs=0.02)
    sums = np.bincount(cluster, outcome - score)
    # Of pairs of a cluster, with probabilities that are drawn anew, about .43 of what equal ones have.
    assert 1.5 < (sums**2).mean() / (10 * ((outcome - score) ** 2).mean()) < 5.5


def test_the_study_of_clusters_measures_the_size_of_the_test():
    assert study("clusters").size_cell((20, 0.5, "shared", 20)) <= 0.3


@pytest.mark.parametrize("kind", ["known", "source", "calibrator", "classes"])
def test_the_study_of_shifted_priors(kind):
    held, width, error = study("prior_shift").one_cell(((kind, 2.0, 0.3, 300), 0, 2))
    assert held in (0.0, 0.5, 1.0)
    assert 0.02 < width < 0.5
    assert error < width


@pytest.mark.parametrize("notion", ["top-label", "multilabel"])
def test_the_study_of_notions(notion):
    notions = study("notions")
    assert notions.truth(notion, "calibrated") == 0
    label, score = notions.draw(np.random.default_rng(0), notion, "miscalibrated", 100_000)
    binned = calibrant.ece(label, score, notion=notion, estimator="uniform:20")
    assert binned == pytest.approx(notions.truth(notion, "miscalibrated"), abs=0.005)
    held, rejected, width, value = notions.one_cell(((notion, "miscalibrated", 300), 1))
    assert {held, rejected} <= {0.0, 1.0}
    assert abs(value - notions.truth(notion, "miscalibrated")) < width


def test_the_study_of_maps_has_enough_families():
    maps = study("maps")
    assert len(maps.FAMILIES) >= 16 + 8
    assert {family.kind for family in maps.FAMILIES.values()} == {"smooth", "local", "rough"}
    for family in maps.FAMILIES.values():
        score, truth = family.truth()
        assert score.size == truth.size == maps.POINTS
        assert ((score >= 0) & (score <= 1) & (truth >= 0) & (truth <= 1)).all()
        drawn, outcome = family.draw(20_000, np.random.default_rng(0))
        assert drawn.mean() == pytest.approx(score.mean(), abs=0.02)
        assert outcome.mean() == pytest.approx(truth.mean(), abs=0.02)
    for scores, chance in maps.CLASSES.values():
        truth = chance(scores(500, 5, np.random.default_rng(0)))
        assert truth.min() >= -1e-12
        assert truth.sum(axis=1) == pytest.approx(np.ones(500))


def test_the_study_of_maps_counts_what_is_lost_against_the_truth(capsys):
    maps = study("maps")
    assert maps.excess(np.array([0.5]), np.array([0.25])) == pytest.approx(
        (0.5 * np.log(2) + 0.5 * np.log(2 / 3), 1 / 16)
    )
    chosen = ["auto", "identity", "temperature"]
    cells = {(name, 50): maps.one_cell(name, 50, 1, chosen, True) for name in maps.FAMILIES}
    assert cells["right", 50]["identity"] == pytest.approx([0, 0], abs=1e-12)
    assert cells["anti-ordered", 50]["identity"][0] > cells["anti-ordered", 50]["temperature"][0]
    covered = [cells[name, 50]["cover"][0] for name in maps.FAMILIES]
    assert np.mean(covered) > 0.8
    maps.show_one(cells, [50], chosen)
    maps.show_interval(cells, [50])
    printed = capsys.readouterr().out
    best = sum(min(cells[name, 50][key][0] for key in chosen[1:]) for name in maps.FAMILIES)
    ratio = sum(cells[name, 50]["auto"][0] for name in maps.FAMILIES) / best
    assert f" | {ratio:.2f} | " in printed
    assert "| stairs | rough |" in printed


def test_the_study_of_maps_of_many_classes(monkeypatch):
    maps = study("maps")
    monkeypatch.setattr(maps, "GROUPS", {"few": (50,)})
    monkeypatch.setattr(maps, "CLASSES", {name: maps.CLASSES[name] for name in ("right", "too sure")})
    means = maps.many(0.01, classes=(3,))
    assert set(means["few"]) == set(maps.MANY)
    assert all(value >= 0 for value in means["few"].values())


def test_the_study_of_maps_on_real_scores(tmp_path, monkeypatch, capsys):
    maps = study("maps")
    rng = np.random.default_rng(0)
    z = rng.standard_normal((300, 3))
    np.savez(tmp_path / "net.npz", cal_logit=z, cal_y=z.argmax(axis=1), test_logit=z, test_y=z.argmax(axis=1))
    score = rng.random(400)
    np.savez(tmp_path / "one.npz", prob=score, y=(rng.random(400) < score**2).astype(int))
    monkeypatch.setattr(maps, "from_scikit_learn", lambda: iter(()))
    names = [setting.name for setting in maps.settings(str(tmp_path))]
    assert names == ["net, 50", "net, 200", "net, 300", "one, 50", "one, 200"]
    tables = maps.real(str(tmp_path), 0.5)
    assert tables["two classes"].shape == (1, len(maps.ONE))
    assert tables["many classes"].shape == (2, len(maps.MANY))
    assert "auto harms by more than two standard errors in" in capsys.readouterr().out


def test_the_study_of_maps_has_models_of_scikit_learn():
    maps = study("maps")
    found = dict(maps.from_scikit_learn())
    assert len(found) == 25  # and as many sizes of each as it has rows for
    for score, label, new_score, new_label in found.values():
        assert len(score) == len(label) > 50
        assert len(new_score) == len(new_label)


def test_the_study_of_maps_on_the_models_of_the_paper(monkeypatch):
    maps = study("maps")
    monkeypatch.setattr(maps, "PAPER_SIZES", (100,))
    tables = maps.paper(0.5, "smoke", n_new=500)
    (table,) = tables.values()
    assert table.shape[1:] == (len(maps.PAPER_MAPS), 2)
    assert np.isfinite(table).all()


def test_the_study_of_maps_of_models_with_known_probabilities(monkeypatch, capsys):
    maps = study("maps")
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    entropy = maps.cross_entropy(score**2, score**2)
    assert maps.reference_loss(score, score**2) == pytest.approx(entropy, abs=1e-3)
    chosen = list(maps.trained_models("development"))[:2]
    monkeypatch.setattr(maps, "trained_models", lambda part: iter(chosen))
    monkeypatch.setattr(maps, "MODEL_SIZES", {100: 1})
    monkeypatch.setattr(maps, "N_NEW", 2000)
    cells = maps.of_models("development", 1.0)
    assert all(len(values) == 2 for values in cells[100].values())
    assert "auto answers 0 or 1 in 0 of 2 fits" in capsys.readouterr().out


def test_the_study_of_maps_that_must_rise(monkeypatch, capsys):
    maps = study("maps")
    monkeypatch.setattr(maps, "FAMILIES", {name: maps.FAMILIES[name] for name in ("square", "u-turn")})
    cells = maps.monotone([1000], 0.02)
    assert cells["u-turn", 1000, "auto, increasing"] > 5 * cells["u-turn", 1000, "auto, free"]
    assert "| falls somewhere | 1000 |" in capsys.readouterr().out
    score, outcome = maps.FAMILIES["square"].draw(200, np.random.default_rng(0))
    found = maps.answer("density, increasing", score, outcome, np.linspace(0, 1, 50))
    assert (np.diff(found) >= 0).all()


def test_the_study_of_whole_rows(monkeypatch):
    canonical = study("canonical")
    monkeypatch.setattr(canonical, "LARGE", 2000)
    for family in ("right", "first two", "forest", "to the next"):
        found, truth, bound = canonical.one_cell((*canonical.FAMILIES[family], 3, 60, 1, "smoke"))
        assert found.shape == (3, 1, 3)
        assert (bound > 0).all() == (family != "right")
        assert (found[:, 0, 1] <= found[:, 0, 0]).all()
        assert truth.shape == (3,)
    for kind, name in canonical.PUBLISHED.values():
        p = canonical.scores(kind, 3, 20, np.random.default_rng(0))
        np.testing.assert_allclose(canonical.mapped(name, p).sum(axis=1), 1)
    task = (*canonical.FAMILIES["to the next"], 3, 60, 1, "smoke")
    (found, spread, taken), gaps = canonical.where_cell(task)
    assert found.shape == spread.shape == taken.shape == (1, 3)
    assert gaps.shape == (2, 1, 3)
    # Each class gives to the next as much as the one before gives to it.
    assert np.abs(taken[0] - taken[0, 0] * np.array([1, -1, 1])).max() < 0.02
    lower, truth = canonical.many_cell((*canonical.FAMILIES["pull"], 14, 60, 1))
    assert 0 <= lower[0] <= truth + 0.2
    monkeypatch.setattr(canonical, "MEASURED_ON", {60: 1, 90: 1})
    monkeypatch.setattr(canonical, "MANY", 60)
    monkeypatch.setattr(canonical, "NAMED", ("softmax", "variational:temperature"))
    for family in ("logistic", "naive-bayes"):
        truth, off, held = canonical.paper_cell((3, 0, family, 1.0))
        assert 0 < truth < 1
        assert np.isnan(off).tolist() == [[False, False], [False, True]]
        assert (held[:, 1] > 0).all()
    # Features 1 and 2 share their scores, and so what is true of them.
    p = np.repeat(np.random.default_rng(0).dirichlet(np.ones(3), 2000), 2, axis=0)
    monkeypatch.setattr(canonical, "NEAREST", 2)
    found = canonical.frequencies(p, np.tile([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], (2000, 1)))
    np.testing.assert_allclose(found, np.tile([0.5, 0.5, 0.0], (4000, 1)))


def test_the_study_of_decisions(monkeypatch):
    decisions = study("decisions")
    family = decisions.family_of("square")
    at = decisions.AT
    truth = decisions.true_regret(family, at, rows=100)
    score, chance = family.pairs(family.quantile((np.arange(100) + 0.5) / 100))
    by_class = [np.stack([1 - p, p], axis=1) for p in (chance, score)]
    by_loop = [oracle.regret(*by_class, [[t, 0], [0, 1 - t]]) for t in at]
    np.testing.assert_allclose(truth, by_loop, atol=1e-12)
    assert max(by_loop) > 0.02
    monkeypatch.setattr(decisions, "true_regret", partial(decisions.true_regret, rows=1000))
    found = decisions.one_cell(decisions.Cell("square", 300, 2))
    assert found["value"].shape == (2, len(at))
    assert found["held"].mean() > 0.5
    assert (found["width"] > 0).all()


def test_the_study_of_net_benefits(monkeypatch, capsys):
    decisions = study("decisions")
    family = decisions.family_of("square")
    truth = decisions.true_net_benefits(family, decisions.AT, rows=100)
    score, chance = family.pairs(family.quantile((np.arange(100) + 0.5) / 100))
    for k, t in enumerate(decisions.AT):
        # The expected outcome is a row of each kind, weighted by its probability.
        rows = [1] * 100 + [0] * 100, np.tile(score, 2), t, np.append(chance, 1 - chance)
        assert truth[0, k] == pytest.approx(oracle.net_benefit(*rows))
        assert truth[1, k] == pytest.approx(oracle.net_benefit(rows[0], np.ones(200), *rows[2:]))
    np.testing.assert_allclose(truth[2], truth[0] - truth[1])
    for name in ("LOCAL", "OTHERS"):
        monkeypatch.setattr(decisions, name, ())
    monkeypatch.setattr(decisions, "true_net_benefits", partial(decisions.true_net_benefits, rows=10_000))
    decisions.benefit(0.02, [300])
    cells = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert cells[0] == "300"
    assert min(map(float, cells[1::3])) > 0.8


def few_models(settings):
    small = {"classes": (2,), "features": (2,), "seeds": (0,), "families": ("logistic",), "train_sets": 1}
    return replace(settings, **small, n_holdout=5000, sizes=(30,), repetitions=5)


def test_the_study_of_beta_kernels_holds_sums_against_direct_evaluation(capsys, monkeypatch):
    beta = study("beta_kernels")
    monkeypatch.setattr(beta, "BANDWIDTHS", (0.001,))
    assert beta.worst(0.001, 1, n=1000) <= 1e-6
    beta.accuracy_and_time(n=5000, rounds=1, rows=100)
    assert capsys.readouterr().out.count("| beta2 |") == 2


def test_the_study_of_beta_kernels_compares_rules(capsys, monkeypatch):
    beta = study("beta_kernels")
    monkeypatch.setattr(beta, "SHARES", (0.5, 1.0))
    means = beta.rule(1.0, few_models(beta.DEVELOPMENT))
    assert len(means) == 2 * 2 * len(beta.SHARES)
    assert len(set(means.values())) > 1
    assert "| beta2 | scott | 0.5 |" in capsys.readouterr().out


def test_the_study_of_beta_kernels_on_the_models_of_the_paper(tmp_path):
    beta = study("beta_kernels")
    assert {task.name for task in beta.PAPER.tasks()} < {
        task.name for task in experiment.PRESETS["paper"].tasks()
    }
    lines = beta.paper(tmp_path / "run", 1, few_models(beta.PAPER))
    assert len(lines) == 2 + 2 * 2  # notions and errors
    assert lines[2].startswith("| confidence | 95 % | 30 | ")
    assert len({line.count("|") for line in lines}) == 1


def test_the_study_of_the_monitor(monkeypatch):
    monitor = study("monitor")
    for name, days in {"DAYS": 30, "CHANGE": 10, "LONGEST": 40}.items():
        monkeypatch.setattr(monitor, name, days)
    lines = list(monitor.tables(4, ("rates", "dependence", "onset")))
    assert len([line for line in lines if line.startswith("| ")]) == 3 + 11 + 11 + 4
    # What is drawn at once is what a stream computes one batch after another.
    rng = np.random.default_rng(1)
    truth = 0.9 * monitor.SCORE
    batches = monitor.binary(rng, 1, 500, at=lambda day: truth)
    drawn = [next(batches) for _ in range(30)]
    stream, days = monitor.process.Stream(0.0, monitor.DAYS), []
    for n, y in drawn:
        parts = np.zeros((3, monitor.process.CELLS))
        parts[:, monitor.BETA.cell] = n[0], n[0] * monitor.SCORE, y[0]
        stream.add_batch(sums := monitor.CellSums(*parts), reference=False)
        stream.add(sums)
        days.append(stream.log_m)
    for limit in np.log([2, 20, 500]):
        (day,) = monitor.alarms(iter(drawn), days=30, limit=limit)
        assert day == 1 + int(np.argmax(np.array(days) >= limit))


def test_the_study_of_detectors(monkeypatch):
    monitor = study("monitor")
    monkeypatch.setattr(monitor, "DAYS", 70)
    monkeypatch.setattr(monitor, "LONGEST", 12)
    found = {
        name: by_kind for name, _, by_kind in monitor.delays(6, ("none", "abrupt"), (3000,), peers=False)
    }
    assert set(found) == {"calibrant", "CUSUM (mean)", "CUSUM (ECE)"}
    for by_kind in found.values():
        assert monitor.false_alarms(by_kind["none"])[0] <= 0.5
        assert int(monitor.described(by_kind["abrupt"]).split()[0]) <= 12
    detectors = {"brier": lambda: lambda score, outcome: ((score - outcome) ** 2).mean() > 0.2}
    assert (monitor.by_rows("none", 100, 2, 3, detectors)["brier"] > 0).all()


def test_the_study_of_audits(monkeypatch, capsys):
    audit = study("audit")
    monkeypatch.setattr(audit, "ROWS", 1500)
    results = audit.study(("calibrated", "odd-shifted"), 3, rows=1500, columns=3, n_resamples=199)
    assert results["calibrated", "unadjusted"][0] >= results["calibrated", "gap"][0]
    assert results["odd-shifted", "gap"][0] == 1
    assert results["calibrated", "difference"][4] > 15
    for shift in (0.0, 1.0):
        shares = audit.intersection(3, shift, rows=4000, n_resamples=199)
        assert shares["gap"][1] == 0
        assert shares["gap"][2] == shift
    audit.show(results, 3)
    clusters = {"rows": 1500, "columns": 2, "cluster": np.arange(1500) // 4, "n_resamples": 199}
    assert audit.study(("shifted",), 2, **clusters)["shifted", "unadjusted"][0] == 1
    audit.clock(rows=2000)
    rate, size = audit.many_outcomes(0, sets=200, rows=1500, columns=2)
    assert 0 <= rate < 0.15
    assert size > 10
    assert "segments: " in capsys.readouterr().out


def test_the_study_of_threads(capsys):
    threads = study("threads")
    threads.main(["--times", "10"])
    printed = capsys.readouterr().out
    assert "sketch: 400 of 400 rows, 0 errors\n" in printed
    assert "lock: " in printed
