"""Formulas go in, hand derivations with exactly one mistake come out, as text, with the place of the mistake.

A student of its own: it differentiates the syntax of a formula by the rules of a textbook, writes the result as text,
and makes one mistake at one place. It shares nothing with the engine or with the diagnosis that is to find the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradcli.language import parse
from gradcli.language import syntax as s

# the derivative of each function, written with u for its argument
TEXTBOOK = {
    "sin": "cos(u)",
    "cos": "-sin(u)",
    "tan": "1/cos(u)**2",
    "sinh": "cosh(u)",
    "cosh": "sinh(u)",
    "tanh": "1 - tanh(u)**2",
    "exp": "exp(u)",
    "log": "1/(u)",
    "sqrt": "1/(2*sqrt(u))",
    "asin": "1/sqrt(1 - (u)**2)",
    "atan": "1/(1 + (u)**2)",
    "sigmoid": "sigmoid(u)*(1 - sigmoid(u))",
    "erf": "2/sqrt(pi)*exp(-(u)**2)",
    "softplus": "sigmoid(u)",
}
MIXED_UP = {"sin": "cosh", "cos": "sin", "tan": "tanh", "sinh": "sin", "cosh": "sin", "tanh": "tan", "exp": "sinh",
            "log": "sqrt", "sqrt": "log", "asin": "atan", "atan": "asin", "sigmoid": "tanh", "erf": "tanh",
            "softplus": "exp"}  # fmt: skip

Place = tuple[str, int]  # the kind of a mistake and the number of the node at which it is made


class Planted(NamedTuple):
    """A wrong derivative: the kind of mistake, the formula, the leaf, the claim, and where the mistake was made."""

    kind: str
    formula: str
    leaf: str
    claim: str
    span: tuple[int, int]  # columns in the formula


class Student:
    """Differentiates one formula; at node `wrong` it makes the mistake `kind`. `places` collects where it could."""

    def __init__(self, leaf: str, kind: str = "", wrong: int = -1) -> None:
        self.leaf = leaf
        self.kind = kind
        self.wrong = wrong
        self.places: list[tuple[str, int, s.Expression]] = []
        self.count = 0

    def here(self, kind: str, number: int, node: s.Expression) -> bool:
        """Whether this is the mistake to make; and it is noted that it could be made here."""
        self.places.append((kind, number, node))
        return kind == self.kind and number == self.wrong

    def depends(self, node: s.Expression) -> bool:
        return any(isinstance(part, s.Name) and part.id == self.leaf for part in parts(node))

    def derive(self, node: s.Expression) -> str:
        """The derivative as text, "0" where there is none."""
        if isinstance(node, s.Name):
            return "1" if node.id == self.leaf else "0"
        if not self.depends(node):
            return "0"
        self.count += 1
        number = self.count
        if isinstance(node, s.Unary):
            inner = self.derive(node.operand)
            return f"({inner})" if self.here("wrong sign", number, node) else f"(-({inner}))"
        if isinstance(node, s.Call):
            return self.function(node, number)
        assert isinstance(node, s.Binary)
        if node.op in "+-":
            return self.sum(node, number)
        if node.op == "*":
            return self.product(node, number)
        if node.op == "/":
            return self.quotient(node, number)
        return self.power(node, number)

    def sum(self, node: s.Binary, number: int) -> str:
        one, other = self.derive(node.left), self.derive(node.right)
        op = node.op
        if "0" not in (one, other):
            if self.here("term dropped", number, node):
                return one
        if other != "0" and self.here("wrong sign", number, node):
            op = "-" if op == "+" else "+"
        return f"({one} {op} {other})"

    def product(self, node: s.Binary, number: int) -> str:
        left, right = text(node.left), text(node.right)
        one, other = self.derive(node.left), self.derive(node.right)
        if one == "0":
            return f"({left}*{other})" if not self.here("factor dropped", number, node) else other
        if other == "0":
            return f"({one}*{right})" if not self.here("factor dropped", number, node) else one
        if self.here("product term dropped", number, node):
            return f"({one}*{right})" if number % 2 else f"({left}*{other})"
        if self.here("product of derivatives", number, node):
            return f"({one}*{other})"
        if self.here("product sign", number, node):
            return f"({one}*{right} - {left}*{other})"
        return f"({one}*{right} + {left}*{other})"

    def quotient(self, node: s.Binary, number: int) -> str:
        top, bottom = text(node.left), text(node.right)
        one, other = self.derive(node.left), self.derive(node.right)
        if other == "0":
            return f"({one}/{bottom})"
        if self.here("quotient sign", number, node):
            return f"(({one}*{bottom} + {top}*{other})/{bottom}**2)"
        if self.here("denominator not squared", number, node):
            return f"(({one}*{bottom} - {top}*{other})/{bottom})"
        if one != "0" and self.here("quotient of derivatives", number, node):
            return f"({one}/({other}))"
        return f"(({one}*{bottom} - {top}*{other})/{bottom}**2)"

    def power(self, node: s.Binary, number: int) -> str:
        base, exponent = text(node.left), text(node.right)
        if self.depends(node.right):
            inner = self.derive(node.right)
            if not self.depends(node.left):
                if self.here("power rule on the exponent", number, node):
                    return f"({exponent}*{base}**({exponent} - 1)*{inner})"
                return f"({base}**{exponent}*log({base})*{inner})"
            return f"({base}**{exponent}*({inner}*log({base}) + {exponent}*{self.derive(node.left)}/{base}))"
        inner = self.derive(node.left)
        if inner != "1" and self.here("chain factor dropped", number, node):
            inner = "1"
        if self.here("exponent not lowered", number, node):
            return f"({exponent}*{base}**{exponent}*{inner})"
        if self.here("power factor forgotten", number, node):
            return f"({base}**({exponent} - 1)*{inner})"
        return f"({exponent}*{base}**({exponent} - 1)*{inner})"

    def function(self, node: s.Call, number: int) -> str:
        name, argument = node.function.id, node.args[0]
        u, inner = text(argument), self.derive(argument)
        outer = TEXTBOOK[name]
        if inner != "1" and self.here("chain factor dropped", number, node):
            inner = "1"
        if name == "cos" and self.here("sign of cos", number, node):
            outer = "sin(u)"
        if name == "sqrt" and self.here("half of sqrt", number, node):
            outer = "1/sqrt(u)"
        if self.here("another function", number, node):
            outer = TEXTBOOK[MIXED_UP[name]]
        if name != "exp" and self.here("not differentiated", number, node):
            outer = f"{name}(u)"
        return f"(({put(outer, u)})*{inner})"


def put(outer: str, u: str) -> str:
    """A textbook derivative at an argument."""
    return outer.replace("(u)", f"({u})")


def text(node: s.Expression) -> str:
    """A formula as text, in brackets."""
    return f"({s_text(node)})"


def s_text(node: s.Expression) -> str:
    from gradcli.language.unparse import unparse

    return unparse(node)


def parts(node: s.Expression) -> Iterator[s.Expression]:
    """A formula's nodes."""
    yield node
    if isinstance(node, s.Unary):
        yield from parts(node.operand)
    elif isinstance(node, s.Binary):
        yield from parts(node.left)
        yield from parts(node.right)
    elif isinstance(node, s.Call):
        for arg in node.args:
            yield from parts(arg)


def expression(formula: str) -> s.Expression:
    statement = parse(formula).statements[0]
    assert isinstance(statement, s.ExpressionStatement)
    return statement.value


def right(formula: str, leaf: str) -> str:
    """The derivative without a mistake."""
    return Student(leaf).derive(expression(formula))


def wrong(formula: str, leaf: str) -> Iterator[Planted]:
    """Every single mistake that the student could make in a formula."""
    tree = expression(formula)
    student = Student(leaf)
    good = student.derive(tree)
    for kind, number, node in student.places:
        claim = Student(leaf, kind, number).derive(tree)
        if claim != good:
            yield Planted(kind, formula, leaf, claim, (node.span.column, node.span.end_column))


def whole(formula: str, leaf: str) -> Iterator[Planted]:
    """Mistakes with the result as a whole."""
    good, span = right(formula, leaf), (1, len(formula) + 1)
    yield Planted("constant factor", formula, leaf, f"2*{good}", span)
    yield Planted("constant factor", formula, leaf, f"{good}/2", span)
    yield Planted("whole sign", formula, leaf, f"-{good}", span)
    other = "y" if leaf == "x" else "x"
    if Student(other).depends(expression(formula)):
        yield Planted("swapped leaves", formula, leaf, right(formula, other), span)


# --- formulas -------------------------------------------------------------------------------------------------

FORMULAS = """
x**2*sin(y) + y*x
exp(-x**2/2)*cos(3*x)
sqrt(x**2 + y**2)
log(1 + x**2*y)
x/(1 + x**2)
(x*y + x)**3
sin(x*y)/(x + y)
exp(x)*log(y + x)
tanh(2*x + y)*x**3
cos(x**2 + y)*y
sqrt(1 + exp(x))*y
(x**2 + 1)/(y**2 + x)
atan(x/y) + x**2
sigmoid(3*x - y)*x
x**3*exp(-2*x*y)
sqrt(x)*cos(y*x)
1/(x**2 + y**2)
log(sqrt(x + y) + 1)
sin(cos(x) + y)
cosh(x/2)*sinh(y*x)
x**4 - 3*x**2*y + y**3
(sin(x) + y)/(cos(x) + 3)
exp(sin(x*y))
sqrt(2*x + 3*y)/x
y*cos(x)**2 + x
x*log(x*y) - x
(1 + x*y)**5/y
exp(-y*x)/(1 + x)
sqrt(x**3 + cos(y*x) + 2)
cos(exp(x/3))*sqrt(y + x)
erf(x*y) + cos(2*x)
tan(x/3)*y + sqrt(x*y)
2**x*y + x**2
(x - y)**2/(x + y)
3**(x*y) - cos(x)/y
x*sqrt(1 - x*y/9)
asin(x/4)*cos(x + y)
softplus(x*y)*cos(3*x)
y*sqrt(4*x + 1) - cos(x - y)
(2 + cos(x*y))/(1 + sqrt(x))
1.5**x*sqrt(x + y)
exp(x)/(exp(x) + y)
x**2/(y + cos(x))
log(x)/(1 + x*y)
(x + y)/sqrt(x)
2**(x/y) + cos(x)*x
sin(x)**3/(2 + cos(x))
sqrt(cos(x/2) + 2)*y
exp(cos(x)*y)/x
tanh(sqrt(x*y))*2**x
y**x + sqrt(3*x)
y**(2*x)*cos(x)
5**x/(x + y)
(x*y)**2*2**(3*x)
cos(x)*y**(x/2) + x
1.2**(x*x)*y
x + 3**(2*x)/y
sin(x)*2**(x*y)
log(y**x + 1)*x
sqrt(y**x + x)
7**(x/5) - x*y
2.5**x*cos(x*y)
x*1.1**(y*x)
exp(y)*2**(x + y)
4**(x/3)*sin(x)
y**x/(1 + x)
sqrt(x)/(y + x**2)
(x**2 + y)/sqrt(x + 1)
sin(x)/(3*x + y) + x*y
cos(x*y)/(x**2 + 2)
exp(x)/(2 + sqrt(x)) - y
x*y**2 + tanh(x*y)
log(x + 2) - 1/(x + y)
""".strip().splitlines()
POINT = {"x": 0.8, "y": 1.3}
KINDS = (
    "chain factor dropped", "product term dropped", "exponent not lowered", "power factor forgotten", "quotient sign",
    "denominator not squared", "sign of cos", "half of sqrt", "term dropped", "another function", "wrong sign",
    "factor dropped", "product of derivatives", "product sign", "quotient of derivatives", "not differentiated",
    "power rule on the exponent", "constant factor", "whole sign", "swapped leaves",
)  # fmt: skip


def by_kind(leaf: str = "x") -> dict[str, list[Planted]]:
    """All mistakes in all formulas, by kind."""
    found: dict[str, list[Planted]] = {kind: [] for kind in KINDS}
    for formula in FORMULAS:
        makers: tuple[Callable[[str, str], Iterator[Planted]], ...] = (wrong, whole)
        for make in makers:
            for planted in make(formula, leaf):
                found[planted.kind].append(planted)
    return found
