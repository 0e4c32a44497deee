"""An edge of an operation that mixes or moves entries goes in, what may be passed on by mistake comes out, with names.

Transposes forgotten, sums over stretched axes left out, a softmax without its Jacobian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.diagnosis import damages
from gradcli.checks.diagnosis.damages import Edge, Slip
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.exponential import exp
from gradcli.primitives.movement import reshape, slice_, sum_

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graph.node import Node

MATRICES = ("inv", "det", "logdet", "solve", "expm", "cholesky", "matmul", "logabsdet")
SOFTMAX = "softmax was differentiated without its Jacobian"


def of_arrays(edge: Edge) -> Iterator[tuple[Slip, Node]]:
    """Wrong contributions of an edge, for operations that mix or move entries, with their rows."""
    node, arg, ct, sent = edge.node, edge.arg, edge.cotangent, edge.sent
    name = node.primitive.name
    if name in ("softmax", "log_softmax"):
        yield slip("softmax without its Jacobian", SOFTMAX), ct
        out = node if name == "softmax" else exp(node)
        yield slip("softmax without its Jacobian", "softmax has more than a diagonal"), ct * out * (1 - out)
        yield slip("softmax without its Jacobian", "the sum over the outputs is missing"), ct * out
        if name == "log_softmax":
            yield slip("softmax without its Jacobian", SOFTMAX), ct / out
    if name == "logsumexp" and arg.type.rank == ct.type.rank + 1:
        axis = node.params["axis"][0] if isinstance(node.params["axis"], tuple) else node.params["axis"]
        told = "the division by the sum is missing: the derivative is softmax"
        yield slip("factor dropped", told), exp(arg) * _stretched(ct, arg, axis)
    if name == "logsumexp" and ct.shape == ():
        yield slip("another function", "it is not the gradient of the maximum", 2), _at_the_top(node, arg, ct)
    if name == "norm" and ct.shape == ():
        along = arg * stretch(ct, arg.shape)
        yield slip("another function", "it is the gradient of the square of the norm"), 2 * along
        yield slip("factor dropped", "the division by the norm is missing"), along
    if name == "broadcast":
        yield from _missing_sum(edge)
    if name == "permute" and ct.shape == arg.shape:
        yield slip("transposed operand", "the transpose is missing on the way back"), ct
    if name == "matmul":
        yield from _matrices(edge)
    if name == "cumsum":
        back = node.primitive(ct, **node.params)
        yield slip("sum not reversed", "the running sum runs backwards on the way back", 2), back
        yield slip("chain factor dropped", "its own running sum on the way back is missing"), ct
    if name in MATRICES and _square(sent):
        yield slip("transposed operand", "the contribution is transposed", 2), sent.mT


def slip(name: str, told: str, cost: int = 1) -> Slip:
    """A row whose contribution is made where it is tried."""
    return Slip(name, told, cost, damages.no_rule)


def _stretched(ct: Node, arg: Node, axis: int) -> Node:
    """A cotangent repeated along the axis that was summed over."""
    shape = list(arg.shape)
    shape[axis] = 1
    found: Node = stretch(reshape(ct, shape=tuple(shape)), arg.shape)
    return found


def _square(node: Node) -> bool:
    return len(node.shape) >= 2 and node.shape[-1] == node.shape[-2] and node.shape[-1] > 1


def _at_the_top(node: Node, arg: Node, ct: Node) -> Node:
    builder = node.builder
    axes = tuple(range(-len(arg.shape), 0))
    top = builder.call("max", arg, axis=axes) if "max" in builder.vocabulary else node
    chosen = builder.call("cast", builder.call("equal", arg, stretch(top, arg.shape)), kind="float")
    found: Node = chosen * stretch(ct, arg.shape)
    return found


def _missing_sum(edge: Edge) -> Iterator[tuple[Slip, Node]]:
    """One slice of the cotangent, or their average, where the sum over the stretched axes belongs."""
    ct, arg = edge.cotangent, edge.arg
    axes = [i for i, (n, m) in enumerate(zip(arg.shape, ct.shape, strict=True)) if n != m]
    if not axes:
        return
    told = "the sum over the broadcast axis is missing"
    for last in (False, True):
        start = tuple(n - 1 if last and i in axes else 0 for i, n in enumerate(ct.shape))
        size = tuple(1 if i in axes else n for i, n in enumerate(ct.shape))
        one = slice_(ct, start=start, step=(1,) * len(size), size=size)
        yield slip("missing sum", told), one
    count = 1
    for i in axes:
        count *= ct.shape[i]
    yield (
        slip("mean for a sum", "the copies are added up, not averaged", 3),
        reshape(sum_(ct, axis=tuple(i - len(ct.shape) for i in axes)), shape=arg.shape) / count,
    )


def _matrices(edge: Edge) -> Iterator[tuple[Slip, Node]]:
    """Products with an operand that should be transposed, or is and should not be."""
    one, other = edge.node.args
    ct = edge.cotangent
    told = "the operand {other} must be transposed on the way back"
    if ct.shape == edge.arg.shape:
        yield slip("chain factor dropped", "the operand {other} is missing on the way back"), ct
    row = slip("transposed operand", told)
    if edge.position == 0:
        tries = [(ct, other), (other, ct), (other.mT, ct), (ct.mT, other)]
    else:
        tries = [(one, ct), (ct, one), (ct, one.mT), (one, ct.mT)]
    for left, right in tries:
        if len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[0]:
            made = left @ right
            if made.shape == edge.arg.shape:
                yield row, made
