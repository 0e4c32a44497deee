"""Polynomials of flint go in, their products, quotients and sizes come out, within budgets that are kept here."""

from __future__ import annotations

from typing import Any

from flint import fmpq, fmpz

from gradcli.checks.evaluate.interpretation import Undecided

MOST_TERMS = 4_000
MOST_PAIRS = 200_000  # of terms in one product
MOST_POWER = 512
MOST_BITS = 20_000  # of a coefficient
EXPANDED = 100  # terms of a power; a longer one is a power of a generator
GCD_PAIRS = 60_000  # beyond that a fraction is not reduced to lowest terms


class NotFound(Undecided):
    """A form is over its budget, or holds what it cannot carry; where nothing reads it, that does no harm."""


class Full(Exception):
    """There are more generators than the ring has; a larger ring may do."""


class Spent(Exception):
    """The budget of an attempt is spent."""


class Vanishing(NotFound):
    """A division by a form that is identically zero."""


def as_number(value: Any) -> fmpq | None:
    """A whole number or a fraction as flint has it; None for anything else."""
    if isinstance(value, (int, fmpz, fmpq)):
        return fmpq(value)
    numerator = getattr(value, "numerator", None)
    if numerator is None or isinstance(value, float):
        return None
    return fmpq(numerator, value.denominator)


def product(a: Any, b: Any) -> Any:
    """The product of two polynomials, within the budget."""
    if len(a) * len(b) > MOST_PAIRS:
        raise NotFound("a product of too many terms")
    return a * b


def exact_quotient(a: Any, b: Any) -> Any:
    return a if b.is_one() else divmod(a, b)[0]


def over_of(poly: Any, gen: Any) -> Any:
    """The part of a polynomial, of degree 1 in a generator, that stands beside the generator."""
    return divmod(poly, gen)[0]


def leading(poly: Any) -> fmpz:
    """The first coefficient; 0 of the polynomial 0."""
    return fmpz(0) if poly.is_zero() else poly.leading_coefficient()


class Key:
    """A polynomial as a key of tables; `str` would do, but leaks memory in python-flint 0.9."""

    __slots__ = ("hash", "poly")

    def __init__(self, poly: Any) -> None:
        self.poly = poly
        self.hash = hash((tuple(poly.degrees()), tuple(poly.coeffs())))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.hash == other.hash and bool(self.poly == other.poly)


def is_number(poly: Any) -> bool:
    """Whether a polynomial is a number; flint looks at every variable for that, so longer ones never get there."""
    return len(poly) < 2 and bool(poly.is_constant())


def height(poly: Any) -> int:
    """The bits of the largest coefficient; of many, those of the first."""
    if len(poly) > 64:
        return int(leading(poly).bit_length())
    return int(max(map(fmpz.bit_length, poly.coeffs()), default=0))


def expected_terms(terms: int, n: int) -> int:
    """At most how many terms a power has: n + terms - 1 over n."""
    found = 1
    for k in range(1, min(terms, n + 1)):
        found = found * (n + terms - k) // k
        if found > 10 * MOST_TERMS:
            break
    return found
