"""What a node reads when it runs goes in, how the node keeps it comes out: never the node's own output as a tensor.

Operands are kept as they are; results as a payload with its version; and what a pack hook made, with its hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.eager.nodes import Node
    from gradcli.eager.tensor import Tensor


class Saved:
    """A result that its own node reads when it runs: the payload and the version, without the tensor."""

    __slots__ = ("__dict__", "_count", "_raw")
    _raw: Any
    _count: Any
    version = 0
    output = 0
    tangent: Any = None  # of a dual result, while its level is open


def saved_result(raw: Any, counter: Any, output: int = 0) -> Saved:
    """A result as its node keeps it."""
    found = Saved()
    found._raw, found._count = raw, counter
    if counter.value:
        found.version = counter.value
    if output:
        found.output = output
    return found


class Packed:
    """What a pack hook made of a saved tensor, and the hook that makes a tensor of it again."""

    __slots__ = ("_count", "kept", "shape", "source", "unpack")

    def __init__(self, kept: Any, unpack: Any, source: Any, shape: tuple[int, ...]) -> None:
        self.kept = kept
        self.shape = shape
        self.unpack = unpack
        self.source = source  # where a gradient of the tensor goes; a number: it is that output of the node itself
        self._count = None

    def attached(self, node: Node) -> Tensor:
        """What the unpack hook returns, in the place that the packed tensor had in the graph."""
        from gradcli.eager.tensor import Tensor

        found, source = self.tensor(), self.source
        if source is None or source is found:
            return found
        result = Tensor(found._raw, True)
        if isinstance(source, int):
            result._edge = (node, source)
        elif source._seq < 0:
            result._edge = (source.node, source.nr)
        elif source._seq > 0:
            result._edge = (source, 0)
        else:
            result._stands_for, result._odd = source, True
        return result

    def tensor(self) -> Tensor:
        """What the unpack hook returns; TypeError unless it is a tensor, RuntimeError unless it has the shape."""
        from gradcli.eager.tensor import Tensor

        found = self.unpack(self.kept)
        if not isinstance(found, Tensor):
            raise TypeError(f"the unpack hook of saved_tensors_hooks must return a tensor, not {type(found).__name__}")
        if found._raw.shape != self.shape:
            raise RuntimeError(
                f"the unpack hook of saved_tensors_hooks returned a tensor of shape {list(found.shape)}, "
                f"but one of shape {list(self.shape)} was packed"
            )
        return found


def versions(saved: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The versions that saved values have now; None where all are 0."""
    for one in saved:
        if one is not None and one._count is not None and one._count.value:
            return tuple([0 if x is None or x._count is None else x._count.value for x in saved])
    return None
