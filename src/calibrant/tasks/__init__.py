"""Calibration tasks: a notion of calibration, the classes it refers to, and the score data."""

from calibrant.tasks.notions import ClassRelation, Notion, default_notion, get_notion
from calibrant.tasks.task import CalibrationTask, ScoreVectors, cached_on_task

__all__ = [
    "CalibrationTask",
    "ClassRelation",
    "Notion",
    "ScoreVectors",
    "cached_on_task",
    "default_notion",
    "get_notion",
]
