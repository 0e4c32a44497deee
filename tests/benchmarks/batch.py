"""Requests a second through `gradcli batch`, start-up taken off."""

from __future__ import annotations

import json
import sys

from tests.benchmarks.cold import ENTRY
from tests.benchmarks.driver import Row, interleaved, row, seconds


def run(rounds: int, small: bool) -> list[Row]:
    """Small scalar gradients: one script at many points, and a script of its own for every request."""
    requests = 2000 if small else 5000  # fewer take no longer than the start of a process varies
    lines = "".join(
        json.dumps({"id": i, "command": "grad", "script": "(x*y+x)**2", "at": {"x": i, "y": 3}}) + "\n"
        for i in range(requests)
    ).encode()
    different = "".join(
        json.dumps({"id": i, "command": "grad", "script": f"(x*y+{i}*x)**2", "at": {"x": 2, "y": 3}}) + "\n"
        for i in range(requests)
    ).encode()
    command = [sys.executable, "-c", ENTRY, "batch", "-"]
    one = b'{"id": 0, "command": "grad", "script": "x*x", "at": {"x": 1}}\n'
    found = interleaved(
        {
            "start": lambda: seconds(command, one),
            "same": lambda: seconds(command, lines),
            "different": lambda: seconds(command, different),
        },
        rounds,
    )
    limit = 1 / 2000
    return [
        row("batch, one script", (found["same"] - found["start"]) / requests, limit, 1.0, "2,000 a second"),
        row("batch, all different", (found["different"] - found["start"]) / requests, limit, 1.0, "2,000 a second"),
    ]
