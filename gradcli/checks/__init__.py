"""A script at a point goes in, verdicts with their evidence come out; the oracles never read a derivative rule."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.checks.callables.api import check_callable
    from gradcli.checks.callables.processes.process import check_target
    from gradcli.checks.report import Check, Report, refused
    from gradcli.checks.scripts import check_names, check_script
    from gradcli.checks.witnesses import parse_witnesses

__all__ = [
    "Check", "Report", "check_callable", "check_names", "check_script", "check_target", "parse_witnesses", "refused",
]  # fmt: skip

_ROOMS = {
    "Check": "gradcli.checks.report",
    "Report": "gradcli.checks.report",
    "check_callable": "gradcli.checks.callables.api",
    "check_names": "gradcli.checks.scripts",
    "check_script": "gradcli.checks.scripts",
    "check_target": "gradcli.checks.callables.processes.process",
    "parse_witnesses": "gradcli.checks.witnesses",
    "refused": "gradcli.checks.report",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, when it is asked for."""
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
