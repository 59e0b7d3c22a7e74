"""The report: one self-contained page, readable without scripts and under a strict policy."""

from calibrant.report.monitor import monitor_page
from calibrant.report.page import comparison_page, fragment, page, segments_page

__all__ = ["comparison_page", "fragment", "monitor_page", "page", "segments_page"]
