"""Converts values of the language to nodes that an operation takes: as floats, as truth, as a variable."""

from __future__ import annotations

from gradcli.diagnostics import error
from gradcli.graph.node import Node
from gradcli.graph.operand import Complex
from gradcli.lowering.lists import ScriptList
from gradcli.primitives.comparison import name as tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.language.syntax import Syntax
    from gradcli.lowering.names import Names


def number(names: Names, value: Any, syntax: Syntax | None = None) -> Node:
    """A value as floats; truth values count as 0 and 1. Raises GradcliError GC309 for anything but numbers."""
    if type(value) is Node:
        if value.type.kind == "float":
            return value
        return names.builder.call("cast", value, kind="float")
    if type(value) is ScriptList:
        return value.as_array(names)
    span = names.builder.span if syntax is None else syntax.span
    if isinstance(value, tuple):
        raise error("GC309", f"{len(value)} values stand where one is needed", span, help="write an array as [a, b]")
    if isinstance(value, Complex):
        take = "take abs(z), real(z) or imag(z) of what fft returns"
        raise error("GC309", "complex numbers stand where real ones are needed", span, help=take)
    what = "text" if isinstance(value, str) else "None" if value is None else "a slice"
    raise error("GC309", f"{what} is used where a number is needed", span)


def truth(names: Names, value: Any) -> Node:
    """A value as truth: numbers other than 0 are true."""
    x = value if type(value) is Node else number(names, value)
    if x.type.kind == "bool":
        return x
    return names.builder.call("not_equal", number(names, x), 0)


def tagged(names: Names, value: Node) -> Node:
    """A value as a variable of its own, so that `grad` can name it."""
    result: Node = tag(number(names, value), id=names.builder.count)
    return result
