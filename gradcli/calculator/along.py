"""Evaluates a tape along many directions.

A single evaluation takes the directions block by block, so that their values stay in cache. Repeated evaluations use a
plan in which the directions are constants, so values that depend on them alone are computed once.
"""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.namespaces import REFUSED, namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gradcli.execution.evaluate import Tape

    Run = Callable[[Mapping[str, Any]], list[Any]]  # directions -> what the evaluator gives along them

CACHED = 1 << 14  # entries of the largest value in one run of the evaluator
FEWEST_ROWS = 16  # directions in one run, compared with which computing the value again costs little
SHARED = 1 << 25  # entries of all values, below which waking a second thread costs more than it brings
HELD = 1 << 21  # entries of the largest value over all directions, up to which they are constants of a plan


class Along:
    """Directions by leaf, [count, *shape of the leaf], and the plans that run along them; `units` may be empty."""

    __slots__ = ("_plans", "count", "largest", "tape", "units")

    def __init__(self, tape: Tape, units: Mapping[str, Any]) -> None:
        self.tape = tape
        self.units = dict(units)
        self.count = min([len(unit) for unit in units.values()], default=1)
        self.largest = max([node.type.size for node in tape.nodes], default=1)
        self._plans: dict[str, Any] = {}

    def evaluated(self, run: Run) -> list[Any]:
        """The values from the evaluator, with an axis of directions in front unless they do not depend on these."""
        rows = max(FEWEST_ROWS, CACHED // max(self.largest, 1))
        if self.count <= 2 * rows:
            return run(self.units)
        library = namespace("numpy").library
        outputs: list[Any] = []
        for start in range(0, self.count, rows):
            part = run({name: unit[start : start + rows] for name, unit in self.units.items()})
            if not outputs:
                outputs = [
                    library.empty((self.count, *output.type.shape), getattr(value, "dtype", "float64"))
                    for value, output in zip(part, self.tape.outputs, strict=True)
                ]
            for place, value in zip(outputs, part, strict=True):
                place[start : start + rows] = value
        return outputs

    def planned(self, values: Mapping[str, Any], dtype: str) -> list[Any] | None:
        """The same by a plan, built at the first call; None if there is none.

        Values may differ from those of the evaluator by the order of additions. Raises GradcliError as that does.
        """
        if self.tape.scalar or self.count * self.largest > HELD:
            return None
        if dtype not in self._plans:
            self._plans[dtype] = self._made(dtype)
        plan = self._plans[dtype]
        try:
            results: list[Any] | None = None if plan is None else plan.answer(values)
        except REFUSED:
            return None  # the evaluator reports what is wrong, and where
        return results

    def again(self, leaves: Mapping[str, Any], dtype: str) -> list[Any] | None:
        """The result of `planned` by the same plan, if the leaves are all given as arrays of their types; else None."""
        return at_once(self._plans.get(dtype), leaves)

    def _made(self, dtype: str) -> Any:
        from gradcli.execution.compiler.numpy_plan import planned

        work = self.count * self.largest * len(self.tape.nodes)
        threads = None if work > SHARED else 1
        return planned(self.tape, dtype, self.units, threads)


def at_once(plan: Any, leaves: Mapping[str, Any]) -> list[Any] | None:
    """The result of a plan for leaves that are arrays of their types already; None otherwise.

    The usual way, which examines the values first, then reports what is wrong.
    """
    try:
        results: list[Any] | None = None if plan is None else plan.answer(leaves, exact=True)
    except (*REFUSED, GradcliError):
        return None
    return results


def all_finite(array: Any) -> bool:
    """Whether every entry of an array of NumPy is a finite number."""
    library = namespace("numpy").library
    return bool(library.count_nonzero(library.isfinite(array)) == array.size)
