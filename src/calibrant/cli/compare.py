"""The command that compares models, on the same rows or on different ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.options import DATA, PAGES, names_file, options, output, read_class_names
from calibrant.cli.output import (
    PICTURES,
    Refused,
    check_drawable,
    check_outputs,
    ending,
    save,
    tell,
    tell_json,
    tell_verdict,
)
from calibrant.cli.source import (
    name_of,
    noting,
    read,
    refusing,
    settled,
    sketches_of,
    stem_of,
    sums_of,
    tell_cautions,
)
from calibrant.inputs.wording import counted, with_interval

if TYPE_CHECKING:
    from calibrant import Comparison
    from calibrant.data import Data

# The first of these that holds for any model is the verdict.
WORSE = {"fail": "is worse than", "inconclusive": "may be worse than", "pass": "is not worse than"}
OTHER_ROWS = "files of other rows need --unpaired"


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


@click.command(
    epilog="Exit codes: 0 done, 2 invalid input or usage; with --max-worse 0 all differences from the "
    "baseline are within the limit, 1 one is above it, 3 inconclusive."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--model",
    "models",
    callback=_models,
    multiple=True,
    metavar="NAME=SPEC",
    help="Name of a model in the one FILE, and its columns of scores. May be repeated.",
)
@click.option(
    "--baseline", metavar="NAME", help="Model that the others are compared with.  [default: the first]"
)
@click.option("--unpaired", is_flag=True, help="The files are independent samples with different rows.")
@click.option(
    "--max-worse",
    type=float,
    metavar="LIMIT",
    help="Largest allowed difference from the error of the baseline; sets the exit code.",
)
@options(*DATA, "class_names", "cluster", "notion", "estimator", "norm", "level", "seed", "n_resamples")
@options("json")
@output(
    "-o",
    "--out",
    suffixes=(*PICTURES, *PAGES[:2]),
    what="Write a picture (png, svg or pdf) or a page (html).",
)
@options("quiet")
def compare(
    files: tuple[str, ...],
    models: dict[str, tuple[str, ...]],
    baseline: str | None,
    unpaired: bool,
    max_worse: float | None,
    estimator: str,
    as_json: bool,
    out: Path | None,
    **given: Any,
) -> None:
    """Compare the calibration of models, or of one model on several samples.

    The input is several files with the same labels in the same order, or one file with the scores of
    several models, each named by --model. Use --unpaired for files with different rows; sketches are
    always unpaired. With --correct and --confidence each file has its own answers. They are paired by
    row, or by --cluster if each file has that column.

    \b
    Examples:
      calibrant compare old.csv new.csv
      calibrant compare last.sketch this.sketch --max-worse 0.02
      calibrant compare *.csv --correct right --confidence sure --cluster question -o models.html
    """
    from calibrant.assessment.gates import CODES

    given = settled(given)
    _check_usage(files, models, given, unpaired, max_worse)
    check_outputs([*files, names_file(given["class_names"])], out, format=given["format"])
    check_drawable(out)
    if any(map(sketches_of, files)):
        arguments, about = _sums(files, given)
    else:
        arguments, about = _rows(files, models, given, unpaired=unpaired)
    labels = arguments.get("labels")
    with refusing(columns=[str(label) for label in labels or ()]), noting():
        import calibrant

        comparison = calibrant.compare(
            baseline=baseline,
            estimator=estimator,
            norm=given["norm"],
            level=given["level"],
            rng=given["seed"],
            n_resamples=given["n_resamples"],
            class_names=read_class_names(given["class_names"]),
            paired=False if unpaired else None,
            **arguments,
        )
    save(out, comparison, 7.5, 0.25 * len(comparison.estimates) + 1)
    status, sentence = ("pass", "") if max_worse is None else _verdict(comparison, max_worse)
    about = {"sources": [name_of(file) for file in files]} | about
    with ending(CODES[status]):
        if as_json:
            verdict = {"status": status, "exit_code": CODES[status], "limit": max_worse} if sentence else {}
            value = next(iter(comparison.differences.values())).value
            tell_json(
                {"value": value} | verdict | comparison.to_dict() | {"pairing": comparison.pairing} | about
            )
        else:
            if sentence:
                tell_verdict(status, sentence)
            tell(comparison)


def _check_usage(
    files: tuple[str, ...],
    models: dict[str, tuple[str, ...]],
    given: dict[str, Any],
    unpaired: bool,
    max_worse: float | None,
) -> None:
    """Refuse options that contradict each other."""
    if len(files) == 1 and len(models) < 2:
        raise click.UsageError(
            "one file needs --model NAME=SPEC at least twice; otherwise give several files"
        )
    if len(files) > 1 and models:
        raise click.UsageError("--model is for the models of one file")
    if models and given["log"] is not None:
        raise click.UsageError("--model names columns, which logs do not have; give a log for each model")
    if models and given["scores"]:
        raise click.UsageError("--scores goes with several files; --model names the columns of each model")
    if models and unpaired:
        raise click.UsageError("--unpaired is for several files; the models of one file share its rows")
    if files.count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    if max_worse is not None and not 0 <= max_worse < 2:
        context = click.get_current_context()
        reason = f"{max_worse:g} does not lie in [0, 2)"
        raise click.BadParameter(reason, ctx=context, param_hint="'--max-worse'")


def _verdict(comparison: Comparison, limit: float) -> tuple[str, str]:
    """Return whether a model is worse than the baseline by more than a limit, and a sentence about it."""
    from calibrant.assessment.gates import status_of

    by_status: dict[str, list[str]] = {}
    for name, each in comparison.differences.items():
        status = status_of(each.low, each.high, limit)
        by_status.setdefault(status, []).append(
            f"{name} {WORSE[status]} {comparison.baseline} by more than {limit:g}: "
            f"{with_interval(each.value, each.low, each.high, each.level, '+')}"
        )
    overall = next(status for status in WORSE if status in by_status)
    return overall, "; ".join(by_status[overall])


def _sums(files: tuple[str, ...], given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sketches of files, of which some may hold rows, and their numbers of rows."""
    if given["cluster"] is not None:
        raise Refused("a sketch has no clusters; leave out --cluster, or give files of rows")
    sources = dict(zip(_names(files), sums_of(files, given), strict=True))
    about = {
        key: {name: source.about[key] for name, source in sources.items()} for key in ("rows", "dropped")
    }
    return {"y_true": {name: source.rows[0] for name, source in sources.items()}}, about


def _rows(
    files: tuple[str, ...], models: dict[str, tuple[str, ...]], given: dict[str, Any], *, unpaired: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `calibrant.compare` takes of rows, and their number, by model if each has its own."""
    separate = unpaired or (given["correct"] is not None and not models)
    if models:
        data = read(files[0], given, models=models)
    else:
        # The weights and the clusters of the first file are those of all, unless each has its own rows.
        later = given if separate else given | {"sample_weight": None, "counts": None, "cluster": None}
        data = {
            name: read(file, later if k else given)[""]
            for k, (name, file) in enumerate(zip(_names(files), files, strict=True))
        }
    scores, labels, positive = _aligned(data, same_rows=not separate)
    first = next(iter(data.values()))
    arguments = {"models": scores, "notion": given["notion"], "labels": labels, "pos_label": positive}
    for argument in ("y_true", "sample_weight", "counts", "cluster"):
        values = {name: getattr(each, argument) for name, each in data.items()}
        is_given = getattr(first, argument) is not None
        arguments[argument] = values if separate and is_given else getattr(first, argument)
    if any(each.dropped for each in data.values()):
        arguments["missing"] = "drop"
    left_out = {each.left_out: name for name, each in data.items() if each.left_out}
    tell_cautions([f"{name}: {text}" if separate else text for text, name in left_out.items()])
    about = {
        argument: {name: getattr(each, argument) for name, each in data.items()}
        for argument in ("rows", "dropped")
    }
    return arguments, about if separate else {"rows": first.rows, "dropped": first.dropped}


def _names(files: tuple[str, ...]) -> list[str]:
    """Return the stems of the files, made distinct.

    >>> _names(("a/p.csv", "b/p.csv", "q.csv.gz", "-"))
    ['p', 'p-2', 'q', 'stdin']
    """
    names: list[str] = []
    for file in files:
        stem = name = stem_of(file).removesuffix(".sketch")
        k = 2
        while name in names:
            name, k = f"{stem}-{k}", k + 1
        names.append(name)
    return names


def _aligned(data: dict[str, Data], *, same_rows: bool) -> tuple[dict[str, Any], tuple[Any, ...] | None, Any]:
    """Return the scores of every model with their columns in one order, and the selected class."""
    first_name, first = next(iter(data.items()))
    scores: dict[str, Any] = {}
    order: tuple[Any, ...] | None = None
    for name, model in data.items():
        if same_rows:
            _check_same_labels((first_name, first), (name, model))
        if model.pos_label != first.pos_label:
            raise Refused(
                f"all models must be about the same class, got {first.pos_label!r} for {first_name!r} "
                f"and {model.pos_label!r} for {name!r}; give --pos-label"
            )
        scores[name] = model.y_prob
        if model.y_prob.ndim != first.y_prob.ndim:
            columns = " and ".join(
                f"{counted(each.y_prob[:1].size, 'column')} for {called!r}"
                for called, each in ((first_name, first), (name, model))
            )
            raise Refused(f"models must all have scores of one class, or of all classes, got {columns}")
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
            f"models must have the same rows, got {len(a)} of {first[0]!r} and {len(b)} of {other[0]!r}; "
            f"{OTHER_ROWS}"
        )
    differ = [k for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)) if x != y]
    if differ:
        row = differ[0]
        raise Refused(
            f"models must have the same labels row by row, got {a.tolist()[row]!r} of {first[0]!r} "
            f"and {b.tolist()[row]!r} of {other[0]!r} at row {row + 1}; they differ in {len(differ)} rows; "
            f"{OTHER_ROWS}"
        )
