"""Compiles and launches kernels one by one; other steps are calls of CuPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.cuda.emit import OPTIONS
from gradcli.execution.cuda.kernels import THREADS, Kernel
from gradcli.execution.plans.emit_numpy import put, shown, take
from gradcli.execution.plans.ir import ENTRY, PRODUCT, REDUCE, VIEW, index_of
from gradcli.execution.plans.tracing import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.execution.plans.ir import Op, Value


class Launcher:
    """The kernels of a plan on one library, each compiled when it is first launched."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.made: dict[str, Any] = {}

    def function(self, kernel: Kernel) -> Any:
        """What launches a kernel."""
        found = self.made.get(kernel.name)
        if found is None:
            module = self.library.RawModule(code=kernel.text, options=OPTIONS)
            found = self.made[kernel.name] = module.get_function(kernel.name)
        return found

    def launch(self, kernel: Kernel, cells: dict[int, Any], count: int | None = None) -> None:
        """Run a kernel; its results are put into `cells`. `count` is the number of points, where there are any."""
        empty = self.library.empty
        made = [empty(value.shape if count is None else (count,), value.dtype) for value in kernel.values]
        reduced = [empty(op.out.shape, op.out.dtype) for op in kernel.sums]
        arrays = [flat(cells[value.serial]) for value in kernel.arrays]
        numbers = [value.dtype.type(cells[value.serial]) for value in kernel.numbers]  # taken by value
        values, sums = list(map(flat, made)), list(map(flat, reduced))
        if kernel.rows is None:
            last = [kernel.whole(kernel.entries if count is None else count)]
        elif kernel.rest is None:
            last = sums
        else:  # what the pieces of rows leave
            last = [empty((op.out.size * kernel.pieces,), op.out.dtype) for op in kernel.sums]
        self.function(kernel)((kernel.blocks(count),), (THREADS,), (*arrays, *numbers, *values, *last))
        if kernel.rest is not None:
            self.function(kernel.rest)((kernel.rest.blocks(),), (THREADS,), (*last, *sums))
        for value, found in zip((*kernel.values, *[op.out for op in kernel.sums]), (*made, *reduced), strict=True):
            cells[value.serial] = found


def flat(array: Any) -> Any:
    """An array in C order as a line: kernels count entries, and CuPy compiles one kernel whatever the axes."""
    return array if array.ndim == 1 else array.reshape(-1)


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
        found = shown(op, found, op.out.shape)
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
