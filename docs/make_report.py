"""Make the example reports and the picture of the README: python docs/make_report.py

Needs the extras `demo` and `test`, and Chromium (on the path, or named by CALIBRANT_CHROMIUM).
Writes docs/images/report.png, docs/images/report-classes.png and docs/images/report-dark.png.
"""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import calibrant
from calibrant.cli.demo import digits

IMAGES = Path(__file__).parent / "images"


def binary():
    """Whether a digit is odd, by a forest, held out."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    data = load_digits()
    odd = np.array(["even", "odd"])[data.target % 2]
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    scores = cross_val_predict(forest, data.data, odd, cv=5, method="predict_proba")
    groups = np.where(data.target < 5, "0 to 4", "5 to 9")
    name = "odd digits, random forest"
    return calibrant.assess(odd, scores[:, 1], pos_label="odd", groups=groups, rng=0, name=name)


def main() -> None:
    labels, scores = digits()
    assessment = calibrant.assess(labels, scores, rng=0, name="handwritten digits, random forest")
    browser_path = os.environ.get("CALIBRANT_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for found, name, scheme, height in (
            (assessment, "report", "light", 1150),
            (assessment, "report-classes", "light", None),
            (binary(), "report-dark", "dark", 1150),
        ):
            page = Path(folder) / f"{name}.html"
            found.to_html(page)
            view = browser.new_context(
                viewport={"width": 1160, "height": height or 900}, color_scheme=scheme, device_scale_factor=1
            ).new_page()
            view.goto(page.as_uri())
            box = view.locator("#even, #odds").locator("visible=true").bounding_box()
            view.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.4 * box["height"])
            view.screenshot(path=IMAGES / f"{name}.png", full_page=height is None)
        browser.close()


if __name__ == "__main__":
    main()
