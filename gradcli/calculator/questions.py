"""Scripts made ready: parsed, lowered and differentiated once, to be answered at as many points as wanted.

What belongs to a question is fixed by the script and by the shapes of the point; `answers` runs it.
"""

from __future__ import annotations

from gradcli.diagnostics import GradcliError, error, visible
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import namespace
from gradcli.graph.builder import building
from gradcli.graph.types import Type
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower, missing_values
from gradcli.lowering.names import filled
from gradcli.records import NamedTuple
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.node import Node
    from gradcli.language.limits import Limits
    from gradcli.lowering import Lowered


class Sweep(NamedTuple):
    """A tape that runs over unit vectors at once: `units` holds them by leaf, and is empty where one run will do."""

    output: int
    leaf: str
    tape: Tape
    units: dict[str, Any]


class Question:
    """A script made ready to be evaluated at points of one shape: outputs, derivatives, and one tape for all of them.

    `sweeps` give the rows or columns of second derivatives and of Jacobians.
    """

    __slots__ = ("fillable", "lowered", "names", "sweeps", "tape")

    def __init__(self, lowered: Lowered, names: Sequence[str], outputs: Sequence[Node]) -> None:
        self.lowered = lowered
        self.names = tuple(names)
        self.tape = Tape(list(outputs))
        self.sweeps: list[Sweep] = []
        leaves = lowered.program.leaves.items()
        self.fillable = [(name, leaf.node.shape) for name, leaf in leaves if leaf.declared and leaf.node.shape]

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


def prepare(
    script: str | Source,
    at: Mapping[str, Any],
    wrt: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Lowered:
    """A script as a program, for a point that fixes the shapes."""
    source = script if isinstance(script, Source) else Source(script)
    limits = limits or DEFAULT_LIMITS
    if isinstance(wrt, str):  # as --wrt takes it
        wrt = [name.strip() for name in wrt.split(",")]
    try:
        return lower(parse(source, limits), at=at, wrt=wrt, limits=limits)
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
    """Value, gradient, and a tape per leaf that moves along its unit vectors: one batched run gives its columns."""
    output, names = scalar_output(lowered), leaf_names(lowered)
    program = lowered.program
    targets = [program.leaves[name].node for name in names]
    gradient = derivatives.grad(output, targets)
    question = Question(lowered, names, [output, *gradient])
    for name, target in zip(names, targets, strict=True):
        tangent, units = _unit_leaf(lowered, gradient, target)
        columns = derivatives.jvp(gradient, [target], [tangent])
        question.sweeps.append(Sweep(0, name, Tape(columns), units))
    return question


def _unit_leaf(lowered: Lowered, nodes: Sequence[Node], like: Node) -> tuple[Node, dict[str, Any]]:
    """A leaf of the shape of `like`, and the unit vectors that it takes as a batch; for a scalar the constant 1."""
    builder = lowered.program.builder
    with building(builder, [*lowered.program.nodes(), *nodes]) as open_builder:
        if not like.type.shape:
            return open_builder.constant(1), {}
        leaf = open_builder.fresh_leaf(like.type)
        open_builder.span = next((node.span for node in nodes if node.span is not None), None)
        open_builder.allow(Type("float", like.type.shape * 2))
    size = like.type.size
    units = namespace("numpy").eye(size)
    return leaf, {leaf.params["name"]: units.reshape((size, *like.type.shape))}


@located
def jacobian_question(lowered: Lowered) -> Question:
    """The outputs, and a tape for each output and leaf that runs over the unit vectors of the smaller side."""
    program, names = lowered.program, leaf_names(lowered)
    question = Question(lowered, names, program.outputs)
    for position, output in enumerate(program.outputs):
        for name in names:
            target = program.leaves[name].node
            if not runs_forward(output, target):
                seed, units = _unit_leaf(lowered, [output], output)
                rows = derivatives.vjp([output], [seed], [target])
                question.sweeps.append(Sweep(position, name, Tape(rows), units))
            else:
                seed, units = _unit_leaf(lowered, [output], target)
                rows = derivatives.jvp([output], [target], [seed])
                question.sweeps.append(Sweep(position, name, Tape(rows), units))
    return question


def runs_forward(output: Node, target: Node) -> bool:
    """Whether a Jacobian is cheaper column by column, in forward mode: the output has more entries than the target."""
    return output.type.size > target.type.size


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
