"""Loops beyond the limit of nodes are refused before they are built, and none within it is."""

from __future__ import annotations

import random

import pytest

from gradcli.diagnostics import GradcliError
from gradcli.language.limits import Limits
from gradcli.language.parser import parse
from gradcli.lowering import loop_size, lower

TERMS = [
    "x*i",
    "s*x",
    "s + x",
    "t*2",
    "s*t",
    "sin(s)",
    "exp(x*i)",
    "s - t",
    "t + i",
    "x",
    "i*(5 - i)",
    "s**2",
    "-t",
    "7",
    "v[0]*s",
    "v[1]",
    "u[i + 3]*s",
    "u[i + 3]*u[i + 4]",
    "u[2*3]",
    "f(s)",
    "f(t)*x",
    "f(x)",
    "g(s, i)",
    "g(x, 2)",
]
FUNCTIONS = "def f(a):\n    b = a*a + 1\n    return b*v[0]\ndef g(a, k):\n    return f(a) + k\n"


def script(seed: int) -> str:
    chosen = random.Random(seed)
    lines = [f"    {chosen.choice('st')} = {chosen.choice(TERMS)} + {chosen.choice(TERMS)}" for _ in range(2)]
    if chosen.random() < 0.3:
        lines.append(
            f"    for j in range({chosen.randrange(1, 4)}):\n        s = s*{chosen.choice(['x', 'j', 't'])} + 1"
        )
    if chosen.random() < 0.4:
        test = f"i {chosen.choice(['<', '<=', '>', '>=', '==', '!='])} {chosen.choice(['3', '5', '7.5', '0', '20', '100'])}"
        test = test if chosen.random() < 0.7 else f"{test.split()[2]} {test.split()[1]} i"
        lines.append(
            f"    if {test}:\n        s = {chosen.choice(TERMS)}\n    else:\n        t = s*{chosen.choice(TERMS)}"
        )
    head = f"{FUNCTIONS}x = 2\nv = [1.5, 3]\nu = ones(60)\ns = {chosen.choice(['x', '1', 'x*x'])}\nt = {chosen.choice(['x', '2'])}\n"
    return (
        f"{head}for i in range({chosen.randrange(-3, 3)}, {chosen.randrange(6, 40)}):\n"
        + "\n".join(lines)
        + "\ns + t\n"
    )


def nodes(text: str, limit: int) -> int | None:
    """The nodes of a script; None where they are refused."""
    try:
        return lower(parse(text), limits=Limits(nodes=limit)).program.builder.count
    except GradcliError as problem:
        assert [one.code for one in problem.diagnostics] == ["GC505"]
        return None


SEEDS = [*range(80), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(80, 1000))]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_refused_would_have_been_too_much(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the look ahead and without it a script is refused alike, at every limit around its size."""
    text = script(seed)
    size = nodes(text, 10**6)
    assert size is not None
    for limit in (size - 3, size - 1, size, size + 1, size // 2 + 45):
        found = []
        for worth in (0, 10**9):
            monkeypatch.setattr(loop_size, "WORTH", worth)
            found.append(nodes(text, limit))
        assert found[0] == found[1], (text, limit)


LONG = [
    "for i in range(1000000):\n    s = s + sin(x*i)",
    "for i in range(500000):\n    s = s*x + i",
    "for i in range(1000000):\n    s = s*x",
    "for i in range(1000000):\n    s += x",
    "for i in range(1000):\n    for j in range(1000):\n        s = s + sin(x*i*j)",
    "for i in range(1000000):\n    s = s**x",
    "for i in range(1000000):\n    s = s + v[0]*i",
    "for i in range(1000000):\n    s = s + u[i]**2",
    "for i in range(1000000):\n    s = s + f(x)*i",
    "for i in range(1000000):\n    s = g(s, i)",
    "for i in range(1000000):\n    if i < 3:\n        s = s + x\n    else:\n        s = s*x + i",
    "for i in range(1000000):\n    if i == 0:\n        s = x\n    elif 5 >= i:\n        s = s + x\n    else:\n        s = s*x + i",
]


@pytest.mark.parametrize("loop", LONG)
def test_a_long_loop_is_refused_at_once(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in nodes: only the first turns are built."""
    from gradcli.graph import builder

    counts = []
    refuse = builder.Builder._too_many
    monkeypatch.setattr(builder.Builder, "_too_many", lambda self: counts.append(self.count) or refuse(self))  # type: ignore[func-returns-value]
    assert nodes(f"{FUNCTIONS}x = 2\nv = [1.5, 3]\nu = ones(1000000)\ns = x\n{loop}\ns\n", 10**6) is None
    assert counts[0] < 20_000


@pytest.mark.parametrize(
    "body",
    [
        "    if mod(i, 2) == 0:\n        s = s*x",
        "    if i < 5 and i > 2:\n        s = s*x",
        "    if i < n:\n        s = s*x",
        "    s = where(i < 5, s*x, x)",
        "    s = s**i",
        "    s = minimum(s, i)",
        "    s = f(s, i)",
        "    s = p(s, i)",
        "    s = s*v[mod(i, 2)]",
        "    for j in range(max(0, 5 - i)):\n        s = s*x",
    ],
)
def test_bodies_whose_turns_differ_are_built(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"def f(a, k):\n    if k < 5:\n        return 3*a\n    return a\ndef p(a, k): return a**k\nx = 2\nv = [1.5, 3]\nn = 5\ns = x\nfor i in range(1000):\n{body}\ns\n"
    monkeypatch.setattr(loop_size, "WORTH", 10**9)
    size = nodes(text, 10**6)
    monkeypatch.setattr(loop_size, "WORTH", 0)
    assert size is not None and nodes(text, size) == size
