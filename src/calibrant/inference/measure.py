"""From a question to the error that an estimator reads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calibrant import compiled
from calibrant.estimators import Estimator, EstimatorLike, Fit, Norm, check_norm, resolve
from calibrant.evidence import Array, Evidence, Sample
from calibrant.inputs import InputError
from calibrant.posterior import posterior_of
from calibrant.questions import Notion, Question

# Problems that a posterior is made of at a time where each has at least so many rows.
TOGETHER, LONG = 16, 1 << 13


def chosen_for(notion: Notion, estimator: Any, norm: str) -> Estimator:
    """Return the estimator that is meant where a notion is asked; refuse a norm that it does not define."""
    chosen = resolve(estimator, shared=notion.several, vectors=notion.whole)
    check_norm(norm, chosen)
    return chosen


def measure(question: Question, estimator: EstimatorLike, norm: Norm) -> float:
    """Return the calibration error that a question asks for."""
    chosen = chosen_for(question.notion, estimator, norm)
    if chosen.vectors:
        from calibrant.compiled.blas import one_blas_thread

        with one_blas_thread():
            return float(chosen.fit(question.simplex).error(norm))
    return question.notion.combine(errors_of(question, chosen, norm), norm)


def errors_of(question: Question, estimator: Estimator, norm: Norm) -> Array:
    """Return the error of each problem."""
    if question.designs is not None and estimator.from_posterior:
        posterior = posterior_of(question)
        batch = (len(posterior.z),) if question.notion.several else ()
        return np.ravel(estimator.fit_posterior(batch, posterior).error(norm))
    errors = np.concatenate([np.ravel(fit.error(norm)) for fit in _fits(question, estimator)])
    if errors.size != (size := question.notion.size(len(question.labels))):
        raise InputError(f"the estimator {estimator}", f"return {size} errors", got=f"{errors.size}")
    return errors


def _fits(question: Question, estimator: Estimator) -> list[Fit]:
    """Fit each block of problems; return one fit for all where classes are judged together."""
    fits: list[Fit] = []
    fit: Any = estimator.fit
    if estimator.from_posterior:
        fit = partial(fit, ties=question.has_ties)
    for block in question.stream():
        fits += compiled.shared(fit, pieces(block) if estimator.from_posterior else [block])
    return type(fits[0]).joined(fits)


def pieces(block: Evidence) -> list[Evidence]:
    """Return a block of many long problems in pieces: what a posterior sums of each stays in the cache."""
    if not isinstance(block, Sample) or len(block.batch) != 1 or block.shape[-1] < LONG:
        return [block]
    return [block[first : first + TOGETHER] for first in range(0, block.batch[0], TOGETHER)]
