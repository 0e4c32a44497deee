"""Checks one case after another in a process of its own, which the supervisor controls and may end at any time.

A line comes in for each case. Lines go out: a sign of life after each check, then the answer; each begins with the
number of the case within this process, so that nothing else that reaches the pipe is taken for an answer.
"""

from __future__ import annotations

import gc
import os
import signal
from dataclasses import replace
from importlib import import_module
from json import dumps, loads
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.base.child_process import MIB, conversation, extend_cpu_limit, limit_memory, resident
from gradcli.base.diagnostics import GradcliError
from gradcli.batch.discovery.cases import block_limits
from gradcli.batch.workers.transport import report_to_json
from gradcli.checks.oracle.oracle_client import shared
from gradcli.checks.report import Report, refused, timed
from gradcli.language.limits import limits_of
from gradcli.language.source import decode_source, read_source
from gradcli.lowering.data_files.loading import recorded, using
from gradcli.primitives.plugins import import_again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradcli.language.limits import Limits, LimitsLike
    from gradcli.language.source import Source

    Options = Mapping[str, Any]
    Beat = Callable[[], None]

CHECKING = "gradcli.checks.scripts"  # slow to import


def answered(path: str, block: int, content: bytes | None, options: Options, beat: Beat | None = None) -> str:
    """The answer to one case, a line of JSON: its report, or a failure of gradcli.

    `content` are the bytes to check; None for a file that the supervisor could not read. `clock` in the
    answer says that a report depends on this machine: it ran out of time or memory, or the oracle was lost. `beat` is
    called after each check.

    Raises MemoryError, after which the process should end.
    """
    try:
        with recorded() as opened:
            report = check_content(path, block, content, options, beat)
        answer = {
            "report": report_to_json(report),
            "seconds": [check.seconds for check in report.checks],
            "opened": opened,
            "clock": depends_on_machine(report),
        }
        return dumps(answer)
    except MemoryError:
        raise
    except Exception as bug:  # reported as a failure; the process continues with the next case
        return dumps({"failure": f"{type(bug).__name__}: {bug}"[:400]})


def check_content(path: str, block: int, content: bytes | None, options: Options, beat: Beat | None = None) -> Report:
    """The report of a script; one that cannot be read or lowered is one check that says why.

    Raises GradcliError GC999 if the process for exact arithmetic does not start.
    """
    started = monotonic()
    keywords = dict(options)
    try:
        source, limits = script_of(path, block, content, keywords.pop("limits", None))
        report: Report = import_module(CHECKING).check_script(source, limits=limits, beat=beat, **keywords)
    except GradcliError as problem:
        if problem.diagnostics[0].code == "GC999":  # no fault of the script
            raise
        report = timed(refused(problem.diagnostics, file=path), [monotonic() - started])
    return replace(report, block=block)


def script_of(path: str, block: int, content: bytes | None, limits: LimitsLike) -> tuple[Source, Limits]:
    """A script and the limits that hold for it; raises GradcliError if it cannot be read."""
    allowed = limits_of(limits)
    if content is None:
        return read_source(path, allowed), allowed
    if block:
        allowed = block_limits(content, allowed)
    return decode_source(content, path, path, allowed), allowed


def depends_on_machine(report: Report) -> bool:
    """Whether a timeout, a lack of memory or a lost oracle decided anything in a report."""
    return any(
        "unanswered" in check.evidence or any(note.code == "GC506" for note in check.diagnostics)
        for check in report.checks
    )


def main(answer: Callable[..., str] = answered) -> None:
    """Answer cases until standard input ends; then the process ends at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor
    lines, answers = conversation()

    def send(number: int, *messages: str) -> None:
        answers.write("".join(f"{number} {message}\n" for message in messages))
        answers.flush()

    setup = loads(lines.get())
    if setup["memory"] is not None:
        limit_memory(setup["memory"] * MIB)
    extend_cpu_limit(setup["cpu"])  # before the oracle starts, which inherits it
    if answer is answered:
        shared().warm()
        import_module(CHECKING)  # before the first case, so that its time does not include it
        import_again()
        gc.freeze()  # what is loaded by now stays
    send(0, dumps({"ready": True}))
    while True:
        case = loads(lines.get())
        number, content = case["number"], case["content"]

        def beat(number: int = number, seconds: float = case["cpu"]) -> None:
            extend_cpu_limit(seconds)
            send(number, dumps({"beat": True}))

        extend_cpu_limit(case["cpu"])
        data = None if content is None else content.encode("latin-1")
        try:
            with using(case["copies"]):
                line = answer(case["path"], case["block"], data, setup["options"], beat)
        except MemoryError:
            send(number, dumps({"crash": "out of memory"}))
            os._exit(1)
        send(number, dumps({"memory": resident() + shared().memory()}), line)
