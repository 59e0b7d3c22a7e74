"""What a caller passes in: checked once, refused in words that name the argument, the rule and the value."""

from typing import TYPE_CHECKING

from calibrant.compiled.lazy import lazy_names
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
from calibrant.inputs.columns import (
    advice_on_labels,
    by_name,
    class_of_name,
    classes_of_columns,
    column_names,
    in_order,
    like,
)
from calibrant.inputs.errors import (
    PYTHON,
    InputError,
    InputTypeError,
    InputWarning,
    Words,
    show,
    show_near,
    within,
)
from calibrant.inputs.predictions import (
    PREDICTED,
    USUAL,
    Array,
    Predictions,
    are_usual,
    binary_classes,
    check_counts,
    check_percent,
    class_labels,
    decided,
    exact,
    hint_about_range,
    hint_about_sum,
    objects,
    positive_column,
    predictions,
    read,
    row_weights,
    scores,
    shares,
    told_column,
    unlabelled,
)
from calibrant.inputs.rounding import TOLERANCE
from calibrant.inputs.rounding import caution as renormalisation_caution
from calibrant.inputs.rows import same_rows

if TYPE_CHECKING:
    from calibrant.inputs.clusters import in_clusters, some_rows
    from calibrant.inputs.codec import ROUNDING, Serializable
    from calibrant.inputs.groups import MOST_GROUPS, check_group_count, groups_of_rows
    from calibrant.inputs.parsing import NamedTwiceError, parsed_json
    from calibrant.inputs.reporting import Steps, progress

__all__ = [
    "MOST_GROUPS",
    "PREDICTED",
    "PYTHON",
    "ROUNDING",
    "TOLERANCE",
    "USUAL",
    "Array",
    "InputError",
    "InputTypeError",
    "InputWarning",
    "NamedTwiceError",
    "Predictions",
    "Seed",
    "Serializable",
    "Steps",
    "Words",
    "advice_on_labels",
    "are_usual",
    "binary_classes",
    "by_name",
    "check_choice",
    "check_counts",
    "check_group_count",
    "check_percent",
    "class_labels",
    "class_of_name",
    "classes_of_columns",
    "column_names",
    "decided",
    "exact",
    "generator",
    "groups_of_rows",
    "helpful",
    "hint_about_range",
    "hint_about_sum",
    "in_clusters",
    "in_order",
    "is_number",
    "level",
    "like",
    "objects",
    "parsed_json",
    "positive_column",
    "positive_int",
    "predictions",
    "progress",
    "read",
    "refuse_clusters",
    "renormalisation_caution",
    "row_weights",
    "same_rows",
    "scores",
    "seeded",
    "shares",
    "show",
    "show_near",
    "some_rows",
    "told_column",
    "unlabelled",
    "within",
]

__getattr__ = lazy_names(
    __name__,
    {
        "clusters": ("in_clusters", "some_rows"),
        "codec": ("ROUNDING", "Serializable"),
        "groups": ("MOST_GROUPS", "check_group_count", "groups_of_rows"),
        "parsing": ("NamedTwiceError", "parsed_json"),
        "reporting": ("Steps", "progress"),
    },
)
