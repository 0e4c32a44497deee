"""Forward mode: from tangents of some nodes, the graph of the tangents of the outputs.

It reads the same declarations as reverse mode and walks from arguments to results. A tangent of None is zero and
costs nothing. `where` selects between tangents, so a branch that is not taken never touches the result.
"""

from __future__ import annotations

from gradcli.graph.loop import readers_by_loop
from gradcli.graph.node import Node, reachable
from gradcli.transforms.rules import chain, is_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.graph.node import Builder

    Tangents = dict[Node, Node]


def push(
    builder: Builder,
    outputs: Sequence[Node],
    tangents: Mapping[Node, Node],
    stops: Sequence[Node] = (),
) -> list[Node | None]:
    """The tangents of `outputs`, given the tangents of some nodes; None where nothing moves.

    What lies below `stops` is not walked: it does not move.
    """
    known: Tangents = dict(tangents)
    _pushed(builder, reachable(outputs, stops), known, set(tangents))
    return [known.get(output) for output in outputs]


def _pushed(builder: Builder, order: Sequence[Node], known: Tangents, active: set[Node]) -> None:
    """Add the tangents of the nodes of a topological order; `active` are those that depend on what moves."""
    outer = builder.span
    loops = {node: readers for readers in readers_by_loop(order).values() for node in readers}
    for node in order:
        if node in active:
            continue
        for arg in node.args:
            if arg in active:
                if node in loops:  # what reads one loop moves together
                    from gradcli.transforms.loop_derivatives import pushed

                    readers = [reader for reader in loops[node] if reader not in active]
                    builder.span = node.span
                    known.update(pushed(builder, readers, known, push))
                    active.update(readers)
                elif node.primitive.kind != "nondifferentiable":
                    active.add(node)
                    builder.span = node.span
                    tangent = _tangent(builder, node, known)
                    if tangent is not None:
                        known[node] = tangent
                break
    builder.span = outer


def orders(builder: Builder, output: Node, target: Node) -> Iterator[Node]:
    """The derivatives of orders 1, 2, ... in one scalar target: forward mode again and again.

    A node moves in every order as in the first one, so what orders share is moved once.
    """
    known: Tangents = {target: builder.constant(1, target.shape)}
    active, walked = {target}, {target}
    while True:
        order = reachable([output], walked)
        walked.update(order)
        _pushed(builder, order, known, active)
        tangent = known.get(output)
        output = builder.constant(0, output.shape) if tangent is None else tangent
        yield output


def _tangent(builder: Builder, node: Node, known: Tangents) -> Node | None:
    primitive, args, params = node.primitive, node.args, node.params
    kind = primitive.kind
    moving = [known.get(arg) for arg in args]
    terms: list[Node] = []
    if kind == "elementwise":
        assert primitive.partials is not None
        partials = primitive.partials(*args, out=node, **params)
        for partial, tangent in zip(partials, moving, strict=True):
            if tangent is not None and partial is not None and not is_zero(partial):
                terms.append(chain(builder, partial, tangent))
    elif kind == "linear":
        return moved_linearly(builder, node, moving)
    elif kind == "bilinear":
        for position, tangent in enumerate(moving):
            if tangent is not None:
                operands = list(args)
                operands[position] = tangent
                terms.append(builder.apply(primitive, tuple(operands), params))
    elif kind == "structured":
        terms = [
            rule(tangent, *args, out=node, **params)
            for rule, tangent in zip(primitive.pushforward or (), moving, strict=True)
            if tangent is not None and rule is not None
        ]
    else:
        inner = builder.expanded(node)
        tangents = {arg: known[arg] for arg in args if arg in known}
        return push(builder, [inner], tangents, stops=args)[0]
    total: Node | None = None
    for term in terms:
        total = term if total is None else builder.apply(builder.vocabulary["add"], (total, term), {})
    return total


def moved_linearly(builder: Builder, node: Node, moving: Sequence[Node | None]) -> Node | None:
    """A linear operation is its own derivative: tangents stand in the arguments in which it is linear."""
    operands = []
    moved = False
    for position, (arg, tangent) in enumerate(zip(node.args, moving, strict=True)):
        if node.primitive.linear_in(position) is None:
            operands.append(arg)
        elif tangent is None:
            operands.append(builder.constant(0, arg.shape))
        else:
            operands.append(tangent)
            moved = True
    return builder.apply(node.primitive, tuple(operands), node.params) if moved else None
