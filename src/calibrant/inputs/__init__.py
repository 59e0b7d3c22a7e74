"""What a caller passes in: checked once, refused in words that name the argument, the rule and the value."""

from calibrant.inputs.arguments import (
    Seed,
    check_choice,
    generator,
    helpful,
    is_number,
    level,
    positive_int,
    refuse_clusters,
    seeded,
)
from calibrant.inputs.clusters import in_clusters, some_rows
from calibrant.inputs.columns import class_of_name, classes_of_columns, column_names, in_order, like
from calibrant.inputs.errors import PYTHON, InputError, InputTypeError, Words, show, show_near, within
from calibrant.inputs.groups import MOST_GROUPS, check_group_count, groups_of_rows
from calibrant.inputs.predictions import (
    TOLERANCE,
    USUAL,
    Array,
    Predictions,
    binary_classes,
    class_labels,
    objects,
    positive_column,
    predictions,
    read,
    scores,
    unlabelled,
)
from calibrant.inputs.progress import progress

__all__ = [
    "MOST_GROUPS",
    "PYTHON",
    "TOLERANCE",
    "USUAL",
    "Array",
    "InputError",
    "InputTypeError",
    "Predictions",
    "Seed",
    "Words",
    "binary_classes",
    "check_choice",
    "check_group_count",
    "class_labels",
    "class_of_name",
    "classes_of_columns",
    "column_names",
    "generator",
    "groups_of_rows",
    "helpful",
    "in_clusters",
    "in_order",
    "is_number",
    "level",
    "like",
    "objects",
    "positive_column",
    "positive_int",
    "predictions",
    "progress",
    "read",
    "refuse_clusters",
    "scores",
    "seeded",
    "show",
    "show_near",
    "some_rows",
    "unlabelled",
    "within",
]
