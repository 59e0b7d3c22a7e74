"""Runs of the experiment that are made up, so that the answer is known."""

import numpy as np

from calibrant.experiment import SIZES, Settings, Summary

SETTINGS = Settings(
    classes=(2,),
    features=(2,),
    seeds=tuple(range(12)),
    train_sets=1,
    families=("logistic", "naive-bayes"),
    sizes=SIZES[:11],
)


def made_up(factor=lambda *_: 1.0, settings=SETTINGS, truth=0.05, noise=0.002, rng=0):
    """A run whose errors are factor(estimator, size, notion, distribution) / sqrt(size), but for noise."""
    rng = np.random.default_rng(rng)
    tasks = settings.tasks()
    shape = (len(tasks), len(settings.notions), len(settings.estimators), len(settings.sizes))
    p95 = np.empty(shape)
    for m, j, k, i in np.ndindex(shape):
        n, name = settings.sizes[i], settings.estimators[k]
        p95[m, j, k, i] = factor(name, n, settings.notions[j], tasks[m].distribution) / n**0.5
    p95 *= np.exp(noise * rng.standard_normal(shape))
    exact = {name: p95.copy() for name in ("p95", "sd")} | {"failed": np.zeros(shape)}
    values = {"published": exact, "corrected": exact, "normalised": {k: v / truth for k, v in exact.items()}}
    truths = {notion: np.tile([truth, truth, 0.0], (len(tasks), 1)) for notion in settings.notions}
    models = [(task.distribution, task.train_set, task.family) for task in tasks]
    return Summary(settings, models, truths, values, [], {})
