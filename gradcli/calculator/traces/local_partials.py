"""Local partials of operations as formulas in their operands, such as `cos(x)` for `sin(x)` by x.

An entry-by-entry operation has a partial for each operand. Any other operation has the cotangent that it sends for a
cotangent `ct`: `A @ x` sends `A.T @ ct` to x. A formula is shown only if it parses to the normal form of the derivative
and has the number next to it as its value.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.formula_values import CLOSE, entry_pairs
from gradcli.formulas import NoFormula, entries_text, formula_texts, same_form
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.substitution import substituted
from gradcli.lowering import NO_CLAIMS, lower
from gradcli.lowering.shapes.ranks import FixedShapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

LONGEST = 120  # characters of a formula in a row of a table
COTANGENT = "ct"


class LocalFormula(NamedTuple):
    """A formula in placeholders, and the operand for each of them."""

    text: str
    operands: dict[str, Node]

    def shown(self, text: Callable[[Node], str]) -> str:
        """The formula with the texts of the operands in it."""
        return substituted(self.text, {name: text(node) for name, node in self.operands.items()})

    def holds(self, known: Mapping[Node, Any], value: Any) -> bool:
        """Whether the formula has this value; away from kinks it always does."""
        place = {name: known[node] for name, node in self.operands.items()}
        pairs = entry_pairs(self.text, place, value)
        scale = max((abs(y) for _, y in pairs or ()), default=0.0)
        return pairs is not None and all(x == y or abs(x - y) <= CLOSE * scale for x, y in pairs)


def local_formula(node: Node, operands: Sequence[Node], cotangent: Node | None = None) -> LocalFormula | None:
    """The formula of a node that is computed from operands; None if no formula parses to the node.

    The builder must be open.
    """
    known = [
        operand for operand in dict.fromkeys(operands) if operand.args or "name" in operand.params
    ]  # constants are written out
    names = {operand: f"operand_{place}" for place, operand in enumerate(known)}
    called = {**names, **({} if cotangent is None else {cotangent: COTANGENT})}
    for text in entry_texts(node, names) if cotangent is None else formula_texts(node, called):
        if len(text) <= LONGEST and reads_back(text, node, called):
            return LocalFormula(text, {name: operand for operand, name in names.items()})
    return None


def entry_texts(node: Node, names: Mapping[Node, str]) -> Iterator[str]:
    """The formula of an array whose entries are alike, without its shape: 1 and not ones(3)."""
    with suppress(NoFormula):
        yield entries_text(node, names)


def reads_back(text: str, node: Node, called: Mapping[Node, str], others: Mapping[str, Shape] | None = None) -> bool:
    """Whether a text in the script language has the normal form of a node; the node's builder must be open.

    `called` are nodes that the text reads under these names, `others` the shapes of the leaves that it may read.
    """
    shapes = {**(others or {}), **{name: leaf.shape for leaf, name in called.items()}}
    try:
        (output,) = lower(parse(Source(text)), shapes=FixedShapes(shapes, {}), mode=NO_CLAIMS).program.outputs
    except GradcliError:
        return False
    with building(output.builder, reachable([output])):
        return same_form(node, output, called)
