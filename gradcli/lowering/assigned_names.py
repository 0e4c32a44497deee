"""Scans a script before lowering: how often a name is assigned, closed expressions, names that are differentiated."""

from __future__ import annotations

from gradcli.language.syntax import (
    Append,
    Assign,
    Call,
    Comprehension,
    Declare,
    Expression,
    For,
    If,
    Name,
    Syntax,
    children,
    nodes_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gradcli.base.diagnostics import Span
    from gradcli.language.syntax import Statement

CONSTANTS = ("pi", "e", "inf", "nan")
DERIVATIVES = ("grad", "jacobian", "hessian", "jvp", "vjp", "hvp", "laplacian")
_VALUES = frozenset((*CONSTANTS, "None", "True", "False"))


def assigned_names(statements: Iterable[Statement]) -> dict[str, list[Span]]:
    """The places where each name is assigned, in loops and branches too, but not in functions, which have own names.

    An append is an assignment: the name has another value from then on.
    """
    spans: dict[str, list[Span]] = {}
    for statement, times in _repeated(statements):
        if isinstance(statement, Assign):
            for target in statement.targets:
                spans.setdefault(target.id, []).extend([target.span] * times)
        elif isinstance(statement, (Append, Declare)):
            spans.setdefault(statement.name.id, []).extend([statement.name.span] * times)
        elif isinstance(statement, For):
            spans.setdefault(statement.target.id, []).extend([statement.target.span] * 2)
    return spans


def appended_names(statements: Iterable[Statement]) -> dict[str, int]:
    """How often the script appends to each name, counted as in `assigned_names`: these names hold lists."""
    counts: dict[str, int] = {}
    for statement, times in _repeated(statements):
        if isinstance(statement, Append):
            counts[statement.name.id] = counts.get(statement.name.id, 0) + times
    return counts


def _repeated(statements: Iterable[Statement]) -> Iterator[tuple[Statement, int]]:
    """Every statement outside of functions, with its count; a statement in a loop counts twice."""
    pending = [(statement, 1) for statement in statements][::-1]
    while pending:
        statement, times = pending.pop()
        yield statement, times
        if isinstance(statement, For):
            pending.extend((inner, 2) for inner in statement.body[::-1])
        elif isinstance(statement, If):
            pending.extend((inner, times) for inner in (*statement.body, *statement.orelse)[::-1])


def derivative_targets(root: Syntax, text: str = "") -> set[str]:
    """The names that are the second operand of a derivative operator anywhere in the tree.

    `text`, if given, is the source of the tree: if it contains no such operator, the tree is not searched.
    """
    names: set[str] = set()
    if text and not any(word in text for word in DERIVATIVES):
        return names
    for node in nodes_of(root):
        if isinstance(node, Call) and node.function.id in DERIVATIVES and len(node.args) > 1:
            target = node.args[1]
            if isinstance(target, Name):
                names.add(target.id)
    return names


def is_closed(expression: Expression, functions: Collection[str], open_names: Collection[str]) -> bool:
    """Whether an expression has no names except pi, e, inf and nan, and calls no function of the script.

    `open_names` are names of constants that have another meaning here, because they are given or assigned.
    """
    pending: list[tuple[Syntax, frozenset[str]]] = [(expression, frozenset())]
    while pending:
        node, own = pending.pop()
        if type(node) is Name:
            if node.id not in own and (node.id not in _VALUES or node.id in open_names):
                return False
        elif isinstance(node, Comprehension):
            pending.extend(scoped(node, own))
        elif isinstance(node, Call):
            if node.function.id in functions or node.function.id in DERIVATIVES:
                return False
            pending.extend([(arg, own) for arg in node.args])
            pending.extend([(keyword.value, own) for keyword in node.keywords])
        else:
            pending.extend([(child, own) for child in children(node)])
    return True


def scoped(comprehension: Comprehension, own: frozenset[str]) -> list[tuple[Expression, frozenset[str]]]:
    """The expressions of a comprehension, each with the variables that are local to it: `own` and those before it."""
    parts: list[tuple[Expression, frozenset[str]]] = []
    for clause in comprehension.clauses:
        parts += [(part, own) for part in clause.bounds if clause.rows is None]
        parts += [(clause.rows, own)] if clause.rows is not None else []
        own |= {clause.target.id}
        parts += [(test, own) for test in clause.conditions]
    return [*parts, (comprehension.item, own)]


def loads_data(expression: Expression) -> bool:
    """Whether an expression reads a file somewhere: its value is then data, never differentiated."""
    return any(isinstance(node, Call) and node.function.id == "load" for node in nodes_of(expression))
