"""A worker's process: paths as JSON lines in, reports as JSON lines out, and a sign of life after each check.

Whatever a script does to this process, its owner (`batch.run`) sees it end and blames that script alone.
"""

from __future__ import annotations

import os
import sys
from json import dumps, loads
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.batch.transport import report_to_json
from gradcli.checks.gradcheck import check_script
from gradcli.checks.report import Report, refused, timed
from gradcli.diagnostics import GradcliError
from gradcli.execution.data import recorded
from gradcli.language.limits import Limits
from gradcli.language.source import read_source

if TYPE_CHECKING:
    from collections.abc import Callable


def check_file(path: str, options: dict[str, Any], beat: Callable[[], None] | None = None) -> Report:
    """The report of one file; a file that cannot be read or lowered is one check that says why."""
    started = monotonic()
    told = dict(options)
    limits = told.pop("limits", None)
    bounds = Limits(**limits) if isinstance(limits, dict) else limits
    try:
        source = read_source(path) if bounds is None else read_source(path, bounds)
        return check_script(source, limits=bounds, beat=beat, **told)
    except GradcliError as problem:
        return timed(refused(problem.diagnostics, file=path), [monotonic() - started])


def main() -> None:
    """Answer paths until standard input ends; then the process ends at once."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    paths: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            paths.put(line)
        os._exit(0)

    def tell(answer: dict[str, Any]) -> None:
        answers.write(dumps(answer) + "\n")
        answers.flush()

    Thread(target=listen, daemon=True).start()
    options = loads(paths.get())
    while True:
        path = loads(paths.get())
        try:
            with recorded() as opened:
                report = check_file(path, options, lambda: tell({"beat": True}))
            seconds = [one.seconds for one in report.checks]
            tell({"report": report_to_json(report), "seconds": seconds, "opened": opened})
        except Exception as bug:  # said, not lost: the process goes on with the next file
            tell({"failure": f"{type(bug).__name__}: {bug}"[:400]})
