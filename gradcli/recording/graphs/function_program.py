"""Functions of PyTorch, JAX or gradcli's tensors as programs, which every oracle and every command can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import Span, error
from gradcli.eager import _trace as ours
from gradcli.eager._core.tensor import Tensor
from gradcli.graph.program import HandRule, Leaf, cotangent_name
from gradcli.recording.calls.box import Defined, backward_of, boxed, function_name, opened
from gradcli.recording.calls.failures import Failed
from gradcli.recording.calls.gradient_libraries import is_function_class
from gradcli.recording.graphs.operations import Opaque
from gradcli.recording.graphs.traced_rule import is_rule, traced_rule
from gradcli.transforms.handwritten import by_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Node
    from gradcli.recording.graphs.traced_rule import TracedRule

SECONDS = 60.0  # within which the function is called and traced


def record(f: Callable[..., Any], *example: Any) -> ours.TracedProgram:
    """The graph of a function, at the types of an example of tensors of PyTorch, arrays of JAX, or gradcli's tensors.

    Its leaves are named like the arguments. A `torch.autograd.Function`, a `jax.custom_vjp` or `custom_jvp` becomes an
    operation whose derivative is what its author wrote, and `rules` lists these derivatives. Of any other function of
    PyTorch or JAX the graph is that of its values, which does not show what it detaches. Functions of gradcli's tensors
    are recorded as `gradcli.eager.record` does it.

    Raises GradcliError GC732 for what cannot be traced, such as branches on values, and says what it is.

    >>> import gradcli
    >>> from gradcli.execution.evaluate import evaluate
    >>> program = gradcli.record(lambda x: x * x, gradcli.eager.tensor(3.0))
    >>> evaluate(program, {"x": 5.0})
    [25.0]
    """
    if all(isinstance(x, Tensor) for x in example):
        return ours.record(f, *example)
    owner: Any = getattr(f, "__self__", None)
    f = owner if is_function_class(owner) else f  # of `LayerNorm.apply` the names are those of `forward`
    with boxed(f, at=example, timeout=SECONDS) as box:
        try:
            box, _ = opened(box)
            rule = traced_rule(box, 0)
        except (Failed, Opaque) as problem:
            raise error(
                "GC732", f"{function_name(f)} cannot be recorded: {getattr(problem, 'reason', problem)}"
            ) from None
    if rule is None:
        raise error("GC732", f"{function_name(f)} cannot be recorded: it takes neither PyTorch tensors nor JAX arrays")
    leaves = {name: leaf for name, leaf in rule.program.leaves.items() if name in rule.gradients}
    if not is_rule(f):
        return with_rules(ours.TracedProgram(rule.program.builder, leaves, rule.outputs), ())
    nodes = [leaf.node for leaf in leaves.values()]
    outputs, rules = list(rule.outputs), []
    for number, (place, cotangent) in enumerate(rule.cotangents.items()):
        title = f"{function_name(f)}#{number + 1}" if number else function_name(f)
        outputs[place] = operation(title, rule, nodes, place)
        rules.append(judged(title, f, rule, leaves, place, cotangent))
    return with_rules(ours.TracedProgram(rule.program.builder, leaves, outputs), rules)


def with_rules(program: ours.TracedProgram, rules: Sequence[HandRule]) -> ours.TracedProgram:
    """A program with the rules inside it."""
    program.guards, program.rules = (), tuple(rules)
    return program


def sent(rule: TracedRule, place: int, operands: dict[Node, Node], ct: Node) -> list[Node]:
    """What backward sends to each operand, for a cotangent of one result and zeros of the others."""
    builder = ct.builder
    zeros = {arriving: builder.constant(0, arriving.type.shape) for arriving in rule.cotangents.values()}
    filled = {**operands, **zeros, rule.cotangents[place]: ct}
    return builder.substituted(list(rule.gradients.values()), filled)


def operation(name: str, rule: TracedRule, nodes: Sequence[Node], place: int) -> Node:
    """One result of a rule, as an operation on its arguments."""

    def cotangents(value: Node, xs: Sequence[Node], ct: Node) -> list[Node]:
        return sent(rule, place, dict(zip(nodes, xs, strict=True)), ct)

    primitive = by_hand(name, f"The function {name}, with its hand-written rule.", len(nodes), cotangents)
    return rule.program.builder.apply(primitive, (rule.outputs[place], *nodes), {})


def judged(title: str, f: Any, rule: TracedRule, arguments: dict[str, Leaf], place: int, cotangent: Node) -> HandRule:
    """The rule of one result on inputs of its own, for the oracles."""
    builder = rule.program.builder
    leaves = {name: Leaf(name, builder.leaf(f"{title}.{name}", x.node.type.shape)) for name, x in arguments.items()}
    operands = {x.node: leaves[name].node for name, x in arguments.items()}
    ct = builder.leaf(f"{title}.{cotangent_name([*leaves])}", cotangent.type.shape)
    (output,) = builder.substituted([rule.outputs[place]], dict(operands))
    results = tuple(sent(rule, place, operands, ct))
    line = Defined.of(backward_of(f) or f).line or 1
    args = tuple(leaf.node for leaf in arguments.values())
    return HandRule(title, Span(line, 1, line, 1), tuple(leaves.values()), output, ct, results, args, file_of(f))


def file_of(f: Any) -> str:
    """The file that a function stands in."""
    inner = f.forward if is_function_class(f) else getattr(f, "__wrapped__", f)
    return str(inner.__code__.co_filename)
