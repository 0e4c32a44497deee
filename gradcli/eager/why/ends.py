"""Where and why a gradient does not pass a place, as a value; and whether a line of a file only shows a number."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradcli.eager.running.places import Line


class End(NamedTuple):
    """Why a gradient does not pass a place."""

    reason: str
    line: Line | None
    what: str


def shown(line: Line | None) -> bool:
    """Whether a line only shows, stores or tests a number, as far as its first word tells."""
    if line is None:
        return False
    text = linecache.getline(line.file, line.number).strip()
    return text.startswith(("print", "assert", "if ", "while ", "log")) or ".append(" in text
