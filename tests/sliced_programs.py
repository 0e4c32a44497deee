"""A seed goes in, the text of a script full of slices, joins and choices comes out, and values for its leaves.

At most entries these are ordinary numbers; `odd` puts infinities, NaN, zeros of both signs, huge and tiny ones there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

N = 12
ODD = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 1e-310, 1e200, 1e-200)
UNARY = (
    "{}*{}", "exp({})", "sqrt({})", "1/{}", "2*{}", "-{}", "{}/4", "abs({})", "where({} > 0, {}, 0)",
    "where({} > 0, sqrt({}), 0)", "relu({})", "tanh({})", "{}**2", "{}**3", "log({})", "cumsum({})", "flip({})",
    "0.5*{}*3",
)  # fmt: skip
BINARY = (
    "({} + {})", "({} - {})", "({}*{})", "({}/{})", "maximum({}, {})", "minimum({}, {})", "where({} < {}, 1.0, 0)",
    "hypot({}, {})",
)  # fmt: skip


def make(seed: int) -> tuple[str, dict[str, Any]]:
    """A script and its point."""
    random = np.random.default_rng(seed)
    lines: list[str] = []
    names = [("x", N), ("w", N)][: random.integers(1, 3)]
    values = {name: random.uniform(0.3, 2, N) * random.choice([1, 1, 1, -1], N) for name, _ in names}
    for place in range(random.integers(2, 7)):
        one, n = names[random.integers(len(names))]
        text, size = statement(random, names, one, n)
        lines.append(f"y{place} = {text}")
        names.append((f"y{place}", size))
    last, size = names[-1]
    ends = [last, *[names[random.integers(len(names))][0] for _ in range(random.integers(0, 2))]]
    total = " + ".join([f"sum({name})" for name in ends])
    if random.random() < 0.3:
        total = f"{last}[{random.integers(size)}]*2"
    text = "\n".join([*lines, total])
    return text, {name: value for name, value in values.items() if name in text}


def statement(random: np.random.Generator, names: list[tuple[str, int]], one: str, n: int) -> tuple[str, int]:
    """What makes an array of an array, and how long it is."""
    kind = random.random()
    if kind < 0.3:
        template = UNARY[random.integers(len(UNARY))]
        return template.format(*[one] * template.count("{}")), n
    if kind < 0.5:
        alike = [name for name, size in names if size == n]
        return BINARY[random.integers(len(BINARY))].format(one, alike[random.integers(len(alike))]), n
    if kind < 0.75 and n > 2:
        low = int(random.integers(0, n - 1))
        high = int(random.integers(low + 1, n + 1))
        step = int(random.choice([1, 1, 1, 2]))
        return f"{one}[{low}:{high}:{step}]", len(range(low, high, step))
    if kind < 0.85:
        other, size = names[random.integers(len(names))]
        return f"concatenate(({one}, {other}))", n + size
    return (f"outer({one}, {one}) @ {one}", n) if kind < 0.93 else (f"{one}*sum({one})", n)


def odd(seed: int, values: dict[str, Any]) -> dict[str, Any]:
    """The point with some entries that are no ordinary numbers."""
    random = np.random.default_rng(seed)
    share = random.choice([0.05, 0.2])
    return {name: np.where(random.random(N) < share, random.choice(ODD, N), one) for name, one in values.items()}
