"""Which files are meant by a path, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from calibrant.data.files import SUFFIXES, called

#: Formats that are read in pieces.
PIECEWISE = ("csv", "tsv", "parquet", "arrow")

# What a folder is called whose rows have no value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def expanded(paths: Any, format: str | None = None) -> list[str]:
    """The files that are meant by a path, a folder, a pattern or several of these, in order of their names.

    Of a folder, and the folders in it, these are the files in a format that is read in pieces; names that
    begin with a dot or an underscore are left out, as those of temporary files do.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise ValueError("paths must name at least one file, got none")
    found = [file for one in several for file in _files(os.fspath(one), format)]
    known: dict[str, str] = {}
    for file in found:
        if (real := os.path.realpath(file)) in known:
            raise ValueError(f"{called(file)} is meant twice, and its rows would count twice")
        known[real] = file
    return sorted(found)


def told(path: str) -> dict[str, str]:
    """The columns that the folders of a file tell, such as those that Spark names `day=2026-05-04`.

    >>> told("sales/day=2026-05-04/shop=north%2Fwest/part-0.parquet")
    {'day': '2026-05-04', 'shop': 'north/west'}
    """
    pairs = [unquote(part).partition("=") for part in PurePath(path).parts[:-1] if "=" in part]
    return {name: "" if value == NO_VALUE else value for name, _, value in pairs if name}


def _files(path: str, format: str | None) -> list[str]:
    if os.path.isdir(path):
        return _folder(path, format)
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise FileNotFoundError(f"cannot read {called(path)}: no file matches")
    return [file for one in matches for file in (_folder(one, format) if os.path.isdir(one) else [one])]


def _folder(path: str, format: str | None) -> list[str]:
    found: dict[str, list[str]] = {}
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in files:
            suffix = PurePath(name.lower().removesuffix(".gz")).suffix
            kind = SUFFIXES.get(suffix, "") if format is None else format
            if name[0] not in "._" and kind in (PIECEWISE if format is None else (format,)):
                found.setdefault(kind, []).append(os.path.join(folder, name))
    if not found:
        raise ValueError(f"{called(path)}: holds no CSV, Parquet or Arrow files")
    if len(found) > 1:
        kinds = ", ".join(sorted(found))
        raise ValueError(f"{called(path)}: holds files of several formats, {kinds}; give one by a pattern")
    return next(iter(found.values()))
