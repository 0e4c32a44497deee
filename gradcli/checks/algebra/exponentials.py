"""Exponentials, logarithms, powers, sines and inverse sines of forms, as products and sums over generators.

An exponential is a product over the terms of its argument, a logarithm a sum and a root a product over the factors of
theirs, so that the laws of these functions are laws of polynomials. Factors are positive at the point of the check.
Circular functions are written with exp(i*a); every inverse one is the angle of a point (x, y).
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from flint import arb, fmpq

from gradcli.checks.algebra.differential_field import Form, Generator, NotFound, exact_quotient, leading
from gradcli.checks.algebra.real_forms import NotReal, ball, certain_sign, made_real, positive_factors, sign_of
from gradcli.checks.evaluate.ball_numbers import precision
from gradcli.checks.evaluate.interpretation import Undecided

if TYPE_CHECKING:
    from gradcli.checks.algebra.differential_field import Form, Tower


HALF = fmpq(1, 2)
MOST_DEGREE = 24  # of a root; a finer power is an exponential of the logarithm
MOST_FINER = 512


# --- exponentials ---------------------------------------------------------------------------------------------


def exp(form: Form) -> Form:
    """The exponential of a form."""
    found = form.tower.one
    for coefficient, num, den in terms(form):
        found = found * _exp_term(form.tower, coefficient, num, den)
    return found


def terms(form: Form) -> list[tuple[fmpq, Any, Any]]:
    """A fraction as terms: a rational number times a monomial over a polynomial without common factors."""
    tower, num, den = form.tower, form.num, form.den
    found = []
    if not den.is_constant():
        whole, rest = divmod(num, den)
        if not whole.is_zero():
            found = terms(Form(tower, whole, tower.one.num))
            num = rest
    content = leading(den) if den.is_constant() else den.content()
    den = exact_quotient(den, tower.ring.constant(content))
    for powers, coefficient in num.terms():
        monomial = tower.ring.from_dict({powers: 1})
        common = monomial.gcd(den)
        found.append((fmpq(coefficient, content), exact_quotient(monomial, common), exact_quotient(den, common)))
    return found


def _exp_term(tower: Tower, coefficient: fmpq, num: Any, den: Any) -> Form:
    used = [i for i, n in enumerate(num.degrees()) if n]
    kinds = {tower.generators[i].kind: i for i in used}
    plain = den.is_one() and num.total_degree() == len(used)
    if plain and len(used) == 1 and "log" in kinds:
        return power(tower.generators[kinds["log"]].args[0], coefficient)
    if plain and len(used) == 2 and "i" in kinds:
        if "pi" in kinds:
            turn = _turn(tower, coefficient)
            if turn is not None:
                return turn
        if "angle" in kinds and coefficient.q == 1:  # a power of (x + i*y)/sqrt(x**2 + y**2)
            y, x = tower.generators[kinds["angle"]].args
            return ((x + tower.i * y) * power(x * x + y * y, -HALF)) ** int(coefficient.p)
    return tower.gen(*_in_units(tower, Generator("exp", [Form(tower, num, den)], unit=abs(coefficient)), coefficient))


def _in_units(tower: Tower, made: Generator, exponent: fmpq) -> tuple[int, int]:
    """An exponential or a root as a whole power of a generator, which is replaced by a finer one where it has to be."""
    index = tower.index(made)
    unit = tower.generators[index].unit
    if (exponent / unit).q != 1:
        finer = common_unit(unit, exponent)
        if max(unit / finer, abs(exponent) / finer) > MOST_FINER:  # too fine a unit: a generator of its own
            return tower.index(made, (*made.key(), str(made.unit))), int((exponent / made.unit).p)
        made.unit, times = finer, int((unit / finer).p)
        index, unit = tower.refine(index, made, times), finer
    return index, int((exponent / unit).p)


def common_unit(a: fmpq, b: fmpq) -> fmpq:
    """The largest number of which both are whole multiples."""
    return fmpq(gcd(int(a.p * b.q), int(b.p * a.q)), int(a.q * b.q))


def _turn(tower: Tower, coefficient: fmpq) -> Form | None:
    """exp(i*pi*c) in radicals where 12*c is whole."""
    steps = coefficient * 12
    if steps.q != 1:
        return None
    n = int(steps.p) % 24
    if n % 6 == 0:
        return tower.i ** (n // 6)
    eighth = (tower.one + tower.i) * power(tower.number(2), -HALF)
    sixth = (power(tower.number(3), HALF) + tower.i) / 2
    return eighth ** (n % 8) * sixth ** (-n % 12)


# --- logarithms, roots, powers ----------------------------------------------------------------------------------


def log(form: Form) -> Form:
    """The logarithm of a form that is positive at the point; raises NotFound where it is not."""
    found = form.tower.zero
    for factor, times in positive_factors(form):
        found = found + _log_factor(factor) * times
    return found


def _log_factor(factor: Form) -> Form:
    tower = factor.tower
    single = single_generator(factor)
    if single is not None:
        kind = tower.generators[single]
        if kind.kind == "exp" and single not in tower.complex:
            return kind.args[0].__mul__(kind.unit)
        if kind.kind == "root":
            return log(kind.args[0]).__mul__(kind.unit)
        if kind.kind == "inverse":
            return -log(kind.args[0])
    return tower.gen(tower.index(Generator("log", [factor])))


def power(form: Form, exponent: fmpq) -> Form:
    """A rational power of a form; a broken one of what is positive at the point."""
    if exponent.q == 1:
        return form ** int(exponent.p)
    if exponent < 0:
        return power(form, -exponent).inverse()
    found = form.tower.one
    for factor, times in positive_factors(form):
        part = _root(factor, exponent * abs(times))
        found = found * part if times > 0 else found / part
    return found


def _root(factor: Form, exponent: fmpq) -> Form:
    if exponent.q == 1:
        return factor ** int(exponent.p)
    tower = factor.tower
    single = single_generator(factor)
    if single is not None:
        kind = tower.generators[single]
        if kind.kind == "exp" and single not in tower.complex:
            return exp(kind.args[0] * (kind.unit * exponent))
        if kind.kind == "root":
            return power(kind.args[0], exponent * kind.unit)
        if kind.kind == "inverse":
            return power(kind.args[0], -exponent)
    whole = exponent.p // exponent.q
    rest = exponent - whole
    if exponent.q > MOST_DEGREE:
        made = Generator("exp", [_log_factor(factor)], unit=rest)
    else:
        made = Generator("root", [factor], unit=fmpq(1, exponent.q))
    index, times = _in_units(tower, made, rest)
    unit = tower.generators[index].unit
    if unit.q <= MOST_FINER:
        tower.relations.setdefault(index, (int(unit.q), factor ** int(unit.p)))
    return factor ** int(whole) * tower.gen(index, times)


def single_generator(form: Form) -> int | None:
    """The generator that a form is, where it is one."""
    num = form.num
    if not form.den.is_one() or len(num) != 1 or num.total_degree() != 1 or leading(num) != 1:
        return None
    return next(i for i, n in enumerate(num.degrees()) if n)


def general_power(base: Form, exponent: Form) -> Form:
    """base**exponent for a positive base, or a whole exponent."""
    number = exponent.rational()
    if number is None:
        return exp(exponent * log(base))
    if number.q == 1 and abs(number.p) > 10**6:
        raise NotFound(f"a power of {number}")
    return power(base, number)


COMPARED_BITS = 128


def equal_angles(one: Form, other: Form) -> bool:
    """Whether a difference with angles is a multiple of 2*pi, and smaller than that; the signs it needs are noted."""
    difference = one - other
    tower = difference.tower
    angles = [tower.generators[i] for i in tower.used(difference) if tower.generators[i].kind == "angle"]
    try:
        whole = difference * int(difference.den.content())
        if not angles or not (exp(tower.i * whole) - 1).is_zero:
            return False
        with precision(COMPARED_BITS):
            found = ball(whole, {})
            if not abs(found if type(found) is arb else found.real) < 6:
                return False
        for point in angles:
            _keep_continuous(*point.args)
    except (NotFound, NotReal, Undecided):
        return False
    tower.local = True
    return True


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
    return tower.gen(tower.index(Generator("angle", [y, x])))


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
