"""Loops as machine code (numba, the extra `fast`): over the entries of blocks, and over the iterations of recurrences.

A loop is printed where each of its arrays has one entry for each row that is cut: every value is a local variable.
Additions and multiplications round as NumPy's do; exp, log, sin, cos and tanh are arithmetic of our own, of which a
compiler makes vector code, unlike of calls. Sums are NumPy's, over the entries that the loop leaves. The machine code
is kept in the user's cache, so the compiler runs once for a program. GRADCLI_FAST=0 in the environment leaves
everything to NumPy.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from importlib import import_module
from math import prod
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.user_cache import digest, read_sealed, write_sealed
from gradcli.execution.compiler.emit_numpy import places, show_view
from gradcli.execution.compiler.ir import ADDED, CAST, CHOICE, COPY, ENTRY, JOIN, PLACE, REDUCE, VIEW, Op, base
from gradcli.execution.compiler.schedule import BlockLoop
from gradcli.execution.emit_python import OPERATORS as WORDS
from gradcli.execution.emit_python import Printer, iteration_lines
from gradcli.execution.generated import function
from gradcli.execution.namespaces import math_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.execution.compiler.ir import PlanValue
    from gradcli.execution.compiler.schedule import Schedule
    from gradcli.execution.loops.array_iterations import ArrayIterations
    from gradcli.graph.loop import Body

# --- exp, log, sin, cos, tanh -----------------------------------------------------------------------------------
#
# Every function takes one double and has neither branch nor loop, only choices. The polynomials are Chebyshev fits of
# our own; the reductions are Cody and Waite's. Errors: exp and log below 1.5 ulp, sin and cos (up to 100,000) and tanh
# below 2.5 ulp, whether products and sums are contracted or not.

FARTHEST = 1e5
ROUNDING = 1.5 * 2.0**52  # added and taken away, it rounds to a whole number, whose bits stand at the end of the sum
ROUNDING_BITS = 0x4338000000000000
MANTISSA, ONE_BITS, BIAS = 0xFFFFFFFFFFFFF, 0x3FF0000000000000, 1023
LEAST_NORMAL, SCALE, SCALED = 2.0**-1022, 2.0**54, 54.0
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
TWO_OVER_PI = 0.6366197723675814
RIGHT_1, RIGHT_2, RIGHT_3 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21  # parts of pi/2
ROOT_TWO = 1.4142135623730951
INF, NAN = math.inf, math.nan


def bits(x: float) -> int:
    raise TypeError("given by the compiler")


def real(n: int) -> float:
    raise TypeError("given by the compiler")


def exp_(x: float) -> float:
    """exp: x = k log 2 + r, in two factors 2**k, so that subnormal results come out right."""
    x = 710.0 if x > 710.0 else x
    x = -746.0 if x < -746.0 else x
    t = x * LOG2_E + ROUNDING
    n = bits(t) - ROUNDING_BITS
    k = t - ROUNDING
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = 2.0914679595617734e-09
    p = p * r + 2.510520668068106e-08
    p = p * r + 2.7557273660822466e-07
    p = p * r + 2.7557255425009614e-06
    p = p * r + 2.480158732553378e-05
    p = p * r + 0.00019841269874801073
    p = p * r + 0.0013888888888883752
    p = p * r + 0.008333333333326141
    p = p * r + 0.04166666666666667
    p = p * r + 0.1666666666666667
    p = p * r + 0.5
    half = n >> 1
    return (1.0 + (r + r * r * p)) * real((half + BIAS) << 52) * real((n - half + BIAS) << 52)


def log_(x: float) -> float:
    """log: x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2)."""
    small = x < LEAST_NORMAL
    y = x * SCALE if small else x
    word = bits(y)
    k = (real((word >> 52) + ROUNDING_BITS) - ROUNDING) - BIAS
    k = k - SCALED if small else k
    m = real((word & MANTISSA) | ONE_BITS)
    large = m > ROOT_TWO
    m = m * 0.5 if large else m
    k = k + 1.0 if large else k
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 0.13086640233968908
    p = p * z + 0.1326877179171568
    p = p * z + 0.15386239753109723
    p = p * z + 0.1818179563920822
    p = p * z + 0.2222222239172257
    p = p * z + 0.28571428570803575
    p = p * z + 0.4000000000000088
    p = p * z + 0.6666666666666666
    half = 0.5 * f * f
    result = k * LN2_HIGH - ((half - (s * (half + p * z) + k * LN2_LOW)) - f)
    result = -INF if x == 0.0 else result
    result = NAN if x < 0.0 else result
    return result if x < INF else x


def sincos_(x: float) -> tuple[float, float]:
    """sin and cos up to 100,000: x = n pi/2 + r."""
    t = x * TWO_OVER_PI + ROUNDING
    n = bits(t)
    k = t - ROUNDING
    r = ((x - k * RIGHT_1) - k * RIGHT_2) - k * RIGHT_3
    z = r * r
    p = 1.5918128937554457e-10
    p = p * z - 2.5051131840044124e-08
    p = p * z + 2.7557316102528646e-06
    p = p * z - 0.00019841269836758528
    p = p * z + 0.008333333333330948
    p = p * z - 0.16666666666666666
    sine = r + r * z * p
    p = -1.138263220199036e-11
    p = p * z + 2.0876146265300598e-09
    p = p * z - 2.7557317271714906e-07
    p = p * z + 2.480158729876566e-05
    p = p * z - 0.0013888888888887398
    p = p * z + 0.041666666666666664
    half = 0.5 * z
    whole = 1.0 - half
    cosine = whole + (((1.0 - whole) - half) + z * z * p)
    odd = (n & 1) == 1
    first = cosine if odd else sine
    second = sine if odd else cosine
    first = -first if (n & 2) == 2 else first
    second = -second if ((n + 1) & 2) == 2 else second
    return (x if x == 0.0 else first), second


def sincos_far_(x: float) -> tuple[float, float]:
    """sin and cos of any angle: those that are far out by the library."""
    if abs(x) <= FARTHEST:
        return sincos_(x)
    return math.sin(x), math.cos(x)


def tanh_(x: float) -> float:
    """tanh: a polynomial up to 0.55, 1 - 2/(exp(2x) + 1) beyond."""
    size = abs(x)
    z = x * x
    p = -2.060263804879809e-05
    p = p * z + 8.511295362274356e-05
    p = p * z - 0.0002346346293139328
    p = p * z + 0.0005889360143672369
    p = p * z - 0.001455661822465716
    p = p * z + 0.003592110377734
    p = p * z - 0.008863234397741929
    p = p * z + 0.021869488493663804
    p = p * z - 0.053968253967433946
    p = p * z + 0.13333333333332714
    p = p * z - 0.3333333333333333
    far = math.copysign(1.0 - 2.0 / (exp_(2.0 * size) + 1.0), x)
    near = x if size == 0.0 else x + x * z * p  # tanh(-0) is -0
    return far if size > 0.55 else near


def far(x: float) -> int:
    """1 for an angle that is too large for `sincos_`."""
    return 0 if abs(x) <= FARTHEST else 1


FUNCTIONS: tuple[Any, ...] = (exp_, log_, sincos_, sincos_far_, tanh_, far)


def jit_compiler() -> tuple[Callable[..., Any], dict[str, Any]]:
    """numba's compiler with our options, and our functions compiled by it, by name. Raises ImportError without numba.

    Nothing is reassociated. Inside our functions a product and a sum may be one instruction, which rounds once: that
    halves their work, and no error grows. Operations of the script keep IEEE's roundings.
    """
    numba: Any = import_module("numba")
    if not _jitted:
        ir: Any = import_module("llvmlite.ir")
        intrinsic = import_module("numba.extending").intrinsic
        types = numba.types

        def as_bits(context: Any, x: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.bitcast(args[0], ir.IntType(64))

            return types.int64(types.float64), code

        def as_real(context: Any, n: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.bitcast(args[0], ir.DoubleType())

            return types.float64(types.int64), code

        def widest(context: Any) -> Any:
            """0; and the function that calls it is compiled for the longest vectors of the processor."""

            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                set.add(builder.function.attributes, '"prefer-vector-width"="512"')
                return ir.Constant(ir.IntType(64), 0)

            return types.int64(), code

        scope: dict[str, Any] = {**globals(), "bits": intrinsic(as_bits), "real": intrinsic(as_real)}
        for function in FUNCTIONS:
            own = FunctionType(function.__code__, scope, function.__name__)
            scope[function.__name__] = _jitted[function.__name__] = numba.njit(
                nogil=True, error_model="numpy", fastmath={"contract"}
            )(own)
        _jitted["wide"] = intrinsic(widest)
    return numba.njit, dict(_jitted)


_jitted: dict[str, Any] = {}


# --- loops ------------------------------------------------------------------------------------------------------

WORK = 10**7  # steps times entries, from which machine code is worth the start of its compiler
MOST_LINES = 2_000  # of a text
WHERE = WORDS["where"]
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
TRUTHS = {*COMPARISONS, np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or}
OPERATORS: dict[Any, str] = {  # those of Python, and what has another form here
    **{getattr(np, name): form for name, form in WORDS.items() if name != "where"},
    np.absolute: "abs({})", np.square: "({0} * {0})", np.sqrt: "sqrt({})", np.copysign: "copysign({}, {})",
    np.logical_and: "({} & {})", np.logical_or: "({} | {})", np.bitwise_and: "({} & {})", np.bitwise_or: "({} | {})",
    np.maximum: "({0} if ({0} > {1}) | ({0} != {0}) else {1})",
    np.minimum: "({0} if ({0} < {1}) | ({0} != {0}) else {1})",
    np.sign: "(1.0 if {0} > 0.0 else (-1.0) if {0} < 0.0 else 0.0 if {0} == 0.0 else {0})",
    np.floor: "floor({})", np.ceil: "ceil({})", np.rint: "rint({})", np.trunc: "trunc({})",
    np.exp: "exp_({})", np.log: "log_({})", np.tanh: "tanh_({})",
}  # fmt: skip
SINES = {np.sin: 0, np.cos: 1}


class MachineCode:
    """A function of the arrays `inputs` and `outputs` of one block that takes all steps but `sums`."""

    __slots__ = ("function", "inputs", "outputs", "sums")

    def __init__(
        self, text: str, inputs: Sequence[PlanValue], outputs: Sequence[PlanValue], sums: Sequence[Op]
    ) -> None:
        self.inputs, self.outputs, self.sums = tuple(inputs), tuple(outputs), tuple(sums)
        self.function = compiled_text(text)
        self.function(0, *[np.zeros(1, value.dtype) for value in (*inputs, *outputs)])  # compiled for these types

    def run(self, *arrays: Any) -> None:
        """Compute one block; arrays with gaps are copied."""
        solid = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
        self.function(len(solid[-1]), *solid)
        for array, other in zip(arrays[len(self.inputs) :], solid[len(self.inputs) :], strict=True):
            if not array.flags.c_contiguous:
                array[...] = other.reshape(array.shape)


def compiled_loops(schedule: Schedule, once: bool) -> None:
    """Give machine code to the loops of a schedule that are worth it; `once`: where the schedule runs once."""
    for event in schedule.events:
        if isinstance(event, BlockLoop) and event.count * (1 if once else len(event.ops)) >= WORK and is_there():
            with suppress(Unprintable):
                event.code = _Printer(event).printed()


class Unprintable(Exception):
    """A step that has no text here."""


class _Printer:
    """The lines of one loop while they are written."""

    def __init__(self, loop: BlockLoop) -> None:
        self.loop = loop
        self.made = {op.out.serial for op in loop.ops}
        self.names: dict[int, str] = {}
        self.inputs: list[PlanValue] = []
        self.numbers: list[str] = []
        self.body: list[str] = []
        self.angles: dict[str, tuple[str, str]] = {}  # the names of sine and cosine, by that of the angle

    def printed(self) -> MachineCode:
        """The text: a loop for angles in range, then one for all angles, which runs where one was out of range."""
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
            raise Unprintable(op.kind)
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

    def _word(self, value: PlanValue) -> str:
        """The expression of an operand: a number, a local variable, an entry of an array."""
        if value.number is not None:
            return literal(value.number.item())
        shown = value
        while shown.serial not in self.names and shown.op is not None and shown.op.function == "reshape":
            if shown.size != self.loop.count:
                break
            shown = shown.op.args[0]
        if shown.serial not in self.names:
            self._load(value)
            shown = value
        return self.names[shown.serial]

    def _load(self, value: PlanValue) -> None:
        whole = value.serial not in self.loop.at
        if base(value).serial in self.made or value.size != (1 if whole else self.loop.count):
            raise Unprintable("some entries of an array")
        if value.dtype not in (np.float64, np.bool_):
            raise Unprintable("another type")
        name = self.names[value.serial] = f"x{len(self.names)}"
        (self.numbers if whole else self.body).append(f"{name} = a{len(self.inputs)}[{0 if whole else 'i'}]")
        self.inputs.append(value)


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
        raise Unprintable(op.kind)
    return form


def literal(value: float) -> str:
    """A number as the text has it."""
    if isinstance(value, bool):
        return repr(value)
    if value - value == 0:
        return f"({value!r})"
    return "NAN" if value != value else "INF" if value > 0 else "(-INF)"


def is_there() -> bool:
    """Whether numba is installed, and not switched off by GRADCLI_FAST=0."""
    if os.environ.get("GRADCLI_FAST") == "0":
        return False
    if not _there:
        try:
            jit_compiler()
            _there.append(True)
        except ImportError:
            _there.append(False)
    return _there[0]


_there: list[bool] = []
CACHE = "loops"  # folder of the user's cache
MOST_LOOPS = 512  # whose machine code is kept
_loops: dict[str, Any] = {}


def compiled_text(text: str, functions: Mapping[str, Any] | None = None) -> Callable[..., None]:
    """The machine code of a text, compiled now or before; `functions` are further ones that it calls."""
    known: Callable[..., None] | None = _loops.get(text)
    if known is None:
        if len(_loops) >= MOST_LOOPS:
            _loops.pop(next(iter(_loops)), None)
        scope = {
            "abs": abs, "sqrt": np.sqrt, "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
            "trunc": np.trunc, "INF": INF, "NAN": NAN, **jit_compiler()[1], **(functions or {}),
        }  # fmt: skip
        known = _loops[text] = _machine_code(text, scope, __file__)
    return known


def _machine_code(text: str, scope: Mapping[str, Any], source: str) -> Callable[..., None]:
    """The function of a text; its machine code is kept in the user's cache until the functions of `source` change."""
    names = {"__builtins__": {}, "__name__": __name__, "range": range, **scope}
    loop: Any = import_module("numba").njit(nogil=True, error_model="numpy")(function(text, names, "loop"))
    loop._cache = CompileCache(text.encode() + Path(source).read_bytes())
    return loop  # type: ignore[no-any-return]


class CompileCache:
    """The machine code of one function on disk, in the form in which numba's dispatcher uses its own cache.

    numba unpickles its entries, so it only gets what this user wrote. Where anything goes wrong (a full disk, a
    read-only folder, another version), the loop is compiled again without a message.
    """

    def __init__(self, identity: bytes) -> None:
        self.identity = identity
        self.cache_path = ""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function for the types of some arguments; None where it has to be compiled."""
        with suppress(Exception):
            target.refresh()
            key = self._key(signature, target.codegen())
            content = read_sealed(CACHE, key)
            if content is not None:
                loads = import_module("numba.core.serialize").loads
                result = import_module("numba.core.compiler").CompileResult
                return result._rebuild(target, *loads(content))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled function, unless it depends on addresses of this process."""
        with suppress(Exception):
            if not compiled.library.has_dynamic_globals and not any(not loop.can_cache for loop in compiled.lifted):
                dumps = import_module("numba.core.serialize").dumps
                write_sealed(CACHE, self._key(signature, compiled.codegen), dumps(compiled._reduce()))

    def enable(self) -> None:
        """Nothing: it is always on."""

    disable = flush = enable

    def _key(self, signature: Any, codegen: Any) -> bytes:
        versions = (import_module("numba").__version__, sys.version, sys.implementation.cache_tag)
        return digest(self.identity, repr((versions, codegen.magic_tuple(), signature)).encode())


# --- loops over iterations, single numbers ---------------------------------------------------------------------------
#
# The text of `emit_python` with arrays around it. Nothing is contracted or reassociated, and functions are those of the
# C library, as for Python's floats. What numba does not support stays Python code.

CORE_WORK = 100_000  # steps of all runs, from which on more runs are expected: compiling takes one to two seconds
LONG_WORK = 30_000_000  # of one run, which takes longer than compiling
CALL = 1 << 10  # entries that are computed while a function of NumPy is called
ROUNDING_FUNCTIONS = ("floor", "ceil", "trunc", "rint")  # Python's give whole numbers
HELPERS = (
    *("sign", "maximum", "minimum", "heaviside", "logical_and", "logical_or", "logaddexp", "logit", "square", "mod"),
)
_helpers: dict[str, Any] = {}


def compiled_core(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> CompiledLoop | None:
    """The machine code of iterations of single numbers; None without numba, or where it lacks an operation."""
    if not is_there():
        return None
    numba: Any = import_module("numba")
    text, functions = _core_text(body, order, carries, columns, fixed)
    scope = {name: _helper(numba, name.removeprefix("_f_"), value) for name, value in functions.items()}
    if None in scope.values():
        return None
    loop: Any = _machine_code(text, scope, math_.__file__)
    try:
        return CompiledLoop(loop, [((), np.dtype(body.steps[k].type.kind)) for k in carries], len(columns), len(fixed))
    except numba.core.errors.NumbaError:
        return None


def _helper(numba: Any, name: str, value: Any) -> Any:
    """What numba calls for a function of the namespace `math`, or a number; None where there is nothing."""
    if isinstance(value, float) or getattr(value, "__module__", "") == math.__name__:
        return value
    if name in ROUNDING_FUNCTIONS:
        return getattr(np, name)
    if name not in HELPERS:
        return None
    if name not in _helpers:
        _helpers[name] = numba.njit(nogil=True, error_model="numpy")(value)
    return _helpers[name]


def _core_text(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> tuple[str, dict[str, Any]]:
    printer = Printer()
    lines: list[str] = []
    ends = [body.positions[body.nexts[k]] for k in carries]
    words = iteration_lines(printer, body, order, (*carries, *columns, *fixed), ends, lines)

    def read(at: int, text: str) -> str:
        return f"x{at} = {text} != 0.0" if body.steps[at].type.kind == "bool" else f"x{at} = {text}"

    states = [f"x{k}" for k in carries]
    kept = [
        f"states[t + 1, {place}] = {f'1.0 if x{k} else 0.0' if body.steps[k].type.kind == 'bool' else f'x{k}'}"
        for place, k in enumerate(carries)
    ]
    iteration = [
        *(read(at, f"columns[{place}, t]") for place, at in enumerate(columns)),
        *lines,
        f"{', '.join(states)} = {', '.join(words[body.nexts[k]].text for k in carries)}",
        *kept,
    ]
    whole = [
        "def loop(iterations, states, columns, fixed):",
        *(f"    {read(k, f'states[0, {place}]')}" for place, k in enumerate(carries)),
        *(f"    {read(at, f'fixed[{place}]')}" for place, at in enumerate(fixed)),
        "    for t in range(iterations):",
        *(f"        {line}" for line in iteration),
        "",
    ]
    return "\n".join(whole), printer.functions


# --- loops over iterations, arrays -----------------------------------------------------------------------------------
#
# Every entry of every array is a local variable, so views, joined arrays and entries among zeros cost nothing.

MOST_ENTRIES = 400  # of all arrays of an iteration that are written out: compiling takes some milliseconds for each


class CompiledLoop:
    """The iterations of a recurrence in machine code: a function of (iterations, states, columns, fixed values).

    `states` [iterations + 1, entries of the carries] holds the first state and takes those after each iteration;
    `columns` are [entries of the columns, iterations]. `carries` are shapes and types, `columns` and `fixed` numbers of
    entries.
    """

    def __init__(
        self, run: Callable[..., None], carries: Sequence[tuple[tuple[int, ...], Any]], columns: int, fixed: int
    ) -> None:
        self._run = run
        self._carries = carries
        self._ends = np.cumsum([0, *(prod(shape) for shape, _ in carries)]).tolist()
        self._run(0, np.zeros((1, self._ends[-1])), np.zeros((columns, 0)), np.zeros(fixed))  # compiled for these types

    def run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], iterations: int
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """The states before each iteration and those after the last one."""
        states = np.empty((iterations + 1, self._ends[-1]))
        states[0] = _line(before)
        table = np.concatenate([np.empty((0, iterations)), *(column.reshape(iterations, -1).T for column in columns)])
        self._run(iterations, states, table, _line(fixed))
        stacks = []
        for start, end, (shape, dtype) in zip(self._ends, self._ends[1:], self._carries, strict=False):
            stacks.append(states[:, start:end].reshape(iterations + 1, *shape).astype(dtype, copy=False))
        return [stack[:-1] for stack in stacks], [stack[-1] for stack in stacks]


def _line(arrays: Sequence[Any]) -> Any:
    """The entries of arrays, one after the other."""
    return np.concatenate([np.empty(0), *(np.asarray(array).reshape(-1) for array in arrays)])


def compiled_iterations(iterations: ArrayIterations, count: int) -> CompiledLoop | None:
    """The machine code of so many iterations; None where it does not pay, cannot be printed, or without numba."""
    entries = sum([op.out.size for op in iterations.ops if op.kind != VIEW])
    if count * (entries + CALL * len(iterations.ops)) < WORK or not is_there():
        return None
    try:
        printer = _IterationPrinter(iterations)
        columns, fixed = [sum([value.size for value in values]) for values in (iterations.columns, iterations.fixed)]
        if entries + columns + fixed + sum([value.size for value in iterations.carries]) > MOST_ENTRIES:
            return None
        carries = [(value.shape, value.dtype) for value in iterations.carries]
        return CompiledLoop(compiled_text(printer.printed(), printer.functions), carries, columns, fixed)
    except (Unprintable, import_module("numba").core.errors.NumbaError):
        return None


class _IterationPrinter:
    """The lines of one iteration while they are written; `names` has a word for each entry of each value."""

    def __init__(self, iterations: ArrayIterations) -> None:
        self.iterations = iterations
        self.names: dict[int, Any] = {}
        self.lines: list[str] = []
        self.functions: dict[str, Any] = {}  # those of NumPy for which the text has no word

    def printed(self) -> str:
        """The text of a function of (iterations, states, columns, fixed)."""
        iterations = self.iterations
        self._read(iterations.fixed, "fixed[{}]")
        places = self._read(iterations.carries, "states[t, {}]")
        self._read(iterations.columns, "columns[{}, t]")
        for op in iterations.ops:
            self.names[op.out.serial] = self._step(op)
        nexts = [word for value in iterations.nexts for word in self._words(value).reshape(-1)]
        self.lines += [f"states[t + 1, {place}] = {word}" for place, word in zip(places, nexts, strict=True)]
        lines = ["def loop(iterations, states, columns, fixed):", "    wide()", "    for t in range(iterations):"]
        return "\n".join([*lines, *(f"        {line}" for line in self.lines), ""])

    def _read(self, values: Sequence[PlanValue], text: str) -> list[str]:
        """Read arrays whose entries stand one after the other; the places of these entries."""
        places: list[str] = []
        for value in values:
            if value.dtype not in (np.float64, np.bool_):
                raise Unprintable("another type")
            truth = " != 0.0" if value.dtype.kind == "b" else ""
            words = self.names[value.serial] = np.empty(value.shape, object)
            for at in np.ndindex(value.shape):
                words[at] = self._line(text.format(len(places)) + truth)
                places.append(str(len(places)))
        return places

    def _words(self, value: PlanValue) -> Any:
        if value.number is None:
            return self.names[value.serial]
        return np.full(value.shape, literal(value.number.item()), object)

    def _line(self, text: str) -> str:
        self.lines.append(f"x{len(self.lines)} = {text}")
        return f"x{len(self.lines) - 1}"

    def _step(self, op: Op) -> Any:
        """The words of what a step gives."""
        if op.out.dtype.kind not in "fb":
            raise Unprintable(op.kind)
        xs, shape = [self._words(arg) for arg in op.args], op.out.shape
        if op.kind == VIEW:
            return show_view(op, xs[0], shape)
        if op.kind == JOIN:
            return np.concatenate(xs, op.params)
        if op.kind == REDUCE:
            rows = np.moveaxis(xs[0], op.params, range(len(op.params))).reshape(-1, *shape)
            total = rows[:1].reshape(shape)
            for row in rows[1:]:
                total = self._each(self._form(op, op.args * 2), shape, total, row)
            return total
        if op.kind in (PLACE, ADDED):
            out = xs[0].copy() if op.kind == ADDED else np.full(shape, literal(op.out.dtype.type(0).item()), object)
            index = places(op, op.args[-1])
            part = np.broadcast_to(xs[-1], out[index].shape)
            out[index] = part if op.kind == PLACE else self._each("({} + {})", part.shape, out[index], part)
            return out
        return self._each(self._form(op, op.args), shape, *xs)

    def _each(self, form: str, shape: tuple[int, ...], *xs: Any) -> Any:
        """A line for each entry."""
        spread = [np.broadcast_to(x, shape) for x in xs]
        out = np.empty(shape, object)
        for at in np.ndindex(shape):
            out[at] = self._line(form.format(*[x[at] for x in spread]))
        return out

    def _form(self, op: Op, args: Sequence[PlanValue]) -> str:
        """How a step is written; functions that the text has no word for are NumPy's."""
        alike = Op(ENTRY, op.function, tuple(args), None, op.out, op.node) if op.kind == REDUCE else op
        if op.function in SINES:
            return f"sincos_far_({{}})[{SINES[op.function]}]"
        if op.kind == ENTRY and op.function not in OPERATORS:
            name = f"{op.function.__name__}_of"
            self.functions[name] = op.function
            return f"{name}({', '.join(['{}'] * len(args))})"
        return _form(alike)
