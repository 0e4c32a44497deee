"""The words of a phase: slots, what reads them, calls, reductions. Plain data; who makes and who runs them share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gradcli.execution.plans.values import Value

INPUT, OUTPUT, BUFFER = "input", "output", "buffer"


class Slot:
    """A line: an input, an output, or a buffer of a block. `low` and `high` widen the block to what is wanted of it."""

    __slots__ = ("dtype", "high", "kind", "last", "length", "low", "place")

    def __init__(self, kind: str, dtype: Any, length: int | None, place: Any = None) -> None:
        self.kind = kind
        self.dtype = dtype
        self.length = length
        self.place = place  # the value of an input, the number of an output, the buffer
        self.low = self.high = 0
        self.last = -1

    def __repr__(self) -> str:
        return f"<{self.kind} {self.place} [{self.low},{self.high}]>"


class Read(NamedTuple):
    """A slot, from `shift` entries on."""

    slot: Slot
    shift: int


class Number(NamedTuple):
    """A number that is known before the phase begins."""

    value: Value


class Call(NamedTuple):
    """One step of a block: what to call, with which operands, into which slots (several for sincos only)."""

    what: Any  # a ufunc, or one of the words below
    operands: tuple[Any, ...]  # Read, Number, or an array of rank 0
    results: tuple[Slot, ...]
    scratch: tuple[Slot, ...] = ()
    more: Any = None  # of "impl": the function; of "pad": start and length of the source


COPY, PAD, WHERE, SINCOS, IMPL = "copy", "pad", "where", "sincos", "impl"


class Reduction(NamedTuple):
    """A line whose blocks are reduced, and the number that comes of it."""

    value: Value
    read: Read
    by: Any
    length: int | None


class Phase(NamedTuple):
    """What is done in every block, and the numbers that it leaves."""

    calls: tuple[Call, ...]
    reductions: tuple[Reduction, ...]
    buffers: tuple[tuple[Any, int], ...]  # type, and how many entries more than the block
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    corners: tuple[Any, ...]  # slots and pads, for the entries at which blocks are unlike the others
