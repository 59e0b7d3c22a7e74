"""How results are drawn, and written as pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, overload

from calibrant.atomic import write_atomic
from calibrant.inputs.printed import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Drawn(Printed):
    """Mixin of results that a function of `calibrant.plot` draws."""

    _drawn_by: ClassVar[str]  # name of that function

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result with the function of `calibrant.plot` for results of this kind.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; otherwise one new figure.
        **options
            Keyword arguments of that function.

        Returns
        -------
        Axes
            What that function returns: the main panel, or all panels.
        """
        from calibrant import plot

        return getattr(plot, self._drawn_by)(self, ax, **options)


class DrawnOnAxes(Drawn):
    """Mixin of results that are drawn on a single panel."""

    if TYPE_CHECKING:

        def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
            """Draw the result."""
            ...


class Page(Drawn):
    """Mixin of results that a function of `calibrant.report` shows on a page."""

    _page_by: ClassVar[str]  # name of that function

    @overload
    def to_html(self, path: None = None) -> str: ...
    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the result as one self-contained page; without a path, return it.

        Parameters
        ----------
        path : path, optional
            File to write.

        Returns
        -------
        str or None
            The page, if there is no path.
        """
        from calibrant import report

        page: str = getattr(report, self._page_by)(self)
        if path is None:
            return page
        write_atomic(path, [page.encode()])
        return None
