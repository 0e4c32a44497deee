"""The field of complex series: the `ball` and `entries` rules of the primitives run on `Curve`s, entry by entry.

What asks for the order of numbers is answered for real ones only; operations whose rules are written with an order, or
that mean |z| for complex entries, have readings of their own here. No derivative rule is read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flint import acb, arb, ctx

from gradcli.checks.balls import BallField
from gradcli.checks.entries import Entries, Failure, UndefinedAt, Unsupported
from gradcli.checks.series.curves import Curve, SidedCurve, is_positive
from gradcli.checks.series.field import SeriesField
from gradcli.checks.series.matrices import rule_of
from gradcli.checks.series.numbers import Tie
from gradcli.graph.definition import written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.definition import Definition
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

ZERO_TESTED = frozenset(("sinc_derivative",))
REAL_ONLY = frozenset(
    (
        *("j0", "j1", "jn", "i0", "i1", "iv", "gammainc", "gammaincc", "betainc"),
        "lgamma",
        "polygamma",
        "erfinv",
        "erfcinv",
        "cbrt",
        "atan2",
        "mod",
        "floor",
        "ceil",
        "round",
        "trunc",
    )
)


class PlaneField(SeriesField):
    """Arithmetic on complex functions of a step; what the order of real numbers decides is asked of real ones only."""

    kind: type[Curve] = Curve
    testing_zero = False  # whether a sign is asked for only to tell 0 from other numbers

    def __init__(self, *, wide: bool = False, printed: bool = False) -> None:
        BallField.__init__(self, wide=wide, printed=printed)
        self.continuous = False
        self.signs = []
        self.base = {}
        self.zero = self.kind.constantly(0)
        self.one = self.kind.constantly(1)

    # --- numbers ----------------------------------------------------------------------------------------------

    def constant(self, value: Any) -> Any:
        key = (value, ctx.cap)
        if key not in self._constants:
            found = self._constant(value)
            self._constants[key] = found if isinstance(found, Failure) else self.kind.constantly(found)
        return self._constants[key]

    def datum(self, value: Any) -> Any:
        return self.leaf(value) if isinstance(value, (float, complex)) else self.constant(value)

    def leaf(self, value: Any) -> Any:
        if isinstance(value, complex):
            if not (math.isfinite(value.real) and math.isfinite(value.imag)):
                return Failure("undefined", None, f"a value of {value}")
            return self.kind.constantly(acb(value.real, value.imag))
        found = super().leaf(value)
        return found if isinstance(found, Failure) else self.kind.constantly(found)

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.sqrt()

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if not isinstance(x, Curve):
            return super().sign(x)
        if not x.pure and self.testing_zero:
            if x.vanishes() and not x.fixed:
                raise Tie
            return 0 if x.vanishes() else 1
        if not x.pure:
            raise Unsupported("complex numbers have no order")
        if self.continuous and not x.still and x.s.length() == 0:
            return 1
        found = x.sign()
        if not x.still:
            self.signs.append(found)
        return found

    def index(self, x: Any) -> int:
        if isinstance(x, Curve) and not x.is_integer():
            raise UndefinedAt("a position that is not a whole number")
        return int(x.unique_fmpz()) if isinstance(x, Curve) else super().index(x)

    @property
    def holding(self) -> bool:  # type: ignore[override]
        return bool(self.base)

    def digits_of(self, x: Any) -> Sequence[Any]:
        return []  # of loops in the plane nothing is foretold

    def detached(self, node: Node, x: Entries) -> Entries:
        if node.args[0] in self.base:
            return self.base[node.args[0]]
        return Entries([one if isinstance(one, Failure) else one.held() for one in x.flat], x.shape)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        at, before = (self.base.get(arg, now) for arg, now in zip(node.args, (value, surrogate), strict=True))
        flat = []
        for here, then, now in zip(at.flat, before.flat, surrogate.flat, strict=True):
            failed = next((x for x in (here, then, now) if isinstance(x, Failure)), None)
            flat.append(here.held() + (now - then.held()) if failed is None else failed)
        return Entries(flat, value.shape)

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return OWN.get(primitive.name) or primitive.ball

    def array_rule(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.name in ("cholesky", "qr_q"):
            raise Unsupported(f"{primitive.name} of complex matrices")
        assert primitive.entries is not None
        return primitive.entries

    def matrix_rule(self, node: Node) -> Callable[..., Any] | None:
        return rule_of(node, closed=False)

    def written_out(self, node: Node) -> Definition:
        if node.primitive.name == "norm":  # that of complex entries is the norm of their sizes
            return written_out(node, lambda x: x.builder.call("abs", x))
        return super().written_out(node)

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        name = node.primitive.name
        if name in REAL_ONLY:
            raise Unsupported(f"{name} of complex numbers")
        self.testing_zero = name in ZERO_TESTED
        made = super().apply(node, rule, xs)
        if type(made) is arb:
            return self.kind.constantly(made)
        if isinstance(made, Curve) and not made.is_finite():
            exact = all(x.is_exact() for x in xs if isinstance(x, Curve)) and not made.constant.is_finite()
            return Failure("undefined" if exact else "undecided", node, f"{name} has no value here")
        return made

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if type(entry) is arb:
            return self.kind.constantly(entry)
        if isinstance(entry, Curve) and not entry.is_finite():
            return Failure("undecided", node, f"{node.primitive.name} needs more digits")
        return entry


class SidedPlaneField(PlaneField):
    """The same on one side of a point."""

    kind = SidedCurve


# --- operations that are written with an order ------------------------------------------------------------------


def _equal(fl: Any, x: Any, y: Any) -> bool:
    gap = x - y
    return fl.sign(gap) == 0 if gap.pure else bool(gap.vanishes())


def _power(fl: Any, x: Any, y: Any) -> Any:
    return x.power(y)


def _power_derivative(fl: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    """From x*D(k+1, m) = (y - k)*D(k, m) + m*D(k, m-1), which is x*d/dx(x**y) = y*x**y differentiated."""
    if m == 0 and any((y - i).is_zero() for i in range(k)):
        return fl.zero
    if x.vanishes():
        if m == 0 and y.is_integer():
            factor = fl.one
            for i in range(k):
                factor = factor * (y - i)
            return factor * x.power(y - k)
        if is_positive((y - k).constant.real):
            return fl.zero
        raise UndefinedAt("an infinite derivative of x**y at x = 0")
    row = [x.power(y)]
    if m:
        row += [row[0] * x.log() ** j for j in range(1, m + 1)]
    for i in range(k):
        row = [((y - i) * row[j] + (j * row[j - 1] if j else 0)) / x for j in range(m + 1)]
    return row[m]


def _absent(fl: Any, x: Any, y: Any) -> Any:
    """x*log(y), and 0 where x is 0."""
    return fl.zero if x.fixed and x.vanishes() else x * y.log()


def _divided(fl: Any, x: Any, y: Any) -> Any:
    return fl.zero if y.fixed and y.vanishes() else x / y


OWN: dict[str, Callable[..., Any]] = {
    "abs": lambda fl, x: x.size(),
    "abs_slope": lambda fl, x: x.direction().conjugate(),
    "sign": lambda fl, x: x.direction(),
    "equal": _equal,
    "not_equal": lambda fl, x, y: not _equal(fl, x, y),
    "pow": _power,
    "pow_derivative": _power_derivative,
    "xlogy": _absent,
    "div_no_nan": _divided,
}


__all__ = ["PlaneField", "SidedPlaneField"]
