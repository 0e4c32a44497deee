"""Operations with several outputs: the node that they share, and the named tuple that they return.

PyTorch's `eigh`, `qr`, `svd`, `slogdet` or `var_mean` are one node with several outputs. Here each output has its own
rule, and the node adds up what they send back. A named tuple such as `torch.return_types.max` prints each of its fields
on a line of its own.
"""

from __future__ import annotations

from typing import Any, TypeVar

from gradcli.eager._core import tracer
from gradcli.eager._core.node import Node, class_named, versions
from gradcli.eager._core.tensor import Tensor


class SeveralNode(Node):
    """The node of several results: for each output the node that knows its rule, or None where nothing flows."""

    __slots__ = ("outputs", "parts")
    outputs: int
    parts: tuple[Any, ...]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs: the sum over the outputs."""
        self.check_not_freed()
        total: list[Any] = [None] * len(self.ins)
        for ct, part in zip(cts, self.parts, strict=True):
            if ct is None or part is None:  # nothing flows through a step, as in PyTorch's
                continue
            for i, found in enumerate(part.run([ct], create_graph)):
                if found is not None:
                    total[i] = found if total[i] is None else total[i] + found
        return total

    def release(self) -> None:
        """Free what the parts saved."""
        super().release()
        for part in self.parts:
            if part is not None:
                part.release()


def one_node(name: str, *results: Tensor | None) -> tuple[Tensor, ...]:
    """The results as outputs of one node in this order; None stands for an output that nobody asked."""
    found = [x for x in results if x is not None]
    nodes = [None if x is None else x._node for x in results]
    made = [node for node in nodes if node is not None]
    if not made or any(isinstance(x, tracer.Traced) for x in found):
        return tuple(found)
    saved = tuple([one for node in made for one in node.saved or ()])
    node = class_named(SeveralNode, name)(made[0].ins, saved, made[-1].place)
    node.vers = versions(saved)
    node.outputs, node.parts = len(results), tuple(nodes)
    for i, x in enumerate(results):
        if x is not None:
            x._requires, x._edge = True, (node, i)
    return tuple(found)


T = TypeVar("T")
HOME = "torch.return_types"
_made: dict[Any, Any] = {}


def shown(result: Any) -> str:
    """A result as PyTorch prints it."""
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"{HOME}.{type(result).__name__}(\n{fields})"


def named(base: type[T], name: str) -> type[T]:
    """The type of the results of one operation: a named tuple that has the name of the operation.

    >>> from collections import namedtuple
    >>> named(namedtuple("Found", "values indices"), "max")(values=3, indices=0)
    torch.return_types.max(
    values=3,
    indices=0)
    """
    found = _made.get((base, name))
    if found is None:
        found = _made[base, name] = type(name, (base,), {"__slots__": (), "__module__": HOME, "__repr__": shown})
    return found


def of_node(base: type[T], node: str) -> type[T]:
    """The type for the operation of a node: `SortBackward0` gives that of `sort`."""
    return named(base, node.partition("Backward")[0].lower())
