"""One step of a computation: a primitive, its arguments and its static parameters; frozen, compared by identity.

A node is never changed once its builder has made it. Walks over nodes are loops over `serial`, which grows from
arguments to results, so sorting by it is a topological order.
"""

from __future__ import annotations

from operator import attrgetter

from gradcli.graph.operand import Operand
from gradcli.graph.primitive import Primitive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from fractions import Fraction
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.builder import Builder
    from gradcli.graph.types import Shape, Type

    Exact = int | Fraction | str

LEAF = Primitive("leaf", "input", "An input of the program.", internal=True)
DATA = Primitive("data", "input", "An array of constants, never differentiated.", internal=True)
CONSTANT = Primitive("constant", "input", "A number, exact if it is rational.", internal=True)


def _operator(name: str) -> Callable[[Node, Any], Node]:
    """The method of an operator between two operands."""

    def method(self: Node, other: Any) -> Node:
        builder = self.builder
        if type(other) is Node:
            return builder.apply(builder.vocabulary[name], (self, other), {})
        return builder.bind(builder.vocabulary[name], (self, other), {})

    return method


class Node(Operand):
    """An operation applied to nodes. `params` is static metadata: axes, shapes, names."""

    __slots__ = ("args", "builder", "params", "primitive", "serial", "span", "type")

    def __init__(
        self,
        primitive: Primitive,
        args: tuple[Node, ...],
        params: dict[str, Any],
        type: Type,
        serial: int,
        span: Span | None,
        builder: Builder,
    ) -> None:
        self.primitive = primitive
        self.args = args
        self.params = params
        self.type = type
        self.serial = serial
        self.span = span
        self.builder = builder

    def bind(self, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Node:
        return self.builder.bind(primitive, xs, params)

    def named(self, name: str) -> Primitive:
        return self.builder.vocabulary[name]

    # the operators that rules are made of, without a detour

    __add__ = _operator("add")
    __sub__ = _operator("sub")
    __mul__ = _operator("mul")
    __truediv__ = _operator("div")

    def __neg__(self) -> Node:
        builder = self.builder
        return builder.apply(builder.vocabulary["neg"], (self,), {})

    def _call(self, name: str, *xs: Any, **params: Any) -> Node:
        builder = self.builder
        return builder.bind(builder.vocabulary[name], xs, params)

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def constant(self) -> Exact | None:
        """The exact value of a constant (an int, a Fraction, or a name such as "pi"); None for anything else."""
        return self.params["value"] if self.primitive is CONSTANT else None

    @property
    def name(self) -> str | None:
        """The name of a leaf; None for anything else."""
        return self.params["name"] if self.primitive is LEAF else None

    def __repr__(self) -> str:
        inner = ", ".join(f"#{arg.serial}" for arg in self.args)
        static = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"<#{self.serial} {self.primitive.name}({inner}{static}) {self.type}>"


def is_reader(node: Node) -> bool:
    """Whether a node reads a loop."""
    return "body" in node.params


_serial = attrgetter("serial")


def reachable(outputs: Iterable[Node], stops: Iterable[Node] = ()) -> list[Node]:
    """Every node that the outputs depend on, themselves included, in topological order; nothing below `stops`."""
    stops = frozenset(stops)
    nodes = list(dict.fromkeys(outputs))
    seen = set(nodes)
    add, append = seen.add, nodes.append
    for node in nodes:  # the list grows while it is read
        if stops and node in stops:
            continue
        for arg in node.args:
            if arg not in seen:
                add(arg)
                append(arg)
    nodes.reverse()  # nearly in order, which is what sorting is fast at
    nodes.sort(key=_serial)
    return nodes


def dependents(order: Iterable[Node], targets: Iterable[Node]) -> set[Node]:
    """The nodes of a topological order that depend on a target through differentiable operations, targets included."""
    reached = set(targets)
    for node in order:
        for arg in node.args:
            if arg in reached:
                if node.primitive.kind != "nondifferentiable":
                    reached.add(node)
                break
    return reached
