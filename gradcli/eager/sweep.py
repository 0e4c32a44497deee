"""The sweep of backward in full: tensors and seeds go in, gradients arrive at leaves and targets; knows no operation.

Nodes run in descending order of their sequence numbers, each when all its contributions have arrived; a leaf runs as
soon as its last one has. All walks are loops, so a graph may be a million nodes deep. Without `create_graph` the
gradients are raw arrays; with it they are tensors, and what the rules compute is recorded in turn.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.accumulate import add_to_grad
from gradcli.eager.hooking import answered, replaced
from gradcli.eager.nodes import LAST, Node
from gradcli.eager.rules import source_of
from gradcli.eager.state import state, sweeps
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


class Sweep:
    """One backward, step by step."""

    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool) -> None:
        self.retain, self.create, self.accumulate = retain_graph, create_graph, accumulate
        self.waiting: dict[int, int] = {}  # by vertex: contributions that have not arrived
        self.needed: set[int] | None = None
        self.buffers: dict[int, list[Any]] = {}
        self.vertices: dict[int, Any] = {}
        self.ready: list[tuple[int, int, int]] = []  # of leaves, the first that was ready comes first
        self.pushed = 0
        self.wanted: dict[tuple[int, int], list[int]] = {}

    def run(self, roots: Sequence[Tensor], seeds: Sequence[Tensor], targets: Sequence[Tensor] | None) -> list[Any]:
        """The gradients of `targets` as tensors, None where no path leads to one."""
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
            self._arrive(source, seed if self.create else seed._raw)
        for vertex in {id(v): v for v in (_vertex(source) for source in sources)}.values():
            self.waiting.setdefault(id(vertex), 0)
            if not self.waiting.get(id(vertex), 0):
                self._push(vertex)
        before, state.sweep = state.sweep, self
        try:
            while self.ready:
                vertex = self.vertices.pop(heapq.heappop(self.ready)[2])
                if vertex._seq:
                    self._run_node(vertex, found)
                else:
                    self._run_leaf(vertex, found)
        finally:
            state.sweep = before
        return found

    def reaches(self, x: Tensor) -> bool:
        """Whether this backward comes to a tensor."""
        source = source_of(x)
        return source is not None and id(_vertex(source)) in self.waiting

    def _explore(self, sources: Sequence[Any]) -> list[Node]:
        """Count for each vertex the edges that lead to it."""
        nodes: dict[int, Node] = {}
        stack = [_vertex(source) for source in sources]
        waiting = self.waiting
        while stack:
            vertex = stack.pop()
            if not vertex._seq or id(vertex) in nodes:
                continue
            nodes[id(vertex)] = vertex
            for source in vertex.ins:
                if source is not None:
                    below = source.node if source._seq < 0 else source
                    waiting[id(below)] = waiting.get(id(below), 0) + 1
                    stack.append(below)
        return list(nodes.values())

    def _prune(self, nodes: list[Node]) -> None:
        """Which nodes have to run: those on a path to a target."""
        self.needed = needed = set()
        for node in sorted(nodes, key=lambda node: node._seq):
            for source in node.ins:
                if source is not None and (_key(source) in self.wanted or id(_vertex(source)) in needed):
                    needed.add(id(node))
                    break

    def _push(self, vertex: Any) -> None:
        self.vertices[id(vertex)] = vertex
        self.pushed += 1
        heapq.heappush(self.ready, (-(vertex._seq or LAST), self.pushed, id(vertex)))

    def _arrive(self, source: Any, value: Any) -> None:
        vertex, at = (source.node, source.nr) if source._seq < 0 else (source, 0)
        buffer = self.buffers.get(id(vertex))
        if buffer is None:
            buffer = self.buffers[id(vertex)] = [None] * (vertex.outputs if vertex._seq else 1)
        if value is not None:
            buffer[at] = value if buffer[at] is None else buffer[at] + value

    def _run_node(self, node: Node, found: list[Any]) -> None:
        cts = self.buffers.pop(id(node), None) or [None] * node.outputs
        extra = node.extra
        if extra is not None:
            for at, hooks in extra.tensor_hooks.items():
                if cts[at] is not None:
                    cts[at] = self._hooked(cts[at], hooks, node.name())
            for at, held in extra.retained.items():
                kept = held()
                if kept is not None and cts[at] is not None:
                    add_to_grad(kept, self._tensor(cts[at]), self.create)
        runs = self.needed is None or id(node) in self.needed
        if extra is not None and extra.prehooks and any(ct is not None for ct in cts):
            cts = self._before(node, extra.prehooks, cts)
        if self.wanted:
            for at in range(node.outputs):
                for target in self.wanted.get((id(node), at), ()):
                    found[target] = None if cts[at] is None else self._own(cts[at])
        results = self._results(node, cts) if runs else [None] * len(node.ins)
        for source, value in zip(node.ins, results, strict=False):
            if source is not None:
                below = _vertex(source)
                self._arrive(source, value)
                self.waiting[id(below)] -= 1
                if not self.waiting[id(below)]:
                    self._push(below)

    def _before(self, node: Node, hooks: dict[int, Any], cts: list[Any]) -> list[Any]:
        for hook in list(hooks.values()):
            before = self._tensors(cts)
            changed = hook(before)
            if changed is not None:
                cts = [self._raw(ct) for ct in answered(changed, before, f"a prehook of {node.name()}")]
        return cts

    def _results(self, node: Node, cts: list[Any]) -> list[Any]:
        if all(ct is None for ct in cts):
            results: list[Any] = [None] * len(node.ins)
        else:
            results = node.run(cts, self.create)
        extra = node.extra
        if extra is not None and extra.hooks:
            before = self._tensors(cts)
            for hook in list(extra.hooks.values()):
                sent = self._tensors(results)
                changed = hook(sent, before)
                if changed is not None:
                    results = [self._raw(value) for value in answered(changed, sent, f"a hook of {node.name()}")]
        if sweeps.anomaly:
            from gradcli.eager.autograd.anomaly_mode import inspect

            inspect(node, cts, results)
        if recorder.current is not None:
            recorder.current.ran(node, cts, results)
        if not self.retain:
            node.release()
        return results

    def _run_leaf(self, leaf: Tensor, found: list[Any]) -> None:
        value = self.buffers.pop(id(leaf), [None])[0]
        if value is None:
            return
        if leaf._hooks:
            value = self._hooked(value, leaf._hooks, "a leaf")
        for target in self.wanted.get((id(leaf), 0), ()):
            found[target] = self._own(value)
        if not self.accumulate:
            return
        extra = leaf._leaf_hooks
        if extra is not None and extra.prehooks:
            for hook in list(extra.prehooks.values()):
                before = self._tensors([value])
                changed = hook(before)
                if changed is not None:
                    (value,) = [self._raw(one) for one in answered(changed, before, "a prehook of AccumulateGrad")]
            if value is None:
                return
        add_to_grad(leaf, self._tensor(value), self.create)
        if leaf._post_hooks:
            for hook in list(leaf._post_hooks.values()):
                answer = hook(leaf)
                if answer is not None:
                    error = RuntimeError if isinstance(answer, Tensor) else TypeError
                    raise error(f"post accumulate grad hooks should return None, not {type(answer).__name__}")
        if extra is not None:
            for hook in list(extra.hooks.values()):
                answer = hook((), (self._tensor(value),))
                if answer is not None:
                    answered(answer, (), "a hook of AccumulateGrad")

    def _hooked(self, value: Any, hooks: dict[int, Any], what: str) -> Any:
        changed = replaced(hooks, self._tensor(value), what)
        return value if changed is None else self._raw(changed)

    def _tensors(self, values: list[Any]) -> tuple[Tensor | None, ...]:
        return tuple([None if value is None else self._tensor(value) for value in values])

    def _tensor(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else Tensor(value)

    def _own(self, value: Any) -> Tensor:
        """A gradient for the caller, in memory that no other gradient shares."""
        return value if isinstance(value, Tensor) else Tensor(np.array(value)[()])

    def _raw(self, value: Tensor | None) -> Any:
        return value if value is None or self.create else value._raw


def _vertex(source: Any) -> Any:
    return source.node if source._seq < 0 else source


def _key(source: Any) -> tuple[int, int]:
    if source is None:
        return (0, 0)
    return (id(source.node), source.nr) if source._seq < 0 else (id(source), 0)
