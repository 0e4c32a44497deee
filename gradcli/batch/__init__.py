"""Many cases: JSON Lines requests, each with an answer, and folders of scripts, each script with a report.

A check of many scripts begins in `check_run`: `discovery` finds the cases, `journal` stores the reports of cases that
were checked before, `workers` check the others. `totals` and `baseline` decide how a report counts. `json_lines`
answers requests, `points` computes values and gradients for the rows of a file, and `frozen_scripts` makes room for
recorded results.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.check_run import Handling, Run, Workforce, packed, unpacked
    from gradcli.batch.discovery.selection import Keywords, last_failed, parse_verdicts, sharded
    from gradcli.batch.discovery.walk import find_cases, nothing_found
    from gradcli.batch.discovery.watch_files import changes
    from gradcli.batch.journal import Journal, default_folder
    from gradcli.batch.json_lines import serve
    from gradcli.batch.totals import Totals

__all__ = [
    "Handling",
    "Journal",
    "Keywords",
    "Run",
    "Totals",
    "Workforce",
    "changes",
    "default_folder",
    "find_cases",
    "last_failed",
    "nothing_found",
    "packed",
    "parse_verdicts",
    "serve",
    "sharded",
    "unpacked",
]

# where each name is defined; its module is loaded at the first use
_MODULES = {
    "Journal": "journal",
    "Keywords": "discovery.selection",
    "Handling": "check_run",
    "Run": "check_run",
    "Workforce": "check_run",
    "packed": "check_run",
    "unpacked": "check_run",
    "Totals": "totals",
    "changes": "discovery.watch_files",
    "default_folder": "journal",
    "find_cases": "discovery.walk",
    "last_failed": "discovery.selection",
    "nothing_found": "discovery.walk",
    "parse_verdicts": "discovery.selection",
    "serve": "json_lines",
    "sharded": "discovery.selection",
}


def __getattr__(name: str) -> Any:
    """Load the module of a name when the name is first used."""
    if name in _MODULES:
        return getattr(import_module(f"gradcli.batch.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
