"""Lowers comprehensions and generators, all iterations at once or one by one, the last clause running fastest.

The variables are local to the comprehension, as in Python. `collected` yields expressions and is sent their values by
the caller that computes the surrounding expression, so nested comprehensions do not recurse.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.node import Node
from gradcli.language import syntax as s
from gradcli.language.syntax import Comprehension
from gradcli.lowering.constructs.expressions import index
from gradcli.lowering.iteration import loops, vectorized
from gradcli.lowering.iteration.ranges import counted, repeat
from gradcli.lowering.iteration.vectorized import REDUCTIONS
from gradcli.lowering.operands import ScriptList, number, plain, tagged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from gradcli.language.syntax import Call, Clause, Expression
    from gradcli.lowering.lowerer import Lowerer

MASK = "write where(condition, a, b), or multiply by a mask: sum(x*(x > 0))"


def computed(lowerer: Lowerer, syntax: Comprehension | Call) -> Generator[Expression, Any, Any]:
    """The value of a comprehension, or of a call that reduces one; yields each expression that it needs."""
    if isinstance(syntax, Comprehension):
        value = vectorized.computed(lowerer, syntax, "")
        return (yield from collected(lowerer, syntax)) if value is None else value
    (comprehension,) = syntax.args
    assert isinstance(comprehension, Comprehension)
    name = syntax.function.id
    value = None
    if name in REDUCTIONS and not lowerer.is_value(name) and name not in lowerer.functions:
        value = vectorized.computed(lowerer, comprehension, name)
    return reduced(lowerer, syntax, (yield from collected(lowerer, comprehension))) if value is None else value


def collected(lowerer: Lowerer, syntax: Comprehension) -> Generator[Expression, Any, ScriptList]:
    """The items of a comprehension one by one: yields each expression that it needs, and is sent its value."""
    clauses = syntax.clauses
    items = ScriptList([], syntax.span)
    outside = lowerer.local
    alike = len(clauses) == 1 and not clauses[0].conditions
    try:
        iterations: list[_Iterations] = [(yield from _iterations(lowerer, clauses[0]))]
        scopes: list[dict[str, Any]] = [dict(outside or {})]
        while iterations:
            level = len(iterations) - 1
            clause, scope = clauses[level], scopes[level]
            lowerer.local = scope
            if iterations[level].done == iterations[level].count:
                iterations.pop()
                scopes.pop()
                continue
            scope[clause.target.id] = iterations[level].next()
            if not (yield from _holds(lowerer, clause)):
                continue
            if level + 1 < len(clauses):
                iterations.append((yield from _iterations(lowerer, clauses[level + 1])))
                scopes.append(dict(scope))
            else:
                before = lowerer.builder.count
                value = yield syntax.item
                items.append(number(lowerer, value, syntax.item))
                if alike and iterations[0].done == 1:
                    iterations[0].done += _at_once(
                        lowerer, syntax, iterations[0], items, lowerer.builder.count - before
                    )
    finally:
        lowerer.local = outside
    lowerer.builder.span = syntax.span
    return items


def _at_once(lowerer: Lowerer, syntax: Comprehension, iterations: _Iterations, items: ScriptList, nodes: int) -> int:
    """Collect the items after the first by a loop node, if they are alike and worth it; how many these are."""
    clause = syntax.clauses[0]
    if iterations.count <= loops.FEWEST or lowerer.local is None or iterations.numbers is None:
        return 0
    span = syntax.span
    target = clause.target
    body: list[s.Statement] = [s.Append(s.Name("~items", span), syntax.item, span)]
    lowerer.local["~items"] = items
    if iterations.rows is not None:
        lowerer.local["~rows"] = iterations.rows
        target = s.Name("~row", clause.target.span)
        row = s.Subscript(s.Name("~rows", span), (target,), clause.target.span)
        body.insert(0, s.Assign((clause.target,), row, None, None, False, clause.target.span))
    bounds = clause.bounds or (syntax.item,)
    return loops.ahead(lowerer, s.For(target, bounds, tuple(body), span), iterations.numbers[1:], nodes)


def _holds(lowerer: Lowerer, clause: Clause) -> Generator[Expression, Any, bool]:
    """Whether the conditions of a clause hold in this iteration."""
    for test in clause.conditions:
        condition = plain(lowerer, (yield test))
        if isinstance(condition, Node):
            lowerer.refuse_data(condition, test.span, MASK)
        if not lowerer.static(condition, test.span):
            return False
    return True


class _Iterations:
    """The variable of a clause in each iteration: a number of `numbers`, or the row of `rows` at that number."""

    __slots__ = ("count", "done", "numbers", "rows", "value")

    def __init__(
        self, numbers: range | None, value: Callable[[int], Any], count: int, rows: Node | None = None
    ) -> None:
        self.numbers = numbers
        self.value = value
        self.count = count
        self.rows = rows
        self.done = 0

    def next(self) -> Any:
        """The variable in the next iteration."""
        self.done += 1
        return self.value(self.done - 1)


def _iterations(lowerer: Lowerer, clause: Clause) -> Generator[Expression, Any, _Iterations]:
    """The iterations of a clause."""
    if clause.rows is None:
        bounds = []
        for bound in clause.bounds:
            bounds.append((yield bound))
        numbers = counted(lowerer, clause.target, clause.bounds, bounds, "comprehension")
        return _Iterations(numbers, numbers.__getitem__, len(numbers))
    value = yield clause.rows
    span = clause.rows.span
    if isinstance(value, ScriptList) and not value.stacks:
        rows: tuple[Any, ...] = value.entries(lowerer)
    elif isinstance(value, tuple):
        rows = tuple([number(lowerer, row, clause.rows) for row in value])
    else:
        x = number(lowerer, value, clause.rows)
        if not x.type.shape:
            message = f"a comprehension runs over the rows of an array, and this is {x.type}"
            raise error("GC321", message, span, help="write range(n) for whole numbers, or [x] for a single entry")
        count = x.type.shape[0]
        repeat(lowerer, count, span, "comprehension")
        if clause.target.id not in lowerer.targets:
            return _Iterations(range(count), lambda position: index(lowerer, x, [position], span), count, x)
        rows = tuple([index(lowerer, x, [position], span) for position in range(count)])
    if clause.target.id in lowerer.targets:
        rows = tuple([tagged(lowerer, row) for row in rows])
    return _Iterations(None, rows.__getitem__, len(rows))


def reduced(lowerer: Lowerer, syntax: Call, items: ScriptList) -> Any:
    """sum(item for ...) and its relatives: over the iterations, so arrays are reduced entry by entry, as in Python."""
    name = syntax.function.id
    if name in lowerer.functions or (name in lowerer.library and name not in REDUCTIONS):
        taken = ", ".join(REDUCTIONS)
        hint = f"put it in brackets: {name}([...]); only {taken} take a generator"
        raise error("GC120", f"`{name}` takes no generator", syntax.args[0].span, help=hint)
    over_iterations = {"axis": lowerer.builder.constant(0)} if items.shape else {}
    return lowerer.call(syntax, [items], over_iterations)
