"""Movements of entries: the linear operations that every shape function and transpose is made of.

Axes are negative, so leading batch axes pass through. The evaluator gives each `impl` the core rank of its
inputs. What only moves entries is marked `moves`: symbols and balls run the same `impl` on positions instead of
values. `lift` gives the parameters for operands with an additional leading axis.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, linear
from gradcli.graph.types import Type, size_of
from gradcli.primitives.size_arguments import bounded, kept_shape, normalize_axes, reduced_shape, whole_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

    Ranks = tuple[int, ...]


def lead(x: Any, rank: int) -> Shape:
    """The batch axes of an array whose core has this rank."""
    shape: Shape = x.shape[: len(x.shape) - rank]
    return shape


# --- reshape, broadcast, permute ------------------------------------------------------------------


def _reshape_type(x: Type, *, shape: Shape) -> Type:
    if size_of(shape) != x.size:
        raise error("GC304", f"cannot reshape {x} into [{','.join(map(str, shape))}]")
    return Type(x.kind, shape)


def reshape_call(x: Any, shape: int | Shape, *more: int) -> Any:
    """NumPy's `reshape`, and the method with several sizes; one size may be -1 and is then computed.

    Raises GradcliError GC304 where the entries do not fill the shape.
    """
    sizes = (*whole_numbers(shape, "a size", -1), *whole_numbers(more, "a size", -1))
    total = size_of(x.shape)
    if sizes.count(-1) == 1:
        rest = -size_of(sizes)
        sizes = tuple(total // rest if n == -1 and rest else n for n in sizes)
    if any(n < 0 for n in sizes) or size_of(sizes) != total:
        own, wanted = ",".join(map(str, x.shape)), ",".join(map(str, sizes))
        raise error(
            "GC304",
            f"cannot reshape [{own}] into [{wanted}]: there are {total} entries",
            help=f"choose sizes whose product is {total}; one of them may be -1",
            sizes=(total, size_of(sizes)) if len(x.shape) == 1 and min(sizes) > 0 else None,
        )
    return x if sizes == x.shape else reshape(x, shape=sizes)


def _reshape_rewrite(x: Node, *, shape: Shape) -> Node | None:
    if x.shape == shape:
        return x
    return reshape(x.args[0], shape=shape) if x.primitive is reshape else None


reshape: Primitive = linear(
    "reshape",
    "The same entries in another shape, in row-major (C) order.",
    impl=lambda xp, x, *, ranks, shape: xp.reshape(x, lead(x, ranks[0]) + shape),
    transpose={0: lambda ct, x, *, shape: reshape(ct, shape=x.shape)},
    type_rule=_reshape_type,
    rewrite=_reshape_rewrite,
    moves=True,
    lift=lambda count, *, shape: {"shape": (count, *shape)},
    arity=1,
    call=reshape_call,
    static=("shape", "more"),
    aliases=("view",),
    domain=[REAL],
    formula="the entries of x in C order, in another shape",
    examples=[("reshape([1, 2, 3, 4], (2, 2))", [[1, 2], [3, 4]]), ("reshape([[1, 2]], -1)", [1, 2])],
    node="ViewBackward0",
)


def _broadcast_type(x: Type, *, shape: Shape) -> Type:
    if len(shape) != x.rank or any(n not in (1, m) for n, m in zip(x.shape, shape, strict=True)):
        raise error("GC301", f"cannot broadcast {x} to [{','.join(map(str, shape))}]")
    return Type(x.kind, bounded(shape))


def _broadcast_transpose(ct: Any, x: Any, *, shape: Shape) -> Any:
    rank = len(shape)
    axes = tuple(i - rank for i in range(rank) if x.shape[i] != shape[i])
    return reshape(sum_(ct, axis=axes), shape=x.shape) if axes else ct


broadcast: Primitive = linear(
    "broadcast",
    "Axes of size 1 broadcast, at equal rank.",
    impl=lambda xp, x, *, ranks, shape: xp.broadcast_to(x, lead(x, ranks[0]) + shape),
    transpose={0: _broadcast_transpose},
    type_rule=_broadcast_type,
    rewrite=lambda x, *, shape: x if x.shape == shape else None,
    moves=True,
    lift=lambda count, *, shape: {"shape": (count, *shape)},
    arity=1,
    internal=True,
    node="ExpandBackward0",
)


def _permute_value(xp: Any, x: Any, *, ranks: Ranks, axes: tuple[int, ...]) -> Any:
    batch = len(x.shape) - ranks[0]
    return xp.transpose(x, (*range(batch), *(len(x.shape) + axis for axis in axes)))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(axes)
    order = sorted(range(rank), key=lambda i: axes[i])
    return tuple(i - rank for i in order)


def _permute_rewrite(x: Node, *, axes: tuple[int, ...]) -> Node | None:
    if axes == tuple(range(-len(axes), 0)):
        return x
    if x.primitive is permute:
        inner = x.params["axes"]
        return permute(x.args[0], axes=tuple(inner[axis] for axis in axes))
    return None


permute: Primitive = linear(
    "permute",
    "Axes in another order.",
    impl=_permute_value,
    transpose={0: lambda ct, x, *, axes: permute(ct, axes=_inverse(axes))},
    type_rule=lambda x, *, axes: Type(x.kind, tuple(x.shape[axis] for axis in axes)),
    rewrite=_permute_rewrite,
    moves=True,
    lift=lambda count, *, axes: {"axes": (-len(axes) - 1, *axes)},
    arity=1,
    internal=True,
    node="PermuteBackward0",
)

# --- slice and its transpose ------------------------------------------------------------------------


def slices_of(start: Shape, step: Shape, size: Shape) -> tuple[Any, ...]:
    """One Python slice per axis: `size` entries from `start`, `step` apart, the step may be negative."""
    parts = []
    for first, stride, count in zip(start, step, size, strict=True):
        stop = first + stride * count
        parts.append(slice(first, None if stop < 0 else stop, stride) if count else slice(0, 0))
    return (..., *parts)


slice_: Primitive = linear(
    "slice",
    "Some entries along each axis: `size` of them from `start`, `step` apart.",
    impl=lambda xp, x, *, ranks, start, step, size: x[slices_of(start, step, size)],
    transpose={
        0: lambda ct, x, *, start, step, size: unslice(ct, shape=x.shape, start=start, step=step),
    },
    type_rule=lambda x, *, start, step, size: Type(x.kind, size),
    rewrite=lambda x, *, start, step, size: x if x.shape == size and all(s > 0 for s in step) else None,
    moves=True,
    lift=lambda count, *, start, step, size: {"start": (0, *start), "step": (1, *step), "size": (count, *size)},
    arity=1,
    internal=True,
    node="SliceBackward0",
    traits="chooses",
)


def _unslice_value(xp: Any, x: Any, *, ranks: Ranks, shape: Shape, start: Shape, step: Shape) -> Any:
    batch = lead(x, ranks[0])
    size = x.shape[len(batch) :]
    return xp.place(x, batch + shape, slices_of(start, step, size))


def _unslice_entries(f: Any, x: Any, *, shape: Shape, start: Shape, step: Shape) -> Any:
    return f.scatter(x, f.positions(slice_, shape, start=start, step=step, size=x.shape), shape)


unslice: Primitive = linear(
    "unslice",
    "Entries put at their places in an array of zeros: the transpose of a slice.",
    impl=_unslice_value,
    entries=_unslice_entries,
    transpose={
        0: lambda ct, x, *, shape, start, step: slice_(ct, start=start, step=step, size=x.shape),
    },
    type_rule=lambda x, *, shape, start, step: Type(x.kind, bounded(shape)),
    lift=lambda count, *, shape, start, step: {"shape": (count, *shape), "start": (0, *start), "step": (1, *step)},
    rewrite=lambda x, *, shape, start, step: x.builder.constant(0, shape) if x.constant == 0 else None,
    arity=1,
    internal=True,
    traits="keeps_whole",
)

# --- concat -------------------------------------------------------------------------------------------


def _concat_type(*xs: Type, axis: int) -> Type:
    first = xs[0].shape
    position = len(first) + axis
    for x in xs[1:]:
        alike = x.rank == len(first)
        others = [(n, m) for i, (n, m) in enumerate(zip(first, x.shape, strict=alike)) if n != m and i != position]
        if others or not alike:
            sizes = others[0] if alike else None
            raise error("GC301", f"cannot concatenate {xs[0]} and {x} along axis {position}", sizes=sizes)
    total = sum(x.shape[position] for x in xs)
    return Type(xs[0].kind, bounded((*first[:position], total, *first[position + 1 :])))


def _concat_transpose(ct: Any, *xs: Any, position: int, axis: int) -> Any:
    rank = len(ct.shape)
    start, step = [0] * rank, (1,) * rank
    start[rank + axis] = sum(x.shape[rank + axis] for x in xs[:position])
    return slice_(ct, start=tuple(start), step=step, size=xs[position].shape)


concat = linear(
    "concat",
    "Arrays joined along an axis that they have.",
    impl=lambda xp, *xs, ranks, axis: xp.concatenate(xs, axis=axis),
    transpose=_concat_transpose,
    type_rule=_concat_type,
    aligned=True,
    moves=True,
    internal=True,
    node="CatBackward0",
)

# --- sum: the transpose of broadcast -----------------------------------------------------------------------


def _sum_transpose(ct: Any, x: Any, *, axis: tuple[int, ...]) -> Any:
    return broadcast(reshape(ct, shape=kept_shape(x.shape, axis)), shape=x.shape)


def _sum_entries(f: Any, x: Any, *, axis: tuple[int, ...]) -> Any:
    result = reduced_shape(x.shape, axis)
    kept = f.positions(reshape, result, shape=kept_shape(x.shape, axis))
    places = f.positions(broadcast, kept_shape(x.shape, axis), shape=x.shape)
    return f.scatter(x, [kept[i] for i in places], result)


def _sum_rewrite(x: Node, *, axis: tuple[int, ...]) -> Node | None:
    if not axis:
        return x
    if x.constant == 0:
        return x.builder.constant(0, reduced_shape(x.shape, axis))
    if x.primitive.name == "neg":
        return -sum_(x.args[0], axis=axis)
    return None


def sum_call(x: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """NumPy's `sum`: over all entries, or over some axes."""
    axes = normalize_axes(axis, len(x.shape))
    total = sum_(x, axis=axes) if axes else x
    return reshape(total, shape=kept_shape(x.shape, axes)) if keepdims else total


sum_: Primitive = linear(
    "sum",
    "Sum of the entries, over all axes or some.",
    impl=lambda xp, x, *, ranks, axis: xp.sum(x, axis=axis),
    entries=_sum_entries,
    transpose={0: _sum_transpose},
    type_rule=lambda x, *, axis: Type(x.kind, reduced_shape(x.shape, axis)),
    rewrite=_sum_rewrite,
    arity=1,
    call=sum_call,
    static=("axis", "keepdims"),
    node=lambda **params: "SumBackward1" if "axis" in params else "SumBackward0",
    domain=[REAL],
    sample=[(Closed(-2, 2), (2, 3))],
    formula="sum over entries of x",
    examples=[("sum([1, 2, 3])", 6), ("sum([[1, 2], [3, 4]], axis=0)", [4, 6])],
    names="numpy. torch.",
    traits="every_size keeps_whole",
)
