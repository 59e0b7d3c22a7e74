"""What is printed about assessments of several shapes: p-values, numbers of things, levels, sample sizes."""

import html
import re

import numpy as np
import pytest

import calibrant
from calibrant import plot

pytestmark = [pytest.mark.usefixtures("without_reference_estimators"), pytest.mark.no_cover]
P_VALUE = r"\bp (?:=|≤|<=|<) [\d.e-]+"


def binary(n=240, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def clustered():
    """Return labels, scores and clusters, in each of which all outcomes are off in the same direction."""
    rng = np.random.default_rng(2)
    odds, cluster = rng.normal(0, 1.2, 240), np.arange(240) // 4
    chance = 1 / (1 + np.exp(-odds - rng.normal(0, 2, 60)[cluster]))
    return (rng.random(240) < chance).astype(int), 1 / (1 + np.exp(-odds)), cluster


def matrix(n=120, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, n), rng.dirichlet(np.ones(classes), n)


CASES = {
    "one score": lambda: calibrant.assess(*binary(), rng=0),
    "discrete scores": lambda: calibrant.assess(binary()[0], binary()[1].round(1), rng=0),
    "one value": lambda: calibrant.assess(binary()[0], np.full(240, 0.4), rng=0),
    "groups": lambda: calibrant.assess(*binary(), groups=np.arange(240) % 12, rng=0),
    "one group": lambda: calibrant.assess(*binary(), groups=["all"] * 240, rng=0),
    "a group of one row": lambda: calibrant.assess(*binary(), groups=[*range(2), *[7] * 238], rng=0),
    "clusters": lambda: calibrant.assess(*clustered()[:2], cluster=clustered()[2], rng=0),
    "two clusters": lambda: calibrant.assess(*binary(), cluster=np.arange(240) // 120, rng=0),
    "weights": lambda: calibrant.assess(*binary(), sample_weight=binary(seed=1)[1] + 0.1, rng=0),
    "uneven weights": lambda: calibrant.assess(*binary(), sample_weight=binary(seed=1)[1] ** 8, rng=0),
    "costs": lambda: calibrant.assess(*binary(), cost=(1, 9), rng=0),
    "few rows": lambda: calibrant.assess([1, 0, 1], [0.9, 0.3, 0.4], rng=0),
    "one row": lambda: calibrant.assess([1], [0.9], rng=0),
    "classes": lambda: calibrant.assess(*matrix(), rng=0),
    "class-wise": lambda: calibrant.assess(*matrix(classes=4), notion="classwise", rng=0),
    "canonical": lambda: calibrant.assess(*matrix(), notion="canonical", rng=0),
    "an odd level": lambda: calibrant.assess(*binary(), level=1 - 0.05 / 12, rng=0),
    "pairs": lambda: calibrant.assess(*binary(), notion="correctness", rng=0),
    "confidence": lambda: calibrant.assess(*binary(), notion="confidence", rng=0),
    "sketch": lambda: calibrant.Sketch("binary").update(*binary()).assess(rng=0),
}


def seen(page):
    """Return the text of a page."""
    page = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_texts_word_numbers_rightly(case):
    found = CASES[case]()
    texts = [str(found), found.methods, repr(found), seen(found.html()), seen(found._repr_html_())]
    texts += map(str, [*found.curves.values(), *found.diagrams.values()])
    for text in texts:
        assert not re.findall(r"(?<![\d.,  ])1 [a-z ]*(?:rows|clusters|classes|groups|folds|scores)\b", text)
        assert not re.findall(r"classs|\b(?:class|row|cluster|group)\(s\)", text)
        assert not re.findall(r"\d\.\d{3,} ?%", text)  # levels
    # The head of a table names the hypothesis of its p-values, a sentence beside each.
    table = re.compile(r"<table\b.*?</table>", re.DOTALL)
    for each in filter(lambda each: re.search(P_VALUE, seen(each)), table.findall(found.html())):
        assert "H0: calibrated" in seen(each.partition("</thead>")[0])
    sentences = (" ".join(text.split()) for text in texts[:2])
    for text in [*sentences, seen(table.sub("", found.html()))]:
        bare = [
            m.group() for m in re.finditer(P_VALUE, text) if not re.match(r" \(H0: |, H0: ", text[m.end() :])
        ]
        assert bare == []
        assert not re.findall(r"for calibration|that nothing|hypothesis of calibration", text)


def test_rows_of_clusters_are_called_rows_and_effective_ones_are_not():
    found = CASES["clusters"]()
    assert found.curve.n == found.diagram.n == 240
    assert found.diagram.count.sum() == 240
    head = str(found.curve).split("\n\n")[1].splitlines()[0]
    assert head.endswith(
        "effective local sample size" if not found.curve.discrete else "effective sample size"
    )


def test_an_effective_number_is_not_called_rows():
    found = CASES["weights"]()
    n = found.curve.n
    assert abs(n - 240) > 1
    assert f"effective sample size {n:.1f}" in str(found.curve)
    assert f"effective sample size {n:.1f}" in str(found.diagram)
    for table in (str(found.curve), str(found.diagram)):
        assert "rows" not in table
    page = seen(found.html())
    assert "240 rows" in page
    assert "rows (effective) at each score" in page
    assert not re.findall(r"rows nearby so it is", page)
    # Beside "rows" stand all rows, and the hundred of which cases are counted.
    assert {int(number) for number in re.findall(r"\b(\d+) rows\b(?! \(effective\))", page)} <= {100, 240}
    assert any(f"effective n = {n:,.0f}" in words for words in _drawn(found.curve))


def test_rows_are_called_rows():
    found = CASES["discrete scores"]()
    head, *lines = str(found.curve).split("\n\n")[1].splitlines()
    assert head.split()[-1] == "rows"
    assert sum(int(line.split()[-1]) for line in lines) == 240
    assert str(found.diagram).split("\n\n")[1].splitlines()[0].split()[-1] == "rows"
    assert "240 rows" in str(found.estimate)
    assert "effective" not in str(found)


def test_classes_have_the_rows_of_their_labels():
    y, p = matrix(n=200)
    weight = np.random.default_rng(4).random(200) + 0.1
    found = calibrant.assess(y, p, sample_weight=weight, rng=0)
    assert {row.name: row.rows for row in found.by_class} == {str(k): (y == k).sum() for k in range(3)}
    assert found.n < 199


def test_estimates_say_what_their_number_is():
    y, p = binary()
    weighted = calibrant.estimate(y, p, sample_weight=p + 0.1, rng=0)
    assert f"effective sample size {weighted.n:.1f}" in str(weighted)
    assert f"effective n={weighted.n:.6g}" in repr(weighted)
    clustered = calibrant.estimate(y, p, cluster=np.arange(240) // 4, rng=0)
    assert "240 rows in 60 clusters" in str(clustered)


def test_comparisons_name_their_hypothesis():
    y, p = binary()
    difference = calibrant.compare(y, {"a": p, "b": p**2}, rng=0).differences["b"]
    assert re.search(P_VALUE + r" \(H0: equal calibration errors\)\n", str(difference))


def _drawn(curve):
    import matplotlib as mpl

    mpl.use("Agg")
    ax = plot.curve(curve)
    texts = [text.get_text() for text in ax.figure.findobj(mpl.text.Text)]
    mpl.pyplot.close(ax.figure)
    return texts
