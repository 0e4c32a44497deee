"""Measures how many units in the last place the floats of a right rule are off: IMPRECISE where that is too many.

The rule is right; only the number is judged here, entry by entry, and the node that loses the digits is named. The same
is done for floats of which no claim is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Diagnostic
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.floats import LIMIT_ULPS, kind_of, ulps
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.formatting import node_text
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.graph.node import dependents, reachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.decide.case import Case, Evidence, Floats, Values
    from gradcli.checks.subjects import Surface
    from gradcli.graph.node import Node

    Entry = Mapping[str, Any]


ROUNDED = 4  # times that the data are rounded otherwise
TOLERATED = 16.0  # times the change that this makes
MOST_NODES = 2000
MOST_ENTRIES = 20_000
SECONDS = 20.0  # a safety net: budgets of operations end long before it
DIGITS = tuple("0123456789")
UNKNOWN = "not known"  # of an exact value that no enclosure has
BESIDE = 2.0**-20  # so far an entry is moved to see what moves with it
MOST_WORK = 200_000  # operations on single entries: of a longer loop nothing is known


class Worst(NamedTuple):
    """The float that is farthest off its exact value, in ulp; the exact value is its digits where no double is near."""

    ulps: float
    values: Values
    entry: int = 0
    value: float = 0.0
    exact: float | str = 0.0


def float_quality(case: Case, compared: Sequence[tuple[Values, Any]]) -> Outcome | None:
    """IMPRECISE where a float value is far from the exact one; else the figure goes into the evidence."""
    rtol = case.subject.rtol or 0.0
    worst, normwise = Worst(0.0, case.values), 0.0
    small: list[tuple[Values, dict[int, float]]] = []  # entries that are far off beside themselves, and by how much
    for values, answer in compared:
        far: dict[int, float] = {}
        floats = case.judged_floats(values)
        known = {i: x for i, x in zip(answer["entries"], answer["exact"], strict=True) if x is not None}
        largest = max(map(abs, known.values()), default=0.0)
        for entry, exact in known.items():
            value = float(floats[entry])
            if abs(value - exact) <= rtol * abs(exact):
                continue
            off = ulps(value, exact, case.dtype, abs(complex(exact, known.get(entry ^ 1, 0))) if case.plane else None)
            if off > LIMIT_ULPS:
                far[entry] = abs(value - exact)
            if off > worst.ulps:
                worst = Worst(off, values, entry, value, exact)
            normwise = max(normwise, ulps(value, exact, case.dtype, largest))
        small += [(values, far)] if far else []
        beyond = dict(answer.get("beyond", ()))
        lost = [i for i in answer["entries"] if i not in known and i not in beyond and not np.isfinite(floats[i])]
        for entry, digits in {**dict.fromkeys(lost, UNKNOWN), **beyond}.items() if np.isfinite(worst.ulps) else ():
            worst, normwise = Worst(np.inf, values, entry, float(floats[entry]), digits), np.inf
    case.quality = {"ulps": worst.ulps, "ulps_of_the_largest_entry": normwise, "ulps_limit": LIMIT_ULPS}
    if worst.ulps <= LIMIT_ULPS:
        return None
    if normwise <= LIMIT_ULPS and all(ill_conditioned(case, values, far) for values, far in small):
        text = f"an entry is off by {worst.ulps:.3g} ulp, {normwise:.3g} ulp of the largest entry: rounding the data "
        case.quality["ill_conditioned"] = text + "changes it as much"
        return None
    return imprecise(case, worst, normwise)


def imprecise(case: Case, worst: Worst, normwise: float) -> Outcome:
    """IMPRECISE: how far the float is off, where the digits are lost, and what to write instead."""
    off, where, largest = worst.ulps, case.where(worst.entry), float(kind_of(case.dtype).max)
    beyond = worst.exact != UNKNOWN and (isinstance(worst.exact, str) or abs(worst.exact) > largest)
    if beyond:
        what = f"is out of range: {case.dtype} ends at {largest:.2g}"
    elif off > 2**52:
        what = "has no correct digit" if np.isfinite(worst.value) else "is not finite"
    else:
        what = f"is off by {off:.3g} ulp" + (f" ({normwise:.3g} ulp of the largest entry)" if where else "")
    message = f"the rule is right, but {worst.value!r}{where} {what}; exact: {worst.exact}"
    evidence: Evidence = {
        "entry": case.entry(worst.entry),
        "float_value": worst.value,
        "exact_value": worst.exact,
        "digits_lost": round(min(7.2 if case.dtype == "float32" else 16.0, float(np.log10(max(off, 1.0)))), 1),
    }
    if worst.values is case.values and not case.smooth_tie:
        kink, text = float_kink(case, worst.entry)
        evidence |= kink
        message += text
    node = blamed(case)
    diagnostics: tuple[Diagnostic, ...] = ()
    if node is not None:
        evidence["node"] = node_text(node)
        text = f"digits are lost in {node_text(node)}"
        message += f"; {text}"
        diagnostics = (Diagnostic("GC409", text, node.span, severity="note"),)
    if isinstance(worst.exact, float) and not beyond and not case.plane:
        from gradcli.checks.decide.rewrites import better  # most floats are good: start-up time is a feature

        ways = better(case, worst.values, worst.entry, worst.exact, worst.ulps)
        for best in ways[:1]:
            evidence["rewrite"] = [{"text": way.text, "ulps": way.ulps, "proved": way.how} for way in ways]
            text = best.new_text if best.old_text == evidence.get("node") else best.text
            message += f"; better: {text} (off by {best.ulps:.3g} ulp)"
    return Outcome("IMPRECISE", message, evidence, diagnostics)


def ill_conditioned(case: Case, values: Values, gaps: Mapping[int, float]) -> bool:
    """Whether errors in some entries of an array are no larger than what rounding the data would make of them.

    So it is with an entry that is a sum of many terms that cancel: no other formula has more of its digits. A formula
    that loses digits without need has entries that hardly move when the data are rounded.
    """
    if case.subject.judged.type.size < 2:
        return False
    unit = float(kind_of(case.dtype).eps)
    generator = np.random.default_rng(case.seed)
    moving = [name for name, x in values.items() if name in case.subject.moving or (x != np.round(x)).any()]
    points = [values]
    for _ in range(ROUNDED):
        rounded = {name: values[name] * (1.0 + generator.choice([-unit, unit], values[name].shape)) for name in moving}
        points.append({**values, **rounded})
    rows: list[Any] = [case.enclosed([case.subject.judged], point).get("entries") for point in points]
    if None in rows:
        return False
    for i, gap in gaps.items():
        first, *others = (row[0][i].get("value") for row in rows)
        if first is None or None in others or not gap <= TOLERATED * max(abs(x - first) for x in others):
            return False
    return True


def float_ties(case: Case, values: Values) -> Iterator[tuple[Surface, Floats]]:
    """The kinks that move with the target, with how far off a point is in floats, entry by entry."""
    surfaces = case.subject.surfaces
    moved = dependents(reachable([surface.zero for surface in surfaces]), [case.target])
    near = [surface for surface in surfaces if surface.zero in moved]
    yield from zip(near, case.floats([surface.zero for surface in near], values), strict=True)


def float_tie(case: Case) -> Surface | None:
    """A kink that the point lies on in floats: 0.1 on that of abs(x - 0.1), where the literal is the exact decimal."""
    return next((surface for surface, gaps in float_ties(case, case.values) if (gaps == 0).any()), None)


def float_kink(case: Case, entry: int) -> tuple[Evidence, str]:
    """Evidence and a sentence about a kink of an entry of the target, on which the point lies in floats only."""
    beside = dict(case.values)
    if case.own_leaf is not None and case.subject.surfaces:
        beside[case.own_leaf] = moved = np.array(case.values[case.own_leaf])
        moved.reshape(-1)[entry] += BESIDE * max(1.0, abs(moved.reshape(-1)[entry]))
    for (surface, at_point), (_, at_side) in zip(float_ties(case, case.values), float_ties(case, beside), strict=True):
        places = np.flatnonzero((at_point == 0) & ((at_side != 0) | (case.own_leaf is None)))
        row = case.enclosed([surface.zero]).get("entries", [[]])[0] if places.size else []  # with exact literals
        gaps = [float(row[place]["value"]) for place in places if place < len(row) and row[place].get("value")]
        if gaps:
            gap = min(gaps, key=abs)
            message = f"; in float64 the point is on a kink ({surface.where}), in exact arithmetic "
            message += f"{abs(gap):.3g} {'above' if gap > 0 else 'below'} it"
            return {"float_kink": surface.where, "float_kink_distance": gap}, message
    return {}, ""


def blamed(case: Case) -> Node | None:
    """The first node of the judged program whose float is far off although its arguments are accurate."""
    order = [n for n in reachable([case.subject.judged]) if n in case.exact.rows and n.type.kind == "float"]
    rows = [] if too_many(order) else case.enclosed(order).get("entries", [])
    return first_bad(order, bad_nodes(order, case.doubles(order), rows)) if rows else None


def too_many(nodes: Sequence[Node]) -> bool:
    """Whether nodes have too many entries to be enclosed one by one."""
    return len(nodes) > MOST_NODES or sum(node.type.size for node in nodes) > MOST_ENTRIES


# --- exact values beside floats ---------------------------------------------------------------------------------------


class LostPrecision(NamedTuple):
    """Exact values of those outputs whose floats are wrong, by their position, and where the digits were lost.

    An exact value is the nearest double, or its digits where no double is near; arrays are nested lists, with None for
    an entry that is not known.
    """

    exact: dict[int, Any]
    node: Node | None
    text: str


@oracle_client.exclusive
def lost_digits(outputs: Sequence[Node], floats: Mapping[Node, Any], point: Mapping[str, Any]) -> LostPrecision | None:
    """The exact values that the floats miss; None where the floats are good or the exact values are unknown.

    `floats` holds the value of every node that the outputs need.
    """
    order = [node for node in reachable(outputs) if node.type.kind == "float"]
    order = [*outputs] if too_many(order) else order
    if work_of(reachable(outputs)) > MOST_WORK:
        return None
    exact = Exact(oracle_client.shared(), outputs, SECONDS)
    exact.begin()
    try:
        answer = exact.values(order, {name: np.asarray(value, dtype=np.float64) for name, value in point.items()})
    except oracle_client.NoAnswer:
        return None
    if "problem" in answer:
        return None
    rows = dict(zip(order, answer["entries"], strict=True))
    bad = bad_nodes(order, [floats[node] for node in order], answer["entries"])
    exact_values = {}
    for i, node in enumerate(outputs):
        if node in bad:
            known = [entry.get("digits") if entry.get("value") is None else entry["value"] for entry in rows[node]]
            exact_values[i] = np.array(known, dtype=object).reshape(node.type.shape).tolist()
    if not exact_values:
        return None
    first = first_bad(reachable([outputs[min(exact_values)]]), bad)
    return LostPrecision(exact_values, first, "" if first is None else node_text(first))


@oracle_client.exclusive
def exact_derivatives(
    nodes: Sequence[Node], derived: Sequence[Any], values: Mapping[str, Any]
) -> dict[Node, NDArray[Any] | str]:
    """The exact values of nodes, or why they have none; `derived` is as in `Subject.of_equality`.

    What is not decided is left out.
    """
    parts = [node for of, base, slots in derived for node in (of, base, *(node for slot in slots for node in slot[1:]))]
    exact = Exact(oracle_client.shared(), [*nodes, *parts], SECONDS)
    exact.begin()
    point = {name: np.asarray(value, np.float64) for name, value in values.items()}
    results: dict[Node, NDArray[Any] | str] = {}
    for node in nodes:
        try:
            (row,) = exact.values([node], point, derived).get("entries", [[{"failure": ""}]])
        except oracle_client.NoAnswer:
            continue
        failed = next((entry for entry in row if entry.get("value") is None), None)
        if failed is None:
            results[node] = np.reshape([entry["value"] + 0.0 for entry in row], node.type.shape)
        elif failed.get("failure") == "tie":
            place = "an operation" if failed["node"] is None else node_text(failed["node"])
            results[node] = f"{place} {failed['reason']}"
    return results


def bad_nodes(order: Sequence[Node], floats: Sequence[Any], rows: Sequence[Sequence[Entry]]) -> set[Node]:
    """The nodes with an entry whose float is far from the exact value, as far as that is known."""
    return {
        node
        for node, value, row in zip(order, floats, rows, strict=True)
        if any(map(is_bad, np.broadcast_to(np.asarray(value, np.float64), node.type.shape).reshape(-1).tolist(), row))
    }


def is_bad(value: float, entry: Entry) -> bool:
    """Whether a float is far from the exact value; False where that is unknown."""
    exact = entry.get("value")
    if exact is None:  # or a number too large for every double
        return bool(entry.get("digits", "").strip("-").startswith(DIGITS))
    return not np.isfinite(value) or ulps(value, exact) > LIMIT_ULPS


def first_bad(order: Sequence[Node], bad: set[Node]) -> Node | None:
    """The first node with a bad float whose arguments are accurate."""
    return next((node for node in order if node in bad and bad.isdisjoint(node.args)), None)
