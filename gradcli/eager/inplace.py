"""A change of a tensor's memory goes in; the entries, the version and the history of tensor and base are made new.

The new value is computed out of place, from a copy that keeps the old history, and then written. A change of a view
rewrites the history of its base: `CopySlices` leads to the base as it was and to what was written. Other views take
over the new history when someone asks, through `AsStridedBackward0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import modes, recorder, tracing
from gradcli.eager.accumulate import copied
from gradcli.eager.dispatch import cast, record
from gradcli.eager.hooking import hand_over
from gradcli.eager.movement import follow
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.plans import plan_of
from gradcli.eager.pointwise import where
from gradcli.eager.rules import fitted, fitted_tensor, source_of
from gradcli.eager.saving import Saved, saved_result
from gradcli.eager.state import place, recording, state
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def change(x: Tensor, function: Callable[[Tensor], Tensor], others: tuple[Any, ...] = ()) -> Tensor:
    """Replace the entries of x by `function(old x)`; RuntimeError where PyTorch refuses it."""
    if tracing.current is not None and tracing.traced((x, *others)):
        return tracing.current.change(x, function)
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
        if recorder.current is not None:
            recorder.current.same(old, x)
    result = function(old)
    raw, new = x._array, result._raw
    if new.shape != raw.shape:
        raise RuntimeError(f"the in-place result has shape {list(result.shape)}, but the tensor {list(x.shape)}")
    if new.dtype is not raw.dtype and result.dtype.kind > x.dtype.kind:
        raise RuntimeError(f"the result type {result.dtype} can't be cast to the desired output type {x.dtype}")
    if not raw.flags.writeable:
        raise RuntimeError("several entries of an expanded tensor share one memory location: clone() it before writing")
    raw[...] = new
    if x._inference and not modes.is_inference_mode_enabled():  # too late for the entries, as in PyTorch
        raise RuntimeError("an inference tensor cannot be changed in place outside inference mode; clone() it first")
    x._counter.bump(place())
    if state.dual is not None and x._raw.dtype.kind in "fc":
        state.dual.changed(x, result._tangent)
    if tracked and result.requires_grad:
        rewrite(x, cast(result, x.dtype))
    if recorder.current is not None:
        recorder.current.changed(x, result)
    return x


def refuse(x: Tensor) -> None:
    """RuntimeError for tensors whose history cannot be rewritten."""
    root = x if x._base is None else x._base
    refuse_made(x)
    if x is not root and x._node is None and not root.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation: this view was made before its "
            "base had a history, and has not been looked at since; make the view again"
        )
    if root.is_leaf and root._requires:
        what = "a leaf Variable" if x is root else "a view of a leaf Variable"
        raise RuntimeError(
            f"{what} that requires grad is being used in an in-place operation; do it inside no_grad(), or on a clone()"
        )


def refuse_made(x: Tensor) -> None:
    """RuntimeError for views whose history cannot be rewritten, because of how they were made."""
    if x._made == "no_grad":
        raise RuntimeError(
            "a view that was made in no_grad mode, or its base, was changed in place with grad mode enabled: make both "
            "inside no_grad(), or both outside"
        )
    if x._made == "several":
        raise RuntimeError(
            "a view that is one of several outputs (unbind, split, iteration), or its base, was changed in place; "
            "clone() it before"
        )


def rewrite(x: Tensor, result: Tensor) -> None:
    """Give x the history of the tensor that was computed for it, and its base too."""
    edge = result._current_edge()
    assert edge is not None
    base = x._base
    if base is None:
        node = edge[0]
        node.saved = tuple(
            [
                saved_result(x._array, x._counter) if type(one) is Saved and one._raw is result._raw else one
                for one in node.saved or ()
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
    copy = class_named(CopySlices, "CopySlices")((source_of(base), written), (), place())
    assert isinstance(copy, CopySlices)
    hit = np.zeros(base._array.shape, np.bool_)
    plan = plan_of(follow, (hit.shape,), ("bool",), {"path": x._path}, False)
    plan.forward.on_arrays(hit.dtype, [hit])[0][...] = True
    copy.hit, copy.path = Tensor(hit), x._path
    base._edge, base._requires = (copy, 0), True
    x._renew()


def renew(view: Tensor) -> None:
    """Give a view the history that its base has now."""
    base = view._base
    assert base is not None
    refuse_made(view)
    view._seen = view._counter.value
    with modes.enable_grad():
        fresh = record(
            follow, (base,), {"path": view._path}, "AsStridedBackward0", view=True, whole=True, pointwise=False
        )
    view._edge, view._requires = fresh._edge, fresh._requires
    if recorder.current is not None:
        recorder.current.same(view, fresh)


class CopySlices(Node):
    """What the base of a view becomes when the view is changed in place."""

    __slots__ = ("hit", "path")
    hit: Tensor
    path: tuple[Any, ...]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradient outside the view for the old base, and that inside it for what was written."""
        if cts[0] is None:
            return [None, None]
        ct = cts[0] if isinstance(cts[0], Tensor) else Tensor(np.asarray(cts[0]))
        kept = None if self.inputs[0] is None else where(self.hit, 0.0, ct)
        inner = record(follow, (ct,), {"path": self.path}, "AsStridedBackward0", whole=True, pointwise=False)
        if create_graph:
            return [kept, inner]
        return [None if kept is None else kept._array, inner._array]


class OverwriteNode(Node):
    """What a tensor becomes when all its entries are replaced: nothing flows to the old ones."""

    __slots__ = ("kind", "shape", "source")
    shape: tuple[int, ...]
    kind: Any
    source: tuple[tuple[int, ...], Any] | None

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """Zeros for the old entries, the gradient itself for the new ones."""
        ct = cts[0]
        zeros = np.zeros(self.shape, self.kind)
        found: list[Any] = [Tensor(zeros) if create_graph else zeros]
        if len(self.inputs) > 1:
            new = None
            if ct is not None and self.source is not None:
                new = fitted_tensor(ct, *self.source) if create_graph else fitted(ct, *self.source)
            found.append(new)
        return found


def overwritten(old: Tensor, value: Any, name: str, edges: int) -> Tensor:
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    try:
        result = Tensor(np.broadcast_to(array, old._array.shape).astype(old._array.dtype))
    except ValueError:
        raise RuntimeError(f"the sizes {list(array.shape)} and {list(old.shape)} must match, or be 1") from None
    flows = isinstance(value, Tensor) and value.requires_grad
    if recording() and (old.requires_grad or flows):
        sources = (source_of(old), source_of(value) if isinstance(value, Tensor) else None)[:edges]
        node = class_named(OverwriteNode, name)(sources, (), place())
        assert isinstance(node, OverwriteNode)
        node.shape, node.kind = old._array.shape, old._array.dtype
        node.source = (array.shape, array.dtype) if flows else None
        result._requires, result._edge = True, (node, 0)
    moved = value._tangent if isinstance(value, Tensor) else None
    if state.dual is not None and (moved is not None or old._tangent is not None):
        kind = old._array.dtype
        still = Tensor(np.zeros(old._array.shape, kind))
        if moved is not None:
            moved = copied(fitted_tensor(moved, old._array.shape, kind), "CloneBackward0")
        state.dual.give(result, still if moved is None else moved)
    if recorder.current is not None:
        recorder.current.operation(name, (value,), result)
    return result
