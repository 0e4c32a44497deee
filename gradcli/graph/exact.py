"""Exact rational numbers and their decimals, without the cost of importing `fractions` until one is needed."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction
    from typing import TypeGuard

    Rational = int | Fraction

MANY_DIGITS = 15  # a literal with as many digits is a rounded constant


def rational(numerator: Rational, denominator: Rational = 1) -> Rational:
    """The quotient of two exact numbers: an int where it is whole, else a Fraction.

    >>> rational(6, 3), rational(1, 3)
    (2, Fraction(1, 3))
    """
    if type(numerator) is int and type(denominator) is int and numerator % denominator == 0:
        return numerator // denominator
    return whole_or_fraction(import_module("fractions").Fraction(numerator) / denominator)


def decimal(text: str) -> Rational:
    """The exact value of a decimal literal, such as the shortest text of a float."""
    return whole_or_fraction(import_module("fractions").Fraction(text))


def last_unit(value: Rational, least: int = MANY_DIGITS) -> Rational | None:
    """One unit of the last digit of a decimal with so many digits; None for any other number.

    >>> last_unit(decimal("0.125")), last_unit(decimal("2.718281828459045"))
    (None, Fraction(1, 1000000000000000))
    """
    number = import_module("fractions").Fraction(value)
    below = number.denominator
    if below.bit_count() == 1 and (abs(number) <= 2**53 or (below > 1 and least == MANY_DIGITS)):
        return None  # a number that people write exactly: a whole or a binary fraction
    written = decimal_of(number)
    if written is None or len(written.as_tuple().digits) < least:
        return None
    return decimal(f"1e{written.as_tuple().exponent}")


def decimal_of(number: Fraction) -> Decimal | None:
    """A fraction as a decimal without zeros at its end; None where it is none."""
    from decimal import Context, Decimal, Inexact

    context = Context(prec=400, traps=[Inexact])
    try:
        return context.normalize(context.divide(Decimal(number.numerator), Decimal(number.denominator)))
    except Inexact:
        return None


def count_text(n: int) -> str:
    """A count as people write it, such as 1,000,000; of a huge one only the order of magnitude."""
    return f"{n:,}" if n < 10**15 else f"about 1e{int((n.bit_length() - 1) * 0.30103)}"


def number_text(value: object) -> str:
    """A number as people write it: 2.5 rather than 5/2; or several in brackets."""
    if isinstance(value, tuple):
        return f"({', '.join(map(number_text, value))})"
    return repr(float(value)) if is_fraction(value) else str(value)


def whole_or_fraction(value: Rational) -> Rational:
    """An int where the number is whole."""
    return value.numerator if value.denominator == 1 else value


def is_fraction(value: object) -> TypeGuard[Fraction]:
    """Whether a value is a Fraction: it has a denominator and is not an int."""
    return type(value) is not int and type(value).__name__ == "Fraction"
