"""A kernel on entries goes in, one on arrays at many points comes out: columns of arrays are the lines that it reads.

Where an array of the caller can hold a result, its columns are the lines that the kernel writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.inputs import leaf_value
from gradcli.execution.kernels.memory import lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.kernels import Kernel


class Gathered:
    """A kernel of entries as one of arrays: the first axis of each counts points, the entries of a point follow."""

    def __init__(self, kernel: Kernel, tape: Tape, moving: Collection[str]) -> None:
        self.kernel = kernel
        self.inputs = [(node, node.params["name"] in moving) for node, _ in tape.inputs]
        self.outputs = tape.outputs

    def run(self, given: Sequence[Any], count: int, out: Sequence[Any] | None = None) -> list[Any]:
        """The outputs at all points: in the arrays of `out` where they fit, else in new ones."""
        xp = self.kernel.xp
        columns: list[Any] = []
        arrays = []
        with xp.arithmetic():
            for (node, moves), one in zip(self.inputs, given, strict=True):
                made = leaf_value(xp, node, one)
                arrays.append(made)
                columns += list(made.reshape(count, -1).T if moves else made.reshape(-1))
        types = [np.dtype(xp.kind_type("float") if node.type.kind == "float" else "float64") for node in self.outputs]
        found: list[Any] = [None] * len(types)
        for place, (node, dtype) in enumerate(zip(self.outputs, types, strict=True)):
            mine = out[place] if out is not None else None
            if mine is not None and fits(mine, (count, *node.type.shape), dtype, arrays):
                found[place] = mine
        new = [place for place, one in enumerate(found) if one is None]
        rooms = lines([count * self.outputs[place].type.size for place in new], [types[place] for place in new])
        for place, room in zip(new, rooms, strict=True):
            found[place] = room.reshape(count, *self.outputs[place].type.shape)
        wanted = [column for one in found for column in one.reshape(count, -1).T]
        for column, made in zip(wanted, self.kernel.run(columns, count, wanted), strict=True):
            if made is not column:
                column[...] = made
        return found


def fits(room: Any, shape: tuple[int, ...], dtype: Any, inputs: Iterable[Any]) -> bool:
    """Whether an array of the caller can hold a result while the inputs are still read."""
    if type(room) is not np.ndarray or room.shape != shape or room.dtype != dtype:
        return False
    if not (room.flags.c_contiguous and room.flags.writeable):
        return False
    return not any(np.may_share_memory(room, one) for one in inputs)
