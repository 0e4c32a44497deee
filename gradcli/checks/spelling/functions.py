"""Logarithms, exponentials and roots that lose digits or overflow go in, the functions made for them come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.spelling.parts import (
    difference,
    is_number,
    lifted,
    minus,
    moved,
    named,
    of_square,
    parted,
    plain,
    terms,
    unmoved,
)
from gradcli.primitives.activations import logaddexp, logsigmoid, sigmoid, softplus
from gradcli.primitives.composites import log_softmax, logsumexp, norm, softmax
from gradcli.primitives.exponential import exp, log1p
from gradcli.primitives.hyperbolic import cosh
from gradcli.primitives.powers import hypot
from gradcli.primitives.special import erfc, sinc

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node


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


RULES: tuple[Callable[[Node], Node | None], ...] = (
    log_of_sum,
    log_of_function,
    root_of_squares,
    logistic,
    one_minus_tanh_squared,
    complement_of_erf,
    sine_quotient,
)
