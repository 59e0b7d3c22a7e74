"""The rows of a file of one model."""

from calibrant.data import ColumnRequest, load_models


def load(path, asked=ColumnRequest(), **options):  # noqa: B008 - frozen
    """Labels and scores of a file."""
    return load_models(path, asked, **options)[""]
