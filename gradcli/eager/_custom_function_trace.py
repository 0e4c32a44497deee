"""Recording of a `Function` with its own backward: the hand-written rule becomes part of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.diagnostics import Span
from gradcli.eager._core import modes
from gradcli.eager._core.modes import line_of, ours
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._ops.joining import cat
from gradcli.eager._trace import HELD, Paths, names_of, placed
from gradcli.eager.autograd._context import Context, FunctionNode, class_of
from gradcli.graph.node import LEAF, Node
from gradcli.graph.program import HandRule, Leaf
from gradcli.transforms.handwritten import by_hand
from gradcli.transforms.reverse import between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager._trace import Trace
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

MOST = 16  # rules of one program
ARRIVING = 37 / 32  # stands for the gradient that arrives, where a Function is called inside a backward


def note(form: Form, row: Node, back: Sequence[Node]) -> None:
    """Keep a rule: `row` and `back` are its forward and backward on the form's leaves."""
    trace = form.trace
    key = (form.owner, tuple(node.type for node in form.operands), *[str(x) for x in form.args if not _is_tensor(x)])
    if key in trace.judged or len(trace.rules) >= MOST:
        return
    trace.judged.add(key)
    builder = trace.builder
    known = _operands(form)
    floats = [k for k, leaf in enumerate(form.live) if leaf.type.kind == "float"]
    same = sum(1 for one in trace.rules if one.name.partition("#")[0] == form.name)
    title = f"{form.name}#{same + 1}" if same else form.name
    leaves = [Leaf(own, builder.leaf(f"{title}.{own}", form.live[k].type.shape)) for k, own in _names(form, floats)]
    given = {k: leaf.node for k, leaf in zip(floats, leaves, strict=True)}
    filled: dict[Node, Node] = {}
    for k, (live, held) in enumerate(zip(form.live, form.held, strict=True)):
        filled[live] = filled[held] = given.get(k, known[k])
    (output,) = placed(builder, [row], filled)
    ct = builder.leaf(f"{title}.ct", output.type.shape)
    assert form.made is not None and form.arriving is not None
    results = placed(builder, [back[k] for k in floats], {**filled, form.made: output, form.arriving: ct})
    file, first = _defined(form.owner)
    lines = [line_of(trace.lines.get(back[k])) for k in floats]
    trace.rules.append(
        HandRule(
            title,
            Span(first, 1, first, 1),
            tuple(leaves),
            output,
            ct,
            tuple(results),
            tuple([known[k] for k in floats]),
            file,
            tuple([line if name == file and line else first for name, line in lines]),
        )
    )


def _operands(form: Form) -> list[Node]:
    """The operands in terms of the program's inputs."""
    trace, builder = form.trace, form.trace.builder
    before = {leaf: trace.standing[leaf] for leaf in trace.standing}
    unknown = [leaf for leaf, stands in before.items() if stands is None]
    trace.standing.update({leaf: builder.constant(ARRIVING, leaf.type.shape) for leaf in unknown})
    try:
        found = trace.outermost(form.operands)
    finally:
        trace.standing.update(before)
    return [x if one is None else one for one, x in zip(found, form.operands, strict=True)]


def _names(form: Form, floats: Sequence[int]) -> list[tuple[int, str]]:
    """The operands that a rule is judged by, as forward calls them."""
    skipped = 1 if form.owner.setup_context is None else 0  # ctx
    names = names_of(form.owner.forward, len(form.args) + skipped)[skipped:]
    return [(k, names[form.moving[k]]) for k in floats]


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _defined(owner: Any) -> tuple[str | None, int]:
    """The file and the line in which a backward is written."""
    code = getattr(owner.way(), "__wrapped__", owner.way()).__code__
    return code.co_filename, code.co_firstlineno


def called(trace: Trace, owner: Any, args: tuple[Any, ...]) -> Any:
    """What `owner.apply(*args)` gives while `trace` records; RuntimeError where it reads entries of a stand-in."""
    if not trace.guarded:
        _may_be_mapped(owner)
    return Form(trace, owner, args).result()


def _may_be_mapped(owner: Any) -> None:
    """RuntimeError for a Function that PyTorch would not let through `vmap`."""
    if owner.setup_context is None:
        raise RuntimeError(f"{owner.__name__} needs a static method setup_context to be used in vmap and the like")
    if not getattr(owner, "generate_vmap_rule", False):
        raise RuntimeError(
            f"{owner.__name__} does not define how vmap maps it: set generate_vmap_rule = True in the class, "
            "so that its forward and backward are mapped as they are"
        )


class Answer(NamedTuple):
    """What a forward returned: its values, whether as a tuple, and which are what."""

    values: tuple[Any, ...]
    several: bool
    differentiable: list[int]
    dirty: dict[int, int]  # results that are arguments changed in place, and which

    def others(self) -> list[int]:
        """The tensors that have no gradient."""
        return [k for k, x in enumerate(self.values) if isinstance(x, Tensor) and k not in self.differentiable]

    def pieces(self, row: Node) -> list[Traced]:
        """The parts of a row, which has all results that have a gradient, as stand-ins in their shapes."""
        likes = [np.zeros(self.values[k]._raw.shape, self.values[k]._raw.dtype) for k in self.differentiable]
        if len(likes) == 1:
            return [Traced(likes[0], row)]
        found, start = [], 0
        whole: Any = Traced(np.zeros(row.type.shape, likes[0].dtype), row)
        for like in likes:
            piece = whole[start : start + like.size].reshape(like.shape)
            found.append(Traced(like, piece._graph))
            start += like.size
        return found


class Form:
    """One call: its forward and backward in terms of leaves of their own."""

    def __init__(self, trace: Trace, owner: Any, args: tuple[Any, ...]) -> None:
        self.trace, self.owner, self.args = trace, owner, args
        self.name = owner.__name__
        builder = trace.builder
        tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.moving = [i for i in tensors if type(args[i]) is Traced or args[i].requires_grad]
        self.operands = [trace.node_of(args[i]) for i in self.moving]
        types = [node.type for node in self.operands]
        self.held = [builder.fresh_leaf(one) for one in types]  # the operands while forward runs
        self.live = [builder.fresh_leaf(one) for one in types]  # and as backward finds them
        self.made: Node | None = None  # stands for the results, all in one row
        self.arriving: Node | None = None
        self.answer: Answer | None = None  # of the example's own way
        self.sent: set[int] = set()  # operands that backward sends something to
        for leaves in (self.held, self.live):
            trace.standing.update(zip(leaves, self.operands, strict=True))

    # --- forward and backward, once for each way through them ---------------------------------------------------

    def run(self) -> list[Node]:
        """The results that have a gradient in one row, the other results, and what is sent to each operand."""
        trace = self.trace
        given = list(self.args)
        for i, leaf in zip(self.moving, self.held, strict=True):
            given[i] = Traced(np.zeros(given[i]._raw.shape, given[i]._raw.dtype), leaf)
        context = Context()
        context._node = lambda: None
        context.needs_input_grad = tuple([i in self.moving and x.dtype.kind >= 2 for i, x in enumerate(self.args)])
        answer = self._stage("forward", self._forward, context, given)
        found = self._look(context, given, answer)
        self.answer = self.answer or found
        moved = [trace.lifted(found.values[k]) for k in found.differentiable]
        others = [trace.node_of(found.values[k]) for k in found.others()]
        if not moved:
            return others
        row = moved[0] if len(moved) == 1 else cat([x.reshape(-1) for x in moved])
        node = row._graph
        if self.made is None:
            self.made, self.arriving = trace.builder.fresh_leaf(node.type), trace.builder.fresh_leaf(node.type)
        assert self.arriving is not None
        trace.standing[self.made] = node  # in terms of the leaves, which stand for the operands
        trace.standing[self.arriving] = None
        for i, leaf in zip(self.moving, self.live, strict=True):
            given[i]._graph = leaf
        for k, one in zip(found.differentiable, found.pieces(self.made), strict=True):
            out = found.values[k]
            if type(out) is Traced and (k in found.dirty or not any(out is x for x in given)):
                out._graph = one._graph
        cts = dict(zip(found.differentiable, found.pieces(self.arriving), strict=True))
        sent = self._stage("backward", self._backward, context, found, cts)
        back = []
        for place, (leaf, ct) in enumerate(zip(self.live, sent, strict=True)):
            if ct is not None and leaf.type.kind == "float":
                self.sent.add(place)
            back.append(trace.builder.constant(0, leaf.type.shape) if ct is None else trace.node_of(ct))
        return [node, *others, *back]

    def _forward(self, context: Context, given: list[Any]) -> Any:
        with modes.no_grad():
            if self.owner.setup_context is None:
                return self.owner.forward(context, *given)
            answer = self.owner.forward(*given)
            self.owner.setup_context(context, tuple(given), answer)
            return answer

    def _backward(self, context: Context, found: Answer, cts: dict[int, Any]) -> list[Any]:
        """What backward sends to each operand, in its shape."""
        node: FunctionNode = object.__new__(class_of(self.owner))
        node.context, node.owner = context, self.owner
        node.slots = [(x._raw.shape, x._raw.dtype) if isinstance(x, Tensor) else None for x in self.args]
        given = [
            cts[k] if k in cts else Tensor(np.zeros(x._raw.shape, x._raw.dtype)) if isinstance(x, Tensor) else None
            for k, x in enumerate(found.values)
        ]
        with modes.enable_grad():
            sent = node.asked(given, True)
        places = [i for i, slot in enumerate(node.slots) if slot is not None]
        return [sent[places.index(i)] for i in self.moving]

    def _stage(self, what: str, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as problem:
            if type(problem) is not RuntimeError:
                raise
            raise RuntimeError(f"{self.name}.{what}{_innermost(problem)}: {problem}") from problem

    def _look(self, context: Context, given: list[Any], answer: Any) -> Answer:
        """Which results have a gradient, and which are operands that were changed in place."""
        values = answer if isinstance(answer, tuple) else (answer,)
        dirty = {
            k: i
            for k, out in enumerate(values)
            for i, x in enumerate(given)
            if out is x and any(x is one for one in context._dirty)
        }
        for i, leaf in zip(self.moving, self.held, strict=True):
            if given[i]._graph is not leaf and i not in dirty.values():
                raise RuntimeError("an argument is changed in place, but not marked with mark_dirty() and returned")
        tensors = [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.dtype.kind >= 2]
        differentiable = [k for k in tensors if not any(values[k] is one for one in context._fixed)]
        return Answer(values, isinstance(answer, tuple), differentiable, dirty)

    # --- the operation ------------------------------------------------------------------------------------------

    def result(self) -> Any:
        """What the call returns."""
        trace, builder = self.trace, self.trace.builder
        nodes = Paths(trace, self.run).joined()
        answer = self.answer
        assert answer is not None
        outer = self._outer(nodes)
        operands = [*self.operands, *outer]
        forward = dict(zip([*self.held, *outer], operands, strict=True))
        results: dict[int, Traced] = {}
        others = answer.others()
        if answer.differentiable:
            row, nodes, back = nodes[0], nodes[1:], nodes[1 + len(others) :]
            (value,) = placed(builder, [row], forward)
            node = builder.apply(self._operation(back, outer), (value, *operands), {})
            if not trace.aside:
                note(self, row, back)
            results = dict(zip(answer.differentiable, answer.pieces(node), strict=True))
        for k, node in zip(others, placed(builder, nodes[: len(others)], forward), strict=True):
            raw = answer.values[k]._raw
            results[k] = Traced(np.zeros(raw.shape, raw.dtype), self._fixed(node))
        for k, i in answer.dirty.items():
            taken = results[k]
            results[k] = trace.change(self.args[i], lambda _, taken=taken: taken)  # type: ignore[misc, assignment]
        found = tuple([results.get(k, x) for k, x in enumerate(answer.values)])
        return found if answer.several else found[0]

    def _outer(self, nodes: Sequence[Node]) -> list[Node]:
        """What forward or backward reads beside its operands: nothing is sent there."""
        own = {*self.held, *self.live, self.made, self.arriving}
        known = {one.leaf for one in self.trace.captures.values()}
        return [one for one in between(nodes, own - {None}) if one.primitive is LEAF and one not in own | known]  # type: ignore[arg-type]

    def _operation(self, back: Sequence[Node], outer: Sequence[Node]) -> Primitive:
        count = len(self.operands)

        def cotangents(value: Node, xs: Sequence[Node], ct: Node) -> list[Node]:
            builder = value.builder
            filled = dict(zip([*self.live, *outer], xs, strict=True))
            reached = {*between(back, [*self.held, *filled])}
            for leaf, x in zip(self.held, xs, strict=False):
                if leaf in reached:
                    filled[leaf] = self._fixed(x)
            assert self.made is not None and self.arriving is not None
            if self.made in reached:
                filled[self.made] = builder.apply(operation, (value, *xs), {})
            filled[self.arriving] = ct
            return placed(builder, back, filled)

        summary = f"The Function {self.name}, with its hand-written backward."
        operation = by_hand(self.name, summary, count + len(outer), cotangents, self.sent)
        return operation

    def _fixed(self, node: Node) -> Node:
        """A value that derivatives take for a constant, and that oracles read as it is."""
        return self.trace.builder.apply(HELD, (node,), {}) if node.type.kind == "float" else node


def _innermost(problem: BaseException) -> str:
    """The last line of a user's code that an error passed, in brackets."""
    found, frame = "", problem.__traceback__
    while frame is not None:
        code = frame.tb_frame
        if not ours[code.f_globals.get("__name__")]:
            found = f" ({code.f_code.co_filename.rpartition('/')[2]}, line {frame.tb_lineno})"
        frame = frame.tb_next
    return found
