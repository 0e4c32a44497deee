"""What numbers of several kinds have in common: operators and functions that follow from a few of each kind's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import arb

if TYPE_CHECKING:
    from collections.abc import Callable


class Moving:
    """A number that moves with a step; its class has +, *, -x and `inverse`. Nothing that moves is one number."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def inverse(self) -> Any: ...

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self * 0 if other is self else self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __pow__(self, exponent: int) -> Any:
        power: Any = arb(1)
        for _ in range(exponent):
            power = self * power
        return power if exponent >= 0 else NotImplemented

    def is_integer(self) -> bool:
        """Whether it is one whole number all along."""
        return False

    def is_zero(self) -> bool:
        """Whether it is 0 all along."""
        return False

    def is_finite(self) -> bool:
        return True


FORMULAS: dict[str, Callable[[Any], Any]] = {  # `side` is the sign of a number, or either one near 0
    "tan": lambda x: x.sin() / x.cos(),
    "expm1": lambda x: x.exp() - 1,
    "log1p": lambda x: (x + 1).log(),
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "cosh": lambda x: 2 * (x / 2).sinh() ** 2 + 1,
    "tanh": lambda x: x.side() * (2 / (1 + (-2 * x.side() * x).exp()) - 1),
    "asinh": lambda x: x.side() * (x.side() * x + (x * x + 1).sqrt()).log(),
    "acosh": lambda x: (x + ((x - 1) * (x + 1)).sqrt()).log(),
    "atanh": lambda x: ((1 + x).log() - (1 - x).log()) / 2,
}
