"""Closed forms for matrices of one or two rows: what symbols and balls evaluate in place of LAPACK's routines.

They serve exact readings only; values and derivatives in floats come from the declarations that refer to them.
"""

from __future__ import annotations

from typing import Any

from gradcli.graph.primitive import nondifferentiable
from gradcli.graph.types import Type
from gradcli.primitives.axes import filled, identity_matrix, part, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.comparison import equal, where
from gradcli.primitives.exponential import exp
from gradcli.primitives.hyperbolic import cosh, sinh
from gradcli.primitives.joining import joined
from gradcli.primitives.movement import sum_
from gradcli.primitives.powers import sqrt
from gradcli.primitives.trigonometric import cos, sin

larger_than_2x2 = nondifferentiable(
    "larger_than_2x2",
    "What has no closed form: an exact reading stops here and says so.",
    impl=lambda xp, x, *, ranks, shape: xp.full(x.shape[: x.ndim - ranks[0]] + shape, xp.nan),
    type_rule=lambda x, *, shape: Type(x.kind, shape),
    arity=1,
    internal=True,
)

# --- symmetric matrices ------------------------------------------------------------------------------------


def entry_of(x: Any, i: int, j: int) -> Any:
    """One entry of each matrix."""
    return reshaped(part(part(x, -2, i, 1), -1, j, 1), x.shape[:-2])


def from_columns(*vectors: tuple[Any, ...]) -> Any:
    """Matrices from their columns, each a tuple of numbers."""
    lead = vectors[0][0].shape
    rows = [joined([reshaped(v[i], (*lead, 1, 1)) for v in vectors], -1) for i in range(len(vectors[0]))]
    return joined(rows, -2)


# --- the exponential of a 2 by 2 matrix -------------------------------------------------------------------------
#
# With m half the trace and N = A - m I, N @ N is the number q times I, and exp(A) = exp(m) (C(q) I + S(q) N), where
# C(q) = cosh(sqrt(q)) and S(q) = sinh(sqrt(q))/sqrt(q) are even in sqrt(q) and turn into cos and sin for q < 0.


def _spread(number: Any, like: Any) -> Any:
    return stretch(reshaped(number, (*number.shape, 1, 1)), like.shape)


def _parts(x: Any) -> tuple[Any, Any, Any, Any]:
    """m, N, C(q) and S(q)."""
    middle = (entry_of(x, 0, 0) + entry_of(x, 1, 1)) / 2
    rest = x - _spread(middle, x) * stretch(identity_matrix(x, 2), x.shape)
    q = entry_of(rest, 0, 0) * entry_of(rest, 0, 0) + entry_of(rest, 0, 1) * entry_of(rest, 1, 0)
    up, down = sqrt(q), sqrt(-q)
    even = where(q > 0, cosh(up), where(q < 0, cos(down), 1))
    odd = where(q > 0, sinh(up) / up, where(q < 0, sin(down) / down, 1))
    return middle, rest, even, odd


def exponential(x: Any) -> Any:
    """exp(x) of matrices with one or two rows."""
    if x.shape[-1] == 1:
        return exp(x)
    if x.shape[-1] > 2:
        return larger_than_2x2(x, shape=x.shape)
    middle, rest, even, odd = _parts(x)
    unit = stretch(identity_matrix(x, 2), x.shape)
    return _spread(exp(middle), x) * (_spread(even, x) * unit + _spread(odd, x) * rest)


def exponential_along(x: Any, direction: Any) -> Any:
    """The derivative of `exponential` at x along a direction: dC/dq = S/2, dS/dq = (C - S)/(2 q), 1/6 at q = 0."""
    if x.shape[-1] == 1:
        return exp(x) * direction
    if x.shape[-1] > 2:
        return larger_than_2x2(x, shape=x.shape)
    middle, rest, even, odd = _parts(x)
    unit = stretch(identity_matrix(x, 2), x.shape)
    q = entry_of(rest @ rest, 0, 0)
    away = (entry_of(direction, 0, 0) + entry_of(direction, 1, 1)) / 2
    turned = direction - _spread(away, x) * unit
    dq = sum_(rest.mT * turned, axis=(-2, -1))
    slope = where(equal(q, 0), filled(q, 1, q.shape) / 6, (even - odd) / (2 * q))
    inside = _spread(even * away + odd * dq / 2, x) * unit
    inside = inside + _spread(odd * away + slope * dq, x) * rest + _spread(odd, x) * turned
    return _spread(exp(middle), x) * inside
