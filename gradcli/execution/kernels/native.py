"""A phase goes in; out comes one loop over its entries in machine code (numba, the extra `fast`), or None.

Our printer writes the loop from the calls of the phase: every entry of a line, at every offset at which it is wanted,
is one local variable. Additions and multiplications round as NumPy's do; exp, log, sin, cos and tanh are those of
`machine.py`. The machine code is kept in the user's cache, so the compiler runs once for a program.
GRADCLI_FAST=0 in the environment leaves everything to NumPy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.generated import function
from gradcli.execution.kernels import machine
from gradcli.execution.kernels.calls import BUFFER, COPY, INPUT, OUTPUT, PAD, SINCOS, WHERE, Number, Read
from gradcli.execution.kernels.compile_cache import CompileCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.execution.kernels.calls import Call, Phase, Slot

MOST_LINES = 2_000  # of a text
OPERATORS: dict[Any, str] = {
    np.add: "({} + {})", np.subtract: "({} - {})", np.multiply: "({} * {})", np.true_divide: "({} / {})",
    np.negative: "(-{})", np.positive: "{}", np.absolute: "abs({})", np.square: "({0} * {0})", np.sqrt: "sqrt({})",
    np.reciprocal: "(1.0 / {})", np.copysign: "copysign({}, {})",
    np.less: "({} < {})", np.less_equal: "({} <= {})", np.greater: "({} > {})", np.greater_equal: "({} >= {})",
    np.equal: "({} == {})", np.not_equal: "({} != {})", np.logical_and: "({} & {})", np.logical_or: "({} | {})",
    np.bitwise_and: "({} & {})", np.bitwise_or: "({} | {})", np.logical_not: "(not {})",
    np.maximum: "({0} if ({0} > {1}) | ({0} != {0}) else {1})",
    np.minimum: "({0} if ({0} < {1}) | ({0} != {0}) else {1})",
    np.sign: "(1.0 if {0} > 0.0 else (-1.0) if {0} < 0.0 else 0.0 if {0} == 0.0 else {0})",
    np.floor: "floor({})", np.ceil: "ceil({})", np.rint: "rint({})", np.trunc: "trunc({})",
    np.exp: "exp_({})", np.log: "log_({})", np.tanh: "tanh_({})", COPY: "{}", WHERE: "({1} if {0} else {2})",
}  # fmt: skip


class Loop(NamedTuple):
    """The text of a loop, and its arguments: `numbers`, then slots with the offset of the array that is given."""

    text: str
    numbers: tuple[Number, ...]
    arrays: tuple[tuple[Slot, int], ...]
    sums: tuple[int, ...]  # the reductions whose entries the loop leaves in an array of its own
    reads: tuple[tuple[int, Read], ...]  # the others that there are, and where their entries stand


class Unprintable(Exception):
    """A call that has no text here."""


class Stretch(NamedTuple):
    """What is the same for all blocks of a stretch of the line."""

    instead: dict[Slot, Read | None]  # a pad is its source there, or zeros (None)
    outputs: tuple[Slot, ...]  # those that reach as far
    reductions: tuple[int, ...]

    def key(self) -> Any:
        """Equal for stretches that one loop serves."""
        pads = tuple((id(slot), one is None) for slot, one in self.instead.items())
        return pads, tuple(map(id, self.outputs)), self.reductions


def loop_of(phase: Phase, stretch: Stretch) -> Loop | None:
    """The loop of a phase along a stretch."""
    try:
        return _Printer(phase, stretch).loop()
    except Unprintable:
        return None


class _Printer:
    """The lines of one loop while they are written."""

    def __init__(self, phase: Phase, stretch: Stretch) -> None:
        self.phase = phase
        self.stretch = stretch
        self.instead = stretch.instead
        self.wanted: dict[Slot, set[int]] = {}
        self.names: dict[Slot, str] = {}
        self.arrays: dict[Slot, tuple[str, int]] = {}
        self.numbers: dict[int, tuple[str, Number]] = {}
        self.angles: list[str] = []

    def loop(self) -> Loop:
        """The text: once for angles in range, and once for any, taken where the first meets one that is not."""
        phase = self.phase
        slots = dict.fromkeys([*phase.inputs, *(slot for call in phase.calls for slot in call.results)])
        if any(slot.dtype != np.float64 for slot in slots if slot.kind in (INPUT, OUTPUT)):
            raise Unprintable("another type")
        for slot in self.stretch.outputs:
            self._want(Read(slot, 0))
        sums, reads = [], []
        for at in self.stretch.reductions:
            read = self._resolved(phase.reductions[at].read)
            if read is None or read.slot.dtype != np.float64:
                raise Unprintable("a sum of zeros, or of truth values")
            if read.slot.kind == BUFFER:
                self._want(read)
                sums.append(at)
            else:
                reads.append((at, read))
        for call in reversed(phase.calls):
            for shift in sorted({s for slot in call.results for s in self.wanted.get(slot, ())}):
                for one in call.operands if call.results[0] not in self.instead else ():
                    if isinstance(one, Read):
                        self._want(Read(one.slot, one.shift + shift))
        for at, slot in enumerate(slots):
            self.names[slot] = f"v{at}"
        for at, slot in enumerate([*phase.inputs, *phase.outputs]):
            if self.wanted.get(slot):
                self.arrays[slot] = (f"a{at}", min(self.wanted[slot]))
        body = self._body("sincos_")
        other = self._body("sincos_far_") if self.angles else []
        stored = [f"s{at}[i] = {self._name(self._resolved(phase.reductions[at].read))}" for at in sums]
        if len(body) + len(other) > MOST_LINES:
            raise Unprintable("too long")
        arguments = [
            "count", *(name for name, _ in self.numbers.values()), *(name for name, _ in self.arrays.values()),
            *(f"s{at}" for at in sums),
        ]  # fmt: skip
        checks = [f"beyond = beyond | {one}" for one in self.angles]
        lines = [f"def loop({', '.join(arguments)}):", "    beyond = wide()", "    for i in range(count):"]
        lines += [f"        {line}" for line in [*body, *stored, *checks]]
        if other:
            lines += ["    if beyond:", "        for i in range(count):"]
            lines += [f"            {line}" for line in [*other, *stored]]
        numbers = tuple(number for _, number in self.numbers.values())
        arrays = tuple((slot, shift) for slot, (_, shift) in self.arrays.items())
        return Loop("\n".join([*lines, ""]), numbers, arrays, tuple(sums), tuple(reads))

    def _resolved(self, read: Read) -> Read | None:
        """What a read is behind pads; None for zeros."""
        while read.slot in self.instead:
            other = self.instead[read.slot]
            if other is None:
                return None
            read = Read(other.slot, other.shift + read.shift)
        return read

    def _want(self, read: Read) -> None:
        found = self._resolved(read)
        if found is not None:
            self.wanted.setdefault(found.slot, set()).add(found.shift)

    def _name(self, read: Read | None) -> str:
        if read is None:
            return "0.0"
        return f"{self.names[read.slot]}_{read.shift}".replace("-", "m")

    def _body(self, sincos: str) -> list[str]:
        lines = []
        for slot in self.phase.inputs:
            for shift in sorted(self.wanted.get(slot, ())):
                name, least = self.arrays[slot]
                lines.append(f"{self._name(Read(slot, shift))} = {name}[i + {shift - least}]")
        self.angles = []
        for call in self.phase.calls:
            if call.what == PAD and call.results[0] in self.instead:
                continue
            for shift in sorted({s for slot in call.results for s in self.wanted.get(slot, ())}):
                lines.append(self._line(call, shift, sincos))
            slot = call.results[0]
            if slot.kind == OUTPUT and 0 in self.wanted.get(slot, ()):
                lines.append(f"{self.arrays[slot][0]}[i] = {self._name(Read(slot, 0))}")
            for other in call.results[1:]:
                if other.kind == OUTPUT:
                    lines.append(f"{self.arrays[other][0]}[i] = {self._name(Read(other, 0))}")
        return lines

    def _line(self, call: Call, shift: int, sincos: str) -> str:
        words = [self._word(one, shift) for one in call.operands]
        names = [self._name(Read(slot, shift)) for slot in call.results]
        if call.what in (SINCOS, np.sin, np.cos):
            self.angles.append(f"far({words[0]})")
            pair = f"{sincos}({words[0]})"
            if call.what == SINCOS:
                return f"{names[0]}, {names[1]} = {pair}"
            return f"{names[0]} = {pair}[{0 if call.what is np.sin else 1}]"
        form = OPERATORS.get(COPY if call.what == PAD else call.what)  # a pad that is left is a number, repeated
        if form is None or any(slot.dtype.kind not in "fb" for slot in call.results):
            raise Unprintable(str(call.what))
        if call.what == COPY and call.results[0].dtype == np.float64:
            kinds = [one.slot.dtype for one in call.operands if isinstance(one, Read)]
            form = "(1.0 if {} else 0.0)" if kinds and kinds[0] == np.bool_ else form
        return f"{names[0]} = {form.format(*words)}"

    def _word(self, one: Any, shift: int) -> str:
        if isinstance(one, Read):
            return self._name(self._resolved(Read(one.slot, one.shift + shift)))
        if isinstance(one, Number):
            name, _ = self.numbers.setdefault(one.value.serial, (f"n{len(self.numbers)}", one))
            return name
        return literal(one.item())


def literal(value: float) -> str:
    """A number as the text has it."""
    if isinstance(value, bool):
        return repr(value)
    if value - value == 0:
        return f"({value!r})"
    return "NAN" if value != value else "INF" if value > 0 else "(-INF)"


def is_there() -> bool:
    """Whether numba can be had, and is wanted."""
    if os.environ.get("GRADCLI_FAST") == "0":
        return False
    if not _there:
        try:
            machine.compiled()
            _there.append(True)
        except ImportError:
            _there.append(False)
    return _there[0]


_there: list[bool] = []
MOST_LOOPS = 512  # whose machine code is kept
_loops: dict[str, Any] = {}


def made(text: str) -> Callable[..., None]:
    """The machine code of a text, compiled now or before."""
    known: Callable[..., None] | None = _loops.get(text)
    if known is None:
        njit, functions = machine.compiled()
        scope: dict[str, Any] = {
            "__builtins__": {}, "__name__": __name__, "abs": abs, "range": range, "sqrt": np.sqrt,
            "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc,
            "INF": machine.INF, "NAN": machine.NAN, **functions,
        }  # fmt: skip
        loop = njit(nogil=True, error_model="numpy")(function(text, scope, "loop"))
        loop._cache = CompileCache(text.encode() + Path(machine.__file__).read_bytes())
        if len(_loops) >= MOST_LOOPS:
            _loops.pop(next(iter(_loops)), None)
        known = _loops[text] = loop
    return known
