"""Public functions that compare models and calibration methods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.inputs import Array, InputError, InputTypeError, Seed
from calibrant.tasks import CalibrationTask, default_notion
from calibrant.tasks.notions import check_canonical_options
from calibrant.tasks.task import build_task, class_names_of, is_sketch, read

if TYPE_CHECKING:
    from calibrant.curves import Progress
    from calibrant.estimators import EstimatorLike, Norm
    from calibrant.inference.comparison import Comparison
    from calibrant.inference.map_comparison import MapComparison
    from calibrant.sketch import Sketch


@inputs.helpful
def compare(
    y_true: ArrayLike,
    models: Mapping[str, Any],
    *,
    baseline: str | None = None,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Seed = 0,
    n_resamples: int | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    progress: Progress | bool | None = None,
    percent: bool = False,
) -> Comparison:
    """Compare the calibration errors of several models on the same labels, paired by row.

    Parameters
    ----------
    y_true : array of shape (N,)
        Labels.
    models : mapping from name to scores
        Scores of each model, as `y_prob` of `ece`.
    baseline : str, optional
        Model that the others are compared with; by default the first.
    notion, estimator, norm, level, rng, n_resamples, sample_weight, counts, cluster, labels, pos_label
        As for `estimate`.
    progress, percent
        As for `estimate`.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Comparison
        Estimates of all models, and the difference of each model from the baseline.

    See Also
    --------
    estimate : One model.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> outcome = rng.random(2000) < score
    >>> result = calibrant.compare(outcome, {"sharp": score**2, "plain": score}, baseline="plain", rng=0)
    >>> result.differences["sharp"].low > 0
    True
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.comparison import compare_tasks
    from calibrant.inference.estimate import count_steps

    check_canonical_options(notion, clustered=cluster is not None, norm=norm)
    if not isinstance(models, Mapping) or len(models) < 2:
        got = f"{len(models)} of them" if isinstance(models, Mapping) else type(models).__name__
        raise inputs.InputError("models", "map at least two names to scores", models, got=got)
    names = [str(name) for name in models]
    if baseline is not None:
        inputs.check_choice("baseline", baseline, tuple(names))
    first = names[0] if baseline is None else baseline
    if is_sketch(y_true):
        raise inputs.InputTypeError("y_true", "be labels", y_true, got="a sketch, which has no rows")
    seed, tasks = inputs.seeded(rng), {}
    inputs.same_rows(**{f"model {name!r}": scores for name, scores in models.items()})
    for name, scores in zip(names, models.values(), strict=True):
        with inputs.within(f"model {name!r}"):
            arguments = y_true, scores, notion, sample_weight, labels, pos_label, cluster
            tasks[name] = build_task(*arguments, counts=counts, percent=percent)
    notions = {name: task.notion.name for name, task in tasks.items()}
    if len(set(notions.values())) > 1:
        hint = "vectors and matrices differ: name the notion"
        raise inputs.InputError("models", "all use the same notion", notions, hint=hint)
    called = class_names_of(y_true, tasks[names[0]].labels, class_names)
    options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": seed}
    steps = inputs.Steps(inputs.progress(progress), sum(map(count_steps, tasks.values())))
    comparison = compare_tasks(tasks, first, step=steps, n_resamples=n_resamples, **options)
    return rename_classes(comparison, called)


@inputs.helpful
def compare_calibrators(
    y_prob: ArrayLike,
    y_true: ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    cv: int = 5,
    notion: str | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    progress: Progress | None = None,
    percent: bool = False,
) -> MapComparison:
    """Compare calibration methods by cross-validation, each with the unchanged scores.

    The arguments are in the order of `Calibrator.fit`: scores first. Intervals are over rows (or clusters),
    and intervals for differences are paired by row. `best_group` of the result holds the methods whose log
    loss is not significantly higher than the lowest one; `best` is None if there are several. A method with
    infinite log loss has no differences.

    Parameters
    ----------
    y_prob : array of shape (N,) or (N, C)
        Scores of the positive class, or of every class.
    y_true : array of shape (N,)
        Labels.
    methods : sequence of str, optional
        Names of methods, see `calibrator_names`; by default all that apply.
    cv : int, default=5
        Number of folds. The rows of a cluster stay in one fold.
    notion : {"binary", "classwise", "confidence", "canonical"}, optional
        Type of calibration error to report; the default is that of `ece`.
    level : float, default=0.95
        Level of all intervals.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the folds and of the simulations, which the result records; None draws a new seed.
    sample_weight, counts, cluster, labels, pos_label, percent
        As for `estimate`.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.
    progress : callable, optional
        Called as progress(done, total).

    Returns
    -------
    MapComparison
        Log loss, Brier score and calibration error of each method on held-out rows.

    See Also
    --------
    Calibrator : Fit a single method.
    calibrator_names : Names of the methods.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> outcome = rng.random(1000) < score**2
    >>> result = calibrant.compare_calibrators(score, outcome, methods=["beta", "temperature"], rng=0)
    >>> result.best, result["beta"].log_loss.difference.high < 0
    ('beta', True)
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.map_comparison import compare_maps
    from calibrant.maps.calibrator import refuse_swapped

    check_canonical_options(notion, clustered=cluster is not None)
    if is_sketch(y_prob):
        raise inputs.InputTypeError("y_prob", "be scores", y_prob, got="a sketch, which has no rows")
    refuse_swapped(y_prob, y_true, "compare_calibrators")
    data = read(
        y_true, y_prob, notion, sample_weight, labels, pos_label, cluster, counts=counts, percent=percent
    )
    names = inputs.class_names(data.labels, class_names)
    notion_of_error = default_notion(notion, vector=data.score.ndim == 1)
    options: dict[str, Any] = {"level": level, "rng": rng, "progress": inputs.progress(progress)}
    return rename_classes(compare_maps(data, notion_of_error, methods=methods, cv=cv, **options), names)
