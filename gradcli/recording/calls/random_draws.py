"""Notices calls that take random numbers, whose next result may be another one."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WATCHED = 8  # calls of a function: a state is large


class RandomDraws:
    """Which functions draw from a generator that they do not seed themselves, or seed one from the system's entropy."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._held: list[Any] = []
        self._calls: dict[str, list[Any]] = {}  # the states that each function has left behind

    def watch(self, values: Iterable[Any]) -> None:
        """Watch the generators among the values that functions hold, beside those that all code shares."""
        kinds = (random.Random, np.random.Generator, np.random.RandomState)
        self._held += [value for value in values if issubclass(type(value), kinds)]

    def states(self) -> list[Any]:
        """The states of all generators that are watched."""
        return [*shared_states(), *map(state_of, self._held)]

    @contextmanager
    def watching(self, role: str) -> Iterator[None]:
        """While `role` runs. One that seeds its generator leaves the same state at each call, and draws nothing new."""
        left = self._calls.setdefault(role, [])
        if len(left) == WATCHED:
            yield
            return
        before, entropy, taken = self.states(), random.__dict__["_urandom"], list[int]()

        def counted(size: int) -> bytes:
            taken.append(size)
            result: bytes = entropy(size)
            return result

        random.__dict__["_urandom"] = counted  # what `secrets` and so `numpy.random.default_rng()` read
        try:
            yield
        finally:
            random.__dict__["_urandom"] = entropy
            after = self.states()
            if taken or (left and after not in (before, left[-1])):
                self.seen.add(role)
            left.append(after)


def shared_states() -> Iterator[Any]:
    """The states of the generators that all code of a process shares."""
    yield random.getstate()
    yield plain(np.random.get_state())
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        yield plain(torch.get_rng_state().numpy())


def state_of(generator: Any) -> Any:
    """The state of a generator, to be compared."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    return plain(generator.get_state() if hasattr(generator, "get_state") else generator.bit_generator.state)


def plain(state: Any) -> Any:
    """A state without arrays, whose comparison would be one of entries."""
    if isinstance(state, np.ndarray):
        return state.tobytes()
    parts = state.values() if isinstance(state, dict) else state
    return [plain(part) for part in parts] if isinstance(state, (dict, tuple)) else state
