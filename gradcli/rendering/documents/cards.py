"""The card of a check: its place, what is wrong, the digits side by side, how to reproduce it, and the point.

The evidence is put in an order for readers. The short card omits how a result was obtained; the whole card, and JSON,
have everything.
"""

from __future__ import annotations

import math

from gradcli.base.records import NamedTuple
from gradcli.rendering.diagnostic_text import bare, headline, snippet
from gradcli.rendering.document import GAP, Column, Facts, Grid, Line, Style
from gradcli.rendering.value_text import inline, number, without_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gradcli.rendering.document import Block

TABLES = ("witnesses", "ladder")  # evidence that is shown in a form of its own
EVIDENCE_ENTRIES = 12
CELL_DIGITS = 12
UNDEFINED = "undefined"  # how an entry without a value is shown, such as the slope on a side where there is none
# What a reader wants first; then everything else in the order of the check, the point, and how it was found out.
FIRST = (
    "claim", "diagnosis", "leaf", "entry", "exact", "claimed", "differences", "float", "exact_value", "ulps",
    "ulps_of_the_largest_entry", "ulps_limit", "worst", "wrong", "left", "right", "returned", "limits", "value",
    "inside", "operation", "node", "where", "distance", "rewrite", "region", "not_in_general", "fixed",
)  # fmt: skip
POINT = ("at", "box", "counterexample")
BEHIND = ("agree_bits", "judged", "convention", "pieces", "graph")
LAST = (*BEHIND, "taylor_rates", "noise", "decades", "library", "basis", "compared", "oracles", "seed")
NAMED = ("function",)  # evidence that stands in the title
JUDGED = ("exact", "claimed", "differences", "float", "returned")  # the numbers that disagree: the brightest on a card
SLOPES = ("left", "right", "returned")  # lists with an entry for each entry of the leaf; that of a number stands alone
WORDS = {
    "exact_value": "exact",
    "inside": "lies between",
    "differences": "differences give",
    "decades": "decades of steps",
}


class Replay(NamedTuple):
    """How a check was called: a command that reproduces it, and arrays of the point as they were written, by name."""

    command: str
    point: Mapping[str, str]


def card(check: Any, style: Style, replay: Replay | None = None, whole: bool = True) -> Iterator[Block]:
    """The card of one check; `replay` knows how it was called. Unless `whole`, only the essentials.

    The short card gives a large array of the point by its shape, or as the caller wrote it.
    """
    evidence = arranged(check.evidence)
    parts = {name: evidence.pop(name) for name in (*POINT, *LAST) if name in evidence}
    facts = [*evidence_facts({k: v for k, v in evidence.items() if k not in (*TABLES, *NAMED)}, style)]
    notes = [note for note in check.diagnostics if check.verdict != "ERROR"]
    shown = [note for note in notes if note.source is not None and note.span is not None]
    facts += [(note.code, headline(note), "note") for note in notes if note not in shown]
    if replay is not None and replay.command:
        facts.append(("reproduce", replay.command, "code"))
    if not whole and isinstance(parts.get("at"), dict):
        replay = None if "dodged" in evidence else replay  # which moved the point
        parts["at"] = {name: shortened(name, value, replay) for name, value in parts["at"].items()}
    essential = (*POINT, "convention") if check.verdict == "DISAGREES" else POINT  # at complex points
    facts += evidence_facts({name: parts[name] for name in parts if whole or name in essential}, style)
    if not facts and not shown:
        return
    yield from title(check)
    for note in shown[:1]:
        yield Line("\n".join(snippet(note, note.span, bare)), "code")  # its text is the message of the check
    if facts:
        yield Facts(tuple(facts))
    yield from tables(evidence, style)


def shortened(name: str, value: Any, replay: Replay | None) -> Any:
    """A value of the point as the caller wrote it, such as `randn(4, 5)`, or the shape of a large array."""
    if replay is not None and name in replay.point:
        return replay.point[name]
    shape, inner = [], value
    while isinstance(inner, list) and inner:
        shape.append(len(inner))
        inner = inner[0]
    return f"{' x '.join(map(str, shape))} numbers" if math.prod(shape) > EVIDENCE_ENTRIES else value


def table_card(check: Any, style: Style) -> Iterator[Block]:
    """The witnesses and finite differences of one check, without its other evidence."""
    yield from title(check)
    yield from tables(check.evidence, style)


def tables(evidence: Mapping[str, Any], style: Style) -> Iterator[Block]:
    """The parts of the evidence that are tables of their own."""
    if isinstance(evidence.get("witnesses"), dict):
        yield from witness_table(evidence["witnesses"], style)
    if isinstance(evidence.get("ladder"), dict):
        from gradcli.base.results.curves import step_sequence
        from gradcli.rendering.documents.convergence import convergence  # few reports have one

        yield from convergence(step_sequence(evidence["ladder"]), style)


def witness_table(table: Mapping[str, Any], style: Style) -> Iterator[Block]:
    """A row for the checked derivative and each witness; below them formulas, and reasons for missing values."""
    rows = tuple(
        (row["witness"], witness_value(row, style), error_bound(row), "" if at == 0 else agreement(row))
        for at, row in enumerate(table["rows"])
        if "value" in row
    )
    judged = str(table["rows"][0]["witness"])
    name = {"claim": "the claim", "hand-written rule": "the rule"}.get(judged, judged)
    columns = (
        Column("witness"),
        Column("derivative", "digits"),
        Column("bound", "number", 1),
        Column(f"agrees with {name}", "text"),
    )
    entry = f"worst entry: {table['entry']}" if table["entry"] else ""
    yield Grid(columns, rows, note=entry)
    notes = [(f"{row['witness']}'s formula:", row["formula"], "code") for row in table["rows"] if row.get("formula")]
    without: dict[str, list[str]] = {}
    for row in table["rows"]:
        if "reason" in row:
            without.setdefault(row["reason"], []).append(row["witness"])
    notes += [(f"{', '.join(names)}:", reason, "note") for reason, names in without.items()]
    if notes:
        yield GAP
        yield Facts(tuple(notes))


def witness_value(row: Mapping[str, Any], style: Style) -> str:
    """The digits of a witness; of an approximation, only the digits that its error bound guarantees."""
    value, bound = float(row["value"]), float(row.get("bound") or 0.0)
    if style.digits is not None:
        return number(value, style.digits)
    if not 0.0 < bound < abs(value) or row["witness"] != "finite difference":
        return without_zero(str(row["value"]))
    return number(value, max(1, min(17, 1 + math.ceil(math.log10(abs(value) / bound)))))


def error_bound(row: Mapping[str, Any]) -> str:
    """The error bound of a witness, if it has one."""
    bound = row.get("bound")
    return "" if bound is None else "exact" if bound == 0 else f"{float(bound):.0e}"


def agreement(row: Mapping[str, Any]) -> str:
    """Whether a witness agrees with the checked derivative, and to how many digits."""
    digits = f"{row['digits']} digit{'' if row['digits'] == 1 else 's'}"
    return (digits if row["digits"] else "yes") if row["agrees"] else f"no, {digits}"


def title(check: Any) -> Iterator[Block]:
    """The first line of a card: the verdict, what was checked, and its line."""
    yield GAP
    place = f", line {check.line}" if check.line else ""
    yield Line(f"{check.verdict} {subject(check)}{place}", card_role(check))


def subject(check: Any) -> str:
    """What was checked: `gradient x`, or the function that was written by hand, as `softmax_backward: x`."""
    function = check.evidence.get("function")
    return ": ".join(filter(None, (function, check.leaf))) if function else f"{check.kind} {check.leaf or ''}".rstrip()


def card_role(check: Any) -> str:
    """The colour of a verdict: that of an error if the check failed, of a warning if it is undecided."""
    return "good" if check.passed else "doubt" if check.verdict == "INCONCLUSIVE" else "bad"


def arranged(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence in the order for readers, with the parts of a counterexample among the rest."""
    known = dict(evidence)
    counterexample = known.pop("counterexample", None)
    if isinstance(counterexample, dict):
        elsewhere = counterexample.get("at") != known.get("at")
        whole = {
            f"{name} entries": known[name] for name in ("exact", "claimed") if name in known and name in counterexample
        }
        known |= {**whole, **{name: value for name, value in counterexample.items() if name != "at" or not elsewhere}}
        if elsewhere and counterexample.get("at"):
            known["counterexample"] = {"at": counterexample["at"]}
    if "exact" in known:
        known.pop("exact_value", None)  # the same number with fewer digits
    order = {name: place for place, name in enumerate(FIRST)}
    order |= {name: len(FIRST) + 1 + place for place, name in enumerate((*POINT, *LAST))}
    return {name: known[name] for name in sorted(known, key=lambda name: order.get(name, len(FIRST)))}


def evidence_facts(evidence: Mapping[str, Any], style: Style) -> Iterator[tuple[str, str, str]]:
    """Evidence as names and texts: a line for each item of a list and part of a structure; empty ones are omitted."""
    for name, value in evidence.items():
        label = WORDS.get(name, str(name).replace("_", " "))
        if name == "compared" and isinstance(value, list):
            value = compared(value)
        if name == "taylor_rates" and isinstance(value, list):
            value = f"{evidence_text(value, style)}, where 2 is right and 1 is wrong"
        if name in SLOPES and isinstance(value, list) and len(value) == 1:
            value = value[0]
        for line in evidence_lines(value, style):
            yield (label, line, "key" if name in JUDGED else "code" if name == "claim" else "text")
            label = ""
        if name == "diagnosis" and isinstance(value, list):
            yield from corrected(value)
        exact = evidence.get("exact")
        if name == "claimed" and isinstance(exact, str) and isinstance(value, str):
            yield from parting(exact, value)


def corrected(readings: list[Any]) -> Iterator[tuple[str, str, str]]:
    """The right formula according to the diagnosis, line by line."""
    correction = next(
        (reading["correction"] for reading in readings if isinstance(reading, dict) and reading.get("correction")), ""
    )
    label = "correct"
    for line in correction.splitlines():
        yield (label, line, "code")
        label = ""


def compared(points: list[Any]) -> Any:
    """How the exact and the checked entries compare, for each point: `= to 128 bits`."""
    if not all(isinstance(point, dict) and "relations" in point for point in points):
        return points
    bits = [f" to {point['bits']} bits" if point.get("bits") is not None else "" for point in points]
    return ", ".join(f"{point['relations']}{phrase}" for point, phrase in zip(points, bits, strict=True))


def parting(exact: str, claimed: str) -> Iterator[tuple[str, str, str]]:
    """A line with a mark under the first digit in which two numbers differ, if their first digits are equal."""
    same = next((at for at, pair in enumerate(zip(exact, claimed, strict=False)) if len(set(pair)) > 1), None)
    if same is not None and any(digit in "123456789" for digit in exact[:same]) and scale(exact) == scale(claimed):
        yield ("", " " * same + "^ differs from here", "note")


def scale(digits: str) -> tuple[str, int]:
    """The exponent and the position of the decimal point: digits of numbers with the same scale are aligned."""
    mantissa, _, power = digits.partition("e")
    return power, mantissa.find(".")


def evidence_lines(value: Any, style: Style) -> Iterator[str]:
    """A value as lines: the numbers of a point on one line, everything else on a line each."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):  # a reading: its sentence says it all
        yield value["text"]
    elif isinstance(value, dict) and not all(map(is_number, value.values())):
        parts = {str(key): evidence_text(item, style) for key, item in value.items() if not is_empty(item)}
        cells = max(map(len, parts), default=0)
        yield from (f"{key.ljust(cells)}  {text}" for key, text in parts.items())
    elif is_table(value):
        yield from table_lines(value[:EVIDENCE_ENTRIES], style)
    elif isinstance(value, list | tuple) and any(entry is None or isinstance(entry, str | dict) for entry in value):
        for entry in value[:EVIDENCE_ENTRIES]:
            yield from evidence_lines(UNDEFINED if entry is None else entry, style)
        if len(value) > EVIDENCE_ENTRIES:
            yield f"... {len(value) - EVIDENCE_ENTRIES} more"
    elif not is_empty(value):
        yield evidence_text(value, style)


def is_table(value: object) -> bool:
    """Whether a value is a list of rows: structures with the same parts that are not readings."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(row, dict) for row in value):
        return False
    return len({tuple(row) for row in value}) == 1 and "text" not in value[0] and len(value[0]) > 1


def table_lines(rows: Any, style: Style) -> Iterator[str]:
    """Rows under their titles, numbers to the right."""
    cells = [[str(key) for key in rows[0]]]
    cells += [[table_cell(item, style) for item in row.values()] for row in rows]
    right = [all(is_number(row[key]) for row in rows) for key in rows[0]]
    widths = [max(len(line[at]) for line in cells) for at in range(len(right))]
    for line in cells:
        shown = [text.rjust(w) if end else text.ljust(w) for text, w, end in zip(line, widths, right, strict=True)]
        yield "  ".join(shown).rstrip()


def table_cell(value: Any, style: Style) -> str:
    """A value as a cell: numbers with few digits, so that the columns fit."""
    return number(value, style.digits or CELL_DIGITS) if isinstance(value, float) else evidence_text(value, style)


def is_number(value: object) -> bool:
    return isinstance(value, int | float | complex)


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | dict | list | tuple) and not value)


def evidence_text(value: Any, style: Style) -> str:
    """A value on one line."""
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {evidence_text(item, style)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        shown = [evidence_text(item, style) for item in value[:EVIDENCE_ENTRIES]]
        rest = len(value) - len(shown)
        return f"[{', '.join(shown)}{f', ... {rest} more' if rest else ''}]"
    return without_zero(inline(value, style.digits, EVIDENCE_ENTRIES))
