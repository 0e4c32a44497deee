"""A prepared program and many points go in; the points are computed block by block in cache, on several threads.

A point does not know of the others, so any block gives the same numbers as the whole. Blocks are short enough that all
intermediate values of one stay in cache, and long enough that NumPy's calls cost little beside the work. A program of
numbers alone is a kernel of `execution/kernels`, whatever the number of points; any other is evaluated part by part.
"""

from __future__ import annotations

from importlib import import_module

from gradcli.diagnostics import GradcliError
from gradcli.execution.namespaces import namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.questions import Question
    from gradcli.execution.evaluate import Tape

ALONE, SHARED = 1 << 14, 1 << 15  # entries of the largest value in a block: on one thread, and on several
FEWEST = 4  # blocks on a thread of its own, below which starting it does not pay
MOST_KEPT = 64  # kernels of a compiled script
LIBRARY = {"matmul", "einsum", "dot", "solve", "inv", "det", "cholesky", "qr", "expm"}  # have threads of their own


class Kernels:
    """The kernels of a compiled script, each made when it is first asked for."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def run(
        self,
        question: Question,
        dtype: str,
        values: Mapping[str, Any],
        batched: Sequence[str],
        count: int,
        room: Sequence[Any] | None,
    ) -> list[Any] | None:
        """The outputs at all points, in the arrays of `room` where they fit; None where no kernel does it."""
        moving = frozenset(batched)
        key = (question, moving)
        if key not in self.kept:
            if len(self.kept) >= MOST_KEPT:
                del self.kept[next(iter(self.kept))]
            numbers = not any(node.type.shape for node in question.tape.nodes)
            made = (
                import_module("gradcli.execution.kernels").kernel_of(question.tape, dtype, moving) if numbers else None
            )
            self.kept[key] = made
        kernel = self.kept[key]
        if kernel is None:
            return None
        try:
            found: list[Any] = kernel.run(question.tape.given(values), count, room)
        except GradcliError as problem:
            raise problem.with_source(question.lowered.source) from None
        return found


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
    from gradcli.execution.plans.libraries import processors

    largest = max((node.type.size for node in tape.nodes), default=1)
    threads = 1 if any(node.primitive.name in LIBRARY for node in tape.nodes) else processors()
    if count * largest <= FEWEST * SHARED * threads:
        threads = 1
    rows = max(1, (SHARED if threads > 1 else ALONE) // max(largest, 1))
    if count <= 2 * rows:
        return None

    def part(start: int, stop: int) -> Sequence[Any]:
        return run({**values, **{name: values[name][start:stop] for name in batched}})

    first = part(0, rows)
    found = [like(one, shape, count) for one, shape in zip(first, shapes, strict=True)]

    def fill(start: int) -> None:
        stop = min(count, start + rows)
        for place, one in zip(found, first if start == 0 else part(start, stop), strict=True):
            place[start:stop] = one

    starts = range(0, count, rows)
    if threads == 1:
        for start in starts:
            fill(start)
        return found
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        for done in pool.map(fill, starts):
            assert done is None  # an error of a block is raised here
    return found


def like(one: Any, shape: tuple[int, ...], count: int) -> Any:
    """Room for all results of an output, of the kind that a block gave."""
    return namespace("numpy").library.empty((count, *shape), dtype=getattr(one, "dtype", "float64"))
