"""`python -m tests.benchmarks [--only NAME] [--json FILE]`: one table of ours, the yardstick, their ratio and the limit.

Figures are of the machine that runs this; only ratios are compared with a limit. Peers that are not installed have no
line (extra `peers`).
"""

from __future__ import annotations

import argparse
import json
import os
from importlib import import_module
from pathlib import Path

from tests.benchmarks.driver import Row

MODULES = (
    "cold", "scalar", "points", "stencils", "hessians", "gradchecks",
    "orders", "gradbench", "network", "verdicts", "eager", "batch",
)  # fmt: skip


def table(names: tuple[str, ...], rounds: int, small: bool) -> list[Row]:
    """The lines of some rows."""
    found: list[Row] = []
    for name in names:
        found += import_module(f"tests.benchmarks.{name}").run(rounds, small)
    return found


def text(lines: list[Row]) -> str:
    """The table as people read it."""
    shown = [f"{'work':26}{'against':24}{'ours ms':>12}{'theirs ms':>12}{'ratio':>8}{'limit':>8}"]
    for line in lines:
        ours, theirs = line["ours"] * 1e3, line["yardstick"] * 1e3
        mark = "" if line["ratio"] <= line["limit"] else "  above"
        told = (
            f"{line['name']:26}{line['against']:24}{ours:12.5g}{theirs:12.5g}{line['ratio']:8.3g}{line['limit']:8.3g}"
        )
        shown.append(told + mark)
    return "\n".join(shown)


def main() -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--only", choices=MODULES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = table((options.only,) if options.only else MODULES, options.rounds, options.small)
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
    print(text(lines))
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
