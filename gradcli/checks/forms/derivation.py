"""A form and a symbol go in, the derivative comes out: a derivation on polynomials, and one rule for each generator.

The rules are those of a first course, written down here and nowhere else; no rule of a primitive is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.checks.forms.exponentials import HALF, exp, general_power, power
from gradcli.checks.forms.functions import bessel, gamma, polygamma
from gradcli.checks.forms.polynomials import NotFound
from gradcli.checks.forms.ring import Form, Generator

if TYPE_CHECKING:
    from collections.abc import Callable


class Derivation:
    """The derivation of a tower by one of its symbols; what it learns of generators it keeps."""

    def __init__(self, symbol: Form) -> None:
        self.tower = symbol.tower
        self.symbol = self.tower.used(symbol)[0]
        self.known: dict[int, Form] = {}

    def of(self, form: Form) -> Form:
        """The derivative of a form; raises NotFound for a function without a rule here."""
        form = self.tower.made(form.num, form.den)
        top = self._polynomial(form.num)
        if form.den.is_constant():
            return top * self.tower.made(self.tower.one.num, form.den)
        bottom = self._polynomial(form.den)
        below = self.tower.made(self.tower.one.num, form.den)
        return (top - form * bottom) * below

    def _polynomial(self, poly: Any) -> Form:
        total = self.tower.zero
        for index, degree in enumerate(poly.degrees()):
            if degree > 0:
                slope = self._generator(index)
                if not slope.is_zero:
                    total = total + self.tower.poly(poly.derivative(index)) * slope
        return total

    def _generator(self, index: int) -> Form:
        known = self.known.get(index)
        if known is None:
            known = self.known[index] = self._rule(index, self.tower.generators[index])
        return known

    def _rule(self, index: int, one: Generator) -> Form:
        tower = self.tower
        if one.kind in ("symbol", "literal", "pi", "i", "held"):
            return tower.one if index == self.symbol else tower.zero
        slopes = [self.of(arg) for arg in one.args]
        if all(slope.is_zero for slope in slopes):
            return tower.zero
        if one.kind == "named":
            return slopes[0]
        itself = tower.gen(index)
        if one.kind == "inverse":
            return -(itself * itself) * slopes[0]
        if one.kind == "exp":
            return itself * slopes[0] * one.unit
        if one.kind == "log":
            return slopes[0] / one.args[0]
        if one.kind == "root":
            return itself * slopes[0] / one.args[0] / one.degree
        if one.kind == "angle":
            y, x = one.args
            return (x * slopes[0] - y * slopes[1]) / (x * x + y * y)
        rule = TABLE.get(one.name)
        if rule is None:
            raise NotFound(f"the derivative of {one.name}")
        return rule(itself, *one.args) * slopes[-1]


def _next_polygamma(order: Form, x: Form) -> Form:
    n = order.rational()
    assert n is not None
    return polygamma(int(n.p) + 1, x)


def _next_bessel(name: str, side: int) -> Callable[..., Form]:
    """f_0' = side*f_1, f_1' = f_0 - f_1/x."""

    def rule(itself: Form, order: Form, x: Form) -> Form:
        return bessel(name, 0, x) - itself / x if order.rational() == 1 else side * bessel(name, 1, x)

    return rule


def _beta_density(a: Form, b: Form, x: Form) -> Form:
    scale = gamma(a + b) / (gamma(a) * gamma(b))
    return general_power(x, a - 1) * general_power(1 - x, b - 1) * scale


TABLE: dict[str, Callable[..., Form]] = {
    "erf": lambda g, x: 2 * exp(-x * x) / power(x.tower.pi, HALF),
    "erfinv": lambda g, x: exp(g * g) * power(x.tower.pi, HALF) / 2,
    "besselj": _next_bessel("besselj", -1),
    "besseli": _next_bessel("besseli", 1),
    "lowergamma": lambda g, a, x: general_power(x, a - 1) * exp(-x),
    "uppergamma": lambda g, a, x: -general_power(x, a - 1) * exp(-x),
    "betainc_regularized": lambda g, a, b, start, x: _beta_density(a, b, x),
    "gamma": lambda g, x: g * polygamma(0, x),
    "polygamma": lambda g, n, x: _next_polygamma(n, x),
}
