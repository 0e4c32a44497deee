"""What proofs assume, as values: an identity holds wherever its assumptions do.

Every prover returns the identity together with what it took for granted; `granting` finds out whether that is true at
the point, or for all of a set, and says it where it is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gradcli.checks.formatting import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.formulas.index_proof import Assumed
    from gradcli.graph.node import Node

    Kind = Literal["sign", "connected", "fixed", "apart", "kink", "nonzero", "sizes"]

MOST_SIGNS = 4  # of a region that a message lists


class Assumption(NamedTuple):
    """Something that a proof takes for granted.

    sign: an expression has the sign that `text` states; connected: all of the region where the signs hold can be
    reached from the point; fixed: the leaf `text` stays at its value; apart: what `node` compares is not equal, or the
    entry that it chooses is the only one; kink: the point does not lie on a kink of `node`; nonzero: what `node`
    divides by is not 0; sizes: what `text` says of the sizes of arrays.
    """

    kind: Kind
    text: str = ""
    node: Node | None = None


class Proof(NamedTuple):
    """That both sides are equal: how it was found, what it assumes, and for how many entries it holds."""

    how: str
    assumed: tuple[Assumption, ...] = ()
    entries: int = 1
    induction: bool = False  # over the turns of a loop

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
