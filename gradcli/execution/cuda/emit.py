"""Emits CUDA C for the entries that a kernel computes: one line and one variable for each value.

A value that is in memory is loaded; any other one is computed from its operands where it is read, so slices, entries
among zeros and repeated entries cost no memory: they only change which entry is read. Additions, products,
quotients and roots round as NumPy's do, because kernels are compiled without contraction. The rest is CUDA's library:
its documented errors are at most 2 ulp, 10 for the gamma function, 6 for its logarithm.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.compiler.emit_numba import COMPARISONS, OPERATORS
from gradcli.execution.compiler.ir import ADDED, CAST, CHOICE, COPY, ENTRY, PLACE, VIEW, index_of
from gradcli.execution.namespaces.math_ import ALIASES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue

    Shape = tuple[int, ...]

OPTIONS = ("--fmad=false",)  # of the compiler: a product and a sum are two roundings
SAME = (
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.square, np.sqrt, np.copysign,
    *COMPARISONS,
)  # fmt: skip
FUNCTIONS_OF_C = (  # some under other names than NumPy's
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin",
    "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "cbrt", "floor", "ceil", "trunc",
    "rint", "isfinite", "isnan",
)  # fmt: skip
FORMS: dict[Any, str] = {
    **{ufunc: OPERATORS[ufunc] for ufunc in SAME},  # these are spelt alike in Python and in C
    np.absolute: "fabs({})", np.reciprocal: "(1 / {})",
    np.logical_and: "({} && {})", np.logical_or: "({} || {})", np.logical_not: "(!{})",
    np.bitwise_and: "({} && {})", np.bitwise_or: "({} || {})", np.invert: "(!{})", np.bitwise_xor: "({} != {})",
    np.maximum: "larger_({}, {})", np.minimum: "smaller_({}, {})",
    **{getattr(np, name): f"{ALIASES.get(name, name)}({{}})" for name in FUNCTIONS_OF_C},
    np.arctan2: "atan2({}, {})", np.hypot: "hypot({}, {})", np.power: "pow({}, {})", np.sign: "sign_({})",
    np.heaviside: "heaviside_({}, {})", np.remainder: "remain_({}, {})", np.logaddexp: "logaddexp_({}, {})",
    np.spacing: "(nextafter({0}, 2 * {0}) - {0})",  # of positive numbers: no others are requested
}  # fmt: skip
SPECIAL = {  # those of SciPy, by name: SciPy itself is not imported
    "erf": "erf({})", "erfc": "erfc({})", "erfinv": "erfinv({})", "gamma": "tgamma({})", "gammaln": "lgamma({})",
}  # fmt: skip
HEAVY, MEDIUM, LIGHT = 20, 6, 1  # what a function costs beside an addition
CHEAP = frozenset(
    (*SAME, np.absolute, np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert)
    + (np.maximum, np.minimum, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.isfinite, np.isnan)
)
TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int32": "int", "int64": "long long"}

# What CUDA has no word for, in the type T of the program's numbers. Names that no library has.
FUNCTIONS = """
__device__ __forceinline__ T larger_(T x, T y) { return x > y || x != x ? x : y; }
__device__ __forceinline__ T smaller_(T x, T y) { return x < y || x != x ? x : y; }
__device__ __forceinline__ T sign_(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
__device__ __forceinline__ T heaviside_(T x, T y) { return x != x ? x : x < 0 ? (T)0 : x > 0 ? (T)1 : y; }
__device__ __forceinline__ T remain_(T x, T y) {
    const T r = fmod(x, y);
    return r == 0 ? (y == 0 ? r : copysign(r, y)) : (y < 0) != (r < 0) ? r + y : r;
}
__device__ __forceinline__ T logaddexp_(T x, T y) {
    const T d = x - y;
    return x == y ? x + log((T)2) : d > 0 ? x + log1p(exp(-d)) : d <= 0 ? y + log1p(exp(d)) : d;
}
"""


def functions(dtype: Any) -> str:
    """The text that stands before a kernel: its type of numbers, and functions in it."""
    text = FUNCTIONS.replace("T ", f"{TYPES[dtype.name]} ")
    return text.replace("(T)", f"({TYPES[dtype.name]})")


def form(ufunc: Any, operands: Sequence[Any], result: Any) -> str | None:
    """The word of a ufunc for operands of these types; None where there is none."""
    if any(dtype.kind not in "fb" for dtype in (*operands, result)):
        return None
    if ufunc in LOGICAL and any(dtype.kind != "b" for dtype in operands):
        return None
    if ufunc not in LOGICAL and ufunc not in COMPARISONS and any(dtype.kind != "f" for dtype in operands):
        return None
    return FORMS.get(ufunc) or SPECIAL.get(ufunc.__name__)


LOGICAL = {
    np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert, np.bitwise_xor,
}  # fmt: skip


def number(value: Any) -> str:
    """A number of NumPy as a literal of C, to the last bit.

    >>> import numpy as np
    >>> number(np.float64(0.1)), number(np.float32(0.1)), number(np.bool_(True))
    ('0.1', '1.0e-01f', 'true')
    """
    if value.dtype.kind == "b":
        return "true" if value else "false"
    if value.dtype.kind in "iu":
        return f"{value.item()}ll" if value >= 0 else f"({value.item()}ll)"
    single = value.dtype.itemsize == np.dtype(np.float32).itemsize
    if not np.isfinite(value):
        bits = value.view(np.uint32 if single else np.uint64).item()
        return f"__int_as_float({bits:#x})" if single else f"__longlong_as_double({bits:#x}ll)"
    text = (np.format_float_scientific(value, trim="0") if single else repr(value.item())) + "f" * single
    return f"({text})" if text.startswith("-") else text


def cast(word: str, source: Any, target: Any) -> str:
    """A word of one type in another one."""
    if source == target:
        return word
    return f"({word} != 0)" if target.kind == "b" else f"({TYPES[target.name]}){word}"


class EntryPlace(NamedTuple):
    """Where an entry of an array is: `shift` entries after `e` in C order, or at `axes`."""

    shift: int | None
    axes: tuple[str, ...] = ()


FIRST = EntryPlace(None)  # the one entry of an array that has no other


class Places:
    """The places in one kernel: `whole(text)` gives the name of a whole number, made once for each text."""

    def __init__(self, count: int, whole: Callable[[str], str]) -> None:
        self.count = count  # entries that threads are at, from 0 on
        self.whole = whole
        self.known: dict[tuple[int, Shape], tuple[str, ...]] = {}

    # --- from a place to words --------------------------------------------------------------------------

    def at(self, shift: int, size: int) -> tuple[str, list[str]]:
        """The position in C order by its shift, and what has to hold so that it is inside the array."""
        word = "e" if not shift else f"e + {shift}" if shift > 0 else f"e - {-shift}"
        return word, [f"{word} >= 0"] * (shift < 0) + [f"{word} < {size}"] * (self.count + shift > size)

    def axes(self, place: EntryPlace, shape: Shape) -> tuple[str, ...]:
        """A word for each axis; inside the array also where the place is not."""
        if place.shift is None:
            return place.axes or ("0",) * len(shape)
        key = (place.shift, shape)
        words = self.known.get(key)
        if words is None:
            word, outside = self.at(place.shift, prod(shape))
            if outside:
                word = f"within_({word}, {prod(shape) - 1})"
            words = self.known[key] = self.unravelled(word, shape)
        return words

    def unravelled(self, word: str, shape: Shape) -> tuple[str, ...]:
        """The axes of a position in C order."""
        long = [axis for axis, n in enumerate(shape) if n > 1]
        if not word.isidentifier() and len(long) > 1:
            word = self.whole(word)
        words = ["0"] * len(shape)
        for axis in long:
            stride = prod(shape[axis + 1 :])
            part = word if stride == 1 else f"({word}) / {stride}"
            words[axis] = self.whole(part if axis == long[0] else f"({part}) % {shape[axis]}")
        return tuple(words)

    def ravelled(self, axes: tuple[str, ...], shape: Shape) -> str:
        """The position in C order of an entry at axes."""
        parts = []
        for axis, word in enumerate(axes):
            stride = prod(shape[axis + 1 :])
            if word != "0":
                parts.append(word if stride == 1 else f"{word} * {stride}")
        return " + ".join(parts) or "0"

    # --- from the result of a step to its operands -----------------------------------------------------------

    def operand(self, place: EntryPlace, shape: Shape, own: Shape) -> EntryPlace:
        """The place in an operand of shape `own` of a step that repeats its entries over `shape`."""
        if prod(own) == 1:
            return FIRST
        if _long(own) == _long(shape):
            if place.shift is not None:
                return place
            rest = iter([word for word, n in zip(place.axes, shape, strict=True) if n > 1])
            return EntryPlace(None, tuple([next(rest) if n > 1 else "0" for n in own]))
        axes = self.axes(place, shape)[len(shape) - len(own) :]
        return EntryPlace(None, tuple(["0" if n == 1 else word for word, n in zip(axes, own, strict=True)]))

    def shown(self, op: Op, place: EntryPlace) -> EntryPlace:
        """The place in the array that a view shows."""
        source, shape = op.args[0].shape, op.out.shape
        if prod(source) == 1:
            return FIRST
        if op.function == "reshape":
            if place.shift is not None or _long(source) == _long(shape):
                return self.operand(place, shape, source) if place.shift is None else place
            position = self.whole(self.ravelled(place.axes, shape))
            return EntryPlace(None, self.unravelled(position, source))
        if op.function == "broadcast":
            return self.operand(place, shape, source)
        if op.function == "permute":
            order = [axis for axis in op.params if source[axis] > 1]
            if place.shift is not None and order == sorted(order):
                return place
            axes = self.axes(place, shape)
            return EntryPlace(None, tuple([axes[op.params.index(axis)] for axis in range(len(source))]))
        index = index_of(op.params)
        if place.shift is not None and (first := start_of(source, index, shape)) is not None:
            return EntryPlace(place.shift + first)
        axes = self.axes(place, shape)
        return EntryPlace(None, tuple([self._stepped(*parts) for parts in zip(axes, source, index, strict=True)]))

    def _stepped(self, word: str, n: int, part: Any) -> str:
        """The position on an axis of an entry of a slice of it."""
        along = range(n)[part]
        if along.start == 0 and along.step == 1:
            return word
        step = word if along.step == 1 else f"{word} * {along.step}"
        return self.whole(f"{along.start} + {step}") if word != "0" else str(along.start)

    def placed(self, place: EntryPlace, shape: Shape, index: tuple[Any, ...], own: Shape) -> tuple[str, EntryPlace]:
        """For entries that stand at an index among others: the condition for one of them, and its place among them."""
        if place.shift is not None and (first := start_of(shape, index, own)) is not None:
            inner = place.shift - first
            return " && ".join(self.at(inner, prod(own))[1]) or "true", EntryPlace(inner)
        axes, conditions, words = self.axes(place, shape), [], []
        for word, n, part, m in zip(axes, shape, index, own, strict=True):
            along = range(n)[part]
            low, high = min(along[0], along[-1]), max(along[0], along[-1])
            if m == n and along.step == 1:
                words.append(word)
                continue
            if low > 0:
                conditions.append(f"{word} >= {low}")
            if high < n - 1:
                conditions.append(f"{word} <= {high}")
            if abs(along.step) > 1:
                conditions.append(f"({word} - {low}) % {abs(along.step)} == 0")
            moved = f"{word} - {along.start}" if along.step > 0 else f"{along.start} - {word}"
            moved = moved if abs(along.step) == 1 else f"({moved}) / {abs(along.step)}"
            words.append("0" if m == 1 else self.whole(f"within_({moved}, {m - 1})"))
        return " && ".join(conditions) or "true", EntryPlace(None, tuple(words))


def start_of(shape: Shape, index: tuple[Any, ...], size: Shape) -> int | None:
    """Where the entries of a slice begin in C order; None where they are not neighbours there.

    >>> start_of((4, 3), (slice(1, 3, 1), slice(0, 3, 1)), (2, 3))
    3
    """
    first, stride, whole = 0, 1, True
    for n, part, count in zip(reversed(shape), reversed(index), reversed(size), strict=True):
        begin = range(n)[part][0] if isinstance(part, slice) else part
        if count > 1 and ((part.step or 1) != 1 or not whole):
            return None
        first += begin * stride
        stride *= n
        whole = whole and count == n
    return first


def _long(shape: Shape) -> list[int]:
    return [n for n in shape if n > 1]


PAIR = (np.sin, np.cos)


class EntryWork(NamedTuple):
    """An entry of a value that is being computed, with the entries that it is computed from."""

    value: PlanValue
    place: EntryPlace
    needs: tuple[tuple[PlanValue, EntryPlace], ...]
    form: str  # with {} for the needs


class KernelBody:
    """The lines for one entry `e`; `loaded` tests whether a value is in memory; `made` holds variables."""

    def __init__(
        self,
        count: int,
        loaded: Callable[[PlanValue], bool],
        paired: Callable[[PlanValue], bool],
        moving: Collection[str] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.places = Places(count, self._whole)
        self.loaded = loaded
        self.paired = paired  # whether both sine and cosine of a value are wanted somewhere
        self.moving = moving  # the inputs that have an entry for each `e`, where entries are points
        self.arrays: dict[int, tuple[str, PlanValue]] = {}
        self.numbers: dict[int, tuple[str, PlanValue]] = {}
        self.made: dict[tuple[int, EntryPlace], str] = {}
        self._wholes: dict[str, str] = {}
        self._variables = 0

    def _whole(self, text: str) -> str:
        name = self._wholes.get(text)
        if name is None:
            name = self._wholes[text] = f"q{len(self._wholes)}"
            self.lines.append(f"const whole {name} = {text};")
        return name

    def variable(self, dtype: Any, text: str) -> str:
        """The name of a new variable."""
        name = f"v{self._variables}"
        self._variables += 1
        self.lines.append(f"const {TYPES[dtype.name]} {name} = {text};")
        return name

    def word(self, value: PlanValue, place: EntryPlace) -> str:
        """The variable, or the literal, that holds an entry of a value; its lines are written before."""
        start = self._base(value, place)
        pending: list[tuple[PlanValue, EntryPlace] | EntryWork] = [start]
        while pending:
            item = pending.pop()
            if isinstance(item, EntryWork):
                if (item.value.serial, item.place) not in self.made:
                    self._compute(item)
                continue
            value, place = item
            if value.number is not None or (value.serial, place) in self.made:
                continue
            if self.loaded(value):
                self.made[value.serial, place] = self._load(value, place)
                continue
            assert value.op is not None
            work = self._work(value.op, place)
            pending.append(work)
            pending += [need for need in reversed(work.needs) if need[0].number is None]
        return self._name(*start)

    def _base(self, value: PlanValue, place: EntryPlace) -> tuple[PlanValue, EntryPlace]:
        """The value behind views that is loaded or computed, and the place in it."""
        while value.number is None and not self.loaded(value):
            op = value.op
            if op is None or op.kind != VIEW:
                break
            value, place = op.args[0], self.places.shown(op, place)
        return value, FIRST if value.size == 1 else place

    def _name(self, value: PlanValue, place: EntryPlace) -> str:
        if value.number is not None:
            return number(value.number)
        return self.made[value.serial, place]

    # --- loads ----------------------------------------------------------------------------------------------

    def _load(self, value: PlanValue, place: EntryPlace) -> str:
        if self.moving is not None and value.leaf is not None and value.leaf.params["name"] in self.moving:
            name = self.arrays.setdefault(value.serial, (f"a{len(self.arrays)}", value))[0]
            return self.variable(value.dtype, f"{name}[e]")
        if value.leaf is not None and not value.shape:
            return self.numbers.setdefault(value.serial, (f"n{len(self.numbers)}", value))[0]
        name = self.arrays.setdefault(value.serial, (f"a{len(self.arrays)}", value))[0]
        if place.shift is None:
            return self.variable(value.dtype, f"{name}[{self.places.ravelled(place.axes, value.shape)}]")
        word, conditions = self.places.at(place.shift, value.size)
        if not conditions:
            return self.variable(value.dtype, f"{name}[{word}]")
        zero = number(value.dtype.type(0))
        return self.variable(value.dtype, f"{' && '.join(conditions)} ? {name}[{word}] : {zero}")

    # --- steps ----------------------------------------------------------------------------------------------

    def _work(self, op: Op, place: EntryPlace) -> EntryWork:
        places, out, kind = self.places, op.out, op.kind
        if kind in (ENTRY, CHOICE, CAST, COPY):
            needs = [(arg, places.operand(place, out.shape, arg.shape)) for arg in op.args]
            form = self._form(op)
        elif kind == PLACE:
            inside, inner = places.placed(place, out.shape, index_of(op.params[1]), op.args[0].shape)
            needs = [(op.args[0], inner)]
            form = "{}" if inside == "true" else f"{inside} ? {{}} : {number(out.dtype.type(0))}"
        else:
            inside, inner = places.placed(place, out.shape, index_of(op.params[1]), op.args[1].shape)
            needs = [(op.args[0], places.operand(place, out.shape, op.args[0].shape)), (op.args[1], inner)]
            form = "{0} + {1}" if inside == "true" else f"{inside} ? {{0}} + {{1}} : {{0}}"
        return EntryWork(out, place, tuple([self._base(*need) for need in needs]), form)

    def _form(self, op: Op) -> str:
        out = op.out.dtype
        if op.kind == ENTRY:
            pattern = form(op.function, [arg.dtype for arg in op.args], out)
            assert pattern is not None, "such steps are left to the library"
            return pattern
        if op.kind == CHOICE:
            return "{} ? " + " : ".join([cast("{}", arg.dtype, out) for arg in op.args[1:]])
        return cast("{}", op.args[0].dtype, out)

    def _compute(self, work: EntryWork) -> None:
        op, names = work.value.op, [self._name(*need) for need in work.needs]
        assert op is not None
        if op.function in PAIR and op.kind == ENTRY and self.paired(op.args[0]):
            key = (-op.args[0].serial, work.place)
            if key not in self.made:
                angle = f"v{self._variables}"
                self._variables += 1
                kind = TYPES[op.out.dtype.name]
                self.lines.append(f"{kind} {angle}s, {angle}c; sincos({names[0]}, &{angle}s, &{angle}c);")
                self.made[key] = angle
            self.made[work.value.serial, work.place] = self.made[key] + ("s" if op.function is np.sin else "c")
            return
        text = work.form.format(*names)
        plain = text.isidentifier() and text not in ("true", "false")
        self.made[work.value.serial, work.place] = text if plain else self.variable(work.value.dtype, text)


def is_written(op: Op) -> bool:
    """Whether a step can be a line of a kernel; else a library takes it."""
    if op.out.dtype.kind not in "fb" or not op.out.size:
        return False
    if op.kind == ENTRY:
        return form(op.function, [arg.dtype for arg in op.args], op.out.dtype) is not None
    if op.kind in (CHOICE, CAST, COPY, PLACE, ADDED, VIEW):
        return all(arg.dtype.kind in "fb" and arg.size for arg in op.args)
    return False
