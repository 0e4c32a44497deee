"""The groups of steps of a loop go in, in an order they can be taken in; recurrences that share rounds come out as one.

Where one recurrence reads another one turn by turn, as layers of a network do, it may be a turn behind: then the steps
of both are in one round and, where they are alike, in one call (L. Lamport, The parallel execution of DO loops, 1974).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.execution.plans.bodies import Body
from gradcli.execution.plans.linear import Linear
from gradcli.execution.plans.nests import OWN
from gradcli.execution.plans.packing import needs_first
from gradcli.execution.plans.values import ENTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.nests import Nest

FEWEST = 4  # steps of a recurrence that is worth it
MOST = 120  # steps of both
WORTH = 1 << 13  # steps of all turns from which it is worth to look
SHARE = 0.85  # of the calls, at most, that may be left


def woven(nest: Nest) -> list[list[int] | Body | Linear]:
    """The places of a loop in groups, those that others read first; recurrences as bodies."""
    groups = nest.components()
    home = {place: at for at, group in enumerate(groups) for place in group}
    needs = [
        {home[read.place] for place in group for read in nest.reads[place] if read.kind == OWN} for group in groups
    ]
    found: list[list[int] | Body | Linear] = list(groups)
    for at, group in enumerate(groups):
        if nest.sum(group) is None and (nest.recurs(group) or not nest.liftable(group[0])):
            found[at] = Linear.fitted(nest, group) or Body(nest, group, dict.fromkeys(group, 0))
    last = -1  # where the recurrence stands that the next one may join
    inside: set[int] = set()
    for at in range(len(groups)):
        if not _weavable(found[at]):
            continue
        joined = None
        if last >= 0:
            between = _behind(needs, inside, at) & _before(needs, at)
            joined = _joined(nest, found, last, between - inside - {at}, at)
        if joined is None:
            last, inside = at, {at}
        else:
            found[last] = found[at] = joined
            inside |= between | {at}
            for one in inside:
                found[one] = joined
    return _ordered(found, needs)


def _weavable(group: list[int] | Body | Linear) -> bool:
    """Whether a group is a recurrence of steps entry by entry."""
    if not isinstance(group, Body):
        return False
    return len(group.places) >= FEWEST and len(group.places) * group.count >= WORTH and _plain(group, group.places)


def _plain(body: Body, places: Sequence[int]) -> bool:
    return all(body.ops[place].kind == ENTRY and place not in body.turns for place in places)


def _before(needs: list[set[int]], at: int) -> set[int]:
    """The groups that a group needs."""
    found: set[int] = set()
    work = [at]
    while work:
        for one in needs[work.pop()]:
            if one not in found and one != at:
                found.add(one)
                work.append(one)
    return found


def _behind(needs: list[set[int]], inside: set[int], end: int) -> set[int]:
    """The groups up to one that need one of some groups."""
    found = set(inside)
    for at in range(min(inside), end + 1):
        if not found.isdisjoint(needs[at]):
            found.add(at)
    return found


def _joined(nest: Nest, found: list[list[int] | Body | Linear], last: int, between: set[int], at: int) -> Body | None:
    """Two recurrences and what is between them as one, where that takes fewer calls."""
    one, other = found[last], found[at]
    assert isinstance(one, Body)
    assert isinstance(other, Body)
    middle = [place for group in between for place in _places(found[group])]
    if not all(isinstance(found[group], list) for group in between):
        return None
    behind = 1 + max(one.delays.values()) if between or _reads(nest, other, one) else 0
    delays = dict(one.delays)
    delays.update(dict.fromkeys(middle, behind))
    delays.update({place: behind + delay for place, delay in other.delays.items()})
    places = sorted(delays)
    if len(places) > MOST or any(nest.body[place].kind != ENTRY for place in middle):
        return None
    body = Body(nest, places, delays)
    return body if body.packing.calls <= SHARE * (one.packing.calls + other.packing.calls) else None


def _places(group: list[int] | Body | Linear) -> list[int]:
    return group if isinstance(group, list) else group.places


def _reads(nest: Nest, other: Body, one: Body) -> bool:
    """Whether a recurrence reads another one."""
    return any(read.kind == OWN and read.place in one.ops for place in other.ops for read in nest.reads[place])


def _ordered(found: list[list[int] | Body | Linear], needs: list[set[int]]) -> list[list[int] | Body | Linear]:
    """Each group once, behind all that it needs."""
    members: dict[int, list[int]] = {}
    for at, group in enumerate(found):
        members.setdefault(id(group), []).append(at)
    first = [members[id(group)][0] for group in found]  # a group stands under the first of its numbers

    def read(at: int) -> list[int]:
        return [first[need] for one in members[id(found[at])] for need in needs[one] if first[need] != at]

    return [found[at] for at in needs_first(first, read)]
