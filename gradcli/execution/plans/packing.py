"""The steps of a turn go in, groups of them that one call can take come out, with the cells that stand side by side.

Two steps are one call where they are the same function, neither needs the other, and what they read and write can lie
side by side: a call on a few entries takes as long as one on some more. Nothing about the functions is known here.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradcli.execution.plans.neighbours import Neighbours
from gradcli.execution.plans.values import ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.execution.plans.bodies import Body

Item = TypeVar("Item")
OWN, ROW, ALL, NUMBER = "own", "row", "all", "number"
MOST = 160  # steps of a turn that are looked at: every pair of them may be tried
WIDEST = 1 << 10  # entries of one call
WORTH = 1 << 9  # steps of all turns from which fewer calls are looked for
PER_TRY = 1 << 10  # steps of all turns for which one more order is tried
TRIES = 40  # orders at random, at most
WIDE = 10  # of them that have nothing to do with each other
NOISE = 8.0  # by how much the score of a pair is changed in them
SOME = 0.15  # of the pairs whose score is changed when an order is changed
COMMUTATIVE = (np.add, np.multiply)


class Pack:
    """Places whose steps are one call; `refs` has for each operand what each place reads."""

    __slots__ = ("keys", "places", "refs")

    def __init__(self, places: list[int], refs: list[list[Any]], keys: list[Any]) -> None:
        self.places = places
        self.refs = refs
        self.keys = keys  # for each operand: a list of (key, distance), or a number


class Packing:
    """The groups of a turn."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.blocks = Neighbours()
        self.of: dict[int, Pack] = {}
        self.copies = 0
        refs_of = body.refs
        self.needs = {
            place: {ref[1] for ref in refs_of[place] if ref[0] == OWN and ref[2] == 0} for place in body.places
        }
        self.readers: dict[int, set[int]] = {}
        for place in body.places:
            for ref in refs_of[place]:
                if ref[0] == OWN:
                    self.readers.setdefault(ref[1], set()).add(place)
        self.alike: dict[int, int] = {}
        self._start(refs_of)
        steps = len(body.places) * body.rounds
        pairs = self._pairs() if 1 < len(body.places) <= MOST and steps >= WORTH else []
        self.calls = len(body.places) + 1
        best = self.of, self.blocks
        random = Random(len(pairs))  # the same plan each time
        scores = usual = [float(score) for score, _, _ in pairs]
        for attempt in range(2 + min(TRIES, steps // PER_TRY) if pairs else 1):
            if attempt == 0:
                tried = usual
            elif attempt < WIDE:
                tried = [score + random.uniform(-NOISE, NOISE) for score in usual]
            else:  # what is united first decides what can be united later: change the best order in a few places
                tried = [score + random.uniform(-NOISE, NOISE) * (random.random() < SOME) for score in scores]
            calls = self._packed([pair for _, (_, *pair) in sorted(zip(tried, pairs, strict=True))])
            if calls <= self.calls:
                self.calls, scores, best = calls, tried, (self.of, self.blocks)
        self.of, self.blocks = best
        self.packs = self._ordered()

    def _packed(self, pairs: Sequence[Sequence[int]]) -> int:
        """Unite pairs in order, and after each of them those beside it; how many calls are left."""
        self._start(self.body.refs)
        for one, other in pairs:
            work = [(one, other)]
            while work:
                pair = work.pop()
                if self._unite(*pair):
                    work += self._beside(*pair)
        return len({id(pack) for pack in self.of.values()}) - len(self.body.shown)

    def _start(self, refs_of: dict[int, list[Any]]) -> None:
        """One call for each place."""
        body = self.body
        self.blocks, self.of, self.copies = Neighbours(), {}, 0
        for place in body.places:
            if place not in body.shown:
                self.blocks.add((OWN, place))
            refs = refs_of[place]
            keys = [ref[1] if ref[0] == NUMBER else [(ref[:2], ref[2])] for ref in refs]
            for ref in refs:
                if ref[0] in (ROW, ALL):
                    self.blocks.add(ref[:2])
            self.of[place] = Pack([place], [[ref] for ref in refs], keys)

    def form(self, ref: Any) -> Any:
        """The shape and the type of an operand in one turn."""
        if ref[0] == OWN:
            return self.body.shapes[ref[1]], self.body.ops[ref[1]].out.dtype
        return self.body.forms[ref[:2]]

    def _pairs(self) -> list[tuple[int, int, int]]:
        """Places that could be one call, the likely ones first."""
        body = self.body
        alike: dict[Any, list[int]] = {}
        for place in body.places:
            op, pack = body.ops[place], self.of[place]
            if op.kind != ENTRY or place in body.turns:
                continue
            shape = body.shapes[place]
            if not shape or 2 * op.out.size > WIDEST:
                continue
            refs = [ref for (ref,) in pack.refs]
            if any(ref[0] == OWN and ref[1] in body.shown for ref in refs):
                continue
            if any(ref[0] != NUMBER and self.form(ref)[0] != shape for ref in refs):
                continue
            types = tuple([ref[1].dtype if ref[0] == NUMBER else self.form(ref)[1] for ref in refs])
            alike.setdefault((op.function, shape, types), []).append(place)
        deep = self._depths(self.needs)
        behind: dict[int, set[int]] = {place: set() for place in body.places}
        for place, needs in self.needs.items():
            for one in needs:
                behind[one].add(place)
        high = self._depths(behind)
        self.alike = {place: at for at, places in enumerate(alike.values(), 1) for place in places}
        scored = []
        for places in alike.values():
            for at, one in enumerate(places):
                for other in places[at + 1 :]:
                    score = 2 * bool(self.readers.get(one, set()) & self.readers.get(other, set()))
                    for (mine,), (yours,) in zip(self.of[one].refs, self.of[other].refs, strict=True):
                        score += (mine[0] == yours[0]) + (mine == yours)
                    score += (deep[one] == deep[other]) + (high[one] == high[other])
                    scored.append((-score, one, other))
        return sorted(scored)

    def _depths(self, needs: dict[int, set[int]]) -> dict[int, int]:
        """The longest way to a place along what it needs."""
        found: dict[int, int] = {}
        for place in needs_first(self.body.places, needs.__getitem__):
            found[place] = 1 + max([found[one] for one in needs[place]], default=0)
        return found

    def _beside(self, one: int, other: int) -> list[tuple[int, int]]:
        """Pairs that could be one call as well: what two places read, and what reads them, in the same way."""
        pairs = zip(self.body.refs[one], self.body.refs[other], strict=True)
        found = [(mine[1], yours[1]) for mine, yours in pairs if mine[0] == yours[0] == OWN]
        for reader in sorted(self.readers.get(one, ())):
            for twin in sorted(self.readers.get(other, ())):
                if reader != twin:
                    found.append((reader, twin))
        return [pair for pair in found if pair[0] != pair[1] and self.alike.get(pair[0], 0) == self.alike.get(pair[1])]

    def _unite(self, one: int, other: int) -> bool:
        """Make one call of two, if that is possible."""
        left, right = self.of[one], self.of[other]
        if left is right or not self._apart(left, right):
            return False
        size = self.body.ops[one].out.size
        if (len(left.places) + len(right.places)) * size > WIDEST:
            return False
        turned = self.body.ops[one].function in COMMUTATIVE
        for swapped in (False, True) if turned else (False,):
            for first, second in ((left, right), (right, left)):
                if not self._fits(first, second, swapped):
                    continue
                blocks = self.blocks.copy()
                refs = list(reversed(second.refs)) if swapped else second.refs
                merged = self._merged(first, second.places, refs, blocks)
                if merged is not None:
                    self.blocks = blocks
                    for place in merged.places:
                        self.of[place] = merged
                    return True
        return False

    def _fits(self, first: Pack, second: Pack, swapped: bool) -> bool:
        """Whether the last cells of a call and the first ones of another can stand side by side: a quick look."""
        if not self.blocks.may((OWN, first.places[-1]), (OWN, second.places[0])):
            return False
        refs = reversed(second.refs) if swapped else second.refs
        for mine, yours in zip(first.refs, refs, strict=True):
            one, other = mine[-1], yours[0]
            if (one[0] == NUMBER) != (other[0] == NUMBER):
                return False
            if one[0] == other[0] == OWN and not self.blocks.may(one[:2], other[:2]):
                return False
        return True

    def _merged(self, first: Pack, places: list[int], refs: list[list[Any]], blocks: Neighbours) -> Pack | None:
        every = [*first.places, *places]
        joined, keys = [], []
        if not blocks.beside([((OWN, place), 0) for place in every]):
            return None
        theirs = self.of[places[0]].keys
        theirs = theirs if refs is self.of[places[0]].refs else theirs[::-1]
        for mine, yours, known, others in zip(first.refs, refs, first.keys, theirs, strict=True):
            column = [*mine, *yours]
            joined.append(column)
            key = self._column(column, [*self._known(mine, known), *self._known(yours, others)], blocks)
            if key is None:
                return None
            keys.append(key)
        return Pack(every, joined, keys)

    def _known(self, column: list[Any], keys: Any) -> list[Any]:
        """The keys that stand for each part of an operand already, if they stand for nothing else."""
        return keys if len(column) > 1 and isinstance(keys, list) and len(keys) == len(column) else [None] * len(column)

    def _column(self, column: list[Any], known: list[Any], blocks: Neighbours) -> Any:
        """The keys of an operand, side by side; None where they cannot be."""
        kinds = {ref[0] for ref in column}
        if NUMBER in kinds:
            numbers = {(ref[1].number.tobytes(), ref[1].dtype) for ref in column if ref[0] == NUMBER}
            return column[0][1] if kinds == {NUMBER} and len(numbers) == 1 else None
        own = [ref[1] for ref in column if ref[0] == OWN]
        if len(set(own)) < len(own):
            return None
        sequence = []
        for ref, before in zip(column, known, strict=True):
            key = before[0] if before is not None else ref[:2]
            if ref[0] != OWN and before is None:
                self.copies += 1
                key = (*key, self.copies)
                blocks.add(key)
            sequence.append((key, ref[2]))
        return sequence if blocks.beside(sequence) else None

    def _apart(self, left: Pack, right: Pack) -> bool:
        """Whether neither of two calls needs the other."""
        for start, end in ((left, right), (right, left)):
            seen: set[int] = set()
            work = [start]
            while work:
                pack = work.pop()
                for place in pack.places:
                    for need in self.needs[place]:
                        before = self.of[need]
                        if before is end:
                            return False
                        if id(before) not in seen:
                            seen.add(id(before))
                            work.append(before)
        return True

    def _ordered(self) -> list[Pack]:
        """The calls, what each needs before it."""
        return needs_first([self.of[place] for place in self.body.places], self._read)

    def _read(self, pack: Pack) -> list[Pack]:
        return [self.of[need] for need in sorted({need for place in pack.places for need in self.needs[place]})]


def needs_first(items: Iterable[Item], needs: Callable[[Item], Iterable[Item]]) -> list[Item]:
    """Each item once, behind all that it needs.

    >>> needs_first("cab", {"a": "b", "b": "", "c": "a"}.get)
    ['b', 'a', 'c']
    """
    found: dict[Item, None] = {}
    for item in items:
        work = [item]
        while work:
            one = work[-1]
            missing = [] if one in found else [need for need in needs(one) if need not in found]
            if missing:
                work += missing
            else:
                work.pop()
                found[one] = None
    return list(found)
