"""Tensors go in, one that joins or repeats them comes out, or the parts of one taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.dispatch import record
from gradcli.eager.indexing import narrow, select
from gradcli.eager.movement import axis_of, expand, reshape, unsqueeze, view
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.raising import atleast_1d, atleast_2d, atleast_3d
from gradcli.eager.rules import source_of
from gradcli.eager.sizes import sizes
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.signatures import Dims, Sizes, Tensors

Shape = tuple[int, ...]


_TOGETHER = 256  # that are joined at once: where a gradient is cut apart, each part asks for the sizes before it


def _joined(*xs: Any, axis: int) -> Any:
    concat = catalogue()["concat"]
    while len(xs) > _TOGETHER:
        groups = [xs[i : i + _TOGETHER] for i in range(0, len(xs), _TOGETHER)]
        xs = tuple([group[0].bind(concat, group, {"axis": axis}) for group in groups])
    return xs[0].bind(concat, xs, {"axis": axis})


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


def flip(input: Tensor, *given: Any, dims: Any = None) -> Tensor:
    """The entries in the opposite order along some axes."""
    params = {"name": "flip", "axis": sizes(given, dims, "dims")}
    return record(_scripted, (input,), params, "FlipBackward0", whole=True)


def roll(input: Tensor, shifts: Sizes, dims: Dims = None) -> Tensor:
    """The entries moved along axes; what leaves at one end enters at the other."""
    axis = tuple(dims) if isinstance(dims, (list, tuple)) else dims
    shift = tuple(shifts) if isinstance(shifts, (list, tuple)) else shifts
    return record(_scripted, (input,), {"name": "roll", "shift": shift, "axis": axis}, "RollBackward0", whole=True)


def repeat(input: Tensor, *given: Any, repeats: Any = None) -> Tensor:
    """The tensor repeated as a whole, so many times along each axis. RuntimeError for fewer numbers than axes."""
    times = sizes(given, repeats, "repeats")
    if len(times) < input.ndim:
        raise RuntimeError(
            f"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: {len(times)} "
            f"against {input.ndim}"
        )
    if any(n < 0 for n in times):
        raise RuntimeError(f"a tensor cannot be repeated a negative number of times: {list(times)}")
    return record(_scripted, (input,), {"name": "tile", "reps": times}, "RepeatBackward0", whole=True)


def tile(input: Tensor, *given: Any, dims: Any = None) -> Tensor:
    """The tensor repeated as a whole, so many times along each axis, once along the axes that are not named."""
    times = sizes(given, dims, "dims")
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


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

    __slots__ = ("axis", "outputs", "shapes", "type")
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
        node = class_named(PartsNode, name)((source_of(x),), (), place())
        node.outputs = len(parts)
        assert isinstance(node, PartsNode)
        node.axis, node.type = axis, x._array.dtype
        node.shapes = tuple([part._array.shape for part in parts])
    for i, part in enumerate(parts):
        part._made = part._made or "several"
        if node is not None:
            part._requires, part._edge = True, (node, i)
        if recorder.current is not None:
            recorder.current.operation(name, (x,), part)
    return tuple(parts)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, one for each position; one node for all of them."""
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        input._current_edge()  # a view that may not be used says so first
        raise IndexError("a 0-d tensor cannot be unbound")
    parts = [select(input, axis, i) for i in range(input.shape[axis])]
    return _apart(input, parts, axis, "UnbindBackward0")


def split(
    input: Tensor, split_size_or_sections: Sizes, dim: int = 0, *, node: str = "SplitBackward0"
) -> tuple[Tensor, ...]:
    """Parts of a size along an axis, the last one may be smaller; or parts of given sizes."""
    axis = axis_of(dim, input.ndim)
    size = input.shape[axis]
    if isinstance(split_size_or_sections, int):
        each = split_size_or_sections
        if each < 0 or (not each and size):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
        each = max(each, 1)
        counts = [min(each, size - start) for start in range(0, size, each)]
        name = node
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
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[axis_of(dim, input.ndim)]
    return split(input, max(-(-size // chunks), 1), dim)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second axis, vectors along their only one."""
    xs = [x if x.ndim else reshape(x, (1,)) for x in tensors]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the first axis, vectors as rows."""
    return cat([atleast_2d(x) for x in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the third axis."""
    return cat([unsqueeze(y, 2) if y.ndim < 3 else y for y in (atleast_2d(x) for x in tensors)], 2)


def tensor_split(input: Tensor, indices_or_sections: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts of nearly equal size along an axis, or parts that begin at given places."""
    size = input.shape[axis_of(dim, input.ndim)]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        ends = [sum(size // count + (k < size % count) for k in range(i + 1)) for i in range(count)]
    else:
        ends = [*[min(end, size) for end in indices_or_sections], size]
    return tuple([narrow(input, dim, start, end - start) for start, end in zip([0, *ends[:-1]], ends, strict=True)])


def hsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Parts along the second axis, of a vector along its only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: Sizes) -> tuple[Tensor, ...]:
    """Parts along the first axis."""
    return tensor_split(input, indices_or_sections, 0)


def meshgrid(*tensors: Tensors, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Vectors repeated over the grid that they span; `xy` exchanges the first two axes."""
    xs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if any(x.ndim > 1 for x in xs):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = [1, 0]
    shape = tuple([xs[i].numel() for i in places])
    return tuple(
        [
            expand(view(x, tuple([-1 if j == place else 1 for j in range(len(xs))])), shape)
            for x, place in zip(xs, places, strict=True)
        ]
    )


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along a diagonal, zeros elsewhere."""
    xs = tuple([atleast_2d(x) for x in tensors])
    return record(_blocks, xs, {}, "BlockDiagBackward0", whole=True, pointwise=False)


def _blocks(*xs: Any) -> Any:
    width = 0
    for x in xs:
        width += x.shape[1]
    rows, left = [], 0
    for x in xs:
        pad = catalogue()["unslice"]
        rows.append(pad(x, start=(0, left), step=(1, 1), shape=(x.shape[0], width)))
        left += x.shape[1]
    return _joined(*rows, axis=-2)


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """The differences of neighbours along an axis."""
    from gradcli.eager.pointwise import sub

    for _ in range(n):
        size = input.shape[axis_of(dim, input.ndim)]
        input = sub(narrow(input, dim, 1, size - 1), narrow(input, dim, 0, size - 1))
    return input


TABLE = {
    function.__name__: function
    for function in (
        *(cat, stack, flip, roll, repeat, tile, tril, triu, trace, unbind, split, chunk, hstack, vstack, dstack),
        *(atleast_1d, atleast_2d, atleast_3d, tensor_split, hsplit, vsplit, meshgrid, block_diag, diff),
    )
}
TABLE.update(concat=cat, concatenate=cat, row_stack=vstack)
