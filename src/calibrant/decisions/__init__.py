"""What acting on the scores costs."""

from calibrant.decisions.cost import Cost

__all__ = ["Cost"]
