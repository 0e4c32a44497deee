"""Rewrites of a right rule with poor floats, which are proved equal and were measured to be better.

Each part of the program that a rule matches is rewritten, the gradient is made again and its float is compared with the
exact value. What is not better, or cannot be proved equal, is not shown.
"""

from __future__ import annotations

import ast
from fractions import Fraction
from functools import cache, partial
from operator import add, mul, truediv
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.decide.floats import ulps
from gradcli.checks.diagnosis.formula_text import Names, as_typed, readable
from gradcli.diagnostics import GradcliError
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.primitives import functions
from gradcli.primitives.composites import log_softmax, logsumexp, norm, softmax
from gradcli.primitives.reductions import var
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case, Values

    Bound = dict[str, Node]
    Term = tuple[Any, int]  # and its sign

# in a group the first that matches counts; a and b are any values, n is a number, a difference has no common terms
FORMULAS = """
exp(a) - 1 = expm1(a)
exp(a) - exp(b) = exp(b)*expm1(a - b)

1 - cos(a) = 2*sin(a/2)**2
cos(a) - cos(b) = -2*sin((a + b)/2)*sin((a - b)/2)

sin(a) - sin(b) = 2*cos((a + b)/2)*sin((a - b)/2)

cosh(a) - 1 = 2*sinh(a/2)**2

log(a) - log(b) = log1p((a - b)/b)

sqrt(a) - sqrt(b) = (a - b)/(sqrt(a) + sqrt(b))
sqrt(a) - n = (a - n**2)/(sqrt(a) + n)
(r := sqrt(b**2 + a)) - b = a/(r + b)

a**2 - b**2 = (a - b)*(a + b)
a**2 - 1 = (a - 1)*(a + 1)

a/b - a/c = a*(c - b)/(b*c)

(1 + a)**b - 1 = expm1(b*log1p(a))

log(exp(a) + exp(b)) = logaddexp(a, b)
log(1 + exp(a)) = softplus(a)
log(1 - sigmoid(a)) = logsigmoid(-a)
log(1 + a) = log1p(a)

log(sigmoid(a)) = logsigmoid(a)
log(exp(a)) = a

sqrt(a**2 + b**2) = hypot(a, b)

1 - sigmoid(a) = sigmoid(-a)
exp(a)/(1 + exp(a)) = sigmoid(a)
1/(1 + exp(a)) = sigmoid(-a)
exp(a)/exp(b) = exp(a - b)

1 - tanh(a)**2 = 1/cosh(a)**2

1 - erf(a) = erfc(a)

sin(a)/a = sinc(a/pi)
"""


def plain(node: Node) -> Node:
    """A node without the names that a script gave it."""
    while node.primitive.name in ("name", "broadcast", "reshape") and node.args[0].shape == node.shape:
        node = node.args[0]
    return node


def named(node: Node, *names: str) -> bool:
    return node.primitive.name in names


def terms(node: Node) -> list[tuple[Node, int]]:
    """The two terms of a sum or difference with their signs; none for anything else."""
    node = plain(node)
    if named(node, "add", "sub"):
        one, other = map(plain, node.args)
        found = [(one, 1), (other, 1 if named(node, "add") else -1)]
        return [(plain(t.args[0]), -sign) if named(t, "neg") else (t, sign) for t, sign in found]
    return []


def of_square(node: Node) -> Node | None:
    """x where a node is the square of x."""
    node = plain(node)
    if named(node, "power") and node.params["n"] == 2:
        return plain(node.args[0])
    if named(node, "mul") and plain(node.args[0]) is plain(node.args[1]):
        return plain(node.args[0])
    return None


def difference(one: Node, other: Node) -> Any:
    """one - other, without the terms that both have."""
    one, other = plain(one), plain(other)
    if one is other:
        return 0
    ours, theirs = signed(one), signed(other)
    for term in list(ours):
        if term in theirs:
            ours.remove(term)
            theirs.remove(term)
    if len(ours) == len(signed(one)):
        return one - other
    total: Any = 0
    for (part, sign), side in [*((t, 1) for t in ours), *((t, -1) for t in theirs)]:
        value: Any = part if sign * side > 0 else -part
        total = value if isinstance(total, int) else total + value
    return total


def signed(node: Node) -> list[tuple[Node, int]]:
    """The terms of a node, itself where it is not a sum; as deep as two sums."""
    found: list[tuple[Node, int]] = []
    for term, sign in terms(node) or [(node, 1)]:
        found += [(inner, sign * own) for inner, own in terms(term)] or [(term, sign)]
    return found


def minus(node: Node) -> Node:
    """-x, without a second sign."""
    node = plain(node)
    return plain(node.args[0]) if named(node, "neg") else -node


def unmoved(node: Node) -> tuple[Node, list[Node]]:
    """What a node takes entries from, and the operations that take them."""
    moves = []
    while named(node, "slice", "reshape", "name"):
        moves.append(node)
        node = node.args[0]
    return node, moves


def moved(node: Node, moves: list[Node]) -> Node:
    """The same entries of another array."""
    for move in reversed(moves):
        node = move.builder.apply(move.primitive, (node,), dict(move.params))
    return node


def lifted(value: Any, like: Node) -> Node:
    made: Node = value if isinstance(value, Node) else like.builder.constant(value, like.shape)
    return made


# --- formulas -------------------------------------------------------------------------------------------------------


def matched(pattern: ast.expr, node: Node, bound: Bound) -> Iterator[Bound]:
    """The ways to read a node as a pattern, each as what its letters stand for."""
    node = plain(node)
    match pattern:
        case ast.Name(name):
            if name not in bound:
                if name != "n" or isinstance(node.constant, int | Fraction):
                    yield {**bound, name: node}
            elif bound[name] is node or (node.constant is not None and node.constant == bound[name].constant):
                yield bound
        case ast.NamedExpr(ast.Name(name), value):
            for found in matched(value, node, bound):
                yield {**found, name: node}
        case ast.Constant(value):
            if node.constant == value:
                yield bound
        case ast.Call(ast.Name(name), [argument]):
            if named(node, name):
                yield from matched(argument, node.args[0], bound)
        case ast.BinOp(base, ast.Pow(), ast.Constant(2)):
            square = of_square(node)
            if square is not None:
                yield from matched(base, square, bound)
        case ast.BinOp(one, ast.Div(), other) if named(node, "div"):
            for found in matched(one, node.args[0], bound):
                yield from matched(other, node.args[1], found)
        case ast.BinOp(one, ast.Pow(), other) if named(node, "power", "pow"):
            exponent = lifted(node.params["n"], node) if named(node, "power") else node.args[1]
            for found in matched(one, node.args[0], bound):
                yield from matched(other, exponent, found)
        case ast.BinOp(one, ast.Add() | ast.Sub()):
            yield from sum_matched(pattern, node, bound, 1)


def sum_matched(pattern: ast.BinOp, node: Node, bound: Bound, side: int) -> Iterator[Bound]:
    """`matched` for a sum or difference with its terms in any order; `side` -1 negates all of them."""
    last = 1 if isinstance(pattern.op, ast.Add) else -1
    pair = terms(node)
    for one, other in (pair, pair[::-1]) if pair else ():
        for found in term_matched(pattern.left, side, one, bound):
            yield from term_matched(pattern.right, side * last, other, found)


def term_matched(pattern: ast.expr, sign: int, term: Term, bound: Bound) -> Iterator[Bound]:
    """`matched` for a term with a sign; a letter stands for a term of either sign."""
    node, own = term
    if own == sign:
        yield from matched(pattern, node, bound)
    elif isinstance(pattern, ast.Name) and pattern.id != "n" and pattern.id not in bound:
        yield {**bound, pattern.id: minus(node)}


def built(pattern: ast.expr, bound: Bound, like: Node) -> Any:
    """The node, or the number, of a formula."""
    match pattern:
        case ast.Name("pi"):
            return like.builder.constant("pi", like.shape)
        case ast.Name("n"):
            return bound["n"].constant
        case ast.Name(name):
            return bound[name]
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), inner):
            value = built(inner, bound, like)
            return minus(value) if isinstance(value, Node) else -value
        case ast.Call(ast.Name(name), args):
            return functions()[name](*[lifted(built(arg, bound, like), like) for arg in args])
        case ast.BinOp(one, operation, other):
            x, y = built(one, bound, like), built(other, bound, like)
            if isinstance(operation, ast.Sub):
                return difference(lifted(x, like), lifted(y, like))
            return OPERATIONS[type(operation)](x, y)
    raise AssertionError(ast.dump(pattern))


OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: add,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.Pow: pow,
}


def by_formulas(group: str, node: Node) -> Node | None:
    """A node as the first formula of a group that it matches has it; the terms of a difference may be exchanged."""
    for left, right in parsed(group):
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
            ways = [(side, bound) for side in (1, -1) for bound in sum_matched(left, node, {}, side)]
        else:
            ways = [(1, bound) for bound in matched(left, node, {})]
        for side, bound in ways[:1]:
            made = lifted(built(right, bound, node), node)
            return made if side > 0 else -made
    return None


@cache
def parsed(group: str) -> list[tuple[ast.expr, ast.expr]]:
    """The formulas of a group, both sides."""
    pairs = [line.split(" = ") for line in group.splitlines()]
    return [(ast.parse(left, mode="eval").body, ast.parse(right, mode="eval").body) for left, right in pairs]


# --- arrays ---------------------------------------------------------------------------------------------------------


def logarithm(node: Node) -> Node | None:
    """log(sum(exp(x))) and log(softmax(x))."""
    if not named(node, "log"):
        return None
    inner = plain(node.args[0])
    if named(inner, "sum") and named(plain(inner.args[0]), "exp"):
        return logsumexp(plain(inner.args[0]).args[0], axis=inner.params["axis"])
    inside, moves = unmoved(inner)
    return moved(log_softmax(inside.args[0], **inside.params), moves) if named(inside, "softmax") else None


def length(node: Node) -> Node | None:
    """sqrt(sum(x**2))."""
    inner = plain(node.args[0]) if named(node, "sqrt") else node
    if named(node, "sqrt") and named(inner, "sum") and not inner.shape and (x := of_square(inner.args[0])) is not None:
        return norm(x, axis=inner.params["axis"])
    return None


def share(node: Node) -> Node | None:
    """exp(x) divided by its sum over the last axis."""
    if not named(node, "div"):
        return None
    below = node.args[1]
    while named(below, "broadcast", "reshape", "name"):
        below = below.args[0]
    whole, moves = unmoved(plain(node.args[0]))
    if not (named(whole, "exp") and named(below, "sum") and plain(below.args[0]) is whole):
        return None
    return moved(softmax(whole.args[0], axis=below.params["axis"]), moves)


def variance(node: Node) -> Node | None:
    """mean(x**2) - mean(x)**2 as the average square of the distance from the mean."""
    pair = terms(node)
    if len(pair) < 2 or pair[0][1] == pair[1][1] or node.shape:
        return None
    (squares, _), (square, _) = pair if pair[0][1] > 0 else pair[::-1]
    average = of_square(square)
    if average is None or not (named(average, "div") and named(squares, "div")):
        return None
    total, above = plain(average.args[0]), plain(squares.args[0])
    if not (named(total, "sum") and named(above, "sum") and total.params == above.params):
        return None
    x = plain(total.args[0])
    counts = average.args[1].constant, squares.args[1].constant
    if of_square(above.args[0]) is not x or counts != (x.type.size, x.type.size):
        return None
    made: Node = var.definition(x) if var.definition is not None else node
    return made


RULES: tuple[Callable[[Node], Node | None], ...] = (
    *(partial(by_formulas, group) for group in FORMULAS.strip().split("\n\n")),
    *(variance, logarithm, length, share),
)
MOST_STEPS = 600
LONGEST = 120  # characters of a rewrite
MOST_PROOFS = 4
BETTER = 8.0  # by what factor the error must shrink
MOST_NEW = 50_000


class Rewrite(NamedTuple):
    """Part of a program, what to write instead, and the error that is left then, in ulp."""

    old: str
    new: str
    ulps: float
    how: str  # it is proved equal

    @property
    def text(self) -> str:
        return f"{self.new} for {self.old}"

    def evidence(self) -> dict[str, Any]:
        """The rewrite as evidence."""
        return {"text": self.text, "ulps": self.ulps, "proved": self.how}


class _Pair(NamedTuple):
    """A part of a program and another way to write it: both as texts, and as the nodes that these stand for."""

    part: Node
    new: Node
    old_text: str
    new_text: str


class _Try(NamedTuple):
    pairs: tuple[_Pair, ...]
    ulps: float


def better(case: Case, values: Values, entry: int, exact: float, poor: float) -> list[Rewrite]:
    """Rewrites that help at a point, for the entry whose float is `poor` ulp off the exact value; the best first."""
    subject = case.subject
    root = subject.output if subject.kind == "gradient" else subject.judged
    if root is None or len(reachable([root])) > MOST_STEPS:
        return []
    builder = root.builder
    limit, before = builder.limit, builder.count
    builder.limit = max(limit, before + MOST_NEW)
    try:
        with building(builder, reachable(subject.nodes())):
            tries = [one for one in _tries(case, root, values, entry, exact) if one.ulps * BETTER <= poor]
        return _proved(case, sorted(tries, key=lambda one: (one.ulps, len(one.pairs))))
    except GradcliError:
        return []
    finally:
        builder.limit = limit + builder.count - before


def _tries(case: Case, root: Node, values: Values, entry: int, exact: float) -> list[_Try]:
    """Every other rewrite by itself, and the first ones of all parts together, with the error that is left."""
    builder = root.builder
    order = reachable([root])
    names = readable(case)
    pairs: list[_Pair] = []
    builder.simplifying = False  # a program is evaluated as it is written
    try:
        for node in order:
            pairs += [pair for new in alternatives(node) if (pair := _as_typed(case, names, node, new)) is not None]
        groups: list[tuple[_Pair, ...]] = [(pair,) for pair in pairs]
        first = {pair.part: pair for pair in reversed(pairs)}
        if len(first) > 1:
            groups.append(tuple(first.values()))
        changed = [(group, substituted(order, {one.part: one.new for one in group})) for group in groups]
    finally:
        builder.simplifying = True
    found = []
    for group, output in changed:
        judged = output
        if case.subject.kind == "gradient":
            judged = derivatives.grad(output, [case.target])[0]
        value = float(case.floats([judged], values)[0].reshape(-1)[entry])
        found.append(_Try(group, ulps(value, exact, case.dtype)))
    return found


def _as_typed(case: Case, names: Names, part: Node, new: Node) -> _Pair | None:
    """A part and its rewrite as texts; None where a text does not read back as its node."""
    old, other = as_typed(case, names, part, LONGEST), as_typed(case, names, new, LONGEST)
    return None if old is None or other is None else _Pair(part, other[1], old[0], other[0])


def alternatives(node: Node) -> Iterator[Node]:
    """Other ways to write one node, on its builder, which must be open: worth trying, no more."""
    for rule in RULES:
        found = rule(node)
        if found is not None and found is not node and found.type == node.type:
            yield found


def substituted(order: Sequence[Node], changes: Mapping[Node, Node]) -> Node:
    """The last node of a topological order with some nodes written in another way."""
    made: dict[Node, Node] = {}
    for node in order:
        if node in changes:
            made[node] = changes[node] if len(changes) == 1 else _within(changes[node], made)
        elif any(arg in made for arg in node.args):
            args = tuple(made.get(arg, arg) for arg in node.args)
            made[node] = node.builder.apply(node.primitive, args, dict(node.params))
    return made.get(order[-1], order[-1])


def _within(node: Node, made: Mapping[Node, Node]) -> Node:
    """A new rewrite whose own parts are written anew too."""
    again: dict[Node, Node] = {}
    for part in reachable([node]):
        if part in made:
            again[part] = made[part]
        elif any(arg in again for arg in part.args):
            args = tuple(again.get(arg, arg) for arg in part.args)
            again[part] = part.builder.apply(part.primitive, args, dict(part.params))
    return again.get(node, node)


def _proved(case: Case, tries: Sequence[_Try]) -> list[Rewrite]:
    """The rewrites whose parts are all proved equal."""
    tries = tries[:MOST_PROOFS]
    nodes = [node for one in tries for pair in one.pairs for node in (pair.part, pair.new)]
    found: list[Rewrite] = []
    if not nodes:
        return found
    exact = case.exact.beside(nodes)
    proofs: dict[_Pair, str | None] = {}
    try:
        exact.begin()
        for one in tries:
            for pair in one.pairs:
                if pair not in proofs:
                    answer = exact.prove(pair.new, case.values, left=pair.part, moving=case.subject.moving)
                    proofs[pair] = str(answer["how"]) if answer.get("proved") else None
            hows = [proofs[pair] for pair in one.pairs]
            if all(hows):
                old = "; ".join(pair.old_text for pair in one.pairs)
                new = "; ".join(pair.new_text for pair in one.pairs)
                found.append(Rewrite(old, new, one.ulps, hows[0] or ""))
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return _worth_showing(found)


def _worth_showing(found: Sequence[Rewrite]) -> list[Rewrite]:
    """The best rewrite, and others of one part that are as good."""
    shown: list[Rewrite] = []
    for one in found:
        if not shown or (";" not in one.new and one.ulps <= 2 * shown[0].ulps + 2):
            shown.append(one)
    return shown
