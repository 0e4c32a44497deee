"""An expression goes in, whether it is identically zero comes out: True is a proof, False only means "not found".

The form is a fraction of two polynomials with whole coefficients. Its generators are the symbols, pi, i with i*i = -1,
exponentials of monomials, logarithms and roots of irreducible factors, and any other function as it stands. Sines
and their kin go through exp(i*a), so addition theorems need no rules. Factors under a root or a logarithm get their
sign at the point of the check; these signs are the region on which the proof holds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from flint import Ordering, fmpz_mpoly_ctx

if TYPE_CHECKING:
    from collections.abc import Callable

    Form = tuple[Any, Any]  # numerator and denominator

GENERATORS = 48
MOST_TERMS = 4_000
MOST_POWER = 240
STEPS = 12  # an exponential is a power of exp(monomial/12), so that halves and thirds of an argument are found
FACTORED = 2**64

RING = fmpz_mpoly_ctx.get([f"g{i}" for i in range(GENERATORS)], Ordering.lex)
ONE = RING.constant(1)
ZERO = RING.constant(0)


class NotFound(Exception):
    """The form is over its budget, or the expression holds what it cannot carry."""


def vanishes(expression: Any, sign: Callable[[Any], int]) -> bool:
    """Whether an expression is zero wherever it is defined and the signs that were asked for stay as they are.

    `sign` gives the sign of an expression at the point; it may raise. Raises NotFound over the budget.
    """
    form = NormalForm(sign).of(expression)
    return bool(form[0] == ZERO)


class NormalForm:
    """The forms of expressions over one set of generators."""

    def __init__(self, sign: Callable[[Any], int]) -> None:
        self.sign = sign
        self.gens = RING.gens()
        self.meanings: list[Any] = []  # SymPy's expression for each generator in use
        self.kinds: list[tuple[Any, ...]] = []
        self.known: dict[Any, int] = {}
        self.relations: dict[int, tuple[int, Form]] = {}  # generator -> (power, the form that it equals)
        self.complex: set[int] = set()
        self.units: dict[Any, list[Fraction]] = {}  # the coefficients whose exponentials are generators
        self.degrees: dict[Any, list[int]] = {}  # the roots that are generators
        self.forms: dict[Any, Form] = {}

    # --- generators -------------------------------------------------------------------------------------

    def generator(self, key: Any, meaning: Any, kind: tuple[Any, ...] = ("other",), complex_: bool = False) -> int:
        """The number of a generator, made at its first use."""
        index = self.known.get(key)
        if index is None:
            index = len(self.meanings)
            if index >= GENERATORS:
                raise NotFound(f"more than {GENERATORS} generators")
            self.known[key] = index
            self.meanings.append(meaning)
            self.kinds.append(kind)
            if complex_:
                self.complex.add(index)
        return index

    def imaginary(self) -> int:
        index = self.generator("i", sympy.I, ("i",), True)
        self.relations.setdefault(index, (2, (RING.constant(-1), ONE)))
        return index

    def is_complex(self, form: Form) -> bool:
        """Whether a form is written with complex generators, although its value may be real."""
        if not self.complex:
            return False
        degrees = [poly.degrees() for poly in form]
        return any(one[i] for one in degrees for i in self.complex)

    def meaning(self, poly: Any) -> Any:
        """SymPy's expression for a polynomial in the generators."""
        terms = []
        for powers, coefficient in poly.terms():
            factors = [self.meanings[i] ** int(n) for i, n in enumerate(powers) if n]
            terms.append(sympy.Mul(sympy.Integer(int(coefficient)), *factors))
        return sympy.Add(*terms)

    # --- arithmetic -----------------------------------------------------------------------------------------

    def normal(self, num: Any, den: Any) -> Form:
        """A fraction with the relations applied and common factors removed."""
        if self.relations:
            top, bottom = self.reduced(num), self.reduced(den)
            num, den = top[0] * bottom[1], top[1] * bottom[0]
        if num == ZERO:
            return ZERO, ONE
        if den == ZERO:
            raise NotFound("division by an expression that vanishes")
        if len(num) > MOST_TERMS or len(den) > MOST_TERMS:
            raise NotFound(f"more than {MOST_TERMS} terms")
        common = num.gcd(den)
        if common != ONE:
            num, den = divmod(num, common)[0], divmod(den, common)[0]
        if int(den.leading_coefficient()) < 0:
            num, den = -num, -den
        return num, den

    def reduced(self, poly: Any) -> Form:
        """A polynomial with every power of a root, and of i, below the power that its relation replaces."""
        form: Form = (poly, ONE)
        for index, (power, base) in self.relations.items():
            if form[0].degrees()[index] < power:
                continue
            parts: dict[int, dict[Any, Any]] = {}
            for powers, coefficient in form[0].to_dict().items():
                times, rest = divmod(powers[index], power)
                monomial = (*powers[:index], rest, *powers[index + 1 :])
                part = parts.setdefault(times, {})
                part[monomial] = part.get(monomial, 0) + coefficient
            highest = max(parts)
            num = ZERO
            for times, part in parts.items():
                num = num + RING.from_dict(part) * base[0] ** times * base[1] ** (highest - times)
            form = (num, form[1] * base[1] ** highest)
        return form

    def plus(self, one: Form, other: Form) -> Form:
        if one[1] == other[1]:
            return self.normal(one[0] + other[0], one[1])
        return self.normal(one[0] * other[1] + other[0] * one[1], one[1] * other[1])

    def times(self, one: Form, other: Form) -> Form:
        return self.normal(one[0] * other[0], one[1] * other[1])

    def power(self, form: Form, n: int) -> Form:
        if abs(n) > MOST_POWER or len(form[0]) ** min(abs(n), 12) > 100 * MOST_TERMS:
            raise NotFound(f"a power of {n}")
        num, den = form if n >= 0 else (form[1], form[0])
        if n < 0 and den == ZERO:
            raise NotFound("division by an expression that vanishes")
        return self.normal(num ** abs(n), den ** abs(n))

    def monomial(self, index: int, n: int) -> Form:
        """A generator to a whole power."""
        return self.power((self.gens[index], ONE), n)

    def constant(self, value: Fraction) -> Form:
        return RING.constant(value.numerator), RING.constant(value.denominator)

    # --- expressions ------------------------------------------------------------------------------------------

    def of(self, expression: Any) -> Form:
        """The form of an expression; raises NotFound."""
        stack = [expression]
        while stack:
            top = stack[-1]
            if top in self.forms:
                stack.pop()
                continue
            missing = [arg for arg in top.args if arg not in self.forms]
            if missing:
                stack.extend(missing)
                continue
            self.forms[top] = self._step(top, [self.forms[arg] for arg in top.args])
            stack.pop()
        return self.forms[expression]

    def _step(self, expression: Any, args: list[Form]) -> Form:
        if expression.is_Rational:
            return self.constant(Fraction(int(expression.p), int(expression.q)))
        name = expression.func.__name__
        if expression.is_Symbol or name == "Pi":
            return self.gens[self.generator(expression, expression)], ONE
        if name == "Exp1":
            return self.exp((ONE, ONE))
        if name == "Add":
            total = args[0]
            for arg in args[1:]:
                total = self.plus(total, arg)
            return total
        if name == "Mul":
            product = args[0]
            for arg in args[1:]:
                product = self.times(product, arg)
            return product
        if name == "Pow":
            return self._pow(expression, *args)
        if name == "exp":
            return self.exp(args[0])
        if name == "log":
            return self.log(args[0], expression.args[0])
        if name in ("Abs", "sign"):
            side = self._certain(expression.args[0])
            return self.times(self.constant(Fraction(side)), args[0] if name == "Abs" else (ONE, ONE))
        if name in TRIGONOMETRIC:
            return self._through_exp(name, args[0])
        key = (name, *(str(poly) for arg in args for poly in arg))
        return self.gens[self.generator(key, expression)], ONE

    def _certain(self, expression: Any) -> int:
        side = self.sign(expression)
        if side == 0:
            raise NotFound("a factor that vanishes at the point")
        return side

    def _pow(self, expression: Any, base: Form, exponent: Form) -> Form:
        power = expression.args[1]
        if power.is_Integer:
            return self.power(base, int(power))
        if self._certain(expression.args[0]) < 0:
            raise NotFound("a broken power of a negative number")
        if power.is_Rational:
            return self.root(base, Fraction(int(power.p), int(power.q)), expression.args[0])
        return self.exp(self.times(exponent, self.log(base, expression.args[0])))

    def _through_exp(self, name: str, form: Form) -> Form:
        circular = name in ("sin", "cos", "tan", "cot", "sec", "csc")
        i: Form = (self.gens[self.imaginary()], ONE) if circular else (ONE, ONE)
        ahead = self.exp(self.times(i, form))
        behind = self.power(ahead, -1)
        difference = self.plus(ahead, self.times(self.constant(Fraction(-1)), behind))
        sine = self.times(difference, self.power(self.times(self.constant(Fraction(2)), i), -1))
        cosine = self.times(self.plus(ahead, behind), self.constant(Fraction(1, 2)))
        top, bottom = TRIGONOMETRIC[name]
        parts = {"sin": sine, "cos": cosine, "1": (ONE, ONE)}
        return self.times(parts[top], self.power(parts[bottom], -1))

    # --- exponentials, logarithms, roots ---------------------------------------------------------------------------

    def exp(self, form: Form) -> Form:
        """The exponential: a product over the terms of its argument."""
        product: Form = (ONE, ONE)
        for coefficient, num, den in self._terms(form):
            product = self.times(product, self._exp_term(coefficient, num, den))
        return product

    def _terms(self, form: Form) -> list[tuple[Fraction, Any, Any]]:
        """A fraction as terms coefficient * monomial / denominator."""
        num, den = form
        found = []
        if not den.is_constant():
            whole, rest = divmod(num, den)
            if whole * den + rest == num and rest != num:
                found = self._terms((whole, ONE))
                num = rest
        content = int(den.content()) if not den.is_constant() else int(den.leading_coefficient())
        if content != 1:
            den = divmod(den, RING.constant(content))[0]
        for powers, coefficient in num.terms():
            monomial = RING.from_dict({powers: 1})
            common = monomial.gcd(den)
            top, bottom = divmod(monomial, common)[0], divmod(den, common)[0]
            found.append((Fraction(int(coefficient), content), top, bottom))
        return found

    def _exp_term(self, coefficient: Fraction, num: Any, den: Any) -> Form:
        used = [i for i, n in enumerate(num.degrees()) if n]
        if den == ONE and len(used) == 1 and num.degrees()[used[0]] == 1:
            kind = self.kinds[used[0]]
            if kind[0] == "log":
                return self.root(kind[1], coefficient, kind[2])
        turns = coefficient * 2
        if den == ONE and turns.denominator == 1 and self._is_i_pi(num, used):
            return self.monomial(self.imaginary(), int(turns) % 4)
        key = ("exp", str(num), str(den))
        units = self.units.setdefault(key, [])
        unit = next((known for known in units if (coefficient / known).denominator == 1), None)
        if unit is None:
            unit = abs(coefficient) / STEPS
            units.append(unit)
        argument = self.meaning(num) / self.meaning(den) * sympy.Rational(unit.numerator, unit.denominator)
        is_complex = self.is_complex((num, den))
        index = self.generator((*key, unit), sympy.exp(argument), ("exp", unit, num, den), is_complex)
        return self.monomial(index, int(coefficient / unit))

    def _is_i_pi(self, num: Any, used: list[int]) -> bool:
        names = {self.meanings[i] for i in used}
        return len(used) == 2 and names == {sympy.I, sympy.pi} and num.total_degree() == 2

    def log(self, form: Form, expression: Any) -> Form:
        """The logarithm of a form that is positive at the point: a sum over its factors."""
        if self._certain(expression) < 0:
            raise NotFound("the logarithm of a negative number")
        if self.is_complex(form):
            index = self.generator(("log", str(form[0]), str(form[1])), sympy.log(expression))
            return self.gens[index], ONE
        total: Form = (ZERO, ONE)
        for factor, expression_of, times in self._factors(form):
            total = self.plus(total, self.times(self.constant(Fraction(times)), self._log(factor, expression_of)))
        return total

    def _log(self, factor: Any, expression: Any) -> Form:
        single = self._single(factor)
        if single is not None:
            kind = self.kinds[single]
            if kind[0] == "exp":
                return self.times(self.constant(kind[1]), (kind[2], kind[3]))
            if kind[0] == "root":
                return self.times(self.constant(Fraction(1, kind[1])), self.log(kind[2], kind[3]))
        form = (factor, ONE)
        index = self.generator(("log", str(factor)), sympy.log(expression), ("log", form, expression))
        return self.gens[index], ONE

    def root(self, form: Form, power: Fraction, expression: Any) -> Form:
        """A form that is positive at the point, to a rational power: a product over its factors."""
        if power.denominator == 1:
            return self.power(form, int(power))
        if self.is_complex(form):
            return self._root(form, power, expression)
        product: Form = (ONE, ONE)
        for factor, expression_of, times in self._factors(form):
            product = self.times(product, self._root((factor, ONE), power * times, expression_of))
        return product

    def _root(self, form: Form, power: Fraction, expression: Any) -> Form:
        if power.denominator == 1:
            return self.power(form, int(power))
        single = self._single(form[0]) if form[1] == ONE else None
        if single is not None:
            kind = self.kinds[single]
            if kind[0] == "exp":
                return self.exp(self.times(self.constant(kind[1] * power), (kind[2], kind[3])))
            if kind[0] == "root":
                return self.root(kind[2], power / kind[1], kind[3])
        key = ("root", str(form[0]), str(form[1]))
        degrees = self.degrees.setdefault(key, [])
        degree = next((known for known in degrees if known % power.denominator == 0), None)
        if degree is None:
            degree = power.denominator
            degrees.append(degree)
        meaning = sympy.Pow(expression, sympy.Rational(1, degree))
        index = self.generator((*key, degree), meaning, ("root", degree, form, expression))
        self.relations.setdefault(index, (degree, form))
        return self.monomial(index, int(power * degree))

    def _single(self, factor: Any) -> int | None:
        """The generator that a factor is, where it is one."""
        if len(factor) != 1 or int(factor.leading_coefficient()) != 1 or factor.total_degree() != 1:
            return None
        return next(i for i, n in enumerate(factor.degrees()) if n)

    def _factors(self, form: Form) -> list[tuple[Any, Any, int]]:
        """The factors of a positive form, each made positive at the point, with their multiplicities."""
        found: list[tuple[Any, Any, int]] = []
        for poly, direction in ((form[0], 1), (form[1], -1)):
            content, factors = poly.factor()
            for prime, times in _primes(abs(int(content))):
                found.append((RING.constant(prime), sympy.Integer(prime), direction * times))
            for factor, times in factors:
                expression = self.meaning(factor)
                if self._certain(expression) < 0:
                    factor, expression = -factor, self.meaning(-factor)
                found.append((factor, expression, direction * int(times)))
        return found


TRIGONOMETRIC = {
    "sin": ("sin", "1"), "cos": ("cos", "1"), "tan": ("sin", "cos"), "cot": ("cos", "sin"), "sec": ("1", "cos"),
    "csc": ("1", "sin"), "sinh": ("sin", "1"), "cosh": ("cos", "1"), "tanh": ("sin", "cos"),
    "coth": ("cos", "sin"), "sech": ("1", "cos"), "csch": ("1", "sin"),
}  # fmt: skip


def _primes(number: int) -> list[tuple[int, int]]:
    """A positive whole number as powers of primes; one too large to factor stays as it is."""
    if number == 1:
        return []
    if number > FACTORED:
        return [(number, 1)]
    return [(int(prime), int(times)) for prime, times in sympy.factorint(number).items()]
