"""Row 11: a graph of a million nodes, from text to gradient: time and memory a node, and that both stay flat.

Processor time, because the work is on one thread. What is compared is the cost of a node in a large graph and in one of
a tenth of its size: where anything were quadratic, the ratio would be ten.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

from tests.benchmarks.driver import ROOT, Row, environment, row

NODES = 1_000_000
FLAT = 1.5  # caches hold less of a large graph
MICROSECONDS, BYTES = 15e-6, 800  # a node, whatever the size
STAGES = ("parse", "lower", "gradient", "run")


def long_sum(nodes: int) -> str:
    """One expression of many terms: 7 nodes each, with what the gradient takes."""
    return "x = 0.5\n" + " + ".join(f"sin(x*{i})" for i in range(1, nodes // 7))


def long_list(nodes: int) -> str:
    """Many statements, each on what the one before gave: 9 nodes each."""
    return "x = 0.5\nh = x\n" + "\n".join(f"h = sin(h*x + {i})" for i in range(1, nodes // 9)) + "\nh"


def loop(nodes: int) -> str:
    """A few lines that run many times: 9 nodes each time, if they were written out."""
    return f"x = 0.5\nb = 0.25\nh = x\nfor i in range({nodes // 9}):\n    h = sin(h*x + b)\nh"


SHAPES = {"expression": long_sum, "statements": long_list, "for": loop}


def measured(shape: str, nodes: int) -> dict[str, float]:
    """Seconds of each stage, nodes, and the bytes that the process grew by, in this process."""
    from gradcli.calculator.questions import gradient_question
    from gradcli.interfaces.cli import COLLECTION
    from gradcli.language.limits import Limits
    from gradcli.language.parser import parse
    from gradcli.language.source import Source
    from gradcli.lowering import lower

    gc.set_threshold(*COLLECTION)  # as the command line has it
    limits = Limits(text=2**30, nodes=10**8)
    source = Source(SHAPES[shape](nodes))
    before = resident()
    times = [time.process_time()]
    script = parse(source, limits)
    times.append(time.process_time())
    lowered = lower(script, limits=limits)
    times.append(time.process_time())
    question = gradient_question(lowered)
    times.append(time.process_time())
    found = question.run(question.values({}), "auto", "float64")
    times.append(time.process_time())
    assert all(value - value == 0 for value in found)
    stages = {stage: after - start for stage, start, after in zip(STAGES, times, times[1:], strict=False)}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    # the nodes of every turn count: a loop that stands for them may not cost more
    count = nodes if shape == "for" else len(question.tape.nodes)
    return {**stages, "nodes": count, "bytes": grown, "text": len(source.text)}


def resident() -> int:
    """The bytes of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def alone(shape: str, nodes: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.graphs", shape, str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def a_node(shape: str, nodes: int, rounds: int) -> dict[str, float]:
    """The least seconds of each stage over some rounds, and the bytes, for one node."""
    runs = [alone(shape, nodes) for _ in range(rounds)]
    count = runs[0]["nodes"]
    found = {stage: min(run[stage] for run in runs) / count for stage in STAGES}
    return {**found, "all": sum(found.values()), "bytes": runs[0]["bytes"] / count, "nodes": count}


def run(rounds: int, small: bool) -> list[Row]:
    """A node of a large graph costs what one of a graph of a tenth costs, under fixed bounds of time and memory."""
    nodes, found = (NODES // 100 if small else NODES), []
    for shape in SHAPES:
        large, tenth = (a_node(shape, size, min(rounds, 3)) for size in (nodes, nodes // 10))
        told = ", ".join(f"{stage} {large[stage] * 1e6:.1f}" for stage in STAGES)
        print(f"{shape}: {large['nodes']:,.0f} nodes, us a node: {told}; {large['bytes']:.0f} bytes a node")
        found += [
            row(f"11 {shape}, time a node", large["all"], tenth["all"], FLAT, "a tenth of the nodes"),
            row(f"11 {shape}, time a node", large["all"], MICROSECONDS, 1.0, "15 us"),
            row(f"11 {shape}, memory a node", large["bytes"], BYTES, 1.0, f"{BYTES} bytes", "bytes"),
        ]
    return found


def main() -> None:
    """`python -m tests.benchmarks.graphs SHAPE NODES`: the figures of one process, as JSON."""
    found: dict[str, Any] = measured(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({**found, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
