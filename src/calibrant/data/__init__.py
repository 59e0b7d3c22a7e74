"""Files to arrays: what a file holds, and which of its columns are labels, scores, groups and weights.

Nothing of a file is executed, and everything it says about its size is held against its size.
"""

from calibrant.data.columns import Data, load, load_models
from calibrant.data.files import FORMATS, opened
from calibrant.data.names import Columns
from calibrant.data.table import Table

__all__ = ["FORMATS", "Columns", "Data", "Table", "load", "load_models", "opened"]
