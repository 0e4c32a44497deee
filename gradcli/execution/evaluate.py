"""The evaluator: computes the outputs of a program from values of its inputs.

A `Tape` is the program as a list of steps, made once and run any number of times: on Python floats where every
value is a single number, else on the arrays of a namespace, where axes in front of an input's own shape are
batch axes.
"""

from __future__ import annotations

from itertools import repeat
from math import isfinite

from gradcli.base.diagnostics import error
from gradcli.execution.inputs import (
    constant_value,
    data_value,
    impl_params,
    leads_differ,
    leaf_value,
    plain_number,
    plain_result,
)
from gradcli.execution.namespaces import IEEE_DIFFERS, REFUSED, BadIndex, NotReal, Unavailable, namespace
from gradcli.execution.node_table import NodeTable
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, is_reader
from gradcli.graph.types import broadcast_shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import GradcliError
    from gradcli.base.results.calculations import Value
    from gradcli.execution.loops.scan import Scan
    from gradcli.execution.node_table import Computation
    from gradcli.graph.types import Shape


INPUTS = (LEAF, DATA, CONSTANT)
PAIR = 2  # operands, up to which a step without parameters is called without a list of them


def evaluate(
    program: Computation,
    values: Mapping[str, Any],
    *,
    backend: str = "auto",
    dtype: str = "float64",
    data: Mapping[str, Any] | None = None,
) -> list[Value]:
    """The values of the outputs: Python floats for scalars, else NumPy arrays, batch axes in front.

    `values` gives each leaf a number, nested lists or an array; a leaf that is missing takes its default.
    `backend` is "auto" (Python floats for scalar programs, else NumPy), "numpy", "cupy", "jax" or "math".
    Raises GradcliError: GC202 for a leaf without value, GC313, GC332 or GC333 for a value of the wrong shape or
    kind, GC406 for data that are no positions, GC71x for a backend.
    """
    return Tape(program, data).run(values, backend=backend, dtype=dtype)


class Tape(NodeTable):
    """A program as a list of steps that runs; reusable, and independent of the values."""

    __slots__ = ("_array_steps", "_kept_steps", "_prepared")

    def __init__(self, program: Computation, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(program, data, scans_of)
        self._array_steps: list[Any] | None = None
        self._kept_steps: list[Any] | None = None
        self._prepared: dict[Any, tuple[list[Any], dict[int, Any]]] = {}

    def run(self, values: Mapping[str, Any], *, backend: str = "auto", dtype: str = "float64") -> list[Value]:
        """The values of the outputs; see `evaluate`."""
        inputs = self.input_values(values)
        slots = self._on_floats(inputs, backend, dtype)
        if slots is not None:
            return [float(slots[self.slots[output]]) for output in self.outputs]
        xp = namespace("numpy" if backend == "auto" else backend, dtype)
        with xp.arithmetic():
            slots, owners = self._on_arrays(xp, inputs, keep=False)
            return [_own(self._result(xp, output, slots), owners) for output in self.outputs]

    def run_all(self, values: Mapping[str, Any], *, backend: str = "auto", dtype: str = "float64") -> dict[Node, Value]:
        """The value of every node, to be read only: arrays may share memory; else like `evaluate`."""
        inputs = self.input_values(values)
        slots = self._on_floats(inputs, backend, dtype)
        if slots is not None:
            return {node: float(value) for node, value in zip(self.nodes, slots, strict=False)}
        xp = namespace("numpy" if backend == "auto" else backend, dtype)
        with xp.arithmetic():
            slots, _ = self._on_arrays(xp, inputs, keep=True)
            return {node: self._result(xp, node, slots) for node in self.nodes}

    # --- Python floats --------------------------------------------------------------------------------

    def _on_floats(self, inputs: Iterable[Any], backend: str, dtype: str) -> list[Any] | None:
        """The value of every node; None where Python's floats differ from IEEE arithmetic, and for arrays."""
        if backend not in ("auto", "math") or not self.scalar or dtype != "float64":
            if backend == "math":
                raise Unavailable("math computes float64 scalars only")
            return None
        xp = namespace("math")
        slots = self._start(xp)[0].copy()
        for (_, slot), value in zip(self.inputs, inputs, strict=True):
            number = value if type(value) is float else plain_number(value)
            if number is None or not isfinite(number):
                if backend == "math" and number is not None:
                    slots[slot] = number
                    continue
                return None
            slots[slot] = number
        try:
            for impl, out, args, params, _, _ in self._steps(keep=True):
                if params or len(args) > PAIR:
                    slots[out] = impl(xp, *[slots[arg] for arg in args], **params)
                elif len(args) == PAIR:
                    slots[out] = impl(xp, slots[args[0]], slots[args[1]])
                else:
                    slots[out] = impl(xp, slots[args[0]])
        except (*IEEE_DIFFERS, Unavailable) as problem:
            if backend == "math":
                raise
            self.scalar = not isinstance(problem, Unavailable)  # else it will not be available the next time either
            return None
        return slots

    # --- arrays -----------------------------------------------------------------------------------------

    def _on_arrays(self, xp: Any, inputs: Sequence[Any], keep: bool) -> tuple[list[Any], dict[int, Any]]:
        """The value of every slot that is still needed at the end (of all with `keep`), and who owns the inputs."""
        start, fixed = self._start(xp)
        slots, owners = start.copy(), fixed.copy()
        leaves = []
        lead: Shape | None = ()
        for (node, slot), value in zip(self.inputs, inputs, strict=True):
            array = slots[slot] = leaf_value(xp, node, value)
            leaves.append(array)
            own = array.shape[: array.ndim - len(node.shape)]
            if own and lead is not None:
                lead = broadcast_shapes(lead, own)
            owner = _owner(array)
            owners[id(owner)] = owner
        if lead is None:
            raise leads_differ(self.inputs, leaves)
        out = 0
        try:
            for impl, out, args, params, aligned, dead in self._steps(keep):
                xs = [slots[arg] for arg in args]
                if aligned:
                    xs = xp.aligned(xs, params["ranks"])
                slots[out] = impl(xp, *xs, **params)
                for slot in dead:
                    slots[slot] = None
        except REFUSED as wrong:
            raise _refused(xp, getattr(wrong, "node", None) or self.nodes[out], wrong) from wrong
        return slots, owners

    def _start(self, xp: Any) -> tuple[list[Any], dict[int, Any]]:
        """Slots with the constants in place, made once for each namespace, and who owns these."""
        prepared = self._prepared.get(xp)
        if prepared is None:
            start: list[Any] = [None] * len(self.nodes)
            for slot, node in enumerate(self.nodes):
                if node.primitive is CONSTANT:
                    start[slot] = constant_value(xp, node)
                elif node.primitive is DATA:
                    start[slot] = data_value(xp, node, self.data[node.params["digest"]])
            prepared = self._prepared[xp] = start, {id(owner): owner for owner in map(_owner, start)}
        return prepared

    def _steps(self, keep: bool) -> list[Any]:
        steps = self._kept_steps if keep else self._array_steps
        if steps is None:
            steps = []
            slots = self.slots
            reads = [tuple([slots[arg] for arg in node.args]) for node in self.nodes]
            last_uses: Iterable[Sequence[int]] = repeat((), len(reads)) if keep else self._last_uses(reads)
            for out, (node, dead) in enumerate(zip(self.nodes, last_uses, strict=True)):
                primitive = node.primitive
                if primitive in INPUTS:
                    continue
                args = reads[out]
                if "body" not in node.params:
                    steps.append((primitive.impl, out, args, impl_params(node), primitive.aligned, dead))
                    continue
                if node in self.loops:
                    scan = self.loops[node]
                    steps.append((scan, out, args, {"ranks": impl_params(node)["ranks"]}, False, ()))
                    steps += [(scan.picked, slots[read], (out,), {"place": at}, False, ()) for at, read in scan.picks()]
                steps[-1] = (*steps[-1][:-1], (*steps[-1][-1], *dead))  # a reader has its value since the first of them
            if keep:
                self._kept_steps = steps
            else:
                self._array_steps = steps
        return steps

    def _last_uses(self, reads: Sequence[tuple[int, ...]]) -> list[Sequence[int]]:
        """For each slot, the slots that nothing needs after it has been computed."""
        needed = {self.slots[output] for output in self.outputs}
        last_uses: list[Sequence[int]] = [()] * len(reads)
        for out in reversed(range(len(reads))):
            last = [slot for slot in reads[out] if slot not in needed]
            if last:
                last_uses[out] = last
                needed.update(last)
        return last_uses

    def _result(self, xp: Any, node: Node, slots: Sequence[Any]) -> Value:
        value: Value = plain_result(xp.fetch(slots[self.slots[node]]))
        return value


def scans_of(nodes: Sequence[Node]) -> dict[Node, Scan]:
    """The scan of each loop, by the first of its readers, whose slot takes the values of all of them."""
    if not any(map(is_reader, nodes)):
        return {}
    from gradcli.execution.loops.compiled_scan import CompiledScan  # most programs have no loop
    from gradcli.graph.loop import readers_by_loop

    return {first: CompiledScan(readers) for first, readers in readers_by_loop(nodes).items()}


def _refused(xp: Any, node: Node, wrong: Exception) -> GradcliError:
    """The error for an operation that refused its operands, or had no memory for its result."""
    name = node.primitive.name
    if isinstance(wrong, BadIndex):
        return error("GC406", str(wrong), node.span, help="indices are whole numbers, counted from 0")
    if isinstance(wrong, NotReal):
        return error(
            "GC401",
            f"{name} takes real numbers only, and {wrong}",
            node.span,
            help="take abs(...), real(...) or imag(...) of it first, or use real numbers",
        )
    if isinstance(wrong, MemoryError):
        return error("GC506", f"not enough memory for {node.type.text(xp.dtype)} of {name}", node.span)
    return error(
        "GC714",
        f"{name} is not available with --backend {xp.name}: {wrong}",
        node.span,
        help="use --backend numpy",
    )


def _owner(value: Any) -> Any:
    """The array whose memory an array uses, itself or another; None for a single number."""
    base = getattr(value, "base", None)
    return base if base is not None else value if getattr(value, "shape", ()) else None


def _own(value: Any, owners: dict[int, Any]) -> Value:
    """The value in memory of its own: what the caller may change must not be an input, a constant or a result."""
    owner = _owner(value)
    if owner is not None:
        if id(owner) in owners or not value.flags.writeable:
            owner = value = value.copy()
        owners[id(owner)] = owner
    return value  # type: ignore[no-any-return]
