"""Functions of forms: what makes them, their derivatives, and forms written again without auxiliary generators.

Elementary functions are made in `exponentials`. Those of here are generators of their own: the gamma function with its
derivatives by an argument in [0, 1), odd functions by one sign of theirs.
"""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING

from flint import fmpq

from gradcli.checks.algebra import exponentials
from gradcli.checks.algebra.differential_field import Form, Generator, NotFound, leading
from gradcli.checks.algebra.exponentials import HALF, angle, exp, general_power, log, power

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_SHIFT = 40
MOST_ARGUMENT = 200


def function(name: str, *args: Form) -> Form:
    """A function of forms by its name; a generator where nothing more is known of it."""
    rule = FUNCTIONS.get(name)
    return generator(name, *args) if rule is None else rule(*args)


def generator(kind: str, *args: Form) -> Form:
    tower = args[0].tower
    return tower.gen(tower.index(Generator(kind, args)))


def odd(name: str) -> Callable[[Form], Form]:
    """An odd function as a generator: one sign of its argument serves both."""

    def apply(form: Form) -> Form:
        if form.is_zero:
            return form
        return -generator(name, -form) if leading(form.num) < 0 else generator(name, form)

    return apply


def shifted(form: Form) -> tuple[Form, int]:
    """An argument with its constant term moved into [0, 1), or (0, 1] where nothing else is left, and by how much."""
    if not form.den.is_constant():
        return form, 0
    constant = fmpq(0)
    for powers, coefficient in form.num.terms():
        if not any(powers):
            constant = fmpq(coefficient, leading(form.den))
    number = form.rational()
    whole = int((constant.p // constant.q) if number is None or constant.q != 1 else constant.p - 1)
    if abs(whole) > (MOST_SHIFT if number is None else MOST_ARGUMENT):
        return form, 0
    return form - whole, whole


def gamma(form: Form) -> Form:
    """The gamma function, by gamma(x + 1) = x*gamma(x) of an argument in [0, 1)."""
    base, n = shifted(form)
    tower = form.tower
    number = base.rational()
    if number is not None and number == 1:
        if n < 0:
            raise NotFound("a pole of the gamma function")
        return tower.number(factorial(n))
    found = power(tower.pi, HALF) if number is not None and number == HALF else generator("gamma", base)
    for k in range(n):
        found = found * (base + k)
    for k in range(n, 0):
        found = found / (base + k)
    return found


def polygamma(n: int, form: Form) -> Form:
    """The n-th derivative of digamma, by its value at x + 1, which is (-1)**n n!/x**(n + 1) more."""
    base, shift = shifted(form)
    tower = form.tower
    found = generator("polygamma", tower.number(n), base)
    scale = tower.number((-1) ** n * factorial(n))
    for k in range(shift):
        found = found + scale / (base + k) ** (n + 1)
    for k in range(shift, 0):
        found = found - scale / (base + k) ** (n + 1)
    return found


def tangent(pair: Callable[[Form], tuple[Form, Form]]) -> Callable[[Form], Form]:
    def apply(form: Form) -> Form:
        sine, cosine = pair(form)
        return sine / cosine

    return apply


FUNCTIONS: dict[str, Callable[..., Form]] = {
    "exp": exp,
    "log": log,
    "sqrt": lambda x: power(x, HALF),
    "sin": lambda x: exponentials.sine_cosine(x)[0],
    "cos": lambda x: exponentials.sine_cosine(x)[1],
    "tan": tangent(exponentials.sine_cosine),
    "sinh": lambda x: exponentials.hyperbolic(x)[0],
    "cosh": lambda x: exponentials.hyperbolic(x)[1],
    "tanh": tangent(exponentials.hyperbolic),
    "asin": exponentials.asin,
    "acos": exponentials.acos,
    "atan": exponentials.atan,
    "atan2": angle,
    "angle": angle,
    "inverse": Form.inverse,
    "asinh": exponentials.asinh,
    "acosh": exponentials.acosh,
    "atanh": exponentials.atanh,
    "erf": odd("erf"),
    "erfc": lambda x: 1 - odd("erf")(x),
    "erfinv": odd("erfinv"),
    "erfcinv": lambda x: odd("erfinv")(1 - x),
    "gamma": gamma,
    "loggamma": lambda x: log(gamma(x)),
    "digamma": lambda x: polygamma(0, x),
    "polygamma": lambda n, x: polygamma(_order(n), x),
}


class Derivation:
    """The derivation of a tower by one of its symbols; the derivatives of generators are kept."""

    def __init__(self, symbol: Form) -> None:
        self.tower = symbol.tower
        self.symbol = self.tower.used(symbol)[0]
        self.known: dict[int, Form] = {}

    def of(self, form: Form) -> Form:
        """The derivative of a form; raises NotFound for a function without a rule here."""
        form = self.tower.renewed(form)
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
        if index == self.symbol:
            return tower.one
        slopes = [] if one.kind == "held" else [self.of(arg) for arg in one.args]
        if all(slope.is_zero for slope in slopes):
            return tower.zero
        itself = tower.gen(index)
        if one.kind == "angle":
            y, x = one.args
            return (x * slopes[0] - y * slopes[1]) / (x * x + y * y)
        rule = PARTIALS.get(one.kind)
        if rule is None:
            raise NotFound(f"the derivative of {one.kind}")
        partial: Form = rule(itself, one.unit, *one.args)
        return partial * slopes[-1]


def _beta_density(a: Form, b: Form, x: Form) -> Form:
    scale = gamma(a + b) / (gamma(a) * gamma(b))
    return general_power(x, a - 1) * general_power(1 - x, b - 1) * scale


def _order(n: Form) -> int:
    number = n.rational()
    assert number is not None
    return int(number.p)


# derivatives by the last argument, the only one that may move, of the generator itself, its unit, and its arguments
PARTIALS: dict[str, Callable[..., Form]] = {
    "named": lambda g, unit, x: g.tower.one,
    "inverse": lambda g, unit, x: -(g * g),
    "exp": lambda g, unit, x: g * unit,
    "log": lambda g, unit, x: x.inverse(),
    "root": lambda g, unit, x: g * unit / x,
    "erf": lambda g, unit, x: 2 * exp(-x * x) / power(x.tower.pi, HALF),
    "erfinv": lambda g, unit, x: exp(g * g) * power(x.tower.pi, HALF) / 2,
    "lowergamma": lambda g, unit, a, x: general_power(x, a - 1) * exp(-x),
    "uppergamma": lambda g, unit, a, x: -general_power(x, a - 1) * exp(-x),
    "betainc_regularized": lambda g, unit, a, b, start, x: _beta_density(a, b, x),
    "gamma": lambda g, unit, x: g * polygamma(0, x),
    "polygamma": lambda g, unit, n, x: polygamma(_order(n) + 1, x),
}


# --- forms written again ------------------------------------------------------------------------------------------


WRITTEN_OUT = ("held", "named", "inverse")


def released(form: Form, known: dict[int, Form], naming: bool) -> Form:
    """A form without held or named generators, but for new names of long powers where there is `naming`.

    `known` maps generators to what they are written as.
    """
    tower = form.tower
    before, tower.naming = tower.naming, naming
    apart, tower.inverting = tower.inverting, tower.inverting and naming
    try:
        form = tower.renewed(form)
        return _polynomial(form, form.num, known) / _polynomial(form, form.den, known)
    finally:
        tower.naming, tower.inverting = before, apart


def _polynomial(form: Form, poly: Any, known: dict[int, Form]) -> Form:
    tower = form.tower
    used = [i for i, n in enumerate(poly.degrees()) if n > 0]
    now = {i: _generator(form, i, known) for i in used}
    changed = [i for i in used if not now[i].same(tower.gen(i))]
    if not changed:
        return tower.poly(poly)
    parts: dict[tuple[int, ...], dict[Any, Any]] = {}
    for powers, coefficient in poly.terms():
        key = tuple(int(powers[i]) for i in changed)
        rest = tuple(0 if i in changed else n for i, n in enumerate(powers))
        parts.setdefault(key, {})[rest] = coefficient
    total = tower.zero
    for key, part in parts.items():
        term = tower.poly(tower.ring.from_dict(part))
        for i, n in zip(changed, key, strict=True):
            term = term * now[i] ** n
        total = total + term
    return total


def _generator(form: Form, index: int, known: dict[int, Form]) -> Form:
    found = known.get(index)
    if found is None:
        tower = form.tower
        one = tower.generators[index]
        args = [released(arg, known, form.tower.naming) for arg in one.args]
        same = all(new.same(old) for new, old in zip(args, one.args, strict=True))
        found = known[index] = tower.gen(index) if same and one.kind not in WRITTEN_OUT else _made(one, args)
    return found


def _made(one: Generator, args: list[Form]) -> Form:
    if one.kind in ("held", "named"):
        return args[0]
    if one.kind == "exp":
        return exp(args[0] * one.unit)
    if one.kind == "root":
        return power(args[0], one.unit)
    return function(one.kind, *args)
