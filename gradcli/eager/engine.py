"""Tensors to differentiate go in, gradients are added into the leaves or come out; knows no operation.

Arguments are checked here. `short.py` sweeps where nobody can watch, `sweep.py` in every other case.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder, short, tracing
from gradcli.eager.accumulate import add_to_grad, copied
from gradcli.eager.hooking import hook_on, retain
from gradcli.eager.nodes import GradientEdge
from gradcli.eager.rules import fitted_tensor, source_of
from gradcli.eager.state import SILENT, SPECIAL, state, sweeps, warn
from gradcli.eager.sweep import Sweep
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add_to_grad", "backward", "copied", "ends_of", "hook_on", "retain", "run", "seeds_of"]


def backward(
    tensors: Tensor | Sequence[Tensor],
    gradients: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of some tensors into the `.grad` of the leaves, or of `inputs` only."""
    if tracing.inside:
        raise RuntimeError("backward() was called inside a transform of torch.func: use func.grad or func.vjp there")
    if gradients is None and inputs is None and not create_graph and isinstance(tensors, Tensor):
        kind = tensors._raw.__class__
        if (kind is np.float32 or kind is np.float64) and tensors._requires and not tensors._odd and _unwatched():
            _swept([tensors._node or tensors], [kind(1)], bool(retain_graph))  # what a training step does
            return
    roots = ends_of(tensors, gradients)
    chosen = None
    if inputs is not None:
        chosen = ends_of(inputs)
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
    found = run(
        roots, seeds, create_graph if retain_graph is None else retain_graph, create_graph, chosen, chosen is None
    )
    if chosen is not None:
        for x, value in zip(chosen, found, strict=True):
            if value is not None:
                add_to_grad(x, value, create_graph)


def ends_of(given: Any, seeds: Any = None) -> tuple[Tensor, ...]:
    """The tensors that are meant: one or several, or edges of the graph, for which tensors stand in."""
    xs = (given,) if isinstance(given, (Tensor, GradientEdge)) else tuple(given)
    if not any(isinstance(x, GradientEdge) for x in xs):
        return xs
    first = [seeds] if isinstance(seeds, Tensor) else list(seeds or ())
    found = []
    for x, seed in zip_longest(xs, first[: len(xs)]):
        if isinstance(x, GradientEdge):
            leaf = getattr(x.node, "variable", None)
            x = _stand_in(x, seed) if leaf is None else leaf
        found.append(x)
    return tuple(found)


def _stand_in(edge: GradientEdge, seed: Tensor | None) -> Tensor:
    """A tensor whose gradient arrives at an edge, of the shape of the one that the edge was taken from."""
    like = edge.ownership_token
    if like is None:
        like = ((), np.dtype(np.float32)) if seed is None else (seed._raw.shape, seed._raw.dtype)
    shape, kind = like
    found = Tensor(np.broadcast_to(kind.type(0), shape))
    found._requires, found._edge = True, (edge.node, edge.output_nr)
    return found


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
            if recorder.current is not None:
                recorder.current.refused(root)
            raise RuntimeError(
                "this tensor does not require grad and does not have a grad_fn, so there is nothing to go back "
                "through: set requires_grad=True on a leaf before computing it"
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
                    "pass gradient=, or go back from its real or imaginary part"
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
    """Whether nobody can see in which order a backward comes to the leaves."""
    return state.mode != SPECIAL and not sweeps.watched and not sweeps.anomaly and recorder.current is None


def _swept(sources: list[Any], seeds: list[Any], retain_graph: bool) -> None:
    """The short sweep, while operations leave no nodes."""
    before, mode = state._grad, state.mode
    state._grad, state.mode = False, SILENT
    try:
        short.sweep(sources, seeds, retain_graph)
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
    accumulate: bool,
) -> list[Any]:
    """One sweep; the gradients of `targets` as tensors, None where no path leads to one."""
    if recorder.current is not None:
        recorder.current.sweep(roots, targets, retain_graph, create_graph, accumulate)
    if targets is None and not create_graph and _unwatched():
        _swept([source_of(root) for root in roots], [seed._raw for seed in seeds], retain_graph)
        return []
    before = state._grad
    try:
        state.grad_enabled = create_graph
        found = Sweep(retain_graph, create_graph, accumulate).run(roots, seeds, targets)
    except BaseException:
        if recorder.current is not None:
            recorder.current.swept(ended=False)
        raise
    finally:
        state.grad_enabled = before  # a Function of the user's may have changed other flags
    if recorder.current is not None:
        recorder.current.swept()
    return found
