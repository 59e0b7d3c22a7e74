"""calibrant for PyTorch: a metric with bounded memory, one for language models, and calibrators on tensors.

Import it by name, `import calibrant.torch`; it needs PyTorch 2.2 or later. Where torchmetrics is installed
the metrics are `torchmetrics.Metric`. On NVIDIA GPUs with Triton the sums are made by fused kernels.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("calibrant.torch needs PyTorch: pip install 'calibrant[torch]'") from error


from calibrant.torch.calibrator import CalibratorModule
from calibrant.torch.metric import CalibrationError
from calibrant.torch.tokens import TokenCalibrationError

__all__ = ["CalibrationError", "CalibratorModule", "TokenCalibrationError"]


def __dir__() -> list[str]:
    return sorted(__all__)
