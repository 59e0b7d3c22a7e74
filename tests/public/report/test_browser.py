"""The report in a real Chromium: reading off, keys, sorting, dark, without scripts, under its policy.

Where there is no Chromium these tests are skipped, but never where CI is set. Screenshots are kept in the
folder that CALIBRANT_SCREENSHOTS names.
"""

import os
import re
import shutil
import sys
from importlib import util
from pathlib import Path

import pytest
from tests.reports import binary, hostile, saturated, ten_classes, whole_rows

BROWSER = os.environ.get("CALIBRANT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CI = os.environ.get("CI", "").lower() in ("1", "true")
if not CI:
    pytest.importorskip("playwright", reason="needs playwright")
    if BROWSER is None:
        pytest.skip("needs Chromium", allow_module_level=True)

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ROOT = Path(__file__).parents[3]
REPORTS = {
    "binary": binary,
    "ten-classes": ten_classes,
    "hostile": hostile,
    "saturated": saturated,
    "whole-rows": whole_rows,
}


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, make in REPORTS.items():
        make().to_html(folder / f"{name}.html")
    return folder


@pytest.fixture
def visit(browser, files):
    """Open a report; console messages, errors and requests beyond the file itself are failures."""
    contexts, faults = [], []

    def go(name, **options):
        context = browser.new_context(viewport={"width": 1180, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        address = (files / f"{name}.html").as_uri()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url == address or faults.append(request.url))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not faults


def keep(page, name):
    if folder := os.environ.get("CALIBRANT_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def reading(page):
    return page.locator("#readout").inner_text()


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_report_opens_without_complaint_and_is_accessible(visit, name, scheme):
    page = visit(name, color_scheme=scheme)
    keep(page, f"{name}-{scheme}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_moving_along_the_score_axis_reads_off_what_a_score_means(visit):
    page = visit("binary")
    drawn = page.locator("#even")
    drawn.scroll_into_view_if_needed()
    box, (left, _, side) = drawn.bounding_box(), map(float, drawn.get_attribute("data-frame").split())
    width = drawn.evaluate("svg => svg.viewBox.baseVal.width")
    x = box["x"] + (left + 0.83 * side) / width * box["width"]
    page.mouse.move(x, box["y"] + box["height"] / 2)
    words = reading(page)
    number = r"(\d+)\s%"
    means = rf"score (\d\.\d\d): estimated {number} \({number} to {number}\), about\s\d+\srows\s\(effective\)"
    found = re.fullmatch(means, words)
    assert found, words
    score, means, low, high = map(float, found.groups())
    assert score == 0.83
    at = binary().curve.at(score)
    assert (means, low, high) == pytest.approx((100 * at.value, 100 * at.low, 100 * at.high), abs=1.1)
    cross = page.locator("#even .cross")
    assert cross.get_attribute("visibility") == "visible"
    assert float(cross.get_attribute("x1")) == pytest.approx(left + 0.83 * side, abs=1)
    keep(page, "binary-hover")


def test_a_score_can_be_typed(visit):
    page = visit("binary")
    score = page.get_by_label("Look up a score")
    example = page.locator(".scores .example")
    assert float(score.input_value()) == float(example.locator("th").inner_text())
    assert example.locator("td").first.inner_text() in reading(page)
    score.fill("0.305")
    assert reading(page).startswith("score 0.3")
    before = reading(page)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert reading(page) != before
    score.fill("7")
    assert reading(page) != "score 7: no rows nearby"


def test_commands_can_be_copied(visit):
    page = visit("binary")
    page.locator(".copy").first.click()
    assert page.evaluate("getSelection().toString().trim()") == binary().verdict.command
    assert page.locator(".copy").first.inner_text() in ("Copied", "Selected")


def test_touch_reads_off_too(visit):
    page = visit("binary", has_touch=True)
    before = reading(page)
    page.locator("#even").scroll_into_view_if_needed()
    box = page.locator("#even").bounding_box()
    page.touchscreen.tap(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
    assert reading(page) != before
    assert "estimated" in reading(page)


def test_the_log_odds_axis_can_be_chosen_with_and_without_scripts(visit):
    for scripts in (True, False):
        page = visit("binary", java_script_enabled=scripts)
        assert page.locator("#even").is_visible()
        assert not page.locator("#odds").is_visible()
        page.get_by_label("log-odds axes").check()
        assert page.locator("#odds").is_visible()
        assert not page.locator("#even").is_visible()
    page = visit("saturated")
    page.get_by_label("Look up a score").fill("0.99999")
    assert re.match(r"score 0\.99999: estimated", reading(page)), reading(page)


def test_tables_filter_and_show_the_curves_of_classes(visit):
    page = visit("ten-classes")
    rows = page.locator("#table-class tbody tr:visible")
    assert rows.count() == 10
    page.get_by_label("Filter classes").fill("AUTO")
    assert rows.count() == 1
    assert not rows.locator("svg.thumbnail").is_visible()
    rows.locator("summary").click()
    assert rows.locator("svg.thumbnail").is_visible()


def test_tables_sort_by_their_columns(visit):
    page = visit("ten-classes")
    table = page.locator("#table-class")

    def names():
        return table.locator("tbody th bdi").all_inner_texts()

    def column(k):
        cells = table.locator("tbody tr").all()
        return [float(cell.locator("td").nth(k).get_attribute("data-value")) for cell in cells]

    worst_first = names()
    errors = 7  # the column of the calibration error
    assert column(errors) == sorted(column(errors), reverse=True)
    button = table.get_by_role("button", name=re.compile("^class"))
    button.click()
    assert names() == sorted(worst_first)
    assert table.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert names() == sorted(worst_first, reverse=True)
    table.get_by_role("button", name=re.compile("^observed")).click()
    assert column(1) == sorted(column(1), reverse=True)


def test_dark_and_light_follow_the_system_and_the_button(visit):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = visit("binary"), visit("binary", color_scheme="dark")
    bright, dim = paper(light), paper(dark)
    assert bright == "rgb(255, 255, 255)"
    assert dim != bright
    for page, other in ((light, dim), (dark, bright)):
        page.locator("#theme").click()
        assert paper(page) == other
    band = "getComputedStyle(document.querySelector('#even .band')).fill"
    assert light.evaluate(band) != dark.evaluate(band)


def test_without_scripts_everything_can_be_read(visit):
    page = visit("ten-classes", java_script_enabled=False)
    keep(page, "ten-classes-no-script")
    words = page.locator("main").text_content()
    for part in ("Accuracy by confidence", "airplane", "night", "refinement", "equal-mass bins"):
        assert part in words
    assert page.locator(".reader:visible").count() == 0
    assert not page.locator("#theme").is_visible()
    assert page.locator("#even .curve").count() > 0


def test_colours_survive_where_even_styles_are_forbidden(browser, files):
    # Some build servers show artefacts under a policy that allows no style at all.
    context = browser.new_context()
    page = context.new_page()
    body = (files / "binary.html").read_text()
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    page.route("**/*", lambda route: route.fulfill(body=body, headers=headers, content_type="text/html"))
    page.goto("http://report.test/")
    keep(page, "binary-no-style")
    assert page.locator("h1").inner_text().replace("\N{NO-BREAK SPACE}", " ") == binary().verdict.headline
    fill = "getComputedStyle(document.querySelector('#even .band.too-high')).fill"
    assert page.evaluate(fill) == "rgb(163, 60, 0)"
    context.close()


def test_hostile_names_run_nothing_and_break_nothing(visit):
    page = visit("hostile")
    assert page.locator("main script, main img, main b:has-text('7*7')").count() == 0
    assert "<script>alert(1)</script>" in page.locator("#h-classes + p + .wide").inner_text()
    assert "49" not in page.title()
    keep(page, "hostile")


def test_it_prints_light_and_without_controls(visit):
    page = visit("ten-classes", color_scheme="dark")
    page.emulate_media(media="print")
    keep(page, "ten-classes-print")
    assert not page.locator("#theme").is_visible()
    assert page.locator(".reader:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".lookup, .stack").first.is_visible()
    assert page.get_by_text("refinement", exact=True).is_visible()  # details are open
    assert page.locator("#table-class tbody tr:visible").count() == 10
    assert page.pdf(format="A4").startswith(b"%PDF")


# What reaches beyond the screen, unless it lies in a box that scrolls.
CUT = """() => [...document.querySelectorAll("header, section, body *")].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  if (width < 2 || element.closest(".away")) return false;
  const box = element.parentElement.closest(".wide");
  if (box) return getComputedStyle(box).overflowX !== "auto";
  return left < -0.5 || right > innerWidth + 0.5;
}).map((element) => `${element.tagName} ${element.textContent.slice(0, 40)}`)"""
SECTIONS = """() => [...document.querySelectorAll("header, section")].filter(
  (section) => section.scrollWidth > innerWidth).map((section) => section.textContent.slice(0, 40))"""


# Text of drawings that is smaller than 11 pixels.
SMALL = """() => [...document.querySelectorAll("svg text")].filter((text) => {
  const drawn = text.ownerSVGElement, box = drawn.getBoundingClientRect();
  const scale = box.width / drawn.viewBox.baseVal.width;
  return text.checkVisibility() && parseFloat(getComputedStyle(text).fontSize) * scale < 10.95;
}).map((text) => `${text.ownerSVGElement.id} ${text.textContent}`)"""


def test_it_fits_a_phone(browser, files):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    for name in REPORTS:
        page.goto((files / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate(SECTIONS) == []
        for details in page.locator("details").all():
            details.evaluate("element => { element.open = true }")
        assert page.evaluate(CUT) == []
        assert page.evaluate(SMALL) == []
        # The frequency at a score is visible without scrolling.
        assert page.evaluate("(table => table.scrollWidth <= table.parentElement.clientWidth)"
                             "(document.querySelector('.lookup'))"), name  # fmt: skip
        keep(page, f"{name}-phone")
    context.close()


@pytest.fixture
def pages():
    """Return the attack of which this is a small version."""
    spec = util.spec_from_file_location("attack_on_pages", ROOT / "benchmarks" / "attacks" / "pages.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pages_hold_whatever_the_names_are(pages, browser, tmp_path):
    for number in range(2):
        case = pages.case(1, number)
        assert case.names
        assert pages.faults(browser, case, tmp_path) == []


def test_the_attack_on_pages_runs_and_finds_what_it_looks_for(pages, browser, tmp_path):
    class Broken:
        def to_html(self, path):
            path.write_text(
                "<title>49</title><h1 style='display: none'>x</h1><p style='width: 900px'>wide</p>"
                "<script>window.ran = 1; console.log(1)</script><img src=data:,x>"
            )

    wrong = " ".join(pages.faults(browser, pages.Case("broken", Broken(), ("a name",)), tmp_path))
    for fault in (
        "console",
        "ran",
        "added a script",
        "foreign",
        "wider",
        "cut",
        "not shown: 'a name'",
        "title",
    ):
        assert fault in wrong
