r"""Formulas of the script language as LaTeX mathematics: `2/m*A.T @ (A @ x - b)` as `\frac{2}{m} A^{\top} (A x - b)`.

A product entry by entry is \odot, as people write it; whether one is meant is decided by the ranks of the operands.
"""

from __future__ import annotations

from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import (
    Assign,
    Binary,
    Call,
    Compare,
    ExpressionStatement,
    List,
    Name,
    Number,
    Slice,
    Subscript,
    Transpose,
    Unary,
)
from gradcli.language.unparse import unparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.language.syntax import Syntax

SUM, HADAMARD, PRODUCT, POWER, ATOM = 1, 2, 3, 4, 5
GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "mu",
        "nu",
        "xi",
        "pi",
        "rho",
    ]
    + ["sigma", "tau", "phi", "chi", "psi", "omega"]
)
NAMED = frozenset(["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "det", "max", "min"])  # that LaTeX has
NUMBERS = frozenset(
    ["sum", "mean", "norm", "det", "trace", "logdet", "var", "std", "prod", "logsumexp", "len", "max", "min"]
)
MATRICES = frozenset(["outer", "inv", "eye", "diag"])
SIGNS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "==": "=", "<": "<", ">": ">"}


def latex(text: str, ranks: Mapping[str, int]) -> str:
    r"""A formula in LaTeX; `ranks` are those of the names in it, numbers where they are not there.

    >>> latex("2/m*A.T @ (A @ x - b)", {"A": 2, "x": 1, "b": 1})
    '\\frac{2}{m} A^{\\top} (A x - b)'
    """
    statement = parsed(text)
    writer = Mathematics(ranks)
    if isinstance(statement, Assign):
        return f"{writer.text(statement.targets[0])} = {writer.text(statement.value)}"
    assert isinstance(statement, ExpressionStatement)
    return writer.text(statement.value)


def parsed(text: str) -> Syntax:
    """The one statement of a text."""
    (statement,) = parse(Source(text)).statements
    return statement


class Mathematics:
    """Writes trees; `ranks` are those of names."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks

    def rank(self, node: Syntax) -> int:
        """The rank of a value: of a number 0."""
        if isinstance(node, Name):
            return self.ranks.get(node.id, 0)
        if isinstance(node, (Unary, Transpose)):
            return self.rank(node.operand if isinstance(node, Unary) else node.value)
        if isinstance(node, Binary):
            one, other = self.rank(node.left), self.rank(node.right)
            return max(one + other - 2, 0) if node.op == "@" else max(one, other)
        if isinstance(node, List):
            return 1 + max(map(self.rank, node.items), default=0)
        if isinstance(node, Subscript):
            return max(self.rank(node.value) - sum(not isinstance(item, Slice) for item in node.items), 0)
        if isinstance(node, Call):
            name = node.function.id
            axis = any(keyword.name == "axis" for keyword in node.keywords)
            if name in ("ones", "zeros"):
                return len(node.args)
            if name in NUMBERS and (len(node.args) == 1 or name == "norm"):
                return 1 if axis else 0
            return 2 if name in MATRICES else max(map(self.rank, node.args), default=0)
        return 0

    def text(self, node: Syntax, place: int = 0) -> str:
        """A tree, in brackets where its place binds more tightly."""
        text, binds = self.written(node)
        return text if binds >= place else rf"\left({text}\right)" if r"\frac" in text else f"({text})"

    def written(self, node: Syntax) -> tuple[str, int]:
        """A tree, and how tightly its outermost operation binds."""
        if isinstance(node, Number):
            mantissa, _, exponent = node.text.partition("e")
            return (rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRODUCT) if exponent else (node.text, ATOM)
        if isinstance(node, Name):
            return name_text(node.id), ATOM
        if isinstance(node, Unary):
            return ("-" if node.op == "-" else r"\lnot ") + self.text(node.operand, PRODUCT), SUM
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Transpose):
            inner = node.value
            if isinstance(inner, Call) and inner.function.id == "inv":
                return rf"{self.text(inner.args[0], ATOM)}^{{-\top}}", POWER
            return rf"{self.text(inner, ATOM)}^{{\top}}", POWER
        if isinstance(node, Compare):
            text = self.text(node.operands[0], SUM)
            for sign, operand in zip(node.ops, node.operands[1:], strict=True):
                text += f" {SIGNS[sign]} {self.text(operand, SUM)}"
            return text, 0
        if isinstance(node, List):
            rows = [item.items if isinstance(item, List) else (item,) for item in node.items]
            body = r" \\ ".join(" & ".join(map(self.text, row)) for row in rows)
            return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}", ATOM
        if isinstance(node, Subscript):
            return f"{self.text(node.value, ATOM)}_{{{', '.join(map(unparse, node.items))}}}", ATOM
        if isinstance(node, Call):
            return self.call(node)
        return rf"\texttt{{{unparse(node)}}}", ATOM

    def binary(self, node: Binary) -> tuple[str, int]:
        """An operator between two operands."""
        left, right = node.left, node.right
        if isinstance(left, Unary) and left.op == "-" and node.op in "*/@":  # the sign stands in front of the product
            positive = Binary(node.op, left.operand, right, node.implicit, node.span)
            return f"-{self.text(positive, PRODUCT)}", SUM
        for column, matrix in ((left, right), (right, left)):
            if node.op == "*" and isinstance(column, Call) and column.function.id == "reshape":  # scales rows
                return rf"\operatorname{{diag}}({self.text(column.args[0])}) {self.text(matrix, PRODUCT)}", PRODUCT
        if node.op in "+-":
            return f"{self.text(left, SUM)} {node.op} {self.text(right, HADAMARD)}", SUM
        if node.op == "/":
            return rf"\frac{{{self.text(left)}}}{{{self.text(right)}}}", ATOM
        if node.op == "**":
            sign = r"\circ " if self.rank(left) else ""
            return f"{self.text(left, ATOM)}^{{{sign}{self.text(right)}}}", POWER
        if node.op == "@":
            if self.rank(left) == 1:
                return rf"{self.text(left, ATOM)}^{{\top}} {self.text(right, PRODUCT)}", PRODUCT
            return f"{self.text(left, PRODUCT)} {self.text(right, PRODUCT)}", PRODUCT
        if node.op == "*" and self.rank(left) and self.rank(right):
            return rf"{self.text(left, HADAMARD)} \odot {self.text(right, PRODUCT)}", HADAMARD
        if node.op == "*":
            one, other = (self.text(operand, POWER if is_dot(operand) else PRODUCT) for operand in (left, right))
            return (rf"{one} \cdot {other}" if other[0].isdigit() else f"{one} {other}"), PRODUCT
        return rf"{self.text(left)} \mathbin{{\mathrm{{{node.op}}}}} {self.text(right)}", 0

    def call(self, node: Call) -> tuple[str, int]:
        """A call, in the notation that its function has."""
        name, args = node.function.id, node.args
        one = self.text(args[0]) if args else ""
        if name == "sqrt":
            return rf"\sqrt{{{one}}}", ATOM
        if name == "abs":
            return rf"\left| {one} \right|", ATOM
        if name == "norm" and len(args) == 1:
            return rf"\lVert {one} \rVert", ATOM
        if name == "inv":
            return f"{self.text(args[0], ATOM)}^{{-1}}", POWER
        if name == "outer":
            return rf"{self.text(args[0], PRODUCT)} \, {self.text(args[1], ATOM)}^{{\top}}", PRODUCT
        if name in ("eye", "ones", "zeros"):
            symbol = {"eye": "I", "ones": r"\mathbf{1}", "zeros": r"\mathbf{0}"}[name]
            sizes = r" \times ".join(map(self.text, args))
            return f"{symbol}_{{{sizes}}}", ATOM
        if name == "reshape" and len(args) == 2:  # a column
            return self.written(args[0])
        if name == "where" and len(args) == 3:
            condition, yes, no = map(self.text, args)
            return rf"\begin{{cases}} {yes} & {condition} \\ {no} & \text{{else}} \end{{cases}}", ATOM
        shown = {"trace": "tr"}.get(name, name).replace("_", r"\_")
        head = "\\" + name if name in NAMED else rf"\operatorname{{{shown}}}"
        parts = [*map(self.text, args), *(f"{one.name}={unparse(one.value)}" for one in node.keywords)]
        inside = ", ".join(parts)
        return rf"{head}\left({inside}\right)" if r"\frac" in inside else f"{head}({inside})", ATOM


def is_dot(node: Syntax) -> bool:
    """Whether a factor is itself a product of vectors or matrices."""
    return isinstance(node, Binary) and node.op == "@"


def name_text(name: str) -> str:
    """A name: x1 as x with an index, Greek letters by name, words upright."""
    stem = name.rstrip("0123456789").rstrip("_") or name
    index = name[len(stem) :].lstrip("_")
    if stem.lower() in GREEK or stem == "lam":
        stem = r"\lambda" if stem == "lam" else f"\\{stem}"
    elif len(stem) > 1:
        stem = rf"\mathrm{{{stem.replace('_', chr(92) + '_')}}}"
    return f"{stem}_{{{index}}}" if index else stem


__all__ = ["latex"]
