"""What acting on the scores costs."""

from calibrant.decisions.clinical import Clinical, Measured, clinical_of
from calibrant.decisions.cost import Cost

__all__ = ["Clinical", "Cost", "Measured", "clinical_of"]
