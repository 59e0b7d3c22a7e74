"""Columns of numbers of a Parquet file, read by the compiled loop; what it does not know is left to pyarrow."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import compiled

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
        import pyarrow as pa

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
        return pa.array(out)


def numbers_in(file: Any, wanted: Sequence[str]) -> Mapping[str, Numbers]:
    """Return the columns that the compiled loop may know, by name."""
    schema, types, found = file.metadata.schema, file.schema_arrow, {}
    names = schema.names
    for name in wanted if compiled.loops is not None and sys.byteorder == "little" else ():
        if names.count(name) != 1:
            continue
        place = names.index(name)
        column = schema.column(place)
        stored, known = STORED.get(column.physical_type, (0, ()))
        flat = column.path == name and not column.max_repetition_level and column.max_definition_level <= 1
        if flat and str(types.field(name).type) in known:
            found[name] = Numbers(place, types.field(name).type, stored, bool(column.max_definition_level))
    return found
