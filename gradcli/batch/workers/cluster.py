"""Runs many cases, or blocks of points, on an existing Dask cluster; needs Dask, from the extra `cluster`.

Each task carries what it needs: the script, and the data files that its `load` names, read on this machine. So paths
need not exist on the workers. Outcomes are fetched as soon as they are ready, because the worker that holds one may be
lost; lost outcomes are computed again on another worker.

Use only a cluster that you trust: Dask runs whatever it receives, and results come back as pickles. For a `tls://`
address Dask takes keys and certificates from its own configuration.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.batch.workers import dask_worker
from gradcli.batch.workers.local_worker import answered
from gradcli.batch.workers.supervisor import PULSE, WORKER, Done, Task
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import decode_source
from gradcli.language.syntax import Call, String, nodes_of
from gradcli.language.values import FileReference, parse_at
from gradcli.lowering.data_files.loading import copy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from gradcli.language.source import Source

CONNECT = 10.0  # seconds for reaching the scheduler
LOST = 30.0  # seconds without any worker, after which a run ends
AHEAD = 4  # tasks in flight for each thread of a worker
LOOK = 1.0  # seconds between two counts of the workers
UNLIMITED = "1 TiB"


class _Raised(NamedTuple):
    """What a task raised in place of a result."""

    problem: BaseException


class TaskFailed(NamedTuple):
    """A task that has no result even after a second try: the workers that ran it died, or it raised."""

    reason: str


def supervise_on(
    address: str,
    tasks: Iterable[Task],
    options: Mapping[str, Any],
    *,
    memory: int | None = None,
    module: str = WORKER,
) -> Generator[Done | None, None, None]:
    """Check all tasks on the cluster with this scheduler; yields what `supervisor.supervise` yields.

    For each worker thread a few tasks are taken from the iterable in advance. A case that crashes is tried once more in
    a fresh process of the same worker; a case that kills Dask workers themselves is tried once more at the end, while
    no other task runs. Workers may join and leave during the run. Close the generator to end the run.

    Raises GradcliError: GC713 without Dask, GC741 where the scheduler cannot be reached, GC742 where a worker
    has another version of gradcli, Python or a library, GC743 where the scheduler or all workers are lost. Outcomes
    that were yielded before remain valid.

    >>> [done.index for done in supervise_on("tcp://10.0.0.1:8786", [Task(0, "x.grad", 0, b"x = 2; x**2")], {}) if done]
    ... # doctest: +SKIP
    [0]
    """
    options = dict(options)
    shared = _files_of_points(options)
    with Cluster(address) as cluster:
        lost: list[Task] = []

        def sent(task: Task) -> tuple[Any, ...]:
            copies = (*shared, *(copy_of(path, task.path) for path in _loaded(task, options)))
            return (options, memory, module), task._replace(copies=copies)

        unread: deque[Task] = deque()

        def readable() -> Iterator[Task]:
            for task in tasks:
                if task.content is None:
                    unread.append(task)
                else:
                    yield task

        def errors() -> Iterator[Done]:
            while unread:  # a file that cannot be read on this machine is an error of this machine
                task = unread.popleft()
                yield Done(task.index, answered(task.path, task.block, None, options), None)

        for result in cluster.results(dask_worker.check, readable(), sent):
            yield from errors()
            if result is None:
                yield None
            elif isinstance(result[1], TaskFailed):
                lost.append(result[0])
            else:
                yield result[1]
        yield from errors()
        for task in lost:
            for result in cluster.results(dask_worker.check, [task], sent):
                if result is not None and isinstance(result[1], TaskFailed):
                    yield Done(task.index, None, result[1].reason)
                else:
                    yield None if result is None else result[1]


def answer_on(
    address: str, source: Source, question: Mapping[str, Any], blocks: Iterable[tuple[Mapping[str, Any], int]]
) -> Iterator[tuple[Any, dict[str, Any], int]]:
    """Values and gradients at blocks of points, in their order.

    A block is a pair: the leaves, and the position at which the source continues. `question` has the fields of
    `dask_worker.PointTask` other than those of the script. Raises GradcliError for what is wrong with
    the points, and as `supervise_on` does; GC743 too where a block takes down the workers of Dask.
    """
    names = _names_in(source, limits_of(question["options"].get("limits")))
    copies = tuple(copy_of(path, source.path or ".") for path in names)
    asked = dask_worker.PointTask(text=source.text, name=source.name, path=source.path, copies=copies, **question)
    with Cluster(address) as cluster:
        result: Any
        for result in cluster.results(dask_worker.answer, blocks, lambda block: (asked, block[0]), ordered=True):
            if result is None:
                continue
            (_, end), answer = result
            if isinstance(answer, TaskFailed):
                raise error(
                    "GC743",
                    f"a block of points was not computed: {answer.reason}",
                    help="finished blocks are kept: run the same command again to continue",
                )
            if isinstance(answer[0], Diagnostic):
                raise GradcliError(*answer)
            yield *answer, end


class Cluster:
    """A connection to the scheduler of a cluster, for one run. Raises GradcliError GC713 or GC741."""

    def __init__(self, address: str) -> None:
        try:
            self.dask: Any = import_module("dask")
            self.distributed: Any = import_module("distributed")
        except ImportError:
            raise error("GC713", "a cluster needs Dask", help='pip install "gradcli[cluster]"') from None
        self.address = address
        self.run = uuid4().hex
        self.taken = 0
        self.versions = dask_worker.versions()
        self._client: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Cluster:
        # Dask would warn that tasks, which carry their data, are large
        self._stack.enter_context(self.dask.config.set({"distributed.admin.large-graph-warning-threshold": UNLIMITED}))
        for name in ("distributed", "distributed.client"):  # their messages, with tracebacks, are raised as errors here
            logger = logging.getLogger(name)
            self._stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        try:
            # the client would wait forever for a server that accepts a connection and sends nothing
            with ThreadPoolExecutor(1) as other:
                other.submit(asyncio.run, self._reach()).result()
            self._client = self.distributed.Client(self.address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError, ImportError, AssertionError) as problem:
            self._stack.close()
            reason = str(problem) or f"no answer within {CONNECT:g} s"
            raise error(
                "GC741",
                f"cannot reach a Dask scheduler at {visible(self.address)}: {visible(reason, 200)}",
                help="start one with `dask scheduler`, and give the address that it prints, such as tcp://HOST:8786",
            ) from None
        return self

    async def _reach(self) -> None:
        core = import_module("distributed.comm.core")
        arguments = self.distributed.Security().get_connection_args("client")
        comm = await asyncio.wait_for(core.connect(self.address, timeout=CONNECT, **arguments), CONNECT)
        await comm.close()

    def __exit__(self, *problem: object) -> None:
        with suppress(self.distributed.TimeoutError, OSError):
            self._client.close(timeout=CONNECT)  # the scheduler cancels what is in flight
        self._stack.close()

    def results(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        arguments: Callable[[Any], tuple[Any, ...]],
        *,
        ordered: bool = False,
    ) -> Generator[tuple[Any, Any] | None, None, None]:
        """Call a function of `dask_worker` for each item on some worker; yields (item, result), or (item, Failed).

        Results come when they are ready, or in the order of the items if `ordered`; None comes at least twice a second.
        `arguments(item)` gives the arguments of the call that follow the expected versions.

        Raises GradcliError GC742 and GC743.
        """
        waiting = iter(items)
        flying: dict[str, Any] = {}  # items by key, until their results are yielded
        ready: dict[str, Any] = {}
        arrived: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        threads = self._threads()
        looked = alive = spoken = monotonic()
        exhausted = False
        while True:
            while not exhausted and len(flying) < AHEAD * max(threads, 1):
                item = next(waiting, self)
                if item is self:
                    exhausted = True
                    break
                self.taken += 1
                key = f"gradcli-{self.run}-{self.taken}"
                flying[key] = item
                call = (function, self.versions, *arguments(item))
                future = self._client.submit(*call, key=key, pure=False)
                self._client.loop.add_callback(self._fetch, future, arrived)
            if exhausted and not flying:
                return
            with suppress(Empty):
                key, outcome = arrived.get(timeout=PULSE)
                ready[key] = self._outcome(outcome)
                alive = monotonic()
            while ready and (key := next(iter(flying)) if ordered else next(iter(ready))) in ready:
                yield flying.pop(key), ready.pop(key)
                spoken = monotonic()
            now = monotonic()
            if now - looked > LOOK:
                threads, looked = self._threads(), now
                alive = now if threads else alive
                if now - alive > LOST:
                    raise self._gone(f"it has had no workers for {LOST:g} s", "dask worker ADDRESS starts one")
            if now - spoken > PULSE:
                yield None
                spoken = monotonic()

    async def _fetch(self, future: Any, arrived: SimpleQueue[tuple[str, Any]]) -> None:
        """Wait for a result and get it from its worker; Dask recomputes it where that worker is lost meanwhile."""
        try:
            outcome = await self._client.gather(future, asynchronous=True)
        except (Exception, asyncio.CancelledError) as problem:
            outcome = _Raised(problem)
        arrived.put((future.key, outcome))

    def _threads(self) -> int:
        """The number of threads of all workers."""
        if self._client.status != "running":
            raise self._gone(
                "the connection to its scheduler is lost", "check whether `dask scheduler` is still running"
            )
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            raise self._gone(
                "its scheduler does not answer", "check whether `dask scheduler` is still running"
            ) from None

    def _gone(self, reason: str, hint: str) -> GradcliError:
        return error(
            "GC743",
            f"the cluster at {visible(self.address)} is lost: {reason}",
            help=f"{hint}; finished work is kept: run the same command again to continue",
        )

    def _outcome(self, outcome: Any) -> Any:
        """The result of a task that has ended; raises GradcliError for a failure that every task would have."""
        if isinstance(outcome, dask_worker.Differs):
            raise self._differs(outcome.text)
        if not isinstance(outcome, _Raised):
            return outcome
        problem = outcome.problem
        if isinstance(problem, asyncio.CancelledError):  # the scheduler has gone, or forgotten this client
            raise self._gone(
                "the connection to its scheduler is lost", "check whether `dask scheduler` is still running"
            )
        cause = problem.__cause__ or problem
        if isinstance(cause, (ImportError, AttributeError)):
            raise self._differs(f"the scheduler or a worker cannot load {dask_worker.__name__}: {cause}")
        if isinstance(problem, self.distributed.scheduler.KilledWorker):
            return TaskFailed("the cluster workers that ran it died")
        return TaskFailed(f"{type(problem).__name__}: {problem}"[:400])

    def _differs(self, text: str) -> GradcliError:
        return error(
            "GC742",
            f"the cluster at {visible(self.address)} is not set up like this machine: {visible(text, 300)}",
            help="install the same gradcli, Python and libraries on the scheduler, the workers and here",
        )


# --- which data files belong to a task --------------------------------------------------------------------


def _loaded(task: Task, options: Mapping[str, Any]) -> list[str]:
    """The paths that `load` names in a task's script, as they are written; none in one that cannot be parsed."""
    if task.content is None or b"load" not in task.content:
        return []
    limits = limits_of(options.get("limits"))
    try:
        return _names_in(decode_source(task.content, task.path, task.path, limits), limits)
    except GradcliError:
        return []  # the worker reports what is wrong


def _names_in(source: Source, limits: Any) -> list[str]:
    if "load" not in source.text:
        return []
    names: dict[str, None] = {}
    for node in nodes_of(parse(source, limits)):
        if isinstance(node, Call) and node.function.id == "load" and node.args and isinstance(node.args[0], String):
            names[node.args[0].text] = None
    return list(names)


def _files_of_points(options: Mapping[str, Any]) -> list[Any]:
    """Copies of the files that the point of all cases names: `x=@points.npy`."""
    copies = []
    at: Sequence[str] = options.get("at") or ()
    for text in (at,) if isinstance(at, str) else () if hasattr(at, "items") else at:
        bindings = parse_at(text, limits_of(options.get("limits")))
        copies += [
            copy_of(binding.value.path, None) for binding in bindings if isinstance(binding.value, FileReference)
        ]
    return copies
