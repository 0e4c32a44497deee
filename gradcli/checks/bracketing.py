"""Singularities of a program in an interval of one leaf: each is bracketed by neighbouring floats and classified.

Where the argument of a kink or a divisor has other signs at both ends of an interval, it vanishes in between. Bisection
narrows that to a float, or to two neighbouring ones. The values and slopes enclosed there, and some way off, say
whether the function jumps, has a kink, grows without a bound, or is smooth as far as any float can tell.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.case import Outcome
from gradcli.checks.kinks import Surface, on
from gradcli.checks.shown import node_text
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject

    At = Callable[[list[float]], dict[str, Any]]

DIVISORS = {"div": 1, "reciprocal": 0, "log": 0, "log1p": 0, "pow": 0, "sqrt": 0}  # which argument may not vanish
MOST_CANDIDATES = 64
MOST_STEPS = 80  # bisections: from any interval of floats to two neighbours
MANY_FLOATS = 256.0  # so far off are the places that a bracket is compared with, in floats
STEADY = (0.3, 1.1)  # a bend that shrinks to less of what it is far off is none; one that does not shrink is a kink
GROWTH = 4.0  # of a slope that has no bound; 16 for a square root, 256 for a logarithm
ROUNDING = 2.0**-48


class Bracket(NamedTuple):
    """A node that vanishes, and the floats between which it does: one and the same where it is 0 there."""

    zero: Node
    surface: Surface | None
    low: float
    high: float


def brackets(exact: Exact, subject: Subject, low: float, high: float, at: At) -> list[Bracket]:
    """Where arguments of kinks and divisors change their sign between two floats, in ascending order."""
    found = []
    nodes = candidates(exact, subject)
    signs = {end: signs_of(exact, list(nodes), at([end])) for end in (low, high)}
    for i, (node, surface) in enumerate(nodes.items()):
        if signs[low][i] is not None and signs[high][i] is not None and signs[low][i] * signs[high][i] < 0:
            narrow = bisected(exact, node, low, high, signs[low][i], at)
            if narrow is not None:
                found.append(Bracket(node, surface, *narrow))
    return sorted(found, key=lambda one: one.low)


def candidates(exact: Exact, subject: Subject) -> dict[Node, Surface | None]:
    """Scalar nodes at whose zeros the output may be singular, with the kink that each belongs to."""
    assert subject.output is not None
    found: dict[Node, Surface | None] = {one.zero: one for one in subject.surfaces}
    for node in reachable([subject.output]):
        place = DIVISORS.get(node.primitive.name)
        if place is not None and place < len(node.args):
            found.setdefault(node.args[place], None)
    scalar = {node: surface for node, surface in found.items() if not node.type.shape and node in exact.rows}
    return dict(list(scalar.items())[:MOST_CANDIDATES])


def signs_of(exact: Exact, nodes: Sequence[Node], values: dict[str, Any]) -> list[Any]:
    """The signs of scalar nodes: -1, 0, 1, or None where they are not known."""
    answer = exact.values(nodes, values)
    if "problem" in answer:
        return [None] * len(nodes)
    return [row[0].get("sign") for row in answer["entries"]]


def bisected(exact: Exact, node: Node, low: float, high: float, sign: int, at: At) -> tuple[float, float] | None:
    """The neighbouring floats between which a node changes its sign, or twice the float at which it is 0."""
    for _ in range(MOST_STEPS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            return low, high
        there = signs_of(exact, [node], at([middle]))[0]
        if there is None:
            return None
        if there == 0:
            return middle, middle
        low, high = (middle, high) if there == sign else (low, middle)
    return None


def parts_between(low: float, high: float, found: Sequence[Bracket]) -> Iterator[tuple[float, float]]:
    """The intervals around brackets that hold every other float of an interval."""
    start = low
    for one in found:
        below, above = one.low, one.high
        if below == above:
            below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        if start < below:
            yield start, below
        start = max(start, above)
    if start < high:
        yield start, high


def classified(exact: Exact, subject: Subject, one: Bracket, low: float, high: float, at: At) -> Outcome:
    """What happens between two neighbouring floats: KINK, BOUNDARY, DISCONTINUOUS, INCONCLUSIVE, or AGREES if smooth.

    `low` and `high` are the ends of the box. What stays as it is from some floats off to the next float is taken for
    its limit, and what is in between is open.
    """
    assert subject.output is not None and subject.target is not None
    slopes, heights = [], []
    far = (MANY_FLOATS - 1) * (one.high - one.low) / 2
    for place in (at([x]) for x in (max(low, one.low - far), one.low, one.high, min(high, one.high + far))):
        name = exact.derive(subject.output, subject.target, subject.moving, place)  # each place in its own region
        answer = exact.compare(subject.judged, [place], name=name)
        slopes.append(answer.get("points", [{}])[0].get("exact", [None])[0])
        height = exact.values([subject.output], place)
        heights.append(height.get("entries", [[{}]])[0][0].get("value"))
    if None in slopes or None in heights:
        return Outcome("INCONCLUSIVE", f"undecided around {node_text(one.zero)} = 0", {})
    far_left, left, right, far_right = slopes
    largest, gap = max(abs(left), abs(right)), one.high - one.low
    grown = largest > STEADY[1] * max(abs(far_left), abs(far_right))
    bent = abs(right - left)
    varied = max(abs(far_right - far_left), abs(far_left - left), abs(far_right - right))
    step = abs(heights[2] - heights[1])
    if largest > GROWTH * max(abs(far_left), abs(far_right)):
        verdict, told = "BOUNDARY", f"slopes {left:.6g} below it, {right:.6g} above it, no finite derivative"
    elif step > 4 * largest * gap + ROUNDING * max(abs(heights[1]), abs(heights[2])):
        verdict, told = "DISCONTINUOUS", f"the value jumps from {heights[1]:.6g} to {heights[2]:.6g}"
    elif bent <= max(STEADY[0] * varied, ROUNDING * largest):
        return Outcome("AGREES", "smooth as far as floats can tell", {})
    elif grown or bent < varied / STEADY[1]:
        return Outcome("INCONCLUSIVE", f"undecided around {node_text(one.zero)} = 0", {})
    else:
        verdict, told = "KINK", f"slopes {left:.6g} from below, {right:.6g} from above"
    text = f"{node_text(one.zero)} = 0" if one.surface is None else on(one.surface)
    node = one.zero if one.surface is None else one.surface.node
    evidence = {
        "left": [left],
        "right": [right],
        "between": [one.low, one.high],
        "operation": node.primitive.name,
        "node": node_text(node),
        "where": text,
        "basis": "series",
    }
    return Outcome(
        verdict, f"{text}: {told}", evidence, (Diagnostic("GC410", f"{text}: {told}", node.span, severity="note"),)
    )
