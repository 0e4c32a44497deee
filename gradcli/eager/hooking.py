"""A tensor and a function that the user wants called go in, a handle comes out; also what makes tensors keep gradients.

A hook belongs to the node that made the tensor, or to the leaf. A hook stays with the old node when the tensor is
changed in place, a retained gradient follows the tensor.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from gradcli.eager.hooks import Handle
from gradcli.eager.state import sweeps

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.tensor import Tensor


def hook_on(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Register a hook on a tensor: with its node, or with the leaf; RuntimeError where no gradient will come."""
    edge = x._current_edge()
    if not x.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that does not require grad")
    sweeps.watched = True
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


def hand_over(x: Tensor, old: Any, new: Any) -> None:
    """After an in-place change: what retains the gradient of x moves from the old edge to the new one."""
    if x._retains and old is not None and old[0].extra is not None:
        held = old[0].extra.retained.pop(old[1], None)
        if held is not None:
            new[0].rare.retained[new[1]] = held


def replaced(hooks: dict[int, Any], value: Tensor, what: str) -> Any:
    """Call hooks on a gradient one after the other; each may replace it. Returns the last replacement, or None."""
    from gradcli.eager.tensor import Tensor

    found = None
    for hook in list(hooks.values()):
        changed = hook(value)
        if changed is not None:
            if not isinstance(changed, Tensor):
                raise TypeError(
                    f"a hook on {what} returned {type(changed).__name__} where a tensor or None is expected"
                )
            if changed._raw.shape != value._raw.shape:
                raise RuntimeError(
                    f"a hook on {what} returned a gradient of shape {list(changed.shape)}, not {list(value.shape)}"
                )
            found = value = changed
    return found
