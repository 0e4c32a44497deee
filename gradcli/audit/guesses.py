"""Decides what the judged calls of pairs say that were recognised by their names.

A pair is a guess, and so is the reading of its derivative. A reading counts where it agrees, but not in whole numbers,
which agree by accident. One that does not agree refutes only where the same reading agreed at another call of the pair,
for two other parts of the derivative, or for other pairs of the same rule in its module or package, of which fewer
agree with nothing. Invented arguments may lie outside of a domain: with these, three other pairs have to agree, none
may disagree, of the rule or of the class, and a pair that agrees at another call is not accused; nor is one that agrees
for an object of which other attributes are set: those may be for its caller to apply. Else the pair is one to LOOK at,
or UNPAIRED. A pair that the file confirms is no guess: its least wrong reading counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Row = dict[str, Any]

LOOK, UNPAIRED = "LOOK", "UNPAIRED"
REFUTING = ("DISAGREES", "INCONCLUSIVE", "SURROGATE")
SLIGHT = 0.01  # relative: a smaller error may be that of an interpolation or of an iteration, which nobody meant
SIBLINGS = 3  # pairs that have to agree, and none that does not, where arguments were invented
ALWAYS = 2**20  # the backing of a reading that agreed at another call
PHRASES = {-1.0: "minus the derivative", 2.0: "twice the derivative", 0.5: "half of the derivative"}


class Support:
    """The readings that agreed, by the rule of their pairs, and who they are of."""

    def __init__(self) -> None:
        self.agreeing: dict[object, set[tuple[str, int, int]]] = defaultdict(set)
        self.unset: dict[tuple[str, int], list[str]] = {}  # of the object of each call, the attributes that are None
        self.failing: dict[object, set[str]] = defaultdict(set)  # pairs of which nothing agreed

    def note(self, key: str, pair: Row, answers: list[Row]) -> None:
        """Take the rows of all calls of a pair."""
        agreeing = 0
        for answer in answers:
            self.unset[key, answer["call"]] = answer.get("unset", [])
            for row in answer.get("checks", []):
                reading = row["reading"]
                agreeing += reading["agrees"] and not reading["flat"]
                if reading["agrees"] and not reading["whole"]:
                    for name in names_of(pair, row, reading["factor"]):
                        self.agreeing[name].add((key, answer["call"], reading["convention"][0]))
        if not agreeing:
            self.failing[family(pair)].add(key)
            self.failing[holder(pair)].add(key)

    def backing(self, key: str, pair: Row, call: int, row: Row, factor: float | str) -> int:
        """How much says that the reading of a row, with a factor, is meant; 0 where nothing does."""
        part, most = row["reading"]["convention"][0], 0
        for name in names_of(pair, row, factor):
            own = [(at, which) for other, at, which in self.agreeing[name] if other == key]
            parts = {which for _, which in own} - {part}
            others = {other for other, _, _ in self.agreeing[name]} - {key}
            calls = {at for at, which in own if which == part} - {call}
            if calls:
                alike = any(self.unset[key, at] == self.unset[key, call] for at in calls)
                return ALWAYS if alike and not pair.get("invented") else 0
            failing = self.failing[family(pair)] - {key}
            enough = len(others) > len(failing)
            if pair.get("invented"):
                enough = len(others) >= SIBLINGS and not failing and not self.failing[holder(pair)] - {key}
            most = max(most, ALWAYS // 2 if len(parts) > 1 else 0, len(others) if enough else 0)
        return most


def family(pair: Row) -> tuple[str, str]:
    """Pairs that are read alike: those of one rule among the functions of a module or the classes of a package.

    Functions that return both say nothing of others, but for methods of one name.
    """
    module, _, name = pair["derivative"].partition(":")
    if pair["value"] == pair["derivative"]:
        return (pair["derivative"], "") if pair.get("invented") else (name.rpartition(".")[2], module.partition(".")[0])
    return pair["rule"], module.partition(".")[0] if "." in name else module


def holder(pair: Row) -> str:
    """The class of a pair, or its module and name: where another pair of a class fails, the object may be a bad one."""
    return str(re.sub(r"(:.*)\.\w+$", r"\1", pair["derivative"]))


def names_of(pair: Row, row: Row, factor: float | str) -> Iterator[object]:
    """What a reading is compared by: the place of its argument behind its part, and the name of its argument."""
    part, axis, output, layout, place = row["reading"]["convention"]
    yield (*family(pair), axis, output, layout, place, factor)
    yield (*family(pair), part, axis, output, layout, row["leaf"], factor)


def settled(gradients: Mapping[str, Row], answers: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The answers with one row for each part of a pair's derivative, whose verdict is what the guess allows."""
    support = Support()
    pairs = {key: record["pair"] for key, record in gradients.items() if record.get("pair")}
    for key, pair in pairs.items():
        support.note(key, pair, answers[key])
    for key, pair in pairs.items():
        answers[key] = [one_row_each(support, key, pair, answer) for answer in answers[key]]
    return answers


def one_row_each(support: Support, key: str, pair: Row, answer: Row) -> Row:
    """The answer of one call."""
    if "checks" not in answer:
        reason = answer.get("error", answer.get("unjudged", ""))
        return answer if pair["confirmed"] or "unjudged" in answer else {**answer, "checks": [unpaired(str(reason))]}
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in answer["checks"]:
        parts[row["reading"]["convention"][0]].append(row)
    rows = [judged(support, key, pair, answer["call"], row) for row in parts.values()]
    return {**answer, "checks": rows or [unpaired("no argument has a shape that fits the derivative's")]}


def unpaired(reason: str) -> Row:
    """The row of a call in which the derivative belongs to no argument."""
    return {"leaf": None, "verdict": UNPAIRED, "message": reason, "evidence": {}}


def judged(support: Support, key: str, pair: Row, call: int, rows: list[Row]) -> Row:
    """The row of one part of a derivative that counts, of those for its readings."""
    backing = [support.backing(key, pair, call, row, 1.0) for row in rows]
    meant = rows[backing.index(max(backing))] if pair["confirmed"] or any(backing) else None
    first = rows[0]
    if first["reading"]["factor"] != 1 and meant is not None and meant["verdict"] not in REFUTING:
        first = meant  # at a kink, say, where another one agrees by accident
    factor = first["reading"]["factor"]
    if first["reading"]["agrees"] and factor != 1:
        number = factor if isinstance(factor, str) else f"{factor:.4g}"
        phrase = f"it is {PHRASES.get(factor, f'{number} times the derivative')} by {first['leaf']}"
        backed = support.backing(key, pair, call, first, factor)
        if pair["confirmed"] or (meant is first and max(backing) >= backed):
            return {**first, "message": f"{phrase}; {first['message']}"}
        return {**first, "verdict": "AGREES" if backed else LOOK, "message": phrase}
    if first["reading"]["agrees"] and first["verdict"] == "DISAGREES":
        return {**first, "verdict": "APPROXIMATE"}
    if first["reading"]["agrees"] or first["verdict"] not in REFUTING:
        return first
    if meant is not None and (meant["reading"]["gap"] > SLIGHT or meant["verdict"] != "DISAGREES"):
        return meant
    return {**first, "verdict": LOOK, "message": f"no derivative by any argument; {first['message']}"}
