"""The compiled loops: built where a compiler is there, left out where not; the rest is in pyproject.toml."""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

SOURCES = Path("src/calibrant/compiled")
# No contraction: a product that is not rounded before it is added would change the last bits.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fno-math-errno"]
# The stable interface does not exist for Pythons without the lock.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")

loops = Extension(
    "calibrant.compiled._loops",
    sources=[path.as_posix() for path in sorted(SOURCES.glob("*.c"))],
    depends=[path.as_posix() for path in sorted(SOURCES.glob("*.h"))],
    libraries=[] if sys.platform == "win32" else ["m"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=FLAGS,
    py_limited_api=True,
    optional=True,
)


class Wheel(bdist_wheel):
    """A wheel whose name says what is inside: one for all machines where the loops were not built."""

    def run(self):
        """Build the loops first, since the name depends on them."""
        build = self.get_finalized_command("build_ext")
        self.run_command("build_ext")
        if not all(Path(path).exists() for path in build.get_outputs()):
            self.distribution.ext_modules = []
            self.root_is_pure, self.py_limited_api = True, False
        super().run()


setup(
    ext_modules=[loops] if STABLE else [],
    cmdclass={"bdist_wheel": Wheel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
