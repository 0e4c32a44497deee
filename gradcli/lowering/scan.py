"""Reads a script before it is lowered: how often a name is assigned, what is closed, what is differentiated by."""

from __future__ import annotations

from gradcli.language.syntax import (
    Assign,
    Call,
    Declare,
    Expression,
    For,
    If,
    Keyword,
    Name,
    Syntax,
    children,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gradcli.diagnostics import Span
    from gradcli.language.syntax import Statement

CONSTANTS = ("pi", "e", "inf", "nan")
DERIVATIVES = ("grad", "jacobian", "hessian", "jvp", "vjp", "hvp", "laplacian")
_VALUES = frozenset((*CONSTANTS, "None", "True", "False"))


def assigned_names(statements: Iterable[Statement]) -> dict[str, list[Span]]:
    """Where each name is assigned, loops and branches included, function bodies not: those have names of their own."""
    found: dict[str, list[Span]] = {}
    pending = [(statement, 1) for statement in statements][::-1]
    while pending:
        statement, times = pending.pop()
        if isinstance(statement, Assign):
            for target in statement.targets:
                found.setdefault(target.id, []).extend([target.span] * times)
        elif isinstance(statement, Declare):
            found.setdefault(statement.name.id, []).append(statement.name.span)
        elif isinstance(statement, For):  # what a loop assigns, it assigns again
            found.setdefault(statement.target.id, []).extend([statement.target.span] * 2)
            pending.extend((inner, 2) for inner in statement.body[::-1])
        elif isinstance(statement, If):
            pending.extend((inner, times) for inner in (*statement.body, *statement.orelse)[::-1])
    return found


def derivative_targets(root: Syntax, text: str = "") -> set[str]:
    """The names that stand as the second operand of a derivative operator anywhere in the tree.

    `text`, where it is given, is what the tree was read from: where it holds no such word, the tree is not walked.
    """
    found: set[str] = set()
    if text and not any(word in text for word in DERIVATIVES):
        return found
    pending: list[Syntax] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function.id in DERIVATIVES and len(node.args) > 1:
            target = node.args[1]
            if isinstance(target, Name):
                found.add(target.id)
        pending.extend(children(node))
    return found


def is_closed(expression: Expression, functions: Collection[str], open_names: Collection[str]) -> bool:
    """Whether an expression is made of literals only: no name but pi, e, inf, nan, no function of the script.

    `open_names` are constants' names that mean something else here, because they are given or assigned.
    """
    pending: list[Syntax] = [expression]
    while pending:
        node = pending.pop()
        if type(node) is Name:
            if node.id not in _VALUES or node.id in open_names:
                return False
        elif isinstance(node, Call):
            if node.function.id in functions or node.function.id in DERIVATIVES:
                return False
            pending.extend(node.args)
            pending.extend(keyword.value for keyword in node.keywords)
        elif isinstance(node, Keyword):
            pending.append(node.value)
        else:
            pending.extend(children(node))
    return True


def loads_data(expression: Expression) -> bool:
    """Whether an expression reads a file somewhere: its value is then data, never differentiated."""
    pending: list[Syntax] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function.id == "load":
            return True
        pending.extend(children(node))
    return False
