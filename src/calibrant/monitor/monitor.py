"""The monitor: batches in, an alarm out."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from calibrant import inputs
from calibrant.atomic import write_atomic
from calibrant.curves.shown import Page
from calibrant.inputs import InputError, InputTypeError
from calibrant.inputs.codec import from_text, within_field
from calibrant.inputs.printed import Block
from calibrant.inputs.wording import counted, few_of, number
from calibrant.monitor import process
from calibrant.monitor.history import (
    LARGEST,
    Alarm,
    Batch,
    History,
    HistoryRow,
    MonitorSettings,
    MonitorState,
    Subject,
    check_later,
    closes,
    moment,
)
from calibrant.monitor.process import Stream
from calibrant.monitor.sums import of_rows, of_sketches
from calibrant.sketch import Sketch
from calibrant.tasks import get_notion
from calibrant.tasks.notions import refuse_related

# Batches, and standard errors, from which on variation between batches is worth a caution.
ENOUGH, CLEAR = 10, 4.0
# A tolerance of so many standard deviations of day effects kept the rate of false alarms in benchmarks.
WIDE = 3.0


class Monitor(Page):
    """Watch the calibration of a model over time.

    Several threads may update and read a monitor at the same time: each batch is added as a whole.

    The probability of a false alarm is at most `alpha` over any number of batches. It is a probability
    under the null hypothesis: given the past and the scores, outcomes are independent and each has its score
    as probability; or one within `tolerance` of it; or, with `reference`, one that is possible after the
    reference period. docs/monitoring.md says what breaks this: rows that depend on each other, labels that
    come later for one outcome than for the other, and batches that are recomputed.

    Parameters
    ----------
    notion : {"binary", "classwise", "confidence", "top:k", "correctness"}, optional
        What is compared. Without it the first batch decides as `calibrant.ece` does.
    alpha : float
        Largest probability of a false alarm.
    tolerance : float
        By how much the log-odds of an outcome may differ from those of its score under the null hypothesis.
    reference : int, optional
        Number of first batches that are the reference period. Then the null hypothesis is that frequencies
        are as in this period, and do not fall as scores rise. A fifth of `alpha` is spent on the period.
    groups : sequence, optional
        All groups that may occur, with equal weights. Otherwise the groups of the first batch have half of
        the weight, and later ones share the rest by order of appearance.
    delay : float or timedelta, optional
        Days after which the label of a row is known for certain. A batch is refused before that.
    horizon : int
        Number of batches within which a change is most expected. The guarantee does not depend on it.
    labels, pos_label : optional
        As for `calibrant.ece`.

    Attributes
    ----------
    alarm : Alarm or None
        When the alarm rose, the estimated onset and the direction of the change.
    e_value : float
        The e-process: evidence against the null hypothesis. The alarm rises at 1 / alpha.
    history : History
        A row for each batch.
    flagged : dict
        Groups whose own evidence has exceeded their limit, and since when.
    cautions : tuple of str
        What may invalidate the guarantee.
    settings : MonitorSettings
        The parameters, and the classes and the notion of the first batch.

    See Also
    --------
    Sketch : sums of the rows of a batch, which can be passed in their place.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(alpha=0.05)
    >>> for day in range(1, 41):
    ...     score = rng.random(500)
    ...     probability = score if day < 21 else 0.85 * score
    ...     _ = monitor.update(rng.random(500) < probability, score, at=day)
    >>> print(monitor.alarm)
    Alarm at 21: scores are too high, since about 21 (90 % interval 20 to 21);
    e-value 1.82e+03.
    """

    _drawn_by, _page_by = "monitor", "monitor_page"

    @inputs.helpful
    def __init__(
        self, notion: str | None = None, *, alpha: float = 0.05, tolerance: float = 0.0,
        reference: int | None = None, groups: Sequence[Hashable] | None = None,
        delay: float | timedelta | None = None, horizon: int = 365,
        labels: Sequence[Hashable] | None = None, pos_label: Hashable = None,
    ) -> None:  # fmt: skip
        refuse_related(notion)
        delay = delay / timedelta(days=1) if isinstance(delay, timedelta) else delay
        for name, value in {"tolerance": tolerance, "delay": 0 if delay is None else delay}.items():
            if not inputs.is_number(value) or not 0 <= value < np.inf:
                unit = "days, or a timedelta" if name == "delay" else "log-odds"
                raise InputError(name, f"be a finite number of {unit}, at least 0", value)
        if groups is not None and (isinstance(groups, str) or len(set(groups)) < max(len(groups), 1)):
            raise InputError("groups", "be a list of different groups", groups)
        reference = 0 if reference is None else inputs.positive_int("reference", reference)
        horizon = inputs.positive_int("horizon", horizon)
        largest = {"tolerance": tolerance, "reference": reference, "horizon": horizon, "delay": delay or 0}
        for name, value in largest.items():
            if value > LARGEST[name]:
                raise InputError(name, f"be at most {LARGEST[name]:,}", value)
        settings = MonitorSettings(
            notion=None if notion is None else get_notion(notion).name,
            alpha=inputs.level(alpha, "alpha"),
            tolerance=float(tolerance),
            reference=reference,
            horizon=horizon,
            delay=None if delay is None else float(delay),
            groups=None if groups is None else tuple(groups),
            labels=None if labels is None else tuple(inputs.class_labels(labels)),
            pos_label=pos_label,
        )
        self._restore(MonitorState(settings, None, ()))

    def _restore(self, state: MonitorState) -> None:
        """Take a state, and add its batches one by one."""
        self._lock = RLock()  # held by an update
        self.settings: MonitorSettings = state.settings
        self._subject = state.subject
        self._batches: list[Batch] = []
        self._rows: list[HistoryRow] = []
        self._streams: dict[Any, list[Stream]] = {}  # by group, in the order of their appearance
        self._first_groups = 0  # number of groups of the first batch
        self.alarm: Alarm | None = None
        self.flagged: dict[Any, Any] = {}
        for k, batch in enumerate(state.batches):
            with within_field(f"batches[{k}]"):
                self._add(batch)

    @property
    def e_value(self) -> float:
        """The e-process after the last batch."""
        return self._rows[-1].e_value if self._rows else 1.0

    @property
    def history(self) -> History:
        """A row for each batch."""
        return History(self._rows)

    @property
    def notion(self) -> str | None:
        """What is compared; None before the first batch if it was not given."""
        return self._subject.notion if self._subject else self.settings.notion

    @property
    def limit(self) -> float:
        """The e-value at which the alarm rises; with a reference period a part of alpha is spent on that."""
        spent = process.REFERENCE_SHARE if self.settings.reference else 0.0
        return 1 / (self.settings.alpha * (1 - spent))

    @inputs.helpful
    def update(
        self, y_true: ArrayLike | Sketch | Mapping[Any, Sketch], y_prob: ArrayLike | None = None, *,
        at: Any = None, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
        counts: ArrayLike | None = None, cluster: ArrayLike | None = None, percent: bool = False,
        missing: Literal["raise", "drop"] = "raise", now: Any = None,
    ) -> Self:  # fmt: skip
        """Add a batch; returns the monitor itself. A batch that is refused leaves it as it was.

        Parameters
        ----------
        y_true, y_prob
            Labels and scores of the batch as for `calibrant.ece`; or a sketch, or sketches by group.
        at : date, datetime, str or int, optional
            When the rows were scored, after all batches before; numbered 1, 2, ... by default. Rows that
            come later are a batch of their own.
        groups : array, optional
            Group of each row; every group is a stream of its own under one alpha.
        sample_weight : array, optional
            Importance weights, fixed before the outcomes. They are divided by the largest of the batch.
        counts : array, optional
            How many equal rows each row stands for.
        cluster : array, optional
            Which rows depend on each other. A cluster counts as one row: its mean score and mean outcome.
            It must not come back in a later batch.
        percent, missing
            As for `calibrant.ece`.
        now : datetime, optional
            The present, against which `delay` is held.
        """
        options = {"groups": groups, "cluster": cluster, "percent": percent, "missing": missing}
        options |= {"sample_weight": sample_weight, "counts": counts}
        with self._lock:
            updated = copy(self)
            updated._subject, batch = self._read(self._moment(at, now), y_true, y_prob, **options)
            updated._add(batch)
            # At once, so that another thread reads all of the batch or none of it.
            updated._lock = self._lock
            self.__dict__.update(updated.__dict__)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return copies of all attributes but the lock."""
        with self._lock:
            state = vars(self).copy()
            del state["_lock"]
            for name in ("_batches", "_rows", "flagged"):
                state[name] = state[name].copy()
            state["_streams"] = {
                group: [stream.copy() for stream in streams] for group, streams in self._streams.items()
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()

    def _moment(self, at: Any, now: Any) -> str | int:
        """Return when a batch is, which is after all before and whose labels are complete."""
        last, delay = self._batches[-1].at if self._batches else 0, self.settings.delay
        if at is None and not isinstance(last, int):
            raise InputError("at", "be given in all batches or in none", None)
        when = moment(last + 1 if at is None else at)  # type: ignore[operator]
        if self._batches:
            check_later(when, last)
        if delay is None:
            return when
        if isinstance(when, int):
            raise InputError("at", "be a date or a time where the monitor has a delay", when)
        known = closes(when, delay)
        if known > np.datetime64(str(moment(datetime.now(UTC) if now is None else now, "now"))):
            rule = f"be at least {counted(delay, 'day')} ago, when labels are complete"
            raise InputError("at", rule, when, hint=f"update at {known} or later")
        return when

    def _read(self, at: Any, y_true: Any, y_prob: Any = None, **options: Any) -> tuple[Subject, Batch]:
        """Return the sums of a batch, which asks what the batches before asked."""
        sketches = {None: y_true} if isinstance(y_true, Sketch) else y_true
        if isinstance(sketches, Mapping):
            for name, value in {"y_prob": y_prob, **options}.items():
                if value is not None and value is not False and not (name == "missing" and value == "raise"):
                    raise InputError(name, "be left out for a sketch, which holds sums of rows")
            for each in sketches.values():
                if not isinstance(each, Sketch):
                    raise InputTypeError("y_true", "hold a sketch for each group", each)
            subject, batch = of_sketches(at, sketches, self._subject)
        elif y_prob is None:
            raise InputTypeError("y_prob", "be scores", None)
        else:
            subject, batch = of_rows(at, y_true, y_prob, self._subject, self.settings, **options)
        if self.settings.notion not in (None, subject.notion):
            raise InputError("notion", f"be {self.settings.notion} in every batch", subject.notion)
        return subject, batch

    def _settle(self, labels: Any, pos_label: Any, notion: str) -> None:
        """Take classes and notion from a file, where the monitor was not told and has seen no batch."""
        with self._lock:
            s = self.settings
            if self._subject is None:
                classes = s.labels if labels is None else tuple(labels)
                positive = s.pos_label if pos_label is None else pos_label
                self.settings = replace(s, labels=classes, pos_label=positive, notion=s.notion or notion)

    @property
    def _all_groups(self) -> tuple[Any, ...] | None:
        """All groups that may occur, if they are known: given, or those of the reference period."""
        s = self.settings
        known = tuple(self._streams) if 0 < s.reference <= len(self._batches) else None
        return known if s.groups is None else s.groups

    def _add(self, batch: Batch) -> None:
        """Add a batch to the streams of its groups, and look at the evidence."""
        s, size = self.settings, len(self._subject.classes) if self._subject else 0
        sums = {(each.group, each.problem): each.sums for each in batch.sums}
        new = [group for group in dict.fromkeys(group for group, _ in sums) if group not in self._streams]
        known = self._all_groups
        if known is not None and (unknown := [each for each in new if each not in known]):
            rule = f"be one of {inputs.show(*known)}, which were given or in the reference period"
            raise InputError("groups", rule, unknown[0])
        if new and self._streams and (None in new or None in self._streams):
            raise InputError("groups", "be given in all batches or in none")
        is_reference, time = len(self._batches) < s.reference, max(len(self._batches) - s.reference, 0)
        if len(self._batches) == s.reference > 0:
            self._end_reference()
        for group in new:
            self._streams[group] = [Stream(s.tolerance, s.horizon, time) for _ in range(size)]
            if s.reference and not is_reference:  # nothing is known of it
                for stream in self._streams[group]:
                    stream.band = np.zeros(process.CELLS), np.ones(process.CELLS)
        self._first_groups = self._first_groups or len(new)
        for group, streams in self._streams.items():
            for k, stream in enumerate(streams):
                if (cell_sums := sums.get((group, k))) is not None:
                    stream.add_batch(cell_sums, reference=is_reference)
                if not is_reference:
                    stream.add(cell_sums)
        self._batches.append(batch)
        log_m = 0.0 if is_reference else self._test(batch.at)
        e_value = float(np.exp(min(log_m, 690.0)))
        error = batch.value, batch.low, batch.high, batch.expected
        self._rows.append(HistoryRow(batch.at, batch.n, *error, e_value, is_reference))

    def _end_reference(self) -> None:
        """Bound the frequencies of the reference period."""
        s, streams = self.settings, [each for group in self._streams.values() for each in group]
        problems = len(streams) // len(self._streams) * len(self._all_groups or ())
        alpha = s.alpha * process.REFERENCE_SHARE / problems
        bands = [process.reference_band(each.reference, alpha) for each in streams]
        if any((low > high).any() for low, high in bands):
            rule = "be a period in which frequencies do not fall as scores rise"
            raise InputError("reference", rule, s.reference)
        for stream, band in zip(streams, bands, strict=True):
            stream.band = band

    def _test(self, at: Any) -> float:
        """Raise the alarm, and flag groups, where the evidence suffices; return the log of the e-process."""
        log_m = np.array([[stream.log_m for stream in streams] for streams in self._streams.values()])
        n, first = len(log_m), self._first_groups
        weights, later = np.ones(1), np.arange(1, n - first + 1)
        if None not in self._streams:
            weights = np.concatenate([np.full(first, 0.5 / first), 0.5 / (later * (later + 1))])
        if self._all_groups is not None:
            weights = np.full(n, 1 / len(self._all_groups))
        log_evidence = logsumexp(log_m, axis=1) - np.log(log_m.shape[1]) + np.log(weights)
        # The e-process of a group that has not come yet is 1.
        total = float(logsumexp([*log_evidence, np.log(max(1 - weights.sum(), 1e-300))]))
        limit = np.log(self.limit)
        for group, evidence in zip(self._streams, log_evidence, strict=True):
            if evidence >= limit and group is not None:
                self.flagged.setdefault(group, at)
        if self.alarm is None and total >= limit:
            group = list(self._streams)[int(log_evidence.argmax())]
            self.alarm = self._alarm(at, group, int(log_m[int(log_evidence.argmax())].argmax()), total)
        return total

    def _alarm(self, at: Any, group: Any, problem: int, total: float) -> Alarm:
        """Describe the change of the stream with the most evidence."""
        stream, monitored = self._streams[group][problem], self._batches[self.settings.reference :]
        change = process.change_of(np.array(stream.log_e))
        onset, low, high = (monitored[k].at for k in (change.onset, change.low, change.high))
        assert self._subject is not None
        classes = self._subject.classes
        scores = f"{get_notion(self._subject.notion).reading.score}s"
        scores += f" of {classes[problem]}" if len(classes) > 1 else ""
        words = process.words_of(change, scores, stream.total.n)
        words += "" if group is None else f", most clearly in {group}"
        return Alarm(at, float(np.exp(min(total, 690.0))), onset, low, high, words, tuple(self.flagged))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What may invalidate the guarantee."""
        cautions = []
        if dropped := sum(batch.dropped for batch in self._batches):
            cautions.append(
                f"{counted(dropped, 'row')} had no label and were left out. False alarms are rare only if "
                "this does not depend on the outcome: set a delay after which all labels are known."
            )
        spread, clear = self._batch_effects()
        if clear and WIDE * spread > self.settings.tolerance:
            cautions.append(
                "The mean gap varies from batch to batch by more than chance explains (standard deviation "
                f"{number(spread)} in log-odds). Effects of single batches raise false alarms: set "
                f"tolerance={WIDE * spread:.2g}, or cluster= if rows depend on each other."
            )
        return tuple(cautions)

    def _batch_effects(self) -> tuple[float, bool]:
        """Return the standard deviation of effects of single batches in log-odds, and whether it is clear.

        Differences of successive batches are used, which a lasting change hardly affects.
        """
        streams = [each for batch in self._batches for each in batch.sums]
        sums = [each.sums for each in streams if (each.group, each.problem) == (streams[0].group, 0)]
        if len(sums) < ENOUGH:
            return 0.0, False
        information = np.maximum([(each.n * each.mean * (1 - each.mean)).sum() for each in sums], 1e-9)
        shift = np.array([(each.outcome - each.score).sum() for each in sums]) / information
        squares, expected = np.diff(shift) ** 2, 1 / information[1:] + 1 / information[:-1]
        kept = np.argsort(squares / expected)[:-1]  # a sudden change is one large difference
        spread = np.sqrt(max(float((squares - expected)[kept].mean()) / 2, 0.0))
        return spread, float((squares / expected)[kept].mean()) - 1 > CLEAR * np.sqrt(3 / len(kept))

    @property
    def null_hypothesis(self) -> str:
        """The null hypothesis in words."""
        s, words = self.settings, "the probability of each is its score"
        if s.reference:
            period = counted(s.reference, "batch")
            words = f"frequencies are those of the reference period, the first {period}"
        words += f", up to {s.tolerance:.3g} in log-odds" if s.tolerance else ""
        return f"H0: given the past and the scores, outcomes are independent, and {words}."

    @property
    def sentence(self) -> str:
        """The state of the monitor in one sentence."""
        if self.alarm is not None:
            return self.alarm.sentence
        batches = counted(len(self._rows), "batch")
        return f"No alarm after {batches}: e-value {self.e_value:.3g}, limit {self.limit:.3g}."

    def _printed(self) -> Iterator[Block]:
        yield self.sentence
        if self.flagged:
            yield "groups", few_of([f"{group} since {at}" for group, at in self.flagged.items()], 6)
        yield from self.cautions

    def __repr__(self) -> str:
        alarm = None if self.alarm is None else self.alarm.at
        about = f"{self.notion!r}, batches={len(self._rows)}, e_value={self.e_value:.3g}"
        return f"Monitor({about}, alarm={alarm!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return all that the monitor knows, as `from_dict` reads it."""
        return self._state.to_dict()

    @property
    def _state(self) -> MonitorState:
        """All that the monitor is saved as."""
        with self._lock:
            return MonitorState(self.settings, self._subject, tuple(self._batches))

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the monitor that `to_dict` described, with every field checked.

        Parameters
        ----------
        values : mapping
            What `to_dict` returned.
        """
        return cls._of(MonitorState.from_dict(values))

    @classmethod
    def _of(cls, state: MonitorState) -> Self:
        """Return the monitor of a state whose fields are checked."""
        monitor = cls()
        monitor._restore(state)
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            File to write.
        """
        values = self.to_dict()
        MonitorState.from_dict(values)  # what could not be read again is not written
        write_atomic(path, [json.dumps(values, allow_nan=False).encode()])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the monitor that `save` wrote.

        Parameters
        ----------
        path : path
            File that `save` wrote.
        """
        with open(path, "rb") as file, inputs.within(os.fspath(path)):
            values = from_text(file.read(), "monitor")
            if isinstance(values, Mapping) and {"monitor", "files"} <= {*values}:
                rule, got = "be a file that Monitor.save wrote", "a state of the command calibrant monitor"
                raise InputError("monitor", rule, got=got, hint="pass it to the command by --state")
            return cls.from_dict(values)
