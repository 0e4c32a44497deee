"""A plan for CuPy: kernels of our own and calls of its libraries, over arrays on the device.

Kernels are compiled once for each text, by CuPy, which keeps them on disk. What a run needs goes to the device once. An
array of NumPy may change between two calls, and whether it has cannot be told more cheaply than by sending it again: so
only arrays that are set read-only, and own their memory, are kept. Results are fetched together, or stay there on
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gradcli.execution.cuda.fuse import Groups
from gradcli.execution.cuda.kernels import Kernel, Writer
from gradcli.execution.cuda.launch import Launcher, called, viewed
from gradcli.execution.inputs import leaf_value
from gradcli.execution.namespaces import namespace
from gradcli.execution.plans.emit_numpy import constants
from gradcli.execution.plans.ir import base
from gradcli.execution.plans.lower import record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans.ir import Op, Value
    from gradcli.graph.node import Node


def is_on_device(value: Any) -> bool:
    """Whether a value is an array of CuPy, or of another library that lies on the device."""
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


class Residents:
    """The arrays of inputs that are kept on the device, each beside the one that it was made from."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.kept: dict[str, tuple[Any, Any]] = {}

    def array(self, node: Node, value: Any) -> Any:
        """The value of an input in C order on the device; raises GradcliError where it does not fit its leaf."""
        name = node.params["name"]
        known = self.kept.get(name)
        if known is not None and known[0]() is value:
            return known[1]
        self.kept.pop(name, None)
        made = self.xp.library.asarray(leaf_value(self.xp, node, value), order="C")
        if is_steady(value):
            self.kept[name] = (ref(value), made)
        return made


POINTS = 1 << 24  # that are sent at a time


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
            check(self.recording.ops, self.recording.outputs, self.moving)
            self.groups = Groups(self.recording, np.dtype(dtype))
            writer = Writer(self.groups, self.moving)
            self.work: list[Kernel | Op] = [
                writer.kernel(item, f"gradcli_{at}") if isinstance(item, tuple) else item
                for at, item in enumerate(writer.chains())
            ]
            self.constants = self._constants()
        self.last = self._last_readers()
        self.launcher = Launcher(self.xp.library)
        self.residents = Residents(self.xp)

    # --- what is made once --------------------------------------------------------------------------------------

    def _reads(self, item: Kernel | Op) -> list[Value]:
        return [*item.arrays, *item.numbers] if isinstance(item, Kernel) else [base(arg) for arg in item.args]

    def _constants(self) -> dict[int, Any]:
        """The arrays that no input changes and that somebody reads, on the device."""
        read = [value for item in self.work for value in self._reads(item)]
        ops = [op for op in self.recording.ops if op.out.constant]
        found = constants(ops, [*read, *map(base, self.recording.outputs)])
        return {serial: self.xp.library.asarray(np.asarray(array, order="C")) for serial, array in found.items()}

    def _last_readers(self) -> dict[int, list[int]]:
        """For each step, what nothing reads after it."""
        last: dict[int, int] = {}
        for at, item in enumerate(self.work):
            for value in self._reads(item):
                last[value.serial] = at
        kept = {base(value).serial for value in self.recording.outputs} | set(self.constants)
        found: dict[int, list[int]] = {}
        for serial, at in last.items():
            if serial not in kept:
                found.setdefault(at, []).append(serial)
        return found

    # --- what is done each time -----------------------------------------------------------------------------------

    def run(self, given: Sequence[Any], count: int | None = None, fetch: bool = True) -> list[Any]:
        """The outputs for the values of the tape's inputs: numbers as floats, arrays of NumPy, or with `fetch` off as
        arrays of CuPy. `count` is the number of points where inputs count them.
        """
        inputs = {value.serial: array for (_, value), array in zip(self.recording.inputs, given, strict=True)}
        cells = {**self.constants, **inputs}
        for at, item in enumerate(self.work):
            if isinstance(item, Kernel):
                self.launcher.launch(item, cells, count)
            else:
                cells[item.out.serial] = called(item, cells, self.xp)
            for serial in self.last.get(at, ()):
                cells.pop(serial, None)
        found = [viewed(value, cells, self.xp) for value in self.recording.outputs]
        return [self._result(node, one, fetch) for node, one in zip(self.tape.outputs, found, strict=True)]

    def answer(self, values: Mapping[str, Any], count: int | None = None, fetch: bool = False) -> list[Any] | None:
        """What `Tape.run` gives: numbers for scalars, else arrays. None where a value has batch axes of its own.

        Where a value is an array of CuPy the results stay on the device, as arrays of CuPy, unless `fetch` is set.
        """
        given = self.tape.given(values)
        there = any(map(is_on_device, given))
        if count is not None and count > POINTS and not there:
            return self._in_parts(values, count)
        arrays = []
        for (node, _), one in zip(self.tape.inputs, given, strict=True):
            moves = self.moving is not None and node.params["name"] in self.moving
            if not node.type.shape and not moves and not is_on_device(one):
                number = leaf_value(namespace("numpy", self.xp.dtype), node, one)
                arrays.append(number)
                if number.shape:
                    return None
                continue
            made = self.residents.array(node, one)
            if made.ndim != len(node.type.shape) + moves:
                return None
            arrays.append(made)
        return self.run(arrays, count, fetch=fetch or not there)

    def _in_parts(self, values: Mapping[str, Any], count: int) -> list[Any] | None:
        """The results at very many points: so many at a time that they fit the memory of any GPU."""
        found: list[Any] = []
        for start in range(0, count, POINTS):
            stop = min(start + POINTS, count)
            moved = {name: one[start:stop] for name, one in values.items() if name in (self.moving or ())}
            part = self.answer({**values, **moved}, stop - start)
            if part is None:
                return None
            found = found or [one if type(one) is float else np.empty(count, one.dtype) for one in part]
            for place, one in zip(found, part, strict=True):
                if type(one) is not float:  # else the same number at all points
                    place[start:stop] = one
        return found

    def _result(self, node: Any, found: Any, fetch: bool) -> Any:
        if not fetch:
            return found
        array = self.xp.fetch(found)
        if not array.shape:
            return float(array)
        return array if node.type.kind == "float" else array.astype("float64")


def check(ops: Sequence[Op], outputs: Sequence[Value], moving: frozenset[str] | None) -> None:
    """Raise Refused for arrays without entries, and at many points for values that are no single numbers."""
    values = [*outputs, *[value for op in ops for value in (op.out, *op.args)]]
    if any(not value.size for value in values):
        raise Refused("an array without entries")
    if any(value.dtype.kind not in "fbi" for value in values):
        raise Refused("complex numbers")
    if moving is not None and any(value.shape for value in values):
        raise Refused("arrays at many points")
