"""A function and tensors go in, its results and their derivatives come out, on two grounds with one face.

Outside a recording the derivatives come from the graph that running the function leaves; inside one (`tracing`) they
are more nodes of the recorded graph. Both nest to any depth.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import tracer
from gradcli.eager._core.modes import enable_grad, is_grad_enabled
from gradcli.eager._core.node import AccumulateGrad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._ops.creation import zeros_like
from gradcli.eager._trace import placed
from gradcli.eager.autograd import grad as autograd_grad
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import pull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@contextmanager
def transforming() -> Iterator[None]:
    """Inside a transform: gradients are recorded, and backward() is refused."""
    tracer.inside += 1
    try:
        with enable_grad():
            yield
    finally:
        tracer.inside -= 1


class Linearized:
    """One run of a function at a point: its result, and products with its Jacobian from either side."""

    def __init__(self, run: Callable[[list[Tensor]], tuple[list[Any], Any]], points: Sequence[Tensor]) -> None:
        self.trace = tracer.current
        self.keeps = is_grad_enabled()
        for x in points:
            if not isinstance(x, Tensor):
                raise ValueError(f"derivatives are taken by tensors, not by {type(x).__name__}")
            if not x.dtype.is_floating_point:
                raise RuntimeError(f"only tensors of floating point dtype have derivatives, and this is {x.dtype}")
        if self.trace is not None:
            self.points = [self.trace.lifted(x) for x in points]
            self.inner: list[Tensor] = [self.trace.standing_for(x) for x in self.points]
        else:
            with enable_grad():
                self.inner = [_alias(x) if x.requires_grad else x.detach().requires_grad_() for x in points]
        self.own = {id(x) for x in self.inner if x.is_leaf}
        self.seeds: list[Tensor] = []
        with transforming():
            outputs, self.extra = run(self.inner)
        for out in outputs:
            if not isinstance(out, Tensor):
                raise RuntimeError(f"the function must return tensors, but got {type(out).__name__}")
        self.outputs: list[Tensor] = outputs

    def results(self) -> list[Tensor]:
        """What the function returned."""
        return [self._out(out) for out in self.outputs]

    def outside(self, value: Any) -> Any:
        """A value of the function's as the caller may have it; what is no tensor as it is."""
        return self._out(value) if isinstance(value, Tensor) else value

    def _out(self, value: Tensor) -> Tensor:
        if self.trace is not None:
            return self._placed([self.trace.node_of(value)], [value])[0]
        if not value.requires_grad:
            return value
        return value if self.keeps and _reaches_others(value, self.own) else value.detach()

    def back(self, cts: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients of the points, given those of the outputs; zeros where none arrives."""
        if self.trace is not None:
            return self._back_traced(cts)
        with transforming():
            pairs = [
                (out, ct) for out, ct in zip(self.outputs, cts, strict=True) if out.requires_grad and ct is not None
            ]
            found: Sequence[Any] = [None] * len(self.inner)
            if pairs:
                roots, seeds = [out for out, _ in pairs], [ct for _, ct in pairs]
                found = autograd_grad(roots, self.inner, seeds, True, True, allow_unused=True)
        return [zeros_like(x) if one is None else self._out(one) for x, one in zip(self.inner, found, strict=True)]

    def along(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """The derivatives of the outputs in a direction: gradients of gradients, which are linear in their seeds."""
        if self.trace is not None:
            return self._along_traced(tangents)
        results = []
        with transforming():
            for out in self.outputs:
                moved = None
                if out.requires_grad:
                    seed = zeros_like(out.detach()).requires_grad_()
                    self.seeds.append(seed)
                    self.own.add(id(seed))
                    found = autograd_grad(out, self.inner, seed, True, True, allow_unused=True)
                    pairs = [(g, t) for g, t in zip(found, tangents, strict=True) if g is not None and g.requires_grad]
                    if pairs:
                        grads, along = [g for g, _ in pairs], [t for _, t in pairs]
                        (moved,) = autograd_grad(grads, seed, along, True, True, allow_unused=True)
                results.append(zeros_like(out) if moved is None else self._out(moved))
        return results

    # --- inside a recording -------------------------------------------------------------------------------------

    def _back_traced(self, cts: Sequence[Tensor | None]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        pairs = [
            (trace.node_of(out), trace.node_of(ct))
            for out, ct in zip(self.outputs, cts, strict=True)
            if ct is not None and trace.node_of(out).type.kind == "float"
        ]
        leaves = [trace.node_of(x) for x in self.inner]
        with building(trace.builder, reachable([*[node for pair in pairs for node in pair], *leaves])):
            found = pull(trace.builder, pairs, leaves)
        return self._filled(found, self.inner)

    def _along_traced(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        leaves = [trace.node_of(x) for x in self.inner]
        outputs = [trace.node_of(out) for out in self.outputs]
        directions = [trace.node_of(t) for t in tangents]
        with building(trace.builder, reachable([*outputs, *leaves, *directions])):
            found = push(trace.builder, outputs, dict(zip(leaves, directions, strict=True)))
        return self._filled(found, self.outputs)

    def _filled(self, nodes: Sequence[Node | None], like: Sequence[Tensor]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        known = [
            trace.builder.constant(0, tuple(x.shape)) if node is None else node
            for node, x in zip(nodes, like, strict=True)
        ]
        return self._placed(known, like)

    def _placed(self, nodes: Sequence[Node], like: Sequence[Tensor]) -> list[Tensor]:
        """Nodes in terms of the caller's points instead of the fresh ones."""
        trace = self.trace
        assert trace is not None
        places = {trace.node_of(inner): trace.node_of(x) for inner, x in zip(self.inner, self.points, strict=True)}
        found = placed(trace.builder, nodes, places)
        return [Traced(np.zeros(tuple(x.shape), x.dtype.np), node) for node, x in zip(found, like, strict=True)]


def _alias(x: Tensor) -> Tensor:
    from gradcli.eager._ops.views import view

    return view(x, tuple(x.shape)) if x.is_contiguous() else x.clone()


def _reaches_others(value: Tensor, own: set[int]) -> bool:
    """Whether a gradient of this tensor would go anywhere but to the leaves of a transform."""
    if value.grad_fn is None:
        return id(value) not in own
    seen: set[int] = set()
    stack: list[Any] = [value.grad_fn]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            if id(node.variable) not in own:
                return True
        else:
            stack.extend(one for one, _ in node.next_functions if one is not None)
    return False
