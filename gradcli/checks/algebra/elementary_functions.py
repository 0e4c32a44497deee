"""What `symbolic` rules call `sp`: functions and constructors of our own, from forms and numbers to forms."""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.algebra import exponentials
from gradcli.checks.algebra.differential_field import Form, Generator, NotFound, as_number, leading
from gradcli.checks.algebra.exponentials import HALF, exp, general_power, log, power

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.checks.algebra.differential_field import Tower


MOST_SHIFT = 40
MOST_ARGUMENT = 200


class Namespace:
    """`sp` for forms of one tower; `sign_at_point` decides branches."""

    def __init__(self, tower: Tower, sign_at_point: Callable[[Any], int]) -> None:
        self.tower = tower
        self.sign_at_point = sign_at_point
        self.nan = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        rule = RULES.get(name)
        tower = self.tower
        if rule is None:
            return lambda *xs: function(name, *map(tower.lift, xs))
        return lambda *xs: rule(*map(tower.lift, xs))

    @property
    def pi(self) -> Form:
        return self.tower.pi

    def Integer(self, n: int) -> fmpq:
        return fmpq(n)

    def Rational(self, p: int, q: int) -> fmpq:
        return fmpq(p, q)

    def Add(self, *xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return total

    def Mul(self, *xs: Any) -> Any:
        found = xs[0]
        for x in xs[1:]:
            found = found * x
        return found

    def Pow(self, x: Any, n: Any) -> Any:
        number = as_number(n)
        if number is not None and number.q == 1:
            return x ** int(number.p)
        return general_power(self.tower.lift(x), self.tower.lift(n))

    def ff(self, x: Any, k: int) -> Any:
        """The falling factorial x*(x - 1)*...*(x - k + 1)."""
        found: Any = fmpq(1)
        for i in range(k):
            found = (x - i) * found
        return found

    def besselj(self, n: int, x: Any) -> Form:
        return bessel("besselj", n, self.tower.lift(x))

    def besseli(self, n: int, x: Any) -> Form:
        return bessel("besseli", n, self.tower.lift(x))

    def polygamma(self, n: int, x: Any) -> Form:
        return polygamma(n, self.tower.lift(x))


# --- special functions ------------------------------------------------------------------------------------


def function(name: str, *args: Form) -> Form:
    """Any function of forms as a generator."""
    tower = args[0].tower
    return tower.gen(tower.index(Generator("function", args, name=name)))


def odd(name: str) -> Callable[[Form], Form]:
    """An odd function as a generator: one sign of its argument serves both."""

    def apply(form: Form) -> Form:
        if form.is_zero:
            return form
        return -function(name, -form) if leading(form.num) < 0 else function(name, form)

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
    """The gamma function by gamma(x + 1) = x*gamma(x), and gamma(x)*gamma(1 - x) = pi/sin(pi*x)."""
    base, n = shifted(form)
    tower = form.tower
    number = base.rational()
    if number is not None and number == 1:
        if n < 0:
            raise NotFound("a pole of the gamma function")
        return tower.number(factorial(n))
    mirror = mirrored("gamma", base)
    if number is not None and number == HALF:
        found = power(tower.pi, HALF)
    elif mirror is not None:
        found = tower.pi / (exponentials.sine_cosine(tower.pi * base)[0] * gamma(1 - base))
    else:
        found = function("gamma", base)
    for k in range(n):
        found = found * (base + k)
    for k in range(n, 0):
        found = found / (base + k)
    return found


def polygamma(n: int, form: Form) -> Form:
    """The n-th derivative of digamma by its value at x + 1, which is (-1)**n n!/x**(n + 1) more, and at 1 - x."""
    base, shift = shifted(form)
    tower = form.tower
    mirror = mirrored("polygamma", base, tower.number(n))
    if mirror is not None:
        sine, cosine = exponentials.sine_cosine(tower.pi * base)
        cotangent = cosine / sine
        slopes = [fmpq(0), fmpq(1)]  # of the cotangent, as a polynomial in it: a derivative is -(1 + c**2) dP/dc
        for _ in range(n):
            by_c = [k * slopes[k] for k in range(1, len(slopes))]
            slopes = [-a - b for a, b in zip([*by_c, 0, 0], [0, 0, *by_c], strict=True)]
        turn = tower.zero
        for slope in reversed(slopes):
            turn = turn * cotangent + slope
        other = polygamma(n, 1 - base)
        found = (-other if n % 2 else other) - tower.pi ** (n + 1) * turn
    else:
        found = function("polygamma", tower.number(n), base)
    scale = tower.number((-1) ** n * factorial(n))
    for k in range(shift):
        found = found + scale / (base + k) ** (n + 1)
    for k in range(shift, 0):
        found = found - scale / (base + k) ** (n + 1)
    return found


def bessel(name: str, n: int, form: Form) -> Form:
    """A Bessel function of order 0 or 1, and of any other by 2*n*f_n = x*(f_(n-1) + side*f_(n+1))."""
    tower = form.tower
    if form.is_zero:
        return tower.number(int(n == 0))
    if leading(form.num) < 0:
        found = bessel(name, n, -form)
        return -found if n % 2 else found
    before, here = (function(name, tower.number(k), form) for k in (0, 1))
    if n == 0:
        return before
    side = 1 if name == "besselj" else -1
    for k in range(1, n):
        before, here = here, side * (2 * k * here / form - before)
    return here


def mirrored(name: str, base: Form, *before: Form) -> int | None:
    """The generator of a function at 1 - x, or what differs from it by a whole number, where there is one already."""
    if Generator("function", [*before, base], name=name).key() in base.tower.known:
        return None
    other = shifted(1 - base)[0]
    return base.tower.known.get(Generator("function", [*before, other], name=name).key())


def tangent(pair: Callable[[Form], tuple[Form, Form]]) -> Callable[[Form], Form]:
    def apply(form: Form) -> Form:
        sine, cosine = pair(form)
        return sine / cosine

    return apply


RULES: dict[str, Callable[..., Form]] = {
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
    "atan2": exponentials.angle,
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
}
