"""Plans for a GPU (CuPy); programs without one are left to the evaluator.

Steps are those of `execution/plans/lower.py`. `fuse` puts operations entry by entry into one kernel, with the sums over
the same entries, `emit` and `kernels` write its text, `plan` runs it. Matrix products and factorisations are CuPy's
own. Nothing of this is imported unless the backend is `cupy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.execution.cuda.plan import DevicePlan, Refused
from gradcli.execution.namespaces import REFUSED

if TYPE_CHECKING:
    from collections.abc import Collection

    from gradcli.execution.evaluate import Tape

__all__ = ["DevicePlan", "device_plan"]

MOST_NODES = 100_000


def device_plan(tape: Tape, dtype: str = "float64", moving: Collection[str] | None = None) -> DevicePlan | None:
    """The plan of a tape for float64 or float32; None where the evaluator has to do it.

    `moving` names the inputs whose first axis counts points. Raises GradcliError GC713 where CuPy is missing.
    """
    if dtype not in ("float64", "float32") or len(tape.nodes) > MOST_NODES or tape.loops:
        return None
    try:
        return DevicePlan(tape, dtype, moving)
    except (*REFUSED, Refused):
        return None
