"""Tensors to differentiate go in, gradients come out or are added into the leaves; knows no operation.

Nodes run in descending order of their sequence numbers, each when all its contributions have arrived; a leaf runs as
soon as its last one has. All walks are loops, so a graph may be a million nodes deep. Without `create_graph` the
gradients are raw arrays; with it they are tensors, and what the rules compute is recorded in turn.
"""

from __future__ import annotations

import heapq
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import modes
from gradcli.eager.dispatch import apply, source_of
from gradcli.eager.hooks import Handle
from gradcli.eager.nodes import LAST, Node, class_named
from gradcli.eager.state import place
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def backward(
    tensors: Tensor | Sequence[Tensor],
    gradients: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of some tensors into the `.grad` of the leaves, or of `inputs` only."""
    roots = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    chosen = None
    if inputs is not None:
        chosen = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if not chosen:
            raise RuntimeError("inputs= of backward() cannot be empty")
    seeds = seeds_of(roots, gradients)
    if create_graph:
        warnings.warn(
            "backward() with create_graph=True makes a reference cycle between a tensor and its .grad, which leaks "
            "memory until .grad is set to None; autograd.grad() makes none",
            UserWarning,
            stacklevel=3,
        )
    found = run(
        roots, seeds, create_graph if retain_graph is None else retain_graph, create_graph, chosen, chosen is None
    )
    if chosen is not None:
        for x, value in zip(chosen, found, strict=True):
            if value is not None:
                add_to_grad(x, value, create_graph)


def seeds_of(roots: Sequence[Tensor], gradients: Any) -> list[Tensor]:
    """The gradients to start with: 1 for a scalar; RuntimeError where one is needed or does not fit."""
    given = [None] * len(roots) if gradients is None else gradients
    if isinstance(given, Tensor):
        given = [given]
    if len(given) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    seeds = []
    for root, seed in zip(roots, given, strict=True):
        if not root.requires_grad:
            raise RuntimeError(
                "this tensor does not require grad and does not have a grad_fn, so there is nothing to go back "
                "through: set requires_grad=True on a leaf before computing it"
            )
        if seed is None:
            if root._array.size != 1:
                raise RuntimeError(
                    f"a gradient can be created implicitly only for scalar outputs, and this has shape "
                    f"{list(root.shape)}: pass gradient=, or reduce it with sum() or mean()"
                )
            seed = Tensor(np.ones(root._array.shape, root._array.dtype))
        elif not isinstance(seed, Tensor):
            raise TypeError(f"gradients are tensors or None, not {type(seed).__name__}")
        elif seed._array.shape != root._array.shape:
            raise RuntimeError(f"the gradient has shape {list(seed.shape)}, but the output {list(root.shape)}")
        seeds.append(seed)
    return seeds


def run(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    retain_graph: bool,
    create_graph: bool,
    targets: Sequence[Tensor] | None,
    accumulate: bool,
) -> list[Any]:
    """One sweep; the gradients of `targets` as tensors, None where no path leads to one."""
    with modes.set_grad_enabled(create_graph):
        return _Sweep(retain_graph, create_graph, accumulate).run(roots, seeds, targets)


class _Sweep:
    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool) -> None:
        self.retain, self.create, self.accumulate = retain_graph, create_graph, accumulate
        self.waiting: dict[int, int] = {}  # by vertex: contributions that have not arrived
        self.needed: set[int] | None = None
        self.buffers: dict[int, list[Any]] = {}
        self.vertices: dict[int, Any] = {}
        self.ready: list[tuple[int, int]] = []
        self.wanted: dict[tuple[int, int], list[int]] = {}

    def run(self, roots: Sequence[Tensor], seeds: Sequence[Tensor], targets: Sequence[Tensor] | None) -> list[Any]:
        sources = [source_of(root) for root in roots]
        found: list[Any] = []
        if targets is not None:
            found = [None] * len(targets)
            for i, x in enumerate(targets):
                self.wanted.setdefault(_key(source_of(x)), []).append(i)
        nodes = self._explore(sources)
        if targets is not None:
            self._prune(nodes)
        for source, seed in zip(sources, seeds, strict=True):
            self._arrive(source, seed if self.create else seed._array)
        for vertex in {id(v): v for v in (_vertex(source) for source in sources)}.values():
            if not self.waiting.get(id(vertex), 0):
                self._push(vertex)
        while self.ready:
            vertex = self.vertices.pop(heapq.heappop(self.ready)[1])
            if isinstance(vertex, Node):
                self._run_node(vertex, found)
            else:
                self._run_leaf(vertex, found)
        return found

    def _explore(self, sources: Sequence[Any]) -> list[Node]:
        """Count for each vertex the edges that lead to it."""
        nodes: dict[int, Node] = {}
        stack = [_vertex(source) for source in sources]
        while stack:
            vertex = stack.pop()
            if not isinstance(vertex, Node) or id(vertex) in nodes:
                continue
            nodes[id(vertex)] = vertex
            for source in vertex.inputs:
                if source is not None:
                    below = _vertex(source)
                    self.waiting[id(below)] = self.waiting.get(id(below), 0) + 1
                    stack.append(below)
        return list(nodes.values())

    def _prune(self, nodes: list[Node]) -> None:
        """Which nodes have to run: those on a path to a target."""
        self.needed = set()
        for node in sorted(nodes, key=lambda node: node.seq):
            for source in node.inputs:
                if source is not None and (_key(source) in self.wanted or id(_vertex(source)) in self.needed):
                    self.needed.add(id(node))
                    break

    def _push(self, vertex: Any) -> None:
        self.vertices[id(vertex)] = vertex
        heapq.heappush(self.ready, (-(vertex.seq if isinstance(vertex, Node) else LAST), id(vertex)))

    def _arrive(self, source: Any, value: Any) -> None:
        vertex, at = (source, 0) if isinstance(source, Tensor) else source
        buffer = self.buffers.get(id(vertex))
        if buffer is None:
            buffer = self.buffers[id(vertex)] = [None] * (vertex.outputs if isinstance(vertex, Node) else 1)
        if value is not None:
            buffer[at] = value if buffer[at] is None else self._sum(buffer[at], value)

    def _sum(self, one: Any, other: Any) -> Any:
        return apply(catalogue()["add"], (one, other), {}) if self.create else one + other

    def _run_node(self, node: Node, found: list[Any]) -> None:
        cts = self.buffers.pop(id(node), [None] * node.outputs)
        if node.tensor_hooks:
            for at, hooks in node.tensor_hooks.items():
                if cts[at] is not None:
                    cts[at] = self._hooked(cts[at], hooks)
        if node.retained:
            for at, held in node.retained.items():
                kept = held()
                if kept is not None and cts[at] is not None:
                    add_to_grad(kept, self._tensor(cts[at]), self.create)
        for at in range(node.outputs):
            for target in self.wanted.get((id(node), at), ()):
                found[target] = None if cts[at] is None else self._own(cts[at])
        runs = self.needed is None or id(node) in self.needed
        results = self._results(node, cts) if runs else [None] * len(node.inputs)
        for source, value in zip(node.inputs, results, strict=False):
            if source is not None:
                below = _vertex(source)
                self._arrive(source, value)
                self.waiting[id(below)] -= 1
                if not self.waiting[id(below)]:
                    self._push(below)

    def _results(self, node: Node, cts: list[Any]) -> list[Any]:
        if node.prehooks:
            for hook in list(node.prehooks.values()):
                changed = hook(tuple([None if ct is None else self._tensor(ct) for ct in cts]))
                if changed is not None:
                    cts = [self._raw(ct) for ct in changed]
        results: list[Any] = node.run(cts, self.create)  # type: ignore[attr-defined]
        if node.hooks:
            before = tuple([None if ct is None else self._tensor(ct) for ct in cts])
            for hook in list(node.hooks.values()):
                changed = hook(tuple([None if value is None else self._tensor(value) for value in results]), before)
                if changed is not None:
                    results = [self._raw(value) for value in changed]
        if not self.retain:
            node.release()
        return results

    def _run_leaf(self, leaf: Tensor, found: list[Any]) -> None:
        value = self.buffers.pop(id(leaf), [None])[0]
        if value is None:
            return
        if leaf._hooks:
            value = self._hooked(value, leaf._hooks)
        for target in self.wanted.get((id(leaf), 0), ()):
            found[target] = self._own(value)
        if self.accumulate:
            add_to_grad(leaf, self._tensor(value), self.create)
            if leaf._post_hooks:
                for hook in list(leaf._post_hooks.values()):
                    hook(leaf)

    def _hooked(self, value: Any, hooks: dict[int, Any]) -> Any:
        for hook in list(hooks.values()):
            changed = hook(self._tensor(value))
            if changed is not None:
                if not isinstance(changed, Tensor) or changed._array.shape != self._raw_array(value).shape:
                    raise RuntimeError("a hook returned something other than a tensor of the gradient's shape, or None")
                value = self._raw(changed)
        return value

    def _tensor(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else Tensor(np.asarray(value))

    def _own(self, value: Any) -> Tensor:
        """A gradient for the caller, in memory that no other gradient shares."""
        return value if isinstance(value, Tensor) else Tensor(np.array(value))

    def _raw(self, value: Tensor | None) -> Any:
        return value if value is None or self.create else value._array

    def _raw_array(self, value: Any) -> Any:
        return value._array if isinstance(value, Tensor) else value


def _vertex(source: Any) -> Any:
    return source if isinstance(source, Tensor) else source[0]


def _key(source: Any) -> tuple[int, int]:
    if source is None:
        return (0, 0)
    return (id(source), 0) if isinstance(source, Tensor) else (id(source[0]), source[1])


class CopyNode(Node):
    """A copy: what arrives goes on as it is."""

    __slots__ = ()

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The same gradient."""
        return [cts[0]]


def copied(x: Tensor, name: str) -> Tensor:
    """The entries in memory of their own, with a node of this name."""
    result = Tensor(x._array.copy())
    if modes.is_grad_enabled() and x.requires_grad:
        result._requires = True
        result._edge = (class_named(CopyNode, name)((source_of(x),), (), place()), 0)
    return result


def add_to_grad(leaf: Tensor, value: Tensor, create_graph: bool) -> None:
    """Add into `.grad`: by copy the first time, so that no two leaves share memory, in place afterwards."""
    known = leaf._grad
    if known is None:
        leaf._grad = copied(value, "CopyBackwards") if create_graph else Tensor(np.array(value._array))
    elif create_graph:
        leaf._grad = apply(catalogue()["add"], (known, value), {})
    else:
        np.add(known._array, value._array, out=known._array)
        known._counter.bump(None)


def hook_on(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Register a hook on a tensor: with its node, or with the leaf; RuntimeError where no gradient will come."""
    edge = x._current_edge()
    if not x._requires:
        raise RuntimeError("cannot register a hook on a tensor that does not require grad")
    if edge is None:
        if x._hooks is None:
            x._hooks = {}
        return Handle(x._hooks, hook)
    node, at = edge
    if node.tensor_hooks is None:
        node.tensor_hooks = {}
    return Handle(node.tensor_hooks.setdefault(at, {}), hook)


def retain(x: Tensor) -> None:
    """Make a tensor that is not a leaf keep its gradient."""
    edge = x._current_edge()
    if not x._requires:
        raise RuntimeError("can't retain_grad on a tensor that does not require grad")
    if edge is None:
        return
    node, at = edge
    if node.retained is None:
        node.retained = {}
    node.retained[at] = weakref.ref(x)
    x._retains = True
