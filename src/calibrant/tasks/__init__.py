"""What is asked of predictions: a notion, about some classes, of evidence."""

from calibrant.tasks.notions import Notion, named, usual
from calibrant.tasks.task import CalibrationTask, Rows

__all__ = ["CalibrationTask", "Notion", "Rows", "named", "usual"]
