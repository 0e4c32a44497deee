"""`check --python` that is killed, or ends: the code, and all that it started, end too, and nothing is left on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from gradcli.interfaces import cli

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
LIMIT = 60.0  # seconds until a test gives up; what it waits for takes milliseconds

CODE = """
import os, re, subprocess, sys, time
import numpy as np

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]

def daemon(environment):
    # a process of init's, in a session of its own
    reading, writing = os.pipe()
    if not os.fork():
        os.setsid()
        os.write(writing, str(subprocess.Popen(SLEEP, env=environment).pid).encode())
        os._exit(0)
    return int(os.read(reading, 20))

def started():
    children = [subprocess.Popen(SLEEP), subprocess.Popen(SLEEP, start_new_session=True)]
    bare = [{}] if not DIES else []
    children += [subprocess.Popen(SLEEP, start_new_session=True, env=environment) for environment in bare]
    forked = os.fork()
    if not forked:
        time.sleep(600)
        os._exit(0)
    strays = [daemon(environment) for environment in (dict(os.environ), *bare)]
    with open("pids.unfinished", "w") as file:
        file.write(" ".join(map(str, [os.getpid(), forked, *(one.pid for one in children), *strays])))
    os.rename("pids.unfinished", "pids")

def loops(x):
    started()
    while True:
        pass

def never_lets_go(x):
    started()
    re.match(r"(a+)+$", "a" * 60 + "b")

def ends(x):
    if not os.path.exists("pids"):
        started()
    return np.sum(x**2)

DIES = False

def dies(x):
    global DIES
    DIES = True  # what has neither a parent nor a variable of the code left is not known as its
    started()
    os._exit(3)

def df(x):
    return 2*x
"""


def until(met: Callable[[], object]) -> None:
    """Wait until something is so; fail where it does not come."""
    ends = monotonic() + LIMIT
    while not met():
        assert monotonic() < ends, "it did not happen"
        sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def checking(folder: Path, name: str) -> subprocess.Popen[bytes]:
    (folder / "code.py").write_text(CODE)
    (folder / "temporary").mkdir()
    arguments = ["--python", f"code.py:{name}", "--grad", "code.py:df", "--at", "x=[1,2]", "--timeout", "300"]
    return subprocess.Popen(
        [sys.executable, "-m", "gradcli", "check", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(cli.__file__).parents[2]),
            "TMPDIR": str(folder / "temporary"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )


@pytest.mark.parametrize("name", ["loops", "never_lets_go"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -9),
        (signal.SIGQUIT, -3),
        (signal.SIGHUP, 129),
        (signal.SIGTERM, 143),
        (signal.SIGINT, 130),
    ],
)
def test_the_code_ends_with_whoever_checks_it(number: int, code: int, name: str, tmp_path: Path) -> None:
    process = checking(tmp_path, name)
    until((tmp_path / "pids").exists)
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert all(map(alive, pids))
    process.send_signal(number)
    assert process.wait(timeout=LIMIT) == code
    until(lambda: not any(map(alive, pids)))
    process.communicate()
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize(("name", "code"), [("ends", 0), ("dies", 2)])
def test_what_the_code_started_ends_with_it(name: str, code: int, tmp_path: Path) -> None:
    process = checking(tmp_path, name)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == code, (out, err)
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    until(lambda: not any(map(alive, pids)))
    assert not list((tmp_path / "temporary").iterdir())


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As `nohup` wants it."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal, sys; from gradcli.interfaces.cli import main; main(['--version']); "
         "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
    )  # fmt: skip
    assert process.communicate(timeout=LIMIT)[0].split()[-1] == b"True"
