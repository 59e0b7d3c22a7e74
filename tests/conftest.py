"""Shared set-up; pytest also puts this folder on the path, which makes `oracles` importable."""

import os
import sys

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

# Files whose tests take seconds each: browsers, clusters, studies, pages that are executed, slow oracles;
# and words in the names of such tests elsewhere: engines, and what is run, killed or drawn as a whole.
FULL_FILES = (
    *("test_browser", "test_docs", "test_notebook", "test_studies", "test_experiment", "test_experiment_cli"),
    *("test_experiment_claims", "test_experiment_leaderboard", "test_peer_faults", "test_sklearn"),
    *("test_experiment_folder", "test_attack_writes", "test_attack_refusals"),
    *("test_oracles", "test_plot", "test_plot_more", "test_many_classes", "test_later", "test_band"),
    *("test_assess", "test_stream", "test_contributing", "test_pages", "test_recommendation", "test_report"),
    *("test_streams", "test_claims"),
    *("test_attack", "test_equalities"),
)
FULL_WORDS = (
    *(
        "pyspark",
        "spark",
        "dask",
        "ibis",
        "duckdb",
        "benchmark",
        "example",
        "kill",
        "dies",
        "every_way",
        "demo",
    ),
    *(
        "gallery",
        "thousand",
        "estimates_are_unchanged",
        "interval_covers",
        "threads",
        "local_lines",
        "reference",
    ),
)
# Files that run what other files run too, or nothing of the package; to trace every call doubles the time.
UNTRACED_FILES = (
    *("test_oracles", "test_browser", "test_packages", "test_studies", "test_attack", "test_attack_files"),
    *("test_attack_writes", "test_frozen", "test_golden", "test_docs", "test_pages", "test_notebook"),
    *("test_attack_refusals", "test_claims", "test_assess_clusters", "test_consistency", "test_stored"),
    *("test_saved", "test_registry", "test_counts", "test_cli_commands_shown", "test_resamples"),
    *("test_streams", "test_dependent_rows", "test_printed", "test_wording"),
)


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
    """Leave what takes long out of the fast set, and what repeats out of the trace for coverage."""
    for item in items:
        name = item.path.stem.removesuffix("_inside")
        other_engine = name == "test_frames" and "pandas" not in item.name
        if other_engine or name in FULL_FILES or any(word in item.name for word in FULL_WORDS):
            item.add_marker(pytest.mark.full)
        if name in UNTRACED_FILES:
            item.add_marker(pytest.mark.no_cover)


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
