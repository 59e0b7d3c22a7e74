"""What a monitor has seen, as it is saved and shown: its settings, batches and alarm."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from numbers import Integral
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import InputError, InputTypeError
from calibrant.inputs.codec import (
    Bounds,
    Count,
    Level,
    Probability,
    Serializable,
    Shape,
    check_order,
    within_field,
)
from calibrant.inputs.printed import Block, Printed, Table, data_frame
from calibrant.inputs.wording import count, counted, with_interval
from calibrant.monitor.process import CELLS, CellSums
from calibrant.sketch import Sketch
from calibrant.tasks import get_notion
from calibrant.tasks.notions import refuse_related

#: The largest value of each setting without a natural limit, so that no number overflows.
LARGEST = {"tolerance": 100, "delay": 1_000_000, "reference": 10**9, "horizon": 10**9}
#: Most rows of a batch.
MOST_ROWS = 2**63
#: Columns of occupied cells: the number of the cell, rows, scores and outcomes.
SumsTable: TypeAlias = Annotated[NDArray[np.float64], Shape((4, None)), Bounds(0, MOST_ROWS)]


def moment(at: Any, name: str = "at") -> str | int:
    """Return a number, or a date or time as ISO text; of a time zone as UTC.

    >>> moment(date(2026, 5, 4)), moment("2026-05-04"), moment(3)
    ('2026-05-04', '2026-05-04', 3)
    """
    if isinstance(at, Integral) and not isinstance(at, bool):
        return int(at)
    if isinstance(at, datetime) and at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    at = at.isoformat() if isinstance(at, date) else at
    rule = "be a whole number, a date or a time in the ISO format, such as '2026-05-04'"
    if not isinstance(at, str | np.datetime64):
        raise InputTypeError(name, rule, at)
    try:
        value = np.datetime64(at)
    except ValueError:
        value = np.datetime64("NaT", "s")
    if np.isnat(value):
        raise InputError(name, rule, at)
    return str(value)


def check_later(at: Any, last: Any) -> None:
    """Refuse a batch that is not after the one before."""
    if isinstance(at, int) != isinstance(last, int):
        raise InputError("at", "be a number in all batches or in none", at, got=f"{at!r} after {last!r}")
    if not (at > last if isinstance(at, int) else np.datetime64(at) > np.datetime64(last)):
        hint = "a period counts once; add rows that came later as a batch of a later time"
        raise InputError("at", f"be after {last}, the batch before", at, hint=hint)


def closes(at: Any, delay: float) -> Any:
    """Return when the labels of a period are complete: `delay` days after its end.

    >>> str(closes("2026-05-04", 7)), str(closes("2026-05-04T10", 0.5))
    ('2026-05-12T00:00:00', '2026-05-04T23:00:00')
    """
    start = np.datetime64(at)
    unit: Any = np.datetime_data(start.dtype)[0]
    end = (start + np.timedelta64(1, unit)).astype("datetime64[s]")
    return end + np.timedelta64(round(delay * 86400), "s")


@dataclass(frozen=True)
class Subject:
    """What is compared, which the first batch settles: the notion and the classes of the columns."""

    notion: str
    labels: tuple[Hashable, ...]
    positive: Count | None
    vector: bool  # whether scores came as a vector

    @classmethod
    def of(cls, sketch: Sketch) -> Subject:
        """Return what a sketch asks."""
        return cls(str(sketch.notion), tuple(sketch.labels), sketch.positive, sketch.is_vector)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The class of each one-dimensional problem; None where it is of no class."""
        notion = get_notion(self.notion)
        return self.labels if notion.classwise else (notion.label(self.labels, self.positive),)

    def _check_fields(self) -> None:
        refuse_related(self.notion)
        size = len(self.labels)
        if size < 2 or len(set(self.labels)) < size:
            raise InputError("labels", "be at least two different classes", self.labels)
        if self.positive is not None and self.positive >= size:
            raise InputError("positive", f"be below {size}, the number of classes", self.positive)
        if self.positive is None and get_notion(self.notion).is_binary:
            raise InputError("positive", "be the column of the positive class", None)
        if self.vector and (size, self.positive) != (2, 1):
            raise InputError("vector", "be false unless scores are of the second of two classes", True)


@dataclass(frozen=True)
class MonitorSettings:
    """The arguments of a monitor: the null hypothesis and the error probability."""

    notion: str | None
    alpha: Level
    tolerance: Annotated[float, Bounds(0, LARGEST["tolerance"])]
    reference: Annotated[int, Bounds(0, LARGEST["reference"])]
    horizon: Annotated[int, Bounds(1, LARGEST["horizon"])]
    delay: Annotated[float, Bounds(0, LARGEST["delay"])] | None
    groups: tuple[Hashable, ...] | None
    labels: tuple[Hashable, ...] | None
    pos_label: Hashable

    def _check_fields(self) -> None:
        refuse_related(self.notion)
        if self.groups is not None and len(set(self.groups)) < max(len(self.groups), 1):
            raise InputError("groups", "be a list of different groups", self.groups)


@dataclass(frozen=True)
class StreamSums:
    """CellSums of a batch of one group and one class."""

    group: Hashable
    problem: Count
    table: SumsTable

    @classmethod
    def of(cls, group: Hashable, problem: int, sums: CellSums) -> StreamSums:
        """Keep the occupied cells."""
        used = np.flatnonzero(sums.n > 0)
        return cls(group, problem, np.array([used, *(each[used] for each in sums)], dtype=np.float64))

    @property
    def sums(self) -> CellSums:
        """The sums of all cells."""
        parts = np.zeros((3, CELLS))
        parts[:, self.table[0].astype(np.intp)] = self.table[1:]
        return CellSums(*parts)

    def _check_fields(self) -> None:
        cell, n, score, outcome = self.table
        if (cell >= CELLS).any() or (cell % 1 != 0).any() or (np.diff(cell) <= 0).any():
            raise InputError("table", f"name cells below {CELLS} in order", got="others")
        if (n <= 0).any() or (np.maximum(score, outcome) > n * (1 + 1e-9)).any():
            raise InputError("table", "hold scores and outcomes of at most 1", got="more")


@dataclass(frozen=True)
class Batch:
    """What is kept of a batch."""

    at: Hashable
    n: Annotated[float, Bounds(0, MOST_ROWS, above=True)]
    value: Probability
    low: Probability
    high: Probability
    expected: Probability  # below which 95 % of the errors of a calibrated model lie
    dropped: Annotated[int, Bounds(0, MOST_ROWS)]  # rows without a label
    sums: tuple[StreamSums, ...]

    def _check_fields(self) -> None:
        moment(self.at)
        check_order(self, "low", "value", "high")

    @property
    def digest(self) -> str:
        """SHA-256 of the sums, the same for the same rows in any order."""
        total = hashlib.sha256()
        for each in self.sums:
            total.update(repr((each.group, each.problem)).encode())
            total.update((np.round(each.table, 6) + 0.0).tobytes())
        return total.hexdigest()


@dataclass(frozen=True)
class MonitorState(Serializable):
    """All that a monitor is saved as: what follows from it is computed again."""

    settings: MonitorSettings
    subject: Subject | None
    batches: tuple[Batch, ...]

    def _check_fields(self) -> None:
        subject, settings = self.subject, self.settings
        if (subject is None) != (not self.batches):
            got = "none" if subject is None else "one"
            raise InputError("subject", "be there if there are batches, and only then", got=got)
        if subject is None:
            return
        if settings.notion not in (None, subject.notion):
            raise InputError("subject.notion", f"be {settings.notion}, as in the settings", subject.notion)
        problems = range(len(subject.classes))
        for k, batch in enumerate(self.batches):
            groups = dict.fromkeys(each.group for each in batch.sums)
            streams = [(group, problem) for group in groups for problem in problems]
            if not streams or [(each.group, each.problem) for each in batch.sums] != streams:
                rule = f"hold sums of {counted(len(problems), 'problem')} for each group"
                raise InputError(f"batches[{k}].sums", rule, got=f"{len(batch.sums)}")
            if k:
                with within_field(f"batches[{k}]"):
                    check_later(batch.at, self.batches[k - 1].at)


@dataclass(frozen=True)
class Alarm(Printed, Serializable):
    """When the e-process reached its limit, and what changed.

    Attributes
    ----------
    at : str or int
        The batch at which the alarm rose.
    e_value : float
        The e-process at that batch.
    onset : str or int
        The batch at which the change probably began: the median of its posterior.
    onset_low, onset_high : str or int
        Ends of the 90 % interval of the onset.
    direction : str
        How outcomes differ from scores.
    groups : tuple
        Groups whose own evidence exceeds the limit divided by their weight.
    """

    at: Hashable
    e_value: float
    onset: Hashable
    onset_low: Hashable
    onset_high: Hashable
    direction: str
    groups: tuple[Hashable, ...] = ()

    @property
    def sentence(self) -> str:
        """The alarm in one sentence."""
        known = self.onset_low == self.onset_high
        interval = "" if known else f" (90 % interval {self.onset_low} to {self.onset_high})"
        since = f"{self.direction}, since about {self.onset}{interval}"
        return f"Alarm at {self.at}: {since}; e-value {self.e_value:.3g}."

    def _printed(self) -> Iterator[Block]:
        yield self.sentence


class HistoryRow(NamedTuple):
    """One batch: the calibration error with its 95 % interval, and the e-process after it."""

    at: Any
    n: float
    value: float
    low: float
    high: float
    expected: float  # below which 95 % of the errors of a calibrated model lie
    e_value: float
    is_reference: bool


class History(Printed, tuple[HistoryRow, ...]):
    """A row for each batch of a monitor."""

    def to_frame(self) -> Any:
        """Return a data frame with a row for each batch, of polars or, if that is missing, of pandas."""
        return data_frame({name: [getattr(row, name) for row in self] for name in HistoryRow._fields})

    def _printed(self) -> Iterator[Block]:
        rows = [
            [
                *(str(each.at), count(round(each.n, 1)), with_interval(each.value, each.low, each.high)),
                "reference" if each.is_reference else f"{each.e_value:.3g}",
            ]
            for each in self
        ]
        yield Table(["at", "rows", "error (95 % interval)", "e-value"], rows, names=1)
