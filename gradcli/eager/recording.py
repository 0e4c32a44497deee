"""Operations on stand-ins go in, the nodes of a graph that compute the same come out; runs no function itself.

Every operation on stand-ins (`tracing`) becomes nodes, by the same functions of operands that tensors compute with. A
branch that depends on data is a guard, which `paths` joins to the other side. A `Function` with a rule of its own
becomes one operation (`handwritten`).
"""

from __future__ import annotations

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
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms.handwritten import by_hand
from gradcli.transforms.reverse import between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.eager.state import Place
    from gradcli.graph.handrule import HandRule

HELD = by_hand("held", "A value that derivatives take for a constant, and oracles do not.", 0, lambda value, xs, ct: ())
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


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
        self.names: dict[int, str] = {}  # what the function calls tensors from outside, by their `id`
        self.values: dict[str, Any] = {}
        self.guards: list[Guard] = []
        self.adopted: list[tuple[Tensor, Any]] = []  # plain tensors that stand for their values now, and their entries
        self.forced: tuple[bool, ...] = ()
        self.aside = False  # whether this run goes another way than the example
        self.places: dict[Node, Node] = {}  # inputs of inner derivatives, and what they stand for
        self.standing: dict[Node, Node | None] = {}  # the same of inputs of rules; None: nobody knows it yet
        self.rules: list[HandRule] = []  # the backwards of Functions, to be judged
        self.judged: set[Any] = set()  # what tells them apart
        self.lines: dict[Node, Place] = {}  # where a node of such a backward was computed

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
            type = Type("float" if truth else KINDS[array.dtype.kind], array.shape)
            leaf = self.builder.fresh_leaf(type, self.names.get(id(x)))
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

    def constants(self, answer: Any) -> Any:
        """One or several results as values that oracles read and no derivative follows."""
        if isinstance(answer, tuple):
            return tuple([self.constants(x) for x in answer])
        if type(answer) is not Traced or answer._graph.type.kind != "float":
            return answer
        return Traced(answer._raw.like, self.builder.apply(HELD, (answer._graph,), {}))

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
            (known,) = self.outermost([condition])
            if known is None:
                raise refused("a branch on the gradient that arrives")
            taken = bool(Tape([known]).run(self.values, backend="numpy")[0])
        self.guards.append(Guard(condition, taken, place()))
        return taken

    def outermost(self, nodes: Sequence[Node]) -> list[Node | None]:
        """Nodes in terms of the program's own inputs; None for one that reads a gradient that is to arrive."""
        found: list[Node | None] = []
        for node in nodes:
            one: Node | None = node
            while one is not None:
                inner = [leaf for leaf in reachable([one]) if leaf in self.places or leaf in self.standing]
                if not inner:
                    break
                known = {leaf: self.places.get(leaf) or self.standing.get(leaf) for leaf in inner}
                stands = {leaf: other for leaf, other in known.items() if other is not None}
                one = placed(self.builder, [one], stands)[0] if len(stands) == len(inner) else None
            found.append(one)
        return found

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
