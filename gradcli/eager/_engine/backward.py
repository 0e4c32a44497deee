"""Reverse mode over the recorded graph: the sweep, hooks, and accumulation into `.grad`.

Nodes run in descending order of their sequence numbers. All walks are loops, so a graph may be a million nodes deep.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from sys import getrefcount
from threading import RLock
from typing import Any

import numpy as np

from gradcli.eager._core import anomaly_mode, events, tracer
from gradcli.eager._core.grad_fn import Node
from gradcli.eager._core.modes import SILENT, SPECIAL, state, sweeps, warn
from gradcli.eager._core.tensor import Handle, Tensor
from gradcli.eager._engine.record import COPY, copied
from gradcli.eager._engine.rule_node import fit, fitted_tensor, source_of


def hook_on(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Register a hook on a tensor: with its node, or with the leaf; RuntimeError where no gradient will come."""
    edge = x._current_edge()
    if not x.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that does not require grad")
    sweeps.watched = True
    events.report("hooked", x, "register_hook")
    if edge is None:
        if x._hooks is None:
            x._hooks = {}
        return Handle(x._hooks, hook)
    node, at = edge
    return Handle(node.rare.tensor_hooks.setdefault(at, {}), hook)


def retain(x: Tensor) -> None:
    """Make a tensor that is not a leaf keep its gradient."""
    edge = x._current_edge()
    if not x.requires_grad:
        raise RuntimeError("can't retain_grad on a tensor that does not require grad")
    if edge is None:
        return
    node, at = edge
    node.rare.retained[at] = weakref.ref(x)
    x._retains = True
    events.report("retained", x)


def hand_over(x: Tensor, old: Any, new: Any) -> None:
    """After an in-place change: what retains the gradient of x moves from the old edge to the new one."""
    if x._retains and old is not None and old[0].extra is not None:
        held = old[0].extra.retained.pop(old[1], None)
        if held is not None:
            new[0].rare.retained[new[1]] = held


def answered(answer: Any, values: Sequence[Tensor | None], what: str) -> list[Tensor | None]:
    """The gradients that a hook returned in place of others.

    TypeError for what is not a tuple of tensors, RuntimeError for another number, shape or format of them.
    """
    if not isinstance(answer, tuple):
        raise TypeError(f"{what} returned {type(answer).__name__} where a tuple or None is expected")
    if len(answer) != len(values):
        raise RuntimeError(f"{what} returned an incorrect number of gradients: {len(answer)}, not {len(values)}")
    return [None if ct is None else _fitting(ct, value, what) for ct, value in zip(answer, values, strict=True)]


def _fitting(answer: Any, value: Tensor | None, what: str) -> Tensor:
    if not isinstance(answer, Tensor):
        raise TypeError(f"{what} returned {type(answer).__name__} where a tensor or None is expected")
    if value is None:
        raise RuntimeError(f"{what} returned a gradient where there is none to replace")
    if answer._raw.shape != value._raw.shape:
        raise RuntimeError(f"{what} returned a gradient of shape {list(answer.shape)}, not {list(value.shape)}")
    if answer._raw.dtype != value._raw.dtype:
        raise RuntimeError(f"{what} returned a gradient of dtype {answer.dtype}, not {value.dtype}")
    return answer


_adding = RLock()  # threads may send gradients to one leaf, as Hogwild training does: none is lost

running = events.per_thread(watch=None)  # the sweep with hooks that goes on in this thread
_LARGE = 1024  # below this many entries a copy is cheaper than the test


def _alone(held: list[Any]) -> bool:
    """Whether nothing but this list refers to the array at its end, and to its memory, in which it lies row by row.

    Neither gets a name here, which would be one more reference.
    """
    if held[-1].__class__ is not np.ndarray or held[-1].size <= _LARGE or getrefcount(held[-1]) > 2:
        return False
    if not held[-1].flags.c_contiguous or not held[-1].flags.writeable:
        return False
    if held[-1].base is None:
        return True
    if held[-1].base.__class__ is not np.ndarray or getrefcount(held[-1].base) > 2:
        return False
    return held[-1].base.base is None and bool(held[-1].base.size == held[-1].size)


def add_raw(leaf: Tensor, raw: Any, alone: bool = False) -> None:
    """Add a raw array into `.grad`, which has memory of its own: a copy, or the array if nothing else refers to it."""
    with _adding:
        known = leaf._grad
        if known is not None:
            if isinstance(known._raw, np.ndarray) and known._raw.shape == raw.shape:
                np.add(known._raw, raw, out=known._raw)
            else:
                known._raw = known._raw + raw
            if known._count is not None:
                known._count.bump(None)
            known._added += 1
            return
        grad = object.__new__(Tensor)
        grad._raw = raw if alone or not isinstance(raw, np.ndarray) else np.array(raw, order="C")
        grad._node = grad._count = None
        grad._requires = False
        grad._added = 1
        leaf._grad = grad


def add_to_grad(leaf: Tensor, value: Tensor, create_graph: bool) -> None:
    """Add a gradient into `.grad`, with a node where a graph is wanted."""
    with _adding:
        known = leaf._grad
        if not create_graph:
            add_raw(leaf, value._raw)
            if known is None and value._inference:
                grad: Any = leaf._grad
                grad._inference = grad._special = True
        elif known is None:
            leaf._grad = copied(value, COPY)
            leaf._grad._added = 1
        else:
            leaf._grad = known + value
            leaf._grad._added = known._added + 1
    events.report("accumulated", leaf, value)


def sweep(sources: Sequence[Any], seeds: Sequence[Any], retain: bool, watch: BackwardWatch | None = None) -> None:
    """Send the seeds from their sources (nodes, outputs of nodes, or leaves) down to the leaves.

    A node runs in descending order of the sequence numbers. Unless someone watches, leaves get theirs at the end: where
    a node fails, no leaf does.
    """
    heap: list[int] = []  # the numbers of the pending nodes, but for `top`
    nodes: dict[int, Any] = {}
    cts: dict[int, Any] = {}
    leaves: dict[int, list[Any]] = {}
    top: Any = None  # one pending node, so that a chain needs no heap; its number, and what has arrived at it
    last, first = 0, None
    for source, seed in zip(sources, seeds, strict=True):
        _arrive(source, seed, heap, nodes, cts, leaves)
    if watch is not None:
        watch.start(leaves)
    while heap or last:
        if not last or (heap and -heap[0] > last):
            s = -heappop(heap)
            node, ct = nodes.pop(s), cts.pop(s)
        else:
            node, ct, last, first = top, first, 0, None
        if watch is not None:
            for source, value in zip(node.ins, watch.run(node, ct), strict=False):
                if source is not None:
                    _arrive(source, value, heap, nodes, cts, leaves)
            watch.arrived(node, leaves)
            continue
        if node.extra is not None:
            for at, held in node.extra.retained.items():
                kept, value = held(), ct[at] if node.outputs > 1 else ct
                if kept is not None and value is not None:
                    add_raw(kept, value)
        saved = node.saved
        if node.simple:
            if saved is None:
                node.check_not_freed()
            results = node.vjp.back(node, ct)
            if node.broadcast_to is not None:
                results = fit(results, node.broadcast_to)
        else:
            results = node.run(ct if node.outputs > 1 else [ct], False)
        if saved and not retain and not node.keeps:
            node.saved = None
        saved = ct = None
        for source, value in zip(node.ins, results):  # noqa: B905 - the keyword costs as much as the loop
            if source is None or value is None:
                continue
            s = source._seq
            if s == last and s:
                first = first + value
            elif s in nodes:
                cts[s] = cts[s] + value
            elif s > 0:
                if not last:
                    top, last, first = source, s, value
                else:
                    nodes[s], cts[s] = source, value
                    heappush(heap, -s)
            elif not s:
                known = leaves.get(id(source))
                leaves[id(source)] = [source, value if known is None or known[1] is None else known[1] + value]
            else:
                _arrive(source, value, heap, nodes, cts, leaves)
    results = value = known = None
    while leaves:  # what has been copied is let go
        entry = leaves.pop(next(iter(leaves)))
        alone = _alone(entry)
        add_raw(entry[0], entry[1], alone)


def _arrive(
    source: Any, value: Any, heap: list[int], nodes: dict[int, Any], cts: dict[int, Any], leaves: dict[int, list[Any]]
) -> None:
    """Deliver one contribution, which may be None; the loop above has the common case written out."""
    s = source._seq
    if s == 0:
        entry = leaves.setdefault(id(source), [source, None])
        if value is not None:
            entry[1] = value if entry[1] is None else entry[1] + value
        return
    node, at = (source, 0) if s > 0 else (source.node, source.nr)
    s = node._seq
    if s not in nodes:
        nodes[s] = node
        heappush(heap, -s)
        cts[s] = [None] * node.outputs if node.outputs > 1 else None
    if value is None:
        return
    if node.outputs > 1:
        known = cts[s][at]
        cts[s][at] = value if known is None else known + value
    else:
        cts[s] = value if cts[s] is None else cts[s] + value


class BackwardWatch:
    """What a sweep does beyond sending gradients to leaves: hooks, targets, a graph of the gradients, a record.

    A leaf runs as soon as its last contribution has arrived. With `create` the gradients are tensors, and what the
    rules compute is recorded in turn; else they are raw arrays.
    """

    def __init__(self, sources: Sequence[Any], targets: Sequence[Tensor] | None, retain: bool, create: bool) -> None:
        self.retain, self.create, self.accumulate = retain, create, targets is None
        self.missing: dict[int, int] = {}  # by leaf: contributions that have not arrived
        self.gradients: list[Any] = [None] * len(targets or ())
        self.wanted: dict[tuple[int, int], list[int]] = {}
        self.needed: set[int] | None = None
        for i, x in enumerate(targets or ()):
            self.wanted.setdefault(_key(source_of(x)), []).append(i)
        self.nodes: dict[int, Node] = {}
        stack = [_vertex(source) for source in sources]
        while stack:
            vertex = stack.pop()
            if not vertex._seq:
                self.missing.setdefault(id(vertex), 0)
            elif id(vertex) not in self.nodes:
                self.nodes[id(vertex)] = vertex
                for source in vertex.ins:
                    if source is not None:
                        if not source._seq:
                            self.missing[id(source)] = self.missing.get(id(source), 0) + 1
                        stack.append(_vertex(source))
        if targets is not None:  # those on a path to a target have to run
            self.needed = needed = set()
            for node in sorted(self.nodes.values(), key=lambda node: node._seq):
                if any(map(self._leads, node.ins)):
                    needed.add(id(node))

    def _leads(self, source: Any) -> bool:
        """Whether a target is reached through an edge."""
        assert self.needed is not None
        return source is not None and (_key(source) in self.wanted or id(_vertex(source)) in self.needed)

    def reaches(self, x: Tensor) -> bool:
        """Whether it sends a gradient to a tensor, whose hooks are then called."""
        source = source_of(x)
        return self._leads(source) if self.needed is not None else id(_vertex(source)) in {*self.nodes, *self.missing}

    def start(self, leaves: dict[int, list[Any]]) -> None:
        """Run the leaves among the roots that no node leads to."""
        for key in [key for key in leaves if not self.missing[key]]:
            self._run_leaf(*leaves.pop(key))

    def arrived(self, node: Node, leaves: dict[int, list[Any]]) -> None:
        """Run the leaves for which the contribution of this node was the last one."""
        for source in node.ins:
            if source is not None and not source._seq:
                self.missing[id(source)] -= 1
                if not self.missing[id(source)]:
                    self._run_leaf(*leaves.pop(id(source)))

    def run(self, node: Node, ct: Any) -> list[Any]:
        """The gradients that a node sends, with all that hangs on it; a node on no path to a target is left out."""
        runs = self.needed is None or id(node) in self.needed
        if not runs and not any((id(node), at) in self.wanted for at in range(node.outputs)):
            return [None] * len(node.ins)
        cts = ct if node.outputs > 1 else [ct]
        extra = node.extra
        if extra is not None:
            for at, hooks in extra.tensor_hooks.items():
                if cts[at] is not None:
                    cts[at] = self._hooked(cts[at], hooks, node.name())
            for at, held in extra.retained.items():
                kept = held()
                if kept is not None and cts[at] is not None:
                    add_to_grad(kept, self._tensor(cts[at]), self.create)
        if extra is not None and extra.prehooks and any(ct is not None for ct in cts):
            cts = self._through(extra.prehooks, cts, f"a prehook of {node.name()}")
        if self.wanted:
            for at in range(node.outputs):
                for target in self.wanted.get((id(node), at), ()):
                    self.gradients[target] = None if cts[at] is None else self._own(cts[at])
        return self._results(node, cts) if runs else [None] * len(node.ins)

    def _through(self, hooks: dict[int, Any], values: list[Any], what: str, *others: Any) -> list[Any]:
        """Call hooks on gradients one after the other; each may replace them."""
        for hook in list(hooks.values()):
            before = self._tensors(values)
            changed = hook(before, *others)
            if changed is not None:
                values = [self._raw(gradient) for gradient in answered(changed, before, what)]
        return values

    def _results(self, node: Node, cts: list[Any]) -> list[Any]:
        if all(ct is None for ct in cts):
            results: list[Any] = [None] * len(node.ins)
        else:
            results = node.run(cts, self.create)
            if self.needed is not None:
                pairs = zip(node.ins, results, strict=False)
                results = [value if self._leads(source) else None for source, value in pairs]
        extra = node.extra
        if extra is not None and extra.hooks:
            results = self._through(extra.hooks, results, f"a hook of {node.name()}", self._tensors(cts))
        events.report("ran", node, cts, results)
        if sweeps.anomaly:
            anomaly_mode.inspect(node, cts, results)
        if not self.retain:
            node.release()
        return results

    def _run_leaf(self, leaf: Tensor, value: Any) -> None:
        if value is None or not (self.accumulate or (id(leaf), 0) in self.wanted):
            return
        if leaf._hooks:
            value = self._hooked(value, leaf._hooks, "a leaf")
        for target in self.wanted.get((id(leaf), 0), ()):
            self.gradients[target] = self._own(value)
        if not self.accumulate:
            return
        extra = leaf._leaf_hooks
        if extra is not None and extra.prehooks:
            (value,) = self._through(extra.prehooks, [value], "a prehook of AccumulateGrad")
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
            self._through(extra.hooks, [], "a hook of AccumulateGrad", (self._tensor(value),))

    def _hooked(self, value: Any, hooks: dict[int, Any], what: str) -> Any:
        for hook in list(hooks.values()):
            before = self._tensor(value)
            changed = hook(before)
            if changed is not None:
                value = self._raw(_fitting(changed, before, f"a hook on {what}"))
        return value

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


def backward(
    tensors: Tensor | Sequence[Tensor],
    gradients: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of some tensors into the `.grad` of the leaves, or of `inputs` only."""
    if tracer.own.inside:
        raise RuntimeError("backward() was called inside a transform of torch.func: use func.grad or func.vjp there")
    if gradients is None and inputs is None and not create_graph and isinstance(tensors, Tensor):
        kind = tensors._raw.__class__
        if (kind is np.float32 or kind is np.float64) and tensors._requires and not tensors._special and _unwatched():
            _swept([tensors._node or tensors], [kind(1)], bool(retain_graph))  # what a training step does
            return
    roots = tensors_of(tensors)
    chosen = None
    if inputs is not None:
        chosen = tensors_of(inputs)
        if not chosen:
            raise RuntimeError("inputs= of backward() cannot be empty")
        if not all(x.requires_grad for x in chosen):
            raise RuntimeError("one of the tensors in inputs= does not require grad, so there is no gradient for it")
    seeds = seeds_of(roots, gradients)
    if create_graph:
        warn(
            "backward() with create_graph=True makes a reference cycle between a tensor and its .grad, which leaks "
            "memory until .grad is set to None; autograd.grad() makes none",
            UserWarning,
        )
    gradients = run(roots, seeds, create_graph if retain_graph is None else retain_graph, create_graph, chosen)
    if chosen is not None:
        for x, value in zip(chosen, gradients, strict=True):
            if value is not None:
                add_to_grad(x, value, create_graph)


def tensors_of(xs: Any) -> tuple[Tensor, ...]:
    """One tensor or several as a tuple; TypeError for anything else."""
    tensors = (xs,) if isinstance(xs, Tensor) else tuple(xs)
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"only tensors have gradients, and this is {type(x).__name__}")
    return tensors


def seeds_of(roots: Sequence[Tensor], gradients: Any) -> list[Tensor]:
    """The gradients to start with: 1 for a scalar; RuntimeError where one is needed or does not fit."""
    cotangents = [None] * len(roots) if gradients is None else gradients
    if isinstance(cotangents, Tensor):
        cotangents = [cotangents]
    if len(cotangents) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(cotangents)} gradients")
    seeds = []
    for root, seed in zip(roots, cotangents, strict=True):
        if not root.requires_grad:
            events.report("refused", root)
            raise RuntimeError(
                "this tensor does not require grad and does not have a grad_fn, so there is nothing "
                "to differentiate: set requires_grad=True on a leaf before computing it"
            )
        if seed is None:
            if root._raw.size != 1:
                raise RuntimeError(
                    f"a gradient can be created implicitly only for scalar outputs, and this has shape "
                    f"{list(root.shape)}: pass gradient=, or reduce it with sum() or mean()"
                )
            raw = root._raw
            if raw.dtype.kind == "c":
                raise RuntimeError(
                    f"a gradient can be created implicitly only for real scalar outputs, and this is {root.dtype}: "
                    "pass gradient=, or call backward() on its real or imaginary part"
                )
            seed = Tensor(np.ones(raw.shape, raw.dtype) if raw.shape else raw.dtype.type(1))
        elif not isinstance(seed, Tensor):
            raise TypeError(f"gradients are tensors or None, not {type(seed).__name__}")
        elif seed._raw.shape != root._raw.shape:
            raise RuntimeError(f"the gradient has shape {list(seed.shape)}, but the output {list(root.shape)}")
        if seed._raw.dtype != root._raw.dtype:
            seed = fitted_tensor(seed, seed._raw.shape, root._raw.dtype)
        seeds.append(seed)
    return seeds


def _unwatched() -> bool:
    """Whether the order in which a backward reaches the leaves cannot be seen."""
    return state.mode != SPECIAL and not sweeps.watched and not sweeps.anomaly and events.own.current is None


def _swept(sources: list[Any], seeds: list[Any], retain_graph: bool) -> None:
    """A sweep that is not watched, while operations leave no nodes."""
    before, mode = state._grad, state.mode
    state._grad, state.mode = False, SILENT
    try:
        sweep(sources, seeds, retain_graph)
    finally:
        if state.mode == SILENT:
            state._grad, state.mode = before, mode
        else:
            state.grad_enabled = before  # a Function of the user's has changed other flags


def run(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    retain_graph: bool,
    create_graph: bool,
    targets: Sequence[Tensor] | None,
) -> list[Any]:
    """One sweep: into the leaves, or the gradients of `targets` as tensors, None where no path leads to one."""
    events.report("sweep", roots, targets, retain_graph, create_graph, targets is None)
    sources = [source_of(root) for root in roots]
    if targets is None and not create_graph and _unwatched():
        _swept(sources, [seed._raw for seed in seeds], retain_graph)
        return []
    before, outer = state._grad, running.watch
    try:
        state.grad_enabled = create_graph
        running.watch = watch = BackwardWatch(sources, targets, retain_graph, create_graph)
        sweep(sources, seeds if create_graph else [seed._raw for seed in seeds], retain_graph, watch)
    except BaseException:
        events.report("swept", ended=False)
        raise
    finally:
        running.watch, state.grad_enabled = outer, before  # a Function of the user's may have changed other flags
    events.report("swept")
    if not create_graph and targets is not None:
        events.report("returned", watch.gradients, roots)
    return watch.gradients
