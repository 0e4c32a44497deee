"""What all array namespaces share: names looked up in a library, casts, constants, entries put and added.

An `ArrayNamespace` is given a module with NumPy's names (`numpy`, `cupy`, `jax.numpy`). A name that an
`impl` uses is looked up there, then in the library's `scipy.special`, and kept as an attribute.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.execution.namespaces import BadIndex, NotReal, Unavailable
from gradcli.execution.namespaces.linear_algebra import LinearAlgebra
from gradcli.graph.arrays import ArrayData, nearest_float
from gradcli.graph.types import broadcast_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


def exact_to_double(value: Any) -> Any:
    """An array of Python's exact numbers as doubles; TypeError for any other objects in it."""
    if value.dtype.kind != "O":
        return value
    for entry in value.flat:
        if not isinstance(entry, (int, float, Fraction)):
            raise TypeError(f"entries of type {type(entry).__name__}")
    return np.array([nearest_float(entry) for entry in value.flat], dtype=np.float64).reshape(value.shape)


SPECIAL_ALIASES = {"lgamma": "gammaln", "psi": "digamma"}

# What has no meaning for complex numbers: order, and functions that the libraries have for real numbers only.
REAL_ONLY = frozenset(
    (
        *("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "max", "min"),
        *("sort", "argsort", "argmax", "argmin", "median", "heaviside"),
        *("floor", "ceil", "trunc", "rint", "mod", "hypot", "arctan2", "cbrt", "logaddexp", "frexp", "ldexp"),
        *("gammaln", "digamma", "polygamma", "zeta", "beta", "betaln", "erfinv", "erfcinv", "logit"),
        *("j0", "j1", "i0", "i1"),
    )
)


class ArrayNamespace(LinearAlgebra):
    """The functions of NumPy, `scipy.special` and our own, on the arrays of one library."""

    name: ClassVar[str]
    special_module: ClassVar[str]
    library: Any
    dtype: str
    float_type: Any
    bool_type: Any
    int_type: Any

    def __init__(self, library: Any, dtype: str) -> None:
        self.library = library
        self.dtype = dtype
        self.float_type = getattr(library, dtype)
        self.bool_type = library.bool_
        self.int_type = library.int64

    def __getattr__(self, name: str) -> Any:
        """A function of the library; raises `Unavailable` where there is none."""
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(self.library, name, None)
        if function is None:
            function = getattr(import_module(self.special_module), SPECIAL_ALIASES.get(name, name), None)
        if function is None:
            raise Unavailable(f"{self.name} has no {name}")
        if self.dtype == "complex128" and name in REAL_ONLY:
            function = self.real_only(function)
        self.__dict__[name] = function
        return function

    def real_only(self, function: Any) -> Any:
        """A function of real numbers, also where they are kept as complex ones; NotReal for any other."""

        def call(*xs: Any, **options: Any) -> Any:
            return function(*map(self.as_real, xs), **options)

        return call

    def as_real(self, x: Any) -> Any:
        """The real numbers that an array holds; raises NotReal where there are others in it."""
        if getattr(getattr(x, "dtype", None), "kind", "") != "c":
            return x
        others = x.imag != 0
        if bool(others.any()):
            raise NotReal(f"{self.first_entry(x, others)} is complex")
        return x.real

    # --- for the evaluator: into the namespace, out of it, and the rules under which it runs ------------

    def arithmetic(self) -> AbstractContextManager[Any]:
        """A context in which overflow, division by zero and the like give inf or nan in silence."""
        return nullcontext()

    def kind_type(self, kind: str) -> Any:
        """The library's type for a kind: float, bool or int."""
        return self.float_type if kind == "float" else self.bool_type if kind == "bool" else self.int_type

    def array(self, value: Any, kind: str = "float") -> Any:
        """A number, nested lists or an array of any library as an array of this one; a scalar stays one."""
        return self.library.asarray(value, dtype=self.kind_type(kind))

    def numbers(self, value: Any, kind: str = "float") -> Any:
        """Numbers from outside: like `array`, but text, ragged lists and hidden complex parts are refused.

        Raises TypeError or ValueError.
        """
        if hasattr(value, "make"):  # a recipe
            value = value.make(np)
        if isinstance(value, ArrayData):
            value = np.array(value.floats(), dtype=np.float64).reshape(value.shape)
        elif not hasattr(value, "dtype"):
            value = exact_to_double(np.asarray(value))
        code = value.dtype.kind
        if code not in "biufc":
            raise TypeError(f"entries of type {value.dtype}")
        if code == "c" and self.dtype != "complex128":
            raise TypeError("complex numbers need --dtype complex128")
        return self.array(value, kind)

    def spread(self, value: Any, shape: tuple[int, ...]) -> Any:
        """A constant repeated over a shape, without memory of its own where the library can do that."""
        return self.library.broadcast_to(value, shape) if shape else value

    def parameter(self, value: Any, like: Any) -> Any:
        """An exact number that an operation is declared with, as an operand beside `like`."""
        return self.library.full_like(like, nearest_float(value))

    def fetch(self, value: Any) -> Any:
        """The value as a NumPy array."""
        return value

    # --- conversions ---------------------------------------------------------------------------------------

    def cast(self, x: Any, kind: str) -> Any:
        """A value of another kind; as an index it must be whole numbers, else BadIndex."""
        if kind == "int" and self.kind_of(x) == "float":
            whole = self.library.rint(x.real)
            fits = (whole == x) & (self.library.abs(whole) < 2**62)
            if not bool(fits.all()):
                raise BadIndex(f"{self.first_entry(x, ~fits)} is not a whole number")
            x = whole
        return x.astype(self.kind_type(kind)) if hasattr(x, "astype") else self.array(x, kind)

    def kind_of(self, x: Any) -> str:
        """The kind of an array's entries."""
        code = x.dtype.kind
        return "bool" if code == "b" else "int" if code in "iu" else "float"

    def first_entry(self, x: Any, chosen: Any) -> Any:
        """The first entry of x where `chosen` holds, as a Python number."""
        flat = self.library.broadcast_to(x, chosen.shape).reshape(-1)
        return flat[int(chosen.reshape(-1).argmax())].item()

    def analytic(self, name: str, function: Any, domain: Any, *xs: Any) -> Any:
        """A special function of real numbers, which a function of complex balls defines, by the library's own."""
        if not name:
            raise Unavailable(f"{self.name} has no such function, or not for all of its domain")
        return getattr(self, name)(*map(self.as_real, xs))

    def derivative(self, function: Any, orders: Sequence[int], domain: Any, *xs: Any) -> Any:
        """A partial derivative of such a function; raises `Unavailable` but for NumPy."""
        raise Unavailable(f"{self.name} has no derivatives of special functions by their parameters")

    def fourier(self, x: Any) -> Any:
        """The discrete Fourier transform of real numbers along the last axis."""
        return self.library.fft.fft(self.as_real(x))

    # --- entries put and added ------------------------------------------------------------------------------

    def positions(self, indices: Sequence[int]) -> Any:
        """Static positions as an index array."""
        return self.library.asarray(indices, dtype=self.int_type)

    def place(self, x: Any, shape: tuple[int, ...], slices: Any) -> Any:
        """Zeros of a shape, with x in the given slices."""
        result = self.library.zeros(shape, dtype=x.dtype)
        result[slices] = x
        return result

    def put_add(self, x: Any, positions: Any, axis: int, size: int) -> Any:
        """Zeros with `size` entries along an axis, with the entries of x added at `positions`."""
        at = x.ndim + axis
        result = self.library.zeros((*x.shape[:at], size, *x.shape[at + 1 :]), dtype=x.dtype)
        self.scatter_add(result, (slice(None),) * at + (positions,), x)
        return result

    def put_along_add(self, x: Any, index: Any, axis: int, size: int) -> Any:
        """Zeros with `size` entries along an axis, with each entry of x added where `index` says."""
        index = self.wrapped(index, size)
        last = self.library.moveaxis(x, axis, -1)
        columns = self.library.moveaxis(index, axis, -1)
        rows = math.prod(last.shape[:-1])
        offsets = self.library.arange(rows).reshape((*last.shape[:-1], 1)) * size
        added = self.add_flat((columns + offsets).reshape(-1), last.reshape(-1), rows * size)
        return self.library.moveaxis(added.reshape((*last.shape[:-1], size)), -1, axis)

    def take_along_axis(self, x: Any, index: Any, axis: int) -> Any:
        """NumPy's take_along_axis; a position outside the axis raises BadIndex in every library."""
        return self.library.take_along_axis(x, self.wrapped(index, x.shape[axis]), axis=axis)

    def wrapped(self, index: Any, size: int) -> Any:
        """Positions with negative ones counted from the end, as NumPy does; BadIndex outside the axis."""
        outside = (index < -size) | (index >= size)
        if bool(outside.any()):
            raise BadIndex(f"index {self.first_entry(index, outside)} is out of range for an axis of {size} entries")
        return self.library.where(index < 0, index + size, index)

    def scatter_add(self, result: Any, where: Any, x: Any) -> None:
        """Add x to `result[where]` in place, entries named twice included."""
        raise Unavailable(f"{self.name} cannot add in place")

    def add_flat(self, positions: Any, x: Any, size: int) -> Any:
        """A flat array of `size` zeros with each entry of x added at its position."""
        result = self.library.zeros(size, dtype=x.dtype)
        self.scatter_add(result, positions, x)
        return result

    def aligned(self, xs: Sequence[Any], ranks: Sequence[int]) -> list[Any]:
        """The operands with equal leading batch axes, each repeated where it lacks them."""
        leads = [x.shape[: x.ndim - rank] for x, rank in zip(xs, ranks, strict=True)]
        if all(lead == leads[0] for lead in leads):
            return list(xs)
        lead = broadcast_shapes(*leads)
        assert lead is not None, "the evaluator has checked that the batch axes fit"
        return [
            self.library.broadcast_to(self.raised(x, rank, len(lead)), (*lead, *x.shape[x.ndim - rank :]))
            for x, rank in zip(xs, ranks, strict=True)
        ]

    def raised(self, x: Any, rank: int, batch: int) -> Any:
        """x with axes of size 1 put in front until it has `batch` batch axes."""
        missing = batch - (x.ndim - rank)
        return x.reshape((1,) * missing + x.shape) if missing else x
