"""Settings that make plans of a few entries and iterations take the forms that large ones take, and how they are set."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.execution.compiler import schedule, thread_pool, workspace
from gradcli.lowering.iteration import loops

if TYPE_CHECKING:
    from collections.abc import Iterator

Change = tuple[Any, str, Any]

BLOCKS: list[Change] = [
    *[(schedule, name, 1) for name in ("WORTH", "ENTRIES", "MOST_ENTRIES", "FEWEST_ROWS")],
    (workspace, "SMALL", 16),  # arrays that change from run to run
    (workspace, "WORTH_A_THREAD", 0),
]
LOOPS: list[Change] = [  # of few iterations and nodes are nodes of the graph
    (loops, "FEWEST", 4),
    (loops, "NODE_FROM", {inf: 0}),
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


@contextmanager
def busy_helper() -> Iterator[None]:
    """The one thread that should help is busy, as long as the context is open."""
    begun, free = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        free.wait(20)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(block)
        assert begun.wait(10)
        try:
            with patched((thread_pool, "helpers", lambda: pool)):
                yield
        finally:
            free.set()
