"""What a caller passes in: checked once, refused in words that name the argument, the rule and the value."""

from calibrant.inputs.arguments import (
    Seed,
    check_choice,
    generator,
    helpful,
    is_number,
    level,
    positive_int,
    seeded,
)
from calibrant.inputs.columns import class_of_name, classes_of_columns, column_names, in_order, like
from calibrant.inputs.errors import PYTHON, InputError, InputTypeError, Words, show, show_near, within
from calibrant.inputs.groups import MOST_GROUPS, groups_of_rows
from calibrant.inputs.predictions import (
    TOLERANCE,
    Array,
    Predictions,
    class_labels,
    objects,
    positive_column,
    predictions,
    read,
    scores,
    unlabelled,
)

__all__ = [
    "MOST_GROUPS",
    "PYTHON",
    "TOLERANCE",
    "Array",
    "InputError",
    "InputTypeError",
    "Predictions",
    "Seed",
    "Words",
    "check_choice",
    "class_labels",
    "class_of_name",
    "classes_of_columns",
    "column_names",
    "generator",
    "groups_of_rows",
    "helpful",
    "in_order",
    "is_number",
    "level",
    "like",
    "objects",
    "positive_column",
    "positive_int",
    "predictions",
    "read",
    "scores",
    "seeded",
    "show",
    "show_near",
    "unlabelled",
    "within",
]
