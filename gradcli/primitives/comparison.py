"""Truth values: comparisons, connectives, choice by condition, casts; none carries a derivative but `where`."""

from __future__ import annotations

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, elementwise, linear, nondifferentiable
from gradcli.graph.types import Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gradcli.graph.node import Node


def _truth(*types: Type) -> Type:
    return Type("bool", types[0].shape)


def _comparison(
    name: str, summary: str, sign: str, impl: Callable[..., Any], holds: Callable[[int], bool], names: str
) -> Primitive:
    """A comparison is decided by the sign of x - y, in every namespace that has one."""
    return nondifferentiable(
        name,
        summary,
        impl=impl,
        compares=sign,
        holds=holds,
        symbolic=lambda sp, x, y: holds(sp.sign_at_point(x - y)),
        ball=lambda fl, x, y: holds(fl.sign(x - y)),
        type_rule=_truth,
        pointwise=True,
        arity=2,
        internal=True,
        names=names,
        sample=[Closed(-2, 2), Closed(-2, 2)],
        formula=f"x {sign} y",
        examples=[(f"2 {sign} 3", float(holds(-1)))],
    )


less = _comparison("less", "Whether x is below y.", "<", lambda xp, x, y: xp.less(x, y), lambda s: s < 0, "jax.lax.lt")
less_equal = _comparison(
    "less_equal", "Whether x is at most y.", "<=", lambda xp, x, y: xp.less_equal(x, y), lambda s: s <= 0, "jax.lax.le"
)
greater = _comparison(
    "greater", "Whether x is above y.", ">", lambda xp, x, y: xp.greater(x, y), lambda s: s > 0, "jax.lax.gt"
)
greater_equal = _comparison(
    "greater_equal",
    "Whether x is at least y.",
    ">=",
    lambda xp, x, y: xp.greater_equal(x, y),
    lambda s: s >= 0,
    "jax.lax.ge",
)
equal = _comparison(
    "equal", "Whether x and y are the same.", "==", lambda xp, x, y: x == y, lambda s: s == 0, "jax.lax.eq"
)
not_equal = _comparison(
    "not_equal", "Whether x and y differ.", "!=", lambda xp, x, y: x != y, lambda s: s != 0, "jax.lax.ne"
)
COMPARISONS = {each.compares: each for each in (less, less_equal, greater, greater_equal, equal, not_equal)}


def _connective(name: str, summary: str, impl: Callable[..., Any], plain: Callable[..., bool], names: str) -> Primitive:
    return nondifferentiable(
        name,
        summary,
        impl=impl,
        symbolic=lambda sp, *xs: plain(*xs),
        ball=lambda fl, *xs: plain(*xs),
        type_rule=_truth,
        pointwise=True,
        internal=True,
        names=names,
        formula="",
    )


and_ = _connective(
    "and",
    "Whether both hold.",
    lambda xp, x, y: xp.logical_and(x, y),
    lambda x, y: bool(x and y),
    "numpy.logical_and aten.bitwise_and aten.__and__",
)
or_ = _connective(
    "or",
    "Whether one of them holds.",
    lambda xp, x, y: xp.logical_or(x, y),
    lambda x, y: bool(x or y),
    "numpy.logical_or aten.bitwise_or aten.__or__",
)
not_ = _connective(
    "not",
    "Whether it does not hold.",
    lambda xp, x: xp.logical_not(x),
    lambda x: not x,
    "numpy.logical_not numpy.invert aten.bitwise_not",
)


def _where_rewrite(condition: Node, x: Node, y: Node) -> Node | None:
    if x is y or (x.constant is not None and x.constant == y.constant):
        return x
    if x.primitive is where and x.args[0] is condition and x.args[2] is y:
        return x
    return None


where: Primitive = linear(
    "where",
    "x where the condition is true, else y; the operand that is not chosen has no influence, even if it is NaN.",
    impl=lambda xp, condition, x, y: xp.where(condition, x, y),
    symbolic=lambda sp, condition, x, y: x if condition else y,
    ball=lambda fl, condition, x, y: x if condition else y,
    transpose={
        1: lambda ct, condition, x, y: where(condition, ct, 0),
        2: lambda ct, condition, x, y: where(condition, 0, ct),
    },
    type_rule=lambda condition, x, y: x,
    rewrite=_where_rewrite,
    pointwise=True,
    arity=3,
    domain=[REAL, REAL, REAL],
    sample=[None, Closed(-2, 2), Closed(-2, 2)],
    node="WhereBackward0",
    formula="x if condition else y",
    examples=[("where(2 > 1, 3, 4)", 3)],
    names="numpy. torch.",
    traits="chooses keeps_whole",
)


cast = nondifferentiable(
    "cast",
    "A truth value as 0 or 1, a whole number as an index.",
    impl=lambda xp, x, *, kind: xp.cast(x, kind),
    symbolic=lambda sp, x, *, kind: sp.Integer(int(x)) if kind == "float" else x,
    ball=lambda fl, x, *, kind: fl.integer(x) if kind == "float" and isinstance(x, bool) else x,
    type_rule=lambda x, *, kind: Type(kind, x.shape),
    pointwise=True,
    arity=1,
    internal=True,
)

detach = nondifferentiable(
    "detach",
    "The value as a constant: its derivative is zero. check also keeps it at its value.",
    impl=lambda xp, x: x,
    symbolic=lambda sp, x: x,
    ball=lambda fl, x: x,
    pointwise=True,
    arity=1,
    aliases=("stop_gradient",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    node="",
    formula="x",
    examples=[("detach(2)", 2)],
)

ste = elementwise(
    "ste",
    "The value of the first operand with the gradient of the second: a straight-through estimator.",
    impl=lambda xp, value, surrogate: value,
    symbolic=lambda sp, value, surrogate: surrogate,
    ball=lambda fl, value, surrogate: surrogate,
    partials=lambda value, surrogate, *, out: (None, 1),
    domain=[REAL, REAL],
    sample=[None, Closed(-2, 2)],
    formula="value, differentiated as surrogate",
    examples=[("ste(3, 2)", 3)],
)

named = linear(
    "named",
    "A value that a script gave a name: itself, but a variable of its own to `grad`.",
    impl=lambda xp, x, *, id: x,
    symbolic=lambda sp, x, *, id: x,
    ball=lambda fl, x, *, id: x,
    transpose={0: lambda ct, x, *, id: ct},
    rewrite=lambda x, *, id: x,  # a tangent or cotangent of it needs no name
    pointwise=True,
    arity=1,
    internal=True,
    formula="x",
)
