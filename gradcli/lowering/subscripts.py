"""Lowers subscripts, which select the same entries as in NumPy.

Positions, slices and lists of positions are static. An array of data may be an index too: it is read when the program
runs.
"""

from __future__ import annotations

from gradcli.diagnostics import error
from gradcli.graph.exact import number_text
from gradcli.graph.node import DATA, LEAF, Node
from gradcli.graph.operand import Complex
from gradcli.language.syntax import List
from gradcli.lowering.lists import ScriptList
from gradcli.lowering.operands import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.diagnostics import Span
    from gradcli.language.syntax import Slice, Subscript, Syntax
    from gradcli.lowering.lowerer import Lowerer


def slice_of(lowerer: Lowerer, syntax: Slice, operands: list[Any]) -> slice:
    """A slice with whole ends; raises GradcliError GC306 for others."""
    given = iter(operands)
    parts = []
    for part in (syntax.lower, syntax.upper, syntax.step):
        value = None if part is None else next(given)
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
        return Complex(*(subscript(lowerer, syntax, [one, *items]) for one in (value.real, value.imag)))
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
        lowerer.untraceable()  # in a turn that is written out it may be DATA
    if not item.type.shape or (item.primitive is DATA and isinstance(syntax, List)):
        position = lowerer.static(item, syntax.span)
        pending = [position]
        for one in pending:
            if isinstance(one, tuple):
                pending.extend(one)
            elif type(one) is not int:
                raise error("GC305", f"an index must be a whole number, not {number_text(one)}", syntax.span)
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
    return lowerer.builder.call("cast", item, kind="int")
