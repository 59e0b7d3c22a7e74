"""The report page as a document: whole, escaped, small, and what its policy allows."""

import base64
import hashlib
import html
import html.parser
import re
import stat
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reports import HOSTILE, binary, hostile, saturated, ten_classes, too_many_classes, whole_rows

import calibrant

pytestmark = pytest.mark.full


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


def test_the_page_is_well_formed_small_and_asks_for_nothing(found):
    page = found.html()
    tree = outline(page)
    assert len(page.encode()) < 2_000_000
    assert len(set(tree.ids)) == len(tree.ids)
    assert not {name for name, _ in tree.seen} & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for name, attributes in tree.seen:
        assert "style" not in attributes, name
        assert not [key for key in attributes if key.startswith("on")]
        assert not {"src", "xlink:href", "action"} & set(attributes)
        assert attributes.get("href", "#h-").startswith("#h-")
    assert {one["href"][1:] for _, one in tree.seen if "href" in one} <= set(tree.ids)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "url(" not in page
    assert "@import" not in page


def test_the_policy_allows_the_pages_own_style_and_script_alone(found):
    page = found.html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for element in ("style", "script"):
        (body,) = re.findall(rf"<{element}>(.*?)</{element}>", page, flags=re.S)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_hostile_names_stay_text():
    found = hostile()
    page = found.html()
    for raw in ("<script>alert", "<img", "<b>&", "</style><b", "${x} \n"):
        assert raw not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert page.count("<script") == 2
    assert "\u202e" not in page
    fragment = found._repr_html_()
    assert "<script" not in fragment
    assert "<img" not in fragment
    outline(fragment)


def test_the_answer_comes_first_and_sections_follow_in_order():
    page = ten_classes().html().replace("\N{NO-BREAK SPACE}", " ")
    verdict = ten_classes().verdict
    order = [
        "600 rows",
        f'class="card {verdict.state.replace(" ", "-")}"',
        verdict.state.capitalize(),
        f"<h1>{verdict.headline}</h1>",
        verdict.action,
        "<dt>Accuracy</dt>",
        '<nav aria-label="Contents">',
        '<h2 id="h-curve">Accuracy by confidence',
        '<h2 id="h-where">Where it is wrong',
        '<h3 id="h-groups">',
        '<h3 id="h-classes">',
        '<h2 id="h-action">What to do',
        '<h2 id="h-certainty">Uncertainty',
        '<h2 id="h-details">Details',
        "Estimators compared",
        "Decomposition of proper scores",
        "Methods and settings",
    ]
    at = [page.index(words) for words in order]
    assert at == sorted(at)
    found = ten_classes()
    for words in (found.verdict.headline, found.digest, "equal-mass bins", "calibrant report data.csv"):
        assert words in page
    assert "Where it is wrong" not in binary().html()


def test_a_binary_page_is_small():
    assert len(binary().html().encode()) < 100_000


def test_every_state_is_told_by_word_and_shape():
    shapes = set()
    for state in ("trust", "trust with care", "do not trust", "cannot tell yet"):
        card = SimpleNamespace(
            state=state, finding="error", headline="h", trust="t", where="", action="a", reason="r",
            tolerance=0.02, rows_needed=None, command="f(x = 1)", groups=(),
        )  # fmt: skip
        page = _rendered_with(card)
        assert state.capitalize() in page
        assert "<code>f(x = 1)</code>" in page  # spaces that can be pasted
        shapes.add(re.search(r'class="symbol".*?</svg>', page, re.S).group())
    assert len(shapes) == 4


def _rendered_with(verdict):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrant.Assessment, "verdict", verdict)
        return binary().html()


@pytest.mark.usefixtures("few_reference_estimators")
def test_the_class_wise_headline_shows_its_worst_class():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    found = calibrant.assess(rng.integers(0, 3, 200), p, notion="classwise", rng=0)
    page = found.html()
    assert f"Shown for the class with the largest error, <bdi>{found.by_class[0].name}</bdi>" in page


def test_linear_axes_come_first_even_for_saturated_scores():
    page = saturated().html()
    assert re.search(r'id="axis-even" class="switch" checked', page)
    assert not re.search(r'id="axis-odds" class="switch" checked', page)
    assert "saturated" in page


@pytest.mark.usefixtures("few_reference_estimators")
def test_one_table_has_all_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(22), 60)
    page = calibrant.assess(rng.integers(0, 22, 60), p, rng=0).html()
    (table,) = re.findall(r'<table class="sortable stack" id="table-class">(.*?)</table>', page, re.S)
    assert table.count("<tr>") == 23
    assert table.count("<details>") == 12  # the curves of the classes with the largest errors
    assert 'data-table="table-class"' in page


@pytest.mark.usefixtures("few_reference_estimators")
def test_groups_have_signed_gaps_and_long_names_are_cut_in_the_middle():
    rng = np.random.default_rng(0)
    score, group = rng.random(1200), np.arange(1200) % 3
    shift = np.array([0.3, -0.3, 0.0])[group]
    names = np.array(["north", "south", "segment-" + "x" * 60 + "-2024"])
    found = calibrant.assess(rng.random(1200) < score + shift, score, groups=names[group], rng=0)
    page = found.html()
    (table,) = re.findall(r'id="table-group">(.*?)</table>', page, re.S)
    assert re.search(r">north</bdi>.*?>too low</td>", table, re.S)
    assert re.search(r">south</bdi>.*?>too high</td>", table, re.S)
    assert re.search(rf'<bdi title="{names[2]}">segment-x+…x+-2024</bdi>', table)
    assert "O:E" in table


def test_the_file_is_written_whole(tmp_path):
    target = tmp_path / "report.html"
    assert binary().to_html(target) is None
    assert target.read_text(encoding="utf-8") == binary().html()
    assert stat.S_IMODE(target.stat().st_mode) & 0o600 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="missing"):
        binary().to_html(tmp_path / "missing" / "report.html")


@pytest.mark.usefixtures("few_reference_estimators")
def test_effective_rows_of_clusters_are_not_called_rows():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 5)
    score = rng.choice([0.2, 0.5, 0.8], 300)
    y = rng.random(300) < 1 / (1 + np.exp(-np.log(score / (1 - score)) - rng.normal(0, 1, 60)[cluster]))
    found = calibrant.assess(y, score, cluster=cluster, rng=0)
    assert found.curve.discrete
    assert found.curve.n_eff.sum() < 290
    page = found.html().replace("\N{NO-BREAK SPACE}", " ")
    assert ">rows (effective)</th>" in page
    assert '"size":"rows (effective)"' in page
    assert len(re.findall(r"<title>score 0\.[^<]*, about \d+ rows \(effective\)", page)) >= 3
    assert not re.search(r"<title>score 0\.[^<]*, \d+ rows,", page)


@pytest.mark.usefixtures("few_reference_estimators")
def test_the_table_has_the_scores_that_many_rows_share():
    rng = np.random.default_rng(0)
    score = np.where(rng.random(800) < 0.25, 1.0, np.where(rng.random(800) < 0.2, 0.37, rng.random(800)))
    found = calibrant.assess(rng.random(800) < 0.8 * score, score, notion="correctness", rng=0)
    page = found.html()
    for level in ("0.37", "1.00"):
        assert f'<th scope="row">{level}</th>' in page
    levels = rng.choice([0.9, 1.0], 400)
    page = calibrant.assess(rng.random(400) < 0.8 * levels, levels, notion="correctness", rng=0).html()
    assert re.findall(r'<tr[^>]*><th scope="row">(\d\.\d+)</th>', page) == ["0.90", "1.00"]


def test_a_p_value_at_its_floor_is_a_bound_everywhere():
    found = binary()
    assert found.estimate.p_value == 0.001
    for words in (
        found.html().replace("\N{NO-BREAK SPACE}", " "),
        found._repr_html_().replace("\N{NO-BREAK SPACE}", " "),
        str(found),
        found.methods,
    ):
        assert re.search("(≤|<=) 0.001", words)
        assert not re.search("p = 0.001|p 0.001|<td>0.001</td>", words)


def test_of_many_classes_the_page_says_what_cannot_be_seen():
    page = too_many_classes().html()
    assert "h-transfer" not in outline(page).ids
    assert "what can be seen of it" in page
    assert "among 3 classes the transfer between them cannot be seen" in page


def test_hostile_classes_of_whole_rows_are_escaped():
    page = replace(whole_rows(), classes=HOSTILE[:3]).html()
    outline(page)
    assert "<script>alert(1)" not in page
    assert "<img" not in page


def test_groups_that_are_dates_are_in_the_order_of_time():
    rng = np.random.default_rng(0)
    score, day = rng.random(400), np.arange(400) % 4
    y = rng.random(400) < np.where(day == 2, score**3, score)
    dates = np.array(["2026-05-30", "2026-06-02", "2026-05-31", "2026-06-01"])[day]
    page = calibrant.assess(y, score, groups=dates, n_resamples=99).html()
    assert re.findall(r"<summary><bdi>(2026-\d\d-\d\d)</bdi>", page) == sorted(set(dates.tolist()))


def test_the_curves_of_groups_that_decide_stand_beside_the_verdict():
    rng = np.random.default_rng(0)
    group, score = np.arange(3000) % 3, rng.random(3000)
    chance = np.clip(score + np.array([-0.15, 0.15, 0.0])[group], 0, 1)
    names = np.array(["north", "south", "east"])[group]
    found = calibrant.assess(rng.random(3000) < chance, score, groups=names, rng=0)
    assert found.verdict.groups == ("north", "south")
    page = found.html()
    drawn = page[page.index('id="thumbnail"') :]
    drawn = drawn[: drawn.index("</svg>")]
    assert re.findall(r'class="halo (too-\w+)"[^>]*>(\w+)<', drawn) == [
        ("too-high", "north"),
        ("too-low", "south"),
    ]
    assert page.count('id="group-') == 3 * 3  # drawing, title and description of each group
    stored = calibrant.Assessment.from_json(found.to_json())
    assert stored.html() == calibrant.Assessment.from_json(stored.to_json()).html()
    outcome = rng.random(3000) < chance
    again = calibrant.assess(outcome, score, groups=names, rng=0)
    row, (selected,) = again.by_group[0], [names == again.by_group[0].name]
    alone = calibrant.reliability_curve(outcome[selected], score[selected])
    np.testing.assert_allclose(row.curve.value, alone.value, atol=1e-12)
    assert row.gap.value == -row.estimate.mean_difference
    assert row.gap.low < outcome[selected].mean() - score[selected].mean() < row.gap.high


def test_the_mean_gap_of_a_class_is_frequency_minus_score():
    found = ten_classes()
    for row in found.by_class:
        raw = (row.observed - row.expected) / row.estimate.n
        assert row.gap.value * raw >= 0  # the posterior mean is nearer to 0
        assert abs(row.gap.value) <= min(abs(raw), row.estimate.value) + 1e-9
        assert row.gap.low <= row.gap.value <= row.gap.high
        assert row.gap.low <= raw <= row.gap.high
