"""Many cases go in - JSON Lines requests, or folders of scripts - and an answer or a report for each comes out."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.protocol import serve
    from gradcli.batch.run import check_paths

__all__ = ["check_paths", "serve"]

_ROOMS = {"check_paths": "gradcli.batch.run", "serve": "gradcli.batch.protocol"}


def __getattr__(name: str) -> Any:
    """Load what is asked for, when it is asked for."""
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
