"""Polynomials in generators go in, fractions of them in lowest terms come out, with the operators of a number.

A generator is a symbol or a function of forms; what it means is for `tower` and for those who make it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.forms.polynomials import (
    EXPANDED,
    GCD_PAIRS,
    MOST_POWER,
    MOST_TERMS,
    Key,
    NotFound,
    Vanishing,
    as_number,
    exact_quotient,
    expected_terms,
    is_number,
    leading,
    product,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.forms.tower import Tower


class Generator:
    """What a generator is: its kind and, for a function, its arguments as forms.

    symbol and literal (with a `value`, a rational), unknown (a symbol without a value), pi, i, exp (of `unit` times the
    argument), log, root (of a `degree`), angle (of the point x, y, from arguments y, x), function (with a `name`),
    held (a form that counts as a constant), named (one that is not written out), inverse (one over a form, likewise).
    """

    __slots__ = ("args", "complex", "degree", "kind", "name", "unit", "value")

    def __init__(
        self,
        kind: str,
        args: Sequence[Form] = (),
        *,
        name: str = "",
        value: fmpq | None = None,
        unit: fmpq | None = None,
        degree: int = 1,
        complex: bool = False,
    ) -> None:
        self.kind = kind
        self.args = list(args)
        self.name = name
        self.value = value
        self.unit = unit
        self.degree = degree
        self.complex = complex

    def key(self) -> tuple[Any, ...]:
        """What tells generators apart: not the unit of an exponential, and not the degree of a root."""
        return (self.kind, self.name, *[arg.key() for arg in self.args])


class Form:
    """A fraction of two polynomials of a tower, in lowest terms; with the operators of a number."""

    __slots__ = ("den", "num", "tower")

    def __init__(self, tower: Tower, num: Any, den: Any) -> None:
        self.tower = tower
        self.num = num
        self.den = den

    def __str__(self) -> str:
        return str(self.num) if self.den.is_one() else f"({self.num})/({self.den})"

    def key(self) -> tuple[Any, ...]:
        """What tells forms of one tower apart."""
        return Key(self.num), Key(self.den)

    @property
    def is_zero(self) -> bool:
        return bool(self.num.is_zero())

    def rational(self) -> fmpq | None:
        """The form as a number, where it is one."""
        if not (is_number(self.num) and is_number(self.den)):
            return None
        return fmpq(leading(self.num), leading(self.den))

    @property
    def is_lowest(self) -> bool:
        """Whether common factors were looked for, so that there are none."""
        return len(self.num) * len(self.den) <= GCD_PAIRS

    def same(self, other: Form) -> bool:
        """Whether two forms are written alike."""
        return bool(self.num == other.num and self.den == other.den)

    def __add__(self, other: Any) -> Form:
        if not isinstance(other, Form):
            number = as_number(other)
            if number is None:
                return NotImplemented
            other = self.tower.number(number)
        tower = self.tower
        if self.den == other.den:
            return tower.made(self.num + other.num, self.den)
        if len(self.den) * len(other.den) > GCD_PAIRS:
            common, known = tower.one.num, False
        else:
            common, known = self.den.gcd(other.den), self.is_lowest and other.is_lowest
        left, right = exact_quotient(other.den, common), exact_quotient(self.den, common)
        num = product(self.num, left) + product(other.num, right)
        return tower.made(num, product(self.den, left), ((num, common),) if known else None)  # P. Henrici (1956)

    def __mul__(self, other: Any) -> Form:
        if not isinstance(other, Form):
            number = as_number(other)
            if number is None:
                return NotImplemented
            other = self.tower.number(number)
        pairs = ((self.num, other.den), (other.num, self.den)) if self.is_lowest and other.is_lowest else None
        return self.tower.made(product(self.num, other.num), product(self.den, other.den), pairs)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return Form(self.tower, -self.num, self.den)

    def __pos__(self) -> Form:
        return self

    def __sub__(self, other: Any) -> Form:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Form:
        return (-self).__add__(other)

    def inverse(self) -> Form:
        """One over it; raises Vanishing."""
        if self.is_zero:
            raise Vanishing("division by an expression that vanishes")
        if self.tower.inverting and len(self.num) > 1:
            return self.tower.inverted(self)
        return self.tower.made(self.den, self.num)

    def __truediv__(self, other: Any) -> Form:
        if isinstance(other, Form):
            return self * other.inverse()
        number = as_number(other)
        if number is None:
            return NotImplemented
        if number == 0:
            raise Vanishing("division by zero")
        return self.__mul__(1 / number)

    def __rtruediv__(self, other: Any) -> Form:
        return self.inverse().__mul__(other)

    def __pow__(self, n: int) -> Form:
        if n < 0:
            return self.inverse() ** -n
        if n > MOST_POWER:
            raise NotFound(f"a power of {n}")
        tower = self.tower
        terms = max(expected_terms(len(self.num), n), expected_terms(len(self.den), n))
        if terms > MOST_TERMS and not tower.naming:
            raise NotFound(f"more than {MOST_TERMS:,} terms in a power")
        if terms > EXPANDED and tower.naming:
            return tower.named(self.num) ** n / tower.named(self.den) ** n
        return tower.made(self.num**n, self.den**n, () if self.is_lowest else None)
