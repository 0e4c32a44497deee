"""Functions of forms as products and sums over generators, and their derivatives.

An exponential is a product over the terms of its argument, a logarithm a sum and a root a product over the factors of
theirs, so that the laws of these functions are laws of polynomials. Factors are positive at the point of the check.
Circular functions are written with exp(i*a); every inverse one is the angle of a point (x, y). The gamma function has
arguments in [0, 1), odd functions one sign of theirs; functions without such laws are generators by their names.
"""

from __future__ import annotations

from functools import partial, reduce
from math import factorial, lcm
from operator import mul, truediv
from typing import TYPE_CHECKING, Any

from flint import fmpq, fmpz_mat

from gradcli.checks.algebra.differential_field import FieldGenerator, Form, exact_quotient, leading, substituted
from gradcli.checks.algebra.real_forms import HALF, POWERS, certain_sign, made_real, positive_factors, sign_of
from gradcli.checks.evaluate.interpretation import Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.algebra.differential_field import Tower


MOST_DEGREE = 24  # of a root; a finer power is an exponential of the logarithm
MOST_FINER = 512  # powers of a generator in one that it replaces; the largest degree of a root with a relation
RELATION_BITS = 64  # by which a search for relations prefers exact ones
MOST_SHIFT = 40  # of an argument of the gamma function
MOST_ARGUMENT = 200  # of the gamma function, a number


# --- exponentials ---------------------------------------------------------------------------------------------


def exp(form: Form) -> Form:
    """The exponential of a form."""
    product = form.tower.one
    for coefficient, num, den in terms(form):
        product = product * _exp_term(form.tower, coefficient, num, den)
    return product


def terms(form: Form) -> list[tuple[fmpq, Any, Any]]:
    """A fraction as terms: a rational number times a monomial over a polynomial without common factors."""
    tower, num, den = form.tower, form.num, form.den
    result = []
    if not den.is_constant():
        whole, rest = divmod(num, den)
        if not whole.is_zero():
            result = terms(Form(tower, whole, tower.one.num))
            num = rest
    content = leading(den) if den.is_constant() else den.content()
    den = exact_quotient(den, tower.ring.constant(content))
    for powers, coefficient in num.terms():
        monomial = tower.ring.from_dict({powers: 1})
        common = monomial.gcd(den)
        result.append((fmpq(coefficient, content), exact_quotient(monomial, common), exact_quotient(den, common)))
    return result


def _exp_term(tower: Tower, coefficient: fmpq, num: Any, den: Any) -> Form:
    used = [i for i, n in enumerate(num.degrees()) if n]
    kinds = {tower.generators[i].kind: i for i in used}
    plain = den.is_one() and num.total_degree() == len(used)
    if plain and len(used) == 1 and "log" in kinds:
        return power(tower.generators[kinds["log"]].args[0], coefficient)
    if plain and len(used) == 2 and "i" in kinds:
        if "pi" in kinds and (coefficient * 12).q == 1:
            return _turn(tower, int((coefficient * 12).p) % 24)
        if "angle" in kinds and coefficient.q == 1:  # a power of (x + i*y)/sqrt(x**2 + y**2)
            y, x = tower.generators[kinds["angle"]].args
            return ((x + tower.i * y) * power(x * x + y * y, -HALF)) ** int(coefficient.p)
    return _in_units(tower, FieldGenerator("exp", [Form(tower, num, den)], unit=abs(coefficient)), coefficient)


def _in_units(tower: Tower, generator: FieldGenerator, exponent: fmpq, base: Form | None = None) -> Form:
    """An exponential, or a power of a base, as a whole power of a generator; a finer one replaces it where it has to.

    Where that is too fine, a number is a product of others, or it has a generator of its own.
    """
    index = tower.index(generator)
    unit = tower.generators[index].unit
    if (exponent / unit).q != 1:
        finer = unit.gcd(exponent)  # the largest number of which both are whole multiples
        if max(unit / finer, abs(exponent) / finer) > MOST_FINER:
            alike = [i for i, other in enumerate(tower.generators) if other.key() == generator.key()]
            powers = whole_combination([tower.generators[i].unit for i in alike], exponent)
            if powers and not tower.moves(generator.args[0]):
                return reduce(mul, [tower.gen(i, n) for i, n in zip(alike, powers, strict=True)])
            index, unit = tower.index(generator, (*generator.key(), str(generator.unit))), generator.unit
        else:
            generator.unit, times = finer, int((unit / finer).p)
            index, unit = tower.refine(index, generator, times), finer
    if base is not None and unit.q <= MOST_FINER:
        tower.relations.setdefault(index, (int(unit.q), base ** int(unit.p)))
    return tower.gen(index, int((exponent / unit).p))


def whole_combination(units: Sequence[fmpq], number: fmpq) -> list[int]:
    """Small whole numbers n with n[0]*units[0] + n[1]*units[1] + ... = number; none where a search finds none."""
    scale = lcm(*(int(x.q) for x in (number, *units)))
    rows = [int((x * scale).p) << RELATION_BITS for x in (number, *units)]
    lattice = fmpz_mat([[*(int(i == j) for j in range(len(rows))), x] for i, x in enumerate(rows)])
    for first, *others, rest in lattice.lll().tolist():
        if rest == 0 and abs(first) == 1 and max(map(abs, others)) <= MOST_FINER:
            return [-int(first * n) for n in others]
    return []


def _turn(tower: Tower, n: int) -> Form:
    """exp(i*pi*n/12) in radicals."""
    if n % 6 == 0:
        return tower.i ** (n // 6)
    eighth = (tower.one + tower.i) * power(tower.number(2), -HALF)
    sixth = (power(tower.number(3), HALF) + tower.i) / 2
    return eighth ** (n % 8) * sixth ** (-n % 12)


# --- logarithms, roots, powers ----------------------------------------------------------------------------------


def log(form: Form) -> Form:
    """The logarithm of a form that is positive at the point; raises Undecided where it is not."""
    total = form.tower.zero
    for factor, times in positive_factors(form):
        total = total + _log_factor(factor) * times
    return total


def _log_factor(factor: Form) -> Form:
    source = generator_of_power(factor)
    if source is None:
        return generator("log", factor)
    return (source.args[0] if source.kind == "exp" else log(source.args[0])).__mul__(source.unit)


def generator_of_power(factor: Form) -> FieldGenerator | None:
    """The generator that a factor is, if a power of its argument or of e: that gives its logarithm and its roots."""
    tower, num = factor.tower, factor.num
    if not factor.den.is_one() or len(num) != 1 or num.total_degree() != 1 or leading(num) != 1:
        return None
    index = next(i for i, n in enumerate(num.degrees()) if n)
    generator = tower.generators[index]
    return generator if generator.kind in ("exp", *POWERS) and index not in tower.complex else None


def power(form: Form, exponent: fmpq) -> Form:
    """A rational power of a form; a broken one of what is positive at the point."""
    if exponent.q == 1:
        return form ** int(exponent.p)
    if exponent < 0:
        return power(form, -exponent).inverse()
    product = form.tower.one
    for factor, times in positive_factors(form):
        part = _root(factor, exponent * abs(times))
        product = product * part if times > 0 else product / part
    return product


def _root(factor: Form, exponent: fmpq) -> Form:
    if exponent.q == 1:
        return factor ** int(exponent.p)
    source = generator_of_power(factor)
    if source is not None and source.kind == "exp":
        return exp(source.args[0] * (source.unit * exponent))
    if source is not None:
        return power(source.args[0], exponent * source.unit)
    tower = factor.tower
    whole = exponent.p // exponent.q
    rest = exponent - whole
    if exponent.q > MOST_DEGREE:
        root = FieldGenerator("exp", [_log_factor(factor)], unit=rest)
    else:
        root = FieldGenerator("root", [factor], unit=fmpq(1, exponent.q))
    return factor ** int(whole) * _in_units(tower, root, rest, factor)


def general_power(base: Form, exponent: Form) -> Form:
    """base**exponent for a positive base, or a whole exponent."""
    number = exponent.rational()
    if number is None:
        return exp(exponent * log(base))
    if number.q == 1 and abs(number.p) > 10**6:
        raise Undecided(f"a power of {number}")
    return power(base, number)


# --- circular and hyperbolic functions, and their inverses ----------------------------------------------------------


def sine_cosine(form: Form) -> tuple[Form, Form]:
    """The sine and the cosine."""
    i = form.tower.i
    sine, cosine = hyperbolic(i * form)
    return -i * sine, cosine


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
    return tower.gen(tower.index(FieldGenerator("angle", [y, x])))


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


def equal_angles(difference: Form) -> bool:
    """Whether a difference with angles is a multiple of 2*pi, and smaller than that; the signs it needs are noted.

    These keep each angle away from its jump, where x < 0 and y = 0, and its arguments from a division by zero.
    """
    tower = difference.tower
    points = [tower.generators[i].args for i in tower.used(difference) if tower.generators[i].kind == "angle"]
    try:
        whole = difference * int(difference.den.content())
        if not points or not (exp(tower.i * whole) - 1).is_zero or sign_of(36 - whole * whole) < 0:
            return False
        for y, x in points:
            for part in (x if sign_of(x) > 0 else y, tower.poly(x.den), tower.poly(y.den)):
                real = made_real(part)
                tower.note(real, certain_sign(real))
    except Undecided:
        return False
    return True


# --- special functions ------------------------------------------------------------------------------------------------


def generator(kind: str, *args: Form) -> Form:
    tower = args[0].tower
    return tower.gen(tower.index(FieldGenerator(kind, args)))


def odd(function: Callable[[Form], Form], form: Form) -> Form:
    """An odd function: one sign of its argument serves both."""
    if form.is_zero:
        return form
    return -function(-form) if leading(form.num) < 0 else function(form)


def shifted(form: Form) -> tuple[Form, int]:
    """An argument with its constant term moved into [0, 1), or (0, 1] where nothing else is left, and by how much."""
    if not form.den.is_constant():
        return form, 0
    constant = fmpq(form.num[(0,) * form.tower.size], leading(form.den))
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
            raise Undecided("a pole of the gamma function")
        return tower.number(factorial(n))
    value = power(tower.pi, HALF) if number is not None and number == HALF else generator("gamma", base)
    for k in range(min(n, 0), max(n, 0)):
        value = value * (base + k) ** (1 if n > 0 else -1)
    return value


def polygamma(n: int, form: Form) -> Form:
    """The n-th derivative of digamma, by its value at x + 1, which is (-1)**n n!/x**(n + 1) more."""
    base, shift = shifted(form)
    tower = form.tower
    value = generator("polygamma", tower.number(n), base)
    scale = tower.number((-1 if shift < 0 else 1) * (-1) ** n * factorial(n))
    for k in range(min(shift, 0), max(shift, 0)):
        value = value + scale / (base + k) ** (n + 1)
    return value


BESSEL = {  # the next order as a multiple of 2*order/x times one, and a multiple of the one before; and the derivative
    "besselj": (1, -1, 1, -1),
    "bessely": (1, -1, 1, -1),
    "besseli": (-1, 1, 1, 1),
    "besselk": (1, 1, -1, -1),
}  # as a multiple of half the order before, and one of half the order behind


def bessel(kind: str, order: Form, x: Form) -> Form:
    """A Bessel function, by two of orders in [0, 2), to which the recurrence between neighbours takes it."""
    number = order.rational()
    if number is None or abs(number) > MOST_SHIFT:
        return generator(kind, order, x)
    whole = int(number.p // number.q)
    base = number - whole
    if whole in (0, 1):
        return generator(kind, order, x)
    ahead, back, _, _ = BESSEL[kind]
    low, high = (generator(kind, order.tower.number(base + k), x) for k in range(2))
    for k in range(1, whole):
        low, high = high, 2 * (base + k) * ahead * high / x + back * low
    for k in range(0, whole, -1):
        low, high = (high - 2 * (base + k) * ahead * low / x) / back, low
    return high if whole > 0 else low


def _bessel_slope(g: Form, unit: fmpq, order: Form, x: Form, kind: str) -> Form:
    _, _, before, behind = BESSEL[kind]
    return (before * bessel(kind, order - 1, x) + behind * bessel(kind, order + 1, x)) / 2


def _hypergeometric_slope(kind: str) -> Callable[..., Form]:
    """a*b/c times the function with all parameters one more; those above come first."""
    above = int(kind[-2])

    def slope(g: Form, unit: fmpq, *args: Form) -> Form:
        *parameters, x = args
        scale = reduce(mul, parameters[:above], x.tower.one) / reduce(mul, parameters[above:], x.tower.one)
        return scale * function(kind, *[parameter + 1 for parameter in parameters], x)

    return slope


def _kummer(a: Form, b: Form, x: Form) -> Form:
    """Kummer's function; (exp(x) - 1)/x, and twice the derivative of that, in exponentials."""
    numbers = a.rational(), b.rational()
    if x.is_zero or numbers not in ((1, 2), (2, 3)):
        return generator("hyper11", a, b, x)
    return (exp(x) - 1) / x if numbers[0] == 1 else 2 * (exp(x) * (x - 1) + 1) / (x * x)


def _gauss(a: Form, b: Form, c: Form, x: Form) -> Form:
    """Gauss' function; -log(1 - x)/x as a logarithm."""
    if x.is_zero or (a.rational(), b.rational(), c.rational()) != (1, 1, 2):
        return generator("hyper21", a, b, c, x)
    return -log(1 - x) / x


# --- all functions, and their derivatives -----------------------------------------------------------------------------


def function(name: str, *args: Form) -> Form:
    """A function of forms by its name; a generator where nothing more is known of it."""
    return FUNCTIONS[name](*args) if name in FUNCTIONS else generator(name, *args)


FUNCTIONS: dict[str, Callable[..., Form]] = {
    "exp": exp,
    "log": log,
    "sqrt": lambda x: power(x, HALF),
    "sin": lambda x: sine_cosine(x)[0],
    "cos": lambda x: sine_cosine(x)[1],
    "tan": lambda x: truediv(*sine_cosine(x)),
    "sinh": lambda x: hyperbolic(x)[0],
    "cosh": lambda x: hyperbolic(x)[1],
    "tanh": lambda x: truediv(*hyperbolic(x)),
    "asin": asin,
    "acos": lambda x: x.tower.pi / 2 - asin(x),
    "atan": atan,
    "atan2": angle,
    "angle": angle,
    "asinh": lambda x: odd(lambda y: log(y + power(y * y + 1, HALF)), x),
    "acosh": lambda x: log(x + power(x - 1, HALF) * power(x + 1, HALF)),
    "atanh": lambda x: (log(1 + x) - log(1 - x)) / 2,
    "erf": lambda x: odd(partial(generator, "erf"), x),
    "erfc": lambda x: 1 - function("erf", x),
    "erfinv": lambda x: odd(partial(generator, "erfinv"), x),
    "erfcinv": lambda x: function("erfinv", 1 - x),
    "gamma": gamma,
    "loggamma": lambda x: log(gamma(x)),
    "digamma": lambda x: polygamma(0, x),
    "polygamma": lambda n, x: polygamma(_order(n), x),
    **{kind: partial(bessel, kind) for kind in BESSEL},
    "hyper11": _kummer,
    "hyper21": _gauss,
    "LambertW": lambda x, k: generator("lambertw", k, x),
    "erfi": lambda x: odd(partial(generator, "erfi"), x),
    "fresnels": lambda x: odd(partial(generator, "fresnels"), x),
    "fresnelc": lambda x: odd(partial(generator, "fresnelc"), x),
}


class TowerDerivation:
    """The derivation of a tower by one of its symbols; the derivatives of generators are kept."""

    def __init__(self, symbol: Form) -> None:
        self.tower = symbol.tower
        self.symbol = self.tower.used(symbol)[0]
        self.known: dict[int, Form] = {}

    def of(self, form: Form) -> Form:
        """The derivative of a form; raises Undecided for a function without a rule here."""
        form = self.tower.renewed(form)
        below = self.tower.fraction(self.tower.one.num, form.den)
        return (self._polynomial(form.num) - form * self._polynomial(form.den)) * below

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

    def _rule(self, index: int, generator: FieldGenerator) -> Form:
        tower = self.tower
        if index == self.symbol:
            return tower.one
        slopes = [] if generator.kind == "held" else [self.of(arg) for arg in generator.args]
        if all(slope.is_zero for slope in slopes):
            return tower.zero
        itself = tower.gen(index)
        if generator.kind == "angle":
            y, x = generator.args
            return (x * slopes[0] - y * slopes[1]) / (x * x + y * y)
        rule = PARTIALS.get(generator.kind)
        if rule is None or not all(slope.is_zero for slope in slopes[:-1]):
            raise Undecided(f"the derivative of {generator.kind}")
        return slopes[-1] * rule(itself, generator.unit, *generator.args)


def _order(n: Form) -> int:
    number = n.rational()
    assert number is not None
    return int(number.p)


# derivatives by the last argument, the only one that may move, of the generator itself, its unit, and its arguments
PARTIALS: dict[str, Callable[..., Form]] = {
    "named": lambda g, unit, x: g.tower.one,
    "inverse": lambda g, unit, x: -g * g,
    "exp": lambda g, unit, x: g * unit,
    "log": lambda g, unit, x: x.inverse(),
    "root": lambda g, unit, x: g * unit / x,
    "erf": lambda g, unit, x: 2 * exp(-x * x) / power(x.tower.pi, HALF),
    "erfinv": lambda g, unit, x: exp(g * g) * power(x.tower.pi, HALF) / 2,
    "lowergamma": lambda g, unit, a, x: general_power(x, a - 1) * exp(-x),
    "uppergamma": lambda g, unit, a, x: -general_power(x, a - 1) * exp(-x),
    "betainc_regularized": lambda g, unit, a, b, start, x: (
        general_power(x, a - 1) * general_power(1 - x, b - 1) * gamma(a + b) / (gamma(a) * gamma(b))
    ),
    "gamma": lambda g, unit, x: g * polygamma(0, x),
    "polygamma": lambda g, unit, n, x: polygamma(_order(n) + 1, x),
    **{kind: partial(_bessel_slope, kind=kind) for kind in BESSEL},
    **{kind: _hypergeometric_slope(kind) for kind in ("hyper01", "hyper11", "hyper21")},
    "erfi": lambda g, unit, x: 2 * exp(x * x) / power(x.tower.pi, HALF),
    "fresnels": lambda g, unit, x: function("sin", x.tower.pi * x * x / 2),
    "fresnelc": lambda g, unit, x: function("cos", x.tower.pi * x * x / 2),
    "Ei": lambda g, unit, x: exp(x) / x,
    "expint": lambda g, unit, n, x: -exp(-x) / x if n.rational() == 1 else -generator("expint", n - 1, x),
    "elliptic_k": lambda g, unit, x: (generator("elliptic_e", x) - (1 - x) * g) / (2 * x * (1 - x)),
    "elliptic_e": lambda g, unit, x: (g - generator("elliptic_k", x)) / (2 * x),
    "lambertw": lambda g, unit, k, x: g / (x * (1 + g)),
    "zeta": lambda g, unit, s, q: -s * generator("zeta", s + 1, q),
}


# --- forms written again ------------------------------------------------------------------------------------------


WRITTEN_OUT = ("held", "named", "inverse")


def released(form: Form, known: dict[int, Form], naming: bool) -> Form:
    """A form without held or named generators, but for new names of long powers where there is `naming`.

    `known` maps generators to what they are written as.
    """
    tower = form.tower
    before = tower.naming, tower.inverting
    tower.naming, tower.inverting = naming, tower.inverting and naming
    try:
        form = tower.renewed(form)
        return _released(form, form.num, known) / _released(form, form.den, known)
    finally:
        tower.naming, tower.inverting = before


def _released(form: Form, poly: Any, known: dict[int, Form]) -> Form:
    tower = form.tower
    now = {i: _generator(form, i, known) for i, n in enumerate(poly.degrees()) if n > 0}
    changed = {i: value for i, value in now.items() if not value.same(tower.gen(i))}
    written: Form = substituted(poly, changed, tower.poly) if changed else tower.poly(poly)
    return written


def _generator(form: Form, index: int, known: dict[int, Form]) -> Form:
    value = known.get(index)
    if value is None:
        tower = form.tower
        generator = tower.generators[index]
        args = [released(arg, known, form.tower.naming) for arg in generator.args]
        same = all(new.same(old) for new, old in zip(args, generator.args, strict=True))
        stays = same and generator.kind not in WRITTEN_OUT
        value = known[index] = tower.gen(index) if stays else _rebuilt(generator, args)
    return value


def _rebuilt(generator: FieldGenerator, args: list[Form]) -> Form:
    if generator.kind in ("held", "named"):
        return args[0]
    if generator.kind == "exp":
        return exp(args[0] * generator.unit)
    if generator.kind in POWERS:
        return power(args[0], generator.unit)
    return function(generator.kind, *args)
