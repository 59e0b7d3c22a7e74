"""`TokenCalibrationError`: calibration of the next-token probabilities of a language model."""

from __future__ import annotations

from typing import Any

from calibrant.inputs import check_choice
from calibrant.torch.metric import CalibrationError


class TokenCalibrationError(CalibrationError):
    """Calibration error of tokens, from logits of shape (batch, time, vocabulary).

    Each token is a row. Batches of any size, and single steps of a generation, add to the same sums. The
    memory depends neither on the number of tokens nor, except with "classwise", on the vocabulary.

    Parameters
    ----------
    scores : {"confidence", "top:k", "every", "classwise"}, default="confidence"
        What is compared. "confidence": the probability of the most probable token. "top:k": that of the k
        most probable ones together. "every": the probabilities of all tokens of the vocabulary, as one
        binary problem. "classwise": the mean over the vocabulary, which needs `num_classes`.
    estimator : str or Estimator, default="auto"
        As for `calibrant.ece`.
    ignore_index : int, default=-100
        Label of padding.
    from_logits : bool, default=True
        Whether `preds` are logits.
    class_axis : int, default=-1
        Axis of the vocabulary.
    **kwargs : dict
        Options of `CalibrationError`.

    See Also
    --------
    CalibrationError : The metric for other classifiers.

    Examples
    --------
    >>> import torch
    >>> torch.manual_seed(0)
    <torch._C.Generator object at ...>
    >>> logits = torch.randn(2, 3, 100)
    >>> following = torch.tensor([[5, 17, -100], [4, -100, -100]])
    >>> metric = TokenCalibrationError(estimator="uniform:10")
    >>> metric.update(logits, following)
    >>> metric.to_sketch()
    Sketch(notion='confidence', n=3)
    """

    def __init__(
        self,
        scores: str = "confidence",
        estimator: Any = "auto",
        *,
        ignore_index: int = -100,
        from_logits: bool = True,
        class_axis: int = -1,
        **kwargs: Any,
    ) -> None:
        pooled = scores == "every"
        if not scores.startswith("top"):
            check_choice("scores", scores, ("confidence", "top:k", "every", "classwise"))
        super().__init__(
            None if pooled else scores,
            estimator,
            ignore_index=ignore_index,
            from_logits=from_logits,
            class_axis=class_axis,
            **kwargs,
        )
        self._pooled = pooled
