"""Tracing: records a function of tensors as a program, with both sides of its branches.

While it runs, tensors are stand-ins without entries (`_core/tracer.py`). A `Function` with a backward of its own
becomes an operation with this rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Span
from gradcli.eager import random as streams
from gradcli.eager._core import dtypes, events, tracer
from gradcli.eager._core.modes import Place, enable_grad, line_of, no_grad, ours, place, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Hidden, Traced, refused
from gradcli.eager._engine.record import kind_of, manner
from gradcli.eager._engine.record import record as run
from gradcli.eager._ops.tensor_joining import cat
from gradcli.eager.autograd.function import Context, FunctionNode
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import LEAF, Builder, Node, reachable
from gradcli.graph.primitive import Primitive
from gradcli.graph.program import HandRule, Leaf, Program, cotangent_name
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms.handwritten import by_hand

HELD = by_hand("held", "A value that derivatives take for a constant, and oracles do not.", 0, lambda value, xs, ct: ())
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class Guard(NamedTuple):
    """A branch of the function: the node of its condition, the side that the example took, and its line."""

    condition: Node
    taken: bool
    place: Place


class Capture(NamedTuple):
    """A tensor that the function reads from outside, its leaf and entries, and the node that stands for it."""

    tensor: Tensor
    leaf: Node
    array: Any
    node: Node


class FunctionTrace:
    """One trace: the graph so far, and the tensors that the function reads from outside."""

    def __init__(self, guarded: bool, randomness: str = "error", values_only: bool = False) -> None:
        self.builder = Builder(catalogue(), entries=2**62)
        self.guarded = guarded
        self.randomness = randomness
        self.values_only = values_only
        self.captures: dict[int, Capture] = {}
        self.names: dict[int, str] = {}  # what the function calls tensors from outside, by their `id`
        self.values: dict[str, Any] = {}
        self.guards: list[Guard] = []
        self.adopted: list[tuple[Tensor, Any]] = []  # plain tensors that stand for their values now, and their entries
        self.forced: tuple[bool, ...] = ()
        self.aside = False  # whether this run goes another way than the example
        self.places: dict[Node, Node] = {}  # inputs of inner derivatives, and what they stand for
        self.standing: dict[Node, Node | None] = {}  # the same of inputs of rules; None: nobody knows it yet
        self.rules: list[HandRule] = []  # the backwards of Functions, to be judged
        self.judged: set[Any] = set()  # what distinguishes them
        self.lines: dict[Node, Place] = {}  # where a node of such a backward was computed

    def fresh(self, like: Any) -> Traced:
        """A stand-in for an input with the shape and dtype of an array."""
        leaf = self.builder.fresh_leaf(Type(KINDS[like.dtype.kind], like.shape))
        return Traced(np.zeros(like.shape, like.dtype), leaf)

    def standing_for(self, x: Traced) -> Traced:
        """A fresh stand-in to differentiate by, in place of another one, which `placed` puts back."""
        inner = self.fresh(x._raw)
        self.places[inner._graph] = x._graph
        return inner

    def node_of(self, x: Tensor) -> Node:
        """The node of a tensor; one from outside becomes an input."""
        if isinstance(x, Traced):
            return x._graph
        capture = self.captures.get(id(x))
        if capture is None:
            array, kind = x._raw, KINDS.get(x._raw.dtype.kind)
            if kind is None:
                raise RuntimeError(f"tensors of {x.dtype} cannot be recorded")
            if kind == "float" and array.size and not x.requires_grad:
                number = float(array.flat[0] if array.shape else array)
                if np.isfinite(number) and (array == number).all():
                    return self.builder.constant(number, array.shape)
            truth = self.guarded and kind == "bool"
            type = Type("float" if truth else kind, array.shape)
            leaf = self.builder.fresh_leaf(type, self.names.get(id(x)))
            self.values[leaf.params["name"]] = array = np.asarray(array, np.float64 if truth else array.dtype)
            node = leaf
            if truth:  # what is exact knows numbers; a mask is where they are greater
                node = self.builder.call("greater", leaf, self.builder.constant(Fraction(1, 2), array.shape))
            capture = self.captures[id(x)] = Capture(x, leaf, array, node)
        return capture.node

    def lifted(self, x: Any) -> Traced:
        """A tensor as a stand-in."""
        return x if isinstance(x, Traced) else Traced(np.zeros(x._raw.shape, x._raw.dtype), self.node_of(x))

    def operation(
        self, function: Any, xs: tuple[Any, ...], params: dict[str, Any], name: str, options: dict[str, Any], **how: Any
    ) -> Traced:
        """The stand-in of `function(*xs, **params)`; its shape and dtype come from a run on zeros."""
        like = tuple([Tensor(x._raw.like) if isinstance(x, Traced) else x for x in xs])
        with no_grad():
            out = run(function, like, params, name, **options, **how)._array
        pointwise, keep_integer, keep_dtype = manner(function, **how)
        kind = KINDS[kind_of(like, keep_dtype, keep_integer).kind]
        nodes = []
        for i, x in enumerate(xs):
            wanted = None if i in keep_dtype else kind
            node = self._operand(x, wanted, out.shape if pointwise else ())
            nodes.append(stretch(node, out.shape) if pointwise else node)
        result = self._of_kind(function(*nodes, **params), KINDS[out.dtype.kind])
        if self.standing:
            self.lines[result] = place()
        return Traced(out, result)

    def _operand(self, x: Any, kind: str | None, shape: tuple[int, ...]) -> Node:
        if isinstance(x, Tensor):
            node = self.node_of(x)
            return node if kind is None else self._of_kind(node, kind)
        value = np.asarray(x).item()
        number = int(value) if isinstance(value, bool) else value
        constant = self.builder.constant(number, shape)
        return constant if kind in (None, "float") else self._of_kind(constant, kind or "float")

    def _of_kind(self, node: Node, kind: str) -> Node:
        if node.type.kind == kind:
            return node
        if kind == "int" and node.type.kind == "float":
            node = self.builder.call("trunc", node)
        if kind == "bool":
            return self.builder.call("not_equal", node, self.builder.constant(0, node.type.shape, node.type.kind))
        return self.builder.call("cast", node, kind=kind)

    def cast(self, x: Traced, to: dtypes.dtype) -> Traced:
        """A stand-in of another dtype; RuntimeError for one that graphs do not have."""
        if to.np.kind not in KINDS:
            raise RuntimeError(f"{to} cannot be recorded")
        return Traced(np.zeros(x._raw.shape, to.np), self._of_kind(x._graph, KINDS[to.np.kind]))

    def copied(self, x: Traced) -> Traced:
        """A stand-in for a copy."""
        return Traced(np.zeros(x._raw.shape, x._raw.dtype), x._graph)

    def stopped(self, x: Traced) -> Traced:
        """A stand-in without a derivative."""
        return Traced(x._raw.like, self.builder.call("detach", x._graph))

    def held(self, node: Node) -> Node:
        """A constant of every derivative, whose value oracles still read."""
        return self.builder.apply(HELD, (node,), {}) if node.type.kind == "float" else node

    def constants(self, answer: Any) -> Any:
        """Results as constants of every derivative."""
        if isinstance(answer, tuple):
            return tuple([self.constants(x) for x in answer])
        return Traced(answer._raw.like, self.held(answer._graph)) if type(answer) is Traced else answer

    def called(self, owner: Any, args: tuple[Any, ...]) -> Any:
        """What `owner.apply(*args)` gives; RuntimeError where it reads entries of a stand-in or `vmap` refuses it."""
        if self.values_only:
            context = Context()
            context.needs_input_grad = (False,) * len(args)
            return owner._run_forward(context, args)
        if not self.guarded and owner.setup_context is None:
            raise RuntimeError(f"{owner.__name__} needs a static method setup_context to be used in vmap and the like")
        if not self.guarded and not getattr(owner, "generate_vmap_rule", False):
            raise RuntimeError(
                f"{owner.__name__} does not define how vmap maps it: set generate_vmap_rule = True in the class, "
                "so that its forward and backward are mapped as they are"
            )
        return FunctionGraphs(self, owner, args).result()

    def change(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Give a stand-in the result of an in-place operation; RuntimeError for views and, in `vmap`, tensors.

        While `record` runs, a plain tensor (`torch.zeros(3)`, to be filled) becomes a stand-in until its run ends.
        """
        if self.guarded and type(x) is Tensor and x._base is None and not x.requires_grad:
            node = self.node_of(x)
            self.adopted.append((x, x._raw))
            x.__class__, x._raw = Traced, Hidden(np.zeros(x._raw.shape, x._raw.dtype))
            x._graph = node  # type: ignore[attr-defined]
        if not isinstance(x, Traced) or x._base is not None:
            raise RuntimeError(
                "while a function is recorded (vmap, record), views and tensors from outside cannot be changed in place"
            )
        result = function(self.copied(x))
        if result._raw.shape != x._raw.shape:
            raise RuntimeError(f"the in-place result has shape {list(result.shape)}, but the tensor {list(x.shape)}")
        x._graph = self.lifted(result)._graph
        return x

    def release(self) -> None:
        """Restore the plain tensors that were filled while the function ran."""
        for x, raw in reversed(self.adopted):
            x.__class__ = Tensor
            x._raw = raw
            del x.__dict__["_graph"]
        self.adopted.clear()

    def decided(self, x: Traced) -> bool:
        """The truth of a condition: the one that this run has to take, else that of the example.

        RuntimeError where branches are not allowed.
        """
        if not self.guarded:
            raise refused("a branch on data")
        if x._raw.size != 1:
            raise RuntimeError("the truth value of a tensor with several elements is ambiguous: use any() or all()")
        condition = self._of_kind(x._graph, "bool")
        if condition.type.shape:
            condition = self.builder.call("reshape", condition, shape=())
        while not self.places.keys().isdisjoint(reachable([condition])):
            (condition,) = self.builder.substituted([condition], self.places)
        at = len(self.guards)
        if at < len(self.forced):
            taken = self.forced[at]
        else:
            (known,) = self.outermost([condition])
            if known is None:
                raise refused("a branch on the incoming gradient")
            taken = bool(Tape([known]).run(self.values, backend="numpy")[0])
        self.guards.append(Guard(condition, taken, place()))
        return taken

    def outermost(self, nodes: Sequence[Node]) -> list[Node | None]:
        """Nodes in terms of the program's inputs; None for one that reads the incoming gradient of a backward."""
        return [self._outermost(node) for node in nodes]

    def _outermost(self, node: Node) -> Node | None:
        stands = {**self.standing, **self.places}
        while inner := [leaf for leaf in reachable([node]) if leaf in stands]:
            known = {leaf: other for leaf in inner if (other := stands[leaf]) is not None}
            if len(known) < len(inner):
                return None
            (node,) = self.builder.substituted([node], known)
        return node

    @contextmanager
    def running(self) -> Iterator[None]:
        """A context in which operations on stand-ins are recorded, and random numbers are refused."""
        if tracer.own.current is not None:
            raise RuntimeError("another function is already being recorded")
        before, watching = streams.own.default_generator, events.own.current
        tracer.own.current, events.own.current = self, None  # stand-ins have no entries that a record could keep
        state.watched += 1  # every operation takes the way on which it is recorded
        if self.randomness == "error":
            refusing: Any = _Refusing()
            streams.own.default_generator = refusing
        try:
            yield
        finally:
            tracer.own.current, events.own.current = None, watching
            state.watched -= 1
            streams.own.default_generator = before


class _Refusing:
    """Takes the place of the random generator."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "a random operation was called while a function is recorded (vmap, record): its numbers would be frozen. "
            "Draw them outside and pass them in, or use randomness='same' in vmap"
        )


MOST_RUNS = 16


class TracedProgram(Program):
    """A traced program, with the branches that the example took (`guards`).

    `rules` are the hand-written backwards of the Functions that it called.
    """

    __slots__ = ("guards", "rules")
    guards: tuple[Guard, ...]
    rules: tuple[HandRule, ...]


def record(f: Callable[..., Any], *example: Tensor, runs: int = MOST_RUNS, values_only: bool = False) -> TracedProgram:
    """The graph of a function of tensors, at the types of an example; its leaves are named like the arguments.

    Branches on data become `where`, both sides of which are recorded; beyond `runs` runs of the function, the other
    side is NaN. Tensors that the function reads from outside are constants. A `Function` becomes an operation whose
    derivative is its `backward`, and which is listed in `rules`; where only values are requested, its forward alone
    is recorded. RuntimeError for what reads entries: `item()`, random numbers, shapes that depend on data, NumPy in a
    forward or backward.

    >>> from gradcli.execution.evaluate import evaluate
    >>> program = torch.record(lambda x: x * 2 if x > 0 else -x, torch.tensor(3.0))
    >>> evaluate(program, {"x": 3.0}), evaluate(program, {"x": -5.0})
    ([6.0], [5.0])
    """
    trace = FunctionTrace(guarded=True, values_only=values_only)
    leaves: dict[str, Leaf] = {}
    inputs: list[Tensor] = []
    arguments = names_of(f, len(example))
    trace.names = {known: name for known, name in _outside(f).items() if name not in arguments}
    for name, x in zip(arguments, example, strict=True):
        array = np.array(x._raw)
        if array.dtype.kind != "f":  # whole numbers decide: they are constants
            inputs.append(x)
            continue
        node = trace.builder.leaf(name, array.shape)
        leaves[name] = Leaf(name, node, array)
        trace.values[name] = array
        inputs.append(Traced(np.zeros_like(array), node))
    paths = Paths(trace, lambda: _run(trace, f, inputs), runs)
    outputs = paths.joined()
    for capture in trace.captures.values():
        name = capture.leaf.params["name"]
        leaves[name] = Leaf(name, capture.leaf, np.array(capture.array), None, True)
    program = TracedProgram(trace.builder, leaves, outputs)
    program.guards, program.rules = paths.guards, tuple(trace.rules)
    return program


def _outside(f: Callable[..., Any]) -> dict[int, str]:
    """The names of tensors and of parameters of modules around a function, by `id`: its globals and its closure."""
    f = inspect.unwrap(f)
    inner = getattr(f, "__func__", f)
    around = dict(getattr(inner, "__globals__", {}))
    cells = getattr(inner, "__closure__", None) or ()
    for name, cell in zip(inner.__code__.co_freevars if cells else (), cells, strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    names: dict[int, str] = {}
    for name, value in around.items():
        if isinstance(value, Tensor):
            names[id(value)] = name
        elif hasattr(type(value), "named_parameters"):
            names.update((id(x), f"{name}.{inside}") for inside, x in value.named_parameters())
    return names


def _run(trace: FunctionTrace, f: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Node]:
    """The outputs of one run of a function."""
    arguments = [trace.copied(x) if isinstance(x, Traced) else x for x in inputs]
    try:
        with trace.running():
            results = f(*arguments)
        tensors = [results] if isinstance(results, Tensor) else list(results)
        if not all(isinstance(x, Tensor) for x in tensors):
            raise TypeError("a recorded function must return tensors")
        return [trace.node_of(x) for x in tensors]
    finally:
        trace.release()


class Paths:
    """All paths through what `run` does, each recorded by a run of its own; `guards` are those of the first."""

    def __init__(self, trace: FunctionTrace, run: Callable[[], list[Node]], runs: int = MOST_RUNS) -> None:
        self.trace, self.run, self.runs = trace, run, runs
        self.guards: tuple[Guard, ...] = ()

    def joined(self, forced: tuple[bool, ...] = ()) -> list[Node]:
        """The outputs, where the first conditions are `forced` and the others are decided at run time."""
        trace = self.trace
        self.runs -= 1
        outer = trace.guards, trace.forced, trace.aside
        trace.guards, trace.forced, trace.aside = [], forced, trace.aside or bool(forced)
        try:
            outputs = self.run()
            guards = tuple(trace.guards)
        finally:
            trace.guards, trace.forced, trace.aside = outer
        if not forced:
            self.guards = guards
        paths = [(*[guard.taken for guard in guards[:i]], not guards[i].taken) for i in range(len(forced), len(guards))]
        others = [self._other(path, outputs) for path in paths]  # early branches first: loops end there
        for guard, other in zip(reversed(guards[len(forced) :]), reversed(others), strict=True):
            outputs = [self._either(guard, *pair) for pair in zip(outputs, other, strict=True)]
        return outputs

    def _other(self, path: tuple[bool, ...], like: list[Node]) -> list[Node]:
        """The outputs of the other side of a branch; NaN where it fails, or where there are too many paths."""
        if self.runs > 0:
            try:
                outputs = self.joined(path)
            except (ArithmeticError, ValueError, RuntimeError):
                outputs = []
            if [node.type for node in outputs] == [node.type for node in like]:
                return outputs
        zero = self.trace.builder.constant(0)
        return [stretch(self.trace.builder.call("div", zero, zero), node.type.shape) for node in like]

    def _either(self, guard: Guard, taken: Node, other: Node) -> Node:
        if taken is other:
            return taken
        sides = (taken, other) if guard.taken else (other, taken)
        return self.trace.builder.call("where", stretch(guard.condition, taken.type.shape), *sides)


def names_of(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's arguments, or x0, x1, ... where its signature is not known."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names[:count] if len(names) >= count else [f"x{i}" for i in range(count)]


# --- Functions with a backward of their own -------------------------------------------------------------------------

MOST_RULES = 16  # rules of one program
ARRIVING = 37 / 32  # stands for the gradient that arrives, where a Function is called inside a backward


def note(form: FunctionGraphs, row: Node, back: Sequence[Node]) -> None:
    """Keep a rule: `row` and `back` are its forward and backward on the form's leaves."""
    trace, builder, owner = form.trace, form.trace.builder, form.owner
    plain = [str(x) for x in form.args if not isinstance(x, Tensor)]
    key = (owner, tuple(node.type for node in form.operands), *plain)
    if key in trace.judged or len(trace.rules) >= MOST_RULES:
        return
    trace.judged.add(key)
    same = sum(1 for rule in trace.rules if rule.name.partition("#")[0] == form.name)
    title = f"{form.name}#{same + 1}" if same else form.name
    skipped = 1 if owner.setup_context is None else 0  # ctx
    names = names_of(owner.forward, len(form.args) + skipped)[skipped:]
    known = _operands(form)
    floats = [k for k, leaf in enumerate(form.live) if leaf.type.kind == "float"]
    own = {k: (names[form.moving[k]], form.live[k].type.shape) for k in floats}
    leaves = {k: Leaf(name, builder.leaf(f"{title}.{name}", shape)) for k, (name, shape) in own.items()}
    at = [leaves[k].node if k in leaves else x for k, x in enumerate(known)]
    filled = dict(zip([*form.live, *form.held], [*at, *at], strict=True))
    (output,) = builder.substituted([row], filled)
    ct = builder.leaf(f"{title}.{cotangent_name(names)}", output.type.shape)
    assert form.returned is not None and form.arriving is not None
    results = builder.substituted([back[k] for k in floats], {**filled, form.returned: output, form.arriving: ct})
    backward = owner._rule()
    code = getattr(backward, "__wrapped__", backward).__code__
    file, first = code.co_filename, code.co_firstlineno
    lines = [line_of(trace.lines.get(back[k])) for k in floats]
    places = tuple([line if name == file and line else first for name, line in lines])
    span, point = Span(first, 1, first, 1), tuple([known[k] for k in floats])
    trace.rules.append(HandRule(title, span, tuple(leaves.values()), output, ct, tuple(results), point, file, places))


def _operands(form: FunctionGraphs) -> list[Node]:
    """The operands in terms of the program's inputs."""
    trace, before = form.trace, form.trace.standing
    trace.standing = {
        leaf: trace.builder.constant(ARRIVING, leaf.type.shape) if stands is None else stands
        for leaf, stands in before.items()
    }
    try:
        known = trace.outermost(form.operands)
    finally:
        trace.standing = before
    return [x if node is None else node for node, x in zip(known, form.operands, strict=True)]


class ForwardOutputs(NamedTuple):
    """What a forward returned: its values, whether as a tuple, and which of them are differentiable."""

    values: tuple[Any, ...]
    several: bool
    differentiable: list[int]
    dirty: dict[int, int]  # results that are arguments changed in place, and which

    def others(self) -> list[int]:
        """The positions of the tensors that have no gradient."""
        return [k for k, x in enumerate(self.values) if isinstance(x, Tensor) and k not in self.differentiable]

    def pieces(self, row: Node) -> list[Traced]:
        """The differentiable results, which one row holds, as stand-ins in their shapes."""
        likes = [np.zeros(self.values[k]._raw.shape, self.values[k]._raw.dtype) for k in self.differentiable]
        if len(likes) == 1:
            return [Traced(likes[0], row)]
        pieces, start = [], 0
        whole: Any = Traced(np.zeros(row.type.shape, likes[0].dtype), row)
        for like in likes:
            piece = whole[start : start + like.size].reshape(like.shape)
            pieces.append(Traced(like, piece._graph))
            start += like.size
        return pieces


class FunctionGraphs:
    """One call of a Function: its forward and backward as graphs on leaves of their own."""

    def __init__(self, trace: FunctionTrace, owner: Any, args: tuple[Any, ...]) -> None:
        self.trace, self.owner, self.args = trace, owner, args
        self.name = owner.__name__
        builder = trace.builder
        tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.moving = [i for i in tensors if type(args[i]) is Traced or args[i].requires_grad]
        self.operands = [trace.node_of(args[i]) for i in self.moving]
        types = [node.type for node in self.operands]
        self.held = [builder.fresh_leaf(type) for type in types]  # the operands while forward runs
        self.live = [builder.fresh_leaf(type) for type in types]  # and as backward finds them
        self.returned: Node | None = None  # stands for the results, all in one row
        self.arriving: Node | None = None
        self.answer: ForwardOutputs | None = None  # of the example's own way
        self.sent: set[int] = set()  # operands that backward sends something to
        for leaves in (self.held, self.live):
            trace.standing.update(zip(leaves, self.operands, strict=True))

    def run(self) -> list[Node]:
        """The differentiable results as one row, the other results, and the gradient of each operand."""
        trace = self.trace
        args = list(self.args)
        for i, leaf in zip(self.moving, self.held, strict=True):
            args[i] = Traced(np.zeros(args[i]._raw.shape, args[i]._raw.dtype), leaf)
        context = Context()
        context._node = lambda: None
        context.needs_input_grad = tuple([i in self.moving and x.dtype.kind >= 2 for i, x in enumerate(self.args)])
        returned = self._stage("forward", self.owner._run_forward, context, tuple(args))
        answer = self._look(context, args, returned)
        self.answer = self.answer or answer
        moved = [trace.lifted(answer.values[k]) for k in answer.differentiable]
        others = [trace.node_of(answer.values[k]) for k in answer.others()]
        if not moved:
            return others
        row = moved[0] if len(moved) == 1 else cat([x.reshape(-1) for x in moved])
        node = row._graph
        if self.returned is None:
            self.returned, self.arriving = trace.builder.fresh_leaf(node.type), trace.builder.fresh_leaf(node.type)
        assert self.arriving is not None
        trace.standing[self.returned] = node  # in terms of the leaves, which stand for the operands
        trace.standing[self.arriving] = None
        for i, leaf in zip(self.moving, self.live, strict=True):
            args[i]._graph = leaf
        for k, piece in zip(answer.differentiable, answer.pieces(self.returned), strict=True):
            out = answer.values[k]
            if type(out) is Traced and (k in answer.dirty or not any(out is x for x in args)):
                out._graph = piece._graph
        cts = dict(zip(answer.differentiable, answer.pieces(self.arriving), strict=True))
        sent = self._stage("backward", self._backward, context, answer, cts)
        back = []
        for k, (leaf, ct) in enumerate(zip(self.live, sent, strict=True)):
            if ct is not None and leaf.type.kind == "float":
                self.sent.add(k)
            back.append(trace.builder.constant(0, leaf.type.shape) if ct is None else trace.node_of(ct))
        return [node, *others, *back]

    def _backward(self, context: Context, answer: ForwardOutputs, cts: dict[int, Any]) -> list[Any]:
        """The gradients that backward returns for the operands, in their shapes."""
        node: FunctionNode = object.__new__(self.owner._backward_cls)
        node.context, node.owner = context, self.owner
        node.slots = [(x._raw.shape, x._raw.dtype) if isinstance(x, Tensor) else None for x in self.args]
        arriving = [
            cts[k] if k in cts else Tensor(np.zeros(x._raw.shape, x._raw.dtype)) if isinstance(x, Tensor) else None
            for k, x in enumerate(answer.values)
        ]
        with enable_grad():
            sent = node.call_backward(arriving, True)
        places = [i for i, slot in enumerate(node.slots) if slot is not None]
        return [sent[places.index(i)] for i in self.moving]

    def _stage(self, what: str, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as problem:
            if type(problem) is not RuntimeError:
                raise
            raise RuntimeError(f"{self.name}.{what}{_innermost(problem)}: {problem}") from problem

    def _look(self, context: Context, args: list[Any], answer: Any) -> ForwardOutputs:
        """Which results have a gradient, and which are operands that were changed in place."""
        values = answer if isinstance(answer, tuple) else (answer,)
        dirty = {
            k: i
            for k, out in enumerate(values)
            for i, x in enumerate(args)
            if out is x and any(x is y for y in context._dirty)
        }
        for i, leaf in zip(self.moving, self.held, strict=True):
            if args[i]._graph is not leaf and i not in dirty.values():
                raise RuntimeError("an argument is changed in place, but not marked with mark_dirty() and returned")
        tensors = [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.dtype.kind >= 2]
        differentiable = [k for k in tensors if not any(values[k] is y for y in context._fixed)]
        return ForwardOutputs(values, isinstance(answer, tuple), differentiable, dirty)

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
            (value,) = builder.substituted([row], forward)
            node = builder.apply(self._operation(back, outer), (value, *operands), {})
            if not trace.aside:
                note(self, row, back)
            results = dict(zip(answer.differentiable, answer.pieces(node), strict=True))
        for k, node in zip(others, builder.substituted(nodes[: len(others)], forward), strict=True):
            raw = answer.values[k]._raw
            results[k] = Traced(np.zeros(raw.shape, raw.dtype), trace.held(node))
        for k, i in answer.dirty.items():
            taken = results[k]
            results[k] = trace.change(self.args[i], lambda _, taken=taken: taken)  # type: ignore[misc, assignment]
        values = tuple([results.get(k, x) for k, x in enumerate(answer.values)])
        return values if answer.several else values[0]

    def _outer(self, nodes: Sequence[Node]) -> list[Node]:
        """What forward or backward reads beside its operands; it gets no gradient."""
        own = {*self.held, *self.live, self.returned, self.arriving}
        known = {capture.leaf for capture in self.trace.captures.values()}
        return [node for node in reachable(nodes, own - {None}) if node.primitive is LEAF and node not in own | known]  # type: ignore[arg-type]

    def _operation(self, back: Sequence[Node], outer: Sequence[Node]) -> Primitive:
        count = len(self.operands)

        def cotangents(value: Node, xs: Sequence[Node], ct: Node) -> list[Node]:
            builder = value.builder
            filled = dict(zip([*self.live, *outer], xs, strict=True))
            reached = {*reachable(back, [*self.held, *filled])}
            for leaf, x in zip(self.held, xs, strict=False):
                if leaf in reached:
                    filled[leaf] = self.trace.held(x)
            assert self.returned is not None and self.arriving is not None
            if self.returned in reached:
                filled[self.returned] = builder.apply(operation, (value, *xs), {})
            filled[self.arriving] = ct
            return builder.substituted(back, filled)

        summary = f"The Function {self.name}, with its hand-written backward."
        operation = by_hand(self.name, summary, count + len(outer), cotangents, self.sent)
        return operation


def _innermost(problem: BaseException) -> str:
    """The innermost line of the user's code in a traceback, in brackets."""
    where, frame = "", problem.__traceback__
    while frame is not None:
        code = frame.tb_frame
        if not ours[code.f_globals.get("__name__")]:
            where = f" ({code.f_code.co_filename.rpartition('/')[2]}, line {frame.tb_lineno})"
        frame = frame.tb_next
    return where
