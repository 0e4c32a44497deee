"""The arithmetic of complex entries: the primitives' `ball` and `entries` rules, at a point and along a direction.

Rules that are written with an order have another one here. Functions of real numbers, and all that compares numbers,
take complex entries only where these are real. No derivative rule is read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.evaluate.balls import EXACT, BallField, Literals
from gradcli.checks.evaluate.interpretation import Failure, Undecided, Undefined, Unsupported
from gradcli.checks.expansions.complex_numbers import Complex, at_point
from gradcli.checks.expansions.log_puiseux import Expansion, Huge
from gradcli.checks.expansions.power_series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.graph.builder import Definition
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


REAL_ONLY = frozenset(
    (
        *("j0", "j1", "jn", "i0", "i1", "iv", "gammainc", "gammaincc", "betainc"),
        *("gamma", "lgamma", "digamma", "polygamma", "erf", "erfc", "erfinv", "erfcinv", "sinc", "sinc_derivative"),
        *("cbrt", "atan2", "mod", "floor", "ceil", "round", "trunc"),
    )
)


class ComplexField(BallField):
    """Arithmetic on complex entries, at a point and along a direction; only real ones have an order."""

    plain = frozenset((Complex,))
    plane = True

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__(literals)
        self.zero = Complex(arb(0))
        self.one = Complex(arb(1))

    # --- numbers ----------------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> Any:
        return real(super()._constant(value))

    def datum(self, value: Any) -> Any:
        return self.leaf(value) if isinstance(value, (float, complex)) else self.constant(value)

    def leaf(self, value: Any) -> Any:
        if not isinstance(value, complex):
            return real(super().leaf(value))
        if not (math.isfinite(value.real) and math.isfinite(value.imag)):
            return Undefined(f"a value of {value}")
        return Complex(arb(value.real), arb(value.imag))

    def parts(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, x.y))]

    def slopes(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, -x.y))]

    def joined(self, parts: Sequence[Any], before: Sequence[Any]) -> list[Any]:
        found = []
        for x, y, old in zip(parts[::2], parts[1::2], before, strict=True):
            same = isinstance(old, Failure) or (x is old.x and y is old.y)
            found.append(old if same else Complex(x, y))
        return found

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if not isinstance(x, Complex):
            return super().sign(x)
        if x.pure:
            return super().sign(x.x)
        raise Unsupported("complex numbers have no order")

    def vanishes(self, x: Any) -> bool:
        return self.sign(x) == 0 if not isinstance(x, Complex) or x.pure else not x.differs_from_zero()

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return COMPLEX.get(primitive.name) or primitive.ball

    def array_rule(self, node: Node) -> Callable[..., Any] | None:
        if node.primitive.name in ("cholesky", "qr_q"):
            raise Unsupported(f"{node.primitive.name} of complex matrices")
        return super().array_rule(node)

    def definition(self, node: Node, given: Callable[[Node], Node] | None = None) -> Definition:
        if node.primitive.name != "norm":
            return super().definition(node, given)
        return super().definition(
            node, lambda x: x.builder.call("abs", x)
        )  # the norm of complex entries is of their sizes

    def still(self, node: Node, x: Any) -> Any:
        if not isinstance(x, Complex):
            return x
        parts = [super(ComplexField, self).still(node, part) for part in (x.x, x.y)]
        return next((part for part in parts if isinstance(part, Failure)), Complex(*parts))

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        name = node.primitive.name
        if name in REAL_ONLY:
            if any(isinstance(x, Complex) and not x.pure for x in xs):
                raise Unsupported(f"{name} of complex numbers")
            xs = tuple([x.x if isinstance(x, Complex) else x for x in xs])
        return super().apply(node, rule, xs)

    def accepted(self, node: Node, made: Any, operands: Sequence[Any]) -> Any:
        made = real(made)
        if not isinstance(made, Complex) or made.is_finite():
            return made
        exact = all(x.is_exact() for x in operands if isinstance(x, Complex))
        smooth = at_point(made.x).is_finite() and at_point(made.y).is_finite()
        kind = Undefined if exact and not smooth else Undecided
        return kind(f"{node.primitive.name} has no value here", node)


def real(x: Any) -> Any:
    """A real entry as a complex one."""
    return Complex(x) if isinstance(x, (arb, Series, Expansion, Huge)) else x


# operations that are written with an order
COMPLEX: dict[str, Callable[..., Any]] = {
    "abs": lambda fl, x: x.size(),
    "abs_slope": lambda fl, x: x.direction().conjugate(),
    "sign": lambda fl, x: x.direction(),
    "equal": lambda fl, x, y: fl.vanishes(x - y),
    "not_equal": lambda fl, x, y: not fl.vanishes(x - y),
    "pow": lambda fl, x, y: x.power(y),
    "xlogy": lambda fl, x, y: fl.zero if x.is_zero() else x * y.log(),
}
