"""Many cases: JSON Lines requests, each with an answer, and folders of scripts, each script with a report.

A check of many scripts begins in `run`: `discovery` and `selection` say which cases it is about, `journal` what is
known of them, `supervisor` (or `cluster`) judges the rest in processes. `protocol` serves requests.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.journal import Journal, default_folder
    from gradcli.batch.protocol import serve
    from gradcli.batch.run import Run, packed, unpacked
    from gradcli.batch.selection import last_failed, parse_verdicts, sharded
    from gradcli.batch.totals import Totals
    from gradcli.batch.watch import changes

__all__ = [
    "Journal",
    "Run",
    "Totals",
    "changes",
    "default_folder",
    "last_failed",
    "packed",
    "parse_verdicts",
    "serve",
    "sharded",
    "unpacked",
]

# where each name is defined; its module is loaded at the first use
_MODULES = {
    "Journal": "journal",
    "Run": "run",
    "packed": "run",
    "unpacked": "run",
    "Totals": "totals",
    "changes": "watch",
    "default_folder": "journal",
    "last_failed": "selection",
    "parse_verdicts": "selection",
    "serve": "protocol",
    "sharded": "selection",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, when it is asked for."""
    if name in _MODULES:
        return getattr(import_module(f"gradcli.batch.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
