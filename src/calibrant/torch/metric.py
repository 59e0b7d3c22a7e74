"""`CalibrationError`: a metric that keeps the sums of a sketch instead of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from calibrant.estimators import resolve
from calibrant.estimators.base import chosen_bins
from calibrant.estimators.binned import Binned
from calibrant.inputs import (
    InputError,
    InputTypeError,
    InputWarning,
    check_choice,
    positive_int,
)
from calibrant.inputs.class_names import given_class_names
from calibrant.score_data import Cells, Moments
from calibrant.score_data.layout import COARSE, FINE
from calibrant.sketch.sketch import Sketch
from calibrant.sketch.totals import Totals
from calibrant.tasks import default_notion, get_notion
from calibrant.tasks.notions import Notion, refuse_related
from calibrant.torch import cluster_rows, reduce
from calibrant.torch.base import Base
from calibrant.torch.cells import LIMB, add_rows, compensated_add, compensated_sum, to_cells
from calibrant.torch.reduce import BRIER_STEPS, LOSS_STEPS, Rows, ScoreBatch

if TYPE_CHECKING:
    from calibrant.curves import ByClass, ReliabilityCurve
    from calibrant.inference.result import Estimate

#: Up to this many classes the class-wise notion keeps cells; above, the bins of a named estimator.
MOST_CLASSES = 1000
# A label that is no class: of rows that are left out.
NO_LABEL = -(1 << 40)
EMPTY = "the metric is empty: call update(preds, target) first"
# Entries of the state `row_sums`: numbers of rows, of rows that are refused, and of rows that came with
# others of the same image or text.
_ROWS, _BAD, _BAD_WEIGHT, _DEPENDENT = 0, slice(5, 9), 8, 9
_FAULTS = (
    ("preds", "be scores in [0, 1], or logits that are not NaN"),
    ("target", "hold only classes, or ignore_index"),
    ("preds", "sum to 1 over the classes"),
    ("sample_weight", "be finite and not negative"),
)
#: Up to this many classes the class-wise notion takes clusters.
MOST_CLUSTERED = 20
# Rows from which on targets that look one-hot hardly do so by chance.
ENOUGH = 3
# Additions to the states, of all metrics: threads must not overwrite each other's.
_ADDING = Lock()


def fused(preds: Tensor) -> ModuleType | None:
    """Return the kernels if they can sum these predictions."""
    if (
        not preds.is_cuda
        or preds.dtype == torch.float64
        or torch.cuda.get_device_capability(preds.device)[0] < 7
    ):
        return None
    try:
        from calibrant.torch import kernels
    except ImportError:
        return None
    return kernels


class CalibrationError(Base):
    """Calibration error of batches, in memory that does not grow with them.

    It keeps the sums of a `calibrant.Sketch` as tensors of fixed size. Sums of rows without weights are
    integers: they are the same for any order of rows, batches and processes.

    Parameters
    ----------
    notion : {"binary", "classwise", "confidence", "top:k", "correctness"}, optional
        Type of calibration. By default the first batch decides: "binary" if `preds` has the shape of
        `target`, and "confidence" if it has an axis of classes.
    estimator : str or Estimator, default="auto"
        As for `calibrant.ece`.
    n_bins, strategy : int, {"uniform", "quantile"}, optional
        Bins of a binned estimator, instead of `estimator`, as for `calibrant.ece`.
    norm : {"l1", "l2", "max"}, default="l1"
        As for `calibrant.ece`.
    num_classes : int, optional
        Number of classes; needed for "classwise", and learned from the first batch otherwise. Class-wise and
        above 1,000 classes the metric keeps the bins of the estimator, which must be "uniform:B".
    ignore_index : int, optional
        Label of rows that are left out.
    from_logits : bool, optional
        Whether `preds` are logits. By default the first batch decides, and a warning tells if they are.
        Probabilities lie in [0, 1], and those of all classes sum to 1.
    weighted : bool, default=False
        Whether batches have importance weights.
    class_axis : int, default=1
        Axis of the classes in `preds`.
    class_names : sequence or mapping, optional
        Names of the classes in results.
    **kwargs : dict
        Options of `torchmetrics.Metric`.

    See Also
    --------
    TokenCalibrationError : The same for the tokens of a language model.
    calibrant.Sketch : The sums of arrays, files and frames.

    Examples
    --------
    >>> import torch
    >>> metric = CalibrationError(estimator="uniform:2")
    >>> metric.update(torch.tensor([0.2, 0.4, 0.9]), torch.tensor([0, 1, 1]))
    >>> metric.update(torch.tensor([0.1, 0.8]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 6)
    0.12
    """

    is_differentiable: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    plot_lower_bound: ClassVar[float] = 0.0
    # Whether the scores of all classes are rows of one problem.
    _pooled: bool = False

    def __init__(
        self,
        notion: str | None = None,
        estimator: Any = "auto",
        *,
        n_bins: int | None = None,
        strategy: str | None = None,
        norm: str = "l1",
        num_classes: int | None = None,
        ignore_index: int | None = None,
        from_logits: bool | None = None,
        weighted: bool = False,
        class_axis: int = 1,
        class_names: Sequence[str] | Mapping[Any, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        refuse_related(notion)
        check_choice("norm", norm, ("l1", "l2", "max"))
        if estimator == "auto":
            estimator = chosen_bins(estimator, n_bins, strategy)
        elif n_bins is not None or strategy is not None:
            rule = "be left out where estimator is given"
            raise InputError("n_bins and strategy", rule, got=f"estimator={estimator!r}")
        self._notion: Notion | None = None if notion is None else get_notion(notion)
        classwise = self._notion is not None and self._notion.classwise
        self.estimator, self.norm, self.ignore_index = estimator, norm, ignore_index
        self.num_classes, self.class_axis, self.weighted = num_classes, class_axis, weighted
        self.class_names = given_class_names(class_names)
        resolved = resolve(estimator, shared=classwise)
        problems = positive_int("num_classes", num_classes, 2) if classwise else 1
        self._layout = FINE if self._notion is None or self._notion.size(num_classes or 2) <= 20 else COARSE
        self._bins: int | None = None
        if problems > MOST_CLASSES:
            bins = resolved.n_bins if isinstance(resolved, Binned) else None
            if str(resolved) != f"uniform:{bins}" or not isinstance(bins, int) or weighted:
                rule = f"be uniform:B for {problems} classes, without weights: cells of more than"
                raise InputError("estimator", f"{rule} {MOST_CLASSES} classes are too large", str(resolved))
            self._bins = bins
        kind = torch.float64 if weighted else torch.int64
        shape = (3, problems, self._bins) if self._bins else (6, problems, self._layout.size)
        pair, reduction = ((2,), compensated_sum) if weighted else ((), partial(torch.sum, dim=0))
        self.add_state("sums", torch.zeros(*pair, *shape, dtype=kind), reduction, persistent=True)
        clustered = (2, problems if problems <= MOST_CLUSTERED else 0, *cluster_rows.SHAPE)
        self.add_state("cluster_sums", torch.zeros(*pair, *clustered, dtype=kind), reduction, persistent=True)
        # Rows, right, impossible, log loss, Brier score, rows that were refused by fault, dependent rows.
        self.add_state("row_sums", torch.zeros(*pair, 10, dtype=kind), reduction, persistent=True)
        # The number of classes (1: scores of one class); 2 for logits, 1 for probabilities; 2 with clusters,
        # 1 without. 0: not known.
        self.add_state("facts", torch.zeros(3, dtype=torch.int64), _agreed, persistent=True)
        self._known = [0, 0 if from_logits is None else 1 + bool(from_logits), 0]

    @property
    def from_logits(self) -> bool | None:
        """Whether `preds` are logits; None before the first batch if it was not given."""
        return self._known[1] == 2 if self._known[1] else None

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        mask: Tensor | None = None,
        cluster: Tensor | None = None,
    ) -> None:
        """Add a batch.

        Bad values are an error at once on a CPU. On other devices their rows are left out, and `compute`
        raises the error, since looking at the values would make each batch wait for the device.

        Parameters
        ----------
        preds : tensor of shape (N, ...) or (N, C, ...)
            Scores of one class, or of every class: probabilities or logits.
        target : tensor of shape (N, ...)
            Labels: integers from 0 on, or booleans.
        sample_weight : tensor of shape (N, ...), optional
            Importance weights, if the metric is `weighted`.
        mask : tensor of bool of shape (N, ...), optional
            Which entries count.
        cluster : tensor of int of shape (N,), (N, ...), optional
            Id of the image, sequence or question of each entry, or of all entries of an index of the first
            axes. Entries of a cluster may depend on each other; clusters are independent. An id means the
            same cluster in all batches and processes. All batches have clusters, or none. The value of the
            default estimator, the interval, the test and the curve account for them. Many ids are pooled into
            251 groups by their remainder.

        Examples
        --------
        >>> metric = CalibrationError(from_logits=True, ignore_index=-100)
        >>> metric.update(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, -100]))
        """
        with torch.no_grad():
            self._update(preds.detach(), target, sample_weight, mask, cluster)

    def _update(
        self,
        preds: Tensor,
        target: Tensor,
        weight: Tensor | None,
        mask: Tensor | None,
        cluster: Tensor | None,
    ) -> None:
        scores, label = self._flattened(preds, target)
        ignore = NO_LABEL if self.ignore_index is None else self.ignore_index
        for name, values in (("mask", mask), ("sample_weight", weight)):
            if values is not None and values.shape != target.shape:
                rule = f"have the shape of target, {tuple(target.shape)}"
                raise InputError(name, rule, got=str(tuple(values.shape)))
        if mask is not None:
            label = torch.where(mask.reshape(-1).to(torch.bool), label.long(), ignore)
        if (weight is not None) != self.weighted:
            rule = "be given in all batches if the metric is weighted, and in none otherwise"
            raise InputError("sample_weight", rule, got=f"weighted={self.weighted}")
        group = None
        if cluster is not None:
            group = cluster_rows.groups_of(torch.as_tensor(cluster, device=preds.device), target.shape)
        if not len(label):
            return
        known = self._learn(scores, label, ignore, clustered=group is not None)
        if not known[1]:  # all entries are left out
            self._keep((), known)
            return
        logits, tolerance = known[1] == 2, reduce.sum_tolerance(scores)
        notion = default_notion(self._notion, vector=scores.ndim == 1)
        if scores.ndim == 2 and notion.is_binary and not self._pooled:
            second = reduce.wide(scores[:, 1])
            scores = second - reduce.wide(scores[:, 0]) if logits else second
        states = [self.sums, self.row_sums] + [self.cluster_sums] * (group is not None)
        added = [torch.zeros_like(state[0] if self.weighted else state) for state in states]
        row_sums = added[1]
        if weight is not None:
            weight, label = weight.reshape(-1).double(), label.long()
            is_bad = (label != ignore) & ~((weight >= 0) & (weight < float("inf")))
            row_sums[_BAD_WEIGHT] = is_bad.sum()
            label = torch.where(is_bad, ignore, label)
            weight = torch.where(label != ignore, weight, 0)
        if group is None and target.ndim > 1:
            valid = (label.long() != ignore).reshape(len(target), -1).sum(1)
            row_sums[_DEPENDENT] = torch.where(valid > 1, valid, 0).sum()
        batch = ScoreBatch(scores, label, weight, ignore, logits, tolerance, group)
        self._add(added, notion, batch)
        if preds.device.type == "cpu":
            self._refuse(row_sums, logits=logits)
        self._keep(zip(states, added, strict=True), known)

    def _keep(self, additions: Iterable[tuple[Tensor, Tensor]], known: list[int]) -> None:
        """Add sums of a batch to the states, and store what it told."""
        with _ADDING:
            if any(a and b and a != b for a, b in zip(self._known, known, strict=True)):
                raise InputError(
                    "preds", "be of the same kind in all batches", got="two kinds in two threads"
                )
            self._known = known
            self.facts.copy_(torch.tensor(known))
            for state, more in additions:
                if self.weighted:
                    compensated_add(state, more)
                else:
                    state += more
            if not self.weighted and not self._bins:
                # The same bits for any order of the batches.
                self.sums[4] += self.sums[5] >> 32
                self.sums[5] &= LIMB - 1

    def _add(self, added: list[Tensor], notion: Notion, batch: ScoreBatch) -> None:
        """Add a batch to sums, by the kernels if they can."""
        sums, row_sums, cluster_sums = added[0], added[1], added[2] if batch.group is not None else None
        kernels = None if self.weighted or batch.group is not None else fused(batch.x)
        if kernels and batch.x.ndim == 1:
            kernels.add_scores(sums, batch, self._layout, row_sums[_BAD])
            return
        maker = kernels or reduce
        rows: Rows = maker.top_rows(row_sums, batch, notion.top or 1)
        if notion.classwise or self._pooled:
            parts = sums, batch, rows, self._layout
            if kernels:
                kernels.add_classes(*parts, pooled=self._pooled)
            else:
                reduce.add_classes(*parts, cluster_sums, pooled=self._pooled)
        elif kernels:
            kernels.add_scores(
                sums, batch._replace(x=rows.score, label=rows.code, logits=False), self._layout
            )
        else:
            add_rows(sums, rows.score, rows.code, self._layout, batch.weight, None)
            if cluster_sums is not None and batch.group is not None:
                by_row = rows.score, rows.code, batch.weight, batch.group, None
                cluster_rows.add_by_group(cluster_sums, *by_row)

    def _flattened(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of shape (rows,) or (rows, classes), and labels of shape (rows,)."""
        for name, values, floating in (("preds", preds, True), ("target", target, False)):
            if values.is_floating_point() != floating or values.is_complex():
                kinds = "floating point" if floating else "integers or booleans"
                raise InputTypeError(name, f"hold {kinds}", got=str(values.dtype))
        if preds.device != self.sums.device or preds.device != target.device:
            devices = f"{preds.device}, {target.device} and a metric on {self.sums.device}"
            raise InputError("preds and target", "be on the device of the metric", got=devices)
        label = target.to(torch.uint8) if target.dtype == torch.bool else target
        if preds.shape == target.shape:
            self._refuse_one_hot(preds, target)
            return preds.reshape(-1), label.reshape(-1)
        rows = reduce.class_rows("preds", preds, target.shape, self.class_axis)
        scores = rows.reshape(target.numel(), rows.shape[-1])
        return scores if scores.stride(-1) == 1 else scores.contiguous(), label.reshape(-1)

    def _refuse_one_hot(self, preds: Tensor, target: Tensor) -> None:
        """Refuse one-hot targets, whose entries would all be rows of one binary problem."""
        axis, asked = self.class_axis, self._notion is not None and self._notion.is_binary
        if asked or self._known[0] or self.facts.any() or not -target.ndim <= axis < target.ndim:
            return
        if target.ndim < 2 or target.shape[axis] < 2:
            return
        hot = reduce.sample_rows(target.movedim(axis, -1)).long()
        hot = hot[(hot != (0 if self.ignore_index is None else self.ignore_index)).any(-1)]
        total = reduce.wide(reduce.sample_rows(preds.movedim(axis, -1))).sum(-1)
        exclusive = bool(((total - 1).abs() <= reduce.sum_tolerance(preds)).all())
        if len(hot) >= (1 if exclusive else ENOUGH) and bool(
            ((hot == 0) | (hot == 1)).all() & (hot.sum(-1) == 1).all()
        ):
            hint = f"pass target.argmax({axis}), or notion='binary' for separate yes-or-no questions"
            got = f"one-hot vectors on axis {axis}"
            raise InputError("target", "hold the class of each entry", got=got, hint=hint)

    def _learn(self, scores: Tensor, label: Tensor, ignore: int, *, clustered: bool) -> list[int]:
        """Return what is known with this batch: the number of classes, the kind of scores, and clusters."""
        classes = 1 if scores.ndim == 1 else scores.shape[1]
        known = list(self._known)
        if not known[0] and self.facts.any():
            known = [stored or told for stored, told in zip(self.facts.tolist(), known, strict=True)]
        is_first = not known[0]
        expected = known[0] or classes
        expected = self.num_classes if self.num_classes is not None and classes > 1 else expected
        notion = default_notion(self._notion, vector=classes == 1)
        if expected != classes:
            raise InputError("preds", f"have {expected} classes in all batches", got=str(classes))
        if classes == 1 and (notion.top or notion.classwise or self._pooled):
            raise InputError("preds", f"have an axis of classes where the notion is {notion}", got="none")
        notion.check(vector=classes == 1, labels=range(max(classes, 2)), positive=1 if classes <= 2 else None)
        if clustered and not self.cluster_sums.numel():
            rule = f"go with at most {MOST_CLUSTERED} classes for class-wise calibration"
            raise InputError("cluster", rule, got=f"{classes} classes", hint="use confidence or binary")
        if known[2] and known[2] != 1 + clustered:
            raise InputError("cluster", "be given in all batches or in none")
        known[0], known[2] = classes, 1 + clustered
        if not known[1]:
            valid = self._sampled(scores, label, ignore)
            if not len(valid):
                return known
            inside = bool(((valid >= 0) & (valid <= 1)).all())
            off = (classes > 1) * (reduce.wide(valid).sum(-1) - 1).abs()
            logits = not inside or bool((off > reduce.sum_tolerance(scores)).any())
            if logits:
                why = "do not sum to 1" if inside else "do not lie in [0, 1]"
                text = f"preds are taken for logits, since those of the first batch {why}: pass from_logits"
                warnings.warn(text, InputWarning, stacklevel=5)
            known[1] = 1 + logits
        elif (
            is_first
            and known[1] == 2
            and scores.device.type == "cpu"
            and reduce.look_like_probabilities(self._sampled(scores, label, ignore))
        ):
            text = (
                "preds look like probabilities and are taken for logits: pass from_logits=False if not logits"
            )
            warnings.warn(text, InputWarning, stacklevel=5)
        return known

    @staticmethod
    def _sampled(scores: Tensor, label: Tensor, ignore: int) -> Tensor:
        """Return a bounded number of rows that count, as those of a large batch take long to look at."""
        rows = scores[:, None] if scores.ndim == 1 else scores
        kept = (label.long() != ignore).nonzero()[:, 0]
        sample = rows[kept[reduce.sample_of(len(kept), rows.shape[1], rows.device)]]
        return sample[:, 0] if scores.ndim == 1 else sample

    def _refuse(self, row_sums: Tensor, *, logits: bool | None) -> None:
        """Raise an error for the first kind of fault."""
        for (name, rule), count in zip(_FAULTS, row_sums[_BAD].tolist(), strict=True):
            hint = "are these logits? pass from_logits=True" * (name == "preds" and not logits)
            if count:
                raise InputError(name, rule, got=f"{count:.0f} rows that do not", hint=hint)

    def to_sketch(self) -> Sketch:
        """Return the sums as a `calibrant.Sketch`, which answers all questions that sums can answer.

        A sketch does not hold clusters: its results treat rows as independent, and say so.

        Examples
        --------
        >>> metric = CalibrationError()
        >>> metric.update(torch.tensor([0.2, 0.4, 0.9]), torch.tensor([0, 1, 1]))
        >>> metric.to_sketch()
        Sketch(notion='binary', n=3)
        """
        with self._all_processes():
            return self._sketch(clustered=False)

    def _all_processes(self) -> AbstractContextManager[None]:
        """Return a context in which the states are those of all processes."""
        return self.sync_context() if self._to_sync and not self._is_synced else nullcontext()

    def _sketch(self, *, clustered: bool = True) -> Sketch:
        """Return the sketch of the states as they are, without those of other processes.

        With `clustered`, it has the sums by cluster if there are any; it is for results of the metric only.
        """
        if self._bins:
            raise InputError("num_classes", f"be at most {MOST_CLASSES} for a sketch", self.num_classes)
        sums, row_sums, classes = self._checked()
        notion = get_notion("binary") if self._pooled else default_notion(self._notion, vector=classes == 1)
        vector = classes == 1 or notion.is_binary
        columns = 2 if vector else classes
        support, batch = notion.support(columns), notion.classwise
        cells = to_cells(sums, self._layout, support, weighted=self.weighted, batch=batch)
        if not cells.sums.w.any():
            raise ValueError(EMPTY)
        sketch = Sketch(notion.name, n_classes=columns, class_names=self.class_names)
        sketch.labels, sketch.positive = tuple(range(columns)), 1 if columns == 2 else None
        sketch._vector, sketch._cells = vector, cells
        weight = float(np.max(cells.sums.w.sum(axis=-1)))
        rows = float(row_sums[_ROWS]) if self.weighted else weight
        totals = _totals_of_cells(cells, rows) if vector else _totals(row_sums, weight)
        dependent = round(float(row_sums[_DEPENDENT]))
        if self._known[2] == 2 and clustered:
            sums = self.cluster_sums.sum(0) if self.weighted else self.cluster_sums
            sketch._cluster_sums = cluster_rows.to_cluster_sums(sums, weighted=self.weighted)
        elif self._known[2] == 2:
            dependent = totals.rows
        sketch.totals = replace(totals, dependent=min(dependent, totals.rows))
        return sketch

    def _checked(self) -> tuple[Tensor, Tensor, int]:
        """Return the states, after a check that rows were added and none refused."""
        sums, row_sums = (state.sum(0) if self.weighted else state for state in (self.sums, self.row_sums))
        self._refuse(row_sums, logits=self.from_logits)
        if not self.facts.any():
            raise ValueError(EMPTY)
        self._known = self.facts.tolist()
        return sums, row_sums, self._known[0]

    def compute(self) -> Tensor:
        """Return the calibration error, as `calibrant.ece` does for the rows of all batches and processes.

        Examples
        --------
        >>> metric = CalibrationError(estimator="uniform:2")
        >>> metric.update(torch.tensor([0.25, 0.75]), torch.tensor([0, 1]))
        >>> metric.compute().item()
        0.25
        """
        with self._all_processes():
            options = {"estimator": self.estimator, "norm": self.norm}
            error = self._binned_error() if self._bins else self._sketch().ece(**options)
            return torch.tensor(error, dtype=torch.float64, device=self.sums.device)

    def _binned_error(self) -> float:
        """Return the mean error of the classes by their bins."""
        sums, _, _ = self._checked()
        w, wy, ws = sums.cpu().numpy().astype(np.float64)
        notion, bins = get_notion(self._notion), w.shape[1]
        low = np.arange(bins) / bins
        high = np.append(np.nextafter(low[1:], 0), 1.0)
        if not w.any():
            raise ValueError(EMPTY)
        ws = np.clip(ws / reduce.bin_scale(bins) - low * w, 0, w * (high - low))
        none = np.zeros_like(w)
        cells = Cells(Moments(w, ws, wy, none, none, low), low, high, w.sum(axis=-1))
        return notion.combine(resolve(self.estimator, shared=True).fit(cells).error(self.norm), self.norm)  # type: ignore[arg-type]

    def estimate(self, **options: Any) -> Estimate:
        """Estimate the calibration error with interval, null distribution and test.

        Parameters
        ----------
        **options : dict
            Options of `calibrant.estimate`.

        Examples
        --------
        >>> metric = CalibrationError()
        >>> metric.update(torch.linspace(0, 1, 200), torch.arange(200) % 2)
        >>> metric.estimate(rng=0).p_value < 0.01
        True
        """
        with self._all_processes():
            sketch = self._sketch()
        return sketch.estimate(**{"estimator": self.estimator} | options)

    def curve(self, **options: Any) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """Fit the reliability curve.

        Parameters
        ----------
        **options : dict
            Options of `calibrant.reliability_curve`.

        Examples
        --------
        >>> metric = CalibrationError()
        >>> metric.update(torch.linspace(0, 1, 200), torch.arange(200) % 2)
        >>> round(float(metric.curve().at(0.9).value), 1)
        0.5
        """
        with self._all_processes():
            sketch = self._sketch()
        return sketch.curve(**options)

    def plot(self, val: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw the reliability curve.

        Parameters
        ----------
        val : optional
            Values over time, which are drawn as `torchmetrics.Metric.plot` does.
        ax : matplotlib axes, optional
            Where to draw.
        **options : dict
            Options of `ReliabilityCurve.plot`.

        Returns
        -------
        figure and axes
        """
        if val is not None:
            return self._plot(val, ax)
        ax = self.curve().plot(ax=ax, **options)
        return ax.figure, ax

    def extra_repr(self) -> str:
        """Return what was asked and what the first batch told."""
        vector = self._known[0] == 1
        notion = default_notion(self._notion, vector=vector) if self._known[0] else self._notion
        notion_name = None if notion is None else notion.name
        return f"notion={notion_name!r}, estimator={str(self.estimator)!r}, from_logits={self.from_logits}"


def _agreed(stacked: Tensor) -> Tensor:
    """Return what the first batches of all processes told, which must be the same."""
    highest = stacked.amax(0)
    if ((stacked != 0) & (stacked != highest)).any():
        kinds = f"all processes must have the same classes and kind of scores, got {stacked.tolist()}"
        raise ValueError(kinds)
    return highest


def _totals(row_sums: Tensor, weight: float) -> Totals:
    """Return the totals of a sketch of score vectors."""
    rows, right, impossible, loss, brier = (float(value) for value in row_sums[:5])
    loss, brier = max(loss / LOSS_STEPS, 0.0), max(brier / BRIER_STEPS, 0.0)
    return Totals(round(rows), weight, min(right, weight), loss, impossible, brier)


def _totals_of_cells(cells: Cells, rows: float) -> Totals:
    """Return the totals of a sketch of scores of one class; the log loss is that of the cells.

    A cell is narrow: its mean and variance give the log loss of its rows to 1e-5. Scores within 2^-50 of 0
    or 1 are 0 or 1.
    """
    w, ws, wy, wsy, wss = cells.sums.parts
    weight, square = float(w.sum()), wss + 2 * cells.low * ws + cells.low**2 * w
    # In the first cell above 0.5, scores of exactly 0.5 predict the negative class.
    predicted = (cells.low > 0.5) | ((cells.low == 0.5) & (ws > 0))
    right = float(np.where(predicted, wy, w - wy).sum())
    variance, loss, impossible = cells.variance_within, 0.0, 0.0
    negative, above = w - wy, ws - wsy
    for mass, offset, start, end in ((wy, wsy, cells.low, 0), (negative, -above, 1 - cells.low, -1)):
        impossible += float(mass[end])
        occupied = mass > 0
        occupied[end] = False
        mean = start[occupied] + offset[occupied] / mass[occupied]
        correction = variance[occupied] / (2 * mean * mean)
        loss += float(mass[occupied] @ (correction - np.log(mean)))
    brier = 2 * float((square - 2 * (wsy + cells.low * wy) + wy).sum())
    return Totals(round(rows), weight, right, max(loss, 0.0), impossible, max(brier, 0.0))
