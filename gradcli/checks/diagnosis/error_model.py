"""The error model: hand derivations with one mistake in them, and which of these gives exactly the claim.

A row of ROWS or ARRAYS says at which operations a mistake happens, the sentence about it, how likely it is, and what is
passed on by mistake. The directional derivative is derived edge by edge: the cotangent that arrives, what is passed on,
how the argument moves along the direction. So one sweep back and one forward serve all mistakes: each changes the
derivative by (wrong - sent) * tangent. What gives the claim in floats is dropped if balls refute it. No oracle reads
any of this.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide.case import RIGHT
from gradcli.checks.diagnosis.diagnosis_context import CLOSE, MOST_ENTRIES, Candidate
from gradcli.checks.diagnosis.formula_text import as_typed, readable, shorter, valid
from gradcli.checks.diagnosis.ratios import MOST, Comparison, ErrorReading, span_of
from gradcli.checks.formatting import counted, node_text
from gradcli.checks.subjects import paired
from gradcli.graph.node import CONSTANT, Node, reachable
from gradcli.primitives.axes import stretched_back
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.matrix_functions import inv
from gradcli.primitives.movement import slice_
from gradcli.primitives.powers import pow_, sqrt
from gradcli.primitives.triangles import tril
from gradcli.transforms import derivatives
from gradcli.transforms.forward import push
from gradcli.transforms.masks import clean
from gradcli.transforms.reverse import sweep
from gradcli.transforms.rules import chain, is_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case, Floats
    from gradcli.checks.diagnosis.diagnosis_context import RefutedClaim, ScalarSides
    from gradcli.transforms.masks import Cotangent

    Rule = Callable[["Edge"], Any]

MOST_NEW = 24_000  # nodes that mistakes may take
SMALL = 1e-6  # a claim that is nearer than this is a rounded one, and no mistake
MARGIN = 1  # mistakes whose cost is larger than the smallest by more than this are left out
LARGEST = 60  # numerators and denominators of a factor
MOST_PLACES = 4
NAMED = 2  # places that a mistake may be at; the evidence has them all
CONFIRMED_AT = 3  # points


class Edge(NamedTuple):
    """One argument of one operation in a derivation: the cotangent that arrives, the partial, and what is passed on."""

    node: Node
    position: int
    arg: Node
    cotangent: Node
    partial: Any  # a node or a number; None where the operation does not work entry by entry
    sent: Node  # the right contribution to the argument
    target: Node
    place: int  # of the contribution among those of the node

    @property
    def n(self) -> Any:
        """The exponent of an integer power."""
        return self.node.params.get("n", "")

    @property
    def without_constant(self) -> Fraction | None:
        """The wrong factor of the contribution where a constant factor, or divisor, is forgotten."""
        name, constant = self.node.primitive.name, self.other.constant
        if name not in ("mul", "div") or not isinstance(constant, int | Fraction) or not constant:
            return None
        return 1 / Fraction(constant) if name == "mul" else Fraction(constant) if self.position == 0 else None

    @property
    def other(self) -> Node:
        """The other argument of an operation on two; else the argument."""
        return self.node.args[1 - self.position] if len(self.node.args) == 2 else self.arg


class Slip(NamedTuple):
    """A mistake: its name, the sentence (with the fields node, arg, other, right, target, n), and its cost.

    The likelier the mistake, the smaller the cost.
    """

    name: str
    sentence: str
    cost: int = 1


# --- mistakes in one partial derivative ----------------------------------------------------------------------

# the operation and the position of the argument; the name of the mistake, the sentence, its cost, the wrong partial
ROWS: tuple[tuple[str, int, str, str, int, Rule], ...] = (
    ("power", 0, "power factor forgotten", "the factor {n} of the power rule is missing", 1,
     lambda e: e.arg ** (e.n - 1)),
    ("power", 0, "exponent not lowered", "the exponent {n} was not lowered", 1, lambda e: e.n * e.arg**e.n),
    ("power", 0, "exponent raised", "the exponent {n} was raised, not lowered", 2, lambda e: e.n * e.arg ** (e.n + 1)),
    ("power", 0, "exponent lowered twice", "the exponent {n} was lowered twice", 3, lambda e: e.n * e.arg ** (e.n - 2)),
    ("pow", 0, "power factor forgotten", "the exponent is missing as a factor", 1, lambda e: pow_(e.arg, e.other - 1)),
    ("pow", 0, "exponent not lowered", "the exponent was not lowered", 1, lambda e: e.other * e.node),
    ("pow", 1, "power rule on the exponent", "the power rule was applied to the exponent", 1,
     lambda e: e.arg * pow_(e.other, e.arg - 1)),
    ("pow", 1, "logarithm forgotten", "the factor log of the base is missing", 1, lambda e: e.node),
    ("div", 1, "denominator not squared", "the denominator was not squared", 1, lambda e: -e.node),
    ("div", 1, "numerator dropped", "the numerator is missing", 2, lambda e: -(1 / e.arg**2)),
    ("div", 1, "quotient rule", "it is not minus one over the denominator", 3, lambda e: -(1 / e.arg)),
    ("sqrt", 0, "half forgotten", "the factor 1/2 of the square root's derivative is missing", 1, lambda e: 1 / e.node),
    ("sqrt", 0, "root forgotten", "the root in the denominator is missing", 2, lambda e: 1 / (2 * e.arg)),
    ("tan", 0, "square forgotten", "the cosine in the denominator is squared", 2, lambda e: sqrt(1 + e.node**2)),
    ("tanh", 0, "wrong sign", "it is 1 - tanh**2, not 1 + tanh**2", 1, lambda e: 1 + e.node**2),
    ("tanh", 0, "square forgotten", "it is 1 - tanh**2, not 1 - tanh", 1, lambda e: 1 - e.node),
    ("sigmoid", 0, "factor dropped", "the factor 1 - sigmoid is missing", 1, lambda e: e.node),
    ("sigmoid", 0, "factor dropped", "the factor sigmoid is missing", 2, lambda e: 1 - e.node),
    ("sigmoid", 0, "wrong sign", "it is 1 - sigmoid, not 1 + sigmoid", 2, lambda e: e.node * (1 + e.node)),
    ("logsigmoid", 0, "wrong sign", "it is the sigmoid of minus the argument", 1, lambda e: 1 - e.partial),
    ("asin", 0, "wrong sign", "it is 1 - x**2 under the root, not 1 + x**2", 2, lambda e: 1 / sqrt(1 + e.arg**2)),
    ("acos", 0, "root forgotten", "the root in the denominator is missing", 1, lambda e: -(1 / (1 - e.arg**2))),
    ("exp", 0, "power rule on the exponent", "the power rule was applied to the exponent", 2,
     lambda e: e.arg * exp(e.arg - 1)),
    ("erf", 0, "constant factor", "the factor 2/sqrt(pi) is missing", 1, lambda e: exp(-(e.arg**2))),
    ("erf", 0, "wrong sign", "the exponent is minus the square", 2, lambda e: e.partial * exp(2 * e.arg**2)),
    ("lgamma", 0, "another function", "it is digamma(x), not log(x)", 2, lambda e: log(e.arg)),
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
    for operation, argument, name, sentence, cost, wrong in ROWS:
        if (operation, argument) == (node.primitive.name, edge.position):
            yield Slip(name, sentence, cost), wrong(edge)
    if hasattr(right, "primitive") and (right.constant is None or isinstance(right.constant, str)):
        yield CHAIN if len(node.args) == 1 else FACTOR, 1
    if len(node.args) == 1 and not node.params:
        families = [family for family in FAMILIES if node.primitive.name in family]
        for other in dict.fromkeys(name for family in families for name in family if name != node.primitive.name):
            sentence = f"it is the derivative of {other}, not of {node.primitive.name}"
            yield Slip("another function", sentence, 2), derivative_of(arg.builder.call(other, arg), arg)
        if right is not node:
            yield COPIED, node
        yield ARGUED, arg
        if arg is not edge.target and arg.type == edge.target.type:
            yield ARGUMENT, derivative_of(arg.builder.call(node.primitive.name, edge.target), edge.target)


def derivative_of(node: Node, x: Node) -> Node:
    """The derivative of a function of one number, entry by entry."""
    return derivatives.vjp([node], [node.builder.constant(1, node.shape)], [x])[0]


CHAIN = Slip("chain factor dropped", "the factor {right} is missing", 1)
FACTOR = Slip("chain factor dropped", "the factor {right} is missing in the term of {arg}", 1)
COPIED = Slip("not differentiated", "the function itself is used in place of its derivative", 2)
ARGUED = Slip("not differentiated", "the argument is used in place of the derivative", 3)
ARGUMENT = Slip("inner argument", "the derivative was taken at {target} instead of {arg}", 2)


# --- mistakes in operations that mix or move entries -----------------------------------------------------------

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
    (("matmul",), "chain factor dropped", "the operand {other} is missing in the backward pass", 1,
     lambda e: [e.cotangent]),
    (("matmul",), "transposed operand", "the operand {other} must be transposed in the backward pass", 1,
     lambda e: products(e)),
    (("cumsum",), "chain factor dropped", "the cumulative sum is missing in the backward pass", 1,
     lambda e: [e.cotangent]),
    (("cholesky",), "half forgotten", "the diagonal of L.T @ ct is halved in the backward pass", 1,
     lambda e: [beside_inverses(e, tril(e.node.mT @ e.cotangent, k=0))]),
    (("cholesky",), "triangle forgotten", "only the lower triangle of L.T @ ct counts in the backward pass", 1,
     lambda e: [beside_inverses(e, e.node.mT @ e.cotangent)]),
    (("cholesky",), "factor dropped", "the factor L.T before the cotangent is missing", 1,
     lambda e: [beside_inverses(e, (tril(e.cotangent, k=0) + tril(e.cotangent, k=-1)) / 2)]),
)  # fmt: skip


def of_arrays(edge: Edge) -> Iterator[tuple[Slip, Node]]:
    """Wrong contributions of an edge, for operations that mix or move entries, with their rows."""
    for operations, name, sentence, cost, wrong in ARRAYS:
        if edge.node.primitive.name in operations:
            for sent in wrong(edge):
                if sent.shape == edge.arg.shape:
                    yield Slip(name, sentence, cost), sent


def weights(edge: Edge) -> Node:
    """The softmax of the argument of a softmax or its logarithm."""
    return edge.node if edge.node.primitive.name == "softmax" else exp(edge.node)


def spread(edge: Edge, reduced: Node) -> Any:
    """What is of the shape of a reduction, repeated along the axes that were reduced."""
    return stretched_back(reduced, edge.arg.shape, edge.node.params["axis"])


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
    first, second = edge.node.args
    ct = edge.cotangent
    if edge.position == 0:
        tries = [(ct, second), (second, ct), (second.mT, ct), (ct.mT, second)]
    else:
        tries = [(first, ct), (ct, first), (ct, first.mT), (first, ct.mT)]
    for left, right in tries:
        if len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[0]:
            yield left @ right


def beside_inverses(edge: Edge, inner: Node) -> Any:
    """The backward pass of a Cholesky factor L: inner(L.T @ ct) between the inverses of L.T and L."""
    return inv(edge.node).mT @ inner @ inv(edge.node)


# --- the derivation ------------------------------------------------------------------------------------------------

OUTER = ("add", "sub", "neg", "mul", "div", "sum", "named")
INNER = Slip("inner derivative dropped", "the inner derivative is missing")
PRODUCTS = Slip("product of derivatives", "the derivative of a product is not a product of derivatives")
QUOTIENTS = Slip("quotient of derivatives", "the derivative of a quotient is not a quotient of derivatives")
UNSQUARED = Slip("denominator not squared", "the denominator of the quotient rule was not squared")


class EdgePart(NamedTuple):
    """What an edge of a derivation contributes to the result: the scalar `flow`.

    Without an edge, what a node with all its edges contributes. `wrong` are what mistakes would contribute instead;
    `whole` says whether a wrong factor is looked for.
    """

    edge: Edge | None
    node: Node
    flow: Node
    wrong: Sequence[tuple[Slip, Node]]
    whole: bool = True


class ScalarDerivation:
    """The derivation of a scalar along a direction, in parts, with the mistakes that could have been made in each.

    `outer` are the nodes that the output is a combination of. `complete` is False where there were more mistakes than
    could be tried.
    """

    def __init__(self, judged: RefutedClaim, sides: ScalarSides) -> None:
        self.builder = builder = judged.builder
        self.target, self.direction = sides.target, sides.direction
        self.parts: list[EdgePart] = []
        self.complete = True
        self.outer: set[Node] = {sides.output}
        self._flows: dict[Node, Cotangent] = {}
        self._edges: list[tuple[Edge, Node | None]] = []
        seed = builder.constant(1, sides.output.shape)
        sweep(builder, [(sides.output, (seed, None))], [self.target], observer=self._observe)
        order = [node for node in reachable([sides.output], [self.target]) if node.type.kind == "float"]
        tangents = push(builder, order, {self.target: self.direction}, stops=[self.target])
        self.tangents = {node: t for node, t in zip(order, tangents, strict=True) if t is not None}
        nodes, entries = builder.count + MOST_NEW, 4 * MOST_ENTRIES // len(judged.places)
        for part in self._parts():
            self.parts.append(part)
            entries -= (1 + len(part.wrong)) * part.node.type.size
            if builder.count > nodes or entries < 0:
                self.complete = False
                break

    def _observe(self, node: Node, flow: Cotangent, sent: list[tuple[Node, Cotangent]]) -> None:
        self._flows[node] = flow
        primitive = node.primitive
        if node in self.outer and primitive.name in OUTER:
            self.outer.update(node.args)
        partials: Sequence[Any] = [None] * len(node.args)
        if primitive.kind == "elementwise":
            assert primitive.partials is not None
            partials = primitive.partials(*node.args, out=node, **node.params)
        elif primitive.kind == "composite" and primitive.pointwise and len(node.args) == 1:
            partials = [derivative_of(node, node.args[0])]
        arrives = flow[0] if primitive.pointwise else clean(self.builder, flow)
        pending = list(sent)
        for position, (arg, factor) in enumerate(zip(node.args, partials, strict=True)):
            constant = primitive.kind == "elementwise" and (factor is None or is_zero(factor))
            if pending and pending[0][0] is arg and not constant:
                place = len(sent) - len(pending)
                _, below = pending.pop(0)
                own = clean(self.builder, below)
                self._edges.append((Edge(node, position, arg, arrives, factor, own, self.target, place), below[1]))

    def with_wrong(self, edges: Sequence[Edge], slip: Slip, factor: Fraction | None) -> Callable[..., None]:
        """An observer of a sweep that changes what these edges send: by a factor, or as the mistake does."""
        changed = {edge.node: edge for edge in edges}

        def change(node: Node, flow: Cotangent, sent: list[tuple[Node, Cotangent]]) -> None:
            if (edge := changed.get(node)) is not None:
                ct, mask = sent[edge.place][1]
                if factor is not None:
                    sent[edge.place] = edge.arg, (chain(self.builder, factor, ct), mask)
                else:
                    arrives = flow[0] if node.primitive.pointwise else clean(self.builder, flow)
                    wrong = dict(self._wrong(edge._replace(cotangent=arrives), mask))
                    sent[edge.place] = edge.arg, (wrong.get(slip, ct), None)

        return change

    def _parts(self) -> Iterator[EdgePart]:
        uses: dict[Node, int] = {}
        for edge, _ in self._edges:
            uses[edge.arg] = uses.get(edge.arg, 0) + 1
        for edge, mask in self._edges:
            tangent = self.tangents.get(edge.arg)
            if tangent is not None:
                wrong = [(slip, paired(tangent, sent)) for slip, sent in self._wrong(edge, mask)]
                renamed = edge.arg is self.target and edge.node.primitive.name == "named"
                yield EdgePart(edge, edge.node, paired(tangent, edge.sent), wrong, not renamed)
        for node, flow in self._flows.items():
            tangent = self.tangents.get(node)
            if tangent is not None:
                cotangent = clean(self.builder, flow)
                instead = [(slip, paired(cotangent, moved)) for slip, moved in self._instead(node, tangent)]
                yield EdgePart(None, node, paired(cotangent, tangent), instead, uses.get(node, 0) > 1)

    def _wrong(self, edge: Edge, mask: Node | None) -> Iterator[tuple[Slip, Node]]:
        """What mistakes would pass on to the argument of an edge."""
        node, builder = edge.node, self.builder
        try:
            if node.primitive.pointwise and node.primitive.kind != "linear":
                for slip, factor in local(edge):
                    if factor is not None and not is_zero(factor):
                        yield slip, clean(builder, (chain(builder, factor, edge.cotangent), mask))
            else:
                yield from of_arrays(edge)
        except GradcliError:  # the limits of the script: what has been made so far is tried
            self.complete = False

    def _instead(self, node: Node, tangent: Node) -> Iterator[tuple[Slip, Node]]:
        """Wrong tangents of a node: those of a mistake in the rule of a product or quotient, or of a dropped factor."""
        name = node.primitive.name
        moving = [self.tangents[arg] for arg in node.args if arg in self.tangents]
        plain = moving == [self.direction] or tangent in moving  # then it is the mistake of an edge, or of an argument
        if node.type == self.target.type and tangent is not self.direction and node.args and not plain:
            yield INNER, self.direction
        if name == "div" and tangent.primitive is not CONSTANT and node.args[1] in self.tangents:
            yield UNSQUARED, tangent * node.args[1]
        if self.target.type.shape or name not in ("mul", "div"):
            return
        first, second = (self.tangents.get(arg) for arg in node.args)
        if first is not None and second is not None and node.args[0] is not node.args[1]:
            yield (PRODUCTS, first * second) if name == "mul" else (QUOTIENTS, first / second)


# --- a part with a wrong factor ---------------------------------------------------------------------------------------

RULES = {"mul": "product", "matmul": "product", "div": "quotient", "pow": "power"}
SIGNED = ("neg", "cos", "acos", "rsqrt", "erfc")  # operations whose derivative brings a sign


def of_factor(edge: Edge | None, factor: Fraction, derivation: ScalarDerivation) -> Slip:
    """What a wrong factor at an edge, or at all of a node's, means: a dropped term, wrong sign, forgotten constant."""
    text = f"the part through {{arg}} has an extra factor {factor}"
    if 0 < abs(factor) < 1:
        text = f"the factor {1 / factor} is missing in the part through {{arg}}"
    other = Slip("factor of a part", text, 3)
    if edge is None:
        if factor == 0:
            return Slip("held constant", "{arg} was held constant", 1)
        return Slip("wrong sign", "the sign of the part through {arg} is wrong", 3) if factor == -1 else other
    node, position, operation = edge.node, edge.position, edge.node.primitive.name
    divisor = operation == "div" and position == 1
    if factor == 0:
        several = sum(part.edge is not None and part.edge.node is node for part in derivation.parts) > 1
        if several and operation in RULES:
            return Slip("product term dropped", f"the term of {{arg}} in the {RULES[operation]} rule is missing", 1)
        if operation in ("add", "sub", "concat"):
            return Slip("term dropped", "the derivative of the term {arg} is missing", 1)
        return Slip("held constant", "{node} was held constant", 3)
    if factor == -1:
        brings = operation in SIGNED or divisor or (operation == "sub" and position == 1)
        brings = brings or (edge.without_constant or 1) < 0 or (operation == "power" and node.params["n"] < 0)
        text = "the derivative with respect to {arg} has the wrong sign"
        return Slip("quotient sign" if divisor else "wrong sign", text, 1 if brings else 2)
    if factor == edge.without_constant:
        name = "mean factor forgotten" if operation == "div" and _counts(node, factor) else "constant factor"
        name = name if node in derivation.outer else "chain factor dropped"
        return Slip(name, f"the factor {1 / factor} is missing", 1)
    return other


def _counts(node: Node, number: Any) -> bool:
    """Whether a number is the count of the entries that a sum below has added up."""
    top = node.args[0]
    return top.primitive.name == "sum" and top.args[0].type.size == number * top.type.size


# --- which mistake gives the claim ------------------------------------------------------------------------------------


class Mistake(NamedTuple):
    """A mistake that produces the claim, and by what it changes the derivative.

    Mistakes of one `effect` are the same wrong formula: `places` are the others elsewhere, by their names there, and
    `cause` is another name for it at the same node.
    """

    slip: Slip
    edge: Edge | None
    node: Node
    change: Any = None
    effect: Any = None
    places: tuple[tuple[str, Node], ...] = ()
    cause: str | None = None


def single_mistakes(judged: RefutedClaim) -> list[ErrorReading]:
    """The single mistakes in the derivation whose result is the claim at every point, as far as balls do not refute it.

    Where not every mistake could be tried, `judged.note` says so.
    """
    sides = judged.sides()
    if sides is None:
        return []
    derivation = ScalarDerivation(judged, sides)
    if not derivation.complete:
        count = sum(part.whole + len(part.wrong) for part in derivation.parts)
        judged.note = f"only the first {count:,} mistakes were tried"
    flows = [node for part in derivation.parts for node in (part.flow, *(flow for _, flow in part.wrong))]
    values = judged.values([sides.right, sides.claimed, *flows], judged.with_directions(sides.inputs))
    if not values or not (mistakes := likeliest(derivation, sides, values)):
        return []
    return [written(mistake, sure, judged.case) for mistake, sure in confirmed(judged, sides, mistakes)]


def likeliest(derivation: ScalarDerivation, sides: ScalarSides, values: Mapping[Node, Floats]) -> list[Mistake]:
    """The mistakes whose result is the claim at every place: at most three, one for each name and node."""
    right, claimed = values[sides.right], values[sides.claimed]
    scale = np.maximum(np.abs(right), np.abs(claimed))
    good = np.isfinite(scale) & (scale > 0)
    gap, scale = (claimed - right)[good], scale[good]
    if len(gap) < 2 or not (np.abs(gap) > SMALL * scale).any():
        return []
    known = Comparison(gap, gap, np.minimum(1e-3 * np.abs(gap) + 1e-13 * scale, CLOSE * scale))
    mistakes: list[Mistake] = []
    for part in derivation.parts:
        flow = values[part.flow][good]
        less = known.factor_of(flow, LARGEST) if part.whole else None
        if less is not None and abs(1 + less) <= LARGEST:
            slip = of_factor(part.edge, 1 + less, derivation)
            mistakes.append(Mistake(slip, part.edge, part.node, part.flow * less, less))
        for slip, wrong in part.wrong:
            if known.fits(values[wrong][good] - flow):
                mistakes.append(Mistake(slip, part.edge, part.node, wrong - part.flow, (part.node, wrong)))
    mistakes.sort(key=lambda mistake: (mistake.slip.cost, -mistake.node.serial))
    alike: dict[Any, list[Mistake]] = {}
    for mistake in mistakes:
        alike.setdefault(mistake.effect, []).append(mistake)
    kept: dict[tuple[str, Node], Mistake] = {}
    for first, *rest in alike.values():
        name, node = first.slip.name, first.node
        places = dict.fromkeys((other.slip.name, other.node) for other in rest if other.node is not node)
        causes = [other.slip.name for other in rest if other.node is node and other.slip.name != name]
        if first.slip.cost <= mistakes[0].slip.cost + MARGIN:
            first = first._replace(places=tuple(places)[: MOST_PLACES - 1], cause=causes[-1] if causes else None)
            kept.setdefault((name, node), first)
    return list(kept.values())[:MOST]


def confirmed(judged: RefutedClaim, sides: ScalarSides, mistakes: Sequence[Mistake]) -> list[tuple[Mistake, bool]]:
    """The mistakes that are not refuted in balls, and whether each is confirmed there."""
    good: list[tuple[Mistake, bool]] = []
    results = [sides.right + mistake.change for mistake in mistakes]
    places = judged.with_directions(sides.inputs)
    places = places[:: len(places) // len(judged.places)][:CONFIRMED_AT]
    exact = judged.case.exact.beside([sides.claimed, *results])
    for mistake, result in zip(mistakes, results, strict=True):
        answer = exact.compare(sides.claimed, places, left=result, wide=True)
        relations = [set(point["relations"]) for point in answer.get("points", ())]
        if not any("!" in signs for signs in relations):
            good.append((mistake, bool(relations) and all(signs <= RIGHT for signs in relations)))
    return good


def written(mistake: Mistake, sure: bool | None, case: Case, count: int = 1) -> ErrorReading:
    """A reading that says where the mistake is, or at how many places, and what it is."""
    slip, edge, node = mistake[:3]
    fields: dict[str, Any] = {"arg": node}
    if edge is not None:
        fields = {name: getattr(edge, name) for name in ("node", "arg", "other", "target")} | {"right": edge.partial}
    texts = {name: f"`{node_text(x, 40) if isinstance(x, Node) else x}`" for name, x in fields.items()}
    sentence = slip.sentence.format(**texts, n=edge and edge.n)
    places = dict.fromkeys(f"`{node_text(place, 40)}`" for place in (node, *(other for _, other in mistake.places)))
    more = f" (or at {counted(len(places) - NAMED, 'other place')})" if len(places) > NAMED else ""
    what = "a mistake at" if count == 1 else f"one mistake at {'both' if count == 2 else f'all {count}'} places like"
    also = [{"name": name, "node": node_text(other), "span": span_of(other)} for name, other in mistake.places]
    return ErrorReading(
        slip.name,
        f"consistent with {what} {' or '.join([*places][:NAMED])}{more}: {sentence}",
        node=node_text(node),
        span=span_of(node),
        rule=rule_of(edge, case),
        cause=mistake.cause,
        confirmed=sure,
        places=also or None,
    )


# --- one mistake at all places of one form ----------------------------------------------------------------------------

DEPTHS = 4  # to which the operands of such places are alike


def repeated_mistakes(judged: RefutedClaim) -> Iterator[Candidate]:
    """One mistake at all places of one form, as code that was written once makes it in each iteration of a loop."""
    sides = judged.sides()
    if sides is None or judged.derived is None or judged.derived[:2] != (judged.right, "grad"):
        return
    derivation, builder = ScalarDerivation(judged, sides), judged.builder
    most, seeds = builder.count + MOST_NEW, [(sides.output, (builder.constant(1, sides.output.shape), None))]
    groups: dict[Any, list[Edge]] = {}
    slips = {part.edge: [slip for slip, _ in part.wrong if slip.cost <= 1] for part in derivation.parts if part.edge}
    for edge in slips:
        for alike in (edge.node.span, *(_form(edge.node, depth) for depth in range(DEPTHS))):
            groups.setdefault((alike, edge.node.primitive, edge.position), []).append(edge)
    for edges in sorted(dict.fromkeys(tuple(edges) for edges in groups.values() if len(edges) > 1), key=len):
        numbers = {edge.without_constant for edge in edges}
        factors = [Fraction(0), Fraction(-1), *(numbers if len(numbers) == 1 else ())]
        wrong = [(of_factor(edges[0], factor, derivation), factor) for factor in factors if factor is not None]
        wrong += [(slip, None) for slip in slips[edges[0]] if all(slip in slips[edge] for edge in edges)]
        for slip, factor in wrong:
            (flow,) = sweep(builder, seeds, [sides.target], observer=derivation.with_wrong(edges, slip, factor))
            reading = partial(written, Mistake(slip, edges[-1], edges[-1].node), None, judged.case, len(edges))
            if flow is not None:
                yield Candidate(reading, clean(builder, flow), judged.claimed, slip.cost)
            if builder.count > most:
                return


def _form(node: Node, depth: int) -> Any:
    return node.primitive.name, str(node.constant) if depth else "", *(_form(x, depth - 1) for x in node.args if depth)


def rule_of(edge: Edge | None, case: Case, longest: int = 80) -> str | None:
    """The right local rule at an edge; None where no short text for it is known."""
    if edge is None or edge.partial is None or edge.arg.primitive is CONSTANT:
        return None
    right, names = edge.partial, readable(case)
    if isinstance(right, Node):
        said = as_typed(case, names, right, longest)
        said = said or next(valid(case, names, shorter(names, right), right, longest), None)
        if said is None:
            return None
        right = said[0]
    by, whole = node_text(edge.arg, longest // 2), node_text(edge.node, longest // 2)
    return f"the derivative of `{whole}` by `{by}` is `{right}`"
