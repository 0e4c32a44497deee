"""The name of a module with a `main` goes in, a Python process that runs it comes out, with pipes for JSON lines.

The process finds modules where this one does, but never in the current folder for being there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CODE = "import sys; sys.path.extend(p for p in {paths!r} if p not in sys.path); from {module} import main; main()"
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


def start(module: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """The process; one thread of its own for linear algebra, so that several of them share the machine."""
    paths = [os.path.abspath(path) for path in sys.path if path]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CODE.format(paths=paths, module=module)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**os.environ, **QUIET, **(environment or {})},
    )


def whole_lines(stream: Iterable[str]) -> Iterator[str]:
    """The lines of a process; what has no newline at its end is what the process wrote when it died."""
    return takewhile(lambda line: line.endswith("\n"), stream)
