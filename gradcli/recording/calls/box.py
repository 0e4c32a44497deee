"""Calls a Python function and its derivative as a black box: values, and vector-Jacobian products.

Every call gets arguments of its own, its output is captured, and changes of its arguments are noticed.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import error, visible
from gradcli.recording.calls.call_arguments import (
    Argument,
    DerivativeForm,
    arguments_of,
    of_one_object,
    takes_cache,
    takes_cotangent,
    takes_cotangent_alone,
    takes_cotangent_first,
    with_integers,
)
from gradcli.recording.calls.failures import Failed, Listener, OutOfTime, called
from gradcli.recording.calls.gradient_libraries import (
    JAX,
    NUMPY,
    TORCH,
    is_function_class,
    is_written,
    library_at,
    library_of,
    named_by,
    read_by,
    unit_of,
)
from gradcli.recording.calls.reached_values import reached_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from gradcli.recording.calls.gradient_libraries import Library

    Floats = NDArray[np.floating[Any]]
    Derivative = Callable[..., Any] | bool | None

GRADIENT, JACOBIAN, VJP, PAIR, OWN = "gradient", "jacobian", "vjp", "pair", "own"
ROLES = {GRADIENT: "df", JACOBIAN: "jac", VJP: "vjp", PAIR: "f", OWN: "the backward pass"}


@dataclass(eq=False)
class BlackBox:
    """A black box: the flat vector of everything that moves goes in, the flat vector of outputs comes out."""

    f: Callable[..., Any]
    arguments: list[Argument]
    library: Library
    kind: str
    derivative: Callable[..., Any] | None
    listener: Listener
    seconds: float
    float32: bool = False
    shape: tuple[int, ...] | None = field(default=None, init=False)  # of f's value; None of a tuple of several
    size: int = field(default=0, init=False)
    form: DerivativeForm | None = field(default=None, init=False)
    changed: set[str] = field(default_factory=set, init=False)  # "f changes its argument x"
    symmetric: list[str] = field(default_factory=list, init=False)  # matrices of which f reads one triangle
    skipped: list[str] = field(default_factory=list, init=False)  # numbers that the backward pass has no gradient for
    misshapen: dict[str, Failed] = field(default_factory=dict, init=False)  # arguments whose gradient cannot be read
    outside: int = field(default=0, init=False)  # calls near the point that raised
    drawing: list[str] = field(default_factory=list, init=False)  # which of f and its derivative take random numbers
    dtype: str = field(default="float64", init=False)

    def __post_init__(self) -> None:
        self.ends = monotonic() + self.seconds
        self.listener.draws.reached = partial(reached_by, [self.f, self.derivative])
        self.one_object = of_one_object(self.f, self.derivative)
        self.cotangent_alone = self.kind == VJP and takes_cotangent_alone(self.f, self.derivative)
        self.with_cache = self.kind == VJP and takes_cache(self.derivative)
        positional = [arg.name for arg in self.arguments if not arg.keyword]
        self.cotangent_first = self.kind == VJP and takes_cotangent_first(self.f, self.derivative, positional)
        self.cache: Any = None
        self.names: list[str] = []  # the arguments that are judged
        self.slices: dict[str, slice] = {}
        self.x = np.zeros(0)

    # --- the point -----------------------------------------------------------------------------------------

    def probe(self) -> Floats:
        """f at the point for the first time; finds out shapes and what is judged.

        Raises Failed where f or the derivative raises or returns nothing that could be judged.
        """
        self._lay_out([arg.name for arg in self.arguments if arg.array is not None])
        value, raw = self._call_f(self.x, at_the_point=True)
        if self.kind in (GRADIENT, PAIR) and self.size > 1:
            message = f"f returns an array of shape {list(self.shape or ())}: its derivative is not a gradient"
            hint = "give the full Jacobian as jac=, or the vector-Jacobian product vjp=g with g(x, ct)"
            raise Failed("f", message, help=hint)
        weights = np.ones(self.size)
        if self.kind == OWN:
            sent = dict(zip(self.names, self._derived(self.x, weights, at_the_point=True), strict=True))
            data = [arg.name for arg in self.arguments if isinstance(arg.value, (int, float))]
            if any(getattr(arg.value, "requires_grad", False) for arg in self.arguments):
                data += [arg.name for arg in self.arguments if getattr(arg.value, "requires_grad", None) is False]
            kept = [name for name in self.names if sent[name] is not None or name not in data]
            if kept and len(kept) < len(self.names):  # what backward answers with None is an option, or a constant
                self.skipped = [name for name in self.names if name not in kept]
                self._lay_out(kept)
            self._gathered([sent[name] for name in self.names], weights)
            return value
        self.form = DerivativeForm(
            self.role, self.library, self.arguments, (self.shape or ()) if self.kind == JACOBIAN else ()
        )
        first = raw if self.kind == PAIR else self._derived(self.x, weights, at_the_point=True)
        names = () if first is None else self.form.covered(first)
        if not names:
            what = "None" if first is None else "no gradient of any argument"
            raise Failed(self.role, f"{self.role} returns {what}", help="does it end without `return`?")
        self.misshapen = self.form.misshapen(first, names)
        self._lay_out([name for name in names if name not in self.misshapen])
        self._gathered(first, weights)
        return value

    @property
    def role(self) -> str:
        """What the derivative is called in sentences."""
        return "df" if self.kind == JACOBIAN and not self.shape else ROLES[self.kind]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an argument."""
        return next(arg.shape for arg in self.arguments if arg.name == name)

    # --- what the checks ask ---------------------------------------------------------------------------------

    def value(self, x: Floats) -> Floats:
        """The outputs at a point near the given one; NaN where f raises. Raises OutOfTime."""
        if monotonic() > self.ends:
            raise OutOfTime
        try:
            with np.errstate(all="ignore"):
                values, _ = self._call_f(x, at_the_point=False)
        except Failed:
            self.outside += 1
            return np.full(self.size, np.nan)
        return values

    def values(self, points: Floats) -> Floats:
        """The outputs at some points, a row each."""
        return np.array([self.value(x) for x in points])

    def remarks(self) -> list[str]:
        """Notes on the calls so far, and `drawing`: prints, warnings, changed arguments, the derivative's form."""
        self.drawing = [role for role in (self.role, "f") if role in self.listener.draws.seen]
        whole = [arg for arg in self.arguments if arg.integers]
        return [
            *self.library.untested(),
            *self.listener.notes(),
            *sorted(self.changed),
            *(f"{self.role} changes {what} in place" for what in sorted(self.library.changed)),
            *(f"f reads only one triangle of {name}: checked for symmetric matrices" for name in self.symmetric),
            *(f"{arg.name} is treated as data: f accepts it as integers only" for arg in whole),
            *(self.form.notes if self.form else ()),
        ]

    @property
    def taken(self) -> str:
        """The coarsest format of the arguments that move."""
        kinds = [np.asarray(arg.array).dtype.name for arg in self.arguments if arg.array is not None]
        return max("float32" if self.float32 else "float64", *kinds, key=unit_of)

    @property
    def claimed(self) -> str | None:
        """The kind of the numbers that the derivative returns; None before its first call, or of a library's own."""
        return self.form.dtype if self.form else None

    def again(self) -> Floats:
        """The outputs at the given point once more. An array that f holds and changes is noted."""
        held = [(name, array, array.copy()) for name, array in read_by(self.f) if isinstance(array, np.ndarray)]
        values = self._call_f(self.x, at_the_point=True)[0]
        for name, now, before in held:
            if not np.array_equal(now, before, equal_nan=now.dtype.kind in "fc"):
                self.changed.add(f"f changes {name}, which it holds, in place")
        return values

    def pullback(self, x: Floats, weights: Floats, at_the_point: bool = False) -> Floats:
        """The derivative of a combination of the outputs, flat, as the judged derivative gives it. Raises Failed."""
        if self.kind == PAIR:
            _, raw = self._call_f(x, at_the_point)
        else:
            raw = self._derived(x, weights, at_the_point)
        return self._gathered(raw, weights)

    # --- inner ----------------------------------------------------------------------------------------------

    def _lay_out(self, names: Sequence[str]) -> None:
        self.names, self.slices, at = list(names), {}, 0
        parts = []
        for arg in self.arguments:
            if arg.array is not None and arg.name in names:
                self.slices[arg.name] = slice(at, at + arg.array.size)
                at += arg.array.size
                parts.append(np.asarray(arg.array, dtype=np.float64).reshape(-1))
        self.x = np.concatenate(parts) if parts else np.zeros(0)

    def arguments_at(self, x: Floats, track: bool) -> dict[str, Any]:
        """Arguments for one call, by name."""
        values: dict[str, Any] = {}
        for arg in self.arguments:
            if arg.array is None:
                values[arg.name] = own_copy(arg.value)
                continue
            moved = arg.array
            if arg.name in self.slices:
                moved = x[self.slices[arg.name]].reshape(arg.shape)
            kind = np.float32 if self.float32 else np.asarray(arg.array).dtype
            moves = (track or getattr(arg.value, "requires_grad", False)) and arg.name in self.names
            values[arg.name] = self.library.give(np.asarray(moved, dtype=kind), arg.value, moves)
        return values

    def spread(self, function: Callable[..., Any], arguments: dict[str, Any], *more: Any) -> Any:
        """A call with arguments by name, handed over as the function takes them."""
        names = {arg.name for arg in self.arguments if arg.keyword}
        positional = [value for name, value in arguments.items() if name not in names]
        return function(*positional, *more, **{name: arguments[name] for name in names})

    def pull(self, arguments: dict[str, Any], cotangent: Any) -> Any:
        """What a derivative that takes a cotangent returns, unread."""
        derivative: Any = self.derivative
        if self.with_cache:
            return derivative(cotangent, self.cache)
        if self.cotangent_alone:
            return derivative(cotangent)
        if self.cotangent_first:
            return self.spread(partial(derivative, cotangent), arguments)
        return self.spread(derivative, arguments, cotangent)

    def value_of(self, result: Any) -> Any:
        """What f computes; where it returns a cache too, that is kept for the derivative."""
        if not self.with_cache:
            return result
        if not isinstance(result, tuple) or len(result) != 2:
            raise Failed("f", f"f returns {described(result)}, not the pair (value, cache) that its derivative expects")
        value, self.cache = result
        return value

    def _call_f(self, x: Floats, at_the_point: bool) -> tuple[Floats, Any]:
        """The outputs, flat; and of a pair its other half."""
        arguments = self.arguments_at(x, track=False)
        with self.listener.hearing("f", at_the_point):
            result = self.value_of(called("f", self.spread, self.f, arguments))
        if at_the_point:
            self._compare("f", x, arguments)
        other = None
        if self.kind == PAIR:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                hint = "pass the gradient as a separate function, or return both"
                raise Failed("f", f"f returns {described(result)}, not the pair (value, gradient)", help=hint)
            result, other = result
        arrays = self.library.outputs("f", result)
        shape = arrays[0].shape if len(arrays) == 1 else None
        if not self.size:
            self.shape = shape
            self.size = sum(array.size for array in arrays)
            self.dtype = next((array.dtype.name for array in arrays if array.dtype.kind == "f"), "float64")
            if not self.size:
                raise Failed("f", "f returns an empty array")
        flat = np.concatenate([array.reshape(-1).astype(np.float64) for array in arrays])
        if shape != self.shape or flat.size != self.size:
            raise Failed("f", f"f returns shape {list(shape or ())} near the point and {list(self.shape or ())} at it")
        return flat, other

    def _derived(self, x: Floats, weights: Floats, at_the_point: bool) -> Any:
        """What the derivative returns, unread."""
        arguments = self.arguments_at(x, track=self.kind == OWN)
        with self.listener.hearing(self.role, at_the_point):
            if self.one_object or self.with_cache:
                self.value_of(called("f", self.spread, self.f, self.arguments_at(x, track=False)))
            if self.kind == OWN:
                of_names = (partial(self.spread, self.f), arguments, self.names, weights)
                raw = called(self.role, self.library.pullback, *of_names)
            elif self.kind == VJP:
                seed = np.asarray(weights).reshape(self.shape or ())
                cotangent = self.library.give(seed, float(seed) if not seed.shape else seed, False)
                raw = called(self.role, self.pull, arguments, cotangent)
                self.library.changed |= {"its cotangent"} if is_written(cotangent, seed) else set()
            else:
                assert self.derivative is not None
                raw = called(self.role, self.spread, self.derivative, arguments)
        if at_the_point:
            self._compare(self.role, x, arguments)
        return raw

    def _gathered(self, raw: Any, weights: Floats) -> Floats:
        """A derivative as a flat gradient of the combination of the outputs."""
        if self.kind == OWN:
            parts = [
                np.zeros(self.shape_of(name)) if part is None else self.library.read(self.role, part)
                for name, part in zip(self.names, raw, strict=True)
            ]
            return np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])
        assert self.form is not None
        parts = self.form.read(raw, self.names)
        with np.errstate(all="ignore"):
            if self.kind == JACOBIAN:
                return np.concatenate([weights @ part.reshape(self.size, -1) for part in parts])
            flat = np.concatenate([part.reshape(-1) for part in parts])
            return flat if self.kind == VJP else float(weights[0]) * flat

    def _compare(self, role: str, x: Floats, arguments: dict[str, Any]) -> None:
        """Whether a call changed what it was given."""
        before = self.arguments_at(x, track=False)
        for name, value in arguments.items():
            if hasattr(value, "dtype") and is_written(value, before[name]):
                self.changed.add(f"{role} changes its argument {name} in place")


def own_copy(value: Any) -> Any:
    """Data for one call, which may write into arrays, dicts and lists."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if type(value) is dict:
        return {key: own_copy(entry) for key, entry in value.items()}
    return type(value)(map(own_copy, value)) if type(value) in (list, tuple) else value


def described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{len(value)} values"
    return "None" if value is None else f"a {type(value).__name__}"


# --- opening one ----------------------------------------------------------------------------------------------------


class ClaimedDerivative(NamedTuple):
    """How the derivative of a function is given: one of three ways, or none; see `check_callable`."""

    grad: Derivative = None
    jac: Derivative = None
    vjp: Callable[..., Any] | None = None

    def kind_and_function(self) -> tuple[str, Callable[..., Any] | None]:
        """The kind of the derivative, and the function; GC732 where two are given."""
        ways = [
            (kind, x) for kind, x in zip((GRADIENT, JACOBIAN, VJP), self, strict=True) if not (x is None or x is False)
        ]
        if len(ways) > 1:
            raise error("GC732", "two derivatives are given", help="give one of grad=, jac=, vjp=")
        if not ways:
            return OWN, None
        ((kind, derivative),) = ways
        if derivative is True:
            return PAIR, None
        if not callable(derivative):
            raise error("GC732", f"the derivative is a {type(derivative).__name__}, not a function")
        return kind, derivative


NOTHING_CLAIMED = ClaimedDerivative()


@contextmanager
def boxed(
    f: Callable[..., Any],
    claimed: ClaimedDerivative = NOTHING_CLAIMED,
    *,
    at: Any,
    names: Sequence[str] | None = None,
    wrt: Sequence[str] | None = None,
    timeout: float,
    dtype: str = "float64",
    stage: Callable[[str], None] | None = None,
) -> Iterator[BlackBox]:
    """The function and its derivative with what they are called with; as long as this lasts, they are listened to."""
    kind, derivative = claimed.kind_and_function()
    called = getattr(f, "apply", f) if is_function_class(f) else f
    if not callable(called):
        raise error("GC732", f"{visible(repr(f), 60)} is not a function", help="give a function, and its gradient")
    arguments = arguments_of(f, at, names, wrt)
    if kind in (GRADIENT, JACOBIAN) and takes_cotangent(f, derivative, len(arguments)):
        kind = VJP
    library = library_of(f, [arg.value for arg in arguments], kind == OWN)
    if kind == OWN and not library.differentiates:
        hint = "give one: grad=df, jac=df, vjp=df, or grad=True where f returns (value, gradient); "
        hint += "pass tensors in at= where f is a function of tensors"
        raise error("GC732", "no gradient to judge: the function has none of its own", help=hint)
    x64: AbstractContextManager[Any] = nullcontext()
    if dtype != "float32" and JAX in (library.name, *named_by(f)):
        x64 = getattr(sys.modules[JAX], "enable_x64", nullcontext)(True)
    with Listener(stage) as listener, x64:
        yield BlackBox(called, arguments, library, kind, derivative, listener, timeout, dtype == "float32")


def opened(box: BlackBox) -> tuple[BlackBox, Floats]:
    """The box after its first call, and what f returned.

    Where f refuses what it was given, whole numbers become integers, then arrays become tensors of the library that its
    code names; where tensors of float64 do not go with f's own, they become float32. Raises Failed where f or its
    derivative raises, or returns nothing that could be judged.
    """
    try:
        value = box.probe()
        symmetrised(box, value)
        return box, value
    except Failed as problem:
        if "a leaf Variable" in problem.reason and not box.library.copies:
            box.library.copies = True
            return opened(box)
        if not isinstance(problem.__cause__, (TypeError, AttributeError, IndexError, RuntimeError)):
            raise
        narrow = isinstance(problem.__cause__, RuntimeError) and "dtype" in problem.reason and not box.float32
        single = replace(box, float32=True)  # as the parameters of a layer are
        for other in [single, *others(box), *others(single)] if narrow else others(box):
            try:
                return other, other.probe()
            except Failed:
                continue
        raise


def symmetrised(box: BlackBox, value: Floats) -> None:
    """Where f of PyTorch or NumPy reads one triangle of a symmetric matrix, as a Cholesky factor does, f of its
    symmetric part.

    What is sent to such a matrix is a gradient among symmetric matrices: entry by entry it is nothing.
    """
    if (box.library.name, box.kind == OWN) not in ((TORCH, True), (NUMPY, False)):
        return
    for name in box.names:
        point = box.x[box.slices[name]].reshape(box.shape_of(name))
        square = point.ndim == 2 and point.shape[0] == point.shape[1] >= 2
        if not square or not (point == point.T).all():
            continue
        for half in (np.triu(np.abs(point) + 1, 1), np.tril(np.abs(point) + 1, -1)):
            x = box.x.copy()
            x[box.slices[name]] += half.reshape(-1)
            if np.array_equal(box.value(x), value):
                sent = point if box.kind == OWN else box.pullback(box.x, np.ones(box.size), True)[box.slices[name]]
                if np.allclose(sent.reshape(point.shape), sent.reshape(point.shape).T):
                    box.symmetric.append(name)
                break
    if box.symmetric:
        f, names = box.f, [arg.name for arg in box.arguments if not arg.keyword]

        @wraps(f)
        def of_symmetric(*args: Any, **kwargs: Any) -> Any:
            values = {**dict(zip(names, args, strict=False)), **kwargs}
            values |= {name: (values[name] + values[name].T) / 2 for name in box.symmetric}
            return f(*(values[name] for name in names), **{name: values[name] for name in kwargs})

        box.f = of_symmetric


def others(box: BlackBox) -> Iterator[BlackBox]:
    """The same box with other arguments."""
    libraries = [box.library]
    named = library_of(box.f, [], True)
    if not box.library.differentiates and named.differentiates:
        libraries.append(named)
    for library in libraries:
        for arguments in (box.arguments, *with_integers(box.arguments, library)):
            if arguments is not box.arguments or library is not box.library:
                yield replace(box, arguments=list(arguments), library=library)


def function_name(f: Any) -> str:
    """The name of a function."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
    return str(name).rpartition("<locals>.")[2]


def backward_of(f: Any) -> Any:
    """The backward that was written by hand into a function of PyTorch or JAX; None where there is none."""
    owner = getattr(f, "__self__", f)
    rules = [getattr(f, name, None) for name in ("bwd", "jvp")]  # that of defjvps is JAX's, around the user's
    mine = [rule for rule in rules if rule is not None and library_at(rule.__module__ or "") != JAX]
    return owner.backward if is_function_class(owner) else next(iter(mine), None)


class Defined(NamedTuple):
    """A function in a report: its name and where it is defined."""

    name: str
    file: str | None = None
    line: int | None = None

    @classmethod
    def of(cls, f: Any) -> Defined:
        """The name, file and first line of a function; a lambda has no name."""
        code = getattr(getattr(f, "__wrapped__", f), "__code__", None)
        name = function_name(f) if hasattr(f, "__name__") and "<" not in function_name(f) else ""
        return cls(name) if code is None else cls(name, code.co_filename, int(code.co_firstlineno))
