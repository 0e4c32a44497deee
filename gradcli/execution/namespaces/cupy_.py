"""CuPy as a namespace: the same programs on a GPU; values stay on the device until they are fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import cupyx
import numpy as np

from gradcli.execution.namespaces.arrays import ArrayNamespace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class CupyNamespace(ArrayNamespace):
    """Arrays of CuPy. Its solvers report a bad matrix only when asked to; `strict` asks."""

    name = "cupy"
    special_module = "cupyx.scipy.special"

    def strict(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = cupyx.errstate(linalg="raise")
        return context

    def fetch(self, value: Any) -> Any:
        return cupy.asnumpy(value)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return cupy.where(condition, x, y)

    def scatter_add(self, result: Any, where: Any, x: Any) -> None:
        cupyx.scatter_add(result, where, x)

    def argsort(self, x: Any, axis: int = -1, stable: bool = True) -> Any:
        return cupy.argsort(x, axis=axis)  # CuPy's sort is always stable, and has no such parameter

    def refusal(self) -> type[Exception]:
        return np.linalg.LinAlgError

    def solve(self, a: Any, b: Any) -> Any:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # CuPy wants equal leads
        full = [cupy.broadcast_to(x, lead + x.shape[-2:]) for x in (a, b)]
        return super().solve(*full)


def make(dtype: str) -> CupyNamespace:
    """The namespace for one float width."""
    return CupyNamespace(cupy, dtype)
