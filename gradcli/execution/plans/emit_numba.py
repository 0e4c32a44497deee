"""Loops over blocks as machine code (numba, the extra `fast`): one pass over the entries for all steps of a loop.

A loop is printed where each of its arrays has one entry for each row that is cut: every value is a local variable.
Additions and multiplications round as NumPy's do; exp, log, sin, cos and tanh are those of `polynomials.py`. Sums are
NumPy's, over the entries that the loop leaves. The machine code is kept in the user's cache, so the compiler runs once
for a program. GRADCLI_FAST=0 in the environment leaves everything to NumPy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.generated import function
from gradcli.execution.plans import polynomials
from gradcli.execution.plans.compile_cache import CompileCache
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.values import CAST, CHOICE, COPY, ENTRY, REDUCE, VIEW, base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.schedule import Schedule
    from gradcli.execution.plans.values import Op, Value

WORK = 10**7  # steps times entries, from which machine code is worth the start of its compiler
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
    np.exp: "exp_({})", np.log: "log_({})", np.tanh: "tanh_({})",
}  # fmt: skip
TRUTHS = {
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or,
}  # fmt: skip
WHERE = "({1} if {0} else {2})"
SINES = {np.sin: 0, np.cos: 1}


class MachineCode:
    """A function of the arrays `inputs` and `outputs` of one block that takes all steps but `sums`."""

    __slots__ = ("function", "inputs", "outputs", "sums")

    def __init__(self, text: str, inputs: Sequence[Value], outputs: Sequence[Value], sums: Sequence[Op]) -> None:
        self.inputs, self.outputs, self.sums = tuple(inputs), tuple(outputs), tuple(sums)
        self.function = made(text)
        self.function(0, *[np.zeros(1, value.dtype) for value in (*inputs, *outputs)])  # compiled for these types

    def run(self, *arrays: Any) -> None:
        """Compute one block; arrays with gaps are copied."""
        solid = [np.ascontiguousarray(one).reshape(-1) for one in arrays]
        self.function(len(solid[-1]), *solid)
        for one, other in zip(arrays[len(self.inputs) :], solid[len(self.inputs) :], strict=True):
            if not one.flags.c_contiguous:
                one[...] = other.reshape(one.shape)


def compiled_loops(schedule: Schedule, once: bool) -> None:
    """Give machine code to the loops of a schedule that are worth it; `once`: where the schedule runs once."""
    for event in schedule.events:
        if isinstance(event, Loop) and event.count * (1 if once else len(event.ops)) >= WORK and is_there():
            event.code = machine_code(event)


def machine_code(loop: Loop) -> MachineCode | None:
    """The machine code of a loop; None where a step of it cannot be printed."""
    try:
        return _Printer(loop).printed()
    except Unprintable:
        return None


class Unprintable(Exception):
    """A step that has no text here."""


class _Printer:
    """The lines of one loop while they are written."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.made = {op.out.serial for op in loop.ops}
        self.names: dict[int, str] = {}
        self.inputs: list[Value] = []
        self.numbers: list[str] = []
        self.body: list[str] = []
        self.angles: dict[str, tuple[str, str]] = {}  # the names of sine and cosine, by that of the angle

    def printed(self) -> MachineCode:
        """The text: once for angles in range, and once for any, taken where the first meets one that is not."""
        sums = [op for op in self.loop.ops if op.kind == REDUCE]
        if len(sums) == len(self.loop.ops) or any(op not in self.loop.summed for op in sums):
            raise Unprintable("nothing but sums, or sums of rows")
        for op in self.loop.ops:
            if op.kind != REDUCE:
                self._step(op)
        kept = {value.serial: value for value in self.loop.stored}
        for op in sums:
            source = base(op.args[0])
            if source.serial in self.made:
                kept[source.serial] = source
        outputs = list(kept.values())
        stored = [f"b{place}[i] = {self.names[value.serial]}" for place, value in enumerate(outputs)]
        far = [line.replace("sincos_(", "sincos_far_(") for line in self.body] if self.angles else []
        if len(self.body) + len(far) > MOST_LINES:
            raise Unprintable("too long")
        arguments = ["count", *(f"a{at}" for at in range(len(self.inputs))), *(f"b{at}" for at in range(len(outputs)))]
        checks = [f"beyond = beyond | far({angle})" for angle in self.angles]
        lines = [f"def loop({', '.join(arguments)}):", "    beyond = wide()", *(f"    {line}" for line in self.numbers)]
        lines += ["    for i in range(count):", *(f"        {line}" for line in [*self.body, *stored, *checks])]
        if far:
            lines += ["    if beyond:", "        for i in range(count):"]
            lines += [f"            {line}" for line in [*far, *stored]]
        return MachineCode("\n".join([*lines, ""]), self.inputs, outputs, sums)

    def _step(self, op: Op) -> None:
        out = op.out
        if out.serial not in self.loop.at or out.size != self.loop.count or out.dtype not in (np.float64, np.bool_):
            raise Unprintable(str(op))
        words = [self._word(arg) for arg in op.args]
        if op.kind == ENTRY and op.function in SINES:
            pair = self.angles.get(words[0])
            if pair is None:
                pair = self.angles[words[0]] = (f"s{len(self.names)}", f"c{len(self.names)}")
                self.body.append(f"{', '.join(pair)} = sincos_({words[0]})")
            self.names[out.serial] = pair[SINES[op.function]]
            return
        name = self.names[out.serial] = f"x{len(self.names)}"
        self.body.append(f"{name} = {_form(op).format(*words)}")

    def _word(self, value: Value) -> str:
        """What the text says for an operand: a number, a local variable, an entry of an array."""
        if value.number is not None:
            return literal(value.number.item())
        shown = value
        while shown.serial not in self.names and shown.op is not None and _is_reshaped(shown.op, self.loop):
            shown = shown.op.args[0]
        if shown.serial not in self.names:
            self._given(value)
            shown = value
        return self.names[shown.serial]

    def _given(self, value: Value) -> None:
        whole = value.serial not in self.loop.at
        if base(value).serial in self.made or value.size != (1 if whole else self.loop.count):
            raise Unprintable("some entries of an array")
        if value.dtype not in (np.float64, np.bool_):
            raise Unprintable("another type")
        name = self.names[value.serial] = f"x{len(self.names)}"
        (self.numbers if whole else self.body).append(f"{name} = a{len(self.inputs)}[{0 if whole else 'i'}]")
        self.inputs.append(value)


def _is_reshaped(op: Op, loop: Loop) -> bool:
    return op.kind == VIEW and op.function == "reshape" and op.out.size == loop.count


def _form(op: Op) -> str:
    """How a step is written, with places for its operands."""
    truth = op.out.dtype.kind == "b"
    truths = [arg.dtype.kind == "b" for arg in op.args]
    if op.kind == CHOICE and truths == [True, truth, truth]:
        return WHERE
    if op.kind in (COPY, CAST) and truth == truths[0]:
        return "{}"
    if op.kind == CAST and not truth:
        return "(1.0 if {} else 0.0)"
    form = OPERATORS.get(op.function) if op.kind == ENTRY else None
    if form is None or truth != (op.function in TRUTHS) or (not truth and any(truths)):
        raise Unprintable(str(op))
    return form


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
            polynomials.compiled()
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
        njit, functions = polynomials.compiled()
        scope: dict[str, Any] = {
            "__builtins__": {}, "__name__": __name__, "abs": abs, "range": range, "sqrt": np.sqrt,
            "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc,
            "INF": polynomials.INF, "NAN": polynomials.NAN, **functions,
        }  # fmt: skip
        loop = njit(nogil=True, error_model="numpy")(function(text, scope, "loop"))
        loop._cache = CompileCache(text.encode() + Path(polynomials.__file__).read_bytes())
        if len(_loops) >= MOST_LOOPS:
            _loops.pop(next(iter(_loops)), None)
        known = _loops[text] = loop
    return known
