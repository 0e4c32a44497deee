"""NumPy as a namespace: what runs a program on the processor; constants are NumPy scalars, so 1/0 is inf."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.namespaces.array_namespace import ArrayNamespace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

# The C library gives freed memory back to the system, which clears each page anew for the next array: half the time of
# an operation on a million entries. Freeing one block of 16 MiB makes it keep up to 32 MiB; no page is touched.
np.empty(1 << 21)


class NumpyNamespace(ArrayNamespace):
    """Arrays of NumPy, and the rest of SciPy that the operations need."""

    name = "numpy"
    special_module = "gradcli.execution.namespaces.special_functions"

    def arithmetic(self) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def array(self, value: Any, kind: str = "float") -> Any:
        if self.float_type == np.float32:
            with np.errstate(over="ignore"):  # what is too large for a short float is an infinity, without a remark
                converted = np.asarray(value, dtype=self.kind_type(kind))
        else:
            converted = np.asarray(value, dtype=self.kind_type(kind))
        return converted if converted.shape else converted[()]

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)[()]

    def parameter(self, value: Any, like: Any) -> Any:
        return super().parameter(value, like) if self.dtype == "float32" else value

    def matmul(self, x: Any, y: Any) -> Any:
        """The matrix product; a matrix that many vectors share is multiplied by all at once, which is faster."""
        if x.ndim == 2 < y.ndim and y.shape[-1] == 1:
            return np.matmul(y[..., 0], x.T)[..., None]
        if y.ndim == 2 < x.ndim and x.shape[-2] == 1:
            return np.matmul(x[..., 0, :], y)[..., None, :]
        return np.matmul(x, y)

    def scatter_add(self, result: Any, where: Any, x: Any) -> None:
        np.add.at(result, where, x)

    def put_add(self, x: Any, positions: Any, axis: int, size: int) -> Any:
        if positions.size and np.bincount(positions, minlength=size).max() <= 1:  # no entry is named twice
            at = x.ndim + axis
            result = np.zeros((*x.shape[:at], size, *x.shape[at + 1 :]), dtype=x.dtype)
            result[(slice(None),) * at + (positions,)] = x
            return result
        return super().put_add(x, positions, axis, size)

    def add_flat(self, positions: Any, x: Any, size: int) -> Any:
        if x.dtype == np.float64 and x.size:  # without entries NumPy counts in integers
            return np.bincount(positions, weights=x, minlength=size)
        return super().add_flat(positions, x, size)

    def analytic(self, name: str, function: Any, domain: Any, *xs: Any) -> Any:
        return self.special.analytic(name, function, domain, *map(self.as_real, xs)).astype(self.dtype)

    def derivative(self, function: Any, orders: Sequence[int], domain: Any, *xs: Any) -> Any:
        return self.special.derivative(function, orders, domain, *map(self.as_real, xs)).astype(self.dtype)

    @property
    def special(self) -> Any:
        """`scipy.special`, with our own."""
        return import_module(self.special_module)

    def exponential(self, a: Any) -> Any:
        return import_module("scipy.linalg").expm(a)


def make(dtype: str) -> NumpyNamespace:
    """The namespace for one float width."""
    return NumpyNamespace(np, dtype)
