"""What the parser reads: one row per construct, written as the normalised text and the classes of the tree."""

from __future__ import annotations

import ast
from fractions import Fraction
from itertools import product

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.language import parse, parse_expression, parse_limits, unparse
from gradcli.language import syntax as s
from tests.support.rows import all_rows


def grouped(node: s.Syntax) -> str:
    """An expression with every operation in brackets, so that a wrong precedence cannot hide."""
    if isinstance(node, s.Binary):
        return f"({grouped(node.left)} {node.op} {grouped(node.right)})"
    if isinstance(node, s.Unary):
        return f"({node.op} {grouped(node.operand)})"
    if isinstance(node, s.Compare):
        rest = "".join(f" {op} {grouped(operand)}" for op, operand in zip(node.ops, node.operands[1:], strict=True))
        return f"({grouped(node.operands[0])}{rest})"
    return unparse(node)


SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**"}
SIGNS |= {ast.Lt: "<", ast.Eq: "==", ast.And: "and", ast.Or: "or", ast.USub: "-", ast.UAdd: "+", ast.Not: "not"}


def grouped_by_python(node: ast.expr) -> str:
    """The same of a tree of Python's parser."""
    if isinstance(node, ast.BinOp):
        return f"({grouped_by_python(node.left)} {SIGNS[type(node.op)]} {grouped_by_python(node.right)})"
    if isinstance(node, ast.UnaryOp):
        return f"({SIGNS[type(node.op)]} {grouped_by_python(node.operand)})"
    if isinstance(node, ast.BoolOp):  # `a and b and c` is one node there
        text, *others = map(grouped_by_python, node.values)
        for other in others:
            text = f"({text} {SIGNS[type(node.op)]} {other})"
        return text
    if isinstance(node, ast.Compare):
        rest = "".join(
            f" {SIGNS[type(op)]} {grouped_by_python(operand)}"
            for op, operand in zip(node.ops, node.comparators, strict=True)
        )
        return f"({grouped_by_python(node.left)}{rest})"
    return ast.unparse(node)


def test_operators_bind_as_in_python() -> None:
    operators = ("+", "-", "*", "/", "@", "**", "<", "==", "and", "or")
    for first, second, sign in product(operators, operators, ("", "-", "+")):
        for text in (f"{sign}a {first} b {second} c", f"a {first} {sign}b {second} c", f"a {first} b {second} {sign}c"):
            assert grouped(parse_expression(text)) == grouped_by_python(ast.parse(text, mode="eval").body), text
    for first, second in product(operators[6:], repeat=2):
        text = f"not a {first} b {second} c"
        assert grouped(parse_expression(text)) == grouped_by_python(ast.parse(text, mode="eval").body), text


PRECEDENCE = {
    "a + b*c": "(a + (b * c))",
    "a - b - c": "((a - b) - c)",
    "a/b*c": "((a / b) * c)",
    "a @ b*c": "((a @ b) * c)",
    "-x**2": "(- (x ** 2))",
    "-x*y": "((- x) * y)",
    "--x": "(- (- x))",
    "+x": "(+ x)",
    "2**-x": "(2 ** (- x))",
    "2**-x**2": "(2 ** (- (x ** 2)))",
    "2**-x*3": "((2 ** (- x)) * 3)",
    "2**3**2": "(2 ** (3 ** 2))",
    "2^3^2": "(2 ** (3 ** 2))",
    "2^3**2": "(2 ** (3 ** 2))",
    "a*-b": "(a * (- b))",
    "1/2x": "((1 / 2) * x)",
    "2x^2": "(2 * (x ** 2))",
    "2^3x": "((2 ** 3) * x)",
    "-2x": "((- 2) * x)",
    "2x*y": "((2 * x) * y)",
    "3(x+1)": "(3 * (x + 1))",
    "(a)(b)": "(a * b)",
    "(a)b": "(a * b)",
    "(a) b": "(a * b)",
    "f(x)(y)": "(f(x) * y)",
    "sin(x)cos(x)": "(sin(x) * cos(x))",
    "2e3x": "(2e3 * x)",
    "2e": "(2 * e)",
    "2 (x)": "(2 * x)",
    "x**2(y)": "((x ** 2) * y)",
    "a or b and c": "(a or (b and c))",
    "not a and b": "((not a) and b)",
    "not a == b": "(not (a == b))",
    "not not a": "(not (not a))",
    "a < b + 1": "(a < (b + 1))",
    "a < b <= c != d": "(a < b <= c != d)",
    "(a < b) < c": "((a < b) < c)",
    "a == b and c == d": "((a == b) and (c == d))",
    "x*(x > 0)": "(x * (x > 0))",
    "a == -b": "(a == (- b))",
}


@all_rows("text", PRECEDENCE)
def test_precedence(text: str) -> None:
    assert grouped(parse_expression(text)) == PRECEDENCE[text]


NORMAL = {
    "(x*y+x)**2": "(x*y + x)**2",
    "2x^2 + np.sin(x).sum(axis=0)": "2*x**2 + sum(sin(x), axis=0)",
    "np.linalg.norm(x, ord='fro')": 'norm(x, ord="fro")',
    "np.linalg.norm(x, 'fro')": 'norm(x, "fro")',
    "torch.nn.functional.gelu(x, approximate='tanh')": 'gelu(x, approximate="tanh")',
    "math.pi*numpy.e": "pi*e",
    "A.T.T @ x.T": "A.T.T @ x.T",
    "x.sum().mean(axis=0, keepdims=True)": "mean(sum(x), axis=0, keepdims=True)",
    "(a + b).sum()": "sum(a + b)",
    "x[i, 1:3, 0::2, ::-1, :, -1, None]": "x[i, 1:3, 0::2, ::-1, :, -1, None]",
    "x[np.newaxis, [0, 2]]": "x[None, [0, 2]]",
    "x[:, None][0]": "x[:, None][0]",
    "x[1:]": "x[1:]",
    "x[::]": "x[:]",
    "x[0,]": "x[0]",
    "[[1, 2], [x, -y],]": "[[1, 2], [x, -y]]",
    "[]": "[]",
    "()": "()",
    "(1,)": "1,",
    "sum(x, axis=(0,))": "sum(x, axis=(0,))",
    "sum(x, axis=None)": "sum(x, axis=None)",
    "f(x,)": "f(x)",
    "f(a, k=b,)": "f(a, k=b)",
    "load('p.csv', columns=0:2)": 'load("p.csv", columns=0:2)',
    "load('p.csv', columns=:2)": 'load("p.csv", columns=:2)',
    "load('p.csv', columns=0::2)": 'load("p.csv", columns=0::2)',
    'einsum("ij,jk->ik", A, B)': 'einsum("ij,jk->ik", A, B)',
    'load("it\'s.csv")': 'load("it\'s.csv")',
    "load('a\"b.csv')": "load('a\"b.csv')",
    "X.T @ (p - y) / len(y)": "X.T @ (p - y) / len(y)",
    "2*A @ x*3": "2*A @ x * 3",
    "((x))": "x",
    "(a + (b + c))": "a + (b + c)",
    "a - (b - c)": "a - (b - c)",
    "(a*b)*c": "a*b*c",
    "a*(b*c)": "a*(b*c)",
    "(a**b)**c": "(a**b)**c",
    "a**(b**c)": "a**b**c",
    "(-x)**2": "(-x)**2",
    "-(x**2)": "-x**2",
    "-(x*y)": "-(x*y)",
    "(2).T": "(2).T",
    "2.5.T": "(2.5).T",
    "(a, b)[0]": "(a, b)[0]",
    "α*β + Σ_1": "α*β + Σ_1",
    "1_000 + 1.5e-3 + .5 + 3.": "1_000 + 1.5e-3 + .5 + 3.",
    "True*x": "True*x",
    "(\n  a\n  + b  # note\n)": "a + b",
}


@all_rows("text", NORMAL)
def test_normal_form(text: str) -> None:
    tree = parse_expression(text)
    assert unparse(tree) == NORMAL[text]
    again = parse(unparse(tree)).statements[0]
    assert isinstance(again, s.ExpressionStatement)
    assert s.same(again.value, tree)


VALUES = {
    "0.1": Fraction(1, 10),
    "0.10": Fraction(1, 10),
    "1e3": Fraction(1000),
    "1.5E+2": Fraction(150),
    "25e-4": Fraction(1, 400),
    ".5": Fraction(1, 2),
    "3.": Fraction(3),
    "007": Fraction(7),
    "1_000.000_1": Fraction(10000001, 10000),
    "123456789012345678901234567890": Fraction(123456789012345678901234567890),
    "0e400": Fraction(0),
    "4.9e-324": Fraction(49, 10**325),
    "1.7976931348623157e308": Fraction(17976931348623157 * 10**292),
    "True": Fraction(1),
    "False": Fraction(0),
}


@pytest.mark.parametrize("text", VALUES)
def test_literals_are_exact(text: str) -> None:
    number = parse_expression(text)
    assert isinstance(number, s.Number)
    assert number.value == VALUES[text]
    assert Fraction(*number.ratio) == VALUES[text]
    assert number.text == text


def test_an_underflow_is_a_note() -> None:
    script = parse("x*1e-400")
    assert [note.code for note in script.diagnostics] == ["GC108"]
    assert script.diagnostics[0].severity == "note"
    assert script.diagnostics[0].span == (1, 3, 1, 9)


def test_long_literals_need_a_limit() -> None:
    with pytest.raises(GradcliError, match="GC503"):
        parse("0." + "3" * 5000)
    number = parse_expression("0." + "3" * 5000, parse_limits("digits=10000"))
    assert isinstance(number, s.Number)
    assert number.value == Fraction(int("3" * 4000) * 10**1000 + int("3" * 1000), 10**5000)


def test_flags_of_spelling() -> None:
    product = parse_expression("2x")
    assert isinstance(product, s.Binary)
    assert product.implicit
    assert s.same(product, parse_expression("2*x"))
    method = parse_expression("x.sum()")
    assert isinstance(method, s.Call)
    assert method.method
    assert method.prefix is None
    prefixed = parse_expression("np.linalg.det(x)")
    assert isinstance(prefixed, s.Call)
    assert prefixed.prefix == "np.linalg"
    assert not prefixed.method


SPANS = {  # the part of the text that the tree at the path covers
    ("(x*y + x)**2", ()): "(x*y + x)**2",
    ("(x*y + x)**2", ("left",)): "x*y + x",
    ("(x*y + x)**2", ("left", "left")): "x*y",
    ("a + (b*c)", ()): "a + (b*c)",
    ("-(a)", ()): "-(a)",
    ("(a < b) < (c)", ()): "(a < b) < (c)",
    ("x.sum(axis=0).T", ()): "x.sum(axis=0).T",
    ("x.sum(axis=0).T", ("value",)): "x.sum(axis=0)",
    ("np.sin(x)*2", ("left",)): "np.sin(x)",
    ("np.sin(x)*2", ("left", "function")): "sin",
    ("2(x)", ()): "2(x)",
    ("f(x)[1:2]", ("items", 0)): "1:2",
}


@pytest.mark.parametrize(("text", "path"), SPANS)
def test_spans(text: str, path: tuple[str | int, ...]) -> None:
    node: object = parse_expression(text)
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)  # type: ignore[index]
    assert isinstance(node, s.Syntax)
    assert text[node.span.column - 1 : node.span.end_column - 1] == SPANS[text, path]


def test_spans_over_lines_count_code_points() -> None:
    script = parse("α = 2\ny = sin(\n  α\n) + 1\ny")
    assign = script.statements[1]
    assert assign.span == (2, 1, 4, 6)
    assert isinstance(assign, s.Assign)
    assert isinstance(assign.value, s.Binary)
    assert assign.value.left.span == (2, 5, 4, 2)


STATEMENTS = {
    "x = 2": "Assign",
    "x = 1, 2": "Assign",
    "a, b = qr(A)": "Assign",
    "(a, b) = qr(A)": "Assign",
    "[a, b] = qr(A)": "Assign",
    "w[2] = [0.5, -1.0]": "Assign",
    "W[3, 4] = 0": "Assign",
    'const X = load("points.csv", columns=0:2)': "Assign",
    "const w[2] = [1, 2]": "Assign",
    "s += 1": "Assign",
    "s **= 2": "Assign",
    "A @= B": "Assign",
    "x in (0, 1)": "Declare",
    "x in (0, 1]": "Declare",
    "x in [-inf, 2*pi)": "Declare",
    "x in [0, inf) = 2": "Declare",
    "W[3, 4] in real": "Declare",
    "n in positive": "Declare",
    "u[k] in unit = 0.5": "Declare",
    "assert grad(loss, b) == mean(p - y)": "Assert",
    "a, b": "ExpressionStatement",
    "x": "ExpressionStatement",
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text: str) -> None:
    (statement,) = parse(text).statements
    assert type(statement).__name__ == STATEMENTS[text]
    assert s.same(parse(unparse(statement)).statements[0], statement)


def test_augmented_power_in_both_spellings() -> None:
    for text in ("s **= 2", "s ^= 2"):
        (statement,) = parse(text).statements
        assert isinstance(statement, s.Assign)
        assert statement.operator == "**"


def test_declaration_fields() -> None:
    (declare,) = parse("w[2, n] in (0, 1] = 0.5").statements
    assert isinstance(declare, s.Declare)
    assert declare.name.id == "w"
    assert declare.shape is not None
    assert [unparse(size) for size in declare.shape] == ["2", "n"]
    domain = declare.domain
    assert (domain.kind, domain.low_open, domain.high_open) == ("interval", True, False)
    assert declare.default is not None


SCRIPTS = {
    "def on one line": ("def f(a, b): return a*b\nf(x, y)", "def f(a, b):\n    return a*b\nf(x, y)"),
    "return ends a one-line def": ("def f(a): return a; f(x)", "def f(a):\n    return a\nf(x)"),
    "vjp": (
        "def f.vjp(a, b, ct): return (ct*b, ct*a)\nx",
        "def f.vjp(a, b, ct):\n    return ct*b, ct*a\nx",
    ),
    "for on one line": (
        "for i in range(3): s = s + i; t = s\ns",
        "for i in range(3):\n    s = s + i\n    t = s\ns",
    ),
    "for after ;": ("s = 0; for i in range(3): s += i\ns", "s = 0\nfor i in range(3):\n    s += i\ns"),
    "nested blocks": (
        "for i in range(2):\n  for j in range(1, 9, 2):\n    s = s + A[i,\n  j]\n  t = s\nt;",
        "for i in range(2):\n    for j in range(1, 9, 2):\n        s = s + A[i, j]\n    t = s\nt",
    ),
    "if chain": (
        "if n > 2:\n  y = 1\nelif n > 1: y = 2\nelif n > 0: y = 3\nelse:\n  y = 4\ny",
        "if n > 2:\n    y = 1\nelif n > 1:\n    y = 2\nelif n > 0:\n    y = 3\nelse:\n    y = 4\ny",
    ),
    "if in def": (
        "def f(a, n):\n\tif n > 2:\n\t\treturn a\n\telse: return -a\nf(x, 3)",
        "def f(a, n):\n    if n > 2:\n        return a\n    else:\n        return -a\nf(x, 3)",
    ),
    "indented whole": ("\n    x = 2\n    x**2\n", "x = 2\nx**2"),
    "comments and blank lines": ("# c\n\nx = 2  # two\n\n   # deeper\nx\n", "x = 2\nx"),
    "comment inside a block": (
        "for i in range(2):\n# c\n    s = i\n  # c\ns",
        "for i in range(2):\n    s = i\ns",
    ),
    "crlf": ("x = 2\r\nx**2\r\n", "x = 2\nx**2"),
    "cr": ("x = 2\rx**2", "x = 2\nx**2"),
    "byte order mark": ("\ufeffx = 2\nx", "x = 2\nx"),
    "names like functions": ("gamma = 2\ninner = gamma**2\ninner", "gamma = 2\ninner = gamma**2\ninner"),
    "keyword arguments over lines": ("f(a,\nb = 2,\nc = 3)", "f(a, b=2, c=3)"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name: str) -> None:
    text, normal = SCRIPTS[name]
    script = parse(text)
    assert unparse(script) == normal
    assert s.same(parse(normal), script)


def test_remarks() -> None:
    script = parse(
        "# expect: fail\n"
        "assert x == x  # rtol=1e-8\n"
        "assert x == x  # rtol=1e-8 # expect: kink\n"
        "assert (x ==  # expect: undefined\n"
        "  x)  # rtol=0.5\n"
        "y = x; assert y == x  # a remark # expect: inconclusive, for now\n"
        "abs(x)  # expect: kink\n"
        "# expected: nothing to see here; rtol is fine\n"
    )
    asserts = [statement for statement in script.statements if isinstance(statement, s.Assert)]
    assert [(claim.rtol, claim.expect) for claim in asserts] == [
        (1e-8, None),
        (1e-8, "kink"),
        (0.5, "undefined"),
        (None, "inconclusive"),
    ]
    assert script.expect == "fail"
    output = script.statements[-1]
    assert isinstance(output, s.ExpressionStatement)
    assert output.expect == "kink"
    assert s.same(parse(unparse(script)), script)


def test_expectation_of_the_file() -> None:
    assert parse("# expect: error GC301\na + b").expect == "error GC301"
    assert parse("a + b  # expect: error GC301").expect == "error GC301"
    script = parse("y = abs(x)  # expect: kink")
    assert script.expect is None
    assert isinstance(script.statements[0], s.Assign)
    assert script.statements[0].expect == "kink"


def test_identity_and_structure() -> None:
    first, second = parse_expression("x + 1"), parse_expression("x + 1")
    assert first != second
    assert s.same(first, second)
    assert not s.same(first, parse_expression("x + 1.0"))
    assert not s.same(first, parse_expression("1 + x"))
    assert not s.same(parse_expression("[1, 2]"), parse_expression("[1]"))
    assert repr(first) == "Binary(op='+', left=<Name>, right=<Number>)"
