# %% [markdown]
# # From `fit` to a decision
#
# A classifier is fitted and answers with scores between 0 and 1. Are they probabilities? If they are not,
# what does that cost, and what can be done about it? Ten minutes, with data that ships with scikit-learn.
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
# ## Three parts of the data
#
# Is a handwritten digit odd? One part of the digits fits the models, one mends their scores, and one judges.
# A model looks well on rows that something was learnt from, so what is to be trusted is measured on rows
# where nothing was.

# %%
X, digit = load_digits(return_X_y=True)
y = np.where(digit % 2 == 1, "odd", "even")
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.4, stratify=y, random_state=0)
X_mend, X_test, y_mend, y_test = train_test_split(
    X_rest, y_rest, train_size=0.35, stratify=y_rest, random_state=0
)
print(f"{len(y_fit)} digits to fit, {len(y_mend)} to mend, {len(y_test)} to judge")

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
    print(f"{name:9} right about {right.mean():.1%} of the digits")

# %% [markdown]
# The forest is the better one, if being right is all that matters. Whoever acts on its scores needs more: of
# all digits with a score of 0.8, are 80 % odd?
#
# ## How far are the scores from probabilities?

# %%
found = calibrant.estimate(y_test, scores["forest"], pos_label="odd", rng=0)
print(found)

# %% [markdown]
# One line, part by part:

# %%
parts = {
    f"{found.value:.3f}": "the calibration error: how far scores and frequencies are apart, on average",
    f"{found.low:.3f} to {found.high:.3f}": f"where the true error lies, at {found.level:.0%}",
    f"{found.over:.3f} + {found.under:.3f}": "its parts: scores that are too high, and too low",
    f"{found.null.mean:.3f}": "expected if the model is calibrated, for as many digits: not 0, due to noise",
    f"{found.p_value:.3f}": "how often a calibrated model would look so bad, or worse",
    f"{found.n:.0f}, {found.estimator}": "digits, and the estimator that was used",
}
for part, meaning in parts.items():
    print(f"{part:15}  {meaning}")

# %% [markdown]
# ## Where are they wrong?
#
# The reliability curve gives the frequency at every score, with a band for what the data leave open. On the
# dashed line scores are probabilities. It comes from a second model, on the log-odds, of the same data.

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
# This forest is too modest: its trees vote, they rarely all agree, and so a nearly certain case gets a
# middling score.
#
# ## Is the other model better?
#
# Both have judged the same digits, so they are compared in pairs. What made one of them look bad by chance
# has often done so to the other, and cancels.

# %%
both = calibrant.compare(y_test, scores, baseline="logistic", pos_label="odd", rng=0)
print(both.differences["forest"])

# %% [markdown]
# A positive difference: the forest has the larger calibration error, and by more than chance can explain. It
# is right more often and its scores are further from probabilities. The two are different virtues, and the
# second can be had afterwards.
#
# ## Mend it
#
# `CalibratedClassifierCV` learns a map from scores to probabilities on the second part of the data. The
# forest itself stays as it is. The sigmoid has two numbers to learn; a few hundred digits do.

# %%
mended = CalibratedClassifierCV(FrozenEstimator(forest), method="sigmoid").fit(X_mend, y_mend)
scores["mended"] = mended.predict_proba(X_test)[:, 1]
again = calibrant.compare(
    y_test, {name: scores[name] for name in ("forest", "mended")}, pos_label="odd", rng=0
)
print(again)

# %%
style = {"n_bins": None}
before = ReliabilityDisplay.from_estimator(forest, X_test, y_test, name="forest", **style)
after = ReliabilityDisplay.from_estimator(mended, X_test, y_test, name="mended", ax=before.ax_, **style)
plt.show()

# %% [markdown]
# The errors in the legend are those of the estimates above: curve and number are one fit. Where few digits
# have a score the band is wide; after mending it holds the dashed line at most scores.
#
# A small calibration error alone proves little: a model that always answers with the share of odd digits has
# one. Log loss, the smaller the better, counts calibration and knowledge together.

# %%
for name, score in scores.items():
    print(f"{name:9} log loss {log_loss(y_test, score, labels=['even', 'odd']):.3f}")

# %% [markdown]
# ## Decide
#
# Say that parcels with an odd number need a check, and that missing one costs ten times as much as a check
# for nothing. Checking pays where its expected cost is the smaller one, `1 - p < 10 p`: from a probability of
# 1/11 on. A probability, not a score: which score is that?

# %%
MISS, ALARM = 10.0, 1.0
limit = ALARM / (ALARM + MISS)
learnt = calibrant.reliability_curve(y_mend, forest.predict_proba(X_mend)[:, 1], pos_label="odd")
act_from = learnt.score[np.flatnonzero(learnt.value > limit)[0]]
surely_below, surely_above = learnt.score[learnt.high < limit].max(), learnt.score[learnt.low > limit].min()
print(f"A probability of {limit:.2f} is reached at a score of {act_from:.2f}.")
print(f"Between {surely_below:.2f} and {surely_above:.2f} the band allows both answers.")

# %% [markdown]
# The curve was read on the second part of the data; the bill is paid on the third.

# %%


def cost(score, act_from):
    """Cost of each digit, if every score from `act_from` on is acted upon."""
    odd, act = y_test == "odd", score >= act_from
    return np.where(act, ALARM * ~odd, MISS * odd)


bills = {
    "forest, from 0.5 on": cost(scores["forest"], 0.5),
    "forest, score taken for a probability": cost(scores["forest"], limit),
    "forest, read through the curve": cost(scores["forest"], act_from),
    "mended, score taken for a probability": cost(scores["mended"], limit),
    "logistic, score taken for a probability": cost(scores["logistic"], limit),
}
for name, bill in bills.items():
    print(f"{name:40} {100 * bill.mean():5.1f} per 100 digits")

# %%
taken, read = (bills[f"forest, {how}"] for how in ("score taken for a probability", "read through the curve"))
saved = taken - read
error = saved.std(ddof=1) / np.sqrt(len(saved))
print(
    f"Reading the score through the curve saves {100 * saved.mean():.1f} +- {200 * error:.1f} per 100 digits."
)

# %% [markdown]
# ## Everything at once
#
# `assess` puts estimate, curve, proper scores and warnings into one object. Here is its summary; in a
# notebook the object shows itself, and `to_html` writes a report.

# %%
assessment = calibrant.assess(y_test, scores["mended"], pos_label="odd", name="mended forest", rng=0)
print(assessment.summary)

# %% [markdown]
# ## Keep it so
#
# Next month's model should not be worse. `calibrant check` holds the scores in a file against a limit and
# says so by its exit code: 0 for within, 1 for above, 3 for too few rows to tell. The interval decides, not
# the estimate.

# %%
codes = {}
with tempfile.TemporaryDirectory() as folder:
    for name in ("forest", "mended"):
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
# ## What to take along
#
# - Measure on rows that nothing was learnt from, and look at the interval before the value.
# - Accuracy and calibration are different virtues. The second can be mended with a few hundred rows.
# - A limit for action is a probability. Mend the scores, or read the limit through the curve.
# - Never choose a model by its calibration error alone.
#
# More: the [guide](../guide.md) and [calibrant with scikit-learn](../scikit-learn.md).
