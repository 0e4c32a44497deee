"""What is assumed of names without a value and of sizes that nothing gives, and what cannot be one."""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, GradcliError, visible
from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.node import Builder, Node
    from gradcli.graph.program import Leaf
    from gradcli.graph.types import Shape


class Reach(NamedTuple):
    """How far an iteration reads an axis of an array: of `size` entries, those before `end`."""

    variable: str
    array: str
    axis: int
    size: int
    end: int
    whole: bool  # whether it has to be all of the axis
    span: Span | None


class OpenCount(Exception):
    """Raised when a range ends at a free name: it is a size, so the script is lowered again with it as one."""

    def __init__(self, name: str, problem: GradcliError) -> None:
        self.name = name
        self.problem = problem  # what is wrong with a name that cannot be one


class OpenShapes:
    """The shapes of names without value and declaration, and the values of symbols for sizes.

    `chosen`: a size was chosen among many, which a note tells the user.
    `symbolic`: sizes stand for others; `guessed`: ranks are tried out. `counts` are the free names that are sizes.
    """

    __slots__ = ()
    chosen = True
    symbolic = False
    guessed = False
    counts: frozenset[str] = frozenset()

    def shape(self, name: str) -> Shape:
        """The shape of a name: that of a number, unless another is known."""
        return ()

    def size(self, name: str, others: int) -> int:
        """The size for a symbol; `others` were chosen before it."""
        return 2 + others

    def node(self, builder: Builder, leaves: dict[str, Leaf], name: str, size: int) -> Node:
        """The node of a symbol that the script computes with."""
        return builder.constant(size)

    def number(self, builder: Builder, leaves: dict[str, Leaf], number: Any) -> Node:
        """The node of a number that a function returned, such as the size of an array."""
        return builder.constant(number)

    def size_of(self, node: Any) -> int | None:
        """The size for a node, if it is that of a symbol and not a constant."""
        return None

    def counting(self, open_count: OpenCount) -> None:
        """Take a free name for a size; raises GradcliError where sizes are known."""
        raise open_count.problem

    def reached(self, reaches: Sequence[Reach]) -> None:
        """Take note of how far arrays are read; raises GradcliError where that is too far, or not far enough."""
        for reach in reaches:
            if (reach.whole and reach.end != reach.size) or (self.symbolic and reach.end > reach.size):
                raise LengthsDiffer(reach, reaches)

    def fit(self, problem: GradcliError | None) -> bool:
        """Change sizes after an attempt and its error, if there was one; whether that makes another attempt."""
        return False


class LengthsDiffer(GradcliError):
    """The error for arrays of different lengths that one variable runs over, one of which is given."""

    def __init__(self, reach: Reach, reaches: Sequence[Reach]) -> None:
        name, end = visible(reach.variable), reach.end
        same = [own for own in reaches if own.variable == reach.variable and own.size == own.end == end]
        parts = [f"`{visible(own.array)}` has {own.size}" for own in (*same[:1], reach)]
        text = f"`{name}` runs over {' and '.join(parts)}" if same else f"`{name}` takes {end} values, and {parts[0]}"
        hint = "give them one length, or end the range where it is meant"
        super().__init__(Diagnostic("GC301", f"{text} entries", reach.span, help=hint))
