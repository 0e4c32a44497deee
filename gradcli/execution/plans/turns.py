"""The calls of a round go in, functions that take rounds come out: text, made of names and calls alone.

A call is a function and, for each operand, one array, a tuple of those of a ring, or a list for all rounds. None stands
for a copy. What is called is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.generated import function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Rounds = Callable[[Any], None]
    Work = tuple[list[Rounds], list[Any], Rounds, list[Any]]  # of one round, and of as many as the ring has rows

BY_NAME = (np.maximum, np.minimum)  # functions that take their result by name only


def nothing(turns: Any) -> None:
    """What a scan without calls does."""


def written(calls: Sequence[tuple[Any, list[Any]]], rounds: int, window: int) -> Work:
    """Functions of rounds: one for each place in the ring, and one for as many rounds as it has rows."""
    scope: dict[str, Any] = {}
    names: dict[int, str] = {}
    lists: list[Any] = []

    def name(thing: Any, phase: int, tail: str) -> str:
        if isinstance(thing, tuple):
            thing = thing[phase]
        known = names.get(id(thing))
        if known is None:
            known = f"x{len(lists)}" if isinstance(thing, list) else f"c{len(scope)}"
            names[id(thing)] = known
            if isinstance(thing, list):
                lists.append(thing)
            else:
                scope[known] = thing
        return known + tail if isinstance(thing, list) else known

    def lines(phase: int, tail: str) -> list[str]:
        found = []
        for made, operands in calls:
            *xs, out = [name(one, phase, tail) for one in operands]
            if made is None:
                found.append(f"        {out}[...] = {xs[0]}")
            else:
                result = f"out={out}" if made in BY_NAME else out
                found.append(f"        {name(made, phase, tail)}({', '.join([*xs, result])})")
        return found

    def bound(body: list[str], tails: Sequence[str]) -> Any:
        heads = [f"x{i}{tail}, " for tail in tails for i in range(len(lists))]
        text = [f"def turns(rows):\n    for {''.join(heads) or '_ '}in rows:", *body, "        pass\n"]
        return function("\n".join(text), scope, "scan")

    single = [lines(phase, "") for phase in range(window)]
    several = [line for phase in range(window) for line in lines(phase, f"_{phase}")]
    turns = list(zip(*lists, strict=True)) if lists else [()] * rounds
    whole = len(turns) // window
    chunks = [sum(turns[at * window : (at + 1) * window], ()) for at in range(whole)]
    tails = [f"_{phase}" for phase in range(window)]
    return [bound(one, [""]) for one in single], turns, bound(several, tails), chunks
