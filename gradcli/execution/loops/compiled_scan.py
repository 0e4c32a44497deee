"""Loops that run as code made for them: printed Python on single numbers, plans of blocks of iterations with NumPy."""

from __future__ import annotations

from gradcli.execution.loops.scan import Scan
from gradcli.execution.namespaces import BadIndex, NotReal, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.execution.compiler.numpy_plan import LoopPlan
    from gradcli.graph.node import Node

_UNKNOWN: Any = object()


class CompiledScan(Scan):
    """A scan that prepares its code when it first runs, for each namespace."""

    __slots__ = ("_plans", "_printed")

    def __init__(self, readers: Sequence[Node]) -> None:
        super().__init__(readers)
        self._printed: Callable[[Sequence[float]], list[float]] | None = _UNKNOWN
        self._plans: dict[Any, LoopPlan] = {}

    def __call__(self, xp: Any, *args: Any, ranks: Sequence[int]) -> list[Any]:
        if xp.name == "math":
            if self._printed is _UNKNOWN:
                from gradcli.execution.emit_python import printed_iterations

                self._printed = printed_iterations(self)
            if self._printed is not None:
                return self._printed(args)
        if xp.name == "numpy" and xp.dtype != "complex128" and self.count > 1:
            if xp not in self._plans:
                from gradcli.execution.compiler.numpy_plan import LoopPlan

                self._plans[xp] = LoopPlan(self, xp)
            try:
                return self._plans[xp].run(args, ranks)
            except (BadIndex, NotReal, Unavailable):
                pass  # iteration by iteration, to say which operation it was
        return super().__call__(xp, *args, ranks=ranks)
