"""`python -m tests.benchmarks.worker MODULE:FUNCTION SIZE`: prepare a candidate, then work each time a line comes in.

The first line out is the candidate's result (or why it is absent), every further one the seconds of a turn: of
processor time with `BENCHMARK_CLOCK=cpu`. `BENCHMARK_WITHOUT` names passes of the planner that are left out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module


def main() -> None:
    """Serve one candidate until standard input ends."""
    left_out = os.environ.get("BENCHMARK_WITHOUT")
    if not left_out:
        return serve()
    from tests.support.passes import without

    with without(*left_out.split(",")):
        return serve()


def serve() -> None:
    """Prepare the candidate, print its result, and work."""
    place, size = sys.argv[1], int(sys.argv[2])
    module, _, name = place.partition(":")
    try:
        work, result = getattr(import_module(module), name)(size)
    except ImportError as missing:
        print(json.dumps({"absent": str(missing)}), flush=True)
        return
    print(json.dumps(result), flush=True)
    clock = time.process_time if os.environ.get("BENCHMARK_CLOCK") == "cpu" else time.perf_counter
    for _ in sys.stdin:
        start = clock()
        work()
        print(clock() - start, flush=True)


if __name__ == "__main__":
    main()
