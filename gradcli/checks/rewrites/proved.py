"""Finds rewrites of a right rule with poor floats that are proved equal and were measured to be better.

Each part of the program that matches a pattern is rewritten, the gradient is made again and its float is
compared with the exact value. What is not better, or cannot be proved equal, is not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.decide.floats import ulps
from gradcli.checks.diagnosis.formula_text import Names, as_said, readable
from gradcli.checks.rewrites import candidates
from gradcli.diagnostics import GradcliError
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case, Values


RULES = (*candidates.DIFFERENCE_RULES, *candidates.FUNCTION_RULES)
MOST_STEPS = 600
LONGEST = 120  # characters of a rewrite
MOST_PROOFS = 4
BETTER = 8.0  # by what factor the error must shrink
MOST_NEW = 50_000


class Spelling(NamedTuple):
    """Part of a program, what to write instead, and the error that is left then, in ulp."""

    old: str
    new: str
    ulps: float
    how: str  # it is proved equal

    @property
    def text(self) -> str:
        return f"{self.new} for {self.old}"

    def evidence(self) -> dict[str, Any]:
        """The rewrite as evidence."""
        return {"text": self.text, "ulps": self.ulps, "proved": self.how}


class _Pair(NamedTuple):
    """A part of a program and another way to write it: both as texts, and as the nodes that these stand for."""

    part: Node
    new: Node
    old_text: str
    new_text: str


class _Try(NamedTuple):
    pairs: tuple[_Pair, ...]
    ulps: float


def better(case: Case, values: Values, entry: int, exact: float, poor: float) -> list[Spelling]:
    """Spellings that help at a point, for the entry whose float is `poor` ulp off the exact value; the best first."""
    subject = case.subject
    root = subject.output if subject.kind == "gradient" else subject.judged
    if root is None or len(reachable([root])) > MOST_STEPS:
        return []
    builder = root.builder
    limit, before = builder.limit, builder.count
    builder.limit = max(limit, before + MOST_NEW)
    try:
        with building(builder, reachable(subject.nodes())):
            tries = [one for one in _tries(case, root, values, entry, exact) if _helps(one.ulps, poor)]
        return _proved(case, sorted(tries, key=lambda one: (one.ulps, len(one.pairs))))
    except GradcliError:
        return []
    finally:
        builder.limit = limit + builder.count - before


def _helps(now: float, poor: float) -> bool:
    return now == now and now * BETTER <= poor


def _tries(case: Case, root: Node, values: Values, entry: int, exact: float) -> list[_Try]:
    """Every other rewrite by itself, and the first ones of all parts together, with the error that is left."""
    builder = root.builder
    order = reachable([root])
    names = readable(case)
    pairs: list[_Pair] = []
    builder.simplifying = False  # a program is evaluated as it is written
    try:
        for node in order:
            pairs += [pair for new in other_spellings(node) if (pair := _as_said(case, names, node, new)) is not None]
        groups: list[tuple[_Pair, ...]] = [(pair,) for pair in pairs]
        first = {pair.part: pair for pair in reversed(pairs)}
        if len(first) > 1:
            groups.append(tuple(first.values()))
        changed = [(group, substituted(order, {one.part: one.new for one in group})) for group in groups]
    finally:
        builder.simplifying = True
    found = []
    for group, output in changed:
        judged = output
        if case.subject.kind == "gradient":
            judged = derivatives.grad(output, [case.target])[0]
        value = float(case.floats([judged], values)[0].reshape(-1)[entry])
        found.append(_Try(group, ulps(value, exact, case.dtype)))
    return found


def _as_said(case: Case, names: Names, part: Node, new: Node) -> _Pair | None:
    """A part and another rewrite of it as a person would type it; None where a text does not say what is meant."""
    old, other = as_said(case, names, part, LONGEST), as_said(case, names, new, LONGEST)
    return None if old is None or other is None else _Pair(part, other[1], old[0], other[0])


def other_spellings(node: Node) -> Iterator[Node]:
    """Other ways to write one node, on its builder, which must be open: worth trying, no more."""
    for rule in RULES:
        found = rule(node)
        if found is not None and found is not node and found.type == node.type:
            yield found


def substituted(order: Sequence[Node], changes: Mapping[Node, Node]) -> Node:
    """The last node of a topological order with some nodes written in another way."""
    made: dict[Node, Node] = {}
    for node in order:
        if node in changes:
            made[node] = changes[node] if len(changes) == 1 else _within(changes[node], made)
        elif any(arg in made for arg in node.args):
            args = tuple(made.get(arg, arg) for arg in node.args)
            made[node] = node.builder.apply(node.primitive, args, dict(node.params))
    return made.get(order[-1], order[-1])


def _within(node: Node, made: Mapping[Node, Node]) -> Node:
    """A new rewrite whose own parts are written anew too."""
    again: dict[Node, Node] = {}
    for part in reachable([node]):
        if part in made:
            again[part] = made[part]
        elif any(arg in again for arg in part.args):
            args = tuple(again.get(arg, arg) for arg in part.args)
            again[part] = part.builder.apply(part.primitive, args, dict(part.params))
    return again.get(node, node)


def _proved(case: Case, tries: Sequence[_Try]) -> list[Spelling]:
    """The rewrites whose parts are all proved equal."""
    tries = tries[:MOST_PROOFS]
    nodes = [node for one in tries for pair in one.pairs for node in (pair.part, pair.new)]
    found: list[Spelling] = []
    if not nodes:
        return found
    exact = case.exact.beside(nodes)
    proofs: dict[_Pair, str | None] = {}
    try:
        exact.begin()
        for one in tries:
            for pair in one.pairs:
                if pair not in proofs:
                    answer = exact.prove(pair.new, case.values, left=pair.part, moving=case.subject.moving)
                    proofs[pair] = str(answer["how"]) if answer.get("proved") else None
            hows = [proofs[pair] for pair in one.pairs]
            if all(hows):
                old = "; ".join(pair.old_text for pair in one.pairs)
                new = "; ".join(pair.new_text for pair in one.pairs)
                found.append(Spelling(old, new, one.ulps, hows[0] or ""))
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return _worth_showing(found)


def _worth_showing(found: Sequence[Spelling]) -> list[Spelling]:
    """The best rewrite, and others of one part that are as good."""
    shown: list[Spelling] = []
    for one in found:
        if not shown or (";" not in one.new and one.ulps <= 2 * shown[0].ulps + 2):
            shown.append(one)
    return shown
