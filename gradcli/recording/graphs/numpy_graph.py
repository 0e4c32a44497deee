"""Records what a function of NumPy computes, as nodes of ours: it is called on arrays that stand for its arguments.

NumPy hands its functions to such an array by `__array_ufunc__` and `__array_function__` (NEP 13 and NEP 18). Functions
that make arrays (`np.array`, `np.zeros`), those of `math` and some of SciPy do not use these protocols: the modules of
the functions see others for as long as they are recorded. Whatever looks at a number (a branch, `float`) raises Opaque.
"""

from __future__ import annotations

import math
import sys
import threading
from contextlib import contextmanager, suppress
from functools import cached_property, partial, wraps
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gradcli.graph.node import DATA, Node
from gradcli.primitives import functions
from gradcli.primitives.broadcasting import stretch
from gradcli.recording.calls.failures import PACKAGE, describe, is_users
from gradcli.recording.calls.gradient_libraries import Library, attribute, is_a, is_filled, listed
from gradcli.recording.graphs import operations
from gradcli.recording.graphs.operations import Opaque, constant, moved, of_kind, pointwise, shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Builder

KINDS = {"float": np.dtype(np.float64), "int": np.dtype(np.int64), "bool": np.dtype(np.bool_)}
IN_PLACE = ("sort", "partition", "put", "resize")  # as methods; as functions they leave their argument alone
MAKERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "zeros", "ones", "empty", "full", "eye", "identity")
OF_SPECIAL = ("logsumexp", "softmax", "log_softmax")  # Python functions of scipy.special; its others are ufuncs
WITH_PARAMETERS = ("polygamma", "multigammaln", "lambertw", "zeta")  # such functions as scripts have them
UFUNCS: dict[str, Callable[..., Any]] = {  # whose names mean something else in scripts
    "kl_div": lambda x, y: pointwise("add", pointwise("sub", pointwise("rel_entr", x, y), x), y),
    "_zeta": lambda x, q: pointwise("zeta", x, q),
    "fresnel": lambda x: (pointwise("fresnels", x), pointwise("fresnelc", x)),
}
MOST_NODES = 10_000
MOST_KEPT = 10_000  # values among which something is looked for that the function keeps
FILLED = {"zeros": 0.0, "empty": 0.0, "ones": 1.0}
VIEWS = (  # functions of scripts that NumPy answers with views, where it can
    "transpose", "reshape", "ravel", "flatten", "swapaxes", "moveaxis", "squeeze", "expand_dims", "flip", "fliplr",
    "flipud", "rot90", "diag", "diagonal", "broadcast_to", "atleast_1d", "atleast_2d", "real",
    "split", "array_split", "hsplit", "vsplit", "dsplit",
)  # fmt: skip
ORDER = {  # of arguments behind the array
    **dict.fromkeys(("sum", "prod", "mean", "cumsum", "cumprod"), ("axis", "dtype", "out", "keepdims")),
    **dict.fromkeys(("std", "var"), ("axis", "dtype", "out", "ddof", "keepdims")),
    **dict.fromkeys(("max", "min", "amax", "amin"), ("axis", "out", "keepdims")),
}
REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logaddexp": "logsumexp"}


class ActiveBuilder(threading.local):
    """Where nodes are made in this thread; None while nothing is recorded."""

    builder: Builder | None = None
    taken: Sequence[str] = ()  # names of the arguments that are judged
    formats: list[str] = []  # of fewer digits than float64 that it computes in
    refused: Opaque | None = None  # the first time


RECORDER = ActiveBuilder()


def refuse(reason: str) -> NoReturn:
    """Raise Opaque; the function may catch it, so it is remembered."""
    RECORDER.refused = RECORDER.refused or Opaque(reason)
    raise RECORDER.refused


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A way from the code of the user into this module: whatever it raises ends the recording, even if it is caught."""

    @wraps(function)
    def remembering(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except Opaque as problem:
            refuse(str(problem))
        except Exception as problem:  # perhaps what NumPy raises too, perhaps not
            refuse(f"it cannot be recorded: {describe(problem)}")

    return remembering


class ArrayMemory:
    """What an array and its views hold: a node, whose entries `labels` number, and how often it was written."""

    def __init__(self, node: Node) -> None:
        self.node, self.version = node, 0

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return np.arange(self.node.type.size).reshape(self.node.type.shape)


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose entries are not known: a node in place of numbers.

    A view has the memory of another array, and `places` in it, which NumPy itself makes of the labels of that memory.
    What is written into one shows in all. A scalar, as NumPy's functions return them, is never written into.
    """

    __array_priority__ = 1000.0

    def __init__(self, node: Node, scalar: bool | None = None, own: type | None = None) -> None:
        self.memory = ArrayMemory(node)
        self._places: NDArray[np.int64] | None = None  # None is all, in order
        self._known: tuple[Node, int] = (node, 0)  # with the version of the memory
        self.scalar = not node.type.shape if scalar is None else scalar
        self.own = own  # the class of an argument that is a number of Python's
        if node.builder.count > MOST_NODES:
            raise Opaque(f"it takes more than {MOST_NODES:,} operations")

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # what `isinstance` sees
        return self.own or (self.dtype.type if self.scalar else np.ndarray)

    @property
    def places(self) -> NDArray[np.int64]:
        return self.memory.labels if self._places is None else self._places

    @property
    def node(self) -> Node:
        node, version = self._known
        if version != self.memory.version:
            node = operations.entries(node.builder, [self.memory.node], self.places.reshape(-1), self.shape)
            self._known = node, self.memory.version
        return node

    def write(self, node: Node, places: NDArray[np.int64]) -> None:
        """Let a node stand at some places of the memory."""
        whole, size = self.memory.node, self.memory.node.type.size
        node = stretch(of_kind(node, whole.type.kind), places.shape)
        order = np.arange(size)
        order[places.reshape(-1)] = size + np.arange(places.size)
        both = ([node], order - size) if (order >= size).all() else ([whole, node], order)
        self.memory.node = operations.entries(node.builder, *both, whole.type.shape)
        self.memory.version += 1

    def _view(self, places: NDArray[np.int64]) -> Symbol:
        """An array in the same memory."""
        place_of = np.empty(self.memory.node.type.size, np.int64)
        place_of[self.places.reshape(-1)] = np.arange(self.size)
        node = operations.entries(self.node.builder, [self.node], place_of[places].reshape(-1), places.shape)
        other = Symbol(node, False)
        other.memory, other._places, other._known = self.memory, places, (node, self.memory.version)
        return other

    @property
    def shape(self) -> tuple[int, ...]:
        return self._known[0].type.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self._known[0].type.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return KINDS[self._known[0].type.kind]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def real(self) -> Symbol:
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Symbol]:
        return (self[i] for i in range(len(self)))

    def __array__(self, *args: Any, **named: Any) -> Any:
        refuse("it passes its values to code that NumPy's protocols do not cover")

    def __bool__(self) -> bool:
        refuse("it branches on values")

    def __float__(self) -> float:
        refuse("it converts entries to plain Python numbers")

    __int__ = __index__ = __complex__ = __float__

    def __hash__(self) -> int:
        refuse("it looks up values")

    def __reduce__(self) -> Any:
        refuse("it copies or stores its values as objects")

    def __copy__(self, *_: Any) -> Symbol:
        return Symbol(self.node, self.scalar)

    __deepcopy__ = __copy__

    @entry
    def __round__(self, digits: int | None = None) -> Any:
        return np.round(self, digits or 0)

    @entry
    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if is_a(parts[-1], Symbol) and parts[-1].node.type.kind == "int":
            indices = [part.node if is_a(part, Symbol) else np.asarray(part) for part in parts]
            if all(index.dtype.kind in "iu" for index in indices if isinstance(index, np.ndarray)):
                return Symbol(operations.taken_at(self.node, range(len(parts)), indices))
        return taken(self, self.places[plain(index)])

    @entry
    def __setitem__(self, index: Any, value: Any) -> None:
        if is_a(index, Symbol) and index.dtype == bool and index.shape == self.shape and np.size(value) == 1:
            self.write(pointwise("where", index.node, shaped(node_of(value), ()), self.node), self.places)
        elif is_a(index, Symbol) and index.node.type.kind == "int" and not index.shape:
            there = one_hot(index, len(self)).reshape(-1, *(1,) * (self.ndim - 1))
            self.write(node_of(there * value + (1.0 - there) * self), self.places)
        else:
            places = np.asarray(self.places[plain(index)])
            if is_a(value, Symbol) and value.memory is self.memory and np.array_equal(value.places, places):
                return  # x[i] += y has written into the view, and puts it where it is
            self.write(node_of(value), places)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if not callable(getattr(np.ndarray, name)):
            refuse(f"it reads the attribute {name} of an array")
        return partial(method, self, name)

    @entry
    def __array_ufunc__(self, ufunc: Any, how: str, *xs: Any, out: Any = None, **named: Any) -> Any:
        name, kind = ufunc.__name__, dtype_of(named.pop("dtype", None))
        if how == "at" and name == "add" and is_a(xs[0], Symbol):
            add_at(*xs)
            return None
        if how == "reduce" and name in REDUCED:
            axis = named.pop("axis", 0)
            (target,) = out or (None,)
            return called(REDUCED[name], ufunc.reduce, xs, {**named, "axis": axis, "dtype": kind, "out": target})
        if how != "__call__" or kind not in "f" or {*named} - {"casting"}:
            raise Opaque(f"it calls {name} in a way that is not supported")
        if ufunc.nout > 1 and name in UFUNCS and not out:
            return tuple(map(Symbol, UFUNCS[name](*map(node_of, xs))))
        (target,) = out or (None,)
        return put_into(target, Symbol(entrywise(name, xs)))

    @entry
    def __array_function__(self, func: Any, types: Any, args: Any, named: Any) -> Any:
        return called(func.__name__, func, args, named)


def argument(leaf: Node, value: Any) -> Symbol:
    """What stands for an argument of some value."""
    return Symbol(leaf, not isinstance(value, np.ndarray), type(value) if type(value) in (float, int) else None)


def taken(x: Symbol, places: Any) -> Symbol:
    """Entries of an array: a view where NumPy gives one of its labels, a scalar where that gives a number."""
    if isinstance(places, np.ndarray) and np.may_share_memory(places, x.memory.labels):
        return x._view(places)
    node = operations.entries(x.node.builder, [x.memory.node], np.reshape(places, -1), np.shape(places))
    return Symbol(node, not isinstance(places, np.ndarray))


def put_into(target: Any, result: Symbol) -> Any:
    """A result, which is written into an array where there is one; no scalar is."""
    if target is None or (is_a(target, Symbol) and target.scalar):
        return result
    if not is_a(target, Symbol):
        raise Opaque("it writes into an array that it made itself")
    target.write(result.node, target.places)
    return target


def dtype_of(dtype: Any) -> str:
    """The kind of a dtype, "f" for none; a format of fewer digits than float64 is remembered."""
    form: np.dtype[Any] = np.dtype(dtype)
    if form.kind == "f" and form.itemsize < KINDS["float"].itemsize:
        RECORDER.formats.append(form.name)
    if form.kind not in operations.KINDS:
        raise Opaque(f"it computes with values of dtype {form}")
    return form.kind


class SelectableNumbers(np.ndarray):
    """An array of numbers from which entries may be selected at places that are recorded."""

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        return recorded(np.asarray(self))[index] if any(map(holds, parts)) else super().__getitem__(index)


def one_hot(places: Symbol, count: int) -> Any:
    """1 at each of some places, and else 0, along a last axis of so many entries."""
    return Symbol(operations.one_hot(places.node, count))


@entry
def method(x: Symbol, name: str, *args: Any, **named: Any) -> Any:
    """A method of an array, which is in most cases a function of NumPy's."""
    if name in ("astype", "copy", "view"):
        dtype = (*args, named.get("dtype"))[0] if name != "copy" else None
        kind = x.dtype.kind if dtype is None else dtype_of(dtype)
        if kind == x.dtype.kind and (name == "view" or named.get("copy") is False):
            return x._view(x.places) if name == "view" else x
        if name == "view":
            raise Opaque("it reads the bits of its numbers")
        return Symbol(of_kind(x.node, operations.KINDS[kind]), x.scalar)
    if name == "fill":
        x[...] = args[0]
        return None
    if name in ("reshape", "transpose") and len(args) > 1:
        args = (args,)
    if name == "flatten":
        return taken(x, x.places.flatten(*args, **named))
    function = getattr(np, name, None)
    if function is None or name in IN_PLACE:
        raise Opaque(f"it calls the method {name}, which is not supported")
    return called(name, function, (x, *args), named)


def called(name: str, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of one of NumPy's functions on arrays, some of which are recorded."""
    if name in ("shape", "ndim", "size"):
        return getattr(args[0], name)
    if name in ORDER:  # what may be given by position
        named = {**dict(zip(ORDER[name], args[1:], strict=False)), **named}
        args = args[:1]
    if any(named.get(key) is not None for key in ("where", "initial")):
        raise Opaque(f"it calls {name} in a way that is not supported")
    target, dtype = named.get("out"), named.get("dtype")
    named = {key: value for key, value in named.items() if key not in ("dtype", "out", "where", "initial")}
    if name.endswith("_like"):
        return like(name.removesuffix("_like"), func, *args, dtype=dtype, **named)
    if dtype is not None:
        if not is_a(args[0], Symbol):
            raise Opaque(f"it calls {name} in a way that is not supported")
        args = (Symbol(of_kind(args[0].node, operations.KINDS[dtype_of(dtype)])), *args[1:])
    return put_into(target, result) if is_a(result := plainly(name, func, args, named), Symbol) else result


def plainly(name: str, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of a function of NumPy's without options that change formats or write."""
    if name == "where" and len(args) == 3:
        return Symbol(pointwise("where", *map(node_of, args)), False)
    if name in ("dot", "matmul", "vdot"):
        return Symbol(operations.contracted(node_of(args[0]), node_of(args[1])))
    if name == "einsum" and isinstance(args[0], str):
        return Symbol(operations.summed(args[0], *map(node_of, args[1:])))
    if name in WRITTEN:
        return WRITTEN[name](*args, **named)
    if name in VIEWS and is_a(args[0], Symbol):
        views = views_of(args[:1], lambda places: func(*places, *args[1:], **named))
        if views is not None:
            with suppress(Opaque):
                for view, x in zip(listed(views), listed(by_name(name, args, named)), strict=True):
                    view._known = x.node, view.memory.version
            return views
    try:
        return by_name(name, args, named)
    except Opaque as problem:
        try:
            return by_entries(name, func, args, named)
        except Opaque:
            raise problem from None


def like(name: str, func: Callable[..., Any], x: Any, *args: Any, dtype: Any = None, **named: Any) -> Any:
    """`zeros_like` and its like: arrays of another format are NumPy's own."""
    value, *more = args if name == "full" else (FILLED[name], *args)
    dtype = more[0] if more else dtype
    shape = x.shape if named.get("shape") is None else named["shape"]
    if (x.dtype.kind if dtype is None else dtype_of(dtype)) != "f":
        return func(np.empty(shape, x.dtype), *args, dtype=dtype) if not more else func(np.empty(shape), *args)
    return filled(shape, node_of(value))


def by_name(name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function of the language of scripts, whose functions are called as NumPy's are."""
    primitive = functions().get(name)
    if primitive is None:
        raise Opaque(f"the function {name} is not supported")
    if primitive.pointwise and not named:
        return Symbol(entrywise(name, args))
    rule: Any = primitive.call or primitive.definition or primitive
    options = [f"{key}={value!r}" for key, value in named.items()]
    options += [repr(x) for x in args if isinstance(x, (str, int, float))]
    unread = f"{name}({', '.join(['...', *options])})" if options else name
    try:
        results = rule(*map(operand_of, args), **named)
    except Exception as problem:  # it may take other operands than NumPy does
        raise Opaque(f"the function {unread} is not supported") from problem
    parts = results if isinstance(results, tuple) else (results,)
    if not all(isinstance(part, Node) for part in parts):
        raise Opaque(f"the function {unread} is not supported")
    return tuple(map(Symbol, parts)) if isinstance(results, tuple) else Symbol(results)


def operand_of(x: Any) -> Any:
    """An operand as a node, where it is not a single number or option."""
    if isinstance(x, (list, tuple)) and any(isinstance(part, np.ndarray) or holds(part) for part in x):
        return tuple(node_of(part) for part in x)
    return node_of(x) if isinstance(x, np.ndarray) or holds(x) else x


def by_entries(name: str, func: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function that only moves entries about, or gives views; its arrays may be in a list."""
    live: list[Symbol] = []

    def collected(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)([collected(part) for part in x])
        if is_a(x, np.ndarray) and x.dtype.kind == "f" and name not in ("take", "repeat"):
            x = Symbol(constant(current_builder(), x))
        if is_a(x, Symbol):
            live.append(x)
        return x

    args = [collected(x) for x in args]

    def run(arrays: Sequence[Any]) -> Any:
        remaining = iter(arrays)

        def swapped(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)([swapped(part) for part in x])
            return next(remaining) if is_a(x, Symbol) else x

        return func(*(swapped(x) for x in args), **named)

    views = views_of(live, run)
    if views is not None:
        return views
    results = moved(current_builder(), [x.node for x in live], run, f"the function {name}")
    return Symbol(results[0]) if len(results) == 1 else [Symbol(result) for result in results]


def views_of(live: Sequence[Symbol], run: Callable[[Sequence[Any]], Any]) -> Any:
    """What a function gives that returns views of its arrays; None where it returns anything else."""
    places = [x.places[...] for x in live]
    for x in places:
        x.flags.writeable = False
    try:
        results = run(places)
    except Exception:  # of labels, which are no floats and not to be written
        return None
    views = []
    for part in results if isinstance(results, (list, tuple)) else [results]:
        owners = [x for x in live if isinstance(part, np.ndarray) and np.may_share_memory(part, x.memory.labels)]
        if not owners:
            return None
        views.append(owners[0]._view(part))
    return type(results)(views) if isinstance(results, (list, tuple)) else views[0]


def entrywise(name: str, xs: Sequence[Any]) -> Node:
    """An operation entry by entry, by NumPy's, SciPy's or `math`'s name of it."""
    nodes = [node_of(x) for x in xs]
    if name == "matmul":
        return operations.contracted(*nodes)
    if name in ("power", "float_power", "pow") and is_a(xs[1], (int, float)):
        return operations.powered(nodes[0], xs[1])
    if name in ("positive", "conjugate"):
        return nodes[0]
    if name == "isfinite":
        return operations.finite(nodes[0])
    if name == "floor_divide":
        return pointwise("floor", pointwise("div", *nodes))
    if name == "fmod":
        return pointwise("sub", nodes[0], pointwise("mul", nodes[1], pointwise("trunc", pointwise("div", *nodes))))
    if name in UFUNCS:
        term: Node = UFUNCS[name](*nodes)
        return term
    known = operations.elementwise(name, len(nodes))
    if known is None:
        raise Opaque(f"the function {name} is not supported")
    return pointwise(known, *nodes)


def add_at(x: Symbol, index: Any, value: Any = 1.0) -> None:
    """`np.add.at`: entries that are named twice are added twice."""
    if is_a(index, Symbol) and index.node.type.kind == "int":
        there = one_hot(index, len(x)).reshape(index.size, len(x))
        added = np.broadcast_to(recorded(value), index.shape + x.shape[1:]).reshape(index.size, *x.shape[1:])
        x.write(node_of(x + np.tensordot(there.T, added, 1)), x.places)
        return
    places = np.arange(x.size).reshape(x.shape)[plain(index)]
    written = stretch(of_kind(node_of(value), "float"), np.shape(places))
    sent = operations.added_up(x.node.builder, written, np.reshape(places, -1), x.shape)
    x.write(pointwise("add", x.node, sent), x.places)


# --- functions of NumPy, written in others of its functions ---------------------------------------------------------


def recorded(x: Any) -> Symbol:
    return x if is_a(x, Symbol) else Symbol(node_of(x))


def average(x: Any, axis: int | None = None, weights: Any = None, keepdims: bool = False) -> Any:
    x = recorded(x)
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    weights = recorded(weights)
    if weights.ndim != x.ndim and axis is not None:
        weights = weights.reshape([x.shape[axis] if k == axis % x.ndim else 1 for k in range(x.ndim)])
    weights = np.broadcast_to(weights, x.shape)
    return np.sum(x * weights, axis=axis, keepdims=keepdims) / np.sum(weights, axis=axis, keepdims=keepdims)


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return by_name("convolve", [recorded(a), recorded(v)], {"mode": mode})


def corrcoef(x: Any, rowvar: bool = True) -> Any:
    matrix = cov(x, rowvar)
    spread = np.sqrt(np.diag(matrix))
    return matrix / np.outer(spread, spread)


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if len(v) > len(a):
        raise Opaque("it calls correlate in a way that is not supported")
    return convolve(a, v[::-1], mode)


def cov(x: Any, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    rows = np.atleast_2d(recorded(x))
    rows = rows if rowvar or np.ndim(x) < 2 else rows.T
    apart = rows - np.mean(rows, axis=1, keepdims=True)
    return np.squeeze(apart @ apart.T / (rows.shape[1] - (int(not bias) if ddof is None else ddof)))


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x = recorded(x)
    edge = [1 if k == axis % x.ndim else length for k, length in enumerate(x.shape)]
    parts = [
        np.broadcast_to(recorded(part), edge) if np.ndim(part) == 0 else recorded(part)
        for part in (prepend, x, append)
        if part is not None
    ]
    return by_name("diff", [np.concatenate(parts, axis=axis)], {"n": n, "axis": axis})


def gradient(x: Any, spacing: Any = 1.0, axis: int | None = None) -> Any:
    x = recorded(x)
    if np.ndim(spacing) or (axis is None and x.ndim != 1):
        raise Opaque("it calls gradient in a way that is not supported")
    x = np.moveaxis(x, axis or 0, 0)
    parts = [(x[1:2] - x[:1]) / spacing, (x[2:] - x[:-2]) / (2 * spacing), (x[-1:] - x[-2:-1]) / spacing]
    return np.moveaxis(np.concatenate(parts), 0, axis or 0)


def interp(x: Any, xp: Any, fp: Any) -> Any:
    return by_name("interp", [*map(recorded, (x, xp, fp))], {})


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Any:
    parts = np.arange(float(num)).reshape([num] + [1] * max(np.ndim(start), np.ndim(stop)))
    return start + (stop - start) * recorded(parts) / max(num - bool(endpoint), 1)


def polyval(p: Any, x: Any) -> Any:
    value = 0.0
    for coefficient in p:
        value = value * x + coefficient
    return value


def ptp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.max(x, axis=axis, keepdims=keepdims) - np.min(x, axis=axis, keepdims=keepdims)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    x = np.linalg.pinv(a) @ b  # of an array that is no recorded one, NumPy's floats
    return x, np.sum((b - a @ x) ** 2, axis=0), min(a.shape), by_name("svdvals", [recorded(a)], {})


def percentile(x: Any, q: float, axis: int | None = None) -> Any:
    return by_name("quantile", [recorded(x)], {"q": q / 100, "axis": axis})


def around(a: Any, decimals: int = 0) -> Any:
    scale = 10.0 ** abs(decimals)
    return np.rint(recorded(a) * scale) / scale if decimals >= 0 else np.rint(recorded(a) / scale) * scale


def select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    value = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        value = Symbol(pointwise("where", *map(node_of, (condition, choice, value))))
    return value


WRITTEN: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(average, convolve, corrcoef, correlate, cov, diff, gradient, interp, linspace, lstsq, percentile),
        *(polyval, ptp, select, around),
    )
}
WRITTEN["round"] = around


# --- scipy.linalg ---------------------------------------------------------------------------------------------------


def cholesky(a: Any, lower: bool = False) -> Any:
    factor = np.linalg.cholesky(recorded(a))
    return factor if lower else factor.T


def cho_factor(a: Any, lower: bool = False) -> Any:
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: Any, b: Any) -> Any:
    factor, lower = c_and_lower
    factor = np.tril(recorded(factor)) if lower else np.triu(recorded(factor)).T
    return np.linalg.solve(factor @ factor.T, recorded(b))


def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False) -> Any:
    factor = np.tril(recorded(a)) if lower else np.triu(recorded(a))
    return np.linalg.solve(factor if trans in (0, "N") else factor.T, recorded(b))


def as_in_numpy(name: str) -> Callable[..., Any]:
    return lambda *arrays: getattr(np.linalg, name)(*map(recorded, arrays))


OF_LINALG: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (cholesky, cho_factor, cho_solve, solve_triangular)},
    **{name: as_in_numpy(name) for name in ("det", "inv", "solve")},
}
WITHOUT_EFFECT = ("check_finite", "overwrite_a", "overwrite_b")  # options of them that no value depends on


# --- operands -----------------------------------------------------------------------------------------------------


def current_builder() -> Builder:
    """The builder of the recording in this thread."""
    if RECORDER.builder is None:
        raise Opaque("an array of a recording is used after its end")
    return RECORDER.builder


def node_of(x: Any) -> Node:
    """An array, a number, or a list of such, as a node."""
    if isinstance(x, Node):
        return x
    if is_a(x, Symbol):
        node: Node = x.node
        return node
    if isinstance(x, (list, tuple)) and holds(x):
        nodes = [node_of(entry) for entry in x]
        shape = np.broadcast_shapes(*(node.type.shape for node in nodes))
        if any(node.type.shape != shape for node in nodes):
            raise Opaque("it makes an array of arrays of different shapes")
        flat = operations.joined([shaped(of_kind(node, "float"), (node.type.size,)) for node in nodes])
        return shaped(flat, (len(nodes), *shape))
    node = constant(current_builder(), x)
    if node.primitive is DATA and isinstance(x, np.ndarray):
        name_by_code(node.builder, node.params["digest"], x)
    return node


def name_by_code(builder: Builder, digest: str, array: NDArray[Any]) -> None:
    """Give an array that the function has computed the name of the variable that it is in, unless it has a name."""
    if builder.data[digest].name:
        return
    frame = sys._getframe(2)
    while frame.f_back is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    name = next((name for name, value in frame.f_locals.items() if value is array), None)
    if name is not None and name not in {*RECORDER.taken, *functions(), *(data.name for data in builder.data.values())}:
        builder.data[digest].name = name


def holds(x: Any) -> bool:
    """Whether a list, or a list in it, has an array that is recorded."""
    return is_a(x, Symbol) or (isinstance(x, (list, tuple)) and any(map(holds, x)))


def plain(index: Any) -> Any:
    """An index; Opaque where it depends on values."""
    if any(is_a(part, Symbol) for part in (index if isinstance(index, tuple) else (index,))):
        raise Opaque("it selects entries at indices that depend on the point")
    return index


def filled(shape: Any, node: Node) -> Symbol:
    """An array of equal numbers, into which nodes may be written."""
    shape = tuple(np.atleast_1d(shape).tolist()) if np.size(shape) else ()
    return Symbol(stretch(of_kind(node, "float"), shape), False)


class Symbols(Library):
    """What reads the arrays that a recorded function returns."""

    def read(self, role: str, value: Any) -> Any:
        """A symbol."""
        return value if is_a(value, Symbol) else Symbol(node_of(value))


def pulled_back(cotangent: Node, jacobian: Node) -> Node:
    """A cotangent times a Jacobian, whose first axes are those of the cotangent."""
    inner = jacobian.type.shape[len(cotangent.type.shape) :]
    matrix = shaped(jacobian, (cotangent.type.size, jacobian.type.size // cotangent.type.size))
    return shaped(operations.contracted(shaped(cotangent, (cotangent.type.size,)), matrix), inner)


# --- while it lasts -----------------------------------------------------------------------------------------------


@contextmanager
def recording(builder: Builder, taken: Sequence[str], formats: list[str], *called: Any) -> Iterator[None]:
    """What makes arrays, and the functions of `math`, take part in the recording in the modules of some functions.

    What the functions keep meanwhile, in names of their modules, objects, dicts and lists, is forgotten at its end.
    Formats of fewer digits than float64 that they compute in are added to `formats`.
    """
    scopes = with_imports([scope for function in called for scope in scopes_of(function)])
    before = [(held, held.copy()) for held in containers([*scopes, *called])]
    RECORDER.builder, RECORDER.taken, RECORDER.formats, RECORDER.refused = builder, taken, formats, None
    try:
        for scope in scopes:
            scope.update({name: as_recorded(value) for name, value in scope.items()})
        yield
        if RECORDER.refused is not None:  # the function went on
            raise RECORDER.refused
    finally:
        RECORDER.builder = None
        for held, content in before:
            restore(held, content)


def containers(roots: Sequence[Any]) -> Iterator[dict[Any, Any] | list[Any]]:
    """The dicts and lists in which functions and objects of the user may keep something."""
    pending, seen = [*roots][::-1], set[int]()
    while pending and len(seen) < MOST_KEPT:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, (dict, list)):
            yield value
            pending[:0] = value.values() if is_a(value, dict) else value[:MOST_KEPT]
        elif is_a(value, tuple):
            pending[:0] = value
        elif is_a(value, partial):
            pending[:0] = value.func, value.args, value.keywords
        elif is_a(value, MethodType):
            pending[:0] = value.__func__, value.__self__
        elif is_a(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
            pending[:0] = value.__defaults__, value.__kwdefaults__, *cells
        elif is_users(file_of_module(type(value).__module__)):
            pending[:0] = [attribute(value, "__dict__")]


def restore(held: Any, content: Any) -> None:
    """Give a dict or a list the content that it had."""
    if is_a(held, list):
        held[:] = content
        return
    for key in held.keys() - content.keys():
        del held[key]
    held.update({key: value for key, value in content.items() if held.get(key) is not value})


def scopes_of(function: Any, depth: int = 4) -> Iterator[dict[str, Any]]:
    """The names of the modules that a function, and those that its closure holds, were written in."""
    if is_a(function, partial):
        inside = [function.func]
    elif not is_a(function, (FunctionType, MethodType)):
        inside = [attribute(function, "__wrapped__") or type(function).__call__]
    else:
        if not str(function.__globals__.get("__name__")).startswith("gradcli."):
            yield function.__globals__
        inside = [cell.cell_contents for cell in function.__closure__ or () if is_filled(cell)]
    for inner in inside if depth else ():
        if callable(inner):
            yield from scopes_of(inner, depth - 1)


def with_imports(scopes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some modules, with those of the user's own that they import, or import functions, classes and objects from."""
    reached = {id(scope): scope for scope in scopes}
    pending = [*reached.values()]
    while pending:
        for value in [*pending.pop().values()]:
            if is_a(value, ModuleType):
                scope = vars(value)
            elif is_a(value, FunctionType):
                scope = value.__globals__
            else:
                home = (value if is_a(value, type) else type(value)).__module__
                scope = attribute(sys.modules.get(home), "__dict__") or {}
            if id(scope) not in reached and is_users(file_of_module(scope.get("__name__"))):
                reached[id(scope)] = scope
                pending.append(scope)
    return [*reached.values()]


def file_of_module(name: Any) -> str:
    """The file of a module; that of this package where it is unknown, except for what is typed into an interpreter."""
    file = attribute(sys.modules.get(name) if is_a(name, str) else None, "__file__")
    return str(file) if file else "" if name == "__main__" else PACKAGE


def as_recorded(value: Any) -> Any:
    """A name of a module as a recorded function sees it: itself, or what takes recorded arrays in its place."""
    if is_a(value, ModuleType):
        return (
            RecordedModule(value)
            if value.__name__ in ("numpy", "math", "scipy", "scipy.special", "scipy.linalg")
            else value
        )
    name = attribute(value, "__name__") if callable(value) else None
    if not isinstance(name, str):
        return value
    for module in map(sys.modules.get, ("numpy", "math", "scipy.special", "scipy.linalg")):
        if module is not None and is_replaced(module, name) and value is getattr(module, name, None):
            return replacement(module, name)
    if name in ("array_namespace", "xp_promote") and attribute(value, "__module__") == "scipy._lib._array_api":
        return lambda *args, **named: of_array_api(value, args, named)
    return value


def of_array_api(own: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Two functions with which SciPy's own functions begin: the module of their arrays, and arrays of one type."""
    if RECORDER.builder is None or not any(map(holds, args)):
        return own(*args, **named)
    if own.__name__ == "array_namespace":
        return RecordedModule(np)
    return recorded(args[0]) if len(args) == 1 else tuple(map(recorded, args))


class RecordedModule:
    """A module as a function that is recorded sees it."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._own, name)
        return replacement(self._own, name) if is_replaced(self._own, name) else as_recorded(value)


def is_replaced(module: Any, name: str) -> bool:
    """Whether a function does not follow the protocols of arrays: it makes one, or is a function of `math` or SciPy."""
    if module is np:
        return name in MAKERS
    special = (*OF_SPECIAL, *WITH_PARAMETERS, "factorial")
    known = {"math": functions(), "scipy.special": special, "scipy.linalg": OF_LINALG}.get(module.__name__, ())
    return name in known and hasattr(module, name)


def replacement(module: Any, name: str) -> Callable[..., Any]:
    """The function itself, but for arrays that are recorded."""
    own = getattr(module, name)

    @entry
    def of_recorded(*args: Any, **named: Any) -> Any:
        if RECORDER.builder is None or not args:
            return own(*args, **named)
        if module is not np and not any(map(holds, args)):
            return own(*args, **named)
        if module is math:
            return Symbol(entrywise(name, args))
        if module.__name__ == "scipy.linalg":
            return OF_LINALG[name](*args, **{key: value for key, value in named.items() if key not in WITHOUT_EFFECT})
        if name == "factorial" and not any(named.values()):  # SciPy's is 0 for negative numbers
            return np.where(args[0] < 0, 0.0, Symbol(operations.own(name)(node_of(args[0]))))
        if name in WITH_PARAMETERS:
            return Symbol(operations.own(name)(*[node_of(x) if holds(x) else x for x in args], **named))
        if module is not np:
            return called(name, own, args, {"axis": None, **named})
        if name == "full":
            floats = len(args) > 1 and holds(args[1]) and dtype_of((*args[2:], named.get("dtype"))[0]) == "f"
            return filled(args[0], node_of(args[1])) if floats else own(*args, **named)
        if name in ("eye", "identity"):
            return own(*args, **named).view(SelectableNumbers)
        dtype = (*args[1:], named.get("dtype"))[0]
        if name in FILLED:
            floats = dtype_of(dtype) == "f"
            return filled(args[0], constant(current_builder(), FILLED[name])) if floats else own(*args, **named)
        if not holds(args[0]):
            return own(*args, **named)
        return array_of(name, args[0], dtype, named.get("copy", name == "array"))

    return of_recorded


def array_of(name: str, x: Any, dtype: Any, copy: bool | None) -> Any:
    """What `np.array` and its like make of a recorded array, or of a list that holds some."""
    node = node_of(x)
    kind = node.type.kind if dtype is None else operations.KINDS[dtype_of(dtype)]
    if is_a(x, Symbol) and not copy and not x.scalar and kind == node.type.kind:
        if name != "ascontiguousarray" or (x.shape and x.places.flags.c_contiguous):
            return x
    return Symbol(of_kind(node, kind), False)
