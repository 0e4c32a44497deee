"""A leaf and a gradient go in, the leaf's `.grad` holds their sum; also the copies that leave a node.

The first gradient of a leaf is copied, so that no two leaves share memory, unless nobody else holds it; later ones are
added in place, so that who holds `.grad` sees them.
"""

from __future__ import annotations

from sys import getrefcount
from threading import RLock
from typing import Any

import numpy as np

from gradcli.eager import recorder, tracing
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.rules import source_of
from gradcli.eager.state import place, recording, state
from gradcli.eager.tensor import Tensor

_adding = RLock()  # threads may send gradients to one leaf, as Hogwild training does: none is lost
_LARGE = 1024  # below this many entries a copy is cheaper than asking
_HELD = 3  # references to an array that only one view has: the view's, ours, and that of the count


class CopyNode(Node):
    """A copy: what arrives goes on as it is."""

    __slots__ = ()

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The same gradient."""
        return [cts[0]]


def copied(x: Tensor, name: str) -> Tensor:
    """The entries in memory of their own, with a node of this name."""
    if tracing.current is not None and isinstance(x, tracing.Traced):
        return tracing.current.copied(x)
    result = Tensor(x._raw.copy())
    if recording() and x.requires_grad:
        result._requires = True
        result._edge = (class_named(CopyNode, name)((source_of(x),), (), place()), 0)
    if state.dual is not None and x._tangent is not None:
        state.dual.give(result, copied(x._tangent, name))
    if recorder.current is not None:
        recorder.current.operation(name, (x,), result)
    return result


def _is_own(raw: Any) -> bool:
    """Whether an array is the only one on its memory, and laid out row by row."""
    flags, base = raw.flags, raw.base
    if not flags.writeable or not flags.c_contiguous:
        return False
    return base is None or (
        isinstance(base, np.ndarray) and base.base is None and base.size == raw.size and getrefcount(base) <= _HELD
    )


def add_raw(leaf: Tensor, raw: Any, spare: int) -> None:
    """Add a raw array into `.grad`; `spare` is how many references to it are held by those who will drop it."""
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
        if isinstance(raw, np.ndarray):
            alone = raw.size > _LARGE and getrefcount(raw) <= spare + 2 and _is_own(raw)
            grad._raw = raw if alone else np.array(raw, order="C")
        else:
            grad._raw = raw
        grad._node = grad._count = None
        grad._requires = False
        grad._added = 1
        leaf._grad = grad


def add_to_grad(leaf: Tensor, value: Tensor, create_graph: bool) -> None:
    """Add a gradient into `.grad`, with a node where a graph is wanted."""
    with _adding:
        known = leaf._grad
        if not create_graph:
            add_raw(leaf, value._raw, 1_000_000)
            if known is None:
                made = leaf._grad
                assert made is not None
                if made._raw is value._raw and isinstance(made._raw, np.ndarray):
                    made._raw = made._raw.copy()
                if value._inference:
                    made._inference = made._odd = True
        elif known is None:
            leaf._grad = copied(value, "CopyBackwards")
            leaf._grad._added = 1
        else:
            from gradcli.eager.pointwise import add

            leaf._grad = add(known, value)
            leaf._grad._added = known._added + 1
    if recorder.current is not None:
        recorder.current.accumulated(leaf, value)
