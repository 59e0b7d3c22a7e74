"""Which class a column is of: one table of cases, every entry, equal answers."""

import pytest

from calibrant.inputs import classes_of_columns


def test_a_spelling_that_labels_do_not_settle_is_that_of_the_names():
    for names, seen, classes in (
        (("a", "bc"), ["A"], ("A", "bc")),  # BC or Bc
        (("Cat", "CAT"), ["cat"], None),  # two columns of one class
        (("Cat", "dog", "OWL"), ["cat", "dog"], ("cat", "dog", "owl")),
        (("Cat", "dog", "Owl"), ["cat", "DOG"], ("cat", "DOG", "Owl")),
    ):
        if classes is None:
            with pytest.raises(ValueError, match="y_prob must have columns named after the labels"):
                classes_of_columns(names, seen, len(names))
        else:
            assert classes_of_columns(names, seen, len(names)) == classes
