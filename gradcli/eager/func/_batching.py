"""`vmap`: makes a function of single tensors a function of stacks of them.

The function is recorded once, and its graph is evaluated with a leading batch axis. The result is one node, whose
gradients come from the derivative of the recorded graph, also evaluated with a batch axis.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import tracer
from gradcli.eager._core.modes import place, recording
from gradcli.eager._core.node import Node as GradNode
from gradcli.eager._core.node import class_named
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._engine.rule_node import source_of
from gradcli.eager._ops.joining import stack, unbind
from gradcli.eager._ops.views import axis_of, permute
from gradcli.eager._trace import Trace
from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms.reverse import placed, pull

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Given = tuple[Node, Tensor, bool]  # an input of the graph, its values, whether they have a batch axis


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

    >>> import gradcli.eager as torch
    >>> vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "same", "different"):
        raise RuntimeError(f"randomness is 'error', 'same' or 'different', not {randomness!r}")
    if randomness == "different":
        raise RuntimeError("randomness='different' is not supported: draw the numbers outside, and pass them in")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        batch = _Batch(in_dims, args)
        inner = None if tracer.current is None else tracer.current
        trace = Trace(guarded=False, randomness=randomness) if inner is None else inner
        examples = batch.examples(trace)
        if inner is None:
            with trace.running():
                answer = func(*examples, **kwargs)
        else:
            answer = func(*examples, **kwargs)
        leaves, rebuild = flatten(answer)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(f"vmap needs a function that returns tensors, but got {type(leaf).__name__}")
        found = batch.unrolled(trace, leaves) if inner is not None else batch.computed(trace, leaves)
        dims = spread(out_dims, answer)
        return rebuild([_placed_axis(x, dim) for x, dim in zip(found, dims, strict=True)])

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
            self.leaves[i] = _in_front(x, dim)
            sizes.add(self.leaves[i].shape[0])
        self.mapped = [dim is not None for dim in dims]
        if not sizes:
            raise ValueError("vmap: in_dims must name an axis of at least one argument")
        if len(sizes) > 1:
            raise ValueError(f"vmap: expected all mapped axes to have the same size, but got {sorted(sizes)}")
        self.size: int = sizes.pop()

    def examples(self, trace: Trace) -> Any:
        """The arguments, with a placeholder for each that has a batch axis."""
        self.inner = [
            trace.fresh(np.zeros(tuple(x.shape[1:]), x.dtype.np)) if mapped else x
            for x, mapped in zip(self.leaves, self.mapped, strict=True)
        ]
        return self.rebuild(self.inner)

    def computed(self, trace: Trace, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The results, from one evaluation."""
        nodes = [trace.node_of(x) for x in outputs]
        given: list[Given] = [
            (inner._graph, x, True)
            for inner, x, mapped in zip(self.inner, self.leaves, self.mapped, strict=True)
            if mapped
        ]
        given.extend((one.leaf, one.tensor, False) for one in trace.captures.values())
        return evaluated(nodes, [x.dtype.np for x in outputs], given, self.size)

    def unrolled(self, trace: Trace, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The results inside another recording: the graph is copied for each position."""
        nodes = [trace.node_of(x) for x in outputs]
        mapped = [(inner, x) for inner, x, own in zip(self.inner, self.leaves, self.mapped, strict=True) if own]
        parts: list[list[Tensor]] = [[] for _ in outputs]
        for i in range(self.size):
            places = {inner._graph: trace.node_of(x[i]) for inner, x in mapped}
            for part, node, out in zip(parts, placed(trace.builder, nodes, places), outputs, strict=True):
                part.append(Traced(np.zeros(tuple(out.shape), out.dtype.np), node))
        return [stack(part) for part in parts]


def _in_front(x: Tensor, dim: int) -> Tensor:
    at = axis_of(dim, x.ndim) + x.ndim
    return x if at == 0 else permute(x, at, *[i for i in range(x.ndim) if i != at])


def _placed_axis(x: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        return unbind(x)[0]
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"out_dims={dim} does not exist in a result of {x.ndim} dimensions")
    at = dim % x.ndim
    return x if at == 0 else permute(x, *range(1, at + 1), 0, *range(at + 1, x.ndim))


# --- graphs with a batch axis --------------------------------------------------------------------------------------


def evaluated(nodes: Sequence[Node], kinds: Sequence[Any], given: Sequence[Given], size: int) -> list[Tensor]:
    """The values of nodes as tensors with a batch axis of this size, with one common node."""
    used = set(reachable(nodes))
    needed = [one for one in given if one[0] in used]
    arrays = values_of(nodes, kinds, {node: x._raw for node, x, _ in needed}, size)
    results = [Tensor(array) for array in arrays]
    if recording() and any(x.requires_grad for _, x, _ in needed):
        moving = tuple([source_of(x) for _, x, _ in needed])
        node = class_named(BatchNode, "VmapBackward0")(moving, tuple([x for _, x, _ in needed]), place())
        assert isinstance(node, BatchNode)
        node.outputs, node.nodes, node.kinds, node.size = len(results), nodes, kinds, size
        node.leaves = [(leaf, mapped) for leaf, _, mapped in needed]
        for i, result in enumerate(results):
            if result.dtype.is_floating_point:
                result._requires, result._edge = True, (node, i)
    return results


def values_of(nodes: Sequence[Node], kinds: Sequence[Any], values: dict[Node, Any], size: int) -> list[Any]:
    """The values of nodes as arrays with a batch axis in front."""
    floats = [
        array.dtype for array in (*values.values(), *[np.empty(0, kind) for kind in kinds]) if array.dtype.kind == "f"
    ]
    name = "float64" if np.dtype(np.float64) in floats else "float32"
    named = {node.params["name"]: np.asarray(array) for node, array in values.items()}
    found = Tape(list(nodes)).run(named, backend="numpy", dtype=name)
    arrays = []
    for node, kind, value in zip(nodes, kinds, found, strict=True):
        array = np.asarray(value).astype(kind)
        arrays.append(np.array(np.broadcast_to(array, (size, *node.shape))))
    return arrays


class BatchNode(GradNode):
    """The node of a function that `vmap` applied; its gradients are those of the recorded graph."""

    __slots__ = ("kinds", "leaves", "nodes", "outputs", "size")
    nodes: Sequence[Node]
    kinds: Sequence[Any]
    leaves: Sequence[tuple[Node, bool]]  # of each saved input: its node, and whether it has a batch axis
    size: int

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs; summed over the batch for those that have no batch axis."""
        self.check_not_freed()
        self.check_versions()
        builder = self.nodes[0].builder
        arrived = [
            (node, kind, ct) for node, kind, ct in zip(self.nodes, self.kinds, cts, strict=True) if ct is not None
        ]
        given = [(leaf, x, mapped) for (leaf, mapped), x in zip(self.leaves, self.saved or (), strict=True)]
        targets = [one for one in given if one[1].requires_grad]
        seeds = [builder.fresh_leaf(node.type) for node, _, _ in arrived]
        with building(builder, reachable([*self.nodes, *seeds, *[node for node, _, _ in targets]])):
            pairs = [(node, seed) for (node, _, _), seed in zip(arrived, seeds, strict=True)]
            found = pull(builder, pairs, [node for node, _, _ in targets])
        wanted = [(node, target) for node, target in zip(found, targets, strict=True) if node is not None]
        gradients = self._gradients(given, wanted, seeds, [ct for _, _, ct in arrived], create_graph)
        known = {target[0]: value for (_, target), value in zip(wanted, gradients, strict=True)}
        return [known.get(node) for node, _, _ in given]

    def _gradients(
        self, given: list[Given], wanted: Any, seeds: Sequence[Node], cts: Sequence[Any], create_graph: bool
    ) -> list[Any]:
        nodes = [node for node, _ in wanted]
        kinds = [target[1]._raw.dtype for _, target in wanted]
        if not nodes:
            return []
        if create_graph:
            given = [*given, *[(seed, ct, True) for seed, ct in zip(seeds, cts, strict=True)]]
            tensors = evaluated(nodes, kinds, given, self.size)
            return [x if target[2] else x.sum(0) for x, (_, target) in zip(tensors, wanted, strict=True)]
        values = {node: x._raw for node, x, _ in given}
        values.update(zip(seeds, cts, strict=True))
        used = set(reachable(nodes))
        arrays = values_of(nodes, kinds, {node: array for node, array in values.items() if node in used}, self.size)
        return [array if target[2] else array.sum(axis=0) for array, (_, target) in zip(arrays, wanted, strict=True)]


def flatten(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves from left to right, and a function that rebuilds the tree with other leaves.

    >>> leaves, rebuild = flatten({"a": 1, "b": (2, [3])})
    >>> leaves, rebuild([10, 20, 30])
    ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    if isinstance(tree, dict):
        keys = list(tree)
        return _joined([tree[key] for key in keys], lambda parts: type(tree)(zip(keys, parts, strict=True)))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _joined(list(tree), lambda parts: type(tree)(*parts))
    if isinstance(tree, (tuple, list)):
        return _joined(list(tree), lambda parts: type(tree)(parts))
    return [tree], lambda leaves: leaves[0]


def _joined(parts: list[Any], build: Callable[[list[Any]], Any]) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    found = [flatten(part) for part in parts]

    def rebuild(leaves: Sequence[Any]) -> Any:
        made, start = [], 0
        for inner, again in found:
            made.append(again(leaves[start : start + len(inner)]))
            start += len(inner)
        return build(made)

    return [leaf for inner, _ in found for leaf in inner], rebuild


def spread(given: Any, tree: Any) -> list[Any]:
    """One value for each leaf of a tree: the same for all, or nested like the tree. Raises ValueError otherwise."""
    if isinstance(tree, dict) and isinstance(given, dict):
        if set(given) != set(tree):
            raise ValueError(f"the keys {sorted(given)} do not match {sorted(tree)}")
        return [one for key in tree for one in spread(given[key], tree[key])]
    if isinstance(tree, (tuple, list)) and isinstance(given, (tuple, list)):
        if len(given) != len(tree):
            raise ValueError(f"{len(given)} values do not match {len(tree)} places")
        return [one for inner, part in zip(given, tree, strict=True) for one in spread(inner, part)]
    if isinstance(given, (tuple, list, dict)):
        raise ValueError(f"{given!r} is nested where the tree is not")
    return [given] * len(flatten(tree)[0])
