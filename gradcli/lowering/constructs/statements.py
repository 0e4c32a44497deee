"""Lowers statements: assignments and declarations to leaves and intermediates, `assert a == b` to a claim.

A top-level assignment of a closed expression makes a leaf if its name is assigned only once in the script; the value is
the default of the leaf. All other assigned names are computed.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.graph.domain import NONNEGATIVE, POSITIVE, REAL, Interval
from gradcli.graph.exact import number_text
from gradcli.graph.node import LEAF, Node
from gradcli.graph.types import Type
from gradcli.language import syntax as s
from gradcli.language.unparse import unparse
from gradcli.lowering.assigned_names import CONSTANTS, is_closed, loads_data
from gradcli.lowering.constructs.expressions import binary, evaluate, index
from gradcli.lowering.lowered import Claim, shape_help
from gradcli.lowering.names import POISON, Poisoned, filled, shape_of
from gradcli.lowering.operands import ScriptList, number, plain, refuse_ragged, tagged
from gradcli.primitives.broadcasting import stretch, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.base.diagnostics import GradcliError, Span
    from gradcli.graph.types import Shape
    from gradcli.lowering.lowerer import Lowerer

_DOMAINS = {
    "real": REAL,
    "positive": POSITIVE,
    "nonnegative": NONNEGATIVE,
    "unit": Interval(0.0, 1.0),
    "symmetric": REAL,
}


# --- assignment -------------------------------------------------------------------------------------


def assign(lowerer: Lowerer, statement: s.Assign, top: bool) -> None:
    """Perform `=`, `+=` and `const`; `top`: the statement is outside of loops, branches and functions."""
    targets, value = statement.targets, statement.value
    if statement.shape is not None and targets[0].id in lowerer.names():
        raise error(
            "GC119",
            f"an entry of `{visible(targets[0].id)}` cannot be assigned",
            statement.span,
            help="build the new array with where(...) or concatenate(...)",
        )
    if targets[0].id in lowerer.appended and isinstance(value, (s.List, s.Comprehension)) and _is_plain(statement):
        _bind(lowerer, targets[0], _new_list(lowerer, targets[0], value), None)
        if lowerer.local is None:
            remember_names(lowerer, targets, statement.expect)
        return
    if top and lowerer.local is None and statement.operator is None and _is_leaf(lowerer, statement):
        if len(targets) == 1:
            _assign_leaf(lowerer, targets[0], value, statement.shape, statement.const)
        else:
            assert isinstance(value, s.Tuple)
            for target, item in zip(targets, value.items, strict=True):
                _assign_leaf(lowerer, target, item, None, statement.const)
        remember_names(lowerer, targets, statement.expect)
        return
    result = _taken(lowerer, evaluate(lowerer, value), targets)
    if statement.const:
        _refuse_leaves(lowerer, targets[0], result)
    if statement.operator is not None:
        name = targets[0]
        left = lowerer.lookup(name.id, name.span)
        if type(left) is ScriptList:
            hint = f"write {visible(name.id)}.append(...) to add an entry"
            raise error(
                "GC215", f"`{visible(name.id)}` is a list, which grows by append only", statement.span, help=hint
            )
        joined = s.Binary(statement.operator, name, value, False, statement.span)
        result = binary(lowerer, joined, left, result)
    if len(targets) == 1:
        _bind(lowerer, targets[0], result, statement.shape)
    else:
        _bind_several(lowerer, targets, result, statement.span)
    if lowerer.local is None:
        remember_names(lowerer, targets, statement.expect)


# --- lists --------------------------------------------------------------------------------------------

LIST_HELP = "begin with path = [] or path = [x], and read path after the loop that appends"


def _is_plain(statement: s.Assign) -> bool:
    """Whether an assignment is `NAME = value` and nothing more."""
    return (
        len(statement.targets) == 1 and statement.operator is None and statement.shape is None and not statement.const
    )


def _new_list(lowerer: Lowerer, target: s.Name, value: s.List | s.Comprehension) -> ScriptList:
    """The list of `path = [...]`, for a name with appends."""
    name = target.id
    if isinstance(value, s.List):
        places = [part.span for part in value.items]
        items = [number(lowerer, evaluate(lowerer, part), part) for part in value.items]
        items_held = ScriptList(items, places[0] if places else value.span)
    else:
        items_held = evaluate(lowerer, value)
        places = [value.span] * len(items_held.items)
    refuse_ragged(items_held.items, places)
    items_held.name = (len(lowerer.inside), name)
    once = len(lowerer.assigned[name]) - lowerer.appended[name] <= 1
    items_held.variable = once and name in lowerer.targets
    return items_held


def _taken(lowerer: Lowerer, value: Any, targets: tuple[s.Name, ...]) -> Any:
    """The value of an assignment without lists; a list with a name records the other name."""
    for item in value if isinstance(value, tuple) else (value,):
        if type(item) is ScriptList and item.name is not None and item.alias is None:
            item.alias = targets[0].span, f"`{visible(targets[0].id)}` takes its value here"
    return plain(lowerer, value)


def append(lowerer: Lowerer, statement: s.Append) -> None:
    """Perform `path.append(x)`; raises GradcliError GC215 if `path` is not a list, GC310 for another shape."""
    name, span = statement.name.id, statement.span
    held = lowerer.names().get(name)
    if held is POISON:
        raise Poisoned
    if type(held) is not ScriptList:
        raise _no_list(lowerer, statement, held)
    if held.alias is not None:
        hint = "values never change: take the value after the last append"
        message = f"`{visible(name)}` is appended to after its value was taken"
        raise error("GC215", message, span, labels=(held.alias,), help=hint)
    value = evaluate(lowerer, statement.value)
    if type(value) is ScriptList and value.name is not None and value.alias is None:
        value.alias = span, f"`{visible(name)}` takes its value here"
    node = number(lowerer, value, statement.value)
    if held.shape is None:
        held.place = span
    elif node.type.shape != held.shape:
        raise error(
            "GC310",
            f"append of {node.type}; the entries before are {Type('float', held.shape)}",
            span,
            labels=((held.place, "the first entry"),),
            help="every entry needs the same shape",
        )
    held.append(node)
    if lowerer.local is None:
        remember_names(lowerer, (statement.name,), None)


def _no_list(lowerer: Lowerer, statement: s.Append, held: Any) -> GradcliError:
    """The error for an append to a name that is not a list."""
    name = visible(statement.name.id)
    labels: tuple[tuple[Span, str], ...] = ()
    hint = LIST_HELP.replace("path", name)
    if lowerer.local is not None and held is None and type(lowerer.scope.get(statement.name.id)) is ScriptList:
        message = f"a function cannot append to `{name}`, a list of the script"
        hint = f"return the value, and write {name}.append(...) where the function is called"
    elif held is None:
        message = f"`{name}` is appended to, but it is not a list yet"
    elif lowerer.local is not None and len(lowerer.assigned[statement.name.id]) == lowerer.appended[statement.name.id]:
        message = f"`{name}` is a parameter, so nothing can be appended to it"
        hint = "values never change: return what is to be appended, or make a list in the function"
    else:
        number = isinstance(held, int) or (isinstance(held, Node) and not held.type.shape)
        what = "a number" if number else str(held.type) if isinstance(held, Node) else "several values"
        message = f"`{name}` is {what}, not a list"
        places = [place for place in lowerer.assigned[statement.name.id] if place != statement.name.span]
        labels = tuple((place, "assigned here") for place in places[:1])
    return error("GC215", message, statement.span, labels=labels, help=hint)


def _refuse_leaves(lowerer: Lowerer, target: s.Name, result: Any) -> None:
    """Raise GradcliError GC214 if a const reads a leaf; it may be computed from constants and data."""
    for node in result if isinstance(result, tuple) else (result,):
        leaf = lowerer.moving_leaf(node) if isinstance(node, Node) else None
        if leaf is not None:
            name = visible(leaf.params["name"])
            raise error(
                "GC214",
                f"`const {visible(target.id)}` reads the leaf `{name}`, so it is not a constant",
                target.span,
                help=f"leave out const, make `{name}` const too, or stop its gradient with detach(...)",
            )


def _is_leaf(lowerer: Lowerer, statement: s.Assign) -> bool:
    """A top-level assignment, the only one of its names in the script, of a closed value."""
    if not lowerer.leaves_allowed:
        return False
    open_names = [name for name in CONSTANTS if name in lowerer.scope or name in lowerer.at]
    if not is_closed(statement.value, lowerer.functions, open_names):
        return False
    if len(statement.targets) > 1 and not (
        isinstance(statement.value, s.Tuple) and len(statement.value.items) == len(statement.targets)
    ):
        return False
    for target in statement.targets:
        spans = lowerer.assigned.get(target.id, ())
        if len(spans) > 1:
            lowerer.reassigned.setdefault(target.id, spans[1])
            return False
    return True


def _assign_leaf(
    lowerer: Lowerer, target: s.Name, value: s.Expression, shape: tuple[s.Expression, ...] | None, const: bool
) -> None:
    name = target.id
    if name in lowerer.leaves:
        raise error(
            "GC208",
            f"`{visible(name)}` is used above, before it is assigned here",
            target.span,
            labels=((lowerer.uses[name], "used here"),) if name in lowerer.uses else (),
            help="move the assignment up",
        )
    default = _closed_value(lowerer, value)
    declared = None if shape is None else _shape(lowerer, shape)
    if declared is not None:
        default = _fit_default(name, default, declared, target.span)
    actual = shape_of(default, name) if declared is None else declared
    const = const or loads_data(value)
    lowerer.add_leaf(name, actual, default, target.span, const=const, declared=declared is not None)


def _fit_default(name: str, default: Any, shape: Shape, span: Span) -> Any:
    own = shape_of(default, name)
    if own == shape:
        return default
    if own == ():
        return filled(default, shape)
    raise error(
        "GC313",
        f"`{visible(name)}` is declared with the shape {list(shape)}, but its value has {list(own)}",
        span,
        help=f"declare the shape {list(own)}, or leave it out: the value has it",
    )


def _closed_value(lowerer: Lowerer, value: s.Expression) -> Any:
    """The float value of a closed expression: a number, nested lists, or an array."""
    if isinstance(value, s.Number):
        return value.ratio[0] / value.ratio[1]
    node = number(lowerer, evaluate(lowerer, value), value)
    if node.constant is not None and not node.type.shape and not isinstance(node.constant, str):
        return float(node.constant)
    return lowerer.evaluate_now(node)


def _shape(lowerer: Lowerer, sizes: tuple[s.Expression, ...]) -> Shape:
    shape = []
    for size in sizes:
        node = evaluate(lowerer, size)
        n = lowerer.open_shapes.size_of(node)
        n = lowerer.static(node, size.span) if n is None else n
        if type(n) is not int or n < 0:
            raise error("GC306", f"a size must be a whole number, not {number_text(n)}", size.span)
        shape.append(n)
    return tuple(shape)


def declare(lowerer: Lowerer, statement: s.Declare) -> None:
    """Perform `name in domain`: make a leaf with a domain, and a default if there is one."""
    name = statement.name.id
    if len(lowerer.assigned.get(name, ())) > 1 or name in lowerer.leaves:
        raise error("GC208", f"`{visible(name)}` is declared, so it cannot be assigned", statement.name.span)
    default = None if statement.default is None else _closed_value(lowerer, statement.default)
    if statement.shape is not None:
        _name_sizes(lowerer, statement.shape, lowerer.at.get(name, default), name)
    shape = None if statement.shape is None else _shape(lowerer, statement.shape)
    if shape is not None and default is not None:
        default = _fit_default(name, default, shape, statement.name.span)
    traits = {"symmetric": True} if statement.domain.kind == "symmetric" else {}
    if shape is None:
        free = lowerer.open_shapes.shape(name) if traits else ()
        shape = free if default is None else shape_of(default, name)
        declared = default is not None and name not in lowerer.at
    else:
        declared = True
    domain = _domain(lowerer, statement.domain)
    leaf = lowerer.add_leaf(name, shape, default, statement.name.span, domain=domain, declared=declared, **traits)
    if traits:
        lowerer.scope[name] = _symmetric(lowerer, leaf, statement)
    remember_names(lowerer, (statement.name,), None)


def _symmetric(lowerer: Lowerer, leaf: Node, statement: s.Declare) -> Node:
    """The symmetric matrix that a leaf is: its entries [i, j] and [j, i] are one variable."""
    from gradcli.primitives.triangles import in_pairs

    name, shape = visible(statement.name.id), leaf.type.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        message, sizes = f"`{name}` is declared symmetric, and it is {leaf.type}", shape if len(shape) == 2 else None
        raise error("GC321", message, statement.span, help=f"write {name}[3, 3] in symmetric", sizes=sizes)
    value = lowerer.values.get(statement.name.id)
    pairs = [] if value is None else [(i, j) for j in range(shape[0]) for i in range(j) if value[i][j] != value[j][i]]
    if pairs:
        i, j = pairs[0]
        message = f"`{name}` is declared symmetric, and its entries [{i}, {j}] and [{j}, {i}] differ"
        raise error("GC413", message, statement.span, help=f"give a symmetric matrix, or write {name}[n, n] in real")
    lowerer.builder.span = None  # nobody wrote these steps
    matrix: Node = in_pairs(leaf)
    lowerer.symmetric[matrix] = leaf
    message = f"entries [i, j] and [j, i] of `{name}` are one variable: its gradient is G + G.T - diag(diag(G))"
    lowerer.notes.append(Diagnostic("GC413", message, statement.span, severity="note"))
    return matrix


def _name_sizes(lowerer: Lowerer, sizes: tuple[s.Expression, ...], value: Any, leaf: str) -> None:
    """Set each free name among declared sizes to the size of the leaf's value, or else to a small size of its own."""
    own = () if value is None else shape_of(value, leaf)
    for axis, size in enumerate(sizes):
        if not isinstance(size, s.Name) or size.id in lowerer.scope or size.id in lowerer.at or size.id in CONSTANTS:
            continue
        if len(own) == len(sizes):
            lowerer.sizes[size.id] = own[axis]
            lowerer.scope[size.id] = lowerer.builder.constant(own[axis])
        else:
            n = lowerer.open_shapes.size(size.id, len(lowerer.sizes))
            lowerer.size_symbol(size.id, n)
            message = f"`{visible(size.id)}` is a free size: {n} is chosen here"
            if lowerer.open_shapes.chosen:
                lowerer.notes.append(Diagnostic("GC311", message, size.span, severity="note"))


def _domain(lowerer: Lowerer, domain: s.Domain) -> Interval:
    if domain.kind != "interval":
        return _DOMAINS[domain.kind]
    assert domain.low is not None and domain.high is not None
    low, high = _interval_end(lowerer, domain.low), _interval_end(lowerer, domain.high)
    if not low < high:
        raise error("GC408", f"the interval from {low:g} to {high:g} is empty", domain.span)
    return Interval(low, high, domain.low_open, domain.high_open)


def _interval_end(lowerer: Lowerer, value: s.Expression) -> float:
    bound = _closed_value(lowerer, value)
    if not isinstance(bound, float):
        raise error("GC309", "an end of an interval is a number", value.span)
    return bound


def _bind(lowerer: Lowerer, target: s.Name, value: Any, shape: tuple[s.Expression, ...] | None) -> None:
    if shape is not None:
        node = number(lowerer, value)
        wanted = _shape(lowerer, shape)
        if node.type.shape not in ((), wanted):
            raise error("GC313", f"the value is {node.type}, not of shape {list(wanted)}", target.span)
        value = stretch(node, wanted)
    name = target.id
    if name in lowerer.leaves and lowerer.local is None:
        raise error(
            "GC208",
            f"`{visible(name)}` is read above as a leaf, so it cannot be assigned here",
            target.span,
            labels=((lowerer.uses[name], "read here"),) if name in lowerer.uses else (),
            help=f"assign `{visible(name)}` before it is used, or choose another name",
        )
    if name in lowerer.targets and isinstance(value, Node) and len(lowerer.assigned.get(name, ())) <= 1:
        value = tagged(lowerer, value)
    lowerer.names()[name] = value


def _bind_several(lowerer: Lowerer, targets: tuple[s.Name, ...], value: Any, span: Span) -> None:
    if isinstance(value, Node) and value.type.rank and value.type.shape[0] == len(targets):
        value = tuple(index(lowerer, value, [i], span) for i in range(len(targets)))
    if not isinstance(value, tuple) or len(value) != len(targets):
        count = len(value) if isinstance(value, tuple) else 1
        what = f"{count} value{'s' * (count != 1)}"
        if isinstance(value, Node) and value.type.rank:
            what = f"an array of {value.type.shape[0]} {'entries' if value.type.rank == 1 else 'rows'}"
        raise error("GC312", f"{len(targets)} names, but {what}", span, help="give as many names as values")
    for target, item in zip(targets, value, strict=True):
        _bind(lowerer, target, item, None)


def remember_names(lowerer: Lowerer, targets: tuple[s.Name, ...], expect: str | None) -> None:
    """The names that were assigned last: the output of a script without an expression."""
    if len(targets) == 1:
        lowerer.last_names = (lowerer.scope[targets[0].id], targets, expect)
    else:
        lowerer.last_names = (tuple(lowerer.scope[target.id] for target in targets), targets, expect)


# --- claims ---------------------------------------------------------------------------------------


def asserted(lowerer: Lowerer, statement: s.Assert) -> None:
    """A claim, as far as it is needed. The limits do not apply to a claim that is only read."""
    sides = _sides(statement)
    lowerer.untraceable()
    if lowerer.mode.claiming == "skipped":
        return
    if lowerer.mode.claiming == "kept":
        lowerer.claims.append(_claim(lowerer, statement, *sides))
        return
    before = lowerer.builder.count
    try:
        _claim(lowerer, statement, *sides)
    except GradcliError as problem:
        if not all(diagnostic.code.startswith("GC5") for diagnostic in problem.diagnostics):
            raise
    finally:
        lowerer.builder.limit += lowerer.builder.count - before


def _sides(statement: s.Assert) -> tuple[s.Expression, s.Expression]:
    test = statement.test
    if not isinstance(test, s.Compare) or test.ops != ("==",):
        raise error(
            "GC314",
            "a claim is an equality",
            test.span,
            help="write assert grad(y, x) == 2*x; a tolerance goes into a pragma: # rtol=1e-8",
        )
    left, right = test.operands
    return left, right


def _claim(lowerer: Lowerer, statement: s.Assert, left_syntax: s.Expression, right_syntax: s.Expression) -> Claim:
    test = statement.test
    left = number(lowerer, evaluate(lowerer, left_syntax), left_syntax)
    right = number(lowerer, evaluate(lowerer, right_syntax), right_syntax)
    derivative = _derivative(lowerer, left_syntax)
    claimed = right_syntax
    if derivative is None and (derivative := _derivative(lowerer, right_syntax)) is not None:
        left, right, claimed = right, left, left_syntax
    lowerer.builder.span = statement.span
    if left.type.shape != right.type.shape:
        try:
            left, right = together(left, right, verb="compare")
        except GradcliError:
            raise error(
                "GC314",
                f"the sides of the claim are {left.type} and {right.type}",
                test.span,
                labels=((left_syntax.span, str(left.type)), (right_syntax.span, str(right.type))),
                help=shape_help(left.type.shape, right.type.shape, unparse(claimed)),
            ) from None
    leaf = None
    if derivative is not None and derivative[1].primitive is LEAF:
        leaf = derivative[1].params["name"]
    return Claim(
        left,
        right,
        statement.span,
        unparse(test),
        lowerer.source,
        statement.rtol,
        statement.expect,
        leaf,
        derivative,
    )


def _derivative(lowerer: Lowerer, expression: s.Expression) -> tuple[Node, Node] | None:
    if not isinstance(expression, s.Call) or expression.function.id != "grad" or len(expression.args) != 2:
        return None
    output, target = (plain(lowerer, evaluate(lowerer, arg)) for arg in expression.args)
    target = lowerer.symmetric.get(target, target)
    return (number(lowerer, output), target) if isinstance(target, Node) else None
