"""Verifies the invariants of a graph, for tests.

These are what every reading of a program relies on: the order of the nodes, one node for one computation, types that
follow from the declarations, explicit broadcasting, negative axes, exact constants, and rules that differentiation
can follow to its end.
"""

from __future__ import annotations

from fractions import Fraction

from gradcli.graph.arrays import NAMED
from gradcli.graph.building import building
from gradcli.graph.loop import Body
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, is_reader, reachable
from gradcli.graph.program import Program
from gradcli.graph.types import Type, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

KINDS = ("elementwise", "linear", "bilinear", "structured", "composite", "nondifferentiable")
AXIS_PARAMS = ("axis", "axes")
STATIC = (int, float, str, bool, Fraction, type(None), Body)


class Broken(AssertionError):
    """An invariant of the graph does not hold at a node."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{reason}: {node!r}")
        self.node = node


def verify(program: Program | Node | Sequence[Node]) -> None:
    """Raise `Broken` at the first node that breaks an invariant; the program is left as it was."""
    order = reachable(_outputs(program))
    for node in order:
        _check_order(node)
        _check_params(node)
        if is_reader(node):
            verify(node.params["body"].steps)
        if node.primitive in (LEAF, DATA, CONSTANT):
            _check_input(node)
        else:
            _check_type(node)
            _check_broadcasting(node)
            _check_rules(node)
    _check_sharing(order)
    _check_leaves(order)


def verify_pushforwards(program: Program | Node | Sequence[Node]) -> None:
    """Raise `Broken` where a structured operation's pushforward is not linear in its tangent.

    Each operation on the tangent's path must have a transpose in the argument where the tangent stands, else
    the derivation of the vjp would not end. New nodes are made for that, so this is a check of its own.
    """
    order = reachable(_outputs(program))
    if not order:
        return
    with building(order[0].builder, order) as builder:
        for node in order:
            for position, push in enumerate(node.primitive.pushforward or ()):
                if push is not None:
                    tangent = builder.fresh_leaf(node.args[position].type)
                    pushed = push(tangent, *node.args, out=node, **node.params)
                    _check_tangent_path(node, pushed, tangent)


def _outputs(program: Program | Node | Sequence[Node]) -> Sequence[Node]:
    if isinstance(program, Node):
        return (program,)
    return program.outputs if isinstance(program, Program) else program


def _check_order(node: Node) -> None:
    for arg in node.args:
        if arg.serial >= node.serial:
            raise Broken(node, f"the argument #{arg.serial} is not older than its use")
        if arg.builder is not node.builder:
            raise Broken(node, f"the argument #{arg.serial} belongs to another builder")


def _check_params(node: Node) -> None:
    """Static metadata is hashable and plain; axes are negative, so that batch axes pass in front."""
    for name, value in node.params.items():
        entries = value if isinstance(value, tuple) else (value,)
        for entry in entries:
            if not isinstance(entry, (*STATIC, tuple)):
                raise Broken(node, f"the parameter {name} is not a plain value")
        if name in AXIS_PARAMS and any(isinstance(entry, int) and entry >= 0 for entry in entries):
            raise Broken(node, f"the parameter {name} counts axes from the front")


def _check_input(node: Node) -> None:
    if node.args:
        raise Broken(node, "an input has arguments")
    if node.primitive is CONSTANT:
        value = node.params["value"]
        if isinstance(value, str):
            if value not in NAMED:
                raise Broken(node, "a constant with an unknown name")
        elif type(value) is not int and (not isinstance(value, Fraction) or value.denominator == 1):
            raise Broken(node, "a constant is not exact, or a whole number is not an int")
    if node.primitive is DATA:
        data = node.builder.data.get(node.params["digest"])
        if data is None:
            raise Broken(node, "the data is not in the table")
        if tuple(data.shape) != node.type.shape:
            raise Broken(node, f"the data has shape {tuple(data.shape)}")


def _check_type(node: Node) -> None:
    primitive = node.primitive
    if primitive.kind not in KINDS:
        raise Broken(node, f"an operation of the unknown kind {primitive.kind}")
    if primitive.impl is None:
        raise Broken(node, "an operation without value: it should have been expanded")
    if primitive.arity is not None and not primitive.call and len(node.args) != primitive.arity:
        raise Broken(node, f"{len(node.args)} arguments, not {primitive.arity}")
    types = tuple(arg.type for arg in node.args)
    expected = primitive.result_type(types, node.params)
    if expected != node.type:
        raise Broken(node, f"the type should be {expected}")
    if any(type(n) is not int or n < 0 for n in node.type.shape):
        raise Broken(node, "a shape of other than natural numbers")


def _check_broadcasting(node: Node) -> None:
    """Elementwise operands have one shape; matrices have one rank and equal leading axes."""
    shapes = [arg.type.shape for arg in node.args]
    if node.primitive.pointwise and any(shape != node.type.shape for shape in shapes):
        raise Broken(node, "operands of different shapes, entry by entry")
    if node.primitive.kind == "elementwise" and any(arg.type.kind != "float" for arg in node.args):
        raise Broken(node, "an elementwise operation on truth values or positions")
    if node.primitive.kind == "bilinear":
        x, y = shapes
        if len(x) < 2 or len(x) != len(y) or x[:-2] != y[:-2]:
            raise Broken(node, "matrices of different rank or leading axes")
    name = node.primitive.name
    if name == "broadcast" and len(shapes[0]) != len(node.type.shape):
        raise Broken(node, "a broadcast that raises the rank")
    if name == "reshape" and size_of(shapes[0]) != size_of(node.type.shape):
        raise Broken(node, "a reshape that changes the number of entries")
    if name == "where" and node.args[0].type.kind != "bool":
        raise Broken(node, "a choice by something else than a truth value")


def _check_rules(node: Node) -> None:
    """Every differentiable operation says how, once for each argument."""
    primitive = node.primitive
    kind = primitive.kind
    missing: Any = False
    if kind == "elementwise":
        missing = primitive.partials is None
    elif kind == "linear":
        missing = not primitive.transpose
    elif kind == "bilinear":
        missing = any(primitive.linear_in(position) is None for position in (0, 1))
    elif kind == "structured":
        missing = len(primitive.pushforward or ()) != len(node.args)
    elif kind == "composite":
        missing = primitive.definition is None
    if missing:
        raise Broken(node, f"the {kind} operation lacks its rule")


def _check_sharing(order: Sequence[Node]) -> None:
    """Equal computations are one node, except inputs that only derivations make and name by a number."""
    seen: dict[Any, Node] = {}
    for node in order:
        params = tuple((name, type(value), value) for name, value in node.params.items())
        key = (node.primitive, node.args, params, node.type)
        other = seen.setdefault(key, node)
        if other is not node:
            raise Broken(node, f"the same computation as #{other.serial}")


def _check_leaves(order: Iterable[Node]) -> None:
    types: dict[str, Type] = {}
    for node in order:
        if node.primitive is LEAF and types.setdefault(node.params["name"], node.type) != node.type:
            raise Broken(node, "two inputs with one name")


def _check_tangent_path(node: Node, pushed: Node, tangent: Node) -> None:
    on_path = {tangent}
    for inner in reachable([pushed]):
        positions = [position for position, arg in enumerate(inner.args) if arg in on_path]
        if not positions:
            continue
        on_path.add(inner)
        for position in positions:
            if not _linear_at(inner, position, on_path):
                raise Broken(
                    node,
                    f"in its pushforward, {inner.primitive.name} has no transpose in argument {position}",
                )


def _linear_at(node: Node, position: int, on_path: set[Node]) -> bool:
    """Whether an operation is linear in an argument, as far as its declaration shows."""
    primitive = node.primitive
    if primitive.kind in ("linear", "bilinear", "structured"):
        return primitive.linear_in(position) is not None
    if primitive.kind == "elementwise":
        assert primitive.partials is not None
        partials = primitive.partials(*node.args, out=node, **node.params)
        partial = partials[position]
        if isinstance(partial, Node):
            return on_path.isdisjoint(reachable([partial]))
        return partial is not None
    return primitive.kind == "composite"
