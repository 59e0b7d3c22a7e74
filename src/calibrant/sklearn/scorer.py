"""The calibration error as a scorer: the larger the better, for searches and cross-validation."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from calibrant.api.calibration import ece
from calibrant.estimators import Norm
from calibrant.inference.measure import chosen_for
from calibrant.inputs import same_rows
from calibrant.questions import notions
from calibrant.sklearn.model import explaining, probabilities
from sklearn import get_config


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
    notion : {"confidence", "class", "classwise", "multiclass"}, optional
        What is compared, as in `ece`; `confidence` by default, for binary models too.
    estimator, norm
        As for `ece`.
    pos_label : label, optional
        The class that `notion="class"` asks about; by default the second of two.

    Returns
    -------
    scorer
        A callable `scorer(estimator, X, y, sample_weight=None)` with a float as its answer, the larger the
        better. Where metadata routing is enabled, `set_score_request(sample_weight=True)` asks for weights.

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
    asked = notions.named("confidence" if notion is None else notion)
    chosen_for(asked, estimator, norm)
    if pos_label is not None and not asked.one_class:
        raise ValueError(
            f'pos_label names one class and needs notion="class", got {pos_label!r} for notion={asked.name!r}'
        )
    return NegECE(asked.name, estimator, norm, pos_label)


@dataclass(eq=False, repr=False)
class NegECE:
    """What `neg_ece_scorer` makes: choices, and a call on scikit-learn's protocol."""

    notion: str
    estimator: Any
    norm: Norm
    pos_label: Any
    requested: bool | str | None = None  # whether routing brings weights, or their name there; None: not said

    __name__ = "neg_ece"  # the displays of learning and validation curves ask for it

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
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

    def __repr__(self) -> str:
        asked = f"notion={self.notion!r}, estimator={self.estimator!r}, norm={self.norm!r}"
        return f"neg_ece_scorer({asked}{'' if self.pos_label is None else f', pos_label={self.pos_label!r}'})"

    def __sklearn_clone__(self) -> NegECE:
        return copy.copy(self)

    def set_score_request(self, *, sample_weight: bool | str | None) -> NegECE:
        """Ask metadata routing for weights: True, False, None (unsaid) or the name they go by.

        >>> import sklearn
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     neg_ece_scorer().set_score_request(sample_weight=True).get_metadata_routing()
        {'score': {'sample_weight': True}}
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request needs metadata routing: sklearn.set_config(enable_metadata_routing=True)"
            )
        before, self.requested = self.requested, sample_weight
        try:
            self.get_metadata_routing()
        except ValueError:
            self.requested = before
            raise
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer takes beside X and y, in scikit-learn's terms."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self.requested)
        return request

    def _accept_sample_weight(self) -> bool:
        # A search over several scorers that is fitted with weights asks each of them, by this name.
        return True
