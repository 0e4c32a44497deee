"""Lowers loops: a long one becomes a loop of the graph, a short one is written out iteration by iteration.

The first iteration is always written out: names are first made there, and shapes settle. Then one iteration is traced
on fresh leaves, as an attempt: if it does anything that may differ from iteration to iteration, all its effects are
undone and the iterations are written out. A name leaves the loop only if it is read after it, and is carried from
iteration to iteration only if it is read before it is assigned. What is read is known from the syntax: a block is
summed up by the names that it may read before it assigns them, and by those that it assigns for certain.
"""

from __future__ import annotations

from math import inf

from gradcli.base.diagnostics import GradcliError, cover, error
from gradcli.graph.exact import count_text
from gradcli.graph.loop import close
from gradcli.graph.node import Node
from gradcli.graph.primitive import Complex
from gradcli.language import syntax as s
from gradcli.lowering.constructs.expressions import evaluate
from gradcli.lowering.iteration.ranges import length, range_of
from gradcli.lowering.iteration.snapshot import Snapshot
from gradcli.lowering.iteration.traced_iterations import TracedIteration
from gradcli.lowering.names import POISON, Poisoned
from gradcli.lowering.operands import ScriptList
from gradcli.lowering.statics import Untraceable
from gradcli.primitives.arithmetic import add, mul, sub
from gradcli.primitives.movement import reshape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.graph.loop import Loop
    from gradcli.graph.node import Builder
    from gradcli.lowering.lowerer import Lowerer

    Names = frozenset[str]
    Summary = tuple[Names, Names]  # of a block: what it reads first, what it assigns

FEWEST = 32  # iterations of a loop that may become a node
# By the numbers that the iterations carry, up to so many: the nodes that they would make if they were written out, from
# which on they become a node. Few numbers run as generated code either way; iterations on large arrays share blocks.
NODE_FROM = {16: 10_000, 1 << 12: 2_000, inf: 100_000}
STACKED_FROM = 500  # the same where nothing is carried: all iterations are computed at once
MOST_ATTEMPTS = 4  # at one loop: shapes may settle in the first few iterations only
_NONE: Names = frozenset()
EXACT = 2**53  # up to here every whole number is a float


class Unsettled(Untraceable):
    """A name whose type changed in the iteration: it may be the same from the next one on."""


class Unmoved(Untraceable):
    """Names that an iteration leaves as they are: in another trace they stand for their values."""

    def __init__(self, names: set[str]) -> None:
        self.names = names


def run(lowerer: Lowerer, statement: s.For) -> Any:
    """What `for` does; the value of a `return` inside, else None."""
    numbers = range_of(lowerer, statement.bounds, [evaluate(lowerer, bound) for bound in statement.bounds])
    count = length(numbers)
    place = cover(statement.target.span, statement.bounds[-1].span)
    if count > lowerer.limits.work:
        raise _too_much(lowerer, f"the loop would run {count_text(count)} times", place)
    names, iteration, nodes, attempts, again = lowerer.names(), 0, 0, MOST_ATTEMPTS, 1
    lowerer.looping += 1
    begun = lowerer.builder.count
    try:
        while iteration < count:
            left = count - iteration
            if attempts and iteration >= again and _worth(lowerer, left, nodes):
                attempt = _attempt(lowerer, statement, numbers[iteration:], iteration)
                attempts -= not attempt.done
                again = iteration + attempt.again
                if attempt.done:
                    iteration += attempt.done
                    nodes = lowerer.limits.nodes  # what comes now is another kind of iteration
                    continue
            sure = max(1, min(again, count) - iteration) if attempts else left  # so many iterations will be written out
            if lowerer.repetitions + sure > lowerer.limits.nodes:
                times = count_text(lowerer.repetitions + left)
                message = f"the loop would run {times} times; {lowerer.limits.nodes:,} nodes are allowed"
                raise error(
                    "GC505",
                    message,
                    place,
                    help="use arrays instead of a loop over scalars, or raise it with --limit nodes=...",
                )
            lowerer.repetitions += 1
            before = lowerer.builder.count
            names[statement.target.id] = numbers[iteration]
            result = lowerer.block(statement.body)
            if result is not None:
                return result
            nodes = lowerer.builder.count - before
            iteration += 1
            lowerer.close_block(before, f"iteration {iteration}", None)
    finally:
        lowerer.looping -= 1
    if iteration > 1:
        lowerer.close_block(begun, f"for {statement.target.id} in range({count})", place)
    return None


def ahead(lowerer: Lowerer, statement: s.For, numbers: range, nodes: int) -> int:
    """How many iterations with these numbers, after a first one that made so many nodes, have become a loop node."""
    if not _worth(lowerer, len(numbers), nodes):
        return 0
    lowerer.looping += 1
    try:
        return _attempt(lowerer, statement, numbers, 1).done
    finally:
        lowerer.looping -= 1


def _worth(lowerer: Lowerer, left: int, nodes: int) -> bool:
    """Whether so many iterations, of which the last one made so many nodes, may become a node of the graph."""
    if left < FEWEST - 1 or lowerer.mode.loops == "unroll":
        return False
    return lowerer.mode.loops == "node" or 2 * left * max(nodes, 1) * _times(lowerer) > min(NODE_FROM.values())


def _times(lowerer: Lowerer) -> int:
    """How often what is lowered now runs, in the loops around it that are traced."""
    return lowerer.traces[-1].times if lowerer.traces else 1


def _too_much(lowerer: Lowerer, what: str, span: Any) -> GradcliError:
    return error(
        "GC505",
        f"{what}; {lowerer.limits.work:,} steps are allowed",
        span,
        help="use arrays instead of a loop over scalars, or raise it with --limit work=...",
    )


# --- an attempt ------------------------------------------------------------------------------------------


class _Found:
    """What came of an attempt: how many iterations are done, and after how many another attempt may be made."""

    __slots__ = ("again", "done")

    def __init__(self, done: int, again: int) -> None:
        self.done = done
        self.again = again


def _attempt(lowerer: Lowerer, statement: s.For, numbers: range, first: int) -> _Found:
    """Make a loop node of iterations with these numbers, as many as are alike."""
    never = len(numbers)
    if max(abs(numbers[0]), abs(numbers[-1])) > EXACT:
        return _Found(0, never)
    before = Snapshot(lowerer)
    kept: set[str] = set()
    while True:
        try:
            trace = TracedIteration(lowerer, len(numbers))
            steps = _traced(lowerer, statement, numbers, first, trace, kept)
            break
        except Unmoved as found:
            before.restore(lowerer)
            kept |= found.names
        except Unsettled:
            before.restore(lowerer)
            return _Found(0, 1)
        except (GradcliError, Poisoned, Untraceable):
            before.restore(lowerer)
            return _Found(0, never)
    if trace.count < len(numbers) and not steps:
        before.restore(lowerer)
        return _Found(0, trace.count + 1)
    if not steps:
        before.restore(lowerer)
        return _Found(0, never)
    _charge(lowerer, statement, trace, steps)
    return _Found(trace.count, trace.count + 1)


def _charge(lowerer: Lowerer, statement: s.For, trace: TracedIteration, steps_of_iteration: int) -> None:
    """Count what the iterations cost; raises GradcliError GC505 where that is too much."""
    steps = trace.count * steps_of_iteration
    if lowerer.traces:
        lowerer.traces[-1].work += steps
    else:
        lowerer.work += steps
    if lowerer.work > lowerer.limits.work or steps > lowerer.limits.work:
        what = f"the loop would take {count_text(steps)} steps, {count_text(steps_of_iteration)} in each iteration"
        raise _too_much(lowerer, what, cover(statement.target.span, statement.bounds[-1].span))


def _traced(
    lowerer: Lowerer, statement: s.For, numbers: range, first: int, trace: TracedIteration, kept: set[str]
) -> int:
    """Trace an iteration and close the loop; the steps that an iteration takes, or 0 where unrolling is as good."""
    builder, names = lowerer.builder, lowerer.names()
    notes, uses = len(lowerer.notes), len(lowerer.uses)
    lists = {name: names[name] for name in targets(statement.body) if isinstance(names.get(name), ScriptList)}
    takers = {name: held.in_a_iteration() for name, held in lists.items()}
    assigned = sorted(targets(statement.body).difference(lists))
    before = {
        name: _on_leaves(lowerer, trace, name, names[name]) for name in assigned if name in names and name not in kept
    }
    held = {name: _mapped(names[name], lambda node: node, builder) for name in kept}
    names.update({**before, **held, **takers})
    names[statement.target.id] = number_of_iteration(builder, numbers, trace.index)
    lowerer.traces.append(trace)
    try:
        shown = lowerer.last_expression
        if lowerer.block(statement.body) is not None:
            raise Untraceable
        if len(lowerer.notes) > notes or lowerer.last_expression is not shown:
            raise Untraceable
    finally:
        lowerer.traces.pop()
    after = {name: _mapped(names[name], lambda node: node, builder) for name in assigned if name in names}
    nexts: dict[Node, Node | None] = dict.fromkeys(trace.carries)
    for name, value in before.items():
        for leaf, node in _pairs(value, after[name]):
            if node.type == leaf.type:
                nexts[leaf] = leaf if node is trace.carries.get(leaf) else node
    if any(leaf is not node for name, value in held.items() for leaf, node in _pairs(value, after[name])):
        raise Untraceable
    live = _live(lowerer, statement)[trace.count < len(numbers)]
    own = {name for name, taker in takers.items() if names[name] is not taker}  # lists that each iteration makes anew
    if own & live:
        raise Untraceable
    appended = {name: taker.appended(lowerer) for name, taker in takers.items() if name not in own and not taker.empty}
    wanted = [name for name in after if name in live and _any_depends(trace, after[name], builder)]
    for name in wanted:
        if name in lowerer.targets:
            raise Untraceable
        if name not in before or not all(leaf.type == node.type for leaf, node in _pairs(before[name], after[name])):
            raise Unsettled
    ends = [leaf for name in wanted for leaf, _ in _pairs(before[name], after[name])]
    read = [leaf for leaf in trace.leaves(appended.values()) if leaf in trace.carries]
    needed = _needed(trace, nexts, [*ends, *read])
    unmoved = {leaf for leaf in needed if nexts[leaf] is leaf}
    if unmoved:
        names_held = {name for name, value in before.items() if unmoved & {leaf for leaf, _ in _pairs(value, value)}}
        if any(nexts[leaf] is not leaf for name in names_held for leaf, _ in _pairs(before[name], before[name])):
            raise Untraceable
        raise Unmoved(names_held)
    inside = trace.inside([*[node for node in map(nexts.__getitem__, needed) if node is not None], *appended.values()])
    _check(lowerer, trace, nexts, inside)
    steps = sum(1 for node in inside if node.args) + trace.work
    if trace.count < FEWEST - 1:
        return 0
    carried_numbers = sum([leaf.type.size for leaf in needed])
    least = next(nodes for most, nodes in NODE_FROM.items() if carried_numbers <= most) if needed else STACKED_FROM
    if lowerer.mode.loops == "auto" and trace.count * max(steps, 1) * _times(lowerer) <= least:
        return 0
    builder.span = statement.span
    rows = [row for row in trace.rows.values() if row.leaf in inside]
    carried = [leaf for leaf in trace.carries if leaf in needed]
    loop = close(
        builder,
        trace.count,
        [(leaf, trace.carries[leaf]) for leaf in carried],
        [after for after in map(nexts.__getitem__, carried) if after is not None],  # none is: `_needed` refuses them
        rows=[(row.leaf, trace.stack(lowerer, row)) for row in rows],
        index=trace.index if trace.index in inside else None,
        outputs=list(appended.values()),
        first=first,
    )
    for name, node in appended.items():
        stack = loop.iterations(node)
        if takers[name].several:  # of an iteration: their rows follow one another
            stack = reshape(stack, shape=(trace.count * node.shape[0], *node.shape[1:]))
        lists[name].extend(lowerer, stack)
    names.update({name: POISON if name in own else items for name, items in lists.items()})
    places = {leaf: place for place, leaf in enumerate(carried)}
    for name in assigned:
        if name in wanted:
            pairs = list(_pairs(before[name], after[name]))
            ends = [loop.last(places[leaf]) if trace.depends(node) else node for leaf, node in pairs]
            names[name] = _filled(after[name], iter(ends), builder)
        elif name in after:
            names[name] = POISON if _any_depends(trace, after[name], builder) else after[name]
    if statement.target.id not in assigned:
        names[statement.target.id] = numbers[trace.count - 1]
    lowerer.has_loops = True
    _settle(lowerer, trace, loop, uses)
    return max(steps, 1)


def _settle(lowerer: Lowerer, trace: TracedIteration, loop: Loop, uses: int) -> None:
    """Leave nothing behind that belongs to the iteration."""
    if lowerer.last_names is not None:
        value, echoed, expect = lowerer.last_names
        outputs = [lowerer.scope[name.id] for name in echoed] if isinstance(echoed, tuple) else [value]
        lowerer.last_names = (outputs[0] if len(outputs) == 1 else tuple(outputs), echoed, expect)
    for node in [node for node in lowerer.derived if trace.depends(node)]:
        del lowerer.derived[node]
    for name in list(lowerer.uses)[uses:]:
        if name not in lowerer.leaves:  # it stood for a leaf of the iteration
            del lowerer.uses[name]
    steps, spans = loop.body.steps, lowerer.builder.other_spans
    for node in [node for node in spans if trace.depends(node)]:
        places = spans.pop(node)
        if node in loop.traced:
            spans[steps[loop.traced[node]]] = places


def number_of_iteration(builder: Builder, numbers: range, index: Node) -> Node:
    """The number that the loop counts, from that of the iteration; a subtraction, so that 0 is never -0."""
    if abs(numbers.step) != 1:
        index = mul(index, abs(numbers.step))
    if numbers.step < 0:
        return sub(numbers[0], index)
    return index if numbers[0] == 0 else add(index, numbers[0])


def _on_leaves(lowerer: Lowerer, trace: TracedIteration, name: str, value: Any) -> Any:
    """A value of the iteration before as fresh leaves, which people see by the name in the script."""

    def leaf(node: Node) -> Node:
        fresh = lowerer.builder.fresh_leaf(node.type, f"~{name}")
        trace.carries[fresh] = node
        return fresh

    return _mapped(value, leaf, lowerer.builder)


def _mapped(value: Any, change: Callable[[Node], Node], builder: Builder) -> Any:
    """A value of the language with its nodes changed."""
    if isinstance(value, Node):
        return change(value)
    if type(value) is int:  # the variable of a loop
        return change(builder.constant(value))
    if isinstance(value, tuple):
        return tuple([_mapped(item, change, builder) for item in value])
    if isinstance(value, Complex):
        return Complex(_mapped(value.real, change, builder), _mapped(value.imag, change, builder))
    if value is None or value is POISON or isinstance(value, (str, slice)):
        return value
    raise Untraceable


def _filled(value: Any, nodes: Iterator[Node], builder: Builder) -> Any:
    """A value with these nodes in place of its own."""
    return _mapped(value, lambda _: next(nodes), builder)


def _pairs(value: Any, other: Any) -> Iterator[tuple[Node, Node]]:
    """The nodes of two values, place by place; raises Unsettled where they are built in different ways."""
    if isinstance(value, Node) and isinstance(other, Node):
        yield value, other
    elif isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
        for first, second in zip(value, other, strict=True):
            yield from _pairs(first, second)
    elif isinstance(value, Complex) and isinstance(other, Complex):
        yield from ((value.real, other.real), (value.imag, other.imag))
    elif isinstance(value, (Node, tuple, Complex)) or value != other:
        raise Unsettled


def _any_depends(trace: TracedIteration, value: Any, builder: Builder) -> bool:
    answers: list[bool] = []

    def look(node: Node) -> Node:
        answers.append(trace.depends(node))
        return node

    _mapped(value, look, builder)
    return any(answers)


def _live(lowerer: Lowerer, statement: s.For) -> tuple[frozenset[str], frozenset[str]]:
    """The names that may be read behind a loop, and behind one of its iterations."""
    if not lowerer.read_behind:
        functions = (*lowerer.functions.values(), *lowerer.hand_written.values())
        lowerer.read_behind = read_behind_loops(lowerer.script, functions)
    return lowerer.read_behind.get(statement, (frozenset(), frozenset()))  # after a comprehension nothing is


def _needed(trace: TracedIteration, nexts: Mapping[Node, Node | None], wanted: list[Node]) -> set[Node]:
    """The carries that are read behind the loop or in a next iteration."""
    needed: set[Node] = set()
    waiting = list(wanted)
    while waiting:
        leaf = waiting.pop()
        if leaf in needed:
            continue
        needed.add(leaf)
        after = nexts[leaf]
        if after is None or not trace.depends(after):  # what is the same in all iterations is so from the next one on
            raise Unsettled
        waiting += [read for read in trace.leaves([after]) if read in trace.carries]
    return needed


def _check(lowerer: Lowerer, trace: TracedIteration, nexts: Mapping[Node, Node | None], inside: set[Node]) -> None:
    """End the trace where an iteration that is written out would be something else."""
    trace.settled_exponents(lowerer, nexts)
    for node in inside:
        if node.primitive.name == "cast" and node.params["kind"] == "int" and node.args[0] in trace.carries:
            raise Untraceable  # a leaf of the script that is read as positions becomes a constant


# --- which names are read behind a loop -------------------------------------------------------------------------------


def read_behind_loops(script: s.Script, functions: Iterable[s.FunctionDef]) -> dict[s.For, tuple[Names, Names]]:
    """For each loop of a script and its functions, the names that may be read after it, and after an iteration."""
    behind_loops: dict[s.For, tuple[Names, Names]] = {}
    functions = list(functions)
    called = frozenset().union(*[_names(function) for function in functions])
    output = any(isinstance(statement, s.ExpressionStatement) for statement in script.statements)
    end = called if output else called | targets(script.statements)
    for statements, live in ((script.statements, end), *((function.body, _NONE) for function in functions)):
        _mark(statements, live, {}, behind_loops)
    if called:  # a loop of the script may call functions, which read its names
        for loop, (behind, between) in behind_loops.items():
            behind_loops[loop] = behind | called, between | called
    return behind_loops


def targets(body: Iterable[s.Syntax]) -> Names:
    """The names that some statements assign to."""
    names: set[str] = set()
    waiting: list[s.Syntax] = list(body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, s.For):
            names.add(statement.target.id)
            waiting += statement.body
        elif isinstance(statement, s.If):
            waiting += (*statement.body, *statement.orelse)
        elif isinstance(statement, s.Assign):
            names.update(name.id for name in statement.targets)
        elif isinstance(statement, s.Append):
            names.add(statement.name.id)
    return frozenset(names)


def _mark(
    statements: Sequence[s.Statement],
    live: Names,
    known: dict[s.Statement, Summary],
    behind_loops: dict[s.For, tuple[Names, Names]],
) -> None:
    """Take note of what is read behind each loop of a block, if `live` is read behind the block."""
    for statement in reversed(statements):
        reads, assigns = _summary(statement, known)
        if isinstance(statement, s.For):
            again, _ = _block(statement.body, known)
            between = live | again - {statement.target.id}
            behind_loops[statement] = live, between
            _mark(statement.body, between, known, behind_loops)
        elif isinstance(statement, s.If):
            _mark(statement.body, live, known, behind_loops)
            _mark(statement.orelse, live, known, behind_loops)
        live = reads | live - assigns


def _block(statements: Sequence[s.Statement], known: dict[s.Statement, Summary]) -> Summary:
    reads, assigns = _NONE, _NONE
    for statement in statements:
        more, new = _summary(statement, known)
        reads |= more - assigns
        assigns |= new
    return reads, assigns


def _summary(statement: s.Statement, known: dict[s.Statement, Summary]) -> Summary:
    summary = known.get(statement)
    if summary is None:
        if isinstance(statement, s.Assign):
            own = frozenset(name.id for name in statement.targets)
            reads = _names(statement.value).union(*[_names(size) for size in statement.shape or ()])
            summary = (reads if statement.operator is None else reads | own), own
        elif isinstance(statement, s.If):
            (first, then), (second, other) = _block(statement.body, known), _block(statement.orelse, known)
            summary = _names(statement.test) | first | second, then & other
        elif isinstance(statement, s.For):
            reads, _ = _block(statement.body, known)
            summary = (reads - {statement.target.id}).union(*[_names(bound) for bound in statement.bounds]), _NONE
        else:
            summary = (_NONE if isinstance(statement, s.FunctionDef) else _names(statement)), _NONE
        known[statement] = summary
    return summary


def _names(root: s.Syntax) -> Names:
    """Every name in a tree."""
    return frozenset(node.id for node in s.nodes_of(root) if isinstance(node, s.Name))
