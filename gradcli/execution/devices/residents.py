"""Inputs on the device: sends arrays that may have changed, and keeps those that cannot.

An array of NumPy may change between two calls, and finding out costs as much as sending it again.
So only arrays that are set read-only, and own their memory, are kept; pass arrays of CuPy to send none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gradcli.execution.inputs import leaf_value

if TYPE_CHECKING:
    from gradcli.graph.node import Node


def is_on_device(value: Any) -> bool:
    """Whether a value is an array of CuPy, or of another library that lies on the device."""
    return hasattr(value, "__cuda_array_interface__")


def is_steady(value: Any) -> bool:
    """Whether an array of NumPy cannot change: read-only, and no view of one that may be written."""
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return False
        if value.base is None:
            return True
        value = value.base
    return False


class Residents:
    """The arrays of inputs that are kept on the device, each beside the one that it was made from."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.kept: dict[str, tuple[Any, Any]] = {}

    def array(self, node: Node, value: Any) -> Any:
        """The value of an input in C order on the device; raises GradcliError where it does not fit its leaf."""
        name = node.params["name"]
        known = self.kept.get(name)
        if known is not None and known[0]() is value:
            return known[1]
        self.kept.pop(name, None)
        made = self.xp.library.asarray(leaf_value(self.xp, node, value), order="C")
        if is_steady(value):
            self.kept[name] = (ref(value), made)
        return made
