"""Steps as functions `f(*operands, out)` of NumPy arrays, which fill the memory that they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import ir
from gradcli.execution.compiler.ir import BROADCAST, PERMUTE, RESHAPE, SLICE, Op, PlanValue, base, index_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Kernel = Callable[..., Any]

BITS = {8: np.int64, 4: np.int32}  # whole numbers of the size of a float
LARGEST_POWER = 1024
SPARSE = 16  # times that a condition is longer than what it chooses, from which looking at the latter costs little
SHORT = 1 << 16  # bytes of a constant that is worth a copy without gaps
LONG = 1 << 10  # entries from which choosing by bits is faster than a copy under a mask
PAIRWISE = 8  # entries of a row from which NumPy adds them in another order than one after the other
MANY_ROWS = 256  # from which columns are worth several calls

UNSAFE = {np.negative, np.isfinite, np.isnan, np.isinf, np.signbit}  # NumPy 2.4: wrong in results with gaps (AVX-512)


def kernel(op: Op) -> Kernel:
    """The function of a step; it may be called with any operands of the same kind, such as blocks."""
    return KERNELS[op.kind](op)


def _entry(op: Op) -> Kernel:
    if op.function is np.power and op.args[0].dtype.kind == "f" and _is_whole(op.args[1].number):
        return _whole_power(op)
    return entry(op.function)


def _is_whole(exponent: Any) -> bool:
    """Whether a power is a whole number, and of a size for which it is known to be even or odd."""
    return exponent is not None and bool(
        np.isfinite(exponent) and np.rint(exponent) == exponent and abs(exponent) <= LARGEST_POWER
    )


def _whole_power(op: Op) -> Kernel:
    """A whole power by way of the positive one: NumPy takes twenty times as long for a negative base."""
    odd = int(op.args[1].number) % 2 == 1

    def power(x: Any, exponent: Any, out: Any) -> None:
        signed = x.copy() if odd and np.may_share_memory(x, out) else x
        np.absolute(x, out)
        np.power(out, exponent, out)
        if odd:
            np.copysign(out, signed, out)

    return power


def entry(ufunc: Any) -> Kernel:
    """A ufunc whose last operand is the result; not every one takes it by position."""
    if ufunc is np.maximum or ufunc is np.minimum:
        return lambda x, y, out: ufunc(x, y, out=out)
    if ufunc in UNSAFE:
        return lambda x, out: ufunc(x, out) if out.flags.forc else np.copyto(out, ufunc(x))
    return ufunc  # type: ignore[no-any-return]


def _choice(op: Op) -> Kernel:
    x, y = op.args[1:]
    dtype = op.out.dtype
    if not (x.dtype == y.dtype == dtype and dtype.kind == "f" and op.out.size >= LONG):
        return _choose
    whole = BITS[dtype.itemsize]

    def by_bits(
        condition: Any, x: Any, y: Any, out: Any
    ) -> None:  # a copy under a mask takes long where that is random
        chosen, y = out.view(whole), y.view(whole)
        np.bitwise_xor(x.view(whole), y, chosen)
        np.bitwise_and(chosen, np.negative(condition.view(np.int8)), chosen)
        np.bitwise_xor(chosen, y, chosen)

    def or_zero(condition: Any, x: Any, y: Any, out: Any) -> None:
        if SPARSE * x.size <= out.size and (x == 1).all():
            np.copyto(out, condition)
        else:
            np.bitwise_and(x.view(whole), np.negative(condition.view(np.int8)), out.view(whole))

    return or_zero if ir.is_zero(y) and not np.signbit(y.number) else by_bits


def _choose(condition: Any, x: Any, y: Any, out: Any) -> None:
    np.copyto(out, np.where(condition, x, y))


def _reduce(op: Op) -> Kernel:
    reduce, axes, shape = op.function.reduce, op.params, op.args[0].shape
    short = axes == (len(shape) - 1,) and 1 < shape[-1] < PAIRWISE and op.out.size >= MANY_ROWS
    if short and op.args[0].dtype == op.out.dtype:
        return _reduce_by_columns(op.function, len(shape))
    return lambda x, out: reduce(x, axes, None, out)


def _reduce_by_columns(ufunc: Any, rank: int) -> Kernel:
    """A reduction of short rows: NumPy takes longer to begin each of them than to compute with whole columns."""
    function, order = entry(ufunc), (rank - 1, *range(rank - 1))

    def reduce(x: Any, out: Any) -> None:
        total, *columns = x.transpose(order)
        for column in columns:
            total = function(total, column, out)
        if not columns:  # of a block that is cut along the rows
            np.copyto(out, total)

    return reduce


def places(op: Op, which: PlanValue) -> tuple[Any, ...]:
    """The index of the entries that a step puts; an axis that is filled is written as `:`, so it fits a block too."""
    parts = index_of(op.params[1])
    full = zip(parts, which.shape, op.out.shape, strict=True)
    return tuple([slice(None) if n == size and (part.step or 1) > 0 else part for part, n, size in full])


def _place(op: Op) -> Kernel:
    index = places(op, op.args[0])

    def put(x: Any, out: Any) -> None:
        out.fill(0)
        out[index] = x

    return put


def _added(op: Op) -> Kernel:
    index = places(op, op.args[1])

    def add(total: Any, x: Any, out: Any) -> None:
        if out is not total:
            np.copyto(out, total)
        part = out[index]
        np.add(part, x, part)

    return add


def _join(op: Op) -> Kernel:
    axis, ends, start = op.params, [], 0
    for arg in op.args:
        ends.append((slice(None),) * axis + (slice(start, start + arg.shape[axis]),))
        start += arg.shape[axis]

    def join(*xs: Any) -> None:
        out = xs[-1]
        for index, x in zip(ends, xs, strict=False):
            out[index] = x

    return join


def _call(op: Op) -> Kernel:
    def call(*xs: Any) -> None:
        xs[-1][...] = op.function(*xs[:-1])

    return call


KERNELS: dict[str, Callable[[Op], Kernel]] = {
    ir.ENTRY: _entry, ir.CHOICE: _choice, ir.REDUCE: _reduce, ir.PLACE: _place, ir.ADDED: _added, ir.JOIN: _join,
    ir.CALL: _call,
    ir.CAST: lambda op: lambda x, out: np.copyto(out, x, casting="unsafe"),
    ir.COPY: lambda op: lambda x, out: np.copyto(out, x),
    ir.PRODUCT: lambda op: np.matmul,
    ir.SCAN: lambda op: op.function,
}  # fmt: skip


def show_view(op: Op, x: Any, shape: tuple[int, ...]) -> Any:
    """The view that a step takes of an array, or of a block of it; `shape` is that of the result."""
    if op.function == RESHAPE:
        return x.reshape(shape)
    if op.function == BROADCAST:
        return np.broadcast_to(x, shape)
    if op.function == PERMUTE:
        return x.transpose(op.params)
    parts = index_of(op.params)
    whole = zip(parts, op.args[0].shape, op.out.shape, strict=True)
    return x[tuple([slice(None) if n == m and (part.step or 1) > 0 else part for part, n, m in whole])]


def operand(op: Op, value: PlanValue) -> Any:
    """A number as a step takes it: alone where entries are repeated for it, else in its shape."""
    if op.kind in (ir.ENTRY, ir.CHOICE, ir.JOIN, ir.PLACE, ir.ADDED):
        return np.asarray(value.number)
    return np.broadcast_to(value.number, value.shape)


# --- what is computed once ---------------------------------------------------------------------------------------


def constants(ops: Sequence[Op], values: Iterable[PlanValue]) -> dict[int, Any]:
    """The arrays, by serial, that these values are or show; `ops` are all steps without inputs, in order."""
    wanted: set[int] = set()
    cells: dict[int, Any] = {}
    for value in values:
        while not value.constant and value.op is not None and value.op.kind == ir.VIEW:
            value = value.op.args[0]
        if value.constant and value.number is None:
            wanted.add(value.serial)
        below = base(value)
        if below.array is not None:
            cells[below.serial] = below.array
    last = {arg.serial: place for place, op in enumerate(ops) for arg in op.args}
    for place, op in enumerate(ops):
        xs = []
        for arg in op.args:
            if arg.array is not None:
                cells[arg.serial] = arg.array
            xs.append(operand(op, arg) if arg.number is not None else cells[arg.serial])
        if op.kind == ir.VIEW:
            view = show_view(op, xs[0], op.out.shape)
            short = view.nbytes <= SHORT and op.function == SLICE
            cells[op.out.serial] = np.ascontiguousarray(view) if short else view
        else:
            out = cells[op.out.serial] = np.empty(op.out.shape, op.out.dtype)
            kernel(op)(*xs, out)
        for arg in op.args:
            if last[arg.serial] == place and arg.serial not in wanted:
                cells.pop(arg.serial, None)
    return {serial: cells[serial] for serial in wanted if serial in cells}
