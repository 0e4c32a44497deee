"""Exact questions about nodes at points, and the process that answers them.

The process is started, given questions one at a time, and replaced when it dies or grows. A question whose process dies
is put once more to a fresh one; where that dies too, or the time of the check is over, there is no answer and the check
is INCONCLUSIVE: a lost process never weakens a verdict. One thread uses an oracle at a time, for as long as a script or
a callable is checked. Nothing is pickled: both sides speak JSON. The time of a check is kept here and nowhere else.
`verdict` interprets the answers.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import wraps
from queue import Empty, SimpleQueue
from subprocess import TimeoutExpired
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from gradcli.base.child_process import listen, resident, start, whole_lines
from gradcli.base.diagnostics import error
from gradcli.checks.oracle.node_codec import NodeCodec
from gradcli.graph.flat import Table
from gradcli.graph.loop import nodes_in
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Values = Mapping[str, NDArray[np.floating[Any]]]
    Answer = dict[str, Any]

P = ParamSpec("P")
R = TypeVar("R")

MOST_NODES = 40_000  # of a graph that is sent to the oracle
LONGEST = 86_400.0  # seconds; the system cannot wait for an infinite time
MOST_MEMORY = 200  # MiB; a process that holds more is replaced before the next script, for 0.15 s
MOST_PROGRAMS = 4000  # the same, also where the system does not say how much memory a process holds
ENVIRONMENT = {"SYMPY_GROUND_TYPES": "python", "PYTHONHASHSEED": "0"}


class NoAnswer(Exception):
    """No answer to a question: two processes died over it, or as a `TimeOver`; the check is then INCONCLUSIVE."""


class TimeOver(NoAnswer):
    """The time of a check is over."""


class OracleLost(Exception):
    """The process died over a question, or ran out of memory; a fresh one may have an answer."""


class Exact:
    """The oracle, holding some nodes of a script; without `proving` no proof is tried.

    A question raises NoAnswer where the time of the check is over, or the oracle is lost twice: the check is then
    INCONCLUSIVE. What else ends a question is a count of operations, so no verdict depends on the clock.
    """

    def __init__(self, oracle: Oracle, nodes: Sequence[Node], seconds: float, proving: bool = True) -> None:
        self.oracle, self.seconds, self.proving = oracle, seconds, proving
        self.end = 0.0  # of the present check
        order, self.used = reachable(nodes), leaf_names(nodes)
        local = sorted({node.primitive.name for node in order if node.primitive.package == ""})
        reason = f"{', '.join(local)}: declared by a value in this process alone, not in a file of --import"
        if (count := nodes_in(order)) > MOST_NODES:
            reason = f"a graph of {count:,} nodes, more than {MOST_NODES:,}"
        self.refused = {"problem": "unsupported", "reason": reason} if local or count > MOST_NODES else None
        nodes = [] if self.refused else nodes
        table = Table(nodes, catalogue())
        self.flat, self.rows = table.flat, table.rows
        self.codec = NodeCodec(table.rows)

    def begin(self) -> None:
        """Start the clock of the next check."""
        self.end = monotonic() + min(self.seconds, LONGEST)

    def beside(self, nodes: Sequence[Node]) -> Exact:
        """The oracle, holding other nodes, within the time of the same check."""
        other = Exact(self.oracle, nodes, self.seconds, self.proving)
        other.end = self.end
        return other

    def ask(self, question: str, **about: Any) -> Answer:
        """The oracle's answer to a question of `oracle_server`, about nodes and arrays as they are here."""
        if self.refused is not None:
            return self.refused
        if "point" in about:
            about["point"] = self._used(about["point"])
        if derivative := about.get("derivative"):
            about["derivative"] = {**derivative, "point": self._used(derivative["point"])}
        try:
            return self.oracle.ask(question, max(0.0, self.end - monotonic()), held=self, **about)
        except TimeOver:
            raise TimeOver(f"{self.seconds:g} s ran out; a longer --timeout may help") from None

    def _used(self, values: Values) -> Values:
        """The values of the leaves that these nodes read."""
        return {name: value for name, value in values.items() if name in self.used}

    def values(self, nodes: Sequence[Node], values: Values, derived: Sequence[Any] = ()) -> Answer:
        """The enclosures of some nodes: `entries`, one list for each; `derived` is as `Subject.of_equality` has it."""
        return self.ask("values", nodes=nodes, point=values, derived=derived)

    def compare(self, right: Node, points: Sequence[Values], left: Node | None = None, **about: Any) -> Answer:
        """The judged node against a `derivative` (see `Subject.derivative`), or the node `left`, at each point."""
        plane, derived = about.pop("plane", False), about.pop("derived", ())
        sides = None if left is None else {"left": left, "plane": plane, "derived": derived}
        return self.ask("compare", right=right, points=[self._used(point) for point in points], sides=sides, **about)

    def prove(self, right: Node, values: Values, **about: Any) -> Answer:
        """Whether a node is equal to `left`, or its `entries` to the derivatives of `output` by `target`, by algebra.

        `proved`, and then `how` (structure, normal form) and what is `assumed`, in kinds and texts; else the `reason`.
        """
        return self.ask("prove", right=right, point=values, **about) if self.proving else {"proved": False}


def leaf_names(nodes: Sequence[Node]) -> set[str]:
    """The names of the leaves that some nodes read."""
    return {node.params["name"] for node in reachable(nodes) if node.primitive is LEAF}


class Oracle:
    """A process of its own for exact arithmetic; started at the first question, and again after a loss.

    `with oracle:` keeps it for one thread; other threads wait there until it is free.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._users = 0  # nested uses of the thread that holds the lock
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[str | None] = SimpleQueue()
        self._number = 0
        self._programs = 0  # sent to the present process
        self._answered = False  # whether any process has ever answered: one that cannot start is a fault of its own
        self._held: Exact | None = None  # whose program the present process holds

    def __enter__(self) -> Oracle:
        self._lock.acquire()
        self._users += 1
        if self._users == 1 and (self._programs > MOST_PROGRAMS or self.memory() > MOST_MEMORY):
            self.close()
        return self

    def __exit__(self, *exc: object) -> None:
        self._users -= 1
        if not self._users:
            self._held = None  # the check is over, and the graph of its program may be large
        self._lock.release()

    def memory(self) -> float:
        """The memory of the process in MiB; 0 without a process, or where the system does not report it."""
        return 0.0 if self._process is None else resident(self._process.pid)

    def ask(self, op: str, timeout: float, held: Exact | None = None, **question: Any) -> Answer:
        """The answer to one question about the nodes of `held`, whose program is sent first where it is another.

        Raises NoAnswer where two processes died over it, or the time is over; GradcliError GC999 where no process could
        ever be started.
        """
        with self._lock:
            for _ in range(2):
                try:
                    self.warm()
                    if held is not None and held is not self._held:
                        self._held = None  # where it cannot be loaded, no question is about it
                        self._programs += 1
                        if "problem" in (answer := self._exchange("load", timeout, {"flat": held.flat})):
                            return answer
                        self._held = held
                    return self._exchange(op, timeout, question)
                except OracleLost as problem:
                    self.close()
                    reason = str(problem)
        if not self._answered:
            help = "for the reason, run: python -c 'import gradcli.checks.oracle.oracle_server'"
            raise error("GC999", f"the process for exact arithmetic could not be started ({reason})", help=help)
        raise NoAnswer(f"the process for exact arithmetic ended twice on the same question: {reason}")

    def warm(self) -> None:
        """Start the process now, so that its imports run beside the caller's work; not while another thread uses it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._process is None or self._process.poll() is not None:
                self._answers, self._held, self._programs = SimpleQueue(), None, 0
                self._process = start("gradcli.checks.oracle.oracle_server", ENVIRONMENT)
                assert self._process.stdout is not None
                listen(whole_lines(self._process.stdout), self._answers.put)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process."""
        process, self._process, self._held = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # what is left in its buffer has no reader
                    stream.close()

    def _exchange(self, op: str, timeout: float, question: dict[str, Any]) -> Answer:
        process = self._process
        assert process is not None and process.stdin is not None
        codec = NodeCodec({}) if self._held is None else self._held.codec
        self._number += 1
        try:
            process.stdin.write(codec.written({"number": self._number, "op": op, **question}))
            process.stdin.flush()
            line = self._answers.get(timeout=timeout)
        except Empty:
            self.close()
            raise TimeOver("no answer in time") from None
        except OSError:
            line = None
        if line is None:
            with suppress(TimeoutExpired):
                process.wait(timeout=1.0)
            self.close()
            raise OracleLost(f"it ended with code {process.returncode}")
        try:
            answer = codec.read(line)
        except ValueError:  # it died within a line
            raise OracleLost("it ended in the middle of its answer") from None
        self._answered = True
        if answer.pop("number") != self._number:
            raise OracleLost("its answers are out of step with its questions")
        if answer.get("problem") == "memory":
            raise OracleLost("it has no memory left")
        return answer


_shared: list[Oracle] = []
_making = RLock()


def shared() -> Oracle:
    """The oracle of this process, made at the first call and ended with it."""
    with _making:
        if not _shared:
            _shared.append(Oracle())
            atexit.register(_shared[0].close)
        return _shared[0]


def _forked() -> None:
    """A forked child starts an oracle of its own: it must neither use nor end that of its parent."""
    global _making
    for oracle in _shared:
        atexit.unregister(oracle.close)
    _shared.clear()
    _making = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """A function that keeps its `oracle`, or the shared one, for its thread as long as it runs."""

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> R:
        oracle: Any = kwargs.get("oracle")
        with oracle or shared():
            return function(*args, **kwargs)

    return kept
