"""Forward mode on tensors: dual tensors, whose operations propagate tangents.

The tangent of a result comes from the plan of the operation, which the forward transform derives from the same
declarations as reverse mode. Tangents are tensors: with recording on, their own history is kept, so that a reverse
sweep over a tangent gives second derivatives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.grad_fn import SavedResult
from gradcli.eager._core.modes import enable_grad, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.record import cast, copied
from gradcli.eager._engine.rule_node import applied_in, number
from gradcli.eager._ops.inplace import copy_
from gradcli.eager._ops.views import AS_STRIDED, clone, expand, follow, view, viewed


class DualLevel:
    """One open level: it sets the tangents of results, and removes them when it is closed."""

    def __init__(self) -> None:
        self.dual: list[Tensor] = []
        self.kept: list[SavedResult] = []

    def give(self, x: Tensor, tangent: Tensor) -> None:
        """Make x a dual tensor."""
        if x._raw.ndim > 1 and tangent._raw.strides != x._raw.strides:  # a view of x must have one of the tangent
            tangent = copied(tangent, clone.node)
            laid_out = np.empty_like(x._raw, tangent._raw.dtype)
            laid_out[...] = tangent._raw
            tangent._raw = laid_out
        x._own_tangent = tangent
        x._special = True
        self.dual.append(x)
        for value in (x._node.saved or ()) if x._node is not None else ():
            if type(value) is SavedResult and value.output == x._nr and value.tangent is None:
                value.tangent = tangent  # the node reads its result without the tensor
                self.kept.append(value)

    def look_up(self, x: Tensor) -> None:
        """Give a view the tangent that its base has, seen as the view sees its base."""
        base, path = _base_of(x)
        if base is None or base._own_tangent is None:
            return
        with without_level(), enable_grad():
            tangent = viewed(base._own_tangent, follow, {"path": path}, AS_STRIDED)
        self.give(x, tangent)

    def changed(self, x: Tensor, tangent: Tensor | None) -> None:
        """After a change in place, give x and its base the tangent of the new entries; None stands for zeros."""
        if x._tangent is None:
            if tangent is None:
                return
            base, _ = _base_of(x)
            if base is None:
                self.give(x, tangent)
                return
            self.give(base, Tensor(np.zeros(base._raw.shape, base._raw.dtype)))
        held = x._tangent
        with without_level():
            copy_(held, 0 if tangent is None else tangent)

    def close(self) -> None:
        """Remove all tangents."""
        for x in self.dual:
            x._own_tangent = None
            x._special = x._base is not None or x._inference or (x._node is not None and x._node.outputs > 1)
        for value in self.kept:
            value.tangent = None
        self.dual, self.kept = [], []

    def passed(self, plan: Any, xs: tuple[Any, ...], arrays: list[Any], kind: Any, result: Tensor) -> None:
        """Give the result of an operation its tangent, where an operand has one."""
        pairs = zip(xs, plan.differentiable, strict=True)
        moving = tuple([moves and isinstance(x, Tensor) and x._tangent is not None for x, moves in pairs])
        if True not in moving or result._raw.dtype.kind not in "fc":
            return
        to, steps = dtypes.of(kind), plan.tangent(moving)
        with without_level():
            tangents = [x._tangent for x, moves in zip(xs, moving, strict=True) if moves]
            values: list[Any] = []
            for x, array in zip(xs, arrays, strict=True):
                plain = not isinstance(x, Tensor) or x._raw.dtype.kind not in "fc"
                values.append(Tensor(array) if plain else cast(x, to))
            if plan.out not in plan.leaves:
                values.append(result)
            values += [cast(x, to) for x in tangents]
            tangent = Tensor(np.zeros(result._raw.shape, result._raw.dtype))
            if steps is not None:
                (tangent,) = steps.on_operands(kind, values, number, applied_in(kind))
            if tangent._raw.shape != result._raw.shape:
                tangent = expand(tangent, result._raw.shape)
            if tangent._base is not None or any(tangent is y for y in tangents):
                tangent = copied(tangent, clone.node)  # each is changed in place with its own tensor
        self.give(result, tangent)


def _base_of(x: Tensor) -> tuple[Tensor | None, tuple[Any, ...]]:
    """The base of a view, whose tangent contains that of the view, and the path to it; None for other tensors."""
    if x._dual_root:
        return None, ()
    base = x._dual_base
    return (x._base, x._path) if base is None else (base, x._path[len(base._path) :])


@contextlib.contextmanager
def without_level() -> Iterator[None]:
    """A context without the open level: operations on tangents have no tangents of their own."""
    level, state.dual = state.dual, None
    try:
        yield
    finally:
        state.dual = level


@contextlib.contextmanager
def dual_level() -> Iterator[int]:
    """A context in which dual tensors exist; RuntimeError where one is open already."""
    if state.dual is not None:
        raise RuntimeError("nested forward mode is not supported: a dual level is open already")
    level = state.dual = DualLevel()
    try:
        yield 0
    finally:
        level.close()
        state.dual = None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent; RuntimeError outside a `dual_level`, or where shape or format do not fit."""
    if state.dual is None:
        raise RuntimeError("make_dual() works inside `with dual_level():` only: no dual level is open")
    for x in (tensor, tangent):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual() takes tensors, not {type(x).__name__}")
        if x.dtype.kind < 2:
            raise ValueError(f"expected tensor and tangent to be floating point or complex, but got {x.dtype}")
    if tangent._raw.shape != tensor._raw.shape:
        raise RuntimeError(f"the tangent has shape {list(tangent.shape)}, but the tensor {list(tensor.shape)}")
    now = state.dual
    with without_level():
        dual = view(tensor, tuple(tensor.shape))
    dual._dual_root = True
    now.give(dual, tangent)
    return dual


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Any


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual() takes a tensor, not {type(tensor).__name__}")
    if state.dual is None or tensor._tangent is None:
        return UnpackedDualTensor(tensor, None)
    with without_level():
        primal = view(tensor, tuple(tensor.shape))
    primal._dual_root = True
    return UnpackedDualTensor(primal, tensor._tangent)


__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]
__getattr__, __dir__ = room("autograd.forward_ad", __all__)
