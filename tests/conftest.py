"""Shared set-up; pytest also puts this folder on the path, which makes `oracles` importable."""

import os

from hypothesis import settings

# A run that gates a change must not depend on the day's examples.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.load_profile("gate" if os.environ.get("CI") else "default")
