"""A plan and values go in, the memory that a run of it took comes out: what no rule knows beforehand is measured."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans import KEPT
from gradcli.execution.plans.values import CALL, Op

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.execution.plans import Plan


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
