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
    """The module, which can be called: with a script and `at=`, or as `gradcli.draw` with a tensor of PyTorch."""

    def __call__(self, drawn: Any, **options: Any) -> Any:
        if isinstance(drawn, str):
            return import_module("gradcli.calculator").graph(drawn, **options)
        return import_module("gradcli").draw(drawn, **options)


sys.modules[__name__].__class__ = _Room
