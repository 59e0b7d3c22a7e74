"""The Dirichlet family of scores, which the benchmarks define."""

from importlib import util
from pathlib import Path

_FILE = Path(__file__).parents[1] / "benchmarks" / "dirichlet_family.py"
_SPEC = util.spec_from_file_location("dirichlet_family", _FILE)
_MODULE = util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
Dirichlet = _MODULE.Dirichlet
