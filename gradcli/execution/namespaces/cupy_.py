"""CuPy as a namespace: the same programs on a GPU; values stay on the device until they are fetched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import cupy
import cupyx
import numpy as np

from gradcli.base.diagnostics import error
from gradcli.execution.namespaces.array_namespace import ArrayNamespace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

# One thread for each place of the result adds up what goes there, in order: the same bits each time, unlike atomics.
THREADS = 256
COLLECT = """
extern "C" __global__ void __launch_bounds__(256) gradcli_collect(const T* __restrict__ x, \
const long long* __restrict__ order, const long long* __restrict__ starts, T* __restrict__ found, \
const long long entries, const long long places, const long long width, const long long count) {
for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < count; i += (long long)gridDim.x * 256) {
const long long inner = i % width, place = (i / width) % places, outer = i / width / places;
T total = 0;
for (long long k = starts[place]; k < starts[place + 1]; k++) total += x[(outer * entries + order[k]) * width + inner];
found[i] = total;
}
}
"""


class CupyNamespace(ArrayNamespace):
    """Arrays of CuPy. Its solvers raise for a bad matrix only in the context `strict`."""

    name = "cupy"
    special_module = "cupyx.scipy.special"

    def strict(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = cupyx.errstate(linalg="raise")
        return context

    def fetch(self, value: Any) -> Any:
        return cupy.asnumpy(value)

    def put_add(self, x: Any, positions: Any, axis: int, size: int) -> Any:
        """As for NumPy; entries at the same position are added in their order, whatever the threads."""
        if x.dtype != self.float_type or self.dtype == "complex128" or not x.size:
            return super().put_add(x, positions, axis, size)
        at = x.ndim + axis
        positions = cupy.where(positions < 0, positions + size, positions)
        order = cupy.argsort(positions)  # stable
        starts = cupy.searchsorted(positions[order], cupy.arange(size + 1))
        sums = cupy.empty((*x.shape[:at], size, *x.shape[at + 1 :]), dtype=x.dtype)
        width = 1
        for n in x.shape[at + 1 :]:
            width *= n
        counts = [np.int64(n) for n in (x.shape[at], size, width, sums.size)]
        rows = cupy.asarray(x, order="C").reshape(-1)
        blocks = min(-(-sums.size // THREADS), 1 << 16)
        self._collect((blocks,), (THREADS,), (rows, order, starts, sums.reshape(-1), *counts))
        return sums

    @property
    def _collect(self) -> Any:
        """The kernel of `put_add`, made once."""
        if "collect" not in self.__dict__:
            kind = {"float64": "double", "float32": "float"}[self.dtype]
            module = cupy.RawModule(code=re.sub(r"\bT\b", kind, COLLECT), options=("--fmad=false",))
            self.__dict__["collect"] = module.get_function("gradcli_collect")
        return self.__dict__["collect"]

    def scatter_add(self, result: Any, where: Any, x: Any) -> None:
        cupyx.scatter_add(result, where, x)

    def add_flat(self, positions: Any, x: Any, size: int) -> Any:
        return self.put_add(x, positions, -1, size)

    def argsort(self, x: Any, axis: int = -1, stable: bool = True) -> Any:
        return cupy.argsort(x, axis=axis)  # CuPy's sort is always stable, and has no such parameter

    def refusal(self) -> type[Exception]:
        return np.linalg.LinAlgError

    def solve(self, a: Any, b: Any) -> Any:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # CuPy wants equal leads
        full = [cupy.broadcast_to(x, lead + x.shape[-2:]) for x in (a, b)]
        return super().solve(*full)


def make(dtype: str) -> CupyNamespace:
    """The namespace for one float width; GradcliError GC713 where CuPy finds no GPU."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as trouble:
        raise _no_gpu(str(trouble)) from None
    if not count:
        raise _no_gpu("there is none")
    return CupyNamespace(cupy, dtype)


def _no_gpu(reason: str) -> Exception:
    return error(
        "GC713",
        f"the backend cupy is installed, but finds no GPU ({reason})",
        help="use --backend numpy, or a machine with an NVIDIA GPU and its driver",
    )
