"""Everything one asks of a model's scores, in one object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from calibrant.assessment import text as wording
from calibrant.assessment.decomposition import Score
from calibrant.assessment.findings import Findings
from calibrant.assessment.parts import Balance, Row
from calibrant.assessment.serialize import curve_from, diagram_from, odds_from, to_plain
from calibrant.curves.curve import ByClass
from calibrant.inference.result import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Findings):
    """How far a model's scores are from probabilities: numbers, pictures, words.

    Its numbers are the attributes of `Findings`; `print` shows the most important of them.
    """

    @property
    def verdict(self) -> str:
        """One sentence: how far off, in which direction, and what chance alone would show."""
        return wording.verdict(self)

    @property
    def summary(self) -> str:
        """Three or four plain sentences that claim no more than the intervals allow."""
        return " ".join(wording.summary(self))

    @property
    def methods(self) -> str:
        """What to write about all this in a paper."""
        return wording.methods(self)

    def __str__(self) -> str:
        lines = [self.summary, "", *(str(found) for found in self.estimates.values())]
        lines += ["", *(_score_line(score) for score in self.scores)] if self.scores else []
        for title, some in (("class", self.by_class), ("group", self.by_group)):
            lines += ["", *_table(title, some)] if some else []
        lines += ["", *(f"Note: {text}" for text in self.warnings)] if self.warnings else []
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the headline's curve with its band and the bins; class-wise, one panel for each class."""
        from calibrant import plot

        curve, diagram = self.curve, self.diagram
        if isinstance(curve, ByClass) or isinstance(diagram, ByClass):
            return plot.small_multiples(curve, ax)  # type: ignore[arg-type]
        return plot.overlay(curve, diagram, ax)

    def to_html(self, path: str | Path | None = None) -> str | None:
        """Write the report as one self-contained page; without a path, return it.

        Parameters
        ----------
        path : str or Path, optional
            Where to write.
        """
        from calibrant import report

        page = report.page(self)
        if path is None:
            return page
        report.write(Path(path), page)
        return None

    def _repr_html_(self) -> str:
        from calibrant import report

        return report.fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text; curves at a few hundred scores."""
        found: dict[str, Any] = {"format": FORMAT, "value": self.estimate.value, "verdict": self.verdict}
        found |= {key: getattr(self, key) for key in _PLAIN}
        found |= {key: list(found[key]) for key in ("classes", "warnings")}
        found["estimates"] = {k: v.to_dict() for k, v in self.estimates.items()}
        found["rulers"] = {k: v.to_dict() for k, v in self.rulers.items()}
        for key in ("curves", "diagrams"):
            found[key] = {k: to_plain(v) for k, v in getattr(self, key).items()}
        for key in ("by_class", "by_group", "scores"):
            found[key] = [one.to_dict() for one in getattr(self, key)]
        found["odds"] = {key: to_plain(getattr(self.odds, key)) for key in ("edges", "counts", "diagram")}
        for key in ("balance", "accuracy"):
            found[key] = None if getattr(self, key) is None else asdict(getattr(self, key))
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Assessment:
        """The assessment that `to_dict` wrote."""
        if values.get("format") != FORMAT:
            raise ValueError(f"not an assessment of format {FORMAT}, got {values.get('format')!r}")
        found = {key: values[key] for key in _PLAIN}
        found |= {key: tuple(values[key]) for key in ("classes", "warnings")}
        for key, read in (
            ("estimates", Estimate.from_dict),
            ("rulers", Estimate.from_dict),
            ("curves", curve_from),
            ("diagrams", diagram_from),
        ):
            found[key] = MappingProxyType({k: read(v) for k, v in values[key].items()})
        found["by_class"] = tuple(Row.from_dict(one) for one in values["by_class"])
        found["by_group"] = tuple(Row.from_dict(one) for one in values["by_group"])
        found["scores"] = tuple(Score.from_dict(one) for one in values["scores"])
        found["odds"] = odds_from(values["odds"])
        for key in ("balance", "accuracy"):
            found[key] = None if values[key] is None else Balance(**values[key])
        return cls(**found)

    def to_json(self, path: str | Path | None = None) -> str | None:
        """JSON that `from_json` reads: written to `path`, or returned without one."""
        text = json.dumps(self.to_dict(), allow_nan=False)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    @classmethod
    def from_json(cls, text: str) -> Assessment:
        """The assessment that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.to_dict(),)


_PLAIN = (
    "notion",
    "warnings",
    "rows",
    "n",
    "classes",
    "asked",
    "level",
    "seed",
    "created",
    "digest",
    "version",
    "name",
    "command",
)


def _rebuilt(values: dict[str, Any]) -> Assessment:
    return Assessment.from_dict(values)


def _score_line(score: Score) -> str:
    return (
        f"{score.name} ({score.about}) {score.value:.4f} = calibration {score.calibration:.4f} "
        f"- resolution {score.resolution:.4f} + uncertainty {score.uncertainty:.4f}"
    )


def _table(title: str, rows: tuple[Row, ...], most: int = 12) -> list[str]:
    level = f"{100 * rows[0].estimate.level:.5g} %"
    width = max(len(title), *(len(wording.short(row.name)) for row in rows[:most]))
    head = "".join(f"{word:>12}" for word in ("rows", "mean score", "frequency", "ECE"))
    lines = [f"{title:<{width}}{head}  {level} interval  adjusted p"]
    for row in rows[:most]:
        e, name = row.estimate, wording.short(row.name)
        numbers = f"{row.rows:>12.15g}{row.score:>12.4f}{row.frequency:>12.4f}{e.value:>12.4f}"
        lines.append(f"{name:<{width}}{numbers}  [{e.low:.4f}, {e.high:.4f}]  {row.p_adjusted:.2g}")
    return lines + ([f"... and {len(rows) - most} more"] if len(rows) > most else [])
