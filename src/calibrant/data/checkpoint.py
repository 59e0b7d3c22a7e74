"""How far a reading of files is, on disk, so that it can go on after it was stopped, however that came.

A checkpoint is a folder: `state.json` says what is read and which of the files beside it hold the sums. It
is replaced last and in one step, so that state and sums belong together whenever the machine stops.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from calibrant import __version__
from calibrant.atomic import write_whole
from calibrant.data.files import called
from calibrant.data.readers import Source
from calibrant.sketch import Sketch

FORMAT, STATE = 3, "state.json"


@dataclass(frozen=True, eq=False)
class State:
    """What has been read.

    Attributes
    ----------
    files, row : int
        Files that are read in full, and rows of the next one.
    rows : int
        Rows in all.
    seen : tuple
        Labels that occurred, where these have to be known.
    sketches : mapping
        The sums of each group; without groups there is one, None.
    """

    files: int = 0
    row: int = 0
    rows: int = 0
    seen: tuple[Any, ...] = ()
    sketches: Mapping[Any, Sketch] = field(default_factory=dict)


class Checkpoint:
    """The folder of a checkpoint.

    Parameters
    ----------
    folder : path
    options : mapping
        What was asked; another question cannot go on with these sums.
    sources : sequence of Source
        The files.
    """

    def __init__(
        self, folder: str | os.PathLike[str], options: Mapping[str, Any], sources: Sequence[Source]
    ) -> None:
        self.folder = Path(folder)
        # As JSON gives it back.
        self.options = json.loads(json.dumps(dict(options), default=str))
        self.files = [[os.path.realpath(file.path), file.size, file.changed] for file in sources]

    def load(self) -> State | None:
        """What an earlier run has read; None if there was none.

        Raises
        ------
        ValueError
            If it was a run over other files, with other options or by another version.
        """
        if self.folder.is_file():
            raise ValueError(f"{self._name} is a file, and a checkpoint is a folder; give another one")
        path = self.folder / STATE
        if not path.exists():
            self._check_empty()
            with self._writing():
                self.folder.mkdir(parents=True, exist_ok=True)
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            self._check(values)
            sums = {key: Sketch.load(self.folder / Path(name).name) for key, name in values["sums"]}
            done, row, rows = (int(values[key]) for key in ("files_read", "row", "rows"))
            return State(done, row, rows, tuple(values["seen"]), sums)
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError, OSError) as error:
            self._refuse(f"is damaged ({' '.join(str(error).split())})")

    def save(self, state: State) -> None:
        """Keep what has been read."""
        with self._writing():
            self._save(state)

    def _save(self, state: State) -> None:
        # Names that no other state knows: whatever is written beside it cannot change what it means.
        sums, own = [], os.urandom(6).hex()
        for k, (key, sketch) in enumerate(state.sketches.items()):
            name = f"sums-{own}-{k}.sketch"
            sketch.save(self.folder / name)
            sums.append((key, name))
        values = {
            "format": FORMAT,
            "calibrant": __version__,
            "options": self.options,
            "files": self.files,
            "files_read": state.files,
            "row": state.row,
            "rows": state.rows,
            "seen": state.seen,
            "sums": sums,
        }
        write_whole(self.folder / STATE, [json.dumps(values, indent=1).encode()])
        for old in self.folder.glob("sums-*.sketch"):
            if not old.name.startswith(f"sums-{own}-"):
                with suppress(OSError):
                    old.unlink()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise type(error)(f"cannot write {self._name}: {error.strerror or error}") from None

    @property
    def _name(self) -> str:
        return f"checkpoint {called(str(self.folder))}"

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self._name} {why}; delete it to start anew, or give another folder")

    def _check_empty(self) -> None:
        """A folder of other things is none of ours; one that was killed at once holds beginnings."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if not path.name.startswith(("sums-", ".sums-", f".{STATE}")):
                    raise ValueError(f"{self._name} holds other files and no checkpoint; give another folder")

    def _check(self, values: Any) -> None:
        made = values["calibrant"]
        if values["format"] != FORMAT or made != __version__:
            self._refuse(f"was made by calibrant {made}, and this is {__version__}")
        for key, value in values["options"].items():
            if value != self.options.get(key):
                now = self.options.get(key)
                self._refuse(f"was made with another {key}: {value!r}, and now {now!r}"[:500])
        known, found = ([str(name) for name, _, _ in files] for files in (values["files"], self.files))
        if known != found:
            other = min(set(known) ^ set(found))
            where = "not among the files now" if other in known else "not among its files"
            self._refuse(f"is of other files ({called(other)} is {where})")
        read = int(values["files_read"]) + (int(values["row"]) > 0)
        for then, file in zip(values["files"][:read], self.files, strict=False):
            if then != file:
                self._refuse(f"does not fit: {called(str(file[0]))} has changed since it was read")
