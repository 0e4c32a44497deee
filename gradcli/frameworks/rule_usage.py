"""Whether a rule of PyTorch or JAX sends the same gradients however it is used.

A backward sees which inputs require a gradient, and which results were used (None arrives for the others, unless they
are materialized); the forward of a `jax.custom_vjp` may return something else than the function itself. A recording has
one use only: all inputs, all results. Here the others are compared with it, at the point.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.frameworks.box import OWN
from gradcli.frameworks.failures import describe
from gradcli.frameworks.gradient_libraries import EAGER, JAX, TORCH, array_of, is_tensor, sent_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.frameworks.box import Box

    Floats = NDArray[np.floating[Any]]
    Gradients = dict[str, Floats]

CLOSE, LOOSE = 1e-9, 1e-2  # of what is sent, relatively: in float64, and in other formats


class Use(NamedTuple):
    """One use of a rule: its value, how many results have a gradient, and what a cotangent sends to the arguments."""

    value: list[Floats]
    results: int
    sent: Gradients


def by_usage(box: Box, seed: int) -> dict[str, str]:
    """For each argument, in words, how its gradient or the value depends on the use; empty where nothing does."""
    use = {TORCH: of_torch, EAGER: of_torch, JAX: of_jax}.get(box.library.name)
    if use is None or box.kind != OWN or not np.isfinite(box.x).all():
        return {}
    found: dict[str, str] = {}
    with box.listener.hearing(box.role, False), np.errstate(all="ignore"):
        for name, told in differences(box, partial(use, box, seed)):
            found.setdefault(name, told)
    return found


def of_torch(box: Box, seed: int, names: Sequence[str], which: int | None = None) -> Use:
    """A use in which these arguments require a gradient, and a cotangent arrives at all results or at one."""
    module: Any = sys.modules[box.library.name]
    arguments = box.given(box.x, False)
    for name in names:
        arguments[name].requires_grad_()
    given = {**arguments, **{name: arguments[name].clone() for name in names if box.library.copies}}
    value = box.spread(box.f, given)
    results = [one for one in (value if isinstance(value, (tuple, list)) else [value]) if is_tensor(one)]
    draw = np.random.default_rng(seed)
    cotangents = [draw.uniform(0.5, 1.5, tuple(one.shape)) for one in results]
    pairs = [(one, ct) for one, ct in zip(results, cotangents, strict=True) if one.requires_grad]
    chosen = pairs if which is None else pairs[which : which + 1]
    found = [None for _ in names]
    if chosen:
        seeded = [(one, module.tensor(ct, dtype=one.dtype).to(one.device)) for one, ct in chosen]
        found = sent_back(module, seeded, [arguments[name] for name in names])
    sent = {name: part_of(box, name, one) for name, one in zip(names, found, strict=True)}
    return Use([np.asarray(array_of(one)) for one in results], len(pairs), sent)


def of_jax(box: Box, seed: int, names: Sequence[str]) -> Use:
    """A use in which these arguments are differentiated. A cotangent of zeros arrives at results that are not used."""
    jax: Any = sys.modules[JAX]
    arguments = box.given(box.x, False)

    def run(*moved: Any) -> list[Any]:
        given = {**arguments, **dict(zip(names, moved, strict=True))}
        return list(jax.tree_util.tree_leaves(box.spread(box.f, given)))

    if not names:
        return Use(list(map(np.asarray, run())), 1, {})
    value, back = jax.vjp(run, *[arguments[name] for name in names])
    draw = np.random.default_rng(seed)
    seeds = [
        jax.numpy.asarray(draw.uniform(0.5, 1.5, one.shape), one.dtype)
        if one.dtype.kind in "fV"
        else np.zeros(one.shape, jax.dtypes.float0)
        for one in value
    ]
    sent = {name: part_of(box, name, one) for name, one in zip(names, back(seeds), strict=True)}
    return Use(list(map(np.asarray, value)), 1, sent)


def differences(box: Box, use: Callable[..., Use]) -> Iterator[tuple[str, str]]:
    """The arguments whose gradients, and the first one where the value, differ between uses, with what differs."""
    try:
        plain, whole, again = use([]), use(box.names), use(box.names)
    except Exception:  # the verdict reports what a function raises
        return
    if not all(same(box, whole.sent[name], again.sent[name]) for name in box.names):
        return  # random numbers, or state: the verdict says so
    for k, (one, other) in enumerate(zip(plain.value, whole.value, strict=True)):
        if one.dtype.kind == "f" and not same(box, one, other):
            told = f"its result {k} changes" if len(plain.value) > 1 else "its value changes"
            yield box.names[0], f"{told} when a gradient is taken: {gap(one, other)}"
    for name in box.names if len(box.names) > 1 else ():
        told = f"where only {name} requires a gradient"
        try:
            alone = use([name]).sent[name]
        except NotImplementedError:
            continue
        except Exception as problem:
            yield name, f"the backward pass raises {told}: {describe(problem)}"
            continue
        if not same(box, whole.sent[name], alone):
            yield name, f"the backward pass gives different gradients {told}: {gap(whole.sent[name], alone)}"
    if whole.results < 2:
        return
    total = {name: np.zeros_like(one) for name, one in whole.sent.items()}
    for which in range(whole.results):
        try:
            alone_too = use(box.names, which).sent
        except NotImplementedError:
            return
        except Exception as problem:
            told = f"the backward pass raises where only result {which} is used: {describe(problem)}"
            yield from ((name, told) for name in box.names)
            return
        total = {name: total[name] + alone_too[name] for name in total}
    for name, summed in total.items():
        if not same(box, whole.sent[name], summed):
            told = "the gradients of the single results do not add up to the gradient of all of them"
            yield name, f"{told}: {gap(whole.sent[name], summed)}"


def part_of(box: Box, name: str, sent: Any) -> Floats:
    """What was sent to an argument, as numbers; zeros where nothing was."""
    if sent is None:
        return np.zeros(box.shape_of(name))
    return np.asarray(box.library.read(box.role, sent), np.float64)


def same(box: Box, one: Floats, other: Floats) -> bool:
    """Whether two gradients are the same but for rounding."""
    if one.shape != other.shape or not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return False
    finite = np.isfinite(one)
    close = LOOSE if box.float32 or box.dtype != "float64" else CLOSE
    scale = max(np.abs(one[finite]).max(initial=0.0), np.abs(other[finite]).max(initial=0.0))
    return bool((np.abs(one - other)[finite] <= close * scale).all())


def gap(one: Floats, other: Floats) -> str:
    """The entry that differs most, as both have it."""
    if one.shape != other.shape:
        return f"of shape {list(other.shape)}, not {list(one.shape)}"
    apart = np.nan_to_num(np.abs(one - other), nan=np.inf).reshape(-1)
    at = int(apart.argmax())
    place = list(map(int, np.unravel_index(at, one.shape)))
    entry = f" at {place}" if place else ""
    return f"{other.reshape(-1)[at]!s} instead of {one.reshape(-1)[at]!s}{entry}"
