"""`class_names=` and `--class-names`: every result that names classes has the names that were given."""

import numpy as np

import calibrant

RNG = np.random.default_rng(0)


def test_the_estimates_of_many_classes_are_computed_when_they_are_asked_for():
    prob = RNG.dirichlet(np.ones(25), 200)
    label = (RNG.random((200, 1)) > prob.cumsum(axis=1)).sum(axis=1)
    names = [f"class {k}" for k in range(25)]
    found = calibrant.estimate(label, prob, notion="classwise", labels=range(25), class_names=names)
    assert any(map(callable, found.by_class._results.values()))
    plain = calibrant.estimate(label, prob, notion="classwise", labels=range(25))
    assert found.by_class["class 7"].label == "class 7"
    assert found.by_class["class 7"].value == plain.by_class[7].value
