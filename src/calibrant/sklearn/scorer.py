"""The calibration error as a scorer: the larger the better, for searches and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils.metadata_routing import UNUSED, _MetadataRequester

from calibrant.api.calibration import ece
from calibrant.estimators import Norm
from calibrant.estimators.base import estimator_for
from calibrant.inputs import same_rows
from calibrant.sklearn.model import explaining, probabilities
from calibrant.tasks import notions


def neg_ece_scorer(
    notion: str | None = None,
    *,
    estimator: Any = "auto",
    norm: Norm = "l1",
    pos_label: Any = None,
) -> Any:
    """Make a scorer for model selection: minus the calibration error, by confidence for every model.

    It reads the whole matrix of `predict_proba` by the model's `classes_`. `make_scorer` would hand over one
    column of a binary model and all columns of any other: two notions under one name.

    **Do not select by it alone.** A model that always answers with the frequencies of the classes is
    calibrated and knows nothing. Score by log loss too, and refit on that.

    Parameters
    ----------
    notion : {"confidence", "binary", "classwise", "canonical"}, optional
        What is compared, as in `ece`; `confidence` by default, for binary models too.
    estimator, norm
        As for `ece`.
    pos_label : label, optional
        The class that `notion="binary"` asks about; by default the second of two.

    Returns
    -------
    scorer
        A callable `scorer(estimator, X, y, sample_weight=None)` with a float as its answer, the larger the
        better. Where metadata routing is enabled, `set_score_request(sample_weight=True)` asks for weights.

    See Also
    --------
    calibrant.ece : The calibration error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = neg_ece_scorer()
    >>> scorer
    neg_ece_scorer(notion='confidence', estimator='auto', norm='l1')
    >>> bool((cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=scorer) <= 0).all())
    True
    """
    # A search turns errors of a scorer into NaN with a warning; a wrong choice is told before it starts.
    chosen = notions.get_notion("confidence" if notion is None else notion)
    estimator_for(chosen, estimator, norm)
    if pos_label is not None and not chosen.is_binary:
        raise ValueError(
            f'pos_label names a class and needs notion="binary", got {pos_label!r} for notion={chosen.name!r}'
        )
    return NegECE(chosen.name, estimator, norm, pos_label)


@dataclass(eq=False, repr=False)
class NegECE(_MetadataRequester):  # type: ignore[misc]
    """What `neg_ece_scorer` makes: choices, and a call on scikit-learn's protocol.

    >>> import sklearn
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     neg_ece_scorer().set_score_request(sample_weight=True).get_metadata_routing()
    {'score': {'sample_weight': True}}
    """

    notion: str
    estimator: Any
    norm: Norm
    pos_label: Any

    __name__ = "neg_ece"  # the displays of learning and validation curves ask for it
    __metadata_request__score: ClassVar = {"estimator": UNUSED}  # an argument, not metadata

    def score(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the calibration error of a fitted model."""
        same_rows(X=X, y=y, sample_weight=sample_weight)
        score, classes = probabilities(estimator, X)
        with explaining(y, classes):
            return -ece(
                y,
                score,
                notion=self.notion,
                estimator=self.estimator,
                norm=self.norm,
                sample_weight=sample_weight,
                labels=classes,
                pos_label=self.pos_label,
            )

    __call__ = score

    def __repr__(self) -> str:
        chosen = f"notion={self.notion!r}, estimator={self.estimator!r}, norm={self.norm!r}"
        return (
            f"neg_ece_scorer({chosen}{'' if self.pos_label is None else f', pos_label={self.pos_label!r}'})"
        )

    def _accept_sample_weight(self) -> bool:
        # A search over several scorers that is fitted with weights asks each of them, by this name.
        return True
