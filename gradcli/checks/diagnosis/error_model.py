"""The error model: mistakes of hand derivations in one rule, of scalars and of arrays, as a table.

A row says at which operations a mistake happens, the sentence about it, how likely it is, and what then stands for the
partial derivative. `rederivation` tries the rows; no oracle reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.primitives.axes import stretched_back
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.linalg import inv
from gradcli.primitives.movement import slice_
from gradcli.primitives.powers import pow_, sqrt
from gradcli.primitives.triangles import tril
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gradcli.graph.node import Node

    Rule = Callable[["Edge"], Any]


class Edge(NamedTuple):
    """One argument of one operation in a derivation: the cotangent that arrives, the partial, and what is passed on."""

    node: Node
    position: int
    arg: Node
    cotangent: Node
    partial: Any  # a node or a number; None where the operation does not work entry by entry
    sent: Node  # the right contribution to the argument
    target: Node

    @property
    def n(self) -> Any:
        """The exponent of an integer power."""
        return self.node.params.get("n", "")

    @property
    def other(self) -> Node:
        """The other argument of an operation on two; else the argument."""
        return self.node.args[1 - self.position] if len(self.node.args) == 2 else self.arg


class Slip(NamedTuple):
    """A mistake: its name, the sentence (with the fields node, arg, other, right, target, n), and its cost.

    The likelier the mistake, the smaller the cost.
    """

    name: str
    told: str
    cost: int = 1


# --- mistakes in one partial derivative ----------------------------------------------------------------------

# the operation and the position of the argument; the name of the mistake, the sentence, its cost, the wrong partial
ROWS: tuple[tuple[str, int, str, str, int, Rule], ...] = (
    ("power", 0, "power factor forgotten", "the factor {n} of the power rule is missing", 1,
     lambda e: e.arg ** (e.n - 1)),
    ("power", 0, "exponent not lowered", "the exponent {n} was not lowered", 1, lambda e: e.n * e.arg**e.n),
    ("power", 0, "exponent raised", "the exponent {n} was raised, not lowered", 2, lambda e: e.n * e.arg ** (e.n + 1)),
    ("power", 0, "exponent lowered twice", "the exponent {n} was lowered twice", 3, lambda e: e.n * e.arg ** (e.n - 2)),
    ("power", 0, "power factor lowered", "the factor of the power rule is {n}, not one less", 3,
     lambda e: (e.n - 1) * e.arg ** (e.n - 1)),
    ("pow", 0, "power factor forgotten", "the exponent is missing as a factor", 1, lambda e: pow_(e.arg, e.other - 1)),
    ("pow", 0, "exponent not lowered", "the exponent was not lowered", 1, lambda e: e.other * e.node),
    ("pow", 1, "power rule on the exponent", "the power rule was applied to the exponent", 1,
     lambda e: e.arg * pow_(e.other, e.arg - 1)),
    ("pow", 1, "logarithm forgotten", "the factor log of the base is missing", 1, lambda e: e.node),
    ("div", 1, "denominator not squared", "the denominator was not squared", 1, lambda e: -e.node),
    ("div", 1, "numerator dropped", "the numerator is missing", 2, lambda e: -(1 / e.arg**2)),
    ("div", 1, "quotient rule", "it is not minus one over the denominator", 3, lambda e: -(1 / e.arg)),
    ("sqrt", 0, "half forgotten", "the factor 1/2 of the square root's derivative is missing", 1, lambda e: 1 / e.node),
    ("sqrt", 0, "exponent not lowered", "the root was not moved to the denominator", 1, lambda e: e.node / 2),
    ("sqrt", 0, "root forgotten", "the root in the denominator is missing", 2, lambda e: 1 / (2 * e.arg)),
    ("cbrt", 0, "third forgotten", "the factor 1/3 of the cube root's derivative is missing", 1,
     lambda e: 1 / e.node**2),
    ("rsqrt", 0, "half forgotten", "the factor 1/2 is missing", 1, lambda e: -(e.node / e.arg)),
    ("tan", 0, "wrong sign", "it is 1 + tan**2, not 1 - tan**2", 1, lambda e: 1 - e.node**2),
    ("tan", 0, "square forgotten", "the cosine in the denominator is squared", 2, lambda e: sqrt(1 + e.node**2)),
    ("tanh", 0, "wrong sign", "it is 1 - tanh**2, not 1 + tanh**2", 1, lambda e: 1 + e.node**2),
    ("tanh", 0, "square forgotten", "it is 1 - tanh**2, not 1 - tanh", 1, lambda e: 1 - e.node),
    ("sigmoid", 0, "factor dropped", "the factor 1 - sigmoid is missing", 1, lambda e: e.node),
    ("sigmoid", 0, "factor dropped", "the factor sigmoid is missing", 2, lambda e: 1 - e.node),
    ("sigmoid", 0, "wrong sign", "it is 1 - sigmoid, not 1 + sigmoid", 2, lambda e: e.node * (1 + e.node)),
    ("logsigmoid", 0, "wrong sign", "it is the sigmoid of minus the argument", 1, lambda e: 1 - e.partial),
    ("softplus", 0, "wrong sign", "it is the sigmoid of the argument, not of minus it", 2, lambda e: 1 - e.partial),
    ("asin", 0, "root forgotten", "the root in the denominator is missing", 1, lambda e: 1 / (1 - e.arg**2)),
    ("asin", 0, "wrong sign", "it is 1 - x**2 under the root, not 1 + x**2", 2, lambda e: 1 / sqrt(1 + e.arg**2)),
    ("acos", 0, "root forgotten", "the root in the denominator is missing", 1, lambda e: -(1 / (1 - e.arg**2))),
    ("atan", 0, "wrong sign", "it is 1 + x**2 in the denominator, not 1 - x**2", 1, lambda e: 1 / (1 - e.arg**2)),
    ("atan", 0, "root added", "there is no root in the denominator", 2, lambda e: 1 / sqrt(1 + e.arg**2)),
    ("exp", 0, "power rule on the exponent", "the power rule was applied to the exponent", 2,
     lambda e: e.arg * exp(e.arg - 1)),
    ("exp2", 0, "logarithm forgotten", "the factor log(2) is missing", 1, lambda e: e.node),
    ("log2", 0, "logarithm forgotten", "the factor 1/log(2) is missing", 1, lambda e: 1 / e.arg),
    ("log10", 0, "logarithm forgotten", "the factor 1/log(10) is missing", 1, lambda e: 1 / e.arg),
    ("gamma", 0, "factor dropped", "the factor gamma(x) or digamma(x) is missing", 2, lambda e: e.node),
    ("lgamma", 0, "another function", "it is digamma(x), not log(x)", 2, lambda e: log(e.arg)),
    ("erf", 0, "constant factor", "the factor 2/sqrt(pi) is missing", 1, lambda e: exp(-(e.arg**2))),
    ("erf", 0, "wrong sign", "the exponent is minus the square", 2, lambda e: e.partial * exp(2 * e.arg**2)),
)  # fmt: skip

# functions whose derivative is written for that of another one, among themselves
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "erf", "sigmoid"),
    ("asin", "acos", "atan", "asinh", "acosh", "atanh"),
    ("exp", "log", "sqrt", "sigmoid", "tanh", "softplus", "log1p", "expm1", "exp2", "log2", "log10", "erf"),
    ("floor", "ceil", "round", "trunc"),
)


def local(edge: Edge) -> Iterator[tuple[Slip, Any]]:
    """The wrong partials of an edge of an operation that works entry by entry, with their rows."""
    node, arg, right = edge.node, edge.arg, edge.partial
    for operation, argument, name, told, cost, wrong in ROWS:
        if (operation, argument) == (node.primitive.name, edge.position):
            yield Slip(name, told, cost), wrong(edge)
    if hasattr(right, "primitive") and (right.constant is None or isinstance(right.constant, str)):
        yield CHAIN if len(node.args) == 1 else FACTOR, 1
        yield INVERTED, 1 / right
    if len(node.args) == 1 and not node.params:
        families = [family for family in FAMILIES if node.primitive.name in family]
        for other in dict.fromkeys(name for family in families for name in family if name != node.primitive.name):
            told = f"it is the derivative of {other}, not of {node.primitive.name}"
            yield Slip("another function", told, 2), derivative_of(other, arg)
        if right is not node:
            yield COPIED, node
        yield ARGUED, arg
        if arg is not edge.target and arg.type == edge.target.type:
            yield ARGUMENT, derivative_of(node.primitive.name, edge.target)


def derivative_of(name: str, x: Node) -> Any:
    """The derivative of a function of one number at x: its partial, by its declaration or its definition."""
    made = x.builder.call(name, x)
    if made.primitive.partials is not None and made.primitive.kind == "elementwise":
        return made.primitive.partials(*made.args, out=made, **made.params)[0]
    return partial_of(made, x)


def partial_of(made: Node, x: Node) -> Any:
    """The partial of an operation that is defined by others."""
    return derivatives.vjp([made], [made.builder.constant(1, made.shape)], [x])[0]


CHAIN = Slip("chain factor dropped", "the factor {right} is missing", 1)
FACTOR = Slip("chain factor dropped", "the factor {right} is missing in the term of {arg}", 1)
INVERTED = Slip("factor inverted", "the factor {right} divides instead", 4)
COPIED = Slip("not differentiated", "the function itself is used in place of its derivative", 2)
ARGUED = Slip("not differentiated", "the argument is used in place of the derivative", 3)
ARGUMENT = Slip("inner argument", "the derivative was taken at {target} instead of {arg}", 2)


# --- mistakes in operations that mix or move entries -----------------------------------------------------------

MATRICES = ("inv", "det", "logdet", "solve", "expm", "cholesky", "matmul", "logabsdet")
SOFTMAXES = ("softmax", "log_softmax")
NO_JACOBIAN, WITHOUT = "softmax without its Jacobian", "softmax was differentiated without its Jacobian"

# the operations; the name of the mistake, the sentence, its cost, and what is sent to the argument instead, in one or
# several ways (those of another shape than the argument are left out)
ARRAYS: tuple[tuple[tuple[str, ...], str, str, int, Callable[[Edge], Iterable[Node]]], ...] = (
    (SOFTMAXES, NO_JACOBIAN, WITHOUT, 1, lambda e: [e.cotangent]),
    (SOFTMAXES, NO_JACOBIAN, "the Jacobian of softmax is not diagonal", 1,
     lambda e: [e.cotangent * weights(e) * (1 - weights(e))]),
    (SOFTMAXES, NO_JACOBIAN, "the sum over the outputs is missing", 1, lambda e: [e.cotangent * weights(e)]),
    (("log_softmax",), NO_JACOBIAN, WITHOUT, 1, lambda e: [e.cotangent / weights(e)]),
    (("logsumexp",), "factor dropped", "the division by the sum is missing: the derivative is softmax", 1,
     lambda e: [exp(e.arg) * spread(e, e.cotangent)]),
    (("logsumexp",), "another function", "it is not the gradient of the maximum", 2,
     lambda e: [is_largest(e) * spread(e, e.cotangent)]),
    (("norm",), "another function", "it is the gradient of the square of the norm", 1,
     lambda e: [2 * (e.arg * spread(e, e.cotangent))]),
    (("norm",), "factor dropped", "the division by the norm is missing", 1,
     lambda e: [e.arg * spread(e, e.cotangent)]),
    (("broadcast",), "missing sum", "the sum over the broadcast axis is missing", 1, lambda e: one_copy(e)),
    (("broadcast",), "mean for a sum", "the copies are added up, not averaged", 3,
     lambda e: [e.sent / (e.cotangent.type.size // e.arg.type.size)]),
    (("permute",), "transposed operand", "the transpose is missing in the backward pass", 1, lambda e: [e.cotangent]),
    (("matmul",), "chain factor dropped", "the operand {other} is missing in the backward pass", 1,
     lambda e: [e.cotangent]),
    (("matmul",), "transposed operand", "the operand {other} must be transposed in the backward pass", 1,
     lambda e: products(e)),
    (("cumsum",), "sum not reversed", "the cumulative sum runs in reverse in the backward pass", 2,
     lambda e: [e.node.primitive(e.cotangent, **e.node.params)]),
    (("cumsum",), "chain factor dropped", "the cumulative sum is missing in the backward pass", 1,
     lambda e: [e.cotangent]),
    (("cholesky",), "half forgotten", "the diagonal of L.T @ ct is halved in the backward pass", 1,
     lambda e: [beside_inverses(e, tril(e.node.mT @ e.cotangent, k=0))]),
    (("cholesky",), "triangle forgotten", "only the lower triangle of L.T @ ct counts in the backward pass", 1,
     lambda e: [beside_inverses(e, e.node.mT @ e.cotangent)]),
    (("cholesky",), "factor dropped", "the factor L.T before the cotangent is missing", 1,
     lambda e: [beside_inverses(e, half_lower(e.cotangent))]),
    (("cholesky",), "transposed operand", "L must be transposed before the cotangent", 1,
     lambda e: [beside_inverses(e, half_lower(e.node @ e.cotangent))]),
    (MATRICES, "transposed operand", "the contribution is transposed", 2,
     lambda e: [e.sent.mT] if e.sent.type.rank > 1 and e.sent.shape[-1] > 1 else []),
)  # fmt: skip


def of_arrays(edge: Edge) -> Iterator[tuple[Slip, Node]]:
    """Wrong contributions of an edge, for operations that mix or move entries, with their rows."""
    for operations, name, told, cost, wrong in ARRAYS:
        if edge.node.primitive.name in operations:
            for sent in wrong(edge):
                if sent.shape == edge.arg.shape:
                    yield Slip(name, told, cost), sent


def weights(edge: Edge) -> Node:
    """The softmax of the argument of a softmax or its logarithm."""
    return edge.node if edge.node.primitive.name == "softmax" else exp(edge.node)


def spread(edge: Edge, reduced: Node) -> Node:
    """What is of the shape of a reduction, repeated along the axes that were reduced."""
    found: Node = stretched_back(reduced, edge.arg.shape, edge.node.params["axis"])
    return found


def is_largest(edge: Edge) -> Node:
    """1 where an entry is the largest of those that are reduced, 0 elsewhere."""
    arg = edge.arg
    top = spread(edge, arg.builder.call("max", arg, axis=edge.node.params["axis"]))
    return arg.builder.call("cast", arg.builder.call("equal", arg, top), kind="float")


def one_copy(edge: Edge) -> Iterator[Node]:
    """The cotangent of the first copy of a broadcast argument, and that of the last."""
    arg, ct = edge.arg, edge.cotangent
    axes = [i for i, (n, m) in enumerate(zip(arg.shape, ct.shape, strict=True)) if n != m]
    for last in (False, True):
        start = tuple(n - 1 if last and i in axes else 0 for i, n in enumerate(ct.shape))
        yield slice_(ct, start=start, step=(1,) * len(start), size=arg.shape)


def products(edge: Edge) -> Iterator[Node]:
    """Products with an operand that should be transposed, or is and should not be."""
    one, other = edge.node.args
    ct = edge.cotangent
    if edge.position == 0:
        tries = [(ct, other), (other, ct), (other.mT, ct), (ct.mT, other)]
    else:
        tries = [(one, ct), (ct, one), (ct, one.mT), (one, ct.mT)]
    for left, right in tries:
        if len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[0]:
            yield left @ right


def half_lower(x: Node) -> Node:
    """The lower triangle with half of the diagonal."""
    found: Node = (tril(x, k=0) + tril(x, k=-1)) / 2
    return found


def beside_inverses(edge: Edge, inner: Node) -> Node:
    """The backward pass of a Cholesky factor L: inner(L.T @ ct) between the inverses of L.T and L."""
    inverted: Node = inv(edge.node)
    return inverted.mT @ inner @ inverted
