"""Builds syntax trees that were not parsed from a text, and writes formulas that grow part by part."""

from __future__ import annotations

from fractions import Fraction

from gradcli.base.diagnostics import Span
from gradcli.language.notation import (
    ATOM,
    BINDS,
    COMPARISONS,
    FACTORS,
    LOOSEST,
    NUMBER,
    POWER,
    PRODUCT,
    SIGN,
    SPACED,
    Notation,
)
from gradcli.language.syntax import (
    Binary,
    Call,
    Compare,
    Expression,
    Item,
    Keyword,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    Subscript,
    Syntax,
    Transpose,
    Tuple,
    Unary,
    nodes_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.language.notation import Pieces

NOWHERE = Span(0, 0, 0, 0)


def name(text: str) -> Name:
    """A name, or any text that is written as it is and binds like one."""
    return Name(text, NOWHERE)


def number(value: int | float | str) -> Expression:
    """A number; a negative one has a sign in front."""
    text = value if isinstance(value, str) else repr(value)
    if text.startswith("-"):
        return negative(number(text[1:]))
    if not text[0].isdigit():  # inf
        return name(text)
    return Number(text, (int(text), 1) if text.isdigit() else Fraction(text), NOWHERE)


def constant(value: int | float | Fraction | str) -> Expression:
    """A constant: a decimal where it is finite and short, else a quotient."""
    if not isinstance(value, Fraction):
        return number(value)
    bottom = value.denominator
    for prime in (2, 5):
        while bottom % prime == 0:
            bottom //= prime
    if bottom == 1 and Fraction(repr(float(value))) == value:
        return number(float(value))
    return quotient(value)


def quotient(value: Fraction | int) -> Expression:
    """A fraction of whole numbers."""
    above = number(value.numerator)
    return above if value.denominator == 1 else operation("/", above, number(value.denominator))


def static(value: Any) -> Expression:
    """A parameter that is no operand; of several numbers a tuple."""
    if isinstance(value, tuple):
        items = list(map(static, value))
        return items[0] if len(items) == 1 else several(items)
    return constant(value) if isinstance(value, Fraction) else name(repr(value))


def operation(op: str, *operands: Expression) -> Expression:
    """An operator with its operands."""
    if len(operands) == 1:
        return Unary(op, *operands, NOWHERE)
    if op in COMPARISONS:
        return Compare(operands, (op,), NOWHERE)
    left, right = operands
    return Binary(op, left, right, False, NOWHERE)


def negative(tree: Expression) -> Expression:
    return operation("-", tree)


def power(tree: Expression, exponent: Fraction | int) -> Expression:
    return operation("**", tree, quotient(exponent))


def chain(op: str, parts: Sequence[Expression]) -> Expression:
    """Operands with an operator between them, from left to right."""
    first, *rest = parts
    for part in rest:
        first = operation(op, first, part)
    return first


def total(names: Sequence[str], more: int) -> Expression:
    """A sum of names and a number: `n + 2*m - 1` of n, m, m and -1."""
    counts = {own: names.count(own) for own in names}
    tree = chain("+", [name(own) if n == 1 else operation("*", number(n), name(own)) for own, n in counts.items()])
    return operation("+" if more > 0 else "-", tree, number(abs(more))) if more else tree


def keyword(key: str, value: Item) -> Keyword:
    return Keyword(key, value, NOWHERE)


def call(function: str, args: Sequence[Expression], keywords: Sequence[Keyword] = ()) -> Call:
    return Call(name(function), tuple(args), tuple(keywords), False, None, NOWHERE)


def subscript(tree: Expression, items: Sequence[Item]) -> Subscript:
    return Subscript(tree, tuple(items), NOWHERE)


def part(lower: Expression | None = None, upper: Expression | None = None, step: Expression | None = None) -> Slice:
    return Slice(lower, upper, step, NOWHERE)


def column(tree: Expression) -> Subscript:
    """A vector as a column: v[:, None]."""
    return subscript(tree, (part(), NewAxis(NOWHERE)))


def transposed(tree: Expression) -> Transpose:
    return Transpose(tree, NOWHERE)


def listed(items: Sequence[Expression]) -> List:
    return List(tuple(items), NOWHERE)


def several(items: Sequence[Expression]) -> Tuple:
    return Tuple(tuple(items), NOWHERE)


def count(tree: Expression, kind: type, op: str = "") -> int:
    """How many parts of a formula are of a kind."""
    return sum(isinstance(node, kind) and getattr(node, "op", "") == op for node in nodes_of(tree))


def scaled_by(scale: Expression, tree: Expression) -> Expression:
    """A product whose parts are read one by one."""
    return Binary("*", scale, tree, True, NOWHERE)


def repeated(number: Expression, ones: Expression) -> Expression:
    """A number for each entry of an array."""
    if isinstance(number, Unary):
        return negative(repeated(number.operand, ones))
    if isinstance(number, Binary) and number.op == "/":
        number = Binary("/", number.left, number.right, True, NOWHERE)
    return scaled_by(number, ones)


def grafted(scale: Expression, tree: Expression) -> Expression:
    """A product of matrices times what stands in front of the first of them."""
    if isinstance(tree, Binary) and tree.op == "@":
        return Binary("@", grafted(scale, tree.left), tree.right, tree.implicit, NOWHERE)
    return scaled_by(scale, tree)


def dot(left: Expression, right: Expression, flat: bool = False) -> Expression:
    """A product of matrices, with `flat` from left to right."""
    if flat and isinstance(right, Binary) and right.op == "@":
        return Binary("@", dot(left, right.left, flat), right.right, True, NOWHERE)
    return operation("@", left, right)


class Growing(Notation):
    """The notation of formulas that are built from parts: a part is written once. Exponents are in brackets."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[str, int, Syntax]] = {}

    def text(self, root: Syntax, place: int = LOOSEST) -> str:
        if type(root) is Name:
            return root.id
        text, binds = self.written(root)
        return text if binds >= place else f"({text})"

    def written(self, node: Syntax) -> tuple[str, int]:
        """The text of a tree, and how tightly it binds."""
        known = self.known.get(id(node))
        if known is None:
            parts, binds = self.pieces(node)
            text = "".join([part if type(part) is str else self.text(*part) for part in parts])
            known = self.known[id(node)] = text, binds, node  # which keeps the node, and so its identity
        return known[:2]

    def write_number(self, node: Number) -> Pieces:
        return [node.text], ATOM

    def write_binary(self, node: Binary) -> Pieces:
        own = BINDS[node.op]
        if own == POWER:
            return [(node.left, NUMBER), "**", (node.right, POWER)], POWER
        right = own if node.op in ("and", "or") else own + 1
        return [(node.left, own), f" {node.op} " if node.op in SPACED else node.op, (node.right, right)], own


class GradientNotation(Growing):
    """The notation of gradients, in which brackets show how a product is meant.

    A product is `implicit` where it is read from left to right: A @ B @ C, and 2*A @ x for twice A @ x.
    """

    def write_binary(self, node: Binary) -> Pieces:
        left, right = node.left, node.right
        if node.op == "*":
            own = PRODUCT if node.implicit else FACTORS
            chained = isinstance(left, Binary) and left.op == "*" and left.implicit == node.implicit
            places = [ATOM if node.implicit and isinstance(side, Unary) else FACTORS for side in (left, right)]
            return [(left, own if chained else places[0]), "*", (right, places[1])], own
        if node.op == "/":
            return [(left, PRODUCT), "/", (right, SIGN)], FACTORS if node.implicit else PRODUCT
        if node.op == "@" and isinstance(left, Binary) and left.op == "*" and left.implicit:
            return [*self.write_binary(left)[0][:-1], (left.right, POWER), " @ ", (right, POWER)], PRODUCT
        if node.op == "@":
            return [(left, PRODUCT if node.implicit else POWER), " @ ", (right, POWER)], PRODUCT
        return super().write_binary(node)

    def write_unary(self, node: Unary) -> Pieces:
        if node.op == "not":
            return super().write_unary(node)
        return ["-", (node.operand, PRODUCT)], SIGN if self.written(node.operand)[1] > PRODUCT else PRODUCT
