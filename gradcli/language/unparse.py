"""Writes a syntax tree as text, with the fewest brackets that keep its meaning.

Parsing the text gives the same tree (`syntax.same`). Products without sign are written with `*`, methods
and prefixes as plain calls, numbers as they were typed. An explicit stack replaces recursion.
"""

from __future__ import annotations

from gradcli.language.syntax import (
    Append,
    Assert,
    Assign,
    Binary,
    Call,
    Clause,
    Compare,
    Comprehension,
    Declare,
    Domain,
    Expression,
    ExpressionStatement,
    For,
    FunctionDef,
    If,
    Keyword,
    List,
    Name,
    NewAxis,
    Number,
    Return,
    Script,
    Slice,
    Statement,
    String,
    Subscript,
    Syntax,
    Transpose,
    Tuple,
    Unary,
    children,
)

# binding powers: parser_expressions holds the same table for reading
TUPLE, LOOSEST, NOT, COMPARISON, PRODUCT, SIGN, POWER, NUMBER, ATOM = 0, 1, 3, 4, 6, 7, 8, 9, 10
POWERS = {"or": 1, "and": 2, "+": 5, "-": 5, "*": PRODUCT, "/": PRODUCT, "@": PRODUCT, "**": POWER}
SPACED = frozenset(("or", "and", "+", "-", "@"))
INDENT = "    "

Task = str | tuple[Syntax, int]  # text to write, or a node and the binding power that its place requires


def unparse(node: Syntax) -> str:
    """Return the text of an expression, a statement or a script, without a line ending after the last line.

    >>> from gradcli.language.parser import parse
    >>> unparse(parse("2x^2 + np.sin(x).sum()"))
    '2*x**2 + sum(sin(x))'
    """
    if isinstance(node, (Script, Statement)):
        return statements_text(node)
    return expression_text(node, TUPLE)


def expression_text(root: Syntax, power: int) -> str:
    """Return the text of an expression for a place that requires at least `power`."""
    wide: set[int] | None = None
    out: list[str] = []
    tasks: list[Task] = [(root, power)]
    while tasks:
        task = tasks.pop()
        if isinstance(task, str):
            out.append(task)
            continue
        node, wanted = task
        if type(node) is Name:
            out.append(node.id)
            continue
        if type(node) is Number and wanted <= NUMBER:
            out.append(node.text)
            continue
        if wide is None:
            wide = wide_products(root)
        parts, own = pieces(node, wide)
        if own < wanted:
            parts = ["(", *parts, ")"]
        parts.reverse()
        tasks.extend(parts)
    return "".join(out)


def wide_products(root: Syntax) -> set[int]:
    """Return the ids of the products to write with spaces, because a matrix product stands on their left."""
    order, wide, matrix = [root], set[int](), False
    for node in order:  # the list grows while it is read: parents come before children
        if type(node) is Binary:
            order += (node.left, node.right)
            matrix = matrix or node.op == "@"
        elif type(node) is not Name and type(node) is not Number:
            order.extend(children(node))
    for node in reversed(order) if matrix else ():
        if type(node) is Binary and node.op in "*/":
            left = node.left
            if type(left) is Binary and (left.op == "@" or id(left) in wide):
                wide.add(id(node))
    return wide


def pieces(node: Syntax, wide: set[int]) -> tuple[list[Task], int]:
    """Return the pieces to write for a node, in order, and the binding power of the whole."""
    if type(node) is Name:
        return [node.id], ATOM
    if type(node) is Number:
        return [node.text], NUMBER
    if type(node) is Binary:
        own = POWERS[node.op]
        op = f" {node.op} " if node.op in SPACED or id(node) in wide else node.op
        if own == POWER:
            return [(node.left, NUMBER), op, (node.right, SIGN)], own
        return [(node.left, own), op, (node.right, own + 1)], own
    if type(node) is Unary:
        if node.op == "not":
            return ["not ", (node.operand, NOT)], NOT
        return [node.op, (node.operand, SIGN)], SIGN
    if type(node) is Compare:
        compared: list[Task] = [(node.operands[0], COMPARISON + 1)]
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            compared += [f" {op} ", (operand, COMPARISON + 1)]
        return compared, COMPARISON
    if type(node) is Call:
        return [node.function.id, "(", *joined((*node.args, *node.keywords)), ")"], ATOM
    if type(node) is Keyword:
        return [f"{node.name}=", (node.value, LOOSEST)], LOOSEST
    if type(node) is Subscript:
        return [(node.value, ATOM), "[", *joined(node.items), "]"], ATOM
    if type(node) is Slice:
        parts: list[Task] = [] if node.lower is None else [(node.lower, LOOSEST)]
        parts.append(":")
        if node.upper is not None:
            parts.append((node.upper, LOOSEST))
        if node.step is not None:
            parts += [":", (node.step, LOOSEST)]
        return parts, LOOSEST
    if type(node) is NewAxis:
        return ["None"], ATOM
    if type(node) is Transpose:
        return [(node.value, ATOM), ".T"], ATOM
    if type(node) is List:
        return ["[", *joined(node.items), "]"], ATOM
    if type(node) is Comprehension:
        clauses: list[Task] = [(node.item, LOOSEST)]
        for clause in node.clauses:
            clauses += [" ", (clause, LOOSEST)]
        return (clauses if node.generator else ["[", *clauses, "]"]), ATOM
    if type(node) is Clause:
        rows: list[Task] = ["range(", *joined(node.bounds), ")"] if node.rows is None else [(node.rows, LOOSEST)]
        tests = [task for test in node.conditions for task in (" if ", (test, LOOSEST))]
        return ["for ", node.target.id, " in ", *rows, *tests], ATOM
    if type(node) is Tuple:
        if not node.items:
            return ["()"], ATOM
        return [*joined(node.items), *([","] if len(node.items) == 1 else [])], TUPLE
    if type(node) is String:
        quote = "'" if '"' in node.text else '"'
        return [f"{quote}{node.text}{quote}"], ATOM
    if type(node) is Domain:
        if node.low is None or node.high is None:
            return [node.kind], ATOM
        opened, closed = "(" if node.low_open else "[", ")" if node.high_open else "]"
        return [opened, (node.low, LOOSEST), ", ", (node.high, LOOSEST), closed], ATOM
    raise TypeError(f"{type(node).__name__} is not part of an expression")


def joined(nodes: tuple[Syntax, ...]) -> list[Task]:
    """Return nodes with commas between them."""
    parts: list[Task] = []
    for node in nodes:
        if parts:
            parts.append(", ")
        parts.append((node, LOOSEST))
    return parts


def statements_text(root: Script | Statement) -> str:
    """Return the lines of a script or statement."""
    lines: list[str] = []
    tasks: list[tuple[str, str | Statement]] = []  # indentation, and a line or a statement still to write
    if isinstance(root, Script):
        if root.expect is not None:
            lines.append(f"# expect: {root.expect}")
        tasks.extend(("", statement) for statement in reversed(root.statements))
    else:
        tasks.append(("", root))
    while tasks:
        indent, task = tasks.pop()
        if isinstance(task, str):
            lines.append(indent + task)
            continue
        lines.append(indent + head(task))
        inner = indent + INDENT
        below: list[tuple[str, str | Statement]] = []
        if isinstance(task, (FunctionDef, For, If)):
            below = [(inner, statement) for statement in task.body]
        while isinstance(task, If) and task.orelse:
            if len(task.orelse) == 1 and isinstance(task.orelse[0], If):
                task = task.orelse[0]
                below.append((indent, f"el{head(task)}"))
                below.extend((inner, statement) for statement in task.body)
            else:
                below.append((indent, "else:"))
                below.extend((inner, statement) for statement in task.orelse)
                break
        tasks.extend(reversed(below))
    return "\n".join(lines)


def head(node: Statement) -> str:
    """Return the first line of a statement: all of it, or the header of its block."""
    if isinstance(node, ExpressionStatement):
        return expression_text(node.value, TUPLE) + remark(None, node.expect)
    if isinstance(node, Assign):
        names = ", ".join(name.id for name in node.targets)
        const = "const " if node.const else ""
        value = expression_text(node.value, TUPLE)
        return f"{const}{names}{sizes(node.shape)} {node.operator or ''}= {value}{remark(None, node.expect)}"
    if isinstance(node, Declare):
        default = "" if node.default is None else f" = {expression_text(node.default, LOOSEST)}"
        return f"{node.name.id}{sizes(node.shape)} in {expression_text(node.domain, LOOSEST)}{default}"
    if isinstance(node, Append):
        return f"{node.name.id}.append({expression_text(node.value, LOOSEST)})"
    if isinstance(node, Assert):
        return f"assert {expression_text(node.test, LOOSEST)}{remark(node.rtol, node.expect)}"
    if isinstance(node, Return):
        return f"return {expression_text(node.value, TUPLE)}"
    if isinstance(node, FunctionDef):
        rule = "" if node.rule is None else f".{node.rule}"
        return f"def {node.name.id}{rule}({', '.join(name.id for name in node.params)}):"
    if isinstance(node, For):
        bounds = ", ".join(expression_text(bound, LOOSEST) for bound in node.bounds)
        return f"for {node.target.id} in range({bounds}):"
    if isinstance(node, If):
        return f"if {expression_text(node.test, LOOSEST)}:"
    raise TypeError(f"{type(node).__name__} is not a statement")


def sizes(shape: tuple[Expression, ...] | None) -> str:
    """Return a declared shape in its brackets."""
    return "" if shape is None else f"[{', '.join(expression_text(size, LOOSEST) for size in shape)}]"


def remark(rtol: float | None, expect: str | None) -> str:
    """Return the comment that states a tolerance and an expectation."""
    text = "" if rtol is None else f"  # rtol={rtol!r}"
    return text if expect is None else f"{text}  # expect: {expect}"
