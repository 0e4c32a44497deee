"""Values of forms in balls at the point of the check, positive factors, whose signs are the region, and texts of forms.

A sine is written with the complex exponential exp(i*a). A factor of such a form is made real by a power of exponentials
and of i, found from its conjugate: E**2 - 1 is 2*i*E*sin(a). What cannot be made real stays in one piece.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

from flint import acb, arb, fmpq, fmpz

from gradcli.checks.algebra.differential_field import FieldGenerator, Form, exact_quotient, leading, substituted
from gradcli.checks.evaluate.ball_numbers import doubling, precision, sign
from gradcli.checks.evaluate.interpretation import SIGN_UNDECIDED, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gradcli.checks.algebra.differential_field import FieldGenerator, Tower

    Memo = dict[int, Any]

HALF = fmpq(1, 2)
POWERS = ("root", "inverse")  # generators that are a power of their argument
DECIDING_BITS = 1024


def certain_sign(form: Form) -> int:
    """The sign of a form that may not vanish at the point; raises Undecided."""
    side = sign_of(form)
    if side == 0:
        raise Undecided("a factor that vanishes at the point")
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
            value = ball(form, form.tower.balls.setdefault(bits, {}))
            try:
                if type(value) is arb:
                    return sign(value)
                if value.imag.contains(0):
                    return sign(value.real)
            except Undecided:
                continue
    raise Undecided(SIGN_UNDECIDED)


def ball(form: Form, memo: Memo) -> Any:
    """A ball of a form's value with the bits that are set now; `memo` keeps those of generators."""
    top = _polynomial(form.tower, form.num, memo)
    return top if form.den.is_one() else top / _polynomial(form.tower, form.den, memo)


def _polynomial(tower: Tower, poly: Any, memo: Memo) -> Any:
    used = [i for i, n in enumerate(poly.degrees()) if n > 0]
    for i in used:
        if i not in memo:
            memo[i] = _value(tower.generators[i], memo)
    return substituted(poly, {i: memo[i] for i in used}, lambda constant: arb(leading(constant)))


def _value(generator: FieldGenerator, memo: Memo) -> Any:
    if generator.value is not None:
        return arb(generator.value)
    enclosure = ENCLOSURES.get(generator.kind)
    if enclosure is None:
        raise Undecided(f"{generator.name or generator.kind} cannot be evaluated numerically here")
    args = [ball(arg, memo) for arg in generator.args]
    if generator.kind not in COMPLEX_ARGUMENTS:
        args = [arg if type(arg) is arb else arg.real for arg in args]
    return enclosure(generator.unit, *args)


COMPLEX_ARGUMENTS = ("exp", "held", "named", "inverse")
ENCLOSURES: dict[str, Callable[..., Any]] = {  # of a generator, from its unit and enclosures of its arguments
    "pi": lambda unit: arb.pi(),
    "i": lambda unit: acb(0, 1),
    "held": lambda unit, x: x,
    "named": lambda unit, x: x,
    "inverse": lambda unit, x: 1 / x,
    "exp": lambda unit, x: (x * arb(unit)).exp(),
    "log": lambda unit, x: x.log(),
    "root": lambda unit, x: x.sqrt() if unit.q == 2 else x.root(int(unit.q)),
    "angle": lambda unit, y, x: arb.atan2(y, x),
    "erf": lambda unit, x: x.erf(),
    "erfinv": lambda unit, x: x.erfinv(),
    "besselj": lambda unit, n, x: x.bessel_j(n),
    "besseli": lambda unit, n, x: x.bessel_i(n),
    "bessely": lambda unit, n, x: x.bessel_y(n),
    "besselk": lambda unit, n, x: x.bessel_k(n),
    "erfi": lambda unit, x: x.erfi(),
    "fresnels": lambda unit, x: x.fresnel_s(),
    "fresnelc": lambda unit, x: x.fresnel_c(),
    "Ei": lambda unit, x: x.ei(),
    "expint": lambda unit, n, x: x.expint(n),
    "elliptic_k": lambda unit, x: acb(x).elliptic_k().real,
    "elliptic_e": lambda unit, x: acb(x).elliptic_e().real,
    "lambertw": lambda unit, k, x: x.lambertw(int(k.unique_fmpz())),
    "zeta": lambda unit, s, q: s.zeta(q),
    "hyper01": lambda unit, c, x: x.hypgeom_0f1(c),
    "hyper11": lambda unit, a, c, x: x.hypgeom_1f1(a, c),
    "hyper21": lambda unit, a, b, c, x: x.hypgeom_2f1(a, b, c),
    "lowergamma": lambda unit, a, x: x.gamma_lower(a),
    "uppergamma": lambda unit, a, x: x.gamma_upper(a),
    "betainc_regularized": lambda unit, a, b, start, x: x.beta_lower(a, b, 1),
    "gamma": lambda unit, x: x.gamma(),
    "polygamma": lambda unit, n, x: x.digamma() if n == 0 else acb(x).polygamma(int(n.unique_fmpz())).real,
}


FACTORED = 2**120
MOST_FACTORED = 400  # terms of a polynomial that is factored

Factors = list[tuple[Form, int]]


class NoRealForm(Undecided):
    """A factor that no power of exponentials makes real, or a value that has no conjugate here."""


def positive_factors(form: Form) -> Factors:
    """Factors of a positive form with whole exponents, each positive at the point; raises Undecided."""
    tower = form.tower
    if certain_sign(form) < 0:
        raise Undecided("a root or logarithm of a negative number")
    if not tower.is_complex(form):
        return _signed(_pieces(form))
    try:
        real = [(made_real(factor), times) for factor, times in _pieces(form)]
        whole = tower.one
        for factor, times in real:
            whole = whole * factor**times
        scale = (form / whole).rational()
        if scale is None:
            return [(form, 1)]
        return _signed([*real, *_pieces(tower.number(scale))])
    except NoRealForm:
        return [(form, 1)]


def _pieces(form: Form) -> Factors:
    """The factors of a fraction: numbers as primes, polynomials as they are irreducible."""
    tower = form.tower
    pieces: Factors = []
    for poly, direction in ((form.num, 1), (form.den, -1)):
        number, factors = _factored(poly)
        size = abs(fmpz(number))
        primes = size.factor() if size <= FACTORED else [(size, 1)]
        pieces += [(tower.number(prime), direction * int(times)) for prime, times in primes if prime != 1]
        pieces += [(Form(tower, factor, tower.one.num), direction * int(times)) for factor, times in factors]
    return pieces


def _factored(poly: Any) -> tuple[Any, list[tuple[Any, int]]]:
    """A number and irreducible polynomials; a polynomial that is too much for flint stays whole."""
    with suppress(OverflowError):  # flint cannot sort factors with numbers beyond 64 bits
        if len(poly) <= MOST_FACTORED:
            number, factors = poly.factor()
            return number, factors
    content = poly.content()
    return content, [(exact_quotient(poly, poly.context().constant(content)), 1)]


def _signed(pieces: Factors) -> Factors:
    """The same factors with the sign that makes each positive; for a positive product the signs cancel."""
    signed = []
    for factor, times in pieces:
        number = factor.rational()
        if number is not None:
            side = 1 if number > 0 else -1
            if abs(number) == 1:
                continue
        else:
            side = certain_sign(factor)
            factor.tower.note(factor, side)
        signed.append((factor if side > 0 else -factor, times))
    return signed


# --- conjugates ---------------------------------------------------------------------------------------------


def conjugate(form: Form) -> Form:
    """The conjugate: i becomes -i, and exp(i*a) its inverse."""
    tower = form.tower
    values = {}
    for index in tower.complex.intersection(tower.used(form)):
        generator = tower.generators[index]
        if generator.kind == "i":
            values[index] = -tower.i
        elif generator.kind == "exp" and (conjugate(generator.args[0]) + generator.args[0]).is_zero:
            values[index] = tower.gen(index, -1)
        else:
            raise NoRealForm
    top: Form = substituted(form.num, values, tower.poly)
    bottom: Form = substituted(form.den, values, tower.poly)
    return top / bottom


def made_real(factor: Form) -> Form:
    """A factor times a unit that makes it real."""
    tower = factor.tower
    if not tower.is_complex(factor):
        return factor
    ratio = conjugate(factor) / factor
    if len(ratio.num) != 1 or len(ratio.den) != 1:
        raise NoRealForm
    unit = tower.one
    for index in tower.complex.intersection(tower.used(ratio)):
        if tower.generators[index].kind != "i":
            n = int(ratio.num.degrees()[index]) - int(ratio.den.degrees()[index])
            unit = unit * half_power(tower, index, n)
    for turn, root in ((tower.one, tower.one), (-tower.one, tower.i), (tower.i, tower.one + tower.i),
                       (-tower.i, tower.one - tower.i)):  # fmt: skip
        if (ratio - turn * unit * unit).is_zero:
            return factor * unit * root
    raise NoRealForm


def half_power(tower: Tower, index: int, n: int) -> Form:
    """A generator exp(i*a) to the power n/2."""
    if n % 2 == 0:
        return tower.gen(index, n // 2)
    generator = tower.generators[index]
    return tower.gen(tower.refine(index, FieldGenerator("exp", generator.args, unit=generator.unit / 2), 2), n)


# --- forms as text ----------------------------------------------------------------------------------------------------

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
    parts = _parts(form)
    return LONG if parts is None else _fraction(*parts)


def relation(form: Form, side: int) -> str:
    """A form and its sign, without a constant factor and with a first term that is added."""
    parts = _parts(form)
    if parts is None:
        return f"{LONG} {RELATIONS[side]}"
    top, bottom = parts
    if not bottom[0][1]:
        bottom = [(fmpq(1), ())]
    scale = max(abs(c.q) for c, _ in top) / fmpq(gcd(*(int(c.p) for c, _ in top)))
    if top[0][0] < 0:
        scale, side = -scale, -side
    shown = _fraction([(c * scale, factors) for c, factors in top], bottom)
    return f"{shown if len(shown) <= 60 else shown[:56] + ' ...'} {RELATIONS[side]}"


def always_positive(form: Form) -> bool:
    """Whether a form is positive wherever it is defined, as it is written: a sum of squares and exponentials."""
    tower = form.tower
    positive = {i for i, g in enumerate(tower.generators) if g.kind in ("root", "pi", "exp")} - tower.complex
    for poly in (form.num, form.den):
        strict = False
        for powers, coefficient in poly.terms():
            others = [i for i, n in enumerate(powers) if n and i not in positive]
            if coefficient < 0 or any(int(powers[i]) % 2 or i in tower.complex for i in others):
                return False
            strict = strict or not others
        if not strict:
            return False
    return True


def _parts(form: Form) -> tuple[list[Term], list[Term]] | None:
    """The terms of numerator and denominator; None where there are too many."""
    if max(len(form.num), len(form.den)) > MOST_SHOWN:
        return None
    tower = form.tower
    try:
        bottom = made_real(tower.poly(form.den))
        return _terms(form * bottom if tower.is_complex(form) else tower.poly(form.num)), _terms(bottom)
    except Undecided:
        return None


def _fraction(top: list[Term], bottom: list[Term]) -> str:
    if len(bottom) == 1 and not bottom[0][1]:
        return _sum([(c / bottom[0][0], factors) for c, factors in top])
    above, below = _sum(top), _sum(bottom)
    above = f"({above})" if len(top) > 1 else above
    plain = len(bottom) == 1 and bottom[0][0] == 1 and len(bottom[0][1]) == 1
    return f"{above}/{below}" if plain else f"{above}/({below})"


def _sum(terms: Iterable[Term]) -> str:
    written = ""
    for coefficient, factors in terms:
        size = abs(coefficient)
        shown = "*".join(([_number(size)] if size != 1 or not factors else []) + list(factors))
        sign = "-" if coefficient < 0 else "+"
        written += f" {sign} {shown}" if written else shown if sign == "+" else f"-{shown}"
    return written or "0"


def _number(value: fmpq) -> str:
    if abs(value) > HUGE:
        return "a large number"
    if max(abs(value.p), value.q) > LONG_NUMBER:
        return f"{float(Fraction(int(value.p), int(value.q))):.6g}"
    return str(value)


def _terms(form: Form) -> list[Term]:
    """The terms of a real form over a monomial; each exponential with its conjugate is a cosine or a sine."""
    tower = form.tower
    if len(form.den) != 1:
        raise NoRealForm
    below, scale = form.den.degrees(), leading(form.den)
    terms: list[Term] = []
    for powers, coefficient in form.num.terms():
        turn, argument, value, factors = 0, tower.zero, fmpq(coefficient, scale), []
        for i, (above, under) in enumerate(zip(powers, below, strict=True)):
            n = int(above) - int(under)
            if n and tower.generators[i].kind == "i":
                turn += n
            elif n and i in tower.complex:
                argument = argument - tower.i * tower.generators[i].args[0] * tower.generators[i].unit * n
            elif n:
                name = generator_text(tower.generators[i])
                factors.append(name if n == 1 else f"{name}**{n}")
        value = -value if turn % 4 >= 2 else value
        if argument.is_zero:
            terms.append((value, tuple(factors)))
        elif leading(argument.num) > 0:
            wave = f"{'sin' if turn % 2 else 'cos'}({whole_text(argument)})"
            terms.append((-2 * value if turn % 2 else 2 * value, (*factors, wave)))
    return terms


def generator_text(generator: FieldGenerator) -> str:
    """A generator as people write it."""
    args = [whole_text(arg) for arg in generator.args]
    if generator.kind == "exp":
        return f"exp({whole_text(generator.args[0] * generator.unit)})"
    if generator.kind in POWERS:
        return f"sqrt({args[0]})" if generator.unit == HALF else f"({args[0]})**({generator.unit})"
    if generator.kind == "angle":
        return f"atan({args[0]})" if args[1] == "1" else f"atan2({args[0]}, {args[1]})"
    if generator.kind == "named":
        return f"({args[0]})"
    return generator.name or (f"{generator.kind}({', '.join(args)})" if args else generator.kind)
