"""The base class of the metrics: that of torchmetrics, or a plain one with the same methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn


class PlainMetric(nn.Module):
    """The part of `torchmetrics.Metric` that the metrics of this package use: states are tensors.

    Parameters
    ----------
    sync_on_compute : bool, default=True
        Whether `compute` combines the states of all processes of `torch.distributed`.
    """

    def __init__(self, *, sync_on_compute: bool = True) -> None:
        super().__init__()
        self.sync_on_compute = self._to_sync = sync_on_compute
        self._is_synced = False
        self._reductions: dict[str, Callable[[Tensor], Tensor]] = {}

    def add_state(
        self, name: str, default: Tensor, dist_reduce_fx: Callable[[Tensor], Tensor], persistent: bool
    ) -> None:
        """Add a state and the function that combines it along a new first axis."""
        self.register_buffer(name, default, persistent=persistent)
        self._reductions[name] = dist_reduce_fx

    @property
    def device(self) -> torch.device:
        """Device of the states."""
        return next(self.buffers()).device

    @property
    def metric_state(self) -> dict[str, Tensor]:
        """The states by name."""
        return {name: getattr(self, name) for name in self._reductions}

    def reset(self) -> None:
        """Forget all rows."""
        for state in self.metric_state.values():
            state.zero_()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add a batch and return the value of this batch alone."""
        before = {name: state.clone() for name, state in self.metric_state.items()}
        self.reset()
        self._to_sync = False
        try:
            self.update(*args, **kwargs)
            value: Tensor = self.compute()
        finally:
            self._to_sync = self.sync_on_compute
            for name, state in self.metric_state.items():
                state.copy_(self._reductions[name](torch.stack([before[name], state])))
        return value

    @contextmanager
    def sync_context(self) -> Iterator[None]:
        """Replace the states by those of all processes, until the end of the context."""
        if not (distributed.is_available() and distributed.is_initialized()):
            yield
            return
        mine = {name: state.clone() for name, state in self.metric_state.items()}
        try:
            for name, state in mine.items():
                every = [torch.empty_like(state) for _ in range(distributed.get_world_size())]
                distributed.all_gather(every, state)
                getattr(self, name).copy_(self._reductions[name](torch.stack(every)))
            self._is_synced = True
            yield
        finally:
            self._is_synced = False
            for name, state in mine.items():
                getattr(self, name).copy_(state)

    def _plot(self, val: Any, ax: Any = None) -> Any:
        """Draw values over time."""
        from matplotlib import pyplot

        ax = pyplot.subplots()[1] if ax is None else ax
        ax.plot([float(each) for each in (val if isinstance(val, list | tuple) else [val])], marker="o")
        return ax.figure, ax


if TYPE_CHECKING:
    Base = PlainMetric
else:
    try:
        from torchmetrics import Metric as Base
    except ImportError:
        Base = PlainMetric
