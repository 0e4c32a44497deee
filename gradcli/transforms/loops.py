"""The derivative rules of loops: a sweep over a loop is a loop over sweeps of its body.

Reverse mode makes one loop that runs the other way. It carries the cotangents of the carries, adds up those of fixed
values, and reads what it needs of the forward turns as rows. Masks leave the loop beside their cotangents, like those
of any other operation. That no cotangent arrives at a carry is something else than a cotangent of 0, which could meet
an infinite slope: a carry that cotangents reach in some turns only has a mask, which starts as false.
"""

from __future__ import annotations

from gradcli.graph.loop import Opened, close, is_reader, loop_key, loop_of
from gradcli.graph.node import dependents
from gradcli.graph.types import Type
from gradcli.transforms.flows import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.builder import Builder
    from gradcli.graph.loop import Body, Loop
    from gradcli.graph.node import Node
    from gradcli.transforms.flows import Flow

    Sweep = Callable[..., list[Flow | None]]


class Group:
    """All readers of one loop in some order of nodes: `first` comes first, `flows` are the cotangents of the others."""

    __slots__ = ("first", "flows")

    def __init__(self, first: Node) -> None:
        self.first = first
        self.flows: dict[Node, Flow] = {}


def groups(order: Iterable[Node]) -> dict[Node, Group]:
    """The group of each reader of a loop."""
    by_loop: dict[Any, Group] = {}
    found = {}
    for node in order:
        if node.params and is_reader(node):
            found[node] = by_loop.setdefault(loop_key(node), Group(node))
    return found


def moving_inputs(body: Body, moving: Iterable[Node]) -> set[Node]:
    """The inputs of a body that depend on these inputs in some turn, through differentiable operations."""
    found = set(moving)
    while True:
        reached = dependents(body.steps, found)
        more = {
            leaf
            for leaf, after in zip(body.carried, body.nexts, strict=True)
            if after in reached and leaf not in found and leaf.type.kind == "float"
        }
        if not more:
            return found
        found |= more


# --- reverse mode ----------------------------------------------------------------------------------------------------


def pulled(builder: Builder, flows: Mapping[Node, Flow], active: set[Node], sweep: Sweep) -> list[tuple[Node, Flow]]:
    """What a loop sends to its active arguments, given the cotangents of its readers; `sweep` is reverse mode."""
    return _Backward(builder, flows, active, sweep).sent()


class _Backward:
    """The backward loop of a loop, in the making."""

    def __init__(self, builder: Builder, flows: Mapping[Node, Flow], active: set[Node], sweep: Sweep) -> None:
        self.builder = builder
        self.sweep = sweep
        self.loop: Loop = loop_of(next(iter(flows)))
        body = self.body = self.loop.body
        self.turn = Opened(self.loop)
        args = dict(zip(body.inputs, self.loop.args, strict=True))
        wanted = {leaf for leaf, arg in args.items() if arg in active}
        moving = moving_inputs(body, wanted)
        self.carries = [k for k, leaf in enumerate(body.carried) if leaf in moving]
        self.leaves = [leaf for leaf in body.inputs if leaf in moving]
        self.targets = [self._opened(leaf) for leaf in self.leaves]
        self.wanted = wanted
        self.args = args
        self.ends: dict[int, Flow] = {}  # what has arrived at carries after the last turn
        self.outer: list[tuple[Node, Flow]] = []  # what arrives at nodes of the turn: fresh leaves
        self.rows: list[tuple[Node, Node]] = []
        for reader in sorted(flows, key=lambda reader: reader.serial):
            ct, mask = flows[reader]
            if "carry" in reader.params:
                self.ends[reader.params["carry"]] = (ct, mask)
            else:
                row = self._row(ct), None if mask is None else self._row(mask)
                self.outer.append((self.turn.nodes[reader.params["at"]], row))
        self.ends = {k: flow for k, flow in sorted(self.ends.items()) if k in self.carries}
        self.cotangents = {k: builder.fresh_leaf(body.carried[k].type) for k in self.carries}
        self.masks = {k: builder.fresh_leaf(Type("bool", body.carried[k].shape)) for k in self.carries}

    def _opened(self, step: Node) -> Node:
        return self.turn.nodes[self.body.positions[step]]

    def _row(self, stack: Node) -> Node:
        """The leaf of a row for a stacked array."""
        leaf = self.builder.fresh_leaf(Type(stack.type.kind, stack.shape[1:]))
        self.rows.append((leaf, stack))
        return leaf

    def _swept(
        self, present: Iterable[int], masked: Iterable[int], seen: dict[Node, Flow] | None = None
    ) -> dict[Node, Flow]:
        """What arrives at the inputs of the body in a turn at whose end these carries have cotangents and masks."""
        given = [
            (self.turn.nexts[k], (self.cotangents[k], self.masks[k] if k in masked else None)) for k in sorted(present)
        ]
        observer = None if seen is None else lambda node, flow, sent: seen.setdefault(node, flow)
        stops = (*self.turn.carried, *self.turn.rows, *self.loop.args[len(self.body.carried) + len(self.body.rows) :])
        found = self.sweep(self.builder, [*given, *self.outer], self.targets, observer=observer, stops=stops)
        return {leaf: flow for leaf, flow in zip(self.leaves, found, strict=True) if flow is not None}

    def _presence(self) -> tuple[list[frozenset[int]], frozenset[int]]:
        """The sets of carries that have cotangents at the ends of turns, each once, and the set before the first turn.

        A set and the outer cotangents decide which set comes before it, so that sets repeat from some turn on.
        """
        sets: list[frozenset[int]] = []
        here = frozenset(self.ends)
        while here not in sets:
            sets.append(here)
            if len(sets) > self.loop.count:
                return sets[:-1], here
            arrived = self._swept(here, ())
            here = frozenset([k for k in self.carries if self.body.carried[k] in arrived])
        again = sets.index(here)
        return sets, sets[again + (self.loop.count - again) % (len(sets) - again)]

    def sent(self) -> list[tuple[Node, Flow]]:
        body = self.body
        sets, first = self._presence()
        present = frozenset().union(*sets)
        late = {k: [known for known in sets if k not in known] for k in present}
        masked = {k for k, flow in self.ends.items() if flow[1] is not None}
        harmless = set()
        for k, lacking in late.items():
            if lacking and not self._reached(k, lacking, masked):
                masked.add(k)
            elif lacking:
                harmless.add(k)
        while True:
            arrived = self._swept(present, masked)
            more = {k for k in present - masked if arrived.get(body.carried[k], (None, None))[1] is not None}
            more |= {k for k in harmless - masked if not self._reached(k, late[k], masked | more)}
            if not more:
                break
            masked |= more
        still = {k for k in set(self.ends) - masked if arrived.get(body.carried[k], (None,))[0] is self.cotangents[k]}
        if still:  # the cotangent of a sum over turns is the same in all of them
            self.cotangents |= {k: self.ends[k][0] for k in still}
            arrived = self._swept(present, masked)
        return self._closed(arrived, sorted(present), masked, still, first)

    def _reached(self, k: int, sets: Sequence[frozenset[int]], masked: Iterable[int]) -> bool:
        """Whether others bring an unmasked cotangent to a carry after the turn where it has none of its own: add 0."""
        for known in sets:
            seen: dict[Node, Flow] = {}
            self._swept(known, masked, seen)
            if seen.get(self.turn.nexts[k], (None, self.masks[k]))[1] is not None:
                return False
        return True

    def _closed(
        self,
        arrived: dict[Node, Flow],
        present: Sequence[int],
        masked: set[int],
        still: set[int],
        first: frozenset[int],
    ) -> list[tuple[Node, Flow]]:
        """Close the loop over the cotangents that arrive in a turn, and read what it sends."""
        body, builder, loop = self.body, self.builder, self.loop
        carried: list[tuple[Node, Node]] = []
        nexts: list[Node] = []
        places: dict[Any, int] = {}

        def carry(key: Any, leaf: Node, init: Node, after: Node) -> None:
            places[key] = len(carried)
            carried.append((leaf, init))
            nexts.append(after)

        for k in present:
            shape = body.carried[k].shape
            no, yes = builder.constant(0, shape, "bool"), builder.constant(1, shape, "bool")
            nothing = builder.constant(0, shape)
            if k in still:
                continue
            init = self.ends.get(k, (nothing, no))
            after = arrived.get(body.carried[k], (nothing, no))
            carry(k, self.cotangents[k], init[0], after[0])
            if k in masked:
                mask_init, mask_after = [yes if mask is None else mask for _, mask in (init, after)]
                carry((k, "mask"), self.masks[k], mask_init, mask_after)
        outputs: list[Node] = []
        for leaf in self.leaves:
            if leaf in arrived and leaf in self.wanted and leaf not in body.carried:
                ct, mask = arrived[leaf]
                if leaf in body.rows:
                    outputs += [ct] if mask is None else [ct, mask]
                    continue
                total = builder.fresh_leaf(leaf.type)
                carry(leaf, total, builder.constant(0, leaf.shape), total + clean(builder, (ct, mask)))
                if mask is not None:
                    counts = builder.fresh_leaf(mask.type)
                    no = builder.constant(0, leaf.shape, "bool")
                    carry((leaf, "mask"), counts, no, builder.call("or", counts, mask))
        rows, index = self._read([*nexts, *outputs])
        back = close(
            builder,
            loop.count,
            carried,
            nexts,
            rows=rows,
            index=index,
            outputs=outputs,
            reverse=not loop.reverse,
        )
        sent: list[tuple[Node, Flow]] = []
        for leaf in self.leaves:
            if leaf not in arrived or leaf not in self.wanted:
                continue
            ct, mask = arrived[leaf]
            if leaf in body.rows:
                flow = back.turns(ct), None if mask is None else back.turns(mask)
            elif leaf in body.carried:
                k = body.carried.index(leaf)
                if k not in first:
                    continue
                if k in still:
                    flow = self.ends[k]
                else:
                    flow = back.last(places[k]), None if mask is None else back.last(places[k, "mask"])
            else:
                flow = back.last(places[leaf]), None if mask is None else back.last(places[leaf, "mask"])
            sent.append((self.args[leaf], flow))
        return sent

    def _read(self, roots: Sequence[Node]) -> tuple[list[tuple[Node, Node]], Node | None]:
        """The rows that these nodes read, and the index if they do: what the forward turns have computed is not again.

        Nodes that depend on fixed values and the index only are computed again.
        """
        body, turn = self.body, self.turn
        computed = {*body.carried, *body.rows}
        for step in body.steps:
            if not computed.isdisjoint(step.args):
                computed.add(step)
        stacked = {turn.nodes[body.positions[step]]: body.positions[step] for step in computed}
        rows = dict(self.rows)
        read: dict[int, Node] = {}
        seen = set(roots)
        pending = list(seen)
        for node in pending:  # the list grows while it is read
            if node in stacked:
                read[stacked[node]] = node
                continue
            for arg in node.args:
                if arg not in seen:
                    seen.add(arg)
                    pending.append(arg)
        found = [(leaf, stack) for leaf, stack in rows.items() if leaf in seen]
        found += [(read[at], self.loop.stacked(at)) for at in sorted(read)]
        return found, turn.index if turn.index in seen else None
