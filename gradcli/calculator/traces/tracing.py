"""The forward and the backward pass of a program at a point, step by step: which node sends what, and the sums.

The backward steps are those of reverse mode itself, observed while it builds the gradient. On request the naive walk
is shown beside it: depth-first, passing a cotangent on before all of it has arrived.
"""

from __future__ import annotations

from gradcli.base.results.calculations import BackwardStep, Contribution, ForwardStep, NaiveTrace, Passes, Trace
from gradcli.calculator.traces.folding import Folding
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import CONSTANT, DATA, LEAF, dependents, is_reader
from gradcli.graph.node_text import formulas, is_default, reader_params, step_names
from gradcli.transforms.masks import clean
from gradcli.transforms.reverse import sweep
from gradcli.transforms.rules import contributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.calculator.traces.folding import Route
    from gradcli.calculator.traces.local_partials import LocalFormula
    from gradcli.graph.node import Builder, Node
    from gradcli.lowering import Lowered
    from gradcli.transforms.masks import Cotangent

    Sent = list[tuple[Node, Cotangent]]

LONGEST_OPERAND = 24  # characters of a formula inside another
MOST_NAIVE_STEPS = 200  # the naive walk visits a node once per path, and paths multiply


class Tracer:
    """The lowered script whose output is a scalar, its leaves `names` with their values, and how floats are computed.

    `iterations` are the iterations of loops that nodes belong to.
    """

    def __init__(
        self,
        lowered: Lowered,
        names: Sequence[str],
        values: Mapping[str, Any],
        dtype: str,
        backend: str,
        iterations: Mapping[Node, int] | None = None,
    ) -> None:
        self.lowered, self.names, self.values = lowered, names, values
        self.dtype, self.backend, self.iterations = dtype, backend, iterations or {}
        program = lowered.program
        self.output = program.outputs[0]
        self.order = program.nodes()
        self.index = {node: position for position, node in enumerate(self.order)}
        self.targets = [program.leaves[name].node for name in names]
        self.known: Mapping[Node, Any] = {}

    def trace(
        self,
        at: dict[str, Any],
        diagnostics: tuple[Diagnostic, ...] = (),
        *,
        why_topo: bool = False,
        fold: bool = False,
        symbolic: bool = False,
    ) -> Trace:
        """Both passes; with `fold`, beside them those without inserted nodes, with `why_topo` also the naive walk.

        With `symbolic` local partials are formulas too. `at` and `diagnostics` are what the trace says of the point.
        """
        seen: list[tuple[Node, Cotangent, Sent]] = []
        output, order, index, targets = self.output, self.order, self.index, self.targets
        with building(self.lowered.program.builder, order) as builder:
            flows = sweep(
                builder,
                [(output, (builder.constant(1, output.type.shape), None))],
                targets,
                through=True,
                observer=lambda node, flow, sent: seen.append((node, flow, sent)),
            )
            zeros = [builder.constant(0, target.type.shape) for target in targets]
            pairs = zip(flows, zeros, strict=True)
            gradients = [zero if flow is None else clean(builder, flow) for flow, zero in pairs]
            folding = Folding(order if fold else (), output)
            active = dependents(order, targets)
            steps = [_Step(builder, index, node, flow, _direct(sent)) for node, flow, sent in seen]
            folded = list(_folded(builder, folding, index, seen, active)) if folding.inserted else []
            for step in steps if symbolic else ():
                step.find_formulas(builder, Folding(()), order, active)
            for step in folded if symbolic else ():
                step.find_formulas(builder, folding, order, active)
        tape = Tape([*order, *gradients, *(node for step in (*steps, *folded) for node in step.needed())])
        self.known = known = tape.run_all(self.values, backend=self.backend, dtype=self.dtype)
        gradient = {name: known[node] for name, node in zip(self.names, gradients, strict=True)}
        naive = self._naive(steps, Folding(())) if why_topo else None
        written = None
        if folding.inserted:
            kept = [node for node in order if node not in folding.inserted]
            shown = {node: index[folding.stands_for(node)] for node in order}
            written = Passes(
                self._forward(kept, shown, folding.ends),
                _backward(folded, known, _operand_texts(shown, self.lowered)),
                self._naive(folded, folding) if why_topo else None,
            )
        forward = self._forward(order, index, {}, folding.inserted)
        backward = _backward(steps, known, _operand_texts(index, self.lowered))
        return Trace(self.lowered.text, at, known[output], forward, backward, gradient, naive, diagnostics, written)

    def _forward(
        self,
        order: Sequence[Node],
        shown: Mapping[Node, int],
        ends: Mapping[Node, Node],
        inserted: Collection[Node] = (),
    ) -> tuple[ForwardStep, ...]:
        """The steps forward of some nodes; `shown` are the numbers by which they name what they read."""
        texts = formulas(sorted(shown, key=self.index.__getitem__), step_names(shown), self.lowered.names)
        steps = []
        for node in order:
            end = ends.get(node, node)
            steps.append(
                ForwardStep(
                    self.index[node],
                    node.primitive.name,
                    tuple(shown[arg] for arg in node.args),
                    end.type.text(self.dtype),
                    self.known[end],
                    texts[end],
                    node.span,
                    dict(reader_params(node) if is_reader(node) else node.params),
                    torch_name(node),
                    node in inserted,
                    self.iterations.get(node),
                )
            )
        return tuple(steps)

    def _naive(self, written: Sequence[_Step], folding: Folding) -> NaiveTrace:
        """Depth-first: whatever has arrived at a node so far is passed on at once, and again when more arrives.

        `written` are the steps that end with the right sums.
        """
        builder, index, order = self.lowered.program.builder, self.index, self.order
        active = dependents(order, self.targets)
        right = {step.node: self.known[step.cotangent] for step in written}
        start = folding.cores.get(self.output, self.output)
        held: dict[Node, Any] = {start: 1.0}
        tapes: dict[Node, tuple[list[Node], str, Tape] | None] = {}
        steps: list[BackwardStep] = []
        parts_at: int | None = None
        pending = [_Visit(start)]
        while pending and len(steps) < MOST_NAIVE_STEPS:
            visit = pending[-1]
            node = visit.node
            if node not in tapes:
                tapes[node] = _local_tape(builder, node, order, active, folding)
            local = tapes[node]
            if local is None:
                pending.pop()
                continue
            receivers, seed, tape = local
            if visit.position == 0:
                visit.held = held[node]
                visit.sent = tape.run({**self.values, seed: visit.held}, backend="auto", dtype=self.dtype)
                if parts_at is None and not _same(visit.held, right.get(node)):
                    parts_at = len(steps)
                visit.step = len(steps)
                steps.append(BackwardStep(index[node], node.primitive.name, visit.held, ()))
            if visit.position == len(receivers):
                pending.pop()
                continue
            arg, value = receivers[visit.position], visit.sent[visit.position]
            visit.position += 1
            held[arg] = value if arg not in held else held[arg] + value
            step = steps[visit.step]
            passed = (*step.contributions, Contribution(index[arg], None, value, held[arg]))
            steps[visit.step] = BackwardStep(step.index, step.primitive, step.cotangent, passed)
            pending.append(_Visit(arg))
        gradient = {name: held.get(target, 0.0) for name, target in zip(self.names, self.targets, strict=True)}
        return NaiveTrace(tuple(steps), parts_at, gradient)


def _operand_texts(shown: Mapping[Node, int], lowered: Lowered) -> Callable[[Node], str]:
    """How formulas call an operand: by its name, its own formula where that is short, or as a step."""
    texts = formulas(sorted(shown, key=lambda node: node.serial), step_names(shown), lowered.names)

    def text(node: Node) -> str:
        own = lowered.names.get(node) or texts[node]
        return own if not node.args or len(own) <= LONGEST_OPERAND else f"v{shown[node]}"

    return text


def _backward(
    steps: Sequence[_Step], known: Mapping[Node, Any], text: Callable[[Node], str]
) -> tuple[BackwardStep, ...]:
    """The steps backward with their numbers, in order: a receiver's sum grows from step to step."""
    sums: dict[int, Any] = {}
    return tuple(step.result(known, sums, text) for step in steps)


def torch_name(node: Node) -> str:
    """PyTorch's name of a node; a constant has none there."""
    if node.primitive is LEAF:
        return "AccumulateGrad"
    if node.primitive in (CONSTANT, DATA):
        return "constant"
    return node.primitive.node_name({name: value for name, value in node.params.items() if not is_default(node, value)})


def in_torch_names(trace: Trace) -> Trace:
    """The same trace with PyTorch's names of the nodes."""
    names = {step.index: step.torch for step in trace.forward}

    def named(steps: Sequence[BackwardStep]) -> tuple[BackwardStep, ...]:
        return tuple(BackwardStep(step.index, names[step.index], step.cotangent, step.contributions) for step in steps)

    def passes(part: Trace | Passes) -> Passes:
        forward = tuple(
            ForwardStep(step.index, step.torch if step.inputs else step.primitive, step.inputs, step.type, step.value,
                        step.text, step.span, {}, step.torch, step.inserted, step.iteration)
            for step in part.forward
        )  # fmt: skip
        naive = part.naive
        if naive is not None:
            naive = NaiveTrace(named(naive.steps), naive.parts_at, naive.gradient)
        return Passes(forward, named(part.backward), naive)

    whole, written = passes(trace), None if trace.written is None else passes(trace.written)
    return Trace(
        trace.expression, trace.at, trace.value, whole.forward, whole.backward, trace.gradient, whole.naive,
        trace.diagnostics, written,
    )  # fmt: skip


def _folded(
    builder: Builder,
    folding: Folding,
    index: Mapping[Node, int],
    seen: Sequence[tuple[Node, Cotangent, Sent]],
    active: set[Node],
) -> Iterator[_Step]:
    """The steps backward of the nodes that the script wrote."""
    flows = {node: flow for node, flow, _ in seen}
    for node, flow, sent in seen:
        if node not in folding.inserted:
            routes = [folding.route(builder, arg, own, active) for arg, own in sent]
            arrived = flows.get(folding.ends.get(node, node), flow)
            yield _Step(builder, index, node, arrived, [route for route in routes if route is not None])


def _direct(sent: Sent) -> list[Route]:
    """Routes that end at the operands themselves."""
    return [(arg, arg, flow, lambda partial: (partial, False)) for arg, flow in sent]


class _Step:
    """One node of the backward pass: the nodes whose values its line shows."""

    __slots__ = ("cotangent", "formulas", "index", "node", "partials", "sent")

    def __init__(
        self, builder: Builder, index: Mapping[Node, int], node: Node, flow: Cotangent, routes: Sequence[Route]
    ) -> None:
        self.node = node
        self.index = index
        self.cotangent = clean(builder, flow)
        partials = _partials(builder, node)
        left = list(enumerate(node.args))
        self.sent: list[tuple[Node, Node | None, Node, bool]] = []
        self.partials: list[Node | None] = []  # as the operation has them, for each of `sent`
        self.formulas: list[LocalFormula | None] = []
        for arg, to, sent_flow, carry in routes:
            position = next((i for i, other in left if other is arg), None)
            left = [(i, other) for i, other in left if i != position]
            partial = partials[position] if partials is not None and position is not None else None
            moved, summed = (None, False) if partial is None else carry(partial)
            self.sent.append((to, moved, clean(builder, sent_flow), summed))
            self.partials.append(partial)
        self.formulas = [None] * len(self.sent)

    def find_formulas(self, builder: Builder, folding: Folding, order: Sequence[Node], active: set[Node]) -> None:
        """The formulas of the local partials; of an operation that mixes entries those of what it sends."""
        from gradcli.calculator.traces.local_partials import local_formula

        operands = [folding.operand(arg) for arg in self.node.args]
        if any(self.partials):
            texts = [None if partial is None else local_formula(partial, operands) for partial in self.partials]
        elif self.sent:
            local = _local_sends(builder, self.node, order, active, folding)
            texts = [] if local is None else [local_formula(sent, operands, local[1]) for sent in local[2]]
        self.formulas = texts if self.sent and len(texts) == len(self.sent) else self.formulas

    def needed(self) -> list[Node]:
        """The nodes to evaluate."""
        partials = [partial for _, partial, _, _ in self.sent if partial is not None]
        return [self.cotangent, *partials, *(value for _, _, value, _ in self.sent)]

    def result(self, known: Mapping[Node, Any], sums: dict[int, Any], text: Callable[[Node], str]) -> BackwardStep:
        """The step with its numbers; `sums` holds what each node has received so far, `text` names operands."""
        sent = []
        for (receiver, partial, value, summed), formula in zip(self.sent, self.formulas, strict=True):
            to = self.index[receiver]
            sums[to] = known[value] if to not in sums else sums[to] + known[value]
            number = None if partial is None else known[partial]
            shown = (
                "" if formula is None or not (number is None or formula.holds(known, number)) else formula.shown(text)
            )
            sent.append(Contribution(to, number, known[value], sums[to], summed, shown))
        return BackwardStep(self.index[self.node], self.node.primitive.name, known[self.cotangent], tuple(sent))


def _partials(builder: Builder, node: Node) -> list[Node | None] | None:
    """The local partials of an operation on entries, as nodes; None for operations that mix entries."""
    if node.primitive.kind != "elementwise" or node.primitive.partials is None:
        return None
    raw = node.primitive.partials(*node.args, out=node, **node.params)
    shape = node.type.shape
    return [
        None if partial is None else builder.bind(builder.vocabulary["add"], (partial, builder.constant(0, shape)), {})
        for partial in raw
    ]


class _Visit:
    """A node on the stack of the naive walk, and how far it has got."""

    __slots__ = ("held", "node", "position", "sent", "step")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.position = 0
        self.held: Any = None
        self.sent: Any = None
        self.step = 0


def _local_sends(
    builder: Builder, node: Node, order: Sequence[Node], active: set[Node], folding: Folding
) -> tuple[list[Node], Node, list[Node]] | None:
    """What one node sends for a cotangent that is an input: the receivers, that input, and what each is sent."""
    if not node.args or node not in active:
        return None
    with building(builder, order):
        at = folding.ends.get(node, node)
        ct = builder.fresh_leaf(at.type)
        flow: Cotangent = (ct, None)
        while at is not node:
            ((at, flow),) = contributions(builder, {at: flow}, active, sweep)
        sent = contributions(builder, {node: flow}, active, sweep)
        routes = [route for arg, own in sent if (route := folding.route(builder, arg, own, active)) is not None]
        outputs = [clean(builder, own) for _, _, own, _ in routes]
    return ([to for _, to, _, _ in routes], ct, outputs) if routes else None


def _local_tape(
    builder: Builder, node: Node, order: Sequence[Node], active: set[Node], folding: Folding
) -> tuple[list[Node], str, Tape] | None:
    """The same as a computation, with the name of its input."""
    local = _local_sends(builder, node, order, active, folding)
    return None if local is None else (local[0], local[1].params["name"], Tape(local[2]))


def _same(value: Any, other: Any) -> bool:
    if other is None:
        return False
    equal = value == other
    return bool(equal.all()) if hasattr(equal, "all") else bool(equal)
