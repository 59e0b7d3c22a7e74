"""The version, which results record."""

__version__ = "0.1.0"
