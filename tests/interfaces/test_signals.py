"""A signal at any moment ends a command with the code of the signal, or comes when the answer is complete.

Each way in which a command line is read and answered is started many times and gets Ctrl-C or SIGTERM at moments that
are spread over its run. Before Python runs the first line of gradcli (in the first 10 to 20 ms) it answers signals by
itself: with a traceback, with code 1 while it imports `site` or `runpy`, or not at all where a callback of the import
system loses the exception.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from gradcli.interfaces import cli
from tests.support.processes import below, runs

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
ROOT = str(Path(cli.__file__).parents[2])
FEW, MANY = 6, 500  # starts of each reader; the moments are spread over its run
LAST = 2.0  # seconds after its start in which a command is disturbed
STARTS = (  # the console script as pip writes it, and the module
    ("-c", "import re, sys\nfrom gradcli.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())"),
    ("-m", "gradcli"),
)
FILES = {
    "p.csv": "x,y\n" + "".join(f"{row / 7},{row % 5}\n" for row in range(500)),
    "m.py": "import numpy as np\ndef f(x): return np.sum(x**2)\ndef df(x): return 2*x\n",
    "s.py": "import torch\nw = torch.tensor([1., 2.], requires_grad=True)\n(w*w).sum().backward()\n",
    "t.py": "print('done')\n",
    "session": "f = x**3\n:derive f\n2*3\ngrad f --at x=2\n",
    "scripts/a.grad": "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n",
    "scripts/b.grad": "x = 3\nassert grad(sin(x), x) == cos(x)\nsin(x)\n",
}
READERS = {
    "direct": ["grad", "(x*y+x)**2", "--at", "x=2,y=3"],
    "typer": ["check", "--help"],
    "usage": ["check", "--nonsense"],
    "prompt": [],
    "points": ["grad", "sin(x)*y+x", "--points", "p.csv", "-o", "out.csv"],
    "expression": ["check", "x**2*sin(y)", "-fjson"],
    "workers": ["check", "scripts", "-j2", "--no-cache", "-o", "out.txt"],
    "python": ["check", "--python", "m.py:f", "--grad", "m.py:df", "--at", "x=[1,2]", "--seed", "1"],
    "audit": ["audit", "--", sys.executable, "t.py"],
    "why": ["why", "--on", "gradcli", "s.py"],
}


class Ended(NamedTuple):
    """How a command ended: its code, its streams, and what it wrote into files."""

    code: int
    out: bytes
    err: bytes
    written: tuple[tuple[str, bytes], ...]


def ran(
    words: list[str], folder: Path, number: int = 0, delay: float = 0.0, start: tuple[str, ...] = STARTS[0]
) -> Ended:
    """Run a command in a folder of its own, with a signal after some seconds."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": ROOT, "COLUMNS": "80", "XDG_CONFIG_HOME": str(folder / "nobody")}
    with (folder / "session").open("rb") as session:
        process = subprocess.Popen(
            [sys.executable, *start, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL if words else session,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs start with it ignored
        )
    if number:
        time.sleep(delay)
        family = below(process.pid)
        process.send_signal(number)
    out, err = process.communicate(timeout=120)
    deadline = time.monotonic() + 20
    while number and any(map(runs, family)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not number or not [pid for pid in family if runs(pid)]
    written = tuple((path.name, path.read_bytes()) for path in sorted(folder.glob("out.*")))
    return Ended(process.returncode, out, err, written)


def right(end: Ended, whole: Ended, number: int) -> bool:
    """Whether a disturbed command ended by the signal, or with its whole answer."""
    lost = b"Exception ignored" in end.err and b"_get_module_lock" not in end.err
    if b"GC999" in end.err or lost or b"gradcli/interfaces" in end.err:
        return False
    if end.code in (128 + number, -number):
        return True
    site = end.code == 1 and b"KeyboardInterrupt" in end.err and not end.out  # Python's own start
    return site or (end.code, end.written) == (whole.code, whole.written)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("starts", [FEW, pytest.param(MANY, marks=pytest.mark.deep)])
def test_a_signal_ends_a_command_at_any_moment(reader: str, starts: int, tmp_path: Path) -> None:
    words = READERS[reader]
    began = time.monotonic()
    whole = ran(words, tmp_path / "whole")
    again = ran(words, tmp_path / "again")
    length = min((time.monotonic() - began) / 2, LAST)
    assert whole.code == {"usage": 2, "audit": 5}.get(reader, 0), whole.err
    assert (whole.code, whole.written) == (again.code, again.written)
    assert whole.out or whole.written or whole.code

    def disturbed(turn: int) -> Ended:
        number = signal.SIGTERM if turn % 4 == 3 else signal.SIGINT
        delay = length * ((turn * 7) % starts) / starts
        end = ran(words, tmp_path / str(turn), number, delay, STARTS[turn % 2])
        assert right(end, whole, number), (turn, number, end)
        if end.code == whole.code and end.code == 0 and reader not in ("audit", "python", "workers"):
            assert end.out == whole.out
        return end

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(disturbed, range(starts)))
    assert any(end.code != whole.code for end in ends)


def test_a_signal_whose_exception_is_lost_still_ends_the_command(tmp_path: Path) -> None:
    """As where Ctrl-C comes while a callback of the import system runs: Python prints such an exception and goes on."""
    code = (
        "import signal, sys, gradcli.interfaces.cli as cli\n"
        "class Lost:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "def answers(argv):\n"
        "    one = Lost()\n"
        "    del one\n"
        "    for turn in range(10**9): pass\n"
        "    print('went on')\n"
        "    return 0\n"
        "cli.run = answers\n"
        "sys.exit(cli.main(['grad', 'x']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": ROOT}, capture_output=True)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == b"gradcli: interrupted\n"


def test_a_signal_that_is_swallowed_is_no_success(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallows(argv: list[str]) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            pass
        return 0

    def stumbles(argv: list[str]) -> int:
        swallows(argv)
        raise ImportError("half of a module")

    for action in (swallows, stumbles):
        monkeypatch.setattr(cli, "run", action)
        assert cli.main(["grad", "x"]) == 130
        assert capsys.readouterr().err == "gradcli: interrupted\n"


def test_watching_ends_with_the_code_of_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("x = 2\nassert grad(x**2, x) == 3*x\nx**2\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", "check", "a.grad", "--watch", "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    lines = []
    while b"waiting for changes" not in (line := process.stderr.readline()):
        assert line
        lines.append(line)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"DISAGREES" in out and err.endswith(b"gradcli: interrupted\n")
    assert b"1 check failed" in b"".join(lines)
