"""Diagnostics for values that are not finite: they name the operation where NaN or infinity began.

This runs only if a result is NaN or infinite, and searches from there for the nodes whose own operands are finite,
except in branches that `where` did not take. The iterations of a loop run again until one gives such a value: the
operation to blame is in the body, and the message names the iteration.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic
from gradcli.execution.loops.scan import Scan
from gradcli.execution.namespaces import namespace
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader
from gradcli.graph.node_text import operand_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.base.results.calculations import Value
    from gradcli.execution.evaluate import Tape
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node

OPERAND_NAMES = "xyzuvw"
MOST = 20  # diagnostics at most: more would say nothing new
MOST_ITERATIONS = 64  # of a loop that are searched after the first with NaN or infinity
HINTS = {"pow": "cbrt is the real cube root; a whole exponent as a number or const takes any base"}


def explain(
    tape: Tape,
    values: Mapping[str, Any],
    results: Iterable[Value],
    *,
    dtype: str = "float64",
    forward: Collection[Node] | None = None,
) -> list[Diagnostic]:
    """The reasons why results are not finite; none, at no cost, if all are finite.

    `forward` are the nodes of the script's own computation; other nodes belong to a derivative, and the message says
    so.
    """
    if all(map(is_finite, results)):
        return []
    known = tape.run_all(values, backend="numpy", dtype=dtype)
    return diagnose(tape.nodes, known, outputs=tape.outputs, forward=forward)


def is_finite(value: Value) -> bool:
    """Whether every entry of a value is a finite number."""
    if isinstance(value, float):
        return value - value == 0.0
    return bool(namespace("numpy").isfinite(value).all())


def diagnose(
    nodes: Sequence[Node],
    values: Mapping[Node, Value],
    *,
    outputs: Sequence[Node] | None = None,
    forward: Collection[Node] | None = None,
) -> list[Diagnostic]:
    """The first causes of NaN and infinity in the outputs (default: the nodes that no other one uses).

    One diagnostic for each statement and message, in the order of the computation: GC401 an operand outside
    its domain, GC402 an infinite value, GC403 an undefined one, GC404 an input, GC405 a derivative.
    """
    if outputs is None:
        used = {arg for node in nodes for arg in node.args}
        outputs = [node for node in nodes if node not in used]
    problems: list[Diagnostic] = []
    said: set[object] = set()
    causes = _causes(outputs, values)
    own = {node for node in causes if forward is None or node in forward}
    blamed = {node.span for node in own if node.span is not None}
    for node in causes:
        derivative = node not in own
        if derivative and node.span in blamed:
            continue  # the value of that statement is to blame already
        for problem in _in_loop(node, values, derivative) or [_diagnostic(node, values, derivative)]:
            if derivative and problem.span in blamed:
                continue
            if not derivative and problem.span is not None:
                blamed.add(problem.span)
            if (problem.message, problem.span) not in said and len(problems) < MOST:
                said.add((problem.message, problem.span))
                problems.append(problem)
    return problems


def _in_loop(reader: Node, values: Mapping[Node, Value], derivative: bool) -> list[Diagnostic]:
    """The first causes in the iterations of the loop that a node reads; none for any other node."""
    if not is_reader(reader):
        return []
    xp = namespace("numpy")
    scan = Scan([reader])
    body = scan.body
    args = [xp.array(values[arg], arg.type.kind) for arg in reader.args]
    at_end = scan.ends[0] if scan.stacked[0] < 0 else scan.stacked[0]
    watched = {at_end, *(body.positions[body.nexts[k]] for k in scan.carries)}
    blamed: dict[Node, list[Diagnostic]] = {}  # carries that are not finite before the iteration
    first: list[Diagnostic] = []
    searched = 0
    with xp.arithmetic():
        for iteration, iteration_values in scan.iterations(xp, args, [len(arg.shape) for arg in reader.args]):
            if all(xp.isfinite(iteration_values[at]).all() for at in watched):
                blamed = {}
                continue
            blame = _in_iteration(
                scan, iteration_values, blamed, derivative, f" in iteration {body.first + iteration + 1}"
            )
            first = first or blame.get(body.steps[at_end], [])
            blamed = {body.carried[k]: blame.get(body.nexts[k], []) for k in scan.carries}
            searched += 1
            if searched > MOST_ITERATIONS:
                break
    if scan.stacked[0] < 0:  # only what has reached the last iteration counts
        first = blame.get(body.steps[at_end], []) or first if searched else []
    return first


def _in_iteration(
    scan: Scan,
    iteration_values: Sequence[Any],
    blamed: Mapping[Node, list[Diagnostic]],
    derivative: bool,
    iteration: str,
) -> dict[Node, list[Diagnostic]]:
    """The causes of each value of an iteration that is not finite: operations of this iteration, or a carry."""
    xp = namespace("numpy")
    steps = scan.body.steps
    values = {steps[at]: iteration_values[at] for at in scan.order}
    blame: dict[Node, list[Diagnostic]] = {}
    for node, value in values.items():
        bad = ~xp.isfinite(value)
        if not bad.any():
            continue
        operands: Iterable[Node] = node.args
        if node.primitive.name == "where":
            taken = xp.asarray(values[node.args[0]]) != 0
            chosen = ((node.args[1], taken), (node.args[2], ~taken))
            operands = [arg for arg, mask in chosen if (~xp.isfinite(values[arg]) & mask).any()]
        causes = [cause for arg in operands for cause in blame.get(arg, ())]
        if node in blamed:
            causes = blamed[node]
        if not causes:
            problems = _in_loop(node, values, derivative) or [_diagnostic(node, values, derivative)]
            causes = [Diagnostic(p.code, p.message + iteration, p.span, p.labels, p.help, p.severity) for p in problems]
        blame[node] = list(dict.fromkeys(causes))[:MOST]
    return blame


def _causes(outputs: Sequence[Node], values: Mapping[Node, Value]) -> list[Node]:
    """The nodes with values that are not finite although their relevant operands are finite."""
    xp = namespace("numpy")
    state: dict[Node, Any] = {}

    def bad(node: Node) -> Any:
        if node not in state:
            state[node] = ~xp.isfinite(values[node])
        return state[node]

    causes: set[Node] = set()
    seen: set[Node] = set()
    stack = [output for output in outputs if bad(output).any()]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.primitive.name == "where":
            condition, chosen, other = node.args
            taken = xp.asarray(values[condition]) != 0
            blamed = [arg for arg, mask in ((chosen, taken), (other, ~taken)) if (bad(arg) & mask).any()]
        else:
            blamed = [arg for arg in node.args if bad(arg).any()]
        if blamed:
            stack.extend(blamed)
        else:
            causes.add(node)
    return sorted(causes, key=lambda node: node.serial)


def _diagnostic(node: Node, values: Mapping[Node, Value], derivative: bool) -> Diagnostic:
    primitive = node.primitive
    value = values[node]
    if not node.args:
        return _input(node, value)
    if not primitive.pointwise:
        return Diagnostic(
            "GC403",
            f"{primitive.name} has no finite value for this operand",
            node.span,
            help="a matrix may be singular or not positive definite, or entries too large",
            severity="warning",
        )
    outside = None if derivative else _outside(node, values)
    if outside is not None:
        position, operand, domain = outside
        which = "its argument" if len(node.args) == 1 else operand_text(node, position)
        return Diagnostic(
            "GC401",
            f"{primitive.name} is undefined at {operand}: {which} must lie in {domain}",
            node.span,
            help=HINTS.get(primitive.name),
            severity="warning",
        )
    operands, entry = _first_bad(node, values)
    undefined = entry != entry
    what = "undefined" if undefined else "infinite"
    case = _with_operands(node, operands)
    if derivative:
        where = "" if primitive.internal else f": {case}"
        return Diagnostic("GC405", f"a derivative is {what} here{where}", node.span, severity="warning")
    return Diagnostic("GC403" if undefined else "GC402", f"{case} is {what}", node.span, severity="warning")


def _with_operands(node: Node, operands: Sequence[str]) -> str:
    """The formula of an operation with numbers in it: 1/0; its name and the numbers where it has no such formula."""
    formula = node.primitive.written(node.params)
    bare = re.fullmatch(r"\w*\(.*\)", formula)  # within a call, a number needs no brackets
    texts = {name: str(value) for name, value in node.params.items()}
    for name, operand in zip(OPERAND_NAMES, operands, strict=False):
        if not re.search(rf"\b{name}\b", formula):
            return f"{node.primitive.name} at {', '.join(operands)}"
        texts[name] = operand if bare or operand[0] not in "-(" else f"({operand})"
    return re.sub(rf"\b({'|'.join(texts)})\b", lambda match: texts[match[0]], formula)


def _input(node: Node, value: Value) -> Diagnostic:
    xp = namespace("numpy")
    entry = xp.asarray(value)[~xp.isfinite(value)].reshape(-1)[0].item()
    if node.primitive is LEAF:
        subject = f"the input {node.params['name']}"
    elif node.primitive is DATA:
        subject = "the data"
    else:
        assert node.primitive is CONSTANT
        subject = "the constant"
    verb = "hold" if node.primitive is DATA else "holds" if node.type.shape else "is"
    message = f"{subject} {verb} {_number(entry)}"
    return Diagnostic("GC404", message, node.span, severity="note")


def _outside(node: Node, values: Mapping[Node, Value]) -> tuple[int, str, Interval] | None:
    """The first operand that lies outside its domain where the result is not finite."""
    xp = namespace("numpy")
    bad = ~xp.isfinite(values[node])
    for position, (arg, domain) in enumerate(zip(node.args, node.primitive.domain, strict=False)):
        x = xp.asarray(values[arg])
        if x.dtype.kind == "c":
            return None
        above = x > domain.low if domain.low_open else x >= domain.low
        below = x < domain.high if domain.high_open else x <= domain.high
        outside = bad & ~(above & below)
        if outside.any():
            return position, _number(xp.broadcast_to(x, outside.shape)[outside].reshape(-1)[0].item()), domain
    return None


def _first_bad(node: Node, values: Mapping[Node, Value]) -> tuple[list[str], complex]:
    """The operands at the first entry that is not finite, and that entry."""
    xp = namespace("numpy")
    result = xp.asarray(values[node])
    bad = ~xp.isfinite(result)
    entries = [xp.broadcast_to(values[arg], bad.shape)[bad].reshape(-1)[0].item() for arg in node.args]
    return [_number(entry) for entry in entries], result[bad].reshape(-1)[0].item()


def _number(value: complex) -> str:
    """A number as people write it: 2 rather than 2.0."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text
