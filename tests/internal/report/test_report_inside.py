"""The report page as a document: whole, escaped, small, and what its policy allows."""

import base64
import hashlib
import html
import html.parser
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reports import binary, hostile, saturated, ten_classes, too_many_classes, whole_rows

import calibrant
from calibrant.assessment import text as wording
from calibrant.assessment.text import points
from calibrant.inputs.wording import points_with_ends
from calibrant.report import chart
from calibrant.report.page import looked_up, picture_of
from calibrant.report.svg import Axis, area, path, runs, tag, text


class Outline(html.parser.HTMLParser):
    """Elements, attributes and ids of a page; complains about tags that do not match."""

    VOID = {"meta", "input", "link", "br", "img"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.ids = [], [], []

    def handle_starttag(self, name, attributes):
        self.seen.append((name, dict(attributes)))
        self.ids += [value for key, value in attributes if key == "id"]
        if name not in self.VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.seen.append((name, dict(attributes)))
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_endtag(self, name):
        assert self.open.pop() == name, name


def outline(page):
    found = Outline()
    found.feed(page)
    assert not found.open
    return found


ALL = [binary, ten_classes, hostile, saturated, whole_rows, too_many_classes]


@pytest.fixture(scope="module", params=ALL, ids=lambda f: f.__name__)
def found(request):
    return request.param()


def test_the_page_of_a_comparison_is_closed_and_shows_its_numbers(tmp_path):
    rng = np.random.default_rng(0)
    sure = {name: rng.random(400) for name in ("old", "<script>alert(1)</script>")}
    right = {"old": rng.random(400) < sure["old"] ** 3, "<script>alert(1)</script>": rng.random(400) < 0.5}
    found = calibrant.compare(right, sure, notion="correctness", n_resamples=99)
    page = found.to_html()
    assert found.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    tree = outline(page)
    assert not {name for name, _ in tree.seen} & {"link", "img", "script", "iframe", "form"}
    assert "<script" not in page
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in page
    (difference,) = found.differences.values()
    text_ = html.unescape(page).replace("\xa0", " ").replace("−", "-")
    assert difference.sentence in text_
    for value, low, high in [
        points_with_ends(difference.value, difference.low, difference.high, "+"),
        *(points_with_ends(e.value, e.low, e.high) for e in found.estimates.values()),
    ]:
        assert f"<b>{value}</b>" in text_
        assert f"{low} to {high}" in text_
    accuracy = difference.accuracy
    for share in (accuracy.model_accuracy, accuracy.baseline_accuracy):
        assert f">{100 * share:.1f}</td>" in page
    for caution in found.cautions:
        assert caution in text_
    assert "paired by row" in text_


def test_the_embedded_numbers_are_the_curve(found):
    (text_,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', found.html(), re.S)
    data = json.loads(text_)
    curve = picture_of(found).curve
    np.testing.assert_allclose(
        np.interp(data["score"], curve.score, np.nan_to_num(curve.value)),
        [v or 0.0 for v in data["means"]],
        atol=1e-4,
    )
    assert not set(text_) & set("<>&\u2028")


# Drawing


def test_text_and_attributes_are_escaped():
    assert str(tag("text", '<&"', title='"><b>')) == '<text title="&#34;&gt;&lt;b&gt;">&lt;&amp;&#34;</text>'
    assert "&lt;b&gt;" in str(text("<b>", 1, 2))


def test_the_log_odds_axis_is_straight_in_log_odds():
    axis = Axis(10.0, 100.0, 0.01, 0.99, True)
    np.testing.assert_allclose(axis([0.01, 0.5, 0.99]), [10, 60, 110])
    np.testing.assert_allclose(axis([0.0, 1.0]), [10, 110])
    assert np.isnan(axis(np.nan))
    assert [words for _, words in axis.ticks] == ["0.01", "0.1", "0.5", "0.9", "0.99"]
    sharp = Axis(0.0, 1.0, 1e-8, 1 - 1e-8, True)
    assert len(sharp.ticks) <= 12
    assert "0.5" in [words for _, words in sharp.ticks]


def test_paths_break_where_nothing_is_known():
    x, y = np.arange(5.0), np.array([0.0, 1.0, np.nan, 3.0, 4.0])
    assert path(x, y) == "M0 0L1 1M3 3L4 4"
    assert area(x, y, y + 1) == "M0 1L1 2L1 1L0 0ZM3 4L4 5L4 4L3 3Z"
    assert list(runs(np.zeros(3, dtype=bool))) == []


def test_a_bar_stays_within_its_cell():
    for value in (0.0, 0.2, 1.0):
        estimate = SimpleNamespace(value=value, low=0.0, high=2.0, null=SimpleNamespace(mean=0.5))
        drawn = str(chart.bar(estimate, 1.0))
        assert all(0 <= float(v) <= 150 for v in re.findall(r'(?:x1|x2|cx)="([\d.]+)"', drawn))


@pytest.mark.usefixtures("few_reference_estimators")
def test_scores_that_are_few_are_shown_each_by_itself():
    rng = np.random.default_rng(0)
    score = np.append(rng.choice([0.2, 0.55, 0.8], 300), [0.95] * 4)
    found = calibrant.assess(rng.random(304) < score, score, rng=0)
    page = found.html().replace("\N{NO-BREAK SPACE}", " ")
    assert "Each score that occurs, with its 95 % interval" in page
    assert "Points with their 95 percent bars show" in page
    rows = looked_up(picture_of(found), sure=True)
    assert [row["score"] for row in rows] == pytest.approx([0.2, 0.55, 0.8, 0.95])
    assert [row["word"] == "too few rows" for row in rows] == [False, False, False, True]
    drawn = re.search(r'id="even" .*?</svg>|<svg[^>]*id="even".*?</svg>', page, re.S).group()
    assert len(re.findall(r"<title>score 0\.", drawn)) == 4
    assert "Between them the curve is interpolated" not in page
    again = calibrant.Assessment.from_dict(found.to_dict()).curve
    assert again.discrete
    np.testing.assert_array_equal(again.at([0.2, 0.5]).low, found.curve.at([0.2, 0.5]).low)


@pytest.mark.usefixtures("few_reference_estimators")
def test_a_score_for_which_one_row_speaks_is_not_called_in_line():
    rng = np.random.default_rng(0)
    score = np.append(0.6 * rng.random(400), 0.9)
    found = calibrant.assess(np.append(rng.random(400) < score[:-1], True), score, rng=0)
    rows = looked_up(picture_of(found), sure=True, example=0.9)
    assert rows[-1]["score"] == 0.9
    assert rows[-1]["example"]
    assert rows[-1]["word"] == "too few rows"
    assert rows[len(rows) // 2]["word"] == "looks right"


@pytest.mark.usefixtures("few_reference_estimators")
def test_scores_are_looked_up_where_the_rows_are():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 60, 4000)
    found = calibrant.assess(rng.random(4000) < score, score, rng=0)
    scores = [row["score"] for row in looked_up(picture_of(found), sure=True, example=0.015)]
    assert 0.015 in scores
    assert np.quantile(score, 0.5) > scores[3] > 0
    assert max(scores) < 1.5 * np.quantile(score, 0.99)
    assert "e-0" not in re.search(r"<table class=.lookup scores.*?</table>", found.html(), re.S).group()


def test_whole_rows_are_shown_by_pairs_and_predictions():
    found = whole_rows()
    page = found.html().replace("\N{NO-BREAK SPACE}", " ")
    tree = outline(page)
    assert {"heat", "h-transfer"} <= set(tree.ids)
    assert page.index('id="h-curve"') < page.index('id="h-transfer"')
    assert f'<p class="lead">{wording.transfer_sentence(found)}</p>' in page
    assert "use the confidence notion." in page
    assert "Accuracy by confidence" in page
    assert "The error is at least" in page
    words = re.findall(r"<title>(\w+) (receives|gives) ([\d.]+) points (from|to) (\w+)</title>", page)
    assert len(words) == 6
    assert ("wolf", "receives", points(found.probability_transfer.net[0, 1]), "from", "cat") in words
    assert ("cat", "gives", points(found.probability_transfer.net[0, 1]), "to", "wolf") in words
    # Canonical calibration has no direction; the confidence of groups and classes have one in the mean.
    classes, end = page.index('id="h-classes"'), page.index('id="h-action"')
    for table in (page[page.index('id="h-groups"') : classes], page[classes:end]):
        assert "gap, points" in table
