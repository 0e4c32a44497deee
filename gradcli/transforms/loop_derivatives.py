"""The derivative rules of loops: a sweep over a loop is a loop over sweeps of its body.

Reverse mode makes one loop that runs the other way. It carries the cotangents of the carries, adds up those of fixed
values, and reads what it needs of the forward iterations as rows. Masks leave the loop beside their cotangents, like
those of any other operation. That no cotangent arrives at a carry is not the same as a cotangent of 0, which an
infinite slope would iteration into NaN: a carry that cotangents reach in some iterations only has a mask, which starts
as false.

Forward mode makes one loop that carries tangents beside the carries. A carry that does not move has no tangent, which
is something else than 0 too: the first iterations are written out as long as other carries move in the next iteration.
"""

from __future__ import annotations

from gradcli.graph.loop import (
    Opened,
    close,
    iteration,
    joined,
    loop_of,
    order_of_iterations,
    repeated,
    row,
    some_rows,
)
from gradcli.graph.node import dependents
from gradcli.graph.types import Type
from gradcli.transforms.masks import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.loop import Body, Loop
    from gradcli.graph.node import Builder, Node
    from gradcli.transforms.masks import Cotangent

    Sweep = Callable[..., list[Cotangent | None]]
    Push = Callable[..., list[Node | None]]


WRITTEN_OUT = 20_000  # nodes up to which a loop whose moving carries change again and again is written out


def moving_inputs(body: Body, moving: Iterable[Node]) -> set[Node]:
    """The inputs of a body that depend on these inputs in some iteration, through differentiable operations."""
    inputs = set(moving)
    while True:
        reached = dependents(body.steps, inputs)
        more = {
            leaf
            for leaf, after in zip(body.carried, body.nexts, strict=True)
            if after in reached and leaf not in inputs and leaf.type.kind == "float"
        }
        if not more:
            return inputs
        inputs |= more


# --- reverse mode ----------------------------------------------------------------------------------------------------


def pulled(
    builder: Builder, passing: Mapping[Node, Cotangent], active: set[Node], sweep: Sweep
) -> list[tuple[Node, Cotangent]]:
    """What a loop sends to its active arguments, given the cotangents of its readers; `sweep` is reverse mode."""
    return _Backward(builder, passing, active, sweep).sent()


class _Backward:
    """The backward loop of a loop, in the making."""

    def __init__(self, builder: Builder, passing: Mapping[Node, Cotangent], active: set[Node], sweep: Sweep) -> None:
        self.builder = builder
        self.sweep = sweep
        self.loop: Loop = loop_of(next(iter(passing)))
        body = self.body = self.loop.body
        self.iteration = Opened(self.loop)
        args = dict(zip(body.inputs, self.loop.args, strict=True))
        wanted = {leaf for leaf, arg in args.items() if arg in active}
        moving = moving_inputs(body, wanted)
        self.carries = [k for k, leaf in enumerate(body.carried) if leaf in moving]
        self.leaves = [leaf for leaf in body.inputs if leaf in moving]
        self.targets = [self._opened(leaf) for leaf in self.leaves]
        self.wanted = wanted
        self.args = args
        self.ends: dict[int, Cotangent] = {}  # what has arrived at carries after the last iteration
        self.outer: list[tuple[Node, Cotangent]] = []  # what arrives at nodes of the iteration: fresh leaves
        self.rows: list[tuple[Node, Node]] = []
        for reader in sorted(passing, key=lambda reader: reader.serial):
            ct, mask = passing[reader]
            if "carry" in reader.params:
                self.ends[reader.params["carry"]] = (ct, mask)
            else:
                row = self._row(ct), None if mask is None else self._row(mask)
                self.outer.append((self.iteration.nodes[reader.params["at"]], row))
        self.ends = {k: flow for k, flow in sorted(self.ends.items()) if k in self.carries}
        self.cotangents = {k: builder.fresh_leaf(body.carried[k].type) for k in self.carries}
        self.masks = {k: builder.fresh_leaf(Type("bool", body.carried[k].shape)) for k in self.carries}

    def _opened(self, step: Node) -> Node:
        return self.iteration.nodes[self.body.positions[step]]

    def _row(self, stack: Node) -> Node:
        """The leaf of a row for a stacked array."""
        leaf = self.builder.fresh_leaf(Type(stack.type.kind, stack.shape[1:]))
        self.rows.append((leaf, stack))
        return leaf

    def _swept(
        self, present: Iterable[int], masked: Iterable[int], seen: dict[Node, Cotangent] | None = None
    ) -> dict[Node, Cotangent]:
        """What arrives at the inputs of the body in an iteration, given what its carries have at its end."""
        ends = [
            (self.iteration.nexts[k], (self.cotangents[k], self.masks[k] if k in masked else None))
            for k in sorted(present)
        ]
        observer = None if seen is None else lambda node, flow, sent: seen.setdefault(node, flow)
        stops = (
            *self.iteration.carried,
            *self.iteration.rows,
            *self.loop.args[len(self.body.carried) + len(self.body.rows) :],
        )
        arrived = self.sweep(self.builder, [*ends, *self.outer], self.targets, observer=observer, stops=stops)
        return {leaf: flow for leaf, flow in zip(self.leaves, arrived, strict=True) if flow is not None}

    def _presence(self) -> tuple[list[frozenset[int]], frozenset[int]]:
        """The sets of carries that have cotangents at the ends of iterations, each once, and that before the first.

        A set and the outer cotangents decide which set comes before it, so that sets repeat from some iteration on.
        """
        sets: list[frozenset[int]] = []
        present = frozenset(self.ends)
        while present not in sets:
            sets.append(present)
            if len(sets) > self.loop.count:
                return sets[:-1], present
            arrived = self._swept(present, ())
            present = frozenset([k for k in self.carries if self.body.carried[k] in arrived])
        again = sets.index(present)
        return sets, sets[again + (self.loop.count - again) % (len(sets) - again)]

    def sent(self) -> list[tuple[Node, Cotangent]]:
        body = self.body
        sets, first = self._presence()
        present = first.union(*sets)
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
        if still:  # the cotangent of a sum over iterations is the same in all of them
            self.cotangents |= {k: self.ends[k][0] for k in still}
            arrived = self._swept(present, masked)
        return self._closed(arrived, sorted(present), masked, still, first)

    def _reached(self, k: int, sets: Sequence[frozenset[int]], masked: Iterable[int]) -> bool:
        """Whether others bring an unmasked cotangent to a carry after the iteration where it has none: add 0."""
        for known in sets:
            seen: dict[Node, Cotangent] = {}
            self._swept(known, masked, seen)
            if seen.get(self.iteration.nexts[k], (None, self.masks[k]))[1] is not None:
                return False
        return True

    def _closed(
        self,
        arrived: dict[Node, Cotangent],
        present: Sequence[int],
        masked: set[int],
        still: set[int],
        first: frozenset[int],
    ) -> list[tuple[Node, Cotangent]]:
        """Close the loop over the cotangents that arrive in an iteration, and read what it sends."""
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
        sent: list[tuple[Node, Cotangent]] = []
        for leaf in self.leaves:
            if leaf not in arrived or leaf not in self.wanted:
                continue
            ct, mask = arrived[leaf]
            if leaf in body.rows:
                flow = back.iterations(ct), None if mask is None else back.iterations(mask)
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
        """The rows that these nodes read, and the index if they do: the forward iterations are not repeated.

        Nodes that depend on fixed values and the index only are computed again.
        """
        body, iteration = self.body, self.iteration
        computed = {*body.carried, *body.rows}
        for step in body.steps:
            if not computed.isdisjoint(step.args):
                computed.add(step)
        stacked = {iteration.nodes[body.positions[step]]: body.positions[step] for step in computed}
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
        read_rows = [(leaf, stack) for leaf, stack in rows.items() if leaf in seen]
        read_rows += [(read[at], self.loop.stacked(at)) for at in sorted(read)]
        return read_rows, iteration.index if iteration.index in seen else None


# --- forward mode ----------------------------------------------------------------------------------------------------


def pushed(builder: Builder, readers: Sequence[Node], known: Mapping[Node, Node], push: Push) -> dict[Node, Node]:
    """The tangents of readers of one loop that move, given those of its arguments; `push` is forward mode."""
    return _Forward(builder, loop_of(readers[0]), known, push).tangents(readers)


class _Forward:
    """The tangents of a loop, in the making: some iterations written out, then a loop."""

    def __init__(self, builder: Builder, loop: Loop, known: Mapping[Node, Node], push: Push) -> None:
        self.builder, self.loop, self.known, self.push = builder, loop, known, push
        body = self.body = loop.body
        states, stacks = len(body.carried), len(body.rows)
        self.inits, self.stacks = loop.args[:states], loop.args[states : states + stacks]
        self.fixed = loop.args[states + stacks :]
        self.open(0)

    def open(self, first: int) -> None:
        """One iteration of the loop on fresh leaves, without the iterations before `first`."""
        self.iteration = Opened(self.loop, first)
        self.moved_rows = {
            leaf: self.builder.fresh_leaf(leaf.type)
            for leaf, stack in zip(self.iteration.rows, self.stacks, strict=True)
            if stack in self.known
        }
        self.leaves = [self.builder.fresh_leaf(leaf.type) for leaf in self.iteration.carried]

    def _moved(
        self, wanted: Sequence[Node], state: Sequence[Node], moved: Mapping[Node, Node], rows: Mapping[Node, Node]
    ) -> list[Node | None]:
        """The tangents of nodes of an iteration, given those of its carries and rows."""
        fixed = {value: self.known[value] for value in self.fixed if value in self.known}
        return self.push(self.builder, wanted, {**fixed, **rows, **moved}, stops=(*state, *rows, *self.fixed))

    def _next_tangents(self, moving: Iterable[int]) -> dict[int, Node]:
        """The tangents of the carries after an iteration, where these carries move before it."""
        moved = {self.iteration.carried[k]: self.leaves[k] for k in moving}
        tangents = self._moved(
            self.iteration.nexts, (*self.iteration.carried, *self.iteration.rows), moved, self.moved_rows
        )
        return {k: tangent for k, tangent in enumerate(tangents) if tangent is not None}

    def _settled(self) -> tuple[int, set[int]]:
        """How many iterations there are before the moving carries stay the same ones, and these carries.

        Where carries move in some iterations again and again, all iterations are written out; in a long loop such
        carries move in all iterations, by 0 in those where they do not, which gives NaN where such a 0 is multiplied by
        an infinite slope.
        """
        sets = [{k for k, init in enumerate(self.inits) if init in self.known}]
        while len(sets) <= self.loop.count:
            after = set(self._next_tangents(sets[-1]))
            if after == sets[-1]:
                break
            if after in sets:
                if self.loop.count * len(self.body.steps) <= WRITTEN_OUT:
                    return self.loop.count, after
                return sets.index(after), set().union(*sets[sets.index(after) :])
            sets.append(after)
        return len(sets) - 1, sets[-1]

    def tangents(self, readers: Sequence[Node]) -> dict[Node, Node]:
        """The tangents of the readers that move."""
        body, builder, count = self.body, self.builder, self.loop.count
        places = [node.params["at"] for node in readers if "at" in node.params]
        early, moving = self._settled()
        early = min(early, count)
        state: Sequence[Node] = self.inits
        moved = {k: self.known[init] for k, init in enumerate(state) if init in self.known}
        before: dict[int, list[Node | None]] = {}  # by iteration, the tangents of the nodes that are read
        for number in order_of_iterations(count, self.loop.reverse)[:early]:
            rows = [row(builder, stack, number) for stack in self.stacks]
            moved_rows = {
                part: row(builder, self.known[stack], number)
                for part, stack in zip(rows, self.stacks, strict=True)
                if stack in self.known
            }
            index = None if body.index is None else builder.constant(number)
            nodes = iteration(builder, body, state, rows, self.fixed, index)
            after = [nodes[body.positions[node]] for node in body.nexts]
            wanted = [*after, *(nodes[at] for at in places)]
            pushed = self._moved(wanted, (*state, *rows), {state[k]: t for k, t in moved.items()}, moved_rows)
            state, moved = after, {k: t for k, t in enumerate(pushed[: len(after)]) if t is not None}
            before[number] = pushed[len(after) :]
        if early == count:
            ends: dict[int, Node] = moved
            stacked: list[Node | None] = [None] * len(places)
        else:
            ends, stacked = self._closed(early, state, moved, moving | set(moved), places)
        tangents: dict[Node, Node] = {}
        for node in readers:
            tangent = (
                ends.get(node.params["carry"])
                if "carry" in node.params
                else self._joined(
                    node,
                    stacked[places.index(node.params["at"])],
                    {number: row[places.index(node.params["at"])] for number, row in sorted(before.items())},
                )
            )
            if tangent is not None:
                tangents[node] = tangent
        return tangents

    def _joined(self, node: Node, stacked: Node | None, before: Mapping[int, Node | None]) -> Node | None:
        """The tangent of a value of all iterations, of which some are written out."""
        builder, shape = self.builder, node.shape[1:]
        if stacked is None and all(tangent is None for tangent in before.values()):
            return None
        zero = builder.constant(0, shape)
        parts = [repeated(builder, zero if tangent is None else tangent, 1) for tangent in before.values()]
        rest = self.loop.count - len(before)
        if rest:
            inner = builder.constant(0, (rest, *shape)) if stacked is None else stacked
            parts = [inner, *parts] if self.loop.reverse else [*parts, inner]
        return joined(builder, parts)

    def _closed(
        self, early: int, state: Sequence[Node], moved: Mapping[int, Node], moving: set[int], places: Sequence[int]
    ) -> tuple[dict[int, Node], list[Node | None]]:
        """The loop over the other iterations: the tangents of its carries at the end, and of these nodes in each."""
        builder, loop = self.builder, self.loop
        if early and not loop.reverse:
            self.open(early)
        opened = self.iteration
        while True:
            nexts = self._next_tangents(moving)
            if moving >= nexts.keys():
                break
            moving |= nexts.keys()
        order = sorted(moving)
        after = [nexts.get(k) or builder.constant(0, loop.body.carried[k].shape) for k in order]
        tangents = {opened.carried[k]: self.leaves[k] for k in order}
        moved_values = self._moved(
            [opened.nodes[at] for at in places], (*opened.carried, *opened.rows), tangents, self.moved_rows
        )
        outputs = [value for value in moved_values if value is not None]
        seen = {*after, *outputs}
        pending = list(seen)
        by_leaf = dict(zip(opened.carried, opened.nexts, strict=True))
        for node in pending:  # the list grows while it is read
            for arg in (*node.args, *([by_leaf[node]] if node in by_leaf else [])):
                if arg not in seen:
                    seen.add(arg)
                    pending.append(arg)
        values = [k for k, leaf in enumerate(opened.carried) if leaf in seen]
        count = loop.count - early
        first = 0 if loop.reverse else early
        rows = [
            (leaf, some_rows(builder, stack, first, count))
            for leaf, stack in zip(opened.rows, self.stacks, strict=True)
            if leaf in seen
        ]
        rows += [
            (self.moved_rows[leaf], some_rows(builder, self.known[stack], first, count))
            for leaf, stack in zip(opened.rows, self.stacks, strict=True)
            if self.moved_rows.get(leaf) in seen
        ]
        forward = close(
            builder,
            count,
            [(opened.carried[k], state[k]) for k in values]
            + [(self.leaves[k], moved.get(k) or builder.constant(0, state[k].shape)) for k in order],
            [*(opened.nexts[k] for k in values), *after],
            rows=rows,
            index=opened.index if opened.index in seen else None,
            outputs=outputs,
            reverse=loop.reverse,
        )
        ends = {k: forward.last(len(values) + place) for place, k in enumerate(order)}
        return ends, [None if value is None else forward.iterations(value) for value in moved_values]
