"""Open reports of hostile names in Chromium: nothing runs, nothing is cut, and every name is shown.

A case draws names of classes, groups, data and command (markup, quotes, templates, marks that turn a line
around, characters that no font shows, words without an end, thousands of groups), scores that are hard to
draw, and a notion. Each case has a generator of its own: `case(seed, number)` makes its page again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant.assessment.text import short

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
#: Names that would do something, look like something else, or break what they are written into.
NAMES = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 2">',
    "' onmouseover='window.ran = 3' x='",
    "</style><style>body { display: none }</style>",
    "</title><script>window.ran = 4</script>",
    "</script><script>window.ran = 5</script>",
    "<!-- <svg onload=window.ran=6> -->",
    "]]><svg/onload=window.ran=7>",
    "<iframe src=javascript:parent.ran=8>",
    "<base href=http://evil.test/><form action=x>",
    "{{ 7 * 7 }}{% raw %}{# no #}",
    "${7 * 7} #{7 * 7} <%= 7 * 7 %>",
    "&lt;b&gt; &amp;amp; &#60;i&#62; &nosuch;",
    "%s %d %n {0} {name!r} \\u003cscript\\u003e",
    "\u202eevil\u202c \u2066left\u2069 \u200f\u200e",
    "\u05e9\u05dc\u05d5\u05dd (\u0645\u0631\u062d\u0628\u0627) 12",
    "nul\0bell\7escape\x1b[31m\x7f\x85",
    "two\nlines\r\nand\ta tab\u2028\u2029",
    "lone \ud83d surrogate \udfff",
    "\ufeff\ufffe\uffff\u00ad\u200b\u2060",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1f3\U0001f1f4 \u2764\ufe0f",
    "Z\u0351\u036b\u0343\u036a\u0302a\u0328\u0321\u034dl\u0334\u0321g\u0337o\u0358",
    "W" * 500,
    "\u6f22" * 300,
    "long-with-dashes-" * 40,
    "spaces " * 100,
    "",
    "   ",
    "None",
    "-1e999",
    "__proto__",
    "constructor",
    "javascript:window.ran=9",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
)
#: What reaches beyond the screen, unless it lies in a box that scrolls.
CUT = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  if (width < 2 || element.closest(".away, title, desc")) return false;
  const box = element.parentElement.closest(".wide");
  if (box) return getComputedStyle(box).overflowX !== "auto";
  return left < -0.5 || right > innerWidth + 0.5;
}).map((element) => `${element.tagName} ${element.textContent.slice(0, 40)}`)"""
#: What no page of ours has.
FOREIGN = """() => [...document.querySelectorAll("*")].filter((element) =>
  ["IMG", "IFRAME", "OBJECT", "EMBED", "LINK", "FORM", "BASE"].includes(element.tagName.toUpperCase())
  || [...element.attributes].some((attribute) => attribute.name.startsWith("on"))
).map((element) => element.outerHTML.slice(0, 60))"""
SAID = (
    "[...document.querySelectorAll('body *')].filter(e => e.tagName !== 'SCRIPT').map(e => [...e.childNodes]"
)
SAID += ".filter(n => n.nodeType === 3).map(n => n.data).join('')).join('\\n')"


@dataclass(frozen=True, eq=False)
class Case:
    """An assessment, and the names that its page must show."""

    name: str
    assessment: Any
    names: tuple[str, ...]


def case(seed: int, number: int) -> Case:
    """Draw an assessment with hostile names."""
    rng = np.random.default_rng([seed, number])
    classes, groups = int(rng.integers(2, 5)), int(rng.choice([0, 2, 5, 1500], p=[0.3, 0.3, 0.3, 0.1]))
    n = int(rng.integers(20, 90))
    notion = str(rng.choice(["confidence", "classwise", "binary", "correctness"]))
    score, label = _scores(rng, notion, n, classes)
    names = tuple(str(name) for name in rng.permutation(NAMES)[:classes])
    about, command = (str(name) for name in rng.choice(NAMES, 2))
    options: dict[str, Any] = {"name": about, "command": command, "rng": 0, "notion": notion}
    if notion == "correctness":
        names = ()
    elif score.ndim == 1:
        names = names[:2]
        options |= {"class_names": names}
    elif rng.random() < 0.5:  # the labels themselves, which must be told apart
        names = tuple(f"{k}{name}" for k, name in enumerate(names))
        label, options = np.array(names, dtype=object)[label], options | {"labels": names}
        options |= {"pos_label": names[0]} if notion == "binary" else {}
    else:
        options |= {"class_names": names, **({"pos_label": 0} if notion == "binary" else {})}
    some = tuple(str(name) for name in rng.choice(NAMES, max(groups, 1)))
    if 0 < groups < n:
        options["groups"] = np.array(some, dtype=object)[np.arange(n) % groups]
    found = calibrant.assess(label, score, **options)
    shown = tuple(name for name in names if found.by_class or name == found.pos_label)
    if groups > n:  # as many rows as a page may have to hold, without the hours that they would take
        row = found.by_class[0] if found.by_class else _row(found)
        rows = tuple(replace(row, name=f"{k} {name}") for k, name in enumerate(some))
        found, shown = replace(found, by_group=rows), (*shown, *(row.name for row in rows))
    elif groups:
        shown = (*shown, *(row.name for row in found.by_group))
    return Case(f"{number} ({notion}, {classes} classes, {groups} groups)", found, shown)


def _scores(rng: np.random.Generator, notion: str, n: int, classes: int) -> tuple[Any, Any]:
    """Draw scores: continuous, of few levels, at the walls, saturated, or all the same."""
    if notion in ("correctness", "binary") and rng.random() < 0.7:
        kinds = (
            rng.random(n),
            rng.choice([0.9, 1.0, 0.5], n),
            rng.integers(0, 2, n).astype(float),
            1 / (1 + np.exp(-rng.normal(8, 8, n))),
            np.full(n, 0.5),
        )
        score = kinds[rng.integers(len(kinds))]
        return score, (rng.random(n) < 0.7 * score).astype(int)
    if notion == "correctness":
        return rng.random(n), rng.integers(0, 2, n)
    score = rng.dirichlet(np.full(classes, float(rng.choice([0.05, 1.0, 50.0]))), n)
    return score, rng.integers(0, classes, n)


def _row(found: Any) -> Any:
    from calibrant.assessment import SubgroupResult

    return SubgroupResult("", 10.0, 0.5, 0.4, found.estimate, 0.5)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright

    path = (
        os.environ.get("CALIBRANT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


def faults(browser: Any, asked: Case, folder: Path) -> list[str]:
    """Open the page of a case, and return what is wrong with it."""
    path = folder / "page.html"
    asked.assessment.to_html(path)
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request", lambda request: request.url == path.as_uri() or wrong.append(f"request: {request.url}")
    )
    page.goto(path.as_uri())
    for button in page.locator("thead button").all()[:3]:
        button.evaluate("element => element.click()")
    for element in page.locator("details").all():
        element.evaluate("element => { element.open = true }")
    if page.evaluate("window.ran") is not None:
        wrong.append("a script of the data ran")
    if page.evaluate("document.scripts.length") != 2 or page.locator("style").count() != 1:
        wrong.append("the data added a script or a style")
    wrong += [f"foreign element: {element}" for element in page.evaluate(FOREIGN)]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("the page is wider than a phone")
    wrong += [f"cut: {element}" for element in page.evaluate(CUT)[:5]]
    said = {" ".join(line.split()) for line in page.evaluate(SAID).split("\n")}
    wrong += [f"not shown: {name!r}" for name in asked.names if " ".join(short(name).split()) not in said]
    if "49" in page.title() or not page.locator("h1").is_visible():
        wrong.append("the title is wrong")
    context.close()
    return wrong


def run(cases: int, seed: int) -> list[str]:
    """Open the pages of so many cases; return what went wrong, nothing if all held."""
    failures = []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for number in range(cases):
            try:
                asked = case(seed, number)
                failures += [f"page {asked.name}: {fault}" for fault in faults(browser, asked, Path(folder))]
            except Exception as error:  # a page that cannot be written is a failure like others
                failures.append(f"page {number}: {type(error).__name__}: {error}")
    return failures
