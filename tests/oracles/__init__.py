"""Slow, obvious versions of what the library computes."""
