"""Numbers on one page do not contradict each other, or the page says why they seem to."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.assessment import text as wording
from calibrant.inference.result import SIZE_UNKNOWN, end_of, remarks, size_unknown
from calibrant.inputs.wording import points_with_ends
from calibrant.posterior import posterior_of
from calibrant.tasks import CalibrationTask, get_notion
from shortcuts import compare_estimators

pytestmark = pytest.mark.no_cover

POINTS = r"(\d+\.\d+) points"


def flat(result):
    """Return a printed result on one line."""
    return " ".join(str(result).split())


def drawn(seed):
    """Return labels, scores and groups: few rows, scores that repeat or not, some of them too high."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([12, 40, 120, 400]))
    groups = np.array(["east", "west"])[np.arange(n) % 2]
    if seed % 3 == 2:
        logits = rng.normal(0, 1.5, (n, 3))
        p, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, 1.4))
        return (rng.random((n, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1), said, groups
    score = rng.integers(0, 11, n) / 10 if seed % 3 else rng.beta(0.7, 0.9, n)
    shift = rng.choice([0.0, 0.06, 0.2]) * (1 if seed % 2 else np.sign(np.sin(20 * score)))
    return (rng.random(n) < np.clip(score - shift, 0, 1)).astype(int), score, groups


@pytest.fixture(scope="module")
def assessed():
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        given = [drawn(seed) for seed in range(60)]
        return [calibrant.assess(y, p, groups=groups, labels=labels_of(p), rng=0) for y, p, groups in given]


def labels_of(p):
    return range(3) if p.ndim == 2 else None


def shown(page):
    """Return the text of a page on one line, without its no-break spaces."""
    return flat(re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", page, flags=re.S))


def test_no_error_is_below_the_mean_difference_printed_beside_it(assessed):
    raw_above = 0
    for found in assessed:
        error = {e.notion: float(wording.points(e.value)) for e in found.estimates.values()}
        pairs = [(found.accuracy, error["confidence"]), (found.balance, error[found.curve_notion])]
        for balance, most in pairs:
            assert abs(float(wording.points(balance.difference))) <= most
            assert balance.low <= balance.difference <= balance.high
            raw_above += 100 * abs(balance.expected - balance.observed) / balance.n > most + 0.05
        about = found.curve_notion if get_notion(found.curve_notion).is_binary else "confidence"
        (said,) = re.findall(rf"too (?:high|low) by {POINTS} on average", found.summary)
        printed = {
            e.notion: float(points_with_ends(e.value, e.low, e.high)[0]) for e in found.estimates.values()
        }
        assert float(said) <= printed[about]
        for each in re.findall(rf"too (?:high|low) by {POINTS} on average", shown(found.html())):
            assert float(each) <= max(printed.values())
        table = re.findall(r" (-?\d[.\d]*) +(\d[.\d]*)  +\S+ to \S+ +\S", str(found))
        assert len(table) == len(found.by_class) + len(found.by_group)
        assert all(abs(float(difference)) <= float(value) for difference, value in table)
        stored = json.loads(found.to_json())
        assert set(stored["balance"]) == {"n", "observed", "expected", "difference", "low", "high"}
        assert set(stored["by_group"][0]) == {
            "name", "rows", "observed", "expected", "p_adjusted", "estimate", "gap", "curve", "difference",
            "ratio",
        }  # fmt: skip
    assert raw_above > 20  # the raw difference is often larger


def test_the_difference_is_the_posterior_mean(assessed):
    from calibrant.inputs import predictions

    for seed, found in enumerate(assessed[:12]):
        y, p, _ = drawn(seed)
        task = CalibrationTask.of(predictions(y, p, labels=labels_of(p)), get_notion(found.notion))
        assert found.balance.difference == pytest.approx(-posterior_of(task).gap.sum(), abs=1e-3)


def test_counts_are_of_the_rows(assessed):
    for seed, found in enumerate(assessed):
        y, p, _ = drawn(seed)
        if p.ndim == 1:
            b = found.balance
            assert (b.n, b.observed, b.expected) == pytest.approx((len(y), y.sum(), p.sum()))
            assert (
                f"observed {y.sum()} of {len(y)}, expected {wording.count(round(p.sum(), 1))}"
                in found.summary
            )
            assert f"{y.sum()} observed, " in str(found.clinical)


def test_a_sketch_has_the_difference_of_its_confidence():
    y, p, _ = drawn(3)
    rows, sums = calibrant.assess(y, p, rng=0), calibrant.Sketch(notion="binary").update(y, p).assess(rng=0)
    assert abs(sums.accuracy.difference) <= sums.estimate.value
    assert sums.accuracy.difference == pytest.approx(rows.accuracy.difference, abs=0.05)


def test_a_rejected_test_beside_an_interval_from_0_is_explained(assessed):
    explained = 0
    for found in assessed:
        for e in found.estimates.values():
            unknown = e.p_value <= 0.05 and wording.points(e.low) == "0.0"
            assert (SIZE_UNKNOWN in " ".join(e.to_dict()["remarks"])) == unknown
            classes = (e.by_class or {}).values()
            assert (SIZE_UNKNOWN in flat(e)) == (unknown or any(SIZE_UNKNOWN in flat(c) for c in classes))
        unknown = f"Calibration is rejected, but {SIZE_UNKNOWN}" in found.summary
        assert unknown == size_unknown(found.estimate, wording.is_rejected(found.estimate, 0.95))
        assert not unknown or SIZE_UNKNOWN in shown(found._repr_html_())
        for what, rows in (("class", found.by_class), ("group", found.by_group)):
            for row in rows:
                if row.off(0.95) and wording.points(row.estimate.low) == "0.0":
                    explained += 1
                    name = wording.called(row.name, what)
                    pattern = f"Calibration of [^.]*{name}[^.]* is rejected, but {SIZE_UNKNOWN}"
                    for page in (flat(found), shown(found.html()), " ".join(found.to_dict()["remarks"])):
                        assert re.search(pattern, page), (name, page)
    assert explained > 2


def test_an_estimate_at_an_end_of_its_interval_is_explained(assessed):
    found = assessed[0]
    e = replace(found.estimate, value=0.05, low=0.0, high=0.05, over=0.05, under=0.0, p_value=0.5)
    (line,) = e.remarks
    assert line == (
        "The estimate lies at the upper end of its interval, which allows for the bias of a posterior mean."
    )
    page = replace(found, estimates={**found.estimates, e.notion: e})
    for place in (flat(e), page.summary, shown(page.html()), shown(page._repr_html_()), page.to_json()):
        assert line in place
    other = replace(e, low=0.05, high=0.1, estimator="bins", p_value=0.001)
    assert "lower end of its interval, which allows for the bias of the estimator" in " ".join(other.remarks)
    assert end_of(replace(e, value=1.0, low=0.5, high=1.0)) == ""
    assert end_of(replace(e, value=0.0, low=0.0, high=0.1)) == ""
    assert end_of(replace(e, low=0.05)) == ""
    several = remarks([(name, e, False) for name in "abcde"])
    assert several[0].startswith("The estimate of a, b, c and 2 more lies at the upper end")


def test_the_default_estimate_lies_inside_its_interval(assessed):
    for found in assessed:
        rows = [row.estimate for row in (*found.by_class, *found.by_group)]
        assert not [e for e in (*found.estimates.values(), *rows) if end_of(e)]
