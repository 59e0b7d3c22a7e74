"""The report: one self-contained page, readable without scripts and under a strict policy."""

from calibrant.report.page import fragment, page

__all__ = ["fragment", "page"]
