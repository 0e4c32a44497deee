"""Which decimals of a program are rounded constants, and by how much they may be off."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gradcli.graph.node import CONSTANT, reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node


MANY_DIGITS = 15  # a literal with as many digits is a rounded constant
FEW_DIGITS = 3  # a bare number of fewer digits is meant exactly


def last_unit(value: int | Fraction, least: int = MANY_DIGITS) -> Fraction | None:
    """One unit of the last digit of a decimal with so many digits; None for any other number.

    >>> last_unit(Fraction(1, 8)), last_unit(Fraction("2.718281828459045"))
    (None, Fraction(1, 1000000000000000))
    """
    number = Fraction(value)
    bottom, twos, fives = number.denominator, 0, 0
    while bottom % 2 == 0:
        bottom //= 2
        twos += 1
    while bottom % 5 == 0:
        bottom //= 5
        fives += 1
    if bottom != 1 or (fives == 0 and abs(number) <= 2**53) or (fives == 0 and twos > 0 and least == MANY_DIGITS):
        return None  # no decimal, or a number that people write exactly: a whole or a binary fraction
    places = max(twos, fives)
    text = str(abs(number * 10**places).numerator)
    written = text.rstrip("0")
    if len(written) < least:
        return None
    return Fraction(10 ** (len(text) - len(written)), 10**places)


def rounded_constants(nodes: Sequence[Node]) -> list[str]:
    """The literals of many digits that some nodes read, as they are written, in order and once each."""
    from decimal import Context, Decimal  # start-up time is a feature

    found = []
    for node in reachable(nodes):
        value = node.params.get("value") if node.primitive is CONSTANT else None
        if isinstance(value, (int, Fraction)) and last_unit(value) is not None:
            number = Fraction(value)
            exact = Context(prec=400).divide(Decimal(number.numerator), Decimal(number.denominator))
            found.append(f"{exact.normalize():f}" if abs(exact.adjusted()) < 30 else str(exact.normalize()))
    return list(dict.fromkeys(found))
