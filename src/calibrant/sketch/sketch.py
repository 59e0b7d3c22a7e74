"""Sums instead of rows: predictions in any number of pieces, answered for as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from calibrant.sketch.answered import Answered
from calibrant.sketch.file import digest, load, save


class Sketch(Answered):
    """Calibration of predictions that arrive in pieces, in memory that does not grow with them.

    Parameters
    ----------
    notion : {"class", "classwise", "confidence"}
        What is compared; fixed for the life of the sketch.
    n_classes : int, optional
        Number of columns of the score matrix; learned from the first update otherwise.
    labels, pos_label : optional
        As for `calibrant.ece`. The classes of the columns are settled by the first update.

    Examples
    --------
    >>> import calibrant
    >>> monday = calibrant.Sketch(notion="class").update([0, 1, 1], [0.2, 0.4, 0.9])
    >>> tuesday = calibrant.Sketch(notion="class").update([0, 1], [0.1, 0.8])
    >>> both = monday + tuesday
    >>> both
    Sketch(notion='class', n=5)
    >>> round(both.ece(estimator="uniform:10"), 6)
    0.24
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a small file of numbers, whole or not at all.

        Labels may be text, numbers and booleans.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sketch:
        """Read the sketch that `save` wrote, equal to the last bit.

        Nothing in the file is run, and every number in it is checked.

        Raises
        ------
        ValueError
            If the file is damaged, changed or no sketch at all.

        Examples
        --------
        >>> import tempfile
        >>> day = Sketch("class").update([0, 1, 1], [0.2, 0.4, 0.9])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     day.save(f"{folder}/monday.sketch")
        ...     again = Sketch.load(f"{folder}/monday.sketch")
        >>> again.digest == day.digest
        True
        """
        return load(cls, path)

    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        label: str | None = None,
        scores: str | Sequence[str] | None = None,
        notion: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        format: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Callable[[Any], object] | None = None,
        batch_rows: int | None = None,
    ) -> Any:
        """Sum up files of any size; a dict of sketches with `group`.

        Parameters
        ----------
        paths : path or sequence of paths
            Parquet, Arrow or CSV files, folders of them, or patterns such as "2024/*.parquet".
        label, scores, weight, group : str, optional
            Names of columns. Label and scores are found by usual names; scores may be several names,
            or a pattern such as "p_*", where the star stands for the class.
        notion, labels, pos_label : optional
            As for `calibrant.ece`.
        format : {"parquet", "arrow", "csv", "tsv"}, optional
            By default what the suffix says, or else the first bytes.
        checkpoint : path, optional
            Folder in which to keep what has been read, so that the same call goes on after a stop.
        progress : callable, optional
            Called now and then with how far it is, which prints as a line: `progress=print`.
        batch_rows : int, optional
            Rows taken together.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for day, rows in {"monday": "0,0.2\\n1,0.4\\n", "tuesday": "1,0.9\\n"}.items():
        ...         _ = pathlib.Path(folder, f"{day}.csv").write_text("label,score\\n" + rows)
        ...     Sketch.from_files(folder)
        Sketch(notion='class', n=3)
        """
        from calibrant.data.stream import from_files

        return from_files(
            paths,
            label=label,
            scores=scores,
            notion=notion,
            weight=weight,
            group=group,
            labels=labels,
            pos_label=pos_label,
            format=format,
            checkpoint=checkpoint,
            progress=progress,
            batch_rows=batch_rows,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        scores: str | Sequence[str],
        notion: str | None = None,
        sample_weight: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        n_classes: int | None = None,
        row: str | None = None,
        classes: str | None = None,
    ) -> Sketch:
        """Sum up a frame where it lies.

        Parameters
        ----------
        frame : frame
            Of pandas, polars (lazy too), pyarrow, DuckDB, Dask, Ibis or PySpark.
        label, sample_weight : str
            Names of columns. Whole weights are counts, others importance weights.
        scores : str or sequence of str
            A column, several, or a pattern such as "p_*", where the star stands for the class.
        notion, pos_label : optional
            As for `calibrant.ece`. A single column may be named after its class instead, as "p_spam" is.
        labels : sequence, optional
            The class of each column. Without it the names of the columns say so.
        n_classes : int, optional
            Held against the number of classes.
        row, classes : str, optional
            Columns of a frame in long form, with an entry for each row and class: which row and which
            class it is. `scores` is then one column.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"y": ["no", "no", "yes"], "p_no": [0.7, 0.6, 0.2]})
        >>> frame["p_yes"] = 1 - frame["p_no"]
        >>> Sketch.from_frame(frame, label="y", scores="p_*")
        Sketch(notion='confidence', n=3)
        """
        from calibrant.data.frames import Columns, from_frame

        columns = Columns(label, scores, sample_weight, None, row, classes)
        return from_frame(
            frame, columns, notion=notion, labels=labels, pos_label=pos_label, n_classes=n_classes
        )

    @classmethod
    def from_frame_by_group(
        cls,
        frame: Any,
        *,
        label: str,
        scores: str | Sequence[str],
        groups: str,
        notion: str | None = None,
        sample_weight: str | None = None,
        labels: Any = None,
        pos_label: Any = None,
        n_classes: int | None = None,
        row: str | None = None,
        classes: str | None = None,
    ) -> dict[Any, Sketch]:
        """Sum up each group of a frame where it lies; see `from_frame`.

        Parameters
        ----------
        frame, label, scores, notion, sample_weight, labels, pos_label, n_classes, row, classes
            As for `from_frame`.
        groups : str
            The column of the groups.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.6, 0.9], "country": ["fr", "nl", "nl"]})
        >>> Sketch.from_frame_by_group(frame, label="y", scores="p", groups="country")
        {'fr': Sketch(notion='class', n=1), 'nl': Sketch(notion='class', n=2)}
        """
        from calibrant.data.frames import Columns, from_frame_by_group

        columns = Columns(label, scores, sample_weight, groups, row, classes)
        return from_frame_by_group(
            frame, columns, notion=notion, labels=labels, pos_label=pos_label, n_classes=n_classes
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all sums and labels: the same for the same content."""
        return digest(self)
