"""Loops over single numbers in machine code (numba, the extra `fast`): the text of `scan_python` with arrays around it.

Nothing is contracted or reassociated, and functions are those of the C library, as Python's floats have them. What
numba does not know stays Python code. The machine code is kept in the user's cache.
"""

from __future__ import annotations

import math
import os
from importlib import import_module
from pathlib import Path

from gradcli.execution.expressions import Printer
from gradcli.execution.generated import function
from gradcli.execution.scan_python import turn_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.graph.loop import Body

WORK = 30_000_000  # steps of all turns so far, from which on compiling (one to two seconds) is worth it
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
    from gradcli.execution.kernels.compile_cache import CompileCache
    from gradcli.execution.namespaces import math_

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
