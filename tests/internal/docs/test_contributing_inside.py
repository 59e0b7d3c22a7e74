"""What CONTRIBUTING.md says of the code is so: the packages and their graph, the files, a new notion."""

import re
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.tasks import notions

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_a_new_notion_is_a_class_and_its_name(monkeypatch):
    (code,) = re.findall(r"^ *```py\n(.*?)^ *```$", TEXT, flags=re.M | re.S)
    space = vars(notions).copy()
    exec(compile(re.sub(r"^   ", "", code, flags=re.M), "CONTRIBUTING.md", "exec"), space)
    notion = space["RunnerUp"]()
    monkeypatch.setitem(notions._FIXED, notion.name, notion)
    monkeypatch.setattr(notions, "NOTIONS", (*notions.NOTIONS, notion.name))
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(4), 400)
    y_true = (rng.random((400, 1)) > y_prob.cumsum(axis=1)).sum(axis=1)
    order = np.argsort(-y_prob, axis=1)[:, 1]
    score, outcome = y_prob[np.arange(400), order], order == y_true
    wanted = calibrant.ece(outcome, score, estimator="uniform:10")
    assert calibrant.ece(y_true, y_prob, notion="runner-up", estimator="uniform:10") == pytest.approx(wanted)
    sketch = calibrant.Sketch("runner-up").update(y_true, y_prob)
    assert sketch.ece(estimator="uniform:10") == pytest.approx(wanted)
    assert calibrant.estimate(y_true, y_prob, notion="runner-up", rng=0).p_value > 0.05
    assert "second choices scored" in calibrant.assess(y_true, y_prob, notion="runner-up", rng=0).html()
    with pytest.raises(calibrant.InputError, match="a column for each class"):
        calibrant.ece(outcome, score, notion="runner-up")
