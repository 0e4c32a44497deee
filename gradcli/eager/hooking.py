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
    from collections.abc import Callable, Sequence

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
    found = None
    for hook in list(hooks.values()):
        changed = hook(value)
        if changed is not None:
            found = value = _fitting(changed, value, f"a hook on {what}")
    return found


def answered(answer: Any, values: Sequence[Tensor | None], what: str) -> list[Tensor | None]:
    """The gradients that a hook returned in place of others.

    TypeError for what is no tuple of tensors, RuntimeError for another number, shape or format of them.
    """
    if not isinstance(answer, tuple):
        raise TypeError(f"{what} returned {type(answer).__name__} where a tuple or None is expected")
    if len(answer) != len(values):
        raise RuntimeError(f"{what} returned an incorrect number of gradients: {len(answer)}, not {len(values)}")
    return [None if one is None else _fitting(one, value, what) for one, value in zip(answer, values, strict=True)]


def _fitting(answer: Any, value: Tensor | None, what: str) -> Tensor:
    from gradcli.eager.tensor import Tensor

    if not isinstance(answer, Tensor):
        raise TypeError(f"{what} returned {type(answer).__name__} where a tensor or None is expected")
    if value is None:
        raise RuntimeError(f"{what} returned a gradient where there is none, which it cannot replace")
    if answer._raw.shape != value._raw.shape:
        raise RuntimeError(f"{what} returned a gradient of shape {list(answer.shape)}, not {list(value.shape)}")
    if answer._raw.dtype != value._raw.dtype:
        raise RuntimeError(f"{what} returned a gradient of dtype {answer.dtype}, not {value.dtype}")
    return answer
