"""Point estimates: the calibration error of a calibration task by any estimator."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calibrant.estimators import Estimator, EstimatorLike, Fit, Norm, check_norm, resolve
from calibrant.inputs import InputError
from calibrant.parallel import parallel_map
from calibrant.posterior import posterior_of
from calibrant.score_data import Array, Sample, ScoreData
from calibrant.tasks import CalibrationTask, Notion

# Problems per piece, for blocks of problems with at least `LONG` rows each.
TOGETHER, LONG = 16, 1 << 13


def chosen_for(notion: Notion, estimator: Any, norm: str) -> Estimator:
    """Return the estimator for a notion; raise an error if it does not define the norm."""
    chosen = resolve(estimator, shared=notion.classwise, vectors=notion.canonical)
    check_norm(norm, chosen)
    return chosen


def measure(task: CalibrationTask, estimator: EstimatorLike, norm: Norm) -> float:
    """Return the calibration error of a calibration task."""
    chosen = chosen_for(task.notion, estimator, norm)
    if chosen.vectors:
        from calibrant.parallel import one_blas_thread

        with one_blas_thread():
            return float(chosen.fit(task.simplex).error(norm))
    return task.notion.combine(errors_of(task, chosen, norm), norm)


def errors_of(task: CalibrationTask, estimator: Estimator, norm: Norm) -> Array:
    """Return the error of each problem."""
    if task.designs is not None and estimator.from_posterior:
        posterior = posterior_of(task)
        batch = (len(posterior.z),) if task.notion.classwise else ()
        return np.ravel(estimator.fit_posterior(batch, posterior).error(norm))
    errors = np.concatenate([np.ravel(fit.error(norm)) for fit in _fits(task, estimator)])
    if errors.size != (size := task.notion.size(len(task.labels))):
        raise InputError(f"the estimator {estimator}", f"return {size} errors", got=f"{errors.size}")
    return errors


def _fits(task: CalibrationTask, estimator: Estimator) -> list[Fit]:
    """Fit each block of problems; return one joint fit if classes are pooled."""
    fits: list[Fit] = []
    fit: Any = estimator.fit
    if estimator.from_posterior:
        fit = partial(fit, ties=task.has_ties)
    for block in task.stream():
        fits += parallel_map(fit, pieces(block) if estimator.from_posterior else [block])
    return type(fits[0]).joined(fits)


def pieces(block: ScoreData) -> list[ScoreData]:
    """Split a block of long problems, so that the sums of a piece stay in the processor's cache."""
    if not isinstance(block, Sample) or len(block.batch) != 1 or block.shape[-1] < LONG:
        return [block]
    return [block[first : first + TOGETHER] for first in range(0, block.batch[0], TOGETHER)]
