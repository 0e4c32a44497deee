"""The relation of exact and claimed entries, as plain data.

Disjoint balls are unequal for certain; balls that overlap are equal as far as their bits go, and only 56 of them,
or a size below the smallest double, make that an agreement.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = dict[str, Any]

DIGITS = 25
MOST_DIGITS = 800
DETAILS = 8  # entries whose digits are written out
AGREE, DISJOINT, OPEN, CLOSE, NO_EXACT, NO_CLAIMED, TIE = "=", "!", "?", "~", "E", "R", "T"
WORST_FIRST = "!TER?~="
FAINT = 1e-9  # relative: smaller errors may come of rounded constants
DECIDED = frozenset((AGREE, DISJOINT, CLOSE))  # both entries are numbers


def compared(
    exact: Callable[[int], Mapping[int, Any]],
    claimed: Callable[[int], Mapping[int, Any]],
    entries: Sequence[int],
    rtol: float | None,
    work: int,
    start: int = ball_numbers.START_BITS,
) -> Answer:
    """The relation of each entry, decided with as few bits as will do; `agreed` are the bits that all pairs share.

    `work` counts the operations on single entries that both sides take with any number of bits.
    """
    for bits in ball_numbers.doubling(start, work):
        with ball_numbers.precision(bits):
            one, other = exact(bits), claimed(bits)
            codes = {i: relation(one[i], other[i], rtol) for i in entries}
        open_ones = [i for i, code in codes.items() if code == OPEN]
        if not any(all(type(x) is not Failure or is_hopeful(x) for x in (one[i], other[i])) for i in open_ones):
            break
    order: Sequence[int] = entries
    if len(codes) > 1:
        weak = {i for i in entries if codes[i] == DISJOINT and faint(one[i], other[i])}
        order = sorted(entries, key=lambda i: (WORST_FIRST.index(codes[i]), i in weak))
    failure = None
    if not DECIDED.issuperset(codes.values()):
        failure = next((x for i in order for x in (one[i], other[i]) if isinstance(x, Failure)), None)
    exacts, claims, least = [], [], bits
    for i in entries:
        x, y = one[i], other[i]
        exacts.append(nearest(x))
        claims.append(nearest(y))
        least = min(least, agreed(x, y, bits))
    return {
        **entries_answer("".join(codes.values()), entries, exacts, claims, failure),
        "beyond": beyond({i: one[i] for i in entries}),
        "details": [{"entry": i, "relation": codes[i], **written(one[i], other[i], codes[i])} for i in order[:DETAILS]],
        "bits": bits,
        "agreed": least,
    }


def entries_answer(
    codes: str, entries: Sequence[int], exact: Sequence[Any], claimed: Sequence[Any], failure: Failure | None
) -> Answer:
    """What is answered of entries: the relation of each, both sides, and what failed first."""
    return {
        "region": True,
        "relations": codes,
        "entries": list(entries),
        "exact": exact,
        "claimed": claimed,
        **{part: getattr(failure, part, None) for part in ("reason", "node", "turn")},
    }


def faint(exact: Any, claimed: Any) -> bool:
    """Whether two entries differ by so little that rounded constants may be the cause."""
    return bool(abs(exact - claimed) <= FAINT * abs(exact))


def speaks(relations: str) -> bool:
    """Whether a point near the given one is evidence: both sides agree there, or differ for certain."""
    return DISJOINT in relations or not set(relations) & {NO_EXACT, NO_CLAIMED, TIE, OPEN}


def relation(exact: Any, claimed: Any, rtol: float | None) -> str:
    if isinstance(exact, Failure):
        return _without(exact, NO_EXACT)
    if isinstance(claimed, Failure):
        return _without(claimed, NO_CLAIMED)
    if claimed.is_zero() and ball_numbers.is_tiny(exact):
        return AGREE  # no double is nearer than 0
    if not exact.overlaps(claimed):
        if rtol is not None and abs(exact - claimed) <= rtol * abs(exact).max(abs(claimed)):
            return CLOSE
        return DISJOINT
    if ball_numbers.settled(exact) and ball_numbers.settled(claimed) and not exact.contains(0):
        return AGREE
    return AGREE if ball_numbers.is_tiny(exact) and ball_numbers.is_tiny(claimed) else OPEN


def _without(missing: Failure, undefined: str) -> str:
    return undefined if missing.kind == "undefined" else TIE if missing.kind == "tie" else OPEN


def is_hopeful(x: Any) -> bool:
    """Whether a failure is one that more bits may resolve."""
    return isinstance(x, Failure) and x.kind == "undecided"


def agreed(exact: Any, claimed: Any, bits: int) -> int:
    """How many leading bits two entries share for certain; as many as there are where both are one number."""
    if isinstance(exact, Failure) or isinstance(claimed, Failure):
        return 0
    gap = abs(exact - claimed)
    if gap < ball_numbers.TINY:
        return bits
    if exact.contains(0) or not gap.is_finite():
        return 0
    mantissa, exponent = (gap / abs(exact)).upper().man_exp()
    return max(0, min(bits, -int(exponent) - int(mantissa.bit_length())))


def nearest(x: Any) -> float | None:
    """The nearest double; None for a failure, and for what no double holds."""
    if isinstance(x, Failure):
        return None
    value = float(x)
    return value if isfinite(value) else None


def beyond(exact: Mapping[int, Any]) -> list[tuple[int, str]]:
    """The entries that are numbers too large for every double, with their digits."""
    known = {i: x for i, x in exact.items() if not isinstance(x, Failure) and not isfinite(float(x))}
    return [(i, ball_numbers.digits(x)) for i, x in known.items() if ball_numbers.settled(x) and x.is_finite()]


def written(exact: Any, claimed: Any, relation: str) -> dict[str, str]:
    """The digits of a pair; of an unequal one as many as it takes to tell them apart."""
    found = [digits(exact), digits(claimed)]
    count = DIGITS
    while relation == DISJOINT and found[0] == found[1] and count < MOST_DIGITS:
        count *= 2
        found = [ball_numbers.digits(exact, count), ball_numbers.digits(claimed, count)]
    return {"exact": found[0], "claimed": found[1]}


def digits(x: Any) -> str:
    return x.reason if isinstance(x, Failure) else ball_numbers.digits(x)
