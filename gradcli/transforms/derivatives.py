"""The derivative operators on nodes: grad, jvp, vjp, jacobian, hessian, n-th derivatives; all graphs again.

Each is a few calls of the forward and the reverse sweep. Order n of a scalar leaf is n times forward mode, or one
Taylor series where that is smaller; every other higher order is reverse once, then forward, which grows least.

What puts the sweeps of a Jacobian together is data movement, so beside the vocabulary that every transform may name
(add, mul, neg, broadcast, reshape, sum, where, and, or, not, not_equal, cast) this module names three movements:
unslice, concat, permute.

>>> from gradcli.graph.building import Builder
>>> from gradcli.graph.node_text import formulas
>>> from gradcli.primitives import catalogue
>>> from gradcli.primitives.exponential import exp
>>> x = Builder(catalogue()).leaf("x")
>>> slope = grad(x*exp(x), [x])[0]
>>> formulas(reachable([slope]))[slope]
'exp(x) + x*exp(x)'
"""

from __future__ import annotations

from itertools import islice

from gradcli.base.diagnostics import error
from gradcli.graph import vocabulary
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.graph.types import Type
from gradcli.transforms.forward import orders, push
from gradcli.transforms.lifting import lifted
from gradcli.transforms.reverse import pull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Builder, Node
    from gradcli.graph.types import Shape


TAYLOR = (3, 100)  # orders for which a series may be smaller than forward mode repeated
FEW = 8  # sweeps up to which they are written one by one
MOST_ORDERS = 10_000  # each order is a sweep, also where nothing is left to differentiate


def vjp(outputs: Sequence[Node], cotangents: Sequence[Node], targets: Sequence[Node]) -> list[Node]:
    """The cotangents of `targets`: for each, the sum over outputs of Jacobian transposed times cotangent."""
    with _building(*outputs, *cotangents, *targets) as builder:
        flows = pull(builder, list(zip(outputs, cotangents, strict=True)), targets)
        return [_or_zero(builder, ct, target.shape) for ct, target in zip(flows, targets, strict=True)]


def jvp(outputs: Sequence[Node], targets: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """The tangents of `outputs` when the targets move along `tangents`."""
    with _building(*outputs, *tangents, *targets) as builder:
        moved = push(builder, outputs, dict(zip(targets, tangents, strict=True)))
        return [_or_zero(builder, t, output.shape) for t, output in zip(moved, outputs, strict=True)]


def grad(output: Node, targets: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar node with respect to each target, in the target's shape."""
    with _building(output, *targets) as builder:
        return vjp([output], [builder.constant(1, output.shape)], targets)


def nth(output: Node, target: Node, order: int) -> list[Node]:
    """The derivatives of orders 1..n in one scalar target: forward mode n times, or Taylor mode where it is smaller."""
    if order > MOST_ORDERS:
        message = f"the order of a derivative is at most {MOST_ORDERS:,}, not {order}"
        raise error("GC306", message, output.builder.span or output.span)
    with _building(output, target) as builder:
        forward = orders(builder, output, target)
        if not TAYLOR[0] <= order <= TAYLOR[1]:
            return list(islice(forward, order))
        from gradcli.transforms.taylor import taylor  # a first derivative needs none of it

        series = taylor(output, target, order)
        if series is None:
            return list(islice(forward, order))
        derivatives = list(islice(forward, 2))  # of these a series makes more than it has to
        nodes, others = _with(set(), derivatives), _with(set(), series[:2])
        if len(nodes) < len(others):
            series[:2], others = derivatives, set(nodes)
        for other, derivative in zip(series[2:], forward, strict=False):
            derivatives.append(derivative)
            nodes, others = _with(nodes, [derivative]), _with(others, [other])
            if len(nodes) > len(others):  # from some order on forward mode takes more than a series
                return series
        return derivatives


def _with(nodes: set[Node], outputs: Sequence[Node]) -> set[Node]:
    """The same set, with the nodes that some more outputs depend on."""
    pending = [node for node in outputs if node not in nodes]
    nodes.update(pending)
    for node in pending:  # the list grows while it is read
        for arg in node.args:
            if arg not in nodes:
                nodes.add(arg)
                pending.append(arg)
    return nodes


def hvp(output: Node, target: Node, direction: Node) -> Node:
    """The Hessian of a scalar times a direction: forward over reverse."""
    with _building(output, target, direction):
        return jvp(grad(output, [target]), [target], [direction])[0]


def jacobian(output: Node, target: Node) -> Node:
    """The Jacobian, of shape output shape + target shape: a sweep per entry of the smaller side, or one over all."""
    with _building(output, target) as builder:
        builder.require_holomorphic([output], [target], "a Jacobian")
        rows, columns = output.type.size, target.type.size
        shape = output.shape + target.shape
        builder.allow(Type("float", shape))  # before the sweeps, which may be many
        whole = _at_once(builder, output, target, rows <= columns) if min(rows, columns) >= FEW else None
        if whole is not None:
            if rows <= columns:
                return vocabulary.reshape(whole, shape)
            return _columns(builder, whole, output.shape, shape)
        if rows <= columns:
            sweeps = [vjp([output], [unit], [target])[0] for unit in _units(builder, output.shape)]
            return _stack(builder, sweeps, target.shape, shape)
        sweeps = [jvp([output], [target], [unit])[0] for unit in _units(builder, target.shape)]
        return _columns(builder, _stack(builder, sweeps, output.shape, (columns, *output.shape)), output.shape, shape)


def _columns(builder: Builder, stacked: Node, inner: Shape, shape: Shape) -> Node:
    """Columns of a Jacobian, one after the other, as the last axes."""
    axes = (*range(-len(inner), 0), -len(inner) - 1)
    last = vocabulary.permute(stacked, axes) if inner else stacked
    return vocabulary.reshape(last, shape)


def _at_once(builder: Builder, output: Node, target: Node, reverse: bool) -> Node | None:
    """The sweeps over all unit vectors of one side as one array, or None where they have to be apart."""
    seed = builder.fresh_leaf(Type("float", output.shape if reverse else target.shape))
    swept = vjp([output], [seed], [target])[0] if reverse else jvp([output], [target], [seed])[0]
    return lifted(builder, swept, {seed: _identity(builder, seed.shape)})


def hessian(output: Node, target: Node, other: Node | None = None) -> Node:
    """The second derivatives of a scalar, of shape target shape + other shape (default: the same target)."""
    with _building(output, target) as builder:
        along = target if other is None else other
        builder.require_holomorphic([output], [target, along], "second derivatives")
        gradient = grad(output, [target])[0]
        if FEW <= along.type.size <= gradient.type.size:  # forward over reverse grows least
            builder.allow(Type("float", gradient.shape + along.shape))
            whole = _at_once(builder, gradient, along, False)
            if whole is not None:
                return _columns(builder, whole, gradient.shape, gradient.shape + along.shape)
        return jacobian(gradient, along)


def laplacian(output: Node, target: Node) -> Node:
    """The trace of the Hessian of a scalar: the sum of its second derivatives in each entry of the target."""
    with _building(output, target) as builder:
        total: Node | None = None
        builder.require_holomorphic([output], [target], "second derivatives")
        builder.allow(Type("float", target.shape * 2))  # the entries of all unit directions
        gradient = grad(output, [target])[0]
        whole = _at_once(builder, gradient, target, False) if target.type.size >= FEW else None
        if whole is not None:
            diagonal = whole * _identity(builder, target.shape)
            return vocabulary.total(diagonal)
        for unit in _units(builder, target.shape):
            moved = jvp([gradient], [target], [unit])[0]
            term = moved * unit
            if term.shape:
                term = vocabulary.total(term)
            total = term if total is None else total + term
        return _or_zero(builder, total, ())


def _building(*nodes: Node) -> building:
    return building(nodes[0].builder, reachable(nodes) if nodes[0].builder.table is None else ())


def _or_zero(builder: Builder, node: Node | None, shape: Shape) -> Node:
    return builder.constant(0, shape) if node is None else node


def _units(builder: Builder, shape: Shape) -> list[Node]:
    """The arrays of this shape that are 1 in one entry and 0 elsewhere, in C order."""
    size = 1
    for n in shape:
        size *= n
    if not shape:
        return [builder.constant(1)]
    unit = builder.constant(1, (1,))
    units = []
    for index in range(size):
        flat = vocabulary.unslice(unit, (size,), (index,), (1,))
        units.append(vocabulary.reshape(flat, shape))
    return units


def _identity(builder: Builder, shape: Shape) -> Node:
    """The same as one array, [count, *shape]."""
    size = Type("float", shape).size
    flat = vocabulary.unslice(builder.constant(1, (size,)), (size * size,), (0,), (size + 1,))
    return vocabulary.reshape(flat, (size, *shape))


def _stack(builder: Builder, rows: Sequence[Node], row_shape: Shape, shape: Shape) -> Node:
    if not rows:
        return builder.constant(0, shape)
    lifted = [vocabulary.reshape(row, (1, *row_shape)) for row in rows]
    if len(lifted) == 1:
        return vocabulary.reshape(lifted[0], shape)
    joined = vocabulary.concat(lifted, -len(row_shape) - 1)
    return vocabulary.reshape(joined, shape)
