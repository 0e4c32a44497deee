"""CuPy's calls for the steps that are not kernels: matrix products, and operations as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import put, take
from gradcli.execution.plans.tracing import Whole
from gradcli.execution.plans.values import ENTRY, PRODUCT, REDUCE, VIEW, index_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.execution.plans.values import Op, Value


def viewed(value: Value, cells: Mapping[int, Any], xp: Any) -> Any:
    """The array of a value, where it stands or as views show it."""
    views = []
    while value.serial not in cells and value.number is None and value.op is not None and value.op.kind == VIEW:
        views.append(value.op)
        value = value.op.args[0]
    if value.number is not None:
        found = xp.library.full(value.shape, value.number, value.dtype)
    else:
        found = xp.library.asarray(cells[value.serial], dtype=value.dtype)
    for op in reversed(views):
        if op.function == "reshape":
            found = found.reshape(op.out.shape)
        elif op.function == "broadcast":
            found = xp.library.broadcast_to(found, op.out.shape)
        elif op.function == "permute":
            found = found.transpose(op.params)
        else:
            found = found[index_of(op.params)]
    return found


def called(op: Op, cells: Mapping[int, Any], xp: Any) -> Any:
    """The result of a step by CuPy, in C order and in the type that the plan says."""
    library = xp.library
    xs = [viewed(arg, cells, xp) for arg in op.args]
    if op.kind == PRODUCT:
        found = library.matmul(*xs)
    elif op.kind == REDUCE:
        found = REDUCTIONS[op.function](library)(xs[0], axis=op.params)
    elif op.kind == ENTRY:
        found = getattr(xp, op.function.__name__)(*xs)
    elif type(op.function) is Whole:
        found = op.function.impl(xp, *xs, **op.function.params)
    elif op.function is take:
        found = library.take(xs[0], xs[1], axis=op.params)
    elif op.function is put:
        at, size = op.params
        found = xp.put_add(xs[0], xs[1], at - xs[0].ndim, size)
    else:
        found = _plain(op, xs, xp)
    return library.ascontiguousarray(library.asarray(found, dtype=op.out.dtype)).reshape(op.out.shape)


def _plain(op: Op, xs: list[Any], xp: Any) -> Any:
    """Steps that have no line because of the types of their operands, on whole arrays."""
    library = xp.library
    if op.kind == "choice":
        return library.where(*xs)
    if op.kind == "join":
        return library.concatenate(xs, axis=op.params)
    if op.kind in ("cast", "copy"):
        return xs[0]
    found = library.zeros(op.out.shape, op.out.dtype)
    if op.kind == "added":
        found = found + xs[0]
    found[index_of(op.params[1])] += xs[-1]
    return found


REDUCTIONS: dict[Any, Any] = {
    np.add: lambda library: library.sum,
    np.maximum: lambda library: library.max,
    np.minimum: lambda library: library.min,
}
