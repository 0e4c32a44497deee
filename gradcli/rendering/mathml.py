"""Formulas of the script language as MathML, which browsers show without a library."""

from __future__ import annotations

from unicodedata import lookup

from gradcli.language.syntax import (
    Assign,
    Binary,
    Call,
    Compare,
    List,
    Name,
    Number,
    Slice,
    Subscript,
    Transpose,
    Unary,
)
from gradcli.language.unparse import unparse
from gradcli.rendering.mathematics import ATOM, GREEK, HADAMARD, POWER, PRODUCT, SUM, Mathematics, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.language.syntax import Syntax

SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "==": "=", "<": "&lt;", ">": "&gt;"}
SYMBOLS = {"eye": "I", "ones": "1", "zeros": "0"}
TOP = "<mo>⊤</mo>"


def mathml(text: str, ranks: Mapping[str, int]) -> str:
    """A formula as a `math` element; `ranks` are those of the names in it, numbers where they are not there.

    >>> mathml("x/2", {"x": 1})
    '<math><mfrac><mi>x</mi><mn>2</mn></mfrac></math>'
    """
    statement = parsed(text)
    writer = MathML(ranks)
    if isinstance(statement, Assign):
        return f"<math>{writer.text(statement.targets[0])}<mo>=</mo>{writer.text(statement.value)}</math>"
    return f"<math>{writer.text(statement.value)}</math>"  # type: ignore[attr-defined]


class MathML(Mathematics):
    """Writes trees; it decides as LaTeX does what is a product entry by entry."""

    def text(self, node: Syntax, place: int = 0) -> str:
        """A tree, in brackets where its place binds more tightly."""
        text, binds = self.written(node)
        return text if binds >= place else bracketed(text)

    def written(self, node: Syntax) -> tuple[str, int]:
        """A tree, and how tightly its outermost operation binds."""
        if isinstance(node, Number):
            return f"<mn>{node.text}</mn>", ATOM
        if isinstance(node, Name):
            return name_element(node.id), ATOM
        if isinstance(node, Unary):
            return operator("−" if node.op == "-" else "¬") + self.text(node.operand, PRODUCT), SUM
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Transpose):
            inner = node.value
            if isinstance(inner, Call) and inner.function.id == "inv":
                return power(self.text(inner.args[0], ATOM), f"<mrow><mo>−</mo>{TOP}</mrow>"), POWER
            return power(self.text(inner, ATOM), TOP), POWER
        if isinstance(node, Compare):
            text = self.text(node.operands[0], SUM)
            for sign, operand in zip(node.ops, node.operands[1:], strict=True):
                text += operator(SIGNS[sign]) + self.text(operand, SUM)
            return text, 0
        if isinstance(node, List):
            rows = [item.items if isinstance(item, List) else (item,) for item in node.items]
            cells = ["".join(f"<mtd>{self.text(item)}</mtd>" for item in row) for row in rows]
            return bracketed(f"<mtable>{''.join(f'<mtr>{row}</mtr>' for row in cells)}</mtable>"), ATOM
        if isinstance(node, Subscript) and not any(isinstance(item, Slice) for item in node.items):
            places = operator(",").join(self.text(item) for item in node.items)
            return f"<msub>{row(self.text(node.value, ATOM))}{row(places)}</msub>", ATOM
        if isinstance(node, Call):
            return self.call(node)
        return f"<mtext>{escaped(unparse(node))}</mtext>", ATOM

    def binary(self, node: Binary) -> tuple[str, int]:
        """An operator between two operands."""
        left, right = node.left, node.right
        for column, matrix in ((left, right), (right, left)):
            if node.op == "*" and isinstance(column, Call) and column.function.id == "reshape":  # scales rows
                return function("diag", self.text(column.args[0])) + self.text(matrix, PRODUCT), PRODUCT
        if node.op in "+-":
            return self.text(left, SUM) + operator("−" if node.op == "-" else "+") + self.text(right, HADAMARD), SUM
        if node.op == "/":
            return f"<mfrac>{row(self.text(left))}{row(self.text(right))}</mfrac>", ATOM
        if node.op == "**":
            above = ("<mo>∘</mo>" if self.rank(left) else "") + self.text(right)
            return power(self.text(left, ATOM), row(above)), POWER
        if node.op == "@":
            first = power(self.text(left, ATOM), TOP) if self.rank(left) == 1 else self.text(left, PRODUCT)
            return first + operator("&#x2062;") + self.text(right, PRODUCT), PRODUCT
        if node.op == "*" and self.rank(left) and self.rank(right):
            return self.text(left, HADAMARD) + operator("⊙") + self.text(right, PRODUCT), HADAMARD
        dots = [isinstance(one, Binary) and one.op == "@" for one in (left, right)]
        one, other = (self.text(part, POWER if dot else PRODUCT) for part, dot in zip((left, right), dots, strict=True))
        return one + operator("·" if other.startswith("<mn>") else "&#x2062;") + other, PRODUCT

    def call(self, node: Call) -> tuple[str, int]:
        """A call, in the notation that its function has."""
        name, args = node.function.id, [self.text(one) for one in node.args]
        if name == "sqrt":
            return f"<msqrt>{args[0]}</msqrt>", ATOM
        if name in ("abs", "norm") and len(args) == 1:
            fence = operator("|" if name == "abs" else "‖")
            return row(fence + args[0] + fence), ATOM
        if name == "inv":
            return power(self.text(node.args[0], ATOM), "<mrow><mo>−</mo><mn>1</mn></mrow>"), POWER
        if name == "outer":
            first = self.text(node.args[0], PRODUCT)
            return first + operator("&#x2062;") + power(self.text(node.args[1], ATOM), TOP), PRODUCT
        if name in SYMBOLS:
            kind = '<mi mathvariant="normal">' if name == "eye" else "<mn>"
            symbol = f"{kind}{SYMBOLS[name]}{kind[0]}/{kind[1:3]}>"
            return f"<msub>{symbol}{row(operator('×').join(args))}</msub>", ATOM
        if name == "reshape" and len(args) == 2:  # a column
            return self.written(node.args[0])
        if name == "where" and len(args) == 3:
            condition, yes, no = args
            rows = ((yes, condition), (no, "<mtext>else</mtext>"))
            cells = "".join(f"<mtr><mtd>{value}</mtd><mtd>{when}</mtd></mtr>" for value, when in rows)
            return row(f"<mo>{{</mo><mtable>{cells}</mtable>"), ATOM
        more = [f"<mtext>{escaped(unparse(one))}</mtext>" for one in node.keywords]
        return function({"trace": "tr"}.get(name, name), operator(",").join([*args, *more])), ATOM


def row(text: str) -> str:
    """Elements as one."""
    return f"<mrow>{text}</mrow>" if text.count("<") > 2 else text


def operator(sign: str) -> str:
    """An operator."""
    return f"<mo>{sign}</mo>"


def bracketed(text: str) -> str:
    """Elements in brackets."""
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def power(base: str, exponent: str) -> str:
    """An element with another above it."""
    return f"<msup>{row(base)}{exponent}</msup>"


def function(name: str, inside: str) -> str:
    """A function by name on what is in brackets."""
    return f"<mi>{escaped(name)}</mi><mo>&#x2061;</mo>{bracketed(inside)}"


def escaped(text: str) -> str:
    """Text without characters that mean something in MathML."""
    return text.translate({38: "&amp;", 60: "&lt;", 62: "&gt;"})


def name_element(name: str) -> str:
    """A name: x1 as x with an index, Greek letters by name."""
    stem = name.rstrip("0123456789").rstrip("_") or name
    index = name[len(stem) :].lstrip("_")
    if stem.lower() in GREEK or stem == "lam":
        size = "CAPITAL" if stem[0].isupper() else "SMALL"
        letter = {"lam": "LAMDA", "lambda": "LAMDA"}.get(stem.lower(), stem.upper())
        stem = lookup(f"GREEK {size} LETTER {letter}")
    element = f"<mi>{escaped(stem)}</mi>"
    return f"<msub>{element}<mn>{index}</mn></msub>" if index else element


__all__ = ["mathml"]
