"""Formulas that lose fewer digits, by patterns: differences of nearly equal terms, functions made for compositions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.graph.node import Node
from gradcli.primitives.activations import logaddexp, logsigmoid, sigmoid, softplus
from gradcli.primitives.composites import log_softmax, logsumexp, norm, softmax
from gradcli.primitives.exponential import exp, expm1, log1p
from gradcli.primitives.hyperbolic import cosh, sinh
from gradcli.primitives.powers import hypot
from gradcli.primitives.reductions import var
from gradcli.primitives.special import erfc, sinc
from gradcli.primitives.trigonometric import cos, sin

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node


def plain(node: Node) -> Node:
    """A node without the names that a script gave it."""
    while node.primitive.name in ("name", "broadcast", "reshape") and node.args[0].shape == node.shape:
        node = node.args[0]
    return node


def named(node: Node, *names: str) -> bool:
    return node.primitive.name in names


def is_number(node: Node, value: int) -> bool:
    return node.constant == value


def terms(node: Node) -> list[tuple[Node, int]]:
    """The two terms of a sum or difference with their signs; none for anything else."""
    node = plain(node)
    if named(node, "add", "sub"):
        one, other = map(plain, node.args)
        found = [(one, 1), (other, 1 if named(node, "add") else -1)]
        return [(plain(t.args[0]), -sign) if named(t, "neg") else (t, sign) for t, sign in found]
    return []


def parted(node: Node, wanted: Callable[[Node], bool]) -> tuple[Node, int, Node, int] | None:
    """The term of a sum that is wanted with its sign, and the other term with its sign."""
    pair = terms(node)
    for (term, sign), (rest, other) in (pair, pair[::-1]) if pair else ():
        if wanted(term):
            return term, sign, rest, other
    return None


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
    """The terms of a node, itself where it is no sum; as deep as two sums."""
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


def exp_minus_one(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "exp"))
    if found is not None and is_number(found[2], 1) and found[1] != found[3]:
        made: Node = expm1(found[0].args[0])
        return made if found[1] > 0 else -made
    if found is not None and named(found[2], "exp") and found[1] != found[3]:
        one, other = (found[0], found[2]) if found[1] > 0 else (found[2], found[0])
        product: Node = other * expm1(lifted(difference(one.args[0], other.args[0]), node))
        return product
    return None


def one_minus_cosine(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "cos"))
    if found is None or found[1] == found[3]:
        return None
    if is_number(found[2], 1):
        square = 2 * sin(found[0].args[0] / 2) ** 2
        return square if found[1] < 0 else -square
    if named(found[2], "cos"):
        one, other = (found[0], found[2]) if found[1] > 0 else (found[2], found[0])
        half, away = (one.args[0] + other.args[0]) / 2, lifted(difference(one.args[0], other.args[0]), node) / 2
        return -2 * sin(half) * sin(away)
    return None


def difference_of_sines(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "sin"))
    if found is None or found[1] == found[3] or not named(found[2], "sin"):
        return None
    one, other = (found[0], found[2]) if found[1] > 0 else (found[2], found[0])
    half, away = (one.args[0] + other.args[0]) / 2, lifted(difference(one.args[0], other.args[0]), node) / 2
    return 2 * cos(half) * sin(away)


def cosh_minus_one(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "cosh"))
    if found is None or not is_number(found[2], 1) or found[1] == found[3]:
        return None
    square = 2 * sinh(found[0].args[0] / 2) ** 2
    return square if found[1] > 0 else -square


def difference_of_logs(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "log"))
    if found is None or found[1] == found[3] or not named(found[2], "log"):
        return None
    one, other = (found[0], found[2]) if found[1] > 0 else (found[2], found[0])
    made: Node = log1p(lifted(difference(one.args[0], other.args[0]), node) / other.args[0])
    return made


def difference_with_root(node: Node) -> Node | None:
    """sqrt(a) - b as (a - b**2)/(sqrt(a) + b), where the squares cancel on paper."""
    found = parted(node, lambda term: named(term, "sqrt"))
    if found is None or found[1] == found[3]:
        return None
    root, sign, rest, _ = found
    inside = root.args[0]
    if named(rest, "sqrt"):
        away = difference(inside, rest.args[0])
    elif isinstance(rest.constant, int | Fraction):
        away = difference(inside, rest.builder.constant(rest.constant**2, rest.shape))
    else:
        away = _without_square(inside, rest)
    if away is None:
        return None
    made: Node = lifted(away, node) / (root + rest)
    return made if sign > 0 else -made


def _without_square(inside: Node, rest: Node) -> Any:
    """inside - rest**2, where one of the terms of `inside` is that square."""
    found = parted(inside, lambda term: of_square(term) is rest)
    if found is None or found[1] < 0:
        return None
    return found[2] if found[3] > 0 else -found[2]


def difference_of_squares(node: Node) -> Node | None:
    pair = terms(node)
    if len(pair) != 2 or pair[0][1] == pair[1][1]:
        return None
    (one, _), (other, _) = pair if pair[0][1] > 0 else pair[::-1]
    x, y = of_square(one), of_square(other)
    if is_number(one, 1):
        x = one
    if is_number(other, 1):
        y = other
    if x is None or y is None or x is y:
        return None
    away = lifted(difference(x, y), node)
    return away * (x + y)


def difference_of_reciprocals(node: Node) -> Node | None:
    pair = terms(node)
    if len(pair) != 2 or pair[0][1] == pair[1][1] or not all(named(term, "div") for term, _ in pair):
        return None
    (one, _), (other, _) = pair if pair[0][1] > 0 else pair[::-1]
    if plain(one.args[0]) is not plain(other.args[0]) and one.args[0].constant != other.args[0].constant:
        return None
    away = lifted(difference(other.args[1], one.args[1]), node)
    return one.args[0] * away / (one.args[1] * other.args[1])


def power_minus_one(node: Node) -> Node | None:
    """(1 + x)**n - 1 as expm1(n*log1p(x))."""
    found = parted(node, lambda term: named(term, "power", "pow"))
    if found is None or not is_number(found[2], 1) or found[1] == found[3]:
        return None
    base = parted(found[0].args[0], lambda term: is_number(term, 1))
    if base is None or base[1] < 0:
        return None
    exponent = found[0].params["n"] if named(found[0], "power") else found[0].args[1]
    made: Node = expm1(exponent * log1p(base[2] if base[3] > 0 else -base[2]))
    return made if found[1] > 0 else -made


def variance(node: Node) -> Node | None:
    """mean(x**2) - mean(x)**2 as the average square of the distance from the mean."""
    found = parted(node, lambda term: (x := of_square(term)) is not None and named(x, "div"))
    if found is None or found[1] > 0 or not named(found[2], "div"):
        return None
    average = of_square(found[0])
    squares = plain(found[2].args[0])
    assert average is not None
    total = plain(average.args[0])
    if not (named(total, "sum") and named(squares, "sum") and total.params == squares.params):
        return None
    x = plain(total.args[0])
    counts = average.args[1].constant, found[2].args[1].constant
    if of_square(squares.args[0]) is not x or counts != (x.type.size, x.type.size) or node.shape:
        return None
    made: Node = var.definition(x) if var.definition is not None else node
    return made


DIFFERENCE_RULES: tuple[Callable[[Node], Node | None], ...] = (
    exp_minus_one,
    one_minus_cosine,
    difference_of_sines,
    cosh_minus_one,
    difference_of_logs,
    difference_with_root,
    difference_of_squares,
    difference_of_reciprocals,
    power_minus_one,
    variance,
)


def log_of_sum(node: Node) -> Node | None:
    if not named(node, "log"):
        return None
    inner = plain(node.args[0])
    if named(inner, "sum") and named(plain(inner.args[0]), "exp"):
        return logsumexp(plain(inner.args[0]).args[0], axis=inner.params["axis"])
    pair = terms(inner)
    if len(pair) == 2 and all(named(term, "exp") and sign > 0 for term, sign in pair):
        return logaddexp(pair[0][0].args[0], pair[1][0].args[0])
    found = parted(inner, lambda term: is_number(term, 1))
    if found is None or found[1] < 0:
        return None
    if named(found[2], "exp") and found[3] > 0:
        return softplus(found[2].args[0])
    if named(found[2], "sigmoid") and found[3] < 0:
        return logsigmoid(minus(found[2].args[0]))
    made: Node = log1p(found[2] if found[3] > 0 else -found[2])
    return made


def log_of_function(node: Node) -> Node | None:
    if not named(node, "log"):
        return None
    inner = plain(node.args[0])
    if named(inner, "sigmoid"):
        return logsigmoid(inner.args[0])
    if named(inner, "softmax"):
        return log_softmax(inner.args[0], **inner.params)
    if named(inner, "exp"):
        return inner.args[0]
    inside, moves = unmoved(inner)
    if moves and named(inside, "softmax"):
        return moved(log_softmax(inside.args[0], **inside.params), moves)
    return None


def root_of_squares(node: Node) -> Node | None:
    if not named(node, "sqrt"):
        return None
    inner = plain(node.args[0])
    roots = [x for term, sign in terms(inner) if sign > 0 and (x := of_square(term)) is not None]
    if len(roots) == 2:
        return hypot(*roots)
    if named(inner, "sum") and not inner.shape and (x := of_square(inner.args[0])) is not None:
        return norm(x, axis=inner.params["axis"])
    return None


def logistic(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "sigmoid"))
    if found is not None and is_number(found[2], 1) and found[1] < 0 < found[3]:
        return sigmoid(minus(found[0].args[0]))
    if not named(node, "div"):
        return None
    top, bottom = map(plain, node.args)
    sum_of_exp = parted(bottom, lambda term: named(term, "exp"))
    if sum_of_exp is not None and is_number(sum_of_exp[2], 1) and sum_of_exp[1] == sum_of_exp[3] == 1:
        if top is sum_of_exp[0]:
            return sigmoid(top.args[0])
        if is_number(top, 1):
            return sigmoid(minus(sum_of_exp[0].args[0]))
    if named(top, "exp") and named(bottom, "exp"):
        made: Node = exp(lifted(difference(top.args[0], bottom.args[0]), node))
        return made
    return _softmax(node, top)


def _softmax(node: Node, top: Node) -> Node | None:
    """exp(x) divided by its sum over the last axis."""
    below = node.args[1]
    while named(below, "broadcast", "reshape", "name"):
        below = below.args[0]
    whole, moves = unmoved(top)
    if not (named(whole, "exp") and named(below, "sum") and plain(below.args[0]) is whole):
        return None
    return moved(softmax(whole.args[0], axis=below.params["axis"]), moves)


def one_minus_tanh_squared(node: Node) -> Node | None:
    found = parted(node, lambda term: (x := of_square(term)) is not None and named(x, "tanh"))
    if found is None or not is_number(found[2], 1) or found[1] > 0:
        return None
    inner = of_square(found[0])
    assert inner is not None
    return 1 / cosh(inner.args[0]) ** 2


def complement_of_erf(node: Node) -> Node | None:
    found = parted(node, lambda term: named(term, "erf"))
    if found is None or not is_number(found[2], 1) or found[1] == found[3]:
        return None
    made: Node = erfc(found[0].args[0])
    return made if found[1] < 0 else -made


def sine_quotient(node: Node) -> Node | None:
    if named(node, "div") and named(plain(node.args[0]), "sin"):
        argument = plain(plain(node.args[0]).args[0])
        if argument is plain(node.args[1]):
            pi = node.builder.constant("pi", node.shape)
            made: Node = sinc(argument / pi)
            return made
    return None


FUNCTION_RULES: tuple[Callable[[Node], Node | None], ...] = (
    log_of_sum,
    log_of_function,
    root_of_squares,
    logistic,
    one_minus_tanh_squared,
    complement_of_erf,
    sine_quotient,
)
