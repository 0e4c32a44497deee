"""Recognises the array library of a Python function, and computes gradients with it.

PyTorch, JAX and gradcli's eager tensors are recognised by the objects themselves and by the modules that the function's
code names. Nothing here imports a library: a caller with such a function has imported it.

What a function's code names may be any object, such as settings that are read at their first use, and raise before
they are configured: `is_a` and `attribute` look at such objects.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from itertools import chain
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import visible
from gradcli.recording.calls.failures import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Call = Callable[[Mapping[str, Any]], Any]

EAGER = f"{__name__.partition('.')[0]}.eager"  # a higher room: recognised by its name, never imported
TORCH, JAX, NUMPY = "torch", "jax", "numpy"
KNOWN = {TORCH: ("2.4", "2.13"), JAX: ("0.4.30", "0.10")}  # versions that are known to work
TITLES = {EAGER: EAGER, TORCH: "PyTorch", JAX: "JAX", NUMPY: "NumPy"}
UNITS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}  # of formats
COARSE = 2.0**-2  # of others


def unit_of(name: str) -> float:
    """The relative spacing of the numbers of a format."""
    return UNITS.get(name, COARSE)


def untested(name: str, version: str) -> list[str]:
    """A note where a version of a library is outside of those that are known to work."""
    if name not in KNOWN or not version:
        return []
    low, high = KNOWN[name]
    first, last, own = (tuple(map(int, re.findall(r"\d+", text)[:3])) for text in (low, high, version))
    if first <= own and own[: len(last)] <= last:
        return []
    return [f"{TITLES[name]} {version} is untested; versions {low} to {high} are known to work"]


class Library:
    """Arrays of NumPy; the base of the others. Passes numbers in, reads them, and computes gradients."""

    name = NUMPY
    module: Any = None
    differentiates = False
    copies = False  # whether f is differentiated at copies: it changes arguments in place, which leaves do not allow

    def __init__(self) -> None:
        self.changed: set[str] = set()  # beside arguments, what a backward pass has written into

    def untested(self) -> list[str]:
        """A note where the library's version is outside of those that are known to work."""
        return untested(self.name, str(getattr(self.module, "__version__", "")))

    def give(self, array: NDArray[Any], like: Any, moves: bool) -> Any:
        """An argument of its own for one call: a number where a number was given, else a fresh array."""
        if not np.shape(array) and not hasattr(like, "dtype"):
            return float(array)
        if not np.shape(array) and isinstance(like, np.generic):
            return array.dtype.type(array)
        return np.array(array, copy=True)

    def read(self, role: str, value: Any) -> Floats:
        """A number or array that a function returned, as an array of real numbers; Failed for anything else."""
        if value is None:
            raise Failed(role, f"{role} returns None", help="does it end without `return`?")
        if isinstance(value, (str, bytes)):
            raise Failed(role, f"{role} returns the text {visible(repr(value), 40)}, not numbers")
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as problem:
            what = f"{role} returns a {type(value).__name__} that is not an array: {visible(str(problem), 100)}"
            raise Failed(role, what) from None
        if array.dtype.kind == "c":
            raise Failed(
                role, f"{role} returns complex numbers", help="check the real and the imaginary part separately"
            )
        if array.dtype.kind not in "fiub":
            raise Failed(role, f"{role} returns a {type(value).__name__} of {array.dtype}, not numbers")
        return array

    def outputs(self, role: str, value: Any) -> list[Floats]:
        """The arrays that a function returned; a tuple of several only where the library has it so."""
        return [self.read(role, value)]

    def pullback(self, f: Call, arguments: Mapping[str, Any], names: Sequence[str], weights: Floats) -> list[Any]:
        """What the library's own derivative sends to the arguments of these names, None where it sends nothing."""
        raise Failed("f", "NumPy has no gradients of its own")


class TensorLibrary(Library):
    """PyTorch's tensors, and gradcli's, which have the same interface."""

    differentiates = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.module = sys.modules[name]

    def give(self, array: NDArray[Any], like: Any, moves: bool) -> Any:
        """A fresh tensor, a leaf that requires a gradient where it moves."""
        kind = getattr(self.module, array.dtype.name)
        tensor = self.module.tensor(array, dtype=kind)
        if is_tensor(like):
            tensor = tensor.to(like.device)
        return tensor.requires_grad_() if moves else tensor

    def read(self, role: str, value: Any) -> Floats:
        """The numbers of a tensor."""
        return super().read(role, array_of(value) if is_tensor(value) else value)

    def outputs(self, role: str, value: Any) -> list[Floats]:
        """The numbers of a tensor, or of each of a tuple of tensors."""
        return [self.read(role, x) for x in listed(value)]

    def pullback(self, f: Call, arguments: Mapping[str, Any], names: Sequence[str], weights: Floats) -> list[Any]:
        """What `autograd.grad` gives for a combination of the outputs."""
        value = f({**arguments, **{name: arguments[name].clone() for name in names}} if self.copies else arguments)
        values = [x for x in listed(value) if is_tensor(x)]
        seeds, at = [], 0
        for x in values:
            size = int(np.prod(tuple(x.shape), dtype=np.int64))
            piece = weights[at : at + size].reshape(tuple(x.shape))
            kind = x.dtype if x.dtype.is_floating_point else self.module.float64
            seeds.append(self.module.tensor(piece, dtype=kind).to(x.device))
            at += size
        pairs = [(x, seed) for x, seed in zip(values, seeds, strict=True) if x.requires_grad]
        if not pairs:
            raise Failed("f", "no result of f requires a gradient", help="was it computed under no_grad, or detached?")
        kept = [("its cotangent", seed) for _, seed in pairs] + [("its result", x) for x, _ in pairs]
        kept += [("what it saved", held) for x, _ in pairs for held in attribute(x.grad_fn, "saved_tensors") or ()]
        kept = [pair for pair in kept if not any(pair[1] is value for value in arguments.values())]
        before = [(x.detach().clone(), x._version) for _, x in kept]
        sent = sent_back(self.module, pairs, [arguments[name] for name in names])
        self.changed |= {what for (what, x), then in zip(kept, before, strict=True) if is_written(x, *then)}
        return sent


def sent_back(module: Any, pairs: Sequence[tuple[Any, Any]], targets: Sequence[Any], graph: bool = False) -> list[Any]:
    """What results of tensors, each with a cotangent, send back to some tensors; None where nothing arrives.

    With `graph` it may be differentiated again. Without targets leaves get it as `grad`.
    PyTorch's `autograd.grad` imports SymPy to compare shapes, and its modes do not see what a backward calls: what it
    calls itself is called here where there is one.
    """
    ends, cotangents = zip(*pairs, strict=True)
    run = getattr(getattr(module.autograd, "graph", None), "_engine_run_backward", None)
    if run is None and targets:
        return list(module.autograd.grad(ends, targets, cotangents, create_graph=graph, allow_unused=True))
    if run is None:
        return [module.autograd.backward(ends, cotangents)]
    keep = {"allow_unreachable": True, "accumulate_grad": not targets}
    return list(run(ends, cotangents, graph, graph, tuple(targets), **keep) or ())


class Jax(Library):
    """JAX's arrays; float64 is switched on for the length of the check only."""

    name = JAX
    differentiates = True

    def __init__(self) -> None:
        super().__init__()
        self.module = sys.modules[JAX]

    def give(self, array: NDArray[Any], like: Any, moves: bool) -> Any:
        """An array of JAX."""
        return self.module.numpy.asarray(array)

    def outputs(self, role: str, value: Any) -> list[Floats]:
        """The numbers of an array, or of each leaf of a tree of arrays."""
        return [self.read(role, x) for x in self.module.tree_util.tree_leaves(value)]

    def pullback(self, f: Call, arguments: Mapping[str, Any], names: Sequence[str], weights: Floats) -> list[Any]:
        """What `jax.vjp` gives for a combination of the outputs."""
        value, back = self.module.vjp(
            lambda *moved: f({**arguments, **dict(zip(names, moved, strict=True))}),
            *[arguments[name] for name in names],
        )
        leaves, tree = self.module.tree_util.tree_flatten(value)
        seeds, at = [], 0
        for x in leaves:
            seeds.append(self.module.numpy.asarray(weights[at : at + x.size].reshape(x.shape), dtype=x.dtype))
            at += x.size
        return list(back(self.module.tree_util.tree_unflatten(tree, seeds)))


def library_of(f: Any, values: Sequence[Any], own_gradient: bool) -> Library:
    """The library of a function: of its arguments, else of its type, else the one that its code names.

    A function whose gradient is written by hand (`own_gradient` false) is taken for one of NumPy unless its type or
    its arguments say otherwise: what it does inside is its own affair.
    """
    name = next((name for name in map(kind_of, values) if name), None) or kind_of(f)
    if name is None and own_gradient:
        name = next(named_by(f), None) or alone_beside(f)
    if name is None or name == NUMPY or name not in sys.modules:
        return Library()
    return Jax() if name == JAX else TensorLibrary(name)


def kind_of(value: Any) -> str | None:
    """The library that an object's class belongs to: of a tensor, an array, a Function, a module, a custom_vjp."""
    bases = value.__mro__ if is_a(value, type) else type(value).__mro__
    return next((name for base in bases if (name := library_at(home_of(base)))), None)


def home_of(base: type) -> str:
    """The module that a class is really from: gradcli's tensors go by PyTorch's names."""
    for member in vars(base).values():
        if is_a(member, FunctionType):
            return str(member.__globals__.get("__name__", ""))
    return base.__module__ or ""


def library_at(home: str) -> str | None:
    """The library that a module is part of."""
    root = home.partition(".")[0]
    if home == EAGER or home.startswith(EAGER + "."):
        return EAGER
    return {TORCH: TORCH, JAX: JAX, "jaxlib": JAX}.get(root)


def named_by(f: Any) -> Iterator[str]:
    """The libraries whose modules or objects a function's code names, in the order of its names."""
    for _, value in read_by(f):
        if is_a(value, ModuleType):
            name = library_at(value.__name__)
        else:
            scope = value.__globals__ if is_a(value, (FunctionType, MethodType)) else {}
            name = kind_of(value) or library_at(str(scope.get("__name__") or attribute(value, "__module__") or ""))
        if name:
            yield name


def read_by(f: Any) -> Iterator[tuple[str, Any]]:
    """The names of globals and then of closure cells that a function's code reads, with their values."""
    f = f.func if is_a(f, partial) else f
    if not is_a(f, (FunctionType, MethodType)):
        f = vars(type(f)).get("__call__", f)
    if is_a(f, (FunctionType, MethodType)):
        scope, cells = f.__globals__, f.__closure__ or ()
        yield from ((name, scope[name]) for name in names_in(f.__code__) if name in scope)
        pairs = zip(f.__code__.co_freevars, cells, strict=True)
        yield from ((name, cell.cell_contents) for name, cell in pairs if is_filled(cell))


def names_in(code: CodeType) -> list[str]:
    """The names of globals and attributes in the code of a function and of those inside it."""
    inner = [names_in(value) for value in code.co_consts if is_a(value, CodeType)]
    return [*dict.fromkeys([*code.co_names, *chain(*inner)])]


def alone_beside(f: Any) -> str | None:
    """The one library whose module a function has beside it, where its code names none; None where there are more."""
    scope = getattr(f.func if is_a(f, partial) else f, "__globals__", {})
    names = {library_at(value.__name__) for value in list(scope.values()) if is_a(value, ModuleType)} - {None}
    return names.pop() if len(names) == 1 else None


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """As `isinstance`, but without reading `__class__`, which a proxy of another object may compute."""
    return issubclass(type(value), kinds)


def is_filled(cell: Any) -> bool:
    """Whether a cell of a closure has a value by now, other than None."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def attribute(value: Any, name: str) -> Any:
    """An attribute of an object; None where it has none, or raises anything else."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def listed(value: Any) -> list[Any]:
    """What a function returns, as a list of its results."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch or of gradcli."""
    return hasattr(value, "requires_grad") and hasattr(value, "detach")


def array_of(tensor: Any) -> Any:
    """The entries of a tensor, wherever it is; NumPy has no bfloat16, so they become float32."""
    tensor = tensor.detach()
    tensor = tensor.cpu() if hasattr(tensor, "cpu") else tensor
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def is_written(now: Any, before: Any, version: int = 0) -> bool:
    """Whether an array or tensor was written into since: by its values, or by its version, where it has one."""
    written = getattr(now, "_version", version) != version
    now, before = (array_of(x) if is_tensor(x) else x for x in (now, before))
    return written or not np.array_equal(np.asarray(now), np.asarray(before), equal_nan=True)


def is_function_class(f: Any) -> bool:
    """Whether f is a subclass of `autograd.Function`, of PyTorch or of gradcli."""
    return is_a(f, type) and kind_of(f) in (TORCH, EAGER) and hasattr(f, "apply") and hasattr(f, "backward")
