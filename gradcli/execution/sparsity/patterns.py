"""Finds the pattern of a Jacobian: which entries of the outputs may depend on which entries of the targets.

One walk over the nodes in topological order, on sets of positions. It reads what an operation does with entries (entry
by entry, moves, sums, products of matrices, a definition), never a derivative rule, and takes an operation that it
does not know to mix everything: a pattern may be too large, never too small.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import evaluate
from gradcli.execution.namespaces import namespace
from gradcli.execution.sparsity.flows import Flow, TooDense, empty, gathered, identity, scattered, stacked, united
from gradcli.graph.building import definition_key, written_out
from gradcli.graph.loop import loop_key, nodes_in
from gradcli.graph.node import LEAF, Node, is_reader, reachable
from gradcli.graph.types import size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.building import Definition
    from gradcli.graph.loop import Body
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape

    Places = NDArray[np.int64]
    Found = Flow | None  # None: nothing reaches this node

MOST_NODES = 20_000  # a walk over more takes longer than what it saves
PAIRS_PER_ENTRY = 256  # of rows and columns: what is denser has too many colours


def pattern(
    outputs: Sequence[Node],
    targets: Sequence[Node],
    *,
    values: bool = False,
    most: float | None = None,
    held: Mapping[str, Any] | None = None,
) -> Flow | None:
    """Which entries of the targets may reach which entries of the outputs; both counted one after the other.

    A pattern of derivatives leaves out what carries none: conditions, positions, comparisons, `detach`. With `values`
    it holds every way in which a value may change. `held` gives leaves whose values stay as they are. None where the
    pattern has more than `most` pairs; without `most`, where it is nearly full, or is too long to find.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.primitives import catalogue
    >>> x = Builder(catalogue()).leaf("x", (8,))
    >>> pattern([x*x], [x]).columns.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    order = reachable(outputs)
    if most is None and nodes_in(order) > MOST_NODES:
        return None
    rows = sum(output.type.size for output in outputs)
    columns = sum(target.type.size for target in targets)
    known: dict[Node, Found] = {}
    first = 0
    for target in targets:
        known[target] = identity(target.type.size, first)
        first += target.type.size
    if most is None:
        most = min(rows * columns / 4, PAIRS_PER_ENTRY * (rows + columns))
    walk = Walk(max(most, rows + columns), values, held or {})
    try:
        walk.along(order, known)
        flows = [known[output] or empty(output.type.size) for output in outputs]
    except TooDense:
        return None
    whole = stacked(flows)
    return whole if whole.pairs <= most else None


class Walk:
    """The rules of flow, with the limits of one walk."""

    def __init__(self, most: float, values: bool, held: Mapping[str, Any]) -> None:
        self.most = most
        self.held = held
        self.values = values
        self.xp = namespace("numpy")
        self.definitions: dict[Any, Definition] = {}
        # of each loop and what reaches it (kept, so that no other flow has its id): the flows in any of its iterations
        self.iterations: dict[Any, tuple[Sequence[Found], dict[Node, Found]]] = {}
        self.fixed: dict[Node, bool] = {}

    def along(self, order: Sequence[Node], known: dict[Node, Found]) -> None:
        """The flow of every node, given those of some."""
        for node in order:
            if node in known:
                continue
            flows = [known.get(arg) for arg in node.args]
            known[node] = self.through(node, flows) if any(flow is not None for flow in flows) else None

    def through(self, node: Node, flows: list[Found]) -> Found:
        """The flow of a node from those of its arguments."""
        primitive = node.primitive
        if not self.values:
            if primitive.kind == "nondifferentiable" or (primitive.piecewise_constant and len(flows) == 1):
                return None
            if primitive.kind == "linear":
                flows = [flow if primitive.linear_in(i) is not None else None for i, flow in enumerate(flows)]
        there = [flow for flow in flows if flow is not None]
        if not there:
            return None
        if primitive.pointwise:
            return united(there, self.most)
        if primitive.moves:
            return self._moved(node, flows)
        if primitive.name == "matmul":
            return self._product(node, flows)
        if primitive.entries is not None:
            rows = [PatternOperand(arg, flow) for arg, flow in zip(node.args, flows, strict=True)]
            with suppress(NeedsEntries):
                flow: Found = primitive.entries(Moves(self), *rows, **node.params)
                return flow
        if "axis" in node.params and len(node.args) == 1:
            return self._lane_by_lane(node, there[0])
        if primitive.kind == "composite":
            return self._defined(node, flows)
        return self.everywhere(node, there)

    def everywhere(self, node: Node, flows: Sequence[Flow]) -> Flow:
        """Every entry of the result depends on all that reaches any operand."""
        columns = np.unique(np.concatenate([flow.columns for flow in flows]))
        return gathered(Flow(np.array([0, len(columns)]), columns), np.zeros(node.type.size, dtype=np.int64), self.most)

    def _lane_by_lane(self, node: Node, flow: Flow) -> Flow:
        """An operation along axes of one array mixes what lies along them, and nothing else."""
        x, axes = node.args[0], node.params["axis"]
        axes = (axes,) if isinstance(axes, int) else axes
        kept = tuple(1 if i - len(x.shape) in axes else n for i, n in enumerate(x.shape))
        lanes = np.broadcast_to(places(kept), x.shape).reshape(-1)
        joined = scattered(flow, lanes, size_of(kept), self.most)
        if node.type.size == size_of(kept):
            return joined
        return gathered(joined, lanes, self.most) if node.shape == x.shape else self.everywhere(node, [flow])

    def _moved(self, node: Node, flows: Sequence[Found]) -> Flow:
        """What only moves entries is run on their positions."""
        return gathered(*moved(self.xp, node, flows), self.most)

    def _defined(self, node: Node, flows: Sequence[Found]) -> Found:
        """A composite operation is what its definition is, written out on inputs of its own."""
        if is_reader(node):
            return self._looped(node, flows)
        key = definition_key(node)
        definition = self.definitions.get(key)
        if definition is None:
            definition = self.definitions[key] = written_out(node)
        known: dict[Node, Found] = dict(zip(definition.inputs, flows, strict=True))
        self.along(definition.steps, known)
        return known[definition.result]

    def _looped(self, node: Node, flows: Sequence[Found]) -> Found:
        """A reader of a loop: what reaches its value in some iteration."""
        body: Body = node.params["body"]
        key = (loop_key(node), tuple(map(id, flows)))
        if key not in self.iterations:
            self.iterations[key] = flows, self._closed(body, node.params["count"], flows)
        known = self.iterations[key][1]
        if "carry" in node.params:
            return known[body.carried[node.params["carry"]]]
        step = body.steps[node.params["at"]]
        flow = known.get(step)
        if flow is None:
            return None
        return gathered(flow, np.tile(np.arange(step.type.size), node.params["count"]), self.most)

    def _closed(self, body: Body, count: int, flows: Sequence[Found]) -> dict[Node, Found]:
        """The flows in the body: in each iteration the carries collect what reaches them, until nothing is added."""
        inputs: dict[Node, Found] = dict(zip(body.inputs, flows, strict=True))
        for leaf in body.rows:  # a row is that of any iteration
            flow = inputs[leaf]
            if flow is not None:
                iteration = np.arange(flow.rows) % leaf.type.size
                inputs[leaf] = scattered(flow, iteration, leaf.type.size, self.most)
        self.fixed.update({leaf: False for leaf in (*body.inputs, body.index) if leaf is not None})
        for _ in range(min(count, MOST_NODES // len(body.steps) + 1)):
            known = dict(inputs)
            self.along(body.steps, known)
            grown = False
            for leaf, after in zip(body.carried, body.nexts, strict=True):
                before, more = inputs[leaf], known[after]
                if more is None:
                    continue
                joined = more if before is None else united([before, more], self.most)
                if before is None or joined.pairs > before.pairs:
                    inputs[leaf], grown = joined, True
            if not grown:
                return known
        if count > MOST_NODES // len(body.steps):
            raise TooDense
        return {**known, **{leaf: inputs[leaf] for leaf in body.carried}}

    def mixed(self, flow: Flow, before: Shape, after: Shape, axis: int) -> Flow:
        """Every entry of a lane of the result depends on the whole lane of the operand."""
        lanes = size_of(before) // max(before[axis], 1)
        joined = scattered(flow, lanes_along(before, axis), lanes, self.most)
        return gathered(joined, lanes_along(after, axis), self.most)

    def _product(self, node: Node, flows: Sequence[Found]) -> Found:
        """Entry (i, j) depends on row i of the first matrix and on column j of the second."""
        axes = zip(flows, node.args, (-1, -2), strict=True)
        return united([self.mixed(flow, x.shape, node.shape, axis) for flow, x, axis in axes if flow], self.most)

    def value(self, node: Node) -> Any:
        """The value of a node that no leaf reaches but held ones; None for others."""
        for step in reachable([node]):
            if step not in self.fixed:
                free = step.primitive is LEAF and step.params["name"] not in self.held
                self.fixed[step] = not free and all(self.fixed[arg] for arg in step.args)
        if not self.fixed[node]:
            return None
        try:
            return np.asarray(evaluate([node], self.held, backend="numpy")[0])
        except GradcliError:
            return None  # left to its own evaluation


# --- `entries` rules on positions ---------------------------------------------------------------------------


class NeedsEntries(Exception):
    """A rule computes with the entries themselves: positions do not show what it mixes."""


class PatternOperand:
    """An operand as `entries` rules see it: a shape, and a flow in place of entries."""

    __slots__ = ("flow", "node", "shape")

    def __init__(self, node: Node, flow: Found) -> None:
        self.node = node
        self.shape = node.shape
        self.flow = flow

    @property
    def flat(self) -> Any:
        raise NeedsEntries


class Moves:
    """What an `entries` rule is given for a field: it says where entries go, and the flow follows; no more."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def __getattr__(self, name: str) -> Any:
        raise NeedsEntries

    def positions(self, primitive: Primitive, shape: Shape, /, **params: Any) -> Places:
        """For each entry of a result that only moves entries, where it comes from."""
        assert primitive.impl is not None
        moved = primitive.impl(self.walk.xp, places(shape), ranks=(len(shape),), **params)
        return np.asarray(moved, dtype=np.int64).reshape(-1)

    def scatter(self, x: PatternOperand, positions: Any, shape: Shape) -> Found:
        """Entries added up at positions."""
        if x.flow is None:
            return None
        return scattered(x.flow, np.asarray(positions, dtype=np.int64), size_of(shape), self.walk.most)

    def take_along(self, x: PatternOperand, index: PatternOperand, axis: int) -> Found:
        """Entries at positions along an axis; where these are not known, from anywhere along it."""
        flows = []
        if x.flow is not None:
            places = self.along(x.shape, index.node, axis)
            if places is not None:
                flows.append(gathered(x.flow, places, self.walk.most))
            else:
                flows.append(self.walk.mixed(x.flow, x.shape, index.shape, axis))
        if index.flow is not None:
            flows.append(index.flow)
        return united(flows, self.walk.most) if flows else None

    def put_along(self, x: PatternOperand, index: PatternOperand, axis: int, size: int) -> Found:
        """The transpose of `take_along`."""
        at = len(x.shape) + axis
        shape = (*x.shape[:at], size, *x.shape[at + 1 :])
        flows = []
        if x.flow is not None:
            places = self.along(shape, index.node, axis)
            if places is not None:
                flows.append(scattered(x.flow, places, size_of(shape), self.walk.most))
            else:
                flows.append(self.walk.mixed(x.flow, x.shape, shape, axis))
        if index.flow is not None:
            flows.append(self.walk.mixed(index.flow, index.shape, shape, axis))
        return united(flows, self.walk.most) if flows else None

    def along(self, shape: Shape, index: Node, axis: int) -> Places | None:
        """The flat place in `shape` of each entry that the positions name; None where they are not known."""
        chosen = self.walk.value(index)
        if chosen is None or chosen.shape != index.shape:
            return None
        size = shape[axis]
        wanted = chosen.astype(np.int64)
        if wanted.size and not (wanted.min() >= -size and wanted.max() < size):
            return None
        grid = list(np.indices(index.shape))
        grid[len(shape) + axis] = wanted % max(size, 1)
        flat: Places = np.ravel_multi_index(tuple(grid), shape).reshape(-1).astype(np.int64)
        return flat


def moved(xp: Any, node: Node, flows: Sequence[Found]) -> tuple[Flow, Places]:
    """Of an operation that only moves entries: the flows of its operands as one, and where each result comes from."""
    positions, parts, start = [], [], 0
    for arg, flow in zip(node.args, flows, strict=True):
        size = arg.type.size
        positions.append(np.arange(start, start + size).reshape(arg.shape))
        parts.append(empty(size) if flow is None else flow)
        start += size
    assert node.primitive.impl is not None
    ranks = tuple(len(arg.shape) for arg in node.args)
    places = node.primitive.impl(xp, *positions, ranks=ranks, **node.params)
    return stacked(parts), np.asarray(places, dtype=np.int64).reshape(-1)


def places(shape: Shape) -> Places:
    return np.arange(size_of(shape)).reshape(shape)


def lanes_along(shape: Shape, axis: int) -> Places:
    """For each entry of an array, the number of its lane along an axis."""
    kept = list(shape)
    kept[len(shape) + axis] = 1
    return np.broadcast_to(places(tuple(kept)), shape).reshape(-1)
