"""Claims about arrays of any size: `A[m, n] in real` declares A for every m and n, and a point has one of each.

A claim holds for all sizes if both of its sides, read at two sets of sizes that are different primes, have the same
text in index notation once primes are symbols, and `formulas/index_proof.py` proves them equal. That the graph is the
same at every size is known of scripts in which a size is only a number to compute with (lowering refuses to read it
where it decides something, as in `range(n)`), and that call the functions listed here.
Any other claim is judged at a second set of sizes as well.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.diagnostics import GradcliError
from gradcli.formulas import NoFormula
from gradcli.formulas.index_proof import identity
from gradcli.graph.program import Leaf
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.substitution import replaced
from gradcli.language.syntax import (
    Assert,
    Call,
    Declare,
    FunctionDef,
    Name,
    NewAxis,
    Number,
    Slice,
    Subscript,
    nodes_of,
)
from gradcli.language.unparse import unparse
from gradcli.lowering import lower
from gradcli.lowering.names import OpenShapes
from gradcli.lowering.ranks import PRIMES
from gradcli.lowering.scan import assigned_names
from gradcli.primitives import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.decide.case import Outcome
    from gradcli.checks.subjects import Subject
    from gradcli.formulas.index_proof import Identity
    from gradcli.graph.node import Node
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Script, Syntax
    from gradcli.lowering import Claim, Lowered
    from gradcli.lowering.names import Names

STANDING = ("PROVED", "CERTIFIED", "AGREES", "IMPRECISE")  # verdicts on a claim that may be right
# functions of whole arrays whose definitions are the same at every size; those of numbers are as well
UNIFORM = frozenset(
    [
        *(
            "amax",
            "amin",
            "argsort",
            "concatenate",
            "cross_entropy",
            "cumsum",
            "det",
            "diag",
            "diff",
            "dot",
            "einsum",
            "flip",
            "grad",
            "inner",
            "inv",
        ),
        *(
            "log_softmax",
            "logdet",
            "logsumexp",
            "matmul",
            "max",
            "mean",
            "min",
            "norm",
            "outer",
            "pad",
            "prod",
            "slogdet",
        ),
        *("softmax", "solve", "sort", "std", "sum", "trace", "transpose", "var", "vdot"),
    ]
)
FILLED = frozenset(["eye", "ones", "zeros"])  # functions of sizes
FEW = ("1", "2", "3", "4")  # entries that a slice may leave out at each end
OF_SIZES = FILLED | {"len", "shape"}
TOO_LARGE = "GC508"  # of an array
SECOND = (3, 5, 4, 7)  # sizes at which a claim that is not proved for all is judged as well


class Sizes(NamedTuple):
    """What is known of a claim beyond the sizes of the point: `reason` says why it is not proved for all of them.

    `sizes` are those of the point, `chosen` where they were not given. With `ties` nothing is proved where a comparison
    is a tie.
    """

    sizes: dict[str, int]
    chosen: bool
    reason: str | None
    ties: bool = False


class SymbolicSizes(OpenShapes):
    """Sizes that are primes and, where the script computes with them, inputs of their names."""

    __slots__ = ("nodes", "primes", "sizes")
    chosen = False

    def __init__(self, primes: Sequence[int]) -> None:
        self.primes = primes
        self.sizes: dict[str, int] = {}
        self.nodes: dict[Node, int] = {}

    def size(self, name: str, others: int) -> int:
        if len(self.sizes) == len(self.primes):
            raise NoFormula("there are too many sizes")
        return self.sizes.setdefault(name, self.primes[len(self.sizes)])

    def node(self, names: Names, name: str, size: int) -> Node:
        node = names.builder.leaf(name, ())
        names.leaves[name] = Leaf(name, node, None, None, True, None, True)
        self.nodes[node] = size
        return node

    def size_of(self, node: Any) -> int | None:
        return self.nodes.get(node) if not isinstance(node, tuple) else None


class SecondSizes(OpenShapes):
    """Other sizes than those that are chosen first."""

    __slots__ = ("sizes",)
    chosen = False

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def size(self, name: str, others: int) -> int:
        return self.sizes.setdefault(name, SECOND[len(self.sizes) % len(SECOND)])


def symbols_of(script: Script) -> dict[tuple[str, int], str]:
    """The names that declarations have as sizes, by leaf and axis."""
    found: dict[tuple[str, int], str] = {}
    for one in script.statements:
        if isinstance(one, Declare):
            for axis, size in enumerate(one.shape or ()):
                if isinstance(size, Name):
                    found[one.name.id, axis] = size.id
    return found


def known_sizes(
    lowered: Lowered, at: Mapping[str, Any], claims: Mapping[str, str] | None, limits: Limits
) -> list[Sizes]:
    """For each claim of a script what is known for all sizes; nothing where no size is open."""
    symbols = symbols_of(lowered.script)
    if not symbols:
        return []
    point = without_sizes(lowered.script, at)
    names = list(dict.fromkeys(symbols.values()))
    for larger, smaller in ((0, 1), (2, 3)):  # the second where arrays are too large with the first
        try:
            one, sizes = identities_at(lowered, point, claims, limits, PRIMES[larger])
            other, _ = identities_at(lowered, point, claims, limits, PRIMES[smaller])
            reasons, names = [unproved(*pair) for pair in zip(one, other, strict=True)], list(sizes)
            ties = [not isinstance(found, str) and found.ties for found in one]
            break
        except (GradcliError, NoFormula) as problem:
            reason = reason_of(problem, dict(zip(PRIMES[larger], names, strict=False)))
            reasons, ties = [reason] * len(lowered.claims), [False] * len(lowered.claims)
            if not (isinstance(problem, GradcliError) and problem.diagnostics[0].code == TOO_LARGE):
                break
    shapes = {name: leaf.node.shape for name, leaf in lowered.program.leaves.items()}
    own = {name: shapes[leaf][axis] for (leaf, axis), name in symbols.items() if name in names}
    chosen = len(point) == len(at)
    return [Sizes(own, chosen, *pair) for pair in zip(reasons, ties, strict=True)] if own else []


def without_sizes(script: Script, at: Mapping[str, Any]) -> dict[str, Any]:
    """A point without the values that fix open sizes."""
    symbols = symbols_of(script)
    sized = {*symbols.values(), *(leaf for leaf, _ in symbols)}
    return {name: value for name, value in at.items() if name not in sized}


def unproved(one: Identity | str, other: Identity | str) -> str | None:
    """Why two readings of a claim prove nothing for all sizes; None where they do."""
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else str(other)
    if one.text != other.text:
        return "the script is not the same at every size"
    return None if one.holds() else "no identity of matrices proves it"


def identities_at(
    lowered: Lowered, at: Mapping[str, Any], claims: Mapping[str, str] | None, limits: Limits, primes: Sequence[int]
) -> tuple[list[Identity | str], dict[str, int]]:
    """The claims of a script in index notation, or why one has none, and the sizes that were open."""
    shapes = SymbolicSizes(primes)
    symbols = symbols_of(lowered.script)
    values = dict(zip(dict.fromkeys(symbols.values()), primes, strict=False))
    script = in_symbols(lowered.script, symbols, values)
    trees = {leaf: in_symbols(parse(Source(text)), symbols, values) for leaf, text in (claims or {}).items()}
    own = {one.name.id for one in script.statements if isinstance(one, FunctionDef)}
    if not assigned_names(script.statements).keys().isdisjoint(values) or not own.isdisjoint(OF_SIZES):
        raise NoFormula("it gives names of sizes a meaning of its own")
    for one in script.statements:
        if not isinstance(one, Assert) and (reason := why_not_uniform(one, own)):
            raise NoFormula(reason)
    asserted = {one: why_not_uniform(one, own) for one in script.statements if isinstance(one, Assert)}
    claimed = {leaf: why_not_uniform(tree, own) for leaf, tree in trees.items()}
    script.statements = tuple([one for one in script.statements if asserted.get(one) is None])  # type: ignore[call-overload]
    texts = {leaf: unparse(tree) for leaf, tree in trees.items() if claimed[leaf] is None}
    made = lower(script, at=at, wrt=lowered.wrt, limits=limits, claims=texts, shapes=shapes)
    if shapes.sizes != {name: values[name] for name in shapes.sizes}:
        raise NoFormula("some of its sizes are given")
    names = {size: name for name, size in shapes.sizes.items()}
    reasons, left = [*asserted.values(), *claimed.values()], iter(made.claims)
    found = [identity_of(next(left), names) if reason is None else reason for reason in reasons]
    if len(found) != len(lowered.claims):
        raise NoFormula("its claims stand in functions")
    return found, shapes.sizes


def identity_of(claim: Claim, symbols: Mapping[int, str]) -> Identity | str:
    """A claim in index notation, or why it has none."""
    try:
        if claim.derivative is None or claim.derivative[0].shape:
            return identity(claim.left, None, claim.right, symbols)
        return identity(*claim.derivative, claim.right, symbols)
    except NoFormula as problem:
        return str(problem)


def reason_of(problem: GradcliError | NoFormula, symbols: Mapping[int, str]) -> str:
    """Why a script is not read at sizes that are symbols."""
    if isinstance(problem, NoFormula):
        return str(problem)
    (first, *_) = problem.diagnostics
    if first.code == "GC306":
        return "a size decides what it computes"
    return "it is refused where sizes differ: " + re.sub(
        r"\b\d+\b", lambda found: symbols.get(int(found[0]), found[0]), first.message
    )


# --- scripts that make the same graph at every size -----------------------------------------------------------------


def in_symbols(script: Script, symbols: Mapping[tuple[str, int], str], sizes: Mapping[str, int]) -> Script:
    """The script with `len(b)` and `shape(A)[1]` as the symbols of these sizes, and those of `eye(n)` as numbers."""

    def symbol(node: Syntax) -> str | None:
        if isinstance(node, Name):
            return node.id if node.id in sizes else None
        if isinstance(node, Call) and node.function.id == "len" and len(node.args) == 1:
            (arg,), axis = node.args, 0
        elif isinstance(node, Subscript) and isinstance(node.value, Call) and node.value.function.id == "shape":
            (arg, *_), (item, *_) = node.value.args, node.items
            axis = item.ratio[0] if isinstance(item, Number) else -1
        else:
            return None
        return symbols.get((arg.id, axis)) if isinstance(arg, Name) else None

    def change(node: Syntax) -> Syntax | None:
        if isinstance(node, FunctionDef):  # its parameters may have any name
            return node
        if isinstance(node, Call) and node.function.id in FILLED and all(map(symbol, node.args)):
            made = copy(node)
            numbers = [sizes[name] for arg in node.args if (name := symbol(arg))]
            made.args = tuple([Number(str(size), (size, 1), node.span) for size in numbers])
            return made
        name = None if isinstance(node, Name) else symbol(node)
        return None if name is None else Name(name, node.span)

    return replaced(script, change)  # type: ignore[return-value]


def why_not_uniform(tree: Syntax, own: set[str]) -> str | None:
    """Why the graph of a part of a script may depend on sizes; `own` are the functions of the script."""
    for node in nodes_of(tree):
        if isinstance(node, FunctionDef) and node.rule:
            return f"it has a rule for `{node.name.id}`"
        if isinstance(node, Subscript) and not all(map(is_uniform_index, node.items)):
            return "it reads part of an array"
        if isinstance(node, Call):
            name, library = node.function.id, functions()
            pointwise = name in library and library[name].pointwise
            filled = name in FILLED and all(isinstance(arg, Number) for arg in node.args)
            if not (pointwise or filled or name in own or name in UNIFORM):
                return f"it calls `{name}`"
    return None


def is_uniform_index(item: Syntax) -> bool:
    """Whether an index means the same at every size: `0`, `:`, `::-1`, `1:-1`, `None`, and the order of an array."""
    if isinstance(item, Slice):
        lower, upper, step = [None if one is None else unparse(one) for one in (item.lower, item.upper, item.step)]
        if step is not None:
            return step == "-1" and lower is upper is None
        return (lower is None or lower in FEW) and (upper is None or (upper[:1] == "-" and upper[1:] in FEW))
    positions = isinstance(item, Call) and item.function.id == "argsort"
    return positions or isinstance(item, NewAxis) or (isinstance(item, Number) and item.ratio[0] == 0)


# --- what a verdict says of other sizes -----------------------------------------------------------------------------


class OpenSizes:
    """The claims of a script at other sizes than those of the point, in the order in which they are judged."""

    def __init__(
        self,
        lowered: Lowered,
        at: Mapping[str, Any],
        claims: Mapping[str, str] | None,
        limits: Limits,
        claims_of: Callable[[Lowered], list[Subject]],
        judged: Callable[[Subject], Outcome],
    ) -> None:
        self.lowered = lowered
        self.at = at
        self.claims = claims
        self.limits = limits
        self.claims_of = claims_of
        self.judged = judged
        self.known = iter(enumerate(known_sizes(lowered, at, claims, limits)))
        self.second: tuple[dict[str, int], list[Subject]] | None = None

    def beyond(self, outcome: Outcome) -> Outcome:
        """The verdict on the next claim with what is known for other sizes."""
        place, known = next(self.known, (0, None))
        if known is None or outcome.verdict not in STANDING:
            return outcome
        every, here = f"for all {listed(list(known.sizes))}", sizes_text(known.sizes)
        evidence: dict[str, Any] = {"all": known.reason is None, "point": known.sizes}
        if known.reason is None and outcome.verdict == "IMPRECISE":
            return with_sizes(outcome, evidence, f"{outcome.message}; right {every}")
        if known.reason is None:
            defined = ", wherever both sides are defined" if outcome.evidence.get("region") else ""
            defined = ", wherever no comparison is a tie" if known.ties else defined
            return with_sizes(outcome._replace(verdict="PROVED"), evidence, f"equal by algebra, {every}{defined}")
        evidence["reason"] = known.reason
        other = self.at_second_sizes(place)
        if other is None or other.verdict not in (*STANDING, "DISAGREES"):
            return with_sizes(outcome, evidence, f"{outcome.message}; for {here}, not proved for all: {known.reason}")
        assert self.second is not None
        there = sizes_text(self.second[0])
        evidence["wrong" if other.verdict == "DISAGREES" else "beside"] = self.second[0]
        if other.verdict != "DISAGREES":
            message = f"{outcome.message}; for {here} and {there}, not proved for all: {known.reason}"
        elif known.chosen:
            return with_sizes(other, evidence, f"right for {here}, but for {there} {other.message}")
        else:
            message = f"{outcome.message}; for {here}, but not for {there}"
        return with_sizes(outcome, evidence, message)

    def at_second_sizes(self, place: int) -> Outcome | None:
        """The verdict on a claim at the second set of sizes; None where the script cannot have them."""
        try:
            if self.second is None:
                point, shapes = without_sizes(self.lowered.script, self.at), SecondSizes()
                made = lower(
                    self.lowered.script,
                    at=point,
                    wrt=self.lowered.wrt,
                    limits=self.limits,
                    claims=self.claims,
                    shapes=shapes,
                )
                self.second = shapes.sizes, self.claims_of(made)
            return self.judged(self.second[1][place])
        except GradcliError:
            return None


def with_sizes(outcome: Outcome, sizes: Mapping[str, Any], message: str) -> Outcome:
    """A verdict with another message, and what it says about sizes."""
    return outcome._replace(message=message, evidence={**outcome.evidence, "sizes": sizes})


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes in words: m = 2, n = 3."""
    return ", ".join([f"{name} = {size}" for name, size in sizes.items()])


def listed(parts: Sequence[str]) -> str:
    """A list in words."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


__all__ = ["OpenSizes"]
