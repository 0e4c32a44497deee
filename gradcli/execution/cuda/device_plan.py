"""A plan for CuPy: kernels of our own and calls of its libraries, over arrays on the device.

Kernels are compiled once for each text, by CuPy, which keeps them on disk. What a run needs goes to the device once. An
array of NumPy may change between two calls, and comparing it costs as much as sending it again: so
only arrays that are set read-only, and own their memory, are kept. Results are fetched together, or stay there on
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gradcli.execution.compiler.emit_numpy import constants, show_view
from gradcli.execution.compiler.ir import ENTRY, PRODUCT, REDUCE, VIEW, base, index_of
from gradcli.execution.compiler.lower import record
from gradcli.execution.compiler.recording_namespace import ImplCall
from gradcli.execution.cuda.emit import OPTIONS
from gradcli.execution.cuda.fuse import FusionGroup, Groups
from gradcli.execution.cuda.kernels import THREADS, Kernel, KernelWriter
from gradcli.execution.inputs import leaf_value, plain_result
from gradcli.execution.namespaces import REFUSED, namespace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue
    from gradcli.execution.evaluate import Tape
    from gradcli.graph.node import Node


def is_on_device(value: Any) -> bool:
    """Whether a value is an array on the device, of CuPy or another library."""
    return hasattr(value, "__cuda_array_interface__")


def is_steady(value: Any) -> bool:
    """Whether an array of NumPy cannot change: read-only, and no view of one that may be written."""
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return False
        if value.base is None:
            return True
        value = value.base
    return False


def flat(array: Any) -> Any:
    """An array in C order as a line: kernels count entries, and CuPy compiles one kernel whatever the axes."""
    return array if array.ndim == 1 else array.reshape(-1)


def viewed(value: PlanValue, cells: Mapping[int, Any], xp: Any) -> Any:
    """The array of a value, where it stands or as views show it."""
    views = []
    while value.serial not in cells and value.number is None and value.op is not None and value.op.kind == VIEW:
        views.append(value.op)
        value = value.op.args[0]
    if value.number is not None:
        array = xp.library.full(value.shape, value.number, value.dtype)
    else:
        array = xp.library.asarray(cells[value.serial], dtype=value.dtype)
    for op in reversed(views):
        array = show_view(op, array, op.out.shape)
    return array


def called(op: Op, cells: Mapping[int, Any], xp: Any) -> Any:
    """The result of a step by CuPy, in C order and in the type of the plan."""
    library = xp.library
    xs = [viewed(arg, cells, xp) for arg in op.args]
    if op.kind == PRODUCT:
        result = library.matmul(*xs)
    elif op.kind == REDUCE:
        result = REDUCTIONS[op.function](library)(xs[0], axis=op.params)
    elif op.kind == ENTRY:
        result = getattr(xp, op.function.__name__)(*xs)
    elif type(op.function) is ImplCall:
        result = op.function.impl(xp, *xs, **op.function.params)
    else:
        result = _plain(op, xs, xp)
    return library.ascontiguousarray(library.asarray(result, dtype=op.out.dtype)).reshape(op.out.shape)


def _plain(op: Op, xs: list[Any], xp: Any) -> Any:
    """Steps that have no line because of the types of their operands, on whole arrays."""
    library = xp.library
    if op.kind == "choice":
        return library.where(*xs)
    if op.kind == "join":
        return library.concatenate(xs, axis=op.params)
    if op.kind in ("cast", "copy"):
        return xs[0]
    result = library.zeros(op.out.shape, op.out.dtype)
    if op.kind == "added":
        result = result + xs[0]
    result[index_of(op.params[1])] += xs[-1]
    return result


REDUCTIONS: dict[Any, Any] = {
    np.add: lambda library: library.sum,
    np.maximum: lambda library: library.max,
    np.minimum: lambda library: library.min,
}


MOST_NODES = 100_000


class Refused(Exception):
    """A program that a plan for the device does not take."""


class DevicePlan:
    """A computation on arrays of fixed shapes, or on numbers at many points.

    `moving` names the inputs whose first axis counts points; every value of the program is one number then. Raises
    Refused for other programs, and what `namespace("cupy")` raises where CuPy is missing.
    """

    def __init__(self, tape: Tape, dtype: str = "float64", moving: Collection[str] | None = None) -> None:
        self.xp = namespace("cupy", dtype)
        self.tape = tape
        self.moving = None if moving is None else frozenset(moving)
        host = namespace("numpy", dtype)
        with host.arithmetic():
            self.recording = record(tape, dtype)
            values = [*self.recording.outputs, *[value for op in self.recording.ops for value in (op.out, *op.args)]]
            if any(not value.size or value.dtype.kind not in "fbi" for value in values):
                raise Refused("an array without entries, or complex numbers")
            if moving is not None and any(value.shape for value in values):
                raise Refused("arrays at many points")
            self.groups = Groups(self.recording, np.dtype(dtype))
            writer = KernelWriter(self.groups, self.moving)
            self.work: list[Kernel | Op] = [
                writer.kernel(item, f"gradcli_{at}") if isinstance(item, FusionGroup) else item
                for at, item in enumerate(self.groups.work)
            ]
            self.constants = self._constants()
        self.last = self._last_readers()
        self.launched: dict[str, Any] = {}  # functions of kernels, each compiled when it is first launched
        self.kept: dict[str, tuple[Any, Any]] = {}  # inputs on the device, each beside what it was made from

    # --- what is made once --------------------------------------------------------------------------------------

    def _reads(self, item: Kernel | Op) -> list[PlanValue]:
        return [*item.arrays, *item.numbers] if isinstance(item, Kernel) else [base(arg) for arg in item.args]

    def _constants(self) -> dict[int, Any]:
        """The constant arrays that a step reads, on the device."""
        read = [value for item in self.work for value in self._reads(item)]
        ops = [op for op in self.recording.ops if op.out.constant]
        arrays = constants(ops, [*read, *map(base, self.recording.outputs)])
        return {serial: self.xp.library.asarray(np.asarray(array, order="C")) for serial, array in arrays.items()}

    def _last_readers(self) -> dict[int, list[int]]:
        """For each step, what nothing reads after it."""
        last: dict[int, int] = {}
        for at, item in enumerate(self.work):
            for value in self._reads(item):
                last[value.serial] = at
        kept = {base(value).serial for value in self.recording.outputs} | set(self.constants)
        dead: dict[int, list[int]] = {}
        for serial, at in last.items():
            if serial not in kept:
                dead.setdefault(at, []).append(serial)
        return dead

    # --- what is done each time -----------------------------------------------------------------------------------

    def run(self, values: Sequence[Any], count: int | None = None, fetch: bool = True) -> list[Any]:
        """The outputs for the values of the tape's inputs: numbers as floats, arrays of NumPy, or with `fetch` off as
        arrays of CuPy. `count` is the number of points where inputs count them.
        """
        inputs = {value.serial: array for (_, value), array in zip(self.recording.inputs, values, strict=True)}
        cells = {**self.constants, **inputs}
        for at, item in enumerate(self.work):
            if isinstance(item, Kernel):
                self._launch(item, cells, count)
            else:
                cells[item.out.serial] = called(item, cells, self.xp)
            for serial in self.last.get(at, ()):
                cells.pop(serial, None)
        arrays = [viewed(value, cells, self.xp) for value in self.recording.outputs]
        return [plain_result(self.xp.fetch(array)) if fetch else array for array in arrays]

    def _function(self, kernel: Kernel) -> Any:
        """What launches a kernel."""
        function = self.launched.get(kernel.name)
        if function is None:
            module = self.xp.library.RawModule(code=kernel.text, options=OPTIONS)
            function = self.launched[kernel.name] = module.get_function(kernel.name)
        return function

    def _launch(self, kernel: Kernel, cells: dict[int, Any], count: int | None = None) -> None:
        """Run a kernel; its results are put into `cells`. `count` is the number of points, where there are any."""
        empty = self.xp.library.empty
        fresh = [empty(value.shape if count is None else (count,), value.dtype) for value in kernel.values]
        reduced = [empty(op.out.shape, op.out.dtype) for op in kernel.sums]
        arrays = [flat(cells[value.serial]) for value in kernel.arrays]
        numbers = [value.dtype.type(cells[value.serial]) for value in kernel.numbers]  # taken by value
        values, sums = list(map(flat, fresh)), list(map(flat, reduced))
        if kernel.rows is None:
            last = [kernel.whole(kernel.entries if count is None else count)]
        elif kernel.rest is None:
            last = sums
        else:  # what the pieces of rows leave
            last = [empty((op.out.size * kernel.pieces,), op.out.dtype) for op in kernel.sums]
        self._function(kernel)((kernel.blocks(count),), (THREADS,), (*arrays, *numbers, *values, *last))
        if kernel.rest is not None:
            self._function(kernel.rest)((kernel.rest.blocks(),), (THREADS,), (*last, *sums))
        for value, array in zip((*kernel.values, *[op.out for op in kernel.sums]), (*fresh, *reduced), strict=True):
            cells[value.serial] = array

    def answer(self, values: Mapping[str, Any], count: int | None = None, fetch: bool = False) -> list[Any] | None:
        """What `Tape.run` gives: numbers for scalars, else arrays. None where a value has batch axes of its own.

        Where a value is an array of CuPy the results stay on the device, as arrays of CuPy, unless `fetch` is set.
        """
        inputs = self.tape.input_values(values)
        there = any(map(is_on_device, inputs))
        arrays = []
        for (node, _), value in zip(self.tape.inputs, inputs, strict=True):
            moves = self.moving is not None and node.params["name"] in self.moving
            if not node.type.shape and not moves and not is_on_device(value):
                number = leaf_value(namespace("numpy", self.xp.dtype), node, value)
                arrays.append(number)
                if number.shape:
                    return None
                continue
            array = self._input(node, value)
            if array.ndim != len(node.type.shape) + moves:
                return None
            arrays.append(array)
        return self.run(arrays, count, fetch=fetch or not there)

    def _input(self, node: Node, value: Any) -> Any:
        """The value of an input in C order on the device; raises GradcliError where it does not fit its leaf."""
        name = node.params["name"]
        known = self.kept.pop(name, None)
        same = known is not None and known[0]() is value
        array = known[1] if known and same else self.xp.library.asarray(leaf_value(self.xp, node, value), order="C")
        if same or is_steady(value):
            self.kept[name] = (ref(value), array)
        return array


def device_plan(tape: Tape, dtype: str = "float64", moving: Collection[str] | None = None) -> DevicePlan | None:
    """The plan of a tape for float64 or float32; None where the evaluator has to do it.

    `moving` names the inputs whose first axis counts points. Raises GradcliError GC713 where CuPy is missing.
    """
    if dtype not in ("float64", "float32") or len(tape.nodes) > MOST_NODES or tape.loops:
        return None
    try:
        return DevicePlan(tape, dtype, moving)
    except (*REFUSED, Refused):
        return None
