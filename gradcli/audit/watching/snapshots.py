"""A copy of the process at the moment of a call, kept for judging.

Its closures and models are those that the gradient saw, and judging it there changes nothing in the user's program. No
process waits for the copy: its files and pipes are closed, so that it blocks no reader, and it ends with the audit at
the other end of its socket. Systems without `fork` have no copies.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import warnings
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SOCKET = "socket"
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def take(state: Any, about: dict[str, Any], subject: Callable[[], Any]) -> None:
    """Copy this process; the copy judges `subject()` on request. Raises OSError where that is impossible."""
    if not hasattr(os, "fork"):
        raise OSError(0, "this system cannot copy a process")
    before, state.pid = state.pid, -1  # what is forked here is no process of the user's
    try:
        with warnings.catch_warnings():  # of threads: the copy has none and needs none
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            try:
                os.setsid()  # it outlives the group of a process that is ended
                if os.fork() == 0:  # so that the copy is no child that the user's program could wait for
                    wait(state.folder, about, subject)
            finally:
                os._exit(0)
    finally:
        state.pid = before
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def wait(folder: str, about: dict[str, Any], subject: Callable[[], Any]) -> None:
    """Wait in a copy for the request to judge, and answer it."""
    os.setsid()
    os.environ.pop("GRADCLI_AUDIT", None)  # what it starts is no process of the user's
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    gc.disable()
    sys.settrace(None)
    sys.setprofile(None)
    silence()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(folder, SOCKET))
        stream = connection.makefile("rw", encoding="utf-8")
        stream.write(json.dumps({**about, "pid": os.getpid()}) + "\n")
        stream.flush()
        line = stream.readline()
        if not line:
            return
        with suppress(RuntimeError):
            single_thread()
        sys.path.append(HOME)
        from gradcli.audit.judging import answer

        stream.write(json.dumps(answer(subject, json.loads(line))) + "\n")
        stream.flush()


def silence() -> None:
    """Point every open file and pipe at nothing: a reader of them waits until the last writer has closed them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        with suppress(OSError):
            if int(name) != nothing:
                os.fstat(int(name))
                os.dup2(nothing, int(name))
    sys.stdin = open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def single_thread() -> None:
    """Keep OpenMP and PyTorch to one thread: the threads of the process were not copied, and would be waited for."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with suppress(OSError, AttributeError):
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            libraries = {line.split()[-1] for line in file if "libgomp" in line or "libomp" in line}
        if libraries:
            import ctypes

            for path in libraries:
                ctypes.CDLL(path).omp_set_num_threads(1)
