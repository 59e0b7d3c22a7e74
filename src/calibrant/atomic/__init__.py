"""Files that are there whole or not at all, and folders that one process writes at a time."""

from calibrant.atomic.lock import LOCK, Hold
from calibrant.atomic.whole import identity, is_beginning, write_whole

__all__ = ["LOCK", "Hold", "identity", "is_beginning", "write_whole"]
