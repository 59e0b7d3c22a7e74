"""Side studies of what the paper claims."""

import numpy as np
import pytest
from test_studies import study

import calibrant
from calibrant.estimators import FIFTEEN
from calibrant.experiment import Settings, Task
from calibrant.experiment import claims as of_runs
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.procedure import true_errors
from made_up_runs import made_up

pytestmark = pytest.mark.no_cover

studies = study("claims")


def test_studies_join_the_claims_and_the_tables_hold_every_one():
    summary = made_up()
    found = [*of_runs.claims(summary), *studies.studied(summary, studies.SMOKE)]
    text = of_runs.to_markdown(found)
    assert sum("study" in claim.verdicts for claim in found) == 16
    assert all(f"| {claim.text} |" in text for claim in found)
    width = [line.count("|") for line in text.splitlines() if line]
    assert set(width) == {7, 5}
    allowed = (of_runs.HOLDS, of_runs.FAILS, of_runs.OPEN, studies.NAMED)
    assert all(v.startswith(allowed) for claim in found for v in claim.verdicts.values())


def test_the_second_beta_kernel_is_judged_as_figure_2_judges():
    options = studies.SMOKE["kernels_on_models"] | {"most": 2}
    found = studies.kernels_on_models(**options)
    names = ("d:silverman", "density-beta2")
    tasks = Settings(seeds=(0, 1), train_sets=1).tasks()[:2]
    errors = []
    for task, (score, label, chance) in zip(tasks, studies._cheap(tasks, 300, 5000), strict=True):
        truth = true_errors(score, label, chance, ("confidence",))["confidence"].exact
        off = []
        for rows in rng_of(task.name, "kernels", 100).integers(0, 5000, (10, 100)):
            data = (label[rows], score[rows])
            off.append(
                [abs(calibrant.ece(*data, notion="confidence", estimator=name) - truth) for name in names]
            )
        errors.append(np.percentile(off, 95, axis=0))
    silverman, beta = np.median(errors, axis=0)
    assert set(found) == {"confidence", "classwise"}
    assert found["confidence"][100][0] == pytest.approx(beta / silverman, rel=2e-2)  # another grid


def test_sharpness_finds_a_loss_that_grows_with_it():
    summary = made_up(noise=0.0)
    options = studies.SMOKE["sharpness"] | {"most": 24}
    tasks = [Task(*model) for model in summary.models]
    sharp = [np.mean(np.abs(p - 0.5) > 0.48) for p, _, _ in studies._cheap(tasks, 300, options["rows"])]
    silverman = FIFTEEN.index("d:silverman")
    summary.values["corrected"]["p95"][:, 1, silverman] *= 1 + np.array(sharp)[:, None]
    found = studies.sharpness(summary, "corrected", **options)
    assert found["correlation"] == pytest.approx(1)
    assert found["low"] > 0.9
    assert found["sharp"] > found["blunt"]
    assert found["models"] == 24
