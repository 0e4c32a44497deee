"""Builds syntax trees that were not parsed from a text, and writes formulas that grow part by part."""

from __future__ import annotations

from fractions import Fraction

from gradcli.base.diagnostics import Span
from gradcli.language.notation import ATOM, BINDS, COMPARISONS, LOOSEST, NUMBER, POWER, SPACED, Notation
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


class Growing(Notation):
    """The notation of formulas that are built from parts: a part is written once. Exponents are in brackets."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Syntax, str, int]] = {}

    def text(self, root: Syntax, place: int = LOOSEST) -> str:
        text, binds = self.written(root)
        return text if binds >= place else f"({text})"

    def written(self, node: Syntax) -> tuple[str, int]:
        """The text of a tree, and how tightly it binds."""
        known = self.known.get(id(node))
        if known is None:
            parts, binds = self.pieces(node)
            text = "".join([part if isinstance(part, str) else self.text(*part) for part in parts])
            known = self.known[id(node)] = node, text, binds  # which keeps the node, and so its identity
        return known[1:]

    def write_number(self, node: Number) -> Pieces:
        return [node.text], ATOM

    def write_binary(self, node: Binary) -> Pieces:
        own = BINDS[node.op]
        if own == POWER:
            return [(node.left, NUMBER), "**", (node.right, POWER)], POWER
        right = own if node.op in ("and", "or") else own + 1
        return [(node.left, own), f" {node.op} " if node.op in SPACED else node.op, (node.right, right)], own
