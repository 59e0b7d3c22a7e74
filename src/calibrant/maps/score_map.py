"""What `Calibrator` and `PriorShift` share: parameters, files, and exports to SQL and Python."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from calibrant import inputs
from calibrant.atomic import write_atomic
from calibrant.inputs import InputError, Serializable
from calibrant.inputs.printed import Printed
from calibrant.maps.forms import Form
from calibrant.maps.sql import DIALECTS

# First lines of exported Python functions.
_PYTHON_GUARD = [
    "try:",
    "    valid = 0.0 <= score <= 1.0",
    "except (TypeError, ArithmeticError):",
    "    valid = False",
    "if not valid:",
    '    raise ValueError(f"score must be a number from 0 to 1, got {score!r}")',
    "score = float(score)",
]


class NotFittedError(InputError, AttributeError):
    """A calibrator was used before `fit`.

    The error is also scikit-learn's `NotFittedError` if scikit-learn has been imported. Code that has not
    imported it cannot refer to that class.
    """

    def __new__(cls) -> Self:
        """Make an error of scikit-learn's class too."""
        sklearn = sys.modules.get("sklearn.exceptions")
        kind = cls if sklearn is None else type(cls.__name__, (cls, sklearn.NotFittedError), {})
        return super().__new__(kind)

    def __init__(self) -> None:
        super().__init__("calibrator", "be fitted before use", hint="call fit() first")

    def __reduce__(self) -> tuple[Any, ...]:
        # The class that `__new__` makes has no importable name.
        return NotFittedError, ()


class ScoreMap(Printed):
    """Base class of estimators that map scores to probabilities.

    It follows the conventions of scikit-learn estimators (`get_params`, `set_params`, `sklearn.base.clone`)
    and does not need scikit-learn.
    """

    #: Names of the parameters of the constructor.
    _parameters: ClassVar[tuple[str, ...]]

    #: What is written to a file.
    _file: ClassVar[type[Serializable]]

    @abstractmethod
    def _saved(self) -> Any:
        """Return what is written to a file."""

    @classmethod
    @abstractmethod
    def _restored(cls, saved: Any) -> Self:
        """Return the calibrator of a file."""

    @abstractmethod
    def _steps(self) -> Sequence[Form]:
        """Return the maps of one score that are applied in turn; refuse multiclass scores and logits."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor.

        Parameters
        ----------
        deep : bool, default=True
            Accepted for compatibility with scikit-learn; parameters of parameters are not returned.

        Returns
        -------
        dict

        See Also
        --------
        set_params : Change parameters.

        Examples
        --------
        >>> import calibrant
        >>> calibrant.Calibrator("platt").get_params()["method"]
        'sigmoid'
        """
        return {name: getattr(self, name) for name in self._parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of the constructor; the calibrator has to be fitted again.

        Parameters
        ----------
        **params : dict
            New values by name.

        Returns
        -------
        ScoreMap
            The same object.

        See Also
        --------
        get_params : Return the parameters.

        Examples
        --------
        >>> import calibrant
        >>> calibrant.Calibrator().set_params(method="beta")
        Calibrator('beta')
        """
        for name in params:
            inputs.check_choice("parameter", name, self._parameters)
        if params:
            # A map fitted with other parameters would disagree with these, so nothing of it is kept.
            values = self.get_params() | params
            self.__dict__.clear()
            type(self).__init__(self, **values)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # only scikit-learn calls this method

        return BaseEstimator.__sklearn_tags__(self)

    def to_json(self) -> str:
        """Return the fitted calibrator as JSON.

        Returns
        -------
        str

        See Also
        --------
        from_json : Read it.
        save : Write it to a file.

        Examples
        --------
        >>> import calibrant
        >>> '"method": "sigmoid"' in calibrant.Calibrator("platt").fit([0.1, 0.9], [0, 1]).to_json()
        True
        """
        text: str = self._saved().to_json()
        return text

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a calibrator from the JSON of `to_json`.

        Parameters
        ----------
        text : str
            JSON. Every field is checked.

        Returns
        -------
        ScoreMap
            It predicts exactly the same probabilities.

        See Also
        --------
        load : Read it from a file.

        Examples
        --------
        >>> import calibrant
        >>> calibrator = calibrant.Calibrator("temperature").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> again = calibrant.Calibrator.from_json(calibrator.to_json())
        >>> bool((again.predict_proba([0.2]) == calibrator.predict_proba([0.2])).all())
        True
        """
        return cls._restored(cls._file.from_json(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON of `to_json` to a file, atomically.

        Parameters
        ----------
        path : str or path
            File to write.

        See Also
        --------
        load : Read the file.

        Examples
        --------
        >>> import tempfile
        >>> import calibrant
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     calibrant.Calibrator("beta").fit([0.1, 0.9], [0, 1]).save(f"{folder}/map.json")
        ...     calibrant.Calibrator.load(f"{folder}/map.json")
        Calibrator('beta', n=2)
        """
        write_atomic(path, [self.to_json().encode()])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`.

        Parameters
        ----------
        path : str or path
            File to read.

        Returns
        -------
        ScoreMap

        See Also
        --------
        save : Write the file, with an example.
        """
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def to_sql(self, column: str, *, dialect: str = "standard") -> str:
        """Return a SQL expression that maps a column of scores.

        It is NULL where the column is NULL, NaN or outside of [0, 1].

        Parameters
        ----------
        column : str
            Name of the column, quoted as the engine requires.
        dialect : {"standard", "sqlite"}, default="standard"
            "standard" is for DuckDB, PostgreSQL and Spark. "sqlite" is for SQLite, where text is mapped to
            NULL too.

        Returns
        -------
        str
            Expression that uses only `CASE`, `LN`, `EXP`, `LEAST` and `GREATEST`; in SQLite `MIN` and `MAX`
            instead of the last two.

        See Also
        --------
        to_python : The same map as a Python function.

        Examples
        --------
        >>> import calibrant
        >>> calibrant.Calibrator("identity").fit([0.1, 0.9], [0, 1]).to_sql("score")
        'CASE WHEN score BETWEEN 0E0 AND 1E0 THEN score END'
        """
        inputs.check_choice("dialect", dialect, DIALECTS)
        mapped, spelling = column, DIALECTS[dialect]
        for form in self._steps():
            mapped = form.sql(mapped, spelling)
        return spelling.guarded(column, mapped)

    def to_python(self, name: str = "calibrated") -> str:
        """Return the source of a Python function that maps a single score with the standard library.

        The function raises `ValueError` for what is not a number from 0 to 1, also for None and NaN.

        Parameters
        ----------
        name : str, default="calibrated"
            Name of the function.

        Returns
        -------
        str

        See Also
        --------
        to_sql : The same map as a SQL expression.

        Examples
        --------
        >>> import calibrant
        >>> print(calibrant.Calibrator("identity").fit([0.1, 0.9], [0, 1]).to_python())
        import bisect
        import math
        <BLANKLINE>
        <BLANKLINE>
        def calibrated(score):
            try:
                valid = 0.0 <= score <= 1.0
            except (TypeError, ArithmeticError):
                valid = False
            if not valid:
                raise ValueError(f"score must be a number from 0 to 1, got {score!r}")
            score = float(score)
            return score
        <BLANKLINE>
        """
        if not name.isidentifier():
            raise InputError("name", "be a name that Python takes", name)
        *first, last = self._steps()
        lines = [*_PYTHON_GUARD]
        for form in first:
            lines += ["def step(score):", *(f"    {line}" for line in form.python()), "score = step(score)"]
        body = "\n".join(f"    {line}" for line in [*lines, *last.python()])
        return f"import bisect\nimport math\n\n\ndef {name}(score):\n{body}\n"
