"""Files and frames to rows and to sketches: which columns are meant, what they hold, and their sums.

Nothing of a file is executed, and every declared size is checked against its size.
"""

from calibrant.data.answer_logs import read_answers
from calibrant.data.columns import ColumnRequest
from calibrant.data.files import FORMATS
from calibrant.data.mapped import map_files
from calibrant.data.pipeline import ReadProgress, stream
from calibrant.data.rows import Data, is_large, load_models, n_scores

__all__ = [
    "FORMATS",
    "ColumnRequest",
    "Data",
    "ReadProgress",
    "is_large",
    "load_models",
    "map_files",
    "n_scores",
    "read_answers",
    "stream",
]
