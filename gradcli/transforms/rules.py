"""What a node passes on in reverse mode: the chain rule at one node, read from its declaration.

A declaration says it in one of five ways: by local partials (elementwise), by the transpose of a linear map, by
products with the other operand (bilinear), by forward mode, transposed (structured), or by a definition in other
operations (composite).
"""

from __future__ import annotations

from gradcli.graph import vocabulary
from gradcli.graph.node import CONSTANT, Node, is_reader
from gradcli.graph.primitive import Operand
from gradcli.transforms.masks import below_bilinear, below_linear, both, clean, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gradcli.graph.node import Builder
    from gradcli.transforms.masks import Cotangent

    Sent = list[tuple[Node, Cotangent]]
    Sweep = Callable[..., list[Cotangent | None]]


def contributions(builder: Builder, passing: Mapping[Node, Cotangent], active: set[Node], sweep: Sweep) -> Sent:
    """What a node sends to its active arguments, given its own cotangent; the readers of one loop send together.

    `sweep` is reverse mode itself, for definitions and bodies of loops.
    """
    ((node, cotangent), *_) = passing.items()
    kind = node.primitive.kind
    if kind == "elementwise":
        return _elementwise(builder, node, cotangent, active)
    if kind == "linear":
        return _linear(builder, node, cotangent, active)
    if kind == "bilinear":
        return _bilinear(builder, node, cotangent, active)
    if kind == "structured":
        return _structured(builder, node, cotangent, active, sweep)
    if is_reader(node):
        from gradcli.transforms.loop_derivatives import pulled

        return pulled(builder, passing, active, sweep)
    if kind == "composite":
        args = [arg for arg in dict.fromkeys(node.args) if arg in active]
        arrived = sweep(builder, [(builder.expanded(node), cotangent)], args, stops=node.args)
        return [(arg, own) for arg, own in zip(args, arrived, strict=True) if own is not None]
    return []


def _elementwise(builder: Builder, node: Node, cotangent: Cotangent, active: set[Node]) -> Sent:
    assert node.primitive.partials is not None
    ct, mask = cotangent
    partials = node.primitive.partials(*node.args, out=node, **node.params)
    return [
        (arg, (chain(builder, partial, ct), mask))
        for arg, partial in zip(node.args, partials, strict=True)
        if arg in active and partial is not None and not is_zero(partial)
    ]


def chain(builder: Builder, partial: Any, ct: Node) -> Node:
    """The product of a partial derivative (a node or a number) and a cotangent or tangent."""
    if type(partial) is Node:
        return builder.apply(builder.vocabulary["mul"], (partial, ct), {})
    if isinstance(partial, Operand):
        return builder.call("mul", partial, ct)
    if partial == 1:
        return ct
    if partial == -1:
        return -ct
    return builder.call("mul", ct, partial)


def is_zero(partial: Any) -> bool:
    """Whether a partial derivative, a node or a number, is the constant 0."""
    if type(partial) is Node:
        return partial.primitive is CONSTANT and bool(partial.params["value"] == 0)
    return not isinstance(partial, Operand) and bool(partial == 0)


def _linear(builder: Builder, node: Node, cotangent: Cotangent, active: set[Node]) -> Sent:
    primitive, (ct, mask) = node.primitive, cotangent
    if primitive.name == "where":  # what is not chosen is masked, not multiplied by 0
        condition, chosen, other = node.args
        sent: Sent = []
        if chosen in active:
            sent.append((chosen, (ct, both(builder, mask, condition))))
        if other in active:
            sent.append((other, (ct, both(builder, mask, vocabulary.opposite(condition)))))
        return sent
    if not primitive.pointwise:
        ct = clean(builder, cotangent)
    return [
        (arg, (transpose(ct, *node.args, **node.params), below_linear(builder, node, transpose, mask)))
        for position, arg in enumerate(node.args)
        if arg in active and (transpose := primitive.linear_in(position)) is not None
    ]


def _bilinear(builder: Builder, node: Node, cotangent: Cotangent, active: set[Node]) -> Sent:
    rules = [node.primitive.linear_in(0), node.primitive.linear_in(1)]
    ct = clean(builder, cotangent)
    masks = below_bilinear(builder, node, cotangent[1])
    x, y = [clean(builder, (arg, mask)) for arg, mask in zip(node.args, masks, strict=True)]
    return [
        (arg, (rule(ct, x, y, **node.params), mask))
        for arg, rule, mask in zip(node.args, rules, masks, strict=True)
        if arg in active and rule is not None
    ]


def _structured(builder: Builder, node: Node, cotangent: Cotangent, active: set[Node], sweep: Sweep) -> Sent:
    primitive, ct = node.primitive, clean(builder, cotangent)
    sent: Sent = []
    for position, arg in enumerate(node.args):
        if arg not in active:
            continue
        transpose = primitive.linear_in(position)
        if transpose is not None:
            sent.append((arg, (transpose(ct, *node.args, **node.params), whole(builder, cotangent[1], arg))))
            continue
        push = primitive.pushforward[position] if primitive.pushforward is not None else None
        if push is None:
            continue
        tangent = builder.fresh_leaf(arg.type)
        pushed = push(tangent, *node.args, out=node, **node.params)
        stops = (node, *node.args)  # else every node of a program would be walked for each such operation
        (back,) = sweep(builder, [(pushed, (ct, None))], [tangent], stops=stops)
        if back is not None:
            sent.append((arg, (clean(builder, back), whole(builder, cotangent[1], arg))))
    return sent
