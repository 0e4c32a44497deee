"""Rewrites a program to a cheaper one that is equal in exact arithmetic; its rounding errors may be far larger.

It is used only with `--relax`, and never by a check. Two rewrites: whole powers from the fifth on become
products, and sums of squared differences |x - c|**2 between all rows of two matrices become |x|**2 - 2 x.c + |c|**2,
one matrix product instead of an array of three axes. The latter cancels for rows that are far from the origin and close
to each other; a result may even be slightly negative.
"""

from __future__ import annotations

from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.primitives.arithmetic import mul, power, sub
from gradcli.primitives.axes import permuted, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import broadcast, sum_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.graph.node import Node
    from gradcli.graph.program import Program

FIRST_POWER, LAST_POWER = 5, 64  # up to the fourth, powers are products anyway


def relaxed(program: Program) -> Program:
    """The program with its outputs rewritten; inputs are the same."""
    nodes = reachable(program.outputs)
    rewritten: dict[Node, Node] = {}
    with building(program.builder, nodes) as builder:
        for node in nodes:
            builder.span = node.span
            args = tuple(rewritten[arg] for arg in node.args)
            same = all(new is other for new, other in zip(args, node.args, strict=True))
            product = node if same else builder.bind(node.primitive, args, node.params)
            rewritten[node] = _product(product) or _distances(product) or product
    return program.with_outputs([rewritten[node] for node in program.outputs])


def _product(node: Node) -> Node | None:
    """A whole power as products of squares."""
    if node.primitive is not power:
        return None
    base, left = node.args[0], abs(node.params["n"])
    if not FIRST_POWER <= left <= LAST_POWER:
        return None
    result: Node | None = None
    square = base
    while left:
        if left & 1:
            result = square if result is None else result * square
        left >>= 1
        if left:
            square = square * square
    assert result is not None
    return result if node.params["n"] > 0 else 1 / result


def _distances(node: Node) -> Node | None:
    """The sum of squared differences of all pairs of rows, by a matrix product."""
    if node.primitive is not sum_ or len(node.args[0].shape) != 3 or len(node.params["axis"]) != 1:
        return None
    away = _squared(node.args[0])
    if away is None or away.primitive is not sub:
        return None
    shape, inner = away.shape, node.params["axis"][0]
    first, second = [axis for axis in (-3, -2, -1) if axis != inner]
    x, c = (_source(arg) for arg in away.args)
    turned = x.shape[first] == 1 and shape[first] > 1
    across, along = (second, first) if turned else (first, second)  # x has the rows of `across`, c those of `along`
    if x.shape[along] != 1 or c.shape[across] != 1 or 1 in (shape[across], shape[along]):
        return None
    if x.shape[inner] != shape[inner] or c.shape[inner] != shape[inner]:
        return None
    rows, others = _matrix(x, across, along, inner), _matrix(c, along, across, inner)
    size = (shape[across], shape[along])
    left = stretch(reshaped(sum_(rows * rows, axis=(-1,)), (size[0], 1)), size)
    right = stretch(reshaped(sum_(others * others, axis=(-1,)), (1, size[1])), size)
    squares: Node = (left + right) - 2 * (rows @ permuted(others, (-1, -2)))
    return squares if not turned else _transposed(squares)


def _transposed(x: Node) -> Node:
    turned: Node = permuted(x, (-1, -2))
    return turned


def _squared(node: Node) -> Node | None:
    """The base of a node that is a square."""
    if node.primitive is power and node.params["n"] == 2:
        return node.args[0]
    if node.primitive is mul and node.args[0] is node.args[1]:
        return node.args[0]
    return None


def _source(node: Node) -> Node:
    """The operand of a broadcast."""
    return node.args[0] if node.primitive is broadcast else node


def _matrix(x: Node, rows: int, single: int, inner: int) -> Node:
    """The entries of x as a matrix [rows, inner]; the axis `single` has one place."""
    matrix: Node = reshaped(permuted(x, (single, rows, inner)), (x.shape[rows], x.shape[inner]))
    return matrix
