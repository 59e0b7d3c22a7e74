"""Files that are there whole or not at all, folders that one process writes at a time, and CSV text."""

from calibrant.atomic.lock import LOCK, Hold
from calibrant.atomic.table import csv_text
from calibrant.atomic.whole import identity, is_beginning, whole_file, write_whole

__all__ = ["LOCK", "Hold", "csv_text", "identity", "is_beginning", "whole_file", "write_whole"]
