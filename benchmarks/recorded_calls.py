"""The public calls that `record.py` runs, by area: a name and a function without arguments.

A call uses the public surface only and takes about a second at most. All data are seeded. A call that needs
files writes them first, so that each commit reads files that it can read.
"""

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import calibrant

_FOLDER = tempfile.TemporaryDirectory(prefix="calibrant-record-")
FOLDER = Path(_FOLDER.name)

# ---- data ------------------------------------------------------------------------------------------------


def _classes(seed, rows, n_classes):
    """Return labels and scores of an overconfident model."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.2, (rows, n_classes))
    true, score = (np.exp(t * logits) for t in (1.0, 1.6))
    true, score = (each / each.sum(axis=1, keepdims=True) for each in (true, score))
    return (rng.random((rows, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1), score


_rng = np.random.default_rng(1)
P = _rng.beta(0.7, 0.9, 600)
Y = (_rng.random(600) < P**1.3).astype(int)
OTHER = np.sqrt(P)  # scores of a worse model
TIED = np.round(P, 1)  # 11 distinct scores, also 0 and 1
WEIGHT = _rng.gamma(2.0, 1.0, 600)
COUNT = _rng.integers(0, 4, 600)
CLUSTER = _rng.integers(0, 150, 600)
GROUP = np.array(["north", "south", "west"])[_rng.integers(0, 3, 600)]
AGE = np.array(["young", "old"])[_rng.integers(0, 2, 600)]
LOGIT = np.log(P) - np.log1p(-P)
RARE = _rng.beta(0.4, 12, 1500)
Y_RARE = (_rng.random(1500) < 0.7 * RARE).astype(int)
TEXT = np.where(Y == 1, "spam", "ham")
MISSING = np.where(np.arange(600) % 50 == 7, np.nan, Y)
Y3, P3 = _classes(2, 500, 3)
Y10, P10 = _classes(3, 400, 10)
LOGITS3 = np.log(P3) + 0.3
WEIGHT3, CLUSTER3 = WEIGHT[:500], CLUSTER[:500]
TEXT3 = np.array(["cat", "dog", "emu"])[Y3]
P_MANY = _rng.beta(0.8, 1.6, (400, 4))  # multilabel
Y_MANY = (_rng.random((400, 4)) < P_MANY**1.2).astype(int)
CONFIDENCE = 0.5 + 0.5 * P
CORRECT = (_rng.random(600) < CONFIDENCE**1.3).astype(int)
AT = np.array([0.05, 0.3, 0.5, 0.9])

#: Arguments about rows for every notion.
NOTIONS = {
    "binary": {"y_true": Y, "y_prob": P},
    "binary of a matrix": {"y_true": Y3, "y_prob": P3, "notion": "binary", "pos_label": 1},
    "confidence": {"y_true": Y3, "y_prob": P3},
    "classwise": {"y_true": Y3, "y_prob": P3, "notion": "classwise"},
    "top-label": {"y_true": Y3, "y_prob": P3, "notion": "top-label"},
    "top:2": {"y_true": Y10, "y_prob": P10, "notion": "top:2"},
    "multilabel": {"y_true": Y_MANY, "y_prob": P_MANY, "notion": "multilabel"},
    "correctness": {"y_true": CORRECT, "y_prob": CONFIDENCE, "notion": "correctness"},
    "canonical": {"y_true": Y3, "y_prob": P3, "notion": "canonical"},
}
#: Notions with one score, or one for each class.
SCORED = {name: rows for name, rows in NOTIONS.items() if name != "canonical"}
#: The same kinds of rows for functions of one binary problem.
FORMS = {
    "rows": {"y_true": Y, "y_prob": P},
    "weights": {"y_true": Y, "y_prob": P, "sample_weight": WEIGHT},
    "counts": {"y_true": Y, "y_prob": P, "counts": COUNT},
    "clusters": {"y_true": Y, "y_prob": P, "cluster": CLUSTER},
    "weights and clusters": {"y_true": Y, "y_prob": P, "sample_weight": WEIGHT, "cluster": CLUSTER},
    "ties": {"y_true": Y, "y_prob": TIED},
    "rare": {"y_true": Y_RARE, "y_prob": RARE},
    "few rows": {"y_true": Y[:12], "y_prob": P[:12]},
    "one class": {"y_true": np.zeros(40, int), "y_prob": P[:40], "labels": [0, 1]},
    "text labels": {"y_true": TEXT, "y_prob": P, "pos_label": "spam"},
    "percent": {"y_true": Y, "y_prob": 100 * P, "percent": True},
    "missing labels": {"y_true": MISSING, "y_prob": P, "missing": "drop"},
    "float32": {"y_true": Y, "y_prob": P.astype(np.float32)},
    "lists": {"y_true": Y.tolist(), "y_prob": P.tolist()},
}
ESTIMATORS = (
    *("uniform:15", "uniform:sqrt", "adaptive:10", "uniform-convex:10", "adaptive-convex:sqrt", "density"),
    *("density:0.1", "density-beta", "density-beta2", "bayes", "debiased:15", "sweep", "isotonic", "beta"),
    *("beta-kernel", "variational", "smooth", "ks", "kuiper"),
)
CANONICAL = ("softmax", "dirichlet", "variational:temperature", "skce")
FEW = {"n_resamples": 99}  # simulations of a test


def sketch(kind="binary"):
    """Return a sketch of one kind of rows."""
    made = {
        "binary": lambda: calibrant.Sketch().update(Y, P),
        "ties": lambda: calibrant.Sketch().update(Y, TIED),
        "weights": lambda: calibrant.Sketch().update(Y, P, sample_weight=WEIGHT),
        "counts": lambda: calibrant.Sketch().update(Y, P, counts=COUNT),
        "rare": lambda: calibrant.Sketch().update(Y_RARE, RARE),
        "confidence": lambda: calibrant.Sketch("confidence").update(Y3, P3),
        "classwise": lambda: calibrant.Sketch("classwise").update(Y3, P3),
        "top:2": lambda: calibrant.Sketch("top:2").update(Y10, P10),
        "multilabel": lambda: calibrant.Sketch("multilabel").update(Y_MANY, P_MANY),
        "correctness": lambda: calibrant.Sketch("correctness").update(CORRECT, CONFIDENCE),
        "two updates": lambda: calibrant.Sketch().update(Y[:200], P[:200]).update(Y[200:], P[200:]),
        "sum": lambda: (
            calibrant.Sketch().update(Y[:200], P[:200]) + calibrant.Sketch().update(Y[200:], P[200:])
        ),
    }
    return made[kind]()


SKETCHES = (
    *("binary", "ties", "weights", "counts", "rare", "confidence", "classwise", "top:2", "multilabel"),
    *("correctness", "two updates", "sum"),
)


# ---- files and frames ------------------------------------------------------------------------------------


@cache
def columns(kind="binary"):
    """Return the columns of a table by name."""
    if kind == "binary":
        day = np.array([f"2026-05-{1 + k // 60:02d}" for k in range(600)])
        extra = {"other": OTHER, "weight": WEIGHT, "n": COUNT, "patient": CLUSTER}
        return {"label": Y, "score": P, **extra, "group": GROUP, "age": AGE, "day": day}
    if kind == "classes":
        return {"label": TEXT3, **{f"p_{name}": P3[:, k] for k, name in enumerate(("cat", "dog", "emu"))}}
    if kind == "answers":
        return {"correct": CORRECT, "confidence": CONFIDENCE, "model": GROUP, "question": np.arange(600) // 3}
    if kind == "numbers":  # columns of numbers only, for NPZ
        return {"y_true": Y3, "y_prob": P3}
    raise KeyError(kind)


@cache
def file(name, kind="binary", part=slice(None)):
    """Write a table and return its path; the suffix says the format."""
    import pandas as pd

    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **{key: values[part] for key, values in columns(kind).items()})
        return str(path)
    frame = pd.DataFrame({key: values[part] for key, values in columns(kind).items()})
    write = {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True, double_precision=15),
        ".json": lambda: frame.to_json(path, orient="records", double_precision=15),
        ".parquet": lambda: frame.to_parquet(path, index=False),
        ".arrow": lambda: frame.to_feather(path),
    }
    write[path.suffix]()
    return str(path)


@cache
def text_file(name, text):
    """Write a text and return its path."""
    path = FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def sketch_file(kind="binary"):
    """Save a sketch and return its path."""
    path = FOLDER / f"{kind}.sketch"
    sketch(kind).save(path)
    return str(path)


def frame(library, kind="binary"):
    """Return a table of a data frame library."""
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(columns(kind))
    if library == "polars":
        import polars as pl

        return pl.DataFrame(columns(kind))
    if library == "polars lazy":
        return frame("polars", kind).lazy()
    if library == "pyarrow":
        import pyarrow as pa

        return pa.table(columns(kind))
    import duckdb

    table = frame("pandas", kind)
    return duckdb.from_df(table)


FRAMES = ("pandas", "polars", "polars lazy", "pyarrow", "duckdb")


#: A log of lm-evaluation-harness: questions with two answers and their log-likelihoods.
LM_EVAL = "\n".join(
    json.dumps(
        {
            "doc_id": k,
            "target": str(k % 2),
            "arguments": {
                f"gen_args_{j}": {"arg_0": f"Question {k}?", "arg_1": f" {'AB'[j]}"} for j in (0, 1)
            },
            "filtered_resps": [[str(-0.1 * (k % 5 + 1)), "False"], [str(-0.07 * (k % 7 + 1)), "False"]],
            "acc": float((-0.1 * (k % 5 + 1) < -0.07 * (k % 7 + 1)) == (k % 2 == 1)),
        }
    )
    for k in range(40)
)

# ---- the command line, figures and tensors ---------------------------------------------------------------


def command(*words, reads=None, shows=()):
    """Run the command line; return its exit code, its output, and the files named by `shows`."""
    from click.testing import CliRunner

    from calibrant.cli import main

    done = CliRunner().invoke(main, [str(word) for word in words], input=reads)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    written = {Path(path).name: Path(path).read_text() for path in shows}
    return {"exit code": done.exit_code, "output": done.stdout, "errors": done.stderr, **written}


def out(name):
    """Return the path of a file to be written."""
    return str(FOLDER / name)


def figure(draw):
    """Draw in a new figure and return what it shows."""
    from matplotlib import pyplot as plt

    plt.close("all")
    draw()
    return [
        {
            "title": axes.get_title() or axes.get_title("left"),
            "labels": [axes.get_xlabel(), axes.get_ylabel()],
            "limits": [*axes.get_xlim(), *axes.get_ylim()],
            "lines": [line.get_xydata() for line in axes.lines],
            "areas": [path.vertices for each in axes.collections for path in each.get_paths()],
            "bars": [[*bar.get_bbox().bounds] for bar in axes.patches if hasattr(bar, "get_bbox")],
            "texts": [text.get_text() for text in axes.texts],
            "legend": [text.get_text() for text in axes.get_legend().texts] if axes.get_legend() else [],
        }
        for axes in plt.gcf().axes
    ]


def monitor(**options):
    """Return a monitor that has read ten days, the last five of them miscalibrated."""
    watch = calibrant.Monitor(**options)
    for day in range(10):
        rows = slice(60 * day, 60 * (day + 1))
        watch.update(Y[rows], P[rows] if day < 5 else P[rows] ** 3, at=f"2026-05-{day + 1:02d}")
    return watch


def shifted(**options):
    """Return a fitted correction for other class frequencies."""
    return calibrant.PriorShift(**options).fit(P)


def tensors(*arrays):
    """Return tensors of the arrays."""
    import torch

    return [torch.from_numpy(np.array(each)) for each in arrays]


def metric(*batch, **options):
    """Return the results of the PyTorch metric after two updates."""
    from calibrant.torch import CalibrationError

    measured, half = CalibrationError(**options), len(batch[0]) // 2
    for part in (slice(half), slice(half, None)):
        measured.update(*(each[part] for each in tensors(*batch)))
    return {"compute": measured.compute(), "estimate": measured.estimate(rng=0, **FEW)}


def tokens(scores, **options):
    """Return the result of the PyTorch metric for tokens."""
    from calibrant.torch import TokenCalibrationError

    measured = TokenCalibrationError(scores, **options)
    measured.update(*tensors(np.log(P10).reshape(20, 20, 10), Y10.reshape(20, 20)))
    return measured.compute()


def module(fitted, scores):
    """Return the output of a calibrator as a module."""
    from calibrant.torch import CalibratorModule

    return CalibratorModule(fitted)(*tensors(scores))


def temperature():
    """Return the output of temperature scaling of logits."""
    from calibrant.torch import CalibratorModule

    logits, target = tensors(LOGITS3, Y3)
    return CalibratorModule.fit_temperature(logits, target)(logits)


def calibrated_model(**options):
    """Return the probabilities of a calibrated scikit-learn model."""
    from sklearn.naive_bayes import GaussianNB

    from calibrant.sklearn import CalibratedModel

    features = np.column_stack([LOGIT + np.sin(np.arange(600)), LOGIT, AGE == "old"])
    model = CalibratedModel(GaussianNB(), **options).fit(features, Y)
    return {"probability": model.predict_proba(features), "interval": model.predict_interval(features[:20])}


def scorer(**options):
    """Return the score of a scikit-learn scorer."""
    from sklearn.linear_model import LogisticRegression

    from calibrant.sklearn import neg_ece_scorer

    features = np.column_stack([LOGIT, AGE == "old"])
    return neg_ece_scorer(**options)(LogisticRegression().fit(features, Y), features, Y)


def display():
    """Draw a model's predictions by way of scikit-learn's interface."""
    from calibrant.sklearn import ReliabilityDisplay

    return ReliabilityDisplay.from_predictions(Y, P)


@cache
def experiment():
    """Run two small models of the experiment and return its folder."""
    calibrant.experiment.run(
        calibrant.experiment.Settings(
            classes=(2,),
            features=(2,),
            seeds=(0,),
            families=("logistic", "naive-bayes"),
            train_sets=1,
            n_train=100,
            n_holdout=20_000,
            sizes=(30, 100),
            repetitions=10,
        ),
        FOLDER / "run",
    )
    return str(FOLDER / "run")


@cache
def assessment(kind="binary"):
    """Return an assessment for figures."""
    if kind == "classes":
        return calibrant.assess(Y3, P3, groups=GROUP[:500], class_names=["cat", "dog", "emu"], **FEW)
    if kind == "canonical":
        return calibrant.assess(Y3, P3, notion="canonical", **FEW)
    return calibrant.assess(Y, P, cost=(1, 9), **FEW)


# ---- the calls -------------------------------------------------------------------------------------------

ERROR = {
    **{f"binary {spec}": lambda spec=spec: calibrant.ece(Y, P, estimator=spec) for spec in ESTIMATORS},
    **{f"ties {spec}": lambda spec=spec: calibrant.ece(Y, TIED, estimator=spec) for spec in ESTIMATORS},
    **{f"sketch {spec}": lambda spec=spec: sketch().ece(estimator=spec) for spec in ESTIMATORS},
    **{
        f"weights {spec}": lambda spec=spec: calibrant.ece(Y, P, estimator=spec, sample_weight=WEIGHT)
        for spec in ESTIMATORS
    },
    **{
        f"canonical {spec}": lambda spec=spec: calibrant.ece(Y3, P3, notion="canonical", estimator=spec)
        for spec in CANONICAL
    },
    **{f"notion {name}": lambda rows=rows: calibrant.ece(**rows) for name, rows in NOTIONS.items()},
    **{f"form {name}": lambda rows=rows: calibrant.ece(**rows) for name, rows in FORMS.items()},
    **{
        f"norm {norm} {spec}": lambda norm=norm, spec=spec: calibrant.ece(Y, P, norm=norm, estimator=spec)
        for norm in ("l2", "max")
        for spec in ("auto", "uniform:15", "density")
    },
    "norm mul canonical": lambda: calibrant.ece(Y3, P3, notion="canonical", norm="mul"),
    "ten classes classwise": lambda: calibrant.ece(Y10, P10, notion="classwise"),
    "bins of scikit-learn": lambda: calibrant.ece(Y, P, n_bins=10, strategy="quantile"),
    "function": lambda: calibrant.ece(Y, P, estimator=lambda s, y, w: abs(np.average(y - s, weights=w))),
    "value": lambda: calibrant.ece(Y, P, estimator=calibrant.Binned("adaptive", 10)),
    "log-odds": lambda: calibrant.ece(Y, LOGIT, from_logits=True),
    "logits": lambda: calibrant.ece(Y3, LOGITS3, from_logits=True),
    "maximum binary": lambda: calibrant.mce(Y, P),
    "maximum uniform": lambda: calibrant.mce(Y, P, estimator="uniform:15"),
    "maximum sketch": lambda: sketch().mce(estimator="uniform:15"),
    "local binary": lambda: calibrant.lce(Y, P, AT),
    "local density": lambda: calibrant.lce(Y, P, AT, method="density"),
    "local confidence": lambda: calibrant.lce(Y3, P3, [0.4, 0.9]),
    "local sketch": lambda: sketch().lce(AT),
    "names": lambda: [calibrant.estimator_names(), calibrant.estimator_names(vectors=True)],
}
ESTIMATE = {
    **{
        f"notion {name}": lambda rows=rows: calibrant.estimate(**rows, **FEW)
        for name, rows in NOTIONS.items()
    },
    **{f"form {name}": lambda rows=rows: calibrant.estimate(**rows, **FEW) for name, rows in FORMS.items()},
    **{
        f"estimator {spec}": lambda spec=spec: calibrant.estimate(Y, P, estimator=spec, **FEW)
        for spec in ("uniform:15", "adaptive:10", "density", "debiased:15", "isotonic", "sweep")
    },
    **{f"sketch {kind}": lambda kind=kind: sketch(kind).estimate(**FEW) for kind in SKETCHES},
    **{
        f"canonical {spec}": lambda spec=spec: calibrant.estimate(
            Y3, P3, notion="canonical", estimator=spec, **FEW
        )
        for spec in ("dirichlet", "variational:temperature")
    },
    "norm l2": lambda: calibrant.estimate(Y, P, norm="l2", **FEW),
    "level 0.8": lambda: calibrant.estimate(Y, P, level=0.8, **FEW),
    "999 simulations": lambda: calibrant.estimate(Y, P, rng=3),
    "classwise clusters": lambda: calibrant.estimate(Y3, P3, notion="classwise", cluster=CLUSTER3, **FEW),
    "classwise weights": lambda: calibrant.estimate(Y3, P3, notion="classwise", sample_weight=WEIGHT3, **FEW),
    "confidence weights": lambda: calibrant.estimate(Y3, P3, sample_weight=WEIGHT3, **FEW),
    "ten classes classwise": lambda: calibrant.estimate(Y10, P10, notion="classwise", **FEW),
    "class names": lambda: calibrant.estimate(
        Y3, P3, notion="classwise", class_names=["cat", "dog", "emu"], **FEW
    ),
    "table": lambda: calibrant.estimate_by(Y, P, GROUP, **FEW),
    "table simultaneous": lambda: calibrant.estimate_by(
        Y, P, {"group": GROUP, "age": AGE}, simultaneous=True, cluster=CLUSTER, **FEW
    ),
    "table as text": lambda: [
        calibrant.estimate_by(Y, P, GROUP, **FEW).to_markdown(),
        calibrant.estimate_by(Y, P, GROUP, **FEW).to_latex(),
    ],
    "recommend": lambda: calibrant.recommend(P, repetitions=20),
    "recommend named": lambda: calibrant.recommend(
        P3, estimators=["uniform:15", "auto"], n=200, repetitions=20
    ),
}
CURVES = {
    **{
        f"curve {name}": lambda rows=rows: calibrant.reliability_curve(**rows)
        for name, rows in SCORED.items()
    },
    **{
        f"curve form {name}": lambda rows=rows: calibrant.reliability_curve(**rows)
        for name, rows in FORMS.items()
    },
    **{f"curve sketch {kind}": lambda kind=kind: sketch(kind).curve() for kind in SKETCHES},
    "curve simultaneous": lambda: calibrant.reliability_curve(Y, P, band="simultaneous"),
    "curve without band": lambda: calibrant.reliability_curve(Y, P, band=None),
    "curve density": lambda: calibrant.reliability_curve(Y, P, method="density", n_boot=50),
    "curve bandwidth": lambda: calibrant.reliability_curve(
        Y, P, method="density", bandwidth="isj", n_boot=20
    ),
    "curve confidence weights": lambda: calibrant.reliability_curve(Y3, P3, sample_weight=WEIGHT3),
    "curve at": lambda: calibrant.reliability_curve(Y, P).at(AT),
    **{
        f"diagram {name}": lambda rows=rows: calibrant.reliability_diagram(**rows)
        for name, rows in SCORED.items()
    },
    **{
        f"diagram {name}": lambda rows=FORMS[name]: calibrant.reliability_diagram(**rows)
        for name in ("weights", "counts", "clusters", "ties", "few rows")
    },
    "diagram adaptive": lambda: calibrant.reliability_diagram(Y, P, binning="adaptive:10"),
    "diagram scikit-learn": lambda: calibrant.reliability_diagram(Y, P, n_bins=8, strategy="quantile"),
    "diagram sketch": lambda: sketch().diagram(),
    **{
        f"histogram {name}": lambda rows=rows: calibrant.score_histogram(**rows)
        for name, rows in SCORED.items()
    },
    "histogram weights": lambda: calibrant.score_histogram(Y, P, sample_weight=WEIGHT, bins=20),
    "histogram sketch": lambda: sketch().histogram(),
}
ASSESS = {
    **{
        f"notion {name}": lambda rows=rows: calibrant.assess(**rows, **FEW)
        for name, rows in NOTIONS.items()
        if name != "multilabel"
    },
    **{
        f"form {name}": lambda rows=FORMS[name]: calibrant.assess(**rows, **FEW)
        for name in ("weights", "counts", "clusters", "ties", "rare", "few rows", "text labels")
    },
    "groups": lambda: calibrant.assess(Y, P, groups=GROUP, **FEW),
    "cost": lambda: calibrant.assess(Y, P, cost=(1, 9), tolerance=0.05, name="forest", **FEW),
    "sketch": lambda: sketch().assess(**FEW),
    "sketch classwise": lambda: sketch("classwise").assess(**FEW),
    "ten classes": lambda: calibrant.assess(Y10, P10, **FEW),
    "page": lambda: assessment().to_html(),
    "page classes": lambda: assessment("classes").to_html(),
    "saved": lambda: calibrant.Assessment.from_json(assessment().to_json()),
}
COMPARE = {
    "paired": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, **FEW),
    "paired clusters": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, cluster=CLUSTER, **FEW),
    "paired weights": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, sample_weight=WEIGHT, **FEW),
    "unpaired": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, paired=False, **FEW),
    "baseline": lambda: calibrant.compare(Y, {"a": P, "b": OTHER, "c": TIED}, baseline="b", **FEW),
    "classes": lambda: calibrant.compare(Y3, {"a": P3, "b": P3**0.5 / (P3**0.5).sum(1)[:, None]}, **FEW),
    "classwise": lambda: calibrant.compare(
        Y3, {"a": P3, "b": P3**0.5 / (P3**0.5).sum(1)[:, None]}, notion="classwise", **FEW
    ),
    "canonical": lambda: calibrant.compare(
        Y3, {"a": P3, "b": P3**0.5 / (P3**0.5).sum(1)[:, None]}, notion="canonical", **FEW
    ),
    "estimator": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, estimator="uniform:15", **FEW),
    "answers": lambda: calibrant.compare(
        {"a": CORRECT, "b": CORRECT[::-1]},
        {"a": CONFIDENCE, "b": CONFIDENCE},
        notion="correctness",
        cluster={"a": np.arange(600) // 3, "b": np.arange(600) // 2},
        **FEW,
    ),
    "sketches": lambda: calibrant.compare({"a": sketch(), "b": sketch("ties")}, **FEW),
    "page": lambda: calibrant.compare(Y, {"a": P, "b": OTHER}, **FEW).to_html(),
    "calibrators": lambda: calibrant.compare_calibrators(P, Y),
    "calibrators named": lambda: calibrant.compare_calibrators(P, Y, methods=["beta", "isotonic"], cv=3),
    "calibrators clusters": lambda: calibrant.compare_calibrators(P, Y, methods=["beta"], cluster=CLUSTER),
    "calibrators weights": lambda: calibrant.compare_calibrators(
        P, Y, methods=["beta"], sample_weight=WEIGHT
    ),
    "calibrators classes": lambda: calibrant.compare_calibrators(P3, Y3, methods=["temperature", "vector"]),
    "audit": lambda: calibrant.audit(Y, P, {"group": GROUP, "age": AGE}, **FEW),
    "audit clusters": lambda: calibrant.audit(Y, P, {"group": GROUP, "age": AGE}, cluster=CLUSTER, **FEW),
    "audit weights": lambda: calibrant.audit(Y, P, {"group": GROUP}, sample_weight=WEIGHT, **FEW),
    "audit confidence": lambda: calibrant.audit(Y3, P3, {"group": GROUP[:500]}, depth=1, **FEW),
    "audit page": lambda: calibrant.audit(Y, P, {"group": GROUP, "age": AGE}, **FEW).to_html(),
}
ONE_SCORE = (
    *("auto", "identity", "intercept", "temperature", "sigmoid", "logistic", "beta", "quadratic", "spline"),
    *("isotonic", "isotonic-safe", "venn-abers", "histogram", "density"),
)
MAPS = {
    **{
        f"binary {method}": lambda method=method: calibrant.Calibrator(method).fit(P, Y).predict_proba(AT)
        for method in ONE_SCORE
    },
    **{
        f"classes {method}": lambda method=method: (
            calibrant.Calibrator(method).fit(P3, Y3).predict_proba(P3[:50])
        )
        for method in ("auto", "temperature", "vector", "matrix")
    },
    **{
        f"SQL {method}": lambda method=method: calibrant.Calibrator(method).fit(P, Y).to_sql("score")
        for method in ("auto", "beta", "isotonic", "venn-abers")
    },
    **{
        f"Python {method}": lambda method=method: calibrant.Calibrator(method).fit(P, Y).to_python()
        for method in ("auto", "spline", "histogram")
    },
    **{
        f"notion {notion}": lambda notion=notion: (
            calibrant.Calibrator(notion=notion).fit(P3, Y3).predict_proba(P3[:50])
        )
        for notion in ("classwise", "confidence")
    },
    "names": lambda: calibrant.calibrator_names(),
    "printed": lambda: [
        str(calibrant.Calibrator(method).fit(P, Y)) for method in ("auto", "beta", "isotonic")
    ],
    "interval": lambda: calibrant.Calibrator().fit(P, Y).predict_interval(AT),
    "interval clusters": lambda: calibrant.Calibrator().fit(P, Y, cluster=CLUSTER).predict_interval(AT, 0.9),
    "interval classes": lambda: calibrant.Calibrator().fit(P3, Y3).predict_interval(P3[:20]),
    "pair": lambda: calibrant.Calibrator("venn-abers").fit(P, Y).predict_pair(AT),
    "weights": lambda: calibrant.Calibrator().fit(P, Y, WEIGHT).predict_proba(AT),
    "counts": lambda: calibrant.Calibrator().fit(P, Y, counts=COUNT).predict_proba(AT),
    "ties": lambda: calibrant.Calibrator().fit(TIED, Y).predict_proba(AT),
    "monotone": lambda: calibrant.Calibrator(monotone=True).fit(P, Y).predict_proba(AT),
    "log-odds": lambda: calibrant.Calibrator(from_logits=True).fit(LOGIT, Y).predict_proba([-2.0, 0, 2]),
    "logits": lambda: calibrant.Calibrator(from_logits=True).fit(LOGITS3, Y3).predict_proba(LOGITS3[:20]),
    "sketch": lambda: sketch().calibrator().predict_proba(AT),
    "sketch classwise": lambda: sketch("classwise").calibrator().predict_proba(P3[:20]),
    "saved": lambda: calibrant.Calibrator.from_json(
        calibrant.Calibrator("beta").fit(P, Y).to_json()
    ).predict_proba(AT),
    "prior shift known": lambda: calibrant.PriorShift(0.5, 0.1).predict_proba(AT),
    "prior shift estimated": lambda: shifted(train=0.6).target,
    "prior shift interval": lambda: shifted(train=0.6).predict_interval(AT),
    "prior shift sampling": lambda: calibrant.PriorShift(sampling=0.2).predict_proba(AT),
    "prior shift source": lambda: calibrant.PriorShift().fit(P**1.2, source=(P, Y)).predict_proba(AT),
    "prior shift SQL": lambda: calibrant.PriorShift(0.5, 0.1).to_sql("score"),
}
DECISIONS = {
    **{
        f"regret {name}": lambda rows=rows: calibrant.regret(**rows, cost=(1, 9))
        for name, rows in FORMS.items()
        if name not in ("lists", "float32")
    },
    "regret threshold": lambda: calibrant.regret(Y, P, 0.2),
    "regret matrix": lambda: calibrant.regret(Y, P, {"no": [0, 5], "yes": [1, 0], "ask": [0.3, 0.3]}),
    "regret classes": lambda: calibrant.regret(Y3, P3, 1 - np.eye(3)),
    "regret classes weights": lambda: calibrant.regret(Y3, P3, 1 - np.eye(3), sample_weight=WEIGHT3),
    "regret sketch": lambda: sketch().regret((1, 9)),
    "regret curve": lambda: calibrant.regret_curve(Y, P),
    "regret curve other": lambda: calibrant.regret_curve(Y, P, other=OTHER, thresholds=AT),
    "regret curve clusters": lambda: calibrant.regret_curve(Y, P, cluster=CLUSTER, thresholds=AT),
    "regret curve sketch": lambda: sketch().regret_curve(thresholds=AT),
    "net benefit": lambda: calibrant.net_benefit(Y, P),
    "net benefit simultaneous": lambda: calibrant.net_benefit(Y, P, AT, simultaneous=True),
    "net benefit weights": lambda: calibrant.net_benefit(Y, P, AT, sample_weight=WEIGHT),
    "net benefit rare": lambda: calibrant.net_benefit(Y_RARE, RARE, [0.01, 0.05]),
    "best threshold": lambda: calibrant.best_threshold(Y, P, (1, 9)),
    "best threshold clusters": lambda: calibrant.best_threshold(Y, P, (1, 9), cluster=CLUSTER),
    "best threshold sketch": lambda: sketch().best_threshold((1, 9)),
    "risk coverage": lambda: calibrant.risk_coverage(Y, P),
    "risk coverage classes": lambda: calibrant.risk_coverage(Y3, P3),
    "risk coverage top:2": lambda: calibrant.risk_coverage(Y10, P10, notion="top:2"),
    "risk coverage correctness": lambda: calibrant.risk_coverage(CORRECT, CONFIDENCE, notion="correctness"),
    "risk coverage clusters": lambda: calibrant.risk_coverage(Y, P, cluster=CLUSTER),
    "risk coverage weights": lambda: calibrant.risk_coverage(Y3, P3, sample_weight=WEIGHT3),
    "risk coverage sketch": lambda: sketch("confidence").risk_coverage(),
    "risk coverage at": lambda: [
        calibrant.risk_coverage(Y3, P3).accuracy_at(0.3),
        calibrant.risk_coverage(Y3, P3).coverage_at(0.8),
    ],
}
DATA = {
    **{f"sketch {kind}": lambda kind=kind: sketch(kind) for kind in SKETCHES},
    **{
        f"sketch file {kind}": lambda kind=kind: calibrant.Sketch.load(sketch_file(kind)) for kind in SKETCHES
    },
    **{
        f"file {suffix}": lambda suffix=suffix: calibrant.Sketch.from_files(
            file(f"binary.{suffix}"), label="label", scores="score"
        )
        for suffix in ("csv", "tsv", "jsonl", "json", "parquet", "arrow")
    },
    **{
        f"file classes {suffix}": lambda suffix=suffix: calibrant.Sketch.from_files(
            file(f"classes.{suffix}", "classes")
        )
        for suffix in ("csv", "parquet")
    },
    "file npz": lambda: calibrant.Sketch.from_files(file("numbers.npz", "numbers")),
    "file weights": lambda: calibrant.Sketch.from_files(
        file("binary.csv"), label="label", scores="score", sample_weight="weight"
    ),
    "file counts": lambda: calibrant.Sketch.from_files(
        file("binary.parquet"), label="label", scores="score", counts="n"
    ),
    "file batches": lambda: calibrant.Sketch.from_files(
        file("binary.parquet"), label="label", scores="score", batch_rows=64
    ),
    "file groups": lambda: calibrant.Sketch.from_files_by_group(
        file("binary.csv"), groups="group", label="label", scores="score"
    ),
    **{
        f"frame {library}": lambda library=library: calibrant.Sketch.from_frame(
            frame(library), label="label", scores="score"
        )
        for library in FRAMES
    },
    **{
        f"frame classes {library}": lambda library=library: calibrant.Sketch.from_frame(
            frame(library, "classes"), label="label", scores="p_*", notion="classwise"
        )
        for library in FRAMES
    },
    "frame weights": lambda: calibrant.Sketch.from_frame(
        frame("polars"), label="label", scores="score", sample_weight="weight"
    ),
    "frame groups": lambda: calibrant.Sketch.from_frame_by_group(
        frame("duckdb"), groups="group", label="label", scores="score"
    ),
    **{
        f"frame argument {library}": lambda library=library: calibrant.ece(
            frame(library, "classes")["label"], frame(library, "classes")[["p_cat", "p_dog", "p_emu"]]
        )
        for library in ("pandas", "polars")
    },
    "answer log lm-eval": lambda: calibrant.read_answers(
        text_file("org__model/samples_arc.jsonl", LM_EVAL), "lm-eval"
    ),
}
MONITOR = {
    "rows": lambda: monitor(),
    "history": lambda: monitor().history,
    "tolerance": lambda: monitor(tolerance=0.3, alpha=0.01),
    "reference": lambda: monitor(reference=3),
    "page": lambda: monitor().to_html(),
    "confidence": lambda: calibrant.Monitor("confidence").update(Y3, P3, at="2026-05-01"),
    "weights and groups": lambda: calibrant.Monitor().update(
        Y, P, at="2026-05-01", groups=GROUP, sample_weight=WEIGHT
    ),
    "clusters": lambda: calibrant.Monitor().update(Y, P, at="2026-05-01", cluster=CLUSTER),
    "sketch": lambda: calibrant.Monitor().update(sketch(), at="2026-05-01"),
    "saved": lambda: [
        (watch := monitor()).save(out("watch.json")),
        calibrant.Monitor.load(out("watch.json")).update(Y, P, at="2026-05-20"),
        watch.e_value,
    ],
}
ADAPTERS = {
    "torch classes": lambda: metric(P3, Y3),
    "torch logits": lambda: metric(LOGITS3, Y3, from_logits=True),
    "torch classwise": lambda: metric(P3, Y3, notion="classwise", num_classes=3),
    "torch binary": lambda: metric(P, Y),
    "torch weights": lambda: metric(P3, Y3, WEIGHT3, weighted=True),
    "torch uniform": lambda: metric(P3, Y3, estimator="uniform:15"),
    "torch dense": lambda: metric(P10[:, :, None].repeat(3, 2), Y10[:, None].repeat(3, 1)),
    "torch ignored": lambda: metric(P3, np.where(np.arange(500) % 9 == 0, -1, Y3), ignore_index=-1),
    "torch tokens": lambda: tokens("confidence"),
    "torch module binary": lambda: module(calibrant.Calibrator().fit(P, Y), AT),
    "torch module classes": lambda: module(calibrant.Calibrator("matrix").fit(P3, Y3), P3[:20]),
    "torch module logits": lambda: module(
        calibrant.Calibrator("temperature", from_logits=True).fit(LOGITS3, Y3), LOGITS3[:20]
    ),
    "torch temperature": lambda: temperature(),
    "sklearn model": lambda: calibrated_model(),
    "sklearn ensemble": lambda: calibrated_model(method="beta", ensemble=True, cv=3),
    "sklearn scorer": lambda: scorer(),
    "sklearn scorer uniform": lambda: scorer(estimator="uniform:15"),
    "sklearn display": lambda: figure(display),
}
PUBLISHED = {
    **{
        f"{notion} {spec}": lambda notion=notion, spec=spec: calibrant.published.ece(
            Y3, P3, notion=notion, estimator=spec
        )
        for notion in ("confidence", "classwise")
        for spec in ("l:10", "ac:sqrt", "d:silverman")
    },
    "hendrycks": lambda: calibrant.published.hendrycks_rms(CORRECT, CONFIDENCE),
    "silverman": lambda: calibrant.published.silverman(P),
    "exact error": lambda: calibrant.experiment.exact_error(P, P**1.2),
    "mixture": lambda: calibrant.experiment.Mixture(3, 2, seed=0).sample(50, np.random.default_rng(0)),
    "experiment": lambda: [
        result.estimates for result in calibrant.experiment.Store(Path(experiment())).results()
    ],
    "experiment table": lambda: command("experiment", "table", experiment()),
    "experiment claims": lambda: command("experiment", "claims", experiment()),
    "experiment leaderboard": lambda: command("experiment", "leaderboard", experiment(), "--no-exact", "-q"),
}
PLOTS = {
    "curve": lambda: figure(calibrant.reliability_curve(Y, P).plot),
    "curve log-odds": lambda: figure(lambda: calibrant.plot.curve(assessment(), scale="log-odds")),
    "diagram": lambda: figure(calibrant.reliability_diagram(Y, P).plot),
    "histogram": lambda: figure(calibrant.score_histogram(Y, P).plot),
    "overlay": lambda: figure(lambda: calibrant.plot.overlay(assessment())),
    "assessment": lambda: figure(assessment().plot),
    "estimators": lambda: figure(lambda: calibrant.plot.estimators(assessment())),
    "groups": lambda: figure(lambda: calibrant.plot.groups(assessment("classes"))),
    "local error": lambda: figure(lambda: calibrant.plot.local_error(assessment())),
    "models": lambda: figure(
        lambda: calibrant.plot.models(
            {"a": calibrant.reliability_curve(Y, P), "b": calibrant.reliability_curve(Y, OTHER)}
        )
    ),
    "compare": lambda: figure(calibrant.compare(Y, {"a": P, "b": OTHER}, **FEW).plot),
    "regret": lambda: figure(calibrant.regret_curve(Y, P).plot),
    "best threshold": lambda: figure(calibrant.best_threshold(Y, P, (1, 9)).plot),
    "risk coverage": lambda: figure(calibrant.risk_coverage(Y3, P3).plot),
    "segments": lambda: figure(calibrant.audit(Y, P, {"group": GROUP, "age": AGE}, **FEW).plot),
    "monitor": lambda: figure(monitor().plot),
    "table": lambda: figure(calibrant.estimate_by(Y, P, GROUP, **FEW).plot),
    "probability transfer": lambda: figure(
        lambda: calibrant.plot.probability_transfer(assessment("canonical"))
    ),
    "small multiples": lambda: figure(lambda: calibrant.plot.small_multiples(assessment("classes"))),
}
#: Options of the commands that find the columns of `binary.csv`.
COLUMNS = ("--label", "label", "--scores", "score")
COMMANDS = {
    "help": lambda: command("--help"),
    "ece csv": lambda: command("ece", file("binary.csv"), *COLUMNS),
    "ece json": lambda: command("ece", file("binary.parquet"), *COLUMNS, "--json"),
    "ece standard input": lambda: command("ece", "-", reads=Path(file("binary.csv")).read_text()),
    "ece weights": lambda: command("ece", file("binary.csv"), *COLUMNS, "--sample-weight", "weight"),
    "ece counts": lambda: command("ece", file("binary.csv"), *COLUMNS, "--counts", "n"),
    "ece clusters": lambda: command("ece", file("binary.csv"), *COLUMNS, "--cluster", "patient"),
    "ece classes": lambda: command("ece", file("classes.csv", "classes")),
    "ece classwise": lambda: command("ece", file("classes.csv", "classes"), "--notion", "classwise"),
    "ece canonical": lambda: command("ece", file("classes.csv", "classes"), "--notion", "canonical"),
    "ece answers": lambda: command(
        "ece", file("answers.csv", "answers"), "--correct", "correct", "--confidence", "confidence"
    ),
    "ece by": lambda: command("estimate", file("binary.csv"), *COLUMNS, "--by", "group,age", "--markdown"),
    "ece by LaTeX": lambda: command("estimate", file("binary.csv"), *COLUMNS, "--by", "group", "--latex"),
    "ece uniform": lambda: command("ece", file("binary.csv"), *COLUMNS, "--estimator", "uniform:15"),
    "ece sketch": lambda: command("ece", sketch_file()),
    "ece log": lambda: command(
        "ece", text_file("org__model/samples_arc.jsonl", LM_EVAL), "--from", "lm-eval"
    ),
    "curve": lambda: command("curve", file("binary.csv"), *COLUMNS),
    "curve at": lambda: command("curve", file("binary.csv"), *COLUMNS, "--at", "0.3,0.9", "--json"),
    "curve csv": lambda: command("curve", file("classes.csv", "classes"), "--csv"),
    "curve density": lambda: command("curve", file("binary.csv"), *COLUMNS, "--method", "density"),
    "compare files": lambda: command("compare", file("binary.csv"), file("again.csv"), *COLUMNS),
    "compare models": lambda: command(
        "compare",
        file("binary.csv"),
        "--label",
        "label",
        "--model",
        "a=score",
        "--model",
        "b=other",
        "--json",
    ),
    "compare limit": lambda: command(
        "compare",
        file("binary.csv"),
        "--label",
        "label",
        "--model",
        "a=score",
        "--model",
        "b=other",
        "--max-worse",
        "0.01",
    ),
    "compare sketches": lambda: command("compare", sketch_file(), sketch_file("ties")),
    "compare page": lambda: command(
        "compare",
        file("binary.csv"),
        "--label",
        "label",
        "--model",
        "a=score",
        "--model",
        "b=other",
        "-o",
        out("models.html"),
        shows=[out("models.html")],
    ),
    "recommend": lambda: command("recommend", file("binary.csv"), *COLUMNS, "--estimator", "uniform:15"),
    "regret": lambda: command("regret", file("binary.csv"), *COLUMNS, "--cost", "1:9"),
    "regret curve": lambda: command("regret", file("binary.csv"), *COLUMNS, "--thresholds", "0.1,0.3"),
    "regret costs": lambda: command(
        "regret",
        file("classes.csv", "classes"),
        "--cost",
        text_file("costs.csv", "class,keep,sell\ncat,0,2\ndog,1,0\nemu,3,1\n"),
        "--json",
    ),
    "check pass": lambda: command("check", file("binary.csv"), *COLUMNS, "--max-ece", "0.3"),
    "check fail": lambda: command(
        "check", file("binary.csv"), "--label", "label", "--scores", "other", "--max-ece", "0.05"
    ),
    "check json": lambda: command("check", file("binary.csv"), *COLUMNS, "--max-ece", "0.05", "--json"),
    "check limits": lambda: command(
        "check",
        file("binary.csv"),
        *COLUMNS,
        "--max-regret",
        "0.1",
        "--cost",
        "1:9",
        "--max-oe",
        "1.3",
        "--max-excess-log-loss",
        "0.1",
    ),
    "check baseline": lambda: command(
        "check", file("binary.csv"), *COLUMNS, "--baseline", file("again.csv"), "--max-worse", "0.02"
    ),
    "check groups": lambda: command(
        "check", file("binary.csv"), *COLUMNS, "--groups", "group", "--max-ece", "0.2"
    ),
    "check files": lambda: command(
        "check",
        file("binary.csv"),
        *COLUMNS,
        "--max-ece",
        "0.2",
        "--junit",
        out("gate.xml"),
        "--markdown",
        out("gate.md"),
        shows=[out("gate.xml"), out("gate.md")],
    ),
    "audit": lambda: command("audit", file("binary.csv"), *COLUMNS, "--segments", "group,age"),
    "audit markdown": lambda: command(
        "audit", file("binary.csv"), *COLUMNS, "--segments", "group", "--markdown", "--max-gap", "0.3"
    ),
    "report": lambda: command(
        "report",
        file("binary.csv"),
        *COLUMNS,
        "--cost",
        "1:9",
        "--groups",
        "group",
        "-q",
        "-o",
        out("page.html"),
        "--json",
        out("page.json"),
        shows=[out("page.html"), out("page.json")],
    ),
    "report classes": lambda: command(
        "report", file("classes.csv", "classes"), "-q", "-o", out("classes.html"), shows=[out("classes.html")]
    ),
    "monitor": lambda: command(
        "monitor",
        file("binary.csv"),
        *COLUMNS,
        "--time",
        "day",
        "-o",
        out("watch.html"),
        shows=[out("watch.html")],
    ),
    "monitor groups": lambda: command(
        "monitor",
        file("binary.csv"),
        *COLUMNS,
        "--time",
        "day",
        "--groups",
        "group",
        "--json",
        "-o",
        out("groups.html"),
    ),
    "calibrate fit": lambda: command(
        "calibrate", "fit", file("binary.csv"), *COLUMNS, "-o", out("map.json"), shows=[out("map.json")]
    ),
    "calibrate apply": lambda: [
        command("calibrate", "fit", file("binary.csv"), *COLUMNS, "-o", out("used.json")),
        command(
            "calibrate",
            "apply",
            out("used.json"),
            file("binary.csv"),
            "--scores",
            "score",
            "--interval",
            "-o",
            out("applied.csv"),
            shows=[out("applied.csv")],
        ),
    ],
    "calibrate compare": lambda: command(
        "calibrate", "compare", file("binary.csv"), *COLUMNS, "--method", "beta", "--method", "auto"
    ),
    "sketch make": lambda: command("sketch", "make", file("binary.csv"), *COLUMNS, "-o", out("made.sketch")),
    "sketch merge": lambda: command(
        "sketch", "merge", sketch_file(), sketch_file("ties"), "-o", out("sum.sketch")
    ),
    "sketch show": lambda: command("sketch", "show", sketch_file(), sketch_file("classwise")),
    "demo help": lambda: command("demo", "--help"),
}
#: Input that is refused, for the messages.
REFUSED = {
    "score above one": lambda: calibrant.ece([0, 1, 1], [0.1, 0.5, 1.5]),
    "score missing": lambda: calibrant.ece([0, 1, 1], [0.1, np.nan, 0.5]),
    "label missing": lambda: calibrant.ece([0, np.nan, 1], [0.1, 0.4, 0.5]),
    "lengths": lambda: calibrant.ece([0, 1], [0.1, 0.5, 0.6]),
    "sum of a row": lambda: calibrant.ece([0, 1], [[0.1, 0.5], [0.5, 0.5]]),
    "labels": lambda: calibrant.ece([0, 1, 3], [0.1, 0.5, 0.6]),
    "empty": lambda: calibrant.ece([], []),
    "negative weight": lambda: calibrant.ece([0, 1], [0.1, 0.5], sample_weight=[1, -1]),
    "weights and counts": lambda: calibrant.ece([0, 1], [0.1, 0.5], sample_weight=[1, 1], counts=[1, 1]),
    "log-probabilities": lambda: calibrant.ece([0, 1, 1], [-0.1, -2.3, -0.01], notion="correctness"),
    "estimator": lambda: calibrant.ece(Y, P, estimator="unifrom:15"),
    "notion": lambda: calibrant.ece(Y, P, notion="classwize"),
    "norm": lambda: calibrant.estimate(Y, P, norm="max"),
    "method": lambda: calibrant.Calibrator("bta").fit(P, Y),
    "cost": lambda: calibrant.regret(Y, P, "1:x"),
    "not fitted": lambda: calibrant.Calibrator().predict_proba(P),
    "damaged sketch": lambda: calibrant.Sketch.load(text_file("damaged.sketch", "not a sketch")),
    "damaged file": lambda: command("ece", text_file("damaged.csv", "label,score\n0,0.1\n1,x\n")),
    "no such file": lambda: command("ece", out("nothing.csv")),
    "no such column": lambda: command("ece", file("binary.csv"), "--label", "nothing"),
    "no such command": lambda: command("eec", file("binary.csv")),
}

AREAS = {
    "ece": ERROR,
    "estimate": ESTIMATE,
    "curves": CURVES,
    "assess": ASSESS,
    "compare": COMPARE,
    "maps": MAPS,
    "decisions": DECISIONS,
    "data": DATA,
    "monitor": MONITOR,
    "adapters": ADAPTERS,
    "published": PUBLISHED,
    "plots": PLOTS,
    "commands": COMMANDS,
    "refused": REFUSED,
}
CALLS = {f"{area}: {name}": call for area, calls in AREAS.items() for name, call in calls.items()}
