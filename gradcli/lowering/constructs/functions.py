"""Lowers functions of a script: they are inlined where they are called, with names of their own.

A function with a rule `def f.vjp` becomes an operation: its value is the inlined body, and the rule computes its
cotangents. No other part of the engine can tell that the rule was written by hand.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error, visible
from gradcli.graph.node import Node
from gradcli.graph.program import HandRule, Leaf
from gradcli.language import syntax as s
from gradcli.lowering.assigned_names import DERIVATIVES, appended_names, assigned_names, derivative_targets
from gradcli.lowering.constructs import remembered_calls
from gradcli.lowering.operands import number, plain, tagged
from gradcli.lowering.statics import read_leaves
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms.handwritten import by_hand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.primitive import Primitive
    from gradcli.lowering.lowerer import Lowerer

MOST_CALLS = 64  # functions inside functions; each takes a few Python frames
MOST_IDLE = 30_000  # calls that make no new node: doubling calls would go on for ever without reaching a limit


# --- definitions --------------------------------------------------------------------------------------


def define(lowerer: Lowerer, statements: Sequence[s.Statement]) -> None:
    """Record every function and rule; raises GradcliError if a rule has no function."""
    for statement in statements:
        if not isinstance(statement, s.FunctionDef):
            continue
        name = statement.name.id
        table = lowerer.functions if statement.rule is None else lowerer.hand_written
        if name in table:
            raise error(
                "GC208",
                f"`{visible(name)}` is defined twice",
                statement.name.span,
                labels=((table[name].name.span, "defined here"),),
                help="choose another name for one of them",
                source=lowerer.source,
            )
        if name in DERIVATIVES:
            raise error(
                "GC208",
                f"`{name}` is a derivative operator and keeps its meaning",
                statement.name.span,
                source=lowerer.source,
            )
        table[name] = statement
    for name, rule in lowerer.hand_written.items():
        function = lowerer.functions.get(name)
        if function is None:
            raise error(
                "GC212",
                f"there is a rule for `{visible(name)}`, but no function of this name",
                rule.name.span,
                help=f"define it: def {visible(name)}(...): return ...",
                source=lowerer.source,
            )
        if len(rule.params) != len(function.params) + 1:
            raise error(
                "GC212",
                f"{visible(name)}.vjp takes {len(function.params)} operands and the cotangent, "
                f"so {len(function.params) + 1} parameters, not {len(rule.params)}",
                rule.name.span,
                labels=((function.name.span, "the function"),),
                help=f"write def {visible(name)}.vjp({', '.join([p.id for p in function.params] + ['ct'])}): ...",
                source=lowerer.source,
            )


# --- calls ------------------------------------------------------------------------------------------


def inline(lowerer: Lowerer, name: str, args: Sequence[Any], keywords: Mapping[str, Any], syntax: s.Call) -> Any:
    """The value of a call of a function of the script."""
    function = lowerer.functions[name]
    bound = [plain(lowerer, value) for value in _bound(lowerer, function, args, keywords, syntax)]
    if name not in lowerer.hand_written:
        key = remembered_calls.key_of(lowerer, name, bound)
        if key is not None and (known := lowerer.known_calls.get(key)) is not None:
            value, lowerer.builder.span = known
            return value
        value = run_body(lowerer, function, bound, syntax.span)
        if key is not None:
            remembered_calls.keep(lowerer, key, value)
        return value
    operands = [number(lowerer, value) for value in bound]
    if not operands:
        raise error("GC212", f"{name} has a rule, so it needs an operand", syntax.span)
    value = run_body(lowerer, function, operands, syntax.span)
    if not isinstance(value, Node):
        raise error("GC212", f"{name} has a rule, so it must return one value", syntax.span)
    if name not in lowerer.ruled:
        lowerer.untraceable()
        lowerer.ruled[name] = _ruled(lowerer, name, len(operands))
        _record_rule(lowerer, name, operands)
    return lowerer.builder.apply(lowerer.ruled[name], (number(lowerer, value), *operands), {})


def _bound(
    lowerer: Lowerer, function: s.FunctionDef, args: Sequence[Any], keywords: Mapping[str, Any], syntax: s.Call
) -> list[Any]:
    names = [param.id for param in function.params]
    bound = dict(zip(names, args, strict=False))
    for name, value in keywords.items():
        if name not in names or name in bound:
            problem = "is given twice" if name in bound else "is not a parameter of it"
            raise error("GC205", f"{function.name.id}: `{visible(name)}` {problem}", syntax.span)
        bound[name] = value
    if len(args) > len(names) or len(bound) != len(names):
        count = len(args) + len(keywords)
        raise error(
            "GC205",
            f"{visible(function.name.id)} takes {len(names)} argument{'s' * (len(names) != 1)}, not {count}",
            syntax.span,
            labels=((function.name.span, "defined here"),),
            help=f"its form is {visible(function.name.id)}({', '.join(names)})",
        )
    return [bound[name] for name in names]


def run_body(lowerer: Lowerer, function: s.FunctionDef, values: Sequence[Any], span: Span | None) -> Any:
    """The value of a function's body for these operands, in a scope of its own."""
    name = function.name.id
    if name in lowerer.inside:
        raise error(
            "GC204", f"`{visible(name)}` calls itself", span, help="functions are inlined; write a loop instead"
        )
    if len(lowerer.inside) >= MOST_CALLS:
        message = f"`{visible(name)}` is called inside {MOST_CALLS} other calls"
        raise error("GC509", message, span, help="functions are inlined; write a loop instead")
    if lowerer.idle > MOST_IDLE:
        message = f"`{visible(name)}` is one of more than {MOST_IDLE:,} calls that repeat an earlier call"
        raise error("GC509", message, span, help="call it once and give the result a name")
    known = lowerer.scanned.get(function)
    if known is None:
        known = lowerer.scanned[function] = (
            derivative_targets(function),
            assigned_names(function.body),
            appended_names(function.body),
        )
    wanted, assigned, appended = known
    local: dict[str, Any] = {}
    for param, value in zip(function.params, values, strict=True):
        local[param.id] = tagged(lowerer, value) if param.id in wanted and isinstance(value, Node) else value
    outer, scanned = lowerer.local, (lowerer.targets, lowerer.assigned, lowerer.appended)
    lowerer.local, lowerer.targets, lowerer.assigned, lowerer.appended = local, wanted, assigned, appended
    lowerer.inside.append(name)
    before = lowerer.builder.count
    try:
        result = lowerer.block(function.body)
    finally:
        lowerer.inside.pop()
        lowerer.local, (lowerer.targets, lowerer.assigned, lowerer.appended) = outer, scanned
    lowerer.idle += lowerer.builder.count == before
    lowerer.close_block(before, f"{name}()", span)
    if result is None:
        raise error(
            "GC213",
            f"`{visible(name)}` comes to its end without a return",
            span,
            labels=((function.name.span, "defined here"),),
            help="end it with return ..., or add an else",
        )
    return plain(lowerer, result[0])


# --- hand-written rules --------------------------------------------------------------------------------


def _ruled(lowerer: Lowerer, name: str, count: int) -> Primitive:
    """The operation of a function with a rule: arguments are its value, then its operands."""
    summary = f"The function {name} of the script, with its hand-written rule."
    return by_hand(name, summary, count, lambda value, xs, ct: cotangents(lowerer, name, xs, ct))


def cotangents(lowerer: Lowerer, name: str, xs: Sequence[Node], ct: Node) -> tuple[Node, ...]:
    """The result of a function's rule for operands and a cotangent: one node per operand, of its shape."""
    rule = lowerer.hand_written[name]
    result = run_body(lowerer, rule, [*xs, ct], rule.name.span)
    values = result if isinstance(result, tuple) else (result,)
    if len(values) != len(xs):
        raise error(
            "GC212",
            f"{visible(name)}.vjp returns {len(values)} value{'s' * (len(values) != 1)} for {len(xs)} operands",
            rule.name.span,
            help="return one cotangent for each operand: return (..., ...)",
        )
    fitted = []
    for value, x, param in zip(values, xs, rule.params, strict=False):
        node = number(lowerer, value)
        if node.type.shape not in ((), x.type.shape):
            raise error(
                "GC212",
                f"{visible(name)}.vjp returns {node.type} for `{param.id}`, which is {x.type}",
                rule.name.span,
            )
        fitted.append(stretch(node, x.type.shape))
    return tuple(fitted)


def _record_rule(lowerer: Lowerer, name: str, operands: Sequence[Node]) -> None:
    """Record the rule for `check`, on inputs of its own."""
    function, rule = lowerer.functions[name], lowerer.hand_written[name]
    leaves = []
    for param, operand in zip(function.params, operands, strict=True):
        node = lowerer.builder.leaf(f"{name}.{param.id}", operand.type.shape)
        leaves.append(Leaf(param.id, node, span=param.span))
    nodes = [leaf.node for leaf in leaves]
    output = number(lowerer, run_body(lowerer, function, nodes, rule.name.span))
    for outer in read_leaves(output):
        if outer not in nodes and not lowerer.is_const(outer):
            raise error(
                "GC212",
                f"`{visible(name)}` has a rule, but reads `{outer.params['name']}`, which is not an operand of it",
                function.name.span,
                labels=tuple((lowerer.uses[n], "read here") for n in [outer.params["name"]] if n in lowerer.uses),
                help="a rule covers operands only: make it a parameter, or const",
            )
    ct = lowerer.builder.leaf(f"{name}.{rule.params[-1].id}", output.type.shape)
    results = cotangents(lowerer, name, nodes, ct)
    lowerer.rules.append(HandRule(name, rule.span, tuple(leaves), output, ct, results, tuple(operands)))
