"""The reliability curve as a display, with the arguments of scikit-learn's `CalibrationDisplay`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant import inputs, plot
from calibrant.curves import (
    ByClass,
    Method,
    ReliabilityCurve,
    ReliabilityDiagram,
    curve_of,
    diagram_of,
    each_problem,
    rename_classes,
)
from calibrant.inputs.house_style import CALIBRATED
from calibrant.plot.canvas import CORNERS, legend, pyplot, words
from calibrant.score_data import Array
from calibrant.sklearn.model import explaining, probabilities
from calibrant.tasks import notions
from calibrant.tasks.task import build_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

STRATEGIES = {"uniform": "uniform", "quantile": "adaptive"}  # scikit-learn's names of bins, and ours
DISPLAYS = "_calibrant_displays"  # the attribute of an Axes that says what displays have drawn there
BETWEEN_MARKERS = 0.1  # of the diagonal: a curve has thousands of nodes, and a marker on each is a smear


@dataclass(eq=False, repr=False)
class ReliabilityDisplay:
    """Reliability curve of a model with its band, in the place of scikit-learn's `CalibrationDisplay`.

    Make it by `from_estimator` or `from_predictions`, whose arguments are those of `CalibrationDisplay` and
    a few more: what works there works here. It draws the curve, which needs no bins, its band, and over
    them the bins asked for, each with its interval. Models of three classes or more are shown by confidence.

    Attributes
    ----------
    curve : ReliabilityCurve
    diagram : ReliabilityDiagram or None
        The bins; None with `n_bins=None`.
    y_prob : array
        Scores of the selected class; the matrix where that is confidence.
    estimator_name : str or None
    prob_true, prob_pred : arrays
        Frequency and mean score of the bins that hold rows. A score on an edge belongs to the bin above,
        where scikit-learn puts it below.
    pos_label : label or None
        The selected class; None for confidence.
    line_, ax_, figure_
        The curve that was drawn, and where.

    See Also
    --------
    calibrant.reliability_curve : The curve that is drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> ax = Figure().subplots()
    >>> ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax, rng=0)
    ReliabilityDisplay(LogisticRegression, ReliabilityCurve(confidence, n=75, ...))
    """

    curve: ReliabilityCurve
    diagram: ReliabilityDiagram | None
    y_prob: Array
    estimator_name: str | None = None

    ax_: Axes | None = None
    figure_: Figure | SubFigure | None = None
    line_: Line2D | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.curve, ReliabilityCurve):
            raise inputs.InputError(
                "curve",
                "be a ReliabilityCurve, which the bins of scikit-learn (prob_true, prob_pred) do not tell it",
                got=type(self.curve).__name__,
                hint="ReliabilityDisplay.from_predictions(y_true, y_prob) makes both",
            )

    @property
    def prob_true(self) -> Array:
        """Frequency in each bin that holds rows."""
        return np.empty(0) if self.diagram is None else self.diagram.frequency[self.diagram.count > 0]

    @property
    def prob_pred(self) -> Array:
        """Mean score in each bin that holds rows."""
        return np.empty(0) if self.diagram is None else self.diagram.score[self.diagram.count > 0]

    @property
    def pos_label(self) -> Any:
        """The selected class; None for confidence."""
        return self.curve.label

    def __repr__(self) -> str:
        return f"ReliabilityDisplay({self.estimator_name}, {self.curve!r})"

    def plot(
        self, *, ax: Axes | None = None, name: str | None = None, ref_line: bool = True, **kwargs: Any
    ) -> ReliabilityDisplay:
        """Draw the curve with its band, and the bins.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw, one model after the other if there are several. Without it a new figure is made,
            with the distribution of the scores underneath.
        name : str, optional
            Name in the legend; `estimator_name` by default.
        ref_line : bool
            Whether to draw the diagonal, if it is not there yet.
        **kwargs
            Style of the line, as matplotlib's `plot` takes it; the colour is also that of band and bins.

        Returns
        -------
        ReliabilityDisplay
            Itself, with `line_`, `ax_` and `figure_`.
        """
        pyplot()  # or say what to install
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.colors import to_hex
        from matplotlib.lines import Line2D

        style = normalize_kwargs(kwargs, Line2D)
        drawn, histogram = getattr(ax, DISPLAYS, (0, ax is None))
        color = style.pop("color", None)
        color = to_hex(f"C{drawn}" if color is None else color)  # scatter would read numbers as data
        name = style.pop("label", self.estimator_name if name is None else name)
        before = [] if ax is None else list(ax.lines)
        if self.diagram is not None:
            # The underscore keeps the bins out of the legend: they go with the curve of their colour.
            ax = plot.diagram(self.diagram, ax, histogram=False, legend=False, color=color, label="_bins")
        ax = plot.curve(self.curve, ax, histogram=histogram, legend=False, color=color, label=name)
        setattr(ax, DISPLAYS, (drawn + 1, histogram))
        added = [line for line in ax.lines if line not in before]
        diagonal = [line for line in added if line.get_label() == CALIBRATED]
        line: Line2D = next(line for line in added if line not in diagonal)
        if "marker" in style:
            style.setdefault("markevery", BETWEEN_MARKERS)
        for each in added:
            if each not in diagonal:
                each.set(**style)
        if not ref_line:
            for reference in diagonal:
                reference.remove()
        legend(ax, words(self.curve, name)[1], CORNERS)
        self.line_, self.ax_, self.figure_ = line, ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int | None = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        ref_line: bool = True,
        notion: str | None = None,
        sample_weight: Any = None,
        counts: Any = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability curve of a fitted model.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba`.
        X, y
            Data that the model has not seen.
        n_bins, strategy, pos_label, ax, ref_line, sample_weight, counts, cluster, **kwargs
            As for `from_predictions`, which also takes `class_names`, `method`, `bandwidth`,
            `level` and `rng`.
        name : str, optional
            Name in the legend; that of the model's class by default.
        notion : {"binary", "confidence"}, optional
            By default `binary` for two classes, the second or `pos_label`, and `confidence` for more, unless
            `pos_label` names one of them.
        """
        inputs.same_rows(X=X, y=y, sample_weight=sample_weight, counts=counts, cluster=cluster)
        score, classes = probabilities(estimator, X)
        vector = pos_label is not None or np.shape(score)[-1] == 2
        with explaining(y, classes):
            return cls.from_predictions(
                y,
                score,
                n_bins=n_bins,
                strategy=strategy,
                pos_label=pos_label,
                name=type(estimator).__name__ if name is None else name,
                ax=ax,
                ref_line=ref_line,
                notion=notions.default_notion(notion, vector=vector).name,
                sample_weight=sample_weight,
                counts=counts,
                cluster=cluster,
                labels=classes,
                **kwargs,
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int | None = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        ref_line: bool = True,
        notion: str | None = None,
        method: Method | None = None,
        bandwidth: str | float | None = None,
        level: float = 0.95,
        rng: Any = 0,
        sample_weight: Any = None,
        counts: Any = None,
        cluster: Any = None,
        labels: Any = None,
        class_names: Any = None,
        percent: bool = False,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability curve of scores.

        Parameters
        ----------
        y_true, y_prob, sample_weight, counts, cluster, labels, percent
            As for `reliability_curve`.
        class_names : sequence or mapping, optional
            Names of the classes in the picture: in the order of the columns (1-D scores: negative, positive),
            or by label. `pos_label` of the display is such a name then.
        n_bins : int, optional
            Number of bins drawn over the curve; None for the curve alone.
        strategy : {"uniform", "quantile"}
            Bins of equal width or of equal mass.
        pos_label : label, optional
            The selected class.
        name : str, optional
            Name in the legend.
        ax, ref_line, **kwargs
            As for `plot`.
        notion : {"binary", "confidence"}, optional
            By default `binary` for 1-D scores or with `pos_label`, and `confidence` for a matrix.
        method : {"bayes", "density"}, optional
            As for `reliability_curve`: the posterior behind the error by default, a ratio of densities if a
            bandwidth is given.
        bandwidth : {"silverman", "scott", "isj"} or float, optional
            How widely a density is smoothed. The rules suppose one heap of scores; for scores that crowd at
            both ends give a number, 0.05 for instance.
        level : float
            Level of the band and of the intervals.
        rng : int, numpy.random.Generator or None, default=0
            Seed of the bootstrap behind the curve; None draws a new one.
        """
        inputs.check_choice("strategy", strategy, STRATEGIES)
        notions.refuse_canonical(notion)
        if notion is not None and notions.get_notion(notion).classwise:
            raise inputs.InputError(
                "notion",
                "compare one score a row",
                notion,
                hint="for a picture of every class: "
                f'calibrant.reliability_curve(y_true, y_prob, notion="{notion}").plot()',
            )
        if notion is None and pos_label is not None:
            notion = notions.default_notion(None, vector=True).name
        rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
        task = build_task(*rows, counts=counts, percent=percent)
        method = method or ("bayes" if bandwidth is None else "density")
        curve = curve_of(task, method=method, bandwidth=bandwidth, level=level, rng=rng)
        diagram = None
        if n_bins is not None:
            binning = f"{STRATEGIES[strategy]}:{inputs.positive_int('n_bins', n_bins)}"
            diagram = each_problem(task, diagram_of, binning=binning, level=level)
        assert isinstance(curve, ReliabilityCurve)
        assert not isinstance(diagram, ByClass)
        assert task.rows is not None
        every = np.arange(task.rows.n)
        scores = task.problems[0].score if task.notion.is_binary else task.rows.take(every)[0]
        names = inputs.class_names(task.labels, class_names)
        curve, diagram = rename_classes(curve, names), rename_classes(diagram, names)
        display = cls(curve, diagram, scores, "Classifier" if name is None else name)
        return display.plot(ax=ax, ref_line=ref_line, **kwargs)
