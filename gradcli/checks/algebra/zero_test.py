"""Whether a number that is given as an expression is exactly 0, where its balls keep containing 0.

Its normal form tells for what the laws of the elementary functions explain. For real radicals a separation bound tells:
with numerator and denominator of an expression as polynomials in its roots (Burnikel, Funke, Mehlhorn, Schirra and
Schmitt 2001), no number but 0 is closer to 0 than the bound. A number that neither shows to be 0 may still be 0.
"""

from __future__ import annotations

from fractions import Fraction
from math import log2
from typing import TYPE_CHECKING, Any

from flint import arb, fmpq

from gradcli.checks.algebra.differential_field import SIZES, FieldGenerator, Form, Full, Tower
from gradcli.checks.algebra.elementary_functions import equal_angles, function, general_power, generator, power
from gradcli.checks.evaluate.ball_numbers import START_BITS
from gradcli.checks.evaluate.interpretation import Failure, Undecided, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Expression = Any  # an ExactReal or a TracedExpansion

STEP = FieldGenerator("symbol", name="step", value=fmpq(0))  # of which expansions are functions
MOST_NUMBERS = 2_000  # of an expression that is tested
MOST_WORK = 200_000  # terms, for one normal form
EACH = 10  # operations that a number of the expression counts for
MOST_SEPARATION = 60_000  # bits
# of an operation, from the forms of its operands; else a function by its name
FORMS: dict[str, Callable[..., Form]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "inverse": lambda x: x.inverse(),
    "power": lambda x, n: x**n if isinstance(n, int) else general_power(x, n),
    "along": lambda x, speed: x + speed * x.tower.gen(x.tower.index(STEP)),
    "expm1": lambda x: function("exp", x) - 1,
    "log1p": lambda x: function("log", x + 1),
    "lgamma": lambda x: function("loggamma", x),
    "rgamma": lambda x: function("gamma", x).inverse(),
}


def vanishes(number: Expression) -> bool:
    """Whether a number is proved to be 0."""
    order = expression(number)
    number.pool.left -= EACH * len(order)
    return len(order) <= MOST_NUMBERS and (has_zero_form(order) or is_below_separation(order))


def expression(number: Expression) -> list[Expression]:
    """The numbers that a number is computed from, and itself, in order; those beyond MOST_NUMBERS are left out."""
    inside, pending = {number}, [number]
    while pending and len(inside) <= MOST_NUMBERS:
        for arg in operands(pending.pop()):
            if arg not in inside:
                inside.add(arg)
                pending.append(arg)
    return sorted(inside, key=lambda part: part.serial)


def operands(number: Expression) -> list[Expression]:
    """The operands of a number that are expressions themselves; none of a fraction."""
    return [] if number.rational is not None else [arg for arg in number.args if is_expression(arg)]


def is_expression(arg: Any) -> bool:
    return hasattr(type(arg), "serial")


def has_zero_form(order: Sequence[Expression]) -> bool:
    """Whether the normal form of the last number is 0."""
    for size in SIZES:
        tower = Tower(size, MOST_WORK)
        forms: dict[Expression, Form] = {}
        try:
            for number in order:
                forms[number] = form_of(tower, number, forms)
            form = tower.renewed(forms[order[-1]])
            return form.is_zero or equal_angles(form)
        except Full:
            continue
        except (Failure, Unsupported, OverflowError, ZeroDivisionError):
            return False
    return False


def form_of(tower: Tower, number: Expression, forms: dict[Expression, Form]) -> Form:
    """The form of a number, from those of its operands."""
    if number.rational is not None:
        return tower.number(number.rational)
    name, args = number.name, [tower.renewed(forms[arg]) for arg in operands(number)]
    others = [arg for arg in number.args if not is_expression(arg)]
    if not all(isinstance(arg, (int, str, Fraction)) for arg in others):
        raise Undecided("an operand that is no expression")
    if name == "pi":
        return tower.pi
    if name in ("root", "raised"):
        exponent = fmpq(number.args[1].numerator, number.args[1].denominator)
        return power(args[0], exponent if name == "raised" else 1 / exponent)
    if name in FORMS:
        return FORMS[name](*args, *others)
    if not args:
        return tower.gen(tower.index(FieldGenerator("unknown", name=str(number.serial))))
    return generator(f"{name} {others}", *args) if others else function(name, *args)


def is_below_separation(order: Sequence[Expression]) -> bool:
    """Whether the last number is closer to 0 than any number but 0 of its expression is; False if not of radicals.

    It is U/L, where both are polynomials in roots of whole numbers: kept are bounds of their conjugates, as logarithms.
    """
    degree, sizes = 1, dict[Any, tuple[float, float]]()
    for number in order:
        if number.rational is not None:
            sizes[number] = log2(max(1, abs(int(number.rational.p)))), log2(int(number.rational.q))
            continue
        if number.name not in ("add", "mul", "div", "power", "root"):
            return False
        (u, low), (v, below), n = sizes[number.args[0]], sizes.get(number.args[-1], (0.0, 0.0)), number.args[-1]
        if number.name == "add":
            sizes[number] = max(u + below, v + low) + 1, low + below
        elif number.name == "mul":
            sizes[number] = u + v, low + below
        elif number.name == "div":
            sizes[number] = u + below, low + v
        elif number.name == "power":
            sizes[number] = n * u, n * low
        else:
            degree *= n
            sizes[number] = (u + (n - 1) * low) / n, low
    u, low = sizes[order[-1]]
    bound = low + (degree - 1) * u
    if bound > MOST_SEPARATION:
        return False
    return bool(order[-1].enclosed(2 * int(bound) + START_BITS).abs_upper() < arb(2) ** -int(bound + 1))
