"""The calls that are timed: bare numpy, calibrant, and each peer asked for the same as cheaply as it can.

Each function here takes the data and returns a call without arguments; building it may raise ImportError.
"""

import warnings
from collections.abc import Callable

import numpy as np
from race import Call, Data

BINS = 15
SUBSET = 50  # classes timed for a slow peer; its time is scaled to all of them

# ---- bare numpy


def bare_ece(y, s, n_bins=BINS):
    """Uniform bins written by hand: floor, three bincounts, mean gap weighted by count. No validation."""
    index = np.floor(s * n_bins).astype(np.intp)
    count = np.bincount(index, minlength=n_bins)
    score = np.bincount(index, weights=s, minlength=n_bins)
    outcome = np.bincount(index, weights=y, minlength=n_bins)
    used = count > 0
    gap = np.abs(score[used] / count[used] - outcome[used] / count[used])
    return np.sum(count[used] * gap) / len(s)


def lean_ece(y, s, n_bins=BINS):
    """The least numpy that gives the number: truncate, one bincount of the residual. No count, no curve."""
    return np.abs(np.bincount((s * n_bins).astype(np.intp), weights=s - y)).sum() / len(s)


# ---- calibrant


def our_ece(**choices) -> Callable[[Data], Call]:
    def ready(data: Data) -> Call:
        import calibrant

        y, p = data
        return lambda: calibrant.ece(y, p, **choices)

    return ready


# ---- the peers


def sklearn_ece(y, s, n_bins=BINS):
    """`calibration_curve` returns the non-empty bins without their counts: one bincount adds them."""
    from sklearn.calibration import calibration_curve

    frequency, score = calibration_curve(y, s, n_bins=n_bins, strategy="uniform")
    count = np.bincount((s * n_bins).astype(np.intp))
    return np.sum(count[count > 0] * np.abs(frequency - score)) / len(s)


def sklearn_quantile_ece(y, s, n_bins=BINS):
    """Quantile bins hold the same mass each, so the plain mean of the gaps will do."""
    from sklearn.calibration import calibration_curve

    frequency, score = calibration_curve(y, s, n_bins=n_bins, strategy="quantile")
    return np.abs(frequency - score).mean()


def netcal_measure():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from netcal.metrics import ECE
    return ECE(bins=BINS).measure


def torch_ready(data: Data):
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    torch.set_num_threads(1)
    y, p = data
    return torch.from_numpy(y), torch.from_numpy(p), binary_calibration_error


def run_sklearn(data: Data, function=sklearn_ece) -> Call:
    import sklearn.calibration  # noqa: F401

    return lambda: function(*data)


def run_torchmetrics(data: Data) -> Call:
    y, p, error = torch_ready(data)
    return lambda: error(p, y, n_bins=BINS, norm="l1")


def run_netcal(data: Data) -> Call:
    measure = netcal_measure()
    return lambda: measure(data[1], data[0])


def run_relplot_smooth(data: Data) -> Call:
    from relplot import smECE

    return lambda: smECE(data[1], data[0])


def run_relplot_binned(data: Data) -> Call:
    """Bins of equal width, unvalidated: the bare numpy that a library comes with."""
    from relplot.metrics import binnedECE

    y, p = data
    outcome = y.astype(float)
    return lambda: binnedECE(p, outcome, nbins=BINS)


def run_reading(data: Data) -> Call:
    """Read every byte once, as fast as numpy does it: no answer can be quicker."""
    y, p = data
    return lambda: float(np.sum(p)) + float(np.sum(y))


def run_bare(function) -> Callable[[Data], Call]:
    return lambda data: lambda: function(*data)


# ---- the peers, one class against the rest, mean over classes. Each gets the column in the layout and the
# outcome in the type it is fastest on, the conversion included.


def per_class_sklearn(data: Data) -> Call:
    import sklearn.calibration  # noqa: F401

    y, p = data
    return lambda: np.mean(
        [sklearn_ece((y == c).astype(np.int8), p[:, c].astype(float)) for c in range(SUBSET)]
    )


def per_class_torchmetrics(data: Data) -> Call:
    y, p, error = torch_ready(data)
    return lambda: np.mean([float(error(p[:, c].contiguous(), y == c, n_bins=BINS)) for c in range(SUBSET)])


def per_class_plain_sklearn(data: Data) -> Call:
    """The call most people write: a column as it lies in the matrix, labels of the matrix' own type."""
    import sklearn.calibration  # noqa: F401

    y, p = data
    return lambda: np.mean([sklearn_ece((y == c).astype(int), p[:, c]) for c in range(SUBSET)])


def per_class_plain_torchmetrics(data: Data) -> Call:
    y, p, error = torch_ready(data)
    return lambda: np.mean([float(error(p[:, c], (y == c).long(), n_bins=BINS)) for c in range(SUBSET)])


def per_class_netcal(data: Data) -> Call:
    measure, (y, p) = netcal_measure(), data
    return lambda: np.mean([measure(p[:, c], (y == c).astype(np.int8)) for c in range(SUBSET)])


def per_class_relplot(data: Data) -> Call:
    """On float32 columns relplot's `np.add.at` is five times slower."""
    from relplot.metrics import binnedECE

    y, p = data
    classes = p.shape[1]
    return lambda: np.mean([binnedECE(p[:, c].astype(float), y == c, nbins=BINS) for c in range(classes)])
