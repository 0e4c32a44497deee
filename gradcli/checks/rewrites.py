"""A graph whose floats are poor goes in, spellings that keep the digits come out: patterns only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node


def proposals(output: Node) -> list[str]:
    """What could be written instead of parts of a computation, each once, in the order of the computation."""
    found = []
    for node in reachable([output]):
        found += [told for told in [rule(node) for rule in RULES] if told is not None]
    return list(dict.fromkeys(found))


def named(node: Node, *names: str) -> bool:
    return node.primitive.name in names


def is_number(node: Node, value: int) -> bool:
    return node.constant == value


def terms(node: Node) -> list[tuple[Node, int]]:
    """The two terms of a sum or difference with their signs; none for anything else."""
    if named(node, "add"):
        return [(node.args[0], 1), (node.args[1], 1)]
    if named(node, "sub"):
        return [(node.args[0], 1), (node.args[1], -1)]
    return []


def exp_minus_one(node: Node) -> str | None:
    pair = terms(node)
    signs = {sign for _, sign in pair}
    exp = any(named(term, "exp") for term, _ in pair)
    one = any(is_number(term, 1) for term, _ in pair)
    return "expm1(x) for exp(x) - 1" if signs == {1, -1} and exp and one else None


def one_minus_cosine(node: Node) -> str | None:
    if named(node, "sub") and is_number(node.args[0], 1) and named(node.args[1], "cos"):
        return "2*sin(x/2)**2 for 1 - cos(x)"
    return None


def log_of_sum(node: Node) -> str | None:
    if not named(node, "log"):
        return None
    inner = node.args[0]
    if named(inner, "sum") and named(inner.args[0], "exp"):
        return "logsumexp(x) for log(sum(exp(x)))"
    parts = [term for term, _ in terms(inner)]
    if any(is_number(term, 1) for term in parts):
        if any(named(term, "exp") for term in parts):
            return "softplus(x) for log(1 + exp(x))"
        return "log1p(x) for log(1 + x)"
    if len(parts) == 2 and all(named(term, "exp") for term in parts):
        return "logaddexp(x, y) for log(exp(x) + exp(y))"
    return None


def root_of_squares(node: Node) -> str | None:
    if named(node, "sqrt"):
        parts = terms(node.args[0])
        if parts and all(sign == 1 and is_square(term) for term, sign in parts):
            return "hypot(x, y) for sqrt(x**2 + y**2)"
    return None


def is_square(node: Node) -> bool:
    return (named(node, "power") and node.params.get("n") == 2) or (named(node, "mul") and node.args[0] is node.args[1])


def logistic(node: Node) -> str | None:
    if not named(node, "div"):
        return None
    top, bottom = node.args
    parts = [term for term, _ in terms(bottom)]
    if top in parts and named(top, "exp") and any(is_number(term, 1) for term in parts):
        return "sigmoid(x) for exp(x)/(1 + exp(x))"
    if named(bottom, "sum") and named(top, "exp"):
        return "softmax(x) for exp(x)/sum(exp(x))"
    return None


def difference_of_roots(node: Node) -> str | None:
    if named(node, "sub") and all(named(arg, "sqrt") for arg in node.args):
        return "(a - b)/(sqrt(a) + sqrt(b)) for sqrt(a) - sqrt(b)"
    return None


RULES: tuple[Callable[[Node], str | None], ...] = (
    exp_minus_one,
    one_minus_cosine,
    log_of_sum,
    root_of_squares,
    logistic,
    difference_of_roots,
)
