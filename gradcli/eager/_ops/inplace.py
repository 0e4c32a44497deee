"""In-place operations: the entries, the version and the history of a tensor and its base change.

The new value is computed out of place, from a copy that keeps the old history, and then written. A change of a view
rewrites the history of its base: `CopySlices` leads to the base as it was and to what was written. Other views take
over the new history when someone asks, through `AsStridedBackward0`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager import random
from gradcli.eager._core import events, modes, tracer
from gradcli.eager._core.grad_fn import SavedResult, saved_result
from gradcli.eager._core.modes import PLAIN, SPECIAL, place, recording, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Operand, checked
from gradcli.eager._engine.backward import hand_over
from gradcli.eager._engine.plan import plan_of
from gradcli.eager._engine.record import GradientNode, cast, copied, noded, record
from gradcli.eager._engine.rule_node import fitted_tensor, source_of
from gradcli.eager._ops import subscripts
from gradcli.eager._ops.elementwise import where
from gradcli.eager._ops.table import METHOD, described, op
from gradcli.eager._ops.views import AS_STRIDED, clone, follow


def change(x: Tensor, function: Callable[[Tensor], Tensor], others: tuple[Any, ...] = ()) -> Tensor:
    """Replace the entries of x by `function(old x)`; RuntimeError where PyTorch refuses it."""
    if tracer.traced((x, *others)):
        return tracer.own.current.change(x, function)  # type: ignore[no-any-return]
    tracked = recording() and (x.requires_grad or any(isinstance(y, Tensor) and y.requires_grad for y in others))
    if tracked:
        refuse(x)
    old, tangent = x, x._tangent
    if tracked or tangent is not None:
        old = Tensor(x._array.copy(), x.requires_grad)
        old._edge = x._current_edge()
        if tangent is not None:
            before = Tensor(tangent._array.copy(), tangent.requires_grad)
            before._edge = tangent._current_edge()
            state.dual.give(old, before)
        events.report("same", old, x)
    result = function(old)
    raw, new = x._array, result._raw
    if new.shape != raw.shape:
        raise RuntimeError(f"the in-place result has shape {list(result.shape)}, but the tensor {list(x.shape)}")
    if new.dtype is not raw.dtype and result.dtype.kind > x.dtype.kind:
        raise RuntimeError(f"the result type {result.dtype} can't be cast to the desired output type {x.dtype}")
    if not raw.flags.writeable:
        raise RuntimeError(
            "several entries of an expanded tensor share one memory location, and unfold() and the diagonal of a "
            "transposed matrix are copies here: clone() it before writing"
        )
    raw[...] = new
    if x._inference and not modes.is_inference_mode_enabled():  # too late for the entries, as in PyTorch
        raise RuntimeError("an inference tensor cannot be changed in place outside inference mode; clone() it first")
    x._counter.bump(place())
    if state.dual is not None and x._raw.dtype.kind in "fc":
        state.dual.changed(x, result._tangent)
    tracked = tracked and result.requires_grad and x.dtype.kind >= 2
    if tracked:
        result = cast(result, x.dtype)
    events.report("changed", x, result, tracked)
    if tracked:
        rewrite(x, result)
    return x


def refuse(x: Tensor) -> None:
    """RuntimeError for tensors whose history cannot be rewritten."""
    root = x if x._base is None else x._base
    refuse_frozen(x)
    if x is not root and x._node is None and not root.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation: this view was made before its "
            "base had a history, and has not been used since; make the view again"
        )
    if root.is_leaf and root._requires:
        what = "a leaf Variable" if x is root else "a view of a leaf Variable"
        raise RuntimeError(
            f"{what} that requires grad is being used in an in-place operation; do it inside no_grad(), or on a clone()"
        )


def refuse_frozen(x: Tensor) -> None:
    """RuntimeError for views whose history cannot be rewritten, because of how they were made."""
    if x._frozen_by == "no_grad":
        raise RuntimeError(
            "a view that was made in no_grad mode, or its base, was changed in place with grad mode enabled: make both "
            "inside no_grad(), or both outside"
        )
    if x._frozen_by == "several":
        raise RuntimeError(
            "a view that is one of several outputs (unbind, split, iteration), or its base, was changed in place; "
            "clone() it before"
        )


def rewrite(x: Tensor, result: Tensor) -> None:
    """Give x the history of the tensor that was computed for it, and its base too.

    The gradient of what is outside a view goes to the old base, that of what is inside to the new entries.
    """
    edge = result._current_edge()
    assert edge is not None
    base = x._base
    if base is None:
        node = edge[0]
        node.saved = tuple(
            [
                saved_result(x._array, x._counter)
                if type(value) is SavedResult and value._raw is result._raw
                else value
                for value in node.saved or ()
            ]
        )
        hand_over(x, x._edge, edge)
        x._edge, x._requires = edge, True
        return
    written: Any = source_of(result)
    if isinstance(edge[0], OverwriteNode):  # a copy into a view leads straight to what was copied
        source = edge[0].source
        if source is None:
            written = None
        elif source == (x._array.shape, x._array.dtype):
            written = edge[0].ins[1]
    hit = np.zeros_like(base._array, np.bool_)
    plan = plan_of(follow, (hit.shape,), ("bool",), {"path": x._path}, False)
    plan.forward.function(hit.dtype)(hit)[0][...] = True
    old = source_of(base)
    inside, path = Tensor(hit), {"path": x._path}

    def gradient(ct: Tensor) -> tuple[Tensor | None, Tensor]:
        inner = record(follow, (ct,), path, AS_STRIDED, keep_integer=True)
        return None if old is None else where(inside, 0.0, ct), inner

    noded((base,), GradientNode, setitem.node, (old, written), gradient=gradient)
    events.report("of_node", base)
    x._renew()


def renew(view: Tensor) -> None:
    """Give a view the history that its base has now."""
    base = view._base
    assert base is not None
    refuse_frozen(view)
    view._seen = view._counter.value
    with modes.enable_grad():
        fresh = record(follow, (base,), {"path": view._path}, AS_STRIDED, view=True, keep_integer=True)
    view._edge, view._requires = fresh._edge, fresh._requires
    events.report("same", view, fresh)


class OverwriteNode(GradientNode):
    """What a tensor becomes when all its entries are replaced: nothing flows to the old ones."""

    __slots__ = ("source",)
    source: tuple[tuple[int, ...], Any] | None  # the shape and format of the tensor that was copied


def overwritten(old: Tensor, value: Any, name: str, edges: int) -> Tensor:
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    try:
        result = Tensor(np.broadcast_to(array, old._array.shape).astype(old._array.dtype))
    except ValueError:
        raise RuntimeError(f"the sizes {list(array.shape)} and {list(old.shape)} must match, or be 1") from None
    flows = isinstance(value, Tensor) and value.requires_grad
    if recording() and (old.requires_grad or flows):
        sources = (source_of(old), source_of(value) if isinstance(value, Tensor) else None)[:edges]
        source = (array.shape, array.dtype) if flows else None

        def gradient(ct: Tensor) -> tuple[Tensor | None, ...]:
            zeros = Tensor(np.zeros(ct._raw.shape, ct._raw.dtype))
            return (zeros, None if source is None else fitted_tensor(ct, *source))[:edges]

        noded((result,), OverwriteNode, name, sources, gradient=gradient, source=source)
    moved = value._tangent if isinstance(value, Tensor) else None
    if state.dual is not None and (moved is not None or old._tangent is not None):
        kind = old._array.dtype
        still = Tensor(np.zeros(old._array.shape, kind))
        if moved is not None:
            moved = copied(fitted_tensor(moved, old._array.shape, kind), clone.node)
        state.dual.give(result, still if moved is None else moved)
    events.report("operation", name, (old, value), result)
    return result


@op(node="CopyBackwards", only=METHOD)
def copy_(self: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Replace the entries by those of another tensor, repeated to the shape and changed to the format."""
    return change(self, lambda old: overwritten(old, src, copy_.node, 2), (src,))


@op(node="ZeroBackward0")
def zero_(self: Tensor) -> Tensor:
    """Replace the entries by zeros."""
    self._added = 0
    return change(self, lambda old: overwritten(old, 0, zero_.node, 1))


@op(node="FillBackward2 FillBackward3")
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Replace the entries by a number, or by that of a 0-d tensor."""
    several = isinstance(value, Tensor)
    return change(self, lambda old: overwritten(old, value, fill_.row.nodes[several], 1 + several), (value,))


@op()
def detach_(self: Tensor) -> Tensor:
    """Forget the history; RuntimeError for a view."""
    if self._base is not None:
        raise RuntimeError("a view cannot be detached in place: use detach()")
    self._edge, self._requires, self._retains = None, False, False
    self._own_tangent = None
    return self


def _drawn(name: str, node: str, draw: Callable[..., Any]) -> Any:
    @op(name=name, node=node, only=METHOD)
    def in_place(self: Tensor, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        drawn = Tensor(draw(generator or random.own.default_generator, self._array, *args, **options))
        return change(self, lambda old: overwritten(old, drawn, node, 1))

    return described(in_place, name, f"Replace the entries by random numbers: `{name}`.")


def _random(source: Any, array: Any, low: int = 0, high: int | None = None) -> Any:
    if high is None:
        low, high = (0, low) if low else (0, 2**24 if array.dtype == np.float32 else 2**53)
    return random.laid_out(source.randint(low, high, (array.size,)).astype(array.dtype), array)


normal_ = _drawn("normal_", "NormalBackward0", lambda g, x, mean=0.0, std=1.0: g.normal_like(x, mean, std))
uniform_ = _drawn("uniform_", "UniformBackward0", lambda g, x, a=0.0, b=1.0: g.uniform_like(x, float(a), float(b)))
exponential_ = _drawn("exponential_", "ExponentialBackward0", lambda g, x, lambd=1.0: g.exponential_like(x, lambd))
random_ = _drawn("random_", "RandomBackward2", _random)
_DIRECT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "true_divide": np.divide}


def _directly(ufunc: Any, x: Tensor, other: Any) -> bool:
    """Whether arithmetic without history was written straight into the memory: what an optimiser's step does."""
    raw = x._raw
    alone = isinstance(raw, np.generic)  # a number has no memory that others could see
    if state.mode == SPECIAL or x._inference or not (alone or isinstance(raw, np.ndarray)):
        return False
    if isinstance(other, Tensor):
        if state.mode == PLAIN and (x.requires_grad or other.requires_grad):
            return False
        value = other._raw
        if value.dtype is not raw.dtype or value.shape != raw.shape:
            return False
    elif other.__class__ is float and not (state.mode == PLAIN and x.requires_grad):
        value = raw.dtype.type(other)
    else:
        return False
    if raw.dtype.kind != "f" or not (alone or raw.flags.writeable):
        return False
    if alone:
        x._raw = ufunc(raw, value)
    else:
        ufunc(raw, value, out=raw)
    x._counter.bump(place())
    return True


def form_of(function: Any) -> Callable[..., Tensor]:
    """The `_` form of an operation: `exp_` of `exp`."""
    name = function.row.name
    ufunc = _DIRECT.get(name)
    guarded = checked(function)
    check, least = getattr(guarded, "check", None), getattr(guarded, "least", 1)

    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if ufunc is not None and len(args) == 1 and not kwargs and _directly(ufunc, self, args[0]):
            return self
        if check is not None:
            check((self, *args))
            if 1 + len(args) + len(kwargs) < least:
                raise TypeError(f"{name}_() takes {least - 1} arguments, but {len(args) + len(kwargs)} were given")
        elif args:
            raise TypeError(f"{name}_() takes no arguments ({len(args)} given)")
        return change(self, lambda old: function(old, *args, **kwargs), (*args, *kwargs.values()))

    return described(in_place, f"{name}_", f"`{name}`, written into the tensor itself.")  # type: ignore[no-any-return]


@op(node="FillDiagonalBackward0", only=METHOD)
def fill_diagonal_(self: Tensor, fill_value: Operand, wrap: bool = False) -> Tensor:
    """Replace the entries of the diagonal by a number."""
    if self.ndim < 2:
        raise RuntimeError("fill_diagonal_: dimensions must be larger than 1")
    positions = np.arange(min(self.shape)) * (
        self.shape[1] + 1 if self.ndim == 2 else sum(np.cumprod(self.shape[1:])) + 1
    )
    node = fill_diagonal_.node
    return change(self, lambda old: subscripts.placed(old, positions, fill_value, node, 1), (fill_value,))


@op(name="__setitem__", only=METHOD, fast=True, node="CopySlices IndexPutBackward0")
def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value."""
    target, value, put = subscripts.assignment(x, index, value, setitem.row.nodes[1])
    if put is None:
        copy_(target, value)
    else:
        change(x, put, (value,))
