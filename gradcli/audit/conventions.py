"""How a derivative belongs to its function: by which argument, in which layout, with which factor; found by trying.

A pair that was recognised by its names says none of this. Each array that the derivative returns is compared with
differences of the function's values by each argument whose shape fits. What agrees is how the derivative is read. Where
nothing agrees, the readings whose shapes fit are judged all the same: `audit_report.py` decides which of them count.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from functools import cached_property
from time import monotonic
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.recording.calls.box import own_copy
from gradcli.recording.calls.call_arguments import numbers
from gradcli.recording.calls.failures import OutOfTime
from gradcli.recording.calls.gradient_libraries import array_of, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Arguments = dict[str, Any]
    Subject = tuple[Callable[..., Any], dict[str, Any], tuple[Any]]

MOST_ENTRIES, FEW = 16, 4  # of an argument that are moved one by one: in trying, and of a larger one in judging
MOST_PARTS, MOST_ARGUMENTS = 12, 16
MOST_READINGS = 3  # judged of a part that agrees with nothing
STEP = 1e-3  # relative; central differences of it and of its half are extrapolated
ROUNDING = 8.0  # units in the last place of values: differences of no more are 0
CLOSE, COARSE = 1e-5, 1e-2  # beside the largest entry: agrees, as far as a first look shows; of float32
ASYMMETRIC = 1e-3  # beside the largest entry of the Jacobian: no rounding makes that
FACTORS = (-1.0, 2.0, 0.5, -2.0, -0.5, 180 / np.pi, np.pi / 180, 100.0, 0.01)
SAME = 1e-12  # relative: what a derivative returns with it is a value up to this
COARSER = (np.dtype(np.float32), np.dtype(np.float16))  # formats with fewer digits than float64
STATE = "self."  # before the name of an attribute that is moved
MADE = "self()."  # before that of an argument of the object's class: the object is made anew
AXES = (None, 0, -1, "T")  # along which an array of derivatives by several arguments is split; "T": its transpose


class DerivativePart(NamedTuple):
    """A part of a derivative as the derivative of one output by one argument, times a factor.

    The factor is a number, or that of an attribute of the object by its name.
    `place` is that of the argument, behind the part's where there are several parts. `layout`: "jacobian" (the shape of
    f(x), then that of x), "transposed", "entrywise" (the shape of x: of a function of entries or rows), "columns" (of
    columns), "diagonal" (of each output by its own entry of x, on which others depend, too), "total" (the gradient of
    the sum of the outputs).
    `flat`: both are 0, which says nothing; `whole`: the part holds 0, 1 and 2 alone, as others may by accident.
    """

    argument: str
    part: int
    axis: int | str | None
    output: int
    layout: str
    place: int | str
    factor: float | str
    gap: float
    flat: bool
    whole: bool

    @property
    def convention(self) -> list[Any]:
        """What it has in common with readings of other calls and of other pairs."""
        return [self.part, self.axis, self.output, self.layout, self.place]


class PairedCall:
    """One call of a derivative, with the function that it may belong to."""

    def __init__(self, pair: dict[str, Any], value: Any, derivative: Any, owner: Any, args: Any, options: Any) -> None:
        self.pair, self.value, self.derivative, self.owner = pair, value, derivative, owner
        bound = inspect.signature(derivative).bind(*args, **options)
        self.at: Arguments = {}
        self.zeros: dict[str, int] = {}  # defaults that are whole numbers, and need not stand for such
        for name, content in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                self.at.update({f"{name}[{k}]": entry for k, entry in enumerate(content)})
            else:
                self.at.update(content if kind is inspect.Parameter.VAR_KEYWORD else {name: content})
        left = {x.name: x.default for x in bound.signature.parameters.values() if x.name not in self.at}
        if not any(x.kind is x.VAR_POSITIONAL for x in bound.signature.parameters.values()):
            self.at.update({name: default for name, default in left.items() if isinstance(default, float)})
            theirs = inspect.signature(value).parameters
            both = [name for name, default in left.items() if name in theirs and default is theirs[name].default]
            self.zeros = {name: 0 for name in both if type(left[name]) is int and left[name] == 0}
            self.at |= self.zeros
        flag = bound.signature.parameters.get(pair["flag"])
        self.off = {} if flag is None else {pair["flag"]: False if flag.default is flag.empty else flag.default}
        self.ends = float("inf")
        self.orders: dict[Any, tuple[list[str], list[str]]] = {}  # of each function, and the names of its arguments
        usual = {x.name: x.default for x in bound.signature.parameters.values() if type(x.default) is bool}
        usual.pop(pair["flag"], None)
        if self.at.keys() & usual and not any(np.isfinite(y).any() for y in self.outputs({})):
            self.at |= usual  # such as a flag that saves the computation of the value
        self.kept = kept_of(owner) if inspect.ismethod(value) and inspect.ismethod(derivative) else {}
        self.factors: dict[float | str, float] = {factor: factor for factor in FACTORS}
        for name, content in getattr(owner, "__dict__", {}).items():
            if type(content) is float and content not in (0, 1):  # one that is left out, or that stands in both
                self.factors |= {f"1/{name}": 1 / content, name: content}

    def candidates(self) -> Iterator[list[str]]:
        """Arguments that hold numbers, those of the object's class, then its attributes; or what the pair names."""
        by = str(self.pair["by"])
        if by.startswith(STATE) or moves(self.at.get(by)):
            yield [by]
            return
        arguments = [name for name, content in self.at.items() if moves(content) and name not in self.zeros]
        theta, attributes = (
            [STATE + x for x in names if not of_objects(content := getattr(self.owner, x, None)) and moves(content)]
            for names in (["theta"], getattr(self.owner, "__dict__", ()))
        )
        for tried in (arguments, [*self.zeros], theta, None, attributes):
            names = self.remade() if tried is None else tried  # objects may be costly: made where nothing agrees yet
            whole = {name: isinstance(self.content(name), int) for name in names}
            yield sorted(names, key=lambda name: whole[name])[:MOST_ARGUMENTS]

    def remade(self) -> list[str]:
        """The arguments of the object's class, where an object that is made of them gives what this one gives."""
        for name, content in self.kept.items():
            with suppress(Exception):  # whatever it raises where it is made so
                same = {MADE + name: content}
                if all(map(np.array_equal, self.outputs({}) + self.parts({}), self.outputs(same) + self.parts(same))):
                    return [MADE + name for name, content in self.kept.items() if moves(content)]
            break
        return []

    def content(self, name: str) -> Any:
        """What an argument or an attribute holds."""
        if name.startswith(MADE):
            return self.kept[name.removeprefix(MADE)]
        return getattr(self.owner, name.removeprefix(STATE)) if name.startswith(STATE) else self.at[name]

    def put(self, name: str, moved: Any) -> None:
        """Let an attribute hold other numbers: an array of its own kind, which knows more than numbers, keeps them."""
        content = getattr(self.owner, name)
        if held(content) is content:
            setattr(self.owner, name, moved)
        else:
            content[...] = moved

    def outputs(self, changed: Arguments) -> list[Floats]:
        """What the function returns, as arrays; with the derivatives before the last one, which may be theirs."""
        result = self.call(self.value, changed, self.off)
        together = self.pair["kind"] == "together" and isinstance(result, tuple)
        return [
            y if is_stand_in(y) else y.astype(np.float64, copy=False)
            for y in arrays(result)[: -1 if together else None]
        ]

    def parts(self, changed: Arguments, axis: int | str | None = None) -> list[Floats]:
        """What the derivative returns, as arrays, without the values beside it; each is split along an axis."""
        result = self.call(self.derivative, changed)
        together = self.pair["kind"] == "together" and isinstance(result, tuple)
        parts = arrays(result[self.pair["values"] :] if together else result)
        if isinstance(result, tuple) and not together:
            parts = [part for k, part in enumerate(parts) if k not in self.beside]
        if axis == "T":
            return [part.T for part in parts if part.ndim == 2 and 1 not in part.shape][:MOST_PARTS]
        if isinstance(axis, int) and parts:
            stacks = [part for part in parts if part.ndim and 1 < part.shape[axis] <= MOST_PARTS]
            parts = [part for stack in stacks for part in np.moveaxis(stack, axis, 0)]
        return parts[:MOST_PARTS]

    @cached_property
    def beside(self) -> set[int]:
        """Which arrays of a tuple that the derivative returns are the function's values, which may be rounded apart."""
        result, values = self.call(self.derivative, {}), self.outputs({})
        parts = arrays(result) if isinstance(result, tuple) else []
        same = {
            k
            for k, part in enumerate(parts)
            if any(part.shape == y.shape and np.allclose(part, y, rtol=SAME, atol=0, equal_nan=True) for y in values)
        }
        return same if len(same) == len(values) < len(parts) else set()

    def call(self, function: Any, changed: Arguments, fixed: Arguments | None = None) -> Any:
        """The result of a call with some arguments or attributes replaced: by name, or in order where names differ."""
        if monotonic() > self.ends:
            raise OutOfTime
        for name in changed:
            if name.startswith(MADE):
                anew = type(self.owner)(**{**self.kept, name.removeprefix(MADE): changed[name]})
                function = MethodType(function.__func__, anew)
        at = {name: own_copy(changed.get(name, content)) for name, content in self.at.items()} | (fixed or {})
        key = getattr(function, "__func__", function), *at
        if key not in self.orders:
            self.orders[key] = order_of(function, at)
        ordered, named = self.orders[key]
        before = {name: held(self.content(name)) for name in changed if name.startswith(STATE)}
        try:
            for name in before:
                self.put(name.removeprefix(STATE), changed[name])
            return function(*[at[name] for name in ordered], **{name: at[name] for name in named})
        finally:
            for name, content in before.items():
                self.put(name.removeprefix(STATE), content)


def held(content: Any) -> Any:
    """What is put back behind a call: the content of an attribute, or a copy of an array of its own kind."""
    return np.array(content) if isinstance(content, np.ndarray) and type(content) is not np.ndarray else content


def order_of(function: Any, at: Arguments) -> tuple[list[str], list[str]]:
    """Which arguments of a call a function takes by place, and which by name."""
    taken = inspect.signature(function).parameters.values()
    spread = any(x.kind is x.VAR_POSITIONAL for x in taken)
    ordered = [x for x in taken if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    named = {x.name for x in taken if x.kind is x.KEYWORD_ONLY} & at.keys()
    values = [name for name in at if name not in named]
    if not spread and {x.name for x in ordered if x.default is x.empty} <= at.keys():
        values = []
        for x in ordered:
            if x.name not in at and x.kind is x.POSITIONAL_OR_KEYWORD:
                named |= {y.name for y in ordered} & at.keys() - {y.name for y in ordered[: len(values)]}
                break
            values.append(x.name)
    return values if spread else values[: len(ordered)], [*named]


def kept_of(owner: Any) -> Arguments:
    """The arguments of an object's class, where the object keeps all that have no default under their names."""
    kept: Arguments = {}
    attributes = getattr(owner, "__dict__", {})
    with suppress(TypeError, ValueError):  # a class without a signature
        for x in inspect.signature(type(owner)).parameters.values() if attributes else ():
            if x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD):
                continue
            name = next((name for name in (x.name, f"_{x.name}", f"{x.name}_") if name in attributes), None)
            if name is not None:
                kept[x.name] = attributes[name]
            elif x.default is x.empty:
                return {}
    return kept


def of_objects(content: Any) -> bool:
    """Whether a list holds objects, which may be numbers, but not only that: an array in its place is none of them."""
    return isinstance(content, (list, tuple)) and not all(isinstance(x, (int, float, list, tuple)) for x in content)


def moves(content: Any) -> bool:
    """Whether an argument holds numbers that may move."""
    array = numbers(content)
    return array is not None and array.size > 0 and bool(np.isfinite(array).all())


def arrays(result: Any) -> list[Floats]:
    """A result as arrays: the parts of a tuple one by one, a list as one array where its parts have one shape."""
    if hasattr(result, "toarray"):
        result = result.toarray()
    shapes = {np.shape(x) for x in result} if isinstance(result, list) else set()
    if isinstance(result, tuple) or len(shapes) > 1:
        return [part for x in result for part in arrays(x)]
    if is_stand_in(result):
        return [result]
    array = np.asarray(array_of(result) if is_tensor(result) else result)
    if array.dtype.kind not in "fiub" or not array.size:
        return []
    return [array if array.dtype in COARSER else array.astype(np.float64)]


def as_coarse(result: Any, array: Any) -> Any:
    """What is computed of an array, with as few digits as that has: what judges it allows for them."""
    return result.astype(array.dtype) if getattr(array, "dtype", None) in COARSER else result


def is_stand_in(value: Any) -> bool:
    """Whether a value stands for an array while it is recorded what is done with it."""
    return hasattr(value, "__array_function__") and not isinstance(value, np.ndarray)


# --- trying -------------------------------------------------------------------------------------------------------


class Slopes(NamedTuple):
    """Differences of each output by some entries of one argument, a column an entry, and how far they are trusted."""

    argument: str
    x: Floats
    entries: NDArray[np.integer[Any]]
    columns: list[Floats]
    doubt: float


def entries_of(x: Floats, most: int = MOST_ENTRIES) -> NDArray[np.integer[Any]]:
    """The entries that are moved one by one."""
    return np.unique(np.linspace(0, x.size - 1, min(x.size, most)).astype(int))


def slopes(call: PairedCall, argument: str) -> Slopes:
    """Differences by one argument."""
    content = call.content(argument)
    x = np.array(numbers(content), dtype=np.float64)
    entries = entries_of(x)
    size = float(np.abs(x).max()) or 1.0
    outputs = call.outputs({})
    rounding = ROUNDING * np.finfo(float).eps * np.abs(np.concatenate([y.reshape(-1) for y in outputs]))

    def moved(k: int, h: float) -> Floats:
        there = x.reshape(-1).copy()
        there[k] += h
        return np.concatenate([y.reshape(-1) for y in call.outputs({argument: like(content, there)})])

    columns, doubts = [], []
    with np.errstate(all="ignore"):
        for k in entries:
            h = STEP * (abs(x.reshape(-1)[k]) or 0.1 * size)
            rough, fine = ((moved(k, step) - moved(k, -step)) / (2 * step) for step in (h, h / 2))
            column = (4 * fine - rough) / 3
            columns.append(np.where(np.abs(column) <= rounding / h, 0.0, column))
            doubts.append(np.abs(fine - rough))
    ends = np.cumsum([y.size for y in outputs])
    doubt = float(np.max(doubts)) / 10 if doubts else 0.0
    return Slopes(argument, x, entries, np.split(np.stack(columns, axis=-1), ends[:-1]), doubt)


def like(content: Any, moved: Any) -> Any:
    """Numbers as an argument held them before."""
    if is_stand_in(moved):
        return moved
    moved = np.asarray(moved, dtype=np.float64).reshape(np.shape(content))
    if is_tensor(content):
        return content.new_tensor(moved) if hasattr(content, "new_tensor") else moved
    kind = getattr(content, "dtype", None)
    if kind is None:
        return moved if moved.shape else float(moved)
    return moved.astype(kind) if np.dtype(kind).kind == "f" else moved


def layouts(part: Floats, output: Floats, by: Slopes, j: int) -> Iterator[tuple[str, Floats, Floats]]:
    """The layouts whose shape fits, each with the entries that it claims and those that were measured."""
    S, T, measured = output.shape, by.x.shape, by.columns[j]
    shape = stripped(part.shape)
    flat = [(s, t) for s in (S, (output.size,)) for t in (T, (by.x.size,))]  # each axis, or all of them as one
    if shape in [stripped(s + t) for s, t in flat]:
        yield "jacobian", part.reshape(output.size, -1)[:, by.entries], measured
    elif shape in [stripped(t + s) for s, t in flat]:
        yield "transposed", part.reshape(-1, output.size).T[:, by.entries], measured
    elif shape == stripped(T):
        claimed, total = part.reshape(-1)[by.entries], measured.sum(axis=0)
        close = CLOSE * float(np.abs(measured).max(initial=0)) + by.doubt
        rows, columns = T[: len(S)] == S, T[len(T) - len(S) :] == S
        for layout, place in (
            *([("entrywise", by.entries * output.size // by.x.size)] if rows else []),
            *([("columns", by.entries % output.size)] if columns and S not in (T, ()) else []),
        ):
            own = measured[place, range(by.entries.size)]
            if not (np.abs(measured).sum(axis=0) - np.abs(own) > measured.shape[0] * close).any():
                yield layout, claimed, total
                return
        yield "total", claimed, total
        if S == T and by.x.size <= MOST_ENTRIES:
            yield "diagonal", claimed, own


def stripped(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its axes of size 1."""
    return tuple(n for n in shape if n != 1)


def readings(call: PairedCall) -> list[list[DerivativePart]]:
    """For each part of the derivative the readings whose shape fits: what agrees, then by how far they are off."""
    best: list[list[DerivativePart]] = []
    by: list[Slopes] = []
    problem: Exception | None = None
    for names in call.candidates():
        for argument in names:
            try:
                by.append(slopes(call, argument))
            except OutOfTime:
                raise
            except Exception as reason:  # whatever the function raises beside the point
                problem = reason
        best = max(best, by_partitions(call, by), key=agreement)
        if agreement(best)[0] or are_zero(best):
            break
    if not best and problem is not None:
        raise problem
    return best


def agreement(rows: Sequence[Sequence[DerivativePart]]) -> tuple[int, int, int, bool]:
    """How well readings do: 1 where all parts are derivatives, how many are, and up to a factor; whether any fit."""
    firsts = [row[0] for row in rows if row and row[0].gap == 0]
    moving = [first.factor for first in firsts if not first.flat]
    right = moving.count(1.0)
    return int(0 < right == len(moving) and len(firsts) == len(rows)), right, len(moving), any(rows)


def are_zero(rows: Sequence[Sequence[DerivativePart]]) -> bool:
    """Whether all parts are 0, and so is what was measured: no other argument could agree better."""
    return any(rows) and all(row and row[0].flat for row in rows)


def by_partitions(call: PairedCall, by: Sequence[Slopes]) -> list[list[DerivativePart]]:
    """The readings by some arguments of the derivative as it is, or split along an axis: those of which most agree."""
    outputs, order = call.outputs({}), [*call.at]
    best: list[list[DerivativePart]] = []
    for axis in AXES:
        parts = call.parts({}, axis)
        rows = []
        for p, part in enumerate(parts):
            fitting = []
            for measured in by:
                argument = measured.argument
                place = order.index(argument) - (p if len(parts) > 1 else 0) if argument in order else argument
                together = call.pair["kind"] == "together"
                for j, output in enumerate(outputs[: p + call.pair["values"]] if together else outputs):
                    for layout, claimed, right in layouts(part, output, measured, j):
                        factor, gap = compared(claimed * call.pair["sign"], right, measured.doubt, call)
                        flat = not claimed.any() and not right.any()
                        whole = bool(np.isin(abs(claimed), (0, 1, 2)).all())
                        fitting.append(DerivativePart(argument, p, axis, j, layout, place, factor, gap, flat, whole))
            fitting.sort(key=lambda x: (x.gap > 0, x.factor != 1, x.flat, x.gap))
            rows.append(fitting)
        best = max(best, rows, key=agreement)
        if agreement(best)[0]:
            break
    return best


def compared(claimed: Floats, right: Floats, doubt: float, call: PairedCall) -> tuple[float | str, float]:
    """The factor by which a claim agrees with what was measured, and 0; or 1, and how far it is off, relatively."""
    size = float(np.abs(right).max(initial=0))
    coarse = any(str(getattr(content, "dtype", "")).endswith("float32") for content in call.at.values())
    close = (COARSE if coarse else CLOSE) * size + doubt
    if not np.isfinite(claimed).all() or not np.isfinite(right).all():
        return 1.0, np.inf
    gap = float(np.abs(claimed - right).max(initial=0))
    if gap <= close:
        return 1.0, 0.0
    for factor, scale in call.factors.items() if size > 10 * doubt else ():
        if float(np.abs(claimed / scale - right).max()) <= close:
            return factor, 0.0
    return 1.0, gap / max(size, float(np.abs(claimed).max(initial=0)))


# --- what is judged -----------------------------------------------------------------------------------------------


def subject(call: PairedCall, reading: DerivativePart) -> Subject:
    """A reading as a function of one argument with its derivative, for `check_callable`."""
    name, sign = reading.argument, call.pair["sign"]
    content = call.content(name)
    x0 = np.array(numbers(content), dtype=np.float64)
    S = call.outputs({})[reading.output].shape

    def f(x: Any) -> Any:
        y = call.outputs({name: like(content, x)})[reading.output]
        return y.sum() if reading.layout == "total" else y

    def part(x: Any) -> Any:
        changed = {name: like(content, x)}
        return sign * call.parts(changed, reading.axis)[reading.part]

    def alone(of: Any) -> Any:
        """The entries of a function, each with the others of its argument as they were."""
        places = np.arange(x0.size).reshape(x0.shape)
        return lambda x: np.stack([of(np.where(places == k, x, x0)).reshape(-1)[k] for k in range(x0.size)]).reshape(S)

    if reading.layout == "diagonal":
        f, part = alone(f), alone(part)

    def jac(x: Any) -> Any:
        array = part(x)
        if reading.layout == "transposed":
            rows = array.reshape(x0.size, -1).T
            return rows.reshape(S + x0.shape)
        return array.reshape(x0.shape if reading.layout == "total" else S + x0.shape)

    def vjp(x: Any, ct: Any) -> Any:
        weights = ct if reading.layout == "columns" else ct.reshape(S + (1,) * (x0.ndim - len(S)))
        array = part(x)
        return as_coarse(weights * array.reshape(x0.shape), array)

    at = (float(x0) if not x0.shape else x0,)
    how: dict[str, Any] = {"vjp": vjp} if reading.layout in ("entrywise", "columns", "diagonal") else {"jac": jac}
    return f, {**how, "names": [name.removeprefix(MADE).removeprefix(STATE)]}, at


def of_few(subject: Subject) -> Subject:
    """The same as a function of a few entries of a large argument, and of a factor of all others."""
    f, derivative, (x0,) = subject
    if np.size(x0) <= MOST_ENTRIES:
        return subject
    entries = entries_of(x0, FEW)
    basis = np.zeros((x0.size, entries.size + 1))
    basis[:, -1] = x0.reshape(-1)
    basis[entries] = np.eye(*basis[entries].shape)
    at = (np.append(x0.reshape(-1)[entries], 1.0),)

    def whole(few: Any) -> Any:
        return (basis @ few).reshape(x0.shape)

    def jac(few: Any) -> Any:
        array = derivative["jac"](whole(few))
        return as_coarse(array.reshape(*array.shape[: array.ndim - x0.ndim], x0.size) @ basis, array)

    def vjp(few: Any, ct: Any) -> Any:
        array = derivative["vjp"](whole(few), ct)
        return as_coarse(array.reshape(-1) @ basis, array)

    how: dict[str, Any] = {"jac": jac} if "jac" in derivative else {"vjp": vjp}
    return lambda few: f(whole(few)), {**derivative, **how}, at


def is_gradient(call: PairedCall, reading: DerivativePart) -> bool | None:
    """Whether a vector is the gradient of some function, by whether its own Jacobian is symmetric.

    None where that says nothing: the function has several outputs or one entry, or the vector is constant.
    """
    content = call.content(reading.argument)
    x = np.asarray(numbers(content), dtype=np.float64)
    if call.outputs({})[reading.output].size != 1 or x.size < 2:
        return None
    entries = entries_of(x)
    rows = []
    for k in entries:
        step = np.zeros(x.size)
        step[k] = STEP * (abs(x.reshape(-1)[k]) or float(np.abs(x).max()) or 1.0)
        there, before = (
            call.parts({reading.argument: like(content, x + sign * step.reshape(x.shape))}, reading.axis)
            for sign in (1, -1)
        )
        rows.append((there[reading.part] - before[reading.part]).reshape(-1)[entries] / (2 * step[k]))
    jacobian = np.stack(rows)
    size = float(np.abs(jacobian).max())
    return None if not size else bool(np.abs(jacobian - jacobian.T).max() <= ASYMMETRIC * size)


def without_settings(call: PairedCall) -> bool:
    """Whether all parts agree where tuples of numbers that the object holds, such as a domain, are None.

    The derivative does not know them: they are for its caller to apply.
    """
    settings = {
        STATE + name for name, x in getattr(call.owner, "__dict__", {}).items() if type(x) is tuple and moves(x)
    }
    before = {name: call.content(name) for name in settings}
    try:
        for name in before:
            call.put(name.removeprefix(STATE), None)
        return bool(before) and agreement(readings(call))[0] == 1
    except Exception:  # whatever it raises without them
        return False
    finally:
        for name, content in before.items():
            call.put(name.removeprefix(STATE), content)


def chosen(row: Sequence[DerivativePart]) -> list[DerivativePart]:
    """The readings of a part that are judged: the one that agrees, or those that fit, the least wrong first.

    Up to a factor one may agree by accident, so others are judged, too.
    """
    first = list(row[:1]) if row and row[0].gap == 0 else []
    if first and first[0].factor == 1:
        return first
    different = {x.argument: x for x in reversed(row[len(first) :])}  # of each argument the best
    return first + sorted(different.values(), key=lambda x: x.gap)[: MOST_READINGS - len(first)]
