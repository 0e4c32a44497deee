"""Central differences of a program by few evaluations, of which each is of many points at once.

Entries that reach no entry of an output in common move together. A scalar that is made of sums over arrays is cut
there: the terms of the sums have a sparse Jacobian although the scalar depends on everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.evaluate import Tape
from gradcli.execution.sparsity.compressed import by_columns
from gradcli.execution.sparsity.patterns import pattern
from gradcli.graph.building import building
from gradcli.graph.node import CONSTANT, reachable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradcli.graph.node import Node
    from gradcli.graph.program import Program

    Floats = NDArray[np.floating[Any]]

CACHED = 1 << 15  # entries of the largest value in one evaluation


def central_differences(program: Program, point: Floats, eps: float) -> Floats:
    """The transposed Jacobian of the first output by the first leaf, at `point`; other leaves keep their defaults.

    >>> from gradcli.eager import record, tensor
    >>> central_differences(record(lambda x: x * x, tensor([1.0, 3.0])), np.array([1.0, 3.0]), 0.5)
    array([[2., 0.],
           [0., 6.]])
    """
    (name, leaf), *others = program.leaves.items()
    output, size = program.outputs[0], point.size
    cut = None if output.shape else _cut_at_sums(output, leaf.node)
    parts, rest, sums = ([output], output, []) if cut is None else cut
    known = {key: other.default for key, other in others}
    flow = pattern(parts, [leaf.node], values=True, held=known)
    moves = None if flow is None else by_columns(flow, size)
    if moves is None or 2 * moves.sweeps > size:
        return _one_by_one(program, point, eps)
    steps = eps * moves.seeds()
    points = np.concatenate([steps, -steps, np.zeros((1, size))]) + point.reshape(-1)
    rows = evaluated(Tape(parts), {**known, name: points.reshape(-1, *point.shape)}, len(points))
    above, below = (moves.entries(moved - rows[-1]) for moved in (rows[: moves.sweeps], rows[moves.sweeps : -1]))
    if cut is None:
        jacobian = np.zeros((size, output.type.size))
        jacobian[moves.columns, moves.rows] = (above - below) / (2 * eps)
        return jacobian
    part_of = np.repeat(np.arange(len(parts)), [part.type.size for part in parts])
    place = part_of[moves.rows] * size + moves.columns
    totals, ends = np.bincount(part_of, rows[-1]), []
    if all(map(_is_affine, reachable([rest]))):
        totals[:] = 0  # they would only add their rounding
    for change in (above, below):
        moved = totals[:, None] + np.bincount(place, change, len(parts) * size).reshape(-1, size)
        values = dict(zip([leaf.params["name"] for leaf in sums], moved, strict=True))
        ends.append(evaluated(Tape([rest]), {**known, **values}, size))
    return (ends[0] - ends[1]) / (2 * eps)


def _cut_at_sums(output: Node, target: Node) -> tuple[list[Node], Node, list[Node]] | None:
    """The arrays whose sums a scalar is made of, the scalar in terms of leaves, and the leaf of each sum; else None."""
    moving: set[Node] = {target}
    sums: list[Node] = []
    for node in reachable([output]):
        if not moving.isdisjoint(node.args):
            if node.primitive.name == "sum" and not node.shape:
                sums.append(node)
            else:
                moving.add(node)
    if output in moving or not sums:
        return None
    builder = output.builder
    leaves = [builder.fresh_leaf(node.type) for node in sums]
    with building(builder, reachable([output, *leaves])):
        copies = dict(zip(sums, leaves, strict=True))
        for node in reachable([output], frozenset(sums)):
            if node not in copies:
                args = tuple([copies[arg] for arg in node.args])
                copies[node] = node if args == node.args else builder.apply(node.primitive, args, node.params)
    return [node.args[0] for node in sums], copies[output], leaves


def _is_affine(node: Node) -> bool:
    """Whether an operation on scalars is affine in what is not constant."""
    name, constants = node.primitive.name, {at for at, arg in enumerate(node.args) if arg.primitive is CONSTANT}
    return (
        not node.args
        or name in ("add", "sub", "neg")
        or (name == "mul" and bool(constants))
        or (name == "div" and 1 in constants)
    )


def _one_by_one(program: Program, point: Floats, eps: float) -> Floats:
    """Every entry moved alone, many points in one evaluation."""
    tape, name = Tape(program), next(iter(program.leaves))
    size, count = point.size, max(4, CACHED // max(node.type.size for node in tape.nodes))
    quotients = []
    for start in range(0, size, count):
        steps = eps * np.eye(min(count, size - start), size, start)
        points = np.concatenate([steps, -steps]) + point.reshape(-1)
        rows = evaluated(tape, {name: points.reshape(-1, *point.shape)}, len(points))
        quotients.append((rows[: len(steps)] - rows[len(steps) :]) / (2 * eps))
    return np.concatenate(quotients)


def evaluated(tape: Tape, values: dict[str, Any], count: int) -> Floats:
    """The entries of all outputs at `count` points, one row for each point."""
    pairs = zip(tape.outputs, tape.run(values, backend="numpy"), strict=True)
    return np.concatenate(
        [np.broadcast_to(value, (count, *node.shape)).reshape(count, -1) for node, value in pairs], axis=1
    )
