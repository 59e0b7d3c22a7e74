"""The notions of calibration: which score is compared with which outcome.

A notion answers for itself: which one-dimensional problems (a score in [0, 1] and an outcome in {0, 1}) it
makes of predictions, how their errors combine, where scores can lie, and how a person reads it. No other room
compares its name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import InputError, Predictions, check_choice
from calibrant.score_data import OneHot

Array = NDArray[Any]

# Names of notions, and other names that are accepted for them.
NOTIONS = ("binary", "classwise", "confidence", "top:k", "correctness", "canonical")
ALIASES = {"class": "binary", "multiclass": "canonical"}
# Scores of a block of classes: enough columns for long reads, few enough for little memory.
BLOCK = 1 << 24


class Problem(NamedTuple):
    """Scores and outcomes of one problem, or of a block of them along the first axis."""

    score: Array
    outcome: Array | OneHot
    support: tuple[float, float]


@dataclass(frozen=True)
class Reading:
    """How a person reads a notion.

    Attributes
    ----------
    title : str
        What it is called in a sentence.
    score, frequency : str
        What is compared, as on the axes of a picture.
    happens : str
        What the outcome does, after "a score of .8".
    positive, negative : str
        Rows with and without the outcome.
    too_high, too_low : str
        Which way scores are off, after "of it".
    event : str
        What the outcome is, where no class names it.
    sure : bool
        Whether scores say how sure a prediction is, so that too high ones are overconfident.
    """

    title: str
    score: str = "score"
    frequency: str = "frequency"
    happens: str = "comes true"
    positive: str = "of the class"
    negative: str = "of another class"
    too_high: str = "by scores too high"
    too_low: str = "by scores too low"
    event: str = ""
    sure: bool = False


_CONFIDENCE = Reading(
    title="confidence",
    score="confidence",
    frequency="accuracy",
    happens="turns out right",
    positive="right",
    negative="wrong",
    too_high="overconfident",
    too_low="underconfident",
    event="prediction is right",
    sure=True,
)


@dataclass(frozen=True)
class Notion(ABC):
    """What is compared with what; the subclasses say it.

    Attributes
    ----------
    name : str
        What callers write.
    several : bool
        Whether it makes a problem for each class.
    one_class : bool
        Whether it is about the score of one class.
    tells_accuracy : bool
        Whether it compares mean confidence with accuracy.
    of_pairs : bool
        Whether it is about pairs (was it right, how sure was it), which no other notion can be asked of.
    canonical : bool
        Whether it compares whole rows of scores, and makes no one-dimensional problems.
    """

    name: str
    classwise: ClassVar[bool] = False
    one_class: ClassVar[bool] = False
    tells_accuracy: ClassVar[bool] = False
    correctness_pairs: ClassVar[bool] = False
    canonical: ClassVar[bool] = False

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """How a person reads it."""

    @property
    def top(self) -> int:
        """How many of the largest scores of a row are compared; 0 where classes are."""
        return 0

    @abstractmethod
    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Make the one-dimensional problems of checked predictions."""

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:  # noqa: B027 - most can be asked of all
        """Refuse predictions that this cannot be asked of."""

    def support(self, n_classes: int) -> tuple[float, float]:
        """Return where scores can lie."""
        return (self.top / n_classes, 1.0) if self.top else (0.0, 1.0)

    def size(self, n_classes: int) -> int:
        """Return the number of problems."""
        return n_classes if self.classwise else 1

    @property
    def norms(self) -> tuple[str, ...]:
        """Norms that an estimate can have."""
        return ("l1", "l2")

    def most(self, norm: str) -> float:
        """Return the largest error that there can be."""
        return 1.0

    def label(self, labels: Sequence[Any], positive: int | None) -> Any:
        """Return the class that is asked about, if it is one."""
        return labels[positive] if self.one_class and positive is not None else None

    def combine(self, errors: Array, norm: str) -> float:
        """Return one number from the errors of all problems: mean, root mean square or maximum.

        >>> named("classwise").combine(np.array([0.1, 0.3]), "l1")
        0.2
        """
        return float(errors.item() if errors.size == 1 else combined(errors, norm))

    def __str__(self) -> str:
        return self.name


def combined(errors: Array, norm: str) -> Array:
    """Return one error from those of all classes, the last axis: mean, root mean square or maximum."""
    if norm == "max":
        return np.asarray(errors.max(axis=-1))
    return np.asarray(errors.mean(axis=-1) if norm == "l1" else np.sqrt((errors * errors).mean(axis=-1)))


@dataclass(frozen=True)
class Binary(Notion):
    """The score of one class against its frequency."""

    name: str = "binary"
    one_class = True

    @property
    def reading(self) -> Reading:
        """The score of a class against its frequency."""
        return Reading("binary")

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Refuse a matrix of more than two columns without a class to ask about."""
        if not vector and positive is None:
            rule = f"name one of {list(labels)}, as the notion binary is about one of {len(labels)} columns"
            raise InputError("pos_label", rule, None, advice="notion")

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Make the problem of the positive class."""
        vector = data.score.ndim == 1
        self.check(vector=vector, labels=data.labels, positive=data.positive)
        if vector:
            yield Problem(data.score, data.code, (0.0, 1.0))
        else:
            yield Problem(data.score[:, data.positive], data.code == data.positive, (0.0, 1.0))


@dataclass(frozen=True)
class Correctness(Binary):
    """How sure a prediction was against whether it was right: pairs, taken as they are at every score.

    >>> from calibrant.inputs import predictions
    >>> next(named("correctness").problems(predictions([1, 0, 1], [0.9, 0.3, 0.4]))).score
    array([0.9, 0.3, 0.4])
    """

    name: str = "correctness"
    tells_accuracy = True
    correctness_pairs = True

    @property
    def reading(self) -> Reading:
        """Confidence against the share of answers that were right."""
        return replace(_CONFIDENCE, title="correctness", frequency="share right", event="answer is right")

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Refuse a matrix: a pair has one score."""
        if not vector:
            rule = "be one confidence for each row where the notion is correctness"
            raise InputError("y_prob", rule, got=f"{len(labels)} columns")
        if positive is not None and labels[positive] in (0, -1):
            raise InputError("pos_label", "be the label of what was right", labels[positive])

    def label(self, labels: Sequence[Any], positive: int | None) -> Any:
        """Return None: being right is no class."""
        return None


@dataclass(frozen=True)
class Classwise(Notion):
    """The score of every class in turn against its frequency."""

    name: str = "classwise"
    classwise = True

    @property
    def reading(self) -> Reading:
        """The scores of all classes against their frequencies."""
        return Reading("class-wise")

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Make the problems of all classes, a block of them at a time."""
        score, code = data.score, data.code
        if score.ndim == 1:
            yield Problem(np.stack([_complement(score), score]), np.stack([~code, code]), (0.0, 1.0))
            return
        n, classes = score.shape
        step = max(1, BLOCK // n)
        for first in range(0, classes, step):
            block = score[:, first : first + step]
            yield Problem(block.T, OneHot(code, first, block.shape[1]), (0.0, 1.0))


@dataclass(frozen=True)
class Confidence(Notion):
    """The largest score against the accuracy of predicting its class; among tied scores the first column."""

    name: str = "confidence"
    tells_accuracy = True

    @property
    def reading(self) -> Reading:
        """Confidence against accuracy."""
        return _CONFIDENCE

    @property
    def top(self) -> int:
        """The largest score alone."""
        return 1

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Make the problem of the predicted class."""
        score, code = data.score, data.code
        if score.ndim == 1:
            # The columns are [1 - p, p]; a tie is the first column's.
            positive = score > 0.5
            yield Problem(np.where(positive, score, _complement(score)), positive == code, self.support(2))
            return
        best, largest = data.largest
        yield Problem(largest, best == code, self.support(score.shape[1]))


@dataclass(frozen=True)
class TopScores(Notion):
    """The sum of the k largest scores against how often the label is among them; ties go to the first column.

    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 2, 1], [[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.6, 0.1, 0.3]])
    >>> problem = next(named("top:2").problems(data))
    >>> problem.score.round(6), problem.outcome, problem.support[0] == 2 / 3
    (array([0.8, 0.8, 0.9]), array([ True,  True, False]), True)
    """

    @property
    def top(self) -> int:
        """How many of the largest scores are added up."""
        return int(self.name.partition(":")[2])

    @property
    def reading(self) -> Reading:
        """The sum of scores against the share of labels among them."""
        return replace(
            _CONFIDENCE,
            title=f"top {self.top}",
            score=f"sum of the {self.top} largest scores",
            frequency="share of labels among them",
            happens="holds the label",
            event=f"label is among the top {self.top}",
        )

    def check(self, *, vector: bool, labels: Sequence[Any], positive: int | None) -> None:
        """Refuse as many scores as there are classes: their sum is 1."""
        size = 2 if vector else len(labels)
        if self.top >= size:
            rule = f"ask about fewer scores than there are classes, {size}"
            raise InputError("notion", rule, self.name)

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Make the problem of the largest scores."""
        score, code = data.score, data.code
        self.check(vector=score.ndim == 1, labels=data.labels, positive=data.positive)
        if score.ndim == 1:
            yield from Confidence().problems(data)
            return
        n, size = score.shape
        total, held = np.empty(n), np.empty(n, dtype=bool)
        step = max(1, BLOCK // (8 * size))
        for a in range(0, n, step):
            rows, label = score[a : a + step], code[a : a + step, None]
            largest = np.partition(rows, size - self.top, axis=1)[:, size - self.top :]
            total[a : a + step] = largest.sum(axis=1, dtype=np.float64)
            own = np.take_along_axis(rows, label, axis=1)
            before = (rows > own) | ((rows == own) & (np.arange(size) < label))
            held[a : a + step] = np.count_nonzero(before, axis=1) < self.top
        # Rounding may take a sum above 1.
        yield Problem(np.minimum(total, 1.0), held, self.support(size))


@dataclass(frozen=True)
class Canonical(Notion):
    """The scores of all classes at once against the frequencies of all classes where these scores stand.

    >>> named("canonical").most("l1")
    2.0
    """

    name: str = "canonical"
    canonical = True

    @property
    def reading(self) -> Reading:
        """Rows of scores against the frequencies of the classes."""
        return Reading("canonical", score="scores", frequency="frequencies")

    @property
    def norms(self) -> tuple[str, ...]:
        """Sum of absolute gaps, root of the sum of squares, and the paper's sum weighed by the label."""
        return ("l1", "l2", "mul")

    def most(self, norm: str) -> float:
        """Return the largest distance on the simplex; the paper's error weighs classes by their frequency."""
        return {"l1": 2.0, "l2": float(np.sqrt(2))}.get(norm, 1.0)

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """Refuse: no single score says it."""
        raise one_score_at_a_time(self)


def one_score_at_a_time(notion: Notion) -> InputError:
    """Return what is said where whole rows cannot be compared."""
    hint = "ask here for confidence, classwise or binary"
    return InputError("notion", "compare one score at a time here", notion.name, hint=hint, advice="whole")


def refuse_whole(notion: Any) -> None:
    """Refuse a notion that compares whole rows, before anything is read; None stands for the usual one."""
    if notion is not None and (asked := named(notion)).canonical:
        raise one_score_at_a_time(asked)


def check_whole(notion: Any, *, clustered: bool = False, norm: str | None = None) -> None:
    """Refuse what does not go with a notion that compares whole rows, before anything is read."""
    if notion is None or not (asked := named(notion)).canonical:
        return
    if clustered:
        hint = "the confidence, or each class, can be asked about"
        raise InputError("cluster", "go with one score at a time", asked.name, hint=hint)
    if norm is not None:
        check_choice("norm", norm, asked.norms)


#: Every notion that has a fixed name; the others are made from one.
_FIXED = {notion.name: notion for notion in (Binary(), Classwise(), Confidence(), Correctness(), Canonical())}


def named(notion: Any) -> Notion:
    """Return the notion of this name, or of an alias.

    >>> named("confidence").reading.frequency
    'accuracy'
    >>> named("class").name, named("multiclass").name
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


def usual(notion: Any, *, vector: bool, pairs: bool = False) -> Notion:
    """Return the notion asked for; without one `binary` for a vector of scores, `confidence` for a matrix.

    Columns that are named as pairs (was it right, how sure was it) are asked about as such.
    """
    if notion is None and pairs:
        return _FIXED["correctness"]
    if notion is None:
        return _FIXED["binary" if vector else "confidence"]
    return named(notion)


def pictured(headline: Notion, *, n_classes: int) -> Notion:
    """Return the notion whose curve stands for a headline: its own, unless whole rows have none.

    >>> str(pictured(named("canonical"), n_classes=3))
    'confidence'
    """
    if not headline.canonical:
        return headline
    return _FIXED["binary" if n_classes == 2 else "confidence"]


def applicable(headline: Notion, *, n_classes: int, one_asked: bool) -> list[Notion]:
    """Return the notions that predictions are assessed by, the headline first.

    Two classes mirror each other, so one class and the confidence say all; of more classes each is looked
    at, and one of them by itself where it was asked for.
    """
    if headline.correctness_pairs:
        return [headline]
    if n_classes == 2:
        names = ["binary", "confidence"]
    else:
        names = ["confidence", "classwise", *(["binary"] if one_asked else [])]
    return [headline, *(_FIXED[name] for name in names if name != headline.name)]


def _complement(score: Array) -> Array:
    """1 - p, in double precision whatever p has."""
    return 1 - score.astype(np.float64, copy=False)
