"""Leaves out what needs PyTorch, Triton or a GPU where there is none."""

from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
# Before pytest puts the folder of the tests on the path.
HAS_TORCH, HAS_TRITON = (find_spec(name) is not None for name in ("torch", "triton"))


def pytest_ignore_collect(collection_path):
    """Tell whether a file is left out."""
    path = collection_path.relative_to(ROOT).as_posix() if ROOT in collection_path.parents else ""
    if path.startswith(("src/calibrant/torch/kernels.py", "tests/pytorch/test_gpu.py")):
        return not (HAS_TORCH and HAS_TRITON and _has_gpu()) or None
    if path.startswith(("src/calibrant/torch", "tests/pytorch", "tests/public/pytorch", "benchmarks/torch_")):
        return not HAS_TORCH or None
    return None


def _has_gpu():
    import torch

    return torch.cuda.is_available()
