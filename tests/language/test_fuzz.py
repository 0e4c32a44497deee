"""The parser against an independent grammar: both accept or both refuse, and where they accept the trees agree."""

from __future__ import annotations

import keyword
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token, Tree
from lark.exceptions import LarkError
from lark.indenter import Indenter

from gradcli.base.diagnostics import GradcliError
from gradcli.language import syntax as s
from gradcli.language.parser import parse, parse_expression

MODULES = {"np", "numpy", "jnp", "torch", "math", "scipy", "jax"}
CONSTANTS = {"pi", "e", "inf", "nan"}


class Refused(Exception):
    """What the grammar allows and the language does not."""


class Lines(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR", "LSQB"]
    CLOSE_PAREN_types = ["RPAR", "RSQB"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return super().process(products(stream))


def products(stream: Iterator[Token]) -> Iterator[Token]:
    """Put IMPLICIT between a number or `)` and a name or `(`."""
    before, depth = "", 0
    for token in stream:
        depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        if token.type == "_NL" and depth > 0:
            continue
        if token.type in ("REAL", "POSITIVE", "NONNEGATIVE", "UNIT") and before != "IN":
            token = Token.new_borrow_pos("NAME", token, token)
        if token.type == "RANGE" and (before != "IN" or depth):  # a word of the for statement only
            token = Token.new_borrow_pos("NAME", token, token)
        if before in ("NUMBER", "RPAR") and token.type in ("NAME", "LPAR"):
            yield Token.new_borrow_pos("IMPLICIT", "", token)
        before = token.type
        if before == "NAME" and keyword.iskeyword(token):
            raise Refused
        yield token


GRAMMAR = (Path(__file__).parents[1] / "support" / "grammar.lark").read_text(encoding="utf-8")
LARK = Lark(GRAMMAR, start=["start", "only"], parser="lalr", lexer="basic", postlex=Lines())


def theirs(node: Tree[Token] | Token | None) -> Any:
    """The canonical form of a tree of the independent grammar."""
    if node is None:
        return None
    if isinstance(node, Token):
        if node.type == "NUMBER" and float(node) == float("inf"):
            raise Refused
        return ("number", str(node)) if node.type == "NUMBER" else str(node)
    kind = str(node.data)
    if kind in ("call", "method"):
        return their_call(kind, node.children)
    if kind == "comprehension":
        return ("comprehension", False, *map(theirs, node.children))
    if kind == "clause":
        return their_clause(node.children)
    below = [theirs(child) for child in node.children]
    simple = {"number", "name", "true", "false", "newaxis", "list", "tuple", "params", "simple_line"}
    if kind == "number":
        return below[0]
    if kind in ("true", "false"):
        return ("number", kind.capitalize())
    if kind == "list":
        return ("list", *(item for item in below if item is not None))
    if kind in simple:
        return (kind, *below)
    if kind == "group":
        return below[0]
    if kind in ("absolute", "magnitude"):
        return ("call", {"absolute": "abs", "magnitude": "norm"}[kind], (below[0],), ())
    if kind == "part":
        return below[0] if below else None
    if kind in ("add", "sub", "mul", "div", "matmul", "or_", "and_"):
        op = {"add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "or_": "or", "and_": "and"}[kind]
        return (op, below[0], below[-1])  # between them the IMPLICIT token, if it was one
    if kind == "pow":
        return ("**", below[0], below[2])
    if kind in ("neg", "pos", "not_"):
        return ("unary", {"neg": "-", "pos": "+", "not_": "not"}[kind], below[0])
    if kind == "compare":
        return ("compare", tuple(below[::2]), tuple(below[1::2]))
    if kind == "attribute":
        if bare(node.children[0]) in MODULES and below[1] in CONSTANTS:
            return ("name", below[1])
        if below[1] in ("real", "imag") and bare(node.children[0]) not in MODULES:
            return ("call", below[1], (below[0],), ())
        if below[1] != "T" or bare(node.children[0]) in MODULES:
            raise Refused
        return ("T", below[0])
    if kind == "slice":
        return ("slice", *(below + [None])[:3])
    if kind == "subscript":
        return ("subscript", *below)
    raise AssertionError(kind)


def bare(node: Any) -> str | None:
    """The name that a node is, without brackets around it."""
    return str(node.children[0]) if isinstance(node, Tree) and node.data == "name" else None


def their_call(kind: str, children: list[Any]) -> Any:
    values: list[Any] = []
    keywords: list[Any] = []
    if kind == "method":
        first, name, arguments = children
        if bare(first) not in MODULES:
            values.append(theirs(first))
            if name == "T":
                raise Refused
    else:
        name, arguments = children
    if arguments is not None and arguments.data == "generator":
        if values:
            raise Refused
        return ("call", str(name), (("comprehension", True, *map(theirs, arguments.children)),), ())
    for argument in [] if arguments is None else arguments.children:
        if isinstance(argument, Tree) and argument.data in ("keyword", "nothing"):
            key = str(argument.children[0])
            value = ("name", "None") if argument.data == "nothing" else theirs(argument.children[1])
            if key in [known for known, _ in keywords]:
                raise Refused
            keywords.append((key, value))
        elif keywords:
            raise Refused
        else:
            values.append(theirs(argument))
    return ("call", str(name), tuple(values), tuple(keywords))


def their_clause(children: list[Any]) -> Any:
    target, over, *tests = children
    bounds, rows = None, over
    while over.data == "group":
        over = over.children[0]
    if over.data == "call" or (over.data == "method" and bare(over.children[0]) in MODULES):
        _, name, values, keywords = theirs(over)
        if name == "range":
            if keywords or not 1 <= len(values) <= 3 or values[0][:2] == ("comprehension", True):
                raise Refused
            bounds, rows = values, None
    return ("clause", str(target), bounds, theirs(rows), *map(theirs, tests))


def ours(node: Any) -> Any:
    """The canonical form of our tree."""
    if node is None or isinstance(node, str):
        return node
    if isinstance(node, s.Number):
        return ("number", node.text)
    if isinstance(node, s.Name):
        return ("name", node.id)
    if isinstance(node, s.Binary):
        return (node.op, ours(node.left), ours(node.right))
    if isinstance(node, s.Unary):
        return ("unary", node.op, ours(node.operand))
    if isinstance(node, s.Compare):
        return ("compare", tuple(map(ours, node.operands)), node.ops)
    if isinstance(node, s.Call):
        keywords = tuple((pair.name, ours(pair.value)) for pair in node.keywords)
        return ("call", node.function.id, tuple(map(ours, node.args)), keywords)
    if isinstance(node, s.Transpose):
        return ("T", ours(node.value))
    if isinstance(node, s.Subscript):
        return ("subscript", ours(node.value), *map(ours, node.items))
    if isinstance(node, s.Slice):
        return ("slice", ours(node.lower), ours(node.upper), ours(node.step))
    if isinstance(node, s.NewAxis):
        return ("newaxis",)
    if isinstance(node, s.List):
        return ("list", *map(ours, node.items))
    if isinstance(node, s.Tuple):
        return ("tuple", *map(ours, node.items))
    if isinstance(node, s.Comprehension):
        return ("comprehension", node.generator, ours(node.item), *map(ours, node.clauses))
    if isinstance(node, s.Clause):
        bounds = tuple(map(ours, node.bounds)) or None
        return ("clause", node.target.id, bounds, ours(node.rows), *map(ours, node.conditions))
    raise AssertionError(node)


def both(text: str) -> tuple[Any, Any]:
    """The canonical forms of both trees of an expression; None where it is refused."""
    try:
        mine = ours(parse_expression(text))
    except GradcliError:
        mine = None
    try:
        other = theirs(LARK.parse(text, start="only").children[0])
    except (LarkError, Refused):
        other = None
    return mine, other


TOKENS = [
    *("x", "y", "f", "2", "3.5", ".5", "1e3", "+", "-", "*", "/", "@", "**", "^", "(", ")", "[", "]", ",", ":"),
    *("<", "==", "!=", ".T", ".sum(", ".f()", "np.sin(", "np.pi", "None", "True", "not", "and", "or", "k=", "=", ";"),
    *(" for i in ", "[x for x in ", "range(", " if ", "|", "||"),
]
WEIGHTS = [int(digit) for digit in "954621145422328945532112211111211211221131"]


def random_tokens(generator: random.Random) -> str:
    tokens = generator.choices(TOKENS, WEIGHTS, k=generator.randint(1, 9))
    return generator.choice(["", " "]).join(tokens)


def random_expression(generator: random.Random, size: int) -> str:
    """A text that is valid most of the time: built from rules, with brackets left out at random."""
    if size <= 1:
        return generator.choice(["x", "y", "2", "3.5", "np.pi", "True", "[1, 2]", "()", "(x,)"])
    left = random_expression(generator, size // 2)
    right = random_expression(generator, size - 1 - size // 2)
    binary = generator.choice(["+", "-", "*", "/", "@", "**", "^", "<", "<=", "==", "!=", "and", "or"])
    return generator.choice(
        [
            f"{left} {binary} {right}",
            f"{left} {binary} {right}",
            f"{left} {binary} {right}",
            f"({left}){binary}({right})" if not binary.isalpha() else f"({left}) {binary} ({right})",
            f"-{left}",
            f"not {left}",
            f"({left})",
            f"|{left}|",
            f"||{left} - {right}||",
            f"({left})({right})",
            f"2{left}",
            f"f({left}, {right})",
            f"f({left}, k={right})",
            f"np.sin({left})",
            f"({left}).sum(axis={right})",
            f"{left}.T",
            f"x[{left}, {right}]",
            f"x[{left}:{right}, None]",
            f"x[::{left}]",
            f"[{left}, {right}]",
            f"[{left} for i in range({right})]",
            f"[{left} for x in {right} if {left} for j in range(2, 3)]",
            f"f({left} for x in {right})",
        ]
    )


@pytest.mark.parametrize("rounds", [8_000, pytest.param(400_000, marks=pytest.mark.deep)], ids=["short", "deep"])
def test_random_tokens_are_judged_alike(rounds: int) -> None:
    generator = random.Random(20)
    accepted = 0
    for _ in range(rounds):
        text = random_tokens(generator)
        mine, other = both(text)
        assert mine == other, text
        accepted += mine is not None
    assert accepted > 200


def test_random_expressions_are_read_alike() -> None:
    generator = random.Random(21)
    accepted = 0
    for _ in range(3_000):
        text = random_expression(generator, generator.randint(1, 14))
        mine, other = both(text)
        assert mine == other, text
        accepted += mine is not None
    assert accepted > 1_000


def test_damaged_expressions_are_judged_alike() -> None:
    generator = random.Random(22)
    refused = 0
    for _ in range(3_000):
        text = random_expression(generator, generator.randint(2, 10))
        at = generator.randrange(len(text))
        edit = generator.choice(["", "(", ")", "[", "]", ",", "+", "*", "x", "2", ":", " "])
        text = text[:at] + edit + text[at + generator.randint(0, 1) :]
        mine, other = both(text)
        assert mine == other, text
        refused += mine is None
    assert refused > 500


# scripts ----------------------------------------------------------------------------------------------------


class Judge:
    """What the language asks of a script beyond its grammar, and the canonical form of its statements."""

    def __init__(self) -> None:
        self.defined: set[str] = set()
        self.formula: Any = None

    def script(self, tree: Tree[Token]) -> list[Any]:
        found: list[Any] = []
        for line in tree.children:
            found += self.line(line, 0, False)
        if found and found[-1] is self.formula:  # a script that ends with f(x) = ... has the output f(x)
            _, name, _, parameters, _ = found[-1]
            found.append(("output", ("call", name, tuple(("name", one) for one in parameters), ())))
        return found

    def line(self, node: Any, depth: int, function: bool) -> list[Any]:
        if node.data == "simple_line":
            return [self.simple(child, depth, function) for child in node.children]
        if node.data == "def":
            return self.definition(node, depth)
        if node.data == "for":
            name, *bounds, suite = node.children
            self.defined.add(str(name))
            if len(bounds) > 3:
                raise Refused
            return [("for", str(name), tuple(map(theirs, bounds)), self.suite(suite, depth, function))]
        test, suite, *rest = node.children
        result: list[Any] = [("if", theirs(test), self.suite(suite, depth, function), ())]
        tests: list[Any] = []
        for branch in rest:
            if branch is None:
                continue
            above = None if branch.data == "else" else theirs(branch.children[0])
            tests.append((above, self.suite(branch.children[-1], depth, function)))
        orelse: tuple[Any, ...] = ()
        for above, body in reversed(tests):
            orelse = body if above is None else (("if", above, body, orelse),)
        kind, condition, body, _ = result[0]
        return [(kind, condition, body, orelse)]

    def definition(self, node: Any, depth: int) -> list[Any]:
        name, rule, params, suite = node.children
        names = [] if params is None else [str(param) for param in params.children]
        if depth or len(set(names)) < len(names):
            raise Refused
        lines = suite.children
        after: list[Any] = []
        if suite.data == "inline":  # on one line, a return ends the function
            inner = lines[0].children
            ends = [i for i, child in enumerate(inner) if child.data == "return"]
            if ends:
                after = inner[ends[0] + 1 :]
                lines[0].children = inner[: ends[0] + 1]
        body = self.suite(suite, 0, True)
        if "'return'" not in str(body):
            raise Refused
        result = [("def", str(name), None if rule is None else str(rule)[1:].strip(), tuple(names), body)]
        return result + [self.simple(child, 0, False) for child in after]

    def suite(self, node: Any, depth: int, function: bool) -> tuple[Any, ...]:
        return tuple(found for child in node.children for found in self.line(child, depth + 1, function))

    def simple(self, node: Any, depth: int, function: bool) -> Any:
        kind, below = node.data, node.children
        if kind == "output":
            return their_append(below[0]) or ("output", theirs(below[0]))
        if kind == "assert":
            return ("assert", theirs(below[0]))
        if kind == "return":
            if not function:
                raise Refused
            return ("return", theirs(below[0]))
        if kind == "declare":
            return self.declare(below, depth)
        if kind == "augmented":
            target, shape = self.targets(below[0])
            if shape is not None or len(target) != 1:
                raise Refused
            self.defined.update(target)
            operator = str(below[1])[:-1].replace("^", "**")
            return ("assign", target, theirs(below[2]), operator, None, False)
        if kind == "const" and depth:
            raise Refused
        if kind == "assign" and (header := their_formula(below[0])) is not None:
            letters = "".join(header[1])
            words = {name for name in re.findall(r"[^\W\d]\w+", str(below[1])) if set(name) <= set(letters)}
            if depth or len(set(header[1])) < len(header[1]) or words - self.defined:  # xx may be x*x
                raise Refused
            self.formula = ("def", header[0], None, header[1], (("return", theirs(below[1])),))
            return self.formula
        target, shape = self.targets(below[0])
        if shape is not None and (depth or target[0] in self.defined):
            raise Refused
        value = theirs(below[1])
        self.defined.update(target)
        return ("assign", target, value, None, shape, kind == "const")

    def targets(self, node: Any) -> tuple[tuple[str, ...], Any]:
        if bare(node) is not None:
            return (str(bare(node)),), None
        if node.data == "group":
            return self.targets(node.children[0])
        if node.data in ("tuple", "list"):
            names = []
            for child in node.children:
                while isinstance(child, Tree) and child.data == "group":
                    child = child.children[0]
                if bare(child) is None:
                    raise Refused
                names.append(str(bare(child)))
            if len(names) < 2 or len(set(names)) < len(names):
                raise Refused
            return tuple(names), None
        return self.shaped(node)

    def shaped(self, node: Any) -> tuple[tuple[str, ...], Any]:
        while node.data == "group":
            node = node.children[0]
        if node.data != "subscript":
            raise Refused
        value, *items = node.children
        while value.data == "group":
            value = value.children[0]
        if bare(value) is None:
            raise Refused
        sizes = tuple(map(theirs, items))
        for size in sizes:
            if size[0] in ("unary", "list", "tuple", "slice", "newaxis"):
                raise Refused
            if size[0] == "number" and (size[1] == "False" or (size[1] != "True" and float(size[1]) == 0)):
                raise Refused
        return (str(bare(value)),), sizes

    def declare(self, below: list[Any], depth: int) -> Any:
        if depth:
            raise Refused
        name, domain, default = below
        while name.data == "group":
            name = name.children[0]
        names, shape = ((str(bare(name)),), None) if bare(name) is not None else self.shaped(name)
        words = [theirs(child) for child in domain.children]
        where = ("interval", words[1], words[3], words[0] == "(", words[4] == ")") if len(words) > 1 else words[0]
        self.defined.update(names)
        return ("declare", names[0], shape, where, theirs(default))


def their_formula(node: Any) -> tuple[str, tuple[str, ...]] | None:
    """The name and the parameters of `f(x, y)` on the left of an equals sign; None for everything else."""
    while node.data == "group":
        node = node.children[0]
    if node.data != "call" or node.children[1] is None or node.children[1].data == "generator":
        return None
    parameters = []
    for one in node.children[1].children:
        while isinstance(one, Tree) and one.data == "group":
            one = one.children[0]
        if bare(one) is None:
            return None
        parameters.append(str(bare(one)))
    return str(node.children[0]), tuple(parameters)


def their_append(node: Any) -> Any:
    """What `path.append(x)` is as a statement; None for every other expression."""
    while node.data == "group":
        node = node.children[0]
    if node.data != "method" or str(node.children[1]) != "append" or bare(node.children[0]) in MODULES:
        return None
    _, _, (name, *values), keywords = theirs(node)
    receiver = node.children[0]
    while receiver.data == "group":
        receiver = receiver.children[0]
    if bare(receiver) is None or len(values) != 1 or keywords:
        raise Refused
    return ("append", name, values[0])


def our_statement(node: s.Statement) -> Any:
    """The canonical form of our tree of a statement."""
    if isinstance(node, s.ExpressionStatement):
        return ("output", ours(node.value))
    if isinstance(node, s.Append):
        return ("append", ours(node.name), ours(node.value))
    if isinstance(node, s.Assert):
        return ("assert", ours(node.test))
    if isinstance(node, s.Return):
        return ("return", ours(node.value))
    if isinstance(node, s.Assign):
        shape = None if node.shape is None else tuple(map(ours, node.shape))
        return (
            "assign",
            tuple(t.id for t in node.targets),
            ours(node.value),
            node.operator,
            shape,
            node.const,
        )
    if isinstance(node, s.Declare):
        domain = node.domain
        where: Any = domain.kind
        if domain.kind == "interval":
            where = ("interval", ours(domain.low), ours(domain.high), domain.low_open, domain.high_open)
        shape = None if node.shape is None else tuple(map(ours, node.shape))
        return ("declare", node.name.id, shape, where, ours(node.default))
    body = tuple(map(our_statement, node.body))
    if isinstance(node, s.FunctionDef):
        return ("def", node.name.id, node.rule, tuple(param.id for param in node.params), body)
    if isinstance(node, s.For):
        return ("for", node.target.id, tuple(map(ours, node.bounds)), body)
    assert isinstance(node, s.If)
    return ("if", ours(node.test), body, tuple(map(our_statement, node.orelse)))


def both_scripts(text: str) -> tuple[Any, Any]:
    try:
        mine = [our_statement(statement) for statement in parse(text).statements]
    except GradcliError:
        mine = None
    try:
        other = Judge().script(LARK.parse(text + "\n", start="start")) or None
    except (LarkError, Refused):
        other = None
    return mine, other


def random_simple(generator: random.Random, depth: int, function: bool) -> str:
    value = random_expression(generator, generator.randint(1, 5))
    name = generator.choice("abcdw")
    forms = [f"{name} = {value}", f"{name} {generator.choice(['+', '-', '*', '/', '@', '**', '^'])}= {value}"]
    forms += [f"f({name}) = {value}", f"g({name}, x) = {value}", f"(f(({name}))) = {value}, x"]
    forms += [f"{name}.append({value})", f"a, {name} = {value}", value, f"assert {value}", f"{name} = {value}, x"]
    if function:
        forms += [f"return {value}"] * 4
    if not depth:
        forms += [
            f"const {name} = {value}",
            f"{name}[2, 3] = {value}",
            f"{name} in (0, {value}]",
            f"{name} in real",
        ]
        forms += [f"{name}[n] in [-inf, 2) = {value}", f"{name} in positive = 2"]
    return generator.choice(forms)


def random_lines(generator: random.Random, depth: int, function: bool, budget: int) -> list[str]:
    lines: list[str] = []
    for _ in range(generator.randint(1, budget)):
        kind = generator.random()
        simple = "; ".join(random_simple(generator, depth, function) for _ in range(generator.choice([1, 1, 1, 2])))
        if kind < 0.6 or depth > 2:
            lines.append(simple)
            continue
        header = generator.choice(["for i in range(3):", "for j in range(1, n, 2):", "if n > 2:"])
        inside = function
        if not depth and generator.random() < 0.4:
            header, inside = generator.choice(["def f(a, b):", "def f.vjp(a, ct):", "def g():"]), True
        if generator.random() < 0.3:
            lines.append(f"{header} {random_simple(generator, depth + 1, inside)}")
        else:
            lines.append(header)
            lines += ["  " + line for line in random_lines(generator, depth + 1, inside, budget - 1 or 1)]
        if header == "if n > 2:" and generator.random() < 0.5:
            lines.append("elif n > 1: y = 2")
        if header == "if n > 2:" and generator.random() < 0.5:
            lines += ["else:", "  y = 3"]
    return lines


def test_random_scripts_are_read_alike() -> None:
    generator = random.Random(23)
    accepted = 0
    for _ in range(700):
        text = "\n".join(random_lines(generator, 0, False, 4)) + "\n"
        mine, other = both_scripts(text)
        assert mine == other, text
        accepted += mine is not None
    assert accepted > 100


@pytest.mark.parametrize("rounds", [800, pytest.param(40_000, marks=pytest.mark.deep)], ids=["short", "deep"])
def test_damaged_scripts_are_judged_alike(rounds: int) -> None:
    generator = random.Random(24)
    for _ in range(rounds):
        text = "\n".join(random_lines(generator, 0, False, 3)) + "\n"
        at = generator.randrange(len(text))
        edit = generator.choice(["", "(", ")", "=", ",", ":", "x", "2", " ", "in ", "const "])
        text = (text[:at] + edit + text[at + generator.randint(0, 1) :]).lstrip(" ")
        mine, other = both_scripts(text)
        assert mine == other, text
