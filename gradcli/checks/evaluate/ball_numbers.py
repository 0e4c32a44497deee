"""Decisions about python-flint's balls: sign, accuracy, digits, and how many bits to try next.

The precision is global to the process: only the oracle's own process imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import arb, ctx, fmpq

from gradcli.checks.evaluate.interpretation import MOST_BITS, SIGN_UNDECIDED, Failure, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START_BITS = 128
GOOD_BITS = 56
MOST_WORK = 1_200_000  # operations on single entries with few bits, before a round with more
MOST_LOOP_WORK = 16_000_000  # the same where a loop has stated how many bits it needs
FEW_BITS = 512  # up to which the time of an operation does not depend on the bits
DIGITS_A_BIT = 0.30103
SPARE, SPARE_BITS = 4, 64  # at the end of a loop
# by loops since the last round: bits, and share of the iterations; global as `ctx`
WANTED: list[tuple[int, float]] = []
precision = ctx.workprec  # `with precision(bits)`: work with so many bits, then with as many as before
TINY = fmpq(1, 2) * arb(2) ** -1074  # half of the smallest double


def sign(x: Any) -> int:
    """The common sign of all numbers in a ball or series; raises Undecided where they differ."""
    if type(x) is not arb:
        return int(x.sign())
    if x.is_zero():
        return 0
    if x.is_finite() and not x.contains(0):
        return 1 if x.mid() > 0 else -1
    if not x.is_finite() and not x.is_nan() and x.is_exact():
        return 1 if x > 0 else -1
    raise Undecided(SIGN_UNDECIDED)


def is_tiny(x: Any) -> bool:
    """Whether every number in a ball rounds to zero in float64."""
    return bool(x.is_finite() and abs(x) < TINY)


def digits(x: Any, count: int = 25) -> str:
    """The digits of a ball's midpoint that are certain, at most `count`; an exact zero is "0"."""
    if x.is_zero():
        return "0"
    if x.is_exact() and not x.is_finite() and not x.is_nan():
        return "inf" if x > 0 else "-inf"
    if x.is_integer() and abs(x) < 10**15:
        return str(x.unique_fmpz())
    good = x.rel_accuracy_bits() * DIGITS_A_BIT
    text: str = x.mid().str(count if good >= count else max(2, int(good)), radius=False)
    if "e" not in text and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def settled(x: Any) -> bool:
    """Whether more bits change nothing: an entry is known to 56 bits, rounds to zero, or has no value."""
    if isinstance(x, Failure):
        return not isinstance(x, Undecided)
    if type(x) is not arb:
        return True
    return bool(x.rel_accuracy_bits() >= GOOD_BITS) or is_tiny(x)


def with_bits(read: Callable[[int], Any], enough: Callable[[Any], bool] = settled, work: int = 0) -> Any:
    """The result of `read` with the fewest bits that are enough, within the budget."""
    for bits in doubling(work=work):
        with precision(bits):
            result = read(bits)
            if enough(result):
                break
    return result


def doubling(start: int = START_BITS, work: int = 0) -> Iterator[int]:
    """128, 256, ... 8192, as far as the budget goes for rounds of so many operations on single entries.

    The first round is free, and an operation with many bits counts more than once. The next round has the bits that a
    loop `WANTED`.

    >>> list(doubling(work=400_000))
    [128, 256, 512]
    """
    bits, spent, most = start, 0.0, MOST_WORK
    while bits <= MOST_BITS and spent <= most:
        WANTED.clear()
        yield bits
        share = max([done for _, done in WANTED], default=1.0)
        spent += share * work * (FEW_BITS + bits) / FEW_BITS
        bits *= 2
        if WANTED:
            most = MOST_LOOP_WORK
            bits = max(bits, *(wanted for wanted, _ in WANTED))
