"""The compiled loops: built where a compiler is there, left out where not; the rest is in pyproject.toml."""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src/calibrant/compiled")
# No contraction: a product that is not rounded before it is added would change the last bits.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fno-math-errno"]

loops = Extension(
    "calibrant.compiled._loops",
    sources=[str(path) for path in sorted(SOURCES.glob("*.c"))],
    depends=[str(SOURCES / "loops.h")],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=FLAGS,
    py_limited_api=True,
    optional=True,
)
# The stable interface does not exist for Pythons without the lock.
stable = not sysconfig.get_config_var("Py_GIL_DISABLED")
setup(
    ext_modules=[loops] if stable else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if stable else {},
)
