"""Row 1: the first answer of a fresh process, against `import numpy`."""

from __future__ import annotations

import sys

from tests.benchmarks.driver import Row, interleaved, row, seconds

ENTRY = "import sys; from gradcli.interfaces.cli import entry; sys.exit(entry())"


def run(rounds: int, small: bool) -> list[Row]:
    """A scalar gradient against `import numpy`, one with arrays against that plus 70 ms, the help against 150 ms."""
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
        row("1 cold scalar grad", found["scalar"], numpy, 1.0, "import numpy"),
        row("1 cold array grad", found["arrays"], numpy + 0.07, 1.0, "import numpy + 70 ms"),
        row("1 --help", found["help"], 0.15, 1.0, "150 ms"),
    ]
