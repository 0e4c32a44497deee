"""Readers of loops: the carry after the last iteration, and a value of every one. `gradcli.graph.loop` defines loops.

The values here are those of the definition, iteration by iteration and in memory of one iteration; `gradcli.execution`
evaluates all readers of a loop together.
"""

from __future__ import annotations

from collections import deque

from gradcli.graph.arrays import nearest_float
from gradcli.graph.loop import (
    Body,
    order_of_iterations,
    type_of_iterations,
    type_of_last,
    written_out_iterations,
    written_out_last,
)
from gradcli.graph.node import CONSTANT, LEAF
from gradcli.graph.primitive import Primitive, composite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def iterations_of(
    xp: Any, args: Sequence[Any], ranks: Sequence[int], body: Body, count: int, reverse: bool
) -> Iterator[list[Any]]:
    """The values of all steps of the body, iteration by iteration as they run; the same list each time."""
    states, stacks = len(body.carried), len(body.rows)
    values: list[Any] = [None] * len(body.steps)
    work: list[Any] = []
    for at, step in enumerate(body.steps):
        if step.primitive is CONSTANT:
            number = nearest_float(step.params["value"])
            values[at] = number if xp.name == "math" else xp.spread(xp.array(number, step.type.kind), step.shape)
        elif step.primitive is not LEAF:
            operands = tuple([body.positions[arg] for arg in step.args])
            core = tuple([len(arg.shape) for arg in step.args])
            params = step.params if step.primitive.pointwise else {**step.params, "ranks": core}
            work.append((step.primitive.impl, at, operands, params, step.primitive.aligned and xp.name != "math"))
    values[: len(args)] = args
    nexts = [body.positions[node] for node in body.nexts]
    at_index = None if body.index is None else body.positions[body.index]
    state = list(args[:states])
    for iteration in order_of_iterations(count, reverse):
        values[:states] = state
        for place in range(states, states + stacks):
            values[place] = args[place][(..., iteration, *(slice(None),) * (ranks[place] - 1))]
        if at_index is not None:
            values[at_index] = float(iteration) if xp.name == "math" else xp.array(float(iteration))
        for impl, at, operands, params, aligned in work:
            xs: Any = [values[place] for place in operands]
            if aligned:
                xs = xp.aligned(xs, params["ranks"])
            values[at] = impl(xp, *xs, **params)
        state = [values[place] for place in nexts]
        yield values


def _last(xp: Any, *args: Any, ranks: Sequence[int], body: Body, count: int, reverse: bool, carry: int) -> Any:
    values = deque(iterations_of(xp, args, ranks, body, count, reverse), maxlen=1)[0]
    return values[body.positions[body.nexts[carry]]]


def _iterations(xp: Any, *args: Any, ranks: Sequence[int], body: Body, count: int, reverse: bool, at: int) -> Any:
    stack = [values[at] for values in iterations_of(xp, args, ranks, body, count, reverse)]
    if reverse:
        stack.reverse()
    return xp.stack(xp.broadcast_arrays(*stack), axis=-len(body.steps[at].shape) - 1)


last: Primitive = composite(
    "last",
    "A carry of a loop after its last iteration.",
    definition=written_out_last,
    impl=_last,
    type_rule=type_of_last,
    internal=True,
    formula="the state after the last iteration",
    node="LoopBackward0",
)

iterations: Primitive = composite(
    "iterations",
    "A value of every iteration of a loop, stacked along a new first axis.",
    definition=written_out_iterations,
    impl=_iterations,
    type_rule=type_of_iterations,
    internal=True,
    formula="the values of all iterations",
    node="LoopBackward0",
)
