"""Reverse mode: from outputs and their cotangents, the graph of the cotangents of the targets.

The chain rule runs backward through a graph. Each node has a cotangent, the derivative of what is differentiated in the
node's value. A node passes its own on to its arguments, multiplied by its local partials; what arrives at a node from
several places adds up. So a node is visited after all that read it: in reverse topological order.

    for node in reversed(order):
        cotangent = arrived.pop(node)
        for arg, contribution in contributions(node, cotangent):
            arrived.add(arg, contribution)

Everything is built as nodes, so that a gradient is a program like any other: it has gradients itself.
`rules.py` says what a node passes on, `masks.py` why a cotangent has a mask, `accumulation.py` how parts of an array
add up, `loops.py` what a loop passes on.
"""

from __future__ import annotations

from gradcli.graph.loop import readers_by_loop
from gradcli.graph.node import Node, dependents, reachable
from gradcli.transforms.accumulation import Accumulator
from gradcli.transforms.masks import clean
from gradcli.transforms.rules import contributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.graph.node import Builder
    from gradcli.transforms.masks import Cotangent

    Contributions = list[tuple[Node, Cotangent]]


def pull(builder: Builder, outputs: Sequence[tuple[Node, Node]], targets: Sequence[Node]) -> list[Node | None]:
    """The cotangents of `targets`, given (output, cotangent) pairs; None where no path leads to a target.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, y = builder.leaf("x"), builder.leaf("y")
    >>> builder.simplifying = True
    >>> pull(builder, [(x * y, builder.constant(1))], [x, y]) == [y, x]
    True
    """
    arrived = sweep(builder, [(node, (ct, None)) for node, ct in outputs], targets, through=True)
    return [None if cotangent is None else clean(builder, cotangent) for cotangent in arrived]


def sweep(
    builder: Builder,
    outputs: Sequence[tuple[Node, Cotangent]],
    targets: Sequence[Node],
    through: bool = False,
    observer: Callable[[Node, Cotangent, Contributions], object] | None = None,
    stops: Iterable[Node] = (),
) -> list[Cotangent | None]:
    """The cotangents that arrive at the targets, with their masks; `observer` sees each node as it passes its own on.

    Unless `through`, the walk ends at the targets and at `stops`: what lies below them is not looked at.
    """
    barrier = frozenset() if through else frozenset((*targets, *stops))
    order = reachable([node for node, _ in outputs], barrier)
    active = dependents(order, targets)
    wanted = frozenset(targets)
    arrived = Accumulator(builder)
    for node, cotangent in outputs:
        arrived.add(node, cotangent)
    outer = builder.span
    for group in _backward(order):
        passing: dict[Node, Cotangent] = {}
        for node in group:
            if node.args and node in active and node not in barrier:
                # what has been passed on is forgotten, else the cotangents of all nodes would stay alive
                own = arrived.get(node) if node in wanted else arrived.pop(node)
                if own is not None:
                    passing[node] = own
        if not passing:
            continue
        builder.span = node.span
        sent = contributions(builder, passing, active, sweep)
        if observer is not None:
            *others, last = passing
            for other in others:
                observer(other, passing[other], [])
            observer(last, passing[last], sent)
        for arg, contribution in sent:
            arrived.add(arg, contribution)
    builder.span = outer
    return [arrived.get(target) for target in targets]


def _backward(order: Sequence[Node]) -> Iterable[Sequence[Node]]:
    """The nodes in reverse; those that read one loop come together, where the first of them is."""
    groups = readers_by_loop(order)
    later = {node for group in groups.values() for node in group[1:]}
    for node in reversed(order):
        if node in groups:
            yield groups[node][::-1]
        elif node not in later:
            yield (node,)
