"""Shared set-up; pytest also puts this folder on the path, which makes `oracles` importable."""

import os

from hypothesis import settings

# A run that gates a change must not depend on the day's examples.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.load_profile("gate" if os.environ.get("CI") else "default")


def pytest_sessionfinish(session):
    """Where everything has to run, a test that is skipped has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if skipped and os.environ.get("CI", "").lower() in ("1", "true"):
        session.exitstatus = session.exitstatus or 1
