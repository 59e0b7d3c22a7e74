"""Public functions that compare models and calibration methods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.inputs import Array, InputError, InputTypeError, Seed
from calibrant.inputs.clusters import cluster_ids, matched_clusters
from calibrant.tasks import CalibrationTask, ClassRelation, default_notion
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
    y_true: ArrayLike | Mapping[str, ArrayLike] | Mapping[str, Sketch],
    models: Mapping[str, Any] | None = None,
    *,
    baseline: str | None = None,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Seed = 0,
    n_resamples: int | None = None,
    paired: bool | None = None,
    sample_weight: ArrayLike | Mapping[str, ArrayLike] | None = None,
    counts: ArrayLike | Mapping[str, ArrayLike] | None = None,
    cluster: ArrayLike | Mapping[str, ArrayLike] | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    progress: Progress | bool | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> Comparison:
    """Compare the calibration errors of several models, or of one model on several samples.

    Models that are scored on the same rows, or on the same clusters, are paired: the interval of a difference
    uses the correlation of what each row or cluster contributes to the two errors. Other samples are treated
    as independent.

    Parameters
    ----------
    y_true : array of shape (N,) or mapping from name to array or Sketch
        Labels of all models; or the labels of each model, as when each has answers of its own that are right
        or wrong. A mapping to sketches replaces all arguments about rows, classes and notion.
    models : mapping from name to scores, optional
        Scores of each model, as `y_prob` of `ece`; omitted for sketches.
    baseline : str, optional
        Model that the others are compared with; by default the first.
    paired : bool, optional
        Whether rows belong together: rows with the same cluster if clusters are given, otherwise rows at the
        same position. False treats the samples as independent. By default models are paired if they have
        clusters in common or, without clusters, equally many rows and the same weights. Sketches are never
        paired.
    sample_weight, counts, cluster : array of shape (N,) or mapping from name to array, optional
        As for `estimate`; one array for all models, or one for each. Clusters of different models are matched
        by their ids, and may have different numbers of rows.
    notion, estimator, norm, level, rng, n_resamples, labels, pos_label, progress, percent, missing
        As for `estimate`.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Comparison
        Estimates of all models, and the difference of each model from the baseline. `pairing` says what the
        intervals of the differences assume, and `cautions` whether accuracies differ.

    See Also
    --------
    estimate : One model.
    Sketch : Sums of rows, to be compared without the rows.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> outcome = rng.random(2000) < score
    >>> result = calibrant.compare(outcome, {"sharp": score**2, "plain": score}, baseline="plain", rng=0)
    >>> result.differences["sharp"].low > 0
    True

    Two models that answer the same 500 questions, one of them twice:

    >>> question = np.arange(500)
    >>> confidence = {"a": rng.random(500), "b": rng.random(1000)}
    >>> right = {"a": rng.random(500) < confidence["a"], "b": rng.random(1000) < confidence["b"] ** 2}
    >>> ids = {"a": question, "b": np.tile(question, 2)}
    >>> result = calibrant.compare(right, confidence, notion="correctness", cluster=ids)
    >>> result.pairing, result.differences["b"].low > 0
    ('paired by cluster', True)

    Sketches of two weeks:

    >>> last = calibrant.Sketch().update(outcome, score)
    >>> this = calibrant.Sketch().update(outcome[:1500], score[:1500] ** 2)
    >>> result = calibrant.compare({"last": last, "this": this})
    >>> result.pairing, result.differences["this"].low > 0
    ('independent samples', True)
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.comparison import compare_tasks
    from calibrant.inference.estimate import count_steps

    samples = _samples(y_true, models, sample_weight=sample_weight, counts=counts, cluster=cluster)
    names = list(samples)
    check_canonical_options(notion, clustered=cluster is not None, norm=norm)
    if baseline is not None:
        inputs.check_choice("baseline", baseline, tuple(names))
    seed, tasks = inputs.seeded(rng), {}
    for name, sample in samples.items():
        with inputs.within(f"model {name!r}"):
            rows = sample["y_true"], sample["y_prob"], notion, sample["sample_weight"], labels, pos_label
            more = {
                "counts": sample["counts"],
                "percent": percent,
                "missing": missing,
                "estimator": estimator,
            }
            tasks[name] = build_task(*rows, sample["cluster"], **more)
    _check_same_subject(tasks)
    is_paired, unit_of_row = _common_units(samples, tasks, paired)
    first = samples[names[0]]["y_true"]
    called = class_names_of(first, tasks[names[0]].labels, class_names)
    options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": seed}
    options |= {"n_resamples": n_resamples, "paired": is_paired, "unit_of_row": unit_of_row}
    steps = inputs.Steps(inputs.progress(progress), sum(map(count_steps, tasks.values())))
    comparison = compare_tasks(tasks, names[0] if baseline is None else baseline, step=steps, **options)
    return rename_classes(comparison, called)


#: The arguments about the rows of a model.
_Sample = dict[str, Any]


def _samples(y_true: Any, models: Any, **about_rows: Any) -> dict[str, _Sample]:
    """Return the arguments of each model; those that are mappings have one entry for each model."""
    given = y_true if models is None else models
    if not isinstance(given, Mapping) or len(given) < 2:
        got = f"{len(given)} of them" if isinstance(given, Mapping) else type(given).__name__
        raise InputError("models", "map at least two names to scores", given, got=got)
    names = [str(name) for name in given]
    arguments = {"y_true": y_true, **about_rows, "y_prob": dict.fromkeys(names) if models is None else models}
    samples: dict[str, _Sample] = {name: {} for name in names}
    for argument, value in arguments.items():
        values = value if isinstance(value, Mapping) else dict.fromkeys(names, value)
        if {str(name) for name in values} != {*names}:
            rule, got = f"have the names of the models, {inputs.show(*names)}", inputs.show(*values)
            raise InputError(argument, rule, got=got)
        for name, each in values.items():
            samples[str(name)][argument] = each
    if models is None and not all(map(is_sketch, y_true.values())):
        raise InputTypeError("models", "map names to scores, unless y_true maps them to sketches", None)
    if models is not None and any(
        is_sketch(each[name]) for each in samples.values() for name in ("y_true", "y_prob")
    ):
        got = "a sketch, which has no rows"
        hint = "compare sketches with each other: compare({'a': sketch, 'b': sketch})"
        raise InputTypeError("y_true", "be labels", y_true, got=got, hint=hint)
    if not isinstance(y_true, Mapping):
        inputs.same_rows(**{f"model {name!r}": scores for name, scores in models.items()})
    return samples


def _check_same_subject(tasks: Mapping[str, CalibrationTask]) -> None:
    """Refuse models that are measured by different notions, or about different classes."""
    notions = {name: task.notion.name for name, task in tasks.items()}
    if len(set(notions.values())) > 1:
        got = ", ".join(f"{notion} for {name!r}" for name, notion in notions.items())
        hint = "scores of one class and of all classes differ: name the notion"
        if any(task.rows is None for task in tasks.values()):
            hint = "a sketch has the notion that it was made with"
        raise InputError("models", "all have the same notion", got=got, hint=hint)
    notion = next(iter(tasks.values())).notion
    if notion.classes is ClassRelation.SEPARATE:
        hint = "models that predict different classes have different rows: compare the confidence"
        raise InputError("notion", "be about the same rows of every model", notion.name, hint=hint)
    if notion.tells_accuracy or notion.top:
        return  # which any number of classes has
    classes = {name: {task.label} if notion.is_binary else {*task.labels} for name, task in tasks.items()}
    first, *others = classes.values()
    if any(other != first for other in others):
        got = ", ".join(f"{inputs.show(*labels)} for {name!r}" for name, labels in classes.items())
        raise InputError("models", "all be about the same classes", got=got)


def _common_units(
    samples: Mapping[str, _Sample], tasks: Mapping[str, CalibrationTask], paired: bool | None
) -> tuple[bool, dict[str, Array] | None]:
    """Return whether the models are paired, and the unit of each row unless that is its place."""
    if paired is False:
        return False, None
    first, *others = samples.values()
    varying = {
        argument for argument in first if any(each[argument] is not first[argument] for each in others)
    }
    clusters = {k: each["cluster"] for k, each in samples.items() if each["cluster"] is not None}
    sketches = is_sketch(first["y_true"])
    rows = {k: 0 if sketches else len(inputs.read("y_true", s["y_true"])[0]) for k, s in samples.items()}
    unit_of_row, obstacle = None, ""
    if sketches:
        obstacle = "sketches, which hold sums of rows"
    elif varying <= {"y_prob"}:
        pass
    elif len(clusters) == len(samples):
        ids = {k: cluster_ids(each, tasks[k].kept, rows[k]) for k, each in clusters.items()}
        unit_of_row = matched_clusters(ids)
        distinct = np.concatenate([np.unique(code) for code in unit_of_row.values()])
        if np.unique(distinct).size == distinct.size:
            obstacle = "models that share no cluster"
    elif clusters:
        obstacle = "models with and without clusters"
    elif varying & {"sample_weight", "counts"}:
        obstacle = "models that weight their rows differently, without clusters"
    elif len({*rows.values()}) > 1:
        obstacle = f"samples of {inputs.show(*rows.values())} rows"
    else:
        kept = {k: np.ones(rows[k], bool) if task.kept is None else task.kept for k, task in tasks.items()}
        if len({each.tobytes() for each in kept.values()}) > 1:  # other rows are left out of each
            unit_of_row = {k: np.flatnonzero(each) for k, each in kept.items()}
    if paired and obstacle:
        raise InputError("paired", "be False or left out", paired, got=f"True for {obstacle}")
    return not obstacle, unit_of_row


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
    progress: Progress | bool | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> MapComparison:
    """Compare calibration methods by cross-validation, each with the unchanged scores.

    The arguments are in the order of `Calibrator.fit`: scores first. Intervals are over rows (or clusters),
    and intervals for differences are paired in the same way. `best_group` of the result holds the methods
    whose log loss is not significantly higher than the lowest one; `best` is None if there are several. A
    method with infinite log loss has no differences. The order of the rows does not matter.

    The calibration error is that of the held-out scores of all folds together. The maps of several folds are
    wrong at random in different directions, so it is smaller than the error that a map of all rows leaves.
    For the method "auto", `assess` estimates the latter (`recalibration.after`).

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
    sample_weight, counts, cluster, labels, pos_label, percent, missing
        As for `estimate`.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.
    progress : bool or callable, optional
        True shows the progress on standard error; a callable is called as progress(done, total).

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
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    data = read(*rows, counts=counts, percent=percent, missing=missing)
    names = inputs.class_names(data.labels, class_names)
    notion_of_error = default_notion(notion, vector=data.score.ndim == 1)
    options: dict[str, Any] = {"level": level, "rng": rng, "progress": inputs.progress(progress)}
    return rename_classes(compare_maps(data, notion_of_error, methods=methods, cv=cv, **options), names)
