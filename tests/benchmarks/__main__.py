"""`python -m tests.benchmarks [--peers torch,jax,autograd] [--only NAME]`: one table of ours beside every yardstick.

With `--without PASS` ours leaves out a pass of the planner (`tests/support/passes.py`): what does that pass earn?

Ours, the yardstick, their ratio, the limit, and whether it is met. Figures are of the machine that runs this; only ratios
are compared with a limit. Peers that are not installed have no line (extra `peers`). `--json` and `--markdown` write the
table to a file, `--from` takes rows from such files of earlier runs; how it is measured stands in README.md beside this
module.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks import report
from tests.benchmarks.driver import LIBRARIES, Choice, Row
from tests.benchmarks.load import Seen
from tests.support.passes import PASSES

MODULES = (
    "cold", "scalar", "points", "gradbench", "network", "stencils", "plans", "gradchecks", "hessians",
    "sparse_matrices", "verdicts", "orders", "graphs", "memory", "devices", "eager", "batch", "files", "tables", "loops",
)  # fmt: skip


def table(names: tuple[str, ...], rounds: int, small: bool) -> list[Row]:
    """The lines of some rows."""
    found: list[Row] = []
    for name in names:
        Seen.reset()
        lines = import_module(f"tests.benchmarks.{name}").run(rounds, small)
        print(f"{name}: {Seen.told()}", file=sys.stderr, flush=True)
        seen = {"module": name, "load": max(Seen.loads, default=None), "rounds": rounds, "small": small}
        found += [{**line, **seen} for line in lines]
    return found


def merged(runs: list[list[Row]]) -> list[Row]:
    """The lines of several runs in the order of the table; each module's from the last run that has it."""
    last = {line["module"]: lines for lines in runs for line in lines}
    return [line for name in MODULES for line in last.get(name, []) if line["module"] == name]


def earlier(path: Path) -> list[Row]:
    """The lines that `--json` wrote, of this machine and these versions; the date may differ."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows: list[Row] = found["rows"]
    except (OSError, ValueError, KeyError) as problem:
        raise SystemExit(f"python -m tests.benchmarks: {path} holds no rows: {problem}") from None
    here = report.machine()
    other = [name for name in here if name != "date" and found.get(name) != here[name]]
    if other:
        raise SystemExit(f"python -m tests.benchmarks: {path} was measured elsewhere: another {', '.join(other)}")
    return rows


def names_of(given: list[str], known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Names with commas between them, given once or several times, in the order of the table."""
    wanted = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise SystemExit(f"python -m tests.benchmarks: no {what} is called {name}; there are {', '.join(known)}")
    return tuple(name for name in known if name in wanted)


def without_parts(given: list[str]) -> list[str]:
    """The names of rows in `row` and `row:part`; of a row whose parts are named only these run."""
    names = [name.strip() for text in given for name in text.split(",")]
    found: dict[str, list[str]] = {}
    for row, _, part in [name.partition(":") for name in names if ":" in name]:
        names_of([row], MODULES, "row")
        found.setdefault(row, []).append(part)
    for row, wanted in found.items():
        known = getattr(import_module(f"tests.benchmarks.{row}"), "PARTS", ())
        Choice.parts[row] = names_of(wanted, known, f"part of {row}")
    return [name.partition(":")[0] for name in names]


def main(argv: list[str] | None = None) -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help=f"{', '.join(MODULES)}; of gradbench also one work, such as gradbench:lse")  # fmt: skip
    parser.add_argument("--peers", action="append", metavar="NAMES", help=f"{','.join(LIBRARIES)} (default), or none")
    parser.add_argument("--without", action="append", default=[], metavar="PASS",
                        help=f"leave out a pass of the planner in ours; only printed: {', '.join(PASSES)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--from", action="append", type=Path, default=[], dest="files", metavar="FILE",
                        help="rows that --json wrote; only what --only names is measured, and takes their place")  # fmt: skip
    parser.add_argument("--json", type=Path, help="the lines, the machine and the versions")
    parser.add_argument("--markdown", type=Path, help="the table; in a file with marks for it, between them")
    options = parser.parse_args(argv)
    if options.peers is not None:
        Choice.peers = () if options.peers == ["none"] else names_of(options.peers, LIBRARIES, "peer")
    known = [earlier(path) for path in options.files]
    left_out = names_of(options.without, tuple(PASSES), "pass")
    if left_out and (known or options.json or options.markdown):
        parser.error("what a run without a pass takes is only printed")
    os.environ.pop("BENCHMARK_WITHOUT", None)
    if left_out:
        os.environ["BENCHMARK_WITHOUT"] = ",".join(left_out)
    if ":" in "".join(options.only) and (known or options.json or options.markdown):
        parser.error("a part of a row is only printed: name the row without a part to write it to a file")
    modules = names_of(without_parts(options.only), MODULES, "row") or (() if known else MODULES)
    lines = merged([*known, table(modules, options.rounds, options.small)])
    about: dict[str, Any] = report.machine()
    print(report.told(about))
    print(report.text(lines))
    if options.json:
        options.json.write_text(json.dumps({**about, "rows": lines}, indent=1) + "\n")
    if options.markdown:
        report.write_markdown(options.markdown, report.markdown(lines, about))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
