"""Exact and claimed entries as balls go in, how each pair stands to each other comes out, as plain data.

Balls that do not meet are unequal for certain; balls that meet are equal as far as their bits go, and only 56 of them,
or a size below the smallest double, make that an agreement.
"""

from __future__ import annotations

from math import isfinite, log
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.checks import balls
from gradcli.checks.entries import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = dict[str, Any]

LOG_2 = log(2)
DIGITS = 25
MOST_DIGITS = 800
DETAILS = 8  # entries whose digits are written out
AGREE, DISJOINT, OPEN, CLOSE, NO_EXACT, NO_CLAIMED, TIE = "=", "!", "?", "~", "E", "R", "T"
HOPEFUL = "undecided"  # the kind of failure that more bits may mend


def compared(
    exact: Callable[[int], Mapping[int, Any]],
    claimed: Callable[[int], Mapping[int, Any]],
    entries: Sequence[int],
    rtol: float | None,
    seconds: float,
) -> Answer:
    """The relation of each entry, decided with as few bits as will do; `agreed` are the bits that all pairs share."""
    end = monotonic() + seconds / 3
    relations: dict[int, str] = {}
    one: Mapping[int, Any] = {}
    other: Mapping[int, Any] = {}
    for bits in balls.doubling():
        with balls.precision(bits):
            one, other = exact(bits), claimed(bits)
            relations = {i: relation(one[i], other[i], rtol) for i in entries}
        undecided = [i for i in entries if relations[i] == OPEN and hopeful(one[i]) and hopeful(other[i])]
        if not undecided or monotonic() > end:
            break
    order = sorted(entries, key=lambda i: "!TER?~=".index(relations[i]))
    failure = next((x for i in order for x in (one[i], other[i]) if isinstance(x, Failure)), None)
    return {
        "region": True,
        "relations": "".join([relations[i] for i in entries]),
        "entries": list(entries),
        "exact": [nearest(one[i]) for i in entries],
        "claimed": [nearest(other[i]) for i in entries],
        "details": [
            {"entry": i, "relation": relations[i], **written(one[i], other[i], relations[i])} for i in order[:DETAILS]
        ],
        "reason": None if failure is None else failure.reason,
        "node": None if failure is None else failure.node,
        "bits": bits,
        "agreed": min((agreed(one[i], other[i], bits) for i in entries), default=bits),
    }


def speaks(relations: str) -> bool:
    """Whether a point beside the given one is evidence: both sides agree there, or differ for certain."""
    return DISJOINT in relations or not set(relations) & {NO_EXACT, NO_CLAIMED, TIE, OPEN}


def relation(exact: Any, claimed: Any, rtol: float | None) -> str:
    for x, code in ((exact, NO_EXACT), (claimed, NO_CLAIMED)):
        if isinstance(x, Failure):
            return code if x.kind == "undefined" else TIE if x.kind == "tie" else OPEN
    if claimed.is_zero() and balls.is_tiny(exact):
        return AGREE  # no double is nearer than 0
    if not exact.overlaps(claimed):
        if rtol is not None and abs(exact - claimed) <= rtol * abs(exact).max(abs(claimed)):
            return CLOSE
        return DISJOINT
    if balls.is_tiny(exact) and balls.is_tiny(claimed):
        return AGREE
    if balls.settled(exact) and balls.settled(claimed) and not exact.contains(0):
        return AGREE
    return OPEN


def hopeful(x: Any) -> bool:
    """Whether more bits may tell more of an entry."""
    return not isinstance(x, Failure) or x.kind == HOPEFUL


def agreed(exact: Any, claimed: Any, bits: int) -> int:
    """How many leading bits two entries share for certain; as many as there are where both are one number."""
    if isinstance(exact, Failure) or isinstance(claimed, Failure):
        return 0
    gap = exact - claimed
    if gap.is_zero() or balls.is_tiny(gap):
        return bits
    found = -float((abs(gap) / abs(exact)).upper().log().upper()) / LOG_2 if not exact.contains(0) else 0.0
    return max(0, min(bits, int(found))) if isfinite(found) else 0


def nearest(x: Any) -> float | None:
    """The nearest double; None for a failure, and for what no double holds."""
    if isinstance(x, Failure):
        return None
    value = float(x)
    return value if isfinite(value) else None


def written(exact: Any, claimed: Any, relation: str) -> dict[str, str]:
    """The digits of a pair; of an unequal one as many as it takes to tell them apart."""
    found = [digits(exact), digits(claimed)]
    count = DIGITS
    while relation == DISJOINT and found[0] == found[1] and count < MOST_DIGITS:
        count *= 2
        found = [balls.digits(exact, count), balls.digits(claimed, count)]
    return {"exact": found[0], "claimed": found[1]}


def digits(x: Any) -> str:
    return x.reason if isinstance(x, Failure) else balls.digits(x)
