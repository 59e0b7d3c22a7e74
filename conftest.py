"""Leaves out what needs PyTorch, Triton or a GPU where there is none, and what is not in the fast set."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
# Before pytest puts the folder of the tests on the path.
HAS_TORCH, HAS_TRITON = (find_spec(name) is not None for name in ("torch", "triton"))


# A file that is beyond the fast set as a whole: collecting it takes as long as its imports.
FULL = re.compile(r"^pytestmark = .*mark\.full\b", flags=re.M)


def pytest_ignore_collect(collection_path, config):
    """Tell whether a file is left out."""
    path = collection_path.relative_to(ROOT).as_posix() if ROOT in collection_path.parents else ""
    if config.getoption("markexpr") == "not full":
        if path.startswith(("src", "tests/internal")):
            return True
        if path.endswith(".py") and FULL.search(collection_path.read_text(encoding="utf-8")):
            return True
    path = path.replace("tests/internal/", "tests/public/")
    if path.startswith(("src/calibrant/torch/kernels.py", "tests/public/pytorch/test_gpu")):
        return not (HAS_TORCH and HAS_TRITON and _has_gpu()) or None
    if path.startswith(("src/calibrant/torch", "tests/public/pytorch", "benchmarks/torch_")):
        return not HAS_TORCH or None
    return None


def _has_gpu():
    import torch

    return torch.cuda.is_available()
