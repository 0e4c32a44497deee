"""A recurrence laid out in memory goes in; out comes one loop over its rounds in machine code (extra `fast`), or None.

In NumPy a round takes a call for each group of steps, however little that computes; here a group is a loop over its
entries, inside of one loop over the rounds. Functions have the words of `native.py`; nothing else is printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.execution import kernels
from gradcli.execution.kernels import native

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.execution.plans.bodies import Body
    from gradcli.execution.plans.layouts import Block, Column, Frame, Group, Layout

CALL = 1 << 10  # entries that are computed while a function of NumPy is called
TYPES = (np.dtype("float64"), np.dtype("bool"))
WORDS = {**native.OPERATORS, np.sin: "sincos_far_({})[0]", np.cos: "sincos_far_({})[1]"}


class Rounds(NamedTuple):
    """A function of the number of rounds, the memory of `frames` from a round on, and that of `blocks`."""

    run: Callable[..., None]
    frames: tuple[Frame, ...]
    blocks: tuple[Block, ...]


def made(body: Body) -> Rounds | None:
    """The machine code of all rounds; None where it is not worth its making, cannot be printed, or numba is missing."""
    layout = body.layout
    entries = sum([group.out.width * group.out.cell.block.entries for group in layout.groups if group.flat])
    if body.rounds * (entries + CALL * len(layout.groups)) < kernels.NATIVE_WORK or not native.is_there():
        return None
    blocks = tuple([block for block in layout.blocks if block.frame is None])
    if any(one.dtype not in TYPES for one in (*layout.frames.values(), *blocks)):
        return None
    if not all(group.flat and body.ops[group.places[0]].function in WORDS for group in layout.groups):
        return None
    frames = tuple(layout.frames.values())
    return Rounds(native.made(_text(body, layout, frames, blocks)), frames, blocks)


def _text(body: Body, layout: Layout, frames: tuple[Frame, ...], blocks: tuple[Block, ...]) -> str:
    names = {id(one): f"v{at}" for at, one in enumerate(frames)}
    names.update({id(one): f"a{at}" for at, one in enumerate(blocks)})
    given = [f"s{at}" for at in range(len(frames))] + [f"a{at}" for at in range(len(blocks))]
    lines = [f"def loop({', '.join(['count', *given])}):", "    wide()", "    for i in range(count):"]
    for at, frame in enumerate(frames):
        lines.append(f"        v{at} = s{at}[i*{frame.width}:(i + {layout.window})*{frame.width}]")
    for group in layout.groups:
        lines += _group(body, group, names)
    return "\n".join([*lines, ""])


def _group(body: Body, group: Group, names: dict[int, str]) -> list[str]:
    words = [_word(column, names) for column in group.columns]
    form = WORDS[body.ops[group.places[0]].function]
    count = group.out.width * group.out.cell.block.entries
    return [f"        for e in range({count}):", f"            {_word(group.out, names)} = {form.format(*words)}"]


def _word(column: Column, names: dict[int, str]) -> str:
    """An entry of an operand."""
    if column.number is not None:
        return native.literal(column.number.item())
    cell = column.cell
    frame = cell.block.frame
    if frame is None:
        return f"{names[id(cell.block)]}[{cell.start} + e]"
    return f"{names[id(frame)]}[{cell.row(-column.distance) * frame.width + cell.start} + e]"
