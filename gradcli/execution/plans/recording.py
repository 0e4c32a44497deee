"""A tape goes in, the same computation as ufuncs, views, reductions and matrix products comes out; nothing is computed.

Each operation's own `impl` is called with a namespace that records, so there is no second table of formulas. What an
`impl` does that cannot be recorded (a library's routine, a branch on values) stays one call of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.execution.namespaces import Unavailable
from gradcli.execution.plans.templates import Templates
from gradcli.execution.plans.tracing import Recorder, Trace, Unrecordable
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, DATA, LEAF

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans.steps import Steps
    from gradcli.execution.plans.values import Value
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape


class Recording:
    """Steps in order, the inputs among their operands, and what the outputs are."""

    __slots__ = ("inputs", "ops", "outputs")

    def __init__(self, ops: list[Any], inputs: list[tuple[Node, Value]], outputs: list[Value]) -> None:
        self.ops = ops
        self.inputs = inputs
        self.outputs = outputs


def record(tape: Tape, dtype: str, held: Mapping[str, Any] | None = None, faithful: bool = False) -> Recording:
    """The steps of a tape, in the order of its nodes, without those that no output needs.

    `held` gives leaves that stay as they are: arrays of constants, which may have one batch axis in front.
    `faithful` steps give the evaluator's zeros with their signs.
    """
    recorder = Recorder(dtype)
    steps, xp = recorder.steps, recorder.numpy
    steps.faithful = faithful
    found: dict[Node, Value] = {}
    inputs = []
    simple: dict[Any, Any] = {}
    opaque: set[Any] = set()
    templates = Templates(recorder)
    for node in tape.nodes:
        primitive = node.primitive
        steps.node = node
        ufunc = simple.get(primitive)
        if ufunc is not None and not node.params:
            value = steps.entry(ufunc, *[found[arg] for arg in node.args])
            found[node] = value if value.number is None else filled(steps, value, node.type.shape)
        elif primitive is CONSTANT:
            number = xp.array(nearest_float(node.params["value"]), node.type.kind)
            found[node] = steps.number(number, node.type.shape)
        elif primitive is DATA:
            found[node] = steps.array(xp.numbers(tape.data[node.params["digest"]], node.type.kind))
        elif primitive is LEAF and held and node.params["name"] in held:
            found[node] = steps.array(xp.numbers(held[node.params["name"]], node.type.kind))
        elif primitive is LEAF:
            value = found[node] = steps.leaf(node, xp.kind_type(node.type.kind))
            inputs.append((node, value))
        else:
            args = [found[arg] for arg in node.args]
            lead = _lead(node, args) if held else ()
            if lead and not primitive.pointwise:
                args = [_led(steps, value, lead, arg.type.shape) for value, arg in zip(args, node.args, strict=True)]
            found[node] = _recorded(templates, node, args, simple, opaque, lead)
    outputs = [found[node] for node in tape.outputs]
    return Recording(live(steps.ops, outputs), inputs, outputs)


def filled(steps: Steps, value: Value, shape: tuple[int, ...]) -> Value:
    """A result in the shape that the program says."""
    return steps.number(value.number, shape) if value.number is not None else value


def _lead(node: Node, args: Sequence[Value]) -> Shape:
    """The batch axis of a result, from those of its operands."""
    for value, arg in zip(args, node.args, strict=True):
        if len(value.shape) > len(arg.type.shape):
            return value.shape[: len(value.shape) - len(arg.type.shape)]
    return ()


def _led(steps: Steps, value: Value, lead: Shape, shape: Shape) -> Value:
    """A value with the batch axis in front, its entries repeated along it where it has none."""
    if len(value.shape) > len(shape):
        return value
    one = steps.view("reshape", value, (1,) * len(lead) + shape, (1,) * len(lead) + shape)
    return steps.view("broadcast", one, lead + shape, lead + shape)


def _recorded(
    templates: Templates, node: Node, args: list[Value], simple: dict[Any, Any], opaque: set[Any], lead: Shape = ()
) -> Value:
    """What one operation gives: its `impl` on traces, or a call of it as it stands."""
    recorder, primitive = templates.recorder, node.primitive
    steps = recorder.steps
    params = node.params
    if not primitive.pointwise:
        params = {**params, "ranks": tuple([len(arg.type.shape) for arg in node.args])}
    dtype = recorder.numpy.kind_type(node.type.kind)
    assert primitive.impl is not None
    if primitive not in opaque:
        before = len(steps.ops)
        value = templates.value(node, args) if primitive.pointwise else None
        if value is None:
            try:
                made = primitive.impl(recorder, *[Trace(recorder, arg) for arg in args], **params)
            except (Unrecordable, Unavailable, TypeError, AttributeError):
                made = None
            value = filled(steps, made.value, node.type.shape) if type(made) is Trace else None
        if value is not None and value.shape == lead + node.type.shape and value.dtype == dtype:
            if len(steps.ops) == before + 1 and not params and steps.ops[-1].kind == "entry":
                op = steps.ops[-1]
                if list(op.args) == args:
                    simple[primitive] = op.function
            return value
        opaque.add(primitive)
    return steps.call(
        Whole(primitive.impl, recorder.numpy, params), _key(node, params), tuple(args), lead + node.type.shape, dtype
    )


class Whole:
    """An `impl` with its namespace and parameters, which are a part of the step's key."""

    __slots__ = ("impl", "params", "xp")

    def __init__(self, impl: Callable[..., Any], xp: Any, params: dict[str, Any]) -> None:
        self.impl = impl
        self.xp = xp
        self.params = params

    def __call__(self, *xs: Any) -> Any:
        return self.impl(self.xp, *xs, **self.params)

    def __eq__(self, other: object) -> bool:
        return type(other) is Whole and self.impl is other.impl

    def __hash__(self) -> int:
        return hash(self.impl)


def _key(node: Node, params: dict[str, Any]) -> Any:
    return tuple(params.items())


def live(ops: list[Any], outputs: Sequence[Value]) -> list[Any]:
    """The steps that the outputs need, in order."""
    needed = {value.serial for value in outputs}
    kept = []
    for op in reversed(ops):
        if op.out.serial in needed:
            kept.append(op)
            needed.update([arg.serial for arg in op.args])
    kept.reverse()
    return kept
