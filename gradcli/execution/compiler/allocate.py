"""Allocates memory: a place in one block for each result of the steps, which the last reader of a result leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.execution.compiler.ir import ADDED, ENTRY, base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue

ALIGNED = 64  # bytes
IN_PLACE = (ENTRY, ADDED)  # kinds of steps that may write over an operand which is not read again


class MemoryLayout:
    """Offsets in bytes of values in one piece of memory of `size` bytes."""

    __slots__ = ("_free", "offsets", "size")

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.size = 0
        self._free: dict[int, list[int]] = {}  # places by their length, the last one freed first

    def take(self, value: PlanValue, nbytes: int) -> None:
        """A place for a value."""
        length = _rounded(nbytes)
        known = self._free.get(length)
        if known:
            self.offsets[value.serial] = known.pop()
        else:
            self.offsets[value.serial], self.size = self.size, self.size + length

    def leave(self, value: PlanValue, nbytes: int) -> None:
        """The place of a value that is not read again."""
        self._free.setdefault(_rounded(nbytes), []).append(self.offsets[value.serial])


def _rounded(nbytes: int) -> int:
    return max(ALIGNED, -(-nbytes // ALIGNED) * ALIGNED)


def lay_out(
    work: Sequence[tuple[Sequence[PlanValue], Sequence[PlanValue], Op | None]],
    placed: Callable[[PlanValue], int | None],
    kept: set[int],
) -> MemoryLayout:
    """Places for what is written, in order of work: each item reads some values, writes others, and may be one step.

    `placed` gives the bytes of a value, None where it has no place here; `kept` are never overwritten.
    """
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for position, (reads, writes, _) in enumerate(work):
        for value in (*reads, *writes):
            last[value.serial] = position
        for value in writes:
            nbytes = placed(value)
            if nbytes is not None:
                sizes[value.serial] = nbytes
    layout = MemoryLayout()
    for position, (reads, writes, op) in enumerate(work):
        dying: dict[int, PlanValue] = {}
        for value in (*reads, *writes):
            serial = value.serial
            if last[serial] == position and serial in sizes and serial not in kept:
                dying[serial] = value
        over = _overwritten(op, dying) if op is not None and dying else None
        if over is not None and op is not None and sizes.get(op.out.serial) == sizes[over.serial]:
            del dying[over.serial]
            layout.offsets[op.out.serial] = layout.offsets[over.serial]
            dying.pop(op.out.serial, None)
        else:
            for value in writes:
                if value.serial in sizes and value.serial not in layout.offsets:
                    layout.take(value, sizes[value.serial])
        for serial, value in dying.items():
            layout.leave(value, sizes[serial])
    return layout


def _overwritten(op: Op, dying: dict[int, PlanValue]) -> PlanValue | None:
    """An operand, itself and not a view of it, that the result may take the place of."""
    if op.kind not in IN_PLACE:
        return None
    for arg in op.args[:1] if op.kind == ADDED else op.args:
        if arg.serial in dying and arg.shape == op.out.shape and arg.dtype == op.out.dtype:
            if not any(other is not arg and base(other) is arg for other in op.args):
                return arg
    return None


def slot(memory: Any, offset: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array in a piece of memory."""
    size = int(dtype.itemsize)
    for n in shape:
        size *= n
    return memory[offset : offset + size].view(dtype).reshape(shape)
