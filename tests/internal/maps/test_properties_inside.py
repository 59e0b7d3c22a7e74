"""What holds for every map, whatever it is made of."""

import numpy as np
import pytest

from calibrant import Calibrator, Sketch
from exported import OF_ONE_SCORE


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 3)
    return score, (rng.random(n) < 0.1 + 0.8 * score**2).astype(int)


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_sums_in_pieces_lead_to_the_map_of_the_rows(method):
    score, outcome = rows(400)
    whole = Calibrator(method).fit(score, outcome)
    pieces = [Sketch().update(outcome[a : a + 90], score[a : a + 90]) for a in range(0, 400, 90)]
    sketch = pieces[0]
    for piece in pieces[1:]:
        sketch = sketch + piece
    again = Calibrator(method)._fit_task(sketch._task)
    assert again.n_ == whole.n_ == 400
    assert again.classes_ == whole.classes_
    at = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(again.predict_proba(at), whole.predict_proba(at), atol=1e-9)
