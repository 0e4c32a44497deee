"""Arguments of Python functions: how they are read, moved and called, and which of them have a gradient."""

from __future__ import annotations

import os
import sys
from inspect import Parameter, ismodule, signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.recording.calls.failures import Failed
from gradcli.recording.calls.gradient_libraries import (
    JAX,
    TORCH,
    array_of,
    is_function_class,
    is_tensor,
    kind_of,
    unit_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.recording.calls.gradient_libraries import Library

    Floats = NDArray[np.floating[Any]]

COMPLEX = "it holds complex numbers, and only real arguments are varied"
PARTS = "pass the real and the imaginary part as separate arguments: f(re, im) with z = re + 1j*im inside"
CACHES = ("cache", "caches", "saved", "ctx")
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Argument(NamedTuple):
    """One argument: its name, its value at the point, its numbers if it may move, and whether it goes by keyword.

    `integers`: whole numbers that f takes as integers only, such as labels.
    """

    name: str
    value: Any
    array: Floats | None
    keyword: bool = False
    integers: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers; () where there are none."""
        return () if self.array is None else self.array.shape

    @property
    def whole(self) -> bool:
        """Numbers without decimals: they move, unless the function takes them for counts, labels or indices."""
        array = self.array
        return array is not None and array.size > 0 and bool(np.all(np.isfinite(array) & (array == np.trunc(array))))

    def as_integers(self, library: Library, listed: bool = False) -> Argument:
        """The same whole numbers as data: arrays of a library, or Python's own numbers and lists."""
        whole = np.asarray(self.array).astype(np.int64)
        value = whole.tolist() if listed or not whole.shape else library.give(whole, whole, False)
        return self._replace(value=value, array=None, integers=True)


def arguments_of(f: Any, at: Any, names: Sequence[str] | None, wrt: Sequence[str] | None) -> list[Argument]:
    """The arguments of a call of f at a point, in f's order.

    Raises GradcliError GC732 where the point does not fit the function, or where nothing in it can move.
    """
    known = [str(name) for name in names] if names is not None else parameters(f)
    owner = getattr(f, "__self__", None)  # of F.apply
    if known is None and is_function_class(owner) and not hasattr(at, "items"):
        known = parameters(owner)
    if isinstance(at, tuple) and not hasattr(at, "_fields"):
        values = _positional(at, known)
    elif hasattr(at, "items"):
        values = {str(name): value for name, value in at.items()}
    else:
        values = {known[0] if known else "x": at}
    keywords = _fitted(f, values, known) if known is not None else set()
    fixed = {known[k] for k in getattr(f, "nondiff_argnums", ()) if known is not None and 0 <= k < len(known)}
    order = [name for name in known or () if name in values] or list(values)
    order += [name for name in values if name not in order]
    arguments = []
    for name in order:
        value = values[name]
        array = numbers(value)
        if name in fixed or (wrt is not None and name not in wrt):
            array = None
        if array is None and name not in fixed and isinstance(value, list) and value and numbers(value) is not None:
            value = np.asarray(value)
        arguments.append(Argument(name, value, array, name in keywords))
    for name in wrt or ():
        if name not in values:
            raise error("GC732", f"`{visible(name)}` is not an argument that has a value", help=_meant(name, values))
        if is_complex(values[name]):
            raise error("GC732", f"`{visible(name)}` cannot be varied: {COMPLEX}", help=PARTS)
        if numbers(values[name]) is None:
            raise error("GC732", f"`{visible(name)}` cannot be varied: it holds a {type(values[name]).__name__}")
    if not any(arg.array is not None and arg.array.size for arg in arguments):
        for arg in arguments:
            if is_complex(arg.value):
                message = f"no argument can be varied: `{visible(arg.name)}` {COMPLEX.removeprefix('it ')}"
                raise error("GC732", message, help=PARTS)
            if isinstance(arg.value, (dict, list, tuple)) and arg.value:
                message = f"no argument can be varied: `{visible(arg.name)}` is a {type(arg.value).__name__} of values"
                hint = "pass its arrays as separate arguments, f(w, b), and build it inside"
                raise error("GC732", message, help=hint)
        hint = "give the point as floats: --at x=2.0, or at={'x': 2.0}"
        raise error("GC732", "no argument holds floats, so none can be varied", help=hint)
    return arguments


def is_complex(value: Any) -> bool:
    """Whether a value holds complex numbers."""
    if is_tensor(value):
        return "complex" in str(getattr(value, "dtype", ""))
    try:
        return bool(np.asarray(value).dtype.kind == "c")
    except (ValueError, TypeError):
        return False


def parameters(f: Any) -> list[str] | None:
    """The names of the arguments that f takes; None where they are unknown, or f takes any number."""
    target = f
    module = not isinstance(f, type) and kind_of(f) == TORCH and hasattr(f, "forward")
    if is_function_class(f) or module:
        target = f.forward
    try:
        taken = list(signature(target).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in taken):
        return None
    named = [parameter.name for parameter in taken if parameter.kind is not Parameter.VAR_KEYWORD]
    if is_function_class(f) and not _sets_up(f):
        named = named[1:]  # ctx
    return named


def of_one_object(f: Any, derivative: Any) -> bool:
    """Whether both are methods of one object, whose backward may read what its forward kept."""
    owner = getattr(f, "__self__", None)
    return owner is not None and not ismodule(owner) and getattr(derivative, "__self__", None) is owner


def takes_cotangent_alone(f: Any, derivative: Any) -> bool:
    """Whether a derivative is called as `layer.backward(dout)`."""
    names = parameters(derivative) if of_one_object(f, derivative) else None
    return names is not None and len(names) == 1 and names[0] not in (parameters(f) or ())


def takes_cotangent_first(f: Any, derivative: Any, names: Sequence[str]) -> bool:
    """Whether a derivative is called as `backward(dout, x, w)`: the arguments of a call of f follow by their names."""
    taken, known = parameters(derivative) or [], parameters(f) or []
    return bool(names) and taken[1 : len(names) + 1] == [*names] and taken[0] not in known


def takes_cache(derivative: Any) -> bool:
    """Whether a derivative is called as `backward(dout, cache)`, where f returns its value and the cache."""
    names = parameters(derivative) or []
    return len(names) == 2 and names[1] in CACHES


def takes_cotangent(f: Any, derivative: Any, count: int) -> bool:
    """Whether a derivative takes a cotangent: alone, before a cache, or beside the `count` arguments of a call of f."""
    try:
        taken = signature(derivative).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [parameter for parameter in taken if parameter.kind in POSITIONAL and parameter.default is Parameter.empty]
    return len(needed) == count + 1 or takes_cotangent_alone(f, derivative) or takes_cache(derivative)


def numbers(value: Any) -> Floats | None:
    """The floats of a value, None where it is data: whole arrays, truth values, texts, objects."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, complex)):
        return None
    if isinstance(value, (int, float)):
        return np.asarray(float(value))
    try:
        array = np.asarray(array_of(value) if is_tensor(value) else value)
    except (ValueError, TypeError):
        return None
    if "bfloat16" in str(getattr(value, "dtype", "")):  # no format of NumPy's
        array = array.astype(np.float64)
    if isinstance(value, (list, tuple)) and array.dtype.kind == "i":
        array = array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize < 2:
        return None
    chosen = kind_of(value) != JAX  # whose default format is float32
    return array if chosen and array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def with_integers(arguments: Sequence[Argument], library: Library) -> Iterator[list[Argument]]:
    """The arguments with whole numbers as data, for a function that refuses floats there: the fewest first.

    Of numbers those that were given as integers, else all but one, so that something still moves; of arrays (labels,
    indices) one at a time, the last first, then all but the first; at last what was given as a list of integers.
    """
    moving = [arg for arg in arguments if arg.array is not None]
    numbers = [arg.name for arg in moving if arg.whole and not arg.shape]
    counts = [arg.name for arg in moving if arg.whole and isinstance(arg.value, int)] or numbers
    arrays = [arg.name for arg in moving if arg.whole and arg.shape]
    for names in (counts, *([name] for name in reversed(arrays)), [*counts, *arrays]):
        data = names[1:] if len(names) == len(moving) else names
        if data:
            yield [arg.as_integers(library) if arg.name in data else arg for arg in arguments]
    lists = [arg.name for arg in moving if arg.whole and isinstance(arg.value, (list, tuple))]
    if 0 < len(lists) < len(moving):
        yield [arg.as_integers(library, True) if arg.name in lists else arg for arg in arguments]


# --- inner ----------------------------------------------------------------------------------------------------


def _positional(at: tuple[Any, ...], known: list[str] | None) -> dict[str, Any]:
    names = known if known is not None else [f"x{i}" for i in range(len(at))]
    if len(at) > len(names):
        raise error("GC732", f"the function takes {len(names)} arguments, the point has {len(at)} values")
    return dict(zip(names, at, strict=False))


def _fitted(f: Any, values: Mapping[str, Any], known: Sequence[str]) -> set[str]:
    """The names that have to be passed by keyword; GC732 where a name is unknown or an argument has no value."""
    try:
        taken = signature(f.forward if is_function_class(f) else f).parameters
    except (TypeError, ValueError):
        return set()
    free = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken.values())
    for name in values:
        if name not in known and not free:
            raise error("GC732", f"the function has no argument `{visible(name)}`", help=_meant(name, known))
    missing = [name for name in known if name not in values and needed(taken.get(name))]
    if missing:
        raise without_values(f, missing)
    skipped = False
    keywords = {name for name in values if name not in known}
    for name in known:
        parameter = taken.get(name)
        if name in values:
            if parameter is not None and (parameter.kind not in POSITIONAL or skipped):
                keywords.add(name)
            continue
        skipped = True
    return keywords


def needed(parameter: Parameter | None) -> bool:
    """Whether a call has to give an argument."""
    kinds = (*POSITIONAL, Parameter.KEYWORD_ONLY)
    return parameter is not None and parameter.default is Parameter.empty and parameter.kind in kinds


def without_values(f: Any, missing: Sequence[str]) -> GradcliError:
    """The error for arguments that have no value: all of them, with an example of each."""
    owner, _, name = str(getattr(f, "__qualname__", "")).rpartition(".")
    if missing[0] == "self" and owner:
        module = vars(sys.modules[f.__module__]) if getattr(f, "__module__", None) in sys.modules else {}
        known = next((key for key, value in module.items() if type(value).__qualname__ == owner), None)
        instance = known or owner.rpartition(".")[2].lower()
        place = str(module.get("__file__", "FILE.py")).rpartition(os.sep)[2]
        hint = f"name a method of one: --python {visible(place)}:{instance}.{name}"
        hint += "" if known else f", with {instance} = {owner}(...) in the file"
        return error("GC732", f"`{visible(owner)}.{visible(name)}` is a method, which needs an instance", help=hint)
    shown = [visible(text) for text in missing]
    if len(shown) == 1:
        hint = f'give it one: --at "{shown[0]}=randn(4,5)" for an array, {shown[0]}=2.0 for a number'
        return error("GC732", f"the argument `{shown[0]}` has no value", help=hint)
    example = ",".join(f"{text}=randn({'4,5' if not at else '5'})" for at, text in enumerate(shown))
    hint = f'give each one, in its shape: --at "{example}"; a number is {shown[-1]}=2.0'
    names = ", ".join(f"`{text}`" for text in shown[:-1]) + f" and `{shown[-1]}`"
    return error("GC732", f"the arguments {names} have no value", help=hint)


def _meant(name: str, known: Any) -> str | None:
    guess = did_you_mean(name, known)
    return f"did you mean `{guess}`?" if guess else f"choose one of {', '.join(known)}" if known else None


def _sets_up(f: Any) -> bool:
    """Whether a Function keeps its context apart, so that `forward` does not take one."""
    base = next((base for base in f.__mro__[1:] if base.__name__ == "Function"), None)
    return getattr(f, "setup_context", None) is not getattr(base, "setup_context", None)


class DerivativeForm:
    """How a derivative hands over its parts: which arguments it covers, what is odd about it.

    It is read off the first result; later results have to be alike.
    """

    def __init__(self, role: str, library: Library, arguments: Sequence[Argument], outer: tuple[int, ...] = ()) -> None:
        self.role = role
        self.library = library
        self.arguments = list(arguments)
        self.outer = outer  # the shape of f's value, for a Jacobian
        self.notes: list[str] = []
        self.dtype: str | None = None  # the coarsest format of floats in it

    @property
    def moving(self) -> list[Argument]:
        """The arguments that may move."""
        return [arg for arg in self.arguments if arg.array is not None]

    def covered(self, value: Any) -> list[str]:
        """The names of the arguments whose gradients a first result holds; notes what is odd about it."""
        names = [arg.name for arg in self.moving]
        if hasattr(value, "items"):
            for name in value:
                if name not in names:
                    message = f"{self.role} gives a gradient for `{visible(str(name))}`, which is not varied"
                    raise Failed(self.role, message, help=_meant(str(name), names))
            covered = [name for name in names if name in value and value[name] is not None]
            self._missing([name for name in names if name not in covered])
            return covered
        parts = self._parts(value)
        if parts is not None:
            return [arg.name for arg, part in parts if part is not None and arg.array is not None]
        if len(names) > 1 and not self._stacked(value):
            shape = np.shape(self.library.read(self.role, value))
            first = self.moving[0]
            if shape != self._shape(first):
                message = f"{self.role} returns one array of shape {list(shape)} for {len(names)} arguments"
                raise Failed(self.role, message, help="return a tuple or a dict with a gradient for each argument")
            self._missing(names[1:])
            return names[:1]
        return names

    def misshapen(self, value: Any, names: Sequence[str]) -> dict[str, Failed]:
        """What is wrong with the gradients of some arguments, where others can be read; else raises Failed."""
        failures = {}
        for name in names if hasattr(value, "items") or self._parts(value) is not None else ():
            try:
                self.read(value, [name])
            except Failed as problem:
                failures[name] = problem
        if failures and len(failures) == len(names):
            raise failures[names[0]]
        return failures

    def read(self, value: Any, names: Sequence[str]) -> list[Floats]:
        """The gradient of each of these arguments, in float64 and in its argument's shape (after f's, of a Jacobian).

        Raises Failed where a part is missing, is not an array of numbers, or has another shape.
        """
        wanted = [arg for arg in self.arguments if arg.name in names]
        if value is None:
            raise Failed(self.role, f"{self.role} returns None", help="does it end without `return`?")
        parts = self._parts(value)
        if hasattr(value, "items"):
            by_name = {str(name): part for name, part in value.items()}
        elif parts is not None:
            by_name = {arg.name: part for arg, part in parts}
        elif len(wanted) > 1:
            by_name = dict(zip(names, self.library.read(self.role, value), strict=False))
        else:
            by_name = {wanted[0].name: value}
        return [self._array(arg, by_name.get(arg.name)) for arg in wanted]

    # --- inner ----------------------------------------------------------------------------------------------

    def _shape(self, arg: Argument) -> tuple[int, ...]:
        return (*self.outer, *arg.shape)

    def _array(self, arg: Argument, part: Any) -> Floats:
        what = f"{self.role} for `{arg.name}`" if len(self.arguments) > 1 else self.role
        array = self.library.read(what, part)
        wanted = self._shape(arg)
        kind = array.dtype.name if array.dtype.kind == "f" else "float64"
        self.dtype = max(self.dtype or kind, kind, key=unit_of)
        if array.dtype.kind != "f":
            self._note(f"{what} returns {array.dtype}: was it rounded to whole numbers?")
        if isinstance(part, (list, tuple)):
            self._note(f"{what} returns a {type(part).__name__}, which is read as an array")
        if array.shape != wanted:
            if array.size == 1 and (not wanted or set(wanted) == {1}):
                array = array.reshape(wanted)
            elif array.size and array.shape == (1, *wanted):
                array = array[0]
                self._note(f"{what} has an extra axis of length 1: {[1, *wanted]}")
            else:
                message = f"{what} has shape {list(array.shape)}, but "
                message += f"the Jacobian has {list(wanted)}" if self.outer else f"`{arg.name}` has {list(wanted)}"
                raise Failed(self.role, message, help=_mend(array, wanted, arg.name))
        return array.astype(np.float64)

    def _parts(self, value: Any) -> list[tuple[Argument, Any]] | None:
        """The arguments with the parts of a tuple; None where the value is one array."""
        if not isinstance(value, (tuple, list)):
            return None
        moving = self.moving
        shape = self._shape(moving[0])
        if len(moving) == 1 and len(value) != 1 and shape and shape[0] == len(value):
            if all(row is not None and np.ndim(row) == len(shape) - 1 for row in value):
                return None  # the gradient itself, as a list of numbers
        if len(value) == len(moving) and (len(moving) > 1 or isinstance(value, tuple) or np.ndim(value[0]) > 0):
            return list(zip(moving, value, strict=True))
        if len(value) == len(self.arguments) and isinstance(value, tuple):
            return list(zip(self.arguments, value, strict=True))
        if isinstance(value, list):
            return None
        message = f"{self.role} returns {len(value)} parts for {len(moving)} argument{'s' if len(moving) > 1 else ''} "
        message += f"({', '.join(arg.name for arg in moving)})"
        raise Failed(
            self.role, message, help="return one gradient for each of these arguments, or a dict with their names"
        )

    def _stacked(self, value: Any) -> bool:
        """Whether one array holds the partials of several numbers."""
        scalars = all(not arg.shape for arg in self.moving)
        return scalars and not self.outer and np.shape(self.library.read(self.role, value)) == (len(self.moving),)

    def _missing(self, names: Sequence[str]) -> None:
        if names:
            self._note(f"{self.role} gives nothing for {', '.join(names)}: not checked")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _mend(array: Floats, wanted: tuple[int, ...], name: str) -> str:
    if array.shape == wanted[::-1] and len(wanted) > 1:
        return "it is transposed"
    if array.size == int(np.prod(wanted)):
        return f"reshape it: subtracting it from {name} would broadcast"
    extra = array.ndim - len(wanted)
    before = (1,) * extra + wanted
    if extra >= 0 and all(kept in (1, size) for kept, size in zip(before, array.shape, strict=True)):
        axes = [axis for axis, kept in enumerate(before) if kept != array.shape[axis]]
        of = str(axes[0] if len(axes) == 1 else tuple(axes))
        if extra in (0, len(axes)):
            return f"`{name}` was broadcast along axis {of}: add .sum(axis={of}{'' if extra else ', keepdims=True'})"
    if extra > 0:
        return "is a sum over one axis missing?"
    return "was it summed over one axis too many?"
