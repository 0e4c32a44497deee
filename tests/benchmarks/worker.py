"""`python -m tests.benchmarks.worker MODULE:FUNCTION SIZE`: prepare a candidate, then work each time a line comes in.

The first line out is the candidate's result (or why it is absent), every further one the seconds of a turn.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module


def main() -> None:
    """Serve one candidate until standard input ends."""
    place, size = sys.argv[1], int(sys.argv[2])
    module, _, name = place.partition(":")
    try:
        work, result = getattr(import_module(module), name)(size)
    except ImportError as missing:
        print(json.dumps({"absent": str(missing)}), flush=True)
        return
    print(json.dumps(result), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        work()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
