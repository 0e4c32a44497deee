"""Points to check at: sampled in domains, or near a given point.

Everything is deterministic: the seed is a hash of the script and its point unless it is given. Data never move.
"""

from __future__ import annotations

from _blake2 import blake2b  # `hashlib` has the same function, and loads OpenSSL for 3 ms
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide.floats import evaluated
from gradcli.checks.oracle.oracle_client import leaf_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node
    from gradcli.graph.program import Leaf

    Floats = NDArray[np.floating[Any]]

RANGES = ((-2.0, 2.0), (0.1, 2.0), (0.05, 0.95), (1.1, 4.0), (5.0, 60.0))  # where free names are looked for
TRIES = 24
LONG = 15  # digits
DISTANCES = (2.0**-6, 2.0**-16, 2.0**-26)  # of points on both sides of a given one, relatively
APART = 0.04  # how far points near a given one of a black box lie, relatively
EQUAL = "equal or 0 in the same entries"


def seed_of(text: str, at: Mapping[str, Any]) -> int:
    """A seed from the text of a case and its point, the same on every machine and wherever a document has the text."""
    parts = [text.lstrip("\r\n"), *(f"{name}={np.asarray(value).tolist()!r}" for name, value in sorted(at.items()))]
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=4).digest(), "big")


def sampled(
    leaves: Mapping[str, Leaf], known: Mapping[str, Floats], outputs: Sequence[Node], seed: int, dtype: str = "float64"
) -> dict[str, Floats]:
    """Values for the leaves that have none: inside their domains, where the outputs are finite.

    Decimals of two digits, so that they can be printed and typed again. Where no try gives finite outputs the first
    one is returned.
    """
    used = leaf_names(outputs)
    missing = [leaf for name, leaf in leaves.items() if name not in known]
    missing.sort(key=lambda leaf: leaf.name not in used)  # what no output reads changes no value of another
    first: dict[str, Floats] = {}
    for low, high in RANGES if missing else ():
        generator = np.random.default_rng(seed)
        for _ in range(TRIES):
            drawn = {leaf.name: _draw(generator, leaf, low, high, dtype) for leaf in missing}
            first = first or drawn
            if all(np.isfinite(value).all() for value in evaluated(outputs, {**known, **drawn}, dtype)):
                return drawn
    return first


def _draw(generator: np.random.Generator, leaf: Leaf, low: float, high: float, dtype: str) -> Floats:
    """A value of few digits from a range, as far as it lies in the domain of the leaf."""
    value = drawn(generator, leaf, low, high, dtype == "complex128")
    rounded = np.round(value, 2)
    return np.where((rounded != 0) & inside(leaf.domain, rounded), rounded, value)


def drawn(generator: np.random.Generator, leaf: Leaf, low: float, high: float, plane: bool = False) -> NDArray[Any]:
    """A value from a range, as far as it lies in the domain of a leaf; where they do not meet, from the domain."""
    low, high = (low, high) if leaf.domain is None else leaf.domain.part_of(low, high)
    real, *imaginary = generator.uniform(low, high, (1 + plane, *leaf.node.type.shape))
    return symmetric(leaf, real + 1j * imaginary[0] if plane else np.asarray(real))


def symmetric(leaf: Leaf, value: Floats) -> Floats:
    """A value for a leaf, which may be symmetric only."""
    return np.tril(value) + np.tril(value, -1).T if "symmetric" in leaf.node.params else value


def inside(domain: Interval | None, x: Floats) -> NDArray[np.bool_]:
    """For each entry of an array whether a declared domain, if there is one, holds it."""
    held = [domain is None or (x.dtype.kind != "c" and domain.contains(entry)) for entry in x.reshape(-1).tolist()]
    return np.array(held, dtype=np.bool_).reshape(x.shape)


def nearby(x: Floats, domain: Interval | None, count: int, seed: int) -> Iterator[Floats]:
    """Values ever nearer to that of a leaf, of few digits and of many; a symmetric or diagonal matrix stays one."""
    if x.dtype.kind == "c":
        for parts in nearby(np.stack([x.real, x.imag]).reshape(-1), domain, count, seed):
            real, imaginary = parts.reshape(2, *x.shape)
            yield np.asarray(real + 1j * imaginary)
        return
    generator, kept = Random(seed), structure(x)
    for attempt in range(8 * count):
        step = step_of(x, kept, generator) * 0.25 * 4.0 ** -(attempt // (2 * count))
        moved = shortened(x + step, LONG if attempt % 2 else 3 + attempt // (2 * count))
        if inside(domain, moved).all() and (moved != x).all() | kept[1]:
            yield moved


def both_sides(x: Floats, domain: Interval | None, seed: int) -> list[list[Floats]]:
    """Values on both sides of that of a leaf, a row for each of some distances, as far as they are in its domain."""
    if x.dtype.kind == "c":
        rows = both_sides(np.stack([x.real, x.imag]), domain, seed)
        return [[np.asarray(parts[0] + 1j * parts[1]) for parts in row] for row in rows]
    step = step_of(x, structure(x), Random(seed))
    rows = [[np.asarray(x + way * size * step) for way in (1.0, -1.0)] for size in DISTANCES]
    return [[moved for moved in row if inside(domain, moved).all()] for row in rows]


def step_of(x: Floats, kept: tuple[bool, bool], generator: Random) -> Floats:
    """A random step that moves every number by about its size, and keeps what `structure` says of a matrix."""
    symmetric, diagonal = kept
    step = np.where(x == 0, 1.0, np.abs(x)) * speeds(generator, x.shape)
    if symmetric:
        step = np.triu(step) + np.triu(step, 1).T
    return np.diag(np.diag(step)) if diagonal else step


def rescaled(x: Floats, count: int, seed: int) -> Iterator[Floats]:
    """Values near that of a leaf, in which equal entries stay equal and zeros zero: a symmetric matrix, a mask.

    Where all are 0 they stay equal. The first two move in opposite directions.
    """
    generator = np.random.default_rng(seed + 7)
    sizes, places = np.unique(np.abs(x), return_inverse=True)
    ways = generator.choice([-1.0, 1.0], sizes.size)
    for k in range(count):
        steps = APART * ways * generator.uniform(0.3, 1.0, sizes.size)
        ways = -ways if k % 2 == 0 else generator.choice([-1.0, 1.0], sizes.size)
        yield x + np.where(x.any(), x, 1.0) * steps[places].reshape(x.shape)


def speeds(generator: Random, shape: tuple[int, ...]) -> Floats:
    """Random numbers of either sign, of sizes between 0.4 and 1.

    They come from Python's generator: importing NumPy's takes longer than most checks.
    """
    bits = np.frombuffer(generator.randbytes(2 * prod(shape)), dtype="<u2").reshape(shape).astype(np.int64)
    return (0.4 + 0.6 * (bits >> 1) / 2**15) * (2.0 * (bits & 1) - 1.0)


def scattered(
    values: Mapping[str, Floats], names: Iterable[str], domains: Mapping[str, Interval | None], width: float, seed: int
) -> Iterator[dict[str, Floats]]:
    """Points around a given one where each entry of some leaves has moved by itself, by so many of its sizes at most.

    No symmetry and no equal entries are left. An entry that would leave its domain stays.
    """
    generator = np.random.default_rng(seed)
    while True:
        place = dict(values)
        for name in names:
            x, domain = values[name], domains.get(name)
            step = np.where(x == 0, 1.0, np.abs(x)) * width * generator.uniform(-1.0, 1.0, x.shape)
            moved = shortened(x + step, 3)
            place[name] = np.where(inside(domain, moved), moved, x)
        yield place


def structure(x: Floats) -> tuple[bool, bool]:
    """Whether a value is a symmetric matrix, and whether it is a diagonal one."""
    if x.ndim != 2 or x.shape[0] != x.shape[1] or x.shape[0] < 2:
        return False, False
    return bool((x == x.T).all()), bool((x == np.diag(np.diag(x))).all())


def off_structure(x: Floats, domain: Interval | None, seed: int) -> Iterator[tuple[str, Floats]]:
    """Matrices near a symmetric or diagonal one that are not symmetric, or not diagonal, each with that word."""
    symmetric, diagonal = structure(x)
    if not symmetric:
        return
    generator = np.random.default_rng(seed)
    step = 0.25 * np.max(np.abs(x), initial=0.0) * generator.uniform(0.4, 1.0, x.shape)
    off = {"diagonal": np.triu(step, 1) + np.triu(step, 1).T} if diagonal else {}
    for word, change in (*off.items(), ("symmetric", np.triu(step, 1))):
        moved = np.where(change == 0, x, shortened(x + change, 3))
        if not structure(moved)[word == "diagonal"] and inside(domain, moved).all():
            yield word, moved


def repeats(x: Floats) -> bool:
    """Whether an array that is no symmetric matrix has equal entries or zeros."""
    sizes = np.unique(np.abs(x))
    return x.size > 1 and not structure(x)[0] and not (sizes.all() and sizes.size == x.size)


def shortened(x: Floats, digits: int) -> Floats:
    """Numbers rounded to a few significant digits."""
    flat = [float(f"{entry:.{digits - 1}e}") for entry in x.reshape(-1).tolist()]
    return np.array(flat, dtype=np.float64).reshape(x.shape)
