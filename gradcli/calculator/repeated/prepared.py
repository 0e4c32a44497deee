"""A script prepared for points of one shape: its outputs, derivatives and tapes, run by the evaluator or a plan."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, pointing_into
from gradcli.calculator.along import at_once
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import REFUSED
from gradcli.graph.building import uncollected
from gradcli.lowering import missing_values
from gradcli.lowering.names import filled
from gradcli.transforms.surfaces import surfaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.along import Along
    from gradcli.calculator.sweeping import Compressed, Found, UnitVectorSweep
    from gradcli.graph.node import Node
    from gradcli.lowering import Lowered


class PreparedScript:
    """A script made ready to be evaluated at points of one shape: outputs, derivatives, and one tape for all of them.

    `sweeps` give the rows or columns of second derivatives and of Jacobians; where these are sparse, `compressed` gives
    them in fewer.
    """

    __slots__ = (
        "_entries",
        "_make_sweeps",
        "_plans",
        "_sweeps",
        "_zeros",
        "by_leaf",
        "compressed",
        "fillable",
        "lowered",
        "names",
        "sparse",
        "tape",
    )

    def __init__(self, lowered: Lowered, names: Sequence[str], outputs: Sequence[Node]) -> None:
        self.lowered = lowered
        self.names = tuple(names)
        self.tape = Tape(list(outputs))
        self.sparse = False  # whether blocks of matrices are sparse arrays
        self.compressed: Compressed | None = None
        self.by_leaf: dict[str, Compressed] = {}
        self._plans: dict[Any, Any] = {}
        self._entries: int | None = None
        self._sweeps: list[UnitVectorSweep] | None = None
        self._zeros: Tape | None = None
        self._make_sweeps: Callable[[], list[UnitVectorSweep]] = list
        leaves = lowered.program.leaves.items()
        self.fillable = [(name, leaf.node.shape) for name, leaf in leaves if leaf.declared and leaf.node.shape]

    @property
    def sweeps(self) -> list[UnitVectorSweep]:
        """The tapes of the sweeps over unit vectors, built at the first use."""
        if self._sweeps is None:
            with pointing_into(self.lowered.source):
                self._sweeps = self._make_sweeps()
        return self._sweeps

    def make_sweeps(self, make: Callable[[], list[UnitVectorSweep]]) -> None:
        """Set the function that builds the sweeps; it is called now unless compressed sweeps may suffice."""
        self._make_sweeps = make
        if self.compressed is None and len(self.by_leaf) < len(self.names):
            self._sweeps = make()

    def size(self) -> int:
        """The approximate number of nodes that the question keeps alive."""
        tapes = [
            self.tape,
            *(question.tape for question in self.by_leaf.values()),
            *(question.along.tape for question in self._sweeps or ()),
        ]
        if self.compressed is not None:
            tapes.append(self.compressed.tape)
        return sum([len(tape.nodes) for tape in tapes])

    def entries(self) -> int:
        """The entries of all arrays that a run computes."""
        if self._entries is None:
            self._entries = sum([node.type.size for node in self.tape.nodes])
        return self._entries

    def at_a_kink(self, values: Mapping[str, Any], dtype: str) -> bool:
        """Whether an operation of the script may be at a kink: what is zero there is zero in floats."""
        if self._zeros is None:
            self._zeros = Tape([zero for _, zero, _ in surfaces(self.lowered.program.nodes())])
        distances: list[Any] = self._zeros.run(values, dtype=dtype) if self._zeros.nodes else []
        return any(0 in distance if hasattr(distance, "shape") else distance == 0 for distance in distances)

    def run_along(
        self, along: Along, values: Mapping[str, Any], backend: str, dtype: str, again: bool = False
    ) -> list[Any]:
        """The results of a tape along its directions; by a plan if the question is evaluated repeatedly (`again`)."""
        if again and backend in ("auto", "numpy") and dtype != "complex128":
            with pointing_into(self.lowered.source):
                results = along.planned(values, dtype)
            if results is not None:
                return results
        return along.evaluated(lambda units: self.run({**values, **units}, backend, dtype, along.tape))

    def swept(
        self, compressed: Compressed | None, values: Mapping[str, Any], backend: str, dtype: str, again: bool = False
    ) -> Found | None:
        """The outputs and a function that makes the blocks of a matrix, from few sweeps; None without compression."""
        if compressed is None:
            return None
        backend = "numpy" if self.sparse and backend in ("auto", "math") else backend  # directions are arrays
        return compressed.run(
            lambda along: self.run_along(along, values, backend, dtype, again),
            lambda along: self.run_along(along, values, backend, dtype),
        )

    def values(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The value of every leaf at a point; raises GradcliError GC202 for a leaf without one."""
        leaves = self.lowered.program.leaves
        known = {**self.lowered.values, **{name: value for name, value in point.items() if name in leaves}}
        if len(known) < len(leaves) and (missing := missing_values(self.lowered, point)):
            raise GradcliError(*missing)
        for name, shape in self.fillable:
            if isinstance(known.get(name), (int, float, complex)):  # absent if no output reads the leaf
                known[name] = filled(known[name], shape)
        return known

    def run(self, values: Mapping[str, Any], backend: str, dtype: str, tape: Tape | None = None) -> list[Any]:
        """The results of the tape, or another one of this question, for these values; errors point into the script."""
        with pointing_into(self.lowered.source):
            return (self.tape if tape is None else tape).run(values, backend=backend, dtype=dtype)

    def run_on_device(
        self,
        values: Mapping[str, Any],
        dtype: str,
        moving: Iterable[str] | None = None,
        count: int | None = None,
        fetch: bool = False,
    ) -> list[Any] | None:
        """The results of `run` with the backend cupy, by a plan for the GPU; None if no plan can compute them.

        `moving` names the values whose first axis counts `count` points. If values are on the device, results stay
        there; with `fetch` they become arrays of NumPy.
        """
        from gradcli.execution.cuda.device_plan import device_plan

        moves = None if moving is None else frozenset(moving)
        key = ("cupy", dtype, moves)
        results: list[Any] | None = None
        try:
            with pointing_into(self.lowered.source):
                if key not in self._plans:
                    self._plans[key] = device_plan(self.tape, dtype, moves)
                plan = self._plans[key]
                results = plan.answer(values, count, fetch) if plan is not None else None
        except REFUSED:
            return None  # the evaluator reports what is wrong, and where
        return results

    def ready(self, dtype: str, once: bool = False) -> Any:
        """The plan that computes this question with NumPy, built at the first call; None if there is none."""
        if dtype not in self._plans:
            from gradcli.execution.compiler.numpy_plan import planned

            with uncollected():
                self._plans[dtype] = planned(self.tape, dtype, once=once)
        return self._plans[dtype]

    def run_planned(self, values: Mapping[str, Any], backend: str, dtype: str, fewest: int = 0) -> list[Any]:
        """The results of `run`, by a plan where NumPy computes with arrays; for questions that are evaluated again.

        Questions with fewer entries than `fewest` in all their arrays are left to `run`.
        """
        if self.tape.scalar or dtype == "complex128" or self.entries() < fewest:
            return self.run(values, backend, dtype)
        if backend not in ("auto", "numpy"):
            there = self.run_on_device(values, dtype, fetch=fewest > 0) if backend == "cupy" else None
            return self.run(values, backend, dtype) if there is None else there
        plan = self.ready(dtype, once=fewest > 0)
        results: list[Any] | None = None
        try:
            with pointing_into(self.lowered.source):
                results = plan.answer(values) if plan is not None else None
        except REFUSED:
            results = None  # the evaluator reports what is wrong, and where
        return self.run(values, backend, dtype) if results is None else results

    def run_again(self, leaves: Mapping[str, Any], backend: str, dtype: str) -> list[Any] | None:
        """The results of `run_planned` by an existing plan for leaves that are arrays of their types; else None."""
        return at_once(self._plans.get(dtype), leaves) if backend in ("auto", "numpy") else None
