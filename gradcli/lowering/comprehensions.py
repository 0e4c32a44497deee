"""Lowers comprehensions and generators: one item for every turn of their clauses, the last clause running fastest.

The variables are local to the comprehension, as in Python. `collected` yields expressions and is sent their values by
the caller that computes the surrounding expression, so nested comprehensions do not recurse.
"""

from __future__ import annotations

from gradcli.diagnostics import error
from gradcli.graph.node import Node
from gradcli.lowering.lists import ScriptList, plain
from gradcli.lowering.operands import number, tagged
from gradcli.lowering.ranges import counted, repeat
from gradcli.lowering.subscripts import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from gradcli.language.syntax import Call, Clause, Comprehension, Expression
    from gradcli.lowering.lowerer import Lowerer

REDUCTIONS = ("sum", "prod", "mean", "max", "min", "any", "all")  # what takes a generator
MASK = "write where(condition, a, b), or multiply by a mask: sum(x*(x > 0))"


def collected(lowerer: Lowerer, syntax: Comprehension) -> Generator[Expression, Any, ScriptList]:
    """The items of a comprehension: yields each expression that it needs, and is sent its value."""
    clauses = syntax.clauses
    items: list[Node] = []
    outside = lowerer.local
    try:
        turns: list[Iterator[Any]] = [(yield from _turns(lowerer, clauses[0]))]
        scopes: list[dict[str, Any]] = [dict(outside or {})]
        while turns:
            level = len(turns) - 1
            clause, scope = clauses[level], scopes[level]
            lowerer.local = scope
            turn = next(turns[level], None)
            if turn is None:
                turns.pop()
                scopes.pop()
                continue
            scope[clause.target.id] = turn
            if not (yield from _holds(lowerer, clause)):
                continue
            if level + 1 < len(clauses):
                turns.append((yield from _turns(lowerer, clauses[level + 1])))
                scopes.append(dict(scope))
            else:
                value = yield syntax.item
                items.append(number(lowerer, value, syntax.item))
    finally:
        lowerer.local = outside
    lowerer.builder.span = syntax.span
    return ScriptList(items, syntax.span)


def _holds(lowerer: Lowerer, clause: Clause) -> Generator[Expression, Any, bool]:
    """Whether the conditions of a clause hold in this turn."""
    for test in clause.conditions:
        condition = plain(lowerer, (yield test))
        if isinstance(condition, Node):
            lowerer.refuse_data(condition, test.span, MASK)
        if not lowerer.static(condition, test.span):
            return False
    return True


def _turns(lowerer: Lowerer, clause: Clause) -> Generator[Expression, Any, Iterator[Any]]:
    """What the variable of a clause is in each turn: a count, or a row."""
    if clause.rows is None:
        bounds = []
        for bound in clause.bounds:
            bounds.append((yield bound))
        return iter(counted(lowerer, clause.target, clause.bounds, bounds, "comprehension"))
    value = yield clause.rows
    span = clause.rows.span
    if isinstance(value, ScriptList):
        rows: tuple[Any, ...] = value.entries(lowerer)
    elif isinstance(value, tuple):
        rows = tuple([number(lowerer, one, clause.rows) for one in value])
    else:
        x = number(lowerer, value, clause.rows)
        if not x.type.shape:
            message = f"a comprehension runs over the rows of an array, and this is {x.type}"
            raise error("GC321", message, span, help="write range(n) for whole numbers, or [x] for a single entry")
        repeat(lowerer, x.type.shape[0], span, "comprehension")
        rows = tuple([index(lowerer, x, [position], span) for position in range(x.type.shape[0])])
    if clause.target.id in lowerer.targets:
        rows = tuple([tagged(lowerer, row) for row in rows])
    return iter(rows)


def reduced(lowerer: Lowerer, syntax: Call, items: ScriptList) -> Any:
    """sum(item for ...) and its relatives: over the turns, so arrays are reduced entry by entry, as in Python."""
    name = syntax.function.id
    if name in lowerer.functions or (name in lowerer.library and name not in REDUCTIONS):
        taken = ", ".join(REDUCTIONS)
        hint = f"put it in brackets: {name}([...]); only {taken} take a generator"
        raise error("GC120", f"`{name}` takes no generator", syntax.args[0].span, help=hint)
    over_turns = {"axis": lowerer.builder.constant(0)} if items.items and items.items[0].type.shape else {}
    return lowerer.call(syntax, [items], over_turns)
