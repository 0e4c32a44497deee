"""Evaluates a program in forms, entry by entry: the arithmetic of `checks.evaluate.interpretation` on one tower.

It reads `symbolic` and `entries` rules with a namespace of our own. Numbers stay rational numbers. Branches are decided
at the point, by balls; the signs that decided them are the region of a proof. Symbols stand for entries that move.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.algebra.differential_field import MOST_BITS, Form, Generator, NotFound, Spent
from gradcli.checks.algebra.elementary_functions import Namespace
from gradcli.checks.algebra.exponentials import HALF, log, power
from gradcli.checks.algebra.real_forms import sign_of
from gradcli.checks.evaluate.decimal_literals import last_unit
from gradcli.checks.evaluate.interpretation import MOST_TURNS, Entries, Failure, Field, Undecided, UndefinedAt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.checks.algebra.differential_field import Tower
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


MOST_OPERATIONS = 20_000


class FormField(Field):
    """Arithmetic on forms; `hold` makes a script's detach a constant, whatever it is of."""

    most_turns = MOST_TURNS

    def __init__(self, tower: Tower, *, decimal: bool = False, hold: bool = False) -> None:
        super().__init__()
        self.tower = tower
        self.decimal = decimal
        self.hold = hold
        self.zero = fmpq(0)
        self.one = fmpq(1)
        self.ties: list[Form] = []  # what moves, and is zero at the point
        self.held_any = False  # whether `hold` has made a difference
        self.operations = 0
        self.sp = Namespace(tower, self.sign)

    # --- entries ------------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        return fmpq(value.numerator, value.denominator)

    def constant(self, value: Any) -> Any:
        if isinstance(value, str):
            if value == "pi":
                return self.tower.pi
            if value == "e":
                return self.sp.exp(1)
            return Failure("undefined", None, f"the constant {value}")
        if last_unit(value) is not None:  # a rounded constant: what is proved holds whatever its last digits are
            return self.symbol(f"<{float(value)!r}>", self.number(value), kind="literal")
        return self.number(value)

    def datum(self, value: Any) -> Any:
        return self.fixed(value) if isinstance(value, float) else self.constant(value)

    def fixed(self, value: float) -> Any:
        """A double as an exact constant."""
        if not math.isfinite(value):
            return Failure("undefined", None, f"a value of {value}")
        return self.number(Fraction(repr(value)) if self.decimal else Fraction(value))

    def symbol(self, name: str, value: fmpq, kind: str = "symbol") -> Form:
        """A symbol with its value at the point."""
        return self.tower.gen(self.tower.index(Generator(kind, name=name, value=value)))

    def unknown(self, name: str) -> Form:
        """A symbol without a value: whatever would need its sign is left open."""
        return self.tower.gen(self.tower.index(Generator("unknown", name=name)))

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
        found = parts[0] if parts else self.zero
        if isinstance(found, fmpq) and found.q.bit_length() > MOST_BITS:
            raise NotFound("a number of too many digits")
        return found

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else power(self.tower.lift(x), HALF)

    def log(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else log(self.tower.lift(x))

    def index(self, x: Any) -> int:
        number = None if isinstance(x, Failure) else self.tower.lift(x).rational()
        if number is None or number.q != 1:
            raise UndefinedAt("a position that is not a whole number")
        return int(number.p)

    def detached(self, node: Node, x: Entries) -> Entries:
        if not self.hold:
            return x
        self.held_any = True
        flat = [self.held(f"detach{node.serial}[{i}]", entry) for i, entry in enumerate(x.flat)]
        return Entries(flat, x.shape)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        if not self.hold:
            return value
        self.held_any = True
        gaps = [x - y for x, y in zip(value.flat, surrogate.flat, strict=True)]
        flat = [self.held(f"ste{node.serial}[{i}]", gap) + surrogate.flat[i] for i, gap in enumerate(gaps)]
        return Entries(flat, surrogate.shape)

    # --- decisions ------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """The sign of an entry at the point; raises Undecided where 1,024 bits do not decide."""
        if isinstance(x, Failure):
            raise Undecided(x.reason)
        if not isinstance(x, Form):
            return int(x > 0) - int(x < 0)
        form = self.tower.made(x.num, x.den)
        side = sign_of(form)
        if self.tower.moves(form):
            self.tower.note(form, side)
            if side == 0:
                self.ties.append(form)
        return side

    # --- steps ------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.symbolic

    def computed(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise Spent(f"more than {MOST_OPERATIONS:,} operations")
        try:
            made = rule(self.sp, *xs, **node.params)
        except (Undecided, UndefinedAt) as reason:
            return Failure(reason.kind, node, str(reason))
        except ZeroDivisionError as reason:
            return Failure("undefined", node, str(reason))
        if made is None:
            return Failure("undefined", node, f"{node.primitive.name} has no value here")
        return made

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        self.operations += 1
        return entry
