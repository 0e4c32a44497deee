"""A finished check goes in, the verdict that its stored evidence alone supports comes out; messages are never read.

This is a second, shorter reading of the ladder: the numbers that a report carries (digits, bits, units in the last
place, slopes, limits) must be enough for anyone to come to the verdict that the report states.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import hypot, inf, isfinite, ulp
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import numpy_reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks import Check

BITS = 56  # what E and R must share to be called equal
TINY = Decimal(2) ** -1074  # an exact value below half of this is matched by 0
ROUGH = ("left", "right", "returned")


def rederive(check: Check) -> str:
    """The verdict by the evidence."""
    evidence: Mapping[str, Any] = check.evidence
    if "codes" in evidence:
        return "ERROR"
    if "counterexample" in evidence:
        return "DISAGREES" if differ(evidence["counterexample"]) else "INCONCLUSIVE"
    if all(key in evidence for key in ROUGH):
        return rough(evidence)
    if undefined(evidence):
        return "UNDEFINED"
    return right(evidence)


def differ(example: Mapping[str, Any]) -> bool:
    """Whether the digits of the exact and the claimed entry are those of different numbers, at a stated point."""
    exact, claimed = number(example["exact"]), number(example["claimed"])
    return bool(example["at"]) and exact != claimed


def number(text: Any) -> Decimal | str:
    """The number that digits stand for; what is not a number stays text."""
    try:
        return Decimal(str(text).split("±")[0].strip("[] ").rstrip("."))
    except InvalidOperation:
        return str(text)


def rough(evidence: Mapping[str, Any]) -> str:
    """KINK, BOUNDARY or DISCONTINUOUS by limits and slopes; what all agree on would be no kink."""
    if "limits" in evidence:
        value, slack = float(evidence["value"]), 1e-6 * max(1.0, abs(float(evidence["value"])))
        jumps = [side for side in evidence["limits"] if side is not None and abs(float(side) - value) > slack]
        if jumps:
            return "DISCONTINUOUS"
    left, right = ([None if x is None else float(x) for x in evidence[side]] for side in ("left", "right"))
    if any(x is None or not isfinite(x) for x in (*left, *right)):
        return "BOUNDARY"
    returned = [float(x) for x in evidence["returned"]]
    slack = float(evidence.get("bound") or 0.0)
    between = all(within(x, a, b, slack) for x, a, b in zip(returned, left, right, strict=False))
    if "inside" in evidence and bool(evidence["inside"]) != between:
        return f"KINK with inside {between}"
    apart = any(abs(a - b) > slack for a, b in zip(left, right, strict=True))  # type: ignore[operator]
    joint = not apart and len(left) >= 1 and "node" in evidence  # partials that exist beside a kink in other directions
    return "KINK" if apart or not between or joint else "smooth"


def within(x: float, a: float | None, b: float | None, slack: float) -> bool:
    assert a is not None and b is not None
    slack += 1e-9 * max(abs(a), abs(b), abs(x))
    return isfinite(x) and min(a, b) - slack <= x <= max(a, b) + slack


def undefined(evidence: Mapping[str, Any]) -> bool:
    """A leaf that holds no number, a node that has no value, or a value that no float could find."""
    if "leaf" in evidence or ("reason" in evidence and "agree_bits" not in evidence):
        return True
    numerical = evidence.get("basis") == "numerical"
    return numerical and not {"points", "steps", "bound"} & set(evidence)


def right(evidence: Mapping[str, Any]) -> str:
    """PROVED, CERTIFIED, IMPRECISE, AGREES or INCONCLUSIVE."""
    oracles: Mapping[str, str] = evidence.get("oracles", {})
    proved = any(told.startswith("proved") for told in oracles.values())
    if proved or enclosed(evidence) or "reading" in evidence:
        if units(evidence) > evidence.get("ulps_limit", inf):
            return "IMPRECISE"
        if proved and not all(holds(sign, evidence["at"]) for sign in evidence.get("region", [])):
            return "PROVED elsewhere"
        return "PROVED" if proved else "CERTIFIED"
    if "agree_bits" not in evidence and any(told.startswith("both sides agree") for told in oracles.values()):
        return "CERTIFIED"
    if evidence.get("independent"):
        return "PROVED"
    basis = evidence.get("basis")
    if basis == "digits" or (basis == "numerical" and "ulps" in evidence):
        return "AGREES"
    if (
        basis == "numerical"
        and evidence.get("points", 0) > 0
        and oracles.get("differences", "agree").startswith("agree")
    ):
        return "AGREES" if float(evidence["bound"]) < 1 else "INCONCLUSIVE"
    return "INCONCLUSIVE"


def holds(sign: str, at: Mapping[str, Any]) -> bool:
    """Whether a sign of the region of a proof is that at the point; words and texts that were cut short say nothing."""
    if "..." in sign or not set(sign) & set("<>=") or any(isinstance(value, str) for value in at.values()):
        return True
    return bool(numpy_reading.read(sign, {name: np.asarray(value, dtype=float) for name, value in at.items()}))


def enclosed(evidence: Mapping[str, Any]) -> bool:
    """Whether E and R are equal to 56 bits, or within a stated tolerance: by bits and, at the point, by digits."""
    if "agree_bits" not in evidence:
        return False
    pairs = [(number(a), number(b)) for a, b in zip(evidence["exact"], evidence["judged"], strict=True)]
    return ("rtol" in evidence or int(evidence["agree_bits"]) >= BITS) and all(
        near(exact, judged, evidence.get("rtol")) for exact, judged in pairs
    )


def near(exact: Decimal | str, judged: Decimal | str, rtol: float | None) -> bool:
    """Whether two numbers of about 25 digits are equal to 56 bits, or both are below the smallest double."""
    if isinstance(exact, str) or isinstance(judged, str):
        return exact == judged  # "... 3 more"
    if abs(exact) <= TINY and abs(judged) <= TINY:
        return True
    slack = Decimal(rtol) if rtol is not None else Decimal(2) ** -BITS + Decimal("1e-24")
    return abs(exact - judged) <= slack * max(abs(exact), abs(judged))


def units(evidence: Mapping[str, Any]) -> float:
    """The stated units in the last place; infinitely many where F and E at the point say that there are more."""
    stated = float(evidence.get("ulps", 0.0))
    floats, exact = evidence.get("float"), evidence.get("exact", [])
    if not isinstance(floats, list) or "rtol" in evidence:
        return stated
    for i, (made, true) in enumerate(zip(floats, map(number, exact), strict=False)):
        value = number(made)
        if isinstance(value, str) or isinstance(true, str) or not value.is_finite():
            continue
        size = float(true)
        if "parts" in evidence:  # a part of a complex number: in units of the whole of it
            size = hypot(size, float(exact[i ^ 1]))
        spacing = Decimal(max(ulp(size), 5e-324))
        if abs(value - true) > spacing * Decimal(1 + 1.001 * min(stated, 1e300)):
            return inf if stated <= evidence.get("ulps_limit", inf) else stated
    return stated
