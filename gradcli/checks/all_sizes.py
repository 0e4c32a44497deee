"""Claims about arrays of any size: `A[m, n] in real` declares A for every m and n, and a point has one of each.

A claim holds for all sizes if both of its sides, read at two sets of sizes that are different primes, have the same
text in index notation once primes are symbols, and `formulas/index_proof.py` proves them equal. That the graph is the
same at every size is known of scripts in which a size is only a number to compute with (lowering refuses to read it
where it decides something, as in `range(n)`), and that call the functions listed here.
Any other claim is judged at a second set of sizes as well.
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.calculations import wherever
from gradcli.checks.challenge import Member, counterexample, sizes_text
from gradcli.checks.decide.assumptions import Assumption, conditions_of_set
from gradcli.checks.decide.granting import granted_on_set
from gradcli.checks.report import GOOD
from gradcli.formulas import NoFormula
from gradcli.formulas.index_proof import identity
from gradcli.graph.program import Leaf
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import Assert, Call, Declare, FunctionDef, Name, nodes_of
from gradcli.lowering import lower
from gradcli.lowering.assigned_names import assigned_names
from gradcli.lowering.shapes.open_shapes import OpenShapes
from gradcli.lowering.shapes.ranks import PAIRS, probes
from gradcli.primitives import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.challenge import ClaimAt
    from gradcli.checks.decide.case import Outcome
    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.formulas.index_proof import Assumed, IndexIdentity
    from gradcli.graph.node import Builder, Node
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Script, Statement
    from gradcli.lowering import Claim, Lowered
    from gradcli.lowering.shapes.open_shapes import OpenCount

    Texts = Mapping[str, str]

TOO_LARGE = "GC508"  # of an array
# what a proof for all sizes may assume to count at a point with this verdict, where it has been decided then
DECIDED = {"PROVED": {"defined", "kink", "apart"}, "CERTIFIED": {"defined"}, "AGREES": set[str]()}
TALL = (3, 2)  # sizes at which X.T @ X is not singular
SECOND = (3, 5, 4, 7)  # sizes at which a claim that is not proved for all is judged as well


class Sizes(NamedTuple):
    """What is known of a claim beyond the sizes of the point: `reason` says why it is not proved for all of them.

    `sizes` are those of the point, `chosen` where they were not given; `assumed` is what the proof takes for granted.
    """

    sizes: dict[str, int]
    chosen: bool
    reason: str | None
    assumed: Assumed


class OtherSizes(OpenShapes):
    """Sizes to take in place of those that are chosen first, in turn."""

    __slots__ = ("choice", "chosen", "counts", "sizes")

    def __init__(self, choice: Sequence[int] = SECOND, chosen: bool = False) -> None:
        self.choice, self.chosen = choice, chosen
        self.sizes: dict[str, int] = {}
        self.counts: frozenset[str] = frozenset()

    def counting(self, open_count: OpenCount) -> None:
        self.counts |= {open_count.name}

    def size(self, name: str, others: int) -> int:
        return self.sizes.setdefault(name, self.choice[len(self.sizes) % len(self.choice)])


class SymbolicSizes(OtherSizes):
    """Sizes that are primes, and inputs of their names where the script computes with them."""

    __slots__ = ("nodes",)
    symbolic = True

    def __init__(self, primes: Sequence[int]) -> None:
        super().__init__(primes)
        self.nodes: dict[Node, int] = {}

    def size(self, name: str, others: int) -> int:
        if len(self.sizes) == len(self.choice):
            raise NoFormula("there are too many sizes")
        return super().size(name, others)

    def node(self, builder: Builder, leaves: dict[str, Leaf], name: str, size: int) -> Node:
        node = builder.leaf(name, ())
        leaves[name] = Leaf(name, node, None, None, True, None, True)
        self.nodes[node] = size
        return node

    def number(self, builder: Builder, leaves: dict[str, Leaf], number: Any) -> Node:
        """The symbol of a size that is read of an array; any other number is an input that nothing is known of."""
        symbol = next((name for name, size in self.sizes.items() if size == number), f"size {number}")
        return leaves[symbol].node if symbol in leaves else self.node(builder, leaves, symbol, number)

    def size_of(self, node: Any) -> int | None:
        return self.nodes.get(node) if not isinstance(node, tuple) else None


def symbols_of(script: Script) -> dict[tuple[str, int], str]:
    """The open names that declarations have as sizes, by leaf and axis."""
    fixed = assigned_names(script.statements)
    return {
        (statement.name.id, axis): size.id
        for statement in script.statements
        if isinstance(statement, Declare)
        for axis, size in enumerate(statement.shape or ())
        if isinstance(size, Name) and size.id not in fixed
    }


def without_sizes(script: Script, at: Mapping[str, Any]) -> dict[str, Any]:
    """A point without the values that fix open sizes."""
    symbols = symbols_of(script)
    sized = {*symbols.values(), *(leaf for leaf, _ in symbols)}
    return {name: value for name, value in at.items() if name not in sized}


def known_sizes(lowered: Lowered, at: Mapping[str, Any], claims: Texts | None, limits: Limits) -> list[Sizes]:
    """For each claim of a script what is known for all sizes; nothing where no size is open."""
    script, leaves = lowered.script, lowered.program.leaves
    symbols = symbols_of(script)
    if not symbols:
        return []
    point = without_sizes(script, at)
    sizes = {name: leaves[leaf].node.shape[axis] for (leaf, axis), name in symbols.items()}
    others = [statement for statement in script.statements if not isinstance(statement, Assert)]
    asserted = [statement for statement in script.statements if isinstance(statement, Assert)]
    parts: list[tuple[tuple[Statement, ...], dict[str, str]]] = [((*others, statement), {}) for statement in asserted]
    parts += [(tuple(others), {leaf: text}) for leaf, text in (claims or {}).items()]
    results: list[tuple[str | None, Assumed]] = []
    for statements, claim in parts:
        alone = copy(script)
        alone.statements = statements
        results.append(proved(alone, claim, point, limits))
    if len(results) != len(lowered.claims):
        results = [("its claims stand in functions", {})] * len(lowered.claims)
    return [Sizes(sizes, len(point) == len(at), *result) for result in results]


def proved(script: Script, claims: Texts, at: Mapping[str, Any], limits: Limits) -> tuple[str | None, Assumed]:
    """Why the one claim of a script is not proved for all sizes, None where it is; and what the proof assumes."""
    uniform = {name for name, function in functions().items() if function.pointwise or function.every_size} | {"grad"}
    uniform |= {statement.name.id for statement in script.statements if isinstance(statement, FunctionDef)}
    trees = [script, *[parse(Source(text)) for text in claims.values()]]
    for node in [node for tree in trees for node in nodes_of(tree)]:
        if isinstance(node, Call) and node.function.id not in uniform:
            return f"it calls `{node.function.id}`", {}
    reason = ""

    def read(shapes: SymbolicSizes) -> IndexIdentity:
        (claim,) = lower(script, at=at, limits=limits, claims=claims, shapes=shapes).claims
        return identity_of(claim, {size: name for name, size in shapes.sizes.items()})

    for pair in PAIRS:
        both = [SymbolicSizes(probes(trees, place)) for place in pair]
        try:
            identity, second = map(read, both)
        except NoFormula as problem:
            return str(problem), {}
        except GradcliError as problem:
            (first, *_) = problem.diagnostics
            if first.code == "GC306":
                return "a size decides what it computes", {}
            reason = f"it is refused where sizes differ: {in_names(first.message, both)}"
            if first.code == TOO_LARGE:  # for smaller sizes
                continue
            return reason, {}
        if identity.text == second.text:
            assumed = identity.proof()
            return None if assumed is not None else "no identity of matrices proves it", assumed or {}
        reason = "the script is not the same at every size"
    return reason, {}


def in_names(message: str, shapes: Sequence[SymbolicSizes]) -> str:
    """A message with the names of sizes in place of the numbers that stand for them."""
    names = {size: name for own in shapes for name, size in own.sizes.items()}
    return re.sub(r"\b\d+\b", lambda number: names.get(int(number[0]), number[0]), message)


def identity_of(claim: Claim, symbols: Mapping[int, str]) -> IndexIdentity:
    """A claim in index notation; raises NoFormula where it has none."""
    if claim.derivative is None or claim.derivative[0].shape:
        return identity(claim.left, None, claim.right, symbols)
    return identity(*claim.derivative, claim.right, symbols)


def for_other_sizes(
    outcome: Outcome, known: Sizes, exact: Exact, claim_at: ClaimAt, judged: Callable[[Subject], Outcome]
) -> Outcome:
    """A verdict with what is known for other sizes: all of them, or those of a second point, where it is judged too."""
    if outcome.verdict not in GOOD:
        return outcome
    reason, at_point, message = known.reason, sizes_text(known.sizes), outcome.message
    assumed = tuple([Assumption(kind, node=node) for node, kind in known.assumed.items()])
    member = None
    if reason is None:
        member = counterexample(exact, claim_at, assumed)
        reason = None if member is None else f"it does not hold for {member.place}"
    else:
        with suppress(GradcliError):  # the script cannot have these sizes
            sizes_there, _, subject = claim_at(SECOND)
            member = Member(subject, sizes_there, "")
    sizes: dict[str, Any] = {"all": reason is None, "point": known.sizes}
    evidence: dict[str, Any] = {"sizes": sizes}
    if reason is None:
        *names, last = known.sizes
        said = conditions_of_set(assumed)
        evidence |= {"assumptions": said} if said else {}
        every = f"for all {', '.join(names)}{' and ' if names else ''}{last}{wherever(said)}"
        if outcome.verdict in DECIDED and DECIDED[outcome.verdict].issuperset(known.assumed.values()):
            message = f"equal by algebra, {every}"
            outcome = granted_on_set(outcome, True, message)
        else:
            message = f"{message}; right {every}"
    else:
        sizes["reason"] = reason
        other = outcome if member is None else judged(member.subject)
        if member is not None and other.verdict == "DISAGREES":
            sizes["wrong"] = member.sizes
            if known.chosen:
                outcome, message = other, f"right for {at_point}, but for {member.place} {other.message}"
            else:
                message = f"{message}; for {at_point}, but not for {member.place}"
        else:
            if member is not None and other.verdict in GOOD:
                sizes["beside"], at_point = member.sizes, f"{at_point} and {member.place}"
            message = f"{message}; for {at_point}, not proved for all: {reason}"
    return outcome._replace(message=message, evidence={**outcome.evidence, **evidence})
