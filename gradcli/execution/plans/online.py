"""The events of a schedule go in; where largest entries and then sums of exponentials were found, one loop does both.

`exp(x - m)`, for the largest entry m of x, has to wait for all of x. But `exp(x - c)` times `exp(c - m)` is the same,
so each block takes a c of its own, and x is read once (M. Milakov, N. Gimelshein, "Online normalizer calculation for
softmax", arXiv:1805.02867, 2018). The loop that waits for m stays for what has a largest entry that is not finite.
"""

from __future__ import annotations

from math import exp, fsum, inf
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.values import CHOICE, ENTRY, ONLINE, REDUCE, RESCALED, VIEW, Op, Value, base, made_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeGuard

    from gradcli.execution.plans.schedule import Loop

    Kernel = Callable[..., None]

NEAR = {8: 32.0, 4: 8.0}  # by the bytes of a float: how far c is from m, if it is 0; 0 need not be subtracted


class Online:
    """Steps of two loops that have become one, and what each of its blocks leaves: `peaks`, `totals`.

    `raw` are the exponentials as blocks made them, `factors` the number for each block that makes them `powers`.
    """

    __slots__ = ("blocks", "factors", "largest", "peaks", "powers", "raw", "total", "totals")

    def __init__(self, largest: Value, powers: Value, total: Value, serials: Iterator[int]) -> None:
        self.largest, self.powers, self.total = largest, powers, total
        self.raw = Value(next(serials), powers.shape, powers.dtype)
        self.blocks = 0
        self.peaks, self.totals, self.factors = [Value(next(serials), largest.shape, largest.dtype) for _ in range(3)]

    def room(self) -> Any:
        """An array for the factors, with an axis of length 1 for each that is added up."""
        made = made_by(self.largest)
        return np.empty((self.blocks, *kept_shape(made.args[0].shape, made.params)), self.largest.dtype)

    def settled(self, cells: dict[int, Any]) -> bool:
        """Find the total and the factors; False where a largest entry is not finite: then the other loop has to run."""
        largest, peaks, factors = cells[self.largest.serial], cells[self.peaks.serial], cells[self.factors.serial]
        totals, total = cells[self.totals.serial], cells[self.total.serial]
        if not np.isfinite(largest).all():
            factors.fill(1)
            return False
        if largest.size == 1:  # some numbers: NumPy would take longer to begin
            best, near = float(largest.reshape(())), NEAR[largest.itemsize]
            taken = [0.0 if -near <= peak <= near else peak for peak in peaks.ravel().tolist()]
            numbers = [exp(one - best) for one in taken]
            factors.reshape(-1)[...] = numbers
            total[...] = fsum(map(mul, numbers, totals.ravel().tolist()))
            return True
        found = np.exp(references(peaks) - largest)
        found[peaks == -inf] = 0  # nothing but zeros is there, whatever c was
        factors.reshape(found.shape)[...] = found
        np.add.reduce(found * totals, 0, None, total)
        return True


def references(peaks: Any) -> Any:
    """What blocks subtract from their entries: 0 if all their largest entries are near it or -inf, else these."""
    near = (np.abs(peaks) <= NEAR[peaks.dtype.itemsize]) | (peaks == -inf)
    whole = near.reshape(len(peaks), -1).all(1).reshape(-1, *[1] * (peaks.ndim - 1))
    return np.where(whole | ~np.isfinite(peaks), 0, peaks)


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape that is left when axes have become 1."""
    return tuple([1 if axis in axes else n for axis, n in enumerate(shape)])


def online(op: Op) -> Kernel:
    """The function of a step `f(x, peak, out)`: the exponentials of a block, beside its own largest entries."""
    made = made_by(op.args[1])
    kept = kept_shape(made.args[0].shape, made.params)
    near = NEAR[op.out.dtype.itemsize]
    single = op.args[1].size == 1

    def taken(x: Any, peak: Any, out: Any) -> None:
        if single and -near <= peak <= near:
            np.exp(x, out)
            return
        np.subtract(x, references(peak[None])[0].reshape(kept), out)
        np.exp(out, out)

    return taken


def rescaled(op: Op) -> Kernel:
    """The function of a step `f(raw, factor, out)`, or `f(raw, factor, beside, out)` where more is to be done.

    What stands beside is joined with the factor first, unless that leaves the range in which products are exact
    but for one rounding.
    """
    if len(op.args) == 2:
        return lambda raw, factor, out: np.multiply(raw, factor, out)
    function, info = op.function, np.finfo(op.out.dtype)
    low, high = float(info.tiny) / float(info.eps), float(info.max) * float(info.eps)

    def taken(raw: Any, factor: Any, beside: Any, out: Any) -> None:
        joined = function(factor, beside)
        size = np.abs(joined)
        if ((size >= low) & (size <= high)).all():
            np.multiply(raw, joined, out)
        else:
            np.multiply(raw, factor, out)
            function(out, beside, out)

    return taken


def joined(events: Sequence[Op | Loop], outputs: Sequence[Value], serials: Iterator[int]) -> None:
    """Join the loops of events that may be joined; they are changed as they stand. `serials`: for new values."""
    for place, event in enumerate(events):
        if _is_loop(event):
            found = _found(event, events[:place], serials)
            if found is None:
                continue
            first, group = found
            readers = _readers(group.powers, event, events, outputs)
            if readers is None:
                continue
            _join(first, event, group, readers)


def _is_loop(event: Op | Loop) -> TypeGuard[Loop]:
    return not isinstance(event, Op)


def _ops(event: Op | Loop) -> Sequence[Op]:
    return [event] if isinstance(event, Op) else event.ops


def _found(loop: Loop, before: Sequence[Op | Loop], serials: Iterator[int]) -> tuple[Loop, Online] | None:
    """The loop that finds the largest entries, where this one takes exponentials beside them and adds these up."""
    if len(loop.ops) != 3 or loop.settles is not None:
        return None
    less, power, total = loop.ops
    if (less.kind, power.kind, total.kind) != (ENTRY, ENTRY, REDUCE) or loop.summed != [total]:
        return None
    if (less.function, power.function, total.function) != (np.subtract, np.exp, np.add):
        return None
    if power.args[0] is not less.out or total.args[0] is not power.out or less.out in loop.stored:
        return None
    x, shift = less.args
    if x.shape != less.out.shape or shift.number is not None or x.dtype.itemsize not in NEAR:
        return None
    aligned = (1,) * (len(x.shape) - len(shift.shape)) + shift.shape
    largest = _largest(shift)
    if largest is None or aligned != kept_shape(x.shape, total.params) or x.dtype != power.out.dtype:
        return None
    made = made_by(largest)
    if made.args[0] is not x or made.params != total.params:
        return None
    for event in before:
        if _is_loop(event) and event.label == loop.label and made in event.summed:
            return event, Online(largest, power.out, total.out, serials)
    return None


def _largest(shift: Value) -> Value | None:
    """The largest entries that are subtracted, wherever all of them are finite."""
    while shift.op is not None and shift.op.kind == VIEW and shift.op.function == "reshape":
        shift = shift.op.args[0]
    op = shift.op
    if op is not None and op.kind == CHOICE and op.args[0].op is not None:
        condition, chosen, _ = op.args
        asked = condition.op
        if asked is None or asked.kind != ENTRY or asked.function is not np.isfinite or asked.args[0] is not chosen:
            return None
        shift, op = chosen, chosen.op
    return shift if op is not None and op.kind == REDUCE and op.function is np.maximum else None


def _readers(powers: Value, own: Loop, events: Sequence[Op | Loop], outputs: Sequence[Value]) -> list[Loop] | None:
    """The other loops that read the exponentials; None where anything else does."""
    if any(base(value) is powers for value in outputs):
        return None
    found = []
    for event in events:
        if event is own or not any(base(arg) is powers for op in _ops(event) for arg in op.args):
            continue
        if not _is_loop(event) or event.label != own.label or event.settles is not None:
            return None
        if any(base(arg) is powers and _chain_leaves(arg, event) for op in event.ops for arg in op.args):
            return None
        found.append(event)
    return found


def _chain_leaves(value: Value, loop: Loop) -> bool:
    """Whether a view shows other entries than those of the block."""
    from gradcli.execution.plans.schedule import root

    return not root(value, loop.at)[1]


def _join(first: Loop, second: Loop, group: Online, readers: Sequence[Loop]) -> None:
    less, power, total = second.ops
    raw, powers = group.raw, group.powers
    stored = powers in second.stored
    first.at[raw.serial] = first.at[powers.serial]
    raw.op = Op(ONLINE, None, (less.args[0], group.largest), None, raw, power.node)
    part = Value(group.totals.serial, total.out.shape, total.out.dtype)
    adding = part.op = Op(REDUCE, np.add, (raw,), total.params, part, total.node)
    first.ops += [raw.op, adding]
    first.apart += [(made_by(group.largest), group.peaks), (adding, group.totals)]
    # the loop that waits: it writes to the same places
    waiting = Op(REDUCE, np.add, (raw,), total.params, total.out, total.node)
    total.out.op = waiting
    second.ops = [less, Op(ENTRY, np.exp, power.args, None, raw, power.node), waiting]
    second.summed = [waiting]
    second.settles = group
    first.stored += [raw] if stored else []
    second.stored = [raw] if stored else []
    for loop in readers:
        _read(loop, group)
    rows = min([loop.rows for loop in (first, *readers)])
    for loop in (first, *readers):
        loop.rows = rows
    group.blocks = -(-first.count // rows)


def _read(loop: Loop, group: Online) -> None:
    """Multiply the exponentials by the factor of the block, in the steps that read them or in one of its own."""
    powers, raw, factors = group.powers, group.raw, group.factors
    loop.numbered.append(factors.serial)
    kept = kept_shape(powers.shape, made_by(group.largest).params)
    ops, left = [], False
    for op in loop.ops:
        beside = _beside(op, powers, kept)
        if beside is not None:
            again = Op(RESCALED, op.function, (raw, factors, beside), None, op.out, op.node)
            op.out.op = again
            ops.append(again)
        else:
            left = left or any(base(arg) is powers for arg in op.args)
            ops.append(op)
    loop.ops = ops
    if left:
        loop.ops = [Op(RESCALED, None, (raw, factors), None, powers, powers.op.node if powers.op else None), *ops]


def _beside(op: Op, powers: Value, kept: tuple[int, ...]) -> Value | None:
    """What a step multiplies or divides the exponentials by, if that is the same for all entries of a block."""
    if op.kind != ENTRY or op.function not in (np.multiply, np.divide) or op.out.shape != powers.shape:
        return None
    for one, other in (op.args, op.args[::-1]) if op.function is np.multiply else (op.args,):
        aligned = (1,) * (len(kept) - len(other.shape)) + other.shape
        if one is powers and other.number is None and all(n in (1, m) for n, m in zip(aligned, kept, strict=True)):
            return other
    return None
