"""Public functions about many groups of rows: a table of calibration errors, and an audit of segments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.estimators.base import chosen_bins
from calibrant.inputs import Seed
from calibrant.inputs.clusters import cells_of_rows
from calibrant.inputs.segments import segments_of_rows
from calibrant.settings import REPORT
from calibrant.tasks import default_notion
from calibrant.tasks.notions import check_canonical_options
from calibrant.tasks.task import class_names_of, read

if TYPE_CHECKING:
    from calibrant.curves import Progress
    from calibrant.estimators import EstimatorLike, Norm
    from calibrant.inference.audit import SegmentAudit
    from calibrant.inference.table import EstimateTable


@inputs.helpful
def estimate_by(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    by: Any,
    *,
    simultaneous: bool = False,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    n_bins: int | Literal["sqrt"] | None = None,
    strategy: Literal["uniform", "quantile"] | None = None,
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
    missing: Literal["raise", "drop"] = "raise",
) -> EstimateTable:
    """Estimate the calibration error of each group of rows, and the macro average over the groups.

    Parameters
    ----------
    y_true, y_prob, notion, estimator, n_bins, strategy, norm, sample_weight, counts, labels, pos_label
        As for `estimate`. All cells have the classes of all rows.
    by : array of shape (N,), mapping from name to array, or data frame
        Columns that divide the rows into cells: all combinations of their values that occur, at most 10,000.
    simultaneous : bool
        Whether the intervals of all cells hold together at `level` (Bonferroni), instead of each by itself.
    level : float
        Confidence level.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulations, the same in every cell: a cell has the numbers that `estimate` has for its
        rows.
    n_resamples : int, optional
        Number of calibrated data sets simulated for each test. By default 999, and more for cells with a
        small p-value, so that they can be rejected after the adjustment for multiple tests. Each estimate
        records its number.
    cluster : array of shape (N,), optional
        Cluster id of each row, as for `estimate`. Cells that share clusters, such as models that answer the
        same questions, are dependent, and the interval of the macro average allows for this.
    class_names, progress, percent, missing
        As for `estimate`.

    Returns
    -------
    EstimateTable
        An estimate for each cell, p-values adjusted for the number of cells, and the macro average.

    See Also
    --------
    estimate : A single group of rows.
    assess : Everything about one model, also by group.

    Examples
    --------
    >>> import calibrant
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> model = np.repeat(["good", "bad"], 1000)
    >>> outcome = rng.random(2000) < np.where(model == "good", score, score**2)
    >>> table = calibrant.estimate_by(outcome, score, by={"model": model})
    >>> for key, cell in table.cells.items():
    ...     print(key, round(cell.value, 2), cell.p_value < 0.05)
    ('bad',) 0.17 True
    ('good',) 0.01 False
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.table import NUMBERS, estimate_table

    estimator = chosen_bins(estimator, n_bins, strategy)
    check_canonical_options(notion, clustered=cluster is not None, norm=norm)
    rows = y_prob, notion, sample_weight, labels, pos_label, cluster
    data = read(y_true, *rows, counts=counts, percent=percent, missing=missing)
    cells = cells_of_rows(by, y_true, data)
    if clashes := [name for name in cells[0] if name in NUMBERS]:
        rule = f"have other names than the columns of results, {inputs.show(*NUMBERS)}"
        raise inputs.InputError("by", rule, clashes[0])
    names = class_names_of(y_true, data.labels, class_names)
    steps = inputs.Steps(inputs.progress(progress), len(cells[1]))
    table = estimate_table(
        data,
        default_notion(notion, vector=data.score.ndim == 1),
        cells,
        estimator=estimator,
        norm=norm,
        level=level,
        rng=rng,
        n_resamples=n_resamples,
        simultaneous=bool(simultaneous),
        step=steps,
    )
    steps.end()
    return rename_classes(table, names) if names else table


@inputs.helpful
def audit(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    segments: Any,
    *,
    depth: int = 2,
    min_rows: int = REPORT.few_group_rows,
    notion: str | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    n_resamples: int = 9999,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> SegmentAudit:
    """Find the segments of rows that are miscalibrated, with control of the family-wise error rate.

    Each segment has two readings. Its own calibration gap says whether its scores are off: only this gap
    makes a segment miscalibrated. The difference from one common recalibration of all rows says what would be
    left of the gap after that. A segment that is calibrated differs where others are miscalibrated.

    Parameters
    ----------
    y_true, y_prob, sample_weight, counts, labels, pos_label, class_names, percent, missing
        As for `estimate`.
    segments : array of shape (N,), mapping from name to array, or data frame
        Columns whose values are segments, and so are combinations of the values of several columns. Columns
        of more than ten different numbers are divided at their quintiles. Missing values are a value.
    depth : int, default=2
        Number of columns that are combined at most.
    min_rows : int, default=30
        Smallest number of rows of a segment. There can be at most 5,000 segments.
    notion : str, optional
        A notion with one score for each row: "binary", "confidence", "correctness" or "top:k".
    level : float
        Joint level of the intervals. Each of the two tests has a family-wise error rate of one minus this.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulations.
    n_resamples : int
        Number of simulated data sets.
    cluster : array of shape (N,), optional
        Cluster id of each row. The outcomes of a cluster may depend on each other, with one correlation in
        all clusters, which is estimated from all of them.

    Returns
    -------
    SegmentAudit
        The segments, those whose gap is certainly the largest first.

    See Also
    --------
    estimate_by : Calibration error of groups that do not overlap.

    Examples
    --------
    All scores are too high, and those of one segment are too low:

    >>> import calibrant
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.beta(1, 9, 20_000)
    >>> country, device = rng.choice(["DE", "FR", "IT"], 20_000), rng.choice(["app", "web"], 20_000)
    >>> odd = (country == "FR") & (device == "app")
    >>> outcome = rng.random(20_000) < np.where(odd, np.minimum(1.5 * score, 1), 0.5 * score)
    >>> result = calibrant.audit(outcome, score, {"country": country, "device": device})
    >>> len(result.miscalibrated), len(result.segments)
    (10, 11)
    >>> result.different[0].name, round(result.different[0].difference.value, 2)
    ('country = FR, device = app', 0.08)
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.audit import NUMBERS, audit_segments

    rows = y_prob, notion, sample_weight, labels, pos_label, cluster
    data = read(y_true, *rows, counts=counts, percent=percent, missing=missing)
    chosen = default_notion(notion, vector=data.score.ndim == 1)
    if chosen.canonical or chosen.classwise:
        raise inputs.InputError("notion", "compare one score of each row", chosen.name, advice="notion")
    about: dict[str, Any] = {"depth": depth, "min_rows": min_rows}
    result = audit_segments(
        data,
        chosen,
        segments_of_rows(segments, y_true, data, **about),
        level=inputs.level(level),
        n_resamples=inputs.positive_int("n_resamples", n_resamples, 99),
        seed=inputs.seeded(rng),
        **about,
    )
    if clashes := [name for name in result.columns if name in NUMBERS]:
        rule = f"have other names than the columns of results, {inputs.show(*NUMBERS)}"
        raise inputs.InputError("segments", rule, clashes[0])
    names = class_names_of(y_true, data.labels, class_names)
    return rename_classes(result, names) if names else result
