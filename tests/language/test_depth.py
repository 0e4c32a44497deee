"""Depth and size: with limits raised 100,000 of anything is read in a second; else it is refused at once.

Each shape runs in a process of its own with a small recursion limit, so that its memory is its own and a single
recursive step per level would end it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.language import parse, parse_limits

MANY, SOME = 100_000, 25_000


def deep(n: int) -> dict[str, str]:
    """Texts that are nested so many times; where each level costs several objects, a fifth of that."""
    few = n // 5
    return {
        "parentheses": "(" * n + "x" + ")" * n,
        "brackets": "[" * few + "1" + "]" * few,
        "minus": "-" * n + "x",
        "not": "not " * few + "x",
        "powers": "**".join(["x"] * n),
        "calls": "f(" * n + "x" + ")" * n,
        "subscripts in subscripts": "x[" * few + "0" + "]" * few,
    }


def long(n: int) -> dict[str, str]:
    """Texts that are so long."""
    few = n // 5
    return {
        "sum": "+".join(["x"] * n),
        "comparison": "<".join(["x"] * few),
        "subscripts": "x" + "[0]" * few,
        "transposes": "x" + ".T" * few,
        "methods": "x" + ".f()" * few,
        "products without sign": "2" + "(x)" * few,
        "arguments": "f(" + ",".join(["x"] * few) + ")",
        "statements": "y = x\n" * few,
        "branches": "if a: x = 1\n" + "elif b: x = 2\n" * few,
        "name": "x" * 10 * n,
    }


DEEP, LONG = deep(MANY), long(MANY)
FULL = ("sum", "calls")  # at full length always; the others with `-m deep`

PROGRAM = """
import sys, time
from gradcli.language import parse, parse_limits, same, unparse
sys.setrecursionlimit(120)
text, limits = sys.stdin.read(), parse_limits("text=100MiB,nesting=1000000")
start = time.process_time()
script = parse(text, limits)
seconds = time.process_time() - start
# the peak of this program alone: what getrusage tells is inherited from the process that forked it
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
megabytes = int(peak.split()[1]) / 1024
again = parse(unparse(script), limits)
assert same(script, again)
del script, again
print(seconds, megabytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("shape", "n"),
    [
        *((shape, MANY if shape in FULL else SOME) for shape in DEEP | LONG),
        *(pytest.param(shape, MANY, marks=pytest.mark.deep) for shape in DEEP | LONG if shape not in FULL),
    ],
)
def test_hundred_thousand(shape: str, n: int) -> None:
    text = (deep(n) | long(n))[shape]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=text, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 4, seconds  # about 0.5 on an idle machine
    assert megabytes < 256, megabytes


@pytest.mark.parametrize("shape", [*DEEP, *LONG])
def test_refused_at_once(shape: str) -> None:
    text = (DEEP | LONG)[shape]
    if len(text) > 2**16:
        with pytest.raises(GradcliError) as caught:
            parse(text)
        assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["GC501"]
    if shape in DEEP:
        with pytest.raises(GradcliError) as caught:
            parse(text, parse_limits("text=100MiB"))
        assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["GC502"]


def test_two_hundred_levels_are_the_default() -> None:
    assert parse("(" * 200 + "x" + ")" * 200).statements
    with pytest.raises(GradcliError, match="GC502"):
        parse("(" * 201 + "x" + ")" * 201)
    with pytest.raises(GradcliError, match="GC502"):
        parse("".join(" " * i + "for i in range(2):\n" for i in range(201)) + " " * 201 + "s = 1")


@pytest.mark.parametrize("text", ["$ " * 30_000, "x +\n" * 15_000, "(" * 60_000, "x y;" * 15_000, "\u202e" * 20_000])
def test_many_errors_are_collected_in_linear_time(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse(text)
    assert caught.value.diagnostics
