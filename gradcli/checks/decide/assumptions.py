"""What proofs assume, as values: an identity holds wherever its assumptions do.

Every prover returns the identity together with what it took for granted; `granting` finds out whether that is true at
the point, or for all of a set, and says it where it is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gradcli.checks.formatting import counted, node_text
from gradcli.primitives.movement import broadcast, reshape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.formulas.index_proof import Assumed
    from gradcli.graph.node import Node

    Kind = Literal["sign", "connected", "fixed", "apart", "kink", "defined", "sizes"]

MOST_SIGNS = 4  # of a region that a message lists
ON_SETS = ("sign", "defined", "kink", "apart")  # kinds of conditions of statements about sets, in their order
BEST = {"max": "largest", "is_max": "largest", "min": "smallest", "is_min": "smallest"}


class Assumption(NamedTuple):
    """Something that a proof takes for granted.

    sign: an expression has the sign that `text` states; connected: all of the region where the signs hold can be
    reached from the point; fixed: the leaf `text` stays at its value; apart: what `node` compares is not equal, or the
    entry that it chooses is the only one; kink: the same, where that leaves out a set of measure 0 only; defined: the
    node has a value; sizes: what `text` says of the sizes of arrays.
    """

    kind: Kind
    text: str = ""
    node: Node | None = None


class Proof(NamedTuple):
    """That both sides are equal: how it was found, what it assumes, and for how many entries it holds."""

    how: str
    assumed: tuple[Assumption, ...] = ()
    entries: int = 1
    induction: bool = False  # over the iterations of a loop

    def texts(self, *kinds: Kind) -> list[str]:
        """The texts of the assumptions of some kinds."""
        return [assumption.text for assumption in self.assumed if assumption.kind in kinds]

    def assumes(self, *kinds: Kind) -> bool:
        return any(assumption.kind in kinds for assumption in self.assumed)


def by_normal_forms(answer: Mapping[str, Any]) -> Proof | None:
    """The proof in an answer of the oracle; None where it found none."""
    if not answer.get("proved"):
        return None
    assumed = tuple([Assumption(kind, text) for kind, text in answer["assumed"]])
    return Proof(answer["how"], assumed, induction=answer.get("induction", False))


def by_index_notation(assumed: Assumed, entries: int) -> Proof:
    """The proof of an identity in index notation that was read under some assumptions about nodes."""
    return Proof("index notation", tuple([Assumption(kind, node=node) for node, kind in assumed.items()]), entries)


def conditions(signs: Sequence[str]) -> str:
    """The signs that hold in the region of a proof: of many the first two that can be read, and a count."""
    readable = [sign for sign in signs if " ... " not in sign]
    if len(readable) == len(signs) <= MOST_SIGNS:
        return f"where {', '.join(signs)}"
    if not readable:
        return f"in the region of the point ({counted(len(signs), 'condition')})"
    return f"where {', '.join(readable[:2])}, ... {len(signs) - len(readable[:2])} more"


# --- what is said of sets of points -------------------------------------------------------------------------------


def conditions_of_set(assumed: Sequence[Assumption]) -> list[dict[str, str]]:
    """The conditions under which a statement about a set holds, each of its kind, in words."""
    ordered = sorted(assumed, key=lambda assumption: ON_SETS.index(assumption.kind))
    conditions = [{"kind": assumption.kind, "text": condition_of_set(assumption)} for assumption in ordered]
    return joined_conditions(conditions)


def joined_conditions(*lists: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Conditions that hold together, each once."""
    return list({condition["text"]: condition for conditions in lists for condition in conditions}.values())


def condition_of_set(assumption: Assumption) -> str:
    """What a proof assumes of all members of a set."""
    node = assumption.node
    if assumption.kind == "sign":
        return assumption.text
    if assumption.kind == "defined":
        return "both sides are defined"
    if assumption.kind == "kink" or node is None:
        return "no comparison is a tie"
    args = [inner(arg) for arg in node.args]
    best = next((arg for arg in args if arg.primitive.name in BEST and arg.args[0] in args), node)
    if best.primitive.name in BEST:
        return f"the {BEST[best.primitive.name]} entry of `{node_text(best.args[0])}` is the only one"
    if len(args) == 1 or args[1].constant == 0:
        return f"`{node_text(args[0])}` is not 0"
    return f"`{node_text(args[0])}` and `{node_text(args[1])}` differ"


def inner(node: Node) -> Node:
    """A node without the shape that an operation gave it."""
    while node.primitive in (broadcast, reshape):
        (node,) = node.args
    return node
