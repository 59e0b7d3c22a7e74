"""The leaderboard, against direct computations on the table of a run."""

import csv
import gzip
import json
from collections import defaultdict
from dataclasses import replace
from math import exp, log, nan, pi, sqrt

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant import Bayes, Binned, Debiased, estimator_names
from calibrant.cli import main
from calibrant.estimators import FIFTEEN
from calibrant.experiment import PRESETS, Store, Summary, figures, leaderboard, page, run
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, LOCAL, Family
from calibrant.experiment.summary import BASELINES
from calibrant.score_data import Sample

# Six distributions, so that the bootstrap has something to draw from.
SETTINGS = replace(
    PRESETS["smoke"],
    seeds=(0, 1, 2),
    families=("logistic", "naive-bayes"),
    n_holdout=2000,
    sizes=(29, 60, 150),
    repetitions=10,
    estimators=(*FIFTEEN, "auto"),
    readings=("corrected",),
)
LATER = replace(SETTINGS, estimators=("isotonic", "ks", "auto"), sizes=(29, 150, 200), repetitions=6)
FEW = {200: 3, 1000: 2}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A run of the fifteen and the default, one of later estimators, one of both with fewer samples."""
    folder = tmp_path_factory.mktemp("runs")
    both = replace(LATER, estimators=(*FIFTEEN, "isotonic"))
    return {
        name: run(settings, folder / name)
        for name, settings in {"run": SETTINGS, "later": LATER, "both": both}.items()
    }


def ranked(stores, *names):
    return leaderboard.board([Summary.of(stores[name]) for name in names])


def table(store, notion, statistic):
    """By estimator and size the pairs of distribution and number, from the table on disk."""
    found = defaultdict(list)
    with gzip.open(store.folder / "results.csv.gz", "rt") as file:
        for line in csv.DictReader(file):
            if line["notion"] == notion and line["reading"] == "corrected":
                key = line["estimator"], int(line["n"])
                found[key].append((line["distribution"], float(line[statistic])))
    return found


def median(pairs):
    return float(np.median([value for _, value in pairs]))


def by_name(board, notion):
    return {row.estimator: row for row in board.rows[notion]}


# The paper's distributions


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_medians_and_ratios_are_those_of_the_table(stores, notion):
    board = ranked(stores, "run")
    rows = by_name(board, notion)
    assert set(rows) == {*SETTINGS.estimators, *BASELINES}
    rows = {name: row for name, row in rows.items() if not row.baseline}
    for statistic in ("p95", "mean", "bias", "sd"):
        cells = table(stores["run"], notion, statistic)
        for name, row in rows.items():
            np.testing.assert_allclose(
                row.median[statistic],
                [median(cells[name, n]) for n in SETTINGS.sizes],
                rtol=1e-6,
                atol=1e-9,
            )
    for statistic, best in board.best.items():
        cells = table(stores["run"], notion, statistic)
        least = {n: min(median(cells[name, n]) for name in FIFTEEN) for n in SETTINGS.sizes}
        for name, row in rows.items():
            ratio = [median(cells[name, n]) / least[n] for n in SETTINGS.sizes]
            np.testing.assert_allclose(row.ratio[statistic].by_size, ratio, rtol=1e-6)
            overall = exp(sum(map(log, ratio)) / len(ratio))
            assert row.ratio[statistic].overall == pytest.approx(overall, rel=1e-6)
        for n, name in zip(SETTINGS.sizes, best[notion], strict=True):
            assert median(cells[name, n]) == least[n]


def test_rows_are_sorted_by_the_overall_ratio(stores):
    for rows in ranked(stores, "run", "later").rows.values():
        overall = [row.ratio["p95"].overall for row in rows]
        assert overall == sorted(overall)


@pytest.mark.parametrize("statistic", ["p95", "mean"])
def test_the_interval_is_the_bootstrap_over_distributions(stores, statistic):
    cells = table(stores["run"], "confidence", statistic)
    names = sorted({name for name, _ in cells["l:10", 29]})
    own = {key: [[v for d, v in pairs if d == name] for name in names] for key, pairs in cells.items()}
    rng, found = rng_of("resampled"), []
    for _ in range(leaderboard.RESAMPLES):
        drawn = rng.integers(0, len(names), len(names))
        middle = {key: np.median(np.concatenate([lists[k] for k in drawn])) for key, lists in own.items()}
        least = {n: min(middle[name, n] for name in FIFTEEN) for n in SETTINGS.sizes}
        found.append(exp(np.mean([log(middle["auto", n] / least[n]) for n in SETTINGS.sizes])))
    row = by_name(ranked(stores, "run"), "confidence")["auto"]
    _, overall, low, high = row.ratio[statistic]
    np.testing.assert_allclose((low, high), np.quantile(found, (0.025, 0.975)), rtol=1e-6)
    assert low < overall < high


def test_runs_are_merged_over_what_they_share(stores):
    board = ranked(stores, "run", "later")
    assert board.sizes == (29, 60, 150, 200)
    assert board.ranked == (29, 150)
    assert (board.models, board.distributions) == (12, 6)
    rows = by_name(board, "confidence")
    assert set(rows) == {*FIFTEEN, "auto", "isotonic", "ks", *BASELINES}
    assert {name: row.repetitions for name, row in rows.items() if row.repetitions != 10} == {
        "isotonic": 6,
        "ks": 6,
    }
    assert {name for name, row in rows.items() if row.is_own_measure} == {"ks"}
    p95 = {name: table(stores[name], "confidence", "p95") for name in ("run", "later")}
    # The later run lacks the fifteen: it is compared with those of the first.
    ratio = [
        median(p95["later"]["isotonic", n]) / min(median(p95["run"][name, n]) for name in FIFTEEN)
        for n in (29, 150)
    ]
    np.testing.assert_allclose(
        rows["isotonic"].ratio["p95"].by_size, [ratio[0], nan, ratio[1], nan], rtol=1e-6
    )
    assert rows["isotonic"].ratio["p95"].overall == pytest.approx(sqrt(ratio[0] * ratio[1]), rel=1e-6)


def test_a_row_is_held_against_the_fifteen_of_its_own_run(stores):
    row = by_name(ranked(stores, "run", "both"), "confidence")["isotonic"]
    p95 = table(stores["both"], "confidence", "p95")
    wanted = [median(p95["isotonic", n]) / min(median(p95[name, n]) for name in FIFTEEN) for n in (29, 150)]
    np.testing.assert_allclose(row.ratio["p95"].by_size[[0, 2]], wanted, rtol=1e-6)


def test_an_estimator_of_several_runs_counts_in_the_first(stores):
    alone, merged = ranked(stores, "run"), ranked(stores, "run", "later")
    one, other = (by_name(board, "classwise")["auto"] for board in (alone, merged))
    np.testing.assert_array_equal(one.median["p95"], other.median["p95"][:3])
    assert other.run == 0


def test_runs_that_do_not_belong_together_are_refused(stores):
    one, later = Summary.of(stores["run"]), Summary.of(stores["later"])
    with pytest.raises(ValueError, match="no run has all of the paper's fifteen"):
        leaderboard.board([later])
    with pytest.raises(ValueError, match="no model in common"):
        leaderboard.board([one, replace(later, models=[("other", 0, "logistic")] * 12)])
    with pytest.raises(ValueError, match="different numbers of rows"):
        leaderboard.board([one, replace(later, settings=replace(later.settings, n_train=50))])
    with pytest.raises(ValueError, match="corrected reading"):
        leaderboard.board([replace(one, values={"published": one.values["corrected"]})])


def test_an_estimator_that_always_fails_comes_last(stores):
    one = Summary.of(stores["run"])
    broken = {key: part.copy() for key, part in one.values["corrected"].items()}
    k = SETTINGS.estimators.index("auto")
    for key, part in broken.items():
        part[:, :, k] = 10 if key == "failed" else nan
    board = leaderboard.board([replace(one, values={"corrected": broken})])
    assert board.rows["confidence"][-1].estimator == "auto"
    assert board.rows["confidence"][-1].failed == 10 * 12 * 3
    assert "| `auto` (360 samples failed) | 10 |  |" in page.to_markdown(board, ["run"])


def test_an_estimator_that_fails_for_three_of_four_models_leads_neither_table_nor_figure(stores):
    one = Summary.of(stores["run"])
    values = {key: part.copy() for key, part in one.values["corrected"].items()}
    k, lucky = SETTINGS.estimators.index("auto"), np.arange(len(one.models)) % 4 == 0
    for key, part in values.items():
        part[:, :, k] = 0.0 if key == "failed" else 1e-6  # better than any other where it has an estimate
        part[~lucky, :, k] = 10.0 if key == "failed" else nan
    summary = replace(one, values={"corrected": values})
    board = leaderboard.board([summary])
    for notion in ("confidence", "classwise"):
        last = board.rows[notion][-1]
        assert last.estimator == "auto"
        for figure in last.ratio.values():
            assert np.isnan([*figure.by_size, *figure[1:]]).all()
        assert np.isnan(last.median["p95"]).all()
    text = page.to_markdown(board, ["run"])
    assert text.count(f"|  | `auto` ({last.failed} samples failed) | 10 |  |  |  |  |  |  |  |  |") == 2
    assert "is not ranked" in text
    drawn = figures.figure2(summary, "corrected")
    for ax in drawn.axes[:2]:
        assert "auto" not in {line.get_label() for line in ax.get_lines()}
        assert "not drawn, as it failed on too many models: auto" in {text.get_text() for text in ax.texts}


def test_a_failure_at_a_size_that_does_not_rank_is_a_failure(stores):
    one = Summary.of(stores["run"])
    values = {key: part.copy() for key, part in one.values["corrected"].items()}
    values["failed"][0, :, SETTINGS.estimators.index("auto"), -1] = 1
    board = leaderboard.board([replace(one, values={"corrected": values})])
    row = board.rows["confidence"][-1]
    assert (row.estimator, row.failed, np.isnan(row.ratio["p95"].overall)) == ("auto", 1, True)
    assert np.isfinite(row.ratio["p95"].by_size[:-1]).all()
    assert np.isnan(row.ratio["p95"].by_size[-1])


# Baselines


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_baselines_and_skill_are_those_of_the_true_errors(stores, notion):
    board = ranked(stores, "run", "later")
    rows = by_name(board, notion)
    true = np.array([value for _, value in table(stores["run"], notion, "truth")["l:10", 29]])
    grid = np.linspace(0, true.max(), 20_001)
    least = np.median(np.abs(grid[:, None] - true), axis=1).min()
    zero, best = (rows[name] for name in BASELINES)
    shown = np.isfinite(best.ratio["p95"].by_size)
    for statistic in ("p95", "mean"):
        np.testing.assert_allclose(zero.median[statistic][shown], np.median(true), rtol=1e-6)
        np.testing.assert_allclose(best.median[statistic][shown], least, atol=1e-5)
    np.testing.assert_allclose(best.skill["p95"].by_size[shown], 0, atol=1e-12)
    assert (best.skill["p95"].overall, best.ordered_overall) == (0.0, 0.5)
    for statistic in ("p95", "mean"):
        cells = table(stores["run"], notion, statistic)
        errors = np.array([median(cells["auto", n]) for n in (29, 60, 150)])
        exact = best.median[statistic][0]
        np.testing.assert_allclose(rows["auto"].skill[statistic].by_size[:3], 1 - errors / exact, rtol=1e-5)
        overall = 1 - sqrt(errors[0] * errors[2]) / exact  # the sizes that rank
        assert rows["auto"].skill[statistic].overall == pytest.approx(overall, rel=1e-5)
    row = rows["auto"]
    assert row.skill["p95"].low <= row.skill["p95"].overall <= row.skill["p95"].high
    assert np.median(np.abs(board.constants[notion] - true)) == pytest.approx(least, abs=1e-5)


def test_the_share_of_ordered_pairs_is_that_of_the_estimates(stores):
    summary = Summary.of(stores["run"])
    row = by_name(ranked(stores, "run", "later"), "confidence")["auto"]
    np.testing.assert_array_equal(row.ordered[:3], summary.ordered("corrected", "confidence")[-1])
    assert row.ordered_overall == pytest.approx(row.ordered[[0, 2]].mean())
    assert np.isnan(row.ordered[3])


def test_baselines_have_no_rank_and_the_page_leads_with_known_truth(stores):
    exact, local = (
        leaderboard.exact_families(["uniform:15", "auto"], FEW, families=families)
        for families in (tuple(EXACT.values()), [LOCAL["step"]])
    )
    board = replace(ranked(stores, "run"), exact=exact, local=local)
    text = page.to_markdown(board, ["run"])
    assert text.index("## Families with a known bound") < text.index("## The paper's procedure")
    assert text.count("|  | `best constant` |") == text.count("|  | `zero` |") == 3
    for rank in range(1, len(SETTINGS.estimators) + 1):
        assert text.count(f"\n| {rank} | `") == (3 if rank <= 2 else 2)
    grid = np.linspace(0, 0.2, 2001)
    means = [np.mean(np.abs(c - exact.truth)[:, None] / exact.bound) for c in grid]
    assert exact.of_constant(exact.best_constant).mean() <= min(means) + 1e-12
    assert grid[np.argmin(means)] == pytest.approx(exact.best_constant, abs=1e-4)
    for notion, rows in board.rows.items():
        worse = all(row.skill["p95"].by_size[0] <= 0 for row in rows if not row.baseline)
        (line,) = (
            line
            for line in text.splitlines()
            if f"The best constant is {board.constants[notion]:.3f}" in line
        )
        assert ("N = 29" in line) == worse


# Families with a bound


def test_exact_part_is_the_mean_absolute_error_over_the_bound():
    names = ["uniform:15", "debiased:15", "auto"]
    found = leaderboard.exact_families(names, FEW, families=[EXACT["flat"], EXACT["wavy"]], seed=3)
    family = EXACT["wavy"]
    score, outcome = family.draw(rng_of("leaderboard", 3, "wavy", 1.0, 1000), 2, 1000)
    rows, chance = family.sample(np.random.default_rng(0), 1_000_000)
    brier = np.mean(chance * (1 - rows) ** 2 + (1 - chance) * rows**2)
    bound = sqrt(2 / pi * (brier - family.truth**2) / 1000)
    for k, estimator in enumerate((Binned("uniform", 15, "one"), Debiased(15), Bayes())):
        off = [
            abs(float(estimator.fit(Sample(s, y)).error()) - family.truth) / bound
            for s, y in zip(score, outcome, strict=True)
        ]
        assert found.ratio[k, 1, 1] == pytest.approx(np.mean(off), rel=1e-6)
        assert found.error[k, 1, 1] == pytest.approx(abs(off[0] - off[1]) / 2, rel=1e-5)
    value, name, n = found.worst(found.ratio[0])
    assert value == found.ratio[0].max()
    assert found.ratio[0, found.families.index(name), list(FEW).index(n)] == value


def test_a_cell_does_not_depend_on_the_others():
    many = leaderboard.exact_families(["l:15", "ks"], FEW, families=[EXACT["flat"], EXACT["power"]])
    few = leaderboard.exact_families(["ks"], {1000: 2}, families=[EXACT["power"]])
    assert few.ratio[0, 0, 0] == many.ratio[1, 1, 1]


def test_every_estimator_of_the_registry_is_in_the_exact_part():
    for registered, name in zip(estimator_names(), leaderboard.default_estimators(), strict=True):
        assert name.partition(":")[0] == ("auto" if registered == "bayes" else registered)
    with pytest.raises(ValueError, match="two or more"):
        leaderboard.exact_families(["l:15"], {200: 1})


# The page and the command


def test_the_page_names_the_commands_that_make_it(stores):
    confirm = PRESETS["confirm"]
    later = replace(confirm, estimators=(*confirm.estimators, "ks"), sizes=(30, 100), n_holdout=5000)
    start = "calibrant experiment run --preset"
    assert page.command(confirm, "a") == f"{start} confirm --out a"
    assert (
        page.command(later, "b")
        == f"{start} confirm --holdout 5000 --sizes 30,100 --extra-estimators ks --out b"
    )
    other = replace(confirm, estimators=("l:10",), notions=("classwise",))
    assert page.command(other, "c") == f"{start} confirm --estimators l:10 --notion classwise --out c"
    assert page.command(replace(confirm, seeds=(77,)), "d").startswith("# d")
    text = page.to_markdown(ranked(stores, "run", "later"), ["one", "two"], "docs/leaderboard.md")
    assert "\ncalibrant experiment leaderboard one two --no-exact -o docs/leaderboard.md\n" in text


def test_the_page_has_the_mean_absolute_error_beside_the_percentile(stores):
    board = ranked(stores, "run")
    text = page.to_markdown(board, ["run"])
    for notion, rows in board.rows.items():
        first = next(row for row in rows if not row.baseline)
        figures = (first.ratio["p95"], first.ratio["mean"], first.skill["p95"])
        line = "|" + "".join(f" {f.overall:.2f} | {f.low:.2f} to {f.high:.2f} |" for f in figures)
        line += f" {first.skill['mean'].overall:.2f} |"
        assert f"| 1 | `{first.estimator}` | 10 {line} {first.ordered_overall:.2f} |\n" in text
        pairs = [
            f"{a:.2f} / {b:.2f}"
            for a, b in zip(*(figure.by_size for figure in first.ratio.values()), strict=True)
        ]
        assert f"| `{first.estimator}` | {' | '.join(pairs)} |\n" in text
        assert f"by MAE: {board.best['mean'][notion][0]} at 29" in text
    data = json.loads(page.to_json(board, ["run"]))
    first = board.rows["confidence"][0]
    assert data["rows"][0]["ratio"]["mean"]["overall"] == first.ratio["mean"].overall
    assert data["best_of_fifteen"]["mean"]["classwise"] == list(board.best["mean"]["classwise"])


def test_a_run_without_the_default_is_ranked(stores):
    one = Summary.of(stores["both"])
    assert "auto" not in one.settings.estimators
    assert "`auto`" not in page.to_markdown(leaderboard.board([one]), ["older"])


def test_command_writes_both_forms(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "default_estimators", lambda: ("uniform:15", "auto", "kuiper"))
    monkeypatch.setattr(Family, "bound", lambda self, n: 0.3 / sqrt(n))  # the true one takes seconds
    folders = [str(stores[name].folder) for name in ("run", "later")]
    few = ["--repetitions", "3,2,2", "--seed", "1"]
    for name in ("board.md", "board.json"):
        result = CliRunner().invoke(
            main, ["experiment", "leaderboard", *folders, *few, "-o", str(tmp_path / name)]
        )
        assert result.exit_code == 0, result.output
        assert result.stdout == f"leaderboard: {(tmp_path / name).resolve()}\n"
        assert result.stderr == ""  # no terminal
    text, data = (tmp_path / "board.md").read_text(), json.loads((tmp_path / "board.json").read_text())
    assert str(tmp_path) not in text
    assert "calibrant experiment leaderboard run later --repetitions 3,2,2 --seed 1 -o board.md" in text
    assert "| `kuiper` † |" in text
    assert "| `ks` † | 6 |" in text
    board = ranked(stores, "run", "later")
    assert [row["estimator"] for row in data["rows"] if row["notion"] == "classwise"] == [
        row.estimator for row in board.rows["classwise"]
    ]
    first, row = board.rows["confidence"][0], data["rows"][0]
    assert [row["ratio"]["p95"][key] for key in ("overall", "low", "high")] == [*first.ratio["p95"][1:]]
    assert data["exact"]["estimators"] == ["uniform:15", "auto", "kuiper"]
    assert np.shape(data["exact"]["ratio"]) == (3, len(EXACT), 3)
    # Local gaps have a column of their own, and no part in the ranking.
    assert data["local"]["families"] == list(LOCAL)
    ratio = np.array(data["local"]["ratio"][1])
    line = next(line for line in text.splitlines() if "| `auto` |" in line and "n=" in line)
    assert float(line.split("|")[-2]) == pytest.approx(np.prod(ratio) ** (1 / ratio.size), abs=0.006)
    assert float(line.split("|")[3]) == pytest.approx(np.mean(data["exact"]["ratio"][1]), abs=0.006)


def test_command_prints_and_refuses_in_one_line(stores, tmp_path):
    def call(*args):
        return CliRunner().invoke(main, ["experiment", "leaderboard", *map(str, args)])

    printed = call(stores["run"].folder, "--no-exact", "--json")
    assert json.loads(printed.stdout)["exact"] is None
    assert call(stores["run"].folder, "--no-exact").stdout.startswith("# Leaderboard\n")
    for args, code, text in (
        ((tmp_path, "--no-exact"), 1, "holds no run"),
        ((stores["later"].folder, "--no-exact"), 1, "fifteen"),
        ((stores["run"].folder, "--repetitions", "5"), 2, "three whole numbers"),
        ((), 2, "Missing argument"),
    ):
        result = call(*args)
        assert result.exit_code == code
        assert len(result.stderr.splitlines()) == 1
        assert text in result.stderr


def test_an_unfinished_run_says_so(stores, tmp_path):
    store = Store.create(tmp_path / "part", SETTINGS)
    for result in list(stores["run"].results())[:6]:
        store.save(result)
    board = leaderboard.board([Summary.of(store), Summary.of(stores["later"])])
    assert board.models == 6
    assert "6 of 12 models" in page.to_markdown(board, ["part", "later"])
