"""A device that is not there: the texts of kernels go in, g++ compiles them, and their threads run one after the other.

Every thread is a fiber. The 32 of a warp meet at each shuffle, all of a block at each barrier; a warp whose threads part
ways there is an error, as it would hang on a device, and so is every index outside an array. `library()` is a module that
stands in for CuPy: its arrays are NumPy's, of a class of their own, which refuses to be mixed with plain ones.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import scipy.special

from gradcli.execution import namespaces

COMPILER = shutil.which("g++")
SIGNATURE = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\((.*?)\) \{')
TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int32": "int", "int64": "long long"}
HEADER = r"""
#include <cmath>
#include <cstring>
#include <cstdlib>
#include <ucontext.h>
using namespace std;
#define __device__
#define __forceinline__ inline
#define __shared__ static
struct Three { unsigned x; };
static Three threadIdx, blockIdx, gridDim;
static const char* trouble = nullptr;
static double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
static float __int_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline void sincos(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
template <class T> inline T erfinv(T y) {
    if (y != y || fabs(y) > 1) return NAN;
    if (fabs(y) == 1) return copysign((T)INFINITY, y);
    double low = -7, high = 7;
    for (int n = 0; n < 80; n++) { double mid = (low + high) / 2; (erf(mid) < (double)y ? low : high) = mid; }
    double x = (low + high) / 2;
    if (fabs(y) < 0.5) x -= (erf(x) - (double)y) / (1.1283791670955126 * exp(-x * x));
    return (T)x;
}
template <class T> struct Checked {
    T* at; long long length;
    T& operator[](long long i) const {
        static T nothing[1];
        if (i < 0 || i >= length) { trouble = "an index outside an array"; return nothing[0]; }
        return at[i];
    }
};
namespace fibers {
enum { READY, WARP, BLOCK, DONE };
struct Fiber { ucontext_t context; int state; };
static Fiber all[256];
static ucontext_t home;
static unsigned now;
static double slots[256];
static void (*work)(void*);
static void* data;
static char* stacks = nullptr;
static void leave(int state) {
    unsigned me = now;
    all[me].state = state;
    swapcontext(&all[me].context, &home);
}
static void enter() { work(data); all[now].state = DONE; swapcontext(&all[now].context, &home); }
static void block() {
    if (!stacks) stacks = (char*)malloc(256 * 65536);
    for (unsigned t = 0; t < 256; t++) {
        getcontext(&all[t].context);
        all[t].context.uc_stack.ss_sp = stacks + t * 65536;
        all[t].context.uc_stack.ss_size = 65536;
        all[t].context.uc_link = &home;
        all[t].state = READY;
        makecontext(&all[t].context, (void (*)())enter, 0);
    }
    for (;;) {
        for (unsigned w = 0; w < 256; w += 32) {
            while (all[w].state == READY || all[w].state == WARP) {
                for (unsigned t = w; t < w + 32; t++) {
                    now = threadIdx.x = t;
                    swapcontext(&home, &all[t].context);
                    if (all[t].state != all[w].state) { trouble = "threads of a warp part ways"; return; }
                }
            }
        }
        for (unsigned t = 1; t < 256; t++)
            if (all[t].state != all[0].state) { trouble = "threads of a block part ways"; return; }
        if (all[0].state == DONE) return;
        for (unsigned t = 0; t < 256; t++) all[t].state = READY;
    }
}
}
template <class T> static T __shfl_down_sync(unsigned, T value, int delta, int width) {
    unsigned me = fibers::now, position = me % 32 % width;
    fibers::slots[me] = value;
    fibers::leave(fibers::WARP);
    T found = (T)fibers::slots[position + delta < (unsigned)width ? me + delta : me];
    fibers::leave(fibers::WARP);
    return found;
}
template <class T> static T __shfl_sync(unsigned, T value, int source, int width) {
    unsigned me = fibers::now;
    fibers::slots[me] = value;
    fibers::leave(fibers::WARP);
    T found = (T)fibers::slots[me - me % width + source];
    fibers::leave(fibers::WARP);
    return found;
}
static void __syncthreads() { fibers::leave(fibers::BLOCK); }
extern "C" const char* trouble_of() { const char* found = trouble; trouble = nullptr; return found; }
"""


class Parameter:
    """A parameter of a kernel: an array or a number, of a type of C."""

    def __init__(self, kind: str, name: str, array: bool) -> None:
        self.kind, self.name, self.array = kind, name, array


def raw(text: str) -> tuple[str, list[Parameter], str]:
    """Name, parameters and body of a whole kernel, and what stands before it."""
    found = SIGNATURE.search(text)
    assert found is not None, text
    parameters = []
    for one in found[2].split(", "):
        array = "*" in one
        kind, name = re.sub(r"const |__restrict__ |\*", "", one).rsplit(" ", 1)
        parameters.append(Parameter(kind.strip(), name, array))
    return found[1], parameters, text


def digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=10).hexdigest()


def unit(key: str, parameters: Sequence[Parameter], before: str, body: str) -> str:
    """The C++ of one kernel in a namespace of its own, and the function that launches it."""
    fields = [f"{f'Checked<{p.kind}>' if p.array else p.kind} {p.name};" for p in parameters]
    taken = [f"auto& {p.name} = given->{p.name};" for p in parameters]
    filled, arrays, numbers = [], 0, 0
    for one in parameters:
        if one.array:
            filled.append(f"given.{one.name} = {{({one.kind}*)arrays[{arrays}], lengths[{arrays}]}};")
            arrays += 1
        else:
            filled.append(f"given.{one.name} = ({one.kind})numbers[{numbers}];")
            numbers += 1
    run = "gridDim.x = (unsigned)count; for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) fibers::block();"
    return "\n".join([
        f"namespace k{key} {{", before, f"struct Given {{ {' '.join(fields)} }};",
        "static void kernel(void* data) { Given* given = (Given*)data;", *taken, body, "}", "}",
        f'extern "C" void launch_{key}(void** arrays, long long* lengths, double* numbers, long long count) {{',
        f"using namespace k{key}; Given given;", *filled, "fibers::work = kernel; fibers::data = &given;", run, "}",
    ])  # fmt: skip


def as_unit(text: str) -> tuple[str, str, list[Parameter], str]:
    """The unit of a whole kernel: key, C++, parameters, name."""
    name, parameters, _ = raw(text)
    found = SIGNATURE.search(text)
    assert found is not None
    key = digest(text)
    body = text[found.end() :].rstrip().removesuffix("}")
    return key, unit(key, parameters, text[: found.start()], body), parameters, name


class Machine:
    """The kernels that have been compiled, by key."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="gradcli-device-"))
        self.compiled = 0

    def build(self, units: dict[str, str]) -> None:
        """Compile those of some units that are new, in one go."""
        new = {key: text for key, text in units.items() if key not in self.functions}
        if not new:
            return
        self.compiled += 1
        source = self.folder / f"part{self.compiled}.cpp"
        source.write_text(HEADER + "\n".join(new.values()))
        target = source.with_suffix(".so")
        assert COMPILER is not None
        options = "-std=c++17 -O0 -w -ffp-contract=off -shared -fPIC".split()
        command = [COMPILER, *options, str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
        library = ctypes.CDLL(str(target))
        library.trouble_of.restype = ctypes.c_char_p
        for key in new:
            self.functions[key] = (getattr(library, f"launch_{key}"), library.trouble_of)

    def launch(self, key: str, parameters: Sequence[Parameter], given: Sequence[Any], count: int) -> None:
        """Run a kernel on arrays and numbers."""
        assert len(given) == len(parameters), (len(given), [p.name for p in parameters])
        arrays, numbers = [], []
        for parameter, one in zip(parameters, given, strict=True):
            if parameter.array:
                assert isinstance(one, np.ndarray) and one.flags.c_contiguous, parameter.name
                assert TYPES[one.dtype.name] == parameter.kind, (parameter.name, one.dtype)
                arrays.append(one)
            else:
                assert isinstance(one, np.generic) and TYPES[one.dtype.name] == parameter.kind, (parameter.name, one)
                numbers.append(float(one))
        pointers = (ctypes.c_void_p * max(1, len(arrays)))(*[one.ctypes.data for one in arrays])
        lengths = (ctypes.c_longlong * max(1, len(arrays)))(*[one.size for one in arrays])
        values = (ctypes.c_double * max(1, len(numbers)))(*numbers)
        function, trouble = self.functions[key]
        function(pointers, lengths, values, ctypes.c_longlong(count))
        told = trouble()
        assert told is None, told.decode()


MACHINE = Machine()


class Array(np.ndarray):
    """An array on the device: only functions of the device's library take it, and it takes no plain array."""

    __cuda_array_interface__: dict[str, Any] = {}

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        refuse_plain(inputs)
        plain = plainly(inputs)
        kept = None if out is None else tuple(one.view(np.ndarray) for one in out)
        found = getattr(ufunc, method)(*plain, **({} if kept is None else {"out": kept}), **options)
        return out[0] if out is not None else on_device(found)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        refuse_plain(args)
        return on_device(function(*plainly(args), **dict(zip(options, plainly(options.values()), strict=True))))


def refuse_plain(values: Any) -> None:
    for one in values:
        if isinstance(one, (list, tuple)):
            refuse_plain(one)
        elif type(one) is np.ndarray:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def plainly(values: Iterable[Any]) -> list[Any]:
    """The same with plain arrays for those of the device."""
    return [
        one.view(np.ndarray)
        if isinstance(one, Array)
        else type(one)(plainly(one))
        if isinstance(one, (list, tuple))
        else one
        for one in values
    ]


def on_device(value: Any) -> Any:
    """Results of the library lie on the device, single numbers too."""
    if isinstance(value, tuple):
        return type(value)(*map(on_device, value)) if hasattr(value, "_fields") else tuple(map(on_device, value))
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(Array)
    return value


def units_of(plans: Sequence[Any]) -> dict[str, str]:
    """The units of all kernels of some plans, to be compiled in one go."""
    found = {}
    for plan in plans:
        for kernel in plan.work:
            if getattr(kernel, "text", None) is None:
                continue
            for one in (kernel, kernel.rest):
                if one is not None:
                    key, text, *_ = as_unit(one.text)
                    found[key] = text
    return found


class Counts:
    """What has moved and run."""

    def __init__(self) -> None:
        self.sent = self.fetched = self.kernels = 0
        self.compiled: list[str] = []


def library() -> tuple[ModuleType, Counts]:
    """A module like CuPy, and the counts of what is done with it."""
    cupy, counts = ModuleType("cupy"), Counts()
    lacking = {"errstate", "broadcast_shapes", "ufunc"}

    def found(name: str) -> Any:
        if name in lacking or not hasattr(np, name):
            return None
        one = getattr(np, name)
        if not callable(one) or isinstance(one, type):
            return one

        def call(*args: Any, **options: Any) -> Any:
            refuse_plain((*args, *options.values()))
            return on_device(one(*plainly(args), **dict(zip(options, plainly(options.values()), strict=True))))

        return call

    def empty(shape: Any, dtype: Any = float) -> Any:
        return np.empty(shape, dtype).view(Array)

    def asarray(value: Any, dtype: Any = None, order: str | None = None) -> Any:
        if type(value) is np.ndarray and value.shape:
            counts.sent += 1
        if (
            isinstance(value, Array)
            and (dtype is None or value.dtype == dtype)
            and (order is None or value.flags.c_contiguous)
        ):
            return value
        return np.array(value, dtype=dtype, order=order or "K").view(Array)

    def asnumpy(value: Any) -> Any:
        counts.fetched += 1
        return np.array(value.view(np.ndarray) if isinstance(value, Array) else value)

    class RawModule:
        def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
            assert "--fmad=false" in options
            self.key, text, self.parameters, self.name = as_unit(code)
            counts.compiled.append(self.name)
            MACHINE.build({self.key: text})

        def get_function(self, name: str) -> Any:
            assert name == self.name

            def launch(grid: tuple[int], block: tuple[int], given: Sequence[Any]) -> None:
                assert block == (256,) and 0 < grid[0] < 1 << 31
                counts.kernels += 1
                MACHINE.launch(self.key, self.parameters, given, grid[0])

            return launch

    device = SimpleNamespace(synchronize=lambda: None)
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)

    cupy.cuda = SimpleNamespace(Device=lambda: device, runtime=runtime)  # type: ignore[attr-defined]
    cupy.ndarray = Array  # type: ignore[attr-defined]
    cupy.__getattr__ = found  # type: ignore[method-assign]
    for name, one in {
        "asarray": asarray, "empty": empty, "asnumpy": asnumpy, "RawModule": RawModule,
        "argsort": lambda a, axis=-1, kind=None: on_device(np.argsort(a, axis=axis, kind="stable")),
    }.items():  # fmt: skip
        setattr(cupy, name, one)
    return cupy, counts


@contextmanager
def emulated() -> Iterator[Counts]:
    """A context in which CuPy is the library of this module; what was made before with it is put aside."""
    cupy, counts = library()
    cupyx = ModuleType("cupyx")
    cupyx.scatter_add = np.add.at  # type: ignore[attr-defined]
    cupyx.errstate = contextmanager(lambda *, linalg: (yield))  # type: ignore[attr-defined]
    mine = {"cupy": cupy, "cupyx": cupyx, "cupyx.scipy.special": scipy.special}
    before = {name: sys.modules.get(name) for name in mine}
    kept, namespaces._namespaces = namespaces._namespaces, {}
    sys.modules.update(mine)
    sys.modules.pop("gradcli.execution.namespaces.cupy_", None)
    try:
        with np.errstate(all="ignore"):
            yield counts
    finally:
        namespaces._namespaces = kept
        sys.modules.pop("gradcli.execution.namespaces.cupy_", None)
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
