"""Computation graphs: types, operations, nodes, builders and programs.

The `serial` of a node is larger than those of its arguments, so sorting by it gives a topological order. A builder
drops its table of equal nodes when a program is finished; a transform fills it again with the program's nodes.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Room(ModuleType):
    """The module, which can be called: `gradcli.graph(loss)` is `gradcli.draw(loss)`."""

    def __call__(self, loss: Any, **names: Any) -> Any:
        return import_module("gradcli").draw(loss, **names)


sys.modules[__name__].__class__ = _Room
