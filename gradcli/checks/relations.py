"""Exact and claimed entries as balls go in, how each pair stands to each other comes out, as plain data.

Balls that do not meet are unequal for certain; balls that meet are equal as far as their bits go, and only 56 of them,
or a size below the smallest double, make that an agreement.
"""

from __future__ import annotations

from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.checks import balls
from gradcli.checks.entries import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = dict[str, Any]

DETAILS = 8  # entries whose digits are written out
AGREE, DISJOINT, OPEN, CLOSE, NO_EXACT, NO_CLAIMED = "=", "!", "?", "~", "E", "R"


def compared(
    exact: Callable[[int], Mapping[int, Any]],
    claimed: Callable[[int], Mapping[int, Any]],
    entries: Sequence[int],
    rtol: float | None,
    seconds: float,
) -> Answer:
    """The relation of each entry, decided with as few bits as will do."""
    started = monotonic()
    relations: dict[int, str] = {}
    one: Mapping[int, Any] = {}
    other: Mapping[int, Any] = {}
    for bits in balls.doubling():
        with balls.precision(bits):
            one, other = exact(bits), claimed(bits)
            relations = {i: relation(one[i], other[i], rtol) for i in entries}
        if OPEN not in relations.values() or monotonic() - started > seconds / 3:
            break
    order = sorted(entries, key=lambda i: "!ER?~=".index(relations[i]))
    failure = next((x for i in order for x in (one[i], other[i]) if isinstance(x, Failure)), None)
    return {
        "region": True,
        "relations": "".join(relations[i] for i in entries),
        "entries": list(entries),
        "exact": [nearest(one[i]) for i in entries],
        "claimed": [nearest(other[i]) for i in entries],
        "details": [
            {"entry": i, "relation": relations[i], "exact": digits(one[i]), "claimed": digits(other[i])}
            for i in order[:DETAILS]
        ],
        "reason": None if failure is None else failure.reason,
        "bits": bits,
    }


def relation(exact: Any, claimed: Any, rtol: float | None) -> str:
    for x, code in ((exact, NO_EXACT), (claimed, NO_CLAIMED)):
        if isinstance(x, Failure):
            return code if x.kind == "undefined" else OPEN
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


def nearest(x: Any) -> float | None:
    """The nearest double; None for a failure, and for what no double holds."""
    if isinstance(x, Failure):
        return None
    value = float(x)
    return value if isfinite(value) else None


def digits(x: Any) -> str:
    return x.reason if isinstance(x, Failure) else balls.digits(x)
