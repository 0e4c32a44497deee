"""The calls of some rounds go in, functions that take such rounds come out: text, made of names and calls alone.

A call is a function and, for each operand, one array, a tuple with an array for each round, or a list for all rounds.
None stands for a copy. What is called is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.generated import function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Rounds = Callable[[Any], None]
    Call = tuple[Any, list[Any]]
    Work = tuple[Rounds, list[Any]]  # the second has what the first takes, for each time that its loop goes round

BY_NAME = (np.maximum, np.minimum)  # functions that take their result by name only


def nothing(turns: Any) -> None:
    """What a scan without calls does."""


def written(before: Sequence[Call], calls: Sequence[Call], behind: Sequence[Call], times: int, phases: int) -> Work:
    """A function of `phases` rounds each time, and of what stands before and behind them: their lists are for times."""
    scope: dict[str, Any] = {}
    names: dict[int, str] = {}
    lists: list[Any] = []

    def name(thing: Any, phase: int, step: int) -> str:
        if isinstance(thing, list):
            lists.append(thing[phase::step])
            return f"x{len(lists) - 1}"
        thing = thing[phase] if isinstance(thing, tuple) else thing
        if id(thing) not in names:
            names[id(thing)] = f"c{len(scope)}"
            scope[names[id(thing)]] = thing
        return names[id(thing)]

    def lines(some: Sequence[Call], phase: int, step: int) -> list[str]:
        found = []
        for made, operands in some:
            *xs, out = [name(one, phase, step) for one in operands]
            if made is None:
                found.append(f"        {out}[...] = {xs[0]}")
            else:
                result = f"out={out}" if made in BY_NAME else out
                found.append(f"        {name(made, phase, step)}({', '.join([*xs, result])})")
        return found

    body = lines(before, 0, 1)
    for phase in range(phases):
        body += lines(calls, phase, phases)
    body += lines(behind, 0, 1)
    heads = "".join([f"x{at}, " for at in range(len(lists))])
    text = [f"def turns({', '.join(['rows', *scope])}):", f"    for {heads or '_ '}in rows:", *body, "        pass\n"]
    made: Any = function("\n".join(text), {}, "scan")
    made.__defaults__ = tuple(scope.values())  # names of the function itself are found faster than global ones
    return made, list(zip(*[one[:times] for one in lists], strict=True)) if lists else [()] * times
