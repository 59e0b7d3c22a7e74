"""The codec of frozen dataclasses: what is written is read, and damage is refused by field."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest

from calibrant import InputError
from calibrant.inputs import Array
from calibrant.inputs.codec import Ascending, Bounds, Serializable, Shape


@dataclass(frozen=True, eq=False)
class Step:
    kind: ClassVar[str] = "step"
    at: Annotated[Array, Shape((None,)), Ascending()]
    share: Annotated[float, Bounds(0, 1)] = 0.5

    def _check_fields(self):
        if self.at[0] > 1:
            raise InputError("at[0]", "be at most 1", self.at[0])


@dataclass(frozen=True)
class Constant(Serializable):
    kind: ClassVar[str] = "constant"
    value: float


@dataclass(frozen=True, eq=False)
class Whole(Serializable):
    name: str
    count: Annotated[int, Bounds(1)]
    flag: bool
    choice: Literal["a", "b"]
    labels: tuple[Hashable, ...]
    parts: tuple[Step | Constant, ...]
    table: Annotated[Array, Shape((2, None))]
    maybe: Annotated[float, Bounds(0, above=True)] | None = None


WHOLE = Whole(
    "w", 3, True, "b", (1, "x", None, 2.5, ("a", 1), False),
    (Step(np.array([0.1, 1 / 3])), Constant(-0.0)), np.array([[1.0, 2.0], [3.0, 1e-300]]),
)  # fmt: skip


def test_what_is_written_is_read_to_the_last_bit():
    again = Whole.from_json(WHOLE.to_json())
    assert again.to_dict() == WHOLE.to_dict()
    assert again.labels == WHOLE.labels
    assert [type(label) for label in again.labels] == [type(label) for label in WHOLE.labels]
    assert isinstance(again.parts[0], Step)
    assert math.copysign(1, again.parts[1].value) == -1
    np.testing.assert_array_equal(again.table, WHOLE.table)
    assert WHOLE.to_dict()["parts"][0] == {"kind": "step", "at": [0.1, 1 / 3], "share": 0.5}


def test_whole_numbers_are_read_as_floats_where_these_are_meant():
    part = {"kind": "step", "at": [0, 1], "share": 1}
    again = Whole.from_dict(WHOLE.to_dict() | {"parts": [part], "maybe": 2})
    assert again.parts[0].at.dtype == np.float64
    assert again.maybe == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "name must be a text, got 3"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"count": 1.0}, "count must be a whole number, got 1.0"),
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"flag": 1}, "flag must be true or false, got 1"),
        ({"choice": "c"}, "choice must be one of 'a', 'b', got 'c'"),
        ({"choice": []}, r"choice must be one of 'a', 'b', got \[\]"),
        ({"labels": "ab"}, "labels must be a list, got 'ab'"),
        ({"labels": [{}]}, r"labels\[0\] must be a label: .*, got {}"),
        ({"labels": [math.nan]}, r"labels\[0\] must be finite, got nan"),
        ({"parts": [{"kind": "step"}]}, r"parts\[0\].at must be given"),
        ({"parts": [{"at": [0.0]}]}, r"parts\[0\].kind must be one of 'step', 'constant', got None"),
        ({"parts": [{"kind": ["step"]}]}, r"parts\[0\].kind must be one of"),
        ({"parts": [5]}, r"parts\[0\] must be a mapping of fields, got 5"),
        ({"parts": [{"kind": "constant", "value": 10**400}]}, r"parts\[0\].value must be finite"),
        ({"parts": [{"kind": "constant", "value": 1, "v": 1}]}, r"parts\[0\].v must be a known field"),
        ({"parts": [{"kind": "step", "at": [], "share": 1}]}, r"parts\[0\].at must have shape \(n\)"),
        ({"parts": [{"kind": "step", "at": [2, 1], "share": 1}]}, r"parts\[0\].at\[1\] must not be below"),
        ({"parts": [{"kind": "step", "at": [2], "share": 1}]}, r"parts\[0\].at\[0\] must be at most 1"),
        ({"parts": [{"kind": "step", "at": [True], "share": 1}]}, r"parts\[0\].at\[0\] must be a number"),
        ({"parts": [{"kind": "step", "at": [0], "share": 2}]}, r"parts\[0\].share must lie in \[0, 1\]"),
        ({"table": [[1.0], [2.0, 3.0]]}, r"table\[1\] must have 1 entries, got 2"),
        ({"table": [[1.0]]}, r"table must have shape \(2, n\), got shape \(1, 1\)"),
        ({"table": [1.0, 2.0]}, r"table\[0\] must be a list, got 1.0"),
        ({"maybe": 0}, "maybe must be above 0, got 0.0"),
        ({"counts": 1}, "counts must be a known field, got 'counts'; did you mean 'count'"),
    ],
)
def test_damage_is_refused_by_the_path_of_the_field(change, message):
    with pytest.raises(InputError, match=f"^whole.{message}"):
        Whole.from_dict(WHOLE.to_dict() | change)


def test_what_is_no_object_is_refused_by_its_name():
    with pytest.raises(InputError, match=r"^whole must be a mapping of fields, got 3"):
        Whole.from_json("3")
    with pytest.raises(InputError, match=r"^whole must be JSON"):
        Whole.from_json("{")


def test_a_value_that_json_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"^value must be a number, got 1j"):
        Constant(1j).to_json()


def test_an_annotation_without_a_rule_is_a_fault_of_the_class():
    @dataclass(frozen=True)
    class Odd(Serializable):
        value: complex

    Odd.__annotations__["value"] = complex
    with pytest.raises(TypeError, match=r"odd\.value: the codec has no rule for"):
        Odd.from_dict({"schema": 1, "value": 1})
