"""The functions that run on a worker of a Dask cluster: checking a case, and computing a block of points.

A case is checked in a separate process, so a script that crashes, hangs or uses up the memory never ends the Dask
worker itself. The process is reused for the next case. It ends when it has been idle for a while, when its outcome is
no longer needed, and with the Dask worker, even one that is killed.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli import __version__
from gradcli.base.diagnostics import Diagnostic, GradcliError
from gradcli.batch.journal import LIBRARIES, package_digest
from gradcli.batch.workers.supervisor import Done, Team
from gradcli.calculator.repeated.compiled import CompiledScript
from gradcli.language.source import Source
from gradcli.lowering.data_files.loading import using

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.batch.workers.supervisor import Task

    Setup = tuple[Mapping[str, Any], int | None, str]  # options, memory and module, as `supervise` takes them

IDLE = 60.0  # seconds without a case after which a process ends


class Differs(NamedTuple):
    """The answer of a worker that is not set up like the machine that sends tasks; `text` names the difference."""

    text: str


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The names and versions that have to agree on all machines, so that a task has the same outcome on each."""
    versions = {"gradcli": __version__, "the code of gradcli": package_digest().hex()[:12]}
    versions |= {"Python": platform.python_version(), "the processor": platform.machine()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return versions


def difference(expected: Mapping[str, str]) -> Differs | None:
    """The first version that differs on this worker, or None."""
    own = versions()
    for name, wanted in expected.items():
        if own.get(name, "missing") != wanted:
            return Differs(f"{name} is {own.get(name, 'missing')} there and {wanted} here")
    return None


# --- checks -----------------------------------------------------------------------------------------------


def check(expected: Mapping[str, str], setup: Setup, task: Task) -> Done | Differs:
    """The outcome of a case; one that crashes is tried once more in a fresh process, as without a cluster."""
    if (differs := difference(expected)) is not None:
        return differs
    outcome = Done(task.index, None, "its result is no longer needed")
    team = TEAMS.take(*setup)
    try:
        events = team.run(iter((task,)))
        for done in events:
            if done is not None:
                outcome = done
            elif unwanted():
                events.close()
                team.close()
                break
    except BaseException:
        team.close()
        raise
    TEAMS.give_back(team)
    return outcome


def unwanted() -> bool:
    """Whether the task of this thread was cancelled, for example because its client has gone."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


class Teams:
    """Idle processes for the next cases: at most as many as threads of this worker were busy at the same time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.idle: list[tuple[Team, Timer]] = []

    def take(self, options: Mapping[str, Any], memory: int | None, module: str) -> Team:
        """A team of one process for these options; an idle one with other options is ended."""
        team = Team(options, 1, memory, None, module)
        with self.lock:
            if not self.idle:
                return team
            kept, timer = self.idle.pop()
        timer.cancel()
        if (kept.setup, kept.module) == (team.setup, team.module):
            return kept
        kept.close()
        return team

    def give_back(self, team: Team) -> None:
        """Keep a team for the next case, for at most IDLE seconds."""
        timer = Timer(IDLE, self.end, (team,))
        timer.daemon = True
        with self.lock:
            self.idle.append((team, timer))
        timer.start()

    def end(self, team: Team) -> None:
        """End a team, unless it has been taken meanwhile."""
        with self.lock:
            waiting = [idle for idle in self.idle if idle[0] is team]
            self.idle = [idle for idle in self.idle if idle[0] is not team]
        if waiting:
            team.close()


TEAMS = Teams()


# --- points -----------------------------------------------------------------------------------------------


class PointTask(NamedTuple):
    """What is computed at every point: the script, its options, and the values that all points share."""

    key: str
    text: str
    name: str
    path: str | None
    options: Mapping[str, Any]  # of `calculator.compile`
    gradient: bool
    shared: Mapping[str, Any]
    copies: tuple[Any, ...]


def answer(
    expected: Mapping[str, str], question: PointTask, leaves: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]] | tuple[Diagnostic, ...] | Differs:
    """Values and gradients at a block of points, or the diagnostics of what is wrong with them."""
    if (differs := difference(expected)) is not None:
        return differs
    try:
        with using(question.copies):
            return compiled(question).at_points(
                shared=tuple(question.shared), gradient=question.gradient, **leaves, **question.shared
            )
    except GradcliError as problem:
        return problem.diagnostics


_COMPILED: dict[str, CompiledScript] = {}  # the last question of this worker


def compiled(question: PointTask) -> CompiledScript:
    """The script of a question, compiled once; several threads may call it."""
    function = _COMPILED.get(question.key)
    if function is None:
        function = CompiledScript(Source(question.text, question.name, question.path), **question.options)
        _COMPILED.clear()
        _COMPILED[question.key] = function
    return function
