"""The command that compares models on the same labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, EXITS, options, read_class_names
from calibrant.cli.output import Refused, check_outputs, tell, tell_json
from calibrant.cli.source import name_of, noting, read, refusing, settled, stem_of

if TYPE_CHECKING:
    from calibrant.data import Data


def _models(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Read models and their columns, as NAME=SPEC."""
    models: dict[str, tuple[str, ...]] = {}
    for text in value:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise click.BadParameter(f"{text!r} is not NAME=SPEC, such as new='p_new_*'")
        if name.strip() in models:
            raise click.BadParameter(f"{name.strip()!r} is given twice")
        models[name.strip()] = (spec.strip(),)
    return models


@click.command(epilog=EXITS)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--model",
    "models",
    callback=_models,
    multiple=True,
    metavar="NAME=SPEC",
    help="A model of the one FILE: its name and its columns of scores. To be repeated.",
)
@click.option(
    "--baseline", metavar="NAME", help="Model that the others are held against.  [default: the first]"
)
@options(*DATA, "class_names", "cluster", "notion", "estimator", "norm", "level", "seed", "n_resamples")
@options("json", "quiet")
def compare(
    files: tuple[str, ...],
    models: dict[str, tuple[str, ...]],
    baseline: str | None,
    estimator: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare the calibration of models on the same labels, row by row.

    Either several files with the same labels in the same order, or one file with the scores of
    several models, each named by --model.

    \b
    Examples:
      calibrant compare old.csv new.csv
      calibrant compare both.csv --model old='p_old_*' --model new='p_new_*'
      calibrant compare both.csv --model old=p_old --model new=p_new --baseline old --json
    """
    given = settled(given)
    if len(files) == 1 and len(models) < 2:
        raise click.UsageError(
            "one file needs --model NAME=SPEC at least twice; otherwise give several files"
        )
    if len(files) > 1 and models:
        raise click.UsageError("--model is for the models of one file")
    if models and given["scores"]:
        raise click.UsageError("--scores goes with several files; --model names the columns of each model")
    if files.count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    check_outputs(files, format=given["format"])
    if models:
        data = read(files[0], given, models=models)
    else:
        # The weights and the clusters of the first file are those of all.
        later = given | {"sample_weight": None, "counts": None, "cluster": None}
        data = {
            name: read(file, later if k else given)[""]
            for k, (name, file) in enumerate(zip(_names(files), files, strict=True))
        }
    first = next(iter(data.values()))
    scores, labels, positive = _aligned(data)
    assert first.y_true is not None
    with refusing(columns=[str(label) for label in labels or ()]), noting():
        import calibrant

        comparison = calibrant.compare(
            first.y_true,
            scores,
            baseline=baseline,
            notion=given["notion"],
            estimator=estimator,
            norm=given["norm"],
            level=given["level"],
            rng=given["seed"],
            n_resamples=given["n_resamples"],
            sample_weight=first.sample_weight,
            counts=first.counts,
            cluster=first.cluster,
            labels=labels,
            pos_label=positive,
            class_names=read_class_names(given["class_names"]),
        )
    if as_json:
        value = next(iter(comparison.differences.values())).value
        about = {"sources": [name_of(file) for file in files], "rows": len(first.y_prob)}
        tell_json({"value": value} | comparison.to_dict() | about)
    else:
        tell(comparison)


def _names(files: tuple[str, ...]) -> list[str]:
    """Return the stems of the files, made distinct.

    >>> _names(("a/p.csv", "b/p.csv", "q.csv.gz", "-"))
    ['p', 'p-2', 'q', 'stdin']
    """
    names: list[str] = []
    for file in files:
        stem = name = stem_of(file)
        k = 2
        while name in names:
            name, k = f"{stem}-{k}", k + 1
        names.append(name)
    return names


def _aligned(data: dict[str, Data]) -> tuple[dict[str, Any], tuple[Any, ...] | None, Any]:
    """Return the scores of every model with their columns in one order, and the class asked about."""
    first_name, first = next(iter(data.items()))
    scores: dict[str, Any] = {}
    order: tuple[Any, ...] | None = None
    for name, model in data.items():
        _check_same_labels((first_name, first), (name, model))
        if model.pos_label != first.pos_label:
            raise Refused(
                f"all models must be about the same class, got {first.pos_label!r} for {first_name!r} "
                f"and {model.pos_label!r} for {name!r}; give --pos-label"
            )
        scores[name] = model.y_prob
        if model.y_prob.ndim == 1:
            continue
        model_labels = model.labels
        order = model_labels if order is None else order
        if model_labels is not None and order is not None and set(model_labels) == set(order):
            scores[name] = model.y_prob[:, [model_labels.index(label) for label in order]]
        elif model_labels != order:
            from calibrant.inputs import show

            both = f"{show(*order or ())} and, for {name!r}, {show(*model_labels or ())}"
            raise Refused(f"models must have the same classes, got {both}")
    return scores, order, first.pos_label


def _check_same_labels(first: tuple[str, Data], other: tuple[str, Data]) -> None:
    a, b = first[1].y_true, other[1].y_true
    assert a is not None
    assert b is not None
    if len(a) != len(b):
        raise Refused(
            f"models must have the same rows, got {len(a)} of {first[0]!r} and {len(b)} of {other[0]!r}"
        )
    differ = [k for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)) if x != y]
    if differ:
        row = differ[0]
        raise Refused(
            f"models must have the same labels row by row, got {a.tolist()[row]!r} of {first[0]!r} "
            f"and {b.tolist()[row]!r} of {other[0]!r} at row {row + 1}; they differ in {len(differ)} rows"
        )
