"""Value and gradient at each row of a CSV file, written to another one: whole commands, beside polars and NumPy by hand.

Processor time of new processes, one after the other, which all may use one thread; the least of the rounds.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.benchmarks.driver import Row, environment, row, wanted

ROWS = 1_000_000
EXPRESSION = "exp(-x*y)*sin(x + y)"
BY_HAND = """
import sys
import numpy as np
import polars
table = polars.read_csv(sys.argv[1])
x, y = table["x"].to_numpy(), table["y"].to_numpy()
e, s, c = np.exp(-x*y), np.sin(x + y), np.cos(x + y)
polars.DataFrame({"value": e*s, "d_x": e*c - y*e*s, "d_y": e*c - x*e*s}).write_csv(sys.argv[2])
"""


def spent(command: list[str]) -> float:
    """The processor time of a process and of those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    one_thread = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "GRADCLI_THREADS": "1"}
    subprocess.run(command, capture_output=True, check=True, env={**environment(), **one_thread})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(rounds: int, small: bool) -> list[Row]:
    """At most one and a half times as long as by hand."""
    if not wanted("polars") or importlib.util.find_spec("polars") is None:
        return []
    times: dict[str, list[float]] = {"ours": [], "polars": []}
    with tempfile.TemporaryDirectory() as folder:
        source, *targets = (os.path.join(folder, name) for name in ("points.csv", "ours.csv", "polars.csv"))
        table = np.random.default_rng(4).uniform(-2, 2, (20 if small else ROWS, 2))
        with open(source, "w") as text:
            text.write("x,y\n")
            text.writelines(f"{x!r},{y!r}\n" for x, y in table.tolist())
        ours = ["-m", "gradcli", "grad", EXPRESSION, "--points", source, "--output", targets[0]]
        for _ in range(rounds):
            Path(targets[0]).unlink(missing_ok=True)
            times["ours"].append(spent([sys.executable, *ours]))
            times["polars"].append(spent([sys.executable, "-c", BY_HAND, source, targets[1]]))
        results = [np.loadtxt(target, delimiter=",", skiprows=1, max_rows=1000) for target in targets]
        assert np.allclose(*results, rtol=1e-9, atol=1e-12)
    return [row("CSV to CSV, a million rows", min(times["ours"]), min(times["polars"]), 1.5, "polars")]
