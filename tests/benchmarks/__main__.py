"""`python -m tests.benchmarks [--only NAME] [--json FILE]`: one table of ours, the yardstick, their ratio and the limit.

Every candidate runs in processes of its own, in turn with the others, and medians count, so that a busy machine
slows all of them alike. Figures are of the machine that runs this; only ratios are compared with a limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENTRY = "import sys; from gradcli.cli import entry; sys.exit(entry())"


def seconds(command: list[str], stdin: bytes = b"") -> float:
    """The wall-clock time of one process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    start = time.perf_counter()
    subprocess.run(command, input=stdin, capture_output=True, check=True, env=environment, cwd="/")
    return time.perf_counter() - start


def interleaved(candidates: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each candidate over several rounds, one after the other in each round."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for name in candidates:
        candidates[name]()
    for _ in range(rounds):
        for name, run in candidates.items():
            found[name].append(run())
    return {name: statistics.median(times) for name, times in found.items()}


def cold_start(rounds: int) -> list[dict[str, object]]:
    """Row 1: a scalar gradient against `import numpy`, and one with arrays against that plus 70 ms."""
    python = sys.executable
    scalar = [python, "-c", ENTRY, "grad", "(x*y+x)**2", "--at", "x=2,y=3"]
    arrays = [python, "-c", ENTRY, "grad", "sum(x*x)", "--at", "x=[1,2,3]"]
    found = interleaved(
        {
            "numpy": lambda: seconds([python, "-c", "import numpy"]),
            "scalar": lambda: seconds(scalar),
            "arrays": lambda: seconds(arrays),
            "help": lambda: seconds([python, "-c", ENTRY, "--help"]),
        },
        rounds,
    )
    numpy = found["numpy"]
    return [
        row("cold scalar grad", found["scalar"], numpy, 1.0),
        row("cold array grad", found["arrays"], numpy + 0.07, 1.0),
        row("--help", found["help"], 0.15, 1.0),
    ]


def batch(rounds: int, requests: int = 5000) -> list[dict[str, object]]:
    """Small scalar gradients through `batch`: every request a point of its own; start-up is taken off."""
    lines = "".join(
        json.dumps({"id": i, "command": "grad", "script": "(x*y+x)**2", "at": {"x": i, "y": 3}}) + "\n"
        for i in range(requests)
    ).encode()
    different = "".join(
        json.dumps({"id": i, "command": "grad", "script": f"(x*y+{i}*x)**2", "at": {"x": 2, "y": 3}}) + "\n"
        for i in range(requests)
    ).encode()
    command = [sys.executable, "-c", ENTRY, "batch", "-"]
    found = interleaved(
        {
            "start": lambda: seconds(command, b'{"id": 0, "command": "grad", "script": "x*x", "at": {"x": 1}}\n'),
            "same": lambda: seconds(command, lines),
            "different": lambda: seconds(command, different),
        },
        rounds,
    )
    limit = 1 / 2000
    return [
        row("batch, one script", (found["same"] - found["start"]) / requests, limit, 1.0),
        row("batch, all scripts different", (found["different"] - found["start"]) / requests, limit, 1.0),
    ]


def row(name: str, ours: float, yardstick: float, limit: float) -> dict[str, object]:
    """One line of the table; times in seconds."""
    return {"name": name, "ours": ours, "yardstick": yardstick, "ratio": ours / yardstick, "limit": limit}


ROWS = {"cold": cold_start, "batch": batch}


def main() -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--only", choices=sorted(ROWS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = [line for name, rows in ROWS.items() if options.only in (None, name) for line in rows(options.rounds)]
    print(f"load {os.getloadavg()[0]:.2f}")
    print(f"{'work':32}{'ours ms':>10}{'yardstick ms':>14}{'ratio':>8}{'limit':>8}")
    for line in table:
        ours, yardstick = float(line["ours"]) * 1e3, float(line["yardstick"]) * 1e3  # type: ignore[arg-type]
        print(f"{line['name']:32}{ours:10.3f}{yardstick:14.3f}{line['ratio']:8.2f}{line['limit']:8.2f}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
