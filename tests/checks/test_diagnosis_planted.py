"""Wrong derivations with one planted mistake go in: the mistake is among the readings, nearly always the only one.

The normal suite takes a few formulas of each kind, the deep one all of them; both print a table.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gradcli.checks import check_script
from tests.support.planted import FORMULAS, KINDS, POINT, Planted, by_kind, right

# what a reading may be called that names a planted mistake
NAMES: dict[str, tuple[str, ...]] = {
    "chain factor dropped": ("chain factor dropped", "inner derivative dropped"),
    "product term dropped": ("product term dropped",),
    "exponent not lowered": ("exponent not lowered",),
    "power factor forgotten": ("power factor forgotten",),
    "quotient sign": ("quotient sign",),
    "denominator not squared": ("denominator not squared",),
    "sign of cos": ("wrong sign",),
    "half of sqrt": ("half forgotten",),
    "term dropped": ("term dropped",),
    "another function": ("another function",),
    "wrong sign": ("wrong sign", "quotient sign"),
    "factor dropped": ("chain factor dropped", "constant factor"),
    "product of derivatives": ("product of derivatives",),
    "product sign": ("wrong sign",),
    "quotient of derivatives": ("quotient of derivatives",),
    "not differentiated": ("not differentiated",),
    "power rule on the exponent": ("power rule on the exponent",),
    "constant factor": ("constant factor",),
    "whole sign": ("wrong sign",),
    "swapped leaves": ("swapped",),
}
AS_A_WHOLE = ("constant factor", "whole sign", "swapped leaves")
SLICE, ALL = 5, 1000  # formulas of each kind
FOUND, UNIQUE = 0.95, 0.75


def matches(planted: Planted, reading: dict[str, Any]) -> bool:
    """Whether a reading names a planted mistake, and a place inside the subexpression in which it was made."""
    wanted = NAMES[planted.kind]
    if planted.kind in AS_A_WHOLE:
        return reading["name"] in wanted
    places = [{**reading, "name": name} for name in (reading["name"], reading.get("cause"))]
    places += reading.get("places", [])
    first, last = planted.span
    return any(
        place["name"] in wanted and place.get("span") and first <= place["span"][1] and place["span"][3] <= last
        for place in places
    )


def diagnosed(formula: str, leaf: str, claim: str) -> list[dict[str, Any]] | None:
    """The readings of a claim about a formula; None where it is not refuted, for a mistake may change nothing."""
    report = check_script(formula, at=POINT, claims={leaf: claim}, wrt=[leaf])
    found = next(check for check in report.checks if check.kind == "claim")
    if found.verdict != "DISAGREES":
        return None
    readings: Any = found.evidence.get("diagnosis", [])
    for reading in readings:
        assert reading["name"] in ("zero", "unexplained") or reading["text"].startswith("consistent with ")
    assert len(readings) <= 3
    return list(readings)


def chosen(planted: list[Planted], most: int) -> list[Planted]:
    """Some mistakes of one kind, each in another formula; a claim that is a number speaks of one point, and a claim that
    is zero needs no reading."""
    shuffled = sorted(planted)
    Random(len(planted)).shuffle(shuffled)
    kept: dict[str, Planted] = {}
    for one in shuffled:
        if any(leaf in one.claim for leaf in POINT):
            kept.setdefault(one.formula, one)
    return list(kept.values())[:most]


def table(most: int) -> list[tuple[str, int, int, int]]:
    """For each kind: how many mistakes were refuted, how many were found, and how many were the only reading."""
    rows = []
    for kind, planted in by_kind().items():
        count = found = unique = 0
        for one in chosen(planted, most):
            readings = diagnosed(one.formula, one.leaf, one.claim)
            if readings is None or (readings and readings[0]["name"] == "zero"):
                continue
            hit = any(matches(one, reading) for reading in readings)
            count, found, unique = count + 1, found + hit, unique + (hit and len(readings) == 1)
        rows.append((kind, count, found, unique))
    return rows


def printed(rows: list[tuple[str, int, int, int]]) -> tuple[int, int, int]:
    """The totals; the table goes to the test's output."""
    total = (sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows))
    for kind, count, found, unique in [*rows, ("all", *total)]:
        print(f"{kind:28} planted {count:4}  among the readings {found:4}  the only one {unique:4}")
    return total


def law(rows: list[tuple[str, int, int, int]], fewest: int) -> None:
    count, found, unique = printed(rows)
    assert all(row[1] >= fewest for row in rows)
    assert found >= FOUND * count
    assert unique >= UNIQUE * count


def test_the_planted_mistake_is_found() -> None:
    law(table(SLICE), SLICE - 1)


@pytest.mark.deep
def test_the_planted_mistake_is_found_in_all_formulas() -> None:
    law(table(ALL), 20)


def test_every_kind_is_planted_in_twenty_formulas() -> None:
    planted = by_kind()
    assert set(planted) == set(KINDS) == set(NAMES)
    for kind in KINDS:
        assert len({one.formula for one in planted[kind]}) >= 20, kind


@pytest.mark.parametrize("formula", FORMULAS[::7])
def test_the_student_without_a_mistake_is_right(formula: str) -> None:
    assert diagnosed(formula, "x", right(formula, "x")) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "swapped leaves"])
def test_the_correction_is_right(kind: str) -> None:
    """What a reading gives as the right formula is one, when it is claimed."""
    seen = 0
    for one in chosen(by_kind()[kind], 2):
        for reading in diagnosed(one.formula, one.leaf, one.claim) or []:
            if "correction" in reading:
                seen += 1
                assert diagnosed(one.formula, one.leaf, reading["correction"]) is None
    assert seen


def foreign(most: int) -> list[tuple[str, str]]:
    """Formulas with the derivative of another formula."""
    step = len(FORMULAS) // 2 + 1
    return [(one, right(FORMULAS[(i + step) % len(FORMULAS)], "x")) for i, one in enumerate(FORMULAS[:most])]


def test_what_no_slip_explains_is_said_to_be_unexplained() -> None:
    """The derivative of another formula is no slip: at most one in twenty looks like one."""
    pairs = foreign(20)
    found = [diagnosed(formula, "x", claim) or [] for formula, claim in pairs]
    wrongly = [
        readings
        for readings in found
        if any("mistake" in one["text"] and one["name"] != "unexplained" for one in readings)
    ]
    assert len(wrongly) <= len(pairs) // 20
    assert sum(bool(readings) and readings[0]["name"] == "unexplained" for readings in found) >= len(pairs) * 2 // 3
