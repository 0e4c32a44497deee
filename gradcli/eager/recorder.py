"""What operations, sweeps and changes report goes in, a record of one run comes out; explains nothing.

`current` is None unless someone records in this thread. The places that report ask `recorder.current is not None`
first, so that an ordinary run pays next to nothing. A record holds no tensor: each tensor that it meets carries a
number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.per_thread import per_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.nodes import Node
    from gradcli.eager.tensor import Tensor


class Recorder:
    """What a recording has to answer to; this one forgets everything."""

    def operation(self, name: str, xs: Sequence[Any], result: Tensor) -> None:
        """An operation gave a result, with or without a node."""

    def ruled(self, result: Tensor, function: Any, saved: Sequence[Any]) -> None:
        """A result has a rule of its own, of a class with forward and backward, which saved these values."""

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


def noted(name: str, xs: Sequence[Any], result: Tensor) -> Tensor:
    """The result of an operation that never leaves a node, told to whoever records."""
    if _own.current is not None:
        _own.current.operation(name, xs, result)
    return result
