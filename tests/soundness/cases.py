"""The cases of the law of verdicts, by seed: each is drawn, judged by gradcli and compared with what is true.

`python -m tests.soundness.cases FIRST COUNT [ROUTE]` judges some seeds, and prints what is wrong as it comes: a line for
each finished part of them, so that a run that is cut short counts as far as it came, and the verdicts at the end.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from gradcli.checks.decide import refutation
from tests.soundness import functions, points, second_order, sets
from tests.soundness.points import Judged

PART = 250  # seeds

# the routes to a verdict, with how many of 100 cases take them
ROUTES: dict[str, tuple[int, Callable[[Any], list[Judged]]]] = {
    "point": (48, points.at_a_point),
    "second order": (8, second_order.of_second_order),
    "box": (10, sets.on_a_box),
    "sizes": (8, sets.of_all_sizes),
    "function": (18, functions.of_a_function),
    "torch": (2, functions.of_a_torch_function),
    "Jacobian": (6, functions.of_a_jacobian),
}


def judged(seed: int, route: str | None = None) -> list[Judged]:
    """What gradcli says of a case, beside what is true of it; an exception is a fault too."""
    random = np.random.default_rng(seed)
    weights = np.array([weight for weight, _ in ROUTES.values()])
    name = str(random.choice(list(ROUTES), p=weights / weights.sum())) if route is None else route
    try:
        return ROUTES[name][1](random)
    except Exception as problem:
        return [Judged(name, f"{type(problem).__name__}: {problem}", None, "CRASHED", "an exception")]


@contextmanager
def undiagnosed() -> Iterator[None]:
    """Checks that do not look for how a claim is wrong: no verdict depends on that, and it takes a seventh of the time."""
    with patch.object(refutation, "readings", lambda *_: []):
        yield


def tally(seeds: Iterable[int], route: str | None = None) -> tuple[Counter[tuple[str, str, str]], list[str]]:
    """How often which verdicts stand on what is right, wrong or neither, by route; the faults, each with its seed."""
    counts: Counter[tuple[str, str, str]] = Counter()
    faults: list[str] = []
    for seed in seeds:
        for one in judged(seed, route):
            counts[one.route, {True: "right", False: "wrong", None: "neither"}[one.right], one.verdict] += 1
            faults += [f"{seed}: {one.fault}: {one.what}"] if one.fault else []
    return counts, faults


if __name__ == "__main__":
    first, count, *only = sys.argv[1:]
    seeds, total, n_faults = range(int(first), int(first) + int(count)), Counter[tuple[str, str, str]](), 0
    for start in range(0, len(seeds), PART):
        part = seeds[start : start + PART]
        with undiagnosed():
            counts, faults = tally(part, *only)
        total, n_faults = total + counts, n_faults + len(faults)
        print(
            *faults, f"{part[0]} to {part[-1]}: {len(faults)} faults in {counts.total()} verdicts", sep="\n", flush=True
        )
    for (route, truth, verdict), number in sorted(total.items()):
        print(f"{route:14}{truth:9}{verdict:16}{number:6}")
    print(f"{n_faults} faults in {total.total()} verdicts")
