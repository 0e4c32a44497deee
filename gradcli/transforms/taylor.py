"""Taylor mode: derivatives of orders 1 to n by a scalar target, as graphs, from one series.

The coefficients v_0, v_1, ... of every node on the way follow order by order from those of its arguments. An operation
with partials p obeys v' = sum p*u', so k*v_k is the sum over j of j*u_j*p_(k-j), and the series of p is found in the
same way from the declaration of p. That closes: exp needs exp, sin needs cos and cos needs sin. An order costs a sum,
not a sweep over all that the orders before have made. No operation has a rule of its own here but products and their
inverse, quotients: beside the vocabulary of every transform this module names div.
"""

from __future__ import annotations

from math import factorial

from gradcli.graph.building import building
from gradcli.graph.exact import rational
from gradcli.graph.node import CONSTANT, Node, dependents, is_reader, reachable
from gradcli.transforms.forward import moved_linearly
from gradcli.transforms.rules import is_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.graph.node import Builder

MOST_ROUNDS = 16  # definitions inside definitions
MOST_ITERATIONS = 2000  # nodes of a loop that is written out


def taylor(output: Node, target: Node, order: int) -> list[Node] | None:
    """The derivatives of orders 1..n; None where an operation has no series here: a structured one, a long loop.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.primitives import catalogue
    >>> from gradcli.primitives.exponential import exp
    >>> x = Builder(catalogue()).leaf("x")
    >>> third = taylor(exp(2*x), x, 3)[2]
    >>> len(reachable([third])) < 20
    True
    """
    with building(output.builder, reachable([output, target])) as builder:
        series = _Series(builder, target, order)
        whole = series.begin(output)
        if whole is None:
            return None
        series.run()
        result = []
        for k in range(1, order + 1):
            known = (whole, k) in series.slopes  # then k times the coefficient is there already
            scaled = series.slopes[whole, k] if known else series.of(whole, k)
            factor = factorial(k - 1) if known else factorial(k)
            zero = scaled is None
            result.append(builder.constant(0, output.shape) if zero else builder.call("mul", scaled, factor))
        return result


def _is_long(node: Node) -> bool:
    """Whether a node reads a loop that is too long to be written out, itself or in its iterations."""
    params = node.params
    if not is_reader(node):
        return False
    return params["count"] * len(params["body"].steps) > MOST_ITERATIONS or any(map(_is_long, params["body"].steps))


class _Series:
    """The coefficients that have been found: `rows[node][k]`, None for zero."""

    def __init__(self, builder: Builder, target: Node, order: int) -> None:
        self.builder = builder
        self.mul, self.add = builder.vocabulary["mul"], builder.vocabulary["add"]
        self.target = target
        self.order = order
        self.rows: dict[Node, list[Node | None]] = {}
        self.fixed: dict[Node, list[Node | None]] = {}  # the same of nodes that do not move
        self.slopes: dict[tuple[Node, int], Node | None] = {}  # k times coefficient k
        self.partials: dict[Node, tuple[Any, ...]] = {}
        self.moving: dict[Node, list[tuple[Any, list[Any] | None, Node]]] = {}
        self.numbers: dict[Any, Node] = {}  # k and 1/k, as they are needed
        self.level: dict[Node, int] = {}  # a node of level l is needed up to order n - l
        self.written: dict[Node, Node] = {}

    # --- which nodes have a series -----------------------------------------------------------------------------

    def begin(self, output: Node) -> Node | None:
        """Find all nodes whose series are needed: the output written out, or None where one of them has none."""
        if any(_is_long(node) for node in reachable([output])):
            return None
        (whole,) = self._plain([output])
        front = self._entered([whole], 0)
        for level in range(1, self.order):
            if front is None:
                return None
            rules: dict[Node, Sequence[Any]] = {}
            for node in front:
                if node.primitive.kind == "elementwise" and node.primitive.name not in ("mul", "div"):
                    rule = node.primitive.partials
                    assert rule is not None
                    rules[node] = rule(*node.args, out=node, **node.params)
            nodes = [partial for partials in rules.values() for partial in partials if isinstance(partial, Node)]
            plain = dict(zip(nodes, self._plain(nodes), strict=True))  # of all at once: each looks at all below
            wanted: list[Node] = []
            for node, partials in rules.items():
                written = self.partials[node] = tuple([plain[p] if isinstance(p, Node) else p for p in partials])
                pairs = zip(written, node.args, strict=True)
                wanted += [partial for partial, arg in pairs if isinstance(partial, Node) and arg in self.level]
            front = self._entered(wanted, level)
        return None if front is None else whole

    def _entered(self, nodes: Sequence[Node], level: int) -> list[Node] | None:
        """The nodes below that move and are new; None where one of them has no series."""
        order = reachable(nodes)
        moving = dependents(order, [self.target])
        entered = []
        for node in order:
            if node in moving and node not in self.level and node is not self.target:
                if node.primitive.kind == "structured":
                    return None
                self.level[node] = level
                entered.append(node)
        self.level.setdefault(self.target, 0)
        return entered

    def _plain(self, nodes: Sequence[Node]) -> list[Node]:
        """The same nodes with composite operations that move written out by their definitions."""
        written = list(nodes)
        for _ in range(MOST_ROUNDS):
            order = reachable(written)
            moving = dependents(order, [self.target])
            if not any(node.primitive.kind == "composite" and node in moving for node in order):
                break
            for node in order:
                if node not in self.written:
                    args = tuple([self.written[arg] for arg in node.args])
                    if node.primitive.kind == "composite" and node in moving:
                        assert node.primitive.definition is not None
                        plain = node.primitive.definition(*args, **node.params)
                    elif args == node.args:
                        plain = node
                    else:
                        plain = self.builder.apply(node.primitive, args, node.params)
                    self.written[node] = plain
            written = [self.written[node] for node in written]
        return written

    # --- coefficients ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All coefficients, order by order, in each from arguments to results."""
        nodes = sorted(self.level, key=lambda node: node.serial)
        outer = self.builder.span
        unit = self.builder.constant(1, self.target.shape)
        for node in nodes:
            self.rows[node] = [node]
        for k in range(1, self.order + 1):
            for node in nodes:
                if self.level[node] <= self.order - k:
                    self.builder.span = node.span
                    if node is self.target:
                        coefficient = unit if k == 1 else None
                    else:
                        coefficient = self._coefficient(node, k)
                    self.rows[node].append(coefficient)
        self.builder.span = outer

    def of(self, node: Any, k: int) -> Any:
        """Coefficient k of a node or number; None for zero. Nodes that do not move have but the first."""
        row = self.rows.get(node) if type(node) is Node else None
        if row is None:
            return node if k == 0 and not is_zero(node) else None
        return row[k]

    def row(self, node: Node) -> list[Any]:
        """The coefficients of a node, as far as they are known."""
        row = self.rows.get(node) or self.fixed.get(node)
        if row is None:
            row = self.fixed[node] = [self.of(node, 0), *[None] * self.order]
        return row

    def slope(self, node: Node, k: int) -> Node | None:
        """k times coefficient k."""
        if k == 1:
            return self.rows[node][1]
        key = (node, k)
        if key not in self.slopes:
            coefficient = self.rows[node][k]
            self.slopes[key] = None if coefficient is None else self._by_number(coefficient, k)
        return self.slopes[key]

    def _by_number(self, x: Node, k: int, divided: bool = False) -> Node:
        """k times a node, or a k-th of it."""
        key = (k, divided, x.type.shape)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = self.builder.constant(rational(1, k) if divided else k, x.type.shape)
        return self.builder.apply(self.mul, (x, number), {})

    def _coefficient(self, node: Node, k: int) -> Node | None:
        primitive, args = node.primitive, node.args
        if primitive is self.mul or primitive.kind == "bilinear":
            return self._product(node, k)
        if primitive.name == "div":
            return self._quotient(node, k)
        if primitive.kind == "elementwise":
            return self._by_partials(node, k)
        if primitive.kind == "linear":
            return moved_linearly(self.builder, node, [self.of(arg, k) for arg in args])
        return None

    def _product(self, node: Node, k: int) -> Node | None:
        x, y = self.row(node.args[0]), self.row(node.args[1])
        terms: list[Node | None] = []
        if x is y and node.primitive.pointwise:
            for j in range((k + 1) // 2):
                term = self._times(node, x[j], x[k - j])
                if term is not None:
                    terms.append(self._by_number(term, 2))
            if k % 2 == 0:
                terms.append(self._times(node, x[k // 2], x[k // 2]))
        else:
            terms = [self._times(node, x[j], y[k - j]) for j in range(k + 1)]
        return self._sum(terms)

    def _times(self, node: Node, x: Node | None, y: Node | None) -> Node | None:
        if x is None or y is None:
            return None
        primitive = node.primitive
        if x.primitive is CONSTANT and x.params["value"] == 1 and primitive.pointwise:
            return y
        return self.builder.apply(primitive, (x, y), node.params)

    def _quotient(self, node: Node, k: int) -> Node | None:
        """v*y = x, so v_k = (x_k - sum of y_j*v_(k-j)) / y_0."""
        x, y, own = node.args[0], self.row(node.args[1]), self.rows[node]
        pairs: list[Any] = [(y[j], own[k - j]) for j in range(1, k + 1)]
        terms = [self.builder.apply(self.mul, pair, {}) for pair in pairs if None not in pair]
        taken = self._sum(terms)
        total = self._sum([self.row(x)[k], None if taken is None else self.builder.call("neg", taken)])
        return None if total is None else self.builder.call("div", total, node.args[1])

    def _by_partials(self, node: Node, k: int) -> Node | None:
        """k*v_k = sum over arguments and j of j*u_j*p_(k-j); where p does not move, v_k = p*u_k."""
        plain: list[Any] = []
        mixed: list[Any] = []
        for partial, row, arg in self._moving(node):
            if row is None:
                plain.append(self._scaled(partial, self.rows[arg][k]))
            else:
                mixed += [self._scaled(row[k - j], self.slope(arg, j)) for j in range(1, k + 1)]
        whole = self._sum(mixed)
        if whole is not None and k > 1:
            if not any(term is not None for term in plain):
                self.slopes[node, k] = whole
            whole = self._by_number(whole, k, divided=True)
        return self._sum([*plain, whole])

    def _moving(self, node: Node) -> list[tuple[Any, list[Any] | None, Node]]:
        """The partials that count: each with its coefficients where it moves, and the argument that it belongs to."""
        counted = self.moving.get(node)
        if counted is None:
            partials = self.partials.get(node)
            if partials is None:  # needed to the first order only: of the partials just the values
                rule = node.primitive.partials
                assert rule is not None
                partials = rule(*node.args, out=node, **node.params)
            counted = self.moving[node] = [
                (partial, self.rows.get(partial) if type(partial) is Node else None, arg)
                for partial, arg in zip(partials, node.args, strict=True)
                if arg in self.rows and partial is not None and not is_zero(partial)
            ]
        return counted

    def _scaled(self, partial: Any, by: Node | None) -> Node | None:
        if by is None or partial is None:
            return None
        if type(partial) is not Node:
            return self.builder.call("mul", partial, by)
        if by.primitive is CONSTANT and by.params["value"] == 1:
            return partial
        return self.builder.apply(self.mul, (partial, by), {})

    def _sum(self, terms: Iterable[Node | None]) -> Node | None:
        total: Node | None = None
        for term in terms:
            if term is not None:
                total = term if total is None else self.builder.apply(self.add, (total, term), {})
        return total
