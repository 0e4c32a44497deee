"""Writes a script, a statement or an expression as text that parses to the same tree (`syntax.same`).

Expressions are written by `notation.Notation`, numbers as they were typed. No statement is written by recursion.
"""

from __future__ import annotations

from gradcli.language.notation import SCRIPT, TUPLE
from gradcli.language.syntax import (
    Append,
    Assert,
    Assign,
    Declare,
    Expression,
    ExpressionStatement,
    For,
    FunctionDef,
    If,
    Return,
    Script,
    Statement,
    Syntax,
)

INDENT = "    "


def unparse(node: Syntax) -> str:
    """Return the text of an expression, a statement or a script, without a line ending after the last line.

    >>> from gradcli.language.parser import parse
    >>> unparse(parse("2x^2 + np.sin(x).sum()"))
    '2*x**2 + sum(sin(x))'
    """
    if isinstance(node, (Script, Statement)):
        return statements_text(node)
    return SCRIPT.text(node, TUPLE)


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
        return SCRIPT.text(node.value, TUPLE) + remark(None, node.expect)
    if isinstance(node, Assign):
        names = ", ".join(name.id for name in node.targets)
        const = "const " if node.const else ""
        value = SCRIPT.text(node.value, TUPLE)
        return f"{const}{names}{sizes(node.shape)} {node.operator or ''}= {value}{remark(None, node.expect)}"
    if isinstance(node, Declare):
        default = "" if node.default is None else f" = {SCRIPT.text(node.default)}"
        return f"{node.name.id}{sizes(node.shape)} in {SCRIPT.text(node.domain)}{default}"
    if isinstance(node, Append):
        return f"{node.name.id}.append({SCRIPT.text(node.value)})"
    if isinstance(node, Assert):
        return f"assert {SCRIPT.text(node.test)}{remark(node.rtol, node.expect)}"
    if isinstance(node, Return):
        return f"return {SCRIPT.text(node.value, TUPLE)}"
    if isinstance(node, FunctionDef):
        rule = "" if node.rule is None else f".{node.rule}"
        return f"def {node.name.id}{rule}({', '.join(name.id for name in node.params)}):"
    if isinstance(node, For):
        bounds = ", ".join(SCRIPT.text(bound) for bound in node.bounds)
        return f"for {node.target.id} in range({bounds}):"
    if isinstance(node, If):
        return f"if {SCRIPT.text(node.test)}:"
    raise TypeError(f"{type(node).__name__} is not a statement")


def sizes(shape: tuple[Expression, ...] | None) -> str:
    """Return a declared shape in its brackets."""
    return "" if shape is None else f"[{', '.join(SCRIPT.text(size) for size in shape)}]"


def remark(rtol: float | None, expect: str | None) -> str:
    """Return the comment that states a tolerance and an expectation."""
    text = "" if rtol is None else f"  # rtol={rtol!r}"
    return text if expect is None else f"{text}  # expect: {expect}"
