"""A plan or a tape goes in, the memory that a run takes comes out: counted, or measured where no rule knows it."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans import KEPT
from gradcli.execution.plans.values import CALL, CHOICE, REDUCE, Op
from gradcli.graph.types import size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans import Plan
    from gradcli.execution.plans.schedule import Loop


def beside(plan: Plan, values: Mapping[str, Any]) -> int:
    """The memory that a run took beside its results; 0 for a plan whose steps make no arrays for themselves.

    Nobody knows beforehand what a routine of a library or a scan along an axis needs.
    """
    if not any(isinstance(event, Op) and event.kind == CALL for event in plan.schedule.events):
        return 0
    kept = plan.room() <= KEPT  # memory that was there before the run
    usual = tracemalloc.is_tracing()
    if not usual:
        tracemalloc.start(1)
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found = plan.answer(values)
        most = tracemalloc.get_traced_memory()[1] - before
    finally:
        if not usual:
            tracemalloc.stop()
    results = sum([np.asarray(one).nbytes for one in found or ()])
    return max(0, most - results + (plan.room() if kept else 0))


def constant_bytes(plan: Plan) -> int:
    """The memory of the arrays that do not depend on any input."""
    owners = {}
    for array in plan.constants.values():
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners[id(array)] = array.nbytes
    return sum(owners.values())


def passing_bytes(events: Sequence[Op | Loop]) -> int:
    """The largest arrays that a step makes for itself while it is taken; a library's routine has a copy beside."""
    alone = [op for op in events if isinstance(op, Op)]
    own = [op.out.nbytes * (2 if op.kind == CALL else 1) for op in alone if op.kind in (CALL, CHOICE, REDUCE)]
    return max(own, default=0)


def size_in_bytes(nodes: Sequence[Any], dtype: str) -> int:
    """The memory of arrays of these types."""
    width = np.dtype(dtype).itemsize
    return sum([size_of(node.type.shape) * width for node in nodes])


def alive(tape: Tape, dtype: str) -> int:
    """The most bytes that results of the evaluator take at once, views counted as arrays."""
    width = np.dtype(dtype).itemsize
    last = {arg: place for place, node in enumerate(tape.nodes) for arg in node.args}
    kept = {*tape.outputs, *[node for node, _ in tape.inputs]}
    alive = most = 0
    for place, node in enumerate(tape.nodes):
        alive += node.type.size * width if node.args else 0
        most = max(most, alive)
        for arg in set(node.args):
            if last[arg] == place and arg not in kept and arg.args:
                alive -= arg.type.size * width
    return most
