"""The calls of a phase go in; every slot of a block gets a buffer, the same one as soon as it is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels.calls import BUFFER, PAD, Call, Read, Slot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.kernels.calls import Reduction


def slots_of(call: Call) -> list[Slot]:
    return [*(one.slot for one in call.operands if isinstance(one, Read)), *call.scratch]


def buffers_of(calls: Sequence[Call], reductions: Sequence[Reduction]) -> tuple[tuple[Any, int], ...]:
    """Give each slot of a block a buffer, the same one as soon as it is free again; types and widths of the buffers."""
    last: dict[Slot, int] = {}
    for place, call in enumerate(calls):
        for slot in (*slots_of(call), *call.results):
            last[slot] = place
    for reduction in reductions:
        last[reduction.read.slot] = len(calls)
    for place in range(len(calls) - 1, -1, -1):  # a pad may be its source: that lives as long
        call = calls[place]
        if call.what == PAD and isinstance(call.operands[0], Read):
            source = call.operands[0].slot
            last[source] = max(last[source], last[call.results[0]])
    found: list[tuple[Any, int]] = []
    free: list[int] = []

    def give(slot: Slot) -> None:
        width = slot.high - slot.low
        fitting = [one for one in free if found[one][0] == slot.dtype]
        if fitting:
            slot.place = fitting[-1]
            free.remove(slot.place)
            found[slot.place] = (slot.dtype, max(width, found[slot.place][1]))
        else:
            slot.place = len(found)
            found.append((slot.dtype, width))

    def leave(slots: Sequence[Slot], place: int) -> None:
        free.extend({slot.place for slot in slots if slot.kind == BUFFER and last[slot] == place})

    for place, call in enumerate(calls):
        sources = list(dict.fromkeys(one.slot for one in call.operands if isinstance(one, Read)))
        early = [] if not isinstance(call.what, np.ufunc) else [one for one in sources if _in_place(one, call)]
        leave(early, place)  # the result may be written over them
        for slot in (*call.results, *call.scratch):
            if slot.kind == BUFFER:
                give(slot)
        leave([*(one for one in sources if one not in early), *call.scratch], place)
        leave(call.results, place)  # read by nobody
    return tuple(found)


def _in_place(slot: Slot, call: Call) -> bool:
    """Whether a ufunc may write its result over an operand: the same entries, of the same type."""
    result = call.results[0]
    shifts = {one.shift for one in call.operands if isinstance(one, Read) and one.slot is slot}
    return shifts == {0} and (slot.low, slot.high, slot.length, slot.dtype) == (
        result.low,
        result.high,
        result.length,
        result.dtype,
    )
