"""A hand-written backward rule that is to be judged, on inputs of its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.diagnostics import Span
    from gradcli.graph.node import Node
    from gradcli.graph.program import Leaf


class HandRule:
    """A rule for the operands of a function; `args` are the nodes of its first call.

    `results` are the cotangents of `leaves`, for the cotangent of `output`. A rule that was written in Python has a
    `file`, and `lines`: for each result the line that computes it.
    """

    __slots__ = ("args", "cotangent", "file", "leaves", "lines", "name", "output", "results", "span")

    def __init__(
        self,
        name: str,
        span: Span,
        leaves: tuple[Leaf, ...],
        output: Node,
        cotangent: Node,
        results: tuple[Node, ...],
        args: tuple[Node, ...],
        file: str | None = None,
        lines: tuple[int, ...] = (),
    ) -> None:
        self.name = name
        self.span = span
        self.leaves = leaves
        self.output = output
        self.cotangent = cotangent
        self.results = results
        self.args = args
        self.file = file
        self.lines = lines or (span.line,) * len(leaves)

    @property
    def title(self) -> str:
        """What its author calls it: `f.vjp` in a script, `F.backward` in Python."""
        return f"{self.name}.{'vjp' if self.file is None else 'backward'}"
