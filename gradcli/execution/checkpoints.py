"""Checkpointing: recomputes parts of a long chain, so that a reverse sweep needs less memory.

A reverse sweep reads the results of the forward sweep in the opposite order, so a loop of n steps holds n
states. Here the steps up to the peak are cut into about sqrt(n) pieces. Of a piece only what later pieces read stays;
the rest is recomputed from there when the reverse sweep reaches it. The same operations see the same operands: the
results are the same bit for bit, and no step runs more than twice. (Chen et al., Training deep nets with sublinear
memory cost, section 4.)
"""

from __future__ import annotations

from math import isqrt

from gradcli.graph.node import is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.graph.node import Node

    Work = list[tuple[int, list[int]]]  # the slot that is computed, and those that nothing reads from then on

VIEWS = ("reshape", "broadcast", "permute", "slice")  # results that show the memory of their operand
ENTRY = 8  # bytes
LIVE = 1 << 28  # bytes of values alive at once, up to which nothing is computed twice
GAIN = 2  # by which the peak has to fall
MOST_PIECES = 1 << 12


class Chain:
    """Nodes in topological order as slots: what each reads, and the bytes that it takes."""

    __slots__ = ("args", "nbytes", "outputs", "readers", "steps")

    def __init__(self, nodes: Sequence[Node], outputs: Iterable[Node]) -> None:
        slots = {node: slot for slot, node in enumerate(nodes)}
        self.args = [tuple([slots[arg] for arg in node.args]) for node in nodes]
        self.nbytes = [ENTRY * node.type.size if node.args else 0 for node in nodes]
        for slot, node in enumerate(nodes):
            if node.primitive.name in VIEWS:
                self.nbytes[slot] = -1
        self.steps = [slot for slot, args in enumerate(self.args) if args]
        self.outputs = {slots[output] for output in outputs}
        self.readers = [slot for slot, node in enumerate(nodes) if is_reader(node)]  # a loop runs once for all of them

    def work(self, steps: Iterable[int]) -> Work:
        """These steps, without those that nothing reads, each with the slots that die with it."""
        live = set(self.outputs)
        found: Work = []
        for slot in reversed(list(steps)):
            if slot not in live:
                continue
            live.discard(slot)
            dead = [arg for arg in set(self.args[slot]) if arg not in live]
            live.update(dead)
            found.append((slot, dead))
        found.reverse()
        return found

    def peak(self, work: Work) -> tuple[int, int]:
        """The most bytes that are alive at once, and after how many steps."""
        memory: dict[int, int] = {}  # the piece of memory that a slot shows
        readers: list[int] = []
        sizes: list[int] = []
        live = most = place = 0
        for at, (slot, dead) in enumerate(work):
            below = memory.get(self.args[slot][0]) if self.nbytes[slot] < 0 else None
            if below is None:
                below = len(sizes)
                sizes.append(max(self.nbytes[slot], 0))
                readers.append(0)
                live += sizes[below]
            memory[slot] = below
            readers[below] += 1
            if live > most:
                most, place = live, at
            for one in dead:
                held = memory.pop(one, None)
                if held is not None:
                    readers[held] -= 1
                    if not readers[held]:
                        live -= sizes[held]
        return most, place


def checkpointed(nodes: Sequence[Node], outputs: Sequence[Node]) -> Work | None:
    """Steps whose peak is at most half; None where the peak is low as it is, or does not fall.

    >>> from gradcli.graph.builder import Builder
    >>> from gradcli.primitives import catalogue
    >>> x = Builder(catalogue()).leaf("x", (8,))
    >>> checkpointed([x], [x]) is None
    True
    """
    if ENTRY * sum([node.type.size for node in nodes]) <= LIVE:
        return None
    chain = Chain(nodes, outputs)
    plain = chain.work(chain.steps)
    most, place = chain.peak(plain)
    if most <= LIVE:
        return None
    turn = plain[place][0]
    forward = [slot for slot, _ in plain[: place + 1]]
    back = [slot for slot, _ in plain[place + 1 :]]
    best: Work | None = None
    bound = most // GAIN
    pieces = _pieces(chain, forward, back, turn)
    for count in (pieces, 2 * pieces):
        work = chain.work(_twice(chain, forward, back, count))
        peak, _ = chain.peak(work)
        if peak <= bound:
            best, bound = work, peak - 1
    return best


def _read_later(chain: Chain, back: Sequence[int]) -> set[int]:
    """The slots that the way back reads."""
    return {arg for slot in back for arg in chain.args[slot]}


def _pieces(chain: Chain, forward: Sequence[int], back: Sequence[int], turn: int) -> int:
    """How many pieces balance what stays of all of them with the memory of one."""
    later = _read_later(chain, back)
    saved = sum([max(chain.nbytes[slot], 0) for slot in forward if slot in later])
    last: dict[int, int] = {}
    for slot in forward:
        for arg in chain.args[slot]:
            last[arg] = slot
    live = 0
    across: list[int] = []
    dying: dict[int, int] = {}
    for slot in forward:
        live -= dying.pop(slot, 0)
        if slot in last:
            size = max(chain.nbytes[slot], 0)
            live += size
            dying[last[slot]] = dying.get(last[slot], 0) + size
        across.append(live)
    usual = sorted(across)[len(across) // 2]
    return min(max(2, isqrt(saved // max(usual, 1))), MOST_PIECES)


def _twice(chain: Chain, forward: Sequence[int], back: Sequence[int], count: int) -> list[int]:
    """The steps forward, and those back with pieces of the way forward computed again where they are read first."""
    later = _read_later(chain, back)
    total = sum([max(chain.nbytes[slot], 0) for slot in forward if slot in later])
    piece_of: dict[int, int] = {}
    piece = gathered = 0
    for slot in forward:
        piece_of[slot] = piece
        if slot in later:
            gathered += max(chain.nbytes[slot], 0)
            if gathered * count > total * (piece + 1):
                piece += 1
    kept = {*chain.outputs, *chain.readers}
    for slot in forward:
        kept.update([arg for arg in chain.args[slot] if piece_of.get(arg, piece_of[slot]) != piece_of[slot]])
    members: dict[int, list[int]] = {}
    for slot in forward:
        if slot not in kept:
            members.setdefault(piece_of[slot], []).append(slot)
    steps = list(forward)
    there = {piece}  # the last one has not gone yet
    for slot in back:
        for arg in chain.args[slot]:
            piece = piece_of.get(arg, -1)
            if piece >= 0 and arg not in kept and piece not in there:
                there.add(piece)
                steps += members[piece]
        steps.append(slot)
    return steps
