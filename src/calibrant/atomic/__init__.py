"""Files that are there whole or not at all, and CSV text."""

from calibrant.atomic.files import atomic_file, csv_text, identity, is_partial_file, write_atomic

__all__ = ["atomic_file", "csv_text", "identity", "is_partial_file", "write_atomic"]
