"""Verdicts: a program at a point is judged by oracles that never read a derivative rule.

`decide/` finds the verdict of a script, `callables/` that of a Python function by its values. `derivatives/` encloses
derivatives, `algebra/` proves equalities, `diagnosis/` explains what was refuted. Decisions:

- Exact readings read `ball`, `symbolic` and `entries` rules, else the definition. A value that detach holds stays held.
- A complex entry is two real ones. Both sides of a tie are log-Puiseux expansions; what these leave open stays open.
- A box is cut until every piece of it is decided; a proof at one point serves all pieces that take the same branches.
- A claim about arrays of any size is proved for all sizes in index notation, or judged at two sets of sizes: what is
  right at the first by luck is wrong. A proof for all sizes needs a verdict at the point that does not contradict it.
- Decimals as written may excuse a difference where that holds near the point too; an equality by luck of the point
  passes with a warning and a counterexample.
- A random direction of 81 bits covers the entries of a large array; a count of entries, never a clock, says how many
  points are looked at. SymPy is a witness that is shown and decides nothing.
- A diagnosis may read derivative rules; it decides nothing and is bounded by counts.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.checks.callables.api import check_callable
    from gradcli.checks.callables.process import check_target
    from gradcli.checks.report import Check, Report, refused
    from gradcli.checks.scripts import check_names, check_script
    from gradcli.checks.witnesses import parse_witnesses

__all__ = [
    "Check", "Report", "check_callable", "check_names", "check_script", "check_target", "parse_witnesses", "refused",
]  # fmt: skip

_ROOMS = {
    "Check": "report", "Report": "report", "check_callable": "callables.api", "check_names": "scripts",
    "check_script": "scripts", "check_target": "callables.process", "parse_witnesses": "witnesses", "refused": "report",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a name at its first use."""
    if name in _ROOMS:
        return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
