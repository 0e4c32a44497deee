"""Scripts made ready: parsed, lowered and differentiated once, to be answered at as many points as wanted.

What belongs to a question is fixed by the script and by the shapes of the point; `answers` runs it.
"""

from __future__ import annotations

from gradcli.calculator import sweeping
from gradcli.calculator.along import at_once
from gradcli.diagnostics import GradcliError, error, visible
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import REFUSED
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower, missing_values
from gradcli.lowering.names import filled
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.along import Along
    from gradcli.calculator.sweeping import Compressed, Found, Sweep
    from gradcli.graph.node import Node
    from gradcli.language.limits import Limits
    from gradcli.lowering import Lowered


class Question:
    """A script made ready to be evaluated at points of one shape: outputs, derivatives, and one tape for all of them.

    `sweeps` give the rows or columns of second derivatives and of Jacobians; where these are sparse, `compressed` gives
    them in fewer.
    """

    __slots__ = (
        "_entries",
        "_make_sweeps",
        "_plans",
        "_sweeps",
        "by_leaf",
        "compressed",
        "fillable",
        "lowered",
        "names",
        "tape",
    )

    def __init__(self, lowered: Lowered, names: Sequence[str], outputs: Sequence[Node]) -> None:
        self.lowered = lowered
        self.names = tuple(names)
        self.tape = Tape(list(outputs))
        self.compressed: Compressed | None = None
        self.by_leaf: dict[str, Compressed] = {}
        self._plans: dict[Any, Any] = {}
        self._entries: int | None = None
        self._sweeps: list[Sweep] | None = None
        self._make_sweeps: Callable[[], list[Sweep]] = list
        leaves = lowered.program.leaves.items()
        self.fillable = [(name, leaf.node.shape) for name, leaf in leaves if leaf.declared and leaf.node.shape]

    @property
    def sweeps(self) -> list[Sweep]:
        """The tapes of the sweeps over unit vectors, made when they are asked for."""
        if self._sweeps is None:
            try:
                self._sweeps = self._make_sweeps()
            except GradcliError as problem:
                raise problem.with_source(self.lowered.source) from None
        return self._sweeps

    def make_sweeps(self, make: Callable[[], list[Sweep]]) -> None:
        """Set how the sweeps are made; they are made now unless the compressed ones may do."""
        self._make_sweeps = make
        if self.compressed is None and len(self.by_leaf) < len(self.names):
            self._sweeps = make()

    def size(self) -> int:
        """The nodes that the question keeps alive, about."""
        tapes = [
            self.tape,
            *(one.tape for one in self.by_leaf.values()),
            *(one.along.tape for one in self._sweeps or ()),
        ]
        if self.compressed is not None:
            tapes.append(self.compressed.tape)
        return sum([len(tape.nodes) for tape in tapes])

    def entries(self) -> int:
        """The entries of all arrays that a run computes."""
        if self._entries is None:
            self._entries = sum([node.type.size for node in self.tape.nodes])
        return self._entries

    def run_along(
        self, along: Along, values: Mapping[str, Any], backend: str, dtype: str, again: bool = False
    ) -> list[Any]:
        """What a tape of this question gives along its directions; by a plan for a question that is asked again."""
        if again and backend in ("auto", "numpy") and dtype != "complex128":
            try:
                found = along.planned(values, dtype)
            except GradcliError as problem:
                raise problem.with_source(self.lowered.source) from None
            if found is not None:
                return found
        return along.evaluated(lambda units: self.run({**values, **units}, backend, dtype, along.tape))

    def swept(
        self, compressed: Compressed | None, values: Mapping[str, Any], backend: str, dtype: str, again: bool = False
    ) -> Found | None:
        """The outputs and what makes the blocks of a matrix, from few sweeps; None where it takes them all."""
        if compressed is None:
            return None
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
            if isinstance(known[name], (int, float, complex)):
                known[name] = filled(known[name], shape)
        return known

    def run(self, values: Mapping[str, Any], backend: str, dtype: str, tape: Tape | None = None) -> list[Any]:
        """What the tape, or another one of this question, gives for these values; an error points into the script."""
        try:
            return (self.tape if tape is None else tape).run(values, backend=backend, dtype=dtype)
        except GradcliError as problem:
            raise problem.with_source(self.lowered.source) from None

    def run_on_device(
        self,
        values: Mapping[str, Any],
        dtype: str,
        moving: Iterable[str] | None = None,
        count: int | None = None,
        fetch: bool = False,
    ) -> list[Any] | None:
        """What `run` gives with the backend cupy, by a plan for the GPU; None where no plan does it.

        `moving` names the values whose first axis counts `count` points.
        """
        from gradcli.calculator.devices import on_device

        return on_device(self, self._plans, values, dtype, moving, count, fetch)

    def ready(self, dtype: str, once: bool = False) -> Any:
        """The kernel or the plan that computes this question with NumPy, made when it is first asked for; else None."""
        if dtype not in self._plans:
            from gradcli.execution.kernels import kernel_of
            from gradcli.execution.plans import planned

            made = kernel_of(self.tape, dtype, once=once)
            self._plans[dtype] = made if made is not None and not made.repeats else planned(self.tape, dtype) or made
        return self._plans[dtype]

    def run_planned(self, values: Mapping[str, Any], backend: str, dtype: str, fewest: int = 0) -> list[Any]:
        """What `run` gives, by a plan where NumPy computes with arrays; worth its making where it runs again.

        Questions with fewer entries than `fewest` in all their arrays are left to `run`.
        """
        if self.tape.scalar or dtype == "complex128" or self.entries() < fewest:
            return self.run(values, backend, dtype)
        if backend not in ("auto", "numpy"):
            there = self.run_on_device(values, dtype, fetch=fewest > 0) if backend == "cupy" else None
            return self.run(values, backend, dtype) if there is None else there
        plan = self.ready(dtype, once=fewest > 0)
        found: list[Any] | None = None
        try:
            found = plan.answer(values) if plan is not None else None
        except REFUSED:
            found = None  # the evaluator says what is wrong, and where
        except GradcliError as problem:
            raise problem.with_source(self.lowered.source) from None
        return self.run(values, backend, dtype) if found is None else found

    def run_again(self, leaves: Mapping[str, Any], backend: str, dtype: str) -> list[Any] | None:
        """What `run_planned` gave, where it had a plan, if the leaves are arrays of their types already; else None."""
        return at_once(self._plans.get(dtype), leaves) if backend in ("auto", "numpy") else None


def prepare(
    script: str | Source,
    at: Mapping[str, Any],
    wrt: Sequence[str] | None = None,
    limits: Limits | None = None,
    claiming: str = "read",
    relax: bool = False,
) -> Lowered:
    """A script as a program, for a point that fixes the shapes; `claiming` says what becomes of claims, as in `lower`.

    `relax` permits rewrites that may round far worse.
    """
    source = script if isinstance(script, Source) else Source(script)
    limits = limits or DEFAULT_LIMITS
    if isinstance(wrt, str):  # as --wrt takes it
        wrt = [name.strip() for name in wrt.split(",")]
    try:
        found = lower(parse(source, limits), at=at, wrt=wrt, limits=limits, claiming=claiming)
        if relax:
            from gradcli.lowering.relaxed import relaxed

            found.program = relaxed(found.program)
        return found
    except GradcliError as problem:
        raise problem.with_source(source) from None


def located(make: Callable[..., Question]) -> Callable[..., Question]:
    """The same function; its errors, such as a graph that grows too large, point into the script."""

    def made(lowered: Lowered, *args: Any, **options: Any) -> Question:
        try:
            return make(lowered, *args, **options)
        except GradcliError as problem:
            raise problem.with_source(lowered.source) from None

    return made


@located
def value_question(lowered: Lowered) -> Question:
    """The outputs alone."""
    return Question(lowered, (), lowered.program.outputs)


@located
def gradient_question(lowered: Lowered, order: int = 1, instead: str = "jacobian") -> Question:
    """The value, the gradient in every leaf, and for `order` above 1 the higher derivatives of scalar leaves."""
    program = lowered.program
    output = scalar_output(lowered, instead)
    names = leaf_names(lowered)
    targets = [program.leaves[name].node for name in names]
    outputs = [output, *derivatives.grad(output, targets)]
    for name, target in zip(names, targets, strict=True) if order > 1 else ():
        if target.type.shape:
            raise error(
                "GC307",
                f"--order {order} needs scalar leaves, and `{name}` is {target.type}",
                lowered.uses.get(name),
                help="use hessian, or name a scalar leaf with --wrt",
                source=lowered.source,
            )
        outputs.extend(derivatives.nth(output, target, order))
    return Question(lowered, names, outputs)


@located
def hessian_question(lowered: Lowered) -> Question:
    """Value, gradient and second derivatives; these in a few sweeps where they are sparse."""
    output, names = scalar_output(lowered), leaf_names(lowered)
    targets = {name: lowered.program.leaves[name].node for name in names}
    gradient = derivatives.grad(output, list(targets.values()))
    question = Question(lowered, names, [output, *gradient])
    for target in targets.values():
        sweeping.room_for(lowered, gradient, target.type.shape * 2)
    question.compressed = sweeping.compressed_hessian(lowered, output, gradient, list(targets.values()))
    question.make_sweeps(lambda: sweeping.hessian_sweeps(lowered, gradient, targets))
    return question


@located
def jacobian_question(lowered: Lowered) -> Question:
    """The outputs and all first derivatives; these in a few sweeps where they are sparse."""
    program, names = lowered.program, leaf_names(lowered)
    targets = {name: program.leaves[name].node for name in names}
    question = Question(lowered, names, program.outputs)
    for output in program.outputs:
        for target in targets.values():
            sweeping.room_for(lowered, [output], output.type.shape + target.type.shape)
    question.compressed, question.by_leaf = sweeping.best_jacobian(lowered, targets)
    question.make_sweeps(lambda: sweeping.jacobian_sweeps(lowered, targets))
    return question


def scalar_output(lowered: Lowered, instead: str = "jacobian") -> Node:
    """The one scalar output; raises GradcliError GC307 where there is none, and proposes what to use instead."""
    outputs = lowered.program.outputs
    if len(outputs) == 1 and not outputs[0].type.shape:
        return outputs[0]
    what = f"{len(outputs)} values" if len(outputs) > 1 else str(outputs[0].type)
    raise error(
        "GC307",
        f"a gradient needs a scalar output, and this is {what}",
        outputs[0].span,
        help=f"take sum(...) or mean(...) of it, or use {instead}",
        source=lowered.source,
    )


def leaf_names(lowered: Lowered) -> tuple[str, ...]:
    """The leaves to differentiate by; raises GradcliError GC209 where there is none."""
    if lowered.wrt:
        return lowered.wrt
    free = [name for name, leaf in lowered.program.leaves.items() if not leaf.const]
    if free:
        raise error("GC209", "no name is given to differentiate by", help="the leaves are: " + ", ".join(free))
    for name, span in lowered.reassigned.items():
        raise error(
            "GC209",
            f"nothing is left to differentiate by: `{visible(name)}` is assigned again here, so it is a constant",
            span,
            help=f"give the new value another name, and `{visible(name)}` stays a leaf",
            source=lowered.source,
        )
    for note in lowered.notes:
        if note.code == "GC311":
            message = f"nothing is left to differentiate by: {note.message}"
            hint = "where(condition, a, b) chooses without reading a value; or differentiate by another name"
            raise error("GC209", message, note.span, help=hint, source=lowered.source)
    raise error(
        "GC209",
        "there is nothing to differentiate by: the script has no leaf",
        None,
        help="use a name: x**2, with --at x=3",
        source=lowered.source,
    )
