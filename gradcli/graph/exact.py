"""Exact rational numbers, without the cost of importing `fractions` until one is needed."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import TypeGuard

    Rational = int | Fraction


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
