"""Which rows of a table belong to the normal suite; the others are judged by `pytest -m deep`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def every(step: int, rows: Iterable[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """The rows as parameters: the first of each `step` belong to the normal suite, the others are marked deep.

    For laws whose rows differ in their data alone, so that a fault in the code under test shows in most of them.
    """
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=pytest.mark.deep if at % step else (),
            id=None if ids is None else ids[at],
        )
        for at, row in enumerate(rows)
    ]
