"""The steps of a turn go in, places for what they read and write come out: steps that are one call have theirs side by
side.

A block is an array of rows, one for each round; a cell is a column of it. A row of a block may hold what two turns
give. The rows of all blocks that last make up a frame: a scan works on a few rows of it at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.packing import ALL, OWN, ROW
from gradcli.execution.plans.values import ENTRY

if TYPE_CHECKING:
    from gradcli.execution.plans.bodies import Body
    from gradcli.execution.plans.packing import Pack


ALIGNED = 8  # entries
TOGETHER = 8  # rounds that share the copies of their rows, at most, unless a round uses more rows
MOST = 100  # calls of rounds that go together, at most: a text is compiled that has each of them
GIVEN, BOTH, STORED, NEITHER = range(4)  # blocks, in the order in which they stand in a frame


class Cell:
    """A column of a block: what a round gives stands `shift` rows behind the first one that the round uses."""

    __slots__ = ("block", "column", "shape", "shift")

    def __init__(self, block: Block, shape: tuple[int, ...], shift: int) -> None:
        self.block = block
        self.shape = shape
        self.shift = shift
        self.column = len(block.cells)
        block.cells.append(self)

    def row(self, round_: int) -> int:
        """The row of a round."""
        return round_ + self.shift - self.block.lowest if self.block.frame is not None else 0

    @property
    def start(self) -> int:
        """Where the cell begins in a row."""
        return self.block.start + self.column * self.block.entries


class Block:
    """Cells of the same number of entries side by side; without a frame all rounds write over each other."""

    __slots__ = ("cells", "dtype", "entries", "frame", "lowest", "start")

    def __init__(self, entries: int, dtype: Any) -> None:
        self.cells: list[Cell] = []
        self.entries = entries
        self.dtype = dtype
        self.lowest = 0
        self.start = 0
        self.frame: Frame | None = None


class Frame:
    """Rows of one type, one for each round: what comes from outside ends at `given`, what is read there is `stored`.

    Between the two of `fed` stands all that comes from outside anew in each round.
    """

    __slots__ = ("dtype", "fed", "given", "stored", "width")

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.width = 0
        self.given = 0
        self.fed = (0, 0)
        self.stored: tuple[int, int] | None = None


class Column:
    """What one call reads or writes in one of its operands: `width` cells side by side, or a number."""

    __slots__ = ("cell", "distance", "number", "width")

    def __init__(self, cell: Any, distance: int, width: int, number: Any = None) -> None:
        self.cell = cell
        self.distance = distance
        self.width = width
        self.number = number


class Group:
    """Places whose steps are one call; `flat` where it runs over entries, whatever their shape."""

    __slots__ = ("columns", "flat", "out", "places")

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.flat = False
        self.columns: list[Column] = []
        self.out: Any = None


class Layout:
    """Where everything lies, and what is called in a turn."""

    def __init__(self, body: Body) -> None:
        self.body = body
        packing = body.packing
        self.cells: dict[Any, Cell] = {}
        self.blocks: list[Block] = []
        used = {(OWN, place) for place in body.places if place not in body.shown}
        for pack in packing.packs:
            used |= {key for column in pack.keys if isinstance(column, list) for key, _ in column}
        for row in {id(row): row for row in packing.blocks.rows.values()}.values():
            if used.isdisjoint(row):
                continue
            shape, dtype = self._form(row[0])
            entries = 1
            for n in shape:
                entries *= n
            block = Block(entries, dtype)
            self.blocks.append(block)
            for key in row:
                self.cells[key] = Cell(block, self._form(key)[0], packing.blocks.shifts[key])
        self.groups = [self._group(pack) for pack in packing.packs]
        self.frames: dict[Any, Frame] = {}
        self.window = self._placed()  # the rows that one round uses
        self.together = max(self.window, min(TOGETHER, MOST // max(len(self.groups), 1)))  # rounds that share copies

    def _form(self, key: Any) -> Any:
        if key[0] == OWN:
            return self.body.shapes[key[1]], self.body.ops[key[1]].out.dtype
        return self.body.forms[key[:2]]

    def _group(self, pack: Pack) -> Group:
        group = Group(pack.places)
        place, width = pack.places[0], len(pack.places)
        op, shape = self.body.ops[place], self.body.shapes[place]
        if op.kind != ENTRY or place in self.body.turns:
            return group
        columns = []
        for keys in pack.keys:
            if not isinstance(keys, list):
                columns.append(Column(None, 0, width, np.asarray(keys.number)))
                continue
            key, distance = keys[0]
            cell = self.cells.get(key)
            if cell is None or cell.shape != shape:
                return group
            columns.append(Column(cell, distance, width))
        group.columns = columns
        group.out = Column(self.cells[OWN, place], 0, width)
        group.flat = True
        return group

    def _placed(self) -> int:
        """Give a place in a frame to each block that is read in other rounds or outside; the rows that a round uses."""
        body = self.body
        used: dict[Any, list[int]] = {}  # how many rounds before a key is read, 0 for what is written
        for pack in body.packing.packs:
            for place in pack.places:
                used.setdefault((OWN, place), []).append(0)
            for keys in pack.keys:
                for key, rounds in keys if isinstance(keys, list) else ():
                    used.setdefault(key, []).append(rounds)
        carried = {place for place, _ in body.initial}
        members: dict[int, list[Any]] = {}
        for key, cell in self.cells.items():
            members.setdefault(id(cell.block), []).append(key)
        window = 1
        lasting: list[tuple[int, Block]] = []
        for block in self.blocks:
            keys = members[id(block)]
            own = {key[1] for key in keys if key[0] == OWN}
            stored = not own.isdisjoint(body.stored)
            given = len(own) < len(keys) or not own.isdisjoint(carried)
            later = any(key[0] == OWN and max(used.get(key, [0])) > 0 for key in keys)
            if not (stored or later or not own.isdisjoint(carried) or any(key[0] == ROW for key in keys)):
                continue
            places = [self.cells[key].shift - before for key in keys if key[0] != ALL for before in used.get(key, [0])]
            block.lowest = min(places)
            window = max(window, max(places) - block.lowest + 1)
            lasting.append(((BOTH if stored else GIVEN) if given else STORED if stored else NEITHER, block))
        for kind, block in sorted(lasting, key=lambda pair: pair[0]):
            frame = block.frame = self.frames.setdefault(block.dtype, Frame(block.dtype))
            block.start = frame.width
            end = block.start + len(block.cells) * block.entries
            if any(key[0] == ROW for key in members[id(block)]):
                frame.fed = (frame.fed[0] if frame.fed[1] else block.start, end)
            frame.width += -(-len(block.cells) * block.entries // ALIGNED) * ALIGNED
            if kind in (GIVEN, BOTH):
                frame.given = frame.width
            if kind in (BOTH, STORED):
                frame.stored = (frame.stored[0] if frame.stored else block.start, frame.width)
        return window
