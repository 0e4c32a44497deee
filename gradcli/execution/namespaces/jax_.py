"""JAX as a namespace: the same programs, one operation after the other; no array is changed in place."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm

from gradcli.execution.namespaces.array_namespace import ArrayNamespace

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


# a function of jax itself since 0.8, before that an experiment
enable_x64: Any = (jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")).enable_x64


class NeverRaised(Exception):
    """JAX returns NaN or infinity for a bad matrix, so nothing is refused by an exception."""


class JaxNamespace(ArrayNamespace):
    """Arrays of JAX, with 64-bit floats switched on while a program of that width runs, and only then."""

    name = "jax"
    special_module = "jax.scipy.special"

    def arithmetic(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = enable_x64(self.dtype != "float32")
        return context

    def kind_type(self, kind: str) -> Any:
        if kind == "int" and self.dtype == "float32":
            return jnp.int32
        return super().kind_type(kind)

    def fetch(self, value: Any) -> Any:
        return np.asarray(value)

    def positions(self, indices: Any) -> Any:
        return np.asarray(indices, dtype=np.int64)

    def place(self, x: Any, shape: tuple[int, ...], slices: Any) -> Any:
        return jnp.zeros(shape, dtype=x.dtype).at[slices].set(x)

    def put_add(self, x: Any, positions: Any, axis: int, size: int) -> Any:
        at = x.ndim + axis
        zeros = jnp.zeros((*x.shape[:at], size, *x.shape[at + 1 :]), dtype=x.dtype)
        return zeros.at[(slice(None),) * at + (positions,)].add(x)

    def add_flat(self, positions: Any, x: Any, size: int) -> Any:
        return jnp.zeros(size, dtype=x.dtype).at[positions].add(x)

    def guarded(self, routine: Callable[..., tuple[Any, ...]], a: Any, *others: Any) -> tuple[Any, ...]:
        """A matrix with any result that is not finite has no result: all of it is NaN."""
        results = routine(a, *others)
        lead = self.lead_of(a, others)
        good = jnp.isfinite(a).all(axis=(-2, -1))
        for x in results:
            good = good & jnp.isfinite(x).all(axis=tuple(range(lead, x.ndim)))
        return tuple(jnp.where(good.reshape(good.shape + (1,) * (x.ndim - lead)), x, jnp.nan) for x in results)

    def refusal(self) -> type[Exception]:
        return NeverRaised

    def exponential(self, a: Any) -> Any:
        return jnp.vectorize(expm, signature="(n,n)->(n,n)")(a)


def make(dtype: str) -> JaxNamespace:
    """The namespace for one float width."""
    return JaxNamespace(jnp, dtype)
