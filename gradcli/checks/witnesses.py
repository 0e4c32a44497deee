"""Witnesses of one derivative: reverse mode, the exact enclosure, SymPy, and finite differences with their convergence.

They are for people to look at. The verdict has been reached before, and none of them changes it.
"""

from __future__ import annotations

from contextlib import suppress
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.checks.decide.case import Case, parts_of
from gradcli.checks.decide.floats import LIMIT_ULPS, moving, ulps
from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import UNMOVED, Neighbourhood, suspicious
from gradcli.checks.differences.survey import FAR
from gradcli.checks.formatting import plain
from gradcli.checks.oracle.oracle_client import NoAnswer
from gradcli.graph.arrays import subscript
from gradcli.primitives.comparison import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.decide.case import Outcome
    from gradcli.checks.differences.step_sequences import Differences
    from gradcli.checks.differences.survey import SlopeFinding
    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject

    Row = dict[str, Any]

WITNESSES = ("reverse", "enclosure", "sympy", "differences")
GROUPS: dict[str, tuple[str, ...]] = {"none": (), "all": WITNESSES}
NAMES = {
    "reverse": "reverse mode",
    "enclosure": "exact enclosure",
    "sympy": "SymPy",
    "differences": "finite difference",
    "claim": "claim",
    "vjp": "hand-written rule",
}
WITHOUT = ("UNDEFINED", "ERROR", "CRASHED")  # verdicts on points where there is nothing to look at
MOST_ENTRIES = 1000  # of which the worst one is looked for; of more it is the largest
MOST_DIGITS = 16


def parse_witnesses(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """The witnesses of a text, "all", "none", or names with commas between them, or of some names; None is all.

    Raises GradcliError GC721 for a word that is no witness.

    >>> parse_witnesses("sympy, differences")
    ('sympy', 'differences')
    >>> parse_witnesses("none")
    ()
    """
    texts = WITNESSES if text is None else [text] if isinstance(text, str) else text
    words = [word.strip().lower() for word in ",".join(texts).split(",")]
    if len(words) == 1 and words[0] in GROUPS:
        return GROUPS[words[0]]
    for word in words:
        if word not in WITNESSES:
            guess = did_you_mean(word, WITNESSES)
            hint = f"did you mean `{guess}`?" if guess else f"write all, none, or some of {', '.join(WITNESSES)}"
            raise error("GC721", f"unknown witness `{visible(word)}`", help=hint)
    return tuple(word for word in WITNESSES if word in words)


def tables(exact: Exact, subject: Subject, outcome: Outcome) -> Row:
    """What is shown beside a verdict: with `steps` the `ladder`, and where any are chosen the `witnesses`.

    Both are about the entry where what is judged and the exact derivative differ most. Nothing where there is no
    derivative.
    """
    if subject.output is None or subject.target is None or not subject.target.type.size:
        return {}
    case, settings = Case(exact, subject), subject.settings
    chosen, steps = () if outcome.verdict in WITHOUT else settings.witnesses, settings.steps and not case.plane
    if not chosen and not steps:
        return {}
    shown_rows: Row = {}
    with exact.oracle:
        exact.begin()
        judged = case.judged_floats(subject.values)
        entry, true = worst(case, judged) if steps or judged.size > 1 else (0, None)
        if steps and (seen := differences_at(case, entry)).steps.size:
            title = f"the derivative in {subject.leaf or subject.text}{subscript(entry, case.target.type.shape)}"
            shown_rows["ladder"] = seen.convergence(title, float(judged[entry]), true).evidence()
        if chosen:
            shown_rows["witnesses"] = witness_table(case, entry, float(judged[entry]), chosen)
    return dict(plain(shown_rows))


def witness_table(case: Case, entry: int, judged: float, chosen: tuple[str, ...]) -> Row:
    """What is judged and the chosen witnesses, at one entry.

    The first row is what is judged. Each row has a `witness`, and a `value` or the `reason` why there is none; `digits`
    are the decimal ones that agree with the value that is judged, and `agrees` says whether no more than these can.
    """
    kind = case.subject.kind
    rows: list[Row] = [{"witness": NAMES["reverse" if kind == "gradient" else kind], "value": repr(judged)}]
    for name in chosen:
        try:
            row = ROW_OF[name](case, entry)
        except NoAnswer as reason:
            row = {"reason": str(reason)}
        if row is not None:
            rows.append({"witness": NAMES[name], **compared(judged, row, case.dtype)})
    return {"entry": case.entry(entry), "rows": rows}


def worst(case: Case, judged: Any) -> tuple[int, float | None]:
    """The entry that is farthest from the exact derivative, in ulp, else the largest; and what is exact there."""
    away, exact = np.abs(judged), None
    if judged.size <= MOST_ENTRIES:
        with suppress(NoAnswer):
            for point in case.compare([case.values]).get("points", ()):
                if point["region"] and None not in point["exact"]:
                    exact = point["exact"]
                    off = np.array([ulps(float(x), y, case.dtype) for x, y in zip(judged, exact, strict=True)])
                    away = off if off.any() else away
    entry = int(np.argmax(np.nan_to_num(away, nan=np.inf)))
    return entry, None if exact is None else exact[entry]


# --- the witnesses ------------------------------------------------------------------------------------------------


def reverse(case: Case, entry: int) -> Row | None:
    """The engine's own gradient, where a claim or a hand-written rule is judged."""
    if case.subject.engine is None:
        return None
    return {"value": repr(float(parts_of(case.doubles([case.subject.engine])[0])[entry]))}


def enclosure(case: Case, entry: int) -> Row:
    """The derivative enclosed in balls by power series of the value."""
    answer = case.exact.ask("enclosure", derivative=case.subject.derivative(entries=[entry]))
    if answer.get("problem") != "tie":
        return answer
    symbols = {comparison.name: symbol for symbol, comparison in COMPARISONS.items()}
    return {"reason": f"branches of {symbols.get(answer['reason'], answer['reason'])} meet at the point"}


def sympy(case: Case, entry: int) -> Row:
    """SymPy's derivative of the forward program."""
    if case.plane:
        return {"reason": "SymPy is used at real points only"}
    return case.exact.ask("sympy", output=case.output, target=case.target, entry=entry, point=case.values)


def finite_difference(case: Case, entry: int) -> Row:
    """Central differences of the value in float64, with a bound on their error."""
    seen = differences_at(case, entry)
    if seen.estimate.reason in (None, UNMOVED) and suspicious(seen):  # abs(x) is the same on both sides of 0
        return {"reason": "the slopes on the two sides of the point differ"}
    return differences_row(seen)


def differences_at(case: Case, entry: int) -> Differences:
    """The differences of the value by one entry."""
    f, x = moving(case.output, case.target, case.values)
    near = Neighbourhood(f, x, None if case.plane else case.subject.domain)
    ((seen,),) = near.differences([near.axis(entry)])
    return seen


def differences_row(seen: Differences) -> Row:
    """The row of finite differences; `compared` removes `seen`."""
    value, bound, reason = seen.estimate
    return {"value": repr(float(value)), "bound": bound, "seen": seen} if reason is None else {"reason": reason}


ROW_OF = dict(zip(WITNESSES, (reverse, enclosure, sympy, finite_difference), strict=True))


# --- a black box --------------------------------------------------------------------------------------------------


def of_black_box(judged: str, finding: SlopeFinding, entry: str) -> Row:
    """The table of a function that only has values: its claim and the differences."""
    none = {"reason": "a black box: it has values but no formula"}
    seen = compared(finding.claimed, differences_row(finding.seen), "float64")
    rows = {"enclosure": none, "sympy": none, "differences": seen}
    first = {"witness": judged, "value": repr(float(finding.claimed))}
    return {"entry": entry, "rows": [first, *({"witness": NAMES[name], **row} for name, row in rows.items())]}


def selected(evidence: dict[str, Any], chosen: tuple[str, ...]) -> dict[str, Any]:
    """Evidence with the chosen witnesses alone beside what is judged."""
    rest = {key: value for key, value in evidence.items() if key != "witnesses"}
    if not chosen or "witnesses" not in evidence:
        return rest
    table, names = evidence["witnesses"], [NAMES[name] for name in chosen]
    first, *rows = table["rows"]
    return {**rest, "witnesses": {**table, "rows": [first, *(row for row in rows if row["witness"] in names)]}}


# --- how far they agree -------------------------------------------------------------------------------------------


def compared(judged: float, row: Row, dtype: str) -> Row:
    """The row of a witness, with the digits that agree with what is judged, and whether the gap is within its error."""
    if "reason" in row:
        return {"reason": row["reason"]}
    row = dict(row)
    value, seen = float(row["value"]), row.pop("seen", None)
    if seen is None:
        agrees = ulps(judged, value, dtype) <= LIMIT_ULPS
    else:
        agrees = abs(judged - value) <= FAR * row["bound"] or not step_sequences.contradicts(seen, judged)
    large = not isfinite(value)  # a number that no double holds
    small = value == 0.0 and row["value"] not in ("0", "0.0", "-0.0")
    digits = 0 if large or small else common_digits(judged, value)
    return {**row, "agrees": agrees and not large, "digits": digits}


def common_digits(first: float, second: float) -> int:
    """The decimal digits that two numbers share, 16 where they are the same double.

    >>> common_digits(0.5, 0.5), common_digits(1.2345, 1.2346), common_digits(1.0, -1.0)
    (16, 4, 0)
    """
    size = max(abs(first), abs(second))
    if first == second:
        return MOST_DIGITS
    gap = abs(first - second) / size
    return max(0, min(MOST_DIGITS, floor(-log10(gap)))) if isfinite(gap) and gap > 0 else 0
