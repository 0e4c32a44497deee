"""Better formulas for programs that lose digits: rewrites that are proved equal and measured to be more accurate.

Each part of the program that a formula matches is rewritten, the gradient is derived again, and its float is compared
with the exact value. What is not better, or cannot be proved equal, is not shown.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide.floats import ulps
from gradcli.checks.diagnosis.formula_text import as_typed, readable, room_to_build
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.language.parser import parse
from gradcli.language.source import Source, words
from gradcli.lowering import lower
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.comparison import named
from gradcli.primitives.movement import broadcast, reshape
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.checks.decide.case import Case, Values

    Bound = dict[str, Any]  # nodes, the axis of reductions, and the moves by which entries are taken
    Term = tuple[Any, int]  # and its sign

# in a group the first that matches counts; a and b are any values, v is an array, n is a number, and a difference has
# no common terms
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
sqrt(b**2 + a) - b = a/(sqrt(b**2 + a) + b)

a**2 - b**2 = (a - b)*(a + b)
a**2 - 1 = (a - 1)*(a + 1)

a/b - a/c = a*(c - b)/(b*c)

(1 + a)**b - 1 = expm1(b*log1p(a))

log(exp(a) + exp(b)) = logaddexp(a, b)
log(1 + exp(a)) = softplus(a)
log(1 - sigmoid(a)) = logsigmoid(-a)
log(1/(1 + exp(a))) = -softplus(a)
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

sum(v**2)/n - (sum(v)/n)**2 = sum((v - sum(v)/n)**2)/n

log(sum(exp(v))) = logsumexp(v)

sqrt(sum(v**2)) = norm(v)

log(softmax(v)) = log_softmax(v)

exp(v)/sum(exp(v)) = softmax(v)
"""


def plain(node: Node) -> Node:
    """A node without the names that a script gave it."""
    while node.primitive in (named, broadcast, reshape) and node.args[0].shape == node.shape:
        node = node.args[0]
    return node


def without_moves(node: Node) -> tuple[Node, list[Node]]:
    """What a node repeats or takes entries from, and the operations that do so where entries are taken."""
    moves = []
    while is_a(node, "slice", "reshape", "broadcast", "named"):
        moves.append(node)
        node = node.args[0]
    return node, moves if any(is_a(move, "slice") for move in moves) else []


def is_a(node: Node, *names: str) -> bool:
    """Whether the operation of a node has one of some names."""
    return node.primitive.name in names


def terms(node: Node) -> list[tuple[Node, int]]:
    """The two terms of a sum or difference with their signs; none for anything else."""
    node = plain(node)
    if is_a(node, "add", "sub"):
        left, right = map(plain, node.args)
        pair = [(left, 1), (right, 1 if is_a(node, "add") else -1)]
        return [(plain(t.args[0]), -sign) if is_a(t, "neg") else (t, sign) for t, sign in pair]
    return []


def of_square(node: Node) -> Node | None:
    """x where a node is the square of x."""
    node = plain(node)
    if is_a(node, "power") and node.params["n"] == 2:
        return plain(node.args[0])
    if is_a(node, "mul") and plain(node.args[0]) is plain(node.args[1]):
        return plain(node.args[0])
    return None


def difference(first: Node, second: Node) -> Any:
    """first - second, without the terms that both have."""
    ours, theirs = Counter(signed(plain(first))), Counter(signed(plain(second)))
    if not ours & theirs:
        return plain(first) - plain(second)
    left = [*(ours - theirs).elements(), *((term, -sign) for term, sign in (theirs - ours).elements())]
    parts = [term if sign > 0 else -term for term, sign in left]
    return sum(parts[1:], parts[0]) if parts else 0


def signed(node: Node) -> list[tuple[Node, int]]:
    """The terms of a node, itself where it is not a sum; as deep as two sums."""
    inner_terms: list[tuple[Node, int]] = []
    for term, sign in terms(node) or [(node, 1)]:
        inner_terms += [(inner, sign * own) for inner, own in terms(term)] or [(term, sign)]
    return inner_terms


def minus(node: Node) -> Node:
    """-x, without a second sign."""
    node = plain(node)
    return plain(node.args[0]) if is_a(node, "neg") else -node


def lifted(value: Any, like: Node) -> Node:
    node: Node = value if isinstance(value, Node) else like.builder.constant(value, like.shape)
    return node


# --- formulas -------------------------------------------------------------------------------------------------------


def matched(pattern: Node, node: Node, bound: Bound) -> Iterator[Bound]:
    """The ways to read a node as a pattern, each as what its letters stand for.

    So are its axis, and the moves by which the node takes entries of what is matched.
    """
    node, name = plain(node), pattern.params.get("name")
    if pattern.primitive is LEAF and name in bound:
        if bound[name] is node or (node.constant is not None and node.constant == bound[name].constant):
            yield bound
    elif pattern.primitive is LEAF:
        if name != "n" or isinstance(node.constant, int | Fraction):
            yield {**bound, str(name): node}
    elif pattern.constant is not None:
        if node.constant == pattern.constant:
            yield bound
    elif terms(pattern):
        yield from sum_matched(pattern, node, bound, 1)
    elif (square := of_square(pattern)) is not None:
        if (other := of_square(node)) is not None:
            yield from matched(square, other, bound)
    else:
        (pattern, _), (node, moves) = without_moves(pattern), without_moves(node)
        if not is_a(node, pattern.primitive.name, *(("power",) if is_a(pattern, "pow") else ())):
            return
        exponent = (lifted(node.params["n"], node),) if is_a(node, "power") else ()
        more = {"axis": node.params["axis"]} if "axis" in node.params else {}
        more |= {"moves": moves} if moves else {}
        ways = [{**bound, **more}] if bound.get("axis") in (None, more.get("axis", bound.get("axis"))) else []
        for part, other in zip(pattern.args, (*node.args, *exponent), strict=True):
            ways = [longer for way in ways for longer in matched(part, other, way)]
        yield from ways


def sum_matched(pattern: Node, node: Node, bound: Bound, side: int) -> Iterator[Bound]:
    """`matched` for a sum or difference with its terms in any order; `side` -1 negates all of them."""
    (first, sign), (second, last) = terms(pattern)
    pair = terms(node)
    for term, other in (pair, pair[::-1]) if pair else ():
        for with_first in term_matched(first, side * sign, term, bound):
            yield from term_matched(second, side * last, other, with_first)


def term_matched(pattern: Node, sign: int, term: Term, bound: Bound) -> Iterator[Bound]:
    """`matched` for a term with a sign; a letter stands for a term of either sign."""
    node, own = term
    if own == sign:
        yield from matched(pattern, node, bound)
    elif pattern.primitive is LEAF and pattern.params["name"] not in ("n", *bound):
        yield {**bound, pattern.params["name"]: minus(node)}


def built(pattern: Node, bound: Bound, like: Node) -> Node:
    """The node of a formula, of the shape of another one."""
    nodes: dict[Node, Node] = {}
    for node in reachable([pattern]):
        args = [nodes[arg] for arg in node.args]
        if node.primitive is LEAF:
            nodes[node] = bound[node.params["name"]]
        elif not args:
            nodes[node] = lifted(node.params["value"], like)
        elif is_a(node, "power") and node.args[0].params.get("name") == "n":
            nodes[node] = lifted(args[0].constant ** node.params["n"], like)
        elif is_a(node, "sub"):
            nodes[node] = lifted(difference(*args), like)
        elif is_a(node, "add") and is_a(args[1], "neg"):
            nodes[node] = args[0] - args[1].args[0]
        elif is_a(node, "neg"):
            nodes[node] = minus(args[0])
        elif is_a(node, "reshape", "broadcast"):
            nodes[node] = stretch(args[0], bound["v"].shape)
        else:
            params = {**node.params, "axis": bound["axis"]} if "axis" in node.params else node.params
            nodes[node] = like.builder.apply(node.primitive, tuple(args), params)
    new = nodes[pattern]
    for move in reversed(bound.get("moves", ())):
        new = like.builder.apply(move.primitive, (new,), move.params)
    return new


def by_formulas(group: str, node: Node) -> Node | None:
    """A node as the first formula of a group that it matches has it; the terms of a difference may be exchanged."""
    for left, right in parsed(group):
        if is_a(left, "sub"):
            ways = [(side, bound) for side in (1, -1) for bound in sum_matched(left, node, {}, side)]
        else:
            ways = [(1, bound) for bound in matched(left, node, {})]
        for side, bound in ways[:1]:
            new = built(right, bound, node)
            return new if side > 0 else -new
    return None


@cache
def parsed(group: str) -> list[list[Node]]:
    """The formulas of a group, both sides."""
    lines = [line.split(" = ") for line in group.splitlines()]
    point = {"v": [1.0, 2.0]} if "v" in words(group) else {}
    return [[lower(parse(Source(side)), at=point).program.outputs[0] for side in line] for line in lines]


RULES: list[Callable[[Node], Node | None]] = [partial(by_formulas, group) for group in FORMULAS.strip().split("\n\n")]
MOST_STEPS = 600
LONGEST = 120  # characters of a rewrite
MOST_PROOFS = 4
BETTER = 8.0  # by what factor the error must shrink
A_DIGIT = 2.0**52 / 10  # ulp: with more, a double has no right digit
MOST_NEW = 50_000


class Rewrite(NamedTuple):
    """A part of a program and what to write instead, as nodes and as texts, and the error that is left, in ulp."""

    part: Node
    new: Node
    old_text: str
    new_text: str
    ulps: float = 0.0
    how: str = ""  # it is proved equal

    @property
    def text(self) -> str:
        return f"{self.new_text} for {self.old_text}"


def better(case: Case, values: Values, entry: int, exact: float, poor: float) -> list[Rewrite]:
    """Rewrites that help at a point, for the entry whose float is `poor` ulp off the exact value; the best first."""
    subject = case.subject
    root = subject.output if subject.kind == "gradient" else subject.judged
    if root is None or len(reachable([root])) > MOST_STEPS:
        return []
    ways = []
    try:
        with room_to_build(subject, MOST_NEW):
            for way, program in rewritten(case, root):
                judged = derivatives.grad(program, [case.target])[0] if subject.kind == "gradient" else program
                value = float(case.floats([judged], values)[0].reshape(-1)[entry])
                ways.append(way._replace(ulps=ulps(value, exact, case.dtype)))
    except GradcliError:
        return []
    good = sorted((way for way in ways if way.ulps * BETTER <= poor and way.ulps <= A_DIGIT), key=lambda way: way.ulps)
    return proved(case, good[:MOST_PROOFS]) if good else []


def rewritten(case: Case, root: Node) -> list[tuple[Rewrite, Node]]:
    """Every other way to write a part of a program that reads back from its text, and the program with it.

    The builder must be open.
    """
    builder, names, rewrites = root.builder, readable(case), []
    builder.simplifying = False  # a program is evaluated as it is written
    try:
        for node, rule in product(reachable([root]), RULES):
            with suppress(GradcliError):  # shapes that do not fit
                new = rule(node)
                if new is None or new is node or new.type != node.type:
                    continue
                old, other = as_typed(case, names, node, LONGEST), as_typed(case, names, new, LONGEST)
                if old is not None and other is not None:
                    program = builder.substituted([root], {node: other[1]})[0]
                    rewrites.append((Rewrite(node, other[1], old[0], other[0]), program))
    finally:
        builder.simplifying = True
    return rewrites


def proved(case: Case, ways: Sequence[Rewrite]) -> list[Rewrite]:
    """The best rewrite that is proved equal, and others that are as good."""
    proofs: list[Rewrite] = []
    exact = case.exact.beside([node for way in ways for node in (way.part, way.new)])
    for way in ways:
        if proofs and way.ulps > 2 * proofs[0].ulps + 2:
            continue
        answer = exact.prove(way.new, case.values, left=way.part, moving=case.subject.moving)
        if answer.get("proved"):
            proofs.append(way._replace(how=str(answer["how"])))
    return proofs
