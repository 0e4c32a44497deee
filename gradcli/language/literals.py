"""The exact value of a number literal, as a ratio of integers, or the reason why it has none.

Sizes are checked on the text, before any large integer is made.
"""

from __future__ import annotations

from math import gcd

from gradcli.diagnostics import NOTE, Diagnostic, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.diagnostics import Span
    from gradcli.language.limits import Limits

LARGEST_EXPONENT = 400
CHUNK = 4000  # Python refuses to read an int of more than 4,300 digits at once


def exact_ratio(text: str, span: Span, limits: Limits) -> tuple[tuple[int, int], Diagnostic | None]:
    """Return (numerator, denominator) in lowest terms, and a note or an error if there is something to say.

    Errors: GC503 for too many digits, GC504 for a decimal exponent over 400, GC107 beyond float64. A note:
    GC108 for a number that is not zero but whose float64 is.
    """
    plain = text.replace("_", "")
    mantissa, _, exponent = plain.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = len(whole) + len(fraction)
    shown = f"`{visible(text, 24)}`"
    if digits > limits.digits:
        message = f"the number {shown} has {digits} digits, more than the limit of {limits.digits}"
        return (0, 1), Diagnostic("GC503", message, span, (), "a float64 keeps 17 digits")
    size = exponent.lstrip("+-").lstrip("0")
    if len(size) > 3 or (size and int(size) > LARGEST_EXPONENT):
        message = f"the exponent of {shown} is larger than {LARGEST_EXPONENT}"
        return (0, 1), Diagnostic("GC504", message, span, (), "float64 reaches from 5e-324 to 1.8e308")
    near = float(plain)
    if near == float("inf"):
        message = f"the number {shown} is larger than the largest float64, 1.8e308"
        return (0, 1), Diagnostic("GC107", message, span, (), "write inf for infinity")
    numerator = read_digits(whole + fraction)
    power = int(exponent or "0") - len(fraction)
    note = None
    if near == 0.0 and numerator:
        message = f"the number {shown} is smaller than the smallest float64, 4.9e-324: as a float it is 0"
        note = Diagnostic("GC108", message, span, (), None, NOTE)
    if power >= 0:
        return (numerator * 10**power, 1), note
    denominator = 10**-power
    common = gcd(numerator, denominator)
    return (numerator // common, denominator // common), note


def read_digits(digits: str) -> int:
    """Return the integer that a string of decimal digits spells, whatever its length."""
    value = int(digits[:CHUNK] or "0")
    for at in range(CHUNK, len(digits), CHUNK):
        piece = digits[at : at + CHUNK]
        value = value * 10 ** len(piece) + int(piece)
    return value
