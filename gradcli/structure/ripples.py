"""Propagates a change of single entries through a graph, and computes only the entries that it changes.

Of every node only the entries that something reaches are recomputed, all of them in one call: pairs of an entry and
what has moved. Operations on numbers run on the pairs; sums and products with a matrix add up what has changed;
whatever mixes entries in another way runs on whole arrays, as long as these are small. Values only, no derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import building
from gradcli.graph.loop import written_nodes
from gradcli.graph.node import Node, reachable
from gradcli.structure.flows import SHIFT, Flow, TooDense, identity, inside
from gradcli.structure.moves import Moves, NeedsEntries, Rows, moved
from gradcli.structure.patterns import MOST_NODES, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.types import Shape

    Floats = NDArray[np.floating[Any]]
    Places = NDArray[np.int64]
    Step = Callable[[dict[Node, Floats]], Floats]  # the pairs of the operands, by node -> those of the result

MOST_PAIRS = 1 << 22
MOST_MIXED = 1 << 22  # entries of whole arrays, over all that has moved
HELD = ("peak", "magnitude")  # shifts and scales that cancel from what they are used for
MOST_ROUNDS = 8


class Ripples:
    """The pairs of some nodes, ready to be computed for any steps; raises TooDense where there are too many.

    `flows` gives for each node its entries and what reaches them, or None.
    """

    def __init__(self, nodes: Sequence[Node], targets: Sequence[Node], values: Mapping[str, Any]) -> None:
        if written_nodes(reachable(nodes)) > MOST_NODES:
            raise TooDense
        written = expanded(nodes)
        order = reachable(written)
        if len(order) > MOST_NODES:
            raise TooDense
        names = {target.params["name"] for target in targets}
        held = {name: value for name, value in values.items() if name not in names}
        self.walk = Walk(MOST_PAIRS, True, held)
        tape = Tape(written)
        needed = {node.params["name"] for node, _ in tape.inputs}
        results = tape.run_all({key: value for key, value in values.items() if key in needed}, backend="numpy")
        self.base = {node: np.asarray(value, dtype=np.float64).reshape(-1) for node, value in results.items()}
        self.size = sum(target.type.size for target in targets)
        self.known: dict[Node, Flow | None] = {}
        self.targets: list[tuple[Node, int, int]] = []
        first = 0
        for target in targets:
            self.known[target] = identity(target.type.size, first)
            self.targets.append((target, first, first + target.type.size))
            first += target.type.size
        self.steps: list[tuple[Node, Step]] = []
        for node in order:
            if node not in self.known:
                self._add(node)
        self.nodes = written
        self.flows = [self.known[node] for node in written]

    def run(self, here: Floats, steps: Floats) -> list[Floats]:
        """For each node the values of its pairs when entry j of the targets is here[j] + steps[j]."""
        values: dict[Node, Floats] = {
            target: here[first:last] + steps[first:last] for target, first, last in self.targets
        }
        for node, step in self.steps:
            values[node] = step(values)
        return [
            values[node] if flow is not None else np.zeros(0) for node, flow in zip(self.nodes, self.flows, strict=True)
        ]

    # --- one step ---------------------------------------------------------------------------------------------

    def _add(self, node: Node) -> None:
        flows = [self.known.get(arg) for arg in node.args]
        flow = None
        if node.primitive.name not in HELD and any(one is not None for one in flows):
            flow = self.walk.through(node, flows)
        self.known[node] = flow
        if flow is not None:
            self.steps.append((node, self._step(node, flows, flow)))

    def _step(self, node: Node, flows: list[Flow | None], flow: Flow) -> Step:
        primitive = node.primitive
        if primitive.pointwise:
            return self._entry_by_entry(node, flows, flow)
        if primitive.moves:
            return self._moved(node, flows, flow)
        moving = [i for i, one in enumerate(flows) if one is not None]
        if primitive.name == "matmul" and len(moving) == 1:
            return self._multiplied(node, flows, flow, moving[0])
        if primitive.entries is not None and moving == [0]:
            recorder = _Places(self.walk)
            rows = [Rows(arg, one) for arg, one in zip(node.args, flows, strict=True)]
            try:
                primitive.entries(recorder, *rows, **node.params)
            except NeedsEntries:
                return self._mixed(node, flows, flow)
            if recorder.sources is not None:
                return self._taken(node, flows, flow, recorder.sources)
            if recorder.places is not None:
                return self._added(node, flows, flow, recorder.places)
        return self._mixed(node, flows, flow)

    def _entry_by_entry(self, node: Node, flows: Sequence[Flow | None], flow: Flow) -> Step:
        rows = flow.row_of_each()
        operands: list[tuple[Node | None, Any, Any]] = []  # node, base entries, where the node's pairs stand
        for arg, one in zip(node.args, flows, strict=True):
            base = self.base[arg]
            if one is flow:
                operands.append((arg, None, None))
            elif one is None:
                same = bool(base.size and (base == base[0]).all())
                operands.append((None, base[0] if same else base[rows], None))
            else:
                at = inside(flow, one)
                kept: Any = slice(None)
                if at is None:
                    at = locate(flow, one.row_of_each(), one.columns)
                    kept = np.flatnonzero(at < flow.pairs)  # all of them, unless the flow is wrong
                operands.append((arg, base[rows], (at[kept], kept)))
        impl, xp, params = node.primitive.impl, self.walk.xp, node.params
        kinds = [arg.type.kind for arg in node.args]
        assert impl is not None

        def step(found: dict[Node, Floats]) -> Floats:
            xs = []
            for (arg, base, at), kind in zip(operands, kinds, strict=True):
                if arg is None:
                    x = base
                elif at is None:
                    x = found[arg]
                else:
                    x = base.copy()
                    x[at[0]] = found[arg][at[1]]
                xs.append(x if kind == "float" else x.astype(kind))
            return np.asarray(impl(xp, *xs, **params), dtype=np.float64)

        return step

    def _moved(self, node: Node, flows: Sequence[Flow | None], flow: Flow) -> Step:
        at = origins(*moved(self.walk.xp, node, flows), flow)
        moving = [arg for arg, one in zip(node.args, flows, strict=True) if one is not None]
        if len(moving) == 1:
            return lambda found: found[moving[0]][at]
        return lambda found: np.concatenate([found[arg] for arg in moving])[at]

    def _taken(self, node: Node, flows: Sequence[Flow | None], flow: Flow, sources: Places) -> Step:
        one, arg = flows[0], node.args[0]
        assert one is not None
        at = origins(one, sources, flow)
        return lambda found: found[arg][at]

    def _added(self, node: Node, flows: Sequence[Flow | None], flow: Flow, into: Places) -> Step:
        one, arg = flows[0], node.args[0]
        assert one is not None
        rows = one.row_of_each()
        at = locate(flow, into[rows], one.columns)
        before, after = self.base[arg][rows], self.base[node][flow.row_of_each()]
        return lambda found: after + np.bincount(at, found[arg] - before, flow.pairs)

    def _multiplied(self, node: Node, flows: Sequence[Flow | None], flow: Flow, side: int) -> Step:
        """A product of matrices one of which stays: what has changed in the other is multiplied and added."""
        one, arg, other = flows[side], node.args[side], node.args[1 - side]
        assert one is not None
        rows, columns = node.shape[-2:]
        stack, first, second = np.unravel_index(one.row_of_each(), _stacked(arg.shape))
        beside = self.base[other].reshape(_stacked(other.shape))
        free = np.arange(columns if side == 0 else rows)
        if one.pairs * len(free) > MOST_PAIRS:
            raise TooDense
        if side == 0:  # (stack, first, second) @ (stack, second, free)
            factors = beside[stack, second]
            into = (stack * rows + first)[:, None] * columns + free
        else:  # (stack, free, first) @ (stack, first, second)
            factors = beside[stack, :, first]
            into = (stack[:, None] * rows + free) * columns + second[:, None]
        at = locate(flow, into.reshape(-1), np.repeat(one.columns, len(free)))
        used = at < flow.pairs
        before, after = self.base[arg][one.row_of_each()], self.base[node][flow.row_of_each()]
        at = at[used]

        def step(found: dict[Node, Floats]) -> Floats:
            change = factors * (found[arg] - before)[:, None]
            return after + np.bincount(at, change.reshape(-1)[used], flow.pairs)

        return step

    def _mixed(self, node: Node, flows: Sequence[Flow | None], flow: Flow) -> Step:
        """An operation on whole arrays, one for each thing that has moved."""
        moved = np.unique(np.concatenate([one.columns for one in flows if one is not None]))
        count = len(moved)
        if count * (node.type.size + sum(arg.type.size for arg in node.args)) > MOST_MIXED:
            raise TooDense
        spots = [None if one is None else (np.searchsorted(moved, one.columns), one.row_of_each()) for one in flows]
        impl, xp = node.primitive.impl, self.walk.xp
        assert impl is not None
        ranks = tuple(len(arg.shape) for arg in node.args)
        wanted = (np.searchsorted(moved, flow.columns), flow.row_of_each())

        def step(found: dict[Node, Floats]) -> Floats:
            xs = []
            for arg, spot in zip(node.args, spots, strict=True):
                x = self.base[arg].reshape(1, -1)
                if spot is not None:
                    x = np.repeat(x, count, axis=0)
                    x[spot] = found[arg]
                x = x.reshape(-1, *arg.shape) if spot is not None else x.reshape(arg.shape)
                xs.append(x if arg.type.kind == "float" else x.astype(arg.type.kind))
            if node.primitive.aligned:
                xs = xp.aligned(xs, ranks)
            whole = np.asarray(impl(xp, *xs, ranks=ranks, **node.params), dtype=np.float64)
            result: Floats = np.broadcast_to(whole, (count, *node.shape)).reshape(count, -1)[wanted]
            return result

        return step


class _Places(Moves):
    """A field that writes down where a rule puts entries, or takes them from."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self.places: Places | None = None
        self.sources: Places | None = None

    def scatter(self, x: Rows, positions: Any, shape: Shape) -> Flow | None:
        self.places = np.asarray(positions, dtype=np.int64)
        return None

    def take_along(self, x: Rows, index: Rows, axis: int) -> Flow | None:
        self.sources = self.along(x.shape, index.node, axis)
        return None

    def put_along(self, x: Rows, index: Rows, axis: int, size: int) -> Flow | None:
        at = len(x.shape) + axis
        self.places = self.along((*x.shape[:at], size, *x.shape[at + 1 :]), index.node, axis)
        return None


def _stacked(shape: Shape) -> Shape:
    """The shape of matrices, with the axes in front of them as one."""
    return (max(1, int(np.prod(shape[:-2], dtype=np.int64))), *shape[-2:])


def locate(flow: Flow, rows: Places, columns: Places) -> Places:
    """Where in a flow some pairs stand, which it has; the number of its pairs for those that it has not."""
    keys, wanted = flow.keys(), (rows << SHIFT) + columns
    at = np.searchsorted(keys, wanted)
    there = keys[np.minimum(at, len(keys) - 1)] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
    return np.where(there, at, flow.pairs)


def origins(flow: Flow, places: Places, result: Flow) -> Places:
    """Where in a flow the pairs of `result` come from, whose row r is row places[r] of the flow."""
    counts = result.lengths()
    if len(places) and not np.array_equal(counts, flow.lengths()[places]):
        return locate(flow, places[result.row_of_each()], result.columns)
    first = flow.starts[places] - result.starts[:-1]
    return np.arange(result.pairs) + np.repeat(first, counts)


def expanded(nodes: Sequence[Node]) -> list[Node]:
    """The same values with composite operations written out by their definitions."""
    outputs = list(nodes)
    with building(outputs[0].builder, reachable(outputs)) as builder:
        simplifying, builder.simplifying = builder.simplifying, False
        try:
            for _ in range(MOST_ROUNDS):
                order = reachable(outputs)
                if all(node.primitive.kind != "composite" for node in order):
                    break
                written: dict[Node, Node] = {}
                for node in order:
                    args = tuple([written[arg] for arg in node.args])
                    if node.primitive.kind == "composite":
                        assert node.primitive.definition is not None
                        written[node] = node.primitive.definition(*args, **node.params)
                    else:
                        written[node] = node if args == node.args else builder.apply(node.primitive, args, node.params)
                outputs = [written[node] for node in outputs]
        finally:
            builder.simplifying = simplifying
    return outputs
