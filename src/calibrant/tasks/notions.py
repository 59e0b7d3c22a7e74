"""Types of calibration ("notions"): which score is compared with which outcome.

A notion defines which one-dimensional problems (a score in [0, 1] and an outcome in {0, 1}) are made from
predictions, how the errors of these problems are combined, in which range scores can lie, and the words for
results. Other packages use these properties and do not compare the names of notions. See docs/calibration.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import InputError, Predictions, check_choice
from calibrant.score_data import OneHot

Array = NDArray[Any]

# Names of the notions, as users write them.
NOTIONS = (
    "binary",
    "classwise",
    "confidence",
    "top:k",
    "top-label",
    "multilabel",
    "correctness",
    "canonical",
)
# Other names that are accepted.
ALIASES = {"class": "binary", "multiclass": "canonical"}
# Number of scores (rows times classes) in a block of classes: enough columns for efficient reads, within
# little memory.
BLOCK = 1 << 24


class ClassRelation(Enum):
    """How the problems of the classes depend on each other."""

    EXCLUSIVE = "a row has one label, and takes part in the problem of every class"
    FREE = "a row can have any number of labels"
    SEPARATE = "a row takes part in the problem of one class"


class ScoresAndOutcomes(NamedTuple):
    """Scores and outcomes of one problem, or of a block of problems along the first axis.

    Attributes
    ----------
    score : array ([classes,] rows)
        Scores in [0, 1].
    outcome : array of bool or OneHot
        Outcomes, of the same shape.
    support : tuple of float
        Smallest and largest score that are possible.
    rows : array of bool or None
        Which of all rows take part; None if all do.
    """

    score: Array
    outcome: Array | OneHot
    support: tuple[float, float]
    rows: Array | None = None


@dataclass(frozen=True)
class NotionWording:
    """Words for the results of a notion.

    Attributes
    ----------
    title : str
        Name of the notion in a sentence.
    score, frequency : str
        What is compared, as on the axes of a plot.
    scored : str
        What has a score: "predictions with confidence", after which the score follows.
    positive, negative : str
        Rows with and without the outcome.
    too_high, too_low : str
        Direction of the gap, after "of it".
    event : str
        Description of the outcome, for notions without a positive class.
    about_confidence : bool
        Whether scores are confidences, so that scores that are too high are called overconfident.
    """

    title: str
    score: str = "score"
    frequency: str = "frequency"
    scored: str = "rows scored"
    positive: str = "of the class"
    negative: str = "of another class"
    too_high: str = "by scores too high"
    too_low: str = "by scores too low"
    event: str = ""
    about_confidence: bool = False


_CONFIDENCE = NotionWording(
    title="confidence",
    score="confidence",
    frequency="accuracy",
    scored="predictions with confidence",
    positive="right",
    negative="wrong",
    too_high="overconfident",
    too_low="underconfident",
    event="prediction is right",
    about_confidence=True,
)


@dataclass(frozen=True)
class Notion(ABC):
    """Base class of all notions.

    Attributes
    ----------
    name : str
        Name, as users write it.
    classwise : bool
        Whether there is one problem for each class.
    is_binary : bool
        Whether the score of one class is evaluated.
    tells_accuracy : bool
        Whether mean confidence is compared with accuracy.
    correctness_pairs : bool
        Whether the data are pairs (was the prediction correct, confidence), which no other notion can use.
    canonical : bool
        Whether whole score vectors are compared, so that there are no one-dimensional problems.
    classes : ClassRelation
        How the problems of the classes depend on each other.
    norms : tuple of str
        Norms in which an estimate is available.
    """

    name: str
    classwise: ClassVar[bool] = False
    is_binary: ClassVar[bool] = False
    tells_accuracy: ClassVar[bool] = False
    correctness_pairs: ClassVar[bool] = False
    canonical: ClassVar[bool] = False
    classes: ClassVar[ClassRelation] = ClassRelation.EXCLUSIVE
    norms: ClassVar[tuple[str, ...]] = ("l1", "l2")

    @property
    @abstractmethod
    def reading(self) -> NotionWording:
        """Words for the results."""

    @property
    def top(self) -> int:
        """Number of largest scores of a row that are compared; 0 if scores of classes are."""
        return 0

    @abstractmethod
    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Iterate over the one-dimensional problems of validated predictions."""

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:  # noqa: B027 - optional
        """Raise an error for predictions to which this notion does not apply.

        Parameters
        ----------
        vector : bool
            Whether the scores are one-dimensional.
        labels : sequence
            Class of each column.
        positive : int or None
            Column of the positive class.
        """

    def support(self, n_classes: int) -> tuple[float, float]:
        """Return the smallest and largest score that are possible."""
        return (self.top / n_classes, 1.0) if self.top else (0.0, 1.0)

    def size(self, n_classes: int) -> int:
        """Return the number of one-dimensional problems."""
        return n_classes if self.classwise else 1

    @property
    def needs_rows(self) -> bool:
        """Whether sums over rows are not enough."""
        return self.canonical or self.classes is ClassRelation.SEPARATE

    def problem_labels(self, data: Predictions) -> tuple[Any, ...]:
        """Return the classes that have a problem."""
        return data.labels

    def max_error(self, norm: str) -> float:
        """Return the largest possible error."""
        return 1.0

    def label(self, labels: Sequence[Any], positive: int | None) -> Any:
        """Return the positive class, for notions that evaluate one class; None otherwise."""
        return labels[positive] if self.is_binary and positive is not None else None

    def combine(self, errors: Array, norm: str, share: Array | None = None) -> float:
        """Combine the errors of all problems: mean (l1), root mean square (l2) or maximum (max).

        >>> get_notion("classwise").combine(np.array([0.1, 0.3]), "l1")
        0.2
        """
        return float(errors.item() if errors.size == 1 else combined(errors, norm, share))

    def __str__(self) -> str:
        return self.name


def combined(errors: Array, norm: str, share: Array | None = None) -> Array:
    """Combine errors over the classes (last axis): mean (l1), root mean square (l2) or maximum (max).

    The classes have equal shares in the mean unless `share` says otherwise.
    """
    if norm == "max":
        return np.asarray(errors.max(axis=-1))
    mean = np.average(errors if norm == "l1" else errors**2, axis=-1, weights=share)
    return np.asarray(mean if norm == "l1" else np.sqrt(mean))


@dataclass(frozen=True)
class Binary(Notion):
    """Score of one class compared with its frequency."""

    name: str = "binary"
    is_binary = True
    reading = NotionWording("binary")

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Raise an error for a matrix of more than two columns without a positive class."""
        if not vector and positive is None:
            rule = f"name one of {list(labels)}, as the notion binary is about one of {len(labels)} columns"
            raise InputError("pos_label", rule, None, advice="notion")

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Yield the problem of the positive class."""
        vector = data.score.ndim == 1
        self.check(vector=vector, labels=data.labels, positive=data.positive)
        if vector:
            yield ScoresAndOutcomes(data.score, data.code, (0.0, 1.0))
        else:
            yield ScoresAndOutcomes(data.score[:, data.positive], data.code == data.positive, (0.0, 1.0))


@dataclass(frozen=True)
class Correctness(Binary):
    """Confidence compared with whether the prediction was correct, for pairs given as such.

    >>> from calibrant.inputs import predictions
    >>> next(get_notion("correctness").problems(predictions([1, 0, 1], [0.9, 0.3, 0.4]))).score
    array([0.9, 0.3, 0.4])
    """

    name: str = "correctness"
    tells_accuracy = True
    correctness_pairs = True
    reading = replace(
        _CONFIDENCE,
        title="correctness",
        frequency="share right",
        scored="answers with confidence",
        event="answer is right",
    )

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Raise an error for a matrix: a pair has one score."""
        if not vector:
            rule = "be one confidence for each row where the notion is correctness"
            raise InputError("y_prob", rule, got=f"{len(labels)} columns")
        if positive is not None and labels[positive] in (0, -1):
            raise InputError("pos_label", "be the label of what was right", labels[positive])

    def label(self, labels: Sequence[Any], positive: int | None) -> Any:
        """Return None: correctness is not a class."""
        return None


@dataclass(frozen=True)
class Classwise(Notion):
    """Score of each class compared with its frequency."""

    name: str = "classwise"
    classwise = True
    reading = NotionWording("class-wise")

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Iterate over blocks of the problems of all classes."""
        score, code = data.score, data.code
        if score.ndim == 1:
            yield ScoresAndOutcomes(
                np.stack([_complement(score), score]), np.stack([~code, code]), (0.0, 1.0)
            )
            return
        n, classes = score.shape
        step = max(1, BLOCK // n)
        for first in range(0, classes, step):
            block = score[:, first : first + step]
            yield ScoresAndOutcomes(block.T, OneHot(code, first, block.shape[1]), (0.0, 1.0))


@dataclass(frozen=True)
class Confidence(Notion):
    """Largest score of a row compared with accuracy; the first column wins ties."""

    name: str = "confidence"
    tells_accuracy = True
    reading = _CONFIDENCE
    top = 1

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Yield the problem of the predicted class."""
        best, largest = _largest(data)
        yield ScoresAndOutcomes(largest, best == data.code, self.support(len(data.labels)))


@dataclass(frozen=True)
class TopLabel(Notion):
    """Largest score compared with accuracy among the rows of each predicted class (Gupta and Ramdas 2022).

    The errors of the predicted classes are averaged by their frequency.

    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 1, 2], [[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.2, 0.8, 0.0]])
    >>> [each.score.tolist() for each in get_notion("top-label").problems(data)]
    [[[0.6]], [[0.7, 0.8]]]
    """

    name: str = "top-label"
    classwise = True
    classes = ClassRelation.SEPARATE
    reading = replace(_CONFIDENCE, title="top-label")
    top = 1

    def problem_labels(self, data: Predictions) -> tuple[Any, ...]:
        """Return the classes that are predicted for some row."""
        return tuple(data.labels[k] for k in np.unique(_largest(data)[0]))

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Iterate over the problems of the predicted classes."""
        best, largest = _largest(data)
        right = best == data.code
        for k in np.unique(best):
            rows = best == k
            yield ScoresAndOutcomes(
                largest[None, rows], right[None, rows], self.support(len(data.labels)), rows
            )


def _largest(data: Predictions) -> tuple[Array, Array]:
    """Return the first column of the largest score, and that score; a score p stands for [1 - p, p]."""
    if data.score.ndim == 2:
        return data.largest
    positive = data.score > 0.5
    return positive.astype(np.intp), np.where(positive, data.score, _complement(data.score))


@dataclass(frozen=True)
class Multilabel(Notion):
    """Score of each class compared with its frequency, where a row can have any number of labels."""

    name: str = "multilabel"
    classwise = True
    classes = ClassRelation.FREE
    reading = NotionWording("multi-label", negative="without the label", positive="with the label")

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Raise an error for a vector of scores."""
        if vector:
            raise InputError("y_prob", "have a column for each label", got="a vector")

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Iterate over blocks of the problems of all labels."""
        self.check(vector=data.score.ndim == 1, labels=data.labels, positive=None)
        step = max(1, BLOCK // len(data.score))
        for first in range(0, data.score.shape[1], step):
            block = slice(first, first + step)
            yield ScoresAndOutcomes(data.score[:, block].T, data.code[:, block].T, (0.0, 1.0))


@dataclass(frozen=True)
class TopScores(Notion):
    """Sum of the k largest scores compared with how often the label is among them; first columns win ties.

    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 2, 1], [[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.6, 0.1, 0.3]])
    >>> problem = next(get_notion("top:2").problems(data))
    >>> problem.score.round(6), problem.outcome, problem.support[0] == 2 / 3
    (array([0.8, 0.8, 0.9]), array([ True,  True, False]), True)
    """

    @property
    def top(self) -> int:
        """Number k of the largest scores."""
        return int(self.name.partition(":")[2])

    @property
    def reading(self) -> NotionWording:
        """Words for the sum of scores and the share of labels among them."""
        return replace(
            _CONFIDENCE,
            title=f"top {self.top}",
            score=f"sum of the {self.top} largest scores",
            frequency="share of labels among them",
            scored=f"predictions of {self.top} classes with confidence",
            event=f"label is among the top {self.top}",
        )

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Raise an error if k is not less than the number of classes: the sum of all scores is 1."""
        size = 2 if vector else len(labels)
        if self.top >= size:
            rule = f"use fewer scores than there are classes, {size}"
            raise InputError("notion", rule, self.name)

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Yield the problem of the k largest scores."""
        score, code = data.score, data.code
        self.check(vector=score.ndim == 1, labels=data.labels, positive=data.positive)
        if score.ndim == 1:
            yield from Confidence().problems(data)
            return
        n, size = score.shape
        total, included = np.empty(n), np.empty(n, dtype=bool)
        step = max(1, BLOCK // (8 * size))
        for a in range(0, n, step):
            rows, label = score[a : a + step], code[a : a + step, None]
            largest = np.partition(rows, size - self.top, axis=1)[:, size - self.top :]
            total[a : a + step] = largest.sum(axis=1, dtype=np.float64)
            label_score = np.take_along_axis(rows, label, axis=1)
            ranked_higher = (rows > label_score) | ((rows == label_score) & (np.arange(size) < label))
            included[a : a + step] = np.count_nonzero(ranked_higher, axis=1) < self.top
        # The sum may exceed 1 by rounding.
        yield ScoresAndOutcomes(np.minimum(total, 1.0), included, self.support(size))


@dataclass(frozen=True)
class Canonical(Notion):
    """Vector of all scores compared with the class frequencies given that vector.

    See docs/methods/canonical-calibration.md.

    >>> get_notion("canonical").max_error("l1")
    2.0
    """

    name: str = "canonical"
    canonical = True
    reading = NotionWording("canonical", score="scores", frequency="frequencies")
    # Sum of absolute gaps, root of the sum of squares, and the label-weighted sum of the paper.
    norms = ("l1", "l2", "mul")

    def max_error(self, norm: str) -> float:
        """Return the largest possible distance on the simplex; `mul` is at most 1."""
        return {"l1": 2.0, "l2": float(np.sqrt(2))}.get(norm, 1.0)

    def problems(self, data: Predictions) -> Iterator[ScoresAndOutcomes]:
        """Raise an error: canonical calibration has no one-dimensional problems."""
        raise canonical_not_supported(self)


def canonical_not_supported(notion: Notion) -> InputError:
    """Return the error for functions that do not support canonical calibration."""
    hint = "use confidence, classwise or binary"
    return InputError("notion", "compare one score at a time here", notion.name, hint=hint, advice="whole")


def refuse_canonical(notion: Any) -> None:
    """Raise an error for canonical calibration, before any data are read; None is the default notion."""
    if notion is not None and (requested := get_notion(notion)).canonical:
        raise canonical_not_supported(requested)


def refuse_matrices(notion: Any) -> None:
    """Raise an error where each row has one label, as in a file or a frame, for several labels of a row."""
    if notion is not None and (requested := get_notion(notion)).classes is ClassRelation.FREE:
        hint = "pass arrays to ece, estimate or Sketch.update, or use binary with one column"
        raise InputError("notion", "be about one label of each row here", requested.name, hint=hint)


def refuse_related(notion: Any) -> None:
    """Raise an error for canonical, top-label and multi-label calibration."""
    refuse_canonical(notion)
    if notion is not None and (requested := get_notion(notion)).classes is not ClassRelation.EXCLUSIVE:
        hint = "use confidence, classwise or binary"
        raise InputError("notion", "be another one here", requested.name, hint=hint)


def refuse_without_rows(notion: Any) -> None:
    """Raise an error for notions that need rows, where these become sums."""
    refuse_canonical(notion)
    if notion is not None and (requested := get_notion(notion)).needs_rows:
        hint = "ece, estimate, assess and reliability curves take rows"
        raise InputError("notion", "be known from sums over rows", requested.name, hint=hint)


def check_canonical_options(notion: Any, *, clustered: bool = False, norm: str | None = None) -> None:
    """Raise an error for options that canonical calibration does not support, before any data are read."""
    if notion is None:
        return
    requested = get_notion(notion)
    if requested.classes is not ClassRelation.EXCLUSIVE and clustered:
        hint = "use confidence or binary"
        raise InputError("cluster", "be left out for this notion", requested.name, hint=hint)
    if not requested.canonical:
        return
    if clustered:
        hint = "use confidence or binary"
        raise InputError("cluster", "go with one score at a time", requested.name, hint=hint)
    if norm is not None:
        check_choice("norm", norm, requested.norms)


#: The notions that have a fixed name; `top:k` is constructed from its name.
_FIXED: dict[str, Notion] = {
    notion.name: notion
    for notion in (
        *(Binary(), Classwise(), Confidence(), TopLabel(), Multilabel(), Correctness(), Canonical()),
    )
}


def get_notion(notion: Any) -> Notion:
    """Return the notion with this name or alias.

    >>> get_notion("confidence").reading.frequency
    'accuracy'
    >>> get_notion("class").name, get_notion("multiclass").name
    ('binary', 'canonical')
    """
    if isinstance(notion, Notion):
        return notion
    if isinstance(notion, str) and (name := ALIASES.get(notion, notion)) in _FIXED:
        return _FIXED[name]
    if isinstance(notion, str) and (match := re.fullmatch(r"top:0*([1-9][0-9]{0,5})", notion)):
        return TopScores(f"top:{match[1]}")
    if isinstance(notion, str) and notion.startswith("top"):
        raise InputError("notion", "be top:k with a whole number k, from 1 to one less than classes", notion)
    check_choice("notion", notion, NOTIONS, ALIASES)
    return _FIXED[notion]


def default_notion(notion: Any, *, vector: bool, pairs: bool = False) -> Notion:
    """Return the requested notion, or the default: `binary` for a vector, `confidence` for a matrix.

    The default is `correctness` if the columns are named as pairs (was the prediction correct, confidence).
    """
    if notion is None and pairs:
        return _FIXED["correctness"]
    if notion is None:
        return _FIXED["binary" if vector else "confidence"]
    return get_notion(notion)


def curve_notion(headline: Notion, *, n_classes: int) -> Notion:
    """Return the notion of the curve that is shown with a headline notion.

    It is the headline itself, except for canonical calibration, which has no curve, and for top-label
    calibration, of which confidence shows all rows.

    >>> str(curve_notion(get_notion("canonical"), n_classes=3))
    'confidence'
    """
    if headline.classes is ClassRelation.SEPARATE:
        return _FIXED["confidence"]
    if not headline.canonical:
        return headline
    return _FIXED["binary" if n_classes == 2 else "confidence"]


def reported_notions(headline: Notion, *, n_classes: int, binary_requested: bool) -> list[Notion]:
    """Return the notions that an assessment reports, the headline first.

    With two classes, whose gaps mirror each other, binary and confidence calibration are sufficient. With
    more classes each class is evaluated, and a single class as well if it was requested (`binary_requested`).
    """
    if headline.correctness_pairs or headline.classes is ClassRelation.FREE:
        return [headline]
    if headline.classes is ClassRelation.SEPARATE:
        return [headline, _FIXED["confidence"]]
    if n_classes == 2:
        names = ["binary", "confidence"]
    else:
        names = ["confidence", "classwise", *(["binary"] if binary_requested else [])]
    return [headline, *(_FIXED[name] for name in names if name != headline.name)]


def _complement(score: Array) -> Array:
    """Return 1 - p in double precision, whatever the precision of p."""
    return 1 - score.astype(np.float64, copy=False)
