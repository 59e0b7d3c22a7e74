"""Shared set-up; pytest also puts this folder on the path, which makes `oracles` importable."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from engines import needs_spark
from shortcuts import compare_estimators

# Set before numpy is imported: each worker has a core, and threads of small sums mostly wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A run that gates a change must not depend on the day's examples; the fast set has few of them.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=10)

INTERNAL = Path(__file__).parent / "internal"
# Words in the names of tests with another engine, which take seconds to start.
ENGINES = ("dask", "duckdb", "ibis", "spark")


@pytest.fixture(scope="session")
def spark():
    """A session of Spark in this process, started once."""
    needs_spark()
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        # Small frames are done before the better compiler has paid for itself.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[2]").appName("calibrant")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def without_reference_estimators(monkeypatch):
    """Assess without the estimators of the literature, which take most of the time."""
    compare_estimators(monkeypatch)


@pytest.fixture
def few_reference_estimators(monkeypatch):
    """Assess with two of the estimators of the literature, since all of them take most of the time."""
    compare_estimators(monkeypatch, "uniform", "density")


def pytest_configure(config):
    if config.getoption("markexpr") == "not full":
        settings.load_profile("fast")
    else:
        settings.load_profile("gate" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items):
    """Leave internal tests and other engines out of the fast set."""
    for item in items:
        if INTERNAL in item.path.parents or any(engine in item.name for engine in ENGINES):
            item.add_marker(pytest.mark.full)


def untraced(item):
    """Run what is marked `no_cover` without any tracer: in a worker there is one below that of pytest-cov."""
    tracer = sys.gettrace() if item.get_closest_marker("no_cover") else None
    if tracer is None:
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item):
    return (yield from untraced(item))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item):
    return (yield from untraced(item))


def pytest_sessionfinish(session):
    """Where everything has to run, a test that is skipped has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if skipped and os.environ.get("CI", "").lower() in ("1", "true"):
        session.exitstatus = session.exitstatus or 1
