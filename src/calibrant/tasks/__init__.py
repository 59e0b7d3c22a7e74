"""Calibration tasks: a notion of calibration, the classes it refers to, and the score data."""

from calibrant.tasks.notions import Notion, named, usual
from calibrant.tasks.task import CalibrationTask, Rows, cached_on_task

__all__ = ["CalibrationTask", "Notion", "Rows", "cached_on_task", "named", "usual"]
