"""Make the report of each kind of model with its pictures: python docs/report_cases.py FOLDER [CASE ...]

Needs the extra `test` and Chromium (on the path, or named by CALIBRANT_CHROMIUM). For each case the folder
gets the page, its first screen at 1280 and 390 pixels, the whole page in light and dark colours, and a PDF.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import calibrant

VIEWS = {
    "1280": ({"width": 1280, "height": 800}, "light", False),
    "390": ({"width": 390, "height": 844}, "light", False),
    "page": ({"width": 1280, "height": 800}, "light", True),
    "phone": ({"width": 390, "height": 844}, "light", True),
    "dark": ({"width": 1280, "height": 800}, "dark", True),
}


def sigmoid(logit):
    return 1 / (1 + np.exp(-logit))


def overconfident(n, shape=0.8, seed=0):
    """Labels and scores of which the high ones are too high."""
    rng = np.random.default_rng(seed)
    score = rng.beta(shape, shape, n)
    return (rng.random(n) < score**1.6).astype(int), score


def multiclass(n, classes, factor, seed=1):
    """Labels and overconfident scores of classes that are not equally common."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes)) - np.linspace(0, 1, classes)
    true, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, factor))
    return (rng.random((n, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1), said


def few_rows():
    label, score = overconfident(150)
    return calibrant.assess(label, score, rng=0, name="rain tomorrow")


def rare():
    rng = np.random.default_rng(3)
    logit = rng.normal(-6.5, 1.3, 50_000)
    fraud = (rng.random(50_000) < sigmoid(logit)).astype(int)
    return calibrant.assess(fraud, sigmoid(1.15 * logit + 1.6), rng=0, name="fraud")


def ten():
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    return calibrant.assess(*multiclass(2000, 10, 2.0), rng=0, class_names=names, name="pictures")


def hundred():
    names = [f"kind {k:02d}" for k in range(100)]
    return calibrant.assess(*multiclass(10_000, 100, 1.6), rng=0, class_names=names, name="species")


def groups():
    rng = np.random.default_rng(5)
    countries = np.array(["Austria", "Brazil", "Chile", "Denmark", "Egypt", "France", "Ghana", "Hungary"])
    country, logit = countries[rng.integers(0, 8, 8000)], rng.normal(0, 1.5, 8000)
    shift = np.where(country == "Brazil", -1.0, np.where(country == "Ghana", 1.0, 0.0))
    label = (rng.random(8000) < sigmoid(logit + shift)).astype(int)
    return calibrant.assess(label, sigmoid(logit), groups=country, rng=0, name="credit default")


def levels():
    rng = np.random.default_rng(0)
    question = np.repeat(np.arange(300), 4)
    said = rng.choice([60, 70, 80, 90, 100], 1200, p=[0.1, 0.15, 0.25, 0.3, 0.2])
    hard = rng.normal(0, 1.5, 300)[question]
    correct = rng.random(1200) < sigmoid(0.025 * said - hard)
    given = {
        "notion": "correctness",
        "percent": True,
        "cluster": question,
        "name": "answers of a language model",
    }
    return calibrant.assess(correct, said, rng=0, **given)


def costs():
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    sick = (rng.random(4000) < score**2.5).astype(int)
    return calibrant.assess(sick, score, cost=(1, 9), rng=0, name="tumour")


def thirty():
    label, score = overconfident(30)
    return calibrant.assess(label, score, rng=0, name="pilot study")


def hard_labels():
    rng = np.random.default_rng(7)
    label = rng.integers(0, 2, 1000)
    return calibrant.assess(
        label, np.where(rng.random(1000) < 0.85, label, 1 - label), rng=0, name="spam filter"
    )


CASES = {
    "binary-150": few_rows,
    "rare": rare,
    "ten-classes": ten,
    "hundred-classes": hundred,
    "groups": groups,
    "levels": levels,
    "costs": costs,
    "thirty-rows": thirty,
    "hard-labels": hard_labels,
}


def picture(browser, page, folder):
    """Write the pictures and the PDF of a page."""
    for view, (viewport, scheme, full) in VIEWS.items():
        tab = browser.new_page(viewport=viewport, color_scheme=scheme)
        tab.goto(page.as_uri())
        tab.screenshot(path=folder / f"{page.stem}-{view}.png", full_page=full)
        if view == "page":
            margin = dict.fromkeys(("top", "right", "bottom", "left"), "15mm")
            tab.pdf(path=folder / f"{page.stem}.pdf", format="A4", margin=margin)
        tab.close()


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("CALIBRANT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in names or CASES:
            page = folder.resolve() / f"{name}.html"
            CASES[name]().to_html(page)
            picture(browser, page, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
