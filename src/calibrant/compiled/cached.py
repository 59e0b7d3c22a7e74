"""A cached property that holds no lock while its value is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):
    """Compute a value at the first access and keep it in the instance's `__dict__`.

    In Python 3.11 `functools.cached_property` holds one lock for all instances of a class while it computes:
    threads wait for each other, and a process forked meanwhile waits for ever. Here two threads that ask the
    same instance at once may both compute the value; both get the one that was stored first.

    Examples
    --------
    >>> class Circle:
    ...     radius = 2
    ...
    ...     @cached_property
    ...     def area(self):
    ...         return 3.14 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, circle.__dict__
    (12.56, {'area': 12.56})
    """

    def __init__(self, compute: Callable[[Any], Value]):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object, owner: type | None = None) -> Self | Value:
        if instance is None:
            return self
        # Not a data descriptor: once the value is stored, attribute access finds it without this call.
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value
