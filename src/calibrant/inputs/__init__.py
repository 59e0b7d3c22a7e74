"""What a caller passes in: checked once, refused in words that name the argument, the rule and the value."""

from calibrant.inputs.arguments import (
    check_choice,
    generator,
    helpful,
    is_number,
    level,
    positive_int,
    seeded,
)
from calibrant.inputs.columns import class_of_name, classes_of_columns, column_names, in_order, like
from calibrant.inputs.errors import PYTHON, InputError, InputTypeError, Words, show, show_near
from calibrant.inputs.predictions import (
    TOLERANCE,
    Array,
    Predictions,
    class_labels,
    objects,
    predictions,
    read,
    scores,
)

__all__ = [
    "PYTHON",
    "TOLERANCE",
    "Array",
    "InputError",
    "InputTypeError",
    "Predictions",
    "Words",
    "check_choice",
    "class_labels",
    "class_of_name",
    "classes_of_columns",
    "column_names",
    "generator",
    "helpful",
    "in_order",
    "is_number",
    "level",
    "like",
    "objects",
    "positive_int",
    "predictions",
    "read",
    "scores",
    "seeded",
    "show",
    "show_near",
]
