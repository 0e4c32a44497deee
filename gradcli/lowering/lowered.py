"""The result of lowering: a program, its point, and the claims and hand-written rules to check."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.graph.program import HandRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic, Span
    from gradcli.graph.node import Node
    from gradcli.graph.program import Program
    from gradcli.language.source import Source
    from gradcli.language.syntax import Script
    from gradcli.lowering.derived import Derived


class Block(NamedTuple):
    """A call that was inlined, a loop or an iteration of one: it made the nodes from one serial number to the other."""

    first: int
    last: int
    label: str
    span: Span | None


def shape_help(right: Sequence[int], claimed: Sequence[int], text: str) -> str:
    """What to write where a claim has another shape than the gradient or the Jacobian that it is about."""
    if len(claimed) == 1 and [*right] == [*claimed, *claimed]:
        return f"write diag({text}) for a matrix with these entries on its diagonal"
    if len(claimed) == 2 and [*right] == [*claimed][::-1]:
        plain = text.removesuffix(".T")
        return f"write {plain if plain != text and plain.isidentifier() else f'({text}).T'} for the transpose"
    for axis, rest in ((0, claimed[1:]), (len(claimed) - 1, claimed[:-1])):
        if len(claimed) > 1 and [*rest] == [*right]:
            return f"a gradient for each sample? write sum({text}, axis={axis}) for that of a sum, mean(..) of a mean"
    return "a gradient has the shape of its leaf, a Jacobian that of the output, then that of the leaf"


class Claim(NamedTuple):
    """Two nodes of equal shape that a script says are equal on the domain.

    `derivative` is (output, target) if one side is exactly `grad(output, target)`: then `left` is the engine's
    gradient and `right` the claim. `leaf` is the target's name if it is a leaf.
    """

    left: Node
    right: Node
    span: Span
    text: str
    source: Source
    rtol: float | None = None
    expect: str | None = None
    leaf: str | None = None
    derivative: tuple[Node, Node] | None = None

    @property
    def line(self) -> int:
        """The line of the source on which it stands."""
        return self.span.line


class Lowered(NamedTuple):
    """A script as a program at a point. `values` has no entry for a free name without a default.

    `uses` maps a leaf to the place where the script first reads it; `reassigned` a closed name to its second
    assignment, which made it a constant; `several`: the output was written as several values; `names` are the script's
    names of intermediates, `blocks` the calls, loops and iterations that made nodes, each after those inside it,
    `random_arrays` the number of random arrays without a seed up to its end. `derived` maps the result of each
    derivative operator to its name, its operand, its variable and its direction.
    """

    script: Script
    program: Program
    values: dict[str, Any]
    claims: tuple[Claim, ...]
    rules: tuple[HandRule, ...]
    wrt: tuple[str, ...]
    notes: tuple[Diagnostic, ...]
    text: str
    several: bool
    uses: dict[str, Span]
    reassigned: dict[str, Span]
    expect: str | None
    names: dict[Node, str]
    blocks: tuple[Block, ...] = ()
    random_arrays: int = 0
    derived: Derived = {}  # nobody writes into it

    @property
    def source(self) -> Source:
        """The text that the script was read from."""
        return self.script.source

    def with_program(self, program: Program, names: dict[Node, str]) -> Lowered:
        """The same script as another program, which computes the same outputs."""
        return self._replace(program=program, names=names, blocks=(), random_arrays=0, derived={})
