"""Engines that tests run in where they are installed, and everywhere where everything has to run."""

import importlib
import os
import shutil

import pytest

#: PySpark warns of versions of pandas that it has not been tested with, whatever it is asked.
PANDAS_OF_SPARK = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
MUST_RUN = os.environ.get("CI", "").lower() in ("1", "true")


def needed(name):
    """A module whose tests are skipped without it, except where everything has to run."""
    return importlib.import_module(name) if MUST_RUN else pytest.importorskip(name)


def needs_spark():
    """Skip a test where Spark cannot start, except where everything has to run."""
    needed("pyspark")
    if not MUST_RUN and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java")
