r"""Formulas of the script language as LaTeX or MathML: `2/m*A.T @ (A @ x - b)` as `\frac{2}{m} A^{\top} (A x - b)`.

`Mathematics` decides what to write: an entry-by-entry product becomes \odot, for example, which it recognises by the
ranks of the operands. A notation decides how to write it: that of the class is LaTeX; `MathML` is another.
"""

from __future__ import annotations

from unicodedata import lookup

from gradcli.base.diagnostics import GradcliError
from gradcli.language import trees
from gradcli.language.notation import ATOM, BINDS, COMPARISON, FACTORS, POWER, PRODUCT, SUM, TUPLE, Notation
from gradcli.language.parser import parse
from gradcli.language.source import Source, words
from gradcli.language.syntax import (
    Assign,
    Binary,
    Call,
    Clause,
    Compare,
    Comprehension,
    Domain,
    ExpressionStatement,
    Keyword,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    String,
    Subscript,
    Transpose,
    Tuple,
    Unary,
    children,
    is_whole,
    names_in,
    nodes_of,
)
from gradcli.language.unparse import unparse
from gradcli.primitives import functions
from gradcli.rendering.safe_text import visible
from gradcli.rendering.value_text import number, shape_of, size_of, summary, without_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.language.notation import Pieces
    from gradcli.language.syntax import Syntax

GREEK = frozenset(
    [
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
        "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
        "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
    ]
)  # fmt: skip
LETTERS = {
    name: lookup(
        f"GREEK {'CAPITAL' if name[0].isupper() else 'SMALL'} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}"
    )
    for name in GREEK
}
NAMES_OF_LETTERS = {letter: name for name, letter in LETTERS.items()}
FUNCTIONS = ("f", "g", "h", "y", "z", "F", "G")  # what a script without a name for its value is called
WIDEST = 10  # columns that the matrices of LaTeX have
MOST_ENTRIES = 1000  # of an array that is written out
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", "'": r"\textquotesingle{}", "[": "{[}", "]": "{]}",
        **{letter: rf"\ensuremath{{\{name}}}" for name, letter in LETTERS.items()},
    }
)  # fmt: skip
NUMBERS = frozenset(
    ["sum", "mean", "norm", "det", "trace", "logdet", "var", "std", "prod", "logsumexp", "len", "max", "min"]
)
MATRICES = frozenset(["outer", "inv", "eye", "diag"])
LEFT_OUT = {"sum": "0", "prod": "1", "max": "-inf", "min": "inf"}  # what changes nothing
SERIES = {"sum": (r"\sum", "∑"), "prod": (r"\prod", "∏"), "max": (r"\max", "max"), "min": (r"\min", "min")}


def latex(text: str, ranks: Mapping[str, int]) -> str:
    r"""A formula in LaTeX; `ranks` are those of its names, and a name that is not in `ranks` is a number.

    >>> latex("2/m*A.T @ (A @ x - b)", {"A": 2, "x": 1, "b": 1})
    '\\frac{2}{m} A^{\\top} (A x - b)'
    """
    return Mathematics(ranks).formula(text)


def escaped_latex(text: str) -> str:
    """Text with the special characters of LaTeX escaped, and Greek letters by name."""
    return visible(text).translate(LATEX)


class Mathematics(Notation):
    """Writes syntax trees as mathematics; `ranks` are those of names."""

    top = r"\top"
    partial_sign = r"\partial"
    symbols: Mapping[str, str] = {
        "eye": "I",
        "ones": r"\mathbf{1}",
        "zeros": r"\mathbf{0}",
        "inf": r"\infty",
        "nan": r"\text{nan}",
    }
    signs: Mapping[str, str] = {
        "<=": r"\le",
        ">=": r"\ge",
        "!=": r"\ne",
        "==": "=",
        "⊙": r"\odot",
        "×": r"\times",
        "and": r"\land",
        "or": r"\lor",
    }

    foreign = (Comprehension, Clause, Domain, Keyword, NewAxis, Slice, String)

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks

    def rank(self, node: Syntax) -> int:
        """The rank of a value: of a number 0."""
        if isinstance(node, Name):
            return self.ranks.get(node.id, 0)
        if isinstance(node, (Unary, Transpose)):
            return self.rank(node.operand if isinstance(node, Unary) else node.value)
        if isinstance(node, Binary):
            left, right = self.rank(node.left), self.rank(node.right)
            return max(left + right - 2, 0) if node.op == "@" else max(left, right)
        if isinstance(node, List):
            return 1 + max(map(self.rank, node.items), default=0)
        if isinstance(node, Subscript):
            added = sum([isinstance(item, NewAxis) for item in node.items])
            return max(self.rank(node.value) + 2 * added - sum([not isinstance(item, Slice) for item in node.items]), 0)
        if isinstance(node, Call):
            name = node.function.id
            axis = any(keyword.name == "axis" for keyword in node.keywords)
            if name in ("ones", "zeros"):
                return len(node.args)
            if name in NUMBERS and (len(node.args) == 1 or name == "norm"):
                return 1 if axis else 0
            return 2 if name in MATRICES else max(map(self.rank, node.args), default=0)
        return 0

    def formula(self, text: str) -> str:
        """The one statement of a text; anything else verbatim."""
        try:
            (statement,) = parse(Source(text)).statements
        except (GradcliError, ValueError):
            return self.verbatim(text)
        if isinstance(statement, Assign):
            return self.operator(self.text(statement.targets[0]), "=", self.text(statement.value))
        if not isinstance(statement, ExpressionStatement):
            return self.verbatim(text)
        value = statement.value
        return self.listed(value.items, ",") if isinstance(value, Tuple) else self.text(value)

    # --- results as equations

    def derivative(self, function: str, leaves: Sequence[str], along: str, text: str) -> tuple[str, str]:
        """The name of a derivative and its formula; one of entries has their indices in its name."""
        letters: list[Name] = []
        (statement,) = parse(Source(text)).statements if " for " in text else (None,)
        tree = getattr(statement, "value", None)
        while isinstance(tree, Comprehension) and not tree.generator:
            letters.append(tree.clauses[0].target)
            tree = tree.item
        rows = len(letters) - self.ranks.get(leaves[0], 0)
        name = self.partial(function, leaves, along, (letters[:rows], letters[rows:]))
        return name, self.formula(text) if tree is None else self.text(tree)

    def function_name(self, text: str) -> str:
        """A name for the value of a script that it does not use."""
        return next((name for name in FUNCTIONS if name not in {*words(text), *self.ranks}), FUNCTIONS[0])

    def outputs(self, text: str, function: str, values: Sequence[Any] = ()) -> Iterator[tuple[str, str]]:
        """The names that a script defines, and its outputs, with their values if there are any."""
        try:
            *before, last = parse(Source(text)).statements
        except (GradcliError, ValueError):
            yield self.name(function), self.verbatim(text)
            return
        for statement in before:
            if isinstance(statement, Assign) and len(statement.targets) == 1 and not statement.operator:
                self.ranks = {**self.ranks, statement.targets[0].id: self.rank(statement.value)}
                yield self.text(statement.targets[0]), self.text(statement.value)
        value = getattr(last, "value", None)
        trees = value.items if isinstance(value, Tuple) else [value]
        for place, tree in enumerate(trees):
            left = self.name(function if len(trees) == 1 else f"{function}{place + 1}")
            right = self.verbatim(text) if tree is None else self.text(tree)
            yield left, self.operator(right, "=", self.array(values[place])) if len(values) == len(trees) else right

    def partial(
        self, function: str, leaves: Sequence[str], along: str = "", at: Sequence[Sequence[Syntax]] = ((), ())
    ) -> str:
        """The name of a derivative, `at` the indices of an entry of the function and of the leaf."""
        rows, columns = [self.listed(indices, ",") for indices in at]
        order = self.number(str(len(leaves))) if len(leaves) > 1 else ""
        above = self.index(self.name(function), rows) if rows else self.name(function)
        above = self.beside(self.power(self.partial_sign, order) if order else self.partial_sign, above)
        below = []
        for leaf in dict.fromkeys(leaves):
            own = self.index(self.name(leaf), columns) if columns else self.name(leaf)
            part, count = self.beside(self.partial_sign, own), leaves.count(leaf)
            below.append(self.power(part, self.number(str(count))) if count > 1 else part)
        quotient = self.fraction(above, self.joined(below, " "))
        return self.beside(quotient, self.name(along)) if along else quotient

    def array(self, value: Any) -> str:
        """A number, or a vector or matrix of numbers; of other arrays a summary."""
        shape = shape_of(value)
        if not shape:
            return self.decimal(without_zero(number(value)))
        if len(shape) > 2 or size_of(value) > MOST_ENTRIES:
            return self.words(summary(value))
        rows = value if len(shape) == 2 else value[:, None]
        return self.matrix([[self.decimal(without_zero(number(entry))) for entry in row] for row in rows])

    def decimal(self, text: str) -> str:
        """A number as `number` writes it, with powers of ten."""
        if text.endswith("j"):
            at = max(text.rfind("+"), text.rfind("-"))
            sign, imaginary = text[at], self.beside(self.decimal(text[at + 1 : -1]), self.name("i"))
            return self.operator(self.decimal(text[:at]), sign, imaginary)
        if text.lstrip("-") in ("inf", "nan"):
            return self.prefixed("-", self.decimal(text[1:])) if text[0] == "-" else self.symbols[text]
        mantissa, _, exponent = text.partition("e")
        if not exponent:
            return self.number(text)
        ten = self.power(self.number("10"), self.number(str(int(exponent))))
        return self.operator(self.number(mantissa), "×", ten)

    def text(self, root: Syntax, place: int = TUPLE) -> str:
        """A tree, in brackets where its place binds more tightly."""
        parts, binds = self.pieces(root)
        text = "".join([part if isinstance(part, str) else self.text(*part) for part in parts])
        return text if binds >= place else self.bracketed(text, self.is_tall(root))

    def is_tall(self, tree: Syntax) -> bool:
        """Whether a tree is written with a fraction, which needs high brackets."""
        pending = [tree]
        for node in pending:  # the list grows while it is read
            if node.op == "/" if isinstance(node, Binary) else isinstance(node, Call) and node.function.id == "grad":
                return True
            pending += [] if isinstance(node, self.foreign) else children(node)
        return False

    def listed(self, nodes: Sequence[Syntax], sign: str) -> str:
        return self.joined(list(map(self.text, nodes)), sign)

    def write_foreign(self, node: Syntax) -> Pieces:
        """What has no sign in mathematics is written as in a script."""
        return [self.verbatim(unparse(node))], ATOM

    def write_number(self, node: Number) -> Pieces:
        return [self.decimal(node.text)], FACTORS if "e" in node.text else ATOM

    def write_name(self, node: Name) -> Pieces:
        return [self.name(node.id)], ATOM

    def write_unary(self, node: Unary) -> Pieces:
        return [self.prefixed(node.op, self.text(node.operand, FACTORS))], SUM

    def write_transpose(self, node: Transpose) -> Pieces:
        inner = node.value
        if isinstance(inner, Call) and inner.function.id == "inv":
            return [self.power(self.text(inner.args[0], ATOM), self.prefixed("-", self.top))], POWER
        return [self.power(self.text(inner, ATOM), self.top)], POWER

    def write_compare(self, node: Compare) -> Pieces:
        text = self.text(node.operands[0], SUM)
        for sign, operand in zip(node.ops, node.operands[1:], strict=True):
            text = self.operator(text, sign, self.text(operand, SUM))
        return [text], COMPARISON

    def write_list(self, node: List) -> Pieces:
        rows = [item.items if isinstance(item, List) else (item,) for item in node.items]
        return [self.matrix([list(map(self.text, row)) for row in rows])], ATOM

    def write_subscript(self, node: Subscript) -> Pieces:
        if (vector := vector_of(node)) is not None:
            return self.pieces(vector)
        return [self.index(self.text(node.value, ATOM), self.listed(node.items, ","))], ATOM

    def write_tuple(self, node: Tuple) -> Pieces:
        return [self.bracketed(self.listed(node.items, ","), self.is_tall(node))], ATOM

    def write_binary(self, node: Binary) -> Pieces:
        """An operator between two operands."""
        left, right = node.left, node.right
        if isinstance(left, Unary) and left.op == "-" and node.op in "*/@":  # the sign stands in front of the product
            positive = Binary(node.op, left.operand, right, node.implicit, node.span)
            return [self.prefixed("-", self.text(positive, FACTORS))], SUM
        for column, matrix in ((left, right), (right, left)):
            scales = vector_of(column) if node.op == "*" else None  # the rows of the matrix
            if scales is not None:
                return [self.beside(self.function("diag", [scales]), self.text(matrix, FACTORS))], FACTORS
        if node.op == "/":
            return [self.fraction(self.text(left), self.text(right))], ATOM
        if node.op == "**":
            return [self.power(self.text(left, ATOM), self.text(right), self.rank(left) > 0)], POWER
        if node.op == "@":
            turned = self.rank(left) == 1 and not isinstance(left, Transpose)
            first = self.power(self.text(left, ATOM), self.top) if turned else self.text(left, FACTORS)
            return [self.beside(first, self.text(right, FACTORS))], FACTORS
        if node.op == "*" and self.rank(left) and self.rank(right):
            return [self.operator(self.text(left, PRODUCT), "⊙", self.text(right, FACTORS))], PRODUCT
        if node.op == "*":
            first, second = (self.text(operand, POWER if is_dot(operand) else FACTORS) for operand in (left, right))
            return [(self.dotted if begins_with_digit(right) else self.beside)(first, second)], FACTORS
        own = BINDS[node.op]
        return [self.operator(self.text(left, own), node.op, self.text(right, own + (node.op in "+-")))], own

    def write_call(self, node: Call) -> Pieces:
        """A call, in the notation that its function has."""
        name, args = node.function.id, node.args
        if name == "sqrt":
            return [self.root(self.text(args[0]))], ATOM
        if name in ("abs", "norm") and len(args) == 1:
            return [self.fenced(name, self.text(args[0]))], ATOM
        if name == "grad" and len(args) == 2:
            operator = self.fraction(self.partial_sign, self.beside(self.partial_sign, self.text(args[1])))
            return [self.beside(operator, self.text(args[0], POWER))], FACTORS
        if name == "inv":
            return [self.power(self.text(args[0], ATOM), self.prefixed("-", self.number("1")))], POWER
        if name == "outer":
            return [self.beside(self.text(args[0], FACTORS), self.power(self.text(args[1], ATOM), self.top))], FACTORS
        if name in ("eye", "ones", "zeros"):
            return [self.index(self.symbols[name], self.listed(args, "×"))], ATOM
        if name in SERIES and isinstance(args[0], Comprehension) and not node.keywords:
            return self.write_series(name, args[0])
        if name == "where" and len(args) == 3:
            return [self.cases(*map(self.text, args))], ATOM
        return [self.function({"trace": "tr"}.get(name, name), [*args, *node.keywords])], ATOM

    def write_series(self, name: str, node: Comprehension) -> Pieces:
        """A sum over indices; their ranges are left out where only entries are read at them."""
        if any(clause.rows is not None or len(clause.bounds) != 1 for clause in node.clauses):
            return [self.function(name, [node])], ATOM
        indices = [clause.target.id for clause in node.clauses]
        tests = [test for clause in node.clauses for test in clause.conditions]
        read = [item for part in nodes_of(node.item) if isinstance(part, Subscript) for item in part.items]
        read += [side for test in tests if isinstance(test, Compare) for side in test.operands]
        places = [item.id for item in read if isinstance(item, Name)]
        names = [part.id for tree in (node.item, *tests) for part in nodes_of(tree) if isinstance(part, Name)]
        signs, whole = [], node.item
        if all(names.count(index) == places.count(index) for index in indices):
            orders = [test for test in tests if {type(side) for side in children(test)} == {Name}]
            bound = [name for test in orders for name in names_in(test)]
            below = [*[self.name(index) for index in indices if index not in bound], *map(self.text, orders)]
            own = self.joined(below, ",")
            for test in tests:
                own = own if test in orders else self.operator(own, ":", self.text(test))
            signs.append(self.series(SERIES[name], own, ""))
        else:
            for clause in node.clauses:
                (end,), less = clause.bounds, 1
                match end:
                    case Binary(op="-", left=left, right=Number(text=text)):
                        end, less = left, 1 + int(text)
                    case Binary(op="+", left=left, right=Number(text="1")):
                        end, less = left, 0
                above = trees.operation("-", end, trees.number(less)) if less else end
                first = self.operator(self.name(clause.target.id), "==", self.number("0"))
                signs.append(self.series(SERIES[name], first, self.text(above)))
            if tests:
                whole = trees.call("where", [trees.chain("and", tests), whole, trees.number(LEFT_OUT[name])])
        text = self.text(whole, FACTORS)
        for sign in reversed(signs):
            text = self.beside(sign, text)
        return [text], FACTORS if name == "sum" else SUM  # a factor behind a sum is one of each term

    def function(self, name: str, args: Sequence[Syntax]) -> str:
        """A function applied to arguments."""
        return self.applied(name, self.bracketed(self.listed(args, ","), any(map(self.is_tall, args))))

    # the notation: LaTeX, unless a class replaces it

    def number(self, text: str) -> str:
        return text

    def name(self, name: str) -> str:
        return name_text(name)

    def verbatim(self, text: str) -> str:
        return rf"\texttt{{{escaped_latex(text)}}}"

    def words(self, text: str) -> str:
        return rf"\text{{{escaped_latex(text)}}}"

    def bracketed(self, text: str, tall: bool = False) -> str:
        return rf"\left({text}\right)" if tall else f"({text})"

    def prefixed(self, sign: str, text: str) -> str:
        return (r"\lnot " if sign == "not" else sign) + text

    def operator(self, left: str, sign: str, right: str) -> str:
        return f"{left} {self.signs.get(sign, sign)} {right}"

    def beside(self, left: str, right: str) -> str:
        return f"{left} {right}"

    def dotted(self, left: str, right: str) -> str:
        return rf"{left} \cdot {right}"

    def fraction(self, above: str, below: str) -> str:
        return rf"\frac{{{above}}}{{{below}}}"

    def power(self, base: str, exponent: str, entrywise: bool = False) -> str:
        return f"{base}^{{{chr(92) + 'circ ' if entrywise else ''}{exponent}}}"

    def index(self, base: str, places: str) -> str:
        return f"{base}_{{{places}}}"

    def series(self, signs: tuple[str, str], below: str, above: str) -> str:
        return f"{signs[0]}_{{{below}}}" + (f"^{{{above}}}" if above else "")

    def joined(self, parts: Sequence[str], sign: str) -> str:
        return {",": ", ", " ": r"\,"}.get(sign, r" \times ").join(parts)

    def root(self, text: str) -> str:
        return rf"\sqrt{{{text}}}"

    def fenced(self, kind: str, text: str) -> str:
        return rf"\left| {text} \right|" if kind == "abs" else rf"\lVert {text} \rVert"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        body = r" \\ ".join(map(" & ".join, rows))
        if len(rows[0]) <= WIDEST:
            return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
        return rf"\left(\begin{{array}}{{{'r' * len(rows[0])}}} {body} \end{{array}}\right)"

    def cases(self, condition: str, yes: str, no: str) -> str:
        return rf"\begin{{cases}} {yes} & {condition} \\ {no} & \text{{else}} \end{{cases}}"

    def applied(self, name: str, arguments: str) -> str:
        primitive = functions().get(name)
        if primitive is not None and primitive.called("latex"):
            return f"\\{name}{arguments}"
        return rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}{arguments}"


def vector_of(node: Syntax) -> Syntax | None:
    """The vector of which a column is made: v of `v[:, None]`."""
    if not isinstance(node, Subscript) or len(node.items) != 2 or not isinstance(node.items[1], NewAxis):
        return None
    return node.value if is_whole(node.items[0]) else None


def is_dot(node: Syntax) -> bool:
    """Whether a factor is itself a product of vectors or matrices."""
    return isinstance(node, Binary) and node.op == "@"


def begins_with_digit(factor: Syntax) -> bool:
    """Whether a factor is written with a digit first."""
    while isinstance(factor, Binary) and factor.op == "*":
        factor = factor.left
    inner = factor
    if isinstance(factor, Binary) and factor.op == "**":
        inner = factor.left
    elif isinstance(factor, Transpose):
        inner = factor.value
    in_brackets = inner is not factor and isinstance(inner, Number) and "e" in inner.text
    return isinstance(inner, Number) and inner.text[0] in ".0123456789" and not in_brackets


def stem_and_index(name: str) -> tuple[str, str]:
    """A name without the digits at its end, and these digits: x and 1 for x_1."""
    stem = name.rstrip("0123456789").rstrip("_") or name
    return stem, name[len(stem) :].lstrip("_")


def spelled_greek(stem: str) -> str:
    """The name of a Greek letter for the letter itself and for `lam`; anything else as it is.

    >>> spelled_greek("θ"), spelled_greek("Λ"), spelled_greek("lam"), spelled_greek("x")
    ('theta', 'Lambda', 'lambda', 'x')
    """
    return "lambda" if stem == "lam" else NAMES_OF_LETTERS.get(stem, stem)


def name_text(name: str) -> str:
    """A name: x1 as x with an index, Greek letters by name, words upright."""
    stem, index = stem_and_index(name)
    stem = spelled_greek(stem)
    if stem in GREEK:
        stem = f"\\{stem}"
    elif len(stem) > 1:
        stem = rf"\mathrm{{{escaped_latex(stem)}}}"
    return f"{stem}_{{{index}}}" if index else stem


# --- MathML ----------------------------------------------------------------------------------------

INVISIBLE_TIMES, FUNCTION_APPLICATION = "&#x2062;", "&#x2061;"


def mathml(text: str, ranks: Mapping[str, int]) -> str:
    """A formula as a `math` element; `ranks` are those of its names, and a name that is not in `ranks` is a number.

    >>> mathml("x/2", {"x": 1})
    '<math><mfrac><mi>x</mi><mn>2</mn></mfrac></math>'
    """
    return f"<math>{MathML(ranks).formula(text)}</math>"


class MathML(Mathematics):
    """Presentation MathML."""

    top = "<mo>⊤</mo>"
    partial_sign = "<mo>∂</mo>"
    symbols = {
        "eye": '<mi mathvariant="normal">I</mi>',
        "ones": "<mn>1</mn>",
        "zeros": "<mn>0</mn>",
        "inf": "<mi>∞</mi>",
        "nan": "<mi>nan</mi>",
    }
    signs = {
        "-": "−",
        "<=": "≤",
        ">=": "≥",
        "!=": "≠",
        "==": "=",
        "<": "&lt;",
        ">": "&gt;",
        "and": "∧",
        "or": "∨",
        "not": "¬",
    }

    def number(self, text: str) -> str:
        return f"<mo>−</mo><mn>{text[1:]}</mn>" if text[0] == "-" else f"<mn>{text}</mn>"

    def name(self, name: str) -> str:
        return name_element(name)

    def verbatim(self, text: str) -> str:
        return f"<mtext>{escaped(text)}</mtext>"

    words = verbatim

    def bracketed(self, text: str, tall: bool = False) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"

    def prefixed(self, sign: str, text: str) -> str:
        return self.sign(sign) + text

    def sign(self, sign: str) -> str:
        return f"<mo>{self.signs.get(sign, sign)}</mo>"

    def operator(self, left: str, sign: str, right: str) -> str:
        return left + self.sign(sign) + right

    def beside(self, left: str, right: str) -> str:
        return self.operator(left, INVISIBLE_TIMES, right)

    def dotted(self, left: str, right: str) -> str:
        return self.operator(left, "·", right)

    def fraction(self, above: str, below: str) -> str:
        return f"<mfrac>{row(above)}{row(below)}</mfrac>"

    def power(self, base: str, exponent: str, entrywise: bool = False) -> str:
        return f"<msup>{row(base)}{row('<mo>∘</mo>' * entrywise + exponent)}</msup>"

    def index(self, base: str, places: str) -> str:
        return f"<msub>{row(base)}{row(places)}</msub>"

    def series(self, signs: tuple[str, str], below: str, above: str) -> str:
        sign = self.sign(signs[1])
        return (
            f"<munderover>{sign}{row(below)}{row(above)}</munderover>"
            if above
            else f"<munder>{sign}{row(below)}</munder>"
        )

    def joined(self, parts: Sequence[str], sign: str) -> str:
        return (INVISIBLE_TIMES if sign == " " else self.sign(sign)).join(parts)

    def root(self, text: str) -> str:
        return f"<msqrt>{text}</msqrt>"

    def fenced(self, kind: str, text: str) -> str:
        fence = self.sign("|" if kind == "abs" else "‖")
        return row(fence + text + fence)

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        lines = ["".join(f"<mtd>{cell}</mtd>" for cell in cells) for cells in rows]
        return self.bracketed(f"<mtable>{''.join(f'<mtr>{line}</mtr>' for line in lines)}</mtable>")

    def cases(self, condition: str, yes: str, no: str) -> str:
        lines = ((yes, condition), (no, "<mtext>else</mtext>"))
        cells = "".join(f"<mtr><mtd>{value}</mtd><mtd>{when}</mtd></mtr>" for value, when in lines)
        return row(f"<mo>{{</mo><mtable>{cells}</mtable>")

    def applied(self, name: str, arguments: str) -> str:
        return f"<mi>{escaped(name)}</mi><mo>{FUNCTION_APPLICATION}</mo>{arguments}"


def row(text: str) -> str:
    """Elements in one `mrow`."""
    return f"<mrow>{text}</mrow>" if text.count("<") > 2 else text


def escaped(text: str) -> str:
    """Text with the special characters of XML escaped."""
    return text.translate({38: "&amp;", 60: "&lt;", 62: "&gt;"})


def name_element(name: str) -> str:
    """A name: x1 as x with an index, Greek letters by name."""
    stem, index = stem_and_index(name)
    stem = LETTERS.get(spelled_greek(stem), stem)
    element = f"<mi>{escaped(stem)}</mi>"
    return f"<msub>{element}<mn>{index}</mn></msub>" if index else element
