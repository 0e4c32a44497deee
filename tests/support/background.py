"""Waits for code that is made in threads."""

from __future__ import annotations

import threading

from gradcli.execution.generated import BACKGROUND


def finish_code() -> None:
    """Return when all code that was begun is made."""
    for thread in threading.enumerate():
        if thread.name == BACKGROUND:
            thread.join()
