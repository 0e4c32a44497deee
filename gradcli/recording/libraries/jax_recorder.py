"""Watches a run of JAX: what its gradient functions do becomes the record that `why` reads.

`jax.grad`, `value_and_grad` and `vjp` are replaced while a run is watched. Each call gives what JAX gives; then the
function is read once more: its operations one after the other on the numbers of the call, with their lines, and the
derivative of each, backwards. Inside `jit` and `vmap` the numbers are not known: a function that was transformed so is
also called as it is, on its first arguments (of a batch, on one entry), and on those that first give NaN.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from importlib import import_module
from types import CellType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.recording.libraries.jax_reading import CallReader, GradientCall
from gradcli.recording.libraries.jax_tensors import JaxRecord
from gradcli.recording.runs.source_lines import OWN, file_name
from gradcli.recording.runs.tensors import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


UNSEEN = ("jacobian", "jacfwd", "jacrev", "hessian", "jvp", "linearize", "pmap", "xmap", "shard_map")
EMPTY = CellType()


def installed() -> Any:
    """The installed JAX."""
    return import_module("jax")


@contextmanager
def default_dtype(jax: Any, dtype: str) -> Iterator[None]:
    """While it lasts, floats of JAX may have the precision of a format."""
    if dtype != "float64":
        yield
        return
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


class JaxWatch(JaxRecord):
    """Watches a run of JAX."""

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, the transformations of JAX are watched."""
        with Transformations(self).attached():
            yield


class Transformations:
    """Replaces the transformations of JAX by ones that also record."""

    def __init__(self, watch: JaxWatch) -> None:
        self.watch, self.jax, self.tree = watch, watch.jax, watch.jax.tree_util
        self.depth = 0  # of gradients that are computed now
        self.calls: dict[Any, int] = {}  # by the place of a gradient inside jit or vmap: how often it was read

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, JAX is watched."""
        jax = self.jax
        replaced = {
            "grad": self.gradient(jax.grad, False),
            "value_and_grad": self.gradient(jax.value_and_grad, True),
            "vjp": self.pullback(jax.vjp),
            "jit": self.compiled(jax.jit),
            "vmap": self.mapped(jax.vmap),
            **{name: self.unseen(name, getattr(jax, name)) for name in UNSEEN if hasattr(jax, name)},
        }
        with ExitStack() as stack:
            for name, value in replaced.items():
                stack.callback(setattr, jax, name, getattr(jax, name))
                setattr(jax, name, value)
            yield

    def own(self) -> bool:
        """Whether the file itself has called."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(__name__):
            frame = frame.f_back
        return frame is not None and self.watch.owner[frame.f_code.co_filename] == OWN

    def traced(self, values: Any) -> bool:
        """Whether something in values is traced, so that its numbers are not known."""
        return any(isinstance(x, self.jax.core.Tracer) for x in self.tree.tree_leaves(values))

    # --- gradients ------------------------------------------------------------------------------------------------

    def gradient(self, real: Callable[..., Any], with_value: bool) -> Callable[..., Any]:
        """jax.grad or jax.value_and_grad."""

        @wraps(real)
        def transform(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            computed = real(fun, argnums, has_aux, **options)

            @wraps(computed)
            def gradient(*args: Any, **kwargs: Any) -> Any:
                if self.watch.reading or self.depth or self.traced((args, kwargs)):
                    return self.inner(computed, args, kwargs)
                with self.deeper():
                    result = computed(*args, **kwargs)
                gradients = result[1] if with_value else result[0] if has_aux else result
                numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
                self.record(GradientCall(fun, args, kwargs, numbers, has_aux, gradients))
                return result

            return gradient

        return transform

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """While it lasts, gradients are part of another one."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def inner(self, computed: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A gradient of values that are traced: where no other gradient is read, it is noted until it is."""
        if not self.watch.reading and not self.depth:
            self.calls.setdefault(self.watch._place()[0], 0)
        return computed(*args, **kwargs)

    def pullback(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """jax.vjp: recorded when its function is first called."""

        @wraps(real)
        def transform(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, **options: Any) -> Any:
            result = real(fun, *primals, has_aux=has_aux, **options)
            if self.watch.reading or self.depth or self.traced(primals) or not self.own():
                return result
            pull = result[1]

            def pulled(cotangent: Any) -> Any:
                gradients = pull(cotangent)
                if not self.watch.reading and not self.traced(cotangent):
                    numbers = tuple(range(len(primals)))
                    self.record(GradientCall(fun, primals, {}, numbers, has_aux, gradients, cotangent))
                return gradients

            return (result[0], pulled, *result[2:])

        return transform

    def record(self, call: GradientCall) -> None:
        """Read a call; what goes wrong in that is no part of the run."""
        watch = self.watch
        line = watch._place()[0]
        if line in self.calls:
            self.calls[line] += 1
        watch.reading = True
        try:
            CallReader(watch, line).read(call)
        except Exception as problem:
            first = str(problem).partition("\n")[0][:120]
            where = "" if line is None else f" at {file_name(line.file)}, line {line.number},"
            watch.note(f"a gradient{where} is not recorded: {type(problem).__name__}: {first}")
        finally:
            watch.reading, watch.here = False, None
            watch.open.clear()
            watch.tensors.settle(watch.entries)

    # --- functions of which JAX knows no numbers ----------------------------------------------------------------------

    def compiled(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """jax.jit."""

        @wraps(real)
        def transform(fun: Any = None, **options: Any) -> Any:
            if fun is None:
                return lambda fun: transform(fun, **options)
            if not self.own() or not callable(fun):
                return real(fun, **options)
            kept = {name: value for name, value in options.items() if not name.startswith("donate")}
            return Shadowed(self, fun, real(fun, **kept), lambda args, kwargs, result: (args, kwargs))

        return transform

    def mapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """jax.vmap."""

        @wraps(real)
        def transform(fun: Any, in_axes: Any = 0, out_axes: Any = 0, **options: Any) -> Any:
            computed = real(fun, in_axes, out_axes, **options)
            if not self.own():
                return computed

            def example(args: Any, kwargs: Any, result: Any) -> Any:
                axes = (in_axes,) * len(args) if isinstance(in_axes, int) else tuple(in_axes)
                at = self.worst(result)
                taken = [self.entry(arg, axis, at) for arg, axis in zip(args, axes, strict=False)]
                return taken, {name: self.entry(arg, 0, at) for name, arg in kwargs.items()}

            return Shadowed(self, fun, computed, example)

        return transform

    def leaks(self, fun: Any, args: Any) -> bool:
        """Whether a function left traced values in what it reaches: called once more it would cover that up."""
        cells = [cell.cell_contents for cell in getattr(fun, "__closure__", None) or () if cell != EMPTY]
        names = list(getattr(fun, "__globals__", {}).values())
        return any(map(self.watch.holds_tracer, [*cells, *names, *args]))

    def finite(self, result: Any) -> bool:
        """Whether all numbers of a result are finite."""
        arrays = map(self.watch.tensors.array, self.tree.tree_leaves(result))
        return all(size_of(array).finite for array in arrays)

    def worst(self, result: Any) -> int:
        """The first entry of a batch with something not finite, else the largest."""
        largest = 0
        for leaf in self.tree.tree_leaves(result):
            array = self.watch.tensors.array(leaf)
            if array.ndim and array.dtype.kind == "f":
                bad = ~np.isfinite(array.reshape(array.shape[0], -1)).all(axis=1)
                if bad.any():
                    return int(bad.argmax())
                largest = largest or int(np.abs(array.reshape(array.shape[0], -1)).sum(axis=1).argmax())
        return largest

    def entry(self, arg: Any, axis: Any, at: int) -> Any:
        """One entry of a batch."""
        if axis is None:
            return arg
        if isinstance(axis, int):
            return self.tree.tree_map(lambda x: self.jax.numpy.take(x, at, axis=axis), arg)
        return self.tree.tree_map(lambda a, x: self.entry(x, a, at), axis, arg, is_leaf=lambda a: a is None)

    def unseen(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A transformation that is not recorded, which is said."""

        @wraps(real)
        def transform(*args: Any, **kwargs: Any) -> Any:
            if self.own() and not self.watch.reading and not self.depth:
                self.watch.note(f"what jax.{name} computes is not recorded")
            return real(*args, **kwargs)

        return transform


class Shadowed:
    """A function that JAX has transformed, with the function itself beside it for the record."""

    def __init__(self, owner: Transformations, fun: Any, real: Any, arguments: Callable[..., Any]) -> None:
        self.__wrapped__, self._owner, self._real, self._arguments = fun, owner, real, arguments
        self.__name__, self.__doc__ = getattr(fun, "__name__", "function"), getattr(fun, "__doc__", "")
        self._first, self._spoilt = True, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_real"], name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Bound(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        owner = self._owner
        if owner.watch.reading or owner.depth or owner.traced((args, kwargs)):
            return self._real(*args, **kwargs)
        before = set(owner.calls)
        result = self._real(*args, **kwargs)
        first, self._first = self._first, False
        spoilt = not self._spoilt and not owner.finite(result)
        self._spoilt = self._spoilt or spoilt
        if (spoilt or (first and set(owner.calls) - before)) and not owner.leaks(self.__wrapped__, args):
            with suppress(Exception):
                taken, named = self._arguments(args, kwargs, result)
                self.__wrapped__(*taken, **named)
        return result


class Bound:
    """A method that JAX has transformed."""

    def __init__(self, shadowed: Shadowed, instance: Any) -> None:
        self._shadowed, self._instance = shadowed, instance

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_shadowed"], name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._shadowed(self._instance, *args, **kwargs)
