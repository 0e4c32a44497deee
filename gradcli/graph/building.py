"""Building derivatives: contexts in which a builder makes nodes from others, definitions written out, complex programs.

A builder's table of nodes is dropped when a program is finished, so that nodes and table form no cycle; a transform
fills it again with the program's nodes.
"""

from __future__ import annotations

import gc
from _thread import RLock

from gradcli.base.diagnostics import error
from gradcli.base.records import NamedTuple
from gradcli.graph.node import CONSTANT, Builder, Node, dependents, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from typing import Any

    from gradcli.graph.primitive import Primitive

_deriving = RLock()  # threads may derive from one graph


class PlaneBuilder(Builder):
    """A builder of programs on complex numbers.

    Rules hold for holomorphic operations. Any other one is expanded to its declaration's `plane`, in which `real_part`
    is the only operation that is not holomorphic; its transpose reduces a cotangent to its real part.
    """

    __slots__ = ()

    def apply(self, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any]) -> Node:
        if primitive.plane is not None and not all(map(is_real, args)):
            expanded: Node = primitive.plane(*args, **params)
            return expanded
        return super().apply(primitive, args, params)

    def definition_of(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.plane or primitive.definition

    def require_holomorphic(self, outputs: Sequence[Node], targets: Sequence[Node], what: str) -> None:
        order = reachable(outputs)
        active = dependents(order, targets)
        for node in order:
            if node in active and is_real(node):
                hint = "take grad, or use the real and the imaginary part as separate leaves"
                raise error("GC411", f"{what} in complex leaves: this is not holomorphic", node.span, help=hint)


def is_real(node: Node) -> bool:
    """Whether a node of a program on complex numbers is written as a real number."""
    return node.primitive is CONSTANT or node.primitive.name == "real_part"


class building:
    """A context for making derivative nodes from these nodes: the table is filled, `simplifying` is on.

    Afterwards the spans are restored. Only one thread at a time can be in it.
    """

    __slots__ = ("builder", "nodes", "opened", "saved")

    def __init__(self, builder: Builder, nodes: Iterable[Node]) -> None:
        self.builder = builder
        self.nodes = nodes

    def __enter__(self) -> Builder:
        builder = self.builder
        _deriving.acquire()
        self.opened = builder.table is None
        if self.opened:
            builder.reopen(self.nodes)
        self.saved = (builder.simplifying, builder.span)
        builder.simplifying = True
        return builder

    def __exit__(self, *exc: object) -> None:
        self.builder.simplifying, self.builder.span = self.saved
        if self.opened:
            self.builder.close()
        _deriving.release()


class uncollected:
    """A context without Python's garbage collector of cycles, for building many small objects that all stay alive.

    The collector would otherwise traverse all of them again and again while their number grows.
    """

    __slots__ = ("usual",)

    def __enter__(self) -> None:
        self.usual = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self.usual:
            gc.enable()


# --- definitions of composite operations --------------------------------------------------------------------------


class Definition(NamedTuple):
    """`result` from `inputs`, one for each operand; `steps` are all nodes in order, the inputs among them."""

    inputs: list[Node]
    steps: list[Node]
    result: Node


def definition_key(node: Node) -> Hashable:
    """What a definition depends on: nodes with the same key share one definition."""
    return node.primitive, tuple([arg.type for arg in node.args]), tuple(node.params.items())


def written_out(node: Node, operand_for: Callable[[Node], Node] | None = None) -> Definition:
    """The definition of an operation for operands of these types; `operand_for` maps its inputs to the operands to use.

    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x = builder.leaf("x", (2, 2))
    >>> [step.primitive.name for step in written_out(builder.call("logdet", x)).steps]
    ['leaf', 'det', 'log']
    """
    primitive = node.primitive
    assert primitive.definition is not None
    builder = type(node.builder)(node.builder.vocabulary)
    inputs = [builder.fresh_leaf(arg.type) for arg in node.args]
    operands: list[Any] = inputs if operand_for is None else [operand_for(x) for x in inputs]
    result: Node = primitive.definition(*operands, **node.params)
    builder.close()
    return Definition(inputs, reachable([result]), result)
