"""Forms go in, sines, inverse sines and hyperbolic functions of them come out, all through exponentials and angles.

Every inverse circular function is the angle of a point (x, y), and exp(i*angle) = (x + i*y)/sqrt(x**2 + y**2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import arb, fmpq

from gradcli.checks.evaluate.ball_numbers import precision
from gradcli.checks.evaluate.interpretation import Undecided
from gradcli.checks.forms.exponentials import HALF, exp, log, power
from gradcli.checks.forms.injective import by_turns
from gradcli.checks.forms.places import ball
from gradcli.checks.forms.polynomials import NotFound, leading
from gradcli.checks.forms.reals import NotReal
from gradcli.checks.forms.ring import Form, Generator

if TYPE_CHECKING:
    from gradcli.checks.forms.tower import Tower

RATIOS = (fmpq(1), fmpq(-1), fmpq(2), fmpq(-2), fmpq(1, 2), fmpq(-1, 2))  # of angles that may be related
STEPS = 12  # of half a turn
BITS = 160
CLOSE = 80  # bits


def sine_cosine(form: Form) -> tuple[Form, Form]:
    """The sine and the cosine."""
    i = form.tower.i
    ahead = exp(i * form)
    behind = ahead.inverse()
    return (behind - ahead) * i / 2, (ahead + behind) / 2


def hyperbolic(form: Form) -> tuple[Form, Form]:
    """The hyperbolic sine and cosine."""
    ahead = exp(form)
    behind = ahead.inverse()
    return (ahead - behind) / 2, (ahead + behind) / 2


def angle(y: Form, x: Form) -> Form:
    """The angle of the point (x, y); it is odd in y."""
    tower = y.tower
    beside = x.rational()
    if y.is_zero and beside is not None and beside > 0:
        return tower.zero
    if leading(y.num) < 0:
        return -angle(-y, x)
    made = Generator("angle", [y, x])
    known = tower.known.get(made.key())
    if known is not None:
        return tower.gen(known)
    index = tower.index(made)
    other = related(tower, index)
    if other is None:
        return tower.gen(index)
    tower.relations[index] = (1, other)
    return other


def related(tower: Tower, index: int) -> Form | None:
    """An angle by pi and an angle that is there already, where digits suggest it and algebra confirms it."""
    itself = tower.gen(index)
    for other in suggested(tower, index):
        try:
            if by_turns(itself, other):
                return other
        except (NotFound, NotReal, Undecided):
            continue
    return None


def suggested(tower: Tower, index: int) -> list[Form]:
    """What an angle seems to be by its digits: whole twelfths of pi beyond a multiple of an angle before it."""
    found: list[Form] = []
    with precision(BITS):
        memo: dict[int, Any] = {}
        size, step = ball(tower.gen(index), memo).real, arb.pi() / STEPS
        multiples = [(tower.zero, size)]
        for i, one in enumerate(tower.generators[:index]):
            if one.kind == "angle" and i not in tower.relations:
                beside = ball(tower.gen(i), memo).real
                multiples += [(tower.gen(i) * ratio, size - beside * arb(ratio)) for ratio in RATIOS]
        for form, rest in multiples:
            steps = rest / step
            if steps.is_finite():
                nearest = round(float(steps.mid()))
                if abs(steps - nearest) < arb(2) ** -CLOSE:
                    found.append(form + tower.pi * fmpq(nearest, STEPS))
    return found


def atan(form: Form) -> Form:
    number = form.rational()
    if number is not None and abs(number) == 1:
        return form.tower.number(number / 4) * form.tower.pi
    return angle(form, form.tower.one)


def asin(form: Form) -> Form:
    number = form.rational()
    if number is not None and abs(number * 2) in (1, 2):
        return form.tower.number(number * (HALF if abs(number) == 1 else fmpq(1, 3))) * form.tower.pi
    return angle(form, power(1 - form * form, HALF))


def acos(form: Form) -> Form:
    return form.tower.pi / 2 - asin(form)


def asinh(form: Form) -> Form:
    """It is odd; one sign of its argument serves both."""
    if leading(form.num) < 0:
        return -asinh(-form)
    return log(form + power(form * form + 1, HALF))


def acosh(form: Form) -> Form:
    return log(form + power(form - 1, HALF) * power(form + 1, HALF))


def atanh(form: Form) -> Form:
    return (log(1 + form) - log(1 - form)) / 2
