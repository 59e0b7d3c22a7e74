"""Columns of numbers of a Parquet file, read by the compiled loop; all others are left to pyarrow."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import compiled
from calibrant.data.values import arrow_of

# Bytes of a value, 0 for a bit, and the types of Arrow that it may become, by its type in the file.
STORED = {
    "DOUBLE": (8, ("double",)),
    "FLOAT": (4, ("float",)),
    "INT64": (8, ("int64", "uint64")),
    "INT32": (4, ("int8", "uint8", "int16", "uint16", "int32", "uint32")),
    "BOOLEAN": (0, ("bool",)),
}
# Whether pages are in Snappy.
SQUEEZED = {"SNAPPY": True, "UNCOMPRESSED": False}


@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes
    ----------
    place : int
        Which column of the file it is.
    type : DataType
        Its type in Arrow.
    stored : int
        Bytes of a value in the file, 0 for a bit.
    optional : bool
        Whether values may be missing.
    """

    place: int
    type: Any
    stored: int
    optional: bool

    def read(self, file: Any, groups: Iterable[Any], rows: int) -> Any:
        """Return so many rows of row groups; None where the compiled loop does not know what they hold."""
        loops, kind = compiled.loops, self.type.to_pandas_dtype()
        if loops is None:
            return None
        out, first = np.empty(rows, dtype=kind), 0
        for group in groups:
            about = group.column(self.place)
            squeezed, last = SQUEEZED.get(about.compression), first + group.num_rows
            if squeezed is None or about.file_path:
                return None
            start = min(about.dictionary_page_offset or about.data_page_offset, about.data_page_offset)
            place = file.fileno(), start, about.total_compressed_size
            if not loops.read_pages(*place, self.stored, squeezed, self.optional, out[first:last]):
                return None
            first = last
        return arrow_of(out)


def numbers_in(file: Any, wanted: Collection[str]) -> Mapping[str, Numbers]:
    """Return the columns that the compiled loop may know, by name."""
    found: dict[str, Numbers] = {}
    schema, own = file.metadata.schema, file.schema_arrow
    types, wanted, names = dict(zip(own.names, own.types, strict=True)), {*wanted}, schema.names
    if not hasattr(compiled.loops, "read_pages") or sys.byteorder != "little" or len({*names}) < len(names):
        return found
    for place, name in enumerate(names):
        column = schema.column(place)
        stored, known = STORED.get(column.physical_type, (0, ()))
        flat = column.path == name and not column.max_repetition_level and column.max_definition_level <= 1
        if name in wanted and flat and str(types[name]) in known:
            found[name] = Numbers(place, types[name], stored, bool(column.max_definition_level))
    return found
