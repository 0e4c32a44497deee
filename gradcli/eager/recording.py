"""A function of tensors and an example go in, the graph that it computes comes out, for every oracle and transform.

The function runs once, on stand-ins (`tracing`); every operation on them becomes nodes of the graph, by the same
functions of operands that tensors compute with. A branch that depends on data is a guard: `record` runs the function
again for the other side, and joins both by `where`, as far as a number of runs allows.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager import dtypes, recorder, tracing
from gradcli.eager import random as streams
from gradcli.eager.promotion import APART, WHOLE, kind_of
from gradcli.eager.state import place, state
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Hidden, Traced, refused
from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import Builder
from gradcli.graph.node import Node, reachable
from gradcli.graph.program import Leaf, Program
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms.reverse import between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.eager.state import Place

KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}
MOST_RUNS = 16


def _uniform(array: Any) -> bool:
    """Whether all entries are one finite number."""
    first = array.flat[0] if array.shape else array
    return bool(np.isfinite(first) and (array == first).all())


class Guard(NamedTuple):
    """A condition that a branch was chosen by: its node, which way the example went, and the line."""

    condition: Node
    taken: bool
    place: Place


class Capture(NamedTuple):
    """A tensor from outside: itself, so that it stays alive, its leaf with the entries, and the node that reads it."""

    tensor: Tensor
    leaf: Node
    array: Any
    node: Node


class Trace:
    """One recording: the graph so far, and the tensors from outside that the function read."""

    def __init__(self, guarded: bool, randomness: str = "error", values_only: bool = False) -> None:
        self.builder = Builder(catalogue(), entries=2**62)
        self.guarded = guarded
        self.randomness = randomness
        self.values_only = values_only
        self.captures: dict[int, Capture] = {}
        self.values: dict[str, Any] = {}
        self.guards: list[Guard] = []
        self.adopted: list[tuple[Tensor, Any]] = []  # plain tensors that stand for their values now, and their entries
        self.forced: tuple[bool, ...] = ()
        self.places: dict[Node, Node] = {}  # inputs of inner derivatives, and what they stand for

    # --- inputs ---------------------------------------------------------------------------------------------

    def fresh(self, like: Any) -> Traced:
        """A stand-in for an input in the shape and format of an array."""
        leaf = self.builder.fresh_leaf(Type(KINDS[like.dtype.kind], like.shape))
        return Traced(np.zeros(like.shape, like.dtype), leaf)

    def standing_for(self, x: Traced) -> Traced:
        """A stand-in that derivatives are taken by, in place of another one; `placed` leads back to that."""
        inner = self.fresh(x._raw)
        self.places[inner._graph] = x._graph
        return inner

    def node_of(self, x: Tensor) -> Node:
        """The node of a tensor; one from outside becomes an input."""
        if isinstance(x, Traced):
            return x._graph
        found = self.captures.get(id(x))
        if found is None:
            array = x._raw
            if array.dtype.kind not in KINDS:
                raise RuntimeError(f"tensors of {x.dtype} cannot be recorded")
            if array.dtype.kind == "f" and array.size and not x.requires_grad and _uniform(array):
                return self.builder.constant(float(array.flat[0]) if array.shape else float(array), array.shape)
            truth = self.guarded and array.dtype.kind == "b"
            leaf = self.builder.fresh_leaf(Type("float" if truth else KINDS[array.dtype.kind], array.shape))
            self.values[leaf.params["name"]] = array = np.asarray(array, np.float64 if truth else array.dtype)
            node = leaf
            if truth:  # what is exact knows numbers; a mask is where they are greater
                node = self.builder.call("greater", leaf, self.builder.constant(Fraction(1, 2), array.shape))
            found = self.captures[id(x)] = Capture(x, leaf, array, node)
        return found.node

    def lifted(self, x: Any) -> Traced:
        """A tensor as a stand-in."""
        return x if isinstance(x, Traced) else Traced(np.zeros(x._raw.shape, x._raw.dtype), self.node_of(x))

    # --- operations -------------------------------------------------------------------------------------------

    def operation(
        self, function: Any, xs: tuple[Any, ...], params: dict[str, Any], name: str, options: dict[str, Any]
    ) -> Traced:
        """The stand-in of `function(*xs, **params)`, whose shape and format come from a run on zeros."""
        from gradcli.eager import dispatch
        from gradcli.eager.modes import no_grad

        like = tuple([Tensor(x._raw.like) if isinstance(x, Traced) else x for x in xs])
        with no_grad():
            out = dispatch.record(function, like, params, name, **options)._array
        known = getattr(function, "name", "")
        pointwise, apart, whole = (options.get(one) for one in ("pointwise", "apart", "whole"))
        pointwise = bool(getattr(function, "pointwise", False)) if pointwise is None else pointwise
        apart = APART.get(known, ()) if apart is None else apart
        kind = KINDS[kind_of(like, apart, known in WHOLE if whole is None else whole).kind]
        nodes = []
        for i, x in enumerate(xs):
            wanted = None if i in apart else kind
            node = self._operand(x, wanted, out.shape if pointwise else ())
            nodes.append(stretch(node, out.shape) if pointwise else node)
        result = function(*nodes, **params)
        return Traced(out, self._of_kind(result, KINDS[out.dtype.kind]))

    def _operand(self, x: Any, kind: str | None, shape: tuple[int, ...]) -> Node:
        if isinstance(x, Tensor):
            node = self.node_of(x)
            return node if kind is None else self._of_kind(node, kind)
        value = np.asarray(x).item()
        if isinstance(value, float) and not np.isfinite(value):
            node = self.builder.lifted(0) if np.isnan(value) else self.builder.lifted(1 if value > 0 else -1)
            result: Node = stretch(node / self.builder.lifted(0), shape)
            return result
        number = int(value) if isinstance(value, bool) else value
        found = self.builder.constant(number, shape)
        return found if kind in (None, "float") else self._of_kind(found, kind or "float")

    def _of_kind(self, node: Node, kind: str) -> Node:
        if node.type.kind == kind:
            return node
        if kind == "int" and node.type.kind == "float":
            node = self.builder.call("trunc", node)
        if kind == "bool":
            return self.builder.call("not_equal", node, self.builder.constant(0, node.type.shape, node.type.kind))
        return self.builder.call("cast", node, kind=kind)

    def cast(self, x: Traced, to: dtypes.dtype) -> Traced:
        """A stand-in in another format; RuntimeError for one that graphs do not have."""
        if to.np.kind not in KINDS:
            raise RuntimeError(f"{to} cannot be recorded")
        return Traced(np.zeros(x._raw.shape, to.np), self._of_kind(x._graph, KINDS[to.np.kind]))

    def copied(self, x: Traced) -> Traced:
        """A stand-in for a copy."""
        return Traced(np.zeros(x._raw.shape, x._raw.dtype), x._graph)

    def stopped(self, x: Traced) -> Traced:
        """A stand-in that nothing flows back through."""
        return Traced(x._raw.like, self.builder.call("detach", x._graph))

    def change(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A stand-in takes over the result of an in-place operation; RuntimeError for views and, in `vmap`, tensors.

        While `record` runs, a plain tensor (`torch.zeros(3)`, to be filled) becomes a stand-in until its run ends.
        """
        if self.guarded and type(x) is Tensor and x._base is None and not x.requires_grad:
            self._adopt(x)
        if not isinstance(x, Traced) or x._base is not None:
            raise RuntimeError(
                "while a function is recorded (vmap, record), views and tensors from outside cannot be changed in place"
            )
        found = function(self.copied(x))
        if found._raw.shape != x._raw.shape:
            raise RuntimeError(f"the in-place result has shape {list(found.shape)}, but the tensor {list(x.shape)}")
        x._graph = self.lifted(found)._graph
        return x

    def _adopt(self, x: Tensor) -> None:
        node = self.node_of(x)
        self.adopted.append((x, x._raw))
        x.__class__ = Traced
        assert isinstance(x, Traced)
        x._raw, x._graph = Hidden(np.zeros(x._raw.shape, x._raw.dtype)), node

    def release(self) -> None:
        """Plain tensors that were filled while the function ran are what they were before."""
        for x, raw in reversed(self.adopted):
            x.__class__ = Tensor
            x._raw = raw
            del x.__dict__["_graph"]
        self.adopted.clear()

    # --- branches -------------------------------------------------------------------------------------------------

    def decided(self, x: Traced) -> bool:
        """The truth of a condition: at the example, or as this run was told. RuntimeError where none is allowed."""
        if not self.guarded:
            raise refused("a branch on data")
        if x._raw.size != 1:
            raise RuntimeError("the truth value of a tensor with several elements is ambiguous: use any() or all()")
        condition = self._of_kind(x._graph, "bool")
        if condition.type.shape:
            condition = self.builder.call("reshape", condition, shape=())
        while not self.places.keys().isdisjoint(reachable([condition])):
            (condition,) = placed(self.builder, [condition], self.places)
        at = len(self.guards)
        if at < len(self.forced):
            taken = self.forced[at]
        else:
            taken = bool(Tape([condition]).run(self.values, backend="numpy")[0])
        self.guards.append(Guard(condition, taken, place()))
        return taken

    @contextmanager
    def running(self) -> Iterator[None]:
        """While it lasts, operations on stand-ins are recorded, and random numbers are refused."""
        if tracing.current is not None:
            raise RuntimeError("a function is being recorded already")
        before, watching = streams.default_generator, recorder.current
        tracing.current, recorder.current = self, None  # stand-ins have no entries that a record could keep
        state.watched += 1  # every operation takes the way on which it is recorded
        if self.randomness == "error":
            refusing: Any = _Refusing()
            streams.default_generator = refusing
        try:
            yield
        finally:
            tracing.current, recorder.current = None, watching
            state.watched -= 1
            streams.default_generator = before


class _Refusing:
    """Stands where random numbers come from."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "a random operation was called while a function is recorded (vmap, record): its numbers would be frozen. "
            "Draw them outside and pass them in, or use randomness='same' in vmap"
        )


def placed(builder: Builder, outputs: Sequence[Node], places: dict[Node, Node]) -> list[Node]:
    """The same computation with some nodes replaced."""
    made = dict(places)
    for node in between(outputs, places):
        if node in made:
            continue
        args = tuple([made[arg] for arg in node.args])
        made[node] = node if args == node.args else builder.apply(node.primitive, args, node.params)
    return [made[node] for node in outputs]


class Recorded(Program):
    """A program that was recorded, with the guards of the example's own way through the function."""

    __slots__ = ("guards",)
    guards: tuple[Guard, ...]


def record(f: Callable[..., Any], *example: Tensor, runs: int = MOST_RUNS, values_only: bool = False) -> Recorded:
    """The graph of a function of tensors, at the types of an example; its leaves are named like the arguments.

    Branches on data become `where`, both sides of which are recorded; beyond `runs` runs of the function, the other
    side is NaN. Tensors that the function reads from outside are constants. RuntimeError for what reads entries:
    `item()`, random numbers, shapes that depend on data; and for a `Function`, whose rule no graph has, unless only
    values are asked for.

    >>> import gradcli.eager as torch
    >>> from gradcli.execution.evaluate import evaluate
    >>> program = torch.record(lambda x: x * 2 if x > 0 else -x, torch.tensor(3.0))
    >>> evaluate(program, {"x": 3.0}), evaluate(program, {"x": -5.0})
    ([6.0], [5.0])
    """
    trace = Trace(guarded=True, values_only=values_only)
    names = _names(f, len(example))
    leaves: dict[str, Leaf] = {}
    inputs: list[Tensor] = []
    for name, x in zip(names, example, strict=True):
        array = np.array(x._raw)
        if array.dtype.kind != "f":  # whole numbers decide: they are constants
            inputs.append(x)
            continue
        node = trace.builder.leaf(name, array.shape)
        leaves[name] = Leaf(name, node, array)
        trace.values[name] = array
        inputs.append(Traced(np.zeros_like(array), node))
    paths = _Paths(trace, f, inputs, runs)
    outputs = paths.joined(())
    for one in trace.captures.values():
        name = one.leaf.params["name"]
        leaves[name] = Leaf(name, one.leaf, np.array(one.array), None, True)
    program = Recorded(trace.builder, leaves, outputs)
    program.guards = paths.guards
    return program


class _Paths:
    """All ways through a function, each recorded by a run of its own."""

    def __init__(self, trace: Trace, f: Callable[..., Any], inputs: Sequence[Tensor], runs: int) -> None:
        self.trace, self.f, self.inputs, self.runs = trace, f, inputs, runs
        self.guards: tuple[Guard, ...] = ()

    def joined(self, forced: tuple[bool, ...]) -> list[Node]:
        """The outputs, where the first conditions are decided so and the others as the point decides."""
        trace = self.trace
        trace.guards, trace.forced = [], forced
        self.runs -= 1
        inputs = [trace.copied(x) if isinstance(x, Traced) else x for x in self.inputs]
        try:
            with trace.running():
                found = self.f(*inputs)
            tensors = [found] if isinstance(found, Tensor) else list(found)
            if not all(isinstance(x, Tensor) for x in tensors):
                raise TypeError("a function that is recorded returns tensors")
            outputs = [trace.node_of(x) for x in tensors]
        finally:
            trace.release()
        guards = tuple(trace.guards)
        if not forced:
            self.guards = guards
        ways = [(*[one.taken for one in guards[:i]], not guards[i].taken) for i in range(len(forced), len(guards))]
        others = [self._other(way, outputs) for way in ways]  # early branches first: loops end there
        for guard, other in zip(reversed(guards[len(forced) :]), reversed(others), strict=True):
            outputs = self._either(guard, outputs, other)
        return outputs

    def _other(self, way: tuple[bool, ...], like: list[Node]) -> list[Node]:
        """What the other side of a branch gives; NaN where it fails, or where there are too many."""
        if self.runs > 0:
            try:
                found = self.joined(way)
            except (ArithmeticError, ValueError, RuntimeError):
                found = []
            if [node.type for node in found] == [node.type for node in like]:
                return found
        zero = self.trace.builder.constant(0)
        return [stretch(self.trace.builder.call("div", zero, zero), node.type.shape) for node in like]

    def _either(self, guard: Guard, here: list[Node], there: list[Node]) -> list[Node]:
        found = []
        for one, other in zip(here, there, strict=True):
            condition = stretch(guard.condition, one.type.shape)
            yes, no = (one, other) if guard.taken else (other, one)
            found.append(self.trace.builder.call("where", condition, yes, no))
        return found


def _names(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's arguments, or x0, x1, ... where it does not say them."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return names[:count] if len(names) >= count else [f"x{i}" for i in range(count)]
