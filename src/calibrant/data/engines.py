"""How an engine runs a query: lazily where the data lie, in pieces where they lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from calibrant.evidence import Array

Query: TypeAlias = Callable[[Any], Any]

# Numbers of a frame in memory looked at together: the temporaries stay small.
BLOCK = 1 << 20
# Columns of scores that polars looks at together: a plan of many more takes longer than its work.
TOGETHER = 32
# Tables of sums of a Dask dataframe that are joined at a time.
JOINED = 8


def opened(frame: Any) -> Any:
    """A frame of any engine, as narwhals sees it.

    Raises
    ------
    TypeError
        If it is no frame.
    ValueError
        If several of its columns have one name.
    """
    try:
        frame = nw.from_native(nw.to_native(frame, pass_through=True))
    except TypeError:
        hint = "; open a file as a frame first, such as polars.scan_parquet(path)" * isinstance(frame, str)
        raise TypeError(
            "frame must be a pandas, polars, pyarrow, DuckDB, Dask, Ibis or PySpark frame, "
            f"got {type(frame).__name__}{hint}"
        ) from None
    except DuplicateError as error:
        text = " ".join(str(error).split())
        raise ValueError(f"columns of the frame must have different names: {text}") from None
    return frame.lazy() if frame.implementation.is_polars() else frame


def in_memory(frame: Any) -> bool:
    """Whether the rows lie in this process, to be cut into pieces; polars cuts for itself."""
    return isinstance(frame, nw.DataFrame)


def mapped(frame: Any, function: Query) -> Any:
    """A frame made row by row from another one."""
    if not frame.implementation.is_dask():
        return function(frame)
    native, one = frame.to_native(), partial(_native, function)
    return nw.from_native(native.map_partitions(one, meta=one(native._meta)))


def summed(frame: Any, query: Query, keys: Sequence[str]) -> dict[str, Any]:
    """What a query finds that groups rows by the keys and adds up; a key may be found several times.

    Parameters
    ----------
    frame : narwhals frame
        The rows.
    query : callable
        Makes a frame of the keys and sums out of a frame of rows. Piece by piece it must do too.
    keys : sequence of str
        The columns that are no sums.

    Returns
    -------
    dict
        An array for each column; a list for the column `g`, whose values may be of any type.
    """
    if in_memory(frame):
        step = max(1, BLOCK // len(frame.columns))
        parts = [query(frame[a : a + step]) for a in range(0, max(1, len(frame)), step)]
        return _arrays(nw.concat(parts) if len(parts) > 1 else parts[0])
    if frame.implementation.is_dask():
        # Dask's own expressions cannot hold a number without moving rows, so pandas does each partition.
        native = mapped(frame, query).to_native()
        total = native.groupby(list(keys), sort=False, dropna=False).sum(split_every=JOINED)
        return _arrays(nw.from_native(total.reset_index()).collect())
    return fetched(query(frame))


def fetched(frame: Any) -> dict[str, Any]:
    """All of a small frame."""
    if isinstance(frame, nw.LazyFrame):
        options: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
        frame = frame.collect(**options)
    return _arrays(frame)


def batches(frame: Any, columns: Sequence[str]) -> list[Sequence[str]]:
    """Columns to be stacked together: all of them, but polars plans for some at a time."""
    step = TOGETHER if frame.implementation.is_polars() else len(columns)
    return [columns[a : a + step] for a in range(0, len(columns), step)]


def stacked(frame: Any, columns: Sequence[str], beside: Sequence[str]) -> Any:
    """The columns below one another: the score `s`, the name `c` of its column, and what is beside.

    Databases do so in one pass. Polars would hold all rows that come out before it goes on, so each
    column is a frame of its own there.
    """
    if in_memory(frame):
        rows, backend = len(frame), frame.implementation
        arrays = {"s": np.concatenate([frame[name].to_numpy() for name in columns]),
                  "c": np.repeat([int(name) for name in columns], rows)}  # fmt: skip
        made = nw.from_dict(arrays, backend=backend)
        if not beside:
            return made
        return nw.concat([nw.concat([frame.select(*beside)] * len(columns)), made], how="horizontal")
    if frame.implementation.is_polars():
        return nw.concat([frame.select(*beside, s=nw.col(name), c=nw.lit(int(name))) for name in columns])
    if frame.implementation.is_duckdb():
        # Its UNPIVOT needs a name for the relation, and may take one that the caller uses.
        names = ", ".join(f'"{name}"' for name in columns)
        apart = f"unnest([{names}]) as s, unnest([{', '.join(columns)}]) as c"
        return nw.from_native(frame.to_native().project(", ".join([*beside, apart])))
    frame = frame.select(*beside, *columns)
    return frame.unpivot(on=list(columns), index=list(beside), variable_name="c", value_name="s")


def _native(function: Query, part: Any) -> Any:
    return nw.to_native(function(nw.from_native(part)))


def _arrays(frame: Any) -> dict[str, Any]:
    return {
        name: frame[name].to_list() if name == "g" else _array(frame[name].to_numpy())
        for name in frame.columns
    }


def _array(values: Any) -> Array:
    return np.asarray(values)
