"""Settings that make plans of a few entries and turns take the forms that large ones take, and how they are set."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.execution.plans import blocks, packing, rolling, running, schedule, waves

if TYPE_CHECKING:
    from collections.abc import Iterator

Change = tuple[Any, str, Any]

BLOCKS: list[Change] = [
    *[(schedule, name, 1) for name in ("WORTH", "ENTRIES", "MOST_ENTRIES", "FEWEST_ROWS")],
    (running, "SMALL", 16),  # arrays that change from run to run
    (blocks, "WORTH_A_THREAD", 0),
]
LOOPS: list[Change] = [(rolling, "SHARE", 1e9)]
WAVES: list[Change] = [
    (packing, "WORTH", 0),
    (packing, "PER_TRY", 200),
    (waves, "WORTH", 0),
    (waves, "FEWEST", 2),
    (waves, "SHARE", 1.0),
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
