"""Entries taken from positions along an axis, and added up at them: what indexing and its transposes are made of."""

from __future__ import annotations

from gradcli.graph.primitive import Primitive, linear
from gradcli.graph.types import Type
from gradcli.primitives.size_arguments import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.types import Shape


def _along(x: Type | Any, axis: int, count: int) -> Shape:
    """The shape of x with another size along one axis."""
    position = len(x.shape) + axis
    return (*x.shape[:position], count, *x.shape[position + 1 :])


# --- positions that are known while a script is lowered ----------------------------------------------------

take_static: Primitive = linear(
    "take_static",
    "Entries at given positions along an axis.",
    impl=lambda xp, x, *, ranks, indices, axis: xp.take(x, xp.positions(indices), axis=axis),
    transpose={
        0: lambda ct, x, *, indices, axis: put_static(ct, indices=indices, axis=axis, size=x.shape[axis]),
    },
    type_rule=lambda x, *, indices, axis: Type(x.kind, bounded(_along(x, axis, len(indices)))),
    moves=True,
    arity=1,
    internal=True,
    node="IndexBackward0",
    traits="chooses",
)


def _put_entries(f: Any, x: Any, *, indices: Shape, axis: int, size: int) -> Any:
    shape = _along(x, axis, size)
    return f.scatter(x, f.positions(take_static, shape, indices=indices, axis=axis), shape)


put_static: Primitive = linear(
    "put_static",
    "Entries added up at given positions along an axis: the transpose of taking them.",
    impl=lambda xp, x, *, ranks, indices, axis, size: xp.put_add(x, xp.positions(indices), axis, size),
    entries=_put_entries,
    transpose={
        0: lambda ct, x, *, indices, axis, size: take_static(ct, indices=indices, axis=axis),
    },
    type_rule=lambda x, *, indices, axis, size: Type(x.kind, _along(x, axis, size)),
    arity=1,
    internal=True,
    traits="keeps_whole",
)

# --- positions that are data --------------------------------------------------------------------------------

take_along: Primitive = linear(
    "take_along",
    "Entries at positions given by an index array of the same rank.",
    impl=lambda xp, x, index, *, ranks, axis: xp.take_along_axis(x, index, axis=axis),
    entries=lambda f, x, index, *, axis: f.take_along(x, index, axis),
    transpose={0: lambda ct, x, index, *, axis: put_along(ct, index, axis=axis, size=x.shape[axis])},
    type_rule=lambda x, index, *, axis: Type(x.kind, _along(x, axis, index.shape[axis])),
    aligned=True,
    arity=2,
    internal=True,
    node="GatherBackward0",
    traits="chooses keeps_whole",
)

put_along: Primitive = linear(
    "put_along",
    "Entries added up at positions given by an index array: the transpose of taking them.",
    impl=lambda xp, x, index, *, ranks, axis, size: xp.put_along_add(x, index, axis, size),
    entries=lambda f, x, index, *, axis, size: f.put_along(x, index, axis, size),
    transpose={0: lambda ct, x, index, *, axis, size: take_along(ct, index, axis=axis)},
    type_rule=lambda x, index, *, axis, size: Type(x.kind, _along(x, axis, size)),
    aligned=True,
    arity=2,
    internal=True,
    traits="keeps_whole",
)
