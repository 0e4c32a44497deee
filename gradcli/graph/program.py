"""A finished computation: named inputs, outputs, spans and constants; immutable.

Transforms make new programs from it, which share its nodes.
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.graph.node import Node, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Builder


class Leaf:
    """An input of a script: its node, default value, domain, and whether it is constant data."""

    __slots__ = ("const", "declared", "default", "domain", "name", "node", "span")

    def __init__(
        self,
        name: str,
        node: Node,
        default: Any = None,
        domain: Interval | None = None,
        const: bool = False,
        span: Span | None = None,
        declared: bool = False,
    ) -> None:
        self.name = name
        self.node = node
        self.default = default
        self.domain = domain
        self.const = const
        self.span = span
        self.declared = declared


class HandRule(NamedTuple):
    """A hand-written backward rule to be checked, on inputs of its own.

    `results` are the cotangents of `leaves`, for the cotangent of `output`; `args` are the nodes of the operands of
    the first call. A rule that was written in Python has a `file`, and maybe `lines`: of each result the line that
    computes it.
    """

    name: str
    span: Span
    leaves: tuple[Leaf, ...]
    output: Node
    cotangent: Node
    results: tuple[Node, ...]
    args: tuple[Node, ...]
    file: str | None = None
    lines: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """The name in the source: `f.vjp` in a script, `F.backward` in Python."""
        return f"{self.name}.{'vjp' if self.file is None else 'backward'}"


def cotangent_name(taken: Sequence[str]) -> str:
    """What a cotangent is called beside arguments: the beginning of none of their names."""
    name = "ct"
    while any(argument.startswith(name) for argument in taken):
        name += "_"
    return name


class Program:
    """Inputs and outputs of a graph. `leaves` keeps the order of the script."""

    __slots__ = ("_order", "builder", "leaves", "other_spans", "outputs", "statics")

    def __init__(
        self,
        builder: Builder,
        leaves: Mapping[str, Leaf],
        outputs: Sequence[Node],
        statics: Mapping[str, Any] | None = None,
        other_spans: Mapping[Node, list[Span]] | None = None,
    ) -> None:
        self.builder = builder
        self.leaves = dict(leaves)
        self.outputs = tuple(outputs)
        self.statics = dict(statics or {})
        self.other_spans = dict(other_spans or {})
        self._order: list[Node] | None = None

    @property
    def data(self) -> Mapping[str, Any]:
        """The arrays of constants, by digest."""
        return self.builder.data

    def nodes(self) -> list[Node]:
        """Every node that the outputs need, in topological order; computed once."""
        if self._order is None:
            self._order = reachable(self.outputs)
        return self._order

    def wrt(self, names: Sequence[str] | None = None) -> dict[str, Node]:
        """The leaves to differentiate with respect to: the named ones, or all that are not const."""
        if names is None:
            return {name: leaf.node for name, leaf in self.leaves.items() if not leaf.const}
        return {name: self.leaves[name].node for name in names}

    def with_outputs(self, outputs: Sequence[Node]) -> Program:
        """The same inputs, other outputs of the same graph."""
        return Program(self.builder, self.leaves, outputs, self.statics, self.other_spans)

    def __repr__(self) -> str:
        return f"<program of {', '.join(self.leaves)} -> {len(self.outputs)} outputs, {len(self.nodes())} nodes>"
