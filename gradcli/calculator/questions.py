"""Prepares scripts: parses, lowers and differentiates them once, for evaluation at any number of points."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, error, pointing_into, visible
from gradcli.calculator import sweeping
from gradcli.calculator.repeated.prepared import PreparedScript
from gradcli.graph.building import uncollected
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import LoweringMode, lower
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape
    from gradcli.language.limits import Limits
    from gradcli.lowering import Lowered


def prepare(
    script: str | Source,
    at: Mapping[str, Any],
    wrt: Sequence[str] | None = None,
    limits: Limits | None = None,
    claiming: str = "read",
    relax: bool = False,
    dtype: str = "float64",
) -> Lowered:
    """A script as a program, for a point that fixes the shapes; `claiming` is as in `lower`.

    `relax` allows rewrites with larger rounding errors.
    """
    source = script if isinstance(script, Source) else Source(script)
    limits = limits or DEFAULT_LIMITS
    if isinstance(wrt, str):  # as --wrt takes it
        wrt = [name.strip() for name in wrt.split(",")]
    with uncollected(), pointing_into(source):
        mode = LoweringMode(claiming, plane=dtype == "complex128")
        lowered = lower(parse(source, limits), at=at, wrt=wrt, limits=limits, mode=mode)
        if relax:
            from gradcli.lowering.relaxed import relaxed

            lowered = lowered._replace(program=relaxed(lowered.program))
    return lowered


def located(make: Callable[..., PreparedScript]) -> Callable[..., PreparedScript]:
    """Wrap a function so that its errors, such as a graph that is too large, point into the script."""

    def made(lowered: Lowered, *args: Any, **options: Any) -> PreparedScript:
        with uncollected(), pointing_into(lowered.source):
            return make(lowered, *args, **options)

    return made


@located
def value_question(lowered: Lowered) -> PreparedScript:
    """The outputs alone."""
    return PreparedScript(lowered, (), lowered.program.outputs)


@located
def gradient_question(lowered: Lowered, order: int = 1, instead: str = "jacobian") -> PreparedScript:
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
    return PreparedScript(lowered, names, outputs)


@located
def hessian_question(lowered: Lowered, sparse: bool | None = False) -> PreparedScript:
    """Value, gradient and second derivatives, which take few sweeps if they are sparse; `sparse` is as in `hessian`."""
    output, names = scalar_output(lowered), leaf_names(lowered)
    targets = {name: lowered.program.leaves[name].node for name in names}
    output.builder.require_holomorphic([output], list(targets.values()), "second derivatives")
    gradient = derivatives.grad(output, list(targets.values()))
    question = PreparedScript(lowered, names, [output, *gradient])
    shapes = [target.type.shape * 2 for target in targets.values()]
    question.sparse = chosen_sparse(sparse, lowered, gradient, shapes)
    question.compressed = sweeping.compressed_hessian(
        lowered, output, gradient, list(targets.values()), question.sparse
    )
    question.make_sweeps(lambda: sweeping.hessian_sweeps(lowered, gradient, targets))
    return question


@located
def jacobian_question(lowered: Lowered, sparse: bool | None = False) -> PreparedScript:
    """The outputs and all first derivatives, in few sweeps if they are sparse; `sparse` is as in `jacobian`."""
    program, names = lowered.program, leaf_names(lowered)
    targets = {name: program.leaves[name].node for name in names}
    question = PreparedScript(lowered, names, program.outputs)
    program.builder.require_holomorphic(program.outputs, list(targets.values()), "a Jacobian")
    shapes = [output.type.shape + target.type.shape for output in program.outputs for target in targets.values()]
    question.sparse = chosen_sparse(sparse, lowered, program.outputs, shapes)
    question.compressed, question.by_leaf = sweeping.best_jacobian(lowered, targets, question.sparse)
    question.make_sweeps(lambda: sweeping.jacobian_sweeps(lowered, targets))
    return question


def chosen_sparse(wanted: bool | None, lowered: Lowered, nodes: Sequence[Node], shapes: Sequence[Shape]) -> bool:
    """Whether the blocks of a matrix are sparse; None: where a dense one would have too many entries (else GC508)."""
    if wanted:
        return True
    try:
        for shape in shapes:
            sweeping.room_for(lowered, nodes, shape)
    except GradcliError as problem:
        if wanted is None:
            return True
        message, span = problem.diagnostics[0].message, problem.diagnostics[0].span
        hint = "use sparse=True in Python, --format mtx on the command line, or raise --limit elements=..."
        raise error("GC508", message, span, help=hint) from None
    return False


def scalar_output(lowered: Lowered, instead: str = "jacobian") -> Node:
    """The scalar output; raises GradcliError GC307, with a proposal, if there is not exactly one."""
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
    """The leaves to differentiate with respect to; raises GradcliError GC209 if there is none."""
    if lowered.wrt:
        return lowered.wrt
    free = [name for name, leaf in lowered.program.leaves.items() if not leaf.const]
    if free:
        raise error(
            "GC209", "no name is given to differentiate with respect to", help="the leaves are: " + ", ".join(free)
        )
    for name, span in lowered.reassigned.items():
        raise error(
            "GC209",
            f"nothing is left to differentiate with respect to: `{visible(name)}` is assigned again here, so "
            "it is a constant",
            span,
            help=f"give the new value another name, and `{visible(name)}` stays a leaf",
            source=lowered.source,
        )
    for note in lowered.notes:
        if note.code == "GC311":
            message = f"nothing is left to differentiate with respect to: {note.message}"
            hint = (
                "where(condition, a, b) chooses without reading a value; or differentiate with respect to another name"
            )
            raise error("GC209", message, note.span, help=hint, source=lowered.source)
    raise error(
        "GC209",
        "nothing to differentiate with respect to: the script has no leaf",
        None,
        help="use a name: x**2, with --at x=3",
        source=lowered.source,
    )
