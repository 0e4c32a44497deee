"""Tensors go in, their entries in another arrangement come out: diagonals, windows, turned, repeated, combined.

Where the entries go is found by letting NumPy do it to the numbers of the entries (`selecting`). Views that PyTorch
makes here (`diagonal`, `unfold`) share memory only where a slice of the flattened tensor can say it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.joining import meshgrid, stack
from gradcli.eager.movement import axis_of, permute, reshape, viewed
from gradcli.eager.selecting import Shape, fixed, flat, index_select, numbers, picked
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Sizes


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes, as the last axis; of a contiguous matrix a view."""
    rank = input.ndim
    one, two = axis_of(dim1, rank) + rank, axis_of(dim2, rank) + rank
    if one == two:
        raise RuntimeError("diagonal dimensions cannot be identical")
    if rank == 2 and (one, two) == (0, 1) and input._raw.flags.c_contiguous and input._raw.size:
        rows, columns = input.shape
        start = offset if offset >= 0 else -offset * columns
        count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        params = {"start": start, "step": columns + 1, "size": count}
        return viewed(input, _diagonal, params, "DiagonalBackward0")
    return fixed(picked(input, np.diagonal(numbers(input), offset, one, two), "DiagonalBackward0"))


def _diagonal(x: Any, *, start: int, step: int, size: int) -> Any:
    return catalogue()["slice"](flat(x), start=(start if size else 0,), step=(step,), size=(size,))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): expected 1-D or 2-D tensor, got {input.ndim}-D")
    return fixed(picked(input, np.diagonal(numbers(input), diagonal), "DiagonalBackward0_copy"))


def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    """Matrices with the last axis on their diagonal."""
    size = input.shape[-1] + abs(offset)
    shape = (*input.shape[:-1], size, size)
    positions = np.diagonal(np.arange(np.prod(shape, dtype=np.int64)).reshape(shape), offset, -2, -1)
    at = Tensor(np.ascontiguousarray(positions).reshape(-1))
    how: dict[str, Any] = {"whole": True, "apart": (1,), "edges": 1, "pointwise": False}
    return fixed(record(_embedded, (input, at), {"shape": shape}, "DiagEmbedBackward0", **how))


def _embedded(x: Any, at: Any, *, shape: Shape) -> Any:
    size = 1
    for n in shape:
        size *= n
    return catalogue()["reshape"](catalogue()["put_along"](flat(x), at, axis=-1, size=size), shape=shape)


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows along an axis, one after the other, with the entries of each as the last axis."""
    axis = axis_of(dimension, input.ndim) + input.ndim
    if size > input.shape[axis]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dimension} is {input.shape[axis]} but size is {size}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(numbers(input), size, axis=axis)
    return fixed(picked(input, windows[(slice(None),) * axis + (slice(None, None, step),)], "UnfoldBackward0"))


def as_strided(input: Tensor, size: Sizes, stride: Sizes, storage_offset: int = 0) -> Tensor:
    """The entries at regular distances in memory."""
    positions = np.full(tuple(size), storage_offset)
    for i, (n, by) in enumerate(zip(size, stride, strict=True)):
        positions = positions + (np.arange(n) * by).reshape([-1 if j == i else 1 for j in range(len(size))])
    if positions.size and positions.max() >= input._raw.size:
        raise RuntimeError("as_strided(): sizes and strides reach outside the storage")
    return fixed(picked(input, positions, "AsStridedBackward0"))


def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by right angles in the plane of two axes."""
    return fixed(picked(input, np.rot90(numbers(input), k, tuple(dims)), "Rot90Backward0"))


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each entry repeated, one after the other."""
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if isinstance(repeats, Tensor):
        if repeats.dtype.name not in ("int32", "int64"):
            raise NotImplementedError(f"repeat_interleave is not implemented for repeats of dtype {repeats.dtype}")
        return picked(input, np.repeat(numbers(input), repeats._array, axis=dim), "IndexSelectBackward0")
    from gradcli.eager.movement import clone, expand, unsqueeze

    axis = axis_of(dim, input.ndim) + input.ndim
    wide = unsqueeze(input, axis + 1)
    shape = list(wide.shape)
    shape[axis + 1] = repeats
    whole = list(input.shape)
    whole[axis] *= repeats
    return reshape(clone(expand(wide, tuple(shape))), tuple(whole))


def movedim(input: Tensor, source: Sizes, destination: Sizes) -> Tensor:
    """Some axes moved to other places."""
    rank = input.ndim
    given = [(d,) if isinstance(d, int) else tuple(d) for d in (source, destination)]
    old, new = ([axis_of(d, rank) + rank for d in dims] for dims in given)
    if len(old) != len(new) or len(set(old)) != len(old) or len(set(new)) != len(new):
        raise RuntimeError(
            f"movedim: source {given[0]} and destination {given[1]} must name as many distinct dimensions"
        )
    rest = iter([i for i in range(rank) if i not in old])
    goes = dict(zip(new, old, strict=True))
    return permute(input, tuple([goes[i] if i in goes else next(rest) for i in range(rank)]))


def fliplr(input: Tensor) -> Tensor:
    """The second axis in the opposite order."""
    from gradcli.eager.joining import flip

    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The first axis in the opposite order."""
    from gradcli.eager.joining import flip

    return flip(input, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one entry from each of some vectors, a row for each choice."""
    if any(x.ndim != 1 for x in tensors):
        raise RuntimeError("cartesian_prod expects 1-D tensors")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(grid, (-1,)) for grid in meshgrid(*tensors, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r entries of a vector, a row for each choice."""
    if input.ndim != 1:
        raise RuntimeError("combinations expects a 1-D tensor")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input._raw.size), r)), np.int64).reshape(-1, r)
    return reshape(index_select(input, 0, Tensor(rows.reshape(-1))), tuple(rows.shape))


TABLE: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(diagonal, diag, diag_embed, unfold, as_strided, rot90, repeat_interleave, movedim, fliplr, flipud),
        *(cartesian_prod, combinations),
    )
}
TABLE["moveaxis"] = movedim
