"""A backward as a function that is differentiated again: its own derivative, by its framework, beside differences.

A rule that is right in first order may be wrong in second: where its backward detaches an argument, or reads a result
that its forward saved without the graph. Only formulas that are smooth at the point are compared: where differences of
two steps disagree nothing is said.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.recording.calls.box import OWN
from gradcli.recording.calls.failures import describe
from gradcli.recording.calls.gradient_libraries import JAX, TORCH, is_tensor, listed, sent_back
from gradcli.recording.graphs.traced_rule import is_rule

if TYPE_CHECKING:
    from gradcli.recording.calls.box import BlackBox, Floats

STEP = 1e-3  # of differences, relative to the largest entry
CLOSE = 1e-6  # how far differences of two steps may be apart, relatively
OFF = 1e-3  # from where on a second derivative is wrong
FIRST_ONLY = "the first order was judged"


def by_differentiating_again(box: BlackBox, seed: int) -> str:
    """Which orders of a rule are right at the point, in words; empty for what is no rule."""
    run = {TORCH: torch_again, JAX: jax_again}.get(box.library.name)
    if run is None or box.kind != OWN or box.dtype != "float64" or box.float32 or not is_rule(box.f):
        return ""
    draw = np.random.default_rng(seed)
    direction, weights = draw.uniform(-1, 1, box.x.shape), draw.uniform(0.5, 1.5, box.x.shape)
    try:
        with box.listener.hearing(box.role, False), np.errstate(all="ignore"):
            try:
                _, slope = run(box, box.x, seed, weights, True)
            except Exception as problem:
                return f"{FIRST_ONLY}: differentiated again it raises {describe(problem)}"
            step = STEP * max(1.0, float(np.abs(box.x).max(initial=0.0)))
            slopes = []
            for h in (step, step / 2):
                ends = [run(box, box.x + k * h * direction, seed, weights, False)[0] for k in (-2, -1, 1, 2)]
                slopes.append((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h))
    except Exception:  # the verdict reports what a function raises
        return ""
    coarse, fine = slopes
    own = float(slope @ direction)
    size = max(abs(fine), abs(own), float(np.abs(weights).max()) * 1e-6)
    if not np.isfinite([coarse, fine, own]).all() or abs(coarse - fine) > CLOSE * size:
        return f"{FIRST_ONLY}: what it sends has no derivative by differences here"
    if abs(own - fine) <= OFF * size:
        return "two orders were judged: differentiated again it agrees with differences of what it sends"
    return f"differentiated again it is wrong: {own:.6g} along a direction, not {fine:.6g}"


def torch_again(box: BlackBox, x: Floats, seed: int, weights: Floats, twice: bool) -> tuple[float, Floats]:
    """A combination of what cotangents send to the arguments at x, and its own gradient."""
    torch: Any = sys.modules[TORCH]
    arguments = box.arguments_at(x, False)
    moved = [arguments[name].requires_grad_() for name in box.names]
    copies = {name: arguments[name].clone() for name in box.names if box.library.copies}
    results = [y for y in listed(box.spread(box.f, {**arguments, **copies})) if is_tensor(y) and y.requires_grad]
    draw = np.random.default_rng(seed)
    shares = [draw.uniform(0.5, 1.5, tuple(y.shape)) for y in results]
    cotangents = [torch.tensor(ct, dtype=y.dtype, requires_grad=twice) for ct, y in zip(shares, results, strict=True)]
    sent = sent_back(torch, [*zip(results, cotangents, strict=True)], moved, graph=twice)
    parts = [torch.tensor(weights[box.slices[name]].reshape(box.shape_of(name))) for name in box.names]
    pairs = [(part, own) for part, own in zip(parts, sent, strict=True) if own is not None]
    total = sum([(part * own).sum() for part, own in pairs])
    slope = np.zeros(x.shape)
    if twice and is_tensor(total) and total.requires_grad:
        sent_back(torch, [(total, torch.ones_like(total))], [])  # which reaches the error of once_differentiable too
        for name, x_moved in zip(box.names, moved, strict=True):
            if x_moved.grad is not None:
                slope[box.slices[name]] = x_moved.grad.numpy().reshape(-1)
    return float(total), slope


def jax_again(box: BlackBox, x: Floats, seed: int, weights: Floats, twice: bool) -> tuple[float, Floats]:
    """The same for a function of JAX's arrays."""
    jax: Any = sys.modules[JAX]
    arguments = box.arguments_at(x, False)

    def combined(moved: dict[str, Any]) -> Any:
        def run(own: dict[str, Any]) -> list[Any]:
            leaves = jax.tree_util.tree_leaves(box.spread(box.f, {**arguments, **own}))
            return [leaf for leaf in leaves if leaf.dtype.kind == "f"]

        value, back = jax.vjp(run, moved)
        draw = np.random.default_rng(seed)
        (sent,) = back([jax.numpy.asarray(draw.uniform(0.5, 1.5, y.shape), y.dtype) for y in value])
        parts = {name: weights[box.slices[name]].reshape(box.shape_of(name)) for name in box.names}
        return sum([(parts[name] * sent[name]).sum() for name in box.names])

    moved = {name: arguments[name] for name in box.names}
    total, sent = jax.value_and_grad(combined)(moved) if twice else (combined(moved), {})
    slope = np.zeros(x.shape)
    for name, own in sent.items():
        slope[box.slices[name]] = np.asarray(own).reshape(-1)
    return float(total), slope
