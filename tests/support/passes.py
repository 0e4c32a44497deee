"""The passes of the planner by name, each of which may be left out: the answers stay, the time or the memory grows.

`without` leaves passes out of all plans and kernels that are made and run while its context is open, in any thread. It
is for measurements (`python -m tests.benchmarks --without PASS`) and for tests; nothing else uses it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.execution.compiler import allocate, emit_numba, emit_numpy, numpy_plan, schedule, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.execution.compiler.ir import RecordedSteps

    Absent = tuple[Any, str, Any]


class Pass(NamedTuple):
    """What a pass does, and what stands in its place where it is left out: (owner, name, value) of each attribute."""

    does: str
    absent: tuple[Absent, ...]


def _unchanged(recording: RecordedSteps, *_: Any) -> RecordedSteps:
    return recording


def _none(*_: Any, **__: Any) -> None:
    return None


PASSES: dict[str, Pass] = {
    "ranges": Pass(
        "entries that no output reads are not computed",
        ((numpy_plan, "restricted", _unchanged),),
    ),
    "marks": Pass(
        "whether a mask has an entry is asked of truth values",
        ((schedule, "simplified", lambda ops, *_: list(ops)),),
    ),
    "blocks": Pass("large arrays are computed block by block in cache", ((schedule, "_labels", lambda ops: ({}, [])),)),
    "turning": Pass("blocks of short rows stand column by column", ((workspace, "turned", lambda loop: set()),)),
    "memory": Pass(
        "memory is used again", ((allocate.MemoryLayout, "leave", _none), (allocate, "_overwritten", _none))
    ),
    "overlaps": Pass(
        "parts of a gradient are added up where it stands, block by block", ((workspace, "_overlaps", lambda *_: []),)
    ),
    "powers": Pass("whole powers are those of positive numbers", ((emit_numpy, "_is_whole", lambda exponent: False),)),
    "native": Pass(
        "long lines and many iterations run as machine code",
        ((emit_numba, "is_there", lambda: False),),
    ),
}


def evaluated() -> None:
    """Leave everything in this process to the evaluator: there is no plan of any tape."""
    vars(numpy_plan).update(planned=_none, points_plan=_none)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """A context in which these passes are left out."""
    changed: list[Absent] = []
    try:
        for name in names:
            for owner, attribute, value in PASSES[name].absent:
                changed.append((owner, attribute, vars(owner)[attribute]))
                setattr(owner, attribute, value)
        yield
    finally:
        for owner, attribute, value in reversed(changed):
            setattr(owner, attribute, value)
