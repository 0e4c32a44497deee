"""Evaluates a program in forms, entry by entry: the arithmetic of `checks.evaluate.interpretation` on one tower.

It reads `symbolic` and `entries` rules with a `Namespace` of our own, the functions and constructors that these call
`sp`. Numbers stay rational numbers. Branches are decided at the point, by balls; the signs that decided them are the
region of a proof. Symbols stand for entries that move.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from operator import add, mul
from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.algebra.differential_field import MOST_BITS, Form, Generator, Spent, as_number
from gradcli.checks.algebra.elementary_functions import HALF, function, general_power, power
from gradcli.checks.algebra.real_forms import sign_of
from gradcli.checks.evaluate.interpretation import Failure, SymbolicField, Undecided, Undefined, last_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.checks.algebra.differential_field import Tower
    from gradcli.graph.node import Node


MOST_OPERATIONS = 20_000


class FormField(SymbolicField):
    """Arithmetic on forms; `hold` makes a script's detach a constant, whatever it is of."""

    def __init__(self, tower: Tower, *, hold: bool = False) -> None:
        super().__init__()
        self.tower = tower
        self.hold = hold
        self.zero = fmpq(0)
        self.one = fmpq(1)
        self.ties: list[Form] = []  # what moves, and is zero at the point
        self.operations = 0
        self.namespace = Namespace(tower, self.sign)

    # --- entries ------------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        return fmpq(value.numerator, value.denominator)

    def constant(self, value: Any) -> Any:
        if isinstance(value, str):
            if value == "pi":
                return self.tower.pi
            if value == "e":
                return self.namespace.exp(1)
            return Undefined(f"the constant {value}")
        if last_unit(value) is not None:  # a rounded constant: what is proved holds whatever its last digits are
            return self.symbol(f"<{float(value)!r}>", self.number(value), kind="literal")
        return self.number(value)

    def symbol(self, name: str, value: fmpq | None, kind: str = "symbol") -> Form:
        """A symbol with its value at the point; without one, whatever would need its sign is left open."""
        return self.tower.gen(self.tower.index(Generator(kind, name=name, value=value)))

    def held(self, name: str, x: Any) -> Any:
        """A constant that has the value of an entry."""
        if isinstance(x, Failure):
            return x
        return self.tower.gen(self.tower.index(Generator("held", [self.tower.lift(x)], name=name)))

    def total(self, xs: Iterable[Any]) -> Any:
        """The sum of some entries, by halves, so that no long sum is written out more often than needed."""
        parts = list(xs)
        self.tower.spend(len(parts))
        while len(parts) > 1:
            parts = [a + b for a, b in zip_longest(parts[::2], parts[1::2], fillvalue=self.zero)]
        return parts[0] if parts else self.zero

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else power(self.tower.lift(x), HALF)

    def index(self, x: Any) -> int:
        number = None if isinstance(x, Failure) else self.tower.lift(x).rational()
        if number is None or number.q != 1:
            raise Undefined("an index that is not a whole number")
        return int(number.p)

    # --- decisions ------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """The sign of an entry at the point; raises Undecided where 1,024 bits do not decide."""
        if isinstance(x, Failure):
            raise x
        if not isinstance(x, Form):
            return int(x > 0) - int(x < 0)
        form = self.tower.renewed(x)
        side = sign_of(form)
        if self.tower.moves(form):
            self.tower.note(form, side)
            if side == 0:
                self.ties.append(form)
        return side

    # --- steps ------------------------------------------------------------------------------------------

    def accepted(self, node: Node, made: Any, operands: Sequence[Any]) -> Any:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise Spent(f"more than {MOST_OPERATIONS:,} operations")
        if isinstance(made, fmpq) and max(made.p.bit_length(), made.q.bit_length()) > MOST_BITS:
            return Undecided("a number with too many digits", node)
        return super().accepted(node, made, operands)


class Namespace:
    """`sp` for forms of one tower; `sign_at_point` decides branches."""

    def __init__(self, tower: Tower, sign_at_point: Callable[[Any], int]) -> None:
        self.tower = tower
        self.sign_at_point = sign_at_point
        self.nan = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *xs: function(name, *map(self.tower.lift, xs))

    @property
    def pi(self) -> Form:
        return self.tower.pi

    def Integer(self, n: int) -> fmpq:
        return fmpq(n)

    def Rational(self, p: int, q: int) -> fmpq:
        return fmpq(p, q)

    def Add(self, *xs: Any) -> Any:
        return reduce(add, xs)

    def Mul(self, *xs: Any) -> Any:
        return reduce(mul, xs)

    def Pow(self, x: Any, n: Any) -> Any:
        number = as_number(n)
        if number is not None and number.q == 1:
            return x ** int(number.p)
        return general_power(self.tower.lift(x), self.tower.lift(n))

    def ff(self, x: Any, k: int) -> Any:
        """The falling factorial x*(x - 1)*...*(x - k + 1)."""
        return reduce(mul, [x - i for i in range(k)], fmpq(1))
