"""The drawings of the report, by their elements."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reports import binary, saturated

import calibrant
from calibrant.curves import appearance
from calibrant.inputs import house_style as house
from calibrant.report import chart
from calibrant.report.page import picture_of

LEFT, TOP, SIDE, *_ = chart.FRAME
SVG = "{http://www.w3.org/2000/svg}"


def elements(svg, name="*", kind=None):
    return [
        each for each in ET.fromstring(str(svg)).iter(SVG + name) if kind is None or kind in classes(each)
    ]


def classes(element):
    return element.get("class", "").split()


def words(svg):
    return [each.text for each in elements(svg, "text")]


def numbers(element):
    return [float(v) for v in re.findall(r"[\d.]+", element.get("d"))]


@pytest.fixture(scope="module")
def levels():
    rng = np.random.default_rng(0)
    score = np.append(rng.choice([0.2, 0.55, 0.8], 400), [0.95] * 4)
    curve = calibrant.reliability_curve(rng.random(404) < np.where(score == 0.8, 0.4, score), score)
    return replace(picture_of(binary()), curve=curve)


@pytest.fixture(scope="module")
def few():
    rng = np.random.default_rng(0)
    score = rng.random(20)
    return calibrant.reliability_curve(rng.random(20) < score, score)


@pytest.mark.parametrize("log_odds", [False, True])
def test_both_axes_have_the_same_range_on_a_square(log_odds):
    svg = picture_of(saturated()).svg("one", log_odds=log_odds)
    (box,) = elements(svg, "rect", "box")
    assert box.get("width") == box.get("height")
    left, top, side = map(float, ET.fromstring(str(svg)).get("data-frame").split())
    assert [float(box.get(k)) for k in ("x", "y", "width")] == [left, top, side]
    (diagonal,) = elements(svg, "line", "diagonal")
    assert [float(diagonal.get(k)) for k in ("x1", "y1", "x2", "y2")] == [left, top + side, left + side, top]
    ticks = [each for each in elements(svg, "text") if each.get("text-anchor") == "middle"][:-1]
    labels = [each.text for each in elements(svg, "text") if each.get("text-anchor") == "end"]
    assert labels[: len(ticks)] == [each.text for each in ticks]


def test_type_is_at_least_11_pixels_where_it_is_shown(levels):
    shown = 350  # pixels of the drawing on a phone; beside a table the style sets the size of the type
    drawn = [picture_of(binary()).svg("a"), levels.svg("b", log_odds=True)]
    for svg in [*drawn, chart.certainty(binary().estimate)]:
        width = float(ET.fromstring(str(svg)).get("viewBox").split()[2])
        assert width == 360 or width == pytest.approx(362)
        assert min(float(each.get("font-size")) for each in elements(svg, "text")) * shown / width >= 11


def test_colours_and_classes_tell_the_side():
    svg, curve = picture_of(binary()).svg("one"), binary().curve
    firm = appearance.strength(curve.score, curve.n_eff) > 0
    sides = house.sides(curve.score, curve.low, curve.high)
    bands = elements(svg, "path", "band")
    for k, kind in enumerate(("too-high", "too-low", "in-line")):
        drawn = [band for band in bands if kind in classes(band)]
        assert {band.get("fill") for band in drawn} <= {house.SIDE_COLORS[k]}
        if np.any(firm & (sides == k)):
            x = np.concatenate([numbers(band)[::2] for band in drawn])
            ends = LEFT + SIDE * curve.score[firm & (sides == k)][[0, -1]]
            np.testing.assert_allclose([x.min(), x.max()], ends, atol=0.03 * SIDE)
    assert {"too-high", "in-line"} <= {kind for band in bands for kind in classes(band)}
    assert {*house.SIDES[:2]} <= {*words(svg)}
    assert all(0 < float(band.get("fill-opacity")) <= chart.TINT for band in bands)


def test_a_band_holds_its_curve():
    picture = picture_of(binary())
    for log_odds in (False, True):
        svg = picture.svg("one", log_odds=log_odds)
        lines = {each.get("class"): each for each in elements(svg, "path", "curve")}
        for band in elements(svg, "path", "band"):
            assert f"curve {classes(band)[1]}" in lines
            assert band.get("d").endswith("Z")
            y = np.array(numbers(band)[1::2])
            assert y.min() >= TOP - 0.1
            assert y.max() <= TOP + SIDE + 0.1


def test_too_few_rows_have_ticks_but_no_band_and_no_side(few):
    picture = replace(picture_of(binary()), curve=few)
    svg = picture.svg("one")
    assert few.n_eff.max() < 10
    assert not elements(svg, "path", "band")
    assert not elements(svg, "path", "curve")  # which would look certain near the diagonal
    ticks = elements(svg, "path", "rows")
    assert sum(each.get("d").count("M") for each in ticks) == 20
    assert all("single rows" in each.find(f"{SVG}title").text for each in ticks)
    assert elements(chart.thumbnail({"": few}, "few", "two"), "path", "rows")
    assert not elements(picture_of(binary()).svg("three"), "circle", "hollow")


def test_the_histogram_is_mirrored_and_its_maxima_are_labelled():
    picture = picture_of(binary())
    svg = picture.svg("one")
    _, positive, negative = appearance.cells(picture.curve)
    up, down = elements(svg, "path", "hist")
    zero = float(elements(svg, "line", "box")[0].get("y1"))
    assert min(numbers(up)) < zero
    tip = [max(map(float, re.findall(r"V([\d.]+)", each.get("d")))) for each in (up, down)]
    assert tip[0] == pytest.approx(zero, abs=0.06)
    assert tip[1] == pytest.approx(chart.FRAME.foot, abs=0.06)
    assert {f"{positive.max():.0f}", f"{negative.max():.0f}"} <= {*words(svg)}
    assert "rows by score and outcome" in words(svg)
    assert "rows by score and outcome, log scale" in words(picture_of(saturated()).svg("two"))


def test_few_scores_are_dots_with_intervals_and_centred_stems(levels):
    svg = levels.svg("one")
    assert not elements(svg, "path", "band")
    assert not elements(svg, "g", "bin")
    dots, hollow = elements(svg, "circle", "dot"), elements(svg, "circle", "hollow")
    assert [classes(dot)[1] for dot in dots] == ["in-line", "in-line", "too-high"]
    assert [classes(dot)[1] for dot in hollow] == ["in-line"]
    at = [float(dot.get("cx")) for dot in (*dots, *hollow)]
    np.testing.assert_allclose(at, LEFT + SIDE * np.array([0.2, 0.55, 0.8, 0.95]), atol=0.01)
    lines = elements(svg, "line", "curve")
    np.testing.assert_allclose([float(line.get("x1")) for line in lines], at)
    assert [line.get("stroke-dasharray") for line in lines] == [None, None, None, "3 3"]
    ends = [[float(line.get(k)) for k in ("y2", "y1")] for line in lines]
    y = TOP + SIDE * (1 - np.stack([levels.curve.high, levels.curve.low], axis=1))
    np.testing.assert_allclose(ends, y, atol=0.01)
    down = elements(svg, "path", "hist")[1].get("d")
    stems = np.array(re.findall(r"M([\d.]+) [\d.]+V[\d.]+H([\d.]+)", down), dtype=float)
    np.testing.assert_allclose(stems.mean(axis=1), at[: len(stems)], atol=0.1)
    titles = [each.text for each in elements(svg, "title")]
    assert any(each.startswith("score 0.8: 0.") and each.endswith("score too high") for each in titles)
    assert any(each.endswith("4 rows, too few to tell") for each in titles)


def test_impossible_confidences_are_shaded():
    curve = replace(binary().curve, support=(0.25, 1.0), notion="confidence")
    svg = replace(picture_of(binary()), curve=curve).svg("one")
    (shade,) = elements(svg, "rect", "outside")
    assert float(shade.get("width")) == pytest.approx(SIDE / 4)
    assert float(elements(svg, "line", "diagonal")[0].get("x1")) == pytest.approx(LEFT + SIDE / 4)
    assert not elements(picture_of(binary()).svg("two"), "rect", "outside")


def test_every_drawing_has_a_title_and_a_description(levels):
    drawn = [
        picture_of(binary()).svg("a", paper=True),
        levels.svg("b", log_odds=True),
        chart.thumbnail({"": binary().curve}, "<all>", "c"),
        chart.thumbnail({"<a>": binary().curve, "b": binary().curve}, "<all>", "d", coarse=True),
        chart.certainty(binary().estimate),
    ]
    for svg in drawn:
        root = ET.fromstring(str(svg))
        labels = root.get("aria-labelledby").split()
        assert [root.find(f"{SVG}{name}").get("id") for name in ("title", "desc")] == labels
        assert root.find(f"{SVG}desc").text
        assert not [each for each in root.iter() if each.get("style") is not None]
    assert "#fff" in {each.get("fill") for each in elements(drawn[0], "rect")}


def test_certainty_shows_the_interval_and_what_is_expected():
    estimate = binary().estimate
    svg = chart.certainty(estimate)
    assert "percentage points" in words(svg)
    (line,), (dot,) = elements(svg, "line", "curve"), elements(svg, "circle", "dot")
    (expected,), (mean,) = elements(svg, "rect", "expected"), elements(svg, "line", "mark")
    zero, unit = 8.0, (float(dot.get("cx")) - 8) / estimate.value
    shown = [line.get("x1"), line.get("x2"), mean.get("x1"), 8 + float(expected.get("width"))]
    true = np.array([estimate.low, estimate.high, estimate.null.mean, estimate.null.quantiles[0.95]])
    np.testing.assert_allclose(np.array(shown, dtype=float), zero + unit * true, atol=0.1)
    assert any(each.startswith("expected if calibrated: ") for each in words(svg))
    assert any("95 % interval" in each for each in words(svg))


@pytest.mark.parametrize(
    ("gap", "low", "high", "side"),
    [(0.05, 0.02, 0.08, "too-low"), (-0.05, -0.08, -0.02, "too-high"), (0.01, -0.01, 0.3, "in-line")],
)
def test_a_signed_interval_has_too_high_at_the_left(gap, low, high, side):
    svg = chart.signed_interval(gap, low, high, -0.02, 0.01, 0.1)
    (line,), (dot,) = elements(svg, "line", "curve"), elements(svg, "circle", "dot")
    assert classes(line)[1] == classes(dot)[1] == side
    assert (float(dot.get("cx")) > 75) == (gap > 0)
    assert 4 <= float(line.get("x1")) <= float(dot.get("cx")) <= float(line.get("x2")) <= 146
    (expected,) = elements(svg, "rect", "expected")
    assert float(expected.get("x")) == pytest.approx(75 - 14.2)
    assert float(expected.get("width")) == pytest.approx(21.3)
    assert ET.fromstring(str(svg)).get("aria-hidden") == "true"


@pytest.fixture(scope="module")
def best():
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    return calibrant.best_threshold(rng.random(2000) < score**2, score, (1, 9), rng=0)


def test_costs_have_two_marks_on_their_line(best):
    svg = chart.costs(best, 0.95)
    x = lambda threshold: 56 + 290 * threshold  # noqa: E731
    _, dot = elements(svg, "circle", "dot")
    assert float(dot.get("cx")) == pytest.approx(x(best.value), abs=0.01)
    (interval,) = elements(svg, "line", "curve")
    assert float(interval.get("x1")) == pytest.approx(x(best.low), abs=0.01)
    assert float(interval.get("x2")) == pytest.approx(x(best.high), abs=0.01)
    yours = elements(svg, "rect", "mark")[1]
    assert float(yours.get("x")) + 4.5 == pytest.approx(x(best.implied_threshold), abs=0.01)
    assert float(yours.get("y")) < float(dot.get("cy"))
    text = " ".join(words(svg))
    assert f"your threshold 0.1: cost {1000 * best.cost_as_is:.0f}" in text
    assert f"best {best.value:.3g} (95 % interval" in text
    (line,) = elements(svg, "path", "curve")
    assert len(numbers(line)) > 20


def test_costs_near_0_are_on_log_odds_and_never_acting_is_said(best):
    svg = chart.costs(replace(best, value=np.inf, high=np.inf, implied_threshold=0.001), 0.95)
    assert "0.001" in words(svg)
    assert any("best never act: cost" in each for each in words(svg))
    for dot in elements(svg, "circle"):
        assert 0 <= float(dot.get("cx")) <= 360


def test_a_small_drawing_has_the_sides_too():
    svg = chart.thumbnail({"all rows": binary().curve}, "one", "two")
    kinds = {each.get("class") for each in elements(svg, "path")}
    assert {"band too-high", "curve too-high"} <= kinds
    (name,) = [each for each in elements(svg, "text") if each.text == "all rows"]
    assert name.get("class") == "halo too-high"  # below the diagonal, where the curve is
    assert float(name.get("y")) > 100


def test_a_curve_without_a_band_claims_no_side():
    picture = picture_of(binary())
    svg = replace(picture, curve=replace(picture.curve, low=None, high=None, band=None)).svg("one")
    assert not elements(svg, "path", "band")
    assert {classes(each)[1] for each in elements(svg, "path", "curve")} == {"in-line"}


def test_ticks_of_any_axis_are_round():
    ticks = chart.Axis(0.0, 300.0, 0.31, 1.27).ticks
    assert [text for _, text in ticks] == ["0.4", "0.6", "0.8", "1", "1.2"]
    assert [text for _, text in chart.Axis(0.0, 300.0).ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_single_rows_are_those_where_few_are_near():
    edges = np.linspace(0, 1, 51)
    rows = np.zeros(50)
    rows[[10, 40]] = 2.0, 30.0
    curve = SimpleNamespace(
        discrete=False,
        by_outcome=(edges, rows, np.zeros(50)),
        score=np.array([0.0, 0.5, 0.6, 1.0]),
        n_eff=np.array([2.0, 2.0, 30.0, 30.0]),
    )
    positive, negative = appearance.single_rows(curve)
    assert positive == pytest.approx([0.2 + 0.02 / 3, 0.2 + 0.04 / 3])
    assert negative == []
