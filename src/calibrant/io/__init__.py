"""Files to arrays: what a file holds, and which of its columns are labels, scores, groups and weights.

Nothing of a file is executed, and everything it says about its size is held against its size.
"""

from calibrant.io.columns import Data, load, load_models
from calibrant.io.files import FORMATS, opened
from calibrant.io.names import Columns
from calibrant.io.table import Table

__all__ = ["FORMATS", "Columns", "Data", "Table", "load", "load_models", "opened"]
