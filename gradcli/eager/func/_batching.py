"""`vmap`: makes a function of single tensors a function of stacks of them.

The function is recorded once, and its graph is evaluated with a leading batch axis. The result is one node, whose
gradients come from the derivative of the recorded graph, also evaluated with a batch axis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from gradcli.eager._core import tracer
from gradcli.eager._core.grad_fn import Node as GradNode
from gradcli.eager._core.grad_fn import class_named
from gradcli.eager._core.modes import place, recording, set_grad_enabled
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._engine.rule_node import source_of
from gradcli.eager._ops.tensor_joining import movedim, stack, unbind
from gradcli.eager._trace import FunctionTrace
from gradcli.eager.autograd.functional import flatten
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms.reverse import pull

Input = tuple[Node, Tensor, bool]  # an input of the graph, its values, whether they have a batch axis


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies `func` along an axis of its arguments, and stacks the results.

    `in_dims` is the axis of each argument (None: the same for all), `out_dims` that of the results. ValueError
    for arguments that do not fit, IndexError if `out_dims` does not exist, RuntimeError if `func` reads entries
    (`item()`, `if` on data) or draws random numbers, unless randomness="same".

    >>> vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "same"):  # "different" is not supported
        raise RuntimeError(f"randomness is 'error' or 'same', not {randomness!r}: draw numbers outside, pass them in")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        batch = _Batch(in_dims, args)
        inner = tracer.own.current
        trace = FunctionTrace(guarded=False, randomness=randomness) if inner is None else inner
        examples = batch.examples(trace)
        with trace.running() if inner is None else nullcontext():
            answer = func(*examples, **kwargs)
        leaves, rebuild = flatten(answer)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(f"vmap needs a function that returns tensors, but got {type(leaf).__name__}")
        results = batch.unrolled(trace, leaves) if inner is not None else batch.computed(trace, leaves)
        dims = spread(out_dims, answer)
        for x, dim in zip(results, dims, strict=True):
            if dim is not None and not -x.ndim <= dim < x.ndim:
                raise IndexError(f"out_dims={dim} does not exist in a result of {x.ndim} dimensions")
        moved = [unbind(x)[0] if dim is None else _moved(x, 0, dim) for x, dim in zip(results, dims, strict=True)]
        return rebuild(moved)

    return mapped


class _Batch:
    """The arguments of one call, with the batch axis moved to the front."""

    def __init__(self, in_dims: Any, args: tuple[Any, ...]) -> None:
        if not args:
            raise ValueError("vmap needs at least one argument to map over")
        if not isinstance(in_dims, (int, tuple, list)):
            raise ValueError(f"in_dims must be an integer or a tuple nested like the arguments, not {in_dims!r}")
        try:
            dims = spread(in_dims, args)
        except ValueError as wrong:
            raise ValueError(f"in_dims={in_dims!r} is not nested like the arguments: {wrong}") from None
        self.leaves, self.rebuild = flatten(args)
        sizes = set()
        for i, (x, dim) in enumerate(zip(self.leaves, dims, strict=True)):
            if dim is None:
                continue
            if not isinstance(x, Tensor):
                raise ValueError(f"in_dims gives an axis for an argument of type {type(x).__name__}: use None for it")
            if not -x.ndim <= dim < x.ndim:
                raise ValueError(f"in_dims={dim} does not exist in a tensor of {x.ndim} dimensions")
            self.leaves[i] = _moved(x, dim, 0)
            sizes.add(self.leaves[i].shape[0])
        self.mapped = [dim is not None for dim in dims]
        if not sizes:
            raise ValueError("vmap: in_dims must name an axis of at least one argument")
        if len(sizes) > 1:
            raise ValueError(f"vmap: expected all mapped axes to have the same size, but got {sorted(sizes)}")
        self.size: int = sizes.pop()

    def examples(self, trace: FunctionTrace) -> Any:
        """The arguments, with a placeholder for each that has a batch axis."""
        inner = list(self.leaves)
        self.pairs: list[tuple[Node, Any]] = []  # of each placeholder its node, and the values with the batch axis
        for i, x in enumerate(self.leaves):
            if self.mapped[i]:
                inner[i] = trace.fresh(np.zeros(tuple(x.shape[1:]), x.dtype.np))
                self.pairs.append((inner[i]._graph, x))
        return self.rebuild(inner)

    def computed(self, trace: FunctionTrace, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The results, from one evaluation."""
        nodes = [trace.node_of(x) for x in outputs]
        inputs: list[Input] = [(node, x, True) for node, x in self.pairs]
        inputs.extend((capture.leaf, capture.tensor, False) for capture in trace.captures.values())
        return evaluated(nodes, [x.dtype.np for x in outputs], inputs, self.size)

    def unrolled(self, trace: FunctionTrace, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The results inside another recording: the graph is copied for each position."""
        nodes = [trace.node_of(x) for x in outputs]
        parts: list[list[Tensor]] = [[] for _ in outputs]
        for i in range(self.size):
            places = {node: trace.node_of(x[i]) for node, x in self.pairs}
            for part, node, out in zip(parts, trace.builder.substituted(nodes, places), outputs, strict=True):
                part.append(Traced(np.zeros(tuple(out.shape), out.dtype.np), node))
        return [stack(part) for part in parts]


def _moved(x: Tensor, source: int, to: int) -> Tensor:
    return x if (source - to) % x.ndim == 0 else movedim(x, source, to)


def evaluated(nodes: Sequence[Node], kinds: Sequence[Any], inputs: Sequence[Input], size: int) -> list[Tensor]:
    """The values of nodes as tensors with a batch axis of this size in front, with one common node."""
    used = set(reachable(nodes))
    needed = [entry for entry in inputs if entry[0] in used]
    xs = [x for _, x, _ in needed]
    doubles = np.dtype(np.float64) in (*[x._raw.dtype for x in xs], *kinds)
    values = {node.params["name"]: np.asarray(x._raw) for node, x, _ in needed}
    arrays = Tape(list(nodes)).run(values, backend="numpy", dtype="float64" if doubles else "float32")
    results = [
        Tensor(np.array(np.broadcast_to(np.asarray(value).astype(kind), (size, *node.shape))))
        for node, kind, value in zip(nodes, kinds, arrays, strict=True)
    ]
    if recording() and any(x.requires_grad for x in xs):
        node = VMAP(tuple(map(source_of, xs)), tuple(xs), place())
        node.outputs, node.nodes, node.size = len(results), nodes, size
        node.leaves = [(leaf, mapped) for leaf, _, mapped in needed]
        for i, result in enumerate(results):
            if result.dtype.is_floating_point:
                result._requires, result._edge = True, (node, i)
    return results


class BatchNode(GradNode):
    """The node of a function that `vmap` applied; its gradients are those of the recorded graph."""

    __slots__ = ("leaves", "nodes", "outputs", "size")
    nodes: Sequence[Node]
    leaves: Sequence[tuple[Node, bool]]  # of each saved input: its node, and whether it has a batch axis
    size: int

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs; summed over the batch for those that have no batch axis."""
        self.check_not_freed()
        self.check_versions()
        builder = self.nodes[0].builder
        arrived = [
            (node, ct if isinstance(ct, Tensor) else Tensor(ct), builder.fresh_leaf(node.type))
            for node, ct in zip(self.nodes, cts, strict=True)
            if ct is not None
        ]
        inputs = [(leaf, x, mapped) for (leaf, mapped), x in zip(self.leaves, self.saved or (), strict=True)]
        targets = [entry for entry in inputs if entry[1].requires_grad]
        leaves, pairs = [node for node, _, _ in targets], [(node, seed) for node, _, seed in arrived]
        with building(builder, reachable([*self.nodes, *[seed for _, seed in pairs], *leaves])):
            cotangents = pull(builder, pairs, leaves)
        wanted = [(node, target) for node, target in zip(cotangents, targets, strict=True) if node is not None]
        known: dict[Node, Any] = {}
        with set_grad_enabled(create_graph):
            nodes, kinds = [node for node, _ in wanted], [x._raw.dtype for _, (_, x, _) in wanted]
            gradients = evaluated(nodes, kinds, [*inputs, *[(seed, ct, True) for _, ct, seed in arrived]], self.size)
            for (_, (leaf, _, mapped)), x in zip(wanted, gradients, strict=True):
                gradient = x if mapped else x.sum(0)
                known[leaf] = gradient if create_graph else gradient._raw
        return [known.get(leaf) for leaf, _, _ in inputs]


VMAP = class_named(BatchNode, "VmapBackward0")


def spread(value: Any, tree: Any) -> list[Any]:
    """One value for each leaf of a tree: the same for all, or nested like the tree. Raises ValueError otherwise."""
    if isinstance(tree, dict) and isinstance(value, dict):
        if set(value) != set(tree):
            raise ValueError(f"the keys {sorted(value)} do not match {sorted(tree)}")
        return [leaf for key in tree for leaf in spread(value[key], tree[key])]
    if isinstance(tree, (tuple, list)) and isinstance(value, (tuple, list)):
        if len(value) != len(tree):
            raise ValueError(f"{len(value)} values do not match {len(tree)} places")
        return [leaf for inner, part in zip(value, tree, strict=True) for leaf in spread(inner, part)]
    if isinstance(value, (tuple, list, dict)):
        raise ValueError(f"{value!r} is nested where the tree is not")
    return [value] * len(flatten(tree)[0])
