"""Loops over single numbers in machine code (numba, the extra `fast`): the text of `emit_python` with arrays around it.

Nothing is contracted or reassociated, and functions are those of the C library, as for Python's floats. What
numba does not support stays Python code. The machine code is kept in the user's cache.
"""

from __future__ import annotations

import math
import os
from importlib import import_module
from pathlib import Path

from gradcli.execution.emit_python import Printer, turn_lines
from gradcli.execution.generated import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.execution.plans.ir import Value
    from gradcli.execution.scan_turns import ArrayTurns
    from gradcli.graph.loop import Body

WORK = 30_000_000  # steps of all turns so far, from which on compiling (one to two seconds) is worth it
LANES_WORK = (
    10**7
)  # entries of all steps and turns from which machine code for arrays is worth the start of its compiler
CALL = 1 << 10  # entries that are computed while a function of NumPy is called
ROUNDING = ("floor", "ceil", "trunc", "rint")  # Python's give whole numbers
HELPERS = (
    *("sign", "maximum", "minimum", "fmax", "fmin", "heaviside", "logical_and", "logical_or", "logical_xor"),
    *("expit", "log_expit", "logaddexp", "logit", "xlogy", "xlog1py", "sinc", "square", "mod"),
)
_helpers: dict[str, Any] = {}


def compiled_core(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> Callable[[int, Any, Any, Any], None] | None:
    """A function of (turns, states, columns, fixed values); None without numba, or where it lacks an operation.

    `states` [turns + 1, carries] holds the first state and takes those after each turn; `columns` are [columns, turns].
    """
    if os.environ.get("GRADCLI_FAST") == "0":
        return None
    try:
        numba: Any = import_module("numba")
    except ImportError:
        return None
    text, functions = _text(body, order, carries, columns, fixed)
    scope: dict[str, Any] = {"__builtins__": {}, "__name__": __name__, "range": range}
    for name, value in functions.items():
        helper = _helper(numba, name.removeprefix("_f_"), value)
        if helper is None:
            return None
        scope[name] = helper
    from gradcli.execution.namespaces import math_
    from gradcli.execution.plans.compile_cache import CompileCache

    loop = numba.njit(nogil=True, error_model="numpy")(function(text, scope, "loop"))
    loop._cache = CompileCache(text.encode() + Path(math_.__file__).read_bytes())
    matrix = numba.float64[:, ::1]
    try:
        loop.compile(numba.void(numba.int64, matrix, matrix, numba.float64[::1]))
    except numba.core.errors.NumbaError:
        return None
    run: Callable[[int, Any, Any, Any], None] = loop
    return run


def _helper(numba: Any, name: str, value: Any) -> Any:
    """What numba calls for a function of the namespace `math`, or a number; None for what it does not know."""
    if isinstance(value, float) or getattr(value, "__module__", "") == math.__name__:
        return value
    if name in ROUNDING:
        return getattr(import_module("numpy"), name)
    if name not in HELPERS:
        return None
    if name not in _helpers:
        _helpers[name] = numba.njit(nogil=True, error_model="numpy")(value)
    return _helpers[name]


def _text(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> tuple[str, dict[str, Any]]:
    printer = Printer()
    lines: list[str] = []
    ends = [body.positions[body.nexts[k]] for k in carries]
    words = turn_lines(printer, body, order, (*carries, *columns, *fixed), ends, lines)

    def read(at: int, text: str) -> str:
        return f"x{at} = {text} != 0.0" if body.steps[at].type.kind == "bool" else f"x{at} = {text}"

    states = [f"x{k}" for k in carries]
    kept = [
        f"states[t + 1, {place}] = {f'1.0 if x{k} else 0.0' if body.steps[k].type.kind == 'bool' else f'x{k}'}"
        for place, k in enumerate(carries)
    ]
    turn = [
        *(read(at, f"columns[{place}, t]") for place, at in enumerate(columns)),
        *lines,
        f"{', '.join(states)} = {', '.join(words[body.nexts[k]].text for k in carries)}",
        *kept,
    ]
    whole = [
        "def loop(turns, states, columns, fixed):",
        *(f"    {read(k, f'states[0, {place}]')}" for place, k in enumerate(carries)),
        *(f"    {read(at, f'fixed[{place}]')}" for place, at in enumerate(fixed)),
        "    for t in range(turns):",
        *(f"        {line}" for line in turn),
        "",
    ]
    return "\n".join(whole), printer.functions


# --- arrays, entry by entry -------------------------------------------------------------------------------------


class Lanes:
    """The turns of a recurrence of arrays of one shape, each entry of which is by itself, in machine code."""

    def __init__(self, turns: ArrayTurns, run: Callable[..., None]) -> None:
        self.turns = turns
        self._run = run
        self.shape = turns.carries[0].shape

    def run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """The states before each turn and those after the last one."""
        np: Any = import_module("numpy")
        size = self.turns.carries[0].size
        states = np.empty((turns + 1, len(before), size))
        for place, value in enumerate(before):
            states[0, place] = value.reshape(-1)
        table = np.empty((len(columns), turns, size))
        for place, column in enumerate(columns):
            table[place] = column.reshape(turns, -1)
        held = np.empty((len(fixed), size))
        for place, value in enumerate(fixed):
            held[place] = value.reshape(-1)
        self._run(turns, size, states[0].copy(), states[1:], table, held)
        stacks = [states[:, place].reshape(turns + 1, *self.shape) for place in range(len(before))]
        return [stack[:-1] for stack in stacks], [stack[-1] for stack in stacks]


def compiled_lanes(turns: ArrayTurns, count: int) -> Lanes | None:
    """The machine code of so many turns; None where it is not worth its making, cannot be printed, or without numba."""
    from gradcli.execution.plans import emit_numba
    from gradcli.execution.plans.ir import CHOICE, ENTRY

    shape = turns.carries[0].shape
    size = turns.carries[0].size
    if not shape or any(one.shape != shape or one.dtype != "float64" for one in turns.carries):
        return None
    if count * (size + CALL) * len(turns.ops) < LANES_WORK or not emit_numba.is_there():
        return None
    names: dict[int, str] = {}
    lines = []
    for kind, values in (
        ("now[{}, e]", turns.carries),
        ("columns[{}, t, e]", turns.columns),
        ("fixed[{}, e]", turns.fixed),
    ):
        for place, value in enumerate(values):
            if value.shape not in ((), shape) or value.dtype.kind not in "fb":
                return None
            names[value.serial] = f"x{value.serial}"
            lines.append(f"x{value.serial} = {kind.format(place)}{' != 0.0' if value.dtype.kind == 'b' else ''}")

    def word(value: Value) -> str:
        return names[value.serial] if value.number is None else emit_numba.literal(value.number.item())

    for op in turns.ops:
        form = {CHOICE: emit_numba.WHERE, ENTRY: emit_numba.OPERATORS.get(op.function)}.get(op.kind)
        if form is None or op.out.shape not in ((), shape) or op.out.dtype.kind not in "fb":
            return None
        lines.append(f"x{op.out.serial} = {form.format(*map(word, op.args))}")
        names[op.out.serial] = f"x{op.out.serial}"
    for place, value in enumerate(turns.nexts):
        lines.append(f"now[{place}, e] = states[t, {place}, e] = {word(value)}")
    text = ["def loop(turns, size, now, states, columns, fixed):", "    wide()", "    for t in range(turns):"]
    text += ["        for e in range(size):", *[f"            {line}" for line in lines], ""]
    return Lanes(turns, emit_numba.made("\n".join(text)))
