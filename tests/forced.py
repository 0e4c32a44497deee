"""Settings that make plans of a few entries and turns take the forms that large ones take, and how they are set."""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.execution import scan_turns
from gradcli.execution.plans import run, schedule
from gradcli.lowering import loops

if TYPE_CHECKING:
    from collections.abc import Iterator

Change = tuple[Any, str, Any]

BLOCKS: list[Change] = [
    *[(schedule, name, 1) for name in ("WORTH", "ENTRIES", "MOST_ENTRIES", "FEWEST_ROWS")],
    (run, "SMALL", 16),  # arrays that change from run to run
    (run, "WORTH_A_THREAD", 0),
]
LOOPS: list[Change] = [  # of few turns and nodes are nodes of the graph, and linear ones run in blocks
    (loops, "FEWEST", 4),
    (loops, "NODE_FROM", {inf: 0}),
    (scan_turns, "FEWEST", 8),
]


@contextmanager
def patched(*changes: Change) -> Iterator[None]:
    """Each (owner, name, value), as long as the context is open."""
    with pytest.MonkeyPatch.context() as patch:
        patches(patch, *changes)
        yield


def patches(monkeypatch: pytest.MonkeyPatch, *changes: Change) -> None:
    """Each (owner, name, value), as long as a test runs."""
    for owner, name, value in changes:
        monkeypatch.setattr(owner, name, value)
