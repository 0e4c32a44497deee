"""The protocol by which operations, sweeps and in-place changes report to the recorder of a run.

`current` is None unless someone records in this thread. The places that report test `events.current is not None` first,
so that an ordinary run pays next to nothing. A record holds no tensor: each tensor has a number instead.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tensor = Any  # a report is made of tensors and nodes, which stand on this module
    Node = Any

T = TypeVar("T")


def per_thread(module: str, **values: Any) -> Any:
    """Give these names of a module a value in each thread, at first the given one.

    The module is read and assigned to as usual from outside. The object that is returned has the same names, for the
    module itself.

    >>> import types; sys.modules["example"] = types.ModuleType("example")
    >>> own = per_thread("example", current=None)
    >>> sys.modules["example"].current = 3
    >>> thread = threading.Thread(target=lambda: print(own.current))
    >>> thread.start(); thread.join()
    None
    >>> own.current
    3
    """
    local = type("Values", (threading.local,), values)()

    def named(name: str) -> property:
        return property(lambda _: getattr(local, name), lambda _, value: setattr(local, name, value))

    sys.modules[module].__class__ = type("Module", (ModuleType,), {name: named(name) for name in values})
    return local


class Recorder:
    """What a recording has to answer to; this one forgets everything."""

    def operation(self, name: str, xs: Sequence[Any], result: Tensor) -> None:
        """An operation gave a result, with or without a node."""

    def ruled(self, result: Tensor, name: str, backward: Any, saved: Sequence[Any]) -> None:
        """A result has a rule of its own, of a class of this name with a backward, and saved these values."""

    def cut(self, how: str, xs: Sequence[Any], result: Tensor | None) -> None:
        """Values left the graph: by detach(), item(), numpy() and the like."""

    def same(self, tensor: Tensor, other: Tensor) -> None:
        """From now on a tensor stands for what another one stands for."""

    def changed(self, tensor: Tensor, result: Tensor) -> None:
        """A tensor was changed in place; `result` is what was computed for it."""

    def moved(self, tensor: Tensor) -> None:
        """A tensor was given new values, by an optimizer or through .data."""

    def adopted(self, tensors: Sequence[Tensor]) -> None:
        """An optimizer was given tensors to move."""

    def grad_read(self, tensor: Tensor) -> None:
        """Someone looked at `.grad`."""

    def grad_set(self, tensor: Tensor, value: Tensor | None) -> None:
        """Someone assigned to `.grad`."""

    def refused(self, root: Tensor) -> None:
        """A backward was wanted of a tensor that does not require grad."""

    def stopped(self, why: str, name: str, where: Any, changed: Any) -> None:
        """A backward cannot go through a node: what it saved was `changed` in place, or `freed`."""

    def sweep(
        self, roots: Sequence[Tensor], targets: Sequence[Tensor] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""

    def accumulated(self, leaf: Tensor, value: Tensor) -> None:
        """A backward added a gradient into `.grad`."""

    def swept(self, ended: bool = True) -> None:
        """A backward ended, or broke off."""


current: Recorder | None
_own = per_thread(__name__, current=None)


def noted(name: str, xs: Sequence[Any], result: T) -> T:
    """The result of an operation that never leaves a node, reported to the recorder."""
    if _own.current is not None:
        _own.current.operation(name, xs, result)
    return result
