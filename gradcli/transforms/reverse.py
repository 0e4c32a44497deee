"""Reverse mode: from outputs and their cotangents, the graph of the cotangents of the targets.

The sweep visits nodes in reverse topological order, so that a node passes its cotangent on only when all its
contributions have arrived. It reads the rules of the declarations and names no operation but `where`.

A branch that is not taken never touches the result. A cotangent that came through `where(c, a, b)` carries the mask
under which it counts. It is left alone while it passes entry by entry, and cleaned once, `where(mask, ct, 0)`,
where it is added to a cotangent with another mask, enters an operation that mixes entries, or arrives.
"""

from __future__ import annotations

from gradcli.graph.node import CONSTANT, Node, dependents, is_reader, reachable
from gradcli.graph.operand import Operand
from gradcli.transforms.flows import added, clean, groups_of
from gradcli.transforms.gathering import FEW, Parts, is_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from gradcli.graph.builder import Builder
    from gradcli.transforms.flows import Flow


def pull(builder: Builder, outputs: Sequence[tuple[Node, Node]], targets: Sequence[Node]) -> list[Node | None]:
    """The cotangents of `targets`, given (output, cotangent) pairs; None where no path leads to a target."""
    flows = sweep(builder, [(node, (ct, None)) for node, ct in outputs], targets, through=True)
    return [None if flow is None else clean(builder, flow) for flow in flows]


def between(outputs: Iterable[Node], stops: Iterable[Node]) -> list[Node]:
    """The nodes from `outputs` down to `stops` in topological order, nothing below a stop."""
    return reachable(outputs, frozenset(stops))


def placed(builder: Builder, outputs: Sequence[Node], places: dict[Node, Node]) -> list[Node]:
    """The same computation with some nodes replaced."""
    copies = dict(places)
    for node in between(outputs, places):
        if node in copies:
            continue
        args = tuple([copies[arg] for arg in node.args])
        copies[node] = node if args == node.args else builder.apply(node.primitive, args, node.params)
    return [copies[node] for node in outputs]


def sweep(
    builder: Builder,
    outputs: Sequence[tuple[Node, Flow]],
    targets: Sequence[Node],
    through: bool = False,
    observer: Callable[[Node, Flow, list[tuple[Node, Flow]]], object] | None = None,
    stops: Sequence[Node] = (),
) -> list[Flow | None]:
    """The cotangents that arrive at the targets, with their masks; `observer` sees each node as it passes its own on.

    Unless `through`, the walk ends at the targets and at `stops`: what lies below them is not looked at.
    """
    barrier = frozenset() if through else frozenset((*targets, *stops))
    order = between([node for node, _ in outputs], barrier)
    active = dependents(order, targets)
    wanted = frozenset(targets)
    arrived: dict[Node, Flow] = {}
    parts: dict[Node, Parts | None] = {}
    for node, flow in outputs:
        _add(builder, arrived, parts, node, flow)
    outer = builder.span
    loops = groups_of(order)
    for node in reversed(order):
        if not node.args or node not in active:
            continue
        if node in parts:
            _gather(builder, arrived, parts, node)
        # what has been passed on is forgotten, else the cotangents of all nodes would stay alive
        flow_here = arrived.get(node) if node in wanted else arrived.pop(node, None)
        if loops and node in loops:  # what reads one loop passes its cotangents on together
            group = loops[node]
            if flow_here is not None and node not in barrier:
                group.flows[node] = flow_here
            if node is not group.first or not group.flows:
                continue
            from gradcli.transforms.loops import pulled

            builder.span = node.span
            sent = pulled(builder, group.flows, active, sweep)
            if observer is not None:
                *others, node = group.flows
                for other in others:
                    observer(other, group.flows[other], [])
                observer(node, group.flows[node], sent)
        elif flow_here is None or node in barrier:
            continue
        else:
            builder.span = node.span
            sent = contributions(builder, node, flow_here, active)
            if observer is not None:
                observer(node, flow_here, sent)
        for arg, flow in sent:
            if arg in arrived:
                _add(builder, arrived, parts, arg, flow)
            else:
                arrived[arg] = flow
    builder.span = outer
    for target in targets:
        if target in parts:
            _gather(builder, arrived, parts, target)
    return [arrived.get(target) for target in targets]


def contributions(builder: Builder, node: Node, flow: Flow, active: set[Node]) -> list[tuple[Node, Flow]]:
    """What one node sends to its active arguments, given its own cotangent: the chain rule at this node."""
    primitive = node.primitive
    kind = primitive.kind
    if kind == "elementwise":
        assert primitive.partials is not None
        ct, mask = flow
        partials = primitive.partials(*node.args, out=node, **node.params)
        sent: list[tuple[Node, Flow]] = []
        for arg, partial in zip(node.args, partials, strict=True):
            if arg not in active or partial is None:
                continue
            if type(partial) is not Node:
                if partial == 1:
                    sent.append((arg, flow))
                elif not is_zero(partial):
                    sent.append((arg, (chain(builder, partial, ct), mask)))
            elif partial.primitive is not CONSTANT or partial.params["value"] != 0:
                sent.append((arg, (builder.apply(builder.vocabulary["mul"], (partial, ct), {}), mask)))
        return sent
    if kind == "linear":
        return _linear(builder, node, flow, active)
    if kind == "bilinear":
        return _bilinear(builder, node, flow, active)
    if kind == "structured":
        return _structured(builder, node, flow, active)
    if is_reader(node):
        from gradcli.transforms.loops import pulled

        return pulled(builder, {node: flow}, active, sweep)
    if kind == "composite":
        args = [arg for arg in dict.fromkeys(node.args) if arg in active]
        inner = builder.expanded(node)
        flows = sweep(builder, [(inner, flow)], args, stops=node.args)
        return [(arg, own) for arg, own in zip(args, flows, strict=True) if own is not None]
    return []


def chain(builder: Builder, partial: Any, ct: Node) -> Node:
    """The product of a partial derivative (a node or a number) and a cotangent or tangent."""
    if type(partial) is Node:
        return builder.apply(builder.vocabulary["mul"], (partial, ct), {})
    if isinstance(partial, Operand):
        return builder.call("mul", partial, ct)
    if partial == 1:
        return ct
    if partial == -1:
        return builder.call("neg", ct)
    return builder.call("mul", ct, partial)


def is_zero(partial: Any) -> bool:
    """Whether a partial derivative, a node or a number, is the constant 0."""
    if type(partial) is Node:
        return partial.primitive is CONSTANT and bool(partial.params["value"] == 0)
    return not isinstance(partial, Operand) and bool(partial == 0)


def _linear(builder: Builder, node: Node, flow: Flow, active: set[Node]) -> list[tuple[Node, Flow]]:
    primitive, (ct, mask) = node.primitive, flow
    if primitive.name == "where":
        condition, chosen, other = node.args
        sent: list[tuple[Node, Flow]] = []
        if chosen in active:
            sent.append((chosen, (ct, _both(builder, mask, condition))))
        if other in active:
            sent.append((other, (ct, _both(builder, mask, builder.call("not", condition)))))
        return sent
    if not primitive.pointwise:
        ct = clean(builder, flow)
    sent = []
    for position, arg in enumerate(node.args):
        rule = primitive.linear_in(position)
        if arg in active and rule is not None:
            sent.append((arg, (_transposed(node, position, ct), _mask_below(builder, node, position, mask))))
    return sent


def _transposed(node: Node, position: int, ct: Node) -> Node:
    """The transpose in one argument; operations with any number of arguments have one rule for all of them."""
    transpose = node.primitive.transpose
    if callable(transpose):
        moved: Node = transpose(ct, *node.args, position=position, **node.params)
    else:
        assert transpose is not None
        moved = transpose[position](ct, *node.args, **node.params)
    return moved


def _mask_below(builder: Builder, node: Node, position: int, mask: Node | None) -> Node | None:
    """The mask of an argument of a linear operation: the entries that reach an entry that counts."""
    if mask is None or node.primitive.pointwise:
        return mask
    reach = _transposed(node, position, builder.call("cast", mask, kind="float"))
    return builder.call("not_equal", reach, 0)


def _bilinear(builder: Builder, node: Node, flow: Flow, active: set[Node]) -> list[tuple[Node, Flow]]:
    mask = flow[1]
    ct = clean(builder, flow)
    x, y = node.args
    masks: list[Node | None] = [None, None]
    rules = [node.primitive.linear_in(0), node.primitive.linear_in(1)]
    if mask is not None:
        # an argument's entry counts where some entry of the result that counts reads it
        counts = builder.call("cast", mask, kind="float")
        ones = [builder.constant(1, x.shape), builder.constant(1, y.shape)]
        masks = [builder.call("not_equal", rule(counts, *ones, **node.params), 0) for rule in rules if rule is not None]
        x, y = clean(builder, (x, masks[0])), clean(builder, (y, masks[1]))
    return [
        (arg, (rule(ct, x, y, **node.params), masks[position]))
        for position, (arg, rule) in enumerate(zip(node.args, rules, strict=True))
        if arg in active and rule is not None
    ]


def _structured(builder: Builder, node: Node, flow: Flow, active: set[Node]) -> list[tuple[Node, Flow]]:
    primitive, mask = node.primitive, flow[1]
    ct = clean(builder, flow)
    sent: list[tuple[Node, Flow]] = []
    for position, arg in enumerate(node.args):
        if arg not in active:
            continue
        if primitive.linear_in(position) is not None:
            back: Node | None = _transposed(node, position, ct)
        else:
            push = primitive.pushforward[position] if primitive.pushforward is not None else None
            if push is None:
                continue
            tangent = builder.fresh_leaf(arg.type)
            pushed = push(tangent, *node.args, out=node, **node.params)
            stops = (node, *node.args)  # else every node of a program would be walked for each such operation
            flow_back = sweep(builder, [(pushed, (ct, None))], [tangent], stops=stops)[0]
            back = None if flow_back is None else clean(builder, flow_back)
        if back is not None:
            sent.append((arg, (back, _whole_mask(builder, mask, arg))))
    return sent


def _whole_mask(builder: Builder, mask: Node | None, arg: Node) -> Node | None:
    """An operand of a structured operation counts as a whole where any entry of the result counts."""
    if mask is None:
        return None
    total = builder.call("cast", mask, kind="float")
    if mask.shape:
        total = builder.call("sum", total, axis=tuple(range(-len(mask.shape), 0)))
    return builder.call("not_equal", spread(builder, total, arg.shape), 0)


def spread(builder: Builder, scalar: Node, shape: tuple[int, ...]) -> Node:
    """A scalar repeated over a shape."""
    if not shape:
        return scalar
    ones = builder.call("reshape", scalar, shape=(1,) * len(shape))
    return builder.call("broadcast", ones, shape=shape)


def _both(builder: Builder, mask: Node | None, condition: Node) -> Node:
    return condition if mask is None else builder.call("and", mask, condition)


def _add(builder: Builder, arrived: dict[Node, Flow], parts: dict[Node, Parts | None], node: Node, flow: Flow) -> None:
    """Accumulate: cotangents with one mask add up under it; others are cleaned first and count where either does.

    Many small parts of an array are kept, to be gathered when all have come; until then what has arrived lacks them.
    """
    known = arrived.get(node)
    if known is None:
        arrived[node] = flow
        return
    if node.type.shape:
        if is_part(flow):
            if node not in parts:
                parts[node] = Parts(None, [known]) if is_part(known) else Parts(known, [])
            kept = parts[node]
            if kept is not None and kept.take(flow):
                return
            if kept is not None and len(kept.parts) > FEW:
                parts[node] = None  # parts as large as these are added up as arrays
        elif node in parts:
            _gather(builder, arrived, parts, node)
            known = arrived[node]
    arrived[node] = added(builder, known, flow)


def _gather(builder: Builder, arrived: dict[Node, Flow], parts: dict[Node, Parts | None], node: Node) -> None:
    """Put the parts that were kept into what has arrived."""
    kept = parts.pop(node)
    if kept is None or len(kept.parts) <= FEW:
        return  # they are in there
    flows = kept.gathered(builder)
    total = flows[0]
    for flow in flows[1:]:
        total = added(builder, total, flow)
    arrived[node] = total
