"""Unrolls loops: chosen iterations are written out, the iterations between them stay loops.

A trace uses it to show single iterations, and evaluators without a rule for loops get a graph without loops. The values
are the same, bit for bit.
"""

from __future__ import annotations

from gradcli.graph.loop import (
    Loop,
    Opened,
    close,
    joined,
    loop_of,
    order_of_iterations,
    readers_by_loop,
    repeated,
    row,
    some_rows,
)
from gradcli.graph.node import Node, is_reader, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gradcli.graph.node import Builder

    Iterations = Callable[[Loop], Collection[int]]  # the iterations of a loop to write out


def every_iteration(loop: Loop) -> range:
    """All iterations of a loop."""
    return range(loop.count)


def unrolled(
    builder: Builder,
    outputs: Sequence[Node],
    iterations: Iterations = every_iteration,
    iteration_of: dict[Node, int] | None = None,
) -> dict[Node, Node]:
    """For every node that the outputs need, the node that replaces it: `iterations(loop)` of each loop are written out.

    The builder must be open. Loops inside a body are unrolled where an iteration of the body is written out.
    `iteration_of`, if given, receives the number of the iteration, counted from 1, for each node of the outermost
    iterations that are written out.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.graph.types import FLOAT
    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, a = builder.fresh_leaf(FLOAT), builder.leaf("a")
    >>> last = close(builder, 40, [(x, builder.constant(1))], [x*a]).last(0)
    >>> [node.primitive.name for node in reachable([unrolled(builder, [last], lambda loop: [0, 39])[last]])]
    ['leaf', 'constant', 'mul', 'last', 'mul']
    """
    return _rebuilt(builder, reachable(outputs), {}, iterations, {} if iteration_of is None else iteration_of)


def _rebuilt(
    builder: Builder,
    order: Sequence[Node],
    replaced: dict[Node, Node],
    iterations: Iterations,
    iteration_of: dict[Node, int],
) -> dict[Node, Node]:
    """Add to `replaced` the replacements of those nodes of a topological order that have none yet."""
    whole_of = {node: readers for readers in readers_by_loop(order).values() for node in readers}
    taken_apart: dict[Node, _Apart] = {}
    outer = builder.span
    for node in order:
        if node in replaced:
            continue
        args = tuple([replaced[arg] for arg in node.args])
        builder.span = node.span
        if is_reader(node):
            first, *_ = readers = whole_of[node]
            if first not in taken_apart:
                loop = loop_of(node)
                whole = Loop(loop.body, args, loop.count, loop.reverse)
                places = [reader.params["at"] for reader in readers if "at" in reader.params]
                taken_apart[first] = _Apart(whole, frozenset(iterations(whole)), places, iterations, iteration_of)
            replaced[node] = taken_apart[first].value(node)
        else:
            unchanged = args == node.args and node.builder is builder
            replaced[node] = node if unchanged else builder.copied(node, args)
    builder.span = outer
    return replaced


class _Apart:
    """The pieces of a loop in the order in which they run: single iterations, and loops over those between them."""

    __slots__ = ("pieces", "state", "whole")

    def __init__(
        self,
        whole: Loop,
        chosen: Collection[int],
        places: Sequence[int],
        iterations: Iterations,
        iteration_of: dict[Node, int],
    ) -> None:
        body, builder = whole.body, whole.builder
        states, stacks = len(body.carried), len(body.rows)
        self.whole = whole
        self.state: tuple[Node, ...] = whole.args[:states]
        self.pieces: dict[int, dict[int, Node]] = {}  # by their first iteration: the stacked values
        fixed = whole.args[states + stacks :]
        waiting: list[int] = []
        for number in [*order_of_iterations(whole.count, whole.reverse), None]:
            if number is not None and number not in chosen:
                waiting.append(number)
                continue
            if waiting:
                self._loop(min(waiting), len(waiting), fixed, places)
                waiting = []
            if number is not None:
                rows = [row(builder, stack, number) for stack in whole.args[states : states + stacks]]
                leaves = dict(zip(body.inputs, (*self.state, *rows, *fixed), strict=True))
                if body.index is not None:
                    leaves[body.index] = builder.constant(number)
                before = builder.count
                inside: dict[Node, int] = {}
                values = _rebuilt(builder, body.steps, leaves, iterations, inside)
                iteration_of.update(
                    {x: body.first + number + 1 for x in (*inside, *values.values()) if x.serial > before}
                )
                self.state = tuple([values[node] for node in body.nexts])
                self.pieces[number] = {at: repeated(builder, values[body.steps[at]], 1) for at in places}

    def _loop(self, first: int, count: int, fixed: Sequence[Node], places: Sequence[int]) -> None:
        """A loop over the iterations from `first` on."""
        whole, body, builder = self.whole, self.whole.body, self.whole.builder
        states = len(body.carried)
        stacks = [some_rows(builder, stack, first, count) for stack in whole.args[states : states + len(body.rows)]]
        if body.index is None or not first:
            loop = Loop(body, (*self.state, *stacks, *fixed), count, whole.reverse)
            self.pieces[first] = {at: loop.stacked(at) for at in places}
        else:
            opened = Opened(whole, first)
            loop = close(
                builder,
                count,
                list(zip(opened.carried, self.state, strict=True)),
                opened.nexts,
                rows=list(zip(opened.rows, stacks, strict=True)),
                index=opened.index,
                outputs=[opened.nodes[at] for at in places],
                reverse=whole.reverse,
                first=body.first + first,
            )
            self.pieces[first] = {at: loop.iterations(opened.nodes[at]) for at in places}
        self.state = tuple([loop.last(carry) for carry in range(states)])

    def value(self, reader: Node) -> Node:
        """The node that replaces a reader of the loop."""
        carry: int | None = reader.params.get("carry")
        if carry is not None:
            return self.state[carry]
        at: int = reader.params["at"]
        return joined(self.whole.builder, [self.pieces[first][at] for first in sorted(self.pieces)])
