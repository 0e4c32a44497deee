"""The largest and the smallest entries and where they stand: max, min, amax, amin, argmax, argmin.

A maximum shares its gradient evenly among the entries that tie. Exact readings decide by signs of differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, nondifferentiable
from gradcli.graph.types import Type, size_of
from gradcli.primitives.axes import kept, lanes_of, merged, part, require_entries, reshaped, stretched_back
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import cast, equal, where
from gradcli.primitives.movement import sum_
from gradcli.primitives.ordering import gaps
from gradcli.primitives.size_arguments import normalize_axes, reduced_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    Axes = tuple[int, ...]

_SAMPLE = [(Closed(-2, 2), (3, 4))]


def _first_best(f: Any, lane: list[Any], sign: int) -> int:
    best = 0
    for i, entry in enumerate(lane):
        if i and f.sign(entry - lane[best]) * sign > 0:
            best = i
    return best


def _best_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: Axes) -> Any:
        lanes = lanes_of(f, x, axis)
        return f.array([lane[_first_best(f, lane, sign)] for lane in lanes], reduced_shape(x.shape, axis))

    return entries


def _arg_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: int) -> Any:
        lanes = lanes_of(f, x, (axis,))
        return f.array([f.number(_first_best(f, lane, sign)) for lane in lanes], reduced_shape(x.shape, (axis,)))

    return entries


def _lead_gap(x: Any, axes: Axes, at_top: bool) -> Any:
    """The gap between the best entry and the next one."""
    between = gaps(merged(x, axes), -1)
    if not between.shape:
        return between
    size = between.shape[-1]
    return part(between, -1, size - 1 if at_top else 0, 1)


def _arg(name: str, summary: str, sign: int, example: int) -> Primitive:
    def call(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        shape = x.shape
        if isinstance(axis, tuple):
            raise error("GC303", f"{name} takes one axis, not {len(axis)}", help="flatten the axes first")
        axes = normalize_axes(axis, len(shape))
        require_entries(x, axes or tuple(range(-len(shape), 0)), name)
        if axis is None or not axes:
            result = declared(reshaped(x, (size_of(shape),)), axis=-1)
        else:
            result = declared(x, axis=axes[0])
        return kept(result, shape, axes, keepdims)

    declared = nondifferentiable(
        name,
        summary,
        impl=lambda xp, x, *, ranks, axis: getattr(xp, name)(x, axis=axis),
        entries=_arg_entries(sign),
        type_rule=lambda x, *, axis: Type("int", reduced_shape(x.shape, (axis,))),
        arity=1,
        call=call,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        kinks=[
            Kink(
                lambda x, *, axis: _lead_gap(x, (axis,), sign > 0),
                "where the two best entries tie",
                "the first of them",
                discontinuity=True,
            )
        ],
        traits="gives_positions",
        formula=f"the first i with x[i] = {name[3:]}(x)",
        examples=[(f"{name}([1, 3, 2])", example)],
    )
    return declared


argmax = _arg(
    "argmax",
    "The position of the largest entry, the first if there are several; without an axis, in the flattened array.",
    1,
    1,
)
argmin = _arg(
    "argmin",
    "The position of the smallest entry, the first if there are several; without an axis, in the flattened array.",
    -1,
    0,
)

# --- max and min ---------------------------------------------------------------------------------------------


def _tie_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: int) -> Any:
        """Whether each entry equals the best one, which is not compared with itself."""
        flat: list[bool] = []
        for lane in lanes_of(f, x, (axis,)):
            best = _first_best(f, lane, sign)
            flat.extend(i == best or f.sign(entry - lane[best]) == 0 for i, entry in enumerate(lane))
        return f.array(flat, x.shape)

    return entries


def _ties(name: str, extreme: str, sign: int) -> Primitive:
    def value(xp: Any, x: Any, *, ranks: Any, axis: int) -> Any:
        best = getattr(xp, extreme)(x, axis=axis, keepdims=True)
        return (x == best) | (x != x)  # NaN is the best entry of its lane, and its own tie

    return nondifferentiable(
        name,
        f"Whether an entry is the {extreme} along its axis, or equal to it.",
        impl=value,
        entries=_tie_entries(sign),
        type_rule=lambda x, *, axis: Type("bool", x.shape),
        arity=1,
        internal=True,
        domain=[REAL],
        sample=_SAMPLE,
        closed=lambda x, *, axis: equal(x, stretched_back(x.named(extreme)(x, axis=(axis,)), x.shape, (axis,))),
    )


is_max = _ties("is_max", "max", 1)
is_min = _ties("is_min", "min", -1)


def _extreme(name: str, summary: str, sign: int, pair: str, ties: Primitive) -> Primitive:
    def definition(x: Any, *, axis: Axes) -> Any:
        """The mean of the entries that equal the best one, so that the gradient is shared among them."""
        lanes = merged(x, axis)
        tied = ties(lanes, axis=-1)
        total = sum_(where(tied, lanes, 0), axis=(-1,))
        return total / sum_(cast(tied, kind="float"), axis=(-1,))

    def call(*xs: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        if not xs:
            raise error("GC205", f"{name} needs an array, or several operands", help=f"write {name}(x) or {name}(a, b)")
        if len(xs) > 1:
            best = xs[0]
            for x in xs[1:]:
                best = x.named(pair)(*together(best, x, verb=f"take the {name} of"))
            return best
        x = xs[0]
        axes = normalize_axes(axis, len(x.shape))
        require_entries(x, axes, name)
        return kept(declared(x, axis=axes), x.shape, axes, keepdims) if axes else x

    declared = composite(
        name,
        summary,
        definition=definition,
        impl=lambda xp, x, *, ranks, axis: getattr(xp, name)(x, axis=axis),
        entries=_best_entries(sign),
        type_rule=lambda x, *, axis: Type(x.kind, reduced_shape(x.shape, axis)),
        arity=1,
        call=call,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        kinks=[
            Kink(
                lambda x, *, axis: _lead_gap(x, axis, sign > 0),
                "where the two best entries tie",
                "an equal share for each of them",
            )
        ],
        formula=f"{name} over entries of x",
        examples=[
            (f"{name}([1, 3, 2])", 3 if sign > 0 else 1),
            (f"{name}(2, 5)", 5 if sign > 0 else 2),
            (f"{name}([[1, 2], [4, 3]], axis=0)", [4, 3] if sign > 0 else [1, 2]),
        ],
        node=f"{name.capitalize()}Backward1",
        names=f"latex. numpy. torch.a{name}",
        traits="keeps_whole chooses every_size",
    )
    return declared


max_ = _extreme(
    "max", "The largest entry, over all axes or some; of several operands, entry by entry.", 1, "maximum", is_max
)
min_ = _extreme(
    "min", "The smallest entry, over all axes or some; of several operands, entry by entry.", -1, "minimum", is_min
)


def _over_axes(name: str, summary: str, extreme: Primitive, example: int) -> Primitive:
    def definition(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        assert extreme.call is not None
        return extreme.call(x, axis=axis, keepdims=keepdims)

    return composite(
        name,
        summary,
        definition=definition,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        formula=f"{extreme.name} over entries of x",
        examples=[(f"{name}([1, 3, 2])", example)],
        node=f"{name.capitalize()}Backward0",
        traits="every_size",
    )


amax = _over_axes("amax", "The largest entry, over all axes or some.", max_, 3)
amin = _over_axes("amin", "The smallest entry, over all axes or some.", min_, 1)
