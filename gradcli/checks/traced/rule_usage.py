"""Whether a rule of PyTorch or JAX sends the same gradients however it is used.

A backward sees which inputs require a gradient, and which results were used (None arrives for the others, unless they
are materialized); the forward of a `jax.custom_vjp` may return something else than the function itself. A recording has
one use only: all inputs, all results. Here the others are compared with it, at the point.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables.box import OWN
from gradcli.checks.callables.failures import describe
from gradcli.checks.callables.gradient_libraries import EAGER, JAX, TORCH, is_tensor, sent_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.callables.box import Box

    Floats = NDArray[np.floating[Any]]
    Gradients = dict[str, Floats]

CLOSE, LOOSE = 1e-9, 1e-2  # of what is sent, relatively: in float64, and in other formats


def by_usage(box: Box, seed: int) -> dict[str, str]:
    """For each argument, in words, how its gradient or the value depends on the use; empty where nothing does."""
    check = {TORCH: of_torch, EAGER: of_torch, JAX: of_jax}.get(box.library.name)
    if check is None or box.kind != OWN or not np.isfinite(box.x).all():
        return {}
    found: dict[str, str] = {}
    with box.listener.hearing(box.role, False), np.errstate(all="ignore"):
        for name, told in check(box, seed):
            found.setdefault(name, told)
    return found


def of_torch(box: Box, seed: int) -> Iterator[tuple[str, str]]:
    """The differences for tensors."""
    module: Any = sys.modules[box.library.name]

    def sent(names: Sequence[str], which: int | None = None) -> tuple[int, Gradients]:
        """How many results have a gradient, and what a cotangent of all or one sends to these arguments."""
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
        return len(pairs), {name: part_of(box, name, one) for name, one in zip(names, found, strict=True)}

    try:
        count, whole = sent(box.names)
        _, again = sent(box.names)
    except Exception:  # what a function raises where it is judged is told by its verdict
        return
    if not all(same(box, whole[name], again[name]) for name in box.names):
        return  # random numbers, or state: told by the verdict
    for name in box.names if len(box.names) > 1 else ():
        told = f"where only {name} requires a gradient"
        try:
            _, alone = sent([name])
        except NotImplementedError:
            continue
        except Exception as problem:
            yield name, f"the backward pass raises {told}: {describe(problem)}"
            continue
        if not same(box, whole[name], alone[name]):
            yield name, f"the backward pass gives different gradients {told}: {gap(whole[name], alone[name])}"
    if count > 1:
        yield from by_result(box, count, whole, lambda which: sent(box.names, which)[1])


def by_result(box: Box, count: int, whole: Gradients, sent: Callable[[int], Gradients]) -> Iterator[tuple[str, str]]:
    """The differences where one of several results is used."""
    total = {name: np.zeros_like(one) for name, one in whole.items()}
    for which in range(count):
        try:
            alone = sent(which)
        except NotImplementedError:
            return
        except Exception as problem:
            told = f"the backward pass raises where only result {which} is used: {describe(problem)}"
            yield from ((name, told) for name in box.names)
            return
        total = {name: total[name] + alone[name] for name in total}
    for name, one in total.items():
        if not same(box, whole[name], one):
            told = "the gradients of the single results do not add up to the gradient of all of them"
            yield name, f"{told}: {gap(whole[name], one)}"


def of_jax(box: Box, seed: int) -> Iterator[tuple[str, str]]:
    """The differences for arrays of JAX: of the value, and of what is sent to one argument alone."""
    jax: Any = sys.modules[JAX]

    def run(names: Sequence[str]) -> tuple[list[Floats], Gradients]:
        arguments = box.given(box.x, False)
        value, back = jax.vjp(
            lambda *moved: jax.tree_util.tree_leaves(
                box.spread(box.f, {**arguments, **dict(zip(names, moved, strict=True))})
            ),
            *[arguments[name] for name in names],
        )
        draw = np.random.default_rng(seed)
        seeds = [
            jax.numpy.asarray(draw.uniform(0.5, 1.5, one.shape), one.dtype)
            if one.dtype.kind in "fV"
            else np.zeros(one.shape, jax.dtypes.float0)
            for one in value
        ]
        return [np.asarray(one) for one in value], {
            name: part_of(box, name, one) for name, one in zip(names, back(seeds), strict=True)
        }

    try:
        plain = [np.asarray(one) for one in jax.tree_util.tree_leaves(box.spread(box.f, box.given(box.x, False)))]
        value, whole = run(box.names)
        for k, (one, other) in enumerate(zip(plain, value, strict=True)):
            if one.dtype.kind == "f" and not same(box, one, other):
                told = f"its result {k} changes when a gradient is taken" if len(plain) > 1 else ""
                told = told or "its value changes when a gradient is taken"
                yield box.names[0], f"{told}: {gap(one, other)}"
        for name in box.names if len(box.names) > 1 else ():
            _, alone = run([name])
            if not same(box, whole[name], alone[name]):
                told = f"where only {name} is differentiated"
                yield name, f"the backward pass gives different gradients {told}: {gap(whole[name], alone[name])}"
    except Exception:  # what a function raises where it is judged is told by its verdict
        return


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
