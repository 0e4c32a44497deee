"""What the parser refuses: one row per slip, with the codes and places it must report, all of them and no more."""

from __future__ import annotations

import pytest

from gradcli.diagnostics import GradcliError
from gradcli.language import parse, parse_limits


def errors(text: str) -> list[tuple[str, int, int]]:
    """Code, line and column of every error of a script."""
    with pytest.raises(GradcliError) as caught:
        parse(text)
    found = []
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.span is not None
        assert diagnostic.source is not None
        found.append((diagnostic.code, diagnostic.span.line, diagnostic.span.column))
    return found


# text: code and place of the only error
ONE = {
    # text
    "": ("GC101", 1, 1),
    " \n\t\n": ("GC101", 1, 1),
    "# only a comment": ("GC101", 1, 1),
    "x + \udc80": ("GC102", 1, 5),
    "x\x00": ("GC103", 1, 2),
    "x\x1b[31m": ("GC103", 1, 2),
    "x\u202e + y": ("GC103", 1, 2),
    "x + 1  # \u202e hidden": ("GC103", 1, 10),
    "x\u200b + 1": ("GC103", 1, 2),
    "\u200b\u200b\u200bx": ("GC103", 1, 1),
    "x\ufeff": ("GC103", 1, 2),
    "x +\x0c 1": ("GC103", 1, 4),
    "\u0445 + 1": ("GC104", 1, 1),
    "s\u0456n(x)": ("GC104", 1, 2),
    "ｘ + 1": ("GC104", 1, 1),
    "x – 1": ("GC104", 1, 3),
    "x ∗ y": ("GC104", 1, 3),
    "√x": ("GC104", 1, 1),
    "x⁻¹": ("GC105", 1, 2),
    "Α + 1": ("GC104", 1, 1),
    "ο + 1": ("GC104", 1, 1),
    "µ + 1": ("GC104", 1, 1),
    "x +\u00a01": ("GC104", 1, 4),
    "x(“a)": ("GC104", 1, 3),
    "٣ + x": ("GC104", 1, 1),
    "x + $y": ("GC105", 1, 5),
    "naïve": ("GC105", 1, 3),
    "x + 😀": ("GC105", 1, 5),
    "x + x\u0301": ("GC105", 1, 6),
    "x \\\n+ 1": ("GC105", 1, 3),
    "a ? b : c": ("GC105", 1, 3),
    # mathematics
    "|x": ("GC113", 1, 1),
    "|x, y|": ("GC112", 1, 1),
    "|x|y|": ("GC114", 1, 4),
    "f(2) = 3": ("GC122", 1, 1),
    "f(x, x) = x": ("GC122", 1, 1),
    r"\foo x": ("GC138", 1, 1),
    "y = 1\n" + r"x + \int x": ("GC138", 2, 5),
    r"\frac{x}{2": ("GC138", 1, 9),
    r"\frac{x}": ("GC138", 1, 9),
    r"\frac{\partial^2 f}{\partial x \partial y}": ("GC138", 1, 20),
    r"\sum_i x": ("GC138", 1, 1),
    r"x = y = \pi": ("GC138", 1, 7),
    r"2 + x = \pi": ("GC138", 1, 1),
    r"x^{2} + ": ("GC138", 1, 8),
    r"\sin x y": ("GC139", 1, 1),
    r"\sin^{-1} x": ("GC139", 1, 1),
    r"\sigma(x)": ("GC139", 1, 1),
    "x'*A*x'": ("GC139", 1, 2),
    "1 + f'(x)": ("GC139", 1, 6),
    "(x.T@A)'": ("GC139", 1, 8),
    "f'a'": ("GC110", 1, 2),
    r"a/b c + \pi": ("GC139", 1, 1),
    r"x^23 + \pi": ("GC139", 1, 3),
    r"b a^\top": ("GC139", 1, 1),
    r"x^\top A^2 x": ("GC139", 1, 9),
    "$" + "(" * 50 + "x" + ")" * 50 + "^2$": ("GC502", 1, 42),
    # numbers
    "0x10": ("GC106", 1, 1),
    "0b101 + x": ("GC106", 1, 1),
    "0o17": ("GC106", 1, 1),
    "1j": ("GC106", 1, 1),
    "x + 2.5J": ("GC106", 1, 5),
    "1.2.3": ("GC106", 1, 4),
    "1_": ("GC106", 1, 1),
    "1__0": ("GC106", 1, 1),
    "1e400": ("GC107", 1, 1),
    "1.8e308*x": ("GC107", 1, 1),
    "9" * 400: ("GC107", 1, 1),
    # strings
    "x = 'abc": ("GC109", 1, 5),
    'load("a\\\\b.csv")': ("GC109", 1, 6),
    '"""doc\nmore"""\nx': ("GC109", 1, 1),
    '"abc"': ("GC110", 1, 1),
    'x + "y"': ("GC110", 1, 5),
    'print("hello")': ("GC110", 1, 7),
    'f"{x}"': ("GC110", 1, 2),
    'load(X, "a")': ("GC110", 1, 9),
    'load("a" + "b")': ("GC110", 1, 6),
    'load(path="a")': ("GC110", 1, 11),
    'norm(x, "fro")': ("GC110", 1, 9),
    'norm(x, ord=-"fro")': ("GC110", 1, 14),
    'mode="full"': ("GC110", 1, 6),
    # indentation
    "for i in range(3):\ns = i": ("GC111", 1, 1),
    "x = 1\n  y = 2": ("GC111", 2, 1),
    "for i in range(2):\n    s = i\n  t = i": ("GC111", 3, 1),
    "for i in range(2):\n\ts = i\n        t = i": ("GC111", 3, 1),
    "for i in range(2): for j in range(2): s = 1": ("GC111", 1, 20),
    # operands
    "x +": ("GC112", 1, 4),
    "x + * y": ("GC112", 1, 5),
    "* x": ("GC112", 1, 1),
    "f(, x)": ("GC112", 1, 3),
    "f(x,, y)": ("GC112", 1, 5),
    "(,)": ("GC112", 1, 2),
    "f(axis=)": ("GC112", 1, 8),
    "x = ": ("GC112", 1, 5),
    "1 + not x": ("GC112", 1, 5),
    "x; ; y": ("GC112", 1, 4),
    "x++": ("GC112", 1, 4),
    # brackets
    "sin(x + 1": ("GC113", 1, 4),
    "sin(x\nz = 3": ("GC113", 1, 4),
    "y = [1, 2\nz = 3\nw = 4": ("GC113", 1, 5),
    "y = (1 +\nz = 3": ("GC112", 1, 9),
    "(1, 2]": ("GC113", 1, 6),
    "x)": ("GC113", 1, 2),
    ")": ("GC113", 1, 1),
    "(x; y": ("GC113", 1, 1),
    "((x)": ("GC113", 1, 1),
    "x in (0, 1": ("GC113", 1, 6),
    "def f(a: return a": ("GC124", 1, 8),
    "def f(a": ("GC113", 1, 1),
    # operators
    "x y": ("GC114", 1, 3),
    "2 3": ("GC114", 1, 3),
    "x 2": ("GC114", 1, 3),
    "x[0](y)": ("GC114", 1, 5),
    "assert x = 1": ("GC115", 1, 10),
    "f(x + y = 2)": ("GC115", 1, 9),
    "f(x[0] = 2)": ("GC115", 1, 8),
    "a = b = 2": ("GC115", 1, 7),
    "x = = 2": ("GC115", 1, 5),
    "f(x += 1)": ("GC115", 1, 5),
    "x // 2": ("GC116", 1, 3),
    "x % 2": ("GC116", 1, 3),
    "x && y": ("GC116", 1, 3),
    "x || y": ("GC116", 1, 3),
    "!x": ("GC116", 1, 1),
    "n!": ("GC116", 1, 2),
    "~x": ("GC116", 1, 1),
    "x <> y": ("GC116", 1, 3),
    "x => y": ("GC116", 1, 3),
    "x === y": ("GC116", 1, 3),
    "(x := 2)": ("GC116", 1, 4),
    "x := 2": ("GC116", 1, 3),
    "x is y": ("GC116", 1, 3),
    "x not in y": ("GC116", 1, 3),
    "if x in y: z = 1": ("GC116", 1, 6),
    "x //= 2": ("GC116", 1, 3),
    # Python
    "x.shape": ("GC117", 1, 2),
    "x.grad": ("GC117", 1, 2),
    "x.__class__": ("GC117", 1, 3),
    "().__class__.__bases__": ("GC117", 1, 4),
    "__import__('os').system('ls')": ("GC117", 1, 1),
    "x.__class__()": ("GC117", 1, 3),
    "x.T()": ("GC117", 1, 3),
    "x.2": ("GC114", 1, 2),
    "x.(y)": ("GC117", 1, 2),
    "np.float64": ("GC117", 1, 4),
    "np.linalg": ("GC117", 1, 4),
    "import numpy as np": ("GC118", 1, 1),
    "from os import path": ("GC118", 1, 1),
    "while x > 0:\n    x = x - 1": ("GC118", 1, 1),
    "class A:\n    def f(self): return self.x\n    y = 2 2": ("GC118", 1, 1),
    "f = lambda x: x": ("GC118", 1, 5),
    "with x as y:\n    z = 1": ("GC118", 1, 1),
    "@jit\ndef f(a): return a": ("GC118", 1, 1),
    "del x": ("GC118", 1, 1),
    "yield x": ("GC118", 1, 1),
    "x = [1, 2]\nx[0] = 5": ("GC119", 2, 1),
    "x[0] = 5": ("GC119", 1, 1),
    "x[-1] = 5": ("GC119", 1, 1),
    "x[:2] = 5": ("GC119", 1, 1),
    "x[1] += 5": ("GC119", 1, 1),
    "x[[0, 1]] = 5": ("GC119", 1, 1),
    "A[0][1] = 5": ("GC119", 1, 1),
    "for i in range(3): x[i] = 5": ("GC119", 1, 20),
    "i for i in range(3)": ("GC120", 1, 3),
    "(i for i in range(3))": ("GC120", 1, 4),
    "x[i for i in range(3)]": ("GC120", 1, 5),
    "sum(x[i] for i in range(3), axis=0)": ("GC120", 1, 27),
    "sum(2, i for i in range(3))": ("GC120", 1, 10),
    "x.sum(i for i in range(3))": ("GC120", 1, 9),
    "f(k=i for i in range(3))": ("GC120", 1, 7),
    "[i, 2 for i in range(3)]": ("GC120", 1, 7),
    "[i for i in range(3), 2]": ("GC120", 1, 21),
    "[a*b for a, b in x]": ("GC120", 1, 10),
    "[2 for 3 in x]": ("GC120", 1, 4),
    "[2 for for in x]": ("GC120", 1, 4),
    "[2 for i range(3)]": ("GC120", 1, 4),
    "[2 for i in range()]": ("GC120", 1, 13),
    "[2 for i in range(1, 2, 3, 4)]": ("GC120", 1, 13),
    "[2 for i in range(n=3)]": ("GC120", 1, 13),
    "[for i in range(3)]": ("GC120", 1, 2),
    "[2 for i in ]": ("GC112", 1, 13),
    "[2 for i in x if ]": ("GC112", 1, 18),
    "[2 for i in x": ("GC113", 1, 1),
    "[2 for i in x)": ("GC113", 1, 14),
    "[x if x > 0 else 0 for x in y]": ("GC121", 1, 4),
    "[x for x in y if x > 0 else 0]": ("GC121", 1, 24),
    "[x async for x in y]": ("GC118", 1, 4),
    "{i: x for i in y}": ("GC105", 1, 1),
    "path.append()": ("GC137", 1, 1),
    "path.append(1, 2)": ("GC137", 1, 1),
    "path.append(value=1)": ("GC137", 1, 1),
    "path[0].append(1)": ("GC137", 1, 1),
    "[1].append(2)": ("GC137", 1, 1),
    "path.append = 2": ("GC117", 1, 5),
    "path.append(1) = 2": ("GC122", 1, 1),
    "async for x in y: 2": ("GC118", 1, 1),
    "for i in range(3): break": ("GC118", 1, 20),
    "x if y else z": ("GC121", 1, 3),
    "(x if y else z)": ("GC121", 1, 4),
    # assignment
    "x + 1 = 2": ("GC122", 1, 1),
    "2 = x": ("GC122", 1, 1),
    "a, a = qr(A)": ("GC122", 1, 1),
    "a, 2 = qr(A)": ("GC122", 1, 1),
    "a, = qr(A)": ("GC122", 1, 1),
    "a, b += 1": ("GC122", 1, 1),
    "np.pi = 3": ("GC122", 1, 1),
    "a == b = 2": ("GC122", 1, 1),
    # declarations
    "x in (0, 1, 2)": ("GC123", 1, 6),
    "x in (0)": ("GC123", 1, 6),
    "x in ()": ("GC123", 1, 6),
    "x in reals": ("GC123", 1, 6),
    "x in 3": ("GC123", 1, 6),
    "x in ]0, 1[": ("GC123", 1, 6),
    "x, y in real": ("GC123", 1, 1),
    "x + 1 in real": ("GC123", 1, 1),
    "i in range(3)": ("GC123", 1, 6),
    "const x": ("GC123", 1, 1),
    "const": ("GC123", 1, 1),
    "const x += 1": ("GC123", 1, 1),
    "const x in real": ("GC123", 1, 1),
    "for i in range(2): const x = 1": ("GC123", 1, 20),
    "for i in range(2): x in real": ("GC123", 1, 20),
    # functions
    "def f(a=1): return a": ("GC124", 1, 8),
    "def f(*a): return a": ("GC124", 1, 7),
    "def f(a, a): return a": ("GC124", 1, 10),
    "def f(a) -> b: return a": ("GC124", 1, 10),
    "def f.jvp(a, t): return t": ("GC124", 1, 6),
    "def f: return 1": ("GC124", 1, 1),
    "def 2(a): return a": ("GC124", 1, 5),
    "def f(a): b = a": ("GC124", 1, 5),
    "def f(a) return a": ("GC124", 1, 1),
    "def f(t): retrn exp(t)": ("GC114", 1, 17),
    "def f(a):\n    def g(b): return b\n    return a": ("GC124", 2, 5),
    "return 2": ("GC125", 1, 1),
    "def f(a): return": ("GC125", 1, 11),
    # loops and branches
    "for v in x: s = v": ("GC126", 1, 10),
    "for i, j in range(3): s = 1": ("GC126", 1, 1),
    "for i in range(): s = 1": ("GC126", 1, 10),
    "for i in range(1, 2, 3, 4): s = 1": ("GC126", 1, 10),
    "for i in range(n=3): s = 1": ("GC126", 1, 10),
    "for i = 1: s = 1": ("GC126", 1, 1),
    "for i in range(3) s = i": ("GC126", 1, 10),
    "for i in range(3)": ("GC126", 1, 1),
    "for 1 in range(3): s = 1": ("GC126", 1, 1),
    "else: y = 3": ("GC127", 1, 1),
    "elif n: y = 3": ("GC127", 1, 1),
    "if: y = 3": ("GC127", 1, 1),
    "if n > 2\n    y = 3": ("GC127", 1, 1),
    "if n > 2: y = 3\nelse if n > 1: y = 2": ("GC127", 2, 1),
    "if n > 2: y = 3\nelse: y = 2\nelse: y = 1": ("GC127", 3, 1),
    "if n = 2: y = 3": ("GC115", 1, 6),
    "for i in range(3): y = i\nelse: y = 2": ("GC127", 2, 1),
    # remarks
    "assert x == x  # rtol=small": ("GC128", 1, 16),
    "assert x == x  # rtol=-1": ("GC128", 1, 16),
    "assert x == x  # rtol=": ("GC128", 1, 16),
    "assert x == x  # expect: kinky": ("GC128", 1, 16),
    "assert x == x  # expect:": ("GC128", 1, 16),
    "assert x == x  # expect: kink GC301": ("GC128", 1, 16),
    "x  # expect: error": ("GC128", 1, 4),
    "x\ny + x  # expect: error GC301": ("GC128", 2, 8),
    "x  # rtol=1e-8": ("GC128", 1, 4),
    "for i in range(2):  # expect: kink\n    s = i": ("GC128", 1, 21),
    "x = 2\n# expect: kink\nx": ("GC128", 2, 1),
    "y = x  # expect: kink\ny": ("GC128", 1, 1),
    # subscripts and calls
    "x[]": ("GC129", 1, 3),
    "x[...]": ("GC129", 1, 3),
    "x[1:2:3:4]": ("GC129", 1, 8),
    "[1:2]": ("GC129", 1, 3),
    "x[(1:2)]": ("GC129", 1, 5),
    "2[0]": ("GC129", 1, 2),
    "f(x, columns=0:2)": ("GC130", 1, 15),
    "f(0:2)": ("GC130", 1, 4),
    "sum(axis=0, x)": ("GC130", 1, 13),
    "sum(x, axis=0, axis=1)": ("GC130", 1, 16),
    "f(*x)": ("GC130", 1, 3),
    "f(x, **y)": ("GC130", 1, 6),
    # rest
    "x = 2 : 3": ("GC131", 1, 7),
    "x: float = 2": ("GC131", 1, 2),
    "assert x == 2, 'no'": ("GC131", 1, 14),
    "for = 2": ("GC132", 1, 1),
    "lambda = 2": ("GC132", 1, 1),
    "True = 1": ("GC132", 1, 1),
    "y = None": ("GC132", 1, 5),
    "x[None + 1]": ("GC132", 1, 3),
    "y = return": ("GC132", 1, 5),
    "1e4000*x": ("GC504", 1, 1),
    "1e-4000000": ("GC504", 1, 1),
    "1e" + "9" * 1000: ("GC504", 1, 1),
    "0." + "1" * 5000: ("GC503", 1, 1),
    "9" * 5000: ("GC503", 1, 1),
}


@pytest.mark.parametrize("text", ONE, ids=lambda text: ascii(text)[:60])
def test_one_error(text: str) -> None:
    assert errors(text) == [ONE[text]]


# several errors in one text, in the order of their places
SEVERAL = {
    "x +\ny = 2 3\nz = (1\nw = 2\nv = x.shape": ["GC112", "GC114", "GC113", "GC117"],
    "x y; y = 2; z 3": ["GC114", "GC114"],
    "for i in foo:\n    s = 2 3\n    t = i +\ns": ["GC126", "GC114", "GC112"],
    "if x = 2:\n    y = 1 1\nelif z:\n    y = 2\nelse:\n    y = 3 3\ny": ["GC115", "GC114", "GC114"],
    "if x = 2: y = 1\nelse: y = 2\ny 1": ["GC115", "GC114"],
    "def f(a=1):\n    b = a a\n    return b\nf(x) 2 3": ["GC124", "GC114", "GC114"],
    "def f(a): b c; return b d\nx": ["GC114", "GC114"],
    "while x:\n    y = 2 2\n    if z:\n        w = 3 3\nv = 4 4": ["GC118", "GC114"],
    "import a\nimport b\nfrom c import d": ["GC118"] * 3,
    "try:\n    x = 1\nexcept E:\n    x = 2\nx": ["GC118", "GC118"],
    "x = 1 $ 2\ny = 3 3\nx = \u0445": ["GC105", "GC114", "GC104"],
    "{1: 2}": ["GC105"],
    "{1: {2: 3}}}": ["GC105", "GC105"],
    "2}": ["GC105"],
    "  x = 1\ny = 2": ["GC111"],
    "1e4000 + 1\n2 2": ["GC504", "GC114"],
    "x[0] = 1\nx.T.shape\n__builtins__(x)": ["GC119", "GC117", "GC117"],
}


@pytest.mark.parametrize("text", SEVERAL, ids=lambda text: ascii(text)[:60])
def test_every_error_is_reported(text: str) -> None:
    found = errors(text)
    assert [code for code, _, _ in found] == SEVERAL[text]
    assert [(line, column) for _, line, column in found] == sorted((line, column) for _, line, column in found)


HELP = {  # part of the help line
    "assert x = 1": "==",
    "x // 2": "floor",
    "x % 2": "mod(a, b)",
    "x && y": "`and`",
    "x.shape": "shape(x)",
    "x.grad": "grad(y, x)",
    "import numpy": "np.",
    "while x: y = 1": "for i in range",
    "x if y else z": "where(condition, a, b)",
    "(i for i in range(3))": "[x**2 for x in xs]",
    "[i for i, j in x]": "row[0]",
    "sum(x for x in xs, axis=0)": "brackets",
    "path.append(1, 2)": "path.append([a, b])",
    "f(x).append(1)": "path = []",
    "for i in range(3): x[i] = 5": "path.append(new)",
    "x[0] = 5": "where(mask, new, x) or concatenate",
    "for v in xs: s = v": "range(len(xs))",
    "f(2) = x": "def f(a): return",
    "x in postive": "`positive`",
    "x y": "x*y",
    "x 2": "x**2",
    "x++": "x += 1",
    "x--": "x -= 1",
    "x – 1": "`-`",
    "\u0445 + 1": "type `x`",
    "√x": "sqrt(...)",
    r"\sin x y": r"\sin(x y)",
    r"\sinn x": r"\sin?",
    "if n > 1: y = 1\nelse if n > 2: y = 3": "elif",
    "1j": "1*j",
    "assert x == x  # expect: knik": "`kink`",
    "lambda = 2": "another name",
    "f = lambda x: x": "def f(x)",
}


@pytest.mark.parametrize("text", HELP, ids=ascii)
def test_help(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help is not None
    assert HELP[text] in diagnostic.help


def test_messages_name_characters() -> None:
    for text, name in {
        "\u0445": "Cyrillic small letter ha (U+0445)",
        "x\u202e": "Right-to-left override (U+202E)",
        "x\x00": "NUL (U+0000)",
        "x\x07": "control character U+0007",
        "x\udc80": "half of a UTF-16 pair (U+DC80)",
        "x\ue000": "character U+E000",
        "\u05d0": "Hebrew letter alef (U+05D0)",
    }.items():
        with pytest.raises(GradcliError) as caught:
            parse(text)
        assert name in caught.value.diagnostics[0].message


def test_limits_have_codes() -> None:
    for text, limit, code in (
        ("x + y + z", "text=8", "GC501"),
        ("αβγδε", "text=9", "GC501"),
        ("((((x))))", "nesting=3", "GC502"),
        ("--x", "nesting=1", "GC502"),
        ("x**y**z", "nesting=1", "GC502"),
        ("f(f(x))", "nesting=1", "GC502"),
        ("x[y[z]]", "nesting=1", "GC502"),
        ("x.f(x.f())", "nesting=1", "GC502"),
        ("for i in range(2):\n for j in range(2):\n  s = 1", "nesting=1", "GC502"),
        ("12345", "digits=4", "GC503"),
        ("1.2345", "digits=4", "GC503"),
    ):
        with pytest.raises(GradcliError) as caught:
            parse(text, parse_limits(limit))
        assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code], text
    assert len(parse("x" + "+x" * 2000).statements) == 1  # a long sum is not deep
    assert len(parse("x" + "*x" * 2000).statements) == 1
    assert len(parse("x" + ".T" * 2000).statements) == 1
