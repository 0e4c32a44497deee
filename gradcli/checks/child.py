"""Starts a Python process that runs the `main` of a module, with pipes for JSON lines, and reads its lines.

The process finds modules where this one does, but never in the current folder for being there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from weakref import finalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CODE = "import sys; sys.path.extend(p for p in {paths!r} if p not in sys.path); from {module} import main; main()"
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


def start(
    module: str, environment: dict[str, str] | None = None, *, own_session: bool = False
) -> subprocess.Popen[str]:
    """The process; one thread of its own for linear algebra, so that several of them share the machine.

    Its `main` may call `process_limits.end_with_parent`. With `own_session` it leads a process group, to which what it
    starts belongs too, and the signals of a terminal do not reach it.
    """
    paths = [os.path.abspath(path) for path in sys.path if path]
    reading, writing = os.pipe()
    posix: dict[str, Any] = {"pass_fds": (reading,)} if hasattr(os, "fork") else {}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", CODE.format(paths=paths, module=module), str(reading)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env={**os.environ, **QUIET, **(environment or {})},
            start_new_session=own_session,
            **posix,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    finalize(process, os.close, writing)
    return process


def whole_lines(stream: Iterable[str]) -> Iterator[str]:
    """The lines of a process; what has no newline at its end is what the process wrote when it died."""
    return takewhile(lambda line: line.endswith("\n"), stream)
