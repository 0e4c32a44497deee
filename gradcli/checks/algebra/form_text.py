"""Forms as expressions for people: cosines and sines in place of complex exponentials."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.algebra.differential_field import Form, NotFound, leading
from gradcli.checks.algebra.real_forms import NotReal, made_real

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gradcli.checks.algebra.differential_field import Generator, Tower


MOST_SHOWN = 40  # terms
HUGE = 10**300
LONG_NUMBER = 10**9  # a fraction of larger numbers is shown rounded
LONG = "a long expression"
RELATIONS = ("= 0", "> 0", "< 0")  # by sign

Term = tuple[fmpq, tuple[str, ...]]  # a coefficient and its factors


def text(form: Form, most: int = 100) -> str:
    """An expression as people read it, cut where it is long."""
    shown = whole_text(form)
    return shown if len(shown) <= most else shown[: most - 4] + " ..."


def whole_text(form: Form) -> str:
    """An expression as people read it."""
    found = _parts(form)
    return LONG if found is None else _fraction(*found)


def relation(form: Form, side: int) -> str:
    """A form and its sign, without a constant factor and with a first term that is added."""
    found = _parts(form)
    if found is None:
        return f"{LONG} {RELATIONS[side]}"
    top, bottom = found
    if len(bottom) == 1 and not bottom[0][1]:
        bottom = [(bottom[0][0] / abs(bottom[0][0]), ())]
    scale = max(abs(c.q) for c, _ in top) / fmpq(gcd(*(int(c.p) for c, _ in top)))
    if top[0][0] < 0:
        scale, side = -scale, -side
    shown = _fraction([(c * scale, factors) for c, factors in top], bottom)
    return f"{shown if len(shown) <= 60 else shown[:56] + ' ...'} {RELATIONS[side]}"


def always_positive(form: Form) -> bool:
    """Whether a form is positive wherever it is defined, as it is written: a sum of squares and exponentials."""
    tower = form.tower
    for poly in (form.num, form.den):
        strict = False
        for powers, coefficient in poly.terms():
            free = [i for i, n in enumerate(powers) if n and not _is_positive(tower.generators[i])]
            if coefficient < 0 or any(int(powers[i]) % 2 or i in tower.complex for i in free):
                return False
            strict = strict or not free
        if not strict:
            return False
    return True


def _is_positive(one: Generator) -> bool:
    return one.kind in ("root", "pi") or (one.kind == "exp" and not one.complex)


def _parts(form: Form) -> tuple[list[Term], list[Term]] | None:
    """The terms of numerator and denominator; None where there are too many."""
    if max(len(form.num), len(form.den)) > MOST_SHOWN:
        return None
    tower = form.tower
    try:
        if tower.is_complex(form):
            bottom = made_real(tower.poly(form.den))
            return _waves(form * bottom), _waves(bottom)
        return _terms(tower, form.num), _terms(tower, form.den)
    except (NotReal, NotFound):
        return None


def _fraction(top: list[Term], bottom: list[Term]) -> str:
    if len(bottom) == 1 and not bottom[0][1]:
        return _sum([(c / bottom[0][0], factors) for c, factors in top])
    above, below = _sum(top), _sum(bottom)
    above = f"({above})" if len(top) > 1 else above
    plain = len(bottom) == 1 and bottom[0][0] == 1 and len(bottom[0][1]) == 1
    return f"{above}/{below}" if plain else f"{above}/({below})"


def _sum(terms: Iterable[Term]) -> str:
    found = ""
    for coefficient, factors in terms:
        size = abs(coefficient)
        shown = "*".join(([_number(size)] if size != 1 or not factors else []) + list(factors))
        sign = "-" if coefficient < 0 else "+"
        found += f" {sign} {shown}" if found else shown if sign == "+" else f"-{shown}"
    return found or "0"


def _number(value: fmpq) -> str:
    if abs(value) > HUGE:
        return "a large number"
    if max(abs(value.p), value.q) > LONG_NUMBER:
        return f"{float(Fraction(int(value.p), int(value.q))):.6g}"
    return str(value)


def _terms(tower: Tower, poly: Any) -> list[Term]:
    return [(fmpq(c), tuple(_factors(tower, powers))) for powers, c in poly.terms()]


def _factors(tower: Tower, powers: Any) -> Iterable[str]:
    for i, n in enumerate(powers):
        if n:
            name = generator_text(tower.generators[i])
            yield name if n == 1 else f"{name}**{n}"


def generator_text(one: Generator) -> str:
    """A generator as people write it."""
    args = [whole_text(arg) for arg in one.args]
    if one.kind == "exp":
        return f"exp({whole_text(one.args[0] * one.unit)})"
    if one.kind == "root":
        return f"sqrt({args[0]})" if one.degree == 2 else f"({args[0]})**(1/{one.degree})"
    if one.kind == "angle":
        return f"atan({args[0]})" if args[1] == "1" else f"atan2({args[0]}, {args[1]})"
    if one.kind in ("log", "function"):
        return f"{one.name or 'log'}({', '.join(args)})"
    if one.kind == "inverse":
        return f"(1/({args[0]}))"
    return f"({args[0]})" if one.kind == "named" else one.name or one.kind


def _waves(form: Form) -> list[Term]:
    """The terms of a real form with each exponential and its conjugate as a cosine or a sine."""
    tower = form.tower
    if len(form.den) != 1:
        raise NotReal
    below, scale = form.den.degrees(), leading(form.den)
    found: list[Term] = []
    for powers, coefficient in form.num.terms():
        turn, argument, plain = 0, tower.zero, []
        for i, n in enumerate(powers):
            net = int(n) - int(below[i])
            if not net:
                continue
            one = tower.generators[i]
            if one.kind == "i":
                turn += net
            elif i in tower.complex:
                argument = argument - tower.i * one.args[0] * one.unit * net
            else:
                name = generator_text(one)
                plain.append(name if net == 1 else f"{name}**{net}")
        value = fmpq(coefficient, scale)
        if turn % 4 >= 2:
            value = -value
        if argument.is_zero:
            found.append((value, tuple(plain)))
        elif leading(argument.num) > 0:
            wave = "sin" if turn % 2 else "cos"
            found.append((-2 * value if turn % 2 else 2 * value, (*plain, f"{wave}({whole_text(argument)})")))
    return found
