"""Running sums and products: cumsum, the linear recurrence, cumprod and prod; none of them divides.

The recurrence y[i] = a[i]*y[i-1] + c[i] is closed under differentiation, so products with zeros among their factors
have exact derivatives of every order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, composite, linear, structured
from gradcli.graph.types import Type, size_of
from gradcli.primitives.axes import (
    filled,
    kept,
    lanes_of,
    merged,
    part,
    permuted,
    placed,
    reshaped,
    reversed_along,
)
from gradcli.primitives.movement import concat, permute
from gradcli.primitives.size_arguments import normalize_axes, normalize_axis, reduced_shape

if TYPE_CHECKING:
    Axes = tuple[int, ...]

FEW_LANES = 16  # up to here a loop over Python floats beats one over slices


def _flat_or_along(primitive: Primitive, x: Any, axis: int | None) -> Any:
    """NumPy's running reductions: along an axis, or over the flattened array."""
    if axis is None or not x.shape:
        return primitive(reshaped(x, (size_of(x.shape),)), axis=-1)
    return primitive(x, axis=normalize_axis(axis, len(x.shape)))


# --- running sums ------------------------------------------------------------------------------------------


def _cumsum_entries(f: Any, x: Any, *, axis: int) -> Any:
    running = []
    for lane in lanes_of(f, x, (axis,)):
        total = None
        for entry in lane:
            total = entry if total is None else total + entry
            running.append(total)
    rank = len(x.shape)
    order = f.positions(permute, x.shape, axes=(*(i for i in range(-rank, 0) if i != axis), axis))
    return f.scatter(f.array(running, x.shape), order, x.shape)


cumsum: Primitive = linear(
    "cumsum",
    "Running sums along an axis; without an axis, the array is flattened first.",
    impl=lambda xp, x, *, ranks, axis: xp.cumsum(x, axis=axis),
    entries=_cumsum_entries,
    transpose={
        0: lambda ct, x, *, axis: reversed_along(cumsum(reversed_along(ct, axis), axis=axis), axis),
    },
    arity=1,
    call=lambda x, axis=None: _flat_or_along(cumsum, x, axis),
    static=("axis",),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 4))],
    formula="y[i] = x[0] + ... + x[i]",
    examples=[("cumsum([1, 2, 3])", [1, 3, 6])],
    node="CumsumBackward0",
    names="numpy.",
    traits="every_size keeps_whole",
)

# --- the recurrence ----------------------------------------------------------------------------------------


def _run(factors: list[Any], terms: list[Any]) -> list[Any]:
    """The recurrence on Python numbers."""
    y = terms[0]
    return [y, *[y := factor * y + term for factor, term in zip(factors[1:], terms[1:], strict=True)]]


def _recur_value(xp: Any, a: Any, c: Any, *, ranks: tuple[int, int]) -> Any:
    """Along the last axis: on Python floats for few long lanes, else one slice of all lanes after the other."""
    size = c.shape[-1]
    lanes = size_of(c.shape[:-1])
    if size < 2 or lanes == 0:
        return c
    if lanes <= FEW_LANES and size > lanes and hasattr(c, "tolist"):
        rows = zip(a.reshape(lanes, size).tolist(), c.reshape(lanes, size).tolist(), strict=True)
        return xp.asarray([_run(*row) for row in rows], dtype=c.dtype).reshape(c.shape)
    steps = [c[..., 0]]
    for i in range(1, size):
        steps.append(a[..., i] * steps[-1] + c[..., i])
    return xp.stack(steps, axis=-1)


def _recur_entries(f: Any, a: Any, c: Any) -> Any:
    size = c.shape[-1]
    flat: list[Any] = []
    for place, (factor, term) in enumerate(zip(a.flat, c.flat, strict=True)):
        flat.append(factor * flat[-1] + term if place % size else term)
    return f.array(flat, c.shape)


def _shifted(x: Any, by: int) -> Any:
    """The entries of the last axis moved by one place, up or down, with a zero at the free end."""
    size = x.shape[-1]
    inner = part(x, -1, 0 if by > 0 else 1, size - 1)
    return placed(inner, -1, 1 if by > 0 else 0, size)


recur: Primitive = structured(
    "recur",
    "The linear recurrence y[i] = a[i]*y[i-1] + c[i] along the last axis, from y[0] = c[0].",
    impl=_recur_value,
    entries=_recur_entries,
    pushforward=[
        lambda t, a, c, *, out: recur(a, t * _shifted(out, 1)),
        lambda t, a, c, *, out: recur(a, t),
    ],
    transpose={
        1: lambda ct, a, c: reversed_along(recur(reversed_along(_shifted(a, -1), -1), reversed_along(ct, -1)), -1),
    },
    type_rule=lambda a, c: c,
    aligned=True,
    internal=True,
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (2, 4)), (Closed(-2, 2), (2, 4))],
    formula="y[i] = a[i]*y[i-1] + c[i]",
)

# --- running products and products -------------------------------------------------------------------------


def _cumprod_definition(x: Any, *, axis: int) -> Any:
    rank = len(x.shape)
    if not x.shape[axis]:
        return x
    order = tuple(i for i in range(-rank, 0) if i != axis)
    moved = permuted(x, (*order, axis))
    products = recur(moved, placed(part(moved, -1, 0, 1), -1, 0, moved.shape[-1]))
    back = [0] * rank
    for place, source in enumerate((*order, axis)):
        back[source] = place - rank
    return permuted(products, tuple(back))


cumprod: Primitive = composite(
    "cumprod",
    "Running products along an axis; without an axis, the array is flattened first.",
    definition=_cumprod_definition,
    impl=lambda xp, x, *, ranks, axis: xp.cumprod(x, axis=axis),
    arity=1,
    call=lambda x, axis=None: _flat_or_along(cumprod, x, axis),
    static=("axis",),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 4))],
    formula="y[i] = x[0] * ... * x[i]",
    examples=[("cumprod([1, 2, 3])", [1, 2, 6])],
    node="CumprodBackward0",
    names="numpy.",
)


def _prod_definition(x: Any, *, axis: Axes) -> Any:
    """A tree of products of halves: no division, so zeros do no harm."""
    product = merged(x, axis)
    size = product.shape[-1]
    if not size:
        return filled(x, 1, product.shape[:-1])
    while size > 1:
        half = size // 2
        pairs = part(product, -1, 0, half) * part(product, -1, half, half)
        product = concat(pairs, part(product, -1, size - 1, 1), axis=-1) if size % 2 else pairs
        size = product.shape[-1]
    return reshaped(product, product.shape[:-1])


def _prod_call(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    return kept(prod(x, axis=axes), x.shape, axes, keepdims) if axes else x


prod: Primitive = composite(
    "prod",
    "Product of the entries, over all axes or some.",
    definition=_prod_definition,
    impl=lambda xp, x, *, ranks, axis: xp.prod(x, axis=axis),
    type_rule=lambda x, *, axis: Type(x.kind, reduced_shape(x.shape, axis)),
    arity=1,
    call=_prod_call,
    static=("axis", "keepdims"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (5,))],
    formula="product over entries of x",
    examples=[("prod([1, 2, 3])", 6), ("prod([[1, 2], [3, 4]], axis=0)", [3, 8])],
    node="ProdBackward0",
    names="numpy. torch.",
    traits="every_size keeps_whole",
)
