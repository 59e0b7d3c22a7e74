"""Printed results: at most 80 columns, plain numbers, intervals whose ends differ, escaped HTML."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.inputs.printed import NO_BREAK, WIDTH, Printed, Table, as_text, unbroken
from calibrant.inputs.wording import points_with_ends, shares, with_ends

pytestmark = pytest.mark.no_cover

HOSTILE = "<script>alert('x')</script> & a name that is much too long for one line\n\x1b[31mof a table"
RNG = np.random.default_rng(0)
SCORE = RNG.random(400)
OUTCOME = (RNG.random(400) < SCORE**2).astype(int)
ROWS = RNG.dirichlet([1, 1, 1], 200)
LABELS = ["cat", "dog", HOSTILE]
LABEL = np.array(LABELS)[[RNG.choice(3, p=row) for row in ROWS]]
BY_LABEL = {"labels": LABELS}


def results():
    """Return a result of every public type and notion, by name."""
    weight, cluster = RNG.random(400) + 0.5, np.arange(400) // 4
    curve = calibrant.reliability_curve(OUTCOME, SCORE)
    assessment = calibrant.assess(LABEL, ROWS, groups=LABEL, rng=0, **BY_LABEL)
    is_binary = calibrant.assess(OUTCOME, SCORE, cost=(1, 9), cluster=cluster, rng=0)
    comparison = calibrant.compare(OUTCOME, {"old": SCORE, HOSTILE: SCORE**2}, rng=0)
    binary = {"rng": 0, "pos_label": HOSTILE, "notion": "binary", **BY_LABEL}
    costs = {"act": dict.fromkeys(LABELS, 1.0), HOSTILE: dict.fromkeys(LABELS, 2.0)}
    costs |= {f"action {k}": dict.fromkeys(LABELS, k / 7) for k in range(8)}
    decision = calibrant.regret(LABEL, ROWS, costs, rng=0, **BY_LABEL)
    return {
        "estimate": calibrant.estimate(LABEL, ROWS, **binary),
        "weighted": calibrant.estimate(OUTCOME, SCORE, sample_weight=weight, rng=0),
        "clusters": calibrant.estimate(OUTCOME, SCORE, cluster=cluster, rng=0),
        **{
            name: calibrant.estimate(LABEL, ROWS, notion=name, rng=0, **BY_LABEL)
            for name in ("classwise", "confidence", "canonical")
        },
        "table": calibrant.estimate_by(
            OUTCOME, SCORE, {"half": np.arange(400) // 200, HOSTILE: SCORE > 0.5}, rng=0
        ),
        "null": calibrant.estimate(OUTCOME, SCORE, rng=0).null,
        "comparison": comparison,
        "difference": comparison.differences[HOSTILE],
        "maps": calibrant.compare_calibrators(
            SCORE[:100], OUTCOME[:100], methods=["platt", "isotonic"], rng=0
        ),
        "recommendation": calibrant.recommend(SCORE[:50], repetitions=2, rng=0),
        "curve": curve,
        "weighted curve": calibrant.reliability_curve(OUTCOME, SCORE.round(1), sample_weight=weight),
        "point": curve.at(0.3),
        "points": curve.at([0.3, 0.4]),
        "many points": curve.at(np.linspace(0, 1, 300)),
        "diagram": calibrant.reliability_diagram(OUTCOME, SCORE),
        "weighted diagram": calibrant.reliability_diagram(OUTCOME, SCORE, sample_weight=weight),
        "histogram": calibrant.score_histogram(OUTCOME, SCORE),
        "by class": calibrant.reliability_diagram(LABEL, ROWS, notion="classwise", **BY_LABEL),
        "histograms": calibrant.score_histogram(LABEL, ROWS, notion="classwise", **BY_LABEL),
        "regret": calibrant.regret(OUTCOME, SCORE, (1, 9), rng=0),
        "regret of classes": decision,
        "best threshold": calibrant.best_threshold(OUTCOME, SCORE, (1, 9), rng=0),
        "regret curve": calibrant.regret_curve(OUTCOME, SCORE),
        "net benefit": calibrant.net_benefit(OUTCOME, SCORE, [0.1, 0.4]),
        "cost": calibrant.Cost.of(costs, LABELS),
        "risk coverage": calibrant.risk_coverage(LABEL, ROWS, rng=0, **BY_LABEL),
        "assessment": assessment,
        "clinical": is_binary.clinical,
        "decision": is_binary.decision,
        "assessment of clusters": is_binary,
        "sketch": calibrant.Sketch("confidence").update(LABEL, ROWS),
        "calibrator": calibrant.Calibrator("beta").fit(ROWS, LABEL),
        "unfitted": calibrant.Calibrator(),
        "monitor": calibrant.Monitor().update(OUTCOME, SCORE, at=1),
        "audit": calibrant.audit(OUTCOME, SCORE, {"half": np.arange(len(SCORE)) % 2}, n_resamples=99),
        "segment": calibrant.audit(
            OUTCOME, SCORE, {"half": np.arange(len(SCORE)) % 2}, n_resamples=99
        ).segments[0],
        "prior shift": calibrant.PriorShift(train=0.5, target=0.2),
    }


@pytest.fixture(scope="module")
def printed():
    return results()


def test_every_public_result_is_printed(printed):
    kinds = {type(result) for result in printed.values()}
    public = {getattr(calibrant, name) for name in calibrant.__all__}
    missing = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Printed)} - kinds
    assert not missing
    # Everything else in the public interface is a function, a module, an estimator or an error.
    serializable = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "to_json")}
    assert all(issubclass(kind, Printed) for kind in serializable)


def test_lines_are_short_and_numbers_plain(printed):
    for name, result in printed.items():
        text = str(result)
        assert text.strip(), name
        assert all(len(line) <= WIDTH for line in text.splitlines()), f"{name}\n{text}"
        assert all(line == line.rstrip() and line.isprintable() for line in text.splitlines()), name
        for shown in (text, repr(result), result._repr_html_()):
            assert "np.float64" not in shown, name
            assert "array(" not in shown or name in ("cost",), name


def test_the_ends_of_intervals_differ(printed):
    for name, result in printed.items():
        for low, high in re.findall(r"(-?\d[\d,.]*) to (-?\d[\d,.]*)\)", str(result)):
            assert low != high or float(low) == 0, (name, low, high)


def test_html_escapes_names_and_keeps_units(printed):
    for name, result in printed.items():
        html = result._repr_html_()
        assert "<script>" not in html, name
        assert "0 %" not in html.replace(NO_BREAK, "_"), name
    assert "&lt;script&gt;" in printed["classwise"]._repr_html_()
    assert "&lt;script&gt;" in printed["by class"]._repr_html_()


def test_p_values_name_the_hypothesis(printed):
    assert re.search(
        r"^test +p (<=|=) [\d.]+ \(H0: the model is calibrated\)$", str(printed["weighted"]), re.M
    )
    assert "effective sample size" in str(printed["weighted"])
    assert " rows\n" not in str(printed["weighted curve"])
    assert str(printed["clusters"]).splitlines()[-1].endswith("in 100 clusters")


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e3), st.floats(0, 1))
def test_digits_follow_the_width(low, width, share):
    high = low + width
    texts = with_ends(low + share * width, low, high)
    value, left, right = (float(text.replace(",", "")) for text in texts)
    if not math.isclose(low, high, rel_tol=1e-12, abs_tol=1e-12):
        assert texts[1] != texts[2]
        assert abs(left - low) <= max(width / 10, 1e-12 * abs(low), 1e-12)
    assert left <= value <= right


def test_examples_of_numbers():
    assert points_with_ends(0.004, 0.00399, 0.00401)[1:] == ("0.399", "0.401")
    assert shares(0.01, 0.0099, 0.0101) == ("1.00 %", "0.99 %", "1.01 %")
    assert with_ends(0.0008, 0.00079, 0.00081)[1:] == ("0.000790", "0.000810")
    assert with_ends(math.nan, math.nan, math.nan) == ("unknown",) * 3
    assert unbroken("p <= 0.001, 1 in 2,000") == f"p{NO_BREAK}<= 0.001, 1{NO_BREAK}in{NO_BREAK}2,000".replace(
        "<= ", f"<={NO_BREAK}"
    )


def test_a_wide_table_is_split():
    wide = Table(["class", *(f"column {k}" for k in range(20))], [["x" * 200, *map(str, range(20))]], names=1)
    lines = as_text([wide]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert sum("class" in line for line in lines) > 1
    assert all(any(f"column {k}" in line for line in lines) for k in range(20))
