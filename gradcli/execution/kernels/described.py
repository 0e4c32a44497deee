"""A kernel goes in, its order of work and its memory come out as records; it computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels import division
from gradcli.execution.kernels.calls import BUFFER, IMPL, INPUT, SINCOS, Number, Read, Slot
from gradcli.execution.kernels.native import VECTORS
from gradcli.execution.plans.bounding import Liberties
from gradcli.execution.plans.described import REDUCTIONS, Names, operation, operations, short, type_text
from gradcli.execution.reports import PlanLoop, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.execution.kernels import Kernel
    from gradcli.execution.kernels.calls import Call, Phase


def order_of(kernel: Kernel) -> tuple[PlanStep | PlanLoop, ...]:
    """The phases of a kernel as loops, and the steps on numbers between them."""
    return tuple(_Described(kernel).rows())


def beside(kernel: Kernel) -> int:
    """The bytes of the buffers of all threads, in the phase that has most."""
    found = 0
    for phase in kernel.phases:
        block, threads = division(phase, _longest(phase))
        found = max(found, threads * sum([(block + more) * dtype.itemsize for dtype, more in phase.buffers]))
    return found


def liberties(kernel: Kernel) -> Liberties:
    """The functions whose last digits may be others than NumPy's."""
    called = {call.what for phase in kernel.phases for call in phase.calls}
    paired = {np.sin, np.cos} if SINCOS in called else set()
    native = any(made is not None for made in kernel.made_native())
    return Liberties(frozenset(paired | ((VECTORS if native else {np.power}) & called)))


def _longest(phase: Phase) -> int:
    ends = [slot.length for slot in phase.outputs] + [one.length for one in phase.reductions]
    return max([end or 0 for end in ends], default=0)


class _Described:
    """The rows while they are made; a slot is called by the place of the call that wrote it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names()
        self.slots: dict[int, str] = {}

    def rows(self) -> Iterator[PlanStep | PlanLoop]:
        number = 0
        for position, phase in enumerate([*self.kernel.phases, None]):
            for op in self.kernel.steps_before(position):
                if op.kind == "view":
                    continue
                number += 1
                reads = tuple([self.names.of(arg) for arg in op.args])
                self.names.places[op.out.serial] = str(number)
                span = op.node.span if op.node is not None else None
                yield PlanStep(
                    str(number), operation(op), reads, type_text(op.out), operations(op), op.out.nbytes, "", span
                )
            if phase is not None and (phase.outputs or phase.reductions):
                number += 1
                yield self._loop(phase, str(number))

    def _loop(self, phase: Phase, place: str) -> PlanLoop:
        longest = _longest(phase)
        block, threads = division(phase, longest)
        self.slots = {}
        again: dict[Any, str] = {}
        rows = []
        for position, call in enumerate(phase.calls, 1):
            rows.append(self._step(call, f"{place}.{position}", again))
        for position, one in enumerate(phase.reductions, len(rows) + 1):
            own = f"{place}.{position}"
            word = REDUCTIONS.get(one.by.__name__, one.by.__name__)
            size = one.length or longest
            rows.append(PlanStep(own, word, (self._read(one.read),), type_text(one.value), size, 0, "sum", None))
            self.names.places[one.value.serial] = own
        return PlanLoop(place, longest, min(block, longest), threads, tuple(rows))

    def _step(self, call: Call, place: str, again: dict[Any, str]) -> PlanStep:
        reads = tuple([self._read(one) for one in call.operands])
        slot = call.results[0]
        memory = "result" if slot.kind != BUFFER else ""
        if slot.kind == BUFFER:
            if slot.place in again:
                memory = f"again #{again[slot.place]}"
            again[slot.place] = place
        for one in call.results:
            self.slots[id(one)] = f"#{place}"
        word = "sin and cos" if call.what == SINCOS else "call" if call.what == IMPL else call.what
        name = getattr(word, "__name__", word)
        length = slot.length or 0
        count = None if call.what == IMPL else length * len(call.results)
        return PlanStep(
            place, str(name), reads, f"{short(slot.dtype)}[{length}]", count, length * slot.dtype.itemsize, memory, None
        )

    def _read(self, one: Any) -> str:
        if isinstance(one, Read):
            slot, shift = one
            name = self._slot(slot)
            return f"{name}[{shift}:]" if shift > 0 else f"{name}[:{shift}]" if shift < 0 else name
        return self.names.of(one.value) if isinstance(one, Number) else f"{np.asarray(one).item():g}"

    def _slot(self, slot: Slot) -> str:
        return self.names.of(slot.place) if slot.kind == INPUT else self.slots.get(id(slot), "?")
