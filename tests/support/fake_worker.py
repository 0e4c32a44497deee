"""A worker without checks: what it does with a case stands in the case's path. `tests.batch.test_supervisor` runs it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Any

from gradcli.base.child_process import start
from gradcli.batch.workers import local_worker

PIPE = -1  # where answers go
KEPT = []  # memory that is never given back


def spin() -> None:
    """Stay inside one call of C that lets no other Python thread run, for minutes."""
    _ = 3 ** (10**9)


def answered(path: str, block: int, content: bytes | None, options: dict[str, Any], beat: Callable[[], None]) -> str:
    what, _, name = path.partition(" ")
    folder = Path(options["folder"])
    with open(folder / "log", "a") as log:
        log.write(f"{path}\t{os.getpid()}\n")
    if what == "once":
        marker = folder / f"{path}.tried"
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    elif what == "differs":
        marker = folder / f"{path}.tried"
        if marker.exists():
            os._exit(4)
        marker.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "segfault":
        import ctypes

        ctypes.string_at(0)
    elif what == "exit":
        os._exit(3)
    elif what == "memory":
        bytearray(2**40)
    elif what == "cut":
        os.write(PIPE, b'1 {"report": ')
        os._exit(0)
    elif what == "garbage":
        os.write(PIPE, bytes.fromhex(name) + b"\n")
    elif what == "loud":
        print("nobody asked for this")
        os.system("echo this neither")
    elif what == "hangs":
        time.sleep(600)
    elif what == "waits":
        time.sleep(float(name))
    elif what == "slow":
        for _ in range(4):
            time.sleep(0.3)
            beat()
    elif what == "spins":
        spin()
    elif what == "family":
        child = start("tests.support.fake_worker", {"GRANDCHILD": "1"})
        assert child.stdout is not None and child.stdout.readline() == "spinning\n"
        (folder / "pids.unfinished").write_text(f"{os.getpid()} {child.pid}")
        (folder / "pids.unfinished").rename(folder / "pids")
        spin()
    elif what == "grows":
        KEPT.append(b"1" * (worker_limit() * 2**20))
    elif what == "idles":
        import threading

        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    elif what == "fails":
        return dumps({"failure": "RuntimeError: broken"})
    return dumps({"path": path, "block": block, "content": None if content is None else content.decode("latin-1")})


def worker_limit() -> int:
    from gradcli.batch.workers.supervisor import MOST_MEMORY

    return MOST_MEMORY + 1


def main() -> None:
    global PIPE
    if os.environ.get("GRANDCHILD"):
        from gradcli.base.child_process import end_with_parent

        end_with_parent()
        print("spinning", flush=True)
        spin()
    if os.environ.get("NEVER_READS"):
        time.sleep(600)
    PIPE = os.dup(1)
    sys.set_int_max_str_digits(0)
    local_worker.main(answered)
