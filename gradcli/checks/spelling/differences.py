"""A difference of nearly equal terms goes in, a spelling in which they have cancelled on paper comes out."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.checks.spelling.parts import difference, is_number, lifted, named, of_square, parted, plain, terms
from gradcli.primitives.exponential import expm1, log1p
from gradcli.primitives.hyperbolic import sinh
from gradcli.primitives.reductions import var
from gradcli.primitives.trigonometric import cos, sin

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node


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


RULES: tuple[Callable[[Node], Node | None], ...] = (
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
