"""Finds what the value of a function depends on, so that a repeated call is looked up instead of lowered again.

Functions are inlined, and a loop may call them with the same operands many times (`pick(weights, 0, n)`). Such a call
gives the same nodes, so its value is kept. What cannot be kept: calls of derivative operators (they name variables), of
`load`, and of random arrays without a seed.
"""

from __future__ import annotations

from gradcli.graph.primitive import signature_of
from gradcli.language import syntax as s
from gradcli.lowering.assigned_names import CONSTANTS, scoped
from gradcli.lowering.operands import ScriptList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.lowering.lowerer import Lowerer

    Names = frozenset[str]

MOST_KEPT = 1 << 12  # calls; a loop that gives each of them other operands would keep a million
_FIXED = frozenset((*CONSTANTS, "None", "True", "False"))
_ABSENT = object()


def key_of(lowerer: Lowerer, name: str, values: Sequence[Any]) -> Any:
    """What equal calls of a function have in common; None for a call that has to be made."""
    if name not in lowerer.function_reads:
        lowerer.function_reads[name] = _outside(lowerer, name)
    reads = lowerer.function_reads[name]
    if reads is None or lowerer.builder.simplifying:
        return None
    scope, (names, called) = lowerer.scope, reads
    if not scope.keys().isdisjoint(called):
        return None  # it is a value by now: an error
    for variable in names:
        if variable not in scope and (variable not in _FIXED or variable in lowerer.at):
            return None  # the call makes it a leaf
        if type(scope.get(variable)) is ScriptList:
            return None  # it grows
    # a leaf that has become a constant since then makes another power of x**n
    key = (name, lowerer.fixed_leaves, *values, *[scope.get(variable, _ABSENT) for variable in names])
    try:
        hash(key)
    except TypeError:  # a slice
        return None
    return key


def keep(lowerer: Lowerer, key: Any, value: Any) -> None:
    """Remember the value of a call, and where its last step stands."""
    if len(lowerer.known_calls) >= MOST_KEPT:
        lowerer.known_calls.clear()
    lowerer.known_calls[key] = value, lowerer.builder.span


def _outside(lowerer: Lowerer, name: str) -> tuple[Names, Names] | None:
    """The names of the script that a function reads, and those that it calls, in the functions that it calls too."""
    names: set[str] = set()
    called: set[str] = set()
    pending, met = [name], {name}
    while pending:
        reader = pending.pop()
        if reader in lowerer.hand_written:
            return None
        function = lowerer.functions[reader]
        calls: set[str] = set()
        if not _body_reads(function.body, {param.id for param in function.params}, names, calls):
            return None
        for callee in calls:
            if callee in lowerer.functions and callee not in met:
                met.add(callee)
                pending.append(callee)
            primitive = lowerer.library.get(callee)
            if primitive is None and callee not in lowerer.functions:
                return None
            if primitive is not None and "position" in signature_of(primitive).keyword_only:
                return None
        called |= calls
    return frozenset(names), frozenset(called)


def _body_reads(statements: Iterable[s.Statement], own: set[str], names: set[str], calls: set[str]) -> bool:
    """Collect what a body reads and calls, but for its `own` names; whether it holds nothing else than values.

    A name that only a loop or a branch assigns is taken to be read outside, behind it.
    """
    pending = [(statement, own) for statement in statements][::-1]
    while pending:
        statement, own = pending.pop()
        if isinstance(statement, s.Assign):
            _reads((statement.value, *(statement.shape or ())), own, names, calls)
            if statement.operator is not None:
                names |= {target.id for target in statement.targets} - own
            own |= {target.id for target in statement.targets}
        elif isinstance(statement, (s.Append, s.ExpressionStatement, s.Return)):
            _reads((statement.value,), own, names, calls)
        elif isinstance(statement, s.For):
            _reads(statement.bounds, own, names, calls)
            inner = own | {statement.target.id}
            pending.extend([(inner_statement, inner) for inner_statement in statement.body[::-1]])
        elif isinstance(statement, s.If):
            _reads((statement.test,), own, names, calls)
            for block in (statement.body, statement.orelse):
                inner = set(own)
                pending.extend([(inner_statement, inner) for inner_statement in block[::-1]])
        else:
            return False
    return True


def _reads(expressions: Iterable[s.Syntax], own: set[str], names: set[str], calls: set[str]) -> None:
    pending = [(expression, frozenset[str]()) for expression in expressions]
    while pending:
        node, local = pending.pop()
        if isinstance(node, s.Name):
            if node.id not in own and node.id not in local:
                names.add(node.id)
        elif isinstance(node, s.Comprehension):
            pending.extend(scoped(node, local))
        elif isinstance(node, s.Call):
            calls.add(node.function.id)
            pending.extend([(arg, local) for arg in node.args])
            pending.extend([(keyword.value, local) for keyword in node.keywords])
        else:
            pending.extend([(child, local) for child in s.children(node)])
