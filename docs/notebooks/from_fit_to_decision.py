# %% [markdown]
# # From a model to a decision
#
# This notebook measures the calibration of a classifier, recalibrates it, and uses the probabilities for a
# decision with costs. It takes ten minutes and uses data that ship with scikit-learn.
#
# Install with `pip install 'calibrant[docs,files]'`.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant.sklearn import ReliabilityDisplay

plt.rcParams["figure.dpi"] = 80

# %% [markdown]
# ## Training, calibration and test data
#
# The task is to predict whether a handwritten digit is odd. One part of the digits trains the models, one
# recalibrates their scores, and one tests the results. Each result is measured on rows that were not used
# for training or recalibration, because a model looks better on rows that it was fitted on.

# %%
X, digit = load_digits(return_X_y=True)
y = np.where(digit % 2 == 1, "odd", "even")
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.4, stratify=y, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(
    X_rest, y_rest, train_size=0.35, stratify=y_rest, random_state=0
)
print(f"{len(y_fit)} digits to train, {len(y_cal)} to recalibrate, {len(y_test)} to test")

# %% [markdown]
# ## Two models

# %%
forest = RandomForestClassifier(random_state=0).fit(X_fit, y_fit)
logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_fit, y_fit)
scores = {  # the second column is that of "odd"
    "forest": forest.predict_proba(X_test)[:, 1],
    "logistic": logistic.predict_proba(X_test)[:, 1],
}
for name, score in scores.items():
    right = (score > 0.5) == (y_test == "odd")
    print(f"{name:12} accuracy {right.mean():.1%}")

# %% [markdown]
# The forest has the higher accuracy. Decisions that use its scores need calibration too: of all digits with
# a score of 0.8, are 80 % odd?
#
# ## Calibration error

# %%
result = calibrant.estimate(y_test, scores["forest"], pos_label="odd", rng=0)
print(result)

# %% [markdown]
# The parts of this result:

# %%
parts = {
    f"{result.value:.3f}": "calibration error: mean absolute difference between scores and frequencies",
    f"{result.low:.3f} to {result.high:.3f}": f"{result.level:.0%} confidence interval",
    f"{result.over:.3f} + {result.under:.3f}": "its parts: scores too high, scores too low",
    f"{result.null.mean:.3f}": "expected if calibrated: positive because of sampling noise",
    f"{result.p_value:.3f}": "p-value (H0: the model is calibrated)",
    f"{result.n:.0f}, {result.estimator}": "number of digits, and estimator",
}
for part, meaning in parts.items():
    print(f"{part:15}  {meaning}")

# %% [markdown]
# ## Reliability curve
#
# The reliability curve shows the observed frequency at every score, with a confidence band. A calibrated
# model lies on the dashed diagonal.

# %%
curve = calibrant.reliability_curve(y_test, scores["forest"], pos_label="odd")
curve.plot()
plt.show()

# %%
point = curve.at(0.83)
print(
    f"Of the digits that the forest gives a score of 0.83, {point.value:.0%} are odd "
    f"({point.low:.0%} to {point.high:.0%})."
)

# %% [markdown]
# This forest is underconfident: its trees vote and rarely all agree, so a nearly certain case gets a score
# that is too far from 0 or 1.
#
# ## Model comparison
#
# Both models scored the same digits, so the comparison is paired. Sampling variation that affects both
# models cancels in the difference.

# %%
comparison = calibrant.compare(y_test, scores, baseline="logistic", pos_label="odd", rng=0)
print(comparison.differences["forest"])

# %% [markdown]
# The difference is positive and significant: the forest has the larger calibration error. It is more
# accurate and less well calibrated. Recalibration can correct its scores afterwards.
#
# ## Recalibration
#
# `CalibratedClassifierCV` fits a map from scores to probabilities on the calibration data. The forest
# itself does not change. The sigmoid has two parameters, for which a few hundred digits are enough.

# %%
recalibrated = CalibratedClassifierCV(FrozenEstimator(forest), method="sigmoid").fit(X_cal, y_cal)
scores["recalibrated"] = recalibrated.predict_proba(X_test)[:, 1]
after_recalibration = calibrant.compare(
    y_test, {name: scores[name] for name in ("forest", "recalibrated")}, pos_label="odd", rng=0
)
print(after_recalibration)

# %%
style = {"n_bins": None}
before = ReliabilityDisplay.from_estimator(forest, X_test, y_test, name="forest", **style)
after = ReliabilityDisplay.from_estimator(
    recalibrated, X_test, y_test, name="recalibrated", ax=before.ax_, **style
)
plt.show()

# %% [markdown]
# The errors in the legend are the estimates above. They are not computed from the curves: the curve is fitted
# on the log-odds, the error on probabilities. The band is wide where few digits have a score. After
# recalibration it includes the diagonal at most scores.
#
# A small calibration error alone is not enough: a model that always predicts the share of odd digits has
# one. Log loss measures calibration and discrimination together. Smaller is better.

# %%
for name, score in scores.items():
    print(f"{name:12} log loss {log_loss(y_test, score, labels=['even', 'odd']):.3f}")

# %% [markdown]
# ## Decision with costs
#
# Suppose that odd digits need a check, and that a missed odd digit costs ten times as much as an
# unnecessary check. A check pays if its expected cost is smaller, `1 - p < 10 p`, that is, if the
# probability is at least 1/11. The curve gives the score that corresponds to this probability.

# %%
MISS, ALARM = 10.0, 1.0
limit = ALARM / (ALARM + MISS)
fitted = calibrant.reliability_curve(y_cal, forest.predict_proba(X_cal)[:, 1], pos_label="odd")
threshold = fitted.score[np.flatnonzero(fitted.value > limit)[0]]
certainly_below, certainly_above = (
    fitted.score[fitted.high < limit].max(),
    fitted.score[fitted.low > limit].min(),
)
print(f"A probability of {limit:.2f} is reached at a score of {threshold:.2f}.")
print(f"Between {certainly_below:.2f} and {certainly_above:.2f} the band includes that probability.")

# %% [markdown]
# The threshold comes from the calibration data. The costs are measured on the test data.

# %%


def cost(score, threshold):
    """Cost of each digit if all scores of at least `threshold` lead to a check."""
    odd, act = y_test == "odd", score >= threshold
    return np.where(act, ALARM * ~odd, MISS * odd)


costs = {
    "forest, threshold 0.5": cost(scores["forest"], 0.5),
    "forest, threshold 1/11": cost(scores["forest"], limit),
    "forest, threshold from the curve": cost(scores["forest"], threshold),
    "recalibrated, threshold 1/11": cost(scores["recalibrated"], limit),
    "logistic, threshold 1/11": cost(scores["logistic"], limit),
}
for name, total in costs.items():
    print(f"{name:40} {100 * total.mean():5.1f} per 100 digits")

# %%
unadjusted, adjusted = (costs[f"forest, threshold {rule}"] for rule in ("1/11", "from the curve"))
saved = unadjusted - adjusted
error = saved.std(ddof=1) / np.sqrt(len(saved))
print(f"The threshold from the curve saves {100 * saved.mean():.1f} +- {200 * error:.1f} per 100 digits.")

# %% [markdown]
# ## Assessment
#
# `assess` combines estimate, curve, proper scores and warnings in one object. The next cell prints its
# summary. In a notebook the object has a rich display, and `to_html` writes a report.

# %%
assessment = calibrant.assess(
    y_test, scores["recalibrated"], pos_label="odd", name="recalibrated forest", rng=0
)
print(assessment.summary)

# %% [markdown]
# ## Release gate
#
# `calibrant check` compares the calibration error of the scores in a file with a limit, for example before
# a release. Its exit code is 0 if the error is within the limit, 1 if it is above, and 3 if the result is
# inconclusive. The confidence interval decides, not the estimate.

# %%
codes = {}
with tempfile.TemporaryDirectory() as folder:
    for name in ("forest", "recalibrated"):
        path = Path(folder) / f"{name}.csv"
        rows = zip(y_test, scores[name], strict=True)
        path.write_text("label,score\n" + "".join(f"{label},{score}\n" for label, score in rows))
        command = [
            sys.executable,
            "-m",
            "calibrant",
            "check",
            str(path),
            "--max-ece",
            "0.05",
            "--pos-label",
            "odd",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        codes[name] = done.returncode
        print(f"{name}: {done.stdout.strip()} (exit code {done.returncode})")

# %% [markdown]
# ## Summary
#
# - Measure on rows that were not used for training or recalibration, and report the interval with the
#   value.
# - Accuracy and calibration are different properties. A few hundred rows are enough to recalibrate.
# - A decision threshold is a probability. Recalibrate the scores, or convert the threshold with the curve.
# - Never select a model by its calibration error alone.
#
# More: the [how-to guides](../how-to/index.md) and [scikit-learn integration](../scikit-learn.md).
