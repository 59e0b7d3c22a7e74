"""What the arguments of a public function ask."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from calibrant import inputs
from calibrant.tasks import CalibrationTask, named, usual

if TYPE_CHECKING:
    from calibrant.sketch import Sketch

# Rows from which on scores that are all 0 or 1 are hardly chance.
ENOUGH = 20


def is_sketch(value: object) -> TypeGuard[Sketch]:
    """Tell whether a value is a sketch; none is before the module of that class is imported."""
    module = sys.modules.get("calibrant.sketch.sketch")
    return isinstance(value, getattr(module, "Sketch", ()))


def build_task(
    y_true: Any,
    y_prob: Any,
    notion: str | None,
    sample_weight: Any,
    labels: Any,
    pos_label: Any,
    cluster: Any = None,
    *,
    counts: Any = None,
    percent: bool = False,
    estimator: Any = None,
) -> CalibrationTask:
    """Make a question of what a public function was given; warn of what looks like decided labels.

    A sketch must have cells for the bins of the `estimator`.
    """
    more = {"counts": counts, "percent": percent}
    if is_sketch(y_true):
        sketch = alone(y_true, y_prob, notion, sample_weight, labels, pos_label, cluster, **more)
        if estimator is not None:
            sketch._check_bins(estimator)
        return sketch._task
    data = read(y_true, y_prob, notion, sample_weight, labels, pos_label, cluster, **more)
    if data.score.ndim == 1 and len(data.score) >= ENOUGH and inputs.decided(data):
        # Four steps up: this function, the public one, what checks its keywords, and who called that.
        warnings.warn(f"all scores are 0 or 1: {inputs.PREDICTED}", inputs.InputWarning, stacklevel=4)
    return CalibrationTask.of(data, usual(notion, vector=data.score.ndim == 1))


def class_names_of(y_true: Any, labels: Sequence[Any], class_names: Any) -> dict[Any, str]:
    """Return the name of each class by label; a sketch has names of its own, unless others are given."""
    if class_names is None and is_sketch(y_true):
        class_names = y_true._class_names
    return inputs.class_names(labels, class_names)


def alone(
    sketch: Sketch,
    y_prob: Any,
    notion: str | None,
    sample_weight: Any,
    labels: Any,
    pos_label: Any,
    cluster: Any = None,
    *,
    counts: Any = None,
    percent: bool = False,
) -> Sketch:
    """Return a sketch; refuse what is about rows, and what the sketch was told when it was made."""
    if cluster is not None:
        inputs.refuse_clusters()
    rows = {"y_prob": y_prob, "sample_weight": sample_weight, "counts": counts, "percent": percent or None}
    for name, value in {**rows, "notion": notion, "labels": labels, "pos_label": pos_label}.items():
        if value is not None:
            raise inputs.InputError(name, "be left out for a sketch, which holds sums of rows")
    return sketch


def read(
    y_true: Any,
    y_prob: Any,
    notion: str | None,
    sample_weight: Any,
    labels: Any,
    pos_label: Any,
    cluster: Any = None,
    groups: Any = None,
    *,
    counts: Any = None,
    percent: bool = False,
) -> inputs.Predictions:
    """Check labels, scores, weights and clusters."""
    if is_sketch(y_true):
        raise inputs.InputTypeError("y_true", "be labels", y_true, got="a sketch, which has no rows")
    if y_prob is None:
        raise inputs.InputTypeError("y_prob", "be scores", None)
    weights = {"sample_weight": sample_weight, "counts": counts}
    inputs.same_rows(y_true=y_true, y_prob=y_prob, cluster=cluster, groups=groups, **weights)
    # What was right is no class, whatever the confidences are called.
    by_name = notion is None or not named(notion).correctness_pairs
    options = weights | {"labels": labels, "pos_label": pos_label}
    data = inputs.predictions(y_true, y_prob, by_name=by_name, percent=percent, **options)
    if percent:
        inputs.check_percent(float(data.score.max()))
    weight = counts if sample_weight is None else sample_weight
    return data if cluster is None else inputs.in_clusters(data, cluster, y_true, weight)


def chosen_bins(estimator: Any, n_bins: Any, strategy: str | None) -> Any:
    """Return the bins that scikit-learn's `n_bins` and `strategy` ask for: 15 of equal width by default.

    Without either it is the estimator that is given. `inputs.helpful` refuses an estimator beside them.

    >>> str(chosen_bins("auto", 10, "quantile")), chosen_bins("auto", None, None)
    ('adaptive:10', 'auto')
    """
    if n_bins is None and strategy is None:
        return estimator
    from calibrant.estimators import Binned

    strategy = "uniform" if strategy is None else strategy
    inputs.check_choice("strategy", strategy, ("uniform", "quantile"))
    return Binned("uniform" if strategy == "uniform" else "adaptive", 15 if n_bins is None else n_bins)
