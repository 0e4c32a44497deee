"""Every exit code of the command line, produced for real, and the order in which `check` chooses between them.

`test_streams.py` has the codes under closed and full streams, and 141, `test_commands.py` those of reports made by hand.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.base.diagnostics import error
from gradcli.batch import check_run
from gradcli.interfaces import cli
from gradcli.interfaces.commands import COMMANDS, declaration

ROOT = str(Path(cli.__file__).parents[2])
SCRIPTS = {
    "right.grad": "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n",
    "wrong.grad": "x = 2\nassert grad(x**2, x) == 3*x\nx**2\n",
    "open.grad": "x = 0\nwhere(x == 0, 0, x*sin(1/sin(1/x)))\n",  # it is undefined at points as near as you like
    "unreadable.grad": "x**\n",
    "empty.grad": "1 + 2\n",
    "kink.grad": "x = 0\nrelu(x)\n",
    "frozen.grad": "x = 2\nx**2\n#> value = 5\n",
    "README.md": "# Title\n",
    "code.py": "import sys\ndef f(x): return sum(v**2 for v in x)\ndef df(x): return 2*x\ndef wrong(x): return 3*x\n",
    "raises.py": "1/0\n",
    "exits.py": "raise SystemExit(1)\n",
    "crash.grad": "x = 2\nx**2  # a worker that reads this line is killed\n",
}
# loaded by every Python process that a test starts with this folder in PYTHONPATH
KILLED = """
import os
import signal
from gradcli.language import source

real = source.Source.__init__

def read(self, text, *more, **options):
    if "is killed" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, text, *more, **options)

source.Source.__init__ = read
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The scripts, in the current folder; the process is left as it was."""
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "nothing").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    handlers = {name: signal.getsignal(getattr(signal, name)) for name in cli.ENDING if hasattr(signal, name)}
    yield tmp_path
    for name, handler in handlers.items():
        signal.signal(getattr(signal, name), handler)


WAYS = {
    0: """
        check right.grad
        check right.grad -q
        check right.grad -v -j2
        check open.grad --allow inconclusive
        check kink.grad --allow kink
        check empty.grad --allow empty
        check nothing --allow empty,kink
        check . -k right
        check . --select right.grad
        check . --exclude *.grad --allow empty
        check wrong.grad --write-baseline b.json
        check x**2 --at x=2
        check -e x-y
        check -x**2 --at x=2
        check relu(x) --at x=0 --avoid-kinks
        check --python code.py:f --grad code.py:df --at x=[1,2]
        check right.grad --show KINK
        freeze right.grad --stdout
        grad x**2 --at x=2
        grad log(x) --at x=-2
        grad sum((A@x)**2)
        eval -e -x --at x=2
        derive -e nothing
        derive -e right
        explain kink
        run code.py
        why code.py
        audit --report-only -- PYTHON code.py
        --help
        help check
        check --help-all
        --version
        --show-settings
    """,
    1: """
        check wrong.grad
        check .  -k wrong
        check kink.grad
        check x**2 --at x=2 --claim x=3*x
        check abs(x) --at x=0
        check sqrt(x) --at x=0
        check sign(x) --at x=0
        check frozen.grad
        check bessel_j0(x) --at x=2 --require certified --claim x=-bessel_j1(x)*(1+1e-9)
        check --python code.py:f --grad code.py:wrong --at x=[1,2]
        check right.grad wrong.grad -x
        freeze wrong.grad
        run raises.py
        run exits.py
    """,
    2: """
        check unreadable.grad
        check missing.grad
        check right.grad missing.grad
        check missing
        check missing-too
        check right
        check nothin/right.grad
        check a/b
        check ./missing
        check ~/missing
        check C:\\missing
        check missing/*.grad
        check -z
        check -xz
        check -k
        check -kr*t
        check -jfour
        check -j0
        check --nonsense
        check --fail-fast=1
        check right.grad --samples=-1
        check right.grad --format pdf
        check right.grad --show nonsense
        check right.grad --show sumary
        check right.grad --allow nonsense
        check right.grad --shard 3/2
        check right.grad --baseline missing.json
        check right.grad --json missing/a.json
        check right.grad -o a.png
        check right.grad wrong.grad --claim x=1
        check . --box x=0:1
        check x**2 -j2
        check x**2 --docs
        check x**2 --memory 500
        check x**2 --watch
        check x** --at x=2
        check x**2 --at x
        check x**2 --claim y
        check code.py
        check README.md
        check --grad code.py:df
        check --python code.py:f --grad code.py:df
        check --python code.py:nope --grad code.py:df --at x=1
        check --python missing.py:f --grad code.py:df --at x=1
        check --python code.py:f --claim x=1 --at x=1
        check --python code.py:f -j2 --at x=1
        check right.grad --python code.py:f --at x=1
        grad x** --at x=2
        grad -x
        grad x y
        grad x --at
        grad x**2 --order 0
        grad x**2 --points missing.csv
        grad x**2 --points missing.csv --order 2
        grad missing.grad
        grad nothing
        grad right
        trace nothing/
        grad x**2 -o missing/a.json
        --version check wrong.grad
        --show-settings check wrong.grad
        --color never check wrong.grad
        version
        eval code.py
        trace x*y --plan --all
        derive x --emit c -o x.py
        plot x --format png
        graph x -o g.pdf
        explain nonsense
        ops nonsense
        completions nonsense
        freeze right.txt
        run missing.py
        why missing.py
        batch missing.jsonl
        audit
        audit -- missing-program
        nonsense
        diff x**2
        help nonsense
    """,
    3: """
        check open.grad
        check open.grad right.grad
        check open.grad -q
        check . -k open
    """,
    5: """
        check empty.grad
        check nothing
        check . -k nonsense
        check wrong.grad -k nonsense
        check wrong.grad right.grad -k nonsense
        check wrong.grad -kexpectation
        check . --select nonsense
        check . --exclude *.grad
        check right.grad --shard 2/2
        check nothing --docs
        check 2+3
        audit -- PYTHON code.py
    """,
}


@pytest.mark.parametrize(
    ("line", "code"), [(line.strip(), code) for code, lines in WAYS.items() for line in lines.strip().splitlines()]
)
def test_codes_of_one_line(line: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([sys.executable if word == "PYTHON" else word for word in line.split()]) == code
    out, err = capfd.readouterr()
    assert bool(err) or not code or line.startswith("run")  # every code but 0 has its reason
    assert "Traceback" not in out + err or line == "run raises.py"


def test_a_wrong_setting_is_code_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "gradcli.toml").write_text("nonsense = 1\n")
    assert cli.main(["check", "wrong.grad"]) == 2
    assert "GC722" in capsys.readouterr().err


ORDER = {"crash.grad": 4, "unreadable.grad": 2, "wrong.grad": 1, "open.grad": 3, "empty.grad": 0, "right.grad": 0}


@pytest.mark.parametrize("first", range(4))
def test_the_first_in_the_order_counts(
    first: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files together are code 4; without the file that was to blame the next code of the order counts."""
    (folder / "hooks").mkdir()
    (folder / "hooks" / "sitecustomize.py").write_text(KILLED)
    monkeypatch.setenv("PYTHONPATH", f"{folder / 'hooks'}{os.pathsep}{ROOT}")
    left = list(ORDER)[first:]
    assert cli.main(["check", *reversed(left), "--jobs", "1"]) == ORDER[left[0]]
    assert capsys.readouterr().err.splitlines()[-1].startswith("gradcli check: ")


@pytest.mark.parametrize("code", ["GC692", "GC743", "GC999"])
def test_what_the_machine_lacks_is_code_4(
    code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk, a lost cluster, and workers that do not start end a run of several files; none is a usage error."""

    def supervise(*tasks: object, **options: object) -> Iterator[None]:
        yield None
        raise error(code, "it cannot go on")

    monkeypatch.setattr(check_run, "supervise", supervise)
    assert cli.main(["check", "right.grad", "wrong.grad", "--no-cache", "--json", "report.json"]) == 4
    assert code in capsys.readouterr().err
    report = json.loads(Path("report.json").read_text())
    assert (report["complete"], report["stopped"]) == (False, "it cannot go on")


class Fault(Exception):
    """A fault of gradcli's own."""


@pytest.mark.parametrize("problem", [Fault("x"), MemoryError(), RecursionError(), OSError(28, "no space"), KeyError(1)])
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_internal_failure_is_never_code_1(
    command: str, problem: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = declaration(command)

    def fails(*given: object, **more: object) -> int:
        raise problem

    monkeypatch.setattr(type(declared), "function", property(lambda self: fails), raising=False)
    words = {"check": ["right.grad"], "batch": ["-"], "ops": [], "explain": [], "completions": ["bash"]}
    assert cli.main([command, *words.get(command, ["x**2"])]) == 4
    out, err = capsys.readouterr()
    assert err
    assert "Traceback" not in out + err


def started(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gradcli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs start with it ignored
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_check_of_many_files(number: int, code: int, folder: Path) -> None:
    (folder / "many").mkdir()
    for position in range(200):
        (folder / "many" / f"{position}.grad").write_text(f"x = 2\nsum(sin(x*[{position}, 1, 2])) + exp(x)/x\n")
    process = started("check", "many", "--jobs", "2", folder=folder)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("needs /proc/PID/task/TID/children")
    for _ in range(600):
        if children.read_text():  # the workers run, so the handlers of signals are in place
            break
        time.sleep(0.05)
    assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert b"Traceback" not in out + err
    assert b"interrupted" in err or b"terminated" in err
