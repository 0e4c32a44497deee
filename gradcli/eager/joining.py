"""Tensors go in, one that joins or repeats them comes out, or the parts of one taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import record, source_of
from gradcli.eager.indexing import narrow, select
from gradcli.eager.movement import axis_of, sizes
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

Shape = tuple[int, ...]


def _joined(*xs: Any, axis: int) -> Any:
    return xs[0].bind(catalogue()["concat"], xs, {"axis": axis})


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along an axis that they have."""
    xs = _several(tensors, "cat")
    return record(_joined, xs, {"axis": axis_of(dim, xs[0].ndim)}, "CatBackward0", whole=True)


def _stacked(*xs: Any, axis: int) -> Any:
    rank = len(xs[0].shape) + 1
    at = rank + axis
    shape = (*xs[0].shape[:at], 1, *xs[0].shape[at:])
    return _joined(*[catalogue()["reshape"](x, shape=tuple(shape)) for x in xs], axis=axis)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    xs = _several(tensors, "stack")
    if any(x._array.shape != xs[0]._array.shape for x in xs):
        raise RuntimeError("stack expects each tensor to be equal size")
    return record(_stacked, xs, {"axis": axis_of(dim, xs[0].ndim + 1)}, "StackBackward0", whole=True)


def _several(tensors: Sequence[Tensor], what: str) -> tuple[Tensor, ...]:
    xs = tuple(tensors)
    if not xs:
        raise (ValueError if what == "cat" else RuntimeError)(f"{what}() needs a non-empty list of tensors")
    if not all(isinstance(x, Tensor) for x in xs):
        raise TypeError(f"{what}() joins tensors only")
    return xs


def _scripted(x: Any, *, name: str, **params: Any) -> Any:
    primitive = catalogue()[name]
    return (primitive.call or primitive.definition)(x, **params)  # type: ignore[misc]


def flip(input: Tensor, *dims: Any) -> Tensor:
    """The entries in the opposite order along some axes."""
    return record(_scripted, (input,), {"name": "flip", "axis": sizes(dims)}, "FlipBackward0", whole=True)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The entries moved along axes; what leaves at one end enters at the other."""
    axis = tuple(dims) if isinstance(dims, (list, tuple)) else dims
    shift = tuple(shifts) if isinstance(shifts, (list, tuple)) else shifts
    return record(_scripted, (input,), {"name": "roll", "shift": shift, "axis": axis}, "RollBackward0", whole=True)


def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """The tensor repeated as a whole, so many times along each axis."""
    return record(_scripted, (input,), {"name": "tile", "reps": sizes(repeats)}, "RepeatBackward0", whole=True)


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The entries on and below a diagonal, zeros above."""
    return record(_scripted, (input,), {"name": "tril", "k": diagonal}, "TrilBackward0", whole=True)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The entries on and above a diagonal, zeros below."""
    return record(_scripted, (input,), {"name": "triu", "k": diagonal}, "TriuBackward0", whole=True)


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    return record(_scripted, (input,), {"name": "trace"}, "TraceBackward0", whole=True)


# --- several results ---------------------------------------------------------------------------------------


class PartsNode(Node):
    """The node of a tensor taken apart: the gradients of the parts are put together again, zeros for unused ones."""

    __slots__ = ("axis", "shapes", "type")
    axis: int
    shapes: tuple[Shape, ...]
    type: Any

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradient of the whole."""
        parts = []
        for ct, shape in zip(cts, self.shapes, strict=True):
            if ct is None:
                ct = np.zeros(shape, self.type)
            parts.append(ct if isinstance(ct, Tensor) else Tensor(ct))
        whole = stack(parts, self.axis) if self.name() == "UnbindBackward0" else cat(parts, self.axis)
        return [whole if create_graph else whole._array]


def _apart(x: Tensor, parts: list[Tensor], axis: int, name: str) -> tuple[Tensor, ...]:
    node = None
    if recording() and x.requires_grad:
        node = class_named(PartsNode, name)((source_of(x),), (), place(), len(parts))
        assert isinstance(node, PartsNode)
        node.axis, node.type = axis, x._array.dtype
        node.shapes = tuple([part._array.shape for part in parts])
    for i, part in enumerate(parts):
        part._made = part._made or "several"
        if node is not None:
            part._requires, part._edge = True, (node, i)
    return tuple(parts)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, one for each position; one node for all of them."""
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        raise IndexError("a 0-d tensor cannot be unbound")
    parts = [select(input, axis, i) for i in range(input.shape[axis])]
    return _apart(input, parts, axis, "UnbindBackward0")


def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size along an axis, the last one may be smaller; or parts of given sizes."""
    axis = axis_of(dim, input.ndim)
    size = input.shape[axis]
    if isinstance(split_size_or_sections, int):
        each = split_size_or_sections
        counts = [min(each, size - start) for start in range(0, size, each)]
        name = "SplitBackward0"
    else:
        counts = list(split_size_or_sections)
        name = "SplitWithSizesBackward0"
        if sum(counts) != size:
            raise RuntimeError(f"split_with_sizes expects sizes that sum to {size}, not {counts}")
    parts, start = [], 0
    for count in counts:
        parts.append(narrow(input, axis, start, count))
        start += count
    return _apart(input, parts, axis, name)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts of equal size along an axis."""
    size = input.shape[axis_of(dim, input.ndim)]
    return split(input, max(-(-size // chunks), 1), dim)


TABLE = {
    function.__name__: function
    for function in (cat, stack, flip, roll, repeat, tril, triu, trace, unbind, split, chunk)
}
