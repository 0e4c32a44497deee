"""Notices calls that take random numbers, whose next result may be another one."""

from __future__ import annotations

import os
import random
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WATCHED = 6  # calls of a function: a state is large
SOURCES: tuple[tuple[Any, str], ...] = ((os, "urandom"), (random, "_urandom"))  # of entropy: of all, and of `secrets`


class RandomDraws:
    """Which functions draw from a generator that they do not seed themselves, or seed one from the system's entropy.

    `reached` gives the values in which their generators are looked for, beside those that all code shares.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.reached: Callable[[], Iterable[Any]] = tuple
        self._held: dict[int, Any] = {}  # generators, of which no other one gets the identity
        self._calls: dict[str, list[dict[Any, Any]]] = {}  # the states that each function has left behind
        self._seeding: dict[str, int] = {}  # calls that took entropy: the first one may prepare something

    def states(self, reached: Iterable[Any]) -> dict[Any, Any]:
        """The states of all generators that are watched, and the keys, among what is reached."""
        kinds = generators()
        self._held |= {id(value): value for value in reached if issubclass(type(value), kinds)}
        states = dict(enumerate(shared_states(), -3)) | {key: state_of(held) for key, held in self._held.items()}
        return {**states, "keys": [*keys_of(reached)]}

    @contextmanager
    def watching(self, role: str) -> Iterator[None]:
        """While `role` runs. One that seeds its generator leaves the same state at each call, and draws nothing new."""
        calls = self._calls.setdefault(role, [])
        if len(calls) == WATCHED:
            yield
            return
        reached = [*self.reached()]
        before = self.states(reached)
        try:
            with entropy_taken() as taken:
                yield
        finally:
            reached = [*self.reached()] if before["keys"] else reached
            after, left = self.states(reached), {key: state for call in calls for key, state in call.items()}
            self._seeding[role] = self._seeding.get(role, 0) + bool(taken)
            drawn = any(state not in (before.get(key), left.get(key, state)) for key, state in after.items())
            if drawn or self._seeding[role] > 1:
                self.seen.add(role)
            calls.append(after)


@contextmanager
def entropy_taken() -> Iterator[list[Any]]:
    """What was seeded from the system's entropy, or read of it, as long as this lasts."""
    taken: list[Any] = []
    seeded, before = random.Random.seed, [vars(home)[name] for home, name in SOURCES]

    def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
        taken.extend([generator] if a is None else ())
        seeded(generator, a, version)

    def noting(read: Callable[[int], bytes], size: int) -> bytes:
        taken.append(size)
        return read(size)

    for (home, name), read in zip(SOURCES, before, strict=True):
        setattr(home, name, partial(noting, read))
    random.Random.seed = seed  # type: ignore[assignment, method-assign]
    try:
        yield taken
    finally:
        random.Random.seed = seeded  # type: ignore[method-assign]
        for (home, name), read in zip(SOURCES, before, strict=True):
            setattr(home, name, read)


def shared_states() -> Iterator[Any]:
    """The states of the generators that all code of a process shares."""
    yield random.getstate()
    yield plain(np.random.get_state())
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        yield plain(torch.get_rng_state().numpy())


def generators() -> tuple[type, ...]:
    """The classes of generators that may be held."""
    torch: Any = sys.modules.get("torch")
    return (random.Random, np.random.BitGenerator, *([torch.Generator] if hasattr(torch, "Generator") else ()))


def state_of(generator: Any) -> Any:
    """The state of a generator, to be compared."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    return plain(generator.state if isinstance(generator, np.random.BitGenerator) else generator.get_state().numpy())


def keys_of(values: Iterable[Any]) -> Iterator[bytes]:
    """The keys of JAX among some values: where code holds one, the next numbers are drawn from another one."""
    jax: Any = sys.modules.get("jax")
    arrays = [value for value in values if type(value).__module__.startswith("jax") and isinstance(value, jax.Array)]
    for array in arrays:
        raw = str(array.dtype) == "uint32" and array.shape == (2,)
        if not isinstance(array, jax.core.Tracer) and (raw or str(array.dtype).startswith("key<")):
            yield np.asarray(jax.random.key_data(array)).tobytes()


def plain(state: Any) -> Any:
    """A state without arrays, whose comparison would be one of entries."""
    if isinstance(state, np.ndarray):
        return state.tobytes()
    parts = state.values() if isinstance(state, dict) else state
    return [plain(part) for part in parts] if isinstance(state, (dict, tuple)) else state
