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
    same_rows,
    seeded,
    stream,
)
from calibrant.inputs.class_names import class_names
from calibrant.inputs.clusters import groups_of_rows, in_clusters, select_rows
from calibrant.inputs.codec import ROUNDING, Serializable, parsed_json
from calibrant.inputs.columns import classes_of_columns, column_names, column_order, in_order
from calibrant.inputs.errors import InputError, InputTypeError, InputWarning, Words, show, within
from calibrant.inputs.missing import refuse_unlabelled
from calibrant.inputs.predictions import (
    PREDICTED,
    Array,
    Predictions,
    check_percent,
    class_labels,
    decided,
    multilabel,
    positive_column,
    predictions,
    probabilities,
    ranking,
    read,
    scores,
    unlabelled,
)
from calibrant.inputs.reporting import Steps, progress
from calibrant.inputs.segments import SegmentTable

__all__ = [
    "PREDICTED",
    "ROUNDING",
    "Array",
    "InputError",
    "InputTypeError",
    "InputWarning",
    "Predictions",
    "Seed",
    "SegmentTable",
    "Serializable",
    "Steps",
    "Words",
    "check_choice",
    "check_percent",
    "class_labels",
    "class_names",
    "classes_of_columns",
    "column_names",
    "column_order",
    "decided",
    "generator",
    "groups_of_rows",
    "helpful",
    "in_clusters",
    "in_order",
    "is_number",
    "level",
    "multilabel",
    "parsed_json",
    "positive_column",
    "positive_int",
    "predictions",
    "probabilities",
    "progress",
    "ranking",
    "read",
    "refuse_clusters",
    "refuse_unlabelled",
    "same_rows",
    "scores",
    "seeded",
    "select_rows",
    "show",
    "stream",
    "unlabelled",
    "within",
]
