"""A form goes in, a ball of its value at the point of the check comes out, and its sign where the digits decide it.

The point is in the generators: every symbol has an exact rational value. Functions are evaluated by a table of its
own, not by the declarations of primitives. A sign is never guessed: what 1,024 bits leave open is `Undecided`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import acb, arb

from gradcli.checks.evaluate.ball_numbers import doubling, precision, sign
from gradcli.checks.evaluate.interpretation import Undecided
from gradcli.checks.forms.polynomials import NotFound
from gradcli.checks.forms.ring import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.checks.forms.ring import Generator
    from gradcli.checks.forms.tower import Tower

    Memo = dict[int, Any]

DECIDING_BITS = 1024


def certain_sign(form: Form) -> int:
    """The sign of a form that may not vanish at the point; raises NotFound where it does, or is undecided."""
    try:
        side = sign_of(form)
    except Undecided as reason:
        raise NotFound(str(reason)) from None
    if side == 0:
        raise NotFound("a factor that vanishes at the point")
    return side


def sign_of(form: Form) -> int:
    """The sign of a form at the point; raises Undecided."""
    number = form.rational()
    if number is not None:
        return int(number > 0) - int(number < 0)
    for bits in doubling():
        if bits > DECIDING_BITS:
            break
        with precision(bits):
            found = ball(form, form.tower.balls.setdefault(bits, {}))
            try:
                if type(found) is arb:
                    return sign(found)
                if found.imag.contains(0):
                    return sign(found.real)
            except Undecided:
                continue
    raise Undecided("a sign that the digits do not decide")


def ball(form: Form, memo: Memo) -> Any:
    """A ball of a form's value with the bits that are set now; `memo` keeps those of generators."""
    top = _polynomial(form.tower, form.num, memo)
    return top if form.den.is_one() else top / _polynomial(form.tower, form.den, memo)


def _polynomial(tower: Tower, poly: Any, memo: Memo) -> Any:
    degrees = poly.degrees()
    used = [i for i in range(len(tower.generators)) if degrees[i] > 0]
    powers = {}
    for i in used:
        base, row = _generator(tower, i, memo), [arb(1)]
        for _ in range(int(degrees[i])):
            row.append(row[-1] * base)
        powers[i] = row
    total = arb(0)
    for exponents, coefficient in poly.terms():
        term = arb(coefficient)
        for i in used:
            n = int(exponents[i])
            if n:
                term = powers[i][n] * term
        total = term + total
    return total


def _generator(tower: Tower, index: int, memo: Memo) -> Any:
    found = memo.get(index)
    if found is None:
        found = memo[index] = _value(tower.generators[index], memo)
    return found


def _value(one: Generator, memo: Memo) -> Any:
    if one.value is not None:
        return arb(one.value)
    args = [ball(arg, memo) for arg in one.args]
    if one.kind == "exp":
        return (args[0] * arb(one.unit)).exp()
    if one.kind in ("held", "named"):
        return args[0]
    if one.kind == "inverse":
        return 1 / args[0]
    real = [arg if type(arg) is arb else arg.real for arg in args]
    if one.kind == "root":
        return real[0].sqrt() if one.degree == 2 else real[0].root(one.degree)
    rule = FUNCTIONS.get(one.name if one.kind == "function" else one.kind)
    if rule is None:
        raise Undecided(f"{one.name} has no digits here")
    return rule(*real)


def _polygamma(order: Any, x: Any) -> Any:
    n = int(order.unique_fmpz())
    return x.digamma() if n == 0 else acb(x).polygamma(n).real


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pi": arb.pi,
    "i": lambda: acb(0, 1),
    "log": lambda x: x.log(),
    "angle": arb.atan2,
    "erf": lambda x: x.erf(),
    "erfinv": lambda x: x.erfinv(),
    "besselj": lambda n, x: x.bessel_j(n),
    "besseli": lambda n, x: x.bessel_i(n),
    "lowergamma": lambda a, x: x.gamma_lower(a),
    "uppergamma": lambda a, x: x.gamma_upper(a),
    "betainc_regularized": lambda a, b, start, x: x.beta_lower(a, b, 1),
    "gamma": lambda x: x.gamma(),
    "polygamma": _polygamma,
}
