"""What `calibrant monitor --state` writes: the monitor, and the files that it has read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.inputs import InputError, Serializable
from calibrant.inputs.codec import Count
from calibrant.monitor.history import MonitorState


@dataclass(frozen=True)
class State(Serializable):
    """A monitor, and for each period the size, the time of change and the SHA-256 of its files, by path.

    The digest reveals a file that was changed or damaged, also where all of its numbers are possible.
    """

    monitor: MonitorState
    files: Mapping[str, Mapping[str, tuple[Count, int, str]]]
    digest: str

    @classmethod
    def of(cls, monitor: MonitorState, files: Mapping[str, Any]) -> State:
        """Return a state with its digest."""
        return cls(monitor, files, _digest(monitor, files))

    def _check_fields(self) -> None:
        periods = list(self.files)
        if periods != [batch.at for batch in self.monitor.batches]:
            raise InputError("files", "name the files of each batch in their order", periods)
        if self.digest != _digest(self.monitor, self.files):
            got = "another one: the file was changed or damaged"
            raise InputError("digest", "be that of the other fields", got=got)


def _digest(monitor: MonitorState, files: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a monitor and of what it has read."""
    values = [monitor.to_dict(), {period: dict(marks) for period, marks in files.items()}]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
