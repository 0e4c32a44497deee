"""Lowers expressions with a stack machine over the tree in post-order, which needs no recursion.

Subscripts give what NumPy would select. Positions, slices and lists of positions are static. An array of data may be
an index too: it is read when the program runs.
"""

from __future__ import annotations

import sys

from gradcli.base.diagnostics import GradcliError, error
from gradcli.graph.exact import number_text, rational
from gradcli.graph.node import DATA, LEAF, Node
from gradcli.graph.primitive import OPERATORS, Complex
from gradcli.language.syntax import (
    Binary,
    Call,
    Compare,
    Comprehension,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    String,
    Subscript,
    Transpose,
    Tuple,
    Unary,
)
from gradcli.lowering.operands import ScriptList, joined, number, refuse_ragged, truth
from gradcli.primitives.arithmetic import neg
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import COMPARISONS, and_, cast, not_
from gradcli.primitives.movement import permute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.language.syntax import Expression, Slice, Subscript, Syntax
    from gradcli.lowering.lowerer import Lowerer

_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "raise"}


def evaluate(lowerer: Lowerer, expression: Expression) -> Any:
    """The value of an expression: a node, a list, a tuple of values, a string or None."""
    builder = lowerer.builder
    stack: list[Any] = []
    steps = iter(postfix(lowerer, expression))
    suspended: list[tuple[Any, Iterator[Any]]] = []  # open comprehensions, and the steps that follow each
    try:
        while True:
            value = None  # what a comprehension is sent to begin
            for step in steps:
                kind = type(step)
                if kind is tuple:
                    handler, syntax, count = step
                    builder.span = syntax.span
                    operands = stack[-count:] if count else []
                    if count:
                        del stack[-count:]
                    stack.append(handler(lowerer, syntax, operands))
                    continue
                builder.span = step.span
                if kind is Name:
                    stack.append(lowerer.lookup(step.id, step.span) if step.id != "None" else None)
                elif kind is Number:
                    stack.append(_number(lowerer, step))
                elif kind is Binary:
                    right = stack.pop()
                    stack[-1] = binary(lowerer, step, stack[-1], right)
                else:
                    suspended.append((lowerer.iterations(step), steps))
                    break
            else:
                value = stack.pop()
                if not suspended:
                    return value
            comprehension, following = suspended[-1]
            try:
                steps = iter(postfix(lowerer, comprehension.send(value)))
            except StopIteration as complete:
                suspended.pop()
                stack.append(complete.value)
                steps = following
    finally:
        for comprehension, _ in reversed(suspended):  # after an error: their variables end here
            comprehension.close()


def postfix(lowerer: Lowerer, expression: Expression) -> list[Any]:
    """The parts of an expression, operands before operators; cached for loops and functions, which need them again.

    Names, numbers, binary operators, comprehensions and calls of generators are left as they are; other constructs have
    their handler and number of operands.
    """
    known = lowerer.postfix.get(expression)
    if known is not None:
        return known
    code: list[Any] = []
    pending: list[Any] = [expression]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is Name or kind is Number or kind is Comprehension:
            code.append(node)
        elif kind is Binary:
            code.append(node)
            pending.append(node.left)
            pending.append(node.right)
        elif kind is Call and node.args and type(node.args[0]) is Comprehension and node.args[0].generator:
            code.append(node)
        else:
            operands = _OPERANDS[kind](node)
            code.append((_HANDLERS[kind], node, len(operands)))
            if kind is Call and operands and type(operands[0]) is List and lowerer.takes_several(node.function.id):
                # [a, b] of concatenate([a, b]) need not be rows of one array
                operands[0] = Tuple(operands[0].items, operands[0].span)
            pending.extend(operands)
    code.reverse()
    if lowerer.looping or lowerer.local is not None:
        lowerer.postfix[expression] = code
    return code


# The operands of a construct, in the order in which its handler takes them.
_OPERANDS: dict[type, Callable[[Any], list[Any]]] = {
    String: lambda node: [],
    NewAxis: lambda node: [],
    Unary: lambda node: [node.operand],
    Compare: lambda node: list(node.operands),
    Call: lambda node: [*node.args, *(keyword.value for keyword in node.keywords)],
    Subscript: lambda node: [node.value, *node.items],
    Slice: lambda node: [part for part in (node.lower, node.upper, node.step) if part is not None],
    Transpose: lambda node: [node.value],
    List: lambda node: list(node.items),
    Tuple: lambda node: list(node.items),
}


# --- what each construct means ---------------------------------------------------------------------


def _number(lowerer: Lowerer, syntax: Number) -> Any:
    known = lowerer.numbers.get(syntax.ratio)
    if known is None:
        numerator, denominator = syntax.ratio
        known = lowerer.numbers[syntax.ratio] = lowerer.builder.constant(rational(numerator, denominator))
    if not syntax.imaginary:
        return known
    if lowerer.mode.plane:
        return lowerer.builder.call("times_i", known)
    return Complex(lowerer.builder.constant(0), known)


def _unary(lowerer: Lowerer, syntax: Unary, operands: list[Any]) -> Any:
    if syntax.op == "not":
        return not_(truth(lowerer, operands[0]))
    if type(operands[0]) is Complex:
        return Complex(-operands[0].real, -operands[0].imag) if syntax.op == "-" else operands[0]
    x = number(lowerer, operands[0])
    return neg(x) if syntax.op == "-" else x


def binary(lowerer: Lowerer, syntax: Binary, x: Any, y: Any) -> Any:
    """The value of `left op right`, given both values."""
    op, builder = syntax.op, lowerer.builder
    if op == "and" or op == "or":
        x, y = together(truth(lowerer, x), truth(lowerer, y))
        return builder.call(op, x, y)
    if type(x) is Complex or type(y) is Complex:
        from gradcli.primitives import fourier  # which most scripts do not need

        if op == "**" and type(y) is not Complex:
            return fourier.raised(x, number(lowerer, y).constant)
        return fourier.combined(op, *(x if type(x) is Complex else number(lowerer, x) for x in (x, y)))
    x = x if type(x) is Node and x.type.kind == "float" else number(lowerer, x, syntax.left)
    y = y if type(y) is Node and y.type.kind == "float" else number(lowerer, y, syntax.right)
    if op == "@":
        try:
            product: Node = lowerer.call_function("matmul", [x, y], {}, syntax)
        except GradcliError as problem:
            raise _with_operands(problem, syntax, x, y) from None
        return product
    if op == "**":
        return raised(lowerer, x, y, syntax)
    if x.type is not y.type and x.type.shape != y.type.shape:
        if op in "+-" and lowerer.open_shapes.guessed and not (x.shape and y.shape):
            refuse_entry_beside_array(lowerer, syntax, x if y.shape else y)
        x, y = _fit(syntax, x, y, _VERBS[op])
    return builder.apply(lowerer.vocabulary[OPERATORS[op]], (x, y), {})


def refuse_entry_beside_array(lowerer: Lowerer, syntax: Expression, entry: Node) -> None:
    """Refuse ranks by which an entry of an array is added to a vector, or has a norm: nobody means that."""
    if any(trace.leaves([entry]) - {trace.index} for trace in lowerer.traces):
        raise error("GC301", "an entry of an array is a number, and an array is beside it", syntax.span)


def raised(lowerer: Lowerer, x: Node, y: Node, syntax: Expression) -> Node:
    """x**y; an integer exponent that depends on no leaf makes an integer power, which is defined for every base."""
    builder = lowerer.builder
    if not y.type.shape and lowerer.moving_leaf(y) is None:
        exponent = lowerer.static(y, syntax.span) if _is_finite(y) else None
        if type(exponent) is int:
            if abs(exponent) > sys.float_info.max:
                raise error("GC306", "this exponent is larger than the largest float64, 1.8e308", syntax.span)
            return builder.apply(lowerer.vocabulary["power"], (x,), {"n": exponent})
    for trace in lowerer.traces:
        trace.raised_to(lowerer, y)
    if lowerer.moving_leaf(x) is not None:  # in e**x nobody meant x to be a constant
        lowerer.note_exponent(y)
    if x.type.shape != y.type.shape:
        if isinstance(syntax, Binary):
            x, y = _fit(syntax, x, y, "raise")
        else:
            x, y = together(x, y, verb="raise")
    return builder.apply(lowerer.vocabulary["pow"], (x, y), {})


def _is_finite(y: Node) -> bool:
    return y.constant not in ("inf", "-inf", "nan")


def _fit(syntax: Binary, x: Node, y: Node, verb: str) -> tuple[Node, Node]:
    if syntax.op == "+" and {x.type.shape, y.type.shape} == {(0,), (1,)}:  # Python's lists would be joined
        hint = "write path.append(x) to add an entry, or concatenate([a, b]) to join arrays"
        raise error("GC215", "`+` adds entry by entry, and an empty list has no entry", syntax.span, help=hint)
    try:
        x, y = together(x, y, verb=verb)
    except GradcliError as problem:
        raise _with_operands(problem, syntax, x, y) from None
    return x, y


def _with_operands(problem: GradcliError, syntax: Binary, x: Node, y: Node) -> GradcliError:
    """The error of an operator with its operands underlined."""
    first = problem.diagnostics[0]
    labels = ((syntax.left.span, str(x.type)), (syntax.right.span, str(y.type)))
    return error(first.code, first.message, syntax.span, labels=labels, help=first.help, sizes=first.sizes)


def _compare(lowerer: Lowerer, syntax: Compare, operands: list[Any]) -> Node:
    values = [number(lowerer, operand) for operand in operands]
    result: Node | None = None
    for op, left, right in zip(syntax.ops, values, values[1:], strict=False):
        x, y = together(left, right, verb="compare")
        link = COMPARISONS[op](x, y)
        result = link if result is None else and_(*together(result, link))
    assert result is not None
    return result


def _transpose(lowerer: Lowerer, syntax: Transpose, operands: list[Any]) -> Node:
    x = number(lowerer, operands[0], syntax.value)
    rank = x.type.rank
    return x if rank < 2 else permute(x, axes=tuple(range(-1, -rank - 1, -1)))


def _string(lowerer: Lowerer, syntax: String, operands: list[Any]) -> str:
    return syntax.text


def _tuple(lowerer: Lowerer, syntax: Tuple, operands: list[Any]) -> tuple[Any, ...]:
    return tuple(operands)


def _new_axis(lowerer: Lowerer, syntax: NewAxis, operands: list[Any]) -> None:
    return None


def _list(lowerer: Lowerer, syntax: List, operands: list[Any]) -> Node:
    values = [number(lowerer, operand, part) for operand, part in zip(operands, syntax.items, strict=True)]
    refuse_ragged(values, [part.span for part in syntax.items])
    return joined(lowerer, values)


def _call(lowerer: Lowerer, syntax: Call, operands: list[Any]) -> Any:
    split = len(syntax.args)
    keywords: dict[str, Any] = {}
    for keyword, value in zip(syntax.keywords, operands[split:], strict=True):
        if keyword.name in keywords:
            raise error("GC205", f"the keyword `{keyword.name}` is given twice", keyword.span)
        keywords[keyword.name] = value
    return lowerer.call(syntax, operands[:split], keywords)


# --- subscripts ---------------------------------------------------------------------------------------


def slice_of(lowerer: Lowerer, syntax: Slice, operands: list[Any]) -> slice:
    """A slice with whole ends; raises GradcliError GC306 for others."""
    values = iter(operands)
    parts = []
    for part in (syntax.lower, syntax.upper, syntax.step):
        value = None if part is None else next(values)
        if value is not None and part is not None:
            value = lowerer.static(value, part.span)
            if type(value) is not int:
                raise error("GC306", f"a slice needs whole numbers, not {number_text(value)}", part.span)
        parts.append(value)
    if parts[2] == 0:
        raise error("GC306", "the step of a slice must not be 0", syntax.span)
    return slice(*parts)


def subscript(lowerer: Lowerer, syntax: Subscript, operands: list[Any]) -> Any:
    """x[items], or one of several values; raises GradcliError GC305 for anything but an index."""
    value, *items = operands
    if isinstance(value, tuple):
        position = lowerer.static(items[0], syntax.span) if len(items) == 1 else None
        if type(position) is not int or not -len(value) <= position < len(value):
            raise error("GC305", f"there are {len(value)} values here: index 0 to {len(value) - 1}", syntax.span)
        return value[position]
    if type(value) is Complex:
        return Complex(*(subscript(lowerer, syntax, [part, *items]) for part in (value.real, value.imag)))
    if type(value) is ScriptList:
        first = index_item(lowerer, items[0], syntax.items[0])
        if type(first) is int:
            return _entry(lowerer, value, first, items[1:], syntax)
    x = number(lowerer, value, syntax.value)
    if lowerer.traces:
        return lowerer.traces[-1].entry(lowerer, x, items, syntax)
    read = [index_item(lowerer, item, part) for item, part in zip(items, syntax.items, strict=True)]
    return index(lowerer, x, read, syntax.span)


def _entry(lowerer: Lowerer, value: ScriptList, position: int, items: list[Any], syntax: Subscript) -> Node:
    """An entry of a list, or the selection from it by further items; the other entries are not read."""
    size = value.size
    if not -size <= position < size:
        entries = "1 entry" if size == 1 else f"{size or 'no'} entries"
        raise error("GC305", f"index {position} is outside this list, which has {entries} here", syntax.span)
    entry = value.item(lowerer, position)
    if not items:
        return entry
    read = [index_item(lowerer, item, part) for item, part in zip(items, syntax.items[1:], strict=True)]
    return index(lowerer, entry, read, syntax.span)


def index_item(lowerer: Lowerer, item: Any, syntax: Syntax) -> Any:
    """A static position, slice, new axis or list of positions; an array of data stays a node."""
    if type(item) is ScriptList:
        item = item.as_array(lowerer)
    if not isinstance(item, Node):
        if item is None or isinstance(item, slice):
            return item
        raise error("GC305", "an index is a whole number, a slice, None, or a list of whole numbers", syntax.span)
    if item.type.kind == "bool":
        raise error(
            "GC305",
            "the size of the result would depend on data: a truth value is not an index",
            syntax.span,
            help="use where(condition, x, 0)",
        )
    if isinstance(syntax, List) and item.primitive is not DATA and lowerer.traced(item):
        lowerer.untraceable()  # in an iteration that is written out it may be DATA
    if not item.type.shape or (item.primitive is DATA and isinstance(syntax, List)):
        position = lowerer.static(item, syntax.span)
        pending = [position]
        for entry in pending:
            if isinstance(entry, tuple):
                pending.extend(entry)
            elif type(entry) is not int:
                raise error("GC305", f"an index must be a whole number, not {number_text(entry)}", syntax.span)
        return position
    return _positions(lowerer, item)


def index(lowerer: Lowerer, x: Node, items: list[Any], span: Span | None) -> Node:
    """x[items], by NumPy's rules."""
    from gradcli.primitives import shaping  # most one-liners have no subscript: start-up time is a feature

    lowerer.builder.span = span
    result: Node = shaping.index(x, tuple(items))
    return result


def _positions(lowerer: Lowerer, item: Node) -> Node:
    """An array of data as positions; if it is a leaf, it is never differentiated."""
    if item.type.kind != "float":
        return item
    if item.primitive is LEAF and item.params["name"] in lowerer.leaves:
        lowerer.fix(lowerer.leaves[item.params["name"]])
    return cast(item, kind="int")


_HANDLERS: dict[type, Callable[..., Any]] = {
    Unary: _unary,
    Compare: _compare,
    Transpose: _transpose,
    String: _string,
    Tuple: _tuple,
    NewAxis: _new_axis,
    Slice: slice_of,
    Subscript: subscript,
    List: _list,
    Call: _call,
}
