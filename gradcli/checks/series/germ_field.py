"""The field of germs: the `ball` and `entries` rules of the primitives run on expansions beside a point, one by one.

It is asked only where power series do not tell what happens on a side: at poles, logarithms, essential singularities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.balls import BallField
from gradcli.checks.entries import Entries, UndefinedAt
from gradcli.checks.series.field import Failed, SeriesField
from gradcli.checks.series.germs import Germ, Huge, rational
from gradcli.checks.series.numbers import Unbounded
from gradcli.checks.series.reading import Along

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradcli.checks.entries import Failure
    from gradcli.checks.series.gradients import Direction, Lines
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


class GermField(SeriesField):
    """Arithmetic on germs, beside balls that do not move."""

    def __init__(self, field: BallField, base: Mapping[Node, Entries]) -> None:
        self.__dict__.update({key: value for key, value in field.__dict__.items() if key != "series"})
        self.continuous = False
        self.signs = []
        self.base = base

    def sign(self, x: Any) -> int:
        if isinstance(x, (Germ, Huge)):
            found = x.sign()
            self.signs.append(found)
            return found
        return super().sign(x)

    def index(self, x: Any) -> int:
        if isinstance(x, (Germ, Huge)):
            raise UndefinedAt("a position that moves")
        return super().index(x)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        raise Unbounded("ste beside a point that is no smooth one")

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return OWN.get(primitive.name) or primitive.ball


def beside(lines: Lines, direction: Direction) -> Germ | Huge | Any | Failure:
    """The output on the side that a direction leads to: a germ, a ball where nothing moves, or a Failure."""
    base = lines.base.known
    field = GermField(lines.field, base)
    moved = list(lines.center)
    for i, speed in direction.items():
        moved[i] = Germ.along(moved[i], speed)
    walk = Along(field, base, lines.paths.split(moved))
    walk.again(lines.paths.walk)
    return walk.known[lines.paths.outputs[0]].flat[0]


def _power(fl: Any, x: Any, y: Any) -> Any:
    if isinstance(y, (Germ, Huge)) or not isinstance(x, Germ):
        if fl.sign(x) <= 0:
            raise UndefinedAt("a power with a moving exponent of a number that is not positive")
        return (y * x.log()).exp()
    if y.is_integer() and abs(whole := int(y.unique_fmpz())) <= 64:
        return x**whole if whole >= 0 else (x**-whole).inverse()
    if fl.sign(x) < 0:
        raise UndefinedAt("a broken power of a negative number on this side")
    exponent = rational(y)
    return x.raised(exponent) if exponent is not None else (y * x.log()).exp()


def _cube_root(fl: Any, x: Any) -> Any:
    side = fl.sign(x)
    return side * (side * x).root_of(1, 3)


def _angle(fl: Any, y: Any, x: Any) -> Any:
    if not isinstance(y, Germ) and y.is_zero():
        return arb(0) if fl.sign(x) > 0 else arb.pi()
    if fl.sign(x) > 0:
        return (y / x).atan()
    return fl.sign(y) * (arb.pi() / 2) - (x / y).atan()


def _polygamma(fl: Any, x: Any, *, n: int) -> Any:
    if not isinstance(x, Germ):
        raise Failed(x)
    return x.polygamma(n)


OWN: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "cbrt": _cube_root,
    "atan2": _angle,
    "polygamma": _polygamma,
}

__all__ = ["beside"]
