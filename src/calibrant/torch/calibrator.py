"""`CalibratorModule`: a fitted calibrator as a module, applied where the tensors are."""

from __future__ import annotations

import json
import math
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from calibrant.inputs import InputError, InputTypeError
from calibrant.maps import Calibrator
from calibrant.maps.forms import Bounded, Formula, LookupTable
from calibrant.maps.multiclass import NEWTON_STEPS, ZERO_RANGE, SoftmaxMap, newton_slope
from calibrant.posterior.softmax.blocks import CLASS_LIMIT, CURVE, SHIFT, TEMPERATURE_LIMIT, TIED, Blocks
from calibrant.torch.reduce import class_rows, look_like_probabilities, sample_rows, wide

# Entries of the logits that are read together.
CHUNK = 1 << 22


class CalibratorModule(nn.Module):
    """Map scores to calibrated probabilities, on the device of the scores.

    Parameters
    ----------
    calibrator : calibrant.Calibrator, optional
        A fitted calibrator of any method but "venn-abers". It takes logits if it was fitted with
        `from_logits=True`, and probabilities otherwise. Without it the module is to be filled by
        `load_state_dict`.
    class_axis : int, default=1
        Axis of the classes in the scores, as in `CalibrationError`; -1 for (batch, time, vocabulary). It is
        a part of the state that `load_state_dict` restores.

    Attributes
    ----------
    calibrator : calibrant.Calibrator
        The fitted calibrator, which can be saved as JSON.
    class_axis : int
        Axis of the classes.

    See Also
    --------
    calibrant.Calibrator : Fit a calibrator to arrays.

    Examples
    --------
    >>> import calibrant, torch
    >>> fitted = calibrant.Calibrator("logistic").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> CalibratorModule(fitted)(torch.tensor([0.2])).round(decimals=2)
    tensor([0.2100])
    """

    calibrator: Calibrator

    def __init__(self, calibrator: Calibrator | None = None, *, class_axis: int = 1) -> None:
        super().__init__()
        self.class_axis = _checked_axis(class_axis)
        if calibrator is not None:
            self._fill(calibrator)

    @classmethod
    def fit_temperature(
        cls, logits: Tensor, target: Tensor, *, ignore_index: int | None = None, class_axis: int = 1
    ) -> Self:
        """Fit a temperature to logits on their device, as `calibrant.Calibrator("temperature")` does.

        Logits of two classes are fitted on the CPU.

        Parameters
        ----------
        logits : tensor of shape (N, C, ...)
            Logits of data that the model was not trained on.
        target : tensor of shape (N, ...)
            Labels.
        ignore_index : int, optional
            Label of entries that are left out.
        class_axis : int, default=1
            Axis of the classes in `logits`, here and in the scores that the module is applied to.

        Returns
        -------
        CalibratorModule
            A module that takes logits.

        Examples
        --------
        >>> module = CalibratorModule.fit_temperature(torch.eye(3).repeat(20, 1), torch.arange(60) // 7 % 3)
        >>> module(torch.tensor([[4.0, 0.0, 0.0]])).shape
        torch.Size([1, 3])
        """
        class_axis = _checked_axis(class_axis)
        for name, values, floating in (("logits", logits, True), ("target", target, False)):
            if values.is_floating_point() != floating or values.is_complex():
                kinds = "floating point" if floating else "integers or booleans"
                raise InputTypeError(name, f"hold {kinds}", got=str(values.dtype))
        rows = class_rows("logits", logits.detach(), target.shape, class_axis)
        classes, label = rows.shape[-1], target.reshape(-1).long()
        x = rows.reshape(-1, classes)
        if ignore_index is not None:
            x, label = x[label != ignore_index], label[label != ignore_index]
        if not len(label) or ((label < 0) | (label >= classes)).any():
            raise InputError("target", f"hold labels from 0 to {classes - 1}")
        fitted = Calibrator("temperature", from_logits=True)
        if classes == 2:
            return cls(fitted.fit(x.cpu().double().numpy(), label.cpu().numpy()), class_axis=class_axis)
        slope, step = 1.0, max(1, CHUNK // classes)
        for _ in range(NEWTON_STEPS):
            sums = torch.zeros(2, dtype=torch.float64, device=x.device)
            for z, y in zip(x.split(step), label.split(step), strict=True):
                z = wide(z - z.amax(1, keepdim=True))
                p = (slope * z).softmax(1)
                mean = (p * z).sum(1)
                gradient = z.gather(1, y[:, None])[:, 0] - mean
                curvature = (p * (z - mean[:, None]).square()).sum(1)
                sums += torch.stack([gradient.double().sum(), curvature.double().sum()])
            before, slope = slope, float(newton_slope(slope, *(np.asarray(each) for each in sums.tolist())))
            if not math.isfinite(slope):
                raise InputError("logits", "be finite")
            if abs(slope / before - 1) < 1e-8:
                break
        fitted._set_classes(tuple(range(classes)))
        fitted._vector, fitted._positive = False, None
        fitted.n_, fitted.notion_ = float(len(label)), "classwise"
        fitted._multiclass = SoftmaxMap(classes, slope, ZERO_RANGE[0])
        return cls(fitted, class_axis=class_axis)

    def forward(self, scores: Tensor) -> Tensor:
        """Return calibrated probabilities, in float32 or float64.

        Parameters
        ----------
        scores : tensor of shape (N, C, ...), or of any shape for scores of one class
            Probabilities or logits; the classes are on `class_axis`. On a CPU, probabilities where logits are
            mapped are an error.
        """
        fitted, kind = self._fitted, scores.dtype if scores.dtype == torch.float64 else torch.float32
        if not scores.dtype.is_floating_point:
            raise InputTypeError("scores", "hold floating point", got=str(scores.dtype))
        if fitted._vector:
            p = scores.double().sigmoid() if fitted.from_logits else scores.double()
            return self._single(0, p).to(kind)
        axis = self.class_axis
        if not torch.jit.is_tracing():  # where sizes are no numbers
            self._check_classes(scores.shape)
        is_checked = fitted.from_logits and _can_be_looked_at(scores)
        if is_checked and look_like_probabilities(sample_rows(scores.detach().movedim(axis, -1))):
            rule = "be logits, as the calibrator was fitted to"
            raise InputError("scores", rule, got="probabilities: rows in [0, 1] that sum to 1")
        softmax = fitted._multiclass
        if softmax is not None and fitted.from_logits and softmax.blocks is None:
            return (softmax.slope * scores.to(kind)).softmax(axis)
        p = scores.double().movedim(axis, -1)
        p = p.softmax(-1) if fitted.from_logits else p
        return self._vectors(p).to(kind).movedim(-1, axis)

    def _check_classes(self, shape: torch.Size) -> None:
        """Refuse scores without the classes of the calibrator on their axis."""
        axis, classes = self.class_axis, len(self._fitted.classes_)
        if -len(shape) <= axis < len(shape) and shape[axis] == classes:
            return
        elsewhere = len(shape) > 1 and shape[-1] == classes
        hint = "pass class_axis=-1 if the classes are on the last axis" if elsewhere else ""
        raise InputError(
            "scores", f"have {classes} classes on axis {axis}", got=f"shape {tuple(shape)}", hint=hint
        )

    def _vectors(self, p: Tensor) -> Tensor:
        """Map probabilities of all classes, which are on the last axis."""
        fitted, softmax = self._fitted, self._fitted._multiclass
        if softmax is not None:
            return self._softmax(softmax, p.reshape(-1, softmax.n_classes)).reshape(p.shape)
        if len(fitted._forms) == 1:
            positive = 1 if fitted._positive is None else fitted._positive
            mapped = self._single(0, p[..., positive])
            both = [1 - mapped, mapped]
            return torch.stack(both[::-1] if positive == 0 else both, dim=-1)
        each = torch.stack([self._single(k, p[..., k]) for k in range(len(fitted._forms))], dim=-1)
        total = each.sum(-1, keepdim=True)
        return torch.where(total > 0, each / torch.where(total > 0, total, 1), 1 / each.shape[-1])

    @property
    def _fitted(self) -> Calibrator:
        """The calibrator; an error if there is none yet."""
        if "calibrator" not in self.__dict__:
            raise ValueError("the module has no calibrator: pass a fitted one, or call load_state_dict")
        return self.calibrator

    def _fill(self, calibrator: Calibrator) -> None:
        """Take the numbers of a fitted calibrator."""
        calibrator._check_fitted()
        if calibrator.notion is not None:
            raise InputError("calibrator", "map the scores of exclusive classes", calibrator.notion)
        self.calibrator = calibrator
        arrays: dict[str, Any] = {}
        for k, form in enumerate(calibrator._forms):
            if not isinstance(form, Formula | Bounded | LookupTable):
                raise InputError("calibrator", "have one map", calibrator.method)
            if isinstance(form, LookupTable):
                arrays |= {f"at{k}": form.at, f"value{k}": form.value}
        softmax = calibrator._multiclass
        if softmax is not None and softmax.blocks is not None:
            blocks, draws = softmax.blocks, softmax.draws
            arrays |= {
                name: getattr(blocks, name)
                for name in ("centre", "scale", "variance_time", "top_variance_time")
            }
            arrays |= {name: getattr(blocks, name) for name in ("axes", "origin", "bumps")}
            shared, by_class = blocks.shared_by_class, blocks.by_class_slice()
            of_class = np.zeros((len(draws), blocks.n_classes, max(shared, by_class.stop)))
            of_class[:, :, :shared] = draws[:, None, :shared]
            of_class[:, :, by_class] += draws[:, blocks.by_class]
            shifts = draws[:, shared : shared + 2 * SHIFT].reshape(-1, 2, SHIFT)
            arrays |= {"of_class": of_class, "of_row": draws[:, blocks.common], "shifts": shifts}
        for name, array in arrays.items():
            if array is not None:
                tensor = torch.tensor(np.asarray(array), dtype=torch.float64)
                self.register_buffer(name, tensor, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the numbers to a device, but keep them in double precision."""
        return super()._apply(lambda value: fn(value).to(torch.float64), recurse)

    def _single(self, k: int, p: Tensor) -> Tensor:
        """Apply the map of one score."""
        form = self.calibrator._forms[k]
        if isinstance(form, Bounded):
            return p.clamp(form.low, form.high)
        if isinstance(form, Formula):
            if form.is_identity:
                return p
            x = p.logit(eps=form.least)
            bend = math.log(4) + logsigmoid(x) + logsigmoid(-x)
            return torch.sigmoid(form.shift + form.slope * x + form.curvature * bend + form.square * x * x)
        assert isinstance(form, LookupTable)
        at, value = getattr(self, f"at{k}"), getattr(self, f"value{k}")
        x = p.logit(eps=form.least) if form.scale == "odds" else p
        if form.between == "line":
            result = _interpolate(x, at, value)
        else:
            right = form.between == "from"
            entry = torch.searchsorted(at, x.contiguous(), right=right) - int(right)
            result = value[entry.clamp(0, len(value) - 1)]
        return result.sigmoid() if form.scale == "odds" else result

    def _softmax(self, fitted: SoftmaxMap, p: Tensor) -> Tensor:
        """Apply the map of score vectors, a few rows at a time."""
        blocks, parts = fitted.blocks, []
        width = fitted.n_classes if blocks is None else max(blocks.size, fitted.n_classes)
        for rows in p.split(max(1, CHUNK // width)):
            mapped = (fitted.slope * rows.clamp(min=fitted.least).log()).softmax(-1)
            if blocks is not None and fitted.bent > 0:
                mapped = (1 - fitted.bent) * mapped + fitted.bent * self._drawn(blocks, mapped)
            mapped = fitted.untouched * rows + (1 - fitted.untouched) * mapped
            raised = mapped.clamp(min=fitted.floor)
            below = (mapped < fitted.floor).any(1, keepdim=True)
            parts.append(torch.where(below, raised / raised.sum(1, keepdim=True), mapped))
        return torch.cat(parts)

    def _drawn(self, blocks: Blocks, p: Tensor) -> Tensor:
        """Return the mean probabilities of the draws of the coefficients; see `Blocks.columns`."""
        log = p.clamp(min=blocks.least).log()
        x = ((log - self.centre) / self.scale).clamp(-CLASS_LIMIT, CLASS_LIMIT)
        tempered = (log - blocks.middle) / blocks.width
        by_class = [tempered.clamp(-TEMPERATURE_LIMIT, TEMPERATURE_LIMIT)[..., None]]
        if blocks.shared_by_class > 1:
            by_class.append(_cosines(_interpolate(p, *self.variance_time), CURVE))
        common = [torch.ones_like(x[:, :1])]
        if blocks.has_few_classes:
            common.append(x)
        else:
            by_class.append(x[..., None])
            common += [] if blocks.axes is None else [(x - self.origin) @ self.axes]
        if blocks.bumps is not None:
            common.append(torch.exp(-0.5 * torch.cdist(p.sqrt(), self.bumps).square() / blocks.bandwidth))
        class_features, row, total = torch.cat(by_class, dim=2), torch.cat(common, dim=1), torch.zeros_like(p)
        largest, best = p.topk(3, dim=1)
        separated = largest[:, 1:] < largest[:, :-1] * (1 - TIED)
        untied = torch.stack([separated[:, 0], separated.all(1)], dim=1)
        top = _cosines(_interpolate(largest[:, 0], *self.top_variance_time), SHIFT - 1)
        top = torch.cat([torch.ones_like(top[:, :1]), top], dim=1)
        for of_class, of_row, shifts in zip(self.of_class, self.of_row, self.shifts, strict=True):
            z = log + torch.einsum("nkj,kj->nk", class_features, of_class) + row @ of_row.T
            total += z.scatter_add(1, best[:, :2], (top @ shifts.T) * untied).softmax(1)
        return total / len(self.shifts)

    def get_extra_state(self) -> Tensor:
        """Return the calibrator and its class axis for `state_dict`: the bytes of a JSON text."""
        text = json.dumps({"class_axis": self.class_axis, "calibrator": json.loads(self._fitted.to_json())})
        return torch.tensor(list(text.encode("ascii")), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the calibrator and the class axis of a `state_dict`.

        Parameters
        ----------
        state : tensor
            What `get_extra_state` returned.
        """
        if not isinstance(state, Tensor) or state.dtype != torch.uint8 or state.ndim != 1:
            raise InputTypeError("state", "be the tensor of bytes that get_extra_state returned", state)
        try:
            content = json.loads(bytes(state.tolist()))
            class_axis, calibrator = content["class_axis"], json.dumps(content["calibrator"])
        except (ValueError, TypeError, KeyError) as error:
            raise InputError("state", "be what get_extra_state returned", got="other bytes") from error
        device = next(self.buffers(), torch.empty(0)).device
        self._fill(Calibrator.from_json(calibrator))
        self.class_axis = _checked_axis(class_axis)
        self.to(device)

    def extra_repr(self) -> str:
        """Return the fitted calibrator."""
        return f"{getattr(self, 'calibrator', None)!r}, class_axis={self.class_axis}"


def _checked_axis(class_axis: Any) -> int:
    """Return an axis that is an integer."""
    if isinstance(class_axis, bool) or not isinstance(class_axis, int):
        raise InputTypeError("class_axis", "be an integer", class_axis)
    return class_axis


def _can_be_looked_at(scores: Tensor) -> bool:
    """Tell whether values can be looked at: those on other devices and of traced programs cannot."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
    batched = torch._C._functorch.is_batchedtensor(scores)
    return scores.device.type == "cpu" and not traced and not batched


def _cosines(time: Tensor, count: int) -> Tensor:
    """Return sqrt(2) cos(pi k time) for k = 1, ..., count on a new last axis."""
    return math.sqrt(2) * torch.cos(
        math.pi * time[..., None] * torch.arange(1, count + 1, device=time.device)
    )


def _interpolate(x: Tensor, at: Tensor, value: Tensor) -> Tensor:
    """Interpolate linearly, and continue with the outermost values."""
    if len(at) == 1:
        return value[0].expand(x.shape)
    k = torch.searchsorted(at, x.contiguous(), right=True).clamp(1, len(at) - 1)
    width = at[k] - at[k - 1]
    share = torch.where(width > 0, ((x - at[k - 1]) / torch.where(width > 0, width, 1)).clamp(0, 1), 1.0)
    return value[k - 1] + share * (value[k] - value[k - 1])
