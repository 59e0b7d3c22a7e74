"""How far a reading of files is, on disk, so that it can go on after it was stopped, however that came.

A checkpoint is a folder: `state.json` says what is read and which of the files beside it hold the sums. It
is replaced last and in one step, so that state and sums belong together whenever the machine stops. Its
checksum covers the digests of the sums: what anything else has changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from calibrant import __version__
from calibrant.atomic import LOCK, Hold, is_beginning, write_whole
from calibrant.data.files import called
from calibrant.data.readers import Source
from calibrant.inputs import parsed_json
from calibrant.sketch import Sketch

FORMAT, STATE = 6, "state.json"
_SUMS = re.compile(r"sums-([0-9a-f]{12})-\d+\.sketch")


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
        self.files: list[list[Any]] = [
            [os.path.realpath(file.path), file.size, file.changed] for file in sources
        ]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder if need be, and keep other processes from it.

        Raises
        ------
        ValueError
            If it is something else.
        BlockingIOError
            If another process holds it.
        """
        if self.folder.is_file():
            raise ValueError(f"{self._name} is a file, and a checkpoint is a folder; give another one")
        if not (self.folder / STATE).exists():
            self._check_empty()
        real = Path(os.path.realpath(self.folder))
        for name, _, _ in self.files:
            if Path(name).is_relative_to(real):
                raise ValueError(f"{self._name} holds an input, {called(name)}; give another folder")
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
        with Hold(self.folder, self._name) as self._hold:
            yield

    def load(self) -> State | None:
        """What an earlier run has read; None if there was none.

        Raises
        ------
        ValueError
            If it was a run over other files, with other options or by another version, or if anything was
            changed since.
        """
        path = self.folder / STATE
        if not path.exists():
            return None
        try:
            values = parsed_json(path.read_text(encoding="utf-8"))
            self._check(values)
            sums = {key: self._sums(name, digest) for key, name, digest in values["sums"]}
            done, row, rows = (int(values[key]) for key in ("files_read", "row", "rows"))
            return State(done, row, rows, tuple(values["seen"]), sums)
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError, OSError) as error:
            self._refuse(f"is damaged ({' '.join(str(error).split())})")

    def _sums(self, name: str, digest: str) -> Sketch:
        path = self.folder / Path(name).name
        if _digest(path) != digest:
            self._refuse(f"has been damaged or changed ({path.name} is not what was written)")
        return Sketch.load(path)

    def save(self, state: State) -> None:
        """Keep what has been read."""
        self._hold.check()
        with self._writing():
            self._save(state)

    def _save(self, state: State) -> None:
        # Names that no other state knows: whatever is written beside it cannot change what it means.
        sums, own = [], os.urandom(6).hex()
        for k, (key, sketch) in enumerate(state.sketches.items()):
            path = self.folder / f"sums-{own}-{k}.sketch"
            sketch.save(path)
            sums.append((key, path.name, _digest(path)))
        values = {
            "format": FORMAT,
            **_versions(),
            "options": self.options,
            "files": self.files,
            "files_read": state.files,
            "row": state.row,
            "rows": state.rows,
            "seen": state.seen,
            "sums": sums,
        }
        values["checksum"] = _checksum(values)
        write_whole(self.folder / STATE, [json.dumps(values, indent=1).encode()])
        for old in self.folder.iterdir():
            match = _SUMS.fullmatch(old.name)
            if is_beginning(old) or (match and match[1] != own):
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
                if not (path.name == LOCK or is_beginning(path) or _SUMS.fullmatch(path.name)):
                    raise ValueError(f"{self._name} holds other files and no checkpoint; give another folder")

    def _check(self, values: Any) -> None:
        if values["format"] != FORMAT:
            self._refuse(f"has format {values['format']}, and this calibrant goes on with format {FORMAT}")
        for name, version in _versions().items():
            if values[name] != version:
                self._refuse(f"was made by {name} {values[name]}, and this is {version}")
        if values.pop("checksum") != _checksum(values):
            self._refuse(f"has been damaged or changed ({STATE} is not what was written)")
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


def _versions() -> dict[str, str]:
    """Return what the last bits of the sums depend on."""
    return {"calibrant": __version__, "numpy": np.__version__}


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(values: Mapping[str, Any]) -> str:
    """Return the digest of a state, however its JSON is laid out."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
