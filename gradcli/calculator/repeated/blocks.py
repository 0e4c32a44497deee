"""Evaluates a prepared program at many points: block by block in cache, on several threads.

Points are independent, so any block gives the same numbers as the whole. Blocks are short enough that all
intermediate values of one stay in cache, and long enough that the overhead of NumPy's calls is small. A program of
numbers is a plan, in which points are rows; any other is evaluated part by part.
"""

from __future__ import annotations

from _thread import RLock
from contextlib import nullcontext

from gradcli.base.diagnostics import pointing_into
from gradcli.execution.namespaces import namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.execution.evaluate import Tape
    from gradcli.graph.node import Node

ALONE, SHARED = 1 << 14, 1 << 15  # entries of the largest value in a block: on one thread, and on several
FEWEST = 4  # blocks on a thread of its own, below which starting it does not pay
MOST_KEPT = 8  # plans of a compiled script: each has memory for some blocks
_making = RLock()  # of plans: threads may call one compiled function
LIBRARY = {"bilinear", "structured"}  # kinds of operations that NumPy's library may compute, on threads of its own


class PointPlans:
    """The plans of a compiled script at many points, each made when it is first needed."""

    __slots__ = ("backend", "dtype", "kept")

    def __init__(self, backend: str, dtype: str) -> None:
        self.backend, self.dtype = backend, dtype
        self.kept: dict[Any, Any] = {}  # by question, moving inputs and number of points

    def at_all(
        self,
        question: PreparedScript,
        values: Mapping[str, Any],
        batched: Sequence[str],
        count: int,
        room: Sequence[Any] | None,
        shapes: Sequence[tuple[int, ...]],
    ) -> list[Any]:
        """The outputs at all points: by a plan, in blocks, on the device, or at once by the evaluator."""

        def run(part: Mapping[str, Any]) -> list[Any]:
            return question.run(part, self.backend, self.dtype)

        results: list[Any] | None = None
        if self.backend in ("auto", "numpy"):
            results = self.planned(question, values, batched, count, room)
            if results is None:
                results = in_blocks(run, question.tape, values, batched, count, shapes)
        elif self.backend == "cupy":
            results = question.run_on_device(values, self.dtype, batched, count)
        return run(values) if results is None else results

    def planned(
        self,
        question: PreparedScript,
        values: Mapping[str, Any],
        batched: Sequence[str],
        count: int,
        room: Sequence[Any] | None,
    ) -> list[Any] | None:
        """The outputs at all points, in the arrays of `room` where they fit; None where no plan does it.

        The number of points alone decides between them, never earlier calls: equal calls give the same bits.
        """
        moving = frozenset(batched)
        key = (question, moving, count)
        with _making:
            if key not in self.kept:
                from gradcli.execution.compiler.numpy_plan import points_plan

                if len(self.kept) >= MOST_KEPT:
                    del self.kept[next(iter(self.kept))]
                self.kept[key] = points_plan(question.tape, self.dtype, moving, count)
            plan = self.kept[key]
        if plan is None:
            return None
        with pointing_into(question.lowered.source):
            results: list[Any] = plan.at_points(question.tape.input_values(values), room)
        return results


def in_blocks(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    tape: Tape,
    values: Mapping[str, Any],
    batched: Sequence[str],
    count: int,
    shapes: Sequence[tuple[int, ...]],
) -> list[Any] | None:
    """The outputs at all points, each [count, *shape]; None where one block holds them all.

    `batched` names the values whose first axis counts points.
    """
    from gradcli.execution.compiler.thread_pool import one_thread, processors, setters, together

    largest = _largest(tape, batched)
    library = any(node.primitive.kind in LIBRARY for node in tape.nodes)
    threads = 1 if library and setters() is None else processors()
    if count * largest <= FEWEST * SHARED * threads:
        threads = 1
    rows = max(1, (SHARED if threads > 1 else ALONE) // max(largest, 1))
    if count <= 2 * rows:
        return None

    def part(start: int, stop: int) -> Sequence[Any]:
        return run({**values, **{name: values[name][start:stop] for name in batched}})

    first = part(0, rows)
    outputs = rooms(first, shapes, count)

    def fill(start: int) -> None:
        stop = min(count, start + rows)
        for place, block in zip(outputs, first if start == 0 else part(start, stop), strict=True):
            place[start:stop] = block

    starts = iter(range(0, count, rows))

    def some() -> None:
        for start in starts:
            fill(start)

    with one_thread() if library and threads > 1 else nullcontext():
        together([some] * threads)
    return outputs


def _largest(tape: Tape, batched: Collection[str]) -> int:
    """The entries of the largest value that differs from point to point."""
    moving: set[Node] = set()
    largest = 1
    for node in tape.nodes:
        if node.name in batched if not node.args else any(arg in moving for arg in node.args):
            moving.add(node)
            largest = max(largest, node.type.size)
    return largest


def rooms(first: Sequence[Any], shapes: Sequence[tuple[int, ...]], count: int) -> list[Any]:
    """Room for all results of each output, of the kind that a block gave."""
    library = namespace("numpy").library
    return [
        library.empty((count, *shape), getattr(result, "dtype", "float64"))
        for result, shape in zip(first, shapes, strict=True)
    ]
