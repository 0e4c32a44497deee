"""A node of a declared operation goes in, PyTorch's names of what it saved come out, each with where to find it.

PyTorch names saved values after the arguments of its own functions. Which are saved, the plan of the gradients says;
only the names of arguments that are not `self` and `other` stand here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.eager.rules import RuleNode

_OPERANDS = {
    "PowBackward0": ("self", "exponent"),
    "PowBackward1": ("self", "exponent"),
    "PowBackward2": ("exponent", "self"),
    "MmBackward0": ("self", "mat2"),
    "BmmBackward0": ("self", "mat2"),
    "MvBackward0": ("self", "vec"),
    "DotBackward0": ("self", "tensor"),
    "AddmmBackward0": ("input", "mat1", "mat2"),
    "WhereBackward0": ("condition", "self", "other"),
    "ClampBackward1": ("self", "min", "max"),
    "ClampBackward0": ("self", "min", "max"),
    "ClampMinBackward1": ("self", "min", "max"),
    "ClampMaxBackward1": ("self", "min", "max"),
    "MaskedFillBackward0": ("self", "mask", "value"),
    "GatherBackward0": ("self", "index"),
}
_SEVERAL = (
    "SumBackward1",
    "MeanBackward1",
    "AmaxBackward0",
    "AminBackward0",
    "LogsumexpBackward0",
    "StdBackward0",
    "VarBackward0",
)
_PARAMS = {"axis": "dim", "keepdims": "keepdim", "n": "exponent", "axes": "dims"}


def saved_names(node: RuleNode) -> dict[str, Any]:
    """By name the position among the saved values, or the value of a parameter, or None for what was not needed."""
    name = type(node).__name__
    operands = _OPERANDS.get(name, ("self", "other", "third"))
    way = node.way
    found: dict[str, Any] = {}
    for at, i in enumerate(way.reads):
        found[f"_saved_{operands[i] if i < len(operands) else f'input{i}'}"] = at
    if way.needs_out:
        found["_saved_result"] = len(way.reads)
    for key, value in way.params.items():
        if key in _PARAMS:
            if key == "axis" and type(value) is int and name in _SEVERAL:
                value = (value,)
            found.setdefault(f"_saved_{_PARAMS[key]}", Fixed(value) if type(value) is int else value)
    for operand in operands[: way.count]:
        if way.count > 1 and name in ("MulBackward0", "DivBackward0", "MmBackward0", "BmmBackward0", "DotBackward0"):
            found.setdefault(f"_saved_{operand}", None)
    return found


class Fixed(int):
    """A whole number that is a parameter, not a position."""
