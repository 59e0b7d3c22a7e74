"""Every rule about input: what is accepted and how it is read, what is refused and in which words."""

import re

import pytest

import calibrant


def refuses(*parts, error=ValueError):
    """Expect an error whose message holds all the parts, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(str(part)) for part in parts))


@pytest.mark.parametrize(
    ("call", "has"),
    [
        (lambda y, z: calibrant.ece(y, z), True),
        (lambda y, z: calibrant.estimate(y, z), True),
        (lambda y, z: calibrant.Calibrator().fit(z, y), True),
        (lambda y, z: calibrant.Calibrator().fit([0.2, 0.3, 0.9], y).predict_proba(z), True),
        (lambda y, z: calibrant.Sketch().update(y, z), True),
        (lambda y, z: calibrant.regret(y, z, 0.2), False),
        (lambda y, z: calibrant.compare_calibrators(z, y), False),
        (lambda y, z: calibrant.Monitor().update(y, z), False),
        (lambda y, z: calibrant.PriorShift(train=0.5).fit(z), False),
    ],
)
def test_logits_are_pointed_to_the_option_where_there_is_one(call, has):
    with refuses("look like logits: apply sigmoid first") as caught:
        call([0, 1, 1], [-2.0, 0.3, 4.0])
    assert ("from_logits=True" in str(caught.value)) is has
