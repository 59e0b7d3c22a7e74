"""Files that are there whole or not at all, and CSV text."""

from calibrant.atomic.whole import csv_text, identity, is_beginning, whole_file, write_whole

__all__ = ["csv_text", "identity", "is_beginning", "whole_file", "write_whole"]
