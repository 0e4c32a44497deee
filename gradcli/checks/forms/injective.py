"""Two forms that differ as they are written go in, whether a one-to-one function makes them alike comes out.

Two positive numbers with equal squares are equal; so are two numbers with equal exponentials. A difference of angles
d is zero where exp(i*d) = 1 and its ball at the point lies below 2*pi; it stays zero as far as it is continuous, which
is the connected part of the region around the point.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from flint import arb

from gradcli.checks.evaluate.ball_numbers import precision
from gradcli.checks.evaluate.interpretation import Undecided
from gradcli.checks.forms.exponentials import exp
from gradcli.checks.forms.places import ball, certain_sign, sign_of
from gradcli.checks.forms.polynomials import NotFound
from gradcli.checks.forms.reals import NotReal, made_real

if TYPE_CHECKING:
    from gradcli.checks.forms.ring import Form

MOST_DEGREE = 12
BITS = 128


def equal(one: Form, other: Form) -> bool:
    """Whether two forms are equal at the point and around it; the signs that this needs are noted."""
    kinds = kinds_in(one) | kinds_in(other)
    for kind, test in (("root", by_powers), ("log", by_exponentials), ("angle", by_turns)):
        try:
            if kind in kinds and test(one, other):
                return True
        except (NotFound, NotReal, Undecided):
            continue
    return False


def kinds_in(form: Form) -> set[str]:
    """The kinds of generators that a form is written in."""
    return {form.tower.generators[i].kind for i in form.tower.used(form)}


def by_powers(one: Form, other: Form) -> bool:
    """Equal powers of two numbers of one sign; the degree is that of their roots."""
    tower = one.tower
    used = {*tower.used(one), *tower.used(other)}
    degree = lcm(*(tower.generators[i].degree for i in used if tower.generators[i].kind == "root"))
    if degree > MOST_DEGREE or not (one**degree - other**degree).is_zero:
        return False
    side = certain_sign(one)
    if side != certain_sign(other):
        return False
    tower.note(one, side)
    tower.note(other, side)
    tower.everywhere = False
    return True


def by_exponentials(one: Form, other: Form) -> bool:
    """Equal exponentials of two real numbers."""
    difference = one - other
    whole = difference * whole_multiple(difference)
    return bool((exp(whole) - 1).is_zero)


def by_turns(one: Form, other: Form) -> bool:
    """A difference that is a multiple of 2*pi, and small."""
    difference = one - other
    tower = difference.tower
    whole = difference * whole_multiple(difference)
    if not (exp(tower.i * whole) - 1).is_zero:
        return False
    with precision(BITS):
        found = ball(whole, {})
        size = abs(found if type(found) is arb else found.real)
        if not size < 6:
            return False
    for index in tower.used(difference):
        if tower.generators[index].kind == "angle":
            _keep_continuous(*tower.generators[index].args)
    tower.local, tower.everywhere = True, False
    return True


def whole_multiple(form: Form) -> int:
    """What makes the coefficients of a form whole."""
    return int(form.den.content()) if not form.den.is_constant() else int(form.den.leading_coefficient())


def _keep_continuous(y: Form, x: Form) -> None:
    """Note the signs that keep an angle away from its jump, where x < 0 and y = 0, and from division by zero."""
    tower = y.tower
    for arg in (y, x):
        below = made_real(tower.poly(arg.den))
        if tower.moves(below):
            tower.note(below, certain_sign(below))
    if not tower.moves(x) and sign_of(x) > 0:
        return
    kept = x if sign_of(x) > 0 else y
    tower.note(kept, certain_sign(kept))
